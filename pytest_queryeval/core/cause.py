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
    """An edit on the way from the predicted query or answer to gold.

    `clause` is the changed part of a query, the path in a JSON answer, or the dimension of a selection. It is empty for
    a fault without a place. `change` shows the predicted part and the part that should be there: `30 → 40`.
    """

    label: CauseLabel
    clause: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why an answer is wrong: the edits that lead to gold.

    `repaired_query` is the predicted query after all edits, whose answer is gold's; None if there is no such query.
    """

    edits: tuple[CausingEdit, ...]
    repaired_query: str | None = None
    is_tested: bool = False
    """Whether the repaired query says the same as gold, or answers as gold does on small databases, too."""

    @property
    def effective_edit_count(self) -> int:
        """The number of edits that change the answer on the data of the source."""
        return sum(not edit.change.endswith(NO_EFFECT) for edit in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPatterns:
    """How many parts two SQL queries share, or how many triple patterns two SPARQL queries share, and the others."""

    shared: int
    """How many of gold's the predicted query has as well."""
    of: int
    """How many gold has in all."""
    only_gold: tuple[str, ...]
    only_predicted: tuple[str, ...]
    unknown_terms: tuple[str, ...] = ()
    """Terms of a SPARQL query that the source does not have, though none has to match."""


class QueryEdits(Protocol):
    """Single edits of a predicted query that its differences to gold suggest.

    The number of an edit is its place in `edits`.
    """

    @property
    def edits(self) -> Sequence[CausingEdit]:
        """All single edits; other methods name an edit by its place in this sequence, counted from 0."""

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield combinations of numbers of edits, in the order in which to try them: single edits, then pairs."""

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the text of the predicted query after the edits with these numbers.

        None if the edits make no valid query.
        """

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether the predicted query after these edits means the same as gold on any data."""

    def reach_other_shape(self, numbers: Sequence[int]) -> bool:
        """Return whether the edited query means the same as gold up to the counting of duplicates and NULLs.

        That is so if one query joins a table that the other query nests in a subquery or combines by a set operation.
        """
