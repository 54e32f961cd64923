"""Expressions and FROM as texts: what is the same for a comparison of queries has the same text.

Values are one placeholder, DISTINCT is dropped, names are resolved, commutative operands are sorted, and columns that
joins make equal are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.columns import Names, Relation, Scope

VALUE = "?"
MAX_TEXT = 500  # characters
Nested: TypeAlias = Callable[[exp.Expr, Scope], str]  # the text of a query within a query

_VALUES = (exp.Literal, exp.Boolean, exp.Placeholder, exp.Parameter, exp.HexString, exp.BitString, exp.National)
# Functions and operators whose result is a value if all operands are.
_AROUND_VALUES = (exp.Neg, exp.Cast, exp.TryCast, exp.Date, exp.Timestamp, exp.Interval)
_COMMUTATIVE = (exp.Add, exp.Mul, exp.NullSafeEQ, exp.NullSafeNEQ)
COMPARISON_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_OPPOSITE = {"=": "!=", "!=": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}
_CONDITIONS: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Is, *COMPARISON_SIGNS)
# Flags that do not change the answer, or nothing that is compared.
_IGNORED_FLAGS = frozenset(("quoted", "big_int", "distinct", "nulls_first", "negate"))
_PLAIN_KINDS = ("", "INNER", "CROSS", "OUTER")
_DEFAULT_SCHEMAS = ("main", "public", "dbo")
_NAMES = frozenset(("this", "alias", "db", "catalog", "joins"))


class TextWriter:
    """Writes expressions as texts; `nested` writes the queries within them."""

    def __init__(self, nested: Nested) -> None:
        self._nested = nested

    def of(self, node: exp.Expr, scope: Scope) -> str:
        """Return the text of an expression; equal texts mean that comparisons take the expressions for the same."""
        match node:
            case exp.Column():
                return self._column(node, scope)
            case exp.Literal():
                return VALUE
            case exp.Paren() | exp.Alias():
                return self.of(node.this, scope)
            case exp.Distinct() if len(node.expressions) == 1:
                return self.of(node.expressions[0], scope)
            case exp.Star() | exp.DataType():
                return _words(node)
            case exp.Null():
                return "null"
            case exp.Query():
                return f"({self._nested(node, scope)})"
            case _ if isinstance(node, _CONDITIONS) or node.args.get("negate"):
                return _joined(self.parts(node, scope), conjunction=True)
            case _ if isinstance(node, _VALUES):
                return VALUE
        return self._compound(node, scope)

    def parts(self, node: exp.Expr, scope: Scope, *, conjunction: bool = True, negated: bool = False) -> list[str]:
        """Return the texts of the conditions that a condition joins by AND, or by OR if `conjunction` is false.

        `negated` says that NOT is around the condition. NOT is moved to the comparisons; BETWEEN and lists become
        comparisons.
        """
        joins_by_and = isinstance(node, exp.And | exp.Between) != negated
        match node:
            case exp.Paren() | exp.Not():
                flipped = negated != isinstance(node, exp.Not)
                return self.parts(node.this, scope, conjunction=conjunction, negated=flipped)
            case exp.And() | exp.Or():
                texts = [
                    text
                    for part in node.flatten()
                    for text in self.parts(part, scope, conjunction=joins_by_and, negated=negated)
                ]
            case exp.Between():
                operand, ends = short(self.of(node.this, scope)), ((">=", "low"), ("<=", "high"))
                texts = [
                    _compared(sign, operand, self.of(node.args[end], scope), negated=negated) for sign, end in ends
                ]
            case exp.In() if node.expressions:
                operand = short(self.of(node.this, scope))
                texts = [_compared("=", operand, self.of(item, scope), negated=negated) for item in node.expressions]
            case _:
                return [self._single(node, scope, negated=negated)]
        return texts if joins_by_and == conjunction else [_joined(texts, conjunction=joins_by_and)]

    def arguments(self, node: exp.Expr, scope: Scope, *, without: frozenset[str]) -> tuple[str, ...]:
        """Return the arguments of a node as texts, except those of the names `without`."""
        return tuple(
            f"{name} {self.of(part, scope) if isinstance(part, exp.Expr) else part}"
            for name, value in node.args.items()
            if value and name not in without
            for part in (value if isinstance(value, list) else [value])
        )

    def _single(self, node: exp.Expr, scope: Scope, *, negated: bool) -> str:
        """Return the text of a single comparison or predicate, with the opposite sign or `not` if it is negated."""
        negated = negated != bool(node.args.get("negate"))
        match node:
            case _ if type(node) in COMPARISON_SIGNS:
                left, right = self.of(node.this, scope), self.of(node.expression, scope)
                return _compared(COMPARISON_SIGNS[type(node)], left, right, negated=negated)
            case exp.In() if node.args.get("query"):
                word = "not in" if negated else "in"
                return f"{self.of(node.this, scope)} {word} {self.of(node.args['query'], scope)}"
            case exp.Is():
                word = "is not" if negated else "is"
                side = node.expression
                right = str(side.this).lower() if isinstance(side, exp.Boolean) else self.of(side, scope)
                return f"{self.of(node.this, scope)} {word} {right}"
            case exp.In():
                text = self._compound(node, scope)
            case _:
                text = self._compound(node, scope) if node.args.get("negate") else self.of(node, scope)
        return f"not {text}" if negated else text

    def _column(self, node: exp.Column, scope: Scope) -> str:
        if isinstance(node.this, exp.Star):
            star = _words(node.this)
            return scope.column(node.table.lower(), star) if len(scope.relations) > 1 else star
        if scope.is_text(node):
            return VALUE
        return scope.column(node.table.lower(), node.name.lower())

    def _compound(self, node: exp.Expr, scope: Scope) -> str:
        """Return the text of a function or an operator with its operands.

        Operands of commutative operators are sorted, values within casts and the like are one placeholder, and words
        that change the meaning follow the operands.
        """
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
        match node:
            case exp.Case():
                operands = list(self._branches(node, scope))
            case exp.Add() | exp.Mul() | exp.DPipe():
                operands = [self.of(part, scope) for part in node.flatten()]
            case _:
                operands = [self.of(part, scope) for part in _expressions(node)]
        if isinstance(node, _AROUND_VALUES) and operands and set(operands) == {VALUE}:
            return VALUE
        if isinstance(node, exp.Count) and operands == [VALUE]:
            operands = ["*"]
        if isinstance(node, _COMMUTATIVE):
            operands.sort()
        flags = sorted(  # words that change the meaning, such as the unit of an interval
            f"{key}={value}".lower()
            for key, value in node.args.items()
            if key not in _IGNORED_FLAGS
            and not (isinstance(node, exp.Anonymous) and key == "this")
            and (isinstance(value, str | exp.DataType | exp.Identifier) or value is True)
        )
        return f"{name}({', '.join([*operands, *flags])})"

    def _branches(self, node: exp.Case, scope: Scope) -> Iterator[str]:
        """Yield the texts of the branches of CASE; if it compares a value, with the whole comparison in each branch."""
        operand = short(self.of(node.this, scope)) if node.this else ""
        for branch in node.args.get("ifs") or ():
            condition = self.of(branch.this, scope)
            if operand:
                condition = _compared("=", operand, condition, negated=False)
            yield f"if({condition}, {self.of(branch.args['true'], scope)})"
        if (default := node.args.get("default")) is not None:
            yield self.of(default, scope)


def _compared(sign: str, first: str, second: str, *, negated: bool) -> str:
    """Return the text of a comparison, with a value to the right, and two columns in the order of their texts."""
    sign = _OPPOSITE[sign] if negated else sign
    if first == VALUE or (second != VALUE and first > second):
        first, second, sign = second, first, MIRRORED[sign]
    return f"{first} {sign} {second}"


def _words(node: exp.Expr) -> str:
    """Return a type, or `*` with the columns that it leaves out or replaces, as SQL in lower case."""
    return "*" if isinstance(node, exp.Star) and not any(node.args.values()) else node.sql().lower()


def _expressions(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a node that are expressions, in the order of its arguments, without aliases and types."""
    for key, value in node.args.items():
        if key in ("alias", "joins") or (isinstance(node, exp.Anonymous) and key == "this"):
            continue
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, exp.Expr) and (
                part is not value or not isinstance(part, exp.DataType | exp.Identifier)
            ):
                yield part


