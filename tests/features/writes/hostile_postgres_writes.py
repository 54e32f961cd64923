"""Statements for PostgreSQL that no model should write where it may change data, and the failures they end in."""

from __future__ import annotations

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1::BIGINT UNION ALL SELECT i + 1 FROM n)"
NEW_ORDER = "INSERT INTO orders (customer, total) VALUES (1, 5)"
SCHEMA = """
    CREATE TABLE customer (id INT PRIMARY KEY, name TEXT UNIQUE, city TEXT);
    INSERT INTO customer VALUES (1, 'Ann', 'Graz'), (2, 'Bob', 'Wien');
    CREATE TABLE orders (id SERIAL PRIMARY KEY, customer INT REFERENCES customer (id), total FLOAT);
    INSERT INTO orders (customer, total) VALUES (1, 9.5), (2, 7.25);
    CREATE TABLE log (what TEXT);
    CREATE TABLE slow (a INT);
    CREATE VIEW endless AS
        WITH RECURSIVE n(i) AS (SELECT 1::BIGINT UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;
    CREATE INDEX by_city ON customer (city);
    CREATE PROCEDURE ends() LANGUAGE plpgsql AS $$ BEGIN DELETE FROM log; COMMIT; END $$;
    CREATE FUNCTION waits() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
    CREATE TRIGGER without_end AFTER INSERT ON slow FOR EACH ROW EXECUTE FUNCTION waits();
    CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM customer;
    CREATE TYPE mood AS ENUM ('good');
"""

