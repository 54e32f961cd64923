"""Calls of systems of other packages in a run: retries, limits, many at once, and what ends them.

What holds for all sorts of predictors is in test_predictor_contract.py.
"""

import asyncio
import math
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from samples import change, make_case, query
from suites import load

from pytest_queryeval import evaluate
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import Location, PredictorError
from pytest_queryeval.core.model import SECONDS_RULE, Prediction, PredictorSpec, Source
from pytest_queryeval.predictors import PREDICTORS, PredictorType

pytestmark = pytest.mark.process

NO_PAUSE = f"busy (its `pause` has to be {SECONDS_RULE}: convert it with float())"
ODD_PAUSES = ("5", None, math.nan, 10**400, -1)


class System:
    """A system under test that counts its calls and does what it is told to."""

    concurrency = 1
    retries = 0

    def __init__(self, do=lambda case, nth: case.question):
        self.asked = []
        self.threads = set()
        self.most = self.closed = self._under_way = 0
        self._do = do

    def predict(self, case, trial):
        self.asked.append((case.id, trial))
        self.threads.add(threading.current_thread())
        return answer(self._do(case, len(self.asked)))

    def close(self):
        self.closed += 1


class AsyncSystem(System):
    concurrency = 4

    async def predict(self, case, trial):
        self.asked.append((case.id, trial))
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            return answer(await self._do(case, len(self.asked)))
        finally:
            self._under_way -= 1

    async def close(self):
        self.closed += 1


def answer(text):
    return Prediction(query(text)) if isinstance(text, str) else text


async def said(case, nth):
    await asyncio.sleep(0.01)
    return case.question


async def forever(case, nth):
    await asyncio.sleep(1_000)


async def refused(case, nth):
    raise PredictorError("no connection", temporary=True, unreachable=True)


def failing(error, until=10**9):
    """A coroutine function that raises an error in its first calls."""

    async def fails(case, nth):
        if nth < until:
            raise error
        return case.question

    return fails


def install(system, *, name="system", **settings):
    """Makes cases for a system, which nothing but texts is asked of."""
    PREDICTORS.register(name, PredictorType(opener=lambda spec: system))
    spec = PredictorSpec(kind=name, settings={}, folder=Path(), **settings)
    return lambda **changes: make_case(
        **{"question": "q", "predictor": spec, "predicted": None, "metrics": (), "thresholds": {}, **changes}
    )


def questions(made, number, suite="s.queryeval.yaml", **changes):
    place = Path(suite)
    return [
        made(id=f"c{index}", question=f"q{index}", location=Location(place, index), **changes)
        for index in range(number)
    ]


def run(cases, **options):
    """What a run says of each case: its query, or why it is an error."""
    report = evaluate(cases, **options)
    return [(case["predicted"] or {}).get("query") or case["message"].rpartition(" (")[0] for case in report["cases"]]


@pytest.fixture(autouse=True)
def no_loop_outlives_a_run():
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("queryeval") and thread.name != "queryeval-call":
            thread.join(30)  # one that a test has let go may still be on its way
            assert not thread.is_alive(), thread.name


def test_a_function_is_called_in_turn_in_the_thread_of_the_run_and_closed_once():
    system, awaited = System(), AsyncSystem(said)
    cases = [*questions(install(system), 3), *questions(install(awaited, name="other"), 1, "t.queryeval.yaml")]

    assert run(cases) == ["q0", "q1", "q2", "q0"]
    assert system.threads == {threading.main_thread()}
    assert (system.closed, awaited.closed) == (1, 1)


@pytest.mark.parametrize(("executor", "trials"), [(False, {1, 2}), (True, {1, 2, 3, 4, 5})])
def test_trials_that_may_stop_are_asked_for_as_they_are_needed_and_all_before_they_are_sent_to_workers(
    executor, trials
):
    system = AsyncSystem(said)
    stops = {"trials": 5, "stops_trials": True, "trials_rule": 0.4}
    case = install(system)(**stops, thresholds=make_case().settings.thresholds, metrics=("valid_query",), question="")

    with ThreadPoolExecutor(1) as workers:
        evaluate([replace(case, question="q")], executor=workers if executor else None)

    assert (
        {trial for _, trial in system.asked} == trials if executor else {trial for _, trial in system.asked} <= trials
    )


