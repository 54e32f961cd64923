import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import is_one_line, outcome, trees

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents import document
from pytest_queryeval.documents.document import Node, file_at, json_within, parse_json, read_json, read_jsonl
from pytest_queryeval.documents.values import json_value


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def file(name="suite.yaml"):
    return file_at(name)


def json_refusal(text, line=7):
    with pytest.raises(CaseError) as caught:
        parse_json(text, file("x.jsonl"), line=line)
    return str(caught.value).removeprefix(f"{file('x.jsonl').shown}:")


def test_json_numbers_keep_their_source_text():
    node = parse_json('{"a": 1.10, "b": 12345678901234567890}', file(), line=1)

    assert [item.value for item in node.value.values()] == ["1.10", "12345678901234567890"]
    assert all(item.plain for item in node.value.values())


def test_json_values_read_as_what_they_are():
    text = '{"a": [1, -2.5, 1e3, true, false, null, "1", "true", "", "null"], "b": {}}'

    assert json_value(parse_json(text, file(), line=1)) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "7: duplicate key 'a'"),
        ('{"a": NaN}', "7: NaN is not JSON"),
        ('{"a": -Infinity}', "7: -Infinity is not JSON"),
        ('{"a": "\\ud800"}', "7: a string holds half of a surrogate pair (\\ud800 to \\udfff)"),
        ("[" * 100_000, "7: nested deeper than 100 levels"),
        ("[" * 102 + "]" * 102, "7: nested deeper than 100 levels"),
        ('{"a": 1,}', None),
        ('  {"a" 1}', "7:8: not JSON: a `:` is missing behind the name"),
        ('{"a": 1} x', "7:10: not JSON: more text behind the end of the value"),
        ('{"a": 01}', None),
        ("{'a': 1}", None),
        ('{"a": "\x01"}', None),
    ],
)
def test_wrong_json_is_refused_with_its_place(text, problem):
    refused = json_refusal(text)

    assert refused == problem if problem else refused.startswith("7:")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a" 1}', "1:6"),
        ('\n\n  {"a" 1}', "3:8"),
        ('{\n "a": 1,\n "b" 2}\n\n', "3:6"),
        ("\u00a0\n {x", "2:3"),
        ("\ufeff[1 2]", "1:4"),
        (" \n", "2:1"),
    ],
)
def test_places_are_those_in_the_whole_text(text, place):
    assert json_refusal(text, line=0).startswith(f"{place}: not JSON: ")


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("text", ['\ufeff{"a": 1}', '\ufeff \n{"a": 1}'])
def test_a_byte_order_mark_before_json_is_no_part_of_it(text):
    file("x.json").path.write_text(text, encoding="utf-8")

    assert json_value(parse_json(text, file(), line=0)) == json_value(read_json(file("x.json"))) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a" 1}', "not JSON: a `:` is missing behind the name (line 1, column 6 of the text)"),
        ('\n{"a": 1,\n"b" 2}', "not JSON: a `:` is missing behind the name (line 3, column 5 of the text)"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested deeper than 100 levels"),
    ],
)
def test_json_within_a_text_is_refused_at_its_node_with_the_place_in_the_text(text, problem):
    with pytest.raises(CaseError) as caught:
        json_within(Node(text, 7, "quoted", file()))

    assert caught.value.problem == problem
    assert (caught.value.location.line, caught.value.location.column) == (7, 0)


@given(trees)
def test_json_within_a_text_is_the_value_that_it_says(tree):
    assert json_value(json_within(Node(json.dumps(tree), 7, "literal", file()))) == tree


@pytest.mark.usefixtures("working_folder")
def test_every_line_of_json_is_read_or_reported():
    file("x.jsonl").path.write_bytes(b'\xef\xbb\xbf{"a": "\xe2\x80\xa8"}\r\n\r\n  \n{"a"\n\xff\n{"b": 2}')

    entries = list(read_jsonl(file("x.jsonl")))

    assert [str(entry) if isinstance(entry, CaseError) else (entry.line, json_value(entry)) for entry in entries] == [
        (1, {"a": "\u2028"}),
        "x.jsonl:4:5: not JSON: it ends too early: a value, a `]` or a `}` is missing: a line holds one JSON object",
        "x.jsonl:5:1: byte 0xff is not UTF-8: save the file as UTF-8",
        (6, {"b": 2}),
    ]


@pytest.mark.usefixtures("working_folder")
def test_too_long_lines_of_json_are_refused(monkeypatch):
    monkeypatch.setattr(document, "MAX_JSONL_LINE", 1024 * 1024)
    file("x.jsonl").path.write_bytes(b'{}\n"' + b"a" * 1024 * 1024 + b'"\n')

    with pytest.raises(CaseError, match=r"x\.jsonl:2: the line is longer than 1 MiB"):
        list(read_jsonl(file("x.jsonl")))


@given(trees)
def test_any_tree_that_is_written_as_json_is_read_back(tree):
    assert json_value(parse_json(json.dumps(tree), file(), line=1)) == tree


@given(st.text() | st.text('{}[]",:0123eE+-.tfn\\u '))
def test_no_text_makes_json_raise_anything_else(text):
    assert is_one_line(outcome(lambda: parse_json(text, file(), line=1)))
