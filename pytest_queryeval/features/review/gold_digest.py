"""The digest that shows whether a decision is still about the golds that a case has."""

from __future__ import annotations

import hashlib
import json

from pytest_queryeval.core.answer_json import encode
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.model import AddedAnswer, Answer, Case, QueryOrAnswer
from pytest_queryeval.core.table import Selection, Table


def gold_digest(case: Case) -> str:
    """Return `sha256:` and the SHA-256 digest of a case's question, evidence and golds, in hexadecimal digits.

    They are an object in canonical JSON: sorted keys, no blanks, UTF-8. How a suite writes them does not matter: texts
    have no blanks around them and only line feeds, and a file counts by its content.
    """
    content: JsonValue = {
        "question": _text(case.question),
        "evidence": _text(case.evidence),
        "golds": [_gold(gold) for gold in case.golds],
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode(errors='backslashreplace')).hexdigest()}"


def _text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _gold(gold: QueryOrAnswer) -> JsonValue:
    return _text(gold.query) if gold.query is not None else _answer(gold.answer)


def _answer(answer: Answer | None) -> JsonValue:
    """Return an answer as a suite states it."""
    match answer:
        case Table(columns=columns, rows=rows):
            return {"columns": list(columns), "rows": [[encode(cell) for cell in row] for row in rows]}
        case JsonAnswer(value=value):
            return encode(value)
        case Selection(datasets=datasets):
            return [
                {
                    "dataset_id": dataset.id,
                    "dimensions": [
                        {
                            "dimension_name": part.name,
                            "values": [{"id": term.id, "name": term.name} for term in part.terms],
                        }
                        for part in dataset.dimensions
                    ],
                }
                for dataset in datasets
            ]
        case None | AddedAnswer():  # which no suite states
            return None
