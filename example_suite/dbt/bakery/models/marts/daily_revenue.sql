{{ config(schema='reporting') }}
select sold_on, sum(revenue) as revenue, sum(pieces) as pieces
from {{ ref('fct_sales') }}
group by sold_on
