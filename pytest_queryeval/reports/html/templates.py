"""Templates of pages, in which every text is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.reports.sections import p_text, percent, points
from pytest_queryeval.results.aggregation import reached
from pytest_queryeval.text.escaping import escape_invisible
from pytest_queryeval.text.formatting import format_amount, format_score
from pytest_queryeval.text.truncation import escape_line

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent
LINE_CHARACTERS = 400


def template(path: Path) -> Template:
    """Return a template, which may use those of this folder; raise `ReportError` where jinja2 is not installed."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise ReportError("a page of HTML needs jinja2: pip install 'pytest-queryeval[html]'") from error
    loader = FileSystemLoader([path.parent, HERE])
    environment = Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"line": line, "text": escape_invisible, "score": format_score, "reached": reached}
    environment.filters |= {"percent": percent, "points": points, "p": p_text, "amount": format_amount}
    return environment.get_template(path.name)


def line(text: object) -> str:
    """Return a text as one visible line of at most LINE_CHARACTERS."""
    return escape_line(str(text), LINE_CHARACTERS)
