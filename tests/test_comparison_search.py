"""The search for the best order of columns: against all orders on small tables, by construction on large ones."""

from __future__ import annotations

import inspect
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import pytest
from samples import notes_on

from pytest_queryeval.comparison.alignment import (
    search_budget,
    shared_budget,
)  # white box: how many steps a search takes
from pytest_queryeval.core.table import ColumnTolerance, Policy, Table, Tie
from pytest_queryeval.metrics import METRICS

DEFAULT = Policy()
METRICS_THAT_SEARCH = ("row_matching_f1", "execution_accuracy")
Columns = Sequence[Sequence[Any]]


def table_of(columns: Columns) -> Table:
    return Table(columns=tuple(f"c{place}" for place in range(len(columns))), rows=list(zip(*columns, strict=True)))


def right_values(gold: Sequence[int], predicted: Sequence[int]) -> dict[str, int]:
    golds, others = set(gold), set(predicted)
    return {"tp": len(golds & others), "fp": len(others - golds), "fn": len(golds - others)}


def best_of_all(gold: Columns, predicted: Columns) -> tuple[int, list[list[dict[str, int]]]]:
    """The most rows that match, and the counts of values in the columns of each order that matches them."""
    counts: dict[int, list[list[dict[str, int]]]] = {}
    for order in permutations(range(len(predicted)), len(gold)):
        rows = Counter(zip(*(predicted[place] for place in order), strict=True))
        matched = (Counter(zip(*gold, strict=True)) & rows).total()
        right = [right_values(column, predicted[place]) for column, place in zip(gold, order, strict=True)]
        counts.setdefault(matched, []).append(right)
    return max(counts.items())


