"""Workers change nothing in a report: threads, processes and schedulers, also those that die."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest
from predictor_sorts import report_of, write_suite
from samples import answer, make_case, query

from pytest_queryeval import METRICS, ExecutorBroken, QueryEvalError, evaluate, load_cases, register_secret, score_pairs
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import Location, SourceError
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.model import Source

EXAMPLES = Path(__file__).parents[1] / "example_suite"
TIMES = {"seconds", "created", "prediction_seconds", "execution_seconds", "scoring_seconds"}
UGLY = """
kind: sql
source: {sqlite: {script: music.sql}}
predictor: predict.py:predict
sources:
  missing: missing.db
cases:
  - {id: right, question: SELECT n FROM singer, gold: SELECT n FROM singer ORDER BY n}
  - {id: wrong, question: SELECT n FROM singer WHERE n > 1, gold: SELECT n FROM singer WHERE n > 2}
  - {id: expected, question: SELECT 1, gold: SELECT 2, on_miss: xfail}
  - {id: unexpected, question: SELECT 1, gold: SELECT 1, xfail: too hard}
  - {id: known, question: SELECT 1, gold: SELECT 2, xfail: too hard}
  - {id: skipped, question: SELECT 1, gold: SELECT 1, skip: later}
  - {id: broken, question: SELECT FROM, gold: SELECT 1}
  - {id: gold-fails, question: SELECT 1, gold: SELECT n FROM dancer}
  - {id: both-fail, question: raise, gold: SELECT n FROM dancer}
  - {id: no-source, question: SELECT 1, gold: SELECT 1, source: missing}
  - {id: no-source-stated, gold: SELECT 1, predicted: SELECT 2, source: missing}
  - {id: no-answer, question: raise, gold: SELECT 1}
  - {id: second-fails, question: raise in trial 2, gold: SELECT 1, trials: 3}
  - {id: trials, question: SELECT trial, gold: SELECT 2, trials: 3, trials_rule: any}
  - {id: empty, question: SELECT n FROM singer WHERE n > 9, gold: SELECT n FROM singer WHERE n > 9}
  - {id: stated, gold_table: {columns: [n], rows: [[1]]}, predicted_table: {columns: [n], rows: [[2]]}}
  - {id: no-score, question: SELECT 1, gold: SELECT 1, thresholds: {test_suite_accuracy: 1}}
  - {id: secret, question: "SELECT 'PADDINGswordfish-77' AS swordfish", gold: SELECT 1}
"""
PREDICT = """
trials = {}

def predict(case):
    trial = trials[case.id] = trials.get(case.id, 0) % (2 if "raise" in case.question else 3) + 1
    if case.question == "raise" or case.question.endswith(f"in trial {trial}"):
        raise ValueError("no swordfish-77 today")
    return case.question.replace("trial", str(trial)).replace("PADDING", "x" * 190)
"""
CONFTEST = """
import os
import signal
import time
from pathlib import Path
from pytest_queryeval import METRICS
from pytest_queryeval.core.groups import GROUPS, Group
from pytest_queryeval.core.metric import metric

HERE = Path(__file__).parent


def values(case, path):
    return [case.id.upper()]


