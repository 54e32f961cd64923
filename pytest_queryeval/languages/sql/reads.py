"""Which tables and columns a SQL query reads: its names, resolved by a schema as databases resolve them.

Where it is open what a name stands for, all that it may stand for counts. What cannot be resolved is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from itertools import pairwise, permutations, takewhile
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, NamedTuple, TypeAlias

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import HIDDEN_COLUMNS, QUOTES_TEXTS
from pytest_queryeval.languages.sql.parsing import positioned_tree
from pytest_queryeval.text.formatting import one_line

TableName: TypeAlias = tuple[str, ...]  # catalog and schema if they are not the default, and name, as `name_key` folds
Form: TypeAlias = Literal["table", "function", "column", "joined", "all", "unknown"]
ALL = "*"
_VIEW = re.compile(r"\bVIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?((?:\w+|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|\.)+)", re.IGNORECASE)
_TO_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_TO_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)
_WITHOUT_ROWS = frozenset(("sqlite", "mysql"))  # dialects in which a name is never a whole row
_JSON_ARROWS = frozenset(("", "sqlite", "duckdb", "postgres", "mysql"))  # dialects in which -> takes a field of JSON
_DEFAULT_SCHEMAS = {"sqlite": "main", "duckdb": "main", "postgres": "public", "tsql": "dbo"}
# Dialects in which case matters for tables, but not for columns.
_TABLES_ONLY = frozenset(("mysql", "bigquery", "doris", "starrocks", "singlestore"))
_PLAIN_PATTERN = re.compile(r"\^?\(?[\w.|]+(?:\.\*)?\)?\$?")
# Functions within a query that read tables by a name or a query in a text.
_TABLE_READING = re.compile(
    r"(?:query|table|schema|database|cursor)_to_xml\w*|ts_stat|ts_rewrite|xpath_table|crosstab\w*|connectby|dblink\w*"
    r"|query_table|query|sql_auto_complete|dictget\w*|dicthas|joinget\w*|lookup",
    re.IGNORECASE,
)
# Names without a table that are no columns.
_PSEUDO_COLUMNS = frozenset(("level", "rownum", "sysdate", "systimestamp", "user", "current_user", "session_user"))
_OF_ALL_COLUMNS = (exp.Pivot, exp.Summarize, exp.Describe)  # as statements, or instead of a query
_QUERIES = (exp.Query, exp.Values, *_OF_ALL_COLUMNS)
_UNNESTING = (exp.Unnest, exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.Inline)


class Read(NamedTuple):
    """A table, a table function or a column that a query reads at a place.

    For a table, also the conditions on its rows.
    """

    form: Form
    """`joined` are columns that USING or NATURAL compares, `all` those that `*` or a row stands for,
    `unknown` those that no table is known to have."""
    table: TableName
    column: str = ""
    """Empty for a table or a function; `*` for the columns of a table whose columns are not known."""
    place: str = ""
    """Such as `line 1, column 8`; empty if it is not in the text of the query."""
    view: str = ""
    """The view in whose definition it is."""
    filters: frozenset[tuple[str, str, bool]] = frozenset()
    """Columns of the table that conditions equate with a constant: name in lower case, constant, whether a text."""


class Reads(NamedTuple):
    """All that a query reads, and the parts of it that cannot be resolved."""

    reads: tuple[Read, ...]
    problems: tuple[str, ...] = ()
    """Parts that cannot be read, which may hide tables."""
    unknown: tuple[str, ...] = ()
    """Names of columns that no table is known to have."""
    is_whole: bool = True
    """Whether the text could be parsed."""
    expanded: frozenset[str] = frozenset()
    """The views and the queries of WITH that stand for what they read, by their names without a schema."""


class Views(NamedTuple):
    """What a database knows of names besides tables: the queries of views by name, and its own functions."""

    queries: Mapping[TableName, exp.Query | None] = {}
    """None for a view whose definition cannot be read."""
    functions: frozenset[str] = frozenset()


NO_VIEWS = Views()


def name_key(name: str, dialect: str, *, quoted: bool, is_table: bool = False) -> str:
    """Return a name as the dialect's databases compare it: they fold ASCII letters only.

    >>> name_key("Orders", "postgres", quoted=False), name_key("Orders", "postgres", quoted=True)
    ('orders', 'Orders')
    """
    if dialect in _TABLES_ONLY:
        return name if is_table else folded(name)
    match Dialect.get_or_raise(dialect).normalization_strategy:
        case NormalizationStrategy.CASE_SENSITIVE:
            return name
        case NormalizationStrategy.LOWERCASE if quoted:
            return name
        case NormalizationStrategy.UPPERCASE:
            return name if quoted else name.translate(_TO_UPPER)
    return folded(name)


def folded(name: str) -> str:
    """Return a name with its ASCII letters in lower case."""
    return name.translate(_TO_LOWER)


def table_name(parts: Iterable[tuple[str, bool]], dialect: str) -> TableName:
    """Return the name of a table as databases compare it, without the default schema.

    `parts` are the parts of the name, with whether they are quoted.
    """
    keys = tuple(name_key(name, dialect, quoted=quoted, is_table=True) for name, quoted in parts)
    return _without_default(keys, dialect)


def _without_default(name: TableName, dialect: str) -> TableName:
    return name[1:] if len(name) == 2 and name[0] == _DEFAULT_SCHEMAS.get(dialect) else name


def view_queries(ddl: str, dialect: str) -> dict[TableName, exp.Query | None]:
    """Return by name the queries of the views that a script of `script_of` makes; None for an unreadable definition."""
    queries: dict[TableName, exp.Query | None] = {}
    for text in filter(_VIEW.search, ddl.split(";\n\n")):
        for statement in parse_query(text, dialect).statements.trees or [exp.Create(this=_view_name(text, dialect))]:
            table, query = statement.find(exp.Table), statement.args.get("expression")
            is_view = isinstance(statement, exp.Create) and statement.args.get("kind", "VIEW") == "VIEW"
            if is_view and table is not None:
                queries[table_name(_name_parts(table), dialect)] = query if isinstance(query, exp.Query) else None
    return queries


def listed_views(views: Iterable[tuple[str, str, str]], dialect: str) -> dict[TableName, exp.Query | None]:
    """Return the queries of views by name, from their schemas, names and definitions.

    None for an unreadable definition. Tables in the schema of a view need no schema in its definition.
    """
    queries: dict[TableName, exp.Query | None] = {}
    for schema, name, definition in views:
        tree = parse_query(definition.strip().rstrip(";"), dialect).whole_tree
        query = tree.copy() if isinstance(tree, exp.Query) else None
        for named in query.find_all(exp.Table, exp.Column) if query is not None else ():
            if named.args.get("db") is not None and named.args["db"].name == schema:
                named.set("db", None)
        is_default = dialect in _TABLES_ONLY
        queries[table_name([(name, True)] if is_default else [(schema, True), (name, True)], dialect)] = query
    return queries


def _view_name(text: str, dialect: str) -> exp.Table:
    match = _VIEW.search(text)
    return exp.to_table(match[1] if match else "", dialect=dialect)


def what_is_read(
    text: str,
    dialect: str,
    schema: Schema,
    views: Views = NO_VIEWS,
    is_listed: Callable[[TableName], bool] = lambda _: True,
) -> Reads:
    """Return the tables, functions and columns that a query reads, and the parts of it that cannot be resolved.

    A view that `is_listed` counts as a table; any other view is replaced by the reads of its query. `is_whole` is false
    if the query cannot be parsed.

    >>> schema = Schema(tables={"orders": ("id", "price"), "users": ("id", "name")})
    >>> [(*read.table, read.column) for read in what_is_read("SELECT name FROM users", "", schema).reads]
    [('users', ''), ('users', 'name')]
    """
    parsed = parse_query(text, dialect)
    trees = parsed.statements.trees
    is_other = parsed.statements.error is None and len(trees) == 1 and isinstance(trees[0], _OF_ALL_COLUMNS)
    tree = positioned_tree(parsed.statements, text.rstrip(), dialect) if is_other or not parsed.problem else None
    if tree is None:
        return Reads((), (f"the query cannot be parsed: {parsed.problem or 'nothing'}",), is_whole=False)
    reader = _Reader(text, dialect, schema.tables, views, is_listed)
    reader.query(tree, _Scope())
    for token, after in pairwise(parsed.statements.tokens):
        if after.token_type is TokenType.L_PAREN:
            name = name_key(token.text, dialect, quoted=False)
            if name in views.functions or _TABLE_READING.fullmatch(token.text):
                reader.add("function", (name,), place=_place(text, token.start))
    problems, unknown = (tuple(dict.fromkeys(found)) for found in (reader.problems, reader.unknown))
    return Reads(tuple(dict.fromkeys(reader.reads)), problems, unknown, expanded=frozenset(reader.expanded))


def _place(text: str, start: int) -> str:
    return f"line {text.count(chr(10), 0, start) + 1}, column {start - text.rfind(chr(10), 0, start)}"


def _name_parts(table: exp.Table) -> list[tuple[str, bool]]:
    return [(part.name, bool(part.args.get("quoted"))) for part in table.parts]


@dataclass(eq=False)
class _Item:
    """An item of FROM. `table` is None for a query or a function, whose columns read nothing themselves."""

    alias: str
    columns: Mapping[str, str] | None
    """The names of its columns in the query, in lower case, with those that they have in the table; None if unknown."""
    is_renamed: bool = False
    """Whether it has an alias, so that its table's name is no longer its name."""
    table: TableName | None = None
    place: str = ""
    read: int = -1
    """Where in `reads` its table is."""

    def column(self, name: str) -> str:
        """Return the name that a column of the query has in the table."""
        return (self.columns or {}).get(name, name)


