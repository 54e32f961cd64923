"""Two JSON answers side by side: which elements of their lists stand for each other, and how many leaves they share.

Elements of ordered lists are aligned in order, so that they share most leaves; of lists in any order one to one; else
by the value of a member. What is equal has the same number (`Value.key`), so most of two long answers is not compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, permutations
from typing import TYPE_CHECKING, TypeAlias

from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.features.json.rules import Place, Rules, RuleSet, is_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pairs: TypeAlias = "list[tuple[int, int]]"
# Bounds on the work for two answers; together a few seconds.
MAX_WORK = 600_000_000  # leaves of gold's elements times predicted elements
MAX_ASSIGNED = 250_000  # pairs of elements for which the best assignment is found
MAX_FEW = 3  # elements of both lists, of which all assignments are tried: arrays would take longer
MAX_INNER = 10_000  # pairs of lists of leaves within elements that are aligned to align these
BOUNDED = "lists are too long to find their best alignment, so more of them may agree"
_LIST_WORK, _LEAF_WORK = 20_000, 500  # of aligning two lists at all, and of reading a leaf of theirs
_ROW_WORK = 4  # of a pair of elements, in leaves
_OBJECT = -1  # the key of any object, to which an empty one is equal if extra keys are allowed
_INNER_WORK = 20  # of aligning an element of a list within elements, compared with a whole list of leaves
_COUNTED_AT_ONCE = 64  # pairs of leaves
_DENSE = 16  # the share of elements, 1/16, from which on a mask is faster than positions


@dataclass(slots=True, eq=False)
class Value:
    """A value without what is ignored in it, with its rules."""

    key: int
    """Values with the same key are equal, and lists with the same key are aligned element by element."""
    rules: Rules
    leaves: int
    scalar: JsonValue
    """Itself, if it has no paths below it: a scalar, an empty object or list; else None."""
    members: dict[str, Value] | None = None
    """Of an object, empty or not."""
    elements: list[Value] | None = None
    """Of a list, empty or not."""
    places: Sequence[int] = ()
    """The indexes of the elements, which are others where elements are ignored."""

    @property
    def has_plain_elements(self) -> bool:
        """Whether it is a list, aligned as a whole, of leaves that are equal only if their keys are."""
        return (
            self.elements is not None
            and self.rules.lists != "by"
            and self.rules.extra_keys == "reject"
            and all(element.is_leaf and _near_number(element) is None for element in self.elements)
        )

    @property
    def is_leaf(self) -> bool:
        """Whether it has no paths below it."""
        return not self.members and not self.elements


class _Reader:
    """Makes `Value`s, whose keys are shared by gold and predicted."""

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
        content = frozenset((name, member.key) for name, member in members.items())
        leaves = sum(member.leaves for member in members.values()) or 1
        return Value(self._key(place, "object", content), place.rules, leaves, None if members else {}, members)

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
        return Value(key, place.rules, leaves, None if elements else [], elements=elements, places=indexes)

    def _key(self, place: Place, sort: str, content: Hashable) -> int:
        return self._keys.setdefault((place.number, sort, content), len(self._keys))


class Comparison:
    """Two answers, and what they share under rules."""

    def __init__(self, gold: JsonValue, predicted: JsonValue, rules: RuleSet) -> None:
        reader = _Reader(rules)
        self.gold, self.predicted = reader.read(gold, rules.root), reader.read(predicted, rules.root)
        self.is_bounded = False
        """Whether a bound on the work ended the search for a better alignment."""
        self._has_tolerance = rules.has_tolerance
        self._work_left, self._inner_left = MAX_WORK, MAX_INNER
        self._pairs: dict[tuple[int, int], Pairs] = {}
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}
        self.shared, permitted = self.counts(self.gold, self.predicted)
        """How many leaves are in both."""
        self.predicted_leaves = self.predicted.leaves - permitted
        """How many of predicted's leaves count."""

    @property
    def are_equal(self) -> bool:
        """Whether the answers are equal."""
        return self.shared == self.gold.leaves == self.predicted_leaves

    def counts(self, gold: Value, predicted: Value) -> tuple[int, int]:
        """Return how many leaves two values share, and how many of predicted's are extra ones that are allowed."""
        if gold.key == predicted.key:
            return gold.leaves, 0
        if (gold.is_leaf and predicted.is_leaf) or (gold.members is None) != (predicted.members is None):
            return int(_are_equal(gold, predicted)), 0
        known = self._counts.get((gold.key, predicted.key))
        if known is None:
            known = self._counts[gold.key, predicted.key] = self._count(gold, predicted)
        return known

    def _count(self, gold: Value, predicted: Value) -> tuple[int, int]:
        shared = permitted = 0
        if gold.members is not None and predicted.members is not None:
            allows_extra = gold.rules.extra_keys == "allow"
            if not gold.members or not predicted.members:  # an empty object is a leaf
                return (1, predicted.leaves - 1) if allows_extra and not gold.members else (0, 0)
            for name, member in gold.members.items():
                if name in predicted.members:
                    counts = self.counts(member, predicted.members[name])
                    shared, permitted = shared + counts[0], permitted + counts[1]
            if allows_extra:
                extra = (member.leaves for name, member in predicted.members.items() if name not in gold.members)
                permitted += sum(extra)
        elif gold.elements and predicted.elements:
            if gold.has_plain_elements and predicted.has_plain_elements and self._may_count(gold, predicted):
                return _common_elements(gold, predicted), 0
            for gold_place, predicted_place in self.pairs(gold, predicted):
                counts = self.counts(gold.elements[gold_place], predicted.elements[predicted_place])
                shared, permitted = shared + counts[0], permitted + counts[1]
        return shared, permitted

    def pairs(self, gold: Value, predicted: Value) -> Pairs:
        """Return the places of the elements of two lists that stand for each other, in gold's order."""
        key = id(gold), id(predicted)
        if key not in self._pairs:
            gold_elements, predicted_elements = gold.elements or [], predicted.elements or []
            if gold.rules.lists == "by":
                pairs = _by_member(gold_elements, predicted_elements, gold.rules.key)
            elif gold.rules.lists == "any":
                pairs = self._assigned(gold_elements, predicted_elements)
            else:
                pairs = self._ordered(gold_elements, predicted_elements)
            is_keyed = gold.rules.lists == "by"
            self._pairs[key] = sorted(
                (left, right)
                for left, right in pairs
                if is_keyed or self.counts(gold_elements[left], predicted_elements[right])[0]
            )
        return self._pairs[key]

    def _ordered(self, gold: Sequence[Value], predicted: Sequence[Value], *, is_gap: bool = False) -> Pairs:
        """Return the pairs that share most leaves and keep the order. Equal elements at both ends are such pairs.

        If that is too much work, only between those that a leaf identifies, and in what is still too long by index.
        """
        shorter = min(len(gold), len(predicted))
        start = next((place for place in range(shorter) if gold[place].key != predicted[place].key), shorter)
        ends = range(1, shorter - start + 1)
        end = next((place - 1 for place in ends if gold[-place].key != predicted[-place].key), len(ends))
        pairs = [(place, place) for place in range(start)]
        pairs += [(len(gold) - place, len(predicted) - place) for place in range(1, end + 1)]
        inner = gold[start : len(gold) - end], predicted[start : len(predicted) - end]
        pairs += ((start + left, start + right) for left, right in self._ordered_inner(*inner, is_gap=is_gap))
        return pairs

    def _ordered_inner(
        self, gold: Sequence[Value], predicted: Sequence[Value], *, is_gap: bool
    ) -> Iterator[tuple[int, int]]:
        if not gold or not predicted:
            return
        if len(gold) == len(predicted) == 1:
            yield 0, 0
        elif self._may_spend(gold, predicted):
            yield from _most_shared_in_order(_Weights(self, gold, predicted))
        else:
            self.is_bounded = True
            left = right = 0
            anchors = [] if is_gap else _in_order(_identified(gold, predicted))
            for next_left, next_right in [*anchors, (len(gold), len(predicted))] if anchors else []:
                gap = gold[left:next_left], predicted[right:next_right]
                yield from ((left + one, right + other) for one, other in self._ordered(*gap, is_gap=True))
                if next_left < len(gold):
                    yield next_left, next_right
                left, right = next_left + 1, next_right + 1
            if not anchors:
                yield from zip(range(len(gold)), range(len(predicted)), strict=False)

    def _assigned(self, gold: Sequence[Value], predicted: Sequence[Value]) -> Pairs:
        """Return the pairs that share most leaves, each element in one at most.

        Without tolerances equal elements are such pairs: what else the two share with others, these share.
        """
        pairs: Pairs = []
        if not self._has_tolerance:
            free: defaultdict[int, list[int]] = defaultdict(list)
            for place in reversed(range(len(predicted))):
                free[predicted[place].key].append(place)
            pairs = [(place, free[value.key].pop()) for place, value in enumerate(gold) if free.get(value.key)]
        taken = {place for place, _ in pairs}, {place for _, place in pairs}
        lefts = [place for place in range(len(gold)) if place not in taken[0]]
        rights = [place for place in range(len(predicted)) if place not in taken[1]]
        rest = [gold[place] for place in lefts], [predicted[place] for place in rights]
        if lefts and rights:
            pairs += ((lefts[left], rights[right]) for left, right in self._assigned_rest(*rest))
        return pairs

    def _assigned_rest(self, gold: Sequence[Value], predicted: Sequence[Value]) -> Pairs:
        if len(gold) == len(predicted) == 1:
            return [(0, 0)]
        if not self._may_spend(gold, predicted):
            self.is_bounded = True
            return _identified(gold, predicted)
        if max(len(gold), len(predicted)) <= MAX_FEW:
            return self._best_of_few(gold, predicted)
        weights = _Weights(self, gold, predicted)
        if len(gold) * len(predicted) <= MAX_ASSIGNED:
            return _best_assignment(weights)
        pairs, is_best = _greedy_assignment(weights)
        self.is_bounded |= not is_best
        return pairs

    def _best_of_few(self, gold: Sequence[Value], predicted: Sequence[Value]) -> Pairs:
        """Return the pairs of the heaviest assignment of a few elements, by trying all."""
        counts = [[self.counts(left, right)[0] for right in predicted] for left in gold]
        height, width = len(gold), len(predicted)
        ways: Iterator[Sequence[tuple[int, int]]] = (
            (tuple(enumerate(rights)) for rights in permutations(range(width), height))
            if height <= width
            else (tuple(zip(lefts, range(width), strict=True)) for lefts in permutations(range(height), width))
        )
        return list(max(ways, key=lambda pairs: sum(counts[left][right] for left, right in pairs)))

    def _may_spend(self, gold: Sequence[Value], predicted: Sequence[Value]) -> bool:
        """Return whether the work of comparing all pairs of elements is within the bound, and count it."""
        leaves, other_leaves = (sum(value.leaves for value in values) for values in (gold, predicted))
        work = (_ROW_WORK * len(gold) + leaves) * len(predicted)
        work += _LIST_WORK + _LEAF_WORK * (leaves + other_leaves)
        if work > self._work_left:
            return False
        self._work_left -= work
        return True

    def _may_count(self, gold: Value, predicted: Value) -> bool:
        """Return whether the work of counting common elements is within the bound, and count it."""
        work = len(gold.elements or ()) * len(predicted.elements or ()) // _COUNTED_AT_ONCE
        if work > self._work_left:
            return False
        self._work_left -= work
        return True

    def may_align_inner(self, count: int) -> bool:
        """Return whether so many pairs of lists within elements may be aligned, and count them."""
        if count > self._inner_left:
            self.is_bounded = True
            return False
        self._inner_left -= count
        return True


