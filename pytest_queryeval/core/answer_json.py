"""Cells, texts, answers and challenges as JSON that people can read, and back again without a loss; digests of answers.

A value that JSON cannot express is an object with one key that starts with `$`: `{"$decimal": "1.10"}`. Digests are the
same in each run and on each machine as long as the answers are.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, get_args

from pytest_queryeval.core.case_report import ChallengeReport, RefutationReport
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue, to_jsonable
from pytest_queryeval.core.model import AddedAnswer, Answer, ChallengeVerdict
from pytest_queryeval.core.table import (
    IRI,
    BlankNode,
    Cell,
    DatasetSelection,
    DimensionSelection,
    FrozenMapping,
    Literal,
    Row,
    Selection,
    Table,
    Term,
    Tie,
    TripleTerm,
    freeze_cell,
)

JsonObject: TypeAlias = dict[str, JsonValue]
Entry: TypeAlias = Mapping[str, Any]  # an object from a file, whose values may be anything
_DECIMAL_DIGITS = 4_000  # Python writes and reads no integer of more than 4,300
_LARGE = 10**_DECIMAL_DIGITS
_SPLIT_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_INEXACT = re.compile("nan|inf")
_VERDICTS = frozenset(get_args(ChallengeVerdict))
# Of digests.
HEX_DIGITS = 16
_PLAIN = frozenset((type(None), bool, int, str, bytes))  # which `ascii` writes alike everywhere
_LARGEST_INTEGER = 1e15  # of floats that are written as integers


def encode(value: Any) -> JsonValue:
    """Return a cell or a JSON document as plain JSON values, from which `decode` makes an equal value.

    Values that JSON cannot express become objects with one key that begins with `$`, such as `{"$decimal": "1.10"}`.
    Objects keep the order of their keys. Raise TypeError for a value of any other type, and RecursionError for too many
    levels.
    """
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) < _LARGE else {"$integer": hex(value)}
        case float():
            number = float(value)
            return {"$float": repr(number)} if _INEXACT.search(repr(number)) else number
        case str():
            text = str.__str__(value)
            # Where halves of a surrogate pair meet, JSON would make one character of them.
            return {"$parts": [*_SPLIT_PAIR.split(text)]} if not text.isascii() and _SPLIT_PAIR.search(text) else text
        case list() | tuple():
            return [encode(item) for item in value]
        case dict() | FrozenMapping():
            return _encode_object(value)
    for tag, form in _FORMS.items():
        if isinstance(value, form.type):
            return {tag: form.encode(value)}
    raise TypeError(f"a value of the type {type(value).__name__}")


def _encode_object(items: Mapping[Any, Any]) -> JsonValue:
    if not all(isinstance(key, str) for key in items):
        return {"$mapping": [[encode(key), encode(item)] for key, item in items.items()]}
    if any(key.startswith("$") or encode(key) != key for key in items):
        return {"$object": [[encode(key), encode(item)] for key, item in items.items()]}
    return {key: encode(item) for key, item in items.items()}


def decode(value: Any) -> Any:
    """Return the cell or the JSON document that `encode` encoded as `value`.

    Lists and objects come back as lists and dicts. Raise ValueError for an unknown tag or for a tag with an invalid
    value.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith("$"):
        return {key: decode(item) for key, item in value.items()}
    if len(value) != 1 or tag not in _DECODERS:
        raise ValueError(f"an object with the key {tag!a}")
    try:
        return _DECODERS[tag](value[tag])
    except (TypeError, AttributeError, InvalidOperation, UnicodeEncodeError, OverflowError) as error:
        raise ValueError(f"{tag!a} contains an invalid value") from error


def decode_cell(value: Any) -> Cell:
    """Return the cell that `encode` encoded, with lists as tuples and mappings as `FrozenMapping`s.

    Raise ValueError for a value that `encode` does not return.
    """
    cell: Cell = freeze_cell(decode(value))
    return cell


def decode_text(value: Any) -> str:
    """Return the text that `encode` encoded; raise ValueError for a value that is not text."""
    text = decode(value)
    if not isinstance(text, str):
        raise ValueError("a value that is not text")
    return text


def encode_lines(text: str) -> JsonValue:
    """Return a text of several lines as a list of its encoded lines, and any other text as `encode` returns it."""
    lines = text.split("\n")
    return [encode(line) for line in lines] if len(lines) > 1 else encode(text)


def decode_lines(value: Any) -> str:
    """Return the text that `encode_lines` encoded: a list of lines joined, or a single text.

    Raise ValueError for a value that `encode_lines` does not return.
    """
    return "\n".join(map(decode_text, value)) if isinstance(value, list) else decode_text(value)


class _Form(NamedTuple):
    """The tag's type of values, with the functions that write such a value as JSON and read it again."""

    type: type
    encode: Callable[[Any], JsonValue]
    decode: Callable[[Any], Cell]


def _decode_literal(parts: Sequence[Any]) -> Literal:
    text, datatype, language = map(decode_text, parts)
    return Literal(text, sys.intern(datatype), language)  # most cells of a column share their datatype


