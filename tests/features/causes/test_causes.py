"""Why a prediction is wrong: the edits after which its query, run again, has gold's answer."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import sqlglot
import yaml
from cause_runs import evaluated, graph_source, script_source, told, wrongly_repaired
from challenged_pairs import without_search
from filled_databases import filled, seeded
from hypothesis import given
from hypothesis import strategies as st
from samples import answer, make_case, query
from sparql_golds import GOLDS, HEAD, made

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES, SourceFingerprint
from pytest_queryeval.features.strength import MUTATORS

pytest_plugins = ["postgres"]

FOLDER = Path(__file__).parent
SQL, SPARQL = (
    yaml.safe_load((FOLDER / f"{name}_causes.yaml").read_text(encoding="utf-8")) for name in ("sql", "sparql")
)
SQL_GOLDS = yaml.safe_load((FOLDER.parent / "strength" / "mutants.yaml").read_text(encoding="utf-8"))["sql"]
FAILED = SQL["failed"]
DUCKDB = pytest.param("duckdb", marks=pytest.mark.feature("duckdb"))
NAMES = "SELECT name FROM singer"
ENDLESS = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)"


@pytest.fixture
def music(tmp_path):
    return script_source(tmp_path, SQL["databases"]["music"])


def check_rows(rows, source, prefix="", **changes):
    """Check the cause of each row, and that its repaired query has gold's answer."""
    pairs = [(prefix + row["predicted"], prefix + row["gold"]) for row in rows]

    entries = evaluated(pairs, source, **changes)

    found = {pair: told(entry) for pair, entry in zip(pairs, entries, strict=True)}
    assert found == {pair: row["cause"] for pair, row in zip(pairs, rows, strict=True)}
    assert wrongly_repaired(pairs, entries, source, **changes) == []
    for row, entry in zip(rows, entries, strict=True):
        if isinstance(row.get("repaired"), str):
            repaired = entry["cause"]["repaired_query"] or "none"
            assert repaired.split() == row["repaired"].split()
        elif row["cause"] and "repaired" in row:
            assert entry["cause"]["repaired_query"] is None
    return entries


def by_place(groups, *names):
    """The rows of groups that have the same settings: one run of many rows is faster than a run for each group."""
    places = {}
    for group in groups:
        settings = {name: group[name] for name in names if name in group}
        places.setdefault(str(settings), (settings, []))[1].extend(group["rows"])
    return [pytest.param(*place, id=name) for name, place in places.items()]


@pytest.mark.parametrize(("settings", "rows"), by_place(SQL["causes"], "engine", "database", "compare"))
def test_a_wrong_answer_of_sql_has_the_smallest_cause(tmp_path, request, settings, rows):
    engine = settings.get("engine", "sqlite")
    if engine == "duckdb":
        request.applymarker(pytest.mark.feature("duckdb"))
    source = script_source(tmp_path, SQL["databases"][settings["database"]], engine)

    check_rows(rows, source, policy=Policy(**settings.get("compare", {})))


@pytest.mark.parametrize(("settings", "rows"), by_place(SPARQL["causes"], "graph", "prefix"))
def test_a_wrong_answer_of_sparql_has_the_smallest_cause(tmp_path, settings, rows):
    source = graph_source(tmp_path, SPARQL["graphs"][settings["graph"]], settings["graph"])

    check_rows(rows, source, settings.get("prefix", HEAD))


@pytest.mark.parametrize("kind", ["sql", "sparql"])
def test_where_no_edits_are_the_cause_what_is_shared_is_told_part_by_part(tmp_path, kind):
    table = (SQL if kind == "sql" else SPARQL)["shared"]
    source = script_source(tmp_path, SQL["databases"]["halls"])
    if kind == "sparql":
        source = graph_source(tmp_path, SPARQL["graphs"]["people.ttl"])
    prefix = HEAD if kind == "sparql" else ""

    entries = evaluated([(prefix + row["predicted"], prefix + row["gold"]) for row in table], source)

    for row, entry in zip(table, entries, strict=True):
        shared = entry["details"]["cause"]
        assert entry["cause"] is None
        assert [shared["shared"], shared["of"]] == row["share"], row
        names = ("only_gold", "only_predicted", "unknown_terms")
        assert {name: shared[name] for name in names} == {name: row.get(name, []) for name in names}


