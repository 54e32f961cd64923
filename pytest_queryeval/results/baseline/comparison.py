"""A run compared with an earlier one: which cases flipped, how metrics changed, and what changed besides the system.

The latter is told as far as the reports show it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import ge
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.gates import Requirement, limit_requirements
from pytest_queryeval.core.groups import folder_text, is_below, where_text
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.metric import reported_run_metrics
from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import (
    BaselineReport,
    CauseChange,
    EarlierCase,
    FieldChange,
    MetricChange,
    PendingGate,
    Report,
    RunResults,
    SuiteChange,
)
from pytest_queryeval.results.aggregation import MAX_FIELDS, MOST_COUNTED, cause_labels, lower_is_better
from pytest_queryeval.results.baseline import (
    GOLD_DRIFT,
    MET_BY_OUTCOME,
    ON_MISS,
    RunDifference,
    in_scope,
    run_difference,
)
from pytest_queryeval.results.baseline.pairs import Pairs, compared_scores, is_defined_otherwise, mean
from pytest_queryeval.results.gates import gate_subject, rule_of
from pytest_queryeval.text.formatting import limits_text, truncate, utf8_safe
from pytest_queryeval.text.redaction import redact

IsChanged: TypeAlias = Callable[[CaseReport, CaseReport], bool]

REMOVED = "cases removed"
LEFT_OUT = "cases no longer selected"
SKIPPED = "cases newly skipped"
XFAIL = "cases newly marked xfail"
METRICS = "metrics no longer computed"
ANSWERABLE = "answerable edited"
FEWER = "fewer cases in a file"
DECISION = "decision on gold"
LOOSENED = "gate removed or loosened"
TIGHTENED = "gate added or tightened"
# All that `CASE_CHANGES` look at in a case, but for the names of its scores, `gold_source` and `_is_recorded`.
COMPARED: Sequence[Literal["outcome", "fingerprint", "question", "evidence", "tags", "difficulty", "source"]] = (
    *("outcome", "fingerprint", "question", "evidence"),
    *("tags", "difficulty", "source"),
)
# What depends on the machine in names of sources: the folders of an absolute path, and the port of a server.
_FOLDERS = re.compile(r"\A((?:\w[\w+.-]*:///)?)(?:[A-Za-z]:)?[\\/](?:.*[\\/])?")
_PORT = re.compile(r"(?<=://)([^/]*):\d+(?=/|$)")
EARLIER_CASES = 500  # of the regressions, of the fixes, and of the new errors
EARLIER_CHARACTERS = 4_000  # of what was predicted for one of them


def changes(difference: RunDifference) -> list[SuiteChange]:
    """Return what changed besides the system, which is the predictor, with the node ids of the cases concerned.

    Changes of the whole run, such as of gates or versions, list no cases.
    """
    before, after = difference.before, difference.after
    cases: dict[str, Sequence[str]] = {
        REMOVED: list(difference.removed),
        LEFT_OUT: difference.left_out,
        SKIPPED: difference.skipped,
    }
    lowered_thresholds: defaultdict[str, list[str]] = defaultdict(list)
    raised_thresholds: defaultdict[str, list[str]] = defaultdict(list)
    decisions: defaultdict[str, list[str]] = defaultdict(list)
    edited_cases: dict[str, list[str]] = {description: [] for description in (ANSWERABLE, *CASE_CHANGES)}
    for old, new in difference.common:
        is_same = old["scores"].keys() == new["scores"].keys() and all(old[name] == new[name] for name in COMPARED)
        has_same_gold_source = old.get("gold_source") == new.get("gold_source")
        if is_same and has_same_gold_source and _is_recorded(old) == _is_recorded(new):
            continue  # as most cases
        before_decision, after_decision = _decision(old), _decision(new)
        if before_decision != after_decision:
            decisions[f"{DECISION}: {before_decision} became {after_decision}"].append(new["nodeid"])
        if old.get("answerable", True) != new.get("answerable", True):  # and with it gold, metrics and thresholds
            if before_decision == after_decision:
                edited_cases[ANSWERABLE].append(new["nodeid"])
            continue
        if metrics := _lowered(old, new):
            lowered_thresholds[f"thresholds lowered: {', '.join(metrics)}"].append(new["nodeid"])
        if metrics := _lowered(new, old):
            raised_thresholds[f"thresholds raised: {', '.join(metrics)}"].append(new["nodeid"])
        for description, is_changed in CASE_CHANGES.items():
            if is_changed(old, new):
                edited_cases[description].append(new["nodeid"])
    cases |= {**lowered_thresholds, **raised_thresholds, **decisions, **edited_cases}
    case_changes: list[SuiteChange] = [
        {"what": description, "cases": list(nodeids)} for description, nodeids in cases.items() if nodeids
    ]
    run_changes = (*_smaller_files(difference), *_changed_gates(before, after), *_conditions(before, after))
    return [*case_changes, *(SuiteChange(what=description, cases=[]) for description in run_changes)]


def fingerprints(old: CaseReport, new: CaseReport) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the fingerprints of a case in both reports; two empty mappings if one of them is unknown."""
    before, after = old["fingerprint"], new["fingerprint"]
    return ({}, {}) if before is None or after is None else (before, after)


