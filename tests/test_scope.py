"""The scope of a case in a run: on SQLite by its authorizer, on DuckDB by names, and where no query runs."""

import json
import sqlite3

import duckdb
import pytest

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.errors import SuiteError

pytestmark = [pytest.mark.process, pytest.mark.feature("duckdb")]

SCRIPT = """
CREATE TABLE orders (id INTEGER, price INTEGER, tenant_id INTEGER);
CREATE TABLE salaries (id INTEGER, amount INTEGER);
CREATE VIEW mine AS SELECT id FROM orders WHERE tenant_id = 7;
CREATE VIEW all_of_them AS SELECT * FROM mine, salaries AS s FULL JOIN orders USING (id);
INSERT INTO orders VALUES (1, 5, 7);
"""
SUITE = """
kind: sql
scope: {tables: [orders], columns: {orders: [id, price]}}
cases:
"""
# By query: what is outside, as far as a note names it; None if nothing is.
QUERIES = {
    "SELECT id FROM orders": None,
    "SELECT count(*) FROM orders": None,
    "WITH salaries AS (SELECT id FROM orders) SELECT id FROM salaries": None,
    "SELECT tenant_id FROM orders": "orders.tenant_id (line 1, column 8)",
    "WITH a AS (SELECT tenant_id AS id FROM orders) SELECT id FROM a": "orders.tenant_id (line 1, column 19)",
    "WITH orders AS (SELECT id, tenant_id FROM main.orders) SELECT count(*) FROM orders": "orders.tenant_id (line 1",
    "WITH a(i, t) AS (SELECT 1, tenant_id FROM orders UNION ALL SELECT 2, t FROM a WHERE i > 1) SELECT i FROM a": (
        "orders.tenant_id (line 1, column 28)"
    ),
    "SELECT o.id FROM orders o JOIN orders p USING (tenant_id)": "orders.tenant_id (line 1, column 48)",
    "SELECT id FROM mine": "orders.tenant_id (line 1, column 16, through the view mine)",
    "SELECT 1 FROM all_of_them": "salaries (line 1, column 15, through the view all_of_them)",
    "SELECT count(*) FROM salaries": "salaries (line 1, column 22)",
    "SELECT id FROM orders ORDER BY (SELECT max(amount) FROM salaries)": "salaries (line 1, column 57)",
    "SELECT nothing FROM salaries": "salaries (line 1, column 21)",
    "SELECT nothing FROM orders": None,
    "DROP TABLE orders": "only reading is allowed",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scope")
    with sqlite3.connect(folder / "a.db") as connection:
        connection.executescript(SCRIPT)
    connection.close()
    with duckdb.connect(str(folder / "a.duckdb")) as database:
        database.execute(SCRIPT + "CREATE MACRO peek() AS (SELECT max(amount) FROM salaries)")
    return folder


def scored(folder, suite, queries):
    """Return the scores of predicted queries, by id, with the notes."""
    cases = "".join(
        f"- {{id: c{number}, question: q{number}, gold: SELECT 1 AS id, predicted: '{query}'}}\n"
        for number, query in enumerate(queries)
    )
    path = folder / "s.queryeval.yaml"
    path.write_text(suite + cases, encoding="utf-8")
    cases = evaluate(load_cases(path))["cases"]
    return [(case["scores"].get("in_scope"), " ".join(case["details"].get("notes", ())), case) for case in cases]


@pytest.mark.parametrize("source", ["{sqlite: a.db}", "{duckdb: a.duckdb}"])
def test_queries_out_of_scope_score_0_with_the_place(folder, source):
    twice = [*QUERIES, *QUERIES]  # a query that was prepared before is judged again

    results = scored(folder, f"source: {source}{SUITE}", twice)

    for query, (score, notes, case) in zip(twice, results, strict=True):
        outside = QUERIES[query]
        assert (score, query) == (1.0 if outside is None else 0.0, query)
        assert json.loads(json.dumps(case)) == case  # so that a run equals its own report as the baseline
        assert outside is None or outside in notes
    assert [case["outcome"] for *_, case in results[:2]] == ["passed", "passed"]


def test_functions_of_the_database_are_outside(folder):
    queries = ["SELECT peek()", "SELECT max(id) FROM orders"]

    (score, notes, _), (inside, *_) = scored(folder, "source: {duckdb: a.duckdb}" + SUITE, queries)

    assert (score, inside) == (0.0, 1.0)
    assert "calls the function peek (line 1, column 8)" in notes


def test_what_cannot_be_resolved_is_an_error_if_it_ran(folder):
    suite = SUITE.replace("tables: [orders]", "tables: [main.*, orders]").replace("orders: [id, price]", "s.t: [a]")
    with duckdb.connect(str(folder / "schemas.duckdb")) as database:
        database.execute("CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER, b INTEGER)")

    suite = suite.replace("main.*", '"s.*"')
    (_, _, case), *_ = scored(folder, "source: {duckdb: schemas.duckdb}" + suite, ["SELECT * FROM s.t"])

    assert case["outcome"] == "error"
    assert "whether the predicted query is in scope is not known: the columns of s.t are not known" in case["message"]


def test_a_view_that_is_listed_is_a_table(folder):
    suite = "source: {sqlite: a.db}" + SUITE.replace("tables: [orders]", "tables: [mine]")

    inside = ["SELECT id FROM mine", "SELECT count(*) FROM mine", "WITH a AS (SELECT id FROM mine) SELECT id FROM a"]
    outside = ["SELECT id FROM orders", "WITH mine AS (SELECT tenant_id AS id FROM orders) SELECT id FROM mine"]

    assert [score for score, *_ in scored(folder, suite, inside + outside)] == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_other_thresholds_leave_the_one_of_scopes(folder):
    suite = "source: {sqlite: a.db}\nthresholds: {soft_f1: 0}" + SUITE

    (_, _, case), *_ = scored(folder, suite, ["SELECT tenant_id AS id FROM orders"])

    assert (case["outcome"], [violation["metric"] for violation in case["violations"]]) == ("failed", ["in_scope"])


def test_names_that_the_source_does_not_have_are_noted(folder):
    suite = "source: {sqlite: a.db}" + SUITE.replace("columns: {orders: [id, price]}", "deny: [tenant]")

    ((score, notes, _),) = scored(folder, suite, ["SELECT tenant_id AS id FROM orders"])

    assert (score, notes) == (
        1.0,
        "`scope` names the column tenant, which no table of the source has: did you mean 'tenant_id'?",
    )


def test_a_scope_that_no_query_can_keep_is_refused(tmp_path):
    where = "scope: {columns: {orders: [id]}, where: {orders: {tenant_id: 7}}}"
    path = tmp_path / "s.queryeval.yaml"
    path.write_text(f"kind: sql\nsource: a.db\n{where}\ncases: [{{id: a, gold: SELECT 1}}]\n", encoding="utf-8")

    with pytest.raises(SuiteError, match=r"`columns` excludes: write \{orders: \[id, tenant_id\]\}"):
        load_cases(path)
