"""Lists, structs and maps as cells: their elements follow the rules of cells, in all metrics and places."""

import json
from datetime import date, datetime
from decimal import Decimal

import pytest

from pytest_queryeval import METRICS, score_pairs
from pytest_queryeval.comparison.difference import difference
from pytest_queryeval.core.answer_json import answer_digest, decode_answer, encode_answer
from pytest_queryeval.core.table import FrozenMapping, Policy, Table
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.metrics.soft_f1 import soft_f1

NAN = float("nan")


def column(*cells):
    return Table(columns=("c",), rows=[(cell,) for cell in cells])


@pytest.mark.parametrize(
    ("gold", "predicted", "equal"),
    [
        ([1], [1.0], True),
        ([1], ["1"], False),
        ([1, 2], [2, 1], False),
        ([1, 2], [1, 2, 2], False),
        ([], {}, False),
        ([None], [None], True),
        ([None], [""], False),
        ([None], [], False),
        ([True], [1], True),
        ([0.1 + 0.2], [0.3], True),
        ([0.1 + 0.2, "a"], [0.3, "b"], False),
        ([[1.0], [0.1 + 0.2]], [[1], [Decimal("0.3")]], True),
        ([Decimal("12345678901234567.89")], [Decimal("12345678901234567.88")], False),
        ([Decimal("1.10")], [Decimal("1.1")], True),
        ([Decimal("0.333333")], [Decimal("0.3333333333")], True),
        ([1000000], [1000001.0], False),
        ([NAN], [NAN], True),
        ([NAN], ["NaN"], False),
        ([date(2024, 1, 1)], ["2024-01-01"], True),
        ([datetime(2024, 1, 1, 10, 30)], ["2024-01-01T10:30:00"], True),
        (["2024-01-01 10:30:00"], ["2024-01-01T10:30:00"], False),
        ([date(2024, 1, 1)], [datetime(2024, 1, 1)], False),
        ([b"a"], [b"a"], True),
        ([b"a"], ["a"], False),
        ({"a": 1, "b": [0.3]}, {"b": [0.1 + 0.2], "a": 1.0}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"A": 1}, False),
        ({"a": None}, {}, False),
        ({0.3: 1, 2.0: 2}, {2: 2, 0.1 + 0.2: 1}, True),
        ({1: "x", 2: "y"}, {1: "y", 2: "x"}, False),
        ({date(2024, 1, 1): 1}, {"2024-01-01": 1}, True),
        # Greedy pairing of the exactly equal keys would find no partner for the other pair.
        ({1.0: "a", 1.0000006: "b"}, {1.0000006: "a", 1.0000012: "b"}, True),
        # A text in JSON, as stored answers have it.
        ([1, 2, None], "[1,2, null]", True),
        ([Decimal("1.50")], "[1.5]", True),
        ([NAN], "[NaN]", True),
        ({"a": [1], "b": date(2024, 1, 1)}, '{"b": "2024-01-01", "a": [1]}', True),
        ({1: 2}, '{"1": 2}', True),
        ([1, 2], "[2, 1]", False),
        ([1, 2], "[1, 2", False),
        ("[1,2]", "[1, 2]", False),
        (1, [1], False),
    ],
)
def test_elements_follow_the_rules_of_cells(gold, predicted, equal):
    for left, right in ((gold, predicted), (predicted, gold)):
        # In a row of its own, among rows that only differ from it in a number, and in a row beside a float.
        assert execution_accuracy(column(left), column(right)) == equal
        rows = [column([7.5], left, [7.25], left), column(right, [7.25], right, [7.5])]
        assert execution_accuracy(*rows) == equal
        wide = [Table(columns=("a", "b"), rows=[(number, cell)]) for number, cell in ((0.3, left), (0.1 + 0.2, right))]
        assert execution_accuracy(*wide) == equal
        assert soft_f1(*wide) == (1.0 if equal else 0.5)


@pytest.mark.parametrize(
    ("settings", "gold", "predicted"),
    [
        ({"case": "ignore"}, ["Graz"], ["GRAZ"]),
        ({"whitespace": "ignore"}, {"a": " x  y"}, {"a": "x y"}),
        ({"text_numbers": True}, ["5", "a"], [5, "a"]),
        ({"abs": 0.01}, [[Decimal("10.00")]], [[Decimal("10.01")]]),
        ({"whitespace": "ignore"}, [" a", 1.5], '["a ", 1.5]'),
    ],
)
def test_settings_apply_inside(settings, gold, predicted):
    assert execution_accuracy(column(gold, [1]), column([1], predicted)) == 0.0
    assert execution_accuracy(column(gold, [1]), column([1], predicted), policy=Policy(**settings)) == 1.0


