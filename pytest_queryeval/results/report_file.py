"""A report.json read back: checked by report.schema.json, since it may come from anywhere."""

from __future__ import annotations

import json
import os
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PureWindowsPath
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from pytest_queryeval.core.errors import ReportError, nearest_file
from pytest_queryeval.core.jsonable import INTEGER_DIGITS
from pytest_queryeval.core.report import CaseReport, CasesFile, Report, WeakCase
from pytest_queryeval.documents.strict_json import StrictJson, syntax_problem
from pytest_queryeval.results.aggregation import SCHEMA
from pytest_queryeval.results.case_store import StoredCases, gathered
from pytest_queryeval.text.truncation import one_line

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

SCHEMA_FILE = Path(__file__).parent.parent / "report.schema.json"
WRITE_ONE = "`pytest --queryeval-report=report.json` writes one"
RUN_AGAIN = "run the suites again with this version of pytest-queryeval"
WRITE_STRENGTH = "`queryeval strength PATH --json > strength.json` writes one"
_JSON = StrictJson()
MAX_BYTES = 512 * 2**20
MAX_LINE_BYTES = 64 * 2**20  # a case
BATCH_BYTES = 2**18  # of lines that are checked at once: signals wait for some milliseconds
MAX_LEVELS = 100  # this package writes some thirty
MAX_INTEGER = 10**INTEGER_DIGITS - 1
TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


def read_weak_cases(path: Path) -> list[WeakCase]:
    """Return the cases with survivors in what `queryeval strength --json` printed; raise as `read_report` does."""
    found = _read(path, _strength_problem, "result of `queryeval strength`", WRITE_STRENGTH)
    return [case for case in found["cases"] if case["survivors"]]


def read_report(
    path: Path, *, naming: str = "", each: Callable[[CaseReport], CaseReport] = lambda case: case
) -> Report:
    """Return the report in a file; more cases than fit in memory are read one by one, when they are needed.

    Where cases have a file of their own, only those in which `naming` occurs are returned, and no other is parsed. What
    `each` returns is kept of a case.

    Raise `ReportError`, in one line that begins with the path, where the file cannot be read, is larger than 512 MiB,
    is not JSON or no report, or is one of another schema, and where the file of its cases is not the one that was
    written with it. A duplicate key is refused: readers differ in which of the two counts.
    """
    found = _read(path, _problem, "report", WRITE_ONE)
    cases = found["cases"]
    if isinstance(cases, list):
        return cast(Report, {**found, "cases": gathered(map(each, cases))})
    return cast(Report, {**found, "cases": StoredCases(map(each, _read_cases(path, cases, naming)))})


def _read_cases(report: Path, stated: CasesFile, naming: str) -> Iterator[CaseReport]:
    """Yield the cases in the file that a report names; raise `ReportError` at its end where it is another one."""
    name = stated["file"]
    if PureWindowsPath(name).name != name or name in ("", ".."):  # what is a name there is one everywhere
        raise ReportError(
            f"{one_line(str(report))}: cases.file: expected the name of a file in the folder of the report"
        )
    place = Path(os.path.realpath(report)).parent / name
    with _errors_explained(report.parent / name, "file of cases", f"{report.name} has its cases there: copy both"):
        if place.is_symlink():
            raise ValueError("a symbolic link may lead anywhere: put the file itself there")
        if place.exists() and not place.is_file():
            raise ValueError("no regular file")
        text = json.dumps(naming, ensure_ascii=False)[1:-1].encode(errors="backslashreplace")
        digest, number = sha256(), 0
        batch, size = dict[int, bytes](), 0
        with place.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                digest.update(line)
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(f"line {number}: longer than {MAX_LINE_BYTES // 2**20} MiB")
                if text in line:
                    batch[number], size = line, size + len(line)
                if size > BATCH_BYTES:
                    yield from _cases_in(batch)
                    batch, size = {}, 0
        yield from _cases_in(batch)
        if digest.hexdigest() != stated["sha256"] or number != stated["count"]:
            raise ValueError(f"not the one that was written with {report.name}: copy both of one run")


def _cases_in(lines: Mapping[int, bytes]) -> list[CaseReport]:
    """Return the cases in lines, which stand by their numbers; raise ValueError at the first line without a case."""
    try:
        cases: list[CaseReport] = [_JSON.read(line) for line in lines.values()]
        are_valid = not _excess(cases) and _first_error(cases, "CaseReport") is None
    except ValueError:
        are_valid = False
    return cases if are_valid else [_case_in(line, number) for number, line in lines.items()]


