"""Modification times of files, by which caches of their contents expire."""

from __future__ import annotations

from pathlib import Path


def modification_time(path: Path) -> int:
    """Return the time of the file's last change in nanoseconds; 0 where that fails, as reading the file will."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        return 0
