"""Which answers of services are JSON, and what they look like."""

import json
import time

import pytest
import requests
from endpoint_faults import says
from hypothesis import given
from hypothesis import strategies as st
from servers import FaultServer

from pytest_queryeval.documents.json_path import describe_document, read_json_with_duplicates
from pytest_queryeval.sandbox.http_session import QueryFailed, RetryingRequest, StatusPolicy

NAMES = st.sampled_from(["a", "b", "rows", "values", "_x1"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a': 1}", "[NaN]", "[1e999]", "[01]", '["\t"]', "[" * 100_000])
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        read_json_with_duplicates(text.encode())


@given(DOCUMENTS)
def test_json_is_read_as_it_was_written(document):
    assert read_json_with_duplicates(json.dumps(document).encode()) == (document, [])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_of_unicode_are_told_apart(encoding):
    assert read_json_with_duplicates('["ü雪"]'.encode(encoding))[0] == ["ü雪"]


def test_a_shape_tells_names_and_kinds_and_no_values():
    document = {"a": "secret", "b": [1, 2], "c": None, "d": {}, "e": 1, "f": True, "g": {"h": 1}, "h": [], "i": 2}

    assert describe_document(document) == (
        "an object with a (a text), b (a list of 2), c (null), d (an empty object), e (a number), f (a boolean), "
        "g (an object), h (an empty list), …"
    )


def test_a_body_as_long_as_the_limit_is_read_and_no_longer_one(monkeypatch):
    policy = StatusPolicy(answers={200}, invalid=(), rejected=(), follows_to_other_origins=False)

    def body(limit):
        monkeypatch.setattr("pytest_queryeval.sandbox.http_session.BODY_BYTES", limit)
        settings = {"url": server.url, "headers": {}, "auth": None, "verify": True}
        request = RetryingRequest(session, settings, policy, deadline)
        return request.answer(requests.Request("GET", server.url))[1]

    with FaultServer(says("12345")) as server, requests.Session() as session:
        session.trust_env = False
        deadline = time.monotonic() + 300
        assert body(5) == b"12345"
        with pytest.raises(QueryFailed, match="more than 4 bytes"):
            body(4)