def _case_in(line: bytes, number: int) -> CaseReport:
    """Return the case in a line; raise ValueError where there is none."""
    try:
        case: CaseReport = _JSON.read(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {number}: {syntax_problem(error)}") from error
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error
    wrong = _first_error([case], "CaseReport")
    if problem := _excess(case) or (_explain(wrong) if wrong is not None else ""):
        raise ValueError(f"line {number}: {problem.removeprefix('[0]').removeprefix('.').removeprefix(': ')}")
    return case


def _read(path: Path, problem_of: Callable[[Any], str], what: str, remedy: str) -> Any:
    """Return the JSON in a file in which `problem_of` finds nothing wrong."""
    with _errors_explained(path, what, remedy):
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES // 2**20} MiB")
        value = _JSON.read(content)
        problem = problem_of(value)
    if problem:
        raise ReportError(f"{one_line(str(path))}: {problem}")
    return value


@contextmanager
def _errors_explained(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Turn whatever keeps a file from being read into a `ReportError`."""
    try:
        yield
    except FileNotFoundError:
        problem = f"no such file{nearest_file(path) or f': {remedy}'}"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    except MemoryError:
        problem = "cannot be read: it takes more memory than there is"
    except json.JSONDecodeError as error:
        problem = f"is no {what}: {syntax_problem(error)} (line {error.lineno}): {remedy}"
    except ValueError as error:
        problem = f"is no {what}: {one_line(str(error))}"
    else:
        return
    raise ReportError(f"{one_line(str(path))}: {problem}")


def _strength_problem(found: Any) -> str:
    if not isinstance(found, dict) or not isinstance(found.get("cases"), list):
        return f"is no result of `queryeval strength`: {WRITE_STRENGTH}"
    error = _first_error(found["cases"], "WeakCase")
    problem = _excess(found) or (_explain(error) if error is not None else "")
    return problem and f"is no result of `queryeval strength`: {one_line(problem)}"


def _problem(report: Any) -> str:
    """Return what is wrong with the first wrong value; empty where nothing is."""
    if not isinstance(report, dict) or "schema" not in report or "cases" not in report:
        return f"is no report of pytest-queryeval: {WRITE_ONE}"
    if type(report["schema"]) is not int or report["schema"] != SCHEMA:
        return f"has schema {one_line(str(report['schema']))}, and only schema {SCHEMA} can be read: {RUN_AGAIN}"
    if excess := _excess(report):
        return f"is no report: {excess}"
    error = _first_error(report)
    if error is None:
        return ""
    # A report of a development version may lack what was added since.
    remedy = f": {RUN_AGAIN}" if error.kind.name == "required" else ""
    return f"is no report: {one_line(_explain(error))}{remedy}"


def _first_error(value: Any, items: str = "") -> ValidationError | None:
    """Return what is wrong first, if anything.

    The validator drops what the handler of a signal raises, such as KeyboardInterrupt. So it runs in another thread,
    where no handler runs; to block signals would not do, since the other threads of the process take them then.
    """
    outcomes: SimpleQueue[tuple[ValidationError | None, BaseException | None]] = SimpleQueue()

    def check() -> None:
        try:
            outcomes.put((next(_validator(items).iter_errors(value), None), None))
        except BaseException as error:  # noqa: BLE001 - raised below
            outcomes.put((None, error))

    start_new_thread(check, ())  # no `Thread`, whose weak references have callbacks: they drop exceptions, too
    problem, failure = outcomes.get()
    if failure is not None:
        raise failure
    return problem


@lru_cache(maxsize=3)
def _validator(items: str = "") -> Draft202012Validator:
    """Return the validator of reports, or of lists of what has a definition in their schema."""
    from jsonschema_rs import Draft202012Validator

    schema = json.loads(SCHEMA_FILE.read_bytes())
    if items:
        schema = {"$defs": schema["$defs"], "type": "array", "items": {"$ref": f"#/$defs/{items}"}}
    return Draft202012Validator(schema, validate_formats=True, formats={"date-time": _is_time})


def _is_time(value: str) -> bool:
    try:
        moment = datetime.fromisoformat(value)
        moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter for a year before the first
        return False
    return True


def _explain(error: ValidationError) -> str:
    """Return where a report is wrong, and what was expected there."""
    if error.kind.name == "anyOf":  # the first alternative describes the value; the second is null, or a file of cases
        return _explain(error.kind.value[isinstance(error.instance, dict) and error.instance_path == ["cases"]][0])
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    return f"{place.removeprefix('.')}: {EXPECTATIONS[error.kind.name](error.kind.value)}".removeprefix(": ")


# What a keyword of the schema requires, by its value.
EXPECTATIONS: Mapping[str, Callable[[Any], str]] = {
    "required": lambda name: f"'{name}' is missing",
    "type": lambda names: f"expected {' or '.join(TYPES[name] for name in ([names] if type(names) is str else names))}",
    "enum": lambda known: f"expected one of {', '.join('null' if value is None else str(value) for value in known)}",
    "format": lambda _: "expected a time in the form of ISO 8601",
    "minimum": lambda least: f"expected a number from {least} on",
    "exclusiveMinimum": lambda least: f"expected a number above {least:g}",
    "exclusiveMaximum": lambda most: f"expected a number below {most:g}",
    "propertyNames": lambda error: EXPECTATIONS[error.kind.name](error.kind.value),
    "minItems": lambda number: f"expected a list of {number}",
    "maxItems": lambda number: f"expected a list of {number}",
    "additionalProperties": lambda _: "has an unknown key",
}


def _excess(value: Any) -> str:
    """Return why no format could write a value: nested too deep, or with too large a whole number; else empty."""
    level = [value]
    for _ in range(MAX_LEVELS):
        every = (own for item in level for own in (item.values() if type(item) is dict else item))
        level = [own for own in every if type(own) in (dict, list) or (type(own) is int and abs(own) > MAX_INTEGER)]
        if int in map(type, level):
            return "a whole number is too large"
        if not level:
            return ""
    return "nested too deep"
