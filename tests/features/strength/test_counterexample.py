"""Counterexamples: small databases and graphs on which two queries differ that agree on the source."""

import re
import tempfile
from pathlib import Path

import pyoxigraph
import pytest
import yaml
from challenged_pairs import answers_of, challenges_of, database
from golden_files import compare_golden
from samples import make_case, query

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import Session

FILE = yaml.safe_load((Path(__file__).parent / "counterexamples.yaml").read_text(encoding="utf-8"))
TABLES, GRAPH = FILE["sql"]["tables"], FILE["sparql"]["graph"]
PREFIXES = dict(re.findall(r"@prefix (\w*): <(\S+)>", GRAPH))
DUCKDB = pytest.param("duckdb", marks=pytest.mark.feature("duckdb"))
IMPLIED = (  # by the vocabulary, as far as the graph keeps it
    "ASK { ?x :employs ?y FILTER NOT EXISTS { ?x a :Firm . ?y a :Person } }",
    "ASK { ?x :knows ?y FILTER NOT EXISTS { ?x a :Person . ?y a :Person } }",
    "ASK { ?x rdfs:subClassOf ?y FILTER (?x NOT IN (:Firm, :Person) || ?y != :Agent) }",
)


@pytest.fixture
def challenge(tmp_path):
    """A function that returns the challenge of a prediction, by default on tables without rows."""

    def challenge(gold, predicted, *, script=TABLES, engine="sqlite", **changes):
        return challenges_of([(gold, predicted)], database(tmp_path, script, engine), **changes)[0]

    return challenge


def graph(folder, text=GRAPH, name="g.ttl", **settings):
    (folder / name).write_text(text, encoding="utf-8")
    settings = {"files": [name], "prefixes": PREFIXES, **settings}
    return Source(name=name, engine="rdf", settings=settings, folder=folder)


def in_graph(script, text):
    """The answer in a store of its own."""
    store = pyoxigraph.Store()
    store.load(script, format=pyoxigraph.RdfFormat.TRIG)
    result = store.query("".join(f"PREFIX {name}: <{iri}> " for name, iri in PREFIXES.items()) + text)
    return bool(result) if isinstance(result, pyoxigraph.QueryBoolean) else sorted(map(str, result))


def on_graph(pairs, source, **changes):
    return challenges_of(pairs, source, kind="sparql", dialect="", **changes)


def test_few_rows_tell_queries_apart_when_their_script_is_run_alone(tmp_path):
    rows, scripts = FILE["sql"]["different"], []

    for (gold, predicted, most), found in zip(
        rows, challenges_of([row[:2] for row in rows], database(tmp_path, TABLES)), strict=True
    ):
        shown = found["counterexample"]
        answers = [[[*row] for row in rows] for rows in answers_of(shown["script"], gold, predicted)]
        assert shown["rows"] <= most, gold
        assert answers == [shown["gold_rows"], shown["predicted_rows"]]
        assert sorted(map(str, answers[0])) != sorted(map(str, answers[1]))
        scripts += [f"{gold} / {predicted}: {found['tried']} tried", *shown["script"].splitlines()]
    compare_golden(scripts, "counterexamples/sql.txt")


def test_few_triples_tell_queries_apart_and_they_keep_what_the_vocabulary_implies(tmp_path):
    rows, scripts = [*FILE["sparql"]["different"], *FILE["sparql"]["not relied on"]], []

    for (gold, predicted, *most), found in zip(rows, on_graph([row[:2] for row in rows], graph(tmp_path)), strict=True):
        script = found["counterexample"]["script"]
        triples = [*pyoxigraph.parse(script, format=pyoxigraph.RdfFormat.TRIG)]
        assert found["counterexample"]["rows"] == len(triples) <= (*most, 9)[0], gold
        assert gold.startswith("CONSTRUCT") or in_graph(script, gold) != in_graph(script, predicted), gold
        assert not any(in_graph(script, broken) for broken in IMPLIED)
        names = {triple.predicate.value.rpartition("/")[2] for triple in triples if "e/" in triple.predicate.value}
        assert all(f":{name}" in f"{gold} {GRAPH}" for name in names), (gold, names)
        scripts += [f"{gold} / {predicted}: {found['tried']} tried", *script.splitlines()]
    compare_golden(scripts, "counterexamples/sparql.txt")


