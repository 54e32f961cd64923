"""What a program reads and prints: questions, answers, and the errors with which it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.json_value import JsonValue, to_jsonable
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import SECONDS_RULE, Prediction, is_seconds
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.strict_json import DuplicateKeyError
from pytest_queryeval.features.command_predictor.processes import OUTPUT_BYTES, Process
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors import CaseView
from pytest_queryeval.predictors.answer import ABSTAINED, JSON, PREDICTED, read_fields
from pytest_queryeval.text.formatting import one_line, truncate
from pytest_queryeval.text.redaction import redact

STDERR_CHARACTERS = 2_000
STDERR_LINES = 10
MAX_NAMES = 8
METADATA_DEPTH = 100
SHOWN_CHARACTERS = 100
_LINES = "in the mode `lines` stdout contains answers as lines of JSON and nothing else"


def make_question(case: CaseView, trial: int, *, sends_schema: bool) -> dict[str, JsonValue]:
    """Return the JSON object about a case that is sent to a program.

    The schema is included only if `sends_schema` is true.
    """
    schema = {"schema": case.schema} if sends_schema else {}
    return {
        "id": case.id,
        "question": case.question,
        "evidence": case.evidence,
        "metadata": to_jsonable(case.metadata, max_depth=METADATA_DEPTH),
        "conversation": [{"role": message.role, "content": message.content} for message in case.conversation],
        "kind": case.kind,
        "dialect": case.dialect,
        "source": case.source,
        "tags": list(case.tags),
        "difficulty": case.difficulty,
        "trial": trial,
        **schema,
    }


def encode_question(question: Mapping[str, JsonValue]) -> bytes:
    """Return a question as one line of JSON in ASCII, which is the same in every locale."""
    return json.dumps(question).encode("ascii") + b"\n"


def decode_utf8(data: bytes | bytearray, *, by: str) -> str:
    """Return what a program printed as text without a byte order mark; raise `PredictorError` if it is not UTF-8.

    `by` is the program's name in messages.
    """
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        faulty_byte = f"byte 0x{data[error.start]:02x} at {error.start:,}"
        raise PredictorError(
            f"{by} printed {faulty_byte}, which is not UTF-8: set PYTHONUTF8=1, or its like"
        ) from error


def read_output(text: str, case: CaseView, question: Mapping[str, JsonValue], *, by: str, seconds: float) -> Prediction:
    """Return the whole output of a program as a prediction: a text, or a JSON object with `predicted` or `abstained`.

    Line ends after a text are removed. Raise `PredictorError` for an invalid answer, and for an object without
    `predicted` if the answer should be a query.
    """
    try:
        entry = _find_prediction(text)
    except ValueError as error:
        raise PredictorError(f"{by} printed JSON with a {one_line(str(error), 60)}") from error
    if entry is not None:
        return make_prediction(entry, case, question, by=by, seconds=seconds)
    if KINDS[case.kind].answer_type is Table and text.lstrip().startswith("{"):
        with suppress(ValueError):
            if isinstance(document := JSON.read(text), dict):
                shown = ", ".join(f"`{one_line(name, 40)}`" for name in list(document)[:MAX_NAMES])
                names = f"with {shown}" if shown else "without members"
                raise PredictorError(f'{by} printed an object {names}: write the query as {{"{PREDICTED}": QUERY}}')
    return Prediction(text.rstrip("\r\n"), predictor=f"command:{by}", seconds=seconds)


def read_line(line: bytes, case: CaseView, *, by: str) -> Mapping[str, JsonValue]:
    """Return a line of a program's output as an object with `predicted` or `abstained`; a JSON string is `predicted`.

    Raise `PredictorError` for any other line, and for an `id` other than the case's.
    """
    text = decode_utf8(line, by=by)
    try:
        entry = JSON.read(text)
    except ValueError as error:
        raise PredictorError(f"{by} printed {output_excerpt(text)}: {_LINES}") from error
    if isinstance(entry, str):
        return {PREDICTED: entry}
    if not isinstance(entry, dict) or not _is_prediction(entry):
        raise PredictorError(
            f"{by} printed {output_excerpt(text)}: expected an object with `predicted`, or a JSON text"
        )
    if "id" in entry and entry["id"] != case.id:
        raise PredictorError(f"{by} answered {output_excerpt(str(entry['id']))} where '{case.id}' was asked")
    return entry


def make_prediction(
    entry: Mapping[str, JsonValue], case: CaseView, question: Mapping[str, JsonValue], *, by: str, seconds: float
) -> Prediction:
    """Return the prediction of an object with `predicted` or `"abstained": true`.

    Other members become metadata, except those that repeat the question. `seconds` in the object replaces the measured
    time. Raise `PredictorError` for an invalid answer, step or time.
    """
    if entry.get(ABSTAINED) is not True and entry.get(PREDICTED) is None:
        raise PredictorError(f'{by} printed `{PREDICTED}`: null, which is not an answer: an empty one is ""')
    prediction = read_fields(entry, case.kind, by=by)
    reserved_names = {key for key, value in question.items() if key in entry and entry[key] == value}
    if (stated_seconds := entry.get("seconds")) is not None:
        if not is_seconds(stated_seconds):
            raise PredictorError(f"{by} printed `seconds` that are not {SECONDS_RULE}")
        seconds = float(stated_seconds)
        reserved_names.add("seconds")
    metadata = excluding(prediction.metadata, reserved_names)
    return replace(prediction, predictor=f"command:{by}", seconds=seconds, metadata=metadata)


def output_too_large(by: str) -> PredictorError:
    """Return the error about a program that printed more than an answer may have."""
    return PredictorError(f"{by} printed more than {OUTPUT_BYTES // 2**20} MiB")


def exit_error(process: Process, *, by: str) -> PredictorError:
    """Return the temporary error about a process that ended too early, with its exit code or signal.

    The message has the last line that the process wrote, and below it the lines before.
    """
    code = process.exit_code
    status = f"exit code {code}"
    if code is not None and code < 0:
        names = {number.value: number.name for number in signal.Signals}
        status = names.get(-code, f"signal {-code}")
    lines = stderr_tail(process.errors) or stderr_tail(process.output)
    last = f": {lines.pop().lstrip()}" if lines else ""
    return PredictorError("\n".join([f"{by} ended with {status}{last}", *lines]), temporary=True)


def stderr_tail(data: bytes | bytearray) -> list[str]:
    """Return the last STDERR_LINES lines that a program wrote, cut and printable, without secrets and empty lines."""
    lines = redact(data.decode("utf-8", "replace")).splitlines()
    return [one_line(line) for line in lines if line.strip()][-STDERR_LINES:]


def stderr_text(data: bytes | bytearray) -> str:
    """Return the beginning of a program's stderr as text."""
    return truncate(data.decode("utf-8", "replace").strip(), STDERR_CHARACTERS)


def output_excerpt(text: str) -> str:
    """Return the beginning of a program's output in quotes for messages; 'an empty line' if it has only white space."""
    return f"'{one_line(text, SHOWN_CHARACTERS)}'" if text.strip() else "an empty line"


def _find_prediction(text: str) -> dict[str, JsonValue] | None:
    """Return the object if a text is a JSON object with `predicted` or `"abstained": true`; None for any other text.

    Raise `DuplicateKeyError` if an object with `predicted` has a key twice.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = JSON.read(text)
    except DuplicateKeyError:
        if PREDICTED in json.loads(text):
            raise
        return None
    except ValueError:
        return None
    return value if isinstance(value, dict) and _is_prediction(value) else None


def _is_prediction(fields: Mapping[str, JsonValue]) -> bool:
    """Return whether an object has an answer, or says that the system abstained."""
    return PREDICTED in fields or fields.get(ABSTAINED) is True
