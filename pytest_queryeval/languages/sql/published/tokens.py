"""The text of a query as the tokens that the published parser of Spider sees.

It takes a splitter of English prose for its tokens, NLTK's. What that does to SQL is written down here: `x>3` is three
tokens, but `x=3` is one, and `x>=3` is `x`, `>` and `=3`.
"""

from __future__ import annotations

import re

END = ""  # behind the last token, so that looking ahead needs no check


class UnreadableQueryError(ValueError):
    """The published grammar rejects the query; the message says why."""


_QUOTED = re.compile(r'"[^"]*"')
_ALONE = r";@#$%&?!*\[\](){}<>«»\u2018\u2019\u201c-\u201e\u2012-\u2015"
_PART = rf"[^\s{_ALONE}.:,`-]"
# A period is a token where a sentence ends: at the end of the text, before a blank and before what no word has inside.
# Between a number or a single letter and a small letter it is rather that of an abbreviation.
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
_SHOWN = 40  # characters of a word in a message
_BEFORE_EQUALS = ("!", ">", "<")


def tokens_of(text: str) -> list[str]:
    """The tokens in lower case, literals in double quotes as they were written, `END` behind them.

    Either quote opens and closes a literal. `!=`, `>=` and `<=` are one token, also with a blank inside. Raises
    `UnreadableQueryError` where a quote is not closed.
    """
    text = text.replace("'", '"')
    if text.count('"') % 2:
        raise UnreadableQueryError("a quote is not closed")
    literals = _QUOTED.findall(text)
    bare = _without_literals(text, len(literals))
    found = [token.lower() for token in _TOKEN.findall(bare)]
    if any(word in bare.lower() for word in _CONTRACTIONS):
        found = [part for token in found for part in _CONTRACTED.sub(_apart, token).split()]
    if literals:
        stood_for = {_placeholder(number): literal for number, literal in enumerate(literals)}
        found = [stood_for.get(token, token) for token in found]
    return [*_joined(found), END]


class Cursor:
    """A place in the tokens of a query, which `END` follows."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0

    @property
    def word(self) -> str:
        """The next token."""
        return self.tokens[self.place]

    def take(self) -> str:
        """The token, and on to the next one; at the end of the text it stays."""
        token = self.tokens[self.place]
        self.place += token != END
        return token

    def took(self, token: str) -> bool:
        """Whether this is the next token; if so it is taken."""
        if self.tokens[self.place] != token:
            return False
        self.place += 1
        return True

    def expect(self, token: str) -> None:
        """Take this token, or raise `UnreadableQueryError`."""
        if not self.took(token):
            raise UnreadableQueryError(f"{shown(self.word)} in place of '{token}'")

    def skip_semicolons(self) -> None:
        """Take all semicolons that stand here."""
        while self.took(";"):
            pass


def shown(word: str) -> str:
    """A word of a query for a message: without control characters, cut where it is long."""
    if word == END:
        return "the end"
    return repr(word if len(word) <= _SHOWN else word[: _SHOWN - 1] + "…")


def _placeholder(number: int) -> str:
    """A word, so that a literal sticks to what stands right beside it, and then is no literal any more."""
    return f"__text_{number}__"


def _without_literals(text: str, count: int) -> str:
    if not count:
        return text
    numbers = iter(range(count))
    return _QUOTED.sub(lambda _: _placeholder(next(numbers)), text)


def _apart(match: re.Match[str]) -> str:
    """Both halves of a contraction as words of their own."""
    return " ".join(["", *filter(None, match.groups()), ""])


def _joined(found: list[str]) -> list[str]:
    """The operators whose `=` is a token of its own as one token."""
    if "=" not in found:
        return found
    tokens: list[str] = []
    for word in found:
        if word == "=" and tokens and tokens[-1] in _BEFORE_EQUALS:
            tokens[-1] += word
        else:
            tokens.append(word)
    return tokens
