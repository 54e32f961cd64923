"""Options, settings and hooks that cannot be meant: a usage error with the remedy, before any case runs."""

from __future__ import annotations

import os

import pytest
from singers import GOLD, case, unpredicted

ANSWER = f"    return {GOLD!r}\n"
FAILING_ATTRIBUTE = """
def __dir__():
    return [*globals(), "absent"]

def __getattr__(name):
    raise RuntimeError if name == "absent" else AttributeError(name)
"""
FORKED = """
def pytest_addoption(parser):  # as pytest-forked does
    parser.addoption("--forked", action="store_true")
"""
METRICS = """
from pytest_queryeval import METRICS
from pytest_queryeval.core.metric import metric

METRICS.register("triples", metric(kinds=frozenset({"sparql"}))(lambda gold, predicted: 1.0))
"""
ASKED = f"def predict(case):\n    open('asked', 'w').close()\n{ANSWER}"
LONG = "x" * 300
LIMITS = {"prediction_seconds": {"max": 60}, "row_matching_f1": {"max": 0.9}}


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("pytest_queryeval_predictor(case)", "unknown hook 'pytest_queryeval_predictor': did you mean '*_predict'?"),
        (
            "pytest_queryeval_predict(case, model)",
            "the hook 'pytest_queryeval_predict' has no argument 'model': write *",
        ),
    ],
)
def test_a_hook_that_there_is_not_is_told_before_suites_that_need_it_are_read(suite, write, run, signature, told):
    suite(unpredicted("one"))
    write("conftest.py", f"import os\n\n\ndef {signature}:\n{ANSWER}")

    result = run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: conftest.py:4: {told}"])
    assert "INTERNALERROR" not in result.stdout.str()
    assert "no prediction" not in result.stdout.str()


@pytest.mark.parametrize("contents", ["", FAILING_ATTRIBUTE], ids=["", "an attribute that fails"])
def test_a_hook_of_another_plugin_is_left_to_pytest(suite, write, run, contents):
    suite(case("one"))
    write("conftest.py", "def pytest_of_nobody():\n    pass\n" + contents)

    result = run()

    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["*unknown hook 'pytest_of_nobody'*"])
    result.stdout.no_fnmatch_line("*RuntimeError*")


@pytest.fixture(scope="module")
def misused(shared_project):
    """A project whose one system would leave a file `asked`."""
    shared_project.write("conftest.py", METRICS + FORKED)
    shared_project.write("predict.py", ASKED)
    shared_project.suite(unpredicted("one"), case("other"), predictor="predict.py:predict", thresholds=LIMITS)
    shared_project.suite(case("one", tags=["forked"]), name="forked.queryeval.yaml")
    shared_project.write("taken", "mine")
    os.mkfifo(shared_project.path / "pipe.json")
    folders = [shared_project.path / name for name in ("in-md/report.md", "in-junit/junit.xml")]
    for folder in folders:
        folder.mkdir(parents=True)
    yield shared_project
    for folder in folders:
        folder.rmdir()


