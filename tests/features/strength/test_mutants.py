"""Mutants of queries: each operator makes what it should, and what is called equivalent answers as gold does."""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from functools import cache
from itertools import chain, groupby, product
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
import sqlglot
import yaml
from documentation import page as page_of
from filled_databases import filled, seeded
from golden_files import compare_golden
from hypothesis import given
from hypothesis import strategies as st
from samples import make_case, query
from sparql_golds import ALL_GOLDS, GOLDS, HEAD, made, mutants

from pytest_queryeval import evaluate
from pytest_queryeval.core.db_schema import ColumnDefinition, ForeignKey, TableDefinition
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.strength import MAX_MUTANTS, MUTATORS

FILE = yaml.safe_load((Path(__file__).parent / "mutants.yaml").read_text(encoding="utf-8"))
SQL, SPARQL = FILE["sql"], FILE["sparql"]
PAGE = page_of("strength")
GOLDS_OF_SQL = [*SQL["golds"], *SQL["limited"]]
WORD = re.compile(r"'[^']*'|\"[^\"]*\"|<[^<>\s]+>|[\w:]+|[^\s\w(),.]+")
NO_GROUPS = "HAVING clause on a non-aggregate query"  # if GROUP BY is dropped
POLICIES = ({}, {"duplicates": "ignore"}, {"row_order": "ignore"}, {"row_order": "strict"})


def declared(ddl):
    """The tables of a script with their constraints, as SQLite knows them."""
    tables = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(ddl)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
            keys = connection.execute(f'PRAGMA foreign_key_list("{name}") ').fetchall()
            unique = connection.execute(f"SELECT name FROM pragma_index_list(\"{name}\") WHERE origin = 'u'").fetchall()
            tables[name.lower()] = TableDefinition(
                name=name,
                columns=[ColumnDefinition(column[1], column[2], bool(column[3] or column[5])) for column in columns],
                primary_key=[column[1].lower() for column in sorted(columns, key=lambda row: row[5]) if column[5]],
                foreign_keys=[
                    ForeignKey([key[3] for key in group], group[0][2], [key[4] for key in group])
                    for _, rows in groupby(sorted(keys), key=lambda row: row[0])
                    for group in [[*rows]]
                ],
                unique=[
                    [column for (column,) in connection.execute(f'SELECT name FROM pragma_index_info("{index}")')]
                    for (index,) in unique
                ],
            )
    return tables


TABLES = declared(SQL["tables"])


def of_sql(text, dialect="sqlite", tables=TABLES, **policy):
    case = make_case(dialect=dialect, policy=Policy(**policy))
    return MUTATORS["sql"](text, case, tables, lambda _: None)


def reason(mutant):
    """Why a mutant answers as gold does; empty if that is not known."""
    return mutant.equivalent or ", ".join(mutant.proof())


@cache
def reasons(gold, **policy):
    """The mutants of a gold of SQL, and why they answer as it does."""
    return {one: reason(one) for one in of_sql(gold, **policy)}


@pytest.mark.parametrize("operator", SQL["made"])
def test_each_operator_of_sql_makes_its_changes(operator):
    for text, change, *options in SQL["made"][operator]:
        found = {one.change: one for one in of_sql(text, **dict(*options)) if one.operator == operator}
        assert change in found, text
        assert not reason(found[change]), text


@pytest.mark.parametrize("operator", SPARQL["made"])
def test_each_operator_of_sparql_makes_its_changes_and_no_others(operator):
    for row in SPARQL["made"][operator]:
        assert {one.change for one in made(row["query"]) if one.operator == operator} == {*row["changes"]}, row


@pytest.mark.long
def test_equivalent_mutants_are_recognised():
    for text, change, *options in SQL["equivalent"]:
        assert {one.change: bool(why) for one, why in reasons(text, **dict(*options)).items()}[change] is True, text
    for row in SPARQL["equivalent"]:
        found = {
            one.equivalent for one in made(row["query"], **row.get("policy", {})) if one.operator == row["operator"]
        }
        assert found == {*row.get("reasons", [""])}, row
    operators = {one.operator for gold in SQL["golds"] for one, why in reasons(gold).items() if why}
    assert len(operators) >= 12


