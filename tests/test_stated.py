"""Golds and predictions as suites state them: queries, tables and files; more examples are in `reading/`."""

from pathlib import Path

import pytest
from suites import BLOCK, HEAD, case, enter, problem, problems, write

from pytest_queryeval.core.model import QueryOrAnswer

CUT = f"YAML ends this query at ` #`: {BLOCK}, with comments as in the query's language"
SWALLOWED = f"YAML joins the lines of this query, so a comment swallows the next line: {BLOCK}"
COMPLETE = "write one cell for each column, `null` for no value"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["gold: SELECT 1", "gold_any: [a]"], "gold and gold_any: a case has only one of them: keep one"),
        (["predicted: x", "predicted_file: a"], "predicted and predicted_file: a case has only one of them: keep one"),
        *(([f"gold: {nothing}"], "`gold` is empty: ") for nothing in ("", "null", "~", "|", "''", "'  '")),
        *(([f"gold_any:\n  - x\n  - {nothing}"], "`gold` is empty: ") for nothing in ("", "'  '")),
        (["gold_any: []"], "gold_any is empty"),
        (["gold_any: SELECT 1"], "gold_any: expected a list, found 'SELECT 1': write [SELECT 1]"),
        (["gold_any:\n  - {file: missing.sql}"], "missing.sql: no such file: correct the path, which leads to /"),
        (["gold_any:\n  - {file: a.sql, columns: [a]}"], "unknown key 'file'"),
        (["question: Where is customer #3?"], "a `#` ends this text"),
        (["gold_table: {columns: [a]}"], "a table needs `columns` and `rows`: add `rows: [[VALUE, …], …]`"),
        (["gold_table: {column: [a], rows: []}"], "unknown key 'column': did you mean 'columns'?"),
        (["gold_table: [[1]]"], "gold_table: expected a mapping, found a list: write {columns: [NAME, …], rows: "),
        (["gold_table: {columns: [[a]], rows: []}"], "item of columns: expected text, found a list: write a"),
        (["gold_table: {columns: [a], rows: [5]}"], "item of rows: expected a list, found '5': write [5]"),
        (["gold_table: {columns: [a, b], rows: [[1]]}"], f"row 1 has 1 cell, the table 2 columns: {COMPLETE}"),
    ],
)
def test_what_states_no_answer_or_two_is_refused(lines, said):
    assert problem(*lines).startswith(said)


def test_a_case_needs_a_gold():
    assert problems(HEAD + "  - {id: a, predicted: y}\n") == [
        "s.queryeval.yaml:5: no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`, or `expect`"
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        *((query, CUT) for query in ("SELECT 1 # all", "SELECT 1 #all", "SELECT 1\n  + 1 # all")),
        ("SELECT 1\n  -- all\n  FROM t", SWALLOWED),
        ("SELECT '--' -- it's\n  FROM t -- it's", SWALLOWED),
        (">\n  SELECT 1 # all\n  FROM t", SWALLOWED),
        (">-\n  # all\n  SELECT 1", SWALLOWED),
        ('"SELECT 1 -- all\n  FROM t"', SWALLOWED),
        ("'SELECT 1 # all\n  FROM t'", SWALLOWED),
    ],
)
def test_a_query_that_yaml_would_cut_or_join_behind_a_comment_is_refused(written, said):
    assert problem(f"gold: {written}") == said
    assert problem(f"predicted: {written}") == said
    assert problem("gold_any:\n  - x\n  - " + written.replace("\n", "\n  ")) == said


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("SELECT 1\n  FROM t", "SELECT 1 FROM t"),
        ("SELECT a#b", "SELECT a#b"),
        ("SELECT 1\n  FROM t -- all", "SELECT 1 FROM t -- all"),
        ("SELECT '--'\n  FROM t", "SELECT '--' FROM t"),
        (">\n  SELECT 1 -- all", "SELECT 1 -- all\n"),
        (">\n  SELECT 1 # all\n\n  + 1", "SELECT 1 # all\n+ 1\n"),
        ("|\n  SELECT 1 -- all # x\n  FROM t", "SELECT 1 -- all # x\nFROM t\n"),
        ("'SELECT 1 -- all # x'  # a comment", "SELECT 1 -- all # x"),
    ],
)
def test_other_queries_are_read_as_yaml_says(written, query):
    assert case(f"gold: {written}", f"predicted: {written}").golds == (QueryOrAnswer(query=query),)


