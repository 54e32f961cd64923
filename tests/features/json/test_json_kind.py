"""JSON cases from the suite to the report."""

import json
from pathlib import Path

import pytest
import yaml
from suites import case, load, problem, problems, write

from pytest_queryeval import evaluate, score_pairs

pytestmark = pytest.mark.usefixtures("working_folder")

HEAD = "kind: json\n"
ANSWERS = yaml.safe_load((Path(__file__).parent / "answers.yaml").read_text(encoding="utf-8"))


def gold_of(*lines):
    (gold,) = case(*lines, "predicted: {}", head=HEAD).golds
    return gold.answer.value


def evaluated(*lines, head=HEAD):
    (result,) = evaluate([case(*lines, head=head)])["cases"]
    return result


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("{a: 1, b: [true, null, x, 1.5]}", {"a": 1, "b": [True, None, "x", 1.5]}),
        ("'{\"a\": 1}'", {"a": 1}),
        ("'\"red\"'", "red"),
        ('"null"', None),
        ("5", 5),
        ("true", True),
        ("[]", []),
    ],
)
def test_gold_is_a_value_or_json_text(written, value):
    assert gold_of(f"gold: {written}") == value


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gold: red", "not JSON: `red` without quotes: write texts in double quotes (line 1, column 1 of the text)"),
        ("gold: '[1, 2 3]'", "not JSON: a comma is missing before this: add it (line 1, column 7 of the text)"),
        ("gold: 1e400", "a number of 5 characters is too large"),
        ("gold: null", 'gold is empty: write "null" in quotes'),
        ("gold: '{\"a\": NaN}'", "NaN is not JSON"),
        ('gold: \'{"a": 1, "a": 2}\'', "duplicate key 'a'"),
        ("gold_table: {columns: [a], rows: []}", "answers of the kind 'json' are not tables"),
    ],
)
def test_a_gold_that_is_no_json_is_a_problem_of_the_suite(line, said):
    assert said in problem(line, head=HEAD)


@pytest.mark.parametrize("name", ["gold.txt", "gold.md"])
def test_gold_and_predicted_may_come_from_files_of_text(working_folder, name):
    write('See:\n```json\n{"a": 1}\n```\n', name)

    result = evaluated(f"gold_file: {name}", f"predicted_file: {name}")

    assert result["outcome"] == "passed"
    assert result["gold"]["query"] == result["predicted"]["query"]


def test_a_gold_file_of_text_has_to_be_json_and_to_keep_the_schema(schema):
    write("\n{a: 1}\n", "gold.txt")
    no_json = problem("gold_file: gold.txt", "predicted: {}", head=HEAD)
    write('{"a": "x"}', "gold.txt")
    broken = problem("gold_file: gold.txt", "predicted: {}", head=schema)

    assert no_json.startswith("the gold answer cannot be read: not JSON: ")
    assert no_json.endswith("(line 2, column 2)")
    assert broken.startswith("the gold answer breaks answer.schema.json: ")


@pytest.mark.parametrize(("text", "value", "note"), ANSWERS["read"])
def test_what_stands_around_an_answer_is_left_out_and_said_to_be_so(text, value, note):
    head = f"{HEAD}metrics: [json_equal]\n"

    result = evaluated(f"gold: {json.dumps(value)}", f"predicted: {json.dumps(text)}", head=head)

    assert result["outcome"] == "passed"
    assert result["details"].get("notes", []) == [f"predicted: {note}"] * bool(note)
    assert "answered_by" not in result["details"]


@pytest.mark.parametrize(("text", "said", "fixed"), ANSWERS["refused"])
def test_a_refusal_says_what_is_wrong_where_and_what_helps(text, said, fixed):
    refused, read = score_pairs([("1", text), ("1", fixed)], kind="json", metrics=["json_equal"])

    assert (refused.failure.message, refused.failure.kind) == (said, "empty" if "is empty" in said else "invalid")
    assert read.failure is None


