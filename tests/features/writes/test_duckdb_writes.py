"""Cases whose queries change data in DuckDB: what is compared, what is told, and what stays as it was."""

from random import Random

import duckdb
import pytest
from write_states import SCHEMA, random_pair, state

from pytest_queryeval import load_cases
from pytest_queryeval.core.answer_json import decode_answer, encode_answer
from pytest_queryeval.core.model import Prediction, QueryOrAnswer
from pytest_queryeval.evaluation import score_prediction
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS

pytestmark = [pytest.mark.feature("duckdb"), pytest.mark.process]

SHOP = """
    CREATE SEQUENCE customer_id START 3;
    CREATE TABLE customer (id INTEGER PRIMARY KEY DEFAULT nextval('customer_id'), name TEXT, city TEXT);
    INSERT INTO customer VALUES (1, 'Ann', 'Graz'), (2, 'Bob', 'Wien');
    CREATE SEQUENCE order_id START 4;
    CREATE TABLE orders (
        id INTEGER DEFAULT nextval('order_id') PRIMARY KEY, customer INTEGER REFERENCES customer (id),
        total DOUBLE, created_at TEXT DEFAULT (random()::TEXT)
    );
    INSERT INTO orders VALUES (1, 1, 9.5, 'a'), (2, 1, 20.0, 'b'), (3, 2, 7.25, 'c');
    CREATE TABLE log (id INTEGER, what TEXT);
    CREATE TABLE empty (a INTEGER, b INTEGER);
    CREATE TABLE many AS SELECT range AS i, range % 7 AS j FROM range(5000);
    CREATE TABLE values_of (
        a DECIMAL(10, 2), b DATE, c TIMESTAMP, d INTERVAL, e UUID, f BLOB, g INTEGER[], h STRUCT(x INTEGER), i DOUBLE,
        j MAP(TEXT, INTEGER), k BOOLEAN, l HUGEINT, m ENUM('a', 'b'), n TIME, "rowid" INTEGER
    );
    INSERT INTO values_of VALUES (
        1.50, '2026-01-02', '2026-01-02 03:04:05', INTERVAL 2 DAY, '00000000-0000-0000-0000-000000000001', 'x', [1, 2],
        {'x': 1}, 'NaN', MAP {'a': 1}, true, 9, 'a', '01:02:03', 7
    );
    CREATE VIEW cities AS SELECT DISTINCT city FROM customer;
    CREATE SCHEMA archive;
    CREATE TABLE archive.customer (id INTEGER, "a""b" TEXT);
    CREATE SEQUENCE archive.bill_id;
    CREATE TABLE archive.bill (id INTEGER DEFAULT nextval('archive.bill_id'), what TEXT);
"""
DOUBLES = "CREATE TABLE n (a INT, b INT GENERATED ALWAYS AS (a * {})); INSERT INTO n (a) VALUES (3)"
NEW_ORDER = "INSERT INTO orders (customer, total) VALUES (1, 5)"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(SHOP)
    before = (folder / "shop.duckdb").read_bytes()
    with Session() as session:

        def evaluated(gold, predicted, *, writes="true", settings=""):
            text = f"kind: sql\nsource: {{duckdb: shop.duckdb}}\nwrites: {writes}\n{settings}\n"
            text += "cases:\n- id: one\n  gold: |\n    " + gold.replace("\n", "\n    ") + "\n"
            (folder / "s.queryeval.yaml").write_text(text, encoding="utf-8")
            (case,) = load_cases(folder / "s.queryeval.yaml", require_prediction=False)
            golds = [session.execute_cached(case.golds[0], case)]
            assert golds[0].error is None, golds[0].error
            prediction = Prediction(QueryOrAnswer(query=predicted), predictor="stated")
            return case, score_prediction(case, golds, prediction, session)

        yield evaluated
    assert (folder / "shop.duckdb").read_bytes() == before
    assert [path.name for path in folder.iterdir() if path.suffix != ".yaml"] == ["shop.duckdb"]


