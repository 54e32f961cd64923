"""The cases of a report in the page, compressed: a list to filter and sort, and the details of cases in pieces."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from pytest_queryeval.comparison.difference_texts import column_lines, shown_places
from pytest_queryeval.core.case_report import CaseReport, PredictionReport, QueryReport, StepReport, by_data
from pytest_queryeval.core.cause import NOTHING
from pytest_queryeval.core.groups import group_values, groups_shown
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.report import EarlierCase, Report
from pytest_queryeval.core.steps import CONTENT_CHARACTERS, shorten_step
from pytest_queryeval.reports.blocks import metric_names
from pytest_queryeval.reports.sections import by_increase
from pytest_queryeval.reports.story import (
    VERDICTS,
    TableExcerpt,
    answer_of,
    challenge_text,
    notes,
    problem_text,
    review_text,
    scores,
    shares_shown,
    steps_text,
)
from pytest_queryeval.results.aggregation import cause_labels, is_accidental
from pytest_queryeval.results.verdict import shared_errors, worst_first
from pytest_queryeval.text.formatting import cut, excerpts

PIECE_CHARACTERS = 400_000  # the page unpacks a piece when it shows one of its cases
STEPS_BYTES = 1_500_000  # that all steps may take in a page, before base64 makes them longer by a third
STEPS_SHOWN = 200  # of a prediction
FEWEST_CHARACTERS = 20  # of an input or an output, however many there are
TEXT_CHARACTERS = 300  # of a question and a message in the list, for the search
CHANGE_CHARACTERS = 80  # of each side of a change in the list
SCORE_DIGITS = 6
FLIPPED: Mapping[str, Literal["regressions", "fixes", "errors"]] = {
    "regressions": "regressions",
    "fixes": "fixes",
    "new-errors": "errors",
}
Listed: TypeAlias = Literal["id", "path", "line", "kind", "tags", "difficulty", "outcome"]
LISTED: tuple[Listed, ...] = ("id", "path", "line", "kind", "tags", "difficulty", "outcome")
# In the list already, or not shown in the page of a case.
NOT_DETAILS = frozenset(
    {*LISTED, "features", "groups", "nodeid", "scores", "fingerprint", "depends_on_tie", "hints", "unreviewed"}
)


def pack(text: str) -> str:
    """Return a text deflated and in base64; equal texts give equal results."""
    return base64.b64encode(zlib.compress(text.encode(errors="backslashreplace"))).decode("ascii")


def json_text(value: Any) -> str:
    """Return a value as compact JSON; raises ValueError for NaN and infinity."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def with_exact_numbers(value: Any) -> Any:
    """Return a JSON value in which each number is a text: `#` and the number as report.json has it.

    A text that begins with `#` gets another `#` before it. JavaScript rounds integers beyond 2^53, and writes 1.0 as 1.
    """
    match value:
        case str():
            return f"#{value}" if value.startswith("#") else value
        case bool() | None:
            return value
        case int() | float():
            return f"#{value!r}"
        case list() | tuple():
            return [with_exact_numbers(member) for member in value]
        case _:
            return {name: with_exact_numbers(member) for name, member in value.items()}


def case_columns(report: Report) -> dict[str, object]:
    """Return the columns of the table of cases, as lists in the order of the report's cases.

    `scores` has such a list for each metric. `groups` maps each group to its values and, for each case, to indices into
    them. A `nodeid` is None if it is the path and the id. `worst` has the indices of the cases that come first, `views`
    the indices of the cases that each filter shows.
    """
    cases = report["cases"]
    places = {id(case): place for place, case in enumerate(cases)}
    # Cases that passed with a wrong answer follow: a gate may be missed because of them.
    wrong_but_passed = (case for case in cases if case["cause"] is not None and case["outcome"] == "passed")
    worst_cases = [*worst_first(report), *wrong_but_passed]
    first_cases = shared_errors(worst_cases)
    return {
        **{name: [case[name] for case in cases] for name in LISTED},
        "groups": {name: _group_column(report, name, group.plural) for name, group in groups_shown("filters").items()},
        "nodeid": [None if case["nodeid"] == f"{case['path']}::{case['id']}" else case["nodeid"] for case in cases],
        "question": [cut(case["question"], TEXT_CHARACTERS) for case in cases],
        "message": [cut(case["message"], TEXT_CHARACTERS) for case in cases],
        "why": [_listed_problem(case, first_cases.get(case["nodeid"])) for case in cases],
        "labels": [_labels(case) for case in cases],
        "change": [_first_change(case) for case in cases],
        "review": [cut(review_text(case), TEXT_CHARACTERS) for case in cases],
        "trials": [
            f"{sum(trial['passed'] is True for trial in trials)} of {len(trials)} trials" if trials else None
            for trials in (case["trials"] for case in cases)
        ],
        "seconds": [_short_seconds(case["prediction"]["seconds"]) if case["prediction"] else None for case in cases],
        "scores": {
            name: [
                None if (score := case["scores"].get(name)) is None else round(score, SCORE_DIGITS) for case in cases
            ]
            for name in metric_names(cases)
        },
        **_baseline_columns(report),
        "worst": [places[id(case)] for case in worst_cases],
        "views": views(report),
    }


