"""Secrets are taken out of every text that leaves, by their value: those of the environment, and those of settings.

A secret is known by the name of what holds it, has six characters or more, and is found in all the spellings in which
it may come back. Also imported by child processes: needs nothing else of the package.
"""

from __future__ import annotations

import html
import json
import os
import re
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote, unquote_plus

MARK = "[redacted]"
SECRET = 6  # characters; shorter texts stand everywhere
PART = 12  # so many characters of a secret in a row are taken out even where something has cut the rest
LINE = 16  # so long is a line of a secret, such as a private key, that is taken out alone
GRAM = 4
SCHEMES = ("bearer", "basic", "token", "apikey")  # before what headers hold
# A token may stand where URLs of the web have the user, and then one of these where they have the password.
NO_PASSWORD = (None, "", "x-oauth-basic")
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|_PWD$", re.IGNORECASE)
_SENT = re.compile(r"AUTH|COOKIE|SIGNATURE|^SIG$|^PWD$", re.IGNORECASE)
_HARMLESS = re.compile(
    r"TOKENI[SZ]|MONKEY|TURKEY|DONKEY|KEY(?:BOARD|CLOAK|MAP|PAD|WORD|STONE|SPACE)|(?:PRIMARY|FOREIGN|PARTITION|SORT)[_-]?KEY"
    r"|COMPASS|BYPASS|PASS(?:ENGER|IVE|THROUGH)|AUTHOR(?!I[SZ])",
    re.IGNORECASE,
)
_WEB = re.compile(r"https?://[^/?#]*@", re.IGNORECASE)
_USER_INFO = re.compile(r"[A-Za-z][\w+.-]*://(?P<user>[^:/?#\s]*)(?::(?P<password>\S*))?@")
_QUERY = re.compile(r"[^\s?&=]+=[^\s&]*(?:&[^\s&=]+=[^\s&]*)*")
_PLACE = re.compile(r"\{[\w.]+\}")
_OPAQUE = re.compile(r"[\w.+=%~$!-][\w.+=%~$!/-]*")
_HEX = re.compile("%[0-9A-F]{2}")


def redacted(text: str) -> str:
    """The text with `[redacted]` for every secret that this process knows, and for every larger part of one.

    Do it before the text is cut, and never to what is still to be scored.
    """
    if len(text) < SECRET:
        return text
    index = _known.index()
    return index.without(text) if index.grams else text


def hide(value: str) -> None:
    """Remember a secret that settings hold; a shorter one than six characters stays as it is."""
    _known.add(value)


def hide_settings(settings: Any, name: str = "") -> None:
    """Remember the secrets that settings hold, however deep.

    They are the values under names such as `auth`, `X-Api-Key` and `password`, user info of URLs, and parameters of
    such names in URLs and forms.
    """
    match settings:
        case Mapping():
            for key, item in settings.items():
                hide_settings(item, name if is_secret(name) else str(key))
        case list() | tuple():
            for item in settings:
                hide_settings(item, name)
        case str():
            is_whole = is_secret(name) and "://" not in settings
            for value in _whole_and_password(settings) if is_whole else _within(settings):
                # What is filled into a place such as `{query}` is no secret.
                for piece in (value, *_PLACE.split(value)):
                    hide("" if _PLACE.fullmatch(piece) else piece.strip())
        case int():  # a header may be a number
            hide_settings(str(settings), name)


def is_secret(name: str) -> bool:
    """Whether a setting, a header or a parameter of this name holds a secret."""
    left = _HARMLESS.sub("", name)
    return _SECRET.search(left) is not None or _SENT.search(left) is not None


def _whole_and_password(value: str) -> Iterator[str]:
    """What a setting of a secret name holds: `Bearer token` and `user:password` have a part that is told alone."""
    yield value
    yield value.partition(":")[2]
    scheme, _, credentials = value.strip().partition(" ")
    if scheme.lower() in SCHEMES:
        yield credentials


def _within(text: str) -> Iterator[str]:
    """The secrets in a URL or a form: user info, and values of parameters with secret names; also as they are meant."""
    # Of other URLs the last @ counts: their passwords may hold what ends an address.
    is_web = text.lower().startswith("http")
    found = _USER_INFO.match((_WEB.match(text) or [""])[0] if is_web else text)
    if found:
        user, password = found["user"], found["password"]
        alone = [user] if is_web else []
        told = alone if password in NO_PASSWORD else [password, f"{user}:{password}"]
        yield from (spelled for value in told for spelled in (value, unquote(value), unquote_plus(value)))
    query = text.partition("?")[2].partition("#")[0] if "://" in text else text
    if _QUERY.fullmatch(query):
        named = (part.partition("=") for part in query.split("&"))
        found_values = [value for name, _, value in named if is_secret(unquote_plus(name))]
        yield from (spelled for value in found_values for spelled in (value, unquote(value), unquote_plus(value)))


class _Index(NamedTuple):
    """What to look for: pieces by their lengths, whole texts, and GRAM characters at each place of any of them.

    Each piece, and each text, holds a gram at every `step`-th place of whatever text it is found in.
    """

    pieces: Mapping[int, frozenset[str]]
    texts: tuple[str, ...]
    grams: frozenset[str]
    step: int

    def without(self, text: str) -> str:
        places = range(0, len(text) - GRAM + 1, self.step)
        if self.grams.isdisjoint([text[place : place + GRAM] for place in places]):
            return text
        hits = [place for place in places if text[place : place + GRAM] in self.grams]
        return _marked(text, sorted({*self._pieces_at(text, hits), *self._texts_in(text)}))

    def _pieces_at(self, text: str, hits: Iterable[int]) -> Iterator[tuple[int, int]]:
        for hit in hits:
            for length, known in self.pieces.items():
                for start in range(max(0, hit + GRAM - length), hit + 1):
                    if text[start : start + length] in known:
                        yield start, start + length

    def _texts_in(self, text: str) -> Iterator[tuple[int, int]]:
        for found in self.texts:
            start = text.find(found)
            while start >= 0:
                yield start, start + len(found)
                start = text.find(found, start + 1)


