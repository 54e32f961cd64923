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
CORRECT = "correct its `expr` to one value in Snowflake's SQL"
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
    """Return the golds by id, and what was skipped."""
    status = main(["import", name, source, "--source", "shop.db", "-o", "out", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert status == (1 if result["skipped"] else 0)
    cases = load_cases("out", root=Path("out"))
    assert result["cases"] == len(cases)
    return {case.id: case for case in cases}, {entry["id"]: entry["reason"] for entry in result["skipped"]}


def refusal(capsys, name, source, *options):
    with pytest.raises(SystemExit) as stop:
        main(["import", name, source, "--source", "shop.db", "-o", "out", *options])
    assert stop.value.code == 2
    return capsys.readouterr().err


def model(text, start=MODEL):
    Path("shop.yaml").write_text(start + text, encoding="utf-8")
    return "shop.yaml"


def answers(query):
    with closing(sqlite3.connect("shop.db")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
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
    ],
)  # fmt: skip
def test_logical_tables_become_queries_on_base_tables(folder, capsys, query, rows):
    queries = [{"name": "q", "question": "What?", "sql": query}]

    cases, skipped = imported(capsys, "cortex", model(f"  {json.dumps(queries)}\n"))

    assert skipped == {}
    assert answers(cases["q"].golds[0].query) == rows
    assert cases["q"].golds[0].query.endswith(query[-15:])


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


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ('SELECT "Order Date", "ORDER" FROM "__Sales Data"', [("today", 7)]),
        ('SELECT SUM(amount) / COUNT(nr) FROM "Sales Data"', [(2.5,)]),
        ('SELECT "a b" FROM __order', [(1,)]),
    ],
)
def test_names_of_a_model_are_quoted_where_they_need_it(folder, capsys, query, rows):
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.execute('CREATE TABLE "my-data" ("Order Date", nr, amount)')
        connection.execute("INSERT INTO \"my-data\" VALUES ('today', 7, 2.5)")
        connection.execute('CREATE TABLE "order" ("a b")')
        connection.execute('INSERT INTO "order" VALUES (1)')
        connection.commit()
    queries = [{"name": "q", "question": "What?", "sql": query}]

    cases, skipped = imported(capsys, "cortex", model(json.dumps({**ODD_NAMES, "verified_queries": queries}), start=""))

    assert skipped == {}
    assert answers(cases["q"].golds[0].query) == rows


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
    cases, skipped = imported(capsys, "cortex", model(text, start=""))

    assert skipped == {}
    assert answers(cases["q"].golds[0].query) == [(15, 15, 15)]


def test_names_of_a_model_cannot_end_a_query(folder, capsys):
    table = {"name": "t", "base_table": {"table": 'x"; DROP TABLE y; --'}, "facts": [{"name": 'a"; DROP', "expr": "1"}]}
    queries = [{"name": "q", "question": "What?", "sql": "SELECT 1 FROM t"}]

    text = json.dumps({"tables": [table], "verified_queries": queries})
    cases, _ = imported(capsys, "cortex", model(text, start=""))

    definition = 'SELECT 1 AS "a""; DROP"\n  FROM "x""; DROP TABLE y; --" AS t'
    assert cases["q"].golds[0].query == f"WITH t AS (\n  {definition}\n)\nSELECT 1 FROM t"


