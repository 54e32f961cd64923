"""Selections from YAML and JSON."""

from __future__ import annotations

import json
import re
from textwrap import indent

import pytest
from hypothesis import given
from selections import dataset, selection, selection_json, selections
from suites import load, write

from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.core.table import Selection, Term

pytestmark = pytest.mark.usefixtures("working_folder")

HEAD = "kind: sdmx\ncases:\n- id: a\n  predicted: '[]'\n  gold:\n"
MEXICO = """\
indicator_selection:
- dataset_id: IMF.RES:WEO
  dimensions:
  - dimension_name: INDICATOR
    values:
    - id: LP
      name: Population, Persons for countries / Index for country groups
  - dimension_name: COUNTRY
    values:
    - id: MEX
      name: Mexico
"""


FORMS = "a selection is a list of datasets, or a mapping that has one as 'indicator_selection'"


def from_yaml(text: str) -> Selection:
    """The gold of a case, which begins in line 6 of its suite."""
    (case,) = load(HEAD + indent(text, "    ") + "\n")
    return case.golds[0].answer


def from_json(value: object) -> Selection:
    gold = value if isinstance(value, str) else json.dumps(value)
    write(gold, "gold.json")
    (case,) = load("kind: sdmx\ncases:\n- {id: a, predicted: '[]', gold_file: gold.json}\n")
    return case.golds[0].answer


def of_values(text: str) -> tuple[Term, ...]:
    document = f"- dataset_id: A:B\n  dimensions:\n  - dimension_name: D\n    values:\n{text}"
    return from_yaml(document).datasets[0].dimensions[0].terms


def problem(text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        from_yaml(text)
    lines = str(caught.value).replace("s.queryeval.yaml:", "")
    return re.sub(r"^\d+", lambda number: f"a.yaml:{int(number[0]) - 5}", lines, flags=re.MULTILINE)


def test_the_selection_of_the_documented_case_is_read_with_and_without_its_key():
    mexico = selection(
        dataset(
            INDICATOR=("LP: Population, Persons for countries / Index for country groups",), COUNTRY=("MEX: Mexico",)
        )
    )

    assert from_yaml(MEXICO) == mexico
    assert from_yaml(MEXICO.removeprefix("indicator_selection:\n")) == mexico
    assert from_json(selection_json(mexico)) == mexico


@pytest.mark.parametrize("written", ["NO", "001", "111", "1.10", "on", "1e5", "12:30", "true"])
def test_ids_and_names_are_what_was_written(written):
    assert of_values(f"    - {{id: {written}, name: {written}}}") == (Term(written, written),)


def test_numbers_of_json_keep_their_digits():
    answer = from_json(
        '[{"dataset_id": 5, "dimensions": [{"dimension_name": 1.0, "values": [{"id": 111, "name": 1e2}]}]}]'
    )

    assert answer == Selection((dataset("5", **{"1.0": ("111: 1e2",)}),))


@pytest.mark.parametrize("written", ["null", "~", "", '""', "'  '"])
def test_null_and_blank_are_not_said(written):
    assert of_values(f"    - id: {written}\n      name: Mexico") == (Term(None, "Mexico"),)
    assert of_values(f"    - id: MEX\n      name: {written}") == (Term("MEX", None),)


def test_blanks_around_a_name_stay():
    assert of_values("    - {name: 'Mexico '}") == (Term(None, "Mexico "),)


def test_what_else_stands_beside_the_selection_is_left_aside():
    assert from_yaml("indicator_selection: [{dataset_id: A:B}]\nsure: 0.9") == selection(dataset("A:B"))


def test_an_empty_list_selects_nothing():
    assert from_yaml("[]") == from_yaml("indicator_selection: []") == Selection(())


def test_datasets_without_dimensions_and_dimensions_without_values_are_read():
    nothing = "- dataset_id: A:B\n- {dataset_id: A:C, dimensions: }\n- dataset_id: A:D\n  dimensions:\n"
    answer = from_yaml(f"{nothing}  - dimension_name: D\n  - {{dimension_name: E, values: []}}")

    assert answer == selection(dataset("A:B"), dataset("A:C"), dataset("A:D", D=(), E=()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "x",
            "a.yaml:0: 'x' is neither JSON nor an SDMX data query: write [{dataset_id: ID, dimensions: […]}]",
            id="text",
        ),
        pytest.param("{}", f"a.yaml:0: {FORMS}", id="an empty mapping"),
        pytest.param("indicator_selections: []", f"a.yaml:0: {FORMS}", id="a mapping with another key"),
        pytest.param(
            "dataset_id: A:B\ndimensions: []",
            "a.yaml:0: gold: expected a list of datasets, found one: put it into brackets, [{dataset_id: …}]",
            id="a dataset without the list around it",
        ),
        pytest.param(
            "- A:B",
            "a.yaml:1: item of gold: expected a mapping, found 'A:B': write {KEY: VALUE}",
            id="a dataset that is text",
        ),
        pytest.param("- dimensions: []", "a.yaml:1: 'dataset_id' is missing", id="no dataset_id"),
        pytest.param("- dataset_id: ''", "a.yaml:1: expected text, found nothing", id="an empty dataset_id"),
        pytest.param(
            "- dataset_id: [a]",
            "a.yaml:1: dataset_id: expected text, found a list: write a",
            id="a list for a dataset_id",
        ),
        pytest.param(
            "- dataset_id: A:B\n  dimension: []",
            "a.yaml:2: unknown key 'dimension': did you mean 'dimensions'?",
            id="an unknown key of a dataset",
        ),
        pytest.param(
            "- dataset_id: A:B\n  dimensions:\n  - name: D",
            "a.yaml:3: unknown key 'name': did you mean 'dimension_name'?",
            id="an unknown key of a dimension",
        ),
        pytest.param(
            "- dataset_id: A:B\n  dimensions:\n  - values: []",
            "a.yaml:3: 'dimension_name' is missing",
            id="no dimension_name",
        ),
        pytest.param(
            "- dataset_id: A:B\n  dimensions: {COUNTRY: [MEX]}",
            "a.yaml:2: dimensions: expected a list, found a mapping: begin each item with `- `",
            id="dimensions as a mapping",
        ),
    ],
)
def test_other_forms_are_reported_at_their_place(text, message):
    assert problem(text) == message


def test_all_problems_of_values_are_reported_at_once():
    text = "- dataset_id: A:B\n  dimensions:\n  - dimension_name: D\n    values:\n"

    lines = problem(f"{text}    - {{ids: MEX}}\n    - {{id: }}\n    - USA\n    - {{id: [a]}}")

    assert lines.splitlines() == [
        "a.yaml:5: unknown key 'ids': did you mean 'id'?",
        "a.yaml:6: an item of `values` has neither `id` nor `name`: write {id: CODE}",
        "a.yaml:7: item of values: expected a mapping, found 'USA': write {KEY: VALUE}",
        "a.yaml:8: id: expected text, found a list: write a",
    ]


def test_behind_a_hundred_problems_nothing_more_is_read():
    lines = problem("".join(f"- dataset_id: A:B\n  k{number}: 1\n" for number in range(1000))).splitlines()

    assert len(lines) == 100 + 1
    assert lines[-1] == "a.yaml:200: and maybe more: reading stopped here"


def test_a_name_that_yaml_clips_is_refused():
    with pytest.raises(SuiteError, match="quote the text"):
        of_values("    - name: part #3 of it")


@given(selections())
def test_what_is_written_as_json_is_read_back(stated):
    assert from_json(selection_json(stated)) == stated
