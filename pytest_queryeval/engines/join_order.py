"""The order in which rdflib matches the triples of a basic graph pattern.

rdflib takes them almost as they are written: `?a a :Unit . ?b a :Sensor . ?a :feeds ?b` makes all pairs of units and
sensors before it matches the triple that connects them. Here the next triple shares a variable with an earlier one if
possible; among several candidates it is the one with the fewest expected matches. Imported by a child process.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

from rdflib import BNode, Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, Path, SequencePath
from rdflib.plugins.sparql.evaluate import evalBGP
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext

Triple: TypeAlias = tuple[Any, Any, Any]
IsFixed: TypeAlias = Callable[[Any], bool]

MAX_TRIPLES = 64  # of a pattern that is ordered; the time grows with their square
MAX_OBJECTS = 1_000  # of a predicate whose triples are counted by object, such as rdf:type
PATH_STEPS = 10.0  # the expected matches of a path, as a multiple of those of a triple


class PredicateCounts:
    """How many triples have a predicate, and how many different subjects and objects these have."""

    def __init__(self) -> None:
        self.triples = 0
        self.by_object: Counter[Any] = Counter()
        self._subjects: set[Any] = set()
        self.subjects = self.objects = 0

    def add(self, subject: Any, object_: Any) -> None:
        """Count a triple."""
        self.triples += 1
        self._subjects.add(subject)
        self.by_object[object_] += 1

    def close(self) -> None:
        """Reduce the sets of terms to their sizes."""
        self.subjects, self.objects = len(self._subjects), len(self.by_object)
        self._subjects = set()
        if self.objects > MAX_OBJECTS:
            self.by_object = Counter()


class TripleCounts:
    """The numbers of triples in a dataset, by predicate."""

    def __init__(self) -> None:
        self._by_predicate: defaultdict[Any, PredicateCounts] = defaultdict(PredicateCounts)
        self._triples = 0

    def add(self, triple: Triple) -> None:
        """Count a triple."""
        self._by_predicate[triple[1]].add(triple[0], triple[2])

    def close(self) -> None:
        """Reduce the sets of terms to their sizes; to be called once all triples are counted."""
        for counts in self._by_predicate.values():
            counts.close()
        self._triples = sum(counts.triples for counts in self._by_predicate.values())

    def expected_matches(self, triple: Triple, is_fixed: IsFixed) -> float:
        """Return how many matches a triple has on average, where its constants and some variables are fixed."""
        subject, predicate, object_ = triple
        if isinstance(predicate, Path | Variable | BNode):
            ends = is_fixed(subject) + is_fixed(object_)
            matches = math.pow(self._triples, 1 - ends / 2)
            return matches * PATH_STEPS if isinstance(predicate, Path) else matches
        counts = self._by_predicate.get(predicate)
        if counts is None:
            return 0.0
        matches = float(counts.triples)
        if is_fixed(subject):
            matches /= counts.subjects
        if counts.by_object and not isinstance(object_, Variable | BNode):
            matches *= counts.by_object[object_] / counts.triples
        elif is_fixed(object_):
            matches /= counts.objects
        return matches


class JoinOrder:
    """Evaluates the basic graph patterns of one query; for rdflib's `CUSTOM_EVALS`."""

    def __init__(self, counts: TripleCounts) -> None:
        self._counts = counts
        # By the id of the pattern, which is kept alive so that no other object gets this id, and its bound variables.
        self._orders: dict[tuple[int, frozenset[Any]], tuple[CompValue, list[Triple]]] = {}
        self._variables: dict[int, frozenset[Any]] = {}

    def __call__(self, ctx: QueryContext, part: CompValue) -> Generator[FrozenBindings, None, None]:
        """Evaluate a basic graph pattern; raises NotImplementedError for all others, which rdflib evaluates itself."""
        if part.name != "BGP" or not 1 < len(part.triples) <= MAX_TRIPLES:
            raise NotImplementedError
        variables = self._variables.get(id(part))
        if variables is None:
            variables = self._variables[id(part)] = frozenset(v for triple in part.triples for v in unknowns(triple))
        bound_variables = frozenset(variable for variable in variables if ctx[variable] is not None)
        key = id(part), bound_variables
        if key not in self._orders:
            self._orders[key] = part, self.ordered(part.triples, bound_variables)
        return evalBGP(ctx, self._orders[key][1])

    def ordered(self, triples: Sequence[Triple], bound_variables: frozenset[Any]) -> list[Triple]:
        """Return the triples in the order in which to match them, where some variables are bound before.

        How often rdflib finds a match of a path that may be empty depends on which of its ends are bound: such a path
        stays where rdflib has it, and those before and after it are ordered among themselves.
        """
        bound_terms = set(bound_variables)
        order: list[Triple] = []
        span: list[Triple] = []
        for triple in sorted(triples, key=lambda triple: sum(term not in bound_variables for term in unknowns(triple))):
            if may_be_empty(triple[1]):
                order += [*self._connect(span, bound_terms), triple]
                bound_terms.update(unknowns(triple))
                span = []
            else:
                span.append(triple)
        return order + self._connect(span, bound_terms)

    def _connect(self, triples: list[Triple], bound_terms: set[Any]) -> list[Triple]:
        """Return the triples, each connected with earlier ones where possible; add their variables to `bound_terms`."""

        def is_fixed(term: Any) -> bool:
            return term in bound_terms or not isinstance(term, Variable | BNode)

        def cost(place: int) -> tuple[bool, float, int]:
            variables = unknowns(triples[place])
            new_variables = [variable for variable in variables if variable not in bound_terms]
            is_apart = bool(bound_terms and new_variables and len(new_variables) == len(variables))
            return is_apart, self._counts.expected_matches(triples[place], is_fixed), len(new_variables)

        remaining_places = list(range(len(triples)))
        order = []
        while remaining_places:
            best_place = min(remaining_places, key=cost)
            remaining_places.remove(best_place)
            order.append(triples[best_place])
            bound_terms.update(unknowns(triples[best_place]))
        return order


def may_be_empty(predicate: Any) -> bool:
    """Return whether it is a path of which a part may be empty, by `*` or `?`."""
    if isinstance(predicate, MulPath):
        return predicate.zero or may_be_empty(predicate.path)
    if isinstance(predicate, InvPath):
        return may_be_empty(predicate.arg)
    return isinstance(predicate, SequencePath | AlternativePath) and any(map(may_be_empty, predicate.args))


def unknowns(triple: Triple) -> list[Any]:
    """Return the variables of a triple, among which are its blank nodes."""
    return [term for term in triple if isinstance(term, Variable | BNode)]
