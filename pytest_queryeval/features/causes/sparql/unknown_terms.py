"""Terms that the source does not have, each replaced everywhere by the nearest one that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_queryeval.core.cause import MAX_EDITS, Cause, CausingEdit
from pytest_queryeval.core.model import Answer, Case
from pytest_queryeval.core.table import Literal, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages.sparql.prefixes import declared_prefixes
from pytest_queryeval.languages.sparql.source_terms import UnknownTerm
from pytest_queryeval.languages.sparql.trees.reader import read_tree
from pytest_queryeval.languages.sparql.trees.tree import renamed
from pytest_queryeval.languages.sparql.trees.writer import Writer


def unknown_term_edits(query: str, case: Case, session: Session) -> UnknownTermEdits | None:
    """Return the edits of a predicted query with unknown terms; None for others. Raise `SourceError`."""
    terms = session.unknown_terms(query, case)
    prefixes = {} if case.settings.source is None else declared_prefixes(case.settings.source.settings)
    return UnknownTermEdits(query, terms, prefixes) if terms else None


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
        """Return the query with the nearest terms; None where one has none."""
        names = {self._terms[number].term: self._terms[number].nearest for number in numbers}
        if None in names.values():
            return None
        tree = renamed(self._query.tree, lambda token: names.get(token) or token)
        return Writer(self._prefixes).query(tree)

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return False: nearest terms are taken without a look at gold."""
        return False

    def shared_patterns(self) -> None:
        """Return None."""

    def with_label(self, cause: Cause) -> Cause:
        """Return a cause whose edits of unknown terms have their label."""
        changed_terms = tuple(edit.change.partition(" → ")[0] + " → " for edit in self.edits)
        edits = (
            replace(edit, label="unknown-term") if edit.change.startswith(changed_terms) else edit
            for edit in cause.edits
        )
        return replace(cause, edits=tuple(edits))


def finds_nothing(answer: Answer | None) -> bool:
    """Return whether an answer is one of a query without solutions: no rows, false, zero, or unbound cells."""
    if not isinstance(answer, Table):
        return False
    cells = [cell for row in answer.rows for cell in row]
    return len(answer.rows) <= 1 and all(
        not cell or (isinstance(cell, Literal) and cell.lexical in ("0", "")) for cell in cells
    )
