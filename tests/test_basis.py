"""What a report keeps of what a case asks for."""

from pathlib import Path

import pytest
from samples import make_case

from pytest_queryeval.basis import basis_json
from pytest_queryeval.json_value import JsonSchema
from pytest_queryeval.schema import Schema
from pytest_queryeval.selection import DatasetStructure, Dimension, Structure


def json_schema(kind, *, file="a.json", others=None):
    return JsonSchema(file=Path(file), document={"type": kind}, others=others or {})


def structure(code):
    dimension = Dimension(id="COUNTRY", codes={code: "a country"})
    return Structure(datasets=(DatasetStructure(id="A:B", version="1.0", dimensions=(dimension,)),))


def schemas_of(**schemas):
    return basis_json(make_case(**schemas), None)["schemas"]


@pytest.mark.parametrize(
    ("name", "one", "same", "other"),
    [
        ("json_schema", json_schema("object"), json_schema("object", file="b/a.json"), json_schema("array")),
        (
            "json_schema",
            json_schema("object", others={"u": {"a": 1}}),
            json_schema("object", others={"u": {"a": 1}}),
            json_schema("object", others={"u": {"a": 2}}),
        ),
        ("structure", structure("FR"), structure("FR"), structure("DE")),
        (
            "db_schema",
            Schema(tables={"t": ("a",)}),
            Schema(tables={"t": ("a",)}),
            Schema(tables={"t": ("a",)}, foreign_keys=((("t", "a"), ("t", "b")),)),
        ),
    ],
)
def test_a_digest_tells_what_a_schema_says_wherever_it_lies(name, one, same, other):
    digests = [schemas_of(**{name: schema})[name] for schema in (one, same, other)]

    assert digests[0] == digests[1] != digests[2]
    assert {len(digest) for digest in digests} == {16}


def test_a_case_without_schemas_has_no_digest_of_one():
    assert schemas_of() == {}


def test_limits_of_queries_are_kept():
    assert basis_json(make_case(timeout=3.0, max_rows=7), None)["limits"] == {"timeout": 3.0, "max_rows": 7}
