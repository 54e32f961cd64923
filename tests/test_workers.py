import json
import os
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
from samples import answer, make_case, query

from pytest_queryeval import METRICS, ExecutorBroken, QueryEvalError, evaluate, load_cases, register_secret, score_pairs
from pytest_queryeval.cli import main
from pytest_queryeval.cli.conftests import import_conftests
from pytest_queryeval.core.errors import Location, SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.registry import Registration
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.evaluate.processes import WorkerProcesses
from pytest_queryeval.features.recording import Recording
from pytest_queryeval.runs import workers
from pytest_queryeval.runs.evaluate import NamedCase, evaluate_cases
from pytest_queryeval.runs.workers import Dispatcher, Job, WorkerDied

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
DEADLY = """
import os
import signal
import subprocess
import signal
import time
from pathlib import Path
from pytest_queryeval import METRICS
from pytest_queryeval.core.metric import metric

@metric(input="predictions")
def deadly(predicted, prediction):
    flag = Path(__file__).with_name("died")
    if prediction.metadata == {} and "once" in predicted.query and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if "ends" in predicted.query:
        os.kill(int(Path(__file__).with_name("scheduler.pid").read_text()), signal.SIGKILL)
        time.sleep(60)
    if "always" in predicted.query and not Path(__file__).with_name("immortal").exists():
        time.sleep(2 * Path(__file__).with_name("late").exists())
        os._exit(3)
    return 1.0

METRICS.register("deadly", deadly)
"""


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
def registries(monkeypatch):
    """Forget what earlier tests have registered, and after the test what it registers."""
    monkeypatch.setattr(METRICS, "_members", dict(METRICS._members))
    for name in [name for name in sys.modules if name.startswith("queryeval conftest")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def ugly(tmp_path):
    (tmp_path / "s.queryeval.yaml").write_text(UGLY, encoding="utf-8")
    (tmp_path / "predict.py").write_text(PREDICT, encoding="utf-8")
    (tmp_path / "music.sql").write_text("create table singer (n); insert into singer values (1), (2), (3);")
    return load_cases(tmp_path)


@pytest.fixture(scope="module")
def own_processes():
    with WorkerProcesses(2) as executor:
        yield executor


def deadly_cases(folder, queries):
    (folder / "conftest.py").write_text(DEADLY, encoding="utf-8")
    suite = {
        "kind": "sql",
        "source": {"sqlite": {"script": "music.sql"}},
        "metrics": ["execution_accuracy", "deadly"],
        "cases": [{"id": f"c{number}", "gold": "SELECT 1", "predicted": query} for number, query in enumerate(queries)],
    }
    (folder / "music.sql").write_text("create table singer (n);")
    (folder / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    import_conftests(folder)
    return load_cases(folder)


def messages(report):
    return {case["id"]: case["message"] for case in report["cases"] if case["outcome"] == "error"}


def test_threads_give_the_report_of_one_process(ugly):
    register_secret("swordfish-77")
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
@pytest.mark.parametrize("folder", ["sql", "abstention", pytest.param(".", marks=pytest.mark.slow)])
def test_processes_give_the_report_of_one_process(folder, ugly, own_processes, registries):
    register_secret("swordfish-77")
    import_conftests(EXAMPLES)
    examples = [
        case for case in load_cases(EXAMPLES / folder) if "semantic_similarity" not in case.settings.requested_metrics
    ]
    # Suites that share a file have cases of the same place, which reports keep in the order in which they are done.
    cases = [*ugly, *{(case.location, case.id): case for case in examples}.values()]
    expected = evaluate(cases)

    report = evaluate(cases, executor=own_processes)

    assert_same(report, expected)
    assert "swordfish" not in json.dumps([case["message"] for case in report["cases"]])


REGISTERING = """
from dataclasses import replace
from pytest_queryeval.core.groups import GROUPS, Group
from pytest_queryeval.evaluation import ANALYSES

def values(case, path):
    return [case.id.upper()]

GROUPS.register("owner", Group(values=values, heading="owner", plural="owners", preposition="owned by"))
ANALYSES.register("noted", lambda result, session: result.with_details(analysed=result.case.id))
"""


@pytest.mark.process
def test_groups_and_analyses_of_a_conftest_are_in_workers_too(tmp_path):
    (tmp_path / "conftest.py").write_text(REGISTERING, encoding="utf-8")
    items = "".join(f"  - {{id: {name}, gold: SELECT 1, predicted: SELECT 1}}\n" for name in "ab")
    (tmp_path / "s.queryeval.yaml").write_text(f"kind: sql\nsource: {{sqlite: {{script: a.sql}}}}\ncases:\n{items}")
    (tmp_path / "a.sql").write_text("create table singer (n);")
    import_conftests(tmp_path)
    cases = load_cases(tmp_path)
    expected = evaluate(cases)

    with WorkerProcesses(1) as executor:
        report = evaluate(cases, executor=executor)

    assert_same(report, expected)
    assert [case["groups"]["owner"] for case in report["cases"]] == [["A"], ["B"]]
    assert [case["details"]["analysed"] for case in report["cases"]] == ["a", "b"]


@pytest.mark.process
@pytest.mark.feature("causes")
def test_edits_of_a_conftest_are_in_workers_too(tmp_path, monkeypatch):
    from pytest_queryeval.features import causes

    monkeypatch.setattr(causes.EDITS, "_members", dict(causes.EDITS._members))
    monkeypatch.setattr(causes.EDITS, "_registrations", {})
    registers = "from pytest_queryeval.features.causes import EDITS, Edits\nEDITS.register('sql', lambda *_: Edits())\n"
    (tmp_path / "conftest.py").write_text(registers, encoding="utf-8")
    case = "{id: a, gold: SELECT n FROM singer WHERE n > 1, predicted: SELECT n FROM singer WHERE n > 2}"
    (tmp_path / "s.queryeval.yaml").write_text(f"kind: sql\nsource: {{sqlite: {{script: a.sql}}}}\ncases: [{case}]\n")
    (tmp_path / "a.sql").write_text("create table singer (n); insert into singer values (1), (2), (3);")
    import_conftests(tmp_path)

    with WorkerProcesses(1) as executor:
        report = evaluate(load_cases(tmp_path), executor=executor)

    assert [case["cause"] for case in report["cases"]] == [None]


@pytest.mark.process
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes_give_the_report_of_one_process(method, ugly):
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as executor:
        report = evaluate(ugly, executor=executor)

    assert_same(report, evaluate(ugly))


@pytest.mark.process
def test_a_secret_that_only_the_caller_knows_is_removed_before_a_cell_is_cut(ugly, own_processes):
    secret = "swordfish-77-of-this-test"
    register_secret(secret)
    cells = answer((f"{'x' * 190}{secret}{'y' * 100}",))

    report = evaluate([make_case(golds=(cells,), predicted=cells)], executor=own_processes)

    assert "swordf" not in json.dumps(report["cases"])


@pytest.mark.parametrize("executor", ["own_processes", None])
@pytest.mark.process
def test_the_password_of_a_source_is_removed_also_before_the_source_is_opened(executor, request):
    settings = {"url": "postgresql://me:swordfish-81@127.0.0.1:9/music"}
    served = Source(name="served", engine="sqlalchemy", settings=settings, folder=Path())
    said, opened = make_case(predicted=answer(("swordfish-81",))), make_case(source=served, golds=(query("SELECT 1"),))

    report = evaluate(
        [replace(said, id="a"), replace(opened, id="b")], executor=executor and request.getfixturevalue(executor)
    )

    assert "[redacted]" in json.dumps(report["cases"][0])
    assert "swordfish" not in json.dumps(report)


@pytest.mark.process
def test_a_case_that_kills_its_workers_is_an_error_and_the_others_are_right(tmp_path, own_processes, registries):
    cases = deadly_cases(tmp_path, [*["SELECT 1", "SELECT 2"] * 8, "SELECT 1 AS always", *["SELECT 1"] * 8])

    report = evaluate(cases, executor=own_processes)

    (tmp_path / "immortal").touch()
    expected = evaluate(cases)
    reason = "its worker died 3 times: exit status 3: evaluate it in a single process to see why"
    assert messages(report) == {"c16": f"{reason} ({cases[16].location})"}
    without_value = [[case for case in entry["cases"] if case["id"] != "c16"] for entry in (report, expected)]
    assert without_times(without_value[0]) == without_times(without_value[1])


@pytest.mark.process
def test_a_worker_that_is_killed_changes_nothing_in_the_report(tmp_path, own_processes, registries):
    cases = deadly_cases(tmp_path, [*["SELECT 1", "SELECT 2"] * 10, "SELECT 1 AS once"])
    lines = []

    with Session() as session:
        named = [NamedCase(case, case.id, "s") for case in cases]
        results = list(evaluate_cases(named, session, executor=own_processes, tell=lines.append))
        expected = list(evaluate_cases(named, session))

    assert (tmp_path / "died").exists()
    assert without_times(sorted(results, key=lambda case: int(case["id"][1:]))) == without_times(expected)
    assert any("a worker died" in line and "killed by SIGKILL" in line for line in lines)


@pytest.mark.process
def test_a_broken_executor_raises_with_the_report_of_what_was_done(tmp_path, registries):
    cases = deadly_cases(tmp_path, [*["SELECT 1"] * 60, "SELECT 1 AS always"])

    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor,
        pytest.raises(ExecutorBroken, match="make a new one") as caught,
    ):
        evaluate(cases, executor=executor)

    assert 0 < caught.value.report["totals"]["passed"] < 61
    assert caught.value.report["interrupted"]


def test_an_executor_that_is_closed_is_broken(ugly):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()

    with pytest.raises(ExecutorBroken, match="cannot schedule new futures after shutdown") as caught:
        evaluate(ugly, executor=executor)

    assert caught.value.report["totals"] == {**caught.value.report["totals"], "cases": 1, "skipped": 1}


@pytest.mark.process
def test_what_the_program_itself_registers_is_refused_by_workers(own_processes, registries):
    METRICS.register("local", lambda gold, predicted: 1.0)
    case = make_case(metrics=("local",))

    with pytest.raises(QueryEvalError, match=r"the metric 'local' is registered in .*: register it at the top level"):
        evaluate([case], executor=own_processes)


def test_a_module_that_registers_something_is_known_by_its_file(tmp_path, registries):
    deadly_cases(tmp_path, ["SELECT 1"])

    name = f"queryeval conftest of {tmp_path}"
    assert METRICS.registrations() == {"deadly": Registration(name, str(tmp_path / "conftest.py"))}


def test_slow_answers_do_not_hold_up_others(tmp_path):
    (tmp_path / "predict.py").write_text(
        "import asyncio, pathlib\n"
        "async def predict(case):\n"
        "    for _ in range(1000 * (case.question == 'slow')):\n"
        "        if pathlib.Path(__file__).with_name('go').exists():\n"
        "            break\n"
        "        await asyncio.sleep(0.01)\n"
        "    return 'SELECT 1'\n"
    )
    suite = {
        "kind": "sql",
        "source": {"sqlite": {"script": "music.sql"}},
        "predictor": {"python": "predict.py:predict", "concurrency": 2},
        "cases": [{"id": f"c{n}", "question": "quick" if n else "slow", "gold": "SELECT 1"} for n in range(30)],
    }
    (tmp_path / "music.sql").write_text("create table singer (n);")
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    named = [NamedCase(case, case.id, "s") for case in load_cases(tmp_path)]

    order = []
    with ThreadPoolExecutor(2) as executor, Session() as session:
        for case in evaluate_cases(named, session, executor=executor):
            order.append(case["id"])
            if len(order) == 29:
                (tmp_path / "go").touch()

    assert order[-1] == "c0"
    assert len(set(order)) == 30


def test_a_predictor_that_blocks_its_event_loop_is_an_error_of_its_cases(tmp_path):
    (tmp_path / "predict.py").write_text("import time\nasync def predict(case):\n    time.sleep(3)\n")
    suite = {
        "kind": "sql",
        "predictor": {"python": "predict.py:predict", "timeout": 0.1},
        "metrics": ["execution_accuracy"],
        "cases": [{"id": name, "question": "What?", "gold_table": {"columns": ["a"], "rows": [[1]]}} for name in "ab"],
    }
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps({**suite, "source": "x.db"}), encoding="utf-8")

    with ThreadPoolExecutor(1) as executor:
        report = evaluate(load_cases(tmp_path), executor=executor)

    assert all("blocks its event loop" in message for message in messages(report).values())
    assert len(messages(report)) == 2


