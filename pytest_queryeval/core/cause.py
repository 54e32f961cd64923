"""Why an answer is wrong: the edits of a predicted query after which its answer is gold's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

CauseMode: TypeAlias = Literal["auto", "off", "full"]
CauseLabel: TypeAlias = Literal[
    "missing-column",
    "extra-column",
    "wrong-column",
    "wrong-expression",
    "wrong-aggregate",
    "missing-distinct",
    "extra-distinct",
    "missing-condition",
    "extra-condition",
    "wrong-connector",
    "wrong-operator",
    "wrong-value",
    "value-case",
    "gold-value",
    "wrong-join-type",
    "missing-join",
    "extra-join",
    "wrong-join-condition",
    "wrong-table",
    "wrong-grouping",
    "missing-having",
    "wrong-having",
    "missing-order",
    "wrong-order",
    "wrong-limit",
    "set-operation",
    "nesting",
    "missing-pattern",
    "extra-pattern",
    "wrong-predicate",
    "wrong-path",
    "wrong-class",
    "unknown-term",
    "swapped",
    "wrong-filter",
    "optional",
    "wrong-form",
    "hard-coded",
    "empty-pattern",
    "union-columns",
    "missing-member",
    "extra-member",
    "wrong-type",
    "wrong-key",
    "moved",
    "missing-dimension",
    "extra-dimension",
    "wrong-code",
    "wrong-dataset",
    "syntax",
    "unknown-column",
    "unknown-table",
    "ambiguous-column",
    "unknown-function",
    "grouping-error",
    "invalid",
    "timeout",
    "unsafe",
    "empty",
    "too-large",
    "rejected",
    "abstained",
    "missing",
]
MAX_EDITS = 2
NOTHING = "nothing"  # in the text of a change
NO_EFFECT = "; no effect on this data"  # at its end


@dataclass(frozen=True, slots=True, kw_only=True)
class CausingEdit:
    """One step from predicted to gold.

    `clause` is where in a query it is, the path of a JSON answer, or the dimension of a selection; empty for what has
    no place. `change` shows what is there and what should be, such as `30 → 40`.
    """

    label: CauseLabel
    clause: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why an answer is wrong; with `repaired_query`, the predicted query after the edits, whose answer is gold's."""

    edits: tuple[CausingEdit, ...]
    repaired_query: str | None = None
    is_tested: bool = False
    """Whether the repaired query says the same as gold, or answers as gold does on small databases, too."""

    @property
    def effective_edit_count(self) -> int:
        """The number of edits that have an effect on the data."""
        return sum(not edit.change.endswith(NO_EFFECT) for edit in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPatterns:
    """What the parts of two SQL queries, or the triple patterns of two SPARQL queries, have in common."""

    shared: int
    """How many of gold's the predicted query has as well."""
    of: int
    """How many gold has in all."""
    only_gold: tuple[str, ...]
    only_predicted: tuple[str, ...]
    unknown_terms: tuple[str, ...] = ()
    """Terms of a SPARQL query that the source does not have, though none has to match."""


class QueryEdits(Protocol):
    """Single edits of a predicted query from its differences to gold, each known by its number."""

    @property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits."""

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together, in the order in which they are to be tried: each alone, then pairs."""

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the predicted query after these edits; None if that cannot be a query."""

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted says the same as gold after these edits, so that no data can tell them apart."""

    def reach_other_shape(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted then says the same as gold, but may count duplicates or NULL otherwise.

        That is so if one of them joins what the other one nests or combines by a set operation.
        """
