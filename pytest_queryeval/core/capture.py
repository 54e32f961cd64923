"""Things that are opened once, or fail once and for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pytest_queryeval.core.errors import QueryEvalError

T = TypeVar("T")
Fault = TypeVar("Fault", bound=QueryEvalError)


def opened(open_it: Callable[[], T], fault: type[Fault]) -> T | Fault:
    """What `open_it` returns, or the fault that it raises, kept so that it is raised for every case alike."""
    try:
        return open_it()
    except fault as error:
        return error


def or_raise(found: T | QueryEvalError) -> T:
    """What was opened; raises the fault that was kept."""
    if isinstance(found, QueryEvalError):
        raise found.with_traceback(None)  # or each raise would add to the traceback of the one before
    return found
