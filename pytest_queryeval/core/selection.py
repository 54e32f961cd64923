"""An SDMX data query as the terms that it selects."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Term:
    """A code of a dimension by its id, its name, or both; None for the one that was not given.

    `label` is the name in the structure if none was given: it is shown, and compared only with a gold without an id.
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
