"""rdflib in a child process: the graph of the source's files in memory, and no access to the network.

The files are read here and not from the store that Oxigraph has of them, since that changes the texts of literals, and
rdflib compares these: `20.0` would become `20`. They are parsed by pyoxigraph, which keeps texts and is faster.
The triples of a pattern are matched in the order that `JoinOrder` gives them.

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
from typing import Any, Self, TypeAlias

import pyoxigraph
import rdflib
from rdflib import XSD, BNode, Variable
from rdflib.namespace import NamespaceManager
from rdflib.paths import AlternativePath, InvPath, MulPath, Path, SequencePath
from rdflib.plugins import sparql
from rdflib.plugins.sparql import evaluate, prepareQuery
from rdflib.plugins.sparql import sparql as prologue
from rdflib.plugins.sparql.aggregates import Aggregator
from rdflib.plugins.sparql.evaluate import evalAggregateJoin, evalBGP, evalPart
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.operators import register_custom_function
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Fault, Verdict, encode_term, make_answer

Triple: TypeAlias = tuple[Any, Any, Any]

MAX_TRIPLES = 64  # of a pattern that is ordered; the time grows with their square
DATASETS = 32
QUERIES = 32  # that are kept as rdflib has read them
UNION = "union"
TOO_DEEP = "the query, or a path through the data, is nested too deeply"
FORBIDDEN_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request", "subprocess.Popen")


# Casts that servers support beyond the standard; rdflib alone would leave their results unbound.
CASTS = (
    *(XSD.int, XSD.long, XSD.short, XSD.byte, XSD.unsignedLong, XSD.unsignedInt, XSD.unsignedShort, XSD.unsignedByte),
    *(XSD.nonNegativeInteger, XSD.positiveInteger, XSD.nonPositiveInteger, XSD.negativeInteger),
)


class Driver(driver.Driver):
    """The driver of rdflib, which keeps the last 32 datasets in memory.

    `settings` are `default_graph`, which rdf.py describes, and either `files` and `store`, or `content`, a small graph
    in TriG. Each of `files` is a path, its format and the named graph that it fills, if any. `store` is the path of
    Oxigraph's store, which changes with the files.
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
        self._datasets: OrderedDict[tuple[str, frozenset[str]], rdflib.Dataset] = OrderedDict()

    def run(self, settings: dict[str, Any], query: str, timeout: float) -> Answer:
        """Run `query` on its dataset, loaded if needed, and return its answer; raise `Fault` or any error of rdflib."""
        small_graph, graphs = settings.get("content", ""), settings["default_graph"]
        path = settings.get("store", small_graph)
        default_iris = frozenset() if graphs == UNION else frozenset(graphs)
        if (path, default_iris) not in self._datasets:
            files = settings.get("files", [("", "TRIG", None)])
            self._datasets[path, default_iris] = load_dataset(files, default_iris, small_graph)
        self._datasets.move_to_end((path, default_iris))
        if len(self._datasets) > DATASETS:
            self._datasets.popitem(last=False)
        dataset = self._datasets[path, default_iris]
        dataset.default_union = graphs == UNION
        sparql.CUSTOM_EVALS["join order"] = JoinOrder()
        return make_answer(*rows_of(dataset.query(self._prepared(query))))

    def classify(self, error: Exception) -> Verdict:
        """Return whether the source or the query is at fault for an error of `run`, with a message."""
        text = str(error) or type(error).__name__
        if isinstance(error, Fault):
            return "fault", text
        if isinstance(error, PermissionError):
            return "failure", "unsafe", text
        return "failure", "invalid", TOO_DEEP if isinstance(error, RecursionError) else text


class TripleIRI(rdflib.URIRef):
    """An IRI that stands for the triple term `triple`, because rdflib has no triple terms; its text is the term's."""

    triple: Any

    def __new__(cls, triple: Any) -> Self:
        """Return an IRI for a triple term."""
        triple_iri: Self = super().__new__(cls, f"<<( {triple} )>>")
        triple_iri.triple = triple
        return triple_iri


class Terms(dict[Any, Any]):
    """A dict from terms of pyoxigraph to terms of rdflib, in which a missing term is converted and kept."""

    def __missing__(self, term: Any) -> Any:
        new_term = self[term] = rdflib_term(term)
        return new_term


def load_dataset(
    files: Sequence[tuple[str, str, str | None]], default_iris: frozenset[str], small_graph: str = ""
) -> rdflib.Dataset:
    """Return the graphs of the files as a dataset; a file without a path is `small_graph`.

    The default graph contains the graphs named in `default_iris`, or the unnamed graph if that is empty. Raise `Fault`
    for a file that cannot be read, and for a name without a graph.
    """
    dataset, terms = rdflib.Dataset(), Terms()
    named_graphs: dict[Any, rdflib.Graph] = {}
    for path, format_name, graph in files:
        format_ = getattr(pyoxigraph.RdfFormat, format_name)
        file_graph = pyoxigraph.NamedNode(graph) if graph else None
        try:
            for quad in pyoxigraph.parse(
                **file_content(path, small_graph), format=format_, lenient=True, rename_blank_nodes=True
            ):
                triple = terms[quad.subject], terms[quad.predicate], terms[quad.object]
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
    return dataset


def file_content(path: str, small_graph: str) -> dict[str, Any]:
    """Return the argument with which pyoxigraph reads the file at `path`; without a path, it reads `small_graph`."""
    if not path:
        return {"input": small_graph.encode()}
    return {"input": gzip.open(path)} if path.lower().endswith(".gz") else {"path": path}


