"""Readers of files of predictions: JSON lines, JSON, tables, and plain lines."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from pytest_queryeval.core.errors import Location, PredictorError, did_you_mean, nearest
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import SECONDS_RULE, Abstention, Prediction, StoredPrediction, is_seconds
from pytest_queryeval.core.steps import read_steps
from pytest_queryeval.documents.document import MEBIBYTE, File, Node
from pytest_queryeval.documents.strict_json import JsonError, StrictJson, syntax_problem
from pytest_queryeval.documents.tables import FLAGS, TABLE_SUFFIXES, Table, open_table
from pytest_queryeval.documents.tables import Row as TableRow
from pytest_queryeval.documents.values import scalar
from pytest_queryeval.predictors.answer import (
    ABSTAINED,
    JSON,
    PREDICTED,
    REASON,
    STEPS,
    read_abstention,
)
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import MARK

# Names that systems give to the key of the query.
QUERY_KEYS = ("sql", "query", "sparql", "predicted_sql", "generated_sql", "prediction", "answer", "output", "response")
MAX_BYTES = 256 * MEBIBYTE
QUESTION = "question"
KEY_FIELDS = ("id", QUESTION)
SUITE = "suite"
FIELDS = (*KEY_FIELDS, SUITE, PREDICTED, "seconds", "trial", STEPS, ABSTAINED, REASON)  # of a prediction
BIRD_MARKER = "\t----- bird -----\t"  # in BIRD's files, between the query and the name of its database
_POSITION = re.compile(r"[0-9]+")  # a key in BIRD's files
_BLANKS = " \t\r\n"
_OPENING = re.compile(r"[ \t\r\n]*[\[{][ \t\r\n]*")
_SEPARATOR = re.compile(r"[ \t\r\n]*[,:]?[ \t\r\n]*")
_SYNTAX = StrictJson(read_object=None, allow_nan=True)
# The sheet with the cases in a workbook that a run has written; one of the plain layout has them in its first sheet.
RUN_SHEET = "Details"
# A report cuts a text to 20,000 characters, wherever two queries differ; a workbook says where it cuts one.
_RUN_TRUNCATED = re.compile(r".*… \[cut: [\d,]+ characters\]|.{20000,}", re.DOTALL)

# The file or the sheet, the line or the row there, and the object on it.
Row: TypeAlias = tuple[File, int, Mapping[str, JsonValue]]


class RunColumns(NamedTuple):
    """The names of the columns that identify a workbook or CSV file which a run has written."""

    id: str
    answer: str
    outcome: str
    seconds: str


REPORT_CSV = RunColumns("id", "predicted_query", "outcome", "prediction_seconds")
LAYOUTS = (
    RunColumns("Question ID", "VQL Generated", "Outcome", "Prediction (s)"),
    RunColumns("id", "predicted", "outcome", "prediction (s)"),
    REPORT_CSV,
)


@dataclass(frozen=True, slots=True)
class Columns:
    """How a file of predictions is read: its key, the names of its fields, and its layout."""

    key: str | None = None
    """The field that identifies the case; None for `id` where a file has any, else `question`."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names in the file of those of FIELDS that it calls differently."""
    abstain: str | None = None
    """The text of an answer that is an abstention; None for none."""
    sheet: str | None = None
    """The sheet of a workbook; None for the first one."""
    delimiter: str | None = None
    """What separates cells; None for the usual one."""
    header_row: int | None = None
    """The row with the headers; None for the usual one."""

    def name(self, field_name: str) -> str:
        """Return the name that the file has for a field."""
        return self.names.get(field_name, field_name)


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer to a case, with what the file says about the case."""

    location: Location
    key: str
    """The id or the question of the case."""
    suite: str
    """The file of its suite, or the end of its path; empty if it is not stated."""
    question: str
    """The question of the case; empty if it is not stated."""
    database: str
    """The database that BIRD's files name behind a query; empty for none."""
    trial: int
    """From 1; 0 if the answer serves all trials."""
    prediction: Prediction
    """With the answer as the file has it."""


def read_entries(file: File, columns: Columns) -> tuple[str, list[Entry]]:
    """Return the field that identifies cases, `id` or `question`, and all entries of a file.

    Raises `CaseError` with the line of an entry that cannot be read.
    """
    rows = list(READERS[file.path.suffix.lower()](file, columns))
    keys = {key for _, _, row in rows for key in KEY_FIELDS if columns.name(key) in row}
    key_name = columns.key or ("question" if keys == {"question"} else "id")
    return key_name, [_entry(row, at, line, key_name, columns) for at, line, row in rows]


