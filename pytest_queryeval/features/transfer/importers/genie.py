"""Spaces of Databricks Genie, whose benchmarks become cases.

A file is the space itself, or what the API answers with `include_serialized_space=true`, which has it as a text:
https://docs.databricks.com/api/workspace/genie/getspace
"""

from __future__ import annotations

import json
import re

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.features.transfer.importers.records import (
    Databases,
    Record,
    RecordError,
    check_request,
    gold_value,
    import_records,
    numbered_records,
    read_json_file,
)
from pytest_queryeval.text.formatting import one_line

SPACE = "serialized_space"
SQL_FORMAT = "SQL"
_VARIABLE = re.compile(r"\$\{\w+\}")  # of templates; Spark fills it in, and a warehouse does not


def import_genie(request: ImportRequest) -> Import:
    """Return a case for each benchmark with an answer in SQL."""
    check_request(request, kind="sql")
    databases = Databases(request, request.source)
    file = file_at(request.source)
    space = read_json_file(file)
    if isinstance(space, dict) and isinstance(text := space.get(SPACE), str):
        try:
            space = json.loads(text)
        except (ValueError, RecursionError) as error:
            remedy = "write it as the API answers it"
            raise file.problem(f"its `{SPACE}` is not JSON: {error}: {remedy}") from error
    elif isinstance(space, dict) and SPACE in space:
        space = space[SPACE]
    benchmarks = space.get("benchmarks") if isinstance(space, dict) else None
    questions = benchmarks.get("questions") if isinstance(benchmarks, dict) else None
    if not isinstance(questions, list):
        problem = 'has no benchmarks of a Genie space: expected `{"benchmarks": {"questions": [{…}, …]}}`'
        raise file.problem(f"{problem}, as the API gives it with include_serialized_space=true")

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared("sql")
        question = _text(record.required("question"))
        if not question.strip():
            raise RecordError("it has no text as `question`: add one")
        return ImportedCase(id=id_, keys={"question": question, "gold": gold_value(_answer(record), "sql")})

    records = numbered_records(questions, "question")
    settings = {"kind": "sql", **databases.settings}
    return import_records(request, records, lambda record: record.id("id"), case_of, settings=settings)


def _answer(record: Record) -> str:
    """Return the query of the benchmark; raise `RecordError` if it has none, or several."""
    value = record.fields.get("answer")
    answers = [answer for answer in (value if isinstance(value, list) else [value]) if isinstance(answer, dict)]
    queries = [_text(answer.get("content")) for answer in answers if answer.get("format") == SQL_FORMAT]
    if len(queries) > 1:
        raise RecordError("it has several answers in SQL: keep the right one")
    if not queries:
        formats = ", ".join(one_line(str(answer.get("format"))) for answer in answers) or "none"
        raise RecordError(f"it has no answer of the format {SQL_FORMAT}, which says what is right: it has {formats}")
    if variable := _VARIABLE.search(queries[0]):
        raise RecordError(f"its answer has the variable `{variable[0]}`, which nothing fills in: write its value")
    return queries[0]


def _text(value: JsonValue) -> str:
    """Return a text, which Genie writes in lines: those without their line breaks get them."""
    lines = [line for line in (value if isinstance(value, list) else [value]) if isinstance(line, str)]
    return "".join(line if line[-1:].isspace() else f"{line}\n" for line in lines).strip()
