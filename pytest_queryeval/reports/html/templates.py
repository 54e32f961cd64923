"""Templates of pages, in which every text is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.text.plain import score_text
from pytest_queryeval.text.visible import visible, visible_line

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent
LINE_CHARACTERS = 400


def template(name: str) -> Template:
    """Return a template of this folder; raise `ReportError` where jinja2 is not installed."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise ReportError("a page of HTML needs jinja2: pip install 'pytest-queryeval[html]'") from error
    environment = Environment(
        autoescape=True, loader=FileSystemLoader(HERE), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"line": line, "text": visible, "score": score_text}
    return environment.get_template(name)


def line(text: object) -> str:
    """Return a text as one visible line of at most LINE_CHARACTERS."""
    return visible_line(str(text), LINE_CHARACTERS)
