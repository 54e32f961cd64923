"""What HTML pages are made of: templates in which every text is escaped, style and scripts, axes, filters of cases."""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from pytest_queryeval.reports.blocks import CaseName
from pytest_queryeval.reports.sections import percent, points
from pytest_queryeval.results.aggregation import reached_count
from pytest_queryeval.text.formatting import escape_invisible, escape_line, format_amount, format_score, p_text

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

HERE = Path(__file__).parent
SCRIPT_FOLDER = HERE / "script"
# In the order in which they stand in a page.
SCRIPTS = tuple(
    SCRIPT_FOLDER / f"{name}.js"
    for name in (
        *("text", "values", "terms", "texts_differ", "layout", "cells"),
        *("steps", "cases", "case_page", "themes", "start"),
    )
)
LINE_CHARACTERS = 400
MIN_SPAN = 1e-9  # of an axis, whose ticks have nine decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A filter of the list of cases: its words, and how many cases it shows."""

    name: str
    words: str
    count: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`; its ends and its middle are round numbers."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Scale:
        """Return a scale around all values, whose ends and middle are multiples of a power of ten.

        If all values are between 0 and 1, so is the scale.

        >>> Scale.over([0.675, 0.7375]).ticks, Scale.over([0.1, 0.9]).ticks, Scale.over([130.0, 170.0]).ticks
        (('0.67', '0.71', '0.75'), ('0.1', '0.5', '0.9'), ('130', '150', '170'))
        """
        lowest, highest = min(values), max(values)
        is_share = lowest >= 0 and highest <= 1
        span = next(size for size in (highest - lowest, abs(lowest), 1.0) if size >= MIN_SPAN)
        step = 10 ** math.floor(math.log10(span))
        low, high = math.floor(lowest / step), math.ceil(highest / step)
        high = max(high + (high - low) % 2, low + 2)
        if is_share and (above := high - round(1 / step)) > 0:
            low, high = max(low - above, 0), high - above
        return cls(low * step, high * step)

    def at(self, value: float) -> float:
        """Return the place of a value on the axis, from 0 to 100."""
        return round(100 * (value - self.low) / (self.high - self.low or 1.0), 2)

    @property
    def ticks(self) -> tuple[str, str, str]:
        """The texts of the low end, the middle and the high end."""
        low, middle, high = (f"{round(value, 9):g}" for value in (self.low, (self.low + self.high) / 2, self.high))
        return low, middle, high


@functools.cache
def template(path: Path) -> Template:
    """Return a Jinja template that escapes every text and may include templates of this folder. Cached."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader([path.parent, HERE])
    environment = Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"line": line, "text": escape_invisible, "score": format_score, "reached": reached_count}
    environment.filters |= {"cell": cell, "percent": percent, "points": points, "p": p_text, "amount": format_amount}
    environment.filters["code"] = with_code
    return environment.get_template(path.name)


def line(text: object) -> str:
    """Return a text as one line of at most LINE_CHARACTERS, with escapes for invisible characters."""
    return escape_line(str(text), LINE_CHARACTERS)


def link(**state: str) -> str:
    """Return the URL fragment that opens the page in a state, such as `case=NODEID` or a filter."""
    return f"#{urlencode(state, errors='backslashreplace', quote_via=quote, safe='')}"


def cell(text: str) -> str:
    """Return the text of a table cell as one line; a `CaseName` becomes a link to the page of its case."""
    from markupsafe import Markup

    if isinstance(text, CaseName):
        return Markup('<a href="{}">{}</a>').format(link(case=text), line(text))
    return line(text)


def with_code(text: str) -> Markup:
    """Return a text as escaped HTML, in which text between backticks becomes `<code>`."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - of an escaped text


def assets(*scripts: Path, styles: Sequence[Path] = (), connects: bool = False) -> dict[str, str]:
    """Return style and script of a page, and the content policy that allows only these.

    `styles` come after the style of all pages. A page that `connects` may send requests to its own server.
    """
    from markupsafe import Markup

    style = "\n".join(path.read_text(encoding="utf-8") for path in (HERE / "style.css", *styles))
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    connections = "connect-src 'self'; " if connects else ""
    # The icon, the one picture, is in the page.
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:; "
        f"{connections}base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704 - our own


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