def rdflib_term(term: Any) -> Any:
    """Return a term of pyoxigraph as a term of rdflib.

    A triple term becomes a `TripleIRI`, and the base direction of a text is lost.
    """
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
    """Return the columns of an answer, and an iterator over its rows.

    An answer of ASK is one row, a graph is triples.
    """
    if answer.type == "ASK":
        return ("boolean",), iter([(bool(answer.askAnswer),)])
    if answer.type == "SELECT":
        solutions = ([row.get(variable) for variable in answer.vars] for row in answer.bindings)
        return tuple(map(str, answer.vars)), (tuple(map(encode_term, row)) for row in solutions)
    return ("subject", "predicate", "object"), (tuple(map(encode_term, triple)) for triple in answer.graph)


def to_integer(term: Any) -> rdflib.Literal:
    """Return a literal cast to xsd:integer, without a check of the limits of a datatype.

    Raise SPARQLError if it fails.
    """
    try:
        return rdflib.Literal(int(float(term)) if "." in term else int(term), datatype=XSD.integer)
    except (TypeError, ValueError, OverflowError) as error:
        raise SPARQLError(f"not a whole number: {term}") from error


def evaluate_groups(ctx: QueryContext, agg: CompValue) -> Generator[FrozenBindings, None, None]:
    """Yield the groups of an aggregation as rdflib does, but no empty group if there are no solutions to group."""
    if agg.p.expr is None:
        yield from evalAggregateJoin(ctx, agg)
        return
    groups: defaultdict[Any, Aggregator] = defaultdict(lambda: Aggregator(agg.A))
    for row in evalPart(ctx, agg.p):
        groups[tuple(_eval(expression, row, False) for expression in agg.p.expr)].update(row)
    for group in groups.values():
        yield FrozenBindings(ctx, group.get_bindings())


def refuse_service(*_: Any) -> None:
    """Raise PermissionError; replaces rdflib's function for SERVICE."""
    raise PermissionError("SERVICE is refused, because a query may only ask its own source")


def refuse_network(event: str, _: Any) -> None:
    """Raise PermissionError for audit events by which code leaves the process, such as connecting a socket."""
    if event in FORBIDDEN_EVENTS:
        raise PermissionError(f"a query may only ask its own source: {event}")


class JoinOrder:
    """Evaluates the basic graph patterns of one query with their triples in a faster order; for `CUSTOM_EVALS`.

    rdflib takes triples almost as they are written: `?a a :Unit . ?b a :Sensor . ?a :feeds ?b` makes all pairs of units
    and sensors before it matches the triple that connects them. Here the next triple shares a variable with an earlier
    triple if possible; among several candidates it has the fewest new variables.
    """

    def __init__(self) -> None:
        # By the id of the pattern, which is kept alive so that no other object gets this id, and its bound variables.
        self._orders: dict[tuple[int, frozenset[Any]], tuple[CompValue, list[Triple]]] = {}

    def __call__(self, ctx: QueryContext, part: CompValue) -> Generator[FrozenBindings, None, None]:
        """Return the solutions of a basic graph pattern.

        Raise NotImplementedError for parts that rdflib should evaluate.
        """
        if part.name != "BGP" or not 1 < len(part.triples) <= MAX_TRIPLES:
            raise NotImplementedError
        bound_variables = frozenset(v for triple in part.triples for v in unknowns(triple) if ctx[v] is not None)
        key = id(part), bound_variables
        if key not in self._orders:
            self._orders[key] = part, join_order(part.triples, bound_variables)
        return evalBGP(ctx, self._orders[key][1])


def join_order(triples: Sequence[Triple], bound_variables: frozenset[Any]) -> list[Triple]:
    """Return the triples in the order in which to match them, given the variables that are bound before.

    A path that may be empty stays at its place, because its number of matches in rdflib depends on which of its ends
    are bound. The triples before and after it are ordered among themselves.
    """
    bound_terms = set(bound_variables)

    def cost(triple: Triple) -> tuple[bool, int, bool]:
        variables = unknowns(triple)
        new_variables = [variable for variable in variables if variable not in bound_terms]
        is_apart = bool(bound_terms and new_variables and len(new_variables) == len(variables))
        return is_apart, len(new_variables), isinstance(triple[1], Path)

    remaining = sorted(triples, key=lambda triple: sum(term not in bound_variables for term in unknowns(triple)))
    order: list[Triple] = []
    while remaining:
        fixed = next((place for place, triple in enumerate(remaining) if may_be_empty(triple[1])), len(remaining))
        best = min(range(fixed), key=lambda place: cost(remaining[place]), default=0)
        order.append(remaining.pop(best))
        bound_terms.update(unknowns(order[-1]))
    return order


def may_be_empty(predicate: Any) -> bool:
    """Return whether a predicate is a path of which a part may be empty, by `*` or `?`."""
    if isinstance(predicate, MulPath):
        return predicate.zero or may_be_empty(predicate.path)
    if isinstance(predicate, InvPath):
        return may_be_empty(predicate.arg)
    return isinstance(predicate, SequencePath | AlternativePath) and any(map(may_be_empty, predicate.args))


def unknowns(triple: Triple) -> list[Any]:
    """Return the variables and the blank nodes of a triple, which a match binds alike."""
    return [term for term in triple if isinstance(term, Variable | BNode)]
