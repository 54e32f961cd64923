"""The page on agents in CI: its settings and its workflow run with a small agent, until each part of them decides."""

import json
import re
import shlex

import pytest
import yaml
from documentation import DOCS
from documentation import page as page_of

pytestmark = pytest.mark.feature("abstention", "ci", "excel", "page", "recording")

PAGE = page_of("ci").partition("## An agent\n")[2]
WORKFLOW = (DOCS / "ci/agent.yml").read_text(encoding="utf-8")
FILES = ("agent.py", "queries/queryeval.yaml", "pytest.ini")
# Wrong about some numbers in each trial, and about each fourth one in the first; it knows that there is no weather.
MY_AGENT = r"""
import os, re
from types import SimpleNamespace as Namespace

asked = {}


def ask(question, schema):
    asked[question] = asked.get(question, 0) + 1
    number = int(re.search(r"\d+", question)[0])
    wrong = str(number) in os.environ.get("WRONG", "").split(",") or (number % 4 == 3 and asked[question] == 1)
    known = "weather" not in question
    failed = Namespace(sql="SELECT x", rows=None, error="no such column: x", seconds=0.1)
    answered = Namespace(sql="SELECT 1", rows=[{"n": 1}], error=None, seconds=0.1)
    calls = [failed, *[answered] * int(os.environ.get("QUERIES", 2))]
    return Namespace(sql=f"SELECT {number + wrong}" if known else "", text="no table has it", calls=calls, cost=0.02)
"""
SUITE = """
kind: sql
source: {sqlite: {script: s.sql}}
cases:
"""
NUMBERS, DAYS = range(20), range(20, 25)


def block(name):
    return re.search(rf"^```\w+\n(# {re.escape(name)}\n.*?)^```$", PAGE, re.M | re.S)[1]


def command(text):
    """The arguments of the command of pytest in a script."""
    (line,) = re.findall(r'^ *pytest (.*?)(?: "\$@")?$', text, re.M)
    return shlex.split(line)


STEPS = {step.get("name"): step for step in yaml.safe_load(WORKFLOW)["jobs"]["queries"]["steps"]}
EVALUATE = command(STEPS["Evaluate"]["run"])
(BASELINE,) = re.findall(r"--queryeval-baseline=\S+(?=;)", STEPS["Evaluate"]["run"])


@pytest.fixture
def folder(write, monkeypatch, pytester):
    """The files of the page, with a suite of 20 questions that have an answer and 5 that have none."""
    for name in FILES:
        write(name, block(name))
    write("my_agent.py", MY_AGENT)
    write("queries/s.sql", "CREATE TABLE t (a);")
    questions = [f"  - {{id: n{number}, question: What is {number}?, gold: SELECT {number}}}\n" for number in NUMBERS]
    questions += [f"  - {{id: d{day}, question: The weather of day {day}?, answerable: false}}\n" for day in DAYS]
    write("queries/numbers.queryeval.yaml", SUITE + "".join(questions))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    return pytester.path


@pytest.fixture
def evaluate(folder, run):
    """Run the command of the workflow, or another one, and return the status, the verdict and the report."""

    def evaluate(*arguments):
        result = run(*(arguments or EVALUATE))
        report = json.loads((folder / "reports/report.json").read_bytes())
        verdict = next(line for line in reversed(result.outlines) if line.startswith("queryeval: "))
        return result.ret, verdict, report

    return evaluate


def test_a_good_agent_passes_in_as_many_trials_as_it_needs(evaluate, folder):
    status, verdict, report = evaluate()

    assert (status, report["totals"]["passed"]) == (0, 25)
    assert "queryeval: PASSED: 25 cases, 55 of 75 trials needed" in verdict
    assert [gate["ok"] for gate in report["gates"]] == [True, True, None]
    assert report["measures"]["queries"]["mean"] == 3.0
    steps = report["cases"][0]["prediction"]["steps"]
    assert [step.get("error") for step in steps] == ["no such column: x", None, None]
    assert "PASSED" in (folder / "summary.md").read_text()
    assert (folder / "reports/report.html").exists()


def test_an_agent_that_asks_too_many_queries_misses(evaluate, monkeypatch):
    monkeypatch.setenv("QUERIES", "8")

    status, verdict, report = evaluate()

    assert status == 1
    assert "gate missed: pass_rate" in verdict
    assert {case["outcome"] for case in report["cases"] if case["gold"]} == {"missed"}


def test_a_worse_agent_is_told_by_the_baseline(evaluate, folder, monkeypatch):
    evaluate()
    (folder / "baseline").mkdir()
    (folder / "reports/report.json").rename(folder / "baseline/report.json")
    monkeypatch.setenv("WRONG", "0,1,2,4")
    new_answers = [argument.replace("recorded", "recorded-now") for argument in EVALUATE]

    status, verdict, report = evaluate(*new_answers, BASELINE)

    assert status == 1
    assert "gate missed: 4 regressions in queries since baseline/report.json (allows at most 3)" in verdict
    assert len(report["baseline"]["regressions"]) == 4


def test_a_run_without_a_baseline_stops_once_its_gates_are_decided(evaluate):
    status, verdict, report = evaluate(*command(PAGE.partition("A draft can be judged")[2]))

    assert status == 0
    assert "decided after" in verdict
    assert report["totals"]["not_run"] > 0
