"""Two JSON answers side by side: which elements of their lists correspond, and how many leaves they share.

A leaf is a scalar, an empty object or an empty list. Elements of ordered lists are aligned in order so that they share
most leaves. Elements of lists in any order are aligned one to one so that they share most leaves, or by the value of a
member. Equal values have the same number (`Value.key`), so that most of two long answers is not compared.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, takewhile
from typing import TYPE_CHECKING, TypeAlias

from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.features.json.rules import Place, Rules, RuleSet, is_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pairs: TypeAlias = "list[tuple[int, int]]"
# How many leaves an element of gold, which is named by its place, shares with each of predicted.
Row: TypeAlias = "Callable[[int], NDArray[np.intp]]"
# Finds pairs by rows: how many, and how long they are.
Align: TypeAlias = "Callable[[Row, int, int], Pairs]"
# Bounds on the work for two answers, which takes a few seconds; a unit is about two nanoseconds.
MAX_WORK = 600_000_000
MAX_ASSIGNED = 250_000  # pairs of elements for which the best assignment is found
BOUNDED = "lists are too long to find their best alignment, so more of them may agree"
# Of comparing elements pair by pair: a pair, those of lists within elements too, and a leaf in each of its pairs.
_PAIR_WORK, _SHARED_WORK = 1_000, 50
# Of comparing them by arrays: both lists, a leaf of theirs, a pair, a leaf of gold with an element of predicted.
_ARRAYS_WORK, _LEAF_WORK, _CELL_WORK = 20_000, 500, 4
_COUNTED_AT_ONCE = 64  # pairs of leaves
_OBJECT = -1  # the key of any object, to which an empty one is equal if extra keys are allowed


@dataclass(slots=True, eq=False)
class Value:
    """A JSON value without its ignored parts, with the rules of its comparison."""

    key: int
    """The number of the value: values with one key are equal, and lists with one key align element by element."""
    rules: Rules
    leaves: int
    """The number of leaves in the value; 1 for a leaf."""
    scalar: JsonValue
    """The value itself if it is a leaf; else None."""
    members: dict[str, Value] | None = None
    """The members of an object, empty or not; None for other values."""
    elements: list[Value] | None = None
    """The elements of a list, empty or not; None for other values."""
    places: Sequence[int] = ()
    """The indexes of the elements in the original list, from which ignored elements are left out."""
    inner: int = 0
    """The number of elements of lists in the value, at any depth; a list of plain elements counts as one."""

    @property
    def is_leaf(self) -> bool:
        """Whether the value is a leaf: a scalar, an empty object or an empty list."""
        return not self.members and not self.elements

    @property
    def near_number(self) -> float | None:
        """The number that the value is, if a tolerance lets other numbers equal it; else None."""
        if not self.rules.has_tolerance or not is_number(self.scalar):
            return None
        try:
            return float(self.scalar)
        except OverflowError:
            return None

    @property
    def has_plain_elements(self) -> bool:
        """Whether the value is a list of leaves, not aligned by a member, that are equal only if their keys are."""
        return (
            self.elements is not None
            and self.rules.lists != "by"
            and self.rules.extra_keys == "reject"
            and all(element.is_leaf and element.near_number is None for element in self.elements)
        )


class _ValueReader:
    """Makes `Value`s of JSON values; equal values of gold and predicted get the same key."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._keys: dict[Hashable, int] = {}

    def read(self, value: JsonValue, place: Place) -> Value:
        if isinstance(value, dict):
            return self._read_object(value, place)
        if isinstance(value, list):
            return self._read_list(value, place)
        content = place.rules.text(value) if isinstance(value, str) else value
        sort = "number" if is_number(value) else type(value).__name__
        return Value(self._key(place, sort, content), place.rules, 1, value)

    def _read_object(self, value: dict[str, JsonValue], place: Place) -> Value:
        members = {}
        for name, item in value.items():
            below = self._rules.below(place, name)
            if not below.ignored:
                members[name] = self.read(item, below)
        key = self._key(place, "object", frozenset((name, member.key) for name, member in members.items()))
        leaves = sum(member.leaves for member in members.values()) or 1
        inner = sum(member.inner for member in members.values())
        return Value(key, place.rules, leaves, None if members else {}, members, inner=inner)

    def _read_list(self, value: list[JsonValue], place: Place) -> Value:
        elements, indexes = [], []
        for index, item in enumerate(value):
            below = self._rules.below(place, index, len(value))
            if not below.ignored:
                elements.append(self.read(item, below))
                indexes.append(index)
        keys = tuple(element.key for element in elements)
        is_ordered = place.rules.lists == "ordered"
        key = self._key(place, "list", keys if is_ordered else frozenset(Counter(keys).items()))
        leaves = sum(element.leaves for element in elements) or 1
        scalar: JsonValue = None if elements else []
        read = Value(key, place.rules, leaves, scalar, None, elements, indexes)
        read.inner = int(bool(elements)) if read.has_plain_elements else _nested_size(elements)
        return read

    def _key(self, place: Place, sort: str, content: Hashable) -> int:
        return self._keys.setdefault((place.number, sort, content), len(self._keys))


