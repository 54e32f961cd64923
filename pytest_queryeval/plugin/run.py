"""The state of a run in one process: open sources, collected cases and gates, files that could not be read."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.overrides import Overrides
from pytest_queryeval.plugin.stash import is_case_item

if TYPE_CHECKING:
    from pytest_queryeval.core.model import Case
    from pytest_queryeval.core.report import PendingGate
    from pytest_queryeval.evaluation.session import Session
    from pytest_queryeval.plugin.items import CaseItem
    from pytest_queryeval.plugin.worker_summary import WorkerSummary
    from pytest_queryeval.suites import Suite
    from pytest_queryeval.suites.settings import FolderCache


class Run:
    """The state of a run in this process. Heavy parts are imported on first use, since most runs collect no suite."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root: Path = config.rootpath
        self.unreadable_files: list[str] = []
        self.skipped: list[str] = []  # files that need an extra which is not installed
        self.collected: dict[str, int] = {}
        self.cases: dict[str, list[Case]] = {}  # by suite file
        self.has_suites = False
        self.misuse = ""
        self.engine_versions: dict[str, str] = {}
        self.selected = _reruns_failures(config) or any("::" in argument for argument in config.args)
        self.selects_by_marker = bool(config.option.markexpr or config.option.keyword)
        self.overrides = Overrides(config)
        self._session: Session | None = None
        self._markers: dict[str, pytest.MarkDecorator] = {}
        self._folders: FolderCache = {}
        self._relative: dict[Path, str] = {}

    @property
    def session(self) -> Session:
        """Engines and predictors of this process, opened on first use."""
        if self._session is None:
            from pytest_queryeval.evaluation.session import Session

            hook = self.config.hook.pytest_queryeval_predict
            self._session = Session(
                tell=self._show_line,
                recording=self.overrides.recording,
                hook=(lambda case: hook(case=case, config=self.config)) if hook.get_hookimpls() else None,
                one_at_a_time=self._is_worker,
                cause=self.overrides.cause,
            )
        return self._session

    def prepare(self, items: list[pytest.Item]) -> None:
        """Start the predictions of the items, and embed the texts that are known to be needed in one batch."""
        from pytest_queryeval.metrics import METRICS

        cases = _cases(items)
        self.engine_versions = _versions(cases)
        self.session.predictors.register_cases(chain.from_iterable(self.cases.values()))
        self.session.predictors.prefetch(_cases([item for item in items if not _may_be_skipped(item)]))
        names = {name for metrics in {case.requested_metrics for case in cases} for name in metrics}
        if any("similarity" in METRICS[name].injected for name in names):
            self.session.prepare(cases)

    def stop(self) -> None:
        """Start no more predictions."""
        if self._session is not None:
            self._session.predictors.stop()

    @property
    def repeats_warnings(self) -> bool:
        """Whether another worker of pytest-xdist gives the same warnings while collecting, as all but the first do."""
        return self._is_worker and self.config.workerinput["workerid"] != "gw0"  # type: ignore[attr-defined]

    @property
    def _is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    def _show_line(self, line: str) -> None:
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
        """Return a suite that is collected; raise `SuiteError`. Gates above it count also where it is unreadable."""
        from pytest_queryeval.core.errors import SuiteError

        self.has_suites = True
        try:
            suite = self.read(path)
        except SuiteError:
            self.unreadable_files.append(self.relative(path))
            raise
        self.collected[self.relative(path)] = len(suite.cases)
        return suite

    def read(self, path: Path) -> Suite:
        """Return a suite under the options of this run, collected or not; raise `SuiteError`."""
        from pytest_queryeval.suites import load_suite

        has_hook = bool(self.config.hook.pytest_queryeval_predict.get_hookimpls())
        return load_suite(
            path,
            root=Path(path.anchor),
            folders=self._folders,
            require_prediction=self.overrides.predictor is None and not has_hook,
            check_predictors=self.overrides.predictor is None and not self.config.getoption("queryeval_replay"),
        )

    def check_collected(self, items: list[pytest.Item]) -> None:
        """Raise a usage error for options that do not fit the collected cases.

        In a worker xdist would take an error for a crash: it runs nothing and sends the message to the controller.
        """
        cases = _cases(items)
        unknown = self.overrides.missing_predictor() if cases else ""
        self.misuse = (
            unknown
            or self.overrides.unbound_threshold()
            or self._timing_conflict(cases)
            or self._too_many_workers(cases)
        )
        if not self.misuse:
            return
        if not self._is_worker:
            raise pytest.UsageError(self.misuse)
        items.clear()

    def _timing_conflict(self, cases: list[Case]) -> str:
        """Return why a metric of times cannot be measured in a worker of pytest-xdist; empty where there is none."""
        if not self._is_worker:
            return ""
        from pytest_queryeval.metrics import METRICS

        for case in cases:
            if name := next((name for name in case.requested_metrics if "timer" in METRICS[name].injected), None):
                spoilt = "workers of pytest-xdist spoil each other's times, so leave -n out"
                return f"metric '{name}' ({case.location}) cannot be measured with -n: {spoilt}"
        return ""

    def _too_many_workers(self, cases: list[Case]) -> str:
        """Return why the workers would make more calls at once than a predictor takes; empty where they would not."""
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
                problem = f"the predictor '{case.predictor.kind}' of {case.location} takes {once}"
                return f"{problem}: {_concurrency_remedy(case, workers)}"
        return ""

    def apply_limits(self, items: list[pytest.Item]) -> None:
        """Deselect the cases that a sample leaves out, and of the others all but the first where a limit is set."""
        limit, every = self.config.getoption("queryeval_limit"), [item for item in items if is_case_item(item)]
        chosen = sample_of(every, *self.overrides.sample) if self.overrides.sample is not None else every
        kept = set(chosen[:limit])
        if surplus := [item for item in every if item not in kept]:
            self.config.hook.pytest_deselected(items=surplus)
            items[:] = [item for item in items if item in kept or not is_case_item(item)]

    def marker(self, name: str) -> pytest.MarkDecorator:
        """Return the marker of a tag, a kind or a difficulty, registered for --strict-markers."""
        if name not in self._markers:
            self.config.addinivalue_line("markers", f"{name}: a tag, a kind or a difficulty of cases")
            self._markers[name] = getattr(pytest.mark, name)
        return self._markers[name]

    def relative(self, path: Path) -> str:
        """Return a path relative to the root, with forward slashes, as in node ids."""
        if path not in self._relative:
            found = Path.cwd() / path
            with suppress(ValueError):  # on another drive
                found = Path(os.path.relpath(found, self.root))
            self._relative[path] = found.as_posix()
        return self._relative[path]

    def worker_summary(self) -> WorkerSummary:
        """Return what the controller needs for the report, as plain values."""
        option, start = self.config.option, self.config.invocation_params.dir
        ignored = (*(option.ignore or ()), *(option.ignore_glob or ()))
        return {
            "gates": self._gates() if self._folders else [],
            "requested_paths": {
                "paths": [self.relative(start / argument.partition("::")[0]) for argument in self.config.args],
                "ignored": [*(self.relative(start / each) for each in ignored), *self.skipped],
            },
            "unreadable_files": self.unreadable_files,
            "collected": {} if _reruns_failures(self.config) else self.collected,  # pytest skips whole files then
            "selected": self.selected,
            "has_suites": self.has_suites,
            "misuse": self.misuse,
            "engine_versions": self.engine_versions,
            "unused": self._session.predictors.unused() if self._session and not self.config.option.collectonly else [],
        }

    def _gates(self) -> list[PendingGate]:
        """Return the gates of all folders that have a suite below them."""
        from pytest_queryeval.results.gates import pending_gate
        from pytest_queryeval.suites.settings import Folder

        gates = [gate for folder in self._folders.values() if isinstance(folder, Folder) for gate in folder.gates]
        return [pending_gate(gate, self.relative(gate.folder)) for gate in gates]


