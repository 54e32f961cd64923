"""The column that a name in a query refers to, its text in comparisons, and the double-quoted names that are texts.

The text of a column has its table, is the same where joins make columns equal, and is that of what a nested query
selects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, permutations, product, takewhile
from math import factorial, prod
from typing import NamedTuple, TypeVar

from sqlglot import exp

from pytest_queryeval.core.db_schema import Column

_ROW_IDS = frozenset(("rowid", "oid", "_rowid_"))
# Columns that tables have without declaring them, by dialect: names refer to these before they refer to aliases.
HIDDEN_COLUMNS: Mapping[str, frozenset[str]] = {
    "": _ROW_IDS,
    "sqlite": _ROW_IDS,
    "duckdb": frozenset(("rowid",)),
    "postgres": frozenset(("tableoid", "ctid", "xmin", "cmin", "xmax", "cmax")),
}
QUOTES_TEXTS = frozenset(("", "sqlite"))  # dialects in which "x" is a text where no column has that name
MAX_NUMBERINGS = 24
_OUTWARD = "^"
T = TypeVar("T")


class FromItem(NamedTuple):
    """An item of FROM, with the expressions of its columns by their names; None if its columns are not known.

    Columns of a table have None as their expression; those of a nested query are expressions in `select`.
    """

    node: exp.Expr
    columns: Mapping[str, exp.Expr | None] | None
    select: exp.Select | None = None


class Names:
    """The items of FROM that the names in a SELECT refer to, by alias. All names are in lower case."""

    def __init__(self, select: exp.Select, columns: Columns) -> None:
        self.select = select
        self._columns = columns
        self.sources: dict[str, FromItem] = {}
        from_ = select.args.get("from_")
        joins = (join.this for join in select.args.get("joins") or ())
        for node in chain.from_iterable(map(_items, chain([from_.this] if from_ is not None else [], joins))):
            alias = node.alias_or_name.lower()
            alias = alias if alias not in self.sources else f"{alias} {len(self.sources)}"
            self.sources[alias] = columns.source(node)

    @cached_property
    def outer(self) -> Names | None:
        """The names of the SELECT around this SELECT; None if there is none."""
        return self._columns.names_at(self.select)

    @cached_property
    def aliases(self) -> Mapping[str, exp.Expr]:
        """The selected expressions by their aliases in lower case; if several have one alias, the first."""
        return aliases_of(self.select)

    def aliased(self, column: exp.Column) -> exp.Expr | None:
        """Return the selected expression that a name refers to by its alias; None if it refers to a column.

        A key of ORDER BY is an alias first; any other name is a column of FROM first.
        """
        name = column.name.lower()
        if column.table or name not in self.aliases:
            return None
        key: exp.Expr = column
        while isinstance(key.parent, exp.Paren | exp.Ordered):
            key = key.parent
        is_sort_key = key is not column and key.parent is self.select.args.get("order")
        is_column = self.first_owner(name) is not None and not is_sort_key
        return None if is_column else self.aliases[name]

    def owners(self, name: str) -> list[str]:
        """Return the aliases of the items that are known to have a column; `name` is in lower case."""
        return [alias for alias, source in self.sources.items() if name in (source.columns or ())]

    def find(self, table: str, name: str, joined: Collection[str] | None = None) -> tuple[Names, str] | None:
        """Return the names and the alias of the FROM item that a column belongs to, here or further out.

        None if there is none. Without the name of a table this is the nearest item that is known to have the column.
        Otherwise it is the nearest item whose columns are not known, unless there are several. `joined` are the items
        that an item of FROM can name.
        """
        if table and table in (self.sources if joined is None else joined):
            return self, table
        if table:
            return None if self.outer is None else self.outer.find(table, name)
        return self.find_known(name, joined) or self._find_unknown(self.sources if joined is None else joined)

    def find_known(self, name: str, joined: Collection[str] | None = None) -> tuple[Names, str] | None:
        """Return the nearest item of FROM that is known to have a column, declared or hidden.

        The result is that of `find`; None if no item is known to have it.
        """
        alias = self.first_owner(name)
        if alias is not None and (joined is None or alias in joined):
            return self, alias
        return None if self.outer is None else self.outer.find_known(name)

    def _find_unknown(self, aliases: Collection[str]) -> tuple[Names, str] | None:
        """Return the nearest item of FROM whose columns are not known; None if the same FROM has another such item.

        None also if the columns of all items are known.
        """
        unknown = [alias for alias in self._unknown if alias in aliases]
        if unknown or self.outer is None:
            return (self, unknown[0]) if len(unknown) == 1 else None
        return self.outer._find_unknown(self.outer.sources)

    def is_text(self, column: exp.Column) -> bool:
        """Return whether a name in double quotes is a text: SQLite reads it as a text if there is no such column.

        If the columns are not known, only a name that needs quotes is a text.
        """
        name = column.name.lower()
        if column.table or not column.this.args.get("quoted") or not self._columns.quotes_texts:
            return False
        if name in self._columns.hidden_columns or self._has_alias(name) or self.find_known(name):
            return False
        return not name.isidentifier() or self._knows_all_columns

    def _has_alias(self, name: str) -> bool:
        """Return whether a name may refer to a selected expression of this query or of a query around it.

        It does so as the alias of the expression or, if that has none, as its text.
        """
        if name in self.aliases or any("" in (source.columns or ()) for source in self.sources.values()):
            return True
        return self.outer is not None and self.outer._has_alias(name)

    def joined_columns(self, join: exp.Join) -> Iterator[tuple[str, str, str]]:
        """Yield the columns that USING or NATURAL JOIN equates: the name, the item on the left and the joined item."""
        if not join.args.get("using") and join.method != "NATURAL":
            return
        item = next(_items(join.this))
        before = [*takewhile(lambda alias: self.sources[alias].node is not item, self.sources)]
        alias = [*self.sources][len(before)]  # the first item that the join adds
        shared = [column.name.lower() for column in join.args.get("using") or ()]
        if join.method == "NATURAL":
            columns = self.sources[alias].columns or ()
            shared += [name for name in columns if any(name in (self.sources[left].columns or ()) for left in before)]
        for name in shared if before else ():
            yield name, next((left for left in before if name in (self.sources[left].columns or ())), before[-1]), alias

    def first_owner(self, name: str) -> str | None:
        """Return the alias of the first item that is known to have a column, declared or hidden; None if none is.

        Hidden columns are those of the only table, or of the only item: some versions of SQLite have them in queries,
        too.
        """
        if (owners := self.owners(name)) or name not in self._columns.hidden_columns:
            return next(iter(owners), None)
        tables = [
            alias
            for alias, source in self.sources.items()
            if isinstance(source.node, exp.Table) and source.select is None
        ]
        items = tables or [*self.sources]
        return items[0] if len(items) == 1 else None

    @cached_property
    def _unknown(self) -> list[str]:
        """The items whose columns are not known."""
        return [alias for alias, source in self.sources.items() if source.columns is None]

    @property
    def _knows_all_columns(self) -> bool:
        """Whether the columns of all items are known, here and further out."""
        return not self._unknown and (self.outer is None or self.outer._knows_all_columns)


class Columns:
    """Resolves the names in trees by the columns of `tables`, both in lower case."""

    def __init__(self, tables: Mapping[str, Collection[str]], dialect: str) -> None:
        self.quotes_texts = dialect in QUOTES_TEXTS
        self.hidden_columns = HIDDEN_COLUMNS.get(dialect, frozenset())
        self._tables = tables
        self._names: dict[int, Names] = {}
        self._open: set[int] = set()  # queries that are being read, so that one that reads itself ends

    def names(self, select: exp.Select) -> Names:
        """Return the names that can be used in a SELECT. Kept for each SELECT."""
        if id(select) not in self._names:
            self._names[id(select)] = Names(select, self)
        return self._names[id(select)]

    def names_at(self, node: exp.Expr) -> Names | None:
        """Return the names that a node within a SELECT can use; None outside of a SELECT.

        A query in FROM or WITH sees what is around the SELECT, unless it is LATERAL.
        """
        outer = node.parent
        while outer is not None and not isinstance(outer, exp.Select):
            is_item = isinstance(outer, exp.From | exp.Join) and isinstance(node, exp.Subquery) and outer.this is node
            enclosing = outer.find_ancestor(exp.Select) if is_item else outer
            enclosing = outer.parent if isinstance(outer, exp.With) else enclosing
            if enclosing is None:
                return None
            node, outer = enclosing, enclosing.parent
        return None if outer is None else self.names(outer)

    def find(self, column: exp.Column) -> tuple[Names, str] | None:
        """Return the names and the alias of the FROM item that a column in a tree belongs to; None if there is none."""
        names = self.names_at(column)
        return None if names is None else names.find(column.table.lower(), column.name.lower())

    def replace_texts(self, tree: exp.Expr) -> None:
        """Replace names in double quotes that are texts by literals, in the tree itself."""
        for column in list(tree.find_all(exp.Column)):
            names = self.names_at(column)
            if names is not None and names.is_text(column):
                column.replace(exp.Literal.string(column.name))

    def origin_of(self, column: exp.Column, names: Names | None = None) -> Column | None:
        """Return the result of `origin` for a column in a tree; None if it is not known.

        With `names`, the column is read as it would be in their SELECT.
        """
        names = names or self.names_at(column)
        return None if names is None else self.origin(names, column.table.lower(), column.name.lower())

    def origin(self, names: Names, table: str, name: str) -> Column | None:
        """Return the table column that a name reads, directly or through queries that pass it on unchanged.

        All names are in lower case; `table` is empty for a column without the name of a table. None for any other
        expression, and if the table's columns are not known.
        """
        visited: set[tuple[Names, str, str]] = set()
        while (names, table, name) not in visited:
            visited.add((names, table, name))
            match = names.find(table, name)
            if match is None:
                return None
            source = match[0].sources[match[1]]
            if source.select is None:
                return None if source.columns is None else (source.node.name.lower(), name)
            expression = (source.columns or {}).get(name)
            if not isinstance(expression, exp.Column):
                return None
            names, table, name = self.names(source.select), expression.table.lower(), expression.name.lower()
        return None

    def source(self, node: exp.Expr) -> FromItem:
        """Return a node of FROM with its columns, from the tables or from its query.

        The query is a nested one, or one of WITH that the node names. Columns are None if they are not known, as in a
        query that reads itself.
        """
        query: exp.Expr | None = find_cte(node) if isinstance(node, exp.Table) else node
        if query is None:
            columns = self._tables.get(node.name.lower()) if isinstance(node.this, exp.Identifier) else None
            return FromItem(node, None if columns is None else dict.fromkeys(columns))
        select = query.this if isinstance(query, exp.Subquery | exp.CTE | exp.Lateral) else None
        while isinstance(select, exp.SetOperation | exp.Subquery):
            select = select.this
        if not isinstance(select, exp.Select) or id(select) in self._open:
            return FromItem(node, None)
        self._open.add(id(select))
        items = self.items(select)
        self._open.remove(id(select))
        columns = None if items is None else dict(items)
        if columns is not None and (names := query.alias_column_names):
            columns = dict(zip((name.lower() for name in names), columns.values(), strict=False))
        return FromItem(node, columns, select)

    def items(self, select: exp.Select) -> list[tuple[str, exp.Expr]] | None:
        """Return the lower-case names and the expressions of the columns that a SELECT returns.

        None if `*` stands for unknown columns, or leaves out or replaces columns.
        """
        items: list[tuple[str, exp.Expr]] = []
        for item in select.expressions:
            if not item.is_star:
                items.append((item.alias_or_name.lower(), item.unalias()))
                continue
            star = item.this if isinstance(item, exp.Column) else item
            if any(star.args.values()):  # some columns are left out, or replaced
                return None
            table = item.table.lower() if isinstance(item, exp.Column) else ""
            for alias, source in self.names(select).sources.items():
                if table not in ("", alias):
                    continue
                if source.columns is None:
                    return None
                items += [(name, exp.column(name, table=alias)) for name in source.columns]
        return items


def at_position(key: exp.Expr, node: exp.Query) -> exp.Expr:
    """Return the item of a query's list at the position that a key gives; the key itself if it is not a position."""
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdecimal() or len(key.name) > 4:
        return key
    place = int(key.name) - 1
    return node.selects[place] if 0 <= place < len(node.selects) else key


