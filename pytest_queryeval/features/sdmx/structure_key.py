"""Reader of `structure`: SDMX structure messages, which define dimensions and codes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import CaseError, Location, QueryEvalWarning
from pytest_queryeval.core.shapes import TEXT, either, list_shape, shape
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at, modification_time
from pytest_queryeval.documents.values import items, read_each, required_text
from pytest_queryeval.features.sdmx.structure import Message, Structure, structure_of, unlisted_codes
from pytest_queryeval.features.sdmx.structure_files import is_json, read_message
from pytest_queryeval.suites.keys import Key
from pytest_queryeval.suites.variables import MissingExtraError, check_installed

MAX_BYTES = 32 * MEBIBYTE
EXTRA = "sdmx"


@dataclass(frozen=True, slots=True)
class StructureFiles:
    """The files whose messages make one structure."""

    files: tuple[File, ...]
    node: Node


@shape(either(TEXT, {**list_shape(TEXT), "minItems": 1}))
def read_structure(node: Node) -> StructureFiles:
    """Read the name of a file or a list of names; raise `CaseError`."""
    files = read_each(items(node), _file) if isinstance(node.value, list) else [_file(node)]
    if not files:
        raise node.problem("structure needs a file")
    return StructureFiles(tuple(files), node)


def _file(node: Node) -> File:
    return file_at(node.file.folder / required_text(node))


def load_structure(structure_files: StructureFiles) -> Structure:
    """Return all datasets of the files; raise `CaseError` if one cannot be read, or none has a data structure.

    Warn with `QueryEvalWarning` of codes that no file lists, once for each place that states the files.
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
        message = f"{_names(files)}: {sentence}"
        warnings.warn_explicit(message, QueryEvalWarning, str(place.path), place.line)


@lru_cache(maxsize=16)
def _structure(files: tuple[tuple[Path, int], ...]) -> Structure | str:
    """Return what the files define together, or the problem, which is cached too: files are read once."""
    messages = []
    for path, _ in files:
        message = _message(path)
        if isinstance(message, str):
            return f"no structure in {path.name}: {message}"
        messages.append(message)
    structure = structure_of(messages)
    if structure.datasets:
        return structure
    missing_names = sorted({f"{name.agency}:{name.id}" for message in messages for name in message.dataflows.values()})
    hint = f": '{missing_names[0]}' of a dataflow is in none of the files" if missing_names else ""
    return f"no data structure in {_names(files)}{hint}"


def _names(files: tuple[tuple[Path, int], ...]) -> str:
    return ", ".join(path.name for path, _ in files)


def _message(path: Path) -> Message | str:
    try:
        data = file_at(path).data(MAX_BYTES)
        if not is_json(data):
            check_installed([EXTRA])
        return read_message(data)
    except CaseError as error:
        return error.problem
    except MissingExtraError as error:
        return f"reading it {error}"
    except ValueError as error:
        return str(error)


STRUCTURE = Key(
    name="structure",
    description="files with SDMX structure messages",
    levels=("folder", "file", "case"),
    read=read_structure,
    load=load_structure,
)
