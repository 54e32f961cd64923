"""Ranks the systems of several reports, and says what changed from the first of two to the second; also as a page."""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import realpath
from pathlib import Path
from typing import Literal

from pytest_queryeval.cli.output import Result, notifier, with_progress
from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.mappings import including
from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.history.leaderboard import (
    MIN_GROUP,
    Leaderboard,
    leaderboard,
    strip_prediction,
    strip_trials,
)
from pytest_queryeval.features.history.leaderboard_blocks import (
    check_targets,
    finding,
    json_document,
    leaderboard_blocks,
    leaderboard_csv,
    leaderboard_latex,
    markdown_document,
    missing_scores,
    note,
    other_metric_names,
    p_header,
    sides,
    suite_differences,
)
from pytest_queryeval.reports import write_files, write_whole
from pytest_queryeval.reports.blocks import Untrusted, text_lines
from pytest_queryeval.reports.html import SCRIPTS, Scale, View, assets, line, link, template
from pytest_queryeval.reports.html.case_list import case_columns, details, json_text, pack, pieces
from pytest_queryeval.reports.sections import CHANGE_NOTE, by_increase, changes_table, increased_most
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.baseline.pairs import score_of
from pytest_queryeval.results.case_store import fit_in_memory
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import cut, minute_of, one_line, p_text, pluralize, signed

