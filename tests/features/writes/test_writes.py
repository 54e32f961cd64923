"""Cases whose queries change data: what is compared, what is told, and what stays as it was."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from random import Random

import pytest
from write_states import SCHEMA, random_pair, state

from pytest_queryeval import load_cases
from pytest_queryeval.core.answer_json import decode_answer, encode_answer
from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.core.model import Prediction, QueryOrAnswer, Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation import evaluate_case, score_prediction
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.writes.stated_keys import returned_columns, stated_columns
from pytest_queryeval.languages import KINDS
from pytest_queryeval.sandbox.host import Hosts

SHOP = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    INSERT INTO customer VALUES (1, 'Ann', 'Graz'), (2, 'Bob', 'Wien');
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY AUTOINCREMENT, customer INTEGER REFERENCES customer (id) ON DELETE CASCADE,
        total REAL, created_at TEXT DEFAULT (strftime('%f', 'now') || random())
    );
    INSERT INTO orders VALUES (1, 1, 9.5, 'a'), (2, 1, 20.0, 'b'), (3, 2, 7.25, 'c');
    CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT);
    CREATE TRIGGER gone AFTER DELETE ON orders BEGIN INSERT INTO log (what) VALUES (old.id || ' is gone'); END;
    CREATE TABLE empty (a INTEGER, b INTEGER);
    CREATE TABLE child (
        parent INTEGER REFERENCES customer (id) DEFERRABLE INITIALLY DEFERRED, PRIMARY KEY (parent)
    ) WITHOUT ROWID;
    CREATE VIEW cities AS SELECT DISTINCT city FROM customer;
    CREATE VIEW names AS SELECT name FROM customer;
    CREATE TRIGGER named INSTEAD OF INSERT ON names BEGIN INSERT INTO customer (name) VALUES (new.name); END;
    CREATE VIRTUAL TABLE notes USING fts5(words);
    INSERT INTO notes VALUES ('a first note');
    CREATE TABLE friend (
        full_name TEXT AS (first || ' ' || last), id INTEGER PRIMARY KEY, first TEXT, last TEXT,
        letters INTEGER GENERATED ALWAYS AS (length(first)) STORED
    );
    INSERT INTO friend VALUES (1, 'Ann', 'Lee'), (2, 'Bo', 'Ray');
"""
DOUBLES = "CREATE TABLE n (a INTEGER, b INTEGER GENERATED ALWAYS AS (a * {}) {}); INSERT INTO n VALUES (3)"
NEW_ORDER = "INSERT INTO orders (customer, total) VALUES (1, 5)"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    connection = sqlite3.connect(folder / "shop.db")
    connection.executescript(SHOP)
    connection.close()
    before = (folder / "shop.db").read_bytes()
    with Session() as session:

        def evaluated(gold, predicted, *, writes="true", settings=""):
            text = f"kind: sql\nsource: shop.db\nwrites: {writes}\n{settings}\ncases:\n- id: one\n  gold: |\n    "
            text += gold.replace("\n", "\n    ") + "\n"
            (folder / "s.queryeval.yaml").write_text(text, encoding="utf-8")
            (case,) = load_cases(folder / "s.queryeval.yaml", require_prediction=False)
            golds = [session.execute_cached(case.golds[0], case)]
            assert golds[0].error is None, golds[0].error
            prediction = Prediction(QueryOrAnswer(query=predicted), predictor="stated")
            return case, score_prediction(case, golds, prediction, session)

        yield evaluated
    assert (folder / "shop.db").read_bytes() == before
    assert [path.name for path in folder.iterdir() if path.suffix != ".yaml"] == ["shop.db"]


def score(shop, gold, predicted, **settings):
    return shop(gold, predicted, **settings)[1].scores["execution_accuracy"]


