"""Small graphs instead of the source of a case, on which queries that agree on the source may differ.

The graphs are made of the patterns of queries, filled with few different terms at which answers change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.core.shapes import texts
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Table
from pytest_queryeval.engines import ENGINES, SmallDatabase
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import Constraints
from pytest_queryeval.features.strength.sparql.terms import (
    DOMAIN,
    MAX_STATEMENTS,
    NUMERIC,
    RANGE,
    RDF_TYPE,
    SUBCLASS,
    Graph,
    Quad,
    Term,
    Vocabulary,
    as_term,
    constant,
    literals_near,
    turtle,
)
from pytest_queryeval.languages.sparql import GRAPH_COLUMNS, XSD, refusal
from pytest_queryeval.languages.sparql.query import COMMON_PREFIXES, declared_prefixes, read_query
from pytest_queryeval.languages.sparql.tree import (
    Bind,
    Block,
    Data,
    Filter,
    Group,
    Item,
    Node,
    Select,
    Triple,
    Union,
    is_variable,
    terms,
    walk,
)
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

TRIPLES = "triples"
TRIPLES_OF_GRAPHS = "SELECT ?s ?p ?o ?graph { { ?s ?p ?o } UNION { GRAPH ?graph { ?s ?p ?o } } }"
VOCABULARY_SECONDS = 10.0  # for the source to answer one question about its vocabulary
MAX_TRIPLES = 50
MAX_BEFORE_TYPES = 36  # triples before those that the vocabulary implies
MAX_EDGES = 30  # of one solution; golds with many OPTIONALs have more
MAX_COPIES = 20  # of the solutions of a query
MIN_POOL, MAX_POOL = 4, 40  # literals of a variable
EXAMPLES = "http://example.org/"
# Shares of the groups that a solution matches, though it need not.
OPTIONAL_SHARE, NEGATED_SHARE, SECOND_ARM_SHARE = 0.6, 0.5, 0.3
MERGED_SHARE = 0.12  # of the nodes: any other one instead of one of its sort
SAMPLED_SHARE = 0.15  # a node of the source
BLANK_SHARE = 0.8  # blank nodes, where the source has some
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-\w+)*")


class CandidateGraphs:
    """Small graphs for queries on the source of a case, with the types that its vocabulary implies; a state is a graph.

    Graphs contain only triples for the patterns of queries, so `read_by` is not used. Raise `SourceError` if the source
    does not answer.
    """

    def __init__(self, case: Case, session: Session, read_by: Sequence[str] = ()) -> None:
        source = case.settings.source
        assert source is not None  # or there would be no queries
        self._case = case
        self._source = source
        self._session = session
        self._prefixes: dict[str, str] = {"ex": EXAMPLES, **COMMON_PREFIXES, **declared_prefixes(source.settings)}
        self._vocabulary: Vocabulary = session.cached(("vocabulary", source.key), self._read_vocabulary)
        has_named_graphs = ENGINES[source.engine].variants.suffix(source.settings) == ".trig"
        self._named_graphs = list(map(IRI, source.settings.get("graphs", {}))) if has_named_graphs else None

    def _read_vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the source; its queries have the limits VOCABULARY_SECONDS and MAX_STATEMENTS."""
        settings = replace(self._case.settings, timeout=VOCABULARY_SECONDS, max_rows=MAX_STATEMENTS)
        case, session = replace(self._case, settings=settings), self._session

        def run(query: str) -> Table | None:
            return session.execute(QueryOrAnswer(query=query), case, is_derived=True).table

        default_graphs = [name for name in texts(self._source.settings.get("default_graph", ())) if name != "union"]
        return Vocabulary(run, IRI(default_graphs[0]) if default_graphs else None)

    def candidates(self, queries: Sequence[str], random: Random, count: int, *, plain_first: bool) -> Iterator[Graph]:
        """Yield distinct graphs, at most `count`, on which the answers of these queries may differ.

        With `plain_first`, the first half is plain: few solutions, and all of their triples. Raise `SourceError` if
        none of the queries can be read.
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
        """Constraints without tables; the text is the state of the source, on which the implied types depend."""
        return Constraints(str(self._session.source_state(self._source)), {})

    def state_of(self, source: Source) -> Graph | None:
        """Return the triples of a variant.

        None if they cannot be read, are more than MAX_TRIPLES, contain a term that Turtle lacks, or lack an implied
        type.
        """
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

    def satisfies_data(self, state: Graph) -> bool:
        """Return True: what a graph lacks may be missing by chance, so it never rules out a graph."""
        return True

    def database(self, state: Graph) -> SmallDatabase:
        """Return the input from which the engine builds a source with this graph."""
        return SmallDatabase(self.script(state))

    def reduced(self, state: Graph, is_enough: Callable[[Graph], bool], attempts: int) -> Graph:
        """Return fewer triples for which `is_enough` returns True, found in `attempts` calls; else the same triples.

        Ever smaller slices are left out, in the end single triples; implied types are added again.
        """
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
        """Return the triples in the opposite order, with generated names of nodes in the opposite order."""
        return _renamed(state, reversed)[::-1]

    def reordered(self, state: Graph, random: Random) -> list[Graph]:
        """Return a list of one graph, in which the generated names of nodes are exchanged at random."""
        return [_renamed(state, lambda names: random.sample(names, len(names)))]

    def joined(self, state: Graph, addition: Graph) -> Graph | None:
        """Return the triples of both graphs; None if they are more than MAX_TRIPLES."""
        graph = tuple(dict.fromkeys((*state, *addition)))
        return graph if len(graph) <= MAX_TRIPLES else None

    def script(self, state: Graph) -> str:
        """Return a graph as Turtle, or as TriG if it has named graphs."""
        return turtle(state, self._prefixes)

    def contents(self, state: Graph) -> dict[str, Table]:
        """Return the triples as a table for each graph, by its name; that of the default graph is `triples`."""
        names = dict.fromkeys(quad.graph for quad in state)
        return {
            name.iri if name else TRIPLES: Table(
                columns=GRAPH_COLUMNS, rows=[quad[:3] for quad in state if quad.graph == name]
            )
            for name in names
        }


def _renamed(graph: Graph, order: Callable[[list[str]], Iterable[str]]) -> Graph:
    """Return the graph with new names of its generated IRIs.

    `order` maps the sorted names to the names that replace them.
    """
    nodes = [node for quad in graph for node in (quad.subject, quad.object) if isinstance(node, IRI)]
    names = sorted({node.iri for node in nodes if node.iri.startswith(EXAMPLES)})
    new_names = dict(zip(names, order(names), strict=True))

    def renamed(term: Term) -> Term:
        return IRI(new_names[term.iri]) if isinstance(term, IRI) and term.iri in new_names else term

    return tuple(quad._replace(subject=renamed(quad.subject), object=renamed(quad.object)) for quad in graph)


@dataclass(frozen=True, slots=True)
class Edge:
    """The tokens of a triple pattern without a path; `graph` is the token of its graph, empty for the default graph."""

    subject: str
    predicate: str
    object: str
    graph: str


@dataclass(slots=True)
class _Solution:
    """The edges that one random solution of a query matches: each path has a length, each UNION one or two arms."""

    random: Random
    edges: list[Edge] = field(default_factory=list)
    values: dict[str, Term] = field(default_factory=dict)
    """The terms of variables in VALUES."""
    same: dict[str, str] = field(default_factory=dict)
    """For a variable or blank node at one end of a path of length 0, the token at the other end."""

    def add(self, group: Group, graph: str = "") -> None:
        """Add edges for a group, which is in the graph of token `graph`, and the terms of VALUES.

        OPTIONAL, MINUS and EXISTS are added at random, as is a second arm of UNION. A path becomes edges over new
        variables.
        """
        for element in group.elements:
            match element:
                case Triple():
                    self._add_path(element, graph)
                case Block(head, inner):
                    is_graph = head[0] == "GRAPH"
                    share = 1 if is_graph else OPTIONAL_SHARE if head[0] == "OPTIONAL" else NEGATED_SHARE
                    if self.random.random() < share:
                        self.add(inner, head[1] if is_graph else graph)
                case Union(arms):
                    count = 1 + (self.random.random() < SECOND_ARM_SHARE)
                    for arm in self.random.sample(arms, min(count, len(arms))):
                        self.add(arm, graph)
                case Select(where=Group() as inner):
                    self.add(inner, graph)
                case Data():
                    self.values.update(_random_row(element, self.random))
                case _:
                    self._add_groups_within(element, graph)

    def _add_groups_within(self, node: Node, graph: str) -> None:
        """Add the edges of the groups in an expression, such as after EXISTS, at random."""
        nested: set[int] = set()
        for group in walk(node):
            if isinstance(group, Group) and id(group) not in nested:
                nested |= {id(inner) for inner in walk(group)}
                if self.random.random() < NEGATED_SHARE:
                    self.add(group, graph)

    def _add_path(self, triple: Triple, graph: str) -> None:
        steps = _Path(triple.path, self.random).steps()
        if not steps:
            first, second = self.final(triple.subject), self.final(triple.object)
            if first != second and (is_open(first) or is_open(second)):
                self.same[first if is_open(first) else second] = second if is_open(first) else first
            return
        node = triple.subject
        for number, (predicate, is_inverse) in enumerate(steps, start=1):
            next_node = triple.object if number == len(steps) else f"?.{len(self.edges)}"
            ends = (next_node, node) if is_inverse else (node, next_node)
            self.edges.append(Edge(ends[0], predicate, ends[1], graph))
            node = next_node

    def final(self, token: str) -> str:
        """Return the token that stands for a node, after paths of length 0."""
        while token in self.same:
            token = self.same[token]
        return token


class _Path:
    """Chooses a random way along a path: one of its alternatives, repeated 0 to 2 times if repetition is allowed."""

    def __init__(self, tokens: Sequence[str], random: Random) -> None:
        self._tokens = tokens
        self._random = random
        self._at = 0

    def steps(self) -> list[tuple[str, bool]]:
        """Return the predicates of a random way, each with whether it is inverse, from object to subject."""
        ways = [self._sequence()]
        while self._skip("|"):
            ways.append(self._sequence())
        return self._random.choice(ways)

    def _sequence(self) -> list[tuple[str, bool]]:
        steps = self._element()
        while self._skip("/"):
            steps = [*steps, *self._element()]
        return steps

    def _element(self) -> list[tuple[str, bool]]:
        if self._skip("^"):
            return [(predicate, not is_inverse) for predicate, is_inverse in reversed(self._element())]
        if self._skip("!"):
            self._element()
            return [(f"<{EXAMPLES}other>", False)]
        if self._skip("("):
            steps = self.steps()
            self._skip(")")
        else:
            steps = [(self._tokens[self._at], False)]
            self._at += 1
        for mark, lengths in (("*", (0, 1, 2)), ("+", (1, 1, 2)), ("?", (0, 1))):
            if self._skip(mark):
                steps = steps * self._random.choice(lengths)
        return steps

    def _skip(self, token: str) -> bool:
        is_next = self._tokens[self._at : self._at + 1] == (token,)
        self._at += is_next
        return is_next


class GraphGenerator:
    """Makes random graphs at which the answers of queries change, with the types that a vocabulary implies.

    `named_graphs` are the names of graphs that the source may have. If it is None, the source has no named graphs, and
    GRAPH matches nothing.
    """

    def __init__(
        self, queries: Sequence[Select], vocabulary: Vocabulary, named_graphs: Sequence[IRI] | None, random: Random
    ) -> None:
        self._queries = queries
        self._vocabulary = vocabulary
        self._named_graphs = named_graphs
        self._random = random
        self._pools = _Pools(queries, vocabulary, random)
        numbers = {int(term) for query in queries for term in terms(query) if term.isdecimal() and len(term) < 3}
        self._numbers = sorted(number for number in numbers if 1 < number < MAX_COPIES)

    def graph(self, *, is_plain: bool) -> Graph:
        """Return a random graph of at most MAX_TRIPLES with several solutions of one or two queries.

        Solutions share some terms. Some triples are dropped, and implied types are added. A plain graph has one or two
        solutions with all of their triples; other graphs may have as many solutions as a number in a query.
        """
        random = self._random
        copies = random.choice((1, 1, 2)) if is_plain else random.choice((1, 2, 2, 3, 4))
        is_counted = not is_plain and bool(self._numbers) and random.random() < 0.3
        if is_counted:
            copies = random.choice(self._numbers) + random.choice((0, 1))
        kept_share = random.choice((0.0, 0.3, 0.6, 0.9))
        dropped_share = 0.0 if is_plain else random.choice((0.0, 0.0, 0.1, 0.3))
        quads: dict[Quad, None] = {}
        for query in random.sample(self._queries, min(len(self._queries), random.choice((1, 1, 2)))):
            assignment: dict[str, Term] = {}
            kept_by_name: dict[str, bool] = {}
            for number in range(copies):
                if len(quads) > MAX_BEFORE_TYPES:
                    break
                assignment = {
                    name: term
                    for name, term in assignment.items()
                    if kept_by_name.setdefault(name, random.random() < kept_share)
                }
                quads.update(dict.fromkeys(self._solution(query, assignment, number if is_counted else None)))
        chosen_quads = [quad for quad in quads if random.random() >= dropped_share]
        while len(graph := self._vocabulary.completed(chosen_quads)) > MAX_TRIPLES:
            chosen_quads = chosen_quads[: len(chosen_quads) * 3 // 4]
        return graph

    def _solution(self, query: Select, assignment: dict[str, Term], number: int | None) -> Iterator[Quad]:
        """Yield the triples of a random solution.

        `assignment` contains terms of variables from earlier solutions; terms of other variables are added to it. With
        a `number`, new nodes have this number in their names.
        """
        solution = _Solution(self._random)
        if query.where is not None:
            solution.add(query.where)
        assignment.update(solution.values)
        edges = solution.edges[:MAX_EDGES]
        for edge in reversed(edges):  # a path begins at an instance, and ends at a class
            if constant(edge.predicate) in (SUBCLASS, DOMAIN, RANGE):
                self._assign_stated(edge, solution, assignment)
        for edge in edges:
            edge_terms = []
            for token in map(solution.final, (edge.subject, edge.predicate, edge.object)):
                term = constant(token)
                if is_open(token):
                    term = assignment.get(token) or self._pools.term(query, token, edges, number)
                    assignment[token] = term
                edge_terms.append(term)
            subject, predicate, object_ = edge_terms
            graph = self._graph_name(edge.graph, query, assignment)
            is_elsewhere = graph is None and bool(edge.graph)  # in a graph that the source cannot have
            if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and object_ and not is_elsewhere:
                yield Quad(subject, predicate, object_, graph)

    def _assign_stated(self, edge: Edge, solution: _Solution, assignment: dict[str, Term]) -> None:
        """Assign the terms of a stated domain, range or superclass that fits an edge to the edge's variables."""
        tokens = [solution.final(token) for token in (edge.subject, edge.object)]
        ends = [assignment.get(token) if is_open(token) else constant(token) for token in tokens]
        predicate = constant(edge.predicate)
        pairs = [
            pair
            for pair in self._vocabulary.pairs(predicate if isinstance(predicate, IRI) else SUBCLASS)
            if all(end is None or end == term for end, term in zip(ends, pair, strict=True))
        ]
        if pairs:
            assignment.update(zip(tokens, self._random.choice(pairs), strict=True))

    def _graph_name(self, token: str, query: Select, assignment: dict[str, Term]) -> IRI | None:
        """Return the name of the graph that contains a triple, by the `token` after GRAPH.

        None for the unnamed default graph, and for GRAPH if the source has no named graphs.
        """
        if not token:
            stated_graphs = [
                name
                for place, name in enumerate(query.dataset)
                if name not in ("FROM", "NAMED") and query.dataset[place - 1] == "FROM"
            ]
            name = constant(self._random.choice(stated_graphs)) if stated_graphs else self._vocabulary.home
            return name if isinstance(name, IRI) else None
        if self._named_graphs is None:
            return None
        name = constant(token)
        if name is None:
            graphs = [*self._named_graphs, *(IRI(f"{EXAMPLES}graph-{number}") for number in (1, 2))]
            name = assignment.setdefault(token, self._random.choice(graphs))
        return name if isinstance(name, IRI) else None