def aliases_of(select: exp.Query) -> dict[str, exp.Expr]:
    """Return the selected expressions by their aliases in lower case; if several have one alias, the first."""
    return {item.alias.lower(): item.this for item in reversed(select.selects) if isinstance(item, exp.Alias)}


def linked(first: T, pairs: Collection[tuple[T, T]]) -> set[T]:
    """Return all values that pairs link to a value, directly or through others; the value included."""
    found, size = {first}, 0
    while len(found) != size:
        size = len(found)
        found.update(item for pair in pairs if not found.isdisjoint(pair) for item in pair)
    return found


def find_cte(table: exp.Expr) -> exp.CTE | None:
    """Return the query of WITH that a table's name refers to, in the nearest WITH that defines it.

    The letter case of names is ignored. None for a table of the database and for other nodes.
    """
    if not isinstance(table, exp.Table) or table.db or not isinstance(table.this, exp.Identifier):
        return None
    inner: exp.Expr = table
    while (outer := inner.parent) is not None:
        clause: exp.Expr | None = outer if isinstance(outer, exp.With) else outer.args.get("with_")
        for query in clause.expressions if clause is not None and clause is not inner else ():
            if query is inner and not outer.args.get("recursive"):
                break  # it reads those before it
            if isinstance(query, exp.CTE) and query.alias.lower() == table.name.lower():
                return query
        inner = outer
    return None


