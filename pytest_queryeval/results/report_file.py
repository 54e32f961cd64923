"""A report.json read back: checked as far as anything here looks at it, since it may come from anywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never, TypeAlias, cast

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.jsonable import INTEGER_DIGITS
from pytest_queryeval.core.model import GROUPS
from pytest_queryeval.core.report import Report
from pytest_queryeval.languages.sql.components import COMPONENTS
from pytest_queryeval.languages.sql.published.table import ALL_LEVELS
from pytest_queryeval.results.aggregation import SCHEMA, TOTAL_OF
from pytest_queryeval.text.plain import one_line

MAX_BYTES = 512 * 2**20
MOST_LEVELS = 100  # this package writes some thirty
TOO_LARGE = 10**INTEGER_DIGITS
LARGEST = 1e150  # its square is still a number
# Whether a value is as it should be, and in words what that is.
Check: TypeAlias = tuple[Callable[[Any], bool], str]
Checks: TypeAlias = Mapping[str, Check]  # by name; a name with a question mark may be missing


def read_report(path: Path) -> Report:
    """The report in a file, with empty values for what a report without pytest does not have.

    Raises `ReportError`, in one line that begins with the path, where the file cannot be read, is larger than 512 MiB,
    is no JSON or no report, or is one of another schema. JSON with a key twice in an object is none: readers differ in
    which of them counts.
    """
    try:
        report = json.loads(_content(path), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object)
        problem = _problem(report)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    except MemoryError:
        problem = "cannot be read: it takes more memory than there is"
    except RecursionError:
        problem = "is no report: nested too deep"
    except ValueError as error:
        problem = f"is no report: {one_line(str(error))}"
    if problem:
        raise ReportError(f"{one_line(str(path))}: {problem}")
    missing = {name: value for name, value in DEFAULTS.items() if name not in report}
    return cast("Report", dict(report) | missing)  # in its own order, so that it can be written again as it was


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES // 2**20} MiB")
    return content


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' stands twice in an object")
    return found


def _problem(report: Any) -> str:
    """What is wrong with the first wrong value; empty where nothing is."""
    if not isinstance(report, dict) or "schema" not in report or "cases" not in report:
        return "is no report of pytest-queryeval"
    if type(report["schema"]) is not int or report["schema"] != SCHEMA:
        remedy = "run the suites again with this version of pytest-queryeval"
        return f"has schema {one_line(str(report['schema']))}, and only schema {SCHEMA} can be read: {remedy}"
    found = next(_wrong(report), None) or _beyond(report)
    return f"is no report: {found}" if found else ""


def _beyond(value: Any) -> str:
    """What no format could write of a value that is nested too deep, or has a whole number that is no float."""
    level = [value]
    for _ in range(MOST_LEVELS):
        every = (own for item in level for own in (item.values() if type(item) is dict else item))
        level = [own for own in every if type(own) in (dict, list) or (type(own) is int and abs(own) >= TOO_LARGE)]
        if int in map(type, level):
            return "a whole number is too large"
        if not level:
            return ""
    return "nested too deep"


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
        if gate.get("no_regression") and gate["value"] is not None:
            yield from _unlike(gate, JUDGED, f"gates[{number}]")
    for number, case in enumerate(report["cases"]):
        if case.get("fingerprint") is not None:
            yield from _unlike(case["fingerprint"], FINGERPRINT, f"cases[{number}].fingerprint")


def _unlike(item: Any, checks: Checks, place: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield f"{place}: expected an object"
        return
    for key, (is_right, wish) in checks.items():
        name = key.removesuffix("?")
        if name not in item:
            yield from [f"{place}: '{name}' is missing".removeprefix(": ")] if name == key else []
        elif not is_right(item[name]):
            yield f"{place}.{name}: expected {wish}".removeprefix(".")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _is_time(value: Any) -> bool:
    try:
        moment = datetime.fromisoformat(value)
        moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):  # the last one for a year before the first
        return False
    return True


def _optional(check: Check) -> Check:
    is_right, wish = check
    return lambda value: value is None or is_right(value), f"null or {wish}"


def _list_of(check: Check) -> Check:
    is_right, wish = check
    return lambda value: isinstance(value, list) and all(map(is_right, value)), f"a list, each {wish}"


def _object_of(check: Check, *names: str) -> Check:
    """An object of such values, which has these names at least."""
    is_right, wish = check
    has_names = {*names}.issubset
    return (
        lambda value: isinstance(value, dict) and has_names(value) and all(map(is_right, value.values())),
        f"an object{' with ' * bool(names)}{', '.join(names)}, each {wish}",
    )


def _like(checks: Checks) -> Check:
    wish = ", ".join(f"{name.removesuffix('?')} {wish}" for name, (_, wish) in checks.items())
    return lambda value: next(_unlike(value, checks, ""), None) is None, f"an object with {wish or 'anything'}"


def _is_where(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    named = {name: text for name, text in value.items() if name != "not"}
    return TEXTS_BY_NAME[0](named) and named.keys() <= set(GROUPS) and ("not" not in value or _is_where(value["not"]))


def _are_trials(value: Any) -> bool:
    known = _like({"cases": COUNT, "pass_at": NUMBERS, "pass_hat": NUMBERS})
    return known[0](value) and len(value["pass_at"]) == len(value["pass_hat"])


ANYTHING: Check = (lambda _: True, "anything")
TEXT: Check = (_is_text, "a text")
NUMBER: Check = (_is_number, "a number")
COUNT: Check = (_is_count, "a whole number from 0")
FLAG: Check = (lambda value: isinstance(value, bool), "true or false")
LIST = _list_of(ANYTHING)
OBJECT = _object_of(ANYTHING)
OBJECTS = _list_of(OBJECT)
TEXTS = _list_of(TEXT)
TEXTS_BY_NAME = _object_of(TEXT)
NUMBERS = _list_of(NUMBER)
INTERVAL = _optional((lambda value: NUMBERS[0](value) and len(value) == 2, "two numbers"))
TIMED = _optional(_like({"seconds": NUMBER}))
TRIAL = _like({"passed": _optional(FLAG), "prediction": TIMED})
COUNTED: Check = (lambda value: LIST[0](value) and len(value) == 3 and all(map(_is_count, value)), "three counts")
SPIDER = _like({"hardness": TEXT, "exact": FLAG, "components": _like(dict.fromkeys(COMPONENTS, COUNTED))})

DEFAULTS: dict[str, Any] = {
    "environment": {},
    "predictor": {"sources": []},
    "requested_paths": {"paths": ["."], "ignored": []},
    "collected": {},
    "unreadable_files": [],
    "selected": False,
    "stopped": False,
    "interrupted": False,
}
TOTALS = _object_of(COUNT, "cases", *TOTAL_OF.values())
SPREAD: Checks = {**dict.fromkeys(("mean", "min", "median", "max"), NUMBER), "n": COUNT, "std": _optional(NUMBER)}
STATISTICS: Checks = {
    **SPREAD,
    "ci95": INTERVAL,
    "missed": COUNT,
    "mean_with_errors?": _optional(NUMBER),
    "n_with_errors?": _optional(COUNT),
}
BETTER: Check = (lambda value: value in ("higher", "lower"), "higher or lower")
MEASURES = _object_of(_like({**SPREAD, "p95": NUMBER}))
MEMBER = _like({"totals": TOTALS, "metrics": _object_of(_like(STATISTICS)), "measures?": MEASURES})
SCORES = _like(dict.fromkeys(("accuracy", "recall", "f1"), NUMBER))
LEVEL: Checks = {
    "count": COUNT,
    "execution_accuracy": _optional(NUMBER),
    "exact_match": NUMBER,
    **dict.fromkeys(COMPONENTS, SCORES),
}
IS_LEVEL: Check = (_like(LEVEL)[0], "a count and scores as numbers")
HEAD: Checks = {
    "created": (_is_time, "a time in the form of ISO 8601"),
    "environment": _like({"parts?": OBJECTS}),
    "predictor": _like({"sources": TEXTS}),
    "totals": TOTALS,
    "metrics": _object_of(_like({**STATISTICS, "better?": BETTER})),
    "groups": _object_of(_object_of(MEMBER), "difficulty", "kind", "tag"),
    "measures?": MEASURES,
    "dimensions?": _object_of(_object_of(_like({**SPREAD, "ci95": INTERVAL}))),
    "trials?": (_are_trials, "an object with cases, pass_at and pass_hat, lists of as many numbers"),
    "spider_table?": (
        lambda value: _object_of(IS_LEVEL)[0](value) and value.keys() == {*ALL_LEVELS},
        f"an object with {', '.join(ALL_LEVELS)}, each {IS_LEVEL[1]}",
    ),
    "requested_paths": _like({"paths": TEXTS, "ignored": TEXTS}),
    "collected": _object_of(COUNT),
    "unreadable_files": TEXTS,
    "selected": FLAG,
    "stopped": FLAG,
    "ties?": COUNT,
    "interrupted": FLAG,
    "gates": LIST,
    "cases": LIST,
}
CHANGE: Checks = {
    **dict.fromkeys(("before", "after", "change", "p", "p_holm"), NUMBER),
    "n": COUNT,
    "ci95": INTERVAL,
    "test": TEXT,
    "detectable": _optional(NUMBER),
}
BASELINE: Checks = {
    **dict.fromkeys(("path", "created"), TEXT),
    **dict.fromkeys(("regressions", "fixes", "errors"), TEXTS),
    "cases": _object_of(COUNT, "common"),
    "metrics": _object_of(_like(CHANGE)),
    "changes": _list_of(_like({"what": TEXT, "cases": TEXTS})),
}
LIMITS: Checks = dict.fromkeys(("min", "max"), _optional(NUMBER))
FINGERPRINT: Checks = {
    "thresholds": _object_of(_like(LIMITS)),
    **dict.fromkeys(("on_miss", "trials", "trials_rule", "golds"), ANYTHING),
    **dict.fromkeys(("compare", "options", "limits?", "schemas?"), OBJECT),
    "answers?": TEXT,
    "metrics?": TEXTS,
    **dict.fromkeys(("source", "context?"), _optional(TEXT)),
}
GATE: Checks = {
    "folder": TEXT,
    "metric": TEXT,
    "where": (_is_where, f"an object of texts with {', '.join(GROUPS)}, or not, the same"),
    **dict.fromkeys(("min", "max", "value"), _optional(NUMBER)),
    **dict.fromkeys(("n", "errors", "ran"), COUNT),
    "cases": _optional(COUNT),
    "ok": _optional(FLAG),
    "reason": TEXT,
    "no_regression?": _like({"alpha": NUMBER, "max_drop": NUMBER}),
    "max_regressions?": COUNT,
}
JUDGED: Checks = {**dict.fromkeys(("before", "after", "p"), NUMBER), "detectable": _optional(NUMBER)}
CASE: Checks = {
    **dict.fromkeys(("id", "nodeid", "path", "kind", "question", "message"), TEXT),
    **dict.fromkeys(("difficulty", "source"), _optional(TEXT)),
    **dict.fromkeys(("gold", "predicted", "prediction", "scoring?"), TIMED),
    "line": COUNT,
    "tags": TEXTS,
    "outcome": (lambda value: _is_text(value) and value in TOTAL_OF, f"one of {', '.join(TOTAL_OF)}"),
    "scores": _object_of(_optional(NUMBER)),
    "violations": _list_of(_like({"metric": TEXT})),
    "depends_on_tie?": FLAG,
    "difference": _optional(OBJECT),
    "trials": _list_of(TRIAL),
    "details": (
        _like({"notes?": TEXTS, "spider?": SPIDER})[0],
        "an object with notes and matches as metrics tell them",
    ),
}