def score(shop, gold, predicted, **settings):
    return shop(gold, predicted, **settings)[1].scores["execution_accuracy"]


def difference(shop, gold, predicted):
    case, trial = shop(gold, predicted)
    return KINDS["sql"].difference(trial.gold.answer, trial.predicted.answer, case, limit=20)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("UPDATE customer SET city = 'Linz' WHERE name = 'Ann'", "update CUSTOMER set city = 'Linz' where id = 1"),
        ("DELETE FROM orders WHERE total < 10", "DELETE FROM orders WHERE id IN (1, 3);"),
        ("INSERT INTO customer (name) VALUES ('Cid')", "INSERT INTO customer VALUES (77, 'Cid', NULL)"),
        ("INSERT INTO customer VALUES (DEFAULT, 'Cid', NULL)", "INSERT INTO customer (name) VALUES ('Cid')"),
        (
            "INSERT INTO customer VALUES (nextval('customer_id'), 'Cid', NULL)",
            "INSERT INTO customer (name) VALUES ('Cid')",
        ),
        (
            "INSERT INTO customer (name) VALUES ('Cid') RETURNING id AS key",
            "INSERT INTO customer VALUES (9, 'Cid', NULL) RETURNING id",
        ),
        ("UPDATE orders SET total = total * 2", "UPDATE orders SET total = total * 2.00000000001"),
        ("UPDATE orders SET total = total", "DELETE FROM log"),
        ("UPDATE many SET j = 9 WHERE i = 4000", "DELETE FROM many WHERE i = 4000; INSERT INTO many VALUES (4000, 9)"),
        ("INSERT INTO empty VALUES (1, 2)", "INSERT INTO empty (b, a) VALUES (2, 1)"),
        ("INSERT INTO empty VALUES (1, 2)", "INSERT INTO empty BY NAME SELECT 2 AS b, 1 AS a"),
        ("DELETE FROM empty; TRUNCATE many", "DELETE FROM many"),
        (
            "MERGE INTO empty USING (SELECT 1 AS a, 2 AS b) AS n ON empty.a = n.a WHEN NOT MATCHED THEN INSERT",
            "INSERT INTO empty VALUES (1, 2)",
        ),
        (
            "CREATE TABLE extra (a INT, b INT); INSERT INTO extra VALUES (1, 2)",
            "CREATE TABLE extra AS SELECT 2 AS b, 1 AS a",
        ),
        ("CREATE INDEX one ON orders (total)", "CREATE INDEX another ON orders (TOTAL)"),
        ("CREATE INDEX one ON empty ((a + 1))", "create index one on main.empty((a+1))"),
        ("CREATE OR REPLACE VIEW cities AS SELECT DISTINCT city FROM customer", "DELETE FROM empty"),
        ("CREATE VIEW one AS SELECT city FROM customer", "CREATE VIEW one AS SELECT city FROM customer WHERE true"),
        ("DROP VIEW cities", "DROP VIEW IF EXISTS main.cities"),
        ("ALTER TABLE empty RENAME TO fuller", "DROP TABLE empty; CREATE TABLE fuller (a INT, b INT)"),
        (
            "ALTER TABLE empty RENAME COLUMN a TO c",
            "ALTER TABLE empty ADD COLUMN c INT; ALTER TABLE empty DROP COLUMN a",
        ),
        ("UPDATE values_of SET a = 2, k = false", "UPDATE values_of SET a = 2.00, k = NOT k"),
        ("INSERT INTO archive.customer VALUES (1, 'x')", 'INSERT INTO archive.customer ("a""b", id) VALUES (\'x\', 1)'),
        ("SELECT name FROM customer", "FROM customer SELECT name"),
        (
            "PIVOT orders ON customer USING sum(total) GROUP BY id",
            "PIVOT orders ON customer USING sum(total) GROUP BY id",
        ),
        ("UPDATE orders SET total = 3 RETURNING customer", "UPDATE orders SET total = 3 RETURNING customer AS who"),
        ("DELETE FROM orders WHERE id > 9", "DELETE FROM orders WHERE id > 8"),
        (
            "INSERT INTO customer (name) VALUES ('Cid') RETURNING [1, 2] AS id",
            "INSERT INTO customer (name) VALUES ('Cid'); SELECT [1, 2] AS id",
        ),
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
        ("DELETE FROM orders WHERE id = 1", "UPDATE orders SET customer = NULL WHERE id = 1"),
        ("UPDATE many SET j = 9 WHERE i = 4000", "UPDATE many SET j = 9 WHERE i = 4001"),
        ("UPDATE many SET j = 9 WHERE i IN (3, 10)", "DELETE FROM log"),  # the same change of two rows
        ("INSERT INTO customer VALUES (9, 'Cid', NULL)", "INSERT INTO customer VALUES (10, 'Cid', NULL)"),
        ("CREATE TABLE extra (a INT, b INT)", "CREATE TABLE extra (a INT, c INT)"),
        ("CREATE TABLE extra (a INT)", "CREATE TABLE another (a INT)"),
        (DOUBLES.format(2), DOUBLES.format(5)),
        ("ALTER TABLE empty ADD COLUMN c INT", "DELETE FROM empty"),
        ("CREATE INDEX one ON orders (total)", "CREATE UNIQUE INDEX one ON orders (total)"),
        ("CREATE INDEX one ON log ((what = 'Paid'))", "CREATE INDEX one ON log ((what = 'paid'))"),
        ("CREATE INDEX one ON log ((what = 'what'))", "CREATE INDEX one ON log ((what = what))"),
        ("CREATE OR REPLACE VIEW cities AS SELECT city FROM customer", "DELETE FROM empty"),
        ("CREATE VIEW one AS SELECT city FROM customer", "CREATE VIEW one AS SELECT name AS city FROM customer"),
        ("DROP TABLE empty", "DELETE FROM empty"),
        ("UPDATE values_of SET g = [1, 2, 3]", "UPDATE values_of SET g = [1, 2]"),
        ("UPDATE values_of SET h = {'x': 2}", "UPDATE values_of SET h = {'x': 3}"),
        ("INSERT INTO archive.customer VALUES (1, 'x')", "INSERT INTO customer VALUES (1000, 'x')"),
        ("UPDATE orders SET total = 3 RETURNING customer", "UPDATE orders SET total = 3"),
        ("UPDATE orders SET total = 3 RETURNING customer", "UPDATE orders SET total = 3 RETURNING total"),
        ('SELECT 0 AS "Count"', "DELETE FROM orders WHERE id > 9"),
        (
            "INSERT INTO customer (name) VALUES ('Cid') RETURNING id",
            "INSERT INTO customer (name) VALUES ('Cid'); SELECT id FROM customer; VALUES (3)",
        ),
    ],
)
def test_scripts_that_lead_to_different_states_differ(shop, gold, predicted):
    assert score(shop, gold, predicted) == 0.0


