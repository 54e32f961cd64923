"""A LIMIT of gold that cuts through rows that tie: which choices are right, whatever the size of the table."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, permutations, product

import duckdb
import pytest
from samples import change, make_case

from pytest_queryeval.core.model import CaseResult, QueryOrAnswer, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.scoring import DEPENDS
from pytest_queryeval.evaluation.session import Session

pytestmark = pytest.mark.process

pytest_plugins = ["postgres"]

BIG = 3_000
SQL_ENGINES = (
    "sqlite",
    pytest.param("duckdb", marks=pytest.mark.feature("duckdb")),
    pytest.param("postgresql", marks=pytest.mark.feature("database_servers")),
)
TOP = "SELECT name FROM big ORDER BY v DESC LIMIT 2"
TOP_OF_GRAPH = "PREFIX : <http://e/> SELECT ?name { ?s :big ?name ; :v ?v } ORDER BY DESC(?v) LIMIT 2"


@dataclass(frozen=True)
class Player:
    """A row of the small table; `score` may be NULL."""

    name: str
    team: str
    score: int | None


PLAYERS = [
    Player(name, team, score)
    for name, team, score in (
        *(("ann", "red", 5), ("bob", "red", 5), ("cy", "blue", 5), ("dee", "blue", 3)),
        *(("eve", "red", 3), ("fay", "blue", 1), ("gil", "red", None), ("hal", "blue", None)),
    )
]


def rows_of_big() -> Iterator[tuple[int, str, int]]:
    """One row leads, three tie behind it, all others lie further back: r0, then r1, r2, r3, then the rest."""
    for number in range(BIG):
        yield number, f"r{number}", 9 if number == 0 else 8 if number <= 3 else number % 5


@pytest.fixture(scope="module", params=[*SQL_ENGINES, "oxigraph"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Source]:
    """An engine's name and a source with the tables big and player, in its own order of rows."""
    folder = tmp_path_factory.mktemp("ties")
    big = ", ".join(f"({number}, '{name}', {v})" for number, name, v in rows_of_big())
    null = "NULL"
    players = ", ".join(f"('{p.name}', '{p.team}', {null if p.score is None else p.score})" for p in PLAYERS)
    script = f"""
        CREATE TABLE big (id INTEGER, name VARCHAR(9), v INTEGER); INSERT INTO big VALUES {big};
        CREATE TABLE player (name VARCHAR(9), team VARCHAR(9), score INTEGER); INSERT INTO player VALUES {players};
    """
    settings: dict[str, object]
    match request.param:
        case "sqlite":
            sqlite3.connect(folder / "a.db").executescript(script).close()
            name, settings = "sqlite", {"path": "a.db"}
        case "duckdb":
            duckdb.connect(folder / "a.duckdb").execute(script).close()
            name, settings = "duckdb", {"path": "a.duckdb"}
        case "postgresql":
            cluster = request.getfixturevalue("cluster")
            cluster.sql(f"DROP TABLE IF EXISTS big; DROP TABLE IF EXISTS player; {script}", user="owner")
            name, settings = "sqlalchemy", {"url": cluster.url()}
        case _:
            triples = [f':{n} :big "{name}" ; :v {v} .' for n, name, v in rows_of_big()]
            for p in PLAYERS:
                score = "" if p.score is None else f"; :score {p.score}"
                triples.append(f':{p.name} :name "{p.name}" ; :team "{p.team}" {score} .')
            triples.insert(0, "@prefix : <http://e/> .")
            (folder / "a.ttl").write_text("\n".join(triples), encoding="utf-8")
            name, settings = "rdf", {"files": "a.ttl", "engine": "oxigraph"}
    return request.param, Source(name="a", engine=name, settings=settings, folder=folder)


@pytest.fixture(scope="module")
def judge(engine: tuple[str, Source]) -> Iterator[Callable[..., CaseResult]]:
    name, source = engine
    case = make_case(
        kind="sparql" if name == "oxigraph" else "sql",
        dialect={"postgresql": "postgres"}.get(name, name),
        source=source,
        thresholds={},
        timeout=30.0,
    )
    with Session() as session:

        def judged(gold: str, rows: list[tuple[object, ...]], **changes: object) -> CaseResult:
            columns = tuple(f"c{number}" for number in range(len(rows[0]) if rows else 1))
            predicted = QueryOrAnswer(answer=Table(columns=columns, rows=rows))
            return evaluate_case(
                change(case, golds=(QueryOrAnswer(query=gold),), predicted=predicted, **changes), session
            )

        yield judged


def top(engine: tuple[str, Source]) -> str:
    """The gold that returns two rows of big, of which the second ties with two others."""
    return TOP_OF_GRAPH if engine[0] == "oxigraph" else TOP


def by_score(engine: tuple[str, Source], columns: str, limit: int | None, offset: int) -> str:
    """A gold that returns a part of player."""
    part = f"OFFSET {offset}" if limit is None else f"LIMIT {limit} OFFSET {offset}"
    if engine[0] != "oxigraph":
        return f"SELECT {columns} FROM player ORDER BY score DESC {part}"
    names = " ".join(f"?{column}" for column in columns.split(", "))
    pattern = "{ ?p :name ?name ; :team ?team OPTIONAL { ?p :score ?score } }"
    return f"PREFIX : <http://e/> SELECT {names} {pattern} ORDER BY DESC(?score) {part}"


