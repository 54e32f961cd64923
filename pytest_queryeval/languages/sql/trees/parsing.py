"""The tree of an untrusted query, by sqlglot."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sqlglot import Dialect, ErrorLevel, ParseError, Token, TokenType, exp
from sqlglot.errors import SqlglotError, TokenError

from pytest_queryeval.text.truncation import one_line

# Counts instead of time limits: what can be read must not depend on the machine. People's queries are far below them.
MAX_CHARACTERS = 50_000
MAX_NESTING = 40
# The parser reads twice what follows a JOIN without ON, and an error within LATERAL: each one doubles its time.
MAX_OPEN_JOINS = 8
MAX_LATERALS = 6
MAX_SUBSCRIPTS = 200  # for each one in a row the parser copies all before it

MESSAGE_CHARACTERS = 200
_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE))
_NESTED_TYPES = frozenset((TokenType.ARRAY, TokenType.STRUCT, TokenType.MAP, TokenType.LIST, TokenType.NULLABLE))
_JOIN_CONDITIONS = frozenset((TokenType.ON, TokenType.USING))
_SET_OPERATIONS = frozenset((TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT))
_CLAUSES = (TokenType.JOIN, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)
# What may follow the word LIMIT unless it is the name of a column.
_AMOUNTS = frozenset(
    (
        *(TokenType.NUMBER, TokenType.DASH, TokenType.NULL, TokenType.ALL, TokenType.L_PAREN),
        *(TokenType.PARAMETER, TokenType.PLACEHOLDER, TokenType.COLON),
    )
)
_AFTER_LISTS = frozenset((*_CLOSING, *_SET_OPERATIONS, TokenType.FROM, TokenType.SEMICOLON))
_TRAILING_COMMAS = frozenset(("bigquery", "clickhouse", "duckdb", "snowflake"))


class UnreadableError(Exception):
    """No query can be found in the text; the message says why."""


class Parsed(NamedTuple):
    """The tree of a query; `broken` says what is wrong where only a part of the text could be read."""

    tree: exp.Expr
    broken: str = ""


def parse(query: str, dialect: str) -> Parsed:
    """Return the tree of the one query in a text, or of what can be read of it; raise `UnreadableError` without one."""
    if len(query) > MAX_CHARACTERS:
        raise UnreadableError(f"longer than {MAX_CHARACTERS} characters")
    broken = ""
    try:
        with _without_warnings():
            rules = _dialect(dialect)
            tokens = rules.tokenize(query)
            check_budgets(tokens)
            try:
                trees = rules.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, query)
            except ParseError as error:
                broken = _first_line(error)
                trees = rules.parser(error_level=ErrorLevel.IGNORE).parse(tokens, query)
                for tree in trees:
                    _fill_missing_parts(tree)
    except UnreadableError:
        raise
    except RecursionError as error:
        raise UnreadableError("nested too deeply") from error
    except Exception as error:  # the parser makes trees that its builders do not expect, and fails with any error
        raise UnreadableError(_first_line(error)) from error
    statements = [tree for tree in trees if tree is not None]
    if not statements:
        raise UnreadableError("the text holds no statement")
    if not isinstance(statements[0], exp.Query | exp.Values):
        raise UnreadableError(broken or f"no query but {statements[0].key.upper()}")
    if len(statements) > 1:
        broken = broken or f"{len(statements)} statements, not one"
    return Parsed(statements[0], broken or _misplaced(tokens, type(rules).__name__.lower()))


_dialect = lru_cache(maxsize=64)(Dialect.get_or_raise)


def _misplaced(tokens: Sequence[Token], dialect: str) -> str:
    """Describe what only the parser accepts: clauses in another order, a list without an item."""
    open_clauses: list[tuple[int, str]] = [(0, "")]  # the last one within each open bracket
    for place, token in enumerate(tokens):
        kind, clause, (last, name) = token.token_type, _clause(tokens, place), open_clauses[-1]
        where = f"line {token.line}, column {token.col}"
        if kind is TokenType.COMMA and _misses_item(tokens, place, dialect):
            return f"a comma without an item, {where}"
        if kind in _OPENING:
            open_clauses.append((0, ""))
        elif kind in _CLOSING and len(open_clauses) > 1:
            open_clauses.pop()
        elif clause is not None:
            swaps = dialect == "oracle" and {kind, _CLAUSES[last]} == {TokenType.GROUP_BY, TokenType.HAVING}
            if clause < last and not swaps:
                return f"{token.text.upper()} after {name}, {where}"
            open_clauses[-1] = (clause, token.text.upper())
        elif kind in _SET_OPERATIONS or kind is TokenType.PIPE_GT:
            if last >= _CLAUSES.index(TokenType.ORDER_BY) and kind is not TokenType.PIPE_GT and dialect != "clickhouse":
                return f"{token.text.upper()} after {name}, {where}"
            open_clauses[-1] = (0, "")
    return ""


def _clause(tokens: Sequence[Token], place: int) -> int | None:
    """Return the index in `_CLAUSES` of the clause that begins here; None in a hint: `USE INDEX FOR ORDER BY (i)`."""
    kind = tokens[place].token_type
    if place and tokens[place - 1].token_type is TokenType.FOR:
        return None
    if kind is TokenType.LIMIT and (place + 1 == len(tokens) or tokens[place + 1].token_type not in _AMOUNTS):
        return None
    return _CLAUSES.index(kind) if kind in _CLAUSES else None


def _misses_item(tokens: Sequence[Token], comma: int, dialect: str) -> bool:
    if tokens[comma - 1].token_type in (TokenType.SELECT, TokenType.COMMA):
        return True
    if dialect in _TRAILING_COMMAS:
        return False
    after = comma + 1
    return after == len(tokens) or tokens[after].token_type in _AFTER_LISTS or _clause(tokens, after) is not None


def check_budgets(tokens: Sequence[Token]) -> None:
    """Raise `UnreadableError` for what the parser would recurse into, or read again, too often."""
    kinds = [token.token_type for token in tokens]
    if kinds.count(TokenType.L_BRACKET) > MAX_SUBSCRIPTS:
        raise UnreadableError(f"more than {MAX_SUBSCRIPTS} square brackets")
    few_joins = kinds.count(TokenType.JOIN) <= MAX_OPEN_JOINS and kinds.count(TokenType.LATERAL) <= MAX_LATERALS
    if few_joins and sum(map(kinds.count, (*_OPENING, *_NESTED_TYPES))) < MAX_NESTING:
        return  # most queries
    _check(sum(after is TokenType.LT for kind, after in pairwise(kinds) if kind in _NESTED_TYPES), 0, 0)
    joins, laterals, before = [0], [0], None  # within each open bracket
    for kind in kinds:
        if kind in _OPENING:
            joins.append(0)
            laterals.append(int(before is TokenType.LATERAL))
        elif kind in _CLOSING and len(joins) > 1:
            joins.pop()
            laterals.pop()
        elif kind is TokenType.JOIN and before is not TokenType.CROSS:
            joins[-1] += 1
        elif kind in _JOIN_CONDITIONS:
            joins[-1] = max(joins[-1] - 1, 0)
        elif kind is TokenType.SELECT:
            joins[-1] = 0
        _check(len(joins), sum(joins), sum(laterals))
        before = kind


def _check(nesting: int, open_joins: int, laterals: int) -> None:
    if nesting > MAX_NESTING:
        raise UnreadableError(f"nested more than {MAX_NESTING} times")
    if open_joins > MAX_OPEN_JOINS:
        raise UnreadableError(f"more than {MAX_OPEN_JOINS} joins without a condition")
    if laterals > MAX_LATERALS:
        raise UnreadableError(f"more than {MAX_LATERALS} queries after LATERAL within each other")


def _fill_missing_parts(tree: exp.Expr | None) -> None:
    """Put a placeholder wherever a required part is missing."""
    for node in list(tree.walk()) if tree is not None else ():
        for name, required in node.arg_types.items():
            if required and node.args.get(name) is None:
                node.set(name, exp.Placeholder())


def _first_line(error: Exception) -> str:
    """Return the message of the parser, without its excerpt of the text and its colours."""
    first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    if first.get("description"):
        description = str(first["description"])[:MESSAGE_CHARACTERS].rstrip(".")
        return one_line(f"{description}, line {first['line']}, column {first['col']}")
    if isinstance(error, TokenError):  # its message quotes the text
        return "the text cannot be split into tokens: a quote or a comment may be left open"
    if isinstance(error, SqlglotError):
        return one_line(str(error).split("\n", 1)[0][:MESSAGE_CHARACTERS])
    return "the parser failed"


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress the warnings that sqlglot logs about unknown statements, which quote them."""
    logger = logging.getLogger("sqlglot")
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled
