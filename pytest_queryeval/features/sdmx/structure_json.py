"""SDMX-JSON structure messages, versions 1.0 and 2 (https://github.com/sdmx-twg/sdmx-json).

sdmx1 reads only data messages in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.features.sdmx.structure import (
    Codes,
    Component,
    ConceptReference,
    Message,
    Reference,
    english_name,
)

Object: TypeAlias = Mapping[str, Any]
_JSON = StrictJson(read_object=None, allow_nan=True)
_URN = re.compile(r"urn:sdmx:[^=]*=([^:=]*):([^(]*)\(([^()]*)\)(?:\.(.*))?")
# The lists whose items dimensions can enumerate, and the key of the items of each.
_SCHEMES = {
    "codelists": "codes",
    "valueLists": "valueItems",
    "geographicCodelists": "geoFeatureSetCodes",
    "geoGridCodelists": "geoGridCodes",
    "conceptSchemes": "concepts",
}


def read_json_message(data: bytes) -> Message:
    """Read a message; raise `ValueError` with the reason if it is not one."""
    try:
        document = _JSON.read(data)
    except TooDeepError as error:
        raise ValueError("its JSON is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from error
    content = document.get("data") if isinstance(document, dict) else None
    if not isinstance(content, dict) or "dataSets" in content or "dataSets" in document:
        raise ValueError("it is not an SDMX-JSON structure message")
    codelists: dict[Reference, Codes] = {}
    for key, items in _SCHEMES.items():
        for scheme in _definitions(content, key):
            if not scheme.get("codelistExtensions"):  # else some of its codes are in other lists
                codelists[_name(scheme)] = {_text(item, "id"): _item_name(item) for item in _items(scheme, items)}
    concepts = {
        ConceptReference(_name(scheme), _text(item, "id")): _codelist(item.get("coreRepresentation"))
        for scheme in _definitions(content, "conceptSchemes")
        for item in _items(scheme, "concepts")
    }
    structures = {_name(structure): _components(structure) for structure in _definitions(content, "dataStructures")}
    dataflows = {}
    for dataflow in _definitions(content, "dataflows"):
        if (structure := _read_urn(dataflow.get("structure"))) is not None:
            dataflows[_name(dataflow)] = structure[0]
    return Message(codelists=codelists, concepts=concepts, structures=structures, dataflows=dataflows)


def _components(structure: Object) -> Sequence[Component]:
    dimension_list = _object(_object(structure, "dataStructureComponents"), "dimensionList")
    dimensions = [*_objects(dimension_list, "dimensions"), *_objects(dimension_list, "measureDimensions")]
    if all(isinstance(dimension.get("position"), int) for dimension in dimensions):
        dimensions.sort(key=lambda dimension: dimension["position"])
    components = []
    for dimension in dimensions:
        concept = _read_urn(dimension.get("conceptIdentity"))
        representation = dimension.get("localRepresentation")
        component = Component(
            id=_text(dimension, "id") if "id" in dimension or concept is None else concept[1],
            concept=None if concept is None else ConceptReference(*concept),
            codelist=_codelist(representation),
            has_representation=bool(representation),
        )
        components.append(component)
    return components


def _codelist(representation: Any) -> Reference | None:
    urn = _read_urn(representation.get("enumeration")) if isinstance(representation, dict) else None
    return None if urn is None else urn[0]


def _read_urn(text: Any) -> tuple[Reference, str] | None:
    match = _URN.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else (Reference(match[1], match[2], match[3]), match[4] or "")


def _name(artefact: Object) -> Reference:
    agency = artefact.get("agencyID") or artefact.get("agencyId") or ""
    return Reference(str(agency), _text(artefact, "id"), str(artefact.get("version") or ""))


def _item_name(item: Object) -> str:
    names = item.get("names")
    if isinstance(names, dict) and names:
        return english_name({locale: str(name) for locale, name in names.items()})
    return str(item.get("name") or "")


def _definitions(content: Object, key: str) -> Iterator[Object]:
    return (artefact for artefact in _objects(content, key) if artefact.get("isExternalReference") is not True)


def _items(scheme: Object, key: str) -> Iterator[Object]:
    """Yield the items of a scheme with those below them."""
    pending_items = list(reversed(_objects(scheme, key)))
    while pending_items:
        item = pending_items.pop()
        yield item
        pending_items.extend(reversed(_objects(item, key)))


def _objects(parent: Object, key: str) -> Sequence[Object]:
    objects = parent.get(key) or []
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise ValueError(f"its '{key}' is not a list of objects")
    return objects


def _object(parent: Object, key: str) -> Object:
    member = parent.get(key) or {}
    if not isinstance(member, dict):
        raise ValueError(f"its '{key}' is not an object")
    return member


def _text(parent: Object, key: str) -> str:
    text = parent.get(key)
    if not isinstance(text, str):
        raise ValueError(f"an artefact or an item in it has no '{key}'")
    return text
