"""What a report keeps of what a case requires."""

from pathlib import Path

import pytest
from samples import make_case

from pytest_queryeval import evaluate
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.core.model import Message, Threshold


def fingerprints(*fields):
    """The fingerprints of cases with these fields."""
    cases = [make_case(id=f"c{number}", **own) for number, own in enumerate(fields)]
    return [case["fingerprint"] for case in evaluate(cases)["cases"]]


def json_schema(kind, *, file="a.json", resources=None):
    document = JsonSchema(file=Path(file), document={"type": kind}, resources=resources or {})
    return {"extra": {"json_schema": document}}


def db_schema(**fields):
    return {"db_schema": Schema(tables={"t": ("a",)}, **fields)}


@pytest.mark.parametrize(
    ("name", "one", "same", "other"),
    [
        ("json_schema", json_schema("object"), json_schema("object", file="b/a.json"), json_schema("array")),
        ("json_schema", *(json_schema("object", resources={"u": {"a": n}}) for n in (1, 1, 2))),
        ("db_schema", db_schema(), db_schema(), db_schema(foreign_keys=((("t", "a"), ("t", "b")),))),
    ],
)
def test_a_digest_of_a_schema_is_that_of_its_content_wherever_it_lies(name, one, same, other):
    digests = [found["schemas"][name] for found in fingerprints(one, same, other)]

    assert digests[0] == digests[1] != digests[2]
    assert {len(digest) for digest in digests} == {16}


def test_metrics_and_limits_are_kept_and_whether_the_suite_states_the_answer():
    required = {"metrics": ("soft_f1",), "thresholds": {"valid_query": Threshold(minimum=1.0)}}

    plain, in_trials, asked = fingerprints(
        required | {"timeout": 3.0, "max_rows": 7}, required | {"trials": 3}, {"predicted": None}
    )

    assert plain["metrics"] == ["soft_f1", "valid_query"]
    assert in_trials["metrics"][2:] == ["pass_at_k", "pass_hat_k"]
    assert plain["limits"] == {"timeout": 3.0, "max_rows": 7}
    assert [found["answers"] for found in (plain, asked)] == ["stated", "asked"]
    assert plain["schemas"] == {}


def context_of(*messages, **metadata):
    said = tuple(Message(role=role, content=content) for role, content in messages)
    return {"metadata": metadata, "conversation": said}


def test_a_digest_of_metadata_and_of_what_was_said_before_is_that_of_their_content():
    first, second = ("user", "which singers?"), ("assistant", "all of them")
    none, one, same, *others = (
        found["context"]
        for found in fingerprints(
            context_of(),
            context_of(schema="a", hint={"of": [1]}),
            context_of(hint={"of": [1]}, schema="a"),
            context_of(schema="b", hint={"of": [1]}),
            context_of(schema="a", hint={"of": [2]}),
            context_of(first),
            context_of(first, second),
            context_of(second, first),
            context_of(("assistant", "which singers?")),
        )
    )

    assert none is None
    assert one == same
    assert len({one, *others}) == 1 + len(others)
    assert {len(digest) for digest in others} == {16}
