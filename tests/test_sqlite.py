import os
import sqlite3
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hostile_sql import HOSTILE

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, SmallDatabase

pytestmark = pytest.mark.process

SCHEMA = """
    create table concerts (id integer primary key, city text, price real);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
    create view cities as select distinct city from concerts;
"""
MODULES = {
    "fts5": ("create virtual table notes using fts5(words)", "insert into notes values ('loud music')"),
    "fts4": ("create virtual table letters using fts4(words)", "insert into letters values ('soft music')"),
    "rtree": ("create virtual table boxes using rtree(id, low, high)", "insert into boxes values (1, 2, 3)"),
}


@pytest.fixture
def run(hosts, tmp_path):
    """Executes a query on a database of `tmp_path`, or on the one of other settings."""

    def execute(query, timeout=5, max_rows=1000, **settings):
        engine = opened(hosts, tmp_path, **(settings or {"path": "concerts.db"}))
        try:
            return engine.execute(query, timeout=timeout, max_rows=max_rows)
        finally:
            engine.close()

    make(tmp_path / "concerts.db")
    return execute


def opened(hosts, folder, **settings):
    return ENGINES["sqlite"].open(Source(name="music", engine="sqlite", settings=settings, folder=folder), hosts)


def make(path, script=SCHEMA):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def add_modules(path):
    """Adds a table for every kind of virtual table that this build of SQLite has."""
    actual = set()
    with closing(sqlite3.connect(path)) as connection:
        for module, statements in MODULES.items():
            try:
                for statement in statements:
                    connection.execute(statement)
            except sqlite3.OperationalError:
                continue
            actual.add(module)
        connection.commit()
    return actual


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def failure(execution):
    assert execution.answer is None
    return execution.error


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("null", None),
        ("9223372036854775807", 2**63 - 1),
        ("1e999", float("inf")),
        ("'naïve 🎻'", "naïve 🎻"),
        ("x'00ff'", b"\x00\xff"),
        ("'a' || char(0) || 'b'", "a\0b"),
    ],
)
def test_values_come_through_unchanged(run, expression, value):
    assert run(f"select {expression}").answer.rows == [(value,)]


@pytest.mark.parametrize("query", ["with c as (select 1) select * from c", "values (1)", "select random() is not null"])
def test_whatever_reads_is_allowed(run, query):
    assert run(query).answer.rows == [(1,)]


def test_current_time_is_allowed(run):
    assert run("select datetime('now') > '2000'").answer.rows == [(1,)]


def test_text_that_is_not_utf8_becomes_escapes(run):
    execution = run("select 'é', cast(x'41ff42' as text)")

    assert execution.answer.rows == [("é", "A\\xffB")]


def test_rows_before_undecodable_text_are_kept_once(run):
    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n limit 5000)"

    rows = run(f"{numbers} select i, case i when 4000 then cast(x'ff' as text) end from n", max_rows=5000).answer.rows

    assert [number for number, _ in rows] == list(range(1, 5001))
    assert rows[3999] == (4000, "\\xff")


def test_views_and_json_can_be_queried(run):
    assert run("select count(*) from cities").answer.rows == [(3,)]
    assert run("select value from json_each('[1, 2]')").answer.rows == [(1,), (2,)]
    assert run("select sum(atom) from json_tree('[1, [2]]')").answer.rows == [(3,)]


@pytest.mark.parametrize(
    ("module", "query", "rows"),
    [
        ("fts5", "select words from notes where notes match 'music' order by rank", [("loud music",)]),
        ("fts5", "select highlight(notes, 0, '<', '>') from notes('loud')", [("<loud> music",)]),
        ("fts4", "select snippet(letters, '<', '>') from letters where words match 'soft'", [("<soft> music",)]),
        ("rtree", "select id from boxes where low >= 1 and high <= 4", [(1,)]),
    ],
)
def test_virtual_tables_can_be_queried_also_after_a_refused_query(run, tmp_path, module, query, rows):
    if module not in add_modules(tmp_path / "concerts.db"):
        pytest.skip(f"this SQLite has no {module}")

    first = run(query)
    refused = run("vacuum")
    second = run(query)

    assert first.answer.rows == second.answer.rows == rows
    assert refused.error.kind == "unsafe"


