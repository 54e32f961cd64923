"""Predictions that their engine refuses: the one change that makes them run, by the messages of real engines."""

import sqlite3
from dataclasses import replace

import pytest
from samples import make_case, query

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES as ENGINE_TYPES
from pytest_queryeval.engines import SourceFingerprint
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import MAX_SPELLINGS, FailedQuery
from pytest_queryeval.features.causes.search import STILL_WRONG
from pytest_queryeval.features.causes.sparql.repairs import sparql_repairs
from pytest_queryeval.features.causes.sql.repairs import sql_repairs
from pytest_queryeval.plugin.failure import failure_lines
from pytest_queryeval.results.case_json import result_json

pytest_plugins = ["postgres"]

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, birth_year INTEGER, country TEXT);
INSERT INTO singer VALUES (1, 'Ana', 1990, 'FR'), (2, 'Bo', 1980, 'DE'), (3, 'Cy', 1970, 'FR'), (4, 'Dee', 1991, 'AT');
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer_id INTEGER REFERENCES singer (id), year INTEGER, hall TEXT);
INSERT INTO concert VALUES (1, 1, 2014, 'A'), (2, 1, 2015, 'B'), (3, 2, 2014, 'A'), (4, 3, 2013, 'C');
"""
UNION = "SELECT name FROM singer UNION SELECT hall FROM concert"
JOIN = "FROM singer JOIN concert ON singer.id = concert.singer_id"
# What is predicted, gold, the label and the change.
NAMES = [
    ("SELECT nme FROM singer", "SELECT name FROM singer", "unknown-column", "SELECT: nme → name"),
    (
        "SELECT birthyear FROM singer",
        "SELECT birth_year FROM singer",
        "unknown-column",
        "SELECT: birthyear → birth_year",
    ),
    ("SELECT name FROM singers", "SELECT name FROM singer", "unknown-table", "FROM: singers → singer"),
    (
        "SELECT s.hall FROM singer AS s JOIN concert AS c ON s.id = c.singer_id",
        "SELECT c.hall FROM singer AS s JOIN concert AS c ON s.id = c.singer_id",
        "unknown-column",
        "SELECT: s.hall → c.hall",
    ),
    (
        f"SELECT name, id {JOIN}",
        f"SELECT name, singer.id {JOIN}",
        "ambiguous-column",
        "SELECT: id → singer.id",
    ),
    (
        "SELECT name FROM singer WHERE year = 2014",
        f"SELECT name {JOIN} WHERE year = 2014",
        "unknown-column",
        "FROM: WHERE year → JOIN concert ON singer.id = concert.singer_id WHERE concert.year",
    ),
]
SYNTAX = [
    ("SELECT name FORM singer", "SELECT name FROM singer", "FROM: FORM → FROM"),
    (
        "SELECT name FROM singer WHERE id IN (SELECT singer_id FROM concert",
        "SELECT name FROM singer WHERE id IN (SELECT singer_id FROM concert)",
        "FROM: nothing → )",
    ),
    ("SELECT count(name FROM singer", "SELECT count(name) FROM singer", "SELECT: nothing → )"),
    ("SELECT name FROM singer WHERE (id = 1))", "SELECT name FROM singer WHERE id = 1", "WHERE: ) → nothing"),
    (
        "SELECT name FROM singer LIMIT 2 ORDER BY id",
        "SELECT name FROM singer ORDER BY id LIMIT 2",
        "FROM: LIMIT 2 ORDER BY id → ORDER BY id LIMIT 2",
    ),
    (
        "SELECT country FROM singer WHERE count(*) > 1 GROUP BY country",
        "SELECT country FROM singer GROUP BY country HAVING count(*) > 1",
        "GROUP: WHERE COUNT(*) > 1 GROUP BY country → GROUP BY country HAVING COUNT(*) > 1",
    ),
]


def repaired(source, dialect, predicted, gold):
    """The edits of a cause as a text, and whether its repaired query has gold's answer."""
    case = make_case(source=source, golds=(query(gold),), predicted=query(predicted), dialect=dialect)
    with Session(cause_mode="full") as session:
        cause = evaluate_case(case, session).cause
        edits = [f"{edit.label} {edit.clause}: {edit.change}" for edit in cause.edits]
        if cause.repaired_query is None:
            return edits, False
        case = make_case(source=source, golds=(query(gold),), predicted=query(cause.repaired_query), dialect=dialect)
        return edits, evaluate_case(case, session).scores["execution_accuracy"] == 1