def accuracy(result: CaseResult) -> float | None:
    return result.scores["execution_accuracy"]


def test_each_choice_among_the_tied_rows_of_a_big_table_is_right(engine, judge) -> None:
    choices = [judge(top(engine), [("r0",), (name,)], max_rows=1_010) for name in ("r1", "r2", "r3", "r4")]

    assert [accuracy(choice) for choice in choices] == [1, 1, 1, 0]
    assert [choice.shown.depends_on_tie for choice in choices].count(True) == 2
    assert all((DEPENDS in choice.details.get("notes", ())) == choice.shown.depends_on_tie for choice in choices)


def test_strict_rows_are_required_and_said_where_more_than_max_rows_tie(engine, judge) -> None:
    choices = [judge(top(engine), [("r0",), (name,)], max_rows=2) for name in ("r1", "r2", "r3")]

    assert [accuracy(choice) for choice in choices].count(1) == 1
    wrong = next(choice for choice in choices if accuracy(choice) == 0)
    assert "the rows that tie at gold's LIMIT could not be read (more than 2 rows" in wrong.details["notes"][0]


@pytest.mark.parametrize("engine", SQL_ENGINES, indirect=True)
def test_only_the_rows_that_tie_within_an_offset_are_read(engine, judge) -> None:
    gold = f"SELECT name FROM big ORDER BY CASE WHEN id < {BIG - 3} THEN id ELSE {BIG} END LIMIT 1 OFFSET {BIG - 2}"
    choices = [judge(gold, [(f"r{BIG - place}",)], max_rows=3) for place in (1, 2, 3, 4)]

    assert [accuracy(choice) for choice in choices] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    "gold",
    [
        "SELECT DISTINCT name, v FROM big ORDER BY v DESC LIMIT 2",
        "SELECT name, v FROM big UNION SELECT name, v FROM big ORDER BY v DESC LIMIT 2",
        "SELECT name, v FROM big UNION SELECT name, v FROM big ORDER BY 2 DESC LIMIT 2",
        "WITH b AS (SELECT * FROM big) SELECT b.name, b.v FROM b JOIN big ON b.id = big.id ORDER BY big.v DESC LIMIT 2",
        "SELECT a.name, b.v, a.name, 1, 1 FROM big a JOIN big b USING (id) GROUP BY 1, 2 ORDER BY 2 DESC LIMIT 2",
    ],
)
@pytest.mark.parametrize("engine", SQL_ENGINES, indirect=True)
def test_the_rule_holds_for_every_form_of_query(engine, judge, gold: str) -> None:
    wide = "1, 1" in gold
    choices = [
        judge(gold, [("r0", 9, *("r0", 1, 1) * wide), (name, v, *(name, 1, 1) * wide)], max_rows=10)
        for name, v in (("r1", 8), ("r2", 8), ("r3", 8), ("r4", 4))
    ]

    assert [accuracy(choice) for choice in choices] == [1, 1, 1, 0]


def test_a_right_answer_without_a_choice_depends_on_no_tie(engine, judge) -> None:
    gold = top(engine).replace("LIMIT 2", "LIMIT 4")
    verdict = judge(gold, [("r0",), ("r3",), ("r2",), ("r1",)], max_rows=10)

    assert accuracy(verdict) == 1
    assert not verdict.shown.depends_on_tie


def orders(keys: list[Player], nulls_first: bool) -> Iterator[list[Player]]:
    """Every order that `ORDER BY score DESC` may give."""

    def place(player: Player) -> tuple[bool, int]:
        return (player.score is None) != nulls_first, -(player.score or 0)

    groups = [list(group) for _, group in groupby(sorted(keys, key=place), key=lambda player: player.score)]
    for chosen in product(*map(permutations, groups)):
        yield list(chain.from_iterable(chosen))


@pytest.mark.parametrize("columns", ["name", "team", "team, score", "name, score, team"])
def test_choices_agree_with_every_order_that_the_keys_allow(engine, judge, columns: str) -> None:
    names = columns.split(", ")
    every = [
        [tuple(getattr(player, column) for column in names) for player in order]
        for order in orders(PLAYERS, nulls_first=engine[0] == "postgresql")
    ]
    chance = random.Random(columns)
    parts = [(1, 0), (2, 0), (4, 0), (2, 1), (3, 2), (2, 5), (1, 6), (9, 0)]
    if engine[0] != "sqlite":  # whose grammar has no OFFSET without LIMIT
        parts += [(None, 1), (None, 4)]
    for limit, offset in parts:
        part = slice(offset, None if limit is None else offset + limit)
        right = {tuple(order[part]) for order in every}
        shuffled = [chance.sample(order, len(order)) for order in chance.sample(every, 4)]
        candidates = [tuple(order[part]) for order in (*chance.sample(every, 4), *shuffled)]
        gold = by_score(engine, columns, limit, offset)
        for rows in candidates:
            verdict = judge(gold, list(rows))
            assert (accuracy(verdict) == 1.0) == (rows in right), (gold, rows)