class Comparison:
    """The comparison of two answers under rules: how many leaves they share, and which elements correspond."""

    def __init__(self, gold: JsonValue, predicted: JsonValue, rules: RuleSet) -> None:
        reader = _ValueReader(rules)
        self.gold, self.predicted = reader.read(gold, rules.root), reader.read(predicted, rules.root)
        self.is_bounded = False
        """Whether a bound on the work ended the search for a better alignment."""
        self._has_tolerance = rules.has_tolerance
        self._work_left = MAX_WORK
        self._pairs: dict[tuple[int, int], Pairs] = {}
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}
        self.shared, permitted = self.counts(self.gold, self.predicted)
        """How many leaves are in both."""
        self.predicted_leaves = self.predicted.leaves - permitted
        """How many of predicted's leaves count."""

    @property
    def are_equal(self) -> bool:
        """Whether the answers are equal under the rules."""
        return self.shared == self.gold.leaves == self.predicted_leaves

    def counts(self, gold: Value, predicted: Value) -> tuple[int, int]:
        """Return how many leaves two values share, and how many leaves of predicted are in allowed extra keys."""
        if gold.key == predicted.key:
            return gold.leaves, 0
        if (gold.is_leaf and predicted.is_leaf) or (gold.members is None) != (predicted.members is None):
            scalar, other = gold.scalar, predicted.scalar
            return int(is_number(scalar) and is_number(other) and gold.rules.near(scalar, other)), 0
        known = self._counts.get((gold.key, predicted.key))
        if known is None:
            known = self._counts[gold.key, predicted.key] = self._count(gold, predicted)
        return known

    def _count(self, gold: Value, predicted: Value) -> tuple[int, int]:
        permitted = 0
        if gold.members is not None and predicted.members is not None:
            allows_extra = gold.rules.extra_keys == "allow"
            if not gold.members or not predicted.members:  # an empty object is a leaf
                return (1, predicted.leaves - 1) if allows_extra and not gold.members else (0, 0)
            common = [
                (member, predicted.members[name]) for name, member in gold.members.items() if name in predicted.members
            ]
            if allows_extra:
                extra = predicted.members.keys() - gold.members.keys()
                permitted = sum(predicted.members[name].leaves for name in extra)
        elif not gold.elements or not predicted.elements:
            return 0, 0
        elif gold.has_plain_elements and predicted.has_plain_elements and self._may_count(gold, predicted):
            return _common_elements(gold, predicted), 0
        else:
            common = [(gold.elements[left], predicted.elements[right]) for left, right in self.pairs(gold, predicted)]
        counts = [self.counts(*pair) for pair in common]
        return sum(shared for shared, _ in counts), permitted + sum(extra for _, extra in counts)

    def pairs(self, gold: Value, predicted: Value) -> Pairs:
        """Return the places of corresponding elements of two lists as pairs (gold, predicted), sorted by gold's place.

        Elements that are aligned by a member may share no leaf; other elements that share no leaf do not correspond.
        """
        key = id(gold), id(predicted)
        if key not in self._pairs:
            golds, others = gold.elements or [], predicted.elements or []
            if gold.rules.lists == "by":
                self._pairs[key] = _by_member(golds, others, gold.rules.key)
            else:
                pairs = self._assigned(golds, others) if gold.rules.lists == "any" else self._ordered(golds, others)
                self._pairs[key] = sorted(pair for pair in pairs if self.counts(golds[pair[0]], others[pair[1]])[0])
        return self._pairs[key]

    def _ordered(self, gold: Sequence[Value], predicted: Sequence[Value], *, is_gap: bool = False) -> Pairs:
        """Return the pairs of places in increasing order that share most leaves.

        Equal elements at both ends are paired first. If the rest is too long, it is divided at elements that a unique
        leaf identifies. A gap that is still too long is paired by index; `is_gap` says that the lists are such a gap.
        """
        start = _same_at_start(gold, predicted)
        end = _same_at_start(gold[start:][::-1], predicted[start:][::-1])
        pairs = [(place, place) for place in range(start)]
        pairs += [(len(gold) - place, len(predicted) - place) for place in range(1, end + 1)]
        gold, predicted = gold[start : len(gold) - end], predicted[start : len(predicted) - end]
        if gold and predicted:
            inner = self._aligned(gold, predicted, _most_shared_in_order)
            inner = self._ordered_in_parts(gold, predicted, is_gap=is_gap) if inner is None else inner
            pairs += [(start + left, start + right) for left, right in inner]
        return pairs

    def _ordered_in_parts(self, gold: Sequence[Value], predicted: Sequence[Value], *, is_gap: bool) -> Pairs:
        """Return pairs of places in increasing order for two lists that are too long to find the best pairs.

        They are divided at elements that a unique leaf identifies; without such elements, or within a gap, pair by
        index.
        """
        anchors = [] if is_gap else _longest_ordered(_pairs_by_unique_leaf(gold, predicted))
        if not anchors:
            return [(place, place) for place in range(min(len(gold), len(predicted)))]
        pairs, left, right = list(anchors), 0, 0
        for left_end, right_end in [*anchors, (len(gold), len(predicted))]:
            gap = self._ordered(gold[left:left_end], predicted[right:right_end], is_gap=True)
            pairs += [(left + one, right + other) for one, other in gap]
            left, right = left_end + 1, right_end + 1
        return pairs

    def _assigned(self, gold: Sequence[Value], predicted: Sequence[Value]) -> Pairs:
        """Return the pairs of places that share most leaves, regardless of order, each element in at most one pair.

        Without tolerances, equal elements are paired first, which costs no shared leaf. If the rest is too long, only
        elements that a unique leaf identifies are paired.
        """
        pairs: Pairs = []
        if not self._has_tolerance:
            free: defaultdict[int, list[int]] = defaultdict(list)
            for place in reversed(range(len(predicted))):
                free[predicted[place].key].append(place)
            pairs = [(place, free[value.key].pop()) for place, value in enumerate(gold) if free.get(value.key)]
        lefts = sorted({*range(len(gold))} - {left for left, _ in pairs})
        rights = sorted({*range(len(predicted))} - {right for _, right in pairs})
        if lefts and rights:
            rest = [gold[place] for place in lefts], [predicted[place] for place in rights]
            found = self._aligned(*rest, self._best_assignment)
            found = _pairs_by_unique_leaf(*rest) if found is None else found
            pairs += [(lefts[left], rights[right]) for left, right in found]
        return pairs

    def _aligned(self, gold: Sequence[Value], predicted: Sequence[Value], align: Align) -> Pairs | None:
        """Return the pairs that `align` finds to share most leaves; None if that is too much work.

        For many elements, shared leaves are counted by arrays. Arrays ignore the order of lists within elements, so
        they may count too many. If the pairs found share as many leaves as counted, they are the best nevertheless.
        """
        height, width, size, other_size = len(gold), len(predicted), _nested_size(gold), _nested_size(predicted)
        leaves, other_leaves = (sum(value.leaves for value in values) for values in (gold, predicted))
        by_pair = _PAIR_WORK * size * other_size + _SHARED_WORK * (leaves * other_size + other_leaves * size)
        by_arrays = _ARRAYS_WORK + _LEAF_WORK * (leaves + other_leaves) + (_CELL_WORK * height + leaves) * width
        pairs: Pairs | None = None
        if by_pair >= by_arrays:
            if not self._may_spend(by_arrays):
                self.is_bounded = True
                return None
            row = _rows_by_arrays(gold, predicted)
            pairs = align(row, height, width)
            if (size, other_size) == (height, width) or all(
                row(left)[right] == self.counts(gold[left], predicted[right])[0] for left, right in pairs
            ):
                return pairs
        if not self._may_spend(by_pair):
            self.is_bounded = True
            return pairs
        work_left, self._work_left = self._work_left, sys.maxsize  # the work of lists within elements is counted
        counts = [[self.counts(left, right)[0] for right in predicted] for left in gold]
        self._work_left = work_left
        return align(_rows_of(counts), height, width)

    def _best_assignment(self, row: Row, height: int, width: int) -> Pairs:
        pairs, is_best = _assignment(row, height, width)
        self.is_bounded |= not is_best
        return pairs

    def _may_count(self, gold: Value, predicted: Value) -> bool:
        """Return whether counting the common elements of two lists is within the bound on work, and spend that work."""
        return self._may_spend(len(gold.elements or ()) * len(predicted.elements or ()) // _COUNTED_AT_ONCE)

    def _may_spend(self, work: int) -> bool:
        """Return whether the work is within the bound, and if so subtract it from what is left."""
        may_spend = work <= self._work_left
        self._work_left -= work * may_spend
        return may_spend


def answer_value(answer: JsonAnswer, rules: RuleSet) -> Value:
    """Return an answer as a `Value`, without its ignored parts."""
    return _ValueReader(rules).read(answer.value, rules.root)


@lru_cache(maxsize=2)
def _comparison(gold: _AnswerIdentity, predicted: _AnswerIdentity, rules: RuleSet) -> Comparison:
    return Comparison(gold.answer.value, predicted.answer.value, rules)


def comparison(gold: JsonAnswer, predicted: JsonAnswer, rules: RuleSet) -> Comparison:
    """Return the comparison of two answers; the metrics and the difference of a case share it by a cache."""
    return _comparison(_AnswerIdentity(gold), _AnswerIdentity(predicted), rules)


@dataclass(frozen=True, slots=True, eq=False)
class _AnswerIdentity:
    """An answer as a key of the cache, compared by identity because its content may be long."""

    answer: JsonAnswer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AnswerIdentity) and self.answer is other.answer

    def __hash__(self) -> int:
        return id(self.answer)


