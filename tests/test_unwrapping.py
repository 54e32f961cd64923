"""The query in what a model says: code blocks, labels, reasoning and sentences around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yaml_tables import read_table

from pytest_queryeval import score_pairs
from pytest_queryeval.languages import KINDS

TABLES = read_table("unwrapping.yaml")
MAX_ANSWER = 2**18
SQL, SPARQL = KINDS["sql"], KINDS["sparql"]
both_kinds = pytest.mark.parametrize("kind", [SQL, SPARQL], ids=["sql", "sparql"])


def rows(table):
    return [
        pytest.param(group, row, marks=pytest.mark.feature(group["kind"]) if group["kind"] in ("json", "sdmx") else ())
        for group in TABLES[table]
        for row in group["rows"]
    ]


@pytest.mark.parametrize(("group", "row"), rows("extracted"))
def test_the_query_of_an_answer_is_found_to_the_byte_and_a_note_says_where(group, row):
    assert KINDS[group["kind"]].extract_query(row[0]) == (row[-1], group["note"])


@pytest.mark.parametrize(("group", "row"), rows("after_prose"))
def test_prose_before_a_query_that_can_be_read_to_its_end_is_left_out(group, row):
    assert KINDS[group["kind"]].after_prose(row[0], "mysql" if group["kind"] == "sql" else "") == row[1]


@pytest.mark.parametrize(("group", "row"), rows("hints"))
def test_a_hint_says_why_a_text_is_no_query(group, row):
    assert KINDS[group["kind"]].text_hint(row) == group["hint"]


def test_a_long_text_without_prose_has_no_hint():
    for said in ("SELECT 1" + "\n\nx" * 80_000, "SELECT 1;" + "\n \t" * 80_000, "A" + ": " * 120_000 + "x"):
        assert SQL.text_hint(said) == ""


STARTS = st.sampled_from(["SELECT ", "with a as (", "-- it's\nSELECT ", "(SELECT '", "/* ' */ VALUES ("])
# No fences and no ends of reasoning, which need three backticks or tildes, or a tag.
QUERIES = st.builds(str.__add__, STARTS, st.text(alphabet="ab'\"$`~ \n;:*()-<>\u00e9", max_size=40)).filter(
    lambda query: "```" not in query and "~~~" not in query
)
AROUND = [
    "{}",
    "```\n{}\n```",
    "```sql\n{}\n```\n",
    "~~~sqlite\n{}\n~~~",
    "Here it is:\n\n```postgresql\n{}\n```\nThat's it.",
    "```sh\nls\n```\n````sql\n{}\n````",
    "```sql\n{}\n",
    "SQL: {}",
    "**Answer:**\n{}",
    "SQLQuery: ```sql\n{}\n```",
    "<think>hm, it's\n```sql\nSELECT 2\n```</think>\n{}",
    "so be it\n</think>\n\n```sql\n{}\n```",
]


@given(QUERIES, st.sampled_from(AROUND))
def test_a_query_comes_back_to_the_byte_from_whatever_stands_around_it(query, around):
    actual, note = SQL.extract_query(around.format(query))

    assert actual == query
    assert bool(note) == (around != "{}")


PIECES = ["```", "```sql", "~~~", "\n", "\n", " ", "SELECT 1", "SQL:", "Answer:", "**", "<think>", "</think>"]
QUOTES = ["'", "`", "it's", "/*", "*/", "$$", "--", '"""']
ANSWERS = st.lists(st.sampled_from([*PIECES, *QUOTES, "WITH a"]), max_size=14).map("".join)


@both_kinds
@given(said=ANSWERS)
def test_what_is_unwrapped_stays_so_and_is_a_part_of_what_was_said(kind, said):
    query, note = kind.extract_query(said)

    assert query in said
    assert note or query == said
    assert kind.extract_query(query)[0] == query


@both_kinds
@given(text=st.text(alphabet="abSELCT '\"`\n.", max_size=40).filter(lambda text: "```" not in text))
def test_a_text_without_fence_label_and_reasoning_stays_as_it_is(kind, text):
    assert kind.extract_query(text) == (text, "")


def test_no_query_is_looked_for_in_a_text_that_is_longer_than_any():
    query = "SELECT 1\n" + " " * MAX_ANSWER + "\n```"
    words = "It is:\n```sql\nSELECT 1\n```"

    assert SQL.extract_query(query) == (query, "")
    assert SQL.extract_query(words.ljust(MAX_ANSWER))[0] == "SELECT 1"
    assert SQL.extract_query(words.ljust(MAX_ANSWER + 1)) == (
        words.ljust(MAX_ANSWER + 1),
        f"the answer has more than {MAX_ANSWER:,} characters, so it was not searched for a query",
    )


HOSTILE = {
    "quotes": ("SELECT ", "'\n```\n"),
    "long quotes": ("SELECT ", '"""'),
    "comments": ("SELECT 1\n```\n", "/*"),
    "dollars": ("SELECT ", "$a$b"),
    "unclosed": ("", "/*"),
    "lines": ("", "--\n"),
    "labels": ("", "SQL: "),
    "thoughts": ("", "<think>"),
    "ends": ("no\n" + " \t" * 100_000, "\n</think>"),
    "blanks behind": ("no</think>", " "),
    "blocks": ("", "```sql\nSELECT 1\n```\n"),
    "blanks": ("```", " "),
    "iris": ("", "SELECT <"),
    "backticks": ("", "`"),
    "tildes": ("SELECT 1\n", "~~~`"),
    "fences": ("SQL:\n", "```\n"),
    "long fences": ("", "`" * 1_000 + "\n"),
    "indented": ("   ```\n", "   x"),
    "tags": ("SELECT 1 /* ", "</think> /*"),
    "angles": ("SELECT 1 -- ", "<"),
}


@pytest.mark.long
@both_kinds
@pytest.mark.parametrize("start", HOSTILE)
def test_hostile_answers_are_read_once(kind, start):
    opening, repeated = HOSTILE[start]
    said = (opening + repeated * MAX_ANSWER)[: MAX_ANSWER - 4] + "\n```"

    assert kind.extract_query(said)[0] in said


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Sure!\n\n```json\n[1]\n```\nAnything else?", "[1]"),
        ("```\n[1]", "[1]"),
        ("```sh\na\n```\n```JSON lines\n[1]\n```\n~~~text\nb\n~~~", "[1]"),
        ("```json\n[1]\n```\n```sh\na\n```", "[1]"),
        ("```sh\n1\n```\n```\n[1]\n```", "[1]"),
        ("```json\n[1]\n```\nAgain:\n```json\n[1 ]\n```", "[1]"),
        ("a\n\n```sh\ny\n```\n```json\n\n[1", "(line 8"),
        ("```\r\n[1", "(line 2"),
        ("```", "the answer is empty"),
    ],
)
def test_the_block_that_is_json_is_the_answer_at_its_place_in_the_text(said, found):
    (score,) = score_pairs([("[1]", said)], kind="json", metrics=["json_equal"])

    assert score.scores["json_equal"] == (found == "[1]")
    assert found == "[1]" or found in score.failure.message
