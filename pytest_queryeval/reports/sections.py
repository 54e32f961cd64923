"""The sections of a report as tables and sentences; the formats lay them out, and shorten what is long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.groups import groups_shown, in_order_of_words
from pytest_queryeval.core.report import (
    BaselineReport,
    CauseChange,
    Flips,
    GroupReport,
    Report,
    ScoreStatistics,
    SuiteChange,
    Totals,
)
from pytest_queryeval.core.steps import STEP_MEASURES
from pytest_queryeval.reports.blocks import Block, Sentence, Table, Untrusted
from pytest_queryeval.results.aggregation import cause_labels, is_accidental, reached_count, shown_interval, statistics
from pytest_queryeval.results.baseline import GOLD_DRIFT, NO_COMMON_CASE, is_foreign
from pytest_queryeval.results.gates import GATE_WORDS, gate_subject, gate_value
from pytest_queryeval.text.formatting import (
    and_more,
    format_amount,
    format_interval,
    format_score,
    p_text,
    pluralize,
    signed,
)

CHANGE = "change in cases of both"
MAX_MEMBERS = 50  # values of a group that a table shows
MAX_NAMES = 20  # of cases that changed sides
MAX_CAUTIONED = 5  # names of cases whose score may be too good
MAX_EXAMPLES = 3  # names of cases whose suite or gold changed
CHANGE_HEADER = ("metric", "before", "after", "change", "95 % interval", "n", "p", "p adjusted", "detects")
CHANGE_NOTE = (
    "p: two-sided paired test of 'nothing changed', p adjusted: for all metrics; intervals and gates are not adjusted; "
    "detects: the smallest drop that the adjusted test would prove in 4 of 5 runs of the same size"
)
COUNTS: Mapping[Literal["errors", "added", "removed", "skipped", "not_run"], str] = {
    "errors": "new errors",
    "added": "added",
    "removed": "removed",
    "skipped": "newly skipped",
    "not_run": "not run this time",
}
FLIPS: Mapping[Literal["regressions", "fixes", "errors"], str] = {
    "regressions": "regressions",
    "fixes": "fixes",
    "errors": COUNTS["errors"],
}

CASE_FLIPS: Mapping[Literal["regressions", "fixes", "errors", "added"], str] = {
    "regressions": "regression",
    "fixes": "fix",
    "errors": "new error",
    "added": COUNTS["added"],
}


def metrics_table(report: Report, columns: Sequence[str] = ("mean", "95 % interval", "n", "missed")) -> Table:
    """Return a table with a row for each metric and the named `columns`.

    Possible columns are those of the default, "median", and `CHANGE` since the baseline.
    """
    baseline = report.get("baseline")
    changes = baseline["metrics"] if baseline else {}
    rows = []
    for name, metric_report in report["metrics"].items():
        change = changes.get(name)
        cells = {
            "mean": format_score(metric_report["mean"]),
            CHANGE: signed(change["change"]) if change else "new",
            "95 % interval": format_interval(shown_interval(metric_report)),
            "median": format_score(metric_report["median"]),
            "n": f"{metric_report['n']:,}",
            "missed": f"{metric_report['missed']:,}" if metric_report["missed"] else "-",
        }
        rows.append((Untrusted(name), *(cells[column] for column in columns)))
    return Table(("metric", *columns), rows)


def interval_note(report: Report) -> str:
    """Return a sentence that says how many metrics have intervals clustered by source; empty if none has."""
    are_clustered = [metric_report.get("ci95_clustered") is not None for metric_report in report["metrics"].values()]
    if not any(are_clustered):
        return ""
    some = "" if all(are_clustered) else f" for {sum(are_clustered)} of {len(are_clustered)} metrics"
    return f"95 % intervals: clustered by {pluralize(len(report['groups']['source']), 'source')}{some}"


def groups_in_tables() -> list[str]:
    """Return the names of the groups that have tables, in the order of the tables."""
    return in_order_of_words(groups_shown("tables"))


def group_table(report: Report, group: str) -> Table:
    """Return a table of passed cases and means for each value of a group, the metrics of most weight first.

    It has no rows if the group has only one value, or more than MAX_MEMBERS.
    """
    members = report["groups"].get(group, {})
    names = group_metrics(metrics_by_weight(report), members)
    rows = [
        (
            Untrusted(value),
            f"{reached_count(member['totals']):,}",
            f"{member['totals']['passed']:,}",
            *(format_score(mean_of(member, name)) for name in names),
        )
        for value, member in members.items()
    ]
    return Table((group, "cases", "passed", *map(Untrusted, names)), rows if 1 < len(rows) <= MAX_MEMBERS else ())


def group_metrics(names: Iterable[str], members: Mapping[str, GroupReport]) -> list[str]:
    """Return the metrics that at least one value of a group has, in the given order."""
    return [name for name in names if any(name in member["metrics"] for member in members.values())]


def mean_of(member: GroupReport, metric: str) -> float | None:
    """Return the mean of a metric over the cases with a value of a group; None if no case has a score."""
    metric_report = member["metrics"].get(metric)
    return None if metric_report is None else metric_report["mean"]


def metrics_by_weight(report: Report) -> list[str]:
    """Return the names of metrics: first those of gates, then those with missed thresholds, then by number of cases."""
    metrics, gate_metrics = report["metrics"], {gate["metric"] for gate in report["gates"]}
    return sorted(
        metrics, key=lambda name: (name not in gate_metrics, not metrics[name]["missed"], -metrics[name]["n"])
    )


def pass_rate(totals: Totals, sources: Mapping[str, GroupReport] | None = None) -> ScoreStatistics | None:
    """Return the share of cases that passed, with its interval; None if no case counts.

    Expected failures and skipped cases do not count. `sources` are the groups of the cases by source, by which the
    interval is clustered.
    """
    scores: list[float] = []
    clusters: list[str] = []
    for source, of_source in (sources or {}).items():
        source_totals = of_source["totals"]
        scores += [1.0] * source_totals["passed"] + [0.0] * count_not_passed(source_totals)
        clusters += [source] * (len(scores) - len(clusters))
    passed = totals["passed"] - int(sum(scores))
    other_faults = totals["passed"] + count_not_passed(totals) - len(scores) - passed
    scores += [1.0] * passed + [0.0] * other_faults
    return statistics(scores, [*clusters, *([""] * (passed + other_faults))]) if scores else None


def percent(share: float) -> str:
    """Return a share in percent with one decimal; "100" and "0" stand only for exactly 1 and 0.

    >>> percent(0.79333), percent(0.9999), percent(1.0)
    ('79.3', '99.9', '100')
    """
    return f"{100 * share:.0f}" if share in (0.0, 1.0) else f"{min(max(100 * share, 0.1), 99.9):.1f}"


def points(change: float) -> str:
    """Return a change of a share in percentage points, with its sign.

    >>> points(-0.064), points(0.0)
    ('\N{MINUS SIGN}6.4', '0.0')
    """
    return f"{100 * change:+.1f}".replace("-", "\N{MINUS SIGN}") if abs(change) >= 0.0005 else "0.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """A gate in the short words of a table."""

    word: str
    """Whether it is met."""
    folder: str
    """The folder of the gate; empty if all gates have the same."""
    subject: str
    """What it limits, and in which cases."""
    value: str
    about: str
    """What is needed and over how many cases, or why there is no result."""


def gate_rows(report: Report) -> list[GateRow]:
    """Return the rows of gates: missed gates first, then gates without a result, then met gates.

    The folder is empty if all gates have the same.
    """
    ordered = sorted(report["gates"], key=lambda gate: (False, None, True).index(gate["ok"]))
    is_one = len({gate["folder"] for gate in ordered}) == 1
    rows = []
    for gate in ordered:
        folder, (value, about) = "" if is_one else gate["folder"].strip("."), gate_value(gate)
        word, subject = GATE_WORDS[gate["ok"]], gate_subject(gate)
        rows.append(GateRow(word=word, folder=folder, subject=subject, value=value, about=about))
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """A number of wrong answers that have a cause, or a value of a group, in common."""

    group: Literal["cause", "error", "difficulty", "kind"]
    value: str
    """The label of the cause, or the value of the group; empty for errors, and for answers without a known cause."""
    faults: int
    total: int
    """What `faults` are compared with: the cases of the group, or of causes the most frequent one."""
    before: int | None = None
    """How many faults the baseline had; None without a baseline."""


def by_increase(causes: Mapping[str, CauseChange]) -> dict[str, CauseChange]:
    """Return the causes, those that increased most since the baseline first; ties by their number now."""
    return dict(sorted(causes.items(), key=lambda item: (item[1]["before"] - item[1]["after"], -item[1]["after"])))


def increased_most(causes: Mapping[str, CauseChange]) -> tuple[str, CauseChange] | None:
    """Return the cause that increased most since the baseline; None if several increased equally, or none by over 1."""
    increases = [(change["after"] - change["before"], label) for label, change in by_increase(causes).items()]
    most = [label for increase, label in increases if increase == increases[0][0]]
    return (most[0], causes[most[0]]) if len(most) == 1 and increases[0][0] > 1 else None


def weaknesses(report: Report) -> list[Weakness]:
    """Return the causes of wrong answers as weaknesses; if there are none, the groups that fail most.

    With a baseline, causes that increased most come first. Answers without a known cause come last. Cases in error have
    no answer, so they do not count.
    """
    baseline = report.get("baseline")
    causes: dict[str, tuple[int | None, int]] = {label: (None, number) for label, number in report["causes"].items()}
    if baseline:
        causes = {
            label: (change["before"], change["after"]) for label, change in by_increase(baseline["causes"]).items()
        }
    if causes:
        unknown = sum(case["outcome"] in ("failed", "missed") and case["cause"] is None for case in report["cases"])
        most = max(unknown, *(max(before or 0, after) for before, after in causes.values()))
        rows = [
            Weakness(group="cause", value=label, faults=after, total=most, before=before)
            for label, (before, after) in causes.items()
        ]
        return rows + [Weakness(group="cause", value="", faults=unknown, total=most)] * (unknown > 0)
    weak_groups = [
        Weakness(group=group, value=value, faults=number, total=reached_count(member["totals"]))
        for group in ("difficulty", "kind")
        if len(report["groups"][group]) > 1
        for value, member in report["groups"][group].items()
        if (number := count_not_passed(member["totals"]))
    ]
    return sorted(weak_groups, key=lambda weakness: -weakness.faults / weakness.total)


def worsenings(report: Report) -> list[Weakness]:
    """Return what got worse since the baseline, the largest increases first.

    These are causes that increased or that a regression has, regressions without a known cause, and new errors.
    """
    baseline = report.get("baseline")
    if baseline is None:
        return []
    nodeids = frozenset(baseline["regressions"])
    regressions = [cause_labels(case) for case in report["cases"] if case["nodeid"] in nodeids]
    labels = {label for case_labels in regressions for label in case_labels}
    causes = {
        label: change
        for label, change in baseline["causes"].items()
        if change["after"] > change["before"] or label in labels
    }
    unknown, errors = sum(not case_labels for case_labels in regressions), len(baseline["errors"])
    most = max(unknown, errors, *(max(change["before"], change["after"]) for change in causes.values()))
    rows = [
        *(
            Weakness(group="cause", value=label, faults=change["after"], total=most, before=change["before"])
            for label, change in causes.items()
        ),
        *[Weakness(group="cause", value="", faults=unknown, total=most)] * (unknown > 0),
        *[Weakness(group="error", value="", faults=errors, total=most)] * (errors > 0),
    ]
    return sorted(rows, key=lambda row: (row.before or 0) - row.faults)


def count_not_passed(totals: Totals) -> int:
    """Return how many cases failed, missed a threshold, or were in error."""
    return totals["failed"] + totals["missed"] + totals["errors"]


def amounts_table(report: Report) -> Table:
    """Return a table with sum and mean of each number that systems report about their calls: tokens, costs, steps."""
    rows = [
        (Untrusted(name), format_amount(measure["sum"]), format_amount(measure["mean"]), f"{measure['n']:,}")
        for name, measure in report["measures"].items()
        if name.startswith("metadata[") or name in STEP_MEASURES
    ]
    return Table(("measure", "sum", "mean", "n"), rows)


def spider_lines(report: Report) -> list[str]:
    """Return the lines of the table that Spider's published tool prints; none if the report has no such table."""
    if "spider_table" not in report:
        return []
    from pytest_queryeval.languages.sql.match import table_lines

    return list(table_lines(report["spider_table"]))


