"""What sources answered beside queries: which tables they have, and how long queries took."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from pytest_queryeval.model import Source
from pytest_queryeval.recording.answers import read_lines
from pytest_queryeval.recording.cells import read_text, written
from pytest_queryeval.recording.shelf import Facts, Shelf
from pytest_queryeval.recording.sources import Sources, name_of, reason
from pytest_queryeval.recording.store import Store
from pytest_queryeval.schema import Schema

Thing = TypeVar("Thing")


class Listed:
    """One sort of such answers, called `what` in messages; `asked` are the facts beside those of the source."""

    def __init__(self, store: Store, sources: Sources, *, what: str, asked: Sequence[str], replay: bool) -> None:
        self._sources = sources
        self._what = what
        self._shelf = Shelf(store, replay=replay, same=("source", *asked), missing=self._missing)

    def found(self, source: Source, read: Callable[[Facts], Thing], **asked: Any) -> Thing | None:
        """What `read` makes of the entry, None where there is none; raises `SourceError`, also for that in a replay."""
        facts = self._sources.facts(source)
        return self._shelf.found(name_of(facts, **asked), {**facts, **asked}, read)

    def keep(self, source: Source, content: Facts, **asked: Any) -> None:
        """Write an entry unless it is there; raises `SourceError`."""
        facts = self._sources.unchanged_facts(source)
        self._shelf.keep(name_of(facts, **asked), {**facts, **asked}, content, replaces=lambda _: False)

    def _missing(self, changed: Collection[str], found: Facts, now: Facts, where: str) -> str:
        what = f"{self._what} of '{read_lines(now['source'])}'"
        if not changed:
            return f"no recorded {what} in {where}"
        return f"the {what} in {where} are stale: {reason(changed, found, now)}"


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


def written_times(times: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The content of an entry for the seconds that two queries took, a pair an iteration."""
    return {"times": [[float(gold), float(predicted)] for gold, predicted in times]}


def read_times(entry: Facts) -> list[tuple[float, float]]:
    """The seconds in such an entry; raises ValueError, TypeError or KeyError for what is none."""
    times = [(float(gold), float(predicted)) for gold, predicted in entry["times"]]
    if not all(math.isfinite(seconds) and seconds >= 0 for pair in times for seconds in pair):
        raise ValueError("seconds that are none")
    return times
