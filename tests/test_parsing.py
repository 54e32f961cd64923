"""Untrusted texts: read, or refused in one short line, without a crash and without waiting."""

import logging
import warnings

import pytest
from query_pairs import TOWN

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql import parse_query  # white box: what is read of a text
from pytest_queryeval.languages.sql.match import match_queries  # white box: how long two texts are compared
from pytest_queryeval.languages.sql.parsing import (  # white box: the limits
    MAX_CHARACTERS,
    MAX_NESTING,
    MAX_OPEN_JOINS,
    MESSAGE_CHARACTERS,
)

GOLD = "SELECT name FROM shop"
MANY = 5_000
DEEP = {
    "parentheses": ("SELECT ", "(", "1", ")"),
    "open": ("SELECT ", "(", "", ""),
    "queries": (f"{GOLD} WHERE id IN ", "(SELECT id FROM shop WHERE id IN ", "(1)", ")"),
    "derived": ("SELECT * FROM ", "(SELECT * FROM ", "shop", ") AS a"),
    "joins": ("SELECT id FROM ", "(", "shop", " JOIN sale)"),
    "lateral": ("SELECT id FROM shop", ", LATERAL (SELECT id FROM shop", "", ")"),
    "with": ("", "WITH a AS (", "SELECT 1", ") SELECT 1"),
    "exists": (f"{GOLD} WHERE EXISTS ", "(SELECT 1 WHERE EXISTS ", "(SELECT 1)", ")"),
    "not": (f"{GOLD} WHERE ", "NOT ", "id", ""),
    "minus": ("SELECT ", "- ", "1", ""),
    "plus": ("SELECT ", "+ ", "1", ""),
    "tilde": ("SELECT ", "~", "1", ""),
    "case": ("SELECT ", "CASE WHEN ", "id", " THEN 1 END"),
    "else": ("SELECT ", "CASE WHEN id THEN 1 ELSE ", "1", " END"),
    "case of": ("SELECT ", "CASE id WHEN ", "1", " THEN 1 WHEN 2 THEN 3 END"),
    "functions": ("SELECT ", "f(", "1", ")"),
    "known functions": ("SELECT ", "abs(", "1", ")"),
    "casts": ("SELECT ", "CAST(", "1", " AS INT)"),
    "types": ("SELECT CAST(1 AS ", "ARRAY<", "INT", ">)"),
    "short casts": ("SELECT 1", "", "", "::int"),
    "dots": ("SELECT a", "", "", ".b"),
    "subscripts": ("SELECT a", "", "", "[1]"),
    "lists": ("SELECT ", "[", "1", "]"),
    "structs": ("SELECT ", "{'a': ", "1", "}"),
    "tuples": ("SELECT ", "(1, ", "1", ")"),
    "between": (f"{GOLD} WHERE id", "", "", " BETWEEN 1 AND 2"),
    "between in between": (f"{GOLD} WHERE ", "id BETWEEN ", "1", " AND 1"),
    "in": (f"{GOLD} WHERE id", "", "", " IN (1, 2, 3)"),
    "is": (f"{GOLD} WHERE id", "", "", " IS NULL"),
    "collate": ("SELECT name", "", "", " COLLATE nocase"),
    "windows": ("SELECT ", "sum(", "1", ") OVER ()"),
    "lambdas": ("SELECT ", "x -> ", "1", ""),
    "arrows": ("SELECT a", "", "", " -> 'b'"),
    "comments": ("SELECT ", "/*", "1", ""),
    "quotes": ("SELECT ", "'", "1", ""),
    "extract": ("SELECT ", "EXTRACT(year FROM ", "a", ")"),
    "values": ("VALUES ", "(", "1", ")"),
    "nested joins": ("SELECT id FROM shop ", "JOIN shop ", "", "ON id = id "),
}
LONG = {
    "unions": " UNION ".join([GOLD] * MANY),
    "excepts": " EXCEPT ".join(["SELECT 1"] * MANY),
    "joins": "SELECT id FROM shop" + " JOIN sale ON a = b" * 2_500,
    "full joins": "SELECT id FROM shop" + " FULL JOIN sale ON a=b" * 2_000,
    "tables": "SELECT id FROM shop" + ",shop" * MANY,
    "columns": "SELECT " + ",".join(f"c{number}" for number in range(MANY)) + " FROM shop",
    "conditions": f"{GOLD} WHERE " + " AND ".join(f"c{number}=1" for number in range(MANY)),
    "mixed conditions": f"{GOLD} WHERE " + " AND a OR ".join(["b=1"] * 3_000),
    "values": f"{GOLD} WHERE id IN ({','.join('1' * MANY)})",
    "sums": "SELECT " + "+".join("a" * MANY),
    "differences": "SELECT " + "-".join("a" * MANY),
    "keys": f"{GOLD} ORDER BY {','.join('a' * MANY)}",
    "statements": "SELECT 1;" * MANY,
    "semicolons": ";" * MANY,
    "chain of equal columns": "SELECT 1 FROM "
    + ",".join(f"t{number}" for number in range(1_000))
    + " WHERE "
    + " AND ".join(f"t{number}.x=t{number + 1}.x" for number in range(999)),
    "doubling queries": "WITH a0 AS (SELECT x FROM t), "
    + ", ".join(f"a{number} AS (SELECT x+x AS x FROM a{number - 1} p, a{number - 1} q)" for number in range(1, 300))
    + " SELECT * FROM a299",
    "self-joins in self-joins": "SELECT 1 FROM shop a, shop b, shop c WHERE EXISTS (" * 35 + "SELECT 1" + ")" * 35,
    "joins without ON": GOLD + " JOIN sale" * 1_000,
    "joins without ON, one with": GOLD + " JOIN sale" * 25 + " ON id = id",
    "joins without ON, nested": "SELECT 1 FROM (SELECT 1 FROM shop" + " JOIN (SELECT 1 FROM sale JOIN sale" * 30,
    "digits": "SELECT " + "9" * 40_000,
    "position": f"{GOLD} ORDER BY {'9' * 5_000}",
    "one word": "a" * 100_000,
    "parentheses": "(" * 100_000,
    "spaces": " " * 100_000,
}
STATEMENTS = [
    *("DELETE FROM shop", "INSERT INTO shop VALUES (1)", "UPDATE shop SET id = 1", "DROP TABLE shop", "PRAGMA a = 1"),
    *("CREATE TABLE a (b INT)", "ALTER TABLE shop ADD COLUMN a INT", "TRUNCATE TABLE shop", "EXPLAIN SELECT 1"),
    *("ATTACH 'a' AS b", "VACUUM", "BEGIN", "COMMIT", "SET a = 1", "USE a", "SHOW TABLES", "CALL f()"),
    *("GRANT ALL ON a TO b", "MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE", "COPY a TO 'b'"),
    *("DESCRIBE a", "KILL 1"),
]
NO_QUERIES = [
    *("", " ", ";", "-- shop", "/* shop */", "I cannot answer that question.", f"```sql\n{GOLD}\n```", "42", "'"),
    *("$$", "{{", "SELEC name FROM shop", "\x00", "\ufeff", "\u202e", "\ud800", "🚲", "SELECT \x1b[31m FROM (("),
    *("name", "##[error]x"),
]
DIALECTS = ["sqlite", "bigquery", "clickhouse"]