def _decode_float(text: str) -> float:
    if not _INEXACT.search(text):
        raise ValueError("a number that JSON can express")
    return float(text)


_FORMS: Mapping[str, _Form] = {
    "$decimal": _Form(Decimal, str, lambda text: Decimal(decode_text(text))),
    "$bytes": _Form(bytes, lambda data: data.decode("latin-1"), lambda text: decode_text(text).encode("latin-1")),
    "$datetime": _Form(datetime, lambda value: value.isoformat(), datetime.fromisoformat),
    "$date": _Form(date, lambda value: value.isoformat(), date.fromisoformat),
    "$time": _Form(time, lambda value: value.isoformat(), time.fromisoformat),
    "$iri": _Form(IRI, lambda iri: encode(iri.iri), lambda text: IRI(decode_text(text))),
    "$blank": _Form(BlankNode, lambda node: encode(node.label), lambda text: BlankNode(decode_text(text))),
    "$literal": _Form(
        Literal,
        lambda literal: [encode(part) for part in (literal.lexical, literal.datatype, literal.language)],
        _decode_literal,
    ),
    "$triple": _Form(
        TripleTerm,
        lambda term: [encode(part) for part in term.parts],
        lambda parts: TripleTerm(*map(decode_cell, parts)),
    ),
}
_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    **{tag: form.decode for tag, form in _FORMS.items()},
    "$integer": lambda text: int(text, 16),
    "$float": _decode_float,
    "$parts": lambda parts: "".join(map(decode_text, parts)),
    "$object": lambda items: {decode_text(key): decode(item) for key, item in items},
    "$mapping": lambda items: {decode_cell(key): decode_cell(item) for key, item in items},
}


def encode_answer(answer: Answer | None) -> JsonObject:
    """Return an answer as an object with one key: `table`, `json`, `selection` or the type name of an added answer.

    Without an answer, the object is empty. Raise TypeError for a cell or a JSON value that cannot be recorded, and for
    an answer that is nested too deeply.
    """
    try:
        match answer:
            case None:
                return {}
            case Table():
                return {"table": _encode_table(answer)}
            case JsonAnswer(value=value):
                encoded = encode(value)
                # A text of several lines would be written as a list of them, as JSON may have one itself.
                is_lines = isinstance(encoded, str) and "\n" in encoded
                return {"json": {"$parts": [encoded]} if is_lines else encoded}
            case Selection():
                return {"selection": _encode_selection(answer)}
            case AddedAnswer(type_name=name):
                return {name: answer.encode()}
    except RecursionError as error:
        raise TypeError("it is nested too deeply") from error


def decode_answer(entry: Entry) -> Answer | None:
    """Return the answer that `encode_answer` wrote into an object, which may have other keys; None if it has no answer.

    Raise ValueError, TypeError or KeyError if the answer is invalid.
    """
    if "table" in entry:
        return _decode_table(entry["table"])
    if "json" in entry:
        return JsonAnswer(decode(entry["json"]))
    if "selection" in entry:
        return _decode_selection(entry["selection"])
    if "changes" in entry:
        changes: AddedAnswer = feature("writes.state_change").decode_state_change(entry["changes"])
        return changes
    return None


def _encode_table(table: Table) -> JsonObject:
    content: JsonObject = {"columns": [encode(name) for name in table.columns]}
    if table.is_graph:
        content["is_graph"] = True
    if not table.columns and not table.rows:
        content["has_header"] = table.has_header
    content["rows"] = _encode_rows(table.rows)
    if table.ties is not None:
        content["ties"] = [[tie.size, _encode_rows(tie.rows)] for tie in table.ties]
    return content


def _encode_rows(rows: Sequence[Row]) -> list[JsonValue]:
    return [[encode(cell) for cell in row] for row in rows]


def _decode_table(entry: Entry) -> Table:
    columns = tuple(map(decode_text, entry["columns"]))
    ties = entry.get("ties")
    return Table(
        columns=columns,
        rows=_decode_rows(entry["rows"], len(columns)),
        ties=None if ties is None else tuple(_decode_tie(tie, len(columns)) for tie in ties),
        is_graph=entry.get("is_graph", False) is True,
        has_header=bool(entry.get("has_header", columns or entry["rows"])),
    )


def _decode_tie(entry: Sequence[Any], width: int) -> Tie:
    size, rows = entry
    if type(size) is not int or not 0 <= size <= len(rows):
        raise ValueError("a tie of another size than its rows")
    return Tie(size=size, rows=tuple(_decode_rows(rows, width)))


def _decode_rows(rows: Sequence[Any], width: int) -> list[Row]:
    if not all(isinstance(row, list) and len(row) == width for row in rows):
        raise ValueError("a row that is not as long as the columns")
    return [tuple(map(decode_cell, row)) for row in rows]


def _encode_selection(selection: Selection) -> JsonObject:
    datasets: list[JsonValue] = []
    for dataset in selection.datasets:
        dimensions: list[JsonValue] = [
            [encode(part.name), [[encode(term.id), encode(term.name), encode(term.label)] for term in part.terms]]
            for part in dataset.dimensions
        ]
        datasets.append([encode(dataset.id), dimensions])
    return {"by_id": selection.by_id, "datasets": datasets}


