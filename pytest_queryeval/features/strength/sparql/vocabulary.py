"""What the vocabulary of a graph states about its data, and which of these statements the data keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from pytest_queryeval.core.table import IRI, Literal, Table
from pytest_queryeval.features.strength.sparql.terms import RDF_TYPE, RDFS, Graph, Quad, Term, as_term

Run: TypeAlias = Callable[[str], Table | None]
"""Runs a query on the graph; returns its answer, None if it fails."""

DOMAIN, RANGE, SUBCLASS = (IRI(f"{RDFS}{name}") for name in ("domain", "range", "subClassOf"))
MAX_STATEMENTS = 20_000
MAX_CLASSES = 50  # that an instance may have in place of a class
SAMPLES = 8  # triples of each predicate
_ANYWHERE = "{{ {{ {0} }} UNION {{ GRAPH ?graph {{ {0} }} }} }}"
STATEMENTS = (
    f"SELECT DISTINCT ?s ?p ?o WHERE {{ VALUES ?p {{ <{DOMAIN.iri}> <{RANGE.iri}> <{SUBCLASS.iri}> }} "
    f"{_ANYWHERE.format('?s ?p ?o')} FILTER (isIRI(?s) && isIRI(?o)) }} LIMIT {MAX_STATEMENTS}"
)


class Vocabulary:
    """Domains, ranges and superclasses that a graph states, as far as its data have instances and no exception.

    `run` runs queries on the graph; `home` is the name of its default graph, None for the unnamed one.
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
        """Return whether a triple may be in a small graph: a domain, range or superclass only as stated."""
        if quad.predicate not in (DOMAIN, RANGE, SUBCLASS):
            return True
        return isinstance(quad.subject, IRI) and quad.object in self._statements.get((quad.subject, quad.predicate), ())

    def pairs(self, relation: IRI) -> Iterator[tuple[IRI, IRI]]:
        """Yield each property or class with its domain, range or superclass, as `relation` says."""
        for (subject, predicate), classes in self._statements.items():
            if predicate == relation:
                yield from ((subject, class_) for class_ in classes)

    def samples(self, predicate: IRI) -> Sequence[tuple[Term, Term]]:
        """Return subjects and objects of some triples of the graph."""
        if predicate not in self._samples:
            pattern = _ANYWHERE.format(f"?s <{predicate.iri}> ?o")
            answer = self._run(f"SELECT ?s ?o WHERE {pattern} LIMIT {SAMPLES}")
            pairs = ((as_term(row[0]), as_term(row[1])) for row in (answer.rows if answer is not None else ()))
            self._samples[predicate] = [
                (subject, object_) for subject, object_ in pairs if subject is not None and object_ is not None
            ]
        return self._samples[predicate]

    def violations(self, graph: Iterable[Quad]) -> Iterator[tuple[Quad, Term, tuple[IRI, ...]]]:
        """Yield the triples that imply a missing type: with the node that lacks it, and the classes that it may be."""
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
        """Yield the types that a triple implies: a node, and the classes of which it has at least one."""
        if quad.predicate == RDF_TYPE:
            if isinstance(quad.object, IRI):
                yield from ((quad.subject, classes) for classes in self._kept_classes(quad.object, SUBCLASS))
            return
        yield from ((quad.subject, classes) for classes in self._kept_classes(quad.predicate, DOMAIN))
        yield from ((quad.object, classes) for classes in self._kept_classes(quad.predicate, RANGE))

    def implied(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        """Yield the triples with one certain class that triples of the default graph imply."""
        implied_quads = list(quads)
        for quad in implied_quads:
            for node, classes in self.implied_types(quad):
                type_quad = Quad(node, RDF_TYPE, classes[0])
                if len(classes) == 1 and type_quad not in implied_quads:
                    implied_quads.append(type_quad)
                    yield type_quad

    def completed(self, graph: Iterable[Quad]) -> Graph:
        """Return a graph with the types that are implied, without triples that no type could allow."""
        quads = {quad: None for quad in graph if self.states(quad)}
        while violations := list(self.violations(quads)):
            for quad, node, classes in violations:
                if isinstance(node, Literal):
                    quads.pop(quad, None)
                else:
                    quads[Quad(node, RDF_TYPE, classes[0], self.home)] = None
        return tuple(quads)

    def _kept_classes(self, name: IRI, relation: IRI) -> tuple[tuple[IRI, ...], ...]:
        """Return, for each statement that the data keep, the classes of which an instance has at least one."""
        if (name, relation) not in self._implied:
            stated_classes = self._statements.get((name, relation), ())
            classes = (self._classes_kept(name, relation, class_) for class_ in stated_classes)
            self._implied[name, relation] = tuple(filter(None, classes))
        return self._implied[name, relation]

    def _classes_kept(self, name: IRI, relation: IRI, class_: IRI) -> tuple[IRI, ...]:
        """Return the class, if all instances have it; else with its subclasses, if all have one; else nothing."""
        node = "?o" if relation == RANGE else "?s"
        pattern = f"?s a <{name.iri}>" if relation == SUBCLASS else f"?s <{name.iri}> ?o"
        if not self._ask(pattern):
            return ()
        if not self._ask(f"{pattern} FILTER NOT EXISTS {{ {node} a <{class_.iri}> }}"):
            return (class_,)
        classes = self._with_subclasses(class_)
        if relation == SUBCLASS or len(classes) == 1:
            return ()
        values = " ".join(f"<{subclass.iri}>" for subclass in classes)
        has_exception = self._ask(f"{pattern} FILTER NOT EXISTS {{ VALUES ?class {{ {values} }} {node} a ?class }}")
        return () if has_exception else classes

    def _with_subclasses(self, class_: IRI) -> tuple[IRI, ...]:
        """Return a class, and its direct and indirect subclasses."""
        classes = [class_]
        for superclass in classes:
            classes += [subclass for subclass in self._subclasses[superclass] if subclass not in classes]
            if len(classes) > MAX_CLASSES:
                break
        return tuple(classes)

    def _ask(self, pattern: str) -> bool:
        """Return whether the data have a pattern; True if that is unknown, so that nothing is concluded."""
        answer = self._run(f"ASK {{ {pattern} }}")
        return answer is None or answer.rows != [(False,)]
