"""What sources answered: to queries, to the question which tables they have, and to being timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.core.model import Execution, Failure, FailureKind, Source
from pytest_queryeval.core.schema import Schema
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.fingerprint import state_of
from pytest_queryeval.evaluation.recording.answers import (
    read,
    read_answer,
    read_lines,
    read_text,
    written,
    written_answer,
    written_lines,
)
from pytest_queryeval.evaluation.recording.entry_index import RECORD, Facts, Shelf, without_credentials
from pytest_queryeval.evaluation.recording.store import Store, digest
from pytest_queryeval.text.plain import one_line

Thing = TypeVar("Thing")

# The sorts of answers, each with what tells which of them is meant beside the source; the rest tells when it is stale.
SORTS: Mapping[str, tuple[str, ...]] = {
    "executions": ("query",),
    "schemas": (),
    "ddl": (),
    "times": ("gold", "predicted"),
}
_KINDS = frozenset(get_args(FailureKind))
_SHOWN = 80  # characters
_SHOWN_DIGITS = 8
_CHANGES = {
    "engine": "its source has another engine",
    "state": "its source has changed",
    "engine_version": "another version of its engine is installed",
    "settings": "the settings of its source have changed",
    "max_rows": "`max_rows` has changed",
    "iterations": "`iterations` has changed",
}
_LIVE = "version "


class Sources:
    """What the sources of one run answered, found by the state that each has when it is first asked for."""

    def __init__(self, folder: Path, *, replay: bool) -> None:
        self._replay = replay
        self._facts: dict[tuple[str, str], dict[str, Any]] = {}
        self._addresses: dict[tuple[str, str, str], str] = {}
        self._shelves = {
            sort: Shelf(
                Store(folder / sort, SourceError),
                replay=replay,
                same=("source", *meant),
                missing=partial(_missing, sort),
            )
            for sort, meant in SORTS.items()
        }

    def found(self, sort: str, source: Source, form: Callable[[Facts], Thing], **request: Any) -> Thing | None:
        """What `form` makes of the entry, None where there is none; raises `SourceError`, also for that in a replay."""
        facts = self._present(source)
        return self._shelves[sort].found(_name(facts, request), {**facts, **request}, form)

    def keep(
        self,
        sort: str,
        source: Source,
        content: Facts,
        replaces: Callable[[Facts], bool] = lambda _: False,
        **request: Any,
    ) -> None:
        """Write an entry unless one is there that `replaces` does not say has to go; raises `SourceError`."""
        facts = self._present(source)
        if state_of(source) != facts["state"]:  # nobody knows what answered
            raise SourceError(f"source '{source.name}' has changed during the run: what it answers cannot be recorded")
        self._shelves[sort].keep(_name(facts, request), {**facts, **request}, content, replaces=replaces)

    def execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """The recorded execution; its time limit does not identify it.

        One that ran out of time serves for time limits that are no longer than the one it had.
        """
        found = self.found("executions", source, partial(read_execution, query), query=query, max_rows=max_rows)
        limit, execution = found or (None, None)
        if limit is None or timeout <= limit:
            return execution
        if self._replay:
            ran = f"ran out of time after {limit:g} s: whether {timeout:g} s are enough was not recorded"
            raise SourceError(f"the recorded execution of {_shown(query)} on '{source.name}' {ran}")
        return None

    def keep_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Write the execution unless it is there; raises `SourceError` for an answer that cannot be written."""
        try:
            content = written_execution(execution, timeout)
        except TypeError as error:
            problem = f"the answer to {_shown(query)} on '{source.name}' cannot be recorded: {error}"
            raise SourceError(problem) from error

        def had_less_time(before: Facts) -> bool:
            return float(before.get("timeout", timeout)) < timeout

        self.keep("executions", source, content, had_less_time, query=query, max_rows=max_rows)

    def _present(self, source: Source) -> dict[str, Any]:
        """What identifies the state that a source has when it is first asked for, without secrets and paths.

        Raises `SourceError` where its state cannot be told, and where two services of one name and version differ.
        """
        if source.key not in self._facts:
            state = state_of(source)
            if state.startswith(_LIVE):
                self._check_address(source, state)
            self._facts[source.key] = _facts(source, state)
        return self._facts[source.key]

    def _check_address(self, source: Source, state: str) -> None:
        """A service is known by its name and version, since its address may be another one elsewhere."""
        address = without_credentials(str(source.settings.get(ENGINES[source.engine].text_setting)))
        if self._addresses.setdefault((source.engine, source.name, state), address) != address:
            raise SourceError(
                f"source '{source.name}': another source of this name and version has another address, so their "
                "answers cannot be told apart: give one of them another name in `sources`, or another `version`"
            )


