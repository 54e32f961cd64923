"""When values of two JSON answers are equal: the settings of `compare`, which may be others below a JSONPath."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_queryeval.core.json_value import JsonValue

Number: TypeAlias = "int | float"
_SEGMENT = re.compile(
    r"(?P<descend>\.\.(?=[\w*\[])|\.(?=[\w*])|(?=\[))"
    r"(?:(?P<name>[^\W\d]\w*)|(?P<wild>\*|\[\*\])|\[(?P<index>-?\d{1,9})\]"
    r"|\['(?P<single>(?:[^'\\]|\\['\\])*)'\]|\[\"(?P<double>(?:[^\"\\]|\\[\"\\])*)\"\])"
)
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings for a value. Numbers are equal if |x - y| <= max(rel * max(|x|, |y|), abs)."""

    abs: float = 0.0
    rel: float = 0.0
    case: Literal["keep", "ignore"] = "keep"
    whitespace: Literal["keep", "ignore"] = "keep"
    lists: Literal["ordered", "any", "by"] = "ordered"
    key: str = ""
    """The member by which elements of a list are aligned, with `lists` by."""
    extra_keys: Literal["reject", "allow"] = "reject"

    def text(self, value: str) -> str:
        """Return a text as it is compared."""
        folded = value.casefold() if self.case == "ignore" else value
        return " ".join(folded.split()) if self.whitespace == "ignore" else folded

    @property
    def has_tolerance(self) -> bool:
        """Whether numbers that differ may be equal."""
        return self.abs > 0 or self.rel > 0

    def near(self, gold: Number, predicted: Number) -> bool:
        """Return whether two numbers are equal, or near enough."""
        if gold == predicted or not self.has_tolerance:
            return gold == predicted
        try:
            return abs(gold - predicted) <= max(self.rel * max(abs(gold), abs(predicted)), self.abs)
        except OverflowError:  # of an integer beyond the numbers of a double
            return False


class Segment(NamedTuple):
    """A step of a path: a key, an index, or None for any of them; with `descends` at any depth."""

    step: str | int | None
    descends: bool

    def fits(self, step: str | int | None, length: int) -> bool:
        """Return whether the step leads where the segment does, in a list of that length or an object."""
        if self.step is None:
            return True
        if isinstance(self.step, int) and isinstance(step, int):
            return step == (self.step if self.step >= 0 else length + self.step)
        return self.step == step


def segments(path: str) -> tuple[Segment, ...]:
    """Return the segments of a JSONPath of names, indexes, `*` and `..`; raise ValueError for any other one."""
    if not path.startswith("$"):
        raise ValueError(f"`{path}` is not a JSONPath: it begins with `$`")
    found, place = [], 1
    while place < len(path):
        match = _SEGMENT.match(path, place)
        if match is None:
            raise ValueError(f"`{path}` is not a JSONPath of names, indexes, `*` and `..`")
        quoted = match["single"] if match["single"] is not None else match["double"]
        step: str | int | None = match["name"]
        if quoted is not None:
            step = _ESCAPE.sub(r"\1", quoted)
        elif match["index"]:
            step = int(match["index"])
        found.append(Segment(step, match["descend"] == ".."))
        place = match.end()
    return tuple(found)


# The places within paths that a value has reached: the number of the path, and how many of its segments fit.
_Places: TypeAlias = frozenset[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Place:
    """What is known of a value by its path: its rules, and whether it is ignored."""

    rules: Rules
    number: int
    """The number of the rules: places with the same one have equal rules."""
    ignored: bool
    places: _Places
    ranks: Mapping[str, tuple[int, int]]
    """By setting, the length and the position of the path that it comes from."""


class RuleSet:
    """The rules of all values: those of the answer, those below paths, and the paths of what is ignored."""

    def __init__(
        self,
        rules: Rules = Rules(),
        paths: Sequence[tuple[str, Mapping[str, Any]]] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        self._paths = [*(segments(path) for path, _ in paths), *map(segments, ignore)]
        self._changes: list[Mapping[str, Any] | None] = [*(changes for _, changes in paths), *[None] * len(ignore)]
        self._steps = {segment.step for path in self._paths for segment in path}
        self._numbers: dict[Rules, int] = {}
        self._below: dict[tuple[Place, str | int | None, int], Place] = {}
        self.has_tolerance = rules.has_tolerance or any(
            changes.get("abs") or changes.get("rel") for _, changes in paths
        )
        outermost = Place(rules, self._number(rules), False, frozenset(), {})
        self.root = self._reached(outermost, frozenset((number, 0) for number in range(len(self._paths))))

    @cached_property
    def is_default(self) -> bool:
        """Whether values are equal only if they are the same JSON value."""
        return self.root.rules == Rules() and not self._paths

    def below(self, place: Place, step: str | int, length: int = 0) -> Place:
        """Return the place of the value at a step below one; `length` is that of its list."""
        if not place.places:
            return place
        is_named = step in self._steps or (isinstance(step, int) and step - length in self._steps)
        key = (place, step, length) if is_named else (place, None, 0)
        known = self._below.get(key)
        if known is None:
            known = self._below[key] = self._reached(place, self._next(place.places, *key[1:]))
        return known

    def _next(self, places: _Places, step: str | int | None, length: int) -> _Places:
        def reached() -> Iterator[tuple[int, int]]:
            for number, count in places:
                if count < len(self._paths[number]):
                    segment = self._paths[number][count]
                    if segment.descends:
                        yield number, count
                    if segment.fits(step, length):
                        yield number, count + 1

        return frozenset(reached())

    def _reached(self, above: Place, places: _Places) -> Place:
        rules, ranks, ignored = above.rules, dict(above.ranks), False
        for number in sorted(number for number, count in places if count == len(self._paths[number])):
            changes = self._changes[number]
            if changes is None:
                ignored = True
                continue
            rank = len(self._paths[number]), number
            nearer = {name: value for name, value in changes.items() if ranks.get(name, (-1, 0)) <= rank}
            rules = replace(rules, **nearer)
            ranks |= dict.fromkeys(nearer, rank)
        return Place(rules, self._number(rules), ignored, places, ranks)

    def _number(self, rules: Rules) -> int:
        return self._numbers.setdefault(rules, len(self._numbers))


def is_number(value: JsonValue) -> bool:
    """Return whether a value is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


DEFAULT = RuleSet()
