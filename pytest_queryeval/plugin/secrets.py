"""Secrets in what pytest itself prints about a case: captured output, logs, tracebacks, warnings."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any
from warnings import WarningMessage

import pytest

from pytest_queryeval.text.redaction import redact


def hide_secrets(report: pytest.TestReport) -> None:
    """Remove the secrets from a test's report before it goes to the terminal, to JUnit or to another process."""
    if report.sections:
        report.sections = [(title, redact(text)) for title, text in report.sections]
    if {type(value) for _, value in report.user_properties} - {float}:  # pytest keeps every report
        report.user_properties = [(name, _clean(value, set())) for name, value in report.user_properties]
    if report.longrepr is not None:
        report.longrepr = _clean(report.longrepr, set())
    if hasattr(report, "wasxfail"):
        report.wasxfail = redact(report.wasxfail)


def hide_in_warning(warning: WarningMessage) -> None:
    """Remove the secrets from a warning that pytest has recorded."""
    text = str(warning.message)
    if redact(text) != text:
        warning.message, warning.category = UserWarning(redact(text)), UserWarning


def _clean(value: Any, cleaned: set[int]) -> Any:
    """Return a text, or pytest's representation of an exception, without secrets; dataclasses change in place.

    `cleaned` are the ids of dataclasses that have been changed: a representation holds its traceback twice.
    """
    match value:
        case str():
            return redact(value)
        case tuple() | list():
            return type(value)(_clean(item, cleaned) for item in value)
        case _ if is_dataclass(value) and id(value) not in cleaned:
            cleaned.add(id(value))
            for name, item in list(vars(value).items()):
                setattr(value, name, _clean(item, cleaned))
    return value
