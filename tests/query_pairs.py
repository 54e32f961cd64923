"""Pairs of queries that match clause by clause, pairs that do not, and queries in the words of a dozen dialects."""

from yaml_tables import read_table

from pytest_queryeval.core.db_schema import Schema

TOWN = Schema(
    tables={
        "shop": ("id", "name", "city", "opened"),
        "sale": ("number", "shop_id", "price", "discount"),
        "visit": ("id", "shop_id", "guests"),
        "person": ("id", "name", "boss_id", "city"),
        "ledger": ("rowid", "amount"),
    },
    foreign_keys=(
        (("sale", "shop_id"), ("shop", "id")),
        (("visit", "shop_id"), ("shop", "id")),
        (("person", "boss_id"), ("person", "id")),
    ),
)
PAIRS = read_table("query_pairs.yaml")
# In SQLite, with the schema of the town.
MATCHING, DIFFERENT = (tuple(map(tuple, PAIRS[name])) for name in ("matching", "different"))
# Without a schema: the dialect, and two queries.
MATCHING_BY_DIALECT, DIFFERENT_BY_DIALECT = PAIRS["matching_by_dialect"], PAIRS["different_by_dialect"]
# By dialect, what is said in it alone.
GOLDS = PAIRS["golds"]
