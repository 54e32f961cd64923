"""Queries in a form that every engine reads: some refuse spellings that SPARQL allows, or take them for other ones.

A query without such a spelling stays as it is. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from pytest_queryeval.languages.sparql.blazegraph import NOTHING, Change, hint_changes, label_changes
from pytest_queryeval.languages.sparql.query import (
    MODIFIERS,
    WORD,
    Token,
    read_query,
    resolve,
    tokens,
    unescaped,
)
from pytest_queryeval.languages.sparql.tree import COUNTING

NO_VALUE = "(1 AS ?queryeval)"
MAX_ADDED = 10_000  # characters of expressions, which may double with each column
_NEW_AT_EACH_CALL = ("RAND", "UUID", "STRUUID", "BNODE")
_PLAIN_NAME = re.compile(r"(?:[A-Za-z_][\w-]*)?", re.ASCII)
_LOCAL_NAME = re.compile(rf"(?:[:{WORD}]|%[0-9A-Fa-f]{{2}}|\\[_~.!$&'()*+,;=/?#@%-]|(?<!\A)-|(?<!\A)\.++(?!\Z))*+")
_LOCAL_ESCAPE = re.compile(r"\\(.)")
_OLD_LINE_END = re.compile(r"#[^\r\n]*\r(?!\n)")


@lru_cache(maxsize=64)
def portable(query: str) -> str:
    """Return a query of the same meaning in spellings that every engine reads alike. Cached.

    >>> portable("PREFIX f: <http://f/> ASK { ?s f:people.person.name TRUE }")
    'PREFIX f: <http://f/> ASK { ?s <http://f/people.person.name> true }'
    """
    text, query_tokens = query, tokens(query)
    for changes in (
        _code_points,
        _hints,
        _labels,
        _spellings,
        _repeated_columns,
        _columns_in_columns,
        _groups_of_other_forms,
    ):
        new_text = _changed(text, changes(text, query_tokens))
        if new_text != text:
            text, query_tokens = new_text, tokens(new_text)
    return text


def _changed(text: str, changes: Iterable[Change]) -> str:
    pieces, place = list[str](), 0
    for start, end, new_text in changes:
        pieces += [text[place:start], new_text]
        place = end
    return "".join([*pieces, text[place:]])


def _code_points(text: str, query_tokens: Sequence[Token]) -> Iterator[Change]:
    """Yield changes that decode escaped code points outside of strings; within strings they are no delimiters."""
    strings = [(token.start, token.end) for token in query_tokens if token.kind == "string"]
    place = 0
    for start, end in [*strings, (len(text), len(text))]:
        if "\\" in text[place:start]:
            yield place, start, unescaped(text[place:start])
        place = end


def _labels(_: str, query_tokens: Sequence[Token]) -> Iterable[Change]:
    """Return changes that bind labels as the label service of Wikidata does."""
    return sorted(label_changes(query_tokens, _namespaces(query_tokens)))


def _hints(_: str, query_tokens: Sequence[Token]) -> Iterable[Change]:
    """Yield changes that leave out the hints of Blazegraph."""
    return hint_changes(query_tokens, _namespaces(query_tokens))


def _spellings(text: str, query_tokens: Sequence[Token]) -> Iterator[Change]:
    """Yield changes of spellings that some parsers refuse.

    Names become IRIs, `TRUE` and `FALSE` lower case, and terms of several tokens lose their blanks.
    """
    iris = _namespaces(query_tokens)
    prologue = len(query_tokens) - len(read_query(text).tokens)
    last = Token("end", "", len(text), len(text), 0)
    for place, (token, next_token) in enumerate(pairwise((*query_tokens, last))):
        prefix, _, local = token.text.partition(":")
        if token.kind == "name" and place >= prologue and prefix in iris and not _PLAIN_NAME.fullmatch(local):
            if _LOCAL_NAME.fullmatch(local):
                iri = iris[prefix] + _LOCAL_ESCAPE.sub(r"\1", local)
                yield token.start, token.end, f"<{iri}>"
        elif token.is_word("TRUE", "FALSE") and not token.text.islower():
            yield token.start, token.end, token.text.lower()
        elif token.text == "(" and next_token.text == ")" and place and query_tokens[place - 1].text == "!":
            yield token.start, token.end, NOTHING
        elif token.text == ")" and place > 1 and [part.text for part in query_tokens[place - 2 : place]] == ["!", "("]:
            yield token.start, token.end, ""
        gap = text[token.end : next_token.start]
        begins_suffix = token.kind == "string" and (next_token.kind == "language" or next_token.text == "^")
        ends_suffix = token.text == "^" and place and query_tokens[place - 1].text == "^"
        is_step = (token.kind in ("iri", "name") or token.text in ("a", ")")) and next_token.text in ("*", "+", "?")
        if gap.isspace() and (begins_suffix or ends_suffix or is_step):
            yield token.end, next_token.start, ""
        elif token.text == "a" and next_token.kind == "variable" and not gap:
            yield token.end, next_token.start, " "
        elif _OLD_LINE_END.search(gap):
            yield token.end, next_token.start, _OLD_LINE_END.sub("\n", gap)


def _namespaces(query_tokens: Sequence[Token]) -> dict[str, str]:
    """Return the IRIs of the declared prefixes, without colon; relative IRIs are resolved by the BASE before them."""
    base, iris = "", dict[str, str]()
    for token, name, iri in zip(query_tokens, query_tokens[1:], query_tokens[2:], strict=False):
        if token.is_word("BASE") and name.kind == "iri":
            base = resolve(name.text[1:-1], base)
        elif token.is_word("PREFIX") and name.kind == "name" and iri.kind == "iri":
            iris[name.text[:-1]] = resolve(iri.text[1:-1], base)
    return iris


def _heads(query_tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens between each SELECT and its pattern."""
    for place, token in enumerate(query_tokens):
        if token.is_word("SELECT"):
            following_tokens = (query_tokens[number] for number in range(place + 1, len(query_tokens)))
            yield [*takewhile(lambda part: part.text != "{" and not part.is_word("SELECT"), following_tokens)]