def read_lines(file: File) -> list[str]:
    """Return the lines of a text file without their line ends; raises `CaseError` if it cannot be read."""
    text = file.text(MAX_BYTES)
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def split_marker(answer: str) -> tuple[str, str]:
    """Return a query without BIRD's marker, and the name of the database behind the marker; empty without a marker."""
    query, _, database = answer.partition(BIRD_MARKER)
    return query, database.strip()


class OtherDatabases:
    """Collects predictions whose BIRD marker names a database other than that of their case."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._first = ""

    def add(self, id_: str, database: str, names_of_case: Iterable[str]) -> None:
        """Count a prediction whose marker names none of the names of its case's database.

        An empty `database`, or a case without names, is not counted.
        """
        names = [*names_of_case] if database else []
        if not names or database.casefold() in map(str.casefold, names):
            return
        self._count += 1
        first = f"'{one_line(database, 40)}' instead of '{one_line(names[0], 40)}' for '{one_line(id_, 40)}'"
        self._first = self._first or first

    def remark(self) -> str:
        """Return a sentence with the number of such predictions and the first; empty if there are none."""
        if not self._count:
            return ""
        verb = "names another database" if self._count == 1 else "name other databases"
        predictions = f"{pluralize(self._count, 'prediction')} {verb} than the cases"
        return f"{self._path}: {predictions}: {self._first}: check that the file is for these cases"


def normalize_key(key: str, key_name: str) -> str:
    """Return a key in Unicode form NFC, without white space around it.

    In questions, single blanks replace all white space.
    """
    key = unicodedata.normalize("NFC", key)
    return key.strip() if key_name == "id" else " ".join(key.split())


def _entry(row: Mapping[str, JsonValue], file: File, line: int, key_name: str, columns: Columns) -> Entry:
    fields = {field: row[columns.name(field)] for field in FIELDS if columns.name(field) in row}
    try:
        abstention = read_abstention(fields, by="the prediction")
        steps = read_steps(fields.get(STEPS), by="the prediction")
    except PredictorError as error:
        raise file.problem(str(error), line) from error
    content = abstention or fields.get(PREDICTED)
    if isinstance(content, str) and content.strip() == columns.abstain:
        content = Abstention()
    if content is None:
        answer = columns.name(PREDICTED)
        if answer in row:
            problem = f'`{answer}` is null: leave the prediction out, or write "" for an empty answer'
        else:
            names = [one_line(key, 40) for key in row]
            name = nearest(answer, names) or next((key for key in QUERY_KEYS if key in row), "NAME")
            hint = _renaming(PREDICTED, name, file) if answer == PREDICTED else did_you_mean(answer, names)
            problem = f"a prediction needs `{answer}`{hint}"
        raise file.problem(problem, line)
    seconds = fields.get("seconds", 0.0)
    if not is_seconds(seconds):
        raise file.problem(f"`{columns.name('seconds')}` must be {SECONDS_RULE}, without quotes or a unit", line)
    trial = fields.get("trial", 0)
    if type(trial) is not int or ("trial" in fields and trial < 1):
        raise file.problem(f"`{columns.name('trial')}` must be a whole number from 1 on", line)
    of_answers_only = "question" if key_name == "id" else "", REASON if abstention is None else ""
    read_names = {columns.name(of) for of in FIELDS if of not in of_answers_only}
    metadata = excluding(row, read_names)
    database = ""
    if isinstance(content, str):
        content, database = split_marker(content)
    question, suite = fields.get("question"), fields.get(SUITE)
    return Entry(
        location=file.location(line),
        key=_key(row, file, line, key_name, columns.name(key_name)),
        suite=suite if isinstance(suite, str) else "",
        question=question if isinstance(question, str) else "",
        database=database,
        trial=trial,
        prediction=(Prediction if trial else StoredPrediction)(
            content, seconds=float(seconds), metadata=metadata, steps=steps
        ),
    )


def _key(row: Mapping[str, JsonValue], file: File, line: int, key_name: str, name: str) -> str:
    key = row.get(name)
    if type(key) is int:
        return str(key)
    if not isinstance(key, str) or not key.strip():
        names = ", ".join(f"`{one_line(name, 40)}`" for name in list(row)[:5]) or "nothing"
        texts = [key for key, value in row.items() if isinstance(value, str) and key not in FIELDS]
        present = "" if name in row else f": this one has {names}"
        if name == key_name and name not in row and len(texts) == 1:
            present = _renaming(key_name, texts[0], file)
        raise file.problem(f"a prediction needs `{name}`, which is text{present}", line)
    return normalize_key(key, key_name)


def _renaming(key: str, name: str, file: File) -> str:
    """Return the end of a message on a missing field `key`, whose values the file may have under `name`."""
    shown_name = one_line(name, 40)
    return f": rename `{shown_name}`, or write `predictor: {file.path.name}?{key}={shown_name}`"


def _json_lines(file: File, columns: Columns) -> Iterator[Row]:
    # Not splitlines(): JSON strings may hold U+2028 and other characters that Python takes for line ends.
    for line, text in enumerate(file.text(MAX_BYTES).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            value = JSON.read(text.strip(_BLANKS))
        except json.JSONDecodeError as error:
            problem, _, column = syntax_problem(error)
            raise file.problem(problem, line, column) from error
        except ValueError as error:
            raise file.problem(f"not JSON: {error}", line) from error
        yield file, line, _object(value, file, line)


def _object(value: JsonValue, file: File, line: int) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict):
        raise file.problem('expected an object: write each prediction as {"id": …, "predicted": …}', line)
    return value


def _json(file: File, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a JSON list of predictions, or of a JSON mapping from ids (or questions) to answers.

    Raises `CaseError` for any other JSON, for a report, and for BIRD's predictions.
    """
    text = file.text(MAX_BYTES)
    start = text[len(text) - len(text.lstrip(_BLANKS)) :][:1]
    items = _top_items(text, file)
    if start == "[":
        for line, value in items:
            yield file, line, _object(value, file, line)
    elif start == "{":
        for line, key in items:
            _, value = next(items)
            if key == "cases" and isinstance(value, list):
                remedy = "name its report.csv or report.xlsx instead, which `queryeval render` writes"
                raise file.problem(f"is a report, not a file of predictions: {remedy}")
            if isinstance(value, str) and BIRD_MARKER in value and _POSITION.fullmatch(key):
                problem = f"'{one_line(key, 40)}' is a key of BIRD's predictions: its keys are positions and not ids"
                remedy = "import it, `queryeval import bird QUESTIONS --predictions FILE`"
                raise file.problem(f"{problem}: {remedy}", line)
            answer = columns.name(PREDICTED)
            is_row = isinstance(value, dict) and (answer in value or value.get(columns.name(ABSTAINED)) is True)
            row = value if is_row else {answer: value}
            yield file, line, {**row, columns.name(columns.key or "id"): key}
    else:
        forms = 'write [{"id": …, "predicted": …}] or {ID: QUERY}'
        remedy = f"{forms}; if each line is a query, rename the file to {file.path.stem}.txt"
        line = text.count("\n", 0, text.find(start) if start else len(text)) + 1
        raise file.problem(f"neither a list nor a mapping of predictions in JSON: {remedy}", line)


