select shop_id, sum(pieces) as pieces, rank() over (order by sum(pieces) desc) as place
from {{ ref('fct_sales') }}
group by shop_id
