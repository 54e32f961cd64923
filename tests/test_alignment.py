import random
from collections import Counter
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.comparison.alignment import Alignment, best_alignment, whole_alignment
from pytest_queryeval.comparison.bounds import Budget, EntityTiebreak, shared_budget

CELLS = st.integers(0, 3)
HEIGHTS = st.integers(0, 8)


@st.composite
def tables(draw, widths, heights=HEIGHTS):
    """Columns of one height; some columns repeat others."""
    width, height = draw(widths), draw(heights)
    columns = []
    for _ in range(width):
        fresh = st.lists(CELLS, min_size=height, max_size=height)
        columns.append(draw(st.sampled_from(columns) | fresh if columns else fresh))
    return columns


@st.composite
def pairs(draw):
    """Unrelated tables, or gold with its rows and columns shuffled, a cell changed, rows and columns added or lost."""
    gold = draw(tables(st.integers(1, 4)))
    if draw(st.booleans()):
        return gold, draw(tables(st.integers(1, 5)))
    columns = gold + draw(tables(st.integers(0, 1), st.just(len(gold[0]))))
    rows = draw(st.permutations(list(zip(*draw(st.permutations(columns)), strict=True))))
    rows = rows[draw(st.integers(0, 1)) :]
    if rows and draw(st.booleans()):
        rows[0] = (draw(CELLS), *rows[0][1:])
        rows += rows[: draw(st.integers(0, 2))]
    return gold, [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]


def shared_rows(gold, predicted, columns):
    projected = [predicted[j] for j in columns]
    return (Counter(zip(*gold, strict=True)) & Counter(zip(*projected, strict=True))).total()


def entity_f1(gold, predicted, columns):
    pairs = [(set(column), set(predicted[j])) for column, j in zip(gold, columns, strict=True)]
    precision = sum(len(x & y) / len(y) if y else 0 for x, y in pairs) / len(gold)
    recall = sum(len(x & y) / len(x) if x else 0 for x, y in pairs) / len(gold)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def best_of_all(gold, predicted, pinned=0):
    """Every injection in turn, lowest columns first."""
    everything = permutations(range(len(predicted)), len(gold))
    allowed = [columns for columns in everything if columns[:pinned] == tuple(range(pinned))]
    most = max(shared_rows(gold, predicted, columns) for columns in allowed)
    tied = [columns for columns in allowed if shared_rows(gold, predicted, columns) == most]
    highest = max(entity_f1(gold, predicted, columns) for columns in tied)
    lowest = min(columns for columns in tied if entity_f1(gold, predicted, columns) >= highest - 1e-12)
    return Alignment(columns=lowest, matched=most, is_proven=True)


def shuffled(columns, seed=1):
    """The columns with rows and columns in another order, and where each column went."""
    chance = random.Random(seed)
    order = chance.sample(range(len(columns)), len(columns))
    rows = list(zip(*(columns[i] for i in order), strict=True))
    chance.shuffle(rows)
    return [list(column) for column in zip(*rows, strict=True)], tuple(order.index(i) for i in range(len(columns)))


def low_cardinality(seed, rows, distinct=(2, 3, 4, 5, 2, 3, 4, 5)):
    chance = random.Random(seed)
    return [[chance.randrange(values) for _ in range(rows)] for values in distinct]


@given(pairs())
def test_alignment_is_the_best_of_all_injections(pair):
    gold, predicted = pair

    alignment = best_alignment(gold, predicted)

    assert alignment == (best_of_all(gold, predicted) if len(gold) <= len(predicted) else None)


@given(pairs(), st.integers(0, 4))
def test_pinned_columns_stay_and_the_others_are_aligned_best(pair, pinned):
    gold, predicted = pair
    pinned = min(pinned, len(gold))

    alignment = best_alignment(gold, predicted, pinned=pinned)

    assert alignment == (best_of_all(gold, predicted, pinned) if len(gold) <= len(predicted) else None)


@given(pairs(), st.integers(0, 2_000))
def test_a_small_budget_gives_a_valid_alignment_and_claims_no_more_than_it_proved(pair, budget):
    gold, predicted = pair

    alignment = best_alignment(gold, predicted, budget=Budget(budget))

    if alignment is not None:
        assert len(set(alignment.columns)) == len(gold)
        assert alignment.matched == shared_rows(gold, predicted, alignment.columns)
        assert not alignment.is_proven or alignment == best_of_all(gold, predicted)


