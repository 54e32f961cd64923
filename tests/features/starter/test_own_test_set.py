"""`queryeval init --from FILE`: a test set of any form becomes suites that pass at once, and says what they show."""

import json
import shlex
import sqlite3
from pathlib import Path

import pytest
from editor_schemas import objections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_queryeval.cli import main

pytestmark = pytest.mark.feature("transfer", "json")
COUNT, SOLD_OUT = "SELECT count(*) FROM product", "SELECT name FROM product WHERE stock = 0"
RECORDS = [{"question": "How many?", "sql": COUNT}, {"question": "What is sold out?", "sql": SOLD_OUT}]
DOCUMENTS = [{"prompt": f"Extract invoice {number}", "expected_output": {"total": number}} for number in range(2)]
CHATS = [
    [{"role": "user", "content": record["question"]}, {"role": "assistant", "content": record["sql"]}]
    for record in RECORDS
]
# The text of a test set, and the options of the command that imports it.
TEST_SETS = {
    "own.csv": (f"Nr,User question,Expected SQL\n1,How many?,{COUNT}\n2,Sold out?,{SOLD_OUT}\n", "--source shop.db"),
    "german.csv": (
        f"Nr;Frage;Lösung;Notiz\n1;Wie viele?;{COUNT};\n2;Was ist aus?;{SOLD_OUT};in zwei Wochen neu\n",
        "--delimiter ';' --source shop.db",
    ),
    "title.csv": (f"Our questions,\n,\nQuestion,SQL\nHow many?,{COUNT}\n", "--header-row 3 --source shop.db"),
    "lines.jsonl": ("".join(f"{json.dumps(record)}\n" for record in RECORDS), "--source shop.db"),
    "below.json": (json.dumps({"tests": RECORDS, "version": 1}), "--source shop.db"),
    "ids.yaml": (f"count: {COUNT}\nnames: {SOLD_OUT}\n", "--source shop.db"),
    "cases.toml": (f'[[case]]\nquestion = "How many?"\nsql = "{COUNT}"\n', "--source shop.db"),
    "chats.json": (json.dumps([{"messages": messages} for messages in CHATS]), "--source shop.db"),
    "several.json": (json.dumps([{"question": "How many?", "gold": [COUNT, "SELECT 3"]}]), "--source shop.db"),
    "stored.json": (
        json.dumps([{"question": "How many?", "gold_table": {"columns": ["n"], "rows": [[3]]}}]),
        "--source shop.db",
    ),
    "unanswerable.csv": (f"question,sql,answerable\nHow many?,{COUNT},\nWho?,,false\n", "--source shop.db"),
    "predicted.csv": (f"question,sql,predicted\nHow many?,{COUNT},SELECT 3\nOut?,{SOLD_OUT},\n", "--source shop.db"),
    "graph.csv": ("question,query\nIs there a city?,ASK { ?s a <http://e/City> }\n", "--source towns.ttl"),
    "mini_dev.json": (
        json.dumps([{"question_id": 7, "db_id": "shop", "question": "How many?", "evidence": "", "SQL": COUNT}]),
        "--source shop.db",
    ),
    "invoices.jsonl": ("".join(f"{json.dumps(record)}\n" for record in DOCUMENTS), ""),
    "texts.json": (json.dumps([{"question": "Total?", "answer": '{"total": 1}'}]), ""),
}
FORMATS = {**{name: "table" for name in TEST_SETS if name.endswith(".csv")}, "mini_dev.json": "bird"}


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """A folder with a database and a graph."""
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE product (name TEXT, stock INT)")
        database.execute("INSERT INTO product VALUES ('pen', 3), ('ink', 0), ('book', 2)")
    (tmp_path / "towns.ttl").write_text("<http://e/a> a <http://e/City> .")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*arguments):
    return main(["init", "--ci", "none", *arguments])


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        init(*arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def files_below(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.process
@pytest.mark.parametrize("name", TEST_SETS)
def test_a_test_set_passes_at_once_and_is_what_the_shown_command_imports(
    pytester, working_folder, monkeypatch, capsys, name
):
    monkeypatch.chdir(working_folder)
    text, options = TEST_SETS[name]
    Path(name).write_text(text, encoding="utf-8")

    assert init("suites", "--from", name) == 0

    command, *lines = capsys.readouterr().out.splitlines()
    assert command == f"queryeval import {FORMATS.get(name, 'jsonl')} {name} -o suites {options}".rstrip()
    assert objections(Path("suites/queryeval.yaml")) == []
    (said,) = (line for line in lines if "are the right answers themselves" in line)
    result = pytester.runpytest_inprocess("suites", "--rootdir", ".")
    cases = result.parseoutcomes()["passed"]
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": cases})
    assert ("remove what 1 of the cases state under `predicted_table`" in said) == (name == "stored.json")
    assert said.startswith(f"predictions: {1 if name == 'predicted.csv' else cases} of {cases} are the right answers")
    assert main([word if word != "suites" else "again" for word in shlex.split(command)[1:]]) == 0
    suites = [files_below(Path(folder))[f"{Path(name).stem}.queryeval.yaml"] for folder in ("suites", "again")]
    assert suites[0] == suites[1] or name == "stored.json"  # the prediction of a stored answer is in its case


@pytest.mark.feature("excel")
def test_a_workbook_is_a_test_set(capsys):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Frage an die Daten", "Richtige Abfrage"], ["Wie viele?", COUNT], ["Was ist aus?", SOLD_OUT]):
        book.active.append(row)
    book.save("fragen.xlsx")

    assert init("--from", "fragen.xlsx") == 0
    found = "gold ← Richtige Abfrage (guessed), 2 of 2; question ← Frage an die Daten (guessed), 2 of 2"
    assert found in capsys.readouterr().out


def test_a_column_of_notes_and_an_unfinished_row_do_not_decide(working_folder, capsys):
    rows = (
        "Wanted,Statement,Comment",
        f"How many are there,{COUNT},",
        f"What is sold out,{SOLD_OUT},seen by Eva",
        "a,?,",
    )
    Path("q.csv").write_text("\n".join(rows))

    assert init("--from", "q.csv") == 1  # a row is skipped

    printed = capsys.readouterr().out
    assert "gold ← Statement (guessed), 3 of 3; question ← Wanted (guessed), 3 of 3" in printed
    assert "skipped row-4: its right answer is `?`, not a query" in printed


NAMES = st.text("abcxyz ÄöÜ-_?0", min_size=1, max_size=12).map(str.strip).filter(bool)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=3, max_size=3, unique_by=str.lower), order=st.permutations(range(3)))
def test_columns_are_told_by_their_values_whatever_they_are_called(working_folder, names, order):
    columns = [("How many are there?", "What is sold out?"), (COUNT, SOLD_OUT), ("ann", "bob")]
    rows = [names, *zip(*columns, strict=True)]
    lines = (",".join(f'"{row[place]}"' for place in order) for row in rows)
    (working_folder / "q.csv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    assert init("--from", "q.csv", "--force") == 0

    suite = (working_folder / "q.queryeval.yaml").read_text(encoding="utf-8")
    assert f"question: How many are there?\n  gold: {COUNT}\n" in suite
    assert "ann" not in suite


def test_stated_predictions_are_those_of_the_first_run(pytester, working_folder, monkeypatch, capsys):
    monkeypatch.chdir(working_folder)
    Path("q.csv").write_text(f"question,sql,predicted\nHow many?,{COUNT},SELECT 3\nOut?,{SOLD_OUT},SELECT 1\n")

    assert init("suites", "--from", "q.csv") == 0

    assert "predictions: 2 of 2 are those of the test set" in capsys.readouterr().out
    assert not Path("suites/golds.jsonl").exists()
    assert "predictor: predict.py:predict" in Path("suites/queryeval.yaml").read_text()
    assert pytester.runpytest_inprocess("suites", "--rootdir", ".").parseoutcomes() == {"passed": 1, "failed": 1}


def test_the_answers_of_a_file_take_the_place_of_the_right_ones(pytester, working_folder, monkeypatch, capsys):
    monkeypatch.chdir(working_folder)
    Path("q.csv").write_text(TEST_SETS["own.csv"][0])

    assert init("suites", "--from", "q.csv", "--predictor", "file") == 0

    assert "nothing about your system: write those of your system into suites/golds.jsonl" in capsys.readouterr().out
    assert not Path("suites/predict.py").exists()
    assert "To test your system, write its answers there." in Path("suites/queryeval.yaml").read_text()
    answers = Path("suites/golds.jsonl")
    answers.write_text(answers.read_text().replace(COUNT, "SELECT 4"))
    assert pytester.runpytest_inprocess("suites", "--rootdir", ".").parseoutcomes() == {"passed": 1, "failed": 1}


def test_nothing_that_exists_is_overwritten(working_folder, capsys):
    Path("q.csv").write_text(TEST_SETS["own.csv"][0])
    for name in ("queryeval.yaml", "q.queryeval.yaml", "golds.jsonl"):
        Path(name).write_text("mine")
        before = files_below(working_folder)

        assert f"{name}: already exists" in refusal(capsys, "--from", "q.csv")
        assert files_below(working_folder) == before
        Path(name).unlink()
    Path("predict.py").write_text("mine")

    assert init("--from", "q.csv") == 0
    assert Path("predict.py").read_text() == "mine"


def test_a_script_next_to_the_test_set_is_its_database(pytester, working_folder, monkeypatch, capsys):
    monkeypatch.chdir(working_folder)
    Path("shop.db").unlink()
    Path("q.csv").write_text(TEST_SETS["own.csv"][0])
    Path("shop.sql").write_text("CREATE TABLE product (name TEXT, stock INT);")
    Path("golds.sql").write_text(COUNT)

    assert init("suites", "--from", "q.csv") == 0
    assert capsys.readouterr().out.startswith("queryeval import table q.csv -o suites --source shop.sql\n")
    assert pytester.runpytest_inprocess("suites", "--rootdir", ".").parseoutcomes()["passed"] == 1


def test_what_is_open_is_asked_and_the_answer_helps(working_folder, capsys):
    Path("q.csv").write_text(TEST_SETS["own.csv"][0])
    Path("more").mkdir()
    Path("more/q.csv").write_text(f"a,gold_sql,correct_sql\nHow many?,{COUNT},SELECT 2\n")
    (working_folder / "old db.sqlite").write_bytes(Path("shop.db").read_bytes())
    source, gold = ["--source", "shop.db"], ["--map", "gold=gold_sql"]
    for arguments, problem, remedy in (
        (["--from", "q.csv"], "choose one, --source 'old db.sqlite' or --source shop.db", source),
        (["--from", "more/q.csv"], "--map gold=gold_sql or --map gold=correct_sql", [*gold, *source]),
        (["--from", "more/q.csv", *gold], "say where its queries run, --source FILE", source),
        (source, "--source is about a test set of your own: add --from FILE", ["--from", "q.csv"]),
        (["--from", "q.csv", "--predictor", "command"], "--predictor command is about the example", None),
        (["--from", "p.csv"], "p.csv: no such file", None),
    ):
        assert problem in refusal(capsys, "out", *arguments)
        assert not Path("out").exists()
        if remedy:
            assert init("out", *arguments, *remedy, "--force") == 0
            for path in Path("out").iterdir():
                path.unlink()
            Path("out").rmdir()
