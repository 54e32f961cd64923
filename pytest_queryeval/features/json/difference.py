"""The differences of two JSON answers: paths that are missing, extra, moved or have another value; and causes."""

from __future__ import annotations

import sys
from bisect import bisect
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias
from unicodedata import normalize

from pytest_queryeval.core.case_report import NO_DIFFERENCE, ChangedRow, DifferenceReport
from pytest_queryeval.core.cause import MAX_EDITS, NOTHING, Cause, CauseLabel, CausingEdit
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.table import Policy, Row
from pytest_queryeval.features.json.alignment import (
    BOUNDED,
    Comparison,
    Value,
    answer_value,
    comparison,
    member_key,
    unique_members,
)
from pytest_queryeval.features.json.rules import rules_of
from pytest_queryeval.features.json.values import canonical_text
from pytest_queryeval.text.formatting import one_line_with_end, pluralize, tell_apart, truncate, truncate_middle


class Member(NamedTuple):
    """The step of a path to a list element that a member identifies."""

    name: str
    value: str


Step: TypeAlias = "str | int | Member | None"  # None leads to all elements of a list
# A path as a linked list: the path to the container, and the last step; None for the whole document.
Path: TypeAlias = "tuple[Path, Step] | None"
COLUMNS = ("path", "value")  # of a difference
MAX_PATH = 200  # characters
MAX_VALUE = 200  # characters
MAX_SHOWN = 40  # of a value in the summary
# Normalization of a hostile key of combining characters takes time that grows with the square of its length.
MAX_NORMALIZED = 200
# The type of a value by the first character of its canonical text; any other character begins a number.
_TYPES = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
_SHORT_ESCAPES = ("\\b", "\\t", "\\n", "\\f", "\\r", "\\'", "\\\\")
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}
_ESCAPES |= {ord(character): escape for character, escape in zip("\b\t\n\f\r'\\", _SHORT_ESCAPES, strict=True)}


def path_text(steps: Iterable[Step]) -> str:
    r"""Return a path as a JSONPath (RFC 9535), with quotes around keys that need them, truncated in its middle.

    >>> print(path_text(["query", "a b", 0, "it's"]))
    $.query['a b'][0]['it\'s']
    """
    parts = ["$"]
    for step in steps:
        if step is None or isinstance(step, int):
            parts.append("[*]" if step is None else f"[{step}]")
        elif isinstance(step, Member):
            parts.append(f"[{truncate(step.name, MAX_PATH)}={step.value}]")
        else:
            key = truncate(step, MAX_PATH)
            parts.append(f".{key}" if key.isidentifier() else f"['{key.translate(_ESCAPES)}']")
    return truncate_middle("".join(parts), MAX_PATH)


class _Difference(NamedTuple):
    """A difference: the path and value in gold, and the path and value in predicted; None if that side has no value."""

    gold: tuple[Path, Value] | None
    predicted: tuple[Path, Value] | None


