"""What is different between two reports besides the system under test, as far as the reports tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import ge
from typing import Any, TypeAlias

from pytest_queryeval.results.aggregation import CaseJson
from pytest_queryeval.results.baseline.flips import MET, Matched, Told, in_scope
from pytest_queryeval.results.scope import folder_text, is_below, where_text

Basis: TypeAlias = Mapping[str, Any]
Change: TypeAlias = dict[str, Any]
# Something that is required, and numbers of which greater ones require more.
Demand: TypeAlias = tuple[tuple[Any, ...], tuple[float, ...]]

REMOVED = "cases removed"
LEFT_OUT = "cases no longer selected"
SKIPPED = "cases newly skipped"
XFAIL = "cases newly marked xfail"
METRICS = "metrics no longer computed"
FEWER = "fewer cases in a file"
LOOSENED = "gate removed or loosened"
XFAIL_OUTCOMES = ("xfailed", "xpassed")
# What is compared of a case beside its fingerprint.
OF_CASE = ("outcome", "scores", "source", "question", "evidence", "tags", "difficulty")
# What limits and rules require, as numbers of which greater ones require more.
STRICTNESS: Mapping[str, Callable[[Any], tuple[float, ...]]] = {
    "min": lambda least: (least,),
    "max": lambda most: (-most,),
    "no_regression": lambda rule: (rule["alpha"], -rule["max_drop"]),
    "max_regressions": lambda most: (-most,),
}
# What depends on the machine in names of sources: the folders of an absolute path, and the port of a server.
_FOLDERS = re.compile(r"\A((?:\w[\w+.-]*:///)?)(?:[A-Za-z]:)?[\\/](?:.*[\\/])?")
_PORT = re.compile(r"(?<=://)([^/]*):\d+(?=/|$)")


def changes(before: Told, after: Told, found: Matched) -> list[Change]:
    """What changed, each as `{"what": …, "cases": [node ids]}`; what concerns no single case has no cases.

    Another predictor is no change besides the system: it is the system.
    """
    pairs = [(_told(old), _told(new), new["nodeid"]) for old, new in found.common]
    cases = {REMOVED: found.removed, LEFT_OUT: found.left_out, SKIPPED: found.skipped} | {
        what: [nodeid for old, new, nodeid in pairs if is_so(old, new)] for what, is_so in OF_CASES.items()
    }
    named = [{"what": what, "cases": list(nodeids)} for what, nodeids in cases.items() if nodeids]
    others = (*_fewer(before, after, found), *_loosened(before, after), *_conditions(before, after))
    return [*named, *({"what": what, "cases": []} for what in others)]


def unknown(found: Matched) -> int:
    """Of how many cases in both reports one does not tell what was asked: reports of older versions do not."""
    return sum(old.get("fingerprint") is None or new.get("fingerprint") is None for old, new in found.common)


def _told(case: CaseJson) -> Basis:
    """Return what is compared of a case and its fingerprint; `source` is the source's name, `state` its state."""
    told = {name: case[name] for name in OF_CASE if name in case}
    fingerprint = case.get("fingerprint")
    return told if fingerprint is None else {**fingerprint, **told, "state": fingerprint["source"]}


def _other(*names: str) -> Callable[[Basis, Basis], bool]:
    """Whether one of these is another one; what a report of an older version does not have is not compared."""
    return lambda old, new: any(name in old and name in new and old[name] != new[name] for name in names)


def _is_newly_expected(old: Basis, new: Basis) -> bool:
    """Whether a case is expected to fail by a marker that it did not have, be it one of a conftest.py."""
    is_spared = (old["outcome"], new["outcome"]) == ("failed", "missed")
    is_same = "on_miss" in old and old["on_miss"] == new.get("on_miss")
    return (is_spared and is_same) or (_is_marked(new) and not _is_marked(old))


def _is_marked(case: Basis) -> bool:
    """Whether a case is expected to fail otherwise than by its `on_miss`, as far as its outcome tells."""
    return case["outcome"] in XFAIL_OUTCOMES or (case["outcome"] == "missed" and case.get("on_miss") == "fail")


def _asks_less(old: Basis, new: Basis) -> bool:
    """Whether a threshold is gone, or has a smaller minimum or a greater maximum."""
    return _other("thresholds")(old, new) and bool(_eased(_of_thresholds(old), _of_thresholds(new)))


def _of_thresholds(case: Basis) -> list[Demand]:
    return [demand for name, limits in case["thresholds"].items() for demand in _demands(limits, name)]


def _demands(asked: Basis, *of: Any) -> Iterator[Demand]:
    """What a threshold or a gate requires; `of` tells of what."""
    for rule, strictness in STRICTNESS.items():
        if asked.get(rule) is not None:
            yield (*of, rule), strictness(asked[rule])


