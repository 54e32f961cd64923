"""The differences between a predicted and a gold SQL query, clause by clause, as edits of the predicted query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import methodcaller

from sqlglot import exp

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.features.causes import without, without_common
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.changes import Edit, Side, Size, Step, copy_step, replace_step
from pytest_queryeval.features.causes.sql.parts import key, query_within, sources

# Of each clause, the label of what differs there in a way that has no label of its own.
_DEFAULT_LABELS: dict[str, CauseLabel] = {"FROM": "wrong-join-condition", "HAVING": "wrong-having"}


class ClauseEdits:
    """Collects the edits from a predicted query to gold, clause by clause; the queries are aligned before."""

    def __init__(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        self.edits: list[Edit] = []
        self.pairs: list[tuple[exp.Select, exp.Select]] = []
        """The SELECTs of both that were compared with each other."""
        self._queries(predicted, gold)

    def _add(
        self,
        label: CauseLabel,
        clause: str,
        change: tuple[Side, Side],
        within: exp.Expr,
        *steps: Step,
        extent: Size = Size.PART,
    ) -> None:
        self.edits.append(Edit(label, clause, change, within, steps, extent))

    def _add_replacement(
        self, label: CauseLabel, clause: str, old: exp.Expr, new: exp.Expr, within: exp.Expr, extent: Size = Size.PART
    ) -> None:
        """Add the edit that replaces one expression by another."""
        self._add(label, clause, (old, new), within, replace_step(old, new), extent=extent)

    def _queries(self, predicted: exp.Expr | None, gold: exp.Expr | None, *, clause: str = "") -> None:
        """Add the edits of a query; with a `clause` around it, also the edit that replaces the whole query."""
        if predicted is None or gold is None or key(predicted) == key(gold):
            return
        for query, gold_query in zip(parts.common_queries(predicted), parts.common_queries(gold), strict=False):
            self._queries(query, gold_query, clause="FROM")
        if isinstance(predicted, exp.Select) and isinstance(gold, exp.Select):
            self.pairs.append((predicted, gold))
            self._from(predicted, gold)
            self._conditions("where", predicted, gold)
            self._items(predicted, gold)
            if parts.clause_key(predicted, "group") != parts.clause_key(gold, "group"):
                change = predicted.args.get("group"), gold.args.get("group")
                self._add("wrong-grouping", "GROUP", change, predicted, copy_step(predicted, gold, "group"))
            self._conditions("having", predicted, gold)
            self._conditions("qualify", predicted, gold)
            self._order_and_limit(predicted, gold)
        else:
            self._set_operations(predicted, gold)
        if clause:
            self._add_replacement("nesting", clause, predicted, gold, predicted, Size.CLAUSE)

    def _set_operations(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        if isinstance(predicted, exp.SetOperation) and isinstance(gold, exp.SetOperation):
            names = parts.set_operation(predicted), parts.set_operation(gold)
            if names[0] != names[1]:
                step: Step = predicted, partial(changes.change_operation, gold=gold)
                self._add("set-operation", "SET", names, predicted, step)
            self._queries(query_within(predicted.this), query_within(gold.this))
            self._queries(query_within(predicted.expression), query_within(gold.expression))
            self._order_and_limit(predicted, gold)
        elif isinstance(gold, exp.SetOperation):
            arm = [parts.set_operation(gold), gold.expression]
            step = predicted, partial(changes.combine, gold=gold)
            self._add("set-operation", "SET", (None, arm), predicted, step, extent=Size.CLAUSE)
            if isinstance(predicted, exp.Select) and gold.args.get("distinct") and not predicted.args.get("distinct"):
                step = copy_step(predicted, exp.select().distinct(), "distinct")
                self._add("missing-distinct", "SELECT", (None, "DISTINCT"), predicted, step)
            self._queries(predicted, query_within(gold.this))
        elif isinstance(predicted, exp.SetOperation):
            for kept, dropped in (("this", predicted.expression), ("expression", predicted.this)):
                arm = [parts.set_operation(predicted), dropped]
                step = predicted, partial(changes.keep_argument, name=kept)
                self._add("set-operation", "SET", (arm, None), predicted, step)
            self._queries(query_within(predicted.this), gold)

    def _from(self, predicted: exp.Select, gold: exp.Select) -> None:
        first_edit = len(self.edits)
        tables, gold_tables = sources(predicted), sources(gold)
        missing = [alias for alias in gold_tables if alias not in tables]
        extra = [alias for alias in tables if alias not in gold_tables]
        renaming: list[Step] = []
        for alias, gold_alias in zip(extra, missing, strict=False):
            old, new = tables[alias], gold_tables[gold_alias]
            is_nested = bool(query_within(old) or query_within(new))
            rename = partial(changes.rename_table, name=new.alias_or_name)
            steps = [(column, rename) for column in predicted.find_all(exp.Column) if parts.table_of(column) is old]
            renaming += steps
            change: tuple[Side, Side] = (old, new) if is_nested else (old.name, new.name)
            label: CauseLabel = "nesting" if is_nested else "wrong-table"
            self._add(label, "FROM", change, predicted, replace_step(old, new), *steps)
        if missing:
            change = None, tuple(_joined_table(gold_tables[alias], gold) for alias in missing)
            step: Step = predicted, partial(changes.add_sources, gold=gold, aliases=missing)
            self._add("missing-join", "FROM", change, predicted, step, extent=Size.CLAUSE if extra else Size.PART)
        if extra and len(extra) < len(tables):
            change = tuple(tables[alias] for alias in extra), None
            step = predicted, partial(changes.drop_sources, aliases=extra)
            self._add("extra-join", "FROM", change, predicted, step, extent=Size.CLAUSE if missing else Size.PART)
        for alias, source in tables.items():
            self._queries(query_within(source), query_within(gold_tables.get(alias)), clause="FROM")
        self._joins(predicted, gold)
        if parts.tables_content(predicted) != parts.tables_content(gold):
            self._add_whole_clause(first_edit, "FROM", predicted, gold, ("from_", "joins"), renaming)

    def _joins(self, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of the types and conditions of joins that both queries have.

        Joins with the same alias are compared; if each query has exactly one join, the aliases may differ.
        """
        joins, gold_joins = parts.joins_of(predicted), parts.joins_of(gold)
        has_plain_joins = parts.has_plain_joins(predicted) and parts.has_plain_joins(gold)
        all_keys, all_gold_keys = (sorted(map(key, parts.join_conditions(select))) for select in (predicted, gold))
        for alias, join in joins.items():
            gold_join = gold_joins.get(alias)
            if gold_join is None and len(joins) == len(gold_joins) == 1:
                gold_join = next(iter(gold_joins.values()))  # where FROM names both tables in another order
            if gold_join is None:
                continue
            types = parts.join_type(join), parts.join_type(gold_join)
            if types[0] != types[1]:
                is_one_of_several = [*map(parts.join_type, joins.values())].count(types[0]) > 1
                change = ([types[0], join.this], [types[1], join.this]) if is_one_of_several else types
                step = copy_step(join, gold_join, "side", "kind", "method")
                self._add("wrong-join-type", "FROM", change, predicted, step)
            conditions = parts.join_condition(join), parts.join_condition(gold_join)
            if not has_plain_joins and all_keys != all_gold_keys and key(conditions[0]) != key(conditions[1]):
                step = join, partial(changes.change_join_condition, gold=gold_join)
                self._add("wrong-join-condition", "FROM", conditions, predicted, step)
        if has_plain_joins:
            self._join_conditions(predicted, gold)

    def _join_conditions(self, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of the conditions of joins, whatever their order; some come and go with a table."""
        shared, label = sources(predicted).keys() & sources(gold).keys(), _DEFAULT_LABELS["FROM"]
        conditions, gold_conditions = without_common(parts.join_conditions(predicted), parts.join_conditions(gold), key)
        pairs = parts.alike(conditions, gold_conditions)
        for condition, gold_condition in pairs:
            self._add_replacement(label, "FROM", condition, gold_condition, predicted)
        for condition in without(conditions, [condition for condition, _ in pairs]):
            if changes.tables_in(condition) <= shared:
                self._add(label, "FROM", (condition, None), predicted, (condition, changes.drop_condition))
        for gold_condition in without(gold_conditions, [gold_condition for _, gold_condition in pairs]):
            if changes.tables_in(gold_condition) <= shared:
                step = predicted, partial(changes.add_join_condition, condition=gold_condition)
                self._add(label, "FROM", (None, gold_condition), predicted, step)

    def _add_whole_clause(
        self,
        first_edit: int,
        clause: str,
        predicted: exp.Select,
        gold: exp.Select,
        names: Sequence[str],
        further_steps: Sequence[Step] = (),
    ) -> None:
        """Add the edit that replaces a clause with several differences as a whole, labelled by the first difference.

        `first_edit` is the number of the first edit of the clause, and `names` are its arguments in sqlglot. Nothing is
        added if a single edit is enough.
        """
        edits = sorted(self.edits[first_edit:], key=lambda edit: edit.rank)
        is_equal = all(parts.clause_key(predicted, name) == parts.clause_key(gold, name) for name in names)
        if is_equal or len(edits) == 1:
            return
        label = edits[0].label if edits else _DEFAULT_LABELS.get(clause, "wrong-expression")
        change = _differing_parts(predicted, gold, names)
        if label in ("missing-condition", "extra-condition") and all(change):
            label = "wrong-expression"
        steps = *further_steps, copy_step(predicted, gold, *names)
        self._add(label, clause, change, predicted, *steps, extent=Size.CLAUSE)

    def _conditions(self, name: str, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of the clause `name`: 'where', 'having' or 'qualify'."""
        clause, first_edit = name.upper(), len(self.edits)
        condition, gold_condition = predicted.args.get(name), gold.args.get(name)
        if parts.clause_key(predicted, name) == parts.clause_key(gold, name):
            return
        if condition is not None and gold_condition is not None:
            self._condition(condition.this, gold_condition.this, clause, predicted)
            self._add_whole_clause(first_edit, clause, predicted, gold, [name])
            return
        labels: tuple[CauseLabel, CauseLabel] = ("missing-condition", "extra-condition")
        if clause == "HAVING":
            labels = "missing-having", "wrong-having"
        change = condition and condition.this, gold_condition and gold_condition.this
        self._add(labels[condition is not None], clause, change, predicted, copy_step(predicted, gold, name))

    def _condition(self, condition: exp.Expr, gold_condition: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of a condition with any number of operands: of its connectors, and of its operands."""
        condition, gold_condition = condition.unnest(), gold_condition.unnest()
        if key(condition) == key(gold_condition):
            return
        sides = condition, gold_condition
        connector = exp.Or if {exp.And, exp.Or} & {*map(type, sides)} == {exp.Or} else exp.And
        leaves, gold_leaves = (sorted(map(key, parts.leaves(side))) for side in sides)
        if leaves == gold_leaves and isinstance(condition, exp.Connector):
            names = parts.connectors(condition), parts.connectors(gold_condition)
            change = names if names[0] != names[1] else sides
            step = replace_step(condition, exp.paren(gold_condition.copy()))
            self._add("wrong-connector", clause, change, within, step)
            return
        operands, gold_operands = without_common(
            parts.operands(condition, connector), parts.operands(gold_condition, connector), key
        )
        pairs = parts.alike(operands, gold_operands)
        for operand, gold_operand in pairs:
            if isinstance(operand, exp.Connector) or isinstance(gold_operand, exp.Connector):
                self._condition(operand, gold_operand, clause, within)
            else:
                self._predicate(operand, gold_operand, clause, within)
        is_having = clause == "HAVING"
        for operand in without(operands, [operand for operand, _ in pairs]):
            label: CauseLabel = "wrong-having" if is_having else "extra-condition"
            self._add(label, clause, (operand, None), within, (operand, changes.drop_condition))
        for gold_operand in without(gold_operands, [gold_operand for _, gold_operand in pairs]):
            label = "wrong-having" if is_having else "missing-condition"
            step = condition, partial(changes.extend_condition, operand=gold_operand, connector=connector)
            self._add(label, clause, (None, gold_operand), within, step)

    def _predicate(self, condition: exp.Expr, gold_condition: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of a single condition without connectors."""
        first_edit = len(self.edits)
        inner, gold_inner = parts.without_not(condition), parts.without_not(gold_condition)
        has_query = bool(condition.find(exp.Query) or gold_condition.find(exp.Query))
        names = None
        if isinstance(inner, exp.Binary) and isinstance(gold_inner, exp.Binary):
            names = "this", "expression"
            if key(inner.left) == key(gold_inner.right) or key(inner.right) == key(gold_inner.left):
                gold_inner = parts.mirrored(gold_inner)
            if parts.is_pattern_of(inner, gold_inner) or parts.is_pattern_of(gold_inner, inner):
                self._add_replacement("wrong-operator", clause, condition, gold_condition, within)
                return
        if names or type(inner) is type(gold_inner):
            is_negated, is_gold_negated = (isinstance(side, exp.Not) for side in (condition, gold_condition))
            if is_negated != is_gold_negated or type(inner) is not type(gold_inner):
                operators = parts.operator(condition, inner), parts.operator(gold_condition, gold_inner)
                step = condition, partial(changes.change_operator, gold=gold_condition, operator=type(gold_inner))
                self._add("wrong-operator", clause, operators, within, step)
            self._parts(inner, gold_inner, clause, within, names)
        elif key(parts.subject(inner)) == key(parts.subject(gold_inner)):
            self._add_replacement(
                "nesting" if has_query else "wrong-operator", clause, condition, gold_condition, within
            )
        edits = self.edits[first_edit:]
        if len(edits) != 1:
            is_nesting = not edits and clause == "WHERE" and has_query
            label: CauseLabel = edits[0].label if edits else "nesting" if is_nesting else "wrong-expression"
            columns = parts.subject(inner), parts.subject(gold_inner)
            is_of_columns = all(isinstance(column, exp.Column) for column in columns)
            if label == "wrong-operator" and is_of_columns and key(columns[0]) != key(columns[1]):
                label = "wrong-column"
            self._add_replacement(label, clause, condition, gold_condition, within, Size.CLAUSE if edits else Size.PART)

    def _parts(
        self, node: exp.Expr, gold_node: exp.Expr, clause: str, within: exp.Select, names: Iterable[str] | None = None
    ) -> None:
        """Add the edits of the arguments of two expressions: of all arguments, or of those with these `names`."""
        for name in dict.fromkeys((*node.args, *gold_node.args) if names is None else names):
            argument, gold_argument = node.args.get(name), gold_node.args.get(name)
            label = _DEFAULT_LABELS.get(clause, "wrong-expression")
            if isinstance(argument, list) or isinstance(gold_argument, list):
                items, gold_items = argument or [], gold_argument or []
                if parts.key_of_parts(items) == parts.key_of_parts(gold_items):
                    continue
                if len(items) == len(gold_items):
                    for pair in zip(items, gold_items, strict=True):
                        self._expression(*pair, clause, within)
                else:
                    if all(isinstance(item, exp.Literal) for item in (*items, *gold_items)):
                        label = parts.value_label(items, gold_items)
                    change = tuple(items), tuple(gold_items)
                    self._add(label, clause, change, within, copy_step(node, gold_node, name))
            elif isinstance(argument, exp.Expr) and isinstance(gold_argument, exp.Expr):
                self._expression(argument, gold_argument, clause, within)
            elif key(argument) != key(gold_argument) and name != "big_int":
                self._add_replacement(label, clause, node, gold_node, within)
                return

    def _expression(self, node: exp.Expr, gold_node: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of an expression, at the smallest part that differs."""
        node, gold_node = parts.bare(node), parts.bare(gold_node)
        if key(node) == key(gold_node):
            return
        query, gold_query = query_within(node), query_within(gold_node)
        if query is not None and gold_query is not None:
            self._queries(query, gold_query, clause=clause)
            return
        label = parts.label_of(node, gold_node)
        has_parts = type(node) is type(gold_node) and not isinstance(node, exp.Literal | exp.Column)
        if label == "wrong-expression" and has_parts:
            self._parts(node, gold_node, clause, within)
            return
        self._add_replacement(label, clause, node, gold_node, within)

    def _items(self, predicted: exp.Select, gold: exp.Select) -> None:
        is_distinct, is_gold_distinct = (bool(select.args.get("distinct")) for select in (predicted, gold))
        if is_distinct != is_gold_distinct:
            change: tuple[Side, Side] = ("DISTINCT", None) if is_distinct else (None, "DISTINCT")
            label: CauseLabel = "extra-distinct" if is_distinct else "missing-distinct"
            self._add(label, "SELECT", change, predicted, copy_step(predicted, gold, "distinct"))
        first_edit = len(self.edits)
        items, gold_items = without_common(predicted.expressions, gold.expressions, key)
        pairs = parts.alike(items, gold_items, pairs_all=True)
        for item, gold_item in pairs:
            self._expression(item.unalias(), gold_item.unalias(), "SELECT", predicted)
        for item in without(items, [item for item, _ in pairs]) if len(predicted.expressions) > 1 else ():
            self._add("extra-column", "SELECT", (item, None), predicted, (item, methodcaller("pop")))
        for gold_item in without(gold_items, [gold_item for _, gold_item in pairs]):
            step = predicted, partial(changes.insert_item, item=gold_item, place=gold.expressions.index(gold_item))
            self._add("missing-column", "SELECT", (None, gold_item), predicted, step)
        if len(self.edits) - first_edit > 1:
            self._add_whole_clause(first_edit, "SELECT", predicted, gold, ("expressions",))

    def _order_and_limit(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        if parts.clause_key(predicted, "order") != parts.clause_key(gold, "order"):
            order, gold_order = predicted.args.get("order"), gold.args.get("order")
            change: tuple[Side, Side] = order, gold_order
            if order is not None and gold_order is not None and len(order.expressions) == len(gold_order.expressions):
                pairs = zip(order.expressions, gold_order.expressions, strict=True)
                differing = [pair for pair in pairs if key(pair[0]) != key(pair[1])]
                change = differing[0] if len(differing) == 1 else change
            label: CauseLabel = "missing-order" if order is None else "wrong-order"
            self._add(label, "ORDER", change, predicted, copy_step(predicted, gold, "order"))
        names = ("limit", "offset")
        limits = parts.clause_parts(predicted, names), parts.clause_parts(gold, names)
        if parts.key_of_parts(limits[0]) != parts.key_of_parts(limits[1]):
            self._add("wrong-limit", "LIMIT", limits, predicted, copy_step(predicted, gold, *names))


def _joined_table(table: exp.Expr, gold: exp.Select) -> Side:
    """Return a table that gold joins, with its condition unless that only equates columns of two tables."""
    joins = parts.joins_of(gold)
    join = next(iter(joins.values())) if len(joins) == 1 else joins.get(table.alias_or_name.lower())
    condition = None if join is None else parts.join_condition(join)
    return table if condition is None or parts.is_join_condition(condition) else [table, "ON", condition]


def _differing_parts(predicted: exp.Expr, gold: exp.Expr, names: Sequence[str]) -> tuple[Side, Side]:
    """Return the parts of clauses that only one of two queries has; all parts if only their order differs.

    Conditions are joined by AND.

    >>> from sqlglot import parse_one
    >>> queries = [parse_one(f"SELECT 1 FROM t WHERE {text}") for text in ("a = 1 AND b = 2", "c = 3 AND a = 1")]
    >>> [side.sql() for side in _differing_parts(*queries, ["where"])]
    ['b = 2', 'c = 3']
    """
    all_parts = parts.clause_parts(predicted, names), parts.clause_parts(gold, names)
    differing = without_common(*all_parts, key)
    old, new = differing if any(differing) else all_parts
    if parts.CONDITION_CLAUSES.keys() >= {*names}:
        return exp.and_(*old) if old else None, exp.and_(*new) if new else None
    return (tuple(old), tuple(new)) if "expressions" in names else (old, new)
