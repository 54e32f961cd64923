"""ORDER BY and LIMIT of gold SPARQL, on every engine: which orders, and which choices among ties, are right."""

from dataclasses import replace

import pytest
from every_engine import SPARQL, source_on
from samples import change, make_case

from pytest_queryeval.comparison.ties import CUT, NO_KEYS
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.scoring import DEPENDS
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages.sparql.order import order_plan

GRAPH = """
@prefix : <http://e/> .
:ann :team :red ; :score 5 . :bob :team :red ; :score 5.0 . :cy :team :blue ; :score 3 .
:dee :team :blue ; :score 3 . :eve :team :green ; :score 3 . :fay :team :green .
"""
P = "PREFIX : <http://e/> "
PLAYERS = "{ ?player :team ?team OPTIONAL { ?player :score ?score } }"
BY_SCORE = f"{P}SELECT ?player {PLAYERS} ORDER BY DESC(?score) ?team"


# Beside the engines, the other evaluator of files.
@pytest.fixture(scope="module", params=[*SPARQL, "rdflib"])
def judge(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"order_{request.param}")
    engine, settings = ("rdf", {"engine": "rdflib"}) if request.param == "rdflib" else (request.param, {})
    with source_on(engine, folder, GRAPH, request) as source, Session() as session:
        source = replace(source, settings={**source.settings, **settings})
        case = make_case(kind="sparql", source=source, thresholds={}, max_rows=100, timeout=30.0)

        def judged(gold, predicted, **changes):
            settings = {"golds": (QueryOrAnswer(query=gold),), "predicted": QueryOrAnswer(query=predicted)}
            return evaluate_case(change(case, policy=Policy(text_numbers=True), **settings, **changes), session)

        yield judged


def listed(*players):
    """A query that returns these players in this order."""
    rows = " ".join(f"(:{player} {number})" for number, player in enumerate(players))
    return f"{P}SELECT ?p {{ VALUES (?p ?n) {{ {rows} }} }} ORDER BY ?n"


@pytest.mark.parametrize(
    ("gold", "players", "right"),
    [
        (BY_SCORE, "ann bob cy dee eve fay", True),
        (BY_SCORE, "bob ann dee cy eve fay", True),
        (BY_SCORE, "bob ann dee eve cy fay", False),
        (BY_SCORE, "fay eve dee cy bob ann", False),
        (f"{BY_SCORE} LIMIT 1", "bob", True),
        (f"{BY_SCORE} LIMIT 1", "cy", False),
        (f"{BY_SCORE} LIMIT 3", "bob ann dee", True),
        (f"{BY_SCORE} LIMIT 3", "bob ann eve", False),
        (f"{BY_SCORE} OFFSET 1 LIMIT 2", "ann dee", True),
        (f"{P}SELECT ?player {PLAYERS} ORDER BY ?player LIMIT 2", "ann bob", True),
        (f"{P}SELECT ?player {PLAYERS} ORDER BY ?player LIMIT 2", "bob ann", False),
        (f"{P}SELECT ?player {PLAYERS} LIMIT 2", "eve cy", True),
        (
            f"{P}SELECT ?player {PLAYERS} ORDER BY STRLEN(STR(?player)) (COALESCE(0 - ?score, 0))",
            "cy bob ann eve dee fay",
            True,
        ),
        (f"{P}SELECT ?player {{ {{ SELECT * {PLAYERS} ORDER BY ?player LIMIT 2 }} }}", "bob ann", True),
        (f"{P}SELECT ?player {{ {{ SELECT * {PLAYERS} ORDER BY ?player }} }} LIMIT 2", "eve cy", False),
        (f"{P}SELECT DISTINCT ?player {PLAYERS} ORDER BY STRLEN(STR(?player))", "cy fay eve dee bob ann", True),
    ],
)
def test_rows_that_tie_may_swap_and_a_limit_may_choose_among_them(judge, gold, players, right):
    result = judge(gold, listed(*players.split()))

    assert result.scores["execution_accuracy"] == right


def test_a_choice_among_ties_is_noted(judge):
    results = [judge(f"{BY_SCORE} LIMIT 1", listed(player)) for player in ("ann", "bob")]

    assert [result.scores["execution_accuracy"] for result in results] == [1, 1]
    assert sorted(result.details.get("notes", []) for result in results) == [[], [CUT.format(rows=2), DEPENDS]]


def test_an_offset_beyond_max_rows_is_given_as_the_reason(judge):
    notes = judge(f"{BY_SCORE} OFFSET 4 LIMIT 1", listed("cy"), max_rows=3).details["notes"]

    assert "OFFSET and LIMIT reach up to row 5, `max_rows` to 3" in notes[0]
    assert all("more than" not in note for note in notes)


