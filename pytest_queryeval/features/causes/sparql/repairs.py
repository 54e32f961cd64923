"""Repairs of SPARQL queries that an engine refused: undeclared prefixes, and mistakes of syntax."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise

from pytest_queryeval.core.errors import nearest
from pytest_queryeval.features.causes import MAX_SPELLINGS, PLAIN_QUOTES, FailedQuery, Repair, in_order, repairs
from pytest_queryeval.languages.sparql.mistakes import HASH_IN_NAME, prose_after
from pytest_queryeval.languages.sparql.query import (
    BRACKETS,
    COMMON_PREFIXES,
    Token,
    declared_prefixes,
    read_query,
    tokens,
)
from pytest_queryeval.languages.sparql.source_terms import local_name
from pytest_queryeval.languages.sparql.tree import COUNTING, Item, Writer, has_aggregate, is_variable, terms
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

MAX_NAMESPACES = 3  # that are tried for a prefix
MAX_MISSING = 3  # brackets
MAX_BACK = 3  # tokens before the place where reading ended, at which a pattern may have ended
_CLAUSES = {
    **{word: word for word in ("PREFIX", "SELECT", "WHERE", "FILTER", "BIND", "GROUP", "HAVING", "ORDER", "LIMIT")},
    "ASK": "WHERE",
    "{": "WHERE",
    "FROM": "FROM",
    "OFFSET": "LIMIT",
}
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")  # in the order of a query
_WORDS = (
    *("SELECT", "DISTINCT", "WHERE", "FILTER", "OPTIONAL", "UNION", "MINUS", "BIND", "VALUES", "GRAPH", "EXISTS"),
    *(*_MODIFIERS, "NOT", "BY", "ASC", "DESC", "PREFIX", "CONTAINS", "REGEX", "STRSTARTS", "BOUND", "LCASE", *COUNTING),
)
_GLUED = re.compile(r"(?<=[a-z0-9_])(?=(?:(?:ORDER|GROUP)\s+BY|HAVING|LIMIT|OFFSET|WHERE)\b)")
_NO_IRI = re.compile(r"<([^<>\"{}|^`\\]*\s[^<>\"{}|^`\\]*)>")
_OPERATORS = (("==", "="), ("<>", "!="), (" AND ", " && "), (" and ", " && "), (" OR ", " || "), (" or ", " || "))
_COMPARISON = re.compile(
    r"(\?\w+\s*(?:!=|[<>]=?|=)\s*(?:\?\w+|<[^<>\s]*>|\"[^\"]*\"(?:@[\w-]+|\^\^\S+)?|[\w:.+-]*\w))\s*(?=[.}]|\Z)"
)
_OPEN_FILTER = re.compile(r"\bFILTER\s+(?=\?)([^{}\n]*?)(?=\s*(?:\.\s|\}|\n))", re.IGNORECASE)
_PLACE = re.compile(r"error at (\d+):(\d+)|line:(\d+), col:(\d+)|line (\d+), column (\d+) of the query")


def sparql_repairs(query: FailedQuery) -> Iterator[Repair]:
    """Yield repairs, by one change each, of a query that its engine refused.

    Prose after the query is removed first, or undeclared prefixes are declared; otherwise mistakes of syntax are fixed.
    """
    prefixes = {} if query.source is None else declared_prefixes(query.source.settings)
    outline = read_query(query.text)
    undeclared = [name for name in outline.undeclared_prefixes if name not in prefixes]
    if (prose := prose_after(outline.tokens)) is not None:
        yield from repairs(query.text, [outline.text[: prose.start].rstrip()], _CLAUSES, "SELECT")
    elif undeclared:
        yield from repairs(query.text, _with_prefixes(query, undeclared, prefixes), _CLAUSES, "PREFIX")
    else:
        spellings = dict.fromkeys(islice(chain(_grouped(query), _respelled(query)), MAX_SPELLINGS))
        for text in spellings:
            with suppress(UnreadableError):
                read_tree(text, prefixes)
                yield from repairs(query.text, [text], _CLAUSES, "SELECT")


def _with_prefixes(query: FailedQuery, undeclared: Sequence[str], prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield the query with its undeclared prefixes declared, as in gold, in the source (`prefixes`) or as is common.

    Other prefixes get the namespaces of gold; namespaces whose names the query uses come first.
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


def _grouped(query: FailedQuery) -> Iterator[str]:
    """Yield the query with a GROUP BY of all variables that it selects next to an aggregate.

    Yield nothing if it has a GROUP BY, or cannot be read.
    """
    try:
        tree = read_tree(query.text).tree
    except UnreadableError:
        return
    plain = tuple(Item(item.value) for item in tree.items if is_variable(item.value.head) and not item.alias)
    if plain and not tree.group and any(has_aggregate(item.value) for item in tree.items):
        outline = read_query(query.text)
        places = [place for place in map(outline.modifier_index, _MODIFIERS) if place is not None]
        start = min((outline.tokens[place].start for place in places), default=len(outline.text))
        clause = "GROUP BY " + Writer({}).line(plain)
        yield f"{outline.text[:start].rstrip()} {clause} {outline.text[start:]}".rstrip()


def _respelled(query: FailedQuery) -> Iterator[str]:
    """Yield texts with one mistake fixed: of words, brackets or operators, or at the place in the error message."""
    text = read_query(query.text).text
    yield _GLUED.sub(" ", text)
    yield text.translate(PLAIN_QUOTES)
    yield _NO_IRI.sub(r'"\1"', text)
    yield HASH_IN_NAME.sub(r"\g<start>\\#", text)
    for operator, right_operator in _OPERATORS:
        yield text.replace(operator, right_operator)
    yield _OPEN_FILTER.sub(r"FILTER(\1)", text)
    for match in _COMPARISON.finditer(text):
        yield f"{text[: match.start()]}FILTER({match[1]}) {text[match.end() :]}"
    text_tokens = tokens(text)
    yield from _lifted(text, text_tokens)
    yield from _with_columns(text, text_tokens)
    yield from _balanced(text, text_tokens)
    yield from _in_order(text, text_tokens)
    for token in text_tokens:
        word = nearest(token.text, _WORDS) if token.kind == "word" and token.text.upper() not in _WORDS else ""
        if word:
            yield text[: token.start] + word + text[token.end :]
    lines = text.split("\n")
    for groups in _PLACE.findall(query.message):
        line, column = (int(number) for number in groups if number)
        offset = sum(len(line_text) + 1 for line_text in lines[: line - 1]) + column - 1
        ends = [token.end for token in text_tokens if token.end <= offset]
        yield f"{text[:offset].rstrip()} . {text[offset:]}"
        yield from (
            text[: ends[-1 - back]] + " ." + text[ends[-1 - back] :] for back in range(min(MAX_BACK, len(ends)))
        )
        token_there = next((token for token in text_tokens if token.start <= offset < token.end), None)
        if token_there is not None:
            yield text[: token_there.start] + text[token_there.end :]


def _with_columns(text: str, text_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield texts with a corrected SELECT: without commas, and with aggregates in parentheses and with a name."""
    start = next((place for place, token in enumerate(text_tokens) if token.is_word("SELECT")), None)
    if start is None:
        return
    end = next((place for place in range(start, len(text_tokens)) if text_tokens[place].text == "{"), len(text_tokens))
    outer = text_tokens[start].depth
    head = text_tokens[start:end]
    if any(token.text == "," and token.depth == outer for token in head):
        column_tokens = [token for token in head if token.text != "," or token.depth > outer]
        yield text[: head[0].start] + " ".join(token.text for token in column_tokens) + text[head[-1].end :]
    inserted: dict[int, str] = {}
    count = 0
    for place, token in enumerate(head):
        if not token.is_word(*COUNTING):
            continue
        closing = next(
            (at for at in range(place, len(head)) if head[at].text == ")" and head[at].depth == token.depth), None
        )
        if closing is None:
            return
        has_name = closing + 2 < len(head) and head[closing + 1].is_word("AS")
        last = head[closing + 2] if has_name else head[closing]
        count += 1
        name = "" if has_name else f" AS ?{token.text.lower()}{count if count > 1 else ''}"
        if token.depth == outer:
            inserted[token.start] = "("
            inserted[last.end] = f"{name})"
        elif token.depth == outer + 1 and [
            token.text for token in (head[place - 1], *head[closing + 1 : closing + 2])
        ] == ["(", ")"]:
            inserted[last.end] = name
    if any(inserted.values()):
        cuts = [0, *sorted(inserted), len(text)]
        yield "".join(inserted.get(cut, "") + text[cut:next_cut] for cut, next_cut in pairwise(cuts))


