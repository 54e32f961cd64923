"""Files written whole or not at all; the cache folder of this package, and locks for processes that fill it."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

KEPT_SECONDS = 30 * 24 * 3600  # what no run has used for that long is removed


def write_atomically(path: Path, content: bytes | Iterable[bytes], *, keep_existing: bool = False) -> None:
    """Write a file and make its folders; until it is complete, readers find the previous file, or none.

    The content may come in parts, so that it is never in memory as a whole.
    With `keep_existing`, an existing file is kept, even one that another process writes at the same time.
    Raise OSError if the file cannot be written; then nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".queryeval-{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        if not (keep_existing and _link(path, temporary)):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


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
