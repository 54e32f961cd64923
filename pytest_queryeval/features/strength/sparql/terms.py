"""The terms and triples of small graphs, and the types that the vocabulary of a graph implies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, Table
from pytest_queryeval.features.strength import neighbours
from pytest_queryeval.languages.sparql import XSD, stated_term
from pytest_queryeval.languages.sparql.tree import Writer, is_number

Term: TypeAlias = IRI | BlankNode | Literal
Run: TypeAlias = Callable[[str], Table | None]
"""Runs a query on the graph; returns its answer, None if it fails."""

RDF_TYPE = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
NUMERIC = frozenset(f"{XSD}{name}" for name in ("integer", "decimal", "double", "float", "int", "long"))
DOMAIN, RANGE, SUBCLASS = (IRI(f"{RDFS}{name}") for name in ("domain", "range", "subClassOf"))
MAX_STATEMENTS = 20_000
MAX_CLASSES = 50  # that an instance may have instead of a class
SAMPLES = 8  # triples of each predicate
_ANYWHERE = "{{ {{ {0} }} UNION {{ GRAPH ?graph {{ {0} }} }} }}"
STATEMENTS = (
    f"SELECT DISTINCT ?s ?p ?o WHERE {{ VALUES ?p {{ <{DOMAIN.iri}> <{RANGE.iri}> <{SUBCLASS.iri}> }} "
    f"{_ANYWHERE.format('?s ?p ?o')} FILTER (isIRI(?s) && isIRI(?o)) }} LIMIT {MAX_STATEMENTS}"
)
_IRI = re.compile(r'[^<>"{}|^`\\\x00-\x20]*')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Quad(NamedTuple):
    """A triple of a graph; `graph` is None for the unnamed default graph."""

    subject: Term
    predicate: IRI
    object: Term
    graph: IRI | None = None


Graph: TypeAlias = tuple[Quad, ...]


def constant(token: str) -> Term | None:
    """Return the IRI or literal that a token of a query stands for; None for other tokens.

    >>> constant("4"), constant('"a"@en').language, constant("a").iri[-4:], constant("?x")
    (Literal(lexical='4', datatype='http://www.w3.org/2001/XMLSchema#integer', language=''), 'en', 'type', None)
    """
    if token == "a":  # noqa: S105 - of a query
        return RDF_TYPE
    if token in ("true", "false"):
        return Literal(token, f"{XSD}boolean")
    if token and is_number(token):
        name = "double" if "e" in token.lower() else "decimal" if "." in token else "integer"
        return Literal(token, f"{XSD}{name}")
    cell = stated_term(token) if token[:1] in ("<", '"') else None
    return cell if isinstance(cell, IRI | Literal) else None


def as_term(cell: Cell) -> Term | None:
    """Return a cell of an answer as a term of graphs; None for IRIs that Turtle cannot write, and for other cells."""
    match cell:
        case IRI(iri) | Literal(_, iri, _):
            return cell if _IRI.fullmatch(iri) else None
        case _:
            return cell if isinstance(cell, BlankNode) else None


def literals_near(literal: Literal) -> Iterator[Literal]:
    """Yield the literal, then similar literals.

    Numbers differ by one or two, dates by a day, other texts in case, an added character or word, language or datatype.
    A boolean becomes its opposite.
    """
    lexical, datatype, language = literal.lexical, literal.datatype, literal.language
    yield literal
    day, separator, time = lexical.partition("T")
    if datatype in NUMERIC:
        places = len(lexical.partition(".")[2])
        with suppress(ValueError, OverflowError):
            yield from (Literal(f"{float(lexical) + step:.{places}f}", datatype) for step in (-1, 1, -2, 2))
            yield Literal(lexical)
    elif len(neighbours(day)) > 1:
        yield from (Literal(str(text) + separator + time, datatype) for text in neighbours(day)[1:])
        yield Literal(lexical, "" if datatype else f"{XSD}date")
    elif datatype == f"{XSD}boolean":
        yield Literal("false" if lexical in ("true", "1") else "true", datatype)
    else:
        yield from (Literal(text, datatype, language) for text in (lexical.swapcase(), lexical.capitalize()))
        yield from (Literal(text, datatype, language) for text in (f"{lexical} x", f"x {lexical}", f"{lexical}x"))
        if not datatype:
            yield from (Literal(lexical, "", tag) for tag in ("", "en", "de") if tag != language)


def turtle(graph: Iterable[Quad], prefixes: Mapping[str, str]) -> str:
    """Return a graph as Turtle, or as TriG if it has named graphs, with the prefixes that it uses."""
    writer = Writer(prefixes)
    lines: list[str] = []
    name: IRI | None = None
    for quad in sorted(graph, key=lambda quad: quad.graph.iri if quad.graph else ""):
        if quad.graph != name:
            lines += ["}"] if name else []
            name = quad.graph
            lines += [f"{writer.term(_text(name))} {{"] if name else []
        predicate = "a" if quad.predicate == RDF_TYPE else writer.term(_text(quad.predicate))
        lines.append(f"{writer.term(_text(quad.subject))} {predicate} {writer.term(_text(quad.object))} .")
    lines += ["}"] if name else []
    return "\n".join([*writer.declarations("@prefix {}: <{}> ."), *lines]) + "\n"


def _text(term: Term) -> str:
    match term:
        case IRI(iri):
            return f"<{iri}>"
        case BlankNode(label):
            return f"_:{label}"
        case Literal(lexical, datatype, language):
            is_integer = datatype == f"{XSD}integer" and lexical.lstrip("-").isdecimal()
            if is_integer and lexical.isascii():
                return lexical
            text = f'"{lexical.translate(_ESCAPES)}"'
            return f"{text}@{language}" if language else f"{text}^^<{datatype}>" if datatype else text


class Vocabulary:
    """Domains, ranges and superclasses that a graph states, if the data have instances and no exception.

    `run` executes queries on the graph; `home` is the name of its default graph, None for the unnamed one.
    """

    def __init__(self, run: Run, home: IRI | None = None) -> None:
        self._run = run
        self.home = home
        self._samples: dict[IRI, Sequence[tuple[Term, Term]]] = {}
        self._implied: dict[tuple[IRI, IRI], tuple[tuple[IRI, ...], ...]] = {}
        self._statements: defaultdict[tuple[IRI, IRI], list[IRI]] = defaultdict(list)
        self._subclasses: defaultdict[IRI, list[IRI]] = defaultdict(list)
        answer = run(STATEMENTS)
        for cells in sorted(answer.rows if answer is not None else (), key=repr):
            subject, predicate, object_ = map(as_term, cells)
            if isinstance(subject, IRI) and isinstance(predicate, IRI) and isinstance(object_, IRI):
                self._statements[subject, predicate].append(object_)
                if predicate == SUBCLASS:
                    self._subclasses[object_].append(subject)

    def states(self, quad: Quad) -> bool:
        """Return whether a small graph may contain a triple: a domain, range or superclass only if the source does."""
        if quad.predicate not in (DOMAIN, RANGE, SUBCLASS):
            return True
        return isinstance(quad.subject, IRI) and quad.object in self._statements.get((quad.subject, quad.predicate), ())

    def pairs(self, relation: IRI) -> Iterator[tuple[IRI, IRI]]:
        """Yield each property or class with its domain, range or superclass, as `relation` says."""
        for (subject, predicate), classes in self._statements.items():
            if predicate == relation:
                yield from ((subject, class_) for class_ in classes)

    def samples(self, predicate: IRI) -> Sequence[tuple[Term, Term]]:
        """Return subject and object of up to SAMPLES triples with this predicate; the graph is asked only once."""
        if predicate not in self._samples:
            pattern = _ANYWHERE.format(f"?s <{predicate.iri}> ?o")
            answer = self._run(f"SELECT ?s ?o WHERE {pattern} LIMIT {SAMPLES}")
            pairs = ((as_term(row[0]), as_term(row[1])) for row in (answer.rows if answer is not None else ()))
            self._samples[predicate] = [
                (subject, object_) for subject, object_ in pairs if subject is not None and object_ is not None
            ]
        return self._samples[predicate]

    def violations(self, graph: Iterable[Quad]) -> Iterator[tuple[Quad, Term, tuple[IRI, ...]]]:
        """Yield each triple that implies a missing type, with the node and the classes of which the node needs any."""
        triples = [quad for quad in graph if quad.graph == self.home]
        types: defaultdict[Term, set[Term]] = defaultdict(set)
        for quad in triples:
            if quad.predicate == RDF_TYPE:
                types[quad.subject].add(quad.object)
        for quad in triples:
            for node, classes in self.implied_types(quad):
                if types[node].isdisjoint(classes):
                    yield quad, node, classes

    def implied_types(self, quad: Quad) -> Iterator[tuple[Term, tuple[IRI, ...]]]:
        """Yield the types that a triple implies: a node, and the classes of which the node has at least one."""
        if quad.predicate == RDF_TYPE:
            if isinstance(quad.object, IRI):
                yield from ((quad.subject, classes) for classes in self._kept_classes(quad.object, SUBCLASS))
            return
        yield from ((quad.subject, classes) for classes in self._kept_classes(quad.predicate, DOMAIN))
        yield from ((quad.object, classes) for classes in self._kept_classes(quad.predicate, RANGE))

    def implied(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        """Yield new type triples that `quads` imply, directly or through each other, if only one class is possible."""
        implied_quads = list(quads)
        for quad in implied_quads:
            for node, classes in self.implied_types(quad):
                type_quad = Quad(node, RDF_TYPE, classes[0])
                if len(classes) == 1 and type_quad not in implied_quads:
                    implied_quads.append(type_quad)
                    yield type_quad

    def completed(self, graph: Iterable[Quad]) -> Graph:
        """Return a graph with implied types added.

        Triples are left out if they imply a type of a literal, or if the source does not state them.
        """
        quads = {quad: None for quad in graph if self.states(quad)}
        while violations := list(self.violations(quads)):
            for quad, node, classes in violations:
                if isinstance(node, Literal):
                    quads.pop(quad, None)
                else:
                    quads[Quad(node, RDF_TYPE, classes[0], self.home)] = None
        return tuple(quads)

    def _kept_classes(self, name: IRI, relation: IRI) -> tuple[tuple[IRI, ...], ...]:
        """Return, for each statement that the data satisfy, the classes of which each instance has at least one."""
        if (name, relation) not in self._implied:
            stated_classes = self._statements.get((name, relation), ())
            classes = (self._certain_classes(name, relation, class_) for class_ in stated_classes)
            self._implied[name, relation] = tuple(filter(None, classes))
        return self._implied[name, relation]

    def _certain_classes(self, name: IRI, relation: IRI, class_: IRI) -> tuple[IRI, ...]:
        """Return the class if all instances have it, else it and its subclasses if all instances have one of them.

        Return an empty tuple if there is an exception, or no instance.
        """
        node = "?o" if relation == RANGE else "?s"
        pattern = f"?s a <{name.iri}>" if relation == SUBCLASS else f"?s <{name.iri}> ?o"
        if not self._ask(pattern):
            return ()
        if not self._ask(f"{pattern} FILTER NOT EXISTS {{ {node} a <{class_.iri}> }}"):
            return (class_,)
        classes = [class_]
        for superclass in classes if relation != SUBCLASS else ():
            classes += [subclass for subclass in self._subclasses[superclass] if subclass not in classes]
            if len(classes) > MAX_CLASSES:
                break
        if len(classes) == 1:
            return ()
        values = " ".join(f"<{subclass.iri}>" for subclass in classes)
        has_exception = self._ask(f"{pattern} FILTER NOT EXISTS {{ VALUES ?class {{ {values} }} {node} a ?class }}")
        return () if has_exception else tuple(classes)

    def _ask(self, pattern: str) -> bool:
        """Return whether the data match a pattern; True if the query fails, so that nothing is concluded."""
        answer = self._run(f"ASK {{ {pattern} }}")
        return answer is None or answer.rows != [(False,)]
