"""What one process of a run knows: open sources, gates met while collecting, files that could not be read."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_queryeval.loading import Suite
    from pytest_queryeval.loading.settings import FolderCache
    from pytest_queryeval.model import Case, PredictorSpec, Threshold
    from pytest_queryeval.session import Session


class Run:
    """The state of a run in this process. Heavy parts are made on first use: most runs of pytest collect no suite."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root: Path = config.rootpath
        self.broken: list[str] = []
        self.files = 0
        self.misuse = ""
        self.selected = _selects(config)
        self.selects_by_marker = bool(config.option.markexpr or config.option.keyword)
        self._kinds: set[str] = set()
        self._session: Session | None = None
        self._markers: set[str] = set()
        self._folders: FolderCache = {}

    @property
    def session(self) -> Session:
        """Engines and predictors of this process, opened on first use."""
        if self._session is None:
            from pytest_queryeval.session import Session

            self._session = Session(tell=self._tell)
        return self._session

    def prepare(self, items: list[pytest.Item]) -> None:
        """Embed at once what the cases that will run are known to need; nothing is loaded where no metric asks."""
        from pytest_queryeval.metrics import METRICS
        from pytest_queryeval.semantic_texts import asked_for

        cases = [case for item in items if (case := getattr(item, "case", None)) is not None and case.skip is None]
        names = {name for metrics in {asked_for(case) for case in cases} for name in metrics}
        if any("similarity" in METRICS[name].supplied for name in names):
            self.session.prepare(cases)

    def _tell(self, line: str) -> None:
        """Show a line while something takes long; workers of pytest-xdist have no terminal."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not hasattr(self.config, "workerinput"):
            reporter.ensure_newline()
            reporter.write_line(line)

    def close(self) -> None:
        """Stop what was opened."""
        if self._session is not None:
            self._session.close()

    def load(self, path: Path) -> Suite:
        """A suite file; raises `SuiteError`. The gates of its folders count also where it cannot be read."""
        from pytest_queryeval.errors import SuiteError
        from pytest_queryeval.loading import load_suite

        self.files += 1
        try:
            return load_suite(
                path, root=Path(path.anchor), folders=self._folders, require_prediction=self._predictor is None
            )
        except SuiteError:
            self.broken.append(self.relative(path))
            raise

    def overridden(self, case: Case) -> Case:
        """The case with the predictor and the thresholds of the command line."""
        from pytest_queryeval.metrics import METRICS

        self._kinds.add(case.kind)
        if self._predictor is not None:
            case = replace(case, predictor=self._predictor, predicted=None)
        limits = self._thresholds.items()
        binding = {name: limit for name, limit in limits if name in METRICS and METRICS[name].applies_to(case.kind)}
        return replace(case, thresholds={**case.thresholds, **binding}) if binding else case

    def check_options(self) -> None:
        """Raise a usage error for a predictor or a threshold of the command line that cannot be read."""
        self._predictor  # noqa: B018 - reading it is the check
        self._thresholds  # noqa: B018

    def check_collected(self, items: list[pytest.Item]) -> None:
        """Raise a usage error for what only the cases tell: a call that cannot do what it asks for.

        A worker cannot do so: xdist would take it for a crash. It runs nothing and tells the controller.
        """
        self.misuse = self._unbound_threshold() or self._spoilt_timing(items)
        if not self.misuse:
            return
        if not hasattr(self.config, "workerinput"):
            raise pytest.UsageError(self.misuse)
        items.clear()

    def _unbound_threshold(self) -> str:
        """Why a threshold of the command line binds no case; empty where all do."""
        problems = [text for name in (self._thresholds if self._kinds else ()) if (text := self._unbound(name))]
        return f"--queryeval-threshold: {problems[0]}" if problems else ""

    def _spoilt_timing(self, items: list[pytest.Item]) -> str:
        """Why a metric of times cannot be had in a worker of pytest-xdist; empty where there is none."""
        if not hasattr(self.config, "workerinput"):
            return ""
        for case in (getattr(item, "case", None) for item in items if hasattr(item, "queryeval_result")):
            if case is not None and (name := timed_metric(case)):
                spoilt = "workers of pytest-xdist spoil each other's times, so leave -n out"
                return f"metric '{name}' ({case.location}) cannot be measured with -n: {spoilt}"
        return ""

    def _unbound(self, name: str) -> str:
        """Why a threshold binds no case; empty where it binds one."""
        from pytest_queryeval.errors import QueryEvalError
        from pytest_queryeval.loading.metric_keys import check_metric
        from pytest_queryeval.metrics import METRICS

        try:
            check_metric(name)
        except QueryEvalError as error:
            return str(error)
        metric = METRICS[name]
        if any(metric.applies_to(kind) for kind in self._kinds):
            return ""
        return f"no case of kind {', '.join(sorted(self._kinds))} has the metric '{name}'"

    def apply_limit(self, items: list[pytest.Item]) -> None:
        """Deselect all cases but the first ones, where a limit is set."""
        limit = self.config.getoption("queryeval_limit")
        if limit is None:
            return
        cases = [item for item in items if hasattr(item, "queryeval_result")]
        if surplus := set(cases[limit:]):
            self.config.hook.pytest_deselected(items=cases[limit:])
            items[:] = [item for item in items if item not in surplus]

    def register_marker(self, name: str, meaning: str) -> None:
        """Make a marker known, so that --strict-markers holds."""
        if name not in self._markers:
            self._markers.add(name)
            self.config.addinivalue_line("markers", f"{name}: {meaning}")

    def relative(self, path: Path) -> str:
        """A path as node ids have it: from the root, with forward slashes."""
        absolute = Path.cwd() / path
        return absolute.relative_to(self.root).as_posix() if absolute.is_relative_to(self.root) else absolute.as_posix()

    def learnt(self) -> dict[str, Any]:
        """What the controller needs to judge gates, as plain values."""
        return {
            "gates": self._gates(),
            "broken": self.broken,
            "selected": self.selected,
            "files": self.files,
            "misuse": self.misuse,
        }

    @cached_property
    def _predictor(self) -> PredictorSpec | None:
        text = self.config.getoption("queryeval_predictor")
        if not text:
            return None
        from pytest_queryeval.errors import CaseError
        from pytest_queryeval.loading.sources import predictor_of_text

        try:
            return predictor_of_text(text, folder=self.config.invocation_params.dir)
        except CaseError as error:
            raise pytest.UsageError(f"--queryeval-predictor: {error.problem}") from error

    @cached_property
    def _thresholds(self) -> dict[str, Threshold]:
        return dict(_threshold(text) for text in self.config.getoption("queryeval_threshold") or ())

    def _gates(self) -> dict[str, dict[str, Any]]:
        """The gates of all folders that have a suite below them, by their place."""
        if not self._folders:
            return {}
        from pytest_queryeval.gates import gate_json
        from pytest_queryeval.loading.settings import Folder

        folders = [folder for folder in self._folders.values() if isinstance(folder, Folder)]
        return {
            f"{folder.path}:{number}": gate_json(gate, self._folder(gate.folder), whole=self._is_whole(gate.folder))
            for folder in folders
            for number, gate in enumerate(folder.gates)
        }

    def _folder(self, folder: Path) -> str:
        """A gate's folder as the cases' paths have it; one above the root holds all of them."""
        return "." if self.root.is_relative_to(folder) else self.relative(folder)

    def _is_whole(self, folder: Path) -> bool:
        """Whether the run was asked for all of a folder, and not for a part of it."""
        start = self.config.invocation_params.dir
        return any(folder.is_relative_to(start / argument.partition("::")[0]) for argument in self.config.args)


def timed_metric(case: Case) -> str | None:
    """The first metric of a case that times queries."""
    from pytest_queryeval.metrics import METRICS

    return next((name for name in (*case.metrics, *case.thresholds) if "timer" in METRICS[name].supplied), None)


def _selects(config: pytest.Config) -> bool:
    """Whether the command line names single tests, or those that failed last."""
    return any("::" in argument for argument in config.args) or bool(getattr(config.option, "lf", False))


def _threshold(text: str) -> tuple[str, Threshold]:
    from pytest_queryeval.model import Threshold

    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise pytest.UsageError(f"--queryeval-threshold: expected METRIC=VALUE with a finite number, found '{text}'")
    return name, Threshold(minimum=number)
