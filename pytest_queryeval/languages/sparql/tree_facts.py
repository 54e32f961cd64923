"""Properties of a SPARQL query that hold on any graph: where duplicates, an order or a block do not matter.

Its features are those by which reports group cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Literal, TypeAlias, TypeVar, get_args

from pytest_queryeval.core.table import Policy
from pytest_queryeval.languages.sparql.tree import (
    COUNTING,
    Block,
    Element,
    Expr,
    Filter,
    Group,
    Item,
    Node,
    Select,
    Triple,
    Union,
    is_variable,
    renamed,
    terms,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

_IGNORING_DUPLICATES = ("MIN", "MAX", "SAMPLE")
Feature: TypeAlias = Literal["optional", "filter", "path", "aggregate", "union"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A group within a query, and whether its duplicates matter."""

    group: Group
    select: Select
    """The query whose pattern the group belongs to."""
    duplicates_matter: bool
    """Whether the number of equal solutions of the group can change the answer."""


class Facts:
    """Properties of a query that follow from its text and from the policy by which answers are compared."""

    def __init__(self, tree: Select, policy: Policy) -> None:
        self.tree = tree
        self.policy = policy
        self.uses = Counter(term for term in terms(tree) if is_variable(term))
        self.selects: list[tuple[Select, bool, bool]] = []  # with whether duplicate rows, and their order, matter
        self.places: list[Place] = []
        self.inert: set[int] = set()  # ids of nodes that change no solution: OPTIONAL of variables used nowhere else
        is_table = tree.form == "SELECT"
        makes_nodes = tree.template is not None and any(term[0] in "[_" for term in terms(tree.template))
        duplicates_matter = makes_nodes or (is_table and policy.duplicates == "count")
        self._select(tree, duplicates_matter, is_table and policy.row_order != "ignore")

    def _select(self, select: Select, duplicates_matter: bool, order_matters: bool) -> None:
        is_cut = bool(select.limit or select.offset) and select.form != "ASK"
        self.selects.append((select, duplicates_matter or is_cut, order_matters or is_cut))
        if select.where is not None:
            matter = (duplicates_matter or is_cut) and select.modifier != "DISTINCT"
            if select.aggregates:
                matter = any(map(_counts_duplicates, (node for node in walk(select) if isinstance(node, Expr))))
            self._group(select.where, select, matter)
        for expression in (*select.having, *(item.value for item in select.items)):
            self._groups_within(expression, select)

    def _group(self, group: Group, select: Select, duplicates_matter: bool) -> None:
        self.places.append(Place(group, select, duplicates_matter))
        for number, element in enumerate(group.elements):
            match element:
                case Select():
                    self._select(element, duplicates_matter, order_matters=False)
                case Block(head, inner):
                    self._group(inner, select, duplicates_matter and head[0] != "MINUS")
                    if head[0] == "OPTIONAL" and not duplicates_matter and not self.tree.selects_all:
                        bound_names = bound_variables(Group(group.elements[:number]))
                        element_uses = Counter(term for term in terms(element) if is_variable(term))
                        if all(name in bound_names or self.uses[name] == count for name, count in element_uses.items()):
                            self.inert |= {id(node) for node in walk(inner)}
                case Union(arms):
                    for arm in arms:
                        self._group(arm, select, duplicates_matter)
                case _:
                    self._groups_within(element, select)

    def _groups_within(self, node: Node, select: Select) -> None:
        """Record the groups of EXISTS within a node."""
        for descendant in walk(node):
            if isinstance(descendant, Expr):
                for argument in descendant.arguments:
                    if isinstance(argument, Group):
                        self._group(argument, select, duplicates_matter=False)

    def has_unique_rows(self, select: Select) -> bool:
        """Return whether the rows of a query are certainly distinct even without DISTINCT."""
        column_names = {item.variable for item in select.items}
        if select.aggregates:
            return all(key.variable in column_names or self.is_never_bound(key) for key in select.group)
        if select.where is None or select.dataset or select.values is not None or not self._is_set(select.where):
            return False
        return select.selects_all or set(_visible(select.where)) <= column_names

    def is_never_bound(self, item: Item) -> bool:
        """Return whether a key of GROUP BY is a variable that nothing else in the query names."""
        return is_variable(item.variable) and not item.alias and self.uses[item.variable] == 1

    def counts_unique(self, select: Select, variable: str) -> bool:
        """Return whether the values of a variable are certainly distinct within each group."""
        if select.where is None or select.dataset or not self._is_set(select.where):
            return False
        return set(_visible(select.where)) <= {variable, *(key.variable for key in select.group)}

    def _is_set(self, group: Group, *, within_optional: bool = False) -> bool:
        """Return whether the solutions of a group are certainly distinct.

        Its patterns have to be triples, which a graph contains once, or blocks of such patterns.
        """
        for element in group.elements:
            match element:
                case Filter():
                    continue
                case Triple(path=path):
                    if len(path) > 1 or any(term[0] in "[_" for term in terms(element)):
                        return False
                case Block(("OPTIONAL",), inner) if not within_optional:
                    if not self._is_set(inner, within_optional=True):
                        return False
                case Union((Group((Select() as select,)),)):
                    if not select.group or not self.has_unique_rows(select):
                        return False
                case _:
                    return False
        return True

    def is_same_but_for_names(self, variant: Select, first_variable: str, second_variable: str) -> bool:
        """Return whether a variant equals the query once two variables are exchanged.

        If columns may have any order, the order of the items does not count.
        """
        exchanges = {first_variable: second_variable, second_variable: first_variable}
        renamed_variant = renamed(variant, lambda term: exchanges.get(term, term))
        if self.policy.columns == "any" and not self.policy.gold_columns:
            return _sort_items(renamed_variant) == _sort_items(self.tree)
        return renamed_variant == self.tree


