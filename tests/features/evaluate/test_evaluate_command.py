"""`queryeval evaluate`: report and verdict of `pytest PATH`, exit statuses, calls that cannot be served."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from suites import write

from pytest_queryeval import METRICS
from pytest_queryeval.cli import main

EXAMPLE = Path(__file__).parents[3] / "example_suite"
LIVE = "sparql/live"  # its servers are started by a hook of pytest
SCRIPT = (
    "CREATE TABLE singer (name TEXT, age INTEGER); INSERT INTO singer VALUES ('Ana', 30), ('Bo', 40), ('Cy', NULL);"
)
FOLDER = """
kind: sql
source: {sqlite: {script: singers.sql}}
gates:
  - {metric: pass_rate, min: 0.2}
  - {metric: soft_f1, where: {tag: easy}, min: 0.9}
  - {max_regressions: 0}
"""
UGLY = """
predictor: predict.py:answer
cases:
  - {id: right, tags: [easy], question: All names, gold: SELECT name FROM singer}
  - {id: missed, question: Which?, tags: [easy], gold: SELECT age FROM singer, on_miss: xfail}
  - {id: invalid, question: Which?, gold: SELECT count(*) FROM singer, trials: 3}
  - {id: sometimes, question: lucky, gold: SELECT 2, trials: 3}
  - {id: raises, question: Which?, gold: SELECT 1}
  - {id: bad-gold, question: Which?, gold: SELECT nope FROM singer}
  - {id: two-lines, gold: "SELECT 1,,\\n2", predicted: "SELECT\\n::error::x"}
  - {id: no-source, question: Which?, gold: SELECT 1, source: missing.db}
  - {id: skipped, question: Which?, gold: SELECT 1, skip: "no gold\\nyet"}
  - {id: known, gold: SELECT 1, predicted: SELECT 2, xfail: hard}
  - {id: better, gold: SELECT 1, predicted: SELECT 1, xfail: hard}
  - {id: empty, gold: SELECT name FROM singer WHERE age > 90, predicted: SELECT 7}
  - {id: either, gold_any: [SELECT 1, SELECT 2], predicted: SELECT 2}
"""
BELOW = """
metrics: [valid_query, length]
thresholds: {length: 0.5}
cases:
  - {id: deep, gold: SELECT name FROM singer, predicted: SELECT age FROM singer}
  - {id: dates, gold: "SELECT date('2024-01-02')", predicted: "SELECT '2024-01-02 00:00:00'"}
"""
NEVER = """
kind: sql
source: {sqlite: {script: singers.sql}}
cases: [{id: a, gold: SELECT 1, predicted: SELECT 2, on_miss: xfail}]
"""
PREDICT = """
asked = {}


def answer(case):
    if case.id == "raises":
        raise ValueError("no answer\\nin two lines")
    if case.id == "sometimes":
        asked[case.id] = asked.get(case.id, 0) + 1
        return f"SELECT {asked[case.id]}"
    return "SELECT nope FROM singer" if case.id == "invalid" else "SELECT name FROM singer"
"""
CONFTEST = """
from pytest_queryeval import METRICS

METRICS.register("length", lambda gold, predicted: float(len(gold.rows) == len(predicted.rows)))
"""
WAITING = """
import time
from pathlib import Path


def answer(case):
    if case.id == "two":
        Path("waits").touch()
        time.sleep(60)
    return "SELECT name FROM singer"
"""
GOOD = """
kind: sql
source: {sqlite: {script: singers.sql}}
cases:
  - {id: one, question: Which?, gold: SELECT name FROM singer, predicted: SELECT name FROM singer}
  - {id: two, question: Which?, gold: SELECT age FROM singer, predicted: SELECT age FROM singer}
