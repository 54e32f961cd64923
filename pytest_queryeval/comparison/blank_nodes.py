"""Blank nodes have no names of their own: predicted's are renamed to gold's, consistently over the whole table.

Colour refinement: a node's colour is made of the other cells of all its rows, then of the colours of the nodes among
them, until no more nodes are distinguished. A node of a unique colour is known; the known ones cut the rest into parts
that no row connects, and parts of the same colours are compared by themselves. Where a part has no such node, one of
its nodes is paired with each candidate in turn, and the refinement goes on, as in the individualisation step of
graph-isomorphism programs (McKay, 1981).
Where any columns may be compared, they are aligned later. Names are then looked for under each alignment of columns
that hold the same cells but for blank nodes, until one makes the tables equal; where none does, columns do not count.
A triple term with blank nodes is taken as one more node, and its parts as three more rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from typing import TypeAlias

from pytest_queryeval.comparison.graphs import component_representatives
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.table import BlankNode, TripleTerm, blank_nodes, replace_blank_nodes

Cells: TypeAlias = tuple[Hashable, ...]
Sides: TypeAlias = tuple[Sequence[Cells], Sequence[Cells]]
Colours: TypeAlias = dict[BlankNode, int]
Names: TypeAlias = dict[BlankNode, BlankNode]
_TRIPLE = "\0triple"
_ANY = BlankNode("\0any")  # instead of any blank node
MAX_VISITS = 300_000  # rows visited by the refinement; past it nodes of one colour are paired in their order
MAX_ALIGNMENTS = 120  # of columns, under which names are looked for


def rename_blank_nodes(
    gold: Sequence[Cells],
    predicted: Sequence[Cells],
    *,
    columns: Sequence[int] | None = None,
    merged: Callable[[], Mapping[Hashable, Hashable]] = dict,
) -> tuple[Sequence[Cells], bool]:
    """Return predicted rows in which blank nodes have the names of matching gold nodes, and whether that is proven.

    The flag is False if a budget ended the search, so that better names may exist. Nodes without a partner get names
    that gold does not use. `columns` are the predicted columns that gold's columns are compared with, None if they may
    be any. `merged` returns a common value for cells that are equal without being the same, such as numbers within the
    tolerance.
    """
    nodes = _nodes(predicted)
    if not nodes or Counter(gold) == Counter(predicted):
        return predicted, True
    values = merged()
    gold_rows, predicted_rows = (
        [tuple([values.get(cell, cell) for cell in row]) for row in rows] for rows in (gold, predicted)
    )
    names: Names | None = None
    proven = True
    if columns is None:
        names, proven = _aligned_names(gold_rows, predicted_rows)
    else:
        predicted_rows = _projected(predicted_rows, columns)
    if names is None:
        search = _Search((_with_parts(gold_rows), _with_parts(predicted_rows)), positional=columns is not None)
        names = search.names()
        proven = proven and search.visits_left >= 0
    return _renamed(predicted, {node: names.get(node) or BlankNode(f"\0{node.label}") for node in nodes}), proven


def _aligned_names(gold: Sequence[Cells], predicted: Sequence[Cells]) -> tuple[Names | None, bool]:
    """Return names under which the tables are equal in some alignment of columns, and whether the search was complete.

    The names are None if there is no such alignment among those that were tried.
    """
    expected = Counter(gold)
    visits = MAX_VISITS
    alignments = _alignments(gold, predicted)
    for columns in islice(alignments, MAX_ALIGNMENTS):
        rows = _projected(predicted, columns)
        search = _Search((_with_parts(gold), _with_parts(rows)), positional=True, visits=visits)
        names = search.names()
        visits = search.visits_left
        if names.keys() >= {*_nodes(rows)} and Counter(_renamed(rows, names)) == expected:
            return names, True
        if visits < 0:
            break
    return None, visits >= 0 and next(alignments, None) is None


def _alignments(gold: Sequence[Cells], predicted: Sequence[Cells]) -> Iterator[tuple[int, ...]]:
    """Yield all alignments in which each predicted column has the same cells as its gold column but for blank nodes.

    There are none if the tables differ in their number of rows or columns.
    """
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return
    gold_cells, predicted_cells = (
        [Counter([replace_blank_nodes(cell, lambda _: _ANY) for cell in column]) for column in zip(*rows, strict=True)]
        for rows in (gold, predicted)
    )
    options = [[place for place, cells in enumerate(predicted_cells) if cells == column] for column in gold_cells]

    def completed(columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(columns) == len(options):
            yield columns
            return
        for place in options[len(columns)]:
            if place not in columns:
                yield from completed((*columns, place))

    yield from completed(())


def _projected(rows: Iterable[Cells], columns: Sequence[int]) -> list[Cells]:
    return [tuple([row[column] for column in columns]) for row in rows]


def _renamed(rows: Iterable[Cells], names: Names) -> list[Cells]:
    return [tuple([replace_blank_nodes(cell, names.__getitem__) for cell in row]) for row in rows]


def _nodes(rows: Iterable[Cells]) -> list[BlankNode]:
    return list(dict.fromkeys(chain.from_iterable(map(blank_nodes, chain.from_iterable(rows)))))


def _with_parts(rows: Iterable[Sequence[Hashable]]) -> list[Cells]:
    """Return rows in which triple terms with blank nodes are replaced by blank nodes of their own.

    A row is appended for the subject, the predicate and the object of each replaced term.
    """
    nodes: dict[TripleTerm, BlankNode] = {}
    parts: list[Cells] = []

    def node_of(cell: Hashable) -> Hashable:
        if not isinstance(cell, TripleTerm) or next(blank_nodes(cell), None) is None:
            return cell
        if cell not in nodes:
            nodes[cell] = BlankNode(f"\0triple {len(nodes)}")
            inner = zip(("subject", "predicate", "object"), map(node_of, cell.parts), strict=True)
            parts.extend(((_TRIPLE, name), nodes[cell], part) for name, part in inner)
        return nodes[cell]

    return [tuple(map(node_of, row)) for row in rows] + parts


@dataclass(slots=True)
class _Component:
    """Blank nodes that are connected by common rows, with the colour of each node, and these rows."""

    colours: Colours = field(default_factory=dict)
    rows: list[Cells] = field(default_factory=list)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """A key that components have in common if they may be isomorphic."""
        return len(self.rows), *sorted(self.colours.values())


class _Search:
    """A search for the gold node that each predicted node stands for.

    `positional` says that the order of columns counts. `visits_left` is negative once the search has used up its
    budget.
    """

    def __init__(self, sides: Sides, positional: bool, visits: int = MAX_VISITS) -> None:
        self._sides = sides
        self._positional = positional
        self.visits_left = visits
        self._known = count()

    def names(self) -> Names:
        """Return a gold node for each predicted node that has a partner.

        Nodes whose components have no isomorphic partner are paired by equal labels, then in their order.
        """
        start = tuple(dict.fromkeys(_nodes(rows), 0) for rows in self._sides)
        colours = self._refined(self._sides, (start[0], start[1]))
        golds, predicted = (_components(rows, side) for rows, side in zip(self._sides, colours, strict=True))
        try:
            names_of_parts = list(self._partners(golds, predicted))
        except RecursionError:  # parts within parts, hundreds of levels
            self.visits_left, names_of_parts = -1, []
        names: Names = {}
        for part_names in names_of_parts:
            names |= part_names or {}
        # Nodes of parts without a partner are paired by label, which one source keeps over its queries, then in order.
        used_nodes = set(names.values())
        free = {node: None for node in colours[0] if node not in used_nodes}
        unnamed = [node for node in colours[1] if node not in names]
        by_label = {node: node for node in unnamed if node in free}
        unpaired = (node for node in free if node not in by_label)
        return names | by_label | dict(zip((node for node in unnamed if node not in by_label), unpaired, strict=False))

    def _partners(self, golds: Iterable[_Component], predicted: Iterable[_Component]) -> Iterator[Names | None]:
        """Yield, for each predicted component, the names of its nodes; None if it has no partner.

        Its partner is the first free gold component that is isomorphic.
        """
        free: defaultdict[tuple[Hashable, ...], list[_Component]] = defaultdict(list)
        for part in golds:
            free[part.key].append(part)
        for part in predicted:
            candidates = free[part.key]
            names = None
            for place, candidate in enumerate(candidates):
                names = self._isomorphism(candidate, part)
                if names is not None:
                    del candidates[place]
                    break
            yield names

    def _isomorphism(self, gold: _Component, predicted: _Component) -> Names | None:
        """Return the names under which two components with equal keys are isomorphic; None if they are not.

        Past the budget, nodes of the same colour are paired in their order instead.
        """
        by_colour: defaultdict[int, tuple[list[BlankNode], list[BlankNode]]] = defaultdict(lambda: ([], []))
        for place, part in enumerate((gold, predicted)):
            for node, colour in part.colours.items():
                by_colour[colour][place].append(node)
        groups = [group for group in by_colour.values() if all(group)]
        unique = {predicted_nodes[0]: gold_nodes[0] for gold_nodes, predicted_nodes in groups if len(gold_nodes) == 1}
        if unique or not groups:
            return self._isomorphism_around(gold, predicted, unique)
        gold_nodes, predicted_nodes = min(groups, key=lambda group: len(group[0]))
        for gold_node in gold_nodes:
            if self.visits_left < 0:
                return dict(chain.from_iterable(zip(*reversed(nodes), strict=True) for nodes in groups))
            start = ({**gold.colours, gold_node: -1}, {**predicted.colours, predicted_nodes[0]: -1})
            colours = self._refined((gold.rows, predicted.rows), start)
            if sorted(colours[0].values()) == sorted(colours[1].values()):
                names = self._isomorphism(_Component(colours[0], gold.rows), _Component(colours[1], predicted.rows))
                if names is not None:
                    return names
        return None

    def _isomorphism_around(self, gold: _Component, predicted: _Component, unique: Names) -> Names | None:
        """Return the names under which two components are isomorphic, given those of nodes with a unique colour.

        The known nodes are removed, and the smaller components that remain are compared. None if some have no partner.
        """
        numbers = {predicted_node: next(self._known) for predicted_node in unique}
        parts = (
            _without_known(gold, {gold_node: numbers[predicted_node] for predicted_node, gold_node in unique.items()}),
            _without_known(predicted, numbers),
        )
        if self._known_rows(parts[0].rows) != self._known_rows(parts[1].rows):
            return None
        names = dict(unique)
        for part_names in self._partners(*(_components(part.rows, part.colours) for part in parts)):
            if part_names is None:
                return None
            names |= part_names
        return names

    def _known_rows(self, rows: Sequence[Cells]) -> Counter[Hashable]:
        """Return a counter of the rows without unknown blank nodes.

        Cells count in any order unless columns are positional.
        """
        done = [row for row in rows if not any(isinstance(cell, BlankNode) for cell in row)]
        return Counter(done if self._positional else [tuple(sorted(map(hash, row))) for row in done])

    def _refined(self, sides: Sides, start: tuple[Colours, Colours]) -> tuple[Colours, Colours]:
        """Return the colours of both sides, refined from `start` until no more nodes differ, or past the budget."""
        colours = start
        distinguished = 0
        while True:
            self.visits_left -= len(sides[0]) + len(sides[1])
            numbers: dict[Hashable, int] = {}
            gold, predicted = (
                _recoloured(rows, side, numbers, self._positional) for rows, side in zip(sides, colours, strict=True)
            )
            colours = gold, predicted
            if len(numbers) <= distinguished or self.visits_left < 0:
                return colours
            distinguished = len(numbers)


def _without_known(part: _Component, numbers: Mapping[BlankNode, int]) -> _Component:
    """Return a component without the nodes in `numbers`; in its rows, they become plain values with these numbers."""
    rows = [
        tuple([("known", numbers[cell]) if isinstance(cell, BlankNode) and cell in numbers else cell for cell in row])
        for row in part.rows
    ]
    return _Component(excluding(part.colours, numbers), rows)


def _components(rows: Sequence[Cells], colours: Colours) -> Iterable[_Component]:
    """Return the connected components of nodes and rows: no row has nodes of two components.

    Rows without nodes are left out.
    """
    inside = [(row, [cell for cell in row if isinstance(cell, BlankNode)]) for row in rows]
    roots = component_representatives((nodes[0], node) for _, nodes in inside for node in nodes)
    parts: defaultdict[BlankNode, _Component] = defaultdict(_Component)
    for node, colour in colours.items():
        parts[roots[node]].colours[node] = colour
    for row, nodes in inside:
        if nodes:
            parts[roots[nodes[0]]].rows.append(row)
    return parts.values()


def _recoloured(
    rows: Sequence[Cells], colours: Mapping[BlankNode, int], numbers: dict[Hashable, int], positional: bool
) -> Colours:
    signatures: defaultdict[BlankNode, list[int]] = defaultdict(list)
    for row in rows:
        beside = [hash(("node", colours[cell])) if isinstance(cell, BlankNode) else hash(cell) for cell in row]
        alike = tuple(beside if positional else sorted(beside))
        for place, cell in enumerate(row):
            if isinstance(cell, BlankNode):
                signatures[cell].append(hash((place * positional, alike)))
    return {
        node: numbers.setdefault((colour, tuple(sorted(signatures[node]))), len(numbers))
        for node, colour in colours.items()
    }
