"""The engine `sqlite`: the contract of engines with all that SQLite has, and files, scripts and small databases."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial

import pytest
from hostile_statements import hostile, statements
from opened_sources import contents, execute, rows_of, source_of

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.engines import ENGINES, SmallDatabase
from pytest_queryeval.testing import EngineContract, open_engine

pytestmark = pytest.mark.process

CONCERTS = """
    create table concerts (id integer primary key, city text, price real);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
"""
NUMBERS = "with recursive n(i) as (select 1 union all select i + 1 from n limit {count})"
VALUES = {
    "null": None,
    "9223372036854775807": 2**63 - 1,
    "1e999": float("inf"),
    "'naïve 🎻'": "naïve 🎻",
    "x'00ff'": b"\x00\xff",
    "'a' || char(0) || 'b'": "a\0b",
    "cast(x'41ff42' as text)": "A\\xffB",  # not UTF-8
    "random() is not null": 1,
    "datetime('now') > '2000'": 1,
    "(select count(*) from cities)": 2,
    "(select group_concat(value) from json_each('[1, 2]'))": "1,2",
    "(select sum(atom) from json_tree('[1, [2]]'))": 3,
    "(select words from notes where notes match 'note' order by rank)": "a first note",
    "(select highlight(notes, 0, '<', '>') from notes('first'))": "a <first> note",
    "(select id from boxes where low >= 0 and high <= 4)": 1,
    # Facts of the schema are read as tables.
    "(select count(*) from pragma_table_list where name = 'concerts')": 1,
    "(select name from \"PRAGMA_table_xinfo\"('concerts') where cid = 1)": "city",
    "(select p.name from sqlite_master m, pragma_table_info(m.name) p where p.pk and m.name = 'concerts')": "id",
    "(select count(*) from pragma_foreign_key_list('concerts'), pragma_index_list('concerts'))": 0,
    "(select count(*) from pragma_index_info('none'), pragma_index_xinfo('none'))": 0,
}
ENDS = [";", ";;", " ; -- by flag", ";\n/* done; */", ";;; -- done", ";/* ; */;-- done\n;", "; /* open", " -- done;"]
MANY_COLUMNS = ", ".join(f"{number}" for number in range(1000))


def make(path, script=CONCERTS):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all that statements may attack, in which nothing may change."""
    folder = tmp_path_factory.mktemp("battery")
    make(folder / "all.db", statements("sqlite")["schema"])
    before = contents(folder)
    yield folder
    assert contents(folder) == before


@pytest.fixture(scope="module")
def engine(folder, hosts):
    with open_engine(source_of("sqlite", folder, path="all.db"), hosts) as engine:
        yield engine


class TestSqlite(EngineContract):
    answers = {
        **{f"select {expression} as x": (("x",), [(value,)]) for expression, value in VALUES.items()},
        **{f"select ';', 1 as [;]{end}": (("';'", ";"), [(";", 1)]) for end in ENDS},
        "with c as (select 1) select * from c": (("1",), [(1,)]),
        "values (1)": (("column1",), [(1,)]),
    }
    failures = hostile("sqlite")
    rows = f"{NUMBERS} select i from n"
    state = "select count(*), (select count(*) from orders), (select count(*) from notes) from concerts"
    schema = {"concerts": ("id", "city", "price"), "cities": ("city",), "notes": ("words",)}
    max_rows = 100_000

    @pytest.fixture(autouse=True)
    def place(self, folder):
        self.folder = folder

    def filled(self, query):
        return query.replace("{folder}", str(self.folder)).replace("{database}", str(self.folder / "all.db"))

    def broken_sources(self, folder):
        whole = make(folder / "whole.db").read_bytes()
        (folder / "torn.db").write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
        (folder / "loop.db").symlink_to("loop.db")
        with closing(sqlite3.connect(folder / "whole.db", isolation_level=None)) as connection:
            connection.executescript("pragma cache_size = 1; begin; update concerts set city = hex(zeroblob(90000));")
            for end in ("", "-journal"):
                (folder / f"interrupted.db{end}").write_bytes((folder / f"whole.db{end}").read_bytes())
            connection.execute("rollback")
        make(folder / "logged.db", f"pragma journal_mode = wal; {CONCERTS}")
        with closing(sqlite3.connect(folder / "logged.db")) as writer:
            writer.execute("delete from concerts")
            writer.commit()
            for end in ("", "-wal"):
                (folder / f"copy.db{end}").write_bytes((folder / f"logged.db{end}").read_bytes())
        for name, reason in {
            "torn.db": "malformed",
            "loop.db": "loop.db",
            "interrupted.db": "interrupted.db",
            "copy.db": "wal_checkpoint",
        }.items():
            yield source_of("sqlite", folder, path=name), reason
        for settings, problem in {
            (): "a source of sqlite needs a path or a script: write {sqlite: FILE} or {sqlite: {script: FILE}}",
            (("path", 7),): "`path` must be the name of a file",
            (("path", ""),): "`path` must be the name of a file",
        }.items():
            yield source_of("sqlite", folder, **dict(settings)), f"source 'music': {problem}"

    @pytest.mark.parametrize(
        ("query", "action"),
        [
            ("update concerts set price = 1", "only reading is allowed: UPDATE concerts.price"),
            ("delete from concerts", "only reading is allowed: DELETE concerts"),
            ("pragma journal_mode = off", "only reading is allowed: PRAGMA journal_mode off"),
            ("create table copies (id)", "only reading is allowed: a change of the schema"),
            ("select count(*) from main.Pragma_Integrity_Check", "only reading is allowed: PRAGMA integrity_check"),
            ("select count(*) from sqlite_stmt", "only tables of the database may be read: sqlite_stmt"),
            ('select 1 as a "order" 2', 'near "order": syntax error'),
            ("select 1 as a 'order' 2", "near 'order': syntax error"),
            ("select 1 as a join 2", 'near "join": syntax error'),
            (f"{NUMBERS.format(count=10_001)} select {MANY_COLUMNS} from n", "more than 10,000,000 cells"),
        ],
    )
    def test_a_query_that_fails_is_told_why(self, engine, query, action):
        assert engine.execute(query, timeout=60, max_rows=100_000).error.message == action

    def test_rows_before_undecodable_text_are_kept_once(self, engine):
        query = f"{NUMBERS.format(count=5000)} select i, case i when 4000 then cast(x'ff' as text) end from n"

        rows = engine.execute(query, timeout=20, max_rows=5000).answer.rows

        assert [number for number, _ in rows] == list(range(1, 5001))
        assert rows[3999] == (4000, "\\xff")


