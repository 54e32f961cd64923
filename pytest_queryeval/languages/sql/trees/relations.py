"""FROM and its joins: the relations, and the columns that the joins make equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.scope import Relation, Scope
from pytest_queryeval.languages.sql.trees.texts import Texts, is_quoted_value

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

    def __init__(self, scope: Scope, texts: Texts, relation: Callable[[exp.Expr], Relation]) -> None:
        self._scope = scope
        self._texts = texts
        self._relation = relation
        self._found = From()

    def read(self, select: exp.Select) -> From:
        """Read FROM with its joins, and WHERE."""
        if source := select.args.get("from_"):
            self._add(source.this)
        self._add_joins(select.args.get("joins") or ())
        if where := select.args.get("where"):
            self._keep(where.this)
        return self._found

    def _add(self, node: exp.Expr) -> None:
        """Add one relation, with the joins in its parentheses."""
        inner = node.this
        if isinstance(node, exp.Subquery) and isinstance(inner, exp.Table):
            self._add(inner)
        elif isinstance(node, exp.Table) and isinstance(inner, exp.Identifier):
            name, schema = node.name.lower(), node.db.lower()
            relation = None if schema else self._scope.named_query(name)
            if relation is None:  # a table, without the default schema, and with a sample or the like
                qualified = name if schema in ("", *_DEFAULT_SCHEMAS) else f"{schema}.{name}"
                rest = self._texts.others(node, self._scope, without=_NAMES)
                relation = self._scope.table(name, " ".join([qualified, *rest]))
            self._scope.add((node.alias or node.name).lower(), relation)
        elif isinstance(node, exp.Subquery):
            self._scope.add(node.alias.lower(), self._relation(node))
        else:
            self._scope.add(node.alias.lower(), Relation(self._texts.of(node, self._scope)))
        self._add_joins(node.args.get("joins") or ())

    def _add_joins(self, joins: Sequence[exp.Join]) -> None:
        for join in joins:
            before, kept = len(self._scope.relations), len(self._found.conditions)
            self._add(join.this)
            condition = join.args.get("on")
            if condition is not None:
                self._found.on.append(condition)
                self._keep(condition)
            self._found.conditions += self._same_names(join, before)
            word = " ".join(filter(None, (join.method, join.side, join.kind))).lower()
            if join.side or join.kind not in _PLAIN_KINDS or join.method not in ("", "NATURAL"):
                self._outer_join(word.removesuffix(" outer").removeprefix("natural "), before, kept)

    def _outer_join(self, word: str, before: int, kept: int) -> None:
        """Take the conditions of this join out of those that all rows meet."""
        both = word in ("right", "full")
        kept = 0 if both else kept
        conditions = tuple(self._found.conditions[kept:])
        del self._found.conditions[kept:]
        aliases = tuple(self._scope.relations)
        joined, preserved = aliases[before:], aliases[:before] if both else ()
        if word == "right" and len(joined) == len(preserved) == 1:
            word, joined, preserved = "left", preserved, ()
        self._found.outer_joins.append(OuterJoin(word, joined, conditions, preserved))

    def _same_names(self, join: exp.Join, before: int) -> Iterator[exp.Expr]:
        """Yield the equalities that USING or NATURAL JOIN implies."""
        if not before or not (join.args.get("using") or join.method == "NATURAL"):
            return
        *known, alias = [*self._scope.relations][: before + 1]
        names = [part.name.lower() for part in join.args.get("using") or ()]
        if join.method == "NATURAL":
            names += self._scope.shared_columns(alias, known)
        for name in names:
            first = next((other for other in known if self._scope.has_column(other, name)), known[-1])
            yield exp.EQ(this=exp.column(name, first), expression=exp.column(name, alias))

    def _keep(self, condition: exp.Expr) -> None:
        """Keep the conditions that AND connects, one by one."""
        for part in condition.flatten() if isinstance(condition, exp.And) else (condition,):
            inner = part.unnest()
            if isinstance(inner, exp.And):
                self._keep(inner)
            elif not _is_true(inner):
                self._found.conditions.append(inner)


@dataclass(frozen=True, slots=True)
class JoinedTexts:
    """FROM and WHERE as texts, each list sorted: relations, what joins make equal and outer joins, other conditions."""

    tables: tuple[str, ...]
    joins: tuple[str, ...]
    filters: tuple[str, ...]


def write_joined(found: From, scope: Scope, texts: Texts) -> JoinedTexts:
    """Return FROM and WHERE as texts; columns that an inner join or WHERE equates are one in `scope` from then on."""
    rest = [part for part in found.conditions if not _merge_equal_columns(part, scope)]
    filters = sorted(text for part in rest for text in texts.parts(part, scope))
    outer_joins = []
    for join in found.outer_joins:
        parts = sorted(text for part in join.conditions for text in texts.parts(part, scope))
        right, left = (
            ", ".join(sorted(scope.relations[alias].label or scope.relations[alias].name for alias in aliases))
            for aliases in (join.joined, join.preserved)
        )
        outer_joins.append(f"{left} {join.word} {right} on {' and '.join(parts)}")
    tables = sorted(relation.name for relation in scope.relations.values())
    return JoinedTexts(tuple(tables), (*scope.equal_columns(), *sorted(outer_joins)), tuple(filters))


def _merge_equal_columns(part: exp.Expr, scope: Scope) -> bool:
    """Make columns of two relations one if this condition equates them; return whether it does."""
    if not isinstance(part, exp.EQ):
        return False
    sides = [side.unnest() for side in (part.this, part.expression)]
    columns = [side for side in sides if isinstance(side, exp.Column) and not is_quoted_value(side, scope)]
    if len(columns) < 2:
        return False
    names = [(column.table.lower(), column.name.lower()) for column in columns]
    first, second = (scope.owner(*name) for name in names)
    if first is None or second is None or first == second:
        return False
    scope.join_columns(*(scope.column(*name) for name in names))
    return True


def _is_true(node: exp.Expr) -> bool:
    """Return whether a condition is always true: TRUE, or a value that equals itself."""
    if isinstance(node, exp.EQ):
        return isinstance(node.this, exp.Literal) and node.this == node.expression
    return isinstance(node, exp.Boolean) and bool(node.this)