def in_turn(sorts, start=0):
    """Each sort in one of the dialects, whose parsers share most of their code."""
    return [(sort, DIALECTS[number % len(DIALECTS)]) for number, sort in enumerate(sorts, start=start)]


def broken(query, dialect="sqlite", schema=TOWN):
    """What is wrong with a prediction; empty where nothing is."""
    return match_queries(GOLD, query, dialect, schema).problem


def assert_one_short_line(text):
    assert text.isprintable()
    assert len(text) <= MESSAGE_CHARACTERS + 30


@pytest.mark.long
@pytest.mark.parametrize(
    ("sort", "dialect", "depth"),
    [(*of, depth) for turn, depth in enumerate((30, 5_000)) for of in in_turn(DEEP, start=turn)],
)
def test_what_is_nested_deeply_is_read_or_refused(sort, depth, dialect):
    start, opening, inside, closing = DEEP[sort]

    for query in (start + opening * depth + inside + closing * depth, (start + opening * depth)[:MAX_CHARACTERS]):
        assert_one_short_line(broken(query, dialect))
        itself = match_queries(query, f"{query} ", dialect, Schema())
        assert itself is None or itself.exact or itself.problem


@pytest.mark.long
@pytest.mark.parametrize(("sort", "dialect"), in_turn(LONG))
def test_what_is_long_is_read_or_refused(sort, dialect):
    assert_one_short_line(broken(LONG[sort], dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_query_is_refused(dialect):
    said = {query: broken(query, dialect) for query in (*STATEMENTS, *NO_QUERIES)}

    assert [query for query, problem in said.items() if not problem] == []
    for problem in said.values():
        assert_one_short_line(problem)


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "\u202e", "\u05d0", "\x1b[31m", "a\u2028b"])
def test_names_and_texts_may_hold_any_character(name):
    for query in (f"SELECT '{name}' FROM shop", f'SELECT "{name}" FROM shop', f"SELECT name AS `{name}` FROM shop"):
        assert match_queries(query, f" {query}", "sqlite", TOWN).exact
        assert_one_short_line(broken(query))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("a" * (MAX_CHARACTERS + 1), f"longer than {MAX_CHARACTERS} characters"),
        ("SELECT " + "(" * MAX_NESTING + "1" + ")" * MAX_NESTING, f"nested more than {MAX_NESTING} times"),
        (GOLD + " JOIN sale" * (MAX_OPEN_JOINS + 1), f"more than {MAX_OPEN_JOINS} joins without a condition"),
        ("DELETE FROM shop", "no query but DELETE"),
        ("", "the text holds no statement"),
        (f"{GOLD}; {GOLD}", "2 statements, not one"),
        ("SELECT name FROM shop WHERE (id = 1", "Expecting ), line 1, column 35"),
    ],
)
def test_the_reason_says_what_is_wrong(query, reason):
    assert broken(query) == reason


