"""No statement changes a PostgreSQL database, or its server, where statements may change data: not even a superuser."""

import threading
import time

import pytest
from batteries import failures
from hostile_postgres_writes import ALLOWED, COMMANDS, GUARDED, INVALID, LARGE, NEW_ORDER, SCHEMA, SLOW
from waiting import wait_for

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

pytest_plugins = ["postgres"]
pytestmark = [pytest.mark.feature("database_servers"), pytest.mark.process]

MAX_ROWS = 1_000


def without_sequences(dump):
    return [line for line in dump.splitlines() if "setval" not in line]


def opened(cluster, hosts, user):
    settings = {"url": cluster.url(user), "scratch": True}
    source = Source(name="shop", engine="sqlalchemy", settings=settings, folder=cluster.folder, writes=True)
    return ENGINES["sqlalchemy"].open(source, hosts)


@pytest.fixture(scope="module")
def shop(cluster):
    cluster.sql(SCHEMA, user="owner")
    cluster.sql("CREATE EXTENSION IF NOT EXISTS dblink")
    return cluster


@pytest.fixture(scope="module", params=["owner", "postgres"])
def battery(request, shop, tmp_path_factory):
    """Return a function that runs a statement; after all of them, nothing may have changed or come."""
    folder = tmp_path_factory.mktemp("battery")
    folder.chmod(0o777)
    before = shop.dump()
    with Hosts() as hosts, shop.connect("owner") as bystander:
        engine = opened(shop, hosts, request.param)

        def run(query, timeout=20):
            return engine.execute(query.replace("{folder}", str(folder)), timeout=timeout, max_rows=MAX_ROWS)

        yield run
        assert bystander.execute("SELECT 1").fetchall() == [(1,)]
        assert shop.sql("SELECT * FROM pg_locks WHERE locktype = 'advisory'") == []
    assert without_sequences(shop.dump()) == without_sequences(before)
    assert list(folder.iterdir()) == []


def test_commands_are_unsafe(battery):
    assert failures(battery, COMMANDS, {"unsafe"}) == {}


def test_commands_behind_statements_that_are_allowed_are_unsafe(battery):
    hidden = [f"{NEW_ORDER};\n-- ;\n{command} /* ; */;;" for command in COMMANDS]

    assert failures(battery, hidden, {"unsafe"}) == {}


def test_what_the_first_word_does_not_tell_is_unsafe(battery):
    assert failures(battery, GUARDED, {"unsafe"}) == {}


def test_what_postgresql_does_not_take_is_invalid(battery):
    assert failures(battery, INVALID, {"invalid"}) == {}


def test_large_values_and_many_rows_are_too_large(battery):
    assert failures(battery, LARGE, {"too_large"}) == {}


def test_statements_without_end_are_stopped(battery, shop):
    began = time.monotonic()

    assert failures(battery, SLOW, {"timeout"}, timeout=0.3) == {}
    assert time.monotonic() - began < 60  # by themselves they end never
    wait_for(lambda: shop.backends() == 0)


def test_statements_that_are_allowed_leave_nothing_behind(battery):
    assert failures(battery, ALLOWED, {"an answer"}) == {}


def test_the_statements_are_distinct_and_many():
    queries = [*COMMANDS, *GUARDED, *INVALID, *LARGE, *SLOW]

    assert len(set(queries)) == len(queries) > 150


def test_a_process_waits_for_the_queries_of_another_one_beyond_its_time(shop):
    with Hosts() as first_hosts, Hosts() as second_hosts:
        first, second = opened(shop, first_hosts, "owner"), opened(shop, second_hosts, "owner")
        second.execute("SELECT 1", timeout=20, max_rows=9)  # its child has started

        slow = "UPDATE customer SET city = 'x'; SELECT pg_sleep(4)"
        thread = threading.Thread(target=first.execute, args=[slow], kwargs={"timeout": 20, "max_rows": 9})
        thread.start()
        while not shop.sql("SELECT * FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            time.sleep(0.01)
        began = time.monotonic()
        execution = second.execute("UPDATE customer SET city = 'y'", timeout=1, max_rows=9)
        waited = time.monotonic() - began
        thread.join()

    assert execution.error is None
    assert waited > 1


def test_a_child_that_is_killed_leaves_no_transaction_and_no_lock_behind(shop):
    with Hosts() as hosts:
        engine = opened(shop, hosts, "owner")
        thread = threading.Thread(
            target=engine.execute, args=["DELETE FROM log; SELECT pg_sleep(1)"], kwargs={"timeout": 9, "max_rows": 9}
        )
        thread.start()
        wait_for(shop.backends)
        hosts.close()
        thread.join()

    wait_for(lambda: shop.sql("SELECT * FROM pg_locks WHERE locktype = 'advisory'") == [])
    wait_for(lambda: shop.backends() == 0)