def _baseline_columns(report: Report) -> dict[str, object]:
    """Return facts of the baseline: earlier scores by the index of their case, and earlier and current causes."""
    if (baseline := report.get("baseline")) is None:
        return {"earlier": {}, "causes": {}}
    earlier = baseline.get("earlier_scores", {})
    return {
        "earlier": {
            place: {name: round(score, SCORE_DIGITS) for name, score in earlier[case["nodeid"]].items()}
            for place, case in enumerate(report["cases"])
            if case["nodeid"] in earlier
        },
        "causes": {label: [*change.values()] for label, change in by_increase(baseline["causes"]).items()},
    }


def views(report: Report) -> dict[str, list[int]]:
    """Return, for each filter except those by outcome, the indices of its cases in the report.

    The filters are regressions, fixes, new errors, ties, accidental, and reviewed.
    """
    cases, baseline = report["cases"], report.get("baseline")
    flipped_nodeids = {view: frozenset(baseline[side] if baseline else ()) for view, side in FLIPPED.items()}
    return {
        **{
            view: [place for place, case in enumerate(cases) if case["nodeid"] in nodeids]
            for view, nodeids in flipped_nodeids.items()
        },
        "ties": [place for place, case in enumerate(cases) if case["depends_on_tie"]],
        "accidental": [place for place, case in enumerate(cases) if is_accidental(case)],
        "reviewed": [place for place, case in enumerate(cases) if "review" in case],
    }


def _group_column(report: Report, name: str, plural: str) -> dict[str, object]:
    """Return a group's values in the order of the report, and for each case the indices of its values.

    `plural` is the group's name for several values.
    """
    values_of_cases = [group_values(case, name) for case in report["cases"]]
    values = {value for values_of_case in values_of_cases for value in values_of_case}
    # The report of an earlier version lacks groups.
    ordered = [value for value in report["groups"].get(name, sorted(values)) if value in values]
    places = {value: place for place, value in enumerate(ordered)}
    members = [[places[value] for value in values_of_case] for values_of_case in values_of_cases]
    return {"plural": plural, "values": ordered, "members": members}


def _labels(case: CaseReport) -> list[str]:
    """Return the labels of a case's cause, otherwise the kind of its failure; an empty list without both."""
    error = case["predicted"]["error"] if case["predicted"] is not None else None
    return cause_labels(case) or ([error["kind"]] if error is not None else [])


def _listed_problem(case: CaseReport, first_case: str | None) -> str:
    """Return what is wrong with an answer; for a repeated error, only which case above has the same error."""
    is_first = first_case in (None, case["nodeid"])
    return cut(problem_text(case) if is_first else f"the same error as {first_case}", TEXT_CHARACTERS)


def _first_change(case: CaseReport) -> list[str] | None:
    """Return the clause of the first edit, the predicted text and the corrected text.

    None if the edit changes no text.
    """
    edit = case["cause"]["edits"][0] if case["cause"] is not None else None
    before, arrow, after = edit["change"].partition(" → ") if edit is not None else ("", "", "")
    if edit is None or not arrow:  # the message of a failure, which is shown as it is
        return None
    parts = edit["clause"], *excerpts(before, after, CHANGE_CHARACTERS)
    return [cut("" if part == NOTHING else part, CHANGE_CHARACTERS) for part in parts]


def pieces(case_details: Iterable[object]) -> Iterator[tuple[int, str]]:
    """Yield JSON lists of case details of about PIECE_CHARACTERS, each with the index of its first case."""
    first, length = 0, 0
    piece: list[str] = []
    for number, details_of_case in enumerate(case_details):
        piece.append(json_text(details_of_case))
        length += len(piece[-1])
        if length >= PIECE_CHARACTERS:
            yield first, f"[{','.join(piece)}]"
            first, length, piece = number + 1, 0, []
    if piece:
        yield first, f"[{','.join(piece)}]"


def step_limit(cases: Iterable[CaseReport]) -> int:
    """Return how many characters the page shows of each input or output of a step.

    The limit shrinks until all steps fit into STEPS_BYTES, but not below FEWEST_CHARACTERS.
    """
    predictions = [
        prediction
        for case in cases
        for prediction in (case["prediction"], *(trial["prediction"] for trial in case["trials"]))
        if prediction is not None and "steps" in prediction
    ]
    limit = CONTENT_CHARACTERS
    while limit > FEWEST_CHARACTERS and not _do_steps_fit(predictions, limit):
        limit = 2 * limit // 3
    return limit


def _do_steps_fit(predictions: Iterable[PredictionReport], limit: int) -> bool:
    """Return whether all steps, with contents cut to `limit` characters, fit into STEPS_BYTES when compressed."""
    packer, size = zlib.compressobj(), 0
    for prediction in predictions:
        size += len(packer.compress(json_text(_steps(prediction, limit)).encode(errors="backslashreplace")))
        if size > STEPS_BYTES:
            return False
    return True


