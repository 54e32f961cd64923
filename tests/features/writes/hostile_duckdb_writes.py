"""Statements for DuckDB that no model should write where it may change data, and the kinds of failure they end in."""

from __future__ import annotations

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
NEW_ORDER = "INSERT INTO orders (customer, total) VALUES (1, 5)"
SCHEMA = """
    CREATE SEQUENCE order_id START 3;
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT);
    INSERT INTO customer VALUES (1, 'Ann', 'Graz'), (2, 'Bob', 'Wien');
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY DEFAULT nextval('order_id'), customer INTEGER REFERENCES customer (id), total DOUBLE
    );
    INSERT INTO orders VALUES (1, 1, 9.5), (2, 2, 7.25);
    CREATE TABLE log (what TEXT);
    CREATE TABLE numbers AS SELECT range AS i FROM range(1000);
    CREATE VIEW cities AS SELECT DISTINCT city FROM customer;
    CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;
    CREATE INDEX by_city ON customer (city);
    CREATE MACRO twice(x) AS 2 * x;
    CREATE TYPE mood AS ENUM ('good');
"""

# What DuckDB's parser takes for something that is not allowed, each also behind a statement that is.
COMMANDS = [
    *("ATTACH '{folder}/new.duckdb' AS x", "ATTACH ':memory:' AS x", "ATTACH '{database}' AS x (READ_ONLY)"),
    *(
        "ATTACH 'sqlite:{folder}/new.db' AS x",
        "DETACH shop",
        "DETACH DATABASE IF EXISTS x",
        "USE temp",
        "USE shop.main",
    ),
    *("COPY customer TO '{folder}/new.csv'", "COPY (FROM log) TO '{folder}/new.csv'"),
    *("COPY log FROM '{secret}'", "COPY customer TO '{database}'", "COPY (SELECT 1) TO '/dev/stdout'"),
    *("COPY customer TO '{folder}/new.parquet' (FORMAT parquet)", "COPY FROM DATABASE shop TO temp"),
    *(
        "EXPORT DATABASE '{folder}/new'",
        "EXPORT DATABASE '{folder}/new' (FORMAT parquet)",
        "IMPORT DATABASE '{folder}'",
    ),
    *(
        "INSTALL httpfs",
        "FORCE INSTALL httpfs",
        "INSTALL spatial FROM community",
        "LOAD httpfs",
        "LOAD '{folder}/x.so'",
    ),
    *("PRAGMA database_size", "PRAGMA enable_profiling", "PRAGMA memory_limit = '10GB'", "PRAGMA version"),
    *("PRAGMA table_info('customer')", "PRAGMA force_checkpoint", "PRAGMA disable_checkpoint_on_shutdown"),
    *("PRAGMA temp_directory = '{folder}'", "PRAGMA enable_checkpoint_on_shutdown", "PRAGMA threads = 8"),
    *("SET threads = 8", "SET GLOBAL memory_limit = '10GB'", "SET enable_external_access = true"),
    *("SET lock_configuration = false", "SET SESSION search_path = 'x'", "SET VARIABLE x = 1", "RESET threads"),
    *("SET disabled_filesystems = ''", "SET temp_directory = '{folder}'", "SET schema = 'x'", "RESET VARIABLE x"),
    *("SET allow_unsigned_extensions = true", "SET home_directory = '{folder}'", "SET log_query_path = '{folder}/new'"),
    *("SET extension_directory = '{folder}'", "SET secret_directory = '{folder}'", "SET TimeZone = 'Europe/Vienna'"),
    *("BEGIN", "BEGIN TRANSACTION", "START TRANSACTION", "COMMIT", "END", "ROLLBACK", "ABORT"),
    *(
        "BEGIN TRANSACTION READ ONLY",
        "CHECKPOINT",
        "FORCE CHECKPOINT",
        "CHECKPOINT shop",
        "VACUUM",
        "VACUUM ANALYZE log",
    ),
    *("ANALYZE", "EXPLAIN DELETE FROM log", "EXPLAIN ANALYZE DELETE FROM log", "EXPLAIN SELECT 1"),
    *("PREPARE p AS DELETE FROM log", "EXECUTE p", "EXECUTE p(1)", "DEALLOCATE p", "CALL pragma_version()"),
    *("CALL enable_logging()", "CALL checkpoint()", "CALL force_checkpoint('shop')", "CALL duckdb_tables()"),
    *("CREATE TEMP TABLE x (a INT)", "CREATE TEMPORARY TABLE x AS SELECT 1", "CREATE OR REPLACE TEMP TABLE x (a INT)"),
    *("CREATE TEMP VIEW x AS SELECT 1", "CREATE OR REPLACE TEMP VIEW customer AS SELECT 1"),
    *(
        "create/**/temp/**/table x (a int)",
        "CREATE /* TABLE */ TEMP TABLE x (a INT)",
        "CREATE -- TABLE\n TEMP TABLE x (a INT)",
    ),
    *("CREATE MACRO f(x) AS x", "CREATE OR REPLACE MACRO twice(x) AS x", "CREATE MACRO f() AS TABLE SELECT 1"),
    *("CREATE TEMP MACRO f(x) AS x", "CREATE FUNCTION f(x) AS x", "DROP MACRO twice", "DROP FUNCTION twice"),
    *(
        "CREATE TYPE x AS ENUM ('a')",
        "CREATE TEMP TYPE x AS INT",
        "DROP TYPE mood",
        "CREATE SCHEMA x",
        "DROP SCHEMA main",
    ),
    *(
        "CREATE SEQUENCE x",
        "CREATE OR REPLACE SEQUENCE order_id",
        "CREATE TEMP SEQUENCE x",
        "DROP SEQUENCE order_id CASCADE",
    ),
    *("ALTER SEQUENCE order_id OWNED BY log", "COMMENT ON TABLE log IS 'x'", "COMMENT ON COLUMN log.what IS 'x'"),
    *("CREATE SECRET (TYPE s3)", "CREATE PERSISTENT SECRET x (TYPE http)", "DROP SECRET x", "DROP PERSISTENT SECRET x"),
    "CREATE OR REPLACE TEMPORARY SECRET x (TYPE gcs, KEY_ID 'a', SECRET 'b')",
]
# Of these the words are fine: what they call, or where they write, is not. Some versions do not know them.
GUARDED = [
    *(
        "FROM checkpoint()",
        "SELECT * FROM force_checkpoint('shop')",
        "FROM truncate_duckdb_logs()",
        "FROM enable_logging()",
    ),
    *("FROM disable_profiling()", "INSERT INTO log SELECT write_log('x')", "SELECT 'x'.write_log()"),
    *(
        "SELECT setval('order_id', 99)",
        "INSERT INTO numbers SELECT setval('order_id', 99)",
        "FROM query('DELETE FROM log')",
    ),
    *(
        "FROM query('FROM check' || 'point()')",
        "UPDATE log SET what = write_log('x')",
        "DELETE FROM log WHERE write_log('x')",
    ),
    *(
        "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
        "FROM arrow_scan(1, 2, 3)",
        "FROM pandas_scan(1)",
    ),
    *(
        "CREATE VIEW x AS FROM checkpoint()",
        "CREATE TABLE x AS FROM checkpoint()",
        "FROM python_map_function((SELECT 1))",
    ),
    *("CREATE TABLE x (a INT DEFAULT setval('order_id', 9))", "CREATE VIEW x AS SELECT \"write_log\"('x')"),
    "INSERT INTO customer VALUES (1, 'x', 'y') ON CONFLICT DO UPDATE SET name = write_log('x')",
    "UPDATE customer SET city = 'x' RETURNING write_log('x')",
    "FROM create_external_resource('duckdb', MAP {'path': '{folder}/new.duckdb'}, 'x')",
    *("FROM read_csv('{secret}')", "FROM read_text('{secret}')", "FROM read_blob('{database}')", "FROM '{secret}'"),
    *(
        "INSERT INTO log FROM read_text('/etc/passwd')",
        "CREATE TABLE x AS FROM read_csv('{secret}')",
        "FROM glob('/*')",
    ),
    *(
        "CREATE VIEW x AS FROM read_text('{secret}')",
        "UPDATE log SET what = (SELECT content FROM read_text('{secret}'))",
    ),
    *(
        "DELETE FROM log USING read_csv('{secret}')",
        "FROM read_json('{secret}')",
        "FROM read_parquet('{folder}/*.parquet')",
    ),
    *("FROM sniff_csv('{secret}')", "FROM parquet_metadata('{secret}')", "FROM read_text('/proc/self/environ')"),
    *("FROM read_csv('https://127.0.0.1:9/x.csv')", "FROM 's3://bucket/x.parquet'", "FROM read_duckdb('{database}')"),
    *(
        "FROM sqlite_scan('{secret}', 'x')",
        "INSERT INTO log SELECT getenv('HOME')",
        "SELECT set_config('threads', '8')",
    ),
    *(
        "MERGE INTO log USING read_csv('{secret}') AS s ON true WHEN MATCHED THEN DELETE",
        "SELECT getvariable('x') + nowhere",
    ),
    *("CREATE TABLE temp.x (a INT)", "CREATE TABLE temp.main.x AS SELECT 1", "CREATE TABLE system.main.x (a INT)"),
    *(
        "CREATE VIEW temp.main.x AS SELECT 1",
        "CREATE VIEW system.main.x AS SELECT 1",
        "DROP VIEW system.main.duckdb_tables",
    ),
    *(
        "INSERT INTO duckdb_tables VALUES (1)",
        "DELETE FROM information_schema.tables",
        "UPDATE pg_catalog.pg_class SET oid = 1",
    ),
    *(
        "DROP VIEW pg_catalog.pg_tables",
        "ALTER VIEW pg_tables RENAME TO x",
        "DROP TABLE sqlite_master",
        "DELETE FROM sqlite_master",
    ),
    *("CREATE OR REPLACE VIEW main.duckdb_tables AS SELECT nowhere", "CREATE INDEX i ON pg_class (oid)"),
    *("UPDATE EXTENSIONS", "DROP DATABASE shop", "TRUNCATE cities", "CREATE UNLOGGED TABLE x (a INT)"),
    *("CREATE TRIGGER t AFTER INSERT ON log FOR EACH STATEMENT DELETE FROM orders", "DROP TRIGGER t ON log"),
    *("SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "KILL 1", "GRANT ALL ON log TO ann", "LOCK TABLE log", "DO $$ x $$"),
    "DELETE FROM log; COMMIT; DELETE FROM orders",
    *("SELECT ';'; COMMIT", "SELECT 1 /*;*/; ; ; ROLLBACK", "(/* a */ -- b\n COMMIT", "--\nATTACH ':memory:' AS x"),
]
INVALID = [
    *("SELECT ?", "INSERT INTO log VALUES ($what)", "SELECT '\ud800'", "SELECT 'x", "/* SELECT 1", "-- SELECT 1", ";"),
    *(
        "DELETE FROM orders\0; COMMIT",
        "\0",
        "DELETE orders",
        "REPLACE INTO log VALUES (1)",
    ),
    *(
        "INSERT INTO cities VALUES ('x')",
        "DELETE FROM cities",
        "DELETE FROM customer",
        "INSERT INTO customer VALUES (1, 'x', 'y')",
    ),
    *(
        "DROP TABLE customer",
        "DROP TABLE nowhere",
        "ALTER TABLE log ADD COLUMN what TEXT",
        "DROP INDEX nowhere",
        "DROP VIEW log",
    ),
    *(
        "SELECT error('boom')",
        "UPDATE customer SET id = id + nowhere",
        "INSERT INTO numbers VALUES ('x')",
        "SELECT 1; SELEC 2",
    ),
    *(
        "INSERT INTO before.log VALUES (1)",
        "FROM source.log",
        "FROM nowhere.main.log",
        "UPDATE orders SET customer = 99",
    ),
    ";" * 90_000,
]
LARGE = [
    *("FROM range(2000)", "SELECT 1; FROM range(2000)", "INSERT INTO log SELECT range FROM range(2000)"),
    *(
        "CREATE TABLE x AS FROM range(2000)",
        "CREATE VIEW x AS FROM range(2000)",
        "UPDATE numbers SET i = -i; FROM range(9)",
    ),
    *("INSERT INTO log SELECT range FROM range(2000) RETURNING what", "ALTER TABLE numbers ADD COLUMN x INT"),
    *("SELECT string_agg(repeat('x', 100000), '') FROM range(1000000)",),
]
FULL = [
    "CREATE TABLE x AS SELECT hash(range) AS a, hash(range + 1) AS b, hash(range + 2) AS c FROM range(1000000000)",
    "INSERT INTO log SELECT hash(range)::TEXT || hash(range + 1)::TEXT || hash(range + 2)::TEXT FROM range(100000000)",
    "INSERT INTO log SELECT repeat(hash(range)::TEXT, 5000) FROM range(100000)",
]
SLOW = [
    *(f"{NUMBERS} SELECT count(*) FROM n", f"{NUMBERS} DELETE FROM orders WHERE id IN (SELECT i + 9 FROM n)"),
    *(
        f"{NUMBERS} UPDATE customer SET city = (SELECT count(*) FROM n)",
        f"{NUMBERS} INSERT INTO log SELECT sum(i) FROM n",
    ),
    *(f"CREATE TABLE x AS {NUMBERS} SELECT count(*) FROM n", f"CREATE VIEW x AS {NUMBERS} SELECT count(*) FROM n"),
    *(
        "SELECT * FROM endless",
        "DELETE FROM log WHERE what = (SELECT count(*) FROM range(100000000000) a, range(99999) b)",
    ),
    "UPDATE orders SET total = (SELECT count(DISTINCT i) FROM range(100000000000) t(i))",
    "DELETE FROM log; SELECT sum(a.i * b.i) FROM numbers a, numbers b, numbers c, numbers d, numbers e",
    "UPDATE orders SET total = levenshtein(repeat('a', 200000), repeat('b', 200000))",
]
# Allowed, however strange: the next statement finds the state of the source.
ALLOWED = [
    *(
        "DELETE FROM orders; DROP TABLE orders; DROP TABLE customer CASCADE",
        "DROP VIEW cities",
        "TRUNCATE log",
        "SHOW TABLES",
    ),
    *("CREATE TABLE x (a INT); DROP TABLE x", 'CREATE TABLE "a;b" (c TEXT); INSERT INTO "a;b" VALUES (\'; COMMIT;\')'),
    *(
        "INSERT INTO log VALUES ('x;y')",
        "SELECT '\x1b[2J'; SELECT 'PRAGMA'",
        "WITH a AS (SELECT 1) FROM a;;;",
    ),
    *(
        "ALTER TABLE log RENAME TO x; ALTER TABLE x RENAME COLUMN what TO why",
        "INSERT OR IGNORE INTO customer VALUES (1, 2, 3)",
    ),
    *("SELECT nextval('order_id'), currval('order_id')", "CREATE UNIQUE INDEX i ON log (what)", "DROP INDEX by_city"),
    *(
        "PIVOT orders ON customer USING sum(total)",
        "SELECT twice(2)",
        "DELETE FROM log; DESCRIBE log",
        "SUMMARIZE orders",
    ),
]
