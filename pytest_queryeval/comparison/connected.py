"""Connected components of a graph, in plain Python: its users are too small for the time that scipy takes to load."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def connected(links: Iterable[tuple[Node, Node]]) -> dict[Node, Node]:
    """Return for each node one node of its component, the same for all of them (union-find with path halving).

    >>> connected([(1, 2), (3, 3), (4, 2)])
    {1: 4, 2: 4, 3: 3, 4: 4}
    """
    head: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while head.setdefault(node, node) != node:
            head[node] = head[head[node]]
            node = head[node]
        return node

    for node, neighbour in links:
        head[root(neighbour)] = root(node)
    return {node: root(node) for node in list(head)}