def _common_elements(gold: Value, predicted: Value) -> int:
    """Return how many elements of two lists of leaves correspond.

    For lists in any order, this is the number of common elements. For ordered lists, it is the length of the longest
    common subsequence, by Hyyrö's bit vectors.
    """
    left, right = ([element.key for element in value.elements or ()] for value in (gold, predicted))
    if gold.rules.lists == "any":
        return (Counter(left) & Counter(right)).total()
    bits: defaultdict[int, int] = defaultdict(int)
    for place, key in enumerate(right):
        bits[key] |= 1 << place
    everywhere = (1 << len(right)) - 1
    rows = everywhere
    for key in left:
        if found := rows & bits.get(key, 0):
            rows = ((rows + found) | (rows - found)) & everywhere
    return len(right) - rows.bit_count()


def _nested_size(values: Sequence[Value]) -> int:
    """Return the number of elements, including those of lists within them."""
    return len(values) + sum(value.inner for value in values)


def _same_at_start(gold: Sequence[Value], predicted: Sequence[Value]) -> int:
    """Return how many elements at the start of two lists are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0].key == pair[1].key, zip(gold, predicted, strict=False)))


def _by_member(gold: Sequence[Value], predicted: Sequence[Value], name: str) -> Pairs:
    """Return the pairs of places of elements with the same value of the member `name`.

    Elements without this member, or with a value that is not unique in their list, are left out.
    """
    left, right = (unique_members(values, name) for values in (gold, predicted))
    return [(place, right[key]) for key, place in left.items() if key in right]


def unique_members(values: Sequence[Value], name: str) -> dict[int, int]:
    """Return the places of elements by the key of their member `name`; values that are not unique are left out."""
    keys = [member_key(value, name) for value in values]
    counts = Counter(keys)
    return {key: place for place, key in enumerate(keys) if key is not None and counts[key] == 1}


def member_key(value: Value, name: str) -> int | None:
    """Return the key of an element's member `name`; None if it has no such member, or it is an object or list."""
    member = (value.members or {}).get(name)
    return member.key if member is not None and member.members is None and member.elements is None else None


