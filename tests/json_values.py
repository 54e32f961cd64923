"""JSON values for properties, and keys that are hostile."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from itertools import combinations, permutations, product

from hypothesis import strategies as st

from pytest_queryeval.core.table import Policy

COMPOSED = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
HOSTILE_KEYS = (
    *("__proto__", "constructor", "", " ", "a" * 100_000, "\x00\x1b[31m\n", "\N{RIGHT-TO-LEFT OVERRIDE}x", "it's \\"),
    *("$.a[0]", "0", "*", COMPOSED, DECOMPOSED, "\N{PILE OF POO}"),
)

TEXTS = st.text(alphabet="abé 01'\\\"", max_size=3)
KEYS = st.sampled_from(["a", "b", "c", "0", "", COMPOSED, DECOMPOSED, "__proto__"])
NUMBERS = st.integers(-3, 3) | st.sampled_from(
    [0.0, -0.0, 0.5, 1.0, 2.0**53, 2**53 + 1, 12.0, 12, 1e16, 10**16, 10**16 + 1, 1e22, 10**400]
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=10
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def turned(value):
    """The same value, its keys in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(item) for key, item in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def nested(levels, innermost):
    """A value within so many objects and lists."""
    for level in range(levels):
        innermost = {"a": innermost} if level % 2 else [innermost]
    return innermost


def key(value):
    """What equal JSON values have in common, and no others."""
    if isinstance(value, dict):
        return "object", frozenset((name, key(item)) for name, item in value.items())
    if isinstance(value, list):
        return "list", tuple(map(key, value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ("number", Fraction(value)) if is_number else (type(value).__name__, value)


def leaves(value):
    """How many scalars, empty objects and empty lists there are."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(leaves, items)) or 1


def shared(gold, predicted, policy=Policy()):  # noqa: B008 (immutable)
    """How many leaves have an equal one at their place, by the best of all alignments of lists."""
    if gold and predicted and isinstance(gold, dict) and isinstance(predicted, dict):
        return sum(shared(item, predicted[name], policy) for name, item in gold.items() if name in predicted)
    if gold and predicted and isinstance(gold, list) and isinstance(predicted, list):
        choose = combinations if policy.lists == "ordered" else permutations
        chosen = (
            pairs
            for length in range(min(len(gold), len(predicted)) + 1)
            for pairs in product(combinations(gold, length), choose(predicted, length))
        )
        return max(sum(shared(*pair, policy) for pair in zip(*pairs, strict=True)) for pairs in chosen)
    are_numbers = all(type(value) in (int, float) for value in (gold, predicted))
    return int(key(gold) == key(predicted) or (are_numbers and abs(gold - predicted) <= (policy.abs or 0)))
