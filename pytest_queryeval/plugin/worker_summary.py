"""What a process has learnt while it collected and ran, for the controller to make the report of."""

from __future__ import annotations

from typing import TypedDict

from pytest_queryeval.core.report import PendingGate, RequestedPaths


class WorkerSummary(TypedDict):
    """Plain values, since they travel from a worker of pytest-xdist to the controller.

    `collected` are the numbers of cases by suite file, `files` is how many of these were read. `misuse` says why the
    call cannot be served, and is empty if it can. `engines` are versions by name, `unused` sentences on predictions
    that no case asked for.
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
