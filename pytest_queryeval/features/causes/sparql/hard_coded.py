"""Queries that name their answer in place of searching for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_queryeval.core.cause import CausingEdit
from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.features.causes.sparql.lines import Lines
from pytest_queryeval.languages.sparql.trees.tree import (
    Bind,
    Data,
    Expr,
    Filter,
    Item,
    Node,
    Select,
    Triple,
    is_variable,
    terms,
    walk,
)

SEARCHED = "patterns that find it"


def hard_coded_edit(predicted: Select, gold: Select, answer: Table, lines: Lines) -> CausingEdit | None:
    """Return what stands for the answer in a predicted query, by gold's answer; None if it searches.

    These are IRIs that gold does not name: all values of a column by VALUES or BIND, or one of each row of the answer.
    """
    gold_terms = {*terms(gold)}
    rows = [{f"<{cell.iri}>" for cell in row if isinstance(cell, IRI)} for row in answer.rows]
    columns = {item.variable for item in predicted.items}
    answering_iris: set[str] = set()
    for node, variable, iris in _constants(predicted):
        new_iris = [iri for iri in iris if iri not in gold_terms]
        answering_iris.update(new_iris)
        fills_column = variable in columns and len(new_iris) == len(iris)
        if new_iris and (fills_column or (rows and not any(map(answering_iris.isdisjoint, rows)))):
            is_data = isinstance(node, Data | Bind)
            text = lines.line(node) if is_data else ", ".join(map(lines.writer.term, new_iris))
            return CausingEdit(label="hard-coded", clause="WHERE", change=f"{text} → {SEARCHED}")
    return None


def _constants(tree: Select) -> Iterator[tuple[Node, str, list[str]]]:
    """Yield the parts of a query that may name IRIs, with a variable that has no other values, or an empty name."""
    for node in walk(tree):
        match node:
            case Data(parts):
                names = [part for part in parts if is_variable(part)]
                yield node, names[0] if len(names) == 1 else "", _iris(parts)
            case Bind(Expr(value), variable):
                yield node, variable, _iris((value,))
            case Item(Expr(value), variable):
                yield node, variable, _iris((value,))
            case Triple(subject, path, object_):
                yield node, "", _iris((subject,) if "a" in path else (subject, object_))
            case Filter():
                yield node, "", _iris(terms(node))


def _iris(tokens: Iterable[str]) -> list[str]:
    return [token for token in tokens if token.startswith("<")]
