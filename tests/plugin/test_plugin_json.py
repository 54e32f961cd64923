"""What a JSON case that fails says in the terminal, in JUnit and in Markdown."""

from __future__ import annotations

import json
import re

import pytest

HIDING = "a\u202eb\u2066c\u200bd\u2060e\ufefff\xadg\U000e0041h\u061ci"
LONG = [f"a_rather_long_key_{number}" for number in range(12)]
USUAL = ["query", "filters", "0", "conditions", "left", "operand", "name"]


def deep(value, *keys):
    for key in reversed(keys):
        value = {key: value}
    return value


def of_schema(schema, *keys):
    for key in reversed(keys):
        schema = {"properties": {key: schema}}
    return schema


SLOW = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
# The gold, the predicted text or value, and the schema of a case.
CASES = {
    "long": (deep("x" * 90 + "right", *LONG), deep("x" * 90 + "wrong", *LONG), {}),
    "usual": (deep(1, *USUAL), deep(2, *USUAL), {}),
    "violating": (deep(1, *LONG), deep("one", *LONG), of_schema({"type": "integer"}, *LONG)),
    "slow": ({"a": "a"}, {"a": "a" * 40 + "b"}, SLOW),
    "hiding": ({"a": "x"}, {"a": HIDING, HIDING: 1}, {}),
    "no-json": ({"a": "x"}, f'{{"{HIDING}" 1}}', {}),
}


@pytest.mark.feature("ci", "json")
def test_a_failed_case_of_json_says_what_is_wrong_where_in_characters_that_can_be_seen(pytester, write, run_and_parse):
    for name, (gold, predicted, schema) in CASES.items():
        write(f"{name}.schema.json", json.dumps(schema))
        case = {"id": name, "gold": json.dumps(gold), "predicted": predicted}
        suite = {"kind": "json", "timeout": 1, "json_schema": f"{name}.schema.json", "cases": [case]}
        write(f"{name}.queryeval.yaml", json.dumps(suite))

    run = run_and_parse("-vv", "-rA", "--queryeval-report=report.md")

    lines = re.findall(r"^    (?:gold    |instead ) \| (\$\.a_rather.*)$", run.text, re.MULTILINE)
    gold, instead = [line for line in lines if "xxx" in line]
    assert re.fullmatch(r'\$\.a_rather_long_key_0\..*…\S*\.a_rather_long_key_11 · …x+right"', gold)
    assert instead == gold.replace("right", "wrong")
    assert len(gold) <= 160
    assert "    instead  | $.query.filters['0'].conditions.left.operand.name · 2" in run.result.outlines
    assert re.search(r"^  violation  \$\.a_rather.*…\S*: 'one' is not of type 'integer'$", run.text, re.MULTILINE)
    assert run.case("slow")["predicted"]["error"]["kind"] == "timeout"
    run.result.stdout.fnmatch_lines(["prediction failed (timeout): *", "*predicted  | {", f'*"a": "{"a" * 40}b"'])
    assert "(a stored answer)" not in run.text

    junit, markdown = ((pytester.path / name).read_text(encoding="utf-8") for name in ("junit.xml", "report.md"))
    for text in (run.text, junit, markdown):
        assert not set(text) & set(re.sub("[a-i]", "", HIDING))
    assert r"a\u202eb\u2066c\u200bd\u2060e\ufefff\xadg\U000e0041h\u061ci" in run.text
    assert json.loads(run.case("hiding")["predicted"]["query"]) == {"a": HIDING, HIDING: 1}
    assert run.case("no-json")["predicted"]["query"] == f'{{"{HIDING}" 1}}'