@pytest.mark.parametrize(
    ("query", "action"),
    [
        ("update concerts set price = 1", "UPDATE concerts.price"),
        ("delete from concerts", "DELETE concerts"),
        ("pragma journal_mode = off", "PRAGMA journal_mode off"),
        ("create table copies (id)", "a change of the schema"),
        ("drop table concerts", "a change of the schema"),
        ("create temp view copies as select 1", "a change of the schema"),
        ("select * from pragma_journal_mode", "PRAGMA journal_mode"),
        ("select count(*) from main.Pragma_Integrity_Check", "PRAGMA integrity_check"),
    ],
)
def test_a_refused_query_is_told_what_it_would_do(run, query, action):
    assert run(query).error.message == f"only reading is allowed: {action}"


@pytest.mark.parametrize("module", ["sqlite_stmt", "dbstat", "fts3tokenize"])
def test_a_table_that_sqlite_computes_is_refused_by_its_name(run, module):
    with closing(sqlite3.connect(":memory:")) as connection:
        if module not in [name for (name,) in connection.execute("pragma module_list")]:
            pytest.skip(f"this SQLite has no {module}")

    error = run(f"select count(*) from {module}").error

    assert (error.kind, error.message) == ("unsafe", f"only tables of the database may be read: {module}")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select count(*) from pragma_table_list where name = 'concerts'", [(1,)]),
        ("select name from pragma_table_info('concerts')", [("id",), ("city",), ("price",)]),
        ("select name from \"PRAGMA_table_xinfo\"('concerts') where cid = 1", [("city",)]),
        ("select m.name, p.name from sqlite_master m, pragma_table_info(m.name) p where p.pk", [("concerts", "id")]),
        ("select count(*) from pragma_foreign_key_list('concerts'), pragma_index_list('concerts')", [(0,)]),
        ("select count(*) from pragma_index_info('none'), pragma_index_xinfo('none')", [(0,)]),
    ],
)
def test_facts_of_the_schema_are_read_as_tables(run, query, rows):
    assert run(query).answer.rows == rows
    assert run("pragma table_info(concerts)").error.message == "only reading is allowed: PRAGMA table_info concerts"
    assert run(query).answer.rows == rows


@pytest.fixture(scope="module")
def battery(hosts, tmp_path_factory):
    """An engine on a database with all that statements may attack; nothing may be left behind after all of them."""
    folder = tmp_path_factory.mktemp("battery")
    add_modules(make(folder / "concerts.db"))
    before = contents(folder)
    engine = opened(hosts, folder, path="concerts.db")
    yield engine, str(folder)
    engine.close()
    assert contents(folder) == before


@pytest.mark.parametrize(("query", "kinds"), [pytest.param(*case, id=name) for name, *case in HOSTILE])
def test_hostile_statements_fail_in_time_and_the_next_query_answers(battery, query, kinds):
    engine, folder = battery
    began = time.monotonic()

    limit = 0.5 if "timeout" in kinds else 10  # the machine may be busy
    execution = engine.execute(query.replace("{folder}", folder), timeout=limit, max_rows=100_000)
    elapsed = time.monotonic() - began
    following = engine.execute("select count(*) from concerts", timeout=5, max_rows=10)

    assert failure(execution).kind in kinds, execution.error
    assert elapsed < 60  # by itself it ends never, or much later
    assert following.answer.rows == [(3,)]


def test_database_with_schema_that_grew_meanwhile_is_read_again(run, tmp_path):
    before = run("select count(*) from concerts").answer.rows

    make(tmp_path / "concerts.db", "insert into concerts values (4, 'Bonn', 1.0); create table late (x)")

    assert before == [(3,)]
    assert run("select count(*) from concerts, (select count(*) from late)").answer.rows == [(4,)]


