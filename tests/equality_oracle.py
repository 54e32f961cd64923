"""An oracle for the equality of two answers, simple and slow, and pairs of answers made of what databases answer.

It knows the rules of docs/equality.md and nothing of the package: every order of columns and every pairing of rows is
tried. The rules leave open which of several exactly equal rows is paired first, so there are two verdicts: what may be
accepted, under any pairing at all, and what must be, where exactly equal rows are paired first in whatever order.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

from pytest_queryeval.core.table import FrozenMapping, Table, Tie

Cell = Any
Row = tuple[Cell, ...]
CellsEqual = Callable[[Cell, Cell], bool]

NUMBERS = ("0", "1", "2", "3", "-1", "7", "10", "999999", "1000000", "1000001", "2147483647")
LARGE = ("4503599627370497", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807")
HUGE = ("99999999999999999999", "100000000000000000000", "100000000000000000001")
DECIMALS = ("0.50", "1.00", "1.10", "3.14", "1000000.00", "1000001.00", "1234567.89", "1234568.89", "-0.01")
FINE = ("0.333333", "0.333334", "0.666667", "1.000000", "1000000.000001", "1000000.000002")
FLOATS = ("0.5e0", "1.1e0", "3.0e0", "1e6", "1.000001e6", "1.0000005e6", "1234567.89e0", "1234568.89e0")
NEAR_FLOATS = ("0.333333333e0", "1.0000004e0", "1.0000008e0", "1.0000012e0", "0.30000000000000004e0", "0.3e0", "1e300")
TEXTS = ("''", "'a'", "'A'", "'1'", "'1.0'", "'None'", "'NaN'", "'é'", "' a'", "'1.10'")
DAYS = ("2024-01-01", "2024-02-29")
MOMENTS = ("2024-01-01 00:00:00", "2024-01-01 10:30:00", "2024-01-01 10:30:00.5")
MOMENT_TEXTS = (
    *("2024-01-01", "2024-01-01T10:30:00", "2024-01-01 10:30:00", "2024-01-01 10:30:00.500", "2024-01-01T00:00:00"),
    *("2024-01-01T10:30:00Z", "2024-01-01 12:30:00+02:00", "2024-01-01 10:30:00+00:00"),
)
# Each query answers with values of one type, as the engine makes them.
SQLITE = (
    f"SELECT column1 FROM (VALUES {', '.join(f'({number})' for number in (*NUMBERS, *LARGE))})",
    f"SELECT column1 FROM (VALUES {', '.join(f'({number})' for number in (*DECIMALS, *FINE, *FLOATS, *NEAR_FLOATS))})",
    "SELECT 1 / 3.0 UNION ALL SELECT 2 / 3.0 UNION ALL SELECT avg(column1) FROM (VALUES (1), (2), (4))",
    "SELECT sum(column1) FROM (VALUES (1000000), (1)) UNION ALL SELECT total(column1) FROM (VALUES (1000000), (1))",
    f"SELECT column1 FROM (VALUES {', '.join(f'({text})' for text in TEXTS)})",
    f"SELECT column1 FROM (VALUES {', '.join(f'({text!r})' for text in (*DAYS, *MOMENT_TEXTS))})",
    "SELECT NULL UNION ALL SELECT x'00ff' UNION ALL SELECT 1 = 1 UNION ALL SELECT 9e999",
    "SELECT doubled FROM made UNION ALL SELECT fivefold FROM made",
)
# A table with generated columns, for SQLite and DuckDB.
GENERATED = """
CREATE TABLE made (a REAL, doubled REAL GENERATED ALWAYS AS (a * 2) VIRTUAL, fivefold REAL GENERATED ALWAYS AS (a * 5));
INSERT INTO made (a) VALUES (0.2), (1.0), (0.25000001);
"""
TYPED = (
    *(f"SELECT CAST(c AS bigint) FROM (VALUES {', '.join(f'({n})' for n in (*NUMBERS, *LARGE))}) AS t (c)",),
    f"SELECT CAST(c AS decimal(38, 0)) FROM (VALUES {', '.join(f'({n})' for n in HUGE)}) AS t (c)",
    f"SELECT CAST(c AS decimal(12, 2)) FROM (VALUES {', '.join(f'({n})' for n in DECIMALS)}) AS t (c)",
    f"SELECT CAST(c AS decimal(20, 6)) FROM (VALUES {', '.join(f'({n})' for n in FINE)}) AS t (c)",
    f"SELECT CAST(c AS double precision) FROM (VALUES {', '.join(f'({n})' for n in (*FLOATS, *NEAR_FLOATS))}) AS t (c)",
    "SELECT CAST(c AS double precision) FROM (VALUES ('NaN'), ('Infinity')) AS t (c)",
    "SELECT CAST(1 AS decimal(20, 2)) / 3 UNION ALL SELECT CAST(2 AS decimal(20, 2)) / 3",
    "SELECT avg(c) FROM (VALUES (1), (2), (4)) AS t (c) UNION ALL SELECT avg(c) FROM (VALUES (1), (2)) AS t (c)",
    "SELECT sum(c) FROM (VALUES (1000000), (1)) AS t (c)",
    "SELECT sum(c) FROM (VALUES (CAST(1000000 AS bigint)), (0)) AS t (c)",
    "SELECT sum(c) FROM (VALUES (CAST(9223372036854775807 AS bigint)), (1)) AS t (c)",
    f"SELECT c FROM (VALUES {', '.join(f'({text})' for text in TEXTS)}) AS t (c)",
    f"SELECT c FROM (VALUES {', '.join(f'({text!r})' for text in MOMENT_TEXTS)}) AS t (c)",
    f"SELECT CAST(c AS date) FROM (VALUES {', '.join(f'({day!r})' for day in DAYS)}) AS t (c)",
    f"SELECT CAST(c AS timestamp) FROM (VALUES {', '.join(f'({moment!r})' for moment in MOMENTS)}) AS t (c)",
    "SELECT CAST(c AS timestamptz) FROM (VALUES ('2024-01-01 10:30:00+00'), ('2024-01-01 12:30:00+02')) AS t (c)",
    "SELECT CAST('10:30:00' AS time) UNION ALL SELECT CAST('10:30:00.5' AS time)",
    "SELECT true UNION ALL SELECT false UNION ALL SELECT NULL",
)
LISTED = {
    "bigint[]": ("[1, 2]", "[2, 1]", "[1]", "[]", "[1, NULL]", "[1000000]", "[1000001]", "[9007199254740993]"),
    "double[]": (
        "[1, 2]",
        "[1.0000004, 2]",
        "[1.0000012, 2]",
        "['nan']",
        "[1000000]",
        "[0.3]",
        "[0.30000000000000004]",
    ),
    "decimal(38, 2)[]": ("[1, 2]", "[12345678901234567.89]", "[12345678901234567.88]", "[1, NULL]", "[0.3]"),
    "decimal(20, 6)[]": ("[0.333333]", "[0.333334]", "[1, 2]"),
    "varchar[]": ("['1', '2']", "['NaN']", "['2024-01-01']", "['2024-01-01T10:30:00']", "['[1, 2]']", "['a', NULL]"),
    "date[]": ("['2024-01-01']", "['2024-02-29']"),
    "timestamp[]": ("['2024-01-01 00:00:00']", "['2024-01-01 10:30:00']"),
    "bigint[][]": ("[[1, 2]]", "[[1], [2]]", "[[], NULL]"),
    "double[][]": ("[[1, 2]]", "[[1], [2.0000004]]", "[[1], [2]]"),
    "struct(a bigint, b varchar)": ("{'a': 1, 'b': 'x'}", "{'a': 1, 'b': NULL}", "{'a': 2, 'b': 'x'}"),
    "struct(b varchar, a double)": ("{'b': 'x', 'a': 1}", "{'b': 'x', 'a': 2.0000004}", "{'b': 'x', 'a': 2.0000016}"),
    "map(varchar, bigint)": ("MAP {'a': 1, 'b': 2}", "MAP {'b': 2, 'a': 1}", "MAP {'1': 2}", "MAP {}"),
    "map(bigint, double)": ("MAP {1: 2, 2: 2.0000004}", "MAP {1: 2.0000004, 2: 2}", "MAP {1: 2}"),
    "map(double, varchar)": ("MAP {1: 'a', 1.0000006: 'b'}", "MAP {1.0000006: 'a', 1.0000012: 'b'}", "MAP {1: '2'}"),
    "map(date, bigint[])": ("MAP {DATE '2024-01-01': [1, 2]}",),
    "map(varchar, double[])": ("MAP {'2024-01-01': [1.0000004, 2]}", "MAP {'2024-01-01': [1, 2]}"),
}
JSON_TEXTS = (
    "[1, 2]",
    "[1,2]",
    "[1.0000004, 2]",
    "[NaN]",
    '["2024-01-01"]',
    '{"a": 1, "b": "x"}',
    '{"1": 2}',
    "[[1], [2]]",
    "{}",
)
NESTED = (
    *(" UNION ALL ".join(f"SELECT CAST({written} AS {kind})" for written in values) for kind, values in LISTED.items()),
    f"SELECT c FROM (VALUES {', '.join(f'({text!r})' for text in JSON_TEXTS)}) AS t (c)",
)
DUCKDB = (
    *TYPED,
    *NESTED,
    "SELECT CAST(170141183460469231731687303715884105727 AS hugeint)",
    "SELECT CAST(1.1 AS float)",
    "SELECT doubled FROM made UNION ALL SELECT fivefold FROM made",
)
POSTGRES = (
    *TYPED,
    "SELECT c FROM (VALUES (1.10), (1.1), (0.333333), (0.33333333), (1e30), (1e30 + 1)) AS t (c)",
    "SELECT 1 / 3.0 UNION ALL SELECT 2 / 3.0 UNION ALL SELECT 1 / 3.0::numeric(20, 10) UNION ALL SELECT 'NaN'::numeric",
    "SELECT CAST(c AS real) FROM (VALUES (1.1), (16777217)) AS t (c)",
    "SELECT ARRAY[1, 2] UNION ALL SELECT ARRAY[2, 1] UNION ALL SELECT ARRAY[1, NULL] UNION ALL SELECT '{}'::int[]",
    "SELECT ARRAY[1.1, 2]::float8[] UNION ALL SELECT ARRAY[1.0000004, 2]::float8[] UNION ALL SELECT '{NaN}'::float8[]",
    "SELECT ARRAY[1.10, 2] UNION ALL SELECT ARRAY[0.333333, 2] UNION ALL SELECT ARRAY[ARRAY[1], ARRAY[2]]",
    "SELECT ARRAY['1', '2'] UNION ALL SELECT ARRAY['NaN', '2024-01-01'] UNION ALL SELECT ARRAY['2024-01-01']",
    "SELECT ARRAY[date '2024-01-01'] UNION ALL SELECT ARRAY[date '2024-02-29']",
    "SELECT c::jsonb FROM (VALUES ('[1, 2.0]'), ('{\"a\": [1.10], \"b\": null}'), ('[\"2024-01-01\"]')) AS t (c)",
    "SELECT c FROM (VALUES ('[1, 2]'), ('{\"b\": null, \"a\": [1.1]}'), ('[1.0000004, 2]')) AS t (c)",
)


class Pool:
    """Values of a database, and for each of them those that equal it, and those that almost do."""

    def __init__(self, answers: Sequence[Table]) -> None:
        values = [cell for answer in answers for row in answer.rows for cell in row]
        self.values = list({(type(cell), str(cell)): cell for cell in values}.values())
        self.equal = [[y for y in self.values if cells_equal(x, y)] for x in self.values]
        self.near = [[y for y in self.values if _almost(x, y)] for x in self.values]


class Pair(NamedTuple):
    """Two answers, and how predicted was made of gold."""

    gold: Table
    predicted: Table
    made: str


def pairs(pool: Pool, count: int, seed: int) -> Iterator[Pair]:
    """Yield pairs of small answers: most of them equal but for what the rules have to find, some ordered and cut."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _pair(pool, chance)