@dataclass(eq=False)
class _Scope:
    """The names that can be used within a SELECT, or behind a query of WITH, and around it."""

    outer: _Scope | None = None
    items: list[_Item] = field(default_factory=list)
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    """The selected expressions that have an alias."""
    parameters: frozenset[str] = frozenset()
    queries: dict[str, _Query] = field(default_factory=dict)
    """Those of WITH, which shadow others and tables."""

    def outward(self) -> Iterator[_Scope]:
        """Yield this scope and the scopes around it, the innermost first."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class _Query(NamedTuple):
    """A query of WITH, with the scope of names that it can use.

    A recursive query names itself elsewhere than in its first operand.
    """

    key: str
    node: exp.CTE
    scope: _Scope
    is_recursive: bool


_Owners: TypeAlias = "list[tuple[_Item, str]]"


@dataclass
class _Reader:
    """Collects in `reads` what a query reads, in `problems` and `unknown` what cannot be resolved."""

    text: str
    dialect: str
    tables: Mapping[str, Sequence[str]]
    views: Views
    is_listed: Callable[[TableName], bool]
    reads: list[Read] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    expanded: set[str] = field(default_factory=set)
    _outputs: dict[int, Sequence[str] | None] = field(default_factory=dict)  # of queries of WITH that were read
    _open_views: list[tuple[TableName, str]] = field(default_factory=list)  # with the place of the outermost one

    def add(self, form: Form, table: TableName, column: str = "", place: str = "") -> None:
        """Add a table, function or column that is read, at a place or in the view that is being read."""
        view = ""
        if self._open_views:
            place, view = self._open_views[0][1], ".".join(self._open_views[-1][0])
        self.reads.append(Read(form, table, column, place, view))

    def _add_column(self, form: Form, item: _Item, column: str, place: str) -> None:
        """Add a column of an item of FROM if the item is a table; without a place, it gets that of the item."""
        if item.table is not None:
            self.add(form, item.table, column, place or item.place)

    def query(self, node: exp.Expr | None, scope: _Scope, itself: _Query | None = None) -> Sequence[str] | None:
        """Read a query, and return the names of its columns in lower case; None if they are not known.

        `itself` is the recursive query of WITH whose body this is.
        """
        if not isinstance(node, _QUERIES):
            self._problem(f"{'nothing' if node is None else node.key.upper()} instead of a query")
            return None
        scope = self._scope_behind_with(node, scope)
        if isinstance(node, exp.Values):
            self._walk(node.expressions, scope)
            return None
        if isinstance(node, exp.Select):
            return self._select(node, scope)
        is_other = isinstance(node, _OF_ALL_COLUMNS)
        if is_other or isinstance(node.this, exp.Table):
            nested = _queries_in([value for name, value in node.args.items() if name not in ("this", "with_")])
            tables = exp.Select(from_=exp.From(this=node.this), expressions=[exp.Star(), *nested])
            outputs = self._select(tables, scope)
            return None if is_other else outputs
        return self._operation(node, scope, itself)

    def _operation(self, node: exp.Expr, scope: _Scope, itself: _Query | None) -> Sequence[str] | None:
        """Read a set operation or a query in brackets, and return the names of its columns.

        None if they are not known.
        """
        if not isinstance(node, exp.SetOperation):
            outputs = self.query(node.this, scope, itself)
        else:
            outputs = self.query(node.this, scope)
            if itself is not None:
                self._outputs[id(itself.node)] = _renamed(outputs, itself.node)
                scope = _Scope(scope, queries={itself.key: itself})
            others = self.query(node.expression, scope)
            if node.args.get("by_name"):
                outputs = None if outputs is None or others is None else [*outputs, *others]
        # What orders and limits the result names its columns.
        results = _Scope(scope, [_Item("", None if outputs is None else dict.fromkeys(outputs, ""))])
        for name in ("order", "limit", "offset", "fetch", "sort", "cluster", "distribute", "pivots"):
            self._walk(node.args.get(name), results)
        return None if node.args.get("pivots") or node.args.get("sample") else outputs

    def _scope_behind_with(self, node: exp.Expr, scope: _Scope) -> _Scope:
        """Return the scope behind the WITH of a query; the scope itself without WITH."""
        clause = node.args.get("with_")
        if clause is None:
            return scope
        is_recursive = bool(clause.args.get("recursive")) or self.dialect in ("sqlite", "tsql", "oracle")
        scope = _Scope(scope)
        for cte in clause.expressions:
            if not cte.args.get("scalar"):  # else it is read where the SELECT with this clause is
                in_any_order = is_recursive and self.dialect in ("sqlite", "postgres")
                behind = scope if in_any_order else _Scope(scope)
                key = self._key(cte.args["alias"].this, is_table=True)
                behind.queries[key] = _Query(key, cte, scope, is_recursive)
                scope = behind
        return scope

    def _select(self, select: exp.Select, around: _Scope) -> Sequence[str] | None:
        scope = _Scope(around)
        scope.aliases = {
            self._key(item.args["alias"]): item.this
            for item in select.expressions
            if isinstance(item, exp.Alias) and isinstance(item.args["alias"], exp.Identifier)
        }
        clause = select.args.get("with_")
        scalars = [cte for cte in clause.expressions if cte.args.get("scalar")] if clause is not None else []
        scope.parameters = frozenset(self._key(cte.args["alias"].this) for cte in scalars)
        if select.args.get("from_") is not None:
            self._from_item(select.args["from_"].this, scope)
        self._joins(select, scope)
        for lateral in select.args.get("laterals") or ():
            self._from_item(lateral, scope)
        self._walk([cte.this for cte in scalars], scope)
        self._walk_but(select, ("from_", "joins", "laterals", "with_", "hint", "into", "locks", "kind"), scope)
        self._add_filters(select, scope)
        return self._names_of(select, scope)

    def _names_of(self, select: exp.Select, scope: _Scope) -> list[str] | None:
        """Return the names of the columns of a SELECT; None if the database chooses some of them."""
        names: list[str] = []
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                items = scope.items if star is item else self._items(self._qualifiers(item), scope)
                if star.args.get("ilike") or star.args.get("rename") or any(at.columns is None for at in items):
                    return None
                names += [name for at in items for name in at.columns or () if name not in self._left_out(star, at)]
            elif isinstance(item, exp.Alias | exp.Column) and item.alias_or_name:
                names.append(folded(item.alias_or_name))
            else:
                return None
        return names

    def _joins(self, node: exp.Expr, scope: _Scope) -> None:
        for join in node.args.get("joins") or ():
            before = len(scope.items)
            self._from_item(join.this, scope)
            names = {folded(column.name): self._place_of(column) for column in join.args.get("using") or ()}
            if join.method == "NATURAL":
                names = dict.fromkeys(self._natural_columns(scope.items[:before], scope.items[before:]), "")
            for name, place in names.items():
                for item in scope.items:
                    if item.columns is None or name in item.columns:
                        self._add_column("joined", item, item.column(name), place)
            self._walk_but(join, ("this", "using"), scope)

    def _natural_columns(self, left: Collection[_Item], right: Collection[_Item]) -> Collection[str]:
        """Return the names of the columns that NATURAL may compare.

        If columns of an item are not known, all its columns count as read, and a problem is added.
        """
        sides = [{name for item in side for name in item.columns or ()} for side in (left, right)]
        unknown = [item for item in (*left, *right) if item.columns is None]
        for item in unknown:
            if item.table is not None:
                self.add("joined", item.table, ALL, item.place)
                self._problem(f"NATURAL compares columns of {'.'.join(item.table)}, which are not known")
        return sorted(sides[0] | sides[1] if unknown else sides[0] & sides[1])

    def _from_item(self, node: exp.Expr, scope: _Scope) -> None:
        """Read an item of FROM with its joins, and add it to the scope.

        A pivot becomes an item whose columns are not known, and all columns that it is made of count as read.
        """
        if isinstance(node, exp.Final):
            node = node.this
        first = len(scope.items)
        if isinstance(node, exp.Table):
            self._table(node, scope)
        elif _is_joined(node):
            self._from_item(node.this, scope)
            if node.alias:  # of all that is joined
                self._read_rows(scope.items[first:], node)
                self._add_item(node, None, scope)
        else:
            self._add_item(node, self._from_value(node, scope), scope)
        if pivots := node.args.get("pivots"):
            self._read_rows(scope.items[first:], node)
            for query in _queries_in(pivots):
                self.query(query, scope)
            alias = pivots[-1].alias or node.alias_or_name
            scope.items[first:] = [_Item(name_key(alias, self.dialect, quoted=False), None)]
        self._joins(node, scope)

    def _from_value(self, node: exp.Expr, scope: _Scope) -> Sequence[str] | None:
        """Read an item of FROM that is no table, such as a query, a function or ARRAY JOIN; other items are a problem.

        Return the names of its columns; None if they are not known.
        """
        query = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(query, exp.Query | exp.Values):
            sees_left = query is not node or self.dialect == "duckdb"  # which finds out that a query is LATERAL
            return self.query(query, scope if sees_left else scope.outer or scope)
        if isinstance(node, exp.Lateral | exp.Unnest):
            self._function(query, scope)
        elif isinstance(node, exp.Alias | exp.Column):  # ARRAY JOIN
            self._walk(node, scope)
            return [folded(node.alias)] if node.alias else []
        else:
            self._problem(f"{node.key.upper()} in FROM")
        return None

    def _add_item(self, node: exp.Expr, names: Sequence[str] | None, scope: _Scope, name: str = "") -> _Item:
        """Add an item with columns of these names to the scope, and return it; `name` is its name without an alias."""
        alias = node.args.get("alias")
        identifier = alias.this if isinstance(alias, exp.TableAlias) else alias
        key = self._key(identifier, is_table=True) if isinstance(identifier, exp.Identifier) else ""
        columns = None if names is None else dict(zip(_renamed(names, node) or (), names, strict=False))
        scope.items.append(_Item(key or name, columns, bool(key)))
        return scope.items[-1]

    def _function(self, node: exp.Expr, scope: _Scope) -> None:
        """Record a table function as read, and read its arguments.

        A function that only expands a value into rows, such as UNNEST, is not recorded.
        """
        if not isinstance(node, _UNNESTING):
            start = node.meta.get("start")
            written = "" if start is None or self._open_views else self.text[start : node.meta["end"] + 1]
            name = node.name if isinstance(node, exp.Anonymous) else written or node.key
            key = name_key(name.strip('"`[]'), self.dialect, quoted=False)
            self.add("function", (key,), place="" if start is None else _place(self.text, start))
        self._walk_but(node, (), scope)

    def _table(self, node: exp.Table, scope: _Scope) -> None:
        self._walk_but(node, ("this", "db", "catalog", "alias", "joins", "pivots", "hints", "rows_from"), scope)
        if not isinstance(node.this, exp.Identifier):
            for function in node.args.get("rows_from") or (node.this,):
                self._function(function.this if isinstance(function, exp.Table) else function, scope)
            self._add_item(node, None, scope)
            return
        name = table_name(_name_parts(node), self.dialect)
        queries = [level.queries[name[0]] for level in scope.outward() if name[0] in level.queries]
        if queries and len(node.parts) == 1:
            self._add_item(node, self._outputs_of(queries[0]), scope, name[0])
            return
        columns = self.tables.get(name[-1].lower()) if len(name) == 1 else None  # of the default schema
        item = self._add_item(node, None if columns is None else [*map(folded, columns)], scope, name[-1])
        item.place = self._place_of(node.parts[0])
        if name in self.views.queries and not self.is_listed(name):
            self._expand(name, item.place)
            return
        item.table, item.read = name, len(self.reads)
        self.add("table", name, place=item.place)
        if columns is None and node.alias_column_names:
            self._problem(f"the columns of {'.'.join(name)} have other names in the query, and are not known")

    def _expand(self, name: TableName, place: str) -> None:
        """Read the query of a view, so that its reads count; a definition that cannot be read is a problem.

        A view that is being read already is ignored. `place` is where the outermost view is named.
        """
        query = self.views.queries[name]
        self.expanded.add(name[-1])
        if query is None:
            self._problem(f"the definition of the view {'.'.join(name)} cannot be read")
        elif name not in (view for view, _ in self._open_views):
            self._open_views.append((name, self._open_views[0][1] if self._open_views else place))
            self.query(query, _Scope())
            self._open_views.pop()

    def _outputs_of(self, query: _Query) -> Sequence[str] | None:
        """Read a query of WITH at its first use, and return the names of its columns; None if they are not known."""
        key = id(query.node)
        if key not in self._outputs:
            self._outputs[key] = None
            self.expanded.add(query.key)
            outputs = self.query(query.node.this, query.scope, query if query.is_recursive else None)
            self._outputs[key] = _renamed(outputs, query.node)
        return self._outputs[key]

    def _walk_but(self, node: exp.Expr, names: Collection[str], scope: _Scope) -> None:
        """Read the arguments of a node except those of these names."""
        self._walk([value for name, value in node.args.items() if name not in names], scope)

    @singledispatchmethod
    def _walk(self, value: object, scope: _Scope) -> None:
        """Read an expression, or all expressions in a list; other values read nothing."""

    @_walk.register
    def _all_in(self, values: list, scope: _Scope) -> None:  # type: ignore[type-arg]  # a class to register
        for value in values:
            self._walk(value, scope)

    @_walk.register
    def _expression(self, node: exp.Expr, scope: _Scope) -> None:
        self._walk_but(node, (), scope)

    @_walk.register
    def _nested_query(self, node: exp.Query | exp.Values, scope: _Scope) -> None:
        self.query(node, scope)

    @_walk.register
    def _every_column(self, star: exp.Star, scope: _Scope) -> None:
        if not isinstance(star.parent, exp.Count) or any(star.args.values()):
            self._star(star, scope.items, scope)

    @_walk.register
    def _by_position(self, node: exp.PositionalColumn | exp.Parameter, scope: _Scope) -> None:
        """Read all columns for `#2` of DuckDB or `$2` of Snowflake; other parameters are values."""
        if isinstance(node, exp.PositionalColumn) or self.dialect == "snowflake":
            self._read_rows(scope.items, node)

    @_walk.register
    def _unexpected(self, node: exp.Table | exp.Lateral, _: _Scope) -> None:
        self._problem(f"{node.key.upper()} in an expression")

    @_walk.register
    def _nothing(self, node: exp.DataType | exp.Hint, scope: _Scope) -> None:
        pass

    @_walk.register
    def _in(self, node: exp.In, scope: _Scope) -> None:
        """Read IN; a name behind it, which SQLite and ClickHouse allow, may be a table whose columns are all read."""
        name = node.args.get("field")
        if not isinstance(name, exp.Column) or self.dialect not in (*QUOTES_TEXTS, "clickhouse"):
            self._walk_but(node, (), scope)
            return
        self._walk(node.this, scope)
        owners = self._resolved(name, scope)[0] if self.dialect == "clickhouse" else []
        self._add_columns(owners, name)
        if not owners or name.name.lower() in self.tables:
            *_, table = parts = [part.copy() for part in name.parts if isinstance(part, exp.Identifier)]
            inner = _Scope(scope)
            self._from_item(exp.Table(this=table, db=parts[-2] if len(parts) > 1 else None), inner)
            self._read_rows(inner.items, name)

    @_walk.register
    def _comprehension(self, node: exp.Comprehension, scope: _Scope) -> None:
        names = frozenset(folded(name.name) for name in node.expression.find_all(exp.Identifier))
        self._walk(node.args["iterator"], scope)
        self._walk([node.this, node.args.get("condition")], _Scope(scope, parameters=names))

    @_walk.register
    def _lambda(self, node: exp.Lambda, scope: _Scope) -> None:
        """Read a lambda, or a field of JSON that the parser takes for one, as in `max(data -> 'key')`."""
        for name in node.expressions if self.dialect in _JSON_ARROWS else ():
            behind = self.text[name.meta.get("end", len(self.text)) + 1 :].lstrip()
            if self._open_views or behind[:1] not in (":", ","):  # `lambda x, y: x + y`
                self._add_columns(self._owners_of(folded(name.name), scope, self._key(name))[0], name)
        self._walk(node.this, _Scope(scope, parameters=frozenset(folded(name.name) for name in node.expressions)))

    @_walk.register
    def _sort_key(self, node: exp.Ordered, scope: _Scope) -> None:
        """Read a key of ORDER BY, unless it is a selected expression, which is read in the SELECT list."""
        key, clause = node.this, node.parent
        is_name = isinstance(key, exp.Column) and not key.table and isinstance(key.this, exp.Identifier)
        is_of_select = isinstance(clause, exp.Order) and isinstance(clause.parent, exp.Select)
        if not (is_name and is_of_select and self._key(key.this) in scope.aliases):
            self._walk_but(node, (), scope)

    @_walk.register
    def _dot(self, node: exp.Dot, scope: _Scope) -> None:
        """Read a field of a value, `a.b.c`, or a function that is written behind its first argument.

        All columns that the names may stand for count as read.
        """
        *names, _ = node.flatten(unnest=False)
        if all(isinstance(name, exp.Identifier) for name in names):
            column = exp.Column(**dict(zip(("this", "table", "db", "catalog"), names[::-1], strict=False)))
            self._add_columns(self._resolved(column, scope)[0], column)
        else:
            self._walk(node.this, scope)
        if not isinstance(node.expression, exp.Identifier | exp.Star):
            self._walk(node.expression, scope)

    @_walk.register
    def _word(self, word: exp.Var | exp.Identifier, scope: _Scope) -> None:
        """Read a name that the parser takes for a word, such as the unit of a function, but databases for a column."""
        if not isinstance(word.parent, exp.PropertyEQ | exp.Kwarg | exp.Alias | exp.TableAlias):
            owners = self._owners_of(folded(word.name), scope)[0]
            self._add_columns([(item, name) for item, name in owners if item.columns and name != ALL], word)

    @_walk.register
    def _column(self, column: exp.Column, scope: _Scope) -> None:
        name, qualifiers = column.this, self._qualifiers(column)
        if isinstance(name, exp.Star):
            items = self._items(qualifiers, scope)
            if items:
                self._star(name, items, scope)
                return
            owners, is_known = self._owners_of(folded(column.parts[-2].name), scope)
            self._add_columns(owners, column)
            if not is_known:
                self.unknown.append(f"nothing in FROM is called {column.parts[-2].name}")
            return
        if not isinstance(name, exp.Identifier):  # by its position
            self._read_rows(self._items(qualifiers, scope) or scope.items, column)
            return
        owners, is_known = self._resolved(column, scope)
        self._add_columns(owners, column)
        if is_known or folded(name.name) in _PSEUDO_COLUMNS:
            return
        if not qualifiers and name.args.get("quoted") and self.dialect in QUOTES_TEXTS:
            return  # a text
        self.unknown.append(f"no table is known to have the column {column.sql(comments=False)}")
        sources = [item.table for item in scope.items if item.table is not None]
        self.add("unknown", sources[0] if len(sources) == 1 else ("?",), self._key(name), self._place_of(name))

    def _resolved(self, column: exp.Column, scope: _Scope) -> tuple[_Owners, bool]:
        """Return the columns that a name may stand for, and whether it is known to stand for at least one of them.

        A name with dots may be a column of a table, or a field of a column; all columns that it may be are returned.
        """
        parts, keys = column.parts, self._qualifiers(column)
        if not keys:
            return self._owners_of(folded(column.name), scope, self._key(column.this))
        items: list[_Item] = []
        owners: _Owners = []
        for items in self._items_outward(keys, scope):
            owners = self._owners_among(items, folded(column.name))
            if owners:  # else some databases look further out
                break
        is_known = bool(owners)
        owners += self._fields_before(folded(parts[0].name), scope, items)
        if not is_known or len(parts) > 2:  # a field of a column: a.b, or of a table's column: a.b.c
            found, is_row = self._owners_of(folded(parts[0].name), scope, keys[0])
            for place, part in enumerate(parts[1:-1], start=1):
                found += self._owners_among(self._items(keys[:place], scope), folded(part.name))
            owners, is_known = [*owners, *found], is_known or is_row or bool(found)
        return owners, is_known

    def _items(self, qualifiers: list[str], scope: _Scope) -> list[_Item]:
        """Return the items that a name before a column refers to, in the nearest SELECT that has such items."""
        return next(self._items_outward(qualifiers, scope), [])

    def _items_outward(self, qualifiers: list[str], scope: _Scope) -> Iterator[list[_Item]]:
        """Yield the items that a name before a column may refer to, for each SELECT outward that has such items."""
        name = _without_default(tuple(qualifiers), self.dialect)
        for level in scope.outward() if qualifiers else ():
            items = [item for item in level.items if item.alias == qualifiers[-1]]
            if len(qualifiers) > 1:
                items = [item for item in items if not item.is_renamed and item.table in (name, None)]
            if items:
                yield items

    def _fields_before(self, name: str, scope: _Scope, items: list[_Item]) -> _Owners:
        """Return the columns in nearer SELECTs that have this name.

        If they have fields, databases except SQLite prefer them to a table of the same name further out.
        """
        inside = takewhile(lambda level: not any(item in items for item in level.items), scope.outward())
        nearer = [item for level in inside for item in level.items if name in (item.columns or ())]
        return [(item, item.column(name)) for item in nearer] if items and self.dialect != "sqlite" else []

    def _owners_among(self, items: Iterable[_Item], name: str) -> _Owners:
        """Return the column of this name for each item that may have it."""
        hidden = name in HIDDEN_COLUMNS.get(self.dialect, ())
        return [(item, item.column(name)) for item in items if item.columns is None or name in item.columns or hidden]

    def _owners_of(self, name: str, scope: _Scope, key: str = "") -> tuple[_Owners, bool]:
        """Return the columns that a name without a table may stand for, and whether it is known to stand for something.

        `key` is the name as databases compare it, if that differs; parameters, aliases and rows are compared by it.
        """
        owners: _Owners = []
        is_known = False
        keys = {key or name, name}
        for level in scope.outward():
            if keys & level.parameters:
                return owners, True
            known = [item for item in level.items if name in (item.columns or ())]
            unknown = [item for item in level.items if item.columns is None and (item.table is not None or not known)]
            if name in HIDDEN_COLUMNS.get(self.dialect, ()):
                known = known or [item for item in level.items if item.table is not None]
            owners += self._owners_among([*known, *unknown], name)
            if known:
                return owners, True
            is_row = self.dialect not in _WITHOUT_ROWS
            rows = [(item, ALL) for item in level.items if is_row and item.alias == (key or name)]
            owners += rows
            is_known = is_known or bool(unknown or rows or keys & level.aliases.keys())
        return owners, is_known

    def _add_columns(self, owners: _Owners, node: exp.Expr) -> None:
        for item, name in owners:
            if name == ALL:
                self._read_rows([item], node)
                continue
            identifier = node.this if isinstance(node, exp.Column) else node
            key = self._key(identifier) if isinstance(identifier, exp.Identifier) else name
            # Renamed, or the field of another column: then its own name.
            self._add_column("column", item, key if folded(key) == name else name, self._place_of(node))

    def _star(self, star: exp.Star, items: Collection[_Item], scope: _Scope) -> None:
        replaced = star.args.get("replace") or []
        self._walk(replaced, scope)
        only = [folded(item.alias) for item in replaced if len(scope.items) == 1]
        for item in items:
            self._read_rows([item], star, {*self._left_out(star, item), *only})

    def _left_out(self, star: exp.Star, item: _Item) -> set[str]:
        """Return the columns of an item of FROM that EXCLUDE or EXCEPT of a star leaves out."""
        return {
            folded(column.name)
            for column in star.args.get("except_") or ()
            if not column.args.get("table") or self._key(column.args["table"], is_table=True) == item.alias
        }

    @_walk.register
    def _covered(self, columns: exp.Columns, scope: _Scope) -> None:
        """Read the columns that COLUMNS() covers: those that match a plain pattern, otherwise all."""
        pattern = columns.this
        if isinstance(pattern, exp.Star):
            self._star(pattern, scope.items, scope)
            return
        is_plain = isinstance(pattern, exp.Literal) and _PLAIN_PATTERN.fullmatch(pattern.name)
        names = {name for item in scope.items for name in item.columns or ()} if is_plain else ()
        left_out = [name for name in names if not re.search(pattern.name, name, re.IGNORECASE)]
        self._read_rows(scope.items, columns, left_out)

    def _read_rows(self, items: Iterable[_Item], node: exp.Expr, left_out: Collection[str] = ()) -> None:
        """Add all columns of items, except those left out."""
        place = self._place_of(node)
        for item in items:
            for name, column in ({ALL: ALL} if item.columns is None else item.columns).items():
                if name not in left_out:
                    self._add_column("all", item, column, place)

    def _add_filters(self, select: exp.Select, scope: _Scope) -> None:
        """Add to the reads of a SELECT's tables the conditions `column = constant` that hold for all of their rows."""
        here = _Scope(None, scope.items)
        for term in _conditions(select):
            sides = (term.this.unnest(), term.expression.unnest()) if isinstance(term, exp.EQ) else ()
            for column, other in permutations(sides, 2):
                constant = _constant(other)
                if constant is None or not isinstance(column, exp.Column) or self._prefers_alias(column, scope):
                    continue
                owners, _ = self._resolved(column, here)
                if len(column.parts) > 2:  # of a schema's table; a field of a column is another value
                    of = self._items(self._qualifiers(column), here)
                    owners = owners if owners == self._owners_among(of, folded(column.name)) else []
                if len(owners) == 1 and owners[0][0].table is not None:
                    item, name = owners[0]
                    read = self.reads[item.read]
                    self.reads[item.read] = read._replace(filters=read.filters | {(name, *constant)})

    def _prefers_alias(self, column: exp.Column, scope: _Scope) -> bool:
        """Return whether a name may stand for a selected expression, which ClickHouse prefers to columns."""
        if column.table or self.dialect not in ("", "clickhouse"):
            return False
        selected = scope.aliases.get(name_key(column.name, self.dialect, quoted=False))
        return selected is not None and not (isinstance(selected, exp.Column) and selected.name == column.name)

    def _key(self, identifier: exp.Expr, *, is_table: bool = False) -> str:
        quoted = bool(identifier.args.get("quoted"))
        return name_key(identifier.name, self.dialect, quoted=quoted, is_table=is_table)

    def _qualifiers(self, column: exp.Column) -> list[str]:
        """Return the names before that of a column, as databases compare them."""
        return [self._key(part, is_table=True) for part in column.parts[:-1]]

    def _place_of(self, node: exp.Expr) -> str:
        starts = [at.meta["start"] for at in node.walk() if "start" in at.meta]
        return _place(self.text, min(starts)) if starts else ""

    def _problem(self, problem: str) -> None:
        self.problems.append(one_line(problem))


