"""Review files: what people decided on golds, one decision in each JSON line, appended and never rewritten."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from pytest_queryeval.core.errors import CaseError, Location
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.model import Case, Decision, QueryOrAnswer
from pytest_queryeval.documents.document import Node, file_at, read_jsonl
from pytest_queryeval.documents.values import (
    Reader,
    choice,
    entries,
    flag,
    json_text,
    known_entries,
    list_of,
    time_with_zone,
    unexpected,
)
from pytest_queryeval.features.review.reviewer import check_reviewer
from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.stated_answers import answer_text
from pytest_queryeval.sandbox.host import Hosts
from pytest_queryeval.suites.keys import read_compare

DECISIONS: tuple[Decision, ...] = ("right", "wrong", "ambiguous", "unanswerable", "unsure")
AnswerForm: TypeAlias = Literal["query", "table", "value"]
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class CaseName(NamedTuple):
    """What names a case: the path of its suite, and its id."""

    suite: Path
    id: str


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """A right answer besides the golds of the suite, never a file; the kind of the case reads its node."""

    form: AnswerForm
    node: Node

    def as_gold(self, case: Case) -> QueryOrAnswer:
        """Return the answer as a gold of a case; raise `CaseError` for one that its kind or its settings rule out."""
        kind, node = KINDS[case.settings.kind], self.node
        if (self.form == "value") == kind.has_queries:
            forms = "`query` or `table`" if kind.has_queries else "`value`"
            raise node.problem(f"a right answer of the kind '{kind.name}' stands under {forms}")
        gold = kind.read_table(node) if self.form == "table" else kind.read_gold(node)
        try:
            return replace(kind.check_gold(gold, case), location=node.location)
        except ValueError as error:
            raise node.problem(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldDecision:
    """What a reviewer decided on the golds of a case."""

    case: CaseName
    digest: str | None
    """The digest of the question and the golds that it is about; None for a decision on whatever they are."""
    decision: Decision
    answers: tuple[RightAnswer, ...]
    compare: Mapping[str, Any]
    """Values of the key `compare` for the case."""
    reviewer: str
    at: datetime
    note: str
    settles: bool
    """Whether earlier decisions on the case no longer count."""
    line: Node
    """The line as it was read."""

    @property
    def location(self) -> Location:
        """The place of the line."""
        return self.line.location


def read_decisions(path: Path) -> Iterator[GoldDecision]:
    """Yield the decisions in a review file; raise `CaseError` or `SuiteError` for the first damaged line."""
    file = file_at(path)
    for line in read_jsonl(file):
        if isinstance(line, CaseError):
            raise line
        yield read_decision(line)


def read_decision(line: Node) -> GoldDecision:
    """Read a line; raise `CaseError` for one that holds no decision."""
    values = known_entries(line, _READERS)
    if missing_keys := [name for name in REQUIRED if name not in values]:
        raise line.problem(f"a decision needs {', '.join(f'`{name}`' for name in missing_keys)}")
    if values["decision"] == "unanswerable" and values.get("answers"):
        raise line.problem("what is unanswerable has no `answers`")
    return GoldDecision(
        case=CaseName(file_at(line.file.folder / values["suite"]).path, values["case"]),
        digest=values.get("gold"),
        decision=values["decision"],
        answers=values.get("answers", ()),
        compare=values.get("compare", {}),
        reviewer=values["reviewer"],
        at=values["at"],
        note=values.get("note", ""),
        settles=values.get("settles", False),
        line=line,
    )


def _name(node: Node) -> str:
    return check_reviewer(json_text(node), node.problem)


def _digest(node: Node) -> str:
    digest = json_text(node)
    if not _DIGEST.fullmatch(digest):
        raise unexpected(node, "`sha256:` and 64 hexadecimal digits")
    return digest


def _answer(node: Node) -> RightAnswer:
    forms = [form for form in entries(node) if form in _FORMS]
    if len(entries(node)) != 1 or not forms:
        raise node.problem("a right answer is an object with one key, `query`, `table` or `value`")
    if forms[0] == "query":
        json_text(entries(node)["query"])
    return RightAnswer(cast("AnswerForm", forms[0]), entries(node)[forms[0]])


read_answers = list_of(_answer)
REQUIRED = ("suite", "case", "decision", "reviewer", "at")
_FORMS = ("query", "table", "value")
_READERS: Mapping[str, Reader[Any]] = {
    "suite": json_text,
    "case": json_text,
    "gold": _digest,
    "decision": choice(*DECISIONS),
    "answers": read_answers,
    "compare": read_compare,
    "reviewer": _name,
    "at": time_with_zone,
    "note": json_text,
    "settles": flag,
}


@contextmanager
def appending(path: Path) -> Iterator[Callable[[Iterable[Mapping[str, JsonValue]]], None]]:
    """Yield a function that appends decisions to a review file, as lines; no other process appends meanwhile.

    Raise OSError if the file cannot be written; it then is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lambda lines: _append(file, lines)
    finally:
        os.close(file)


def _append(file: int, lines: Iterable[Mapping[str, JsonValue]]) -> None:
    size = os.fstat(file).st_size
    is_open = size > 0 and os.pread(file, 1, size - 1) != b"\n"  # the last line has no end yet
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    content = memoryview((("\n" if is_open else "") + text).encode())
    try:
        while content:
            content = content[os.write(file, content) :]
    except BaseException:
        os.ftruncate(file, size)
        raise


def decision_line(
    case: CaseName,
    file: Path,
    *,
    digest: str,
    decision: Decision,
    answers: Sequence[JsonValue],
    reviewer: str,
    compare: JsonValue = None,
    note: str = "",
    settles: bool = False,
) -> dict[str, JsonValue]:
    """Return a decision that is made now as a line of a review file; the arguments are the values of its keys."""
    return {
        "suite": Path(os.path.relpath(case.suite, file.parent)).as_posix(),
        "case": case.id,
        "gold": digest,
        "decision": decision,
        "answers": [*answers],
        **({"compare": compare} if compare is not None else {}),
        "reviewer": reviewer,
        "at": now(),
        **({"note": note} if note else {}),
        **({"settles": settles} if settles else {}),
    }


def now() -> str:
    """Return the time in the form of review files, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def answer_item(query: str, case: Case) -> dict[str, JsonValue]:
    """Return a prediction as an item of `answers`: a query, a JSON value, or the text of a selection."""
    if KINDS[case.settings.kind].has_queries:
        return {"query": query.strip()}
    unchecked = replace(case, extra={})
    execution = KINDS[case.settings.kind].read_without_running(QueryOrAnswer(query=query), unchecked, Hosts())
    if execution is None or not isinstance(execution.answer, JsonAnswer):
        return {"value": answer_text(query)[0].strip()}
    value: JsonValue = execution.answer.value
    # A suite reads a text as JSON, and null as no value.
    return {"value": json.dumps(value, ensure_ascii=False) if isinstance(value, str | None) else value}
