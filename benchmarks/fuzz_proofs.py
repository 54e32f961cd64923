"""Looks for wrong proofs: random queries that are proved to be the same, run on random databases with SQLite and DuckDB.

`python benchmarks/fuzz_proofs.py [ROUNDS] [SEED]`: a round makes a schema for each engine, with keys that may be NULL, columns
without a type, generated columns and tables WITHOUT ROWID, then databases with NULLs, duplicates and whatever values the
columns accept. Queries are written in several ways each, of which not all mean the same: with and without parentheses,
aliases, DISTINCT and IS NOT NULL, operands exchanged, IN or EXISTS, LEFT JOIN or JOIN, `count(x)` or `count(*)`, tables in
FROM, in a nested query or in WITH. Two that are proved have to answer alike in each database in which both answer, without
regard to order, or else they are printed.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from random import Random
from typing import Any

import duckdb

from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.features.challenge.proof import prove
from pytest_queryeval.features.strength.sql.source_tables import read_tables
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

QUERIES, TEXTS, DATABASES, ROWS = 60, 6, 24, 5
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
        kind = self._plan.random()
        if kind < 0.12:
            operator = self._plan.choice(("UNION", "UNION", "INTERSECT", "EXCEPT", "UNION ALL"))
            sides = [self.select([], width=1, is_nested=True) for _ in range(2)]
            return f" {operator} ".join(self._in_some_order(sides, 0.3))
        return self.select([], width=self._plan.randint(1, 2))

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


def proved_pairs(schema: Schema, chance: Random) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield pairs of texts for the same query that are proved, with the rules."""
    tables = read_tables(schema.ddl, schema.engine)
    for _ in range(QUERIES):
        seed = chance.random()
        texts = [Writer(schema, Random(seed), Random(chance.random())).query() for _ in range(TEXTS)]
        for gold, predicted in combinations(dict.fromkeys(texts), 2):
            if rules := prove(gold, predicted, schema.engine, tables, POLICY):
                yield gold, predicted, rules


def main() -> None:
    rounds, seed = (int(argument) for argument in (*sys.argv[1:], *("10", "0")[len(sys.argv) - 1 :]))
    counts: Counter[str] = Counter()
    rules_used: Counter[str] = Counter()
    for number in range(seed, seed + rounds):
        for engine in ("sqlite", "duckdb"):
            chance = Random(f"{number} {engine}")
            schema = Schema(chance, engine)
            connections = [schema.database(chance) for _ in range(DATABASES if engine == "sqlite" else DATABASES // 2)]
            if connections[0] is None:
                continue
            for gold, predicted, rules in proved_pairs(schema, chance):
                counts[f"{engine}: proved"] += 1
                rules_used.update(rules)
                answered = False
                for connection in connections:
                    first, second = answer(connection, gold), answer(connection, predicted)
                    if first is None or second is None:
                        continue
                    answered = True
                    if execution_accuracy(first, second, policy=POLICY) != 1.0:
                        counts[f"{engine}: wrong"] += 1
                        print(
                            f"{engine} {number} {rules}\n{schema.ddl}{gold}\n{predicted}\n  {first.rows}\n  {second.rows}\n",
                            flush=True,
                        )
                        break
                counts[f"{engine}: answered"] += answered
            for connection in connections:
                connection.close()
    print(dict(counts))
    print("rules:", rules_used.most_common())


if __name__ == "__main__":
    main()