def _pair(pool: Pool, chance: random.Random) -> Pair:
    width, height = chance.choice((1, 1, 2, 2, 3)), chance.choice((0, 1, 1, 2, 3, 3, 4, 5))
    # Few different values, so that rows repeat, tie, and are near several others.
    palette = [chance.randrange(len(pool.values)) for _ in range(chance.choice((1, 2, 3, 6)))]
    palette += [pool.values.index(near) for place in palette for near in pool.near[place][:2] if chance.random() < 0.4]
    cells = [[chance.choice(palette) for _ in range(width)] for _ in range(height)]
    changes = []
    remaining = [[_variant(pool, place, chance) for place in row] for row in cells]
    rows = [tuple(pool.values[place] for place in row) for row in cells]
    ties = _ties(rows, chance) if height and chance.random() < 0.35 else None
    if ties is None:
        chance.shuffle(remaining)
    else:
        changes.append("ordered")
        remaining = _in_ties(remaining, ties, chance)
    gold = rows if ties is None else _taken(rows, ties)
    order = chance.sample(range(width), width)
    remaining = [tuple(row[place] for place in order) for row in remaining]
    if chance.random() < 0.1 and remaining:
        changes.append("a row twice or gone")
        remaining = remaining[1:] if chance.random() < 0.5 else [*remaining, remaining[0]]
    columns = width
    if chance.random() < 0.08:
        changes.append("other width")
        columns = chance.choice((1, 2, 3, 4))
        remaining = [(*row, *row, *row, *row)[:columns] for row in remaining]
    if chance.random() < 0.05:
        changes.append("no rows")
        remaining = []
    names = "abcd"
    return Pair(
        Table(columns=tuple(names[:width]), rows=gold, ties=ties),
        Table(columns=tuple(names[:columns]), rows=remaining),
        ", ".join(changes) or "unordered",
    )


