"""Which parts of two SPARQL queries stand for each other: those that have most in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from pytest_queryeval.features.causes.sparql.aligned import (
    Chain,
    turned,
)
from pytest_queryeval.languages.sparql.trees.tree import (
    Block,
    Element,
    Group,
    Item,
    Node,
    Triple,
    terms,
    variables,
)

REVERSED_LIKENESS = 2.5  # the likeness of triples with subject and object exchanged
MAX_ADDED = 3  # triples that one edit adds or leaves out
T = TypeVar("T")


def without_common(left: Sequence[T], right: Sequence[T], key: Callable[[T], object]) -> tuple[list[T], list[T]]:
    """Return what is left of both without what they have in common."""
    common = Counter(map(key, left)) & Counter(map(key, right))

    def rest(side: Sequence[T]) -> list[T]:
        common_left = Counter(common)
        remaining = []
        for member in side:
            if common_left[key(member)] > 0:
                common_left[key(member)] -= 1
            else:
                remaining.append(member)
        return remaining

    return rest(left), rest(right)


def likeness(triple: Triple, gold: Triple) -> float:
    """Return how much two triples have in common; 0 if one is not an edit of the other."""
    same_subject, same_object = triple.subject == gold.subject, triple.object == gold.object
    same_path = triple.path == gold.path
    if same_subject and same_object:
        return 3
    if (triple.subject, triple.object) == (gold.object, gold.subject):
        return REVERSED_LIKENESS if same_path else 2.2
    if same_path and (same_subject or same_object):
        return 2 + 0.1 * same_subject
    if not (same_subject or same_object):
        return 0
    has_common_step = not {*triple.path}.isdisjoint(step for step in gold.path if step == "a" or step[0] == "<")
    return 1.5 if has_common_step else 0


def oriented(chain: Chain, gold: Chain) -> Chain:
    """Return a chain of several triples in the direction in which it has more in common with gold."""
    if len(chain.members) == 1:
        return chain
    directions = (chain, Chain(turned(chain.triple), chain.members))
    return max(directions, key=lambda direction: likeness(direction.triple, gold.triple))


def alike(left: Sequence[Element], right: Sequence[Element]) -> list[tuple[Element, Element]]:
    """Return pairs of elements of one type other than triples, those first that have most in common."""
    scored = []
    for at, element in enumerate(left):
        for gold_at, gold_element in enumerate(right):
            if type(element) is not type(gold_element) or isinstance(element, Triple):
                continue
            is_block = isinstance(element, Block) and isinstance(gold_element, Block)
            if is_block and element.head[0] != gold_element.head[0]:  # type: ignore[union-attr]
                continue
            scored.append((-_common_share(element, gold_element), at, gold_at))
    return choose_pairs(scored, left, right)


def best_pairs(left: Sequence[Group], right: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Return the pairs of arms of two UNIONs that have most in common."""
    scored = [
        (-_common_share(arm, gold_arm), at, gold_at)
        for at, arm in enumerate(left)
        for gold_at, gold_arm in enumerate(right)
    ]
    return choose_pairs(scored, left, right)


def scored_items(items: Sequence[Item], gold_items: Sequence[Item]) -> list[tuple[float, int, int]]:
    """Return pairs of columns by their places, best first: of one name, both expressions, both variables, others."""
    scored = []
    for at, item in enumerate(items):
        for gold_at, gold_item in enumerate(gold_items):
            is_of_one_sort = bool(item.value.arguments) == bool(gold_item.value.arguments)
            scored.append((-2.0 * (item.variable == gold_item.variable) - is_of_one_sort, at, gold_at))
    return scored


def _common_share(node: Node, gold: Node) -> float:
    own_terms, gold_terms = {*terms(node)}, {*terms(gold)}
    return len(own_terms & gold_terms) / max(len(own_terms | gold_terms), 1)


def choose_pairs(scored: Sequence[tuple[float, int, int]], left: Sequence[T], right: Sequence[T]) -> list[tuple[T, T]]:
    """Return pairs of members by their scored places, the lowest score first, none of them twice."""
    pairs: list[tuple[T, T]] = []
    used_places: tuple[set[int], set[int]] = (set(), set())
    for _, at, gold_at in sorted(scored):
        if at not in used_places[0] and gold_at not in used_places[1]:
            used_places[0].add(at)
            used_places[1].add(gold_at)
            pairs.append((left[at], right[gold_at]))
    return pairs


def components(elements: Sequence[Element], outside: set[str]) -> list[tuple[Element, ...]]:
    """Return elements, together where they share a variable that is not `outside`: MAX_ADDED of them at most."""
    groups: list[list[Element]] = []
    for element in elements:
        inner_names = set(variables(element)) - outside
        joined = [group for group in groups if any(inner_names & set(variables(member)) for member in group)]
        groups = [group for group in groups if not any(group is joined_group for joined_group in joined)]
        groups.append([*(member for group in joined for member in group), element])
    ordered = [tuple(sorted(group, key=lambda element: not isinstance(element, Triple))) for group in groups]
    return [group for group in ordered if len(group) <= MAX_ADDED]
