"""Recorded answers of sources: executions, schemas, DDL, the times of queries, and causes of wrong answers."""

from __future__ import annotations

import math
import re
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast, get_args

from pytest_queryeval.core.answer_json import (
    Entry,
    JsonObject,
    decode,
    decode_answer,
    decode_lines,
    decode_text,
    encode,
    encode_answer,
    encode_lines,
    read_challenge,
)
from pytest_queryeval.core.cause import Cause, CauseLabel, CausingEdit, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.json_value import JsonValue, to_jsonable
from pytest_queryeval.core.model import Execution, Failure, FailureKind, Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import state_of
from pytest_queryeval.evaluation.extensions import Times
from pytest_queryeval.features.recording.store import RECORD, EntryKey, EntryType, Facts
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import is_secret_name

_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=[^&#\s]*")
_KINDS = frozenset(get_args(FailureKind))
_LABELS = frozenset(get_args(CauseLabel))
_SHOWN = 80  # characters
_SHOWN_DIGITS = 8
# The first change is named: with another engine, another version is not news.
_CHANGES = {
    "engine": "its source has another engine",
    "state": "its source has changed since",
    "engine_version": "another version of its engine is installed",
    "settings": "the settings of its source have changed",
    "max_rows": "`max_rows` has changed",
    "iterations": "`iterations` has changed",
    "compare": "`compare` has changed",
}
_LIVE = "version "


class SourceKeys:
    """Makes the keys of sources' answers in one run; the state of a source is that at its first use."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, str], Facts] = {}
        self._addresses: dict[tuple[str, str, str], str] = {}

    def key(self, source: Source, **request: JsonValue) -> EntryKey:
        """Return the key of the answer to a request, without secrets and paths.

        A service is identified by its name; the name of a source with files does not count. Raise `SourceError` if the
        state of the source cannot be determined. Raise it too if two services have the same name and version and
        different addresses.
        """
        if source.key not in self._facts:
            state, engine = state_of(source), ENGINES[source.engine]
            if _is_live(state):
                # A service is identified by name and version, since its address may differ between machines.
                address = without_credentials(str(source.settings.get(engine.text_setting)))
                if self._addresses.setdefault((source.engine, source.name, state), address) != address:
                    raise SourceError(
                        f"source '{source.name}': another source of this name and version has another address, so "
                        "their answers could be mixed up: give one of them another name in `sources`, or another "
                        "`version`"
                    )
            self._facts[source.key] = {
                "engine": source.engine,
                "engine_version": engine.fingerprint.version(source.settings),
                "settings": to_jsonable(
                    {**engine.fingerprint.settings(source.settings), **({"writes": True} if source.writes else {})}
                ),
                "source": source.name if _is_live(state) else name_without_folders(source),
                "state": state,
            }
        facts = self._facts[source.key]
        return EntryKey({**facts, **request}, ignored=() if _is_live(facts["state"]) else ("source",))


def _is_live(state: object) -> bool:
    return str(state).startswith(_LIVE)


def name_without_folders(source: Source) -> str:
    """Return the name of a source, in which absolute paths are reduced to file names."""
    return ", ".join(Path(path).name if Path(path).is_absolute() else path for path in source.name.split(", "))


def without_credentials(text: str) -> str:
    """Return a text without the user info of URLs and the values of parameters with secret names.

    Both change with the user. Everything else is kept, because texts that differ elsewhere must not become equal.
    Unlike `redact`, the result does not depend on the secrets of this environment.
    """

    def keep_name(parameter: re.Match[str]) -> str:
        return f"{parameter[1]}=" if is_secret_name(parameter[1]) else parameter[0]

    return _PARAMETER.sub(keep_name, _USER_INFO.sub("", text))


class RecordedExecution(NamedTuple):
    """An execution and the time limit in seconds under which it ran."""

    execution: Execution
    time_limit: float | None
    """None for an execution that is read from an entry, unless it ran out of time."""


def encode_execution(recorded: RecordedExecution) -> JsonObject:
    """Return the content of an execution's entry; raise TypeError or ValueError if its answer cannot be recorded."""
    execution, time_limit = recorded
    content: JsonObject = {
        **encode_answer(execution.answer),
        "engine": execution.engine,
        "note": execution.note,
        "seconds": encode(float(execution.seconds)),
        "violations": [encode(violation) for violation in execution.violations],
    }
    if execution.error is not None:
        content["error"] = {"kind": execution.error.kind, "message": encode(execution.error.message)}
        if execution.error.kind == "timeout":
            content["timeout"] = time_limit
    return content


def decode_execution(entry: Entry) -> RecordedExecution:
    """Return the execution of an entry, without its query; raise ValueError, TypeError or KeyError if it is invalid."""
    error = None
    if "error" in entry:
        if entry["error"]["kind"] not in _KINDS:
            raise ValueError("an error of an unknown kind")
        error = Failure(kind=entry["error"]["kind"], message=decode_text(entry["error"]["message"]))
    execution = Execution(
        query=None,
        answer=decode_answer(entry),
        error=error,
        seconds=float(decode(entry["seconds"])),
        engine=decode_lines(entry["engine"]),
        note=decode_lines(entry["note"]),
        violations=tuple(map(decode_text, entry["violations"])),
    )
    if (execution.answer is None) == (execution.error is None):
        raise ValueError("an execution has an answer or an error")
    return RecordedExecution(execution, float(entry["timeout"]) if "timeout" in entry else None)


def encode_schema(schema: Schema) -> JsonObject:
    """Return the content of an entry for the tables and foreign keys of a source, in their order."""
    tables: list[JsonValue] = [
        [encode(table), [encode(column) for column in columns]] for table, columns in schema.tables.items()
    ]
    keys: list[JsonValue] = [
        [encode(name) for name in (*referring, *referred)] for referring, referred in schema.foreign_keys
    ]
    return {"foreign_keys": keys, "tables": tables}


def decode_schema(entry: Entry) -> Schema:
    """Return the schema of an entry; raise ValueError, TypeError or KeyError if its content is invalid."""
    tables = {decode_text(table): tuple(map(decode_text, columns)) for table, columns in entry["tables"]}
    keys = [tuple(map(decode_text, key)) for key in entry["foreign_keys"]]
    return Schema(
        tables=tables,
        foreign_keys=tuple(
            ((table, column), (referred_table, referred_column))
            for table, column, referred_table, referred_column in keys
        ),
    )


def encode_ddl(ddl: tuple[str | None]) -> JsonObject:
    """Return the content of an entry for the DDL of a source, which is None if its engine has none."""
    return {"ddl": ddl[0]}


def decode_ddl(entry: Entry) -> tuple[str | None]:
    """Return the DDL of an entry in a tuple; raise ValueError or KeyError if its content is invalid."""
    return (None if entry["ddl"] is None else decode_lines(entry["ddl"]),)


def encode_times(times: Times) -> JsonObject:
    """Return the content of an entry for the seconds of two queries, a pair for each iteration."""
    return {"times": [[float(gold), float(predicted)] for gold, predicted in times]}


def decode_times(entry: Entry) -> Times:
    """Return the seconds of an entry; raise ValueError, TypeError or KeyError if they are invalid or negative."""
    times = [(float(gold), float(predicted)) for gold, predicted in entry["times"]]
    if not all(math.isfinite(seconds) and seconds >= 0 for pair in times for seconds in pair):
        raise ValueError("seconds that are not a number")
    return times


def encode_cause(cause: tuple[Cause | SharedPatterns | None]) -> JsonObject:
    """Return the content of an entry for a cause or for shared patterns; without edits for None."""
    match cause[0]:
        case Cause() as of_edits:
            return {
                "edits": [[encode(edit.label), encode(edit.clause), encode(edit.change)] for edit in of_edits.edits],
                "repaired_query": None if of_edits.repaired_query is None else encode_lines(of_edits.repaired_query),
                "tested": of_edits.is_tested,
            }
        case SharedPatterns() as patterns:
            return {
                "shared": patterns.shared,
                "gold_patterns": patterns.of,
                "only_gold": [encode(line) for line in patterns.only_gold],
                "only_predicted": [encode(line) for line in patterns.only_predicted],
                "unknown_terms": [encode(line) for line in patterns.unknown_terms],
            }
        case _:
            return {"edits": []}


def decode_cause(entry: Entry) -> tuple[Cause | SharedPatterns | None]:
    """Return the cause or the shared patterns of an entry in a tuple; the tuple contains None if there are no edits.

    Raise ValueError, TypeError or KeyError if the content is invalid.
    """
    if "shared" in entry:
        shared, of = int(entry["shared"]), int(entry["gold_patterns"])
        names = ("only_gold", "only_predicted", "unknown_terms")
        lists = {name: tuple(map(decode_text, entry.get(name, []))) for name in names}
        return (SharedPatterns(shared=shared, of=of, **lists),)
    texts = (map(decode_text, edit) for edit in entry["edits"])
    edits = tuple(CausingEdit(label=label, clause=clause, change=change) for label, clause, change in texts)  # type: ignore[arg-type]  # checked below
    if not {edit.label for edit in edits} <= _LABELS:
        raise ValueError("an unknown label")
    if not edits:
        return (None,)
    repaired_query = None if entry["repaired_query"] is None else decode_lines(entry["repaired_query"])
    return (Cause(edits=edits, repaired_query=repaired_query, is_tested=bool(entry["tested"])),)


def query_excerpt(query: str) -> str:
    """Return the beginning of a query in backquotes, for messages."""
    return f"`{one_line(query, _SHOWN)}`"


def _explain(changed_names: AbstractSet[str], recorded_facts: Entry, current_facts: Entry) -> str:
    name = next((name for name in _CHANGES if name in changed_names), "engine")
    show = _show_state if name == "state" else partial(one_line, characters=_SHOWN)
    recorded_text, current_text = (show(str(facts.get(name))) for facts in (recorded_facts, current_facts))
    return f"{_CHANGES[name]} (recorded {recorded_text}, now {current_text}): {RECORD}"


def _show_state(state: str) -> str:
    if _is_live(state):
        return one_line(state)
    digits, _, version = state.partition(" ")
    return one_line(f"state {digits[:_SHOWN_DIGITS]}… {version}").strip()


_of_source = partial(EntryType, error=SourceError, explain=_explain)
EXECUTIONS = _of_source(
    folder="executions",
    question_facts=("source", "query"),
    exact_parts=("json", "selection", "table"),
    encode=encode_execution,
    decode=decode_execution,
    describe=lambda facts: f"execution of {query_excerpt(str(facts['query']))} on '{facts['source']}'",
    verb="is",
)
SCHEMAS = _of_source(
    folder="schemas",
    question_facts=("source",),
    exact_parts=("tables",),
    encode=encode_schema,
    decode=decode_schema,
    describe=lambda facts: f"tables of '{facts['source']}'",
    verb="are",
)
DDL = _of_source(
    folder="ddl",
    question_facts=("source",),
    exact_parts=("ddl",),
    encode=encode_ddl,
    decode=decode_ddl,
    describe=lambda facts: f"tables of '{facts['source']}'",
    verb="are",
)
TIMES = _of_source(
    folder="times",
    question_facts=("source", "gold", "predicted"),
    exact_parts=(),
    encode=encode_times,
    decode=decode_times,
    describe=lambda facts: f"times of '{facts['source']}'",
    verb="are",
)
CHALLENGES = _of_source(
    folder="challenges",
    question_facts=("source", "gold", "predicted"),
    exact_parts=("counterexample", "unlike", "reason"),
    encode=lambda challenge: cast("JsonObject", challenge),
    decode=read_challenge,
    describe=lambda facts: f"challenge of {query_excerpt(str(facts['predicted']))} on '{facts['source']}'",
    verb="is",
)
CAUSES = _of_source(
    folder="causes",
    question_facts=("source", "gold", "predicted"),
    exact_parts=("edits", "repaired_query", "only_gold", "only_predicted", "unknown_terms"),
    encode=encode_cause,
    decode=decode_cause,
    describe=lambda facts: f"cause of {query_excerpt(str(facts['predicted']))} on '{facts['source']}'",
    verb="is",
)
