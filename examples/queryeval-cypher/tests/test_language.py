"""Cypher as text: queries in the answers of models, suggestions, features, order."""

import pytest
from queryeval_cypher.kind import CYPHER
from queryeval_cypher.order import order_plan

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Failure

QUERY = "MATCH (r:River) // all\nRETURN r.name"
SCHEMA = Schema(tables={"river": ("name", "km"), "flows_into": ("at_km",)})


@pytest.mark.parametrize(
    ("said", "note"),
    [
        (QUERY, ""),
        (f"```cypher\n{QUERY}\n```", "the query was read from a code block"),
        (f"Here it is:\n```\n{QUERY}\n```\nIt lists all rivers.", "the query was read from a code block"),
        (f"Cypher query: {QUERY}", "the query was read from the text after a label"),
        (f"<think>RETURN 1?</think>{QUERY}", "the query was read from the text after reasoning"),
    ],
)
def test_the_query_is_read_from_what_a_model_said(said, note):
    assert CYPHER.extract_query(said) == (QUERY, note)


def test_sql_is_left_to_fail():
    assert CYPHER.extract_query("```sql\nSELECT 1\n```") == ("```sql\nSELECT 1\n```", "")


@pytest.mark.parametrize(
    ("message", "hint", "label"),
    [
        ("Cannot find property nam for r.", ": did you mean 'name'?", "unknown-column"),
        ("Table Rivr does not exist.", ": did you mean 'river'?", "unknown-table"),
        ("Variable x is not in scope.", "", "syntax"),
    ],
)
def test_an_unknown_name_has_a_suggestion_and_a_label(message, hint, label):
    assert CYPHER.name_hint("", message, SCHEMA) == hint
    assert CYPHER.failure_label(Failure(kind="invalid", message=message)) == label


@pytest.mark.parametrize(
    ("query", "features"),
    [
        ("MATCH (a) RETURN a.count, 'ORDER'", ()),
        (
            "OPTIONAL MATCH (a)-[:R*1..3]->(b) RETURN count(b) ORDER BY 1",
            ("optional match", "order by", "aggregation", "variable length"),
        ),
        ("MATCH (a:Union) WHERE EXISTS { MATCH (a)-[]->() } RETURN a UNION RETURN 1 AS a", ("union", "exists")),
    ],
)
def test_features_are_what_a_query_uses(query, features):
    assert CYPHER.features(query, "") == features


def test_a_query_that_reads_the_clock_is_seen():
    assert CYPHER.reads_clock("RETURN Current_Date() > date('2020-01-01')", "") == "Current_Date()"
    assert CYPHER.reads_clock("RETURN 'current_date', a.current_date", "") == ""


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (a) RETURN a.order",
        "MATCH (a) WITH a ORDER BY a.n RETURN a",
        "MATCH (a) WITH a ORDER BY a.n RETURN a LIMIT 2",
        "RETURN 1 AS x UNION RETURN 2 AS x ORDER BY x",
    ],
)
def test_rows_without_an_order_of_the_whole_answer_have_no_plan(query):
    assert order_plan(query, 3) is None


@pytest.mark.parametrize(
    ("query", "text", "keys"),
    [
        (
            "RETURN a.n, a.m AS m ORDER BY a.n DESC, m SKIP 2 LIMIT 3;",
            "RETURN a.n, a.m AS m, a.n AS queryeval_key_1, a.m AS queryeval_key_2 ORDER BY a.n DESC, m LIMIT 1005",
            (0, 1),
        ),
        (
            "MATCH (a) RETURN DISTINCT f(a, b), [a.x, 1] ORDER BY f(a, b)",
            "MATCH (a) RETURN DISTINCT f(a, b), [a.x, 1], f(a, b) AS queryeval_key_1 ORDER BY f(a, b) LIMIT 1005",
            (0,),
        ),
        (
            "MATCH (a) RETURN * ORDER BY a.n // ORDER BY x",
            "MATCH (a) RETURN *, a.n AS queryeval_key_1 ORDER BY a.n LIMIT 1005",
            None,
        ),
    ],
)
def test_the_query_for_ties_has_the_sort_keys_as_columns(query, text, keys):
    plan = order_plan(query, 5 - 2 * ("SKIP" in query))

    assert (plan.queries[0].text, plan.keys, plan.ordered) == (text, keys, True)
    assert (plan.offset, plan.limited) == ((2, True) if "SKIP" in query else (0, False))


def test_a_limit_without_order_allows_any_rows():
    plan = order_plan("MATCH (a) RETURN a LIMIT 2", 2)

    assert (plan.ordered, plan.queries[0].text, plan.queries[0].key_columns) == (False, "MATCH (a) RETURN a", 0)


def test_rows_after_an_unknown_number_of_rows_are_compared_as_they_are():
    assert order_plan("MATCH (a) RETURN a ORDER BY a.n SKIP $n", 2).queries == ()