class _Differences:
    """The numbers of differences of two compared answers by sort, and the first `limit` differences of each sort."""

    def __init__(self, found: Comparison, limit: int) -> None:
        self._comparison, self._limit = found, limit
        self.counts: Counter[str] = Counter()
        self.found: defaultdict[str, list[_Difference]] = defaultdict(list)
        """By sort: missing, extra, changed, moved, and renamed, which are missing and extra as well."""
        self.respelled_count = 0
        """Extra keys that are missing in another Unicode normal form."""
        self._compare(found.gold, found.predicted, None, None)

    def _add(self, sort: str, gold: tuple[Path, Value] | None, predicted: tuple[Path, Value] | None) -> None:
        self.counts[sort] += 1
        if self.counts[sort] <= self._limit:
            self.found[sort].append(_Difference(gold, predicted))

    def _compare(self, gold: Value, predicted: Value, path: Path, other: Path) -> None:
        """Add the differences of two values at `path` in gold and `other` in predicted."""
        if gold.key == predicted.key:
            return
        if gold.members is not None and predicted.members is not None:
            self._compare_objects(gold, predicted, path, other)
        elif gold.elements is not None and predicted.elements is not None:
            self._compare_lists(gold, predicted, path, other)
        elif not self._comparison.counts(gold, predicted)[0]:
            self._add("changed", (path, gold), (other, predicted))

    def _compare_objects(self, gold: Value, predicted: Value, path: Path, other: Path) -> None:
        members, others = gold.members or {}, predicted.members or {}
        for name, member in members.items():
            if name in others:
                self._compare(member, others[name], (path, name), (other, name))
        missing = [name for name in members if name not in others]
        extra = [name for name in others if name not in members and gold.rules.extra_keys == "reject"]
        for name in missing:
            self._add("missing", ((path, name), members[name]), None)
        for name in extra:
            self._add("extra", None, ((other, name), others[name]))
        if missing and extra:
            missing_keys = set(map(_normalize, missing))
            self.respelled_count += sum(_normalize(name) in missing_keys for name in extra)
            for name, wrong in _renamed(members, missing, others, extra):
                self._add("renamed", ((path, name), members[name]), ((other, wrong), others[wrong]))

    def _compare_lists(self, gold: Value, predicted: Value, path: Path, other: Path) -> None:
        elements, others = gold.elements or [], predicted.elements or []
        pairs = self._comparison.pairs(gold, predicted) if elements and others else []
        steps, other_steps = (
            _step_reader(gold, gold.rules.lists == "by"),
            _step_reader(predicted, gold.rules.lists == "by"),
        )

        def compare(left: int, right: int) -> None:
            self._compare(elements[left], others[right], (path, steps(left)), (other, other_steps(right)))

        for left, right in pairs:
            compare(left, right)
        taken = {left for left, _ in pairs}, {right for _, right in pairs}
        lefts = [place for place in range(len(elements)) if place not in taken[0]]
        rights = [place for place in range(len(others)) if place not in taken[1]]
        if gold.rules.lists == "ordered":
            moves = _moves(elements, lefts, others, rights)
            for left, right in moves.items():
                sides = ((path, steps(left)), elements[left]), ((other, other_steps(right)), others[right])
                self._add("moved", *sides)
            moved = set(moves.values())
            lefts = [place for place in lefts if place not in moves]
            rights = [place for place in rights if place not in moved]
        for gap_lefts, gap_rights in _gaps(pairs, lefts, rights, gold.rules.lists):
            shorter = 0 if gold.rules.lists == "by" else min(len(gap_lefts), len(gap_rights))
            for left, right in zip(gap_lefts[:shorter], gap_rights[:shorter], strict=True):
                compare(left, right)
            for place in gap_lefts[shorter:]:
                self._add("missing", ((path, steps(place)), elements[place]), None)
            for place in gap_rights[shorter:]:
                self._add("extra", None, ((other, other_steps(place)), others[place]))


def _renamed(
    members: dict[str, Value], missing: Sequence[str], others: dict[str, Value], extra: Sequence[str]
) -> Iterable[tuple[str, str]]:
    """Yield each missing key with the extra key that has the same value, if no other of these keys has that value."""
    left, right = Counter(members[name].key for name in missing), Counter(others[name].key for name in extra)
    by_value = {others[name].key: name for name in extra}
    for name in missing:
        key = members[name].key
        if left[key] == right[key] == 1:
            yield name, by_value[key]


def _step_reader(value: Value, by_member: bool) -> Callable[[int], Step]:
    """Return a function from the place of a list element to its step: an index, or the member that identifies it."""
    elements, name = value.elements or [], value.rules.key
    told = set(unique_members(elements, name).values()) if by_member else set()

    def step(place: int) -> Step:
        if place not in told:
            return value.places[place]
        member = (elements[place].members or {})[name]
        return Member(name, truncate(canonical_text(member.scalar), MAX_SHOWN))

    return step


