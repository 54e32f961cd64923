from pathlib import Path

import pytest
from suites import BLOCK, HEAD, case, enter, problem, problems, write

from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Table

IN_QUOTES = "write it in quotes if it is the name of the only column"
COMPLETE = "write one cell for each column, `null` where there is no value"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def test_exactly_one_form_of_gold_is_needed():
    assert problem("gold: SELECT 1", "gold_any: [a]") == "gold and gold_any: a case has only one of them: keep one"
    assert problems(HEAD + "  - {id: a, predicted: y}\n") == [
        "s.queryeval.yaml:5: no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`"
    ]


def test_at_most_one_form_of_predicted_is_allowed():
    assert problem("predicted: x", "predicted_file: a.sql") == (
        "predicted and predicted_file: a case has only one of them: keep one"
    )


@pytest.mark.parametrize("written", ["", "null", "~", "NULL", "|", "''", "'  '"])
def test_gold_that_says_nothing_is_refused(written):
    assert problem(f"gold: {written}").startswith("gold is empty: ")
    assert problem(f"gold_any:\n  - x\n  - {written}").startswith("gold is empty: ")


@pytest.mark.parametrize("written", ["", "null", "~"])
def test_predicted_null_is_refused(written):
    assert problem(f"predicted: {written}") == ("'predicted' is null: leave it out, or write \"\" for an empty answer")


def test_an_empty_answer_can_be_stated():
    assert case('predicted: ""').predicted == QueryOrAnswer(query="")


@pytest.mark.parametrize(
    "written", ["SELECT 1 # all", "SELECT 1 #all", "SELECT 1 -- one # two", "SELECT 1\n  + 1 # all"]
)
def test_queries_that_yaml_would_cut_are_refused(written):
    expected = f"YAML ends this query at ` #`: {BLOCK}, with comments as in the query's language"

    assert problem(f"gold: {written}") == expected
    assert problem(f"predicted: {written}") == expected


@pytest.mark.parametrize(
    "written",
    [
        "SELECT 1\n  -- all\n  FROM t",
        "SELECT 1 -- all\n  FROM t -- all",
        "SELECT '--' -- it's\n  FROM t -- it's",
        ">\n  SELECT 1 -- all\n  FROM t",
        ">\n  SELECT 1 # all\n  FROM t",
        ">-\n  # all\n  SELECT 1",
        '"SELECT 1 -- all\n  FROM t"',
        "'SELECT 1 # all\n  FROM t'",
    ],
)
def test_queries_whose_comments_would_swallow_the_next_line_are_refused(written):
    expected = f"YAML joins the lines of this query, so a comment swallows the next line: {BLOCK}"

    assert problem(f"gold: {written}") == expected
    assert problem(f"predicted: {written}") == expected
    assert problem("gold_any:\n  - x\n  - " + written.replace("\n", "\n  ")) == expected


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("SELECT 1\n  FROM t", "SELECT 1 FROM t"),
        ("SELECT a#b", "SELECT a#b"),
        ("SELECT 1 -- all", "SELECT 1 -- all"),
        ("SELECT 1\n  FROM t -- all", "SELECT 1 FROM t -- all"),
        ("SELECT '--'\n  FROM t", "SELECT '--' FROM t"),
        (">\n  SELECT 1 -- all", "SELECT 1 -- all\n"),
        (">\n  SELECT 1 # all\n\n  + 1", "SELECT 1 # all\n+ 1\n"),
        ('"SELECT 1 -- all"', "SELECT 1 -- all"),
        ("|\n  SELECT 1 -- all # x\n  FROM t", "SELECT 1 -- all # x\nFROM t\n"),
        ("|- # a comment\n  SELECT 1", "SELECT 1"),
        (">\n  SELECT 1\n  FROM t", "SELECT 1 FROM t\n"),
        ("'SELECT 1 -- all # x'  # a comment", "SELECT 1 -- all # x"),
        ('"SELECT 1\n  FROM t"', "SELECT 1 FROM t"),
    ],
)
def test_other_queries_are_read_as_yaml_says(written, query):
    assert case(f"gold: {written}", f"predicted: {written}").golds == (QueryOrAnswer(query=query),)


def test_a_query_with_a_colon_on_a_line_of_its_own_is_seen():
    assert BLOCK in problem("gold:\n  SELECT a: b")
    assert BLOCK in problem("gold_any:\n  - SELECT a: b")


def test_questions_may_hold_what_queries_may_not():
    assert case("question: a -- b # c").question == "a -- b"


def test_a_question_that_yaml_clipped_is_refused():
    assert problem("question: Where is customer #3?").startswith("a `#` ends this text")
    assert case("question: 'Where is customer #3?'").question == "Where is customer #3?"


def test_several_right_answers_keep_their_order():
    loaded = case("gold_any:\n  - SELECT 1\n  - |\n    SELECT 2\n  - {columns: [a], rows: [[1]]}")

    assert [gold.query for gold in loaded.golds] == ["SELECT 1", "SELECT 2\n", None]
    assert loaded.golds[2].answer.rows == [(1,)]
    assert problem("gold_any: []") == "gold_any is empty"


