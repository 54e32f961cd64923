{{ config(materialized='ephemeral') }}
select s.*, p.product_name, p.kind, s.pieces * p.price as revenue
from {{ ref('stg_sales') }} as s
join {{ ref('stg_products') }} as p using (product_id)