def answer_value(answer: JsonAnswer, rules: RuleSet) -> Value:
    """Return an answer as it is compared."""
    return _Reader(rules).read(answer.value, rules.root)


@lru_cache(maxsize=2)
def _comparison(gold: _Shared, predicted: _Shared, rules: RuleSet) -> Comparison:
    return Comparison(gold.answer.value, predicted.answer.value, rules)


def comparison(gold: JsonAnswer, predicted: JsonAnswer, rules: RuleSet) -> Comparison:
    """Return the comparison of two answers, shared by the metrics and the difference of one case."""
    return _comparison(_Shared(gold), _Shared(predicted), rules)


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """An answer that is compared by identity, since its content may be long."""

    answer: JsonAnswer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shared) and self.answer is other.answer

    def __hash__(self) -> int:
        return id(self.answer)


def _are_equal(gold: Value, predicted: Value) -> bool:
    """Return whether two leaves with different keys are equal nevertheless: numbers within the tolerance."""
    if not is_number(gold.scalar) or not is_number(predicted.scalar):
        return False
    return gold.rules.near(gold.scalar, predicted.scalar)  # type: ignore[arg-type]  # both are numbers


def _common_elements(gold: Value, predicted: Value) -> int:
    """Return how many elements of two lists of leaves stand for each other: in order, by Hyyrö's bit vectors."""
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


