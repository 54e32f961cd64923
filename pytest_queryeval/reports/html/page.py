"""The page of a report with its style and its scripts, in one text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pytest_queryeval.core.report import BaselineReport, Report
from pytest_queryeval.reports.html.charts import charts
from pytest_queryeval.reports.html.data import packed_cases
from pytest_queryeval.reports.html.templates import HERE, line, template
from pytest_queryeval.reports.sections import (
    CHANGE_NOTE,
    FLIPS,
    amounts_table,
    changes_table,
    dimensions_table,
    headline,
    metrics_table,
    spider_lines,
    unknown_changes,
)
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.results.verdict import changes_text, verdict

SCRIPTS = ("text", "values", "texts_differ", "cells", "cases", "case_page", "start")
LINKS_SHOWN = 200
# For each total, the outcome that the list of cases filters by, and the words beside the number.
TOTALS = {
    "passed": ("passed", "passed"),
    "failed": ("failed", "failed"),
    "missed": ("missed", "missed"),
    "errors": ("error", "in error"),
    "skipped": ("skipped", "skipped"),
    "xfailed": ("xfailed", "expected to fail"),
    "xpassed": ("xpassed", "passed unexpectedly"),
}


def page(report: Report) -> str:
    """Return the HTML of a report. Text from a model or a database is escaped, or packed in base64."""
    from markupsafe import Markup

    style, script = _read("style.css"), "\n".join(_read(f"script/{name}.js") for name in SCRIPTS)
    # Nothing is loaded, and only our own style and script count; the icon, the one picture, is in the page.
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return template("report.html.jinja").render(
        report=report,
        verdict=verdict(report, line),
        changes=changes_text(report, line),
        case_link=case_link,
        totals=[(total, *TOTALS[total], number) for total, number in report["totals"].items() if total in TOTALS],
        gates=[(GATE_WORDS[gate["ok"]], gate_text(gate)) for gate in report["gates"]],
        facts=list(_facts(report)),
        metrics=metrics_table(report, ("mean", "95 % interval", "median", "n", "missed")),
        dimensions=dimensions_table(report),
        amounts=amounts_table(report),
        spider="\n".join(spider_lines(report)),
        charts=list(charts(report)),
        drawing=lambda chart: Markup(chart.picture.inside),  # noqa: S704 - Vega escapes texts
        packed=list(packed_cases(report)),
        **(_comparison(report["baseline"]) if "baseline" in report else {}),
        links_shown=LINKS_SHOWN,
        style=Markup(style),  # noqa: S704 - our own
        script=Markup(script),  # noqa: S704 - our own
        policy=policy,
    )


def case_link(nodeid: str) -> str:
    """Return the fragment of a URL that opens a case."""
    return f"#case={quote(nodeid.encode(errors='backslashreplace'), safe='')}"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what is known about the run, for the foot of the page."""
    if "created" in report:
        yield "Created", report["created"]
    if sources := report.get("predictor", {}).get("sources"):
        yield "Predictions by", ", ".join(map(line, sources))
    for name, value in report.get("environment", {}).items():
        if name != "parts":
            yield name.replace("_", "-"), _named(value)
    if parts := report.get("environment", {}).get("parts"):
        yield "Merged with runs on", "; ".join(_named(part) for part in parts)


def _named(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{line(name)} {_named(own)}" for name, own in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_named, value))
    return line(value)


def _comparison(baseline: BaselineReport) -> dict[str, Any]:
    """Return what the page has about a baseline beside its lists of cases, as the other formats have it."""
    return {
        "headline": line("".join(headline(baseline))),
        "unknown": ["".join(sentence) for sentence in unknown_changes(baseline)],
        "metric_changes": changes_table(baseline),
        "metric_note": CHANGE_NOTE,
        "flips": FLIPS,
    }


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
