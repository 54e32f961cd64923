"""Pairs of answers made of given cells: predicted is gold with cells, rows, columns and names changed."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from table_oracle import XSD, Cell, Row, cells_equal, exactly
from yaml_tables import read_table

from pytest_queryeval.core.table import IRI, FrozenMapping, Literal, Policy, Table, Tie

# Queries by the sort of database that answers them.
DATABASE_VALUES = read_table("database_values.yaml")
NAN, INFINITY = float("nan"), float("inf")
NUMBERS = (
    *(0, 1, 2, 3, -1, True, 10**6, 10**6 + 1, 2**53, 2**53 + 1, 2**60, 2**60 + 2, 10**25),
    *(1.0, 1.0 + 4e-7, 1.0 + 8e-7, 1.0 + 1.2e-6, -1.0, 0.3, 0.1 + 0.2, 0.33333333333, 1e-12, 3e-9, 5e300, -INFINITY),
    *(1e6, 1e6 + 0.5, 1e6 + 1.5, float(2**53), float(2**60), NAN, INFINITY, 2.9999999, 10.5, 10.504),
    *map(Decimal, ("1.10", "1.1", "1.00", "0.33", "0.333333", "0.3333333", "0.33333333333333333333", "3.000000000001")),
    *map(Decimal, ("0.6666665", "0.666667", "2.9999999999999999", "10.50", "10.51", "1000001.00", "NaN", "1E+30")),
)
TEXTS = (
    *("", "a", "A", " a", "a  b", "a b", "None", "NaN", "1", "1.0", "1.10", "-1", "1e6", "1e3", "007", "é", "ß", "ss"),
)
MOMENTS = (
    *(date(2024, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 1, 10, 30), time(10, 30), time(10, 30, 0, 500_000)),
    *(datetime(2024, 1, 1, 10, 30, tzinfo=UTC), datetime(2024, 1, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))),
    *("2024-01-01", "2024-01-01 00:00:00", "2024-01-01 10:30:00", "2024-01-01T10:30:00", "2024-01-01T10:30:00Z"),
    *("10:30:00", "10:30", "10:30:00.5", "2024-01-01 10:30:00+00:00", "2024-01-02"),
)
OTHERS = (None, b"a", b"", IRI("http://e/a"), IRI("a"))
NESTED = (
    *((1, 2), (1.0, 2.0000004), (2, 1), (), (None,), ((1, 2),), ("a", 1), (date(2024, 1, 1),), ("2024-01-01",)),
    *("[1, 2]", "[1,2]", "[]", '{"a": 1}', '["2024-01-01"]', '{"1": 2}'),
    *map(FrozenMapping, ({"a": 1}, {"a": 1.0}, {"A": 1}, {1: 2}, {}, {1.0: "a", 1.0000006: "b"})),
    FrozenMapping({1.0000006: "a", 1.0000012: "b"}),
)
LITERALS = (
    *(Literal(text, f"{XSD}integer") for text in ("1", "2", "1000001")),
    *(Literal(text, f"{XSD}decimal") for text in ("1.0", "1.10", "0.333333")),
    *(Literal(text, f"{XSD}double") for text in ("1.0", "1000001.0", "INF", "NaN")),
    *(Literal("1"), Literal("1", f"{XSD}string"), Literal("a"), Literal("a", "", "en"), Literal("a", "", "de")),
    *(Literal("true", f"{XSD}boolean"), Literal("1", f"{XSD}boolean"), Literal("1", "http://e/own")),
    *(Literal("2024-01-01", f"{XSD}date"), Literal("2024-01-01T10:30:00Z", f"{XSD}dateTime")),
    *(Literal("2024-01-01T12:30:00+02:00", f"{XSD}dateTime"), Literal("2024-01-01")),
)
CELLS: tuple[Cell, ...] = (*NUMBERS, *TEXTS, *MOMENTS, *OTHERS, *NESTED, *LITERALS)


class Look(NamedTuple):
    """What two cells that are nearly equal, or look alike, have in common."""

    cell: Cell
    exact: Hashable
    number: float | None
    start: str

    @classmethod
    def of(cls, cell: Cell) -> Look:
        exact = exactly(cell)
        number = float(exact) if isinstance(exact, Fraction) else None
        return cls(cell, exact, number, str(cell)[:10].lower())

    def is_near(self, other: Look) -> bool:
        if self.number is not None and other.number is not None:
            return math.isclose(self.number, other.number, rel_tol=1e-5, abs_tol=1e-6)
        alike = self.exact == other.exact or self.start == other.start
        return alike or (self.cell is None and other.cell in ("", "None"))


class Pool:
    """Cells, and for each of them those that equal it under a policy, and those that almost do."""

    def __init__(self, cells: Sequence[Cell], policy: Policy = Policy()) -> None:  # noqa: B008 (immutable)
        self.values = list({(type(cell), str(cell)): cell for cell in cells}.values())
        self.equal = {(i, i) for i in range(len(self.values))}
        for i, x in enumerate(self.values):
            for j in range(i):
                if cells_equal(x, self.values[j], policy):
                    self.equal |= {(i, j), (j, i)}
        looks = [Look.of(value) for value in self.values]
        self.near = [
            [j for j, other in enumerate(looks) if (i, j) in self.equal or look.is_near(other)]
            for i, look in enumerate(looks)
        ]

    def palette(self, chance: random.Random, *, chains: bool) -> list[int]:
        """Choose some cells; without `chains` equality among them is transitive."""
        chosen = chance.sample(range(len(self.values)), chance.choice((1, 2, 3, 5)))
        chosen += [near for place in chosen for near in chance.sample(self.near[place], min(3, len(self.near[place])))]
        kept: list[int] = []
        for place in dict.fromkeys(chosen):
            partners = [other for other in kept if (place, other) in self.equal]
            of_class = [other for other in kept if partners and (partners[0], other) in self.equal]
            if chains or partners == of_class:
                kept.append(place)
        return kept


class Pair(NamedTuple):
    """Two answers, and how predicted was made of gold."""

    gold: Table
    predicted: Table
    made: str


def pairs(pool: Pool, count: int, seed: int, *, chains: bool = True, height: int = 5) -> Iterator[Pair]:
    """Yield pairs of small answers: most of them equal but for what the rules have to find, some ordered and cut."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _pair(pool, pool.palette(chance, chains=chains), chance, height)


