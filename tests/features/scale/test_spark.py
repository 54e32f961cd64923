"""Spark: settings, and with PySpark and Java the contract of engines on files and on a Spark Connect server."""

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
from hostile_statements import hostile
from opened_sources import contents, rows_of, source_of
from servers import free_port, unvisited
from waiting import is_running, wait_for

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import FrozenMapping, Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.testing import EngineContract, open_engine

SPARK = "pytest_queryeval.features.scale.spark"
SECONDS = 120  # for queries of no time: each runs as a job of Spark
HALLS = 'hall_id,name,seats,opened\n1,Große Halle,400,2024-02-29\n2,"Keller, ""unten""",60,\n3,Garten,,2024-03-01\n'
EVENTS = '{"id": 1, "tags": ["a", "b"], "place": {"row": 2, "seat": 7.5}}\n{"id": 2, "tags": [], "place": null}\n'
TABLES = {"hall": "hall [1].csv", "events": "events.jsonl", "Saal 2": "halls.tsv"}
FILES = {"tables": {"a": "a.csv"}}
VALUES = {
    "cast(1.50 as decimal(10, 2))": Decimal("1.50"),
    "date '2024-02-29'": datetime.date(2024, 2, 29),
    "timestamp '2026-01-01 10:00:00.25'": datetime.datetime(2026, 1, 1, 10, 0, 0, 250_000),
    "timestamp '2026-07-01 10:00:00+02:00'": datetime.datetime(2026, 7, 1, 8, 0),
    "timestamp_ntz '2026-01-01 10:00:00'": datetime.datetime(2026, 1, 1, 10, 0),
    "x'00ff'": b"\x00\xff",
    "array(1, null)": (1, None),
    "map('a', 1)": FrozenMapping({"a": 1}),
    "named_struct('a', array(named_struct('b', 2)))": FrozenMapping({"a": (FrozenMapping({"b": 2}),)}),
    "interval '36' hour": "P1DT12H",
    "interval '2' year": "INTERVAL '2' YEAR",
    "parse_json('{\"a\": 1}')": '{"a":1}',
    "true": True,
    "cast('naïve 🎻' as string)": "naïve 🎻",
    "1e0 / 3": 1 / 3,
    "cast(null as int)": None,
}


@pytest.fixture
def java(monkeypatch):
    """Java and PySpark are there, whatever is installed."""
    monkeypatch.setattr(f"{SPARK}.find_spec", lambda _: True)
    monkeypatch.setattr(f"{SPARK}.which", lambda _: "/usr/bin/java")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs either tables or connect"),
        ({"master": "local[2]"}, "needs either tables or connect"),
        ({**FILES, "connect": "sc://h"}, "needs either tables or connect"),
        ({"connect": "sc://h", "master": "local"}, "a Spark Connect server has its own"),
        ({**FILES, "master": "spark://h:7077"}, "a cluster is queried through its Spark Connect"),
        ({**FILES, "master": "local[0]"}, r"local\[N\]"),
        ({"tables": {}}, "a mapping of names of tables to names of files"),
        ({"tables": {"a": "a.xlsx"}}, "cannot tell the format of 'a.xlsx': known suffixes are .csv"),
        ({"connect": "http://h"}, "the address of a Spark Connect server"),
        ({**FILES, "conf": {}}, "conf"),
    ],
)
@pytest.mark.usefixtures("java")
def test_settings_that_cannot_be_right_are_refused(settings, problem):
    with pytest.raises(SettingError, match=problem):
        ENGINES["spark"].check(settings)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]"])
@pytest.mark.usefixtures("java")
def test_settings_of_files_and_servers_pass(master):
    ENGINES["spark"].check({"tables": {"a": "a.csv", "b": "B.PARQUET"}, "master": master, "version": 3})
    ENGINES["spark"].check({"connect": "sc://host:15002/;token=abc;use_ssl=true"})


@pytest.mark.parametrize(
    ("settings", "missing", "install"),
    [
        (FILES, "pyspark", r"pip install 'pytest-queryeval\[spark\]'"),
        ({"connect": "sc://h"}, "grpc", r"pip install 'pyspark\[connect\]'"),
        (FILES, "java", "needs Java 17 or later: install a JDK, or set JAVA_HOME"),
    ],
)
@pytest.mark.usefixtures("java")
def test_what_is_missing_is_named_with_what_installs_it(monkeypatch, settings, missing, install):
    monkeypatch.setattr(f"{SPARK}.find_spec", lambda name: None if name == missing else True)
    if missing == "java":
        monkeypatch.setattr(f"{SPARK}.which", lambda _: None)
        monkeypatch.delenv("JAVA_HOME", raising=False)

    with pytest.raises(SettingError, match=install):
        ENGINES["spark"].check(settings)