@metric(input="predictions")
def deadly(predicted, prediction):
    if "once" in predicted.query and not (HERE / "died").exists():
        (HERE / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if "always" in predicted.query and not (HERE / "immortal").exists():
        os._exit(3)
    return 1.0


METRICS.register("deadly", deadly)
GROUPS.register("owner", Group(values=values, heading="owner", plural="owners", preposition="owned by"))
"""
EDITS = "from pytest_queryeval.features.causes import EDITS, Edits\nEDITS.register('sql', lambda *_: Edits())\n"


def without_times(value):
    """A report, or a part of one, without times and what is derived from them."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def assert_same(report, expected):
    """Both reports are equal but for times; compared in parts, whose differences pytest can show."""
    entry, wanted = without_times(report), without_times(expected)
    for case, partner in zip(entry.pop("cases"), wanted.pop("cases"), strict=True):
        assert case == partner
    assert entry == wanted


@pytest.fixture
def ugly(tmp_path):
    (tmp_path / "s.queryeval.yaml").write_text(UGLY, encoding="utf-8")
    (tmp_path / "predict.py").write_text(PREDICT, encoding="utf-8")
    (tmp_path / "music.sql").write_text("create table singer (n); insert into singer values (1), (2), (3);")
    register_secret("swordfish-77")
    return load_cases(tmp_path)


@pytest.fixture(scope="module")
def spawned():
    """An executor with a process that knows nothing of these tests."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def deadly(tmp_path):
    """A function that evaluates predicted queries by workers; some of them kill theirs."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "shop.sql").write_text("create table singer (n);")

    def evaluated(queries, *options):
        cases = [{"id": f"c{n:02}", "gold": "SELECT 1", "predicted": text} for n, text in enumerate(queries)]
        write_suite(tmp_path, None, cases, metrics=["execution_accuracy", "deadly"])
        return report_of(tmp_path, "--quiet", *options)

    return evaluated


def messages(report):
    return {case["id"]: case["message"] for case in report["cases"] if case["outcome"] == "error"}


def test_threads_give_the_report_of_one_process(ugly):
    expected = evaluate(ugly)

    with ThreadPoolExecutor(3) as executor:
        report = evaluate(ugly, executor=executor)

    assert_same(report, expected)
    assert messages(report).keys() == {
        *("gold-fails", "both-fail", "no-source", "no-source-stated", "no-answer", "second-fails", "no-score")
    }
    assert {case["outcome"] for case in report["cases"]} == {
        *("passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed")
    }


@pytest.mark.process
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_pools_of_processes_give_the_report_of_one_process(method, ugly, spawned):
    expected = evaluate(ugly)

    if method == "spawn":
        report = evaluate(ugly, executor=spawned)
    else:
        with ProcessPoolExecutor(1, mp_context=get_context(method)) as executor:
            report = evaluate(ugly, executor=executor)

    assert_same(report, expected)
    assert "swordfish" not in json.dumps([case["message"] for case in report["cases"]])


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.feature("evaluate")
def test_processes_of_the_command_give_the_report_of_one_process(tmp_path, capsys):
    def run(*options):
        path = tmp_path / "report.json"
        main(["evaluate", str(EXAMPLES), f"--report={path}", "--quiet", *options])
        report = json.loads(path.read_bytes())
        # Suites that share a file have cases of the same place, which reports keep in the order in which they are done.
        return report | {
            "cases": sorted(report["cases"], key=lambda case: (case["path"], case["line"], case["nodeid"]))
        }

    alone, by_workers = run(), run("--workers=2")
    for report in (alone, by_workers):
        report["environment"].pop("workers", None)

    assert_same(by_workers, alone)


@pytest.mark.process
@pytest.mark.feature("causes", "evaluate")
def test_what_a_conftest_registers_is_in_workers_too_and_a_case_that_kills_its_workers_is_an_error(
    deadly, tmp_path, capsys, monkeypatch
):
    from pytest_queryeval.features import causes

    monkeypatch.setattr(causes.EDITS, "_members", dict(causes.EDITS._members))
    monkeypatch.setattr(causes.EDITS, "_registrations", {})
    (tmp_path / "conftest.py").write_text(CONFTEST + EDITS, encoding="utf-8")
    queries = [
        *["SELECT 1", "SELECT 2", "SELECT n FROM singer WHERE n > 1"] * 6,
        "SELECT 1 AS once",
        "SELECT 1 AS always",
    ]

    report = deadly(queries, "--workers=2")
    told = capsys.readouterr().err
    (tmp_path / "immortal").touch()
    expected = deadly(queries)

    reason = "its worker died 3 times: exit status 3: evaluate it in a single process to see why"
    assert messages(report) == {"c19": f"{reason} ({tmp_path}/s.queryeval.yaml:1)"}
    assert (tmp_path / "died").exists()
    assert "a worker died" in told
    assert "killed by SIGKILL" in told
    others = [[case for case in whole["cases"] if case["id"] != "c19"] for whole in (report, expected)]
    assert without_times(others[0]) == without_times(others[1])
    assert [case["groups"]["owner"] for case in others[0]] == [[f"C{n:02}"] for n in range(19)]
    assert [case["cause"] for case in others[0]] == [None] * 19


@pytest.mark.process
def test_a_broken_executor_raises_with_the_report_of_what_was_done(tmp_path):
    @metric(input="predictions")
    def deadly(predicted, prediction):
        return os._exit(3) if "always" in predicted.query else 1.0

    METRICS.register("deadly", deadly)
    case = make_case(metrics=("execution_accuracy", "valid_query"))
    cases = [replace(case, id=str(number), location=Location(Path("s.yaml"), number)) for number in range(61)]
    cases[60] = replace(cases[60], predicted=query("x"), metadata={"dies": Dying()})

    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor,
        pytest.raises(ExecutorBroken, match="make a new one") as caught,
    ):
        evaluate(cases, executor=executor)

    assert 0 < caught.value.report["totals"]["passed"] < 61
    assert caught.value.report["interrupted"]


