select id as product_id, name as product_name, kind, price_cents / 100 as price
from {{ ref('raw_products') }}
