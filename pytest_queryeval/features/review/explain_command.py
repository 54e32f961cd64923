"""Shows everything about one case: both queries, their answers and scores, and where its settings come from.

The case is run, unless a report is given. With --query it is run with this query as the prediction. If a prediction is
right, `explain` looks for a small database on which it is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_queryeval.cli.conftests import import_conftests
from pytest_queryeval.cli.output import Result, wrap_write_errors
from pytest_queryeval.core.case_report import CaseReport, Row
from pytest_queryeval.core.errors import QueryEvalError, SourceError
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.core.model import Case, QueryOrAnswer, Threshold
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import entries, json_value
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import VARIANTS
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.named_case import case_of, match_nodeid, read_reported, read_suite
from pytest_queryeval.features.strength.counterexample import find_counterexample
from pytest_queryeval.reports.blocks import Block, Table, Untrusted, text_lines
from pytest_queryeval.reports.story import (
    ARROW,
    CAUSE_DIRECTION,
    CELL_CHARACTERS,
    DIFFERENCE_DIRECTION,
    Differences,
    Ending,
    Fact,
    Notes,
    Scores,
    StoryCause,
    StoryChallenge,
    StoryQuery,
    StorySteps,
    TableExcerpt,
    Trials,
    answer_of,
    case_story,
    edit_line,
    step_line,
)
from pytest_queryeval.results.case_json import CounterexampleReport, counterexample_json, is_whole
from pytest_queryeval.runs.evaluate import NamedCase, evaluate_named_case
from pytest_queryeval.suites import CaseLevels, load_suites, read_levels
from pytest_queryeval.suites.effects import MERGED, SettingPath
from pytest_queryeval.suites.keys import KEYS
from pytest_queryeval.text.formatting import (
    cell_text,
    format_score,
    one_line,
    one_line_with_end,
    pluralize,
    terminal_safe,
)

EXAMPLE = "queryeval explain shop.queryeval.yaml::cheapest --query 'SELECT min(price) FROM product'"
OK, NOT_PASSED = 0, 1
VALUE_CHARACTERS = 200
HIDDEN = frozenset({"sources", "predictor", "cases", "gates"})  # their values may be long, or secret
DEFAULT = "default"
LINE_CHARACTERS = 1_000
STEP_CHARACTERS = 100  # of an input or an output
MARGIN = "  | "
INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting that applies to a case, as text, and the place that states it."""

    key: str
    value: str
    path: str | None
    """The file that states it; None for a default."""
    line: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments REPORT.json, CASE, `--query` and `--save`."""
    report_help = "show the case as in this report"
    parser.add_argument("report", nargs="?", type=Path, metavar="REPORT.json", help=report_help)
    case_help = "a node id (FILE::ID), or an id that only one case of the report, or below the current folder, has"
    parser.add_argument("case", metavar="CASE", help=case_help)
    parser.add_argument("--report", type=Path, dest="report_option", help=argparse.SUPPRESS)  # the same as REPORT.json
    parser.add_argument("--query", metavar="TEXT", help="run the case with this query as the prediction")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the counterexample, for use as a variant")


def run(arguments: argparse.Namespace) -> Result:
    """Return everything about a case, as lines and as JSON; without a report, the case is run.

    With `--query`, the case is run with this query as its prediction. If the prediction is right, a counterexample is
    searched for, and written to `--save`. The exit status is 1 if the case failed, missed a threshold, or ended in an
    error. Raise `ReportError` for an unknown case, and `SuiteError` for a suite that cannot be read.
    """
    reported: CaseReport | None = None
    if (report := arguments.report or arguments.report_option) is not None:
        reported = read_reported(report, arguments.case)
    path, id_ = (Path(reported["path"]), reported["id"]) if reported else _path_and_id(arguments.case)
    levels: CaseLevels | None = None
    case: Case | None = None
    try:
        suite = read_suite(path)
        case = case_of(suite, id_)
        levels = next(levels for levels in read_levels(suite) if levels.case is case)
    except QueryEvalError:
        if reported is None or arguments.query is not None:
            raise
    if case is not None and (reported is None or arguments.query is not None):
        if arguments.query is not None:
            query = QueryOrAnswer(query=arguments.query)
            of_case = replace(case.settings, predictor=None, trials=1)
            case = replace(case, predicted=query, settings=of_case, skip=None)
        with Session() as session:
            session.register_cases([case] if arguments.query is not None else suite.cases)
            named_case = NamedCase(case, f"{path.as_posix()}::{id_}", case.location.path.as_posix())
            reported = evaluate_named_case(named_case, session)
        if arguments.query is not None and reported["prediction"] is not None:
            reported["prediction"] = {**reported["prediction"], "source": "--query"}
    assert reported is not None
    settings = [] if levels is None else list(_settings(levels))
    is_challenged = "challenge" in reported and arguments.save is None
    counterexample = None if is_challenged else _counterexample(reported, case)
    lines = [
        *explanation_lines(reported, shutil.get_terminal_size().columns),
        *_counterexample_lines(counterexample, case, arguments.save),
    ]
    if settings:
        wide = max(len(setting.key) for setting in settings)
        lines += ["", "settings"]
        for setting in settings:
            place = DEFAULT if setting.path is None else f"{setting.path}:{setting.line}"
            lines.append(f"  {setting.key:<{wide}}  {one_line(setting.value, VALUE_CHARACTERS)}  ({place})")
    lines += _remarks(case, levels, reported)
    return Result(
        status=NOT_PASSED if reported["outcome"] in ("failed", "missed", "error") else OK,
        lines=lines,
        data={
            "case": reported,
            "counterexample": counterexample,
            "settings": [
                {"key": setting.key, "value": setting.value, "path": setting.path, "line": setting.line}
                for setting in settings
            ],
        },
    )


def _remarks(case: Case | None, levels: CaseLevels | None, reported: CaseReport) -> Iterator[str]:
    """Yield what to do about a missing prediction, and a remark if settings cannot be shown."""
    is_answered = reported["prediction"] is not None  # maybe by a hook, or by the predictor of another run
    if case is not None and case.predicted is None and case.settings.predictor is None and not is_answered:
        yield ""
        yield "there is no prediction: add `predicted` or a `predictor`, or try a query with --query 'SELECT …'"
    if levels is None:
        yield ""
        yield "the suite cannot be read from here, so that its settings are not shown"


def _counterexample(reported: CaseReport, case: Case | None) -> CounterexampleReport | None:
    """Search for a database on which a right prediction differs from gold; return it, or a note on the search.

    None if there is nothing to search for: the prediction is not right, or the queries are the same, not known as a
    whole, or run on different sources, or the source is a service.
    """
    gold, predicted = (side and side["query"] for side in (reported["gold"], reported["predicted"]))
    if case is None or case.settings.source is None or ENGINES[case.settings.source.engine].build is None:
        return None
    if not gold or not predicted or gold.split() == predicted.split() or case.settings.gold_source is not None:
        return None
    if not (is_whole(gold) and is_whole(predicted)) or reported["scores"].get("execution_accuracy") != 1.0:
        return None
    form = ENGINES[case.settings.source.engine].variants
    with Session() as session:
        try:
            result = find_counterexample(case, gold, predicted, session)
        except SourceError as error:
            return counterexample_json(None, f"not looked for: {error}", case)
    shown = result.counterexample or result.ruled_out
    if shown is None:
        return counterexample_json(
            None, f"no difference found in {pluralize(result.tried, f'small {form.name}')}", case
        )
    note = f"the answers agree on the source, and differ on {pluralize(shown.size, form.unit)}"
    violation = ":" if result.counterexample is not None else ", which violate what your data satisfies:"
    return counterexample_json(shown, f"{note}{violation}", case)


def _counterexample_lines(
    counterexample: CounterexampleReport | None, case: Case | None, file: Path | None
) -> Iterator[str]:
    """Yield the lines of a counterexample, and how to use it as a variant of the source.

    Unless `file` is None, the counterexample is written to it. Raise `QueryEvalError` if the file exists or cannot be
    written.
    """
    if counterexample is None or case is None or case.settings.source is None:
        if file is not None:
            yield from ("", f"no counterexample to save as {file}")
        return
    form = ENGINES[case.settings.source.engine].variants
    suffix = form.suffix(case.settings.source.settings)
    width = shutil.get_terminal_size().columns
    yield from ("", "counterexample", f"{INDENT}{one_line(counterexample['note'], LINE_CHARACTERS)}")
    for table in counterexample["tables"]:
        yield f"{INDENT}table {one_line(table['name'], CELL_CHARACTERS)}"
        yield from _row_lines(table["columns"], table["rows"], width)
    for name, query in (("gold", counterexample["gold"]), ("predicted", counterexample["predicted"])):
        if query is not None and (answer := answer_of(query)) is not None:
            yield f"{INDENT}{name} answers"
            yield from _answer_lines(answer, width)
    if not counterexample["script"]:
        return
    if file is None:
        yield f"  to keep it as a variant of the source: --save FILE{suffix}"
        return
    source = one_line(case.settings.source.name)
    head = f"{form.comment} A variant of {source}: here, gold and a prediction of {case.id} differ.\n\n"
    with wrap_write_errors(file):
        if file.exists():
            raise QueryEvalError(f"{file}: already exists: name another file")
        write_atomically(file, f"{head}{counterexample['script']}".encode())
    pattern = case.settings.source.settings.get(VARIANTS)
    path = Path(os.path.relpath(file, case.settings.source.folder)).as_posix()
    use = f'add to the source: variants: "{path}"' if pattern is None else f'its variants, "{pattern}", must include it'
    yield f"  saved as {file}; to use it with the source, {use}"


def _path_and_id(name: str) -> tuple[Path, str]:
    """Return the suite file and the id of a case by its node id, or by an id that is unique below the current folder.

    Raise `ReportError` if an id is unknown or not unique.
    """
    path, is_nodeid, id_ = name.partition("::")
    if is_nodeid:
        return Path(path), id_
    current_folder = Path.cwd()
    import_conftests(current_folder)
    suites = load_suites(current_folder, require_prediction=False)
    paths = {suite.path: suite.path.relative_to(current_folder).as_posix() for suite in suites}
    nodeid = match_nodeid([f"{paths[suite.path]}::{case.id}" for suite in suites for case in suite.cases], name)
    return Path(nodeid.partition("::")[0]), name


def _settings(levels: CaseLevels) -> Iterator[Setting]:
    """Yield the settings that apply to a case; each entry of a merged key is a setting of its own.

    Keys in HIDDEN are left out, sources are shown by name, and defaults of important keys are added.
    """
    settings: dict[str, Setting] = {}
    case = levels.case
    for level in levels.all:
        for key, node in entries(level).items():
            inheritance = KEYS[key].inheritance
            if inheritance in ("own", "by group") or key in HIDDEN:
                continue
            if inheritance == "merged":
                settings |= {name: _setting(name, at) for name, at in _merged_entries(node, (key,))}
            elif inheritance == "added":
                settings[f"{key} {node.location}"] = _setting(key, node)
            else:
                settings[key] = _setting(key, node)
    for key, source in (("source", case.settings.source), ("gold_source", case.settings.gold_settings.source)):
        place = settings.get(key)
        if source is not None and (place or key == "source"):  # by its name, as its settings may be secret
            settings[key] = Setting(
                key=key, value=source.name, path=place.path if place else None, line=place.line if place else 0
            )
    defaults = {
        "metrics": list(case.settings.metrics),
        "timeout": case.settings.timeout,
        "max_rows": case.settings.max_rows,
        "on_miss": case.settings.on_miss,
    }
    for key, value in defaults.items():
        if key not in settings:
            settings[key] = _default_setting(key, value)
    yield from settings.values()
    yield from _thresholds(levels)


def _merged_entries(node: Node, path: SettingPath) -> Iterator[tuple[str, Node]]:
    """Yield the names, as in `key: name`, and nodes of a merged key's entries, also within merged mappings."""
    for name, at in entries(node).items():
        if (*path, name) in MERGED and at.value:
            yield from _merged_entries(at, (*path, name))
        else:
            yield ": ".join((*path, name)), at