def baseline_blocks(baseline: BaselineReport) -> Iterator[Block]:
    """Yield the comparison with a baseline: headline, changes besides the system, metrics, causes, changed cases."""
    yield baseline_headline(baseline)
    yield from non_system_changes(baseline)
    if baseline["metrics"]:
        yield from (changes_table(baseline), (CHANGE_NOTE,))
    yield from causes(by_increase(baseline["causes"]))
    yield from flips(baseline)


def baseline_sentences(baseline: BaselineReport) -> Iterator[Sentence]:
    """Yield the comparison with a baseline in short: the change of the pass rate, the causes, the changed cases."""
    if rate := baseline["metrics"].get("pass_rate"):
        change = f"{signed(rate['change'])}, p {p_text(rate['p'])}, adjusted {p_text(rate['p_holm'])}"
        yield (f"pass_rate {format_score(rate['before'])} → {format_score(rate['after'])} ({change})",)
    yield from causes(by_increase(baseline["causes"]))
    yield from flips(baseline)


def causes(counts: Mapping[str, int] | Mapping[str, CauseChange]) -> Iterator[Sentence]:
    """Yield one sentence with the number of each cause, and the earlier number if it differs.

    Nothing without causes.
    """
    parts: list[str] = []
    for label, number in counts.items():
        before, after = (number, number) if isinstance(number, int) else (number["before"], number["after"])
        times = f" {after:,}" if before == after else f" {before:,} → {after:,}"
        parts += [", ", Untrusted(label), times]
    if parts:
        yield ("causes of wrong answers: ", *parts[1:])


