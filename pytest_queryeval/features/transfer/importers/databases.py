"""Where the databases of cases are: files below a folder, by the names that records give."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.features.transfer.importers import ImportRequest
from pytest_queryeval.features.transfer.importers.records import RecordError
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line, utf8_safe

MAX_NAME = 100


class Databases:
    """The sources of an import.

    `settings` has the keys of `queryeval.yaml` that name them; sources by name are added as cases ask for them. Names
    come from the source, so one that leads out of the folder is refused.
    """

    def __init__(self, request: ImportRequest, source: Path, beside: Sequence[str] = ()) -> None:
        """Use the folder of the request, else the first existing folder of those named `beside` the source."""
        self.settings: dict[str, JsonValue] = {}
        self._sources: dict[str, JsonValue] = {}
        self._output = request.output
        self._folder: Path | None = None
        if request.database is not None:
            self.settings["source"] = relative(Path(request.database), request.output, otherwise=request.database)
            return
        folders = (folder for name in beside if (folder := source.parent / name).is_dir())
        self._folder = request.databases or next(folders, None)
        if self._folder is not None:
            if not self._folder.is_dir():
                raise QueryEvalError(f"{self._folder}: is not a folder: --databases names the one with the databases")
            self.settings["sources"] = self._sources

    def check_shared(self, kind: str) -> None:
        """Raise `RecordError` unless cases of a kind that name no source of their own have what they need."""
        if KINDS[kind].has_queries and "source" not in self.settings:
            raise RecordError("its queries have nowhere to run: give their source as --source")
        if not KINDS[kind].has_queries and "source" in self.settings:
            raise RecordError(f"--source is for queries, and it is of the kind '{kind}': import it without")

    def source_of(self, name: str) -> dict[str, JsonValue]:
        """Return the `source` key of a case on a database, none where all share one; raise `RecordError`."""
        if "source" in self.settings:
            return {}
        if self._folder is None:
            raise RecordError("it has a database of its own: name their folder with --databases")
        if name not in self._sources:
            self._sources[name] = self._path(name, self._folder)
        return {"source": name}

    def _path(self, name: str, folder: Path) -> str:
        shown_name = one_line(name, MAX_NAME)
        is_unfit = len(name) > MAX_NAME or utf8_safe(name) != name
        if name in ("", ".", "..") or is_unfit or any(sign in name for sign in ("/", "\\", "\0", "${")):
            raise RecordError(f"'{shown_name}' is not a name of a database")
        for path in (folder / name / f"{name}.sqlite", folder / f"{name}.sqlite"):
            if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that no file can have
                return relative(path, self._output)
        raise RecordError(f"there is no database {shown_name}/{shown_name}.sqlite or {shown_name}.sqlite in {folder}")


def relative(path: Path, output: Path, *, otherwise: str | None = None) -> str:
    """Return the path of a file as suites in `output` name it; `otherwise` where there is no such file."""
    if otherwise is not None and not os.path.exists(path):  # noqa: PTH110 - as above
        return otherwise
    relative_path = os.path.relpath(os.path.abspath(path), output)  # noqa: PTH100 - links are not followed
    if utf8_safe(relative_path) != relative_path:
        raise QueryEvalError(f"{relative_path}: is not a name in UTF-8, in which suites are written: rename it")
    if "${" in relative_path:
        raise QueryEvalError(f"{relative_path}: suites would take `${{` for a variable: rename the folder")
    return relative_path
