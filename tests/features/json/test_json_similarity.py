"""`structural_similarity`, `semantic_similarity` and `overall_similarity`."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from json_values import COMPOSED, DECOMPOSED, HOSTILE_KEYS, OBJECTS, nested, turned

from pytest_queryeval import METRICS
from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score

SIMILARITIES = ("structural_similarity", "semantic_similarity", "overall_similarity")
HDOP = {"query": {"<python/Juling>": {"<property/HDOP>": {"value": ["Bound"]}}}}
PDOP = {"query": {"<python/Juling>": {"<property/PDOP>": {"value": ["Not Bound"]}}}}
DEPTHS = st.sampled_from(["top", "all"])
LISTS = st.sampled_from(["index", "set"])


def alike(model, pairs):
    """Stands for a model: the share of characters that two texts have in common at the same place."""
    return [_alike(text, partner) for text, partner in pairs]


def _alike(text, other):
    return sum(map(str.__eq__, text, other)) / max(len(text), len(other)) if text != other else 1.0


def strss(gold, predicted, **options):
    return METRICS["structural_similarity"].function(JsonAnswer(gold), JsonAnswer(predicted), **options)


def semss(gold, predicted, *, similarity=alike, **options):
    return METRICS["semantic_similarity"].function(
        JsonAnswer(gold), JsonAnswer(predicted), similarity=similarity, **options
    )


def overall(gold, predicted, *, similarity=alike, **options):
    return METRICS["overall_similarity"].function(
        JsonAnswer(gold), JsonAnswer(predicted), similarity=similarity, **options
    )


def texts_of(gold, predicted, **options):
    """The pairs of texts that a model would be asked about."""
    calls = []

    def keep(model, pairs):
        calls.append(list(pairs))
        return [1.0] * len(pairs)

    semss(gold, predicted, similarity=keep, **options)
    return calls


def test_the_documents_example_has_all_keys_on_the_top_level_and_the_wrong_property_below():
    assert strss(HDOP, PDOP) == 1.0
    assert strss(HDOP, PDOP, depth="all") == 2 / (5 + 0.1 * 3)
    assert strss(HDOP, PDOP, at="$.query") == 1.0
    assert strss(HDOP, PDOP, at="$.query['<python/Juling>']") == 0.0
    assert texts_of(HDOP, PDOP) == [[(str(HDOP["query"]), str(PDOP["query"]))]]


@pytest.mark.parametrize(("beta", "score"), [(0.1, 2 / 3.1), (0.5, 2 / 3.5), (1, 2 / 4)])
def test_extra_keys_cost_beta_and_missing_keys_1(beta, score):
    assert strss({"a": 1, "b": 2, "c": 3}, {"a": 0, "b": 0, "d": 0}, beta=beta) == pytest.approx(score)


def test_empty_objects_have_the_same_structure_and_no_meaning():
    assert strss({}, {}) == 1.0
    assert strss({}, {"a": 1}) == strss({"a": 1}, {}) == 0.0
    assert semss({}, {}) == semss({"a": 1}, {"b": 1}) == 0.0
    assert overall({}, {}, alpha=0.8) == 0.8


@given(OBJECTS, OBJECTS, DEPTHS, LISTS)
def test_the_order_of_keys_does_not_count(gold, predicted, depth, lists):
    options = {"depth": depth, "lists": lists}
    plain, others = (gold, predicted), (turned(gold), turned(predicted))

    assert strss(*plain, **options) == strss(*others, **options)
    assert semss(*plain, **options, value_text="json") == semss(*others, **options, value_text="json")


@given(OBJECTS, OBJECTS, DEPTHS, LISTS, st.floats(0.01, 1), st.floats(0, 1))
def test_all_scores_lie_between_0_and_1(gold, predicted, depth, lists, beta, alpha):
    options = {"depth": depth, "lists": lists}

    assert 0 <= strss(gold, predicted, beta=beta, **options) <= 1
    assert 0 <= semss(gold, predicted, **options) <= 1
    assert 0 <= overall(gold, predicted, beta=beta, alpha=alpha, **options) <= 1 + 1e-12
    assert strss(gold, gold, **options) == 1.0
    assert not gold or semss(gold, gold, **options) == overall(gold, gold, **options) == 1.0


def paths_of(value, lists, path=()):
    """Every path below a value, the long way."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    actual = set()
    for step, item in items:
        known = "*" if lists == "set" and isinstance(value, list) else step
        here = (*path, (type(value), known))
        actual |= {here} | paths_of(item, lists, here)
    return actual


