"""Changes of a SELECT, and what holds for its rows on any data that keeps the declared constraints."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.core.table import Policy
from pytest_queryeval.languages.sql.columns import Columns, Names, find_cte
from pytest_queryeval.languages.sql.facts import JoinedRows, non_null_columns, strict_columns
from pytest_queryeval.languages.sql.tree_reader import at_position

NodeType: TypeAlias = type[exp.Expr]  # of nodes
OUTER: Column = ("", "")  # a column of a query around the SELECT: a constant within it

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_DETERMINISTIC = (
    *(*ARITHMETIC, exp.DPipe, exp.Neg, exp.Paren, exp.Cast, exp.Upper, exp.Lower, exp.Length, exp.Abs),
    *(exp.Column, exp.Identifier, exp.Literal, exp.DataType),
)
_INTEGERS = ("INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "UINT")
_STRICT_AGGREGATES = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)


class Mutation(NamedTuple):
    """A node of a tree, and what replaces it; None removes it.

    `operator` names the type of change. `change` describes it if the texts of both nodes would be too long.
    `equivalent` is why the answer of the query stays the same; empty if that is not known.
    """

    node: exp.Expr
    new: exp.Expr | None
    operator: str
    change: str = ""
    equivalent: str = ""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A SELECT to change, with the tables of the source, what names refer to, and how answers are compared."""

    select: exp.Select
    tables: Tables
    columns: Columns
    policy: Policy
    dialect: str

    @cached_property
    def facts(self) -> Facts:
        """What holds for its rows."""
        return self.facts_of()

    def facts_of(self, *, without: Collection[exp.Expr] = (), loosened: exp.Join | None = None) -> Facts:
        """Return what holds for its rows without some conditions, or with a join that counts as an outer one."""
        return Facts(self.columns.names(self.select), self.tables, without, loosened)

    @property
    def conditions(self) -> Iterator[exp.Expr]:
        """The nodes of these conditions."""
        return chain.from_iterable(map(own_nodes, self.clauses))

    @property
    def clauses(self) -> Iterator[exp.Expr]:
        """The conditions of ON, WHERE and HAVING."""
        for join in self.select.args.get("joins") or ():
            if (on := join.args.get("on")) is not None:
                yield on
        for name in ("where", "having"):
            if (clause := self.select.args.get(name)) is not None:
                yield clause.this


