"""A run compared with an earlier one: which cases flipped, how metrics changed, and what changed besides the system."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import PurePath

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import ALPHA, PASS_RATE
from pytest_queryeval.core.report import BaselineReport, CauseChange, EarlierCase, MetricChange, Report, RunResults
from pytest_queryeval.core.run_metrics import reported_run_metrics
from pytest_queryeval.results.aggregation import cause_labels, lower_is_better
from pytest_queryeval.results.baseline.changes import changes, fingerprints
from pytest_queryeval.results.baseline.difference import run_difference
from pytest_queryeval.results.baseline.pairs import Pairs, mean, score_of
from pytest_queryeval.text.escaping import utf8_safe
from pytest_queryeval.text.redaction import redact
from pytest_queryeval.text.truncation import truncate

EARLIER_CASES = 500  # of the regressions, and of the fixes
EARLIER_CHARACTERS = 4_000  # of what was predicted for one of them


def compare_reports(before: Report, after: RunResults, *, path: str) -> BaselineReport:
    """Compare a run with a baseline: plain values, complete, the same for the same reports.

    `path` is the name of the baseline; of an absolute path only the last part is kept.
    """
    difference = run_difference(before, after)
    flipped_nodeids = dict.fromkeys((*difference.regressions[:EARLIER_CASES], *difference.fixes[:EARLIER_CASES]))
    earlier: dict[str, EarlierCase] = {}
    unknown_cases = 0
    labels = Counter[str](), Counter[str]()
    pairs: defaultdict[str, Pairs] = defaultdict(Pairs)
    run_metrics = reported_run_metrics()
    concerned_metrics: set[str] = set()
    for old, new in difference.common:
        unknown_cases += fingerprints(old, new) is None
        if new["nodeid"] in flipped_nodeids:
            earlier[new["nodeid"]] = _earlier(old)
        for case, counts in zip((old, new), labels, strict=True):
            counts.update(cause_labels(case))
        for name in dict.fromkeys((PASS_RATE, *new["scores"], *old["scores"], *run_metrics)):
            pairs[name].add(score_of(name, old), score_of(name, new))
        concerned_metrics.update(
            name
            for name, run_metric in run_metrics.items()
            if run_metric.concerns is not None and (run_metric.concerns(old) or run_metric.concerns(new))
        )
    for name in run_metrics.keys() - concerned_metrics:
        pairs.pop(name, None)
    old_labels, new_labels = labels
    causes = {name: CauseChange(before=old_labels[name], after=new_labels[name]) for name in new_labels | old_labels}
    return {
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
    }


def _earlier(case: CaseReport) -> EarlierCase:
    """Return what was predicted for a case; the texts of a baseline may come from anywhere."""

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


def _metric_changes(pairs: Mapping[str, Pairs], costs: Collection[str]) -> dict[str, MetricChange]:
    """Return the change of the pass rate and of each metric that has a pair of scores."""
    scored_pairs = {name: scores for name, scores in pairs.items() if scores.before}
    if not scored_pairs:
        return {}
    # scipy.stats takes long to import.
    from pytest_queryeval.results.baseline.statistics import detectable_drop, paired_tests

    strictest_alpha = ALPHA / (2 * len(scored_pairs))  # of one side, by Holm's method
    return {
        name: {
            "n": len(scored_pairs[name].before),
            "before": mean(scored_pairs[name].before),
            "after": mean(scored_pairs[name].after),
            "change": test.change,
            "ci95": test.ci95,
            "p": test.p,
            "p_holm": test.p_holm,
            "test": test.test,
            "detectable": detectable_drop(
                scored_pairs[name].oriented("lower" if name in costs else "higher"), strictest_alpha
            ),
        }
        for name, test in paired_tests(scored_pairs).items()
    }
