"""Test strength: mutants of gold queries that the data cannot distinguish from gold, and small databases that can.

Packages register the functions that make mutants and small databases for a kind. Code that SQL and SPARQL share is
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import islice, zip_longest
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case, Source
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.text.formatting import truncate

if TYPE_CHECKING:
    from pytest_queryeval.engines import SmallDatabase
    from pytest_queryeval.evaluation.session import Session

STRENGTH = Command(
    module=f"{__name__}.strength_command", summary="find weak cases: which mutants (wrong versions) of golds would pass"
)
STRENGTHEN = Command(
    module=f"{__name__}.strengthen_command",
    summary="build variants of databases, on which mutants of golds do not pass",
)
T = TypeVar("T")
MAX_MUTANTS = 200  # of a query
MIN_MUTANTS = 10  # that long ones may have, however long they are
MAX_NODES = 50_000  # of the trees of all mutants together
CHANGE_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A query that differs from gold in one place, as a wrong prediction might.

    `operator` names the type of change, `clause` names the clause that contains the change, and `change` describes the
    change. `equivalent` is the reason why the query is known to give gold's answer on all data that satisfy the
    constraints; it is empty if no reason is known. If the data do not distinguish the query from gold, call `proof`,
    which looks for such a reason and may take milliseconds.
    """

    query: str
    operator: str
    clause: str
    change: str
    equivalent: str = ""
    proof: Callable[[], Sequence[str]] = field(default=tuple, compare=False, repr=False)
    """Returns the names of rules that prove that the query gives gold's answer; empty without a proof."""


class Constraints(NamedTuple):
    """The constraints that every small database of a source satisfies, as an identifying text and as tables."""

    text: str
    """Identifies the databases that a search can choose from: other databases have another text."""
    tables: Tables
    """The tables with their constraints; empty for graphs."""


class Mutator(Protocol):
    """Makes mutants of the gold queries of a kind."""

    def __call__(self, query: str, case: Case, tables: Tables, run: Callable[[str], Table | None]) -> Sequence[Mutant]:
        """Return distinct mutants of a gold query; empty if the query cannot be read.

        `tables` are the tables of the source with the constraints that their rows satisfy; empty if none are known.
        `run` executes another query on the source and returns the answer, or None if the query fails.
        """


MUTATORS: Registry[Mutator] = Registry(
    "kind with mutants",
    group="pytest_queryeval.mutators",
    members={kind: f"{__name__}.{kind}:mutate" for kind in ("sql", "sparql")},
)


