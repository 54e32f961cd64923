"""Child processes that run queries: what reaches them and comes back, and what becomes of those that misbehave."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from waiting import is_running, wait_for

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.sandbox.host import (  # as docs/developers/extending.md has them for engines
    Host,
    Hosts,
    QueryRequest,
)

DRIVER = """
import os, sys, time
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox import sparql_json

def answer(values, columns=("x",)):
    left = iter(values)
    return columns, lambda most: [row for _, row in zip(range(most), left)]

class Driver(driver.TableDriver):
    calls = []

    def run(self, settings, query, timeout):
        self.calls.append(query)
        return getattr(self, query.split()[0])(settings, *query.split()[1:])

    def rows(self, settings, count, size="1"):
        return answer(("." * int(size),) for _ in range(int(count)))

    def asked(self, settings):
        return answer((call,) for call in list(self.calls))

    def echo(self, settings):
        return answer([tuple(settings.values())], tuple(settings))

    def again(self, settings):
        chunks = iter([64 * [(0,)], None, [(1,)]])
        return ("x",), lambda most: next(chunks)

    def sleep(self, settings, seconds):
        time.sleep(float(seconds))
        return answer([])

    def die(self, settings, number):
        os.kill(os.getpid(), int(number))

    def exit(self, settings, status):
        print("the last words", file=sys.stderr)
        os._exit(int(status))

    def say(self, settings):
        print("on stdout")
        os.write(1, b"and once more")
        return answer([(1,)])

    def allocate(self, settings):
        bytearray(2 << 30)

    def write(self, settings, path):
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))

    def garbage(self, settings):
        os.write(3, b"\\xff" * 8)
        time.sleep(9)

    def process(self, settings):
        import resource

        return answer([(os.getsid(0), *resource.getrlimit(resource.RLIMIT_CORE))])

    def modules(self, settings):
        return answer((name,) for name in sorted(sys.modules) if name.startswith("pytest_queryeval"))

    def begin(self, settings, path):
        open(path, "a").write("begun ")
        time.sleep(60)

    def broken(self, settings):
        raise OSError("no such table")

    def bug(self, settings):
        return 1 / 0

    def describe(self, settings):
        if "stuck" in settings:
            time.sleep(30)
        if "bug" in settings:
            self.bug(settings)
        return answer([("A", "B", None, None, None)] * settings.get("columns", 1), ("t", "c", "type", "to", "at"))

    def classify(self, error):
        return ("failure", "invalid", str(error)) if isinstance(error, OSError) else ("fault", repr(error))
