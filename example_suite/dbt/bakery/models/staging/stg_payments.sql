-- depends_on: {{ ref('raw_payments') }}
select sale_id, method, paid_cents / 100 as paid
from {{ source('till', 'payments') }}