def test_times_are_not_measured_by_several_workers():
    case = make_case(metrics=("ves",))

    with ThreadPoolExecutor(1) as executor, pytest.raises(QueryEvalError, match=r"metric 'ves' .* leave executor out"):
        evaluate([case], executor=executor)
    with ThreadPoolExecutor(1) as executor, pytest.raises(QueryEvalError, match=r"metric 'ves' .* leave executor out"):
        score_pairs([], metrics=["ves"], executor=executor)


def test_one_case_may_be_listed_twice():
    case = make_case()

    with ThreadPoolExecutor(1) as executor:
        assert evaluate([case, case], executor=executor)["totals"]["passed"] == 2


def test_what_cannot_be_sent_is_an_error_of_its_case():
    good = [replace(make_case(), id=f"c{number}") for number in range(9)]
    bad = replace(make_case(), id="bad", location=Location(Path("s.yaml"), 7), metadata={"lock": threading.Lock()})

    with ThreadPoolExecutor(1) as executor:
        report = evaluate([*good, bad, *good], executor=executor)

    assert report["totals"]["passed"] == 18
    assert messages(report) == {
        "bad": "it cannot be sent to a worker: TypeError: cannot pickle '_thread.lock' object (s.yaml:7)"
    }


class Unreadable:
    """Raises in each process that reads it."""

    def __reduce__(self):
        return int, ("swordfish",)