def _by_member(gold: Sequence[Value], predicted: Sequence[Value], name: str) -> Pairs:
    """Return the pairs with the same value of a member; elements without it, or that repeat it, have no partner."""
    left, right = (unique_members(values, name) for values in (gold, predicted))
    return [(place, right[key]) for key, place in left.items() if key in right]


def unique_members(values: Sequence[Value], name: str) -> dict[int, int]:
    """Return the places of elements by the key of the member with this name, those that no other element has."""
    keys = [member_key(value, name) for value in values]
    counts = Counter(keys)
    return {key: place for place, key in enumerate(keys) if key is not None and counts[key] == 1}


def member_key(value: Value, name: str) -> int | None:
    """Return the key of a member by which an element is aligned; None unless it has this member, and it is a scalar."""
    member = (value.members or {}).get(name)
    return member.key if member is not None and member.members is None and member.elements is None else None


def _identified(gold: Sequence[Value], predicted: Sequence[Value]) -> Pairs:
    """Return the pairs of elements that share a leaf which no other element has, such as an id, in gold's order.

    Of several for an element, it is the first that is free.
    """
    left, right = (_identifying(values) for values in (gold, predicted))
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for token, place in left.items():
        other = right.get(token)
        if other is not None and place not in pairs and other not in taken:
            pairs[place] = other
            taken.add(other)
    return sorted(pairs.items())


