"""JSON answers as wholes, by a naive reference: `json_equal`, `path_f1`, and where two answers differ."""

import json

import pytest
from hypothesis import example, given
from json_values import COMPOSED, DECOMPOSED, HOSTILE_KEYS, VALUES, key, leaves, nested, shared, turned
from samples import make_case

from pytest_queryeval import METRICS
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.languages import KINDS

NOTATION = "only the order of keys or the notation of numbers differs"


def score(metric, gold, predicted):
    return METRICS[metric].function(JsonAnswer(gold), JsonAnswer(predicted))


def same(gold, predicted):
    return score("json_equal", gold, predicted)


def f1(gold, predicted):
    return score("path_f1", gold, predicted)


def differing(gold, predicted, limit=20):
    return KINDS["json"].difference(JsonAnswer(gold), JsonAnswer(predicted), make_case(kind="json"), limit=limit)


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        (json.loads("[1e0, -0.0]"), json.loads("[1, 0]"), 1.0),
        (10**20, 1e20, 1.0),
        ({"a": 1, "b": {"c": [], "d": {}}}, {"b": {"d": {}, "c": []}, "a": 1}, 1.0),
        ({key: key for key in HOSTILE_KEYS}, {key: key for key in reversed(HOSTILE_KEYS)}, 1.0),
        (nested(100, 1), nested(100, 1.0), 1.0),
        # What only looks alike.
        ({"a": [0]}, {"a": [False]}, 0.0),
        ({"a": {"b": 1.0}}, {"a": {"b": True}}, 0.0),
        (1, "1", 0.0),
        (0, None, 0.0),
        ([], {}, 0.0),
        ([1, 2], [2, 1], 0.0),
        ([1], [1, 1], 0.0),
        ({"a": None}, {}, 0.0),
        (2**53 + 1, float(2**53), 0.0),
        (10**400, 10**400 + 1, 0.0),
        (0.1 + 0.2, 0.3, 0.0),
        (COMPOSED, DECOMPOSED, 0.0),
        ({COMPOSED: 1}, {DECOMPOSED: 1}, 0.0),
        (nested(100, 1), nested(100, 2), 0.0),
    ],
)
def test_values_are_equal_however_they_are_written(gold, predicted, expected):
    assert same(gold, predicted) == same(predicted, gold) == expected
    assert f1(gold, predicted) == f1(predicted, gold)
    assert (f1(gold, predicted) == 1.0) is (expected == 1.0)


@given(VALUES, VALUES)
def test_equality_is_that_of_json_values(gold, predicted):
    assert same(gold, predicted) == same(turned(gold), predicted) == float(key(gold) == key(predicted))
    assert same(gold, turned(gold)) == 1.0


@given(VALUES, VALUES)
@example([{"n": n, "v": n} for n in "abc"], [{"n": n, "v": n} for n in "zabc"])
def test_path_f1_is_the_f1_of_the_leaves_that_the_best_alignment_shares(gold, predicted):
    assert f1(gold, predicted) == 2 * shared(gold, predicted) / (leaves(gold) + leaves(predicted))
    assert f1(gold, turned(gold)) == 1.0


# Where two answers differ.


def test_missing_extra_and_changed_paths_are_told_apart():
    gold = {"query": {"a b": [1, 2], "c": "x"}, "d": None}
    predicted = {"query": {"a b": [1, "2"], "e": 1.5}, "d": None}

    assert differing(gold, predicted) == {
        "summary": "missing 1 path, 1 extra path, another value at 1 path",
        "columns": ["path", "value"],
        "predicted_columns": [],
        "counts": {"missing": 2, "extra": 2},
        "missing": [("$.query.c", '"x"')],
        "extra": [("$.query.e", "1.5")],
        "changed": [{"gold": ("$.query['a b'][1]", "2"), "predicted": ("$.query['a b'][1]", '"2"')}],
        "repeated": [],
    }


@pytest.mark.parametrize(
    ("gold", "predicted", "missing", "extra"),
    [
        # A branch is one row at its top, in canonical JSON: sorted keys, no blanks, characters as they are.
        (
            {"a": {"z": {"é": 1.0, "x": [True, None, "\n\u2028"]}}},
            {},
            [("$.a", '{"z":{"x":[true,null,"\\n\u2028"],"é":1}}')],
            [],
        ),
        ({"b": 1}, {"b": 1, "a": []}, [], [("$.a", "[]")]),
        ([1, 2, [3]], [1], [("$[1]", "2"), ("$[2]", "[3]")], []),
        ({"a": [[], [0]]}, {"a": [[5], [0, 6]]}, [], [("$.a[0][0]", "5"), ("$.a[1][1]", "6")]),
        # Paths are JSONPath, with quotes where they are needed.
        ([{"0": 1, "_x": 1, "été": 1}], [{}], [("$[0]['0']", "1"), ("$[0]._x", "1"), ("$[0].été", "1")], []),
        ({"": 1, "it's": 1}, {}, [("$['']", "1"), (r"$['it\'s']", "1")], []),
        ({"a\\b": 1, "$.a[0]": 1, "a-b": 1}, {}, [(r"$['a\\b']", "1"), ("$['$.a[0]']", "1"), ("$['a-b']", "1")], []),
        ({"\x00\n\x1b": 1}, {}, [(r"$['\u0000\n\u001b']", "1")], []),
    ],
)
def test_what_is_missing_or_extra_is_named_by_its_path(gold, predicted, missing, extra):
    found = differing(gold, predicted)

    assert sorted(found["missing"]) == sorted(missing)
    assert sorted(found["extra"]) == sorted(extra)


