"""The query in what a model says: code blocks, labels and reasoning around it."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.extract_query import (
    ENDS_WITH_PROSE,
    GOES_ON,
    IN_JSON,
    MAX_ANSWER,
    NO_END,
    STARTS_ABOVE_QUERY,
    STARTS_WITH_PROSE,
    TOO_LONG,
    Language,
    extract_query,
)

ROWS = yaml.safe_load((Path(__file__).parent / "unwrapping.yaml").read_text(encoding="utf-8"))
FENCED = "the query was read from a code block"
LABELLED = "the query was read from the text after a label"
REASONED = "the query was read from the text after reasoning"

SQL = KINDS["sql"]
SPARQL = KINDS["sparql"]


@pytest.mark.parametrize(
    "query",
    ROWS["what_is_a_query_or_holds_none_in_a_known_way_stays_as_it_is"],
)
def test_what_is_a_query_or_holds_none_in_a_known_way_stays_as_it_is(query):
    assert SQL.extract_query(query) == (query, "")


@pytest.mark.parametrize(
    ("said", "query"),
    ROWS["the_only_code_block_is_the_query"],
)
def test_the_only_code_block_is_the_query(said, query):
    assert SQL.extract_query(said) == (query, FENCED)


@pytest.mark.parametrize(
    ("said", "query"),
    ROWS["a_block_that_no_line_closes_ends_with_the_answer"],
)
def test_a_block_that_no_line_closes_ends_with_the_answer(said, query):
    assert SQL.extract_query(said) == (query, FENCED)


@pytest.mark.parametrize(
    ("said", "query"),
    ROWS["a_query_may_begin_beside_the_fence"],
)
def test_a_query_may_begin_beside_the_fence(said, query):
    assert SQL.extract_query(said) == (query, FENCED)


def test_what_follows_a_query_beside_the_fence_is_no_query_of_its_own():
    said = "Here:\n```sql SELECT a\nFROM t\n```"

    assert SQL.extract_query(said) == (said, "")


@pytest.mark.parametrize(
    ("said", "query"),
    ROWS["of_several_blocks_the_only_query_in_them_is_taken"],
)
def test_of_several_blocks_the_only_query_in_them_is_taken(said, query):
    assert SQL.extract_query(said) == (query, FENCED)


@pytest.mark.parametrize(
    ("said", "count"),
    ROWS["of_blocks_that_differ_none_is_taken_and_a_note_says_so"],
)
def test_of_blocks_that_differ_none_is_taken_and_a_note_says_so(said, count):
    note = f"the answer has {count} code blocks that may be its sql query, and differ"

    assert SQL.extract_query(said) == (said, note)


def test_blocks_without_a_query_stay_and_a_note_says_so():
    said = "```sh\nls\n```\n```\nno query\n```"

    assert SQL.extract_query(said) == (said, "none of the 2 code blocks of the answer is marked as sql")


@pytest.mark.parametrize(
    "said",
    ROWS["an_answer_that_begins_with_a_query_is_never_the_block_behind_it"],
)
def test_an_answer_that_begins_with_a_query_is_never_the_block_behind_it(said):
    assert SQL.extract_query(said) == (said, GOES_ON)


@pytest.mark.parametrize("fence", ["```", "~~~~", "  ```", "```  \n\n"])
def test_a_closing_fence_whose_opening_one_was_given_to_the_model_is_left_out(fence):
    note = "the query was read from the text before a closing fence"

    assert SQL.extract_query(f"SELECT 'a\n```\n'\n{fence}") == ("SELECT 'a\n```\n'", note)
    assert SQL.extract_query(f"SELECT 1\r\n{fence}") == ("SELECT 1", note)


@pytest.mark.parametrize(
    "label",
    ROWS["a_label_before_a_query_is_left_out"],
)
def test_a_label_before_a_query_is_left_out(label):
    assert SQL.extract_query(f"{label}SELECT 1\n") == ("SELECT 1\n", LABELLED)


def test_the_name_of_another_language_is_a_label_of_its_queries():
    language = Language(name="c++", keywords="GET")

    assert extract_query("**C++ query:** GET 1", language) == ("GET 1", LABELLED)
    assert extract_query("**C query:** GET 1", language) == ("**C query:** GET 1", "")


@pytest.mark.parametrize(
    ("said", "query", "note"),
    [
        ("SQL: SELECT '\n```sql\nSELECT 2\n```\n'", "SELECT '\n```sql\nSELECT 2\n```\n'", LABELLED),
        ("SQL: ```sql\nSELECT 1\n```", "SELECT 1", f"{LABELLED} and from a code block"),
        ("SQL:\n```sql\nSELECT 1\n```", "SELECT 1", FENCED),
        ("**SQL:** ```sql SELECT 1```", "SELECT 1", f"{LABELLED} and from a code block"),
        ("```\nSQL: SELECT 1\n```", "SELECT 1", f"{FENCED} and from the text after a label"),
        ("Answer: Use this one:\n```sql\nSELECT 1\n```", "SELECT 1", FENCED),
        ("<think>so</think>SQL: SELECT 1", "SELECT 1", f"{REASONED} and from the text after a label"),
        ("<think>so</think>\n```sql\nSELECT 1\n```", "SELECT 1", f"{REASONED} and from a code block"),
    ],
)
def test_labels_blocks_and_reasoning_may_come_together(said, query, note):
    assert SQL.extract_query(said) == (query, note)


@pytest.mark.parametrize(
    "said",
    ROWS["reasoning_before_a_query_is_left_out"],
)
def test_reasoning_before_a_query_is_left_out(said):
    assert SQL.extract_query(said) == ("SELECT 1", REASONED)


@pytest.mark.parametrize(
    "said",
    ROWS["drafts_in_reasoning_that_does_not_end_are_no_answer"],
)
def test_drafts_in_reasoning_that_does_not_end_are_no_answer(said):
    assert SQL.extract_query(said) == (said, NO_END)


@pytest.mark.parametrize("query", ["SELECT '<think>'", "SELECT '</think>SELECT 2'", 'SELECT 1 AS "<think>a</think>"'])
@pytest.mark.parametrize(("around", "note"), [("SQL: {}", LABELLED), ("See:\n```sql\n{}\n```\nIt is.", FENCED)])
def test_tags_in_strings_and_names_of_the_query_are_no_reasoning(query, around, note):
    assert SQL.extract_query(around.format(query)) == (query, note)


@pytest.mark.parametrize("mark", ["> ", "- ", "    "])
def test_blocks_within_quotes_and_lists_are_not_seen(mark):
    said = f"Here:\n\n{mark}```sql\n{mark}SELECT 1\n{mark}```\n"

    assert SQL.extract_query(said) == (said, "")


@pytest.mark.parametrize(
    "query",
    ROWS["a_sparql_query_stays_as_it_is"],
)
def test_a_sparql_query_stays_as_it_is(query):
    assert SPARQL.extract_query(query) == (query, "")


@pytest.mark.parametrize(
    ("said", "query", "note"),
    [
        ("It's:\n```sparql\nPREFIX : <http://a/#>\nASK {}\n```", "PREFIX : <http://a/#>\nASK {}", FENCED),
        ("```sql\nSELECT 1\n```\n```sparql\nASK {}\n```", "ASK {}", FENCED),
        ("SPARQL Query: ASK {}", "ASK {}", LABELLED),
        ("<think>so</think>ASK {}", "ASK {}", REASONED),
        ("Ask for <http://a.b/#it's>:\n```\nASK {}\n```", "ASK {}", FENCED),
        ('Describe """ as:\n```\nASK {}\n```\nit\'s', "ASK {}", FENCED),
    ],
)
def test_a_sparql_query_is_found(said, query, note):
    assert SPARQL.extract_query(said) == (query, note)


