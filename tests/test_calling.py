"""Calls of the system under test: limits, retries, and many at once."""

import asyncio
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from samples import make_case, query

from pytest_queryeval.calling import Calls
from pytest_queryeval.calling.time_limit import Overdue, time_limit
from pytest_queryeval.errors import PredictorError
from pytest_queryeval.model import Prediction, PredictorSpec
from pytest_queryeval.predictors import PREDICTORS, PredictorType


class System:
    """A system under test that counts its calls and does what it is told to."""

    concurrency = 1
    retries = 0

    def __init__(self, do=None):
        self.asked = []
        self.threads = set()
        self.most = 0
        self.closed = 0
        self._under_way = 0
        self._do = do or (lambda case, nth: case.question)
        self._lock = threading.Lock()

    def predict(self, case, trial):
        with self._lock:
            self.asked.append((case.id, trial))
            self.threads.add(threading.current_thread())
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        try:
            return answer(self._do(case, len(self.asked)))
        finally:
            with self._lock:
                self._under_way -= 1

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
    return Prediction(stated=query(text), predictor="system")


async def said(case, nth):
    await asyncio.sleep(0.01)
    return case.question


async def forever(case, nth):
    await asyncio.sleep(1_000)


@pytest.fixture
def lines():
    return []


@pytest.fixture
def calls(lines):
    opened = Calls(lines.append, recording=None, hook=None)
    yield opened
    opened.close()
    left = {thread.name for thread in threading.enumerate() if thread.name.startswith("queryeval")}
    assert left - {"queryeval-call"} == set()


@pytest.fixture
def install(monkeypatch):
    def install_system(system, **settings):
        monkeypatch.setitem(PREDICTORS._members, "system", PredictorType(opener=lambda spec: system))
        spec = PredictorSpec(kind="system", settings={}, folder=Path(), **settings)
        return lambda **changes: make_case(predictor=spec, predicted=None, **changes)

    return install_system


def questions(made, number, **changes):
    return [made(id=f"c{index}", question=f"q{index}", **changes) for index in range(number)]


def texts(calls, cases):
    return [calls.prediction(case, 1).stated.query for case in cases]


def test_a_function_is_called_in_turn_in_the_thread_of_the_tests(calls, install):
    system = System()
    cases = questions(install(system), 3)

    calls.ahead(cases)

    assert system.asked == []
    assert texts(calls, cases) == ["q0", "q1", "q2"]
    assert system.threads == {threading.main_thread()}


def test_coroutines_are_awaited_ahead_and_at_most_so_many_at_once(calls, install):
    system = AsyncSystem(said)
    cases = questions(install(system, concurrency=3), 12)

    calls.ahead(cases)

    assert texts(calls, cases) == [f"q{index}" for index in range(12)]
    assert system.most == 3
    assert system.asked == [(f"c{index}", 1) for index in range(12)]


def test_a_function_with_a_concurrency_is_called_in_threads(calls, install):
    together = threading.Barrier(3, timeout=10)
    system = System(lambda case, nth: f"{case.question} {together.wait() >= 0}")
    cases = questions(install(system, concurrency=3), 3)

    calls.ahead(cases)

    assert texts(calls, cases) == ["q0 True", "q1 True", "q2 True"]


def test_every_trial_is_a_call_of_its_own(calls, install):
    system = AsyncSystem(said)
    (case,) = questions(install(system), 1, trials=3)

    calls.ahead([case])
    for trial in (1, 2, 3):
        calls.prediction(case, trial)

    assert sorted(system.asked) == [("c0", 1), ("c0", 2), ("c0", 3)]


def test_a_case_that_is_run_again_is_asked_again(calls, install):
    system = AsyncSystem(said)
    (case,) = questions(install(system), 1)

    calls.ahead([case])
    calls.prediction(case, 1)
    calls.prediction(case, 1)

    assert len(system.asked) == 2


def test_what_is_temporary_is_tried_again_after_a_pause(calls, install):
    async def third_time(case, nth):
        if nth < 3:
            raise PredictorError("busy", temporary=True, pause=0.01)
        return "x"

    system = AsyncSystem(third_time)
    (case,) = questions(install(system, retries=2), 1)

    assert texts(calls, [case]) == ["x"]
    assert len(system.asked) == 3


