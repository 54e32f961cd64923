select s.sale_id, s.shop_id, s.product_name, s.kind, s.sold_on, s.pieces, s.revenue, p.method, p.paid
from {{ ref('int_priced_sales') }} as s
left join {{ ref('stg_payments') }} as p using (sale_id)
