"""Calls of the system under test: limits, retries, and many at once."""

import asyncio
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from samples import change, make_case, query

from pytest_queryeval.core.errors import PredictorError, TimeLimitExceeded
from pytest_queryeval.core.model import Prediction, PredictorSpec, Source
from pytest_queryeval.evaluation.pool import PredictorPool
from pytest_queryeval.evaluation.prediction_call import CallClock, SchemaTexts, time_limit
from pytest_queryeval.predictors import PREDICTORS, PredictorType

pytestmark = pytest.mark.process


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
    return Prediction(query(text), predictor="system")


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
    opened = PredictorPool(lines.append)
    yield opened
    opened.close()
    for thread in threading.enumerate():
        if thread.name.startswith("queryeval") and thread.name != "queryeval-call":
            thread.join(30)  # one that a test has let go may still be on its way
            assert not thread.is_alive(), thread.name


@pytest.fixture
def install(monkeypatch):
    def install_system(system, *, name="system", **settings):
        monkeypatch.setitem(PREDICTORS._members, name, PredictorType(opener=lambda spec: system))
        spec = PredictorSpec(kind=name, settings={}, folder=Path(), **settings)
        return lambda **changes: make_case(predictor=spec, predicted=None, **changes)

    return install_system


def questions(made, number, **changes):
    return [made(id=f"c{index}", question=f"q{index}", **changes) for index in range(number)]


def texts(calls, cases):
    return [calls.prediction(case, 1).content.query for case in cases]


def test_a_function_is_called_in_turn_in_the_thread_of_the_tests(calls, install):
    system = System()
    cases = questions(install(system), 3)

    calls.prefetch(cases)

    assert system.asked == []
    assert texts(calls, cases) == ["q0", "q1", "q2"]
    assert system.threads == {threading.main_thread()}


def test_coroutines_are_awaited_ahead_and_at_most_so_many_at_once(calls, install):
    system = AsyncSystem(said)
    cases = questions(install(system, concurrency=3), 12)

    calls.prefetch(cases)

    assert texts(calls, cases) == [f"q{index}" for index in range(12)]
    assert system.most == 3
    assert system.asked == [(f"c{index}", 1) for index in range(12)]


def test_a_function_with_a_concurrency_is_called_in_threads(calls, install):
    together = threading.Barrier(3, timeout=10)
    system = System(lambda case, nth: f"{case.question} {together.wait() >= 0}")
    cases = questions(install(system, concurrency=3), 3)

    calls.prefetch(cases)

    assert texts(calls, cases) == ["q0 True", "q1 True", "q2 True"]


def test_every_trial_is_a_call_of_its_own(calls, install):
    system = AsyncSystem(said)
    (case,) = questions(install(system), 1, trials=3)

    calls.prefetch([case])
    for trial in (1, 2, 3):
        calls.prediction(case, trial)

    assert sorted(system.asked) == [("c0", 1), ("c0", 2), ("c0", 3)]


@pytest.mark.parametrize(("settings", "trials"), [({}, [1]), ({"all_trials": True}, [1, 2, 3])])
def test_of_trials_that_may_stop_the_first_is_made_ahead_unless_all_are_needed(calls, install, settings, trials):
    system = AsyncSystem(said)
    predictor = install(system, concurrency=1)
    stopping, last = predictor(id="c0", trials=3, stops_trials=True), predictor(id="c1")

    calls.prefetch([stopping, last], **settings)
    calls.prediction(last, 1)

    assert system.asked == [*(("c0", trial) for trial in trials), ("c1", 1)]


def test_a_case_that_is_run_again_is_asked_again(calls, install):
    system = AsyncSystem(said)
    (case,) = questions(install(system), 1)

    calls.prefetch([case])
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
    calls.prefetch(cases)

    assert texts(calls, [cases[0], cases[2]]) == ["q0", "q2"]
    with pytest.raises(PredictorError, match=r"^the predictor raised KeyError: 'gone' \(test_prefetch\.py:"):
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

    with pytest.raises(PredictorError, match=r"^no answer within 0\.2 s: raise the predictor's `timeout`, or"):
        calls.prediction(case, 1)


