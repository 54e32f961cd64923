"""The differences between a predicted and a gold SPARQL query, clause by clause, as single edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pytest_queryeval.core.cause import NOTHING, CauseLabel, CausingEdit
from pytest_queryeval.features.causes import best_pairs, without, without_common
from pytest_queryeval.features.causes.sparql import changes
from pytest_queryeval.features.causes.sparql.alignment import (
    Chain,
    Lines,
    Side,
    chains,
    limit_text,
    links_of,
    operands,
    turned,
)
from pytest_queryeval.features.causes.sparql.changes import CONNECTORS, Edit, Step, copy_step, drop_step, replace_step
from pytest_queryeval.languages.sparql.tree import (
    Bind,
    Block,
    Element,
    Expr,
    Filter,
    Group,
    Item,
    Select,
    Triple,
    Union,
    is_variable,
    terms,
    variables,
    walk,
)

CLAUSES = ("FROM", "WHERE", "FILTER", "BIND", "SELECT", "GROUP", "HAVING", "ORDER", "LIMIT")  # in the order of reports
# Of each clause, the label of what differs there in a way that has no label of its own.
_DEFAULT_LABELS: dict[str, CauseLabel] = {
    "FILTER": "wrong-filter",
    "BIND": "wrong-expression",
    "SELECT": "wrong-expression",
    "HAVING": "wrong-having",
    "ORDER": "wrong-order",
}
# How large edits are, apart from those that add or leave out several triples: the smallest are tried first.
_TERM_SIZE, _ELEMENT_SIZE, _CLAUSE_SIZE, _QUERY_SIZE = 0, 1, 2, 4


class Differences:
    """Finds the edits from a predicted query to gold, whose variables have the names of predicted's by role."""

    def __init__(self, predicted: Select, gold: Select, lines: Lines) -> None:
        self._tree = predicted
        self._lines = lines
        self._uses, self._gold_uses = Counter(terms(predicted)), Counter(terms(gold))
        self._links, self._gold_links = links_of(predicted), links_of(gold)
        self._edits: list[Edit] = []
        self._insertions: list[tuple[tuple[Element, ...], Step]] = []  # patterns that only gold has
        self._selects(predicted, gold)

    def edits(self) -> list[Edit]:
        """Return the edits, the smallest first; equal edits at several places are merged into one."""
        merged: dict[tuple[CauseLabel, str], Edit] = {}
        for edit in self._edits:
            key = edit.shown.label, edit.shown.change
            if (same := merged.get(key)) is not None:
                edit = replace(same, steps=(*same.steps, *edit.steps), dropped=same.dropped + edit.dropped)
            merged[key] = edit
        return sorted(
            merged.values(), key=lambda edit: (edit.size, CLAUSES.index(edit.shown.clause), edit.shown.change)
        )

    def _add(
        self,
        label: CauseLabel,
        clause: str,
        change: tuple[Side, Side],
        *steps: Step,
        size: int = _ELEMENT_SIZE,
        dropped: int = 0,
    ) -> None:
        old, new = (self._lines.line(side) if side else NOTHING for side in change)
        shown = CausingEdit(label=label, clause=clause, change=f"{old} → {new}")
        self._edits.append(Edit(shown=shown, size=size, steps=steps, dropped=dropped))

    def _selects(self, predicted: Select, gold: Select) -> None:
        """Add the edits of a query: of its dataset, pattern, columns and other clauses.

        Keys of ORDER BY are compared part by part only if their directions are those of gold.
        """
        if predicted.dataset != gold.dataset:
            texts = (" ".join(predicted.dataset), " ".join(gold.dataset))
            self._add("wrong-table", "FROM", texts, copy_step(predicted, gold, "dataset"))
        if predicted.where is not None and gold.where is not None:
            self._groups(predicted.where, gold.where)
        if predicted.form != gold.form or predicted.template != gold.template:
            is_form = predicted.form != gold.form
            texts = (predicted.form, gold.form) if is_form else ("template", "template of gold")
            lost_items = predicted.items if not gold.items else ()
            label: CauseLabel = "wrong-form" if is_form else "wrong-column"
            drops = (step for item in lost_items for step in self._only_for(item, predicted, gold))
            copy = copy_step(predicted, gold, "form", "modifier", "items", "template")
            self._add(label, "SELECT", texts, copy, *drops, size=_CLAUSE_SIZE)
        else:
            self._items(predicted, gold)
        self._clause("wrong-grouping", "GROUP", "group", predicted, gold)
        if predicted.aggregates and not gold.aggregates and predicted.group:
            change = predicted.items, gold.items
            copy = copy_step(predicted, gold, "items", "group", "having")
            self._add("wrong-aggregate", "SELECT", change, copy, size=_CLAUSE_SIZE)
        if len(predicted.having) == len(gold.having):
            for condition, gold_condition in zip(predicted.having, gold.having, strict=True):
                self._expression(condition, gold_condition, "HAVING")
        else:
            label = "wrong-having" if predicted.having else "missing-having"
            self._clause(label, "HAVING", "having", predicted, gold)
        directions, gold_directions = ([key.is_descending for key in select.order] for select in (predicted, gold))
        if directions == gold_directions:
            for key, gold_key in zip(predicted.order, gold.order, strict=True):
                self._expression(key.value, gold_key.value, "ORDER")
        else:
            label = "wrong-order" if predicted.order else "missing-order"
            self._clause(label, "ORDER", "order", predicted, gold)
        if (limit := limit_text(predicted)) != (gold_limit := limit_text(gold)):
            self._add("wrong-limit", "LIMIT", (limit, gold_limit), copy_step(predicted, gold, "limit", "offset"))
        self._clause("wrong-value", "WHERE", "values", predicted, gold)

    def _clause(self, label: CauseLabel, clause: str, name: str, predicted: Select, gold: Select) -> None:
        """Add the edit that replaces a clause as a whole, if it differs; `name` is its field in a query."""
        change = getattr(predicted, name), getattr(gold, name)
        if change[0] != change[1]:
            self._add(label, clause, change, copy_step(predicted, gold, name), size=_CLAUSE_SIZE)

    def _items(self, predicted: Select, gold: Select) -> None:
        """Add the edits of the selected columns, and of DISTINCT."""
        if predicted.modifier != gold.modifier:
            label: CauseLabel = "extra-distinct" if predicted.modifier else "missing-distinct"
            change = predicted.modifier, gold.modifier
            self._add(label, "SELECT", change, copy_step(predicted, gold, "modifier"), size=_TERM_SIZE)
        only_predicted, only_gold = without_common(predicted.items, gold.items)
        only_predicted, only_gold = without_common(only_predicted, only_gold, lambda item: item.value)
        pairs = best_pairs(only_predicted, only_gold, changes.item_likeness)
        replaced_count = 0
        for item, gold_item in pairs:
            if item.value.arguments and gold_item.value.arguments:
                self._expression(item.value, gold_item.value, "SELECT")
                continue
            replaced_count += 1
            label = changes.label_of_expressions(item.value, gold_item.value, "wrong-expression")
            is_of_same = variables(item.value).keys() & variables(gold_item.value).keys()
            label = label if label == "wrong-aggregate" or is_of_same else "wrong-column"
            drops = self._only_for(item, predicted, gold)
            drops += [drop_step(key) for key in self._extra_keys(item, predicted, gold)]
            needed, new = self._needed_by(gold_item, predicted, gold)
            steps = replace_step(item, gold_item), *drops, *needed
            self._add(label, "SELECT", (item, new), *steps, dropped=_triple_count(drops))
        for item in without(only_predicted, [item for item, _ in pairs]):
            steps = drop_step(item), *self._only_for(item, predicted, gold)
            self._add("extra-column", "SELECT", (item, None), *steps)
        for item in without(only_gold, [gold_item for _, gold_item in pairs]):
            needed, new = self._needed_by(item, predicted, gold)
            step = changes.insert_item_step(predicted, item, gold.items.index(item))
            self._add("missing-column", "SELECT", (None, new), step, *needed)
        if len(only_predicted) + len(only_gold) > 1 + replaced_count:
            difference = len(gold.items) - len(predicted.items)
            label = "missing-column" if difference > 0 else "extra-column" if difference < 0 else "wrong-column"
            gold_names = {item.variable for item in gold.items}
            removed_items = [item for item in only_predicted if item.variable not in gold_names]
            drops = [step for item in removed_items for step in self._only_for(item, predicted, gold)]
            needed = [step for item in only_gold for step in self._needed_by(item, predicted, gold)[0]]
            steps = copy_step(predicted, gold, "items"), *drops, *needed
            columns = tuple(only_predicted), tuple(only_gold)
            self._add(label, "SELECT", columns, *steps, size=_CLAUSE_SIZE, dropped=_triple_count(drops))

    def _needed_by(self, item: Item, predicted: Select, gold: Select) -> tuple[list[Step], str]:
        """Return the steps that a new column needs, and its text.

        They insert the patterns of gold that bind its variable, unless predicted names it, and its GROUP BY key. The
        text includes these patterns.
        """
        name, text = item.value.head, self._lines.line(item)
        keys = [key for key in gold.group if key.variable == name and predicted.group]
        steps = [changes.add_key_step(predicted, key) for key in keys]
        if not is_variable(name) or name in self._uses:
            return steps, text
        needed = [insertion for insertion in self._insertions if any(name in variables(node) for node in insertion[0])]
        patterns = " . ".join(self._lines.line(part) for part, _ in needed)
        return [*(step for _, step in needed), *steps], f"{text} with {patterns}" if needed else text

    def _only_for(self, item: Item, predicted: Select, gold: Select) -> list[Step]:
        """Return the steps that drop the extra patterns and GROUP BY keys that only this column needs.

        The list is empty if the column is used elsewhere.
        """
        surplus = {id(node) for edit in self._edits if edit.shown.label == "extra-pattern" for node, _ in edit.steps}
        keys = self._extra_keys(item, predicted, gold)
        elements = () if predicted.where is None else predicted.where.elements
        serving = [element for element in elements if id(element) in surplus and item.variable in variables(element)]
        uses, serving_uses = (Counter(terms(node))[item.variable] for node in (predicted, Group(tuple(serving))))
        is_used_elsewhere = not is_variable(item.value.head) or uses - serving_uses > len(keys) + 1
        return [] if is_used_elsewhere else [drop_step(node) for node in (*serving, *keys)]

    @staticmethod
    def _extra_keys(item: Item, predicted: Select, gold: Select) -> list[Item]:
        """Return predicted's GROUP BY keys that are this column and that gold does not have."""
        return [key for key in predicted.group if key.variable == item.variable and key not in gold.group]

    def _groups(self, predicted: Group, gold: Group) -> None:
        """Add the edits of a group of patterns: of corresponding elements, and of missing and extra elements."""
        only_predicted, only_gold = without_common(predicted.elements, gold.elements)
        self._connectors(only_predicted, only_gold)
        self._optional(only_predicted, only_gold)
        self._triples(only_predicted, only_gold)
        for element, gold_element in best_pairs(only_predicted, only_gold, changes.element_likeness):
            only_predicted, only_gold = without(only_predicted, [element]), without(only_gold, [gold_element])
            self._elements(element, gold_element)
        for part in changes.components(only_gold, set(variables(self._tree))):
            label, clause = changes.label_of_element(part[0], is_missing=True)
            step = changes.insert_step(predicted, part)
            self._insertions.append((part, step))
            self._add(label, clause, (None, part), step, size=_size(part))
        outside = Counter(terms(self._tree)) - Counter(term for element in only_predicted for term in terms(element))
        for part in changes.components(only_predicted, {*outside}):
            label, clause = changes.label_of_element(part[0], is_missing=False)
            drops = [drop_step(element) for element in part]
            if len(part) < len(predicted.elements) or only_gold:
                self._add(label, clause, (part, None), *drops, size=_size(part), dropped=_triple_count(drops))

    def _connectors(self, only_predicted: list[Element], only_gold: list[Element]) -> None:
        """Add the edits between conditions joined by `||` in one query and separate filters (`&&`) in the other.

        Handled elements are removed from both lists.
        """
        for side, opposite in ((only_predicted, only_gold), (only_gold, only_predicted)):
            for element in [element for element in side if isinstance(element, Filter)]:
                conditions = operands(element.condition, "||")
                filters = [part for part in opposite if isinstance(part, Filter) and part.condition in conditions]
                if len(conditions) == 1 or len(filters) != len(conditions):
                    continue
                is_predicted = side is only_predicted
                steps = _exchange([element], filters) if is_predicted else _exchange(filters, [element])
                names = ("||", "&&") if is_predicted else ("&&", "||")
                self._add("wrong-connector", "FILTER", names, *steps, size=_TERM_SIZE)
                side.remove(element)
                opposite[:] = without(opposite, filters)

    def _optional(self, only_predicted: list[Element], only_gold: list[Element]) -> None:
        """Add the edits of patterns that one query requires and the other has in OPTIONAL or in an arm of UNION.

        Handled elements are removed from both lists.
        """
        for side, opposite in ((only_gold, only_predicted), (only_predicted, only_gold)):
            for element, group in [(member, group) for member in side for group in _inner_groups(member)]:
                required = [candidate for candidate in opposite if candidate in group.elements]
                if element not in side or not required or len(required) != len(group.elements):
                    continue
                label: CauseLabel = "optional" if isinstance(element, Block) else "set-operation"
                if side is only_gold:
                    self._add(label, "WHERE", (required, element), *_exchange(required, [element]))
                else:
                    self._add(label, "WHERE", (element, group.elements), replace_step(element, *group.elements))
                side.remove(element)
                opposite[:] = without(opposite, required)

    def _triples(self, only_predicted: list[Element], only_gold: list[Element]) -> None:
        """Add the edits of triples that replace others: first between the same ends, then along paths.

        Handled elements are removed from both lists.
        """
        for links, gold_links, least in (((), (), changes.REVERSED_LIKENESS), (self._links, self._gold_links, 0.1)):
            predicted_chains = chains([element for element in only_predicted if isinstance(element, Triple)], links)
            gold_chains = chains([element for element in only_gold if isinstance(element, Triple)], gold_links)
            for chain, gold_chain in best_pairs(
                predicted_chains, gold_chains, partial(changes.chain_likeness, least=least)
            ):
                self._chains(changes.oriented(chain, gold_chain), gold_chain)
                for side, members in ((only_predicted, chain.members), (only_gold, gold_chain.members)):
                    side[:] = without(side, members)
        for element in [element for element in only_predicted if isinstance(element, Triple)]:
            gold_triples = (gold for gold in only_gold if isinstance(gold, Triple) and self._stands_for(element, gold))
            if (gold_triple := next(gold_triples, None)) is not None:
                change = element, gold_triple
                only_predicted.remove(element)
                only_gold.remove(gold_triple)
                dropped = int(bool(only_gold))
                self._add("wrong-predicate", "WHERE", change, replace_step(element, gold_triple), dropped=dropped)

    def _stands_for(self, triple: Triple, gold: Triple) -> bool:
        """Return whether gold's triple may replace a triple: they share a variable, and nothing uses the other ends."""
        if {triple.path[0][0], gold.path[0][0]} != {"<"}:
            return False
        return any(
            is_variable(end := getattr(triple, shared))
            and end == getattr(gold, shared)
            and not (is_variable(old := getattr(triple, free)) and self._uses[old] > 1)
            and not (is_variable(new := getattr(gold, free)) and self._gold_uses[new] > 1)
            for shared, free in (("subject", "object"), ("object", "subject"))
        )

    def _chains(self, chain: Chain, gold_chain: Chain) -> None:
        """Add the edits that turn a path into gold's: of its direction, its predicates, or its ends."""
        triple, gold = chain.triple, gold_chain.triple
        first, *further = chain.members
        drops = [drop_step(member) for member in further]
        inverse = turned(triple)
        if (triple.subject, triple.object) == (gold.object, gold.subject):
            is_turned = gold.path in (triple.path, inverse.path)
            label: CauseLabel = "swapped" if is_turned else changes.label_of_paths(triple.path, gold.path)
            self._add(label, "WHERE", (triple, gold), replace_step(first, gold), *drops)
            return
        if inverse == Triple(gold.object, gold.path, gold.subject):
            self._add("swapped", "WHERE", (inverse, gold), replace_step(first, gold), *drops)
            return
        different_ends = [name for name in ("subject", "object") if getattr(triple, name) != getattr(gold, name)]
        if triple.path != gold.path and different_ends:
            self._add("wrong-predicate", "WHERE", (triple, gold), replace_step(first, gold), *drops)
            return
        if triple.path != gold.path:
            label = changes.label_of_paths(triple.path, gold.path)
            texts: tuple[Side, Side] = self._lines.writer.path(triple.path), self._lines.writer.path(gold.path)
            if "^" in triple.path and "^" not in gold.path:  # as it is written, which is the other way round
                texts = inverse, gold
            step = copy_step(first, gold, "path") if not further else replace_step(first, gold)
            self._add(label, "WHERE", texts, step, *drops, size=_TERM_SIZE)
        for name in different_ends:
            old, new = getattr(triple, name), getattr(gold, name)
            label = changes.label_of_ends(gold.path if name == "object" else (), old, new)
            is_shown = not is_variable(old) and not is_variable(new)
            member, field = next(
                (member, field)
                for member in chain.members
                for field in ("subject", "object")
                if getattr(member, field) == old
            )
            change = (self._lines.writer.term(old), self._lines.writer.term(new)) if is_shown else (triple, gold)
            self._add(label, "WHERE", change, changes.set_step(member, **{field: new}), size=_TERM_SIZE)

    def _elements(self, element: Element, gold: Element) -> None:
        """Add the edits between two corresponding elements of the same type."""
        match element, gold:
            case Filter(condition), Filter(gold_condition):
                self._expression(condition, gold_condition, "FILTER")
            case Bind(value), Bind(gold_value) if element.variable == gold.variable:
                self._expression(value, gold_value, "BIND")
            case Block(head, group), Block(gold_head, gold_group):
                if head != gold_head:
                    texts = self._lines.writer.term(head[-1]), self._lines.writer.term(gold_head[-1])
                    self._add("wrong-value", "WHERE", texts, copy_step(element, gold, "head"), size=_TERM_SIZE)
                self._groups(group, gold_group)
            case Select(), Select():
                self._selects(element, gold)
            case Union(arms), Union(gold_arms):
                only_predicted, only_gold = without_common(arms, gold_arms)
                pairs = best_pairs(only_predicted, only_gold, changes.common_share)
                for arm, gold_arm in pairs:
                    self._groups(arm, gold_arm)
                for arm in without(only_predicted, [arm for arm, _ in pairs]):
                    self._add("set-operation", "WHERE", (arm, None), drop_step(arm), size=_CLAUSE_SIZE)
                for arm in without(only_gold, [gold_arm for _, gold_arm in pairs]):
                    step = changes.add_arm_step(element, arm)
                    self._add("set-operation", "WHERE", (None, arm), step, size=_CLAUSE_SIZE)
            case _:
                label: CauseLabel = "wrong-expression" if isinstance(element, Bind) else "wrong-value"
                self._add(label, "WHERE", (element, gold), replace_step(element, gold))

    def _expression(self, predicted: Expr, gold: Expr, clause: str) -> None:
        """Add the edits of an expression, at the smallest parts that differ."""
        if changes.in_order(predicted) == changes.in_order(gold):
            return
        before = len(self._edits)
        otherwise = _DEFAULT_LABELS[clause]
        if {predicted.head, gold.head} <= CONNECTORS:
            self._head_and_arguments(predicted, gold, clause)
        elif gold.head in CONNECTORS and predicted in gold.arguments:
            missing = tuple(operand for operand in gold.arguments if operand != predicted)
            self._add("missing-condition", clause, (None, missing), replace_step(predicted, gold))
        elif predicted.head in CONNECTORS and gold in predicted.arguments:
            extra = tuple(operand for operand in predicted.arguments if operand != gold)
            self._add("extra-condition", clause, (extra, None), replace_step(predicted, gold))
        elif not predicted.arguments and not gold.arguments:
            label = changes.label_of_heads(predicted.head, gold.head, otherwise)
            self._add(label, clause, (predicted, gold), replace_step(predicted, gold), size=_TERM_SIZE)
        elif changes.have_same_form(predicted, gold):
            self._head_and_arguments(predicted, gold, clause)
        if len(self._edits) == before:
            label = changes.label_of_expressions(predicted, gold, otherwise)
            self._add(label, clause, (predicted, gold), replace_step(predicted, gold))

    def _head_and_arguments(self, predicted: Expr, gold: Expr, clause: str) -> None:
        """Add the edits of an operator or function, and of its arguments.

        The order of arguments of UNORDERED operators does not matter.
        """
        arguments, gold_arguments = predicted.arguments, gold.arguments
        if predicted.head != gold.head:
            label = changes.label_of_heads(predicted.head, gold.head, _DEFAULT_LABELS[clause])
            heads = predicted.head, gold.head
            self._add(label, clause, heads, copy_step(predicted, gold, "head"), size=_TERM_SIZE)
        if {predicted.head, gold.head} <= changes.UNORDERED:
            arguments, gold_arguments = map(tuple, without_common(arguments, gold_arguments))
        for argument, gold_argument in zip(arguments, gold_arguments, strict=False):
            if isinstance(argument, Group) and isinstance(gold_argument, Group):
                self._groups(argument, gold_argument)
            elif isinstance(argument, Expr) and isinstance(gold_argument, Expr):
                if distinct_label := changes.label_of_distinct(argument, gold_argument):
                    change = predicted, replace(predicted, arguments=gold.arguments)
                    step = replace_step(argument, gold_argument)
                    self._add(distinct_label, clause, change, step, size=_TERM_SIZE)
                else:
                    self._expression(argument, gold_argument, clause)
        for operand in arguments[len(gold_arguments) :]:
            self._add("extra-condition", clause, (operand, None), changes.drop_operand_step(predicted, operand))
        for operand in gold_arguments[len(arguments) :]:
            self._add("missing-condition", clause, (None, operand), changes.add_operand_step(predicted, operand))


def _inner_groups(element: Element) -> tuple[Group, ...]:
    """Return the group of an OPTIONAL, or the arms of a UNION; empty for any other element."""
    if isinstance(element, Union):
        return element.arms
    return (element.group,) if isinstance(element, Block) and element.head == ("OPTIONAL",) else ()


def _exchange(old: Sequence[Element], new: Sequence[Element]) -> list[Step]:
    """Return the steps that replace the first of the elements `old` by `new`, and drop the others."""
    return [replace_step(old[0], *new), *map(drop_step, old[1:])]


def _triple_count(drops: Sequence[Step]) -> int:
    """Return how many triples these steps drop."""
    return sum(isinstance(node, Triple) for dropped, _ in drops for node in walk(dropped))


def _size(elements: Sequence[Element]) -> int:
    is_large = any(isinstance(element, Select | Union) for element in elements)
    return _QUERY_SIZE if is_large else _ELEMENT_SIZE + len(elements) - 1
