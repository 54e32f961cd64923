"""rdflib in a child process: the graph of a store in memory, and no way to the network.

Loaded by `host_child.py`, whose contract it fulfils; imports nothing of the package.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pyoxigraph
import rdflib
from rdflib import XSD
from rdflib.namespace import NamespaceManager
from rdflib.plugins import sparql
from rdflib.plugins.sparql import evaluate, prepareQuery
from rdflib.plugins.sparql import sparql as prologue
from rdflib.plugins.sparql.operators import register_custom_function
from rdflib.plugins.sparql.sparql import SPARQLError

DATASETS = 32
DAMAGED = "the parsed graph is damaged"
UNION = "union"
FORBIDDEN_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request", "subprocess.Popen")


# Casts that servers know beside those of the standard; rdflib by itself would leave their results unbound.
CASTS = (
    *(XSD.int, XSD.long, XSD.short, XSD.byte, XSD.unsignedLong, XSD.unsignedInt, XSD.unsignedShort, XSD.unsignedByte),
    *(XSD.nonNegativeInteger, XSD.positiveInteger, XSD.nonPositiveInteger, XSD.negativeInteger),
)


class Fault(Exception):  # noqa: N818 - the source's, not an error of this module
    """The store cannot be read."""


class Driver:
    """Keeps the last 32 datasets; `settings` is `{"store": absolute path, "default_graph": see rdf.py}`."""

    def __init__(self) -> None:
        rdflib.NORMALIZE_LITERALS = False
        sparql.SPARQL_LOAD_GRAPHS = False  # else FROM reads files and URLs
        # A query must state its prefixes itself.
        prologue.NamespaceManager = partial(NamespaceManager, bind_namespaces="none")  # type: ignore
        evaluate.evalServiceQuery = refuse_service  # type: ignore[assignment]
        for datatype in CASTS:
            register_custom_function(datatype, to_integer, override=True)  # type: ignore[arg-type]
        sys.addaudithook(no_way_out)
        self._datasets: OrderedDict[tuple[str, frozenset[str]], rdflib.Dataset] = OrderedDict()

    def run(
        self, settings: dict[str, Any], query: str, timeout: float
    ) -> tuple[tuple[str, ...], Callable[[int], list[Any]]]:
        """Start `query`; raises `Fault` or whatever rdflib makes of it."""
        answer = self._dataset(settings).query(prepareQuery(query))
        columns, rows = rows_of(answer)
        return columns, lambda count: list(islice(rows, count))

    def classify(self, error: Exception) -> tuple[str, ...]:
        """Whose fault it is, and of what kind."""
        text = str(error) or type(error).__name__
        if isinstance(error, Fault):
            return "fault", text
        if isinstance(error, PermissionError):
            return "failure", "unsafe", text
        return "failure", "invalid", "the query nests too deeply" if isinstance(error, RecursionError) else text

    def _dataset(self, settings: dict[str, Any]) -> rdflib.Dataset:
        path, graphs = settings["store"], settings["default_graph"]
        chosen = frozenset() if graphs == UNION else frozenset(graphs)
        if (path, chosen) not in self._datasets:
            try:
                self._datasets[path, chosen] = loaded(pyoxigraph.Store.read_only(path), chosen)
            except Fault:
                raise
            except Exception as error:
                raise Fault(f"{DAMAGED}: {path}: {error}") from error
        self._datasets.move_to_end((path, chosen))
        if len(self._datasets) > DATASETS:
            self._datasets.popitem(last=False)
        dataset = self._datasets[path, chosen]
        dataset.default_union = graphs == UNION
        return dataset


def loaded(store: pyoxigraph.Store, chosen: frozenset[str]) -> rdflib.Dataset:
    """All quads of a store in memory; its default graph holds the `chosen` graphs, or else what has no name."""
    for name in chosen:
        if not store.contains_named_graph(pyoxigraph.NamedNode(name)):
            raise Fault(f"default_graph: the files have no graph <{name}>")
    dataset = rdflib.Dataset()
    named: dict[Any, rdflib.Graph] = {}
    for quad in store:
        triple = (rdflib_term(quad.subject), rdflib_term(quad.predicate), rdflib_term(quad.object))
        name = quad.graph_name
        if isinstance(name, pyoxigraph.DefaultGraph):
            if not chosen:
                dataset.default_graph.add(triple)
            continue
        if name not in named:
            named[name] = dataset.graph(rdflib_term(name))
        named[name].add(triple)
        if isinstance(name, pyoxigraph.NamedNode) and name.value in chosen:
            dataset.default_graph.add(triple)
    return dataset


def rdflib_term(term: Any) -> Any:
    """A term of pyoxigraph as one of rdflib's; a triple term, which rdflib does not know, as its text."""
    match term:
        case pyoxigraph.NamedNode():
            return rdflib.URIRef(term.value)
        case pyoxigraph.BlankNode():
            return rdflib.BNode(term.value)
        case pyoxigraph.Literal(language=str(language)):
            return rdflib.Literal(term.value, lang=language)
        case pyoxigraph.Literal():
            plain_text = term.datatype == pyoxigraph.Literal("").datatype
            return rdflib.Literal(term.value, datatype=None if plain_text else rdflib.URIRef(term.datatype.value))
        case _:
            return rdflib.URIRef(f"<<( {term} )>>")


def rows_of(answer: Any) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """The columns of an answer, and its rows one by one."""
    if answer.type == "ASK":
        return ("boolean",), iter([(bool(answer.askAnswer),)])
    if answer.type == "SELECT":
        columns = [str(variable) for variable in answer.vars]
        return tuple(columns), (
            tuple([plain(row.get(variable)) for variable in answer.vars]) for row in answer.bindings
        )
    return ("subject", "predicate", "object"), (tuple([plain(term) for term in triple]) for triple in answer.graph)


def plain(term: Any) -> Any:
    """A term in plain values, see `sparql/terms.py`."""
    match term:
        case None:
            return None
        case rdflib.URIRef():
            return str(term)
        case rdflib.Literal():
            return str(term), str(term.datatype or ""), term.language or ""
        case _:
            return (str(term),)


def to_integer(term: Any) -> rdflib.Literal:
    """Cast a literal to a whole number; the number's own limits are not checked."""
    try:
        return rdflib.Literal(int(float(term)) if "." in term else int(term), datatype=XSD.integer)
    except (TypeError, ValueError, OverflowError) as error:
        raise SPARQLError(f"not a whole number: {term}") from error


def refuse_service(*_: Any) -> None:
    """Stand in for rdflib's SERVICE."""
    raise PermissionError("only the source itself may be asked: SERVICE")


def no_way_out(event: str, _: Any) -> None:
    """Refuse what would leave the process."""
    if event in FORBIDDEN_EVENTS:
        raise PermissionError(f"only the source itself may be asked: {event}")
