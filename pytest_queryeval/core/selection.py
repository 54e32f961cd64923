"""An SDMX data query as the terms that it selects, and the structure that says which terms there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Term:
    """A code of a dimension by its id, its name, or both; None for what was not said.

    `label` is the name that the structure tells where none was said: it is shown, and compared only with a gold that
    says no id.
    """

    id: str | None
    name: str | None
    label: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DimensionSelection:
    """The terms that are selected of one dimension."""

    name: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class DatasetSelection:
    """What is selected of one dataset; `id` is `AGENCY:ID`, with `(VERSION)` behind it where one is meant."""

    id: str
    dimensions: tuple[DimensionSelection, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a data query selects. `by_id` tells that it was stated in codes: names are for display then."""

    datasets: tuple[DatasetSelection, ...]
    by_id: bool = False


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
