"""The text of an entry: JSON that reads well in a diff, with a checksum over what it says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Never

FORMAT = 1
_HEX_DIGITS = 32
# What a terminal would obey or not show: control characters beside those that JSON escapes itself, what turns the
# direction of text, what is invisible, and halves of surrogate pairs, which UTF-8 does not have.
_ESCAPED = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)


def digest(value: Any) -> str:
    """32 hexadecimal digits of what a JSON value says, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_DIGITS]


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