def test_verified_queries_become_cases_that_run(folder, capsys):
    queries = [
        {
            "name": "by state",
            "question": "Profit by state?",
            "sql": "SELECT state, SUM(profit) FROM __sales GROUP BY 1",
        },
        {"name": "all", "question": "All?", "sql": "SELECT * FROM __states", "verified_by": "ann", "verified_at": 1},
    ]

    cases, skipped = imported(capsys, "cortex", model(f"  {json.dumps(queries)}\n"))

    assert skipped == {}
    assert [(case.id, case.question) for case in cases.values()] == [("by-state", "Profit by state?"), ("all", "All?")]
    predicted = Path("out/predict.py")
    predicted.write_text(
        "def predict(case):\n    return 'SELECT code, name FROM st' if case.id == 'all' else "
        "'SELECT d_state, SUM(amt) - SUM(cst) FROM sd_data GROUP BY 1'\n"
    )
    report = evaluate(load_cases("out", root=Path("out")))
    assert {case["id"]: case["outcome"] for case in report["cases"]} == {"by-state": "passed", "all": "passed"}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"sql": "SELECT 1"}, "it has no `question`: add one"),
        ({"question": "q"}, "it has no 'sql' (it has name, question): is it of another format?"),
        ({"question": "q", "sql": "  "}, "its right answer is not a query"),
        (
            {"question": "q", "sql": "SELECT 1 FROM __sale"},
            "it reads '__sale', and the model has no table 'sale': did you mean 'sales'?",
        ),
        (
            {"question": "q", "sql": "DELETE FROM sales"},
            "its `sql` is not one query in Snowflake's SQL: keep one SELECT",
        ),
        (
            {"question": "q", "sql": "SELECT 1; SELECT 2"},
            "its `sql` is not one query in Snowflake's SQL: keep one SELECT",
        ),
    ],
)
def test_verified_query_that_cannot_be_read_is_skipped_with_its_reason(folder, capsys, entry, reason):
    queries = [{"name": "bad", **entry}, {"name": "good", "question": "q", "sql": "SELECT 1"}]

    cases, skipped = imported(capsys, "cortex", model(f"  {json.dumps(queries)}\n"))

    assert cases.keys() == {"good"}
    assert skipped == {"bad": reason}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"name": "t"}, "the model's table 't' has no `base_table: {table: …}`: add it"),
        (
            {"name": "t", "base_table": {"database": "d"}},
            "the model's table 't' has no `base_table: {table: …}`: add it",
        ),
        (
            {"name": "t", "base_table": {"table": "x"}},
            "the model's table 't' has no columns: add `dimensions` or `facts`",
        ),
        (
            {"name": "t", "base_table": {"table": "x"}, "facts": [{"name": "a", "expr": "((("}]},
            f"the model's column 't.a' has an expression that cannot be read: (((: {CORRECT}",
        ),
        (
            {"name": "t", "base_table": {"table": "x"}, "facts": [{"name": "a", "expr": "b, c FROM d"}]},
            f"the model's column 't.a' has an expression that cannot be read: b, c FROM d: {CORRECT}",
        ),
        (
            {"name": "t", "base_table": {"table": ["x"]}},
            "the model's table 't' has no text as `base_table.table`: write a name",
        ),
    ],
)
def test_table_without_what_a_query_needs_is_told(folder, capsys, table, reason):
    queries = [
        {"name": "bad", "question": "q", "sql": "SELECT 1 FROM __t"},
        {"name": "good", "question": "q", "sql": "SELECT 1"},
    ]
    text = json.dumps({"name": "m", "tables": [table], "verified_queries": queries})

    assert imported(capsys, "cortex", model(text, start=""))[1] == {"bad": reason}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "tables: []\n",
            "shop.yaml: is not a semantic model with verified queries: expected a list `verified_queries`",
        ),
        ("[1]\n", "shop.yaml: is not a semantic model with verified queries: expected a list `tables`"),
        ("a: [\n", "shop.yaml:1:5: "),
    ],
)
def test_file_that_is_no_semantic_model_is_refused(folder, capsys, text, problem):
    assert problem in refusal(capsys, "cortex", model(text, start=""))


# Genie


NO_ANSWER = "it has no answer of the format SQL, which says what is right"


def benchmark(**fields):
    answer = [{"format": "SQL", "content": ["SELECT d_state\n", "FROM sd_data\n", "WHERE amt > 9"]}]
    return {"id": "b1", "question": ["Which states", "sold more than 9?"], "answer": answer, **fields}


def space(*benchmarks):
    return {"version": 2, "data_sources": {"tables": []}, "benchmarks": {"questions": list(benchmarks)}}


