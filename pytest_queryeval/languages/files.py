"""Files of golds and predictions: each kind has a reader for each suffix that it supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from pytest_queryeval.core.errors import CaseError, Location, SuiteError
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at
from pytest_queryeval.documents.values import required_text

MAX_STATED_BYTES = 32 * MEBIBYTE
FileReader: TypeAlias = Callable[[File], QueryOrAnswer]


def stated_file(node: Node, readers: Mapping[str, FileReader]) -> QueryOrAnswer:
    """Read the file that a node names; raise `CaseError` there, also for problems in the file."""
    name = required_text(node)
    file = file_at(node.file.folder / name)
    suffix = file.path.suffix.lower()
    if suffix not in readers:
        raise node.problem(f"unknown suffix of '{name}': choose from {', '.join(readers)}")
    try:
        return replace(readers[suffix](file), location=Location(file.shown))
    except (CaseError, SuiteError) as error:
        raise node.problem(str(error).splitlines()[0]) from error


def text_file(file: File) -> QueryOrAnswer:
    """Read a file with the text of a query or an answer; raise `CaseError` where it is empty."""
    text = file.text(MAX_STATED_BYTES)
    if not text.strip():
        raise file.problem("is empty")
    return QueryOrAnswer(query=text)
