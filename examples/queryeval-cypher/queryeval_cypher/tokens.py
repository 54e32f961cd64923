"""Cypher as tokens: enough to see whether a query only reads, and what orders its rows. The database parses it.

The child process imports it, too, so it imports the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

STRINGS = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`[^`]*+`"""
COMMENTS = r"//[^\n]*+|/\*.*?\*/"
_TOKEN = re.compile(rf"(?P<blank>\s++|{COMMENTS})|(?P<string>{STRINGS})|(?P<word>\w++)|.", re.DOTALL)
_INTERNALS = re.compile(r"^\w+ exception: |: expected rule \w+")  # in messages


class Token(NamedTuple):
    """A part of a query, from `start` to `end`, within `depth` brackets.

    `keyword` is the word in capitals; empty for what cannot be one, such as a property, a label or a new name.
    """

    text: str
    keyword: str
    start: int
    end: int
    depth: int


def read_tokens(query: str) -> list[Token]:
    """Return the tokens of a query without blanks and comments."""
    tokens: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(query):
        if match.lastgroup == "blank":
            continue
        text = match[0]
        is_name = bool(tokens) and tokens[-1].text.upper() in (".", ":", "AS")
        depth -= text in (")", "]", "}")
        keyword = text.upper() if match.lastgroup == "word" and not is_name else ""
        tokens.append(Token(text, keyword, match.start(), match.end(), depth))
        depth += text in ("(", "[", "{")
    return tokens


def statements(script: str) -> Iterator[tuple[int, list[Token]]]:
    """Yield the tokens of each statement, without the semicolon, and the line on which it begins."""
    statement: list[Token] = []
    for token in [*read_tokens(script), Token(";", "", len(script), len(script), 0)]:
        if token.text != ";":
            statement.append(token)
        elif statement:
            yield script.count("\n", 0, statement[0].start) + 1, statement
            statement = []


def first_line(error: Exception) -> str:
    """Return the first line of a message of Ladybug, without the names of its own parts.

    >>> first_line(RuntimeError("Parser exception: Invalid input <A>: expected rule oC_Query (line: 1, offset: 0)"))
    'Invalid input <A> (line: 1, offset: 0)'
    """
    return _INTERNALS.sub("", str(error).partition("\n")[0]).rstrip(".!")


def reaching_clause(tokens: list[Token]) -> str:
    """Return the clause by which a query reads files, calls a procedure; empty without one."""
    for token, following, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.keyword == "LOAD" and following.keyword in ("FROM", "WITH"):
            return "LOAD FROM"
        if token.keyword == "CALL" and behind.text == "(":
            return "CALL"
    return ""