def test_what_no_worker_can_read_is_an_error_of_its_item():
    with ThreadPoolExecutor(1) as executor:
        results = run_doubled(executor, [0, 1, Unreadable(), 3])

    reason = "it cannot be sent to a worker: ValueError: invalid literal for int() with base 10: 'swordfish'"
    assert [results[0], results[1], results[3]] == [0, 2, 6]
    assert results[2].endswith(f": {reason}")


def test_workers_record_and_replay(ugly, tmp_path):
    named = [NamedCase(case, case.id, "s") for case in ugly if case.id != "secret"]

    def run(*, replay):
        recording = Recording(tmp_path / "recorded", replay=replay, root=tmp_path)
        with ThreadPoolExecutor(2) as executor, Session(recording=recording) as session:
            results = evaluate_cases(named, session, executor=executor)
            return without_times(sorted(results, key=lambda case: case["line"]))

    recorded = run(replay=False)
    assert list((tmp_path / "recorded" / "executions").glob("*/*.json"))
    (tmp_path / "predict.py").write_text("raise RuntimeError('not in a replay')")
    replayed = run(replay=True)

    outcomes = [[(case["id"], case["outcome"], case["scores"]) for case in run] for run in (recorded, replayed)]
    assert outcomes[0] == outcomes[1]