def _lifted(text: str, text_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield texts in which a subquery in a FILTER is a group before it."""
    start = None
    for before, token in pairwise(text_tokens):
        start = token.start if token.is_word("FILTER") else start
        if start is None or before.text != "(" or not token.is_word("SELECT"):
            continue
        ends = (other for other in text_tokens if other.start > token.start and other.text == ")")
        end = next((other for other in ends if other.depth == before.depth), None)
        if end is not None:
            query = text[token.start : end.start]
            for named in (*_with_columns(query, tokens(query)), query):
                names = [part.text for part in tokens(named.partition("{")[0]) if part.kind == "variable"]
                yield f"{text[:start]}{{ {named} }} {text[start : before.start]}{''.join(names[-1:])}{text[end.end :]}"
        return


def _balanced(text: str, text_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield texts with missing brackets added at the end or before modifiers, or with a wrong bracket fixed."""
    opened: list[Token] = []
    for token in text_tokens:
        if token.text in BRACKETS:
            opened.append(token)
        elif token.text in BRACKETS.values():
            if not opened or BRACKETS[opened[-1].text] != token.text:
                yield text[: token.start] + text[token.end :]
                if opened:
                    yield text[: token.start] + BRACKETS[opened[-1].text] + text[token.start :]
                return
            opened.pop()
    if 0 < len(opened) <= MAX_MISSING:
        missing = "".join(BRACKETS[token.text] for token in reversed(opened))
        places = [token.start for token in text_tokens if token.is_word(*_MODIFIERS)]
        for place in (*places, len(text)):
            yield f"{text[:place].rstrip()} {missing} {text[place:]}".rstrip()


def _in_order(text: str, text_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the text with its modifiers in SPARQL's order, after the pattern if they stand at the end of the pattern.

    Yield nothing if they are in order.
    """
    modifiers = [token for token in text_tokens if token.depth <= 1 and token.is_word(*_MODIFIERS)]
    ranks = [_MODIFIERS.index(token.text.upper()) for token in modifiers]
    is_inside = bool(modifiers) and modifiers[0].depth == 1 and text.rstrip().endswith("}")
    if not is_inside and ranks == sorted(ranks):
        return
    starts = [token.start for token in modifiers]
    ordered = in_order(text, starts, ranks, len(text.rstrip()) - is_inside)
    yield f"{text[: starts[0]].rstrip()} {'}' if is_inside else ''} {ordered}"
