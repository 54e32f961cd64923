"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def format_score(value: float | None) -> str:
    """Return a score with three decimals, or n/a."""
    return "n/a" if value is None else f"{value:.3f}"


def format_interval(ci95: Sequence[float] | None, number: Callable[[float], str] = format_score) -> str:
    """Return an interval; empty where there is none."""
    return "" if ci95 is None else f"{number(ci95[0])} to {number(ci95[1])}"


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> pluralize(1, "case"), pluralize(2_000, "case")
    ('1 case', '2,000 cases')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