@pytest.mark.parametrize(
    "gold",
    [
        f"{P}SELECT ?team (COUNT(*) AS ?n) {PLAYERS} GROUP BY ?team ORDER BY DESC(?n)",
        f"{P}SELECT ?team (COUNT(*) AS ?n) {PLAYERS} GROUP BY ?team ORDER BY DESC(COUNT(?player))",
        f"{P}SELECT * {{ {{ SELECT ?team (COUNT(*) AS ?n) {PLAYERS} GROUP BY ?team }} }} ORDER BY ?n",
    ],
)
def test_groups_of_equal_counts_tie(judge, gold):
    backwards = f"{P}SELECT ?t ?n {{ VALUES (?t ?n) {{ (:red 2) (:green 2) (:blue 2) }} }} ORDER BY DESC(?t)"

    assert judge(gold, backwards).scores["execution_accuracy"] == 1


@pytest.mark.parametrize("key", ["?n", "DESC(0 - ?n)", "COUNT(?score)"])
def test_groups_of_different_counts_do_not_tie(judge, key):
    gold = f"{P}SELECT ?team (COUNT(?score) AS ?n) {PLAYERS} GROUP BY ?team ORDER BY {key} LIMIT 1"

    fewest, most = (
        judge(gold, f"{P}SELECT ?t ?n {{ VALUES (?t ?n) {{ {row} }} }}") for row in ("(:green 1)", "(:red 2)")
    )

    assert fewest.scores["execution_accuracy"] == 1
    assert most.scores["execution_accuracy"] == 0


def test_distinct_with_a_key_that_is_not_selected_wants_exactly_golds_order(judge):
    gold = f"{P}SELECT DISTINCT ?team {PLAYERS} ORDER BY ?player"

    same = judge(gold, f"{P}SELECT ?t {{ VALUES (?t ?n) {{ (:red 1) (:blue 2) (:green 3) }} }} ORDER BY ?n")
    second = judge(gold, f"{P}SELECT ?t {{ VALUES (?t ?n) {{ (:red 1) (:green 2) (:blue 3) }} }} ORDER BY ?n")

    assert same.scores["execution_accuracy"] == 1
    assert second.scores["execution_accuracy"] == 0
    assert second.details["notes"] == [NO_KEYS]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT ?a ?b { ?a :p ?b } ORDER BY ?b", ("?b",)),
        ("SELECT ?a { } ORDER BY DESC(?b) ASC ( ?a )", ("(?b)", "( ?a )")),
        ("SELECT ?a { } ORDER BY STRLEN(?a) xsd:int(?b) <http://f>(?a, 1) LIMIT 3 OFFSET 1",
         ("STRLEN(?a)", "xsd:int(?b)", "<http://f>(?a, 1)")),
        ("SELECT ?a { } ORDER BY NOT EXISTS { ?a ?b ?c } ?a VALUES ?a { 1 }", ("NOT EXISTS { ?a ?b ?c }", "?a")),
        ("SELECT ?a { } GROUP BY ?a HAVING (COUNT(*) > 1) ORDER BY (?a # one\n + 1)", ("(?a # one\n + 1)",)),
    ],
)  # fmt: skip
def test_sort_keys_become_columns(query, keys):
    ranked = order_plan(query, ("a", "b"), 3, 100).queries[0].text

    added = " ".join(f"({key} AS ?queryeval_key_{number})" for number, key in enumerate(keys, start=1))
    assert added in ranked
    assert ("LIMIT 100" in ranked) == ("LIMIT" in query)
    assert "OFFSET" not in ranked


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?a { ?a ?b ?c }",
        "ASK { ?order ?by ?limit }",
        "SELECT (SUM(?a) AS ?order) { { SELECT ?a { ?a ?b ?c } ORDER BY ?a LIMIT 1 } }",
        "nonsense ORDER BY ?a",
        "",
    ],
)
def test_queries_without_an_order_of_their_rows_have_no_plan(query):
    assert order_plan(query, ("a",), 1, 100) is None


def test_the_failure_of_a_graph_says_that_a_limit_chose_what_it_is_made_of(judge):
    gold = f"{P}CONSTRUCT {{ ?p :team ?t }} {{ ?p :team ?t }} ORDER BY ?t LIMIT 1"

    result = judge(gold, f"{P}CONSTRUCT {{ :nobody :team :blue }} {{}}")

    assert result.scores["execution_accuracy"] == 0.0
    assert [note for note in result.details["notes"] if "so only those it returned are right" in note]
