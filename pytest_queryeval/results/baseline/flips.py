"""The cases of two reports, matched by node id: which of them are in both, and which changed sides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from pytest_queryeval.core.model import PASS_RATE, Outcome
from pytest_queryeval.core.report import CaseReport, RunFacts, RunResults
from pytest_queryeval.results.scope import is_below

# Whether the thresholds were met. An expected failure is one all the same, so `xfail` hides no flip.
MET: Mapping[Outcome, bool] = {"passed": True, "xpassed": True, "failed": False, "missed": False, "xfailed": False}

# What a pass rate is made of.
COUNTED: Mapping[Outcome, float] = {
    "passed": 1.0,
    "failed": 0.0,
    "missed": 0.0,
    "error": 0.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The cases of a baseline and of a run, before first, as they belong together.

    `added` are in the run only, `removed` were taken out of files that the run has read, or with their files;
    `not_run` are in the baseline only for another reason: a selection, an early end, a file that could not be read or
    was not asked for. Of these, `left_out` are in files that the run has read, fitted the baseline's selection, and do
    not fit that of the run: they may have other tags now, or be taken out.
    """

    common: Sequence[tuple[CaseReport, CaseReport]]
    added: Sequence[str]
    removed: Sequence[str]
    not_run: Sequence[str]
    left_out: Sequence[str]

    def where(self, before: Collection[str], after: Collection[str]) -> list[str]:
        """The node ids of cases with one of these outcomes before and one of those after."""
        return [new["nodeid"] for old, new in self.common if old["outcome"] in before and new["outcome"] in after]

    @property
    def regressions(self) -> list[str]:
        """The cases that met their thresholds and no longer do."""
        return _flipped(self.common, met=False)

    @property
    def fixes(self) -> list[str]:
        """The cases that meet their thresholds and did not."""
        return _flipped(self.common, met=True)

    @property
    def errors(self) -> list[str]:
        """The cases that are in error now and were not."""
        return self.where({*MET, "skipped"}, {"error"})

    @property
    def skipped(self) -> list[str]:
        """The cases that are skipped now and were not."""
        return self.where({*MET, "error"}, {"skipped"})


def matched(before: RunResults, after: RunResults) -> Matched:
    """Match the cases of two reports by node id, in the order of their files."""
    old, new = ({case["nodeid"]: case for case in _ordered(report["cases"])} for report in (before, after))
    gone = [case for nodeid, case in old.items() if nodeid not in new]
    is_whole = not (after["selected"] or after["stopped"])
    is_selected = before["selected"] and after["selected"] and not after["stopped"]
    removed = {case["nodeid"]: None for case in gone if is_whole and in_scope(case["path"], after)}
    return Matched(
        common=[(old[nodeid], case) for nodeid, case in new.items() if nodeid in old],
        added=[nodeid for nodeid in new if nodeid not in old],
        removed=list(removed),
        not_run=[case["nodeid"] for case in gone if case["nodeid"] not in removed],
        left_out=[case["nodeid"] for case in gone if is_selected and case["path"] in after["collected"]],
    )


def paired_scores(metric: str, common: Iterable[tuple[CaseReport, CaseReport]]) -> list[tuple[float, float]]:
    """The scores of a metric, or what the pass rate is made of, of the cases that have one in both reports."""
    scores = ((_score(old, metric), _score(new, metric)) for old, new in common)
    return [(old, new) for old, new in scores if old is not None and new is not None]


def _score(case: CaseReport, metric: str) -> float | None:
    return COUNTED.get(case["outcome"]) if metric == PASS_RATE else case["scores"].get(metric)


def in_scope(path: str, run: RunFacts) -> bool:
    """Return whether a file lies below what was asked for, was not to be ignored, and could be read if it was there."""
    paths, ignored = run["requested_paths"]["paths"], run["requested_paths"]["ignored"]
    left_out = path in run["unreadable_files"] or any(_fits(path, each) for each in ignored)
    return not left_out and any(is_below(path, each) for each in paths)


def _fits(path: str, ignored: str) -> bool:
    """Whether a file, or a folder that holds it, is to be ignored or fits a pattern, as pytest looks at both."""
    places = (PurePosixPath(path), *PurePosixPath(path).parents)
    return is_below(path, ignored) or any(fnmatchcase(str(place), ignored) for place in places if place.name)


def _ordered(cases: Iterable[CaseReport]) -> list[CaseReport]:
    return sorted(cases, key=lambda case: (case["path"], case["line"], case["id"]))


def _flipped(common: Iterable[tuple[CaseReport, CaseReport]], *, met: bool) -> list[str]:
    return [
        new["nodeid"] for old, new in common if MET.get(new["outcome"]) is met and MET.get(old["outcome"]) is (not met)
    ]
