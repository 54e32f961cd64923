"""The order of dimensions in SDMX-ML, which sdmx1 loses where measure dimensions or positions are among them.

It gathers dimensions by their sort, and orders them by positions only where the time dimension has one, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from xml.parsers import expat

from pytest_queryeval.languages.sdmx.structure_messages import Reference

Orders: TypeAlias = Mapping[Reference, Sequence[str]]
_KEYED = ("Dimension", "MeasureDimension")


def dimension_orders(data: bytes) -> Orders:
    """The ids of the dimensions of each data structure, time left out, in the order of the key.

    That is by their positions where all have one, else as they stand. Empty ids are those that the message leaves to
    the concepts. The data are XML without a document type.
    """
    gathered = _Gathered()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = gathered.start
    parser.EndElementHandler = gathered.end
    parser.Parse(data, True)
    return {structure: _ordered(dimensions) for structure, dimensions in gathered.structures.items()}


def _ordered(dimensions: Sequence[Mapping[str, str]]) -> Sequence[str]:
    if all(dimension.get("position", "").isdecimal() for dimension in dimensions):
        dimensions = sorted(dimensions, key=lambda dimension: int(dimension["position"]))
    return [dimension.get("id", "") for dimension in dimensions]


class _Gathered:
    """The attributes of the dimensions of each data structure as the elements come."""

    def __init__(self) -> None:
        self.structures: dict[Reference, list[Mapping[str, str]]] = {}
        self._dimensions: list[Mapping[str, str]] = []
        self._in_list = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name == "DataStructure" and "id" in attributes:
            named = Reference(attributes.get("agencyID", ""), attributes["id"], attributes.get("version", ""))
            self._dimensions = self.structures.setdefault(named, [])
        elif name == "DimensionList":
            self._in_list = True
        elif name in _KEYED and self._in_list:  # attributes have elements of these names that refer to dimensions
            self._dimensions.append(attributes)

    def end(self, tag: str) -> None:
        if tag.rpartition(" ")[2] == "DimensionList":
            self._in_list = False