def _thresholds(levels: CaseLevels) -> Iterator[Setting]:
    """Yield the thresholds that apply to a case, or the setting that removes all of them."""
    nodes = [entries(level)["thresholds"] for level in reversed(levels.all) if "thresholds" in entries(level)]
    thresholds = levels.case.settings.thresholds
    for name, threshold in thresholds.items():
        node = next((entries(node)[name] for node in nodes if name in entries(node)), None)
        key = f"thresholds: {name}"
        yield _default_setting(key, _as_written(threshold)) if node is None else _setting(key, node)
    if nodes and not thresholds:
        yield _setting("thresholds", nodes[0])


def _default_setting(key: str, value: object) -> Setting:
    return Setting(key=key, value=value if isinstance(value, str) else json.dumps(value), path=None, line=0)


def _as_written(threshold: Threshold) -> float | dict[str, float]:
    """Return a threshold in the form of suites: the number alone if it is a minimum, else a mapping."""
    if threshold.minimum is not None and threshold.maximum is None:
        return threshold.minimum
    limits = {"min": threshold.minimum, "max": threshold.maximum}
    return not_none(limits)


def _setting(key: str, node: Node) -> Setting:
    value = node.value if isinstance(node.value, str) else json.dumps(json_value(node), ensure_ascii=False)
    return Setting(key=key, value=one_line(value), path=node.location.path.as_posix(), line=node.line)


