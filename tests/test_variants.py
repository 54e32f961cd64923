"""Variants of a source: the glob that names them, and the metrics that ask every state of the database."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from samples import answer, make_case, query

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import GoldError, Location, QueryEvalError
from pytest_queryeval.core.model import QueryOrAnswer, Source, Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import Session, evaluate_case

TEST_SUITE = ("execution_accuracy", "test_suite_accuracy", "test_suite_accuracy_spider")
OLDER = "SELECT name FROM singers WHERE age > 30"
OLDER_OR_30 = "SELECT name FROM singers WHERE age >= 30"
# Nobody is 30 years old in the source; somebody is in the second of its variants.
SINGERS = {
    "shop.sqlite": [("Ana", 20), ("Bo", 40)],
    "variants/1.sqlite": [("Ana", 29), ("Bo", None)],
    "variants/2.sqlite": [("Ana", 30), ("Bo", 31)],
}


def write_database(path, rows, columns="name, age"):
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE singers ({columns})")
        connection.executemany("INSERT INTO singers VALUES (?, ?)", rows)
        connection.commit()


@pytest.fixture
def folder(tmp_path):
    for name, rows in SINGERS.items():
        write_database(tmp_path / name, rows)
    return tmp_path


def source_in(folder, variants="variants/*.sqlite", **settings):
    paths = {"path": "shop.sqlite", "variants": variants}
    return Source(name="shop.sqlite", engine="sqlite", settings=paths | settings, folder=folder)


def plain_source(folder):
    return Source(name="shop.sqlite", engine="sqlite", settings={"path": "shop.sqlite"}, folder=folder)


def scored(source, gold, predicted, **changes):
    defaults = {
        "source": source,
        "golds": (query(gold) if isinstance(gold, str) else gold,),
        "predicted": query(predicted) if isinstance(predicted, str) else predicted,
        "metrics": TEST_SUITE,
        "thresholds": {},
    }
    with Session() as session:
        return evaluate_case(make_case(**defaults | changes), session)


@pytest.mark.parametrize(
    ("predicted", "scores", "notes"),
    [
        (OLDER_OR_30, (1.0, 0.0, 0.0), ["test suite: the answers differ on variants/2.sqlite"]),  # right by accident
        ("SELECT name FROM singers WHERE NOT age <= 30", (1.0, 1.0, 1.0), None),
    ],
)
def test_queries_have_to_agree_on_every_variant(folder, predicted, scores, notes):
    result = scored(source_in(folder), OLDER, predicted)

    assert result.scores == dict(zip(TEST_SUITE, scores, strict=True))
    assert result.shown.details.get("notes") == notes


def test_answers_that_differ_on_the_source_need_no_variant(folder):
    (folder / "variants/1.sqlite").write_bytes(b"no database")

    result = scored(source_in(folder), OLDER, "SELECT name FROM singers")

    assert set(result.scores.values()) == {0.0}
    assert "notes" not in result.shown.details


def test_a_prediction_that_fails_on_the_source_or_on_a_variant_scores_zero(folder):
    on_source = scored(source_in(folder), OLDER, "SELECT nam FROM singers")
    # abs() of the least integer is an error of SQLite: only this variant has it.
    write_database(folder / "variants/0.sqlite", [("Bo", -(2**63))])
    on_variant = scored(source_in(folder), OLDER, "SELECT name FROM singers WHERE age > 30 AND abs(age) > 0")
    gold_with_abs = "SELECT name FROM singers WHERE abs(age) > 30 OR age > 30"

    assert on_source.scores["test_suite_accuracy"] == 0.0
    assert on_variant.scores["execution_accuracy"] == 1.0
    with pytest.raises(
        GoldError, match=r"the gold query failed on the variant variants/0\.sqlite \(invalid\): .*overflow"
    ):
        scored(source_in(folder), gold_with_abs, gold_with_abs)


def test_the_error_of_a_gold_that_fails_on_a_variant_has_its_place(folder):
    write_database(folder / "variants/3.sqlite", [("Bo", 31)], columns="name, years")
    place = Location(Path("a.queryeval.yaml"), 7)

    with pytest.raises(GoldError) as raised:
        scored(source_in(folder), QueryOrAnswer(query=OLDER, location=place), OLDER)

    assert raised.value.location == place


def test_the_prediction_is_compared_under_the_policy_of_the_case_on_every_variant(folder):
    write_database(folder / "variants/3.sqlite", [("Bo", 31), ("Bo", 31)])

    with_duplicates = scored(source_in(folder), OLDER, OLDER.replace("name", "DISTINCT name"))
    without = scored(
        source_in(folder), OLDER, OLDER.replace("name", "DISTINCT name"), policy=Policy(duplicates="ignore")
    )

    assert with_duplicates.scores == {
        "execution_accuracy": 1.0,
        "test_suite_accuracy": 0.0,
        "test_suite_accuracy_spider": 1.0,  # the published tool removes DISTINCT
    }
    assert without.scores["test_suite_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("has_variants", "gold", "predicted"),
    [(True, answer(("Bo",)), OLDER), (True, OLDER, answer(("Bo",))), (False, OLDER, OLDER)],
)
def test_without_variants_or_queries_there_is_nothing_to_score(folder, has_variants, gold, predicted):
    result = scored(source_in(folder) if has_variants else plain_source(folder), gold, predicted)

    assert result.scores == dict(zip(TEST_SUITE, (1.0, None, None), strict=True))


def test_a_threshold_on_a_case_without_variants_is_an_error_that_says_why(folder):
    with pytest.raises(QueryEvalError, match=r"does not apply to this case.* a source with `variants`"):
        scored(plain_source(folder), OLDER, "SELECT no", thresholds={"test_suite_accuracy": Threshold(minimum=1.0)})


def known_state(source):
    """The state of a source that the report of a case has."""
    (case,) = evaluate([make_case(source=source)])["cases"]
    return case["fingerprint"]["source"]


def test_the_state_of_a_source_changes_with_its_variants(folder):
    source = source_in(folder)
    plain = known_state(plain_source(folder))
    before = known_state(source)
    write_database(folder / "variants/3.sqlite", [("Bo", 31)])

    assert len({plain, before, known_state(source)}) == 3
    assert known_state(source_in(folder, "old/*")) is None


@pytest.mark.feature("duckdb")
def test_variants_of_duckdb_are_asked_too(folder):
    pytest.importorskip("duckdb")
    script = "CREATE TABLE singers (name VARCHAR, age INTEGER); INSERT INTO singers VALUES ('Bo', {age});"
    (folder / "shop.sql").write_text(script.format(age=40))
    (folder / "variants/1.sql").write_text(script.format(age=30))
    settings = {"script": "shop.sql", "variants": "variants/*.sql"}
    source = Source(name="shop.sql", engine="duckdb", settings=settings, folder=folder)

    result = scored(source, OLDER, OLDER_OR_30, dialect="duckdb")

    assert result.scores["test_suite_accuracy"] == 0.0


GRAPH = "@prefix : <http://e/> . :ann :age 20 . :bo :age 40 ."
RDF_SETTINGS = {"prefixes": {"": "http://e/"}, "variants": "variants/*.t*"}


@pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])
def test_a_graph_has_variants_which_are_read_as_the_source_is(folder, engine):
    (folder / "people.ttl").write_text(GRAPH, encoding="utf-8")
    (folder / "variants/1.ttl").write_text(GRAPH.replace("40", "31"), encoding="utf-8")
    (folder / "variants/2.trig").write_text("@prefix : <http://e/> . :g { :ann :age 30 }", encoding="utf-8")
    settings = {"files": ["people.ttl"], "engine": engine, "default_graph": "union", **RDF_SETTINGS}
    source = Source(name="people.ttl", engine="rdf", settings=settings, folder=folder)
    older = "SELECT ?x { ?x :age ?age FILTER (?age > 30) }"

    wrong = scored(source, older, older.replace(">", ">="), kind="sparql", metrics=TEST_SUITE[:2])
    right = scored(source, older, older.replace("?x", "?y"), kind="sparql", metrics=TEST_SUITE[:2])

    assert wrong.scores == {"execution_accuracy": 1.0, "test_suite_accuracy": 0.0}
    assert wrong.shown.details["notes"][-1] == "test suite: the answers differ on variants/2.trig"
    assert right.scores["test_suite_accuracy"] == 1.0
    assert known_state(source) != known_state(replace(source, settings={**settings, "variants": "variants/*.ttl"}))
