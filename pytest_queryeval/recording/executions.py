"""What sources answered: to queries, to the question which tables they have, and to being timed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args

from pytest_queryeval.model import Execution, Failure, FailureKind, Source
from pytest_queryeval.plain import one_line
from pytest_queryeval.recording.answers import read_answer, read_lines, written_answer
from pytest_queryeval.recording.cells import read, read_text, written
from pytest_queryeval.recording.shelf import Facts, Shelf
from pytest_queryeval.recording.sources import Sources, name_of, reason
from pytest_queryeval.recording.store import Store

QUERY_CHARACTERS = 80
_KINDS = frozenset(get_args(FailureKind))


class Executions:
    """Recorded executions; the time limit is no part of what identifies them."""

    def __init__(self, store: Store, sources: Sources, *, replay: bool) -> None:
        self._sources = sources
        self._replay = replay
        self._shelf = Shelf(store, replay=replay, same=("query", "source"), missing=_missing)

    def found(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """The recorded execution, None where there is none; raises `SourceError`, also for that in a replay.

        One that ran out of time serves for time limits that are no longer than the one it had.
        """
        facts = self._sources.facts(source)
        name = name_of(facts, query=query, max_rows=max_rows)
        facts = {**facts, "query": query, "max_rows": max_rows}
        limit, execution = self._shelf.found(name, facts, lambda entry: _read(entry, query)) or (None, None)
        if limit is None or timeout <= limit:
            return execution
        if self._replay:
            ran = f"ran out of time after {limit:g} s: whether {timeout:g} s are enough was not recorded"
            raise self._shelf.fault(f"the recorded execution of {_query(query)} on '{source.name}' {ran}")
        return None

    def keep(self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int) -> None:
        """Write the execution unless it is there; raises `SourceError` for an answer that cannot be written."""
        facts = self._sources.unchanged_facts(source)
        name = name_of(facts, query=query, max_rows=max_rows)
        facts = {**facts, "query": query, "max_rows": max_rows}
        try:
            content = _content(execution, timeout)
        except TypeError as error:
            problem = f"the answer to {_query(query)} on '{source.name}' cannot be recorded: {error}"
            raise self._shelf.fault(problem) from error
        self._shelf.keep(name, facts, content, replaces=lambda before: before.get("timeout", timeout) < timeout)


def _content(execution: Execution, timeout: float) -> dict[str, Any]:
    content = {
        **written_answer(execution.answer),
        "engine": execution.engine,
        "note": execution.note,
        "seconds": written(float(execution.seconds)),
        "violations": [written(violation) for violation in execution.violations],
    }
    if execution.error is not None:
        content["error"] = {"kind": execution.error.kind, "message": written(execution.error.message)}
        if execution.error.kind == "timeout":
            content["timeout"] = float(timeout)
    return content


def _read(entry: Facts, query: str) -> tuple[float | None, Execution]:
    """The time limit that counts, if any, and the execution of the query that is asked for."""
    execution = Execution(
        query=query,
        answer=read_answer(entry),
        error=_failure(entry["error"]) if "error" in entry else None,
        seconds=float(read(entry["seconds"])),
        engine=read_lines(entry["engine"]),
        note=read_lines(entry["note"]),
        violations=tuple(map(read_text, entry["violations"])),
    )
    if (execution.answer is None) == (execution.error is None):
        raise ValueError("an execution has an answer or an error")
    return float(entry["timeout"]) if "timeout" in entry else None, execution


def _failure(entry: Facts) -> Failure:
    if entry["kind"] not in _KINDS:
        raise ValueError("an error of an unknown kind")
    return Failure(kind=entry["kind"], message=read_text(entry["message"]))


def _missing(changed: Collection[str], found: Facts, now: Facts, where: str) -> str:
    what = f"{_query(read_lines(now['query']))} on '{read_lines(now['source'])}'"
    if not changed:
        return f"no recorded execution of {what} in {where}"
    return f"the execution of {what} in {where} is stale: {reason(changed, found, now)}"


def _query(query: str) -> str:
    return f"`{one_line(query, QUERY_CHARACTERS)}`"
