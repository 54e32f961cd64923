"""The code in a Markdown answer of a language model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.languages.extract_query import fenced_content, has_several_blocks


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("```\nSELECT 1\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\n", "SELECT 1"),
        ("Sure!\n\n```json\n{\n  1\n}\n```\nAnything else?", "{\n  1\n}"),
        ("~~~ json title=x\n{}\n~~~", "{}"),
        ("````\n```\nx\n```\n````", "```\nx\n```"),
        ("```\nx\n`````", "x"),
        ("~~~\n```\n~~~", "```"),
        ("~~~ a`b\nx\n~~~", "x"),
        ("```\nx\n``` \t", "x"),
        ("```\nx\n```json\ny\n```", "x\n```json\ny"),
        ("```\nx\n    ```\n```", "x\n    ```"),
        ("   ```\n   x\n     y\n z\n   ```", "x\n  y\nz"),
        (" ```\n   x\n ```", "  x"),
        ("```\r\nx\r\ny\r\n```\r\n", "x\r\ny"),
        ("```sql\nSELECT 1", "SELECT 1"),
        ("```sql\nSELECT 1\n", "SELECT 1"),
        ("```sql\nSELECT 1\n``", "SELECT 1\n``"),
        ("```\n```", ""),
        ("```", ""),
        ("x ```\ny\n```x", ""),
        ("```\n\n\nx\n\n```", "\n\nx\n"),
        ('```\n"a\u2028b"\n```', '"a\u2028b"'),
    ],
)
def test_the_content_of_the_only_block_is_taken(text, content):
    assert fenced_content(text)[0] == content
    assert fenced_content(text)[1] > 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "{}",
        "``\nx\n``",
        "The answer is ```{}```.",
        "```{}```",
        "```a`b\nx",
        "    ```\n    x\n    ```",
        "> ```\n> x\n> ```",
        "x ```\ny\nx```",
        "`" * 100_000 + " `",
        "```\na\n```\n```\nb\n```",
        "```json\n{}\n```\n\n~~~sql\nSELECT 1",
    ],
)
def test_a_text_without_a_block_or_with_several_stays_as_it_is(text):
    assert fenced_content(text) == (text, 1)


@pytest.mark.parametrize(
    ("text", "languages", "content"),
    [
        ("```sh\na\n```\n```json\n{}\n```", ("json",), "{}"),
        ("```json\n{}\n```\n```sh\na\n```", ("json",), "{}"),
        ("```JSON lines\n{}\n```\n```\na\n```\n~~~text\nb\n~~~", ("json",), "{}"),
        ("```a\n1\n```\n```sqlite\n2\n```", ("sql", "sqlite"), "2"),
        ("```sh\na\n```", ("json",), "a"),
    ],
)
def test_of_several_blocks_the_only_one_in_the_language_is_taken(text, languages, content):
    assert fenced_content(text, languages=languages)[0] == content


@pytest.mark.parametrize(
    "text",
    [
        "```json\n1\n```\n```json\n2\n```",
        "```sh\n1\n```\n```\n2\n```",
        "```jsonl\n1\n```\n```xjson\n2\n```",
        "```json\n1\n```\n```sh\n2\n```\n```json\n3\n```",
        "no block",
    ],
)
def test_blocks_that_the_language_does_not_tell_apart_stay_as_they_are(text):
    assert fenced_content(text, languages=("json",)) == (text, 1)


@given(st.text(alphabet="`~ \n\rjx", max_size=30))
def test_any_text_gives_a_part_of_itself_or_itself(text):
    content, line = fenced_content(text, languages=("j",))

    assert len(content) < len(text) if line > 1 else content == text


@given(st.text(alphabet="abc{}\"' \n", max_size=40), st.sampled_from(["```", "~~~~"]))
def test_what_was_fenced_comes_back(content, fence):
    assert fenced_content(f"See:\n{fence}json\n{content}\n{fence}\nDone.") == (content, 3)


@pytest.mark.parametrize(
    ("text", "line"),
    [("```\nx\n```", 2), ("```", 2), ("a\n```", 3), ("a\n\n```sh\ny\n```\n```json\nx", 7), ("```\r\nx", 2), ("x", 1)],
)
def test_the_line_is_told_where_the_code_begins(text, line):
    assert fenced_content(text, languages=("json",))[1] == line


@pytest.mark.parametrize(
    ("text", "several"),
    [("x", False), ("```\na\n```", False), ("```\na\n```\n\n~~~", True), ("````\n```\na\n```\n````", False)],
)
def test_several_blocks_are_told_from_one(text, several):
    assert has_several_blocks(text) is several


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "`" * 100_000,
        "\n".join(["`" * 1_000] * 5_000),
        "`\n" * 1_000_000,
        "~~~\n" * 1_000_001,
        "".join("`" * count + "\n" for count in range(3, 2_000)),
        " " * 10_000_000,
        "```json\n" + " \n" * 2_000_000,
        "   ```\n" + "   x" * 2_000_000,
        "``` " * 2_000_000,
    ],
    ids=["one line", "many fences", "too short", "pairs", "ever longer", "blanks", "unclosed", "indented", "inline"],
)
def test_hostile_texts_are_read_once(text):
    content, line = fenced_content(text, languages=("json",))

    assert len(content) < len(text) if line > 1 else content == text
