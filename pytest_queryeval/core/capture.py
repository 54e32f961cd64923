"""Errors kept as values, so that what failed once fails again without another attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pytest_queryeval.core.errors import QueryEvalError

T = TypeVar("T")
Error = TypeVar("Error", bound=QueryEvalError)


def capture_error(function: Callable[[], T], error_type: type[Error]) -> T | Error:
    """Return what `function` returns, or the error of `error_type` that it raises."""
    try:
        return function()
    except error_type as error:
        return error


def unwrap(result: T | QueryEvalError) -> T:
    """Return the result of `capture_error`, or raise the error that it kept."""
    if isinstance(result, QueryEvalError):
        raise result.with_traceback(None)  # each raise would add to the traceback of the one before
    return result