class Dying:
    """Ends each process that reads it."""

    def __reduce__(self):
        return os._exit, (3,)


def test_an_executor_that_is_closed_is_broken(ugly):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()

    with pytest.raises(ExecutorBroken, match="cannot schedule new futures after shutdown") as caught:
        evaluate(ugly, executor=executor)

    assert caught.value.report["totals"] == {**caught.value.report["totals"], "cases": 1, "skipped": 1}


@pytest.mark.process
def test_a_secret_that_only_the_caller_knows_is_removed_before_a_cell_is_cut(spawned):
    secret = "swordfish-77-of-this-test"
    register_secret(secret)
    cells = answer((f"{'x' * 190}{secret}{'y' * 100}",))

    report = evaluate([make_case(golds=(cells,), predicted=cells)], executor=spawned)

    assert "swordf" not in json.dumps(report["cases"])


@pytest.mark.process
@pytest.mark.parametrize("is_here", [True, False])
def test_the_password_of_a_source_is_removed_also_before_the_source_is_opened(spawned, is_here):
    settings = {"url": "postgresql://me:swordfish-81@127.0.0.1:9/music"}
    served = Source(name="served", engine="sqlalchemy", settings=settings, folder=Path())
    said, opened = make_case(predicted=answer(("swordfish-81",))), make_case(source=served, golds=(query("SELECT 1"),))
    cases = [replace(said, id="a"), replace(opened, id="b")]

    report = evaluate(cases, executor=None if is_here else spawned)

    assert "[redacted]" in json.dumps(report["cases"][0])
    assert "swordfish" not in json.dumps(report)


@pytest.mark.process
def test_what_the_program_itself_registers_is_refused_by_workers(spawned):
    METRICS.register("local", lambda gold, predicted: 1.0)

    with pytest.raises(QueryEvalError, match=r"the metric 'local' is registered in .*: register it at the top level"):
        evaluate([make_case(metrics=("local",))], executor=spawned)