def test_an_equal_answer_passes_without_any_setting():
    result = evaluated("gold: {a: 1, b: x}", 'predicted: \'{"b": "x", "a": 1.0}\'')

    assert result["outcome"] == "passed"
    assert result["scores"] == {"json_equal": 1.0, "structural_similarity": 1.0, "path_f1": 1.0}
    assert json.loads(result["gold"]["query"]) == {"a": 1, "b": "x"}


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("", "empty", "the answer is empty"),
        ("[" * 100_000, "invalid", "nested deeper than 100 levels"),
        ("[" * 101 + "]" * 101, None, ""),
        ("[" * 102 + "]" * 102, "invalid", "nested deeper than 100 levels (line 1, column 102)"),
        ('"' + "," * 1_000_000 + '"', None, ""),
        ('"' + "," * 1_000_001 + '"', "too_large", "more than 1,000,000 values"),
        ("1" * 5_000, "invalid", "a number of 5000 characters is too large"),
        ("[" * 200_000 + '{"' * 100_000, "invalid", "nested deeper"),
        ('{"' + '\\"' * 200_000, "invalid", "token limit"),
        ("a " * 1_000_000 + "{", "invalid", "there is no JSON in the answer"),
        ("[x] " * 50_000, "invalid", "write texts in double quotes"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_an_answer_that_cannot_be_read_is_a_failed_prediction(text, kind, said):
    write(json.dumps({"id": "a", "predicted": text}), "answers.jsonl")
    (loaded,) = load(f"{HEAD}predictor: answers.jsonl\ncases:\n  - {{id: a, gold: {{a: 1}}}}\n")

    (result,) = evaluate([loaded])["cases"]

    error = result["predicted"]["error"]
    assert (result["outcome"], error and error["kind"]) == ("failed", kind)
    assert error is None or said in error["message"]
    assert kind is None or set(result["scores"].values()) == {0.0}


@pytest.mark.long
def test_an_answer_of_32_mib_is_read_and_no_longer_one():
    longest = "[]" + " " * (32 * 2**20 - 2)

    read, refused = score_pairs([("[]", longest), ("[]", f"{longest} ")], kind="json", metrics=["json_equal"])

    assert (read.failure, read.scores) == (None, {"json_equal": 1.0})
    assert refused.failure.kind == "too_large"
    assert refused.failure.message == "the answer has 33,554,433 characters, more than 33,554,432"


@pytest.mark.parametrize(
    ("gold", "predicted", "same"),
    [
        ("12345678901234567890123", "12345678901234567890124", 0.0),
        ("12345678901234567890123", "12345678901234567890123.0", 0.0),
        ("9007199254740992", "9007199254740992.0", 1.0),
        ("0.1", "0.10000000000000000001", 1.0),
        ("1e2", "100", 1.0),
    ],
)
def test_numbers_with_a_fraction_or_an_exponent_are_doubles_and_others_exact(gold, predicted, same):
    result = evaluated(f"gold: {{a: {gold}}}", f"predicted: '{{\"a\": {predicted}}}'")

    assert result["scores"]["json_equal"] == same


def test_keys_that_differ_by_their_unicode_form_only_are_told_apart_and_named():
    result = evaluated('gold: {"\u00e9": 1}', 'predicted: {"e\u0301": 1}')

    assert result["scores"]["json_equal"] == 0.0
    assert "Unicode" in result["difference"]["summary"]


@pytest.mark.parametrize(
    ("gold", "predicted", "tolerance"),
    [
        ("{t: 11.296}", "{t: 11.3}", 0.05),
        ("{t: 11.296, u: [1.005]}", "{t: 11.3, u: [1]}", 0.05),
        ("{t: 3.149}", "{t: 3.14}", 0.01),
        ("{t: 11.296}", "{t: 11.4}", None),
        ("{t: 11.296, n: a}", "{t: 11.3, n: b}", None),
        ("{t: 11.296}", '{t: "11.3"}', None),
    ],
)
def test_a_hint_names_the_tolerance_that_accepts_rounded_numbers(gold, predicted, tolerance):
    hints = evaluated(f"gold: {gold}", f"predicted: {predicted}").get("hints", [])

    assert [(hint["kind"], hint["compare"]) for hint in hints] == [
        ("rounding", {"numbers": {"abs": tolerance}}) for _ in [1] * bool(tolerance)
    ]
    compare = f"compare: {{numbers: {{abs: {tolerance}}}}}"
    assert not tolerance or evaluated(f"gold: {gold}", f"predicted: {predicted}", compare)["outcome"] == "passed"


AT = "the predicted answer has the gold answer at {}: return that value alone"
DECODED = "the predicted answer has JSON as a text: return that JSON itself"


@pytest.mark.parametrize(
    ("gold", "predicted", "said"),
    [
        ({"x": 1}, {"name": "extract", "arguments": {"x": 1}}, AT.format("$.arguments")),
        ({"x": 1}, {"name": "extract", "arguments": {"x": 2}}, None),
        (
            {"x": 1},
            {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}]},
            AT.format("$.tool_calls[0].function.arguments"),
        ),
        ({"x": 1}, '{"x": 1}', DECODED),
        ([{"x": [1]}], [{"x": "[1]"}], DECODED),
        ({"x": 1}, [{"x": 1}], AT.format("$[0]")),
        (42, {"steps": "6 * 7", "answer": 42}, AT.format("$.answer")),
        ("[1", "[1, 2", None),
    ],
)
def test_a_hint_names_the_right_value_within_a_wrong_one_which_stays_wrong(gold, predicted, said):
    result = evaluated(f"gold: {json.dumps(json.dumps(gold))}", f"predicted: {json.dumps(json.dumps(predicted))}")

    assert result["outcome"] == "failed"
    assert [(hint["kind"], hint["text"]) for hint in result.get("hints", [])] == [("wrapped", said)] * bool(said)


