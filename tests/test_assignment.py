"""One-to-one assignments: small ones are tried, larger ones are left to scipy."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.comparison.graphs import best_assignment, maximum_matching


def matrices(cells, rows, columns):
    sizes = st.tuples(st.integers(*rows), st.integers(*columns))
    return sizes.flatmap(
        lambda n: st.lists(st.lists(cells, min_size=n[1], max_size=n[1]), min_size=n[0], max_size=n[0])
    )


def best_sum(weights):
    rows, columns = len(weights), len(weights[0])
    if rows > columns:
        return best_sum(list(zip(*weights, strict=True)))
    return max(
        sum(row[at] for row, at in zip(weights, chosen, strict=True)) for chosen in permutations(range(columns), rows)
    )


@given(
    st.one_of(
        matrices(st.integers(-3, 5), (1, 6), (1, 5)),
        matrices(st.floats(-2, 2), (1, 3), (1, 9)),
        matrices(st.integers(0, 3), (7, 9), (1, 3)),
    )
)
def test_no_other_assignment_has_a_greater_sum(weights):
    pairs = best_assignment(weights)

    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    assert len(rows) == len(columns) == len(pairs) == min(len(weights), len(weights[0]))
    assert sum(weights[row][column] for row, column in pairs) == pytest.approx(best_sum(weights))


def test_nothing_is_assigned_where_there_is_nothing():
    assert best_assignment([]) == maximum_matching([], 0) == maximum_matching([(), ()], 3) == []


@given(matrices(st.booleans(), (1, 9), (1, 5)))
def test_no_more_rows_can_have_a_place_that_fits(allowed):
    fits = [[place for place, fit in enumerate(row) if fit] for row in allowed]

    pairs = maximum_matching(fits, len(allowed[0]))

    assert all(place in fits[row] for row, place in pairs)
    assert len({row for row, _ in pairs}) == len({place for _, place in pairs}) == len(pairs) == best_sum(allowed)
