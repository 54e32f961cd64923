"""Statements for SQLite that no model should write where it may change data, and the kinds of failure they end in."""

from __future__ import annotations

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
NEW_ORDER = "INSERT INTO orders (customer, total) VALUES (1, 5)"
SCHEMA = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT);
    INSERT INTO customer VALUES (1, 'Ann', 'Graz'), (2, 'Bob', 'Wien');
    CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, customer INTEGER REFERENCES customer (id), total REAL);
    INSERT INTO orders VALUES (1, 1, 9.5), (2, 2, 7.25);
    CREATE TABLE log (what TEXT);
    CREATE TABLE slow (a INTEGER);
    CREATE TABLE full (a INTEGER);
    CREATE TABLE deep (a INTEGER);
    CREATE TABLE loading (a INTEGER);
    CREATE VIEW cities AS SELECT DISTINCT city FROM customer;
    CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;
    CREATE VIEW loader AS SELECT load_extension('evil') AS x;
    CREATE INDEX by_city ON customer (city);
    CREATE TRIGGER without_end AFTER INSERT ON slow BEGIN
        INSERT INTO log SELECT a.i FROM endless_numbers AS a, endless_numbers AS b, endless_numbers AS c;
    END;
    CREATE VIEW endless_numbers AS
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
    CREATE TRIGGER fills AFTER INSERT ON full BEGIN
        INSERT INTO log SELECT hex(zeroblob(1000000)) FROM endless_numbers;
    END;
    CREATE TRIGGER to_itself AFTER INSERT ON deep BEGIN INSERT INTO deep VALUES (new.a + 1); END;
    CREATE TRIGGER escapes AFTER INSERT ON loading BEGIN INSERT INTO log VALUES (load_extension('evil')); END;
    CREATE VIRTUAL TABLE notes USING fts5(words);
    INSERT INTO notes VALUES ('a first note');
    CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);
    INSERT INTO boxes VALUES (1, 0, 1);
    ANALYZE;