"""
ONE = [(".",)]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    path = tmp_path_factory.mktemp("toy") / "driver.py"
    path.write_text(DRIVER)
    return path


@pytest.fixture
def host(driver):
    with Hosts() as hosts:
        yield hosts.shared(Host("toy", driver))


def run(host, query, timeout=5, max_rows=10_000, **settings):
    return host.execute(settings, query, timeout=timeout, max_rows=max_rows)


def rows(host, query, **limits):
    execution = run(host, query, **limits)
    assert execution.error is None, execution.error
    return execution.answer.rows


def test_a_child_imports_nothing_of_the_package_but_what_its_driver_names(host):
    folders = {"", ".documents", ".sandbox"}
    named = {".sandbox.driver", ".sandbox.sparql_json", ".sandbox.start_child"}

    modules = {name.removeprefix("pytest_queryeval") for (name,) in rows(host, "modules")}

    assert modules == folders | named | {".documents.strict_json"}


def test_all_rows_arrive_however_they_are_cut_into_chunks(host):
    for count in (0, 1, 63, 64, 65, 575, 576, 10_000):
        answer = run(host, f"rows {count}").answer

        assert (answer.columns, answer.rows) == (("x",), ONE * count)
    assert [len(text) for (text,) in rows(host, "rows 100 1000000", timeout=30)] == [1_000_000] * 100


def test_settings_reach_the_driver_and_rows_that_start_again_replace_the_first(host):
    answer = run(host, "echo", path="a.db", count=3).answer

    assert (answer.columns, answer.rows) == (("path", "count"), [("a.db", 3)])
    assert rows(host, "again") == [(1,)]


def test_too_many_rows_and_bytes_are_too_large(host, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.sandbox.host.RESULT_BYTES", 5_000_000)

    assert run(host, "rows 70", max_rows=70).error is None
    assert run(host, "rows 71", max_rows=70).error.kind == "too_large"
    assert run(host, "rows 1", max_rows=0).error.kind == "too_large"
    assert run(host, "rows 4 1000000").error is None
    assert run(host, "rows 5 1000000").error.kind == "too_large"


def test_a_late_child_is_killed_and_the_next_query_gets_a_new_one(host):
    assert rows(host, "rows 1") == ONE
    pid = host.pid
    began = time.monotonic()

    late = run(host, "sleep 60", timeout=0.2)

    assert (late.error.kind, late.error.message) == ("timeout", "no answer within 0.2 s")
    assert time.monotonic() - began < 20
    assert not is_running(pid)
    assert rows(host, "rows 1") == ONE
    assert host.pid != pid


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGSEGV, "invalid"), (signal.SIGABRT, "invalid"), (signal.SIGKILL, "too_large")]
)
def test_a_child_that_dies_of_a_query_is_a_failure_that_names_the_signal(host, number, kind):
    error = run(host, f"die {int(number)}").error

    assert error.kind == kind
    assert f"died with signal {int(number)} (" in error.message
    assert rows(host, "rows 1") == ONE


def test_a_child_that_died_between_queries_is_replaced(host, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.sandbox.host.RETRY_SECONDS", 60)  # its end may take long on a busy machine
    rows(host, "rows 1")
    for _ in range(3):
        os.kill(host.pid, signal.SIGKILL)  # perhaps it is asked before it has ended

        assert rows(host, "rows 1") == ONE
    os.kill(host.pid, signal.SIGKILL)
    wait_for(lambda: host.pid is None)

    assert rows(host, "rows 1") == ONE


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("exit 3", "status 3: the last words"),
        ("exit 0", "status 0: the last words"),
        ("bug", "ZeroDivisionError"),
        ("garbage", "a message of 18,446"),
    ],
)
def test_a_child_that_misbehaves_is_a_source_error_and_no_harm_to_the_next_query(host, query, reason):
    with pytest.raises(SourceError, match=reason):
        run(host, query)

    assert rows(host, "rows 1") == ONE


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import no_such_module", "the toy process does not start: ModuleNotFoundError: .*no_such_module"),
        ("import os; os._exit(0)", "the toy process does not start: it closed its pipe"),
    ],
)
def test_a_driver_that_does_not_start_is_a_source_error_with_the_reason(tmp_path, capfd, program, reason):
    (tmp_path / "broken.py").write_text(program)

    with pytest.raises(SourceError, match=reason):
        run(Host("toy", tmp_path / "broken.py"), "rows 1")

    assert capfd.readouterr() == ("", "")


def test_an_interpreter_that_is_missing_is_a_source_error(driver, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(SourceError, match=r"the toy process does not start: .*No such file"):
        run(Host("toy", driver), "rows 1")


def test_what_a_driver_prints_reaches_neither_the_terminal_nor_the_answer(host, capfd):
    assert rows(host, "say") == [(1,)]
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="address space is bounded on Linux")
def test_memory_and_files_are_bounded(host, tmp_path):
    error = run(host, "allocate").error

    assert (error.kind, error.message) == ("too_large", "out of memory")
    assert "File too large" in run(host, f"write {tmp_path}/file").error.message


def test_a_child_has_a_session_of_its_own_and_writes_no_core_file(host):
    """So that the terminal does not interrupt it."""
    assert rows(host, "process") == [(host.pid, 0, 0)]


def test_an_interrupted_query_does_not_leave_its_answer_to_the_next(host):
    rows(host, "rows 1")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        run(host, "sleep 3")

    assert rows(host, "rows 2") == ONE * 2


@pytest.mark.process
def test_threads_share_a_host(host):
    answers = {}

    def ask(count):
        answers[count] = len(rows(host, f"rows {count}", timeout=30))

    threads = [threading.Thread(target=ask, args=(count,)) for count in range(0, 2000, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {count: count for count in range(0, 2000, 100)}


def test_queries_that_need_no_engine_start_no_child(host):
    assert run(host, " \n").error.kind == "empty"
    assert run(host, "x" * 100_001).error.kind == "invalid"
    assert host.pid is None


def test_a_pool_hands_out_one_host_a_name_and_closes_all(driver):
    hosts = Hosts()
    host = hosts.shared(Host("toy", driver))
    rows(host, "rows 1")
    pid = host.pid

    same = hosts.shared(Host("toy", driver))
    hosts.close()
    hosts.close()

    assert same is host
    assert host.pid is None
    assert not is_running(pid)


@pytest.mark.process
def test_a_query_whose_host_is_closed_is_not_asked_a_second_time(host, tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.sandbox.host.RETRY_SECONDS", 60)
    path = tmp_path / "queries"
    path.touch()
    query = threading.Thread(target=run, args=(host, f"begin {path}"), kwargs={"timeout": 30})
    query.start()
    wait_for(path.read_text)

    host.close()
    query.join()

    assert path.read_text() == "begun "
    assert host.pid is None


@pytest.mark.parametrize("query", ["rows 1", "sleep 600"])
def test_a_child_ends_when_its_parent_is_killed(driver, query):
    script = f"""
