"""Expressions as texts: two expressions that are the same for a comparison of queries have the same text.

Values are one placeholder, DISTINCT is dropped, names are resolved, commutative operands are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.scope import Scope

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


class Texts:
    """Writer of the texts of expressions; `nested` writes those of queries within them."""

    def __init__(self, nested: Nested) -> None:
        self._nested = nested

    def of(self, node: exp.Expr, scope: Scope) -> str:
        """Return the text of an expression."""
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
        """Return the texts of what a condition joins by AND, or by OR where `conjunction` is false.

        NOT is moved to the comparisons; BETWEEN and lists become comparisons.
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
        """Return the arguments of a node other than those of these names, as texts."""
        return tuple(
            f"{name} {self.of(part, scope) if isinstance(part, exp.Expr) else part}"
            for name, value in node.args.items()
            if value and name not in without
            for part in (value if isinstance(value, list) else [value])
        )

    def _single(self, node: exp.Expr, scope: Scope, *, negated: bool) -> str:
        """Return the text of one comparison or one predicate."""
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
        """Return the text of a function or an operator with its operands."""
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
        """Yield the branches of CASE; where it compares one value, each with the whole comparison."""
        operand = short(self.of(node.this, scope)) if node.this else ""
        for branch in node.args.get("ifs") or ():
            condition = self.of(branch.this, scope)
            if operand:
                condition = _compared("=", operand, condition, negated=False)
            yield f"if({condition}, {self.of(branch.args['true'], scope)})"
        if (default := node.args.get("default")) is not None:
            yield self.of(default, scope)


def _compared(sign: str, first: str, second: str, *, negated: bool) -> str:
    """Compare two texts, with the value to the right, and two columns in the order of their texts."""
    sign = _OPPOSITE[sign] if negated else sign
    if first == VALUE or (second != VALUE and first > second):
        first, second, sign = second, first, MIRRORED[sign]
    return f"{first} {sign} {second}"


def _words(node: exp.Expr) -> str:
    """Return a type, or `*` with the columns that it leaves out or replaces, as SQL."""
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
    """Return the text, or a digest of a long one, as texts that are repeated within others could grow without end."""
    if len(text) <= MAX_TEXT:
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
