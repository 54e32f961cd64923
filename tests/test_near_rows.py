"""Rows are paired within the tolerance in any order of columns; wrong answers are refused without trying all orders."""

import random
from itertools import permutations, product

import pytest

from pytest_queryeval.comparison.bounds import shared_budget
from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.core.table import ColumnTolerance, Policy, Table, Tie

DEFAULT = Policy()
CHAIN = [1e6 + 0.4 * number for number in range(10)]  # near the next two, and so all of one cluster


def table(rows):
    return Table(columns=tuple(f"c{number}" for number in range(len(rows[0]))), rows=[tuple(row) for row in rows])


def shuffled(rows, seed):
    chance = random.Random(seed)
    order = chance.sample(range(len(rows[0])), len(rows[0]))
    return [tuple(row[place] for place in order) for row in chance.sample(rows, len(rows))]


FLAGS = list(enumerate(product((0, 1), repeat=7)))
WRONG = {
    "a column of other values among equal ones": (
        [(value, *[0] * 15) for value in CHAIN],
        [(value, *[0] * 14, 1) for value in CHAIN],
    ),
    "an inverted flag": (
        [(value, *[row % 2] * 13) for row, value in enumerate(CHAIN)],
        [(value, *[row % 2] * 12, (row + 1) % 2) for row, value in enumerate(CHAIN)],
    ),
    "all flags inverted": (
        [(value, *[row % 2] * 13) for row, value in enumerate(CHAIN[:9])],
        [(value, *[(row + 1) % 2] * 13) for row, value in enumerate(CHAIN[:9])],
    ),
    "a cell of many columns": (
        [(value, *[0] * 1_100) for value in CHAIN[::3]],
        [(value, *[0] * 1_099, row) for row, value in enumerate(CHAIN[::3])],
    ),
    "numbers beside other combinations of flags": (
        [(*flags, 1e6 + 0.4 * row) for row, flags in FLAGS],
        [(*flags, 1e6 + 0.4 * (row * 37 % 128)) for row, flags in FLAGS],
    ),
    "two numbers exchanged": (
        [(*flags, 1e6 + 0.4 * row) for row, flags in FLAGS],
        [(*flags, 1e6 + 0.4 * (127 - row if row in (0, 127) else row)) for row, flags in FLAGS],
    ),
}


@pytest.mark.parametrize(("gold", "predicted"), WRONG.values(), ids=WRONG)
def test_wrong_answers_of_near_numbers_are_refused_within_few_steps(gold, predicted):
    with shared_budget(100_000):
        both = TablePair(table(gold), table(predicted), DEFAULT)

        assert not both.is_equal

    assert not both.is_unproven


@pytest.mark.parametrize("columns", [15, pytest.param(1_100, marks=pytest.mark.long)])
def test_right_answers_of_many_columns_are_accepted_in_any_order(columns):
    gold = [(value, *[0] * columns) for value in CHAIN]
    predicted = [(value + 0.1, *[0] * columns) for value in CHAIN]

    assert equal_tables(table(gold), table(shuffled(predicted, 1)), DEFAULT)


@pytest.mark.parametrize("rows", [600, 2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_noise_in_one_column_hides_no_partner_found_by_another(rows):
    chance = random.Random(rows)
    gold = [(0.1 + 1e-15 * chance.random(), 5e6 + 0.5 * row) for row in range(rows)]
    predicted = [(0.1 + 1e-15 * chance.random(), number * (1 + 1e-15)) for _, number in gold]

    assert equal_tables(table(gold), table(shuffled(predicted, 2)), DEFAULT)
    assert equal_tables(table(shuffled(predicted, 2)), table(gold), DEFAULT)
    assert not equal_tables(table(gold), table([(0.1, 5e6)] * 20 + predicted[:-20]), DEFAULT)


def test_exactly_equal_rows_are_paired_before_near_ones():
    gold = [(1.0, 1e6), (1.0, 1e6 + 0.9)]
    predicted = [(1.0 + 1e-9, 1e6 + 0.9), (1.0, 1e6 + 0.9)]
    # The second rows are the same, which leaves two that are near.
    assert equal_tables(table(gold), table(predicted), DEFAULT)
    # The chain 0, 0.9, 1.8: the same rows come first, which leaves two that are not near.
    assert not equal_tables(table([(1e6,), (1e6 + 0.9,)]), table([(1e6 + 0.9,), (1e6 + 1.8,)]), DEFAULT)


@pytest.mark.parametrize("other", [(), (7.5,)])
def test_which_of_two_exactly_equal_rows_is_paired_first_depends_on_no_order(other):
    gold, predicted = [10**6, 1e6, *other], [1e6, 1e6 + 1, *other]

    for golds, others in product(permutations(gold), permutations(predicted)):
        assert equal_tables(table([(cell,) for cell in golds]), table([(cell,) for cell in others]), DEFAULT)
        assert equal_tables(table([(cell,) for cell in others]), table([(cell,) for cell in golds]), DEFAULT)


def test_true_equals_1_beside_numbers_that_are_near():
    gold = [(True, value) for value in CHAIN]
    predicted = [(1, value + 0.1) for value in CHAIN]

    assert equal_tables(table(gold), table(predicted), DEFAULT)


@pytest.mark.parametrize("own", [(), (ColumnTolerance("c0", 1e-6, 0.0),)], ids=["one tolerance", "of a column"])
def test_where_the_budget_ends_answers_count_as_unequal_and_it_is_said(own):
    chance = random.Random(3)
    gold = [(1e6 + chance.random(), 1e6 + chance.random()) for _ in range(300)]
    predicted = [(x + 1e-3, y + 1e-3) for x, y in gold]
    policy = Policy(abs=0.2, rel=0.0, column_numbers=own)

    with shared_budget(20):
        both = TablePair(table(gold), table(shuffled(predicted, 4)), policy)
        assert not both.is_equal
        assert both.is_unproven
    with shared_budget(20):
        positional = TablePair(table(gold), table(predicted[::-1]), Policy(abs=0.2, rel=0.0, columns="positional"))
        assert not positional.is_equal
        assert positional.is_unproven
    assert equal_tables(table(gold), table(shuffled(predicted, 4)), policy)


def test_a_search_in_an_order_with_ties_says_where_its_budget_ends():
    chance = random.Random(5)
    rows = [(1e6 + chance.random(), 1e6 + chance.random()) for _ in range(300)]
    columns = ("a", "b")
    gold = Table(columns=columns, rows=rows, ties=(Tie(size=300, rows=tuple(rows)),))
    predicted = table(shuffled([(x + 1e-3, y + 1e-3) for x, y in rows], 4))
    policy = Policy(abs=0.2, rel=0.0)

    with shared_budget(20):
        assert not equal_tables(gold, predicted, policy)

    assert table_pair(gold, predicted, policy).is_unproven
