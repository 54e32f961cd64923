"""What is different between two reports besides the system under test, as far as the reports tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pytest_queryeval.aggregation import CaseJson
from pytest_queryeval.baseline.flips import Matched, Told
from pytest_queryeval.gates import RULES, is_below

Basis: TypeAlias = Mapping[str, Any]
Change: TypeAlias = dict[str, Any]

REMOVED = "cases removed"
SKIPPED = "cases newly skipped"
XFAIL = "cases newly marked xfail"
LOWERED = "thresholds lowered"
RAISED = "thresholds raised"
ON_MISS = "on_miss changed"
TRIALS = "trials or trials_rule changed"
LIMITS = "timeout or max_rows edited"
GOLD = "gold edited"
QUESTION = "question or evidence edited"
COMPARE = "comparison policy edited"
OPTIONS = "metric options edited"
SCHEMAS = "JSON Schema, structure or tables edited"
METRICS = "metrics no longer computed"
GROUPS = "tags or difficulty edited"
DATABASE = "other state of the database"
LOOSENED = "gate removed or loosened"
# In this order they are named.
WHAT = (
    *(REMOVED, SKIPPED, XFAIL, LOWERED, RAISED, ON_MISS, TRIALS, LIMITS),
    *(GOLD, QUESTION, COMPARE, OPTIONS, SCHEMAS, METRICS, GROUPS, DATABASE),
)
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
    others = (*_loosened(before, after), *_versions(before, after))
    return [*named, *({"what": what, "cases": []} for what in others)]


def unknown(found: Matched) -> int:
    """Of how many cases in both reports one does not tell what was asked: reports of older versions do not."""
    return sum(old.get("basis") is None or new.get("basis") is None for old, new in found.common)


def _of_case(old: CaseJson, new: CaseJson) -> Iterator[str]:
    if old["question"] != new["question"] or old.get("evidence", "") != new.get("evidence", ""):
        yield QUESTION
    if new["scores"] and old["scores"].keys() - new["scores"].keys():
        yield METRICS
    if (old["tags"], old["difficulty"]) != (new["tags"], new["difficulty"]):
        yield GROUPS
    before, after = old.get("basis"), new.get("basis")
    if before is None or after is None:
        return
    yield from _of_thresholds(before["thresholds"], after["thresholds"])
    for what, names in (
        (ON_MISS, ("on_miss",)),
        (TRIALS, ("trials", "trials_rule")),
        (LIMITS, ("limits",)),
        (GOLD, ("golds",)),
        (COMPARE, ("compare",)),
        (OPTIONS, ("options",)),
        (SCHEMAS, ("schemas",)),
    ):
        if any(name in before and name in after and before[name] != after[name] for name in names):
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


def _loosened(before: Told, after: Told) -> Iterator[str]:
    """Gates of folders with cases in the run which ask for less than before, or are gone."""
    gates = {_gate_key(gate): gate for gate in after.get("gates", ())}
    for gate in before.get("gates", ()) if "gates" in after else ():
        new = gates.get(_gate_key(gate))
        if new is not None and not _asks_more(gate, new) and all(gate.get(rule) == new.get(rule) for rule in RULES):
            continue
        if any(is_below(case["path"], gate["folder"]) for case in after["cases"]):
            where = "".join(f" where {name} is {value}" for name, value in gate["where"].items())
            asked = gate.get("metric") or next((rule for rule in RULES if gate.get(rule) is not None), "")
            yield f"{LOOSENED}: {asked}{where} in {gate['folder']}"


def _gate_key(gate: Mapping[str, Any]) -> tuple[Any, ...]:
    rules = tuple(gate.get(rule) is not None for rule in RULES)
    return gate["folder"], gate.get("metric"), tuple(sorted(gate["where"].items())), rules


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
