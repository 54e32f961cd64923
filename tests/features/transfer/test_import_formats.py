"""Each format of `queryeval import`, on small files of its own form."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def database(path, rows=(1, 2)):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, 'x')", [(row,) for row in rows])
        connection.commit()


def write_json(path, value):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def write_lines(path, *records):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return str(path)


def imported(capsys, *arguments):
    """Return the cases by id, and what was skipped."""
    status = main(["import", *arguments, "-o", "out", "--json"])
    output = json.loads(capsys.readouterr().out)
    assert status == (1 if output["skipped"] else 0)
    cases = load_cases("out", root=Path("out"))
    assert output["cases"] == len(cases)
    return {case.id: case for case in cases}, {entry["id"]: entry["reason"] for entry in output["skipped"]}


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["import", *arguments, "-o", "out"])
    assert stop.value.code == 2
    return capsys.readouterr().err


def scores(cases, metric):
    return {case["id"]: case["scores"][metric] for case in evaluate(cases.values())["cases"]}


def predictions():
    return [json.loads(line) for line in Path("out/predictions.jsonl").read_text().splitlines()]


# Spider


SCHEMA = {
    "db_id": "shop",
    "table_names_original": ["t"],
    "column_names_original": [[-1, "*"], [0, "a"], [0, "b"]],
    "column_types": ["text", "number", "text"],
    "primary_keys": [],
    "foreign_keys": [],
}


@pytest.fixture
def spider(folder):
    database("spider/database/shop/shop.sqlite")
    write_json("spider/tables.json", [SCHEMA])
    write_json(
        "spider/dev.json",
        [
            {"db_id": "shop", "question": "How many?", "query": "SELECT count(*) FROM t", "query_toks": ["SELECT"]},
            {"db_id": "shop", "question": "Which?", "query": "SELECT a FROM t"},
            {"db_id": "../shop", "question": "Elsewhere?", "query": "SELECT 1"},
        ],
    )
    return "spider/dev.json"


def test_spider_keeps_positions_databases_and_schemas(spider, capsys):
    cases, skipped = imported(capsys, "spider", spider)

    assert {id_: (case.question, case.golds[0].query, case.settings.source.name) for id_, case in cases.items()} == {
        "0": ("How many?", "SELECT count(*) FROM t", "shop"),
        "1": ("Which?", "SELECT a FROM t", "shop"),
    }
    assert cases["0"].db_schema is not None
    assert cases["0"].settings.metrics == ("execution_accuracy", "execution_accuracy_spider", "exact_set_match_spider")
    assert skipped == {"2": "tables.json has no schema of the database '../shop'"}


def test_wrong_answers_of_spider_do_not_fail_a_run_but_for_its_gate(spider, capsys):
    assert main(["import", "spider", spider, "-o", "out"]) == 1

    (line,) = [line for line in capsys.readouterr().out.splitlines() if "gate" in line]
    cases = load_cases("out", root=Path("out"))
    assert {case.settings.on_miss for case in cases} == {"xfail"}
    assert yaml.safe_load(Path("out/queryeval.yaml").read_text())["gates"] == [
        {"metric": "execution_accuracy", "min": 0.8}
    ]
    assert line.startswith("a run fails by the gate in out/queryeval.yaml: ")
    assert "on_miss: xfail" in line


def test_spider_runs_with_its_predictions(spider, capsys):
    Path("pred.txt").write_text("SELECT count(a) FROM t\tshop\n\nSELECT 1\n")

    cases, _ = imported(capsys, "spider", spider, "--predictions", "pred.txt")

    assert predictions() == [{"id": "0", "predicted": "SELECT count(a) FROM t"}, {"id": "1", "predicted": ""}]
    outcomes = scores(cases, "execution_accuracy")
    assert outcomes == {"0": 1.0, "1": 0.0}


def test_a_folder_is_the_release_of_spider(spider, capsys):
    assert imported(capsys, "spider", "spider")[0].keys() == {"0", "1"}


def test_golds_of_spider_may_be_in_a_file_of_their_own(spider, capsys):
    write_json("spider/test.json", [{"db_id": "shop", "question": "How many?"}])
    Path("spider/test_gold.sql").write_text("SELECT count(*) FROM t\tshop\n")

    cases, _ = imported(capsys, "spider", "spider/test.json")

    assert cases["0"].golds[0].query == "SELECT count(*) FROM t"
    assert cases["0"].question == "How many?"


def test_a_file_of_golds_is_a_source_without_questions(spider, capsys):
    Path("spider/gold.sql").write_text("SELECT a FROM t\tshop\nSELECT '\t' FROM t\tshop\n")

    cases, _ = imported(capsys, "spider", "spider/gold.sql")

    assert [case.golds[0].query for case in cases.values()] == ["SELECT a FROM t", "SELECT '\t' FROM t"]


def test_other_numbers_of_predictions_are_refused(spider, capsys):
    Path("pred.txt").write_text("SELECT 1\n")

    message = refusal(capsys, "spider", spider, "--predictions", "pred.txt")

    each = "there has to be one for each, an empty line where there is none"
    assert message == f"pred.txt: 1 prediction for 3 cases: {each}\n"


def test_an_empty_line_is_a_prediction_that_is_left_out(spider, capsys):
    Path("pred.txt").write_text("SELECT 1\n\n\n")

    imported(capsys, "spider", spider, "--predictions", "pred.txt")

    assert [entry["predicted"] for entry in predictions()] == ["SELECT 1", ""]


@pytest.mark.parametrize(
    "name", ["..", "../shop", "/etc/passwd", "a\\b", "x\0", "${HOME}", "s" * 300, "\udcff", "", "none", 7, None]
)
def test_a_database_outside_of_the_folder_is_skipped(folder, capsys, name):
    database("databases/shop.sqlite")
    database("shop.sqlite")
    database("databases/\udcff.sqlite")
    write_json("q.json", [{"db_id": name, "query": "SELECT 1"}, {"db_id": "shop", "query": "SELECT 1"}])

    cases, skipped = imported(capsys, "spider", "q.json")

    assert cases.keys() == {"1"}
    assert "not a name of a database" in skipped["0"] or "there is no database" in skipped["0"]


def test_a_path_that_is_not_utf_8_is_refused(folder, capsys):
    database("\udcff/shop.sqlite")
    write_json("q.json", [{"db_id": "shop", "question": "q", "query": "SELECT 1", "gold": "SELECT 1"}])

    for arguments in (
        ["spider", "q.json", "--databases", "\udcff"],
        ["jsonl", "q.json", "--source", "\udcff/shop.sqlite"],
    ):
        assert "is not a name in UTF-8" in refusal(capsys, *arguments)
    assert not Path("out").exists() or not list(Path("out").iterdir())


def test_one_source_may_serve_all(spider, capsys):
    cases, _ = imported(capsys, "spider", spider, "--source", "spider/database/shop/shop.sqlite")

    assert cases.keys() == {"0", "1"}
    assert cases["0"].db_schema is not None
    assert {case.settings.source.name for case in cases.values()} == {"../spider/database/shop/shop.sqlite"}


# BIRD


@pytest.fixture
def bird(folder):
    database("dev_databases/shop/shop.sqlite")
    first = {
        "question_id": 1471,
        "db_id": "shop",
        "question": "How many?",
        "evidence": "t is all",
        "difficulty": "simple",
    }
    second = {"question_id": 1472, "db_id": "shop", "question": "Which?", "evidence": "", "difficulty": "very hard"}
    return write_json(
        "mini_dev.json", [{**first, "SQL": "SELECT count(*) FROM t"}, {**second, "SQL": "SELECT a\nFROM t"}]
    )


def test_bird_keeps_ids_evidence_and_difficulty(bird, capsys):
    cases, skipped = imported(capsys, "bird", bird)

    assert skipped == {}
    assert (cases["1471"].evidence, cases["1471"].difficulty) == ("t is all", "simple")
    assert (cases["1472"].evidence, cases["1472"].difficulty) == ("", "very-hard")
    assert cases["1472"].metadata == {"difficulty": "very hard"}
    assert cases["1472"].golds[0].query == "SELECT a\nFROM t"
    assert cases["1471"].settings.source.name == "shop"


def test_predictions_of_bird_stand_under_positions(bird, capsys):
    marker = "\t----- bird -----\tshop"
    write_json("pred.json", {"0": f"SELECT 2{marker}", "1": None})

    cases, _ = imported(capsys, "bird", bird, "--predictions", "pred.json")

    assert predictions() == [{"id": "1471", "predicted": "SELECT 2"}, {"id": "1472", "predicted": ""}]
    outcomes = scores(cases, "execution_accuracy_bird")
    assert outcomes == {"1471": 1.0, "1472": 0.0}


@pytest.mark.parametrize("name", ["pred.json", "pred.jsonl", "pred.sql"])
def test_predictions_of_bird_for_another_database_are_named(bird, capsys, name):
    queries = [f"SELECT 2\t----- bird -----\t{database}" for database in ("trips", "Shop")]
    if name == "pred.json":
        write_json(name, dict(zip(("0", "1"), queries, strict=True)))
    elif name == "pred.jsonl":
        write_lines(name, *({"id": f"147{n}", "predicted": query} for n, query in enumerate(queries, 1)))
    else:
        Path(name).write_text("\n".join(queries), encoding="utf-8")

    main(["import", "bird", str(bird), "-o", "out", "--predictions", name])

    assert capsys.readouterr().out.splitlines()[2] == (
        f"warning: {name}: 1 prediction names another database than the cases: "
        "'trips' instead of 'shop' for '1471': check that the file is for these cases"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"1471": "SELECT 1", "1472": "SELECT 1"}, "'1471' is not a position: predictions belong under 0 to 1"),
        ({"0": "SELECT 1"}, '1 prediction for 2 cases: there has to be one for each, "" or null where there is none'),
        (["SELECT 1"], "expected predictions by position"),
    ],
)
def test_predictions_of_bird_under_anything_else_are_refused(bird, capsys, content, message):
    write_json("pred.json", content)

    assert message in refusal(capsys, "bird", bird, "--predictions", "pred.json")


def test_mini_dev_as_json_lines_and_records_without_gold(folder, capsys):
    database("databases/shop.sqlite")
    source = write_lines("m.jsonl", {"question_id": 5, "db_id": "shop", "SQL": "SELECT 1"}, {"db_id": "shop"}, [1])

    cases, skipped = imported(capsys, "bird", source)

    assert cases.keys() == {"5"}
    assert skipped == {
        "1": "it has no 'SQL' (it has db_id): is it of another format?",
        "line 3": 'expected an object, such as {"question": …}',
    }


# Spider 2


@pytest.fixture
def spider2(folder):
    database("lite/resource/databases/shop.sqlite")
    Path("lite/resource/documents").mkdir()
    Path("lite/resource/documents/note.md").write_text("t holds all")
    Path("secret.md").write_text("a secret")
    Path("lite/resource/documents/link.md").symlink_to("../../../secret.md")
    gold = Path("lite/evaluation_suite/gold/exec_result")
    gold.mkdir(parents=True)
    files = {
        "one.csv": "a,b\n1,x\n2,x\n",
        "one_a.csv": "a\n7\n",
        "many_a.csv": "c,a\n9,1\n9,2\n",
        "many_b.csv": "a,c\n3,9\n",
        "flat_a.csv": "a,c\n1,9\n2,9\n",
        "flat_b.csv": "a,c\n5,9\n",
        "range_a.csv": "a\n1\n",
        "flag_a.csv": "a,b\n1,2\n",
        "broken_a.csv": "a,b\n1\n",
    }
    for name, text in files.items():
        (gold / name).write_text(text)
    rules = [
        ("one", []),
        ("many", [[1], [0]]),
        ("flat", [0]),
        ("range", [3]),
        ("flag", [True]),
        ("broken", []),
        ("far", []),
        ("lost", []),
    ]
    write_lines(
        "lite/evaluation_suite/gold/lite_eval.jsonl",
        *({"instance_id": id_, "condition_cols": columns, "ignore_order": True} for id_, columns in rules),
    )
    ids = ["one", "many", "flat", "range", "flag", "broken", "lost", "norule"]
    return write_lines(
        "lite/lite.jsonl",
        *({"instance_id": id_, "db": "shop", "question": "?", "external_knowledge": None} for id_ in ids),
        {"instance_id": "../../far", "db": "shop", "question": "?"},
        {"instance_id": "flat", "db": "GA4", "question": "?"},
        {"instance_id": "flat", "db_id": "shop", "instruction": "With?", "external_knowledge": "note.md"},
        {"instance_id": "flat", "db_id": "shop", "instruction": "With?", "external_knowledge": "../note.md"},
        {"instance_id": "one", "db_id": "shop", "instruction": "With?", "external_knowledge": "link.md"},
    )


def test_spider2_keeps_all_results_and_the_columns_that_count(spider2, capsys):
    cases, skipped = imported(capsys, "spider2", spider2)

    assert cases.keys() == {"one", "many", "flat", "flat-2"}
    assert [gold.answer.columns for gold in cases["one"].golds] == [("a", "b")]
    assert [gold.answer.rows for gold in cases["many"].golds] == [[(1,), (2,)], [(3,)]]
    assert [len(gold.answer.columns) for gold in cases["flat"].golds] == [2, 2]
    assert cases["flat"].settings.policy.gold_columns == (0,)
    policy = cases["many"].settings.policy
    assert (policy.gold_columns, policy.extra_columns, policy.row_order, policy.abs) == ((), "allow", "ignore", 0.01)
    assert (cases["flat-2"].question, cases["flat-2"].evidence) == ("With?", "t holds all")
    assert skipped["one"] == "there is no document 'link.md' in resource/documents"
    assert skipped["range"] == "a result has no column 3: it has 1"
    assert skipped["flag"] == "a result has no column True: it has 2"
    assert "1 cell in a table of 2 columns" in skipped["broken"]
    assert skipped["lost"] == "it has no published result"
    assert skipped["norule"] == skipped["../../far"] == "it has no published rules of comparison"
    assert "no document '../note.md'" in skipped["flat"] or "--databases" in skipped["flat"]


def test_spider2_runs_queries_and_takes_stored_results(spider2, capsys):
    Path("pred").mkdir()
    Path("pred/one.csv").write_text("b,a,z\nx,2,0\nx,1.001,0\n")
    Path("pred/many.sql").write_text("SELECT b, a FROM t")
    Path("pred/flat.sql").write_text("SELECT a + 100 FROM t")
    Path("pred/other.sql").write_text("SELECT 1")

    cases, skipped = imported(capsys, "spider2", spider2, "--predictions", "pred")
    assert skipped["other.sql"] == "a prediction whose id is that of no case"
    del cases["flat-2"]

    outcomes = scores(cases, "execution_accuracy")
    assert outcomes == {"one": 1.0, "many": 1.0, "flat": 0.0}


def test_spider2_without_results_beside_it_is_refused(folder, capsys):
    source = write_lines("q.jsonl", {"instance_id": "a"})

    assert "evaluation_suite/gold with results is not beside the source" in refusal(capsys, "spider2", source)


# Tables and JSON lines


ROWS = [["Nr", "Frage", "Solution", "db", "Topic"], ["1", "How many?", "SELECT count(*) FROM t", "shop", "all"]]
MAP = [argument for pair in ("id=Nr", "question=Frage", "gold=Solution") for argument in ("--map", pair)]


def write_csv(folder):
    Path("q.csv").write_text("\n".join(",".join(row) for row in ROWS) + "\n")
    return "q.csv"


def write_xlsx(folder):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    book.save("q.xlsx")
    return "q.xlsx"


def write_parquet(folder):
    duckdb = pytest.importorskip("duckdb")
    write_csv(folder)
    duckdb.sql("COPY (FROM read_csv('q.csv', all_varchar=true)) TO 'q.parquet'")
    return "q.parquet"


@pytest.mark.parametrize("write", [write_csv, write_xlsx, write_parquet])
def test_columns_of_a_table_become_keys_by_their_names(folder, capsys, write):
    database("databases/shop.sqlite")
    arguments = ["table", write(folder), *MAP, "--map", "source=db", "--map", "metadata=Topic", "--kind", "sql"]

    cases, skipped = imported(capsys, *arguments, "--databases", "databases")

    assert skipped == {}
    assert (cases["1"].question, cases["1"].golds[0].query) == ("How many?", "SELECT count(*) FROM t")
    assert (cases["1"].settings.source.name, dict(cases["1"].metadata)) == ("shop", {"Topic": "all"})


def test_rows_without_ids_are_named_by_their_numbers(folder, capsys):
    Path("q.csv").write_text('gold,skip,tags\n\n1,,"a, b c"\n{},FALSE,\n2,later,skip\nnot json,,\n')

    cases, skipped = imported(capsys, "table", "q.csv", "--kind", "json")

    assert cases.keys() == {"row-3", "row-4", "row-5"}
    assert [case.skip for case in cases.values()] == [None, None, "later"]
    assert [case.tags for case in cases.values()] == [("a", "b-c"), (), ("-skip",)]
    assert "its right answer cannot be read: not JSON" in skipped["row-6"]


def test_columns_that_are_not_read_are_named(folder, capsys):
    Path("q.csv").write_text("Nr,Frage,gold,::error::x,Thema\n1,?,2,3,\n")
    arguments = ["import", "table", "q.csv", "--kind", "json", "--map", "question=Frage", "-o", "out", "--force"]

    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    main([*arguments, "--map", "id=Nr", "--map", "tags=Thema", "--map", "metadata=::error::x"])

    assert json.loads(out)["not_read"] == ["Nr", "::error::x", "Thema"]
    assert err.splitlines()[2] == "columns not read: Nr, ::error::x, Thema (--map KEY=COLUMN reads one)"
    assert "not read" not in capsys.readouterr().out


def test_a_record_without_a_right_answer_in_the_field_of_map_is_not_told_to_name_it(folder, capsys):
    Path("q.csv").write_text("id,question,Solution\na,Which?,1\nb,Why?,\n")

    _, skipped = imported(capsys, "table", "q.csv", "--kind", "json", "--map", "gold=Solution")

    assert skipped["b"] == "there is nothing in 'Solution', where --map expects its right answer (it has id, question)"


def test_a_column_that_is_not_there_is_named(folder, capsys):
    Path("q.csv").write_text("question,Solution\na,1\n")

    message = refusal(capsys, "table", "q.csv", "--kind", "json", "--map", "gold=Solutoin")

    assert "there is no column 'Solutoin': did you mean 'Solution'?" in message


def test_cells_of_a_table_may_be_separated_by_another_character_which_a_message_names(folder, capsys):
    Path("q.csv").write_text("id;Frage;gold\na;Wie viele?;[1, 2]\n")
    table = ["table", "q.csv", "--kind", "json"]
    remedy = "the header is one cell, 'id;Frage;gold': name what separates cells, --delimiter ';'"

    assert remedy in refusal(capsys, *table)
    assert remedy in refusal(capsys, *table, "--map", "question=Frage")
    assert "--delimiter: expected one character, such as ';'" in refusal(capsys, *table, "--delimiter", ";;")
    cases, _ = imported(capsys, *table, "--map", "question=Frage", "--delimiter", ";")
    assert cases["a"].question == "Wie viele?"


def test_a_title_may_stand_above_the_headers_of_a_table(folder, capsys):
    Path("q.csv").write_text("Questions\n\nid,question,Solution\na,Which?,1\n")
    table = ["table", "q.csv", "--kind", "json", "--map", "gold=Solution"]

    assert "row 3 looks like the header: name it by --header-row 3" in refusal(capsys, *table)
    assert "--header-row: expected a number from 1 on, found '0'" in refusal(capsys, *table, "--header-row", "0")
    cases, _ = imported(capsys, *table, "--header-row", "3")
    assert cases["a"].question == "Which?"


def test_a_sheet_behind_the_cover_is_imported_by_its_name_which_a_message_has(folder, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    book.active.append(["Questions of May"])
    questions = book.create_sheet("May 1")
    for row in (["id", "gold"], ["a", 1]):
        questions.append(row)
    book.save("q.xlsx")
    table = ["table", "q.xlsx", "--kind", "json"]

    assert "or another sheet: --sheet 'May 1'" in refusal(capsys, *table)
    assert "there is no sheet 'Mai 1': did you mean 'May 1'?" in refusal(capsys, *table, "--sheet", "Mai 1")
    cases, _ = imported(capsys, *table, "--sheet", "May 1")
    assert list(cases) == ["a"]


@pytest.mark.parametrize(("option", "value"), [("--delimiter", ";"), ("--sheet", "May"), ("--header-row", "2")])
def test_only_tables_have_rows_sheets_and_delimiters(folder, capsys, option, value):
    Path("q.jsonl").write_text('{"id": "a", "gold": 1}\n')

    message = refusal(capsys, "jsonl", "q.jsonl", "--kind", "json", option, value)

    assert f"{option}: this format is no table: leave it out" in message


def test_a_formula_without_a_value_skips_its_row(folder, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "gold"], ["a", "=1+1"], ["b", 2]):
        book.active.append(row)
    book.save("q.xlsx")

    cases, skipped = imported(capsys, "table", "q.xlsx", "--kind", "json")

    assert cases.keys() == {"b"}
    assert skipped["row 2"].startswith("sheet 'Sheet', row 2, column 'gold': ")


def test_bad_lines_are_skipped_one_by_one(folder, capsys):
    lines = [
        b'{"id": "a", "gold": 1}',
        b"",
        b'{"gold": ',
        b'{"gold": NaN}',
        b'{"gold": 1, "gold": 2}',
        b'{"gold": "\xff"}',
        b"[]",
        b'{"gold": 1e999}',
        b'{"gold": "\\ud800"}',
        b"[" * 100_000,
        b'{"gold": "' + b"x" * 2**22 + b'"}',
        b'{"id": "b", "gold": "null"}',
    ]
    Path("q.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))

    cases, skipped = imported(capsys, "jsonl", "q.jsonl", "--kind", "json")

    assert cases.keys() == {"a", "b"}
    assert list(skipped) == [*(f"line {number}" for number in (3, 4, 5, 6, 7, 8)), "line-9", "line 10", "line 11"]
    assert skipped["line 5"] == "not JSON: duplicate key 'gold'"


def test_kinds_predictions_and_several_golds_of_json_lines(folder, capsys):
    source = write_lines(
        "q.jsonl",
        {"id": "sql", "kind": "sql", "source": "shop", "gold": ["SELECT 1", "SELECT 2"], "predicted": "SELECT 2"},
        {"id": "json", "gold": None, "predicted": {"a": 1}},
        {"id": "text", "gold": '"a"'},
        {"id": "list", "gold_any": [1, [2]]},
        {"id": "kind", "kind": "SQL", "gold": "SELECT 1"},
        {"id": "table", "kind": "sql", "gold": {"columns": ["a"], "rows": [[1]]}},
        {"id": "file", "kind": "sql", "gold_any": [{"file": "/etc/passwd"}]},
        {"id": "no query", "kind": "sql", "gold": "SELECT 1", "predicted": {"file": "/etc/passwd"}},
        {"id": "url", "source": "https://example.com", "kind": "sql", "gold": "SELECT 1"},
        {"id": "no source", "kind": "sql", "gold": "SELECT 1"},
    )
    database("databases/shop.sqlite")

    cases, reasons = imported(capsys, "jsonl", source, "--kind", "json", "--databases", "databases")

    assert list(cases) == ["sql", "json", "text", "list"]
    assert [gold.query for gold in cases["sql"].golds] == ["SELECT 1", "SELECT 2"]
    assert (cases["json"].golds[0].answer.value, cases["json"].predicted.answer.value) == (None, {"a": 1})
    assert cases["text"].golds[0].answer.value == "a"
    assert reasons["kind"] == "unknown kind 'SQL': did you mean 'sql'?"
    assert reasons["table"] == reasons["file"] == "its right answer is not a query"
    assert reasons["no query"] == "'predicted' is not a query"
    assert reasons["url"] == "'https://example.com' is not a name of a database"
    assert reasons["no source"] == "its queries have nowhere to run: add --source, a path or a URL"


@pytest.mark.parametrize("levels", [91, 500, 940, 990])
def test_records_that_are_nested_too_deep_are_skipped(folder, capsys, levels):
    deep = "[" * levels + "]" * levels
    lines = [f'{{"id": "{key}", "gold": 1, "{key}": {deep}}}' for key in ("question", "difficulty", "other", "skip")]
    Path("q.jsonl").write_text("\n".join([*lines, '{"id": "a", "gold": 1}']))

    cases, skipped = imported(capsys, "jsonl", "q.jsonl", "--kind", "json")

    assert cases.keys() == {"a"}
    assert len(skipped) == 4
    assert all("too deep" in reason or "deeper" in reason for reason in skipped.values())


def test_a_gold_that_the_loader_refuses_is_skipped(folder, capsys):
    good = [{"dataset_id": "CPI", "dimensions": [{"dimension_name": "AREA", "values": [{"id": "DE", "name": "x"}]}]}]
    source = write_lines("q.jsonl", {"id": "a", "gold": good}, {"id": "b", "gold": [{"dataset": "CPI"}]})

    cases, skipped = imported(capsys, "jsonl", source, "--kind", "sdmx")

    assert cases.keys() == {"a"}
    assert skipped["b"].startswith("its right answer cannot be read: ")


def test_a_source_for_queries_does_not_serve_other_kinds(folder, capsys):
    database("a.sqlite")
    source = write_lines("q.jsonl", {"id": "a", "gold": "SELECT 1"}, {"id": "b", "kind": "json", "gold": 1})

    cases, skipped = imported(capsys, "jsonl", source, "--kind", "sql", "--source", "a.sqlite")

    assert cases.keys() == {"a"}
    assert skipped == {"b": "--source is for queries, and it is of the kind 'json': import it without"}


@pytest.mark.parametrize("gold", [None, 5, {"a": 1}, ["SELECT 1"], "  "])
@pytest.mark.parametrize(("format_", "key"), [("spider", "query"), ("bird", "SQL")])
def test_a_gold_that_is_no_query_is_skipped(folder, capsys, format_, key, gold):
    database("databases/shop.sqlite")
    write_json("q.json", [{"db_id": "shop", key: gold}, {"db_id": "shop", key: "SELECT 1"}])

    _, skipped = imported(capsys, format_, "q.json")

    assert skipped == {"0": "its right answer is not a query"}


def test_predictions_are_found_by_id_or_question_with_their_trials(folder, capsys):
    source = write_lines("q.jsonl", {"id": "a b", "question": "One  two?", "gold": 1}, {"id": "c", "gold": 2})
    write_lines("by_id.jsonl", *({"id": "a b", "predicted": str(n), "trial": n, "tokens": 3} for n in (1, 2)))
    write_lines("by_question.jsonl", {"question": "One two?", "predicted": "1"})

    imported(capsys, "jsonl", source, "--kind", "json", "--predictions", "by_id.jsonl")
    assert predictions() == [{"id": "a-b", "predicted": str(n), "tokens": 3, "trial": n} for n in (1, 2)]

    main(["import", "jsonl", source, "--kind", "json", "-o", "out", "--predictions", "by_question.jsonl", "--force"])
    assert predictions() == [{"id": "a-b", "predicted": "1"}]


def test_settings_of_predictions_stand_behind_the_name_of_their_file(folder, capsys):
    source = write_lines("q.jsonl", {"id": "a", "gold": 1})
    Path("p.csv").write_text("Run 7\n\nNo.,Answer\na,1\n")
    named = "p.csv?id=No.&predicted=Answer&header_row=3"

    imported(capsys, "jsonl", source, "--kind", "json", "--predictions", named)

    assert predictions() == [{"id": "a", "predicted": "1"}]


@pytest.mark.parametrize("format_", ["jsonl", "promptfoo"])
def test_predictions_of_no_case_are_told(folder, capsys, format_):
    tests = {"gold": 1, "vars": {"q": "?"}, "assert": [{"type": "equals", "value": 1}]}
    source = write_lines("q.jsonl", tests)
    write_lines("p.jsonl", {"id": "elsewhere", "predicted": "1"}, {"id": "x", "predicted": ""})
    Path("p.txt").write_text("1\n2\n")

    _, skipped = imported(capsys, format_, source, "--kind", "json", "--predictions", "p.jsonl")
    assert skipped == dict.fromkeys(("elsewhere", "x"), "a prediction whose id is that of no case")

    _, skipped = imported(capsys, format_, source, "--kind", "json", "--force", "--predictions", "p.txt")
    assert skipped == {"1": "a prediction whose position is that of no case"}


# promptfoo


PROMPTFOO = """
prompts: ["{{question}}"]
providers: [openai:gpt-5-mini]
defaultTest:
  vars: {unit: EUR}
  assert:
    - type: llm-rubric
      value: be polite
