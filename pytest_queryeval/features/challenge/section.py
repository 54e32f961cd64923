"""The section on challenged passes: how many of them have which verdict, and those that a small database refutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_queryeval.core.case_report import Row
from pytest_queryeval.core.model import ChallengeVerdict
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, CaseName, Table, Untrusted
from pytest_queryeval.text.formatting import cell_text

CELL_CHARACTERS = 20
# For one pass with a verdict, and for several.
WORDS: dict[ChallengeVerdict, tuple[str, str]] = {
    "same": ("is gold's query", "are gold's query"),
    "proved": ("proved", "proved"),
    "stands": ("stands", "stand"),
    "refuted": ("refuted", "refuted"),
    "unchallenged": ("unchallenged", "unchallenged"),
}


def challenge_blocks(report: Report) -> Iterator[Block]:
    """Yield the number of passes with each verdict, a table of the refuted ones, and why others are unchallenged."""
    challenges = [(case["nodeid"], case["challenge"]) for case in report["cases"] if "challenge" in case]
    if not challenges:
        return
    counts = Counter(challenge["verdict"] for _, challenge in challenges)
    yield (_counts_text(counts),)
    rows = [
        (
            CaseName(nodeid),
            str(counterexample["rows"]),
            "no" if challenge["unlike"] else "yes",
            Untrusted(_answer_text(counterexample["gold_rows"])),
            Untrusted(_answer_text(counterexample["predicted_rows"])),
        )
        for nodeid, challenge in challenges
        if (counterexample := challenge["counterexample"]) is not None
    ]
    if rows:
        yield Table(("refuted", "rows", "like the source", "gold", "predicted"), rows)
    reasons = Counter(challenge["reason"] for _, challenge in challenges if "reason" in challenge)
    for reason, number in reasons.most_common():
        yield (f"{number:,} unchallenged: ", Untrusted(reason))


def _counts_text(counts: Counter[ChallengeVerdict]) -> str:
    """Return how many passes have which verdict, the strongest first.

    >>> _counts_text(Counter(refuted=1, stands=3, same=5))
    "of 9 passes 5 are gold's query, 3 stand, 1 refuted"
    """
    parts = [f"{number:,} {WORDS[verdict][number > 1]}" for verdict in WORDS if (number := counts[verdict])]
    return f"of {counts.total():,} pass{'es' * (counts.total() != 1)} {', '.join(parts)}"


def _answer_text(rows: Sequence[Row]) -> str:
    """Return the rows of an answer in one line."""
    return "; ".join(", ".join(cell_text(cell, CELL_CHARACTERS) for cell in row) for row in rows) or "no rows"


CHALLENGES = ReportSection(title="Challenged passes", blocks=challenge_blocks)
