"""The text of a query as the tokens that the published parser of Spider sees.

It uses a tokenizer of English prose, that of NLTK. This module reproduces what that does to SQL: `x>3` is three tokens,
but `x=3` is one, and `x>=3` is `x`, `>` and `=3`.
"""

from __future__ import annotations

import re

END = ""  # after the last token, so that looking ahead needs no check


class UnreadableQueryError(ValueError):
    """The published grammar rejects the query; the message says why."""


_QUOTED = re.compile(r'"[^"]*"')
_ALONE = r";@#$%&?!*\[\](){}<>«»\u2018\u2019\u201c-\u201e\u2012-\u2015"
_PART = rf"[^\s{_ALONE}.:,`-]"
# A period is a token where a sentence ends: at the end of the text, before a space and before what no word contains.
# Between a number or a single letter and a lower-case letter it belongs to an abbreviation.
_PERIOD = r"\.(?=[\s)\"';}\]*:@({\[!?\u2018\u2019\u201c\u201d«»]|\Z)"
_KEEPS_PERIOD = r"(?:-?\d++(?:[.,]\d++)*+|[^\W\d_])\.(?=\s++[a-z])"
_TOKEN = re.compile(
    rf"""
      \.{{2,}} | -- | `` | ` | [{_ALONE}]
    | {_KEEPS_PERIOD}
    | {_PERIOD}
    | [:,](?!\d)
    | (?: {_PART}++ | (?!{_PERIOD})\.(?!\.) | -(?!-) | [:,](?=\d) )++
    """,
    re.VERBOSE,
)
_CONTRACTED = re.compile(r"\b(can)(not)\b|\b(gim|lem)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(wan)(na)\Z")
_CONTRACTIONS = ("cannot", "gimme", "lemme", "gonna", "gotta", "wanna")
MAX_SHOWN = 40  # characters of a word in a message


def tokens_of(text: str) -> list[str]:
    """Return the tokens in lower case, literals in double quotes as they were written, and `END`.

    Either quote opens and closes a literal. `!=`, `>=` and `<=` are one token, also with a space inside. Raise
    `UnreadableQueryError` if a quote is not closed.
    """
    text = text.replace("'", '"')
    if text.count('"') % 2:
        raise UnreadableQueryError("a quote is not closed")
    literals: dict[str, str] = {}

    def replace_literal(match: re.Match[str]) -> str:
        # A word, so that the literal joins the text next to it, and is then no longer a literal.
        placeholder = f"__text_{len(literals)}__"
        literals[placeholder] = match[0]
        return placeholder

    bare = _QUOTED.sub(replace_literal, text)
    words = [token.lower() for token in _TOKEN.findall(bare)]
    if any(word in bare.lower() for word in _CONTRACTIONS):
        words = [part for token in words for part in _CONTRACTED.sub(_split_contraction, token).split()]
    tokens: list[str] = []
    for word in words:
        if word == "=" and tokens and tokens[-1] in ("!", ">", "<"):
            tokens[-1] += word
        else:
            tokens.append(literals.get(word, word))
    return [*tokens, END]


def _split_contraction(match: re.Match[str]) -> str:
    return " ".join(["", *filter(None, match.groups()), ""])


class Cursor:
    """A place in the tokens of a query, the last of which is `END`."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0

    @property
    def word(self) -> str:
        """The next token."""
        return self.tokens[self.place]

    def take(self) -> str:
        """Return the token and go to the next one; stay at the end of the text."""
        token = self.tokens[self.place]
        self.place += token != END
        return token

    def took(self, token: str) -> bool:
        """Return whether this is the next token, and take it if so."""
        if self.tokens[self.place] != token:
            return False
        self.place += 1
        return True

    def expect(self, token: str) -> None:
        """Take this token, or raise `UnreadableQueryError`."""
        if not self.took(token):
            raise UnreadableQueryError(f"{word_text(self.word)} in place of '{token}'")

    def skip_semicolons(self) -> None:
        """Take all semicolons at this place."""
        while self.took(";"):
            pass


def word_text(word: str) -> str:
    """Return a word of a query for a message: without control characters, and truncated."""
    if word == END:
        return "the end"
    return repr(word if len(word) <= MAX_SHOWN else word[: MAX_SHOWN - 1] + "…")
