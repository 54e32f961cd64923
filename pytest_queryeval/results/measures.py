"""What the answers of a run cost: times, and every number that systems report about their calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.report import MeasureStatistics, Spread

MAX_MEASURES = 200  # metadata may hold any number of names
MAX_SIZE = 1e15
P95 = 0.95


def measure_statistics(values: Sequence[float]) -> MeasureStatistics:
    """Return what `describe` returns, the sum, and the 95th percentile `p95` by linear interpolation."""
    ordered_values = sorted(values)
    place = P95 * (len(ordered_values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered_values) - 1)
    p95 = ordered_values[below] + (ordered_values[above] - ordered_values[below]) * (place - below)
    return {**describe(ordered_values), "sum": math.fsum(ordered_values), "p95": p95}


def describe(values: Sequence[float]) -> Spread:
    """Return mean, n, sample standard deviation (None for n = 1), min, median and max of at least one value."""
    ordered_values, n = sorted(values), len(values)
    mean = math.fsum(ordered_values) / n
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered_values) / (n - 1)) if n > 1 else None
    median = (ordered_values[(n - 1) // 2] + ordered_values[n // 2]) / 2
    return {"mean": mean, "n": n, "std": std, "min": ordered_values[0], "median": median, "max": ordered_values[-1]}


def measures_of(case: CaseReport) -> Iterator[tuple[str, float]]:
    """Yield the name and the value of each measure of each call of a case.

    Measures are `prediction_seconds`, `execution_seconds`, and `metadata[NAME]` for each name that has numbers. Each
    trial counts, since each is a call. Times of 0 seconds are left out: those predictions stood in a suite or a file,
    and those queries were not run. Numbers whose size is MAX_SIZE or more are left out as well.
    """
    answers: Sequence[CaseReport | TrialReport] = case["trials"] or [case]
    for answer in answers:
        prediction, predicted = answer["prediction"], answer["predicted"]
        if prediction is not None and prediction["seconds"]:
            yield "prediction_seconds", prediction["seconds"]
        if predicted is not None and predicted["seconds"]:
            yield "execution_seconds", predicted["seconds"]
        for name, value in prediction["metadata"].items() if prediction is not None else ():
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_SIZE:
                yield f"metadata[{name}]", float(value)