def _eased(before: Iterable[Demand], after: Sequence[Demand]) -> list[tuple[Any, ...]]:
    """What was required and no longer is, or not as strictly."""
    return [
        what
        for what, numbers in before
        if not any(what == other and all(map(ge, theirs, numbers)) for other, theirs in after)
    ]


def _answers(old: Basis, new: Basis) -> tuple[Any, Any]:
    return old.get("answers"), new.get("answers")


def _has_other_source(old: Basis, new: Basis) -> bool:
    """Whether a case has another source, or its source another state; a name counts where no state tells more.

    What is skipped or in error may have a state that nobody has looked up.
    """
    if "state" not in old or "state" not in new:
        return False
    has_state = [told["state"] is not None for told in (old, new)]
    if all(has_state):
        return bool(old["state"] != new["state"])
    has_run = old["outcome"] in MET and new["outcome"] in MET
    return (has_run and any(has_state)) or (
        _other("source")(old, new) and _portable(old["source"]) != _portable(new["source"])
    )


def _portable(name: str | None) -> str:
    """A source's name as it is on any machine."""
    return ", ".join(_PORT.sub(r"\1", _FOLDERS.sub(r"\1", each)) for each in (name or "").split(", "))


# What may be different of a case in both reports, in the order in which it is named.
OF_CASES: Mapping[str, Callable[[Basis, Basis], bool]] = {
    XFAIL: _is_newly_expected,
    "thresholds lowered": _asks_less,
    "thresholds raised": lambda old, new: _asks_less(new, old),
    "on_miss changed": _other("on_miss"),
    "trials or trials_rule changed": _other("trials", "trials_rule"),
    "timeout or max_rows edited": _other("limits"),
    "answers stated in the suite": lambda old, new: _answers(old, new) == ("asked", "stated"),
    "answers asked of a predictor": lambda old, new: _answers(old, new) == ("stated", "asked"),
    "gold edited": _other("golds"),
    "question, evidence or metadata edited": _other("question", "evidence", "context"),
    "comparison policy edited": _other("compare"),
    "metric options edited": _other("options"),
    "JSON Schema, structure or tables edited": _other("schemas"),
    METRICS: lambda old, new: bool(new["scores"] and old["scores"].keys() - new["scores"].keys()),
    "tags or difficulty edited": _other("tags", "difficulty"),
    "another source, or another state of it": _has_other_source,
}


def _fewer(before: Told, after: Told, found: Matched) -> Iterator[str]:
    """Files that have lost more cases than are named as removed, which they are not where a run is a selection."""
    paths = {case["nodeid"]: case["path"] for case in before["cases"]}
    removed = Counter(paths[nodeid] for nodeid in found.removed)
    collected = after.get("collected", {})
    is_complete = collected and not after["stopped"]
    for path, old in before.get("collected", {}).items():
        new = collected.get(path, 0)
        is_told = path in collected or (is_complete and in_scope(path, after))
        if is_told and old - new > removed[path]:
            yield f"{FEWER}: {path} ({old:,} before, {new:,} now)"


def _loosened(before: Told, after: Told) -> Iterator[str]:
    """Gates of folders with cases in the run which ask for less than before, or are gone."""
    if "gates" not in after:
        return
    eased = _eased(_of_gates(before.get("gates", ())), _of_gates(after["gates"]))
    for folder, metric, where in dict.fromkeys(what[:3] for what in eased):
        if any(is_below(case["path"], folder) for case in after["cases"]):
            yield f"{LOOSENED}: {metric}{where} in {folder_text(folder)}"


def _of_gates(gates: Iterable[Mapping[str, Any]]) -> list[Demand]:
    return [
        demand
        for gate in gates
        for demand in _demands(gate, gate["folder"], gate["metric"], where_text(dict(sorted(gate["where"].items()))))
    ]


def _conditions(before: Told, after: Told) -> Iterator[str]:
    """What else scores depend on: whether answers are recorded ones, how often a case is run again, versions."""
    then, now = before["environment"], after["environment"]
    if now.get("replay") and not then.get("replay"):
        yield "answers are recorded ones, and no system was asked"
    if now.get("reruns", 0) != then.get("reruns", 0):
        yield f"reruns of a case: {then.get('reruns', 0)} became {now.get('reruns', 0)}"
    old, new = _named_versions(before), _named_versions(after)
    yield from (f"{name} {old[name]} became {new[name]}" for name in old if name in new and old[name] != new[name])


def _named_versions(report: Told) -> dict[str, str]:
    environment = report["environment"]
    engines = environment.get("engines")
    told: Iterable[tuple[Any, Any]] = engines.items() if isinstance(engines, dict) else ()
    package = environment.get("pytest_queryeval")
    return ({} if package is None else {"pytest_queryeval": str(package)}) | {str(name): str(v) for name, v in told}