def _joined(parts: list[str], *, conjunction: bool) -> str:
    word = " and " if conjunction else " or "
    return parts[0] if len(parts) == 1 else f"({word.join(sorted(parts))})"


def short(text: str) -> str:
    """Return a text of at most MAX_TEXT characters as it is, a longer text as a digest.

    Texts that are repeated within others could grow without end.
    """
    if len(text) <= MAX_TEXT:
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """A join that keeps rows without a match, or of one side only: what it joins, and on which conditions.

    `preserved` are the relations before it if they may be without a match too: then their order matters.
    """

    word: str
    joined: tuple[str, ...]
    conditions: tuple[exp.Expr, ...]
    preserved: tuple[str, ...] = ()


class From:
    """FROM and WHERE of a SELECT; its relations are added to the scope when it is created.

    `relation` returns the relation of an item that is a query, None for other items.
    """

    def __init__(
        self, names: Names, scope: Scope, texts: TextWriter, relation: Callable[[exp.Expr], Relation | None]
    ) -> None:
        self._names = names
        self._aliases = iter(names.sources)
        self._scope = scope
        self._texts = texts
        self._relation = relation
        self._conditions: list[exp.Expr] = []  # that all rows meet, one by one
        self._outer_joins: list[OuterJoin] = []
        self.on: list[exp.Expr] = []
        """The conditions of all joins as the query has them."""
        select = names.select
        if source := select.args.get("from_"):
            self._add(source.this)
        self._add_joins(select.args.get("joins") or ())
        if where := select.args.get("where"):
            self._keep(where.this)

    def write(self, scope: Scope) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return sorted texts: relations; equal columns and outer joins; conditions that all rows meet.

        `scope` is a numbering of the scope that was read. Columns that an inner join or WHERE equates are one in it
        from then on.
        """
        texts = self._texts
        conditions = [condition for condition in self._conditions if not _merge_equal_columns(condition, scope)]
        filters = sorted(text for condition in conditions for text in texts.parts(condition, scope))
        outer_joins = []
        for join in self._outer_joins:
            parts = sorted(text for condition in join.conditions for text in texts.parts(condition, scope))
            right, left = (
                ", ".join(sorted(scope.relations[alias].label or scope.relations[alias].name for alias in aliases))
                for aliases in (join.joined, join.preserved)
            )
            outer_joins.append(f"{left} {join.word} {right} on {' and '.join(parts)}")
        tables = sorted(relation.name for relation in scope.relations.values())
        return tuple(tables), (*scope.equal_columns(), *sorted(outer_joins)), tuple(filters)

    def _add(self, node: exp.Expr) -> None:
        """Add a relation, with the joins in its parentheses."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self._add(node.this)
        else:
            self._scope.relations[next(self._aliases)] = self._read(node)
        self._add_joins(node.args.get("joins") or ())

    def _read(self, node: exp.Expr) -> Relation:
        if (query := self._relation(node)) is not None:
            return query
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return Relation(self._texts.of(node, self._scope))
        name, schema = node.name.lower(), node.db.lower()
        # A table, without the default schema, and with a sample or the like.
        qualified = name if schema in ("", *_DEFAULT_SCHEMAS) else f"{schema}.{name}"
        return Relation(" ".join([qualified, *self._texts.arguments(node, self._scope, without=_NAMES)]))

    def _add_joins(self, joins: Sequence[exp.Join]) -> None:
        for join in joins:
            first_relation, first_condition = len(self._scope.relations), len(self._conditions)
            self._add(join.this)
            condition = join.args.get("on")
            if condition is not None:
                self.on.append(condition)
                self._keep(condition)
            self._conditions += [
                exp.EQ(this=exp.column(name, left), expression=exp.column(name, right))
                for name, left, right in self._names.joined_columns(join)
            ]
            word = " ".join(filter(None, (join.method, join.side, join.kind))).lower()
            if join.side or join.kind not in _PLAIN_KINDS or join.method not in ("", "NATURAL"):
                self._outer_join(word.removesuffix(" outer").removeprefix("natural "), first_relation, first_condition)

    def _outer_join(self, word: str, first_relation: int, first_condition: int) -> None:
        """Record an outer join, and take its conditions out of those that all rows meet."""
        keeps_joined_rows = word in ("right", "full")
        first_condition = 0 if keeps_joined_rows else first_condition
        conditions = tuple(self._conditions[first_condition:])
        del self._conditions[first_condition:]
        aliases = tuple(self._scope.relations)
        joined, preserved = aliases[first_relation:], aliases[:first_relation] if keeps_joined_rows else ()
        if word == "right" and len(joined) == len(preserved) == 1:
            word, joined, preserved = "left", preserved, ()
        self._outer_joins.append(OuterJoin(word, joined, conditions, preserved))

    def _keep(self, condition: exp.Expr) -> None:
        """Keep the conditions that AND connects as single conditions."""
        for operand in condition.flatten() if isinstance(condition, exp.And) else (condition,):
            inner = operand.unnest()
            if isinstance(inner, exp.And):
                self._keep(inner)
            elif not _is_true(inner):
                self._conditions.append(inner)


def _merge_equal_columns(condition: exp.Expr, scope: Scope) -> bool:
    """Make columns of two relations one in the scope if this condition equates them; return whether it does."""
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
    """Return whether a condition is always true: TRUE, or a literal that equals itself."""
    if isinstance(node, exp.EQ):
        return isinstance(node.this, exp.Literal) and node.this == node.expression
    return isinstance(node, exp.Boolean) and bool(node.this)
