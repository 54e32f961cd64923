"""The engine `spark`: settings, and with PySpark and Java tables, values, limits and hostile statements."""

import datetime
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
from hostile_spark import ANSWER, COMMANDS, HARMLESS, HOSTILE, REACHING, WRONG
from servers import free_port, unvisited

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.scale import spark
from pytest_queryeval.sandbox.host import Hosts

SECONDS = 120.0  # for queries of no time: each runs as a job of Spark
LATE = 1.0
HALLS = 'hall_id,name,seats,opened\n1,Große Halle,400,2024-02-29\n2,"Keller, ""unten""",60,\n3,Garten,,2024-03-01\n'
EVENTS = '{"id": 1, "tags": ["a", "b"], "place": {"row": 2, "seat": 7.5}}\n{"id": 2, "tags": [], "place": null}\n'
TABLES = {"hall": "hall [1].csv", "events": "events.jsonl", "Saal 2": "halls.tsv"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    (folder / "hall [1].csv").write_text(HALLS, encoding="utf-8")
    (folder / "halls.tsv").write_text("name\tseats\nOben\t1\n", encoding="utf-8")
    (folder / "events.jsonl").write_text(EVENTS, encoding="utf-8")
    (folder / "secret.txt").write_text("swordfish")
    return folder


def opened(hosts, folder, **settings):
    return ENGINES["spark"].open(Source(name="m", engine="spark", settings=settings, folder=folder), hosts)


@pytest.fixture(scope="module")
def engine(folder):
    try:
        spark.check({"tables": TABLES})
    except SettingError as error:
        pytest.skip(str(error))
    before = descendants()
    with Hosts() as hosts:
        yield opened(hosts, folder, tables=TABLES)
    assert descendants() <= before


def parents():
    """The parents of all processes that have not ended."""
    actual = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if state != "Z":
            actual[int(status.parent.name)] = int(parent)
    return actual


def descendants(process=None):
    """The processes that a process has started, this one by default, and theirs."""
    of, processes = parents(), {process or os.getpid()}
    while more := {pid for pid, parent in of.items() if parent in processes} - processes:
        processes |= more
    return processes - {process or os.getpid()}


def processor_seconds(pids):
    """What processes have taken of the processors so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def java(monkeypatch):
    """Java and PySpark are there, whatever is installed."""
    monkeypatch.setattr(spark, "find_spec", lambda _: True)
    monkeypatch.setattr(spark, "which", lambda _: "/usr/bin/java")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs either tables or connect"),
        ({"master": "local[2]"}, "needs either tables or connect"),
        ({"tables": {"a": "a.csv"}, "connect": "sc://h"}, "needs either tables or connect"),
        ({"connect": "sc://h", "master": "local"}, "a Spark Connect server has its own"),
        ({"tables": {"a": "a.csv"}, "master": "spark://h:7077"}, "a cluster is queried through its Spark Connect"),
        ({"tables": {"a": "a.csv"}, "master": "local[0]"}, r"local\[N\]"),
        ({"tables": {}}, "a mapping of names of tables to names of files"),
        ({"tables": {"a": "a.xlsx"}}, "cannot tell the format of 'a.xlsx': known suffixes are .csv"),
        ({"connect": "http://h"}, "the address of a Spark Connect server"),
        ({"tables": {"a": "a.csv"}, "conf": {}}, "conf"),
    ],
)
@pytest.mark.usefixtures("java")
def test_settings_that_cannot_be_right_are_refused(settings, problem):
    with pytest.raises(SettingError, match=problem):
        spark.check(settings)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]"])
@pytest.mark.usefixtures("java")
def test_settings_of_files_and_servers_pass(master):
    spark.check({"tables": {"a": "a.csv", "b": "B.PARQUET"}, "master": master, "version": 3})
    spark.check({"connect": "sc://host:15002/;token=abc;use_ssl=true"})


@pytest.mark.parametrize(
    ("settings", "missing", "install"),
    [
        ({"tables": {"a": "a.csv"}}, "pyspark", r"pip install 'pytest-queryeval\[spark\]'"),
        ({"connect": "sc://h"}, "grpc", r"pip install 'pyspark\[connect\]'"),
    ],
)
@pytest.mark.usefixtures("java")
def test_package_that_is_missing_is_named_with_what_installs_it(monkeypatch, settings, missing, install):
    monkeypatch.setattr(spark, "find_spec", lambda name: None if name == missing else True)

    with pytest.raises(SettingError, match=install):
        spark.check(settings)


@pytest.mark.usefixtures("java")
def test_java_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(spark, "which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)

    with pytest.raises(SettingError, match="needs Java 17 or later: install a JDK, or set JAVA_HOME"):
        spark.check({"tables": {"a": "a.csv"}})


@pytest.mark.usefixtures("java")
def test_file_that_is_missing_is_a_source_error_before_spark_starts(tmp_path):
    with Hosts() as hosts, pytest.raises(SourceError, match=r"gone\.csv: no such file"):
        opened(hosts, tmp_path, tables={"gone": "gone.csv"})


@pytest.mark.parametrize("query", ["drop table hall", "select reflect('a', 'b')", "select 1; select 2"])
@pytest.mark.usefixtures("java")
def test_what_is_refused_starts_nothing(tmp_path, query):
    (tmp_path / "a.csv").write_text("x\n1\n")
    with Hosts() as hosts:
        engine = opened(hosts, tmp_path, tables={"a": "a.csv"})
        errors = [
            engine.execute(query, timeout=1, max_rows=1).error,
            engine.time("select 1", query, iterations=1, timeout=1).error,
        ]

    assert [error.kind for error in errors] == ["unsafe", "unsafe"]


@pytest.mark.usefixtures("java")
def test_server_gets_no_query_that_sqlglot_cannot_read(tmp_path):
    with Hosts() as hosts:
        engine = opened(hosts, tmp_path, connect="sc://127.0.0.1:1")
        error = engine.execute("select from where", timeout=1, max_rows=1).error

    assert error.kind == "unsafe"
    assert "cannot be read" in error.message


@pytest.mark.parametrize(("deaths", "kind"), [(1, None), (2, "too_large")])
def test_query_with_which_the_session_dies_is_asked_once_more_in_another(deaths, kind):
    calls, host = [], SimpleNamespace(name="spark", pid=None)

    def execute(question, **_):
        calls.append(question.text)
        died = question.text == "select 7" and calls.count("select 7") <= deaths
        host.pid = None if died else len(calls)
        error = Failure(kind="too_large", message="the process died") if died else None
        answer = None if died else Table(columns=("x",), rows=[(7,)])
        return Execution(query=None, answer=answer, error=error, engine="spark")

    engine = spark.SparkEngine("m", host, {"tables": {"a": "a.csv"}})
    engine._remote = SimpleNamespace(execute=execute)

    error = engine.execute("select 7", timeout=1, max_rows=1).error

    assert (error and error.kind) == kind
    assert calls == [spark.WARM_UP, "select 7"] * 2


def rows(engine, query, max_rows=1000):
    execution = engine.execute(query, timeout=SECONDS, max_rows=max_rows)
    assert execution.error is None, execution.error
    return execution.answer.rows


@pytest.mark.slow
def test_files_of_each_format_are_tables(engine):
    assert rows(engine, "select * from hall order by hall_id") == [
        (1, "Große Halle", 400, datetime.date(2024, 2, 29)),
        (2, 'Keller, "unten"', 60, None),
        (3, "Garten", None, datetime.date(2024, 3, 1)),
    ]
    assert rows(engine, "select * from `Saal 2`") == [("Oben", 1)]
    assert sorted(rows(engine, "select id, tags, place from events")) == [
        (1, '["a", "b"]', '{"row": 2, "seat": 7.5}'),
        (2, "[]", None),
    ]


@pytest.mark.slow
def test_values_come_through(engine):
    values = {
        "cast(1.50 as decimal(10, 2))": Decimal("1.50"),
        "date '2024-02-29'": datetime.date(2024, 2, 29),
        "timestamp '2026-01-01 10:00:00.25'": datetime.datetime(2026, 1, 1, 10, 0, 0, 250_000),
        "timestamp '2026-07-01 10:00:00+02:00'": datetime.datetime(2026, 7, 1, 8, 0),
        "timestamp_ntz '2026-01-01 10:00:00'": datetime.datetime(2026, 1, 1, 10, 0),
        "x'00ff'": b"\x00\xff",
        "array(1, null)": "[1, null]",
        "map('a', 1)": '{"a": 1}',
        "named_struct('a', array(named_struct('b', 2)))": '{"a": [{"b": 2}]}',
        "interval '36' hour": "P1DT12H",
        "interval '2' year": "INTERVAL '2' YEAR",
        "parse_json('{\"a\": 1}')": '{"a":1}',
        "true": True,
        "cast('naïve 🎻' as string)": "naïve 🎻",
        "1e0 / 3": 1 / 3,
        "cast(null as int)": None,
    }

    assert rows(engine, f"select {', '.join(values)}") == [tuple(values.values())]


@pytest.mark.slow
def test_value_that_python_cannot_hold_is_invalid(engine):
    error = engine.execute("select date '20000-01-01'", timeout=SECONDS, max_rows=10).error

    assert (error.kind, error.message) == ("invalid", "year 20000 is out of range")


@pytest.mark.slow
def test_columns_of_the_same_name_are_two(engine):
    answer = engine.execute("select seats as n, hall_id as n from hall", timeout=SECONDS, max_rows=10).answer

    assert answer.columns == ("n", "n")
    assert (400, 1) in answer.rows


@pytest.mark.slow
def test_tables_are_listed_and_written_as_statements(engine):
    schema, ddl = engine.schema(timeout=SECONDS), engine.ddl(timeout=SECONDS)

    assert schema.tables["hall"] == ("hall_id", "name", "seats", "opened")
    assert schema.tables.keys() == {name.lower() for name in TABLES}
    assert "CREATE TABLE `Saal 2` (\n  `name` string,\n  `seats` int\n);" in ddl


@pytest.mark.slow
def test_as_many_rows_as_are_allowed_are_fetched(engine):
    assert len(rows(engine, "select id from range(1000)", max_rows=1000)) == 1000


@pytest.mark.slow
def test_second_source_shares_the_process_and_no_table(engine, folder):
    rows(engine, "select 1")
    (folder / "other.csv").write_text("x\n1\n")
    with Hosts() as pool:
        pool._hosts[engine._host.name] = engine._host
        second = opened(pool, folder, tables={"other": "other.csv"})
        assert rows(second, "select * from other") == [(1,)]
        assert second.execute("select * from hall", timeout=SECONDS, max_rows=10).error.kind == "invalid"
        assert second.schema(timeout=SECONDS).tables == {"other": ("x",)}
        pool._hosts.clear()

    assert len(rows(engine, "select * from hall")) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"), [("ragged.csv", "a,b\n1,2\n3\n"), ("broken.jsonl", '{"a": 1}\n{"a": \n'), ("no.parquet", "x")]
)
def test_file_that_does_not_fit_its_format_is_a_source_error(engine, folder, name, content):
    (folder / name).write_text(content)
    with Hosts() as pool:
        pool._hosts[engine._host.name] = engine._host
        second = opened(pool, folder, tables={"t": name})
        with pytest.raises(SourceError, match=f"source 'm': .*{name}"):
            second.execute("select * from t", timeout=SECONDS, max_rows=10)
        pool._hosts.clear()


@pytest.fixture(scope="module")
def address():
    with unvisited() as driver:
        yield driver


@pytest.mark.slow
@pytest.mark.parametrize(("query", "kinds"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_statements_leave_tables_files_and_network_alone(engine, folder, address, query, kinds):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    written = query.replace("{folder}", str(folder)).replace("{address}", address)

    execution = engine.execute(written, timeout=LATE if "timeout" in kinds else SECONDS, max_rows=1000)

    assert (execution.error.kind if execution.error else ANSWER) in kinds, execution.error
    assert "swordfish" not in repr(execution)
    assert rows(engine, "select count(*), sum(seats) from hall") == [(3, 460)]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_java_ends_with_its_process_and_the_next_query_starts_both_again(engine):
    rows(engine, "select 1")
    ours = descendants(engine._host.pid)
    assert ours

    os.kill(engine._host.pid, signal.SIGKILL)

    deadline = time.monotonic() + 60
    while parents().keys() & ours and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not parents().keys() & ours
    assert rows(engine, "select count(*) from hall") == [(3,)]


@pytest.fixture(scope="module")
def server(folder):
    """The address of a Spark Connect server on which `hall` is a table, and the process."""
    try:
        spark.check({"connect": "sc://h"})
        spark.check({"tables": TABLES})
    except SettingError as error:
        pytest.skip(str(error))
    port = free_port()
    home = Path(importlib.util.find_spec("pyspark").origin).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    entry = "org.apache.spark.sql.connect.service.SparkConnectServer"
    process = subprocess.Popen(
        [str(home / "bin" / "spark-submit"), "--class", entry, "--master", "local[2]", *options, "spark-internal"],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as client:
                if not client.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.5)
        prepare = f"""
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("sc://127.0.0.1:{port}").getOrCreate()
halls = "(1, 'Große Halle', 400), (2, 'Keller', 60) as h(hall_id, name, seats)"
session.sql(f"create table hall using parquet as values {{halls}}")
"""
        subprocess.run([sys.executable, "-W", "ignore", "-c", prepare], check=True, timeout=300)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def connected(server, folder):
    with Hosts() as hosts:
        yield opened(hosts, folder, connect=server)


@pytest.mark.slow
def test_server_answers_and_lists_its_tables(connected):
    assert rows(connected, "select * from hall order by hall_id") == [(1, "Große Halle", 400), (2, "Keller", 60)]
    assert rows(connected, "select array(1, 2), named_struct('a', 1.50), interval '36' hour") == [
        ("[1, 2]", '{"a": 1.5}', "P1DT12H")
    ]
    assert connected.schema(timeout=SECONDS).tables == {"hall": ("hall_id", "name", "seats")}
    assert "CREATE TABLE `hall` (" in connected.ddl(timeout=SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["engine", "connected"])
def test_late_query_is_cancelled_and_the_session_stays(request, place):
    source = request.getfixturevalue(place)
    rows(source, "select 1")
    before = source._host.pid

    error = source.execute(HOSTILE["cartesian join"][0], timeout=LATE, max_rows=10).error

    assert error.kind == "timeout"
    assert source._host.pid == before
    busy = descendants()
    taken = processor_seconds(busy)
    time.sleep(2)
    assert processor_seconds(busy) - taken < 1  # the join takes all processors


@pytest.mark.slow
@pytest.mark.parametrize("name", [*COMMANDS, *REACHING, *HARMLESS, *WRONG])
def test_hostile_statements_leave_a_server_alone(connected, folder, address, name):
    query, kinds = HOSTILE[name]
    written = query.replace("{folder}", str(folder)).replace("{address}", address)

    execution = connected.execute(written, timeout=SECONDS, max_rows=1000)

    # What sqlglot cannot read is not sent.
    assert (execution.error.kind if execution.error else ANSWER) in {*kinds, "unsafe"}, execution.error
    assert "swordfish" not in repr(execution)
    assert not (folder / "written").exists()
    assert rows(connected, "select count(*), sum(seats) from hall") == [(2, 460)]


@pytest.mark.slow
def test_server_that_is_not_there_is_a_source_error(folder, server, monkeypatch):
    monkeypatch.setattr(spark, "CONNECT_SECONDS", 3.0)
    with Hosts() as hosts, pytest.raises(SourceError, match=r"^source 'm': "):
        opened(hosts, folder, connect=f"sc://127.0.0.1:{free_port()}").execute("select 1", timeout=3, max_rows=1)