def _renamed(names: Sequence[str] | None, node: exp.Expr) -> Sequence[str] | None:
    """Return the names of a query's columns, of which the alias of a node may rename the first; None if not known."""
    renamed = [*map(folded, node.alias_column_names)]
    return [*renamed, *(names or ())[len(renamed) :]] if renamed else names


def _queries_in(value: object) -> Iterator[exp.Expr]:
    """Yield the outermost queries in an expression, or in a list."""
    if isinstance(value, list):
        for part in value:
            yield from _queries_in(part)
    elif isinstance(value, exp.Query):
        yield value
    elif isinstance(value, exp.Expr):
        yield from _queries_in([*value.args.values()])


def _is_joined(node: exp.Expr) -> bool:
    """Return whether an item of FROM is brackets around joined tables, and not around a query."""
    return isinstance(node, exp.Subquery) and not isinstance(node.unnest(), _QUERIES)


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the conditions that hold for all rows of a SELECT: terms of its WHERE and of its inner joins."""
    nodes = [select, *(from_.this for from_ in [select.args.get("from_")] if from_ is not None)]
    while _is_joined(nodes[-1]):
        nodes.append(nodes[-1].this)
    joins = [join for node in nodes for join in node.args.get("joins") or ()]
    found = [join.args.get("on") for join in joins if not (join.side or join.method) and join.kind in ("", "INNER")]
    found += [where.this for where in [select.args.get("where")] if where is not None]
    while found:
        condition = found.pop()
        if isinstance(condition, exp.And | exp.Paren):
            found += [condition.this, condition.args.get("expression")]
        elif condition is not None:
            yield condition


def _constant(node: exp.Expr) -> tuple[str, bool] | None:
    """Return the text of a constant, and whether it is quoted text; None for any other expression.

    The text of a negative number has its sign; a boolean is `true` or `false`.
    """
    match node:
        case exp.Literal():
            return str(node.this), bool(node.is_string)
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return f"-{number.this}", False
        case exp.Boolean():
            return str(bool(node.this)).lower(), False
    return None
