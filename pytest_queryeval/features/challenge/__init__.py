"""Challenges of passes: whether a small database shows that a predicted query with a right answer differs from gold.

This module has the metric `challenged_accuracy` and the section of reports. The section counts the passes by verdict
and lists the counterexamples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_queryeval.core.case_report import Row, by_data
from pytest_queryeval.core.metric import RunChallenge, metric
from pytest_queryeval.core.model import ChallengeVerdict, Execution
from pytest_queryeval.core.report import Report
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.reports import blocks
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, CaseName, Untrusted
from pytest_queryeval.text.formatting import cell_text, format_score, pluralize

CELL_CHARACTERS = 20
# For one pass with a verdict, and for several.
WORDS: dict[ChallengeVerdict, tuple[str, str]] = {
    "same": ("is the gold query", "are the gold query"),
    "proved": ("proved", "proved"),
    "stands": ("stands", "stand"),
    "refuted": ("refuted", "refuted"),
    "unchallenged": ("unchallenged", "unchallenged"),
}


@metric(input="executions", kinds=frozenset({"sql", "sparql"}))
def challenged_accuracy(
    gold: Execution, predicted: Execution, *, policy: Policy, challenge: RunChallenge
) -> float | None:
    """Return `execution_accuracy`, but 0 for a right answer whose query is refuted by a small database.

    Only a database that satisfies what the source's data satisfies refutes a query. None if an answer is not a table.
    The challenge runs only for a right answer.
    """
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return None
    accuracy = execution_accuracy(gold.answer, predicted.answer, policy=policy)
    return 0.0 if accuracy == 1.0 and challenge()["verdict"] == "refuted" else accuracy


def challenge_blocks(report: Report) -> Iterator[Block]:
    """Yield the blocks of the section on challenges; nothing if no case has a challenge.

    They are the metric with the number of passes by verdict, a table of counterexamples, and why passes are
    unchallenged.
    """
    reported = [(case["nodeid"], case["challenge"]) for case in report["cases"] if "challenge" in case]
    if not reported:
        return
    challenges = [(nodeid, by_data(challenge)) for nodeid, challenge in reported]
    counts = Counter(challenge.verdict for _, challenge in challenges)
    metric_report = report["metrics"].get("challenged_accuracy")
    mean, n = (metric_report["mean"], metric_report["n"]) if metric_report else (0.0, 0)
    score = f"challenged_accuracy {format_score(mean)} ({pluralize(n, 'case')}): " if n else ""
    yield (f"{score}{_counts_text(counts)}",)
    number_ruled_out = sum(challenge.ruled_out is not None for _, challenge in challenges)
    if number_ruled_out:
        differing = "differs" if number_ruled_out == 1 else "differ"
        differing += " from the gold query only on databases that violate what your data satisfies"
        yield (f"not in the metric: {number_ruled_out:,} of those that stand {differing}",)
    rows = [
        (
            CaseName(nodeid),
            challenge.verdict,
            str(counterexample["rows"]),
            Untrusted(_answer_text(counterexample["gold_rows"])),
            Untrusted(_answer_text(counterexample["predicted_rows"])),
        )
        for nodeid, challenge in sorted(challenges, key=lambda pair: pair[1].refutation is None)
        if (counterexample := challenge.counterexample) is not None
    ]
    if rows:
        yield blocks.Table(("differs on a small database", "verdict", "rows", "gold", "predicted"), rows)
    reasons = Counter(challenge["reason"] for _, challenge in reported if "reason" in challenge)
    for reason, number in reasons.most_common():
        yield (f"{number:,} unchallenged: ", Untrusted(reason))


def _counts_text(counts: Counter[ChallengeVerdict]) -> str:
    """Return the number of passes by verdict as text, in the order of WORDS.

    >>> _counts_text(Counter(refuted=1, stands=3, same=5))
    'of 9 passes 5 are the gold query, 3 stand, 1 refuted'
    """
    parts = [f"{number:,} {WORDS[verdict][number > 1]}" for verdict in WORDS if (number := counts[verdict])]
    return f"of {counts.total():,} pass{'es' * (counts.total() != 1)} {', '.join(parts)}"


def _answer_text(rows: Sequence[Row]) -> str:
    """Return the rows of an answer in one line, with shortened cells; 'no rows' if there are none."""
    return "; ".join(", ".join(cell_text(cell, CELL_CHARACTERS) for cell in row) for row in rows) or "no rows"


CHALLENGES = ReportSection(title="Challenged passes", blocks=challenge_blocks)
