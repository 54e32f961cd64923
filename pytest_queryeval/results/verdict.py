"""Verdicts in words: of a run, with the rules that decided it and the worst cases, and of a case, why it failed.

Every short report begins with the verdict of the run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

from pytest_queryeval.core.case_report import CaseReport, TrialReport, is_strict_xpass
from pytest_queryeval.core.errors import QueryEvalError, did_you_mean
from pytest_queryeval.core.model import CHALLENGED_ACCURACY, CaseResult
from pytest_queryeval.core.report import GateReport, Report
from pytest_queryeval.languages import KINDS
from pytest_queryeval.results.aggregation import TOTAL_OF, lower_is_better, reached_count
from pytest_queryeval.results.baseline import NO_COMMON_CASE, ON_MISS, is_foreign
from pytest_queryeval.results.case_store import fit_in_memory, select
from pytest_queryeval.results.gates import GATE_WORDS, gate_summary
from pytest_queryeval.text.formatting import and_more, format_score, limits_text, one_line, pluralize

PASSED, FAILED, INTERRUPTED, NO_VERDICT = "PASSED", "FAILED", "INTERRUPTED", "NO VERDICT"
COLOURS = {PASSED: "green", FAILED: "red", INTERRUPTED: "red", NO_VERDICT: "yellow"}
MAX_CHANGES = 3  # besides the system, in the verdict
FAULTS = ("error", "failed", "missed", "xpassed")  # an xpassed case only under a strict xfail mark
DROP_DIGITS = 6  # that tell drops of scores apart
Quote: TypeAlias = Callable[[str], str]
LINE_CHARACTERS = 160
_DURATION = re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds?|minutes?)\b")
REMEDIES = {
    "timeout": ": raise `timeout` if a right query may take longer",
    "empty": ": check why the system returned no text",
    "unsafe": ": the system has to return a query that only reads its own source",
}  # by the kind of the failure
WITHOUT_EXPLAIN = ": the system has to return the query without EXPLAIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a run: its state, the rules that decided it, and counts."""

    state: str
    counts: str
    """How many cases had each outcome, then the missed gates, unreadable files and `remarks`, if any."""
    rule: str
    """The rules that decided the state."""
    remarks: Sequence[str]
    """What changed besides the system since the baseline, and how this run differs from a plain one of all cases."""
    is_cut: bool = False
    """Whether the spend limit left out cases that could change the verdict."""

    @property
    def is_faulty(self) -> bool:
        """Whether the exit status has to be that of a failed run."""
        return self.state in (FAILED, INTERRUPTED) or self.is_cut

    @property
    def is_good(self) -> bool:
        """Whether the run passed: cases were evaluated, and gates too if there are any, and nothing is wrong."""
        return self.state == PASSED

    @property
    def line(self) -> str:
        """The verdict in one line, which begins with `queryeval: STATE`."""
        reason = self.rule if self.state in (FAILED, NO_VERDICT) else f"{self.counts} ({self.rule})"
        remarks = self.remarks if self.state == FAILED else ()
        return "; ".join((f"queryeval: {self.state}: {reason}", *remarks))


def verdict(report: Report, quoted: Quote = str) -> Verdict:
    """Return the verdict of a run, which its exit status follows; `quoted` is applied to text of suites and models."""
    state, rules = _state_and_rules(report, quoted)
    counts = [counts_of_cases(report)]
    remarks = [*filter(None, [changes_text(report, quoted)]), *run_conditions(report)]
    if missed := sum(gate["ok"] is False for gate in report["gates"]):
        counts.append(f"{pluralize(missed, 'gate')} missed")
    if unreadable := len(report["unreadable_files"]):
        counts.append(f"{pluralize(unreadable, 'suite file')} with errors")
    return Verdict(
        state=state,
        counts=", ".join([*counts, *remarks]),
        rule="; ".join(rules),
        remarks=remarks,
        is_cut=state == NO_VERDICT and bool(_spend_text(report)),
    )


