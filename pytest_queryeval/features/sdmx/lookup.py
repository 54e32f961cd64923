"""The datasets of a structure by their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pytest_queryeval.features.sdmx.structure import DatasetStructure, Structure
from pytest_queryeval.features.sdmx.structure_messages import version_order
from pytest_queryeval.text.truncation import one_line

MAX_NAMES = 5
MAX_CHARACTERS = 100  # of a name
TIME = "TIME_PERIOD"  # the id of the time dimension, which structures leave out
_VERSIONED = re.compile(r"([^()]+)\(([^()]+)\)")


class Datasets:
    """All versions of each dataset."""

    def __init__(self, structure: Structure) -> None:
        self._versions: defaultdict[str, list[DatasetStructure]] = defaultdict(list)
        for dataset in structure.datasets:
            self._versions[dataset.id].append(dataset)

    @property
    def ids(self) -> Sequence[str]:
        """Return the ids of all datasets, without versions."""
        return list(self._versions)

    def of_any_agency(self, id_: str) -> Sequence[str]:
        """Return the ids `AGENCY:ID` of all datasets with this ID."""
        return [dataset for dataset in self._versions if dataset.partition(":")[2] == id_]

    def get(self, dataset: str) -> DatasetStructure | None:
        """Return the dataset `AGENCY:ID` or `AGENCY:ID(VERSION)`, in its newest version where that one is unknown."""
        match = _VERSIONED.fullmatch(dataset)
        versions = self._versions.get(match[1] if match else dataset, [])
        fitting = [candidate for candidate in versions if match and candidate.version == match[2]]
        return max(fitting or versions, key=lambda candidate: version_order(candidate.version), default=None)


def codes_of(dataset: DatasetStructure) -> Mapping[str, Mapping[str, str] | None]:
    """Return the names of the codes of each dimension, None where any value is allowed."""
    return {dimension.id: dimension.codes for dimension in dataset.dimensions}


def unlisted_codes(structure: Structure) -> str:
    """Return a sentence on the dimensions that are not checked as no message lists their codes; empty without any."""
    unlisted_dimensions = [
        (dimension.id, dataset.id, dimension.unlisted_codes)
        for dataset in structure.datasets
        for dimension in dataset.dimensions
        if dimension.unlisted_codes is not None
    ]
    if not unlisted_dimensions:
        return ""
    dimensions, datasets, codelists = (
        list_names(list(dict.fromkeys(names)), MAX_NAMES, MAX_CHARACTERS)
        for names in zip(*unlisted_dimensions, strict=True)
    )
    return f"codes of {dimensions} in {datasets} are not checked: no file lists those of {codelists}"


def list_names(names: Sequence[str], most: int, characters: int) -> str:
    """Return the first `most` names, of so many characters each, and the number of the others, for a message."""
    first_names = ", ".join(one_line(name, characters) for name in names[:most])
    return f"{first_names} and {len(names) - most:,} more" if len(names) > most else first_names