def _decode_selection(entry: Entry) -> Selection:
    datasets = tuple(
        DatasetSelection(
            decode_text(name),
            tuple(DimensionSelection(decode_text(of), tuple(map(_decode_term, terms))) for of, terms in dimensions),
        )
        for name, dimensions in entry["datasets"]
    )
    return Selection(datasets, by_id=entry["by_id"] is True)


def _decode_term(entry: Sequence[Any]) -> Term:
    term_id, name, label = (None if part is None else decode_text(part) for part in entry)
    return Term(term_id, name, label)


def read_challenge(entry: Entry) -> ChallengeReport:
    """Return the challenge of an object from a recording; raise ValueError, TypeError or KeyError for any other object.

    An object that an earlier version wrote is refused, with a message that asks for a new recording.
    """
    if "counterexample" not in entry:
        raise ValueError("an earlier version wrote it in another form: remove it, and record again")
    verdict, counterexample = entry["verdict"], entry["counterexample"]
    if verdict not in _VERDICTS or (verdict == "refuted") != (counterexample is not None):
        raise ValueError("an unknown verdict, or one without its counterexample")
    challenge: ChallengeReport = {
        "verdict": verdict,
        "tried": int(entry["tried"]),
        "counterexample": _read_refutation(counterexample),
        "unlike": _read_refutation(entry["unlike"]),
    }
    if "rules" in entry:
        challenge["rules"] = [*map(str, entry["rules"])]
    if "reason" in entry:
        challenge["reason"] = str(entry["reason"])
    return challenge


def _read_refutation(entry: Entry | None) -> RefutationReport | None:
    if entry is None:
        return None
    gold_rows, predicted_rows = ([[*row] for row in entry[name]] for name in ("gold_rows", "predicted_rows"))
    script = decode_lines(entry["script"])
    return {"script": script, "rows": int(entry["rows"]), "gold_rows": gold_rows, "predicted_rows": predicted_rows}


def answer_digest(answers: Iterable[Answer], *, in_order: bool = False) -> str:
    """Return a digest of answers, in their order, of 16 hexadecimal digits.

    The number of rows always counts, their order only if `in_order` is true. These differences do not count:

    - the type of numbers and their digits after the 12th, because sums of floats depend on the order of addition;
      values of the type int count with all of their digits;
    - the time zone of points in time, which count in UTC;
    - the names of columns and the labels of blank nodes.
    """
    digest = hashlib.sha256()
    for answer in answers:
        if isinstance(answer, Table):
            lines = _table_lines(answer, in_order=in_order)
        else:
            try:
                content: object = encode_answer(answer)
            except TypeError:  # a value of a type of the user's own
                content = to_jsonable(answer)
            lines = [json.dumps(content, sort_keys=True)]
        for line in lines:
            digest.update(line.encode(errors="backslashreplace") + b"\n")
    return digest.hexdigest()[:HEX_DIGITS]


def _table_lines(table: Table, *, in_order: bool) -> Sequence[str]:
    """Return a line for the number of columns of a table, then one line for each row; no line contains a line break.

    The lines of rows are sorted unless the order of rows counts. Cells that count as the same value have the same text.
    """
    columns = [
        column if _PLAIN.issuperset(map(type, column)) else list(map(_comparable, column))
        for column in zip(*table.rows, strict=True)
    ]
    rows = zip(*columns, strict=True) if columns else repeat((), len(table.rows))
    lines = [_line(row) for row in rows]
    return [f"{len(table.columns)} columns", *(lines if in_order else sorted(lines))]


def _line(row: Sequence[Any]) -> str:
    try:
        return ascii(row)
    except ValueError:  # Python writes no integer of thousands of digits
        return ascii(_in_hexadecimal(row))


def _in_hexadecimal(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_in_hexadecimal, value))
    return hex(value) if type(value) is int else value


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
        case tuple() | FrozenMapping():
            return _comparable_parts(cell)
        case _:
            return json.dumps(to_jsonable(cell), sort_keys=True)


def _comparable_parts(cell: tuple[Cell, ...] | FrozenMapping) -> list[Any]:
    if isinstance(cell, tuple):
        return list(map(_comparable, cell))
    return sorted(((_comparable(key), _comparable(item)) for key, item in cell.items()), key=ascii)


def _comparable_number(text: str) -> float | str:
    """Return the number that the lexical form of a literal spells, rounded; return any other text unchanged."""
    if not text[-1:].isdigit():
        return text
    try:
        return _rounded(float(text))
    except ValueError:  # a date
        return text


def _rounded(number: float) -> float | str:
    """Return a number rounded to 12 significant digits, as an int if it is a whole number below 1e15.

    NaN and infinities become text.
    """
    if not math.isfinite(number):
        return str(number)
    rounded = float(f"{number:.12g}")
    return int(rounded) if abs(rounded) < _LARGEST_INTEGER and rounded.is_integer() else rounded
