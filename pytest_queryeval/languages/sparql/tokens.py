"""The tokens of a SPARQL query, as its grammar has them (https://www.w3.org/TR/sparql11-query/#grammar).

Recursive parsers crash on hostile text, and slow ones hang; a scan by one regular expression does neither.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BLANK = r"(?:\s|\#[^\r\n]*+)*+"
NAME = r"(?:[^\W\d_](?:[\w-]|\.++(?=[\w-]))*+|_)?:(?:[\w:%-]|\\.|\.++(?=[\w:%\\-]))*+"
# Quantifiers are possessive, and an open string extends to the end, so that no text is scanned twice.
_TOKEN = re.compile(
    rf"""
      (?P<space>    \s++ | \#[^\r\n]*+ )
    | (?P<iri>      <[^<>"{{}}|^`\\\x00-\x20]*+> )
    | (?P<string>   \"{{3}} (?: \"{{0,2}} (?: [^"\\] | \\. ) )*+ \"{{0,3}}
                  | '{{3}} (?: '{{0,2}} (?: [^'\\] | \\. ) )*+ '{{0,3}}
                  | \" (?: [^"\\\r\n] | \\. )*+ \"?
                  | ' (?: [^'\\\r\n] | \\. )*+ '? )
    | (?P<variable> [?$]\w++ )
    | (?P<language> @[A-Za-z]++(?:-[A-Za-z0-9]++)*+ )
    | (?P<name>     {NAME} )
    | (?P<word>     [^\W\d_] (?: [\w-] | \.++(?=[\w-]) )*+ )
    | (?P<number>   (?: \d++\.?+\d*+ | \.\d++ ) (?: [eE][+-]?\d++ )?+ )
    | (?P<mark>     . )
    """,
    re.VERBOSE | re.DOTALL,
)
_CODE_POINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(BRACKETS.values())


class Token(NamedTuple):  # a query may have tens of thousands, and a dataclass is slower
    """A token of a query."""

    kind: str
    """The name of a group of `_TOKEN`."""
    text: str
    start: int
    end: int
    depth: int
    """The number of open brackets around the token."""

    def is_word(self, *words: str) -> bool:
        """Return whether it is one of these keywords, given in upper case."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def is_closed_text(self) -> bool:
        """Return whether it is a string that ends as it begins."""
        long = self.text[:3] in ('"""', "'''")
        marks = self.text[:3] if long else self.text[:1]
        return self.kind == "string" and len(self.text) >= 2 * len(marks) and self.text.endswith(marks)


def unescaped(query: str) -> str:
    """Return the query with its escapes of code points, by which any character can be written, decoded."""
    if "\\u" not in query and "\\U" not in query:
        return query
    return _CODE_POINT.sub(_character, query)


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code <= 0x10FFFF else match[0]


def unclosed_bracket(query: str) -> str:
    r"""Return the bracket that the query opens last and does not close, with its place; empty if there is none.

    >>> unclosed_bracket("SELECT ?s {\n?s ?p (1")
    'the ( at 2:7 is not closed: add `)`'
    """
    open_brackets: list[Token] = []
    for token in tokens(query):
        if token.text in BRACKETS:
            open_brackets.append(token)
        elif token.text in _CLOSING and open_brackets:
            open_brackets.pop()
    if not open_brackets:
        return ""
    bracket = open_brackets[-1]
    line, line_start = query.count("\n", 0, bracket.start) + 1, query.rfind("\n", 0, bracket.start) + 1
    place = f"{line}:{bracket.start - line_start + 1}"
    return f"the {bracket.text} at {place} is not closed: add `{BRACKETS[bracket.text]}`"


def tokens(query: str) -> tuple[Token, ...]:
    """Return all tokens except white space and comments; each character outside the grammar is a `mark`."""
    query_tokens = []
    depth = 0
    for match in _TOKEN.finditer(query):
        kind, text = match.lastgroup or "", match[0]
        if kind == "space":
            continue
        depth -= text in _CLOSING
        query_tokens.append(Token(kind, text, match.start(), match.end(), depth))
        depth += text in BRACKETS
    return tuple(query_tokens)
