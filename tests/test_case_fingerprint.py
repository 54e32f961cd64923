"""What a report keeps of what a case asks for."""

from pathlib import Path

import pytest
from samples import make_case

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.core.model import Message, Threshold
from pytest_queryeval.features.sdmx.structure import DatasetStructure, Dimension, Structure
from pytest_queryeval.results.case_fingerprint import case_fingerprint


def json_schema(kind, *, file="a.json", resources=None):
    return JsonSchema(file=Path(file), document={"type": kind}, resources=resources or {})


def structure(code):
    dimension = Dimension(id="COUNTRY", codes={code: "a country"})
    return Structure(datasets=(DatasetStructure(id="A:B", version="1.0", dimensions=(dimension,)),))


def schemas_of(**schemas):
    extra = {name: schemas.pop(name) for name in ("structure", "json_schema") if name in schemas}
    return case_fingerprint(make_case(**schemas, extra=extra))["schemas"]


@pytest.mark.parametrize(
    ("name", "one", "same", "other"),
    [
        ("json_schema", json_schema("object"), json_schema("object", file="b/a.json"), json_schema("array")),
        (
            "json_schema",
            json_schema("object", resources={"u": {"a": 1}}),
            json_schema("object", resources={"u": {"a": 1}}),
            json_schema("object", resources={"u": {"a": 2}}),
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


def test_the_metrics_that_a_case_requests_are_kept_also_where_it_is_in_error():
    defaults = {"metrics": ("soft_f1",), "thresholds": {"valid_query": Threshold(minimum=1.0)}}

    assert case_fingerprint(make_case(**defaults))["metrics"] == ["soft_f1", "valid_query"]
    assert case_fingerprint(make_case(**defaults, trials=3))["metrics"][2:] == ["pass_at_k", "pass_hat_k"]


def test_limits_of_queries_are_kept():
    assert case_fingerprint(make_case(timeout=3.0, max_rows=7))["limits"] == {"timeout": 3.0, "max_rows": 7}


def test_a_case_tells_whether_it_states_its_answer_or_asks_for_it():
    assert case_fingerprint(make_case())["answers"] == "stated"
    assert case_fingerprint(make_case(predicted=None))["answers"] == "asked"


def context_of(*said, **metadata):
    messages = tuple(Message(role=role, content=content) for role, content in said)
    return case_fingerprint(make_case(metadata=metadata, conversation=messages))["context"]


def test_a_digest_tells_metadata_and_what_was_said_before():
    first, second = ("user", "which singers?"), ("assistant", "all of them")
    digests = [
        context_of(),
        context_of(schema="a", hint={"of": [1]}),
        context_of(schema="b", hint={"of": [1]}),
        context_of(schema="a", hint={"of": [2]}),
        context_of(first),
        context_of(first, second),
        context_of(second, first),
        context_of(("assistant", "which singers?")),
    ]

    assert digests[0] is None
    assert len(set(digests)) == len(digests)
    assert {len(digest) for digest in digests[1:]} == {16}
    assert context_of(schema="a", hint={"of": [1]}) == context_of(hint={"of": [1]}, schema="a") == digests[1]
