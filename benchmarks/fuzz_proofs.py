"""Looks for wrong proofs: random queries that are proved to be the same, run on random databases with SQLite and DuckDB.

`python benchmarks/fuzz_proofs.py [--rounds N] [--seed N] [--databases N] [--engine sqlite]`: a round makes a schema for each
engine, with keys that may be NULL, columns without a type, generated columns, columns called `rowid` and tables WITHOUT ROWID,
then databases with NULLs, duplicates and whatever values the columns accept. Queries are written in several ways each, of
which not all mean the same: with and without parentheses, aliases, DISTINCT and IS NOT NULL, operands exchanged, IN or EXISTS,
LEFT JOIN or JOIN, `count(x)` or `count(*)`, tables in FROM, in a nested query or in WITH. Most queries are of one of four
sorts: row ids, set operations, anti-joins and LIMIT. Two that are proved have to answer alike in each database in which both
answer, without regard to order, or else they are printed. The last lines count what was proved, by sort.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

import duckdb

from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.features.strength.sql.proof import prove, with_nullable_keys
from pytest_queryeval.features.strength.sql.source_tables import read_tables
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

QUERIES, TEXTS, DATABASES, ROWS = 60, 6, 24, 5
PAIRS = 3  # of one query that are run, of all that are proved
POLICY = Policy(row_order="ignore")
NAMES = ("a", "b", "c", "d")
TYPES = {
    "sqlite": ("INTEGER", "INT", "TEXT", "VARCHAR(9)", "REAL", "DATE", "NUMERIC", "BLOB", "", "BLOBDATE", "CHARINT"),
    "duckdb": (
        "INTEGER",
        "BIGINT",
        "TINYINT",
        "VARCHAR",
        "DOUBLE",
        "FLOAT",
        "DECIMAL(5,2)",
        "DATE",
        "TIMESTAMP",
        "BOOLEAN",
    ),
}
VALUES: dict[str, tuple[object, ...]] = {
    "sqlite": (
        0,
        1,
        2,
        -1,
        1.0,
        1.5,
        -0.0,
        2**53 + 1,
        float(2**53),
        9e999,
        "",
        "a",
        "A",
        "b",
        "1",
        "01",
        "1.0",
        " 1",
        b"a",
        b"",
    ),
    "duckdb": (
        0,
        1,
        2,
        -1,
        1.5,
        "a",
        "A",
        "",
        "1",
        "2020-01-01",
        "2020-01-01 10:00:00",
        "nan",
        "inf",
        "-0.0",
        2**53,
        2**53 + 1,
    ),
}
CONSTANTS = {
    "sqlite": ("0", "1", "2", "-1", "1.5", "1e0", "'a'", "'1'", "''", "NULL", '"a"', '"zz"'),
    "duckdb": ("0", "1", "2", "-1", "1.5", "1e0", "'a'", "'1'", "9007199254740992e0", "'2020-01-01'"),
}
ROW_IDS = {"sqlite": ("rowid", "oid", "_rowid_"), "duckdb": ("rowid",)}
# The sorts of queries by what their texts have; one query may be of several.
SORTS = {
    "row ids": re.compile(r"\b(rowid|oid|_rowid_)\b"),
    "set operations": re.compile(r" (UNION|INTERSECT|EXCEPT) "),
    "anti-joins": re.compile(r"NOT \(?EXISTS|NOT \(?\S+ IN \(SELECT|NOT IN \(SELECT| LEFT JOIN .* IS NULL| EXCEPT "),
    "LIMIT": re.compile(r" LIMIT "),
}
CASTS = {"sqlite": ("INTEGER", "TEXT", "REAL", "NUMERIC", "DATE"), "duckdb": ("INTEGER", "VARCHAR", "DOUBLE", "DATE")}


class Schema:
    """Three tables of which the later ones may refer to the earlier ones."""

    def __init__(self, chance: Random, engine: str) -> None:
        self.engine = engine
        self.columns: dict[str, list[str]] = {}
        self._types_of_keys: dict[str, str] = {}  # of tables with the key a
        statements = [self._table(chance, name) for name in ("t", "u", "v")]
        if engine == "sqlite" and chance.random() < 0.2:
            statements.append("CREATE UNIQUE INDEX i ON u (b COLLATE NOCASE)")
        self.ddl = ";\n".join(statements) + ";\n"

    def _table(self, chance: Random, name: str) -> str:
        types = {column: chance.choice(TYPES[self.engine]) for column in NAMES[: chance.randint(2, 4)]}
        if chance.random() < 0.7:
            types["a"] = types["b"] = chance.choice(("INTEGER", TYPES[self.engine][2]))
        if chance.random() < 0.1:
            types[chance.choice(ROW_IDS[self.engine])] = chance.choice(TYPES[self.engine])
        lines, tail = [], ""
        key = chance.choice(
            ("a PRIMARY KEY", "a PRIMARY KEY", "PRIMARY KEY (a)", "PRIMARY KEY (a, b)", "UNIQUE (b, a)", "")
        )
        for column, declared in types.items():
            words = [column, declared]
            is_key = key == f"{column} PRIMARY KEY"
            words += ["PRIMARY KEY"] if is_key else [word for word in ("NOT NULL", "UNIQUE") if chance.random() < 0.25]
            if column == "b" and self._types_of_keys and chance.random() < 0.6:
                parent, words[1] = chance.choice([*self._types_of_keys.items()])
                words.append(f"REFERENCES {parent} (a)")
            lines.append(" ".join(words))
        if key in ("a PRIMARY KEY", "PRIMARY KEY (a)"):
            self._types_of_keys[name] = types["a"]
        self.columns[name] = [*types]
        if self.engine == "sqlite" and chance.random() < 0.2:
            lines.append("g GENERATED ALWAYS AS (b) VIRTUAL")
            self.columns[name].append("g")
        if " " in key and not key.startswith("a "):
            lines.append(key)
        if self.engine == "sqlite" and "PRIMARY" in key and chance.random() < 0.2:
            tail = " WITHOUT ROWID"
        return f"CREATE TABLE {name} ({', '.join(lines)}){tail}"

    def database(self, chance: Random) -> Any:
        """Return a database with random rows that keep the constraints; None where the engine refuses the schema."""
        connection: Any = sqlite3.connect(":memory:") if self.engine == "sqlite" else duckdb.connect(":memory:")
        try:
            if self.engine == "sqlite":
                connection.execute("PRAGMA foreign_keys = ON")
                connection.executescript(self.ddl)
            else:
                connection.execute(self.ddl)
        except (sqlite3.Error, duckdb.Error):
            return None
        pool = chance.sample(VALUES[self.engine], 6)
        for table, columns in self.columns.items():
            stored = [column for column in columns if column != "g"]
            for _ in range(chance.randint(0, ROWS)):
                row = [None if chance.random() < 0.15 else chance.choice(pool) for _ in stored]
                with suppress(sqlite3.Error, duckdb.Error):
                    connection.execute(
                        f"INSERT INTO {table} ({', '.join(stored)}) VALUES ({', '.join('?' * len(row))})", row
                    )
        return connection


class Writer:
    """Writes a query: `plan` decides what it says, `style` how it says it.

    Two writers with the same plan make about the same query. `plan` is asked first, so that no style shifts it.
    """

    def __init__(self, schema: Schema, plan: Random, style: Random) -> None:
        self._schema = schema
        self._plan = plan
        self._style = style
        self._number = 0

    def _maybe(self, share: float) -> bool:
        return self._style.random() < share

    def query(self) -> str:
        sorts = (self.set_operation, self.anti_join, self.limited, self.with_row_ids)
        kind = self._plan.random()
        return sorts[int(kind * 6)]() if kind < 4 / 6 else self.select([], width=self._plan.randint(1, 2))

    def set_operation(self) -> str:
        """Return a set operation, alone, in FROM or in IN, or a condition that may say the same."""
        plan, style = self._plan, self._style
        operator = plan.choice(("UNION", "UNION", "INTERSECT", "INTERSECT", "EXCEPT", "EXCEPT", "UNION ALL"))
        if plan.random() < 0.3:
            sides = [self.select([], width=1, is_nested=True) for _ in range(2)]
            return f" {operator} ".join(self._in_some_order(sides, 0.3))
        tables = [plan.choice(("t", "u", "v")) for _ in range(plan.choice((2, 2, 2, 3)))]
        if plan.random() < 0.4:
            tables = tables[:1] * len(tables)
        columns = [plan.choice(self._schema.columns[table]) for table in tables]
        if tables[0] == tables[1]:
            columns = columns[:1] * len(tables)
        conditions = [
            self.condition([column, *self._schema.columns[table][:2]], 3)
            for table, column in zip(tables, columns, strict=True)
        ]
        conditions = [condition if plan.random() < 0.7 else "" for condition in conditions]
        parts = list(zip(tables, columns, conditions, strict=True))
        form = style.random()
        if form < 0.3 and operator == "UNION" and len({*tables}) == 1:
            tests = [f"({condition})" for condition in conditions if condition]
            where = f" WHERE {' OR '.join(self._in_some_order(tests, 0.3))}" if len(tests) == len(tables) else ""
            return f"SELECT DISTINCT {columns[0]} FROM {tables[0]}{where}"
        if form < 0.4 and operator in ("INTERSECT", "EXCEPT") and len(tables) == 2:
            return self._as_condition(parts, is_negated=operator == "EXCEPT")
        sides = []
        for table, column, condition in parts:
            name = f"{table}.{column}" if self._maybe(0.3) else column
            distinct = "DISTINCT " if self._maybe(0.3) else ""
            sides.append(f"SELECT {distinct}{self._named(name)} FROM {table}" + f" WHERE {condition}" * bool(condition))
        text = f" {operator} ".join(
            self._in_some_order(sides, 0.0 if operator == "EXCEPT" and self._maybe(0.9) else 0.4)
        )
        match plan.random():
            case share if share < 0.2:
                return f"SELECT {'DISTINCT ' * self._maybe(0.3)}* FROM ({text}) AS s"
            case share if share < 0.4:
                tested = plan.choice(self._schema.columns["t"])
                return f"SELECT a FROM t WHERE {'NOT ' * (plan.random() < 0.3)}{tested} IN ({text})"
            case share if share < 0.5:
                return f"SELECT count(*) FROM ({text}) AS s"
        return text

    def _as_condition(self, parts: Sequence[tuple[str, str, str]], *, is_negated: bool) -> str:
        """Return an INTERSECT or EXCEPT of two SELECTs, written as a condition."""
        (table, column, condition), (other, other_column, other_condition) = parts
        word = "NOT " if is_negated else ""
        where = [f"({condition.replace('(', '(')})"] if condition else []
        inner = [f"({other_condition})"] if other_condition else []
        if self._maybe(0.5):
            where.append(f"x.{column} IS NOT NULL")
        if self._maybe(0.5):
            inner.append(f"y.{other_column} IS NOT NULL")
        if self._maybe(0.5):
            inner.append(self._swapped(f"x.{column}", "=", f"y.{other_column}"))
            nested = f"SELECT 1 FROM {other} AS y WHERE {' AND '.join(inner)}"
            where.append(f"{word}EXISTS ({nested})")
        else:
            nested = f"SELECT y.{other_column} FROM {other} AS y" + f" WHERE {' AND '.join(inner)}" * bool(inner)
            where.append(f"x.{column} {word}IN ({nested})")
        self._style.shuffle(where)
        return f"SELECT DISTINCT x.{column} FROM {table} AS x WHERE {' AND '.join(where)}"

    def anti_join(self) -> str:
        """Return the rows of a table that have no partner in another one, or a number of them."""
        plan, style = self._plan, self._style
        tables = [plan.choice(("t", "u", "v")) for _ in range(2)]
        left, right = (plan.choice(self._schema.columns[table][:2]) for table in tables)
        first, second = style.choice((("x", "y"), ("p", "q")))
        names, other_names = (
            [f"{alias}.{name}" for name in self._schema.columns[table]]
            for alias, table in zip((first, second), tables, strict=True)
        )
        seed = plan.random()
        # The same condition, whatever the aliases.
        conditions = [
            Writer(self._schema, Random(f"{seed} {side}"), style).condition(of_side, 3)
            for side, of_side in enumerate((names, other_names))
        ]
        outer = [f"({conditions[0]})"] if plan.random() < 0.3 else []
        inner = [f"({conditions[1]})"] if plan.random() < 0.3 else []
        selected = plan.choice(
            (f"{first}.{left}", f"{first}.{left}", ", ".join(names), "count(*)", f"DISTINCT {first}.{left}")
        )
        selected = selected.replace("x.", f"{first}.").replace("p.", f"{first}.")
        if self._maybe(0.35):
            outer.append(f"{first}.{left} IS NOT NULL")
        if self._maybe(0.35):
            inner.append(f"{second}.{right} IS NOT NULL")
        equality = self._swapped(f"{first}.{left}", "=", f"{second}.{right}")
        form = style.random()
        source = f"{tables[0]} AS {first}"
        if form < 0.3:
            conjunction = " AND ".join(self._in_some_order([equality, *inner], 0.3))
            tested = f"EXISTS (SELECT {style.choice(('1', '*', f'{second}.{right}'))} FROM {tables[1]} AS {second} WHERE {conjunction})"
            outer.append(f"NOT {self._in_parentheses(tested, 0.2)}")
        elif form < 0.65:
            nested = f"SELECT {second}.{right} FROM {tables[1]} AS {second}" + f" WHERE {' AND '.join(inner)}" * bool(
                inner
            )
            plain = self._maybe(0.6)
            outer.append(f"{first}.{left} NOT IN ({nested})" if plain else f"NOT {first}.{left} IN ({nested})")
        else:
            tested = style.choice((right, right, self._schema.columns[tables[1]][0]))
            source += (
                f" LEFT JOIN {tables[1]} AS {second} ON {' AND '.join(self._in_some_order([equality, *inner], 0.3))}"
            )
            outer.append(f"{second}.{tested} IS NULL")
        style.shuffle(outer)
        return f"SELECT {selected} FROM {source} WHERE {' AND '.join(outer)}"

    def limited(self) -> str:
        """Return a query whose LIMIT, at its top or within, leaves out rows, or none."""
        plan, style = self._plan, self._style
        table = plan.choice(("t", "u", "v"))
        columns = self._schema.columns[table]
        alias = style.choice(("x", "y", table))
        key, item, *others = (plan.choice(columns) for _ in range(4))
        direction = plan.choice(("", "", " DESC", " ASC"))
        number, offset = plan.choice((0, 1, 1, 2, 3)), plan.choice((0, 0, 0, 1))
        where = f" WHERE {self.condition(columns, 3)}" if plan.random() < 0.3 else ""
        form = plan.random()
        if form < 0.2:  # a single row
            text = plan.choice(
                (f"SELECT max({item}) FROM {table}{where}", f"SELECT count(*), min({item}) FROM {table}{where}")
            )
            return text + style.choice(("", " LIMIT 1", f" ORDER BY 1 LIMIT {plan.choice((1, 2))}", " LIMIT 2"))
        if form < 0.35:
            equality = self._swapped(f"{table}.a", "=", plan.choice(("1", "2", "'a'")))
            return f"SELECT {item} FROM {table} WHERE {equality}" + style.choice(
                ("", " LIMIT 1", f" ORDER BY {key} LIMIT 1")
            )
        selected = style.choice((item, f"{alias}.{item}", f"({item})"))
        prefix = f"{alias}." if self._maybe(0.4) else ""
        keys = f"{prefix}{key}{direction if direction != ' ASC' or self._maybe(0.5) else ''}"
        if key == item and self._maybe(0.3):
            keys = f"1{direction}"
        if self._maybe(0.4):
            keys += f", {alias}.{others[0]}"
        distinct = "DISTINCT " * (plan.random() < 0.3)
        cut = f" ORDER BY {keys} LIMIT {number}" + f" OFFSET {offset}" * bool(offset)
        query = f"SELECT {distinct}{self._named(selected)} FROM {table} AS {alias}{where}{cut}"
        if form < 0.6:
            return query
        query = f"SELECT {distinct}{alias}.{item} AS k FROM {table} AS {alias}{where}{cut}"
        match plan.randrange(4):
            case 0:
                return f"SELECT {'DISTINCT ' * self._maybe(0.3)}d.k FROM ({query}) AS d"
            case 1:
                return f"WITH c AS ({query}) SELECT {self._named('k')} FROM c"
            case 2:
                return f"SELECT a FROM t WHERE {self._swapped('t.a', '=', f'({query})')}"
        return f"SELECT a FROM t WHERE {'NOT ' * (plan.random() < 0.3)}{style.choice(('a', 't.a'))} IN ({query})"

    def with_row_ids(self) -> str:
        """Return a query in which a name of row ids is an alias, a column, or both."""
        plan, style = self._plan, self._style
        name = plan.choice(ROW_IDS[self._schema.engine])
        name = f'"{name}"' if self._maybe(0.1) else name
        table = plan.choice(("t", "u", "v"))
        columns = self._schema.columns[table]
        item, other = plan.choice(columns), plan.choice(columns)
        where = f" WHERE {self.condition(columns, 3)}" if plan.random() < 0.3 else ""
        alias = style.choice(("x", table))
        source = f"{table} AS {alias}" if self._maybe(0.7) else f"(SELECT * FROM {table}) AS {alias}"
        named = f"{item} AS {style.choice((name, name, 'k'))}" if self._maybe(0.8) else item
        referred = named.rpartition(" AS ")[2] if self._maybe(0.8) else style.choice((item, name))
        match plan.randrange(7):
            case 0 | 1:
                return f"SELECT {named}, count(*) FROM {source}{where} GROUP BY {self._in_parentheses(referred, 0.1)}"
            case 2:
                query = f"SELECT {named}, {other} AS o FROM {source}{where}"
                column = named.rpartition(" AS ")[2]
                prefix = "c." if self._maybe(0.3) else ""
                grouped = f" GROUP BY {prefix}{column}" * (plan.random() < 0.5)
                number = ", count(*)" if grouped else ", o"
                if self._maybe(0.5):
                    return f"WITH c AS ({query}) SELECT {prefix}{column}{number} FROM c{grouped}"
                return f"SELECT {prefix}{column}{number} FROM ({query}) AS c{grouped}"
            case 3:
                order = f" ORDER BY {referred}{style.choice(('', '', ' + 0'))}" + f" LIMIT {plan.choice((1, 2))}"
                return f"SELECT {'DISTINCT ' * (plan.random() < 0.3)}{named} FROM {source}{where}{order}"
            case 4:
                condition = f"{self._in_parentheses(referred, 0.1)} {plan.choice(('=', '<', 'IS NOT'))} {plan.choice(('1', 'NULL'))}"
                clause = plan.choice(("WHERE {}", "GROUP BY a, b HAVING {}")).format(condition)
                return f"SELECT {named} FROM {source} {clause}"
            case 5:
                outer = f"(SELECT {item} AS {name} FROM {table}) AS o" if plan.random() < 0.5 else f"{table} AS o"
                column = f"o.{name}" if self._maybe(0.5) else name
                nested = f"SELECT 1 FROM {plan.choice(('t', 'u', 'v'))} AS i WHERE {column} = 1"
                return f"SELECT count(*) FROM {outer} WHERE EXISTS ({nested})"
        return f"SELECT {named}, {alias}.{other} FROM {source}{where}"

    def select(self, outer: Sequence[str], width: int, *, is_nested: bool = False, is_row: bool = False) -> str:
        """Return a SELECT of `width` columns; `outer` are columns of queries around it, `is_row` asks for one row."""
        plan, style = self._plan, self._style
        depth = len(outer) // 3
        tables = [plan.choice(("t", "u", "v")) for _ in range(plan.choice((1, 1, 2, 2, 3)) if depth < 2 else 1)]
        joins = [plan.choice(("JOIN", "JOIN", "LEFT JOIN")) for _ in tables[1:]]
        plan_conditions = plan.randint(0, 2)
        grouped = not is_row and plan.random() < 0.25
        distinct = plan.random() < 0.3
        limit = plan.choice((None,) * 8 + (1, 2))
        aliases = []
        for table in tables:
            self._number += 1
            free = [name for name in (table, *NAMES[:2]) if name not in aliases]
            aliases.append(style.choice((*free[:2], f"x{self._number}", f"x{self._number}")))
        scope = [
            (alias, column)
            for alias, table in zip(aliases, tables, strict=True)
            for column in self._schema.columns[table]
        ]
        names = [self._name(alias, column, scope) for alias, column in scope]
        both = [*names, *plan.sample(list(outer), min(2, len(outer)))]
        sources, where = self._from(aliases, tables, joins, names)
        where += [self.condition(both, depth) for _ in range(plan_conditions)]
        if outer and plan.random() < 0.7:
            where.append(self._swapped(plan.choice(names), "=", plan.choice(list(outer))))
        if self._maybe(0.15):
            where.append(f"{style.choice(names)} IS NOT NULL")
        style.shuffle(where)
        keys = [plan.choice(names) for _ in range(plan.randint(1, 2))]
        if is_row or (not grouped and plan.random() < 0.2):
            items = [self._aggregate(both) for _ in range(width)]
        elif grouped:
            items = [plan.choice(keys) if plan.random() < 0.5 else self._aggregate(names) for _ in range(width)]
        else:
            items = [plan.choice(names) if plan.random() < 0.6 else self.expression(both, depth) for _ in range(width)]
        having = self.condition([*keys, "count(*)"], 3) if grouped and plan.random() < 0.3 else ""
        order = plan.choice((*items, *names)) if limit is not None or plan.random() < 0.2 else ""
        if not is_nested and self._maybe(0.3):
            items.reverse()
        text = "SELECT " + "DISTINCT " * (distinct != self._maybe(0.15)) + ", ".join(map(self._named, items))
        text += f" FROM {sources}" + f" WHERE {' AND '.join(where)}" * bool(where)
        if grouped:
            text += " GROUP BY " + ", ".join(reversed(keys) if self._maybe(0.3) else keys)
        text += f" HAVING {having}" * bool(having)
        if order and not is_nested and not is_row:
            place = str(items.index(order) + 1) if order in items and self._maybe(0.3) else order
            text += f" ORDER BY {self._in_parentheses(place, 0.1)}" + f" LIMIT {limit}" * (limit is not None)
        return text

    def _name(self, alias: str, column: str, scope: Sequence[tuple[str, str]]) -> str:
        is_unique = sum(name == column for _, name in scope) == 1
        name = f'"{column}"' if self._maybe(0.05) else column
        return name if is_unique and self._maybe(0.5) else f"{alias}.{name}"

    def _named(self, item: str) -> str:
        return f"{item} AS {self._style.choice((*NAMES, 'x', 'y'))}" if self._maybe(0.25) else item

    def _from(
        self, aliases: Sequence[str], tables: Sequence[str], joins: Sequence[str], names: Sequence[str]
    ) -> tuple[str, list[str]]:
        """Return the text of FROM, and conditions of joins that stand in WHERE."""
        where: list[str] = []
        sources = [self._source(table) + f" AS {alias}" for table, alias in zip(tables, aliases, strict=True)]
        text = sources[0]
        for place, join in enumerate(joins, start=1):
            left, right = aliases[self._plan.randrange(place)], aliases[place]
            columns = [self._plan.choice(("a", "a", "b")) for _ in range(2)]
            condition = self._swapped(f"{left}.{columns[0]}", "=", f"{right}.{columns[1]}")
            if self._plan.random() < 0.15:
                condition += f" AND {self.condition([f'{left}.a', f'{right}.b'], 3)}"
            kind = join if self._maybe(0.9) else "LEFT JOIN"
            if kind == "JOIN" and self._maybe(0.3):
                where.append(condition)
                text += f" CROSS JOIN {sources[place]}"
            else:
                text += f" {kind} {sources[place]} ON {condition}"
        return text, where

    def _source(self, table: str) -> str:
        """Return a table, or a query of its columns."""
        if self._maybe(0.85):
            return table
        columns = self._schema.columns[table]
        selected = "*" if self._maybe(0.5) else ", ".join(columns)
        return f"(SELECT {'DISTINCT ' * self._maybe(0.3)}{selected} FROM {table})"

    def expression(self, names: Sequence[str], depth: int) -> str:
        plan = self._plan
        kind = plan.random() if depth < 3 else plan.random() * 0.6
        if kind < 0.4:
            return plan.choice(names)
        if kind < 0.6:
            return plan.choice(CONSTANTS[self._schema.engine])
        if kind < 0.75:
            operator = plan.choice(("+", "-", "*", "/", "%", "||"))
            sides = [self._operand(self.expression(names, depth + 1)) for _ in range(2)]
            return f" {operator} ".join(self._in_some_order(sides, 0.2))
        if kind < 0.88:
            return self._call(names, depth)
        if kind < 0.93:
            return self._in_parentheses(self.condition(names, depth + 1), 0.8)
        return f"({self.select([*names, *names][:6], 1, is_nested=True, is_row=True)})"

    def _call(self, names: Sequence[str], depth: int) -> str:
        function = self._plan.choice(("lower", "length", "abs", "coalesce", "cast", "round", "case", "-"))
        argument = self.expression(names, depth + 1)
        match function:
            case "cast":
                return f"CAST({argument} AS {self._plan.choice(CASTS[self._schema.engine])})"
            case "coalesce":
                return f"coalesce({argument}, {self._plan.choice(names)})"
            case "case":
                return f"CASE WHEN {self.condition(names, depth + 1)} THEN {argument} END"
            case "-":
                return f"-{self._operand(argument)}"
        return f"{function}({argument})"

    def condition(self, names: Sequence[str], depth: int) -> str:
        plan = self._plan
        kind = plan.random() if depth < 2 else plan.random() * 0.72
        first, second = (self.expression(names, depth + 2) for _ in range(2))
        constants = [plan.choice(CONSTANTS[self._schema.engine]) for _ in range(2)]
        if kind < 0.35:
            operator = plan.choice(("=", "=", "<>", "<", "<="))
            condition = self._swapped(self._operand(first), operator, self._operand(second))
        elif kind < 0.5:
            condition = self._range_or_list(self._operand(first), constants)
        elif kind < 0.6:
            condition = f"{self._operand(first)} IS NULL"
        elif kind < 0.64:
            condition = f"{self._operand(first)} LIKE {constants[0]}"
        elif kind < 0.72:
            operator = plan.choice(("AND", "OR"))
            sides = [self._in_parentheses(self.condition(names, depth + 1), 0.8) for _ in range(2)]
            condition = f" {operator} ".join(self._in_some_order(sides, 0.3))
        elif kind < 0.9:
            condition = self._membership(names)
        else:
            condition = f"EXISTS ({self.select([*names, *names][:6], 1, is_nested=True)})"
        return f"NOT {self._in_parentheses(condition, 0.7)}" if plan.random() < 0.15 else condition

    def _range_or_list(self, tested: str, constants: Sequence[str]) -> str:
        if self._plan.random() < 0.5:
            short = f"{tested} IN ({', '.join(constants)})"
            long = " OR ".join(f"{tested} = {constant}" for constant in constants)
        else:
            short = f"{tested} BETWEEN {constants[0]} AND {constants[1]}"
            long = f"{tested} >= {constants[0]} AND {tested} <= {constants[1]}"
        return f"({long})" if self._maybe(0.4) else short

    def _membership(self, names: Sequence[str]) -> str:
        plan = self._plan
        tested = plan.choice(names)
        outer = [*names, *names][:6] if plan.random() < 0.3 else []
        nested = self.select(outer, 1, is_nested=True, is_row=plan.random() < 0.2)
        if plan.random() < 0.15:
            sides = [nested, self.select([], 1, is_nested=True)]
            return f"{tested} IN ({' UNION '.join(self._in_some_order(sides, 0.5))})"
        if self._maybe(0.2):
            return f"{tested} = ({nested})"
        if self._maybe(0.3) and " GROUP BY " not in nested and nested.count("SELECT") == 1:
            item, _, tables = nested.removeprefix("SELECT ").removeprefix("DISTINCT ").partition(" FROM ")
            equality = self._swapped(tested, "=", item.split(" AS ")[0])
            return f"EXISTS (SELECT 1 FROM {tables} {'AND' if ' WHERE ' in tables else 'WHERE'} {equality})"
        return f"{tested} IN ({nested})"

    def _in_some_order(self, sides: list[str], share: float) -> list[str]:
        return sides[::-1] if self._maybe(share) else sides

    def _aggregate(self, names: Sequence[str]) -> str:
        name, kind = self._plan.choice(names), self._plan.random()
        if kind < 0.45:
            return "count(*)" if self._maybe(0.4) else f"count({'DISTINCT ' * self._maybe(0.3)}{name})"
        function = self._plan.choice(("min", "max", "sum"))
        return f"{function}({'DISTINCT ' * self._maybe(0.2)}{name})"

    def _operand(self, text: str) -> str:
        return text if text.replace(".", "").isalnum() else self._in_parentheses(text, 0.6)

    def _in_parentheses(self, text: str, share: float) -> str:
        return f"({text})" if self._maybe(share) else text

    def _swapped(self, first: str, operator: str, second: str) -> str:
        flipped = {"<": ">", "<=": ">="}.get(operator, operator)
        return f"{second} {flipped} {first}" if self._maybe(0.4) else f"{first} {operator} {second}"


def answer(connection: Any, query: str) -> Table | None:
    """Return the answer of a query; None where it fails."""
    try:
        cursor = connection.execute(query)
        return Table(columns=tuple(column for column, *_ in cursor.description), rows=tuple(cursor.fetchall()))
    except (sqlite3.Error, duckdb.Error, ValueError, OverflowError):
        return None


def proved_pairs(schema: Schema, chance: Random, made: Counter[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield pairs of texts for the same query that are proved, with the rules; add the pairs that are tried to `made`."""
    tables = with_nullable_keys(read_tables(schema.ddl, schema.engine))
    for _ in range(QUERIES):
        seed = chance.random()
        texts = [Writer(schema, Random(seed), Random(chance.random())).query() for _ in range(TEXTS)]
        proofs = 0
        for gold, predicted in combinations(dict.fromkeys(texts), 2):
            made.update(
                [
                    f"{schema.engine}: generated",
                    *(f"{schema.engine}: {sort} generated" for sort in sorts_of(gold, predicted)),
                ]
            )
            if proofs < PAIRS and (rules := prove(gold, predicted, schema.engine, tables, POLICY)):
                proofs += 1
                yield gold, predicted, rules


