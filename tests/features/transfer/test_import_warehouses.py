"""`queryeval import cortex` and `import genie`, on small files of their form, whose golds run on SQLite."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main

MODEL = """
name: Shop
tables:
  - name: sales
    base_table: {schema: main, table: sd_data}
    dimensions:
      - {name: state, expr: d_state, data_type: TEXT}
    time_dimensions:
      - {name: sold, expr: dt, data_type: DATE}
    measures:
      - {name: profit, expr: amt - cst, data_type: NUMBER}
      - {name: margin, expr: SUM(amt - cst) / SUM(amt), data_type: NUMBER}
  - name: states
    base_table: {schema: main, table: st}
    dimensions:
      - {name: state, expr: code}
      - {name: name}
verified_queries:
"""
RECURSIVE = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2)
select i, profit from n join __sales on state = 'IL'"""
ROWS = [("CA", "2024-01-01", 10, 4), ("CA", "2024-01-02", 20, 5), ("IL", "2024-01-02", 8, 9)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.execute("CREATE TABLE sd_data (d_state, dt, amt, cst)")
        connection.execute("CREATE TABLE st (code, name)")
        connection.executemany("INSERT INTO sd_data VALUES (?, ?, ?, ?)", ROWS)
        connection.execute("INSERT INTO st VALUES ('CA', 'California'), ('IL', 'Illinois')")
        connection.commit()
    return tmp_path


def imported(capsys, name, source):
    """Return the golds by the ids of their cases, of which none is skipped."""
    assert main(["import", name, source, "--source", "shop.db", "-o", "out", "--json"]) == 0, capsys.readouterr().out
    return {case.id: case.golds[0].query for case in load_cases("out", root=Path("out"))}


def model(text, start=MODEL):
    Path("shop.yaml").write_text(start + text, encoding="utf-8")
    return "shop.yaml"


def answers(query):
    with closing(sqlite3.connect("shop.db")) as connection:
        return connection.execute(query).fetchall()


QUERIES = [
    ("SELECT state, SUM(profit) AS p FROM __sales GROUP BY state ORDER BY p DESC", [("CA", 21), ("IL", -1)]),
    ("select state from sales where sold = '2024-01-01'", [("CA",)]),
    ("SELECT n.name FROM __sales s JOIN __STATES n ON n.state = s.state WHERE s.profit < 0", [("Illinois",)]),
    ("WITH best AS (SELECT MAX(profit) AS m FROM __sales) SELECT m FROM best", [(15,)]),
    ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 2) select i from n", [(1,), (2,)]),
    (RECURSIVE, [(1, -1), (2, -1)]),
    ("SELECT SUM(amt) FROM __sales -- of the aggregate", [(38,)]),
    ("SELECT d_state FROM main.sd_data WHERE cst > 8", [("IL",)]),
    ("WITH sales AS (SELECT 1 AS x) SELECT x FROM sales", [(1,)]),
    ("WITH sales AS (SELECT * FROM sales) SELECT state FROM sales WHERE profit = 6", [("CA",)]),
    ("WITH sales AS (SELECT sales.state FROM sales WHERE sales.profit < 0) SELECT state FROM sales", [("IL",)]),
    ("WITH sales AS (SELECT s.state FROM \"SALES\" AS s WHERE s.profit = 15) SELECT state FROM sales", [("CA",)]),
    ("WITH a AS (SELECT profit FROM sales), sales AS (SELECT MAX(profit) AS m FROM a) SELECT m FROM sales",
     [(15,)]),
    ("WITH __sales AS (SELECT state FROM __sales) SELECT COUNT(*) FROM __sales", [(3,)]),
    ("SELECT t.x, COUNT(*) FROM (WITH sales AS (SELECT 1 AS x) SELECT x FROM sales) t JOIN sales s ON s.profit < 9",
     [(1, 2)]),
    ("WITH recursive sales AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM sales WHERE i < 2) SELECT i FROM sales",
     [(1,), (2,)]),
    ("-- first\nSELECT '__sales' AS x, state FROM __sales WHERE profit = 6", [("__sales", "CA")]),
    ("SELECT state FROM __sales WHERE profit = 6 UNION SELECT state FROM __states WHERE name = 'Illinois';",
     [("CA",), ("IL",)]),
]  # fmt: skip


def test_logical_tables_become_queries_on_base_tables(folder, capsys):
    entries = [{"name": f"q{n}", "question": "What?", "sql": query} for n, (query, _) in enumerate(QUERIES)]

    golds = imported(capsys, "cortex", model(f"  {json.dumps(entries)}\n"))

    for gold, (query, rows) in zip(golds.values(), QUERIES, strict=True):
        assert answers(gold) == rows
        assert gold.endswith(query[-15:])