def _state_and_rules(report: Report, quoted: Quote) -> tuple[str, list[str]]:
    """Return the state of the run, and sentences on the rules that decided it.

    The first of these that holds decides: interrupted, stopped, faults, spend limit, no case, no gate evaluated,
    passed.
    """
    totals, gates = report["totals"], report["gates"]
    faults, spend_text = list(_faults(report, quoted)), _spend_text(report)
    if report["interrupted"]:
        return INTERRUPTED, ["the run was interrupted", *faults]
    if report["stopped"]:
        return (FAILED if faults else INTERRUPTED), [*faults, "the run was stopped"]
    if faults:
        return FAILED, [*faults, *filter(None, [spend_text])]
    if spend_text and (not gates or any(gate["ok"] is None for gate in gates)):
        return NO_VERDICT, [spend_text]
    if reached_count(totals) == totals["skipped"]:
        return NO_VERDICT, ["no case was evaluated"]
    if gates and all(gate["ok"] is None for gate in gates):
        which = f"none of {len(gates)} gates" if gates[1:] else "no gate"
        return NO_VERDICT, [f"{which} could be evaluated: {quoted(gate_summary(gates[0]))}"]
    counts = [
        f"{pluralize(n, 'gate')} {GATE_WORDS[ok]}" for ok in (True, None) if (n := sum(g["ok"] is ok for g in gates))
    ]
    return PASSED, [", ".join(("no case failed", *(counts if gates else ["no gate is set"])))]


def _first_of(gates: Sequence[GateReport], quoted: Quote) -> str:
    return quoted(gate_summary(gates[0])) + and_more(len(gates) - 1, "gate")


def worst_first(report: Report) -> Sequence[CaseReport]:
    """Return the cases that did not pass; with a baseline, those that got worse come first.

    They are sorted by:
    - the drop of their first metric,
    - the sum of their drops,
    - their mean score, cases without a score first,
    - turns: one case of each reason, then the next of each reason.

    A reason is the first label of a cause, else the first line of a message. In a turn, the reason that increased most
    comes first, or without a baseline the most frequent. Of the same reason, regressions come first, then errors,
    failed, missed, and strict xfail marks to remove. Metrics of which lower scores are better do not count.
    """
    return select(report["cases"], _worst_places(report))


def with_worst_cases(report: Report, number: int) -> Report:
    """Return the report unchanged if its cases fit in memory, otherwise with only its `number` worst cases.

    The worst cases are in the order of the report. Counts in the report are still those of all cases.
    """
    cases = report["cases"]
    if fit_in_memory(cases):
        return report
    worst_places = dict.fromkeys(
        islice(chain(_worst_places(report), range(len(cases))), 2 * number)
    )  # some of them twice
    return {**report, "cases": list(select(cases, sorted(islice(worst_places, number))))}


def listed_text(excerpt: Report, report: Report) -> str:
    """Return a sentence that says how many cases of a report an excerpt lists; empty if it lists all."""
    count, total = len(excerpt["cases"]), len(report["cases"])
    return f"The worst {count:,} of {total:,} cases are listed; report.json has all of them." if count < total else ""


def _worst_places(report: Report) -> list[int]:
    cost_metrics = lower_is_better(report["metrics"])
    baseline = report.get("baseline")
    regressed_nodeids = {*baseline["regressions"], *baseline["errors"]} if baseline else set()
    earlier_scores = baseline.get("earlier_scores", {}) if baseline else {}
    causes = baseline["causes"] if baseline else {}
    increases = {label: change["after"] - change["before"] for label, change in causes.items()}

    def counted(scores: Mapping[str, float | None]) -> dict[str, float]:
        return {
            name: min(value, 1.0) for name, value in scores.items() if value is not None and name not in cost_metrics
        }

    def sort_key(case: CaseReport) -> tuple[float, float, float]:
        scores = counted(case["scores"])
        drops = {
            name: round(before - scores.get(name, 0.0), DROP_DIGITS)
            for name, before in counted(earlier_scores.get(case["nodeid"], {})).items()
        }
        first_drop = drops.get(next(iter(scores or drops), ""), 0.0)
        total_drop = sum(drop for drop in drops.values() if drop > 0)
        return -max(first_drop, 0.0), -total_drop, sum(scores.values()) / len(scores) if scores else -1.0

    ranked_cases = sorted(
        (
            sort_key(case),
            case["cause"]["edits"][0]["label"] if case["cause"] is not None else first_line(case),
            case["nodeid"] not in regressed_nodeids,
            FAULTS.index(case["outcome"]),
            place,
        )
        for place, case in enumerate(report["cases"])
        if case["outcome"] in FAULTS and (case["outcome"] != "xpassed" or is_strict_xpass(case))
    )
    frequencies = Counter(reason for _, reason, *_ in ranked_cases)
    turns: Counter[tuple[object, str]] = Counter()
    sort_keys: list[tuple[tuple[float, ...], int, int, int, bool, int, int]] = []
    for key, reason, is_old, fault, place in ranked_cases:
        turn, increase = turns[key, reason], increases.get(reason, 0)
        sort_keys.append((key, turn, -increase, -frequencies[reason], is_old, fault, place))
        turns[key, reason] += 1
    return [place for *_, place in sorted(sort_keys)]


