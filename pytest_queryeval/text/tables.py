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
    """Return a table in parts of at most `width` characters where that is possible.

    The first column holds names, to the left; the others numbers, to the right. Each part has the names and as many
    columns as fit, at least one.
    """
    table = [header, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(header))]
    widths[0] = _name_width(widths, width)
    rows_with_names = [[one_line_with_end(row[0], widths[0]), *row[1:]] for row in table]
    return [Part(_lines(rows_with_names, widths, (0, *places)), len(places)) for places in _places(widths, width)]


def _name_width(widths: Sequence[int], width: int) -> int:
    """Return the width for names: what all columns leave, or a third of the width where they do not fit anyway."""
    beside_all = width - sum(len(GAP) + column_width for column_width in widths[1:])
    return min(widths[0], max(beside_all if beside_all >= MIN_NAME else width // 3, MIN_NAME))


def _places(widths: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of the columns of each part, without that of the names."""
    part: list[int] = []
    used = widths[0]
    for place in range(1, len(widths)):
        needed = len(GAP) + widths[place]
        if part and used + needed > width:
            yield tuple(part)
            part, used = [], widths[0]
        part.append(place)
        used += needed
    yield tuple(part)


def _lines(table: Sequence[Row], wide: Sequence[int], places: Sequence[int]) -> list[str]:
    return [
        GAP.join(row[place].rjust(wide[place]) if place else row[place].ljust(wide[place]) for place in places).rstrip()
        for row in table
    ]
