"""A run compared with an earlier one: which cases flipped, how metrics changed, and what changed besides the system."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import PurePath

from pytest_queryeval.core.model import ALPHA, PASS_RATE
from pytest_queryeval.core.report import (
    BaselineReport,
    CaseReport,
    CauseChange,
    EarlierCase,
    MetricChange,
    Report,
    RunResults,
)
from pytest_queryeval.results.aggregation import costs
from pytest_queryeval.results.baseline.changes import changes, fingerprints
from pytest_queryeval.results.baseline.flips import ScorePairs, match_cases
from pytest_queryeval.text.escaping import utf8_safe
from pytest_queryeval.text.redaction import redact
from pytest_queryeval.text.truncation import truncate

EARLIER_CASES = 500  # of the regressions, and of the fixes
EARLIER_CHARACTERS = 4_000  # of what was predicted for one of them


def compare_reports(before: Report, after: RunResults, *, path: str) -> BaselineReport:
    """Compare a run with a baseline: plain values, complete, the same for the same reports.

    `path` is the name of the baseline; of an absolute path only the last part is kept.
    """
    found = match_cases(before, after)
    flipped = dict.fromkeys((*found.regressions[:EARLIER_CASES], *found.fixes[:EARLIER_CASES]))
    earlier: dict[str, EarlierCase] = {}
    unknown = 0
    labels = Counter[str](), Counter[str]()
    scores: defaultdict[str, ScorePairs] = defaultdict(ScorePairs.empty)
    for pair in found.common:
        old, new = pair
        unknown += fingerprints(old, new) is None
        if new["nodeid"] in flipped:
            earlier[new["nodeid"]] = _earlier(old)
        for case, counts in zip(pair, labels, strict=True):
            counts.update([case["cause"]["edits"][0]["label"]] if case["cause"] is not None else [])
        for name in dict.fromkeys((PASS_RATE, *new["scores"], *old["scores"])):
            scores[name].add(name, old, new)
    was, now = labels
    causes = {name: CauseChange(before=was[name], after=now[name]) for name in now | was}
    return {
        "path": PurePath(path).name if PurePath(path).is_absolute() else path,
        "created": before["created"],
        "cases": {
            "before": len(before["cases"]),
            "after": len(after["cases"]),
            "common": len(found.common),
            "added": len(found.added),
            "removed": len(found.removed),
            "not_run": len(found.not_run),
            "skipped": len(found.skipped),
            "errors": len(found.errors),
            "unknown": unknown,
        },
        "fixes": found.fixes,
        "regressions": found.regressions,
        "errors": found.errors,
        "metrics": _metric_changes(scores, costs(before["metrics"])),
        "causes": dict(sorted(causes.items(), key=lambda item: (-item[1]["after"], -item[1]["before"], item[0]))),
        "changes": changes(before, after, found),
        "earlier": {nodeid: earlier[nodeid] for nodeid in flipped},
    }


def _earlier(case: CaseReport) -> EarlierCase:
    """Return what was predicted for a case; its texts were written by whoever wrote the baseline."""

    def shown(text: str) -> str:
        return truncate(redact(utf8_safe(text)), EARLIER_CHARACTERS)

    predicted, difference = case["predicted"], case["difference"]
    query = None if predicted is None else predicted["query"]
    error = None if predicted is None else predicted["error"]
    return {
        "outcome": case["outcome"],
        "query": None if query is None else shown(query),
        "error": None if error is None else {"kind": error["kind"], "message": shown(error["message"])},
        "summary": "" if difference is None else shown(difference["summary"]),
    }


def _metric_changes(scores: Mapping[str, ScorePairs], lower: Collection[str]) -> dict[str, MetricChange]:
    """Return the change of the pass rate and of each metric, over the cases that have a score in both reports.

    `change` is the mean after less that before, `ci95` its interval, `p` of the two-sided paired test, `p_holm`
    adjusted for all metrics, and `detectable` the smallest drop that the adjusted test would have found in 4 of 5 runs;
    of metrics that are better when `lower`, the smallest rise.
    """
    scored = {name: both for name, both in scores.items() if both.before}
    if not scored:
        return {}
    # scipy.stats takes long to import.
    from pytest_queryeval.results.baseline.statistics import (
        Pairs,
        detectable_drop,
        fitting_test,
        holm,
        interval,
        mean,
        p_value,
    )

    found: dict[str, MetricChange] = {}
    for name, both in scored.items():
        pairs = Pairs(*both)
        found[name] = {
            "n": len(both.before),
            "before": mean(pairs.before),
            "after": mean(pairs.after),
            "change": pairs.change,
            "ci95": interval(pairs),
            "p": p_value(pairs),
            "p_holm": 1.0,
            "test": fitting_test(pairs),
            # One side of the strictest test that Holm's method makes.
            "detectable": detectable_drop(pairs.negated if name in lower else pairs, ALPHA / (2 * len(scored))),
        }
    for change, p in zip(found.values(), holm([change["p"] for change in found.values()]), strict=True):
        change["p_holm"] = p
    return found
