"""Oxigraph in a child process: a read-only store, and no way out of the process while a query runs.

Loaded by `host_child.py`.
"""

from __future__ import annotations

import os
import re
import resource
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, QueryBoolean, QuerySolutions, RdfFormat, Store

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Fault, Settings, Verdict, encode_term

STORES = 16
UNION = "union"
OPENED_AT_START = 12  # files of a store that RocksDB opens together with it
DAMAGE = ("IO error", "Corruption")
DAMAGED = "the parsed graph is damaged"
MAX_LIST_CHARACTERS = 120
# Among the tokens that a syntax error expected, Oxigraph lists its own sentences.
SENTENCE = re.compile(r"[A-Z][a-z]+(?: \w+)+")


class Driver(driver.Driver):
    """The driver of Oxigraph, which keeps the last 16 stores open, and one store in memory.

    `settings` are `default_graph`, which rdf.py describes, and either `store`, its absolute path, or `content`, a small
    graph in TriG.
    """

    def __init__(self) -> None:
        os.environ["RUST_BACKTRACE"] = "0"  # so that the last line of stderr is the reason why the process ended
        self._open: OrderedDict[str, tuple[Store, int]] = OrderedDict()
        self._memory: Store | None = None
        self._content = ""  # of the store in memory

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query` and return its answer; raise `Fault`, SyntaxError, or any other error of Oxigraph."""
        store, files = self._store(settings["store"]) if "store" in settings else (self._parsed(settings["content"]), 0)
        with guarded(files):
            answer = store.query(query, **dataset_options(store, settings))
        columns, rows = rows_of(answer)

        def fetch(count: int) -> list[Any]:
            with guarded(files):
                return list(islice(rows, count))

        return columns, fetch

    def classify(self, error: Exception) -> Verdict:
        """Return whether the source or the query is at fault for an error of `run`, with a message.

        If the store is damaged, all stores are closed.
        """
        text = str(error) or type(error).__name__
        if isinstance(error, OSError) and "Too many open files" in text:
            return "failure", "unsafe", "a query may only ask its own source: the query opens a connection"
        if isinstance(error, Fault | OSError) or text.startswith(DAMAGE):
            self._open.clear()  # the store may be built again at its path
            return "fault", f"{DAMAGED}: {text}" if text.startswith(DAMAGE) else text
        return "failure", "invalid", brief(text)

    def _parsed(self, content: str) -> Store:
        """Return a store in memory with the graph `content`, kept for the next query.

        Raise `Fault` for a syntax error.
        """
        if self._memory is None or content != self._content:
            store = Store()
            try:
                store.load(input=content.encode(), format=RdfFormat.TRIG, lenient=True)
            except SyntaxError as error:
                raise Fault(str(error)) from error
            self._memory, self._content = store, content
        return self._memory

    def _store(self, path: str) -> tuple[Store, int]:
        """Return the store at a path, and how many files it may still open while a query runs.

        Raise `Fault` if damaged.
        """
        if path not in self._open:
            try:
                count = len(list(Path(path).glob("*.sst")))
                self._open[path] = Store.read_only(path), count if count > OPENED_AT_START else 0
            except Exception as error:
                raise Fault(f"{DAMAGED}: {path}: {error}") from error
        self._open.move_to_end(path)
        if len(self._open) > STORES:
            self._open.popitem(last=False)
        return self._open[path]


def dataset_options(store: Store, settings: Settings) -> dict[str, Any]:
    """Return the options of `Store.query` for the default graph; empty if the query has FROM.

    Raise `Fault` for a graph that the store does not have.
    """
    default_graph = settings["default_graph"]
    if settings["states_dataset"]:
        return {}
    if default_graph == UNION:
        return {"use_default_graph_as_union": True}
    graphs = [NamedNode(name) for name in default_graph]
    for graph in graphs:
        if not store.contains_named_graph(graph):
            raise Fault(f"default_graph: the files have no graph {graph}")
    return {"default_graph": graphs} if graphs else {}


def rows_of(answer: Any) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return the columns of an answer, and an iterator over its rows.

    An answer of ASK is one row, a graph is triples.
    """
    if isinstance(answer, QueryBoolean):
        return ("boolean",), iter([(bool(answer),)])
    if isinstance(answer, QuerySolutions):
        columns = tuple(variable.value for variable in answer.variables)
        return columns, (tuple(map(encode_term, solution)) for solution in answer)
    return (
        ("subject", "predicate", "object"),
        ((encode_term(triple.subject), encode_term(triple.predicate), encode_term(triple.object)) for triple in answer),
    )


def brief(text: str) -> str:
    """Return a syntax error without its long list of expected tokens."""
    place, _, items = text.partition(": expected ")
    if sentence := SENTENCE.search(items):
        return f"{place}: {sentence[0].lower()}"
    return text if len(items) <= MAX_LIST_CHARACTERS else f"{place}: the query cannot be read from there"


@contextmanager
def guarded(files: int) -> Iterator[None]:
    """Within the `with` statement, let the process open no sockets, and at most `files` files.

    Oxigraph follows SERVICE. Such queries are refused earlier; this is a second barrier. It has a gap only for large
    stores, of which RocksDB opens further files on demand. A panic of Oxigraph, which is not an Exception, becomes
    RuntimeError.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_number = os.dup(0)  # the descriptor of the next file to be opened
    os.close(next_number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, next_number + files) if files else 0, hard))
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(str(error)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
