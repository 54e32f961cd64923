"""What an answer of a source depends on beside the query."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.fingerprint import state_of
from pytest_queryeval.errors import SourceError
from pytest_queryeval.model import Source
from pytest_queryeval.plain import one_line, plain
from pytest_queryeval.recording.texts import digest

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
_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")


class Sources:
    """The facts of the sources of one run."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, str], dict[str, Any]] = {}
        self._addresses: dict[tuple[str, str, str], str] = {}

    def facts(self, source: Source) -> dict[str, Any]:
        """What identifies the state that a source has when it is first asked for, without secrets and paths.

        Raises `SourceError` where its state cannot be told, and where two services of one name and version differ.
        """
        if source.key not in self._facts:
            self._facts[source.key] = self._present(source)
        return self._facts[source.key]

    def unchanged_facts(self, source: Source) -> dict[str, Any]:
        """`facts`; raises `SourceError` where they are no longer what they were: nobody knows what answered then."""
        facts = self.facts(source)
        if state_of(source) != facts["state"]:
            raise SourceError(f"source '{source.name}' has changed during the run: what it answers cannot be recorded")
        return facts

    def _present(self, source: Source) -> dict[str, Any]:
        identity = ENGINES[source.engine].identity
        state = state_of(source)
        if state.startswith(_LIVE):
            self._check_address(source, state)
        return {
            "engine": source.engine,
            "engine_version": identity.version(source.settings),
            "settings": plain(identity.settings(source.settings)),
            "source": source.name if state.startswith(_LIVE) else _without_folders(source.name),
            "state": state,
        }

    def _check_address(self, source: Source, state: str) -> None:
        """A service is known by its name and version, since its address may be another one elsewhere."""
        address = _USER_INFO.sub("", str(source.settings.get(ENGINES[source.engine].text_setting)))
        if self._addresses.setdefault((source.engine, source.name, state), address) != address:
            raise SourceError(
                f"source '{source.name}': another source of this name and version has another address, so their "
                "answers cannot be told apart: give one of them another name in `sources`, or another `version`"
            )


def _without_folders(name: str) -> str:
    """The name of a source with files, where it says where on this machine they lie: only their own names."""
    return ", ".join(Path(part).name if Path(part).is_absolute() else part for part in name.split(", "))


def name_of(facts: Mapping[str, Any], **asked: Any) -> str:
    """The name of an entry: what was asked of a source in that state.

    What a source with files is called changes no answer; of services, the name tells which one it is.
    """
    told = {key: value for key, value in facts.items() if key != "source" or facts["state"].startswith(_LIVE)}
    return digest({**told, **asked})


def reason(changed: Collection[str], found: Mapping[str, Any], now: Mapping[str, Any]) -> str:
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
