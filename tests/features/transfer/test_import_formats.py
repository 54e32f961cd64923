"""Formats of `queryeval import` whose cases are run, or whose files are no text; `imports.yaml` has the others."""

import json
import shutil
from pathlib import Path

import duckdb
import openpyxl
import pytest
import yaml
from features.transfer.test_imports import write_database
from importing import imported, refusal, scores, write, write_lines

from pytest_queryeval.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Spider and BIRD


SCHEMA = {
    "db_id": "shop",
    "table_names_original": ["t"],
    "column_names_original": [[-1, "*"], [0, "a"], [0, "b"]],
    "column_types": ["text", "number", "text"],
    "primary_keys": [],
    "foreign_keys": [],
}


@pytest.fixture
def data_sets(folder):
    """Both data sets with two questions on one database."""
    write_database(Path("spider/database/shop/shop.sqlite"))
    write_database(Path("dev_databases/shop/shop.sqlite"))
    write("spider/tables.json", [SCHEMA])
    queries = ("SELECT count(*) FROM t", "SELECT a FROM t")
    write("spider/dev.json", [{"db_id": "shop", "question": "q", "query": query} for query in queries])
    bird = [{"question_id": 1471 + n, "db_id": "shop", "question": "q", "SQL": sql} for n, sql in enumerate(queries)]
    write("bird.json", bird)


def test_cases_run_with_the_predictions_of_the_tools(data_sets, capsys):
    Path("pred.txt").write_text("SELECT count(a) FROM t\tshop\n\n")
    write("pred.json", {"0": "SELECT 2\t----- bird -----\tshop", "1": None})

    spider, _ = imported(capsys, "spider", "spider", "--predictions", "pred.txt")
    scores_of_spider = scores(spider, "execution_accuracy")
    gate_of_spider = Path("out/queryeval.yaml").read_text()
    shutil.rmtree("out")
    bird, _ = imported(capsys, "bird", "bird.json", "--predictions", "pred.json")

    assert spider["0"].db_schema is not None
    assert yaml.safe_load(gate_of_spider)["gates"] == [{"metric": "execution_accuracy", "min": 0.8}]
    assert scores_of_spider == {"0": 1.0, "1": 0.0}
    assert scores(bird, "execution_accuracy_bird") == {"1471": 1.0, "1472": 0.0}


@pytest.mark.parametrize("name", ["pred.json", "pred.jsonl", "pred.sql"])
def test_predictions_of_bird_for_another_database_are_named(data_sets, capsys, name):
    queries = [f"SELECT 2\t----- bird -----\t{database}" for database in ("trips", "Shop")]
    if name == "pred.json":
        write(name, dict(zip(("0", "1"), queries, strict=True)))
    elif name == "pred.jsonl":
        write_lines(name, *({"id": f"147{n}", "predicted": query} for n, query in enumerate(queries, 1)))
    else:
        Path(name).write_text("\n".join(queries), encoding="utf-8")

    main(["import", "bird", "bird.json", "-o", "out", "--predictions", name])

    assert capsys.readouterr().out.splitlines()[3] == (
        f"warning: {name}: 1 prediction names another database than the cases: "
        "'trips' instead of 'shop' for '1471': check that the file is for these cases"
    )


def test_a_name_or_path_that_is_not_utf_8_is_refused(folder, capsys):
    for path in ("databases/\udcff.sqlite", "databases/shop.sqlite", "\udcff/shop.sqlite"):
        write_database(Path(path))
    names = ("\udcff", "shop")
    write("q.json", [{"db_id": name, "question": "q", "query": "SELECT 1", "gold": "SELECT 1"} for name in names])

    for option in (
        ["spider", "q.json", "--databases", "\udcff"],
        ["jsonl", "q.json", "--source", "\udcff/shop.sqlite"],
    ):
        assert "is not a name in UTF-8" in refusal(capsys, "import", *option, "-o", "out")
    cases, skipped = imported(capsys, "spider", "q.json")
    assert cases.keys() == {"1"}
    assert "not a name of a database" in skipped["0"]


# Spider 2


