"""Entries as files below one folder, each found by its name alone: JSON that reads well in a diff, with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Never

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.text.plain import one_line
from pytest_queryeval.text.redaction import redact

FORMAT = 1
_HEX_DIGITS = 32
_NAME = re.compile(r"[0-9a-f]{32}")
_LEFT_OVER = ".writing-"
# What a terminal would obey or not show: control characters beside those that JSON escapes itself, what turns the
# direction of text, what is invisible, and halves of surrogate pairs, which UTF-8 does not have.
_ESCAPED = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)


class Store:
    """The files `xx/<name>.json` of a folder, where a name is 32 hexadecimal digits, which start with xx.

    Whatever is wrong with a file or the folder raises `fault`, with the path.
    """

    def __init__(self, folder: Path, fault: type[QueryEvalError]) -> None:
        self.folder = folder
        self.fault = fault

    def path(self, name: str) -> Path:
        """Where the entry lies, or would lie."""
        return self.folder / name[:2] / f"{name}.json"

    def read(self, name: str) -> dict[str, Any] | None:
        """The entry of that name, or None where there is none."""
        path = self.path(name)
        try:
            # A link could lead anywhere, and a pipe would make the run wait for ever.
            if not stat.S_ISREG(path.lstat().st_mode):
                raise self.damaged(name, "it is no regular file")
            return read_entry(name, path.read_bytes().decode("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise self.damaged(name, "it is no UTF-8") from error
        except ValueError as error:
            raise self.damaged(name, str(error)) from error
        except OSError as error:
            raise self.fault(f"{path} cannot be read: {error.strerror or error}") from error

    def write(self, name: str, entry: Mapping[str, Any], *, replaces: bool) -> None:
        """Write the entry whole or not at all; whoever reads meanwhile sees the one before, or none.

        Unless it `replaces` one, that of another writer stays which was faster.
        """
        path = self.path(name)
        content = entry_text(name, entry).encode("utf-8")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_LEFT_OVER)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(temporary).chmod(0o666 & ~_UMASK)
                _put(Path(temporary), path, replaces=replaces)
            finally:
                Path(temporary).unlink(missing_ok=True)
        except OSError as error:
            raise self.fault(f"nothing can be recorded in {self.folder}: {error.strerror or error}") from error

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries that can be read, in no order."""
        for path in self.folder.glob("[0-9a-f][0-9a-f]/*.json"):
            if not _NAME.fullmatch(path.stem) or path.parent.name != path.stem[:2]:
                continue
            with suppress(QueryEvalError):  # told when it is asked for
                entry = self.read(path.stem)
                if entry is not None:
                    yield entry

    def damaged(self, name: str, reason: str) -> QueryEvalError:
        """What is raised for an entry that cannot be used as it stands."""
        return self.fault(
            f"the recorded entry {self.path(name)} is damaged: {one_line(reason)}: delete it, or restore it"
        )


def _put(temporary: Path, path: Path, *, replaces: bool) -> None:
    if replaces:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return
    except OSError:  # a file system without links, where the last writer wins
        temporary.replace(path)


def digest(value: Any) -> str:
    """32 hexadecimal digits of what a JSON value says, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_DIGITS]


def without_secrets(value: Any) -> Any:
    """A JSON value whose texts, keys and numbers are as `redacted` leaves them: the same one if nothing is hidden."""
    texts: list[str] = []

    def collected(text: str) -> str:
        texts.append(text)
        return text

    _mapped(value, collected)
    # One look at all texts together costs much less than a look at each; nearly always nothing is found.
    together = "\n".join(texts)
    return value if redact(together) == together else _mapped(value, redact)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The value with all its texts changed, and each number that a change makes another text."""
    if isinstance(value, dict):
        return {change(key): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    changed = change(text)
    return value if changed == text else changed


def entry_text(name: str, entry: Mapping[str, Any]) -> str:
    """The text of the entry that is called `name`: keys in order, each item of a list on a line of its own."""
    whole = {**entry, "format": FORMAT}
    whole["checksum"] = _checksum(name, whole)
    return _ESCAPED.sub(_escape, "".join(_pretty(dict(sorted(whole.items())), "\n"))) + "\n"


def read_entry(name: str, text: str) -> dict[str, Any]:
    """The entry in a text; raises ValueError where it is not what was written under that name."""
    try:
        entry = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    except ValueError as error:
        raise ValueError("it is no JSON") from error
    if not isinstance(entry, dict):
        raise ValueError("it holds no entry")
    checksum = entry.pop("checksum", None)
    if entry.get("format") != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}, which this version reads")
    if checksum != _checksum(name, entry):
        raise ValueError("it was changed after it was recorded")
    return entry


def _checksum(name: str, entry: Mapping[str, Any]) -> str:
    return digest([name, entry])


def _pretty(value: Any, line: str) -> Iterator[str]:
    """Objects with a key a line; lists with an item a line, each as short as it can be."""
    inner = f"{line}  "
    if isinstance(value, dict) and value:
        for start, (key, item) in zip(_starts("{", inner), value.items(), strict=False):
            yield f"{start}{_compact(key)}: "
            yield from _pretty(item, inner)
        yield line + "}"
    elif isinstance(value, list) and value:
        for start, item in zip(_starts("[", inner), value, strict=False):
            yield start + _compact(item)
        yield line + "]"
    else:
        yield _compact(value)


def _starts(bracket: str, line: str) -> Iterator[str]:
    yield bracket + line
    while True:
        yield "," + line


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


_UMASK = _umask()  # once, as it belongs to all threads
