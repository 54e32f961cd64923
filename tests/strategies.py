"""Hypothesis strategies for tables."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from pytest_queryeval.core.table import Table

PLAIN_CELLS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["a", "b", ""]))
NEAR_CELLS = st.one_of(
    PLAIN_CELLS, st.sampled_from([0.3, 0.1 + 0.2, 1.0, 1.0 + 4e-7, 1.0 + 8e-7, 1.0 + 1.2e-6, 2.0, 2.0000001, -1.5])
)


def costly(test):
    """Try an eighth of the profile's examples: each of them writes a workbook, calls a model or a service."""
    return settings(max_examples=settings().max_examples // 8)(test)


def tables(cells=PLAIN_CELLS, *, min_columns: int = 1, max_columns: int = 4, max_rows: int = 6):
    return st.integers(min_columns, max_columns).flatmap(
        lambda width: st.lists(st.tuples(*[cells] * width), max_size=max_rows).map(
            lambda rows: Table(columns=tuple(f"c{n}" for n in range(width)), rows=rows)
        )
    )
