"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence


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
    """Return an interval; empty where there is none."""
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
