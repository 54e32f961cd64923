"""What a query language means for an evaluation: its default metrics, its options, what orders its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.registry import Registry
from pytest_queryeval.table import Cell, Table


class Kind(Protocol):
    """A query language."""

    name: str
    default_metrics: tuple[str, ...]
    default_thresholds: Mapping[str, float]
    has_queries: bool
    text_numbers: bool
    options: frozenset[str]

    def order_plan(self, query: str, table: Table, dialect: str) -> OrderPlan | None:
        """What `query`, whose answer is `table`, says of the order of rows; None where it says nothing."""

    def stated_cell(self, cell: Cell) -> Cell:
        """A cell of a table as people write it into a suite, as this kind's engines would answer it."""

    def csv_cell(self, cell: Cell) -> Cell:
        """The same for a cell of a CSV or TSV file, which have no quotes that tell texts from other values."""


KINDS: Registry[Kind] = Registry(
    "kind",
    group="pytest_queryeval.kinds",
    members={"sql": f"{__name__}.sql:SQL", "sparql": f"{__name__}.sparql:SPARQL"},
)
