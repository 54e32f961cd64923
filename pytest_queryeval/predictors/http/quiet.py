"""Keeps the HTTP client from logging our requests: their URLs hold parameters, such as keys.

The loggers are those of the whole process; requests of others with the same client are logged as before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOGGERS = ("httpx2", *(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks")))
_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Log only warnings of the client within the `with` statement."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_passes)  # a second time changes nothing
    before = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(before)


def _passes(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or not _is_ours.get()
