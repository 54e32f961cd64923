"""Finds what the parser reads differently from engines, so that its tree does not say what the query does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from pytest_queryeval.features.challenge.proof.query import UnprovableError
from pytest_queryeval.languages.sql import parse_query

# Types that sqlglot takes for others, with which SQLite makes other values.
_AMBIGUOUS_TYPES = re.compile(r"\b(STR|STRING|LONG|SHORT|BYTE|BYTEA|VARBINARY|BLOB)\b", re.IGNORECASE)
BOOLEANS = frozenset(("true", "false"))  # names of columns that SQLite reads also without quotes
_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike, exp.Between, exp.Is, exp.Glob),
    *(exp.LT, exp.LTE, exp.GT, exp.GTE),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_OPERAND_ENDS = frozenset(
    (
        *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN),
        *(TokenType.STAR, TokenType.END, TokenType.NULL),
    )
)


def require_one_meaning(tree: exp.Expr, text: str, dialect: str) -> None:
    """Raise `UnprovableError` if an engine may read a query differently from the tree that the parser made of it."""
    if tree.find(exp.Cast) and _AMBIGUOUS_TYPES.search(text):
        raise UnprovableError("a type that the parser takes for another one")
    common_names = [common.alias.lower() for common in tree.find_all(exp.CTE)]
    if len({*common_names}) < len(common_names):
        raise UnprovableError("a name of two queries of WITH, of which SQLite may read one that comes later")
    if any(name.name.lower() in BOOLEANS for name in tree.find_all(exp.Identifier)):
        raise UnprovableError("a name that SQLite reads for true or false")
    _check_tokens(tree, parse_query(text, dialect).statements.tokens)
    _check_binding(tree, dialect)


def _check_tokens(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Raise `UnprovableError` if the parser reads a text differently from what it says.

    It drops a sign `+`, by which a column of SQLite loses its type, and the parentheses that make the query of
    `x IN ((SELECT …))` one value; it takes functions for `CAST` and `%`, and `1_000` for a number with an
    alias.
    """
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    words = ["" if token.token_type in quoted else token.text.lower() for token in tokens]
    for previous, token in pairwise(tokens):
        if token.token_type is TokenType.PLUS and previous.token_type not in _OPERAND_ENDS:
            raise UnprovableError("a sign +")
        if previous.token_type is TokenType.NUMBER and previous.end + 1 == token.start and token.text[0].isidentifier():
            raise UnprovableError("letters after a number")
    if any(triple == ("in", "(", "(") for triple in zip(words, words[1:], words[2:], strict=False)):
        raise UnprovableError("IN ((")
    casts = sum(pair in (("cast", "("), ("try_cast", "(")) for pair in pairwise(words)) + words.count("::")
    for node_type, count_in_text in ((exp.Cast, casts), (exp.Mod, words.count("%"))):
        if len(list(tree.find_all(node_type))) != count_in_text:
            raise UnprovableError(f"a function that the parser takes for {node_type.__name__.upper()}")


def _check_binding(tree: exp.Expr, dialect: str) -> None:
    """Raise `UnprovableError` for operators without parentheses that an engine may bind differently from the parser.

    These are comparisons, and NOT, as operands of comparisons and of arithmetic, and in SQLite `||` beside arithmetic.
    """
    for node in tree.find_all(*_COMPARISONS, *_ARITHMETIC, exp.DPipe, exp.Neg):
        if any(isinstance(operand, (*_COMPARISONS, exp.Not)) for operand in node.iter_expressions()):
            raise UnprovableError("a comparison as an operand")
    for node in tree.find_all(exp.DPipe) if dialect == "sqlite" else ():
        if any(isinstance(beside, _ARITHMETIC) for beside in (node.parent, *node.iter_expressions())):
            raise UnprovableError("|| beside arithmetic")
