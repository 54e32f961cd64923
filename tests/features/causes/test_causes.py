"""Why a prediction is wrong: found by running its query with single edits, or told by its failure or difference."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from samples import answer, make_case, query
from sqlglot import parse_one

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.model import QueryOrAnswer, Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES, EngineType, SourceFingerprint
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.extensions import COUNTEREXAMPLE_SEARCHES
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes.search import MAX_COMBINATIONS, MAX_EXECUTIONS
from pytest_queryeval.features.causes.sql.edits import SqlEdits, sql_edits
from pytest_queryeval.languages import KINDS
from pytest_queryeval.results.case_json import result_json
from pytest_queryeval.runs.evaluate import evaluate
from pytest_queryeval.text.redaction import MARK

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, born DATE, country TEXT);
INSERT INTO singer VALUES
    (1, 'Ana', 30, '1990-01-31', 'FR'), (2, 'Bo', 40, '1980-12-01', 'DE'),
    (3, 'Cy', 50, '1970-06-15', 'FR'), (4, 'Dee', NULL, NULL, 'AT'), (5, 'Eva', 50, '1970-07-15', 'DE');
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer_id INTEGER, year INTEGER);
INSERT INTO concert VALUES (1, 1, 2014), (2, 1, 2015), (3, 2, 2014), (4, NULL, 2013);
"""
NAMES = "SELECT name FROM singer"
JOIN = "SELECT singer.name FROM singer JOIN concert ON singer.id = concert.singer_id"
IN_2014 = "concert.year = 2014"
LEFT_JOIN = "LEFT JOIN concert AS c ON s.id = c.singer_id"
REVERSE_JOIN = "SELECT singer.name FROM concert JOIN singer ON singer.id = concert.singer_id"
ENDLESS = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)"