def _variant(pool: Pool, place: int, chance: random.Random) -> Cell:
    roll = chance.random()
    if roll < 0.6:
        return pool.values[place]
    if roll < 0.9:
        return chance.choice(pool.equal[place])
    return chance.choice(pool.near[place] or pool.values) if roll < 0.98 else chance.choice(pool.values)


def _ties(rows: Sequence[Row], chance: random.Random) -> tuple[Tie, ...]:
    """Split rows into ties; the first and the last may be cut, so that fewer rows stand in them."""
    groups: list[list[Row]] = [[]]
    for row in rows:
        if groups[-1] and chance.random() < 0.5:
            groups.append([])
        groups[-1].append(row)
    cut = (0, len(groups) - 1) if chance.random() < 0.5 else ()
    sizes = [chance.randint(1, len(group)) if place in cut else len(group) for place, group in enumerate(groups)]
    return tuple(Tie(size=size, rows=tuple(group)) for size, group in zip(sizes, groups, strict=True))


def _taken(rows: Sequence[Row], ties: Sequence[Tie]) -> list[Row]:
    return [row for tie in ties for row in tie.rows[: tie.size]]


def _in_ties(rows: Sequence[Any], ties: Sequence[Tie], chance: random.Random) -> list[Any]:
    """Choose as many rows of each tie as stand in it, in any order; now and then two rows change places."""
    chosen, start = [], 0
    for tie in ties:
        chosen += chance.sample(list(rows[start : start + len(tie.rows)]), tie.size)
        start += len(tie.rows)
    if chance.random() < 0.1:
        chance.shuffle(chosen)
    return chosen