def sorts_of(*texts: str) -> list[str]:
    return [sort for sort, pattern in SORTS.items() if any(pattern.search(text) for text in texts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--databases", type=int, default=DATABASES)
    parser.add_argument("--engine", choices=("sqlite", "duckdb"), action="append")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    rules_used: Counter[str] = Counter()
    began = time.process_time()
    for number in range(options.seed, options.seed + options.rounds):
        for engine in options.engine or ("sqlite", "duckdb"):
            run_round(number, engine, options.databases, counts, rules_used)
    print("\n".join(f"{name}: {count:,}" for name, count in sorted(counts.items())))
    print("rules:", rules_used.most_common())
    print(f"CPU: {time.process_time() - began:.0f} s")


def run_round(number: int, engine: str, databases: int, counts: Counter[str], rules_used: Counter[str]) -> None:
    """Prove pairs of queries on one schema, and print those that differ in one of its databases."""
    chance = Random(f"{number} {engine}")
    schema = Schema(chance, engine)
    connections = [schema.database(chance) for _ in range(databases)]
    if connections[0] is None:
        return

    @cache
    def answers(query: str) -> list[Table | None]:
        return [answer(connection, query) for connection in connections]

    for gold, predicted, rules in proved_pairs(schema, chance, counts):
        rules_used.update(rules)
        pairs = [
            (first, second)
            for first, second in zip(answers(gold), answers(predicted), strict=True)
            if first is not None and second is not None
        ]
        counted = [f"{engine}: proved", *(f"{engine}: {sort} proved" for sort in sorts_of(gold, predicted))]
        counts.update(counted if pairs else [f"{engine}: proved, but no answers"])
        counts[f"{engine}: databases"] += len(pairs)
        for first, second in pairs:
            if execution_accuracy(first, second, policy=POLICY) != 1.0:
                counts[f"{engine}: wrong"] += 1
                print(
                    f"{engine} {number} {rules}\n{schema.ddl}{gold}\n{predicted}\n  {first.rows}\n  {second.rows}\n",
                    flush=True,
                )
                break
    for connection in connections:
        connection.close()


if __name__ == "__main__":
    main()
