"""The labels of the differences of SPARQL queries."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.languages.sparql.trees.tree import (
    COUNTING,
    Bind,
    Block,
    Data,
    Element,
    Expr,
    Filter,
    Select,
    Union,
    has_aggregate,
    is_constant,
    is_variable,
)

CONNECTORS = frozenset(("&&", "||"))
_OPERATORS = frozenset(("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "IN", "NOT IN", "EXISTS", "NOT EXISTS"))
_CLASS_STEPS = frozenset(("a", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"))


def label_of_element(element: Element, *, is_missing: bool) -> tuple[CauseLabel, str]:
    """Return the label of an element that is missing or superfluous, and its clause."""
    match element:
        case Filter() | Data():
            return ("missing-condition" if is_missing else "extra-condition"), "FILTER"
        case Bind():
            return "wrong-expression", "BIND"
        case Select():
            return "nesting", "WHERE"
        case Union(arms):
            is_nested = any(isinstance(arm_element, Select) for arm in arms for arm_element in arm.elements)
            return ("nesting" if is_nested else "set-operation"), "WHERE"
        case Block(("MINUS",)):
            return "set-operation", "WHERE"
        case _:
            return ("missing-pattern" if is_missing else "extra-pattern"), "WHERE"


def label_of_paths(old: Sequence[str], new: Sequence[str]) -> CauseLabel:
    """Return the label of one path in the place of another: of its operators, where it has no other predicate."""
    predicates, new_predicates = ({step for step in path if step == "a" or step[0] == "<"} for path in (old, new))
    has_same_predicates = predicates <= new_predicates or new_predicates <= predicates
    return "wrong-path" if has_same_predicates and predicates and new_predicates else "wrong-predicate"


def label_of_ends(path: tuple[str, ...], old: str, new: str) -> CauseLabel:
    """Return the label of one subject or object in the place of another, at the end of a path."""
    if is_variable(old) and is_variable(new):
        return "wrong-join-condition"
    if not _CLASS_STEPS.isdisjoint(path) and old.startswith("<") and new.startswith("<"):
        return "wrong-class"
    return label_of_values(old, new)


def label_of_values(old: str, new: str) -> CauseLabel:
    """Return the label of one constant in the place of another."""
    is_text = old.startswith('"') and new.startswith('"')
    return "value-case" if is_text and old.casefold() == new.casefold() else "wrong-value"


def label_of_heads(old: str, new: str, otherwise: CauseLabel) -> CauseLabel:
    """Return the label of one operator, function or term in the place of another."""
    if old in CONNECTORS and new in CONNECTORS:
        return "wrong-connector"
    if old in _OPERATORS and new in _OPERATORS:
        return "wrong-operator"
    if old in COUNTING and new in COUNTING:
        return "wrong-aggregate"
    if is_constant(old) and is_constant(new):
        return label_of_values(old, new)
    return "wrong-column" if otherwise == "wrong-expression" and is_variable(old) and is_variable(new) else otherwise


def label_of_expressions(old: Expr, new: Expr, otherwise: CauseLabel) -> CauseLabel:
    """Return the label of one expression in the place of another."""
    if Expr("!", (old,)) == new or Expr("!", (new,)) == old:
        return "wrong-operator"
    if has_aggregate(old) != has_aggregate(new) and otherwise == "wrong-expression":
        return "wrong-aggregate"
    return otherwise