# The rules


def may_be_equal(gold: Table, predicted: Table, equal: CellsEqual) -> bool:
    """Return whether some order of columns and some pairing of rows makes all cells equal."""
    return _equal(gold, predicted, partial(_can_pair, equal))


def must_be_equal(gold: Table, predicted: Table, equal: CellsEqual) -> bool:
    """Return the same where exactly equal rows are paired first, whichever of them are."""
    return _equal(gold, predicted, partial(_can_pair_exact_first, equal))


def _equal(gold: Table, predicted: Table, can_pair: Callable[[Sequence[Row], Sequence[Row]], bool]) -> bool:
    if len(gold.columns) != len(predicted.columns) or len(gold.rows) != len(predicted.rows):
        return False
    ties = (Tie(size=len(gold.rows), rows=tuple(gold.rows)),) if gold.ties is None else gold.ties
    for order in permutations(range(len(gold.columns))):
        rows = [tuple(row[place] for place in order) for row in predicted.rows]
        start, equal = 0, True
        for tie in ties:
            equal = equal and can_pair(tie.rows, rows[start : start + tie.size])
            start += tie.size
        if equal:
            return True
    return False


def _can_pair(equal: CellsEqual, golds: Sequence[Row], rows: Sequence[Row]) -> bool:
    """Return whether each row has a partner of its own."""
    if not rows:
        return True
    first, *remaining = rows
    return any(
        all(map(equal, gold, first)) and _can_pair(equal, [*golds[:place], *golds[place + 1 :]], remaining)
        for place, gold in enumerate(golds)
    )


