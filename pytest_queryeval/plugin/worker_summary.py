"""What a process collected and ran, from which the controller makes the report."""

from __future__ import annotations

from typing import TypedDict

from pytest_queryeval.core.report import PendingGate


class WorkerSummary(TypedDict):
    """Plain values, since they are sent from a worker of pytest-xdist to the controller.

    `collected` are the numbers of cases by suite file, `left_out` the suite files that require an extra that is not
    installed, `has_suites` whether a suite file was collected. `misuse` is the message of a usage error, empty if there
    is none. `engine_versions` are by name, `unused` sentences on predictions that no case used.
    """

    gates: list[PendingGate]
    left_out: list[str]
    unreadable_files: list[str]
    collected: dict[str, int]
    selected: bool
    has_suites: bool
    misuse: str
    engine_versions: dict[str, str]
    unused: list[str]