def test_several_blocks_of_sparql_stay_and_a_note_says_so():
    said = "```\nASK {}\n```\n```\nASK { ?a ?b 1 }\n```"

    assert SPARQL.extract_query(said) == (said, "the answer has 2 code blocks that may be its sparql query, and differ")


@pytest.mark.feature("json", "sdmx")
@pytest.mark.parametrize("kind", ["json", "sdmx"])
def test_kinds_that_read_answers_leave_them_to_their_readers(kind):
    said = "```json\n{}\n```"

    assert KINDS[kind].extract_query(said) == (said, "")


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


@pytest.mark.parametrize("kind", [SQL, SPARQL], ids=["sql", "sparql"])
@given(said=ANSWERS)
def test_what_is_unwrapped_stays_so_and_is_a_part_of_what_was_said(kind, said):
    query, note = kind.extract_query(said)

    assert query in said
    assert note or query == said
    assert kind.extract_query(query)[0] == query


@given(st.text(alphabet="abSELCT '\"`\n.", max_size=40).filter(lambda text: "```" not in text))
def test_a_text_without_fence_label_and_reasoning_stays_as_it_is(text):
    assert SQL.extract_query(text) == (text, "")
    assert SPARQL.extract_query(text) == (text, "")


@pytest.mark.parametrize(
    ("said", "note"),
    [("SELECT 1\n" + " " * MAX_ANSWER + "\n```", ""), ("It is:\n```sql\nSELECT 1\n```" + " " * MAX_ANSWER, TOO_LONG)],
    ids=["a query", "words"],
)
def test_no_query_is_looked_for_in_a_text_that_is_longer_than_any(said, note):
    assert SQL.extract_query(said) == (said, note)


