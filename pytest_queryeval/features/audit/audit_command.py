"""Estimates how many answers of a system are right, and how often the verdict on them is wrong, from a few judgements.

First `--draw` draws cases at random. People judge the answers to them without seeing gold or verdict. Then `--judged`
prints what follows for all cases of the run; for two reports, by how much the second is better.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_queryeval.cli.output import Result, wrap_write_errors
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.features.audit.estimates import AuditReport, VerdictsReport, audit_report, not_counted_text
from pytest_queryeval.features.audit.strata import AnsweredCase, answered_cases, draw, strata_of
from pytest_queryeval.results.audit_file import read_audit
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval audit report.json --draw 100 -o audit.jsonl"
OK = 0
MAX_SYSTEMS = 2


@dataclass(frozen=True, slots=True)
class DrawSize:
    """The number of cases to draw, and the seed of the random draw."""

    number: int
    seed: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: the reports, and either the size of a draw or the file of judgements."""
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.json", help="a report.json, or two to compare")
    step = parser.add_mutually_exclusive_group(required=True)
    draw_help = "draw N cases to be judged, or all if there are fewer; another SEED than 0 gives another draw"
    step.add_argument("--draw", type=_draw_size, metavar="N[:SEED]", help=draw_help)
    judged_help = "what follows from the judgements in the file of a draw"
    step.add_argument("--judged", type=Path, metavar="AUDIT.jsonl", help=judged_help)
    parser.add_argument("-o", "--output", type=Path, metavar="AUDIT.jsonl", help="where a draw is written: a new file")


def _draw_size(text: str) -> DrawSize:
    number, _, seed = text.partition(":")
    try:
        size = DrawSize(int(number), int(seed or 0))
    except ValueError:
        size = DrawSize(0, 0)
    if size.number < 1:
        raise argparse.ArgumentTypeError(f"write a number of cases, such as 100, or with a seed, 100:7, not '{text}'")
    return size


def run(arguments: argparse.Namespace) -> Result:
    """Write a draw, or return the estimates that follow from the judgements; the status is always 0.

    Raise `ReportError` for options that do not fit, and for a report or draw that cannot be used. Raise `CaseError` for
    a damaged line of an audit file.
    """
    paths: Sequence[Path] = arguments.reports
    if len(paths) > MAX_SYSTEMS:
        raise ReportError(f"an audit is about one report, or two: {len(paths)} are given")
    if len(paths) != len({path.resolve() for path in paths}):
        raise ReportError(f"{paths[0]}: is given twice: give reports of different systems")
    output: Path | None = arguments.output
    if (output is None) == (arguments.judged is None):
        raise ReportError(
            "--draw needs `-o AUDIT.jsonl`, where the drawn cases are written"
            if output is None
            else "-o is for a draw: what `--judged` says is printed, and with --json as JSON"
        )
    if output is not None and output.exists():
        raise ReportError(f"{output}: already exists, and may have judgements: name a new file")
    reports = [read_report(path) for path in paths]
    cases, left_out_counts = answered_cases(reports)
    if output is not None:
        return _write_draw(cases, left_out_counts, arguments.draw, output)
    names = [one_line(report["name"]) for report in reports]
    if len({*names}) < len(names) or not all(names):
        names = [one_line(str(path)) for path in paths]
    audit = read_audit(arguments.judged)
    report = audit_report(cases, audit, names, left_out_counts)
    counted_number = len(audit.cases) - sum(report["not_counted"].values()) + audit.undrawn
    lines = [*report_lines(report)]
    if counted_number < len(audit.cases) / 2:
        lines.insert(
            0,
            f"only {counted_number:,} of the {pluralize(len(audit.cases), 'drawn case')} could be counted: "
            "give the report that the draw was made from, or draw again",
        )
    return Result(status=OK, lines=lines, data=report)


