"""What a comparison with a baseline says, for people; the first of long lists only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.aggregation import Report
from pytest_queryeval.baseline.blocks import Block, Code, Foreign, Rows, Sentence, markdown_lines, text_lines
from pytest_queryeval.plain import score_text

LISTED = 20
HEADER = ("metric", "before", "after", "change", "95 % interval", "n", "p", "least")
COUNTS = {
    "added": "added",
    "removed": "removed",
    "skipped": "newly skipped",
    "errors": "newly in error",
    "not_run": "not run this time",
}
NOTE = (
    "p: paired test of 'nothing changed', adjusted for all metrics; least: the smallest drop that so many "
    "cases show in 4 of 5 runs"
)
UNKNOWN = " of the cases in both does not say in both reports what was asked of it, so no change of that is named"


def baseline_lines(report: Report, width: int) -> Iterator[str]:
    """The comparison in a report as plain lines for a terminal or a log; none where there is no baseline."""
    if report.get("baseline"):
        yield from text_lines(baseline_blocks(report["baseline"]), width)


def baseline_markdown(report: Report, code: Code) -> Iterator[str]:
    """The comparison in a report as lines of Markdown; `code` makes a code span of foreign text."""
    if report.get("baseline"):
        yield from markdown_lines(baseline_blocks(report["baseline"]), code)


def baseline_blocks(baseline: Mapping[str, Any]) -> Iterator[Block]:
    """The comparison as sentences and a table."""
    yield _head(baseline)
    if baseline["metrics"]:
        yield Rows(HEADER, [_row(name, found) for name, found in baseline["metrics"].items()])
        yield (NOTE,)
    for name in ("broken", "fixed", "errors"):
        if baseline[name]:
            yield (f"{_TITLES[name]} ({len(baseline[name]):,}): ", *named(baseline[name]))
    for change in baseline["changes"]:
        yield _change(change)
    if unknown := baseline["cases"].get("unknown"):
        yield (f"{unknown:,}{UNKNOWN}",)


_TITLES = {"broken": "broken", "fixed": "fixed", "errors": "newly in error"}


def _head(baseline: Mapping[str, Any]) -> Sentence:
    counts = baseline["cases"]
    said = [f"{len(baseline['fixed']):,} fixed", f"{len(baseline['broken']):,} broken"]
    said += [f"{counts[name]:,} {word}" for name, word in COUNTS.items() if counts.get(name)]
    place = ("against the baseline ", Foreign(baseline["path"]), " of ", Foreign(baseline["created"]))
    if not counts["common"]:
        return (*place, ": no case in common; node ids begin at the root folder, which has to be the same")
    return (*place, f": {counts['common']:,} case{'s' * (counts['common'] != 1)} in both, {', '.join(said)}")


def _row(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    return (
        Foreign(name),
        score_text(found["before"]),
        score_text(found["after"]),
        signed(found["change"]),
        interval(found["ci95"], signed),
        f"{found['n']:,}",
        p_text(found["p_holm"]),
        detectable_text(found["detectable"]),
    )


def _change(change: Mapping[str, Any]) -> Sentence:
    cases = change["cases"]
    if not cases:
        return ("changed besides the system: ", Foreign(change["what"]))
    number = f"{len(cases):,} case{'s' * (len(cases) != 1)}"
    return ("changed besides the system: ", Foreign(change["what"]), f" ({number}): ", *named(cases))


def named(names: Sequence[str]) -> Iterator[str]:
    """The first of the names, and how many more there are."""
    for number, name in enumerate(names[:LISTED]):
        yield from (", ", Foreign(name)) if number else (Foreign(name),)
    if len(names) > LISTED:
        yield f" and {len(names) - LISTED:,} more"


def signed(value: float) -> str:
    """A change with its sign."""
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def interval(ci95: Sequence[float] | None, number: Any = score_text) -> str:
    """An interval in words; empty where there is none."""
    return "" if ci95 is None else f"{number(ci95[0])} to {number(ci95[1])}"


def p_text(p: float) -> str:
    """A p value with three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def detectable_text(drop: float | None) -> str:
    """The smallest drop that is shown in 4 of 5 runs; `none` where so few cases show no drop at all."""
    return "none" if drop is None else score_text(drop)
