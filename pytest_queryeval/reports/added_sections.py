"""Sections that features and other packages add to the reports for people: terminal, Markdown and page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_queryeval.core.errors import MissingFeatureError
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.blocks import Block, Untrusted


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionFile:
    """A file whose content a section shows; `queryeval render --NAME FILE` adds it to a report."""

    metavar: str
    help: str
    """The help of the option; NAME is that of the section."""
    read: Callable[[Path, Report], Report]
    """Return the report with what is in the file; raise `ReportError` for a file that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section of a report: sentences and tables, which each format lays out and may shorten."""

    title: str
    blocks: Callable[[Report], Iterable[Block]]
    """Return the sentences and tables; none where the report has nothing to show."""
    file: SectionFile | None = None
    """Where its data comes from, if not from the run."""


SECTIONS: Registry[ReportSection] = Registry(
    "report section",
    group="pytest_queryeval.sections",
    members={"schema-use": "pytest_queryeval.reports.schema_use:SCHEMA_USE"},
)


def added_sections(report: Report) -> Iterator[tuple[str, list[Block]]]:
    """Yield title and blocks of each section that has blocks.

    A section that fails yields one sentence with its error. Sections of missing features are left out.
    """
    for name in SECTIONS.names():
        title = name
        try:
            title = SECTIONS[name].title
            blocks = list(SECTIONS[name].blocks(report))
        except MissingFeatureError:
            continue
        except Exception as error:  # noqa: BLE001 - of another package; the report has its other sections
            blocks = [("cannot be made: ", Untrusted(f"{type(error).__name__}: {error}"))]
        if blocks:
            yield title, blocks