def test_a_predictor_that_nothing_answers_for_is_asked_no_more(calls, install):
    async def refused(case, nth):
        raise PredictorError("no connection", temporary=True, unreachable=True)

    system = AsyncSystem(refused)
    system.concurrency = 1
    cases = questions(install(system, retries=0), 9)
    calls.prefetch(cases)

    for case in cases:
        with pytest.raises(PredictorError, match=r"^no connection$"):
            calls.prediction(case, 1)

    assert len(system.asked) == 5


def test_a_predictor_that_answers_now_and_then_is_asked_for_every_case(calls, install):
    async def now_and_then(case, nth):
        if nth % 5:
            raise PredictorError("no connection", temporary=True, unreachable=True)
        return case.question

    system = AsyncSystem(now_and_then)
    system.concurrency = 1
    cases = questions(install(system, retries=0), 11)
    calls.prefetch(cases)

    for case in cases:
        with suppress(PredictorError):
            calls.prediction(case, 1)

    assert len(system.asked) == 11


def test_a_coroutine_that_never_awaits_ends_its_predictor_with_an_error_that_names_it(calls, install):
    let_go = threading.Event()

    async def blocks(case, nth):
        if case.id == "c1":
            let_go.wait(120)
        return case.question

    blocking, second = AsyncSystem(blocks), AsyncSystem(said)
    cases = questions(install(blocking, timeout=0.5, concurrency=1), 4)
    others = questions(install(second, name="other"), 4)
    calls.prefetch([*cases, *others])

    assert texts(calls, cases[:1]) == ["q0"]
    start = time.monotonic()
    place = f"test_prefetch.py:{blocks.__code__.co_firstlineno + 2}"
    message = rf"^the predictor 'system' blocks its event loop \(.*{place}\): an async function has to await"
    for case in cases[1:]:
        with pytest.raises(PredictorError, match=message):
            calls.prediction(case, 1)
    assert time.monotonic() - start < 10 * (0.5 + 2)  # 1.8 s
    assert texts(calls, others) == ["q0", "q1", "q2", "q3"]
    let_go.set()
    calls.close()
    assert blocking.asked == [("c0", 1), ("c1", 1)]


def test_a_coroutine_that_blocks_for_less_than_its_limit_is_no_error(calls, install):
    async def blocks(case, nth):
        time.sleep(0.4)
        return case.question

    cases = questions(install(AsyncSystem(blocks), timeout=60, concurrency=2), 4)
    calls.prefetch(cases)

    assert texts(calls, cases) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_ends_programs_ends_no_event_loop(calls, install, error):
    async def leaves(case, nth):
        if case.id == "c0":
            raise error
        return case.question

    cases = questions(install(AsyncSystem(leaves)), 3)
    calls.prefetch(cases)

    with pytest.raises(PredictorError):
        calls.prediction(cases[0], 1)
    assert texts(calls, cases[1:]) == ["q1", "q2"]


def test_a_task_that_ends_programs_ends_no_event_loop(calls, install):
    async def leaves(case, nth):
        asyncio.get_running_loop().call_soon(exit)
        await asyncio.sleep(0.05)
        return case.question

    cases = questions(install(AsyncSystem(leaves)), 2)
    calls.prefetch(cases)

    assert texts(calls, cases) == ["q0", "q1"]


def test_a_worker_calls_functions_in_its_own_thread(install, lines):
    system = System()
    calls = PredictorPool(lines.append, one_at_a_time=True)
    cases = questions(install(system, concurrency=9), 2)

    calls.prefetch(cases)
    texts(calls, cases)
    calls.close()

    assert system.threads == {threading.main_thread()}
    assert len(system.asked) == 2


def test_each_suite_has_its_own_limits_for_one_predictor(calls, install):
    system = AsyncSystem(forever)
    predictor = install(system, timeout=100)
    hurried = predictor(id="b")
    hurried = change(hurried, predictor=replace(hurried.settings.predictor, timeout=0.1))
    calls.prefetch([predictor(id="a"), hurried])

    with pytest.raises(PredictorError, match=r"^no answer within 0\.1 s"):
        calls.prediction(hurried, 1)


def test_the_least_concurrency_that_suites_state_holds(calls, install):
    system = AsyncSystem(said)
    predictor = install(system, concurrency=6)
    cases = questions(predictor, 12)
    cases[-1] = change(cases[-1], predictor=replace(cases[-1].settings.predictor, concurrency=2))

    calls.register_cases(cases)
    calls.prefetch(cases)
    texts(calls, cases)

    assert system.most == 2