def test_questions_may_hold_what_queries_may_not_and_an_answer_may_be_empty():
    assert case("question: a -- b # c").question == "a -- b"
    assert case('predicted: ""').predicted == QueryOrAnswer(query="")


def test_several_right_answers_keep_their_order_and_may_be_tables_and_files():
    write("\ufeffSELECT 3 -- all\n", "a.sql")
    write("a\n1\n", "b.csv")

    golds = case(
        "gold_any:\n  - |\n    SELECT 2\n  - {file: a.sql}\n  - {columns: [a], rows: [[2]]}\n  - {file: b.csv}"
    ).golds

    assert [gold.query for gold in golds] == ["SELECT 2\n", "SELECT 3 -- all\n", None, None]
    assert [gold.answer.rows for gold in golds[2:]] == [[(2,)], [(1,)]]


ROWS = [(1, "x"), (1.5, None), (True, "NO"), (None, "a\nb"), ("007", 0)]
TEXT = '012,b\n1,x\n1.5,\n\ntrue,NO\nnull,"a\nb"\n007,0\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TEXT),
        ("a.tsv", TEXT.replace(",", "\t")),
        (
            "a.json",
            '{"columns": ["012", "b"], "rows": [[1, "x"], [1.5, null], [true, "NO"], [null, "a\\nb"], ["007", 0]]}',
        ),
    ],
)
def test_tables_have_columns_and_cells_by_the_rules_of_json(name, content):
    write(content, name)
    stated = case(
        "gold_table: {columns: [012, b], rows: [[1, x], [1.50, null], [true, NO], [null, 'a\n\n  b'], ['007', 0]]}"
    )

    for gold in (*case(f"gold_file: {name}").golds, *stated.golds):
        assert (gold.answer.columns, gold.answer.rows) == (("012", "b"), ROWS)


def test_cells_may_be_lists_and_mappings_and_the_name_of_an_only_column_may_have_a_semicolon_in_quotes():
    write('"a;b"\n1\n', "a.csv")

    assert case("gold_table: {columns: [a, b], rows: [[[1, [x]], {k: 1.5}]]}").golds[0].answer.rows == [
        ((1, ("x",)), {"k": 1.5})
    ]
    assert case("predicted_file: a.csv").predicted.answer.columns == ("a;b",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.sql", "  \n", "a.sql: is empty"),
        ("a.csv", "", "a.csv: has no header row: write the names of the columns into the first row"),
        ("a.csv", "a,b\n1,2\n3\n", "a.csv:3: 1 cell in a table of 2 columns: quote cells that contain a delimiter or"),
        (
            "a.csv",
            "id;name\n1;x\n2;y\n",
            "a.csv:1: the header is one cell, 'id;name': separate the cells by commas, or",
        ),
        ("a.csv", 'a,b\n1,"2"3\n', "a.csv:2: ',' expected after '\"'"),
        ("a.json", "{", "a.json:1:2: not JSON: it ends too early: add `}`"),
        ("a.json", '{"columns": ["a"], "rows": [[1, 2], []]}', "a.json: row 1 has 2 cells, the table 1 column: "),
        ("a.srj", "{}", "a.srj: is not a SPARQL JSON result: it lacks 'head'"),
        ("a.txt", "", "unknown suffix of 'a.txt': choose from .sql, .rq, .sparql, .csv, .tsv, .json, .srj, .srx"),
    ],
)
def test_files_that_cannot_be_read_are_reported_at_the_key(name, content, message):
    write(content, name)

    assert problem(f"gold_file: {name}").startswith(message)


def test_a_file_that_is_not_there_is_reported_with_where_its_path_leads():
    place = Path.cwd() / "none.sql"

    assert problem("gold_file: none.sql") == f"none.sql: no such file: correct the path, which leads to {place}"