def _facts(source: Source, state: str) -> dict[str, Any]:
    fingerprint = ENGINES[source.engine].fingerprint
    return {
        "engine": source.engine,
        "engine_version": fingerprint.version(source.settings),
        "settings": plain(fingerprint.settings(source.settings)),
        "source": source.name if state.startswith(_LIVE) else name_without_folders(source),
        "state": state,
    }


def name_without_folders(source: Source) -> str:
    """The name of a source with files, where it says where on this machine they lie: only their own names."""
    return ", ".join(Path(part).name if Path(part).is_absolute() else part for part in source.name.split(", "))


def _name(facts: Facts, request: Facts) -> str:
    """The name of an entry: what was asked of a source in that state.

    What a source with files is called changes no answer; of services, the name tells which one it is.
    """
    told = {key: value for key, value in facts.items() if key != "source" or facts["state"].startswith(_LIVE)}
    return digest({**told, **request})


def _missing(sort: str, changed: Collection[str], found: Facts, now: Facts, where: str) -> str:
    """Why an entry is not there, in words."""
    source = f"'{read_lines(now['source'])}'"
    if sort == "executions":
        what, entry = f"execution of {_shown(read_lines(now['query']))} on {source}", "is"
    else:
        what, entry = f"{'times' if sort == 'times' else 'tables'} of {source}", "are"
    if not changed:
        return f"no recorded {what} in {where}: {RECORD}"
    return f"the {what} in {where} {entry} stale: {_reason(changed, found, now)}"


def _reason(changed: Collection[str], found: Facts, now: Facts) -> str:
    """Why what is recorded with the facts `found` is not what is asked for `now`: the first that counts of them."""
    name = next((name for name in _CHANGES if name in changed), "engine")
    before, after = found.get(name), now[name]
    if name == "state":
        return f"{_CHANGES[name]} since (recorded {_state(before)}, now {_state(after)})"
    told = f"(recorded {one_line(str(before), _SHOWN)}, now {one_line(str(after), _SHOWN)})"
    return f"{_CHANGES[name]} {told}"


def _state(state: object) -> str:
    text = str(state)
    if text.startswith(_LIVE):
        return one_line(text)
    digits, _, version = text.partition(" ")
    return one_line(f"state {digits[:_SHOWN_DIGITS]}… {version}").strip()


def _shown(query: str) -> str:
    return f"`{one_line(query, _SHOWN)}`"


def written_execution(execution: Execution, timeout: float) -> dict[str, Any]:
    """The content of an entry for an execution; raises TypeError for an answer that cannot be written."""
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


def read_execution(query: str, entry: Facts) -> tuple[float | None, Execution]:
    """The time limit that counts, if any, and the execution of the query that is asked for.

    Raises ValueError, TypeError or KeyError for what is none.
    """
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


def written_schema(schema: Schema) -> dict[str, Any]:
    """The content of an entry for the tables of a source, in their order."""
    tables = [[written(table), [written(column) for column in columns]] for table, columns in schema.tables.items()]
    keys = [[written(name) for name in (*first, *second)] for first, second in schema.foreign_keys]
    return {"foreign_keys": keys, "tables": tables}


def read_schema(entry: Facts) -> Schema:
    """The tables in such an entry; raises ValueError, TypeError or KeyError for what is none."""
    tables = {read_text(table): tuple(map(read_text, columns)) for table, columns in entry["tables"]}
    keys = [tuple(map(read_text, key)) for key in entry["foreign_keys"]]
    return Schema(tables=tables, foreign_keys=tuple(((a, b), (c, d)) for a, b, c, d in keys))


def written_ddl(ddl: str | None) -> dict[str, Any]:
    """The content of an entry for how the tables of a source are made."""
    return {"ddl": None if ddl is None else written_lines(ddl)}


def read_ddl(entry: Facts) -> tuple[str | None]:
    """The text in such an entry; raises ValueError, TypeError or KeyError for what is none."""
    return (None if entry["ddl"] is None else read_lines(entry["ddl"]),)


def written_times(times: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The content of an entry for the seconds that two queries took, a pair an iteration."""
    return {"times": [[float(gold), float(predicted)] for gold, predicted in times]}


def read_times(entry: Facts) -> list[tuple[float, float]]:
    """The seconds in such an entry; raises ValueError, TypeError or KeyError for what is none."""
    times = [(float(gold), float(predicted)) for gold, predicted in entry["times"]]
    if not all(math.isfinite(seconds) and seconds >= 0 for pair in times for seconds in pair):
        raise ValueError("seconds that are none")
    return times
