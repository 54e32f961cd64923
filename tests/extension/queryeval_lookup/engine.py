"""A dictionary in a suite as a source."""

from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.sandbox.host import Hosts


class Dictionary:
    """A source `{dictionary: {entries: {KEY: VALUE}}}`, whose answers have the columns key and value."""

    def __init__(self, entries: dict[str, object]) -> None:
        self._entries = entries

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        word, _, tail = query.strip().partition(" ")
        keys = list(self._entries) if word == "ALL" else [key.strip() for key in tail.split(",") if key.strip()]
        if word not in ("GET", "ALL") or any(key not in self._entries for key in keys):
            return Execution(query=query, error=Failure(kind="invalid", message="no such key"), engine="dictionary")
        rows = [(key, self._entries[key]) for key in keys[:max_rows]]
        return Execution(query=query, answer=Table(columns=("key", "value"), rows=rows), engine="dictionary")

    def close(self) -> None:
        pass


def open_dictionary(source: Source, hosts: Hosts) -> Dictionary:
    return Dictionary(source.settings["entries"])
