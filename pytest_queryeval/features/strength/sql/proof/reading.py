"""Reads SQL queries for proofs, unless an engine may read them differently from the parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import count, pairwise

from sqlglot import Token, TokenType, exp

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.features.strength.sql.proof.query import (
    MAX_EXPANDED_NODES,
    Block,
    OuterJoin,
    Query,
    SetOperation,
    Term,
    UnprovableError,
    conjuncts,
    constant_of,
    family_of,
    have_one_family,
    require_own_aggregates,
    without_columns,
)
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns, Names, find_cte
from pytest_queryeval.languages.sql.parsing import without_warnings

MAX_NODES = 400
MAX_TABLES = 8
# Nodes whose keys are the operators of terms.
_OPERATORS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul)
_FLIPPED: dict[type[exp.Expr], str] = {exp.GT: "lt", exp.GTE: "lte"}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
# Functions whose value is the same wherever it is computed; others are not understood.
_PURE = (
    *(exp.Div, exp.Mod, exp.DPipe, exp.Like, exp.ILike, exp.Lower, exp.Upper, exp.Length, exp.Abs, exp.Cast),
    *(exp.DataType, exp.Substring, exp.Round, exp.Trim, exp.Coalesce, exp.Case, exp.If, exp.Neg, exp.Escape),
    *(exp.Interval, exp.Extract, exp.Year, exp.Month, exp.Day),
)

# Names that DuckDB reads as values, without quotes, if no table in the nearest FROM has such a column.
_VALUES_OF_DUCKDB = frozenset(("user", "current_schema", "current_role"))
# Types of DuckDB whose values have parts.
_NESTED_TYPE = re.compile(r"\[|\b(ARRAY|LIST|MAP|STRUCT|UNION)\b", re.IGNORECASE)
# Numbers that no engine rounds, also where it compares them with integers.
_PLAIN_NUMBER = re.compile(r"\d{1,18}|\d{1,9}\.\d{1,6}")
# Types that sqlglot takes for others, with which SQLite makes other values.
_AMBIGUOUS_TYPES = re.compile(r"\b(STR|STRING|LONG|SHORT|BYTE|BYTEA|VARBINARY|BLOB)\b", re.IGNORECASE)
BOOLEANS = frozenset(("true", "false"))  # names of columns that SQLite reads also without quotes
_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike, exp.Between, exp.Is, exp.Glob),
    *(exp.LT, exp.LTE, exp.GT, exp.GTE),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_OPERAND_ENDS = frozenset(
    (
        *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN),
        *(TokenType.STAR, TokenType.END, TokenType.NULL),
    )
)


@without_warnings()
def read(text: str, dialect: str, tables: Tables, used: dict[str, None]) -> Query:
    """Return a query in the form for proofs, and add the rules that reading it needs to `used`.

    Raise `UnprovableError` if a part of the query is not understood or may have another meaning to an engine.
    """
    shared_tree = parse_query(text, dialect).whole_tree
    if shared_tree is None:
        raise UnprovableError("it cannot be read")
    tree = shared_tree.copy()
    if sum(1 for _ in tree.walk()) > MAX_NODES:
        raise UnprovableError("it is too long")
    columns = Columns({name: table.by_name for name, table in tables.items()}, dialect)
    columns.replace_texts(tree)
    require_one_meaning(shared_tree, text, dialect)
    query = _Reader(tables, columns, used, dialect).query(tree)
    if isinstance(tree, exp.Subquery) and isinstance(query, Block) and query.limit is not None:
        raise UnprovableError("LIMIT in parentheses, of which it is not known which rows tie")
    return query


class _Reader:
    def __init__(self, tables: Tables, columns: Columns, used: dict[str, None], dialect: str) -> None:
        self._tables = tables
        self._columns = columns
        self._used = used
        self._dialect = dialect
        self._numbers = count()  # of aliases
        self._sizes = count()  # how many expressions and SELECTs have been read
        self._aliases: dict[tuple[int, str], str] = {}  # by the id of the names of a SELECT, and the alias there

    def query(self, node: exp.Expr) -> Query:
        """Return a SELECT or a set operation, also in parentheses, in the form for proofs.

        Raise `UnprovableError` for other nodes, and for nested set operations of different types.
        """
        if isinstance(node, exp.Subquery):
            _require_only(node, "this", "alias")
            return self.query(node.this)
        if isinstance(node, exp.Select):
            return self._block(node)
        if not isinstance(node, exp.SetOperation):
            raise UnprovableError(type(node).__name__)
        operator = node.key if node.args.get("distinct") else f"{node.key} all"
        if operator not in ("union", "union all", "intersect", "except"):
            raise UnprovableError(operator)
        _require_only(node, "this", "expression", "distinct")
        if any(
            isinstance(side, exp.SetOperation) and type(side) is not type(node) for side in (node.this, node.expression)
        ):
            raise UnprovableError("set operations of which dialects bind another one first")
        return SetOperation(operator=operator, left=self.query(node.this), right=self.query(node.expression))

    def _block(self, select: exp.Select) -> Block:
        clauses = ("from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_")
        _require_only(select, "expressions", *clauses)
        if (common := select.args.get("with_")) is not None and common.args.get("recursive"):
            raise UnprovableError("WITH RECURSIVE")
        if select.args.get("offset") is not None and select.args.get("limit") is None:
            raise UnprovableError("OFFSET without LIMIT")
        if select.args.get("having") is not None and select.args.get("group") is None:
            raise UnprovableError("HAVING without GROUP BY")
        self._count_part()
        names = self._columns.names(select)
        tables, where, outer_joins = self._from(select, names)
        if (clause := select.args.get("where")) is not None:
            where += conjuncts(self._term(clause.this))
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise UnprovableError("DISTINCT ON")
        items = list(self._selected_terms(select, names))
        group = select.args.get("group")
        if group is not None:
            _require_only(group, "expressions")
        having = select.args.get("having")
        block = Block(
            tables=tables,
            outer_joins=tuple(outer_joins),
            where=tuple(where),
            select=tuple(term for term, _ in items),
            names=tuple(name for _, name in items),
            is_distinct=distinct is not None,
            group=None if group is None else tuple(self._key_term(key, select, items) for key in group.expressions),
            having=() if having is None else tuple(conjuncts(self._term(having.this))),
            order=tuple(self._order(select, items)),
            limit=_row_number(select.args.get("limit")),
            offset=_row_number(select.args.get("offset")) or 0,
        )
        require_own_aggregates(block)
        return block

    def _from(self, select: exp.Select, names: Names) -> tuple[dict[str, str | Query], list[Term], list[OuterJoin]]:
        if len(names.sources) > MAX_TABLES:
            raise UnprovableError("many tables")
        tables: dict[str, str | Query] = {}
        where: list[Term] = []
        outer_joins: list[OuterJoin] = []
        from_ = select.args.get("from_")
        items: list[tuple[exp.Expr, exp.Join | None]] = [(from_.this, None)] if from_ is not None else []
        items += [(join.this, join) for join in select.args.get("joins") or ()]
        for (alias, source), (node, join) in zip(names.sources.items(), items, strict=False):
            if source.node is not node or node.args.get("joins"):
                raise UnprovableError("joins in parentheses")
            unique_alias = self._alias(names, alias)
            tables[unique_alias] = self._source(node)
            if join is None:
                continue
            _require_only(join, "this", "on", "side", "kind")
            conditions = conjuncts(self._term(join.args["on"])) if join.args.get("on") is not None else []
            if join.side == "LEFT" and join.kind in ("", "OUTER"):
                outer_joins.append(OuterJoin(alias=unique_alias, conditions=tuple(conditions)))
            elif join.side or join.kind not in ("", "INNER", "CROSS"):
                raise UnprovableError("JOIN")
            else:
                where += conditions
        if len(tables) != len(items) or {node.alias_or_name.lower() for node, _ in items} != names.sources.keys():
            raise UnprovableError("FROM")
        return tables, where, outer_joins

    def _source(self, node: exp.Expr) -> str | Query:
        if not isinstance(node, exp.Table | exp.Subquery) or node.alias_column_names:
            raise UnprovableError("FROM")
        _require_only(node, "this", "alias")
        if isinstance(node, exp.Subquery):
            return _with_distinct_names(self.query(node.this))
        if (common := find_cte(node)) is not None:
            if common.alias_column_names:
                raise UnprovableError("WITH")
            reader = copy(self)
            reader._aliases = {}  # each use has columns of its own
            return _with_distinct_names(reader.query(common.this))
        self._check_table(node)
        return node.name.lower()

    def _check_table(self, node: exp.Table) -> None:
        """Raise `UnprovableError` for an unknown table, or if equal names or values in the table may differ.

        Causes are collations, columns that differ in case, columns called `true` or `false`, and lists or structs.
        """
        name = node.name.lower()
        if name not in self._tables:
            raise UnprovableError("an unknown table")
        if any(common.alias.lower() == name for common in node.root().find_all(exp.CTE)):
            raise UnprovableError("a query of WITH that may read itself or one after it")
        columns, names = self._tables[name].columns, self._tables[name].by_name
        if any(column.is_collated for column in columns):
            raise UnprovableError("a collation, by which texts that differ may be equal")
        if len(names) < len(columns):
            raise UnprovableError("columns that differ in the case of their names")
        if not BOOLEANS.isdisjoint(names):
            raise UnprovableError("a column that SQLite reads for true or false")
        if any(_NESTED_TYPE.search(column.type) for column in columns):
            raise UnprovableError("a list, which + joins to another, or a part of which is named like a column")

    def _selected_terms(self, select: exp.Select, names: Names) -> Iterator[tuple[Term, str]]:
        """Yield each selected expression with its name, which is empty if engines choose it.

        `*` yields its columns. Raise `UnprovableError` for a `*` whose columns are unknown.
        """
        for item in select.expressions:
            if not item.is_star or isinstance(item.unalias(), exp.Count):
                is_named = isinstance(item, exp.Alias | exp.Column)
                yield self._term(item.unalias()), item.alias_or_name.lower() if is_named else ""
                continue
            star = item.this if isinstance(item, exp.Column) else item
            if any(star.args.values()):
                raise UnprovableError("*")
            prefix = item.table.lower() if isinstance(item, exp.Column) else ""
            for alias, source in names.sources.items():
                if prefix in ("", alias):
                    if source.columns is None:
                        raise UnprovableError("*")
                    yield from ((self._column_term(names, alias, name), name) for name in source.columns)

    def _key_term(self, node: exp.Expr, select: exp.Select, items: list[tuple[Term, str]]) -> Term:
        """Return the expression of a key of GROUP BY or ORDER BY, also if the key is an alias or a position.

        Raise `UnprovableError` for other constants, and for a name of both a column and another expression.
        """
        node = node.unnest()
        if isinstance(node, exp.Literal):
            if node.is_string or not node.name.isdecimal() or not 0 < int(node.name) <= len(items):
                raise UnprovableError("a constant as a key")
            return items[int(node.name) - 1][0]
        if isinstance(node, exp.Column) and not node.table:
            aliased = [
                item
                for item in select.expressions
                if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower()
            ]
            column = self._columns.names(select).find_known(node.name.lower())
            if len(aliased) > 1 or (aliased and column and not self._is_column(aliased[0].this, node.name, column)):
                raise UnprovableError("a name of a column and of an expression")
            if aliased:
                return self._term(aliased[0].this)
        return self._term(node)

    def _order(self, select: exp.Select, items: list[tuple[Term, str]]) -> Iterator[tuple[Term, str]]:
        order = select.args.get("order")
        for key in order.expressions if order is not None else ():
            _require_only(key, "this", "desc", "nulls_first")
            direction = "desc" if key.args.get("desc") else "asc"
            yield self._key_term(key.this, select, items), f"{direction} {bool(key.args.get('nulls_first'))}"

    def _alias(self, names: Names, alias: str) -> str:
        key = id(names), alias
        if key not in self._aliases:
            self._aliases[key] = f"t{next(self._numbers)}"
        return self._aliases[key]

    def _column(self, column: exp.Column) -> Term:
        match = self._columns.find(column)
        if match is None or column.db:
            raise UnprovableError("an unknown column")
        if not column.table and not column.this.args.get("quoted") and column.name.lower() in _VALUES_OF_DUCKDB:
            raise UnprovableError("a name of a column and of a value")
        names, alias = match
        name, source = column.name.lower(), names.sources[alias]
        if source.columns is None or name not in source.columns:
            raise UnprovableError("an unknown column")
        if not column.table and len(names.owners(name)) > 1:
            raise UnprovableError("an ambiguous column")
        inner = self._columns.names_at(column)
        while inner is not None and inner is not names:
            nearer_names = {*inner.aliases, *inner.sources, *self._columns.hidden_columns}
            if not column.table and name in nearer_names:
                raise UnprovableError("a name of a column of a query around, and of something nearer")
            if isinstance(inner.select.find_ancestor(exp.From, exp.Join, exp.Select), exp.From | exp.Join):
                raise UnprovableError("a query in FROM that may read what is beside it or a query around")
            inner = inner.outer
        clause = column.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Where, exp.Select)
        aliased = None if column.table or isinstance(clause, exp.Select) else names.aliases.get(name)
        if aliased is not None and not self._is_column(aliased, name, match):
            raise UnprovableError("a name of a column and of an expression")
        return self._column_term(names, alias, name)

    def _is_column(self, selected: exp.Expr, name: str, item: tuple[Names, str]) -> bool:
        """Return whether a selected expression is the column with this name of an item of FROM."""
        if not isinstance(selected, exp.Column) or selected.name.lower() != name.lower():
            return False
        return self._columns.find(selected) == item

    def _column_term(self, names: Names, alias: str, name: str) -> Term:
        """Return the term of a column in FROM; raise `UnprovableError` for a column of SQLite without a type."""
        origin = self._columns.origin(names, alias, name)
        declared = self._tables[origin[0]].by_name.get(origin[1]) if origin is not None else None
        family = family_of(declared.type if declared is not None else "", self._dialect)
        if origin is not None and not family and self._dialect == "sqlite":
            raise UnprovableError("a column without a type, in which 1 and 1.0 are equal")
        return "column", self._alias(names, alias), name, family

    def _count_part(self) -> None:
        """Count an expression or SELECT; raise `UnprovableError` if too many were read.

        Queries of WITH are read once for each use.
        """
        if next(self._sizes) >= MAX_EXPANDED_NODES:
            raise UnprovableError("it is too long")

    def _term(self, node: exp.Expr) -> Term:
        self._count_part()
        if type(node) in _OPERATORS:
            return node.key, self._term(node.this), self._term(node.expression)
        if type(node) in _FLIPPED:
            return _FLIPPED[type(node)], self._term(node.expression), self._term(node.this)
        if type(node) in _AGGREGATES:
            _require_only(node, "this", "big_int")
            argument = node.this
            if isinstance(argument, exp.Star):
                return node.key, ("star",)
            if isinstance(argument, exp.Distinct):
                _require_only(argument, "expressions")
                if len(argument.expressions) != 1:
                    raise UnprovableError("DISTINCT of several arguments")
                return node.key, ("distinct", self._term(argument.expressions[0]))
            return node.key, self._term(argument)
        if isinstance(node, exp.DataType) and node.args.get("nested"):
            raise UnprovableError("a list, which + joins to another")
        if isinstance(node, _PURE) and not (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)):
            return type(node).__name__, *self._arguments(node)
        return self._value(node) or self._condition(node)

    def _value(self, node: exp.Expr) -> Term | None:
        match node:
            case exp.Paren():
                return self._term(node.this)
            case exp.Column() if not node.is_star:
                return self._column(node)
            case exp.Literal():
                return self._literal(node)
            case exp.Neg() if not node.this.is_string:
                return "number", f"-{self._literal(node.this)[1]}"
            case exp.Null():
                return ("null",)
            case exp.Boolean():
                return "boolean", str(node.this)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return "query", self.query(node)
        return None

    def _condition(self, node: exp.Expr) -> Term:
        match node:
            case exp.Not():
                return "not", self._term(node.this)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return "isnull", self._term(node.this)
            case exp.Between() if not node.args.get("symmetric"):
                self._used["between"] = None
                tested = self._term(node.this)
                low, high = self._term(node.args["low"]), self._term(node.args["high"])
                if not all(have_one_family(tested, limit) for limit in (low, high)):
                    _require_one_type(tested, (low, high))
                return "and", ("lte", low, tested), ("lte", tested, high)
            case exp.In():
                tested = self._term(node.this)
                query = node.args.get("query")
                if query is not None:
                    return "in", tested, self.query(query)
                _require_only(node, "this", "expressions")
                items = [self._term(item) for item in node.expressions]
                _require_one_type(tested, items)
                self._used["in-list"] = None
                equalities = [("eq", tested, item) for item in items]
                return equalities[0] if len(equalities) == 1 else ("or", *equalities)
            case exp.Exists():
                return "exists", without_columns(self.query(node.this))
        raise UnprovableError(type(node).__name__)

    def _arguments(self, node: exp.Expr) -> Iterator[object]:
        for name, value in sorted(node.args.items()):
            values = value if isinstance(value, list) else [value]
            for item in values:
                if isinstance(item, exp.Expr):
                    yield name
                    yield self._term(item)
                elif item not in (None, False):
                    yield f"{name}={item}"

    def _literal(self, node: exp.Literal) -> Term:
        if node.is_string:
            return "text", node.name
        if not _PLAIN_NUMBER.fullmatch(node.name):
            raise UnprovableError("a number that may be rounded")
        return "number", node.name.lstrip("0") or "0"


def _require_one_type(tested: Term, items: Sequence[Term]) -> None:
    """Raise `UnprovableError` unless a comparison with all items at once equals comparisons with single items.

    DuckDB compares IN and BETWEEN by the common type of all operands, SQLite without affinities of columns in lists.
    Whole numbers of at most nine digits have one type.
    """
    operators = {item[0] for item in items}
    operator = constant_of(tested) if tested[0] == "column" else None
    if operator is None and operators == {"number"} and all(re.fullmatch(r"-?\d{1,9}", item[1]) for item in items):
        return
    if operators != {operator or "text"}:
        raise UnprovableError("values of several types")


def _with_distinct_names(query: Query) -> Query:
    """Return the query unchanged; raise `UnprovableError` if two of its columns have the same name, or one has none."""
    if isinstance(query, Block) and ("" in query.names or len({*query.names}) < len(query.names)):
        raise UnprovableError("columns with one name or none")
    return query


def _require_only(node: exp.Expr, *allowed: str) -> None:
    """Raise `UnprovableError` if a node has an argument that is not allowed."""
    for name, value in node.args.items():
        if value and name not in allowed:
            raise UnprovableError(f"{name} of {node.key}")


def _row_number(clause: exp.Expr | None) -> int | None:
    """Return the number of LIMIT or OFFSET; None without the clause. Raise `UnprovableError` for another expression."""
    if clause is None:
        return None
    _require_only(clause, "expression")
    value = clause.expression
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise UnprovableError("LIMIT")
    return int(value.name)


def require_one_meaning(tree: exp.Expr, text: str, dialect: str) -> None:
    """Raise `UnprovableError` if an engine may read a query differently from the tree that the parser made of it.

    Causes are ambiguous types, repeated names in WITH, `true` and `false` as names, tokens that the parser drops, and
    comparisons or `||` next to other operators without parentheses.
    """
    if tree.find(exp.Cast) and _AMBIGUOUS_TYPES.search(text):
        raise UnprovableError("a type that the parser takes for another one")
    common_names = [common.alias.lower() for common in tree.find_all(exp.CTE)]
    if len({*common_names}) < len(common_names):
        raise UnprovableError("a name of two queries of WITH, of which SQLite may read one that comes later")
    if any(name.name.lower() in BOOLEANS for name in tree.find_all(exp.Identifier)):
        raise UnprovableError("a name that SQLite reads for true or false")
    _check_tokens(tree, parse_query(text, dialect).statements.tokens)
    # Without parentheses, an engine may bind these differently from the parser: comparisons, and NOT, as operands of
    # comparisons and of arithmetic, and in SQLite `||` beside arithmetic.
    for node in tree.find_all(*_COMPARISONS, *_ARITHMETIC, exp.DPipe, exp.Neg):
        if any(isinstance(operand, (*_COMPARISONS, exp.Not)) for operand in node.iter_expressions()):
            raise UnprovableError("a comparison as an operand")
    for node in tree.find_all(exp.DPipe) if dialect == "sqlite" else ():
        if any(isinstance(beside, _ARITHMETIC) for beside in (node.parent, *node.iter_expressions())):
            raise UnprovableError("|| beside arithmetic")


def _check_tokens(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Raise `UnprovableError` if the parser reads a text differently from what it says.

    The parser drops a sign `+`, by which a column of SQLite loses its type, and the parentheses that make the query of
    `x IN ((SELECT …))` one value. The parser also reads some functions as `CAST` or `%`, and `1_000` as a number with
    an alias.
    """
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    words = ["" if token.token_type in quoted else token.text.lower() for token in tokens]
    for previous, token in pairwise(tokens):
        if token.token_type is TokenType.PLUS and previous.token_type not in _OPERAND_ENDS:
            raise UnprovableError("a sign +")
        if previous.token_type is TokenType.NUMBER and previous.end + 1 == token.start and token.text[0].isidentifier():
            raise UnprovableError("letters after a number")
    if any(triple == ("in", "(", "(") for triple in zip(words, words[1:], words[2:], strict=False)):
        raise UnprovableError("IN ((")
    casts = sum(pair in (("cast", "("), ("try_cast", "(")) for pair in pairwise(words)) + words.count("::")
    for node_type, count_in_text in ((exp.Cast, casts), (exp.Mod, words.count("%"))):
        if len(list(tree.find_all(node_type))) != count_in_text:
            raise UnprovableError(f"a function that the parser takes for {node_type.__name__.upper()}")