def test_queries_that_constraints_or_the_vocabulary_make_equal_are_not_told_apart(tmp_path):
    pairs = FILE["sparql"]["equal"]
    asked = [("ASK { ?x a :Firm ; :employs ?y }", "ASK { ?x :employs ?y }")]

    verdicts = [found["verdict"] for found in on_graph(pairs, graph(tmp_path))]
    limited = [found["verdict"] for found in on_graph(asked, graph(tmp_path), max_rows=1)]
    of_sql = [found["verdict"] for found in challenges_of(FILE["sql"]["equal"], database(tmp_path, TABLES))]

    assert {*verdicts, *limited} == {"stands"}
    assert {*of_sql} == {"proved"}


def test_both_engines_of_graphs_tell_queries_apart(tmp_path):
    gold = "SELECT ?x { ?x :age ?y FILTER (xsd:decimal(?y) > 30) MINUS { ?x :mail ?m } }"
    pairs = [(gold, gold.replace("> 30", ">= 30"))]

    for engine in ("oxigraph", "rdflib"):
        (found,) = on_graph(pairs, graph(tmp_path, engine=engine))
        triples = pyoxigraph.parse(found["counterexample"]["script"], format=pyoxigraph.RdfFormat.TRIG)
        assert {(one.predicate.value, one.object.value) for one in triples} == {("http://e/age", "30")}


TRIG = f"{GRAPH.partition(':ann')[0]} :ann :age 20 . :loans {{ :ann :has :book }} :gifts {{ :bo :has :pen }}"
HAS = "{ ?x :has ?y ; :lent 1 }"


@pytest.mark.parametrize(
    ("settings", "gold", "predicted", "expected"),
    [
        ({}, f"SELECT ?x {{ GRAPH :loans {HAS} }}", f"SELECT ?x {{ GRAPH ?g {HAS} }}", "{"),
        ({}, f"SELECT ?x FROM :gifts {HAS}", f"SELECT ?x {HAS}", ""),
        ({"default_graph": "union"}, f"SELECT ?x {{ GRAPH ?g {HAS} }}", f"SELECT ?x {HAS}", ""),
        ({"default_graph": "http://e/loans"}, "ASK { ?x :has 1 }", "ASK { ?x :has 2 }", ":loans {"),
    ],
)
def test_named_graphs_are_told_apart(tmp_path, settings, gold, predicted, expected):
    (found,) = on_graph([(gold, predicted)], graph(tmp_path, TRIG, "things.trig", **settings))

    assert expected in found["counterexample"]["script"]
    assert (
        settings
        or "FROM" in gold
        or in_graph(found["counterexample"]["script"], gold) != in_graph(found["counterexample"]["script"], predicted)
    )


def test_without_named_graphs_graph_matches_nothing(tmp_path):
    pair = ("SELECT ?x { GRAPH ?g { ?x :age ?y } }", "SELECT ?x { GRAPH ?g { ?x :mail ?y } }")

    assert on_graph([pair], graph(tmp_path))[0]["counterexample"] is None


def test_a_domain_that_subclasses_keep_is_kept_by_one_of_them(tmp_path):
    prefixes = GRAPH.partition(":ann")[0]
    text = f"{prefixes} :p rdfs:domain :Top . :A rdfs:subClassOf :Top . :B rdfs:subClassOf :A . :x :p 1 ; a :B ."

    (found,) = on_graph([("SELECT ?x { ?x :p 2 }", "SELECT ?x { ?x :p 3 }")], graph(tmp_path, text))

    triples = [*pyoxigraph.parse(found["counterexample"]["script"], format=pyoxigraph.RdfFormat.TRIG)]
    types = {one.object.value.rpartition("/")[2] for one in triples if one.predicate.value.endswith("#type")}
    assert len(types) == 1
    assert types < {"Top", "A", "B"}


