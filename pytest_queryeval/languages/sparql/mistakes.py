"""Mistakes in SPARQL that parsers report as terms of the grammar which they expect, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from pytest_queryeval.languages.sparql.query import FORMS, QueryOutline, Token, is_absolute
from pytest_queryeval.text.formatting import one_line

_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_IRI_WITHOUT_BRACKETS = re.compile(r"\bPREFIX\s+(?P<name>[\w.-]*:)\s*(?P<iri>[^\s<>{}]+)", re.IGNORECASE)
_PREFIX_WITHOUT_COLON = re.compile(r"\bPREFIX\s+(?P<name>[\w.-]+)\s*(?P<iri><[^\s<>{}]*>)", re.IGNORECASE)
_SHOWN_CHARACTERS = 60


def known_mistake(query: QueryOutline) -> str:
    """Return what is wrong in a query that an engine refused, and what to write; empty for an unknown mistake.

    >>> from pytest_queryeval.languages.sparql.query import read_query
    >>> known_mistake(read_query("SELECT COUNT(?s) { ?s ?p ?o }"))
    'an aggregate in SELECT needs a name: write (COUNT(?s) AS ?n)'
    >>> known_mistake(read_query("SELECT ?s { ?s a <Singer> }"))
    'the IRI <Singer> is relative: write it in full, as in <http://example.org/Singer>, or add BASE <…>'
    """
    rules = (_of_prologue, _of_select, _of_modifiers, _of_patterns)
    return next(chain.from_iterable(rule(query) for rule in rules), "")


def _of_prologue(query: QueryOutline) -> Iterator[str]:
    if match := _IRI_WITHOUT_BRACKETS.search(query.text):
        iri = one_line(match["iri"], _SHOWN_CHARACTERS)
        yield f"the IRI of a prefix stands in angle brackets: write PREFIX {match['name']} <{iri}>"
    if match := _PREFIX_WITHOUT_COLON.search(query.text):
        yield f"the name of a prefix ends with a colon: write PREFIX {match['name']}: {match['iri']}"


def _of_select(query: QueryOutline) -> Iterator[str]:
    head = query.tokens[1 : query.first_clause]
    for place, (token, next_token) in enumerate(pairwise(head)):
        if token.depth == 0 and token.is_word("TOP") and next_token.kind == "number":
            yield f"SPARQL has no TOP: write LIMIT {next_token.text} at the end of the query"
        if token.kind == "variable" and next_token.text == "," and next_token.depth == 0:
            yield "variables of SELECT are separated by spaces: remove the comma"
        if token.is_word(*_AGGREGATES) and next_token.text == "(":
            yield from _of_aggregate(query.text, head[place:])


def _of_aggregate(text: str, head: Sequence[Token]) -> Iterator[str]:
    """Yield what is wrong with the aggregate at the beginning of these tokens, unless it stands as `(… AS ?name)`."""
    depth = head[0].depth
    end = next((place for place, token in enumerate(head[2:], start=2) if token.depth == depth), None)
    if end is None:
        return
    call = one_line(text[head[0].start : head[end].end], _SHOWN_CHARACTERS)
    after = head[end + 1 : end + 3]
    if depth == 0 and len(after) == 2 and after[0].is_word("AS"):
        yield f"an aggregate and its name stand in parentheses: write ({call} AS {after[1].text})"
    elif depth == 0 or (depth == 1 and after and after[0].text == ")"):
        yield f"an aggregate in SELECT needs a name: write ({call} AS ?n)"


def _of_modifiers(query: QueryOutline) -> Iterator[str]:
    if query.form in FORMS and any(token.depth == 0 and token.is_word(*FORMS) for token in query.tokens[1:]):
        yield "these are several queries: write one; several right queries are a list under `gold_any`"
    limit, order = query.modifier_index("LIMIT"), query.modifier_index("ORDER")
    if limit is not None and order is not None and limit < order:
        yield "LIMIT has to come after ORDER BY: move it there"
    if (group := query.modifier_index("GROUP")) is None:
        return
    grouped_names = {token.text for token in query.tokens[group:] if token.kind == "variable"}
    for token in query.tokens[1 : query.first_clause]:
        if token.depth == 0 and token.kind == "variable" and token.text not in grouped_names:
            yield f"{token.text} is selected, but not in GROUP BY: add it there, or aggregate it"


def _of_patterns(query: QueryOutline) -> Iterator[str]:
    for token, next_token in pairwise(query.tokens):
        if token.is_word("FILTER") and next_token.kind == "variable":
            yield f"the condition of FILTER needs parentheses: write FILTER ({next_token.text} …)"
        if next_token.is_word("NULL"):
            yield "SPARQL has no NULL: write BOUND(?x) for `?x != NULL`, !BOUND(?x) for `?x = NULL`"
        if token.kind == "iri" and not query.states_base and not is_absolute(token.text[1:-1]):
            name = one_line(token.text[1:-1], _SHOWN_CHARACTERS)
            full = f"<http://example.org/{name.lstrip('/#')}>"
            yield f"the IRI <{name}> is relative: write it in full, as in {full}, or add BASE <…>"
