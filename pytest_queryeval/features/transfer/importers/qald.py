"""QALD: questions in several languages with a query, and with answers in the form of SPARQL JSON results."""

from __future__ import annotations

import hashlib
import json

from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.features.transfer.importers.databases import Databases
from pytest_queryeval.features.transfer.importers.keys import check_request
from pytest_queryeval.features.transfer.importers.predictions import cases_of, read_predictions
from pytest_queryeval.features.transfer.importers.questions import question_in, question_records, sparql_of
from pytest_queryeval.features.transfer.importers.records import Record, RecordError, read_json_file
from pytest_queryeval.languages.sparql.results import read_results
from pytest_queryeval.text.truncation import one_line

ANSWERS = "answers"


def import_qald(request: ImportRequest) -> Import:
    """Return a case for each question in the language: its query is right, or its stored answers where it has none.

    With `--map gold=answers` the stored answers are right for all, as the benchmark's own tool has it.
    """
    check_request(request, columns=("gold",), kind="sparql", has_languages=True)
    databases = Databases(request, request.source)
    file = file_at(request.source)
    value = read_json_file(file)
    questions = value.get("questions") if isinstance(value, dict) else None
    if not isinstance(questions, list):
        raise file.problem('expected an object with a list of questions, {"questions": [{…}, …]}')

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared("sparql")
        questions = record.fields.get("question")
        texts = [text for text in (questions if isinstance(questions, list) else []) if isinstance(text, dict)]
        question = question_in(request.language, {str(text.get("language")): text.get("string") for text in texts})
        query = sparql_of(record).strip()
        if query and request.columns.get("gold") != ANSWERS:
            return ImportedCase(id=id_, keys={"question": question, "gold": query})
        name, content = _answer_file(record)
        return ImportedCase(id=id_, keys={"question": question, "gold_file": name}, files={name: content})

    return Import(
        name=request.source.stem,
        settings={"kind": "sparql", **databases.settings},
        cases=cases_of(
            question_records(questions),
            lambda record: record.id("id"),
            case_of,
            read_predictions(request.predictions),
        ),
        has_predictions=request.predictions is not None,
    )


def _answer_file(record: Record) -> tuple[str, bytes]:
    """Return the name of the file with the stored answers, and its content; raise `RecordError`."""
    answers = record.fields.get(ANSWERS)
    if not isinstance(answers, list) or len(answers) != 1:
        count = len(answers) if isinstance(answers, list) else 0
        raise RecordError(f"it has {count} stored answers: expected one")
    text = json.dumps(answers[0], ensure_ascii=False)
    try:
        read_results(text, ".srj")
        content = text.encode()
    except UnicodeEncodeError as error:
        raise RecordError("its stored answer holds half of a surrogate pair, which is no character") from error
    except ValueError as error:
        raise RecordError(f"its stored answer {one_line(str(error))}") from error
    return f"{ANSWERS}/{hashlib.sha256(content).hexdigest()[:16]}.srj", content
