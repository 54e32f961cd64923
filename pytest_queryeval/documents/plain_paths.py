"""JSONPaths (RFC 9535) of names, indexes, `*` and `..`, which select values while these are walked through."""

from __future__ import annotations

import re
from typing import NamedTuple

_SEGMENT = re.compile(
    r"(?P<descend>\.\.(?=[\w*\[])|\.(?=[\w*])|(?=\[))"
    r"(?:(?P<name>[^\W\d]\w*)|(?P<wild>\*|\[\*\])|\[(?P<index>-?\d{1,9})\]"
    r"|\['(?P<single>(?:[^'\\]|\\['\\])*)'\]|\[\"(?P<double>(?:[^\"\\]|\\[\"\\])*)\"\])"
)
_ESCAPE = re.compile(r"\\(.)")


class Segment(NamedTuple):
    """A step of a path: a key, an index, or None for any of them; with `descends` at any depth."""

    step: str | int | None
    descends: bool

    def fits(self, step: str | int | None, length: int) -> bool:
        """Return whether the step leads where the segment does, in a list of that length or an object."""
        if self.step is None:
            return True
        if isinstance(self.step, int) and isinstance(step, int):
            return step == (self.step if self.step >= 0 else length + self.step)
        return self.step == step


def segments(path: str) -> tuple[Segment, ...]:
    """Return the segments of a JSONPath of names, indexes, `*` and `..`; raise ValueError for any other one."""
    if not path.startswith("$"):
        raise ValueError(f"`{path}` is not a JSONPath: it begins with `$`")
    found, place = [], 1
    while place < len(path):
        match = _SEGMENT.match(path, place)
        if match is None:
            raise ValueError(f"`{path}` is not a JSONPath of names, indexes, `*` and `..`")
        quoted = match["single"] if match["single"] is not None else match["double"]
        step: str | int | None = match["name"]
        if quoted is not None:
            step = _ESCAPE.sub(r"\1", quoted)
        elif match["index"]:
            step = int(match["index"])
        found.append(Segment(step, match["descend"] == ".."))
        place = match.end()
    return tuple(found)
