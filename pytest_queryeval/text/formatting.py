"""Numbers as people read them, and tables of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pytest_queryeval.text.truncation import one_line_with_end

GAP = "  "
MIN_NAME = 16
Row: TypeAlias = Sequence[str]


def format_score(value: float | None) -> str:
    """Return a score with three decimals, or n/a."""
    return "n/a" if value is None else f"{value:.3f}"


def format_amount(value: float) -> str:
    """Return a number of seconds, tokens or a cost with at least four digits.

    >>> format_amount(0.0123456), format_amount(12.0), format_amount(1_234_567.8)
    ('0.01235', '12', '1,234,568')
    """
    return f"{value:.4g}" if abs(value) < 1_000 else f"{value:,.0f}"


def signed(value: float) -> str:
    """Return a change with its sign and three decimals.

    >>> signed(0.25), signed(-0.0001)
    ('+0.250', '0.000')
    """
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def format_interval(ci95: Sequence[float] | None, number: Callable[[float], str] = format_score) -> str:
    """Return an interval; empty if there is none."""
    return "" if ci95 is None else f"{number(ci95[0])} to {number(ci95[1])}"


def limits_text(minimum: float | None, maximum: float | None) -> str:
    """Return in words what limits require; empty without a limit.

    >>> limits_text(0.85, 0.99)
    'at least 0.85 and at most 0.99'
    """
    limits = (("at least", minimum), ("at most", maximum))
    return " and ".join(f"{words} {limit:,.10g}" for words, limit in limits if limit is not None)


def minute_of(created: str) -> str:
    """Return a time in the form of ISO 8601 up to its minute.

    >>> minute_of("2024-05-01T10:00:00+00:00")
    '2024-05-01 10:00'
    """
    return created[:16].replace("T", " ")


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> pluralize(1, "case"), pluralize(2_000, "case")
    ('1 case', '2,000 cases')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


class Part(NamedTuple):
    """The lines of a part of a table, header first, and how many columns it has beside the names."""

    lines: list[str]
    columns: int


def parts_of(header: Row, rows: Sequence[Row], *, width: int, whole_names: bool = False) -> list[Part]:
    """Return a table in parts of at most `width` characters where that is possible.

    The first column holds names, to the left; the others numbers, to the right. Each part has the names and as many
    columns as fit, at least one. Long names are cut to leave room for numbers, unless they are to be `whole_names`.
    """
    table = [header, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(header))]
    widths[0] = widths[0] if whole_names else _name_width(widths, width)
    rows_with_names = [[one_line_with_end(row[0], widths[0]), *row[1:]] for row in table]
    return [Part(_lines(rows_with_names, widths, (0, *places)), len(places)) for places in _places(widths, width)]


def _name_width(widths: Sequence[int], width: int) -> int:
    """Return the width for names: what all columns leave, or a third of the width where they do not fit anyway."""
    beside_all = width - sum(len(GAP) + column_width for column_width in widths[1:])
    return min(widths[0], max(beside_all if beside_all >= MIN_NAME else width // 3, MIN_NAME))


def _places(widths: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of the columns of each part, without that of the names."""
    part: list[int] = []
    used_width = widths[0]
    for place in range(1, len(widths)):
        needed = len(GAP) + widths[place]
        if part and used_width + needed > width:
            yield tuple(part)
            part, used_width = [], widths[0]
        part.append(place)
        used_width += needed
    yield tuple(part)


def _lines(table: Sequence[Row], wide: Sequence[int], places: Sequence[int]) -> list[str]:
    return [
        GAP.join(row[place].rjust(wide[place]) if place else row[place].ljust(wide[place]) for place in places).rstrip()
        for row in table
    ]
