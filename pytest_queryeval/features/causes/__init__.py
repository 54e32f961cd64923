"""Why answers are wrong: edits from a predicted query to gold, by the kind of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from pytest_queryeval.core.cause import Cause, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.model import Case, Execution
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes.repair import Repair


class Correction(NamedTuple):
    """What is wrong with gold, and the query that it should be."""

    edit: CausingEdit
    query: str


class Edits(NamedTuple):
    """The differences of two queries."""

    groups: Sequence[QueryEdits] = ()
    """Edits that lead from the predicted query to gold; a group is tried where those before it hold no cause."""
    fallback: Callable[[], Cause | SharedPatterns | None] = lambda: None
    """Returns what to report where no edits are the cause."""
    most_untested: int = 0
    """Of how many edits a cause may be after which the answer is gold's on the source, but not on small databases."""
    databases: int = 8
    """On how many small databases a repaired query is compared with gold."""
    is_extended: bool = False
    """Whether edits that are enough on the source, but not on small databases, are tried with one more at once."""
    correction: Correction | None = None
    """Of gold, where the data show that it is at fault: then predicted is compared with the query that it should be."""
    repairs: Iterable[Repair] = ()
    """Of a predicted query that its engine refused: queries that differ from it in one place, the likeliest first."""


class EditFinder(Protocol):
    """Finds the differences of two queries of a kind."""

    def __call__(self, predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
        """Return the edits, no group where one of the queries cannot be read; gold has an answer.

        Raise `SourceError` if the source is asked and does not answer.
        """


EDITS: Registry[EditFinder] = Registry(
    "kind with edits",
    group="pytest_queryeval.edits",
    used_by_workers=True,
    members={"sql": f"{__name__}.sql.edits:find_edits", "sparql": f"{__name__}.sparql.edits:find_edits"},
)