HOSTILE = {
    "quotes": "SELECT " + "'\n```\n" * 100_001,
    "long quotes": "SELECT " + '"""' * 300_001 + "\n```",
    "comments": "SELECT 1\n```\n" + "/*" * 1_000_000,
    "dollars": "SELECT " + "$a$b" * 500_000 + "\n```",
    "unclosed": "/*" * 1_000_000,
    "lines": "--\n" * 500_000,
    "labels": "SQL: " * 500_000,
    "thoughts": "<think>" * 500_000,
    "ends": "no\n" + " \t" * 500_000 + "\n</think>" * 100_000,
    "blocks": "```sql\nSELECT 1\n```\n" * 50_000,
    "blanks": "```" + " " * 3_000_000,
    "iris": "SELECT <" * 300_000 + "\n```",
    "backticks": "`" * 3_000_000,
    "tildes": "SELECT 1\n" + "~~~`" * 500_000,
    "fences": "SQL:\n" + "```\n" * 2_000_000,
    "tags": "SELECT 1 /* " + "</think> /*" * 300_000,
    "angles": "SELECT 1 -- " + "<" * 1_000_000 + "\n```",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", [SQL, SPARQL], ids=["sql", "sparql"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("characters", [MAX_ANSWER, None], ids=["cut", "whole"])
def test_hostile_answers_are_read_to_their_end(kind, text, characters):
    assert kind.extract_query(text[:characters])[0] in text


@pytest.mark.parametrize(
    ("kind", "said", "query"),
    [
        (SQL, "Here is the query:\n\nSELECT 1", "SELECT 1"),
        (SQL, "Here is the query:\nSELECT name FROM t;\n", "SELECT name FROM t;\n"),
        (SQL, "Sure! It joins both.\r\n\r\n-- names\r\nSELECT a FROM `t`", "-- names\r\nSELECT a FROM `t`"),
        (
            SQL,
            "First this.\n\nThen that:\n\nWITH a AS (SELECT 1)\n\nSELECT * FROM a",
            "WITH a AS (SELECT 1)\n\nSELECT * FROM a",
        ),
        (
            SQL,
            "All of it:\n\nSELECT\n\na,\n\nb c\nFROM\n\nt u\n\nWHERE a =\n\n'x\n\ny'\n\nORDER BY\n\nb",
            "SELECT\n\na,\n\nb c\nFROM\n\nt u\n\nWHERE a =\n\n'x\n\ny'\n\nORDER BY\n\nb",
        ),
        (SQL, "Here is the statement:\nUPDATE t SET a = 1", "UPDATE t SET a = 1"),
        (SQL, "Sure, in two steps:\n\nDELETE FROM t;\nSELECT 1", "DELETE FROM t;\nSELECT 1"),
        (SQL, "This adds it.\n\nALTER TABLE t ADD COLUMN a INT", "ALTER TABLE t ADD COLUMN a INT"),
        (SPARQL, "Here is the query:\n\nSELECT ?x { ?x a ex:C }", "SELECT ?x { ?x a ex:C }"),
        (SPARQL, "All of it:\n\nPREFIX e: <http://e/>\nASK { ?x e:p 1 }", "PREFIX e: <http://e/>\nASK { ?x e:p 1 }"),
    ],
)
def test_prose_before_a_query_that_can_be_read_is_left_out(kind, said, query):
    assert kind.after_prose(said, "mysql" if kind is SQL else "") == query


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (SQL, "Here is the query:\n\nSELECT 1\n\nIt returns one row."),
        (SQL, "Here is the query:\n\nSELECT a FROM WHERE"),
        (SQL, "Not this one:\n\nSELECT 1\n\nbut"),
        (SQL, "Not this one:\n\nSELECT name FROM t\n \nbut, of course"),
        (SQL, "Not this one:\n\nSELECT count(*)\r\n\r\nbut from here"),
        (SQL, "Here is the query:\n\nSELECT 'a' -- all of it\n\nDone"),
        (SQL, "Here is one:\n\nSELECT 1;\n\nDELETE FROM t"),
        (SQL, "Here is the statement:\n\nUPDATE t SET a 1"),
        (SPARQL, "Here is the query:\n\nSELECT ?x { ?x a ex:C"),
        (SPARQL, "Here is the query:\n\nASK { ?x a 1 }\n\nIt is true."),
    ],
)
def test_text_after_prose_that_is_no_query_to_its_end_is_none(kind, said):
    assert kind.after_prose(said, "") == ""
    assert kind.text_hint(said) == STARTS_WITH_PROSE


