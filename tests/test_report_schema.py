"""report.schema.json says what the types of `core.report` say."""

import json
from pathlib import Path
from typing import NotRequired, get_origin, get_type_hints, is_typeddict

import jsonschema
import pytest
from report_maker import make_compared
from samples import entry

import pytest_queryeval
from pytest_queryeval.core import report
from pytest_queryeval.core.model import Where

SCHEMA = json.loads((Path(pytest_queryeval.__file__).parent / "report.schema.json").read_bytes())
DEFINITIONS = SCHEMA["$defs"] | {"Report": SCHEMA}
# What others are made of, and does not stand in a report by itself.
BASES = {"Spread", "PendingGate", "GateMeasurement", "RunFacts", "RunResults", "ReportTables", "QueryReport"}
TYPES = {name: member for name, member in vars(report).items() if is_typeddict(member) and name not in BASES}


def optional(type_):
    """The keys that need not be there, as the class and its bases state them."""
    hints = get_type_hints(type_, include_extras=True) if type_ is not Where else type_.__annotations__
    members = [vars(report)[name] for name in BASES if not set(vars(report)[name].__annotations__) - hints.keys()]
    partial = [each for each in (type_, *members) if not each.__total__]
    names = {name for each in partial for name in each.__annotations__}
    return names | {name for name, hint in hints.items() if get_origin(hint) is NotRequired}


def test_every_type_has_a_definition():
    assert DEFINITIONS.keys() == TYPES.keys()


@pytest.mark.parametrize("name", sorted(TYPES))
def test_types_and_definitions_have_the_same_keys(name):
    keys, definition = TYPES[name].__annotations__.keys(), DEFINITIONS[name]

    assert definition["properties"].keys() == keys
    assert {*definition.get("required", ())} == keys - optional(TYPES[name])
    assert definition["description"]


def test_the_schema_is_one_of_draft_2020_12():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_reports_keep_the_schema():
    validator = jsonschema.Draft202012Validator(SCHEMA)

    assert not [*validator.iter_errors(make_compared(40))]
    assert not [*validator.iter_errors(make_compared(40) | {"cases": [entry()]})]