def _identifying(values: Sequence[Value]) -> dict[Hashable, int]:
    """Return the places of elements by what only one of them has: itself, or a leaf below its members."""
    places: dict[Hashable, int | None] = {}
    for place, value in enumerate(values):
        for token in chain([value.key], _tokens(value, ())):
            places[token] = place if places.get(token, place) == place else None
    return {token: place for token, place in places.items() if place is not None}


def _tokens(value: Value, path: tuple[str, ...]) -> Iterator[Hashable]:
    for name, member in (value.members or {}).items():
        if member.is_leaf:
            yield (*path, name), member.key
        else:
            yield from _tokens(member, (*path, name))


def _in_order(pairs: Pairs) -> Pairs:
    """Return as many of the pairs, which are in gold's order, as are in predicted's order as well."""
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


class _Weights:
    """How many leaves each element of gold shares with each of predicted; a row for an element of gold."""

    def __init__(self, comparison: Comparison, gold: Sequence[Value], predicted: Sequence[Value]) -> None:
        self._comparison = comparison
        self._gold, self.height, self.width = gold, len(gold), len(predicted)
        self._paths: dict[Hashable, int] = {}
        self._aligns_inner = True
        gold_lists, predicted_lists = self._inner_lists(gold), self._inner_lists(predicted)
        work = (sum(costs.values()) * len(predicted_lists.get(path, ())) for path, costs in gold_lists.items())
        self._aligns_inner = comparison.may_align_inner(sum(work))
        positions: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        numbers: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        self._lists: defaultdict[int, dict[int, tuple[Value, list[int]]]] = defaultdict(dict)
        for place, value in enumerate(predicted):
            for path, part in self._parts(value):
                if part.elements and self._aligns_inner:
                    self._lists[path].setdefault(part.key, (part, []))[1].append(place)
                elif (number := _near_number(part)) is not None:
                    numbers[path].append((number, place))
                else:
                    positions[path, _OBJECT if part.members else part.key].append(place)
        import numpy as np

        self._np = np
        self._positions = {token: self._selection(places) for token, places in positions.items()}
        self._numbers = {
            path: (np.array([number for number, _ in found]), np.array([place for _, place in found]))
            for path, found in ((path, sorted(found)) for path, found in numbers.items())
        }
        self._inner_rows: dict[tuple[int, int], NDArray[np.int32]] = {}

    def row(self, place: int) -> NDArray[np.int32]:
        """Return how many leaves an element of gold shares with each of predicted's."""
        row = self._np.zeros(self.width, self._np.int32)
        for path, part in self._parts(self._gold[place]):
            if part.elements and self._aligns_inner:
                row += self._inner_row(path, part)
            elif (number := _near_number(part)) is not None:
                row[self._near(path, number, part.rules)] += 1
            elif not part.members:
                self._add(row, path, part.key)
                if part.members is not None:
                    self._add(row, path, _OBJECT)
        return row

    def _add(self, row: NDArray[np.int32], path: int, key: int) -> None:
        """Add 1 for each of predicted's elements that have this key at a path."""
        found = self._positions.get((path, key))
        if found is not None and found.dtype == bool:
            row += found
        elif found is not None:
            row[found] += 1

    def _selection(self, places: list[int]) -> NDArray[np.bool_] | NDArray[np.intp]:
        """Return these places as a mask, or as positions if they are few."""
        positions = self._np.array(places, self._np.intp)
        if len(places) * _DENSE < self.width:
            return positions
        mask = self._np.zeros(self.width, bool)
        mask[positions] = True
        return mask

    def _near(self, path: int, number: float, rules: Rules) -> NDArray[np.intp]:
        if path not in self._numbers:
            return self._np.zeros(0, self._np.intp)
        numbers, places = self._numbers[path]
        reach = max(rules.abs, rules.rel * abs(number) / (1 - rules.rel)) * (1 + 1e-9)
        start = self._np.searchsorted(numbers, number - reach, "left")
        end = self._np.searchsorted(numbers, number + reach, "right")
        candidates = numbers[start:end]
        limit = self._np.maximum(rules.rel * self._np.maximum(abs(candidates), abs(number)), rules.abs)
        near: NDArray[np.intp] = places[start:end][abs(candidates - number) <= limit]
        return near

    def _inner_row(self, path: int, value: Value) -> NDArray[np.int32]:
        known = self._inner_rows.get((path, value.key))
        if known is None:
            known = self._inner_rows[path, value.key] = self._np.zeros(self.width, self._np.int32)
            for other, places in self._lists.get(path, {}).values():
                known[places] = self._comparison.counts(value, other)[0]
        return known

    def _inner_lists(self, values: Sequence[Value]) -> Mapping[int, Mapping[int, int]]:
        """Return by path the keys of the lists within elements, with the work of aligning each."""
        found: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for value in values:
            for path, part in self._parts(value):
                if part.elements and part.key not in found[path]:
                    found[path][part.key] = 1 if part.has_plain_elements else _INNER_WORK * len(part.elements)
        return found

    def _parts(self, value: Value, path: int = 0) -> Iterator[tuple[int, Value]]:
        """Yield the leaves of an element, its objects that may have extra keys, and its lists where they are aligned.

        Each has the number of its path.
        """
        if value.members:
            if value.rules.extra_keys == "allow":
                yield path, value
            for name, member in value.members.items():
                yield from self._parts(member, self._path(path, name))
        elif value.elements and not self._aligns_inner:
            for place, element in enumerate(value.elements):
                yield from self._parts(element, self._path(path, place if value.rules.lists == "ordered" else None))
        else:
            yield path, value

    def _path(self, above: int, step: str | int | None) -> int:
        return self._paths.setdefault((above, step), len(self._paths) + 1)


