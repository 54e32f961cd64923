"""`compare` of JSON answers: when they are equal, how lists are aligned, and where they differ then."""

import random
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import VALUES, leaves, shared
from samples import make_case
from suites import case, problem, problems, write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import Policy
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

pytestmark = pytest.mark.usefixtures("working_folder")

HEAD = "kind: json\nmetrics: [json_equal, path_f1]\nthresholds: {}\n"


def policy_of(setting):
    return case(f"compare: {setting}", "gold: {}", "predicted: {}", head=HEAD).settings.policy


def score(name, gold, predicted, policy):
    value = METRICS[name].function(JsonAnswer(gold), JsonAnswer(predicted), policy=policy)
    return value.value if isinstance(value, Score) else value


def differing(gold, predicted, policy):
    settings = make_case(kind="json", policy=policy)
    return KINDS["json"].difference(JsonAnswer(gold), JsonAnswer(predicted), settings, limit=20)


def cause(gold, predicted, policy):
    settings = make_case(kind="json", policy=policy)
    found = KINDS["json"].difference_cause(JsonAnswer(gold), JsonAnswer(predicted), settings)
    return [f"{edit.label} {edit.clause}: {edit.change}" for edit in found.edits] if found else []


ITEMS = [{"id": 7, "price": 3.5}, {"id": 8, "price": 1}]