def test_damaged_database_is_a_source_error(run, tmp_path):
    content = (tmp_path / "concerts.db").read_bytes()
    (tmp_path / "torn.db").write_bytes(content[:100] + b"\xff" * (len(content) - 100))

    with pytest.raises(SourceError, match="malformed"):
        run("select * from concerts", path="torn.db")


def test_question_mark_in_a_file_name_is_no_query_of_its_uri(run, tmp_path):
    make(tmp_path / "what?.db")

    assert run("select count(*) from concerts", path="what?.db").answer.rows == [(3,)]


def test_link_to_itself_is_a_source_error(run, tmp_path):
    (tmp_path / "loop.db").symlink_to("loop.db")

    with pytest.raises(SourceError, match=r"loop\.db"):
        run("select 1", path="loop.db")


def test_link_to_a_database_is_followed(run, tmp_path):
    (tmp_path / "link.db").symlink_to("concerts.db")

    assert run("select count(*) from concerts", path="link.db").answer.rows == [(3,)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_a_source_error(run, tmp_path):
    (tmp_path / "concerts.db").chmod(0)

    with pytest.raises(SourceError, match="Permission denied"):
        run("select 1")


def test_database_that_stays_locked_is_a_source_error(run, tmp_path):
    with closing(sqlite3.connect(tmp_path / "concerts.db", isolation_level=None)) as connection:
        connection.execute("begin exclusive")

        with pytest.raises(SourceError, match="database is locked"):
            run("select * from concerts", timeout=0.5)
        connection.execute("rollback")

    assert run("select count(*) from concerts").answer.rows == [(3,)]


def test_lock_that_comes_after_the_first_query_is_a_source_error(run, tmp_path):
    run("select * from concerts", timeout=0.5)

    with closing(sqlite3.connect(tmp_path / "concerts.db", isolation_level=None)) as connection:
        connection.execute("begin exclusive")

        with pytest.raises(SourceError, match="database is locked"):
            run("select * from concerts", timeout=0.5)


def test_interrupted_write_is_a_source_error(run, tmp_path):
    with closing(sqlite3.connect(tmp_path / "concerts.db", isolation_level=None)) as connection:
        connection.executescript("pragma cache_size = 1; begin; update concerts set city = hex(zeroblob(90000));")
        for end in ("", "-journal"):
            (tmp_path / f"torn.db{end}").write_bytes((tmp_path / f"concerts.db{end}").read_bytes())
        connection.execute("rollback")

    with pytest.raises(SourceError, match=r"torn\.db"):
        run("select * from concerts", path="torn.db")


def test_write_ahead_database_gets_no_side_files(run, tmp_path):
    make(tmp_path / "concerts.db", "pragma journal_mode = wal")
    before = contents(tmp_path)

    rows = run("select count(*) from concerts").answer.rows

    assert rows == [(3,)]
    assert contents(tmp_path) == before


def test_what_a_writer_committed_to_its_write_ahead_log_is_seen(run, tmp_path):
    make(tmp_path / "concerts.db", "pragma journal_mode = wal")
    before = run("select count(*) from concerts").answer.rows

    with closing(sqlite3.connect(tmp_path / "concerts.db")) as writer:
        writer.execute("delete from concerts where id = 1")
        writer.commit()
        files = contents(tmp_path)
        after = run("select count(*) from concerts").answer.rows
        untouched = contents(tmp_path) == files

    assert (before, after) == ([(3,)], [(2,)])
    assert untouched


def test_write_ahead_log_without_its_index_is_a_source_error(run, tmp_path):
    make(tmp_path / "concerts.db", "pragma journal_mode = wal")
    with closing(sqlite3.connect(tmp_path / "concerts.db")) as writer:
        writer.execute("delete from concerts")
        writer.commit()
        for end in ("", "-wal"):
            (tmp_path / f"copy.db{end}").write_bytes((tmp_path / f"concerts.db{end}").read_bytes())

    with pytest.raises(SourceError, match="wal_checkpoint"):
        run("select 1", path="copy.db")


@pytest.mark.parametrize(
    "end",
    [";", ";;", " ; -- by flag", ";\n/* done; */", ";;; -- done", ";/* ; */;-- done\n;", "; /* open", " -- done;"],
)
def test_semicolons_and_comments_may_follow_a_query(run, end):
    assert run(f"select ';', 1 as [;]{end}").answer.rows == [(";", 1)]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ('"order"', 'near "order": syntax error'),
        ("'order'", "near 'order': syntax error"),
        ("join", 'near "join": syntax error'),
    ],
)
def test_a_syntax_error_quotes_a_word_once(run, word, message):
    assert run(f"select 1 as a {word} 2").error.message == message