class Facts(JoinedRows):
    """The facts of one SELECT.

    `without` are conditions to ignore, `loosened` is a join that counts as an outer one.
    """

    def __init__(self, names: Names, tables: Tables, without: Collection[exp.Expr], loosened: exp.Join | None) -> None:
        self.select = select = names.select
        self.names = names
        self.tables = {
            alias: tables.get(source.node.name.lower()) if _is_plain_table(source.node, select) else None
            for alias, source in names.sources.items()
        }
        self._using: set[str] = set()
        implied: list[tuple[set[Column], set[Column]]] = []
        extended = set[str]()
        joins: list[exp.Join] = select.args.get("joins") or []
        filters = [*conjuncts(select.args.get("where"))]
        keeps_left = all(join.side in ("", "LEFT") for join in joins)
        for join in joins:
            before, alias = names.joined(join)
            is_outer = join is loosened or join.side != ""
            conditions = [*conjuncts(join.args.get("on")), *self._using_conditions(join)]
            if is_outer:
                if join is loosened or join.side in ("LEFT", "FULL"):
                    extended.add(alias)
                if join.side in ("RIGHT", "FULL"):
                    extended.update(before)
                # Columns of the right side follow from those of the left side that they equal.
                equalities = [self._equality(condition) for condition in conditions]
                equal_names = {name for equal in equalities for name in equal or ()}
                conclusion = {name for name in equal_names if name[0] == alias}
                if keeps_left and conclusion and None not in equalities:
                    implied.append((equal_names - conclusion, conclusion))
            elif keeps_left:
                filters += conditions
        filters = [condition for condition in filters if condition not in without]
        rejected = self.plain(column for condition in filters for column in non_null_columns(condition, parts_of))
        super().__init__(
            tables=self.tables,
            equal=[*filter(None, map(self._equality, filters))],
            constants={OUTER},
            rejected=rejected,
            extended=extended.difference(alias for alias, _ in rejected),
            implied=implied,
        )

    def resolve(self, column: exp.Column) -> Column | None:
        """Return the column that a name refers to; None if that is not known."""
        table, name = column.table.lower(), column.name.lower()
        if table:
            return (table, name) if table in self.tables else OUTER
        if None in self.tables.values():
            return None
        owners = self.names.owners(name)
        if len(owners) == 1 or (owners and name in self._using):
            return owners[0], name
        may_be_outer = self.select.parent is not None and name not in self.names.aliases
        return OUTER if may_be_outer and not self.names.has_column(name) else None

    def item(self, key: exp.Expr) -> exp.Expr:
        """Return what a key of ORDER BY or GROUP BY stands for: a selected expression, or itself."""
        core = key.this if isinstance(key, exp.Ordered) else key
        if isinstance(core, exp.Column):
            return self.names.aliased(core) or core
        return at_position(core, self.select).unalias()

    def plain(self, expressions: Iterable[exp.Expr]) -> set[Column]:
        """Return the known columns among the expressions."""
        return {
            name
            for expression in expressions
            if isinstance(column := expression.unnest(), exp.Column) and (name := self.resolve(column))
        }

    def is_determined(self, expression: exp.Expr, names: Iterable[Column]) -> bool:
        """Return whether the value of an expression is the same in rows with the same values of `names`."""
        if not all(isinstance(node, _DETERMINISTIC) for node in expression.walk()):
            return False
        determined_names = self.closure(names)
        return all(self.resolve(column) in determined_names for column in expression.find_all(exp.Column))

    def not_null(self, expression: exp.Expr) -> bool:
        """Return whether a column is NULL in no row."""
        return any(name != OUTER and self.is_not_null(name) for name in self.plain([expression]))

    def is_integer(self, expression: exp.Expr) -> bool:
        """Return whether all values of an expression are integers by its type."""
        expression = expression.unnest()
        if isinstance(expression, exp.Column):
            alias, name = self.resolve(expression) or OUTER
            table = self.tables.get(alias)
            declared = table.by_name.get(name) if table is not None else None
            return declared is not None and declared.type.upper().startswith(_INTEGERS)
        return isinstance(expression, exp.Count | exp.Length)

    @property
    def group_keys(self) -> list[exp.Expr]:
        """What the rows are grouped by; empty for none, and for ROLLUP and the like."""
        group = self.select.args.get("group")
        return [self.item(key) for key in group.expressions] if group is not None else []

    @cached_property
    def grouped_columns(self) -> set[Column]:
        """The known columns that the rows are grouped by."""
        return self.plain(self.group_keys)

    def determines_group(self, columns: Collection[Column], expressions: Collection[exp.Expr]) -> bool:
        """Return whether no two groups have the same values of these columns and expressions."""
        keys = self.group_keys
        return bool(keys) and all(self.is_determined(key, columns) or key in expressions for key in keys)

    @property
    def has_one_row(self) -> bool:
        """Whether the SELECT returns one row at most."""
        if self.select.args.get("group") is not None:
            return False
        nodes = [node for item in self.select.selects for node in own_nodes(item)]
        has_windows = any(isinstance(node, exp.Window) for node in nodes)
        if (not has_windows and any(isinstance(node, exp.AggFunc) for node in nodes)) or self.determine_rows(()):
            return True
        has_values = all(isinstance(node, (*_DETERMINISTIC, exp.Alias, exp.Null, exp.Boolean)) for node in nodes)
        return has_values and self.select.args.get("from_") is None  # some functions return several rows

    @property
    def has_unique_rows(self) -> bool:
        """Whether no two rows that the SELECT returns are equal, also without its DISTINCT."""
        if self.has_one_row:
            return True
        output = [item.unalias() for item in self.select.selects]
        names = self.plain(output)
        for star in (item for item in output if item.is_star):
            for alias, table in self.tables.items():
                if table is not None and (not isinstance(star, exp.Column) or star.table.lower() == alias):
                    names.update((alias, name) for name in table.by_name)
        is_grouped = self.select.args.get("group") is not None
        return self.determines_group(names, output) if is_grouped else self.determine_rows(names)

    def partner_exists(self, join: exp.Join) -> bool:
        """Return whether each row has a match in a joined table: its columns are a NOT NULL foreign key of the row."""
        conditions = [*conjuncts(join.args.get("on")), *self._using_conditions(join)]
        alias = self.names.joined(join)[1]
        pairs = set[tuple[Column, Column]]()
        for condition in conditions:
            name, joined_name = sorted(self._equality(condition) or (OUTER, OUTER), key=lambda name: name[0] == alias)
            if joined_name[0] != alias or name[0] in ("", alias):
                return False
            pairs.add((name, joined_name))
        owners = {name[0] for name, _ in pairs} - self.extended
        return any(
            {*key} == pairs and all(self.is_not_null(name) for name, _ in key)
            for owner in owners
            for key in self.references(owner, alias, pairs)
        )

    def aggregates_only(self, alias: str) -> bool:
        """Return whether the SELECT has only aggregates that ignore rows in which a table has only NULLs."""
        if any(self.select.args.get(name) for name in ("group", "having", "order")):
            return False
        for item in self.select.selects:
            nodes = [*own_nodes(item)]
            aggregates = [node for node in nodes if isinstance(node, exp.AggFunc)]
            is_bare = any(isinstance(node, exp.Column) and node.find_ancestor(exp.AggFunc) is None for node in nodes)
            if not aggregates or is_bare or any(isinstance(node, exp.Query | exp.Window) for node in nodes):
                return False
            for aggregate in aggregates:
                inner = aggregate.this
                argument = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
                tables = {table for table, _ in self.plain(strict_columns([argument], parts_of))}
                if not isinstance(aggregate, _STRICT_AGGREGATES) or alias not in tables:
                    return False
        return True

    def _equality(self, condition: exp.Expr) -> tuple[Column, Column] | None:
        """Return the two columns that a condition equates, `OUTER` for a constant; None for other conditions."""
        if not isinstance(condition, exp.EQ):
            return None
        left, right = (
            OUTER if isinstance(side, exp.Literal) else self.resolve(side) if isinstance(side, exp.Column) else None
            for side in (condition.this.unnest(), condition.expression.unnest())
        )
        return None if left is None or right is None else (left, right)

    def _using_conditions(self, join: exp.Join) -> Iterator[exp.Expr]:
        """Yield the equalities that USING stands for."""
        for name, left, right in self.names.joined_columns(join):
            self._using.add(name)
            if left in self.names.owners(name):
                yield exp.EQ(this=exp.column(name, left), expression=exp.column(name, right))