@pytest.mark.parametrize(
    ("kind", "said", "key"),
    [
        (SQL, '{"sql": "SELECT 1"}', "sql"),
        (SQL, 'Sure:\n```json\n{"why": "all of it", "query": "SELECT 1"}\n```', "query"),
        (SPARQL, '{"sparql": "ASK { ?x a 1 }"}', "sparql"),
    ],
)
def test_a_query_in_a_json_object_is_named_by_its_key(kind, said, key):
    assert kind.text_hint(said) == IN_JSON.format(key=key)


@pytest.mark.parametrize("said", ['{"sql": 1}', '["SELECT 1"]', "{a}", '{"why": "no table has that"}'])
def test_other_json_has_no_query(said):
    assert SQL.text_hint(said) == ""


def test_code_blocks_that_differ_are_the_reason_why_their_text_is_invalid():
    assert SQL.text_hint("A:\n```sql\nSELECT 1\n```\nB:\n```sql\nSELECT 2\n```") == (
        "the answer has 2 code blocks that may be its sql query, and differ"
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (SQL, "The query is: SELECT count(*) FROM singer"),
        (SQL, "Sure! SELECT 1"),
        (SQL, "**Here you are:** SELECT 1 FROM t"),
        (SPARQL, "The query is: ASK { ?x a 1 }"),
    ],
)
def test_a_sentence_on_the_line_of_the_query_is_prose(kind, said):
    assert kind.text_hint(said) == STARTS_WITH_PROSE


@pytest.mark.parametrize(
    ("kind", "said", "line"),
    [
        (SQL, "Loading model...\nSELECT count(*) FROM singer", 2),
        (SQL, "[info] two weights\n[info] done\n\n  select 1", 4),
        (SPARQL, "0.5 s\nASK { ?x a 1 }", 2),
    ],
)
def test_text_above_a_query_is_no_part_of_it(kind, said, line):
    assert kind.text_hint(said) == STARTS_ABOVE_QUERY.format(line=line)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (SQL, "SELECT count(*) FROM singer\n\nThis counts all rows."),
        (SQL, "SELECT count(*) FROM singer;\nThis counts all rows."),
        (SQL, "SELECT 1\n\nIt's one row (always).\n\n- without duplicates"),
        (SQL, "SELECT 1\n \n**Note:** This counts\nall rows!"),
        (SQL, "SELECT count(*) FROM singer; -- all\n This counts all rows."),
        (SQL, "SELECT count(*) FROM singer;\nSQLResult: \nAnswer: 1"),
        (SQL, "SELECT ';' FROM singer;\n\nselect the singers that are there"),
        (SQL, "SELECT 1; Done; DROP TABLE singer"),
        (SPARQL, "ASK { ?x a 1 }\n\nThis asks whether there is one."),
    ],
)
def test_sentences_after_a_query_are_prose(kind, said):
    assert kind.text_hint(said) == ENDS_WITH_PROSE


@pytest.mark.parametrize(
    "said",
    ROWS["parts_of_a_wrong_query_are_no_prose"],
)
def test_parts_of_a_wrong_query_are_no_prose(said):
    assert SQL.text_hint(said) == ""


def test_a_long_text_without_prose_has_no_hint():
    for said in ("SELECT 1" + "\n\nx" * 80_000, "SELECT 1;" + "\n \t" * 80_000, "A" + ": " * 120_000 + "x"):
        assert SQL.text_hint(said) == ""


@pytest.mark.parametrize(
    "said",
    ROWS["what_is_no_prose_is_kept_before_a_query"],
)
def test_what_is_no_prose_is_kept_before_a_query(said):
    assert SQL.after_prose(said, "") == ""
    assert SQL.text_hint(said) == ""


@pytest.mark.parametrize(
    ("kind", "query", "hint"),
    [
        (SQL, "SELECT\u00a0name FROM t", "line 1, column 7 is U+00A0, no-break space: write a space"),
        (
            SQL,
            "SELECT a\nFROM t WHERE b = \u2018x\u2019",
            "line 2, column 18 is U+2018, left single quotation mark: write a straight quote",
        ),
        (SQL, "SELECT a \u2212 1", "line 1, column 10 is U+2212, minus sign: write -"),
        (SPARQL, "ASK {\n ?x a\u200b 1 }", "line 2, column 6 is U+200B, zero width space: write nothing"),
        (SQL, "SELECT 'it\u2019s', \"a\u00a0b\" -- \u201cx\u201d", ""),
        (SPARQL, "ASK { ?x a <http://e/\u2013> } # \u2013", ""),
        (SQL, "SELECT 'open \u2019", ""),
        (SQL, "SELECT name FRM t", ""),
        (SPARQL, "SELECT ?x {\n  ?x ?p (1 2)", ""),  # the message itself says so
        (SPARQL, "ASK { ?x a '{' }", ""),
    ],
)
def test_characters_that_look_like_others_and_open_brackets_are_named_with_their_place(kind, query, hint):
    assert kind.text_hint(query) == hint