def _versions(cases: list[Case]) -> dict[str, str]:
    """Return the versions of the engines that run here, by name; those of services are not known."""
    from importlib.metadata import PackageNotFoundError

    from pytest_queryeval.core.errors import QueryEvalError
    from pytest_queryeval.engines import ENGINES

    versions: set[str] = set()
    for source in {case.source.key: case.source for case in cases if case.source is not None}.values():
        with suppress(QueryEvalError, PackageNotFoundError):  # the cases will say what is missing
            versions.update(ENGINES[source.engine].fingerprint.version(source.settings).split(", "))
    return {name: version for name, _, version in (text.partition(" ") for text in sorted(versions)) if version}


def _cases(items: list[pytest.Item]) -> list[Case]:
    """Return the cases of the items, without those that are skipped."""
    return [item.case for item in items if is_case_item(item) and item.case.skip is None]


def sample_of(items: list[CaseItem], number: int, seed: int) -> list[CaseItem]:
    """Return `number` of the items in their order, from each file in proportion; the same ones in every process.

    It is a systematic sample: items at equal distances, where those of a file stand together in random order.
    """

    def place(item: CaseItem) -> tuple[str, bytes]:
        digest = sha256(f"{seed} {item.nodeid}".encode(errors="backslashreplace")).digest()
        return item.nodeid.partition("::")[0], digest

    ordered = sorted(items, key=place)
    start = Random(seed).randrange(len(ordered)) if ordered else 0  # noqa: S311 - no secret
    number = min(number, len(ordered))
    chosen = {ordered[(at * len(ordered) + start) // number].nodeid for at in range(number)}
    return [item for item in items if item.nodeid in chosen]


def _concurrency_remedy(case: Case, workers: int) -> str:
    """Return what to write so that a predictor may be called by this many workers."""
    from pytest_queryeval.predictors import PREDICTORS
    from pytest_queryeval.text.credentials import mask_credentials

    either = f"--queryeval-concurrency={workers}, or fewer workers"
    name = case.predictor.kind if case.predictor is not None else ""
    text = case.predictor.settings.get(PREDICTORS[name].text_setting) if case.predictor is not None else None
    if not isinstance(text, str):
        return f"set `concurrency: {workers}` beside `{name}`, or {either}"
    return f"write `predictor: {{{name}: {mask_credentials(text)}, concurrency: {workers}}}`, or {either}"


def _may_be_skipped(item: pytest.Item) -> bool:
    """Return whether a marker may skip the item, so that its prediction is not started ahead."""
    return any(
        marker.name in ("skip", "skipif") or (marker.name == "xfail" and marker.kwargs.get("run") is False)
        for marker in item.iter_markers()
    )


def _reruns_failures(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "lf", False))
