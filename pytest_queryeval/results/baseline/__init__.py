"""What differs between two runs: cases that regressed, were fixed, are newly in error, were added or removed.

The modules compare reports by it: a run with a baseline, gates on what got worse, and leaderboards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.groups import is_below
from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import BaselineReport, RunFacts, RunResults
from pytest_queryeval.results.case_store import report_order, select

NO_COMMON_CASE = (
    "compare runs of the same suites with the same root folder (`rootdir:`), where node ids begin: "
    "a pytest.ini with the line `[pytest]` sets it"
)
# Whether the thresholds were met. An expected failure counts as a failure, so `xfail` hides no flip.
MET_BY_OUTCOME: Mapping[Outcome, bool] = {
    "passed": True,
    "xpassed": True,
    "failed": False,
    "missed": False,
    "xfailed": False,
}
ON_MISS, GOLD_DRIFT = "on_miss changed", "gold's answer changed"  # what changed besides the system
FlipKind: TypeAlias = Literal["regressions", "fixes", "errors", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference:
    """How the cases of a run differ from those of an earlier run; cases are node ids, except in `common`."""

    before: RunResults
    after: RunResults
    common: CasePairs
    """The cases that are in both runs: before, and after."""
    regressions: list[str]
    """Common cases that met their thresholds and no longer do."""
    fixes: list[str]
    """Common cases that meet their thresholds and did not."""
    errors: list[str]
    """Common cases that are in error and were not."""
    skipped: list[str]
    """Common cases that are skipped and were not."""
    added: list[str]
    """Cases of the later run only."""
    removed: Mapping[str, str]
    """Cases, each with its file, that were taken out of a file that the later run has read, or with the file."""
    not_run: list[str]
    """Cases without a result in the later run for another reason: a selection, an early end, gates that were decided
    before them, a file that could not be read or was not requested."""
    left_out: list[str]
    """Those of `not_run` in files that the later run has read, where both runs have a selection: they may have other
    tags now, or be taken out."""


class CasePairs:
    """Pairs of the same case before and after, which are read when they are iterated."""

    def __init__(self, before: Sequence[CaseReport], after: Sequence[CaseReport]) -> None:
        self._before, self._after = before, after

    def __len__(self) -> int:
        return len(self._before)

    def __iter__(self) -> Iterator[tuple[CaseReport, CaseReport]]:
        return zip(self._before, self._after, strict=True)


class _Place(NamedTuple):
    """The position of a case in a report, its file, and its outcome."""

    number: int
    """The place of the case in the report."""
    path: str
    """The path of its file."""
    outcome: Outcome


def run_difference(before: RunResults, after: RunResults) -> RunDifference:
    """Return the difference between two runs; cases are matched by node id, and listed in the order of their files."""
    old_places, new_places = _places(before), _places(after)
    shared_places = {
        nodeid: (old_place, new_places[nodeid]) for nodeid, old_place in old_places.items() if nodeid in new_places
    }
    common = {
        nodeid: pair for nodeid, pair in shared_places.items() if "not_run" not in (pair[0].outcome, pair[1].outcome)
    }
    missing_paths = {nodeid: old_place.path for nodeid, old_place in old_places.items() if nodeid not in new_places}
    is_whole = not (after["selected"] or after["stopped"])
    is_selected = before["selected"] and after["selected"] and not after["stopped"]
    removed_paths = {nodeid: path for nodeid, path in missing_paths.items() if is_whole and in_scope(path, after)}
    sides: dict[FlipKind, list[str]] = {"regressions": [], "fixes": [], "errors": [], "skipped": []}
    for nodeid, (old_place, new_place) in common.items():
        if side := flip_kind(old_place.outcome, new_place.outcome):
            sides[side].append(nodeid)
    return RunDifference(
        before=before,
        after=after,
        common=CasePairs(
            select(before["cases"], (old_place.number for old_place, _ in common.values())),
            select(after["cases"], (new_place.number for _, new_place in common.values())),
        ),
        **sides,
        added=[nodeid for nodeid in new_places if nodeid not in old_places],
        removed=removed_paths,
        not_run=[
            *(nodeid for nodeid in missing_paths if nodeid not in removed_paths),
            *(
                nodeid
                for nodeid, (old_place, new_place) in shared_places.items()
                if new_place.outcome == "not_run" != old_place.outcome
            ),
        ],
        left_out=[nodeid for nodeid, path in missing_paths.items() if is_selected and path in after["collected"]],
    )


def flip_kind(before: Outcome, after: Outcome) -> FlipKind | None:
    """Return the list of a `RunDifference` for a case with these outcomes; None if it is on none."""
    if before in MET_BY_OUTCOME and after in MET_BY_OUTCOME:
        return (
            None
            if MET_BY_OUTCOME[before] == MET_BY_OUTCOME[after]
            else "fixes"
            if MET_BY_OUTCOME[after]
            else "regressions"
        )
    if before == after:
        return None
    return "errors" if after == "error" else "skipped" if after == "skipped" else None


def _places(run: RunResults) -> dict[str, _Place]:
    """Return the places of a run's cases by node id, in `report_order`."""
    ordered_cases = sorted((report_order(case), number, case["outcome"]) for number, case in enumerate(run["cases"]))
    return {nodeid: _Place(number, path, outcome) for (path, *_, nodeid), number, outcome in ordered_cases}


def in_scope(path: str, run: RunFacts) -> bool:
    """Return whether a run would have read a file if it existed: requested, not ignored, and not unreadable.

    A file is ignored if it, or a folder that contains it, lies below an ignored path or matches an ignored pattern, as
    in pytest.
    """
    if path in run["unreadable_files"] or not any(
        is_below(path, requested_path) for requested_path in run["requested_paths"]["paths"]
    ):
        return False
    places = [str(place) for place in (PurePosixPath(path), *PurePosixPath(path).parents) if place.name]
    return not any(
        is_below(path, ignored) or any(fnmatchcase(place, ignored) for place in places)
        for ignored in run["requested_paths"]["ignored"]
    )


def is_foreign(baseline: BaselineReport) -> bool:
    """Return whether baseline and run both have cases but none in common."""
    counts = baseline["cases"]
    return counts["removed"] == counts["before"] > 0 and counts["after"] > 0
