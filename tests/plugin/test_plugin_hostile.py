"""Predicted text, answers and database contents are foreign: they are shown and stored, never obeyed."""

from __future__ import annotations

import json
import re
import unicodedata
from xml.etree import ElementTree

import pytest
from singers import GOLD, case, unpredicted

from pytest_queryeval.results.report_file import read_report

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
        write("a.queryeval.jsonl", "".join(f"{json.dumps(case)}\n" for case in cases))

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


def test_hostile_prediction_of_a_file_reaches_the_report(pytester, hostile_suite, write, run_and_parse):
    hostile_suite({"id": "hostile", "gold": "SELECT 1"})
    write("answers.jsonl", json.dumps({"id": "hostile", "predicted": SURROGATE, "model": SURROGATE}))

    run = run_and_parse("--queryeval-predictor=answers.jsonl")

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
    asked = {"id": "predictor", "question": "Which?", "gold": "SELECT 1"}
    hostile_suite(asked, {**asked, "id": "gold", "gold": HOSTILE})

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


def test_a_name_in_a_baseline_starts_no_command_where_lines_are_wrapped(pytester, suite, write, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    suite(case("a"))
    run("--queryeval-report=base.json")
    base = json.loads((pytester.path / "base.json").read_bytes())
    names = [f"a.queryeval.yaml::{'x' * length} ::stop-commands::t" for length in range(20)]
    base["cases"] += [base["cases"][0] | {"nodeid": name, "line": 9 + n} for n, name in enumerate(names)]
    write("base.json", json.dumps(base))

    lines = run("--queryeval-baseline=base.json").outlines

    assert any("stop-commands" in line for line in lines)
    assert [line for line in lines if line.lstrip().startswith("::")] == []


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


@pytest.mark.parametrize("score", ["1e160", "-1e200", "10 ** 300"])
def test_a_score_too_large_to_be_averaged_is_an_error_of_its_case_and_loses_no_report(
    suite, write, run_and_parse, score
):
    register = f"from pytest_queryeval import METRICS\nMETRICS.register('ours', lambda gold, predicted: {score})\n"
    write("conftest.py", register)
    suite(case("large", metrics=["ours"]), case("good"))

    run = run_and_parse()

    assert run.outcomes == {"large": "error", "good": "passed"}
    assert "metric 'ours' gave" in run.case("large")["message"]


def test_a_time_that_no_call_can_take_is_an_error_of_its_case_and_loses_no_report(
    pytester, suite, write, run_and_parse
):
    predict = "from pytest_queryeval import Prediction\nfrom pytest_queryeval.core.model import QueryOrAnswer\n\n"
    predict += "def predict(case):\n"
    predict += f"    return Prediction(QueryOrAnswer(query={GOLD!r}), predictor='p', seconds=1e308)\n"
    write("predict.py", predict)
    suite(unpredicted("late"), unpredicted("later"), predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == {"late": "error", "later": "error"}
    fault = "`seconds` is not a number from 0 to 1,000,000,000"
    message = read_report(pytester.path / "report.json")["cases"][0]["message"]
    assert message.startswith(f"predict.py:predict returned a Prediction whose {fault}")
