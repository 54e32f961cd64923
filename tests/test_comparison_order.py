"""ORDER BY, LIMIT and OFFSET of gold, on every engine: which orders, and which choices among ties, are right."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, permutations, product
from typing import Any, NamedTuple

import pytest
from every_engine import SPARQL, SQL, source_on
from samples import change, make_case

from pytest_queryeval.core.model import CaseResult, QueryOrAnswer
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation import Session, evaluate_case

pytestmark = pytest.mark.process

pytest_plugins = ["postgres"]

BIG = 2_000
PLAYERS = [("ann", "red", 5), ("bob", "red", 5), ("cy", "blue", 3), ("dee", "blue", 3), ("eve", "green", 3)]
MEMBERS = [("ann", "red", 5), ("bob", "red", 5), ("cy", "blue", 5), ("dee", "blue", 3), ("eve", "red", 3)]
MEMBERS += [("fay", "blue", 1), ("gil", "red", None), ("hal", "blue", None)]
# One leads, three tie behind it, all others lie further back.
RANKED = [(number, f"r{number}", 9 if number == 0 else 8 if number <= 3 else number % 5) for number in range(BIG)]
SCRIPT = f"""
CREATE TABLE player (name TEXT, team TEXT, score INTEGER, joined TEXT);
INSERT INTO player VALUES
  ('ann', 'red', 5, 'May'), ('bob', 'red', 5, 'may'), ('cy', 'blue', 3, 'June'),
  ('dee', 'blue', 3, 'July'), ('eve', 'green', 3, 'July'), ('fay', 'green', 1, NULL);
