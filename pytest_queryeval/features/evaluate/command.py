"""Evaluates suites without pytest: runs all cases, evaluates the gates, writes the reports.

Options mean what they mean to pytest with `--queryeval-` before their names, and the report is that of
`pytest PATH`. Settings of ini files and the hook `pytest_queryeval_predict` are not used.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from pytest_queryeval.cli.conftests import import_conftests, root_of
from pytest_queryeval.cli.output import Result, notifier, with_progress
from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import ExecutorBroken, QueryEvalError, ReportError, SuiteError, did_you_mean
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.process import INTERRUPTED
from pytest_queryeval.documents.document import Problems, file_at
from pytest_queryeval.evaluation.prediction_call import SpendLimit
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.reports.summary import summary_lines, verdict_line
from pytest_queryeval.results.case_store import Cases, append_case
from pytest_queryeval.results.gates import merge_gates
from pytest_queryeval.results.verdict import verdict
from pytest_queryeval.runs.evaluate import NamedCase, evaluate_cases, evaluate_named_case
from pytest_queryeval.runs.option_table import OPTIONS, whole_number
from pytest_queryeval.runs.options import RunOptions
from pytest_queryeval.runs.report import engine_versions, report_of_run, report_targets
from pytest_queryeval.runs.stopping import EarlyStop, early_stop, not_run_report
from pytest_queryeval.runs.suites import RunSuites, with_case_counts
from pytest_queryeval.suites import suite_files, suites_below
from pytest_queryeval.suites.variables import MissingExtraError
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import mask_credentials

EXAMPLE = "queryeval evaluate suites --workers 4 --report report.html"
# The exit statuses of pytest; INTERRUPTED differs from it.
OK, FAILED = 0, 1
_tell = notifier("evaluate")


def _tell_calls(line: str) -> None:
    """Report the progress of calls to the user, without the prefix `queryeval: ` that pytest's terminal needs."""
    _tell(line.removeprefix("queryeval: "))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: the suites, the options of the plugin, and where queries run."""
    option = parser.add_argument
    paths_help = "a suite file, a folder with suites, or a case: SUITE::ID"
    option("paths", nargs="+", metavar="PATH", help=paths_help)
    for run_option in OPTIONS:
        choices = {"choices": run_option.choices, "metavar": None} if run_option.choices else {}
        option(f"--{run_option.flag}", default=run_option.default, **{**run_option.arguments, **choices})
    root = "paths in the report are relative to DIR; default: as pytest finds it"
    option("--rootdir", metavar="DIR", type=Path, help=root)
    execution_group = parser.add_mutually_exclusive_group()
    execution_group.add_argument(
        "--workers", metavar="N", type=whole_number, help="run queries in N processes of this machine"
    )
    execution_group.add_argument(
        "--on", metavar="dask://HOST:PORT", help="run queries on the workers of a Dask cluster"
    )
    option("-v", "--verbose", action="count", default=0, help="print all tables, and the slowest cases")
    option("-q", "--quiet", action="count", default=0, help="print less")


def run(arguments: argparse.Namespace) -> Result:
    """Evaluate the cases, write the reports, and return the summary.

    The status is 0 if no case failed and no gate is missed, else 1; it is 130 after Ctrl-C. If suites or options cannot
    be read or do not fit each other, raise `QueryEvalError` and run nothing.
    """
    selections = [(Path(path), id_) for path, _, id_ in (text.partition("::") for text in arguments.paths)]
    paths = [path for path, _ in selections]
    options = RunOptions(
        prefix="--",
        folder=Path.cwd(),
        root=root_of(paths) if arguments.rootdir is None else Path.cwd() / arguments.rootdir,
        **{option.name: getattr(arguments, option.name) for option in OPTIONS},
    )
    options.check()
    targets = report_targets(
        options.report or (),
        option="--report",
        folder=Path(),
        layout=options.excel_layout,
        baseline=options.baseline_path,
    )
    executor = _query_executor(arguments.workers, arguments.on)
    for path in paths:
        import_conftests(path, options.root)
    suites = RunSuites(options, warn=lambda message, place: _tell(f"{place}: {message}"))
    named_cases = _selected_cases(selections, suites)
    requested_paths = [suites.relative_path(path) for path in paths]
    suites.warn_of_ungated(requested_paths)
    chosen_nodeids = options.choose_cases([named_case.nodeid for named_case in named_cases])
    cases = sorted(
        (named_case for named_case in named_cases if named_case.nodeid in chosen_nodeids),
        key=lambda named_case: options.sort_key(named_case.nodeid),
    )
    is_selected = len(cases) < len(named_cases) or any(id_ for _, id_ in selections)
    to_run = [named_case.case for named_case in cases if named_case.case.skip is None]
    executor_option = "--workers" if arguments.workers else "--on" if arguments.on else ""
    if misuse := options.misuse(to_run, suites.all_cases, executor_option):
        raise QueryEvalError(misuse)
    early = early_stop(cases, suites, suites_below)
    spend = SpendLimit(*options.spend_name_and_limit) if options.spend_name_and_limit is not None else None
    evaluation = _evaluate(cases, options, executor, early, spend)
    report = report_of_run(
        evaluation.cases,
        with_case_counts(merge_gates([suites.gates()]), suites, evaluation.cases, suites.collected, suites_below),
        options,
        environment={"engines": engine_versions(to_run)},
        requested_paths={"paths": requested_paths, "ignored": suites.left_out},
        collected=suites.collected,
        unreadable_files=[],
        selected=is_selected,
        stopped=len(evaluation.cases) < len(cases),
        interrupted=evaluation.is_interrupted,
        stop=early,
        spend=spend,
    )
    written_files = targets.write(report)
    faults = [*evaluation.faults, *written_files.problems]
    remarks = [] if is_selected else evaluation.remarks
    status = FAILED if faults or verdict(report).is_faulty else OK
    verbosity = arguments.verbose - arguments.quiet
    summary = summary_lines(report, width=shutil.get_terminal_size().columns, verbosity=verbosity, command="evaluate")
    line, _ = verdict_line(report, faults, command="evaluate")
    return Result(
        status=INTERRUPTED if evaluation.is_interrupted else status,
        lines=[
            *(text for text, _ in summary),
            *remarks,
            *(f"report: {path}" for path in written_files.paths),
            *faults,
            line,
        ],
        data={**report, "cases": [*report["cases"]]} if arguments.json else {},
        ci_commands=targets.commands(report, options.root),
    )


class _Evaluation(NamedTuple):
    """What a run has evaluated, and how it ended."""

    cases: Cases
    """The reports of the cases that were evaluated."""
    is_interrupted: bool
    faults: Sequence[str]
    """The errors that stopped the run; empty if it was not stopped by an error."""
    remarks: Sequence[str]
    """Sentences about predictions that belong to no case."""


def _evaluate(
    cases: Sequence[NamedCase],
    options: RunOptions,
    executor: AbstractContextManager[Executor | None],
    early: EarlyStop | None,
    spend: SpendLimit | None,
) -> _Evaluation:
    """Evaluate the cases in order; an interrupt, a broken executor or a `ReportError` ends the run early.

    Reports of cases that were evaluated before the end are kept, and no error is raised.
    """
    case_reports: Cases = []
    is_interrupted, faults = False, list[str]()
    with Session(_tell_calls, recording=options.recording, cause_mode=options.cause, spend=spend) as session:
        try:
            with executor as workers:
                results = _case_reports(cases, session, workers, early)
                for result in with_progress(results, _tell, total=len(cases)):
                    case_reports = append_case(case_reports, result)
        except KeyboardInterrupt:
            is_interrupted = True
        except (ExecutorBroken, ReportError) as error:
            faults.append(f"the run has stopped: {error}")
        return _Evaluation(case_reports, is_interrupted, faults, session.predictors.remarks())


def _case_reports(
    cases: Sequence[NamedCase], session: Session, executor: Executor | None, early: EarlyStop | None
) -> Iterator[CaseReport]:
    """Yield the report of each case, in the order of the cases.

    Once `early` has decided all gates, predictors are stopped and the remaining cases are reported as not run.
    """
    case_reports = evaluate_cases(cases, session, executor=executor, by_batch=early is not None, tell=_tell)
    if early is None:
        yield from case_reports
        return
    for why in early.needs_all:
        _tell(f"all cases run: {why}")
    for named_case in cases:  # the reports come in this order
        if named_case.case.skip is not None:
            yield evaluate_named_case(named_case, session) if early.is_decided else next(case_reports)
        elif early.is_decided:
            session.predictors.stop()
            yield not_run_report(named_case)
        else:
            yield (result := next(case_reports))
            early.add(result)


def _selected_cases(selections: Iterable[tuple[Path, str]], suites: RunSuites) -> list[NamedCase]:
    """Return the selected cases in the order of the selections, without repetitions.

    A selection is a path and the id of the only case to run there; an empty id selects all cases. A suite that needs a
    missing package is reported to the user and left out. Raise `SuiteError` with the problems of all suites, and
    `QueryEvalError` for an id that no case has.
    """
    cases_by_nodeid: dict[str, NamedCase] = {}
    problems = Problems()
    for path, id_ in selections:
        for file in suite_files(file_at(path).path):
            name = suites.relative_path(file)
            try:
                cases = suites.cases.get(name) or suites.load(file)
            except MissingExtraError as error:
                _tell(f"not evaluated: {file}: {error}")
                continue
            except SuiteError as error:
                problems.keep(error)
                continue
            chosen_cases = [case for case in cases if id_ in ("", case.id, case.written_id)]
            if not chosen_cases:
                raise QueryEvalError(f"{file}: no case '{id_}'{did_you_mean(id_, [case.id for case in cases])}")
            for case in chosen_cases:
                nodeid = f"{name}::{case.id}"
                cases_by_nodeid.setdefault(nodeid, NamedCase(case, nodeid, suites.relative_path(case.location.path)))
    problems.raise_any()
    return list(cases_by_nodeid.values())


def _query_executor(workers: int | None, address: str | None) -> AbstractContextManager[Executor | None]:
    """Return the context of what runs queries: local worker processes, a Dask cluster, or None for this process.

    Raise `QueryEvalError` for fewer than one process and for an address that is not of Dask.
    """
    if address is not None:
        scheme, separator, _ = address.partition("://")
        if not separator or scheme.lower() != "dask":
            shown_address = one_line(mask_credentials(address))
            raise QueryEvalError(f"--on: expected the address of a cluster, dask://…, found '{shown_address}'")
        executor: AbstractContextManager[Executor] = feature("scale.dask").dask_executor(address)
        return executor
    if workers is None:
        return nullcontext()
    if workers < 1:
        raise QueryEvalError(f"--workers: expected a whole number from 1, found {workers}: write 1 or more")
    from pytest_queryeval.features.evaluate.processes import WorkerProcesses

    return WorkerProcesses(workers)
