"""Readers of `expect`: what any right answer to a case has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pytest_queryeval.comparison.expectations import precedes
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.expectation import Expectation, Rule, ValueRule
from pytest_queryeval.core.shapes import NULL, TEXT, Shape, either, list_shape, mapping_shape, shape
from pytest_queryeval.core.table import Cell, Policy
from pytest_queryeval.documents.document import Node, Problems
from pytest_queryeval.documents.values import (
    Reader,
    Readers,
    choice,
    entries,
    items,
    json_value,
    known_entries,
    read_each,
    required_text,
    unexpected,
    whole_number,
)
from pytest_queryeval.languages import Kind
from pytest_queryeval.text.formatting import flow_text, pluralize

EXPECT = "expect"
PARTS = ("rows", "columns", "contains", "values")
_COUNT: Shape = {"type": "integer", "minimum": 0}
_CELL: Shape = {"not": NULL}
_TRUE: Shape = {"const": True}
_VALUE_RULES: Shape = {
    **mapping_shape(
        {
            "min": _CELL,
            "max": _CELL,
            "in": {**list_shape(_CELL), "minItems": 1},
            "not_null": _TRUE,
            "unique": _TRUE,
            "matches": TEXT,
        }
    ),
    "minProperties": 1,
}
_CELLS = either({"type": "array", "minItems": 1}, {"type": "object", "minProperties": 1})
_PARTS: Mapping[str, Shape] = {
    "rows": either(NULL, _COUNT, {**mapping_shape({"min": _COUNT, "max": _COUNT}), "minProperties": 1}),
    "columns": either(NULL, _COUNT, {**list_shape(TEXT), "minItems": 1}),
    "contains": either(NULL, {**list_shape(_CELLS), "minItems": 1}),
    "values": either(NULL, {"type": "object", "additionalProperties": _VALUE_RULES, "minProperties": 1}),
}


@shape({**mapping_shape(_PARTS), "minProperties": 1})
def read_expect(node: Node) -> dict[str, Node]:
    """Return the parts of `expect` as nodes, because their cells depend on the kind of a case; raises `CaseError`.

    A part that is null removes the shared part.
    """
    parts: dict[str, Node] = known_entries(node, dict.fromkeys(PARTS, _stated))
    if not parts:
        raise node.problem(f"{EXPECT} is empty: write {{rows: {{min: 1}}}}, or other keys: {', '.join(PARTS)}")
    return parts


def _stated(node: Node) -> Node:
    if node.empty and not node.value:
        raise node.problem(f"{node.key} is missing: write a value, or null to expect nothing of it")
    return node


def expects_anything(parts: Mapping[str, Node]) -> bool:
    """Return whether any part is not null."""
    return not all(node.empty for node in parts.values())


def read_expectations(parts: Mapping[str, Node], kind: Kind) -> tuple[Expectation, ...]:
    """Return the expectations that the parts state for a kind.

    Raises `CaseError` or `SuiteError` for parts that cannot be read, or that no answer can meet.
    """
    readers: Mapping[str, Reader[list[Expectation]]] = {
        "rows": lambda node: [_expectation("rows", "rows", node, _read_rows(node))],
        "columns": lambda node: [_expectation("columns", "columns", node, _read_columns(node))],
        "contains": lambda node: [_expectation("contains", "contains", node, _read_contains(node, kind.stated_cell))],
        "values": lambda node: _read_values(node, kind),
    }
    stated = [(name, parts[name]) for name in PARTS if name in parts and not parts[name].empty]
    lists = read_each(stated, lambda part: readers[part[0]](part[1]))
    expectations = tuple(expectation for part in lists for expectation in part)
    problems = Problems(_contradictions(expectations, Policy(text_numbers=kind.text_numbers)))
    problems.raise_any()
    return expectations


def _expectation(rule: Rule, name: str, node: Node, value: Any, column: str = "") -> Expectation:
    text = flow_text(json_value(node))
    return Expectation(name=name, rule=rule, value=value, text=text, column=column, location=node.location)


def _read_rows(node: Node) -> tuple[int | None, int | None]:
    if node.form != "mapping":
        number = whole_number(0)(node)
        return number, number
    limits = known_entries(node, {"min": whole_number(0), "max": whole_number(0)})
    if not limits:
        raise node.problem("rows needs min or max, such as {min: 1}")
    return limits.get("min"), limits.get("max")


def _read_columns(node: Node) -> int | tuple[str, ...]:
    if not isinstance(node.value, list):
        return whole_number(0)(node)
    names = tuple(read_each(_non_empty_items(node, "NAME"), required_text))
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise node.problem(f"column '{twice}' stands there twice: write the number of columns instead")
    return names


def _non_empty_items(node: Node, item: str) -> list[Node]:
    """Return the items of a list; raises `CaseError` if it is empty."""
    if not items(node):
        raise node.problem(f"{node.key} is empty: write [{item}]")
    return items(node)


def _read_contains(node: Node, read_cell: Reader[Cell]) -> tuple[tuple[Cell, ...] | dict[str, Cell], ...]:
    if isinstance(node.value, list) and node.value and isinstance(node.value[0].value, str):
        raise node.problem(
            f"contains: expected a list of rows, found a list of cells: write [{flow_text(json_value(node))}]"
        )

    def read(row: Node) -> tuple[Cell, ...] | dict[str, Cell]:
        if isinstance(row.value, dict) and row.value:
            return {column: read_cell(cell) for column, cell in row.value.items()}
        if isinstance(row.value, list) and row.value:
            return tuple(read_each(row.value, read_cell))
        raise unexpected(row, "a row", ": write [CELL, …] for all of its cells, or {COLUMN: CELL} for some")

    rows = read_each(_non_empty_items(node, "[CELL, …]"), read)
    widths = {len(row): row for row in rows if isinstance(row, tuple)}
    if len(widths) > 1:
        counts = " and ".join(pluralize(width, "cell") for width in widths)
        raise node.problem(
            f"contains: rows have {counts}: write all cells of each row, or name columns: {{COLUMN: CELL}}"
        )
    return tuple(rows)


def _read_values(node: Node, kind: Kind) -> list[Expectation]:
    by_column = entries(node)
    if not by_column:
        raise node.problem("values is empty: write {COLUMN: {min: 0}}")
    readers: Readers = {
        "min": lambda value: _read_limit(value, kind),
        "max": lambda value: _read_limit(value, kind),
        "in": lambda value: tuple(read_each(_non_empty_items(value, "VALUE"), lambda item: _read_limit(item, kind))),
        "not_null": choice("true"),
        "unique": choice("true"),
        "matches": _read_pattern,
    }

    def read(column: str, rules: Node) -> list[Expectation]:
        values = known_entries(rules, readers)
        if not values:
            raise rules.problem(f"values of '{column}' are not limited: write {{not_null: true}} or another rule")
        return [
            _expectation(rule, f"values.{column}.{rule}", entries(rules)[rule], values[rule], column)
            for rule in get_args(ValueRule)
            if rule in values
        ]

    lists = read_each(by_column.items(), lambda entry: read(*entry))
    return [expectation for of_column in lists for expectation in of_column]


def _read_limit(node: Node, kind: Kind) -> Cell:
    if node.empty:
        raise node.problem("NULL is no value to compare with: write `not_null: true` where it is not allowed")
    return kind.stated_cell(node)


def _read_pattern(node: Node) -> re.Pattern[str]:
    try:
        return re.compile(required_text(node))
    except (re.error, OverflowError, RecursionError) as error:
        raise node.problem(f"matches: '{node.value}' is no regular expression: {error}") from error


def _contradictions(expectations: tuple[Expectation, ...], policy: Policy) -> Iterator[CaseError]:
    """Yield a problem for each expectation that no answer can meet together with the others."""
    by_name = {expectation.name: expectation for expectation in expectations}
    rows, contains, columns = by_name.get("rows"), by_name.get("contains"), by_name.get("columns")
    least, most = rows.value if rows is not None else (None, None)
    if rows is not None and least is not None and most is not None and least > most:
        yield _problem(rows, f"min {least} is above max {most}")
    if rows is not None and most == 0 and len(expectations) > 1:
        yield _problem(rows, "an answer without rows meets no other expectation: write `rows` alone")
    elif rows is not None and contains is not None and most is not None and most < len(contains.value):
        yield _problem(rows, f"fewer than the {pluralize(len(contains.value), 'row')} of `contains`")
    whole_rows = [row for row in contains.value if isinstance(row, tuple)] if contains is not None else []
    if columns is not None and whole_rows:
        width = columns.value if isinstance(columns.value, int) else len(columns.value)
        if len(whole_rows[0]) > width:
            yield _problem(columns, f"fewer than the {pluralize(len(whole_rows[0]), 'cell')} of a row of `contains`")
    for expectation in expectations:
        maximum = by_name.get(f"values.{expectation.column}.max") if expectation.rule == "min" else None
        if maximum is not None and precedes(maximum.value, expectation.value, policy):
            yield _problem(expectation, f"above its max {maximum.text}")


def _problem(expectation: Expectation, text: str) -> CaseError:
    assert expectation.location is not None  # a suite states it
    return CaseError(expectation.location, f"{EXPECT}: {expectation.name}: {expectation.text}: {text}")
