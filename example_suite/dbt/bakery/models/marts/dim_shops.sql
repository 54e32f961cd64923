select s.shop_id, s.shop_name, s.town, s.opened_on, count(f.sale_id) as sales
from {{ ref('stg_shops') }} as s
left join {{ ref('stg_sales') }} as f using (shop_id)
group by all