"""


def read_report(path):
    return json.loads(Path(path).read_bytes())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(SCRIPT, "singers.sql")
    write("[pytest]\n", "pytest.ini")
    return tmp_path


@pytest.fixture
def ugly(folder, monkeypatch):
    """Suites in two folders, with every outcome."""
    monkeypatch.setattr(METRICS, "_members", {**METRICS._members})
    write(FOLDER, "queryeval.yaml")
    write(UGLY, "a.queryeval.yaml")
    write(PREDICT, "predict.py")
    write(BELOW, "deep/b.queryeval.yaml")
    write(CONFTEST, "deep/conftest.py")
    write(SCRIPT, "deep/singers.sql")
    head, _, cases = GOOD.partition("cases:\n")
    write(cases.replace("  - ", "- "), "deep/shared.yaml")
    for name in ("one", "other"):  # suites over one file of cases
        write(f"{head}cases: shared.yaml\n", f"deep/{name}.queryeval.yaml")
    return folder


@pytest.fixture
def evaluate(capsys):
    """Runs the command; returns its status, its report and its output."""

    def call(*arguments):
        Path("report.json").unlink(missing_ok=True)
        try:
            status = main(["evaluate", *arguments, "--report", "report.json"])
        except SystemExit as end:
            status = end.code
        report = read_report("report.json") if Path("report.json").exists() else None
        return status, report, capsys.readouterr()

    return call


def same_in_all_runs(value):
    """A report without times, and without the versions that it names."""
    if isinstance(value, dict):
        left_out = ("seconds", "created", "environment", "measures")
        return {name: same_in_all_runs(item) for name, item in value.items() if name not in left_out}
    return [same_in_all_runs(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def with_pytest(folder, pytester, monkeypatch):
    """Runs pytest in the folder, in this process; returns the result and the report."""
    monkeypatch.chdir(folder)
    members = dict(METRICS._members)

    def call(*arguments):
        monkeypatch.setattr(METRICS, "_members", members)  # without those of a run before
        options = [argument.replace("--", "--queryeval-", 1) for argument in arguments]
        warn = "-Wdefault::pytest_queryeval.QueryEvalWarning"
        result = pytester.runpytest_inprocess(
            warn, "-p", "no:cacheprovider", "--queryeval-report=pytest.json", *options
        )
        return result, read_report("pytest.json")

    return call


def verdicts(text):
    """The lines of the plugin without those on progress, which only a slow run has."""
    return [line for line in text.splitlines() if line.startswith("queryeval: ") and " under way, " not in line]


@pytest.mark.process
@pytest.mark.parametrize(
    "options",
    [
        ["."],
        ["deep", "a.queryeval.yaml", "--limit=9", "--sample=12:3", "--trials=2", "--cause=off", "--name=nightly"],
        ["a.queryeval.yaml::right", "a.queryeval.yaml::bad-gold", "--baseline=base.json"],
    ],
    ids=lambda options: " ".join(options),
)
def test_report_and_verdict_are_those_of_pytest(ugly, evaluate, with_pytest, options):
    write(json.dumps(evaluate("a.queryeval.yaml")[1]), "base.json")

    status, report, output = evaluate(*options)
    ran, expected = with_pytest(*options)

    assert same_in_all_runs(report) == same_in_all_runs(expected)
    assert status == ran.ret
    assert verdicts(output.out) == verdicts(ran.stdout.str())
    assert len(report["cases"]) >= 2
    assert report["environment"].keys() == expected["environment"].keys() - {"pytest"}


def test_a_full_folder_of_temporary_files_keeps_what_was_done(folder, evaluate, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    write(GOOD)
    monkeypatch.setattr("pytest_queryeval.results.case_store.MAX_IN_MEMORY", 1)
    monkeypatch.setattr(os, "pwrite", full)
    status, report, output = evaluate(".")

    assert status == 1
    assert (report["totals"]["cases"], report["stopped"], report["interrupted"]) == (1, True, False)
    assert re.fullmatch(
        r"the run has stopped: cases cannot be kept in /.*: No space left on device: name another folder .*TMPDIR",
        output.out.splitlines()[-2],
    )


def test_without_a_folder_of_temporary_files_there_is_a_report(folder, evaluate, monkeypatch):
    def missing(**_):
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    write(GOOD)
    monkeypatch.setattr("pytest_queryeval.engines.bases.ScratchFolder", missing)
    status, report, _ = evaluate(".")

    assert (status, report["totals"]["errors"]) == (1, 2)
    missing = "source 'singers.sql': no folder for its database: No usable temporary directory found in ['/tmp']"
    remedy = "name another folder of temporary files with TMPDIR (s.queryeval.yaml:3)"
    assert {case["message"] for case in report["cases"]} == {f"{missing}: {remedy}"}


@pytest.mark.slow
@pytest.mark.process
def test_report_of_the_example_suite_is_that_of_pytest(folder, evaluate, with_pytest):
    shutil.copytree(EXAMPLE, "example_suite", ignore=shutil.ignore_patterns("reports", "__pycache__", "live"))

    status, report, output = evaluate("example_suite")
    ran, expected = with_pytest("example_suite")

    assert (status, ran.ret) == (0, 0)
    assert same_in_all_runs(report) == same_in_all_runs(expected)
    assert report["totals"]["missed"] > 0
    assert verdicts(output.out) == verdicts(ran.stdout.str())


@pytest.mark.feature("json", "recording")
def test_a_good_run_ends_with_its_reports_and_its_verdict(folder, evaluate):
    write(GOOD)

    status, report, output = evaluate("s.queryeval.yaml", "--report=page.html")

    assert status == 0
    assert report["totals"]["passed"] == 2
    assert output.err == ""
    assert output.out.splitlines()[-3:] == [
        "report: report.json",
        "report: page.html",
        "queryeval: PASSED: 2 cases: 2 passed (no case failed, no gate is set)",
    ]
    assert Path("page.html").exists()


def test_problems_of_all_suites_are_told_and_nothing_is_run(folder, evaluate):
    write(GOOD)
    write("kind: sql\ncases: [{id: a}]\n", "bad.queryeval.yaml")
    write("kind: sql\nsurce: a.db\n", "worse.queryeval.yaml")

    status, report, output = evaluate(".")

    assert (status, report, output.out) == (2, None, "")
    assert {line.partition(":")[0] for line in output.err.splitlines()} == {
        "bad.queryeval.yaml",
        "worse.queryeval.yaml",
    }


@pytest.mark.feature("json", "recording")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: "),
        (["."], "no suite below: "),
        (["singers.sql"], "is not a suite: "),
        (["good/s.queryeval.yaml::on"], "no case 'on'"),
        (["good", "--trials=1001"], "--trials: expected a whole number from 1 to 1,000, found 1001"),
        (["good", "--sample=x"], "--sample: expected a number of cases from 1 on, such as 20"),
        (["good", f"--sample={'9' * 5000}"], "--sample: expected a number of cases from 1 on, such as 20"),
        (["good", "--stop=decided:abc"], "--stop: expected decided, decided:SEED"),
        (["good", f"--stop=decided:{'9' * 5000}"], "--stop: expected decided, decided:SEED"),
        (["good", "--name="], "--name: expected a value, found nothing"),
        (["good", "--threshold=json_equal=1"], "--threshold: no case of kind sql has the metric 'json_equal'"),
        (["good", "--predictor=nowhere.py:f"], "--predictor: "),
        (["good", "--replay=nowhere"], "--replay: there is no folder "),
        (["good", "--replay=a", "--record=b"], "--record and --replay exclude each other"),
        (["good", "--report=a.jsn"], "--report: no report format '.jsn'"),
        (["good", "--concurrency=0"], "--concurrency: expected a whole number from 1, found 0"),
        (["good", "--workers=2", "--on=dask://a:1"], "not allowed with argument --workers"),
        (["good", "--on=http://a:1"], "--on: expected the address of a cluster, dask://…, found 'http://a:1'"),
        (["timed", "--workers=2"], "cannot be measured with --workers: "),
        (["good", "--gates=maybe"], "invalid choice: 'maybe'"),
        (["good", "--cause=maybe"], "invalid choice: 'maybe'"),
    ],
    ids=str,
)
def test_a_call_that_cannot_be_served_is_told_in_one_line(folder, evaluate, arguments, message):
    if arguments != ["."]:
        write(GOOD, "good/s.queryeval.yaml")
        write(SCRIPT, "good/singers.sql")
        write(f"metrics: [ves]{GOOD.replace('singers.sql', '../good/singers.sql')}", "timed/s.queryeval.yaml")

    status, report, output = evaluate(*arguments)

    assert (status, report, output.out) == (2, None, "")
    assert message in output.err.splitlines()[-1]
    assert "--queryeval-" not in output.err.replace("--queryeval-record, or", "").replace("--queryeval-report", "")


def test_gates_that_need_the_rest_of_the_cases_name_the_option(ugly, evaluate):
    _, _, output = evaluate("a.queryeval.yaml::either")
    selected, _, _ = evaluate("a.queryeval.yaml::either", "--gates=selection")

    (line,) = verdicts(output.out)
    assert line.startswith("queryeval: NO VERDICT: ")
    assert line.endswith("; --gates=selection evaluates gates on the cases that ran")
    assert selected == 0


def test_gates_count_the_suites_beside_the_path(ugly, evaluate):
    _, report, _ = evaluate("deep")

    assert [(gate["ran"], gate["cases"]) for gate in report["gates"]] == [(6, 18), (0, 2), (6, 18)]
    assert [case["nodeid"] for case in report["cases"]].count("deep/other.queryeval.yaml::two") == 1
    assert report["requested_paths"] == {"paths": ["deep"], "ignored": []}


def test_what_weakens_a_suite_is_told(folder, evaluate):
    write(NEVER)

    status, _, output = evaluate(".")

    assert status == 0
    assert output.err.startswith(
        "queryeval evaluate: s.queryeval.yaml:4: nothing-required: with `on_miss: xfail`, case "
    )


def test_a_suite_whose_extra_is_missing_is_left_out(folder, evaluate, monkeypatch):
    write(GOOD)
    write(f"requires: absent{GOOD}", "pages.queryeval.yaml")
    packages = {"absent": ("no-such-package",)}
    monkeypatch.setattr("pytest_queryeval.suites.variables.packages_of_extras", lambda: packages)

    status, report, output = evaluate(".")

    assert (status, report["totals"]["cases"]) == (0, 2)
    assert report["requested_paths"]["ignored"] == ["pages.queryeval.yaml"]
    assert "not evaluated: " in output.err


@pytest.mark.process
def test_a_run_that_is_terminated_leaves_a_report_and_no_processes(folder):
    write(WAITING, "p.py")
    write(GOOD)
    program = "import sys; from pytest_queryeval.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "evaluate", ".", "--workers=2", "--report=report.json"]

    with subprocess.Popen([*command, "--predictor=p.py:answer"], start_new_session=True) as process:
        while not Path("waits").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130

    assert read_report("report.json")["interrupted"] is True
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_a_report_that_cannot_be_written_fails_a_good_run(folder, evaluate, monkeypatch):
    write(GOOD)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_queryeval.reports.write_atomically", fail)
    status, _, output = evaluate(".")

    assert status == 1
    assert verdicts(output.out) == ["queryeval: FAILED: report report.json cannot be written: No space left on device"]


def test_progress_goes_to_standard_error_and_with_json_all_but_the_report(folder, evaluate, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)
    write(GOOD.replace("predicted: SELECT age", "predicted: SELECT name"))

    status, report, output = evaluate(".", "--json")

    assert status == 1
    assert json.loads(output.out) == report
    assert verdicts(output.err) == ["queryeval: FAILED: 1 case failed"]
    assert output.err.startswith("queryeval evaluate: 1 of 2 cases, about ")


@pytest.mark.parametrize(
    ("files", "paths", "expected"),
    [
        ({}, ["a/b"], "."),
        ({}, ["a/b/s.queryeval.yaml", "a/c"], "."),
        ({"a/pytest.ini": ""}, ["a/b"], "a"),
        ({"a/pytest.ini": "", "pytest.ini": ""}, ["a/b", "d"], "."),
        ({"a/tox.ini": "[tox]\n", "a/setup.cfg": "[tool:pytest]\n"}, ["a/b"], "a"),
        ({"a/tox.ini": "[tox]\n", "a/b/setup.py": ""}, ["a/b"], "a/b"),
        ({"a/b/pyproject.toml": "[project]\n", "a/pyproject.toml": "[tool.pytest.ini_options]\n"}, ["a/b"], "a"),
        ({"a/b/pyproject.toml": "[project]\n", "setup.py": ""}, ["a/b/s.queryeval.yaml"], "a/b"),
    ],
    ids=str,
)
def test_paths_are_relative_to_the_root_folder_of_pytest(folder, evaluate, files, paths, expected):
    Path("pytest.ini").unlink()
    for name in ("a/b/s.queryeval.yaml", "a/c/s.queryeval.yaml", "d/s.queryeval.yaml"):
        write("{kind: json, cases: [{id: one, gold: 1, predicted: 1}]}", name)
    for name, text in files.items():
        write(text, name)

    _, report, _ = evaluate(*paths)
    _, by_option, _ = evaluate(*paths, f"--rootdir={expected}")

    assert {case["path"] for case in report["cases"]} == {case["path"] for case in by_option["cases"]}
    assert not any(case["path"].startswith(("/", "..", "a/b/a/")) for case in report["cases"])


@pytest.mark.process
def test_options_are_those_of_the_plugin(capsys, pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    of_pytest = "\n".join(pytester.runpytest_inprocess("--help").outlines)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])

    ours = set(re.findall(r"^  (?:-\w, )?--([\w-]+)", capsys.readouterr().out, re.MULTILINE))
    plugins = set(re.findall(r"^  --queryeval-([\w-]+)", of_pytest, re.MULTILINE))
    settings = set(re.findall(r"^  queryeval_(?!junit)(\w+)", of_pytest, re.MULTILINE))  # pytest writes junit.xml
    assert ours >= plugins | {name.replace("_", "-") for name in settings}
    assert {"report", "gates"} <= plugins | settings


NUMBERS = """
from pathlib import Path