def test_terms_of_the_source_that_turtle_cannot_have_are_left_out(tmp_path):
    odd = "http://e/x> <http://e/y> <http://e/z> .\\n<http://e/"
    about = f'[{{"@id": "{odd}", "http://e/p": [{{"@id": "{odd}"}}, {{"@value": "1", "@type": "{odd}"}}]}}]'

    (found,) = on_graph(
        [("SELECT ?x { ?x :p ?y , 5 }", "SELECT ?y { ?x :p ?y , 5 }")], graph(tmp_path, about, "odd.jsonld")
    )

    triples = [*pyoxigraph.parse(found["counterexample"]["script"], format=pyoxigraph.RdfFormat.TRIG)]
    assert {one.predicate.value for one in triples} == {"http://e/p"}
    assert not any("/y" in str(one) for one in triples)


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
HEAVY = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{n} :rare ?b{n} ." for n in range(12)) + " }"
LONG_CHECK = (
    "CREATE TABLE singer (age INTEGER CHECK (levenshtein(repeat('a', 60000), repeat('b', age % 2 + 60000)) > 0));"
)
UNFINISHED = "a query does not end in a small database: no answer within "


def test_a_query_or_a_check_that_does_not_end_ends_the_search(challenge, tmp_path):
    lazy = f"SELECT name FROM singer WHERE age > 0 AND ({ENDLESS}) > 0"  # evaluated for rows only

    by_query = challenge("SELECT name FROM singer WHERE age > 0", lazy, timeout=0.5)
    (by_graph,) = on_graph([(HEAVY, "SELECT (COUNT(*) AS ?n) { ?x :rare 1 }")], graph(tmp_path), timeout=0.2)

    assert by_query["reason"].startswith(UNFINISHED)
    assert by_graph["reason"].startswith(UNFINISHED)


@pytest.mark.feature("duckdb")
def test_a_check_that_does_not_end_and_a_view_of_a_file_leave_a_query_unchallenged(challenge, tmp_path):
    (tmp_path / "ages.csv").write_text("age\n20\n", encoding="utf-8")
    view = f"CREATE TABLE singer (age INTEGER); CREATE VIEW ages AS FROM read_csv('{tmp_path / 'ages.csv'}');"
    pair = "SELECT age FROM singer", "SELECT age FROM singer WHERE age > 0"

    by_check = challenge(*pair, script=LONG_CHECK, engine="duckdb", timeout=0.5)
    by_view = challenge(*pair, script=view, engine="duckdb")

    assert by_check["reason"].startswith(UNFINISHED)
    assert re.match(r"no small database with these tables can be built: .*LocalFileSystem", by_view["reason"])


