"""The IRIs in the triple patterns of a query that its source does not have, and the nearest ones that it has.

SPARQL answers nothing if a term does not occur, without an error.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.core.table import Literal as RDFLiteral
from pytest_queryeval.languages.sparql.tree import (
    Data,
    Element,
    Expr,
    Filter,
    Group,
    Node,
    Select,
    Triple,
    Writer,
    is_variable,
    walk,
)
from pytest_queryeval.languages.sparql.tree_facts import required_steps, why_empty
from pytest_queryeval.languages.sparql.tree_reader import RDF_TYPE, UnreadableError, read_tree

Role: TypeAlias = Literal["property", "class", "node"]
MAX_LOOKUPS = 1_000  # on a service, in a run
MAX_FAILED_LOOKUPS = 10
MAX_LISTED_TERMS = 20_000  # of each role
MAX_READ_SOLUTIONS = 200_000  # for the list of a role
# Of names. Of 88 terms of gold with at least 0.5, 83 are what the query means; of other terms of the data 58 of 62 with
# at least 0.65, and less than half of those below (wrong predictions for one building and for ck25).
MIN_LIKENESS_OF_GOLD = 0.5
MIN_LIKENESS = 0.65
MAX_NAME_CHARACTERS = 100
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_USES: Mapping[Role, str] = {"property": "?s {0} ?o", "class": "?s ?p {0}", "node": "?s ?p {0}"}
_PATTERNS: Mapping[Role, str] = {
    "property": "?s ?term ?o",
    "class": f"{{ ?s a ?term }} UNION {{ ?term a <{_OWL}Class> }} UNION {{ ?term a <{_RDFS}Class> }}",
    "node": "?term ?p ?o",
}
_SUBCLASS = f"<{_RDFS}subClassOf>"
_TERM = re.compile(r"<[^<>\"{}|^`\\\x00-\x20]*+>|(?!_:)[\w.-]*+:[\w:.%-]*+")
_LOCAL_NAME = re.compile(r"[^#/:]*\Z")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class UnknownTerm:
    """A term of a query that the source does not have, with the nearest term that it has."""

    term: str
    """The IRI in angle brackets, or a name whose prefix the query does not declare."""
    nearest: str | None
    """The IRI of the source that is most like it by name or label, in angle brackets."""
    text: str
    """Both in words, with the prefixes of the query."""
    change: str
    """The term and the nearest one around an arrow; where there is none, the words."""
    is_required: bool
    """Whether the query finds nothing because of it: not in OPTIONAL, for instance, or in one arm of UNION."""
    is_of_gold: bool = False
    """Whether gold has the nearest term."""


class SourceTerms:
    """Looks up terms in a source by queries, and keeps the answers.

    `run` answers a query on the source, None if it fails; it may raise `SourceError`. `prefixes` are those of the
    source. A source that `is_local` lists its terms, so that all of them are candidates for the nearest term.
    """

    def __init__(self, run: Callable[[str], Table | None], prefixes: Mapping[str, str], *, is_local: bool) -> None:
        self._run = run
        self._prefixes = prefixes
        self._is_local = is_local
        self._answers: dict[str, bool | None] = {}
        self._names: dict[Role, _TermIndex] = {}
        self._nearest: dict[tuple[str, Role], Sequence[str]] = {}

    def unknown_terms(self, query: str, golds: Sequence[str]) -> list[UnknownTerm] | None:
        """Return the terms of a query that the source does not have, in the order of the query.

        None if the query cannot be read, or if a lookup failed and no term is known to be missing. Terms of golds are
        preferred as nearest terms; for a service only they are candidates. Raises `SourceError`.
        """
        try:
            tree = read_tree(query, self._prefixes)
        except UnreadableError:
            return None
        dataset = _dataset(tree.tree)
        roles = term_roles(tree.tree)
        occurrences = {term: self._occurs(term, role, dataset) for term, role in roles.items()}
        unknown = [term for term, occurs in occurrences.items() if occurs is False]
        if not unknown:
            return None if None in occurrences.values() else []
        writer = Writer({**tree.prefixes, **self._prefixes, **tree.prefixes})  # the first of equal IRIs is written
        roles_of_golds = [*self._roles_of(gold for gold in golds if gold != query)]
        where = tree.tree.where or Group(())
        required = {*why_empty(where, lambda element: unknown_in(element, unknown))}
        lists = [_listed_iris(node)[1:] for node in walk(where) if isinstance(node, Data | Filter)]
        spared = {term for listed in lists if not {*listed} <= {*unknown} for term in listed} - required
        return [
            self._described(term, roles[term], roles_of_golds, writer, tree.tree, is_required=term in required)
            for term in unknown
            if term not in spared
        ]

    def finds(self, patterns: str, tree: Select) -> bool | None:
        """Return whether patterns have a solution in any graph of a query's dataset.

        None if the source does not answer.
        """
        return self._ask(f"ASK {_dataset(tree)}{{ {_in_any_graph(patterns)} }}")

    def _roles_of(self, golds: Iterable[str]) -> Iterator[Mapping[str, Role]]:
        for gold in golds:
            with suppress(UnreadableError):
                yield term_roles(read_tree(gold, self._prefixes).tree)

    def _described(
        self,
        term: str,
        role: Role,
        roles_of_golds: Sequence[Mapping[str, Role]],
        writer: Writer,
        tree: Select,
        *,
        is_required: bool,
    ) -> UnknownTerm:
        if is_of_gold := any(term in roles for roles in roles_of_golds):  # and needs no other term
            nearest = term if self._occurs(term, role, "") else None
        else:
            nearest = self._nearest_of_golds(term, roles_of_golds, role)
            is_of_gold = nearest is not None
            if nearest is None and self._is_local:
                nearest = self._nearest_of(term, role, tree)
        name = writer.term(term)
        text = f"{name} is not in the graph"
        if nearest is None or nearest == term:
            text += " of FROM, but in another" if nearest else ""
            return UnknownTerm(term, None, text, text, is_required)
        nearest_name = writer.term(nearest)
        change = f"{name} → {nearest_name}"
        return UnknownTerm(term, nearest, f"{text}; {nearest_name} is", change, is_required, is_of_gold)

    def _occurs(self, term: str, role: Role, dataset: str) -> bool | None:
        """Return whether a term occurs in any triple of the dataset; None if the source does not answer."""
        if self._is_local and not term.startswith("<"):  # only services know prefixes that nothing declares
            return None
        anywhere = _union(f"{term} ?p ?o", f"?s {term} ?o", f"?s ?p {term}")
        for patterns in (_USES[role].format(term), _in_any_graph(anywhere)):
            occurs = self._ask(f"ASK {dataset}{{ {patterns} }}")
            if occurs is not False:
                break
        return occurs

    def _ask(self, query: str) -> bool | None:
        if query not in self._answers:
            lookups = [*self._answers.values()]
            if not self._is_local and (len(lookups) >= MAX_LOOKUPS or lookups.count(None) >= MAX_FAILED_LOOKUPS):
                return None
            answer = self._run(query)
            self._answers[query] = None if answer is None else bool(answer.rows[0][0])
        return self._answers[query]

    def _nearest_of(self, term: str, role: Role, tree: Select) -> str | None:
        """Return the nearest term of the source; None if none is near.

        Of equally near properties, a property that the class of its subject has comes first.
        """
        if (term, role) not in self._nearest:
            self._nearest[term, role] = self._names_of(role).nearest(term, MIN_LIKENESS)
        nearest = self._nearest[term, role]
        triples = [node for node in walk(tree) if isinstance(node, Triple)]
        subjects = {triple.subject for triple in triples if term in triple.path}
        types = [triple.object for triple in triples if triple.subject in subjects and triple.path == ("a",)]
        for candidate in nearest if role == "property" and len(nearest) > 1 else ():
            if any(self.finds(f"?s a {name} ; {candidate} ?o", tree) for name in types if name.startswith("<")):
                return candidate
        return next(iter(nearest), None)

    def _nearest_of_golds(self, term: str, roles_of_golds: Iterable[Mapping[str, Role]], role: Role) -> str | None:
        """Return the nearest term among those of golds with the same role which the source has.

        None if none is near.
        """
        gold_terms = {name for roles in roles_of_golds for name in roles if roles[name] == role}
        labels = self._names_of(role).names if self._is_local else {}
        names = [(name, text) for name in gold_terms for text in (local_name(name), *labels.get(name, ()))]
        nearest = _TermIndex(names).nearest(term, MIN_LIKENESS_OF_GOLD)
        return next((name for name in nearest if self._occurs(name, role, "")), None)

    def _names_of(self, role: Role) -> _TermIndex:
        if role not in self._names:
            self._names[role] = _TermIndex(self._terms_with_names(role))
        return self._names[role]

    def _terms_with_names(self, role: Role) -> Iterable[tuple[str, str]]:
        """Yield the IRIs that the source has in a role: with their local name, and again with each `rdfs:label`.

        At most MAX_LISTED_TERMS are listed; none if the query fails.
        """
        solutions = f"SELECT ?term {{ {_in_any_graph(_PATTERNS[role])} }} LIMIT {MAX_READ_SOLUTIONS}"
        terms = f"SELECT DISTINCT ?term {{ {{ {solutions} }} FILTER(isIRI(?term)) }} LIMIT {MAX_LISTED_TERMS}"
        label = _in_any_graph(f"?term <{_RDFS}label> ?label")
        table = self._run(f"SELECT ?term ?label {{ {{ {terms} }} OPTIONAL {{ {label} }} }}")
        for term, label_cell in () if table is None else table.rows:
            if isinstance(term, IRI):
                yield f"<{term.iri}>", local_name(f"<{term.iri}>")
                if isinstance(label_cell, RDFLiteral):
                    yield f"<{term.iri}>", label_cell.lexical


def term_roles(tree: Select) -> dict[str, Role]:
    """Return the roles of the IRIs in triple patterns, and in lists of VALUES and IN for variables there.

    Patterns within EXISTS count too. Other IRIs, such as those of templates, need not be in the source.
    """
    roles: dict[str, Role] = {}
    where = tree.where or Group(())
    for triple in (node for node in walk(where) if isinstance(node, Triple)):
        for name, role in _roles(triple):
            roles.setdefault(name, role)
    required = why_empty(where, lambda element: [element] if isinstance(element, Triple) else [])
    roles_of_variables = {name: role for triple in required for name, role in _roles(triple)}
    for node in walk(where):
        if isinstance(node, Data | Filter):
            variable, *listed = _listed_iris(node)
            for name in listed if variable in roles_of_variables else ():
                roles.setdefault(name, roles_of_variables[variable])
    return {term: role for term, role in roles.items() if _TERM.fullmatch(term)}


def _roles(triple: Triple) -> Iterator[tuple[str, Role]]:
    """Yield the subject, the steps of the path and the object of a triple with their roles."""
    yield triple.subject, "node"
    for step in triple.path:
        yield RDF_TYPE if step == "a" else step, "property"
    yield triple.object, "node" if {"a", _SUBCLASS}.isdisjoint(triple.path) else "class"


def _listed_iris(node: Node) -> Sequence[str]:
    """Return the only variable of VALUES, or that of IN, followed by the IRIs that it may be; [""] for other nodes."""
    match node:
        case Data(parts) if len(names := [part for part in parts if is_variable(part)]) == 1:
            return [*names, *(part for part in parts if part.startswith("<"))]
        case Filter(Expr("IN", (Expr(variable), *listed))):
            return [variable, *(term.head for term in listed if isinstance(term, Expr) and term.head.startswith("<"))]
    return [""]


def unknown_in(element: Element, unknown: Collection[str]) -> list[str]:
    """Return the unknown terms because of which an element has no solution; of a list of values all or none."""
    if isinstance(element, Triple):
        steps = [RDF_TYPE if step == "a" else step for step in required_steps(element.path)]
        return [term for term in (element.subject, *steps, element.object) if steps and term in unknown]
    _, *listed = _listed_iris(element)
    return listed if {*listed} <= {*unknown} else []


def local_name(term: str) -> str:
    """Return the last part of an IRI in angle brackets, or the part of a name after its prefix."""
    match = _LOCAL_NAME.search(term.strip("<>").rstrip("#/"))
    return match[0] if match else ""


def are_alike(term: str, gold_term: str) -> bool:
    """Return whether a term of gold has a local name so similar to that of another term that it may be meant."""
    return bool(_TermIndex([(gold_term, local_name(gold_term))]).nearest(term, MIN_LIKENESS_OF_GOLD))


def words(name: str) -> list[str]:
    """Return the words of a name in lower case.

    >>> words("Air_HandlingUnit2")
    ['air', 'handling', 'unit', '2']
    """
    return [word.lower() for word in _WORD.findall(name[:MAX_NAME_CHARACTERS])]


def _dataset(tree: Select) -> str:
    return "".join(f"{part} " for part in tree.dataset)


def _in_any_graph(patterns: str) -> str:
    return _union(patterns, f"GRAPH ?g {{ {patterns} }}")


def _union(*patterns: str) -> str:
    return " UNION ".join(f"{{ {pattern} }}" for pattern in patterns)


class _TermIndex:
    """An index of terms by the trigrams of their names."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self.names: dict[str, list[str]] = defaultdict(list)
        self._terms: list[tuple[str, int]] = []  # with the number of trigrams
        self._places: dict[str, list[int]] = defaultdict(list)
        for term, name in dict.fromkeys(names):
            self.names[term].append(name)
            trigrams = _trigrams(name)
            for trigram in trigrams:
                self._places[trigram].append(len(self._terms))
            self._terms.append((term, len(trigrams)))

    def nearest(self, term: str, least: float) -> Sequence[str]:
        """Return the terms whose names are most similar to that of `term`, by the Dice coefficient of their trigrams.

        Terms with the same namespace come first, then by name. Empty if all are less similar than `least`.
        """
        trigrams = _trigrams(local_name(term))
        shared = Counter(chain.from_iterable(self._places.get(trigram, ()) for trigram in trigrams))
        namespace = term.removesuffix(f"{local_name(term)}>")
        likeness = {place: 2 * count / (len(trigrams) + self._terms[place][1]) for place, count in shared.items()}
        most = max(likeness.values(), default=0.0)
        terms = (self._terms[place][0] for place in likeness if likeness[place] == most >= least)
        return sorted({*terms}, key=lambda name: (not name.startswith(namespace), name))


def _trigrams(name: str) -> set[str]:
    padded = f"  {' '.join(words(name))} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)} if padded.strip() else set()