def _parts_with_paths(value: Value, path: Hashable = None) -> Iterator[tuple[Hashable, Value]]:
    """Yield the leaves of a value, and its objects with allowed extra keys, each with its path without indexes."""
    if value.members:
        if value.rules.extra_keys == "allow":
            yield path, value
        for name, member in value.members.items():
            yield from _parts_with_paths(member, (path, name))
    elif value.elements:
        for element in value.elements:
            yield from _parts_with_paths(element, (path, None))
    else:
        yield path, value


def _pairs_by_unique_leaf(gold: Sequence[Value], predicted: Sequence[Value]) -> Pairs:
    """Return the pairs of places of elements that share a leaf, such as an id, that is unique in both lists.

    Pairs are sorted by gold's place. The first such leaf of an element whose partner is free decides.
    """
    left, right = (_places_of_unique_parts(values) for values in (gold, predicted))
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for token, place in left.items():
        other = right.get(token)
        if other is not None and place not in pairs and other not in taken:
            pairs[place] = other
            taken.add(other)
    return sorted(pairs.items())


def _places_of_unique_parts(values: Sequence[Value]) -> dict[Hashable, int]:
    """Return the places of elements by what only one element has: its key, or a part of it with its path."""
    places: dict[Hashable, int | None] = {}
    for place, value in enumerate(values):
        for token in chain([value.key], ((path, part.key) for path, part in _parts_with_paths(value))):
            places[token] = place if places.get(token, place) == place else None
    return not_none(places)


