"""Times of the last change of files, until which what was read of them is kept."""

from __future__ import annotations

from pathlib import Path


def modification_time(path: Path) -> int:
    """Return the time of the file's last change, in nanoseconds; 0 where it cannot be had, as reading it will show."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        return 0