EXAMPLE = "queryeval compare before.json after.json -o comparison.html"
OK, FAILED = 0, 1
# The formats of a comparison by suffix; that of a page shows the cases of the reports too.
FORMATS: Mapping[str, Callable[[Leaderboard, Mapping[str, Report]], bytes]] = {
    ".csv": lambda board, _: leaderboard_csv(board),
    ".html": lambda board, reports: comparison_page(board, reports),
    ".json": lambda board, _: json_document(board),
    ".md": lambda board, _: markdown_document(leaderboard_blocks(board)),
    ".tex": lambda board, _: leaderboard_latex(board),
}
HERE = Path(__file__).parent
MESSAGE_CHARACTERS = 1_000
MAX_PACKED = 1_100_000  # characters of all answers; later cases have queries only
WORDS: Mapping[Literal["regressed", "errors", "fixed", "worse", "better", "others"], str] = {
    "regressed": "regressed",
    "errors": "new error",
    "fixed": "fixed",
    "worse": "worse",
    "better": "better",
    "others": "differs",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for reports, `--by`, `--name` and `--output`."""
    parser.add_argument("base", type=Path, metavar="BASE.json", help="a report.json, the earlier one of two")
    parser.add_argument("others", nargs="+", type=Path, metavar="NEW.json", help="another report.json, or several")
    ranked = "the metric whose mean ranks the systems (default: %(default)s)"
    parser.add_argument("--by", metavar="METRIC", default=PASS_RATE, help=ranked)
    name = "call the system of this report NAME; may be given again (default: the name of its run)"
    parser.add_argument("--name", action="append", default=[], metavar="NAME=REPORT.json", help=name)
    output_help = f"write the comparison: PATH{', PATH'.join(FORMATS)}; may be given again"
    parser.add_argument("-o", "--output", action="append", type=Path, default=[], metavar="PATH", help=output_help)


def run(arguments: argparse.Namespace) -> Result:
    """Compare reports, write the comparison to the targets, and return it as lines and JSON.

    The exit status is 0 even if reports differ, and 1 if a target could not be written. Raise `ReportError` for a
    report that cannot be used. Also raise it for a target of another format, or that is one of the reports.
    """
    targets: Sequence[Path] = arguments.output
    paths = [arguments.base, *arguments.others]
    if twice := next((path for path, number in Counter(paths).items() if number > 1), None):
        raise ReportError(f"{twice}: is given twice: give reports of different runs")
    check_targets(targets, FORMATS, "comparison")
    for target in targets:
        if realpath(target) in map(realpath, paths):
            raise ReportError(f"{target}: is a report to compare, and would be lost: write to another file")
    names = _given_names(arguments.name, paths)
    has_page = any(target.suffix == ".html" for target in targets)
    tell = notifier("compare")
    reports = _reports_by_name(
        [
            (path, read_report(path) if has_page else read_report(path, transform=_without_answers))
            for path in with_progress(paths, tell, total=len(paths), noun="report")
        ],
        names,
    )
    if not all(fit_in_memory(report["cases"]) for report in reports.values()):
        tell(f"comparing {pluralize(sum(len(report['cases']) for report in reports.values()), 'case')}")
    try:
        board = leaderboard(reports, arguments.by)
        if len(reports) == 2:
            before, after = reports.values()
            baseline = compare_reports(before, after, path=str(arguments.base))
            board["baseline"] = {**baseline, "path": names.get(arguments.base, baseline["path"])}
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error
    written_files = write_files(targets, lambda target: write_whole(target, FORMATS[target.suffix](board, reports)))
    lines = [*text_lines(leaderboard_blocks(board), shutil.get_terminal_size().columns), *written_files.lines()]
    return Result(status=FAILED if written_files.problems else OK, lines=lines, data={**board, **written_files.data()})


def _without_answers(case: CaseReport) -> CaseReport:
    """Remove from a case, in place, all that only a page shows, and return it: all reports are in memory at once."""
    case["gold"], case["prediction"], case["scoring"], case["message"] = (
        None,
        strip_prediction(case["prediction"]),
        None,
        "",
    )
    case["trials"], case["violations"], case["details"] = strip_trials(case), [], {}
    if case["predicted"] is not None:
        case["predicted"]["sample"] = []
    if case["difference"] is not None:
        case["difference"] |= {"missing": [], "extra": [], "changed": [], "repeated": [], "by_column": []}
    return case


def _given_names(options: Sequence[str], paths: Sequence[Path]) -> dict[Path, str]:
    """Return the names that `--name` options give to systems, by the paths of their reports; both may contain a `=`.

    Raise `ReportError` for an option that names no report, an empty name, or a report twice.
    """
    names: dict[Path, str] = {}
    for option in options:
        ends = (place for place, character in enumerate(option) if character == "=")
        splits = [(option[:end].strip(), Path(option[end + 1 :])) for end in ends]
        name, path = next((split for split in splits if split[1] in paths), ("", None))
        if path is None:
            hint = did_you_mean(str(splits[0][1]), map(str, paths)) if splits else ""
            raise ReportError(f"--name {option}: names none of the reports{hint or ': write NAME=REPORT.json'}")
        if not name or path in names:
            raise ReportError(f"--name {option}: {'the name is empty' if not name else f'{path} has a name already'}")
        names[path] = one_line(name)
    return names


def _reports_by_name(path_reports: Sequence[tuple[Path, Report]], given_names: Mapping[Path, str]) -> dict[str, Report]:
    """Return the reports by the given names, else by those of their runs.

    Equal names get the time of their run appended, if still equal the path; as a last resort, paths are the names.
    """
    names = [given_names.get(path, report["name"]) for path, report in path_reports]
    for additions in ([minute_of(report["created"]) for _, report in path_reports], [path for path, _ in path_reports]):
        numbers = Counter(names)
        names = [f"{name} ({more})" if numbers[name] > 1 else name for name, more in zip(names, additions, strict=True)]
    if len(set(names)) < len(names):  # a run has the name that an option gives to another one
        names = [str(path) for path, _ in path_reports]
    return {name: report for name, (_, report) in zip(names, path_reports, strict=True)}


def comparison_page(board: Leaderboard, reports: Mapping[str, Report]) -> bytes:
    """Return the HTML page of a comparison, with the differing cases of `reports`.

    Untrusted text is escaped, or packed in base64. Queries and answers of later cases are left out if they are too
    large.
    """
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
        missing_scores=list(missing_scores(board)),
        besides=list(suite_differences(board["systems"])),
        min_group=MIN_GROUP,
        metrics=other_metric_names(board["systems"]),
        metric_changes=changes_table(board["baseline"]) if "baseline" in board else None,
        change_note=CHANGE_NOTE,
        increased=increased_most(board["baseline"]["causes"]) if "baseline" in board else None,
        link=link,
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
    """Yield the packed parts of a page: first, with None, the list of cases that differ.

    Pieces of their queries and answers follow, each with the index of its first case, until MAX_PACKED is reached.
    """
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
        "earlier": {},
        "causes": {name: [*change.values()] for name, change in by_increase(board["baseline"]["causes"]).items()}
        if "baseline" in board
        else {},
        "worst": [],
        "views": {name: [places[nodeid] for nodeid in board["differing"][name]] for name in WORDS},
        "systems": names,
    }
    yield None, pack(json_text(compared_cases))
    characters_left = MAX_PACKED
    for first, piece in pieces(_case_details(system_cases) for system_cases in zip(*cases, strict=True)):
        text = pack(piece)
        characters_left -= len(text)
        if characters_left < 0:
            break
        yield first, text


def _case_details(cases: Sequence[CaseReport]) -> dict[str, object]:
    """Return what the page of a case shows; `cases` contains the case as each system reports it."""
    return {
        **including(details(cases[0]), ("question", "evidence", "gold")),
        "systems": [
            {
                "outcome": case["outcome"],
                "message": cut(case["message"], MESSAGE_CHARACTERS),
                **including(details(case), ("predicted", "difference")),
            }
            for case in cases
        ],
    }