def test_after_an_error_the_other_trials_of_a_case_are_not_asked_for(calls, install):
    async def fails(case, nth):
        raise PredictorError("no")

    system = AsyncSystem(fails)
    (case,) = questions(install(system, concurrency=1), 1, trials=50)

    with pytest.raises(PredictorError):
        calls.prediction(case, 1)
    calls.close()

    assert len(system.asked) < 50


def test_the_other_trials_of_a_case_are_asked_for_where_it_is_run_again_after_an_error(calls, install):
    async def fails_once(case, nth):
        if nth == 1:
            raise PredictorError("no")
        return case.question

    (case,) = questions(install(AsyncSystem(fails_once), concurrency=1), 1, trials=200)
    calls.prefetch([case])

    with pytest.raises(PredictorError, match=r"^no$"):
        calls.prediction(case, 1)
    assert [calls.prediction(case, trial).content.query for trial in (1, 2, 200)] == ["q0", "q0", "q0"]


def test_what_is_no_prediction_is_an_error(calls, install):
    class Odd(System):
        def predict(self, case, trial):
            return "SELECT 1"

    (case,) = questions(install(Odd()), 1)

    with pytest.raises(PredictorError, match=r"^the predictor returned str, not a Prediction$"):
        calls.prediction(case, 1)


def test_all_predictors_are_closed_where_one_of_them_cannot_be(monkeypatch, lines):
    class Stuck(System):
        def close(self):
            raise OSError("busy")

    systems = [Stuck(), AsyncSystem(said), System()]
    calls = PredictorPool(lines.append)
    for number, system in enumerate(systems):
        name = f"system{number}"
        monkeypatch.setitem(PREDICTORS._members, name, PredictorType(opener=lambda spec, system=system: system))
        spec = PredictorSpec(kind=name, settings={}, folder=Path())
        calls.prediction(make_case(predictor=spec, predicted=None), 1)

    with pytest.raises(OSError, match="busy"):
        calls.close()

    assert [system.closed for system in systems[1:]] == [1, 1]
    assert not [thread for thread in threading.enumerate() if thread.name == "queryeval-loop"]


def test_calls_that_heed_no_cancellation_keep_no_others_waiting(calls, install):
    let_go = threading.Event()

    async def deaf(case, nth):
        while case.id in ("c0", "c1") and not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return case.question

    cases = questions(install(AsyncSystem(deaf), timeout=0.1, concurrency=2), 4)
    calls.prefetch(cases)

    for number in (0, 1):
        with pytest.raises(PredictorError, match="the call cannot be stopped"):
            calls.prediction(cases[number], 1)
    assert texts(calls, cases[2:]) == ["q2", "q3"]
    let_go.set()


def test_a_function_that_catches_everything_and_tries_again_is_stopped_again(calls, install):
    def tries_twice(case, nth):
        for _ in range(2):
            with suppress(BaseException):
                time.sleep(1_000)
        return "gave up"

    (case,) = questions(install(System(tries_twice), timeout=0.1), 1)

    assert texts(calls, [case]) == ["gave up"]


def test_cases_that_suites_share_have_answers_of_their_own(calls, install):
    async def source(case, nth):
        return case.source

    predictor = install(AsyncSystem(source))
    cases = [predictor(id="same", source=Source(name=name, engine="fake", settings={}, folder=Path())) for name in "ab"]
    calls.prefetch(cases)

    assert texts(calls, cases) == ["a", "b"]


def test_a_thread_that_a_coroutine_waits_for_keeps_no_program_alive(calls, install):
    async def aside(case, nth):
        return await asyncio.to_thread(lambda: threading.current_thread().daemon and "daemon")

    (case,) = questions(install(AsyncSystem(aside)), 1)

    assert texts(calls, [case]) == ["daemon"]


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
    calls.prefetch(cases)
    while len(system.asked) < 2:
        time.sleep(0.01)

    calls.stop()
    calls.close()

    assert ended == {"c0": 1, "c1": 1}
    assert len(system.asked) == 2
    with pytest.raises(PredictorError, match="the run was stopped"):
        calls.prediction(cases[0], 1)


def test_a_predictor_is_closed_once_where_it_was_called(install, lines):
    plain, waiting = System(), AsyncSystem(said)
    for system in (plain, waiting):
        calls = PredictorPool(lines.append)
        calls.prediction(install(system)(), 1)
        calls.close()
        calls.close()

    assert (plain.closed, waiting.closed) == (1, 1)