def test_slow_answers_do_not_hold_up_others(tmp_path):
    (tmp_path / "predict.py").write_text(
        "import asyncio, pathlib\n"
        "async def predict(case):\n"
        "    while case.question == 'slow' and not pathlib.Path(__file__).with_name('go').exists():\n"
        "        await asyncio.sleep(0.01)\n"
        "    return 'SELECT 1'\n"
    )
    cases = [{"id": f"c{n}", "question": "quick" if n else "slow", "gold": "SELECT 1"} for n in range(30)]
    (tmp_path / "shop.sql").write_text("create table singer (n);")
    write_suite(tmp_path, {"python": "predict.py:predict", "concurrency": 2}, cases, metrics=["counted"])
    done = []

    def counted(gold, predicted):
        done.append(1)
        if len(done) == 29:
            (tmp_path / "go").touch()
        return 1.0

    METRICS.register("counted", counted)
    with ThreadPoolExecutor(2) as executor:
        report = evaluate(load_cases(tmp_path), executor=executor)

    assert report["totals"]["passed"] == len(done) == 30


def test_times_are_not_measured_by_several_workers():
    with ThreadPoolExecutor(1) as executor:
        for measure in (
            lambda: evaluate([make_case(metrics=("ves",))], executor=executor),
            lambda: score_pairs([], metrics=["ves"], executor=executor),
        ):
            with pytest.raises(QueryEvalError, match=r"metric 'ves' .* leave executor out"):
                measure()


def test_one_case_may_be_listed_twice_and_what_cannot_be_sent_is_an_error_of_its_case():
    case = make_case()
    good = [replace(case, id=f"c{number}") for number in range(9)]
    bad = replace(case, id="bad", location=Location(Path("s.yaml"), 7), metadata={"lock": threading.Lock()})

    with ThreadPoolExecutor(1) as executor:
        assert evaluate([case, case], executor=executor)["totals"]["passed"] == 2
        report = evaluate([*good, bad, *good], executor=executor)

    assert report["totals"]["passed"] == 18
    assert messages(report) == {
        "bad": "it cannot be sent to a worker: TypeError: cannot pickle '_thread.lock' object (s.yaml:7)"
    }


@pytest.mark.process
@pytest.mark.feature("evaluate", "recording")
def test_workers_record_and_replay(ugly, tmp_path):
    recorded = report_of(tmp_path, f"--record={tmp_path / 'rec'}", "--workers=2", "--quiet")
    assert list((tmp_path / "rec" / "executions").glob("*/*.json"))
    (tmp_path / "predict.py").write_text("raise RuntimeError('not in a replay')")
    replayed = report_of(tmp_path, f"--replay={tmp_path / 'rec'}", "--workers=2", "--quiet")

    outcomes = [
        {case["id"]: (case["outcome"], case["scores"]) for case in report["cases"] if case["id"] != "secret"}
        for report in (recorded, replayed)
    ]
    assert outcomes[0] == outcomes[1]


@pytest.mark.feature("evaluate")
def test_processes_that_cannot_be_started_stop_the_run(deadly, monkeypatch, capsys):
    def refuse(process):
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr("multiprocessing.context.ForkServerProcess.start", refuse)

    assert deadly(["SELECT 1"], "--workers=1")["stopped"]
    assert "no worker process can be started: AF_UNIX path too long: " in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.feature("evaluate")
def test_the_end_of_a_program_that_is_killed_leaves_no_worker(tmp_path):
    (tmp_path / "p.py").write_text("def ask(case):\n    return 'SELECT 1'\n")
    (tmp_path / "shop.sql").write_text("create table singer (n);")
    (tmp_path / "conftest.py").write_text(
        "import os, time\nfrom pathlib import Path\nfrom pytest_queryeval import METRICS\n\n"
        "def waits(gold, predicted):\n"
        "    Path(__file__).with_name(f'{os.getpid()}.pid').touch()\n    time.sleep(0.4)\n    return 1.0\n\n"
        "METRICS.register('waits', waits)\n"
    )
    cases = [{"id": str(n), "question": "q", "gold": "SELECT 1"} for n in range(40)]
    write_suite(tmp_path, "p.py:ask", cases, metrics=["waits"])
    command = [sys.executable, "-m", "pytest_queryeval", "evaluate", ".", "--workers=2"]

    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        while len(pids := [path.stem for path in tmp_path.glob("*.pid")]) < 2 and program.poll() is None:
            time.sleep(0.02)
        program.send_signal(signal.SIGKILL)
        program.wait(60)

    deadline = time.monotonic() + 90  # a worker that is busy ends when it wants to answer
    while any(Path("/proc", pid).exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path("/proc", pid).exists() for pid in pids)


