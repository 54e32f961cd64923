"""Reader of the key `scope`: the tables, columns and rows that predictions may read."""

from __future__ import annotations

import re

from pytest_queryeval.core.scope import Constant, Scope
from pytest_queryeval.core.shapes import SCALAR, shape, shape_of
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    Reader,
    Readers,
    entries_of,
    known_entries,
    list_of,
    mapping_of,
    not_empty,
    required_text,
    scalar,
    unexpected,
)

_PART = r"(?:\"[^\"]+\"|`[^`]+`|[^.\"`*]+)"


def _name_reader(pattern: str, stated: str, forms: str) -> Reader[str]:
    """Return a reader of a name that matches a pattern, perhaps with dots and quoted parts.

    `stated` is the pattern in its shape, for editors; `forms` are examples for the message.
    """

    @shape({"type": "string", "pattern": stated})
    def read(node: Node) -> str:
        name = required_text(node)
        if not re.fullmatch(pattern, name):
            raise node.problem(f"'{name}' is no name: write NAME, {forms}")
        return name

    return read


_name_of_one = _name_reader(
    rf"{_PART}(?:\.{_PART})*", r"^[^.*]+(\.[^.*]+)*$", "SCHEMA.NAME, or '\"Name\"' for one that needs quotes"
)
_name_or_all = _name_reader(
    rf"(?:{_PART}\.)*(?:{_PART}|\*)",
    r"^([^.*]+\.)*([^.*]+|\*)$",
    "SCHEMA.NAME, SCHEMA.*, or '\"Name\"' for one with quotes",
)


@shape(SCALAR)
def _constant(node: Node) -> Constant:
    value = scalar(node) if isinstance(node.value, str) else None
    if value is None:
        raise unexpected(node, "a text, a number, true or false", f": write {{{node.key}: VALUE}}")
    return value


@shape({**shape_of(list_of(_name_or_all)), "minItems": 1})
def _denied(node: Node) -> tuple[str, ...]:
    return list_of(_name_or_all)(not_empty(node, "[COLUMN]"))


_READERS: Readers = {
    "tables": list_of(_name_or_all),
    "columns": entries_of(list_of(_name_of_one), "{TABLE: [COLUMN]}"),
    "deny": _denied,
    "where": entries_of(entries_of(_constant, "{COLUMN: VALUE}"), "{TABLE: {COLUMN: VALUE}}"),
}
_DESCRIPTIONS = {
    "tables": "the tables that may be read; `shop.*` for all of a schema",
    "columns": "by tables, the columns that may be read; other tables have all",
    "deny": "columns that no query may read, of all tables or of one: users.salary",
    "where": "by tables, what each use has to equate with a constant: {orders: {tenant_id: 7}}",
}


@shape(lambda: {**shape_of(mapping_of(_READERS, _DESCRIPTIONS)), "minProperties": 1})
def read_scope(node: Node) -> Scope:
    """Return what predicted queries may read; raises `CaseError` for an invalid scope.

    A scope is invalid if it allows everything, or if `where` needs a column that `columns` excludes.
    """
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
