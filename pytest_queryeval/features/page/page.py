"""Renders the HTML page of a report, with its style and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_queryeval.core.mappings import including
from pytest_queryeval.core.model import ALPHA, PASS_RATE
from pytest_queryeval.core.report import BaselineReport, Report
from pytest_queryeval.features.page.charts import charts, is_unit
from pytest_queryeval.reports.added_sections import added_sections
from pytest_queryeval.reports.blocks import Table, Untrusted, text_sentence
from pytest_queryeval.reports.html import SCRIPTS, View, assets, line, link, template
from pytest_queryeval.reports.html.case_list import FLIPPED, packed_cases, views
from pytest_queryeval.reports.sections import (
    CHANGE_NOTE,
    amounts_table,
    baseline_headline,
    cautions,
    changes_table,
    count_not_passed,
    gate_rows,
    group_metrics,
    groups_in_tables,
    increased_most,
    interval_note,
    metrics_by_weight,
    metrics_table,
    number_of_cases,
    pass_rate,
    side_counts,
    spider_lines,
    unknown_changes,
    weaknesses,
    worsenings,
)
from pytest_queryeval.results.aggregation import TOTAL_OF, shown_interval
from pytest_queryeval.results.aggregation import totals as totals_of
from pytest_queryeval.results.verdict import (
    cases_text,
    changes_text,
    listed_text,
    run_conditions,
    verdict,
    with_worst_cases,
)
from pytest_queryeval.text.formatting import minute_of

LINKS_SHOWN = 200
GATES_SHOWN = 6
ROWS_SHOWN = 200  # of a table that a feature adds
CASES_LISTED = 5_000  # of more than fit in memory
WEAKNESSES_SHOWN = 7
VALUES_SHOWN, METRICS_SHOWN = 20, 12  # of a group
# The filters of the list of cases by name, and their words.
VIEWS = {
    "regressions": "Regressions",
    "new-errors": "New errors",
    "faults": "Not passed",
    "failed": "Failed",
    "error": "In error",
    "missed": "Missed",
    "fixes": "Fixes",
    "ties": "Ties",
    "accidental": "Right by accident",
    "reviewed": "Reviewed",
    "xpassed": "Passed unexpectedly",
    "xfailed": "Expected failures",
    "skipped": "Skipped",
    "not_run": "Not run",
    "passed": "Passed",
    "all": "All",
}
# The page begins with the first of these that has cases, else with all.
FIRST_VIEWS = ("regressions", "new-errors", "faults", "failed", "error", "missed")


def page(report: Report) -> str:
    """Return the HTML page of a report.

    Text from a system or a database is escaped, or packed in base64.
    """
    baseline = report.get("baseline")
    excerpt = with_worst_cases(report, CASES_LISTED)
    rate = pass_rate(report["totals"], report["groups"]["source"])
    weak, worse = weaknesses(report), worsenings(report)
    return template(Path(__file__).parent / "report.html.jinja").render(
        report=report,
        verdict=verdict(report, line),
        name=line(report["name"]) or "queryeval",
        about=list(_about(report)),
        rate=rate,
        rate_interval=shown_interval(rate) if rate else None,
        change=baseline["metrics"].get(PASS_RATE) if baseline else None,
        alpha=ALPHA,
        gates=gate_rows(report),
        gates_shown=GATES_SHOWN,
        weak=worse or weak,
        got_worse=bool(worse),
        weak_shown=WEAKNESSES_SHOWN,
        changes=changes_text(report, line),
        cautions=[*run_conditions(report), *(text_sentence(caution) for caution in cautions(report))],
        views=_views(excerpt),
        listed=listed_text(excerpt, report),
        metrics=metrics_table(report, ("mean", "95 % interval", "median", "n", "missed")),
        is_unit=is_unit,
        shown_interval=shown_interval,
        interval_note=interval_note(report),
        amounts=amounts_table(report),
        spider="\n".join(spider_lines(report)),
        groups=list(_groups(report)),
        added=list(_added_sections(report)),
        charts=list(charts(report)),
        facts=list(_run_facts(report)),
        packed=list(packed_cases(excerpt)),
        **(_comparison(baseline) if baseline else {}),
        link=link,
        links_shown=LINKS_SHOWN,
        **assets(*SCRIPTS),
    )


def _about(report: Report) -> Iterator[str]:
    """Yield the texts in the head of the page next to the run's name: predictors, cases, time, and the baseline."""
    if (sources := ", ".join(report["predictor"]["sources"])) not in report["name"]:
        yield sources
    yield cases_text(report)
    yield minute_of(report["created"])
    if "baseline" in report:
        yield f"against {report['baseline']['path']} of {minute_of(report['baseline']['created'])}"


