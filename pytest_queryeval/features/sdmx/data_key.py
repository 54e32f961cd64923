"""Keys of SDMX REST data queries: the codes that they name for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import TypeAlias

from pytest_queryeval.text.truncation import one_line

Codes: TypeAlias = tuple[str, ...] | None  # None for all codes, explicitly or not
MAX_SHOWN = 60  # characters
MAX_NAMES = 30


def key_codes(key: str, dataset: str, dimensions: Sequence[str], *, is_rest_3: bool) -> tuple[Codes, ...]:
    """Return the codes of each dimension of the dataset; raise `ValueError` where the key does not fit.

    Dots separate the dimensions, `+` the codes of one; an empty part, or `*`, is all codes. A key of SDMX 2.1 has a
    part for each dimension, or is `all`. In SDMX 3.0 parts at the end may be left out, and commas separate several
    keys. Several keys are a selection of codes for each dimension only if they are all combinations of these: `A.X,B.Y`
    selects two series of the four that `A` or `B` and `X` or `Y` have, so it is rejected.
    """
    if not key or (key.lower() == "all" and not is_rest_3):
        return (None,) * len(dimensions)
    if "," in key and not is_rest_3:
        raise ValueError(f"a key of SDMX 2.1 separates codes by `+`, not by `,`: '{one_line(key, MAX_SHOWN)}'")
    keys = key.split(",") if is_rest_3 else [key]
    distinct = list(
        dict.fromkeys(_parts(single_key, dataset, dimensions, may_be_short=is_rest_3) for single_key in keys)
    )
    columns = list(zip(*distinct, strict=True))
    varying = [column for column in columns if len(set(column)) > 1]
    if len(varying) > 1:
        if any(codes is None or len(codes) > 1 for codes in chain.from_iterable(varying)):
            raise ValueError("the keys differ in several dimensions, of which one names not one code: write one key")
        if len(distinct) < prod(len(set(column)) for column in varying):
            raise ValueError("the keys are not all combinations of their codes, so they are no selection")
    return tuple(
        None if None in column else tuple(dict.fromkeys(chain.from_iterable(codes or () for codes in column)))
        for column in columns
    )


def _parts(key: str, dataset: str, dimensions: Sequence[str], *, may_be_short: bool) -> tuple[Codes, ...]:
    number = key.count(".") + 1
    if number > len(dimensions) or (number < len(dimensions) and not may_be_short):
        names = ", ".join([*dimensions[:MAX_NAMES], *(["…"] if len(dimensions) > MAX_NAMES else [])])
        parts = f"{number:,} part{'s' * (number != 1)}"
        raise ValueError(f"the key has {parts} for the {len(dimensions):,} dimensions of {dataset}: {names}")
    part_codes: list[Codes] = []
    for part in key.split("."):
        codes = tuple(dict.fromkeys(part.split("+"))) if part else ("*",)
        if "" in codes:
            raise ValueError(f"a code is missing beside a `+` of the key: '{one_line(part, MAX_SHOWN)}'")
        part_codes.append(None if "*" in codes else codes)
    return (*part_codes, *(None,) * (len(dimensions) - number))
