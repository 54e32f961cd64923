"""The child process of the engine `spark`, loaded by `host_child.py`: runs one SELECT at a time.

The session is in a JVM of its own, or on a Spark Connect server. The working directory is a folder that only this
process uses.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructField, StructType

from pytest_queryeval.core.db_schema import ColumnDefinition, TableDefinition, create_table
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import Alarm, Answer, Fault, Refused, Settings, Verdict, make_answer

SCRATCH = Path.cwd()
# All of the environment that PySpark and the JVM see, next to where Java is.
ENVIRONMENT = {
    **dict.fromkeys(("HOME", "TMPDIR", "SPARK_CONF_DIR"), str(SCRATCH)),
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",  # or each thread of the JVM reserves addresses, which are limited
    "SPARK_LOCAL_IP": "127.0.0.1",
    "TZ": "UTC",
}
HEAP = "2g"
RESULT = "256m"
JOB_TAG = "queryeval"
STOP_SECONDS, STOPS = 0.2, 15
POLL_SECONDS = 0.02
OPTIONS = " ".join(
    (
        *("-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError", "-XX:ErrorFile=/dev/null"),
        *(f"-Djava.io.tmpdir={SCRATCH}", "-Djava.net.preferIPv4Stack=true"),
    )
)
LOCAL = {
    "spark.driver.memory": HEAP,
    "spark.driver.maxResultSize": RESULT,
    "spark.driver.defaultJavaOptions": OPTIONS,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.local.dir": str(SCRATCH),
    "spark.log.level": "OFF",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.cteRecursionLevelLimit": "10000",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.warehouse.dir": str(SCRATCH / "warehouse"),
    "spark.ui.enabled": "false",
}
# By suffix, the format of a file and how it is read. All rows of CSV files decide on the types.
CSV = {
    "header": True,
    "inferSchema": True,
    "multiLine": True,
    "quote": '"',
    "escape": '"',
    "mode": "FAILFAST",
    "enforceSchema": False,
    "encoding": "UTF-8",
}
JSON = {"mode": "FAILFAST"}
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".csv": ("csv", {**CSV, "sep": ","}),
    ".tsv": ("csv", {**CSV, "sep": "\t"}),
    ".jsonl": ("json", JSON),
    ".ndjson": ("json", JSON),
    ".parquet": ("parquet", {}),
}
# The nodes of plans that read, and relations of our own tables. Whatever is not here is refused.
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
READING_PLANS = frozenset(
    (
        *("Aggregate", "CTERelationDef", "CTERelationRef", "Deduplicate", "Distinct", "Except", "Expand", "Filter"),
        *("Generate", "GlobalLimit", "Intersect", "Join", "LateralJoin", "LocalLimit", "LocalRelation", "Offset"),
        *("OneRowRelation", "Pivot", "Project", "Range", "ResolvedHint", "Sample", "Sort", "SubqueryAlias", "Union"),
        *("UnionLoop", "UnionLoopRef", "Unpivot", "UnresolvedHint", "UnresolvedWith", "View", "Window"),
        *("WithCTE", "WithWindowDefinition"),
    )
)
KNOWN_CLASS_PREFIXES = (
    "org.apache.spark.sql.catalyst.analysis.",
    "org.apache.spark.sql.catalyst.expressions.",
    "org.apache.spark.sql.execution.datasources.LogicalRelation",
)
# Expressions that call Java, read files or reveal their paths, or run code that a session has registered.
REACHING = re.compile(
    r"(CallMethodViaReflection|TryReflect|InputFile\w+|\w*UD[AT]?F|\w*Avro\w*|\w*Protobuf\w*|RelationTimeTravel)$"
)
METADATA = "__file_source_metadata_col"
FAULTS = ("CANNOT_READ_FILE", "FAILED_READ_FILE", "PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
# Types that PySpark cannot fetch.
TEXTUAL = re.compile(r"interval( year.*| month)?|variant|geometry.*|geography.*")
TOO_LARGE = ("OutOfMemoryError", "Java heap space", "maxResultSize")
LOST = ("UNAUTHENTICATED", "UNAVAILABLE")  # of a server of Spark Connect
CLASS = re.compile(r'"class":"([^"]+)"')
DETAILS = re.compile(r"^\s+details = \"(.*)\"$", re.MULTILINE)  # of gRPC
EXCEPTION = re.compile(r"^[\w.]+(Exception|Error): ")
SQLSTATE = re.compile(r"\s*SQLSTATE: .*", re.DOTALL)


class Driver(driver.TableDriver):
    """Runs queries in Spark, in one session for each source; `settings` are those of `spark.py`.

    Creating a driver replaces the environment of the process.
    """

    def __init__(self) -> None:
        java = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
        os.environ.clear()
        os.environ.update(ENVIRONMENT, **java)
        time.tzset()
        warnings.simplefilter("ignore")
        logging.disable()
        self._alarm = Alarm()
        self._sessions: dict[str, SparkSession] = {}

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run `query` and return the whole encoded answer, at most `max_rows` + 1 rows.

        The query is cancelled after `timeout` seconds. Raise `Fault`, `Refused` and PySpark's errors.
        """
        session = self._session(settings)
        if "connect" in settings:
            session.addTag(JOB_TAG)
            stop: Callable[[], object] = partial(session.interruptTag, JOB_TAG)
        else:
            session.sparkContext.setJobGroup(JOB_TAG, JOB_TAG, interruptOnCancel=True)
            stop = session.sparkContext.cancelAllJobs
        # Each call ends the jobs of its moment, and a query may be between two.
        self._alarm.set(*((timeout + number * STOP_SECONDS, stop) for number in range(STOPS)))
        frame = session.sql(query) if "connect" in settings else checked(session, query)
        names = [str(place) for place in range(len(frame.columns))]  # those of the query may be the same
        plain = frame.toDF(*names).select(*map(fetchable, names, frame.schema))
        if max_rows := settings.get("max_rows"):
            plain = plain.limit(max_rows + 1)
        rows = [[*map(plain_value, row)] for row in plain.collect()]
        self._alarm.clear()
        return make_answer(tuple(frame.columns), encode_rows(rows))

    def describe(self, settings: Settings) -> Answer:
        """Return an answer with a row for each column of all tables and views; raise the errors of `run`."""
        columns = ("table", "column", "type", "to_table", "to_column")
        return make_answer(
            columns,
            (
                (name, field.name, field.dataType.simpleString(), None, None)
                for name, schema in self._tables(settings)
                for field in schema
            ),
        )

    def ddl(self, settings: Settings) -> Answer:
        """Return an answer with the CREATE TABLE statement of each table and view; raise the errors of `run`."""
        tables = (
            TableDefinition(
                name,
                [ColumnDefinition(field.name, field.dataType.simpleString(), not field.nullable) for field in schema],
            )
            for name, schema in self._tables(settings)
        )
        return make_answer(("sql",), ((create_table(table, quoted),) for table in tables))

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of the other methods: whether the query or Spark is at fault, and its message.

        After a timeout, wait until no task runs. If the JVM has ended, kill this process.
        """
        is_late = self._alarm.clear() > 0
        text = message_of(error)
        if is_late:
            try:
                while tasks_running():  # they would take memory and time of the next query; the parent's limit holds
                    time.sleep(POLL_SECONDS)
            except (Py4JNetworkError, ConnectionError):  # the JVM has ended, and a process that ends so is late
                os.kill(os.getpid(), signal.SIGALRM)
            return "failure", "timeout", ""
        match error:
            case Fault():
                return "fault", text
            case Refused():
                return "failure", "unsafe", text
            case Py4JNetworkError() | ConnectionError():  # the JVM ends where it has no memory left
                os.kill(os.getpid(), signal.SIGKILL)
            case PySparkException() if (error.getCondition() or "").startswith(FAULTS):
                return "fault", text
        if any(name in str(error) for name in TOO_LARGE):
            return "failure", "too_large", text
        status = getattr(error, "getGrpcStatusCode", lambda: None)()
        if getattr(status, "name", "") in LOST or type(error).__name__ == "RetriesExceeded":
            return "fault", text
        return "failure", "invalid", text

    def _tables(self, settings: Settings) -> Iterator[tuple[str, StructType]]:
        session = self._session(settings)
        # Spark lists its own tables in lower case.
        for name in settings.get("tables") or [table.name for table in session.catalog.listTables()]:
            yield name, session.table(quoted(name)).schema

    def _session(self, settings: Settings) -> SparkSession:
        """Return the session of a source, and create it with its tables at first use; raise `Fault` if that fails.

        Sessions share only the JVM or the server.
        """
        tables = settings.get("tables", {})
        key = settings.get("connect") or json.dumps(tables)
        if key not in self._sessions:
            try:
                if "connect" in settings:
                    session = SparkSession.builder.remote(settings["connect"]).create()
                elif self._sessions:
                    session = next(iter(self._sessions.values())).newSession()
                else:
                    session = SparkSession.builder.config(map=LOCAL).master(settings["master"]).getOrCreate()
            except PySparkException as error:
                raise Fault(f"Spark does not start: {message_of(error)}") from error
            for name, path in tables.items():
                try:
                    table_of(session, path).createTempView(quoted(name))
                except Exception as error:
                    raise Fault(f"{path}: {message_of(error)}") from error
            self._sessions[key] = session
        return self._sessions[key]


def table_of(session: SparkSession, path: str) -> DataFrame:
    """Return the table of a file, in the format that its suffix names.

    A file that is not Parquet is read at once and copied, so that an invalid row is an error of the file, not of a
    query.
    """
    suffix = Path(path).suffix.lower()
    link = SCRATCH / f"{uuid4().hex}{suffix}"  # Spark takes brackets and braces in a name for a pattern
    link.symlink_to(path)
    name, options = FORMATS[suffix]
    frame = session.read.format(name).options(**options).load(str(link))
    if suffix == ".parquet":
        return frame
    copy = str(SCRATCH / uuid4().hex)
    frame.write.parquet(copy)
    return session.read.parquet(copy)


def checked(session: SparkSession, query: str) -> DataFrame:
    """Return the answer of `query`, not fetched yet; raise `Refused` if its plan does more than read.

    Parsing and analysis run nothing, and commands are plans too.
    """
    jvm, java = session._jvm, session._jsparkSession
    state = java.sessionState()
    parsed = state.sqlParser().parsePlan(query)
    require_reading(parsed.toJSON())
    skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    plan = state.executePlan(parsed, skip).analyzed()
    require_reading(plan.toJSON())
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(java, plan), session)


def require_reading(plan: str) -> None:
    """Raise `Refused` if a plan, given as JSON, has a node that is not known to read only."""
    for name in set(CLASS.findall(plan)):
        is_known = name.removeprefix(LOGICAL) in READING_PLANS or name.startswith(KNOWN_CLASS_PREFIXES)
        if not is_known or REACHING.search(name):
            raise Refused(f"only one query that reads is allowed: {name.rpartition('.')[2]}")
    if METADATA in plan:
        raise Refused("only one query that reads is allowed: _metadata")


def tasks_running() -> int:
    """Return the number of tasks that the JVM of this process runs; 0 for a Spark Connect server."""
    context = SparkContext._active_spark_context
    executors = context._jsc.sc().statusTracker().getExecutorInfos() if context else ()
    return sum(executor.numRunningTasks() for executor in executors)


def fetchable(name: str, field: StructField) -> Column:
    """Return the column called `name`, cast to text if PySpark cannot fetch its type."""
    return col(name).cast("string") if TEXTUAL.fullmatch(field.dataType.simpleString()) else col(name)


def plain_value(value: Any) -> Any:
    """Return a cell in which mappings replace PySpark's rows, at any depth."""
    match value:
        case Row():
            return {name: plain_value(inner) for name, inner in zip(value.__fields__, value, strict=True)}
        case list():
            return [*map(plain_value, value)]
        case dict():
            return {plain_value(name): plain_value(inner) for name, inner in value.items()}
    return value


def quoted(name: str) -> str:
    """Return a name in Spark's quotes, with quotes in it doubled."""
    return "`" + name.replace("`", "``") + "`"


def message_of(error: Exception) -> str:
    """Return the first line of an error's message, without the Java exception's name and SQLSTATE."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    if details := DETAILS.search(text):
        text = details[1]
    return SQLSTATE.sub("", EXCEPTION.sub("", text.strip().partition("\n")[0]))
