"""The parts of SPARQL queries that edits compare: which of two queries belong together, and what tells two apart."""

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
    Group,
    Node,
    Select,
    Triple,
    Union,
    is_constant,
    is_variable,
    terms,
    variables,
    walk,
)

_OPERATORS = frozenset(("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "!", "NOT", "IN"))
_CONNECTORS = frozenset(("&&", "||"))


def products(tree: Select) -> int:
    """Return the number of patterns without a variable in common with others, of the group that has most."""
    return max((_unconnected(node) for node in walk(tree) if isinstance(node, Group)), default=0)


def _unconnected(group: Group) -> int:
    parts: list[set[str]] = []
    for element in group.elements:
        if own := set(variables(element)):
            joined = [part for part in parts if part & own]
            parts = [part for part in parts if not part & own]
            parts.append(own.union(*joined))
    return len(parts)


def take(found: list[Node] | list[Element] | list[Expr] | list[Group], node: Node) -> bool:
    """Remove a node from a list, once; return whether it was there."""
    for place, each in enumerate(found):
        if each == node:
            del found[place]
            return True
    return False


def alike(left: Sequence[Element], right: Sequence[Element]) -> list[tuple[Element, Element]]:
    """Return pairs of elements of one type, those first that have most in common; triples with one difference only."""
    scored = []
    for at, one in enumerate(left):
        for gold_at, other in enumerate(right):
            if type(one) is not type(other):
                continue
            if isinstance(one, Triple) and isinstance(other, Triple):
                same = (one.subject == other.subject) + (one.path == other.path) + (one.object == other.object)
                is_turned = one.path == other.path and {one.subject, one.object} == {other.subject, other.object}
                alone = sum(isinstance(each, Triple) for each in left) == 1 == sum(isinstance(e, Triple) for e in right)
                score = 2.5 if is_turned else same if same > 1 else 1 if same and alone else 0
                score += 0.5 * (one.path == other.path)
                score = 0 if score < 1 else score
            elif isinstance(one, Block) and isinstance(other, Block) and one.head[0] != other.head[0]:
                continue
            else:
                mine, theirs = set(terms(one)), set(terms(other))
                score = 0.5 + len(mine & theirs) / max(len(mine | theirs), 1)
            if score:
                scored.append((-score, at, gold_at))
    pairs: list[tuple[Element, Element]] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for _, at, gold_at in sorted(scored):
        if at not in used[0] and gold_at not in used[1]:
            used[0].add(at)
            used[1].add(gold_at)
            pairs.append((left[at], right[gold_at]))
    return pairs


def components(missing: Sequence[Element], known: set[str]) -> list[tuple[Element, ...]]:
    """Return missing elements, together where they share a variable that is new; then all of them at once."""
    parts: list[list[Element]] = []
    for element in missing:
        new = set(variables(element)) - known
        joined = [part for part in parts if any(new & set(variables(each)) for each in part)]
        parts = [part for part in parts if not any(part is one for one in joined)]
        parts.append([*(each for part in joined for each in part), element])
    found = [tuple(sorted(part, key=lambda each: not isinstance(each, Triple))) for part in parts]
    if len(found) > 1:
        found.append(tuple(sorted(missing, key=lambda each: not isinstance(each, Triple))))
    return found


def label_of(element: Element, *, is_missing: bool) -> tuple[CauseLabel, str]:
    """Return the label of an element that is missing or superfluous, and its clause."""
    match element:
        case Filter() | Data():
            return ("missing-condition" if is_missing else "extra-condition"), "FILTER"
        case Bind():
            return "wrong-expression", "BIND"
        case Select():
            return "nesting", "WHERE"
        case Union(arms):
            is_nested = any(isinstance(each, Select) for arm in arms for each in arm.elements)
            return ("nesting" if is_nested else "set-operation"), "WHERE"
        case Block(("MINUS",)):
            return "set-operation", "WHERE"
        case _:
            return ("missing-pattern" if is_missing else "extra-pattern"), "WHERE"


def label_of_tokens(one: str, other: str, otherwise: CauseLabel) -> CauseLabel:
    """Return the label of one token in the place of another."""
    if one in _CONNECTORS and other in _CONNECTORS:
        return "wrong-connector"
    if one in _OPERATORS and other in _OPERATORS:
        return "wrong-operator"
    if one in COUNTING and other in COUNTING:
        return "wrong-aggregate"
    if is_constant(one) and is_constant(other):
        return "wrong-value"
    return "wrong-column" if otherwise == "wrong-expression" and is_variable(one) and is_variable(other) else otherwise


def label_of_expressions(one: Expr, other: Expr, otherwise: CauseLabel) -> CauseLabel:
    """Return the label of one expression in the place of another."""
    if "DISTINCT" in other.parts and "DISTINCT" not in one.parts:
        return "missing-distinct"
    if "DISTINCT" in one.parts and "DISTINCT" not in other.parts:
        return "extra-distinct"
    if one.parts in (("!", *other.parts), other.parts[1:]) or "NOT" in {*one.parts} ^ {*other.parts}:
        return "wrong-operator"
    has_aggregates = [any(part in COUNTING for part in each.parts) for each in (one, other)]
    return "wrong-aggregate" if any(has_aggregates) and otherwise == "wrong-expression" else otherwise


def optional_groups(element: Element) -> tuple[Group, ...]:
    """Return the group of an OPTIONAL, if it is one."""
    return (element.group,) if isinstance(element, Block) and element.head == ("OPTIONAL",) else ()