# How work is sent, with an executor that makes each call at once


class InlineExecutor(Executor):
    """Makes each call at once; pairs whose gold is `deadly` kill the worker that has them."""

    def __init__(self, error=None):
        self.sizes = []
        self.calls = []
        self.error = error

    def submit(self, function, call):
        future = Future()
        pairs = pickle.loads(call.items)
        self.sizes.append(len(pairs))
        self.calls.append(repr(call))
        if self.error and any(gold == "deadly" for gold, _ in pairs):
            future.set_exception(self.error)
        else:
            future.set_result(function(call))
        return future


class KilledWorker(Exception):  # noqa: N818
    """Dask's error of a call whose workers died."""

    allowed_failures = 3


@pytest.fixture
def dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed.scheduler", SimpleNamespace(KilledWorker=KilledWorker))
    return InlineExecutor(KilledWorker("Attempted to run on 4 different workers"))


@metric(input="queries", max_score=100)
def length(gold, predicted):
    return float(len(gold))


def scored(executor, golds):
    """What the scores of texts are, pair by pair, or why there is none."""
    METRICS.register("length", length)
    pairs = score_pairs(((gold, "SELECT 1") for gold in golds), metrics=["length"], executor=executor)
    return [pair.scores.get("length", pair.error) for pair in pairs]


def test_chunks_grow_until_they_take_some_time_and_are_in_order():
    executor = InlineExecutor()
    golds = ["x" * (n % 7 + 1) for n in range(1_500)]

    assert scored(executor, golds) == [float(len(gold)) for gold in golds]
    assert executor.sizes[0] == 4
    assert len(executor.sizes) < 100
    assert scored(InlineExecutor(), []) == []


def test_a_lost_chunk_is_halved_until_the_item_is_tried_with_nothing_else(dask):
    first, *others = scored(dask, ["deadly", "xx", "xxx", "xxxx"])

    assert first.startswith("its worker died 8 times: the logs of Dask's workers say more: evaluate it in a single")
    assert others == [2.0, 3.0, 4.0]
    assert dask.sizes == [4, 2, 2, 1, 1, 1]


def test_workers_that_do_nothing_but_die_break_the_executor(dask):
    with pytest.raises(ExecutorBroken, match="50 workers died one after the other: the logs of Dask's workers say"):
        scored(dask, ["deadly"] * 1000)


def test_a_lost_chunk_is_done_again_before_others_are_sent_too_far_ahead(dask, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.runs.workers.MAX_AHEAD", 4)

    assert scored(dask, ["deadly", *["xx"] * 11])[1:] == [2.0] * 11


def test_a_call_shows_nothing_of_what_it_sends():
    register_secret("swordfish-79")
    executor = InlineExecutor()

    assert scored(executor, ["swordfish-79"]) == [12.0]
    assert executor.calls
    assert "swordfish" not in str(executor.calls)


class Unreadable:
    """Raises in each process that reads it."""

    def __reduce__(self):
        return int, ("swordfish",)


def test_what_no_worker_can_read_is_an_error_of_its_item():
    with ThreadPoolExecutor(1) as executor:
        first, unreadable, last = scored(executor, ["x", Unreadable(), "xxx"])

    reason = "it cannot be sent to a worker: ValueError: invalid literal for int() with base 10: 'swordfish'"
    assert (first, unreadable, last) == (1.0, reason, 3.0)


def test_errors_of_ours_can_be_sent_between_processes():
    error = pickle.loads(pickle.dumps(SourceError("gone")))

    assert (type(error), str(error)) == (SourceError, "gone")
