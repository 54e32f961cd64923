"""What is reviewed on the page: golds, and the answers of an audit.

Golds are cases in the order of their ranking; decisions on them go to the review files. An answer of an audit is judged
by its question alone: the reviewer sees no gold, verdict or system.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.documents.document import file_at, parse_json
from pytest_queryeval.documents.values import json_mapping
from pytest_queryeval.features.review.decisions import (
    CaseKey,
    GoldDecision,
    answer_item,
    check_reviewer,
    decision_line,
    gold_digest,
    now,
    read_answers,
    read_decision,
)
from pytest_queryeval.features.review.named_case import case_of, read_suite_below
from pytest_queryeval.features.review.page import Choice, JsonObject, ReviewTask, listed_case, shown_answer
from pytest_queryeval.features.review.ranking import RankedCase
from pytest_queryeval.features.review.reviews_key import Reviews, current_decisions, disagree, reviews_of
from pytest_queryeval.languages import KINDS
from pytest_queryeval.results.audit_file import JUDGEMENTS, AnswerName, DrawnPrediction, is_sample, read_audit
from pytest_queryeval.suites import Suite
from pytest_queryeval.text.formatting import pluralize
from pytest_queryeval.text.redaction import MARK

GOLD_CHOICES: Sequence[Choice] = (
    {"name": "right", "key": "r", "words": "Gold is right", "hint": "gold is right, and so are the marked answers"},
    {"name": "wrong", "key": "w", "words": "Gold is wrong", "hint": "gold is wrong, the marked answers are right"},
    {"name": "ambiguous", "key": "a", "words": "Ambiguous", "hint": "gold and the marked answers are right readings"},
    {"name": "unanswerable", "key": "x", "words": "Unanswerable", "hint": "no answer to the question is right"},
    {"name": "unsure", "key": "u", "words": "Unsure", "hint": "unsure: seen, without an effect"},
)
SHOWN_KEYS = ("decision", "answers", "compare", "note")  # of a line, which the page shows or sends back
ANSWER_CHOICES: Sequence[Choice] = (
    {"name": "right", "key": "r", "words": "Right", "hint": "the answer to the question is right"},
    {"name": "wrong", "key": "w", "words": "Wrong", "hint": "the answer to the question is wrong"},
    {"name": "unclear", "key": "u", "words": "Unclear", "hint": "the question does not tell, or you cannot"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldCase:
    """A case whose gold is reviewed, with its place in the ranking and its review files."""

    ranked: RankedCase
    case: Case
    """The case as its suite states it, on the source of golds: what is run may become a gold."""
    name: CaseKey
    digest: str
    reviews: Reviews
    """The review files of its suite, as they were when the server started."""


class GoldReview(ReviewTask[GoldCase]):
    """Review of the golds of ranked cases; `suites` are keyed by the node ids of cases.

    Raise `NoReviewFileError` for a suite that names no review file.
    """

    words = "decisions on case"

    def __init__(self, ranking: Sequence[RankedCase], suites: Mapping[str, Suite]) -> None:
        cases = []
        for ranked in ranking:
            suite, case = suites[ranked.nodeid], replace(ranked.case.on_gold_source, review=None)
            name, reviews = CaseKey(suite.path, case.id), reviews_of(suite)
            cases.append(GoldCase(ranked=ranked, case=case, name=name, digest=gold_digest(case), reviews=reviews))
        super().__init__(cases)

    def overview(self, reviewer: str) -> JsonObject:
        """Return all cases, each with the last decision of this reviewer and whether reviewers disagree on it.

        The review files are read again. Raise `CaseError` for an invalid line.
        """
        # Copies read their files again.
        reviews_now = {gold_case.reviews: replace(gold_case.reviews) for gold_case in self.cases}
        cases = []
        for gold_case in self.cases:
            decisions = reviews_now[gold_case.reviews].of_case(gold_case.name, gold_case.digest)
            last = next((decision for decision in reversed(decisions) if decision.reviewer == reviewer), None)
            is_stale = last is not None and last.digest not in (None, gold_case.digest)
            current, _ = current_decisions(decisions, gold_case.digest)
            cases.append(
                {
                    **listed_case(gold_case.case, gold_case.ranked.nodeid),
                    "reasons": list(dict.fromkeys(evidence["kind"] for evidence in gold_case.ranked.evidence)),
                    "decision": _shown_decision(last) if last is not None and not is_stale else None,
                    "stale": last.decision if last is not None and is_stale else None,
                    "conflict": disagree(current),
                }
            )
        return {"choices": GOLD_CHOICES, "cases": cases}

    def case(self, place: int) -> JsonObject:
        """Return the question, the schema, the golds, and the other answers with the systems that gave them.

        An answer has an `item` to append unless golds run on another source. Systems that agree with gold are
        `agreeing`.
        """
        gold_case = self.at(place)
        ranked, case = gold_case.ranked, gold_case.case
        runs_as_gold = ranked.case.settings.gold_source is None  # else answers are by queries of another database
        answers = []
        for group in ranked.answers:
            if not group.is_gold:
                query = group.execution.query
                item = answer_item(query, ranked.case) if query is not None and runs_as_gold else None
                answers.append(
                    {
                        "systems": group.systems,
                        "query": query,
                        "queries": [system_query for system_query in group.queries if system_query != query],
                        "item": item,
                        "request": item and {"item": item},
                    }
                )
        return {
            **self.facts(case, ranked.nodeid),
            "reasons": [evidence["text"] for evidence in ranked.evidence],
            "problem": ranked.problem,
            "golds": [_text_of(gold, case) for gold in case.golds],
            "agreeing": [system for group in ranked.answers if group.is_gold for system in group.systems],
            "answers": answers,
        }

    def decisions(self, place: int) -> JsonObject:
        """Return the current decisions of reviewers who disagree, else nothing; raise the errors of `overview`."""
        gold_case = self.at(place)
        decisions = replace(gold_case.reviews).of_case(gold_case.name, gold_case.digest)
        current, _ = current_decisions(decisions, gold_case.digest)
        shown = [{**_shown_decision(decision), "reviewer": decision.reviewer} for decision in current]
        return {"decisions": shown if disagree(current) else []}

    def answer(self, place: int, request: JsonObject) -> JsonObject:
        """Run what the request contains: the index of a `gold`, an `item` of `answers`, or the text of a `query`.

        The result is the compared answer, with the item to append. Raise `ReportError` for another request.
        """
        case, item = self.at(place).case, request.get("item")
        match request:
            case {"gold": int(at)} if at in range(len(case.golds)):
                content = case.golds[at]
            case {"query": str(text)}:
                item = answer_item(text, case)
                content = QueryOrAnswer(query=text)
            case {"item": dict()}:
                content = _contents([item], case)[0]
            case _:
                raise ReportError("there is nothing to run")
        return {**shown_answer(self.compare(content, case)), "item": item}

    def line(self, place: int, decision: JsonObject) -> tuple[Path, JsonObject]:
        """Return the review file of a reviewer, and a decision as an object for a line.

        Raise `ReportError` or `CaseError` for a decision with which the suite could not be read.
        """
        gold_case, answers = self.at(place), decision.get("answers", [])
        if not isinstance(answers, list):
            raise ReportError("`answers` is a list")
        if MARK in json.dumps(answers, ensure_ascii=False):
            raise ReportError("secrets were removed from an answer: write it into the review file by hand")
        reviewer = check_reviewer(decision.get("reviewer"), ReportError)
        file = gold_case.reviews.file_of(reviewer)
        line = decision_line(
            gold_case.name,
            file,
            digest=gold_case.digest,
            decision=cast("Any", decision.get("decision")),  # which is read below
            answers=answers,
            compare=decision.get("compare"),
            reviewer=reviewer,
            note=cast("Any", decision.get("note", "")),
            settles=cast("Any", decision.get("settles", False)),
        )
        try:
            json.dumps(line, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ReportError("a text contains half of a character: remove it") from error
        read_decision(parse_json(json.dumps(line), file_at(file), line=0))
        contents = _contents(answers, gold_case.case)
        if contents and not gold_case.case.answerable:
            raise ReportError(f"'{gold_case.case.id}' has `answerable: false`: replace it with a gold in the suite")
        return file, line


def _text_of(gold: QueryOrAnswer, case: Case) -> str | None:
    """Return the query of a gold, or its answer as text; None for a table."""
    if gold.query is None and gold.answer is not None and not isinstance(gold.answer, Table):
        return KINDS[case.settings.kind].text(gold.answer)
    return gold.query


def _shown_decision(decision: GoldDecision) -> Mapping[str, JsonValue]:
    line = json_mapping(decision.line)
    return {key: line[key] for key in SHOWN_KEYS if key in line}


def _contents(items: Sequence[JsonValue], case: Case) -> list[QueryOrAnswer]:
    """Return items of `answers` as golds of a case; raise `CaseError` for an invalid item."""
    return [answer.as_gold(case) for answer in read_answers(parse_json(json.dumps(items), file_at("answers"), line=0))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnAnswer:
    """An answer that an audit drew, to be judged by its question."""

    case: Case
    """The case without its golds and the decisions on them: the page neither runs nor shows them."""
    name: AnswerName
    prediction: DrawnPrediction
    is_only: bool
    """Whether the case has no other prediction in the file."""


class AuditReview(ReviewTask[DrawnAnswer]):
    """Review of the answers in an audit file, whose suites are below the current folder.

    Raise `CaseError` for an invalid line, `ReportError` for a missing case and for a suite elsewhere, and `SuiteError`
    for a suite that cannot be read.
    """

    words = "judgements on answer"

    def __init__(self, path: Path) -> None:
        self._path = path
        suites = cache(read_suite_below)
        cases = [  # in the order of the file, which is random and so reveals no verdict
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
        super().__init__(cases)

    def overview(self, reviewer: str) -> JsonObject:
        """Return all answers with the last judgement of this reviewer; raise `CaseError` for an invalid line."""
        judgements = read_audit(self._path).judgements
        cases = []
        for answer in self.cases:
            judgement = judgements.get(answer.name, {}).get(reviewer)
            decision = None if judgement is None else {"decision": judgement}
            cases.append({**listed_case(answer.case, answer.name.nodeid), "decision": decision})
        return {"choices": ANSWER_CHOICES, "cases": cases, "audit": True}

    def case(self, place: int) -> JsonObject:
        """Return the question, the schema, and the query of the answer, without golds and systems."""
        answer = self.at(place)
        shown: JsonObject = {
            "systems": [],
            "query": answer.prediction.get("query"),
            "queries": [],
            "item": None,
            "request": {},
        }
        return {**self.facts(answer.case, answer.name.nodeid), "golds": [], "answers": [shown]}

    def answer(self, place: int, request: JsonObject) -> JsonObject:
        """Return the answer to judge: run its query, or show its stored table.

        If only the first rows of a table are stored, the result says how many rows there were.
        """
        drawn = self.at(place)
        query, table = drawn.prediction.get("query"), drawn.prediction.get("table")
        if query is None and table is not None:
            rows = cast("list[Row]", [tuple(row) for row in table["rows"]])
            content = QueryOrAnswer(answer=Table(columns=tuple(table["columns"]), rows=rows))
        else:
            content = QueryOrAnswer(query=query)
        predicted = shown_answer(self.compare(content, drawn.case)).get("predicted")
        if predicted is not None and table is not None and is_sample(table):
            rows_text = pluralize(table["row_count"], "row")
            predicted = {**predicted, "shape": f"the first {len(predicted['sample']):,} of {rows_text}", "more": ""}
        return {"predicted": predicted, "outcome": "", "message": ""}

    def line(self, place: int, decision: JsonObject) -> tuple[Path, JsonObject]:
        """Return the audit file, and a judgement as an object for a line.

        Raise `ReportError` for an unknown judgement.
        """
        answer, judgement = self.at(place), decision.get("decision")
        if judgement not in JUDGEMENTS:
            raise ReportError(f"a judgement is {', '.join(JUDGEMENTS)}")
        return self._path, {
            "case": answer.case.id,
            "nodeid": answer.name.nodeid,
            **({} if answer.is_only else {"prediction": answer.name.prediction}),
            "judgement": judgement,
            "reviewer": check_reviewer(decision.get("reviewer"), ReportError),
            "at": now(),
        }