def first_line(case: CaseReport) -> str:
    """Return the first line of a case's message, without the place of the case at its end."""
    line, _, _ = case["message"].partition("\n")
    name = f"{case['path'].rpartition('/')[2]}:{case['line']}"
    return re.sub(rf" \([^()]*{re.escape(name)}(:\d+)?\)$", "", line) if name in line else line


def shared_errors(cases: Iterable[CaseReport]) -> dict[str, str]:
    """Return for each case in error the node id of the first of `cases` with the same error, by node id.

    Errors are the same if their sources are, and their messages apart from ids, times and the lines of cases.
    """
    first_cases: dict[tuple[str | None, str], str] = {}
    return {
        case["nodeid"]: first_cases.setdefault(_error_key(case), case["nodeid"])
        for case in cases
        if case["outcome"] == "error"
    }


def _error_key(case: CaseReport) -> tuple[str | None, str]:
    message = first_line(case).replace(f"{case['path']}:{case['line']}", case["path"])
    message = re.sub(rf"(?<![\w-]){re.escape(case['id'])}(?![\w-])", "", message)
    return case["source"], _DURATION.sub("", message)


def different_faults(cases: Sequence[CaseReport]) -> tuple[Sequence[CaseReport], Counter[str]]:
    """Return the cases without those that repeat an earlier error, and by node id how many cases share an error."""
    first_cases = shared_errors(cases)
    places = [at for at, case in enumerate(cases) if first_cases.get(case["nodeid"], case["nodeid"]) == case["nodeid"]]
    return select(cases, places), Counter(first_cases.values())


def counts_of_cases(report: Report) -> str:
    """Return in words how many cases there are, and how many had each outcome."""
    totals = report["totals"]
    words = {"not_run": "not run"} | ({"errors": "error"} if totals["errors"] == 1 else {})
    counts = [f"{totals[name]:,} {words.get(name, name)}" for name in TOTAL_OF.values() if totals[name]]
    return f"{cases_text(report)}: {', '.join(counts) or 'none ran'}"


def cases_text(report: Report) -> str:
    """Return in words how many cases there are; if not all ran, also how many cases and trials ran."""
    totals, stop, trials = report["totals"], report.get("stop"), report.get("decided_trials")
    collected = sum(report["collected"].values())
    text = pluralize(totals["cases"], "case")
    if report["stopped"] and not report["selected"] and collected > totals["cases"]:
        text = f"{totals['cases']:,} of {pluralize(collected, 'case')}"
    elif spend_text := _spend_text(report):
        text = spend_text
    elif totals["not_run"] and stop:
        text = f"decided after {stop['after']:,} of {pluralize(stop['of'], 'case')}"
    return f"{text}, {trials['after']:,} of {pluralize(trials['of'], 'trial')} needed" if trials else text


def _spend_text(report: Report) -> str:
    """Return after how many cases the spend limit ended calls; empty if it left out no case."""
    spend, totals = report.get("spend"), report["totals"]
    if spend is None or not spend["reached"] or not totals["not_run"]:
        return ""
    could_run = totals["cases"] - totals["skipped"]
    after = f"after {could_run - totals['not_run']:,} of {pluralize(could_run, 'case')}"
    if in_a_row := spend.get("unstated_in_a_row"):
        return f"calls ended {after}, because the last {in_a_row} calls reported no number {_spent_number(report)}"
    return f"the spend limit was reached {after}"