def _moves(
    elements: Sequence[Value], lefts: Sequence[int], others: Sequence[Value], rights: Sequence[int]
) -> dict[int, int]:
    """Return the places of unaligned elements of gold with the place of an equal unaligned element of predicted."""
    free: defaultdict[int, deque[int]] = defaultdict(deque)
    for place in rights:
        free[others[place].key].append(place)
    return {place: free[elements[place].key].popleft() for place in lefts if free.get(elements[place].key)}


def _gaps(
    pairs: Sequence[tuple[int, int]], lefts: Sequence[int], rights: Sequence[int], lists: str
) -> Iterable[tuple[Sequence[int], Sequence[int]]]:
    """Yield the unaligned places of both sides between two neighbouring pairs; without an order, all at once."""
    inner = pairs if lists == "ordered" else []
    for (left, right), (left_end, right_end) in pairwise([(-1, -1), *inner, (sys.maxsize, sys.maxsize)]):
        yield (
            lefts[bisect(lefts, left) : bisect(lefts, left_end)],
            rights[bisect(rights, right) : bisect(rights, right_end)],
        )


def difference(gold: JsonAnswer, predicted: JsonAnswer, policy: Policy, *, limit: int) -> DifferenceReport[Row]:
    """Return how the predicted answer differs from gold: rows of a path and the canonical text of its value.

    A value that only one side has is one row, at its own path. List elements are compared as they are aligned; an
    element that only moved is a change of its path. At most `limit` differences of each sort are listed. `counts`
    include those beyond `limit`.
    """
    compared = comparison(gold, predicted, rules_of(policy))
    differences = _Differences(compared, limit)
    counts = differences.counts
    parts = [
        f"missing {pluralize(counts['missing'], 'path')}" * bool(counts["missing"]),
        pluralize(counts["extra"], "extra path") * bool(counts["extra"]),
        f"another value at {pluralize(counts['changed'], 'path')}" * bool(counts["changed"]),
        pluralize(counts["moved"], "moved element") * bool(counts["moved"]),
        f"{pluralize(differences.respelled_count, 'extra key')} missing in another Unicode normal form"
        * bool(differences.respelled_count),
    ]
    summary = ", ".join(filter(None, parts))
    changed = [*differences.found["changed"], *differences.found["moved"]][:limit]
    rows: list[ChangedRow[Row]] = [
        {"gold": _side_row(found.gold), "predicted": _side_row(found.predicted)} for found in changed
    ]
    if counts.total() == 1 and rows:
        (path, gold_value), (other, value) = rows[0]["gold"], rows[0]["predicted"]
        values = str(gold_value), str(value)
        texts = tell_apart(*values, MAX_SHOWN) or [one_line_with_end(text, MAX_SHOWN) for text in values]
        shown = one_line_with_end(str(path), MAX_SHOWN)
        summary = f"{shown}: gold {texts[0]}, predicted {texts[1]}"
        if counts["moved"]:
            summary = f"{shown} is at {one_line_with_end(str(other), MAX_SHOWN)}"
    if not summary and str(gold.value) != str(predicted.value):
        summary = "only what `compare` lets be equal differs" if policy != Policy() else NOTATION
    return {
        **NO_DIFFERENCE,
        "summary": f"{summary} ({BOUNDED})" if compared.is_bounded else summary,
        "columns": [*COLUMNS],
        "counts": {
            "missing": counts["missing"] + counts["changed"] + counts["moved"],
            "extra": counts["extra"] + counts["changed"] + counts["moved"],
        },
        "missing": [_side_row(found.gold) for found in differences.found["missing"]],
        "extra": [_side_row(found.predicted) for found in differences.found["extra"]],
        "changed": rows,
    }


NOTATION = "only the order of keys or the notation of numbers differs"


