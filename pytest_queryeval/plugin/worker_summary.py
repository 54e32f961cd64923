"""What a process collected and ran, from which the controller makes the report."""

from __future__ import annotations

from typing import TypedDict

from pytest_queryeval.core.report import PendingGate, RequestedPaths


class WorkerSummary(TypedDict):
    """Plain values, since they are sent from a worker of pytest-xdist to the controller.

    `collected` are the numbers of cases by suite file, `files` is how many suite files were read. `misuse` is the
    message of a usage error, empty if there is none. `engines` are versions by name, `unused` sentences on predictions
    that no case used.
    """

    gates: list[PendingGate]
    requested_paths: RequestedPaths
    unreadable_files: list[str]
    collected: dict[str, int]
    selected: bool
    files: int
    misuse: str
    engines: dict[str, str]
    unused: list[str]
