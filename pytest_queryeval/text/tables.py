"""Tables of text that keep within a width: long names are cut, numbers never, and what does not fit goes below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pytest_queryeval.text.truncation import one_line_with_end

GAP = "  "
MIN_NAME = 16
Row: TypeAlias = Sequence[str]


class Part(NamedTuple):
    """The lines of a part of a table, header first, and how many columns it has beside the names."""

    lines: list[str]
    columns: int


def parts_of(header: Row, rows: Sequence[Row], *, width: int) -> list[Part]:
    """Return a table in parts of at most `width` characters where that can be.

    The first column holds names, to the left; the others numbers, to the right. Each part has the names and as many
    columns as fit, at least one.
    """
    table = [header, *rows]
    wide = [max(len(row[place]) for row in table) for place in range(len(header))]
    wide[0] = _name_width(wide, width)
    named = [[one_line_with_end(row[0], wide[0]), *row[1:]] for row in table]
    return [Part(_lines(named, wide, (0, *places)), len(places)) for places in _places(wide, width)]


def _name_width(wide: Sequence[int], width: int) -> int:
    """Return the room for names beside all columns, or where these do not fit anyway, a third of the width."""
    beside_all = width - sum(len(GAP) + one for one in wide[1:])
    return min(wide[0], max(beside_all if beside_all >= MIN_NAME else width // 3, MIN_NAME))


def _places(wide: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of the columns of each part, without that of the names."""
    part: list[int] = []
    used = wide[0]
    for place in range(1, len(wide)):
        needed = len(GAP) + wide[place]
        if part and used + needed > width:
            yield tuple(part)
            part, used = [], wide[0]
        part.append(place)
        used += needed
    yield tuple(part)


def _lines(table: Sequence[Row], wide: Sequence[int], places: Sequence[int]) -> list[str]:
    return [
        GAP.join(row[place].rjust(wide[place]) if place else row[place].ljust(wide[place]) for place in places).rstrip()
        for row in table
    ]
