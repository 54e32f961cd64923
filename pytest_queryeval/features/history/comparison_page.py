"""A comparison of systems as a page: the ranking, who wins where, and the cases on which systems differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.history.leaderboard import MIN_GROUP, Leaderboard
from pytest_queryeval.features.history.leaderboard_blocks import (
    coverage,
    finding,
    note,
    other_metric_names,
    p_header,
    sides,
    suite_differences,
)
from pytest_queryeval.reports.blocks import Untrusted
from pytest_queryeval.reports.html import SCRIPTS, Scale, View, assets, line, template
from pytest_queryeval.reports.html.case_list import case_columns, details, json_text, pack, pieces
from pytest_queryeval.reports.sections import CHANGE_NOTE, changes_table, p_text
from pytest_queryeval.results.baseline.pairs import score_of
from pytest_queryeval.text.formatting import cut, minute_of, signed

HERE = Path(__file__).parent
MESSAGE_CHARACTERS = 1_000
MAX_PACKED = 1_100_000  # characters of all answers; later cases have queries only
WORDS: Mapping[Literal["regressed", "errors", "fixed", "worse", "better", "others"], str] = {
    "regressed": "regressed",
    "errors": "newly in error",
    "fixed": "fixed",
    "worse": "worse",
    "better": "better",
    "others": "differs",
}


def comparison_page(board: Leaderboard, reports: Mapping[str, Report]) -> bytes:
    """Return the HTML of a comparison. Text from a model or a database is escaped, or packed in base64."""
    ranked = {system["name"]: system for system in board["systems"] if system["score"]}
    scores = [score for system in board["systems"] if (score := system["score"])]
    changes = [change for system in board["systems"] if (change := system["difference"])]
    numbers = {name: len(board["differing"][name]) for name in WORDS if board["differing"][name]}
    first = next(iter(numbers), "all")
    counts = (*((name, WORDS[name], number) for name, number in numbers.items()), ("all", "all", sum(numbers.values())))
    text = template(HERE / "comparison.html.jinja").render(
        board=board,
        title=line("".join(finding(board))),
        finding=finding(board),
        is_untrusted=lambda part: isinstance(part, Untrusted),
        ranked=ranked,
        means=Scale.over([end for score in scores for end in (score["mean"], *(score["ci95"] or ()))] or [0.0]),
        differences=Scale.over(
            [0.0, *(end for difference in changes for end in (difference["change"], *(difference["ci95"] or ())))]
        ),
        note=note(board),
        coverage=list(coverage(board)),
        besides=list(suite_differences(board["systems"])),
        min_group=MIN_GROUP,
        metrics=other_metric_names(board["systems"]),
        metric_changes=changes_table(board["baseline"]) if "baseline" in board else None,
        change_note=CHANGE_NOTE,
        signed=signed,
        p_text=p_text,
        p_header=p_header(board),
        views=[
            View(name=name, words=words.capitalize(), count=number, is_first=name == first)
            for name, words, number in counts
        ],
        created={name: minute_of(report["created"]) for name, report in reports.items()},
        sides=sides(board),
        packed=list(_packed(board, reports, [name for name in reports if name in ranked] or list(reports))),
        **assets(*SCRIPTS[:-1], HERE / "compared_case.js", SCRIPTS[-1]),
    )
    return text.encode(errors="backslashreplace")


def _packed(
    board: Leaderboard, reports: Mapping[str, Report], names: Sequence[str]
) -> Iterator[tuple[int | None, str]]:
    """Yield the packed parts of a page: the list of cases that differ, then pieces of their queries and answers."""
    changes = {nodeid: name for name in WORDS for nodeid in board["differing"][name]}
    places = {nodeid: place for place, nodeid in enumerate(changes)}
    by_nodeid = [
        {case["nodeid"]: case for case in reports[name]["cases"] if case["nodeid"] in changes} for name in names
    ]
    cases = [[report_cases[nodeid] for nodeid in changes] for report_cases in by_nodeid]
    lists = [
        case_columns({**reports[name], "cases": report_cases}) for name, report_cases in zip(names, cases, strict=True)
    ]
    whys = zip(*(case_list["why"] for case_list in reversed(lists)), strict=True)
    scores = {
        name: [score_of(board["metric"], case) for case in report_cases]
        for name, report_cases in zip(names, cases, strict=True)
    }
    compared_cases = {
        **lists[-1],
        "outcome": [WORDS[name] for name in changes.values()],
        "why": [next(filter(None, texts), "") for texts in whys],
        "scores": scores,
        "worst": [],
        "views": {name: [places[nodeid] for nodeid in board["differing"][name]] for name in WORDS},
        "systems": names,
    }
    yield None, pack(json_text(compared_cases))
    characters_left = MAX_PACKED
    for first, piece in pieces(_details(system_cases) for system_cases in zip(*cases, strict=True)):
        text = pack(piece)
        characters_left -= len(text)
        if characters_left < 0:
            break
        yield first, text


def _details(cases: Sequence[CaseReport]) -> dict[str, object]:
    """Return what the page of a case shows of all systems."""
    return {
        **{name: value for name, value in details(cases[0]).items() if name in ("question", "evidence", "gold")},
        "systems": [
            {
                "outcome": case["outcome"],
                "message": cut(case["message"], MESSAGE_CHARACTERS),
                **{name: value for name, value in details(case).items() if name in ("predicted", "difference")},
            }
            for case in cases
        ],
    }
