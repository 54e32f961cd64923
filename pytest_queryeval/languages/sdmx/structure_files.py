"""SDMX structure messages from files: SDMX-ML 2.1 and 3.0 as sdmx1 reads them, and SDMX-JSON."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn
from xml.parsers import expat

from pytest_queryeval.languages.sdmx.dimension_order import Orders, dimension_orders
from pytest_queryeval.languages.sdmx.structure_json import read_json_message
from pytest_queryeval.languages.sdmx.structure_messages import (
    Codes,
    Component,
    ConceptReference,
    Message,
    Reference,
    english,
)
from pytest_queryeval.text.plain import one_line

_NAMESPACE = "http://www.sdmx.org/resources/sdmxml/schemas/"
_REASON_CHARACTERS = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BOOLEANS = ("true", "false", "1", "0")
_EVALUATED = ("hasFormalLevels", "leveled")


def is_json(data: bytes) -> bool:
    """Whether a file looks like JSON; else it should be XML, which only sdmx1 can read."""
    return data.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def read_message(data: bytes) -> Message:
    """Read the content of a file; raises `ValueError` with the reason where it is no structure message."""
    if is_json(data):
        return read_json_message(data.removeprefix(_BYTE_ORDER_MARK))
    _check(data)
    found = _read_xml(data)
    return _message(found, dimension_orders(data) if found.structure else {})


def _check(data: bytes) -> None:
    """Whether the document is whole, and may be given to sdmx1, which knows its version."""
    root = ""

    def started(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal root
        if not root:
            _check_root(name)
            root = name
        # sdmx1 gives the values of these to Python's `eval`.
        for flag in _EVALUATED:
            if attributes.get(flag, "true") not in _BOOLEANS:
                raise ValueError(f"its '{flag}' is neither true nor false: '{one_line(attributes[flag])}'")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = started
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        known = "its XML is damaged or cut off" if root else "it is neither JSON nor XML"
        raise ValueError(f"{known} ({error})") from error
    except LookupError as error:  # an encoding that nobody knows
        raise ValueError(str(error)) from error


def _refuse(*_: object) -> NoReturn:
    raise ValueError("a DOCTYPE is not allowed")  # entities can blow up, or reach for files and servers


def _check_root(root: str) -> None:
    """Whether the first element, with its namespace before it, is that of a structure message."""
    namespace, _, name = root.rpartition(" ")
    if not namespace.startswith(_NAMESPACE):
        raise ValueError(f"it is not SDMX: its root element is '{one_line(name)}'")
    if name != "Structure":
        raise ValueError(f"it is no structure message: its root element is '{one_line(name)}'")
    version = namespace.removeprefix(_NAMESPACE).partition("/")[0]
    if version not in ("v2_1", "v3_0"):
        raise ValueError(f"only SDMX 2.1 and 3.0 can be read, not '{one_line(version)}'")


def _read_xml(data: bytes) -> Any:
    import sdmx  # only now, as it loads pandas and takes 0.4 s

    try:
        # Where it fails it prints what it has read by then.
        with contextlib.redirect_stdout(io.StringIO()):
            return sdmx.read_sdmx(io.BytesIO(data), format="XML")
    except Exception as error:
        cause = error.__cause__ or error
        reason = one_line(f"{type(cause).__name__}: {cause}", _REASON_CHARACTERS)
        raise ValueError(f"sdmx1 cannot read it ({reason})") from error


def _message(found: Any, orders: Orders) -> Message:
    schemes = list(_defined(found.concept_scheme))
    lists = [*_defined(found.codelist), *_defined(found.valuelist)]
    return Message(
        codelists={_name(one): _codes(one) for one in (*schemes, *lists) if not getattr(one, "extends", None)},
        concepts={ConceptReference(_name(one), item.id): _enumerated(item) for one in schemes for item in one},
        structures={_name(one): _components(one, orders) for one in _defined(found.structure)},
        dataflows={_name(one): _name(one.structure) for one in _defined(found.dataflow) if one.structure},
    )


def _defined(artefacts: Any) -> Iterator[Any]:
    """Those that the message defines: sdmx1 adds empty ones for all that it refers to."""
    return (artefact for artefact in artefacts.values() if not artefact.is_external_reference)


def _name(artefact: Any) -> Reference:
    agency = "" if artefact.maintainer is None else artefact.maintainer.id
    return Reference(agency, artefact.id, "" if artefact.version is None else str(artefact.version))


def _codes(items: Iterable[Any]) -> Codes:
    return {item.id: english(item.name.localizations) for item in items}


def _enumerated(concept: Any) -> Reference | None:
    return _codelist(concept.core_representation)


def _codelist(representation: Any) -> Reference | None:
    enumerated = None if representation is None else representation.enumerated
    return None if enumerated is None else _name(enumerated)


def _components(structure: Any, orders: Orders) -> Sequence[Component]:
    from sdmx.model.common import TimeDimension

    dimensions = structure.dimensions.components
    components = {one.id: _component(one) for one in dimensions if not isinstance(one, TimeDimension)}
    order = orders.get(_name(structure), ())
    return tuple(components[id_] for id_ in (order if set(order) == components.keys() else components))


def _component(dimension: Any) -> Component:
    return Component(
        id=dimension.id,
        concept=_concept(dimension.concept_identity),
        codelist=_codelist(dimension.local_representation),
        has_own=dimension.local_representation is not None,
    )


def _concept(concept: Any) -> ConceptReference | None:
    scheme = None if concept is None else concept.get_scheme()
    return None if scheme is None else ConceptReference(_name(scheme), concept.id)
