"""What a comparison with a baseline says, for people; the first of long lists only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pytest_queryeval.core.report import BaselineReport, MetricChange
from pytest_queryeval.reports.comparison.passages import Foreign, Passage, Sentence, Table
from pytest_queryeval.text.plain import counted, interval_text, score_text

LISTED = 20  # names of cases that changed sides
EXAMPLES = 3  # names of cases that were asked otherwise
HEADER = ("metric", "before", "after", "change", "95 % interval", "n", "p", "detects")
COUNTS: Mapping[Literal["added", "removed", "skipped", "errors", "not_run"], str] = {
    "added": "added",
    "removed": "removed",
    "skipped": "newly skipped",
    "errors": "newly in error",
    "not_run": "not run this time",
}
FLIPS: Mapping[Literal["regressions", "fixes", "errors"], str] = {
    "regressions": "regressions",
    "fixes": "fixes",
    "errors": "newly in error",
}
NOTE = (
    "p: two-sided paired test of 'nothing changed', adjusted for all metrics, as intervals and the p of gates are not; "
    "detects: the smallest drop that it would prove in 4 of 5 runs of so many cases"
)


def baseline_passages(baseline: BaselineReport) -> Iterator[Passage]:
    """The comparison, what may explain its figures before them."""
    yield headline(baseline)
    yield from changes_besides(baseline)
    yield from metric_changes(baseline)
    yield from flips(baseline)


def headline(baseline: BaselineReport) -> Sentence:
    """What is compared, and how many cases changed sides."""
    counts = baseline["cases"]
    place = ("against the baseline ", Foreign(baseline["path"]), " of ", Foreign(baseline["created"]))
    if not counts["common"]:
        return (*place, ": no case in common; node ids begin at the root folder, which has to be the same")
    fixes, regressions = len(baseline["fixes"]), len(baseline["regressions"])
    said = [f"{fixes:,} fix{'es' * (fixes != 1)}", counted(regressions, "regression")]
    said += [f"{counts[name]:,} {word}" for name, word in COUNTS.items() if counts[name]]
    return (*place, f": {counts['common']:,} case{'s' * (counts['common'] != 1)} in both, {', '.join(said)}")


def changes_besides(baseline: BaselineReport) -> Iterator[Sentence]:
    """What changed besides the system, and of how many cases nobody knows."""
    for change in baseline["changes"]:
        what = ("changed besides the system: ", Foreign(change["what"]))
        cases = change["cases"]
        number = f" ({len(cases):,} case{'s' * (len(cases) != 1)}): "
        yield (*what, number, *listed(cases, EXAMPLES)) if cases else what
    if unknown := baseline["cases"]["unknown"]:
        yield (unknown_text(unknown),)


def unknown_text(number: int) -> str:
    """Say of how many cases a report does not tell what was asked of them."""
    cases = counted(number, "case")
    return f"of {cases} a report does not tell thresholds, golds and policies, so no change of these is named"


def metric_changes(baseline: BaselineReport) -> Iterator[Passage]:
    """The table of metrics and what its columns mean."""
    if baseline["metrics"]:
        yield Table(HEADER, [_row(name, found) for name, found in baseline["metrics"].items()])
        yield (NOTE,)


def flips(baseline: BaselineReport) -> Iterator[Sentence]:
    """The cases that changed sides."""
    for name, word in FLIPS.items():
        if baseline[name]:
            yield (f"{word} ({len(baseline[name]):,}): ", *listed(baseline[name]))


def _row(name: str, found: MetricChange) -> Sequence[str]:
    return (
        Foreign(name),
        score_text(found["before"]),
        score_text(found["after"]),
        signed(found["change"]),
        interval_text(found["ci95"], signed),
        f"{found['n']:,}",
        p_text(found["p_holm"]),
        detectable_text(found["detectable"]),
    )


def signed(value: float) -> str:
    """A change with its sign."""
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def p_text(p: float) -> str:
    """A p value with three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def detectable_text(drop: float | None) -> str:
    """The smallest drop that is shown in 4 of 5 runs; `none` where so few cases show no drop at all."""
    return "none" if drop is None else score_text(drop)


def listed(names: Sequence[str], most: int = LISTED) -> Iterator[str]:
    """The first of the names, and how many more there are."""
    for number, name in enumerate(names[:most]):
        yield from (", ", Foreign(name)) if number else (Foreign(name),)
    if len(names) > most:
        yield f" and {len(names) - most:,} more"
