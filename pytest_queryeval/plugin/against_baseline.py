"""A run beside the report that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_queryeval.baseline import compared

if TYPE_CHECKING:
    from pytest_queryeval.aggregation import Report
    from pytest_queryeval.plugin.run import Run


def against(baseline: Report, run: Run, cases: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> dict[str, Any]:
    """What the report of the run says of its baseline, under its key.

    Files of the baseline that are there and were not collected are those that the run was not asked for.
    """
    paths = {case["path"] for case in baseline["cases"]} - about["collected"].keys()
    unasked = [path for path in paths if _is_there(run.root / path)]
    path = run.config.getoption("queryeval_baseline")
    return {"baseline": compared(baseline, {**about, "cases": cases}, path=path, unasked=unasked)}


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False
