"""Vega-Lite specifications to SVG for a page, in the page's own colours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_queryeval.text.truncation import escape_line

Spec: TypeAlias = dict[str, Any]

VEGA_LITE = "v6.4"
NAME_CHARACTERS = 40
# Members of every JavaScript object: Vega looks names up in objects, and fails on these.
OF_EVERY_OBJECT = frozenset(
    (
        *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"),
        *("valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"),
    )
)
# Containers of Vega that draw nothing.
_EMPTY_PATH = re.compile(r'<path class="(?:back|fore)ground"[^>]*?(?:display="none"|pointer-events="none")/>')
_GROUP = re.compile(r"<g [^>]*>")  # no text of a chart matches: what would be a tag is escaped in it
_ROLE = re.compile(r' (?:role|aria-\w+)="[^"]*"')
_OPENING = re.compile(r'<svg [^>]*width="(\d+)" height="(\d+)"[^>]*>')
# Text and axes have the colour of the page's text, light or dark; style.css colours the marks.
_CURRENT = "currentColor"
CONFIG: Spec = {
    "aria": False,  # the picture has a title, a description and a table of its numbers
    "background": None,
    "padding": {"left": 30, "right": 24, "top": 4, "bottom": 4},  # for fonts wider than the one that Vega measures
    "view": {"stroke": None},
    "axis": {
        "labelColor": _CURRENT,
        "titleColor": _CURRENT,
        "gridColor": _CURRENT,
        "domainColor": _CURRENT,
        "tickColor": _CURRENT,
        "gridOpacity": 0.12,
        "domainOpacity": 0.4,
        "tickOpacity": 0.4,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 130,
        "labelFlush": False,
        "labelSeparation": 8,  # fonts may be wider here too
    },
    "header": {"labelColor": _CURRENT, "labelFontSize": 12, "labelFontWeight": 600, "labelAnchor": "start"},
    "facet": {"spacing": 18},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The inside of an SVG, markup in which all untrusted text is escaped, and its size in pixels."""

    inside: str
    width: int
    height: int


def drawn(spec: Spec) -> Picture | None:
    """Return the picture of a specification, None where Vega fails; no data is loaded from anywhere."""
    import vl_convert

    try:
        whole = vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=VEGA_LITE, config=CONFIG, allowed_base_urls=[])
    except ValueError:  # any error of Vega's script
        return None
    opening = _OPENING.match(whole)
    assert opening is not None
    inside = _EMPTY_PATH.sub("", whole[opening.end() :].removesuffix("</svg>"))
    inside = _GROUP.sub(
        lambda tag: _ROLE.sub("", tag[0]), inside
    )  # screen readers would announce groups without a name
    return Picture(inside=inside, width=int(opening[1]), height=int(opening[2]))


def names_shown(names: Iterable[str]) -> dict[str, str]:
    """Return for each name what charts show: one short line, which no two names share."""
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        short = escape_line(name, NAME_CHARACTERS)
        short = f"{short}\N{NO-BREAK SPACE}" if short in OF_EVERY_OBJECT else short
        shown[name] = short if short not in taken else f"{short} ({len(taken) + 1})"
        taken.add(shown[name])
    return shown