def shown(found):
    """A line for each mutant and its reason, with a checksum of its query."""
    return [
        f"  {one.operator} | {one.clause} | {one.change} | {crc32(one.query.encode()):08x} | {why}"
        for one, why in found.items()
    ]


@pytest.mark.long
def test_all_mutants_of_sql_are_as_they_were():
    """Also by other policies and dialects; those that are called equivalent end in the reason."""
    rows = [(gold, {}) for gold in GOLDS_OF_SQL]
    for text, _, *options in [*chain.from_iterable(SQL["made"].values()), *SQL["equivalent"]]:
        rows.append((text, dict(*options)))
    lines = {f"{text} {options or ''}": shown(reasons(text, **options)) for text, options in rows}
    for gold, policy in product(GOLDS_OF_SQL, POLICIES[1:]):
        known = reasons(gold)
        found = reasons(gold, **policy).items()
        lines[f"{gold} {policy}"] = shown({one: why for one, why in found if why and not known.get(one)})

    compare_golden(chain.from_iterable([text, *own] for text, own in lines.items() if own), "mutants/sql.txt")


def test_all_mutants_of_sparql_are_as_they_were():
    found = {gold: mutants(gold) for gold in ALL_GOLDS}
    found |= {row["query"]: made(row["query"]) for row in chain.from_iterable(SPARQL["made"].values())}
    for row in SPARQL["equivalent"]:
        found[f"{row['query']} {row.get('policy', '')}"] = made(row["query"], **row.get("policy", {}))
    lines = {text: shown({one: reason(one) for one in own}) for text, own in found.items()}

    compare_golden(chain.from_iterable([text, *own] for text, own in lines.items()), "mutants/sparql.txt")


def test_the_page_names_every_operator():
    named = set(re.findall(r"`([a-z-]+)`", PAGE.partition("## Operators")[2].partition("## What next")[0]))

    assert {one.operator for gold in SQL["golds"] for one in of_sql(gold)} <= named


def check_one_place(gold, found):
    """Check that each mutant differs from gold by what its change names, and that none comes twice or is gold."""
    assert len({gold, *(one.query for one in found)}) == len(found) + 1
    for one in found:
        words, others, changed = (Counter(WORD.findall(text)) for text in (gold, one.query, f"{one.change} ALL"))
        assert (words - others) + (others - words) <= changed, one
        assert one.clause, one


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "mysql", "tsql"])
def test_a_mutant_of_sql_is_a_query_that_differs_in_one_place(dialect):
    for gold in SQL["golds"] if dialect == "sqlite" else SQL["golds"][::8]:
        found = of_sql(gold, dialect=dialect)
        assert found
        if dialect not in ("mysql", "tsql"):  # which have other words for LIMIT and FULL JOIN
            check_one_place(sqlglot.parse_one(gold, dialect=dialect).sql(dialect=dialect), found)
        for one in found:
            sqlglot.parse_one(one.query, dialect=dialect)


def test_no_mutant_of_sparql_comes_twice():
    for gold in ALL_GOLDS:
        found = mutants(gold)
        assert len({one.query for one in found}) == len(found) <= MAX_MUTANTS
        assert all(one.clause and one.change for one in found)


def random_graph(path, seed):
    chance = Random(seed)
    lines = []
    for _ in range(chance.randint(0, 14)):
        subject, object_ = chance.choice("abcd"), f":{chance.choice('abcd')}"
        predicate = f":{chance.choice('pqr')}"
        if predicate == ":p":
            object_ = str(chance.randint(1, 4))
        lines.append(f":{subject} {predicate} {object_} .\n")
        if chance.random() < 0.4:
            lines.append(f":{subject} a :{chance.choice('AB')} .\n")
    path.write_text("@prefix : <http://e/> .\n" + "".join(lines), encoding="utf-8")
    return Source(name="g", engine="rdf", settings={"files": [path.name]}, folder=path.parent)


