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
from pytest_queryeval.sandbox import host as host_module
from pytest_queryeval.sandbox.host import Host, Hosts

DRIVER = """
import os, signal, sys, time

class Driver:
    def run(self, settings, query, timeout):
        return getattr(self, query.split()[0])(settings, *query.split()[1:])

    def rows(self, settings, count, size="1"):
        left = iter(range(int(count)))
        return ("x",), lambda most: [("." * int(size),) for _, _ in zip(range(most), left)]

    def echo(self, settings):
        return tuple(settings), lambda most: [tuple(settings.values())]

    def again(self, settings):
        chunks = iter([64 * [(0,)], None, [(1,)]])
        return ("x",), lambda most: next(chunks)

    def sleep(self, settings, seconds):
        time.sleep(float(seconds))
        return (), lambda most: []

    def die(self, settings, number):
        os.kill(os.getpid(), int(number))

    def exit(self, settings, status):
        print("the last words", file=sys.stderr)
        os._exit(int(status))

    def say(self, settings):
        print("on stdout")
        os.write(1, b"and once more")
        return ("x",), lambda most: [(1,)]

    def allocate(self, settings):
        bytearray(2 << 30)

    def write(self, settings, path):
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))

    def garbage(self, settings):
        os.write(3, b"\\xff" * 8)
        time.sleep(9)

    def core(self, settings):
        import resource

        return ("soft", "hard"), lambda most: [resource.getrlimit(resource.RLIMIT_CORE)]

    def begin(self, settings, path):
        open(path, "a").write("begun ")
        time.sleep(60)

    def session(self, settings):
        return ("x",), lambda most: [(os.getsid(0),)]

    def bug(self, settings):
        return 1 / 0

    def classify(self, error):
        return ("failure", "invalid", str(error)) if isinstance(error, OSError) else ("fault", repr(error))
"""


CONTRACT = """
import sys
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox import sparql_json

class Driver(driver.Driver):
    def run(self, settings, query, timeout):
        names = iter(sorted(name for name in sys.modules if name.startswith("pytest_queryeval")))
        return ("module",), lambda count: [(name,) for _, name in zip(range(count), names)]

    def classify(self, error):
        return "fault", repr(error)
"""


@pytest.fixture
def driver(tmp_path):
    path = tmp_path / "driver.py"
    path.write_text(DRIVER)
    return path


@pytest.fixture
def host(driver):
    with Hosts() as hosts:
        yield hosts.shared(Host("toy", driver))


def run(host, query, timeout=5, max_rows=10_000, **settings):
    return host.execute(settings, query, timeout=timeout, max_rows=max_rows)


def test_child_imports_nothing_of_the_package_but_what_its_driver_names(tmp_path):
    (tmp_path / "contract.py").write_text(CONTRACT)

    with Hosts() as hosts:
        rows = run(hosts.shared(Host("toy", tmp_path / "contract.py")), "modules").answer.rows

    folders = {"", ".documents", ".sandbox"}
    named = {".sandbox.driver", ".sandbox.sparql_json", ".sandbox.start_child"}
    assert {name.removeprefix("pytest_queryeval") for (name,) in rows} == folders | named | {".documents.strict_json"}


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 575, 576, 10_000])
def test_all_rows_arrive_however_they_are_cut_into_chunks(host, count):
    answer = run(host, f"rows {count}").answer

    assert answer.columns == ("x",)
    assert answer.rows == [(".",)] * count


def test_rows_longer_than_a_pipe_arrive_whole(host):
    rows = run(host, "rows 100 1000000", timeout=30).answer.rows

    assert [len(text) for (text,) in rows] == [1_000_000] * 100


def test_settings_reach_the_driver(host):
    answer = run(host, "echo", path="a.db", count=3).answer

    assert (answer.columns, answer.rows) == (("path", "count"), [("a.db", 3)])


def test_rows_that_start_again_replace_the_first(host):
    assert run(host, "again").answer.rows == [(1,)]


def test_one_row_too_many_is_too_large(host):
    assert run(host, "rows 70", max_rows=70).error is None
    assert run(host, "rows 71", max_rows=70).error.kind == "too_large"
    assert run(host, "rows 1", max_rows=0).error.kind == "too_large"


def test_too_many_bytes_are_too_large(host, monkeypatch):
    monkeypatch.setattr(host_module, "RESULT_BYTES", 5_000_000)

    assert run(host, "rows 4 1000000").error is None
    assert run(host, "rows 5 1000000").error.kind == "too_large"


def test_late_child_is_killed_and_the_next_query_gets_a_new_one(host):
    first = run(host, "rows 1")
    pid = host.pid
    began = time.monotonic()

    late = run(host, "sleep 60", timeout=0.2)
    elapsed = time.monotonic() - began
    following = run(host, "rows 1")

    assert (late.error.kind, late.error.message) == ("timeout", "no answer within 0.2 s")
    assert elapsed < 20
    assert not is_running(pid)
    assert first.answer.rows == following.answer.rows
    assert host.pid != pid


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGSEGV, "invalid"), (signal.SIGABRT, "invalid"), (signal.SIGKILL, "too_large")],
)
def test_child_that_dies_of_a_query_is_a_failure_that_names_the_signal(host, number, kind):
    error = run(host, f"die {int(number)}").error

    assert error.kind == kind
    assert f"died with signal {int(number)} (" in error.message
    assert run(host, "rows 1").answer.rows == [(".",)]


def test_child_that_died_between_queries_is_replaced(host):
    run(host, "rows 1")
    os.kill(host.pid, signal.SIGKILL)
    wait_for(lambda: host.pid is None)

    assert run(host, "rows 1").answer.rows == [(".",)]


def test_child_that_exits_is_a_source_error_with_its_last_words(host):
    for status in (3, 0):
        with pytest.raises(SourceError, match=f"status {status}: the last words"):
            run(host, f"exit {status}")

        assert run(host, "rows 1").answer.rows == [(".",)]


def test_bug_in_a_driver_is_a_source_error(host):
    with pytest.raises(SourceError, match="ZeroDivisionError"):
        run(host, "bug")


def test_driver_that_cannot_be_loaded_is_a_source_error_with_the_reason(tmp_path, capfd):
    (tmp_path / "broken.py").write_text("import no_such_module")

    with pytest.raises(SourceError, match=r"does not start: ModuleNotFoundError: .*no_such_module"):
        run(Host("toy", tmp_path / "broken.py"), "rows 1")

    assert capfd.readouterr() == ("", "")


def test_driver_that_ends_at_once_is_a_source_error(tmp_path):
    (tmp_path / "gone.py").write_text("import os; os._exit(0)")

    with pytest.raises(SourceError, match="the toy process does not start: it closed its pipe"):
        run(Host("toy", tmp_path / "gone.py"), "rows 1")


def test_interpreter_that_is_missing_is_a_source_error(driver, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(SourceError, match=r"the toy process does not start: .*No such file"):
        run(Host("toy", driver), "rows 1")


def test_what_a_driver_prints_reaches_neither_the_terminal_nor_the_answer(host, capfd):
    assert run(host, "say").answer.rows == [(1,)]
    assert capfd.readouterr() == ("", "")


def test_message_of_an_absurd_length_is_a_source_error(host):
    with pytest.raises(SourceError, match="a message of 18,446"):
        run(host, "garbage")

    assert run(host, "rows 1").answer.rows == [(".",)]


@pytest.mark.skipif(sys.platform != "linux", reason="address space is bounded on Linux")
def test_memory_is_bounded(host):
    error = run(host, "allocate").error

    assert (error.kind, error.message) == ("too_large", "out of memory")


def test_child_cannot_write_much(host, tmp_path):
    error = run(host, f"write {tmp_path}/file").error

    assert "File too large" in error.message


def test_child_that_dies_writes_no_core_file(host):
    assert run(host, "core").answer.rows == [(0, 0)]


def test_child_has_a_session_of_its_own_so_that_the_terminal_does_not_interrupt_it(host):
    assert run(host, "session").answer.rows == [(host.pid,)]


def test_interrupted_query_does_not_leave_its_answer_to_the_next(host):
    run(host, "rows 1")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        run(host, "sleep 3")

    assert run(host, "rows 2").answer.rows == [(".",)] * 2


@pytest.mark.process
def test_threads_share_a_host(host):
    answers = {}

    def ask(count):
        answers[count] = len(run(host, f"rows {count}", timeout=30).answer.rows)

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


def test_pool_hands_out_one_host_a_name_and_closes_all(driver):
    hosts = Hosts()
    host = hosts.shared(Host("toy", driver))
    run(host, "rows 1")
    pid = host.pid

    same = hosts.shared(Host("toy", driver))
    hosts.close()
    hosts.close()

    assert same is host
    assert host.pid is None
    assert not is_running(pid)


@pytest.mark.process
def test_query_whose_host_is_closed_is_not_asked_a_second_time(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host_module, "RETRY_SECONDS", 60)
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
def test_child_ends_when_its_parent_is_killed(driver, query):
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
    root = Path(host_module.__file__).parents[2]

    parent = subprocess.run([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True, check=False)

    assert parent.returncode == -signal.SIGKILL
    wait_for(lambda: not is_running(int(parent.stdout)))


def test_child_that_is_killed_while_idle_costs_no_query_its_answer(host, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.sandbox.host.RETRY_SECONDS", 60)  # its end may take long on a busy machine
    run(host, "rows 1")

    for _ in range(5):
        os.kill(host.pid, signal.SIGKILL)
        assert run(host, "rows 3").error is None
