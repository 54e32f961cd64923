"""Names that can be markers of pytest."""

from __future__ import annotations

import re
from collections.abc import Iterable

PYTEST_MARKERS = ("skip", "xfail", "skipif", "parametrize", "usefixtures", "filterwarnings")
_NO_MARKER = re.compile(r"[^\w-]+|^_+")


def as_marker(name: str) -> str:
    """Return the name as a marker, with `-` for other characters and before pytest's own; empty if nothing is left.

    >>> as_marker("weo 2024"), as_marker("skip"), as_marker("?")
    ('weo-2024', '-skip', '')
    """
    fit = _NO_MARKER.sub("-", name)
    if not fit.strip("-_"):
        return ""
    return f"-{fit}" if fit in PYTEST_MARKERS else fit


def as_markers(names: Iterable[str]) -> list[str]:
    """Return the names as markers, each once, without those of which nothing is left."""
    return list(dict.fromkeys(filter(None, map(as_marker, names))))
