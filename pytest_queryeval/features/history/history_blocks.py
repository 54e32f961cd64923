"""What a history says: since when something is worse, a line for each run, what changed besides the system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import SuiteChange
from pytest_queryeval.features.history.past_runs import History, PastRun, Step
from pytest_queryeval.reports.blocks import Block, Sentence, Table, Untrusted
from pytest_queryeval.reports.sections import (
    MAX_EXAMPLES,
    change_sentence,
    first_names,
    flips,
    p_text,
    side_counts,
)
from pytest_queryeval.results.aggregation import reached_count
from pytest_queryeval.results.gates import gate_text
from pytest_queryeval.text.formatting import format_interval, format_score, minute_of, pluralize, signed

RUNS_HEADER = (
    *("run", "created", "verdict", "cases", "mean", "95 % interval", "change", "p"),
    *("fixes", "regressions", "newly in error", "gates missed", "changed besides"),
)
NOTE = (
    "change: since the previous run, over the cases of both; p: two-sided paired test of 'nothing changed', not "
    "adjusted for the number of runs; intervals: clustered by sources where there are five or more"
)
CHANGED_RUNS = 10  # whose changes besides the system the terminal lists
CASES_LISTED = 5
# As pytest shows outcomes; a case that was not in a run has a dash.
LETTERS: Mapping[Outcome | None, str] = {
    "passed": ".",
    "failed": "F",
    "missed": "M",
    "error": "E",
    "skipped": "s",
    "xfailed": "x",
    "xpassed": "X",
}
NOT_THERE = "-"
OUTCOMES_LISTED = 60  # of the last runs


def history_blocks(history: History) -> Iterator[Block]:
    """Yield what is worse and since when, the runs, what changed besides the system, and the cases that flip most."""
    yield from findings(history)
    yield runs_table(history)
    yield (NOTE,)
    changed_runs = [run for run in history["runs"] if run["step"] is not None and besides(run["step"])]
    if len(changed_runs) > CHANGED_RUNS:
        yield (
            f"runs before which more changed than the system: {len(changed_runs):,}, of which the last {CHANGED_RUNS}:",
        )
    for run in changed_runs[-CHANGED_RUNS:]:
        if run["step"] is not None:
            yield ("changed besides the system in ", *_run_name(run), ": ", *besides(run["step"]))
    if history["cases"]:
        yield (f"cases that went from right to wrong or back: {history['flipped']:,}; those that did so most often:",)
        rows = [
            (Untrusted(case["nodeid"]), f"{case['flips']:,}", letters(case["outcomes"]))
            for case in history["cases"][:CASES_LISTED]
        ]
        yield Table(("case", "flips", "outcomes"), rows)
        meanings = {**{letter: str(outcome) for outcome, letter in LETTERS.items()}, NOT_THERE: "not run"}
        shown_letters = set().union(*(strip for _, _, strip in rows))
        legend = ", ".join(f"{letter} {meaning}" for letter, meaning in meanings.items() if letter in shown_letters)
        yield (f"outcomes, the latest to the right: {legend}",)


def findings(history: History) -> Iterator[Sentence]:
    """Yield since when the metric and gates are worse, and what that run changed."""
    runs, fall, explained_runs = history["runs"], history["fall"], set[int]()
    if len(runs) == 1:
        yield ("only one run, so there is none to compare it with",)
    if fall is not None:
        yield (
            *(Untrusted(history["metric"]), f" {'rose' if history['better'] == 'lower' else 'fell'} from "),
            *(f"{format_score(fall['before'])} in ", *_run_name(runs[fall["best"]])),
            *(f" to {format_score(fall['after'])} in ", *_run_name(runs[fall["since"]])),
            f" over {pluralize(fall['common'], 'case')}, and has not recovered (p {p_text(fall['p'])})",
            *_what_changed(runs[fall["since"]]),
        )
        explained_runs.add(fall["since"])
    for missed in history["missed_gates"]:
        met, since, gate = missed["met"], missed["since"], Untrusted(gate_text(missed["gate"]))
        if met is None:
            first = (", which was first evaluated in ", *_run_name(runs[since])) if since else ()
            yield ("no run has met the gate ", gate, *first)
            continue
        change = () if since in explained_runs else _what_changed(runs[since])
        yield (
            "the gate ",
            gate,
            ", was last met in ",
            *_run_name(runs[met]),
            " and is missed since ",
            *_run_name(runs[since]),
            *change,
        )
        explained_runs.add(since)
    if len(runs) > 1 and fall is None:
        worse = "above" if history["better"] == "lower" else "below"
        yield (Untrusted(history["metric"]), f" of the last run is not significantly {worse} that of any run before")


def _what_changed(run: PastRun) -> Sentence:
    """Return what the run changed against the one before it, as the end of a sentence."""
    step = run["step"]
    if step is None:
        return ()
    counts = f"; against the run before it has {', '.join(side_counts(step).values())}; "
    changes = besides(step)
    return (counts, *(("besides the system changed: ", *changes) if changes else ("the suite did not change",)))


def besides(step: Step) -> Sentence:
    """Return what changed besides the system since the run before, empty if no change is known."""
    if not step["common"]:
        return ("no case is in both runs",)
    changes = [*step["changes"], *([SuiteChange(what="cases added", cases=step["added"])] if step["added"] else [])]
    parts: list[str] = []
    for change in changes:
        parts += [", ", Untrusted(change["what"]), f" ({len(change['cases']):,})" if change["cases"] else ""]
    return tuple(filter(None, parts[1:]))


def _run_name(run: PastRun) -> Sentence:
    """Return the name of a run and its time."""
    return (Untrusted(run["name"] or run["path"]), f" of {minute_of(run['created'])}")


def runs_table(history: History) -> Table:
    """Return the runs, the oldest first; `NOTE` explains the columns."""
    rows = []
    for run in history["runs"]:
        mean, step = run["metrics"].get(history["metric"]), run["step"]
        rows.append(
            (
                Untrusted(run["name"] or run["path"]),
                minute_of(run["created"]),
                run["state"],
                f"{reached_count(run['totals']):,}",
                format_score(mean["mean"] if mean else None),
                (format_interval(mean["ci95"]) if mean else "") or "-",
                signed(step["change"]) if step and step["change"] is not None else "-",
                p_text(step["p"]) if step and step["p"] is not None else "-",
                f"{len(step['fixes']):,}" if step else "-",
                f"{len(step['regressions']):,}" if step else "-",
                f"{len(step['errors']):,}" if step else "-",
                gates_text(run),
                f"{len(step['changes']) + bool(step['added']):,}" if step else "-",
            )
        )
    return Table(RUNS_HEADER, rows)


def gates_text(run: PastRun) -> str:
    """Return how many gates are missed of those that a run evaluated; a dash without any."""
    evaluated = [gate["ok"] for gate in run["gates"] if gate["ok"] is not None]
    return f"{evaluated.count(False):,} of {len(evaluated):,}" if evaluated else "-"


def letters(outcomes: Sequence[Outcome | None]) -> str:
    """Return the outcomes of the last runs in letters; a missed case, which pytest shows as `x`, is an `M`."""
    return "".join(LETTERS.get(outcome, NOT_THERE) for outcome in outcomes[-OUTCOMES_LISTED:])


def change_sentences(step: Step) -> Iterator[Sentence]:
    """Yield what a run changed against the one before it, with names of cases."""
    yield from flips(step)
    if step["added"]:
        yield (f"cases added ({len(step['added']):,}): ", *first_names(step["added"], MAX_EXAMPLES))
    yield from map(change_sentence, step["changes"])
