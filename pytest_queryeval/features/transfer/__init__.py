"""The commands `import` and `export`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

IMPORT = Command(
    module=f"{__name__}.importers.command", summary="write suites from a data set, a table or another tool's tests"
)
EXPORT = Command(module=f"{__name__}.exporters", summary="write the predictions of a report for a published tool")
