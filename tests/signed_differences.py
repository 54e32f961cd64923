"""Tests of paired scores by their definitions."""

from itertools import product
from math import prod


def p_value(differences, side="both"):
    """The share of all ways to give the differences signs whose sum is as far from 0, or as low for `lower`."""
    observed = sum(differences)
    sums = [sum(map(prod, zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=len(differences))]
    if side == "lower":
        return sum(total <= observed + 1e-9 for total in sums) / len(sums)
    return sum(abs(total) >= abs(observed) - 1e-9 for total in sums) / len(sums)


def adjusted(values):
    """Holm's p values, by their names: the smallest times the number of tests, and so on, never below one before."""
    ordered = sorted(values, key=values.get)
    steps = [min(1.0, values[name] * (len(ordered) - place)) for place, name in enumerate(ordered)]
    return {name: max(steps[: place + 1]) for place, name in enumerate(ordered)}