def baseline_headline(baseline: BaselineReport) -> Sentence:
    """Return a sentence that names the baseline, and says how many cases changed sides."""
    counts = baseline["cases"]
    place = ("against the baseline ", Untrusted(baseline["path"]), " of ", Untrusted(baseline["created"]))
    if not counts["common"]:
        return (*place, f": no case in common: {NO_COMMON_CASE}")
    return (*place, f": {baseline_counts(baseline)}")


def baseline_counts(baseline: BaselineReport) -> str:
    """Return in words how many cases are in both reports, regressed, were fixed, or differ in another way."""
    counts, fixes, regressions = baseline["cases"], len(baseline["fixes"]), len(baseline["regressions"])
    numbers = difference_counts(fixes=fixes, regressions=regressions, **{name: counts[name] for name in COUNTS})
    return f"{pluralize(counts['common'], 'case')} in both, {', '.join(numbers.values())}"


def difference_counts(**numbers: int) -> dict[str, str]:
    """Return in words, by list of a `RunDifference`, how many cases are on the list.

    Fixes and regressions have words even if there are none; the other lists only if there are cases.
    """
    fixes, regressions = numbers["fixes"], numbers["regressions"]
    return {
        "fixes": f"{fixes:,} fix{'es' * (fixes != 1)}",
        "regressions": pluralize(regressions, "regression"),
        **{name: f"{numbers[name]:,} {word}" for name, word in COUNTS.items() if numbers.get(name)},
        **({"errors": pluralize(numbers["errors"], "new error")} if numbers.get("errors") else {}),
    }


