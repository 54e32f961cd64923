"""Predicted text, answers and database contents are foreign: they are shown and stored, never obeyed."""

from __future__ import annotations

import json
import re
import unicodedata
from xml.etree import ElementTree

import pytest
from singers import case

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
CASES = {
    "query": {"predicted": HOSTILE},
    "question": {"predicted": "SELECT 7", "question": HOSTILE},
    "computed": {"predicted": f"SELECT '{ALIAS}'"},
    "predicted-cell": {"predicted": "SELECT text FROM note"},
    "gold-cell": {"predicted": "SELECT 7", "gold": "SELECT text FROM note"},
    "column": {"predicted": f'SELECT 7 AS "{ALIAS}"', "gold": f'SELECT 1 AS "{ALIAS}"'},
    "table": {"predicted": "SELECT 1", "gold_table": {"columns": [HOSTILE], "rows": [[HOSTILE]]}},
}
ERRORS = {
    "gold": {"predicted": "SELECT 1", "gold": HOSTILE},
    "source": {"predicted": "SELECT 1", "source": {"sqlite": "gone\u202e\x1b[2J\n::error::owned.db"}},
}


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
        write("a.queryeval.jsonl", "".join(f"{json.dumps(case)}\n" for case in cases))

    return write_cases


def test_hostile_text_is_escaped_in_every_output(pytester, hostile_suite, run_and_parse):
    gold = {"gold": "SELECT 1"}
    hostile_suite(*({"id": id_, **({} if "gold_table" in of else gold), **of} for id_, of in (CASES | ERRORS).items()))

    run = run_and_parse("-vv", "-rA")

    assert run.outcomes == dict.fromkeys(CASES, "failed") | dict.fromkeys(ERRORS, "error")
    assert [id_ for id_ in run.outcomes if "owned" not in json.dumps(run.case(id_))] == []
    assert_harmless(run.text)
    assert_harmless(text_of(pytester.path / "junit.xml"))


def test_hostile_predictions_and_errors_of_a_system_reach_the_report(pytester, hostile_suite, write, run_and_parse):
    hostile_suite({"id": "hostile", "question": "Which?", "gold": "SELECT 1"})
    write("answers.jsonl", json.dumps({"id": "hostile", "predicted": SURROGATE, "model": SURROGATE}))
    write("predict.py", f"def predict(case):\n    raise ValueError({SURROGATE!r})\n")
    runs = []
    for predictor in ("answers.jsonl", "predict.py:predict"):
        runs.append(run_and_parse("-vv", "-rA", f"--queryeval-predictor={predictor}"))
        assert_harmless(runs[-1].text)
        assert_harmless(text_of(pytester.path / "junit.xml"))

    answered, failed = (run.case("hostile") for run in runs)
    assert (answered["outcome"], failed["outcome"]) == ("failed", "error")
    assert answered["predicted"]["query"] == HOSTILE + "\\ud800"
    assert answered["prediction"]["metadata"] == {"model": HOSTILE + "\\ud800"}
    assert "owned" in failed["message"]


def test_hostile_text_of_a_broken_file_is_escaped(hostile_suite, run_and_parse):
    half = {"id": "half", "gold": SURROGATE}
    hostile_suite({"id": HOSTILE, "gold": "SELECT 1", HOSTILE: 7}, {"id": "one", "kind": HOSTILE}, half)

    run = run_and_parse("-vv", "-rA")

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    run.result.stdout.fnmatch_lines(["a.queryeval.jsonl:3: a string contains half of a surrogate pair*"])
    assert_harmless(run.text)


def test_what_a_format_of_somebody_else_says_is_one_line_that_commands_nothing(suite, write, run):
    broken = "def broken(report):\n    raise ValueError('q\\n::error::pwned \\x1b[31m ##[error]x')\n"
    register = "from pytest_queryeval.reports import REPORTS\n\nREPORTS.register('txt', broken)\n"
    write("conftest.py", f"{broken}\n{register}")
    suite(case("a"))

    lines = run("--queryeval-report=r.txt").outlines

    said = [line for line in lines if "pwned" in line]
    assert len(said) == 2  # the report's own line, and the verdict
    for line in said:
        assert "cannot be made: ValueError: q ::error::pwned \\x1b[31m" in line
        assert not line.startswith("::")
        assert "##[" not in line