def _repeated_columns(_: str, query_tokens: Sequence[Token]) -> Iterator[Change]:
    for head in _heads(query_tokens):
        names = set[str]()
        for token in head:
            if token.kind == "variable" and token.depth == head[0].depth:
                if token.text[1:] in names:
                    yield token.start, token.end, ""
                names.add(token.text[1:])


def _columns_in_columns(text: str, query_tokens: Sequence[Token]) -> Iterator[Change]:
    """Yield changes that replace the names of earlier columns by their expressions, in queries with aggregates.

    They end once they would add more than MAX_ADDED characters; further names stay.
    """
    added = 0
    for head in _heads(query_tokens):
        if not any(token.is_word(*COUNTING) for token in head):
            continue
        expressions, column = dict[str, str](), list[Token]()
        for token in head:
            if token.depth > head[0].depth:
                column.append(token)
            elif token.text == "(":
                column = []
            elif token.text == ")" and len(column) > 2 and column[-2].is_word("AS"):
                *expression, _, name = column
                uses = [part for part in expression if part.kind == "variable" and part.text[1:] in expressions]
                changes = [(part.start, part.end, expressions[part.text[1:]]) for part in uses]
                added += sum(len(new_text) for _, _, new_text in changes)
                if added > MAX_ADDED:
                    return
                yield from changes
                if not any(part.is_word(*_NEW_AT_EACH_CALL) for part in expression):
                    start, end = expression[0].start, expression[-1].end
                    moved = ((begin - start, stop - start, new_text) for begin, stop, new_text in changes)
                    expressions[name.text[1:]] = f"({_changed(text[start:end], moved)})"


def _groups_of_other_forms(text: str, _: Sequence[Token]) -> Iterator[Change]:
    """Yield changes that move pattern and modifiers of ASK, CONSTRUCT and DESCRIBE into a subquery.

    Nothing is yielded for a query without groups and aggregates.
    """
    outline = read_query(text)
    if outline.form in ("", "SELECT"):
        return
    starts = [place for place in map(outline.modifier_index, MODIFIERS) if place is not None]
    modifiers = outline.tokens[min(starts, default=len(outline.tokens)) :]
    braces = [token for token in outline.tokens[: -len(modifiers) or None] if token.text == "{" and token.depth == 0]
    if not braces or not any(token.is_word("GROUP", "HAVING", *COUNTING) for token in modifiers):
        return
    keys = takewhile(lambda token: not token.is_word("HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES"), modifiers)
    names = [
        token.text
        for previous_token, token in pairwise(keys)
        if token.kind == "variable" and (token.depth == 0 or previous_token.is_word("AS"))
    ]
    pattern = braces[-1].start
    if outline.form == "CONSTRUCT" and len(braces) == 1:
        template = text[pattern : modifiers[0].start].rstrip()
        yield outline.tokens[0].end, outline.tokens[0].end, f" {template}"
    yield pattern, pattern, f"{{ SELECT {' '.join(names) or NO_VALUE} WHERE "
    yield len(text), len(text), " }"