def test_what_refers_to_a_generated_key_may_have_another_value_as_long_as_it_is_the_same_row(shop):
    gold = "INSERT INTO customer (name) VALUES ('Cid'), ('Dan');"
    gold += "INSERT INTO orders (customer, total, created_at) SELECT id, 5, '' FROM customer WHERE name = 'Cid'"
    same = gold.replace("('Cid'), ('Dan')", "('Dan'), ('Cid')")

    assert score(shop, gold, same) == 1.0
    assert score(shop, gold, same.replace("WHERE name = 'Cid'", "WHERE name = 'Dan'")) == 0.0


@pytest.mark.parametrize(
    "gold",
    [
        "INSERT INTO customer BY NAME SELECT 7 AS id, 'Cid' AS name",
        "INSERT INTO archive.bill VALUES (7, 'x')",
        "INSERT INTO archive.bill (what) VALUES ('x'); UPDATE archive.bill SET id = 7",
    ],
)
def test_a_key_that_gold_states_counts(shop, gold):
    assert score(shop, gold, gold + " ") == 1.0
    assert score(shop, gold, gold.replace("7", "8")) == 0.0


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("INSERT INTO customer BY NAME SELECT 'Cid' AS name", "INSERT INTO customer VALUES (50, 'Cid', NULL)"),
        ("INSERT INTO customer DEFAULT VALUES", "INSERT INTO customer (id) VALUES (50)"),
        ("INSERT INTO archive.bill (what) VALUES ('x')", "INSERT INTO archive.bill VALUES (50, 'x')"),
    ],
)
def test_a_key_that_gold_leaves_to_the_database_does_not_count(shop, gold, predicted):
    assert score(shop, gold, predicted) == 1.0
    assert score(shop, gold, predicted, writes="{keys: [customer.id, archive.bill.id]}") == 0.0