@pytest.fixture
def run(hosts, tmp_path, monkeypatch):
    """Executes a query on a database of `tmp_path`, or on the one of other settings."""
    make(tmp_path / "concerts.db")
    monkeypatch.chdir(tmp_path)

    def execute_in_folder(query="select count(*) from concerts", timeout=5, **settings):
        source = source_of("sqlite", tmp_path, **(settings or {"path": "concerts.db"}))
        return rows_of(hosts, source, query, timeout=timeout)

    return execute_in_folder


def test_a_database_with_a_schema_that_grew_meanwhile_is_read_again(run, tmp_path):
    assert run() == [(3,)]

    make(tmp_path / "concerts.db", "insert into concerts values (4, 'Bonn', 1.0); create table late (x)")

    assert run("select count(*) from concerts, (select count(*) from late)") == [(4,)]


@pytest.mark.parametrize("name", ["what?.db", "link.db"])
def test_links_and_question_marks_lead_to_the_file(run, tmp_path, name):
    if name == "link.db":
        (tmp_path / name).symlink_to("concerts.db")
    else:
        make(tmp_path / name)

    assert run(path=name) == [(3,)]


def test_a_name_that_the_locale_cannot_express_is_one_line(tmp_path):
    program = """
from pathlib import Path
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import open_engine
try:
    with open_engine(Source(name="m", engine="sqlite", settings={"path": "caf\\u00e9.db"}, folder=Path.cwd())):
        pass
except SourceError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout == "'caf\\xe9.db': not a file name in this locale (ascii): set PYTHONUTF8=1\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_a_source_error(run, tmp_path):
    (tmp_path / "concerts.db").chmod(0)

    with pytest.raises(SourceError, match="Permission denied"):
        run()


@pytest.mark.parametrize("is_open", [False, True], ids=["new", "open"])
def test_a_database_that_stays_locked_is_a_source_error(run, tmp_path, is_open):
    if is_open:
        run()
    with closing(sqlite3.connect(tmp_path / "concerts.db", isolation_level=None)) as connection:
        connection.execute("begin exclusive")

        with pytest.raises(SourceError, match="database is locked"):
            run(timeout=0.5)
        connection.execute("rollback")

    assert run() == [(3,)]


def test_a_write_ahead_log_is_read_and_left_alone(run, tmp_path):
    make(tmp_path / "concerts.db", "pragma journal_mode = wal")
    files = contents(tmp_path)
    before, was_untouched = run(), contents(tmp_path) == files

    with closing(sqlite3.connect(tmp_path / "concerts.db")) as writer:
        writer.execute("delete from concerts where id = 1")
        writer.commit()
        files = contents(tmp_path)
        after, is_untouched = run(), contents(tmp_path) == files

    assert (before, after) == ([(3,)], [(2,)])
    assert (was_untouched, is_untouched) == (True, True)


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

    assert run("select count(*) from t", script="t.sql") == [(1,)]


DEFERRED = "create table u (x references t deferrable initially deferred)"
ROWS = "with recursive n(i) as (values (1) union all select i + 1 from n where i < 9) select zeroblob(9999) from n"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            "create table t (x);\n\n-- wrong\ninsert into\n  nowhere values (1);\n",
            r"bad\.sql:3: no such table: nowhere$",
        ),
        (
            "create table t (x)\nINSERT INTO t VALUES (1);\n",
            r':2: near "INSERT": syntax error: end the statement before INSERT with `;`$',
        ),
        ("create table t (x);\ninsert into t value (1);\n", r'bad\.sql:2: near "value": syntax error$'),
        (
            f"pragma foreign_keys = on; create table t (x primary key); {DEFERRED};\nbegin;\ninsert into u values (1);",
            r"bad\.sql:\d: FOREIGN KEY constraint failed$",
        ),
        (
            f"pragma max_page_count = 2;\ncreate table t (x);\ninsert into t {ROWS};\n",
            r"bad\.sql: /.*: no room for the database: name another folder .*TMPDIR$",
        ),
    ],
)
def test_a_failing_script_is_named_with_its_line(run, tmp_path, script, problem):
    (tmp_path / "bad.sql").write_text(script)

    with pytest.raises(SourceError, match=problem):
        run(script="bad.sql")


@pytest.mark.skipif(sys.platform != "linux", reason="address space is bounded on Linux")
def test_a_query_that_needs_too_much_memory_is_told_so(hosts, folder):
    query = f"{NUMBERS.format(count=90)} select max(b) from (select zeroblob(30000000) || i as b from n order by 1)"

    error = execute(hosts, source_of("sqlite", folder, path="all.db"), query, timeout=30).error

    assert (error.kind, error.message) == ("too_large", "out of memory")


def test_a_time_limit_of_years_is_no_error(run):
    assert run(timeout=1e12) == [(3,)]


SCRIPT = """
    create table Singer (Id integer primary key, Name text);
    create table pair (x int, y int, primary key (x, y));
    create table Song (a int, b int, Singer references singer, cover int references Song(a),
        foreign key (a, b) references pair, foreign key (B) references Singer(ID));
    create table "odd ""name" ("sp ace" int);
    create table n (b int as (a * 2) stored, a int) strict;
    create view names as select name from singer;
    create view broken as select * from nothing_there;
