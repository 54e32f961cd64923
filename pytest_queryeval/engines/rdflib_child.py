"""rdflib in a child process: the graph of the source's files in memory, and no access to the network.

The files are read here and not from the store that Oxigraph has of them, since that changes the texts of literals, and
rdflib compares these: `20.0` would become `20`. They are parsed by pyoxigraph, which keeps texts and is faster.

Loaded by `host_child.py`.
"""

from __future__ import annotations

import gzip
import logging
import sys
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Self

import pyoxigraph
import rdflib
from rdflib import XSD
from rdflib.namespace import NamespaceManager
from rdflib.plugins import sparql
from rdflib.plugins.sparql import evaluate, prepareQuery
from rdflib.plugins.sparql import sparql as prologue
from rdflib.plugins.sparql.aggregates import Aggregator
from rdflib.plugins.sparql.evaluate import evalAggregateJoin, evalPart
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.operators import register_custom_function
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError

from pytest_queryeval.engines.join_order import JoinOrder, TripleCounts
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Fault, Verdict, encode_term, make_answer

DATASETS = 32
QUERIES = 32  # that are kept as rdflib has read them
UNION = "union"
FORBIDDEN_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request", "subprocess.Popen")


# Casts that servers support beyond the standard; rdflib alone would leave their results unbound.
CASTS = (
    *(XSD.int, XSD.long, XSD.short, XSD.byte, XSD.unsignedLong, XSD.unsignedInt, XSD.unsignedShort, XSD.unsignedByte),
    *(XSD.nonNegativeInteger, XSD.positiveInteger, XSD.nonPositiveInteger, XSD.negativeInteger),
)


