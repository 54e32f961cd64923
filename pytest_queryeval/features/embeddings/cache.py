"""The vectors of one model, kept on disk for later runs and other processes."""

from __future__ import annotations

import sqlite3
import time
import weakref
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_queryeval.core.files import KEPT_SECONDS, cache_folder, locked, private_folder

Vectors: TypeAlias = dict[bytes, bytes]  # by the digest of a text; as `Model.batches` encodes them
Result = TypeVar("Result")

MAX_BYTES = 1 << 30
BUSY_SECONDS = 20.0  # the wait for a statement of another process
WAIT_SECONDS = 60.0  # the wait for another process that encodes, but adds no vector
_POLL_SECONDS = 0.05
_DAY = 24 * 3600
_BATCH_SIZE = 500  # in one statement
_TABLE = """
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, day INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS by_day ON vectors (day);
"""


class Cache:
    """A file of vectors by the digests of texts; no problem with the file fails a run.

    The file is in the user's cache folder, else in a private folder, else in memory. A damaged file is replaced. A file
    that is locked for too long, or cannot be written, is no longer used. Vectors that were not used for 30 days are
    dropped. If a file exceeds MAX_BYTES, the least recently used vectors are dropped too. Without a `name`, vectors are
    in memory only.
    """

    def __init__(self, name: str | None, folder: Path | None = None) -> None:
        self._path = None if name is None else _lockable_path(f"{name}.sqlite", folder)
        self._connection: sqlite3.Connection | None = None
        self._is_trimmed = False

    def vectors(self, keys: Collection[bytes]) -> Vectors:
        """Return the stored vectors by key, and note their use; missing and damaged vectors are left out."""
        return self._attempt(lambda connection: _stored_vectors(connection, keys)) if keys else {}

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors with checksums, and drop old vectors; the first call also removes unused files of models."""
        day = _today()
        rows = [(key, _checksum(vector) + vector, day) for key, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
                _trim(connection, day - KEPT_SECONDS // _DAY)

        self._attempt(write)
        if not self._is_trimmed and self._path is not None:
            self._is_trimmed = True
            oldest = time.time() - KEPT_SECONDS
            for path in self._path.parent.glob("*.sqlite"):  # those of models that no run has used for a long time
                with suppress(OSError), locked(path.with_suffix(".lock"), wait=False):
                    if path.stat().st_mtime < oldest:
                        path.unlink()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one process at a time encode for this file: wait until no other process does.

        Afterwards the other process's vectors can be read. The wait ends if nothing was added for WAIT_SECONDS.
        """
        with ExitStack() as stack:
            last_change, deadline = self._last_write(), time.monotonic() + WAIT_SECONDS
            while not self._enter_turn(stack) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                if (change := self._last_write()) != last_change:
                    last_change, deadline = change, time.monotonic() + WAIT_SECONDS
            yield

    def close(self) -> None:
        """Close the file; later calls open it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _enter_turn(self, stack: ExitStack) -> bool:
        """Take the lock of the file if it is free, released by `stack`; return False only if another process has it."""
        if self._path is None:
            return True
        try:
            stack.enter_context(locked(self._path.with_suffix(".lock"), wait=False))
        except BlockingIOError:
            return False
        except OSError:  # the folder is gone: a turn only saves work
            return True
        return True

    def _last_write(self) -> int:
        """Return when the file was last written, in nanoseconds; 0 if there is no file."""
        with suppress(OSError):
            return self._path.stat().st_mtime_ns if self._path is not None else 0
        return 0

    def _attempt(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Return the result of `work` on the file; if that fails, use a new file or memory.

        A damaged file is replaced once. If the file is locked for too long, full or read-only, memory is used from now
        on.
        """
        for fallback in (self._remove_file, self._use_memory):
            try:
                return work(self._open())
            except sqlite3.OperationalError:  # locked for too long, full, or read-only
                self._use_memory()
            except sqlite3.DatabaseError:
                fallback()
        return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            target = ":memory:" if self._path is None else str(self._path)
            # Used by one thread at a time, not always the one that opened it.
            connection = sqlite3.connect(target, timeout=BUSY_SECONDS, check_same_thread=False)
            weakref.finalize(self, connection.close)
            self._connection = connection
            connection.execute("PRAGMA synchronous = OFF")  # a file damaged by a power cut is replaced
            connection.executescript(_TABLE)
        return self._connection

    def _remove_file(self) -> None:
        self.close()
        for suffix in ("-journal", "") if self._path is not None else ():
            # The journal first: one left behind would be replayed into the new file.
            with suppress(OSError):
                Path(f"{self._path}{suffix}").unlink()

    def _use_memory(self) -> None:
        self.close()
        self._path = None


def _lockable_path(name: str, folder: Path | None) -> Path | None:
    """Return the path of the file in the first folder where it can be locked; None if there is no such folder.

    The folder is created if needed.
    """
    places: tuple[Callable[[], Path], ...] = (partial(cache_folder, "embeddings"), private_folder)
    for place in places if folder is None else (folder.absolute,):
        with suppress(OSError, ValueError):
            path = place() / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(BlockingIOError), locked(path.with_suffix(".lock"), wait=False):
                pass
            return path
    return None


def _stored_vectors(connection: sqlite3.Connection, keys: Collection[bytes]) -> Vectors:
    vectors: Vectors = {}
    today = _today()
    remaining_keys = iter(keys)
    while batch := list(islice(remaining_keys, _BATCH_SIZE)):
        marks = ", ".join("?" * len(batch))
        rows = connection.execute(f"SELECT key, vector, day FROM vectors WHERE key IN ({marks})", batch).fetchall()  # noqa: S608 - marks only
        for key, sealed_vector, _ in rows:  # SQLite does not notice bytes that were overwritten within a value
            if (
                isinstance(sealed_vector, bytes)
                and len(sealed_vector) > 4
                and _checksum(sealed_vector[4:]) == sealed_vector[:4]
            ):
                vectors[key] = sealed_vector[4:]
        if updates := [(today, key) for key, _, day in rows if day < today]:
            # A file that is busy or cannot be written can still be read.
            with suppress(sqlite3.OperationalError), connection:
                connection.executemany("UPDATE vectors SET day = ? WHERE key = ?", updates)
    return vectors


def _trim(connection: sqlite3.Connection, oldest: int) -> None:
    """Delete vectors last used before the day `oldest`.

    If the file still exceeds MAX_BYTES, delete the least recently used quarter of the vectors too.
    """
    connection.execute("DELETE FROM vectors WHERE day < ?", (oldest,))
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    if (pages - free) * size > MAX_BYTES:
        quarter = "SELECT rowid FROM vectors ORDER BY day, rowid LIMIT (SELECT COUNT(*) / 4 + 1 FROM vectors)"
        connection.execute(f"DELETE FROM vectors WHERE rowid IN ({quarter})")  # noqa: S608 - no value is in the text


def _checksum(vector: bytes) -> bytes:
    return zlib.crc32(vector).to_bytes(4, "little")


def _today() -> int:
    return int(time.time() // _DAY)