def _marked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with one mark for all spans that overlap or touch."""
    done: list[str] = []
    end = 0
    for start, stop in spans:
        if start > end or not done:
            done += [text[end:start], MARK]
        end = max(end, stop)
    return "".join([*done, text[end:]])


def _index_of(values: Iterable[str]) -> _Index:
    pieces: dict[int, set[str]] = {}
    texts = set()
    for value in values:
        # Parts of what is made of words and marks stand elsewhere, too.
        has_parts = _OPAQUE.fullmatch(value) is not None
        for form in (form for form in _spellings(value) if len(form) >= SECRET):
            if len(form) <= PART:
                pieces.setdefault(len(form), set()).add(form)
            elif has_parts:
                pieces.setdefault(PART, set()).update(_cuts(form, PART))
            else:
                texts.add(form)
    frozen = {length: frozenset(forms) for length, forms in pieces.items()}
    grams = {gram for form in texts.union(*frozen.values()) for gram in _cuts(form, GRAM)}
    return _Index(frozen, tuple(texts), frozenset(grams), min(pieces, default=PART) - GRAM + 1)


def _cuts(form: str, length: int) -> Iterator[str]:
    """Every `length` characters in a row."""
    return (form[start : start + length] for start in range(len(form) - length + 1))


def _spellings(value: str) -> set[str]:
    """A secret as programs write it: as it is, in URLs, JSON, Python, HTML, base64 and hexadecimal digits."""
    data = value.encode("utf-8", "surrogateescape" if _is_encodable(value) else "surrogatepass")
    urls = {quote(data), quote(data, safe=""), quote_plus(data)}
    escaped = {
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        ascii(value)[1:-1],
    }
    return {
        value,
        " ".join(value.split()),
        *urls,
        *(_HEX.sub(lambda code: code[0].lower(), url) for url in urls),
        *escaped,
        *(text.replace("\\'", "'") for text in escaped),
        html.escape(value),
        html.escape(value, quote=False),
        data.hex(),
        data.hex().upper(),
        *_base64(data),
    }


def _is_encodable(value: str) -> bool:
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _base64(data: bytes) -> Iterator[str]:
    """What base64 makes of the bytes alone, and what of it is always the same with others before and behind."""
    for before in range(3):
        text = b64encode(b"\0" * before + data).decode()
        whole = text[-(-8 * before // 6) : 8 * (before + len(data)) // 6]
        for spelled in (whole, *((text, text.rstrip("=")) if before == 0 else ())):
            yield spelled
            yield spelled.replace("+", "-").replace("/", "_")


class _Known:
    """The secrets of this process. The environment may change at any time; the index is made anew where secrets do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hidden: frozenset[str] = frozenset()
        self._indexed: frozenset[str] = frozenset()
        self._environment: Mapping[Any, Any] = {}
        self._stale = True
        self._index = _index_of(())

    def add(self, value: str) -> None:
        with self._lock:
            if len(value) >= SECRET and value not in self._hidden:
                self._hidden |= {value}
                self._stale = True

    def index(self) -> _Index:
        environment = _environment()
        if self._stale or environment != self._environment:
            with self._lock:
                self._read(dict(environment))
        return self._index

    def _read(self, environment: Mapping[Any, Any]) -> None:
        before = self._environment
        changed = [name for name in environment.keys() | before.keys() if environment.get(name) != before.get(name)]
        variables = [(name, kept[name]) for name in changed for kept in (before, environment) if name in kept]
        if self._stale or any(True for variable in variables for _ in _of_variable(*variable)):
            self._stale = False
            self._build(environment)
        self._environment = environment

    def _build(self, environment: Mapping[Any, Any]) -> None:
        found = (value for variable in environment.items() for value in _of_variable(*variable))
        values = frozenset(part for value in (*self._hidden, *found) for part in _parts(value))
        if values != self._indexed:
            self._index, self._indexed = _index_of(values), values


def _environment() -> Mapping[Any, Any]:
    """The environment as `os.environ` holds it: to compare that is fast, and decodes nothing."""
    return vars(os.environ).get("_data", os.environ)  # type: ignore[no-any-return]


def _of_variable(name: str | bytes, value: str | bytes) -> Iterator[str]:
    """The secrets in a variable of the environment: all of it where its name tells so, and user info of URLs."""
    text = os.fsdecode(value)
    if len(text) >= SECRET and _SECRET.search(_HARMLESS.sub("", os.fsdecode(name))) and not _is_path(text):
        yield text
    if "@" in text:
        yield from _within(text)


def _is_path(value: str) -> bool:
    """Whether it is where a secret stands, and no secret: a file or a folder that is there."""
    try:
        return Path(value).is_absolute() and Path(value).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


def _parts(value: str) -> Iterator[str]:
    """A secret without the blanks around it, and its lines, since many outputs put something before each line."""
    yield value
    yield value.strip()
    yield from (line for line in map(str.strip, value.splitlines()) if len(line) >= LINE)


_known = _Known()
