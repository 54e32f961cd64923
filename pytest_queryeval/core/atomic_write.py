"""Files that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4


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
