"""How predicted differs from gold: rows that are missing, extra, changed or repeated, and the summary of it."""

import re
from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from itertools import combinations, product

import pytest
from samples import make_case, table
from table_oracle import Oracle, cells_equal, remembered
from table_pairs import CELLS, Pool, pairs

from pytest_queryeval.core.case_report import NO_DIFFERENCE
from pytest_queryeval.core.table import IRI, BlankNode, Policy, Table
from pytest_queryeval.languages import KINDS

GOLD = table(("Graz", 1, "x"), ("Linz", 2, "y"), ("Wien", 3, "z"))
SAFE = r"\x1b[1m::error::#\x23[group]"
TOLD = f"…{'x' * 10}%s{'y' * 27}…"
EQUAL = remembered(cells_equal)


def found(gold, predicted, limit=100, **policy):
    return KINDS["sql"].difference(gold, predicted, make_case(policy=Policy(**policy)), limit=limit)


def paired(oracle, sides, missing, extra):
    """Rows that agree in the columns that identify rows, and in half of all; without any, those that share most."""
    width = len(oracle.gold.columns)

    def agree(row, other):
        return [EQUAL(x, y, oracle.policy) for x, y in zip(row, other, strict=True)]

    def is_key(places):
        return all(
            not any(all(agree(row, other)[place] for place in places) for row, other in combinations(side, 2))
            for side in sides
        )

    best = []
    for size in range(1, min(width, 4)):
        for key in filter(is_key, combinations(range(width), size)):
            fits = [
                (row, other)
                for row, other in product(missing, extra)
                if all((same := agree(row, other))[place] for place in key) and 2 * sum(same) >= width
            ]
            best = max(best, fits, key=len)
        if best:
            return best
    free = list(extra)
    for row in missing:
        shared = [sum(agree(row, other)) for other in free]
        if width > 1 and free and 2 * max(shared) >= width:
            best.append((row, free.pop(shared.index(max(shared)))))
    return best


def expected(oracle, columns):
    """The difference under an alignment where equality is transitive: rows of one value are all that are equal."""
    golds, rows = oracle.gold_rows, [tuple(row[place] for place in columns) for row in oracle.predicted_rows]
    rows = oracle.distinct(rows) if oracle.policy.duplicates == "ignore" else rows

    def times(row, side):
        return sum(all(EQUAL(x, y, oracle.policy) for x, y in zip(row, other, strict=True)) for other in side)

    def unpaired(side, other):
        """Rows without a partner, of those that occur more often the last ones."""
        seen = []
        for row in side:
            seen.append(row)
            if times(row, seen) > times(row, other):
                yield row

    missing, extra = [*unpaired(golds, rows)], [*unpaired(rows, golds)]
    counts = [sum(not times(row, other) for row in side) for side, other in ((missing, rows), (extra, golds))]
    pairs = paired(oracle, (golds, rows), missing, extra)
    for row, other in pairs:
        missing.remove(row)
        extra.remove(other)
    repeated = {}
    for row in golds:
        if times(row, rows) and (times(row, missing) or times(row, extra)) and not times(row, repeated):
            repeated[row] = (row, times(row, golds), times(row, rows))
    of_rows = {
        "counts": dict(zip(("missing", "extra"), counts, strict=True)),
        "missing": [row for row in missing if not times(row, rows)],
        "extra": [row for row in extra if not times(row, golds)],
        "changed": [{"gold": row, "predicted": other} for row, other in pairs],
    }
    return of_rows, Counter(repeated.values())


@pytest.mark.parametrize("policy", [{}, {"duplicates": "ignore", "case": "ignore"}, {"columns": "positional"}])
def test_what_is_missing_extra_changed_and_repeated(policy):
    for pair in pairs(Pool(CELLS, Policy(**policy)), 150, 3, chains=False):
        places = [str(place) for place in range(len(pair.predicted.columns))]
        predicted = replace(pair.predicted, columns=tuple(places))
        gold = replace(pair.gold, columns=tuple(f"c{place}" for place in range(len(pair.gold.columns))))
        actual, short = (found(gold, predicted, limit, **policy) for limit in (100, 1))
        oracle = Oracle(gold, predicted, Policy(**policy), EQUAL)
        if not (best := oracle.best()):
            assert actual == {**NO_DIFFERENCE, "summary": actual["summary"]}
            continue
        columns = best[0]
        if actual["columns"]:
            columns = tuple(map(int, actual["predicted_columns"]))
            assert (actual["columns"], columns in best) == ([*gold.columns], True)
        rows, repeated = expected(oracle, columns)
        shown = {name: actual[name] for name in rows}
        assert (shown, Counter(tuple(of.values()) for of in actual["repeated"])) == (rows, repeated), pair
        for place in range(len(gold.columns)):
            parts = [of for of in actual.get("by_column", ()) if re.match(rf"c{place}\b", of["column"])]
            differing = sum(
                not EQUAL(of["gold"][place], of["predicted"][place], oracle.policy) for of in rows["changed"]
            )
            most = max((of["rows"] for of in parts), default=0)
            assert most <= differing <= sum(of["rows"] for of in parts), pair
            assert {len(of["examples"]) for of in parts if of["rows"] >= 3} <= {3}, pair
        assert max(len(short[name]) for name in ("missing", "extra", "changed", "repeated")) <= 1
        assert (short["counts"], short["summary"]) == (actual["counts"], actual["summary"])


