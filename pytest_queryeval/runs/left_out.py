"""The cases that a run left out; gates count those of all suite files below their folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import PendingGate
from pytest_queryeval.results.gates import LeftOut, count_cases
from pytest_queryeval.results.scope import is_below
from pytest_queryeval.runs.suites import RunSuites
from pytest_queryeval.suites import load_suite
from pytest_queryeval.suites.requirements import MissingExtraError
from pytest_queryeval.suites.settings import FolderCache


def with_numbers_of_cases(
    gates: Iterable[PendingGate],
    suites: RunSuites,
    cases: Collection[CaseReport],
    collected: Mapping[str, int],
    files_below: Callable[[Path], Iterable[Path]],
) -> list[PendingGate]:
    """Return the gates, each with the number of its `cases`, None if a suite file below its folder cannot be read.

    `cases` are those that ran, `collected` the numbers of cases of the collected files. Other suite files below the
    folders of the gates, which `files_below` finds, are only read: a run may cover some paths only.
    """
    gates = list(gates)
    places = {Path(os.path.abspath(suites.options.root / gate["folder"])) for gate in gates}  # noqa: PTH100
    names = {suites.relative(path) for place in places for path in files_below(place)}
    counts = Counter(map(_suite_of, cases))
    complete = {suite for suite, number in collected.items() if number == counts[suite]}
    candidates = cases if counts.keys() - complete else ()
    ran = Counter((case["path"], case["id"]) for case in candidates if _suite_of(case) not in complete)
    left_out: list[LeftOut] = []
    unreadable: list[str] = []
    folders: FolderCache = {}
    for suite in sorted((names | collected.keys()) - complete):
        suite_cases: Iterable[Case] | None = suites.cases.get(suite)
        try:
            if suite_cases is None:
                path = Path(os.path.abspath(suites.options.root / suite))  # noqa: PTH100 - resolve() would follow links
                suite_cases = load_suite(path, root=Path(path.anchor), folders=folders, require_prediction=False).cases
        except MissingExtraError:
            continue
        except SuiteError:
            unreadable.append(suite)
            continue
        for case in suite_cases:
            place = suites.relative(case.location.path), case.id
            if ran[place]:
                ran[place] -= 1
            elif case.skip is None and not case.withdrawal:
                left_out.append(LeftOut(place[0], case))
    return [
        {**gate, "cases": None if any(is_below(path, gate["folder"]) for path in unreadable) else number}
        for gate, number in zip(gates, count_cases(gates, cases, left_out), strict=True)
    ]


def _suite_of(case: CaseReport) -> str:
    """Return the suite file of a case, relative to the root, as in its node id."""
    return case["nodeid"].partition("::")[0]