def test_several_right_answers_can_be_files():
    write("SELECT 3", "a.sql")
    write("a\n1\n", "b.csv")

    loaded = case("gold_any:\n  - SELECT 1\n  - {file: a.sql}\n  - {file: b.csv}")

    assert [gold.query for gold in loaded.golds] == ["SELECT 1", "SELECT 3", None]
    assert loaded.golds[2].answer.rows == [(1,)]
    assert problem("gold_any:\n  - {file: missing.sql}").startswith(
        "missing.sql: no such file: correct the path, which"
    )
    assert problem("gold_any:\n  - {file: a.sql, columns: [a]}").startswith("unknown key 'file'")


def test_a_list_of_right_answers_is_not_a_text():
    assert problem("gold_any: SELECT 1") == "gold_any: expected a list, found 'SELECT 1': write [SELECT 1]"


def test_tables_follow_the_rules_of_json():
    loaded = case("gold_table: {columns: [012, b], rows: [[1, x], [null, '1'], [1.50, ''], [true, NO]]}")

    table = loaded.golds[0].answer
    assert isinstance(table, Table)
    assert table.columns == ("012", "b")
    assert table.rows == [(1, "x"), (None, "1"), (1.5, ""), (True, "NO")]


def test_ragged_rows_are_reported_with_their_lines():
    lines = problems(
        HEAD + "  - id: a\n    predicted: x\n    gold_table:\n      columns: [a, b]\n      rows:\n"
        "        - [1, 2]\n        - [1]\n        - [1, 2, 3]\n        - 5\n"
    )

    assert lines == [
        f"s.queryeval.yaml:11: row 2 has 1 cell, the table 2 columns: {COMPLETE}",
        f"s.queryeval.yaml:12: row 3 has 3 cells, the table 2 columns: {COMPLETE}",
        "s.queryeval.yaml:13: item of rows: expected a list, found '5': write [5]",
    ]


def test_tables_need_columns_and_rows_and_nothing_else():
    assert problem("gold_table: {columns: [a]}") == "a table needs `columns` and `rows`: add `rows: [[VALUE, …], …]`"
    assert problem("gold_table: {column: [a], rows: []}") == "unknown key 'column': did you mean 'columns'?"
    assert (
        problem("gold_table: [[1]]")
        == "gold_table: expected a mapping, found a list: write {columns: [NAME, …], rows: [[VALUE, …], …]}"
    )
    assert problem("gold_table: {columns: [[a]], rows: []}") == "item of columns: expected text, found a list: write a"


def test_cells_may_be_lists_and_mappings():
    table = case("gold_table: {columns: [a, b], rows: [[[1, [x]], {k: 1.5}]]}").golds[0].answer

    assert table.rows == [((1, ("x",)), {"k": 1.5})]


def test_query_files_are_read_whole():
    write("\ufeffSELECT 1 -- all\n", "sql/a.sql")

    assert case("gold_file: sql/a.sql").golds == (QueryOrAnswer(query="SELECT 1 -- all\n"),)


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
def test_table_files_have_a_header_and_cells_by_the_rules_of_json(name, separator):
    write('012,b\n1,x\n1.5,\n\ntrue,NO\nnull,"a\nb"\n007,0\n'.replace(",", separator), name)

    table = case(f"gold_file: {name}").golds[0].answer

    assert table.columns == ("012", "b")
    assert table.rows == [(1, "x"), (1.5, None), (True, "NO"), (None, "a\nb"), ("007", 0)]


def test_the_name_of_an_only_column_may_have_a_semicolon_in_quotes():
    write('"a;b"\n1\n', "a.csv")

    assert case("predicted_file: a.csv").predicted.answer.columns == ("a;b",)


def test_json_files_hold_columns_and_rows():
    write('{"columns": ["a"],\n "rows": [[1], ["1"], [null]]}', "a.json")

    assert case("predicted_file: a.json").predicted.answer.rows == [(1,), ("1",), (None,)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.sql", "  \n", "a.sql: is empty"),
        ("a.csv", "", "a.csv: has no header row: write the names of the columns into the first row"),
        (
            "a.csv",
            "a,b\n1,2\n3\n",
            "a.csv:3: 1 cell in a table of 2 columns: quote cells that contain a delimiter or a line end",
        ),
        (
            "a.csv",
            "id;name\n1;x\n2;y\n",
            f"a.csv:1: the header is one cell, 'id;name': separate the cells by commas, or {IN_QUOTES}",
        ),
        ("a.csv", 'a,b\n1,"2"3\n', "a.csv:2: ',' expected after '\"'"),
        ("a.json", "{", "a.json:1:2: not JSON: it ends too early: a value, a `]` or a `}` is missing"),
        (
            "a.json",
            '{"columns": ["a"], "rows": [[1, 2], []]}',
            f"a.json: row 1 has 2 cells, the table 1 column: {COMPLETE}",
        ),
        ("a.srj", "{}", "a.srj: is not a SPARQL JSON result: it lacks 'head'"),
        ("a.txt", "", "unknown suffix of 'a.txt': choose from .sql, .rq, .csv, .tsv, .json, .srj, .srx"),
    ],
)
def test_files_that_cannot_be_read_are_reported_at_the_key(name, content, message):
    if content is not None:
        write(content, name)

    assert problem(f"gold_file: {name}") == message


def test_a_file_that_is_not_there_is_reported_with_where_its_path_leads():
    place = Path.cwd() / "none.sql"

    assert problem("gold_file: none.sql") == f"none.sql: no such file: correct the path, which leads to {place}"
