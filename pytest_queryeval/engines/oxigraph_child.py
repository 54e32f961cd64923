"""Oxigraph in a child process: a read-only store on disk, and no way out of the process while a query runs.

Loaded by `host_child.py`, whose contract it fulfils; imports nothing of the package.
"""

from __future__ import annotations

import os
import resource
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, QueryBoolean, QuerySolutions, Store

STORES = 16
UNION = "union"


class Fault(Exception):  # noqa: N818 - the source's, not an error of this module
    """The store cannot be opened."""


class Driver:
    """Keeps the last 16 stores open; `settings` is `{"store": absolute path, "default_graph": see rdf.py}`."""

    def __init__(self) -> None:
        os.environ["RUST_BACKTRACE"] = "0"  # what ends the process is then said in its last line
        self._open: OrderedDict[str, Store] = OrderedDict()

    def run(
        self, settings: dict[str, Any], query: str, timeout: float
    ) -> tuple[tuple[str, ...], Callable[[int], list[Any]]]:
        """Start `query`; raises `Fault`, SyntaxError, or whatever Oxigraph makes of it."""
        store = self._store(settings["store"])
        with guarded():
            answer = store.query(query, **dataset(settings["default_graph"]))
        columns, rows = rows_of(answer)

        def fetch(count: int) -> list[Any]:
            with guarded():
                return list(islice(rows, count))

        return columns, fetch

    def classify(self, error: Exception) -> tuple[str, ...]:
        """Whose fault it is, and of what kind."""
        text = str(error) or type(error).__name__
        if isinstance(error, Fault):
            return "fault", text
        return "failure", "invalid", text

    def _store(self, path: str) -> Store:
        if path not in self._open:
            try:
                self._open[path] = Store.read_only(path)
            except (OSError, ValueError) as error:
                raise Fault(str(error)) from error
        self._open.move_to_end(path)
        if len(self._open) > STORES:
            self._open.popitem(last=False)
        return self._open[path]


def dataset(default_graph: list[str] | str) -> dict[str, Any]:
    """What a query sees beside the named graphs: the unnamed graph, some named ones, or all together."""
    if default_graph == UNION:
        return {"use_default_graph_as_union": True}
    return {"default_graph": [NamedNode(name) for name in default_graph]} if default_graph else {}


def rows_of(answer: Any) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """The columns of an answer, and its rows one by one."""
    if isinstance(answer, QueryBoolean):
        return ("boolean",), iter([(bool(answer),)])
    if isinstance(answer, QuerySolutions):
        columns = tuple(variable.value for variable in answer.variables)
        return columns, (tuple([plain(term) for term in solution]) for solution in answer)
    return (
        ("subject", "predicate", "object"),
        ((plain(triple.subject), plain(triple.predicate), plain(triple.object)) for triple in answer),
    )


def plain(term: Any) -> Any:
    """A term in plain values, see `sparql/terms.py`; a triple term as the text that stands for it."""
    match term:
        case None:
            return None
        case NamedNode():
            return term.value
        case Literal():
            return term.value, term.datatype.value, term.language or ""
        case BlankNode():
            return (term.value,)
        case _:
            return str(term)


@contextmanager
def guarded() -> Iterator[None]:
    """Keep the process from opening files and sockets while a query runs; those that are open go on.

    Oxigraph follows SERVICE by itself. Such queries are refused before; this wall stands behind that one. Its panics,
    which are no Exception for Python, become one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(str(error)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