def difference(shop, gold, predicted):
    case, trial = shop(gold, predicted)
    return KINDS["sql"].difference(trial.gold.answer, trial.predicted.answer, case, limit=20)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("UPDATE customer SET city = 'Linz' WHERE name = 'Ann'", "update customer set city = 'Linz' where id = 1"),
        (
            "DELETE FROM customer WHERE id = 1",
            "DELETE FROM orders WHERE customer = 1; DELETE FROM customer WHERE id = 1;",
        ),
        ("INSERT INTO customer (name) VALUES ('Cid')", "INSERT INTO customer VALUES (77, 'Cid', NULL)"),
        ("INSERT INTO customer VALUES (NULL, 'Cid', NULL)", "INSERT INTO customer (name) VALUES ('Cid')"),
        (
            "INSERT INTO customer (name) VALUES ('Cid'); INSERT INTO customer (name) VALUES ('Dan')",
            "INSERT INTO customer (name) VALUES ('Dan'), ('Cid')",
        ),
        ("UPDATE orders SET total = total * 2", "UPDATE orders SET total = total * 2.00000000001"),
        ("UPDATE orders SET total = total", "UPDATE orders SET total = total * 1.00000000001"),
        ("INSERT INTO empty VALUES (1, 2)", "INSERT INTO empty (b, a) VALUES (2, 1)"),
        ("CREATE TABLE extra (a, b); INSERT INTO extra VALUES (1, 2)", "CREATE TABLE extra AS SELECT 2 AS b, 1 AS a"),
        ("CREATE INDEX one ON orders (total)", "CREATE INDEX another ON orders (total)"),
        ("CREATE INDEX one ON orders (total)", 'create index one on "orders"("TOTAL" asc) -- all of them'),
        ("CREATE INDEX one ON empty (a) WHERE b > 5", "CREATE INDEX one ON empty(a) where\nB>5;"),
        ("DROP VIEW cities; CREATE VIEW cities AS SELECT DISTINCT city FROM customer", "DELETE FROM empty"),
        ("INSERT INTO names VALUES ('Cid')", "INSERT INTO customer (name) VALUES ('Cid')"),
        ("INSERT INTO customer (name) VALUES ('Cid')", "INSERT INTO names VALUES ('Cid')"),
        ("CREATE VIEW one AS SELECT city FROM customer", "CREATE VIEW one AS SELECT city FROM customer WHERE true"),
        ("DROP VIEW cities", "DROP VIEW IF EXISTS cities"),
        ("ALTER TABLE empty RENAME TO full", "DROP TABLE empty; CREATE TABLE full (a, b)"),
        (
            "ALTER TABLE empty RENAME COLUMN a TO c",
            "ALTER TABLE empty ADD COLUMN c; UPDATE empty SET c = a; ALTER TABLE empty DROP COLUMN a",
        ),
        ("INSERT INTO notes VALUES ('another')", "INSERT INTO notes (words) VALUES ('another')"),
        ("INSERT INTO friend VALUES (NULL, 'Cy', 'Fox')", "INSERT INTO friend (first, last) VALUES ('Cy', 'Fox')"),
        ("UPDATE friend SET last = 'x' WHERE letters = 3", "UPDATE friend SET last = 'x' WHERE full_name = 'Ann Lee'"),
        (DOUBLES.format(2, "STORED"), DOUBLES.format("4 / 2", "VIRTUAL")),
        ("ALTER TABLE friend DROP COLUMN full_name", "ALTER TABLE friend DROP full_name"),
        ("SELECT name FROM customer", "SELECT name FROM customer WHERE id > 0"),
        ("INSERT INTO child VALUES (9); DELETE FROM child", "DELETE FROM child"),
        ("UPDATE customer SET city = 'x' RETURNING name", "UPDATE customer SET city = 'x' RETURNING name AS who"),
        ("UPDATE customer SET city = 'x'", "UPDATE customer SET city = 'x' RETURNING name"),
        ("UPDATE customer SET city = 'x'", "UPDATE customer SET city = 'x'; SELECT 'done'"),
    ],
)
def test_scripts_that_lead_to_the_same_state_are_equal(shop, gold, predicted):
    assert score(shop, gold, predicted) == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("INSERT INTO empty VALUES (1, 2)", "INSERT INTO empty VALUES (2, 1)"),
        ("INSERT INTO empty VALUES (1, 2)", "INSERT INTO empty VALUES (1, 2), (1, 2)"),
        ("UPDATE customer SET city = 'Linz' WHERE id = 1", "UPDATE customer SET city = 'Linz' WHERE id = 2"),
        ("UPDATE customer SET city = 'Linz' WHERE id = 1", "SELECT 1 WHERE false"),
        ("UPDATE customer SET city = 'Linz'", "UPDATE customer SET city = 'LINZ'"),
        ("DELETE FROM orders WHERE id = 1", "DELETE FROM orders WHERE id = 1; DELETE FROM log"),
        ("DELETE FROM orders WHERE id = 1", "UPDATE orders SET customer = NULL WHERE id = 1"),
        ("INSERT INTO customer VALUES (9, 'Cid', NULL)", "INSERT INTO customer VALUES (10, 'Cid', NULL)"),
        ("CREATE TABLE extra (a, b)", "CREATE TABLE extra (a, c)"),
        ("CREATE TABLE extra (a)", "CREATE TABLE other (a)"),
        ("ALTER TABLE empty ADD COLUMN c", "UPDATE empty SET a = 1"),
        ("CREATE INDEX one ON orders (total)", "CREATE UNIQUE INDEX one ON orders (total)"),
        ("CREATE INDEX one ON empty (a) WHERE b > 5", "CREATE INDEX one ON empty (a) WHERE b > 500"),
        ("CREATE INDEX one ON empty (a)\nWHERE b > 5", "CREATE INDEX one ON empty (a)"),
        ("CREATE INDEX one ON customer ((city = 'Graz'))", "CREATE INDEX one ON customer ((city = 'graz'))"),
        ("CREATE INDEX one ON customer ((city = 'name'))", "CREATE INDEX one ON customer ((city = name))"),
        ("CREATE INDEX one ON empty (a DESC)", "CREATE INDEX one ON empty (a)"),
        ("CREATE UNIQUE INDEX one ON customer (city COLLATE NOCASE)", "CREATE UNIQUE INDEX one ON customer (city)"),
        ("CREATE VIEW one AS SELECT city FROM customer", "CREATE VIEW one AS SELECT name AS city FROM customer"),
        ("DROP TABLE empty", "DELETE FROM empty"),
        ("INSERT INTO notes VALUES ('another')", "INSERT INTO notes VALUES ('others')"),
        ("ALTER TABLE friend ADD COLUMN initial TEXT AS (substr(first, 1, 1)) VIRTUAL", "SELECT 1 WHERE 0"),
        (
            "ALTER TABLE friend ADD COLUMN initial TEXT AS (first)",
            "ALTER TABLE friend ADD COLUMN initial TEXT AS (last)",
        ),
        ("ALTER TABLE friend DROP COLUMN letters", "SELECT 1 WHERE 0"),
        (DOUBLES.format(2, "STORED"), DOUBLES.format(5, "STORED")),
        (DOUBLES.format(2, "VIRTUAL"), DOUBLES.format(5, "VIRTUAL")),
        ("UPDATE customer SET city = 'x' RETURNING name", "UPDATE customer SET city = 'x'"),
        ("UPDATE customer SET city = 'x' RETURNING name", "UPDATE customer SET city = 'x' RETURNING city"),
    ],
)
def test_scripts_that_lead_to_other_states_differ(shop, gold, predicted):
    assert score(shop, gold, predicted) == 0.0


