"""A store of entries: JSON files below a folder, each named by a digest of the facts that it depends on.

An entry reads well in a diff, is written whole or not at all, and has no secret that this process knows.
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
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.text.formatting import UNSEEN, one_line
from pytest_queryeval.text.redaction import redact

T = TypeVar("T")
Facts: TypeAlias = Mapping[str, JsonValue]
FORMAT = 1
RECORD = "record it with --queryeval-record, or with `queryeval evaluate --record`"  # what to do about a missing entry
_HEX_DIGITS = 32
_NAME = re.compile(r"[0-9a-f]{32}")
_JSON = StrictJson()


@dataclass(frozen=True)
class EntryKey:
    """The facts that an entry depends on."""

    facts: Facts
    ignored: tuple[str, ...] = ()
    """The names of facts that are stored, but do not identify the entry."""

    @cached_property
    def name(self) -> str:
        """The name of the entry: a digest of 32 hexadecimal digits that does not depend on the order of the facts."""
        return digest(excluding(self.facts, self.ignored))


@dataclass(frozen=True, kw_only=True)
class EntryType(Generic[T]):
    """How the content of one type of entries is stored, and the messages about it."""

    folder: str
    error: type[QueryEvalError]
    question_facts: tuple[str, ...]
    """The names of the facts that identify the question; an entry of the same question with other facts is stale."""
    exact_parts: tuple[str, ...]
    """The names of the parts of the content that must not be redacted, or the entry cannot be used."""
    encode: Callable[[T], JsonObject]
    """Return the stored form; raise TypeError or ValueError for content that cannot be recorded."""
    decode: Callable[[Entry], T]
    """Return the content of a stored form; raise ValueError, TypeError or KeyError if it is invalid."""
    describe: Callable[[Facts], str]
    """Return a noun phrase for the content of an entry, which messages continue with `verb`."""
    verb: Literal["is", "are"]
    explain: Callable[[AbstractSet[str], Entry, Entry], str]
    """Return why an entry is stale and what to do.

    The arguments are the names of changed facts, the recorded facts and the current facts.
    """


class EntryIndex(Generic[T]):
    """The entries of one type: files `xx/<name>.json` of a folder in `root`, where xx are the first digits of the name.

    Several processes and threads may use the folder at once. A problem with a file or the folder raises the error of
    the type, with the path. With `replay`, a missing entry is an error too.
    """

    def __init__(self, root: Path, entry_type: EntryType[T], *, replay: bool) -> None:
        self._folder = root / entry_type.folder
        self._type = entry_type
        self._replay = replay
        self._lock = threading.Lock()
        self._recorded: dict[str, list[Entry]] | None = None

    def load(self, key: EntryKey) -> T | None:
        """Return the recorded content of a key; None if there is no usable entry.

        Raise the error of the type for a damaged entry, and in a replay if there is no usable entry.
        """
        entry = self._read_entry(key.name)
        if entry is None or entry.get("redacted"):
            if not self._replay:
                return None
            if entry is None:
                raise self._type.error(self._missing_text(key.facts))
            problem = "cannot be replayed: it held a secret, which was not written"
            raise self._type.error(f"the recorded entry {self._path(key.name)} {problem}")
        try:
            return self._type.decode(entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._damage_error(key.name, f"it does not contain what it should: {error}") from error

    def save(self, key: EntryKey, value: T, *, replaces: Callable[[Entry], bool] = lambda _: False) -> None:
        """Write an entry, unless there is a usable entry of the key for which `replaces` returns False.

        Secrets are redacted. If that changes an exact part, the entry is marked and never loaded. Raise the error of
        the type for a value that cannot be recorded, and if the file cannot be written.
        """
        try:
            content = self._type.encode(value)
            clean = redact_json(content)
        except (TypeError, ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise self._type.error(f"the {self._type.describe(key.facts)} cannot be recorded: {reason}") from error
        is_redacted = any(clean.get(name) != content.get(name) for name in self._type.exact_parts)
        existing_entry = self._read_entry(key.name)
        if existing_entry is not None and not (
            replaces(existing_entry) or (existing_entry.get("redacted") and not is_redacted)
        ):
            return
        mark: JsonObject = {"redacted": True} if is_redacted else {}
        entry: JsonObject = {**_with_text_lines(clean), **mark, "of": _with_text_lines(redact_json(key.facts))}
        try:
            write_atomically(self._path(key.name), encode_entry(key.name, entry), keep_existing=existing_entry is None)
        except OSError as error:
            raise self._type.error(f"nothing can be recorded in {self._folder}: {error.strerror or error}") from error

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"

    def _read_entry(self, name: str) -> Entry | None:
        path = self._path(name)
        try:
            # A link could lead anywhere, and a pipe would make the run wait for ever.
            if not stat.S_ISREG(path.lstat().st_mode):
                raise self._damage_error(name, "it is not a regular file")
            return decode_entry(name, path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError as error:
            raise self._damage_error(name, str(error)) from error
        except OSError as error:
            raise self._type.error(f"{path} cannot be read: {error.strerror or error}") from error

    def _damage_error(self, name: str, reason: str) -> QueryEvalError:
        problem = f"the recorded entry {self._path(name)} is damaged"
        return self._type.error(f"{problem}: {one_line(reason)}: delete it, or restore it")

    def _missing_text(self, facts: Facts) -> str:
        """Return the message about a missing entry; if one of the same question exists, it says why that is stale."""
        description, folder = self._type.describe(facts), self._folder.parent
        current_facts = _with_text_lines(redact_json(facts))
        candidates = self._facts_by_question().get(self._question(current_facts), [])
        changes = [
            ({name for name in current_facts if recorded_facts.get(name) != current_facts[name]}, recorded_facts)
            for recorded_facts in candidates
        ]
        changed_names, recorded_facts = min(changes, key=lambda pair: len(pair[0]), default=(set(), {}))
        if not changed_names:
            return f"no recorded {description} in {folder}: {RECORD}"
        explanation = self._type.explain(changed_names, recorded_facts, current_facts)
        return f"the {description} in {folder} {self._type.verb} stale: {explanation}"

    def _facts_by_question(self) -> dict[str, list[Entry]]:
        """Return the facts of all recorded entries by their question.

        They are read from the files at the first call only. Damaged entries are left out.
        """
        with self._lock:
            if self._recorded is None:
                self._recorded = {}
                for path in self._folder.glob("[0-9a-f][0-9a-f]/*.json"):
                    if not _NAME.fullmatch(path.stem) or path.parent.name != path.stem[:2]:
                        continue
                    with suppress(QueryEvalError):  # reported when the entry is loaded
                        facts = (self._read_entry(path.stem) or {}).get("of")
                        if isinstance(facts, dict):
                            self._recorded.setdefault(self._question(facts), []).append(facts)
            return self._recorded

    def _question(self, facts: Entry) -> str:
        return digest([facts.get(name) for name in self._type.question_facts])


def digest(value: JsonValue) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of a JSON value, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_DIGITS]


def redact_json(value: Facts) -> JsonObject:
    """Return an object with `redact` applied to all its keys, texts and numbers.

    A number becomes a text only if it is redacted.
    """
    texts: list[str] = []

    def collect(text: str) -> str:
        texts.append(text)
        return text

    _map_texts(value, collect)
    # Searching all texts at once is much faster than one by one, and nearly always nothing is found.
    joined_text = "\n".join(texts)
    return dict(value) if redact(joined_text) == joined_text else _map_texts(value, redact)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with `change` applied to all keys, texts and numbers.

    A number becomes a text only if `change` alters its digits.
    """
    if isinstance(value, Mapping):
        return {change(key): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    changed_text = change(text)
    return value if changed_text == text else changed_text


def _with_text_lines(value: Facts) -> JsonObject:
    """Return an object sorted by its keys, in which a text of several lines is a list of lines.

    Redact the object first, because a secret may have several lines.
    """
    return {name: encode_lines(item) if isinstance(item, str) else item for name, item in sorted(value.items())}


def encode_entry(name: str, entry: Facts) -> bytes:
    """Return the content of an entry's file in UTF-8, with format and checksum: keys sorted, each list item on a line.

    Invisible characters are escaped.
    """
    document: JsonObject = {**entry, "format": FORMAT}
    document["checksum"] = digest([name, document])
    text = _pretty_json(dict(sorted(document.items())))
    return f"{UNSEEN.sub(lambda match: json.dumps(match.group())[1:-1], text)}\n".encode()


def decode_entry(name: str, data: bytes) -> Entry:
    """Return the entry in a file; raise ValueError if it is not JSON, has another format, or was changed.

    The checksum includes the name of the entry.
    """
    try:
        entry = _JSON.read(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except TooDeepError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise ValueError("it contains no entry")
    checksum = entry.pop("checksum", None)
    if entry.get("format") != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}, which this version reads")
    if checksum != digest([name, entry]):
        raise ValueError("it was changed after it was recorded")
    return entry


def _pretty_json(value: JsonValue, newline: str = "\n") -> str:
    """Return JSON with one member of an object or one item of a list in each line; items themselves are compact."""
    inner = f"{newline}  "
    if isinstance(value, dict) and value:
        lines = (f"{_compact(key)}: {_pretty_json(item, inner)}" for key, item in value.items())
        return "{" + inner + f",{inner}".join(lines) + newline + "}"
    if isinstance(value, list) and value:
        return "[" + inner + f",{inner}".join(map(_compact, value)) + newline + "]"
    return _compact(value)


def _compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
