"""SDMX-JSON structure messages, versions 1.0 and 2 (https://github.com/sdmx-twg/sdmx-json), which sdmx1 does not read.

It reads data messages in JSON only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_queryeval.languages.sdmx.structure_messages import (
    Codes,
    Component,
    ConceptReference,
    Message,
    Reference,
    english,
)

Object: TypeAlias = Mapping[str, Any]
_URN = re.compile(r"urn:sdmx:[^=]*=([^:=]*):([^(]*)\(([^()]*)\)(?:\.(.*))?")
# The lists whose items dimensions can enumerate, and what the items of each are called.
_SCHEMES = {
    "codelists": "codes",
    "valueLists": "valueItems",
    "geographicCodelists": "geoFeatureSetCodes",
    "geoGridCodelists": "geoGridCodes",
    "conceptSchemes": "concepts",
}
_EXTENSIONS = "codelistExtensions"


def read_json_message(data: bytes) -> Message:
    """Read a message; raises `ValueError` with the reason where it is none."""
    try:
        document = json.loads(data)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from error
    content = document.get("data") if isinstance(document, dict) else None
    if not isinstance(content, dict) or "dataSets" in content or "dataSets" in document:
        raise ValueError("it is no SDMX-JSON structure message")
    return Message(
        codelists=dict(_codelists(content)),
        concepts=dict(_concepts(content)),
        structures={_name(one): _components(one) for one in _defined(content, "dataStructures")},
        dataflows=dict(_dataflows(content)),
    )


def _codelists(content: Object) -> Iterator[tuple[Reference, Codes]]:
    for key, items in _SCHEMES.items():
        for scheme in _defined(content, key):
            if not scheme.get(_EXTENSIONS):  # some of its codes stand in other lists
                yield _name(scheme), {_text(item, "id"): _name_of(item) for item in _items(scheme, items)}


def _concepts(content: Object) -> Iterator[tuple[ConceptReference, Reference | None]]:
    for scheme in _defined(content, "conceptSchemes"):
        for item in _items(scheme, "concepts"):
            codelist = _enumerated(item.get("coreRepresentation"))
            yield ConceptReference(_name(scheme), _text(item, "id")), codelist


def _dataflows(content: Object) -> Iterator[tuple[Reference, Reference]]:
    for dataflow in _defined(content, "dataflows"):
        structure = _urn(dataflow.get("structure"))
        if structure is not None:
            yield _name(dataflow), structure[0]


def _components(structure: Object) -> Sequence[Component]:
    listed = _object(_object(structure, "dataStructureComponents"), "dimensionList")
    dimensions = [*_objects(listed, "dimensions"), *_objects(listed, "measureDimensions")]
    if all(isinstance(dimension.get("position"), int) for dimension in dimensions):
        dimensions.sort(key=lambda dimension: dimension["position"])
    return tuple(map(_component, dimensions))


def _component(dimension: Object) -> Component:
    concept = _urn(dimension.get("conceptIdentity"))
    own = dimension.get("localRepresentation")
    return Component(
        id=_text(dimension, "id") if "id" in dimension or concept is None else concept[1],
        concept=None if concept is None else ConceptReference(*concept),
        codelist=_enumerated(own),
        has_own=bool(own),
    )


def _enumerated(representation: Any) -> Reference | None:
    found = _urn(representation.get("enumeration")) if isinstance(representation, dict) else None
    return None if found is None else found[0]


def _urn(text: Any) -> tuple[Reference, str] | None:
    match = _URN.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else (Reference(match[1], match[2], match[3]), match[4] or "")


def _name(artefact: Object) -> Reference:
    agency = artefact.get("agencyID") or artefact.get("agencyId") or ""
    return Reference(str(agency), _text(artefact, "id"), str(artefact.get("version") or ""))


def _name_of(item: Object) -> str:
    names = item.get("names")
    if isinstance(names, dict) and names:
        return english({locale: str(name) for locale, name in names.items()})
    return str(item.get("name") or "")


def _defined(content: Object, key: str) -> Iterator[Object]:
    return (artefact for artefact in _objects(content, key) if artefact.get("isExternalReference") is not True)


def _items(scheme: Object, key: str) -> Iterator[Object]:
    """The items of a scheme with those below them."""
    ahead = list(reversed(_objects(scheme, key)))
    while ahead:
        item = ahead.pop()
        yield item
        ahead.extend(reversed(_objects(item, key)))


def _objects(around: Object, key: str) -> Sequence[Object]:
    found = around.get(key) or []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError(f"its '{key}' are no list of objects")
    return found


def _object(around: Object, key: str) -> Object:
    found = around.get(key) or {}
    if not isinstance(found, dict):
        raise ValueError(f"its '{key}' is no object")
    return found


def _text(around: Object, key: str) -> str:
    found = around.get(key)
    if not isinstance(found, str):
        raise ValueError(f"an artefact or an item in it has no '{key}'")
    return found