def _items(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the items of FROM in a node: itself, and in parentheses all that is joined."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
        yield from _items(node.this)
    else:
        yield node
    for join in node.args.get("joins") or ():
        yield from _items(join.this)


class Relation(NamedTuple):
    """An item of FROM: a table, or a query by its text.

    `name` is its text in FROM, `label` the prefix of its columns if that differs. `columns` are the texts of its
    columns by their names, where these differ.
    """

    name: str
    columns: Mapping[str, str] | None = None
    label: str = ""

    def column(self, name: str) -> str:
        """Return the text of a column of this relation."""
        return f"{self.label or self.name}.{(self.columns or {}).get(name, name)}"


@dataclass(slots=True)
class Scope:
    """The texts of what the names of a SELECT refer to, and the scope around it; all names are in lower case.

    `relations` are the items of FROM by their aliases in `names`. `aliases` are the texts of the SELECT list, to which
    names refer after columns; those of a set operation refer to nothing else. `budget` is how often a SELECT in it may
    be read, see `numberings`.
    """

    outer: Scope | None = None
    names: Names | None = None
    relations: dict[str, Relation] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    budget: int = MAX_NUMBERINGS
    _same: list[tuple[str, str]] = field(default_factory=list)

    def numberings(self) -> Iterator[Scope]:
        """Yield a scope for each way to number the items that FROM has more than once.

        A table that is joined with itself needs a number to distinguish its columns, and no order of such tables is
        given. So readers take the numbering with the smallest text. If there are more ways than `budget`, which nested
        queries share, only the order of the text is tried.
        """
        count = Counter([relation.name for relation in self.relations.values()])
        if len(count) == len(self.relations):
            yield self
            return
        repeated = {
            name: [alias for alias, relation in self.relations.items() if relation.name == name]
            for name, times in count.items()
            if times > 1
        }
        ways = prod(factorial(min(len(aliases), MAX_NUMBERINGS)) for aliases in repeated.values())
        tries_all = ways <= self.budget
        orders = product(*map(permutations, repeated.values())) if tries_all else iter([tuple(repeated.values())])
        for order in orders:
            relations = dict(self.relations)
            for aliases in order:
                for number, alias in enumerate(aliases, start=1):
                    relations[alias] = relations[alias]._replace(label=f"{relations[alias].name}#{number}")
            budget = self.budget // ways if tries_all else 1
            yield replace(self, relations=relations, aliases={}, budget=budget, _same=[])

    def column(self, table: str, name: str) -> str:
        """Return the text of a column: `table.column`, with a mark for each query in between.

        Columns that a join makes equal have one text. A name that refers to nothing stays as it is.
        """
        alias = "" if table else self.aliases.get(name, "")
        if alias and self.names is None:
            return alias
        scope = self._nearest_select()
        if scope is None or scope.names is None:
            match = None
        elif alias:
            match = scope.names.find_known(name, scope.relations)
        else:
            match = scope.names.find(table, name, scope.relations)
        return self._text(match, name) or alias or (f"{table}.{name}" if table else name)

    def owner(self, column: exp.Column) -> str | None:
        """Return the alias, in this scope, of the relation that has a column; None if that is not known."""
        assert self.names is not None
        table = column.table.lower()
        if table:
            return table if table in self.relations else None
        match = self.names.find_known(column.name.lower())
        return match[1] if match is not None and match[0] is self.names else None

    def is_text(self, column: exp.Column) -> bool:
        """Return whether a name in double quotes is a text; see `Names.is_text`."""
        scope = self._nearest_select()
        return scope is not None and scope.names is not None and scope.names.is_text(column)

    def join_columns(self, first: str, second: str) -> None:
        """Treat two texts of columns as equal from now on."""
        self._same.append((first, second))

    def equal_columns(self) -> list[str]:
        """Return each set of columns that joins make equal as one sorted text."""
        return sorted({" = ".join(sorted(linked(first, self._same))) for first, _ in self._same})

    def _nearest_select(self) -> Scope | None:
        """Return the nearest scope of a SELECT: the scopes of WITH and of set operations have no names.

        None if there is none.
        """
        scope: Scope | None = self
        while scope is not None and scope.names is None:
            scope = scope.outer
        return scope

    def _text(self, match: tuple[Names, str] | None, name: str) -> str | None:
        """Return the text of a column of the FROM item that `find` returned.

        None if this scope does not see the item.
        """
        scope: Scope | None = self
        marks = ""
        while match is not None and scope is not None:
            if scope.names is match[0]:
                relation = scope.relations.get(match[1])  # None within the item itself, if it is LATERAL
                return None if relation is None else marks + min(linked(relation.column(name), scope._same))
            marks += _OUTWARD if scope.relations else ""
            scope = scope.outer
        return None


def selected_columns(tree: exp.Expr) -> tuple[str, ...] | None:
    """Return the columns of any answer to a query; None if it selects all columns of an item, or is no query."""
    if not isinstance(tree, exp.Query) or not tree.selects:
        return None
    is_open = any(column.is_star or column.find(exp.Columns) for column in tree.selects)
    return None if is_open else tuple(tree.named_selects)
