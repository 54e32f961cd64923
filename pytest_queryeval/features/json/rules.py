"""When values of two JSON answers are equal: the settings of `compare`, which may differ below a JSONPath."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.table import Policy

if TYPE_CHECKING:
    from pytest_queryeval.documents.json_path import Segment

Number: TypeAlias = "int | float"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that apply to a value.

    Numbers are equal if |x - y| <= max(rel * max(|x|, |y|), abs).
    """

    abs: float = 0.0
    rel: float = 0.0
    case: Literal["keep", "ignore"] = "keep"
    whitespace: Literal["keep", "ignore"] = "keep"
    lists: Literal["ordered", "any", "by"] = "ordered"
    key: str = ""
    """The member by which list elements are aligned; only for `lists` by."""
    extra_keys: Literal["reject", "allow"] = "reject"

    def text(self, value: str) -> str:
        """Return a text in the form in which it is compared: letter case and white space folded by the settings."""
        folded = value.casefold() if self.case == "ignore" else value
        return " ".join(folded.split()) if self.whitespace == "ignore" else folded

    @property
    def has_tolerance(self) -> bool:
        """Whether numbers that differ may be equal."""
        return self.abs > 0 or self.rel > 0

    def near(self, gold: Number, predicted: Number) -> bool:
        """Return whether two numbers are equal within the tolerance."""
        if gold == predicted or not self.has_tolerance:
            return gold == predicted
        try:
            return abs(gold - predicted) <= max(self.rel * max(abs(gold), abs(predicted)), self.abs)
        except OverflowError:  # of an integer beyond the numbers of a double
            return False


# The places within paths that a value has reached: the number of the path, and how many of its segments fit.
_Places: TypeAlias = frozenset[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Place:
    """A place in an answer: the rules of the value there, and whether it is ignored."""

    rules: Rules
    number: int
    """The number of the rules; places with equal rules have the same number."""
    ignored: bool
    places: _Places
    """How many segments of which configured paths lead to this place."""
    ranks: Mapping[str, tuple[int, int]]
    """For each setting from a path, the length and position of that path, by which a nearer path wins."""


class RuleSet:
    """The rules for all values of an answer: default rules, changes below JSONPaths, and paths of ignored values."""

    def __init__(
        self,
        rules: Rules = Rules(),
        paths: Sequence[tuple[str, Mapping[str, Any]]] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        self._paths: list[Sequence[Segment]] = []
        if paths or ignore:
            from pytest_queryeval.documents.json_path import segments

            self._paths = [segments(path) for path in (*(path for path, _ in paths), *ignore)]
        self._changes: list[Mapping[str, Any] | None] = [*(changes for _, changes in paths), *[None] * len(ignore)]
        self._steps = {segment.step for path in self._paths for segment in path}
        self._numbers: dict[Rules, int] = {}
        self._below: dict[tuple[Place, str | int | None, int], Place] = {}
        self.has_tolerance = rules.has_tolerance or any(
            changes.get("abs") or changes.get("rel") for _, changes in paths
        )
        self.has_members = any(
            settings.get("lists") == "by" for settings in [{"lists": rules.lists}, *dict(paths).values()]
        )
        """Whether elements of some lists are identified by a member."""
        outermost = Place(rules, self._number(rules), False, frozenset(), {})
        self.root = self._reached(outermost, frozenset((number, 0) for number in range(len(self._paths))))

    @cached_property
    def is_default(self) -> bool:
        """Whether values are equal only if they are the same JSON value."""
        return self.root.rules == Rules() and not self._paths

    def below(self, place: Place, step: str | int, length: int = 0) -> Place:
        """Return the place of the value one step below `place`: a key, or an index in a list of the given `length`."""
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


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Return whether a value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(maxsize=64)
def rules_of(policy: Policy) -> RuleSet:
    """Return the rules of a comparison policy; they are cached."""
    return RuleSet(
        Rules(**_rule_fields({name: getattr(policy, name) for name in _FIELDS})),
        [(str(path), _rule_fields(changes)) for path, changes in policy.paths.items() if isinstance(changes, Mapping)],
        policy.ignore,
    )


_FIELDS = ("abs", "rel", "case", "whitespace", "lists", "extra_keys")  # of a `Policy` that are rules


def _rule_fields(settings: Mapping[Any, Any]) -> dict[str, Any]:
    """Return settings of `compare` as fields of `Rules`, with 0 for an unset number."""
    fields = {name: 0.0 if value is None else value for name, value in settings.items()}
    lists = fields.get("lists")
    if isinstance(lists, Mapping):
        fields |= {"lists": "by", "key": lists["by"]}
    return fields
