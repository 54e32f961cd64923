"""Review files: decisions of people on golds, one in each JSON line, appended and never rewritten.

The digest of a question and its golds shows whether a decision is still about the current golds.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from pytest_queryeval.core.answer_json import encode
from pytest_queryeval.core.errors import CaseError, Location, ReportError
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.model import AddedAnswer, Answer, Case, Failure, QueryOrAnswer, ReviewDecision
from pytest_queryeval.core.table import Selection, Table
from pytest_queryeval.documents.document import Node, file_at, read_jsonl
from pytest_queryeval.documents.values import (
    Readers,
    choice,
    entries,
    flag,
    json_text,
    known_entries,
    list_of,
    time_with_zone,
    unexpected,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.stated_answers import answer_text
from pytest_queryeval.sandbox.host import Hosts
from pytest_queryeval.suites.keys import read_compare

DECISIONS: tuple[ReviewDecision, ...] = ("right", "wrong", "ambiguous", "unanswerable", "unsure")
AnswerForm: TypeAlias = Literal["query", "table", "value"]
MAX_NAME_CHARACTERS = 100
GIT_SECONDS = 10.0
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class CaseKey(NamedTuple):
    """Identifies a case: the path of its suite, and its id."""

    suite: Path
    id: str


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """A right answer in a review file, in addition to the golds of the suite."""

    form: AnswerForm
    node: Node

    def as_gold(self, case: Case) -> QueryOrAnswer:
        """Return the answer as a gold of a case; raise `CaseError` if the kind or settings of the case rule it out."""
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
    """A line of a review file: what a reviewer decided on the golds of a case."""

    case: CaseKey
    digest: str | None
    """The digest of the question and the golds that were reviewed; None for a decision on any golds."""
    decision: ReviewDecision
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
        """The file and line of the decision."""
        return self.line.location


def read_decisions(path: Path) -> Iterator[GoldDecision]:
    """Yield the decisions in a review file; raise `CaseError` or `SuiteError` for the first invalid line."""
    file = file_at(path)
    for line in read_jsonl(file):
        if isinstance(line, CaseError):
            raise line
        yield read_decision(line)


def read_decision(line: Node) -> GoldDecision:
    """Return the decision in a line, whose suite is relative to the review file.

    Raise `CaseError` for an invalid line.
    """
    values = known_entries(line, _READERS)
    if missing_keys := [name for name in REQUIRED if name not in values]:
        raise line.problem(f"a decision needs {', '.join(f'`{name}`' for name in missing_keys)}")
    if values["decision"] == "unanswerable" and values.get("answers"):
        raise line.problem("what is unanswerable has no `answers`")
    return GoldDecision(
        case=CaseKey(file_at(line.file.folder / values["suite"]).path, values["case"]),
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
_READERS: Readers = {
    "suite": json_text,
    "case": json_text,
    "gold": _digest,
    "decision": choice(*DECISIONS),
    "answers": read_answers,
    "compare": read_compare,
    "reviewer": lambda node: check_reviewer(json_text(node), node.problem),
    "at": time_with_zone,
    "note": json_text,
    "settles": flag,
}


@contextmanager
def open_for_append(path: Path) -> Iterator[Callable[[Iterable[Mapping[str, JsonValue]]], None]]:
    """Create and lock a review file, and yield a function that appends decisions to it as lines.

    No other process appends meanwhile. Raise OSError if the file cannot be written; its content is then unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)

    def append(lines: Iterable[Mapping[str, JsonValue]]) -> None:
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

    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield append
    finally:
        os.close(file)


def decision_line(
    case: CaseKey,
    file: Path,
    *,
    digest: str,
    decision: ReviewDecision,
    answers: Sequence[JsonValue],
    reviewer: str,
    compare: JsonValue = None,
    note: str = "",
    settles: bool = False,
) -> dict[str, JsonValue]:
    """Return a decision with the current time as the object for a line of the review file `file`."""
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
    """Return the current time as text in the form of review files, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def answer_item(query: str, case: Case) -> dict[str, JsonValue]:
    """Return a prediction's text as an item of `answers`: a query, a JSON value, or the text of a selection.

    Texts and null are written as JSON, because a suite reads a text as JSON.
    """
    if KINDS[case.settings.kind].has_queries:
        return {"query": query.strip()}
    unchecked = replace(case, extra={})
    execution = KINDS[case.settings.kind].read_without_running(QueryOrAnswer(query=query), unchecked, Hosts())
    if execution is None or not isinstance(execution.answer, JsonAnswer):
        said = answer_text(query)
        return {"value": query if isinstance(said, Failure) else said[0].strip()}
    value: JsonValue = execution.answer.value
    # A suite reads a text as JSON, and null as no value.
    return {"value": json.dumps(value, ensure_ascii=False) if isinstance(value, str | None) else value}


def check_reviewer(name: object, problem: Callable[[str], Exception]) -> str:
    """Return a reviewer's name without outer blanks.

    Raise the error that `problem` makes of a message if the name is empty, too long, or not printable in a line.
    """
    name = name.strip(" ") if isinstance(name, str) else ""
    if not name or not name.isprintable() or len(name) > MAX_NAME_CHARACTERS:
        raise problem(f"the name of a reviewer has 1 to {MAX_NAME_CHARACTERS} characters that can be printed")
    return name


def git_user() -> str:
    """Return git's `user.name`, which may be empty; raise `ReportError` if git has none."""
    try:
        output = subprocess.run(
            ["git", "config", "user.name"],  # noqa: S607 - as a user calls it
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=True,
        ).stdout
        return output.decode().strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise ReportError("who reviewed it? git has no user.name: add --reviewer NAME") from error


def gold_digest(case: Case) -> str:
    """Return `sha256:` and the hexadecimal SHA-256 digest of a case's question, evidence and golds.

    The content is an object in canonical JSON: sorted keys, no blanks, UTF-8. How a suite writes texts does not matter:
    they have no blanks around them and only line feeds, and a file counts by its content.
    """
    content: JsonValue = {
        "question": _normalized_text(case.question),
        "evidence": _normalized_text(case.evidence),
        "golds": [
            _normalized_text(gold.query) if gold.query is not None else _answer_content(gold.answer)
            for gold in case.golds
        ],
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode(errors='backslashreplace')).hexdigest()}"


def _normalized_text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _answer_content(answer: Answer | None) -> JsonValue:
    """Return an answer in the form of suites; None for answers that no suite states."""
    match answer:
        case Table(columns=columns, rows=rows):
            return {"columns": list(columns), "rows": [[encode(cell) for cell in row] for row in rows]}
        case JsonAnswer(value=value):
            return encode(value)
        case Selection(datasets=datasets):
            return [
                {
                    "dataset_id": dataset.id,
                    "dimensions": [
                        {
                            "dimension_name": part.name,
                            "values": [{"id": term.id, "name": term.name} for term in part.terms],
                        }
                        for part in dataset.dimensions
                    ],
                }
                for dataset in datasets
            ]
        case None | AddedAnswer():  # which no suite states
            return None