def test_processes_that_cannot_be_started_break_the_executor(monkeypatch):
    def refuse(process):
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr("multiprocessing.context.ForkServerProcess.start", refuse)

    with WorkerProcesses(1) as executor, pytest.raises(ExecutorBroken, match=r"AF_UNIX path too long: .*TMPDIR"):
        executor.submit(int).result()


@pytest.mark.process
def test_closing_the_workers_ends_one_that_is_busy():
    executor = WorkerProcesses(2)
    pid = executor.submit(os.getpid).result()
    executor.submit(time.sleep, 60)
    executor.submit(time.sleep, 60)
    began = time.monotonic()

    executor.shutdown()

    assert time.monotonic() - began < 20
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.process
def test_an_error_in_a_worker_is_raised_with_its_traceback(own_processes):
    with pytest.raises(ValueError, match="invalid literal") as caught:
        own_processes.submit(int, "x").result()

    assert "_serve" in caught.value.__notes__[0]


@pytest.mark.feature("evaluate")
@pytest.mark.parametrize("address", ["tcp://a:1", "localhost:8786", "dask", "dask:/a:1"])
def test_an_address_of_no_cluster_is_refused(capsys, address):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(EXAMPLES / "sql"), "--on", address])

    assert stop.value.code == 2
    assert capsys.readouterr().err == f"--on: expected the address of a cluster, dask://…, found '{address}'\n"


class InlineExecutor(Executor):
    """Makes each call at once; `deadly` numbers kill the worker that has them."""

    def __init__(self, deadly=(), error=lambda: WorkerDied("exit status 9")):
        self.sizes = []
        self.deadly = deadly
        self.error = error

    def submit(self, function, call):
        future = Future()
        numbers = workers.pickle.loads(call.items)
        self.sizes.append(len(numbers))
        if set(numbers) & set(self.deadly):
            future.set_exception(self.error())
        else:
            future.set_result(function(call))
        return future