@given(pairs(), st.randoms(use_true_random=False))
def test_rows_in_another_order_give_the_same_alignment(pair, chance):
    gold, predicted = pair
    rows = list(zip(*predicted, strict=True))
    chance.shuffle(rows)
    reordered = [list(column) for column in zip(*rows, strict=True)] if rows else predicted

    assert best_alignment(gold, reordered) == best_alignment(gold, predicted)


@given(pairs(), st.sampled_from([-(10**15), -7, 10**15]))
def test_cells_may_be_any_ints(pair, factor):
    gold, predicted = ([[cell * factor for cell in column] for column in table] for table in pair)

    assert best_alignment(gold, predicted) == best_alignment(*pair)


def test_fewer_predicted_columns_than_gold_columns_have_no_alignment():
    assert best_alignment([[1], [2]], [[1]]) is None


def test_no_gold_columns_align_with_nothing():
    assert best_alignment([], [[1, 2]]) == Alignment(columns=(), matched=0, is_proven=True)


def test_more_pinned_columns_than_gold_has_are_refused():
    with pytest.raises(ValueError, match="pinned is 2, gold has 1 columns"):
        best_alignment([[1]], [[1], [2]], pinned=2)


def test_rows_count_as_often_as_they_occur():
    alignment = best_alignment([[1, 1, 1, 2]], [[1, 1, 2, 2]])

    assert alignment == Alignment(columns=(0,), matched=3, is_proven=True)


def test_more_rows_win_over_a_higher_entity_f1():
    gold = [[1, 1, 2, 3]]
    predicted = [[1, 2, 3, 4], [1, 1, 2, 5], [1, 2, 3, 3]]

    alignment = best_alignment(gold, predicted)

    assert alignment == Alignment(columns=(2,), matched=3, is_proven=True)


def test_the_entity_f1_of_two_means_decides_where_pair_f1_would_choose_otherwise():
    gold = [[7, 7, 7], [4, 4, 4], [0, 3, 4]]
    predicted = [[8, 8, 8], [3, 4, 4], [0, 2, 4]]

    alignment = best_alignment(gold, predicted, pinned=1)

    assert alignment == Alignment(columns=(0, 2, 1), matched=0, is_proven=True)


def test_given_overlaps_decide_between_columns_of_equal_cells():
    overlaps = {(0, 0): 1, (0, 1): 1, (1, 0): 2, (1, 1): 1}

    alignment = best_alignment(
        [[1, 1], [1, 1]],
        [[1, 1, 2], [1, 1, 2]],
        overlap=lambda i, j: overlaps[i, j],
        gold_distinct=[2, 2],
        predicted_distinct=[2, 2],
    )

    assert alignment == Alignment(columns=(1, 0), matched=2, is_proven=True)


def test_overlap_is_not_asked_where_rows_decide():
    gold = [[1, 2, 3], [4, 5, 6]]

    alignment = best_alignment(gold, [[6, 4, 7], [3, 1, 9]], overlap=lambda i, j: pytest.fail(f"asked for {i}, {j}"))

    assert alignment == Alignment(columns=(1, 0), matched=2, is_proven=True)


def test_overlap_is_asked_once_per_pair():
    calls = Counter()

    def overlap(i, j):
        calls[i, j] += 1
        return 1

    best_alignment(low_cardinality(1, 6), low_cardinality(2, 6), overlap=overlap)

    assert max(calls.values()) == 1


def test_hidden_permutation_of_columns_with_the_same_values_is_found():
    chance = random.Random(3)
    gold = [chance.sample(range(200), 200) for _ in range(26)]
    predicted, order = shuffled(gold)

    assert best_alignment(gold, predicted) == Alignment(columns=order, matched=200, is_proven=True)


def test_hidden_permutation_is_found_beside_an_additional_column():
    chance = random.Random(3)
    gold = [chance.sample(range(100), 100) for _ in range(12)]
    predicted, order = shuffled(gold)
    predicted.append(chance.sample(range(100), 100))

    assert best_alignment(gold, predicted) == Alignment(columns=order, matched=100, is_proven=True)


def test_identical_columns_keep_their_positions():
    columns = [list(range(100))] * 26
    predicted = [[*column[1:], 500] for column in columns]

    assert best_alignment(columns, predicted) == Alignment(columns=tuple(range(26)), matched=99, is_proven=True)


def test_two_thousand_columns_are_aligned():
    gold = low_cardinality(5, 10, [50] * 2_000)
    predicted, order = shuffled(gold)

    assert best_alignment(gold, predicted) == Alignment(columns=order, matched=10, is_proven=True)


