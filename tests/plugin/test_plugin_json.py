"""What a JSON case that fails says in the terminal, in JUnit and in Markdown."""

from __future__ import annotations

import json
import re

import pytest

HIDING = "a\u202eb\u2066c\u200bd\u2060e\ufefff\xadg\U000e0041h\u061ci"
SLOW = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}


@pytest.fixture
def json_suite(write):
    """Write JSON cases, each of them a gold and a predicted value, and the schema that they are to keep."""

    def write_cases(*pairs, schema=None):
        settings = {"kind": "json", "timeout": 1} | ({"json_schema": "schema.json"} if schema else {})
        cases = [
            {"id": f"case{number}", "gold": json.dumps(gold), "predicted": predicted}
            for number, (gold, predicted) in enumerate(pairs)
        ]
        write("queryeval.yaml", json.dumps(settings))
        write("schema.json", json.dumps(schema))
        write("a.queryeval.jsonl", "".join(f"{json.dumps(case)}\n" for case in cases))

    return write_cases


def deep(value, *keys):
    for key in reversed(keys):
        value = {key: value}
    return value


@pytest.mark.feature("json")
def test_a_long_path_and_its_value_keep_their_ends(json_suite, run_and_parse):
    keys = [f"a_rather_long_key_{number}" for number in range(9)]
    json_suite((deep("x" * 90 + "right", *keys), deep("x" * 90 + "wrong", *keys)))

    run = run_and_parse()

    (gold, instead) = re.findall(r"^    (?:gold    |instead ) \| (.*)$", run.text, re.MULTILINE)
    assert re.fullmatch(r'\$\.a_rather_long_key_0\..*…\S*\.a_rather_long_key_8 · "xxx.*…x+right"', gold)
    assert instead == gold.replace("right", "wrong")
    assert len(gold) <= 160


@pytest.mark.feature("json")
def test_a_path_of_usual_length_is_shown_whole(json_suite, run_and_parse):
    keys = ["query", "filters", "0", "conditions", "left", "operand", "name"]
    json_suite((deep(1, *keys), deep(2, *keys)))

    run = run_and_parse()

    run.result.stdout.fnmatch_lines(["    instead  | $.query.filters['0'].conditions.left.operand.name · 2"])


@pytest.mark.feature("json")
def test_a_violation_at_a_long_path_says_what_is_wrong(json_suite, run_and_parse):
    keys = [f"a_rather_long_key_{number}" for number in range(12)]
    schema = {"type": "integer"}
    for key in reversed(keys):
        schema = {"properties": {key: schema}}
    json_suite((deep(1, *keys), deep("one", *keys)), schema=schema)

    run = run_and_parse()

    assert re.search(r"^  violation  \$\.a_rather.*…\S*: 'one' is not of type 'integer'$", run.text, re.MULTILINE)


@pytest.mark.feature("json")
def test_an_answer_whose_check_takes_too_long_is_shown(json_suite, run_and_parse):
    json_suite(({"a": "a"}, {"a": "a" * 40 + "b"}), schema=SLOW)

    run = run_and_parse()

    assert run.case("case0")["predicted"]["error"]["kind"] == "timeout"
    run.result.stdout.fnmatch_lines(["prediction failed (timeout): *", "*predicted  | {", f'*"a": "{"a" * 40}b"'])
    assert "(a stored answer)" not in run.text


@pytest.mark.feature("ci")
def test_characters_that_turn_or_hide_text_are_data_in_the_report_and_escapes_elsewhere(
    pytester, json_suite, run_and_parse
):
    json_suite(({"a": "x"}, {"a": HIDING, HIDING: 1}), ({"a": "x"}, f'{{"{HIDING}" 1}}'))

    run = run_and_parse("-vv", "-rA", "--queryeval-report=report.md")

    junit, markdown = ((pytester.path / name).read_text(encoding="utf-8") for name in ("junit.xml", "report.md"))
    for text in (run.text, junit, markdown):
        assert not set(text) & set(re.sub("[a-i]", "", HIDING))
    assert r"a\u202eb\u2066c\u200bd\u2060e\ufefff\xadg\U000e0041h\u061ci" in run.text
    assert json.loads(run.case("case0")["predicted"]["query"]) == {"a": HIDING, HIDING: 1}
    assert run.case("case1")["predicted"]["query"] == f'{{"{HIDING}" 1}}'
