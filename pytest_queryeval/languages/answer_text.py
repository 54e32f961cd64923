"""The shared reader of kinds whose answers are parsed, not run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pytest_queryeval.core.errors import CaseError, SuiteError
from pytest_queryeval.core.model import Failure
from pytest_queryeval.documents.document import MEBIBYTE, File, Node
from pytest_queryeval.documents.fences import has_several_blocks, unfenced
from pytest_queryeval.documents.json_nodes import parse_json

T = TypeVar("T")

MAX_TEXT = 32 * MEBIBYTE  # characters
MAX_VALUES = 1_000_000
FENCED = "the answer was read from a code block"
REASONED = "the answer was read from the text after reasoning"
_REASONING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_END_OF_REASONING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_ANSWER = File(Path("answer"), Path("answer"))


def answer_text(text: str) -> tuple[str, str]:
    """Return the answer of a model without its reasoning and the code block around it, and a note if it had these.

    Removed lines are replaced by empty ones, so that line numbers stay those of the whole answer.
    """
    text = text.removeprefix("\ufeff")
    notes = []
    if _REASONING.match(text) and (ends := list(_END_OF_REASONING.finditer(text))):
        end = ends[-1].end()  # of the last tag, since reasoning may contain its own tag
        text = "\n" * text.count("\n", 0, end) + text[end:]
        notes.append(REASONED)
    if text.lstrip()[:1] not in ("{", "[") or text.rstrip()[-1:] not in ("}", "]"):
        content, line = unfenced(text, languages=("json",))
        text = "\n" * (line - 1) + content
        if line > 1:
            notes.append(FENCED)
    return text, "; ".join(notes)


def refusal(text: str) -> Failure | None:
    """Return why a text is not read: it is empty, too large for an answer, or has several answers; else None."""
    if not text.strip():
        return Failure(kind="empty", message="the answer is empty")
    if len(text) > MAX_TEXT:
        return Failure(kind="too_large", message=f"the answer has {len(text):,} characters, more than {MAX_TEXT:,}")
    if text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        return Failure(kind="too_large", message=f"the answer has more than {MAX_VALUES:,} values")
    if has_several_blocks(text):
        return Failure(kind="invalid", message="the answer has several code blocks, and not one alone is marked json")
    return None


def read_json_text(text: str, read: Callable[[Node], T]) -> T | Failure:
    """Return the result of `read` for a text as JSON, or the first problem with its place."""
    try:
        return read(parse_json(text, _ANSWER, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0] if isinstance(error, SuiteError) else error
        line, column = problem.location.line, problem.location.column
        place = f" at line {line}, column {column}" if column else ""
        return Failure(kind="invalid", message=f"{problem.problem}{place}")
