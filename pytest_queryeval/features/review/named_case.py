"""Finds the cases that the command line names, in a report and in its suites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_queryeval.cli.conftests import import_conftests
from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import Report
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.suites import SUITE_PATTERNS, Suite, is_suite_file, load_suites
from pytest_queryeval.text.formatting import first_of

MAX_LISTED = 5


def find_reported(report: Report, name: str) -> CaseReport:
    """Return the case of a report with this node id or id; raise `ReportError` unless exactly one case has it."""
    nodeids = [case["nodeid"] for case in report["cases"]]
    return report["cases"][nodeids.index(match_nodeid(nodeids, name))]


def read_reported(path: Path, name: str) -> CaseReport:
    """Return the case with this name from a report file; raise `ReportError` as `find_reported` and `read_report` do.

    If cases are in separate files, only those that contain the name are parsed, unless none of them is the case.
    """
    try:
        return find_reported(read_report(path, naming=name), name)
    except ReportError:  # the error for the whole report suggests similar names
        return find_reported(read_report(path), name)


def match_nodeid(nodeids: Sequence[str], name: str) -> str:
    """Return the node id that equals `name`, else the only one whose id equals it.

    Raise `ReportError`, which suggests names, if there is none or there are several.
    """
    if name in nodeids:
        return name
    matches = [nodeid for nodeid in nodeids if nodeid.partition("::")[2] == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ReportError(f"'{name}' is the id of several cases: write {first_of(matches, MAX_LISTED, ' or ')}")
    names = nodeids if "::" in name else [nodeid.partition("::")[2] for nodeid in nodeids]
    if in_suite := next((nodeid for nodeid in nodeids if nodeid.startswith(f"{name}::")), ""):
        raise ReportError(f"'{name}' is a suite: name one of its cases, such as {in_suite}")
    hint = did_you_mean(name, set(names))
    if nodeids and (not hint or Path(name).is_file()):  # too many to list, or a report
        hint = f": write the id or the node id of a case, such as {nodeids[0]}"
    raise ReportError(f"no case '{name}'{hint}")


def read_suite(path: Path) -> Suite:
    """Return a suite file as it is now, after importing its `conftest.py` files.

    Raise `ReportError` if the file does not exist or is no suite, and `SuiteError` if it is invalid.
    """
    if not path.is_file():
        raise ReportError(f"no file {path} from here: start the command in the root folder of the run")
    if not is_suite_file(path):
        raise ReportError(f"{path}: is not a suite: name a file called {SUITE_PATTERNS}")
    import_conftests(path)
    suites = load_suites(path, require_prediction=False)
    if not suites:
        raise ReportError(f"{path}: an extra that it requires is not installed")
    return suites[0]


def read_suite_below(path: Path) -> Suite:
    """Return a suite that a report or an audit file names; raise `ReportError` if it is outside of the current folder.

    So these files cannot make this process import a `conftest.py` elsewhere. Raise the errors of `read_suite`.
    """
    if path.is_file() and not path.resolve().is_relative_to(Path.cwd().resolve()):
        raise ReportError(f"{path}: is not below the current folder: start the command in the root folder of the run")
    return read_suite(path)


def case_of(suite: Suite, id_: str) -> Case:
    """Return the case of a suite with this id; raise `ReportError` if there is none."""
    for case in suite.cases:
        if case.id == id_:
            return case
    hint = did_you_mean(id_, [case.id for case in suite.cases])
    raise ReportError(f"{file_at(suite.path).shown}: there is no case '{id_}'{hint}")
