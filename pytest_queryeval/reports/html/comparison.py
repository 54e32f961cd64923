"""A comparison as a small page: static, without script, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_queryeval.reports.comparison.passages import Foreign, Passage, Table
from pytest_queryeval.reports.html.templates import template
from pytest_queryeval.text.visible import visible


def comparison_page(title: str, passages: Iterable[Passage]) -> str:
    """The HTML of a comparison."""
    return template("comparison.html.jinja").render(
        title=_shown(title),
        passages=list(passages),
        is_table=lambda passage: isinstance(passage, Table),
        is_foreign=lambda part: isinstance(part, Foreign),
        shown=_shown,
    )


def _shown(text: str) -> str:
    return visible(" ".join(text.split()))