def doubled(numbers, session):
    return [2 * number for number in numbers]


def run_doubled(executor, items):
    job = Job(work=doubled, registered=())
    dispatcher = Dispatcher(executor, job, failed=lambda item, reason: f"{item}: {reason}", redacted=lambda item: item)
    actual = {}
    for first, results in dispatcher.run(items):
        actual |= dict(enumerate(results, first))
    return [actual[number] for number in range(len(actual))]


def test_chunks_grow_until_they_take_some_time():
    executor = InlineExecutor()

    assert run_doubled(executor, range(20_000)) == [2 * number for number in range(20_000)]
    assert executor.sizes[0] == 4
    assert len(executor.sizes) < 100


def test_a_lost_chunk_is_halved_until_the_item_is_alone():
    executor = InlineExecutor(deadly=[2])

    results = run_doubled(executor, range(4))

    assert results == [0, 2, "2: its worker died 3 times: exit status 9: evaluate it in a single process to see why", 6]
    assert executor.sizes == [4, 2, 2, 1, 1, 1, 1]


def test_dask_is_believed_once_an_item_was_tried_with_nothing_else(monkeypatch):
    class KilledWorker(Exception):  # noqa: N818
        allowed_failures = 3

    monkeypatch.setitem(sys.modules, "distributed.scheduler", SimpleNamespace(KilledWorker=KilledWorker))
    executor = InlineExecutor(deadly=[0], error=lambda: KilledWorker("Attempted to run on 4 different workers"))

    results = run_doubled(executor, range(2))

    assert results[0].startswith("0: its worker died 8 times: the logs of Dask's workers say more: evaluate it in")
    assert results[1] == 2
    assert executor.sizes == [2, 1, 1, 1]


def test_workers_that_do_nothing_but_die_break_the_executor():
    executor = InlineExecutor(deadly=range(1000))

    with pytest.raises(ExecutorBroken, match="50 workers died one after the other: exit status 9: evaluate in"):
        run_doubled(executor, range(1000))


def test_a_lost_chunk_is_done_again_before_others_are_sent_too_far_ahead(monkeypatch):
    monkeypatch.setattr(workers, "MAX_AHEAD", 4)

    results = run_doubled(InlineExecutor(deadly=[0]), range(12))

    assert results[1:] == [2 * number for number in range(1, 12)]


def test_a_call_shows_nothing_of_what_it_sends():
    values = []

    class Logging(InlineExecutor):
        def submit(self, *called):
            values.append(repr(called))
            return super().submit(*called)

    register_secret("swordfish-79")

    assert run_doubled(Logging(), ["swordfish-79"]) == ["swordfish-79" * 2]
    assert values
    assert "swordfish" not in str(values)


def test_no_items_have_no_results():
    assert run_doubled(InlineExecutor(), []) == []


def test_items_that_are_not_known_yet_are_waited_for():
    def items():
        for number in range(9):
            yield None
            yield number

    assert run_doubled(InlineExecutor(), items()) == [2 * number for number in range(9)]


def test_errors_of_ours_can_be_sent_between_processes():
    error = SourceError("gone")

    actual = workers.pickle.loads(workers.pickle.dumps(error))

    assert (type(actual), str(actual)) == (SourceError, "gone")


PROGRAM = """
import os
import signal
import subprocess
import time
from pytest_queryeval.features.evaluate.processes import WorkerProcesses

if __name__ == "__main__":
    with WorkerProcesses(2) as executor:
        pids = {future.result() for future in [executor.submit(os.getpid) for _ in range(9)]}
        busy = executor.submit(time.sleep, 1.5)
        time.sleep(0.2)
        print(*pids, flush=True)
        busy.result()
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_program_leaves_no_worker(number, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, tmp_path / "program.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as program:
        pids = program.stdout.readline().split()
        assert len(pids) == 2
        program.send_signal(number)
        program.wait(60)

    deadline = time.monotonic() + 90  # a worker that is busy ends when it wants to answer
    while any(Path("/proc", pid.decode()).exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path("/proc", pid.decode()).exists() for pid in pids)