def explanation_lines(case: CaseReport, width: int) -> Iterator[str]:
    """Yield the lines for all parts of the story of a case.

    A margin precedes untrusted text of several lines. Tables keep within `width` if their cells allow it.
    """
    for part in case_story(case):
        match part:
            case Ending():
                reason = part.reason and f": {part.reason}"
                yield one_line(f"{case['nodeid']}: {part.outcome}{reason}", LINE_CHARACTERS)
            case Fact():
                yield f"{INDENT}{part.name:<10} {one_line(part.text, LINE_CHARACTERS)}"
            case StorySteps(summary=summary, steps=steps):
                yield from ("", f"steps ({summary})")
                for number, step in enumerate(steps, start=1):
                    yield f"{INDENT}{number:>3} {one_line(step_line(step, STEP_CHARACTERS), LINE_CHARACTERS)}"
            case _:
                yield from ("", *_part_lines(part, width))


def _part_lines(
    part: StoryQuery | StoryCause | StoryChallenge | Differences | Notes | Scores | Trials, width: int
) -> Iterator[str]:
    """Yield the title of a part of the story, then its lines: queries behind a margin, and tables within `width`."""
    match part:
        case StoryQuery(name=name, origin=origin):
            yield one_line(f"{name}{origin and f', {origin}'}")
            yield from [f"{MARGIN}(a stored answer)"] if part.text is None else _text_lines(part.text)
            if part.answer is not None:
                yield from _answer_lines(part.answer, width)
            if part.failure:
                yield f"{INDENT}{one_line(part.failure, LINE_CHARACTERS)}"
        case StoryCause(cause=cause):
            repaired_query = cause["repaired_query"]
            is_tested = cause.get("tested") or repaired_query is None
            direction = f", {CAUSE_DIRECTION}" if any(ARROW in edit["change"] for edit in cause["edits"]) else ""
            yield f"cause{direction}{'' if is_tested else ' (compared on the source only)'}"
            yield from (f"{INDENT}{edit_line(edit, LINE_CHARACTERS)}" for edit in cause["edits"])
            yield from _text_lines(repaired_query) if repaired_query is not None else ()
        case StoryChallenge(summary=summary, counterexample=counterexample):
            yield "challenge"
            yield f"{INDENT}{one_line(summary, LINE_CHARACTERS)}"
            yield from _text_lines(counterexample["script"]) if counterexample is not None else ()
        case Differences(rows=rows):
            yield f"difference, {DIFFERENCE_DIRECTION}" if part.by_column else "difference"
            yield f"{INDENT}{one_line(part.summary, LINE_CHARACTERS)}"
            yield from (f"{INDENT}{one_line(text, LINE_CHARACTERS)}" for text in part.by_column)
            width_of_rows = len(part.columns)
            header = ["", *map(Untrusted, part.columns)]
            cells = [(row.times or row.label, *_cell_texts(row.row, width_of_rows)) for row in rows]
            yield from _indented([Table(header, cells)], width) if rows else ()
            yield from (f"{INDENT}{text}" for text in part.not_shown)
        case Notes(notes=notes):
            yield "notes"
            yield from (f"{INDENT}{note.name:<10} {one_line_with_end(note.text, LINE_CHARACTERS)}" for note in notes)
        case Scores(scores=scores):
            yield "scores"
            cells = [(Untrusted(score.metric), format_score(score.value), score.needs) for score in scores]
            yield from _indented([Table(("metric", "score", "needs"), cells)], width)
        case Trials(trials=trials):
            yield "trials"
            cells = [
                (f"trial {number}", trial.verdict, *map(format_score, trial.scores.values()))
                for number, trial in enumerate(trials, start=1)
            ]
            yield from _indented([Table(("trial", "", *map(Untrusted, trials[0].scores)), cells)], width)


def _answer_lines(answer: TableExcerpt, width: int) -> Iterator[str]:
    yield f"{INDENT}{answer.shape}, {answer.ran}"
    if answer.rows and answer.columns:
        yield from _row_lines(answer.columns, answer.rows, width)
    if answer.rows and answer.more:
        yield f"{INDENT}{answer.more}"


def _text_lines(query: str) -> Iterator[str]:
    return (f"{MARGIN}{line}".rstrip() for line in terminal_safe(query).strip("\n").splitlines() or [""])


def _row_lines(columns: Iterable[str], rows: Iterable[Row], width: int) -> Iterator[str]:
    header = [Untrusted(name) for name in columns]
    return _indented([Table(header, [_cell_texts(row, len(header)) for row in rows])], width)


def _cell_texts(row: Row, width: int) -> list[str]:
    """Return exactly `width` texts for the cells of a row, filled up with empty texts or cut."""
    return [*(cell_text(cell, CELL_CHARACTERS) for cell in row), *[""] * width][:width]


def _indented(blocks: Iterable[Block], width: int) -> Iterator[str]:
    return (f"{INDENT}{line}" for line in text_lines(blocks, width - len(INDENT)))
