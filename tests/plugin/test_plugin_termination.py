"""SIGTERM, as of a time limit or a scheduler: results are kept, nothing is left behind, nobody else is disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from singers import GOLD, case, unpredicted
from waiting import wait_for

SLEEPER = f"""
import pathlib, time

def predict(case):
    if case.id == "slow":
        pathlib.Path("asleep").touch()
        time.sleep(120)
    return {GOLD!r}
"""
STUBBORN = SLEEPER.replace(
    "time.sleep(120)",
    """
        for _ in range(120):
            try:
                time.sleep(1)
            except KeyboardInterrupt:
                pathlib.Path("interrupted").touch()
""",
)


def started(pytester, monkeypatch, *args):
    """Start pytest in a session of its own, and wait until the slow case is being predicted."""
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    command = [sys.executable, "-m", "pytest", "-v", "--queryeval-report=reports", *args]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    process = pytester.popen(command, start_new_session=True, **pipes)
    wait_for((pytester.path / "asleep").exists)
    time.sleep(0.5)
    return process


def processes_in(folder):
    """All processes but this one whose working directory is the folder."""
    actual = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if process.name != str(os.getpid()) and (process / "cwd").readlink() == folder:
                actual.append(process)
    return actual


@pytest.mark.terminated
@pytest.mark.parametrize(
    ("args", "send", "sign"),
    [
        ([], os.kill, signal.SIGTERM),
        (["-n1"], os.kill, signal.SIGTERM),
        (["-n2"], os.killpg, signal.SIGTERM),
        ([], os.killpg, signal.SIGINT),  # Ctrl-C in a terminal
        (["-n1"], os.killpg, signal.SIGINT),
    ],
    ids=["alone", "xdist, the controller", "xdist, all processes", "Ctrl-C", "Ctrl-C, xdist"],
)
def test_run_that_is_terminated_or_interrupted_keeps_its_results_and_leaves_nothing(
    pytester, suite, write, report_of, monkeypatch, args, send, sign
):
    write("predict.py", SLEEPER)
    fast = [unpredicted(f"fast-{number}") for number in range(4)]
    suite(*fast, unpredicted("slow"), predictor="predict.py:predict")

    with started(pytester, monkeypatch, *args) as process:
        send(process.pid, sign)
        output = process.communicate(timeout=300)[0].decode()

    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert ("KeyboardInterrupt: SIGTERM" in output) == (sign == signal.SIGTERM)
    assert "report: reports/report.json" in output
    report = report_of(pytester.path / "reports" / "report.json")
    finished = {case["id"] for case in report["cases"]}
    assert finished == {case["id"] for case in fast} if "-n2" not in args else finished and "slow" not in finished
    assert report["totals"]["passed"] == len(finished)
    assert (pytester.path / "reports" / "junit.xml").exists()
    wait_for(lambda: not processes_in(pytester.path))
    assert not list((pytester.path / "temporary").iterdir())


def test_report_is_written_before_workers_are_awaited(pytester, suite, write, report_of, monkeypatch):
    write("predict.py", STUBBORN)
    suite(unpredicted("fast"), unpredicted("slow"), predictor="predict.py:predict")

    with started(pytester, monkeypatch, "-n1") as process:
        os.kill(process.pid, signal.SIGTERM)
        wait_for((pytester.path / "reports" / "report.json").exists)
        is_running = process.poll() is None
        process.communicate(timeout=300)

    assert is_running
    assert process.returncode == pytest.ExitCode.INTERRUPTED


LEFT = """
import os, pathlib, tempfile

def pytest_keyboard_interrupt():
    if "PYTEST_XDIST_WORKER" in os.environ:
        folders = pathlib.Path(tempfile.gettempdir()).glob("queryeval-*")
        pathlib.Path("left").write_text(" ".join(map(str, folders)))
"""


def test_an_interrupted_worker_leaves_nothing_to_remove_after_its_traceback_is_formatted(
    pytester, suite, write, run, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    write("conftest.py", LEFT)
    write("predict.py", f"def predict(case):\n    if case.id == 'last': raise KeyboardInterrupt\n    return {GOLD!r}\n")
    suite(unpredicted("first"), unpredicted("last"), predictor="predict.py:predict")

    run("-n1")

    assert (pytester.path / "left").read_text() == ""


def test_second_signal_kills(pytester, suite, write, monkeypatch):
    write("predict.py", STUBBORN)
    suite(unpredicted("slow"), predictor="predict.py:predict")

    with started(pytester, monkeypatch) as process:
        os.kill(process.pid, signal.SIGTERM)
        wait_for((pytester.path / "interrupted").exists)
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=300)

    assert process.returncode == -signal.SIGTERM


CHILDREN = f"""
import os, pathlib, signal, subprocess, sys, threading

