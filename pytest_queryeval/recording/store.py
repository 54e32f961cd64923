"""Entries as files below one folder, each found by its name alone."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_queryeval.errors import QueryEvalError
from pytest_queryeval.plain import one_line
from pytest_queryeval.recording.texts import entry_text, read_entry

_NAME = re.compile(r"[0-9a-f]{32}")
_LEFT_OVER = ".writing-"


class Store:
    """The files `xx/<name>.json` of a folder, where a name is 32 hexadecimal digits, which start with xx.

    Whatever is wrong with a file or the folder raises `fault`, with the path.
    """

    def __init__(self, folder: Path, fault: type[QueryEvalError]) -> None:
        self.folder = folder
        self.fault = fault

    def path(self, name: str) -> Path:
        """Where the entry lies, or would lie."""
        return self.folder / name[:2] / f"{name}.json"

    def read(self, name: str) -> dict[str, Any] | None:
        """The entry of that name, or None where there is none."""
        path = self.path(name)
        try:
            # A link could lead anywhere, and a pipe would make the run wait for ever.
            if not stat.S_ISREG(path.lstat().st_mode):
                raise self.damaged(name, "it is no regular file")
            return read_entry(name, path.read_bytes().decode("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise self.damaged(name, "it is no UTF-8") from error
        except ValueError as error:
            raise self.damaged(name, str(error)) from error
        except OSError as error:
            raise self.fault(f"{path} cannot be read: {error.strerror or error}") from error

    def write(self, name: str, entry: Mapping[str, Any]) -> None:
        """Write the entry whole or not at all; whoever reads meanwhile sees the one before, or none."""
        path = self.path(name)
        content = entry_text(name, entry).encode("utf-8")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_LEFT_OVER)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(temporary).chmod(0o666 & ~_UMASK)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self.fault(f"nothing can be recorded in {self.folder}: {error.strerror or error}") from error

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries that can be read, in no order."""
        for path in self.folder.glob("[0-9a-f][0-9a-f]/*.json"):
            if not _NAME.fullmatch(path.stem) or path.parent.name != path.stem[:2]:
                continue
            try:
                entry = self.read(path.stem)
            except QueryEvalError:  # told when it is asked for
                continue
            if entry is not None:
                yield entry

    def damaged(self, name: str, reason: str) -> QueryEvalError:
        """What is raised for an entry that cannot be used as it stands."""
        return self.fault(
            f"the recorded entry {self.path(name)} is damaged: {one_line(reason)}: delete it, or restore it"
        )


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


_UMASK = _umask()  # once, as it belongs to all threads