WIDE = ("id", *(f"c{n}" for n in range(60)))
SEVEN = table(("France",), ("France",), ("Japan",), ("Japan",), ("Japan",), ("Kenya",), ("Peru",))
SUMMARIES = [
    (table((4,)), table((2,)), "gold 4, predicted 2"),
    (table((None,)), table(("",)), "gold NULL, predicted ''"),
    (table((4,)), table(("4",)), "gold 4 (integer), predicted 4 (text)"),
    (table(("1.10",)), table((1.1,)), "gold 1.10 (text), predicted 1.1 (float)"),
    (table(("1.2",)), table((1.1,)), "gold 1.2, predicted 1.1"),
    (table(("K\xf6ln",)), table(("Ko\u0308ln",)), r"gold K\xf6ln, predicted Ko\u0308ln"),
    (table(("a b",)), table(("a\xa0b",)), r"gold a\x20b, predicted a\xa0b"),
    (table(("a b",)), table(("a  b",)), r"gold a b, predicted a \x20b"),
    (
        table((f"{'x' * 50}a{'y' * 50}",)),
        table((f"{'x' * 50}b{'y' * 50}",)),
        f"gold {TOLD % 'a'}, predicted {TOLD % 'b'}",
    ),
    (table((date(2024, 1, 2),)), table((datetime(2024, 1, 2),)), "gold 2024-01-02, predicted 2024-01-02 00:00:00"),
    (table(("x" * 99,)), table(("\x1b[1m::error::##[group]",)), f"gold {'x' * 19}…{'x' * 20}, predicted {SAFE}"),
    (table((IRI("http://e/a"),)), table((IRI("http://e/b"),)), "gold <http://e/a>, predicted <http://e/b>"),
    (table(([1, None, {"a": "x"}],)), table((["1"],)), 'gold [1, null, {"a": "x"}], predicted ["1"]'),
    (table((BlankNode("x1"),)), table((IRI("http://e/b"),)), "missing 1 of 1 row, 1 extra"),
    (table((4,)), table((4,), (5,)), "1 extra row"),
    (table((4,), (5,)), table((4,)), "missing 1 of 2 rows"),
    (table(*((n,) for n in range(40))), table(*((n,) for n in range(12, 40))), "missing 12 of 40 rows"),
    (table((1, 2)), table(*((n, n) for n in range(2000))), "b differs in 1 of 1 row: 2 → 1 (a 1); 1,999 extra rows"),
    (table(*((n,) for n in range(8))), Table(columns=("a",), rows=()), "no rows, the gold answer has 8"),
    (Table(columns=("a",), rows=()), table((1,), (2,)), "2 rows, the gold answer has none"),
    (table((1,), (2,)), table((1, 0), (7, 0)), "missing 1 of 2 rows, 1 extra, 1 extra column (b)"),
    (GOLD, table(*GOLD.rows, GOLD.rows[0]), "duplicates differ: 1 row more often in predicted"),
    (
        SEVEN,
        table(("Japan",), ("Kenya",), ("France",)),
        "missing 1 of 7 rows, duplicates differ: 2 rows more often in gold",
    ),
    (
        table((1,), (1,), (2,), (2,), (3,)),
        table((1,), (2,), (3,), (3,), (3,)),
        "duplicates differ: 2 rows more often in gold and 1 row more often in predicted",
    ),
    (GOLD, table(*reversed(GOLD.rows)), "the same rows, in another order"),
    (GOLD, table(*GOLD.rows), ""),
    (table((1, "a")), table(("a", 1)), "the same rows, with their columns in another order"),
    (table((0.3,)), table((0.1 + 0.2,)), ""),
    (
        table(*((n, *(n * at for at in range(60))) for n in range(3)), columns=WIDE),
        table(*((n, *(n * at + (at == 41) for at in range(60))) for n in range(3)), columns=WIDE),
        "c41 differs in 3 of 3 rows: 0 → 1 (id 0), …",
    ),
    (table((1, [1, 2]), (2, [3])), table((1, [1, 7]), (2, [3])), "b[1] differs in 1 of 2 rows: 2 → 7 (a 1)"),
    (
        table((1, {"x": {"y": "k"}}), (2, None)),
        table((1, {"x": {"y": "m"}}), (2, None)),
        "b.x.y differs in 1 of 2 rows: k → m (a 1)",
    ),
    (table((1, [1, 2])), table((1, [1])), "b lacks elements in 1 of 1 row: 2 (a 1)"),
    (
        table((1, [1, 2, 2])),
        table((1, [2, 1, 2])),
        "b has the same elements in another order in 1 of 1 row: [1, 2, 2] → [2, 1, 2] (a 1)",
    ),
    (
        table((1, [{"x": "same", "y": n} for n in range(9)])),
        table((1, [{"x": "same", "y": n} for n in (0, *range(8, 0, -1))])),
        (
            'b has the same elements in another order in 1 of 1 row: […, {"x": "same", "y": 1}, …] → '
            '[…, {"x": "same", "y": 8}, …] (a 1)'
        ),
    ),
    (table((1, [1.0, 2.0])), table((1, [1.0000001])), "b lacks elements in 1 of 1 row: 2.0 (a 1)"),
    (
        table((1, ["x", "y"])),
        table((1, ["y", "z"])),
        'b lacks elements in 1 of 1 row: "x" (a 1); b (extra elements) in 1',
    ),
    (
        table((1, [{"name": "tyre", "worn": 0.891, "where": "x" * 40}])),
        table((1, [])),
        'b lacks elements in 1 of 1 row: {"name": "tyre", "worn": 0.891, …} (a 1)',
    ),
    (
        table((1, {"x": 1, "y": 2})),
        table((1, {"x": 1, "z": 2})),
        'b has other keys in 1 of 1 row: ["x", "y"] → ["x", "z"] (a 1)',
    ),
    (
        table((1, [*range(2000)])),
        table((1, [*range(1000), 8.5, *range(1001, 2000)])),
        "b[1000] differs in 1 of 1 row: 1000 → 8.5 (a 1)",
    ),
    (
        table((1, [*range(2000), 7])),
        table((1, [*range(1000), 8.5, *range(1000, 2000)])),
        "b lacks elements in 1 of 1 row: 7 (a 1); b (extra elements) in 1",
    ),
    (
        table((1, '{"a": [1, {"b": "x"}]}')),
        table((1, '{"a":[1,{"b":"y"}]}')),
        "b.a[1].b differs in 1 of 1 row: x → y (a 1)",
    ),
    (
        table((1, '{"a": 1, "b": 2}')),
        table((1, '{"b": 2, "a": 1}')),
        'b differs in 1 of 1 row: {"a": 1, "b": 2} → {"b": 2, "a": 1} (a 1)',
    ),
    (table((1, "[1, 2")), table((1, "[1, 3")), "b differs in 1 of 1 row: [1, 2 → [1, 3 (a 1)"),
    (
        table(*((n, n, n, n, n) for n in range(9))),
        table(*((n, n, n, n + n // 5, -n) for n in range(8))),
        "e differs in 7 of 8 rows: 1 → -1 (a 1), …; d in 3; missing 1 of 9 rows",
    ),
    (
        table(*((n, *([n] * 14)) for n in range(9)), columns=WIDE[:15]),
        table(*((n, *([n] * 7), *([n + 50] * 7)) for n in range(9)), columns=WIDE[:15]),
        "7 of 15 columns differ in 9 of 9 rows: c7 0 → 50 (id 0), …",
    ),
    (
        table(*((n, *([n + 1] * 9)) for n in range(9)), columns=WIDE[:10]),
        table(*((n, 0, 1, 2, *([n + 50] * 6)) for n in range(9)), columns=("n", *WIDE[1:10])),
        "missing 9 of 9 rows, 9 extra, which agree in no value of c0, c3, c4, c5, 3 more columns",
    ),
    (
        table(*((n % 2, "big" if n > 5 else "small", "x") for n in range(20))),
        table(*((n % 2, "big" if n > 7 else "small", "x") for n in range(20))),
        "b differs in 2 of 20 rows: big → small (a 0), …",
    ),
    (
        table((1, "x" * 99, "k" * 99), (2, "", "")),
        table((1, "x" * 99, "m" * 99)),
        f"c differs in 1 of 1 row: {'k' * 19}…{'k' * 20} → {'m' * 19}…{'m' * 20} (a 1); missing 1 of 2 rows",
    ),
    (
        table(("x", 1, 5), ("x", 2, 6), ("y", 1, 5), ("y", 2, 5)),
        table(("x", 1, 5), ("x", 2, 7), ("y", 1, 5), ("y", 2, 8)),
        "c differs in 2 of 4 rows: 6 → 7 (a x, b 2), …",
    ),
    (
        table((10, 1), (20, 2), (30, 3)),  # all of b agrees, some of a by accident
        table((20, 1), (30, 2), (40, 3)),
        "a differs in 3 of 3 rows: 10 → 20 (b 1), …",
    ),
    (table((1, "a", "k"), (1, "a", "m")), table((1, "a", "z"), (1, "a", "m")), "c differs in 1 of 2 rows: k → z"),
    (
        table((1, "a"), (2, "b")),
        table((1, "c"), (3, "d")),
        "b differs in 1 of 1 row: a → c (a 1); missing 1 of 2 rows, 1 extra",
    ),
    (table((1, "a", 2)), table((1, "c", 3)), "missing 1 of 1 row, 1 extra"),
    (
        table(*((n % 5, n % 3, "old") for n in range(500)), columns=("x", "x", "")),
        table(*((n % 5, n % 3, "new") for n in range(500)), columns=("x", "x", "")),
        "column 3 differs in 500 of 500 rows: old → new (x 0, x (column 2) 0), …",
    ),
    (
        table(*((n, *(n * at for at in range(60))) for n in range(9)), columns=WIDE),
        table(*((n, *(n * at + at // 20 * 0.5 for at in range(60))) for n in range(9)), columns=WIDE),
        "40 of 61 columns differ in 9 of 9 rows: c20 0 → 0.5 (id 0), …",
    ),
    (  # values decide that b and c are swapped, not what became of d, e and f
        table(*((n, n * 2, n * 3, n / 8 + 1, n + 0.5, n / 3 + 1) for n in range(9)), columns=tuple("abcdef")),
        table(*((n, n * 3, n * 2, -n - 0.3, n / 8 + 2, -n - 0.1) for n in range(9)), columns=tuple("abcfde")),
        "d differs in 9 of 9 rows: 1.0 → 2.0 (a 0), …; e in 9, f in 9",
    ),
    (
        table(("Alto", 1, 6, 9), ("Alto", 8, 5, 9), ("Brio", 1, 4, 9), ("Brio", 8, 3, 9)),
        table(("Alto", 1, 6, 9), ("Alto", 8, 2, 7), ("Brio", 1, 1, 5)),
        "c differs in 2 of 3 rows: 5 → 2 (a Alto, b 8), …; d in 2; missing 1 of 4 rows",
    ),
    (  # texts before a number that is unique by accident
        table(("x", "m", 0.1, 1), ("x", "n", 0.25, 2), ("y", "m", 0.5, 1)),
        table(("x", "m", 0.1, 1), ("x", "n", 0.25, 3), ("y", "m", 0.5, 1)),
        "d differs in 1 of 3 rows: 2 → 3 (a x, b n)",
    ),
    (table((1,)), table((1, 2)), "1 extra column (b)"),
    (table((1, 2)), table((1,)), "too few columns: the gold answer has 2, the predicted answer 1 (missing: b)"),
]


@pytest.mark.parametrize(("gold", "predicted", "summary"), SUMMARIES)
def test_a_difference_is_said_in_a_few_words(gold, predicted, summary):
    assert found(gold, predicted)["summary"] == summary


@pytest.mark.parametrize("depth", [15, 400, 100_000])
def test_json_that_is_nested_deeply_is_a_text(depth):
    texts = [f"{'[' * depth}{at}{']' * depth}" for at in (1, 2)]

    (column,) = found(table((1, texts[0])), table((1, texts[1])))["by_column"]

    assert column["column"] == ("b" if depth > 20 else f"b{'[0]' * depth}")


def test_a_summary_follows_the_policy_and_the_limit():
    assert (
        found(table((1,)), table((1,), columns=("z",)), columns="by_name")["summary"]
        == "no column has a name of the gold answer"
    )
    assert found(table((1,)), table((1, 2)), extra_columns="allow")["summary"] == ""
    assert found(table((4,)), table((2,)), limit=0)["summary"] == "missing 1 of 1 row, 1 extra"