def _longest_ordered(pairs: Pairs) -> Pairs:
    """Return the longest choice of pairs in which predicted's places increase too; `pairs` are in gold's order."""
    ends: list[int] = []  # of the shortest chains by their length, the last place in predicted
    last: list[int] = []  # the number of the pair there
    before: list[int] = []  # by pair, the one that precedes it
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1], last[length : length + 1] = [place], [number]
        before.append(last[length - 1] if length else -1)
    found: Pairs = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _rows_of(counts: list[list[int]]) -> Row:
    import numpy as np

    return lambda place: np.array(counts[place], np.intp)


def _rows_by_arrays(gold: Sequence[Value], predicted: Sequence[Value]) -> Row:
    """Return a function that counts the leaves that an element of gold shares with each predicted element.

    It looks up where predicted has each leaf, so the order of lists within elements is ignored.
    """
    import numpy as np

    positions: defaultdict[Hashable, list[int]] = defaultdict(list)
    near_numbers: defaultdict[Hashable, list[tuple[float, int]]] = defaultdict(list)
    for place, value in enumerate(predicted):
        for path, token, part in _tokens_of_parts(value):
            if (number := part.near_number) is not None:
                near_numbers[path].append((number, place))
            else:
                positions[token].append(place)
    places = {token: np.array(found, np.intp) for token, found in positions.items()}
    numbers = {
        path: (np.array([number for number, _ in found]), np.array([place for _, place in found], np.intp))
        for path, found in ((path, sorted(found)) for path, found in near_numbers.items())
    }
    nowhere = np.zeros(0, np.intp)

    def near(path: Hashable, number: float, rules: Rules) -> NDArray[np.intp]:
        others, found = numbers.get(path, (nowhere, nowhere))
        reach = max(rules.abs, rules.rel * abs(number) / (1 - rules.rel)) * (1 + 1e-9)
        start, end = np.searchsorted(others, (number - reach, number + reach))
        others, found = others[start:end], found[start:end]
        limits = np.maximum(rules.rel * np.maximum(abs(others), abs(number)), rules.abs)
        near_places: NDArray[np.intp] = found[abs(others - number) <= limits]
        return near_places

    def row(place: int) -> NDArray[np.intp]:
        parts = list(_tokens_of_parts(gold[place]))
        found = [places.get(token, nowhere) for _, token, part in parts if not part.members]
        counts: NDArray[np.intp] = np.bincount(np.concatenate([nowhere, *found]), minlength=len(predicted))
        for path, _, part in parts:
            if (number := part.near_number) is not None:
                counts[near(path, number, part.rules)] += (
                    1  # once for each element, however many of its numbers are near
                )
        return counts

    return row