@pytest.mark.parametrize(
    "statements",
    [
        "ALTER TABLE customer ADD COLUMN level TEXT CHECK (level IN ('x', 'y'))",
        "ALTER TABLE main.customer ADD level TEXT NOT NULL DEFAULT 'x' CHECK (level <> name)",
        "ALTER TABLE customer ADD COLUMN letters INTEGER NOT NULL AS (length(name)) VIRTUAL",
        "ALTER TABLE child ADD COLUMN level TEXT CHECK (level IS NULL)",
        "CREATE TABLE n (a TEXT PRIMARY KEY, b UNIQUE, c CHECK (c > 0), UNIQUE (b, c)); INSERT INTO n VALUES (1, 2, 3)",
        "CREATE TABLE n (a INTEGER, b TEXT, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID; INSERT INTO n VALUES (1, 'x')",
        "CREATE TABLE n (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO n VALUES (NULL); DROP TABLE n",
        "CREATE TABLE n (a PRIMARY KEY); ALTER TABLE n RENAME TO m; ALTER TABLE m RENAME COLUMN a TO b",
        "CREATE UNIQUE INDEX i ON customer (lower(name)) WHERE city IS NOT NULL",
        "ALTER TABLE orders RENAME COLUMN total TO price; ALTER TABLE orders DROP COLUMN created_at",
    ],
)
def test_what_sqlite_itself_runs_for_a_statement_is_allowed(tmp_path, statements):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(SHOP.replace("AUTOINCREMENT", ""))  # else the table for it would be there
    source = Source(name="shop", engine="sqlite", settings={"path": "shop.db"}, folder=tmp_path, writes=True)

    with Hosts() as hosts:
        execution = ENGINES["sqlite"].open(source, hosts).execute(statements, timeout=20, max_rows=100)

    assert execution.error is None, execution.error


