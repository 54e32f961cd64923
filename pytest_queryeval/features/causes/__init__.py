"""Why answers are wrong: what kinds of queries share to find edits and repairs of predicted queries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from pytest_queryeval.core.cause import NOTHING, Cause, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Case, Execution, Source
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.text.formatting import one_line

MAX_CHANGE = 120  # characters of each side
MAX_SPELLINGS = 60  # of a query that are read
PLAIN_QUOTES = str.maketrans(
    {**dict.fromkeys("\u201c\u201d\u201e\u201f", '"'), **dict.fromkeys("\u2018\u2019\u201a\u201b", "'")}
)
"""A translation of typographic quotes to plain quotes."""
# Names with what they are qualified by, texts and IRIs are single tokens.
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|<[^<>\s]*>|[?$]?[\w`]+(?:(?:[.:]+|\\?#)[\w`]+)*|\S""")
T = TypeVar("T")
U = TypeVar("U")


class Correction(NamedTuple):
    """A fault of the gold query: the edit that fixes it, and the fixed query."""

    edit: CausingEdit
    query: str


class Repair(NamedTuple):
    """A query that may run instead of a predicted query that failed, with the clause and the text of the change."""

    clause: str
    change: str
    query: str


class FailedQuery(NamedTuple):
    """A predicted query that its engine refused, with everything that repairs are derived from."""

    text: str
    message: str
    gold: str
    schema: Schema = Schema()
    """The tables of the database; empty for SPARQL."""
    dialect: str = ""
    source: Source | None = None


class Edits(NamedTuple):
    """The differences between a predicted and a gold query, and how to search for the cause among them."""

    groups: Sequence[QueryEdits] = ()
    """Groups of edits from the predicted query to gold; a group is tried if the groups before it have no cause."""
    fallback: Callable[[], Cause | SharedPatterns | None] = lambda: None
    """Return what to report if no edits are the cause; None for nothing."""
    most_untested: int = 0
    """The greatest number of edits in a cause that gives gold's answer on the source, but not on small databases."""
    databases: int = 8
    """The number of small databases on which a repaired query is compared with gold."""
    is_extended: bool = False
    """Whether edits that are enough on the source, but not on small databases, are next tried with one more edit."""
    prefers_untested: bool = False
    """Whether edits that are enough on the source are not tried with more edits if they are at most `most_untested`."""
    correction: Correction | None = None
    """A fault of gold that the data shows, or None; with a fault, predicted is compared with the fixed query."""
    in_other_words: str = ""
    """The predicted query, written again from its tree without an edit; empty if that may change its meaning."""
    is_determined: bool = False
    """Whether the predicted query has only one possible answer."""
    repairs: Iterable[Repair] = ()
    """Repairs of a predicted query that its engine refused, by one change, the likeliest first."""
    translations: Iterable[Repair] = ()
    """Further repairs, tried if no other repair runs."""
    guesses: Iterable[Repair] = ()
    """Further repairs, which count only if they give gold's answer."""
    first_edits: Sequence[CausingEdit] = ()
    """Edits that were made in the predicted query before its differences were found, such as of unknown terms."""


class EditFinder(Protocol):
    """A function that finds the differences between a predicted and a gold query of a kind."""

    def __call__(self, predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
        """Return the edits from the predicted query to gold, which has an answer; no groups if a query cannot be read.

        Raise `SourceError` if the source is asked and does not answer.
        """


EDITS: Registry[EditFinder] = Registry(
    "kind with edits",
    group="pytest_queryeval.edits",
    used_by_workers=True,
    members={"sql": f"{__name__}.sql.edits:find_edits", "sparql": f"{__name__}.sparql.edits:find_edits"},
)


def repair(before: str, after: str, clauses: Mapping[str, str], default: str) -> Repair | None:
    """Return the repair that turns the text `before` into `after`, with the tokens that differ; None if there are none.

    `clauses` maps words in upper case with which clauses begin to the names of the clauses. `default` is the clause
    before the first such word.

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
    """Yield a repair for each of the texts that differs from `before`; see `repair`."""
    yield from filter(None, (repair(before, text, clauses, default) for text in texts))


def in_order(text: str, starts: Sequence[int], ranks: Sequence[int], end: int) -> str:
    """Return the clauses of a text, which begin at `starts` and end at `end`, sorted by their ranks.

    Text before the first start is left out.

    >>> in_order("SELECT a WHERE b FROM t", [9, 17], [2, 1], 23)
    'FROM t WHERE b'
    """
    clauses = [text[start:stop].strip() for start, stop in pairwise((*starts, end))]
    return " ".join(clause for _, clause in sorted(zip(ranks, clauses, strict=True)))


def _span(text: str, matches: Sequence[re.Match[str]]) -> str:
    return text[matches[0].start() : matches[-1].end()] if matches else ""


def without_common(
    left: Iterable[T], right: Iterable[T], key: Callable[[T], object] = lambda member: member
) -> tuple[list[T], list[T]]:
    """Return the members of each side without those in common, as multisets; `key` gives what is compared.

    >>> without_common("aab", "abc")
    (['a'], ['c'])
    """
    left_members, right_members = ([(key(member), member) for member in side] for side in (left, right))

    def unmatched(side: Sequence[tuple[object, T]], opposite: Sequence[tuple[object, T]]) -> list[T]:
        to_match = Counter(member_key for member_key, _ in opposite)
        members = []
        for member_key, member in side:
            if to_match[member_key] > 0:
                to_match[member_key] -= 1
            else:
                members.append(member)
        return members

    return unmatched(left_members, right_members), unmatched(right_members, left_members)


def without(members: Iterable[T], removed: Sequence[T]) -> list[T]:
    """Return the members except these very objects; members that only equal a removed object stay."""
    return [member for member in members if not any(member is removed_member for removed_member in removed)]


def best_pairs(left: Sequence[T], right: Sequence[U], score: Callable[[T, U], float | None]) -> list[tuple[T, U]]:
    """Return pairs of members of two sequences, each member in at most one pair, in the order of `left`.

    Pairs with the highest score are chosen first, and of equal scores those in the nearest places. A score of None
    rules a pair out.

    >>> best_pairs(["ab", "c"], ["d", "abc"], lambda left, right: len({*left} & {*right}) or None)
    [('ab', 'abc')]
    """
    scored = sorted(
        (-value, abs(place - right_place), place, right_place)
        for place, member in enumerate(left)
        for right_place, right_member in enumerate(right)
        if (value := score(member, right_member)) is not None
    )
    partners: dict[int, int] = {}
    for _, _, place, right_place in scored:
        if place not in partners and right_place not in partners.values():
            partners[place] = right_place
    return [(left[place], right[right_place]) for place, right_place in sorted(partners.items())]
