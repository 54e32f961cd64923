"""Random SQL queries with the names that databases resolve: aliases, CTEs, views, `*`, nested queries, set operations.

With SQLite's and DuckDB's own records of what a query reads: the authorizer, and the plan before it is optimized.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import duckdb

from pytest_queryeval.core.db_schema import Schema

Columns = frozenset[tuple[str, str]]  # (table, column); the column is empty for the table itself

SCRIPT = """
CREATE TABLE orders (id INTEGER, customer_id INTEGER, price INTEGER, tenant_id INTEGER);
CREATE TABLE customers (id INTEGER, name TEXT, city TEXT, salary INTEGER);
CREATE TABLE items (id INTEGER, order_id INTEGER, product TEXT, price INTEGER);
CREATE TABLE salaries (id INTEGER, amount INTEGER, city TEXT);
CREATE VIEW cheap AS SELECT id, price FROM orders WHERE tenant_id = 1;
CREATE VIEW known AS SELECT c.*, s.amount FROM customers AS c JOIN salaries AS s USING (city);
CREATE VIEW deep AS SELECT cheap.id AS number, product FROM cheap, items WHERE order_id = cheap.id;
"""
TABLES: Mapping[str, tuple[str, ...]] = {
    "orders": ("id", "customer_id", "price", "tenant_id"),
    "customers": ("id", "name", "city", "salary"),
    "items": ("id", "order_id", "product", "price"),
    "salaries": ("id", "amount", "city"),
    "cheap": ("id", "price"),
    "known": ("id", "name", "city", "salary", "amount"),
    "deep": ("number", "product"),
}
VIEWS = ("cheap", "known", "deep")
SCHEMA = Schema(tables=TABLES)
_TEXTS = frozenset(("name", "city", "product", "note"))


class Writer:
    """Writes random queries in the dialect of SQLite or DuckDB."""

    def __init__(self, random: Random, dialect: str) -> None:
        self._random = random
        self._dialect = dialect
        self._number = 0

    def query(self, depth: int = 3) -> str:
        """Return a random query, which the database may refuse."""
        return self._query({}, [], depth)[0]

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _name(self, name: str) -> str:
        """Return a name as it is, in other letters, or in quotes."""
        name = self._random.choice((name, name, name, name.upper(), name.title()))
        return f'"{name}"' if self._chance(0.15) else name

    def _fresh(self, prefix: str) -> str:
        self._number += 1
        shadowing = ["orders", "salaries", "amount", "price", "salary"] if self._chance(0.2) else []
        return self._random.choice([f"{prefix}{self._number}", *shadowing])

    def _query(
        self, ctes: Mapping[str, Sequence[str]], outer: Sequence[tuple[str, str]], depth: int
    ) -> tuple[str, list[str]]:
        """Return a query with the names of its columns; `outer` are columns that it can refer to."""
        ctes, clauses = dict(ctes), []
        if depth > 0 and self._chance(0.25):
            for _ in range(self._random.randint(1, 2)):
                name = self._fresh("c")
                text, columns = self._query(ctes, [], depth - 1)
                if self._chance(0.3):
                    columns = [f"r{number}" for number in range(len(columns))]
                    clauses.append(f"{name}({', '.join(columns)}) AS ({text})")
                else:
                    clauses.append(f"{name} AS ({text})")
                ctes[name] = columns
        text, columns = self._select(ctes, outer, depth)
        if depth > 0 and self._chance(0.15):
            operator = self._random.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
            other = self._select(ctes, outer, depth - 1, width=len(columns))[0]
            text = f"{text} {operator} {other}"
            if self._chance(0.3):
                text += " ORDER BY 1"
        return (f"WITH {', '.join(clauses)} {text}" if clauses else text), columns

    def _relation(self, ctes: Mapping[str, Sequence[str]], depth: int) -> tuple[str, str, list[str]]:
        """Return an item of FROM, its alias, and its columns."""
        if depth > 0 and self._chance(0.2):
            text, columns = self._query(ctes, [], depth - 1)
            alias = self._fresh("q")
            return f"({text}) AS {alias}", alias, columns
        name = self._random.choice([*TABLES, *ctes, *ctes])
        columns = list(ctes.get(name) or TABLES[name])
        text = self._name(name)
        if name not in ctes and self._chance(0.1):
            text = f"main.{text}"
        if self._chance(0.5):
            alias = self._fresh("t")
            if self._dialect == "duckdb" and self._chance(0.15):
                columns = [f"n{self._number}_{place}" for place in range(len(columns))]
                return f"{text} AS {alias}({', '.join(columns)})", alias, columns
            return f"{text} {self._random.choice(('AS ', ''))}{alias}", alias, columns
        return text, name, columns

    def _from(self, ctes: Mapping[str, Sequence[str]], depth: int) -> tuple[str, dict[str, list[str]]]:
        """Return FROM without the word, and the columns of its items by their aliases."""
        text, alias, columns = self._relation(ctes, depth)
        sources = {alias: columns}
        while self._chance(0.4) and len(sources) < 3:
            joined, other, names = self._relation(ctes, depth)
            if other in sources:
                break
            shared = [name for name in names if any(name in columns for columns in sources.values())]
            once = [name for name in shared if sum(name in columns for columns in sources.values()) == 1]
            kind = self._random.choice(("JOIN", "LEFT JOIN", "INNER JOIN", "FULL JOIN"))
            sides = [(one, name) for one in sources for name in sources[one]], [(other, name) for name in names]
            if once and self._chance(0.4):
                text += f" {kind} {joined} USING ({self._name(self._random.choice(once))})"
            elif self._chance(0.12) and len(once) == len(shared):
                text += f" NATURAL {kind} {joined}"
            elif self._chance(0.25):
                text += f", {joined}"
            else:
                left, right = (f"{one}.{self._name(name)}" for one, name in map(self._random.choice, sides))
                text += f" {kind} {joined} ON {left} = {right}"
            sources[other] = names
        return text, sources

    def _select(
        self, ctes: Mapping[str, Sequence[str]], outer: Sequence[tuple[str, str]], depth: int, width: int = 0
    ) -> tuple[str, list[str]]:
        text, sources = self._from(ctes, depth)
        visible = [(one, name) for one, names in sources.items() for name in names]
        items, outputs = self._items(sources, visible, ctes, outer, depth, width)
        tail = ""
        if self._chance(0.6):
            tail += f" WHERE {self._condition(sources, visible, ctes, outer, depth)}"
        if self._chance(0.15):
            key = self._reference(sources, visible)
            items, outputs = [f"{key} AS k", "count(*) AS n"], ["k", "n"]
            if width:
                items, outputs = items[:width] + ["max(1)"] * (width - 2), [*outputs, *["x"] * (width - 2)][:width]
            tail += f" GROUP BY {key}"
            tail += self._random.choice(("", f" HAVING max({self._reference(sources, visible)}) > 1"))
        elif self._chance(0.3) and not width:
            aliases = [item.rpartition(" AS ")[2] for item in items if " AS " in item]
            tail += f" ORDER BY {self._random.choice([*aliases, self._reference(sources, visible)])}"
            tail += self._random.choice(("", " DESC", " LIMIT 3"))
        distinct = "DISTINCT " if self._chance(0.1) and "ORDER" not in tail else ""
        comment = self._random.choice(("", "", "", " /* FROM salaries */ ", " -- salaries.amount\n"))
        if self._dialect == "duckdb" and self._chance(0.1) and not distinct:
            return f"FROM {text} SELECT {comment}{', '.join(items)}{tail}", outputs
        return f"SELECT {distinct}{comment}{', '.join(items)} FROM {text}{tail}", outputs

    def _items(
        self,
        sources: Mapping[str, Sequence[str]],
        visible: Sequence[tuple[str, str]],
        ctes: Mapping[str, Sequence[str]],
        outer: Sequence[tuple[str, str]],
        depth: int,
        width: int,
    ) -> tuple[list[str], list[str]]:
        """Return the selected expressions, with their names."""
        if not width and self._chance(0.2):
            one = self._random.choice([*sources])
            names = [name for _, name in visible] if self._chance(0.5) else list(sources[one])
            star = "*" if len(names) == len(visible) else f"{one}.*"
            if self._dialect == "duckdb" and self._chance(0.3):
                left_out = self._random.choice(names)
                rest = [name for name in names if name != left_out]
                return ([f"{star} EXCLUDE ({left_out})"], rest) if rest else ([star], names)
            return [star], names
        items, outputs = [], []
        for _ in range(width or self._random.randint(1, 3)):
            name = f"x{len(items)}"
            expression = self._expression(sources, visible, ctes, outer, depth)
            if self._chance(0.3):
                name = self._random.choice(("salary", "amount", "price", "id"))
            if name in outputs:
                name = f"x{len(items)}"
            items.append(f"{expression} AS {name}")
            outputs.append(name)
        return items, outputs

    def _reference(self, sources: Mapping[str, Sequence[str]], visible: Sequence[tuple[str, str]]) -> str:
        alias, name = self._random.choice(visible)
        is_unique = sum(other == name for _, other in visible) == 1
        return self._name(name) if is_unique and self._chance(0.6) else f"{alias}.{self._name(name)}"

    def _expression(
        self,
        sources: Mapping[str, Sequence[str]],
        visible: Sequence[tuple[str, str]],
        ctes: Mapping[str, Sequence[str]],
        outer: Sequence[tuple[str, str]],
        depth: int,
    ) -> str:
        column = self._reference(sources, visible)
        choices = [column, column, column, f"coalesce({column}, {self._reference(sources, visible)})"]
        choices += [f"CASE WHEN {column} IS NULL THEN 1 ELSE 2 END", f"row_number() OVER (ORDER BY {column})"]
        choices += [f"count(*) OVER (PARTITION BY {column})"]
        if outer and self._chance(0.3):
            alias, name = self._random.choice(outer)
            return f"{alias}.{name}" if self._chance(0.6) else name
        if depth > 0 and self._chance(0.2):
            inner = self._query(ctes, [*visible, *outer], depth - 1)
            return f"(SELECT max({inner[1][0]}) FROM ({inner[0]}) AS {self._fresh('s')})"
        return self._random.choice(choices)

    def _condition(
        self,
        sources: Mapping[str, Sequence[str]],
        visible: Sequence[tuple[str, str]],
        ctes: Mapping[str, Sequence[str]],
        outer: Sequence[tuple[str, str]],
        depth: int,
    ) -> str:
        column = self._reference(sources, visible)
        if depth > 0 and self._chance(0.35):
            inner, names = self._select(ctes, [*visible, *outer], depth - 1, width=1)
            form = self._random.choice(("IN", "NOT IN", "EXISTS", "="))
            if form == "EXISTS":
                return f"EXISTS ({inner})"
            return (
                f"{column} {form} ({inner})" if form != "=" else f"{column} = (SELECT min({names[0]}) FROM ({inner}) z)"
            )
        if outer and self._chance(0.6):
            alias, name = self._random.choice(outer)
            return f"{column} = {alias}.{name}"
        if self._chance(0.3):
            return f"{column} IS NOT NULL AND {self._condition(sources, visible, ctes, outer, depth - 1)}"
        return f"{column} IS NOT NULL"


class SqliteRecord:
    """What SQLite's authorizer records."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.executescript(SCRIPT)
        self._log: list[tuple[Any, ...]] = []
        self._connection.set_authorizer(self._record)

    def _record(self, action: int, *arguments: Any) -> int:
        if action == sqlite3.SQLITE_READ:
            self._log.append(arguments)
        return sqlite3.SQLITE_OK

    def reads(self, query: str) -> Columns | None:
        """Return the tables and columns that are no views; None for a query that SQLite refuses."""
        self._log.clear()
        try:
            self._connection.execute(f"EXPLAIN {query}").close()
        except sqlite3.Error:
            return None
        columns = {(table.lower(), column.lower()) for table, column, *_ in self._log if column}
        read = {(table, column) for table, column in columns if table not in VIEWS}
        return frozenset(read | {(table, "") for table, _ in read})


class DuckdbRecord:
    """What the plan of DuckDB reads before it is optimized."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute(SCRIPT)

    def reads(self, query: str) -> Columns | None:
        """Return the tables and columns that are no views; None for a query that DuckDB refuses."""
        (text,) = self._connection.execute("SELECT json_serialize_plan(?)", [query]).fetchone() or ("{}",)
        plan = json.loads(text)
        if plan["error"]:
            return None
        return frozenset(read for scan in _scans(plan) for read in _columns_of(scan))


def _scans(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "LOGICAL_GET":
            yield node
        node = list(node.values())
    for part in node if isinstance(node, list) else ():
        yield from _scans(part)


def _columns_of(scan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    table = scan.get("function_data", {}).get("table")
    if table:
        yield table.lower(), ""
        for column in scan["column_indexes"]:
            if column["index"] < len(scan["names"]):
                yield table.lower(), scan["names"][column["index"]].lower()


RECORDS = {"sqlite": SqliteRecord, "duckdb": DuckdbRecord}
