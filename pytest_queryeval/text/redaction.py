"""Secrets are taken out of every text that leaves, by their value: those of the environment, and those of settings.

A secret is known by the name of what holds it, has six characters or more, and is found in all the spellings in which
it may come back. Also imported by child processes.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

from pytest_queryeval.text.secret_index import SECRET, SecretIndex

MARK = "[redacted]"
LINE = 16  # so long is a line of a secret, such as a private key, that is taken out alone
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


def redacted(text: str) -> str:
    """The text with `[redacted]` for every secret that this process knows, and for every larger part of one.

    Do it before the text is cut, and never to what is still to be scored.
    """
    if len(text) < SECRET:
        return text
    index = _known.index()
    return index.without(text, MARK) if index.grams else text


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


class _Known:
    """The secrets of this process. The environment may change at any time; only what has changed is read again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hidden: set[str] = set()
        self._new: list[str] = []  # of those that settings hold
        self._environment: Mapping[Any, Any] = {}
        self._of_variables: dict[Any, frozenset[str]] = {}
        self._index = SecretIndex()

    def add(self, value: str) -> None:
        with self._lock:
            if len(value) >= SECRET and value not in self._hidden:
                self._hidden.add(value)
                self._new.append(value)

    def index(self) -> SecretIndex:
        environment = _environment()
        if self._new or environment != self._environment:
            with self._lock:
                self._read(dict(environment))
        return self._index

    def _read(self, environment: Mapping[Any, Any]) -> None:
        # Others wait while there is something new, so what is read is taken away last.
        while self._new:
            self._change(frozenset(), frozenset(_parts(self._new[-1])))
            self._new.pop()
        before = self._environment
        for name in {name for name, _ in environment.items() ^ before.items()}:
            of_variable = _of_variable(name, environment[name]) if name in environment else ()
            found = frozenset(part for value in of_variable for part in _parts(value))
            self._change(self._of_variables.pop(name, frozenset()), found)
            self._of_variables |= {name: found} if found else {}
        self._environment = environment

    def _change(self, before: frozenset[str], now: frozenset[str]) -> None:
        for value in now - before:
            self._index.change(value, 1)
        for value in before - now:
            self._index.change(value, -1)


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
