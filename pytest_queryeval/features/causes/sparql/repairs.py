"""Repairs of SPARQL queries that an engine refused: prefixes that are not declared, and mistakes of syntax."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from pytest_queryeval.core.errors import nearest
from pytest_queryeval.features.causes import FailedQuery, Mistake, Repair, repairs, respelled
from pytest_queryeval.languages.sparql.query import (
    COMMON_PREFIXES,
    declared_prefixes,
    read_query,
)
from pytest_queryeval.languages.sparql.source_terms import local_name
from pytest_queryeval.languages.sparql.tree import terms
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

MAX_NAMESPACES = 3  # that are tried for a prefix
_CLAUSES = {
    **{word: word for word in ("PREFIX", "SELECT", "WHERE", "FILTER", "BIND", "GROUP", "HAVING", "ORDER", "LIMIT")},
    "ASK": "WHERE",
    "{": "WHERE",
    "FROM": "FROM",
    "OFFSET": "LIMIT",
}
_COMPARISON = r"\?\w+\s*(?:!=|[<>]=?|=)\s*(?:\?\w+|<[^<>\s]*>|\"[^\"]*\"(?:@[\w-]+|\^\^\S+)?|[\w:.+-]*\w)"
_MISTAKES: Sequence[Mistake] = (
    (re.compile(r"(?<=[a-z0-9_])(?=(?:(?:ORDER|GROUP)\s+BY|HAVING|LIMIT|OFFSET|WHERE)\b)"), " "),  # `?xORDER BY`
    (re.compile(r"<([^<>\"{}|^`\\]*\s[^<>\"{}|^`\\]*)>"), r'"\1"'),  # a text in the place of an IRI
    (re.compile(rf"\bFILTER\s+({_COMPARISON})"), r"FILTER(\1)"),
    (re.compile(rf"(?<=[.{{])(\s*)({_COMPARISON})(?=\s*[.}}])"), r"\1FILTER(\2)"),
)


def sparql_repairs(query: FailedQuery) -> Iterator[Repair]:
    """Yield queries that one change makes of a query that its engine refused."""
    prefixes = {} if query.source is None else declared_prefixes(query.source.settings)
    undeclared = [name for name in read_query(query.text).undeclared_prefixes if name not in prefixes]
    if undeclared:
        yield from repairs(query.text, _with_prefixes(query, undeclared, prefixes), _CLAUSES, "PREFIX")
    else:
        for text in dict.fromkeys(respelled(read_query(query.text).text, _MISTAKES)):
            with suppress(UnreadableError):
                read_tree(text, prefixes)
                yield from repairs(query.text, [text], _CLAUSES, "SELECT")


def _with_prefixes(query: FailedQuery, undeclared: Sequence[str], prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield the query with its prefixes declared as in gold, in the source (`prefixes`), or as is common.

    Others get the namespaces of gold, those first whose names the query uses.
    """
    outline, gold = read_query(query.text), read_query(query.gold)
    namespace_by_prefix = {**COMMON_PREFIXES, **prefixes, **gold.prefixes}
    try:
        iris = [term for term in terms(read_tree(query.gold, prefixes).tree) if term.startswith("<")]
    except UnreadableError:
        iris = []
    namespaces = Counter(iri[1:].removesuffix(f"{local_name(iri)}>") for iri in iris)
    choices: list[list[str]] = []
    for name in undeclared:
        names = {token.text.partition(":")[2] for token in outline.tokens if token.text.startswith(f"{name}:")}
        shared = Counter(iri[1:].removesuffix(f"{local_name(iri)}>") for iri in {*iris} if local_name(iri) in names)
        alike = nearest(name, [*outline.prefixes]) if name else ""
        ranked = sorted(namespaces, key=lambda namespace: (-shared[namespace], -namespaces[namespace]))
        likely = namespace_by_prefix.get(name) or outline.prefixes.get(alike)
        choices.append([*dict.fromkeys((*filter(None, [likely]), *ranked))][:MAX_NAMESPACES])
    for place in range(max(map(len, choices)) if all(choices) else 0):
        iris_of_names = [choice[min(place, len(choice) - 1)] for choice in choices]
        declared = (f"PREFIX {name}: <{iri}>\n" for name, iri in zip(undeclared, iris_of_names, strict=True))
        yield "".join(declared) + query.text