def _edited(
    *names: Literal[
        "on_miss",
        "trials",
        "trials_rule",
        "limits",
        "golds",
        "expect",
        "review",
        "context",
        "compare",
        "options",
        "schemas",
        "gold_source",
    ],
) -> IsChanged:
    """Return a test of two reports of a case: whether one of these entries differs between their fingerprints."""

    def is_edited(old: CaseReport, new: CaseReport) -> bool:
        before, after = fingerprints(old, new)
        return any(before.get(name) != after.get(name) for name in names)

    return is_edited


def _is_newly_expected(old: CaseReport, new: CaseReport) -> bool:
    """Return whether a new marker, such as of a conftest.py, expects a case to fail."""
    before, after = fingerprints(old, new)
    has_same_on_miss = before.get("on_miss") == after.get("on_miss") is not None
    is_spared = (old["outcome"], new["outcome"]) == ("failed", "missed")
    return (is_spared and has_same_on_miss) or (_is_marked(new) and not _is_marked(old))


def _is_marked(case: CaseReport) -> bool:
    """Return whether the suite or the outcome shows that a mark, and not `on_miss`, expects the case to fail."""
    fingerprint = case["fingerprint"]
    on_miss, is_marked = (None, False) if fingerprint is None else (fingerprint["on_miss"], "xfail" in fingerprint)
    has_mark_outcome = case["outcome"] in ("xfailed", "xpassed") or (case["outcome"] == "missed" and on_miss == "fail")
    return is_marked or has_mark_outcome


def _lowered(old: CaseReport, new: CaseReport) -> list[str]:
    """Return the metrics whose threshold is gone in `new`, or has a smaller minimum or a greater maximum."""
    before, after = (
        [
            ((metric, *name), numbers)
            for metric, limits in fingerprint.get("thresholds", {}).items()
            for name, numbers in limit_requirements(limits["min"], limits["max"])
        ]
        for fingerprint in fingerprints(old, new)
    )
    return list(dict.fromkeys(name for name, _ in _relaxed(before, after)))


def _relaxed(before: Iterable[Requirement], after: Iterable[Requirement]) -> list[tuple[str, ...]]:
    """Return the names of requirements that are gone afterwards, or have become less strict."""
    numbers_after = grouped(after)
    return [name for name, least in before if not any(all(map(ge, numbers, least)) for numbers in numbers_after[name])]


def _decision(case: CaseReport) -> str:
    """Return the decision on the golds of a case; "none" without a decision, or if it is "unsure"."""
    review = case.get("review")
    return "none" if review is None or review["decision"] == "unsure" else review["decision"]