def _tokens_of_parts(value: Value) -> Iterator[tuple[Hashable, Hashable, Value]]:
    """Yield the path, a token and the part for each part of an element.

    Equal parts at the same path have equal tokens. Repeated parts are numbered in their tokens, so that each is counted
    once.
    """
    numbers: Counter[Hashable] = Counter()
    for path, part in _parts_with_paths(value):
        is_any_object = part.members is not None and part.rules.extra_keys == "allow"
        token = path, _OBJECT if is_any_object else part.key
        yield path, (token, numbers[token]), part
        numbers[token] += 1


def _most_shared_in_order(row: Row, height: int, width: int) -> Pairs:
    """Return the pairs of places in increasing order with the greatest sum of shared leaves; every pair shares a leaf.

    `row` returns the numbers of leaves that an element of gold shares with each of the `width` predicted elements.
    """
    import numpy as np

    best = np.zeros(width + 1, np.intp)
    # By row: whether the best without its element, or without the one of the column, is as heavy.
    skips: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = []
    for place in range(height):
        further = np.zeros(width + 1, np.intp)
        np.maximum.accumulate(np.maximum(best[1:], best[:-1] + row(place)), out=further[1:])
        skips.append((np.packbits(further[1:] == best[1:]), np.packbits(further[1:] == further[:-1])))
        best = further
    pairs: Pairs = []
    left, right = height, width
    while left and right:
        without_left, without_right = skips[left - 1]
        byte, bit = divmod(right - 1, 8)
        if without_left[byte] >> (7 - bit) & 1:
            left -= 1
        elif without_right[byte] >> (7 - bit) & 1:
            right -= 1
        else:
            left, right = left - 1, right - 1
            pairs.append((left, right))
    return pairs


def _assignment(row: Row, height: int, width: int) -> tuple[Pairs, bool]:
    """Return pairs of places, each element in at most one, and whether no other pairs share more leaves.

    Elements with the heaviest pair choose first. The result is the best if all elements of one side have their heaviest
    pair. Otherwise scipy finds the best pairs, unless there are too many elements.
    """
    import numpy as np

    is_small = height * width <= MAX_ASSIGNED
    if is_small:
        row = [row(place) for place in range(height)].__getitem__
    heaviest = [int(row(place).max()) for place in range(height)]
    heaviest_columns = np.zeros(width, np.intp)
    is_free_at = np.ones(width, np.intp)
    pairs, shared = [], 0
    for left in sorted(range(height), key=lambda place: -heaviest[place]):
        counts = row(left)
        heaviest_columns = np.maximum(heaviest_columns, counts)
        right = int((counts * is_free_at).argmax())
        if is_free_at[right] and counts[right]:
            pairs.append((left, right))
            shared += int(counts[right])
            is_free_at[right] = 0
    if shared == min(sum(heaviest), int(heaviest_columns.sum())):
        return pairs, True
    if not is_small:
        return pairs, False
    from scipy.optimize import linear_sum_assignment

    lefts, rights = linear_sum_assignment(np.stack([row(place) for place in range(height)]), maximize=True)
    return list(zip(lefts.tolist(), rights.tolist(), strict=True)), True
