"""Untrusted texts: read, or refused in one short line, without a crash and without waiting; parsed once for all."""

import logging
import warnings

import pytest
from query_pairs import TOWN
from samples import make_case, table

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

SQL = KINDS["sql"]
MAX_CHARACTERS, MAX_NESTING, MAX_OPEN_JOINS, MESSAGE_CHARACTERS = 50_000, 40, 8, 200
GOLD = "SELECT name FROM shop"
MANY = 2_000
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
    "joins": "SELECT id FROM shop" + " JOIN sale ON a = b" * 1_000,
    "full joins": "SELECT id FROM shop" + " FULL JOIN sale ON a=b" * 700,
    "tables": "SELECT id FROM shop" + ",shop" * MANY,
    "columns": "SELECT " + ",".join(f"c{number}" for number in range(MANY)) + " FROM shop",
    "conditions": f"{GOLD} WHERE " + " AND ".join(f"c{number}=1" for number in range(MANY)),
    "mixed conditions": f"{GOLD} WHERE " + " AND a OR ".join(["b=1"] * 1_000),
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
COMMENTED = [
    *(f"{GOLD};\n-- by flag", f"{GOLD}; /* done; */", f"{GOLD};;; -- done", f"{GOLD};/* ; */;-- done\n;"),
    *(f"/* first */;{GOLD};", f"-- first\n{GOLD}"),
]
DIALECTS = ["sqlite", "bigquery", "clickhouse"]


def in_turn(sorts, start=0):
    """Each sort in one of the dialects, whose parsers share most of their code."""
    return [(sort, DIALECTS[number % len(DIALECTS)]) for number, sort in enumerate(sorts, start=start)]


def match(gold, predicted, dialect="sqlite", schema=TOWN):
    return METRICS["exact_set_match"].function(gold, predicted, dialect=dialect, schema=schema)


def broken(query, dialect="sqlite"):
    """What is wrong with a prediction; empty where nothing is."""
    return match(GOLD, query, dialect).details.get("exact_set_match", {}).get("unreadable", "")


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
        assert match(query, f"{query} ", dialect, Schema()).value in (1.0, None) or broken(f"{query} ", dialect)


@pytest.mark.long
@pytest.mark.parametrize(("sort", "dialect"), in_turn(LONG))
def test_what_is_long_is_read_or_refused(sort, dialect):
    assert_one_short_line(broken(LONG[sort], dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_query_is_refused(dialect):
    problems = {query: broken(query, dialect) for query in (*STATEMENTS, *NO_QUERIES)}

    assert [query for query, problem in problems.items() if not problem] == []
    for problem in problems.values():
        assert_one_short_line(problem)


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "\u202e", "\u05d0", "\x1b[31m", "a\u2028b"])
def test_names_and_texts_may_hold_any_character(name):
    for query in (f"SELECT '{name}' FROM shop", f'SELECT "{name}" FROM shop', f"SELECT name AS `{name}` FROM shop"):
        assert match(query, f" {query}").value == 1.0
        assert_one_short_line(broken(query))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (GOLD.ljust(MAX_CHARACTERS), ""),
        ("a" * (MAX_CHARACTERS + 1), f"longer than {MAX_CHARACTERS} characters"),
        ("SELECT " + "(" * (MAX_NESTING - 1) + "1" + ")" * (MAX_NESTING - 1), ""),
        ("SELECT " + "(" * MAX_NESTING + "1" + ")" * MAX_NESTING, f"nested more than {MAX_NESTING} times"),
        (GOLD + " JOIN sale" * MAX_OPEN_JOINS, ""),
        (GOLD + " JOIN sale" * (MAX_OPEN_JOINS + 1), f"more than {MAX_OPEN_JOINS} joins without a condition"),
        (GOLD + " JOIN sale ON a = b" * 200 + " CROSS JOIN sale" * 200, ""),
        ("DELETE FROM shop", "no query but DELETE"),
        ("", "the text contains no statement"),
        (f"{GOLD}; {GOLD}", "2 statements, not one"),
        (f"{GOLD}; -- x\nSELECT 2", "2 statements, not one"),
        (f"{GOLD};/* ; */{GOLD}", "2 statements, not one"),
        (f"{GOLD} WHERE (id = 1", "Expecting ), line 1, column 35"),
        *((text, "") for text in COMMENTED),
    ],
    ids=lambda text: f"{text[:30]}{len(text)}",
)
def test_a_query_within_the_limits_is_read_and_of_others_the_problem_is_told(query, problem):
    assert broken(query) == SQL.read_problem(query, "sqlite") == problem


@pytest.mark.parametrize("text", COMMENTED)
def test_a_comment_between_semicolons_is_no_statement(text):
    assert match(text, GOLD).value == 1.0


def test_what_the_parser_fails_at_in_ways_of_its_own_is_refused():
    assert broken("SELECT a" + "->'b'" * 900 + "->")


def test_the_parser_says_nothing_by_itself(caplog, capsys):
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        for query in (*STATEMENTS, *NO_QUERIES, "SELECT a FROM t TABLESAMPLE (3) WITH x", "SELECT @@a, {{ x }}"):
            broken(query, "postgres")

    assert caplog.records == []
    assert capsys.readouterr() == ("", "")
    assert not logging.getLogger("sqlglot").disabled


QUERY = """WITH a AS (SELECT * FROM shop) SELECT a.NAME AS n, count(*) FROM a LEFT JOIN sale ON a.id = shop_id
WHERE city = "Ulm" AND EXISTS (SELECT 1 FROM visit WHERE shop_id = a.id) GROUP BY 1 ORDER BY 2 DESC, n LIMIT 3"""
CASE, ANSWER = make_case(), table(("a", 1), columns=("n", "count(*)"))
FACTS = [
    lambda query: SQL.difficulty(query, "sqlite"),
    lambda query: SQL.features(query, "sqlite"),
    lambda query: SQL.normal_text(query, "sqlite"),
    lambda query: SQL.selected_columns(query, "sqlite"),
    lambda query: SQL.without_data(query, "sqlite"),
    lambda query: SQL.translate(query, "sqlite", "postgres"),
    lambda query: [*SQL.order_plan(query, ANSWER, CASE).queries],
    lambda query: SQL.sort_key_query(query, ANSWER, CASE),
    lambda query: match(GOLD, query).details,
    lambda query: match(query, QUERY).value,
]


def test_facts_of_a_query_do_not_depend_on_what_was_read_before():
    """All of it comes from one tree, which nothing may change."""
    alone = [str(fact(f"{QUERY}\n-- {number}")) for number, fact in enumerate(FACTS)]
    together = [str(fact(QUERY)) for fact in (*FACTS, *FACTS[::-1])]

    plain = [text.replace(f"/* {number} */", "").rstrip() for number, text in enumerate(alone)]
    assert together == [*plain, *plain[::-1]]