def distinct_mutants(
    gold: str, size: int, edits: Iterable[Iterator[T]], mutant_of: Callable[[T], Mutant | None]
) -> Sequence[Mutant]:
    """Return mutants with distinct texts, none of which is the text of `gold`.

    `edits` contains an iterator for each operator. `mutant_of` makes a mutant from an edit, or returns None to skip the
    edit. Operators take turns, so that each operator makes some mutants before the limit is reached. The limit is
    `MAX_MUTANTS`; it is lower, but at least `MIN_MUTANTS`, for a gold query whose tree has many nodes (`size`). Long
    texts in `change` are truncated.
    """
    most = min(MAX_MUTANTS, max(MIN_MUTANTS, MAX_NODES // size))
    mutants: dict[str, Mutant] = {}
    in_turn = (edit for turn in zip_longest(*edits) for edit in turn if edit is not None)
    for edit in islice(in_turn, 2 * most):  # few are made twice
        mutant = mutant_of(edit)
        if mutant is not None and mutant.query != gold and mutant.query not in mutants:
            mutants[mutant.query] = replace(mutant, change=truncate(mutant.change, CHANGE_CHARACTERS))
        if len(mutants) == most:
            break
    return list(mutants.values())


def numbers_beside(number: str) -> Iterator[str]:
    """Yield the number one above and the number one below, with as many decimals; nothing for other texts.

    >>> [*numbers_beside("-3")], [*numbers_beside("2.50")], [*numbers_beside("1e3")]
    (['-2', '-4'], ['3.50', '1.50'], [])
    """
    digits = number.lstrip("+-")
    if digits.isdecimal() and len(number) < 16:
        yield from (str(int(number) + step) for step in (1, -1))
    elif digits.replace(".", "", 1).isdecimal():
        places = len(digits.partition(".")[2])
        yield from (f"{float(number) + step:.{places}f}" for step in (1, -1))


def neighbours(value: str | float) -> list[Cell]:
    """Return the value, then its neighbours below and above if it is a number, a text of digits or an ISO date.

    >>> neighbours(30)
    [30, 29, 31]
    >>> neighbours("2020-03-01")
    ['2020-03-01', '2020-02-29', '2020-03-02']
    """
    if not isinstance(value, str):
        step = 1 if isinstance(value, int) else 0.5
        return [value, value - step, value + step]
    if value.isascii() and value.isdigit():
        return [value, *(str(int(value) + step) for step in (-1, 1))]
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(value)
        return [value, *((day + timedelta(days=step)).isoformat() for step in (-1, 1))]
    return [value]


State = TypeVar("State")  # what a database holds: the rows of tables, or triples


class SmallDatabases(Protocol[State]):
    """Small databases that satisfy every declared constraint which the data of a case's source satisfy.

    A state is the content of such a database: rows of tables, or triples. Methods raise `SourceError` if the source
    does not answer, or if no small database can be built.
    """

    def candidates(self, queries: Sequence[str], random: Random, count: int, *, plain_first: bool) -> Iterator[State]:
        """Yield up to about `count` states on which the answers of these queries may differ.

        With `plain_first`, simple states come first, and the first half satisfies all that the data of the source
        satisfy, declared or not.
        """

    @property
    def constraints(self) -> Constraints:
        """Constraints that every state satisfies."""

    def state_of(self, source: Source) -> State | None:
        """Return the content of a variant; None if it cannot be read, is too large or breaks a constraint."""

    def satisfies_data(self, state: State) -> bool:
        """Return whether a state satisfies all that the data of the source satisfy, declared or not."""

    def database(self, state: State) -> SmallDatabase:
        """Return the input from which an engine builds a database with a state."""

    def reduced(self, state: State, is_enough: Callable[[State], bool], attempts: int) -> State:
        """Return a smaller state for which `is_enough` returns True, else the same state.

        `is_enough` is called at most `attempts` times.
        """

    def reversed(self, state: State) -> State:
        """Return the state with its rows or triples, and generated names of nodes, in the opposite order."""

    def reordered(self, state: State, random: Random) -> Sequence[State]:
        """Return the state in other orders of rows, or of names of nodes."""

    def script(self, state: State) -> str:
        """Return the text of a SQL, Turtle or TriG file that creates a database with a state."""

    def contents(self, state: State) -> dict[str, Table]:
        """Return the rows or triples of a state as tables, by the names of tables or graphs."""


@runtime_checkable
class Joinable(Protocol):
    """Small databases whose states can be merged."""

    def joined(self, state: Any, addition: Any) -> Any:
        """Return a state with the content of both states; None if it would be too large."""


class OpenSmallDatabases(Protocol):
    """Prepares the small databases of a kind; raises `SourceError` if the source does not answer."""

    def __call__(self, case: Case, session: Session, read_by: Sequence[str]) -> SmallDatabases[Any]:
        """Return small databases for the source of a case.

        If `read_by` contains queries, the databases need only the content that these queries read.
        """


SMALL_DATABASES: Registry[OpenSmallDatabases] = Registry(
    "kind with small databases",
    group="pytest_queryeval.small_databases",
    used_by_workers=True,
    members={
        "sql": f"{__name__}.sql.candidates:CandidateDatabases",
        "sparql": f"{__name__}.sparql.candidates:CandidateGraphs",
    },
)