tests:
  - vars: {question: How much?, answer: 5, city: Bonn}
    assert:
      - {type: equals, value: '{"price": {{answer}}, "unit": "{{unit}}"}'}
      - {type: is-json, value: {type: object, required: [price]}}
  - vars: {question: Is it JSON?}
    assert: [{type: is-json}]
  - vars: {question: Which one?}
    assert: [{type: equals, value: 1}, {type: equals, value: 2}]
  - vars: {question: Text?}
    assert: [{type: equals, value: Paris}]
  - vars: {question: File?}
    assert: [{type: equals, value: "file:///etc/passwd"}]
  - vars: {question: Template?}
    assert: [{type: equals, value: "{% raw %}1"}]
  - file://more.yaml
  - vars: {a: x, b: y}
    assert: [{type: equals, value: "1"}]
  - vars: {question: Filled?, answer: 5}
    assert: [{type: equals, value: {price: "{{answer}}"}}]
  - vars: {question: Unknown?}
    assert: [{type: equals, value: "{{answer}}"}]
"""


def test_promptfoo_equals_asserts_become_golds(folder, capsys):
    Path("promptfooconfig.yaml").write_text(PROMPTFOO)

    main(["import", "promptfoo", "promptfooconfig.yaml", "-o", "out", "--map", "metadata=city,answer", "--json"])
    skipped = [(entry["id"], entry["reason"]) for entry in json.loads(capsys.readouterr().out)["skipped"]]
    cases = {case.id: case for case in load_cases("out", root=Path("out"))}

    assert cases.keys() == {"test-1", "test-9"}
    assert cases["test-1"].golds[0].answer.value == {"price": 5, "unit": "EUR"}
    assert dict(cases["test-1"].metadata) == {"city": "Bonn"}  # the other one is a part of the answer
    assert cases["test-9"].golds[0].answer.value == {"price": "5"}
    assert ("test-1", "assert 'llm-rubric' is left out: its test is imported without it") in skipped
    assert ("test-1", "assert 'is-json' is left out: its test is imported without it") in skipped
    reasons = dict(reversed(skipped))
    assert reasons["test-2"] == "it has no 'equals' assert, which says what is right: it has is-json, llm-rubric"
    assert reasons["test-3"] == "it has several 'equals' asserts, and one answer cannot equal all of them"
    assert "not JSON" in reasons["test-4"]
    assert reasons["test-5"] == "its right answer is in another file"
    assert reasons["test-6"] == "its right answer is a template with more than variables"
    assert reasons["test-7"] == "it is not written out: import the file that it names"
    assert "name it with --map question=NAME (unit, a, b)" in reasons["test-8"]
    assert reasons["test-10"] == "its right answer needs the variable 'answer', which it lacks"


def test_promptfoo_golds_may_be_queries(folder, capsys):
    database("a.sqlite")
    test = {"vars": {"q": "How many?"}, "assert": [{"type": "equals", "value": "SELECT 1 -- one"}]}
    source = write_json("tests.json", [test])

    cases, _ = imported(capsys, "promptfoo", source, "--kind", "sql", "--source", "a.sqlite")

    assert (cases["test-1"].question, cases["test-1"].golds[0].query) == ("How many?", "SELECT 1 -- one")


def test_promptfoo_answers_cannot_grow_without_limit(folder, capsys):
    fields = {"question": "q", "x": json.dumps("x" * 100_000)}
    golds = ["{{x}}" * 100_000, ["{{x}}" * 30] * 10_000, "{{x}}"]
    tests = [{"vars": fields, "assert": [{"type": "equals", "value": gold}]} for gold in golds]

    cases, skipped = imported(capsys, "promptfoo", write_json("tests.json", tests), "--kind", "json")

    assert cases.keys() == {"test-3"}
    assert skipped["test-1"] == skipped["test-2"] == "its right answer is larger than 4 MiB"


@pytest.mark.parametrize("content", ["", "tests: file://x.yaml", "a: [", "- &a [*a]", "text"])
def test_a_file_that_is_no_configuration_is_refused(folder, capsys, content):
    Path("p.yaml").write_text(content)

    assert refusal(capsys, "promptfoo", "p.yaml").count("\n") == 1


def test_a_source_of_another_format_is_named_with_what_is_missing(folder, capsys):
    Path("notes.txt").write_text("hello\n")
    Path("dev.json").write_text('[{"db_id": "c", "question": "?", "query": "SELECT 1"}]')

    assert "notes.txt:1: no tab: each line of a file of golds is `SQL<tab>db_id`" in refusal(
        capsys, "spider", "notes.txt"
    )
    assert "dev.json: no case could be imported: " in (said := refusal(capsys, "bird", "dev.json"))
    assert "it has no 'SQL' (it has db_id, question, query): is it of another format?" in said


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "s.queryeval.yaml",
            "is a suite, not a data set in JSON: run `pytest s.queryeval.yaml` without an import",
        ),
        ("dev.yml", "is YAML, not JSON: use the JSON file of the data set"),
    ],
)
@pytest.mark.parametrize("form", ["spider", "jsonl", "qald"])
def test_yaml_in_place_of_json_is_told_as_that(folder, capsys, form, name, told):
    Path(name).write_text("kind: sql\ncases: []\n")

    with pytest.raises(SystemExit) as caught:
        main(["import", form, name, "-o", "suites", "--databases", "."])

    assert caught.value.code == 2
    assert capsys.readouterr().err == f"{name}: {told}\n"


def test_flags_of_a_table_are_copied_as_suites_read_them_there(folder, capsys):
    rows = ["a,SELECT 1,no,x", "b,SELECT 1,yes,FALSE", "c,SELECT 1,later,", "d,SELECT 1,,maybe"]
    Path("q.csv").write_text("\n".join(["id,gold,skip,allow_empty", *rows]))

    status = main(["import", "table", "q.csv", "-o", "copied", "--kind", "sql", "--source", "shop.sqlite"])

    cases = {case.id: case for case in load_cases("copied")}
    assert {name: (case.skip, case.allow_empty) for name, case in cases.items()} == {
        "a": (None, True),
        "b": ("skipped in the suite", False),
        "c": ("later", False),
    }
    assert status == 1
    assert "skipped d: 'allow_empty' is 'maybe': write TRUE or FALSE" in capsys.readouterr().out
