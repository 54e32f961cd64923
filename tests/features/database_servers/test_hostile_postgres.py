"""Untrusted queries against PostgreSQL, as the role that may do the most."""

import marshal
import os
import signal
import time

import pytest
from hostile_postgres import HOSTILE, SUPERUSER
from waiting import wait_for

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.database_servers.engine import POSTGRES_DRIVER, POSTGRES_PACKAGES
from pytest_queryeval.sandbox import host
from pytest_queryeval.sandbox.host import Child, Hosts, child_command

pytest_plugins = ["postgres"]

LIMIT = 0.4  # seconds
# Functions by which a query could do more than read.
PREPARED = """
    create or replace function wipe_tickets() returns int language sql volatile as 'delete from tickets; select 1';
    create or replace procedure wipe() language sql as 'delete from tickets';
    create or replace function keep_lock() returns void language sql as 'select pg_advisory_lock(8)';
    create table if not exists locked (x int);
    create or replace function broken(state text) returns int language plpgsql stable as
        'begin raise exception ''broken'' using errcode = state; end';
"""
REMOVED = """
    drop function wipe_tickets(); drop procedure wipe(); drop function keep_lock(); drop table locked;
    drop function broken(text);
"""


@pytest.fixture(scope="module")
def battery(cluster, tmp_path_factory):
    """An engine for a role; nothing may be left behind after all of the statements."""
    folder = tmp_path_factory.mktemp("battery")
    folder.chmod(0o777)
    for extension in ("dblink", "tablefunc"):
        cluster.sql(f"create extension if not exists {extension}")
    cluster.sql(PREPARED, user="owner")
    before = cluster.dump()
    with Hosts() as hosts, cluster.connect("owner") as bystander, cluster.connect() as locker:
        locker.execute("begin; lock table locked in access exclusive mode")

        def engine(user):
            settings = {"url": cluster.url(user)}
            return ENGINES["sqlalchemy"].open(
                Source(name="m", engine="sqlalchemy", settings=settings, folder=folder), hosts
            )

        yield engine, str(folder)
        assert bystander.execute("select 1").fetchall() == [(1,)]
    assert cluster.dump() == before
    assert cluster.sql("select * from pg_locks where locktype = 'advisory'") == []
    assert cluster.sql("select * from pg_replication_slots") == []
    assert list(folder.iterdir()) == []
    cluster.sql(REMOVED, user="owner")  # other tests use the cluster, and this fixture may be set up again


def check(engine, query, kinds):
    began = time.monotonic()

    limit = LIMIT if "timeout" in kinds else 10  # the machine may be busy
    execution = engine.execute(query, timeout=limit, max_rows=100_000)
    elapsed = time.monotonic() - began
    following = engine.execute("select count(*) from concerts", timeout=5, max_rows=10)

    assert execution.answer is None
    assert execution.error.kind in kinds, execution.error
    assert elapsed < 60  # by itself it ends never, or much later
    assert following.answer.rows == [(3,)]


@pytest.mark.parametrize(("query", "kinds"), [pytest.param(*case, id=name) for name, *case in HOSTILE])
def test_hostile_statements_of_the_owner_fail_in_time_and_the_next_query_answers(battery, query, kinds):
    engine, folder = battery

    check(engine("owner"), query.replace("{folder}", folder), kinds)


@pytest.mark.parametrize("query", SUPERUSER.values(), ids=SUPERUSER)
def test_what_superusers_may_is_refused_to_them(battery, query):
    engine, folder = battery

    check(engine("postgres"), query.replace("{folder}", folder), {"unsafe"})


def test_lock_that_a_function_takes_ends_with_its_query(cluster, battery):
    engine, _ = battery

    execution = engine("owner").execute("select keep_lock()", timeout=5, max_rows=10)
    locks = cluster.sql("select count(*) from pg_locks where locktype = 'advisory'")

    assert execution.error is None
    assert locks == [(0,)]


def test_query_that_is_stopped_runs_no_longer_on_the_server(cluster, battery):
    engine, _ = battery

    engine("owner").execute("select pg_sleep(60)", timeout=LIMIT, max_rows=10)

    wait_for(lambda: cluster.backends() == 0, seconds=30)


def test_answer_that_is_cut_off_leaves_no_transaction_open_for_long(cluster, battery):
    engine, _ = battery
    engine("owner").execute("select * from generate_series(1, 1000000)", timeout=5, max_rows=10)

    wait_for(lambda: cluster.backends() == 0)
    following = engine("owner").execute("select 1", timeout=5, max_rows=10)

    assert following.answer.rows == [(1,)]


@pytest.fixture
def child():
    """The engine's process, which nobody kills at the limit of a query."""
    command = child_command(host._LOOP, POSTGRES_PACKAGES, str(POSTGRES_DRIVER), str(host.MEMORY_BYTES), "0", "0")
    started = Child(command)
    assert marshal.loads(started.receive(time.monotonic() + 30, at_most=64)) == ("ready",)
    yield started
    started.kill()


def test_a_query_that_no_cancellation_reaches_is_given_up_at_its_limit(cluster, child):
    settings = {"url": cluster.url().replace("://", "+psycopg://", 1)}
    busy = "select pid from pg_stat_activity where query like 'FETCH%queryeval%' and state = 'active'"

    def ask(query, seconds):
        child.send(("run", settings, query, seconds, 10, 1_000))

    def reply():
        return marshal.loads(child.receive(time.monotonic() + 30, at_most=1_000))

    ask("select pg_sleep(60)", 2.0)
    while not (actual := cluster.sql(busy)):
        pass
    os.kill(actual[0][0], signal.SIGSTOP)  # as if it copied a text of a gigabyte
    try:
        given_up = reply()
        ask("drop table gone", 5.0)
        refused = reply()
        ask("select 1", 5.0)
        following = reply()
    finally:
        os.kill(actual[0][0], signal.SIGCONT)

    assert given_up == ("failure", "timeout", "")
    assert refused[0] == "failure"
    assert refused[1] != "timeout"
    assert following[2] == [(1,)]
    wait_for(lambda: cluster.backends() == 0)
