"""The published code of BuildingQA's metrics as tests need it: its defects, found in tables and put into them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from pytest_queryeval.comparison.canonical import canonical_value, is_comparable, is_near, quantity_of
from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, Policy, Table
from pytest_queryeval.metrics import METRICS

SCORES = ("arity_f1", "entity_set_f1", "row_matching_f1", "exact_match_f1")
SPARQL = Policy(text_numbers=True)
Side = dict[str, Any]


def cell(term: Side | None) -> Cell:
    """A term of SPARQL-JSON; values that are not text, which the format does not allow, stay as they are."""
    if term is None:
        return None
    value = term.get("value", "")
    if not isinstance(value, str):
        return value
    match term.get("type", "literal"):
        case "uri":
            return IRI(value)
        case "bnode":
            return BlankNode(value)
    return Literal(value, term.get("datatype", ""), term.get("xml:lang", ""))


def table(side: Side) -> Table:
    names = tuple(side["vars"])
    return Table(columns=names, rows=[tuple(cell(row.get(name)) for name in names) for row in side["bindings"]])


def first_row_columns(side: Side) -> set[str]:
    return set(side["bindings"][0]) if side["bindings"] else set()


def columns_are_taken_from_the_first_row(gold: Side, predicted: Side, metric: str) -> bool:
    """D1: some variable of the header is unbound in the first row, or there is no row."""
    return any(first_row_columns(side) != set(side["vars"]) for side in (gold, predicted))


def texts(side: Side) -> set[str]:
    return {str(term.get("value", "")) for row in side["bindings"] for term in row.values()}


def published_row_text(value: str) -> str:
    text = value.strip().lower()
    text = re.sub(r'^"|"$', "", text) if text.startswith('"') and text.endswith('"') else text
    text = re.sub(r"\^\^.*$", "", text)
    return re.sub(r"@[a-z]{2}(-[a-z]{2})?$", "", text)


def row_cells_are_cut_and_folded(gold: Side, predicted: Side, metric: str) -> bool:
    """D3: two different texts become the same one by the published normalisation of rows."""
    if metric not in ("row_matching_f1", "exact_match_f1", "entity_set_f1"):
        return False
    normal = Counter(published_row_text(text) for text in texts(gold) | texts(predicted))
    return any(number > 1 for number in normal.values())


def unbound_equals_the_empty_text(gold: Side, predicted: Side, metric: str) -> bool:
    """D4: a variable is unbound in some row."""
    sides = (gold, predicted)
    return metric != "arity_f1" and any(len(row) < len(side["vars"]) for side in sides for row in side["bindings"])


def numbers_are_compared_as_text(gold: Side, predicted: Side, metric: str) -> bool:
    """D17: two terms, one on each side, are one number in different texts; at least one has a number's datatype."""
    golds, predicted_rows = (
        {
            (value, str(term["value"]))
            for row in side["bindings"]
            for term in row.values()
            if is_comparable(value := canonical_value(cell(term), SPARQL))
        }
        for side in (gold, predicted)
    )
    return any(
        text != other_text and quantity_of(value) == quantity_of(partner) and is_near(value, partner, SPARQL)
        for value, text in golds
        for partner, other_text in predicted_rows
    )


def types_of(side: Side) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for row in side["bindings"]:
        for term in row.values():
            values.setdefault(str(term.get("value")), set()).add(term.get("type", "literal"))
    return values


def iris_equal_literals(gold: Side, predicted: Side, metric: str) -> bool:
    """D18: one text is an IRI on one side and a literal on the other."""
    golds, predicted_rows = types_of(gold), types_of(predicted)
    return any("uri" in golds[text] ^ predicted_rows[text] for text in golds.keys() & predicted_rows.keys())


def blank_nodes_are_compared_by_label(gold: Side, predicted: Side, metric: str) -> bool:
    """D19: there are blank nodes."""
    return any("bnode" in types for side in (gold, predicted) for types in types_of(side).values())


DEFECTS: dict[str, Callable[[Side, Side, str], bool]] = {
    "D1": columns_are_taken_from_the_first_row,
    "D3": row_cells_are_cut_and_folded,
    "D4": unbound_equals_the_empty_text,
    "D17": numbers_are_compared_as_text,
    "D18": iris_equal_literals,
    "D19": blank_nodes_are_compared_by_label,
}


def score(name: str, gold: Table, predicted: Table) -> float:
    policy = {"policy": SPARQL} if "policy" in METRICS[name].injected else {}
    return METRICS[name].function(gold, predicted, **policy)


def as_published(side: Side) -> Table:
    """The table that the published code compares row by row: columns of the first row, texts cut and folded."""
    names = tuple(side["bindings"][0]) if side["bindings"] else ()
    rows = [tuple(published_cell(row.get(name)) for name in names) for row in side["bindings"]]
    return Table(columns=names, rows=rows)


def published_cell(term: Side | None) -> str | None:
    return None if term is None else published_row_text(str(term.get("value", "")))