def _is_plain_table(node: exp.Expr, select: exp.Select) -> bool:
    """Return whether an item of FROM is a table outside of parentheses, joined only by its condition."""
    place = node.parent
    if not isinstance(node, exp.Table) or node.args.get("joins") or find_cte(node) is not None:
        return False
    return place is not None and place.parent is select and not place.args.get("method")


def replaced(node: exp.Expr, **arguments: object) -> exp.Expr:
    """Return a copy of a node with other arguments."""
    copy = node.copy()
    for name, value in arguments.items():
        copy.set(name, value)
    return copy


def of_type(node: exp.Expr, type_: type[exp.Expr]) -> exp.Expr:
    """Return a node of another type with copies of the same arguments."""
    return type_(**node.copy().args)


def own_nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of an expression, of nested queries only their root."""
    yield from tree.walk(prune=lambda node: node is not tree and isinstance(node, exp.Query))


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins."""
    if isinstance(node, exp.Where | exp.Having | exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        for part in node.flatten():
            yield from conjuncts(part)
    elif node is not None:
        yield node


def parts_of(node: exp.Expr) -> tuple[str, Sequence[exp.Expr]]:
    """Return the operator and the operands of an expression, for `non_null_columns`."""
    match node:
        case exp.And() | exp.Or():
            return node.key, [*node.flatten()]
        case exp.Is() if isinstance(node.expression, exp.Null):
            return "isnull", [node.this]
        case exp.Between() | exp.Like() | exp.ILike():
            return "between", [node.this]
        case exp.In() if node.args.get("query") is None:
            return "between", [node.this]
    return node.key, [side for side in (node.this, node.expression) if isinstance(side, exp.Expr)]