@pytest.fixture
def failed_source(request, tmp_path):
    def source(engine):
        if engine != "postgres":
            return script_source(tmp_path, FAILED["script"], engine)
        cluster = request.getfixturevalue("cluster")
        drop = "drop table if exists concert; drop table if exists singer;"
        cluster.sql(drop + FAILED["script"], database="music")
        cluster.sql("grant select on singer, concert to reader", database="music")
        return Source(name="music", engine="sqlalchemy", settings={"url": cluster.url("reader")}, folder=tmp_path)

    return source


@pytest.mark.parametrize("engine", ["sqlite", DUCKDB, pytest.param("postgres", marks=pytest.mark.slow)])
def test_a_query_that_an_engine_refuses_is_repaired_by_its_message(failed_source, engine):
    rows = [row for group in FAILED["groups"] if engine in group["engines"] for row in group["rows"]]

    check_rows(rows, failed_source(engine), dialect=engine)


def test_a_query_of_sparql_that_the_engine_refuses_is_repaired(tmp_path):
    check_rows(SPARQL["failed"]["rows"], graph_source(tmp_path, SPARQL["failed"]["graph"]))


# Properties.

# The labels of the one edit from a mutant of an operator to gold.
LABELS = {
    "aggregate": {"wrong-aggregate", "extra-distinct"},
    "arithmetic": set(),
    "between": {"wrong-operator"},
    "class": {"wrong-class"},
    "column": {"wrong-column"},
    "comparison-boundary": {"wrong-operator"},
    "comparison-flip": {"wrong-operator"},
    "condition-dropped": {"missing-condition", "wrong-operator"},
    "connector": {"wrong-connector"},
    "count": {"missing-distinct", "extra-distinct", "wrong-column"},
    "direction": {"swapped"},
    "distinct": {"extra-distinct", "missing-distinct"},
    "filter-dropped": {"missing-condition"},
    "grouping": {"wrong-grouping"},
    "having-dropped": {"missing-having"},
    "join-condition": set(),
    "join-type": {"wrong-join-type"},
    "limit": {"wrong-limit"},
    "minus-dropped": {"set-operation"},
    "negation": {"wrong-operator"},
    "not-added": {"wrong-operator"},
    "not-dropped": {"wrong-operator"},
    "null-test": {"wrong-operator"},
    "optional-dropped": {"missing-pattern"},
    "optional-required": {"optional"},
    "order-direction": {"wrong-order"},
    "order-dropped": {"missing-order"},
    "order-key-dropped": {"wrong-order"},
    "pattern-dropped": {"missing-pattern"},
    "predicate": {"wrong-predicate", "wrong-column"},
    "projection": {"wrong-column"},
    "set-operation": {"set-operation"},
    "union-all": {"set-operation"},
    "union-arm-dropped": {"set-operation"},
    "value": {"wrong-value", "value-case"},
    "where-dropped": {"missing-condition"},
}
OF_CLAUSES = {"wrong-expression", "wrong-having", "wrong-join-condition"}  # of any change there
# Of which the way back to gold may be more than one edit, or an edit that is the whole query.
LARGE = {"except-swapped", "between", "connector", "like"}
NO_GROUPS = "HAVING clause on a non-aggregate query"


def check_mutants(mutants, source, **changes):
    """Check that each mutant with a wrong answer has one edit as its cause, by its operator; return how many have."""
    pairs = [(one.query, gold) for gold, one in mutants]

    entries = evaluated(pairs, source, **changes)

    count = 0
    for (gold, one), entry in zip(mutants, entries, strict=True):
        is_failed = NO_GROUPS in str(entry["predicted"].get("error"))
        if entry["scores"]["execution_accuracy"] != 1.0 and one.operator not in LARGE and not is_failed:
            edits = (entry["cause"] or {"edits": []})["edits"]
            assert len(edits) == 1, (gold, one, edits)
            assert edits[0]["label"] in {*LABELS[one.operator], *OF_CLAUSES}, (gold, one, edits)
            is_template = "template" in edits[0]["change"]  # of CONSTRUCT, which mutants count to WHERE
            assert is_template or edits[0]["clause"] == one.clause, (gold, one, edits)
            count += 1
    assert wrongly_repaired(pairs, entries, source, **changes) == []
    return count


