"""How long a service asks its clients to wait. Also imported by child processes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

MAX_PAUSE = 3600.0  # seconds


def retry_after(headers: Mapping[str, str]) -> float:
    """Return Retry-After in seconds, at most an hour; 0.0 without one (RFC 9110, 10.2.3: a number or a date)."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_PAUSE)
    then = _moment(text)
    if then is None:
        return 0.0
    # By the server's clock, if it sends its time: ours may differ.
    now = _moment(headers.get("Date", ""))
    return min(max(then - (time.time() if now is None else now), 0.0), MAX_PAUSE)


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None
