"""The IRIs in the triple patterns of a query that its source does not have, and the nearest ones that it has.

SPARQL answers nothing if a term does not occur, without an error.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, TypeAlias

from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.core.table import Literal as RDFLiteral
from pytest_queryeval.languages.sparql.tree import Select, Triple, Writer, walk
from pytest_queryeval.languages.sparql.tree_reader import RDF_TYPE, UnreadableError, read_tree

Role: TypeAlias = Literal["property", "class", "node"]
MAX_LOOKUPS = 1_000  # on a service, in a run
MAX_FAILED_LOOKUPS = 10
MAX_LISTED_TERMS = 20_000  # of each role
MAX_READ_SOLUTIONS = 200_000  # for the list of a role
MIN_LIKENESS = 0.5
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
    """A term of a query that the source does not have."""

    term: str
    """The IRI in angle brackets, or a name whose prefix the query does not declare."""
    nearest: str | None
    """The IRI of the source that is most like it by name or label, in angle brackets."""
    text: str
    """Both in words, with the prefixes of the query."""
    change: str
    """The term and the nearest one around an arrow; where there is none, the words."""


class SourceTerms:
    """The terms of a source, looked up by queries and kept.

    `run` answers a query on the source, None if it fails; it may raise `SourceError`. `prefixes` are those of the
    source. A source that `is_local` lists its terms, so that all of them are candidates for the nearest one.
    """

    def __init__(self, run: Callable[[str], Table | None], prefixes: Mapping[str, str], *, is_local: bool) -> None:
        self._run = run
        self._prefixes = prefixes
        self._is_local = is_local
        self._occurrences: dict[str, bool | None] = {}
        self._names: dict[Role, _Names] = {}
        self._nearest: dict[tuple[str, Role], str | None] = {}

    def unknown_terms(self, query: str, golds: Sequence[str]) -> list[UnknownTerm] | None:
        """Return the terms of a query that the source does not have, in the order of the query.

        None if the query cannot be read, and if a lookup failed and all others have found their term. The terms
        of golds are the candidates for the nearest ones of a service. Raise `SourceError`.
        """
        try:
            tree = read_tree(query, self._prefixes)
        except UnreadableError:
            return None
        dataset = "".join(f"{part} " for part in tree.tree.dataset)
        roles = term_roles(tree.tree)
        occurrences = {term: self._occurs(term, role, dataset) for term, role in roles.items()}
        unknown = [term for term, occurs in occurrences.items() if occurs is False]
        if not unknown and None in occurrences.values():
            return None
        writer = Writer({**tree.prefixes, **self._prefixes, **tree.prefixes})  # the first of equal IRIs is written
        return [self._described(term, roles[term], golds, writer) for term in unknown]

    def _described(self, term: str, role: Role, golds: Sequence[str], writer: Writer) -> UnknownTerm:
        nearest = self._nearest_of(term, role) if self._is_local else self._nearest_in(golds, term, role)
        name = writer.term(term)
        text = f"{name} is not in the graph"
        if nearest is None or nearest == term:
            text += " of FROM, but in another" if nearest else ""
            return UnknownTerm(term, None, text, text)
        nearest_name = writer.term(nearest)
        return UnknownTerm(term, nearest, f"{text}; {nearest_name} is", f"{name} → {nearest_name}")

    def _occurs(self, term: str, role: Role, dataset: str) -> bool | None:
        """Return whether a term occurs in any triple; None if the source does not answer that."""
        if self._is_local and not term.startswith("<"):  # only services know prefixes that nothing declares
            return None
        anywhere = _union(f"{term} ?p ?o", f"?s {term} ?o", f"?s ?p {term}")
        for patterns in (_USES[role].format(term), _in_any_graph(anywhere)):
            query = f"ASK {dataset}{{ {patterns} }}"
            if query not in self._occurrences:
                lookups = [*self._occurrences.values()]
                if not self._is_local and (len(lookups) >= MAX_LOOKUPS or lookups.count(None) >= MAX_FAILED_LOOKUPS):
                    return None
                answer = self._run(query)
                self._occurrences[query] = None if answer is None else bool(answer.rows[0][0])
            if self._occurrences[query] is not False:
                break
        return self._occurrences[query]

    def _nearest_of(self, term: str, role: Role) -> str | None:
        if role not in self._names:
            self._names[role] = _Names(self._terms_with_names(role))
        if (term, role) not in self._nearest:
            self._nearest[term, role] = self._names[role].nearest(term)
        return self._nearest[term, role]

    def _nearest_in(self, golds: Sequence[str], term: str, role: Role) -> str | None:
        """Return the nearest term among those of golds that have the same role."""
        names: list[tuple[str, str]] = []
        for gold in golds:
            try:
                gold_roles = term_roles(read_tree(gold, self._prefixes).tree)
            except UnreadableError:
                continue
            names += [(gold_term, local_name(gold_term)) for gold_term in gold_roles if gold_roles[gold_term] == role]
        return _Names(names).nearest(term)

    def _terms_with_names(self, role: Role) -> Iterable[tuple[str, str]]:
        """Yield the terms that the source has in a role, each with its local name and with each of its labels."""
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
    """Return the IRIs in triple patterns, also within EXISTS; those in data and templates are not of the source."""
    roles: dict[str, Role] = {}
    for node in walk(replace(tree, template=None)):
        if isinstance(node, Triple):
            is_typed = not {"a", _SUBCLASS}.isdisjoint(node.path)
            roles.setdefault(node.subject, "node")
            for step in node.path:
                roles.setdefault(RDF_TYPE if step == "a" else step, "property")
            roles.setdefault(node.object, "class" if is_typed else "node")
    return {term: role for term, role in roles.items() if _TERM.fullmatch(term)}


def local_name(term: str) -> str:
    """Return the last part of an IRI in angle brackets, or what follows the prefix of a name."""
    match = _LOCAL_NAME.search(term.strip("<>").rstrip("#/"))
    return match[0] if match else ""


def _in_any_graph(patterns: str) -> str:
    return _union(patterns, f"GRAPH ?g {{ {patterns} }}")


def _union(*patterns: str) -> str:
    return " UNION ".join(f"{{ {pattern} }}" for pattern in patterns)


class _Names:
    """Terms by the trigrams of their names."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._terms: list[tuple[str, int]] = []  # with the number of trigrams
        self._places: dict[str, list[int]] = defaultdict(list)
        for term, name in dict.fromkeys(names):
            trigrams = _trigrams(name)
            for trigram in trigrams:
                self._places[trigram].append(len(self._terms))
            self._terms.append((term, len(trigrams)))

    def nearest(self, term: str) -> str | None:
        """Return the term whose name is most like that of `term`, by the Dice coefficient of trigrams of characters.

        Of several, one with the same beginning, then the first by name. None if none is alike.
        """
        trigrams = _trigrams(local_name(term))
        shared = Counter(chain.from_iterable(self._places.get(trigram, ()) for trigram in trigrams))
        namespace = term.removesuffix(f"{local_name(term)}>")
        candidates = [
            (2 * count / (len(trigrams) + self._terms[place][1]), self._terms[place][0])
            for place, count in shared.items()
            if 3 * count >= len(trigrams)  # fewer are less than MIN_LIKENESS
        ]
        likeness, nearest = min(
            candidates, key=lambda pair: (-pair[0], not pair[1].startswith(namespace), pair[1]), default=(0.0, "")
        )
        return nearest if likeness >= MIN_LIKENESS else None


def _trigrams(name: str) -> set[str]:
    words = " ".join(_WORD.findall(name[:MAX_NAME_CHARACTERS])).lower()
    padded = f"  {words} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)} if words else set()