def test_two_thousand_unrelated_columns_are_flagged():
    gold, predicted = (low_cardinality(seed, 2, [50] * 2_000) for seed in (1, 2))

    alignment = best_alignment(gold, predicted, budget=Budget(1_000_000))

    assert alignment is not None
    assert not alignment.is_proven
    assert len(set(alignment.columns)) == 2_000


def test_unrelated_columns_of_few_values_are_flagged_rather_than_searched_to_the_end():
    gold, predicted = low_cardinality(1, 500), low_cardinality(2, 500)

    alignment = best_alignment(gold, predicted, budget=Budget(200_000))

    assert alignment is not None
    assert not alignment.is_proven
    assert (
        alignment.matched == shared_rows(gold, predicted, alignment.columns) >= shared_rows(gold, predicted, range(8))
    )


def test_a_spent_budget_gives_the_same_answer_again():
    gold, predicted = low_cardinality(1, 300), low_cardinality(2, 300)

    first, second = (best_alignment(gold, predicted, budget=Budget(300_000)) for _ in range(2))

    assert first == second


@given(pairs(), st.integers(0, 1))
def test_an_alignment_of_all_predicted_rows_is_found_if_and_only_if_there_is_one(pair, pinned):
    gold, predicted = pair
    if len(predicted) < len(gold):
        return
    rows = len(predicted[0])

    alignment = whole_alignment(gold, predicted, pinned=pinned)

    assert (alignment is not None) == (best_of_all(gold, predicted, pinned).matched == rows)
    if alignment is not None:
        assert alignment.is_proven
        assert alignment.columns[:pinned] == tuple(range(pinned))
        assert shared_rows(gold, predicted, alignment.columns) == alignment.matched == rows


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        pytest.param(low_cardinality(1, 1_000), low_cardinality(2, 1_000), id="columns of other values"),
        pytest.param([[0, 0, 1, 1], [0, 1, 0, 1]], [[0, 0, 1, 1], [0, 0, 1, 1]], id="rows of other values"),
        pytest.param([[0, 1]], [[0, 1, 1]], id="more rows than gold"),
    ],
)
def test_tables_that_cannot_match_are_refused_before_any_search(gold, predicted):
    assert whole_alignment(gold, predicted, budget=Budget(0)) is None


def test_a_search_for_all_rows_says_where_its_budget_is_spent():
    gold = [[0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], [2, 0, 0, 1, 1, 2]]
    predicted = shuffled(gold, seed=3)[0][::-1]

    assert whole_alignment(gold, predicted).matched == 6
    assert not whole_alignment(gold, predicted, budget=Budget(0)).is_proven


def test_searches_that_share_a_budget_spend_it_together():
    gold = [[0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], [2, 0, 0, 1, 1, 2]]
    predicted = shuffled(gold, seed=3)[0][::-1]

    with shared_budget(500):
        alignments = [whole_alignment(gold, predicted) for _ in range(100)]
    after = whole_alignment(gold, predicted)

    proven = [alignment.is_proven for alignment in alignments]
    assert proven[0]
    assert not proven[-1]
    assert proven == sorted(proven, reverse=True)
    assert after.is_proven


COLUMNS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=2, max_size=3)


@given(COLUMNS, COLUMNS, st.data())
def test_no_f1_that_an_alignment_has_is_called_out_of_reach(gold, predicted, data):
    subsets = st.lists(st.sampled_from(range(len(predicted))), min_size=1, unique=True)
    options = [sorted(data.draw(subsets)) for _ in gold]
    tiebreak = EntityTiebreak(
        gold, predicted, overlap=None, gold_distinct=None, predicted_distinct=None, spend=lambda steps: None
    )

    def f1(columns):
        shared = [len({*gold[i]} & {*predicted[j]}) for i, j in enumerate(columns)]
        precision = sum(n / len({*predicted[j]}) for n, j in zip(shared, columns, strict=True))
        recall = sum(n / len({*gold[i]}) for i, n in enumerate(shared))
        return 2 * precision * recall / (precision + recall) / len(gold) if any(shared) else 0.0

    values = [f1(columns) for columns in product(*options) if len({*columns}) == len(columns)]
    best = max(values, default=-1.0)

    assert all(tiebreak.f1(columns) == pytest.approx(f1(columns)) for columns in product(*options))
    assert best < 0 or tiebreak.find_alignment(options, best - 1e-9) is not None
