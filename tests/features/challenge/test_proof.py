"""Proofs that two queries answer alike: what each rule proves, what none may prove, and databases that agree."""

import re
from contextlib import closing
from itertools import combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
import yaml
from challenged_pairs import answers_of, challenges_of, database, without_search
from documentation import page as page_of
from filled_databases import filled, seeded
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval import METRICS
from pytest_queryeval.core.table import Policy, Table

FILE = yaml.safe_load((Path(__file__).parent / "pairs.yaml").read_text(encoding="utf-8"))
PAGE = page_of("strength")
ONE_WAY = ("order-without-effect", "finer-order")  # a rule that lets a prediction sort more than gold
POLICY = Policy(row_order="ignore")
ENGINES = ("sqlite", pytest.param("duckdb", marks=pytest.mark.feature("duckdb")))


class Group(NamedTuple):
    """Pairs of queries with one verdict."""

    verdict: str
    pairs: list[tuple[str, str]]
    engine: str = "sqlite"
    rule: str = ""
    about: str = ""
    data: str = ""
    is_one_way: bool = False  # whether the predicted query as gold may be proved


GROUPS = [Group(**{**group, "pairs": [tuple(pair) for pair in group["pairs"]]}) for group in FILE["groups"]]
PROVED = {pair: group.rule for group in GROUPS if group.verdict == "proved" for pair in group.pairs}


def found(pairs, engine, data, tmp_path, **changes):
    return challenges_of(pairs, database(tmp_path, FILE["tables"][engine] + data, engine), **changes)


def test_each_rule_proves_its_pairs_in_both_directions(tmp_path):
    both = [(pair, rule) for pair, rule in PROVED.items() if rule not in ONE_WAY]

    forth, back = (found(pairs, "sqlite", "", tmp_path) for pairs in (PROVED, [pair[::-1] for pair, _ in both]))

    assert [
        (pair, rule) for (pair, rule), one in zip(PROVED.items(), forth, strict=True) if rule not in one["rules"]
    ] == []
    assert [(pair, rule) for (pair, rule), one in zip(both, back, strict=True) if one["verdict"] != "proved"] == []


