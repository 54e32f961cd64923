"""The engine `duckdb`: a database file, or a database that is made of a script or of tables in files."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Source
from pytest_queryeval.core.shapes import FILE_NAME
from pytest_queryeval.engines import EngineType, Settings, SourceFingerprint, WriteDriver, with_cells
from pytest_queryeval.engines.bases import DatabaseFile, DatabaseInMemory, file_settings, script_remedy
from pytest_queryeval.engines.settings import (
    TABLES,
    VARIANTS,
    VARIANTS_SETTING,
    absolute,
    check_settings,
    file_path,
    require_file,
)
from pytest_queryeval.sandbox.host import Host, Hosts, run_program

DRIVER = Path(__file__).with_name("duckdb_child.py")
WRITES_DRIVER = Path(__file__).with_name("duckdb_writes_child.py")
BUILDER = Path(__file__).with_name("duckdb_build.py")
PACKAGES = ("duckdb", "pytz")  # DuckDB needs pytz for times with a time zone
# Three times what DuckDB may use for tables, sorts and joins: it does not count the texts and lists that a query makes.
MEMORY_BYTES = 3 * 2**30
FILE_BYTES = 9 * 2**30  # of one copy for write queries
DELIMITERS = {".csv": ",", ".tsv": "\t"}
# By suffix, the functions that read such files. CSV files need a header row, and all rows decide on the types. Nothing
# else of a CSV file is guessed: a guess may take rows for comments, or for lines before the table.
READERS = {
    **{
        suffix: f"read_csv(?, header = true, delim = '{delimiter}', quote = '\"', escape = '\"', comment = '', "
        "skip = 0, null_padding = false, strict_mode = true, sample_size = -1, hive_partitioning = false)"
        for suffix, delimiter in DELIMITERS.items()
    },
    ".parquet": "read_parquet(?, hive_partitioning = false)",
    ".jsonl": "read_json(?, format = 'newline_delimited', sample_size = -1, hive_partitioning = false)",
    ".ndjson": "read_json(?, format = 'newline_delimited', sample_size = -1, hive_partitioning = false)",
}


SETTINGS = {
    "path": FILE_NAME,
    "script": FILE_NAME,
    "tables": TABLES,
    VARIANTS: VARIANTS_SETTING,
}


def check(settings: Settings) -> None:
    """Raise `SettingError` unless there is exactly one of path, script and tables, and DuckDB is installed."""
    check_settings(settings, SETTINGS)
    if len(stated := [name for name in settings if name in ("path", "script", "tables")]) != 1:
        finding = f"found {' and '.join(stated)}: keep one" if stated else "found none: write {duckdb: {script: FILE}}"
        raise SettingError("path", f"duckdb: expected one of path, script and tables, {finding}")
    for name in settings.get("tables", {}).values():
        if Path(name).suffix.lower() not in READERS:
            script = "; write a script as {duckdb: {script: FILE}}" if name.endswith(".sql") else ""
            suffixes = ", ".join(READERS)
            raise SettingError("tables", f"cannot tell the format of '{name}': known suffixes are {suffixes}{script}")
    if any(importlib.util.find_spec(package) is None for package in PACKAGES):
        needed = " and ".join(PACKAGES)
        raise SettingError(next(iter(settings)), f"needs {needed}: pip install 'pytest-queryeval[duckdb]'")


def open_duckdb(source: Source, hosts: Hosts) -> DuckDBFile:
    """Return the engine of `{duckdb: file}`, `{duckdb: {script: file.sql}}` or `{duckdb: {tables: {name: file}}}`.

    Paths are relative to the source's folder. A script is run and tables are read at once, into a temporary file. A
    database file is opened by its first query. Raise `SourceError` for a file that is missing or cannot be read.
    """
    host = _host(hosts)
    if "path" in source.settings:
        path = file_path(source, "path")
        if "?" in str(path):
            problem = "DuckDB takes `?` in a path for the start of parameters: rename the file or its folder"
            raise SourceError(f"source '{source.name}': {path}: {problem}")
        return DuckDBFile(source.name, path, host)
    if "script" in source.settings:
        return DuckDBFile.build(source.name, host, partial(build_script, file_path(source, "script")))
    return DuckDBFile.build(source.name, host, partial(build_tables, source.folder, source.settings["tables"]))


def build_duckdb(script: str, settings: Settings, hosts: Hosts) -> DuckDBInMemory:
    """Return the engine of a database in the child's memory, which the first query makes by `script`."""
    return DuckDBInMemory(script, _host(hosts))


def _host(hosts: Hosts) -> Host:
    return hosts.shared(Host("duckdb", DRIVER, packages=PACKAGES, memory=MEMORY_BYTES))


class DuckDBInMemory(DatabaseInMemory):
    """A DuckDB database in memory; cells that are not plain values are encoded by the child."""

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds, and return the result; raise `SourceError` if the script fails."""
        return with_cells(super().execute(query, timeout=timeout, max_rows=max_rows))


class DuckDBFile(DatabaseFile):
    """A DuckDB database file; cells that are not plain values are encoded by the child."""

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds, and return the result; raise `SourceError` for a damaged file."""
        return with_cells(super().execute(query, timeout=timeout, max_rows=max_rows))


def build_script(script: Path, database: Path) -> None:
    """Make the file `database` by the SQL of `script`, in which paths are relative to the script's folder.

    Raise `SourceError` with the line of the statement that fails.
    """
    require_file(script)
    try:
        _build(database, "script", str(script), folder=script.parent)
    except SourceError as error:
        raise SourceError(f"{error}{script_remedy(str(error))}") from error


def build_tables(folder: Path, files: Mapping[str, str], database: Path) -> None:
    """Make the file `database` with a table for each of `files`, whose paths are relative to `folder`.

    Raise `SourceError` with the name of a file that cannot be read, and for CSV with the line.
    """
    tables = []
    for table, name in files.items():
        file = absolute(folder, name)
        require_file(file)
        suffix = Path(name).suffix.lower()
        tables.append((table, str(file), READERS[suffix], DELIMITERS.get(suffix, "")))
    _build(database, "tables", json.dumps(tables), folder=database.parent)


def _build(database: Path, form: str, argument: str, *, folder: Path) -> None:
    run_program("the builder of databases", BUILDER, PACKAGES, str(database), form, argument, folder=folder)


def files(source: Source) -> Sequence[str]:
    """Return the names of the files that a source is made of, as the settings have them."""
    settings = source.settings
    return [*settings.get("tables", {}).values(), *(settings[name] for name in ("path", "script") if name in settings)]


FINGERPRINT = SourceFingerprint(
    files=files,
    wal_suffix=".wal",
    settings=lambda settings: {"tables": list(settings["tables"])} if "tables" in settings else {},
    version=lambda _: f"duckdb {version('duckdb')}",
)
DUCKDB = EngineType(
    opener=open_duckdb,
    kind="sql",
    dialect=lambda _: "duckdb",
    check=check,
    settings=SETTINGS,
    fingerprint=FINGERPRINT,
    build=build_duckdb,
)


WRITES = WriteDriver(
    host=partial(Host, "duckdb writes", WRITES_DRIVER, packages=PACKAGES, memory=MEMORY_BYTES, file_bytes=FILE_BYTES),
    settings=file_settings,
)