@pytest.fixture
def database(tmp_path):
    with sqlite3.connect(tmp_path / "music.sqlite") as connection:
        connection.executescript(SCRIPT)
    return Source(name="music.sqlite", engine="sqlite", settings={"path": "music.sqlite"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("predicted", "gold", "label"),
    [
        (
            "SELECT name FROM singer WHERE born > DATE '1985-01-01'",
            "SELECT name FROM singer WHERE born > DATE '1971-01-01'",
            "wrong-value",
        ),
        (
            "SELECT list(name ORDER BY id) FROM singer",
            "SELECT list(name ORDER BY id DESC) FROM singer",
            "wrong-expression",
        ),
        (
            "SELECT country, name FROM singer QUALIFY row_number() OVER (ORDER BY id) = 1",
            "SELECT country, name FROM singer QUALIFY row_number() OVER (ORDER BY id) = 2",
            "wrong-value",
        ),
        (
            "SELECT name FROM singer WHERE name ILIKE 'b%'",
            "SELECT name FROM singer WHERE name ILIKE 'c%'",
            "wrong-value",
        ),
        (
            "SELECT name FROM singer WHERE name LIKE 'b%'",
            "SELECT name FROM singer WHERE name ILIKE 'b%'",
            "wrong-operator",
        ),
        (
            "SELECT place.city FROM (SELECT {'city': name, 'land': country} AS place FROM singer)",
            "SELECT place.land FROM (SELECT {'city': name, 'land': country} AS place FROM singer)",
            "wrong-column",
        ),
        ("FROM singer SELECT name WHERE age > 30", "FROM singer SELECT name WHERE age >= 30", "wrong-operator"),
    ],
)
@pytest.mark.feature("duckdb")
def test_duckdb(tmp_path, session, predicted, gold, label):
    (tmp_path / "music.sql").write_text(SCRIPT, encoding="utf-8")
    source = Source(name="music.sql", engine="duckdb", settings={"script": "music.sql"}, folder=tmp_path)
    case = make_case(source=source, golds=(query(gold),), predicted=query(predicted), dialect="duckdb")

    cause = evaluate_case(case, session).cause

    assert (cause.edits[0].label if cause else None) == label


@pytest.fixture
def cause_of(database, session, monkeypatch):
    """The cause of a wrong prediction, and the answer of its repaired query, which is gold's."""
    monkeypatch.setattr("pytest_queryeval.features.causes.search.CAUSE_SECONDS", 60.0)  # whatever the load

    def find(predicted, *golds, **changes):
        golds = tuple(gold if isinstance(gold, QueryOrAnswer) else query(gold) for gold in golds)
        case = make_case(source=database, golds=golds, predicted=query(predicted), **changes)
        return evaluate_case(case, session).cause

    return find


def edits(cause):
    return [(edit.label, edit.clause, edit.change) for edit in cause.edits]


def test_the_cause_is_the_edit_after_which_the_answer_is_golds(cause_of):
    cause = cause_of(f"{NAMES} WHERE age > 30", f"{NAMES} WHERE age > 40")

    assert edits(cause) == [("wrong-value", "WHERE", "30 → 40")]
    assert cause.repaired_query == "SELECT name FROM singer WHERE age > 40"


def test_an_edit_that_repairs_the_answer_on_the_data_at_hand_only_needs_another_one(cause_of):
    predicted = f"{NAMES} WHERE age = 30 AND country = 'DE'"
    gold = f"{NAMES} WHERE age >= 50 AND country = 'DE'"

    cause = cause_of(predicted, gold)

    assert edits(cause) == [
        ("wrong-value", "WHERE", "30 → 50"),
        ("wrong-operator", "WHERE", "= → >=; no effect on this data"),
    ]
    assert cause.repaired_query == gold
    assert cause.is_tested


def test_an_edit_that_chooses_another_row_of_a_tie_has_an_effect(cause_of):
    concerts = "SELECT singer_id, year FROM concert WHERE year <> 2013"

    cause = cause_of(
        f"{concerts} GROUP BY -singer_id ORDER BY max(year) DESC LIMIT 1", f"{concerts} ORDER BY year LIMIT 1"
    )

    assert edits(cause) == [
        ("wrong-grouping", "GROUP", "-singer_id → nothing"),
        ("wrong-order", "ORDER", "MAX(year) DESC → year"),
    ]


def test_an_answer_without_rows_may_hide_the_effect_of_any_edit(cause_of):
    cause = cause_of(f"{NAMES} WHERE age > 5", f"{NAMES} WHERE age > 500 AND country = 'FR'")

    assert edits(cause) == [
        ("wrong-value", "WHERE", "5 → 500"),
        ("missing-condition", "WHERE", "nothing → country = 'FR'"),
    ]


def test_a_missing_join_shows_its_condition_where_that_is_more_than_an_equality(cause_of):
    joined = f"{NAMES} JOIN concert ON singer.id = concert.singer_id"

    assert edits(cause_of(NAMES, joined)) == [("missing-join", "FROM", "nothing → concert")]
    assert edits(cause_of(NAMES, f"{joined} OR concert.singer_id IS NULL")) == [
        ("missing-join", "FROM", "nothing → concert ON id = concert.singer_id OR concert.singer_id IS NULL")
    ]


def test_a_third_edit_may_be_needed_on_other_data(cause_of):
    predicted = "SELECT singer_id FROM concert WHERE year > 2013"
    gold = f"{JOIN} WHERE concert.year <> 2013"

    cause = cause_of(predicted, gold)

    assert [edit.label for edit in cause.edits] == ["missing-join", "wrong-column", "wrong-operator"]
    assert [edit.change.endswith("; no effect on this data") for edit in cause.edits] == [False, False, True]


def test_an_edit_that_is_enough_on_the_source_comes_before_another_query(cause_of, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.causes.sql.edits.TELLING_ROWS", 2)
    predicted = f"{REVERSE_JOIN} JOIN singer s ON s.id = singer_id WHERE singer.age > 20 GROUP BY concert.id"

    cause = cause_of(predicted, f"{JOIN} INTERSECT SELECT name FROM singer WHERE age > 20")

    assert edits(cause) == [("missing-distinct", "SELECT", "nothing → DISTINCT")]
    assert not cause.is_tested


def test_of_few_rows_an_edit_that_is_enough_on_the_source_may_be_by_chance(cause_of, monkeypatch):
    gold = f"{JOIN} INTERSECT SELECT name FROM singer WHERE age > 20"
    labels = []
    for rows in (2, 3):
        monkeypatch.setattr("pytest_queryeval.features.causes.sql.edits.TELLING_ROWS", rows)
        labels.append(
            [edit.label for edit in cause_of(f"{REVERSE_JOIN} WHERE age > 20 GROUP BY concert.id", gold).edits]
        )

    assert labels == [["missing-distinct"], ["extra-condition", "set-operation"]]


@pytest.mark.parametrize(
    ("predicted", "gold", "causes"),
    [
        # A condition that gold has in the query that it joins.
        (
            "SELECT id FROM singer WHERE id IN (SELECT singer_id FROM concert WHERE year = 2014)",
            "SELECT DISTINCT s.id FROM singer s JOIN concert c ON s.id = c.singer_id WHERE c.year = 2015",
            ["wrong-value WHERE 2014 → 2015"],
        ),
        (
            "SELECT id FROM singer WHERE id IN (SELECT singer_id FROM concert GROUP BY singer_id HAVING count(*) > 0)",
            "SELECT s.id FROM singer s JOIN concert c ON s.id = c.singer_id GROUP BY s.id HAVING count(*) > 1",
            ["wrong-value HAVING 0 → 1"],
        ),
        # One idea in several clauses.
        (
            "SELECT country, count(*) FROM singer GROUP BY country",
            "SELECT born, count(*) FROM singer GROUP BY born",
            ["wrong-column SELECT country → born"],
        ),
        (
            f"{NAMES} WHERE name LIKE '%a%'",
            f"{NAMES} WHERE name = 'a'",
            ["wrong-operator WHERE name LIKE '%a%' → name = 'a'"],
        ),
        (f"{NAMES} ORDER BY age LIMIT 1", NAMES, ["wrong-limit LIMIT ORDER BY age LIMIT 1 → nothing"]),
        (NAMES, f"{NAMES} ORDER BY age DESC LIMIT 2", ["missing-order ORDER nothing → age DESC LIMIT 2"]),
        (
            f"{NAMES} WHERE age = (SELECT min(age) FROM singer)",
            f"{NAMES} ORDER BY age LIMIT 1",
            ["nesting WHERE age = (SELECT MIN(age) FROM singer) → ORDER BY age LIMIT 1"],
        ),
        (
            f"{NAMES} WHERE id IN (SELECT singer_id FROM concert WHERE year > 2013)",
            f"{JOIN} WHERE concert.year > 2013",
            ["missing-join FROM nothing → concert"],
        ),
        (
            "SELECT s.id, count(c.id) FROM singer s LEFT JOIN concert c ON s.id = c.singer_id GROUP BY s.id",
            "SELECT singer_id, count(id) FROM concert GROUP BY singer_id",
            ["extra-join FROM singer AS s → nothing"],
        ),
        (
            f"{NAMES} WHERE country = 'fr' OR name = 'bo'",
            f"{NAMES} WHERE country = 'FR' OR name = 'Bo'",
            ["value-case WHERE 'fr' 'bo' → 'FR' 'Bo'"],
        ),
        # The second edit is of a query that the first one leaves.
        (
            "SELECT id FROM singer WHERE age > 40 UNION SELECT singer_id FROM concert",
            "SELECT id FROM singer WHERE age > 30",
            ["wrong-value WHERE 40 → 30", "set-operation SET UNION SELECT singer_id FROM concert → nothing"],
        ),
        # The same edit of both queries.
        (
            f"{NAMES} WHERE id < 5 INTERSECT {NAMES} WHERE id > 2",
            f"{NAMES} WHERE id < 5 AND age > 30 INTERSECT {NAMES} WHERE id > 2 AND age > 30",
            [
                "missing-condition WHERE nothing → age > 30; in query 1 of INTERSECT",
                "missing-condition WHERE nothing → age > 30; in query 2 of INTERSECT; no effect on this data",
            ],
        ),
        # Tables that an edit leaves without use, with those that only join them.
        (
            "SELECT s.country FROM concert c JOIN singer s ON s.id = c.singer_id WHERE c.id > 1",
            "SELECT singer_id FROM concert WHERE id > 1",
            ["wrong-column SELECT s.country → c.singer_id; drops singer, which nothing else uses"],
        ),
        # What one query has beyond the first one of gold.
        (
            "SELECT s.name FROM singer s LEFT JOIN concert c ON s.id = singer_id WHERE year <> 2014 OR c.id IS NULL",
            f"{NAMES} EXCEPT {JOIN} WHERE {IN_2014}",
            [f"set-operation SET {LEFT_JOIN} WHERE c.year <> 2014 OR c.id IS NULL → EXCEPT {JOIN} WHERE {IN_2014}"],
        ),
        # In another order of tables, and with more of them.
        (
            "SELECT s.name FROM singer s JOIN concert c ON s.id = c.singer_id JOIN concert d ON s.id = d.singer_id",
            f"{REVERSE_JOIN} INTERSECT {NAMES} WHERE age > 30",
            [f"set-operation SET JOIN concert AS d ON s.id = d.singer_id → INTERSECT {NAMES} WHERE age > 30"],
        ),
        # The rows of groups are counted.
        (
            "SELECT count(*) FROM singer GROUP BY country HAVING count(*) > 1",
            "SELECT count(*) FROM (SELECT country FROM singer GROUP BY country HAVING count(*) > 1)",
            ["nesting SELECT nothing → COUNT(*) FROM (…)"],
        ),
        # Of two differences in a clause, each is an edit, even if one of them is in a nested query.
        (
            f"{NAMES} WHERE age > (SELECT min(age) FROM singer WHERE country = 'FR')",
            f"{NAMES} WHERE age > (SELECT min(age) FROM singer WHERE country = 'DE') AND id < 5",
            ["wrong-value WHERE 'FR' → 'DE'", "missing-condition WHERE nothing → id < 5"],
        ),
        # Of duplicates alone.
        (
            "SELECT country FROM singer",
            "SELECT country FROM singer WHERE id < 3 UNION SELECT country FROM singer",
            ["missing-distinct SELECT nothing → DISTINCT"],
        ),
    ],
)
def test_a_cause_is_the_smallest_edit_that_says_all(cause_of, predicted, gold, causes):
    assert [" ".join(edit) for edit in edits(cause_of(predicted, gold))] == causes


def test_without_small_databases_a_cause_is_compared_on_the_source_only(cause_of, monkeypatch):
    monkeypatch.setattr(COUNTEREXAMPLE_SEARCHES, "available", lambda: ())

    cause = cause_of(f"{NAMES} WHERE age = 30 AND country = 'DE'", f"{NAMES} WHERE age >= 50 AND country = 'DE'")

    assert edits(cause) == [("wrong-value", "WHERE", "30 → 50")]
    assert not cause.is_tested


@pytest.mark.parametrize(
    ("predicted", "gold", "label"),
    [
        (f"{NAMES} WHERE age <> 50", f"{NAMES} WHERE age IS NULL OR age <> 50", "missing-condition"),
        (f"{NAMES} WHERE born = NULL", f"{NAMES} WHERE born IS NULL", "wrong-operator"),
        (f"{NAMES} WHERE born > '1980-12-01'", f"{NAMES} WHERE born >= '1980-12-01'", "wrong-operator"),
        (f"{NAMES} WHERE born > date('1990-01-01')", f"{NAMES} WHERE born > date('1970-07-01')", "wrong-value"),
        (JOIN, JOIN.replace("JOIN", "LEFT JOIN"), "wrong-join-type"),
        ("SELECT avg(age) FROM singer", "SELECT sum(age) FROM singer", "wrong-aggregate"),
        ("SELECT count(age) FROM singer", "SELECT count(*) FROM singer", "wrong-column"),
        (f"{NAMES} WHERE country = 'fr'", f"{NAMES} WHERE country = 'FR'", "value-case"),
        (f"{NAMES} ORDER BY age LIMIT 2", f"{NAMES} ORDER BY age DESC LIMIT 2", "wrong-order"),
        ("SELECT id FROM singer", "SELECT id FROM concert", "wrong-table"),
    ],
)
def test_nulls_dates_and_joins(cause_of, predicted, gold, label):
    cause = cause_of(predicted, gold)

    assert [edit.label for edit in cause.edits] == [label]


def test_a_text_that_only_predicted_has_as_the_data_is_the_fault_of_gold(cause_of):
    cause = cause_of(f"{NAMES} WHERE country = 'FR'", f"{NAMES} WHERE country = 'fr'")

    change = "gold's 'fr' is not in singer.country, 'FR' is; with that, the answers are equal"
    assert edits(cause) == [("gold-value", "WHERE", change)]
    assert cause.repaired_query is None


def test_beside_a_wrong_text_of_gold_predicted_may_be_wrong(cause_of):
    gold = f"{NAMES} WHERE country = 'fr' AND age >= 30 AND name = 'ANA'"

    cause = cause_of("SELECT id FROM singer WHERE country = 'FR' AND age >= 30", gold)

    assert edits(cause) == [
        (
            "gold-value",
            "WHERE",
            "gold's 'ANA' is not in singer.name, 'Ana' is; gold's 'fr' is not in singer.country, 'FR' is",
        ),
        ("missing-condition", "WHERE", "nothing → name = 'Ana'"),
        ("wrong-column", "SELECT", "id → name"),
    ]
    assert cause.repaired_query is None


def test_a_text_that_gold_compares_two_columns_with_is_corrected_for_neither(cause_of):
    cause = cause_of(f"{NAMES} WHERE country = 'FR'", f"{NAMES} WHERE country = 'fr' OR name = 'fr'")

    assert "gold-value" not in [edit.label for edit in cause.edits]


@pytest.mark.parametrize(
    ("predicted", "gold"),
    [
        ("age > 20 AND country = 'FR'", "age > 20 AND (country = 'FR' OR name = 'Bo')"),
        ("age > 20 AND (country = 'FR' OR name = 'Cid')", "age > 20 AND (country = 'FR' OR name = 'Cid' OR id = 2)"),
        ("NOT country = 'FR'", "NOT (country = 'FR' OR name = 'Bo')"),
        ("id < 3", "id < 3 AND (country = 'FR' OR name = 'Cid')"),
    ],
)
def test_conditions_with_and_beside_or_are_in_parentheses(cause_of, predicted, gold):
    cause = cause_of(f"{NAMES} WHERE {predicted}", f"{NAMES} WHERE {gold}")

    assert parse_one(cause.repaired_query) == parse_one(f"{NAMES} WHERE {gold}")


UNLIKE = "SELECT max(id), country FROM singer WHERE country <> 'DE' AND age <> 40 GROUP BY country HAVING count(*) > 1"


def test_a_wrong_text_of_gold_may_not_be_all(cause_of):
    cause = cause_of(f"{NAMES} WHERE country = 'FR' ORDER BY id LIMIT 1", UNLIKE.replace("<> 'DE'", "= 'fr'"))

    change = "gold's 'fr' is not in singer.country, 'FR' is; with that, too, the answers differ"
    assert edits(cause) == [("gold-value", "WHERE", change)]


def test_a_text_that_the_data_has_in_another_letter_case_is_told_where_there_is_no_cause(
    database, session, monkeypatch
):
    monkeypatch.setattr("pytest_queryeval.features.causes.search.CAUSE_SECONDS", 60.0)  # whatever the load
    predicted = f"{NAMES} WHERE country = 'fr' ORDER BY id LIMIT 1"

    result = evaluate_case(make_case(source=database, golds=(query(UNLIKE),), predicted=query(predicted)), session)

    assert "WHERE country = 'fr' (singer.country has 'FR')" in result.shown.details["cause"]["only_predicted"]


def test_two_edits_where_one_is_not_enough(cause_of):
    cause = cause_of("SELECT name FROM singer WHERE age > 30", "SELECT country FROM singer WHERE age > 45")

    assert edits(cause) == [("wrong-value", "WHERE", "30 → 45"), ("wrong-column", "SELECT", "name → country")]
    assert cause.repaired_query == "SELECT country FROM singer WHERE age > 45"


def test_three_differences_have_no_cause_but_are_listed(database, session):
    predicted = "SELECT name FROM singer WHERE age > 30 ORDER BY name LIMIT 1"
    gold = "SELECT id FROM singer WHERE age > 45 ORDER BY name LIMIT 3"

    result = evaluate_case(make_case(source=database, golds=(query(gold),), predicted=query(predicted)), session)

    assert result.cause is None
    assert result.shown.details["cause"] == {
        "shared": 2,
        "of": 5,
        "only_gold": ("SELECT id", "WHERE age > 45", "LIMIT 3"),
        "only_predicted": ("SELECT name", "WHERE age > 30", "LIMIT 1"),
    }


def test_of_several_edits_that_repair_it_the_first_clause_counts(cause_of, monkeypatch):
    monkeypatch.setattr(COUNTEREXAMPLE_SEARCHES, "available", lambda: ())
    predicted = "SELECT max(age) FROM singer WHERE age > 50"
    gold = "SELECT min(age) FROM singer WHERE age > 40 AND id < 4"

    assert [edit.clause for edit in cause_of(predicted, gold).edits] == ["WHERE"]


def test_a_right_answer_has_no_cause_whatever_its_text(cause_of):
    assert cause_of(f"{NAMES} WHERE age >= 31", f"{NAMES} WHERE age > 30") is None


def test_the_policy_of_the_case_decides_what_is_right(cause_of):
    predicted, gold = "SELECT country FROM singer WHERE id < 3", "SELECT country FROM singer"

    assert edits(cause_of(predicted, gold)) == [("extra-condition", "WHERE", "id < 3 → nothing")]
    ignoring = cause_of(predicted, f"{gold} WHERE id < 5", policy=Policy(duplicates="ignore"))
    assert edits(ignoring) == [("wrong-value", "WHERE", "3 → 5")]


def test_any_choice_among_rows_that_tie_is_right(cause_of):
    gold = "SELECT name FROM singer ORDER BY age DESC LIMIT 1"

    assert cause_of("SELECT name FROM singer WHERE id = 5", gold) is None
    cause = cause_of("SELECT name FROM singer ORDER BY age DESC, id DESC LIMIT 2", gold)
    assert [edit.label for edit in cause.edits] == ["wrong-limit"]
    assert cause.repaired_query.endswith("id DESC LIMIT 1")


def test_a_score_that_is_not_requested_would_be_0(cause_of):
    changes = {"metrics": ("valid_query",), "thresholds": {}}

    assert cause_of(f"{NAMES} WHERE age > 30", f"{NAMES} WHERE age > 40", **changes) is not None
    assert cause_of(f"{NAMES} WHERE age > 39", f"{NAMES} WHERE age >= 40", **changes) is None


def test_of_several_golds_the_closest_one_counts(cause_of):
    cause = cause_of(f"{NAMES} WHERE age > 30", f"{NAMES} WHERE age > 40", f"{NAMES} WHERE age > 45")

    assert edits(cause) == [("wrong-value", "WHERE", "30 → 40")]


def test_a_stored_gold_has_no_cause(cause_of):
    assert cause_of(NAMES, answer(("Ana",))) is None


def test_a_text_that_the_parser_cannot_read_has_no_cause(cause_of):
    assert cause_of(f"{NAMES} WHERE name GLOB 'A*' AND " + "(" * 50 + "1" + ")" * 50, NAMES) is None


@pytest.mark.parametrize(
    ("predicted", "label"),
    [
        ("SELECT zzz FROM singer WHERE yyy = 1", "unknown-column"),
        ("SELECT zzz FROM qqq WHERE yyy = 1", "unknown-table"),
        ("SELECT", "syntax"),
        ("SELECT sum(count(*)) FROM concert", "syntax"),
        ("", "empty"),
        ("DELETE FROM singer", "unsafe"),
        ("SELECT a.id FROM singer a, singer b, singer c, singer d", "too-large"),
        (f"SELECT {ENDLESS}", "timeout"),
    ],
)
def test_a_failure_is_its_own_cause(cause_of, predicted, label):
    cause = cause_of(predicted, NAMES, timeout=1)

    assert [edit.label for edit in cause.edits] == [label]
    assert cause.edits[0].change
    assert cause.repaired_query is None


def test_the_messages_of_other_databases_name_what_is_unknown():
    from pytest_queryeval.languages.sql.kind import name_label

    messages = {
        'Binder Error: Referenced column "nme" not found in FROM clause!': "unknown-column",
        "Catalog Error: Table with name singers does not exist!": "unknown-table",
        'column "nme" does not exist': "unknown-column",
        "Unknown column 'nme' in 'field list'": "unknown-column",
        "Table 'music.singers' doesn't exist": "unknown-table",
        'Binder Error: Table "s" does not have a column named "hall"': "unknown-column",
        'missing FROM-clause entry for table "t2"': "unknown-table",
        "ambiguous column name: id": "ambiguous-column",
        'syntax error at or near "FORM"': None,
    }
    assert {message: name_label(message) for message in messages} == messages


class Counting:
    """An engine that has another answer for every query, and notes what it ran."""

    def __init__(self, fails_at=None, seconds=0.0):
        self.executed, self.fails_at = [], fails_at
        self.seconds, self.now = seconds, 0.0  # that each query takes, and the time

    def open(self, source, hosts):
        return self

    def execute(self, text, *, timeout, max_rows):
        from pytest_queryeval.core.model import Execution, Failure
        from pytest_queryeval.core.table import Table

        self.executed.append((text, timeout, max_rows))
        self.now += min(self.seconds, timeout)
        if self.seconds > timeout:
            return Execution(query=text, error=Failure(kind="timeout", message="ran out of time"))
        if len(self.executed) == self.fails_at:
            return Execution(query=text, error=Failure(kind="timeout", message="ran out of time"))
        return Execution(query=text, answer=Table(columns=("n",), rows=((len(self.executed),),)))

    def close(self):
        pass


def counted(monkeypatch, session, *, is_local=True, fails_at=None, seconds=0.0):
    """What an engine runs for a case whose queries differ in a great deal, gold and predicted first."""
    engine = Counting(fails_at, seconds)
    monkeypatch.setattr("pytest_queryeval.evaluation.session.monotonic", lambda: engine.now)
    files = SourceFingerprint(files=lambda source: ["a.db"] if is_local else [])
    monkeypatch.setitem(ENGINES._members, "counting", EngineType(opener=engine.open, fingerprint=files))
    monkeypatch.setattr("pytest_queryeval.evaluation.session.check_exists", lambda source, name: None)
    source = Source(name="a", engine="counting", settings={}, folder=Path())
    terms = [f"c{number} = {number}" for number in range(20)]
    others = [f"c{number} = {number + 100}" for number in range(20)]
    predicted = f"SELECT a FROM t WHERE {' AND '.join(terms)} GROUP BY a"
    gold = f"SELECT b FROM t WHERE {' AND '.join(others)} GROUP BY b"
    case = make_case(source=source, golds=(query(gold),), predicted=query(predicted), timeout=7.0, max_rows=11)
    return evaluate_case(case, session).cause, engine.executed


def test_the_search_ends_after_answers_of_many_cells(monkeypatch, session):
    monkeypatch.setattr("pytest_queryeval.features.causes.search.MAX_CELLS", 9)

    cause, executed = counted(monkeypatch, session)

    assert cause is None
    assert len(executed) == 2 + 10


def test_the_search_ends_with_its_budget(monkeypatch, session):
    cause, executed = counted(monkeypatch, session)

    assert cause is None
    assert len(executed) == 2 + MAX_EXECUTIONS == 52
    assert len({text for text, _, _ in executed}) == 52


def test_the_search_ends_where_edits_make_few_queries(monkeypatch, cause_of):
    predicted = f"SELECT {', '.join(['1'] * 500)} FROM singer"  # the same query whichever column is left out
    applied, original = [], SqlEdits.applied
    monkeypatch.setattr(SqlEdits, "applied", lambda edits, numbers: applied.append(numbers) or original(edits, numbers))

    assert cause_of(predicted, f"{NAMES} WHERE age > 40") is None
    assert len(applied) == MAX_COMBINATIONS + 1  # the query without an edit


def test_what_another_dialect_cannot_say_is_not_logged(caplog):
    edits = sql_edits("SELECT a FROM t FOR UPDATE", "SELECT b FROM t FOR UPDATE", Schema(), "sqlite")

    assert edits.applied([0])
    assert not caplog.records


def test_the_search_ends_with_the_first_edit_that_runs_out_of_time(monkeypatch, session):
    cause, executed = counted(monkeypatch, session, fails_at=5)

    assert cause is None
    assert len(executed) == 5


@pytest.mark.parametrize(("mode", "seconds"), [("auto", 1.0), ("full", 7.0)])
def test_repaired_queries_have_the_limits_of_the_case_but_a_second_unless_all_causes_are_asked_for(
    monkeypatch, mode, seconds
):
    with Session(cause_mode=mode) as session:
        _, executed = counted(monkeypatch, session)

    assert [tuple(limits) for _, *limits in executed[:2]] == [(7.0, 11)] * 2
    assert {tuple(limits) for _, *limits in executed[2:]} == {(seconds, 2)}  # one row more than gold's


def test_the_queries_of_one_cause_run_for_a_second_together(monkeypatch, session):
    cause, executed = counted(monkeypatch, session, seconds=0.25)

    assert cause is None
    assert [timeout for _, timeout, _ in executed] == [7.0, 7.0, 1.0, 0.75, 0.5, 0.25]


def test_constraints_are_checked_of_the_tables_that_the_queries_read(tmp_path, monkeypatch):
    tables = (f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY REFERENCES singer);" for number in range(40))
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.executescript(SCRIPT + "".join(tables))
    source = Source(name="a", engine="sqlite", settings={"path": "a.sqlite"}, folder=tmp_path)
    predicted, gold = f"{NAMES} WHERE age = 30 AND country = 'DE'", f"{NAMES} WHERE age >= 50 AND country = 'DE'"
    executed, execute = [], Session.execute

    def note(session, content, *arguments, **options):
        executed.append(content.query)
        return execute(session, content, *arguments, **options)

    monkeypatch.setattr(Session, "execute", note)
    with Session() as session:
        case = make_case(source=source, golds=(query(gold),), predicted=query(predicted))
        assert evaluate_case(case, session).cause.is_tested

    assert "SELECT id FROM singer WHERE id IS NULL" in executed
    assert not [text for text in executed if "t1" in text]


@pytest.mark.parametrize(("mode", "is_local", "runs"), [("auto", False, 2), ("full", False, 52), ("off", True, 2)])
def test_where_causes_are_looked_for(monkeypatch, mode, is_local, runs):
    with Session(cause_mode=mode) as session:
        _, executed = counted(monkeypatch, session, is_local=is_local)

    assert len(executed) == runs


def test_without_causes_failures_have_none_either(database):
    case = make_case(source=database, golds=(query(NAMES),), predicted=query("SELECT nme FROM singer"))

    (entry,) = evaluate([case], cause="off")["cases"]
    (told,) = evaluate([case])["cases"]

    assert (entry["cause"], told["cause"]["edits"][0]["label"]) == (None, "unknown-column")


@pytest.mark.parametrize(
    "gold",
    [
        f"{NAMES} WHERE age > 20 AND id < 9",
        f"{NAMES} WHERE id IN (SELECT singer_id FROM concert)",
    ],
)
@pytest.mark.parametrize("text", ["'; DROP TABLE singer; --", "\x00", "a\u202eb", "%s{}[]"])
def test_hostile_texts_stay_texts(cause_of, database, gold, text):
    quoted = text.replace("'", "''")

    cause_of(f"{NAMES} WHERE name = '{quoted}'", gold)

    with sqlite3.connect(database.folder / "music.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM singer").fetchone() == (5,)


def test_secrets_are_removed_from_causes(database, session, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2-hunter2")
    predicted, gold = f"{NAMES} WHERE country <> 'hunter2-hunter2'", f"{NAMES} WHERE country <> 'FR'"
    case = make_case(source=database, golds=(query(gold),), predicted=query(predicted))
    result = evaluate_case(case, session)
    hidden = replace(result.cause, repaired_query="password=hunter2-hunter2")

    entry = result_json(replace(result, cause=hidden), nodeid="a::a", path="a", outcome="failed")

    assert "hunter2" not in json.dumps(entry["cause"])
    assert MARK in entry["cause"]["repaired_query"]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 1}, [("missing-member", "$.b", "nothing → 2")]),
        ({"a": 1}, {"a": 1, "b": None}, [("extra-member", "$.b", "null → nothing")]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [("wrong-value", "$.a[1]", "3 → 2")]),
        ({"a": 1}, {"a": "1"}, [("wrong-type", "$.a", '"1" → 1')]),
        ({"a": True}, {"a": False}, [("wrong-value", "$.a", "false → true")]),
        ({"a": -1}, {"a": 1}, [("wrong-value", "$.a", "1 → -1")]),
        ({"a": 1}, [], [("wrong-type", "$", '[] → {"a":1}')]),
    ],
)
def test_json_differences(gold, predicted, expected):
    cause = KINDS["json"].difference_cause(JsonAnswer(gold), JsonAnswer(predicted))

    assert (edits(cause) if cause else []) == expected


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        ({"FLOW": {"AREA": ["NO"], "FREQ": ["A"]}}, []),
        ({"FLOW": {"AREA": ["SE"], "FREQ": ["A"]}}, [("wrong-code", "AREA", "SE → NO")]),
        ({"FLOW": {"AREA": ["NO", "SE"], "FREQ": ["A"]}}, [("wrong-code", "AREA", "SE → nothing")]),
        ({"FLOW": {"AREA": ["NO"]}}, [("missing-dimension", "FREQ", "nothing → A")]),
        ({"FLOW": {"AREA": ["NO"], "FREQ": ["A"], "SEX": ["F"]}}, [("extra-dimension", "SEX", "F → nothing")]),
        ({"OTHER": {"AREA": ["NO"], "FREQ": ["A"]}}, [("wrong-dataset", "", "OTHER → FLOW")]),
    ],
)
def test_sdmx_differences(predicted, expected):
    from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term

    def selection(datasets):
        return Selection(
            datasets=tuple(
                DatasetSelection(
                    id=name,
                    dimensions=tuple(
                        DimensionSelection(name=dimension, terms=tuple(Term(id=code, name=None) for code in codes))
                        for dimension, codes in dimensions.items()
                    ),
                )
                for name, dimensions in datasets.items()
            )
        )

    gold = selection({"FLOW": {"AREA": ["NO"], "FREQ": ["A"]}})
    cause = KINDS["sdmx"].difference_cause(gold, selection(predicted))

    assert (edits(cause) if cause else []) == expected


@pytest.mark.parametrize(
    ("predicted", "change"),
    [
        ([("MEX", "Mexico")], "MEX (Mexico) → MEX (Mexican Republic)"),
        ([("MEX", None)], "MEX → MEX (Mexican Republic)"),
        ([("MEX", "Mexico"), ("USA", "United States")], "MEX (Mexico), USA → MEX (Mexican Republic)"),
        ([("CAN", "Mexican Republic")], "CAN → MEX"),
    ],
)
def test_a_cause_names_terms_of_the_same_id_whose_names_differ(predicted, change):
    from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term

    def selection(terms):
        dimension = DimensionSelection(name="COUNTRY", terms=tuple(Term(id=code, name=name) for code, name in terms))
        return Selection(datasets=(DatasetSelection(id="FLOW", dimensions=(dimension,)),))

    cause = KINDS["sdmx"].difference_cause(selection([("MEX", "Mexican Republic")]), selection(predicted))

    assert edits(cause) == [("wrong-code", "COUNTRY", change)]
