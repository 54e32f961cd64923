"""Formats of published tools that `queryeval export` writes predictions in: a module for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A case of a report."""

    id: str
    question: str
    kind: str
    source: str
    query: str | None
    """The predicted query; None where there is none."""


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """A file of predictions."""

    content: bytes
    fillers: Sequence[str] = ()
    """The ids without a case in the report, for which the file has a placeholder."""


class Exporter(Protocol):
    """Writes predictions as a published tool reads them; raises `ReportError` for cases that the tool cannot read."""

    def __call__(self, cases: Sequence[Exported]) -> PredictionFile:
        """Return the file."""


def check_kind(cases: Sequence[Exported], kind: str) -> None:
    """Raise `ReportError` for cases of another kind than the one of the format."""
    if unfit_cases := [case for case in cases if case.kind != kind]:
        first = f"the first is '{unfit_cases[0].id}' of the kind '{unfit_cases[0].kind}'"
        remedy = f"run suites of {kind} alone, and export that report"
        raise ReportError(
            f"{len(unfit_cases):,} of {len(cases):,} cases are of other kinds than {kind} ({first}): {remedy}"
        )


EXPORTERS: Registry[Exporter] = Registry(
    "format",
    group="pytest_queryeval.exporters",
    members={
        "spider": f"{__name__}.formats:spider_file",
        "bird": f"{__name__}.formats:bird_file",
        "text2sparql": f"{__name__}.formats:text2sparql_file",
    },
)
