"""Reader of the key `scope`: the tables, columns and rows that predictions may read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.scope import Constant, Scope
from pytest_queryeval.core.shapes import SCALAR, Shape, list_shape, mapping_shape, shape
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    Reader,
    each_entry,
    known_entries,
    list_of,
    not_empty,
    required_text,
    scalar,
    unexpected,
)

_PART = r"(?:\"[^\"]+\"|`[^`]+`|[^.\"`*]+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_NAME_OR_ALL = re.compile(rf"(?:{_PART}\.)*(?:{_PART}|\*)")
_NAMES: Shape = list_shape({"type": "string", "pattern": r"^[^.*]+(\.[^.*]+)*$"})
_NAMES_OR_ALL: Shape = list_shape({"type": "string", "pattern": r"^([^.*]+\.)*([^.*]+|\*)$"})


def _name(node: Node) -> str:
    """Read a name, perhaps with dots and with its parts in quotes."""
    name = required_text(node)
    if not _NAME.fullmatch(name):
        raise node.problem(f"'{name}' is no name: write NAME, SCHEMA.NAME, or '\"Name\"' for one that needs quotes")
    return name


def _name_or_all(node: Node) -> str:
    name = required_text(node)
    if not _NAME_OR_ALL.fullmatch(name):
        raise node.problem(f"'{name}' is no name: write NAME, SCHEMA.NAME, SCHEMA.*, or '\"Name\"' for one with quotes")
    return name


def _columns(node: Node) -> dict[str, tuple[str, ...]]:
    return each_entry(not_empty(node, "{TABLE: [COLUMN]}"), lambda _, names: list_of(_name)(names))


def _deny(node: Node) -> tuple[str, ...]:
    return list_of(_name_or_all)(not_empty(node, "[COLUMN]"))


def _where(node: Node) -> dict[str, dict[str, Constant]]:
    def conditions(_: str, of_table: Node) -> dict[str, Constant]:
        return each_entry(not_empty(of_table, "{COLUMN: VALUE}"), _constant)

    return each_entry(not_empty(node, "{TABLE: {COLUMN: VALUE}}"), conditions)


def _constant(column: str, node: Node) -> Constant:
    value = scalar(node) if isinstance(node.value, str) else None
    if value is None:
        raise unexpected(node, "a text, a number, true or false", f": write {{{column}: VALUE}}")
    return value


_READERS: Mapping[str, Reader[Any]] = {
    "tables": list_of(_name_or_all),
    "columns": _columns,
    "deny": _deny,
    "where": _where,
}


@shape(
    {
        **mapping_shape(
            {
                "tables": {"description": "the tables that may be read; `shop.*` for all of a schema", **_NAMES_OR_ALL},
                "columns": {
                    "description": "by tables, the columns that may be read; other tables have all",
                    "type": "object",
                    "additionalProperties": _NAMES,
                    "minProperties": 1,
                },
                "deny": {
                    "description": "columns that no query may read, of all tables or of one: users.salary",
                    **_NAMES_OR_ALL,
                    "minItems": 1,
                },
                "where": {
                    "description": "by tables, what each use has to equate with a constant: {orders: {tenant_id: 7}}",
                    "type": "object",
                    "additionalProperties": {"type": "object", "additionalProperties": SCALAR, "minProperties": 1},
                    "minProperties": 1,
                },
            }
        ),
        "minProperties": 1,
    }
)
def read_scope(node: Node) -> Scope:
    """Read what predictions may read."""
    values = known_entries(node, _READERS)
    if not values:
        raise node.problem("`scope` allows everything: state `tables`, `columns`, `deny` or `where`, or remove it")
    for table, conditions in values.get("where", {}).items():
        listed = values.get("columns", {}).get(table, conditions)
        for column in conditions:
            if _bare(column) not in map(_bare, listed):
                raise node.problem(
                    f"no query can be in scope: `where` demands {table}.{column}, which `columns` excludes: "
                    f"write {{{table}: [{', '.join([*listed, column])}]}}"
                )
    return Scope(**values)


def _bare(name: str) -> str:
    return name.strip('"`').casefold()
