"""The steps of a system as JSON: read from replies and files, cut to the sizes of reports and recordings, and counted.

A table has one form: `{"columns": […], "rows": […], "row_count": 12}`, where `rows` are the first ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, cast

from pytest_queryeval.core.case_report import StepReport
from pytest_queryeval.core.errors import PredictorError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue, report_cell, to_jsonable
from pytest_queryeval.core.model import Step
from pytest_queryeval.core.table import Table
from pytest_queryeval.text.formatting import AHEAD, CELL_CHARACTERS, even_limit, one_line, truncate

MAX_STEPS = 1_000  # of a prediction
STEPS_CHARACTERS = 64_000  # of the contents of all steps of a prediction
CONTENT_CHARACTERS = 20_000  # of one of them
ROWS = 20  # of a table
CONTENTS = ("input", "output", "error", "metadata")
_FIELDS = tuple(field.name for field in fields(Step))
_EMPTY: Mapping[str, object] = {"error": "", "metadata": {}}
_SCALARS = (str, int, float, bool, type(None))
# Which steps each measure counts.
STEP_MEASURES: Mapping[str, Callable[[StepReport], bool]] = {
    "steps": lambda step: True,
    "queries": lambda step: step["kind"] == "query",
    "failed_queries": lambda step: step["kind"] == "query" and "error" in step,
}


def read_steps(value: object, *, by: str) -> tuple[Step, ...] | None:
    """Return the steps that a JSON value contains; None for null.

    `by` names, in messages, who gave the value. Raise `PredictorError`, with the place, for the first invalid step.
    """
    if value is None:
        return None
    if not isinstance(value, list):
        remedy = 'write a list of objects such as {"kind": "query", "input": "SELECT 1"}'
        raise PredictorError(f"{by} has `steps` that are {one_line(json.dumps(value), 40)}: {remedy}")
    return tuple(_read_step(step, f"{by}: steps[{place}]") for place, step in enumerate(value))


def _read_step(value: object, place: str) -> Step:
    if not isinstance(value, dict):
        raise PredictorError(f"{place} is {one_line(json.dumps(value), 40)}, not an object")
    if (unknown := next((name for name in value if name not in _FIELDS), None)) is not None:
        hint = did_you_mean(unknown, _FIELDS)
        raise PredictorError(f"{place} has the unknown member '{one_line(unknown, 40)}'{hint}")
    if "kind" not in value:
        raise PredictorError(f"{place} has no `kind`: query, tool or message")
    try:
        # null is as good as no member
        return Step(**{name: item for name, item in value.items() if item is not None or name == "kind"})
    except ValueError as error:
        raise PredictorError(f"{place}: {error}") from error


def bounded_metadata(metadata: Mapping[str, Any], *, by: str) -> dict[str, Any]:
    """Return the metadata of a prediction as plain JSON with all of its names; long values are cut to a common limit.

    Numbers of any type become int or float. `by` names the system in messages. Raise `PredictorError` for a value that
    cannot be read.
    """
    plain_metadata = {}
    for name, value in metadata.items():
        place = f"{by}: metadata['{one_line(str(name), 40)}']"
        plain_value = _read_content(value, place, lambda value: to_jsonable(plain_number(value), text=str))
        plain_metadata[truncate(str(name), CELL_CHARACTERS)] = plain_value
    return _bounded([plain_metadata], STEPS_CHARACTERS)[0]


def plain_number(value: Any) -> Any:
    """Return a number of any numeric type, such as a Decimal, as an int or a float.

    Return any other value unchanged.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def bounded_steps(steps: Sequence[Step], *, by: str, characters: int = STEPS_CHARACTERS) -> tuple[Step, ...]:
    """Return the steps with contents in plain JSON that have at most `characters` characters together.

    The longest contents are cut, without showing parts of secrets: texts and JSON to their beginning, tables to their
    first rows. `by` names the system in messages. Raise `PredictorError` for more than MAX_STEPS steps, for an object
    that is not a `Step`, and for a content that cannot be read.
    """
    if (other := next((step for step in steps if not isinstance(step, Step)), None)) is not None:
        raise PredictorError(
            f"{by} returned a Prediction whose `steps` contain {type(other).__name__}, not Step: "
            'write `Step(kind="query", input=QUERY)`, imported from pytest_queryeval'
        )
    if len(steps) > MAX_STEPS:
        remedy = "leave out those that nobody will read, such as messages"
        raise PredictorError(f"{by} took {len(steps):,} steps, and a prediction may have {MAX_STEPS:,}: {remedy}")
    contents = [
        {name: _read_content(getattr(step, name), f"{by}: steps[{place}].{name}", _plain) for name in CONTENTS}
        for place, step in enumerate(steps)
    ]
    return tuple(
        replace(step, name=one_line(step.name), **contents_of_step)
        for step, contents_of_step in zip(steps, _bounded(contents, characters), strict=True)
    )


