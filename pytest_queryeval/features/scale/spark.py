"""The engine `spark`: files as tables of a local session, or a server of Spark Connect."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.shapes import pattern_shape, text_setting
from pytest_queryeval.engines import EngineType, Settings, SourceFingerprint
from pytest_queryeval.engines.bases import RemoteDatabase
from pytest_queryeval.engines.settings import TABLES, absolute, check_settings, require_file
from pytest_queryeval.sandbox.host import Host, Hosts, QueryRequest
from pytest_queryeval.text.redaction import register_secrets

DRIVER = Path(__file__).with_name("spark_child.py")
PACKAGES = ("pyspark", "py4j")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
MASTER = "local[2]"
# A JVM reserves much more addresses than the 2 GiB that it may use.
MEMORY_BYTES = 24 * 2**30
FILE_BYTES = 16 * 2**30  # of each file that sorts and joins write to the folder of the process
START_SECONDS = 300.0  # of a JVM on a busy machine, which then reads the tables
CONNECT_SECONDS = 30.0
CANCEL_SECONDS = 3.0  # a session that must start again takes longer
PROBE = "SELECT 1"
# Has the JVM load what most queries need, which takes longer than they do.
WARM_UP = "SELECT a.id, count(*) FROM range(2) a JOIN range(2) b ON a.id = b.id GROUP BY a.id ORDER BY 2, 1"
_MASTER = re.compile(r"local(\[([1-9]\d{0,2}|\*)\])?")
_CONNECT = re.compile(r"sc://[^\s/:]+(:\d+)?(/[^\s]*)?")
SETTINGS = {
    "master": text_setting(
        "local[N], such as local[2] (a cluster is queried through its Spark Connect server: connect: sc://host)",
        _MASTER.fullmatch,
        pattern_shape(r"^local(\[([1-9]\d{0,2}|\*)\])?$"),
    ),
    "tables": TABLES,
    "connect": text_setting(
        "the address of a Spark Connect server, such as sc://host:15002/;token=…",
        _CONNECT.fullmatch,
        pattern_shape("^sc://"),
    ),
}


def check(settings: Settings) -> None:
    """Raise `SettingError` for invalid settings, for missing software, and unless either tables or a server are set."""
    check_settings(settings, SETTINGS)
    if ("tables" in settings) == ("connect" in settings):
        raise SettingError("tables", "needs either tables or connect")
    if "connect" in settings and "master" in settings:
        raise SettingError("master", "'master' is for tables: a Spark Connect server has its own")
    for name in settings.get("tables", {}).values():
        if Path(name).suffix.lower() not in SUFFIXES:
            raise SettingError(
                "tables", f"cannot tell the format of '{name}': known suffixes are {', '.join(SUFFIXES)}"
            )
    if find_spec("pyspark") is None:
        raise SettingError(next(iter(settings)), "needs pyspark: pip install 'pytest-queryeval[spark]'")
    if "connect" in settings and find_spec("grpc") is None:
        raise SettingError("connect", "needs grpcio: pip install 'pyspark[connect]'")
    if "tables" in settings and not (os.environ.get("JAVA_HOME") or which("java")):
        raise SettingError("tables", "needs Java 17 or later: install a JDK, or set JAVA_HOME")


def open_spark(source: Source, hosts: Hosts) -> SparkEngine:
    """Return the engine of `{spark: {tables: {name: file}, master: local[2]}}` or `{spark: {connect: sc://…}}`.

    Paths are relative to the source's folder. The first query starts a session, which reads the tables. Raise
    `SourceError` if a file is missing.
    """
    settings = source.settings
    register_secrets(settings)
    if "connect" in settings:
        name, child_settings = "spark connect", {"connect": settings["connect"]}
    else:
        files = {table: absolute(source.folder, file) for table, file in settings["tables"].items()}
        for file in files.values():
            require_file(file)
        master = settings.get("master", MASTER)
        name, child_settings = (
            f"spark {master}",
            {"master": master, "tables": {table: str(files[table]) for table in files}},
        )
    host = Host(name, DRIVER, packages=PACKAGES, memory=MEMORY_BYTES, file_bytes=FILE_BYTES, grace=CANCEL_SECONDS)
    return SparkEngine(source.name, hosts.shared(host), child_settings)


class SparkEngine(RemoteDatabase):
    """Tables that Spark queries; `settings` are those of `spark_child.py`, except `max_rows`."""

    def __init__(self, name: str, host: Host, settings: Mapping[str, Any]) -> None:
        self._pid: int | None = None
        # A session of its own takes longer to start again than a server takes to answer a probe.
        ambiguous_failures = {"timeout"} if "connect" in settings else ()
        super().__init__(name, host, settings, QueryRequest(PROBE, settings), ambiguous_failures=ambiguous_failures)

    def _question(self, query: str, max_rows: int | None = None) -> QueryRequest:
        return QueryRequest(query, self._settings if max_rows is None else {**self._settings, "max_rows": max_rows})

    def _send(self, question: QueryRequest, *, timeout: float, max_rows: int) -> Execution:
        execution = super()._send(question, timeout=timeout, max_rows=max_rows)
        if self._host.pid is None and execution.error and execution.error.kind == "too_large":
            # The memory may have been taken by tasks of an earlier query, which end some time after it is cancelled.
            self._start()
            execution = super()._send(question, timeout=timeout, max_rows=max_rows)
        return execution

    def _start(self) -> None:
        """Start the session before a query, so that the start does not count as the query's time.

        Do nothing if the session runs. Raise `SourceError` if it does not start.
        """
        if self._pid is None or self._pid != self._host.pid:
            seconds = CONNECT_SECONDS if "connect" in self._settings else START_SECONDS
            started = super()._send(QueryRequest(WARM_UP, self._settings), timeout=seconds, max_rows=2)
            if started.error:
                raise SourceError(f"source '{self._name}': Spark does not start: {started.error.message}")
            self._pid = self._host.pid

    def _refusal(self, query: str) -> Failure | None:
        """Return why a query must not be sent; None if it may be.

        A query of files that sqlglot cannot read is not refused here, because the child process checks Spark's own
        plan.
        """
        from pytest_queryeval.engines.readonly import UNREADABLE, refusal

        failure = refusal(query, "spark")
        return None if failure and UNREADABLE in failure.message and "tables" in self._settings else failure


def files(source: Source) -> Sequence[str]:
    """Return the names of the files of the tables as the settings have them; empty for a server."""
    return [*source.settings.get("tables", {}).values()]


SPARK = EngineType(
    opener=open_spark,
    kind="sql",
    dialect=lambda _: "spark",
    text_setting="connect",
    check=check,
    settings=SETTINGS,
    fingerprint=SourceFingerprint(
        files=files,
        settings=lambda settings: {"tables": list(settings["tables"])} if "tables" in settings else {},
        version=lambda _: f"pyspark {version('pyspark')}",
    ),
)
