"""Programs as systems under test: what they are told, what their answers become, and that none outlives its call."""

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from samples import make_view, query

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import PredictorSpec
from pytest_queryeval.predictors import PREDICTORS

pytestmark = pytest.mark.process

LIMIT = 1.0
SLACK = 2.0  # a call ends so many seconds after its limit at the latest
READ = "import json, os, signal, subprocess, sys, time\ncase = json.load(sys.stdin)\n"
LINES = (
    "import json, os, signal, sys, time\n"
    "def say(answer):\n    print(json.dumps(answer), flush=True)\n"
    "for line in sys.stdin:\n    case = json.loads(line)\n    "
)
TOLD_PID = "open('pid', 'w').write(str(os.getpid()))\n"


def opened(folder, **settings):
    return PREDICTORS["command"].opener(PredictorSpec(kind="command", settings=settings, folder=folder))


def program(folder, code, **settings):
    """The predictor of a Python program with this code, `ask.py`."""
    (folder / "ask.py").write_text(code, encoding="utf-8")
    return opened(folder, run=[sys.executable, "ask.py"], **settings)


def lines(folder, code, **settings):
    """The predictor of a program that runs this code for each line."""
    return program(folder, LINES + code, mode="lines", **settings)


def in_thread(work):
    """Run a coroutine as a session does: on a loop that is not the main thread's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def answers(predictor, *cases, limit=30.0, together=False):
    """What the predictor says of cases, one after the other or at once: predictions and errors."""

    async def one(case):
        try:
            async with asyncio.timeout(limit):
                return await predictor.predict(case, 1)
        except (PredictorError, TimeoutError) as error:
            return error

    async def everything():
        try:
            async with asyncio.timeout((limit + SLACK) * (1 if together else len(cases))):
                return await asyncio.gather(*map(one, cases)) if together else [await one(case) for case in cases]
        finally:
            async with asyncio.timeout(SLACK):
                await predictor.close()

    return in_thread(everything())


def answer(predictor, limit=30.0, **changes):
    """The prediction for one case; raises what the predictor does."""
    (prediction,) = answers(predictor, make_view(**changes), limit=limit)
    if isinstance(prediction, Exception):
        raise prediction
    return prediction


def fault(predictor, limit=30.0, **changes):
    with pytest.raises((PredictorError, TimeoutError)) as caught:
        answer(predictor, limit, **changes)
    return caught.value


def is_gone(group):
    """Whether no process of a group is left, once the system has had time to bury them."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def told_pid(folder):
    return int((folder / "pid").read_text())


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