def made_pair(chance: random.Random) -> tuple[Columns, Columns]:
    """Columns of few values, and the same in another order with some of them, and some cells and rows, changed."""
    width, height, values = (
        chance.choice((1, 2, 3, 3, 4, 4, 5)),
        chance.choice((1, 2, 3, 5, 8, 12, 30)),
        chance.choice((2, 3, 5)),
    )
    gold = [[chance.randrange(values) for _ in range(height)] for _ in range(width)]
    for place in range(1, width):
        if chance.random() < 0.3:
            gold[place] = list(gold[chance.randrange(place)])
    others = [list(column) for column in gold]
    others += [
        [chance.randrange(values) for _ in range(height)]
        for _ in range(chance.choice((0, 0, 1, 2)) if width < 5 else 0)
    ]
    chance.shuffle(others)
    noise = chance.choice((0.0, 0.02, 0.1, 0.5, 1.0))
    rows = [
        [chance.randrange(values + 1) if chance.random() < noise else cell for cell in row]
        for row in zip(*others, strict=True)
    ]
    rows = chance.sample(rows, len(rows))
    rows = [*rows[chance.choice((0, 0, 0, 1)) :], *rows[: chance.choice((0, 0, 0, 2))]] or rows
    return gold, [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("seed", range(4))
def test_no_other_columns_are_better(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(75):
        gold, predicted = made_pair(chance)
        matched, counts = best_of_all(gold, predicted)
        sides = table_of(gold), table_of(predicted)
        n, m = len(gold[0]), len(predicted[0])

        rows = METRICS["row_matching_f1"].counts[1](*sides, policy=DEFAULT)
        values = METRICS["entity_set_f1"].counts[1](*sides, policy=DEFAULT)

        assert rows == {"tp": matched, "fp": m - matched, "fn": n - matched}, sides
        if matched < max(n, m):
            assert [{key: of[key] for key in ("tp", "fp", "fn")} for of in values] in counts, sides
        is_equal = matched == n == m and len(gold) == len(predicted)
        assert METRICS["execution_accuracy"].function(*sides) == is_equal, sides


# Searches that take many steps


def orders_of(width: int, rows: int) -> Columns:
    """Columns that have the same values, each in an order of its own."""
    return [random.Random(seed).sample(range(rows), rows) for seed in range(width)]


def shuffled(columns: Columns) -> Columns:
    chance = random.Random(1)
    rows = list(zip(*chance.sample(columns, len(columns)), strict=True))
    return list(zip(*chance.sample(rows, len(rows)), strict=True))


def columns_of(width: int, rows: int) -> Columns:
    chance = random.Random(5)
    return [[chance.randrange(50) for _ in range(rows)] for _ in range(width)]


def few(width: int, rows: int = 80, seed: int = 1) -> Columns:
    """Columns of two to five different values."""
    chance = random.Random(seed)
    return [[chance.randrange(2 + place % 4) for _ in range(rows)] for place in range(width)]


def moved(columns: Columns, most: int) -> Columns:
    return [[cell + place % most for cell in column] for place, column in enumerate(columns)]


def texts(columns: Columns) -> list[list[str]]:
    return [list(map(str, column)) for column in columns]


def changed(columns: Columns, cells: int) -> Columns:
    chance = random.Random(2)
    columns = [list(column) for column in columns]
    for _ in range(cells):
        chance.choice(columns)[chance.randrange(len(columns[0]))] = chance.randrange(9)
    return columns


CHAIN = [1e6 + 0.4 * number for number in range(10)]  # near the next two, and so all of one cluster
FLAGS = [*zip(*product((0, 1), repeat=5), strict=True)]
NEAR = [1e6 + 0.4 * number for number in range(32)]
OTHER_NEAR = [number + 0.1 for number in NEAR]
EXCHANGED = [NEAR[-1], *NEAR[1:-1], NEAR[0]]
DISORDERED = sorted(NEAR, key=lambda number: number * 10 % 7)
PRICES = Policy(column_numbers=(ColumnTolerance("c0", 0.0, 1.0), ColumnTolerance("c1", 0.0, 0.0)))
PRICES_ALONE = {"column_numbers": (ColumnTolerance("c0", 1e-6, 0.0),)}
SEARCHES: dict[str, tuple[Columns, Columns, Policy]] = {
    "the same values": (orders_of(26, 100), shuffled(orders_of(26, 100)), DEFAULT),
    "one more of the same values": (orders_of(8, 60), shuffled(orders_of(9, 60)), DEFAULT),
    "equal columns": ([range(50)] * 9, [[*range(1, 50), 77]] * 9, DEFAULT),
    "equal columns among others": (few(3) * 2, changed(shuffled(few(3) * 2), 40), DEFAULT),
    "equal columns, with others": (few(2) * 2, changed(shuffled([*few(3) * 2, few(2)[0]]), 20), DEFAULT),
    "a few other cells": (few(8), changed(shuffled(few(8)), 6), DEFAULT),
    "many other cells": (few(5), changed(shuffled(few(5)), 120), DEFAULT),
    "unrelated": (few(6), few(6, seed=2), DEFAULT),
    "unrelated, with others": (few(4), few(6, seed=2), DEFAULT),
    "no equal rows": (few(8, 6), moved(few(9, 6, seed=2), 3), DEFAULT),
    "no equal rows, other values": (few(5, 9), moved(few(7, 12, seed=2), 9), DEFAULT),
    "equal columns of other rows": (
        few(5),
        [random.Random(place).sample(column, 80) for place, column in enumerate(few(5))],
        DEFAULT,
    ),
    "near numbers": ([CHAIN, *[[0] * 10] * 9], shuffled([[n + 0.1 for n in CHAIN], *[[0] * 10] * 9]), DEFAULT),
    "near numbers and a wrong column": ([CHAIN, *[[0, 1] * 5] * 7], [CHAIN, *[[0, 1] * 5] * 6, [1, 0] * 5], DEFAULT),
    "near numbers next to other flags": ([*FLAGS, NEAR], [*FLAGS, DISORDERED], DEFAULT),
    "near numbers next to other texts": ([*texts(FLAGS), NEAR], shuffled([*texts(FLAGS), DISORDERED]), DEFAULT),
    "two near numbers exchanged": ([*FLAGS, NEAR], shuffled([*FLAGS, EXCHANGED]), DEFAULT),
    "near numbers in two columns": (
        [*FLAGS, NEAR, NEAR[::-1]],
        shuffled([*FLAGS, OTHER_NEAR, EXCHANGED[::-1]]),
        DEFAULT,
    ),
    "near numbers in three columns": (
        [NEAR, NEAR[::-1], DISORDERED],
        shuffled([OTHER_NEAR, NEAR[::-1], DISORDERED]),
        DEFAULT,
    ),
    "tolerances of columns": ([NEAR, *few(8, 32)], shuffled([OTHER_NEAR, *few(8, 32)]), PRICES),
    "tolerances of columns, other cells": (
        [NEAR, *few(7, 32)],
        changed(shuffled([OTHER_NEAR, *few(7, 32)]), 3),
        PRICES,
    ),
}


# Of each search, the steps that it takes if it may take 3,000,000 and 3,000, and the row F1 that it finds.
FOUND = {
    "the same values": ((10504, 1.0), (2956, 0.0)),
    "one more of the same values": ((7948, 1.0), (2900, 0.0)),
    "equal columns": ((0, 0.98), (0, 0.98)),
    "equal columns among others": ((4508, 0.662), (3000, 0.163)),
    "equal columns, with others": ((5798, 0.938), (2939, 0.938)),
    "a few other cells": ((9040, 0.925), (2432, 0.062)),
    "many other cells": ((4343, 0.275), (2957, 0.062)),
    "unrelated": ((13539, 0.15), (2988, 0.113)),
    "unrelated, with others": ((21333, 0.45), (2992, 0.375)),
    "no equal rows": ((11960, 0.0), (2990, 0.0)),
    "no equal rows, other values": ((1300, 0.0), (1300, 0.0)),
    "equal columns of other rows": ((6844, 0.3), (2940, 0.287)),
    "near numbers": ((828, 1.0), (828, 1.0)),
    "near numbers and a wrong column": ((2560, 0.0), (2560, 0.0)),
    "near numbers next to other flags": ((12977, 0.312), (2997, 0.031)),
    "near numbers next to other texts": ((8649, 0.312), (2988, 0.156)),
    "two near numbers exchanged": ((7104, 0.938), (2997, 0.062)),
    "near numbers in two columns": ((6172, 0.188), (3000, 0.188)),
    "near numbers in three columns": ((9576, 1.0), (2996, 0.0)),
    "tolerances of columns": ((2696, 1.0), (2696, 1.0)),
    "tolerances of columns, other cells": ((8689, 0.906), (2994, 0.0)),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_take_as_many_steps_and_find_as_much_as_before(name: str) -> None:
    found = []
    for steps in (3_000_000, 3_000):
        with shared_budget(steps):
            scores = [score_of(metric, *SEARCHES[name]) for metric in METRICS_THAT_SEARCH]
            found.append((steps - search_budget().left, round(scores[0], 3)))

    assert tuple(found) == FOUND[name]


def score_of(metric: str, gold: Columns, predicted: Columns, policy: Policy) -> float:
    return METRICS[metric].function(table_of(gold), table_of(predicted), policy=policy)


# Large tables


@pytest.fixture
def few_frames() -> Iterator[None]:
    """Let no function call itself for each of several hundred columns."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 250)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("few_frames")
@pytest.mark.parametrize("columns", [15, 400])
def test_near_numbers_are_found_in_any_order_of_many_columns(columns: int) -> None:
    gold, predicted = ([[number + step for number in CHAIN], *[[0] * 10] * columns] for step in (0, 0.1))

    assert score_of("execution_accuracy", gold, shuffled(predicted), DEFAULT) == 1.0


def test_two_thousand_columns_are_aligned() -> None:
    columns = columns_of(2_000, 10)

    assert score_of("row_matching_f1", columns, shuffled(columns), DEFAULT) == 1.0
    assert notes_on(table_of(columns), table_of(shuffled(columns))) == []


@pytest.mark.parametrize("rows", [600, pytest.param(5_000, marks=pytest.mark.long)])
def test_noise_in_one_column_hides_no_partner_found_by_another(rows: int) -> None:
    chance = random.Random(rows)
    noise = [[0.1 + 1e-15 * chance.random() for _ in range(rows)] for _ in range(2)]
    numbers = [5e6 + 0.5 * row for row in range(rows)]
    gold, predicted = [noise[0], numbers], shuffled([noise[1], [number * (1 + 1e-15) for number in numbers]])

    assert score_of("execution_accuracy", gold, predicted, DEFAULT) == 1.0
    assert score_of("execution_accuracy", predicted, gold, DEFAULT) == 1.0
    wrong = [[*column[40:], *column[:1] * 40] for column in predicted]
    assert score_of("execution_accuracy", gold, wrong, DEFAULT) == 0.0


@pytest.mark.parametrize("policy", [{}, {"columns": "positional"}, PRICES_ALONE])
@pytest.mark.parametrize("is_ordered", [False, True])
def test_where_the_budget_ends_it_is_noted(policy: dict[str, Any], *, is_ordered: bool) -> None:
    chance = random.Random(3)
    columns = [[1e6 + chance.random() for _ in range(300)] for _ in range(2)]
    others = [[number + 1e-3 for number in column[::-1]] for column in columns]
    ties = (Tie(size=300, rows=tuple(zip(*columns, strict=True))),) if is_ordered else None
    settings = {"policy": Policy(**{"abs": 0.2, "rel": 0.0} | policy)}

    with shared_budget(20):
        notes = notes_on(replace(table_of(columns), ties=ties), table_of(others), **settings)

    assert len(notes) == 1
    assert notes_on(replace(table_of(columns), ties=ties), table_of(others), **settings) == []


@pytest.mark.parametrize(("rows", "is_noted"), [(200, False), (201, True)])
def test_near_rows_are_paired_in_all_ways_where_two_hundred_have_no_partner(rows: int, *, is_noted: bool) -> None:
    near = [1e6 + 0.4 * number for number in range(rows)]
    sides = table_of([near, near]), table_of([near, [*near[100:], *near[:100]]])

    assert bool(notes_on(*sides, policy=Policy(columns="positional"))) == is_noted
