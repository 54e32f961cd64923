select id as shop_id, name as shop_name, town, opened_on
from {{ ref('raw_shops') }}