class _Pools:
    """Chooses the terms that the variables of queries take."""

    def __init__(self, queries: Sequence[Select], vocabulary: Vocabulary, random: Random) -> None:
        self._vocabulary = vocabulary
        self._random = random
        self._nodes: dict[str, None] = {}  # sorts of nodes
        self._compared = {id(query): _compared_constants(query) for query in queries}
        triples = [node for query in queries for node in walk(query) if isinstance(node, Triple)]
        predicates = (constant(token) for triple in triples for token in triple.path)
        self._predicates = [*dict.fromkeys(iri for iri in predicates if isinstance(iri, IRI))] or [IRI(f"{EXAMPLES}p")]
        self._constants: defaultdict[tuple[bool, str], dict[Term, None]] = defaultdict(dict)
        for triple in triples:
            for is_object, token in ((False, triple.subject), (True, triple.object)):
                if len(triple.path) == 1 and (term := constant(token)) is not None:
                    self._constants[is_object, triple.path[0]][term] = None

    def term(self, query: Select, token: str, edges: Sequence[Edge], number: int | None) -> Term:
        """Return a random term for a variable of a query.

        The `edges` with the variable decide whether it is a predicate, a class, a literal or a node. Choices come from
        constants of the queries, compared constants and their neighbours, samples of the source, and generated nodes.
        With a `number`, a new node has this number in its name.
        """
        subject_of = [edge.predicate for edge in edges if edge.subject == token]
        object_of = [edge.predicate for edge in edges if edge.object == token]
        if any(edge.predicate == token for edge in edges):
            return self._random.choice(self._predicates)
        compared = self._compared[id(query)].get(token, {})
        uses = [(False, predicate) for predicate in subject_of] + [(True, predicate) for predicate in object_of]
        sampled = [
            pair[is_object]
            for is_object, predicate in uses
            if isinstance(iri := constant(predicate), IRI) and (is_object or iri != RDF_TYPE)  # of some class
            for pair in self._vocabulary.samples(iri)
        ]
        constants = [term for use in uses for term in self._constants[use]]
        if "a" in object_of or SUBCLASS in map(constant, (*subject_of, *object_of)):
            return self._random.choice(
                [term for term in (*constants, *sampled) if isinstance(term, IRI)] or [IRI(f"{EXAMPLES}Class")]
            )
        literals = [term for term in (*compared, *constants, *sampled) if isinstance(term, Literal)]
        if not subject_of and literals and not all(isinstance(term, IRI) for term in sampled or [literals[0]]):
            return self._random.choice(_literal_pool(compared, literals, sampled))
        classes = [edge.object for edge in edges if edge.subject == token and edge.predicate == "a"]
        named = next((name for name in (*classes, *object_of, *subject_of) if name.startswith("<")), token)
        local_name = re.split(r"[/#:]", named.strip("<>?").rstrip("/#"))[-1]
        sort = re.sub(r"[^A-Za-z0-9]", "", local_name) or "node"
        iris = [term for term in (*compared, *constants) if isinstance(term, IRI)]
        return self._node(sort, iris, sampled, number)

    def _node(self, sort: str, iris: Sequence[IRI], sampled: Sequence[Term], number: int | None) -> IRI | BlankNode:
        """Return a generated node of a sort; at times, a node of another sort, one of `iris`, or one of `sampled`.

        With a `number`, the result is the node of this sort and number.
        """
        self._nodes[sort] = None
        chance = self._random.random()
        if number is not None:
            return IRI(f"{EXAMPLES}{sort}-{number + 1}")
        if chance < MERGED_SHARE:
            sort = self._random.choice(list(self._nodes))
        elif iris and chance < 0.4:
            return self._random.choice(iris)
        elif sampled and chance < 0.4 + SAMPLED_SHARE and isinstance(node := self._random.choice(sampled), IRI):
            return node
        name = f"{sort}-{self._random.choice((1, 1, 2, 3))}"
        is_blank = any(isinstance(term, BlankNode) for term in sampled) and chance < BLANK_SHARE
        return BlankNode(name) if is_blank else IRI(EXAMPLES + name)