def _answers_moved(before: str, after: str) -> IsChanged:
    """Return a test of two reports of a case: whether its answer moved from one place to another and differs.

    The places are "asked" or "stated". An answer with equal outcome and scores has not moved.
    """

    def is_moved(old: CaseReport, new: CaseReport) -> bool:
        places = [fingerprint.get("answers") for fingerprint in fingerprints(old, new)]
        if places != [before, after] or (old["outcome"], old["scores"]) == (new["outcome"], new["scores"]):
            return False
        queries = [case["predicted"] and case["predicted"]["query"] for case in (old, new)]
        return queries[0] is None or queries[0] != queries[1]

    return is_moved


def _is_recorded(case: CaseReport) -> bool:
    """Return whether the system's answer to a case was taken from a recording."""
    return case["prediction"] is not None and case["prediction"].get("recorded", False)


def _has_other_source(old: CaseReport, new: CaseReport) -> bool:
    """Return whether a case has another source, or its source another state; False if a fingerprint is unknown.

    If only one state is known, a case that ran both times counts as changed. If that is not so, as for a case that was
    skipped or in error, the names of the sources decide.
    """
    before, after = fingerprints(old, new)
    states = [fingerprint["source"] for fingerprint in (before, after) if fingerprint and fingerprint["source"]]
    if not before or len(states) == 2:
        return states[:1] != states[1:]
    has_run = old["outcome"] in MET_BY_OUTCOME and new["outcome"] in MET_BY_OUTCOME
    return (has_run and bool(states)) or _portable(old["source"]) != _portable(new["source"])


def _has_drifted(old: CaseReport, new: CaseReport) -> bool:
    """Return whether the same golds of a case have other answers than before."""
    before, after = (fingerprint.get("gold_answers") for fingerprint in fingerprints(old, new))
    is_same_gold = not _edited("golds", "review", "compare")(old, new)
    return is_same_gold and before is not None and after is not None and before != after


def _portable(name: str | None) -> str:
    """Return a source's name without the parts that depend on the machine: folders of absolute paths, and ports."""
    return ", ".join(_PORT.sub(r"\1", _FOLDERS.sub(r"\1", source_name)) for source_name in (name or "").split(", "))


# The changes that a case may have between two reports, in the order of a report.
CASE_CHANGES: Mapping[str, IsChanged] = {
    XFAIL: _is_newly_expected,
    ON_MISS: _edited("on_miss"),
    "trials or trials_rule changed": _edited("trials", "trials_rule"),
    "timeout or max_rows edited": _edited("limits"),
    "answers stated in the suite": _answers_moved("asked", "stated"),
    "answers asked of a predictor": _answers_moved("stated", "asked"),
    "answers taken from a recording": lambda old, new: _is_recorded(new) and not _is_recorded(old),
    "gold edited": _edited("golds"),
    "expectations edited": _edited("expect"),
    GOLD_DRIFT: _has_drifted,
    # The fingerprint of a review has the policy that its answers are compared by.
    "answers of reviewers edited": lambda old, new: (
        _decision(old) == _decision(new) and _edited("review")(old, new) and not _edited("compare")(old, new)
    ),
    "question, evidence or metadata edited": lambda old, new: (
        (old["question"], old["evidence"]) != (new["question"], new["evidence"]) or _edited("context")(old, new)
    ),
    "comparison policy edited": _edited("compare"),
    "metric options edited": _edited("options"),
    "metrics defined otherwise": lambda old, new: any(is_defined_otherwise(name, old, new) for name in new["scores"]),
    "JSON Schema, structure or tables edited": _edited("schemas"),
    METRICS: lambda old, new: bool(new["scores"] and old["scores"].keys() - new["scores"].keys()),
    "tags or difficulty edited": lambda old, new: (old["tags"], old["difficulty"]) != (new["tags"], new["difficulty"]),
    "another source, or another state of it": _has_other_source,
    "another source of gold, or another state of it": lambda old, new: (
        old.get("gold_source") != new.get("gold_source") or _edited("gold_source")(old, new)
    ),
}


def _smaller_files(difference: RunDifference) -> Iterator[str]:
    """Yield a description of each file that lost more cases than are listed as removed.

    A run with a selection lists no removed cases.
    """
    removed = Counter(difference.removed.values())
    after, collected = difference.after, difference.after["collected"]
    is_complete = collected and not after["stopped"]
    for path, old_count in difference.before["collected"].items():
        new_count = collected.get(path, 0)
        is_known = path in collected or (is_complete and in_scope(path, after))
        if is_known and old_count - new_count > removed[path]:
            yield f"{FEWER}: {path} ({old_count:,} before, {new_count:,} now)"


