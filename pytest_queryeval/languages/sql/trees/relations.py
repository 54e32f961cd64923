"""FROM and its joins: the relations, and the columns that the joins make equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.columns import Names
from pytest_queryeval.languages.sql.trees.scope import Relation, Scope
from pytest_queryeval.languages.sql.trees.texts import Texts

_PLAIN_KINDS = ("", "INNER", "CROSS", "OUTER")
_DEFAULT_SCHEMAS = ("main", "public", "dbo")
_NAMES = frozenset(("this", "alias", "db", "catalog", "joins"))


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """A join that keeps rows without a match, or one side only: what it joins, and on which conditions.

    `preserved` are the relations before it where they may be without a match too: then their order matters.
    """

    word: str
    joined: tuple[str, ...]
    conditions: tuple[exp.Expr, ...]
    preserved: tuple[str, ...] = ()


@dataclass(slots=True)
class From:
    """FROM and WHERE of one SELECT: conditions that all rows meet, one by one, and joins other than inner ones.

    `on` are the conditions of all joins as the query has them.
    """

    conditions: list[exp.Expr] = field(default_factory=list)
    outer_joins: list[OuterJoin] = field(default_factory=list)
    on: list[exp.Expr] = field(default_factory=list)


class FromReader:
    """Reader of the FROM of one SELECT into its scope; `relation` makes a relation of a nested query."""

    def __init__(self, names: Names, scope: Scope, texts: Texts, relation: Callable[[exp.Expr], Relation]) -> None:
        self._names = names
        self._aliases = iter(names.sources)
        self._scope = scope
        self._texts = texts
        self._relation = relation
        self._from = From()

    def read(self) -> From:
        """Read FROM with its joins, and WHERE."""
        select = self._names.select
        if source := select.args.get("from_"):
            self._add(source.this)
        self._add_joins(select.args.get("joins") or ())
        if where := select.args.get("where"):
            self._keep(where.this)
        return self._from

    def _add(self, node: exp.Expr) -> None:
        """Add one relation, with the joins in its parentheses."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self._add(node.this)
        else:
            self._scope.relations[next(self._aliases)] = self._read(node)
        self._add_joins(node.args.get("joins") or ())

    def _read(self, node: exp.Expr) -> Relation:
        if isinstance(node, exp.Subquery):
            return self._relation(node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return Relation(self._texts.of(node, self._scope))
        name, schema = node.name.lower(), node.db.lower()
        if not schema and (query := self._scope.named_query(name)):
            return query
        # A table, without the default schema, and with a sample or the like.
        qualified = name if schema in ("", *_DEFAULT_SCHEMAS) else f"{schema}.{name}"
        return Relation(" ".join([qualified, *self._texts.arguments(node, self._scope, without=_NAMES)]))

    def _add_joins(self, joins: Sequence[exp.Join]) -> None:
        for join in joins:
            first_relation, first_condition = len(self._scope.relations), len(self._from.conditions)
            self._add(join.this)
            condition = join.args.get("on")
            if condition is not None:
                self._from.on.append(condition)
                self._keep(condition)
            self._from.conditions += [
                exp.EQ(this=exp.column(name, left), expression=exp.column(name, right))
                for name, left, right in self._names.joined_columns(join)
            ]
            word = " ".join(filter(None, (join.method, join.side, join.kind))).lower()
            if join.side or join.kind not in _PLAIN_KINDS or join.method not in ("", "NATURAL"):
                self._outer_join(word.removesuffix(" outer").removeprefix("natural "), first_relation, first_condition)

    def _outer_join(self, word: str, first_relation: int, first_condition: int) -> None:
        """Take the conditions of this join out of those that all rows meet."""
        keeps_joined_rows = word in ("right", "full")
        first_condition = 0 if keeps_joined_rows else first_condition
        conditions = tuple(self._from.conditions[first_condition:])
        del self._from.conditions[first_condition:]
        aliases = tuple(self._scope.relations)
        joined, preserved = aliases[first_relation:], aliases[:first_relation] if keeps_joined_rows else ()
        if word == "right" and len(joined) == len(preserved) == 1:
            word, joined, preserved = "left", preserved, ()
        self._from.outer_joins.append(OuterJoin(word, joined, conditions, preserved))

    def _keep(self, condition: exp.Expr) -> None:
        """Keep the conditions that AND connects, one by one."""
        for operand in condition.flatten() if isinstance(condition, exp.And) else (condition,):
            inner = operand.unnest()
            if isinstance(inner, exp.And):
                self._keep(inner)
            elif not _is_true(inner):
                self._from.conditions.append(inner)


@dataclass(frozen=True, slots=True)
class JoinedTexts:
    """FROM and WHERE as texts, each list sorted: relations, what joins make equal and outer joins, other conditions."""

    tables: tuple[str, ...]
    joins: tuple[str, ...]
    filters: tuple[str, ...]


def write_joined(from_: From, scope: Scope, texts: Texts) -> JoinedTexts:
    """Return FROM and WHERE as texts; columns that an inner join or WHERE equates are one in `scope` from then on."""
    conditions = [condition for condition in from_.conditions if not _merge_equal_columns(condition, scope)]
    filters = sorted(text for condition in conditions for text in texts.parts(condition, scope))
    outer_joins = []
    for join in from_.outer_joins:
        parts = sorted(text for condition in join.conditions for text in texts.parts(condition, scope))
        right, left = (
            ", ".join(sorted(scope.relations[alias].label or scope.relations[alias].name for alias in aliases))
            for aliases in (join.joined, join.preserved)
        )
        outer_joins.append(f"{left} {join.word} {right} on {' and '.join(parts)}")
    tables = sorted(relation.name for relation in scope.relations.values())
    return JoinedTexts(tuple(tables), (*scope.equal_columns(), *sorted(outer_joins)), tuple(filters))


def _merge_equal_columns(condition: exp.Expr, scope: Scope) -> bool:
    """Make columns of two relations one if this condition equates them; return whether it does."""
    if not isinstance(condition, exp.EQ):
        return False
    sides = [side.unnest() for side in (condition.this, condition.expression)]
    columns = [side for side in sides if isinstance(side, exp.Column) and not scope.is_text(side)]
    if len(columns) < 2:
        return False
    first, second = map(scope.owner, columns)
    if first is None or second is None or first == second:
        return False
    scope.join_columns(*(scope.column(column.table.lower(), column.name.lower()) for column in columns))
    return True


def _is_true(node: exp.Expr) -> bool:
    """Return whether a condition is always true: TRUE, or a value that equals itself."""
    if isinstance(node, exp.EQ):
        return isinstance(node.this, exp.Literal) and node.this == node.expression
    return isinstance(node, exp.Boolean) and bool(node.this)
