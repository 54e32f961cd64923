"""A Dask cluster of two processes on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from test_workers import assert_same, deadly_cases, messages, registries  # noqa: F401 - a fixture

from pytest_queryeval import ExecutorBroken, QueryEvalError, evaluate
from pytest_queryeval.cli import main
from pytest_queryeval.features.scale.dask import dask_executor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*:ResourceWarning")]


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
        patch.setattr("pytest_queryeval.features.scale.dask.CONNECT_SECONDS", 300)
        patch.setattr("pytest_queryeval.features.scale.dask.START_SECONDS", 300)
        yield cluster.scheduler_address.replace("tcp", "dask")


def test_a_worker_that_dies_changes_nothing_in_the_report(address, tmp_path, registries):  # noqa: F811
    queries = ["SELECT 1", "SELECT 2"] * 20
    cases = deadly_cases(tmp_path, [*queries, "SELECT 1 AS once", *queries])

    with dask_executor(address) as executor:
        report = evaluate(cases, executor=executor)

    assert (tmp_path / "died").exists()
    assert_same(report, evaluate(cases))


def test_a_case_that_kills_its_workers_is_an_error_and_the_others_are_right(address, tmp_path, registries):  # noqa: F811
    (tmp_path / "late").touch()  # Dask makes no new worker for one that dies while it starts
    cases = deadly_cases(tmp_path, ["SELECT 1", "SELECT 1 AS always", "SELECT 2"])

    with dask_executor(address) as executor:
        report = evaluate(cases, executor=executor)

    assert list(messages(report)) == ["c1"]
    assert "its worker died 4 times" in messages(report)["c1"]
    assert (report["totals"]["passed"], report["totals"]["failed"]) == (1, 1)


def test_the_command_evaluates_suites_on_a_cluster(address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cases = [{"id": f"c{n}", "gold": f"SELECT {n % 3}", "predicted": f"SELECT {n % 2}"} for n in range(20)]
    suite = {"kind": "sql", "source": {"sqlite": {"script": "t.sql"}}, "cases": cases}
    (tmp_path / "t.sql").write_text("CREATE TABLE t (n)", encoding="utf-8")
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")

    statuses = [main(["evaluate", ".", "--json", *where]) for where in ([], [f"--on={address}"])]

    here, there = map(json.loads, capsys.readouterr().out.splitlines())
    assert statuses == [1, 1]
    assert_same(there, here)


def test_a_worker_that_is_stopped_does_not_hold_up_the_end(address, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.scale.dask.CLOSE_SECONDS", 0.5)
    began = time.monotonic()
    with ExitStack() as stack, dask_executor(address) as executor:
        worker = executor.submit(os.getpid).result()
        os.kill(worker, signal.SIGSTOP)
        stack.callback(os.kill, worker, signal.SIGCONT)

    assert time.monotonic() - began < 240  # Dask gives up such a worker after five minutes


def test_a_scheduler_that_dies_breaks_the_executor_with_the_report_of_what_was_done(tmp_path, registries, capfd):  # noqa: F811
    pytest.importorskip("distributed", reason="pip install 'pytest-queryeval[dask]'")
    cases = deadly_cases(tmp_path, [*["SELECT 1"] * 60, "SELECT 1 AS ends", *["SELECT 1"] * 60])
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
        with (
            dask_executor(json.loads(place.read_text())["address"].replace("tcp", "dask")) as executor,
            pytest.raises(ExecutorBroken, match=r"the executor is broken: .*: make a new one") as caught,
        ):
            evaluate(cases, executor=executor)

    assert 0 < caught.value.report["totals"]["passed"] < 121
    assert caught.value.report["interrupted"]
    assert capfd.readouterr().err == ""


def test_a_scheduler_that_does_not_answer_is_an_error_with_its_remedy(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.scale.dask.CONNECT_SECONDS", 0.5)

    with pytest.raises(QueryEvalError, match=r"no Dask scheduler at dask://127\.0\.0\.1:9: .*: start one with"):
        dask_executor("dask://127.0.0.1:9").__enter__()