def test_a_run_that_waits_tells_how_far_it_is(install, lines):
    clock = [0.0]
    calls = PredictorPool(lines.append, clock=lambda: clock[0])
    let_go = threading.Event()

    async def slow(case, nth):
        while case.id == "c1" and not let_go.is_set():
            await asyncio.sleep(0.01)
        return "x"

    def wait(seconds):
        clock[0] += seconds

    cases = questions(install(AsyncSystem(slow)), 3)
    calls.prefetch(cases)
    texts(calls, cases[:1])
    assert lines == []

    wait(11)
    texts(calls, cases[2:])
    assert lines[0].startswith("queryeval: 2 of 3 predictions, 1 under way, 0 failed, 0.0 s a call, about 0 s left")

    wait(9)
    let_go.set()
    texts(calls, cases[1:2])
    calls.close()
    assert len(lines) == 1


def test_calls_in_turn_tell_how_far_they_are_too(calls, install, lines, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.evaluation.pool.PROGRESS_SECONDS", 0.0)
    cases = questions(install(System()), 2)
    calls.prefetch(cases)

    texts(calls, cases)

    assert [line.partition(" predictions")[0] for line in lines] == ["queryeval: 1 of 2", "queryeval: 2 of 2"]


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
    with pytest.raises(TimeLimitExceeded), time_limit(0.01):
        time.sleep(1_000)

    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_clock_that_stands_still_counts_no_time(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = CallClock()
    start = clock.time()

    now[0] += 1
    with clock.paused():
        now[0] += 10
        with clock.paused():  # of another thread
            now[0] += 10
        assert clock.time() == start + 1
    now[0] += 2

    assert clock.time() == start + 3


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(System, {}), (System, {"concurrency": 2}), (AsyncSystem, {})],
    ids=["in turn", "in threads", "async"],
)
def test_a_call_is_late_by_its_own_time_only(lines, install, kind, settings):
    def list_tables(source):
        time.sleep(2.5)
        return "CREATE TABLE t (n)"

    async def reads_async(case, nth):
        text = case.schema
        if case.id == "slow":
            await asyncio.sleep(1_000)
        return text

    def reads_and_sleeps(case, nth):
        return case.schema if case.id != "slow" else time.sleep(5)

    system = kind(reads_async if kind is AsyncSystem else reads_and_sleeps)
    calls = PredictorPool(lines.append, schemas=SchemaTexts(list_tables))
    quick_case = install(system, timeout=2, **settings)  # a busy machine answers a call within two seconds, too
    slow_case = install(system, name="slow system", timeout=0.4, **settings)
    source = Source(name="music", engine="fake", settings={}, folder=Path())

    assert texts(calls, [quick_case(id="quick", source=source)]) == ["CREATE TABLE t (n)"]
    with pytest.raises(PredictorError, match=r"^no answer within 0\.4 s"):
        calls.prediction(slow_case(id="slow", source=source), 1)
    calls.close()


@pytest.mark.parametrize("asked", [0, 1, 5])
def test_by_batch_no_more_calls_are_made_than_one_batch_beyond_those_that_were_waited_for(calls, install, asked):
    system = AsyncSystem(said)
    cases = questions(install(system, concurrency=3), 20)

    calls.prefetch(cases, by_batch=True)
    assert texts(calls, cases[:asked]) == [f"q{index}" for index in range(asked)]
    time.sleep(0.2)  # in which all 20 would be made

    assert len(system.asked) == asked + 3


def test_by_batch_calls_are_made_at_once_as_far_as_that_goes(calls, install):
    system = AsyncSystem(said)
    cases = questions(install(system, concurrency=3), 12)

    calls.prefetch(cases, by_batch=True)

    assert texts(calls, cases) == [f"q{index}" for index in range(12)]
    assert system.most == 3
    assert sorted(system.asked) == sorted((f"c{index}", 1) for index in range(12))


def test_by_batch_a_case_that_nobody_asks_for_holds_up_no_other(calls, install):
    system = AsyncSystem(said)
    cases = questions(install(system, concurrency=2), 12)

    calls.prefetch(cases, by_batch=True)

    assert texts(calls, cases[5:]) == [f"q{index}" for index in range(5, 12)]