def test_queries_up_to_the_budgets_are_read():
    brackets = "(" * (MAX_NESTING - 1), ")" * (MAX_NESTING - 1)

    assert broken(f"SELECT {brackets[0]}1{brackets[1]}") == ""
    assert broken(f"{GOLD}{' JOIN sale' * MAX_OPEN_JOINS}") == ""
    assert broken(f"{GOLD}{' JOIN sale ON a = b' * 500}{' CROSS JOIN sale' * 500}") == ""
    assert broken(GOLD.ljust(MAX_CHARACTERS)) == ""


def test_a_part_that_can_be_read_is_given_with_what_is_wrong():
    query = parse_query("SELECT name FROM shop WHERE id = ORDER BY name", "sqlite")

    assert query.tree.args["order"]
    assert query.whole_tree is None
    assert query.problem.endswith("line 1, column 41")


def test_what_the_parser_fails_at_in_ways_of_its_own_is_refused():
    query = parse_query("SELECT a" + "->'b'" * 900 + "->", "sqlite")

    assert query.tree is None
    assert query.problem


def test_the_parser_says_nothing_by_itself(caplog, capsys):
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        for query in (*STATEMENTS, *NO_QUERIES, "SELECT a FROM t TABLESAMPLE (3) WITH x", "SELECT @@a, {{ x }}"):
            broken(query, "postgres")

    assert caplog.records == []
    assert capsys.readouterr() == ("", "")
    assert not logging.getLogger("sqlglot").disabled


@pytest.mark.parametrize(
    "text",
    [
        f"{GOLD};\n-- by flag",
        f"{GOLD}; /* done; */",
        f"{GOLD};;; -- done",
        f"{GOLD};/* ; */;-- done\n;",
        f"/* first */;{GOLD};",
        f"-- first\n{GOLD}",
    ],
)
def test_a_comment_between_semicolons_is_no_statement(text):
    query = parse_query(text, "sqlite")

    assert (query.tree.sql(comments=False), query.problem) == (GOLD, "")
    assert match_queries(text, GOLD, "sqlite", Schema()).exact


@pytest.mark.parametrize("text", [f"{GOLD}; DROP TABLE shop", f"{GOLD}; -- x\nSELECT 2", f"{GOLD};/* ; */{GOLD}"])
def test_a_second_statement_counts_behind_a_comment_too(text):
    assert parse_query(text, "sqlite").problem == "2 statements, not one"
