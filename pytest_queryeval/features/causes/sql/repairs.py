"""Repairs of SQL queries that a database refused: other names, another spelling, the words of its own dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from sqlglot import Dialect, Token, TokenType, exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import nearest
from pytest_queryeval.features.causes.repair import (
    MAX_CHARACTERS,
    MAX_SPELLINGS,
    PLAIN_QUOTES,
    FailedQuery,
    Repair,
    repairs,
)
from pytest_queryeval.features.causes.sql.changes import add_condition, drop_condition, write, writer
from pytest_queryeval.features.causes.sql.name_repairs import with_other_names
from pytest_queryeval.features.causes.sql.parts import clause_operands, query_within
from pytest_queryeval.languages.sql import ParsedQuery, parse_query
from pytest_queryeval.languages.sql.kind import name_label
from pytest_queryeval.languages.sql.parsing import without_warnings

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
_DIALECTS = ("mysql", "postgres", "tsql", "duckdb", "sqlite", "bigquery", "snowflake", "oracle", "spark")
# The extreme that a value is compared with, by the quantifier and the comparison.
_EXTREME_OF: dict[tuple[type[exp.Expr], type[exp.Expr]], type[exp.Expr]] = {
    (exp.All, exp.LT): exp.Min,
    (exp.All, exp.LTE): exp.Min,
    (exp.All, exp.GT): exp.Max,
    (exp.All, exp.GTE): exp.Max,
    (exp.Any, exp.LT): exp.Max,
    (exp.Any, exp.LTE): exp.Max,
    (exp.Any, exp.GT): exp.Min,
    (exp.Any, exp.GTE): exp.Min,
}


def sql_repairs(query: FailedQuery) -> Iterator[Repair]:
    """Yield queries that one change makes of a query that its database refused, by what its message says."""
    if len(query.text) > MAX_CHARACTERS:
        return
    tree, label = parse_query(query.text, query.dialect).whole_tree, name_label(query.message)
    if tree is not None:
        generator = writer(query.dialect)
        before = write(tree.copy(), generator) or query.text
        changed_trees = _rewritten(tree) if label is None else with_other_names(tree, query)
        texts = dict.fromkeys(filter(None, (write(changed_tree, generator) for changed_tree in changed_trees)))
        yield from repairs(before, texts, CLAUSE_OF, "SELECT")
    if label is None or tree is None:
        spellings = dict.fromkeys(chain(islice(respelled(query), MAX_SPELLINGS), _in_dialect(query)))
        readable = (text for text in spellings if ParsedQuery(text, query.dialect).whole_tree is not None)
        yield from repairs(query.text, readable, CLAUSE_OF, "SELECT")


def _rewritten(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the query without what few databases have: comparisons with ANY and ALL, parentheses around arms of UNION.

    A condition on groups in WHERE, which none has, moves to HAVING.
    """
    for rewrite in (_with_extremes, _with_having, _with_bare_arms):
        copy = tree.copy()
        if rewrite(copy):
            yield copy


def _with_extremes(tree: exp.Expr) -> bool:
    """Compare with the smallest or largest row where a value is compared with ANY or ALL rows."""
    quantified = list(tree.find_all(exp.Any, exp.All))
    for quantifier in quantified:
        select, comparison = query_within(quantifier.this), quantifier.parent or exp.Null()
        extreme = _EXTREME_OF.get((type(quantifier), type(comparison)))
        if isinstance(comparison, exp.EQ) and isinstance(quantifier, exp.Any) and select is not None:
            comparison.replace(exp.In(this=comparison.this.copy(), query=exp.Subquery(this=select.copy())))
        elif isinstance(select, exp.Select) and extreme is not None and len(select.expressions) == 1:
            select.expressions[0].replace(extreme(this=select.expressions[0].unalias().copy()))
            quantifier.replace(exp.Subquery(this=select.copy()))
        else:
            return False
    return bool(quantified)


def _with_having(tree: exp.Expr) -> bool:
    """Move the conditions on aggregates from WHERE to HAVING."""
    moved = False
    for select in list(tree.find_all(exp.Select)):
        for condition in clause_operands(select, "where"):
            aggregate = condition.find(exp.AggFunc)
            if aggregate is not None and aggregate.find_ancestor(exp.Select) is select:
                add_condition(select, clause="having", condition=condition)
                drop_condition(condition)
                moved = True
    return moved


def _with_bare_arms(tree: exp.Expr) -> bool:
    """Take the parentheses away from the arms of set operations; an arm with ORDER BY becomes a query in FROM."""
    arms = [arm for node in tree.find_all(exp.SetOperation) for arm in (node.this, node.expression)]
    changed = False
    for arm in arms:
        inner = query_within(arm)
        if inner is None:
            continue
        is_ordered = bool(inner.args.get("order") or inner.args.get("limit"))
        if isinstance(arm, exp.Subquery) and not is_ordered:
            arm.replace(inner.copy())
        elif is_ordered:
            arm.replace(exp.select("*").from_(exp.Subquery(this=inner.copy())))
        else:
            continue
        changed = True
    return changed


def _in_dialect(query: FailedQuery) -> Iterator[str]:
    """Yield the query in the words of its own dialect, read as one of another dialect."""
    for dialect in _DIALECTS:
        tree = ParsedQuery(query.text, dialect).whole_tree if dialect != query.dialect else None
        yield from filter(None, [tree and write(tree.copy(), writer(query.dialect))])


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