"""
KEYS = (
    (("song", "a"), ("pair", "x")),
    (("song", "b"), ("pair", "y")),
    (("song", "b"), ("singer", "id")),
    (("song", "singer"), ("singer", "id")),
    (("song", "cover"), ("song", "a")),
)
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
DEAF = f"select {', '.join(f'length(printf({name!r}, 1e9, {name!r}))' for name in ('%.*c', '%.*d'))}"


@pytest.fixture
def songs(hosts, tmp_path):
    make(tmp_path / "songs.db", SCRIPT)
    with open_engine(source_of("sqlite", tmp_path, path="songs.db"), hosts) as engine:
        yield engine


def test_the_schema_has_what_a_star_has_and_follows_the_database(songs, tmp_path):
    schema = songs.schema(timeout=5)

    assert schema.tables == {
        "singer": ("id", "name"),
        "pair": ("x", "y"),
        "song": ("a", "b", "singer", "cover"),
        'odd "name': ("sp ace",),
        "n": ("b", "a"),
        "names": ("name",),
    }
    assert schema.foreign_keys == KEYS
    assert songs.execute("select * from n", timeout=5, max_rows=1).table.columns == schema.tables["n"]

    make(tmp_path / "songs.db", 'drop view names; drop table song; drop table "odd ""name"')
    changed = songs.schema(timeout=5)

    assert changed.tables.keys() == {"singer", "pair", "n"}
    assert changed.foreign_keys == ()


def test_there_is_a_row_of_positive_seconds_an_iteration_in_the_columns_of_the_queries(songs):
    counted = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) select count(*) from n"

    for gold, predicted, iterations, is_slower in ((counted, "select 2", 1, True), ("select 2", counted, 100, False)):
        answer = songs.time(gold, predicted, iterations=iterations, timeout=1e300).answer
        slow, fast = (sum(row[place] for row in answer.rows) for place in ((0, 1) if is_slower else (1, 0)))

        assert (answer.columns, len(answer.rows)) == (("gold", "predicted"), iterations)
        assert slow > fast > 0


@pytest.mark.parametrize(
    ("predicted", "kind"),
    [(ENDLESS, "timeout"), (DEAF, "timeout"), ("select nope", "invalid"), ("drop table singer", "unsafe")],
)
def test_what_is_timed_is_guarded_like_any_query(songs, predicted, kind):
    assert songs.time("select 1", predicted, iterations=3, timeout=0.2).error.kind == kind
    assert len(songs.time("select 1", "select 2", iterations=3, timeout=5).answer.rows) == 3
    assert songs.schema(timeout=5).foreign_keys == KEYS


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
