"""Selections read from YAML and JSON nodes."""

from __future__ import annotations

from typing import Any

from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    Reader,
    items,
    known_entries,
    list_of,
    or_else,
    read_each,
    whole_text,
)

WRAPPER_KEY = "indicator_selection"


def read_selection(node: Node) -> Selection:
    """Read a list of `{dataset_id, dimensions: [{dimension_name, values: [{id, name}]}]}`.

    A mapping with the list as its `indicator_selection` is read, too, whatever its other keys; an empty list selects
    nothing. Ids and names are texts as the file has them, so that 007 stays `007`; those that are null, blank or left
    out are None. Raise `CaseError`, or `SuiteError` with several, at the nodes that are not of this form.
    """
    if isinstance(node.value, dict):
        if "dataset_id" in node.value and WRAPPER_KEY not in node.value:
            raise node.problem("a selection is a list of datasets: write this one as an item of a list")
        if WRAPPER_KEY not in node.value:
            raise node.problem(f"a selection is a list of datasets, or a mapping that has one as '{WRAPPER_KEY}'")
        node = node.value[WRAPPER_KEY]
    return Selection(datasets=tuple(read_each(items(node), _dataset)))


def _dataset(node: Node) -> DatasetSelection:
    entries = known_entries(node, _DATASET)
    return DatasetSelection(id=_required_entry(entries, "dataset_id", node), dimensions=entries.get("dimensions", ()))


def _dimension(node: Node) -> DimensionSelection:
    entries = known_entries(node, _DIMENSION)
    return DimensionSelection(name=_required_entry(entries, "dimension_name", node), terms=entries.get("values", ()))


def _term(node: Node) -> Term:
    entries = known_entries(node, _VALUE)
    term = Term(id=entries.get("id"), name=entries.get("name"))
    if term.id is None and term.name is None:
        raise node.problem("a value without 'id' and 'name': write one of them")
    return term


def _optional_text(node: Node) -> str | None:
    source_text = whole_text(node)
    return None if node.empty or not source_text.strip() else source_text


def _text(node: Node) -> str:
    source_text = _optional_text(node)
    if source_text is None:
        raise node.problem("expected text, found nothing")
    return source_text


def _required_entry(entries: dict[str, Any], key: str, node: Node) -> Any:
    if key not in entries:
        raise node.problem(f"'{key}' is missing")
    return entries[key]


_DATASET: dict[str, Reader[Any]] = {"dataset_id": _text, "dimensions": or_else((), list_of(_dimension))}
_DIMENSION: dict[str, Reader[Any]] = {"dimension_name": _text, "values": or_else((), list_of(_term))}
_VALUE: dict[str, Reader[Any]] = {"id": _optional_text, "name": _optional_text}
