"""A comparison as a small page: static, without script, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_queryeval.reports.blocks import Block, Table, Untrusted
from pytest_queryeval.reports.html.templates import template
from pytest_queryeval.text.escaping import escape_invisible


def comparison_page(title: str, blocks: Iterable[Block]) -> str:
    """Return the HTML of a comparison."""
    return template("comparison.html.jinja").render(
        title=_shown(title),
        blocks=list(blocks),
        is_table=lambda block: isinstance(block, Table),
        is_untrusted=lambda part: isinstance(part, Untrusted),
        shown=_shown,
    )


def _shown(text: str) -> str:
    return escape_invisible(" ".join(text.split()))