def _steps(prediction: PredictionReport, limit: int) -> list[StepReport]:
    return [shorten_step(step, limit, cut) for step in prediction.get("steps", ())[:STEPS_SHOWN]]


def packed_cases(report: Report) -> Iterator[tuple[int | None, str]]:
    """Yield the packed parts of a page: first None and the list, then each piece with the index of its first case."""
    yield None, pack(json_text(case_columns(report)))
    earlier = report["baseline"].get("earlier", {}) if "baseline" in report else {}
    limit = step_limit(report["cases"])
    yield from (
        (first, pack(piece))
        for first, piece in pieces(details(case, earlier.get(case["nodeid"]), limit) for case in report["cases"])
    )


def details(case: CaseReport, earlier: EarlierCase | None = None, limit: int = CONTENT_CHARACTERS) -> dict[str, object]:
    """Return what the page of a case shows besides the list, without empty fields.

    `earlier` is the case in the baseline. Inputs and outputs of steps have at most `limit` characters.
    """
    metric_details = {  # the story of a case has the others as its notes
        name: value
        for name, value in case["details"].items()
        if name not in ("notes", "violations", "expectations") or not isinstance(value, list)
    }
    difference = case["difference"]
    page: dict[str, object] = {
        **case,
        "question": _untruncated_text(case["question"]),
        "message": _untruncated_text(case["message"]),
        "why": problem_text(case) if case["outcome"] == "error" else _untruncated_text(problem_text(case)),
        "gold": _query_details(case["gold"], case["gold"] and answer_of(case["gold"])),
        "predicted": _query_details(case["predicted"], case["predicted"] and answer_of(case["predicted"])),
        "prediction": _prediction_details(case["prediction"], limit),
        "difference": difference and with_exact_numbers(excluding(difference, ["by_column"])),
        "by_column": difference and column_lines(difference.get("by_column", ())),
        "not_shown": difference and [f"{name}: {text}" for name, text in shares_shown(difference, difference).items()],
        "places": places
        if difference and len(places := shown_places(difference)) < len(difference.get("columns", ()))
        else None,
        "trials": [
            {
                **trial,
                "verdict": VERDICTS[trial["passed"]],
                "prediction": _prediction_details(trial["prediction"], limit),
            }
            for trial in case["trials"]
        ],
        "details": with_exact_numbers(metric_details),
        "notes": [(note.name, note.text) for note in notes(case)],
        "needs": {score.metric: score.needs for score in scores(case) if score.needs},
        "review": _untruncated_text(review_text(case)),
        "challenge": _challenge(case),
        "earlier": earlier,
    }
    return {name: value for name, value in page.items() if name not in NOT_DETAILS and value not in (None, "", [], {})}


def _challenge(case: CaseReport) -> dict[str, object] | None:
    """Return the result of a challenge in words, and its counterexample with exact numbers.

    None without a challenge.
    """
    if "challenge" not in case:
        return None
    counterexample = by_data(case["challenge"]).counterexample
    return {
        "text": challenge_text(case["challenge"]),
        "script": counterexample and counterexample["script"],
        "gold": counterexample and with_exact_numbers(counterexample["gold_rows"]),
        "predicted": counterexample and with_exact_numbers(counterexample["predicted_rows"]),
    }


def _untruncated_text(text: str) -> str:
    """Return the whole text if the list of cases shows only its beginning; otherwise an empty text."""
    return text if len(text) > TEXT_CHARACTERS else ""


def _query_details(query: QueryReport | None, answer: TableExcerpt | None) -> dict[str, object] | None:
    """Return a query's report with its answer's size in words, exact numbers, and three digits of time.

    None for None.
    """
    if query is None:
        return None
    words = {"shape": answer.shape, "more": answer.more} if answer is not None else {}
    return {
        **query,
        "sample": with_exact_numbers(query["sample"]),
        **words,
        "seconds": _short_seconds(query["seconds"]),
    }


def _prediction_details(prediction: PredictionReport | None, limit: int) -> dict[str, object] | None:
    """Return a prediction with exact numbers, three digits of time, and its first STEPS_SHOWN steps; None for None."""
    if prediction is None:
        return None
    steps: dict[str, object] = {}
    if "steps" in prediction:
        more = len(prediction["steps"]) - STEPS_SHOWN
        about = steps_text(prediction["steps"]) + (f"; the report has {more:,} more" if more > 0 else "")
        steps = {"steps": with_exact_numbers(_steps(prediction, limit)), "about_steps": about}
    metadata = with_exact_numbers(prediction["metadata"])
    return {**prediction, "metadata": metadata, **steps, "seconds": _short_seconds(prediction["seconds"])}


def _short_seconds(seconds: float) -> float:
    """Return seconds with three significant digits: the others are noise, which does not compress."""
    return float(f"{seconds:.3g}")