@given(OBJECTS, OBJECTS, LISTS)
@example({"a": {"0": 1}}, {"a": [1]}, "index")
def test_structure_at_all_depths_is_that_of_the_sets_of_paths(gold, predicted, lists):
    expected, pairs = paths_of(gold, lists), paths_of(predicted, lists)
    union = len(expected) + 0.1 * len(pairs - expected)

    assert strss(gold, predicted, depth="all", lists=lists) == (len(expected & pairs) / union if union else 1.0)


def test_all_pairs_go_to_the_model_in_one_call_in_the_order_of_golds_keys():
    gold, predicted = {"b": 1, "a": "x", "c": 0, "d": None}, {"d": None, "a": "x", "b": 2}

    assert texts_of(gold, predicted) == [[("1", "2"), ("x", "x"), ("None", "None")]]


def test_the_model_is_asked_by_its_name():
    calls = []

    def keep(model, pairs):
        calls.append(model)
        return [1.0] * len(pairs)

    semss({"a": 1}, {"a": 1}, similarity=keep)
    semss({"a": 1}, {"a": 1}, similarity=keep, embedding_model="models/mine")
    overall({"a": 1}, {"a": 1}, similarity=keep, embedding_model="models/mine")

    assert calls == ["paraphrase-TinyBERT-L6-v2", "models/mine", "models/mine"]


def test_texts_are_pythons_or_those_of_json():
    gold, predicted = {"a": {"y": True, "x": 1.0}, "b": "é"}, {"a": {"x": 1, "y": True}, "b": None}

    assert texts_of(gold, predicted) == [[("{'y': True, 'x': 1.0}", "{'x': 1, 'y': True}"), ("é", "None")]]
    assert texts_of(gold, predicted, value_text="json") == [[('{"x":1,"y":true}', '{"x":1,"y":true}'), ('"é"', "null")]]


def test_the_mean_is_kept_within_0_and_1_and_not_each_cosine():
    gold = {"a": 1, "b": 2}

    assert semss(gold, gold, similarity=lambda model, pairs: [1.0, -0.5]) == 0.25
    assert semss(gold, gold, similarity=lambda model, pairs: [0.5, -1.0]) == 0.0
    assert semss(gold, gold, similarity=lambda model, pairs: [1.0000001, 1.0]) == 1.0


def test_at_all_depths_values_are_compared_where_a_path_ends():
    gold = {"a": {"b": 1, "c": {}, "d": {"x": 1}}, "e": [1, 2]}
    predicted = {"a": {"b": {"x": 1}, "c": {}, "d": {"y": 1}}, "e": [1]}

    (pairs,) = texts_of(gold, predicted, depth="all")

    assert sorted(pairs) == [("1", "1"), ("1", "{'x': 1}"), ("{}", "{}")]


def test_values_of_lists_as_sets_are_one_text_in_one_order():
    gold, predicted = {"a": [3, 1, 1.0, "1"]}, {"a": ["1", 1, 3, 3]}

    (pairs,) = texts_of(gold, predicted, depth="all", lists="set", value_text="json")

    assert pairs == [('["1",1,3]', '["1",1,3]')]
    assert texts_of({"a": [1, 1]}, {"a": [1]}, depth="all", lists="set") == [[("1", "1")]]
    assert texts_of({"a": [{"b": 1}, 5]}, {"a": [{"b": 2}]}, depth="all", lists="set") == [
        [("5", "{'b': 2}"), ("1", "2")]
    ]


@pytest.mark.parametrize(
    "at",
    [
        *("$.query", "$['query']", "/query", "$.list[1]", "/list/1", "$.list[?@.a == 1]", "/odd~1key~0/", "/~01"),
        *("$['odd/key~']['']", "$..deep"),
    ],
)
def test_a_path_or_a_pointer_names_the_level_whose_keys_alone_count(at):
    def document(inner):
        return {"query": inner, "list": [0, inner], "odd/key~": {"": inner}, "~1": inner, "x": {"deep": inner}}

    gold, predicted = document({"a": 1, "b": 2}), document({"a": 1})
    assert strss(gold, predicted, at=at) == 0.5
    assert strss(gold, predicted) == strss(gold, predicted, at="$") == strss(gold, predicted, at="") == 1.0