def bound_variables(group: Group) -> set[str]:
    """Return the variables in the triples of a group, which are bound in all of its solutions."""
    return {name for element in group.elements if isinstance(element, Triple) for name in variables(element)}


def why_empty(group: Group, reasons: Callable[[Element], Iterable[T]]) -> list[T]:
    """Return the reasons for which a group has no solution; an empty list if it may have a solution.

    `reasons` returns those of a single element. Only what has to match counts: nothing in OPTIONAL, MINUS and NOT
    EXISTS, and reasons in a UNION only if each arm has one.
    """
    found: list[T] = []
    for element in group.elements:
        match element:
            case Union(arms):
                of_arms = [why_empty(arm, reasons) for arm in arms]
                found += chain.from_iterable(of_arms) if all(of_arms) else ()
            case Block(("GRAPH", *_), inner) | Filter(Expr("EXISTS", (Group() as inner,))):
                found += why_empty(inner, reasons)
            case Select(where=Group() as inner) if not has_one_row(element):
                found += why_empty(inner, reasons)
            case _:
                found += reasons(element)
    return found


def required_steps(path: tuple[str, ...]) -> list[str]:
    """Return the properties that each match of a path has; none for a path with parentheses, `|` or `!`.

    >>> required_steps(("a", "/", "<urn:sub>", "*", "/", "^", "<urn:p>", "+"))
    ['a', '<urn:p>']
    """
    if not {"(", "|", "!"}.isdisjoint(path):
        return []
    return [
        step
        for step, after in zip(path, (*path[1:], ""), strict=True)
        if (step[0] not in "^/*+?") and after not in ("*", "?")
    ]


def query_defects(tree: Select) -> set[str]:
    """Return the obvious defects of a query: variables that it returns or sorts by but never binds, and `{ }`."""
    lost_names = set[str]()
    for select in walk(tree):
        if isinstance(select, Select):
            heads: list[Node] = [*select.items, *select.group, *select.order]
            heads += [] if select.template is None else [select.template]
            aliases = {item.alias for item in (*select.items, *select.group)}
            matched_terms = {term for node in (select.where, select.values) if node is not None for term in terms(node)}
            lost_names |= (
                {term for node in heads for term in terms(node) if is_variable(term)} - aliases - matched_terms
            )
        if isinstance(select, Group) and not select.elements:
            lost_names.add("{ }")
    return lost_names


def has_one_row(select: Select) -> bool:
    """Return whether a query has at most one row, whatever the graph."""
    return select.form == "ASK" or (select.aggregates and not select.group)


def _counts_duplicates(expression: Expr) -> bool:
    is_distinct = any(isinstance(part, Expr) and part.head == "DISTINCT" for part in expression.arguments)
    return expression.head in COUNTING and expression.head not in _IGNORING_DUPLICATES and not is_distinct


def _visible(group: Group) -> Iterator[str]:
    for element in group.elements:
        if isinstance(element, Triple):
            yield from variables(element)
        elif isinstance(element, Block):
            yield from _visible(element.group)
        elif isinstance(element, Union):
            for select in element.arms[0].elements:
                yield from (key.variable for key in select.group) if isinstance(select, Select) else ()


def _sort_items(tree: Select) -> Select:
    return replace(tree, items=tuple(sorted(tree.items, key=repr)))


@lru_cache(maxsize=4096)
def query_features(query: str) -> tuple[Feature, ...]:
    """Return the features that a query has anywhere in it, in the order of FEATURES; none if it cannot be read.

    Cached.
    """
    try:
        tree = read_tree(query).tree
    except UnreadableError:
        return ()
    features: set[Feature] = set()
    for node in walk(tree):
        match node:
            case Block(head=("OPTIONAL",)):
                features.add("optional")
            case Filter():
                features.add("filter")
            case Union(arms=(_, _, *_)):
                features.add("union")
            case Triple(path=(_, _, *_)):
                features.add("path")
            case Select(aggregates=True):
                features.add("aggregate")
    return tuple(name for name in FEATURES if name in features)
