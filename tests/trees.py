"""Any JSON value, and what comes of reading it."""

from hypothesis import strategies as st

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents.values import json_value

printable = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\ufeff"))
texts = printable | st.sampled_from(["", "012", "on", "NO", "1.10", "~", "null", "true", "12:30", " #x", "a\nb", "1e5"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
trees = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def outcome(read):
    """The value that is read, or the message of the error."""
    try:
        node = read()
        return None if node is None else repr(json_value(node))
    except CaseError as error:
        return str(error)


def is_one_line(message):
    return message is None or "\n" not in message