def _bounded(contents: Sequence[Mapping[str, Any]], characters: int) -> list[dict[str, Any]]:
    """Return mappings of contents in which the longest contents are cut until all have `characters` at most.

    The count is that of all contents together; no content has more than CONTENT_CHARACTERS.
    """
    sizes = [_size(content) for named_contents in contents for content in named_contents.values()]
    limit = max(min(even_limit(sizes, characters), CONTENT_CHARACTERS), 1)
    return [
        {name: _cut(content, limit, name, truncate) for name, content in named_contents.items()}
        for named_contents in contents
    ]


def shorten_step(step: StepReport, limit: int, shorten: Callable[[str, int], str]) -> StepReport:
    """Return a step in which each content has at most `limit` characters; `shorten(text, limit)` cuts a text."""
    contents = {name: _cut(content, limit, name, shorten) for name, content in step.items() if name in CONTENTS}
    return cast("StepReport", {**step, **contents})


def step_json(step: Step) -> StepReport:
    """Return a step as a JSON object that `read_steps` can read, without empty fields."""
    values = {name: getattr(step, name) for name in _FIELDS}
    present = {name: value for name, value in values.items() if value is not None and value != _EMPTY.get(name)}
    return cast("StepReport", present)


def count_steps(steps: Iterable[StepReport]) -> dict[str, int]:
    """Return the number of steps, of queries and of failed queries, by the names in STEP_MEASURES."""
    counted_steps = list(steps)
    return {name: sum(map(is_counted, counted_steps)) for name, is_counted in STEP_MEASURES.items()}


def _read_content(content: Any, place: str, reader: Callable[[Any], Any]) -> Any:
    """Return `reader(content)`; raise `PredictorError` with the place if the reader raises any exception."""
    try:
        return reader(content)
    except Exception as error:
        raise PredictorError(f"{place} cannot be read: {type(error).__name__}: {error}") from error


def _plain(content: Any) -> Any:
    """Return an input or an output of a step as plain JSON.

    A table, an object with `columns` and `rows`, and a list of objects with the same keys all become the one form of
    tables, with the first rows.
    """
    match content:
        case str():
            return str.__str__(content)
        case Table(columns=columns, rows=rows):
            return _table(columns, rows, len(rows))
        case {"columns": list(columns), "rows": list(rows), **others} if others.keys() <= {"row_count"} and all(
            isinstance(row, list) and len(row) == len(columns) for row in rows
        ):
            stated_count = others.get("row_count")
            return _table(columns, rows, max(stated_count, len(rows)) if type(stated_count) is int else len(rows))
        case [dict(first), *_] if first and all(
            isinstance(row, dict)
            and row.keys() == first.keys()
            and all(isinstance(cell, _SCALARS) for cell in row.values())
            for row in content
        ):
            return _table([*first], [[row[name] for name in first] for row in content[:ROWS]], len(content))
        case _:
            return to_jsonable(content, text=str)


def _table(columns: Sequence[object], rows: Sequence[Sequence[object]], row_count: int) -> dict[str, JsonValue]:
    return {
        "columns": [report_cell(str(name)) for name in columns],
        "rows": [[report_cell(cell) for cell in row] for row in rows[:ROWS]],
        "row_count": row_count,
    }


def _size(content: Any) -> int:
    """Return the number of characters of a text, or of any other value as JSON; 0 for None and an empty dict."""
    if content is None or content == {}:
        return 0
    return len(content if isinstance(content, str) else _json(content))


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def _cut(content: Any, limit: int, name: str, cut_text: Callable[[str, int], str]) -> Any:
    """Return a content of a step cut to at most `limit` characters.

    Metadata lose their last entries, tables their last rows. `cut_text` cuts a text, or any other value as JSON text.
    Numbers are never cut.
    """
    if isinstance(content, int | float) or _size(content) <= limit:
        return content
    match content:
        case dict() if name == "metadata":
            entries: dict[str, Any] = {}
            for key, value in content.items():
                limit -= _size({key: value})
                if limit < 0:
                    break
                entries[key] = value
            return entries
        case {"columns": list(), "rows": list(rows), "row_count": _} if _size({**content, "rows": []}) <= limit:
            remaining = limit - _size({**content, "rows": []})
            shown_rows = []
            for row in rows:
                remaining -= _size(row) + len(", ")
                if remaining < 0:
                    break
                shown_rows.append(row)
            return {**content, "rows": shown_rows}
        case _:
            text = content if isinstance(content, str) else _json(content)
            return cut_text(text[: AHEAD * limit], limit)  # the rest costs time and is not shown
