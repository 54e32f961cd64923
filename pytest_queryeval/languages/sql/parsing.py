"""The tree of an untrusted query, by sqlglot."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sqlglot import Dialect, ErrorLevel, ParseError, Token, TokenType, exp
from sqlglot.errors import SqlglotError, TokenError

from pytest_queryeval.languages.extract_query import SQL_TEXT, is_sentence, sentences_behind
from pytest_queryeval.sandbox.driver import COMMANDS, first_word, split_at_semicolons
from pytest_queryeval.text.formatting import one_line, truncate

# Counts instead of time limits: what can be read must not depend on the machine. People's queries are far below them.
MAX_CHARACTERS = 50_000
MAX_NESTING = 40
# The parser reads twice what follows a JOIN without ON, and an error within LATERAL: each one doubles its time.
MAX_OPEN_JOINS = 8
MAX_LATERALS = 6
MAX_SUBSCRIPTS = 200  # for each one in a row the parser copies all before it

MESSAGE_CHARACTERS = 200
TOO_DEEP = "nested too deeply"
OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE))
CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE))
_NESTED_TYPES = frozenset((TokenType.ARRAY, TokenType.STRUCT, TokenType.MAP, TokenType.LIST, TokenType.NULLABLE))
_JOIN_CONDITIONS = frozenset((TokenType.ON, TokenType.USING))
SET_OPERATIONS = frozenset((TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT))
_CLAUSES = {  # in the order in which a query has them
    TokenType.JOIN: 0,
    TokenType.WHERE: 1,
    TokenType.GROUP_BY: 2,
    TokenType.HAVING: 3,
    TokenType.ORDER_BY: 4,
    TokenType.LIMIT: 5,
}
_SWAPPED_BY_ORACLE = {_CLAUSES[TokenType.GROUP_BY], _CLAUSES[TokenType.HAVING]}
# What may follow the word LIMIT unless it is the name of a column.
_AMOUNTS = frozenset(
    (
        *(TokenType.NUMBER, TokenType.DASH, TokenType.NULL, TokenType.ALL, TokenType.L_PAREN),
        *(TokenType.PARAMETER, TokenType.PLACEHOLDER, TokenType.COLON),
    )
)
_AFTER_LISTS = frozenset((*CLOSING, *SET_OPERATIONS, TokenType.FROM, TokenType.SEMICOLON))
_TRAILING_COMMAS = frozenset(("bigquery", "clickhouse", "duckdb", "snowflake"))


_POSITIONS = frozenset(("line", "col", "start", "end"))
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_LITERALS_AND_ENDS = frozenset(
    (
        *(TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.STAR),
        *(TokenType.IDENTIFIER, TokenType.END, *CLOSING),
    )
)

_MISSING_PART = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")


class UnreadableError(Exception):
    """The parser would take too long for a text; the message says why."""


class Statements(NamedTuple):
    """The tokens and the statements of a text; both are empty if it cannot be tokenized or would take too long.

    `error` is what the parser raised, also if there are tokens.
    """

    tokens: list[Token]
    trees: list[exp.Expr]
    error: Exception | None = None


class Tree(NamedTuple):
    """The tree of a query, None if the text contains none; `problem` says why it cannot be read as a whole."""

    tree: exp.Expr | None
    problem: str = ""


def read_statements(text: str, dialect: str) -> Statements:
    """Parse a text strictly, within the budgets of `check_budgets`; errors are returned in the result."""
    tokens: list[Token] = []
    try:
        with without_warnings():
            rules = _dialect(dialect)
            all_tokens = rules.tokenize(text)
            check_budgets(all_tokens)
            tokens = all_tokens
            trees = rules.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except Exception as error:  # noqa: BLE001 - the parser makes trees that its builders do not expect
        return Statements(tokens, [], error.with_traceback(None))
    return Statements(tokens, _statements_of(trees))


def positioned_tree(statements: Statements, text: str, dialect: str) -> exp.Expr | None:
    """Return the first statement of a text that was parsed, as a tree whose nodes know their positions in the text.

    None if there is no statement.
    """
    with without_warnings():
        trees = _dialect(dialect).parser(error_level=ErrorLevel.IMMEDIATE).parse(statements.tokens, text)
    return trees[0] if trees else None


def changes_data(statements: Statements) -> bool:
    """Return whether a whole text was parsed, and its first statement changes data or tables."""
    changing = (exp.DML, exp.DDL, exp.Alter, exp.Drop)
    return statements.error is None and isinstance(next(iter(statements.trees), None), changing)


def split_prose(query: str, dialect: str) -> tuple[str, str]:
    """Return a query and the prose behind it; the prose is empty if there is none.

    Prose is text that follows the query's semicolon and is no statement, or sentences.

    >>> split_prose("SELECT 1; This is one row", ""), split_prose("SELECT 1; DROP TABLE t", "")
    (('SELECT 1', 'This is one row'), ('SELECT 1; DROP TABLE t', ''))
    """
    first, following, *_ = [*split_at_semicolons(query), "", ""]
    if following and not _is_statement(following, dialect):
        return first, following
    prose = sentences_behind(query)
    return query.removesuffix(prose), prose


def _is_statement(text: str, dialect: str) -> bool:
    begins_like_one = SQL_TEXT.start.match(text) or first_word(text) in COMMANDS
    return bool(begins_like_one) and not is_sentence(text) and read_statements(text, dialect).error is None


def are_queries(statements: Statements) -> bool:
    """Return whether a whole text was parsed, and all of its statements are queries."""
    return statements.error is None and all(isinstance(tree, exp.Query) for tree in statements.trees)


def read_query(text: str, dialect: str, statements: Statements) -> Tree:
    """Return the tree of the query in a text, or of the part of it that can be read, with the problem."""
    trees, problem = statements.trees, ""
    if statements.error is not None:
        problem = _reason(statements.error)
        if not isinstance(statements.error, ParseError):
            return Tree(None, problem)
        try:
            trees = _read_partially(text, dialect, statements.tokens)
        except Exception as error:  # noqa: BLE001 - as above
            return Tree(None, _reason(error))
    if not trees:
        return Tree(None, "the text contains no statement")
    if not isinstance(trees[0], exp.Query | exp.Values):
        return Tree(None, problem or f"no query but {trees[0].key.upper()}")
    if len(trees) > 1:
        problem = problem or f"{len(trees)} statements, not one"
    return Tree(trees[0], problem or _misplaced(statements.tokens, type(_dialect(dialect)).__name__.lower()))


def _read_partially(text: str, dialect: str, tokens: list[Token]) -> list[exp.Expr]:
    """Return the statements of a text, with a placeholder wherever a required part is missing."""
    with without_warnings():
        trees = _dialect(dialect).parser(error_level=ErrorLevel.IGNORE).parse(tokens, text)
    for tree in trees:
        for node in list(tree.walk()) if tree is not None else ():
            for name, required in node.arg_types.items():
                if required and node.args.get(name) is None:
                    node.set(name, exp.Placeholder())
    return _statements_of(trees)


def _statements_of(trees: Iterable[exp.Expr | None]) -> list[exp.Expr]:
    """Return the statements among the trees of a text, without comments and empty texts between semicolons.

    Nodes lose their positions in the text, and empty lists of comments: with both, a tree takes three times as long to
    copy.
    """
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    for statement in statements:
        for node in statement.walk():
            if node._meta is not None and not node._meta.keys() - _POSITIONS:
                node._meta = None
            node.comments = node.comments or None
    return statements


_dialect = lru_cache(maxsize=64)(Dialect.get_or_raise)


def has_detached_alias(text: str, dialect: str, tokens: Sequence[Token]) -> bool:
    """Return whether a blank line separates an alias without AS from the expression or table before it.

    Then the alias is probably the first word of text after the query.
    """
    ends = _LITERALS_AND_ENDS | _dialect(dialect).parser_class.ID_VAR_TOKENS
    return any(
        after.token_type is TokenType.VAR
        and before.token_type in ends
        and _BLANK_LINE.search(text, before.end + 1, after.start) is not None
        for before, after in pairwise(tokens)
    )


def _misplaced(tokens: Sequence[Token], dialect: str) -> str:
    """Return the problem that only the parser accepts: clauses in a wrong order, a list without an item; else empty."""
    open_clauses: list[tuple[int, str]] = [(0, "")]  # the last one within each open bracket
    for place, token in enumerate(tokens):
        kind, (last, name) = token.token_type, open_clauses[-1]
        if kind is TokenType.COMMA and _misses_item(tokens, place, dialect):
            return f"a comma without an item, {_place_of(token)}"
        if kind in OPENING:
            open_clauses.append((0, ""))
        elif kind in CLOSING and len(open_clauses) > 1:
            open_clauses.pop()
        elif (clause := _clause(tokens, place)) is not None:
            swaps = dialect == "oracle" and {clause, last} == _SWAPPED_BY_ORACLE
            if clause < last and not swaps:
                return f"{token.text.upper()} after {name}, {_place_of(token)}"
            open_clauses[-1] = (clause, token.text.upper())
        elif kind in SET_OPERATIONS or kind is TokenType.PIPE_GT:
            if last >= _CLAUSES[TokenType.ORDER_BY] and kind is not TokenType.PIPE_GT and dialect != "clickhouse":
                return f"{token.text.upper()} after {name}, {_place_of(token)}"
            open_clauses[-1] = (0, "")
    return ""


def _place_of(token: Token) -> str:
    return f"line {token.line}, column {token.col}"


def _clause(tokens: Sequence[Token], place: int) -> int | None:
    """Return the place in `_CLAUSES` of the clause that begins at a token; None if none does.

    `USE INDEX FOR ORDER BY (i)` is a hint and no clause.
    """
    kind = tokens[place].token_type
    if kind not in _CLAUSES or (place and tokens[place - 1].token_type is TokenType.FOR):
        return None
    if kind is TokenType.LIMIT and not is_before_amount(tokens, place):
        return None
    return _CLAUSES[kind]


def is_before_amount(tokens: Sequence[Token], place: int) -> bool:
    """Return whether LIMIT or OFFSET at this place begins a clause, and is not the name of a column."""
    return place + 1 < len(tokens) and tokens[place + 1].token_type in _AMOUNTS


def _misses_item(tokens: Sequence[Token], comma: int, dialect: str) -> bool:
    if tokens[comma - 1].token_type in (TokenType.SELECT, TokenType.COMMA):
        return True
    if dialect in _TRAILING_COMMAS:
        return False
    after = comma + 1
    return after == len(tokens) or tokens[after].token_type in _AFTER_LISTS or _clause(tokens, after) is not None


def check_budgets(tokens: Sequence[Token]) -> None:
    """Raise `UnreadableError` for tokens that the parser would recurse into, or read again, too often.

    They are brackets within each other, joins without a condition, LATERAL, and subscripts.
    """
    kinds = [token.token_type for token in tokens]
    count = Counter(kinds)
    if count[TokenType.L_BRACKET] > MAX_SUBSCRIPTS:
        raise UnreadableError(f"more than {MAX_SUBSCRIPTS} square brackets")
    few_joins = count[TokenType.JOIN] <= MAX_OPEN_JOINS and count[TokenType.LATERAL] <= MAX_LATERALS
    if few_joins and sum(count[kind] for kind in (*OPENING, *_NESTED_TYPES)) < MAX_NESTING:
        return  # most queries
    _check(sum(after is TokenType.LT for kind, after in pairwise(kinds) if kind in _NESTED_TYPES), 0, 0)
    joins, laterals, before = [0], [0], None  # within each open bracket
    for kind in kinds:
        if kind in OPENING:
            joins.append(0)
            laterals.append(int(before is TokenType.LATERAL))
        elif kind in CLOSING and len(joins) > 1:
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


def _reason(error: Exception) -> str:
    """Return the message of a parser's error, without its excerpt of the text and its colours."""
    match error:
        case UnreadableError():
            return str(error)
        case RecursionError():
            return TOO_DEEP
        case ParseError(errors=[{"description": str(description), "line": line, "col": column}, *_]) if description:
            description = _MISSING_PART.sub(lambda match: f"{match[1].upper()} lacks a part", description)
            description = truncate(description, MESSAGE_CHARACTERS).rstrip(".")
            return one_line(f"{description}, line {line}, column {column}")
        case TokenError():  # its message quotes the text
            return "the text cannot be split into tokens: a quote or a comment may be left open"
        case SqlglotError():
            return one_line(str(error).split("\n", 1)[0], MESSAGE_CHARACTERS)
    return "the parser failed"


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress the warnings that sqlglot logs about unknown statements, which quote them."""
    logger = logging.getLogger("sqlglot")
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled
