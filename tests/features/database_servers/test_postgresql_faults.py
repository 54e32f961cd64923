"""What becomes of queries that the server, its administrator or the end of a process stops."""

import os
import re
import signal
import socket
import threading
import time
from contextlib import suppress

import pytest
from opened_sources import execute, rows_of, source_of
from servers import HOST
from waiting import child_processes, wait_for

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.testing import open_engine

pytest.importorskip("sqlalchemy")
pytest_plugins = ["postgres"]

CEILING = 20  # seconds: ten times what a query and the question whether anybody answers take at a limit of 1


def crash(cluster, pid):
    os.kill(pid, signal.SIGSEGV)


def function_of(name):
    return lambda cluster, pid: cluster.sql(f"select {name}({pid})")


TERMINATE, CANCEL = function_of("pg_terminate_backend"), function_of("pg_cancel_backend")


@pytest.fixture
def ended(cluster):
    """Ends queries that fetch, so many times; gives a list with the process and the start of each."""
    import psycopg

    stop = threading.Event()
    threads = []

    def start(end_query, times):
        busy = "application_name = 'pytest-queryeval' and state = 'active' and query like 'FETCH%'"
        ends = []

        def end():
            while len(ends) < times and not stop.wait(0.05):
                with suppress(psycopg.Error):  # the server may be starting again
                    for query in cluster.sql(f"select pid, query_start from pg_stat_activity where {busy}"):
                        if query not in ends:  # a query is listed until the server has seen its end
                            end_query(cluster, query[0])
                            ends.append(query)

        threads.append(threading.Thread(target=end))
        threads[-1].start()
        return ends

    yield start
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("end_query", [TERMINATE, CANCEL])
def test_a_query_that_is_ended_once_runs_again(hosts, cluster, ended, end_query):
    ends = ended(end_query, 1)

    assert rows_of(hosts, source_of("sqlalchemy", url=cluster.url()), "select 7 from pg_sleep(1)") == [(7,)]
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("end_query", "reason", "times"),
    [
        (TERMINATE, "terminating connection", {1, 2}),
        (CANCEL, "the query was ended from elsewhere: .*user request", {1, 2}),
        (crash, "server closed the connection unexpectedly", {1}),  # to which the query is not sent again
    ],
)
def test_a_query_that_ends_each_time_on_a_server_that_answers_is_a_failed_one(
    hosts, cluster, ended, end_query, reason, times
):
    source = source_of("sqlalchemy", url=cluster.url())
    ends = ended(end_query, 2)

    error = execute(hosts, source, "select pg_sleep(5)", timeout=9).error

    assert error.kind == "rejected"
    assert re.search(reason, error.message)
    assert len(ends) in times
    assert rows_of(hosts, source, "select 1") == [(1,)]


def test_a_child_that_is_killed_leaves_no_query_running(cluster):
    others = child_processes()
    with open_engine(source_of("sqlalchemy", url=cluster.url())) as engine:
        engine.execute("select 1", timeout=5, max_rows=1)
        thread = threading.Thread(target=lambda: engine.execute("select pg_sleep(30)", timeout=60, max_rows=1))
        thread.start()
        time.sleep(0.7)  # a child that dies sooner has a successor that is sent the query again
        began = cluster.backends()
        for pid in child_processes() - others:
            os.kill(pid, signal.SIGKILL)
        thread.join(30)

    assert began == 1
    wait_for(lambda: cluster.backends() == 0)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_never_answers_is_a_source_error_in_time():
    with socket.create_server((HOST, 0)) as silent:
        url = f"postgresql://owner@{HOST}:{silent.getsockname()[1]}/music"
        with open_engine(source_of("sqlalchemy", url=url)) as engine:
            began = time.monotonic()

            with pytest.raises(SourceError, match=r"no answer within 1 s; nor does it answer SELECT 1"):
                engine.execute("select 1", timeout=1, max_rows=1)

            assert time.monotonic() - began < CEILING


def test_a_query_that_no_cancellation_reaches_is_given_up_at_its_limit(cluster):
    """The server's process is stopped, as if it copied a text of a gigabyte."""
    running = "select pid from pg_stat_activity where query like 'FETCH%queryeval%' and state = 'active'"
    stopped = []

    def stop():
        wait_for(lambda: cluster.sql(running))
        stopped.append(cluster.sql(running)[0][0])
        os.kill(stopped[0], signal.SIGSTOP)

    with open_engine(source_of("sqlalchemy", url=cluster.url())) as engine:
        engine.execute("select 1", timeout=5, max_rows=10)
        thread = threading.Thread(target=stop)
        thread.start()
        given_up = engine.execute("select pg_sleep(60)", timeout=2, max_rows=10)
        thread.join()
        try:
            refused = engine.execute("drop table gone", timeout=5, max_rows=10)
            following = engine.execute("select 1", timeout=5, max_rows=10)
        finally:
            os.kill(stopped[0], signal.SIGCONT)

    assert (given_up.error.kind, refused.error.kind) == ("timeout", "unsafe")
    assert following.answer.rows == [(1,)]
    wait_for(lambda: cluster.backends() == 0)
