"""What the answers of a run cost: times, and every number that systems tell of their calls."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

MOST_MEASURES = 200  # metadata may hold any number of names
LARGEST = 1e15
P95 = 0.95


def measure_statistics(cases: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Per measure its `spread` and its 95th percentile `p95`.

    Measures are `prediction_seconds`, `execution_seconds`, and `metadata[NAME]` for each name that has numbers. Each
    trial counts, since each is a call. Times of 0 seconds are left out: those predictions were stated or stood in a
    file, and those queries were not run. So is what is no number of a size below LARGEST.
    """
    values: defaultdict[str, list[float]] = defaultdict(list)
    for name, value in (measure for case in cases for measure in _measures(case)):
        if name in values or len(values) < MOST_MEASURES:
            values[name].append(value)
    return {name: spread(own) | {"p95": _p95(own)} for name, own in values.items()}


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Mean, n, sample standard deviation (None for n = 1), min, median and max of at least one value."""
    ordered, n = sorted(values), len(values)
    mean = math.fsum(ordered) / n
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / (n - 1)) if n > 1 else None
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return {"mean": mean, "n": n, "std": std, "min": ordered[0], "median": middle, "max": ordered[-1]}


def _p95(values: Sequence[float]) -> float:
    """The 95th percentile, between two values by linear interpolation."""
    ordered = sorted(values)
    place = P95 * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _measures(case: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What a case says; it may come from anywhere."""
    answered: list[Any] = [trial for trial in case["trials"] if isinstance(trial, dict)] or [case]
    for each in answered:
        prediction, predicted = (_mapping(each.get(part)) for part in ("prediction", "predicted"))
        told = {
            "prediction_seconds": prediction.get("seconds") or None,
            "execution_seconds": predicted.get("seconds") or None,
            **{f"metadata[{name}]": value for name, value in _mapping(prediction.get("metadata")).items()},
        }
        yield from ((name, float(value)) for name, value in told.items() if _is_measured(value))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_measured(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
