"""A store of entries: files of JSON below a folder, each found by what it depends on.

An entry reads well in a diff, is written whole or not at all, and holds no secret that this process knows.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import threading
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pytest_queryeval.core.answer_json import Entry, JsonObject, encode_lines
from pytest_queryeval.core.atomic_write import write_atomically
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.text.escaping import UNSEEN
from pytest_queryeval.text.redaction import redact
from pytest_queryeval.text.truncation import one_line

T = TypeVar("T")
Facts: TypeAlias = Mapping[str, JsonValue]
FORMAT = 1
RECORD = "record it with --queryeval-record, or with `queryeval evaluate --record`"  # what to do about a missing entry
_HEX_DIGITS = 32
_NAME = re.compile(r"[0-9a-f]{32}")
_JSON = StrictJson()


@dataclass(frozen=True)
class EntryKey:
    """What an entry depends on, and `ignored`: the names of facts that are written and do not count."""

    facts: Facts
    ignored: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """Return the name of the entry: 32 hexadecimal digits, whatever the order of the facts."""
        return digest({name: value for name, value in self.facts.items() if name not in self.ignored})


@dataclass(frozen=True, kw_only=True)
class EntryType(Generic[T]):
    """What one type of entries holds, and what messages say about it.

    `asked` names the facts that say what was asked; where the others differ, what is recorded is stale. `exact` names
    the parts of the content without which it is of no use. `encode` raises TypeError or ValueError for what cannot be
    recorded, and `decode` ValueError, TypeError or KeyError for what `encode` never returns. `describe` names what an
    entry holds, with `verb` behind it. `explain` says why it is stale, and what to do: from the names of facts that
    changed, the facts that are recorded and those of now.
    """

    folder: str
    error: type[QueryEvalError]
    asked: tuple[str, ...]
    exact: tuple[str, ...]
    encode: Callable[[T], JsonObject]
    decode: Callable[[Entry], T]
    describe: Callable[[Facts], str]
    verb: Literal["is", "are"]
    explain: Callable[[AbstractSet[str], Entry, Entry], str]


class EntryIndex(Generic[T]):
    """The entries of one type: files `xx/<name>.json` of a folder in `root`, where xx are the first digits of the name.

    Several processes and threads may use one folder at once. Whatever is wrong with a file or the folder raises the
    error of the type, with the path. With `replay` a missing entry is an error, too.
    """

    def __init__(self, root: Path, entry_type: EntryType[T], *, replay: bool) -> None:
        self._folder = root / entry_type.folder
        self._type = entry_type
        self._replay = replay
        self._lock = threading.Lock()
        self._recorded: dict[str, list[Entry]] | None = None

    def load(self, key: EntryKey) -> T | None:
        """Return what is recorded, None where nothing is that can be used.

        Raise the error of the type for a damaged entry, and in a replay instead of returning None.
        """
        entry = self._read(key.name)
        if entry is None or entry.get("redacted"):
            if not self._replay:
                return None
            if entry is None:
                raise self._type.error(self._missing(key.facts))
            problem = "cannot be replayed: it held a secret, which was not written"
            raise self._type.error(f"the recorded entry {self._path(key.name)} {problem}")
        try:
            return self._type.decode(entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._damaged(key.name, f"it does not hold what it should: {error}") from error

    def save(self, key: EntryKey, value: T, *, replaces: Callable[[Entry], bool] = lambda _: False) -> None:
        """Write an entry unless one is there that can be used, and that `replaces` does not say has to go.

        Secrets are redacted; where that changes an exact part, the entry is marked, and never loaded. Raise the error
        of the type for a value that cannot be recorded, and where the file cannot be written.
        """
        try:
            content = self._type.encode(value)
            clean = redact_json(content)
        except (TypeError, ValueError, RecursionError) as error:
            reason = "it nests too deep" if isinstance(error, RecursionError) else error
            raise self._type.error(f"the {self._type.describe(key.facts)} cannot be recorded: {reason}") from error
        is_redacted = any(clean.get(name) != content.get(name) for name in self._type.exact)
        before = self._read(key.name)
        if before is not None and not (replaces(before) or (before.get("redacted") and not is_redacted)):
            return
        mark: JsonObject = {"redacted": True} if is_redacted else {}
        entry: JsonObject = {**_by_lines(clean), **mark, "of": _by_lines(redact_json(key.facts))}
        try:
            write_atomically(self._path(key.name), encode_entry(key.name, entry), keep_existing=before is None)
        except OSError as error:
            raise self._type.error(f"nothing can be recorded in {self._folder}: {error.strerror or error}") from error

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"

    def _read(self, name: str) -> Entry | None:
        path = self._path(name)
        try:
            # A link could lead anywhere, and a pipe would make the run wait for ever.
            if not stat.S_ISREG(path.lstat().st_mode):
                raise self._damaged(name, "it is no regular file")
            return decode_entry(name, path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError as error:
            raise self._damaged(name, str(error)) from error
        except OSError as error:
            raise self._type.error(f"{path} cannot be read: {error.strerror or error}") from error

    def _damaged(self, name: str, reason: str) -> QueryEvalError:
        what = f"the recorded entry {self._path(name)} is damaged"
        return self._type.error(f"{what}: {one_line(reason)}: delete it, or restore it")

    def _missing(self, facts: Facts) -> str:
        """Return what is missing, and why, as far as what is recorded tells."""
        what, where = self._type.describe(facts), self._folder.parent
        now = _by_lines(redact_json(facts))
        candidates = self._facts_by_question().get(self._question(now), [])
        changes = [({name for name in now if recorded.get(name) != now[name]}, recorded) for recorded in candidates]
        changed, recorded = min(changes, key=lambda pair: len(pair[0]), default=(set(), {}))
        if not changed:
            return f"no recorded {what} in {where}: {RECORD}"
        return f"the {what} in {where} {self._type.verb} stale: {self._type.explain(changed, recorded, now)}"

    def _facts_by_question(self) -> dict[str, list[Entry]]:
        """Return the facts of all entries by what was asked, read once a run: only an error has to look for others."""
        with self._lock:
            if self._recorded is None:
                self._recorded = {}
                for path in self._folder.glob("[0-9a-f][0-9a-f]/*.json"):
                    if not _NAME.fullmatch(path.stem) or path.parent.name != path.stem[:2]:
                        continue
                    with suppress(QueryEvalError):  # reported when it is asked for
                        facts = (self._read(path.stem) or {}).get("of")
                        if isinstance(facts, dict):
                            self._recorded.setdefault(self._question(facts), []).append(facts)
            return self._recorded

    def _question(self, facts: Entry) -> str:
        return digest([facts.get(name) for name in self._type.asked])


def digest(value: JsonValue) -> str:
    """Return 32 hexadecimal digits of what a JSON value says, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_DIGITS]