@pytest.mark.parametrize(
    ("setting", "gold", "predicted", "f1"),
    [
        ("{numbers: {abs: 1}}", {"a": 100, "b": 1}, {"a": 101, "b": 2.5}, 1 / 2),
        ("{numbers: {rel: 0.1}}", [100, -100], [109, -109], 1.0),
        ("{numbers: {abs: 1}}", [1, True], [2, 1], 1 / 2),
        ("{case: ignore}", {"a": "New York", "b": 1}, {"a": "NEW york", "B": 1}, 1 / 2),
        ("{whitespace: ignore}", [" a  b"], ["a b\n"], 1.0),
        ("{lists: any}", [1, 2, 2, {"a": [3, 4]}], [{"a": [4, 3]}, 2, 1, 2], 1.0),
        ("{lists: any}", [{"total": 6}], [{"total": 6}, {}], 2 / 3),
        ("{lists: any}", [], [{}], 0.0),
        ("{lists: {by: id}}", ITEMS, ITEMS[::-1], 1.0),
        ("{lists: {by: id}}", ITEMS, [{"id": 8, "price": 3.5}, {"id": 9, "price": 3.5}], 2 / 8),
        ("{lists: {by: id}}", ITEMS, [*ITEMS, {"id": 7, "price": 3.5}], 4 / 10),  # a repeated key has no partner
        ("{lists: {by: id}}", ITEMS, [{"price": 3.5}, ITEMS[1]], 4 / 7),
        ("{lists: {by: id}, case: ignore}", [{"id": "a", "n": 1}], [{"id": "A", "n": 1}], 1.0),
        ("{extra_keys: allow}", {"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 2, "x": [3, 4]}, "y": 5}, 1.0),
        ("{extra_keys: allow}", {"a": 1}, {"a": 2, "x": 3}, 0.0),
        ("{extra_keys: allow}", {"a": {}}, {"a": {"x": 3, "y": 4}}, 1.0),
        ("{extra_keys: allow}", [{}, {"a": 1}], [{"x": 3}, {"a": 1, "y": 4}], 1.0),
        ("{extra_keys: allow}", [1], [1, 2], 2 / 3),
        ("{ignore: [$.at, '$.x[*].id']}", {"at": 1, "x": [{"id": 1, "n": 2}]}, {"x": [{"id": 5, "n": 2}]}, 1.0),
        ("{ignore: ['$..id']}", {"a": {"b": {"id": 1, "n": 2}}}, {"a": {"id": 3, "b": {"n": 2}}}, 1.0),
        ("{ignore: ['$[0]', '$[-1]']}", [1, 2, 3], [4, 2, 5], 1.0),
        ("{paths: {$.x: {numbers: {abs: 1}}}}", {"x": {"y": 1}, "z": 1}, {"x": {"y": 2}, "z": 2}, 1 / 2),
        ("{paths: {\"$['a b']\": {case: ignore}}}", {"a b": "X", "c": "y"}, {"a b": "x", "c": "Y"}, 1 / 2),
        # The longest path wins, then the later one, setting by setting.
        (
            "{case: ignore, paths: {$.x.y: {case: ignore}, $.x: {case: keep, whitespace: ignore}}}",
            {"x": {"y": "a b", "z": "a b"}, "w": "a"},
            {"x": {"y": "A  b", "z": "A  b"}, "w": "A"},
            2 / 3,
        ),
        ("{paths: {'$.*': {case: ignore}, $.x: {case: keep}}}", {"x": "a", "y": "a"}, {"x": "A", "y": "A"}, 1 / 2),
        # Exact pairs have no precedence: 1 goes with 0 and 2 with 1.
        ("{numbers: {abs: 1}, lists: any}", [1, 2], [1, 0], 1.0),
    ],
)  # fmt: skip
def test_answers_are_compared_by_the_settings(setting, gold, predicted, f1):
    policy = policy_of(setting)

    assert score("path_f1", gold, predicted, policy) == pytest.approx(f1)
    assert score("json_equal", gold, predicted, policy) == float(f1 == 1.0)
    assert score("json_equal", gold, predicted, Policy()) == 0.0
    found = differing(gold, predicted, policy)
    assert any(found["counts"].values()) == (f1 != 1.0)
    assert bool(cause(gold, predicted, policy)) == (f1 != 1.0)
    assert "policy" not in METRICS["structural_similarity"].injected  # it is published


SMALL = st.integers(0, 3)
LISTS = st.lists(SMALL | st.lists(SMALL, max_size=3) | st.fixed_dictionaries({"a": SMALL, "b": SMALL}), max_size=3)
NESTED = st.lists(st.fixed_dictionaries({"a": SMALL, "b": LISTS}), max_size=3)


@pytest.mark.parametrize("lists", ["ordered", "any"])
@pytest.mark.parametrize("tolerance", [None, 1.0])
@given(st.tuples(LISTS, LISTS) | st.tuples(NESTED, NESTED))
def test_the_best_alignment_of_all_is_found(lists, tolerance, pair):
    policy = Policy(lists=lists, abs=tolerance)

    best = shared(*pair, policy)

    expected = 2 * best / (leaves(pair[0]) + leaves(pair[1]))
    assert score("path_f1", *pair, policy) == pytest.approx(expected)
    assert score("json_equal", *pair, policy) == float(expected == 1.0)


@given(VALUES, VALUES)
def test_settings_only_let_more_values_be_equal(gold, predicted):
    exact = score("path_f1", gold, predicted, Policy())

    for policy in (Policy(lists="any"), Policy(abs=0.5), Policy(case="ignore", whitespace="ignore")):
        assert score("path_f1", gold, predicted, policy) >= exact
        is_equal = score("json_equal", gold, predicted, policy) == 1.0
        assert is_equal == (not any(differing(gold, predicted, policy)["counts"].values()))


def records(number):
    chance = random.Random(5)
    return [
        {"id": place, "name": f"n{chance.random()}", "on": chance.random() < 0.5, "in": chance.choice("abc")}
        | {f"f{field}": chance.randrange(1_000) for field in range(6)}
        for place in range(number)
    ]


def inserted(gold):
    return [{"id": -1}, *({**record, "f5": -1} for record in gold)]


def shuffled(gold):
    return random.Random(1).sample(gold, len(gold))


def tenth_missing(gold):
    return [{**record, "f5": -1} for record in gold[::-1] if record["id"] % 10]


@pytest.mark.long
@pytest.mark.parametrize(
    ("setting", "change", "f1"),
    [
        ("{lists: ordered}", list, 1.0),
        ("{lists: ordered}", inserted, 2 * 18_000 / 40_001),
        ("{lists: any}", shuffled, 1.0),
        ("{lists: any}", inserted, 2 * 18_000 / 40_001),
        ("{lists: any}", tenth_missing, 2 * 16_200 / 38_000),
        ("{lists: {by: id}}", shuffled, 1.0),
        ("{lists: {by: id}}", tenth_missing, 2 * 16_200 / 38_000),
    ],
)
def test_long_lists_are_aligned_exactly_and_in_bounded_time(setting, change, f1):
    def timed(number):
        gold, predicted = JsonAnswer(records(number)), JsonAnswer(change(records(number)))
        started = process_time()
        found = METRICS["path_f1"].function(gold, predicted, policy=policy_of(setting))
        return found, process_time() - started

    _, of_few = timed(400)
    found, of_many = timed(2_000)

    assert found == pytest.approx(f1)
    assert of_many < 15 * of_few  # all pairs of elements would take 25 times as long


@pytest.mark.parametrize("lists", ["ordered", "any"])
def test_lists_within_many_elements_are_aligned_exactly(lists):
    gold = [{"id": place, "rows": [{"n": row, "v": place * row} for row in range(5)]} for place in range(100)]
    predicted = [{**item, "rows": [{"n": 9, "v": -1}, *item["rows"][:4]]} for item in gold]

    assert METRICS["path_f1"].function(JsonAnswer(gold), JsonAnswer(predicted), policy=Policy(lists=lists)) == (
        pytest.approx(9 / 11)
    )


@pytest.mark.long
@pytest.mark.parametrize("lists", ["ordered", "any"])
def test_where_lists_are_too_long_the_score_and_the_difference_say_so(lists, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.json.alignment.MAX_WORK", 2_000_000)  # sooner than after seconds
    gold, predicted = records(800), inserted(records(800))

    found = METRICS["path_f1"].function(JsonAnswer(gold), JsonAnswer(predicted), policy=Policy(lists=lists))

    assert 0.7 < found.value < 1
    (note,) = found.details["notes"]
    assert note == "path_f1: lists are too long to find their best alignment, so more of them may agree"
    assert note.removeprefix("path_f1: ") in differing(gold, predicted, Policy(lists=lists))["summary"]


@pytest.mark.parametrize(
    ("setting", "gold", "predicted", "rows", "edits"),
    [
        (
            "{lists: {by: id}}",
            {"items": ITEMS},
            {"items": [ITEMS[1], {"id": 7, "price": 3.6}]},
            [("$.items[id=7].price", "3.5", "$.items[id=7].price", "3.6")],
            ["wrong-value $.items[id=7].price: 3.6 → 3.5"],
        ),
        (
            "{lists: {by: id}}",
            ITEMS[:1],
            [{"id": "x"}],
            [("$[id=7]", '{"id":7,"price":3.5}', "", ""), ("", "", '$[id="x"]', '{"id":"x"}')],
            ['missing-member $[id=7]: nothing → {"id":7,"price":3.5}', 'extra-member $[id="x"]: {"id":"x"} → nothing'],
        ),
        (
            "{lists: ordered}",
            [{"n": "a", "v": 1}, {"n": "b", "v": 2}],
            [{"n": "z"}, {"n": "a", "v": 1}, {"n": "b", "v": 3}],
            [("", "", "$[0]", '{"n":"z"}'), ("$[1].v", "2", "$[2].v", "3")],
            ['extra-member $[0]: {"n":"z"} → nothing', "wrong-value $[1].v: 3 → 2"],
        ),
        ("{lists: ordered}", [1, 2, 3, 4], [2, 3, 4, 1], [("$[0]", "1", "$[3]", "1")], ["moved $[0]: $[3] → $[0]"]),
        (
            "{case: ignore}",
            {"color": "Red", "n": 1},
            {"colour": "RED", "n": 1},
            [("$.color", '"Red"', "", ""), ("", "", "$.colour", '"RED"')],
            ["wrong-key $.color: $.colour → $.color"],
        ),
        (
            "{ignore: ['$[0]'], lists: any}",
            [0, {"a": 1}, 5],
            [9, 5, {"a": "1"}],
            [("$[1].a", "1", "$[2].a", '"1"')],
            ['wrong-type $[1].a: "1" → 1'],
        ),
    ],
)
def test_differences_follow_the_settings(setting, gold, predicted, rows, edits):
    policy = policy_of(setting)

    found = differing(gold, predicted, policy)

    shown = [(*row, "", "") for row in found["missing"]] + [("", "", *row) for row in found["extra"]]
    shown += [(*row["gold"], *row["predicted"]) for row in found["changed"]]
    assert shown == rows
    assert cause(gold, predicted, policy) == edits


def test_a_moved_element_is_said_to_be_elsewhere():
    assert differing([1, 2, 3], [2, 3, 1], Policy())["summary"] == "$[0] is at $[2]"
    assert differing({"a": 1}, {"a": 1.5}, Policy(abs=1.0))["summary"] == "only what `compare` lets be equal differs"


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ("{x: [{id: 1}, {n: 2}]}", "$.x[1] has no value of 'id' to identify it: add it, or remove `lists: {by: id}`"),
        ("[{id: 1}, 5]", "$[1] has no value of 'id'"),
        ("[{id: 1}, {id: [2]}]", "$[1] has no value of 'id'"),
        ("[{id: 1}, {id: 2}, {id: 1.0}]", "$[0] and $[2] have the same 'id'"),
    ],
)
@pytest.mark.parametrize("setting", ["{lists: {by: id}}", "{paths: {'$': {lists: {by: id}}}}"])
def test_elements_of_gold_are_told_by_the_member(gold, said, setting):
    assert said in problem(f"compare: {setting}", f"gold: {gold}", "predicted: {}", head=HEAD)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("{lists: sorted}", "expected ordered, any or {by: NAME}"),
        ("{lists: {key: id}}", "unknown key 'key'"),
        ("{ignore: [at]}", "`at` is not a JSONPath: it begins with `$`"),
        ("{ignore: ['$[?@.a]']}", "is not a JSONPath of names, indexes, `*` and `..`"),
        ("{ignore: [$]}", "`$` is the whole answer"),
        ("{paths: {x: {case: ignore}}}", "`x` is not a JSONPath"),
        ("{paths: {$.x: {ignore: [$.y]}}}", "unknown key 'ignore'"),
        ("{numbers: {columns: {a: {abs: 1}}}}", "cases of kind json do not use it"),
        ("{row_order: ignore}", "cases of kind json do not use it"),
    ],
)
def test_settings_that_cannot_be_right_are_problems(setting, said):
    top = f"{HEAD}compare: {setting}\ncases: [{{id: a, gold: {{}}, predicted: {{}}}}]\n"

    assert said in str(problems(top))