@pytest.mark.parametrize("second", ["; drop table t", ";-- done\n;drop table t", "; /* ; */ select 2"])
def test_a_second_statement_is_refused_behind_semicolons_and_comments_too(run, second):
    assert run(f"select 1{second}").error.kind == "unsafe"


@pytest.mark.parametrize(
    "script",
    [
        "begin;\ncreate table t (x);\ninsert into t values ('a;\nb');\ncommit;",
        "\ufeffcreate table t (x); insert into t values (1) -- no end",
        """create table t (x); create trigger g after insert on t begin
        delete from t where x = 2; end; insert into t values (1);""",
        """create table [a;b] ("c;'d" text default ';'); -- it's fine; really
        /* ; ' */ create table t as select 1;""",
        "begin; create table t as select 1;",
        "pragma journal_mode = wal; create table t as select 1;",
    ],
)
def test_scripts_of_all_shapes_are_run(run, tmp_path, script):
    (tmp_path / "t.sql").write_text(script, encoding="utf-8")

    assert run("select count(*) from t", script="t.sql").answer.rows == [(1,)]


def test_failing_script_is_named_with_its_line(hosts, tmp_path):
    (tmp_path / "bad.sql").write_text("create table t (x);\n\n-- wrong\ninsert into\n  nowhere values (1);\n")

    with pytest.raises(SourceError, match=r"bad\.sql:3: no such table: nowhere$"):
        opened(hosts, tmp_path, script="bad.sql")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "create table t (x)\nINSERT INTO t VALUES (1);\n",
            ':2: near "INSERT": syntax error: end the statement before INSERT with `;`',
        ),
        ("create table t (x);\ninsert into t value (1);\n", 'bad.sql:2: near "value": syntax error'),
    ],
)
def test_failing_script_that_lacks_a_semicolon_says_where(hosts, tmp_path, script, told):
    (tmp_path / "bad.sql").write_text(script)

    with pytest.raises(SourceError) as caught:
        opened(hosts, tmp_path, script="bad.sql")

    assert str(caught.value).endswith(told)


def test_script_that_cannot_be_committed_is_named_with_its_last_line(hosts, tmp_path):
    tables = "create table t (x primary key); create table u (x references t deferrable initially deferred);"
    (tmp_path / "bad.sql").write_text(f"pragma foreign_keys = on; {tables}\nbegin;\ninsert into u values (1);\n")

    with pytest.raises(SourceError, match=r"bad\.sql:\d: FOREIGN KEY constraint failed$"):
        opened(hosts, tmp_path, script="bad.sql")


def test_a_database_that_does_not_fit_is_the_fault_of_the_temporary_folder(hosts, tmp_path):
    rows = "with recursive n(i) as (values (1) union all select i + 1 from n where i < 9) select zeroblob(9999) from n"
    (tmp_path / "large.sql").write_text(f"pragma max_page_count = 2;\ncreate table t (x);\ninsert into t {rows};\n")

    with pytest.raises(SourceError, match=r"large\.sql: /.*: no room for the database: name another folder .*TMPDIR$"):
        opened(hosts, tmp_path, script="large.sql")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs a path or a script: write {sqlite: FILE} or {sqlite: {script: FILE}}"),
        (
            {"path": "a.db", "script": "a.sql"},
            "needs a path or a script: write {sqlite: FILE} or {sqlite: {script: FILE}}",
        ),
        ({"scirpt": "a.sql"}, "unknown setting 'scirpt': did you mean 'script'?"),
        ({"path": 7}, "'path' is not the name of a file"),
        ({"path": ""}, "'path' is not the name of a file"),
    ],
)
def test_wrong_settings_are_a_source_error(hosts, settings, problem):
    with pytest.raises(SourceError) as caught:
        opened(hosts, Path(), **settings)

    assert str(caught.value) == f"source 'music': {problem}"