def test_columns_that_are_ignored_do_not_count(shop):
    assert score(shop, NEW_ORDER, NEW_ORDER + " ") == 0.0  # each has its own random number
    assert score(shop, NEW_ORDER, NEW_ORDER + " ", writes="{ignore: [Orders.created_at]}") == 1.0
    assert score(shop, NEW_ORDER, NEW_ORDER.replace("5", "6"), writes="{ignore: [orders.created_at]}") == 0.0


def test_sequences_start_from_the_state_of_the_source_so_that_generated_keys_can_count(shop):
    new = "INSERT INTO customer (name) VALUES ('Cid')"
    failing = "SELECT nextval('customer_id'); SELECT nextval('nowhere')"

    shop(new, failing)

    for stated in (3, 3, 4):
        predicted = f"INSERT INTO customer (id, name) VALUES ({stated}, 'Cid')"
        assert score(shop, new, predicted, writes="{keys: [customer.id]}") == (stated == 3)


def test_a_difference_is_told_by_table_and_rows_are_paired_by_key(shop):
    told = difference(
        shop,
        "UPDATE customer SET city = 'L' WHERE id = 2; DELETE FROM orders WHERE id = 3; INSERT INTO empty VALUES (1, 2)",
        "UPDATE customer SET city = 'E' WHERE id = 2; DELETE FROM orders WHERE id = 2; INSERT INTO log VALUES (9, 'x')",
    )

    assert told.changed[0][0][:5] == ("customer", "changed", 2, "Bob", "L")
    assert told.changed[0][1][:5] == ("customer", "changed", 2, "Bob", "E")
    assert "customer: 1 row changed" in told.summary
    assert "empty: 1 row not added" in told.summary
    assert "log: 1 row added" in told.summary
    assert "orders: 1 row removed, 1 row not removed" in told.summary


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("INSERT INTO orders (customer) VALUES (99)", "invalid", "Violates foreign key constraint"),
        ("DELETE FROM customer WHERE id = 1", "invalid", "still referenced by a foreign key"),
        ("INSERT INTO customer (id) VALUES (1)", "invalid", "Duplicate key"),
        ("DROP TABLE empty; SELECT * FROM empty", "invalid", "empty does not exist"),
        ("-- nothing", "invalid", "the text holds no statement"),
        ("BEGIN; DELETE FROM orders; COMMIT", "unsafe", "only statements that change or read tables are allowed"),
        ("DELETE FROM orders; SET threads = 8", "unsafe", "SET"),
        ("CREATE TEMP TABLE x (a INT)", "unsafe", "CREATE TEMP"),
        ("CREATE SEQUENCE x", "unsafe", "CREATE SEQUENCE"),
        ("UPDATE many SET j = 8; SELECT 1", "too_large", "more than 1,000 rows"),
        ("UPDATE many SET j = 8 WHERE i % 200 = 0; FROM range(980)", "too_large", "more than 1,000 rows"),
    ],
)
def test_statements_that_fail_or_are_refused_say_why(shop, query, kind, message):
    _, trial = shop("SELECT 1", query, settings="max_rows: 1000")

    assert trial.predicted.error.kind == kind
    assert message in trial.predicted.error.message
    assert trial.scores["execution_accuracy"] == 0.0