def side_counts(difference: Flips) -> dict[str, str]:
    """Return in words, by list, how many cases changed sides between two runs."""
    return difference_counts(**{side: len(difference[side]) for side in FLIPS})


def non_system_changes(baseline: BaselineReport) -> Iterator[Sentence]:
    """Yield sentences on what changed besides the system, and for how many cases that is unknown.

    Yields nothing if the baseline is of another suite.
    """
    if is_foreign(baseline):
        return
    yield from map(change_sentence, baseline["changes"])
    yield from unknown_changes(baseline)


def change_sentence(change: SuiteChange) -> Sentence:
    """Return a sentence that says what changed besides the system, and names the first cases concerned."""
    sentence, cases = ("changed besides the system: ", Untrusted(change["what"])), change["cases"]
    if not cases:
        return sentence
    return *sentence, f" {number_of_cases(change)}: ", *leading_names(cases, MAX_EXAMPLES)


def number_of_cases(change: SuiteChange) -> str:
    """Return the number of cases that a change concerns, in the words that end its description."""
    number = pluralize(len(change["cases"]), "case")
    return f"in {number}" if change["what"] == GOLD_DRIFT else f"({number})"


def unknown_changes(baseline: BaselineReport) -> Iterator[Sentence]:
    """Yield a sentence on cases without a fingerprint, whose changes are unknown; nothing if there are none."""
    if unknown := baseline["cases"]["unknown"]:
        cases = pluralize(unknown, "case")
        yield (f"for {cases} a report has no thresholds, golds and policies, so their changes are unknown",)