@pytest.mark.usefixtures("java")
def test_what_is_refused_starts_nothing(hosts, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    with open_engine(source_of("spark", tmp_path, **FILES), hosts) as engine:
        errors = []
        for query in ("drop table hall", "select reflect('a', 'b')", "select 1; select 2"):
            errors.append(engine.execute(query, timeout=1, max_rows=1).error)
            errors.append(engine.time("select 1", query, iterations=1, timeout=1).error)
    with open_engine(source_of("spark", connect="sc://127.0.0.1:1"), hosts) as server:
        errors.append(server.execute("select from where", timeout=1, max_rows=1).error)

    assert {error.kind for error in errors} == {"unsafe"}
    assert "cannot be read" in errors[-1].message
    with (
        pytest.raises(SourceError, match=r"gone\.csv: no such file"),
        open_engine(source_of("spark", tmp_path, tables={"gone": "gone.csv"}), hosts),
    ):
        pass


@pytest.mark.parametrize(("deaths", "kind"), [(1, None), (2, "too_large")])
@pytest.mark.usefixtures("java")
def test_a_query_with_which_the_session_dies_is_asked_once_more_in_another(tmp_path, deaths, kind):
    (tmp_path / "a.csv").write_text("x\n1\n")
    calls = []

    def execute(settings, text, **limits):
        calls.append(text)
        died = text == "select 7" and calls.count(text) <= deaths
        host.pid = None if died else len(calls)
        if died:
            return Execution(query=None, error=Failure(kind="too_large", message="the process died"), engine="spark")
        return Execution(query=None, answer=Table(columns=("x",), rows=[(7,)]), engine="spark")

    host = SimpleNamespace(name="spark", pid=None, execute=execute)
    with open_engine(source_of("spark", tmp_path, **FILES), SimpleNamespace(shared=lambda _: host)) as engine:
        error = engine.execute("select 7", timeout=1, max_rows=1).error

    warm_up = calls[0]
    assert (error and error.kind) == kind
    assert calls == [warm_up, "select 7"] * 2
    assert warm_up != "select 7"


def require(**settings):
    try:
        ENGINES["spark"].check(settings)
    except SettingError as error:
        pytest.skip(str(error))


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


def descendants():
    """The processes that this one has started, and theirs."""
    of, processes = parents(), {os.getpid()}
    while more := {pid for pid, parent in of.items() if parent in processes} - processes:
        processes |= more
    return processes - {os.getpid()}


def sessions():
    """Each Java that another process below this one has started, with that process."""
    of, ours = parents(), descendants()
    return {pid: of[pid] for pid in ours if of.get(pid) in ours and "java" in Path(f"/proc/{pid}/comm").read_text()}


def processor_seconds(pids):
    """What processes have taken of the processors so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with files that no query may read or change."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "hall [1].csv").write_text(HALLS, encoding="utf-8")
    (folder / "halls.tsv").write_text("name\tseats\nOben\t1\n", encoding="utf-8")
    (folder / "events.jsonl").write_text(EVENTS, encoding="utf-8")
    (folder / "secret.txt").write_text("swordfish")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


@pytest.fixture(scope="module")
def files(hosts, folder):
    """The files as tables, in a process that later sources share."""
    require(tables=TABLES)
    with open_engine(source_of("spark", folder, tables=TABLES), hosts) as engine:
        yield engine


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a Spark Connect server on which `hall` is a table."""
    require(connect="sc://h")
    require(tables=TABLES)
    folder = tmp_path_factory.mktemp("server")
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
        with socket.socket() as client:
            wait_for(lambda: process.poll() is not None or not client.connect_ex(("127.0.0.1", port)), 300)
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
def connected(server, hosts, folder):
    with open_engine(source_of("spark", folder, connect=server), hosts) as engine:
        yield engine


@pytest.mark.slow
class TestFiles(EngineContract):
    answers = {
        "select * from hall order by hall_id": (
            ("hall_id", "name", "seats", "opened"),
            [
                (1, "Große Halle", 400, datetime.date(2024, 2, 29)),
                (2, 'Keller, "unten"', 60, None),
                (3, "Garten", None, datetime.date(2024, 3, 1)),
            ],
        ),
        "select * from `Saal 2`": (("name", "seats"), [("Oben", 1)]),
        "select id, tags, place from events order by id": (
            ("id", "tags", "place"),
            [(1, ("a", "b"), FrozenMapping({"row": 2, "seat": 7.5})), (2, (), None)],
        ),
        f"select {', '.join(f'{value} as c' for value in VALUES)}": (("c",) * len(VALUES), [tuple(VALUES.values())]),
    }
    failures = {**hostile("spark"), "invalid": [*hostile("spark")["invalid"], "select date '20000-01-01'"]}
    failures["unsafe"] = failures["unsafe invalid"][:1]
    rows = "select id from range({count})"
    state = "select count(*), sum(seats) from hall"
    schema = {"hall": ("hall_id", "name", "seats", "opened"), "saal 2": ("name", "seats")}
    ddl = ("CREATE TABLE `Saal 2` (", "`name` string,", "`seats` int")
    seconds = SECONDS
    late_seconds = 1

    @pytest.fixture
    def engine(self, files):
        return files

    @pytest.fixture(autouse=True)
    def place(self, folder):
        require(tables=TABLES)
        with unvisited() as address:
            self.folder, self.address = folder, address
            yield

    def filled(self, query):
        return query.replace("{folder}", str(self.folder)).replace("{address}", self.address)

    def broken_sources(self, folder):
        for name, content in (
            ("ragged.csv", "a,b\n1,2\n3\n"),
            ("broken.jsonl", '{"a": 1}\n{"a": \n'),
            ("no.parquet", "x"),
        ):
            (folder / name).write_text(content)
            yield source_of("spark", folder, tables={"t": name}), name

    def test_no_file_or_address_is_in_an_answer(self, engine):
        for query in hostile("spark")["answer invalid"]:
            execution = engine.execute(self.filled(query), timeout=SECONDS, max_rows=10)
            assert "swordfish" not in repr(execution)


@pytest.mark.slow
class TestConnect(TestFiles):
    answers = {
        "select * from hall order by hall_id": (
            ("hall_id", "name", "seats"),
            [(1, "Große Halle", 400), (2, "Keller", 60)],
        ),
        "select array(1, 2) as a, named_struct('a', 1.50) as b, interval '36' hour as c": (
            ("a", "b", "c"),
            [((1, 2), FrozenMapping({"a": Decimal("1.50")}), "P1DT12H")],
        ),
    }
    # What sqlglot cannot read is not sent. What takes the memory would take the server's.
    failures = {
        f"{kinds} unsafe" if "invalid" in kinds else kinds: queries
        for kinds, queries in TestFiles.failures.items()
        if kinds != "timeout too_large"
    }
    schema = {"hall": ("hall_id", "name", "seats")}
    ddl = ("CREATE TABLE `hall` (",)

    @pytest.fixture
    def engine(self, connected):
        return connected

    def broken_sources(self, folder):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"{SPARK}.CONNECT_SECONDS", 3.0)
            yield source_of("spark", connect=f"sc://127.0.0.1:{free_port()}"), "source 'music': "


