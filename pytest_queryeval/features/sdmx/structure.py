"""The datasets, dimensions and codes that structure messages describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a dataset."""

    id: str
    codes: Mapping[str, str] | None
    """The names of its codes by id; None if any value is allowed, or if no message lists the codes."""
    unlisted_codes: str | None = None
    """The codelist or concept whose codes no message lists; None if they are listed or not restricted."""


@dataclass(frozen=True, slots=True)
class DatasetStructure:
    """The structure of a dataset."""

    id: str
    """`AGENCY:ID`."""
    version: str
    dimensions: tuple[Dimension, ...]
    """In the order of its keys, without time."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The datasets that a suite's structure messages describe."""

    datasets: tuple[DatasetStructure, ...]
