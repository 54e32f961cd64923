"""The embedded graph database Ladybug: a file, or one that is made of a script."""

from __future__ import annotations

import importlib.util
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.model import Execution, Source
from pytest_queryeval.core.shapes import FILE_NAME
from pytest_queryeval.engines import EngineType, Settings, SourceFingerprint, with_cells
from pytest_queryeval.engines.bases import DatabaseFile
from pytest_queryeval.engines.settings import check_settings, file_path, require_file
from pytest_queryeval.sandbox.host import Host, Hosts, run_program

DRIVER = Path(__file__).with_name("ladybug_child.py")
BUILDER = Path(__file__).with_name("ladybug_build.py")
PACKAGES = ("ladybug", "queryeval_cypher")
MEMORY_BYTES = 3 * 2**30  # of addresses, of which the database reserves more than `ladybug_child.MAX_GRAPH_BYTES`
SETTINGS = {"path": FILE_NAME, "script": FILE_NAME}


class LadybugFile(DatabaseFile):
    """One graph; its child encodes the cells that are not plain values."""

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; raises `SourceError` if the graph cannot be read."""
        return with_cells(super().execute(query, timeout=timeout, max_rows=max_rows))


def open_ladybug(source: Source, hosts: Hosts) -> LadybugFile:
    """Open `{ladybug: file}` or `{ladybug: {script: file.cypher}}`; raises `SourceError` if the script fails."""
    host = hosts.shared(Host("ladybug", DRIVER, packages=PACKAGES, memory=MEMORY_BYTES))
    if "path" in source.settings:
        return LadybugFile(source.name, file_path(source, "path"), host)
    return LadybugFile.build(source.name, host, partial(run_script, file_path(source, "script")))


def run_script(script: Path, database: Path) -> None:
    """Make `database` by the statements of a file, whose own paths are relative to its folder."""
    require_file(script)
    run_program("the builder of graphs", BUILDER, PACKAGES, str(script), str(database), folder=script.parent)


def check(settings: Settings) -> None:
    """Raise `SettingError` unless there is a path or a script, and Ladybug is installed."""
    check_settings(settings, SETTINGS)
    if len(settings.keys() & {"path", "script"}) != 1:
        raise SettingError("path", "needs one of `path` and `script`, as in {ladybug: {script: graph.cypher}}")
    if importlib.util.find_spec("ladybug") is None:
        raise SettingError(next(iter(settings)), "needs the package ladybug: pip install ladybug")


LADYBUG = EngineType(
    opener=open_ladybug,
    kind="cypher",
    check=check,
    settings=SETTINGS,
    fingerprint=SourceFingerprint(
        files=lambda source: [source.settings[name] for name in SETTINGS if name in source.settings],
        wal_suffix=".wal",
        version=lambda _: f"ladybug {version('ladybug')}",
    ),
)
