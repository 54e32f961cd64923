"""Dask: addresses of schedulers, and a cluster of two processes on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from test_workers import CONFTEST, EXAMPLES, assert_same, deadly, messages  # noqa: F401 - a fixture

from pytest_queryeval.cli import main
from pytest_queryeval.features.scale.dask import dask_executor  # white box: a worker that stops as the run ends

# Dask makes no new worker for one that dies while it starts.
LATE = CONFTEST.replace("os._exit(3)", "(time.sleep(2), os._exit(3))")
DASK = "pytest_queryeval.features.scale.dask"
ENDS = """
    if "ends" in predicted.query:
        os.kill(int((HERE / "scheduler.pid").read_text()), signal.SIGKILL)
        time.sleep(60)
    return 1.0
"""


def refusal(address, capsys):
    """What the command says of an address that it cannot use."""
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(EXAMPLES / "sql"), "--on", address])
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "address",
    ["dask://", "dask://a:1/x", "dask://a", "dask://a:b", "dask://a:1?b", "dask://[::1", "dask://me:swordfish@a:1"],
)
def test_an_address_that_is_none_of_a_scheduler_is_refused_without_its_password(address, capsys):
    said = refusal(address, capsys)

    assert said.startswith("--on: expected dask://HOST:PORT, the address of a scheduler, found 'dask://")
    assert said.endswith(f"{address.replace('me:swordfish@', '')}'\n")


def test_dask_that_is_not_installed_is_an_error_with_its_remedy(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)

    said = "dask://a:1 needs the package 'distributed', which is not installed: pip install 'pytest-queryeval[dask]'\n"
    assert refusal("dask://a:1", capsys) == said


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_an_error_with_its_remedy(monkeypatch, capsys):
    pytest.importorskip("distributed", reason="pip install 'pytest-queryeval[dask]'")
    monkeypatch.setattr(f"{DASK}.CONNECT_SECONDS", 0.5)

    said = refusal("dask://127.0.0.1:9", capsys)

    assert said.startswith("no Dask scheduler at dask://127.0.0.1:9: ")
    assert said.endswith(": start one with `dask scheduler`\n")


@pytest.fixture(scope="module")
def address():
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed", reason="pip install 'pytest-queryeval[dask]'")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "host": "127.0.0.1"}
    options = {
        "distributed.scheduler.allowed-failures": 0,  # to lose fewer workers, which start slowly
        "distributed.comm.timeouts.connect": "300s",  # the machine may be busy
        "distributed.comm.timeouts.tcp": "300s",
    }
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set(options),
        distributed.LocalCluster(**settings, silence_logs=50) as cluster,
    ):
        patch.setattr(f"{DASK}.CONNECT_SECONDS", 300)
        patch.setattr(f"{DASK}.START_SECONDS", 300)
        yield cluster.scheduler_address.replace("tcp", "dask")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_a_worker_that_dies_changes_nothing_in_the_report(address, deadly, tmp_path):  # noqa: F811
    queries = [*["SELECT 1", "SELECT 2"] * 20, "SELECT 1 AS once", *["SELECT 1", "SELECT 2"] * 20]

    report = deadly(queries, f"--on={address}")

    assert (tmp_path / "died").exists()
    assert_same(report, deadly(queries))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_a_worker_that_is_stopped_does_not_hold_up_the_end(address, monkeypatch):
    monkeypatch.setattr(f"{DASK}.CLOSE_SECONDS", 0.5)
    began = time.monotonic()
    with ExitStack() as stack, dask_executor(address) as executor:
        worker = executor.submit(os.getpid).result()
        os.kill(worker, signal.SIGSTOP)
        stack.callback(os.kill, worker, signal.SIGCONT)

    assert time.monotonic() - began < 240  # Dask gives up such a worker after five minutes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_a_case_that_kills_its_workers_is_an_error_and_the_others_are_right(address, deadly, tmp_path):  # noqa: F811
    (tmp_path / "conftest.py").write_text(LATE, encoding="utf-8")

    report = deadly(["SELECT 1", "SELECT 1 AS always", "SELECT 2"], f"--on={address}")

    assert list(messages(report)) == ["c01"]
    assert "its worker died 4 times" in messages(report)["c01"]
    assert (report["totals"]["passed"], report["totals"]["failed"]) == (1, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_a_scheduler_that_dies_breaks_the_executor_with_the_report_of_what_was_done(deadly, tmp_path, capfd):  # noqa: F811
    pytest.importorskip("distributed", reason="pip install 'pytest-queryeval[dask]'")
    (tmp_path / "conftest.py").write_text(CONFTEST.replace("    return 1.0\n", ENDS), encoding="utf-8")
    with ExitStack() as stack:
        place = tmp_path / "scheduler.json"
        for kind, *options in (
            ("scheduler", "--host=127.0.0.1", "--port=0", f"--scheduler-file={place}"),
            ("worker", "--no-nanny", "--nthreads=1", f"--scheduler-file={place}", f"--local-directory={tmp_path}"),
        ):
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *options]
            log = stack.enter_context((tmp_path / f"{kind}.log").open("wb"))
            process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
            stack.callback(process.kill)
            while not place.exists():
                assert process.poll() is None
                time.sleep(0.1)
            (tmp_path / f"{kind}.pid").write_text(str(process.pid))
        address = json.loads(place.read_text())["address"].replace("tcp", "dask")

        report = deadly([*["SELECT 1"] * 60, "SELECT 1 AS ends", *["SELECT 1"] * 60], f"--on={address}")

    told = capfd.readouterr()
    assert 0 < report["totals"]["passed"] < 121
    assert "the run has stopped: the executor is broken: " in told.out
    assert told.out.endswith("(the run was stopped)\n")
    assert told.err == ""