@seeded(10)
@given(seed=st.integers(0, 10**6))
def test_the_cause_of_a_mutant_is_its_one_change(seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mutants")
    filling, made_file = filled(SQL_GOLDS["tables"], seed, rows=12), sqlite3.connect(folder / "m.sqlite")
    with closing(filling) as connection, closing(made_file) as file:
        connection.backup(file)
    source = Source(name="m", engine="sqlite", settings={"path": "m.sqlite"}, folder=folder)
    golds = SQL_GOLDS["golds"][seed % 4 :: 4]

    check_mutants(
        [(gold, one) for gold in golds for one in MUTATORS["sql"](gold, make_case(), {}, lambda _: None)], source
    )


def test_the_cause_of_a_mutant_of_sparql_is_its_one_change(tmp_path):
    triples = [f":n{n % 7} :{'pqr'[n % 3]} {n % 5 if n % 3 == 0 else f':n{n * n % 7}'} ." for n in range(60)]
    types = [f":n{n} a :{'AB'[n % 2]} ." for n in range(5)]
    source = graph_source(tmp_path, f"@prefix : <http://e/> . {' '.join(triples + types)}")

    assert check_mutants([(HEAD + gold, one) for gold in GOLDS for one in made(gold)], source, max_rows=10_000) > 50


QUERIES = (
    "SELECT name FROM singer",
    "SELECT count(*), country FROM singer GROUP BY country HAVING count(*) > 2 ORDER BY 1 DESC LIMIT 3",
    "SELECT T1.name FROM singer AS T1 JOIN concert AS T2 ON T1.id = T2.singer_id WHERE T2.year = 2014 OR T1.age < 3",
    "SELECT name FROM singer WHERE id NOT IN (SELECT id FROM concert WHERE year BETWEEN 2010 AND 2014)",
    "SELECT name FROM singer UNION ALL SELECT name FROM stadium ORDER BY name",
    "SELECT DISTINCT a.country FROM singer a LEFT JOIN singer b ON a.age > b.age WHERE b.id IS NULL",
    "WITH recent AS (SELECT * FROM concert WHERE year > 2012) SELECT max(year) FROM recent",
    "SELECT x.n FROM (SELECT count(*) AS n, country FROM singer GROUP BY country) AS x WHERE x.n > 1",
    "SELECT * FROM singer, concert, stadium WHERE singer.id = singer_id AND concert.id = concert_id",
    "SELECT CASE WHEN age > 3 THEN 'old' ELSE 'new' END, avg(age) FILTER (WHERE id > 2) FROM singer GROUP BY 1",
    "SELECT row_number() OVER (PARTITION BY country ORDER BY age) FROM singer",
    "SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert WHERE singer_id = singer.id) AND NOT age IS NULL",
    "SELECT 1",
    "VALUES (1, 2)",
)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite", DUCKDB])
def test_of_any_two_queries_a_repaired_one_has_golds_answer_and_what_they_share_is_counted(tmp_path, engine):
    pairs = [pair for pair in product(QUERIES, QUERIES) if pair[0] != pair[1]]
    pairs = pairs if engine == "sqlite" else pairs[::9]
    some = pairs[::4]
    source = script_source(tmp_path, SQL["databases"]["halls"], engine)

    entries = evaluated([*pairs, *some[::-1]], source)

    first, again = entries[: len(pairs)], entries[len(pairs) :][::-1]
    assert wrongly_repaired(pairs, first, source) == []
    assert [*map(told, first[::4])] == [*map(told, again)]  # trees that all share stay as they were
    for (predicted, _), entry in zip(pairs, first, strict=True):
        shared = entry["details"].get("cause")
        assert entry["outcome"] == "passed", entry["message"]
        assert shared is None or (shared["shared"] == shared["of"]) is not bool(shared["only_gold"])
        if repaired := (entry["cause"] or {}).get("repaired_query"):
            assert sqlglot.parse_one(repaired, dialect=engine) != sqlglot.parse_one(predicted, dialect=engine)


# What decides whether there is a cause, and which.


@pytest.mark.parametrize(
    ("predicted", "golds", "changes", "expected"),
    [
        # A score that is not requested would be 0.
        (f"{NAMES} WHERE age > 30", [f"{NAMES} WHERE age > 40"], {"metrics": ("valid_query",)}, ["wrong-value"]),
        (f"{NAMES} WHERE age > 39", [f"{NAMES} WHERE age >= 40"], {"metrics": ("valid_query",)}, []),
        # Of several golds the closest one counts.
        (f"{NAMES} WHERE age > 30", [f"{NAMES} WHERE age > 40", f"{NAMES} WHERE age > 45"], {}, ["wrong-value"]),
        # A stored gold, and a text that the parser cannot read.
        (NAMES, [answer(("Ana",))], {}, []),
        (f"{NAMES} WHERE name GLOB 'A*' AND " + "(" * 50 + "1" + ")" * 50, [NAMES], {}, []),
        # A failure is its own cause.
        ("SELECT zzz FROM singer WHERE yyy = 1 GROUP BY xxx", [NAMES], {}, ["unknown-column"]),
        ("SELECT zzz FROM qqq WHERE yyy = 1", [NAMES], {}, ["unknown-table"]),
        ("SELECT sum(count(*)) FROM concert LIMIT 1", [NAMES], {}, ["grouping-error"]),
        ("", [NAMES], {}, ["empty"]),
        ("DELETE FROM singer", [NAMES], {}, ["unsafe"]),
        ("SELECT a.id FROM singer a, singer b, singer c, singer d", [NAMES], {"max_rows": 100}, ["too-large"]),
        (f"SELECT {ENDLESS}", [NAMES], {"timeout": 1.0}, ["timeout"]),
        # Queries of a size that nobody writes.
        (f"{NAMES} WHERE {' AND '.join(f'age = {number}' for number in range(900))}", [NAMES], {}, []),
        (f"SELECT {' + '.join('1' * 900)}", [NAMES], {}, []),
        (" UNION ".join(["SELECT 1"] * 100), [NAMES], {}, []),
        (f"SELECT {', '.join(['1'] * 500)} FROM singer", [f"{NAMES} WHERE age > 40"], {}, []),
    ],
)
def test_labels_of_other_causes(music, predicted, golds, changes, expected):
    golds = tuple(gold if not isinstance(gold, str) else query(gold) for gold in golds)

    (entry,) = evaluated([(predicted, NAMES)], music, golds=golds, **changes)

    assert [edit["label"] for edit in (entry["cause"] or {"edits": []})["edits"]] == expected
    assert all(edit["change"] for edit in (entry["cause"] or {"edits": []})["edits"])


def test_without_causes_failures_have_none_either(music):
    pairs = [("SELECT nme FROM singer", NAMES)]

    modes = {mode: evaluated(pairs, music, cause=mode)[0]["cause"] for mode in ("off", "auto")}

    assert modes["off"] is None
    assert modes["auto"]["edits"][0]["label"] == "unknown-column"


def test_without_small_databases_a_cause_is_compared_on_the_source_only(music):
    pairs = [(f"{NAMES} WHERE age = 30 AND country = 'DE'", f"{NAMES} WHERE age >= 50 AND country = 'DE'")]

    with without_search():
        (untested,) = evaluated(pairs, music)
    (tested,) = evaluated(pairs, music)

    assert (told(untested), untested["cause"]["tested"]) == (["wrong-value WHERE 30 → 50"], False)
    assert (len(told(tested)), tested["cause"]["tested"]) == (2, True)


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        ("", ["extra-condition", "set-operation"]),
        ("INSERT INTO concert VALUES (5, 3, 2014), (6, 5, 2015);", ["missing-distinct"]),
    ],
)
def test_of_few_rows_an_edit_that_is_enough_on_the_source_may_be_by_chance(tmp_path, more, labels):
    joined = "SELECT singer.name FROM {0} JOIN {1} ON singer.id = concert.singer_id"
    gold = f"{joined.format('singer', 'concert')} INTERSECT SELECT name FROM singer WHERE age > 20"
    predicted = f"{joined.format('concert', 'singer')} WHERE age > 20 GROUP BY concert.id"

    (entry,) = evaluated([(predicted, gold)], script_source(tmp_path, SQL["databases"]["music"] + more))

    assert [edit["label"] for edit in entry["cause"]["edits"]] == labels


def test_a_server_is_not_asked_for_repairs_unless_all_causes_are_wanted(music, monkeypatch):
    server = replace(ENGINES["sqlite"], fingerprint=SourceFingerprint(files=lambda _: []))
    monkeypatch.setitem(ENGINES._members, "sqlite", server)
    pairs = [("SELECT nme FROM singer", NAMES), (f"{NAMES} WHERE age > 30", f"{NAMES} WHERE age > 40")]

    asked = {mode: evaluated(pairs, music, cause=mode) for mode in ("auto", "full")}

    assert [bool((entry["cause"] or {}).get("repaired_query")) for entry in asked["auto"]] == [False, False]
    assert [bool((entry["cause"] or {}).get("repaired_query")) for entry in asked["full"]] == [True, True]