# The library refuses escapes of control characters, which RFC 9535 has.
@pytest.mark.parametrize("name", [name for name in HOSTILE_KEYS if len(name) < 100 and "\0" not in name])
def test_a_path_that_is_shown_selects_what_it_stands_for(name):
    document = {"a": [{name: {"here": 1}, "x": {"there": 1}}]}

    ((path, value),) = differing(document, {"a": [{"x": {"there": 1}}]})["missing"]

    assert value == '{"here":1}'
    found = METRICS["structural_similarity"].function(JsonAnswer(document), JsonAnswer(document), at=path)
    assert found == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted"), [({"a": 1}, [1]), ([], {}), (1, True), ("1", 1), (None, {}), ({}, "x"), (0.5, 0.25)]
)
def test_values_of_different_sorts_are_one_changed_row(gold, predicted):
    texts = [json.dumps(value, separators=(",", ":")) for value in (gold, predicted)]

    for path, found in (("$.k", differing({"k": gold}, {"k": predicted})), ("$", differing(gold, predicted))):
        assert found["changed"] == [{"gold": (path, texts[0]), "predicted": (path, texts[1])}]
        assert (found["missing"], found["extra"], found["counts"]) == ([], [], {"missing": 1, "extra": 1})


def test_at_most_so_many_rows_of_each_sort_and_all_are_counted():
    gold = {"lost": list(range(50)), **{f"c{number}": 0 for number in range(2_000)}}
    predicted = {"lost": [], **{f"c{number}": 1 for number in range(2_000)}, **{f"x{number}": 1 for number in range(9)}}

    found, hidden = differing(gold, predicted, limit=3), differing(gold, predicted, limit=0)

    assert [row[0] for row in found["missing"]] == ["$.lost[0]", "$.lost[1]", "$.lost[2]"]
    assert [row[0] for row in found["extra"]] == ["$.x0", "$.x1", "$.x2"]
    assert [rows["gold"][0] for rows in found["changed"]] == ["$.c0", "$.c1", "$.c2"]
    assert found["counts"] == hidden["counts"] == {"missing": 2_050, "extra": 2_009}
    assert found["summary"] == hidden["summary"] == "missing 50 paths, 9 extra paths, another value at 2,000 paths"
    assert (hidden["missing"], hidden["extra"], hidden["changed"]) == ([], [], [])


@pytest.mark.parametrize(
    ("gold", "predicted", "summary"),
    [
        ({"a": [1]}, {"a": [1]}, ""),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, NOTATION),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "\x1b" * 99}]}, '$.a[1].b: gold "x", predicted "'),
    ],
)
def test_the_summary_says_why_equal_answers_differ_and_names_a_single_value(gold, predicted, summary):
    found = differing(gold, predicted)

    assert found["summary"].startswith(summary)
    assert summary or not found["summary"]


@pytest.mark.parametrize(
    ("gold", "predicted", "is_said"),
    [
        ({"x": {COMPOSED: 1}}, {"x": {DECOMPOSED: 1}}, True),
        ({DECOMPOSED: 1, "b": 2}, {COMPOSED: 1, "c": 2}, True),
        ({"x": {COMPOSED: 1}, "y": {}}, {"x": {}, "y": {DECOMPOSED: 1}}, False),
        ({"a": 1}, {"b": 1}, False),
        ({COMPOSED: 1, DECOMPOSED: 1}, {COMPOSED: 1, "b": 1}, False),
        ({"e" + "\u0301\u0323" * 500_000: 1}, {"e" + "\u0301\u0323" * 500_000 + "x": 1}, False),  # in no endless time
    ],
)
@pytest.mark.parametrize("limit", [0, 5])
def test_keys_that_differ_only_by_their_unicode_form_are_said_to(gold, predicted, is_said, limit):
    summary = differing(gold, predicted, limit)["summary"]

    assert ("1 extra key missing in another Unicode normal form" in summary) is is_said
    assert ("Unicode" in summary) is is_said


def test_long_values_and_paths_are_cut():
    ((path, value),) = differing({"a": 1}, {"a": 1, "k" * 9_999: {"b": "v" * 9_999}})["extra"]
    (rows,) = differing(nested(100, 1), nested(100, 2))["changed"]
    deep = rows["gold"][0]

    assert max(len(path), len(deep)) <= 200
    assert (len(value), value[:9], value[-1]) == (200, '{"b":"vvv', "…")


@given(VALUES, VALUES)
def test_there_is_a_difference_exactly_where_the_values_are_not_equal(gold, predicted):
    there, back = differing(gold, predicted), differing(predicted, gold)

    assert (not any(there["counts"].values())) == (key(gold) == key(predicted)) == (there["summary"] in ("", NOTATION))
    assert any(there["counts"].values()) == any(back["counts"].values())
