"""Blank nodes have no names of their own: predicted's are renamed to gold's, consistently over the whole table.

Colour refinement: a node's colour is what stands beside it in all its rows, then what the colours of those neighbours
say, until nothing more is told apart. Nodes of one colour on both sides are paired; where several share a colour, one
pair is fixed and the refinement goes on, as in the individualisation step of graph-isomorphism programs (McKay, 1981).
Columns are looked at only where they are positional, since otherwise they are aligned later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from pytest_queryeval.table import BlankNode

Cells: TypeAlias = tuple[Hashable, ...]
Sides: TypeAlias = tuple[Sequence[Cells], Sequence[Cells]]
Colours: TypeAlias = dict[BlankNode, int]
ROUNDS = 200  # refinements in all; past it the nodes left over are paired in the order of their appearance


def rename_blank_nodes(
    gold: Sequence[Cells], predicted: Sequence[Cells], *, positional: bool = False
) -> Sequence[Cells]:
    """The predicted rows with their blank nodes named after gold's; those without a partner get names of their own."""
    nodes = _nodes(predicted)
    if not nodes:
        return predicted
    names = _pairs((gold, predicted), positional)
    renamed = {node: names.get(node, BlankNode(f"\0{node.label}")) for node in nodes}
    return [tuple([renamed[cell] if isinstance(cell, BlankNode) else cell for cell in row]) for row in predicted]


def _nodes(rows: Sequence[Cells]) -> list[BlankNode]:
    if BlankNode not in set(map(type, chain.from_iterable(rows))):
        return []
    return list(dict.fromkeys(cell for row in rows for cell in row if isinstance(cell, BlankNode)))


def _pairs(sides: Sides, positional: bool) -> dict[BlankNode, BlankNode]:
    free = [dict.fromkeys(_nodes(rows), 0) for rows in sides]
    names: dict[BlankNode, BlankNode] = {}
    for _ in range(ROUNDS):
        colours = _refine(sides, (free[0], free[1]), positional)
        found = _same_colour(*colours)
        if not found:
            break
        certain = [group for group in found if len(group[0]) == len(group[1]) == 1]
        for golds, others in certain or found[:1]:
            names[others[0]] = golds[0]
        step = len(names)
        free = [dict(side) for side in colours]
        for number, (other, mine) in enumerate(names.items()):
            free[0][mine] = free[1][other] = -1 - number
        if step == min(len(free[0]), len(free[1])):
            return names
    rest = [[node for node in side if side[node] >= 0] for side in free]
    return names | dict(zip(rest[1], rest[0], strict=False))


def _same_colour(gold: Colours, predicted: Colours) -> list[tuple[list[BlankNode], list[BlankNode]]]:
    groups: defaultdict[int, tuple[list[BlankNode], list[BlankNode]]] = defaultdict(lambda: ([], []))
    for place, side in enumerate((gold, predicted)):
        for node, colour in side.items():
            if colour >= 0:
                groups[colour][place].append(node)
    return [group for group in groups.values() if all(group)]


def _refine(sides: Sides, start: tuple[Colours, Colours], positional: bool) -> tuple[Colours, Colours]:
    """Refine until the number of colours stands still; nodes that are paired already have negative, fixed colours."""
    colours = start
    told_apart = 0
    while True:
        numbers: dict[Hashable, int] = {}
        refined = tuple(_recolour(rows, side, numbers, positional) for rows, side in zip(sides, colours, strict=True))
        colours = refined[0], refined[1]
        if len(numbers) <= told_apart:
            return colours
        told_apart = len(numbers)


def _recolour(
    rows: Sequence[Cells], colours: Mapping[BlankNode, int], numbers: dict[Hashable, int], positional: bool
) -> Colours:
    signatures: defaultdict[BlankNode, list[int]] = defaultdict(list)
    for row in rows:
        beside = [hash(("node", colours[cell])) if isinstance(cell, BlankNode) else hash(cell) for cell in row]
        alike = tuple(beside if positional else sorted(beside))
        for place, cell in enumerate(row):
            if isinstance(cell, BlankNode):
                signatures[cell].append(hash((place * positional, alike)))
    fixed: Colours = {}
    for node, colour in colours.items():
        key = (colour, tuple(sorted(signatures[node])))
        fixed[node] = colour if colour < 0 else numbers.setdefault(key, len(numbers))
    return fixed