def test_what_refers_to_a_generated_key_may_have_another_value_as_long_as_it_is_the_same_row(shop):
    gold = "INSERT INTO customer (name) VALUES ('Cid'), ('Dan');"
    gold += "INSERT INTO child SELECT id FROM customer WHERE name = 'Cid'"
    same = gold.replace("('Cid'), ('Dan')", "('Dan'), ('Cid')")

    assert score(shop, gold, same) == 1.0
    assert score(shop, gold, same.replace("WHERE name = 'Cid'", "WHERE name = 'Dan'")) == 0.0


CID_AND_DAN = "INSERT INTO customer (name) VALUES ('Cid'), ('Dan');"
DAN_AND_CID = "INSERT INTO customer (name) VALUES ('Dan'), ('Cid');"


@pytest.mark.parametrize(
    ("gold", "same", "different"),
    [
        (
            "SELECT id FROM customer WHERE name = 'Cid'",
            "SELECT id AS key FROM customer WHERE name = 'Cid'",
            "SELECT id FROM customer WHERE name = 'Dan'",
        ),
        (
            "SELECT last_insert_rowid()",
            "SELECT min(c.id) FROM customer AS c WHERE id > 2",
            "SELECT max(id) FROM customer",
        ),
        ("SELECT max(id) AS id FROM customer", "SELECT id - 1 AS id FROM customer WHERE id = 4", "SELECT 4 AS id"),
        (
            "SELECT id, id + 0 AS id FROM customer ORDER BY name",
            "SELECT id + 0 AS id, id FROM customer ORDER BY name",
            "SELECT id, 7 - id AS id FROM customer WHERE id > 2 UNION ALL SELECT 1, 1 UNION ALL SELECT 2, 2",
        ),
        (
            "INSERT INTO orders SELECT NULL, id, NULL, '' FROM customer WHERE name = 'Cid' RETURNING id, customer",
            "INSERT INTO orders SELECT 9, id, NULL, '' FROM customer WHERE name = 'Cid' RETURNING id, customer",
            "INSERT INTO orders SELECT 9, id, NULL, '' FROM customer WHERE name = 'Cid' RETURNING id, 7 - customer",
        ),
    ],
)
@pytest.mark.parametrize("settings", ["", "compare: {row_order: strict}", "compare: {duplicates: ignore}"])
def test_a_generated_key_that_is_returned_has_to_be_that_of_the_same_row(shop, gold, same, different, settings):
    gold = CID_AND_DAN + gold

    assert score(shop, gold, DAN_AND_CID + same, settings=settings) == 1.0
    assert score(shop, gold, DAN_AND_CID + different, settings=settings) == 0.0


def test_it_is_told_how_what_is_returned_differs(shop):
    gold = CID_AND_DAN + "SELECT id FROM customer WHERE name = 'Cid'"

    assert difference(shop, gold, CID_AND_DAN).summary == "returned: nothing, gold has rows"
    assert difference(shop, gold, gold.replace("= 'Cid'", "= 'Dan'")).summary == "returned: the keys of other new rows"
    assert difference(shop, gold, CID_AND_DAN + "SELECT 5").summary == "returned: gold 3, predicted 5"
    assert difference(shop, gold, CID_AND_DAN + "SELECT id, name FROM customer").summary.startswith("returned: ")


