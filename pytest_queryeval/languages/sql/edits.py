"""Single edits of a predicted SQL query, from its differences to gold, clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sqlglot import Dialect, ErrorLevel, exp

from pytest_queryeval.core.cause import NOTHING, CauseLabel, CausingEdit, in_order
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.aligned import align, key, key_of_parts, query_within, sources
from pytest_queryeval.languages.sql.trees.parsing import UnreadableError, parse
from pytest_queryeval.text.truncation import one_line

MAX_CHANGE = 120  # characters of each side
# Of a query: counts, so that reports do not depend on the machine. People's queries have some hundred and a few.
MAX_NODES = 1_500
MAX_SELECTS = 12
CLAUSES = ("FROM", "WHERE", "SELECT", "GROUP", "HAVING", "ORDER", "LIMIT", "SET")  # in the order of reports
_MIRRORED: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
}
# Of each clause, the label of what differs there in a way that has no label of its own.
_OTHERWISE: dict[str, CauseLabel] = {
    "FROM": "wrong-join-condition",
    "WHERE": "wrong-expression",
    "SELECT": "wrong-expression",
    "HAVING": "wrong-having",
}
# Finds the node of a copy that stands where this node of the original stands.
Find: TypeAlias = Callable[[exp.Expr], exp.Expr]
Make: TypeAlias = Callable[[Find], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """An edit; `whole` ones replace a clause of the SELECT `within` where several things differ."""

    shown: CausingEdit
    within: int
    whole: bool
    make: Make


class SqlEdits:
    """The edits that lead from a predicted query to gold, those of single expressions before those of whole clauses."""

    def __init__(self, predicted: exp.Expr, gold: exp.Expr, schema: Schema, dialect: str) -> None:
        align(predicted, gold, schema, dialect)
        self._writer = Dialect.get_or_raise(dialect).generator(comments=False, unsupported_level=ErrorLevel.IGNORE)
        self._gold = gold
        self._root = exp.Paren(this=predicted)  # so that the query itself has a place
        self._numbers = {id(node): number for number, node in enumerate(self._root.walk())}
        self._products = max(_products(list(query.walk())) for query in (predicted, gold))
        self._found: list[_Edit] = []
        self._queries(predicted, gold)
        self._found.sort(key=lambda edit: (edit.whole, *_rank(edit.shown)))

    @property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits, in the order in which they are to be tried."""
        return [edit.shown for edit in self._found]

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together."""
        areas = [(edit.within, edit.shown.clause) for edit in self._found]
        return in_order(areas, [edit.whole for edit in self._found])

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return predicted after these edits; None where it names a table that it does not read, or multiplies tables.

        That is to join them without a condition, which is slow, where neither predicted nor gold does.
        """
        root = self._root.copy()
        nodes = list(root.walk())
        for number in numbers:
            self._found[number].make(lambda node: nodes[self._numbers[id(node)]])
        tree = root.this
        if self._gold.args.get("with_") is not None:
            _add_common_queries(tree, self._gold.args["with_"])
        nodes = list(tree.walk())
        columns = [node for node in nodes if isinstance(node, exp.Column)]
        names = {node.alias_or_name.lower() for node in nodes if isinstance(node, exp.Table | exp.Subquery)}
        if any(column.table and column.table.lower() not in names for column in columns):
            return None
        if _products(nodes) > self._products:
            return None
        if any(isinstance(node, exp.Table) and not node.args.get("alias") for node in nodes):
            _shorten(columns)
        return self._written(tree)

    def _written(self, tree: exp.Expr) -> str | None:
        """Return the text of a tree of our own; None for one that sqlglot cannot write, which fails with any error."""
        try:
            return self._writer.generate(tree, copy=False)
        except Exception:  # noqa: BLE001
            return None

    def _add(
        self,
        label: CauseLabel,
        clause: str,
        change: tuple[exp.Expr | str | None, exp.Expr | str | None],
        make: Make,
        *,
        within: exp.Expr,
        whole: bool = False,
    ) -> None:
        old, new = (self._text(side, within) for side in change)
        shown = CausingEdit(label=label, clause=clause, change=f"{old} → {new}")
        self._found.append(_Edit(shown=shown, within=id(within), whole=whole, make=make))

    def _text(self, side: exp.Expr | str | None, within: exp.Expr) -> str:
        if not isinstance(side, exp.Expr):
            return side or NOTHING
        shown, name = side.copy(), _only_table(within)
        columns = list(shown.find_all(exp.Column))
        _shorten(columns)
        for column in columns if name else ():
            if column.table.lower() == name and column.find_ancestor(exp.Select) is None:
                column.set("table", None)
        return one_line(self._written(shown) or shown.key, MAX_CHANGE)

    def _queries(self, predicted: exp.Expr | None, gold: exp.Expr | None, *, clause: str = "") -> None:
        """Add the edits of a query; one that stands in a `clause` may be replaced as a whole."""
        if predicted is None or gold is None or key(predicted) == key(gold):
            return
        for one, other in zip(_common(predicted), _common(gold), strict=False):
            self._queries(one.this, other.this, clause="FROM")
        if isinstance(predicted, exp.Select) and isinstance(gold, exp.Select):
            self._selects(predicted, gold)
        elif isinstance(predicted, exp.SetOperation) and isinstance(gold, exp.SetOperation):
            if (type(predicted), predicted.args.get("distinct")) != (type(gold), gold.args.get("distinct")):
                names = _set_operation(predicted), _set_operation(gold)
                change = partial(_change_operation, predicted, gold)
                self._add("set-operation", "SET", names, change, within=predicted)
            self._queries(query_within(predicted.this), query_within(gold.this))
            self._queries(query_within(predicted.expression), query_within(gold.expression))
            self._order_and_limit(predicted, gold)
        elif isinstance(gold, exp.SetOperation):
            added = partial(_combine, predicted, gold)
            text = f"{_set_operation(gold)} {self._text(gold.expression, gold)}"
            self._add("set-operation", "SET", (None, text), added, within=predicted)
            self._queries(predicted, query_within(gold.this))
        elif isinstance(predicted, exp.SetOperation):
            for kept, dropped in ((predicted.this, predicted.expression), (predicted.expression, predicted.this)):
                text = f"{_set_operation(predicted)} {self._text(dropped, predicted)}"
                self._add("set-operation", "SET", (text, None), _replacing(predicted, kept), within=predicted)
            self._queries(query_within(predicted.this), gold)
        if clause:
            self._add("nesting", clause, (predicted, gold), _replacing(predicted, gold), within=predicted, whole=True)

    def _selects(self, predicted: exp.Select, gold: exp.Select) -> None:
        self._from(predicted, gold)
        self._conditions("where", predicted, gold)
        self._items(predicted, gold)
        if _keys(predicted, "group") != _keys(gold, "group"):
            change = predicted.args.get("group"), gold.args.get("group")
            self._add("wrong-grouping", "GROUP", change, _setting(predicted, gold, "group"), within=predicted)
        self._conditions("having", predicted, gold)
        self._order_and_limit(predicted, gold)

    def _from(self, predicted: exp.Select, gold: exp.Select) -> None:
        before = len(self._found)
        mine, others = sources(predicted), sources(gold)
        missing = [alias for alias in others if alias not in mine]
        extra = [alias for alias in mine if alias not in others]
        for alias, other in zip(extra, missing, strict=False):
            old, new = mine[alias], others[other].copy()
            new.set("alias", exp.TableAlias(this=exp.to_identifier(old.alias_or_name)))
            is_nested = bool(query_within(old) or query_within(new))
            label: CauseLabel = "nesting" if is_nested else "wrong-table"
            change = (old, new) if is_nested else (old.name, new.name)
            self._add(label, "FROM", change, _replacing(old, new), within=predicted)
        for aliases in [missing] if len(missing) < 2 else [missing, *([alias] for alias in missing)]:
            if aliases:
                text = ", ".join(self._text(others[alias], gold) for alias in aliases)
                make = partial(_join, predicted, gold, aliases)
                self._add("missing-join", "FROM", (None, text), make, within=predicted, whole=bool(extra))
        for aliases in [extra] if len(extra) < 2 else [extra, *([alias] for alias in extra)]:
            if aliases and len(aliases) < len(mine):
                text = ", ".join(self._text(mine[alias], predicted) for alias in aliases)
                make = partial(_drop_sources, predicted, aliases)
                self._add("extra-join", "FROM", (text, None), make, within=predicted, whole=bool(missing))
        for alias in mine:
            self._queries(query_within(mine[alias]), query_within(others.get(alias)), clause="FROM")
        self._joins(predicted, gold)
        self._whole(before, "FROM", predicted, gold, ("from_", "joins"))

    def _joins(self, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of joins that both queries have."""
        joins, partners = (
            {_alias(join): join for join in select.args.get("joins") or ()} for select in (predicted, gold)
        )
        has_other_conditions = sorted(map(key, _ons(predicted))) != sorted(map(key, _ons(gold)))
        for alias, join in joins.items():
            partner = partners.get(alias)
            if partner is None and len(joins) == len(partners) == 1:
                partner = next(iter(partners.values()))  # where FROM names both tables in another order
            if partner is None:
                continue
            if _join_type(join) != _join_type(partner):
                names = _join_type(join), _join_type(partner)
                make = partial(_change_join_type, join, partner)
                self._add("wrong-join-type", "FROM", names, make, within=predicted)
            if has_other_conditions and key(_on(join)) != key(_on(partner)):
                make = partial(_change_join_condition, join, partner)
                self._add("wrong-join-condition", "FROM", (_on(join), _on(partner)), make, within=predicted)

    def _whole(
        self, before: int, clause: str, predicted: exp.Select, gold: exp.Select, arguments: Sequence[str]
    ) -> None:
        """Add the replacement of a clause in which several things differ, under the label of the first of them."""
        own = sorted(self._found[before:], key=lambda edit: (edit.whole, *_rank(edit.shown)))
        is_equal = all(_keys(predicted, name) == _keys(gold, name) for name in arguments)
        if is_equal or len(own) == 1:
            return
        first: CauseLabel = own[0].shown.label if own else _OTHERWISE[clause]

        def make(find: Find) -> None:
            for name in arguments:
                _set(find(predicted), name, gold.args.get(name))

        texts = (self._clause_text(select, arguments) for select in (predicted, gold))
        self._add(first, clause, (next(texts), next(texts)), make, within=predicted, whole=True)

    def _clause_text(self, select: exp.Select, arguments: Sequence[str]) -> str:
        parts = [select.args.get(name) for name in arguments]
        shown = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        between = ", " if "expressions" in arguments else " "
        return between.join(self._text(each, select).strip(" ,") for each in shown if isinstance(each, exp.Expr))

    def _conditions(self, name: str, predicted: exp.Select, gold: exp.Select) -> None:
        """Add the edits of WHERE or HAVING."""
        clause, before = name.upper(), len(self._found)
        mine, other = predicted.args.get(name), gold.args.get(name)
        if _keys(predicted, name) == _keys(gold, name):
            return
        if mine is None or other is None:
            missing: CauseLabel = "missing-having" if clause == "HAVING" else "missing-condition"
            extra: CauseLabel = "wrong-having" if clause == "HAVING" else "extra-condition"
            label = missing if mine is None else extra
            change = mine and mine.this, other and other.this
            self._add(label, clause, change, _setting(predicted, gold, name), within=predicted)
            parts = _operands(other.this, exp.And) if other is not None else []
            for part in parts if len(parts) > 1 else []:
                make = partial(_add_condition, predicted, name, part, exp.And)
                self._add(missing, clause, (None, part), make, within=predicted)
            return
        self._condition(mine.this, other.this, clause, predicted)
        self._whole(before, clause, predicted, gold, [name])

    def _condition(self, mine: exp.Expr, other: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of a condition of any number of operands."""
        mine, other = mine.unnest(), other.unnest()
        if key(mine) == key(other):
            return
        connector = next((type(each) for each in (mine, other) if isinstance(each, exp.Connector)), exp.And)
        left, right = _operands(mine, connector), _operands(other, connector)
        leaves = [sorted(map(key, _leaves(each))) for each in (mine, other)]
        if leaves[0] == leaves[1] and isinstance(mine, exp.Connector):
            names = _connectors(mine), _connectors(other)
            change = names if names[0] != names[1] else (mine, other)
            self._add("wrong-connector", clause, change, _replacing(mine, exp.paren(other.copy())), within=within)
            return
        keys, gold_keys = [key(each) for each in left], [key(each) for each in right]
        left = [each for each in left if not _take(gold_keys, key(each))]
        right = [each for each in right if not _take(keys, key(each))]
        if 1 in (len(left), len(right)) and len(left) != len(right) and left and right:
            (single,) = left if len(left) == 1 else right
            several = right if len(left) == 1 else left
            inner = sorted(map(key, _leaves(single)))
            if len(inner) > 1 and inner == sorted(leaf for each in several for leaf in map(key, _leaves(each))):
                names = _connectors(mine), _connectors(other)
                self._add("wrong-connector", clause, names, _replacing(mine, exp.paren(other.copy())), within=within)
                return
        for one, gold_one in _alike(left, right):
            if isinstance(one, exp.Connector) or isinstance(gold_one, exp.Connector):
                self._condition(one, gold_one, clause, within)
            else:
                self._predicate(one, gold_one, clause, within)
            left = [each for each in left if each is not one]
            right = [each for each in right if each is not gold_one]
        is_having = clause == "HAVING"
        for one in left:
            label: CauseLabel = "wrong-having" if is_having else "extra-condition"
            self._add(label, clause, (one, None), partial(_drop_condition, one), within=within)
        for gold_one in right:
            label = "wrong-having" if is_having else "missing-condition"
            make = partial(_extend_condition, mine, gold_one, connector)
            self._add(label, clause, (None, gold_one), make, within=within)

    def _predicate(self, mine: exp.Expr, other: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of one comparison."""
        before = len(self._found)
        inner, gold_inner = (each.this if isinstance(each, exp.Not) else each for each in (mine, other))
        inner, gold_inner = inner.unnest(), gold_inner.unnest()
        negated = isinstance(mine, exp.Not) != isinstance(other, exp.Not)
        if isinstance(inner, exp.Binary) and isinstance(gold_inner, exp.Binary):
            if key(inner.left) == key(gold_inner.right) or key(inner.right) == key(gold_inner.left):
                gold_inner = _mirrored(gold_inner)
            if negated or type(inner) is not type(gold_inner):
                names = _operator(mine, inner), _operator(other, gold_inner)
                make = partial(_change_operator, mine, inner, other, gold_inner)
                self._add("wrong-operator", clause, names, make, within=within)
            self._expression(inner.left, gold_inner.left, clause, within)
            self._expression(inner.right, gold_inner.right, clause, within)
        elif type(inner) is type(gold_inner):
            if negated:
                names = _operator(mine, inner), _operator(other, gold_inner)
                make = partial(_change_operator, mine, inner, other, gold_inner)
                self._add("wrong-operator", clause, names, make, within=within)
            self._parts(inner, gold_inner, clause, within)
        elif key(_subject(inner)) == key(_subject(gold_inner)):
            nested = mine.find(exp.Query) or other.find(exp.Query)
            self._add(
                "nesting" if nested else "wrong-operator", clause, (mine, other), _replacing(mine, other), within=within
            )
        own = self._found[before:]
        if len(own) != 1:
            label = own[0].shown.label if own else "wrong-expression"
            if not own and clause == "WHERE":
                label = "nesting" if mine.find(exp.Query) or other.find(exp.Query) else "wrong-expression"
            self._add(label, clause, (mine, other), _replacing(mine, other), within=within, whole=bool(own))

    def _parts(self, mine: exp.Expr, other: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edits of the arguments of two expressions of one type."""
        for name in dict.fromkeys((*mine.args, *other.args)):
            one, gold_one = mine.args.get(name), other.args.get(name)
            if isinstance(one, list) or isinstance(gold_one, list):
                if key_of_parts(one) == key_of_parts(gold_one):
                    continue
                if one and gold_one and len(one) == len(gold_one):
                    for pair in zip(one, gold_one, strict=True):
                        self._expression(*pair, clause, within)
                else:
                    label = _OTHERWISE.get(clause, "wrong-expression")
                    if all(isinstance(part, exp.Literal) for part in (*(one or ()), *(gold_one or ()))):
                        label = "wrong-value"
                    texts = [", ".join(self._text(each, within) for each in side or ()) for side in (one, gold_one)]
                    make = _setting(mine, other, name)
                    self._add(label, clause, (texts[0], texts[1]), make, within=within)
            elif isinstance(one, exp.Expr) and isinstance(gold_one, exp.Expr):
                self._expression(one, gold_one, clause, within)
            elif key(one) != key(gold_one) and name != "big_int":
                label = _OTHERWISE.get(clause, "wrong-expression")
                self._add(label, clause, (mine, other), _replacing(mine, other), within=within)
                return

    def _expression(self, mine: exp.Expr, other: exp.Expr, clause: str, within: exp.Select) -> None:
        """Add the edit of an expression, at the smallest part that differs."""
        mine, other = _bare(mine), _bare(other)
        if key(mine) == key(other):
            return
        one, gold_one = query_within(mine), query_within(other)
        if one is not None and gold_one is not None:
            self._queries(one, gold_one, clause=clause)
            return
        label = _label(mine, other)
        is_of_parts = type(mine) is type(other) and not isinstance(mine, exp.Literal | exp.Column)
        if label == "wrong-expression" and is_of_parts:
            self._parts(mine, other, clause, within)
            return
        if label in ("extra-distinct", "missing-distinct") and key(_argument(mine)) != key(_argument(other)):
            column = mine.copy()
            _argument(column).replace(_argument(other).copy())
            self._add("wrong-column", clause, (mine, column), _replacing(mine, column), within=within)
        self._add(label, clause, (mine, other), _replacing(mine, other), within=within)

    def _items(self, predicted: exp.Select, gold: exp.Select) -> None:
        if bool(predicted.args.get("distinct")) != bool(gold.args.get("distinct")):
            is_missing = bool(gold.args.get("distinct"))
            change = (None, "DISTINCT") if is_missing else ("DISTINCT", None)
            label: CauseLabel = "missing-distinct" if is_missing else "extra-distinct"
            self._add(label, "SELECT", change, _setting(predicted, gold, "distinct"), within=predicted)
        left, right = list(predicted.expressions), list(gold.expressions)
        same = [(one, other) for one, other in zip(left, right, strict=False) if key(one) == key(other)]
        left = [each for each in left if not any(each is one for one, _ in same)]
        right = [each for each in right if not any(each is other for _, other in same)]
        keys, gold_keys = [key(each) for each in left], [key(each) for each in right]
        left = [each for each in left if not _take(gold_keys, key(each))]
        right = [each for each in right if not _take(keys, key(each))]
        before = len(self._found)
        for one, other in _alike(left, right, rest=True):
            self._expression(one.unalias(), other.unalias(), "SELECT", predicted)
            left = [each for each in left if each is not one]
            right = [each for each in right if each is not other]
        for one in left:
            if len(predicted.expressions) > 1:
                self._add("extra-column", "SELECT", (one, None), partial(_drop_item, one), within=predicted)
        for other in right:
            make = partial(_add_item, predicted, other, gold.expressions.index(other))
            self._add("missing-column", "SELECT", (None, other), make, within=predicted)
        if len(self._found) - before > 1:
            self._whole(before, "SELECT", predicted, gold, ("expressions",))

    def _order_and_limit(self, predicted: exp.Expr, gold: exp.Expr) -> None:
        if _keys(predicted, "order") != _keys(gold, "order"):
            mine, other = predicted.args.get("order"), gold.args.get("order")
            label: CauseLabel = "missing-order" if mine is None else "wrong-order"
            change = mine, other
            if mine is not None and other is not None and len(mine.expressions) == len(other.expressions):
                different = [
                    pair
                    for pair in zip(mine.expressions, other.expressions, strict=True)
                    if key(pair[0]) != key(pair[1])
                ]
                change = different[0] if len(different) == 1 else change
            self._add(label, "ORDER", change, _setting(predicted, gold, "order"), within=predicted)
        names = ("limit", "offset")
        if [_keys(predicted, name) for name in names] != [_keys(gold, name) for name in names]:
            texts = []
            for query in (predicted, gold):
                parts = [query.args[name] for name in names if query.args.get(name) is not None]
                texts.append(" ".join(self._text(part, query).strip() for part in parts))

            def make(find: Find) -> None:
                for name in names:
                    _set(find(predicted), name, gold.args.get(name))

            self._add("wrong-limit", "LIMIT", (texts[0], texts[1]), make, within=predicted)


def sql_edits(predicted: str, gold: str, schema: Schema, dialect: str) -> SqlEdits | None:
    """Return the edits from a predicted query to gold; None where one cannot be read as a whole, or is very long.

    >>> found = sql_edits("SELECT id FROM singer WHERE age > 30", "SELECT id FROM singer WHERE age > 40", Schema(), "")
    >>> found.edits
    [CausingEdit(label='wrong-value', clause='WHERE', change='30 → 40')]
    >>> found.applied([0])
    'SELECT id FROM singer WHERE age > 40'
    """
    try:
        (tree, broken), (gold_tree, gold_broken) = parse(predicted, dialect), parse(gold, dialect)
        if broken or gold_broken or _is_large(tree) or _is_large(gold_tree):
            return None
        return SqlEdits(_query(tree), _query(gold_tree), schema, dialect)
    except (UnreadableError, RecursionError):
        return None


def _is_large(tree: exp.Expr) -> bool:
    nodes = list(tree.walk())
    return len(nodes) > MAX_NODES or sum(isinstance(node, exp.Select) for node in nodes) > MAX_SELECTS


def _query(tree: exp.Expr) -> exp.Expr:
    return query_within(tree) or tree


def _rank(edit: CausingEdit) -> tuple[int, str]:
    return CLAUSES.index(edit.clause), edit.change


def _replacing(old: exp.Expr, new: exp.Expr) -> Make:
    return lambda find: find(old).replace(new.copy())


def _setting(predicted: exp.Expr, gold: exp.Expr, name: str) -> Make:
    return lambda find: _set(find(predicted), name, gold.args.get(name))


def _set(node: exp.Expr, name: str, value: object) -> None:
    if isinstance(value, list):
        value = [each.copy() for each in value]
    node.set(name, value.copy() if isinstance(value, exp.Expr) else value)


def _keys(query: exp.Expr, name: str) -> str:
    found = query.args.get(name)
    return key_of_parts(found) if isinstance(found, list) else key(found)


def _common(query: exp.Expr) -> Sequence[exp.Expr]:
    common = query.args.get("with_")
    return () if common is None else common.expressions


def _set_operation(query: exp.Expr) -> str:
    return query.key.upper() if query.args.get("distinct") else f"{query.key.upper()} ALL"


def _change_operation(predicted: exp.Expr, gold: exp.Expr, find: Find) -> None:
    old = find(predicted)
    old.replace(type(gold)(**{**old.args, "distinct": gold.args.get("distinct")}))


def _combine(predicted: exp.Expr, gold: exp.Expr, find: Find) -> None:
    """Combine predicted with the second query of gold; ORDER BY and LIMIT stand at the end, as in gold."""
    old = find(predicted)
    arguments = {name: value for name, value in gold.copy().args.items() if name != "with_"}
    own = old.copy()
    for name in ("order", "limit", "offset"):
        own.set(name, None)
    old.replace(type(gold)(**{**arguments, "this": own}))


def _alias(join: exp.Expr) -> str:
    return str(join.this.alias_or_name.lower())


def _join_type(join: exp.Expr) -> str:
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    kind = "" if kind in ("INNER", "OUTER", "CROSS") else kind
    method = str(join.args.get("method") or "").upper()
    return " ".join(filter(None, (method, side, kind, "JOIN")))


def _on(join: exp.Expr) -> exp.Expr | None:
    using = join.args.get("using")
    return join.args.get("on") or (exp.Tuple(expressions=[each.copy() for each in using]) if using else None)


def _ons(select: exp.Expr) -> list[exp.Expr]:
    conditions = [_on(join) for join in select.args.get("joins") or ()]
    return [part for condition in conditions if condition is not None for part in _operands(condition, exp.And)]


def _change_join_type(join: exp.Expr, partner: exp.Expr, find: Find) -> None:
    for name in ("side", "kind", "method"):
        find(join).set(name, partner.args.get(name))


def _change_join_condition(join: exp.Expr, partner: exp.Expr, find: Find) -> None:
    for name in ("on", "using"):
        _set(find(join), name, partner.args.get(name))
    if find(join).args.get("kind") == "CROSS":
        find(join).set("kind", partner.args.get("kind"))


def _join(predicted: exp.Select, gold: exp.Select, aliases: Sequence[str], find: Find) -> None:
    """Join tables of gold, with the conditions that name them and nothing that is not joined then."""
    select = find(predicted)
    joins = {_alias(join): join for join in gold.args.get("joins") or ()}
    available = {*sources(select)}
    conditions = [part for part in _ons(gold) if isinstance(part, exp.Condition)]
    pending = list(aliases)
    while pending:
        # The next one whose conditions name joined tables only, else the first.
        def names(alias: str) -> list[exp.Expr]:
            return [
                part
                for part in conditions
                if alias in (own := {column.table.lower() for column in part.find_all(exp.Column)})
                and own <= available | {alias}
            ]

        alias = next((each for each in pending if names(each)), pending[0])
        pending.remove(alias)
        join = joins[alias].copy() if alias in joins else exp.Join(this=sources(gold)[alias].copy())
        own = names(alias)
        if own:
            join.set("using", None)
            join.set("on", exp.and_(*own, copy=True))
            if join.args.get("kind") == "CROSS":
                join.set("kind", None)
        elif join.args.get("on"):
            join.set("on", None)
        select.append("joins", join)
        available.add(alias)


def _drop_sources(predicted: exp.Select, aliases: Sequence[str], find: Find) -> None:
    """Take tables out of FROM, with the conditions of joins that name them."""
    select = find(predicted)
    first, joins = select.args["from_"], list(select.args.get("joins") or ())
    kept = [join for join in joins if _alias(join) not in aliases]
    if not kept and first.this.alias_or_name.lower() in aliases:
        return  # together with another edit that took the others
    conditions = [
        part.copy()
        for part in _ons(select)
        if isinstance(part, exp.Condition)
        and not {column.table.lower() for column in part.find_all(exp.Column)} & {*aliases}
    ]
    if first.this.alias_or_name.lower() in aliases:
        first.set("this", kept.pop(0).this.copy())
    available = {first.this.alias_or_name.lower()}
    for join in kept:
        available.add(_alias(join))
        own = [
            part for part in conditions if {column.table.lower() for column in part.find_all(exp.Column)} <= available
        ]
        conditions = [part for part in conditions if part not in own]
        if join.args.get("on"):
            join.set("on", exp.and_(*own, copy=True) if own else None)
    select.set("joins", [join.copy() for join in kept])


def _operands(condition: exp.Expr, connector: type[exp.Expr]) -> list[exp.Expr]:
    condition = condition.unnest()
    return list(condition.flatten()) if isinstance(condition, connector) else [condition]


def _leaves(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.Connector):
        for operand in condition.flatten():
            yield from _leaves(operand)
    else:
        yield condition


def _connectors(condition: exp.Expr) -> str:
    names = dict.fromkeys(
        node.key.upper() for node in (condition, *condition.find_all(exp.Connector)) if isinstance(node, exp.Connector)
    )
    return " ".join(names) or NOTHING


def _take(keys: list[str], one: str) -> bool:
    """Take a key out of a list, and return whether it was there."""
    if one in keys:
        keys.remove(one)
        return True
    return False


def _alike(
    left: Sequence[exp.Expr], right: Sequence[exp.Expr], *, rest: bool = False
) -> list[tuple[exp.Expr, exp.Expr]]:
    """Pair expressions that share most, in order; with `rest` also those that share nothing."""
    bags = {
        id(each): {key(node) for node in each.walk() if not isinstance(node, exp.Identifier)}
        for each in (*left, *right)
    }
    ways = sorted(
        (
            (
                -len(bags[id(one)] & bags[id(other)]) - (type(one) is type(other)) / 2,
                abs(place - gold_place),
                place,
                gold_place,
            )
            for place, one in enumerate(left)
            for gold_place, other in enumerate(right)
        )
    )
    pairs: dict[int, int] = {}
    for score, _, place, gold_place in ways:
        if (score <= -1 or rest) and place not in pairs and gold_place not in pairs.values():
            pairs[place] = gold_place
    if len(left) == len(right) == 1:
        pairs = {0: 0}
    return [(left[place], right[gold_place]) for place, gold_place in sorted(pairs.items())]


def _bare(node: exp.Expr) -> exp.Expr:
    """Return an expression without parentheses that hold no query."""
    return node.unnest() if isinstance(node, exp.Paren) else node


def _is_value(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    )


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Star)


def _label(mine: exp.Expr, other: exp.Expr) -> CauseLabel:
    """Return the label of one expression in the place of another."""
    if query_within(mine) is not None or query_within(other) is not None:
        return "nesting"
    if _is_value(mine) and _is_value(other):
        return "wrong-value"
    if _is_column(mine) and _is_column(other):
        return "wrong-column"
    if not isinstance(mine, exp.AggFunc) and not isinstance(other, exp.AggFunc):
        return "wrong-expression"
    if type(mine) is not type(other):
        return "wrong-aggregate"
    is_distinct, should_be = (isinstance(each.this, exp.Distinct) for each in (mine, other))
    if is_distinct != should_be:
        return "extra-distinct" if is_distinct else "missing-distinct"
    if _is_column(_argument(mine)) and _is_column(_argument(other)):
        return "wrong-column"
    return "wrong-expression"


def _argument(function: exp.Expr) -> exp.Expr:
    inner = function.this
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        inner = inner.expressions[0]
    return inner if isinstance(inner, exp.Expr) else function


def _subject(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node.this, exp.Expr) else node


def _mirrored(comparison: exp.Binary) -> exp.Binary:
    """Return a comparison with its sides exchanged."""
    other = _MIRRORED.get(type(comparison), type(comparison))
    if not isinstance(comparison, (*_MIRRORED, exp.EQ, exp.NEQ)):
        return comparison
    return other(this=comparison.right.copy(), expression=comparison.left.copy())


def _operator(whole: exp.Expr, inner: exp.Expr) -> str:
    names = {"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
    name = names.get(inner.key, inner.key.upper())
    return f"NOT {name}" if isinstance(whole, exp.Not) else name


def _change_operator(mine: exp.Expr, inner: exp.Expr, other: exp.Expr, gold_inner: exp.Expr, find: Find) -> None:
    old = find(inner)
    new: exp.Expr = old.copy()
    if type(inner) is not type(gold_inner):
        new = type(gold_inner)(this=old.this.copy(), expression=old.expression.copy())
    find(mine).replace(exp.Not(this=new) if isinstance(other, exp.Not) else new)


def _add_condition(select: exp.Select, name: str, part: exp.Expr, connector: type[exp.Connector], find: Find) -> None:
    known = find(select).args.get(name)
    if known is None:
        find(select).set(name, (exp.Where if name == "where" else exp.Having)(this=part.copy()))
    else:
        known.set("this", connector(this=exp.paren(known.this.copy()), expression=part.copy()))


def _extend_condition(mine: exp.Expr, part: exp.Expr, connector: type[exp.Connector], find: Find) -> None:
    old = find(mine)
    own = old.copy()
    own = exp.paren(own) if isinstance(own, exp.Connector) and not isinstance(own, connector) else own
    new = exp.paren(part.copy()) if isinstance(part, exp.Connector) else part.copy()
    old.replace(connector(this=own, expression=new))


def _drop_condition(condition: exp.Expr, find: Find) -> None:
    """Take an operand out of its connector, or the clause away that it is alone in."""
    node = find(condition)
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, exp.Connector):
        parent.replace((parent.right if parent.left is node else parent.left).copy())
    elif parent is not None:
        parent.pop()


def _add_item(select: exp.Select, item: exp.Expr, place: int, find: Find) -> None:
    node = find(select)
    items = [each.copy() for each in node.expressions]
    node.set("expressions", [*items[:place], item.copy(), *items[place:]])


def _drop_item(item: exp.Expr, find: Find) -> None:
    find(item).pop()


def _shorten(columns: Iterable[exp.Column]) -> None:
    """Take the name of the only table of their SELECT, if it is no alias, away from columns."""
    only: dict[int, str] = {}
    for column in columns:
        select = column.find_ancestor(exp.Select)
        if select is None or not column.table:
            continue
        if id(select) not in only:
            only[id(select)] = _only_table(select)
        if column.table.lower() == only[id(select)]:
            column.set("table", None)


def _only_table(select: exp.Expr) -> str:
    """Return the name of the only table of a SELECT, in lower case; empty where it has an alias, or there are more."""
    members = sources(select)
    is_alone = [(source.key, source.alias) for source in members.values()] == [("table", "")]
    return next(iter(members)) if is_alone else ""


def _products(nodes: Iterable[exp.Expr]) -> int:
    """Return how many joins of a query have no condition."""
    return sum(
        isinstance(node, exp.Join) and not (node.args.get("on") or node.args.get("using") or node.args.get("method"))
        for node in nodes
    )


def _add_common_queries(tree: exp.Expr, common: exp.Expr) -> None:
    """Add the queries of gold's WITH that the tree reads and does not have."""
    own = tree.args.get("with_")
    known = {cte.alias.lower() for cte in (own.expressions if own else ())}
    read = {table.name.lower() for table in tree.find_all(exp.Table)}
    if any(cte.alias.lower() in read - known for cte in common.expressions):
        missing = [cte.copy() for cte in common.expressions if cte.alias.lower() not in known]
        if own is None:
            tree.set("with_", exp.With(expressions=missing, recursive=common.args.get("recursive")))
        else:
            own.set("expressions", [*missing, *own.expressions])
