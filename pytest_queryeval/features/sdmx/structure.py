"""The datasets, dimensions and codes that structure messages describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a dataset; `codes` are the names of its codes by their ids, None where any value may stand.

    Or where no message lists them: `unlisted_codes` is then the codelist, or the concept, that would.
    """

    id: str
    codes: Mapping[str, str] | None
    unlisted_codes: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetStructure:
    """The dimensions of a dataset in the order of its keys, time left out; `id` is `AGENCY:ID`."""

    id: str
    version: str
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """The datasets that a suite's structure messages describe."""

    datasets: tuple[DatasetStructure, ...]
