"""Right answers as test sets write them: several in one text, optional columns, and stored answers of many forms."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from itertools import combinations

from pytest_queryeval.core.errors import CaseError, SuiteError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at, parse_json
from pytest_queryeval.features.transfer.importers.fields import is_no_query
from pytest_queryeval.features.transfer.importers.reading import RecordError
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line

MAX_OPTIONAL = 6
MAX_GOLDS = 200
MAX_SHOWN = 60
NO_ANSWERS = ("null", "none", "n/a", "nan")
ROW_KEYS = ("rows", "results", "data")
_NO_FILE = file_at("gold")
# What no separator and no brace is looked for in: texts, names in quotes, and comments.
_QUOTED = r"'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|`[^`]*+`|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
_OPTIONAL = re.compile(rf"(?P<quoted>{_QUOTED})|\{{(?P<columns>[^{{}}:'\"]*)\}}|(?P<from>\bFROM\b)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")


def gold_value(value: JsonValue, kind: str) -> JsonValue:
    """Return a right answer in the form of suites; raise `RecordError` if the loader of suites would refuse it.

    For kinds with queries, the answer must be a text that may be a query. For other kinds, null becomes the text
    `null`.
    """
    if KINDS[kind].has_queries:
        if value is None or value == [] or (isinstance(value, str) and not value.strip()):
            raise RecordError("its right answer is empty")
        if not isinstance(value, str) or is_no_query(value, kind):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            hint = "if it is a stored answer, --map gold_table=FIELD reads it"
            if shown.strip().lower() in NO_ANSWERS:
                hint = "if its question has no answer, write FALSE in a field `answerable`"
            raise RecordError(f"its right answer is `{one_line(shown, MAX_SHOWN)}`, not a query: {hint}")
        return value
    gold = "null" if value is None else value  # in a suite, null is not a value; its text is read as JSON
    try:
        KINDS[kind].read_gold(parse_json(json.dumps(gold), _NO_FILE, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0].problem if isinstance(error, SuiteError) else error.problem
        raise RecordError(f"its right answer cannot be read: {problem}") from error
    return gold


def gold_keys(values: Sequence[JsonValue], kind: str, split: str | None, *, is_several: bool) -> dict[str, JsonValue]:
    """Return `gold` with one right answer, or `gold_any` with several; raise `RecordError` for an invalid answer.

    With `is_several`, the result is always `gold_any`. A text with the mark `split` outside of quotes contains several
    answers. So does a SELECT list with optional columns, as in `SELECT {name, id}, count(*) FROM t`: the answer may
    have any of them.
    """
    golds: list[JsonValue] = []
    for value in values or [None]:
        for part in split_text(value, split) if split and isinstance(value, str) else [value]:
            golds += with_optional(part) if kind == "sql" and isinstance(part, str) else [part]
    golds = [gold_value(gold, kind) for gold in golds]
    if len(golds) > MAX_GOLDS:
        raise RecordError(f"it has {len(golds):,} right answers: keep {MAX_GOLDS}")
    return {"gold_any": golds} if is_several or len(golds) > 1 else {"gold": golds[0]}


def split_text(text: str, mark: str) -> list[str]:
    """Return the parts of a text between marks; a mark within quotes or comments does not count.

    >>> split_text("SELECT ';' ; SELECT 2;", ";")
    ["SELECT ';'", 'SELECT 2']
    """
    parts, start = [], 0
    for match in re.finditer(rf"{_QUOTED}|(?P<mark>{re.escape(mark)})", text):
        if match["mark"]:
            parts.append(text[start : match.start()])
            start = match.end()
    return [part.strip() for part in (*parts, text[start:]) if part.strip()] or [text]


def with_optional(query: str) -> list[str]:
    """Return a query for each selection of the optional columns in a SELECT list, else the query alone.

    `GROUP BY {}` gets the same columns. Raise `RecordError` for more than MAX_OPTIONAL columns.

    >>> with_optional("SELECT {a, b}, count(*) FROM t GROUP BY {}")[:2]
    ['SELECT a, count(*) FROM t GROUP BY a', 'SELECT b, count(*) FROM t GROUP BY b']
    """
    for match in _OPTIONAL.finditer(query):
        if match["from"]:
            break
        if match["columns"] and match["columns"].strip():
            columns = [column.strip() for column in match["columns"].split(",")]
            if len(columns) > MAX_OPTIONAL:
                raise RecordError(f"it has {len(columns)} optional columns: at most {MAX_OPTIONAL} are read")
            before, after = query[: match.start()], query[match.end() :]
            subsets = (subset for size in range(1, len(columns) + 1) for subset in combinations(columns, size))
            texts = (", ".join(subset) for subset in subsets)
            return [before + text + re.sub(r"\{\s*\}", lambda _, text=text: text, after) for text in texts]  # type: ignore[misc]
    return [query]


def gold_table(value: JsonValue) -> dict[str, JsonValue]:
    """Return a stored answer as `{columns, rows}`; it may consist of rows, records, values, or one value.

    A text is read as JSON or as a Python literal if possible. Columns without names are `column_1` and so on. Raise
    `RecordError` if rows have different lengths, or if a cell is a list or an object.

    >>> gold_table([{"a": 1}, {"a": 2}])
    {'columns': ['a'], 'rows': [[1], [2]]}
    >>> gold_table("54"), gold_table("['Jennifer', 'Lisa']")["rows"]
    ({'columns': ['column_1'], 'rows': [[54]]}, [['Jennifer'], ['Lisa']])
    """
    if isinstance(value, str):
        value = _read_text(value)
    columns: Sequence[JsonValue] = ()
    rows: list[JsonValue] = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        for key in ROW_KEYS:
            found, names = value.get(key), value.get("columns")
            if isinstance(found, list):
                rows, columns = found, names if isinstance(names, list) else ()
                break
    records = [row for row in rows if isinstance(row, dict)]
    if records and not columns:
        columns = list(dict.fromkeys(key for row in records for key in row))
    lists = [_cells(row, columns) for row in rows]
    width = len(columns) if columns else max(map(len, lists), default=0)
    if any(len(row) != width for row in lists):
        raise RecordError(f"its stored answer has rows of other lengths than {width}: write one value for each column")
    if any(isinstance(cell, dict | list) for row in lists for cell in row):
        raise RecordError("its stored answer has lists or objects in cells: write texts, numbers, true, false or null")
    names = [str(column) for column in columns] or [f"column_{number}" for number in range(1, width + 1)]
    return {"columns": list[JsonValue](names), "rows": [*lists]}


def _cells(row: JsonValue, columns: Sequence[JsonValue]) -> list[JsonValue]:
    if isinstance(row, dict):
        return [row.get(str(column)) for column in columns]
    return row if isinstance(row, list) else [row]


def _read_text(text: str) -> JsonValue:
    """Return the value of a text that is JSON or a Python literal; else the text itself."""
    stripped = text.strip()
    if stripped[:1] not in ("[", "{") or len(stripped) > 200_000:
        number: JsonValue = json.loads(stripped) if _NUMBER.fullmatch(stripped) else text
        return number
    for read in (json.loads, ast.literal_eval):
        try:
            value: JsonValue = json.loads(json.dumps(read(stripped), allow_nan=False))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return value
    return text
