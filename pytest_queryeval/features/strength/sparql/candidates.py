"""Small graphs in place of the source of a case, in which queries that agree on the source may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.core.shapes import texts
from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.engines import ENGINES, SmallDatabase
from pytest_queryeval.evaluation.extensions import Constraints
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.sparql.graphs import EXAMPLES, MAX_TRIPLES, GraphGenerator
from pytest_queryeval.features.strength.sparql.terms import (
    MAX_STATEMENTS,
    Graph,
    Quad,
    Term,
    Vocabulary,
    as_term,
    turtle,
)
from pytest_queryeval.languages.sparql import GRAPH_COLUMNS, refusal
from pytest_queryeval.languages.sparql.query import COMMON_PREFIXES, declared_prefixes, read_query
from pytest_queryeval.languages.sparql.tree import Select
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

TRIPLES = "triples"
TRIPLES_OF_GRAPHS = "SELECT ?s ?p ?o ?graph { { ?s ?p ?o } UNION { GRAPH ?graph { ?s ?p ?o } } }"
VOCABULARY_SECONDS = 10.0  # for the source to answer one question about its vocabulary


class CandidateGraphs:
    """Small graphs for queries on the source of a case, with the types that its vocabulary implies.

    They are made of what queries read in any case. Raise `SourceError` if the source does not answer.
    """

    def __init__(self, case: Case, session: Session, read_by: Sequence[str] = ()) -> None:
        source = case.settings.source
        assert source is not None  # or there would be no queries
        self._case = case
        self._source = source
        self._session = session
        self._prefixes: dict[str, str] = {"ex": EXAMPLES, **COMMON_PREFIXES, **declared_prefixes(source.settings)}
        self._vocabulary: Vocabulary = session.kept(("vocabulary", source.key), lambda: _vocabulary(case, session))
        has_named_graphs = ENGINES[source.engine].variants.suffix(source.settings) == ".trig"
        self._named_graphs = list(map(IRI, source.settings.get("graphs", {}))) if has_named_graphs else None

    def candidates(self, queries: Sequence[str], random: Random, count: int, *, plain_first: bool) -> Iterator[Graph]:
        """Yield graphs at which the answers of these queries change, the first half of them plain.

        Raise `SourceError` if none of the queries can be read.
        """
        trees: list[Select] = []
        for query in dict.fromkeys(queries):
            with suppress(UnreadableError):
                if refusal(read_query(query)) is None:
                    parsed_query = read_tree(query, declared_prefixes(self._source.settings))
                    self._prefixes |= parsed_query.prefixes
                    trees.append(parsed_query.tree)
        if not trees:
            raise SourceError("no small graph can be built: the queries have what is not understood, such as BASE")
        generator = GraphGenerator(trees, self._vocabulary, self._named_graphs, random)
        graphs: set[frozenset[Quad]] = set()
        for number in range(count):
            graph = generator.graph(is_plain=plain_first and number < count / 2)
            if graph and (quads := frozenset(graph)) not in graphs:
                graphs.add(quads)
                yield graph

    @property
    def constraints(self) -> Constraints:
        """The state of the source, whose data decide which types its vocabulary implies."""
        return Constraints(str(self._session.source_state(self._source)), {})

    def state_of(self, source: Source) -> Graph | None:
        """Return the triples of a variant; None for more than MAX_TRIPLES, and where implied types are missing."""
        case = replace(self._case, settings=replace(self._case.settings, source=source, max_rows=MAX_TRIPLES))
        answer = self._session.execute(QueryOrAnswer(query=TRIPLES_OF_GRAPHS), case, is_derived=True).table
        if answer is None:
            return None
        quads = []
        for cells in answer.rows:
            subject, predicate, object_, graph = map(as_term, cells)
            if subject is None or not isinstance(predicate, IRI) or object_ is None:
                return None
            quads.append(Quad(subject, predicate, object_, graph if isinstance(graph, IRI) else None))
        state = tuple(quads)
        return state if self._vocabulary.completed(state) == state else None

    def is_unlike(self, state: Graph) -> bool:
        """Return False: what graphs keep without stating it is not known."""
        return False

    def database(self, state: Graph) -> SmallDatabase:
        """Return what makes a source with this graph."""
        return SmallDatabase(self.script(state))

    def reduced(self, state: Graph, is_enough: Callable[[Graph], bool], attempts: int) -> Graph:
        """Return fewer triples that are still enough: leave out ever smaller slices, in the end single triples."""
        size = max(1, len(state) // 2)
        while attempts > 0:
            previous_state, at = state, 0
            while at < len(state) and attempts > 0:
                fewer = self._vocabulary.completed(state[:at] + state[at + size :])
                if len(fewer) < len(state):
                    attempts -= 1
                    if is_enough(fewer):
                        state = fewer
                        continue
                at += size
            if size == 1 and state is previous_state:
                break
            size = max(1, size // 2)
        return state

    def reversed(self, state: Graph) -> Graph:
        """Return the triples in the opposite order, with nodes whose names are in the opposite order."""
        nodes = sorted(_new_nodes(state))
        return _renamed(state, dict(zip(nodes, reversed(nodes), strict=True)))[::-1]

    def reordered(self, state: Graph, random: Random) -> list[Graph]:
        """Return the graph with other names of nodes."""
        nodes = sorted(_new_nodes(state))
        return [_renamed(state, dict(zip(nodes, random.sample(nodes, len(nodes)), strict=True)))]

    def joined(self, state: Graph, addition: Graph) -> Graph | None:
        """Return the triples of both graphs; None for more than MAX_TRIPLES."""
        graph = tuple(dict.fromkeys((*state, *addition)))
        return graph if len(graph) <= MAX_TRIPLES else None

    def script(self, state: Graph) -> str:
        """Return a graph as Turtle or TriG."""
        return turtle(state, self._prefixes)

    def contents(self, state: Graph) -> dict[str, Table]:
        """Return the triples as a table for each graph, by its name."""
        names = dict.fromkeys(quad.graph for quad in state)
        return {
            name.iri if name else TRIPLES: Table(
                columns=GRAPH_COLUMNS, rows=[quad[:3] for quad in state if quad.graph == name]
            )
            for name in names
        }


def _vocabulary(case: Case, session: Session) -> Vocabulary:
    """Return the vocabulary of a case's source, whose queries have limits of their own."""
    source = case.settings.source
    assert source is not None  # as above
    case = replace(case, settings=replace(case.settings, timeout=VOCABULARY_SECONDS, max_rows=MAX_STATEMENTS))
    default_graphs = [name for name in texts(source.settings.get("default_graph", ())) if name != "union"]

    def run(query: str) -> Table | None:
        return session.execute(QueryOrAnswer(query=query), case, is_derived=True).table

    return Vocabulary(run, IRI(default_graphs[0]) if default_graphs else None)


def _new_nodes(graph: Graph) -> set[str]:
    """Return the names of nodes that are not of the source."""
    terms = {term for quad in graph for term in (quad.subject, quad.object)}
    return {term.iri for term in terms if isinstance(term, IRI) and term.iri.startswith(EXAMPLES)}


def _renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    def renamed(term: Term) -> Term:
        return IRI(names[term.iri]) if isinstance(term, IRI) and term.iri in names else term

    return tuple(Quad(renamed(quad.subject), quad.predicate, renamed(quad.object), quad.graph) for quad in graph)
