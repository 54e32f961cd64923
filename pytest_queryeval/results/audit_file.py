"""The file of an audit: the cases that were drawn, and what reviewers judge of the answers to them.

Each line is a JSON object; lines are appended and never changed. A case was drawn with a known probability, and has the
different predictions of the audited systems by their digests, without the names of the systems:

    {"case": "cheapest", "nodeid": "shop.queryeval.yaml::cheapest", "stratum": "passed", "probability": 0.1,
     "predictions": {"5d1c05ab32e1f7a2": {"query": "SELECT min(price) FROM product"}}}

A judgement is about one of them. It names `prediction` where the case has several:

    {"case": "cheapest", "nodeid": "shop.queryeval.yaml::cheapest", "prediction": "5d1c05ab32e1f7a2",
     "judgement": "right", "reviewer": "anna", "at": "2026-11-23T10:00:00Z"}
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import CaseReport, Row
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents.document import Node, file_at, read_jsonl
from pytest_queryeval.documents.values import (
    Readers,
    choice,
    entries,
    json_text,
    json_value,
    known_entries,
    number_within,
    time_with_zone,
    unexpected,
    whole_number,
)

Judgement: TypeAlias = Literal["right", "wrong", "unclear"]
JUDGEMENTS: tuple[Judgement, ...] = ("right", "wrong", "unclear")
DIGEST_DIGITS = 16


class StatedTable(TypedDict):
    """The first rows of a table that a system answered without a query."""

    columns: list[str]
    rows: list[Row]
    row_count: NotRequired[int]
    """The number of rows of the whole table; absent in files that state the rows alone."""


class DrawnPrediction(TypedDict, total=False):
    """The answer of a system: a query, the text of another answer, or a table; empty for none."""

    query: str
    table: StatedTable


class AnswerName(NamedTuple):
    """The name of a judged answer: the node id of its case, and the digest of the prediction."""

    nodeid: str
    prediction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCase:
    """A case that was drawn to be judged, with the predictions of the audited systems."""

    id: str
    nodeid: str
    stratum: str
    probability: float
    """With which the case was drawn, which is the same in its whole stratum."""
    predictions: Mapping[str, DrawnPrediction]
    """The different predictions of the systems, by their digests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The content of an audit file: the drawn cases, and the judgements on their answers."""

    cases: Mapping[str, DrawnCase] = field(default_factory=dict)
    """By their node ids, in the order of the file."""
    judgements: Mapping[AnswerName, Mapping[str, Judgement]] = field(default_factory=dict)
    """The last judgement of each reviewer on the answers that anybody judged."""
    undrawn: int = 0
    """How many judgements are on answers that were not drawn."""


def prediction_of(case: CaseReport) -> DrawnPrediction:
    """Return the answer of the first trial of a case as audit files state it: a query, or the sample of a table.

    Empty if there is no answer, as after an abstention.
    """
    query = case["trials"][0]["predicted"]["query"] if case["trials"] else None
    predicted = case["predicted"]
    if query is None and predicted is not None:
        query = predicted["query"]
        columns, row_count = predicted["columns"], predicted["row_count"]
        if query is None and columns is not None and row_count is not None:
            return {"table": {"columns": columns, "rows": predicted["sample"], "row_count": row_count}}
    return {} if query is None else {"query": query}


def is_sample(table: StatedTable) -> bool:
    """Return whether a table has more rows than are stated."""
    return table.get("row_count", 0) > len(table["rows"])


def prediction_digest(prediction: DrawnPrediction) -> str:
    """Return the name of a prediction in audit files; queries that differ only in white space have the same name.

    It is the beginning of the SHA-256 of the query with single blanks, or of the table as JSON with sorted keys.
    """
    text = " ".join(prediction["query"].split()) if "query" in prediction else json.dumps(prediction, sort_keys=True)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:DIGEST_DIGITS]


def read_audit(path: Path) -> Audit:
    """Return the content of an audit file; of several judgements of a reviewer on an answer, the last counts.

    Raises `CaseError` or `SuiteError` for the first damaged line.
    """
    cases: dict[str, DrawnCase] = {}
    judgement_lines: list[Node] = []
    for line in read_jsonl(file_at(path)):
        if isinstance(line, CaseError):
            raise line
        if "judgement" in entries(line):
            judgement_lines.append(line)
            continue
        values = _required_entries(line, _CASE_READERS)
        drawn_case = DrawnCase(id=values.pop("case"), **values)
        if drawn_case.nodeid in cases:
            raise line.problem(f"'{drawn_case.nodeid}' is drawn twice: keep each draw in a file of its own")
        cases[drawn_case.nodeid] = drawn_case
    judgements: defaultdict[AnswerName, dict[str, Judgement]] = defaultdict(dict)
    undrawn = 0
    for answer, values in sorted((_judgement(line, cases) for line in judgement_lines), key=lambda read: read[1]["at"]):
        case = cases.get(answer.nodeid)
        if case is None or answer.prediction not in case.predictions:
            undrawn += 1
        else:
            judgements[answer][values["reviewer"].strip(" ")] = values["judgement"]
    return Audit(cases=cases, judgements=judgements, undrawn=undrawn)


def _judgement(line: Node, cases: Mapping[str, DrawnCase]) -> tuple[AnswerName, dict[str, Any]]:
    """Return the answer that a line judges, and the line's entries.

    Without `prediction`, it is the case's only answer. Raises `CaseError` if the case has several.
    """
    values = _required_entries(line, _JUDGEMENT_READERS, optional="prediction")
    nodeid = values["nodeid"]
    predictions = cases[nodeid].predictions if nodeid in cases else {}
    if "prediction" not in values and len(predictions) > 1:
        raise line.problem(f"'{nodeid}' has several predictions: add `prediction`: {' or '.join(predictions)}")
    return AnswerName(nodeid, values.get("prediction", next(iter(predictions), ""))), values


def _required_entries(line: Node, readers: Readers, optional: str = "") -> dict[str, Any]:
    values = known_entries(line, readers)
    if missing_keys := [name for name in readers if name not in values and name != optional]:
        noun = "a judgement" if "judgement" in readers else "a drawn case"
        raise line.problem(f"{noun} needs {', '.join(f'`{name}`' for name in missing_keys)}")
    return values


def _predictions(node: Node) -> dict[str, Any]:
    predictions = {
        digest: known_entries(prediction, _PREDICTION_READERS) for digest, prediction in entries(node).items()
    }
    if not predictions:
        raise unexpected(node, "predictions by their digests")
    return predictions


_TABLE_READERS: Readers = {"columns": json_value, "rows": json_value, "row_count": whole_number(0)}
_PREDICTION_READERS: Readers = {
    "query": json_text,
    "table": lambda node: known_entries(node, _TABLE_READERS),
}
_CASE_READERS: Readers = {
    "case": json_text,
    "nodeid": json_text,
    "stratum": json_text,
    "probability": number_within("a number above 0, up to 1", exclusiveMinimum=0, maximum=1),
    "predictions": _predictions,
}
_JUDGEMENT_READERS: Readers = {
    "case": json_text,
    "nodeid": json_text,
    "prediction": json_text,
    "judgement": choice(*JUDGEMENTS),
    "reviewer": json_text,
    "at": time_with_zone,
}