@pytest.mark.parametrize(
    ("gold", "at", "reason"),
    [
        ([1, 2], "", "the gold answer is a list of 2, not an object"),
        (None, "", "the gold answer is null, not an object"),
        ("{}", "$.query", "the gold answer has nothing at `$.query`"),
        ({"query": "x"}, "/query", "the gold answer is a text at `/query`, not an object"),
        ({"a": {"x": {}}, "b": {"x": {}}}, "$..x", "the gold answer has 2 values at `$..x` and not one"),
        ({"a": [{}]}, "/a/1", "the gold answer has nothing at `/a/1`"),
        ({"a": [{}]}, "/a/00", "the gold answer has nothing at `/a/00`"),
        ({"a": [{}]}, "/a/-1", "the gold answer has nothing at `/a/-1`"),
        ({"a": [{}]}, "/a/-", "the gold answer has nothing at `/a/-`"),
        ({"a": [{}]}, "/a/" + "9" * 9, "the gold answer has nothing at `/a/999999999`"),
        ({"a": {"b": {}}}, "/a/#b", "the gold answer has nothing at `/a/#b`"),
    ],
)
def test_a_gold_without_an_object_there_is_not_scored_and_a_note_says_why(gold, at, reason):
    scores = [score(gold, {"query": {}}, at=at) for score in (strss, semss, overall)]

    note = f"similarity: {reason}, so there is nothing to score"
    assert scores == [Score(value=None, details={"notes": [note]})] * 3


@pytest.mark.parametrize(
    ("predicted", "reason"),
    [
        (["query"], "the predicted answer has nothing at `$.query`"),
        ({}, "the predicted answer has nothing at `$.query`"),
        ({"query": [{}]}, "the predicted answer is a list of 1 at `$.query`, not an object"),
        ("query", "the predicted answer has nothing at `$.query`"),
    ],
)
def test_a_prediction_without_an_object_there_scores_0_and_a_note_says_why(predicted, reason):
    scores = [score({"query": {"a": 1}}, predicted, at="$.query") for score in (strss, semss, overall)]

    assert scores == [Score(value=0.0, details={"notes": [f"similarity: {reason}, which scores 0"]})] * 3


def test_overall_is_the_weighted_mean_of_both():
    gold, predicted = {"a": "xy", "b": 1}, {"a": "xz", "c": 1}
    options = {"depth": "all", "beta": 0.5}

    keys, meaning = strss(gold, predicted, **options), semss(gold, predicted, depth="all")

    assert (keys, meaning) == (1 / 2.5, 0.5)
    assert overall(gold, predicted, **options) == pytest.approx(0.5 * keys + 0.5 * meaning)
    assert overall(gold, predicted, alpha=0.8, **options) == pytest.approx(0.8 * keys + 0.2 * meaning)
    assert overall(gold, predicted, alpha=1, **options) == keys
    assert overall(gold, predicted, alpha=0, **options) == meaning


def test_hostile_keys_are_keys_like_any_other():
    gold = {key: number for number, key in enumerate(HOSTILE_KEYS)}
    half = dict(list(gold.items())[::2])

    assert strss(gold, gold) == semss(gold, gold) == 1.0
    assert strss(gold, half) == 0.5
    assert strss({COMPOSED: 1}, {DECOMPOSED: 1}) == 0.0


def test_a_level_that_cannot_be_searched_for_is_no_error():
    shallow, deep = {"x": {}}, nested(150, {"x": {}})

    assert strss(shallow, deep, at="$..x").value == 0.0
    assert strss(deep, shallow, at="$..x").value is None
    assert "the predicted answer cannot be searched at `$..x`" in strss(shallow, deep, at="$..x").details["notes"][0]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("beta", value) for value in (0, -0.1, 1.1, "0.1", True, None, float("nan"))),
        *(("alpha", value) for value in (-0.1, 1.5, "half", False, None, float("nan"))),
        *(("depth", value) for value in ("deep", None, 1, ["all"])),
        *(("lists", value) for value in ("bag", None, {})),
        *(("value_text", value) for value in ("yaml", None, 1)),
        *(("embedding_model", value) for value in ("", " ", None, 3)),
        *(("at", value) for value in ("query", "$.a..", "$[", "$.a | $.b", "/a~2", "/~", None, 1, ["$.a"], " $.a")),
    ],
)
def test_options_that_cannot_be_right_are_refused_by_name(setting, value):
    with pytest.raises(SettingError, match=setting if setting != "at" else ".") as caught:
        METRICS["overall_similarity"].check({setting: value})

    assert caught.value.setting == setting


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beta": 1, "alpha": 0},
        {"beta": 1e-9, "alpha": 1.0, "depth": "all", "lists": "set", "value_text": "json"},
        *({"at": at} for at in ("", "$", "$.query['a b'][0]", "/a~0b~1c//0", "/")),
        {"embedding_model": "models/mine"},
    ],
)
def test_options_that_can_be_right_are_taken(options):
    for name in SIMILARITIES:
        METRICS[name].check(options)
