"""A report.json read back: checked by the types of `core.report`, since it may come from anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path, PureWindowsPath
from typing import Any, cast

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError, ReportError, nearest_file
from pytest_queryeval.core.json_value import INTEGER_DIGITS
from pytest_queryeval.core.model import Threshold
from pytest_queryeval.core.report import CasesFile, Report
from pytest_queryeval.documents.strict_json import StrictJson, syntax_problem
from pytest_queryeval.evaluation.trials import meets_rule
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.results.aggregation import FIRST_GROUPS, SCHEMA
from pytest_queryeval.results.case_store import StoredCases, collect_cases
from pytest_queryeval.results.gates import gate_text, rule_of
from pytest_queryeval.text.formatting import one_line

WRITE_ONE = "write one with `queryeval evaluate PATH --report report.json`"
RUN_AGAIN = "run the suites again with this version of pytest-queryeval"
_JSON = StrictJson()
MAX_BYTES = 512 * 2**20
MAX_LINE_BYTES = 64 * 2**20  # a case
MAX_LEVELS = 100  # reports of this package have about thirty
MAX_INTEGER = 10**INTEGER_DIGITS - 1


def read_report(
    path: Path, *, naming: str = "", transform: Callable[[CaseReport], CaseReport] = lambda case: case
) -> Report:
    """Return the report in a file; more cases than fit in memory stay in a temporary file.

    If the cases have a file of their own, only lines in which the text `naming` occurs are parsed and returned.
    `transform` is applied to each case.

    Raises `ReportError`, in one line that begins with the path, if the file:
    - cannot be read, or exceeds 512 MiB,
    - is not JSON, or not a valid report of this schema,
    - names a file of cases that was not written with it.

    A duplicate key is refused: readers differ in which of the two counts.
    """
    content = read_checked(path, _report_problem, "report", WRITE_ONE)
    cases = content["cases"]
    if isinstance(cases, list):
        return cast(Report, {**content, "cases": collect_cases(map(transform, cases))})
    stored_cases = _read_cases(path, cases, naming, _is_current(content))
    return cast(Report, {**content, "cases": StoredCases(map(transform, stored_cases))})


def _read_cases(report: Path, cases: CasesFile, naming: str, is_current: bool) -> Iterator[CaseReport]:
    """Yield the cases in the file that a report names, if `naming` occurs in their line.

    Raises `ReportError`; that the file is not the one written with the report is known only at its end.
    """
    name = cases["file"]
    if PureWindowsPath(name).name != name or name in ("", ".."):  # a plain name on Windows is one everywhere
        raise ReportError(
            f"{one_line(str(report))}: cases.file: expected the name of a file in the folder of the report"
        )
    place = Path(os.path.realpath(report)).parent / name
    with _errors_explained(report.parent / name, "file of cases", f"{report.name} has its cases there: copy both"):
        if place.is_symlink():
            raise ValueError("a symbolic link may lead anywhere: put the file itself there")
        if place.exists() and not place.is_file():
            raise ValueError("not a regular file")
        text = json.dumps(naming, ensure_ascii=False)[1:-1].encode(errors="backslashreplace")
        digest, number = sha256(), 0
        with place.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                digest.update(line)
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(f"line {number}: longer than {MAX_LINE_BYTES // 2**20} MiB")
                if text in line:
                    yield _case_in(line, number, is_current)
        if digest.hexdigest() != cases["sha256"] or number != cases["count"]:
            raise ValueError(f"not the one that was written with {report.name}: copy both of one run")


def _case_in(line: bytes, number: int, is_current: bool) -> CaseReport:
    """Return the case in a line; raises ValueError if it is invalid. `is_current` is as in `_case_problem`."""
    try:
        case: CaseReport = _JSON.read(line)
        problem = problem_in(case, "CaseReport") or _case_problem(case, is_current)
    except ValueError as error:
        problem = syntax_problem(error).text if isinstance(error, json.JSONDecodeError) else str(error)
    if problem:
        raise ValueError(f"line {number}: {problem}")
    return case


def read_checked(path: Path, problem_of: Callable[[Any], str], file_kind: str, remedy: str) -> Any:
    """Return the JSON value in a file, if `problem_of` returns an empty text for it.

    Raises `ReportError` as `read_report` does. `file_kind` and `remedy` are words for its message.
    """
    with _errors_explained(path, file_kind, remedy):
        if path.is_fifo():  # whose reader may wait for ever
            raise ValueError("it is a pipe: write it to a file, and name that")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES // 2**20} MiB")
        if content.lstrip()[:1] == b"<":
            raise ValueError(f"it is HTML or XML: name the JSON file of that run, or {remedy}")
        document = _JSON.read(content)
        problem = problem_of(document)
    if problem:
        raise ReportError(f"{one_line(str(path))}: {problem}")
    return document


@contextmanager
def _errors_explained(path: Path, file_kind: str, remedy: str) -> Iterator[None]:
    """Turn errors of reading a file within the `with` statement into a `ReportError` that names the path."""
    try:
        yield
    except FileNotFoundError:
        problem = f"no such file{nearest_file(path) or f': {remedy}'}"
    except IsADirectoryError:
        problem = f"is a folder: name the {file_kind} in it"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    except MemoryError:
        problem = "cannot be read: there is not enough memory"
    except json.JSONDecodeError as error:
        problem = f"is not a {file_kind}: {syntax_problem(error).text} (line {error.lineno}): {remedy}"
    except ValueError as error:
        problem = f"is not a {file_kind}: {one_line(str(error))}"
    else:
        return
    raise ReportError(f"{one_line(str(path))}: {problem}")


def _report_problem(value: Any) -> str:
    """Return what is wrong with a value that should be a report; empty if nothing is."""
    if not isinstance(value, dict) or "schema" not in value or "cases" not in value:
        return f"is not a report of pytest-queryeval: {WRITE_ONE}"
    if type(value["schema"]) is not int or value["schema"] != SCHEMA:
        return f"has schema {one_line(str(value['schema']))}, and only schema {SCHEMA} can be read: {RUN_AGAIN}"
    report = cast(Report, value)
    problem = problem_in(value, "Report") or _head_problem(report) or _result_problem(report)
    # A report of a development version may lack what was added since.
    remedy = f": {RUN_AGAIN}" if problem.endswith(" is missing") else ""
    return problem and f"is not a report: {one_line(problem)}{remedy}"


def problem_in(value: Any, type_name: str) -> str:
    """Return why a value is not of a named type of `core.report`, or too large for some format; empty if it is fine."""
    from pytest_queryeval.results import report_schema  # msgspec takes 6 ms to import

    return _excess_problem(value) or report_schema.problem_in(value, type_name)


def _head_problem(report: Report) -> str:
    """Return the first problem of a report's times, groups and gates; empty if there is none.

    The types of all values have to be checked before.
    """
    times = {"created": report["created"]}
    times |= {f"joined[{number}].created": run["created"] for number, run in enumerate(report.get("joined", ()))}
    for place, time in times.items():
        try:
            moment_of(time).astimezone(UTC)
        except (ValueError, OverflowError):  # the latter for a year before the first
            return f"{place}: expected a time in the form of ISO 8601"
    for group in FIRST_GROUPS:
        if group not in report["groups"]:
            return f"groups: '{group}' is missing"
    for number, gate in enumerate(report["gates"]):
        # A malformed condition would be ignored, and the gate would cover more cases.
        for group, value in gate["where"].items():
            if isinstance(value, str) is (group == "not"):
                expectation = "an object" if group == "not" else "a text"
                return f"gates[{number}].where.{group}: expected {expectation}"
        try:  # what the rule of the gate reads, which other gates need not have
            gate_text(gate), list(rule_of(gate).requirements(gate)), rule_of(gate).is_met(gate, gate)
        except KeyError as error:
            return f"gates[{number}]: {error} is missing"
    return ""


def _result_problem(report: Report) -> str:
    """Return the first problem of a report's scores and outcomes; empty if there is none.

    Cases in a file of their own are checked when they are read.
    """
    for key in ("min", "mean", "max"):
        if problem := _range_problem({name: metric[key] for name, metric in report["metrics"].items()}):
            return f"metrics: {problem}"
    cases, is_current = report["cases"], _is_current(report)
    for number, case in enumerate(cases if isinstance(cases, list) else ()):
        if problem := _case_problem(case, is_current):
            return f"cases[{number}]: {problem}"
    return ""


def _is_current(report: Report) -> bool:
    """Return whether this version wrote the report, so that it has to follow the rules of this version."""
    return report["environment"].get("pytest_queryeval") == version("pytest-queryeval")


def _range_problem(scores: Mapping[str, float | None]) -> str:
    """Return the problem of the first score that its metric cannot have; empty if there is none.

    Unknown metrics pass.
    """
    for name, score in scores.items():
        if score is not None and name in METRICS:
            with suppress(QueryEvalError):  # of a metric whose extra is not installed
                if problem := METRICS[name].range_problem(score):
                    return f"{name}: {problem}"
    return ""


def _case_problem(case: CaseReport, is_current: bool) -> str:
    """Return what is wrong with the scores of a case; empty if nothing is.

    In a report of this version (`is_current`), the outcome is checked against the scores too.
    """
    for scores in (case["scores"], *(trial["scores"] for trial in case["trials"])):
        if problem := _range_problem(scores):
            return f"scores: {problem}"
    if any(not 0 <= score <= 1 for score in case.get("field_scores", {}).values()):
        return "field_scores: a score is outside its range, 0 to 1"
    if is_current and case["outcome"] in ("passed", "xpassed") and not _can_pass(case):
        return f"the outcome is '{case['outcome']}', and the scores do not meet the thresholds of the case"
    return ""


def _can_pass(case: CaseReport) -> bool:
    """Return whether a case with these scores, failures and trials can have passed.

    True for a case without thresholds, and for a reviewed case.
    """
    fingerprint = case["fingerprint"]
    if fingerprint is None or not fingerprint["thresholds"] or "review" in case:
        return True

    def is_met(scores: Mapping[str, float | None]) -> bool:
        return all(
            (score := scores.get(name)) is not None
            and Threshold(minimum=limits["min"], maximum=limits["max"]).admits(score)
            for name, limits in fingerprint["thresholds"].items()
        )

    trials, predicted = case["trials"], case["predicted"]
    if not trials:
        return is_met(case["scores"]) and (predicted is None or predicted["error"] is None)
    rule = fingerprint["trials_rule"]
    if rule == "mean":
        return is_met(case["scores"]) and any(trial["predicted"]["error"] is None for trial in trials)
    passed = [is_met(trial["scores"]) and trial["predicted"]["error"] is None for trial in trials]
    return meets_rule(rule, passed.count(True), len(trials))


def moment_of(created: str) -> datetime:
    """Return the time of a report with a time zone; a time without a zone is in UTC. Raises ValueError."""
    moment = datetime.fromisoformat(created)
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def _excess_problem(value: Any) -> str:
    """Return why some format could not write a value: too deep, or with too large a whole number; empty if all can."""
    level: list[Any] = [[value]]
    for _ in range(MAX_LEVELS + 1):
        items = (item for values in level for item in (values.values() if type(values) is dict else values))
        level = [
            item for item in items if type(item) in (dict, list) or (type(item) is int and abs(item) > MAX_INTEGER)
        ]
        if int in map(type, level):
            return "a whole number is too large"
        if not level:
            return ""
    return "nested too deeply"
