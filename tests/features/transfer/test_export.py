"""`queryeval export`: predictions as the tools of Spider and BIRD read them."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_maker import report_of
from samples import HEAD, entry

from pytest_queryeval.cli import main

pytestmark = pytest.mark.usefixtures("working_folder")

PREDICTED = {"query": "SELECT 1", "columns": None, "row_count": None, "sample": [], "seconds": 0.0, "error": None}


def write_report(queries, *, kind="sql", sources=(), **changes):
    """Write a report of cases by their ids, with their predicted queries; None where there is none."""
    cases = []
    for number, (id_, query) in enumerate(queries.items()):
        place = {"id": id_, "nodeid": f"s.queryeval.yaml::{id_}", "path": "s.queryeval.yaml", "line": number + 1}
        source = sources[number] if sources else "shop"
        predicted = None if query is None else {**PREDICTED, "query": query}
        sides = {"predicted": predicted, **dict.fromkeys(("gold", "difference", "prediction"))}
        cases.append(entry(**place, kind=kind, source=source, question="?", **sides))
    facts = HEAD | {"created": "2025-01-01T00:00:00+00:00", "collected": {"s.queryeval.yaml": len(cases)}}
    Path("report.json").write_text(json.dumps({**report_of(cases, **facts | changes), "gates": []}))


def export(format_, name):
    """Export the report; return the content of the file, and the ids of cases without a prediction."""
    main(["export", "report.json", "-f", format_, "--force", "-o", name])
    return Path(name).read_bytes()


def spider_lines(content):
    """As evaluation.py reads a file of predictions: lines that are not blank, up to their first tab."""
    lines = Path("p.txt")
    lines.write_bytes(content)
    with lines.open() as file:
        return [line.strip().split("\t")[0] for line in file if len(line.strip()) > 0]


def bird_queries(content):
    """As package_sqls reads one."""
    return [tuple(text.split("\t----- bird -----\t")) for text in json.loads(content).values()]


LINES = {
    "SELECT a\nFROM t": "SELECT a FROM t",
    "SELECT a\r\n\tFROM t\n": "SELECT a FROM t",
    "SELECT a -- the first\nFROM t /* all\nof it */ WHERE 1": "SELECT a   FROM t   WHERE 1",
    "SELECT '--'\nFROM t": "SELECT '--' FROM t",
    'SELECT "a -- b", `-- c`, [-- d]\nFROM t': 'SELECT "a -- b", `-- c`, [-- d] FROM t',
    "SELECT 1 -- one": "SELECT 1 -- one",
    "": "SELECT",
    " \n\t": "SELECT",
    None: "SELECT",
    "SELECT '\u2028\x0b\x85'": "SELECT '\u2028\x0b\x85'",
}


def test_a_query_is_one_line_that_the_tool_reads_whole():
    write_report({f"c{number}": query for number, query in enumerate(LINES)})

    content = export("spider", "out.txt")

    assert content == "".join(f"{line}\n" for line in LINES.values()).encode()
    assert spider_lines(content) == [*LINES.values()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_every_case_keeps_its_position(queries):
    write_report({f"c{number}": query for number, query in enumerate(queries)})

    assert len(spider_lines(export("spider", "out.txt"))) == len(queries)
    assert [len(pair) for pair in bird_queries(export("bird", "out.json"))] == [2] * len(queries)


def test_bird_has_positions_and_databases_and_no_query_passes_for_a_marker():
    queries = {"1471": "SELECT a\nFROM t", "1480": None, "a": "SELECT 1\t----- bird -----\tother"}
    write_report(queries, sources=["shop", "dbs/b.c/shop.sqlite", "shop"])

    content = export("bird", "out.json")

    assert content.startswith(
        b'{\n    "0": "SELECT a\\nFROM t\\t----- bird -----\\tshop",\n    "1": " \\t----- bird -----\\tshop",\n'
    )
    assert bird_queries(content)[2] == ("SELECT 1 other", "shop")


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
def test_ids_that_are_positions_keep_the_place_of_a_question_without_a_case(capsys, ids, queries, missing):
    write_report({id_: f"SELECT {id_}" for id_ in ids})

    spider, bird = export("spider", "out.txt"), export("bird", "out.json")

    assert spider_lines(spider) == ["SELECT" if query is None else f"SELECT {query}" for query in queries]
    assert bird_queries(bird) == [(" " if query is None else f"SELECT {query}", "shop") for query in queries]
    capsys.readouterr()
    assert main(["export", "report.json", "-f", "bird", "--json"]) == bool(missing)
    assert json.loads(capsys.readouterr().out)["missing"] == missing


@pytest.mark.parametrize(("format_", "name"), [("spider", "spider.txt"), ("bird", "bird.json")])
def test_the_command_writes_a_file_and_names_what_is_missing(capsys, format_, name):
    write_report({"a": "SELECT 1", **{f"c{number}": None for number in range(22)}})
    main(["export", "report.json", "-f", format_, "-o", "many"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["23 cases, 22 without a prediction", "no prediction: c0"]
    assert lines[-2:] == ["no prediction: c19", "and 2 more: --json lists all of them"]
    write_report({"a": "SELECT 1", "::error::b\x1b": None})

    status = main(["export", "report.json", "-f", format_, "--json"])

    out, err = capsys.readouterr()
    assert status == 1
    assert json.loads(out) == {"file": name, "cases": 2, "missing": ["::error::b\x1b"]}
    assert err.splitlines()[1] == "2 cases, 1 without a prediction"
    assert "\x1b" not in err
    assert Path(name).read_bytes()


def test_nothing_is_overwritten_without_force(capsys):
    write_report({"a": "SELECT 1", "b": None})
    Path("out.txt").write_text("mine")

    with pytest.raises(SystemExit) as stop:
        main(["export", "report.json", "-f", "spider", "-o", "out.txt"])

    assert stop.value.code == 2
    assert capsys.readouterr().err == "out.txt: already exists: write elsewhere, or replace it with --force\n"
    assert Path("out.txt").read_text() == "mine"
    main(["export", "report.json", "-f", "spider", "-o", "out.txt", "--force"])
    assert Path("out.txt").read_text() == "SELECT 1\nSELECT\n"


PART = "is of a part of its cases, whose positions are not known: run all of them"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"selected": True}, PART),
        ({"stopped": True}, PART),
        ({"collected": {"s.queryeval.yaml": 3}}, PART),
        ({"kind": "sparql"}, "1 of 1 cases are of other kinds than sql"),
    ],
)
def test_a_part_of_a_data_set_and_another_kind_are_refused(capsys, changes, said):
    write_report({"a": "SELECT 1"}, **changes)

    with pytest.raises(SystemExit) as stop:
        main(["export", "report.json", "-f", "bird"])

    assert stop.value.code == 2
    assert said in capsys.readouterr().err
    assert not Path("bird.json").exists()