def _write_draw(
    cases: Mapping[str, AnsweredCase], left_out_counts: Counter[str], size: DrawSize, output: Path
) -> Result:
    """Draw cases, write them to a new file as JSON lines, and return how many were drawn from which strata."""
    drawn_cases = draw(cases, size.number, size.seed)
    drawn_lines = (
        {
            "case": case.id,
            "nodeid": case.nodeid,
            "stratum": case.stratum,
            "probability": case.probability,
            "predictions": case.predictions,
        }
        for case in drawn_cases
    )
    with wrap_write_errors(output):
        write_atomically(output, (f"{json.dumps(line, ensure_ascii=False)}\n".encode() for line in drawn_lines))
    drawn_numbers = Counter(case.stratum for case in drawn_cases)
    strata = [
        {"name": stratum, "cases": len(nodeids), "drawn": drawn_numbers[stratum]}
        for stratum, nodeids in strata_of(cases).items()
    ]
    answers = sum(len(case.predictions) for case in drawn_cases)
    strata_text = ", ".join(f"{stratum['drawn']:,} of {stratum['cases']:,} {stratum['name']}" for stratum in strata)
    answers_text = f", {pluralize(answers, 'answer')}" if answers > len(drawn_cases) else ""
    lines = [
        f"{output}: {pluralize(len(drawn_cases), 'case')} to judge{answers_text}: {strata_text}",
        f"judge them: queryeval review --audit {output} --serve",
    ]
    if unjudged_count := sum(answer.is_right is not None for case in cases.values() for answer in case.answers):
        lines.insert(1, f"not to judge: {pluralize(unjudged_count, 'answer')} that failed or abstained")
    return Result(
        status=OK,
        lines=[*lines, *_left_out_lines(left_out_counts)],
        data={
            "file": str(output),
            "seed": size.seed,
            "drawn": len(drawn_cases),
            "answers": answers,
            "strata": strata,
            "left_out": left_out_counts,
        },
    )


def report_lines(report: AuditReport) -> Iterable[str]:
    """Yield the lines of text about an audit, the main result first."""
    if "systems" in report:
        first, second = (system["name"] for system in report["systems"])
        value, (low, high) = report["audited"]["value"], report["audited"]["ci95"]
        if low == high == 0:
            finding = f"{second} has as many right answers as {first} ({report['judged']:,} judged)"
        else:
            doubt = ": either may be better" if low < 0 < high else ""
            finding = (
                f"{second} has about {_percent(abs(value))} percentage points {'fewer' if value < 0 else 'more'} right "
                f"answers than {first} ({_percent(low)} to {_percent(high)}; {report['judged']:,} judged){doubt}"
            )
        yield f"{finding}; the automatic verdict says {_percent(report['measured'])}"
        for system in report["systems"]:
            yield f"{system['name']}: {_system_line(system)}"
    else:
        line = _system_line(report, judged=report["judged"])
        yield line[0].upper() + line[1:]
    if bounds := report["audited"]["bounds"]:
        contradictory = f", of which reviewers contradict each other on {report['contradictory']}"
        yield (
            f"left out as unclear: {pluralize(report['unclear'], 'answer')}"
            f"{contradictory if report['contradictory'] else ''}; "
            f"if all of them are wrong or all are right: {_percent(bounds[0])} to {_percent(bounds[1])} %"
        )
    if agreement := report["agreement"]:
        yield (
            f"reviewers agree in {100 * agreement['share']:.0f} % of their judgements on the "
            f"{pluralize(agreement['answers'], 'answer')} that several judged"
        )
    if report["to_halve"] is not None:
        yield f"to halve the interval, judge about {pluralize(report['to_halve'], 'more case')}"
    if report["pending"]:
        yield f"not judged yet: {pluralize(report['pending'], 'drawn answer')}"
    if report["not_counted"]:
        yield f"not counted: {not_counted_text(report['not_counted'])}"
    yield from _left_out_lines(report["left_out"])


def _system_line(system: VerdictsReport, *, judged: int = 0) -> str:
    low, high = system["audited"]["ci95"]
    judged_text = f"; {judged:,} judged" if judged else ""
    mistakes = [
        f"{_percent(share['value'])} % of the {truth} answers {mark} "
        f"({' to '.join(_percent(limit) for limit in share['ci95'])})"
        for truth, mark, share in (
            ("right", "wrong", system["wrongly_missed"]),
            ("wrong", "right", system["wrongly_passed"]),
        )
        if share is not None
    ]
    return (
        f"about {_percent(system['audited']['value'])} % of the answers are right "
        f"({_percent(low)} to {_percent(high)}{judged_text}); "
        f"the automatic verdict says {_percent(system['measured'])} %: it marks {' and '.join(mistakes)}"
    )


def _left_out_lines(left_out_counts: Mapping[str, int]) -> Iterable[str]:
    if left_out_counts:
        yield f"left out: {', '.join(f'{number:,} {reason}' for reason, number in left_out_counts.items())}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