@pytest.fixture
def sqlite_source(tmp_path):
    with sqlite3.connect(tmp_path / "music.sqlite") as connection:
        connection.executescript(SCRIPT)
    return Source(name="music.sqlite", engine="sqlite", settings={"path": "music.sqlite"}, folder=tmp_path)


@pytest.fixture
def duckdb_source(tmp_path):
    (tmp_path / "music.sql").write_text(SCRIPT, encoding="utf-8")
    return Source(name="music.sql", engine="duckdb", settings={"script": "music.sql"}, folder=tmp_path)


@pytest.fixture
def postgres_source(cluster, tmp_path):
    cluster.sql("drop table if exists concert; drop table if exists singer;" + SCRIPT, database="music")
    cluster.sql("grant select on singer, concert to reader", database="music")
    return Source(name="music", engine="sqlalchemy", settings={"url": cluster.url("reader")}, folder=tmp_path)


ENGINES = ["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.slow)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_a_database_refuses_is_repaired_by_its_message(request, engine):
    source = request.getfixturevalue(f"{engine}_source")

    causes = {predicted: repaired(source, engine, predicted, gold) for predicted, gold, *_ in NAMES}

    assert causes == {predicted: ([f"{label} {change}"], True) for predicted, _, label, change in NAMES}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mistake_of_syntax_is_repaired_where_one_change_makes_the_query_run(request, engine):
    source = request.getfixturevalue(f"{engine}_source")

    causes = {predicted: repaired(source, engine, predicted, gold) for predicted, gold, _ in SYNTAX}

    assert causes == {predicted: ([f"syntax {change}"], True) for predicted, _, change in SYNTAX}


@pytest.mark.parametrize(
    ("predicted", "gold", "edits", "is_whole"),
    [
        # What only SQLite says, or refuses.
        ("SELECT name, FROM singer", "SELECT name FROM singer", ["syntax SELECT: , → nothing"], True),
        (
            "SELECT name FROM singer WHERE name = \u2018Bo\u2019",
            "SELECT name FROM singer WHERE name = 'Bo'",
            ["unknown-column WHERE: \u2018Bo\u2019 → 'Bo'"],
            True,
        ),
        (
            "SELECT name FROM singer WHERE id >= ALL (SELECT singer_id FROM concert)",
            "SELECT name FROM singer WHERE id >= (SELECT max(singer_id) FROM concert)",
            ["syntax WHERE: ALL (SELECT singer_id → (SELECT MAX(singer_id)"],
            True,
        ),
        (
            "(SELECT name FROM singer) UNION (SELECT hall FROM concert)",
            UNION,
            [
                f"syntax SELECT: (SELECT name FROM singer) UNION (SELECT hall FROM concert) → {UNION}",
            ],
            True,
        ),
        (
            "SELECT TOP 2 name FROM singer ORDER BY id",
            "SELECT name FROM singer ORDER BY id LIMIT 2",
            ["syntax SELECT: TOP 2 name FROM singer ORDER BY id → name FROM singer ORDER BY id LIMIT 2"],
            True,
        ),
        # Two mistakes: the second one is an edit of its own, or there are more than two.
        (
            "SELECT nme FROM singer WHERE id > 1",
            "SELECT name FROM singer WHERE id > 2",
            ["unknown-column SELECT: nme → name", "wrong-value WHERE: 1 → 2"],
            True,
        ),
        (
            "SELECT nme FROM singer WHERE id > 1 AND country = 'FR'",
            "SELECT name FROM singer WHERE id > 2 AND country = 'DE' ORDER BY id DESC LIMIT 1",
            [f"unknown-column SELECT: nme → name{STILL_WRONG}"],
            False,
        ),
        # The column of gold is none like it.
        ("SELECT label FROM singer", "SELECT name FROM singer", ["unknown-column SELECT: label → name"], True),
        # Nothing makes these run.
        ("SELECT", "SELECT name FROM singer", ["syntax : incomplete input"], False),
        ("SELECT zzz FROM qqq", "SELECT name FROM singer", ["unknown-table : no such table: qqq"], False),
    ],
)
def test_a_repair_may_be_the_whole_cause_a_part_of_it_or_missing(sqlite_source, predicted, gold, edits, is_whole):
    assert repaired(sqlite_source, "sqlite", predicted, gold) == (edits, is_whole)


def test_a_server_is_not_asked_for_repairs_unless_all_causes_are_wanted(sqlite_source, monkeypatch):
    case = make_case(
        source=sqlite_source, golds=(query("SELECT name FROM singer"),), predicted=query("SELECT nme FROM singer")
    )
    engine = ENGINE_TYPES["sqlite"]
    monkeypatch.setitem(
        ENGINE_TYPES._members, "sqlite", replace(engine, fingerprint=SourceFingerprint(files=lambda _: []))
    )

    with Session() as session:
        cause = evaluate_case(case, session).cause

    assert (cause.edits[0].clause, cause.repaired_query) == ("", None)


GRAPH = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:ann a :Singer ; rdfs:label "Ann" ; :age 30 . :bob a :Singer ; rdfs:label "Bob" ; :age 40 .
:cy a :Dancer ; rdfs:label "Cy" ; :age 40 .
"""
HEAD = "PREFIX e: <http://e/>\n"


@pytest.mark.parametrize(
    ("predicted", "gold", "edits", "is_whole"),
    [
        # A prefix of gold, a common one, one of the namespace whose names are used, and a misspelled one.
        ("SELECT ?x { ?x e:age 40 }", "{ ?x e:age 40 }", ["PREFIX: nothing → PREFIX e: <http://e/>"], True),
        (
            HEAD + "SELECT ?x { ?x e:age 40 ; rdfs:label ?y }",
            "{ ?x e:age 40 ; <http://www.w3.org/2000/01/rdf-schema#label> ?y }",
            ["PREFIX: nothing → PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>"],
            True,
        ),
        ("SELECT ?x { ?x :age 40 }", "{ ?x e:age 40 }", ["PREFIX: nothing → PREFIX : <http://e/>"], True),
        (
            "PREFIX exam: <http://e/>\nSELECT ?x { ?x exam:age 40 ; exmam:age ?y }",
            "{ ?x e:age 40 , ?y }",
            ["PREFIX: nothing → PREFIX exmam: <http://e/>"],
            True,
        ),
        # Syntax.
        (HEAD + "SELECT ?x { ?x e:age 40", "{ ?x e:age 40 }", ["WHERE: nothing → }"], True),
        (HEAD + "SELECT ?x, ?y { ?x e:age ?y }", "?x ?y { ?x e:age ?y }", ["SELECT: , → nothing"], True),
        (HEAD + "SELECT COUNT(?x) { ?x e:age 40 }", "(COUNT(?x) AS ?n) { ?x e:age 40 }", None, True),
        (HEAD + "SELECT ?x { ?x e:age ?y FILTER ?y > 30 }", "{ ?x e:age ?y FILTER(?y > 30) }", None, True),
        (HEAD + "SELECT ?x { ?x e:age ?y . ?y = 40 . }", "{ ?x e:age 40 }", None, True),
        (HEAD + "SELECT ?x { ?x a e:Singer ?x e:age 40 }", "{ ?x a e:Singer ; e:age 40 }", None, True),
        (HEAD + "SELECT ?x { ?x e:age ?y ORDER BY ?y LIMIT 1 }", "{ ?x e:age ?y } ORDER BY ?y LIMIT 1", None, True),
        (HEAD + "SELECT ?x { ?x e:age ?y } LIMIT 1 ORDER BY ?y", "{ ?x e:age ?y } ORDER BY ?y LIMIT 1", None, True),
        (HEAD + "SELECT ?x { ?x e:age ?y } ORDER BY ?yLIMIT 1", "{ ?x e:age ?y } ORDER BY ?y LIMIT 1", None, True),
        (
            HEAD + "SELECT ?y (COUNT(?x) AS ?n) { ?x e:age ?y }",
            "?y (COUNT(?x) AS ?n) { ?x e:age ?y } GROUP BY ?y",
            None,
            True,
        ),
        (HEAD + "SELCT ?x { ?x e:age 40 }", "{ ?x e:age 40 }", ["SELECT: SELCT → SELECT"], True),
        # Another mistake beside it.
        (
            "SELECT ?x { ?x :age 30 }",
            "{ ?x e:age 40 }",
            ["PREFIX: nothing → PREFIX : <http://e/>", "WHERE: 30 → 40"],
            True,
        ),
        (
            "SELECT ?x { ?x :age 30 ; :shoe 42 . ?y :shoe ?x }",
            "{ ?x e:age 40 }",
            [f"PREFIX: nothing → PREFIX : <http://e/>{STILL_WRONG}", "WHERE: :shoe is not in the graph"],
            False,
        ),
    ],
)
def test_sparql_repairs(tmp_path, predicted, gold, edits, is_whole):
    (tmp_path / "g.ttl").write_text(GRAPH, encoding="utf-8")
    source = Source(name="g.ttl", engine="rdf", settings={"files": ["g.ttl"]}, folder=tmp_path)
    settings = {"kind": "sparql", "source": source, "thresholds": {}, "max_rows": 1_000, "timeout": 30.0}
    golds = (query(f"{HEAD}SELECT ?x {gold}" if gold.startswith("{") else f"{HEAD}SELECT {gold}"),)

    with Session() as session:
        cause = evaluate_case(make_case(golds=golds, predicted=query(predicted), **settings), session).cause
        assert cause.edits[0].label == "syntax"
        if edits is not None:
            assert [f"{edit.clause}: {edit.change}" for edit in cause.edits] == edits
        assert (cause.repaired_query is not None) == is_whole
        if is_whole:
            case = make_case(golds=golds, predicted=query(cause.repaired_query), **settings)
            assert evaluate_case(case, session).scores["execution_accuracy"] == 1


def test_the_failure_text_has_the_message_and_the_repair(sqlite_source):
    golds, predicted = (query("SELECT name FROM singer"),), query("SELECT nme FROM singer")

    with Session() as session:
        result = evaluate_case(make_case(source=sqlite_source, golds=golds, predicted=predicted), session)
    report = result_json(result, nodeid="a", path="s.queryeval.yaml", outcome="failed")
    text = "\n".join(failure_lines(result, report))

    assert "no such column: nme" in text
    assert "SELECT: nme → name (unknown-column)" in text


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sql", "sparql"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 3_900,
        "SELECT " + "FORM " * 700,
        "SELECT nme FROM singer" + " JOIN concert" * 250,
        "SELECT ?x { FILTER ?x" + " " * 3_900,
        "SELECT ?x { <" + " a" * 1_900,
        "SELECT COUNT(?x) " * 200,
        "?x = " * 700,
        "SELECT name FROM singer WHERE name = '\x00\u202e' AND nme = 1",
        "SELECT name, FROM singer " + "-" * 5_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_have_few_repairs(kind, text):
    repairs = {"sql": sql_repairs, "sparql": sparql_repairs}[kind]
    schema = Schema(tables={"singer": ("id", "name"), "concert": ("id", "singer_id")})

    for message in ("no such column: nme", 'near "FORM": syntax error', "error at 1:300: x (line:1, col:200)"):
        query = FailedQuery(text, message, "SELECT name FROM singer", schema, "sqlite", None)
        assert len(list(repairs(query))) <= MAX_SPELLINGS