ODD_NAMES = {
    "name": "m",
    "tables": [
        {
            "name": "Sales Data",
            "base_table": {"schema": "main", "table": "my-data"},
            "dimensions": [{"name": "Order Date"}, {"name": "order", "expr": '"Sales Data".nr'}],
            "metrics": [
                {"name": "total", "expr": "SUM(amount)"},
                {"name": "mean", "expr": '"total" / COUNT(nr)'},
                {"name": "mean of shops", "expr": "total / shops.total"},
            ],
        },
        {"name": "order", "base_table": {"table": "order"}, "facts": [{"name": '"a b"'}]},
    ],
}


def test_names_of_a_model_are_quoted_where_they_need_it(folder, capsys):
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.executescript(
            """CREATE TABLE "my-data" ("Order Date", nr, amount); INSERT INTO "my-data" VALUES ('today', 7, 2.5);
            CREATE TABLE "order" ("a b"); INSERT INTO "order" VALUES (1);"""
        )
    queries = {
        'SELECT "Order Date", "ORDER" FROM "__Sales Data"': [("today", 7)],
        'SELECT SUM(amount) / COUNT(nr) FROM "Sales Data"': [(2.5,)],
        'SELECT "a b" FROM __order': [(1,)],
    }
    entries = [{"name": f"q{number}", "question": "What?", "sql": query} for number, query in enumerate(queries)]

    golds = imported(capsys, "cortex", model(json.dumps({**ODD_NAMES, "verified_queries": entries}), start=""))

    assert [answers(gold) for gold in golds.values()] == [*queries.values()]


def test_comments_in_expressions_of_a_model_do_not_comment_out_the_query(folder, capsys):
    comments = (
        "-- of all\namt - cst -- in EUR",
        "/* of all */ amt - cst // in EUR",
        "amt -- of all\n- cst /* in EUR */",
    )
    facts = [{"name": f"profit{number}", "expr": text} for number, text in enumerate(comments)]
    table = {"name": "sales", "base_table": {"table": "sd_data"}, "facts": facts}
    queries = [{"name": "q", "question": "q", "sql": "SELECT profit0, profit1, profit2 FROM sales WHERE profit0 > 6"}]

    text = json.dumps({"tables": [table], "verified_queries": queries})
    golds = imported(capsys, "cortex", model(text, start=""))

    assert answers(golds["q"]) == [(15, 15, 15)]


def test_verified_queries_become_cases_that_run(folder, capsys):
    of_state = "SELECT state, SUM(profit) FROM __sales GROUP BY 1"
    queries = [
        {"name": "by state", "question": "Profit by state?", "sql": of_state},
        {"name": "all", "question": "All?", "sql": "SELECT * FROM __states", "verified_by": "ann", "verified_at": 1},
    ]

    golds = imported(capsys, "cortex", model(f"  {json.dumps(queries)}\n"))

    assert [*golds] == ["by-state", "all"]
    Path("out/predict.py").write_text(
        "def predict(case):\n    return 'SELECT code, name FROM st' if case.id == 'all' else "
        "'SELECT d_state, SUM(amt) - SUM(cst) FROM sd_data GROUP BY 1'\n"
    )
    report = evaluate(load_cases("out", root=Path("out")))
    assert {case["id"]: case["outcome"] for case in report["cases"]} == {"by-state": "passed", "all": "passed"}


def test_benchmarks_of_genie_run_and_keep_variables_of_their_source(folder, capsys):
    lines = {"b1": ["SELECT d_state\n", "FROM sd_data\n", "WHERE amt > 9"]}
    lines["b2"] = ["SELECT d_state", "FROM sd_data -- all", "WHERE amt > 10"]  # stay apart
    questions = [
        {"id": id_, "question": ["Which?"], "answer": [{"format": "SQL", "content": of}]} for id_, of in lines.items()
    ]
    Path("space.json").write_text(json.dumps({"benchmarks": {"questions": questions}}), encoding="utf-8")
    url = "snowflake://suites:${TOKEN}@account/shop?role=reader&passcode=${CODE}"

    golds = imported(capsys, "genie", "space.json")

    assert {id_: answers(gold) for id_, gold in golds.items()} == {"b1": [("CA",), ("CA",)], "b2": [("CA",)]}
    assert main(["import", "genie", "space.json", "--source", url, "-o", "other"]) == 0
    assert f"source: {url}\n" in Path("other/queryeval.yaml").read_text(encoding="utf-8")
