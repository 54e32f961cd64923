"""No statement changes a DuckDB source, reaches a file, or stops the next one, where statements may change data."""

import time

import duckdb
import pytest
from batteries import failures, opened_battery
from hostile_duckdb_writes import ALLOWED, COMMANDS, FULL, GUARDED, INVALID, LARGE, NEW_ORDER, SCHEMA, SLOW

pytestmark = [pytest.mark.feature("duckdb"), pytest.mark.process]


@pytest.fixture(scope="module")
def battery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("battery")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(SCHEMA)
    with opened_battery(folder, "duckdb", "shop.duckdb") as run:
        yield run


def test_commands_are_unsafe(battery):
    assert failures(battery, COMMANDS, {"unsafe"}) == {}


def test_commands_behind_statements_that_are_allowed_are_unsafe(battery):
    hidden = [f"{NEW_ORDER};\n-- ;\n{command} /* ; */;;" for command in COMMANDS]

    assert failures(battery, hidden, {"unsafe"}) == {}


def test_what_reaches_files_settings_and_the_system_is_refused(battery):
    assert failures(battery, GUARDED, {"unsafe", "invalid"}) == {}


def test_what_duckdb_does_not_have_is_invalid(battery):
    assert failures(battery, INVALID, {"invalid"}) == {}


def test_large_values_and_many_rows_are_too_large(battery):
    assert failures(battery, LARGE, {"too_large"}) == {}


@pytest.mark.parametrize("queries", [FULL[:1], pytest.param(FULL[1:], marks=pytest.mark.slow)], ids=["one", "all"])
def test_a_copy_does_not_grow_without_bounds(battery, queries):
    assert failures(battery, queries, {"too_large"}, timeout=60) == {}


def test_statements_without_end_are_stopped(battery):
    began = time.monotonic()

    assert failures(battery, SLOW, {"timeout"}, timeout=0.2) == {}
    assert time.monotonic() - began < 60  # by themselves they end never


def test_statements_that_are_allowed_leave_nothing_behind(battery):
    assert failures(battery, ALLOWED, {"an answer"}) == {}


def test_the_statements_are_distinct_and_many():
    queries = [*COMMANDS, *GUARDED, *INVALID, *LARGE, *FULL, *SLOW]

    assert len(set(queries)) == len(queries) > 200