def test_what_differs_is_in_the_report_by_its_path():
    result = evaluated("gold: {a: 1, b: {c: [x]}}", "predicted: {a: 2, d: y}")

    assert result["difference"]["missing"] == [["$.b", '{"c":["x"]}']]
    assert result["difference"]["extra"] == [["$.d", '"y"']]
    assert result["difference"]["changed"] == [{"gold": ["$.a", "1"], "predicted": ["$.a", "2"]}]


@pytest.mark.parametrize(
    ("gold", "predicted", "cause"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1, "b": 2}, {"a": 1}, "missing-member $.b nothing → 2"),
        ({"a": 1}, {"a": 1, "b": None}, "extra-member $.b null → nothing"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "wrong-value $.a[1] 3 → 2"),
        ({"a": 1}, {"a": "1"}, 'wrong-type $.a "1" → 1'),
        ({"a": True}, {"a": False}, "wrong-value $.a false → true"),
        ({"a": -1}, {"a": 1}, "wrong-value $.a 1 → -1"),
        ({"a": 1}, [], 'wrong-type $ [] → {"a":1}'),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "c": 4}, "wrong-value $.b 3 → 2; wrong-value $.c 4 → 3"),
    ],
)
def test_the_cause_is_the_first_differences(gold, predicted, cause):
    result = evaluated(f"gold: {json.dumps(gold)}", f"predicted: {json.dumps(predicted)}")

    edits = (result["cause"] or {"edits": []})["edits"]
    assert "; ".join(f"{edit['label']} {edit['clause']} {edit['change']}" for edit in edits) == (cause or "")


def test_an_option_of_a_metric_comes_before_that_of_its_kind():
    options = "options: {json: {beta: 1, at: $.q}, structural_similarity: {beta: 0.5}}\n"
    head = f"{HEAD}{options}metrics: [structural_similarity]\nthresholds: {{}}\n"

    result = evaluated("gold: {q: {a: 1}}", "predicted: {q: {a: 1, b: 1}}", head=head)

    assert result["scores"] == {"structural_similarity": pytest.approx(1 / 1.5)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{json: {beta: 0}}", "beta"),
        ("{json: {alpha: 2}}", "alpha"),
        ("{json: {depth: deep}}", "depth"),
        ("{json: {at: '$['}}", "at"),
        ("{json: {depths: all}}", "kind 'json' has no option 'depths': did you mean 'depth'?"),
        ("{overall_similarity: {alpha: -1}}", "alpha"),
    ],
)
def test_options_that_cannot_be_right_are_problems(options, said):
    (line,) = problems(f"{HEAD}options: {options}\ncases:\n  - {{id: a, gold: {{}}, predicted: {{}}}}\n")

    assert line.startswith("s.queryeval.yaml:2: ")
    assert said in line


@pytest.fixture
def schema(working_folder):
    write('{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}', "answer.schema.json")
    return f"{HEAD}json_schema: answer.schema.json\nmetrics: [json_equal, valid_query]\nthresholds: {{}}\n"


def test_an_answer_that_breaks_the_schema_is_no_valid_answer_but_compared(schema):
    broken, kept = (evaluated("gold: {a: 1}", f"predicted: {{a: {value}}}", head=schema) for value in ("x", "2"))

    assert broken["scores"] == {"json_equal": 0.0, "valid_query": 0.0}
    assert broken["details"]["violations"] == ["$.a: 'x' is not of type 'integer'"]
    assert kept["scores"] == {"json_equal": 0.0, "valid_query": 1.0}
    assert "violations" not in kept["details"]


@pytest.mark.parametrize(
    ("predicted", "shown"),
    [("{a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab}", "aaab"), ("'[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"]'", "aaab")],
)
def test_an_answer_whose_check_ends_without_a_result_is_shown(working_folder, predicted, shown):
    pattern = {"type": "string", "pattern": "^(a+)+$"}
    write(json.dumps({"properties": {"a": pattern}, "items": pattern}), "slow.json")
    head = f"{HEAD}json_schema: slow.json\ntimeout: 0.5\n"

    result = evaluated("gold: {a: a}", f"predicted: {predicted}", head=head)

    assert result["predicted"]["error"]["kind"] == "timeout"
    assert shown in result["predicted"]["query"]