def _spent_number(report: Report) -> str:
    """Return the name of the number that is limited, in quotes.

    If no call reported it, a similar name that calls reported follows.
    """
    name = report["spend"]["name"]
    stated_names = {one_line(name[9:-1], 40) for name in report["measures"] if name.startswith("metadata[")}
    hint = "" if name in stated_names else did_you_mean(name, stated_names)
    return f"'{one_line(name, 40)}'{hint}"


def run_conditions(report: Report) -> Iterator[str]:
    """Yield phrases on how a run differs from a plain run of all cases, where that affects its verdict.

    They concern the spend limit, challenges, recordings, partial gates, selections, reruns, and parallel times.
    """
    totals, gates, spend = report["totals"], report["gates"], report.get("spend")
    if spend is not None and 0 < spend["unstated"] == spend["calls"] and not _spend_text(report):
        yield f"the spend limit counted nothing: no call reported a number {_spent_number(report)}"
    if spend is not None and not spend["calls"]:
        yield "the spend limit counted nothing, because no call was made"
    if report["environment"].get("challenge") and CHALLENGED_ACCURACY not in report["metrics"] and totals["cases"]:
        yield "no answer was challenged"
    if unchallenged_text := _unchallenged_text(report):
        yield unchallenged_text
    if recorded := report.get("recorded"):
        yield f"{recorded['answers']:,} of {pluralize(recorded['of'], 'answer')} from the recording"
    in_part = [
        gate
        for gate in gates
        if gate["ok"] is not None and "decided" not in gate and gate["reason"] == "" and gate["cases"] != gate["ran"]
    ]
    if in_part:
        gate = max(in_part, key=lambda gate: (gate["cases"] or 0) - gate["ran"])
        number = f"{gate['ran']:,} of {pluralize(gate['cases'], 'case')}" if gate["cases"] else "some cases"
        yield f"{pluralize(len(in_part), 'gate')} evaluated on {number}"
    elif report["selected"]:
        collected = sum(report["collected"].values())
        yield f"{totals['cases']:,} of {collected:,} cases selected" if collected else "some cases selected"
    if rerun_cases := report.get("rerun_cases"):
        yield f"{pluralize(rerun_cases, 'case')} run again after a failure"
    workers = report["environment"].get("workers", 1)
    if workers > 1 and any(name.endswith("_seconds") for name in (*report["metrics"], *(g["metric"] for g in gates))):
        yield f"times measured while {workers} processes ran cases"


def _unchallenged_text(report: Report) -> str:
    """Return how many right answers were not challenged, if an outcome or a gate depends on that.

    Return an empty text if there is nothing to say.
    """
    if CHALLENGED_ACCURACY not in report["metrics"]:
        return ""
    is_gated = any(gate["metric"] == CHALLENGED_ACCURACY for gate in report["gates"])
    verdicts = [
        case["challenge"]["verdict"]
        for case in report["cases"]
        if "challenge" in case
        and (is_gated or (case["fingerprint"] and CHALLENGED_ACCURACY in case["fingerprint"]["thresholds"]))
    ]
    number = verdicts.count("unchallenged")
    return f"{number:,} of {pluralize(len(verdicts), 'right answer')} not challenged" if number else ""


def changes_text(report: Report, quoted: Quote) -> str:
    """Return what changed besides the system since the baseline and can change a score or a gate.

    At most MAX_CHANGES changes are named. Return an empty text without a baseline or change.
    """
    baseline = report.get("baseline")
    if not baseline or is_foreign(baseline):
        return ""
    # A case that misses its thresholds counts the same in every score, whether it fails the run or not.
    changes = [change for change in baseline["changes"] if change["what"] != ON_MISS]
    if not changes:
        return ""
    shown_changes = sorted(changes[:MAX_CHANGES], key=lambda change: not change["cases"])
    names = [
        quoted(change["what"]) + (f" ({len(change['cases']):,})" if change["cases"] else "") for change in shown_changes
    ]
    return f"changed besides the system: {', '.join(names)}{and_more(len(changes) - MAX_CHANGES)}"


