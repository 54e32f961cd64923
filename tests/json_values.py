"""JSON values for properties, and keys that are hostile."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

COMPOSED = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
HOSTILE_KEYS = (
    "__proto__",
    "constructor",
    "",
    " ",
    "a" * 100_000,
    "\x00\x1b[31m\n",
    "\N{RIGHT-TO-LEFT OVERRIDE}x",
    "it's \\",
    "$.a[0]",
    "0",
    "*",
    COMPOSED,
    DECOMPOSED,
    "\N{PILE OF POO}",
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