# Texts whose first words tell that they are not allowed, each also behind a statement that is.
COMMANDS = [
    *("BEGIN", "BEGIN READ WRITE", "START TRANSACTION", "COMMIT", "COMMIT AND CHAIN", "END", "ABORT", "ROLLBACK"),
    *(
        "ROLLBACK AND CHAIN",
        "SAVEPOINT a",
        "RELEASE a",
        "ROLLBACK TO a",
        "PREPARE TRANSACTION 'a'",
        "COMMIT PREPARED 'a'",
    ),
    *(
        "SET work_mem = '8MB'",
        "SET SESSION AUTHORIZATION postgres",
        "SET ROLE postgres",
        "SET LOCAL statement_timeout = 0",
    ),
    *(
        "SET CONSTRAINTS ALL DEFERRED",
        "SET TRANSACTION READ ONLY",
        "RESET ALL",
        "RESET statement_timeout",
        "SHOW work_mem",
    ),
    *(
        "DISCARD ALL",
        "LOCK TABLE customer",
        "LISTEN a",
        "UNLISTEN *",
        "NOTIFY a, 'x'",
        "CHECKPOINT",
        "VACUUM",
        "VACUUM FULL log",
    ),
    *("ANALYZE", "CLUSTER customer USING by_city", "REINDEX TABLE customer", "REFRESH MATERIALIZED VIEW kept"),
    *("COPY log FROM '/etc/passwd'", "COPY log TO '{folder}/new'", "COPY log TO PROGRAM 'touch {folder}/new'"),
    *("COPY log FROM PROGRAM 'touch {folder}/new'", "COPY (SELECT 1) TO STDOUT", "COPY log FROM STDIN"),
    *("DO $$ BEGIN DELETE FROM log; END $$", "DO LANGUAGE plpgsql 'BEGIN COMMIT; END'", "CALL ends()", "LOAD 'dblink'"),
    *("EXPLAIN DELETE FROM log", "EXPLAIN ANALYZE DELETE FROM log", "PREPARE p AS DELETE FROM log", "EXECUTE p"),
    *("DEALLOCATE ALL", "DECLARE c CURSOR FOR SELECT 1", "FETCH ALL FROM queryeval", "MOVE c", "CLOSE queryeval"),
    *("GRANT ALL ON log TO PUBLIC", "REVOKE ALL ON log FROM PUBLIC", "REASSIGN OWNED BY owner TO reader"),
    *(
        "COMMENT ON TABLE log IS 'x'",
        "SECURITY LABEL ON TABLE log IS 'x'",
        "TRUNCATE log",
        "TRUNCATE orders, customer CASCADE",
    ),
    *("CREATE TEMP TABLE x (a INT)", "CREATE TEMPORARY TABLE x AS SELECT 1", "CREATE LOCAL TEMP TABLE x (a INT)"),
    *("CREATE UNLOGGED TABLE x (a INT)", "CREATE TEMP VIEW x AS SELECT 1", "CREATE RECURSIVE VIEW x (a) AS SELECT 1"),
    *(
        "create/**/temp/**/table x (a int)",
        "CREATE /* TABLE */ TEMP TABLE x (a INT)",
        "CREATE MATERIALIZED VIEW x AS SELECT 1",
    ),
    "CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION waits() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    *(
        "CREATE PROCEDURE f() LANGUAGE sql AS 'SELECT 1'",
        "CREATE TRIGGER t AFTER INSERT ON log EXECUTE FUNCTION waits()",
    ),
    *(
        "CREATE RULE r AS ON INSERT TO log DO INSTEAD NOTHING",
        "CREATE EXTENSION dblink",
        "CREATE SCHEMA x",
        "CREATE SEQUENCE x",
    ),
    *(
        "CREATE ROLE x SUPERUSER",
        "CREATE USER x",
        "CREATE DATABASE x",
        "CREATE TABLESPACE x LOCATION '{folder}'",
        "CREATE TYPE x AS (a INT)",
    ),
    *("CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION waits()", "CREATE FOREIGN TABLE x (a INT) SERVER s"),
    *(
        "CREATE SERVER s FOREIGN DATA WRAPPER w",
        "CREATE PUBLICATION p FOR ALL TABLES",
        "CREATE CAST (TEXT AS INT) WITHOUT FUNCTION",
    ),
    *("ALTER SYSTEM SET work_mem = '8MB'", "ALTER ROLE owner SUPERUSER", "ALTER DATABASE music SET work_mem = '8MB'"),
    *("ALTER SEQUENCE orders_id_seq RESTART", "ALTER FUNCTION waits() RENAME TO x", "ALTER TYPE mood ADD VALUE 'bad'"),
    *(
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
        "ALTER SCHEMA public RENAME TO x",
        "ALTER USER owner PASSWORD 'x'",
    ),
    *(
        "DROP FUNCTION waits CASCADE",
        "DROP SCHEMA public CASCADE",
        "DROP DATABASE music",
        "DROP ROLE reader",
        "DROP OWNED BY owner",
    ),
    *(
        "DROP SEQUENCE orders_id_seq CASCADE",
        "DROP TRIGGER without_end ON slow",
        "DROP MATERIALIZED VIEW kept",
        "DROP TYPE mood",
    ),
    *("IMPORT FOREIGN SCHEMA a FROM SERVER s INTO public", "DROP PROCEDURE ends"),
]
# Of these the first words are fine: what they call, or where they write, is not.
GUARDED = [
    "ALTER TABLE orders DISABLE TRIGGER USER",  # which sqlglot cannot read
    *("SELECT pg_terminate_backend(1)", "SELECT pg_cancel_backend(1)", "DELETE FROM log WHERE pg_terminate_backend(1)"),
    *(
        "SELECT set_config('statement_timeout', '0', false)",
        "INSERT INTO log SELECT set_config('work_mem', '8MB', true)",
    ),
    *(
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_advisory_unlock_all()",
        "UPDATE log SET what = pg_advisory_unlock_all()",
    ),
    *(
        "SELECT pg_notify('a', 'x')",
        "SELECT setval('orders_id_seq', 99)",
        "INSERT INTO log VALUES (pg_read_file('/etc/passwd'))",
    ),
    *(
        "INSERT INTO log SELECT pg_ls_dir('/')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_export(1, '{folder}/new')",
    ),
    *("SELECT lo_from_bytea(0, 'x')", "SELECT pg_reload_conf()", "SELECT pg_switch_wal()", "SELECT pg_stat_reset()"),
    *("SELECT query_to_xml('COMMIT', true, true, '')", "SELECT * FROM dblink('dbname=music', 'SELECT 1') AS t(a INT)"),
    *("CREATE TABLE x AS SELECT pg_read_file('/etc/passwd')", "CREATE VIEW x AS SELECT pg_notify('a', 'x')"),
    *("CREATE TABLE x (a TEXT DEFAULT pg_read_file('/etc/passwd'))", "CREATE INDEX i ON log (pg_notify(what, 'x'))"),
    *(
        "SELECT U&\"set\\005fconfig\"('statement_timeout', '0', false)",
        "SELECT pg_catalog . set_config('a.b', '0', false)",
    ),
    *("SELECT rolpassword FROM pg_authid", "INSERT INTO log SELECT passwd FROM pg_shadow", "SELECT * FROM pg_locks"),
    *(
        "UPDATE pg_class SET relname = 'x'",
        "DELETE FROM pg_catalog.pg_proc",
        "INSERT INTO pg_authid SELECT * FROM pg_authid",
    ),
    *("DROP TABLE pg_class", "ALTER TABLE pg_catalog.pg_class ADD COLUMN x INT", "CREATE TABLE pg_catalog.x (a INT)"),
    *("DELETE FROM information_schema.tables", "CREATE TABLE pg_temp.x (a INT)", "CREATE VIEW pg_temp.x AS SELECT 1"),
    *(
        "/* /* */ SELECT */ COMMIT",
        "/* /* */ INSERT */ BEGIN",
        "SELECT $$;$$; COMMIT",
        "SELECT 1; -- ;\n/* ; */ COMMIT",
    ),
    *("DELETE FROM log; COMMIT; DELETE FROM orders", "SELECT E'\\'; COMMIT; --'; COMMIT", ";;; BEGIN"),
]
INVALID = [
    *(
        "SELECT $1",
        "INSERT INTO log VALUES (%s)",
        "-- SELECT 1",
        ";",
        "Sure! Here it is.",
        "SELECT 1 / 0",
        "FLASHBACK TABLE log",
    ),
    *(
        "INSERT INTO log VALUES ('x\0')",
        "DELETE FROM customer",
        "INSERT INTO customer VALUES (1, 'x', 'y')",
        "DROP TABLE customer",
    ),
    *(
        "DROP TABLE nowhere",
        "ALTER TABLE log ADD COLUMN what TEXT",
        "UPDATE orders SET customer = 99",
        "SELECT nowhere(1)",
    ),
    *("CREATE INDEX CONCURRENTLY i ON log (what)", "DROP INDEX CONCURRENTLY by_city", "INSERT INTO kept VALUES (1)"),
]
LARGE = [
    *("SELECT * FROM generate_series(1, 2000)", "INSERT INTO log SELECT i FROM generate_series(1, 2000) AS i"),
    *(
        "CREATE TABLE x AS SELECT generate_series(1, 2000) AS i",
        "CREATE VIEW x AS SELECT generate_series(1, 2000) AS i",
    ),
    *("SELECT repeat('x', 2000000000)", "INSERT INTO log SELECT repeat('x', 2000000000)"),
]
SLOW = [
    *(f"{NUMBERS} SELECT count(*) FROM n", f"{NUMBERS} DELETE FROM orders WHERE id IN (SELECT i + 9 FROM n)"),
    *(f"{NUMBERS} INSERT INTO log SELECT sum(i) FROM n", f"CREATE TABLE x AS {NUMBERS} SELECT count(*) FROM n"),
    *(f"CREATE VIEW x AS {NUMBERS} SELECT count(*) FROM n", "INSERT INTO slow VALUES (1)", "SELECT * FROM endless"),
    *("SELECT pg_sleep(60)", "UPDATE customer SET city = pg_sleep(60)", "DELETE FROM log; SELECT pg_sleep(60)"),
    "INSERT INTO log SELECT repeat(i::TEXT, 1000) FROM generate_series(1, 1000000000) AS i",
    "UPDATE log SET what = 'x'; INSERT INTO log SELECT a FROM generate_series(1, 1000000000) AS a WHERE a < 0",
]
# Allowed, however strange: the next statement finds the state of the source.
ALLOWED = [
    *("DELETE FROM orders; DELETE FROM customer; DROP TABLE orders; DROP TABLE customer CASCADE", "DROP VIEW endless"),
    *("CREATE TABLE x (a INT); DROP TABLE x", 'CREATE TABLE "a;b" (c TEXT); INSERT INTO "a;b" VALUES (\'; COMMIT;\')'),
    *("SELECT '\x1b[2J'; SELECT 'SET'", "WITH a AS (SELECT 1) SELECT * FROM a;;;", "SELECT nextval('orders_id_seq')"),
    *(
        "ALTER TABLE log RENAME TO x; ALTER TABLE x RENAME COLUMN what TO why",
        "INSERT INTO customer VALUES (1) ON CONFLICT DO NOTHING",
    ),
    *(
        "SELECT * FROM customer FOR UPDATE",
        "TABLE customer",
    ),
    *(
        "CREATE UNIQUE INDEX i ON log (what)",
        "DROP INDEX by_city",
        "INSERT INTO log VALUES ($$;COMMIT;$$), (E'\\';--')",
    ),
]