def difference_cause(gold: JsonAnswer, predicted: JsonAnswer, policy: Policy) -> Cause | None:
    """Return the first differences as the edits of a cause; None if there are none.

    The edits are renamed keys, then missing paths, extra paths, other values and moved elements.

    >>> difference_cause(JsonAnswer({"year": 1990}), JsonAnswer({"year": "1990"}), Policy()).edits
    (CausingEdit(label='wrong-type', clause='$.year', change='"1990" → 1990'),)
    """
    found = _Differences(comparison(gold, predicted, rules_of(policy)), MAX_EDITS * 2).found
    edits = [_moved_edit("wrong-key", renamed) for renamed in found["renamed"]]
    renamed_paths = {side[0] for renamed in found["renamed"] for side in renamed if side}
    labels: Mapping[str, CauseLabel] = {"missing": "missing-member", "extra": "extra-member", "changed": "wrong-value"}
    for sort, label in labels.items():
        for gold_side, predicted_side in found[sort]:
            path, _ = gold_side or predicted_side or (None, None)
            if sort == "changed" or path not in renamed_paths:
                edits.append(_edit(label, path, gold_side, predicted_side))
    edits += [_moved_edit("moved", moved) for moved in found["moved"]]
    return Cause(edits=tuple(edits[:MAX_EDITS])) if edits else None


def _edit(
    label: CauseLabel, path: Path, gold: tuple[Path, Value] | None, predicted: tuple[Path, Value] | None
) -> CausingEdit:
    before, after = (NOTHING if side is None else _value_text(side[1]) for side in (predicted, gold))
    if gold and predicted and _TYPES.get(before[:1]) != _TYPES.get(after[:1]):
        label = "wrong-type"
    return CausingEdit(label=label, clause=_path_text(path), change=f"{before} → {after}")


def _moved_edit(label: CauseLabel, found: _Difference) -> CausingEdit:
    """Return the edit that moves a predicted value to the path that it has in gold."""
    path, other = (_path_text(None if side is None else side[0]) for side in found)
    return CausingEdit(label=label, clause=path, change=f"{other} → {path}")


def member_problem(gold: JsonAnswer, policy: Policy) -> str:
    """Return why a list of the gold answer cannot be aligned by the member that `compare` names; empty if it can."""
    rules = rules_of(policy)
    return "" if not rules.has_members else _member_problem(answer_value(gold, rules), None)


def _member_problem(value: Value, path: Path) -> str:
    problem = ""
    if value.elements and value.rules.lists == "by":
        name, setting = value.rules.key, f"`lists: {{by: {value.rules.key}}}`"
        first: dict[int, int] = {}
        for place, element in enumerate(value.elements):
            key, shown = member_key(element, name), _path_text((path, value.places[place]))
            if key is None:
                return f"{shown} has no value of '{name}' to identify it: add it, or remove {setting}"
            if first.setdefault(key, place) != place:
                earlier = _path_text((path, value.places[first[key]]))
                return f"{earlier} and {shown} have the same '{name}': {setting} needs one that differs"
    below: Iterable[tuple[Step, Value]] = (value.members or {}).items()
    if value.elements is not None:
        below = zip(value.places, value.elements, strict=True)
    for step, part in below:
        problem = problem or _member_problem(part, (path, step))
    return problem


def _normalize(key: str) -> str:
    return key if key.isascii() or len(key) > MAX_NORMALIZED else normalize("NFC", key)


def _side_row(side: tuple[Path, Value] | None) -> Row:
    path, value = side or (None, None)
    return _path_text(path), "" if value is None else _value_text(value)


def _path_text(path: Path) -> str:
    steps: list[Step] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return path_text(reversed(steps))


def _value_text(value: Value) -> str:
    return truncate(canonical_text(_plain(value)), MAX_VALUE)


def _plain(value: Value) -> JsonValue:
    """Return a `Value` as JSON, without its ignored parts."""
    if value.members is not None:
        return {name: _plain(member) for name, member in value.members.items()}
    return value.scalar if value.elements is None else [_plain(element) for element in value.elements]
