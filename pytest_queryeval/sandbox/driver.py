"""What a child process and its driver agree on: the driver's methods, its errors, and RDF terms that cross the pipe.

Parents and children import it. It imports the standard library only, so that children start quickly.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

# The names of the columns, and a function that returns the next rows, as tuples of plain values: fewer than it is asked
# for at the end, or None, which means that all rows start again.
Answer: TypeAlias = tuple[tuple[str, ...], Callable[[int], list[Any] | None]]
# ("failure", kind of a `Failure`, text) where the query is at fault, ("fault", text) where the source is.
Verdict: TypeAlias = tuple[str, ...]
# An RDF term: None, the boolean of ASK, the text of an IRI, (label,) of a blank node, (text, datatype, language) of a
# literal. A triple term is a text, too.
Term: TypeAlias = bool | str | tuple[str] | tuple[str, str, str] | None


class Driver(Protocol):
    """What runs queries in a child process: `host_child` makes the `Driver` of the file that it is given."""

    def run(self, settings: dict[str, Any], query: str, timeout: float) -> Answer:
        """Start `query` and return its answer; raises what `classify` knows.

        `settings` are those that the parent gave to its host. `timeout` is in seconds: the driver stops by itself
        where it can.
        """

    def classify(self, error: Exception) -> Verdict:
        """Say whose fault an error of the other methods is, and of what kind."""


class TableDriver(Driver, Protocol):
    """A driver that can list the tables of a source."""

    def describe(self, settings: dict[str, Any]) -> Answer:
        """List the columns of all tables, as rows of table, column, type, and the table and column it refers to.

        The last two are None where it refers to none.
        """

    def ddl(self, settings: dict[str, Any]) -> Answer:
        """List the statements that make the tables, by name, as rows of one text."""


class Fault(Exception):  # noqa: N818 - the source's, not an error of the driver
    """The source cannot be read, or does not answer as one: whatever the query, it is not at fault."""


class Refused(Exception):  # noqa: N818 - an outcome of the query
    """The query does more than read."""


def signature(path: str) -> tuple[int, ...]:
    """Return inode, size and time (ns) of the file at `path`, one of which changes with it; nothing without a file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, twice a query
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def limit(name: int, amount: int) -> None:
    """Lower a limit of `resource` for this process; raises ValueError or OSError where the system does not allow it."""
    hard = resource.getrlimit(name)[1]
    amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(name, (amount, amount))


def encode_term(term: Any) -> Term:
    """Return a term of pyoxigraph or rdflib in plain values; the names of their classes tell which it is."""
    match type(term).__name__:
        case "NoneType":
            return None
        case "NamedNode":
            return term.value  # type: ignore[no-any-return]
        case "URIRef":
            return str(term)
        case "BlankNode":
            return (term.value,)
        case "BNode":
            return (str(term),)
        case "Literal" if isinstance(term, str):  # rdflib's terms are texts
            return str(term), str(term.datatype or ""), term.language or ""  # type: ignore[attr-defined]
        case "Literal":
            return term.value, term.datatype.value, term.language or ""
        case _:
            return f"<<( {term} )>>"
