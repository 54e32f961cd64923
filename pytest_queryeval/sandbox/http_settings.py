"""Validators of the settings of a connection to an HTTP service, and of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pytest_queryeval.core.shapes import (
    FLAG,
    STRING,
    SettingValidator,
    Shape,
    choice_setting,
    either,
    is_text,
    pattern_shape,
)
from pytest_queryeval.sandbox.http_messages import AUTH_SCHEMES, is_parameters
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import mask_credentials

MAX_SHOWN = 80  # characters of a value in a message
METHODS = ("GET", "POST")
# A host with a port, or a name with dots before a path without one: nothing that the name of a file looks like.
_HOST = re.compile(r"[\w.-]+:\d+(?:/|$)|localhost/|[\w-]+(?:\.[\w-]+)+/[^.?#]*(?:[?#]|$)", re.ASCII)
_LOCAL = re.compile(r"[\w.-]+:\d|localhost/|[\d.]+/", re.ASCII)


def is_url(value: Any) -> bool:
    """Return whether a value is the text of an absolute http or https URL."""
    try:
        parts = urlsplit(value if is_text(value) else "")
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of an invalid address in brackets, or an invalid port
        return False


def suggested_url(value: Any) -> str:
    """Return `: did you mean 'URL'?` for a host without a scheme; empty for other values.

    A text with `@` gets no suggestion: it may contain a password, and its host may begin anywhere.

    >>> suggested_url("localhost:7878/query")
    ": did you mean 'http://localhost:7878/query'?"
    """
    if not isinstance(value, str) or "@" in value or not _HOST.match(value):
        return ""
    scheme = "http" if _LOCAL.match(value) else "https"
    return f": did you mean '{mask_credentials(f'{scheme}://{value}')}'?"


def _suggested_or_found(value: Any) -> str:
    """Return the end of an error message: the suggested URL, otherwise the value that was found.

    The value is shown without its query string, its fragment and credentials. Return an empty text for a value that is
    not a text or contains `@`, which may be part of a password.
    """
    if not isinstance(value, str) or "@" in value:
        return ""
    path = re.split("[?#]", value, maxsplit=1)[0]
    return suggested_url(value) or f": found '{one_line(mask_credentials(path), MAX_SHOWN)}'"


def is_auth(value: Any) -> bool:
    """Return whether a value is a mapping from one scheme of AUTH_SCHEMES to sendable credentials."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((scheme, secret),) = value.items()
    if scheme not in AUTH_SCHEMES or not is_text(secret) or not secret.isprintable():
        return False
    # Of a digest only the user's name is sent as it is.
    sent = {"basic": "", "digest": secret.partition(":")[0], "bearer": secret}[scheme]
    return _is_sendable(sent) and (scheme == "bearer" or ":" in secret)


def is_headers(value: Any) -> bool:
    """Return whether a value is a mapping from ASCII names to texts or integers that headers can contain."""
    return isinstance(value, dict) and all(
        is_text(name) and isinstance(text, str | int) and name.isascii() and _is_sendable(f"{name}{text}")
        for name, text in value.items()
    )


def _is_sendable(text: str) -> bool:
    """Return whether a header can contain the text: one line of Latin-1 characters."""
    return all(character <= "\xff" and character not in "\r\n" for character in text)


_URL = pattern_shape("^[hH][tT][tT][pP][sS]?://.")
_AUTH: Shape = {
    "type": "object",
    "properties": dict.fromkeys(AUTH_SCHEMES, STRING),
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_HEADERS: Shape = {"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}}
_PARAMETERS: Shape = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
BODY: Shape = {"type": ["string", "object", "array"]}

CONNECTION: Mapping[str, SettingValidator] = {
    "url": SettingValidator(is_url, "an http or https URL", suggestion=_suggested_or_found, shape=_URL),
    "auth": SettingValidator(
        is_auth, "{basic: user:password}, {digest: user:password} or {bearer: token}, in Latin-1", shape=_AUTH
    ),
    "headers": SettingValidator(is_headers, "a mapping from names to one-line texts, in Latin-1", shape=_HEADERS),
    "verify": SettingValidator(
        lambda value: isinstance(value, bool) or is_text(value),
        "true, false or the name of a CA file",
        shape=either(FLAG, STRING),
    ),
}
REQUEST: Mapping[str, SettingValidator] = {
    **CONNECTION,
    "method": choice_setting(METHODS, "GET or POST"),
    "params": SettingValidator(is_parameters, "a mapping from names to texts and numbers", shape=_PARAMETERS),
}