CREATE TABLE member (name TEXT, team TEXT, score INTEGER);
INSERT INTO member VALUES {", ".join(f"('{n}', '{t}', {'NULL' if s is None else s})" for n, t, s in MEMBERS)};
CREATE TABLE big (id INTEGER, name TEXT, v INTEGER); INSERT INTO big VALUES {", ".join(map(str, RANKED))};
"""


def triples(rows: Sequence[tuple[str, str, int | None]], kind: str) -> str:
    return "\n".join(
        f':{kind}_{name} :{kind} "{name}" ; :team "{team}" {"" if score is None else f"; :score {score}"} .'
        for name, team, score in rows
    )


GRAPH = f"""
@prefix : <http://e/> .
{triples([*PLAYERS, ("fay", "green", None)], "player").replace("bob ; :score 5", "bob ; :score 5.0")}
{triples(MEMBERS, "member")}
{" ".join(f':b{number} :big "{name}" ; :v {v} .' for number, name, v in RANKED)}
"""
Judge = Callable[..., CaseResult]


class Engine(NamedTuple):
    name: str
    kind: str
    judge: Judge


# Beside the engines, the other evaluator of RDF files.
@pytest.fixture(scope="module", params=[*SQL, *SPARQL, "rdflib"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    kind = "sql" if request.param in SQL else "sparql"
    folder = tmp_path_factory.mktemp(f"order_{request.param}")
    name = "rdf" if request.param == "rdflib" else request.param
    with source_on(name, folder, SCRIPT if kind == "sql" else GRAPH, request) as source, Session() as session:
        if request.param == "rdflib":
            source = replace(source, settings={**source.settings, "engine": "rdflib"})
        dialect = ENGINES[source.engine].dialect(source.settings) if kind == "sql" else ""
        settings = {"thresholds": {}, "max_rows": 1_000, "allow_empty": True, "timeout": 60.0}
        case = make_case(kind=kind, source=source, policy=Policy(text_numbers=kind == "sparql"), **settings)
        case = change(case, dialect=dialect) if dialect else case

        def judge(gold: str, rows: str | Sequence[tuple[object, ...]], **changes: Any) -> CaseResult:
            rows = named(rows) if isinstance(rows, str) else rows
            answer = Table(columns=tuple(f"c{place}" for place in range(len(rows[0]) if rows else 1)), rows=rows)
            golds, predicted = (QueryOrAnswer(query=gold),), QueryOrAnswer(answer=answer)
            return evaluate_case(change(case, golds=golds, predicted=predicted, **changes), session)

        yield Engine(request.param, kind, judge)


def named(text: str) -> list[tuple[object, ...]]:
    """The rows of `ann:5 bob:5`."""
    return [tuple(int(cell) if cell.isdigit() else cell for cell in row.split(":")) for row in text.split()]


def is_right(result: CaseResult) -> bool:
    return result.scores["execution_accuracy"] == 1.0


def notes(result: CaseResult) -> list[str]:
    return [*result.shown.details.get("notes", ())]


JOIN = "FROM big a JOIN big b USING (id)"
BY_SCORE = "SELECT name FROM player ORDER BY score DESC"
# A gold of SQL, answers that are right, and answers that are wrong.
OF_SQL = [
    (BY_SCORE, "ann bob cy dee eve fay, bob ann eve dee cy fay", "fay eve dee cy bob ann, ann cy bob dee eve fay"),
    (BY_SCORE, "", "ann bob cy dee eve, ann bob cy dee eve fay fay"),
    (f"{BY_SCORE} LIMIT 1", "ann, bob", "cy"),
    (f"{BY_SCORE} LIMIT 3", "ann bob cy, bob ann eve", "bob cy eve, eve ann bob, ann bob, ann bob cy dee"),
    (f"{BY_SCORE} LIMIT 2 OFFSET 2", "cy dee, eve cy", "fay cy, ann cy"),
    ("SELECT name FROM player LIMIT 2", "eve cy, ann fay", "eve eve, eve zoe"),
    (
        "SELECT team, count(*) FROM player GROUP BY team ORDER BY count(*)",
        "red:2 green:2 blue:2, blue:2 red:2 green:2",
        "red:2 green:2 blue:1",
    ),
    ("SELECT team FROM player GROUP BY team ORDER BY count(*) DESC LIMIT 1", "green, red, blue", "pink"),
    (
        "SELECT team, sum(score) AS total FROM player GROUP BY team ORDER BY total DESC",
        "red:10 blue:6 green:4",
        "green:4 blue:6 red:10",
    ),
    *(
        (gold, "fay:1 cy:3 dee:3 eve:3 ann:5 bob:5, 1:fay 3:eve 3:dee 3:cy 5:bob 5:ann",
         "ann:5 bob:5 cy:3 dee:3 eve:3 fay:1")
        for gold in (
            "SELECT name, score FROM player ORDER BY 2",
            "SELECT DISTINCT name, score FROM player ORDER BY score",
            "SELECT name, score FROM player WHERE score > 3 UNION SELECT name, score FROM player ORDER BY score",
            "SELECT * FROM (SELECT name, score FROM player) AS p ORDER BY score",
            "SELECT * FROM (SELECT name, score FROM player) AS p ORDER BY 2",
            "SELECT DISTINCT * FROM (SELECT name, score FROM player) AS p ORDER BY score",
        )
    ),
    ("SELECT DISTINCT score FROM player ORDER BY score", "1 3 5", "5 3 1"),
    (
        "SELECT name FROM player WHERE joined IS NOT NULL ORDER BY lower(joined)",
        "eve dee cy ann bob, dee eve cy bob ann",
        "cy dee eve ann bob",
    ),
    ("SELECT name FROM (SELECT name FROM player WHERE score = 3 ORDER BY score LIMIT 3) AS p", "eve dee cy", "eve"),
    ("WITH p AS (SELECT * FROM player) SELECT name FROM p ORDER BY score DESC", "bob ann eve dee cy fay", "fay ann"),
    ("SELECT name FROM player ORDER BY score -- top\nDESC", "bob ann eve dee cy fay", "fay eve dee cy bob ann"),
    *(
        (gold, ", ".join(f"r0:9{end and ':r0:1:1'} {name}:8{end.format(name)}" for name in ("r1", "r2", "r3")),
         f"r0:9{end and ':r0:1:1'} r4:4{end.format('r4')}")
        for gold, end in (
            ("SELECT DISTINCT name, v FROM big ORDER BY v DESC LIMIT 2", ""),
            ("SELECT name, v FROM big UNION SELECT name, v FROM big ORDER BY v DESC LIMIT 2", ""),
            ("SELECT name, v FROM big UNION SELECT name, v FROM big ORDER BY 2 DESC LIMIT 2", ""),
            (f"WITH c AS (SELECT 1) SELECT b.name, b.v {JOIN} ORDER BY a.v DESC LIMIT 2", ""),
            (f"SELECT a.name, b.v, a.name, 1, 1 {JOIN} GROUP BY 1, 2 ORDER BY 2 DESC LIMIT 2", ":{}:1:1"),
        )
    ),
    (
        f"SELECT name FROM big ORDER BY CASE WHEN id < {BIG - 3} THEN id ELSE {BIG} END LIMIT 1 OFFSET {BIG - 2}",
        f"r{BIG - 1}, r{BIG - 2}, r{BIG - 3}",
        f"r{BIG - 4}",
    ),
]  # fmt: skip
P, XSD = "PREFIX : <http://e/> ", "http://www.w3.org/2001/XMLSchema#"
PATTERN = "{ ?player :player ?name ; :team ?team OPTIONAL { ?player :score ?score } }"
SCORED = "{ ?player :player ?name ; :team ?team ; :score ?score }"
BY_SCORE_AND_TEAM = f"SELECT ?name {PATTERN} ORDER BY DESC(?score) ?team"
OF_SPARQL = [
    (BY_SCORE_AND_TEAM, "ann bob cy dee eve fay, bob ann dee cy eve fay", "bob ann dee eve cy fay"),
    (f"{BY_SCORE_AND_TEAM} LIMIT 1", "ann, bob", "cy"),
    (f"{BY_SCORE_AND_TEAM} LIMIT 3", "bob ann dee", "bob ann eve"),
    (f"{BY_SCORE_AND_TEAM} OFFSET 1 LIMIT 2", "ann dee, bob cy", "ann bob"),
    (f"SELECT ?name {PATTERN} ORDER BY ?name LIMIT 2", "ann bob", "bob ann"),
    (f"SELECT ?name {PATTERN} LIMIT 2", "eve cy", "eve zoe"),
    (
        f"SELECT ?name {PATTERN} ORDER BY STRLEN(?name) (COALESCE(0 - ?score, 0)) # ?name\n",
        "cy bob ann eve dee fay, cy ann bob dee eve fay",
        "cy ann bob dee fay eve",
    ),
    (f"SELECT ?name {SCORED} ORDER BY DESC(?score # one\n + 1) LIMIT 1", "ann, bob", "cy"),
    (f"SELECT ?name {PATTERN} ORDER BY NOT EXISTS {{ ?player :team 'red' }} LIMIT 2", "ann bob, bob ann", "ann cy"),
    (
        f"SELECT ?name {PATTERN} ORDER BY <{XSD}string>(?team) LIMIT 1 VALUES ?team {{ 'red' }}",
        "ann, bob",
        "cy",
    ),
    (f"SELECT ?name {{ {{ SELECT * {PATTERN} ORDER BY ?name LIMIT 2 }} }}", "bob ann", "bob cy"),
    (f"SELECT ?name {{ {{ SELECT * {PATTERN} ORDER BY ?name }} }} LIMIT 2", "", "eve zoe"),
    (f"SELECT DISTINCT ?name {PATTERN} ORDER BY STRLEN(?name)", "cy fay eve dee bob ann", "fay cy eve dee bob ann"),
    *(
        (gold, "red:2 green:2 blue:2, blue:2 red:2 green:2", "red:2 green:2 blue:1")
        for gold in (
            f"SELECT ?team (COUNT(*) AS ?n) {PATTERN} GROUP BY ?team ORDER BY DESC(?n)",
            f"SELECT ?team (COUNT(*) AS ?n) {PATTERN} GROUP BY ?team HAVING (COUNT(*) > 1) ORDER BY (COUNT(?name))",
            f"SELECT * {{ {{ SELECT ?team (COUNT(*) AS ?n) {PATTERN} GROUP BY ?team }} }} ORDER BY ?n",
        )
    ),
    *(
        (f"SELECT ?team (COUNT(?score) AS ?n) {PATTERN} GROUP BY ?team ORDER BY {key} LIMIT 1", "green:1", "red:2")
        for key in ("?n", "DESC(0 - ?n)", "COUNT(?score)")
    ),
    (f"SELECT DISTINCT ?team {PATTERN} ORDER BY ?name", "red blue green", "red green blue"),
    (f"SELECT (SUM(?s) AS ?order) {{ {{ SELECT (5 AS ?s) {PATTERN} ORDER BY ?name LIMIT 1 }} }}", "5", "1"),
]  # fmt: skip


def test_rows_that_tie_may_swap_and_a_limit_may_choose_among_them(engine) -> None:
    for gold, right, wrong in OF_SQL if engine.kind == "sql" else OF_SPARQL:
        if engine.name == "rdflib" and "EXISTS" in gold:  # which rdflib cannot sort by
            continue
        gold = gold if engine.kind == "sql" else P + gold
        for answers, verdict in ((right, True), (wrong, False)):
            for answer in filter(None, answers.split(", ")):
                assert is_right(engine.judge(gold, answer)) == verdict, (gold, answer)


def by_score(engine: Engine, columns: str, limit: int | None, offset: int, table: str = "member") -> str:
    """A gold that returns a part of a table."""
    part = f"OFFSET {offset}" if limit is None else f"LIMIT {limit} OFFSET {offset}"
    if engine.kind == "sql":
        return f"SELECT {columns} FROM {table} ORDER BY score DESC {part}"
    names = " ".join(f"?{column}" for column in columns.split(", "))
    pattern = f"{{ ?p :{table} ?name ; :team ?team OPTIONAL {{ ?p :score ?score }} }}"
    return f"{P}SELECT {names} {pattern} ORDER BY DESC(?score) {part}"


def orders(nulls_first: bool) -> Iterator[list[tuple[Any, ...]]]:
    """Every order of the members that `ORDER BY score DESC` may give."""

    def place(member: tuple[Any, ...]) -> tuple[bool, int]:
        return (member[2] is None) != nulls_first, -(member[2] or 0)

    groups = [list(group) for _, group in groupby(sorted(MEMBERS, key=place), key=lambda member: member[2])]
    for chosen in product(*map(permutations, groups)):
        yield list(chain.from_iterable(chosen))


@pytest.mark.parametrize("columns", ["name", "team, score", "name, score, team"])
def test_choices_agree_with_every_order_that_the_keys_allow(engine, columns: str) -> None:
    places = [("name", "team", "score").index(column) for column in columns.split(", ")]
    every = [
        [tuple(member[place] for place in places) for member in order]
        for order in orders(nulls_first=engine.name == "sqlalchemy")
    ]
    chance = random.Random(columns)
    parts = [(2, 0), (4, 0), (3, 2), (2, 5), (9, 0)]
    if engine.name in ("duckdb", "sqlalchemy") or engine.kind == "sparql":  # SQLite has no OFFSET without LIMIT
        parts += [(None, 4)]
    for limit, offset in parts:
        part = slice(offset, None if limit is None else offset + limit)
        right = {tuple(order[part]) for order in every}
        shuffled = [chance.sample(order, len(order)) for order in chance.sample(every, 3)]
        for rows in [tuple(order[part]) for order in (*chance.sample(every, 3), *shuffled)]:
            gold = by_score(engine, columns, limit, offset)
            assert is_right(engine.judge(gold, rows)) == (rows in right), (gold, rows)
        rows = tuple(chance.choice(shuffled)[part])
        in_any_order = engine.judge(gold, rows, policy=Policy(row_order="ignore"))
        assert is_right(in_any_order) == any(Counter(rows) == Counter(each) for each in right), (gold, rows)


# What is said of ties


def top(engine: Engine, limit: int) -> str:
    """The gold that returns rows of big, of which the second ties with two others."""
    if engine.kind == "sql":
        return f"SELECT name FROM big ORDER BY v DESC LIMIT {limit}"
    return f"{P}SELECT ?name {{ ?s :big ?name ; :v ?v }} ORDER BY DESC(?v) LIMIT {limit}"


def test_an_answer_that_is_right_by_a_choice_says_so(engine) -> None:
    choices = [engine.judge(top(engine, 2), f"r0 r{number}") for number in range(1, 5)]
    whole = engine.judge(top(engine, 4), "r0 r3 r2 r1")

    assert [*map(is_right, [*choices, whole])] == [True, True, True, False, True]
    assert sorted(choice.shown.depends_on_tie for choice in [*choices, whole]) == [False] * 3 + [True] * 2
    for choice in choices[:3]:
        cuts = [note for note in notes(choice) if "cuts through 3 rows that tie" in note]
        assert (len(cuts), "right only because of such a choice" in " ".join(notes(choice))) == (
            (1, True) if choice.shown.depends_on_tie else (0, False)
        )


def test_the_rows_of_gold_are_required_and_that_is_said_where_more_than_max_rows_tie(engine) -> None:
    choices = [engine.judge(top(engine, 2), f"r0 r{number}", max_rows=2) for number in (1, 2, 3)]
    wrong = next(choice for choice in choices if not is_right(choice))

    assert sum(map(is_right, choices)) == 1
    assert "the rows that tie at the LIMIT of the gold query could not be read (more than 2 rows" in notes(wrong)[0]
    if engine.kind == "sparql":
        far = engine.judge(by_score(engine, "name", 1, 4), "zoe", max_rows=3)
        assert "OFFSET and LIMIT reach up to row 5, `max_rows` to 3" in notes(far)[0]


def test_order_can_be_ignored_and_can_be_strict(engine) -> None:
    gold = by_score(engine, "name", 6, 0, "player")

    assert is_right(engine.judge(gold, "fay eve dee cy bob ann", policy=Policy(row_order="ignore")))
    verdicts = [
        engine.judge(gold, f"{first} {last} fay", policy=Policy(row_order="strict"))
        for first in ("ann bob", "bob ann")
        for last in map(" ".join, permutations(("cy", "dee", "eve")))
    ]
    assert sum(map(is_right, verdicts)) == 1


def sql_engine(*names: str) -> pytest.MarkDecorator:
    marks = {"duckdb": [pytest.mark.feature("duckdb")]}
    return pytest.mark.parametrize("engine", [pytest.param(n, marks=marks.get(n, ())) for n in names], indirect=True)


@pytest.mark.parametrize("policy", [Policy(row_order="ignore"), Policy(duplicates="ignore")], ids=["order", "set"])
def test_any_choice_of_rows_that_tie_is_right_where_order_is_ignored(engine, policy: Policy) -> None:
    right = ["r2 r0", "r3 r0", "r0 r1"]
    wrong = ["r1 r2", "r0 r4", "r0 r0"]
    results = {rows: engine.judge(top(engine, 2), rows, policy=policy) for rows in (*right, *wrong)}

    assert [rows for rows, result in results.items() if is_right(result)] == right
    assert sorted(results[rows].shown.depends_on_tie for rows in right) == [False, True, True]


@sql_engine("sqlite", "duckdb")
def test_gold_that_returns_other_rows_when_it_runs_again_has_no_ties(engine) -> None:
    result = engine.judge("SELECT random() + 0.5 FROM player ORDER BY score DESC LIMIT 1", [(7.5,)])

    assert not is_right(result)
    assert "the gold query returned other rows when it ran again" in notes(result)[0]


@sql_engine("sqlite")
def test_keys_that_cannot_be_read_are_those_selected_or_make_the_order_strict(engine) -> None:
    folded = "SELECT name FROM (SELECT name, joined COLLATE NOCASE AS month FROM player) AS p ORDER BY month"
    names = "fay eve dee cy bob ann"
    distinct = "SELECT DISTINCT name, score FROM player WHERE score > 3 ORDER BY score"
    selected = [engine.judge(distinct, rows) for rows in ("ann:5 bob:5", "bob:5 ann:5")]
    strict = engine.judge("SELECT name FROM player UNION SELECT name FROM player ORDER BY 1 COLLATE NOCASE", names)

    assert [is_right(engine.judge(folded, f"fay eve dee cy {end}")) for end in ("ann bob", "bob ann")] == [True, True]
    assert [*map(is_right, selected)] == [True, True]
    assert [*map(notes, selected)].count(
        ["order: only selected sort keys decide which rows of the gold answer tie"]
    ) == 1
    assert notes(strict) == [
        (
            "order: the sort keys of the gold query could not be read, "
            "so rows must have exactly the order of the gold answer"
        )
    ]


# What sqlglot cannot read, or writes in a way that DuckDB does not run.
UNPARSED, REWRITTEN = "x'61', name", "CAST(MAP {} AS MAP(VARCHAR, INTEGER)) AS m, name"


@sql_engine("duckdb")
@pytest.mark.parametrize("selected", [UNPARSED, REWRITTEN])
def test_the_text_of_gold_is_kept_where_the_parser_fails(engine, selected: str) -> None:
    first = b"a" if selected == UNPARSED else {}
    for clauses, answer, right in (
        ("ORDER BY score DESC LIMIT 1", "bob", True),
        ("ORDER BY score DESC LIMIT 1", "cy", False),
        ("ORDER BY score DESC -- top\nLIMIT 2 OFFSET 2;", "eve cy", True),
        ("ORDER BY score DESC LIMIT 2 OFFSET 2", "fay cy", False),
        ("ORDER BY score DESC", "bob ann eve cy dee fay", True),
        ("ORDER BY score DESC", "eve ann bob cy dee fay", False),
        ("ORDER BY (score) % 2 DESC NULLS LAST, length(name) LIMIT 1", "eve", False),
        ("ORDER BY length(2::VARCHAR), 2 DESC LIMIT 1", "fay", True),
        ("LIMIT 1", "eve", True),
        ("LIMIT 1", "zoe", False),
    ):
        rows = [(first, name) for name in answer.split()]
        assert is_right(engine.judge(f"SELECT {selected} FROM player {clauses}", rows)) == right, clauses


@sql_engine("duckdb")
@pytest.mark.parametrize(
    "gold",
    [
        "FROM player SELECT x'61', name ORDER BY score DESC LIMIT 1",
        "SELECT x'61', name FROM player ORDER BY score DESC LIMIT 1 OFFSET 0 + 0",
        "SELECT 'a'::BLOB, name FROM player ORDER BY score DESC LIMIT 1 OFFSET 0 + 0",
        "SELECT DISTINCT x'61', name FROM player ORDER BY length(name) DESC, score DESC LIMIT 1",
    ],
)
def test_a_gold_that_cannot_be_rewritten_says_so(engine, gold: str) -> None:
    result = engine.judge(gold, [(b"a", "fay")])

    assert not is_right(result)
    assert any("LIMIT of the gold query could not be read" in note for note in notes(result))


@pytest.mark.parametrize("engine", [*SPARQL, "rdflib"], indirect=True)
def test_a_graph_says_that_a_limit_chose_what_it_is_made_of(engine) -> None:
    gold = f"{P}CONSTRUCT {{ ?p :team ?t }} {{ ?p :team ?t }} ORDER BY ?t LIMIT 1"

    result = engine.judge(gold, [("http://e/nobody", "http://e/team", "blue")])

    assert not is_right(result)
    assert any("so only those it returned are right" in note for note in notes(result))
