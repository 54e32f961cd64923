"""The texts of parts of two SPARQL queries, as reports show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pytest_queryeval.features.causes.sparql.aligned import NODE, links_of, with_paths
from pytest_queryeval.languages.sparql.trees.tree import Element, Group, Node, Select, Triple, variables
from pytest_queryeval.languages.sparql.trees.writer import Writer
from pytest_queryeval.text.truncation import one_line

MAX_CHANGE = 180  # characters of each side
Side: TypeAlias = "Node | str | tuple[Node, ...] | Sequence[Element] | None"


class Lines:
    """Writes parts of two queries in one line each, with names that a query can have for those of blank nodes."""

    def __init__(self, writer: Writer, *trees: Select) -> None:
        self.writer = writer
        self.names = _shown_names({name for tree in trees for name in variables(tree)})

    def line(self, side: Side) -> str:
        """Return the text of one side of a change, with paths where they were taken apart, and points after triples."""
        if isinstance(side, str):
            return one_line(side, MAX_CHANGE)
        nodes: Sequence[Node] = side if isinstance(side, tuple | list) else () if side is None else (side,)
        triples = [node for node in nodes if isinstance(node, Triple)]
        if triples and len(triples) == len(nodes):
            nodes = with_paths(triples, [name for name in links_of(Group(tuple(triples))) if name.startswith(NODE)])
        separator = " . " if triples else " "
        text = separator.join(map(self.writer.line, nodes))
        for name, display_name in self.names.items():
            text = text.replace(name, display_name)
        return one_line(text, MAX_CHANGE)


def limit_text(select: Select) -> str:
    """Return the numbers of LIMIT and OFFSET."""
    clauses = (("", select.limit), ("OFFSET ", select.offset))
    return " ".join(f"{word}{number}" for word, number in clauses if number)


def _shown_names(names: set[str]) -> dict[str, str]:
    """Return names that a query can have for variables whose names begin with NODE, longest first."""
    shown_names: dict[str, str] = {}
    for name in sorted((name for name in names if name.startswith(NODE)), key=lambda name: (-len(name), name)):
        display_name = f"?node{name.removeprefix(NODE)}"
        while display_name in names:
            display_name += "_"
        shown_names[name] = display_name
    return shown_names