@pytest.mark.parametrize(
    ("error", "until", "retries", "calls", "message"),
    [
        (PredictorError("busy", temporary=True, pause=0.01), 3, 2, 3, "q"),
        (PredictorError("HTTP 429", temporary=True), 9, 1, 2, "HTTP 429 (tried 2 times)"),
        (PredictorError("HTTP 401"), 9, 5, 1, "HTTP 401"),
        (
            PredictorError("later", temporary=True, pause=61),
            9,
            5,
            1,
            "later (it asks to wait 61 s, and calls wait 60 s at most)",
        ),
        (PredictorError("busy", temporary=True), 9, 0, 1, "busy (not repeated: `retries` of the predictor is 0)"),
        *((PredictorError("busy", temporary=True, pause=it), 9, 1, 1, NO_PAUSE) for it in ODD_PAUSES),
        (TimeoutError("slow"), 2, 1, 2, "q"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_what_is_temporary_is_tried_again_as_often_as_is_set(
    error, until, retries, calls, message, is_async, monkeypatch
):
    monkeypatch.setattr("pytest_queryeval.evaluation.prediction_call.FIRST_PAUSE", 0.02)
    fails = failing(error, until)
    system = AsyncSystem(fails) if is_async else System(lambda case, nth: asyncio.run(fails(case, nth)))

    assert run([install(system, retries=retries)()]) == [message]
    assert len(system.asked) == calls


def test_a_pause_is_as_long_as_the_system_asks_for():
    began = time.monotonic()

    run([install(AsyncSystem(failing(PredictorError("busy", temporary=True, pause=0.3), 2)), retries=1)()])

    assert time.monotonic() - began >= 0.3


async def odd_one(case, nth):
    if case.id == "c1":
        raise KeyError("gone")
    return case.question if case.id != "c2" else 5


def test_one_call_that_fails_leaves_the_others_alone():
    first, failed, odd, last = run(questions(install(AsyncSystem(odd_one)), 4))

    assert (first, last) == ("q0", "q3")
    assert failed.startswith("the predictor raised KeyError: 'gone' (test_prefetch.py:")
    assert odd == "the predictor returned int, not a Prediction"


def test_a_predictor_that_nothing_answers_for_is_asked_no_more():
    system = AsyncSystem(refused)

    assert set(run(questions(install(system, retries=0, concurrency=1), 9))) == {"no connection"}
    assert len(system.asked) == 5


def test_a_predictor_that_answers_now_and_then_is_asked_for_every_case():
    async def now_and_then(case, nth):
        return await refused(case, nth) if nth % 5 else case.question

    system = AsyncSystem(now_and_then)
    run(questions(install(system, retries=0, concurrency=1), 11))

    assert len(system.asked) == 11


def test_a_coroutine_that_never_awaits_ends_its_predictor_with_an_error_that_names_it():
    let_go = threading.Event()

    async def blocks(case, nth):
        if case.id == "c1":
            let_go.wait(120)
        return case.question

    blocking, second = AsyncSystem(blocks), AsyncSystem(said)
    cases = questions(install(blocking, timeout=0.5, concurrency=1), 4)
    threading.Timer(8, let_go.set).start()

    first, *blocked = run([*cases, *questions(install(second, name="other"), 4, "t.queryeval.yaml")])

    assert (first, blocked[3:]) == ("q0", ["q0", "q1", "q2", "q3"])
    place = f"test_prefetch.py:{blocks.__code__.co_firstlineno + 2}"
    for message in blocked[:3]:
        assert message.startswith("the predictor 'system' blocks its event loop (")
        assert f"{place}): an async function has to await" in message
    assert blocking.asked == [("c0", 1), ("c1", 1)]


def test_a_coroutine_that_blocks_for_less_than_its_limit_is_no_error():
    async def blocks(case, nth):
        time.sleep(0.1)
        return case.question

    assert run(questions(install(AsyncSystem(blocks), timeout=60, concurrency=2), 3)) == ["q0", "q1", "q2"]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_ends_programs_ends_no_event_loop(error):
    async def leaves(case, nth):
        if case.id == "c0":
            raise error
        asyncio.get_running_loop().call_soon(exit)
        return await said(case, nth)

    first, *later = run(questions(install(AsyncSystem(leaves)), 3))

    assert first.startswith("the predictor raised ")
    assert later == ["q1", "q2"]


def test_each_suite_has_its_own_limits_and_the_least_concurrency_holds():
    async def slow(case, nth):
        await asyncio.sleep(1_000 if case.id == "c0" else 0.01)
        return case.question

    system = AsyncSystem(slow)
    cases = questions(install(system, timeout=100, concurrency=6), 12)
    cases[0] = change(cases[0], predictor=replace(cases[0].settings.predictor, timeout=0.1, concurrency=2))

    hurried, *others = run(cases)

    assert hurried.startswith("no answer within 0.1 s")
    assert others == [f"q{index}" for index in range(1, 12)]
    assert system.most == 2


def test_after_an_error_the_other_trials_of_a_case_are_not_asked_for():
    async def fails(case, nth):
        await asyncio.sleep(0.05)  # the run has 2 s to see the first error, also on a busy machine
        raise PredictorError("no")

    system = AsyncSystem(fails)

    assert run([install(system, concurrency=1)(trials=50)]) == ["no"]
    assert len(system.asked) < 50


def test_all_predictors_are_closed_where_one_of_them_cannot_be():
    class Stuck(System):
        def close(self):
            raise OSError("busy")

    systems = [Stuck(), AsyncSystem(said), System()]
    cases = [install(system, name=f"system{number}")(id=str(number)) for number, system in enumerate(systems)]

    with pytest.raises(OSError, match="busy"):
        evaluate(cases)

    assert [system.closed for system in systems[1:]] == [1, 1]


def test_calls_that_heed_no_cancellation_keep_no_others_waiting():
    let_go = threading.Event()

    async def deaf(case, nth):
        while case.id in ("c0", "c1") and not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return case.question

    threading.Timer(3, let_go.set).start()
    *stuck, third, fourth = run(questions(install(AsyncSystem(deaf), timeout=0.1, concurrency=2), 4))

    assert all("the call cannot be stopped" in message for message in stuck)
    assert (third, fourth) == ("q2", "q3")


def test_a_function_that_catches_everything_and_tries_again_is_stopped_again():
    def tries_twice(case, nth):
        for _ in range(2):
            with suppress(BaseException):
                time.sleep(1_000)
        return "gave up"

    assert run([install(System(tries_twice), timeout=0.1)()]) == ["gave up"]


def test_the_alarm_of_another_is_left_alone_and_a_limit_ends_with_its_call():
    handler = signal.getsignal(signal.SIGALRM)
    case = install(System(lambda case, nth: time.sleep(0.3) or "x"), timeout=0.05)()
    signal.setitimer(signal.ITIMER_REAL, 100)
    try:
        assert run([case]) == ["x"]
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 50
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

    assert run([case])[0].startswith("no answer within 0.05 s")
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_cases_that_suites_share_have_answers_of_their_own():
    async def source(case, nth):
        return case.source

    made = install(AsyncSystem(source))
    sources = [Source(name=name, engine="sqlite", settings={"path": name}, folder=Path()) for name in "ab"]
    cases = [made(id="same", source=source) for source in sources]

    assert sorted(run(cases)) == ["a", "b"]


def test_a_thread_that_a_coroutine_waits_for_keeps_no_program_alive():
    async def aside(case, nth):
        return await asyncio.to_thread(lambda: threading.current_thread().daemon and "daemon")

    assert run([install(AsyncSystem(aside))()]) == ["daemon"]


@pytest.mark.feature("evaluate")
@pytest.mark.parametrize("declared", ["def", "async def"])
def test_a_run_that_waits_tells_how_far_it_is(tmp_path, monkeypatch, capsys, declared):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pytest_queryeval.evaluation.pool.PROGRESS_SECONDS", 0.0)
    Path("p.py").write_text(f"{declared} ask(case):\n    return 1 / (case.id != 'b') and '1'\n")
    load(
        "kind: json\npredictor: p.py:ask\ncases:\n"
        + "".join(f"  - {{id: {name}, question: q, gold: 1}}\n" for name in "abc")
    )

    main(["evaluate", ".", "--concurrency=1"])

    lines = [line for line in capsys.readouterr().err.splitlines() if " predictions, " in line]
    assert lines[-1].startswith(
        "queryeval evaluate: 3 of 3 predictions, 0 under way, 1 failed, 0.0 s a call, about 0 s left"
    )
