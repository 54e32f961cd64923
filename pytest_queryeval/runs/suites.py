"""The suites of a run: cases with the options applied, gates, files with errors, and the cases that were left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import Finding, Location, SuiteError
from pytest_queryeval.core.gates import Gate
from pytest_queryeval.core.groups import is_below
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import PendingGate
from pytest_queryeval.results.gates import CaseWithoutResult, count_cases, with_gate_metrics
from pytest_queryeval.results.gates.reach import (
    RULE,
    harmless_gates,
    lenient_gates,
    undecided_cases,
    ungated_findings,
)
from pytest_queryeval.runs.options import RunOptions
from pytest_queryeval.suites import Suite, finding_messages, load_suite
from pytest_queryeval.suites.settings import Folder, FolderCache
from pytest_queryeval.suites.variables import MissingExtraError
from pytest_queryeval.text.formatting import utf8_safe


class RunSuites:
    """The suites of a run, with the options applied to their cases.

    `cases` are the collected cases by suite file. `unreadable_files` are suite files with errors, `left_out` those that
    need an extra that is not installed. All paths are relative to the root. `warn` is called with a weakness of a suite
    and its location. With `has_predictor`, suites need not name a predictor.
    """

    def __init__(
        self, options: RunOptions, *, warn: Callable[[str, Location], None], has_predictor: bool = False
    ) -> None:
        self.options = options
        self._warn = warn
        self.cases: dict[str, list[Case]] = {}
        self.unreadable_files: list[str] = []
        self.left_out: list[str] = []
        self._has_predictor = has_predictor or options.predictor is not None
        self._folders: FolderCache = {}
        self._relative: dict[Path, str] = {}
        self._findings: set[Finding] = set()
        self._can_miss: list[tuple[list[tuple[Case, str]], list[Gate], str]] = []

    def load(self, path: Path) -> list[Case]:
        """Collect a suite, and return its cases with the options and the metrics of the gates applied.

        Warns of weak gates. Raises `SuiteError` for a suite that cannot be read; the gates of its folders count even
        then. Raises `MissingExtraError` for a suite to skip.
        """
        name = self.relative_path(path)
        try:
            suite = self.read(path)
        except MissingExtraError:
            self.left_out.append(name)
            raise
        except SuiteError:
            self.unreadable_files.append(name)
            raise
        gates = [gate for folder in suite.folders for gate in folder.gates]
        cases = [(self.options.apply(case), self.relative_path(case.location.path)) for case in suite.cases]
        self.cases[name] = with_gate_metrics(cases, gates)
        can_miss = [
            (case, path) for case, path in cases if case.settings.on_miss == "xfail" and case.settings.thresholds
        ]
        silenced = suite.values.get("check", {}).get(RULE, "")
        self._can_miss.append((can_miss, gates, silenced))
        self._warn_of((*suite.findings, *lenient_gates(gates, silenced)))
        return self.cases[name]

    def warn_of_ungated(self, paths: Collection[str]) -> None:
        """Warn of gates that no wrong answer can miss, and of cases under `on_miss: xfail` that no other gate counts.

        All cases below `paths`, which are relative to the root, have to be collected.
        """
        folders = (folder for folder in self._folders.values() if isinstance(folder, Folder))
        gates = [gate for folder in folders for gate in folder.gates if self._is_below(folder.path, paths)]
        cases = ((case, self.relative_path(case.location.path)) for cases in self.cases.values() for case in cases)
        harmless = harmless_gates(gates, cases, self.relative_path)
        harmless_only = [gate for gate, _ in harmless]
        ungated: list[Case] = []
        for can_miss, gates, silenced in self._can_miss:
            self._warn_of(replace(finding, silenced=silenced) for gate, finding in harmless if gate in gates)
            ungated += undecided_cases(can_miss, [gate for gate in gates if gate not in harmless_only])
        self._warn_of(ungated_findings(ungated))

    def _is_below(self, folder: Path, paths: Iterable[str]) -> bool:
        return any(is_below(self.relative_path(folder), path) for path in paths)

    def _warn_of(self, findings: Iterable[Finding]) -> None:
        """Call `warn` for the findings that are new and not silenced."""
        new_findings = [finding for finding in dict.fromkeys(findings) if finding not in self._findings]
        self._findings.update(new_findings)
        for message, place in finding_messages(new_findings):
            self._warn(message, place)

    def read(self, path: Path) -> Suite:
        """Return a suite under the options of this run, without collecting it; raises `SuiteError`."""
        return load_suite(
            path,
            root=Path(path.anchor),
            folders=self._folders,
            require_prediction=not self._has_predictor,
            check_files=True,
            check_predictors=self.options.predictor is None and not self.options.replay,
        )

    def relative_path(self, path: Path) -> str:
        """Return a path relative to the root, with forward slashes, as in node ids.

        On another drive it stays absolute.
        """
        if path not in self._relative:
            relative_path = Path.cwd() / path
            with suppress(ValueError):  # on another drive
                relative_path = Path(os.path.relpath(relative_path, self.options.root))
            self._relative[path] = utf8_safe(relative_path.as_posix())
        return self._relative[path]

    @property
    def collected(self) -> dict[str, int]:
        """The number of collected cases by suite file."""
        return {path: len(cases) for path, cases in self.cases.items()}

    @property
    def all_cases(self) -> list[Case]:
        """All collected cases."""
        return list(chain.from_iterable(self.cases.values()))

    def gates(self) -> list[PendingGate]:
        """Return the gates of all folders with a suite below them, with their folder relative to the root."""
        gates = [gate for folder in self._folders.values() if isinstance(folder, Folder) for gate in folder.gates]
        return [{**gate.required, "folder": self.relative_path(gate.folder)} for gate in gates]


def with_case_counts(
    gates: Iterable[PendingGate],
    suites: RunSuites,
    cases: Collection[CaseReport],
    collected: Mapping[str, int],
    files_below: Callable[[Path], Iterable[Path]],
) -> list[PendingGate]:
    """Return the gates with the number of their `cases`; None if a suite file below the gate's folder cannot be read.

    `cases` are those that ran, `collected` the numbers of cases of the collected files. Other suite files below the
    folders of the gates, which `files_below` finds, are read too, because a run may cover some paths only.
    """
    gates = list(gates)
    places = {Path(os.path.abspath(suites.options.root / gate["folder"])) for gate in gates}  # noqa: PTH100
    names = {suites.relative_path(path) for place in places for path in files_below(place)}
    counts = Counter(map(_suite_of, cases))
    complete = {suite for suite, number in collected.items() if number == counts[suite]}
    candidates = cases if counts.keys() - complete else ()
    ran = Counter((case["path"], case["id"]) for case in candidates if _suite_of(case) not in complete)
    left_out: list[CaseWithoutResult] = []
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
            place = suites.relative_path(case.location.path), case.id
            if ran[place]:
                ran[place] -= 1
            elif case.skip is None and not case.withdrawal:
                left_out.append(CaseWithoutResult(place[0], case))
    return [
        {**gate, "cases": None if any(is_below(path, gate["folder"]) for path in unreadable) else number}
        for gate, number in zip(gates, count_cases(gates, cases, left_out), strict=True)
    ]


def _suite_of(case: CaseReport) -> str:
    """Return the suite file of a case, which starts its node id."""
    return case["nodeid"].partition("::")[0]
