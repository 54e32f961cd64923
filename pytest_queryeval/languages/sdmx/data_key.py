"""Keys of SDMX REST data queries: the codes that they name for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import TypeAlias

from pytest_queryeval.text.plain import one_line

Codes: TypeAlias = tuple[str, ...] | None  # None for all codes, said or not
_SHOWN = 60
_MOST_NAMES = 30


def key_codes(key: str, dataset: str, dimensions: Sequence[str], *, is_rest_3: bool) -> tuple[Codes, ...]:
    """The codes of each dimension of the dataset; raises `ValueError` where the key does not fit.

    Dots part the dimensions, `+` the codes of one; nothing, or `*`, stands for all codes. A key of SDMX 2.1 has a part
    for each dimension, or is `all`. In SDMX 3.0 parts at the end may be left out, and commas part several keys. What
    several keys ask for is a selection of codes for each dimension only if it is all their combinations: `A.X,B.Y` asks
    for two series of the four that `A` or `B` and `X` or `Y` have, so it is refused.
    """
    if not key or (key.lower() == "all" and not is_rest_3):
        return (None,) * len(dimensions)
    if "," in key and not is_rest_3:
        raise ValueError(f"a key of SDMX 2.1 parts codes by `+`, not by `,`: '{one_line(key, _SHOWN)}'")
    keys = key.split(",") if is_rest_3 else [key]
    distinct = list(dict.fromkeys(_parts(one, dataset, dimensions, may_be_short=is_rest_3) for one in keys))
    columns = list(zip(*distinct, strict=True))
    varying = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    if len(varying) > 1:
        _check_all_combinations([tuple(one[place] for place in varying) for one in distinct])
    return tuple(map(_union, columns))


def _parts(key: str, dataset: str, dimensions: Sequence[str], *, may_be_short: bool) -> tuple[Codes, ...]:
    number = key.count(".") + 1
    if number > len(dimensions) or (number < len(dimensions) and not may_be_short):
        names = ", ".join([*dimensions[:_MOST_NAMES], *(["…"] if len(dimensions) > _MOST_NAMES else [])])
        parts = f"{number:,} part{'s' * (number != 1)}"
        raise ValueError(f"the key has {parts} for the {len(dimensions):,} dimensions of {dataset}: {names}")
    codes = tuple(map(_codes, key.split(".")))
    return codes + (None,) * (len(dimensions) - number)


def _codes(part: str) -> Codes:
    if part in ("", "*"):
        return None
    codes = tuple(dict.fromkeys(part.split("+")))
    if "" in codes:
        raise ValueError(f"a code is missing beside a `+` of the key: '{one_line(part, _SHOWN)}'")
    return None if "*" in codes else codes


def _check_all_combinations(keys: Sequence[tuple[Codes, ...]]) -> None:
    """Whether keys that differ in several dimensions are all combinations of the codes that they name there."""
    if any(codes is None or len(codes) > 1 for codes in chain.from_iterable(keys)):
        raise ValueError("the keys differ in several dimensions, of which one names not one code: write one key")
    if len(keys) < prod(len(set(column)) for column in zip(*keys, strict=True)):
        raise ValueError("the keys are not all combinations of their codes, so no selection says the same")


def _union(column: Sequence[Codes]) -> Codes:
    if None in column:
        return None
    return tuple(dict.fromkeys(chain.from_iterable(codes or () for codes in column)))
