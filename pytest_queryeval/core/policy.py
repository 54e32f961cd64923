"""When two cells are equal: the `compare` settings of a case, which all metrics of tables share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf

from pytest_queryeval.core.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The `compare` settings of a case; every field is a key there, `rel` and `abs` stand under `numbers`.

    `rel` and `abs`: two numbers are equal when |x - y| <= max(rel * max(|x|, |y|), abs); two integers exactly.
    `gold_columns`: the columns of gold that count, by name or 0-based position; all where there are none.
    """

    rel: float = 1e-6
    abs: float = 1e-9
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

    def of(self, gold: Table, predicted: Table) -> Policy:
        """Return the policy for two answers: where one is a graph, both are sets of triples whose columns are fixed."""
        if not gold.is_graph and not predicted.is_graph:
            return self
        return replace(self, columns="positional", row_order="ignore", duplicates="ignore")
