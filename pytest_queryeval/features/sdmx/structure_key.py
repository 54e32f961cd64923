"""The key `structure`: files with SDMX structure messages, which define dimensions and codes.

Messages are SDMX-ML 2.1 and 3.0, as sdmx1 reads them, and SDMX-JSON.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from pytest_queryeval.core.errors import CaseError, Location, QueryEvalWarning
from pytest_queryeval.core.shapes import TEXT, either, list_shape, shape
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at, modification_time
from pytest_queryeval.documents.values import items, read_each, required_text
from pytest_queryeval.features.sdmx.structure import (
    Component,
    ConceptReference,
    Message,
    Reference,
    Structure,
    english_name,
    merge_messages,
    read_json_message,
    unlisted_codes,
)
from pytest_queryeval.suites.keys import Key
from pytest_queryeval.suites.variables import MissingExtraError, check_installed
from pytest_queryeval.text.formatting import one_line

MAX_BYTES = 32 * MEBIBYTE
EXTRA = "sdmx"
MAX_REASON = 200  # characters
_NAMESPACE = "http://www.sdmx.org/resources/sdmxml/schemas/"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BOOLEANS = ("true", "false", "1", "0")
_EVALUATED_ATTRIBUTES = ("hasFormalLevels", "leveled")  # attributes whose values sdmx1 passes to Python's `eval`
_DIMENSIONS = ("Dimension", "MeasureDimension")


@dataclass(frozen=True, slots=True)
class StructureFiles:
    """The files whose messages make one structure."""

    files: tuple[File, ...]
    node: Node


@shape(either(TEXT, {**list_shape(TEXT), "minItems": 1}))
def read_structure(node: Node) -> StructureFiles:
    """Return the files that a name or a list of names states; raise `CaseError` for an empty list."""
    files = read_each(items(node), _file) if isinstance(node.value, list) else [_file(node)]
    if not files:
        raise node.problem("structure needs a file")
    return StructureFiles(tuple(files), node)


def _file(node: Node) -> File:
    return file_at(node.file.folder / required_text(node))


def load_structure(structure_files: StructureFiles) -> Structure:
    """Return all datasets of the files; raise `CaseError` if a file cannot be read, or if none has a data structure.

    Warn with `QueryEvalWarning` about codes that no file lists, once for each place that states the files; if filters
    make the warning an error, raise `CaseError`.
    """
    files = tuple((file.path, modification_time(file.path)) for file in structure_files.files)
    structure = _structure(files)
    if isinstance(structure, str):
        raise structure_files.node.problem(structure)
    try:
        _warn_of_unlisted_codes(files, structure_files.node.location)
    except QueryEvalWarning as warning:  # if filters make it an error
        raise structure_files.node.problem(str(warning)) from warning
    return structure


@lru_cache(maxsize=1_000)
def _warn_of_unlisted_codes(files: tuple[tuple[Path, int], ...], place: Location) -> None:
    structure = _structure(files)
    sentence = "" if isinstance(structure, str) else unlisted_codes(structure)
    if sentence:
        message = f"{_file_names(files)}: {sentence}"
        warnings.warn_explicit(message, QueryEvalWarning, str(place.path), place.line)


@lru_cache(maxsize=16)
def _structure(files: tuple[tuple[Path, int], ...]) -> Structure | str:
    """Return the structure that the files define together, or the text of the problem; both are cached.

    `files` are paths with modification times, so that changed files are read again. A problem is a file that cannot be
    read, a missing extra, or no data structure.
    """
    messages = []
    for path, _ in files:
        try:
            data = file_at(path).data(MAX_BYTES)
            if not is_json(data):
                check_installed([EXTRA])
            messages.append(read_message(data))
        except MissingExtraError as error:
            return f"no structure in {path.name}: reading it {error}"
        except (CaseError, ValueError) as error:
            return f"no structure in {path.name}: {error.problem if isinstance(error, CaseError) else error}"
    structure = merge_messages(messages)
    if structure.datasets:
        return structure
    missing_names = sorted({f"{name.agency}:{name.id}" for message in messages for name in message.dataflows.values()})
    hint = f": '{missing_names[0]}' of a dataflow is in none of the files" if missing_names else ""
    return f"no data structure in {_file_names(files)}{hint}"


def _file_names(files: tuple[tuple[Path, int], ...]) -> str:
    return ", ".join(path.name for path, _ in files)


def is_json(data: bytes) -> bool:
    """Return whether the content of a file looks like JSON; other content should be XML, which only sdmx1 can read."""
    return data.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def read_message(data: bytes) -> Message:
    """Return the definitions in a structure message of SDMX-ML or SDMX-JSON.

    Raise `ValueError` with the reason for other content. Codelists that extend others are left out.
    """
    if is_json(data):
        return read_json_message(data.removeprefix(_BYTE_ORDER_MARK))
    document = _XmlScan(data)
    import sdmx  # only now, as it loads pandas and takes 0.4 s

    try:
        # On failure it prints what it has read so far.
        with contextlib.redirect_stdout(io.StringIO()):
            message: Any = sdmx.read_sdmx(io.BytesIO(data), format="XML")
    except Exception as error:
        cause = error.__cause__ or error
        reason = one_line(f"{type(cause).__name__}: {cause}", MAX_REASON)
        raise ValueError(f"sdmx1 cannot read it ({reason})") from error
    schemes = list(_definitions(message.concept_scheme))
    codelists = [*schemes, *_definitions(message.codelist), *_definitions(message.valuelist)]
    return Message(
        codelists={
            _reference(codelist): {item.id: english_name(item.name.localizations) for item in codelist}
            for codelist in codelists
            if not getattr(codelist, "extends", None)
        },
        concepts={
            ConceptReference(_reference(scheme), concept.id): _codelist(concept.core_representation)
            for scheme in schemes
            for concept in scheme
        },
        structures={
            _reference(structure): _components(structure, document) for structure in _definitions(message.structure)
        },
        dataflows={
            _reference(dataflow): _reference(dataflow.structure)
            for dataflow in _definitions(message.dataflow)
            if dataflow.structure
        },
    )


class _XmlScan:
    """Checks that a document is complete and safe for sdmx1, and finds the order of dimensions.

    sdmx1 loses that order if there are measure dimensions or positions: it groups dimensions by their type, and orders
    them by position only if the time dimension has one, too. The constructor raises `ValueError` with the reason if the
    document must not be read.
    """

    def __init__(self, data: bytes) -> None:
        self._root = ""
        self._structures: dict[Reference, list[Mapping[str, str]]] = {}
        self._dimensions: list[Mapping[str, str]] = []
        self._in_dimensions = False
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = "its XML is damaged or truncated" if self._root else "it is neither JSON nor XML"
            raise ValueError(f"{reason} ({error})") from error
        except LookupError as error:  # an unknown encoding
            raise ValueError(str(error)) from error

    def dimension_ids(self, structure: Reference) -> Sequence[str]:
        """Return the ids of the dimensions of a data structure, without time, in the order of the key.

        The order is that of their positions if all have one, else that of the document. An id is empty if the document
        leaves it to the concept.
        """
        dimensions = self._structures.get(structure, [])
        if all(dimension.get("position", "").isdecimal() for dimension in dimensions):
            dimensions = sorted(dimensions, key=lambda dimension: int(dimension["position"]))
        return [dimension.get("id", "") for dimension in dimensions]

    def _doctype(self, *_: object) -> NoReturn:
        raise ValueError("a DOCTYPE is not allowed")  # entities can blow up, or refer to files and servers

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if not self._root:
            self._root = tag
            namespace, _, root = tag.rpartition(" ")
            if not namespace.startswith(_NAMESPACE):
                raise ValueError(f"it is not SDMX: its root element is '{one_line(root)}'")
            if root != "Structure":
                raise ValueError(f"it is not a structure message: its root element is '{one_line(root)}'")
            version = namespace.removeprefix(_NAMESPACE).partition("/")[0]
            if version not in ("v2_1", "v3_0"):
                raise ValueError(f"only SDMX 2.1 and 3.0 can be read, not '{one_line(version)}'")
        for flag in _EVALUATED_ATTRIBUTES:
            if attributes.get(flag, "true") not in _BOOLEANS:
                raise ValueError(f"its '{flag}' is neither true nor false: '{one_line(attributes[flag])}'")
        name = tag.rpartition(" ")[2]
        if name == "DataStructure" and "id" in attributes:
            structure = Reference(attributes.get("agencyID", ""), attributes["id"], attributes.get("version", ""))
            self._dimensions = self._structures.setdefault(structure, [])
        elif name == "DimensionList":
            self._in_dimensions = True
        elif name in _DIMENSIONS and self._in_dimensions:  # else they are references to dimensions
            self._dimensions.append(attributes)

    def _end(self, tag: str) -> None:
        if tag.rpartition(" ")[2] == "DimensionList":
            self._in_dimensions = False


def _definitions(artefacts: Any) -> Iterator[Any]:
    """Yield the artefacts that the message defines, without the empty ones that sdmx1 adds for references."""
    return (artefact for artefact in artefacts.values() if not artefact.is_external_reference)


def _reference(artefact: Any) -> Reference:
    agency = "" if artefact.maintainer is None else artefact.maintainer.id
    return Reference(agency, artefact.id, "" if artefact.version is None else str(artefact.version))


def _codelist(representation: Any) -> Reference | None:
    enumerated = None if representation is None else representation.enumerated
    return None if enumerated is None else _reference(enumerated)


def _components(structure: Any, document: _XmlScan) -> Sequence[Component]:
    from sdmx.model.common import TimeDimension

    components = {}
    for dimension in structure.dimensions.components:
        if isinstance(dimension, TimeDimension):
            continue
        concept = dimension.concept_identity
        scheme = None if concept is None else concept.get_scheme()
        components[dimension.id] = Component(
            id=dimension.id,
            concept=None if scheme is None else ConceptReference(_reference(scheme), concept.id),
            codelist=_codelist(dimension.local_representation),
            has_representation=dimension.local_representation is not None,
        )
    order = document.dimension_ids(_reference(structure))
    return [components[id_] for id_ in (order if set(order) == components.keys() else components)]


STRUCTURE = Key(
    name="structure",
    description="files with SDMX structure messages",
    levels=("folder", "file", "case"),
    read=read_structure,
    load=load_structure,
    used_by=lambda kind: kind.name == "sdmx",
)