def _changed_gates(before: RunResults, after: RunResults) -> Iterator[str]:
    """Yield a description of each gate that is gone, new, loosened or tightened, if the run has cases in its folder."""
    changed_gates: list[tuple[str, PendingGate]] = []
    for description, gates, compared_gates in (
        (LOOSENED, before["gates"], after["gates"]),
        (TIGHTENED, after["gates"], before["gates"]),
    ):
        requirements = list(_gate_requirements(compared_gates))
        changed_gates += [(description, gate) for gate in gates if _relaxed(_gate_requirements([gate]), requirements)]
    paths = {case["path"] for case in after["cases"]} if changed_gates else ()
    names: dict[str, None] = {}
    for description, gate in changed_gates:
        if any(is_below(path, gate["folder"]) for path in paths):
            limits = f" ({limits_text(gate['min'], gate['max'])})" if rule_of(gate).has_limits else ""
            names[f"{description}: {gate_subject(gate)}{limits}{folder_text(gate['folder'])}"] = None
    yield from names


def _gate_requirements(gates: Iterable[PendingGate]) -> Iterator[Requirement]:
    """Yield the requirements of gates; those of the same folder, metric and `where` have comparable names."""
    for gate in gates:
        subject = gate["folder"], gate["metric"], where_text(dict(sorted(gate["where"].items())))
        yield from (((*subject, *name), numbers) for name, numbers in rule_of(gate).requirements(gate))


def _conditions(before: RunResults, after: RunResults) -> Iterator[str]:
    """Yield a description of each change in the conditions of the run: reruns, processes, versions."""
    if before["stopped"]:
        yield "the earlier run ended before all its cases ran"
    old_environment, new_environment = before["environment"], after["environment"]
    before_workers, after_workers = (
        environment.get("workers", 1) for environment in (old_environment, new_environment)
    )
    old_reruns, new_reruns = (environment.get("reruns", 0) for environment in (old_environment, new_environment))
    if new_reruns != old_reruns:
        yield f"reruns of a case: {old_reruns} became {new_reruns}"
    if after_workers > before_workers and any(gate["metric"].endswith("_seconds") for gate in after["gates"]):
        yield f"processes that ran cases at once, which disturbs times: {before_workers} became {after_workers}"
    old_versions, new_versions = (
        {"pytest_queryeval": environment.get("pytest_queryeval", ""), **environment.get("engines", {})}
        for environment in (old_environment, new_environment)
    )
    for name, old_version in old_versions.items():
        new_version = new_versions.get(name)
        if old_version and new_version and old_version != new_version:
            yield f"{name} {old_version} became {new_version}"