async def answer(case):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(case.id + "\\n")
    return case.question
"""


METERED = """
    from pytest_queryeval import Prediction, QueryOrAnswer

    return Prediction(QueryOrAnswer(query=case.question), predictor="app", metadata={"cost": 0.01})
"""


@pytest.fixture
def numbers(folder):
    """A suite of 90 numbers, of which the first 4 are answered wrongly and 10 more are skipped."""
    write(NUMBERS, "app.py")
    write(
        "kind: json\npredictor: app.py:answer\non_miss: xfail\ngates: [{metric: pass_rate, min: 0.5}]", "queryeval.yaml"
    )
    cases = [{"id": f"c{n}", "question": str(n), "gold": str(n + (n < 4))} for n in range(90)]
    cases += [{"id": f"s{n}", "question": str(n), "gold": str(n), "skip": "later"} for n in range(10)]
    write(json.dumps({"cases": cases}))


@pytest.mark.process
def test_a_run_that_stops_once_it_is_decided_is_that_of_pytest(numbers, evaluate, with_pytest):
    status, report, output = evaluate(".", "--stop=decided:3")
    calls = Path("calls.txt").read_text().split()
    ran, expected = with_pytest(".", "--stop=decided:3")

    after = report["stop"]["after"]
    assert same_in_all_runs(report) == same_in_all_runs(expected)
    assert (status, verdicts(output.out)) == (ran.ret, verdicts(ran.stdout.str()))
    assert (report["totals"]["skipped"], report["totals"]["not_run"]) == (10, 90 - after)
    assert after <= len(calls) <= after + 8
    assert after < 30


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--workers=2"], "only one process can decide after each case whether to go on: leave --workers out"),
        (["--limit=5"], "no gate can be decided before all cases ran: pass_rate: only 5 of 90 cases are selected"),
        (["--spend=cost=5", "--workers=2"], "only one process can"),
    ],
)
def test_a_run_that_cannot_stop_early_is_refused(numbers, evaluate, options, problem):
    status, report, output = evaluate(".", *(["--stop=decided"] if "--spend" not in str(options) else []), *options)

    assert (status, report) == (2, None)
    assert f": {problem}" in output.err


@pytest.mark.process
def test_a_run_whose_spend_limit_is_reached_is_that_of_pytest(numbers, evaluate, with_pytest):
    write(NUMBERS.replace("return case.question", METERED), "app.py")
    options = "--concurrency=1", "--spend=cost=0.3"

    status, report, output = evaluate(".", *options)
    ran, expected = with_pytest(".", *options)

    assert same_in_all_runs(report) == same_in_all_runs(expected)
    assert (status, ran.ret, verdicts(output.out)) == (1, 1, verdicts(ran.stdout.str()))
    assert verdicts(output.out) == ["queryeval: NO VERDICT: the spend limit was reached after 30 of 90 cases"]
    assert (report["totals"]["skipped"], report["totals"]["not_run"]) == (10, 60)
    assert (report["spend"]["calls"], report["spend"]["reached"]) == (30, True)


LEAKY_SUITE = """
kind: json
predictor: predict.py:answer
cases: [{id: a, question: Which?, gold: 1}]
"""
LEAKY = """
import logging, sys, threading, warnings

print("imported with", SECRET := "sk-0123456789abcdef")
logging.basicConfig(level="INFO")

def answer(case):
    thread = threading.Thread(target=print, args=("thread", SECRET))
    thread.start()
    thread.join()
    logging.getLogger("model").info("logged %s", SECRET)
    warnings.warn(f"warned of {SECRET}", stacklevel=1)
    for character in f"{SECRET}, in pieces":
        print(character, end="", flush=True)
    return "1"
"""


@pytest.mark.process
def test_what_a_predictor_prints_logs_and_warns_about_has_no_secret(tmp_path):
    (tmp_path / "predict.py").write_text(LEAKY)
    (tmp_path / "a.queryeval.yaml").write_text(LEAKY_SUITE)

    done = subprocess.run(
        [sys.executable, "-m", "pytest_queryeval", "evaluate", "."],
        cwd=tmp_path,
        env={**os.environ, "MODEL_KEY": "sk-0123456789abcdef"},
        capture_output=True,
        text=True,
        timeout=300,
    )

    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "0123456789" not in output
    for text in ("imported with", "thread", "INFO:model:logged", "UserWarning: warned of"):
        assert f"{text} [redacted]" in output
    assert "[redacted], in pieces" in output