def _top_items(text: str, file: File) -> Iterator[tuple[int, Any]]:
    """Yield the items of a JSON list, or the keys and values of an object in turn, each with its line number.

    Raises `CaseError` before the first item if the text is not JSON, and later for an item that `JSON` refuses.
    """
    try:
        with suppress(JsonError):
            _SYNTAX.read(text)
    except json.JSONDecodeError as error:
        hint = ", or write one object with all predictions, {ID: QUERY, …}" if error.msg == "Extra data" else ""
        problem, line, column = syntax_problem(error)
        raise file.problem(f"{problem}{hint}", line, column) from error
    line, place = 1, 0
    while True:
        start = _between(text, place)
        line += text.count("\n", place, start)
        if text[start : start + 1] in ("]", "}", ""):
            return
        try:
            value, place = JSON.read_at(text, start)
        except ValueError as error:
            raise file.problem(f"not JSON: {error}", line) from error
        yield line, value
        line += text.count("\n", start, place)


def _between(text: str, place: int) -> int:
    """Return the position of the next item, or of the bracket that ends the list or object."""
    match = (_OPENING if place == 0 else _SEPARATOR).match(text, place)
    return match.end() if match else place


def _table(file: File, columns: Columns) -> Iterator[Row]:
    with open_table(
        file,
        sheet=columns.sheet,
        default_sheet=RUN_SHEET,
        delimiter=columns.delimiter,
        header_row=columns.header_row,
        number_lines=True,
    ) as table:
        layout = next((layout for layout in LAYOUTS if table.places.keys() >= {*layout}), None)
        if layout is not None and not columns.names:
            yield from _run_rows(table, layout)
            return
        _check_header(table, columns)
        guard = _guard(layout)
        texts = {columns.name(of) for of in (*KEY_FIELDS, SUITE, PREDICTED)}
        for row in table.rows():
            values: dict[str, JsonValue] = {}
            for name, cell in row.values.items():
                text = FLAGS.get(cell.lower(), cell) if name == columns.name(ABSTAINED) else cell
                if name in texts:
                    value: JsonValue = text.removeprefix(guard)
                elif name == columns.name(STEPS):
                    value = _json_cell(row, name, text)
                else:  # it may be a number, and is left out where it is empty
                    value = _scalar(row, name, text)
                if value is not None:
                    values[name] = value
            yield table.file, row.number, values