def write(value):
    Path("space.json").write_text(json.dumps(value), encoding="utf-8")
    return "space.json"


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda value: value,
        lambda value: {"title": "Shop", "serialized_space": json.dumps(value)},
        lambda value: {"title": "Shop", "serialized_space": value},
    ],
    ids=["space", "answer of the API", "read answer"],
)
def test_benchmarks_become_cases_that_run(folder, capsys, wrapped):
    cases, skipped = imported(capsys, "genie", write(wrapped(space(benchmark()))))

    assert skipped == {}
    assert cases["b1"].question == "Which states\nsold more than 9?"
    assert answers(cases["b1"].golds[0].query) == [("CA",), ("CA",)]


def test_lines_of_an_answer_without_line_breaks_stay_apart(folder, capsys):
    answer = [{"format": "SQL", "content": ["SELECT d_state", "FROM sd_data -- all", "WHERE amt > 10"]}]

    cases, _ = imported(capsys, "genie", write(space(benchmark(answer=answer))))

    assert answers(cases["b1"].golds[0].query) == [("CA",)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": []}, "it has no text as `question`: add one"),
        ({"answer": None}, f"{NO_ANSWER}: it has none"),
        ({"answer": [{"format": "TEXT", "content": ["x"]}]}, f"{NO_ANSWER}: it has TEXT"),
        ({"answer": [{"format": "SQL", "content": []}]}, "its right answer is not a query"),
        (
            {"answer": [{"format": "SQL", "content": ["SELECT 1\n", "FROM ${catalog}.shop.sd_data"]}]},
            "its answer has the variable `${catalog}`, which nothing fills in: write its value",
        ),
        (
            {"answer": [{"format": "SQL", "content": ["SELECT 1"]}] * 2},
            "it has several answers in SQL: keep the right one",
        ),
    ],
)  # fmt: skip
def test_benchmark_without_one_query_is_skipped_with_its_reason(folder, capsys, fields, reason):
    cases, skipped = imported(capsys, "genie", write(space(benchmark(**fields), benchmark(id="good"))))

    assert cases.keys() == {"good"}
    assert skipped == {"b1": reason}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"title": "Shop"}, "as the API gives it with include_serialized_space=true"),
        ([], "has no benchmarks of a Genie space"),
        ({"serialized_space": "{"}, "its `serialized_space` is not JSON"),
        (space(), "has no case: name a file with questions"),
    ],
)
def test_file_without_benchmarks_is_refused(folder, capsys, value, problem):
    message = refusal(capsys, "genie", write(value))

    assert message.startswith("space.json: ")
    assert problem in message


@pytest.mark.parametrize("name", ["cortex", "genie"])
def test_queries_of_warehouses_need_a_source(folder, capsys, name):
    queries = [{"name": "q", "question": "q", "sql": "SELECT 1"}]
    source = model(f"  {json.dumps(queries)}\n") if name == "cortex" else write(space(benchmark()))

    with pytest.raises(SystemExit):
        main(["import", name, source, "-o", "out"])

    assert "give their source as --source" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        "snowflake://suites:hunter2/x@account/shop?role=reader",
        "databricks://token:${USER}hunter2@host?http_path=p",
        "databricks://token:${TOKEN:-hunter2}@host",
        "postgresql://host/shop?password=hunter2",
        "https://hunter2@host/sql",
    ],
)
def test_password_of_a_source_is_neither_written_nor_shown(folder, capsys, url):
    with pytest.raises(SystemExit) as stop:
        main(["import", "genie", write(space(benchmark())), "--source", url, "-o", "out"])

    message = capsys.readouterr().err
    assert stop.value.code == 2
    assert "its password would be in the settings of the suites: write a variable in its place" in message
    assert "hunter2" not in message
    assert not Path("out").exists()


def test_variables_in_a_source_are_written_as_they_are(folder, capsys):
    url = "snowflake://suites:${TOKEN}@account/shop?role=reader&passcode=${CODE}"

    assert main(["import", "genie", write(space(benchmark())), "--source", url, "-o", "out"]) == 0
    assert f"source: {url}\n" in Path("out/queryeval.yaml").read_text(encoding="utf-8")
