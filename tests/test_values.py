import pytest
from suites import case, enter, problem


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@pytest.mark.parametrize("written", ["012", "1.10", "on", "NO", "12:30", "0x1F", "2024-01-01", "true", "yes"])
def test_text_fields_keep_the_source_text(written):
    loaded = case(
        f"id: {written}", f"question: {written}", f"evidence: {written}", f"gold: {written}", f"predicted: {written}"
    )

    assert (loaded.id, loaded.question, loaded.evidence) == (written, written, written)
    assert (loaded.golds[0].query, loaded.predicted.query) == (written, written)


def test_tags_and_difficulty_keep_the_source_text():
    loaded = case("tags: [012, NO, on]", "difficulty: 1")

    assert (loaded.tags, loaded.difficulty) == (("012", "NO", "on"), "1")


def test_metadata_follows_the_rules_of_json():
    loaded = case(
        "metadata: {a: 1, b: 1.5, c: true, d: null, e: , f: NO, g: 012, h: '1', i: \"true\", j: 1e3, k: .5,"
        " l: [1, x], m: ~}"
    )

    assert loaded.metadata == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": None,
        "e": None,
        "f": "NO",
        "g": "012",
        "h": "1",
        "i": "true",
        "j": 1000.0,
        "k": ".5",
        "l": [1, "x"],
        "m": "~",
    }
    assert isinstance(loaded.metadata["a"], int)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
def test_numbers_that_python_cannot_hold_are_refused(number):
    assert problem(f"metadata: {{a: {number}}}") == f"a number of {len(number)} characters is too large"


def test_null_stands_for_no_text_where_text_may_lack():
    loaded = case("question: null", "evidence:", "difficulty: ~", "skip: null", "xfail:", "tags:", "metadata:")

    assert (loaded.question, loaded.evidence, loaded.difficulty, loaded.tags) == ("", "", None, ())
    assert (loaded.skip, loaded.xfail, loaded.metadata) == (None, None, {})


@pytest.mark.parametrize(
    ("written", "skip", "xfail"),
    [
        ("true", "skipped in the suite", "expected to fail in the suite"),
        ("false", None, None),
        ("slow: no", None, None),
        ("'true'", "true", "true"),
        ("no reason", "no reason", "no reason"),
    ],
)
def test_skip_and_xfail_take_a_reason_or_true(written, skip, xfail):
    if ": " in written:
        assert "expected text" in problem(f"skip: {{{written}}}")
        return

    loaded = case(f"skip: {written}", f"xfail: {written}")

    assert (loaded.skip, loaded.xfail) == (skip, xfail)


def test_skip_and_xfail_need_a_reason_that_says_something():
    assert problem("skip: ''") == "skip: expected text, found nothing"
