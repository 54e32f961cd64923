"""The state of a run in one process of pytest: its options, collected suites, open sources."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from fnmatch import fnmatch
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest

from pytest_queryeval.plugin.options import read_options
from pytest_queryeval.plugin.stash import is_case_item, is_listing

if TYPE_CHECKING:
    import pluggy

    from pytest_queryeval.core.errors import Location
    from pytest_queryeval.core.model import Case
    from pytest_queryeval.core.report import PendingGate, RequestedPaths
    from pytest_queryeval.evaluation.prediction_call import SpendLimit
    from pytest_queryeval.evaluation.session import Session
    from pytest_queryeval.runs.options import RunOptions
    from pytest_queryeval.runs.stopping import EarlyStop
    from pytest_queryeval.runs.suites import RunSuites


class WorkerSummary(TypedDict):
    """The facts about one process of the run, from which the controller makes the report.

    They are plain values, because a worker of pytest-xdist sends them to the controller.
    """

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
    remarks: list[str]
    """Sentences on predictions that no case used."""


class Run:
    """The state of a run in this process: options, suites, session with engines and predictors.

    Heavy parts are imported on first use, because most runs collect no suite.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.option_values = read_options(config)
        self.misuse = ""
        self.engine_versions: dict[str, str] = {}
        self.selected = _reruns_failures(config) or any("::" in argument for argument in config.args)
        self.selects_by_marker = bool(config.option.markexpr or config.option.keyword)
        self.early_stop: EarlyStop | None = None
        self._suites: RunSuites | None = None
        self._session: Session | None = None
        self._markers: dict[str, pytest.MarkDecorator] = {}

    @cached_property
    def options(self) -> RunOptions:
        """The options of the run.

        The value of an option is parsed when it is first read, which raises `QueryEvalError` if it is invalid.
        """
        from pytest_queryeval.runs.options import RunOptions

        return RunOptions(
            prefix="--queryeval-",
            folder=self.config.invocation_params.dir,
            root=self.config.rootpath,
            **vars(self.option_values),
        )

    @cached_property
    def spend(self) -> SpendLimit | None:
        """The limit on what calls may cost together; None without a limit."""
        if self.options.spend_name_and_limit is None:
            return None
        from pytest_queryeval.evaluation.prediction_call import SpendLimit

        return SpendLimit(*self.options.spend_name_and_limit)

    @property
    def suites(self) -> RunSuites:
        """The suites that this process collects; created on first use."""
        if self._suites is None:
            from pytest_queryeval.runs.suites import RunSuites

            has_hook = bool(self.config.hook.pytest_queryeval_predict.get_hookimpls())
            self._suites = RunSuites(self.options, warn=self._warn, has_predictor=has_hook)
        return self._suites

    @property
    def has_suites(self) -> bool:
        """Whether this process has collected a suite file, readable or not."""
        return self._suites is not None

    @property
    def session(self) -> Session:
        """The engines and predictors of this process; created on first use."""
        if self._session is None:
            from pytest_queryeval.evaluation.session import Session

            hook = self.config.hook.pytest_queryeval_predict
            self._session = Session(
                tell=self.show_line,
                recording=self.options.recording,
                hook=(lambda case: hook(case=case, config=self.config)) if hook.get_hookimpls() else None,
                one_at_a_time=self.is_worker,
                cause_mode=self.options.cause,
                spend=self.spend,
            )
        return self._session

    def prepare(self, items: list[pytest.Item]) -> None:
        """Start the predictions of the items, and embed in one batch the texts that similarity metrics need.

        Items that a marker may skip get no prediction ahead of time.
        """
        from pytest_queryeval.metrics import METRICS
        from pytest_queryeval.runs.report import engine_versions

        cases = _cases(items)
        self.engine_versions = engine_versions(cases)
        self.session.register_cases([*chain.from_iterable(self.suites.cases.values())])
        to_run = _cases([item for item in items if not _may_be_skipped(item)])
        self.session.predictors.prefetch(to_run, by_batch=self.options.stop_seed is not None)
        names = {name for metrics in {case.settings.requested_metrics for case in cases} for name in metrics}
        if any("similarity" in METRICS[name].injected for name in names):
            self.session.prepare(cases)

    def stop(self) -> None:
        """Start no more predictions; does nothing if no session was opened."""
        if self._session is not None:
            self._session.predictors.stop()

    def _warn(self, message: str, place: Location) -> None:
        """Warn of a weakness of a suite at its place; raise the warning if filters make it an error.

        Does nothing in workers that would repeat the warning.
        """
        from pytest_queryeval.core.errors import QueryEvalWarning

        if self.repeats_warnings:
            return
        try:
            warnings.warn_explicit(message, QueryEvalWarning, str(place.path), place.line)
        except QueryEvalWarning as warning:
            raise QueryEvalWarning(f"{place}: {warning}") from None

    @property
    def repeats_warnings(self) -> bool:
        """Whether this process would repeat the warnings of another worker.

        It is a worker of pytest-xdist but not the first.
        """
        return self.is_worker and self.config.workerinput["workerid"] != "gw0"  # type: ignore[attr-defined]

    @property
    def is_worker(self) -> bool:
        """Whether this process is a worker of pytest-xdist."""
        return hasattr(self.config, "workerinput")

    def show_line(self, line: str) -> None:
        """Print a line in the terminal; does nothing in workers of pytest-xdist, which have no terminal."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not self.is_worker:
            reporter.ensure_newline()
            reporter.write_line(line)

    def close(self) -> None:
        """Close engines and predictors; does nothing if none were opened. Idempotent."""
        if self._session is None:
            return
        from pytest_queryeval.core.process import uninterrupted

        with uninterrupted() if self.is_worker else nullcontext():
            self._session.close()

    def check_collected(self, items: list[pytest.Item]) -> None:
        """Raise a usage error for options that do not fit the collected cases, and warn of cases that no gate counts.

        A worker of pytest-xdist runs no item instead, and sends the message to the controller: pytest-xdist would
        report an error as a crash.
        """
        if not self.has_suites:
            return
        cases = _cases(items)
        workers = "-n" if self.is_worker else ""
        self.misuse = (
            self.options.misuse(cases, self.suites.all_cases, workers)
            or self._too_many_workers(cases)
            or _fork_problem(items)
            or self._warn_of_ungated()
        )
        if not self.misuse:
            return
        if not self.is_worker:
            raise pytest.UsageError(self.misuse)
        items.clear()

    def _warn_of_ungated(self) -> str:
        """Warn of cases that no gate counts.

        Return the warning's text if filters make it an error, otherwise an empty text.
        """
        from pytest_queryeval.core.errors import QueryEvalWarning

        try:
            requested_paths = self.requested_paths(())
            is_partial = bool(requested_paths["ignored"]) or _reruns_failures(self.config)  # --lf skips whole files
            self.suites.warn_of_ungated([] if is_partial else requested_paths["paths"])
        except QueryEvalWarning as warning:
            return str(warning)
        return ""

    def _too_many_workers(self, cases: list[Case]) -> str:
        """Return the problem if there are more workers than calls that a shared predictor may get.

        Return an empty text if there is none.
        """
        if not self.is_worker:
            return ""
        from pytest_queryeval.predictors import PREDICTORS

        workers = self.config.workerinput["workercount"]  # type: ignore[attr-defined]  # of pytest-xdist
        for case in {case.settings.predictor and case.settings.predictor.key: case for case in cases}.values():
            if case.settings.predictor is None or not PREDICTORS[case.settings.predictor.kind].shared:
                continue
            max_calls = self.session.predictors.concurrency(case)
            if max_calls is not None and max_calls < workers:
                calls = f"{max_calls} {'call' if max_calls == 1 else 'calls'} at once"
                predictor = f"the predictor '{case.settings.predictor.kind}' of {case.location}"
                problem = f"{predictor} takes {calls}, and -n {workers} would make {workers}"
                return f"{problem}: {_concurrency_remedy(case, workers)}"
        return ""

    def apply_limits(self, items: list[pytest.Item]) -> None:
        """Deselect the cases outside the sample and beyond the limit; changes `items` in place."""
        nodeids = [item.nodeid for item in items if is_case_item(item)]
        if not nodeids:
            return
        chosen_nodeids = self.options.choose_cases(nodeids)
        surplus = [item for item in items if is_case_item(item) and item.nodeid not in chosen_nodeids]
        if surplus:
            self.config.hook.pytest_deselected(items=surplus)
            items[:] = [item for item in items if item.nodeid in chosen_nodeids or not is_case_item(item)]

    def marker(self, name: str) -> pytest.MarkDecorator:
        """Return the marker of a tag, a kind or a difficulty, and register its name for --strict-markers."""
        if name not in self._markers:
            self.config.addinivalue_line("markers", f"{name}: a tag, a kind or a difficulty of cases")
            self._markers[name] = getattr(pytest.mark, name)
        return self._markers[name]

    def requested_paths(self, summaries: Iterable[WorkerSummary]) -> RequestedPaths:
        """Return the paths of the command line, and those that --ignore or a missing extra left out in any process."""
        option, start = self.config.option, self.config.invocation_params.dir
        ignored = (*(option.ignore or ()), *(option.ignore_glob or ()))
        left_out = dict.fromkeys(path for summary in summaries for path in summary["left_out"])
        return {
            "paths": [self.suites.relative_path(start / argument.partition("::")[0]) for argument in self.config.args],
            "ignored": [*(self.suites.relative_path(start / path) for path in ignored), *left_out],
        }

    def worker_summary(self) -> WorkerSummary:
        """Return the facts that the controller needs from this process."""
        suites = self._suites
        is_collected = suites is not None and not _reruns_failures(self.config)  # --lf skips whole files
        return {
            "gates": suites.gates() if suites else [],
            "left_out": suites.left_out if suites else [],
            "unreadable_files": suites.unreadable_files if suites else [],
            "collected": suites.collected if suites and is_collected else {},
            "selected": self.selected,
            "has_suites": self.has_suites,
            "misuse": self.misuse,
            "engine_versions": self.engine_versions,
            "remarks": self._session.predictors.remarks() if self._session and not is_listing(self.config) else [],
        }


def collected_below(folder: Path, session: pytest.Session) -> Iterator[Path]:
    """Yield the suite files that pytest would collect below a folder, also those that --ignore excludes.

    Links that lead back, and paths that pytest or another plugin ignores, are left out.
    """
    from pytest_queryeval.suites import is_suite_file, leads_back

    is_skipped = partial(_is_not_recursed, session.config)
    for place, folders, names in os.walk(folder, followlinks=True):
        hook = session.gethookproxy(Path(place))
        folders[:] = [name for name in folders if _is_collected(Path(place, name), session.config, hook)]
        folders[:] = [name for name in folders if not leads_back(Path(place, name), folder, is_skipped)]
        paths = [path for name in names if is_suite_file(path := Path(place, name))]
        yield from (path for path in paths if _is_collected(path, session.config, hook))


def is_collected_directly(path: Path, config: pytest.Config) -> bool:
    """Return whether pytest collects a file only here: not below a link to a folder that it collects as well."""
    from pytest_queryeval.suites import leads_back

    arguments = (_absolute(name.partition("::")[0], config) for name in config.args)
    root = next((argument for argument in arguments if path.is_relative_to(argument)), config.rootpath)
    folders = (folder for folder in path.parents if folder != root and folder.is_relative_to(root))
    return not any(leads_back(folder, root, partial(_is_not_recursed, config)) for folder in folders)


def _is_not_recursed(config: pytest.Config, name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in config.getini("norecursedirs"))


def _is_collected(path: Path, config: pytest.Config, hook: pluggy.HookRelay) -> bool:
    """Return whether pytest collects a path, or would collect it without --ignore and --ignore-glob."""
    if not hook.pytest_ignore_collect(collection_path=path, config=config):
        return True

    names, patterns = config.option.ignore or (), config.option.ignore_glob or ()
    return any(path == _absolute(name, config) for name in names) or any(
        fnmatch(str(path), str(_absolute(pattern, config))) for pattern in patterns
    )


def _absolute(name: str, config: pytest.Config) -> Path:
    """Return a path of the command line as an absolute path that keeps links."""
    return Path(os.path.abspath(config.invocation_params.dir / name))  # noqa: PTH100 - links stay


def _cases(items: list[pytest.Item]) -> list[Case]:
    """Return the cases of the items that are not marked as skipped in their suite."""
    return [item.case for item in items if is_case_item(item) and item.case.skip is None]


def _concurrency_remedy(case: Case, workers: int) -> str:
    """Return the remedy that allows a predictor `workers` calls at once."""
    from pytest_queryeval.predictors import PREDICTORS
    from pytest_queryeval.text.redaction import mask_credentials

    either = f"--queryeval-concurrency={workers}, or fewer workers"
    predictor = case.settings.predictor
    name = predictor.kind if predictor is not None else ""
    text = predictor.settings.get(PREDICTORS[name].text_setting) if predictor is not None else None
    if not isinstance(text, str):
        return f"set `concurrency: {workers}` next to `{name}`, or {either}"
    return f"write `predictor: {{{name}: {mask_credentials(text)}, concurrency: {workers}}}`, or {either}"


def _may_be_skipped(item: pytest.Item) -> bool:
    """Return whether a marker of the item may skip it, or xfail it without running it."""
    return any(
        marker.name in ("skip", "skipif") or (marker.name == "xfail" and marker.kwargs.get("run") is False)
        for marker in item.iter_markers()
    )


def _fork_problem(items: list[pytest.Item]) -> str:
    """Return the problem if pytest-forked would run cases in forks, which get no predictions; empty if not."""
    case_items = [item for item in items if is_case_item(item)]
    if not case_items or not hasattr(case_items[0].config.option, "forked"):  # of pytest-forked
        return ""
    remedy = "run suites without it, because queries have child processes"
    if case_items[0].config.option.forked:
        return f"--forked: cases cannot run in forked processes: {remedy}"
    if item := next((item for item in case_items if item.get_closest_marker("forked")), None):
        return f"{item.nodeid}: the tag 'forked' is a marker of pytest-forked: name it otherwise"
    return ""


def _reruns_failures(config: pytest.Config) -> bool:
    """Return whether --lf is given, under which pytest leaves out whole files."""
    return bool(getattr(config.option, "lf", False))