def test_each_text_starts_from_the_state_of_the_source(shop):
    for number in range(2):
        gold = f"DELETE FROM orders; SELECT count(*), {number} FROM orders"
        assert score(shop, gold, f"DELETE FROM orders; SELECT 0, {number}") == 1.0


def test_what_changed_survives_a_recording(shop):
    query = (
        "UPDATE values_of SET a = a + 1, i = 1.5 RETURNING a, b, c; DROP TABLE empty; CREATE INDEX i ON orders (total)"
    )
    case, trial = shop(query, query)

    answer = decode_answer(encode_answer(trial.gold.answer))

    assert encode_answer(answer) == encode_answer(trial.gold.answer)
    assert answer.equals(trial.predicted.answer, case)


def test_triggers_of_the_source_run(tmp_path):
    source = tmp_path / "t.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE a (x INT); CREATE TABLE b (y INT)")
        try:
            connection.execute("CREATE TRIGGER t AFTER INSERT ON a FOR EACH STATEMENT INSERT INTO b VALUES (1)")
        except duckdb.ParserException:
            pytest.skip("DuckDB has triggers since version 2")
    suite = "{kind: sql, source: {duckdb: t.duckdb}, writes: true, cases: [{id: one, gold: INSERT INTO a VALUES (7)}]}"
    (tmp_path / "s.queryeval.yaml").write_text(suite, encoding="utf-8")
    (case,) = load_cases(tmp_path / "s.queryeval.yaml", require_prediction=False)

    with Session() as session:
        answer = session.execute(case.golds[0], case).answer

    assert [(change.table, *change.added) for change in answer.tables] == [("a", (7,)), ("b", (1,))]


def test_a_source_that_changes_is_copied_again(tmp_path):
    source = tmp_path / "t.duckdb"
    suite = "{kind: sql, source: {duckdb: t.duckdb}, writes: true, cases: [{id: one, gold: SELECT 1}]}"
    (tmp_path / "s.queryeval.yaml").write_text(suite, encoding="utf-8")
    rows = []
    with Session() as session:
        for number in range(3):
            with duckdb.connect(str(source)) as connection:
                connection.execute(f"CREATE OR REPLACE TABLE a AS SELECT {number} AS x")
            (case,) = load_cases(tmp_path / "s.queryeval.yaml", require_prediction=False)
            rows += session.execute(QueryOrAnswer(query="FROM a"), case).answer.returned.rows

    assert rows == [(0,), (1,), (2,)]


def test_verdicts_agree_with_a_comparison_of_whole_states(tmp_path):
    random, verdicts = Random(1), []
    with duckdb.connect(str(tmp_path / "small.duckdb")) as connection:
        connection.execute(SCHEMA)
    (tmp_path / "s.queryeval.yaml").write_text(
        "{kind: sql, source: {duckdb: small.duckdb}, writes: true, cases: [{id: one, gold: SELECT 1}]}",
        encoding="utf-8",
    )
    (case,) = load_cases(tmp_path / "s.queryeval.yaml", require_prediction=False)
    with Session() as session, duckdb.connect() as memory:
        memory.execute(SCHEMA)
        while len(verdicts) < 80:
            pair = random_pair(random)
            states = []
            for script in pair:
                memory.begin()
                states.append(state(memory, script, duckdb.Error))
                memory.rollback()
            if None in states:
                continue
            gold, predicted = (session.execute(QueryOrAnswer(query=script), case).answer for script in pair)
            verdicts.append((gold.equals(predicted, case), states[0] == states[1], pair))

    assert [verdict for verdict in verdicts if verdict[0] != verdict[1]] == []
    assert 20 < sum(is_equal for is_equal, _, _ in verdicts) < 60
