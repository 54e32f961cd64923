"""The datasets of a structure by their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_queryeval.core.selection import DatasetStructure, Structure
from pytest_queryeval.languages.sdmx.structure_messages import version_order
from pytest_queryeval.text.plain import one_line

MOST_NAMES = 5
NAME_CHARACTERS = 100
TIME = "TIME_PERIOD"  # what SDMX calls the time dimension, which structures leave out
_VERSIONED = re.compile(r"([^()]+)\(([^()]+)\)")


class Datasets:
    """All versions of each dataset."""

    def __init__(self, structure: Structure) -> None:
        self._versions: defaultdict[str, list[DatasetStructure]] = defaultdict(list)
        for dataset in structure.datasets:
            self._versions[dataset.id].append(dataset)

    @property
    def ids(self) -> Sequence[str]:
        """The ids of all datasets, without versions."""
        return list(self._versions)

    def called(self, id_: str) -> Sequence[str]:
        """The ids `AGENCY:ID` of all datasets with this ID."""
        return [dataset for dataset in self._versions if dataset.partition(":")[2] == id_]

    def get(self, dataset: str) -> DatasetStructure | None:
        """What `AGENCY:ID` or `AGENCY:ID(VERSION)` names: that version, or the newest where it is not there."""
        match = _VERSIONED.fullmatch(dataset)
        versions = self._versions.get(match[1] if match else dataset, [])
        fitting = [one for one in versions if match and one.version == match[2]]
        return max(fitting or versions, key=lambda one: version_order(one.version), default=None)


def codes_of(dataset: DatasetStructure) -> Mapping[str, Mapping[str, str] | None]:
    """The names of the codes of each dimension, None where any value may stand."""
    return {dimension.id: dimension.codes for dimension in dataset.dimensions}


def untold(structure: Structure) -> str:
    """Which dimensions go unchecked as no message says their codes, in a sentence; empty where there are none."""
    found = [
        (dimension.id, dataset.id, dimension.untold)
        for dataset in structure.datasets
        for dimension in dataset.dimensions
        if dimension.untold is not None
    ]
    if not found:
        return ""
    dimensions, datasets, tellers = map(_some, zip(*found, strict=True))
    return f"codes of {dimensions} in {datasets} are not checked: no file says those of {tellers}"


def _some(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - MOST_NAMES
    listed = ", ".join(one_line(name, NAME_CHARACTERS) for name in distinct[:MOST_NAMES])
    return f"{listed} and {more:,} more" if more > 0 else listed
