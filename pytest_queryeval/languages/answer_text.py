"""What kinds have in common whose answers are text that is read and not run."""

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
REASONED = "the answer was read from behind reasoning"
_REASONING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_END_OF_REASONING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_ANSWER = File(Path("answer"), Path("answer"))


def answer_text(text: str) -> tuple[str, str]:
    """What a model's answer says without its reasoning and the code block around it, and a note where there was more.

    Blank lines stand for those before the answer, so that places in it are places in the whole.
    """
    text, reasoned = _behind_reasoning(text.removeprefix("\ufeff"))
    content, fenced = _unfenced(text)
    return content, "; ".join(filter(None, (reasoned, fenced)))


def _behind_reasoning(text: str) -> tuple[str, str]:
    """What stands behind the last tag that ends reasoning, where the answer begins with it."""
    if not _REASONING.match(text) or not (ends := list(_END_OF_REASONING.finditer(text))):
        return text, ""
    reasoning, answer = text[: ends[-1].end()], text[ends[-1].end() :]
    return "\n" * reasoning.count("\n") + answer, REASONED


def _unfenced(text: str) -> tuple[str, str]:
    if text.lstrip()[:1] in ("{", "[") and text.rstrip()[-1:] in ("}", "]"):
        return text, ""
    content, line = unfenced(text, languages=("json",))
    return "\n" * (line - 1) + content, FENCED if line > 1 else ""


def refusal(text: str) -> Failure | None:
    """Find what makes a text not worth reading: there is nothing, more than any answer has, or several answers."""
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
    """What `read` makes of a text as JSON, or why it cannot, with the place of what is wrong."""
    try:
        return read(parse_json(text, _ANSWER, line=0))
    except SuiteError as error:
        return _invalid(error.problems[0])
    except CaseError as error:
        return _invalid(error)


def _invalid(error: CaseError) -> Failure:
    line, column = error.location.line, error.location.column
    place = f" at line {line}, column {column}" if column else ""
    return Failure(kind="invalid", message=f"{error.problem}{place}")