"""

# Texts whose first word tells that they are not allowed, each also behind a statement that is.
COMMANDS = [
    *("ATTACH '{folder}/new.db' AS x", "ATTACH DATABASE ':memory:' AS x", "ATTACH '' AS x", "attach '{database}' as x"),
    *("ATTACH 'file:{folder}/new.db?mode=rwc' AS x", "DETACH main", "DETACH DATABASE before", "DETACH x"),
    *("VACUUM", "VACUUM main", "VACUUM INTO '{folder}/new.db'", "vacuum main into '{folder}/new.db'", "VACUUM before"),
    *("PRAGMA writable_schema = ON", "PRAGMA foreign_keys = OFF", "PRAGMA journal_mode = DELETE"),
    *("PRAGMA journal_mode", "PRAGMA main.journal_mode(WAL)", "PRAGMA user_version = 3", "PRAGMA schema_version = 9"),
    *("PRAGMA max_page_count = 1000000000", "PRAGMA temp_store_directory = '{folder}'", "PRAGMA page_size = 512"),
    *("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA trusted_schema = ON", "PRAGMA recursive_triggers = ON"),
    *("PRAGMA defer_foreign_keys = ON", "PRAGMA integrity_check", "PRAGMA table_info(customer)", "PRAGMA optimize"),
    *("PRAGMA data_version", "PRAGMA database_list", "PRAGMA ignore_check_constraints = ON", "PRAGMA temp_store = 1"),
    *("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA incremental_vacuum", "PRAGMA shrink_memory", "PRAGMA query_only = 0"),
    *("PRAGMA hard_heap_limit = 1", "PRAGMA encoding = 'UTF-16'", "PRAGMA legacy_alter_table = ON", "PRAGMA 'x'"),
    *("BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE TRANSACTION", "COMMIT", "END", "END TRANSACTION", "ROLLBACK"),
    *("ROLLBACK TO a", "SAVEPOINT a", "RELEASE a", "RELEASE SAVEPOINT a"),
    *("ANALYZE", "ANALYZE customer", "ANALYZE sqlite_schema", "REINDEX", "REINDEX by_city", "REINDEX nocase"),
    *("EXPLAIN DELETE FROM orders", "EXPLAIN QUERY PLAN SELECT 1"),
    "CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM orders; END",
    "CREATE TRIGGER IF NOT EXISTS t INSTEAD OF INSERT ON cities BEGIN SELECT 1; END",
    "CREATE TEMP TRIGGER t AFTER DELETE ON orders BEGIN SELECT 1; END",
    *("DROP TRIGGER fills", "DROP TRIGGER IF EXISTS main.fills"),
    *("CREATE TEMP TABLE x (a)", "CREATE TEMPORARY TABLE x (a)", "CREATE TEMP TABLE IF NOT EXISTS x AS SELECT 1"),
    *("CREATE TEMP VIEW x AS SELECT 1", "CREATE TEMPORARY VIEW customer AS SELECT 1", "create/**/temp/**/table x (a)"),
    *("CREATE VIRTUAL TABLE x USING fts5(a)", "CREATE VIRTUAL TABLE x USING rtree(id, a, b)"),
    *("CREATE VIRTUAL TABLE x USING fts4(a, tokenize=simple)", "CREATE VIRTUAL TABLE IF NOT EXISTS x USING csv(a)"),
    *("CREATE VIRTUAL TABLE x USING dbstat", "CREATE VIRTUAL TABLE x USING sqlite_dbpage"),
    "CREATE VIRTUAL TABLE temp.x USING fts5vocab('main', 'notes', 'row')",
    *("MERGE INTO log USING customer ON 1 WHEN MATCHED THEN DELETE", "TRUNCATE TABLE orders", "DROP DATABASE main"),
    *(
        "CREATE FUNCTION f() RETURNS INT",
        "GRANT ALL ON orders TO ann",
        "COPY log FROM '{secret}'",
        "SET x = 1",
        "CALL f()",
    ),
]
# What only SQLite, or the guard, can tell.
GUARDED = [
    *("CREATE TABLE temp.x (a)", "CREATE TABLE temp.x AS SELECT 1", "CREATE VIEW temp.x AS SELECT 1"),
    *("CREATE TABLE sqlite_x (a)", "CREATE VIEW sqlite_x AS SELECT 1", "CREATE INDEX sqlite_x ON customer (name)"),
    *("ALTER TABLE customer RENAME TO sqlite_x", "ALTER TABLE sqlite_master RENAME TO x"),
    *("ALTER TABLE sqlite_sequence ADD COLUMN x", "ALTER TABLE sqlite_stat1 DROP COLUMN stat"),
    *("DROP TABLE sqlite_sequence", "DROP TABLE sqlite_master", "DROP TABLE sqlite_stat1"),
    *("CREATE INDEX i ON sqlite_master (name)", "CREATE UNIQUE INDEX i ON sqlite_sequence (name)"),
    *("DELETE FROM sqlite_master", "UPDATE sqlite_master SET sql = ''", "DELETE FROM main.sqlite_schema"),
    "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x (a)')",
    *(
        "REPLACE INTO sqlite_schema SELECT * FROM sqlite_schema",
        "INSERT INTO sqlite_temp_master VALUES (1, 2, 3, 4, 5)",
    ),
    *("UPDATE sqlite_sequence SET seq = 99", "DELETE FROM sqlite_sequence", "DELETE FROM sqlite_stat1"),
    *("INSERT INTO sqlite_sequence VALUES ('orders', 9)", "INSERT INTO sqlite_stat1 VALUES ('a', 'b', 'c')"),
    *("WITH a AS (SELECT 1) DELETE FROM sqlite_sequence", "WITH a AS (SELECT 1) UPDATE sqlite_sequence SET seq = 1"),
    "WITH a AS (SELECT 1) INSERT INTO sqlite_master SELECT 1, 2, 3, 4, 5",
    "WITH a AS (SELECT 1) INSERT INTO sqlite_stat1 SELECT 'orders', NULL, '1000000'",
    *(
        "DELETE FROM notes_content",
        "UPDATE notes_data SET block = x''",
        "DROP TABLE notes_idx",
        "DELETE FROM boxes_node",
    ),
    *("INSERT INTO notes_config VALUES ('x', 9)", "ALTER TABLE boxes_rowid RENAME TO x", "DROP TABLE boxes_parent"),
    *("DROP TABLE notes", "DROP TABLE boxes", "ALTER TABLE notes RENAME TO x", "ALTER TABLE boxes RENAME TO x"),
    *("SELECT load_extension('evil')", "SELECT LOAD_EXTENSION('evil', 'main')", "SELECT \"load_extension\"('evil')"),
    *("UPDATE customer SET name = load_extension('evil')", "DELETE FROM orders WHERE load_extension('evil')"),
    *("INSERT INTO log VALUES (load_extension('evil'))", "INSERT INTO log SELECT fts3_tokenizer('simple')"),
    *("SELECT fts3_tokenizer('simple', x'00')", "UPDATE customer SET name = 'x' RETURNING load_extension('evil')"),
    "INSERT INTO customer VALUES (1, 'x', 'y') ON CONFLICT DO UPDATE SET name = load_extension('evil')",
    *("CREATE TABLE x AS SELECT load_extension('evil')", "CREATE VIEW x AS SELECT load_extension('evil')"),
    *("CREATE TABLE x (a, b DEFAULT (load_extension('evil'))); INSERT INTO x (a) VALUES (1)",),
    *("CREATE TABLE x (a CHECK (fts3_tokenizer('simple')))", "CREATE TABLE x (a, b AS (load_extension('evil')))"),
    *("CREATE INDEX i ON log (load_extension(what))", "CREATE INDEX i ON log (what) WHERE load_extension(what)"),
    *("CREATE VIEW x AS SELECT 1; SELECT * FROM x, loader", "SELECT * FROM loader", "INSERT INTO loading VALUES (1)"),
    *("SELECT * FROM pragma_table_info('customer')", "SELECT * FROM pragma_database_list", "SELECT * FROM dbstat"),
    *("CREATE VIEW x AS SELECT * FROM pragma_table_list", "INSERT INTO log SELECT name FROM pragma_function_list"),
    *("CREATE TABLE x AS SELECT * FROM pragma_compile_options", "SELECT * FROM pragma_data_version"),
    *("SELECT * FROM fts3tokenize('simple', 'a b')", "SELECT * FROM temp.sqlite_master; PRAGMA journal_mode"),
    *("\ufeffPRAGMA user_version = 3", "\ufeffATTACH '{folder}/new.db' AS x", "\ufeffBEGIN", "\ufeffDETACH main"),
    *("\ufeffCREATE TEMP TABLE x (a)", "\ufeffCREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END"),
    *("SELECT 1; -- ;\n/* ; */ PRAGMA user_version = 3", "SELECT ';'; COMMIT", "SELECT 1 /*;*/; ; ; ROLLBACK"),
    *("(/* a */ -- b\n COMMIT", ";;; BEGIN", "/* SELECT */ VACUUM", "--\nATTACH ':memory:' AS x"),
    *("DELETE FROM orders; COMMIT; DELETE FROM customer", "SAVEPOINT a; DELETE FROM orders; RELEASE a"),
]
# What SQLite, or Python, does not take: nothing that is dangerous, but an error in any case.
INVALID = [
    *(
        "SELECT readfile('{secret}')",
        "SELECT writefile('{folder}/new', 'x')",
        "SELECT edit('x', 'vi')",
        "SELECT eval('1')",
    ),
    *("INSERT INTO log SELECT readfile('{secret}')", "SELECT * FROM fsdir('/')", "SELECT * FROM zipfile('{secret}')"),
    *("SELECT * FROM sqlite_dbpage", "UPDATE sqlite_dbpage SET data = zeroblob(4096)", ".shell touch {folder}/new"),
    *(".open {folder}/new.db", "DROP TABLE before.customer", "INSERT INTO before.log VALUES (1)"),
    *("UPDATE before.customer SET name = 'x'", "DELETE FROM before.orders", "CREATE TABLE before.x (a)"),
    *(
        "ALTER TABLE before.customer RENAME TO x",
        "CREATE INDEX before.i ON customer (name)",
        "SELECT * FROM before.log",
    ),
    *("INSERT OR ROLLBACK INTO customer VALUES (1, 'a', 'b'); DELETE FROM orders", "SELECT RAISE(ROLLBACK, 'x')"),
    *("UPDATE OR ROLLBACK customer SET id = 1", "INSERT OR FAIL INTO customer SELECT * FROM customer"),
    *("\ufeffVACUUM", "\ufeffVACUUM INTO '{folder}/new.db'", "DELETE FROM orders\0; COMMIT", "SELECT 1\0", "\0"),
    *("SELECT ?", "INSERT INTO log VALUES (:what)", "SELECT '\ud800'", "SELECT 'x", "/* SELECT 1", "-- SELECT 1", ";"),
    *("SELECT 1 DELETE FROM orders", "DELETE orders", "SELECT * FROM customer FOR UPDATE"),
    *(
        "INSERT INTO cities VALUES ('x')",
        "DELETE FROM cities",
        "DELETE FROM customer",
        "UPDATE customer SET id = id + 9",
    ),
    *("SELECT * FROM " + "(SELECT * FROM " * 2_000 + "log" + ")" * 2_000, "SELECT " + "(" * 9_000 + "1" + ")" * 9_000),
    *(";" * 90_000, "INSERT INTO log VALUES " + ",".join(["(?)"] * 9_000), "SELECT 1" + " UNION ALL SELECT 1" * 2_000),
    "CREATE TABLE wide (" + ",".join(f"c{number}" for number in range(9_000)) + ")",
    "INSERT INTO log VALUES " + ",".join(["(zeroblob(1000000))"] * 400) + ", (1, 2)",
]
LARGE = [
    *(
        "INSERT INTO log VALUES (zeroblob(1000000000))",
        "SELECT randomblob(1e9)",
        "UPDATE customer SET city = zeroblob(4e7)",
    ),
    *(
        "UPDATE customer SET name = hex(zeroblob(2e7))",
        "INSERT INTO log SELECT replace(hex(zeroblob(9999999)), '0', 'xyz')",
    ),
    *(f"{NUMBERS} SELECT i FROM n", f"SELECT 1; {NUMBERS} SELECT i FROM n; DELETE FROM orders"),
    *(
        f"{NUMBERS} INSERT INTO log SELECT i FROM n LIMIT 2000",
        f"CREATE TABLE x AS {NUMBERS} SELECT i FROM n LIMIT 2000",
    ),
    f"{NUMBERS} INSERT INTO log SELECT i FROM n LIMIT 2000 RETURNING what",
]
FULL = [
    f"{NUMBERS} INSERT INTO log SELECT zeroblob(9000000) FROM n",
    "INSERT INTO full VALUES (1)",
    f"{NUMBERS} INSERT INTO log SELECT zeroblob(i % 2 * 900000 + 1) FROM n",
    f"CREATE TABLE x AS {NUMBERS} SELECT zeroblob(9000000) FROM n",
    f"{NUMBERS} INSERT INTO notes SELECT hex(randomblob(50000)) FROM n",
    f"DROP TABLE log; CREATE TABLE log (what); {NUMBERS} INSERT INTO log SELECT zeroblob(9000000) FROM n",
    f"{NUMBERS} INSERT INTO customer (name) SELECT randomblob(9000000) FROM n RETURNING id",
]
SLOW = [
    *(f"{NUMBERS} SELECT count(*) FROM n", f"{NUMBERS} DELETE FROM orders WHERE id IN (SELECT i + 9 FROM n)"),
    *(
        f"{NUMBERS} UPDATE customer SET city = (SELECT count(*) FROM n)",
        f"{NUMBERS} INSERT INTO log SELECT sum(i) FROM n",
    ),
    *(f"CREATE TABLE x AS {NUMBERS} SELECT count(*) FROM n", f"CREATE VIEW x AS {NUMBERS} SELECT count(*) FROM n"),
    *("INSERT INTO slow VALUES (1)", "SELECT * FROM endless", "DROP VIEW endless; INSERT INTO slow VALUES (1)"),
    f"UPDATE customer SET name = 'x' RETURNING ({NUMBERS} SELECT count(*) FROM n)",
    f"INSERT INTO customer VALUES (1, 'a', 'b') ON CONFLICT DO UPDATE SET city = ({NUMBERS} SELECT max(i) FROM n)",
    f"{NUMBERS} INSERT INTO log SELECT i FROM n WHERE i < 0",
    "INSERT INTO log SELECT printf('%.*c', 1e9, 'x')",
    "DELETE FROM log WHERE hex(zeroblob(9999999)) LIKE '%" + "0" * 20_000 + "1'; SELECT count(*) FROM endless",
]
# Allowed, however strange: the next statement finds the state of the source.
ALLOWED = [
    *("DELETE FROM orders; DELETE FROM customer; DROP TABLE orders; DROP TABLE customer", "DROP VIEW cities"),
    *(
        "INSERT INTO deep VALUES (1)",
        "INSERT INTO notes (notes) VALUES ('optimize')",
        "DELETE FROM notes; DELETE FROM boxes",
    ),
    *("CREATE TABLE x (a); DROP TABLE x", "CREATE TABLE 'a;b' (c); INSERT INTO 'a;b' VALUES ('; COMMIT;')"),
    *(
        "REPLACE INTO customer VALUES (1, 'x;y', 'z')",
        "SELECT '\x1b[2J'; SELECT 'PRAGMA'",
        "WITH a AS (SELECT 1) SELECT * FROM a;;;",
    ),
    *(
        "ALTER TABLE orders RENAME TO x; ALTER TABLE x DROP COLUMN total",
        "INSERT OR IGNORE INTO customer VALUES (1, 2, 3)",
    ),
    *(
        "SELECT total_changes(), changes(), last_insert_rowid()",
        "CREATE UNIQUE INDEX i ON log (what)",
        "DROP INDEX by_city",
    ),
]