@pytest.mark.parametrize("query", ["REPLACE", "REPLACE INTO", "EXPLAIN SELECT 1", "SELECT (", "SELECT 1; VACUUM"])
def test_nothing_is_read_of_texts_with_a_statement_that_cannot_be_read(query):
    assert stated_columns(query, "sqlite", ()) is None
    assert returned_columns(query, "sqlite") == ()


def test_columns_that_are_ignored_do_not_count(shop):
    assert score(shop, NEW_ORDER, NEW_ORDER) == 0.0  # each has its own time
    assert score(shop, NEW_ORDER, NEW_ORDER, writes="{ignore: [Orders.created_at]}") == 1.0
    assert score(shop, NEW_ORDER, NEW_ORDER.replace("5", "6"), writes="{ignore: [orders.created_at]}") == 0.0


@pytest.mark.parametrize(
    "gold",
    [
        "REPLACE INTO log VALUES (7, 'x')",
        "replace into log (what, id) VALUES ('x', 7)",
        "WITH new AS (SELECT 7) REPLACE INTO log (id) SELECT * FROM new",
        "INSERT INTO log (what) VALUES ('x'); UPDATE log SET (id, what) = (7, 'y')",
        """CREATE UNIQUE INDEX u ON log (what);
        INSERT INTO log (what) VALUES ('x'), ('x') ON CONFLICT (what) DO UPDATE SET (id, what) = (7, 'y')""",
        "INSERT INTO main.log VALUES (7, 'x'); ALTER TABLE log RENAME TO notice",
        "INSERT INTO log VALUES (7, 'x'); ALTER TABLE log RENAME id TO number",
        "CREATE TABLE n (id INTEGER PRIMARY KEY); INSERT INTO n SELECT 7; ALTER TABLE n RENAME TO m",
        "CREATE TABLE n AS SELECT 7 AS id",
    ],
)
def test_a_key_that_gold_states_counts(shop, gold):
    replaced = gold.replace("CREATE TABLE n AS", "CREATE TABLE n (id INTEGER PRIMARY KEY); INSERT INTO n")

    assert score(shop, gold, replaced + " ") == 1.0
    assert score(shop, gold, replaced.replace("7", "8")) == 0.0


@pytest.mark.parametrize(
    "gold",
    [
        "INSERT INTO customer DEFAULT VALUES",
        "INSERT INTO customer SELECT NULL, 'Cid', NULL UNION ALL SELECT NULL, 'Dan', NULL",
        "REPLACE INTO customer (name) VALUES ('Cid')",
        "INSERT INTO customer (name) VALUES ('Cid'); ALTER TABLE empty ADD COLUMN c",
        "INSERT INTO customer (name) VALUES ('Cid'); ALTER TABLE customer RENAME TO person",
    ],
)
def test_a_key_that_gold_leaves_to_the_database_does_not_count(shop, gold):
    table = "person" if "person" in gold else "customer"
    spaced = f"INSERT INTO customer (id) VALUES (50); {gold}; DELETE FROM {table} WHERE id = 50"

    assert score(shop, gold, spaced) == 1.0
    assert score(shop, gold, spaced, writes="{keys: [customer.id, person.id]}") == 0.0


def test_the_digest_of_a_gold_changes_with_what_counts_alone(shop):
    def digest(gold, writes="{ignore: [orders.created_at]}"):
        case, _ = shop(gold, gold, writes=writes)
        with Session() as session:
            return evaluate_case(replace(case, predicted=case.golds[0]), session).gold_answers_digest

    gold = "INSERT INTO orders (customer, total) VALUES (1, 5) RETURNING id, total"
    text = "INSERT INTO orders (id, customer, total) VALUES (77, 1, 5) RETURNING id, total"
    changed = [gold.replace("5", "6"), gold.replace("id, total", "id, 6"), text]
    later = f"INSERT INTO orders (total) VALUES (9); {gold}; DELETE FROM orders WHERE total = 9; DELETE FROM log"

    assert digest(gold) == digest(f"DELETE FROM empty; {gold.lower()}") == digest(later)
    assert digest(gold) != digest(gold, writes="true")
    assert len({digest(query) for query in (gold, *changed)}) == 4


