"""The differences of two SQL queries, clause by clause, as single edits of the predicted one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.aligned import (
    common_queries,
    counted_query,
    key,
    key_of_parts,
    query_within,
    sources,
)
from pytest_queryeval.features.causes.sql.edit import Edit, Make, Side, Size, Step, rank

# Of each clause, the label of what differs there in a way that has no label of its own.
_OTHERWISE: dict[str, CauseLabel] = {
    "FROM": "wrong-join-condition",
    "WHERE": "wrong-expression",
    "SELECT": "wrong-expression",
    "HAVING": "wrong-having",
    "QUALIFY": "wrong-expression",
}
_CONSTANTS: frozenset[CauseLabel] = frozenset(
    ("value-case", "wrong-value", "wrong-operator", "wrong-connector", "missing-distinct", "extra-distinct")
)


class ClauseEdits:
    """The edits that lead from a predicted query to gold, clause by clause; both have the same names of tables."""

    def __init__(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        self.edits: list[Edit] = []
        self.pairs: list[tuple[exp.Select, exp.Select]] = []
        """The SELECTs of both that were compared with each other."""
        self._queries(predicted, gold)
        self._conditions_elsewhere(predicted, gold)

    def _add(
        self,
        label: CauseLabel,
        clause: str,
        change: tuple[Side, Side],
        node: exp.Expr,
        make: Make,
        *,
        within: exp.Expr,
        size: Size = Size.PART,
    ) -> None:
        size = Size.CONSTANT if size is Size.PART and label in _CONSTANTS else size
        self.edits.append(
            Edit(label=label, clause=clause, change=change, within=within, size=size, steps=((node, make),))
        )

    def _replace(
        self, label: CauseLabel, clause: str, old: exp.Expr, new: exp.Expr, *, within: exp.Expr, size: Size = Size.PART
    ) -> None:
        """Add the edit that puts one expression in the place of another."""
        self._add(label, clause, (old, new), old, partial(changes.replace, new=new), within=within, size=size)

    def _queries(self, predicted: exp.Expr | None, gold: exp.Expr | None, *, clause: str = "") -> None:
        """Add the edits of a query; one that stands in a `clause` may be replaced as a whole."""
        if predicted is None or gold is None or key(predicted) == key(gold):
            return
        for query, gold_query in zip(common_queries(predicted), common_queries(gold), strict=False):
            self._queries(query, gold_query, clause="FROM")
        if (counted := counted_query(predicted, gold)) is not None:
            make = partial(changes.count_rows, gold=gold)
            self._add("nesting", "SELECT", (None, "COUNT(*) FROM (…)"), predicted, make, within=predicted)
            self._queries(predicted, counted)
        elif isinstance(predicted, exp.Select) and isinstance(gold, exp.Select):
            self._selects(predicted, gold)
        else:
            self._set_operations(predicted, gold)
        if clause:
            self._replace("nesting", clause, predicted, gold, within=predicted, size=Size.CLAUSE)

    def _set_operations(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        if isinstance(predicted, exp.SetOperation) and isinstance(gold, exp.SetOperation):
            if (type(predicted), predicted.args.get("distinct")) != (type(gold), gold.args.get("distinct")):
                names = parts.set_operation(predicted), parts.set_operation(gold)
                make = partial(changes.change_operation, gold=gold)
                self._add("set-operation", "SET", names, predicted, make, within=predicted)
            self._queries(query_within(predicted.this), query_within(gold.this))
            self._queries(query_within(predicted.expression), query_within(gold.expression))
            self._order_and_limit(predicted, gold)
        elif isinstance(gold, exp.SetOperation):
            make = partial(changes.combine, gold=gold)
            arm = [parts.set_operation(gold), gold.expression]
            self._add("set-operation", "SET", (None, arm), predicted, make, within=predicted, size=Size.CLAUSE)
            if isinstance(predicted, exp.Select) and gold.args.get("distinct") and not predicted.args.get("distinct"):
                make = partial(changes.copy_arguments, gold=exp.select().distinct(), names=["distinct"])
                self._add("missing-distinct", "SELECT", (None, "DISTINCT"), predicted, make, within=predicted)
            self._queries(predicted, query_within(gold.this))
        elif isinstance(predicted, exp.SetOperation):
            arms: tuple[tuple[Make, exp.Expr], ...] = (
                (changes.keep_first, predicted.expression),
                (changes.keep_second, predicted.this),
            )
            for keep, dropped in arms:
                arm = [parts.set_operation(predicted), dropped]
                self._add("set-operation", "SET", (arm, None), predicted, keep, within=predicted)
            self._queries(query_within(predicted.this), gold)

    def _selects(self, predicted: exp.Select, gold: exp.Select) -> None:
        self.pairs.append((predicted, gold))
        self._from(predicted, gold)
        self._conditions("where", predicted, gold)
        self._items(predicted, gold)
        if parts.clause_key(predicted, "group") != parts.clause_key(gold, "group"):
            change = predicted.args.get("group"), gold.args.get("group")
            make = partial(changes.copy_arguments, gold=gold, names=["group"])
            self._add("wrong-grouping", "GROUP", change, predicted, make, within=predicted)
        self._conditions("having", predicted, gold)
        self._conditions("qualify", predicted, gold)
        self._order_and_limit(predicted, gold)

    def _from(self, predicted: exp.Select, gold: exp.Select) -> None:
        before = len(self.edits)
        members, gold_members = sources(predicted), sources(gold)
        missing = [alias for alias in gold_members if alias not in members]
        extra = [alias for alias in members if alias not in gold_members]
        renaming: list[Step] = []
        for alias, gold_alias in parts.replaced_sources(predicted, gold):
            old, new = members[alias], gold_members[gold_alias]
            is_nested = bool(query_within(old) or query_within(new))
            label: CauseLabel = "nesting" if is_nested else "wrong-table"
            change = (old, new) if is_nested else (old.name, new.name)
            renaming_columns = _renaming(predicted, alias, new.alias_or_name)
            renaming += renaming_columns
            steps: tuple[Step, ...] = ((old, partial(changes.replace, new=new)), *renaming_columns)
            self.edits.append(
                Edit(label=label, clause="FROM", change=change, within=predicted, size=Size.PART, steps=steps)
            )
        for aliases in [missing] if len(missing) < 2 else [missing, *([alias] for alias in missing)]:
            if aliases:
                text = tuple(gold_members[alias] for alias in aliases)
                make = partial(changes.add_sources, gold=gold, aliases=aliases)
                self._add(
                    "missing-join",
                    "FROM",
                    (None, text),
                    predicted,
                    make,
                    within=predicted,
                    size=Size.CLAUSE if extra else Size.PART,
                )
        for aliases in [extra] if len(extra) < 2 else [extra, *([alias] for alias in extra)]:
            if aliases and len(aliases) < len(members):
                text = tuple(members[alias] for alias in aliases)
                make = partial(changes.drop_sources, aliases=aliases)
                self._add(
                    "extra-join",
                    "FROM",
                    (text, None),
                    predicted,
                    make,
                    within=predicted,
                    size=Size.CLAUSE if missing else Size.PART,
                )
        for alias in members:
            self._queries(query_within(members[alias]), query_within(gold_members.get(alias)), clause="FROM")
        self._joins(predicted, gold)
        if parts.tables_content(predicted) != parts.tables_content(gold):
            self._add_whole_clause(before, "FROM", predicted, gold, ("from_", "joins"), renaming)

    def _joins(self, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of joins that both queries have."""
        joins, partners = (
            {parts.joined_name(join): join for join in select.args.get("joins") or ()} for select in (predicted, gold)
        )
        has_other_conditions = sorted(map(key, parts.join_conditions(predicted))) != sorted(
            map(key, parts.join_conditions(gold))
        )
        for alias, join in joins.items():
            partner = partners.get(alias)
            if partner is None and len(joins) == len(partners) == 1:
                partner = next(iter(partners.values()))  # where FROM names both tables in another order
            if partner is None:
                continue
            names = parts.join_type(join), parts.join_type(partner)
            if names[0] != names[1]:
                make = partial(changes.copy_arguments, gold=partner, names=("side", "kind", "method"))
                self._add("wrong-join-type", "FROM", names, join, make, within=predicted)
            conditions = parts.join_condition(join), parts.join_condition(partner)
            if has_other_conditions and key(conditions[0]) != key(conditions[1]):
                make = partial(changes.change_join_condition, gold=partner)
                self._add("wrong-join-condition", "FROM", conditions, join, make, within=predicted)

    def _add_whole_clause(
        self,
        before: int,
        clause: str,
        predicted: exp.Select,
        gold: exp.Select,
        arguments: Sequence[str],
        further_steps: Sequence[Step] = (),
    ) -> None:
        """Add the replacement of a clause in which several things differ, under the label of the first of them."""
        clause_edits = sorted(self.edits[before:], key=rank)
        is_equal = all(parts.clause_key(predicted, name) == parts.clause_key(gold, name) for name in arguments)
        if is_equal or len(clause_edits) == 1:
            return
        first: CauseLabel = clause_edits[0].label if clause_edits else _OTHERWISE[clause]
        texts = parts.differing_parts(predicted, gold, arguments)
        copying: Step = predicted, partial(changes.copy_arguments, gold=gold, names=arguments)
        steps = *further_steps, copying
        self.edits.append(
            Edit(label=first, clause=clause, change=texts, within=predicted, size=Size.CLAUSE, steps=steps)
        )

    def _conditions(self, name: str, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of WHERE or HAVING."""
        clause, before = name.upper(), len(self.edits)
        condition, gold_condition = predicted.args.get(name), gold.args.get(name)
        if parts.clause_key(predicted, name) == parts.clause_key(gold, name):
            return
        if condition is None or gold_condition is None:
            missing: CauseLabel = "missing-having" if clause == "HAVING" else "missing-condition"
            extra: CauseLabel = "wrong-having" if clause == "HAVING" else "extra-condition"
            label = missing if condition is None else extra
            change = condition and condition.this, gold_condition and gold_condition.this
            make = partial(changes.copy_arguments, gold=gold, names=[name])
            self._add(label, clause, change, predicted, make, within=predicted)
            operands = parts.operands(gold_condition.this, exp.And) if gold_condition is not None else []
            for operand in operands if len(operands) > 1 else []:
                make = partial(changes.add_condition, clause=name, condition=operand)
                self._add(missing, clause, (None, operand), predicted, make, within=predicted)
            return
        self._condition(condition.this, gold_condition.this, clause, predicted)
        self._add_whole_clause(before, clause, predicted, gold, [name])

    def _condition(self, condition: exp.Expr, gold_condition: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of a condition of any number of operands."""
        condition, gold_condition = condition.unnest(), gold_condition.unnest()
        if key(condition) == key(gold_condition):
            return
        connector = next(
            (type(side) for side in (condition, gold_condition) if isinstance(side, exp.Connector)), exp.And
        )
        operands, gold_operands = parts.operands(condition, connector), parts.operands(gold_condition, connector)
        leaves = [sorted(map(key, parts.leaves(side))) for side in (condition, gold_condition)]
        if leaves[0] == leaves[1] and isinstance(condition, exp.Connector):
            names = parts.connectors(condition), parts.connectors(gold_condition)
            change = names if names[0] != names[1] else (condition, gold_condition)
            make = partial(changes.replace, new=exp.paren(gold_condition.copy()))
            self._add("wrong-connector", clause, change, condition, make, within=within)
            return
        operands, gold_operands = parts.without_common(operands, gold_operands)
        if (
            1 in (len(operands), len(gold_operands))
            and len(operands) != len(gold_operands)
            and operands
            and gold_operands
        ):
            (single_operand,) = operands if len(operands) == 1 else gold_operands
            multiple_operands = gold_operands if len(operands) == 1 else operands
            single_leaves = sorted(map(key, parts.leaves(single_operand)))
            if len(single_leaves) > 1 and single_leaves == sorted(
                key(leaf) for operand in multiple_operands for leaf in parts.leaves(operand)
            ):
                names = parts.connectors(condition), parts.connectors(gold_condition)
                make = partial(changes.replace, new=exp.paren(gold_condition.copy()))
                self._add("wrong-connector", clause, names, condition, make, within=within)
                return
        for operand, gold_operand in parts.alike(operands, gold_operands):
            if isinstance(operand, exp.Connector) or isinstance(gold_operand, exp.Connector):
                self._condition(operand, gold_operand, clause, within)
            else:
                self._predicate(operand, gold_operand, clause, within)
            operands = [candidate for candidate in operands if candidate is not operand]
            gold_operands = [candidate for candidate in gold_operands if candidate is not gold_operand]
        is_having = clause == "HAVING"
        for operand in operands:
            label: CauseLabel = "wrong-having" if is_having else "extra-condition"
            self._add(label, clause, (operand, None), operand, changes.drop_condition, within=within)
        for gold_operand in gold_operands:
            label = "wrong-having" if is_having else "missing-condition"
            make = partial(changes.extend_condition, operand=gold_operand, connector=connector)
            self._add(label, clause, (None, gold_operand), condition, make, within=within)

    def _predicate(self, condition: exp.Expr, gold_condition: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of one comparison."""
        before = len(self.edits)
        inner, gold_inner = parts.without_not(condition), parts.without_not(gold_condition)
        negated = isinstance(condition, exp.Not) != isinstance(gold_condition, exp.Not)
        if isinstance(inner, exp.Binary) and isinstance(gold_inner, exp.Binary):
            if key(inner.left) == key(gold_inner.right) or key(inner.right) == key(gold_inner.left):
                gold_inner = parts.mirrored(gold_inner)
            if parts.is_pattern_of(inner, gold_inner) or parts.is_pattern_of(gold_inner, inner):
                self._replace("wrong-operator", clause, condition, gold_condition, within=within)
                return
            if negated or type(inner) is not type(gold_inner):
                names = parts.operator(condition, inner), parts.operator(gold_condition, gold_inner)
                make = partial(changes.change_operator, gold=gold_condition, operator=type(gold_inner))
                self._add("wrong-operator", clause, names, condition, make, within=within)
            self._expression(inner.left, gold_inner.left, clause, within)
            self._expression(inner.right, gold_inner.right, clause, within)
        elif type(inner) is type(gold_inner):
            if negated:
                names = parts.operator(condition, inner), parts.operator(gold_condition, gold_inner)
                make = partial(changes.change_operator, gold=gold_condition, operator=type(gold_inner))
                self._add("wrong-operator", clause, names, condition, make, within=within)
            self._parts(inner, gold_inner, clause, within)
        elif key(parts.subject(inner)) == key(parts.subject(gold_inner)):
            nested = condition.find(exp.Query) or gold_condition.find(exp.Query)
            self._replace("nesting" if nested else "wrong-operator", clause, condition, gold_condition, within=within)
        edits = self.edits[before:]
        if len(edits) != 1:
            label = edits[0].label if edits else "wrong-expression"
            if not edits and clause == "WHERE":
                label = "nesting" if condition.find(exp.Query) or gold_condition.find(exp.Query) else "wrong-expression"
            self._replace(
                label, clause, condition, gold_condition, within=within, size=Size.CLAUSE if edits else Size.PART
            )

    def _conditions_elsewhere(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        """Add the edits of conditions that gold has in another query, such as one that it joins instead of nesting it.

        Of these, a constant, an operator or an aggregate without columns may differ.
        """
        changed = {id(node) for edit in self.edits for node, _ in edit.steps}
        conditions, gold_conditions = (list(parts.conditions(query)) for query in (predicted, gold))
        for clause, condition, select in conditions:
            if any(id(node) in changed for node in condition.walk()):
                continue
            matches = []
            for _, gold_condition, _ in gold_conditions:
                matched = parts.on_columns_of(gold_condition, condition)
                if matched is not None:
                    matches.append(matched)
            if len({key(match) for match in matches}) == 1 and key(matches[0]) != key(condition):
                self._predicate(condition, matches[0], clause, select)

    def _parts(self, node: exp.Expr, gold_node: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of the arguments of two expressions of one type."""
        for name in dict.fromkeys((*node.args, *gold_node.args)):
            argument, gold_argument = node.args.get(name), gold_node.args.get(name)
            if isinstance(argument, list) or isinstance(gold_argument, list):
                if key_of_parts(argument) == key_of_parts(gold_argument):
                    continue
                if argument and gold_argument and len(argument) == len(gold_argument):
                    for pair in zip(argument, gold_argument, strict=True):
                        self._expression(*pair, clause, within)
                else:
                    label = _OTHERWISE.get(clause, "wrong-expression")
                    if all(isinstance(part, exp.Literal) for part in (*(argument or ()), *(gold_argument or ()))):
                        label = parts.value_label(argument or (), gold_argument or ())
                    change = tuple(argument or ()), tuple(gold_argument or ())
                    make = partial(changes.copy_arguments, gold=gold_node, names=[name])
                    self._add(label, clause, change, node, make, within=within)
            elif isinstance(argument, exp.Expr) and isinstance(gold_argument, exp.Expr):
                self._expression(argument, gold_argument, clause, within)
            elif key(argument) != key(gold_argument) and name != "big_int":
                label = _OTHERWISE.get(clause, "wrong-expression")
                self._replace(label, clause, node, gold_node, within=within)
                return

    def _expression(self, node: exp.Expr, gold_node: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edit of an expression, at the smallest part that differs."""
        node, gold_node = parts.bare(node), parts.bare(gold_node)
        if key(node) == key(gold_node):
            return
        query, gold_query = query_within(node), query_within(gold_node)
        if query is not None and gold_query is not None:
            self._queries(query, gold_query, clause=clause)
            return
        label = parts.label_of(node, gold_node)
        is_of_parts = type(node) is type(gold_node) and not isinstance(node, exp.Literal | exp.Column)
        if label == "wrong-expression" and is_of_parts:
            self._parts(node, gold_node, clause, within)
            return
        if label in ("extra-distinct", "missing-distinct") and key(parts.argument(node)) != key(
            parts.argument(gold_node)
        ):
            column = node.copy()
            parts.argument(column).replace(parts.argument(gold_node).copy())
            self._replace("wrong-column", clause, node, column, within=within)
        self._replace(label, clause, node, gold_node, within=within)

    def _items(self, predicted: exp.Select, gold: exp.Select) -> None:
        if bool(predicted.args.get("distinct")) != bool(gold.args.get("distinct")):
            is_missing = bool(gold.args.get("distinct"))
            change = (None, "DISTINCT") if is_missing else ("DISTINCT", None)
            label: CauseLabel = "missing-distinct" if is_missing else "extra-distinct"
            make = partial(changes.copy_arguments, gold=gold, names=["distinct"])
            self._add(label, "SELECT", change, predicted, make, within=predicted)
        items, gold_items = list(predicted.expressions), list(gold.expressions)
        equal_pairs = [
            (item, gold_item) for item, gold_item in zip(items, gold_items, strict=False) if key(item) == key(gold_item)
        ]
        items = [item for item in items if not any(item is pair[0] for pair in equal_pairs)]
        gold_items = [item for item in gold_items if not any(item is pair[1] for pair in equal_pairs)]
        items, gold_items = parts.without_common(items, gold_items)
        before = len(self.edits)
        for item, gold_item in parts.alike(items, gold_items, rest=True):
            self._expression(item.unalias(), gold_item.unalias(), "SELECT", predicted)
            items = [candidate for candidate in items if candidate is not item]
            gold_items = [candidate for candidate in gold_items if candidate is not gold_item]
        for item in items:
            if len(predicted.expressions) > 1:
                self._add("extra-column", "SELECT", (item, None), item, changes.drop_item, within=predicted)
        for gold_item in gold_items:
            make = partial(changes.insert_item, item=gold_item, place=gold.expressions.index(gold_item))
            self._add("missing-column", "SELECT", (None, gold_item), predicted, make, within=predicted)
        if len(self.edits) - before > 1:
            self._add_whole_clause(before, "SELECT", predicted, gold, ("expressions",))

    def _order_and_limit(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        if parts.clause_key(predicted, "order") != parts.clause_key(gold, "order"):
            order, gold_order = predicted.args.get("order"), gold.args.get("order")
            label: CauseLabel = "missing-order" if order is None else "wrong-order"
            change = order, gold_order
            if order is not None and gold_order is not None and len(order.expressions) == len(gold_order.expressions):
                differing_keys = [
                    pair
                    for pair in zip(order.expressions, gold_order.expressions, strict=True)
                    if key(pair[0]) != key(pair[1])
                ]
                change = differing_keys[0] if len(differing_keys) == 1 else change
            make = partial(changes.copy_arguments, gold=gold, names=["order"])
            self._add(label, "ORDER", change, predicted, make, within=predicted)
        names = ("limit", "offset")
        if [parts.clause_key(predicted, name) for name in names] != [parts.clause_key(gold, name) for name in names]:
            limits: tuple[Side, Side] = [*parts.clause_parts(predicted, names)], [*parts.clause_parts(gold, names)]
            make = partial(changes.copy_arguments, gold=gold, names=names)
            self._add("wrong-limit", "LIMIT", limits, predicted, make, within=predicted)


def _renaming(select: exp.Select, alias: str, name: str) -> list[Step]:
    """Return the steps that give the columns of one of the tables of a SELECT another name of it."""
    make = partial(changes.rename_table, name=name)
    columns = (column for column in select.find_all(exp.Column) if column.table.lower() == alias)
    return [(column, make) for column in columns if _reads(select, column, alias)]


def _reads(select: exp.Select, column: exp.Column, alias: str) -> bool:
    """Return whether a column is of this SELECT, not of a nested one that has the same name for a table."""
    outer_select = column.find_ancestor(exp.Select)
    while outer_select is not None and outer_select is not select and alias not in sources(outer_select):
        outer_select = outer_select.find_ancestor(exp.Select)
    return outer_select is select
