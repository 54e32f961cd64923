"""Other spellings of a text that is not a SQL query: with one mistake of syntax less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from sqlglot import Dialect, Token, TokenType

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import nearest
from pytest_queryeval.features.causes.failed import PLAIN_QUOTES, FailedQuery
from pytest_queryeval.languages.sql.trees.parsing import without_warnings

CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT")  # in the order of a query
CLAUSE_OF = {
    **{word: word for word in CLAUSES},
    **dict.fromkeys(("JOIN", "ON", "USING"), "FROM"),
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), "SET"),
}
MAX_PLACES = 3  # of the token at which a database stopped reading
MAX_MISSING = 3  # parentheses
_WORDS = (
    *CLAUSE_OF,
    *("BY", "DISTINCT", "BETWEEN", "INNER", "LEFT", "OUTER", "LIKE", "AND", "OR", "NOT", "EXISTS", "DESC", "ASC"),
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "CASE", "WHEN", "THEN", "ELSE", "END", "OFFSET", "NULL"),
)
_GLUED = re.compile(r"\b(group|order)by\b", re.IGNORECASE)
_TRAILING_COMMA = re.compile(
    r",(?=\s*(?:\)|;|\Z|(?:from|where|group|having|order|limit|union|intersect|except)\b))", re.IGNORECASE
)
_NEAR = re.compile(r"""near (?:"([^"]+)"|'(\S+?)')""")
_BACKTICK_DIALECTS = ("mysql", "bigquery", "spark", "hive", "databricks")


def respelled(query: FailedQuery) -> Iterator[str]:
    """Yield the text with one mistake less: quotes, commas, parentheses, a misspelled word, what is too much."""
    text = query.text
    yield text.translate(PLAIN_QUOTES)
    yield _TRAILING_COMMA.sub("", text)
    yield text.replace("==", "=")
    yield text.replace("&&", " AND ").replace("||", " OR ")
    yield _GLUED.sub(r"\1 BY", text)
    for quote in "'\"`":
        if text.count(quote) % 2:
            yield text.rstrip("; \n") + quote
    if query.dialect not in _BACKTICK_DIALECTS:
        yield text.replace("`", '"')
    try:
        with without_warnings():
            tokens = Dialect.get_or_raise(query.dialect).tokenize(text)
    except Exception:  # noqa: BLE001 - of a text that is not a query, the tokenizer fails with any error
        return
    yield from _balanced(text, tokens)
    yield from _with_words(text, tokens, query.schema)
    yield from _in_order(text, tokens)
    near = {"".join(groups).lower() for groups in _NEAR.findall(query.message)}
    for token in [token for token in tokens if token.text.lower() in near][:MAX_PLACES]:
        yield text[: token.start] + text[token.end + 1 :]
        yield text[: token.start]


def _balanced(text: str, tokens: list[Token]) -> Iterator[str]:
    """Yield the text with a parenthesis more at the end or before a clause, or without one that opens nothing."""
    missing, unopened = 0, list[Token]()
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            missing += 1
        elif token.token_type is TokenType.R_PAREN and missing:
            missing -= 1
        elif token.token_type is TokenType.R_PAREN:
            unopened.append(token)
    if 0 < missing <= MAX_MISSING:
        yield text.rstrip("; \n") + ")" * missing
        for token in tokens:
            if token.text.partition(" ")[0].upper() in (*CLAUSE_OF, "AND", "OR", "AS"):
                yield f"{text[: token.start].rstrip()}{')' * missing} {text[token.start :]}"
    for token in unopened[:MAX_PLACES]:
        yield text[: token.start] + text[token.end + 1 :]


def _with_words(text: str, tokens: list[Token], schema: Schema) -> Iterator[str]:
    """Yield the text with a word of SQL in the place of a name that is spelled like it and the schema does not have."""
    names = {*schema.tables, *chain.from_iterable(schema.tables.values())}
    for token in tokens:
        is_name = token.token_type is TokenType.VAR and token.text.lower() not in names
        word = nearest(token.text, _WORDS) if is_name else ""
        if word and word != token.text.upper():
            yield text[: token.start] + word + text[token.end + 1 :]
        if is_name:  # FORM is as near to OR as to FROM
            anagrams = (word for word in _WORDS if sorted(word) == sorted(token.text.upper()))
            yield from (text[: token.start] + word + text[token.end + 1 :] for word in anagrams)


def _in_order(text: str, tokens: list[Token]) -> Iterator[str]:
    """Yield the text with its clauses in the order of SQL."""
    depth, places = 0, list[tuple[int, int]]()
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        word = token.text.partition(" ")[0].upper()
        if depth == 0 and word in CLAUSES:
            places.append((CLAUSES.index(word), token.start))
    ranks = [rank for rank, _ in places]
    starts = [start for _, start in places]
    ends = [*starts[1:], len(text.rstrip("; \n"))][: len(starts)]
    clauses = [(rank, text[start:end].strip()) for rank, start, end in zip(ranks, starts, ends, strict=True)]
    if ranks != sorted(ranks) and len({*ranks}) == len(ranks):
        yield text[: starts[0]] + " ".join(clause for _, clause in sorted(clauses))
