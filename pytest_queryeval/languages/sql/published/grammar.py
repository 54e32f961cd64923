"""The grammar of Spider's published parser: from the text of a query to its raw view.

What it reads is narrow, and this is all of it:

    query:      [(] SELECT [DISTINCT] items FROM tables [WHERE conditions] [GROUP BY columns] [HAVING conditions]
                [ORDER BY expressions] [LIMIT whole number] [)] [UNION, INTERSECT or EXCEPT query]
    items:      [aggregate] expression, the commas between them may be missing
    tables:     name [AS alias] or (query), JOIN between them may be missing, [ON conditions] after each
    conditions: expression [NOT] operator value, with AND or OR between them and no parentheses around them
    expression: one operand, or two with - + * / between them, [in parentheses]
    operand:    [aggregate(] [DISTINCT] column [)]
    value:      number, literal, query, column; [in parentheses] but for a column; two with AND for BETWEEN

So there are no column aliases, aliases without AS, commas or INNER, LEFT, CROSS between tables, functions, literals as
expressions, CASE, `<>`, EXISTS, IS NULL, lists of values, UNION ALL. Text after the part that was read is ignored. So
is the rest up to a clause, a comma, `)`, AND or JOIN after a column that is used as a value. One direction, the last
one, counts for all of ORDER BY.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.languages.sql.published.names import Names, names_of
from pytest_queryeval.languages.sql.published.tokens import END, Cursor, UnreadableQueryError, tokens_of, word_text
from pytest_queryeval.languages.sql.view import Condition, Conditions, Expression, Item, Ordering, View

MAX_DEPTH = 50  # queries within queries; the published parser ends at some 300, in an error of Python's own
AGGREGATES = {"none": "", "max": "max", "min": "min", "count": "count", "sum": "sum", "avg": "avg"}
ARITHMETIC = {"none": "", "-": "-", "+": "+", "*": "*", "/": "/"}
OPERATORS = frozenset({"not", "between", "=", ">", "<", ">=", "<=", "!=", "in", "like", "is", "exists"})
SET_OPERATIONS = frozenset({"intersect", "union", "except"})
CLAUSES = frozenset({"select", "from", "where", "group", "order", "limit"}) | SET_OPERATIONS
CLAUSE_ENDS = CLAUSES | {")", ";", END}
CONDITION_ENDS = CLAUSE_ENDS | {"join", "on", "as"}
COLUMN_VALUE_ENDS = CLAUSES | {"join", "on", "as", "and", ",", ")", END}

Operand: TypeAlias = tuple[str, Column, bool | None]  # aggregate, column, DISTINCT
# The operator between two operands, and these; the key of an expression, except in GROUP BY, where it is one operand
Arithmetic: TypeAlias = tuple[str, Operand, Operand | None]


@lru_cache(maxsize=1024)
def published_view(query: str, schema: Schema | None = None) -> View:
    """Return the raw view of a query, with its values and DISTINCT.

    Without a schema names are not looked up, and a query that only a schema makes readable is rejected. Raise
    `UnreadableQueryError` for what the published grammar rejects.
    """
    return _Reader(tokens_of(query), names_of(schema)).query()


class _Reader(Cursor):
    """Reader of tokens, once from left to right; only FROM is read before the SELECT that precedes it."""

    def __init__(self, tokens: list[str], names: Names) -> None:
        super().__init__(tokens)
        self.names = names
        self.aliases = names.aliases(tokens)
        self.depth = 0

    def query(self) -> View:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableQueryError(f"more than {MAX_DEPTH} queries within each other")
        in_parentheses = self.took("(")
        view = self.select()
        self.skip_semicolons()
        if in_parentheses:
            self.expect(")")
        self.skip_semicolons()
        if self.word in SET_OPERATIONS:
            operation = self.take()
            view = replace(view, operation=operation, arm=self.query())
        self.depth -= 1
        return view

    def select(self) -> View:
        first = self.place
        tables, on = self.from_clause()
        names = _names(tables)
        after, self.place = self.place, first
        distinct, items = self.select_clause(names)
        self.place = after
        return View(
            select=items,
            distinct=distinct,
            tables=tables,
            on=on,
            where=self.conditions_clause("where", names),
            group=self.group_clause(names),
            having=self.conditions_clause("having", names),
            order=self.order_clause(names),
            limit=self.limit_clause(),
        )

    def from_clause(self) -> tuple[tuple[Hashable, ...], Conditions]:
        """Read the next FROM of the text, wherever it is; `place` is after it then."""
        try:
            self.place = self.tokens.index("from", self.place) + 1
        except ValueError:
            raise UnreadableQueryError("no FROM") from None
        tables: list[Hashable] = []
        names: dict[str, None] = {}
        conditions: list[Hashable] = []
        while self.word != END:
            in_parentheses = self.took("(")
            tables.append(self.query() if self.word == "select" else self.table())
            names |= _names(tables[-1:])
            if self.took("on"):
                joined = self.conditions(names)
                conditions += ["and", *joined] if conditions else joined
            if in_parentheses:
                self.expect(")")
            if self.word in CLAUSE_ENDS:
                break
        return tuple(tables), _as_conditions(conditions)

    def table(self) -> str:
        self.took("join")
        table = self.names.table(self.take(), self.aliases)
        if self.word == "as":
            self.place += 2
        return table

    def select_clause(self, tables: Iterable[str]) -> tuple[bool, tuple[Item, ...]]:
        self.expect("select")
        distinct = self.took("distinct")
        items = []
        while self.word not in CLAUSES:
            aggregate = AGGREGATES[self.take()] if self.word in AGGREGATES else ""
            items.append(Item(aggregate, self.expression(tables)))
            self.took(",")
        return distinct, tuple(items)

    def conditions_clause(self, word: str, tables: Iterable[str]) -> Conditions:
        return _as_conditions(self.conditions(tables) if self.took(word) else [])

    def group_clause(self, tables: Iterable[str]) -> tuple[Expression, ...]:
        columns: list[Expression] = []
        if not self.took("group"):
            return ()
        self.expect("by")
        while self.word not in CLAUSE_ENDS:
            operand = self.operand(tables)
            columns.append(Expression(operand, operand[1][1], int(operand[0] != "")))
            if not self.took(","):
                break
        return tuple(columns)

    def order_clause(self, tables: Iterable[str]) -> Ordering | None:
        if not self.took("order"):
            return None
        self.expect("by")
        direction, expressions = "asc", []
        while self.word not in CLAUSE_ENDS:
            expressions.append(self.expression(tables))
            if self.word in ("asc", "desc"):
                direction = self.take()
            if not self.took(","):
                break
        return Ordering(direction, tuple(expressions))

    def limit_clause(self) -> int | None:
        if not self.took("limit"):
            return None
        try:
            return int(self.take())
        except ValueError:
            raise UnreadableQueryError("LIMIT without a whole number") from None

    def conditions(self, tables: Iterable[str]) -> list[Hashable]:
        """Read conditions and connectors; of two conditions without a connector the second takes its place."""
        parts: list[Hashable] = []
        while self.word != END:
            parts.append(self.condition(tables))
            if self.word in CONDITION_ENDS:
                break
            if self.word in ("and", "or"):
                parts.append(self.take())
        return parts

    def condition(self, tables: Iterable[str]) -> Condition:
        left = self.expression(tables)
        negated = self.took("not")
        if self.word not in OPERATORS:
            raise UnreadableQueryError(f"{word_text(self.word)} is not an operator of a condition")
        operator = self.take()
        values: tuple[Hashable, ...] = (self.value(tables),)
        if operator == "between":
            self.expect("and")
            values += (self.value(tables),)
        return Condition(negated, operator, left, values)

    def value(self, tables: Iterable[str]) -> Hashable:
        in_parentheses = self.took("(")
        value = self.query() if self.word == "select" else self.plain_value(tables, in_parentheses)
        if in_parentheses:
            self.expect(")")
        return value

    def plain_value(self, tables: Iterable[str], in_parentheses: bool) -> Hashable:
        if '"' in self.word:
            return self.take()
        try:
            number = float(self.word)
        except ValueError:
            return self.column_value(tables, in_parentheses)
        self.place += 1
        return number

    def column_value(self, tables: Iterable[str], in_parentheses: bool) -> Operand:
        """Read a column, and skip whatever follows it."""
        if in_parentheses or self.word in AGGREGATES:
            raise UnreadableQueryError("an aggregate, a list or a column in parentheses as a value")
        distinct = self.took("distinct")
        if self.word in COLUMN_VALUE_ENDS:
            raise UnreadableQueryError("a condition without a value")
        column = self.column(tables)
        while self.word not in COLUMN_VALUE_ENDS:
            self.place += 1
        return "", column, distinct

    def expression(self, tables: Iterable[str]) -> Expression:
        in_parentheses = self.took("(")
        first, second, operator = self.operand(tables), None, ""
        if self.word in ARITHMETIC:
            operator = ARITHMETIC[self.take()]
            second = self.operand(tables)
        if in_parentheses:
            self.expect(")")
        aggregates = (first[0] != "") + (second is not None and second[0] != "")
        return Expression((operator, first, second), "", aggregates)

    def operand(self, tables: Iterable[str]) -> Operand:
        """Read an operand; a parenthesis around an aggregate is left open, as published."""
        in_parentheses = self.took("(")
        aggregated, aggregate = self.word in AGGREGATES, ""
        if aggregated:
            aggregate = AGGREGATES[self.take()]
            self.expect("(")
        distinct = self.took("distinct")
        column = self.column(tables)
        if aggregated or in_parentheses:
            self.expect(")")
        return aggregate, column, distinct

    def column(self, tables: Iterable[str]) -> Column:
        return self.names.column(self.take(), self.aliases, tables)


def _names(tables: Iterable[Hashable]) -> dict[str, None]:
    """Return the tables that have names, each once."""
    return {table: None for table in tables if isinstance(table, str)}


def _as_conditions(parts: Sequence[Hashable]) -> Conditions:
    """Split a list whose every other item is a condition."""
    terms = tuple(term for term in parts[::2] if isinstance(term, Condition))
    if len(terms) < len(parts[::2]):
        raise UnreadableQueryError("conditions without a connector")
    return Conditions(terms, tuple(parts[1::2]))