def test_dates_are_strict_inside_where_they_are():
    tables = column([date(2024, 1, 1)]), column(["2024-01-01"])

    assert execution_accuracy(*tables, policy=Policy(dates="strict")) == 0.0


def test_lists_that_are_near_several_others_are_paired_one_to_one():
    gold = [[1.0, 5], [1.0000008, 5], [3.0, 6]]
    assert execution_accuracy(column(*gold), column([3, 6], [1.0000004, 5], [1.0000012, 5])) == 1.0
    assert execution_accuracy(column(*gold), column([3, 6], [1.0000016, 5], [1.0000032, 5])) == 0.0


def test_many_lists_of_noisy_floats_are_compared_in_time():
    gold = [[number / 7, str(number % 5)] for number in range(5_000)]
    noisy = [[number * (1 + 1e-12), text] for number, text in reversed(gold)]

    assert execution_accuracy(column(*gold), column(*noisy)) == 1.0
    assert execution_accuracy(column(*gold), column(*noisy[:-1], [0.5, "0"])) == 0.0


def test_many_maps_by_noisy_floats_are_compared_in_time():
    gold = [{number + first: number for number in range(20)} for first in range(200)]
    noisy = [{key * (1 + 1e-12) + 1e-10: item for key, item in reversed(row.items())} for row in reversed(gold)]

    assert execution_accuracy(column(*gold), column(*noisy)) == 1.0
    assert execution_accuracy(column(*gold), column(*noisy[:-1], {0.5: 0})) == 0.0


def test_what_is_nested_too_deeply_is_text():
    deep: list[object] = []
    deep.append(deep)

    assert execution_accuracy(column(deep), column([1])) == 0.0
    assert execution_accuracy(column("[" * 10**5), column([1])) == 0.0


@pytest.mark.parametrize("cells", [[[1, 2]], [{"a": [1]}, None], [[], [{}]]], ids=["list", "mapping", "both"])
def test_every_metric_of_tables_scores_lists_and_mappings(cells):
    names = [
        name
        for name, metric in METRICS.available().items()
        if metric.answers is Table and metric.applies_to("sql", Table) and not metric.extra
    ]
    pair = {"columns": ["a"], "rows": [[cell] for cell in cells]}

    [score] = score_pairs([(pair, json.loads(json.dumps(pair)))], metrics=names)

    assert score.error == ""
    asks_queries = ("ves", "test_suite", "exact_set_match", "partial_", "_recall[")
    assert [name for name in names if score.scores[name] != 1.0 and not any(map(name.__contains__, asks_queries))] == []


def test_published_metrics_compare_lists_as_python_does():
    pairs = [
        ({"columns": ["a"], "rows": [[gold]]}, {"columns": ["a"], "rows": [[predicted]]})
        for gold, predicted in (([1, 2], [1.0, 2]), ([1, 2], "[1, 2]"), ([0.3], [0.1 + 0.2]))
    ]
    names = ["execution_accuracy_bird", "soft_f1_bird", "execution_accuracy"]

    assert [tuple(score.scores.values()) for score in score_pairs(pairs, metrics=names)] == [
        (1.0, 1.0, 1.0),
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 1.0),
    ]


def test_recordings_keep_nested_cells():
    cells = [
        (1, 1.0, Decimal("1.10"), None, True, NAN, b"\xff", date(2024, 1, 1), datetime(2024, 1, 1, 10)),
        FrozenMapping({"a": ((), FrozenMapping({})), "$b": "x"}),
        FrozenMapping({1: "a", (1, 2): (Decimal("2.0"),), date(2024, 1, 1): None}),
    ]
    recorded = json.loads(json.dumps(encode_answer(column(*cells))))

    assert repr(decode_answer(recorded).rows) == repr(column(*cells).rows)
    assert answer_digest([column(*cells)]) == answer_digest([decode_answer(recorded)])
    assert answer_digest([column([1, 2])]) != answer_digest([column([2, 1])])
    assert answer_digest([column({"a": 1, "b": 2})]) == answer_digest([column({"b": 2, "a": 1})])


def test_differences_show_nested_cells_as_json():
    gold, predicted = column([1, Decimal("1.10"), None, {"a": "x"}]), column(["1", 1.2, None, {"a": "x"}])

    assert difference(gold, predicted, Policy(), limit=5).summary == (
        'gold [1, 1.10, null, {"a": "x"}], predicted ["1", 1.2, null, {"a": "x"}]'
    )
