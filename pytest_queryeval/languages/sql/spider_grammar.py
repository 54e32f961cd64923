"""Spider's published parser: from the text of a query, as tokens with resolved names, to its raw view.

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

Tokens are those of a tokenizer of English prose, that of NLTK, as it reads SQL: `x>3` is three tokens, but `x=3` is
one, and `x>=3` is `x`, `>` and `=3`. Names are resolved as the published parser does it, with and without a schema.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.languages.sql.view import Condition, Conditions, Expression, Item, Ordering, View

END = ""  # after the last token, so that looking ahead needs no check
STAR: Column = ("", "*")
Aliases: TypeAlias = Mapping[str, str]
_RESERVED = frozenset(
    {"all", "and", "as", "asc", "between", "by", "case", "cast", "cross", "desc", "distinct", "else", "end", "except"}
    | {"exists", "from", "full", "group", "having", "in", "inner", "intersect", "is", "join", "left", "like", "limit"}
    | {"natural", "not", "null", "offset", "on", "or", "order", "outer", "right", "select", "then", "union", "using"}
    | {"when", "where"}
)
_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)?")
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


class UnreadableQueryError(ValueError):
    """The published grammar rejects the query; the message says why."""


_QUOTED = re.compile(r'"[^"]*"')
_ALONE = r";@#$%&?!*\[\](){}<>«»\u2018\u2019\u201c-\u201e\u2012-\u2015"
_PART = rf"[^\s{_ALONE}.:,`-]"
# A period is a token where a sentence ends: at the end of the text, before a space and before what no word contains.
# Between a number or a single letter and a lower-case letter it belongs to an abbreviation.
_PERIOD = r"\.(?=[\s)\"';}\]*:@({\[!?\u2018\u2019\u201c\u201d«»]|\Z)"
_KEEPS_PERIOD = r"(?:-?\d++(?:[.,]\d++)*+|[^\W\d_])\.(?=\s++[a-z])"
_TOKEN = re.compile(
    rf"""
      \.{{2,}} | -- | `` | ` | [{_ALONE}]
    | {_KEEPS_PERIOD}
    | {_PERIOD}
    | [:,](?!\d)
    | (?: {_PART}++ | (?!{_PERIOD})\.(?!\.) | -(?!-) | [:,](?=\d) )++
    """,
    re.VERBOSE,
)
_CONTRACTED = re.compile(r"\b(can)(not)\b|\b(gim|lem)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(wan)(na)\Z")
_CONTRACTIONS = ("cannot", "gimme", "lemme", "gonna", "gotta", "wanna")
MAX_SHOWN = 40  # characters of a word in a message


def tokens_of(text: str) -> list[str]:
    """Return the tokens in lower case, literals in double quotes as they were written, and `END`.

    Either quote opens and closes a literal. `!=`, `>=` and `<=` are one token, also with a space inside. Raise
    `UnreadableQueryError` if a quote is not closed.
    """
    text = text.replace("'", '"')
    if text.count('"') % 2:
        raise UnreadableQueryError("a quote is not closed")
    literals: dict[str, str] = {}

    def replace_literal(match: re.Match[str]) -> str:
        # A word, so that the literal joins the text next to it, and is then no longer a literal.
        placeholder = f"__text_{len(literals)}__"
        literals[placeholder] = match[0]
        return placeholder

    bare = _QUOTED.sub(replace_literal, text)
    words = [token.lower() for token in _TOKEN.findall(bare)]
    if any(word in bare.lower() for word in _CONTRACTIONS):
        words = [part for token in words for part in _CONTRACTED.sub(_split_contraction, token).split()]
    tokens: list[str] = []
    for word in words:
        if word == "=" and tokens and tokens[-1] in ("!", ">", "<"):
            tokens[-1] += word
        else:
            tokens.append(literals.get(word, word))
    return [*tokens, END]


def _split_contraction(match: re.Match[str]) -> str:
    return " ".join(["", *filter(None, match.groups()), ""])


def word_text(word: str) -> str:
    """Return a word of a query for a message: in quotes, without control characters, and truncated."""
    if word == END:
        return "the end"
    return repr(word if len(word) <= MAX_SHOWN else word[: MAX_SHOWN - 1] + "…")


class Names:
    """Looks up names in the tables of a database; without tables, any name that is not a word of SQL is known.

    An unqualified name is a column of the first table in FROM that has it. Methods raise `UnreadableQueryError` for an
    unknown name. Without tables, what only these can distinguish from a name is rejected: aliases without AS,
    functions, items without a comma.
    """

    def __init__(self, schema: Schema) -> None:
        self._tables = {table: frozenset(columns) for table, columns in schema.tables.items()}
        self._equal = _representatives(schema)

    def equal_columns(self, tables: Collection[Hashable]) -> Mapping[Column, Column]:
        """Return the representative of each column of these tables that foreign keys make equal to other columns."""
        return {column: representative for column, representative in self._equal.items() if column[0] in tables}

    def aliases(self, tokens: Sequence[str]) -> Aliases:
        """Return each alias with the word before its AS, regardless of scopes: a later alias wins.

        Raises `UnreadableQueryError` for AS at the end, and for an alias that is a table's name.
        """
        for word, following in pairwise(tokens) if not self._tables else ():
            if _is_name(word) and (following == "(" or _is_name(following)):
                raise UnreadableQueryError(f"{word_text(following)} after the name {word_text(word)}")
        aliases = {}
        for at, word in enumerate(tokens):
            if word == "as":
                if tokens[at + 1] == END:
                    raise UnreadableQueryError("nothing after AS")
                aliases[tokens[at + 1]] = tokens[at - 1]
        for alias in aliases:
            if alias in self._tables:
                raise UnreadableQueryError(f"the alias {word_text(alias)} is a table's name")
        return aliases

    def table(self, name: str, aliases: Aliases) -> str:
        """Return the table that a name in FROM refers to; raise `UnreadableQueryError` if the schema lacks it."""
        table = aliases.get(name, name)
        if not self._tables:
            _require_name(table)
        elif table not in self._tables:
            raise UnreadableQueryError(f"no table {word_text(name)}")
        return table

    def column(self, name: str, aliases: Aliases, tables: Iterable[str]) -> Column:
        """Return the table and the column that a name refers to, in a query from these tables; STAR for `*`.

        Without tables in the schema, the table is the name before the dot, or "". Raise `UnreadableQueryError` if no
        table has the column.
        """
        if name == "*":
            return STAR
        *owners, column = name.split(".", 1)
        owners = [aliases.get(owner, owner) for owner in owners]
        if not self._tables:
            _require_name(name)
            return "".join(owners), column
        for table in owners or tables:
            if column in self._tables.get(table, ()):
                return table, column
        raise UnreadableQueryError(f"no column {word_text(name)}")


@lru_cache(maxsize=256)
def names_of(schema: Schema | None) -> Names:
    """Return the lookup of a schema, which is cached; without a schema any name is known."""
    return Names(schema or Schema())


def _require_name(name: str) -> None:
    if not _is_name(name):
        raise UnreadableQueryError(f"{word_text(name)} is not a name")


def _is_name(token: str) -> bool:
    return _WORD.fullmatch(token) is not None and token not in _RESERVED and token not in AGGREGATES


def _representatives(schema: Schema) -> dict[Column, Column]:
    """Map each column of a foreign key to one of the columns that equal it: the first in the order of the schema.

    Sets of equal columns grow with each key. A key that connects two sets does not merge them, as published.
    """
    groups: list[dict[Column, None]] = []
    for first, second in schema.foreign_keys:
        group = next((group for group in groups if first in group or second in group), None)
        if group is None:
            groups.append(group := {})
        group |= {first: None, second: None}
    columns = ((table, column) for table, columns in schema.tables.items() for column in columns)
    places = {column: place for place, column in enumerate(columns)}
    representatives: dict[Column, Column] = {}
    for group in groups:
        representatives |= dict.fromkeys(group, min(group, key=lambda column: places.get(column, len(places))))
    return representatives


@lru_cache(maxsize=1024)
def published_view(query: str, schema: Schema | None = None) -> View:
    """Return the raw view of a query, with its values and DISTINCT. Cached.

    Without a schema names are not looked up, and a query that only a schema makes readable is rejected. Raises
    `UnreadableQueryError` for a query that the published grammar rejects.
    """
    return _SpiderParser(tokens_of(query), names_of(schema)).query()


class _SpiderParser:
    """Reads tokens once from left to right; only FROM is read before the SELECT that precedes it.

    `place` is the index of the next token.
    """

    def __init__(self, tokens: list[str], names: Names) -> None:
        self.tokens = tokens
        self.place = 0
        self.names = names
        self.aliases = names.aliases(tokens)
        self.depth = 0

    @property
    def word(self) -> str:
        """The next token."""
        return self.tokens[self.place]

    def take(self) -> str:
        """Return the next token and go behind it; stay at the end of the text."""
        token = self.tokens[self.place]
        self.place += token != END
        return token

    def accept(self, token: str) -> bool:
        """Return whether the next token is `token`, and take it if so."""
        if self.tokens[self.place] != token:
            return False
        self.place += 1
        return True

    def expect(self, token: str) -> None:
        """Take the next token if it is `token`; otherwise raise `UnreadableQueryError`."""
        if not self.accept(token):
            raise UnreadableQueryError(f"{word_text(self.word)} instead of '{token}'")

    def skip_semicolons(self) -> None:
        """Take all semicolons that come next."""
        while self.accept(";"):
            pass

    def query(self) -> View:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableQueryError(f"more than {MAX_DEPTH} queries within each other")
        in_parentheses = self.accept("(")
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
        names = _table_names(tables)
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
        """Read the next FROM of the text, wherever it is; afterwards `place` is behind it."""
        try:
            self.place = self.tokens.index("from", self.place) + 1
        except ValueError:
            raise UnreadableQueryError("no FROM") from None
        tables: list[Hashable] = []
        names: dict[str, None] = {}
        conditions: list[Hashable] = []
        while self.word != END:
            in_parentheses = self.accept("(")
            tables.append(self.query() if self.word == "select" else self.table())
            names |= _table_names(tables[-1:])
            if self.accept("on"):
                joined = self.conditions(names)
                conditions += ["and", *joined] if conditions else joined
            if in_parentheses:
                self.expect(")")
            if self.word in CLAUSE_ENDS:
                break
        return tuple(tables), _as_conditions(conditions)

    def table(self) -> str:
        self.accept("join")
        table = self.names.table(self.take(), self.aliases)
        if self.word == "as":
            self.place += 2
        return table

    def select_clause(self, tables: Iterable[str]) -> tuple[bool, tuple[Item, ...]]:
        self.expect("select")
        distinct = self.accept("distinct")
        items = []
        while self.word not in CLAUSES:
            aggregate = AGGREGATES[self.take()] if self.word in AGGREGATES else ""
            items.append(Item(aggregate, self.expression(tables)))
            self.accept(",")
        return distinct, tuple(items)

    def conditions_clause(self, word: str, tables: Iterable[str]) -> Conditions:
        return _as_conditions(self.conditions(tables) if self.accept(word) else [])

    def group_clause(self, tables: Iterable[str]) -> tuple[Expression, ...]:
        columns: list[Expression] = []
        if not self.accept("group"):
            return ()
        self.expect("by")
        while self.word not in CLAUSE_ENDS:
            operand = self.operand(tables)
            columns.append(Expression(operand, operand[1][1], int(operand[0] != "")))
            if not self.accept(","):
                break
        return tuple(columns)

    def order_clause(self, tables: Iterable[str]) -> Ordering | None:
        if not self.accept("order"):
            return None
        self.expect("by")
        direction, expressions = "asc", []
        while self.word not in CLAUSE_ENDS:
            expressions.append(self.expression(tables))
            if self.word in ("asc", "desc"):
                direction = self.take()
            if not self.accept(","):
                break
        return Ordering(direction, tuple(expressions))

    def limit_clause(self) -> int | None:
        if not self.accept("limit"):
            return None
        try:
            return int(self.take())
        except ValueError:
            raise UnreadableQueryError("LIMIT without a whole number") from None

    def conditions(self, tables: Iterable[str]) -> list[Hashable]:
        """Read conditions, and the connectors between them.

        If a connector is missing, the next condition stands at its place in the list.
        """
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
        negated = self.accept("not")
        if self.word not in OPERATORS:
            raise UnreadableQueryError(f"{word_text(self.word)} is not an operator of a condition")
        operator = self.take()
        values: tuple[Hashable, ...] = (self.value(tables),)
        if operator == "between":
            self.expect("and")
            values += (self.value(tables),)
        return Condition(negated, operator, left, values)

    def value(self, tables: Iterable[str]) -> Hashable:
        in_parentheses = self.accept("(")
        value: Hashable
        if self.word == "select":
            value = self.query()
        elif '"' in self.word:
            value = self.take()
        else:
            try:
                value = float(self.word)
                self.place += 1
            except ValueError:
                value = self.column_value(tables, in_parentheses)
        if in_parentheses:
            self.expect(")")
        return value

    def column_value(self, tables: Iterable[str], in_parentheses: bool) -> Operand:
        """Read a column that is used as a value, and skip whatever follows it."""
        if in_parentheses or self.word in AGGREGATES:
            raise UnreadableQueryError("an aggregate, a list or a column in parentheses as a value")
        distinct = self.accept("distinct")
        if self.word in COLUMN_VALUE_ENDS:
            raise UnreadableQueryError("a condition without a value")
        column = self.column(tables)
        while self.word not in COLUMN_VALUE_ENDS:
            self.place += 1
        return "", column, distinct

    def expression(self, tables: Iterable[str]) -> Expression:
        in_parentheses = self.accept("(")
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
        in_parentheses = self.accept("(")
        aggregated, aggregate = self.word in AGGREGATES, ""
        if aggregated:
            aggregate = AGGREGATES[self.take()]
            self.expect("(")
        distinct = self.accept("distinct")
        column = self.column(tables)
        if aggregated or in_parentheses:
            self.expect(")")
        return aggregate, column, distinct

    def column(self, tables: Iterable[str]) -> Column:
        return self.names.column(self.take(), self.aliases, tables)


def _table_names(tables: Iterable[Hashable]) -> dict[str, None]:
    """Return the tables that have names, without repetition."""
    return {table: None for table in tables if isinstance(table, str)}


def _as_conditions(parts: Sequence[Hashable]) -> Conditions:
    """Return the conditions at even places of a list, and what is between them as connectors.

    Raise `UnreadableQueryError` if a connector is at the place of a condition.
    """
    terms = tuple(term for term in parts[::2] if isinstance(term, Condition))
    if len(terms) < len(parts[::2]):
        raise UnreadableQueryError("conditions without a connector")
    return Conditions(terms, tuple(parts[1::2]))
