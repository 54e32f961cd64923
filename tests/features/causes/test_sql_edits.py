"""The edits from a predicted SQL query to gold: their labels and places, and what comes of the query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import parse_one

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.features.causes.sql.edits import sql_edits
from pytest_queryeval.languages.sql import parse_query

SCHEMA = Schema(
    tables={
        "singer": ("id", "name", "age", "country"),
        "concert": ("id", "singer_id", "year", "name"),
        "stadium": ("id", "concert_id", "name"),
    }
)
JOINED = "SELECT singer.name FROM singer JOIN concert ON singer.id = concert.singer_id"

# Conditions of `SELECT 1 FROM singer WHERE`, with the label and the change of their edit.
CONDITIONS = [
    ("age > 30", "age > 40", "wrong-value 30 → 40"),
    ("age > 30", "age >= 30", "wrong-operator > → >="),
    ("age > 30", "30 > age", "wrong-operator > → <"),
    ("age > 30", "id > 30", "wrong-column age → id"),
    ("age = 3 OR id = 1", "id = 1 AND age = 3", "wrong-connector OR → AND"),
    ("age = 3 AND id = 1 AND name = 'a'", "name = 'a' AND (id = 1 OR age = 3)", "wrong-connector AND → AND OR"),
    ("age = 3", "age = 3 AND id IS NULL", "missing-condition nothing → id IS NULL"),
    ("age IN (1, 2)", "age IN (1, 2, 3)", "wrong-value 1, 2 → 1, 2, 3"),
    ("age NOT IN (1, 2)", "age IN (1, 2)", "wrong-operator NOT IN → IN"),
    ("NOT age = 3", "age = 3", "wrong-operator <> → ="),
    ("NOT age > 3", "age > 3", "wrong-operator <= → >"),
    ("age IS NOT NULL", "age IS NULL", "wrong-operator IS NOT → IS"),
    ("age BETWEEN 1 AND 2", "age BETWEEN 1 AND 3", "wrong-value 2 → 3"),
    (
        "id IN (SELECT singer_id FROM concert WHERE year = 3)",
        "id IN (SELECT singer_id FROM concert WHERE year = 4)",
        "wrong-value 3 → 4",
    ),
    ("age > 3", "age > (SELECT avg(age) FROM singer)", "nesting 3 → (SELECT AVG(age) FROM singer)"),
]


def found(predicted, gold, dialect="sqlite"):
    return sql_edits(predicted, gold, SCHEMA, dialect)


def told(edits):
    return [(edit.label, edit.clause, edit.change) for edit in edits.edits]


@pytest.mark.parametrize(
    ("predicted", "gold", "edit"),
    [
        ("SELECT 1 FROM singer", "SELECT 1 FROM singer WHERE id = 1", "missing-condition WHERE nothing → id = 1"),
        ("SELECT 1 FROM singer WHERE id = 1", "SELECT 1 FROM singer", "extra-condition WHERE id = 1 → nothing"),
        ("SELECT name FROM singer", "SELECT country FROM singer", "wrong-column SELECT name → country"),
        ("SELECT name FROM singer", "SELECT name, age FROM singer", "missing-column SELECT nothing → age"),
        ("SELECT name, age FROM singer", "SELECT age FROM singer", "extra-column SELECT name → nothing"),
        ("SELECT name, name FROM singer", "SELECT age, name FROM singer", "wrong-column SELECT name → age"),
        ("SELECT age FROM singer", "SELECT age + 1 FROM singer", "wrong-expression SELECT age → age + 1"),
        ("SELECT max(age) FROM singer", "SELECT min(age) FROM singer", "wrong-aggregate SELECT MAX(age) → MIN(age)"),
        ("SELECT max(age) FROM singer", "SELECT max(id) FROM singer", "wrong-column SELECT MAX(age) → MAX(id)"),
        ("SELECT name FROM singer", "SELECT DISTINCT name FROM singer", "missing-distinct SELECT nothing → DISTINCT"),
        ("SELECT DISTINCT name FROM singer", "SELECT name FROM singer", "extra-distinct SELECT DISTINCT → nothing"),
        (
            "SELECT count(name) FROM singer",
            "SELECT count(DISTINCT name) FROM singer",
            "missing-distinct SELECT COUNT(name) → COUNT(DISTINCT name)",
        ),
        ("SELECT id FROM singer", "SELECT id FROM concert", "wrong-table FROM singer → concert"),
        (JOINED, JOINED.replace("JOIN", "LEFT JOIN"), "wrong-join-type FROM JOIN → LEFT JOIN"),
        (
            JOINED,
            JOINED.replace("concert.singer_id", "concert.id"),
            "wrong-join-condition FROM singer.id = concert.singer_id → singer.id = concert.id",
        ),
        ("SELECT name FROM singer", JOINED, "missing-join FROM nothing → concert"),
        (JOINED, "SELECT name FROM singer", "extra-join FROM concert → nothing"),
        (
            "SELECT count(*) FROM singer GROUP BY name",
            "SELECT count(*) FROM singer GROUP BY age",
            "wrong-grouping GROUP name → age",
        ),
        (
            "SELECT age FROM singer GROUP BY age",
            "SELECT age FROM singer GROUP BY age HAVING count(*) > 1",
            "missing-having HAVING nothing → COUNT(*) > 1",
        ),
        (
            "SELECT age FROM singer GROUP BY age HAVING count(*) > 1",
            "SELECT age FROM singer GROUP BY age",
            "wrong-having HAVING COUNT(*) > 1 → nothing",
        ),
        ("SELECT age FROM singer", "SELECT age FROM singer ORDER BY age", "missing-order ORDER nothing → age"),
        (
            "SELECT age FROM singer ORDER BY age, id",
            "SELECT age FROM singer ORDER BY age, id DESC",
            "wrong-order ORDER id → id DESC",
        ),
        ("SELECT age FROM singer LIMIT 3", "SELECT age FROM singer LIMIT 4", "wrong-limit LIMIT 3 → 4"),
        ("SELECT age FROM singer LIMIT 2", "SELECT age FROM singer", "wrong-limit LIMIT 2 → nothing"),
        (
            "SELECT age FROM singer LIMIT 2 OFFSET 1",
            "SELECT age FROM singer LIMIT 2",
            "wrong-limit LIMIT 2 OFFSET 1 → 2",
        ),
        (
            "SELECT id FROM singer UNION SELECT id FROM concert",
            "SELECT id FROM singer EXCEPT SELECT id FROM concert",
            "set-operation SET UNION → EXCEPT",
        ),
        (
            "SELECT DISTINCT id FROM singer",
            "SELECT DISTINCT id FROM singer INTERSECT SELECT singer_id FROM concert",
            "set-operation SET nothing → INTERSECT SELECT singer_id FROM concert",
        ),
        *(
            (
                f"SELECT 1 FROM singer WHERE {one}",
                f"SELECT 1 FROM singer WHERE {partner}",
                edit.replace(" ", " WHERE ", 1),
            )
            for one, partner, edit in CONDITIONS
        ),
    ],
)
def test_one_difference_is_one_edit_after_which_the_query_is_gold(predicted, gold, edit):
    edits = found(predicted, gold)

    assert " ".join(told(edits)[0]) == edit
    repaired = edits.applied([0])
    assert told(found(repaired, gold)) == []


@pytest.mark.parametrize(
    ("predicted", "gold"),
    [
        ("select NAME from Singer where AGE=30", "SELECT T1.name FROM singer AS T1 WHERE 30.0 = T1.age"),
        ('SELECT name FROM singer WHERE country = "FR"', "SELECT name FROM singer WHERE country = 'FR'"),
        (
            "SELECT a.name FROM singer a JOIN concert b ON a.id = b.singer_id",
            "SELECT T2.name FROM concert AS T1 JOIN singer AS T2 ON T1.singer_id = T2.id",
        ),
        (
            "SELECT count(*) AS n FROM singer GROUP BY age ORDER BY n",
            "SELECT count(*) FROM singer GROUP BY age ORDER BY 1",
        ),
        (
            "SELECT 1 FROM singer WHERE id IN (SELECT c.singer_id FROM concert c)",
            "SELECT 1 FROM singer WHERE id IN (SELECT singer_id FROM concert)",
        ),
    ],
)
def test_another_way_to_write_the_same_is_no_edit(predicted, gold):
    edits = found(predicted, gold)

    assert "wrong-column" not in [edit.label for edit in edits.edits]
    assert "wrong-value" not in [edit.label for edit in edits.edits]
    assert [edit for edit in edits.edits if edit.clause != "FROM"] == []


def test_copies_of_a_table_are_matched_by_the_conditions_on_them():
    predicted = (
        "SELECT a.name FROM singer a JOIN concert x ON a.id = x.singer_id JOIN concert y ON a.id = y.singer_id "
        "WHERE x.year = 2014 AND y.year = 2015"
    )
    gold = (
        "SELECT T1.name FROM singer T1 JOIN concert T2 ON T1.id = T2.singer_id JOIN concert T3 ON T1.id = T3.singer_id "
        "WHERE T2.year = 2015 AND T3.year > 2014"
    )

    assert told(found(predicted, gold))[0] == ("wrong-operator", "WHERE", "= → >")


@pytest.mark.parametrize(
    ("predicted", "gold", "edit"),
    [
        (
            "SELECT concert.year FROM singer JOIN concert ON singer.id = concert.singer_id WHERE age > 3",
            "SELECT age FROM singer WHERE age > 3",
            ("wrong-column", "SELECT", "concert.year → singer.age; drops concert, which nothing else uses"),
        ),
        (
            f"{JOINED.replace('JOIN', 'LEFT JOIN')} LEFT JOIN stadium AS s ON s.concert_id = concert.id",
            f"{JOINED.replace('JOIN', 'LEFT JOIN')} JOIN stadium AS s ON s.concert_id = concert.id",
            ("wrong-join-type", "FROM", "LEFT JOIN stadium AS s → JOIN stadium AS s"),
        ),
        (
            "SELECT id FROM singer WHERE country LIKE '%Ann%'",
            "SELECT id FROM singer WHERE name = 'Ann'",
            ("wrong-column", "WHERE", "country LIKE '%Ann%' → name = 'Ann'"),
        ),
    ],
)
def test_a_change_says_which_table_and_which_column_it_is_about(predicted, gold, edit):
    assert edit in told(found(predicted, gold))


def test_two_edits_are_made_together():
    edits = found("SELECT name FROM singer WHERE age > 30", "SELECT country FROM singer WHERE age > 40")

    assert edits.applied([0, 1]) == "SELECT country FROM singer WHERE age > 40"
    assert [*edits.combinations()] == [(0,), (1,), (0, 1)]


def test_a_column_of_a_table_that_is_not_read_needs_its_join():
    edits = found("SELECT name FROM singer", "SELECT year FROM singer JOIN concert ON singer.id = concert.singer_id")

    assert [edit.label for edit in edits.edits] == ["missing-join", "wrong-column"]
    assert edits.applied([1]) is None
    assert edits.applied([0, 1]) == "SELECT concert.year FROM singer JOIN concert ON singer.id = concert.singer_id"


def test_missing_tables_come_with_their_conditions_in_any_order():
    gold = (
        "SELECT T3.name FROM stadium AS T3 JOIN concert AS T2 ON T2.id = T3.concert_id "
        "JOIN singer AS T1 ON T1.id = T2.singer_id"
    )

    edits = found("SELECT name FROM singer", gold)

    joined = edits.applied([told(edits).index(("missing-join", "FROM", "nothing → stadium AS T3, concert AS T2"))])
    assert joined == (
        "SELECT singer.name FROM singer JOIN concert AS T2 ON singer.id = T2.singer_id "
        "JOIN stadium AS T3 ON T2.id = T3.concert_id"
    )


def test_no_edit_multiplies_tables():
    edits = found(JOINED, "SELECT name FROM stadium JOIN concert ON stadium.concert_id = concert.id")

    texts = [edits.applied([number]) for number in range(len(edits.edits))]
    assert all(text is None or text.count("JOIN") == text.count(" ON ") for text in texts)
    assert not any("," in text.partition("FROM")[2] for text in texts if text)


def applied(edits, *labels):
    """Predicted after the first edit of each label."""
    numbers = [next(number for number, edit in enumerate(edits.edits) if edit.label == label) for label in labels]
    return edits.applied(sorted(numbers))


def test_columns_follow_a_table_that_takes_the_place_of_another_one():
    gold = (
        "SELECT T1.name FROM stadium AS T1 WHERE T1.name = 'Ann' AND 1 IN (SELECT year FROM concert WHERE id = T1.id)"
    )

    repaired = applied(found(gold.replace("stadium", "singer").replace("T1", "singer"), gold), "wrong-table")

    assert repaired == gold


def test_columns_that_a_nested_query_is_compared_by_are_those_that_gold_joins():
    predicted = "SELECT name FROM stadium WHERE id IN (SELECT id FROM concert WHERE year = 3)"
    gold = "SELECT s.name FROM stadium AS s JOIN concert AS c ON s.concert_id = c.id WHERE c.year = 3"

    edits = found(predicted, gold)

    assert ("wrong-column", "WHERE", "id → concert_id") in told(edits)
    assert applied(edits, "wrong-column") == predicted.replace("WHERE id", "WHERE concert_id")


def test_columns_that_a_nested_query_is_compared_by_are_those_of_the_right_table():
    predicted = "SELECT name FROM singer WHERE id IN (SELECT id FROM concert WHERE year = 3)"
    gold = "SELECT s.name FROM stadium AS s JOIN concert AS c ON s.concert_id = c.id WHERE c.year = 3"

    assert applied(found(predicted, gold), "wrong-table", "wrong-column") == (
        "SELECT s.name FROM stadium AS s WHERE s.concert_id IN (SELECT id FROM concert WHERE year = 3)"
    )


def test_the_order_of_a_nested_query_is_that_of_the_tables_that_gold_joins():
    predicted = (
        "SELECT name FROM singer WHERE id = "
        "(SELECT singer_id FROM concert GROUP BY singer_id ORDER BY count(year) DESC LIMIT 1)"
    )
    gold = "SELECT a.name FROM singer a JOIN concert b ON a.id = b.singer_id ORDER BY b.year DESC LIMIT 1"

    edits = found(predicted, gold)

    order = told(edits).index(("wrong-grouping", "GROUP", "singer_id ORDER BY COUNT(year) DESC → ORDER BY year DESC"))
    assert edits.applied([order]) == (
        "SELECT name FROM singer WHERE id = (SELECT singer_id FROM concert ORDER BY year DESC LIMIT 1)"
    )


def test_tables_are_joined_before_conditions_name_them_and_each_condition_stands_once():
    predicted = "SELECT stadium.name FROM stadium JOIN singer ON stadium.id = singer.id"
    gold = "SELECT s.name FROM stadium s JOIN concert c ON s.concert_id = c.id JOIN singer ON c.singer_id = singer.id"

    assert applied(found(predicted, gold), "missing-join", "wrong-join-condition") == (
        "SELECT stadium.name FROM stadium JOIN concert AS c ON stadium.concert_id = c.id "
        "JOIN singer ON c.singer_id = singer.id"
    )


def test_a_table_is_dropped_with_the_conditions_in_where_that_join_it():
    predicted = "SELECT concert.singer_id FROM singer, concert WHERE singer.id = singer_id AND age > 3"

    assert applied(found(predicted, "SELECT id FROM singer WHERE age > 3"), "extra-join") == (
        "SELECT id FROM singer WHERE age > 3"
    )


def test_a_nested_query_without_an_alias_keeps_none():
    predicted = "SELECT count(*) FROM (SELECT id FROM singer WHERE age > 3)"

    assert applied(found("SELECT count(*) FROM concert", predicted), "nesting") == predicted.replace("count", "COUNT")


def test_common_queries_of_gold_come_with_what_reads_them():
    old = "WITH old AS (SELECT id FROM singer WHERE age > 60)"
    gold = f"{old} SELECT 1 FROM concert WHERE singer_id IN (SELECT id FROM old)"

    edits = found("SELECT 1 FROM concert", gold)

    assert edits.applied([0]) == (
        "WITH old AS (SELECT id FROM singer WHERE age > 60) "
        "SELECT 1 FROM concert WHERE singer_id IN (SELECT id FROM old)"
    )


def test_the_whole_query_is_never_one_edit():
    gold = "SELECT id FROM concert UNION SELECT id FROM stadium"

    edits = found("SELECT name FROM singer WHERE age > 1", gold)

    assert gold not in [edits.applied([number]) for number in range(len(edits.edits))]


@pytest.mark.parametrize("text", ["SELECT 1; SELECT 2", "DROP TABLE singer", "SELECT (" * 60, "ok", ""])
def test_what_cannot_be_read_has_no_edits(text):
    assert found(text, "SELECT 1") is None
    assert found("SELECT 1", text) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM singer WHERE " + " AND ".join(f"age = {number}" for number in range(2_000)),
        "SELECT " + " + ".join("1" * 2_000),
        " UNION ".join(["SELECT 1"] * 100),
        "SELECT 1 FROM singer WHERE id IN (" * 30 + "1" + ")" * 30,
    ],
)
def test_queries_of_a_size_that_nobody_writes_have_no_edits(text):
    assert found(text, "SELECT 1") is None
    assert found("SELECT 1", text) is None


QUERIES = (
    "SELECT name FROM singer",
    "SELECT count(*), country FROM singer GROUP BY country HAVING count(*) > 2 ORDER BY 1 DESC LIMIT 3",
    "SELECT T1.name FROM singer AS T1 JOIN concert AS T2 ON T1.id = T2.singer_id WHERE T2.year = 2014 OR T1.age < 3",
    "SELECT name FROM singer WHERE id NOT IN (SELECT singer_id FROM concert WHERE year BETWEEN 2010 AND 2012)",
    "SELECT name FROM singer UNION ALL SELECT name FROM stadium ORDER BY name",
    "SELECT DISTINCT a.country FROM singer a LEFT JOIN singer b ON a.age > b.age WHERE b.id IS NULL",
    "WITH recent AS (SELECT * FROM concert WHERE year > 2012) SELECT max(year) FROM recent",
    "SELECT x.n FROM (SELECT count(*) AS n, country FROM singer GROUP BY country) AS x WHERE x.n > 1",
    "SELECT * FROM singer, concert, stadium WHERE singer.id = singer_id AND concert.id = concert_id",
    "SELECT CASE WHEN age > 3 THEN 'old' ELSE 'new' END, avg(age) FILTER (WHERE id > 2) FROM singer",
    "SELECT row_number() OVER (PARTITION BY country ORDER BY age) FROM singer",
    "SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert WHERE singer_id = singer.id) AND NOT age IS NULL",
    "SELECT 1",
    "VALUES (1, 2)",
)


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
@given(predicted=st.sampled_from(QUERIES), gold=st.sampled_from(QUERIES))
def test_any_edit_and_any_pair_leave_a_query_that_can_be_read(dialect, predicted, gold):
    edits = found(predicted, gold, dialect)

    for numbers in edits.combinations():
        text = edits.applied(numbers)
        assert text is None or parse_one(text, dialect=dialect).sql(dialect=dialect)
    shared = edits.shared_parts({})
    assert (shared.shared == shared.of) is not bool(shared.only_gold)


def test_edits_do_not_change_the_tree_that_all_share():
    queries = [f"{JOINED} ORDER BY 1", 'SELECT name AS n FROM singer WHERE name = "Ann" GROUP BY n']
    trees = [parse_query(query, "sqlite").whole_tree for query in queries]
    before = [repr(tree) for tree in trees]

    edits = sql_edits(*queries, SCHEMA, "sqlite")
    assert [edits.applied(numbers) for numbers in edits.combinations()]

    assert [parse_query(query, "sqlite").whole_tree for query in queries] == trees
    assert [repr(tree) for tree in trees] == before


@pytest.mark.parametrize(("dialect", "is_text"), [("sqlite", True), ("", True), ("postgres", False), ("duckdb", False)])
def test_a_name_in_double_quotes_is_a_text_where_databases_read_it_so(dialect, is_text):
    edits = sql_edits(
        'SELECT id FROM singer WHERE name = "Ann"', "SELECT id FROM singer WHERE name = 'Ann'", SCHEMA, dialect
    )

    assert bool(edits.edits) is not is_text


@pytest.mark.parametrize(
    ("predicted", "gold", "only_predicted", "only_gold", "share"),
    [
        # Tables have their own names, whatever their aliases.
        (
            "SELECT T1.name FROM singer AS T1 JOIN concert AS T2 ON T1.id = T2.id WHERE T2.year = 3",
            "SELECT DISTINCT a.name, age FROM concert b JOIN singer a ON a.id = b.singer_id WHERE year = 4 LIMIT 2",
            ("ON singer.id = concert.id", "WHERE concert.year = 3"),
            ("SELECT singer.age", "DISTINCT", "ON singer.id = concert.singer_id", "WHERE concert.year = 4", "LIMIT 2"),
            (3, 8),
        ),
        # Joins in WHERE are joins.
        (
            "SELECT singer.name FROM singer, concert WHERE singer.id = singer_id AND year = 3 ORDER BY age",
            f"{JOINED} WHERE year = 3 ORDER BY age DESC",
            ("ORDER BY singer.age",),
            ("ORDER BY singer.age DESC",),
            (5, 6),
        ),
        # A table that is read twice keeps its aliases.
        (
            "SELECT a.name FROM singer a JOIN singer b ON a.id = b.age",
            "SELECT a.name FROM singer a LEFT JOIN singer b ON a.id = b.id",
            ("JOIN singer AS b", "ON a.id = b.age"),
            ("LEFT JOIN singer AS b", "ON a.id = b.id"),
            (2, 4),
        ),
        # Columns that one query selects or groups by are in one line.
        (
            "SELECT name FROM singer",
            "SELECT id, age, count(*) FROM singer GROUP BY id, age HAVING count(*) > 1",
            ("SELECT name",),
            ("SELECT id, age, COUNT(*)", "GROUP BY id, age", "HAVING COUNT(*) > 1"),
            (1, 7),
        ),
        # Queries within conditions and in set operations are compared part by part.
        (
            "SELECT name FROM singer WHERE id NOT IN (SELECT singer_id FROM concert WHERE year = 3)",
            "SELECT name FROM singer WHERE id NOT IN (SELECT singer_id FROM concert WHERE year = 4)",
            ("subquery: WHERE year = 3",),
            ("subquery: WHERE year = 4",),
            (5, 6),
        ),
        (
            "SELECT id FROM singer UNION SELECT id FROM concert WHERE year = 3",
            "SELECT id FROM singer EXCEPT SELECT id FROM concert",
            ("second query: UNION", "second query: WHERE year = 3"),
            ("second query: EXCEPT",),
            (5, 6),
        ),
        (
            "SELECT id FROM singer",
            "SELECT id FROM singer UNION SELECT id FROM concert",
            (),
            ("UNION SELECT id FROM concert",),
            (2, 6),
        ),
        (
            "SELECT name FROM singer WHERE id IN (SELECT singer_id FROM concert WHERE year = 3)",
            f"{JOINED} WHERE concert.year = 4",
            ("WHERE concert.year = 3", "id IN (SELECT …) where gold joins"),
            ("WHERE concert.year = 4",),
            (4, 5),
        ),
        # What differs in letter case comes first.
        (
            "SELECT name FROM singer WHERE country = 'fr' AND age > 3",
            "SELECT age FROM singer WHERE country = 'FR'",
            ("WHERE country = 'fr'", "SELECT name", "WHERE age > 3"),
            ("WHERE country = 'FR'", "SELECT age"),
            (1, 3),
        ),
    ],
)
def test_what_two_queries_share_is_told_clause_by_clause(predicted, gold, only_predicted, only_gold, share):
    shared = found(predicted, gold).shared_parts({})

    assert (shared.only_predicted, shared.only_gold) == (only_predicted, only_gold)
    assert (shared.shared, shared.of) == share


def test_of_long_queries_a_few_short_lines_are_told():
    conditions = " AND ".join(f"age <> '{number}{'x' * 300}'" for number in range(40))

    shared = found(f"SELECT name FROM singer WHERE {conditions}", "SELECT name FROM singer").shared_parts({})

    assert len(shared.only_predicted) == 20
    assert max(map(len, shared.only_predicted)) == 200