@pytest.fixture
def spider2(folder):
    write_database(Path("lite/resource/databases/shop.sqlite"))
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
    columns = {
        "one": [],
        "many": [[1], [0]],
        "flat": [0],
        "range": [3],
        "flag": [True],
        "broken": [],
        "far": [],
        "lost": [],
    }
    write_lines(
        "lite/evaluation_suite/gold/lite_eval.jsonl",
        *({"instance_id": id_, "condition_cols": of, "ignore_order": True} for id_, of in columns.items()),
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

    assert scores(cases, "execution_accuracy") == {"one": 1.0, "many": 1.0, "flat": 0.0}


def test_spider2_without_results_beside_it_is_refused(folder, capsys):
    source = write_lines("q.jsonl", {"instance_id": "a"})

    assert "evaluation_suite/gold with results is not next to the source" in refusal(
        capsys, "import", "spider2", source, "-o", "out"
    )


# Tables that are no text


def write_xlsx(**sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name.replace("_", " "))
        for row in rows:
            sheet.append(row)
    book.save("q.xlsx")


@pytest.mark.parametrize("suffix", ["xlsx", "parquet"])
def test_columns_of_a_table_become_keys_by_their_names(folder, capsys, suffix):
    rows = [["Nr", "Frage", "Solution", "db", "Topic"], ["1", "How many?", "SELECT 1", "shop", "all"]]
    write_database(Path("databases/shop.sqlite"))
    write_xlsx(Sheet=rows)
    Path("q.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
    duckdb.sql("COPY (FROM read_csv('q.csv', all_varchar=true)) TO 'q.parquet'")
    pairs = ("id=Nr", "question=Frage", "gold=Solution", "source=db", "metadata=Topic")
    mapped = [argument for pair in pairs for argument in ("--map", pair)]

    cases, _ = imported(capsys, "table", f"q.{suffix}", *mapped, "--kind", "sql", "--databases", "databases")

    assert (cases["1"].question, cases["1"].golds[0].query) == ("How many?", "SELECT 1")
    assert (cases["1"].settings.source.name, dict(cases["1"].metadata)) == ("shop", {"Topic": "all"})


def test_a_sheet_behind_the_cover_is_imported_by_its_name_which_a_message_has(folder, capsys):
    write_xlsx(Cover=[["Questions of May"]], May_1=[["id", "gold"], ["a", 1], ["b", "=1+1"]])
    table = ["table", "q.xlsx", "--kind", "json"]

    assert "or another sheet: --sheet 'May 1'" in refusal(capsys, "import", *table, "-o", "out")
    assert "there is no sheet 'Mai 1': did you mean 'May 1'?" in refusal(
        capsys, "import", *table, "-o", "out", "--sheet", "Mai 1"
    )
    cases, skipped = imported(capsys, *table, "--sheet", "May 1")
    assert list(cases) == ["a"]
    assert skipped["b"].startswith("sheet 'May 1', row 3, column 'gold': ")


def test_columns_that_are_not_read_are_named(folder, capsys):
    Path("q.csv").write_text("Nr,Frage,gold,::error::x,Thema\n1,?,2,3,\n")
    arguments = ["import", "table", "q.csv", "--kind", "json", "--map", "question=Frage", "-o", "out", "--force"]

    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    main([*arguments, "--map", "id=Nr", "--map", "tags=Thema", "--map", "metadata=::error::x"])

    assert json.loads(out)["not_read"] == ["Nr", "::error::x", "Thema"]
    assert err.splitlines()[3] == "not read: Nr, ::error::x, Thema (--map KEY=FIELD reads one)"
    assert "not read" not in capsys.readouterr().out


# Records that cannot be read


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
        b'{"id": "deep", "gold": 1, "other": ' + b"[" * 91 + b"]" * 91 + b"}",
        b'{"gold": "' + b"x" * 2**22 + b'"}',
        b'{"id": "b", "gold": "null"}',
    ]
    Path("q.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))

    cases, skipped = imported(capsys, "jsonl", "q.jsonl", "--kind", "json")

    assert cases.keys() == {"a", "b"}
    assert list(skipped) == [
        *("line 3", "line 4", "line 5", "line 6", "line 7", "line 8"),
        *("line-9", "line 10", "line 11", "line 12"),
    ]
    assert skipped["line 5"] == "not JSON: duplicate key 'gold': remove one"


def test_cases_and_answers_of_promptfoo_cannot_grow_without_limit(folder, capsys):
    fields = {"question": "q", "x": json.dumps("x" * 100_000)}
    golds = ["{{x}}" * 100_000, ["{{x}}" * 30] * 10_000, "{{x}}"]
    tests = [{"vars": fields, "assert": [{"type": "equals", "value": gold}]} for gold in golds]
    wide = {"id": "wide", "gold": 1, "question": '"' * 3 * 2**20}  # each of which is escaped

    cases, skipped = imported(capsys, "promptfoo", write("tests.json", tests), "--kind", "json")
    shutil.rmtree("out")
    of_wide = imported(capsys, "jsonl", write("wide.json", [wide, {"id": "a", "gold": 1}]), "--kind", "json")[1]

    assert cases.keys() == {"test-3"}
    assert skipped["test-1"] == skipped["test-2"] == "its right answer is larger than 4 MiB"
    assert of_wide == {"wide": "it is larger than 4 MiB"}
