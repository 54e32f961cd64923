"""The verdict of a run, the rule that decided, and the worst cases: what every short report begins with."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from pytest_queryeval.core.report import CaseReport, GateReport, Report
from pytest_queryeval.results.aggregation import TOTAL_OF, costs
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.text.plain import counted

PASSED, FAILED, INTERRUPTED, NO_VERDICT = "PASSED", "FAILED", "INTERRUPTED", "NO VERDICT"
COLOURS = {PASSED: "green", FAILED: "red", INTERRUPTED: "red", NO_VERDICT: "yellow"}
LISTED = 3  # changes besides the system
FAULTS = ("error", "failed", "missed")
Quote: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The state of a run, the counts of cases and of what is wrong beside them, and the rule that decided."""

    state: str
    counts: str
    rule: str

    @property
    def is_faulty(self) -> bool:
        """Whether the exit status is that of a failed run."""
        return self.state in (FAILED, INTERRUPTED)

    @property
    def is_good(self) -> bool:
        """Whether cases were evaluated, gates as well where there are any, and nothing is wrong."""
        return self.state == PASSED

    @property
    def line(self) -> str:
        """The verdict in one line."""
        says_all = self.state in (FAILED, NO_VERDICT)
        return f"queryeval: {self.state}: {self.rule if says_all else f'{self.counts} ({self.rule})'}"


def verdict(report: Report, quoted: Quote = str) -> Verdict:
    """The verdict of a run, as its exit status is; `quoted` is done to what the suites or a model wrote."""
    state, rules = _decided(report, quoted)
    counts = ", ".join([counts_of_cases(report), *_counts_beside(report, quoted)])
    return Verdict(state=state, counts=counts, rule="; ".join(rules))


def _decided(report: Report, quoted: Quote) -> tuple[str, list[str]]:
    """The state of the run, and by which rules."""
    totals, gates = report["totals"], report["gates"]
    faults = list(_faults(report, quoted))
    if report.get("interrupted"):
        return INTERRUPTED, ["the run was interrupted", *faults]
    if report.get("stopped"):
        return (FAILED if faults else INTERRUPTED), [*faults, "the run was stopped"]
    if faults:
        return FAILED, faults
    if totals["cases"] == totals["skipped"]:
        return NO_VERDICT, ["no case was evaluated"]
    if gates and all(gate["ok"] is None for gate in gates):
        return NO_VERDICT, [f"no gate could be evaluated: {_first_of(gates, quoted)}"]
    return PASSED, [", ".join(("no case failed", *_gate_counts(gates)))]


def _first_of(gates: Sequence[GateReport], quoted: Quote) -> str:
    others = f" and {len(gates) - 1:,} more" if gates[1:] else ""
    return f"{quoted(gate_text(gates[0]))}{others}"


def _gate_counts(gates: Sequence[GateReport]) -> Iterator[str]:
    if not gates:
        yield "no gate is set"
    for ok in (True, None):
        if number := sum(gate["ok"] is ok for gate in gates):
            yield f"{counted(number, 'gate')} {GATE_WORDS[ok]}"


def ties_text(report: Report) -> str:
    """Return how many right answers depend on a tie; empty where none does."""
    ties = report.get("ties", 0)
    verb = "depends" if ties == 1 else "depend"
    return (
        f"{counted(ties, 'right answer')} {verb} on a tie at gold's LIMIT, which a wrong query may hit" if ties else ""
    )


def worst_first(report: Report) -> list[CaseReport]:
    """The cases that did not pass: without any score first, as in error, then by mean score; failed before missed."""
    beside = costs(report["metrics"])
    faulty = (case for case in report["cases"] if case["outcome"] in FAULTS)
    return sorted(faulty, key=lambda case: _badness(case, beside))


def said(case: CaseReport) -> str:
    """The first line of a case's message, without its place, which the node id tells."""
    place = rf" \([^()]*{re.escape(PurePosixPath(case['path']).name)}:{case['line']}(:\d+)?\)$"
    return re.sub(place, "", case["message"].partition("\n")[0])


def reason(case: CaseReport) -> str:
    """Why a case did not pass: what it said, and how the answers differ."""
    difference = case["difference"]
    return f"{said(case)}: {difference['summary']}" if difference is not None else said(case)


def _badness(case: CaseReport, beside: Collection[str]) -> tuple[float, int]:
    known = [min(value, 1.0) for name, value in case["scores"].items() if value is not None and name not in beside]
    return (sum(known) / len(known) if known else -1.0), FAULTS.index(case["outcome"])


def counts_of_cases(report: Report) -> str:
    """How many cases there are, and how many ended how."""
    totals = report["totals"]
    words = {"errors": "error"} if totals["errors"] == 1 else {}
    counts = [f"{totals[name]:,} {words.get(name, name)}" for name in TOTAL_OF.values() if totals.get(name)]
    cases = counted(totals["cases"], "case")
    collected = sum(report.get("collected", {}).values())
    if report.get("stopped") and not report.get("selected") and collected > totals["cases"]:
        cases = f"{totals['cases']:,} of {counted(collected, 'case')}"
    return f"{cases}: {', '.join(counts) or 'none ran'}"


def _counts_beside(report: Report, quoted: Quote) -> Iterator[str]:
    if missed := sum(gate["ok"] is False for gate in report["gates"]):
        yield f"{counted(missed, 'gate')} missed"
    if unreadable := len(report.get("unreadable_files", ())):
        yield f"{counted(unreadable, 'suite file')} could not be read"
    if (baseline := report.get("baseline")) and (changes := baseline["changes"]):
        told = [
            f"{quoted(change['what'])} ({len(change['cases']):,})" for change in changes[:LISTED] if change["cases"]
        ]
        told += [quoted(change["what"]) for change in changes[:LISTED] if not change["cases"]]
        more = f" and {len(changes) - LISTED:,} more" if changes[LISTED:] else ""
        yield f"changed besides the system: {', '.join(told)}{more}"


def _faults(report: Report, quoted: Quote) -> Iterator[str]:
    """What makes the run fail, the most serious first."""
    totals = report["totals"]
    if unreadable := report.get("unreadable_files"):
        yield f"{quoted(unreadable[0])} could not be read"
    if totals["errors"]:
        yield f"{counted(totals['errors'], 'case')} in error"
    if totals["failed"]:
        yield f"{counted(totals['failed'], 'case')} failed"
    if missed := [gate for gate in report["gates"] if gate["ok"] is False]:
        yield f"gate missed: {_first_of(missed, quoted)}"
