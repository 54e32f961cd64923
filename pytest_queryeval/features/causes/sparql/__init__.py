"""Single edits of a predicted SPARQL query, from its differences to gold, clause by clause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pytest_queryeval.core.cause import NOTHING, CauseLabel, CausingEdit, in_order
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.features.causes.sparql.aligned import normal, operands, with_names_of
from pytest_queryeval.features.causes.sparql.changes import (
    Make,
    adding_arm,
    inserting,
    inserting_item,
    replacing,
    setting,
    setting_parts,
)
from pytest_queryeval.features.causes.sparql.parts import (
    alike,
    components,
    label_of,
    label_of_expressions,
    label_of_tokens,
    optional_groups,
    products,
    take,
)
from pytest_queryeval.languages.sparql.trees.facts import lost_variables
from pytest_queryeval.languages.sparql.trees.reader import UnreadableError, read_tree
from pytest_queryeval.languages.sparql.trees.tree import (
    COUNTING,
    Bind,
    Block,
    Element,
    Expr,
    Filter,
    Group,
    Node,
    Select,
    Triple,
    Union,
    changed,
    is_variable,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.trees.writer import Writer
from pytest_queryeval.text.truncation import one_line

MAX_CHANGE = 120  # characters of each side
MAX_NODES = 1_500  # of the trees of both queries
MAX_COMBINATIONS = 2_000  # many of them make the same query, or none
MAX_PARTS = 3  # of an expression that are changed one by one
CLAUSES = ("FROM", "WHERE", "FILTER", "BIND", "SELECT", "GROUP", "HAVING", "ORDER", "LIMIT")  # in the order of reports
# Of each clause, the label of what differs there in a way that has no label of its own.
_OTHERWISE: dict[str, CauseLabel] = {
    "FILTER": "wrong-filter",
    "BIND": "wrong-expression",
    "SELECT": "wrong-expression",
    "HAVING": "wrong-having",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """What becomes of nodes, by their ids; `whole` edits replace a group or a clause of the query `within`."""

    shown: CausingEdit
    within: int
    whole: bool
    makes: tuple[tuple[int, Make], ...]


class SparqlEdits:
    """The edits that lead from a predicted query to gold, those of single patterns before those of whole groups."""

    def __init__(self, predicted: Select, gold: Select, writer: Writer) -> None:
        self._tree = predicted
        gold = with_names_of(gold, predicted)
        self._writer = writer
        self._lost = lost_variables(self._tree) | lost_variables(gold)
        self._products = max(products(self._tree), products(gold))
        self._variables = set(variables(self._tree))
        self._found: list[_Edit] = []
        self._selects(self._tree, gold)
        self._found.sort(key=lambda edit: (edit.whole, CLAUSES.index(edit.shown.clause), edit.shown.change))

    @property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits, in the order in which they are to be tried."""
        return [edit.shown for edit in self._found]

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together."""
        areas = [(edit.within, edit.shown.clause) for edit in self._found]
        return islice(in_order(areas, [edit.whole for edit in self._found]), MAX_COMBINATIONS)

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return predicted after these edits; None where it returns what it does not match, or multiplies patterns.

        That is to have patterns without a common variable, which is slow, where neither predicted nor gold does.
        """
        makes: defaultdict[int, list[Make]] = defaultdict(list)
        for number in numbers:
            for target, make in self._found[number].makes:
                makes[target].append(make)

        def change(old: Node, new: Node) -> Node | tuple[Node, ...] | None:
            found: Node | tuple[Node, ...] | None = new
            for make in makes.get(id(old), ()):
                if found is None or isinstance(found, tuple):
                    break
                found = make(found)
            return found

        tree = changed(self._tree, change)
        if tree is None or not lost_variables(tree) <= self._lost or products(tree) > self._products:
            return None
        return self._writer.query(tree)

    def _add(
        self,
        label: CauseLabel,
        clause: str,
        change: tuple[Node | str | Sequence[Node] | None, Node | str | Sequence[Node] | None],
        *makes: tuple[Node, Make],
        within: Select,
        whole: bool = False,
    ) -> None:
        old, new = (
            one_line(side if isinstance(side, str) else self._writer.line(side), MAX_CHANGE) if side else NOTHING
            for side in change
        )
        shown = CausingEdit(label=label, clause=clause, change=f"{old} → {new}")
        ids = tuple((id(node), make) for node, make in makes)
        self._found.append(_Edit(shown=shown, within=id(within), whole=whole, makes=ids))

    def _selects(self, mine: Select, other: Select) -> None:
        """Add the edits of a query."""
        if mine.dataset != other.dataset:
            texts = (" ".join(mine.dataset), " ".join(other.dataset))
            self._add("wrong-table", "FROM", texts, (mine, setting(other, "dataset")), within=mine)
        if mine.where is not None and other.where is not None:
            self._groups(mine.where, other.where, mine)
        if mine.form != other.form or mine.template != other.template:
            texts = (mine.form, other.form) if mine.form != other.form else ("template", "template of gold")
            head = ("form", "modifier", "items", "template")
            self._add("wrong-column", "SELECT", texts, (mine, setting(other, *head)), within=mine)
        else:
            self._items(mine, other)
        if mine.group != other.group:
            change = mine.group, other.group
            self._add("wrong-grouping", "GROUP", change, (mine, setting(other, "group")), within=mine)
        if len(mine.having) == len(other.having):
            for one, gold_one in zip(mine.having, other.having, strict=True):
                self._expression(one, gold_one, "HAVING", mine)
        else:
            label: CauseLabel = "wrong-having" if mine.having else "missing-having"
            change_of_having = mine.having, other.having
            self._add(label, "HAVING", change_of_having, (mine, setting(other, "having")), within=mine)
        if mine.order != other.order:
            label = "wrong-order" if mine.order else "missing-order"
            self._add(label, "ORDER", (mine.order, other.order), (mine, setting(other, "order")), within=mine)
        if (mine.limit, mine.offset) != (other.limit, other.offset):
            limits = (_limit(mine), _limit(other))
            self._add("wrong-limit", "LIMIT", limits, (mine, setting(other, "limit", "offset")), within=mine)
        if mine.values != other.values:
            self._add(
                "wrong-value",
                "WHERE",
                (mine.values, other.values),
                (mine, setting(other, "values")),
                within=mine,
            )

    def _items(self, mine: Select, other: Select) -> None:
        """Add the edits of the selected columns and of DISTINCT."""
        if mine.modifier != other.modifier:
            label: CauseLabel = "extra-distinct" if mine.modifier else "missing-distinct"
            change = mine.modifier, other.modifier
            self._add(label, "SELECT", change, (mine, setting(other, "modifier")), within=mine)
        values, gold_values = [item.value for item in mine.items], [item.value for item in other.items]
        left = [item for item in mine.items if not take(gold_values, item.value)]
        right = [item for item in other.items if not take(values, item.value)]
        for one, gold_one in zip(left, right, strict=False):
            aggregates = [[part for part in item.value.parts if part in COUNTING][:1] for item in (one, gold_one)]
            if all(len(item.value.parts) > 1 for item in (one, gold_one)):
                self._expression(one.value, gold_one.value, "SELECT", mine)
            else:
                label = "wrong-column" if aggregates[0] == aggregates[1] else "wrong-aggregate"
                self._add(label, "SELECT", (one, gold_one), (one, replacing(gold_one)), within=mine)
        for one in left[len(right) :]:
            self._add("extra-column", "SELECT", (one, None), (one, replacing(None)), within=mine)
        for gold_one in right[len(left) :]:
            place = other.items.index(gold_one)
            self._add(
                "missing-column",
                "SELECT",
                (None, gold_one),
                (mine, inserting_item(gold_one, place)),
                within=mine,
            )
        if len(left) + len(right) > 1:
            label = "wrong-column" if len(left) == len(right) else "missing-column" if right else "extra-column"
            change_of_items = mine.items, other.items
            self._add(label, "SELECT", change_of_items, (mine, setting(other, "items")), within=mine, whole=True)

    def _groups(self, mine: Group, other: Group, within: Select) -> None:
        """Add the edits of a group."""
        elements, gold_elements = list(mine.elements), list(other.elements)
        left = [each for each in mine.elements if not take(gold_elements, each)]
        right = [each for each in other.elements if not take(elements, each)]
        if not left and not right:
            return
        before = len(self._found)
        self._connectors(left, right, within)
        self._optional(left, right, within)
        for one, gold_one in alike(left, right):
            left = [each for each in left if each is not one]
            right = [each for each in right if each is not gold_one]
            if isinstance(one, Triple) and isinstance(gold_one, Triple):
                self._triples(one, gold_one, within)
            else:
                self._elements(one, gold_one, within)
        for part in components(right, self._variables):
            label, clause = label_of(part[0], is_missing=True)
            self._add(label, clause, (None, part), (mine, inserting(part)), within=within)
        for one in left:
            label, clause = label_of(one, is_missing=False)
            if len(mine.elements) > 1:
                self._add(label, clause, (one, None), (one, replacing(None)), within=within)
        if len(left) > 1 and len(left) < len(mine.elements):
            label, clause = label_of(left[0], is_missing=False)
            self._add(label, clause, (left, None), *((one, replacing(None)) for one in left), within=within)
        own = sorted(self._found[before:], key=lambda edit: (edit.whole, CLAUSES.index(edit.shown.clause)))
        if len(own) > 1:  # none where only the order differs
            label = own[0].shown.label
            self._add(label, "WHERE", (mine, other), (mine, replacing(other)), within=within, whole=True)

    def _connectors(self, left: list[Element], right: list[Element], within: Select) -> None:
        """Add the edits of conditions that one query joins with `&&`, as filters here, and the other one with `||`."""
        for mine, others, is_predicted in ((left, right, True), (right, left, False)):
            for element in [each for each in mine if isinstance(each, Filter)]:
                conditions = operands(element.condition, "||")
                joined = [each for each in others if isinstance(each, Filter) and each.condition in conditions]
                if len(conditions) == 1 or len(joined) != len(conditions):
                    continue
                if is_predicted:
                    makes = [(element, replacing(tuple(joined)))]
                else:
                    makes = [
                        (joined[0], replacing(element)),
                        *((each, replacing(None)) for each in joined[1:]),
                    ]
                names = ("||", "&&") if is_predicted else ("&&", "||")
                self._add("wrong-connector", "FILTER", names, *makes, within=within)
                mine.remove(element)
                others[:] = [each for each in others if not any(each is one for one in joined)]

    def _optional(self, left: list[Element], right: list[Element], within: Select) -> None:
        """Add the edits of patterns that are optional in one query and required in the other, or in a UNION there."""
        for element in list(right):
            for group in element.arms if isinstance(element, Union) else optional_groups(element):
                found = [each for each in left if each in group.elements]
                if group.elements and len(found) == len(group.elements):
                    label: CauseLabel = "optional" if isinstance(element, Block) else "set-operation"
                    makes = [
                        (found[0], replacing(element)),
                        *((each, replacing(None)) for each in found[1:]),
                    ]
                    self._add(label, "WHERE", (found, element), *makes, within=within)
                    left[:] = [each for each in left if not any(each is one for one in found)]
                    right.remove(element)
                    break
        for element in list(left):
            for group in element.arms if isinstance(element, Union) else optional_groups(element):
                if group.elements and all(each in right for each in group.elements):
                    label = "optional" if isinstance(element, Block) else "set-operation"
                    make = (element, replacing(group.elements))
                    self._add(label, "WHERE", (element, group.elements), make, within=within)
                    left[:] = [each for each in left if each is not element]
                    right[:] = [each for each in right if each not in group.elements]
                    break

    def _triples(self, one: Triple, other: Triple, within: Select) -> None:
        """Add the edit of a triple pattern."""
        if one.path != other.path or (one.subject, one.object) == (other.object, other.subject):
            is_path = (one.subject, one.object) == (other.subject, other.object)
            change = (self._writer.path(one.path), self._writer.path(other.path)) if is_path else (one, other)
            self._add("wrong-predicate", "WHERE", change, (one, replacing(other)), within=within)
            if not is_path and one.path != other.path and one.subject == other.subject:
                own = replace(one, path=other.path)
                self._add("wrong-predicate", "WHERE", (one, own), (one, replacing(own)), within=within)
            return
        ends = [(one.subject, other.subject), (one.object, other.object)]
        different = [pair for pair in ends if pair[0] != pair[1]]
        are_variables = all(is_variable(term) for pair in different for term in pair)
        label: CauseLabel = "wrong-join-condition" if are_variables else "wrong-value"
        texts = (self._writer.term(different[0][0]), self._writer.term(different[0][1]))
        shown = texts if len(different) == 1 and not are_variables else (one, other)
        self._add(label, "WHERE", shown, (one, replacing(other)), within=within)

    def _elements(self, one: Element, other: Element, within: Select) -> None:
        """Add the edits of two elements of one type."""
        match one, other:
            case Filter(), Filter():
                self._expression(one.condition, other.condition, "FILTER", within)
            case Bind(), Bind() if one.variable == other.variable:
                self._expression(one.value, other.value, "BIND", within)
            case Block(), Block() if one.head == other.head:
                self._groups(one.group, other.group, within)
            case Select(), Select():
                self._selects(one, other)
            case Union(), Union():
                arms, gold_arms = list(one.arms), list(other.arms)
                left = [arm for arm in one.arms if not take(gold_arms, arm)]
                right = [arm for arm in other.arms if not take(arms, arm)]
                for arm, gold_arm in zip(left, right, strict=False):
                    self._groups(arm, gold_arm, within)
                for arm in left[len(right) :]:
                    self._add("set-operation", "WHERE", (arm, None), (arm, replacing(None)), within=within)
                for arm in right[len(left) :]:
                    self._add("set-operation", "WHERE", (None, arm), (one, adding_arm(arm)), within=within)
            case _:
                label: CauseLabel = "wrong-expression" if isinstance(one, Bind) else "wrong-value"
                self._add(label, "WHERE", (one, other), (one, replacing(other)), within=within)

    def _expression(self, mine: Expr, other: Expr, clause: str, within: Select) -> None:
        """Add the edits of an expression, at the smallest parts that differ."""
        if mine == other:
            return
        before = len(self._found)
        otherwise = _OTHERWISE[clause]
        pairs = list(zip(mine.parts, other.parts, strict=False))
        different = [at for at, (one, gold_one) in enumerate(pairs) if one != gold_one]
        if len(mine.parts) == len(other.parts) and len(different) <= MAX_PARTS:
            for at in different:
                one, gold_one = pairs[at]
                if isinstance(one, Group) and isinstance(gold_one, Group):
                    self._groups(one, gold_one, within)
                elif isinstance(one, str) and isinstance(gold_one, str):
                    label = label_of_tokens(one, gold_one, otherwise)
                    texts = (self._writer.term(one), self._writer.term(gold_one))
                    make = setting_parts(slice(at, at + 1), [gold_one])
                    self._add(label, clause, texts, (mine, make), within=within)
        elif isinstance(mine.parts[-1], Group) and isinstance(other.parts[-1], Group):
            names = " ".join(map(str, mine.parts[:-1])), " ".join(map(str, other.parts[:-1]))
            if names[0] != names[1]:
                make = setting_parts(slice(-1), other.parts[:-1])
                self._add("wrong-operator", clause, names, (mine, make), within=within)
            self._groups(mine.parts[-1], other.parts[-1], within)
        own = self._found[before:]
        if len(own) != 1 or own[0].whole:
            label = own[0].shown.label if own else label_of_expressions(mine, other, otherwise)
            self._add(label, clause, (mine, other), (mine, replacing(other)), within=within)


def sparql_edits(
    predicted: str,
    gold: str,
    *,
    schema: Schema | None = None,
    dialect: str = "",
) -> SparqlEdits | None:
    """Return the edits from a predicted query to gold; None where one cannot be read, or they are very long.

    >>> found = sparql_edits("SELECT ?s { ?s :age ?a FILTER(?a > 30) }", "SELECT ?x { ?x :age ?y FILTER(?y > 40) }")
    >>> found.edits
    [CausingEdit(label='wrong-value', clause='FILTER', change='30 → 40')]
    """
    try:
        theirs = read_tree(gold)
        mine = read_tree(predicted, theirs.prefixes)
        theirs = read_tree(gold, mine.prefixes)
    except UnreadableError:
        return None
    trees = normal(mine.tree), normal(theirs.tree)
    if sum(1 for tree in trees for _ in walk(tree)) > MAX_NODES:
        return None
    return SparqlEdits(*trees, Writer({**theirs.prefixes, **mine.prefixes}))


def _limit(select: Select) -> str:
    parts = (("", select.limit), ("OFFSET ", select.offset))
    return " ".join(f"{word}{number}" for word, number in parts if number)