def changes_table(baseline: BaselineReport) -> Table:
    """Return a table of the changes of metrics since the baseline; `CHANGE_NOTE` explains its columns."""
    rows = [
        (
            Untrusted(name),
            format_score(change["before"]),
            format_score(change["after"]),
            signed(change["change"]),
            format_interval(change["ci95"], signed),
            f"{change['n']:,}",
            p_text(change["p"]),
            p_text(change["p_holm"]),
            # None if so few cases can prove no drop at all
            "none" if change["detectable"] is None else format_score(change["detectable"]),
        )
        for name, change in baseline["metrics"].items()
    ]
    return Table(CHANGE_HEADER, rows)


def flips(sides: Flips) -> Iterator[Sentence]:
    """Yield a sentence for regressions, fixes and new errors that names their cases; none for an empty list."""
    for name, word in FLIPS.items():
        if sides[name]:
            yield (f"{word} ({len(sides[name]):,}): ", *leading_names(sides[name]))


def change_reader(report: Report) -> Callable[[CaseReport], str] | None:
    """Return a function that says how a case changed since the baseline; None without a baseline.

    The function returns a text such as "regression: soft_f1 1.000 → 0.500"; empty if nothing changed.
    """
    if (baseline := report.get("baseline")) is None:
        return None
    words = {nodeid: word for side, word in CASE_FLIPS.items() for nodeid in baseline.get(side, ())}
    earlier_scores = baseline.get("earlier_scores", {})

    def read(case: CaseReport) -> str:
        pairs = [
            (name, format_score(before), format_score(case["scores"].get(name)))
            for name, before in earlier_scores.get(case["nodeid"], {}).items()
        ]
        scores = ", ".join(f"{name} {before} → {after}" for name, before, after in pairs if before != after)
        return ": ".join(filter(None, (words.get(case["nodeid"]), scores)))

    return read


def cautions(report: Report) -> Iterator[Sentence]:
    """Yield sentences on what may make scores too good.

    They concern golds without rows, answers that are right by a tie or by accident, and calls that a spend limit could
    not count.
    """
    matches = 0
    empty_golds, ties, accidents = list[str](), list[str](), list[str]()
    for case in report["cases"]:
        matches += case["scores"].get("execution_accuracy") == 1.0
        empty_golds += [case["nodeid"]] if case["details"].get("empty_gold") else []
        ties += [case["nodeid"]] if case["depends_on_tie"] else []
        accidents += [case["nodeid"]] if is_accidental(case) else []
    verb = "depends" if len(ties) == 1 else "depend"
    for names, text in (
        (
            empty_golds,
            f"{pluralize(len(empty_golds), 'gold answer')} without rows, so a prediction without rows passes",
        ),
        (
            ties,
            f"{pluralize(len(ties), 'right answer')} {verb} on a choice that the gold query leaves open",
        ),
        (
            accidents,
            f"{matches:,} right by execution_accuracy, of these {len(accidents):,} wrong on a variant of the source",
        ),
    ):
        if names:
            yield (f"{text}: ", *leading_names(names, MAX_CAUTIONED))
    if (spend := report.get("spend")) and spend["unstated"]:
        calls = f"{spend['unstated']:,} of {pluralize(spend['calls'], 'call')}"
        yield f"the spend limit does not count {calls}, which report no number ", Untrusted(spend["name"])


def errata_text(report: Report) -> str:
    """Return how many cases have a decision on their golds, by decision; empty if none has."""
    errata, cases = report.get("errata"), report["totals"]["cases"]
    if errata is None:
        return ""
    share = f"{errata['cases']:,} of {pluralize(cases, 'case')} reviewed, chosen by disagreement"
    if errata["cases"] == cases:
        share = f"all {pluralize(cases, 'case')} reviewed"
    return f"{share}: {', '.join(f'{number:,} {decision}' for decision, number in errata['by_decision'].items())}"


def leading_names(names: Sequence[str], limit: int = MAX_NAMES) -> Iterator[str]:
    """Yield the parts of a sentence that name the first `limit` names and say how many more there are."""
    for number, name in enumerate(names[:limit]):
        yield from (", ", Untrusted(name)) if number else (Untrusted(name),)
    yield from filter(None, [and_more(len(names) - limit)])
