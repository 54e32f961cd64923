"""Redaction of secrets in every text that leaves the process: those of the environment, and those of settings.

A secret is recognised by the name of what holds it, and found by its value. Texts of settings are shown without what
may be credentials. Also imported by child processes.
"""

from __future__ import annotations

import json
import os
import re
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

MARK = "[redacted]"
MIN_CHARACTERS = 8  # shorter texts occur in too many words
MIN_LINE_CHARACTERS = 16  # of a secret of several lines, such as a private key, whose lines are found one by one
SCHEMES = ("bearer", "basic", "token", "apikey")  # before the credentials of an Authorization header
# A token may stand where web URLs have the user, and then one of these where they have the password.
NO_PASSWORD = (None, "", "x-oauth-basic")
_SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|_PWD$", re.IGNORECASE)
_HEADER_NAME = re.compile(r"AUTH|COOKIE|SIGNATURE|^SIG$|^PWD$", re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    r"TOKENI[SZ]|MONKEY|TURKEY|DONKEY|KEY(?:BOARD|CLOAK|MAP|PAD|WORD|STONE|SPACE)|(?:PRIMARY|FOREIGN|PARTITION|SORT)[_-]?KEY"
    r"|COMPASS|BYPASS|PASS(?:ENGER|IVE|THROUGH)|AUTHOR(?!I[SZ])",
    re.IGNORECASE,
)
_WEB = re.compile(r"https?://[^/?#]*@", re.IGNORECASE)
_USER_INFO = re.compile(r"[A-Za-z][\w+.-]*://(?P<user>[^:/?#\s]*)(?::(?P<password>\S*))?@")
_QUERY = re.compile(r"[^\s?&=]+=[^\s&]*(?:&[^\s&=]+=[^\s&]*)*")
_PLACEHOLDER = re.compile(r"\{[\w.]+\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CLEAN_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]*\]|[^/?#@:\[\]]*)(?::[0-9]*)?(?=[/?#]|$)")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]*\]|[^/?#@:\[\]]*)")
CURRENT_TEST = b"PYTEST_CURRENT_TEST"
_HINT_OF_CREDENTIALS = re.compile(
    r"://|:.*@|(?:^|[^a-z])jdbc:|(?:password|passwd|pwd|passphrase|token|secret|api_?key)\s*[=:]",
    re.IGNORECASE | re.DOTALL,
)


def redact(text: str) -> str:
    """Return the text with `[redacted]` for every secret that this process knows.

    Call it before a text is cut, and never on a text that is still to be scored.
    """
    if len(text) < MIN_CHARACTERS:
        return text
    for form in _known_secrets.forms():
        if form in text:
            text = text.replace(form, MARK)
    return text


def beginning_of_secret(text: str) -> str:
    """Return the longest end of the text with which a known secret begins, without being complete; empty if none."""
    ends = (
        form[:length]
        for form in _known_secrets.forms()
        for length in range(min(len(form) - 1, len(text)), 0, -1)
        if text.endswith(form[:length])
    )
    return max(ends, key=len, default="")


def secrets_in(data: bytes) -> tuple[str, ...]:
    """Return the known secrets that occur in the data in any form; texts in the data are expected as UTF-8."""
    return _known_secrets.secrets_in(data)


def register_secret(value: str) -> None:
    """Add a secret to those that `redact` removes; a secret of fewer than 8 characters is never removed."""
    _known_secrets.add(value)


def register_secrets(settings: Any, name: str = "") -> None:
    """Add all secrets in settings, at any depth, to those that `redact` removes.

    Secrets are values under names such as `auth`, `X-Api-Key` and `password`, user info of URLs, and parameters with
    such names in URLs and forms. `name` is the name of the setting whose value `settings` is.
    """
    match settings:
        case Mapping():
            for key, item in settings.items():
                register_secrets(item, name if is_secret_name(name) else str(key))
        case list() | tuple():
            for item in settings:
                register_secrets(item, name)
        case str():
            is_whole = is_secret_name(name) and "://" not in settings
            for value in _credentials(settings) if is_whole else secrets_in_url(settings):
                # What is filled into a placeholder such as `{query}` is not a secret.
                for piece in (value, *_PLACEHOLDER.split(value)):
                    if not _PLACEHOLDER.fullmatch(piece):
                        register_secret(piece.strip())
        case int():  # a header may be a number
            register_secrets(str(settings), name)


def is_secret_name(name: str) -> bool:
    """Return whether the name of a setting, a header or a parameter suggests that its value is secret."""
    name_left = _HARMLESS_NAME.sub("", name)
    return _SECRET_NAME.search(name_left) is not None or _HEADER_NAME.search(name_left) is not None


def _credentials(value: str) -> Iterator[str]:
    """Yield what may be secret in the value of a setting with a secret name.

    This is the whole value, the part after its first colon, and the part after `Bearer` or another of SCHEMES.
    """
    yield value
    yield value.partition(":")[2]
    scheme, _, credentials = value.strip().partition(" ")
    if scheme.lower() in SCHEMES:
        yield credentials


def secrets_in_url(text: str) -> Iterator[str]:
    """Yield the user info and the secret parameters in a URL or a form, as they are written and decoded."""
    # Of other URLs the last @ counts: their passwords may hold what ends an address.
    is_web = text.lower().startswith("http")
    user_info = _USER_INFO.match((_WEB.match(text) or [""])[0] if is_web else text)
    values = []
    if user_info:
        user, password = user_info["user"], user_info["password"]
        if password not in NO_PASSWORD:
            values += [password, f"{user}:{password}"]
        elif is_web:
            values.append(user)
    query = text.partition("?")[2].partition("#")[0] if "://" in text else text
    if _QUERY.fullmatch(query):
        parameters = (part.partition("=") for part in query.split("&"))
        values += [value for name, _, value in parameters if is_secret_name(unquote_plus(name))]
    for value in values:
        yield from (value, unquote(value), unquote_plus(value))


class _KnownSecrets:
    """The secrets of this process: registered secrets and those of the environment, which may change at any time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a stream that garbage collection closes meanwhile asks for secrets, too
        self._registered: set[str] = set()
        self._environment: dict[Any, Any] = {}
        self._is_outdated = True
        self._forms: tuple[str, ...] = ()
        self._forms_in_utf8: dict[str, tuple[bytes, ...]] = {}

    def add(self, value: str) -> None:
        with self._lock:
            self._registered.add(value)
            self._is_outdated = True

    def forms(self) -> tuple[str, ...]:
        """Return every form of every secret, the longest first, because a form may contain a shorter form."""
        self._update()
        return self._forms

    def secrets_in(self, data: bytes) -> tuple[str, ...]:
        """Return the secrets that occur in the data in any form."""
        self._update()
        return tuple(secret for secret, forms in self._forms_in_utf8.items() if any(form in data for form in forms))

    def _update(self) -> None:
        environment = _environment()
        if CURRENT_TEST in environment:  # pytest changes it all the time
            self._environment[CURRENT_TEST] = environment[CURRENT_TEST]
        else:
            self._environment.pop(CURRENT_TEST, None)
        if self._is_outdated or environment != self._environment:
            with self._lock:
                variables = dict(environment)
                secrets = self._registered.union(*(_secrets_of(*variable) for variable in variables.items()))
                forms = {secret: _forms_of(secret) for secret in secrets}
                self._forms = tuple(sorted(frozenset().union(*forms.values()), key=lambda form: (-len(form), form)))
                self._forms_in_utf8 = {
                    secret: tuple(form.encode("utf-8", "surrogatepass") for form in forms_of_secret)
                    for secret, forms_of_secret in forms.items()
                }
                self._environment, self._is_outdated = variables, False


def _environment() -> Mapping[Any, Any]:
    """Return the environment undecoded, as `os.environ` stores it, which is fast to compare."""
    return vars(os.environ).get("_data", os.environ)  # type: ignore[no-any-return]


@lru_cache(maxsize=10_000)
def _secrets_of(name: str | bytes, value: str | bytes) -> frozenset[str]:
    """Return the secrets in an environment variable: those of a URL, and the whole value if its name is a secret name.

    An existing absolute path, such as that of a key file, is no secret.
    """
    text = os.fsdecode(value)
    secrets = set(secrets_in_url(text)) if "@" in text else set()
    if _SECRET_NAME.search(_HARMLESS_NAME.sub("", os.fsdecode(name))) and not _is_path(text):
        secrets.add(text)
    return frozenset(secrets)


def _is_path(value: str) -> bool:
    """Return whether a value is an absolute path that exists, and so the place of a secret rather than a secret."""
    try:
        return Path(value).is_absolute() and Path(value).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


@lru_cache(maxsize=10_000)
def _forms_of(secret: str) -> frozenset[str]:
    """Return a secret and its long lines as they are, and as URLs, SQL, JSON, Python, base64 and hexadecimal digits.

    Texts of fewer than MIN_CHARACTERS characters are left out.
    """
    lines = [line for line in map(str.strip, secret.splitlines()) if len(line) >= MIN_LINE_CHARACTERS]
    forms: set[str] = set()
    for value in {secret, secret.strip(), *lines}:
        if len(value) < MIN_CHARACTERS:
            continue
        data = value.encode("utf-8", "surrogatepass")
        forms |= {value, quote(data), quote(data, safe=""), quote_plus(data)}
        forms |= {value.replace("'", "''"), value.replace('"', '""')}  # in SQL
        forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
        base64 = {b64encode(data).decode(), urlsafe_b64encode(data).decode()}
        forms |= {*base64, *(form.rstrip("=") for form in base64)}
        forms.add(data.hex())  # as reports show bytes
    return frozenset(forms)


_known_secrets = _KnownSecrets()


def may_hold_credentials(text: str) -> bool:
    """Return whether the text looks like a URL or a connection string, which may contain credentials."""
    return _HINT_OF_CREDENTIALS.search(text) is not None


def mask_credentials(text: str) -> str:
    """Return a URL without user info, query and fragment; `…` for other possible credentials; else the text itself.

    >>> mask_credentials("postgresql://me:hunter2@host/db?password=hunter2")
    'postgresql://host/db'
    >>> mask_credentials("postgresql://me:12/hunter@host/db")
    'postgresql://host/db'
    """
    scheme = _SCHEME.search(text)
    if scheme is None:
        return "…" if may_hold_credentials(text) else text
    address = text[scheme.end() :]
    if not scheme.group().lower().startswith("http") or not _CLEAN_AUTHORITY.match(address):
        # Passwords may hold `/`, `?` or `#` since some drivers accept that, so the last @ counts.
        address = address.rpartition("@")[2]
    clean = _CLEAN_AUTHORITY.match(address)
    if clean is None:
        host = _HOST.match(address)
        return f"{scheme.group()}{host.group() if host else ''}/…"
    path = re.split("[?#]", address[clean.end() :], maxsplit=1)[0]
    return scheme.group() + clean.group() + ("/…" if may_hold_credentials(path) else path)
