"""Which parts of two SPARQL queries stand for each other: those that have most in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from pytest_queryeval.features.causes.sparql.aligned import Chain, turned
from pytest_queryeval.languages.sparql.trees.tree import Block, Element, Item, Node, Triple, terms, variables

REVERSED_LIKENESS = 2.5  # the likeness of triples with subject and object exchanged
MAX_ADDED = 3  # triples that one edit adds or leaves out
T = TypeVar("T")


def without_common(
    left: Sequence[T], right: Sequence[T], key: Callable[[T], object] = lambda member: member
) -> tuple[list[T], list[T]]:
    """Return what is left of both without what they have in common."""
    common = Counter(map(key, left)) & Counter(map(key, right))

    def unmatched(side: Sequence[T]) -> list[T]:
        to_match = Counter(common)
        members = []
        for member in side:
            if to_match[key(member)] > 0:
                to_match[key(member)] -= 1
            else:
                members.append(member)
        return members

    return unmatched(left), unmatched(right)


def without(members: Sequence[T], removed: Sequence[T]) -> list[T]:
    """Return the members without these objects; members that only equal them stay."""
    return [member for member in members if not any(member is removed_member for removed_member in removed)]


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


def chain_likeness(chain: Chain, gold: Chain, *, least: float) -> float | None:
    """Return the likeness of two chains in the better direction; None if it is less than `least`."""
    score = likeness(oriented(chain, gold).triple, gold.triple)
    return score if score >= least else None


def element_likeness(element: Element, gold: Element) -> float | None:
    """Return the share of common terms of two elements; None for triples and elements of different types."""
    if type(element) is not type(gold) or isinstance(element, Triple):
        return None
    if isinstance(element, Block) and isinstance(gold, Block) and element.head[0] != gold.head[0]:
        return None
    return common_share(element, gold)


def item_likeness(item: Item, gold: Item) -> float:
    """Return how alike two columns are: most if they have one name, then if both are expressions or both variables."""
    return 2.0 * (item.variable == gold.variable) + (bool(item.value.arguments) == bool(gold.value.arguments))


def common_share(node: Node, gold: Node) -> float:
    """Return the share of the terms of two nodes that both have, from 0 to 1."""
    node_terms, gold_terms = {*terms(node)}, {*terms(gold)}
    return len(node_terms & gold_terms) / max(len(node_terms | gold_terms), 1)


def best_pairs(left: Sequence[T], right: Sequence[T], score: Callable[[T, T], float | None]) -> list[tuple[T, T]]:
    """Return pairs of members, the highest score first, none of them twice; a score of None rules a pair out."""
    scored = [
        (-value, at, gold_at)
        for at, member in enumerate(left)
        for gold_at, gold_member in enumerate(right)
        if (value := score(member, gold_member)) is not None
    ]
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
        groups = without(groups, joined)
        groups.append([*(member for group in joined for member in group), element])
    ordered = [tuple(sorted(group, key=lambda element: not isinstance(element, Triple))) for group in groups]
    return [group for group in ordered if len(group) <= MAX_ADDED]
