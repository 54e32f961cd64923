"""Predicted text, answers and database contents are foreign: they are shown and stored, never obeyed."""

from __future__ import annotations

import json
import re
import unicodedata
from xml.etree import ElementTree

import pytest

HOSTILE = (
    "x\x1b[2J\x1b]0;owned\x07\r::error::owned\n::error file=a::owned\n  ::warning::owned\n##[command]owned\n###[error]"
    "owned\x00\u202eevil\u2066\u061c\u200f]]><script>alert(1)</script>\x9b31m\x85\u2028::error::owned"
)
SURROGATE = HOSTILE + "\ud800"
ALIAS = HOSTILE.replace("\0", "")
SETTINGS = "kind: sql\nsource: {sqlite: {script: hostile.sql}}\n"
SCRIPT = """
CREATE TABLE note (text TEXT);
INSERT INTO note VALUES (
    'x' || char(27) || '[2J' || char(13) || '::error::owned' || char(10) || '::error::owned' || char(10)
    || '##[command]owned' || char(8238) || char(8294) || ']]><script>' || char(0) || char(155)
);
"""


def unshowable(text):
    """Characters that a terminal obeys or that hide others."""
    return [
        char for char in text if unicodedata.category(char) in ("Cc", "Cs", "Cf", "Zl", "Zp") and char not in "\t\n"
    ]


def assert_harmless(text):
    assert not unshowable(text)
    for line in re.split(r"[\r\n]", text):
        assert not line.lstrip().startswith("::"), line
        assert "##[" not in line


def text_of(junit):
    """All text of a JUnit file, attributes too, as a reader of XML sees it."""
    elements = list(ElementTree.parse(junit).iter())
    return "\n".join(text for element in elements for text in (element.text or "", *element.attrib.values()))


@pytest.fixture
def hostile_suite(write):
    def write_cases(*cases):
        write("hostile.sql", SCRIPT)
        write("queryeval.yaml", SETTINGS)
        write("a.queryeval.jsonl", "".join(f"{json.dumps(one)}\n" for one in cases))

    return write_cases


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param({"predicted": HOSTILE}, id="query"),
        pytest.param({"predicted": "SELECT 7", "question": HOSTILE}, id="question"),
        pytest.param({"predicted": f"SELECT '{ALIAS}'"}, id="computed"),
        pytest.param({"predicted": "SELECT text FROM note"}, id="predicted cell"),
        pytest.param({"predicted": "SELECT 7", "gold": "SELECT text FROM note"}, id="gold cell"),
        pytest.param({"predicted": f'SELECT 7 AS "{ALIAS}"', "gold": f'SELECT 1 AS "{ALIAS}"'}, id="column"),
        pytest.param({"predicted": "SELECT 1", "gold_table": {"columns": [HOSTILE], "rows": [[HOSTILE]]}}, id="table"),
    ],
)
def test_hostile_text_is_escaped_in_every_output(pytester, hostile_suite, run_and_parse, hostile):
    hostile_suite({"id": "hostile", **({} if "gold_table" in hostile else {"gold": "SELECT 1"}), **hostile})

    run = run_and_parse("-vv", "-rA")

    assert run.outcomes == {"hostile": "failed"}
    assert "owned" in json.dumps(run.case("hostile"))
    assert_harmless(run.text)
    assert_harmless(text_of(pytester.path / "junit.xml"))


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_hostile_prediction_of_a_file_reaches_the_report(pytester, hostile_suite, write, run_and_parse, workers):
    hostile_suite({"id": "hostile", "gold": "SELECT 1"})
    write("answers.jsonl", json.dumps({"id": "hostile", "predicted": SURROGATE, "model": SURROGATE}))

    run = run_and_parse("--queryeval-predictor=answers.jsonl", workers)

    assert run.outcomes == {"hostile": "failed"}
    assert run.case("hostile")["predicted"]["query"] == HOSTILE + "\\ud800"
    assert run.case("hostile")["prediction"]["metadata"] == {"model": HOSTILE + "\\ud800"}
    assert_harmless(run.text)
    assert_harmless(text_of(pytester.path / "junit.xml"))


def test_half_of_a_surrogate_pair_in_a_suite_is_refused(hostile_suite, run_and_parse):
    hostile_suite({"id": "good", "gold": "SELECT 1", "predicted": "SELECT 1"}, {"id": "half", "gold": SURROGATE})

    run = run_and_parse()

    run.result.stdout.fnmatch_lines(["a.queryeval.jsonl:2: a string holds half of a surrogate pair*"])
    assert_harmless(run.text)


def test_hostile_text_of_an_error_is_escaped(pytester, hostile_suite, write, run_and_parse):
    write("predict.py", f"def predict(case):\n    raise ValueError({SURROGATE!r})\n")
    hostile_suite({"id": "predictor", "gold": "SELECT 1"}, {"id": "gold", "gold": HOSTILE})

    run = run_and_parse("-vv", "-rA", "--queryeval-predictor=predict.py:predict")

    assert run.outcomes == {"predictor": "error", "gold": "error"}
    assert "owned" in run.case("predictor")["message"]
    assert_harmless(run.text)
    assert_harmless(text_of(pytester.path / "junit.xml"))


def test_hostile_text_of_a_broken_file_is_escaped(hostile_suite, run_and_parse):
    hostile_suite({"id": HOSTILE, "gold": "SELECT 1", HOSTILE: 7}, {"id": "one", "kind": HOSTILE})

    run = run_and_parse("-vv", "-rA")

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert_harmless(run.text)


def test_hostile_name_of_a_source_is_escaped(hostile_suite, run_and_parse):
    source = {"sqlite": "gone\u202e\x1b[2J\n::error::owned.db"}
    hostile_suite({"id": "lost", "gold": "SELECT 1", "predicted": "SELECT 1", "source": source})

    run = run_and_parse("-vv")

    assert run.outcomes == {"lost": "error"}
    assert_harmless(run.text)