import os, signal, threading
from pathlib import Path
from pytest_queryeval.sandbox.host import Host
host = Host("toy", Path({str(driver)!r}))
host.execute({{}}, "rows 1", timeout=5, max_rows=9)
print(host.pid, flush=True)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
host.execute({{}}, {query!r}, timeout=2, max_rows=9)
threading.Event().wait()
"""
    root = Path(__file__).parents[1]

    parent = subprocess.run([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True, check=False)

    assert parent.returncode == -signal.SIGKILL
    wait_for(lambda: not is_running(int(parent.stdout)))


# Tables and times.


def timed(host, gold, predicted, iterations=2, timeout=5):
    return host.time(QueryRequest(gold, {}), QueryRequest(predicted, {}), iterations=iterations, timeout=timeout)


def test_a_list_of_tables_that_fails_or_is_late_or_too_long_has_no_answer(host):
    with pytest.raises(SourceError, match="ZeroDivisionError"):
        host.describe({"bug": True}, timeout=5)
    assert host.describe({"stuck": True}, timeout=0.2).error.message == "no answer within 0.2 s"
    assert host.describe({"columns": 100_001}, timeout=5).error.kind == "too_large"
    assert len(host.describe({"columns": 100_000}, timeout=5).answer.rows) == 100_000


def test_both_queries_run_once_an_iteration_and_once_before(host):
    answer = timed(host, "rows 1", "rows 8192", iterations=5).answer

    ran = [call for (call,) in rows(host, "asked") if call.startswith("rows")]
    assert (answer.columns, len(answer.rows)) == (("gold", "predicted"), 5)
    assert (ran.count("rows 1"), ran.count("rows 8192")) == (6, 6)
    assert all(set(ran[at : at + 2]) == {"rows 1", "rows 8192"} for at in range(0, 12, 2))


def test_answers_of_any_length_are_read_to_their_end_while_they_are_timed(host):
    assert len(timed(host, "rows 0", "rows 8191").answer.rows) == 2
    assert len(timed(host, "rows 1", "rows 50000").answer.rows) == 2


@pytest.mark.parametrize(("query", "said"), [("broken", "no such table"), ("sleep 30", "no answer within 0.2 s")])
def test_a_query_that_fails_or_is_late_while_it_is_timed_has_no_times(host, query, said):
    for pair in (("rows 1", query), (query, "rows 1")):
        seconds = timed(host, *pair, iterations=20, timeout=0.2)

        assert (seconds.answer, seconds.error.message) == (None, said)
    with pytest.raises(SourceError, match="ZeroDivisionError"):
        timed(host, "rows 1", "bug")
    assert rows(host, "rows 2") == ONE * 2


def test_a_single_run_that_no_interrupt_reaches_is_ended_long_before_all_would_be(host):
    seconds = timed(host, "rows 1", "sleep 30", iterations=1000, timeout=1.0)

    assert seconds.error.kind == "timeout"
    assert seconds.seconds < 15  # all runs together may take 2002 s
