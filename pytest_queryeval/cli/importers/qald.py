"""QALD: questions in several languages with a query, and with answers in the form of SPARQL JSON results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from pytest_queryeval.cli.importers import Import, ImportedCase, ImportRequest, Skipped
from pytest_queryeval.cli.importers.columns import check_request
from pytest_queryeval.cli.importers.databases import Databases
from pytest_queryeval.cli.importers.predictions import read_predictions
from pytest_queryeval.cli.importers.records import Record, RecordError, read_json_file
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.languages.sparql.results import read_results
from pytest_queryeval.text.truncation import one_line

ANSWERS = "answers"


def import_qald(request: ImportRequest) -> Import:
    """Return a case for each question in the language: its query is right, or its stored answers where it has none.

    With `--map gold=answers` the stored answers are right for all, as the benchmark's own tool has it.
    """
    check_request(request, columns=("gold",), kind="sparql", has_languages=True)
    databases = Databases(request, request.source)
    predictions = read_predictions(request.predictions)
    prefers_answers = request.columns.get("gold") == ANSWERS

    def cases() -> Iterator[ImportedCase | Skipped]:
        for record in _questions(request.source):
            id_ = record.text("id") or record.place.replace(" ", "-")
            try:
                question = _question(record, request.language)
                keys: dict[str, JsonValue] = {"question": question}
                files: dict[str, bytes] = {}
                query = _query(record)
                if query and not prefers_answers:
                    keys["gold"] = query
                else:
                    name, files = _answers(record)
                    keys["gold_file"] = name
            except RecordError as error:
                predictions.of(record.position, id_, "")
                yield Skipped(id_, str(error))
            else:
                yield ImportedCase(
                    id=id_, keys=keys, predictions=predictions.of(record.position, id_, question), files=files
                )
        yield from predictions.unused()

    return Import(
        name=request.source.stem,
        settings={"kind": "sparql", **databases.settings},
        cases=cases(),
        has_predictions=request.predictions is not None,
    )


def _questions(source: Path) -> Iterator[Record]:
    file = file_at(source)
    value = read_json_file(file)
    questions = value.get("questions") if isinstance(value, dict) else None
    if not isinstance(questions, list):
        raise file.problem('expected an object with a list of questions, {"questions": [{…}, …]}')
    for position, fields in enumerate(questions):
        yield Record(f"question {position + 1}", position, fields if isinstance(fields, dict) else {})


def _question(record: Record, language: str) -> str:
    texts = record.fields.get("question")
    found = {
        str(text.get("language")): str(text["string"])
        for text in (texts if isinstance(texts, list) else [])
        if isinstance(text, dict) and text.get("string")
    }
    if language not in found:
        known = ", ".join(map(one_line, found))
        raise RecordError(f"it has no question in '{language}'" + (f": it is in {known}" if known else ""))
    return found[language]


def _query(record: Record) -> str:
    query = record.fields.get("query")
    text = query.get("sparql") if isinstance(query, dict) else None
    return text.strip() if isinstance(text, str) else ""


def _answers(record: Record) -> tuple[str, dict[str, bytes]]:
    """Return the name of the file with the stored answers, and its content; raise `RecordError`."""
    answers = record.fields.get(ANSWERS)
    if not isinstance(answers, list) or len(answers) != 1:
        count = len(answers) if isinstance(answers, list) else 0
        raise RecordError(f"it has {count} stored answers: expected one")
    text = json.dumps(answers[0], ensure_ascii=False)
    try:
        read_results(text, ".srj")
    except ValueError as error:
        raise RecordError(f"its stored answer {one_line(str(error))}") from error
    name = f"{ANSWERS}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.srj"
    return name, {name: text.encode()}