@pytest.mark.parametrize("sort", [System, AsyncSystem])
def test_what_stays_temporary_is_an_error_that_says_how_often_it_was_tried(calls, install, sort):
    def busy(case, nth):
        raise PredictorError("HTTP 429", temporary=True)

    async def busy_too(case, nth):
        busy(case, nth)

    system = sort(busy if sort is System else busy_too)
    (case,) = questions(install(system, retries=1), 1)

    with pytest.raises(PredictorError, match=r"^HTTP 429 \(tried 2 times\)$"):
        calls.prediction(case, 1)


def test_what_is_not_temporary_is_tried_once(calls, install):
    async def wrong(case, nth):
        raise PredictorError("HTTP 401")

    system = AsyncSystem(wrong)
    (case,) = questions(install(system, retries=5), 1)

    with pytest.raises(PredictorError, match=r"^HTTP 401$"):
        calls.prediction(case, 1)
    assert len(system.asked) == 1


def test_one_call_that_fails_leaves_the_others_alone(calls, install):
    async def odd_ones(case, nth):
        if case.id == "c1":
            raise KeyError("gone")
        return case.question

    cases = questions(install(AsyncSystem(odd_ones)), 3)
    calls.ahead(cases)

    assert texts(calls, [cases[0], cases[2]]) == ["q0", "q2"]
    with pytest.raises(PredictorError, match=r"^the predictor raised KeyError: 'gone'$"):
        calls.prediction(cases[1], 1)


@pytest.mark.parametrize(
    ("system", "settings"),
    [
        (AsyncSystem(forever), {}),
        (System(lambda case, nth: time.sleep(1_000)), {}),
        (System(lambda case, nth: time.sleep(5)), {"concurrency": 2}),
    ],
    ids=["coroutine", "function", "thread"],
)
def test_a_call_has_a_limit_on_its_time(calls, install, system, settings):
    (case,) = questions(install(system, timeout=0.2, **settings), 1)

    with pytest.raises(PredictorError, match=r"^no answer within 0\.2 s \(`timeout` of the predictor\)$"):
        calls.prediction(case, 1)


def test_a_coroutine_that_never_awaits_is_given_up(calls, install):
    waiting = threading.Event()

    async def stubborn(case, nth):
        waiting.wait(10)

    (case,) = questions(install(AsyncSystem(stubborn), timeout=0.1), 1)

    with pytest.raises(PredictorError, match="and cannot be stopped"):
        calls.prediction(case, 1)
    waiting.set()


def test_calls_that_were_stopped_end_and_no_others_begin(calls, install):
    ended = Counter()

    async def until_cancelled(case, nth):
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            ended[case.id] += 1
            raise

    system = AsyncSystem(until_cancelled)
    cases = questions(install(system, concurrency=2), 5)
    calls.ahead(cases)
    while len(system.asked) < 2:
        time.sleep(0.01)

    calls.stop()

    assert ended == {"c0": 1, "c1": 1}
    assert len(system.asked) == 2
    with pytest.raises(PredictorError, match="the run was stopped"):
        calls.prediction(cases[0], 1)


def test_a_predictor_is_closed_once_where_it_was_called(install, lines):
    plain, waiting = System(), AsyncSystem(said)
    for system in (plain, waiting):
        calls = Calls(lines.append, recording=None, hook=None)
        calls.prediction(install(system)(), 1)
        calls.close()
        calls.close()

    assert (plain.closed, waiting.closed) == (1, 1)


def test_a_run_that_waits_tells_how_far_it_is(calls, install, lines, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.calling.caller.PROGRESS_SECONDS", 0.0)

    async def slow(case, nth):
        await asyncio.sleep(1.5)
        return "x"

    cases = questions(install(AsyncSystem(slow)), 6)
    calls.ahead(cases)
    texts(calls, cases)

    assert lines[0] == "queryeval: 0 of 6 predictions, 4 under way, 0 failed"
    assert lines[-1].startswith("queryeval: 4 of 6 predictions, 2 under way, 0 failed, 1.5 s a call, about ")


def test_the_alarm_of_another_is_left_alone():
    import signal

    signal.setitimer(signal.ITIMER_REAL, 100)
    try:
        with time_limit(0.01):
            time.sleep(0.05)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 50
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_a_limit_ends_with_its_statement():
    import signal

    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Overdue), time_limit(0.01):
        time.sleep(1_000)

    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
