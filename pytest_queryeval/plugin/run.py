"""What one process of a run knows: open sources, gates met while collecting, files that could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.overrides import Overrides

if TYPE_CHECKING:
    from pytest_queryeval.core.case_view import CaseView
    from pytest_queryeval.core.model import Case
    from pytest_queryeval.core.report import PendingGate, RequestedPaths
    from pytest_queryeval.evaluation.session import Session
    from pytest_queryeval.plugin.worker_summary import WorkerSummary
    from pytest_queryeval.suites import Suite
    from pytest_queryeval.suites.settings import FolderCache


class Run:
    """The state of a run in this process. Heavy parts are made on first use: most runs of pytest collect no suite."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root: Path = config.rootpath
        self.unreadable_files: list[str] = []
        self.skipped: list[str] = []  # files that need an extra which is not there
        self.collected: dict[str, int] = {}
        self.cases: dict[str, list[Case]] = {}  # by suite file
        self.files = 0
        self.misuse = ""
        self.engines: dict[str, str] = {}
        self.selected = _selects(config)
        self.selects_by_marker = bool(config.option.markexpr or config.option.keyword)
        self.overrides = Overrides(config)
        self._session: Session | None = None
        self._markers: set[str] = set()
        self._folders: FolderCache = {}
        self._relative: dict[Path, str] = {}

    @property
    def session(self) -> Session:
        """Engines and predictors of this process, opened on first use."""
        if self._session is None:
            from pytest_queryeval.evaluation.session import Session

            self._session = Session(
                tell=self._tell, recording=self.overrides.recording, hook=self._hook(), one_at_a_time=self._is_worker
            )
        return self._session

    def prepare(self, items: list[pytest.Item]) -> None:
        """Begin to ask for predictions, and embed at once what cases are known to need."""
        from pytest_queryeval.evaluation.semantic_texts import requested_metrics
        from pytest_queryeval.metrics import METRICS

        cases = _cases(items)
        self.engines = _versions(cases)
        self.session.predictors.register_cases(chain.from_iterable(self.cases.values()))
        self.session.predictors.prefetch(_cases([item for item in items if not _may_be_skipped(item)]))
        names = {name for metrics in {requested_metrics(case) for case in cases} for name in metrics}
        if any("similarity" in METRICS[name].injected for name in names):
            self.session.prepare(cases)

    @property
    def _predicts(self) -> bool:
        """Whether there is a predictor for cases that name none."""
        return self.overrides.predictor is not None or bool(self.config.hook.pytest_queryeval_predict.get_hookimpls())

    def stop(self) -> None:
        """Ask for no more predictions."""
        if self._session is not None:
            self._session.predictors.stop()

    @property
    def repeats_warnings(self) -> bool:
        """Whether another worker of pytest-xdist warns of what it collects, which all of them do."""
        return self._is_worker and self.config.workerinput["workerid"] != "gw0"  # type: ignore[attr-defined]

    @property
    def _is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    def _hook(self) -> Callable[[CaseView], object] | None:
        """The hook as a function of what predictors see; None where nobody has one."""
        call = self.config.hook.pytest_queryeval_predict
        return (lambda case: call(case=case, config=self.config)) if call.get_hookimpls() else None

    def _tell(self, line: str) -> None:
        """Show a line while something takes long; workers of pytest-xdist have no terminal."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not self._is_worker:
            reporter.ensure_newline()
            reporter.write_line(line)

    def close(self) -> None:
        """Stop what was opened."""
        if self._session is not None:
            self._session.close()

    def load(self, path: Path) -> Suite:
        """A suite file; raises `SuiteError`. The gates of its folders count also where it cannot be read."""
        from pytest_queryeval.core.errors import SuiteError
        from pytest_queryeval.suites import load_suite

        self.files += 1
        try:
            suite = load_suite(
                path,
                root=Path(path.anchor),
                folders=self._folders,
                require_prediction=not self._predicts,
                check_predictors=self.overrides.predictor is None and not self.config.getoption("queryeval_replay"),
            )
        except SuiteError:
            self.unreadable_files.append(self.relative(path))
            raise
        self.collected[self.relative(path)] = len(suite.cases)
        return suite

    def check_collected(self, items: list[pytest.Item]) -> None:
        """Raise a usage error for what only the cases tell: a call that cannot do what it asks for.

        A worker cannot do so: xdist would take it for a crash. It runs nothing and tells the controller.
        """
        cases = _cases(items)
        unknown = self.overrides.missing_predictor() if cases else ""
        self.misuse = (
            unknown or self.overrides.unbound_threshold() or self._spoilt_timing(cases) or self._too_many_workers(cases)
        )
        if not self.misuse:
            return
        if not self._is_worker:
            raise pytest.UsageError(self.misuse)
        items.clear()

    def _spoilt_timing(self, cases: list[Case]) -> str:
        """Why a metric of times cannot be had in a worker of pytest-xdist; empty where there is none."""
        for case in cases if self._is_worker else ():
            if name := timed_metric(case):
                spoilt = "workers of pytest-xdist spoil each other's times, so leave -n out"
                return f"metric '{name}' ({case.location}) cannot be measured with -n: {spoilt}"
        return ""

    def _too_many_workers(self, cases: list[Case]) -> str:
        """Why so many workers would make more calls of one system than it takes; empty where none would."""
        if not self._is_worker:
            return ""
        from pytest_queryeval.predictors import PREDICTORS

        workers = self.config.workerinput["workercount"]  # type: ignore[attr-defined]  # of pytest-xdist
        for case in {case.predictor and case.predictor.key: case for case in cases}.values():
            if case.predictor is None or not PREDICTORS[case.predictor.kind].shared:
                continue
            most = self.session.predictors.concurrency(case)
            if most is not None and most < workers:
                once = f"{most} {'call' if most == 1 else 'calls'} at once, and -n {workers} would make {workers}"
                return f"the predictor '{case.predictor.kind}' of {case.location} takes {once}: {_more(case, workers)}"
        return ""

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
        """A path from the root, with forward slashes, as node ids have it."""
        if path not in self._relative:
            self._relative[path] = self._made_relative(path)
        return self._relative[path]

    def _made_relative(self, path: Path) -> str:
        absolute = Path.cwd() / path
        with suppress(ValueError):  # of another drive
            return Path(os.path.relpath(absolute, self.root)).as_posix()
        return absolute.as_posix()

    def learnt(self) -> WorkerSummary:
        """What the controller needs to evaluate gates, as plain values."""
        return {
            "gates": self._gates(),
            "requested_paths": self._requested_paths(),
            "unreadable_files": self.unreadable_files,
            "collected": {} if _reruns_failures(self.config) else self.collected,  # pytest skips whole files then
            "selected": self.selected,
            "files": self.files,
            "misuse": self.misuse,
            "engines": self.engines,
            "unused": self._session.predictors.unused() if self._session and not self.config.option.collectonly else [],
        }

    def _requested_paths(self) -> RequestedPaths:
        """The folders and files that the run was told to collect, and those, or patterns, that it was to leave out."""
        told, start = self.config.option, self.config.invocation_params.dir
        ignored = (*(told.ignore or ()), *(told.ignore_glob or ()))
        return {
            "paths": [self.relative(start / argument.partition("::")[0]) for argument in self.config.args],
            "ignored": [*(self.relative(start / each) for each in ignored), *self.skipped],
        }

    def _gates(self) -> list[PendingGate]:
        """The gates of all folders that have a suite below them."""
        if not self._folders:
            return []
        from pytest_queryeval.results.gates import pending_gate
        from pytest_queryeval.suites.settings import Folder

        gates = [gate for folder in self._folders.values() if isinstance(folder, Folder) for gate in folder.gates]
        return [pending_gate(gate, self.relative(gate.folder)) for gate in gates]


def timed_metric(case: Case) -> str | None:
    """The first metric of a case that times queries."""
    from pytest_queryeval.metrics import METRICS

    return next((name for name in (*case.metrics, *case.thresholds) if "timer" in METRICS[name].injected), None)


def _versions(cases: list[Case]) -> dict[str, str]:
    """The versions of what runs the queries of these cases here, by name; nobody knows those of services."""
    from importlib.metadata import PackageNotFoundError

    from pytest_queryeval.core.errors import QueryEvalError
    from pytest_queryeval.engines import ENGINES

    told: set[str] = set()
    for source in {case.source.key: case.source for case in cases if case.source is not None}.values():
        with suppress(QueryEvalError, PackageNotFoundError):  # the cases will say what is missing
            told.update(ENGINES[source.engine].fingerprint.version(source.settings).split(", "))
    return {name: version for name, _, version in (text.partition(" ") for text in sorted(told)) if version}


def _cases(items: list[pytest.Item]) -> list[Case]:
    """The cases among the items that will run."""
    return [case for item in items if (case := getattr(item, "case", None)) is not None and case.skip is None]


def _more(case: Case, workers: int) -> str:
    """What to write so that a predictor may be called by so many workers."""
    from pytest_queryeval.predictors import PREDICTORS
    from pytest_queryeval.text.credentials import discreet

    either = f"--queryeval-concurrency={workers}, or fewer workers"
    name = case.predictor.kind if case.predictor is not None else ""
    text = case.predictor.settings.get(PREDICTORS[name].text_setting) if case.predictor is not None else None
    if not isinstance(text, str):
        return f"set `concurrency: {workers}` beside `{name}`, or {either}"
    return f"write `predictor: {{{name}: {discreet(text)}, concurrency: {workers}}}`, or {either}"


def _may_be_skipped(item: pytest.Item) -> bool:
    """Whether a marker may keep the item from running: nothing is asked for it before it does run."""
    return any(
        marker.name in ("skip", "skipif") or (marker.name == "xfail" and marker.kwargs.get("run") is False)
        for marker in item.iter_markers()
    )


def _selects(config: pytest.Config) -> bool:
    """Whether the command line names single tests, or those that failed last."""
    return any("::" in argument for argument in config.args) or _reruns_failures(config)


def _reruns_failures(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "lf", False))
