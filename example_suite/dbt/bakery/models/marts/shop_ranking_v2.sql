select shop_id, sum(revenue) as revenue, rank() over (order by sum(revenue) desc) as place
from {{ ref('fct_sales') }}
group by shop_id