def redact_json(value: Facts) -> JsonObject:
    """Return an object whose texts, keys and numbers are as `redact` leaves them."""
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    _map_texts(value, collect)
    # One look at all texts together costs much less than a look at each; nearly always nothing is found.
    together = "\n".join(texts)
    return dict(value) if redact(together) == together else _map_texts(value, redact)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with all its texts changed, and each number that a change makes another text."""
    if isinstance(value, Mapping):
        return {change(key): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    changed = change(text)
    return value if changed == text else changed


def _by_lines(value: Facts) -> JsonObject:
    """Return an object in the order of its keys, each text of several lines as a list of them.

    Secrets of several lines have to be redacted before.
    """
    return {name: encode_lines(item) if isinstance(item, str) else item for name, item in sorted(value.items())}


def encode_entry(name: str, entry: Facts) -> bytes:
    """Return the file of an entry in UTF-8: keys in order, and each item of a list on a line of its own."""
    whole: JsonObject = {**entry, "format": FORMAT}
    whole["checksum"] = digest([name, whole])
    text = _pretty(dict(sorted(whole.items())))
    return f"{UNSEEN.sub(lambda match: json.dumps(match.group())[1:-1], text)}\n".encode()


def decode_entry(name: str, data: bytes) -> Entry:
    """Return the entry in a file; raise ValueError where it is not what was written under that name."""
    try:
        entry = _JSON.read(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("it is no UTF-8") from error
    except TooDeepError as error:
        raise ValueError("it nests too deep") from error
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(entry, dict):
        raise ValueError("it holds no entry")
    checksum = entry.pop("checksum", None)
    if entry.get("format") != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}, which this version reads")
    if checksum != digest([name, entry]):
        raise ValueError("it was changed after it was recorded")
    return entry


def _pretty(value: JsonValue, line: str = "\n") -> str:
    """Return JSON with a key of an object a line, and an item of a list a line, each item as short as it can be."""
    inner = f"{line}  "
    if isinstance(value, dict) and value:
        items = (f"{_compact(key)}: {_pretty(item, inner)}" for key, item in value.items())
        return "{" + inner + f",{inner}".join(items) + line + "}"
    if isinstance(value, list) and value:
        return "[" + inner + f",{inner}".join(map(_compact, value)) + line + "]"
    return _compact(value)


def _compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