def _can_pair_exact_first(equal: CellsEqual, golds: Sequence[Row], rows: Sequence[Row]) -> bool:
    left_golds, left_rows = list(golds), []
    for row in rows:
        same = [gold for gold in left_golds if _exactly(gold) == _exactly(row)]
        if len({tuple((type(cell), str(cell)) for cell in gold) for gold in same}) > 1:
            return False  # it depends on which of them is paired
        if same:
            left_golds.remove(same[0])
        else:
            left_rows.append(row)
    return _can_pair(equal, left_golds, left_rows)


def _exactly(cell: Cell) -> Any:
    if isinstance(cell, tuple):
        return tuple(map(_exactly, cell))
    if isinstance(cell, FrozenMapping):
        return frozenset((_exactly(key), _exactly(value)) for key, value in cell.items())
    return _number(cell) if _number(cell) is not None else (type(cell).__name__, str(cell))


def _number(cell: Cell) -> Fraction | None:
    if isinstance(cell, int | float | Decimal) and math.isfinite(cell):
        return Fraction(cell)
    return None


def cells_equal(x: Cell, y: Cell, rel: float | None = None, span: float | None = None) -> bool:
    """Return whether two cells are equal under the default rules, or those with a tolerance that is set."""
    if x is None or y is None:
        return x is y
    numbers = (int, float, Decimal)
    if isinstance(x, numbers) and isinstance(y, numbers):
        return _numbers_equal(x, y, rel, span)
    if isinstance(x, str) and isinstance(y, str):
        return x == y
    if isinstance(x, str) or isinstance(y, str):
        text, value = (x, y) if isinstance(x, str) else (y, x)
        if isinstance(value, tuple | FrozenMapping):
            return cells_equal(_json(text), value, rel, span)
        return isinstance(value, date | time) and _reads_as(text, value)
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(cells_equal(left, right, rel, span) for left, right in zip(x, y, strict=True))
    if isinstance(x, FrozenMapping) and isinstance(y, FrozenMapping):
        return len(x) == len(y) and any(
            all(
                _keys_equal(left, right, rel, span) and cells_equal(x[left], y[right], rel, span)
                for left, right in zip(x, keys, strict=True)
            )
            for keys in permutations(y)
        )
    return type(x) is type(y) and _zoned(x) == _zoned(y) and bool(x == y)


def _keys_equal(x: Cell, y: Cell, rel: float | None, span: float | None) -> bool:
    """Return whether two keys are equal: a text also equals the number that it spells, as JSON has only such keys."""
    if isinstance(x, str) != isinstance(y, str):
        text, value = (x, y) if isinstance(x, str) else (y, x)
        if isinstance(value, int | float | Decimal):
            spelled = _json(text, of=int | Decimal)
            return spelled is not None and cells_equal(spelled, value, rel, span)
    return cells_equal(x, y, rel, span)


def _json(text: str, of: Any = list | dict) -> Cell:
    try:
        value = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    return Table(columns=("c",), rows=[(value,)]).rows[0][0] if isinstance(value, of) else None


