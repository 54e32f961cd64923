"""Digests of answers, which are the same in each run and on each machine as long as the answers are."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import repeat
from typing import Any

from pytest_queryeval.core.answer_json import encode_answer
from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.model import Answer
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Row, Table, TripleTerm

HEX_DIGITS = 16
_PLAIN = frozenset((type(None), bool, int, str, bytes))  # which `ascii` writes alike everywhere
_LARGEST_INTEGER = 1e15  # of floats that are written as integers


def answer_digest(answers: Iterable[Answer], *, in_order: bool = False) -> str:
    """Return a digest of answers, in their order, of 16 hexadecimal digits.

    The order of rows counts only if they are `in_order`, their number always. Numbers count with 12 significant digits,
    whatever their type, since sums of floats depend on the order in which an engine adds them, but integers of the type
    int with all of their digits. Points in time count in UTC, and the names of columns and the labels of blank nodes do
    not count.
    """
    digest = hashlib.sha256()
    for answer in answers:
        for line in _table_lines(answer, in_order=in_order) if isinstance(answer, Table) else _value_lines(answer):
            digest.update(line.encode(errors="backslashreplace") + b"\n")
    return digest.hexdigest()[:HEX_DIGITS]


def _value_lines(answer: Answer) -> Sequence[str]:
    try:
        return [json.dumps(encode_answer(answer), sort_keys=True)]
    except TypeError:  # a value of a type of the user's own
        return [json.dumps(to_jsonable(answer), sort_keys=True)]


def _table_lines(table: Table, *, in_order: bool) -> Sequence[str]:
    """Return a line for the width of a table, and one for each row; no line contains a line break."""
    lines = [ascii(row) for row in _comparable_rows(table.rows)]
    return [f"{len(table.columns)} columns", *(lines if in_order else sorted(lines))]


def _comparable_rows(rows: Sequence[Row]) -> Iterable[tuple[Any, ...]]:
    """Return rows of values that `ascii` writes alike if they are the same."""
    columns = [
        column if _PLAIN.issuperset(map(type, column)) else list(map(_comparable, column))
        for column in zip(*rows, strict=True)
    ]
    return zip(*columns, strict=True) if columns else repeat((), len(rows))


def _comparable(cell: Any) -> Any:
    match cell:
        case None | bool() | int() | str() | bytes() if type(cell) in _PLAIN:
            return cell
        case float() | Decimal():
            return _rounded(float(cell))
        case datetime() if cell.tzinfo is not None:
            return cell.astimezone(UTC).isoformat()
        case date() | time():
            return cell.isoformat()
        case IRI(iri=text):
            return "iri", text
        case BlankNode():
            return ("blank",)
        case Literal(lexical=text, datatype=datatype, language=language):
            return _comparable_number(text) if datatype and not language else text, datatype, language
        case TripleTerm():
            return tuple(map(_comparable, cell.parts))
        case _:
            return json.dumps(to_jsonable(cell), sort_keys=True)


def _comparable_number(text: str) -> float | str:
    """Return the number that the lexical form of a literal spells, else the form itself."""
    if not text[-1:].isdigit():
        return text
    try:
        return _rounded(float(text))
    except ValueError:  # a date
        return text


def _rounded(number: float) -> float | str:
    """Return a number with 12 significant digits, as an integer if it is one; NaN and infinities as text."""
    if not math.isfinite(number):
        return str(number)
    rounded = float(f"{number:.12g}")
    return int(rounded) if abs(rounded) < _LARGEST_INTEGER and rounded.is_integer() else rounded
