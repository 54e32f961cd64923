"""Readers of suite files: `load_cases` for all below a path, `load_suite` for one file."""

from __future__ import annotations

from pytest_queryeval.suites.suites import Suite, finding_messages, load_cases, load_suite

__all__ = ["Suite", "finding_messages", "load_cases", "load_suite"]