def test_generated_keys_count_where_the_suite_says_so(shop):
    gold = "INSERT INTO customer (name) VALUES ('Cid')"
    predicted = "INSERT INTO customer (id, name) VALUES (50, 'Cid')"

    assert score(shop, gold, predicted) == 1.0
    assert score(shop, gold, predicted, writes="{keys: [customer.id]}") == 0.0


def test_values_are_equal_by_the_settings_of_compare(shop):
    gold, predicted = "UPDATE customer SET city = 'Linz', name = 'A'", "UPDATE customer SET city = 'LINZ', name = 'A'"

    assert score(shop, gold, predicted, settings="compare: {case: ignore}") == 1.0


def test_other_metrics_have_no_value(shop):
    gold = "UPDATE customer SET city = 'Linz'"
    settings = "metrics: [execution_accuracy, row_matching_f1, exact_set_match, valid_query, ves, challenged_accuracy]"
    _, trial = shop(gold, gold, settings=settings)

    assert trial.scores == {**dict.fromkeys(trial.scores), "execution_accuracy": 1.0}


def test_a_difference_is_told_by_table_and_rows_are_paired_by_key(shop):
    told = difference(
        shop,
        "UPDATE customer SET city = 'L' WHERE id = 1; DELETE FROM orders WHERE id = 3; INSERT INTO empty VALUES (1, 2)",
        "UPDATE customer SET city = 'E' WHERE id = 1; DELETE FROM orders WHERE id = 2; INSERT INTO log VALUES (9, 'x')",
    )

    assert told.columns == (
        "table",
        "change",
        "id",
        "name",
        "city",
        "a",
        "b",
        "what",
        "customer",
        "total",
        "created_at",
    )
    assert told.changed[0] == (
        ("customer", "changed", 1, "Ann", "L", *(None,) * 6),
        ("customer", "changed", 1, "Ann", "E", *(None,) * 6),
    )
    assert ("orders", "removed", 2, None, None, None, None, None, 1, 20.0, "b") in told.missing
    assert ("orders", "not removed", 3, None, None, None, None, None, 2, 7.25, "c") in told.extra
    assert ("empty", "not added", None, None, None, 1, 2, *(None,) * 4) in told.missing
    assert "customer: 1 row changed" in told.summary
    assert "empty: 1 row not added" in told.summary
    assert "orders: 1 row removed, 1 row not removed" in told.summary


def test_a_difference_in_what_returned_is_told(shop):
    told = difference(shop, "UPDATE empty SET a = 1; SELECT 3", "UPDATE empty SET a = 1; SELECT 4")

    assert told.summary == "returned: gold 3, predicted 4"


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        (
            "INSERT INTO child VALUES (99)",
            "invalid",
            "FOREIGN KEY constraint failed at the end: child refers to customer",
        ),
        ("INSERT INTO orders (customer) VALUES (99)", "invalid", "FOREIGN KEY constraint failed"),
        ("DROP TABLE empty; SELECT * FROM empty", "invalid", "no such table: empty"),
        ("SELECT * FROM before.customer", "invalid", "no such table: customer"),
        ("-- nothing", "invalid", "the text holds no statement"),
        (
            "BEGIN; DELETE FROM orders; COMMIT",
            "unsafe",
            "only statements that change or read tables are allowed: BEGIN",
        ),
        ("DELETE FROM sqlite_master", "unsafe", "table sqlite_master may not be modified"),
        ("DELETE FROM orders; PRAGMA foreign_keys = off", "unsafe", "PRAGMA"),
        (
            "SELECT * FROM pragma_collation_list",
            "unsafe",
            "only tables of the database may be read: a table that SQLite computes",
        ),
        (
            "INSERT INTO sqlite_sequence VALUES ('orders', 99)",
            "unsafe",
            "the tables of SQLite itself may not be changed: INSERT sqlite_sequence",
        ),
        (
            "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x (a)')",
            "unsafe",
            "the tables of SQLite itself may not be changed: INSERT sqlite_master",
        ),
    ],
)
def test_statements_that_fail_or_are_refused_say_why(shop, query, kind, message):
    _, trial = shop("SELECT 1", query)

    assert trial.predicted.error.kind == kind
    assert message in trial.predicted.error.message
    assert trial.scores["execution_accuracy"] == 0.0


