"""Mistakes in SPARQL that parsers report as terms of the grammar which they expect, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from pytest_queryeval.languages.sparql.query import FORMS, QueryOutline, Token, is_absolute
from pytest_queryeval.text.formatting import one_line

_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_IRI_WITHOUT_BRACKETS = re.compile(r"\bPREFIX\s+(?P<name>[\w.-]*:)\s*(?P<iri>[^\s<>{}]+)", re.IGNORECASE)
_PREFIX_WITHOUT_COLON = re.compile(r"\bPREFIX\s+(?P<name>[\w.-]+)\s*(?P<iri><[^\s<>{}]*>)", re.IGNORECASE)
_LATE_WORDS = ("WHERE", "GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "VALUES")
HASH_IN_NAME = re.compile(r"(?<![\w<:/.?$-])(?P<start>[\w.-]*:[\w.-]+)#(?=\w)")
"""A name with a prefix up to a `#`, which begins a comment there."""
_SHOWN_CHARACTERS = 60


class Mistake(NamedTuple):
    """A mistake in a query: the place where it begins, and a message with the remedy."""

    start: int
    problem: str


def known_mistake(query: QueryOutline) -> Mistake | None:
    """Return the first known mistake in a query that an engine refused; None if none is known.

    >>> from pytest_queryeval.languages.sparql.query import read_query
    >>> known_mistake(read_query("SELECT COUNT(?s) { ?s ?p ?o }"))
    Mistake(start=7, problem='an aggregate in SELECT needs a name: write (COUNT(?s) AS ?n)')
    >>> known_mistake(read_query("SELECT ?s { ?s a <Singer> }")).problem
    'the IRI <Singer> is relative: write it in full, as in <http://example.org/Singer>, or add BASE <…>'
    """
    rules = (_of_prologue, _of_select, _of_modifiers, _of_patterns)
    return next(chain.from_iterable(rule(query) for rule in rules), None)


def _of_prologue(query: QueryOutline) -> Iterator[Mistake]:
    if match := _IRI_WITHOUT_BRACKETS.search(query.text):
        iri = one_line(match["iri"], _SHOWN_CHARACTERS)
        yield Mistake(
            match.start("iri"), f"the IRI of a prefix needs angle brackets: write PREFIX {match['name']} <{iri}>"
        )
    if match := _PREFIX_WITHOUT_COLON.search(query.text):
        problem = f"the name of a prefix ends with a colon: write PREFIX {match['name']}: {match['iri']}"
        yield Mistake(match.start("name"), problem)


def _of_select(query: QueryOutline) -> Iterator[Mistake]:
    head = query.tokens[1 : query.first_clause]
    for place, (token, next_token) in enumerate(pairwise(head)):
        if token.depth == 0 and token.is_word("TOP") and next_token.kind == "number":
            problem = f"SPARQL has no TOP: write LIMIT {next_token.text} at the end of the query"
            yield Mistake(token.start, problem)
        if token.kind == "variable" and next_token.text == "," and next_token.depth == 0:
            yield Mistake(next_token.start, "SELECT separates variables by spaces: remove the comma")
        if token.is_word(*_AGGREGATES) and next_token.text == "(":
            yield from _of_aggregate(query.text, head[place:])


def _of_aggregate(text: str, head: Sequence[Token]) -> Iterator[Mistake]:
    """Yield the mistake of an aggregate in SELECT that is not written as `(… AS ?name)`.

    `head` begins with the aggregate.
    """
    depth = head[0].depth
    end = next((place for place, token in enumerate(head[2:], start=2) if token.depth == depth), None)
    if end is None:
        return
    call = one_line(text[head[0].start : head[end].end], _SHOWN_CHARACTERS)
    after = head[end + 1 : end + 3]
    if depth == 0 and len(after) == 2 and after[0].is_word("AS"):
        problem = f"an aggregate and its name need parentheses: write ({call} AS {after[1].text})"
        yield Mistake(head[0].start, problem)
    elif depth == 0 or (depth == 1 and after and after[0].text == ")"):
        yield Mistake(head[0].start, f"an aggregate in SELECT needs a name: write ({call} AS ?n)")


def prose_after(tokens: Sequence[Token]) -> Token | None:
    """Return the first token of sentences that follow a query; None if there are none.

    Sentences are two words in a row behind the query's closing brace that are no keywords of its end.
    """
    closing = next((at for at, token in enumerate(tokens) if token.text == "}" and token.depth == 0), len(tokens))
    foreign = [
        (at, token)
        for at, token in enumerate(tokens[closing + 1 : -1], start=closing + 1)
        if token.depth == 0 and token.kind in ("word", "name") and not token.is_word(*_LATE_WORDS, *FORMS)
    ]
    is_sentence = any(next_at == at + 1 for (at, _), (next_at, _) in pairwise(foreign))
    return foreign[0][1] if is_sentence else None


def _of_modifiers(query: QueryOutline) -> Iterator[Mistake]:
    seconds = (
        token
        for before, token in pairwise(query.tokens)
        if token.depth == 0 and token.is_word(*FORMS) and before.kind != "word"  # as in a sentence
    )
    second = next(seconds, None)
    if query.form in FORMS and second is not None:
        problem = "a second query begins here: write one, or a list of right queries under `gold_any`"
        yield Mistake(second.start, problem)
    elif (prose := prose_after(query.tokens)) is not None:
        yield Mistake(prose.start, "text that is not SPARQL follows the query: remove it")
    limit, order = query.modifier_index("LIMIT"), query.modifier_index("ORDER")
    if limit is not None and order is not None and limit < order:
        yield Mistake(query.tokens[limit].start, "LIMIT has to come after ORDER BY: move it there")
    if (group := query.modifier_index("GROUP")) is None:
        return
    grouped_names = {token.text for token in query.tokens[group:] if token.kind == "variable"}
    for token in query.tokens[1 : query.first_clause]:
        if token.depth == 0 and token.kind == "variable" and token.text not in grouped_names:
            problem = f"{token.text} is selected, but not in GROUP BY: add it there, or aggregate it"
            yield Mistake(token.start, problem)


def _of_patterns(query: QueryOutline) -> Iterator[Mistake]:
    if match := HASH_IN_NAME.search(query.text):
        problem = f"`#` begins a comment: write {match['start']}\\#… or the IRI in angle brackets"
        yield Mistake(match.end("start"), problem)
    for token, next_token in pairwise(query.tokens):
        if token.is_word("FILTER") and next_token.kind == "variable":
            problem = f"the condition of FILTER needs parentheses: write FILTER ({next_token.text} …)"
            yield Mistake(next_token.start, problem)
        if token.text == "(" and next_token.is_word("SELECT"):
            problem = "SPARQL has no subquery in an expression: write { SELECT … } before it, and compare its variable"
            yield Mistake(next_token.start, problem)
        if next_token.is_word("NULL"):
            problem = "SPARQL has no NULL: write BOUND(?x) for `?x != NULL`, !BOUND(?x) for `?x = NULL`"
            yield Mistake(next_token.start, problem)
        if token.kind == "iri" and not query.states_base and not is_absolute(token.text[1:-1]):
            name = one_line(token.text[1:-1], _SHOWN_CHARACTERS)
            full = f"<http://example.org/{name.lstrip('/#')}>"
            problem = f"the IRI <{name}> is relative: write it in full, as in {full}, or add BASE <…>"
            yield Mistake(token.start, problem)
