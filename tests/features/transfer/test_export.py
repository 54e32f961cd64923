"""`queryeval export`: predictions as the tools of Spider and BIRD read them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import HEAD, entry

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.transfer.exporters import Exported, bird_file, spider_file
from pytest_queryeval.results.aggregation import aggregate


def case(id_, query="SELECT 1", *, source="shop", kind="sql"):
    return Exported(id=id_, question="?", kind=kind, source=source, query=query)


def spider_lines(content):
    """As evaluation.py reads a file of predictions: lines that are not blank, up to their first tab."""
    lines = Path("p.txt")
    lines.write_bytes(content)
    with lines.open() as file:
        return [line.strip().split("\t")[0] for line in file if len(line.strip()) > 0]


def bird_queries(content):
    """As package_sqls reads one."""
    return [tuple(text.split("\t----- bird -----\t")) for text in json.loads(content).values()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("SELECT a\nFROM t", "SELECT a FROM t"),
        ("SELECT a\r\n\tFROM t\n", "SELECT a FROM t"),
        ("SELECT a -- the first\nFROM t /* all\nof it */ WHERE 1", "SELECT a   FROM t   WHERE 1"),
        ("SELECT '--'\nFROM t", "SELECT '--' FROM t"),
        ('SELECT "a -- b", `-- c`, [-- d]\nFROM t', 'SELECT "a -- b", `-- c`, [-- d] FROM t'),
        ("SELECT 1 -- one", "SELECT 1 -- one"),
        ("", "SELECT"),
        (" \n\t", "SELECT"),
        (None, "SELECT"),
        ("SELECT '\u2028\x0b\x85'", "SELECT '\u2028\x0b\x85'"),
    ],
)
def test_a_query_is_one_line_that_the_tool_reads_whole(folder, query, line):
    content = spider_file([case("a", query), case("b")]).content

    assert content == f"{line}\nSELECT 1\n".encode()
    assert spider_lines(content) == [line, "SELECT 1"]


@given(st.lists(st.none() | st.text(), max_size=5))
def test_every_case_keeps_its_position(tmp_path_factory, queries):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("export"))
        cases = [case(f"c{number}", query) for number, query in enumerate(queries)]

        assert len(spider_lines(spider_file(cases).content)) == len(queries)
        assert [len(pair) for pair in bird_queries(bird_file(cases).content)] == [2] * len(queries)


def test_bird_has_positions_and_databases():
    content = bird_file([case("1471", "SELECT a\nFROM t"), case("1480", None, source="dbs/b.c/shop.sqlite")]).content

    assert content == (
        b'{\n    "0": "SELECT a\\nFROM t\\t----- bird -----\\tshop",\n    "1": " \\t----- bird -----\\tshop"\n}'
    )


def test_a_query_cannot_pass_for_a_marker():
    content = bird_file([case("a", "SELECT 1\t----- bird -----\tother")]).content

    assert bird_queries(content) == [("SELECT 1 other", "shop")]


@pytest.mark.parametrize(
    ("ids", "queries", "missing"),
    [
        (("0", "2"), ("0", None, "2"), ["1"]),
        (("0", "3"), ("0", None, None, "3"), ["1", "2"]),
        (("7", "9"), ("7", "9"), []),  # no positions, as mini-dev's ids
        (("0", "2", "1"), ("0", "2", "1"), []),
        (("0", "999999999"), ("0", "999999999"), []),
    ],
)
def test_ids_that_are_positions_keep_the_place_of_a_question_without_a_case(folder, ids, queries, missing):
    cases = [case(id_, f"SELECT {id_}") for id_ in ids]
    spider, bird = spider_file(cases), bird_file(cases)

    assert spider_lines(spider.content) == ["SELECT" if query is None else f"SELECT {query}" for query in queries]
    assert bird_queries(bird.content) == [(" " if query is None else f"SELECT {query}", "shop") for query in queries]
    assert spider.fillers == bird.fillers == missing


def test_another_kind_is_refused():
    with pytest.raises(ReportError, match="1 of 1 cases are of other kinds than sql"):
        spider_file([case("a", kind="sparql")])


PREDICTED = {"query": "SELECT 1", "columns": None, "row_count": None, "sample": [], "seconds": 0.0, "error": None}


def write_report(*missing, predicted=("a",), **changes):
    cases = [
        entry(**about(id_), predicted=predicted_side, **dict.fromkeys(("gold", "difference", "prediction")))
        for id_, predicted_side in (*((id_, PREDICTED) for id_ in predicted), *((id_, None) for id_ in missing))
    ]
    collected = {"s.queryeval.yaml": len(cases)}
    facts = {"created": "2025-01-01T00:00:00+00:00", "environment": {}, "collected": collected}
    Path("report.json").write_text(json.dumps(aggregate(cases, gates=[], about=HEAD | facts | changes)))


def about(id_):
    path = "s.queryeval.yaml"
    return {
        "id": id_,
        "nodeid": f"{path}::{id_}",
        "path": path,
        "line": len(id_),
        "kind": "sql",
        "source": "shop",
        "question": "?",
    }


@pytest.mark.parametrize(("format_", "name"), [("spider", "spider.txt"), ("bird", "bird.json")])
def test_the_command_writes_a_file_and_names_what_is_missing(folder, capsys, format_, name):
    write_report("::error::b\x1b")

    status = main(["export", "report.json", "-f", format_, "--json"])

    out, err = capsys.readouterr()
    assert status == 1
    assert json.loads(out) == {"file": name, "cases": 2, "missing": ["::error::b\x1b"]}
    assert err.splitlines()[1] == "2 cases, 1 without a prediction"
    assert "\x1b" not in err
    assert Path(name).read_bytes()


@pytest.mark.parametrize("format_", ["spider", "bird"])
def test_a_filler_is_a_missing_prediction(folder, capsys, format_):
    write_report(predicted=("0", "2"))

    status = main(["export", "report.json", "-f", format_, "--json"])

    assert status == 1
    assert json.loads(capsys.readouterr().out)["missing"] == ["1"]


def test_of_many_missing_predictions_the_first_are_listed_and_the_others_counted(folder, capsys):
    write_report(*(f"c{number}" for number in range(22)))

    main(["export", "report.json", "-f", "spider"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["23 cases, 22 without a prediction", "no prediction: c0"]
    assert lines[-2:] == ["no prediction: c19", "and 2 more: --json lists all of them"]


def test_nothing_is_overwritten_without_force(folder, capsys):
    write_report("b")
    Path("out.txt").write_text("mine")

    with pytest.raises(SystemExit) as stop:
        main(["export", "report.json", "-f", "spider", "-o", "out.txt"])

    assert stop.value.code == 2
    assert capsys.readouterr().err == "out.txt: already exists: write elsewhere, or replace it with --force\n"
    assert Path("out.txt").read_text() == "mine"
    main(["export", "report.json", "-f", "spider", "-o", "out.txt", "--force"])
    assert Path("out.txt").read_text() == "SELECT 1\nSELECT\n"


@pytest.mark.parametrize("changes", [{"selected": True}, {"stopped": True}, {"collected": {"s.queryeval.yaml": 3}}])
def test_a_part_of_a_data_set_is_refused(folder, capsys, changes):
    write_report(**changes)

    with pytest.raises(SystemExit) as stop:
        main(["export", "report.json", "-f", "bird"])

    assert stop.value.code == 2
    assert "is of a part of its cases, whose positions are not known: run all of them" in capsys.readouterr().err
    assert not Path("bird.json").exists()
