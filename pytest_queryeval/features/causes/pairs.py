"""Pairs of members of two sequences: those that are equal, and those that have the most in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def without_common(
    left: Iterable[T], right: Iterable[T], key: Callable[[T], object] = lambda member: member
) -> tuple[list[T], list[T]]:
    """Return the members of each side that the other side lacks, as often as it lacks them; `key` compares them.

    >>> without_common("aab", "abc")
    (['a'], ['c'])
    """
    left_members, right_members = ([(key(member), member) for member in side] for side in (left, right))
    common = Counter(key for key, _ in left_members) & Counter(key for key, _ in right_members)

    def unmatched(side: Sequence[tuple[object, T]]) -> list[T]:
        to_match = Counter(common)
        members = []
        for member_key, member in side:
            if to_match[member_key] > 0:
                to_match[member_key] -= 1
            else:
                members.append(member)
        return members

    return unmatched(left_members), unmatched(right_members)


def without(members: Iterable[T], removed: Sequence[T]) -> list[T]:
    """Return the members without these objects; members that only equal them stay."""
    return [member for member in members if not any(member is removed_member for removed_member in removed)]


def best_pairs(left: Sequence[T], right: Sequence[T], score: Callable[[T, T], float | None]) -> list[tuple[T, T]]:
    """Pair members of two sequences, each at most once, those of the highest score first; None rules a pair out.

    Of pairs with the same score, members in nearby places come first.

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
