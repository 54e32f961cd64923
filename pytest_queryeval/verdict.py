"""Whether a run is well, which rule says so, and which cases are the worst: what every short report begins with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from pytest_queryeval.aggregation import TOTAL_OF, CaseJson, Report, costs
from pytest_queryeval.gates import gate_text

GROUPS_SHOWN = ("difficulty", "tag", "kind")  # of a report in short
PASSED = "Passed"
LISTED = 3  # changes besides the system
FAULTS = ("error", "failed", "missed")
Quote: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One word or two, the counts of cases and of what is wrong beside them, and the rule that decided.

    A run is faulty where its exit status is that of a failed one; it is good where it passed something, too.
    """

    word: str
    counts: str
    rule: str
    is_faulty: bool

    @property
    def is_good(self) -> bool:
        """Whether cases were evaluated, and nothing is wrong."""
        return self.word == PASSED


def verdict(report: Report, quoted: Quote = str) -> Verdict:
    """The verdict of a run, as its exit status is; `quoted` is done to what the suites or a model wrote."""
    rules = list(_faults(report, quoted))
    return Verdict(
        word=_word(report, faulty=bool(rules)),
        counts=", ".join([counts_of_cases(report), *_counts_beside(report, quoted)]),
        rule="; ".join(rules) or _reason_to_pass(report),
        is_faulty=bool(rules),
    )


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "case"), counted(2_000, "case")
    ('1 case', '2,000 cases')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def worst_first(report: Report) -> list[CaseJson]:
    """The cases that did not pass: without any score first, as in error, then by mean score; failed before missed."""
    beside = costs(report["metrics"])
    faulty = (case for case in report["cases"] if case["outcome"] in FAULTS)
    return sorted(faulty, key=lambda case: _badness(case, beside))


def said(case: CaseJson) -> str:
    """The first line of a case's message, without its place, which the node id tells."""
    place = f"{PurePosixPath(case['path']).name}:{case['line']}: "
    return str(case["message"]).partition("\n")[0].rpartition(place)[2]


def reason(case: CaseJson) -> str:
    """Why a case did not pass: what it said, and how the answers differ."""
    summary = (case.get("difference") or {}).get("summary")
    return f"{said(case)}: {summary}" if summary else said(case)


def by_weight(report: Report) -> list[str]:
    """Metrics by how much hangs on them: those of gates, those with missed thresholds, those of most cases."""
    metrics, gated = report["metrics"], {gate.get("metric") for gate in report["gates"]}
    return sorted(metrics, key=lambda name: (name not in gated, not metrics[name]["missed"], -metrics[name]["n"]))


def _badness(case: CaseJson, beside: Collection[str]) -> tuple[float, int]:
    known = [min(value, 1.0) for name, value in case["scores"].items() if value is not None and name not in beside]
    return (sum(known) / len(known) if known else -1.0), FAULTS.index(case["outcome"])


def _word(report: Report, *, faulty: bool) -> str:
    totals = report["totals"]
    if report.get("stopped"):
        return "Stopped early"
    if faulty:
        return "Failed"
    return PASSED if totals["cases"] > totals["skipped"] else "Nothing evaluated"


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
    if broken := len(report.get("broken", ())):
        yield f"{counted(broken, 'suite file')} could not be read"
    if changes := (report.get("baseline") or {}).get("changes"):
        told = [
            f"{quoted(change['what'])} ({len(change['cases']):,})" for change in changes[:LISTED] if change["cases"]
        ]
        told += [quoted(change["what"]) for change in changes[:LISTED] if not change["cases"]]
        more = f" and {len(changes) - LISTED:,} more" if changes[LISTED:] else ""
        yield f"changed besides the system: {', '.join(told)}{more}"


def _faults(report: Report, quoted: Quote) -> Iterator[str]:
    """What makes the run fail, the most serious first."""
    totals = report["totals"]
    if report.get("stopped"):
        yield "the run was stopped"
    if broken := report.get("broken"):
        yield f"{quoted(broken[0])} could not be read"
    if totals["errors"]:
        yield f"{counted(totals['errors'], 'case')} in error"
    if totals["failed"]:
        yield f"{counted(totals['failed'], 'case')} failed"
    missed = [gate for gate in report["gates"] if gate["ok"] is False]
    if missed:
        others = f" and {len(missed) - 1:,} more" if missed[1:] else ""
        yield f"gate missed: {quoted(gate_text(missed[0]))}{others}"


def _reason_to_pass(report: Report) -> str:
    met = sum(gate["ok"] is True for gate in report["gates"])
    unjudged = sum(gate["ok"] is None for gate in report["gates"])
    told = [f"{counted(met, 'gate')} met"] * bool(met) + [f"{counted(unjudged, 'gate')} not judged"] * bool(unjudged)
    return ", ".join(["no case failed", *(told or ["no gate is set"])])
