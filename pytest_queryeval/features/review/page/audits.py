"""The answers of an audit on the page: a reviewer judges each by its question, and sees no gold, verdict or system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.review.decisions import appending, check_reviewer, now
from pytest_queryeval.features.review.named_case import case_of, read_suite_below
from pytest_queryeval.features.review.page import (
    Choice,
    JsonObject,
    Runner,
    case_facts,
    listed_case,
    shown_answer,
)
from pytest_queryeval.results.audit_file import JUDGEMENTS, AnswerName, DrawnPrediction, is_sample, read_audit
from pytest_queryeval.text.formatting import pluralize

CHOICES: Sequence[Choice] = (
    {"name": "right", "key": "r", "words": "Right", "hint": "the answer to the question is right"},
    {"name": "wrong", "key": "w", "words": "Wrong", "hint": "the answer to the question is wrong"},
    {"name": "unclear", "key": "u", "words": "Unclear", "hint": "the question does not tell, or you cannot"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnAnswer:
    """An answer to judge."""

    case: Case
    """The case without its golds and the decisions on them: the page neither runs nor shows them."""
    name: AnswerName
    prediction: DrawnPrediction
    is_only: bool
    """Whether the case has no other prediction in the file."""


class AuditReview:
    """A `review.Review` of the answers in an audit file; their suites are below the current folder.

    Raise `CaseError` for a damaged line, `ReportError` for a missing case and for a suite elsewhere, and `SuiteError`
    for a suite that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runner = Runner()
        self._judged: set[int] = set()
        suites = cache(read_suite_below)
        self._answers = [  # in the order of the file, which is random and so reveals no verdict
            DrawnAnswer(
                case=replace(case_of(suites(Path(drawn.nodeid.partition("::")[0])), drawn.id), golds=(), review=None),
                name=AnswerName(drawn.nodeid, digest),
                prediction=prediction,
                is_only=len(drawn.predictions) == 1,
            )
            for drawn in read_audit(path).cases.values()
            for digest, prediction in drawn.predictions.items()
            if prediction
        ]

    def close(self) -> None:
        """Stop all queries."""
        self._runner.close()

    def overview(self, reviewer: str) -> JsonObject:
        """Return all answers with the last judgement of this reviewer; raise `CaseError` for a damaged line."""
        judgements = read_audit(self._path).judgements
        cases = []
        for answer in self._answers:
            judgement = judgements.get(answer.name, {}).get(reviewer)
            decision = None if judgement is None else {"decision": judgement}
            cases.append({**listed_case(answer.case, answer.name.nodeid), "decision": decision})
        return {"choices": CHOICES, "cases": cases, "audit": True}

    def case(self, place: int) -> JsonObject:
        """Return the question, the schema, and the query of the answer."""
        answer = self._at(place)
        shown: JsonObject = {
            "systems": [],
            "query": answer.prediction.get("query"),
            "queries": [],
            "item": None,
            "request": {},
        }
        return {**case_facts(answer.case, answer.name.nodeid, self._runner), "golds": [], "answers": [shown]}

    def decisions(self, place: int) -> JsonObject:
        """Return none: judgements of an audit that differ make an answer unclear, and nobody settles that."""
        return {"decisions": []}

    def answer(self, place: int, request: JsonObject) -> JsonObject:
        """Run the query of the answer; of a table whose first rows only are known, say how many there are."""
        drawn = self._at(place)
        query, table = drawn.prediction.get("query"), drawn.prediction.get("table")
        if query is None and table is not None:
            rows = cast("list[Row]", [tuple(row) for row in table["rows"]])
            content = QueryOrAnswer(answer=Table(columns=tuple(table["columns"]), rows=rows))
        else:
            content = QueryOrAnswer(query=query)
        predicted = shown_answer(self._runner.compare(content, drawn.case)).get("predicted")
        if predicted is not None and table is not None and is_sample(table):
            rows_text = pluralize(table["row_count"], "row")
            predicted = {**predicted, "shape": f"the first {len(predicted['sample']):,} of {rows_text}", "more": ""}
        return {"predicted": predicted, "outcome": "", "message": ""}

    def append(self, place: int, decision: JsonObject) -> None:
        """Append a judgement to the audit file; raise `ReportError` for one that is none."""
        answer, judgement = self._at(place), decision.get("decision")
        if judgement not in JUDGEMENTS:
            raise ReportError(f"a judgement is {', '.join(JUDGEMENTS)}")
        line: Mapping[str, JsonValue] = {
            "case": answer.case.id,
            "nodeid": answer.name.nodeid,
            **({} if answer.is_only else {"prediction": answer.name.prediction}),
            "judgement": judgement,
            "reviewer": check_reviewer(str(decision.get("reviewer", "")), ReportError),
            "at": now(),
        }
        with appending(self._path) as append:
            append([line])
            self._judged.add(place)

    def appended_lines(self) -> list[str]:
        """Return a line on how many answers were judged."""
        if not self._judged:
            return []
        return [f"{file_at(self._path).shown}: judgements on {pluralize(len(self._judged), 'answer')}"]

    def _at(self, place: int) -> DrawnAnswer:
        if place >= len(self._answers):
            raise ReportError("there is no such case")
        return self._answers[place]
