"""Any JSON value."""

from hypothesis import strategies as st

printable = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\ufeff"))
texts = printable | st.sampled_from(["", "012", "on", "NO", "1.10", "~", "null", "true", "12:30", " #x", "a\nb", "1e5"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
trees = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