def _faults(report: Report, quoted: Quote) -> Iterator[str]:
    """Yield the reasons that make the run fail, the most serious first.

    They are unreadable files, errors, failures, cases that passed under a strict xfail mark, missed gates, and a
    baseline without common cases.
    """
    totals = report["totals"]
    if unreadable := report["unreadable_files"]:
        yield f"{quoted(unreadable[0])}{and_more(len(unreadable) - 1)} could not be read"
    if totals["errors"]:
        yield f"{pluralize(totals['errors'], 'case')} in error"
    if totals["failed"]:
        yield f"{pluralize(totals['failed'], 'case')} failed"
    if strict := sum(map(is_strict_xpass, report["cases"])) if totals["xpassed"] else 0:
        yield f"{pluralize(strict, 'case')} passed despite a strict xfail mark"
    if missed := [gate for gate in report["gates"] if gate["ok"] is False]:
        yield f"gate missed: {_first_of(missed, quoted)}"
    if (baseline := report.get("baseline")) and is_foreign(baseline):
        cases = pluralize(baseline["cases"]["before"], "case")
        yield f"none of the {cases} of the baseline {quoted(baseline['path'])} is in this run: {NO_COMMON_CASE}"


def answer_passes(case: CaseReport, answer: CaseReport | TrialReport) -> bool | None:
    """Return whether an answer to a scored case passes; `answer` is one of its trials, or the case itself.

    If nothing is required, the default thresholds of its kind decide; None if it has no scores for them.
    """
    if case["trials"]:
        passed = answer.get("passed")
    else:
        is_required = case["fingerprint"] is None or bool(case["fingerprint"]["thresholds"])
        passed = case["outcome"] in ("passed", "xpassed") if is_required else None
    if passed is not None:
        return bool(passed)
    with suppress(QueryEvalError):  # of a kind that is not installed here
        minima = KINDS[case["kind"] or ""].default_thresholds
        scores = {name: score for name in minima if (score := answer["scores"].get(name)) is not None}
        if scores.keys() == minima.keys():
            return all(scores[name] >= minimum for name, minimum in minima.items())
    return None


def failure_text(kind: str, message: str) -> str:
    """Return why a prediction has no answer, with a remedy for kinds of failures that have one."""
    if kind == "abstained":
        return f"the system abstained from a question that has an answer: {message}"
    remedy = WITHOUT_EXPLAIN if message.endswith(": EXPLAIN") else REMEDIES.get(kind, "")
    return f"prediction failed ({kind}){': ' if message else ''}{message}{remedy}"


def unmet_expectations(details: Mapping[str, Any]) -> list[str]:
    """Return a line for each expectation that does not hold, from the details of a case."""
    reports = details.get("expectations")
    if not isinstance(reports, list):  # their content depends on the program that wrote a report
        return []
    return [
        f"{report['name']}: {report['expected']} — {report['found']}"
        for report in reports
        if isinstance(report, dict) and report.get("holds") is False and {"name", "expected", "found"} <= report.keys()
    ]


def headline(result: CaseResult) -> str:
    """Return why a case fails, in one line.

    It says how the prediction failed; otherwise how the answers differ, and which expectations and thresholds were not
    met. With several trials it begins with how many passed, and the rule by which that is not enough.
    """
    error = result.shown.predicted.error
    if error is not None:
        reason = failure_text(error.kind, one_line(error.message, LINE_CHARACTERS))
    elif not result.case.answerable:
        reason = "the system answered a question that has no answer"
    else:
        reason = ", ".join(
            f"{missed['metric']} {format_score(missed['value'])} (needs {limits_text(missed['min'], missed['max'])})"
            for missed in result.violations
        )
        if unmet := unmet_expectations(result.shown.details):
            more = f", and {pluralize(len(unmet) - 1, 'more expectation')}" if unmet[1:] else ""
            reason = f"{one_line(unmet[0], LINE_CHARACTERS)}{more}; {reason}"
        if result.difference is not None and result.difference["summary"]:
            reason = f"{one_line(result.difference['summary'], LINE_CHARACTERS)}; {reason}"
    if not result.has_trials:
        return reason
    passed, rule = sum(bool(trial.passed) for trial in result.trials), result.case.settings.trials_rule
    rule_text = rule if isinstance(rule, str) else f"{{rate: {rule:g}}}"
    trials_text = pluralize(len(result.trials), "trial")
    is_early = result.case.settings.stops_trials and len(result.trials) < result.case.settings.trials
    early = f", decided after {len(result.trials)} of {result.case.settings.trials}" if is_early else ""
    return f"{passed} of {trials_text} passed{early} (`trials_rule: {rule_text}`): {reason}"
