"""Questions in several languages with a query, as the benchmarks of question answering over graphs have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.features.transfer.importers.records import Record, RecordError
from pytest_queryeval.text.truncation import one_line


def question_records(questions: list[JsonValue]) -> Iterator[Record]:
    """Yield a record for each question, without fields where it is no object."""
    for position, fields in enumerate(questions):
        yield Record(f"question {position + 1}", position, fields if isinstance(fields, dict) else {})


def question_in(language: str, texts: Mapping[str, JsonValue]) -> str:
    """Return the text in a language, of texts by language; raise `RecordError` where there is none."""
    questions = {code: text for code, text in texts.items() if isinstance(text, str) and text.strip()}
    if language not in questions:
        languages = ", ".join(map(one_line, questions))
        raise RecordError(f"it has no question in '{language}'" + (f": it is in {languages}" if languages else ""))
    return questions[language]


def sparql_of(record: Record) -> str:
    """Return the query of a question, empty where it has none."""
    query = record.fields.get("query")
    text = query.get("sparql") if isinstance(query, dict) else None
    return text if isinstance(text, str) and text.strip() else ""