def random_database(path, seed):
    with closing(filled(SQL["tables"], seed)) as connection, closing(sqlite3.connect(path)) as file:
        connection.backup(file)
    return Source(name="d", engine="sqlite", settings={"path": path.name}, folder=path.parent)


@pytest.mark.parametrize("kind", ["sql", "sparql"])
@seeded(6)
@given(seed=st.integers(0, 10**6))
def test_all_mutants_run_and_equivalent_ones_never_differ_from_gold(kind, seed, tmp_path_factory):
    chance, folder = Random(seed), tmp_path_factory.mktemp("mutants")
    source = (random_database if kind == "sql" else random_graph)(
        folder / ("s.sqlite" if kind == "sql" else "s.ttl"), seed
    )
    golds = SQL["golds"] if kind == "sql" else [HEAD + gold for gold in GOLDS]
    cases, equivalent = [], {}
    for gold in chance.sample(golds, 12):
        policy = chance.choice(POLICIES)
        for one in (of_sql if kind == "sql" else mutants)(gold, **policy):
            changes = {"id": f"{len(cases):04}", "golds": (query(gold),), "predicted": query(one.query)}
            settings_ = {"kind": kind, "policy": Policy(**policy), "thresholds": {}, "max_rows": 10_000}
            equivalent[changes["id"]] = one
            cases.append(make_case(source=source, dialect="sqlite" if kind == "sql" else "", **settings_, **changes))

    report = evaluate(cases, cause="off")

    for entry in report["cases"]:
        one = equivalent[entry["id"]]
        assert entry["outcome"] == "passed", (entry["message"], one)
        error = entry["predicted"].get("error") or {"message": NO_GROUPS}
        assert error["message"] == NO_GROUPS, (error, one)
        assert not reason(one) or entry["scores"]["execution_accuracy"] == 1.0, (seed, entry["gold"]["query"], one)


def test_texts_in_double_quotes_are_no_columns():
    found = of_sql('SELECT id FROM singer WHERE name LIKE "%a%" AND country = "France"')

    assert not any("France" in one.change for one in found if one.operator == "column")


def test_names_keep_their_case_where_the_dialect_folds_it():
    tables = declared('CREATE TABLE singer ("Id" INT PRIMARY KEY, "Name" TEXT, "Stage Name" TEXT)')

    found = of_sql('SELECT "Name" FROM singer', "postgres", tables)

    assert [one.change for one in found if one.operator == "column"] == ['"Name" → "Stage Name"']


@pytest.mark.parametrize("text", ["SELEC 1", "SELECT (((", "", "DROP TABLE singer", "SELECT 1; SELECT 2"])
def test_what_is_no_query_has_no_mutants(text):
    assert of_sql(text) == mutants(text) == ()
    assert made("SELECT * { ?x :p (1 2) }") == ()


def test_mutants_need_no_tables():
    operators = {one.operator for one in of_sql("SELECT id FROM singer WHERE age > 1", tables={})}

    assert {"where-dropped", "comparison-boundary"} <= operators


def test_of_many_mutants_the_operators_take_turns():
    unions = " UNION ALL ".join(f"SELECT DISTINCT name FROM singer WHERE age > {n} AND id < 9" for n in range(12))
    patterns = " ".join(f"?x :p ?y{n} FILTER (?y{n} > {n})" for n in range(40))

    of_unions, of_patterns = of_sql(unions), made(f"SELECT ?x {{ {patterns} }}")

    assert len(of_unions) == len(of_patterns) == MAX_MUTANTS
    assert {"distinct", "value", "condition-dropped", "union-all"} <= {one.operator for one in of_unions}
    assert {"distinct", "predicate", "filter-dropped", "value"} <= {one.operator for one in of_patterns}


def test_long_queries_have_few_mutants():
    assert len(of_sql(f"SELECT id FROM singer WHERE {' AND '.join(f'age > {n}' for n in range(1_200))}")) == 10
