"""The cases of two reports, matched by node id: which of them are in both, and which changed sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from pytest_queryeval.core.model import PASS_RATE, Outcome
from pytest_queryeval.core.report import CaseReport, RunFacts, RunResults
from pytest_queryeval.results.scope import is_below

# Whether the thresholds were met. An expected failure is one all the same, so `xfail` hides no flip.
MET: Mapping[Outcome, bool] = {"passed": True, "xpassed": True, "failed": False, "missed": False, "xfailed": False}

# What each outcome adds to the pass rate; cases with other outcomes are left out of it.
PASS_SCORES: Mapping[Outcome, float] = {"passed": 1.0, "failed": 0.0, "missed": 0.0, "error": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCases:
    """The cases of a baseline and of a run; `common` are pairs of the case before and the case after.

    `added` are in the run only. `removed` were taken out of files that the run has read, or with their files;
    `not_run` have no result in the run for another reason: a selection, an early end, gates that were decided before
    them, a file that could not be read or was not requested. Of these, `left_out` are in files that the run has read
    and were selected in the baseline, but not in the run: they may have other tags now, or be taken out.
    """

    common: Sequence[tuple[CaseReport, CaseReport]]
    added: Sequence[str]
    removed: Sequence[str]
    not_run: Sequence[str]
    left_out: Sequence[str]

    @property
    def regressions(self) -> list[str]:
        """The cases that met their thresholds and no longer do."""
        return self._flipped(met=False)

    @property
    def fixes(self) -> list[str]:
        """The cases that meet their thresholds and did not."""
        return self._flipped(met=True)

    @property
    def errors(self) -> list[str]:
        """The cases that are in error now and were not."""
        return [new["nodeid"] for old, new in self.common if new["outcome"] == "error" and old["outcome"] != "error"]

    @property
    def skipped(self) -> list[str]:
        """The cases that are skipped now and were not."""
        return [
            new["nodeid"] for old, new in self.common if new["outcome"] == "skipped" and old["outcome"] != "skipped"
        ]

    def _flipped(self, *, met: bool) -> list[str]:
        return [
            new["nodeid"]
            for old, new in self.common
            if MET.get(new["outcome"]) is met and MET.get(old["outcome"]) is (not met)
        ]


def match_cases(before: RunResults, after: RunResults) -> MatchedCases:
    """Match the cases of two reports by node id, in the order of their files."""

    def by_nodeid(run: RunResults) -> dict[str, CaseReport]:
        ordered = sorted(run["cases"], key=lambda case: (case["path"], case["line"], case.get("row", 0), case["id"]))
        return {case["nodeid"]: case for case in ordered}

    old, new = by_nodeid(before), by_nodeid(after)
    both = [(case, new[nodeid]) for nodeid, case in old.items() if nodeid in new]
    gone = [case for nodeid, case in old.items() if nodeid not in new]
    is_whole = not (after["selected"] or after["stopped"])
    is_selected = before["selected"] and after["selected"] and not after["stopped"]
    removed = {case["nodeid"]: None for case in gone if is_whole and in_scope(case["path"], after)}
    return MatchedCases(
        common=[pair for pair in both if "not_run" not in (pair[0]["outcome"], pair[1]["outcome"])],
        added=[nodeid for nodeid in new if nodeid not in old],
        removed=list(removed),
        not_run=[
            *(case["nodeid"] for case in gone if case["nodeid"] not in removed),
            *(then["nodeid"] for then, now in both if now["outcome"] == "not_run" != then["outcome"]),
        ],
        left_out=[case["nodeid"] for case in gone if is_selected and case["path"] in after["collected"]],
    )


def paired_scores(metric: str, common: Iterable[tuple[CaseReport, CaseReport]]) -> list[tuple[float, float]]:
    """Return the scores of a metric, or of `pass_rate`, of the cases that have one in both reports."""
    scores = ((score_of(metric, old), score_of(metric, new)) for old, new in common)
    return [(old, new) for old, new in scores if old is not None and new is not None]


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