def test_every_rule_that_the_page_names_has_a_pair():
    table = PAGE.partition("| rule | what it makes the same |")[2].partition("\n\n")[0]

    assert {rule for line in table.splitlines() for rule in re.findall(r"`([a-z-]+)`", line.split(" | ")[0])} == {
        *PROVED.values()
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("data", dict.fromkeys(group.data for group in GROUPS))
def test_pairs_that_a_database_tells_apart_are_refuted_and_no_others_are_proved(engine, data, tmp_path):
    groups = [group for group in GROUPS if (group.engine, group.data) == (engine, data) and not group.rule]
    refuted = [pair for group in groups if group.verdict == "refuted" for pair in group.pairs]
    unproved = [pair for group in groups if group.verdict == "open" for pair in group.pairs]
    one_way = [pair for group in groups if group.is_one_way for pair in group.pairs]

    challenges = dict(zip(refuted, found(refuted, engine, data, tmp_path), strict=True))
    with without_search():
        turned = [(predicted, gold) for gold, predicted in (*refuted, *unproved) if (gold, predicted) not in one_way]
        not_searched = found([*unproved, *turned], engine, data, tmp_path)

    assert {pair: challenge["verdict"] for pair, challenge in challenges.items()} == dict.fromkeys(refuted, "refuted")
    assert {challenge.get("verdict") for challenge in not_searched} <= {"unchallenged"}
    for pair, challenge in challenges.items() if engine == "sqlite" else ():
        answers = answers_of(challenge["counterexample"]["script"], *pair)
        assert answers[0] != answers[1], pair


@pytest.mark.parametrize(
    ("gold", "predicted", "policy", "is_proved"),
    [
        ("SELECT name FROM singer", "SELECT DISTINCT s.name FROM singer s", {"duplicates": "ignore"}, True),
        ("SELECT name FROM singer", "SELECT DISTINCT s.name FROM singer s", {}, False),
        (
            "SELECT name FROM singer",
            "SELECT DISTINCT s.name FROM singer s",
            {"duplicates": "ignore", "columns": "by_name"},
            True,
        ),
        ("SELECT name FROM singer", "SELECT s.name AS n FROM singer s", {"columns": "by_name"}, False),
        ("SELECT id, name FROM singer", "SELECT name, id FROM singer s", {"columns": "positional"}, False),
        ("SELECT id, name FROM singer", "SELECT s.id, name FROM singer s", {"extra_columns": "allow"}, True),
        ("SELECT count(*) FROM singer", "SELECT count(id) FROM singer s", {"extra_columns": "allow"}, False),
        ("SELECT name FROM singer ORDER BY age", "SELECT s.name FROM singer s", {"row_order": "ignore"}, True),
        ("SELECT name FROM singer ORDER BY age", "SELECT s.name FROM singer s", {}, False),
        ("SELECT id FROM singer ORDER BY age, id", "SELECT id FROM singer ORDER BY age", {}, False),
        ("SELECT s.name FROM singer s", "SELECT name FROM singer ORDER BY age", {"row_order": "strict"}, False),
    ],
)
def test_what_the_case_compares_counts(gold, predicted, policy, is_proved, tmp_path):
    with without_search():
        (challenge,) = found([(gold, predicted)], "sqlite", "", tmp_path, policy=Policy(**policy))

    assert (challenge["verdict"] == "proved") is is_proved


def deep_queries():
    """Queries that are deep, or that grow at each use of a query of WITH, and whether they are proved."""
    for query in ("SELECT DISTINCT p.x FROM {0} p, {0} q", "SELECT x + x AS x FROM {0}"):
        steps = "".join(f", a{level} AS ({query.format(f'a{level - 1}')})" for level in range(1, 12))
        yield f"WITH a0 AS (SELECT age AS x FROM singer){steps} SELECT x FROM a11", False
    yield "SELECT " + " + ".join(["age", "id"] * 30) + " FROM singer", True
    yield "SELECT id FROM singer WHERE " + "(age = 1 AND (id = 2 OR " * 15 + "mentor = 3" + "))" * 15, True
    yield "SELECT " + "(SELECT max(age) + " * 9 + "1" + " FROM singer)" * 9 + " FROM singer", True
    yield "SELECT DISTINCT x + x + x + x AS x FROM (" * 12 + "SELECT age AS x FROM singer" + ")" * 12, False
    unions = " UNION SELECT 1 FROM stadium)" * 9
    yield "SELECT id FROM singer WHERE id IN (" * 9 + "SELECT 1 FROM singer" + unions, True
    product = "EXISTS (SELECT 1 FROM singer a, singer b, singer c, singer d WHERE " * 6
    yield f"SELECT age FROM singer z WHERE {product}z.id = 1{')' * 6}", False


def in_other_words(table):
    return f"FROM {table[1]} AS{table[2] or ' ' + table[1]}"


def test_deep_queries_are_soon_proved_or_not(tmp_path):
    queries = dict(deep_queries())

    with without_search():
        pairs = [(query, re.sub(r"FROM (singer|a\d+)\b( [a-z])?", in_other_words, query)) for query in queries]
        challenges = found(pairs, "sqlite", "", tmp_path)

    assert [challenge["verdict"] == "proved" for challenge in challenges] == [*queries.values()]


def answer(connection, query):
    cursor = connection.execute(query)
    return Table(columns=tuple(column for column, *_ in cursor.description), rows=tuple(cursor.fetchall()))


def differ(gold, predicted):
    return METRICS["execution_accuracy"].function(gold, predicted, policy=POLICY) != 1.0


@seeded()
@given(st.integers(0, 10**9))
def test_what_is_proved_answers_alike_in_random_databases(seed):
    with closing(filled(FILE["tables"]["sqlite"], seed)) as connection:
        for pair in PROVED:
            tables = [answer(connection, query) for query in pair]
            is_ordered = all("ORDER BY" in query for query in pair) and PROVED[pair] != "finer-order"
            assert not differ(*tables), pair
            assert not is_ordered or tables[0].rows == tables[1].rows, pair


@pytest.mark.feature("duckdb")
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@seeded(20)
@given(seed=st.integers(0, 10**9))
def test_random_queries_that_are_proved_answer_alike_in_random_databases(engine, seed, tmp_path_factory):
    from benchmarks import fuzz_proofs

    chance = Random(seed)
    schema = fuzz_proofs.Schema(chance, engine)
    pairs = []
    for _ in range(30):
        plan = chance.random()
        texts = {fuzz_proofs.Writer(schema, Random(plan), Random(chance.random())).query() for _ in range(4)}
        pairs += combinations(sorted(texts), 2)
    with without_search():
        source = database(tmp_path_factory.mktemp("fuzz"), schema.ddl, engine)
        verdicts = [challenge.get("verdict") for challenge in challenges_of(pairs, source)]

    proved = [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict == "proved"]
    for connection in filter(None, (schema.database(chance) for _ in range(12))):
        with closing(connection):
            for pair in proved:
                answers = [fuzz_proofs.answer(connection, query) for query in pair]
                assert None in answers or not differ(*answers), (schema.ddl, pair)