CASE = "cases: [{id: a, gold: {a: x}, predicted: {a: X}}]\n"


@pytest.mark.parametrize(
    ("folder", "suite", "equal"),
    [
        ("compare: {case: ignore}", HEAD, 0.0),  # of tables
        ("kind: json\ncompare: {case: ignore}", HEAD, 0.0),
        ("compare: {json: {case: ignore}}", HEAD, 1.0),
        ("compare: {json: {case: ignore}}", f"{HEAD}compare: {{case: keep}}\n", 0.0),
        ("compare: {json: {case: ignore}}", f"{HEAD}compare: {{lists: any}}\n", 1.0),
        ("check: {}", f"{HEAD}compare: {{case: ignore}}\n", 1.0),
        ("check: {}", f"{HEAD}compare: {{json: {{case: ignore}}}}\n", 1.0),
    ],
)
def test_settings_come_from_cases_and_suites_of_the_kind_or_from_below_json(folder, suite, equal):
    write(f"{folder}\n", "queryeval.yaml")

    (result,) = evaluate(load_cases(write(f"{suite}{CASE}", "s.queryeval.yaml")))["cases"]

    assert result["scores"]["json_equal"] == equal
    assert result["fingerprint"]["compare"].get("case") == ("ignore" if equal else None)


def test_settings_of_json_are_refused_for_other_kinds():
    top = "kind: sql\nsource: a.db\ncompare: {json: {case: ignore}}\n"

    said = str(problems(f"{top}cases: [{{id: a, gold: SELECT 1, predicted: SELECT 1}}]\n"))

    assert "`compare: json: case` has no effect, because cases of kind sql do not use it" in said
