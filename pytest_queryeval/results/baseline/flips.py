"""The cases of two reports, matched by node id: which of them are in both, and which changed sides."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple, overload

from pytest_queryeval.core.model import PASS_RATE, Outcome
from pytest_queryeval.core.report import CaseReport, RunFacts, RunResults
from pytest_queryeval.results.case_store import report_order, select
from pytest_queryeval.results.scope import is_below

NO_COMMON_CASE = (
    "compare runs of the same suites with the same root folder (`rootdir:`), where node ids begin: "
    "a pytest.ini with the line `[pytest]` sets it"
)
# Whether the thresholds were met. An expected failure is one all the same, so `xfail` hides no flip.
MET: Mapping[Outcome, bool] = {"passed": True, "xpassed": True, "failed": False, "missed": False, "xfailed": False}

# What each outcome adds to the pass rate; cases with other outcomes are left out of it.
PASS_SCORES: Mapping[Outcome, float] = {"passed": 1.0, "failed": 0.0, "missed": 0.0, "error": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCases:
    """The cases of a baseline and of a run; `common` are pairs of the case before and the case after.

    `added` are in the run only. `removed`, each with its file, were taken out of one that the run has read, or with it;
    `not_run` have no result in the run for another reason: a selection, an early end, gates that were decided before
    them, a file that could not be read or was not requested. Of these, `left_out` are in files that the run has read
    and were selected in the baseline, but not in the run: they may have other tags now, or be taken out.

    Of the common cases `regressions` met their thresholds and no longer do, `fixes` the other way round; `errors` and
    `skipped` are so now and were not.
    """

    common: Sequence[tuple[CaseReport, CaseReport]]
    added: Sequence[str]
    removed: Mapping[str, str]
    not_run: Sequence[str]
    left_out: Sequence[str]
    regressions: list[str]
    fixes: list[str]
    errors: list[str]
    skipped: list[str]


class CasePairs(Sequence[tuple[CaseReport, CaseReport]]):
    """The same cases before and after, which are read one by one where a report has more than fit in memory."""

    def __init__(self, before: Sequence[CaseReport], after: Sequence[CaseReport]) -> None:
        self._before, self._after = before, after

    def __len__(self) -> int:
        return len(self._before)

    @overload
    def __getitem__(self, place: int) -> tuple[CaseReport, CaseReport]: ...
    @overload
    def __getitem__(self, place: slice) -> CasePairs: ...
    def __getitem__(self, place: int | slice) -> tuple[CaseReport, CaseReport] | CasePairs:
        if isinstance(place, slice):
            return CasePairs(self._before[place], self._after[place])
        return self._before[place], self._after[place]


class ScorePairs(NamedTuple):
    """Scores of the cases that have one both before and after."""

    before: array[float]
    after: array[float]

    @classmethod
    def empty(cls) -> ScorePairs:
        """Return no scores."""
        return cls(array("d"), array("d"))

    def add(self, metric: str, old: CaseReport, new: CaseReport) -> None:
        """Add the scores that a case has of a metric, or of `pass_rate`."""
        before, after = score_of(metric, old), score_of(metric, new)
        if before is not None and after is not None:
            self.before.append(before)
            self.after.append(after)


class _Place(NamedTuple):
    """Where a report has a case, and what decides how it is matched."""

    number: int
    path: str
    outcome: Outcome


def match_cases(before: RunResults, after: RunResults) -> MatchedCases:
    """Match the cases of two reports by node id, in the order of their files."""
    old, new = _places(before), _places(after)
    both = {nodeid: (then, new[nodeid]) for nodeid, then in old.items() if nodeid in new}
    common = {nodeid: pair for nodeid, pair in both.items() if "not_run" not in (pair[0].outcome, pair[1].outcome)}
    gone = {nodeid: then.path for nodeid, then in old.items() if nodeid not in new}
    is_whole = not (after["selected"] or after["stopped"])
    is_selected = before["selected"] and after["selected"] and not after["stopped"]
    removed = {nodeid: path for nodeid, path in gone.items() if is_whole and in_scope(path, after)}

    def flipped(*, met: bool) -> list[str]:
        return [
            nodeid
            for nodeid, (then, now) in common.items()
            if MET.get(now.outcome) is met and MET.get(then.outcome) is (not met)
        ]

    return MatchedCases(
        common=CasePairs(
            select(before["cases"], (then.number for then, _ in common.values())),
            select(after["cases"], (now.number for _, now in common.values())),
        ),
        added=[nodeid for nodeid in new if nodeid not in old],
        removed=removed,
        not_run=[
            *(nodeid for nodeid in gone if nodeid not in removed),
            *(nodeid for nodeid, (then, now) in both.items() if now.outcome == "not_run" != then.outcome),
        ],
        left_out=[nodeid for nodeid, path in gone.items() if is_selected and path in after["collected"]],
        regressions=flipped(met=False),
        fixes=flipped(met=True),
        errors=[nodeid for nodeid, (then, now) in common.items() if now.outcome == "error" != then.outcome],
        skipped=[nodeid for nodeid, (then, now) in common.items() if now.outcome == "skipped" != then.outcome],
    )


def _places(run: RunResults) -> dict[str, _Place]:
    """Return where each case is by its node id, in the order of the report."""
    found = sorted((report_order(case), number, case["outcome"]) for number, case in enumerate(run["cases"]))
    return {nodeid: _Place(number, path, outcome) for (path, _, _, _, nodeid), number, outcome in found}


def score_of(metric: str, case: CaseReport) -> float | None:
    """Return the score of a metric, or what a case adds to `pass_rate`; None where it has none."""
    return PASS_SCORES.get(case["outcome"]) if metric == PASS_RATE else case["scores"].get(metric)


def in_scope(path: str, run: RunFacts) -> bool:
    """Return whether a file lies below the requested paths, was not ignored, and would have been read if it existed.

    A file is ignored where it, or a folder that holds it, lies below an ignored path or matches an ignored pattern, as
    in pytest.
    """
    if path in run["unreadable_files"] or not any(is_below(path, each) for each in run["requested_paths"]["paths"]):
        return False
    places = [str(place) for place in (PurePosixPath(path), *PurePosixPath(path).parents) if place.name]
    return not any(
        is_below(path, ignored) or any(fnmatchcase(place, ignored) for place in places)
        for ignored in run["requested_paths"]["ignored"]
    )
