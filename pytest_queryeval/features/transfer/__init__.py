"""The commands `import` and `export`, and where `export --to` can send a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.registry import Registry

if TYPE_CHECKING:
    from pytest_queryeval.cli.output import Result
    from pytest_queryeval.core.report import Report

IMPORT = Command(
    module=f"{__name__}.importers.command", summary="write suites from a data set, a table or another tool's tests"
)
EXPORT = Command(
    module=f"{__name__}.exporters",
    summary="write the predictions of a report for a published tool, or send a report to another service",
)


class ExportTarget(Protocol):
    """Sends a report to the address in `--to SCHEME:ADDRESS`.

    Raises `QueryEvalError` if the address cannot be used, or if the service rejects the whole report.
    """

    def __call__(self, report: Report, address: str) -> Result:
        """Send the report, and return lines that say what was sent; the status is 1 if the service refused a part."""


EXPORT_TARGETS: Registry[ExportTarget] = Registry("export target", group="pytest_queryeval.export_targets", members={})