@pytest.mark.skipif(sys.platform != "linux", reason="address space is bounded on Linux")
def test_query_that_needs_too_much_memory_is_too_large(run):
    rows = "with recursive n(i) as (select 1 union all select i + 1 from n limit 90)"

    error = failure(
        run(f"{rows} select max(b) from (select zeroblob(30000000) || i as b from n order by 1)", timeout=30)
    )

    assert (error.kind, error.message) == ("too_large", "out of memory")


def test_an_answer_of_too_many_cells_is_too_large(run):
    columns = ", ".join(f"{number}" for number in range(1000))
    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10001)"

    execution = run(f"{numbers} select {columns} from n", timeout=60, max_rows=100_000)

    assert (execution.error.kind, execution.error.message) == ("too_large", "more than 10,000,000 cells")


def test_a_time_limit_of_years_is_no_error(run):
    assert run("select 1", timeout=1e12).error is None


def test_small_databases_of_one_script_have_their_own_rows_only_and_are_read_only(hosts):
    build = partial(ENGINES["sqlite"].build_with_rows, "CREATE TABLE t (n UNIQUE)", {}, hosts)
    limits = {"timeout": 5.0, "max_rows": 10}

    for rows in ([(1,), (2,)], [(b"x",)], []):
        engine = build({"t": rows})
        for query in ("COMMIT", "ROLLBACK", "DELETE FROM t", "INSERT INTO t VALUES (9)", "PRAGMA query_only = OFF"):
            assert engine.execute(query, **limits).error.kind == "unsafe"
            assert engine.execute("SELECT n FROM t", **limits).answer.rows == rows
    with pytest.raises(SourceError, match="UNIQUE constraint failed"):
        build({"t": [(1,), (1,)]}).execute("SELECT n FROM t", **limits)
    assert build({"t": [(3,)]}).execute("SELECT n FROM t", **limits).answer.rows == [(3,)]


def compared(hosts, queries, states, timeout=5.0):
    databases = [SmallDatabase("CREATE TABLE t (n UNIQUE)", {"t": rows}) for rows in states]
    return ENGINES["sqlite"].compare(queries, databases, {}, hosts, timeout=timeout, max_rows=2)


def test_two_queries_are_compared_in_several_databases_at_once(hosts):
    states = [(1,)], [(1,), (2,)], [(1,), (1,)], [(-(2**63),)], [(1,), (2,), (3,)]

    same, different, refused, failing, long = compared(
        hosts, ("SELECT n FROM t", "SELECT min(n) + 0 * abs(n) AS n FROM t"), states
    )

    assert same is None
    assert [execution.answer.rows for execution in different] == [[(1,), (2,)], [(1,)]]
    assert isinstance(refused, SourceError)
    assert "UNIQUE constraint failed" in str(refused)
    assert [execution.error and execution.error.message for execution in failing] == [None, "integer overflow"]
    assert long[0].error.message == "more than 2 rows"


def test_queries_only_read_where_they_are_compared_and_a_late_one_ends_it(hosts):
    (changed,) = compared(hosts, ("SELECT 1", "DELETE FROM t"), [[(1,)]])
    endless = "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c"
    queries = ("SELECT n FROM t", f"SELECT ({endless}) AS n FROM t")
    empty, late = compared(hosts, queries, [[], [(1,)], [(2,)]], timeout=0.3)

    assert changed[1].error.kind == "unsafe"
    assert empty is None
    assert (late[1].error.kind, late[1].error.message) == ("timeout", "no answer within 0.3 s")
