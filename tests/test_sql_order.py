"""ORDER BY and LIMIT of gold SQL, on every engine: which orders, and which choices among ties, are right."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from every_engine import SQL, source_on
from samples import change, make_case

from pytest_queryeval.comparison.ties import CUT, NO_KEYS, SELECTED_KEYS
from pytest_queryeval.core.model import Case, CaseResult, QueryOrAnswer, Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.scoring import DEPENDS
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages.sql.order import order_plan

pytestmark = pytest.mark.process

pytest_plugins = ["postgres"]

SCRIPT = """
CREATE TABLE player (name TEXT, team TEXT, score INTEGER, joined TEXT);
INSERT INTO player VALUES
  ('ann', 'red', 5, 'May'), ('bob', 'red', 5, 'may'), ('cy', 'blue', 3, 'June'),
  ('dee', 'blue', 3, 'July'), ('eve', 'green', 3, 'July'), ('fay', 'green', 1, NULL);
"""


@pytest.fixture(scope="module", params=SQL)
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    folder = tmp_path_factory.mktemp(f"order_{request.param}")
    with source_on(request.param, folder, SCRIPT, request) as source, Session() as session:
        dialect = ENGINES[source.engine].dialect(source.settings)

        def judged(gold: str, predicted: str, **settings: object) -> CaseResult:
            return evaluate_case(change(case(gold, predicted, source), dialect=dialect, **settings), session)

        yield judged


def case(gold: str, predicted: str, source: Source) -> Case:
    golds, prediction = (QueryOrAnswer(query=gold),), QueryOrAnswer(query=predicted)
    return make_case(
        source=source, golds=golds, predicted=prediction, thresholds={}, max_rows=1000, allow_empty=True, timeout=60
    )


BY_SCORE = "SELECT name FROM player ORDER BY score DESC"


@pytest.mark.parametrize(
    ("gold", "predicted", "right"),
    [
        (BY_SCORE, "SELECT name FROM player ORDER BY score DESC, name DESC", True),
        (BY_SCORE, "SELECT name FROM player ORDER BY score", False),
        (BY_SCORE, "SELECT name FROM player ORDER BY name", True),
        (BY_SCORE, "SELECT name FROM player ORDER BY name DESC", False),
        (f"{BY_SCORE} LIMIT 1", "SELECT 'bob'", True),
        (f"{BY_SCORE} LIMIT 1", "SELECT 'cy'", False),
        (f"{BY_SCORE} LIMIT 3", "SELECT name FROM player WHERE name IN ('bob', 'ann', 'eve') ORDER BY name", True),
        (f"{BY_SCORE} LIMIT 3", "SELECT name FROM player WHERE name IN ('bob', 'cy', 'eve') ORDER BY name", False),
        (f"{BY_SCORE} LIMIT 3", "SELECT * FROM (VALUES ('eve'), ('ann'), ('bob')) AS v", False),
        (f"{BY_SCORE} LIMIT 2 OFFSET 2", "SELECT * FROM (VALUES ('eve'), ('cy')) AS v", True),
        (f"{BY_SCORE} LIMIT 2 OFFSET 2", "SELECT * FROM (VALUES ('fay'), ('cy')) AS v", False),
        (f"{BY_SCORE} LIMIT 3", "SELECT * FROM (VALUES ('ann'), ('bob'), ('cy'), ('dee')) AS v", False),
        ("SELECT name FROM player LIMIT 2", "SELECT * FROM (VALUES ('eve'), ('cy')) AS v", True),
        ("SELECT name FROM player LIMIT 2", "SELECT * FROM (VALUES ('eve'), ('eve')) AS v", False),
        ("SELECT name FROM player LIMIT 2", "SELECT * FROM (VALUES ('eve'), ('zoe')) AS v", False),
        (
            "SELECT team, count(*) FROM player GROUP BY team ORDER BY count(*)",
            "SELECT team, count(*) FROM player GROUP BY team ORDER BY team DESC",
            True,
        ),
        (
            "SELECT team FROM player GROUP BY team ORDER BY count(*) DESC LIMIT 1",
            "SELECT 'green'",
            True,
        ),
        (
            "SELECT team, sum(score) AS total FROM player GROUP BY team ORDER BY total DESC",
            "SELECT team, sum(score) AS total FROM player GROUP BY team ORDER BY total",
            False,
        ),
        (
            "SELECT name, score FROM player ORDER BY 2",
            "SELECT name, score FROM player ORDER BY score, name DESC",
            True,
        ),
        ("SELECT name, score FROM player ORDER BY 2", "SELECT score, name FROM player ORDER BY score, name DESC", True),
        (
            "SELECT DISTINCT score FROM player ORDER BY score",
            "SELECT DISTINCT score FROM player ORDER BY 1 DESC",
            False,
        ),
        (
            "SELECT DISTINCT name, score FROM player ORDER BY score",
            "SELECT name, score FROM player ORDER BY score, name DESC",
            True,
        ),
        (
            "SELECT name, score FROM player WHERE score > 3 UNION SELECT name, score FROM player ORDER BY score",
            "SELECT name, score FROM player ORDER BY score, name DESC",
            True,
        ),
        (
            "SELECT name FROM player WHERE joined IS NOT NULL ORDER BY lower(joined)",
            "SELECT name FROM player WHERE joined IS NOT NULL ORDER BY lower(joined), name DESC",
            True,
        ),
        (
            "SELECT name FROM (SELECT name FROM player ORDER BY score LIMIT 3) AS p",
            "SELECT name FROM (SELECT name FROM player ORDER BY score LIMIT 3) AS p ORDER BY name DESC",
            True,
        ),
        (
            "WITH p AS (SELECT * FROM player) SELECT name FROM p ORDER BY score DESC",
            "SELECT name FROM player ORDER BY score DESC, name DESC",
            True,
        ),
        ("SELECT * FROM player ORDER BY score", "SELECT * FROM player ORDER BY score, name DESC", True),
        ("SELECT * FROM player ORDER BY 3", "SELECT * FROM player ORDER BY score, name DESC", True),
        ("SELECT * FROM player ORDER BY 3", "SELECT * FROM player ORDER BY score DESC", False),
        ("SELECT DISTINCT * FROM player ORDER BY score", "SELECT * FROM player ORDER BY score, name DESC", True),
        (
            "SELECT name FROM player ORDER BY score -- top\nDESC",
            "SELECT name FROM player ORDER BY score DESC, 1 DESC",
            True,
        ),
    ],
)
def test_orders_and_choices(judge, gold: str, predicted: str, right: bool) -> None:
    assert judge(gold, predicted).scores["execution_accuracy"] == float(right)


def test_a_cut_tie_is_said_in_the_details(judge) -> None:
    result = judge(f"{BY_SCORE} LIMIT 1", "SELECT 'bob'")

    assert result.details["notes"] == [CUT.format(rows=2), DEPENDS]


def test_keys_that_only_selected_columns_tell_are_said_in_the_details(judge) -> None:
    result = judge(
        "SELECT DISTINCT name, score FROM player ORDER BY score", "SELECT name, score FROM player ORDER BY 2, 1 DESC"
    )

    assert SELECTED_KEYS in result.details["notes"]


@pytest.mark.parametrize("judge", ["sqlite"], indirect=True)
def test_a_collation_of_a_column_says_which_rows_tie(judge) -> None:
    folded = "(SELECT name, joined COLLATE NOCASE AS month FROM player) AS p"

    result = judge(f"SELECT name FROM {folded} ORDER BY month", f"SELECT name FROM {folded} ORDER BY month, name DESC")

    assert result.scores["execution_accuracy"] == 1.0


@pytest.mark.parametrize("judge", ["sqlite"], indirect=True)
def test_keys_that_cannot_be_read_make_the_order_strict_and_are_said(judge) -> None:
    gold = "SELECT name FROM player UNION SELECT name FROM player ORDER BY 1 COLLATE NOCASE"
    result = judge(gold, "SELECT name FROM player ORDER BY name DESC")

    assert result.scores["execution_accuracy"] == 0.0
    assert result.details["notes"] == [NO_KEYS]


# What sqlglot cannot read, or writes in a way that DuckDB does not run.
UNPARSED, REWRITTEN = "x'61', name", "CAST(MAP {} AS MAP(VARCHAR, INTEGER)) AS m, name"


@pytest.mark.feature("duckdb")
@pytest.mark.parametrize("judge", ["duckdb"], indirect=True)
@pytest.mark.parametrize("selected", [UNPARSED, REWRITTEN])
@pytest.mark.parametrize(
    ("clauses", "names", "right"),
    [
        ("ORDER BY score DESC LIMIT 1", ["bob"], True),
        ("ORDER BY score DESC LIMIT 1", ["cy"], False),
        ("ORDER BY score DESC -- top\nLIMIT 2 OFFSET 2;", ["eve", "cy"], True),
        ("ORDER BY score DESC LIMIT 2 OFFSET 2", ["fay", "cy"], False),
        ("ORDER BY score DESC", ["bob", "ann", "eve", "cy", "dee", "fay"], True),
        ("ORDER BY score DESC", ["eve", "ann", "bob", "cy", "dee", "fay"], False),
        ("ORDER BY (score) % 2 DESC NULLS LAST, length(name) LIMIT 1", ["eve"], False),
        ("ORDER BY length(2::VARCHAR), 2 DESC LIMIT 1", ["fay"], True),
        ("LIMIT 1", ["eve"], True),
        ("LIMIT 1", ["zoe"], False),
    ],
)
def test_the_text_of_gold_is_kept_where_the_parser_fails(judge, selected, clauses, names, right) -> None:
    rows = " UNION ALL ".join(f"SELECT * FROM (SELECT {selected} FROM (SELECT '{name}' AS name))" for name in names)

    assert judge(f"SELECT {selected} FROM player {clauses}", rows).scores["execution_accuracy"] == float(right)


@pytest.mark.feature("duckdb")
@pytest.mark.parametrize("judge", ["duckdb"], indirect=True)
@pytest.mark.parametrize(
    "gold",
    [
        "FROM player SELECT x'61', name ORDER BY score DESC LIMIT 1",
        "SELECT x'61', name FROM player ORDER BY score DESC LIMIT 1 OFFSET 0 + 0",
        "SELECT 'a'::BLOB, name FROM player ORDER BY score DESC LIMIT 1 OFFSET 0 + 0",
        "SELECT DISTINCT x'61', name FROM player ORDER BY length(name) LIMIT 1",
    ],
)
def test_a_gold_that_cannot_be_rewritten_says_so(judge, gold: str) -> None:
    result = judge(gold, "SELECT x'61', 'bob'")

    assert result.scores["execution_accuracy"] == 0.0
    assert any("LIMIT could not be read" in note for note in result.details["notes"])


def test_order_can_be_ignored_and_can_be_strict(judge) -> None:
    reversed_order = "SELECT name FROM player ORDER BY score"

    assert judge(BY_SCORE, reversed_order, policy=Policy(row_order="ignore")).scores["execution_accuracy"] == 1.0
    tied = "SELECT name FROM player ORDER BY score DESC, name DESC"
    assert judge(BY_SCORE, tied, policy=Policy(row_order="strict")).scores["execution_accuracy"] == 0.0


def test_a_tie_of_more_than_max_rows_leaves_the_rows_that_gold_returned(judge) -> None:
    result = judge(f"{BY_SCORE} LIMIT 1", "SELECT 'bob'", max_rows=1)

    assert result.scores["execution_accuracy"] == 0.0
    assert "LIMIT" in result.details["notes"][0]


@pytest.mark.parametrize("seed", range(30))
def test_every_order_among_ties_is_right_and_every_other_is_wrong(judge, seed: int) -> None:
    rows = [("ann", 5), ("bob", 5), ("cy", 3), ("dee", 3), ("eve", 3), ("fay", 1)]
    order = (
        random.Random(seed).sample(rows, 6) if seed % 2 else sorted(rows, key=lambda row: (-row[1], hash((row, seed))))
    )
    values = ", ".join(f"('{name}')" for name, _ in order)

    right = [score for _, score in order] == [5, 5, 3, 3, 3, 1]
    assert judge(BY_SCORE, f"SELECT * FROM (VALUES {values}) AS v").scores["execution_accuracy"] == float(right)


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT (" * 400, "DELETE FROM t ORDER BY 1 LIMIT 1"])
def test_queries_without_an_order_have_no_plan(query: str) -> None:
    assert order_plan(query, ("a",), 1, "sqlite") is None