DECADES = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, decade INTEGER GENERATED ALWAYS AS (age - age % 10), age INTEGER);
INSERT INTO singer (id, age) VALUES (1, 25), (2, 33);
"""


@pytest.mark.parametrize("engine", ["sqlite", DUCKDB])
def test_values_of_generated_columns_are_left_to_the_database(challenge, engine):
    gold = "SELECT id FROM singer WHERE decade >= 30"

    differing = challenge(gold, "SELECT id FROM singer WHERE age > 30", script=DECADES, engine=engine)["counterexample"]

    assert "GENERATED ALWAYS" in differing["script"]
    assert re.search(r'INTO "singer" VALUES\s+\(\d+, 30\);', differing["script"])
    equal = challenge(gold, "SELECT id FROM singer WHERE age >= 30", script=DECADES, engine=engine)
    assert (equal["counterexample"], equal["unlike"]) == (None, None)


@pytest.mark.parametrize(
    ("declared", "held", "wanted"),
    [
        ("DATE", "'2019-12-31'", r"2020-\d\d-\d\d"),
        ("DATETIME", "'2019-12-31 10:30:00'", r"2020-\d\d-\d\d \d\d:\d\d:\d\d"),
        ("TIMESTAMP", "NULL", r"2020-\d\d-\d\d \d\d:\d\d:\d\d"),
        ("DATE", "'31 December 2019'", "2020.*"),
    ],
)
def test_columns_of_times_hold_times_as_the_source_writes_them(challenge, declared, held, wanted):
    script = f"CREATE TABLE t (id INTEGER PRIMARY KEY, d {declared}); INSERT INTO t VALUES (1, {held});"

    found = challenge("SELECT id FROM t WHERE d LIKE '2020%'", "SELECT 0 FROM t WHERE 1 = 0", script=script)

    (moments,) = answers_of((found["counterexample"] or found["unlike"])["script"], "SELECT d FROM t")
    assert moments
    assert all(re.fullmatch(wanted, moment) for (moment,) in moments)


TIMES = "CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE NOT NULL); INSERT INTO t VALUES (1, '2020-05-01');"


@pytest.mark.parametrize(
    ("script", "gold", "predicted", "changes"),
    [
        # A difference that depends on the order of rows.
        (
            "CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (1, 1);",
            "SELECT max(b) FROM (SELECT b FROM t LIMIT 1)",
            "SELECT max(b) FROM (SELECT b FROM t ORDER BY a LIMIT 1)",
            {},
        ),
        # Two ways to ask for a year.
        (TIMES, "SELECT id FROM t WHERE strftime('%Y', d) = '2020'", "SELECT id FROM t WHERE d LIKE '2020%'", {}),
        # What the case does not compare, and a query that fails on the value that tells: abs() of the least integer.
        (TABLES, "SELECT name || '' FROM singer", "SELECT DISTINCT name || '' FROM singer", {"duplicates": "ignore"}),
        (
            TABLES,
            "SELECT name FROM singer WHERE age <= -9223372036854775808",
            "SELECT name FROM singer WHERE age <= -9223372036854775808 AND abs(age) <> 0",
            {},
        ),
    ],
)
def test_what_is_no_difference(challenge, script, gold, predicted, changes):
    found = challenge(gold, predicted, script=script, policy=Policy(**changes))

    assert (found["counterexample"], found["unlike"]) == (None, None)


@pytest.mark.feature("duckdb")
@pytest.mark.parametrize(
    ("script", "gold", "predicted", "wanted"),
    [
        (
            "CREATE TABLE zone (id INTEGER PRIMARY KEY, opened DATE); INSERT INTO zone VALUES (1, '2020-01-01');",
            "SELECT id FROM zone WHERE opened > DATE '2020-05-05'",
            "SELECT id FROM zone WHERE opened >= DATE '2020-05-05'",
            "'2020-05-05'",
        ),
        ("CREATE TABLE t (d DATE PRIMARY KEY, n INTEGER);", "SELECT n FROM t", "SELECT DISTINCT n FROM t", "INSERT"),
        (
            TABLES,
            "SELECT name FROM singer WHERE age > 500",
            "(SELECT name FROM singer WHERE age > 500) UNION (SELECT name FROM singer WHERE age >= 500)",
            "50",
        ),
    ],
)
def test_counterexamples_on_duckdb_keep_types(challenge, script, gold, predicted, wanted):
    found = challenge(gold, predicted, script=script, engine="duckdb")

    assert wanted in (found["counterexample"] or found["unlike"])["script"]


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '{file}' AS made",
        "VACUUM INTO '{file}'",
        "CREATE TABLE t AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ],
)
def test_a_small_database_reaches_no_other_file_and_is_soon_there(statement, tmp_path):
    source = Source(name="s", engine="sqlite", settings={}, folder=tmp_path)

    with Session() as session:
        built = session.build(source, statement.format(file=tmp_path / "made.db"))
        with pytest.raises(SourceError, match=r"too many attached databases|interrupted"):
            session.execute(query("SELECT 1"), make_case(source=built, timeout=0.3))

    assert not [*tmp_path.iterdir()]


def test_a_small_database_lasts_until_the_next_one_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = Source(name="s", engine="sqlite", settings={}, folder=tmp_path)

    with Session() as session:
        for number in (1, 2, 2, 3):
            built = session.build(source, f"CREATE TABLE t AS SELECT {number} AS a;")
            answered = session.execute(query("SELECT a FROM t"), make_case(source=built))
            assert answered.answer.rows == [(number,)]
            assert not [*tmp_path.iterdir()]