def _guard(layout: RunColumns | None) -> str:
    """Return the prefix that a table of this layout has before texts that look like formulas; empty if it has none."""
    return "'" if layout is REPORT_CSV else ""


def _check_header(table: Table, columns: Columns) -> None:
    """Raise `CaseError` for the first column that a table of predictions needs and does not have, with the remedy."""
    needed = dict.fromkeys(columns.name(of) for of in (PREDICTED, columns.key, *columns.names) if of is not None)
    keys = [columns.name(key) for key in KEY_FIELDS]
    has_key = not table.places.keys().isdisjoint(keys)
    missing_columns = [name for name in needed if name not in table.places] or ([] if has_key else keys[:1])
    if not missing_columns:
        return
    setting = f"write `header_row: {{}}` next to `path`, or in short `{table.file.path.name}?header_row=…`"
    if columns.header_row is None and (below := table.header_below(missing_columns, setting)):
        raise below
    if missing_columns[0] not in needed:
        hint = did_you_mean(keys[0], table.places)
        problem = f"there is no column 'id' or 'question'{hint} ({_naming('id', table)})"
        raise table.file.problem(problem, table.header_row)
    add = "" if has_key else "add a header above the first row, or "
    short = f"{table.file.path.name}?delimiter={quote(table.likely_delimiter, safe='')}"
    setting = f'write `{short}`, or `delimiter: "{{}}"` next to `path`'
    remedy = "" if columns.names else _naming(PREDICTED, table, add)
    raise table.missing_column(missing_columns[0], remedy, setting=setting)


def _naming(key: str, table: Table, add: str = "") -> str:
    """Return the end of a message that says how to name a column `key`; `add` is another remedy before it."""
    option = f"{table.file.path.name}?{key}=NAME"
    return f"{add}write `{option}`, or `columns: {{{key}: NAME}}` next to `path`"


def _run_rows(table: Table, run: RunColumns) -> Iterator[Row]:
    """Yield the predictions in a table that a run has written.

    Cases without a prediction are left out, and so are questions that the table shows only in part. Raises `CaseError`
    for an answer that was cut or lost a secret.
    """
    guard = _guard(run)
    for row in table.rows():
        answer = row.text(run.answer).removeprefix(guard)
        if _RUN_TRUNCATED.fullmatch(answer):
            raise row.problem("is only a part of the answer, which was too long for the report", run.answer)
        if MARK in answer:
            raise row.problem("lacks a secret of the answer, which reports do not show", run.answer)
        abstention: dict[str, JsonValue] = {}
        if ABSTAINED in table.places and row.text(ABSTAINED):
            reason = row.text(REASON).removeprefix(guard) if REASON in table.places else ""
            abstention = {ABSTAINED: True, REASON: reason}
        elif not answer and row.text(run.outcome) in ("error", "skipped", "not_run"):
            continue
        values: dict[str, JsonValue] = {
            "id": row.text(run.id).removeprefix(guard),
            **(abstention or {PREDICTED: answer}),
        }
        if QUESTION in table.places:
            question = row.text(QUESTION).removeprefix(guard)
            is_whole = MARK not in question and not _RUN_TRUNCATED.fullmatch(question)
            values |= {QUESTION: question} if is_whole else {}
        if seconds := row.text(run.seconds):
            values["seconds"] = _scalar(row, run.seconds, seconds)
        yield table.file, row.number, values


def _scalar(row: TableRow, header: str, text: str) -> JsonValue:
    value: JsonValue = scalar(Node(text, row.number, "plain", row.table.file, column=row.table.column(header)))
    return value


def _json_cell(row: TableRow, header: str, text: str) -> JsonValue:
    try:
        value: JsonValue = JSON.read(text) if text.strip() else None
    except ValueError as error:
        raise row.problem(f"is not JSON: {one_line(str(error))}", header) from error
    return value


READERS: Mapping[str, Callable[[File, Columns], Iterator[Row]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    **dict.fromkeys(TABLE_SUFFIXES, _table),
}
LINES_SUFFIXES = (".txt", ".sql", ".rq", ".sparql")


def is_lines(path: str) -> bool:
    """Return whether a path has the suffix of files with plain lines."""
    return Path(path).suffix.lower() in LINES_SUFFIXES


def is_known(path: str) -> bool:
    """Return whether a path has a suffix of files that can be read."""
    return is_lines(path) or Path(path).suffix.lower() in READERS
