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
    """Write a file and make its folders; until it is complete, readers find the previous file, or none.

    The content may come in parts, so that it is never in memory as a whole.
    With `keep_existing`, an existing file is kept, even one that another process writes at the same time.
    Raise OSError if the file cannot be written; then nothing is left behind.
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
    """Return a new path in a folder for what gets its name once it is complete.

    What killed runs have left there is removed after a day.
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
    """Remove a file, or a folder with all that is in it as far as possible."""
    if stat.S_ISDIR(path.lstat().st_mode):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


class ScratchFolder:
    """A new folder among the temporary files.

    It is removed by `remove`, at the end of the process, or by a later run if the process was killed: it is locked as
    long as the process or a fork of it lives, so that nobody else needs to know which process that is.
    """

    def __init__(self) -> None:
        """Make the folder; raise OSError if that is impossible."""
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
        """Remove the folder with all that is in it; may be called again."""
        self._finalizer()


def _end_scratch(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # else a fork ends
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


@cache
def remove_abandoned_scratch() -> None:
    """Remove the scratch folders of this user whose processes were killed; in each process once.

    Only locks of this kernel are seen, also through containers that share the folder. A folder that was locked under
    another one, before a restart or on another machine, is removed once it is old.
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
    """Return which running kernel this is, in eight digits."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = platform.node()
    return sha256(boot.encode()).hexdigest()[:8]


def _link(path: Path, file: Path) -> bool:
    """Make `path` a hard link to a file unless it exists; return False on a file system without links."""
    try:
        path.hardlink_to(file)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def cache_folder(name: str) -> Path:
    """Return the folder of that name in the user's cache folder, which may not exist yet.

    Raise OSError for a user without a home.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(home) if Path(home).is_absolute() else Path("~/.cache").expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from error
    return base / "pytest-queryeval" / name


def private_folder() -> Path:
    """Return a folder of this user among the temporary files, to be used if the cache folder cannot be.

    Raise OSError, whose text names the folder, where it cannot be made or belongs to another user.
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
    """Hold a lock that one process at a time can have; others wait, or with `wait=False` get a BlockingIOError."""
    # Others may be able to write here: no link is followed, and nothing is cut.
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(lock)