def _zoned(value: Cell) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _reads_as(text: str, value: date | time) -> bool:
    try:
        if isinstance(value, datetime):
            read: date | time = datetime.fromisoformat(text)
            return len(text) > 10 and _zoned(read) == _zoned(value) and read == value
        read = date.fromisoformat(text) if isinstance(value, date) else time.fromisoformat(text)
    except ValueError:
        return False
    return read == value


def _numbers_equal(x: float | Decimal, y: float | Decimal, rel: float | None = None, span: float | None = None) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    if math.isinf(x) or math.isinf(y):
        return x == y
    exact, second = Fraction(x), Fraction(y)
    distance, larger = abs(exact - second), max(abs(exact), abs(second))
    if isinstance(x, float) or isinstance(y, float):
        value = x if isinstance(x, float) else y
        are_whole = exact.denominator == second.denominator == 1
        if type(x) is not type(y) and are_whole and abs(value) < 2**53:
            return distance <= max(_written(rel or 0) * larger, _written(span or 0))
        rel, span = 1e-6 if rel is None else rel, 1e-9 if span is None else span
        if type(x) is type(y):
            return abs(x - y) <= max(rel * max(abs(x), abs(y)), span)  # type: ignore[type-var, operator]
        return distance <= max(_written(rel) * larger, _written(span))
    places = sorted((_places(x), _places(y)))
    if distance == 0:
        return True
    if places[1] and distance <= max(_written(rel or 0) * larger, _written(span or 0)):
        return True
    if rel is not None and span is not None:
        return False
    if places[0] >= 6 and distance <= Fraction(1, 2 * 10 ** places[0]):
        return True
    return places[1] >= 12 and distance <= Fraction(1, 10**15) * larger


def _written(number: float) -> Fraction:
    return Fraction(repr(number))


def _places(number: float | Decimal) -> int:
    """Return how many decimals are written."""
    return len(f"{number:f}".partition(".")[2]) if isinstance(number, Decimal) else 0


def _almost(x: Cell, y: Cell) -> bool:
    """Return whether two cells are not equal, but nearly so, or look alike."""
    if cells_equal(x, y):
        return False
    left, right = _number(x), _number(y)
    if left is not None and right is not None:
        return abs(left - right) <= Fraction(1, 10**5) * max(abs(left), abs(right), Fraction(1, 10))
    return str(x)[:10].lower() == str(y)[:10].lower() or (x is None and y in ("", "None"))


def _remembered(equal: CellsEqual) -> CellsEqual:
    """Compare each two values of a pool once: fractions are slow."""
    verdicts: dict[tuple[int, int], bool] = {}

    def remembered(x: Cell, y: Cell) -> bool:
        key = id(x), id(y)  # the pool keeps both: Decimal("1.1") is the same key as Decimal("1.10")
        if key not in verdicts:
            verdicts[key] = equal(x, y)
        return verdicts[key]

    return remembered


def asymmetric_verdicts(pool: Pool, count: int, seed: int, verdict: Callable[[Table, Table], bool]) -> list[Pair]:
    """Return the pairs without ties that are equal one way round and different the other."""
    return [
        pair
        for pair in pairs(pool, count, seed)
        if pair.gold.ties is None and verdict(pair.gold, pair.predicted) != verdict(pair.predicted, pair.gold)
    ]


def wrong_verdicts(
    pool: Pool, count: int, seed: int, verdict: Callable[[Table, Table], bool], equal: CellsEqual = cells_equal
) -> tuple[list[Pair], list[Pair], Counter[str]]:
    """Return the pairs that are wrongly accepted, those wrongly rejected, and how many of each sort there were."""
    accepted, rejected, tally = [], [], Counter[str]()
    equal = _remembered(equal)
    for pair in pairs(pool, count, seed):
        actual = verdict(pair.gold, pair.predicted)
        tally[f"{pair.made}: {'equal' if actual else 'different'}"] += 1
        if actual and not may_be_equal(pair.gold, pair.predicted, equal):
            accepted.append(pair)
        if not actual and may_be_equal(pair.gold, pair.predicted, equal):
            must = must_be_equal(pair.gold, pair.predicted, equal)
            tally["rejected where it depends on which rows are paired first"] += not must
            if must:
                rejected.append(pair)
    return accepted, rejected, tally
