"""What is an interruption, who handles it, and who leaves it to others; processes are in the tests of those."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from pytest_queryeval.core.errors import TimeLimitExceeded
from pytest_queryeval.core.process import SigtermHandler, is_interruption, uninterrupted

ONE_CASE = "{kind: json, cases: [{id: one, question: '?', gold: 1, predicted: 1}]}"


@pytest.fixture(autouse=True)
def default():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_sigterm_interrupts_as_ctrl_c_does():
    handler = SigtermHandler()
    handler.begin()

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)

    handler.end()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_handler_of_somebody_else_stays():
    signal.signal(signal.SIGTERM, print)
    handler = SigtermHandler()

    handler.begin()
    handler.end()

    assert signal.getsignal(signal.SIGTERM) is print


def test_other_threads_set_no_handler():
    thread = threading.Thread(target=SigtermHandler().begin)
    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_ctrl_c_is_ignored_where_nothing_may_be_left_half_done():
    before = signal.getsignal(signal.SIGINT)

    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)

    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeLimitExceeded(), pytest.exit.Exception("enough")])
def test_interruptions_pass_through_code_of_users(error):
    assert is_interruption(error)


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), ValueError(), pytest.skip.Exception("no")])
def test_everything_else_that_users_raise_is_their_error(error):
    assert not is_interruption(error)


@pytest.mark.process
def test_a_command_exits_with_130_where_ctrl_c_interrupts_code_of_a_string(tmp_path):
    (tmp_path / "conftest.py").write_text("exec('raise KeyboardInterrupt')", encoding="utf-8")
    (tmp_path / "one.queryeval.yaml").write_text(ONE_CASE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest_queryeval", "check", "."]

    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert (completed.returncode, completed.stderr) == (130, "queryeval: interrupted\n")
