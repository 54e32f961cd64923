"""When two cells are equal: the `compare` settings of a case, which all metrics of tables share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import NamedTuple

from pytest_queryeval.core.table import Table

DEFAULT_REL, DEFAULT_ABS = 1e-6, 1e-9


class ColumnNumbers(NamedTuple):
    """The tolerance of the gold column with this name, `rel` and `abs` as in a `Policy`."""

    name: str
    rel: float | None
    abs: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The `compare` settings of a case; every field is a key there.

    `rel`, `abs` and `column_numbers` stand under `numbers`.

    `rel` and `abs`: a float equals a number when |x - y| <= max(rel * max(|x|, |y|), abs), by default 1e-6 and 1e-9.
    Where they are set, they hold for Decimals too, which are exact otherwise; two integers are always exact.
    `column_numbers`: the tolerances of gold columns that have one of their own.
    `gold_columns`: the columns of gold that count, by name or 0-based position; empty for all of them.
    """

    rel: float | None = None
    abs: float | None = None
    text_numbers: bool = False
    case: OneOf["keep", "ignore"] = "keep"
    whitespace: OneOf["keep", "ignore"] = "keep"
    dates: OneOf["by_value", "strict"] = "by_value"
    duplicates: OneOf["count", "ignore"] = "count"
    row_order: OneOf["auto", "ignore", "strict"] = "auto"
    columns: OneOf["any", "positional", "by_name"] = "any"
    extra_columns: OneOf["reject", "allow"] = "reject"
    rdf_terms: OneOf["value", "strict"] = "value"
    gold_columns: tuple[str | int, ...] = ()
    column_numbers: tuple[ColumnNumbers, ...] = ()

    def of(self, gold: Table, predicted: Table) -> Policy:
        """Return the policy for two answers: where one is a graph, both are sets of triples whose columns are fixed."""
        if not gold.is_graph and not predicted.is_graph:
            return self
        return replace(self, columns="positional", row_order="ignore", duplicates="ignore")

    def by_column(self, gold: Table) -> dict[int, Policy]:
        """Return the policies of gold's columns that have a tolerance of their own, by position."""
        if not self.column_numbers:
            return {}
        numbers_by_name = {numbers.name.casefold(): numbers for numbers in self.column_numbers}
        return {
            place: replace(self, rel=numbers.rel, abs=numbers.abs, column_numbers=())
            for place, name in enumerate(gold.columns)
            if (numbers := numbers_by_name.get(name.casefold())) is not None
        }

    def without_columns(self) -> Policy:
        """Return the policy with one tolerance for all columns: that of `rel` and `abs`."""
        return replace(self, column_numbers=())

    def loosest(self) -> Policy:
        """Return the policy with one tolerance for all columns, which accepts all that this one accepts."""
        rels = [self.rel, *(numbers.rel for numbers in self.column_numbers)]
        tolerances = [self.abs, *(numbers.abs for numbers in self.column_numbers)]
        return replace(self, rel=_loosest(rels, DEFAULT_REL), abs=_loosest(tolerances, DEFAULT_ABS), column_numbers=())


def _loosest(tolerances: Sequence[float | None], default: float) -> float | None:
    if tolerances.count(None) == len(tolerances):
        return None
    return max(default if tolerance is None else tolerance for tolerance in tolerances)
