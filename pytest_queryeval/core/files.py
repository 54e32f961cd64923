"""Files written whole or not at all; folders for temporary files; the cache folder of this package, and locks."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

KEPT_SECONDS = 30 * 24 * 3600  # what no run has used for that long is removed
_HALF_WRITTEN_SECONDS = 24 * 3600  # after which nobody completes a file
_HALF_WRITTEN = re.compile(r"\.queryeval-[0-9a-f]{32}")
_SCRATCH = re.compile(r"queryeval-([0-9a-f]{8})-[0-9a-f]{32}")


def write_atomically(path: Path, content: bytes | Iterable[bytes], *, keep_existing: bool = False) -> None:
    """Write a file, and make its folders; until the file is complete, readers find the previous file or none.

    `content` may come in parts, so that it is never in memory as a whole. With `keep_existing`, an existing file is
    kept, even if another process writes it at the same time. Raise OSError if the file cannot be written; then no
    temporary file is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unfinished_path(path.parent)
    try:
        with temporary.open("xb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        if not (keep_existing and _link(path, temporary)):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def unfinished_path(folder: Path) -> Path:
    """Return a new path in a folder for a file or folder that is renamed once it is complete.

    On the first call for a folder, remove such files there that are older than a day, which killed runs have left.
    """
    _remove_half_written(folder)
    return folder / f".queryeval-{uuid4().hex}"


@cache
def _remove_half_written(folder: Path) -> None:
    oldest = time.time() - _HALF_WRITTEN_SECONDS
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if _HALF_WRITTEN.fullmatch(path.name)]:
            with suppress(OSError):
                if path.lstat().st_mtime < oldest:
                    _remove(path)


def _remove(path: Path) -> None:
    """Remove a file, or a folder with as much of its content as possible."""
    if stat.S_ISDIR(path.lstat().st_mode):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


class ScratchFolder:
    """A new folder among the temporary files of the system, with its `path`; as a context manager it gives that path.

    The folder is removed by `remove`, at the end of the process, or by a later run if the process was killed. The
    process and its forks lock the folder as long as they live, so that other runs see that it is in use.
    """

    def __init__(self) -> None:
        """Create and lock the folder; raise OSError if it cannot be created."""
        name = f"queryeval-{_kernel()}-{uuid4().hex}"
        parent = Path(tempfile.gettempdir())
        # It gets its name, by which others find it, once it is locked.
        unlocked, self.path = unfinished_path(parent), parent / name
        unlocked.mkdir(mode=0o700)
        lock = os.open(unlocked, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks, where no other run can lock it either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlocked.rename(self.path)
        self._finalizer = weakref.finalize(self, _end_scratch, self.path, lock, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder with its content. Idempotent."""
        self._finalizer()


def _end_scratch(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # else a fork ends
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


@cache
def remove_abandoned_scratch() -> None:
    """Remove the scratch folders of this user whose processes were killed; only the first call in a process does so.

    Locks of other machines, and of this machine before a restart, cannot be seen: a folder that was locked there is
    removed once it is 30 days old. Errors are ignored.
    """
    oldest = time.time() - KEPT_SECONDS
    with suppress(OSError):
        for path in [path for path in Path(tempfile.gettempdir()).iterdir() if _SCRATCH.fullmatch(path.name)]:
            with suppress(OSError):  # it is locked, or another run has just removed it
                status = path.lstat()
                is_known = f"-{_kernel()}-" in path.name or status.st_mtime < oldest
                if is_known and stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                    _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


@cache
def _kernel() -> str:
    """Return eight hexadecimal digits that identify the boot of this machine; if it has no boot id, the machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = platform.node()
    return sha256(boot.encode()).hexdigest()[:8]


def _link(path: Path, file: Path) -> bool:
    """Make `path` a hard link to `file`, and return whether `path` exists afterwards.

    An existing `path` is left as it is. Return False on a file system without hard links.
    """
    try:
        path.hardlink_to(file)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def cache_folder(name: str) -> Path:
    """Return the path of this package's folder `name` in the user's cache folder, without creating it.

    Raise OSError for a user without a home.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(home) if Path(home).is_absolute() else Path("~/.cache").expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from error
    return base / "pytest-queryeval" / name


def private_folder() -> Path:
    """Create and return this user's own folder among the temporary files, for use if the cache folder fails.

    Raise OSError, whose text names the folder, if it cannot be created or belongs to another user.
    """
    folder = Path(tempfile.gettempdir()) / f"pytest-queryeval-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise OSError(f"{error.strerror}: {folder}") from error
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{folder} belongs to another user")
    return folder


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock the file at `path`, which is created if needed, within the `with` statement.

    If another process has the lock, wait; with `wait=False`, raise BlockingIOError.
    """
    # Others may be able to write here: no link is followed, and nothing is cut.
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(lock)
