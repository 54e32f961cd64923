select id as sale_id, shop_id, product_id, sold_on, pieces
from {{ ref('raw_sales') }}
