"""The JSON Schema of reports: generated from the types of `core.report`, and what reports keep."""

import json
from pathlib import Path

import jsonschema
import pytest
from report_maker import make_compared
from samples import entry

import pytest_queryeval
from pytest_queryeval.core import report
from pytest_queryeval.results.report_schema import problem_in, report_schema


def test_the_schema_in_the_package_is_up_to_date():
    stored = json.loads((Path(pytest_queryeval.__file__).parent / "report.schema.json").read_bytes())

    assert report_schema() == stored, "write it again: queryeval schema report > pytest_queryeval/report.schema.json"


def test_the_schema_is_one_of_draft_2020_12():
    schema = report_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.feature("json", "sdmx")
def test_reports_keep_the_schema():
    validator = jsonschema.Draft202012Validator(report_schema())

    assert not [*validator.iter_errors(make_compared(40))]
    assert not [*validator.iter_errors(make_compared(40) | {"cases": [entry()]})]


def test_docstrings_of_types_and_fields_are_descriptions():
    definitions = report_schema()["$defs"]

    assert definitions["GateReport"]["description"] == report.GateReport.__doc__
    assert definitions["GateReport"]["properties"]["ran"]["description"] == "The number of its cases that ran."
    # Fields of base classes come first, with what is said about them there.
    assert definitions["MetricReport"]["properties"]["std"]["description"].startswith("The sample standard deviation")
    assert [*definitions["Limits"]["properties"]] == ["min", "max"]


def test_fields_that_need_not_be_there_are_not_required():
    definitions = report_schema()["$defs"]

    assert definitions["DimensionStatistics"]["required"] == []  # marked one by one
    assert definitions["Environment"]["required"] == []  # the whole class
    assert "ci95" in definitions["ScoreStatistics"]["required"]
    assert "ci95_clustered" not in definitions["ScoreStatistics"]["required"]


@pytest.mark.parametrize(
    ("value", "type_name", "problem"),
    [
        ({"accuracy": 1, "recall": 0.5, "f1": 1e150}, "SpiderScores", "f1: expected a number < 1e+150"),
        ({"before": 1, "after": 2**63}, "CauseChange", "after: expected a whole number <= 9223372036854775807"),
        ({"before": 1, "after": True}, "CauseChange", "after: expected a whole number"),
        ({"edits": [], "repaired_query": None}, "CauseReport", "edits: expected a list of length >= 1"),
        ({"ci95": [0.5]}, "ScoreStatistics", "ci95: expected a list of length >= 2"),
        ({"engines": {"a.b": None}}, "Environment", "engines.a.b: expected a text"),
        ({"parts": [{}, {"parts": [{"python": 3}]}]}, "Environment", "parts[1].parts[0].python: expected a text"),
        ([], "CasesFile", "expected an object"),
        ({"file": "a", "count": 1}, "CasesFile", "'sha256' is missing"),
    ],
)
def test_a_problem_has_its_place_and_what_was_expected(value, type_name, problem):
    assert problem_in(value, type_name) == problem


@pytest.mark.parametrize("value", [10**190, "\ud800", [1.0, {"\ud800": None}]], ids=ascii)
def test_what_is_any_json_has_no_limits(value):
    assert problem_in({"gold": [value], "predicted": []}, "ChangedRow") == ""