def _near_number(value: Value) -> float | None:
    """Return the number that a leaf is, if it may equal others; None if it has to be the same."""
    if not value.rules.has_tolerance or not is_number(value.scalar):
        return None
    try:
        return float(value.scalar)  # type: ignore[arg-type]  # it is a number
    except OverflowError:
        return None


def _most_shared_in_order(weights: _Weights) -> Pairs:
    """Return the pairs of the heaviest common subsequence; each of them shares a leaf."""
    import numpy as np

    best = np.zeros(weights.width + 1, np.int32)
    # By row: whether the best without its element, or without the one of the column, is as heavy.
    skips: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = []
    for place in range(weights.height):
        row = np.zeros(weights.width + 1, np.int32)
        np.maximum.accumulate(np.maximum(best[1:], best[:-1] + weights.row(place)), out=row[1:])
        skips.append((np.packbits(row[1:] == best[1:]), np.packbits(row[1:] == row[:-1])))
        best = row
    pairs: Pairs = []
    left, right = weights.height, weights.width
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


def _best_assignment(weights: _Weights) -> Pairs:
    """Return the pairs of the heaviest assignment; each of them shares a leaf."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    matrix = np.stack([weights.row(place) for place in range(weights.height)])
    return [
        (int(left), int(right))
        for left, right in zip(*linear_sum_assignment(matrix, maximize=True), strict=True)
        if matrix[left, right]
    ]


def _greedy_assignment(weights: _Weights) -> tuple[Pairs, bool]:
    """Return pairs for the elements of gold, those with the heaviest pair first, and whether no assignment is heavier.

    That is known if each element has its heaviest pair.
    """
    heaviest = [int(weights.row(place).max()) for place in range(weights.height)]
    is_free_at = weights.row(0) >= 0  # everywhere
    pairs, is_best = [], True
    for left in sorted(range(weights.height), key=lambda place: -heaviest[place]):
        row = weights.row(left) * is_free_at
        right = int(row.argmax())
        is_best &= int(row[right]) == heaviest[left]
        if row[right]:
            pairs.append((left, right))
            is_free_at[right] = False
    return pairs, is_best
