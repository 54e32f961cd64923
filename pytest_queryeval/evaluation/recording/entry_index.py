"""Entries of one sort: found by what they depend on, and where one is missing, what became of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.evaluation.recording.answers import written_lines
from pytest_queryeval.evaluation.recording.store import Store, digest, without_secrets
from pytest_queryeval.text.redaction import is_secret_name

Thing = TypeVar("Thing")
Facts: TypeAlias = Mapping[str, Any]
# Called with what has changed, from what it was to what it is, and where; with no changes where nothing is there that
# could be meant.
Missing: TypeAlias = Callable[[Collection[str], Facts, Facts, str], str]
RECORD = "record it with --queryeval-record"  # what to do about a missing entry
EXACT = frozenset({"ddl", "json", "query", "selection", "table", "tables"})
_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=[^&#\s]*")


class Shelf:
    """The entries of a store. `same` are the facts that tell what was asked, the others tell when that is stale.

    `missing` says what a replay lacks.
    """

    def __init__(self, store: Store, *, replay: bool, same: Sequence[str], missing: Missing) -> None:
        self._store = store
        self._replay = replay
        self._same = same
        self._missing = missing
        self._lock = threading.Lock()
        self._recorded: dict[str, list[Facts]] | None = None

    def found(self, name: str, facts: Facts, read: Callable[[Facts], Thing | None]) -> Thing | None:
        """What `read` makes of the entry; None where there is none that serves, which in a replay is a fault."""
        entry = self._store.read(name)
        if entry is None:
            if self._replay:
                raise self.fault(self._told(facts))
            return None
        if entry.get("redacted"):
            if self._replay:
                problem = "cannot be replayed: it held a secret, which was not written"
                raise self.fault(f"the recorded entry {self._store.path(name)} {problem}")
            return None
        try:
            return read(entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._store.damaged(name, f"it does not hold what it should: {error}") from error

    def keep(
        self, name: str, facts: Facts, content: Facts, *, replaces: Callable[[Facts], bool] = lambda _: False
    ) -> None:
        """Write an entry where there is none yet; `replaces` says of one that is there whether it has to go."""
        try:
            clean = without_secrets(dict(content))
            is_redacted = any(clean.get(key) != content.get(key) for key in EXACT)
            before = self._store.read(name)
            if before is not None and not (replaces(before) or (before.get("redacted") and not is_redacted)):
                return
            mark = {"redacted": True} if is_redacted else {}
            entry = {**_lined(clean), **mark, "of": _shown(facts)}
            self._store.write(name, entry, replaces=before is not None)
        except RecursionError as error:
            raise self.fault("an answer that nests too deep cannot be recorded") from error

    def fault(self, problem: str) -> QueryEvalError:
        """What is raised for a problem with an entry."""
        return self._store.fault(problem)

    def _told(self, facts: Facts) -> str:
        """What is missing, and why, as far as what is recorded tells."""
        now = _shown(facts)
        recorded = self._index().get(self._key(now), [])
        told = [([name for name in now if found.get(name) != now[name]], found) for found in recorded]
        changed, found = min(told, key=lambda pair: len(pair[0]), default=((), {}))
        return self._missing(changed, found, now, str(self._store.folder.parent))

    def _index(self) -> dict[str, list[Facts]]:
        """The facts of all entries by what was asked, read once a run: only a fault has to look for others."""
        with self._lock:
            if self._recorded is None:
                self._recorded = {}
                for entry in self._store.entries():
                    facts = entry.get("of")
                    if isinstance(facts, dict):
                        self._recorded.setdefault(self._key(facts), []).append(facts)
            return self._recorded

    def _key(self, facts: Facts) -> str:
        return digest([facts.get(name) for name in self._same])


def without_credentials(text: str) -> str:
    """The text without user info of URLs and values of parameters with secret names, which change with who asks.

    Unlike `discreet` it keeps all else, since texts that differ in more must not be taken for the same; unlike
    `redacted` it does not depend on the secrets that this environment has.
    """
    return _PARAMETER.sub(_named_alone, _USER_INFO.sub("", text))


def _named_alone(parameter: re.Match[str]) -> str:
    return f"{parameter[1]}=" if is_secret_name(parameter[1]) else parameter[0]


def _shown(facts: Facts) -> dict[str, Any]:
    """The facts as they are written: in order, without secrets."""
    return dict(sorted(_lined(without_secrets(dict(facts))).items()))


def _lined(entry: Facts) -> dict[str, Any]:
    """Each text of several lines as a list of them: secrets of several lines have to be taken out before."""
    return {name: written_lines(value) if isinstance(value, str) else value for name, value in entry.items()}
