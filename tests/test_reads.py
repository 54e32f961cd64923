"""Which tables and columns queries read, by hand and by the records of SQLite and DuckDB, and what is out of scope."""

from random import Random

import pytest
from generated_reads import RECORDS, SCHEMA, SCRIPT, VIEWS, Writer
from hypothesis import given
from hypothesis import strategies as st
from yaml_tables import read_table

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.scope import Scope  # white box: as below
from pytest_queryeval.languages.sql.reads import Views, view_queries, what_is_read  # white box: names one by one
from pytest_queryeval.languages.sql.scope import ScopeRules, UnresolvedError, scope_breaches  # white box: as above

TABLE = read_table("reads.yaml")
KNOWN = Schema(tables={name: tuple(columns) for name, columns in TABLE["tables"].items()})
HIDDEN = "CREATE VIEW hidden AS SELECT id FROM orders WHERE tenant_id > 0"
BY_HAND = [(dialect, *row) for dialect, rows in TABLE["reads"].items() for row in rows.items()]
OUTSIDE = [(group, query, message) for group in TABLE["scopes"] for query, message in group["outside"].items()]


def names(reads):
    return {".".join(filter(None, (*read.table, read.column))) for read in reads.reads}


@pytest.mark.parametrize(("dialect", "query", "expected"), BY_HAND)
def test_reads_are_those_resolved_by_hand(dialect, query, expected):
    reads = what_is_read(query, dialect, KNOWN)

    assert " ".join(sorted(names(reads))) == expected
    assert (reads.problems, reads.unknown) == ((), ())


@pytest.mark.parametrize("engine", RECORDS)
def test_generated_queries_read_what_the_database_records(engine):
    record, views = RECORDS[engine](), Views(view_queries(SCRIPT.replace(";\n", ";\n\n"), engine))
    missed, more, number = [], [], 0

    @given(st.integers(min_value=0))
    def check(seed):
        nonlocal number
        query = Writer(Random(seed), engine).query()
        recorded = record.reads(query)
        if recorded is None:
            return
        number += 1
        reads = what_is_read(query, engine, SCHEMA, views, lambda name: name[-1] not in VIEWS)
        found = {(read.table[-1], read.column) for read in reads.reads}
        joined = {(read.table[-1], read.column) for read in reads.reads if read.form == "joined"}
        needless = {name for name in found - joined if name[1]}
        missed.extend([query] if recorded - found and not reads.problems else [])
        more.extend([query] if reads.problems or needless - recorded else [])

    check()

    assert number
    assert missed == []
    assert len(more) <= max(1, number * 0.03)  # of the 5,000 of benchmarks/bench_reads.py at most 1 %


def outcome(group, query):
    rules = ScopeRules(Scope(**group["scope"]), group["dialect"], KNOWN)
    views = Views(view_queries(HIDDEN, group["dialect"]), frozenset({"peek"}))
    try:
        return scope_breaches(query, rules, views)
    except UnresolvedError as error:
        return str(error)


@pytest.mark.parametrize("group", TABLE["scopes"])
def test_queries_in_scope_have_no_breach(group):
    assert [(query, found) for query in group["inside"] if (found := outcome(group, query))] == []


@pytest.mark.parametrize(("group", "query", "message"), OUTSIDE)
def test_what_is_out_of_scope_is_named(group, query, message):
    assert outcome(group, query)[0].startswith(message)


@pytest.mark.parametrize("group", TABLE["scopes"])
def test_what_cannot_be_resolved_is_an_error(group):
    unresolved = group.get("unresolved", {})

    assert {query: outcome(group, query) for query in unresolved} == unresolved