def _compared_constants(query: Select) -> dict[str, dict[Term, None]]:
    """Return for each variable the constants that expressions compare with it or with a value computed from it."""
    compared: defaultdict[str, dict[Term, None]] = defaultdict(dict)
    expressions = [node for node in walk(query) if isinstance(node, Filter | Bind | Item)]
    for _ in range(2):  # by another variable that is computed from it
        for node in (*expressions, *query.having):
            tokens = list(terms(node))
            names = [token for token in tokens if is_variable(token)]
            constants = dict.fromkeys(term for token in tokens if (term := constant(token)) not in (None, RDF_TYPE))
            for name in names:
                constants |= compared[name]
            words = {token.upper() for token in tokens}
            for name in names:
                compared[name] |= constants
                compared[name] |= dict.fromkeys(_inverse_values(constants, words))
    return compared


def _inverse_values(constants: dict[Term, None], words: set[str]) -> Iterator[Literal]:
    """Yield literals for which a function returns one of the constants: texts in a language, dates in a year."""
    for term in constants:
        if not isinstance(term, Literal):
            continue
        if words & {"LANG", "LANGMATCHES"} and _LANGUAGE.fullmatch(term.lexical):
            yield from (Literal(text, "", term.lexical.lower()) for text in ("a", "b"))
        if "YEAR" in words and term.lexical.isdecimal() and len(term.lexical) == 4:
            yield from (Literal(f"{term.lexical}-{day}", f"{XSD}date") for day in ("01-01", "12-31"))
            yield from (Literal(f"{term.lexical}-{day}T00:00:00", f"{XSD}dateTime") for day in ("01-01", "12-31"))


