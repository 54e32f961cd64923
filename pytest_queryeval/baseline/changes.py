"""What is different between two reports besides the system under test, as far as the reports tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pytest_queryeval.aggregation import CaseJson
from pytest_queryeval.baseline.flips import Matched, Told

Basis: TypeAlias = Mapping[str, Any]
Change: TypeAlias = dict[str, Any]

REMOVED = "cases removed"
SKIPPED = "cases newly skipped"
XFAIL = "cases newly marked xfail"
LOWERED = "thresholds lowered"
RAISED = "thresholds raised"
ON_MISS = "on_miss changed"
TRIALS = "trials or trials_rule changed"
GOLD = "gold edited"
QUESTION = "question edited"
COMPARE = "comparison policy edited"
OPTIONS = "metric options edited"
DATABASE = "other state of the database"
# In this order they are named.
WHAT = (REMOVED, SKIPPED, XFAIL, LOWERED, RAISED, ON_MISS, TRIALS, GOLD, QUESTION, COMPARE, OPTIONS, DATABASE)
XFAIL_OUTCOMES = ("xfailed", "xpassed")


def changes(before: Told, after: Told, found: Matched) -> list[Change]:
    """What changed, each as `{"what": …, "cases": [node ids]}`; what concerns no single case has no cases.

    Another predictor is no change besides the system: it is the system.
    """
    cases: defaultdict[str, list[str]] = defaultdict(list)
    cases[REMOVED] += found.removed
    cases[SKIPPED] += found.skipped
    cases[XFAIL] += found.where({"passed", "failed", "missed", "error", "skipped"}, XFAIL_OUTCOMES)
    for old, new in found.common:
        for what in _of_case(old, new):
            cases[what].append(new["nodeid"])
    named = [{"what": what, "cases": cases[what]} for what in WHAT if cases[what]]
    return [*named, *({"what": what, "cases": []} for what in _versions(before, after))]


def unknown(found: Matched) -> int:
    """Of how many cases in both reports one does not tell what was asked: reports of older versions do not."""
    return sum(old.get("basis") is None or new.get("basis") is None for old, new in found.common)


def _of_case(old: CaseJson, new: CaseJson) -> Iterator[str]:
    if old["question"] != new["question"]:
        yield QUESTION
    before, after = old.get("basis"), new.get("basis")
    if before is None or after is None:
        return
    yield from _of_thresholds(before["thresholds"], after["thresholds"])
    for what, names in (
        (ON_MISS, ("on_miss",)),
        (TRIALS, ("trials", "trials_rule")),
        (GOLD, ("golds",)),
        (COMPARE, ("compare",)),
        (OPTIONS, ("options",)),
    ):
        if any(before[name] != after[name] for name in names):
            yield what
    if None not in (before["source"], after["source"]) and before["source"] != after["source"]:
        yield DATABASE


def _of_thresholds(before: Basis, after: Basis) -> Iterator[str]:
    """Lower is what asks for less: a smaller minimum, a greater maximum, a threshold that is gone."""
    names = before.keys() | after.keys()
    limits = [(before.get(name, _NO_LIMITS), after.get(name, _NO_LIMITS)) for name in names]
    if any(_asks_more(old, new) for old, new in limits):
        yield LOWERED
    if any(_asks_more(new, old) for old, new in limits):
        yield RAISED


_NO_LIMITS: Basis = {"min": None, "max": None}


def _asks_more(one: Basis, other: Basis) -> bool:
    """Whether one of the limits of `one` is stricter than that of the other."""
    low, high = one["min"], one["max"]
    return (low is not None and (other["min"] is None or low > other["min"])) or (
        high is not None and (other["max"] is None or high < other["max"])
    )


def _versions(before: Told, after: Told) -> Iterator[str]:
    """Other versions of this package and of engines, where both reports name them."""
    old, new = _named_versions(before), _named_versions(after)
    yield from (f"{name} {old[name]} became {new[name]}" for name in old if name in new and old[name] != new[name])


def _named_versions(report: Told) -> dict[str, str]:
    environment = report["environment"]
    engines = environment.get("engines")
    told: Iterable[tuple[Any, Any]] = engines.items() if isinstance(engines, dict) else ()
    package = environment.get("pytest_queryeval")
    return ({} if package is None else {"pytest_queryeval": str(package)}) | {str(name): str(v) for name, v in told}
