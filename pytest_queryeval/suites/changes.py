"""When files were changed, so that what was read of one is kept until then."""

from __future__ import annotations

from pathlib import Path


def changed(path: Path) -> int:
    """The time of the file's last change, in nanoseconds; 0 where there is none to be had, which reading it tells."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        return 0