def handler(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip()

def forked():
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, repr(signal.getsignal(signal.SIGTERM)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reading, 1000).decode()

def predict(case):
    found = [repr(signal.getsignal(signal.SIGTERM))]
    found.append(handler("import signal; print(repr(signal.getsignal(signal.SIGTERM)))"))
    found.append(forked())
    thread = threading.Thread(target=lambda: found.append(forked()))
    thread.start()
    thread.join()
    pathlib.Path("found").write_text("\\n".join(found))
    return {GOLD!r}
"""


def test_children_have_no_handler_of_ours(pytester, suite, write, run):
    write("predict.py", CHILDREN)
    suite(unpredicted("good"), predictor="predict.py:predict")

    run("-Wignore::DeprecationWarning").assert_outcomes(passed=1)

    own, *children = (pytester.path / "found").read_text().splitlines()
    assert "SigtermHandler" in own
    assert children == [repr(signal.SIG_DFL)] * 3


@pytest.fixture
def handler():
    """Restore the handler of this process after runs in it."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


LOOKING = "import signal\n\ndef test_handler():\n    assert signal.getsignal(signal.SIGTERM) {}\n"


@pytest.mark.usefixtures("handler")
def test_handler_is_restored_after_the_run_unless_one_is_set_and_none_is_set_without_suites(suite, write, run):
    write("test_handler.py", LOOKING.format("is signal.SIG_DFL"))
    run("test_handler.py").assert_outcomes(passed=1)
    write("predict.py", f"def predict(case):\n    return {GOLD!r}\n")
    suite(unpredicted("good"), predictor="predict.py:predict")

    run("a.queryeval.yaml").assert_outcomes(passed=1)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    set_handler = "import signal\n\ndef predict(case):\n    signal.signal(signal.SIGTERM, print)\n    "
    write("other.py", f"{set_handler}return {GOLD!r}\n")
    run("a.queryeval.yaml", "--queryeval-predictor=other.py:predict").assert_outcomes(passed=1)
    assert signal.getsignal(signal.SIGTERM) is print
    write("test_handler.py", LOOKING.format("is print"))
    run("test_handler.py", "a.queryeval.yaml").assert_outcomes(passed=2)


@pytest.mark.feature("page")
def test_run_that_is_terminated_while_reports_are_written_completes_them(pytester, suite, write):
    write(
        "conftest.py",
        "import os, signal, pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_sessionfinish():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n",
    )
    suite(case("good"))

    done = pytester.runpytest_subprocess("--queryeval-report=reports")

    assert done.ret == pytest.ExitCode.INTERRUPTED
    assert "Traceback" not in done.stdout.str() + done.stderr.str()
    assert done.stdout.lines[-1].startswith("queryeval: ")
    assert {path.name for path in (pytester.path / "reports").iterdir()} >= {"report.json", "report.html", "junit.xml"}


SUICIDE = f"""
import os, pathlib, signal

def predict(case):
    with pathlib.Path("asked").open("a") as file:
        file.write(case.id + "\\n")
    if case.id == "case-3" and not pathlib.Path("killed").exists():
        pathlib.Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {GOLD!r}
"""


@pytest.mark.feature("recording")
def test_recorded_run_is_resumed_after_a_crash(pytester, suite, write, run_and_parse):
    write("predict.py", SUICIDE)
    suite(*(unpredicted(f"case-{number}") for number in range(6)), predictor="predict.py:predict")
    crashed = pytester.runpytest_subprocess("--queryeval-record=rec")
    assert crashed.ret == -signal.SIGKILL

    run = run_and_parse("--queryeval-record=rec")

    assert run.report["totals"]["passed"] == 6
    calls = (pytester.path / "asked").read_text().split()
    assert calls == [f"case-{number}" for number in (0, 1, 2, 3, 3, 4, 5)]


WAITING = """
import pathlib, time

def predict(case):
    if case.id == "a":
        return "SELECT 1"
    pathlib.Path(__file__).with_name("asked").touch()
    time.sleep(600)
"""


@pytest.mark.feature("duckdb", "evaluate")
@pytest.mark.parametrize("command", [["pytest"], ["pytest_queryeval", "evaluate", "s"]])
def test_the_next_run_removes_the_database_of_a_run_that_was_killed(pytester, suite, write, command):
    temporary = pytester.mkdir("temporary")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    write("s/app.py", WAITING)
    source = {"duckdb": {"script": "singers.sql"}}
    suite(unpredicted("a"), unpredicted("b"), source=source, predictor="app.py:predict", name="s/a.queryeval.yaml")
    run = [sys.executable, "-m", *command]
    with subprocess.Popen(run, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        wait_for((pytester.path / "s/asked").exists)
        process.send_signal(signal.SIGKILL)
    (left,) = temporary.iterdir()
    suite(case("a"), source=source, name="s/a.queryeval.yaml")

    subprocess.run(run, env=environment, check=True, capture_output=True, timeout=300)

    assert [*temporary.iterdir()] == [], left