def children():
    """Return the pids of all children; a thread that ends meanwhile, and its folder with it, has none."""
    pids = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            pids.update(file.read_text().split())
    return pids


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Neither threads nor open files nor children; servers of other tests may run."""
    threads, files, before = set(threading.enumerate()), open_files(), children()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(5)
    assert set(threading.enumerate()) <= threads
    assert open_files() == files
    assert children() <= before


def test_an_argument_holds_the_schema_where_it_has_a_place_for_it(tmp_path):
    (tmp_path / "ask.py").write_text("import sys\nprint(sys.argv[1:], 'schema' in sys.stdin.read())", encoding="utf-8")
    settings = {"run": [sys.executable, "ask.py", "Tables: {schema}", "{schema}", "{question}"]}
    views = [make_view(schema="CREATE TABLE t (n TEXT DEFAULT '{schema}')"), make_view(schema=None)]

    predictions = answers(opened(tmp_path, **settings), *views)

    filled = "CREATE TABLE t (n TEXT DEFAULT '{schema}')"
    assert predictions[0].content.query == f"{[f'Tables: {filled}', filled, '{question}']} False"
    assert predictions[1].content.query == "['Tables: ', '', '{question}'] False"
    assert "schema" in PREDICTORS["command"].sees(settings)


PRINT = "import sys\nsys.stdout.buffer.write({!r})"


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"SELECT 1 -- \xc3\xa9\n  FROM t\n", "SELECT 1 -- é\n  FROM t"),
        (b"\xef\xbb\xbfSELECT 1\r\n", "SELECT 1"),
        (b"", ""),
        (b'{"a": 1.10}', '{"a": 1.10}'),
        (b'{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        (b'[{"predicted": 1}]', '[{"predicted": 1}]'),
        (b'{"predicted"', '{"predicted"'),
        (b"{?s ?p ?o}", "{?s ?p ?o}"),
    ],
)
def test_all_output_but_an_object_with_predicted_is_the_answer_as_it_stands(tmp_path, printed, text):
    prediction = answer(program(tmp_path, PRINT.format(printed)), kind="json")

    assert prediction.content == query(text)
    assert prediction.predictor == f"command:{Path(sys.executable).name} ask.py"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (PRINT.format(b'{"predicted": 1, "predicted": 2}'), "printed JSON with a duplicate key 'predicted'"),
        (PRINT.format(b'{"predicted": "x", "seconds": "two"}'), "`seconds` that are not a number from 0 to"),
        (PRINT.format(b'{"predicted": "x", "seconds": NaN}'), "`seconds` that are not a number from 0 to"),
        (PRINT.format(b'{"sql": 1, "n": 3}'), 'an object with `sql`, `n`: write the query as {"predicted": QUERY}'),
        (PRINT.format(b"SELECT \xe9"), "printed byte 0xe9 at 7, which is not UTF-8: set PYTHONUTF8=1, or its like"),
        (READ + "os.kill(os.getpid(), signal.SIGSEGV)", "ended with SIGSEGV"),
        ("import sys\nprint('no key')\nsys.exit(1)", "ended with exit code 1: no key"),
    ],
    ids=lambda value: value[-40:],
)
def test_output_that_is_no_prediction_and_a_bad_end_are_errors_that_say_why(tmp_path, code, told):
    error = fault(program(tmp_path, code))

    assert str(error).startswith("python ask.py ")
    assert told in str(error)
    assert error.temporary == ("ended" in told)


def test_stderr_of_a_program_that_answers_is_kept_and_what_only_repeats_the_case_is_no_metadata(tmp_path):
    code = READ + "print('x' * 5000, file=sys.stderr)\nprint(json.dumps({**case, 'predicted': 'x'}))"

    assert answer(program(tmp_path, code), metadata={"a": 1}).metadata == {"stderr": "x" * 1999 + "…"}


def test_a_secret_in_stderr_is_taken_out_before_it_is_cut(tmp_path):
    code = "import os, sys\nprint('x' * 1990 + os.environ['MODEL_API_KEY'], file=sys.stderr)"
    (tmp_path / "fails.py").write_text("import os, sys\nsys.exit(190 * 'x' + os.environ['MODEL_API_KEY'])")
    env = {"MODEL_API_KEY": "planted-8f2c61e0"}

    stderr = answer(program(tmp_path, code, env=env)).metadata["stderr"]
    message = fault(opened(tmp_path, run=[sys.executable, "fails.py"], env=env))

    assert "planted" not in stderr
    assert "planted" not in str(message)


def test_an_exit_code_is_an_error_with_the_last_lines_of_stderr(tmp_path):
    code = (
        READ + "sys.stderr.write('\\n'.join(f'line {n}' for n in range(50)) + '\\n\\x1b[2J' + 'y' * 900)\nsys.exit(3)"
    )

    error = fault(program(tmp_path, code))

    first, *words = str(error).split("\n")
    last = first.partition("ask.py ended with exit code 3: ")[2]
    assert last.startswith("\\x1b[2Jyyy")
    assert len(last) == 200
    assert words == [f"line {number}" for number in range(41, 50)]
    assert error.temporary


@pytest.mark.parametrize("mode", ["each", "lines"])
def test_a_program_that_prints_too_much_is_ended(tmp_path, mode):
    code = "import os, sys\n" + TOLD_PID + "sys.stdin.readline()\nfor _ in range(50): sys.stdout.write('x' * 2**20)"

    error = fault(program(tmp_path, code, mode=mode))

    assert str(error).endswith("ask.py printed more than 16 MiB")
    assert is_gone(told_pid(tmp_path))


@pytest.mark.parametrize("mode", ["each", "lines"])
def test_much_stderr_hinders_nobody(tmp_path, mode):
    code = "import sys\nsys.stdin.readline()\nsys.stderr.write('x' * 2**24)\nprint('\"SELECT 1\"', flush=True)\n"

    prediction = answer(program(tmp_path, code, mode=mode))

    assert prediction.content == query("SELECT 1" if mode == "lines" else '"SELECT 1"')


@pytest.mark.parametrize("code", ["print('x')", "import os, sys\nos.close(0)\nprint('x')"])
def test_a_program_need_not_read_its_stdin(tmp_path, code):
    assert answer(program(tmp_path, code), question="long " * 100_000).content == query("x")


@pytest.mark.parametrize("mode", ["each", "lines"])
def test_a_program_that_never_answers_and_ignores_signals_is_ended_at_its_limit(tmp_path, mode):
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code = f"import os, signal, sys, time\n{deaf}{TOLD_PID}sys.stdin.readline()\ntime.sleep(600)"

    error = fault(program(tmp_path, code, mode=mode), LIMIT)

    assert isinstance(error, TimeoutError)
    assert is_gone(told_pid(tmp_path))


SLEEPER = "subprocess.Popen([sys.executable, '-c', {code!r}])\n"
IGNORES = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def test_children_of_a_program_that_answers_or_is_late_end_with_it(tmp_path):
    code = READ + TOLD_PID + SLEEPER.format(code=IGNORES)

    prediction = answer(program(tmp_path, code + "print('SELECT 1')"), limit=5.0)
    answered_pid = told_pid(tmp_path)
    late = fault(program(tmp_path, code + "time.sleep(600)"), LIMIT)

    assert prediction.content == query("SELECT 1")
    assert isinstance(late, TimeoutError)
    assert is_gone(answered_pid)
    assert is_gone(told_pid(tmp_path))


def test_a_child_that_has_left_the_session_does_not_hold_up_the_answer(tmp_path):
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    leaves = f"subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)\n"
    waits = "while not (os.path.exists('pid') and open('pid').read()): time.sleep(0.01)\n"

    try:
        assert answer(program(tmp_path, READ + leaves + waits + "print('x')"), limit=10.0).content == query("x")
    finally:
        os.kill(told_pid(tmp_path), signal.SIGKILL)


def test_a_call_that_is_cancelled_twice_leaves_nothing(tmp_path):
    code = (
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TOLD_PID + "time.sleep(600)"
    )
    predictor = program(tmp_path, code)

    async def cancelled():
        call = asyncio.create_task(predictor.predict(make_view(), 1))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.sleep(0.1)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await call

    in_thread(cancelled())

    assert is_gone(told_pid(tmp_path))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there it is what asyncio uses")
def test_it_works_with_the_other_watcher_of_children_as_well(tmp_path):
    predictor = program(tmp_path, READ + "time.sleep(600 if case['id'] == 'slow' else 0)\nprint('x')")

    async def asked():
        asyncio.get_child_watcher().attach_loop(asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(LIMIT):
                await predictor.predict(make_view(id="slow"), 1)
        return await predictor.predict(make_view(), 1)

    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    try:
        assert in_thread(asked()).content == query("x")
    finally:
        asyncio.set_child_watcher(None)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there nothing has to be attached")
def test_a_watcher_of_children_that_does_not_watch_is_told_of(tmp_path):
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    try:
        assert "ask.py cannot be started: " in str(fault(program(tmp_path, "print('x')")))
    finally:
        asyncio.set_child_watcher(None)


def test_lines_are_answered_by_one_process_that_sees_the_end_of_its_stdin_and_is_ended_if_it_stays(tmp_path):
    says = LINES.replace("def say", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef say")
    says += "say({'predicted': case['question'], 'id': case['id'], 'pid': os.getpid()})\nopen('done', 'w').close()\n"
    code = f"{says}time.sleep(600)"

    predictions = answers(program(tmp_path, code, mode="lines"), *(make_view(id=name, question=name) for name in "abc"))

    assert [prediction.content.query for prediction in predictions] == ["a", "b", "c"]
    assert len({prediction.metadata["pid"] for prediction in predictions}) == 1
    assert (tmp_path / "done").exists()
    assert is_gone(predictions[0].metadata["pid"])


def test_lines_that_are_asked_at_once_are_answered_by_a_process_each(tmp_path):
    predictor = lines(tmp_path, "time.sleep(0.5); say({'predicted': case['id'], 'pid': os.getpid()})")

    predictions = answers(predictor, *(make_view(id=name) for name in "abc"), together=True)

    assert [prediction.content.query for prediction in predictions] == ["a", "b", "c"]
    pids = {prediction.metadata["pid"] for prediction in predictions}
    assert len(pids) == 3
    assert all(map(is_gone, pids))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("print('Loading \\x1b[31mmodel', flush=True)", "printed 'Loading \\x1b[31mmodel': in the mode `lines` stdout"),
        ("print(flush=True)", "printed an empty line: in the mode `lines`"),
        ("say({'answer': 1})", "printed '{\"answer\": 1}': expected an object with `predicted`, or a JSON text"),
        ("say(['SELECT 1'])", "expected an object with `predicted`, or a JSON text"),
        ('print(\'{"predicted": 1, "predicted": 2}\', flush=True)', "in the mode `lines`"),
        ("say({'predicted': 'x', 'id': 'other'})", "answered 'other' where 'bad' was asked"),
        ("sys.stdout.buffer.write(b'\"\\xe9\"\\n'); sys.stdout.flush()", "byte 0xe9 at 1, which is not UTF-8"),
        ('sys.stdout.write(\'"x"\\n"y"\\n\'); sys.stdout.flush()', "printed '\"y\"' that nothing asked for"),
        ("sys.exit('no key')", "ask.py ended with exit code 1: no key"),
    ],
    ids=lambda value: value[:30],
)
def test_a_process_that_prints_anything_else_is_replaced(tmp_path, said, told):
    code = f"if case['id'] == 'bad':\n        {said}\n    else:\n        say({{'predicted': 'x', 'pid': os.getpid()}})"

    before, bad, after = answers(lines(tmp_path, code), *(make_view(id=name) for name in ("good", "bad", "good")))

    assert told in str(bad)
    assert bad.temporary == ("ended" in told)
    assert before.content == after.content == query("x")
    assert before.metadata["pid"] != after.metadata["pid"]


def test_a_late_second_line_is_not_taken_for_the_next_answer(tmp_path):
    predictor = lines(tmp_path, "say('x'); time.sleep(0.2); say('late')")

    async def two():
        try:
            first = await predictor.predict(make_view(id="a"), 1)
            await asyncio.sleep(1)
            with pytest.raises(PredictorError, match="printed '\"late\"' that nothing asked for"):
                await predictor.predict(make_view(id="b"), 1)
            return first
        finally:
            await predictor.close()

    assert in_thread(two()).content == query("x")


@pytest.mark.parametrize(
    ("end", "pause"),
    [
        ("break", 0.0),
        ("os.close(1); time.sleep(0.05); break", 0.0),
        ("time.sleep(0.05); break", 0.3),
        ("sys.stderr.write('oh'); sys.exit(3)", 0.3),
    ],
)
def test_a_process_that_ends_between_two_cases_is_replaced(tmp_path, end, pause):
    predictor = lines(tmp_path, f"say({{'predicted': case['id'], 'pid': os.getpid()}}); {end}")

    async def three():
        try:
            actual = []
            for name in "abc":
                actual.append(await predictor.predict(make_view(id=name), 1))
                await asyncio.sleep(pause)
            return actual
        finally:
            await predictor.close()

    predictions = in_thread(three())

    assert [prediction.content for prediction in predictions] == [query(name) for name in "abc"]
    assert len({prediction.metadata["pid"] for prediction in predictions}) == 3


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("break", "ask.py ended with exit code 0"),
        ("os.close(1); time.sleep(600)", "ask.py closed its stdout before it answered"),
    ],
)
def test_a_new_process_that_does_not_answer_is_told_of(tmp_path, code, told):
    error = fault(lines(tmp_path, code))

    assert str(error).endswith(told)
    assert error.temporary


def test_a_late_answer_does_not_meet_the_next_case(tmp_path):
    code = "time.sleep(2 if case['id'] == 'slow' else 0); say(case['id'])"

    slow, quick = answers(lines(tmp_path, code), make_view(id="slow"), make_view(id="quick"), limit=LIMIT)

    assert isinstance(slow, TimeoutError)
    assert quick.content == query("quick")


@pytest.mark.parametrize("folder", [".", "deep"])
def test_a_program_has_the_environment_the_arguments_and_the_folder_that_are_set(tmp_path, monkeypatch, folder):
    (tmp_path / "deep").mkdir()
    monkeypatch.setenv("OURS", "1")
    run = ["sh", "-c", 'echo "$OURS,$THEIRS,$NUMBER,$0,$(pwd)"', 7]

    prediction = answer(opened(tmp_path, run=run, env={"THEIRS": "", "NUMBER": 7}, cwd=folder))

    assert prediction.content == query(f"1,,7,7,{(tmp_path / folder).resolve()}")


def test_a_program_with_a_slash_is_found_from_the_folder_of_its_suite(tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "ask"
    script.write_text('#!/bin/sh\necho "$1"\n')
    script.chmod(0o755)

    prediction = answer(opened(tmp_path, run="bin/ask 'SELECT $HOME;' | cat", cwd="bin"))

    assert prediction.content == query("SELECT $HOME;")
    assert prediction.predictor == "command:bin/ask"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"run": ["no-such-program"]}, "there is no program 'no-such-program' on the PATH: install it"),
        ({"run": ["ask"]}, "there is no program 'ask' on the PATH: did you mean './ask'?"),
        ({"run": "bin/absent"}, "there is no program 'bin/absent': "),
        ({"run": ["./"]}, "there is no program './': "),
        (
            {"run": ["./ask"]},
            "'./ask' is not executable: make it so (chmod +x), or name what runs it: [python3, ./ask]",
        ),
        ({"run": ["python3", "absent.py"]}, "there is no file absent.py for python3: correct the path, "),
        ({"run": ["sh"], "cwd": "absent"}, "the command's folder is not there: "),
        ({"run": []}, "the predictor 'command' needs `run`"),
        ({"run": ["./data"]}, "./data cannot be started: Exec format error"),
        ({"run": ["sh", "--", "-key=hunter2-8"]}, "sh "),
    ],
    ids=str,
)
def test_a_program_that_cannot_be_started_is_one_clear_line(tmp_path, settings, told):
    (tmp_path / "ask").write_text("#!/bin/sh\n")
    (tmp_path / "data").write_bytes(b"\x00\x01")
    (tmp_path / "data").chmod(0o755)

    with pytest.raises(PredictorError) as caught:
        answer(opened(tmp_path, **settings))

    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)  # arguments may be secrets