METRIC_IS_NUMBER = "threshold: expected METRIC=NUMBER, such as execution_accuracy=0.9, found"
IN_ITS_PLACE = "cannot be written: a folder is in its place: remove it, or write elsewhere"
USAGE_ERRORS = {
    # Names and values of options and settings
    "--queryeval-predicter": "unknown option '--queryeval-predicter': did you mean '--queryeval-predictor'?",
    "--queryeval-gates=off": "unknown option '--queryeval-gates': it is a setting of pytest.ini, for one run `-o quer",
    "--queryeval-zzz": "unknown option '--queryeval-zzz': `pytest --help` lists all options",
    "--queryeval-limit=ten": "argument --queryeval-limit: expected a whole number, found 'ten'",
    "--queryeval-limit=0": "--queryeval-limit: expected a whole number from 1, found 0",
    "--queryeval-limit=-1": "--queryeval-limit: expected a whole number from 1, found -1",
    "--queryeval-name=": "--queryeval-name: expected a value, found nothing",
    "--queryeval-cause=some": "--queryeval-cause: expected auto, off or full, found 'some'",
    "-o queryeval_cause=maybe": "queryeval_cause: expected auto, off or full, found 'maybe'",
    "-o queryeval_gates=maybe": "queryeval_gates: expected complete, selection or off, found 'maybe'",
    "--queryeval-trials=1001": "--queryeval-trials: expected a whole number from 1 to 1,000, found 1001",
    "--queryeval-record=a --queryeval-replay=a": "--queryeval-record and --queryeval-replay exclude each other: ",
    "-o queryeval_stop=early": "or off, found 'early'",
    "-o queryeval_excel_layout=wide": "queryeval_excel_layout: expected requested, published or plain, found 'wide'",
    **{f"--queryeval-sample={sample}": "--queryeval-sample: expected " for sample in ("0", "", "5:x", "5:-1", "1.5")},
    "--queryeval-sample=\N{SUPERSCRIPT TWO}": "--queryeval-sample: expected ",
    **{
        f"--queryeval-spend={limit}": "--queryeval-spend: expected "
        for limit in ("cost", "=5", "cost=", "cost=five", "cost=-1", "cost=nan", "cost=inf", "")
    },
    "--queryeval-spend=metadata[cost]=5": "'metadata[cost]' is named without `metadata`: cost=5.00",
    "--queryeval-spend=cost=5 --queryeval-spend=prediction_seconds=9": (
        "--queryeval-spend: a run has one limit, found 'cost=5' and 'prediction_seconds=9'"
    ),
    "-o queryeval_spend=5": "queryeval_spend: expected NAME=VALUE with a number from 0, such as cost=5.00, or off, fou",
    "--queryeval-threshold=prediction_seconds=0.2": (
        "lower is better for 'prediction_seconds': write {prediction_seconds: {max: 0.2}} under `thresholds` of a"
    ),
    "--queryeval-threshold=row_matching_f1=0.95": "min 0.95 of 'row_matching_f1' is above its max 0.9 (a.queryeval.y",
    "--queryeval-threshold=valid_query=all": f"{METRIC_IS_NUMBER} 'valid_query=all'",
    "--queryeval-threshold=valid_query=nan": f"{METRIC_IS_NUMBER} 'valid_query=nan'",
    "--queryeval-threshold==1": f"{METRIC_IS_NUMBER} '=1'",
    "--queryeval-threshold=execution_accuracy=85": "expected a limit from 0 to 1 for 'execution_accuracy', found 85",
    "--queryeval-threshold=triples=1": "no case of kind sql has the metric 'triples'",
    "--queryeval-predictor=inlin": "unknown predictor 'inlin': did you mean 'inline'?",
    "--queryeval-predictor=predct.py:predict": "there is no file predct.py: did you mean 'predict.py'?",
    "--queryeval-predictor=none/gone.jsonl": "there is no file none/gone.jsonl: correct the path, which leads to /",
    "--queryeval-baseline=base.json": "base.json: no such file: write one with ",
    # Where reports cannot be written
    "--queryeval-report=taken": "taken cannot be written: ",
    "--queryeval-report=taken/deep": "taken/deep cannot be written: ",
    "--queryeval-report=pipe.json": "pipe.json cannot be written: ",
    "--queryeval-report=in-md": f"/in-md/report.md {IN_ITS_PLACE}",
    "--queryeval-report=in-junit": f"/in-junit/junit.xml {IN_ITS_PLACE}",
    **{f"--queryeval-{name}={LONG}": LONG[:100] for name in ("replay", "record", "baseline", "report")},
    # Cases
    "a.queryeval.yaml::othr a.queryeval.yaml::one": "a.queryeval.yaml: no case 'othr': did you mean 'other'?",
    "--forked": "--forked: cases cannot run in forked processes: run suites without it, because queries",
    "forked.queryeval.yaml": "forked.queryeval.yaml::one: the tag 'forked' is a marker of pytest-forked: name it othe",
}


@pytest.mark.feature("recording", "ci")
@pytest.mark.parametrize("arguments", USAGE_ERRORS)
def test_what_cannot_be_meant_is_one_usage_error_before_any_case_runs(misused, arguments):
    result = misused.run(*arguments.split(), *(["a.queryeval.yaml"] if arguments.startswith("-") else []))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len([line for line in result.errlines if USAGE_ERRORS[arguments] in line]) == 1
    assert "no case 'one'" not in result.stderr.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert not (misused.path / "asked").exists()
    assert (misused.path / "taken").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("settings", ["", ", dest='mine'", ", action='append'"])
def test_an_option_of_a_conftest_may_have_our_prefix(suite, write, run, settings):
    suite(case("one"))
    write("conftest.py", f"def pytest_addoption(parser):\n    parser.addoption('--queryeval-mine'{settings})\n")

    run("--queryeval-mine=1", "--queryeval-limit=1").assert_outcomes(passed=1)


def test_what_only_looks_like_an_option_with_our_prefix_is_left_to_pytest(suite, run):
    suite(case("one"))

    result = run("-k", "one", "--", "--queryeval-zzz")

    assert "unknown option" not in result.stderr.str()


def test_other_tests_run_in_forked_processes_and_a_tag_is_no_marker_of_a_plugin_that_is_not_there(suite, write, run):
    suite(case("good", tags=["forked"]))
    run().assert_outcomes(passed=1)
    write("conftest.py", FORKED)
    write("test_other.py", "def test_other():\n    pass\n")

    run("--forked", "test_other.py").assert_outcomes(passed=1)
