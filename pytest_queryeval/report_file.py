"""A report.json read back: checked as far as anything here looks at it, since it may come from anywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Never, TypeAlias

from pytest_queryeval.aggregation import GROUPS, SCHEMA, TOTAL_OF, Report
from pytest_queryeval.errors import ReportError
from pytest_queryeval.plain import one_line
from pytest_queryeval.sql.components import COMPONENTS

MAX_BYTES = 512 * 2**20
LARGEST = 1e150  # its square is still a number
# Whether a value is as it should be, and in words what that is.
Check: TypeAlias = tuple[Callable[[Any], bool], str]
Checks: TypeAlias = Mapping[str, Check]


def read_report(path: Path) -> Report:
    """The report in a file, with empty values for what a report without pytest does not have.

    Raises `ReportError`, in one line that begins with the path, where the file cannot be read, is larger than 512 MiB,
    is no JSON or no report, or is one of another schema.
    """
    try:
        report = _parsed(_content(path))
        problem = _problem(report)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    except RecursionError:
        problem = "is no report: nested too deep"
    except ValueError as error:
        problem = f"is no report: {one_line(str(error))}"
    if problem:
        raise ReportError(f"{one_line(str(path))}: {problem}")
    missing = {name: value for name, value in DEFAULTS.items() if name not in report}
    return dict(report) | missing  # in its own order, so that it can be written again as it was


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES // 2**20} MiB")
    return content


def _parsed(content: bytes) -> Any:
    return json.loads(content, parse_constant=_refuse, parse_float=_finite)


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _problem(report: Any) -> str:
    """What is wrong with the first wrong value; empty where nothing is."""
    if not isinstance(report, dict) or "schema" not in report or "cases" not in report:
        return "is no report of pytest-queryeval"
    if report["schema"] != SCHEMA:
        return f"has schema {one_line(str(report['schema']))}, but this version of pytest-queryeval reads {SCHEMA}"
    found = next(_wrong(report), None)
    return "" if found is None else f"is no report: {found}"


def _wrong(report: dict[str, Any]) -> Iterator[str]:
    yield from _unlike(DEFAULTS | report, HEAD, "")
    for member, checks in (("gates", GATE), ("cases", CASE)):
        for number, item in enumerate(report[member]):  # a list: what is wrong above ends the search
            yield from _unlike(item, checks, f"{member}[{number}]")
    yield from _wrong_where_present(report)


def _wrong_where_present(report: dict[str, Any]) -> Iterator[str]:
    """What is wrong with that which not every report has: baselines, and what older versions did not tell."""
    if report.get("baseline") is not None:
        yield from _unlike(report["baseline"], BASELINE, "baseline")
    for number, gate in enumerate(report["gates"]):
        yield from _unlike(gate, {name: rule for name, rule in RULES.items() if name in gate}, f"gates[{number}]")
    for number, case in enumerate(report["cases"]):
        if case.get("basis") is not None:
            yield from _unlike(case["basis"], BASIS, f"cases[{number}].basis")


def _unlike(item: Any, checks: Checks, place: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield f"{place}: expected an object"
        return
    for name, (is_right, wish) in checks.items():
        if name not in item:
            yield f"{place}: '{name}' is missing".removeprefix(": ")
        elif not is_right(item[name]):
            yield f"{place}.{name}: expected {wish}".removeprefix(".")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def _optional(check: Check) -> Check:
    is_right, wish = check
    return lambda value: value is None or is_right(value), f"null or {wish}"


def _list_of(check: Check) -> Check:
    is_right, wish = check
    return lambda value: isinstance(value, list) and all(map(is_right, value)), f"a list, each {wish}"


def _object_of(check: Check) -> Check:
    is_right, wish = check
    return lambda value: isinstance(value, dict) and all(map(is_right, value.values())), f"an object, each {wish}"


def _like(checks: Checks) -> Check:
    wish = ", ".join(f"{name} {wish}" for name, (_, wish) in checks.items())
    return lambda value: next(_unlike(value, checks, ""), None) is None, f"an object with {wish or 'anything'}"


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and OBJECTS[0](value.get("parts", []))


def _is_where(value: Any) -> bool:
    return TEXTS_BY_NAME[0](value) and value.keys() <= set(GROUPS)


def _are_details(value: Any) -> bool:
    """Whether those details of which reports make something are as our metrics tell them."""
    if not isinstance(value, dict) or not TEXTS[0](value.get("notes", [])):
        return False
    return "spider" not in value or SPIDER[0](value["spider"])


ANYTHING: Check = (lambda _: True, "anything")
TEXT: Check = (_is_text, "a text")
NUMBER: Check = (_is_number, "a number")
COUNT: Check = (_is_count, "a whole number from 0")
FLAG: Check = (_is_flag, "true or false")
LIST = _list_of(ANYTHING)
OBJECT = _object_of(ANYTHING)
OBJECTS = _list_of(OBJECT)
TEXTS = _list_of(TEXT)
TEXTS_BY_NAME = _object_of(TEXT)
TIMED = _optional(_like({"seconds": NUMBER}))
TRIAL = _like({"passed": _optional(FLAG), "prediction": TIMED})
COUNTED: Check = (lambda value: LIST[0](value) and len(value) == 3 and all(map(_is_count, value)), "three counts")
SPIDER = _like({"hardness": TEXT, "exact": FLAG, "components": _like(dict.fromkeys(COMPONENTS, COUNTED))})

DEFAULTS: dict[str, Any] = {
    "environment": {},
    "predictor": {"sources": []},
    "asked": {"paths": ["."], "ignored": []},
    "collected": {},
    "broken": [],
    "selected": False,
    "stopped": False,
}
STATISTICS = _like({"mean": NUMBER, "n": COUNT, "missed": COUNT})
HEAD: Checks = {
    "created": (_is_time, "a time in the form of ISO 8601"),
    "environment": (_is_environment, "an object"),
    "predictor": _like({"sources": TEXTS}),
    "totals": _object_of(COUNT),
    "metrics": _object_of(STATISTICS),
    "groups": _object_of(_object_of(_like({"totals": _object_of(COUNT), "metrics": _object_of(STATISTICS)}))),
    "asked": _like({"paths": TEXTS, "ignored": TEXTS}),
    "collected": _object_of(COUNT),
    "broken": TEXTS,
    "selected": FLAG,
    "stopped": FLAG,
    "gates": LIST,
    "cases": LIST,
}
CHANGE: Checks = {
    **dict.fromkeys(("before", "after", "change", "p", "p_holm"), NUMBER),
    "n": COUNT,
    "ci95": _optional((lambda value: _list_of(NUMBER)[0](value) and len(value) == 2, "two numbers")),
    "test": TEXT,
    "detectable": _optional(NUMBER),
}
BASELINE: Checks = {
    **dict.fromkeys(("path", "created"), TEXT),
    **dict.fromkeys(("fixed", "broken", "errors"), TEXTS),
    "cases": (lambda value: _object_of(COUNT)[0](value) and "common" in value, "an object of counts with common"),
    "metrics": _object_of(_like(CHANGE)),
    "changes": _list_of(_like({"what": TEXT, "cases": TEXTS})),
}
LIMITS: Checks = dict.fromkeys(("min", "max"), _optional(NUMBER))
BASIS: Checks = {
    "thresholds": _object_of(_like(LIMITS)),
    **dict.fromkeys(("on_miss", "trials", "trials_rule", "golds"), ANYTHING),
    **dict.fromkeys(("compare", "options"), OBJECT),
    "source": _optional(TEXT),
}
GATE: Checks = {
    "folder": TEXT,
    "whole": FLAG,
    "metric": TEXT,
    "where": (_is_where, f"an object of texts with {', '.join(GROUPS)}"),
    "min": _optional(NUMBER),
    "max": _optional(NUMBER),
}
RULES: Checks = {"no_regression": _like({"alpha": NUMBER, "max_drop": NUMBER}), "max_broken": COUNT}
CASE: Checks = {
    **dict.fromkeys(("id", "nodeid", "path", "kind", "question", "message"), TEXT),
    **dict.fromkeys(("difficulty", "source"), _optional(TEXT)),
    **dict.fromkeys(("gold", "predicted", "prediction"), TIMED),
    "line": COUNT,
    "tags": TEXTS,
    "outcome": (lambda value: _is_text(value) and value in TOTAL_OF, f"one of {', '.join(TOTAL_OF)}"),
    "scores": _object_of(_optional(NUMBER)),
    "missed": _list_of(_like({"metric": TEXT})),
    "difference": _optional(OBJECT),
    "trials": _list_of(TRIAL),
    "details": (_are_details, "an object with notes and matches as metrics tell them"),
}
