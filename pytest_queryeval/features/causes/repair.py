"""Repairs of predictions that failed: queries with one change, shown by the tokens that differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from pytest_queryeval.core.cause import NOTHING
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Source
from pytest_queryeval.text.formatting import one_line

MAX_CHANGE = 120  # characters of each side
MAX_CHARACTERS = 4_000  # of a query that is repaired
MAX_SPELLINGS = 60  # of a query that are read
PLAIN_QUOTES = str.maketrans(
    {**dict.fromkeys("\u201c\u201d\u201e\u201f", '"'), **dict.fromkeys("\u2018\u2019\u201a\u201b", "'")}
)
"""What typographic quotes stand for."""
# Names with what they are qualified by, texts and IRIs are single tokens.
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|<[^<>\s]*>|[?$]?[\w`]+(?:[.:]+[\w`]+)*|\S""")


class Repair(NamedTuple):
    """A query that may run where the predicted one did not, with the clause that differs and what changes there."""

    clause: str
    change: str
    query: str


class FailedQuery(NamedTuple):
    """A predicted query that its engine refused, with what a repair can be taken from."""

    text: str
    message: str
    gold: str
    schema: Schema = Schema()
    """The tables of a database."""
    dialect: str = ""
    source: Source | None = None


def repair(before: str, after: str, clauses: Mapping[str, str], default: str) -> Repair | None:
    """Return a repair by the tokens in which two texts differ; None if there are none.

    `clauses` maps the words, in upper case, with which clauses begin to the names of the clauses; `default` is the
    clause of what precedes all of them.

    >>> repair("SELECT a, FROM t", "SELECT a FROM t", {"SELECT": "SELECT", "FROM": "FROM"}, "SELECT")
    Repair(clause='SELECT', change=', → nothing', query='SELECT a FROM t')
    """
    matches, new_matches = (list(_TOKEN.finditer(text)) for text in (before, after))
    tokens, new_tokens = ([match[0].lower() for match in side] for side in (matches, new_matches))
    matcher = SequenceMatcher(None, tokens, new_tokens, autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    if not blocks:
        return None
    spans = [
        (_span(before, matches[start:end]), _span(after, new_matches[new_start:new_end]))
        for _, start, end, new_start, new_end in blocks
    ]
    if len({*spans}) > 1:  # all from the first to the last one, where that is short
        _, start, _, new_start, _ = blocks[0]
        _, _, end, _, new_end = blocks[-1]
        whole_span = _span(before, matches[start:end]), _span(after, new_matches[new_start:new_end])
        spans = [whole_span] if max(map(len, whole_span)) <= MAX_CHANGE else spans
    change = ", ".join(
        f"{one_line(old or NOTHING, MAX_CHANGE)} → {one_line(new or NOTHING, MAX_CHANGE)}"
        for old, new in dict.fromkeys(spans)
    )
    _, _, _, new_start, new_end = blocks[0]
    until_change = new_tokens[: new_start + (new_end > new_start)]
    words = (clauses[token.upper()] for token in reversed(until_change) if token.upper() in clauses)
    return Repair(next(words, default), one_line(change, 2 * MAX_CHANGE), after)


def repairs(before: str, texts: Iterable[str], clauses: Mapping[str, str], default: str) -> Iterator[Repair]:
    """Yield a repair for each of the texts that differs from the one before."""
    yield from filter(None, (repair(before, text, clauses, default) for text in texts))


def _span(text: str, matches: Sequence[re.Match[str]]) -> str:
    return text[matches[0].start() : matches[-1].end()] if matches else ""