@pytest.mark.slow
def test_a_second_source_shares_the_process_and_no_table(files, hosts, folder, tmp_path):
    (tmp_path / "other.csv").write_text("x\n1\n")
    files.execute("select 1", timeout=SECONDS, max_rows=10)
    before = sessions()

    with open_engine(source_of("spark", tmp_path, tables={"other": "other.csv"}), hosts) as second:
        answer = second.execute("select * from other", timeout=SECONDS, max_rows=10).answer
        error = second.execute("select * from hall", timeout=SECONDS, max_rows=10).error
        schema = second.schema(timeout=SECONDS)

    assert (answer.rows, error.kind, schema.tables) == ([(1,)], "invalid", {"other": ("x",)})
    assert len(rows_of(hosts, source_of("spark", folder, tables=TABLES), "select * from hall", timeout=SECONDS)) == 3
    assert sessions() == before


@pytest.mark.slow
@pytest.mark.parametrize("place", ["files", "connected"])
def test_a_late_query_is_cancelled_and_the_session_stays(request, place):
    engine = request.getfixturevalue(place)
    engine.execute("select 1", timeout=SECONDS, max_rows=10)
    before = sessions()

    error = engine.execute(hostile("spark")["timeout"][0], timeout=1, max_rows=10).error

    assert error.kind == "timeout"
    assert sessions() == before
    busy = descendants()
    taken = processor_seconds(busy)
    time.sleep(2)
    assert processor_seconds(busy) - taken < 1  # the join takes all processors


@pytest.mark.slow
def test_java_ends_with_its_process_and_the_next_query_starts_both_again(folder):
    require(tables=TABLES)
    others = sessions()
    query = "select count(*) from hall"
    with open_engine(source_of("spark", folder, tables=TABLES)) as engine:
        assert engine.execute("select 1", timeout=SECONDS, max_rows=1).answer
        ((java, process),) = sessions().items() - others.items()

        os.kill(process, signal.SIGKILL)

        wait_for(lambda: not is_running(java))
        assert engine.execute(query, timeout=SECONDS, max_rows=1).answer.rows == [(3,)]
    wait_for(lambda: sessions() == others, 1)