def compare_reports(before: Report, after: RunResults, *, path: str) -> BaselineReport:
    """Return the comparison of a run with a baseline, as plain values that depend only on the two reports.

    `path` is the name of the baseline; only the last part of an absolute path is kept.
    """
    difference = run_difference(before, after)
    sides = (difference.regressions, difference.fixes, difference.errors)
    flipped_nodeids = dict.fromkeys(nodeid for nodeids in sides for nodeid in nodeids[:EARLIER_CASES])
    earlier: dict[str, EarlierCase] = {}
    earlier_scores: defaultdict[str, dict[str, float]] = defaultdict(dict)
    unknown_cases = 0
    labels = Counter[str](), Counter[str]()
    pairs: defaultdict[str, Pairs] = defaultdict(Pairs)
    field_pairs: defaultdict[str, Pairs] = defaultdict(Pairs)
    run_metrics = reported_run_metrics()
    concerned_metrics: set[str] = set()
    for old, new in difference.common:
        unknown_cases += None in (old["fingerprint"], new["fingerprint"])
        if new["nodeid"] in flipped_nodeids:
            earlier[new["nodeid"]] = _earlier(old)
        for case, counts in zip((old, new), labels, strict=True):
            counts.update(cause_labels(case))
        for name in dict.fromkeys((PASS_RATE, *new["scores"], *old["scores"], *run_metrics)):
            score_before, score_after = compared_scores(name, old, new)
            pairs[name].add(score_before, score_after)
            if score_before is not None and score_before != score_after and name in old["scores"]:
                earlier_scores[new["nodeid"]][name] = score_before
        old_fields = old.get("field_scores", {})
        for name, score in new.get("field_scores", {}).items():
            if name in field_pairs or len(field_pairs) < MOST_COUNTED["fields"]:
                field_pairs[name].add(old_fields.get(name), score)
        concerned_metrics.update(
            name
            for name, run_metric in run_metrics.items()
            if run_metric.concerns is not None and (run_metric.concerns(old) or run_metric.concerns(new))
        )
    for name in run_metrics.keys() - concerned_metrics:
        pairs.pop(name, None)
    old_labels, new_labels = labels
    causes = {name: CauseChange(before=old_labels[name], after=new_labels[name]) for name in new_labels | old_labels}
    baseline: BaselineReport = {
        "path": PurePath(path).name if PurePath(path).is_absolute() else path,
        "created": before["created"],
        "cases": {
            "before": len(before["cases"]),
            "after": len(after["cases"]),
            "common": len(difference.common),
            "added": len(difference.added),
            "removed": len(difference.removed),
            "not_run": len(difference.not_run),
            "skipped": len(difference.skipped),
            "errors": len(difference.errors),
            "unknown": unknown_cases,
        },
        "fixes": difference.fixes,
        "regressions": difference.regressions,
        "errors": difference.errors,
        "metrics": _metric_changes(
            pairs,
            lower_is_better(before["metrics"])
            | {name for name, metric in run_metrics.items() if metric.better == "lower"},
        ),
        "causes": dict(sorted(causes.items(), key=lambda cause: (-cause[1]["after"], -cause[1]["before"], cause[0]))),
        "changes": changes(difference),
        "earlier": {nodeid: earlier[nodeid] for nodeid in flipped_nodeids},
        "earlier_scores": dict(earlier_scores),
        "added": difference.added,
    }
    if fields := _field_changes(field_pairs):
        baseline["fields"] = fields
    return baseline


def _earlier(case: CaseReport) -> EarlierCase:
    """Return outcome, query and error of a case in the baseline, shortened and without secrets."""

    def safe_text(text: str) -> str:
        return truncate(redact(utf8_safe(text)), EARLIER_CHARACTERS)

    predicted, difference = case["predicted"], case["difference"]
    query = None if predicted is None else predicted["query"]
    error = None if predicted is None else predicted["error"]
    return {
        "outcome": case["outcome"],
        "query": None if query is None else safe_text(query),
        "error": None if error is None else {"kind": error["kind"], "message": safe_text(error["message"])},
        "summary": "" if difference is None else safe_text(difference["summary"]),
    }


def _field_changes(pairs: Mapping[str, Pairs]) -> dict[str, FieldChange]:
    """Return the fields whose means changed, at most MAX_FIELDS, the largest sum of changes first."""
    changed = {name: scores for name, scores in pairs.items() if scores.change}
    names = sorted(changed, key=lambda name: -abs(sum(changed[name].differences)))
    return {
        name: {"n": len(changed[name].before), "before": mean(changed[name].before), "after": mean(changed[name].after)}
        for name in names[:MAX_FIELDS]
    }


def _metric_changes(pairs: Mapping[str, Pairs], costs: Collection[str]) -> dict[str, MetricChange]:
    """Return the tested change of each metric with a pair of scores, with p values adjusted for all of them.

    `costs` are the metrics for which lower scores are better. Return no change if no metric has a pair.
    """
    scored_pairs = {name: scores for name, scores in pairs.items() if scores.before}
    if not scored_pairs:
        return {}
    # scipy.stats takes long to import.
    from pytest_queryeval.results.baseline.statistics import paired_tests

    return paired_tests(scored_pairs, costs)