def _literal_pool(compared: dict[Term, None], literals: Sequence[Literal], sampled: Sequence[Term]) -> list[Literal]:
    """Return literals for a variable: compared literals with their neighbours, then all `literals`.

    Neighbours of `literals` are added if there are few. Numbers also occur in the numeric datatypes of `sampled`.
    """
    datatypes = dict.fromkeys(term.datatype for term in sampled if isinstance(term, Literal))
    pool: dict[Literal, None] = {}
    for term in compared:
        if isinstance(term, Literal):
            pool |= dict.fromkeys(literals_near(term))
            if term.datatype in NUMERIC:  # as the source has numbers
                for datatype in (name for name in datatypes if name in NUMERIC):
                    pool |= dict.fromkeys(literals_near(Literal(term.lexical, datatype)))
    if len(pool) + len(set(literals)) < MIN_POOL:
        pool |= dict.fromkeys(near for literal in literals for near in literals_near(literal))
    return [*list(pool)[:MAX_POOL], *dict.fromkeys(literals)]


def _random_row(data: Data, random: Random) -> Iterator[tuple[str, Term]]:
    """Yield the variables of a VALUES block with the terms of a random row; UNDEF is left out."""
    opening = data.parts.index("{")
    names = [part for part in data.parts[:opening] if is_variable(part)]
    cells = [part for part in data.parts[opening:] if part == "UNDEF" or constant(part) is not None]
    if names and len(cells) >= len(names):
        start = random.randrange(len(cells) // len(names)) * len(names)
        for name, cell in zip(names, cells[start : start + len(names)], strict=True):
            if (term := constant(cell)) is not None:
                yield name, term


def is_open(token: str) -> bool:
    """Return whether a token of a pattern is a variable or a blank node."""
    return is_variable(token) or token.startswith(("[", "_:"))
