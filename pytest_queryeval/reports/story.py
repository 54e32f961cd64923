"""The story of one case, in parts: how it ended and why, both queries with their answers, the cause, the difference.

Every surface builds it from these parts: the failure in pytest, `queryeval explain`, pages, and formats with a line for
each case. It chooses some of them and their layout. Texts are as reports have them: a surface makes them safe to show.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeAlias

from pytest_queryeval.comparison.difference_texts import column_lines, shown_columns
from pytest_queryeval.core.case_report import (
    AnyRow,
    CaseReport,
    CauseReport,
    CausingEditReport,
    ChallengeReport,
    DifferenceReport,
    FailureReport,
    PredictionReport,
    QueryReport,
    RefutationReport,
    Row,
    StepReport,
    by_data,
)
from pytest_queryeval.core.groups import group_values, groups_shown
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import TEXTLESS_FAILURES
from pytest_queryeval.core.steps import count_steps
from pytest_queryeval.metrics import follows_compare
from pytest_queryeval.results.verdict import failure_text, first_line, unmet_expectations
from pytest_queryeval.text.formatting import escape_line, excerpt_change, flow_text, limits_text, one_line, pluralize

EXPECTATIONS_SHOWN = 4  # of those that do not hold
EDIT_CHARACTERS = 100  # of an edit in a finding
CELL_CHARACTERS = 40
ARROW = " → "
CAUSE_DIRECTION, DIFFERENCE_DIRECTION = (
    "predicted → gold",
    "gold → predicted",
)  # what the arrows of edits and of differences mean
VERDICTS: Mapping[bool | None, str] = {True: "passed", False: "failed", None: "no threshold"}  # of a trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The outcome of a case, and why."""

    outcome: str
    reason: str
    """Why, in one line; empty if nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that the suite states about a case, with its name."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExcerpt:
    """The first rows of a table, and its size in words."""

    shape: str
    """How many rows and columns the table has."""
    ran: str
    """How long the query ran."""
    columns: Sequence[str]
    rows: Sequence[Row]
    more: str
    """How many more rows the table has; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryQuery:
    """The gold or the predicted query or answer."""

    name: Literal["gold", "predicted"]
    origin: str
    """Which of several golds it is, or where it was predicted."""
    text: str | None
    """The query, or a value that was answered; None for a table that was answered."""
    answer: TableExcerpt | None
    failure: str
    """Why there is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryCause:
    """The edits that make a wrong prediction right, and the query after them."""

    cause: CauseReport
    """With the `causing_edits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryChallenge:
    """The result of a challenge in words, and the database on which the queries differ; None if none was found."""

    summary: str
    counterexample: RefutationReport | None


class DifferingRow(NamedTuple, Generic[AnyRow]):
    """A row in which the gold and the predicted answer differ."""

    label: Literal["missing", "extra", "gold", "instead", "repeated"]
    """`gold` stands before `instead`, the predicted row in its place."""
    row: AnyRow
    times: str = ""
    """Of a repeated row, how often each answer has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How the two answers differ, in a sentence and in rows."""

    summary: str
    columns: Sequence[str]
    """Their names, as many as the longest row has cells; empty if they have none."""
    rows: Sequence[DifferingRow[Row]]
    by_column: Sequence[str]
    """Where paired rows differ, a line for each column."""
    not_shown: Sequence[str]
    """Of which kinds of rows not all are shown."""


@dataclass(frozen=True, slots=True)
class Note:
    """A remark besides scores: a hint, an unmet expectation, a schema violation, differing query texts, or a note."""

    name: Literal["hint", "expected", "violation", "texts", "note"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryScore:
    """The score of a metric, and the limits that it needs; empty if there are none."""

    metric: str
    value: float | None
    needs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryTrial:
    """The verdict and the scores of one of several trials."""

    verdict: str
    scores: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorySteps:
    """The steps that the system took before it answered."""

    summary: str
    steps: Sequence[StepReport]


@dataclass(frozen=True, slots=True)
class Notes:
    """All notes on a case, at least one."""

    notes: Sequence[Note]


@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of a case, at least one."""

    scores: Sequence[StoryScore]
    compare: str
    """The settings of the comparison that are not the default and that a score follows; empty without any."""


@dataclass(frozen=True, slots=True)
class Trials:
    """All trials of a case, at least one."""

    trials: Sequence[StoryTrial]


Part: TypeAlias = (
    Ending | Fact | StoryQuery | StoryCause | StoryChallenge | Differences | Notes | StorySteps | Scores | Trials
)


def case_story(case: CaseReport) -> Iterator[Part]:
    """Yield the parts of a case's story in the order of display: its ending, facts, queries, cause, and so on.

    Parts without content are left out.
    """
    error = _error(case)
    failure = failure_text(error["kind"], error["message"]) if error is not None else ""
    yield Ending(outcome=case["outcome"], reason=first_line(case) or failure)
    yield from _facts(case)
    if (gold := case["gold"]) is not None:
        origin = closest_text(case, gold["index"]) if gold["index"] else ""
        yield StoryQuery(name="gold", origin=origin, text=gold["query"], answer=answer_of(gold), failure="")
    if (predicted := case["predicted"]) is not None:
        origin = f"from {case['prediction']['source']}" if case["prediction"] is not None else ""
        no_answer = "" if case["prediction"] is None else no_answer_text(case["prediction"])
        text = f"({no_answer})" if no_answer else predicted["query"]
        yield StoryQuery(name="predicted", origin=origin, text=text, answer=answer_of(predicted), failure=failure)
    if case["cause"] is not None:
        yield StoryCause(cause={**case["cause"], "edits": causing_edits(case)})
    if "challenge" in case:
        challenge = case["challenge"]
        yield StoryChallenge(summary=challenge_text(challenge), counterexample=by_data(challenge).counterexample)
    if case["difference"] is not None:
        yield _differences(case["difference"], gold)
    if case_notes := list(notes(case)):
        yield Notes(case_notes)
    if (prediction := case["prediction"]) is not None and "steps" in prediction:
        yield StorySteps(summary=steps_text(prediction["steps"]), steps=prediction["steps"])
    if case_scores := list(scores(case)):
        yield Scores(case_scores, _compare_text(case))
    if case["trials"]:
        yield Trials(
            [StoryTrial(verdict=VERDICTS[trial["passed"]], scores=trial["scores"]) for trial in case["trials"]]
        )


def _compare_text(case: CaseReport) -> str:
    """Return the settings of the comparison that differ from the default and affect a score of the case.

    Empty if there are none, or if there is no predicted answer.
    """
    if case["fingerprint"] is None or case["predicted"] is None or case["predicted"]["error"] is not None:
        return ""
    names = [name for name, score in case["scores"].items() if score is not None]
    return ", ".join(
        f"{key}: {one_line(flow_text(value), CELL_CHARACTERS)}"
        for key, value in case["fingerprint"]["compare"].items()
        if any(follows_compare(name, key) for name in names)
    )


def challenge_text(challenge: ChallengeReport) -> str:
    """Return the result of a challenge in a sentence."""
    verdict, refutation, ruled_out = by_data(challenge)
    match verdict:
        case "same":
            return "the same as the gold query"
        case "proved":
            return f"proved to be the same as the gold query: {', '.join(challenge.get('rules', ()))}"
        case "refuted":
            rows = pluralize(refutation["rows"] if refutation else 0, "row")
            return f"refuted: the answers differ on a database of {rows}"
        case "stands" if ruled_out is not None:
            rows = pluralize(ruled_out["rows"], "row")
            return f"stands: the answers differ on a database of {rows}, but it violates what your data satisfies"
        case "stands":
            return f"stands: no difference found in {challenge['tried']} small databases"
        case "unchallenged":
            return f"unchallenged: {challenge.get('reason', '')}"


def no_answer_text(prediction: PredictionReport) -> str:
    """Return that the system abstained, and why, or that the file has no prediction; empty if there is an answer."""
    if prediction.get("missing"):
        return "the file has no prediction"
    if not prediction.get("abstained"):
        return ""
    return ": ".join(filter(None, ("the system abstained", prediction.get("reason"))))


def steps_text(steps: Sequence[StepReport]) -> str:
    """Return the number of steps, queries and failed queries, and the sum of the known times.

    >>> steps_text([{"kind": "query", "name": "", "error": "no such table", "seconds": 1.5}])
    '1 step, 1 query, 1 failed query, 1.500 s'
    """
    counts = count_steps(steps)
    nouns = {"step": counts["steps"], "query": counts["queries"], "failed query": counts["failed_queries"]}
    words = [pluralize(count, noun) for noun, count in nouns.items() if count or noun == "step"]
    seconds = [step["seconds"] for step in steps if "seconds" in step]
    return ", ".join([*words, *([f"{sum(seconds):.3f} s"] if seconds else [])])


def step_line(step: StepReport, characters: int) -> str:
    """Return a step in one line: its input, and its output or error, each cut to `characters`.

    >>> step_line({"kind": "query", "name": "run_sql", "input": "SELECT 1", "output": "1", "seconds": 0.25}, 40)
    'query run_sql: SELECT 1 → 1 (0.250 s)'
    """
    contents = (step.get("input"), step.get("output"))
    given, returned = (escape_line(_step_content(content), characters) for content in contents)
    if "error" in step:
        returned = escape_line(f"error: {step['error']}", characters)
    parts = [" ".join(filter(None, (step["kind"], step["name"])))]
    parts += [f": {given}"] if given else []
    if returned:
        parts.append(f"{': ' if step['kind'] == 'message' and not given else ' → '}{returned}")
    return "".join([*parts, *([f" ({step['seconds']:.3f} s)"] if "seconds" in step else [])])


def _step_content(content: JsonValue) -> str:
    """Return an input or output of a step as text: a table's size, otherwise JSON; empty for empty values."""
    match content:
        case str():
            return content
        case None | list() | dict() if not content:
            return ""
        case {"columns": list(columns), "rows": list(), "row_count": int(row_count)}:
            return f"{pluralize(row_count, 'row')} of {pluralize(len(columns), 'column')}"
        case _:
            return json.dumps(content, ensure_ascii=False)


def failure_summary(case: CaseReport, sharing: int = 1) -> str:
    """Return the findings on a case that did not pass in one line; `sharing` as in `findings`."""
    return "; ".join(findings(case, sharing=sharing))


def findings(case: CaseReport, edits_shown: int = 1, sharing: int = 1) -> list[str]:
    """Return sentences that say why a case did not pass.

    They are the first `edits_shown` edits that repair its answer, its message, other unmet expectations, and hints.
    `sharing` is the number of cases with the same error, which the message states if it is over 1.
    """
    message = f"{pluralize(sharing, 'case')}: {first_line(case)}" if sharing > 1 else first_line(case)
    edits = case["cause"]["edits"][:edits_shown] if case["cause"] is not None else []
    causes = [edit_line(edit, EDIT_CHARACTERS) for edit in edits if edit["clause"]]  # else the message says it
    others = unmet_expectations(case["details"])[1:EXPECTATIONS_SHOWN]  # the message has the first
    return [*causes, message, *others, *(f"hint: {hint['text']}" for hint in case.get("hints", ()))]


def causing_edits(case: CaseReport) -> list[CausingEditReport]:
    """Return the edits that make the predicted query right.

    If the prediction failed, an edit of no clause has an empty change: the message of the failure says the same.
    """
    edits = case["cause"]["edits"] if case["cause"] is not None else []
    return [edit if edit["clause"] or _error(case) is None else {**edit, "change": ""} for edit in edits]


def edit_line(edit: CausingEditReport, characters: int) -> str:
    """Return an edit as one line of about `characters`; its change is cut around what differs."""
    room = max(characters - len(edit["clause"]) - len(": "), CELL_CHARACTERS)
    cut_edit: CausingEditReport = {**edit, "change": excerpt_change(edit["change"], room)}
    return edit_text(cut_edit, partial(one_line, characters=characters))


def edit_text(edit: CausingEditReport, quoted: Callable[[str], str] = str) -> str:
    """Return an edit in words: its clause, what changes, and its label.

    `quoted` is applied to the untrusted texts, to make them safe to show.
    """
    place_and_change = quoted(": ".join(filter(None, (edit["clause"], edit["change"]))))
    return f"{place_and_change} ({quoted(edit['label'])})" if place_and_change else quoted(edit["label"])


def problem_text(case: CaseReport) -> str:
    """Return what is wrong with an answer: its error, its difference, or the first line of the message.

    Thresholds are not mentioned. Empty if nothing is wrong.
    """
    if (error := _error(case)) is not None:
        return failure_text(**error) if error["kind"] == "abstained" else error["message"]
    return (case["difference"]["summary"] if case["difference"] is not None else "") or first_line(case)


def _error(case: CaseReport) -> FailureReport | None:
    return case["predicted"]["error"] if case["predicted"] is not None else None


def answer_of(query: QueryReport) -> TableExcerpt | None:
    """Return the first rows of a query's answer and its size; None if the answer is not a table."""
    if query["columns"] is None or query["row_count"] is None:
        return None
    remaining_rows = query["row_count"] - len(query["sample"])
    return TableExcerpt(
        shape=f"{pluralize(query['row_count'], 'row')} of {pluralize(len(query['columns']), 'column')}",
        ran=f"{query['seconds']:.3f} s" if query["seconds"] else "not run",
        columns=query["columns"],
        rows=query["sample"],
        more=f"… {pluralize(remaining_rows, 'more row')}" if remaining_rows > 0 else "",
    )


def differing_rows(difference: DifferenceReport[AnyRow]) -> Iterator[DifferingRow[AnyRow]]:
    """Yield the rows of a difference in the order of display: missing, extra, changed in pairs, repeated."""
    yield from (DifferingRow(label="missing", row=row) for row in difference["missing"])
    yield from (DifferingRow(label="extra", row=row) for row in difference["extra"])
    for rows in difference["changed"]:
        yield DifferingRow(label="gold", row=rows["gold"])
        yield DifferingRow(label="instead", row=rows["predicted"])
    for repeated in difference["repeated"]:
        times = f"{repeated['gold']:,} in gold, {repeated['predicted']:,} in predicted"
        yield DifferingRow(label="repeated", row=repeated["row"], times=times)


def shares_shown(whole: DifferenceReport[AnyRow], shown: DifferenceReport[AnyRow]) -> dict[str, str]:
    """Return, for missing, extra and repeated rows, "N of M shown"; only for lists that are shown in part.

    `whole` is the full difference, `shown` the rows of it that are displayed.
    """
    names: tuple[Literal["missing", "extra", "repeated"], ...] = "missing", "extra", "repeated"
    lists = {name: (len(shown[name]), len(whole[name])) for name in names}
    totals: Mapping[str, Any] = whole.get("totals", {})
    shares = {name: (few, totals.get(name, listed)) for name, (few, listed) in lists.items()}
    return {name: f"{few:,} of {total:,} shown" for name, (few, total) in shares.items() if 0 < few < total}


def notes(case: CaseReport) -> Iterator[Note]:
    """Yield notes on a case: hints, unmet expectations, violations, differing texts, ties, and remarks of metrics."""
    yield from (Note("hint", hint["text"]) for hint in case.get("hints", ()))
    details = case["details"]
    # Their content depends on metrics, and on the program that wrote the report.
    violations: object = details.get("violations")
    texts: object = details.get("exact_set_match")
    yield from (Note("expected", text) for text in unmet_expectations(details))
    if isinstance(violations, list):
        yield from (Note("violation", str(violation)) for violation in violations)
    error = _error(case)
    if isinstance(texts, dict) and not (error is not None and error["kind"] in TEXTLESS_FAILURES):
        parts = [f"the predicted query cannot be read: {texts['unreadable']}"] if "unreadable" in texts else []
        if isinstance(differing_parts := texts.get("differs"), list) and differing_parts:
            parts.append(f"differ in {', '.join(map(str, differing_parts))}")
        if parts:
            yield Note("texts", "; ".join(parts))
    if case["depends_on_tie"]:
        place = details.get("choice", "its LIMIT cuts through rows that tie")
        yield Note("note", f"the predicted answer is right only because gold leaves its answer open: {place}")
    patterns: object = details.get("cause")
    if isinstance(patterns, dict) and {"shared", "of", "only_gold", "only_predicted"} <= patterns.keys():
        shared, of = patterns["shared"], patterns["of"]
        name, separator = ("triple patterns", " . ") if case["kind"] == "sparql" else ("parts", ", ")
        held = f"the predicted query has {shared} of the {of} {name} of the gold query"
        text = f"no edit that was tried repairs the answer: {held}"
        sides = (("gold", patterns["only_gold"]), ("predicted", patterns["only_predicted"]))
        only_texts = [f"only in {side}: {separator.join(map(str, only))}" for side, only in sides if only]
        yield Note("note", "; ".join((text, *only_texts, *map(str, patterns.get("unknown_terms", ())))))
    yield from (Note("note", str(note)) for note in details.get("notes", ()))


def scores(case: CaseReport) -> Iterator[StoryScore]:
    """Yield the scores of a case with the limits that its thresholds set."""
    thresholds = case["fingerprint"]["thresholds"] if case["fingerprint"] is not None else {}
    needs = {name: limits_text(limits["min"], limits["max"]) for name, limits in thresholds.items()}
    needs |= {missed["metric"]: limits_text(missed["min"], missed["max"]) for missed in case["violations"]}
    for metric, value in case["scores"].items():
        yield StoryScore(metric=metric, value=value, needs=needs.get(metric, ""))


def closest_text(case: CaseReport, index: int) -> str:
    """Return which of several golds the answer was scored by, as "gold_any[1] is the closest".

    Answers of reviewers, which have no place in the suite, are called right answers.
    """
    name = f"right answer {index + 1}" if "unreviewed" in case else f"gold_any[{index}]"
    return f"{name} is the closest"


def review_text(case: CaseReport) -> str:
    """Return the decision on a case's golds, by whom and why; empty without a decision."""
    if "review" not in case:
        return ""
    review, unreviewed = case["review"], case.get("unreviewed")
    parts = [f"{review['decision']} ({', '.join(review['reviewers'])})", *review["notes"]]
    return "; ".join([*parts, *([f"by the suite's golds: {unreviewed['outcome']}"] if unreviewed else [])])


def _facts(case: CaseReport) -> Iterator[Fact]:
    facts = (
        Fact("question", case["question"]),
        Fact("evidence", case["evidence"]),
        Fact("gold", "" if case.get("answerable", True) else "none: the question has no answer"),
        Fact("source", case["source"] or ""),
        Fact("gold on", case.get("gold_source", "")),
        *(
            Fact(group.heading, ", ".join(group_values(case, name)))
            for name, group in groups_shown("explanation").items()
        ),
        Fact("review", review_text(case)),
        Fact("suite", f"{case['path']}:{case['line']}" + (f" ({case['place']})" if "place" in case else "")),
    )
    return (fact for fact in facts if fact.text)


def _differences(difference: DifferenceReport[Row], gold: QueryReport | None) -> Differences:
    shown = shown_columns(difference)
    rows = list(differing_rows(shown))
    width = max((len(differing_row.row) for differing_row in rows), default=0)
    names = shown.get("columns") or (gold["columns"] if gold is not None else None) or []
    return Differences(
        summary=difference["summary"],
        columns=[*names, *[""] * width][:width],
        rows=rows,
        by_column=column_lines(difference.get("by_column", ())),
        not_shown=[f"{label}: {text}" for label, text in shares_shown(difference, difference).items()],
    )
