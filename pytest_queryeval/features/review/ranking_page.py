"""A ranking as a page to read: the cases with evidence, with their questions and queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_queryeval.features.review.ranking import RankedCase, ranking_data
from pytest_queryeval.features.review.ranking_summary import RankingSummary, summary_lines
from pytest_queryeval.reports.html import assets, template
from pytest_queryeval.text.formatting import cut, pluralize

MAX_CASES = 500
QUERY_CHARACTERS = 5_000
TEXT_CHARACTERS = 2_000


def ranking_page(ranking: Sequence[RankedCase], summary: RankingSummary) -> bytes:
    """Return the HTML of a ranking; text from suites, models and databases is escaped, and nothing is loaded."""
    suspected = [
        {
            "data": data,
            "title": ranked.title,
            "question": cut(ranked.case.question, TEXT_CHARACTERS),
            "evidence": cut(ranked.case.evidence, TEXT_CHARACTERS),
            "answerable": ranked.case.answerable,
        }
        for ranked, data in zip(ranking, ranking_data(ranking), strict=True)
        if data["evidence"]
    ]
    text = template(Path(__file__).parent / "ranking.html.jinja").render(
        title="Golds to look at",
        suspected=suspected,
        shown=suspected[:MAX_CASES],
        cases=pluralize(len(ranking), "case"),
        summary=summary,
        notes=list(summary_lines(summary)),
        cut=lambda query: cut(query, QUERY_CHARACTERS),
        **assets(),
    )
    return text.encode(errors="backslashreplace")