def _views(report: Report) -> list[View]:
    """Return the filters of the list of cases: those with a case, and 'all'.

    The filter that the page begins with is marked.
    """
    cases = report["cases"]
    totals = totals_of(cases)
    fault_count = count_not_passed(totals)
    counts: dict[str, int] = {
        **{name: len(places) for name, places in views(report).items()},
        # left out if it equals one of the next three
        "faults": fault_count if fault_count not in (totals["failed"], totals["errors"], totals["missed"]) else 0,
        "all": len(cases),
    } | {str(outcome): totals[total] for outcome, total in TOTAL_OF.items()}
    first = next((name for name in FIRST_VIEWS if counts[name]), "all")
    return [
        View(name=name, words=words, count=counts[name], is_first=name == first)
        for name, words in VIEWS.items()
        if counts[name] or name == "all"
    ]


def _groups(report: Report) -> Iterator[dict[str, object]]:
    """Yield the groups with more than one value, as data for the template.

    A group has its values with the most cases, its first metrics, and a text that counts what is left out.
    """
    for name in groups_in_tables():
        members = report["groups"].get(name, {})
        largest_values = set(sorted(members, key=lambda value: -members[value]["totals"]["cases"])[:VALUES_SHOWN])
        shown_members = including(members, largest_values)
        metrics = group_metrics(metrics_by_weight(report), shown_members)
        left_out = [
            f"Of {len(candidates):,} {word}, {selection_text} are shown."
            for candidates, limit, word, selection_text in (
                (members, VALUES_SHOWN, "values", f"the {VALUES_SHOWN} with the most cases"),
                (metrics, METRICS_SHOWN, "metrics", f"the first {METRICS_SHOWN}"),
            )
            if len(candidates) > limit
        ]
        if len(members) > 1:
            yield {
                "name": name,
                "members": shown_members,
                "metrics": metrics[:METRICS_SHOWN],
                "left_out": " ".join(left_out),
            }


def _added_sections(report: Report) -> Iterator[dict[str, object]]:
    """Yield the sections that features add, as data for the template; long tables keep their first ROWS_SHOWN rows."""
    for number, (title, blocks) in enumerate(added_sections(report)):
        tables = (block for block in blocks if isinstance(block, Table))
        yield {
            "place": f"added-{number}",
            "title": title,
            "sentences": [text_sentence(block) for block in blocks if not isinstance(block, Table)],
            "tables": [
                {
                    "header": table.header,
                    "rows": table.rows[:ROWS_SHOWN],
                    "text_columns": 1
                    + max(
                        (place for row in table.rows for place, cell in enumerate(row) if isinstance(cell, Untrusted)),
                        default=0,
                    ),
                    "left_out": max(len(table.rows) - ROWS_SHOWN, 0),
                }
                for table in tables
            ],
        }


def _run_facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield names and values of what is known about the run: time, predictors and environments."""
    yield "Created", report["created"]
    if sources := report["predictor"]["sources"]:
        yield "Predictions by", ", ".join(map(line, sources))
    for name, value in report["environment"].items():
        if name != "parts":
            yield name.replace("_", "-"), _fact_text(value)
    if parts := report["environment"].get("parts"):
        yield "Merged with runs on", "; ".join(_fact_text(part) for part in parts)


def _fact_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{line(name)} {_fact_text(member)}" for name, member in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_fact_text, value))
    return line(value)


def _comparison(baseline: BaselineReport) -> dict[str, Any]:
    """Return the template's data on the comparison with a baseline, except the lists of cases."""
    counts = side_counts(baseline)
    return {
        "sides": [(view, counts[side]) for view, side in FLIPPED.items() if side in counts],
        "headline": line("".join(baseline_headline(baseline))),
        "number_of_cases": number_of_cases,
        "unknown": ["".join(sentence) for sentence in unknown_changes(baseline)],
        "increased": increased_most(baseline["causes"]),
        "metric_changes": changes_table(baseline),
        "metric_note": CHANGE_NOTE,
    }
