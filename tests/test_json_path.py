"""What JSONPaths select of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import VALUES
from jsonpath import JSONPathEnvironment

from pytest_queryeval.documents.json_path import names_one, selected  # white box: what a path selects of any value

STEPS = st.sampled_from([".a", ".b", ".__proto__", "[*]", ".*", "[0]", "['a']", "..b"])


@given(VALUES, st.lists(STEPS, max_size=4).map("".join))
def test_paths_select_what_the_standard_says(document, steps):
    # Within a list, since the library reads a text as JSON.
    expected = JSONPathEnvironment(strict=True).compile(f"$[0]{steps}").findall([document])

    assert selected(f"${steps}", document) == expected


@pytest.mark.parametrize("path", ["$.a", "$[0]", "$..a", "$[?@.a]"])
def test_a_text_is_not_read_as_json(path):
    assert selected(path, '{"a": [1]}') == []


@pytest.mark.parametrize("path", ["", "rows", "$.", "$[", "$.a b", "$ .a | $.b", "$.1", "$['a'", "$.a[?]"])
def test_what_is_no_path_is_a_value_error(path):
    with pytest.raises(ValueError, match="is not a JSONPath"):
        selected(path, {})


@pytest.mark.parametrize(("path", "one"), [("$", True), ("$.a[0]['b c']", True), ("$.a[*]", False), ("$..a", False)])
def test_paths_that_select_one_value_are_told_from_others(path, one):
    assert names_one(path) is one
