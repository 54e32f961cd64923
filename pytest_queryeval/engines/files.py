"""The files named by the settings of a source."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from pytest_queryeval.core.errors import SourceError, nearest_file
from pytest_queryeval.core.model import Source


def absolute(folder: Path, name: str) -> Path:
    """Return the path of the file called `name`, relative to `folder`, with all links followed.

    Raises `SourceError` for a name that the locale cannot express.
    """
    try:
        return Path(os.path.realpath(folder / name))
    except UnicodeEncodeError as error:
        raise SourceError(f"{name!a}: not a file name in this locale ({error.encoding}): set PYTHONUTF8=1") from error


def file_path(source: Source, setting: str) -> Path:
    """Return the absolute path of the file that a setting of the source names; raises `SourceError` as `absolute`."""
    return absolute(source.folder, source.settings[setting])


def check_exists(source: Source, name: str) -> None:
    """Raise `SourceError` unless there is something called `name`, with the nearest name among files of its suffix."""
    path = absolute(source.folder, name)
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that no file can have
        remedy = nearest_file(path) or f": correct the path, which is relative to {source.folder}"
        if source.engine in ("sqlite", "duckdb") and "script" not in source.settings:
            remedy += f"; a script builds a database: {{{source.engine}: {{script: FILE.sql}}}}"
        raise SourceError(f"source '{source.name}': {path}: no such file{remedy}")


def require_file(file: Path) -> os.stat_result:
    """Return the status of a regular file; raises `SourceError` where there is none."""
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(
            f"{file}: {'a directory, not a file' if stat.S_ISDIR(status.st_mode) else 'not a regular file'}"
        )
    return status


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits; raises `SourceError` where it cannot be read."""
    require_file(file)
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: OSError | ValueError) -> SourceError:
    reason = "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None) or error
    return SourceError(f"{file}: {reason}")
