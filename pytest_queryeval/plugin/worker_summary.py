"""Summaries of processes, from which the controller makes the report."""

from __future__ import annotations

from typing import TypedDict

from pytest_queryeval.core.report import PendingGate


class WorkerSummary(TypedDict):
    """The facts about one process; plain values, since a worker of pytest-xdist sends them to the controller."""

    gates: list[PendingGate]
    left_out: list[str]
    """The suite files that require an extra that is not installed."""
    unreadable_files: list[str]
    collected: dict[str, int]
    """The numbers of cases by suite file."""
    selected: bool
    """Whether an option or a plugin deselected cases."""
    has_suites: bool
    """Whether a suite file was collected, readable or not."""
    misuse: str
    """The message of a usage error; empty if there is none."""
    engine_versions: dict[str, str]
    """The versions of engines by name."""
    unused: list[str]
    """Sentences on predictions that no case used."""