def _pair(pool: Pool, palette: Sequence[int], chance: random.Random, tallest: int) -> Pair:
    width, height = chance.choice((0, *(1, 2, 3) * 5, 4)), chance.choice((0, *range(1, tallest + 1)))
    cells = [[chance.choice(palette) for _ in range(width)] for _ in range(height)]
    noise = chance.choice((0.0, 0.0, 0.05, 0.3))
    others = [[_other(pool, palette, place, chance, noise) for place in row] for row in cells]
    rows, changes = [tuple(pool.values[place] for place in row) for row in cells], []
    ties = _ties(rows, chance) if height and chance.random() < 0.35 else None
    if ties is None:
        chance.shuffle(others)
    else:
        changes.append("ordered")
        others = _in_ties(others, ties, chance)
    if others and chance.random() < 0.2:
        changes.append("rows twice or gone")
        others = [row for row in others for _ in range(chance.choice((0, 1, 1, 2)))]
    names = [chance.choice("ab") if chance.random() < 0.1 else name for name in "abcd"[:width]]
    order = chance.sample(range(width), width) if chance.random() < 0.6 else list(range(width))
    if chance.random() < 0.25:
        changes.append("other columns")
        order = [place for place in (*order, *chance.choices(range(-1, width), k=2)) if chance.random() < 0.8]
    filler = [chance.choice(palette) for _ in others]
    others = [[row[place] if place >= 0 else filler[at] for place in order] for at, row in enumerate(others)]
    return Pair(
        Table(
            columns=tuple(names),
            rows=rows if ties is None else [row for tie in ties for row in tie.rows[: tie.size]],
            ties=ties,
        ),
        Table(
            columns=tuple(names[place].upper() if place >= 0 and chance.random() < 0.9 else "z" for place in order),
            rows=[tuple(pool.values[place] for place in row) for row in others],
        ),
        ", ".join(changes) or "unordered",
    )


def _other(pool: Pool, palette: Sequence[int], place: int, chance: random.Random, noise: float) -> int:
    if chance.random() < noise:
        return chance.choice(palette)
    return chance.choice([other for other in palette if (place, other) in pool.equal])


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


def _in_ties(rows: Sequence[Any], ties: Sequence[Tie], chance: random.Random) -> list[Any]:
    """Choose as many rows of each tie as stand in it, in any order; now and then two rows change places."""
    chosen, start = [], 0
    for tie in ties:
        chosen += chance.sample(list(rows[start : start + len(tie.rows)]), tie.size)
        start += len(tie.rows)
    if chance.random() < 0.1:
        chance.shuffle(chosen)
    return chosen
