"""Terms that the source does not have, each replaced everywhere by the nearest one that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_queryeval.core.cause import MAX_EDITS, CausingEdit, QueryEdits
from pytest_queryeval.core.model import Answer
from pytest_queryeval.core.table import Literal, Table
from pytest_queryeval.languages.sparql.source_terms import UnknownTerm
from pytest_queryeval.languages.sparql.trees.reader import read_tree
from pytest_queryeval.languages.sparql.trees.tree import renamed
from pytest_queryeval.languages.sparql.trees.writer import Writer


class UnknownTermEdits:
    """The unknown terms of a predicted query as its edits; `prefixes` are those of the source."""

    def __init__(self, query: str, terms: Sequence[UnknownTerm], prefixes: Mapping[str, str]) -> None:
        self._query = read_tree(query, prefixes)
        self._prefixes = {**self._query.prefixes, **prefixes, **self._query.prefixes}
        self._terms = terms
        self.edits = [CausingEdit(label="unknown-term", clause="WHERE", change=term.change) for term in terms]

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield all edits together: a term that is left would still find nothing."""
        if len(self._terms) <= MAX_EDITS:
            yield tuple(range(len(self._terms)))

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the query with the nearest terms; None if one has none."""
        names = {self._terms[number].term: self._terms[number].nearest for number in numbers}
        if None in names.values():
            return None
        tree = renamed(self._query.tree, lambda token: names.get(token) or token)
        return Writer(self._prefixes).query(tree)

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return False: nearest terms are taken without a look at gold."""
        return False


class LabelledEdits:
    """The edits of a predicted query, those of unknown terms, by their names in the edits, with their label."""

    def __init__(self, edits: QueryEdits, names: set[str]) -> None:
        self.combinations, self.applied, self.reach_gold = edits.combinations, edits.applied, edits.reach_gold
        self.edits = [replace(edit, label="unknown-term") if _replaces(edit, names) else edit for edit in edits.edits]


def _replaces(edit: CausingEdit, names: set[str]) -> bool:
    """Return whether an edit has something else in the place of one of these terms."""
    old, _, new = edit.change.partition(" → ")
    return edit.label.startswith("wrong-") and not names.isdisjoint(old.split()) and names.isdisjoint(new.split())


def finds_nothing(answer: Answer | None) -> bool:
    """Return whether an answer is one of a query without solutions: no rows, false, zero, or unbound cells."""
    if not isinstance(answer, Table):
        return False
    cells = [cell for row in answer.rows for cell in row]
    return len(answer.rows) <= 1 and all(
        not cell or (isinstance(cell, Literal) and cell.lexical in ("0", "")) for cell in cells
    )