class Driver(driver.Driver):
    """Keeps the last 32 datasets; `settings` are `files`, `store` and `default_graph`, or `content` in place of files.

    Each of `files` is a path, its format and the named graph that it fills, if any; `store` is the path of Oxigraph's
    store, which changes with the files; `default_graph` is that of rdf.py; `content` is a small graph in TriG.
    """

    def __init__(self) -> None:
        logging.disable()  # of each literal that its datatype does not allow, rdflib logs a traceback
        rdflib.NORMALIZE_LITERALS = False
        sparql.SPARQL_LOAD_GRAPHS = False  # else FROM reads files and URLs
        # A query must declare its prefixes itself.
        prologue.NamespaceManager = partial(NamespaceManager, bind_namespaces="none")  # type: ignore
        evaluate.evalServiceQuery = refuse_service  # type: ignore[assignment]
        evaluate.evalAggregateJoin = evaluate_groups
        for datatype in CASTS:
            register_custom_function(datatype, to_integer, override=True)  # type: ignore[arg-type]
        sys.addaudithook(refuse_network)
        self._prepared = lru_cache(QUERIES)(prepareQuery)  # which takes longer than a small graph
        self._datasets: OrderedDict[tuple[str, frozenset[str]], tuple[rdflib.Dataset, TripleCounts]] = OrderedDict()

    def run(self, settings: dict[str, Any], query: str, timeout: float) -> Answer:
        """Start `query`; raises `Fault` or any error of rdflib."""
        small_graph, graphs = settings.get("content", ""), settings["default_graph"]
        path = settings.get("store", small_graph)
        default_iris = frozenset() if graphs == UNION else frozenset(graphs)
        if (path, default_iris) not in self._datasets:
            files = settings.get("files", [("", "TRIG", None)])
            self._datasets[path, default_iris] = loaded(files, default_iris, small_graph)
        self._datasets.move_to_end((path, default_iris))
        if len(self._datasets) > DATASETS:
            self._datasets.popitem(last=False)
        dataset, counts = self._datasets[path, default_iris]
        dataset.default_union = graphs == UNION
        sparql.CUSTOM_EVALS["join order"] = JoinOrder(counts)
        return make_answer(*rows_of(dataset.query(self._prepared(query))))

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`."""
        text = str(error) or type(error).__name__
        if isinstance(error, Fault):
            return "fault", text
        if isinstance(error, PermissionError):
            return "failure", "unsafe", text
        return "failure", "invalid", "the query nests too deeply" if isinstance(error, RecursionError) else text


class TripleIRI(rdflib.URIRef):
    """A triple term in the form of an IRI of its text, since rdflib has no triple terms."""

    triple: Any

    def __new__(cls, triple: Any) -> Self:
        """Return the triple term."""
        triple_iri: Self = super().__new__(cls, f"<<( {triple} )>>")
        triple_iri.triple = triple
        return triple_iri


class Terms(dict[Any, Any]):
    """Terms of pyoxigraph mapped to terms of rdflib, each converted once."""

    def __missing__(self, term: Any) -> Any:
        new_term = self[term] = rdflib_term(term)
        return new_term


def loaded(
    files: Sequence[tuple[str, str, str | None]], default_iris: frozenset[str], small_graph: str = ""
) -> tuple[rdflib.Dataset, TripleCounts]:
    """Return the files as a dataset, and the counts of its triples; a file without a path is `small_graph`.

    The default graph holds the graphs named `default_iris`, or the unnamed graph if there are none.
    """
    dataset, counts, terms = rdflib.Dataset(), TripleCounts(), Terms()
    named_graphs: dict[Any, rdflib.Graph] = {}
    for path, format_name, graph in files:
        format_ = getattr(pyoxigraph.RdfFormat, format_name)
        file_graph = pyoxigraph.NamedNode(graph) if graph else None
        try:
            for quad in pyoxigraph.parse(
                **file_content(path, small_graph), format=format_, lenient=True, rename_blank_nodes=True
            ):
                triple = terms[quad.subject], terms[quad.predicate], terms[quad.object]
                counts.add(triple)
                name = file_graph or quad.graph_name
                if isinstance(name, pyoxigraph.DefaultGraph):
                    if not default_iris:
                        dataset.default_graph.add(triple)
                    continue
                if name not in named_graphs:
                    named_graphs[name] = dataset.graph(terms[name])
                named_graphs[name].add(triple)
                if isinstance(name, pyoxigraph.NamedNode) and name.value in default_iris:
                    dataset.default_graph.add(triple)
        except (OSError, EOFError, zlib.error, SyntaxError) as error:
            raise Fault(f"{path}: {error}") from error
    for iri in default_iris:
        if pyoxigraph.NamedNode(iri) not in named_graphs:
            raise Fault(f"default_graph: the files have no graph <{iri}>")
    counts.close()
    return dataset, counts


def file_content(path: str, small_graph: str) -> dict[str, Any]:
    """Return the argument with which pyoxigraph reads a file, or `small_graph` where it has no path."""
    if not path:
        return {"input": small_graph.encode()}
    return {"input": gzip.open(path)} if path.lower().endswith(".gz") else {"path": path}


def rdflib_term(term: Any) -> Any:
    """Return a term of pyoxigraph as a term of rdflib, which has neither triple terms nor base directions."""
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
            return TripleIRI(term)


def rows_of(answer: Any) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return the columns of an answer, and its rows one by one."""
    if answer.type == "ASK":
        return ("boolean",), iter([(bool(answer.askAnswer),)])
    if answer.type == "SELECT":
        solutions = ([row.get(variable) for variable in answer.vars] for row in answer.bindings)
        return tuple(map(str, answer.vars)), (tuple(map(encode_term, row)) for row in solutions)
    return ("subject", "predicate", "object"), (tuple(map(encode_term, triple)) for triple in answer.graph)


def to_integer(term: Any) -> rdflib.Literal:
    """Cast a literal to a whole number, without a check of the limits of its datatype."""
    try:
        return rdflib.Literal(int(float(term)) if "." in term else int(term), datatype=XSD.integer)
    except (TypeError, ValueError, OverflowError) as error:
        raise SPARQLError(f"not a whole number: {term}") from error


def evaluate_groups(ctx: QueryContext, agg: CompValue) -> Generator[FrozenBindings, None, None]:
    """Aggregate as rdflib does, but make no group of no solutions, where rdflib makes an empty one."""
    if agg.p.expr is None:
        yield from evalAggregateJoin(ctx, agg)
        return
    groups: defaultdict[Any, Aggregator] = defaultdict(lambda: Aggregator(agg.A))
    for row in evalPart(ctx, agg.p):
        groups[tuple(_eval(expression, row, False) for expression in agg.p.expr)].update(row)
    for group in groups.values():
        yield FrozenBindings(ctx, group.get_bindings())


def refuse_service(*_: Any) -> None:
    """Raise PermissionError in place of rdflib's SERVICE."""
    raise PermissionError("only the source itself may be asked: SERVICE")


def refuse_network(event: str, _: Any) -> None:
    """Raise PermissionError for events that leave the process."""
    if event in FORBIDDEN_EVENTS:
        raise PermissionError(f"only the source itself may be asked: {event}")