def test_each_text_starts_from_the_state_of_the_source(shop):
    for _ in range(2):
        assert score(shop, "DELETE FROM orders; SELECT count(*) FROM log", "DELETE FROM orders; SELECT 3") == 1.0


def test_what_changed_survives_a_recording(shop):
    query = (
        "UPDATE customer SET name = NULL WHERE id = 1 RETURNING id; CREATE TABLE extra (b BLOB);"
        "INSERT INTO extra VALUES (x'00ff'); CREATE INDEX i ON extra (b); DROP TABLE empty"
    )
    case, trial = shop(query, query)

    answer = decode_answer(encode_answer(trial.gold.answer))

    assert encode_answer(answer) == encode_answer(trial.gold.answer)
    assert answer.equals(trial.predicted.answer, case)


def test_verdicts_agree_with_a_comparison_of_whole_states(tmp_path):
    random, verdicts = Random(0), []
    connection = sqlite3.connect(tmp_path / "small.db")
    connection.executescript(SCHEMA)
    connection.close()
    (tmp_path / "s.queryeval.yaml").write_text(
        "{kind: sql, source: small.db, writes: true, cases: [{id: one, gold: SELECT 1}]}", encoding="utf-8"
    )
    (case,) = load_cases(tmp_path / "s.queryeval.yaml", require_prediction=False)
    with Session() as session:
        while len(verdicts) < 200:
            pair = random_pair(random)
            states = []
            for script in pair:
                with sqlite3.connect(":memory:", isolation_level=None) as memory:
                    memory.executescript(SCHEMA)
                    states.append(state(memory, script, sqlite3.Error))
            if None in states:
                continue
            gold, predicted = (session.execute(QueryOrAnswer(query=script), case).answer for script in pair)
            verdicts.append((gold.equals(predicted, case), states[0] == states[1], pair))

    assert [verdict for verdict in verdicts if verdict[0] != verdict[1]] == []
    assert 50 < sum(is_equal for is_equal, _, _ in verdicts) < 150


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("writes: {ignore: [created_at]}", "name a column with its table, as in orders.created_at"),
        ("writes: maybe", "true or false"),
        ("writes: {skip: [a.b]}", "unknown key 'skip'"),
    ],
)
def test_invalid_settings_are_reported_with_their_place(tmp_path, text, problem):
    suite = tmp_path / "s.queryeval.yaml"
    suite.write_text(f"kind: sql\nsource: a.db\n{text}\ncases:\n- {{id: one, gold: SELECT 1, predicted: SELECT 1}}\n")

    with pytest.raises(SuiteError, match=problem) as error:
        load_cases(suite)

    assert "s.queryeval.yaml:3" in str(error.value)


def test_sources_that_cannot_be_copied_and_stated_answers_are_refused(tmp_path):
    suite = tmp_path / "s.queryeval.yaml"
    http = "{http: {url: 'http://localhost', body: {q: '{query}'}, rows: $}}"
    for source in (f"source: {http}", f"source: a.db\ngold_source: {http}"):
        suite.write_text(f"kind: sql\nwrites: true\n{source}\ncases: [{{id: a, gold: SELECT 1, predicted: SELECT 1}}]")
        with pytest.raises(SuiteError, match=r"`writes` needs a source of one of these engines: .*; not 'http'"):
            load_cases(suite)
    suite.write_text(
        "{kind: sql, writes: true, source: a.db, cases: [{id: a, gold_table: {columns: [a], rows: []}, predicted: x}]}"
    )
    with pytest.raises(SuiteError, match="`writes` needs golds that are queries"):
        load_cases(suite)


def test_a_case_can_leave_the_setting_of_its_suite(tmp_path):
    suite = tmp_path / "s.queryeval.yaml"
    suite.write_text("{kind: sql, writes: true, source: a.db, cases: [{id: a, writes: false, gold: b, predicted: c}]}")

    (case,) = load_cases(suite)

    assert not case.settings.source.writes
