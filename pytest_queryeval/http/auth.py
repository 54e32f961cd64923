"""Credentials of requests. Also imported by child processes: it imports nothing else of the package."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth


def auth_of(settings: dict[str, Any]) -> AuthBase:
    """Return what signs requests: `auth` of the settings, else the URL's user info, else nothing (no .netrc file)."""
    url = urlsplit(settings["url"])
    ((scheme, secret),) = (settings["auth"] or {"basic": ""}).items()
    if not secret and url.username is not None:
        secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
    if not secret:
        return NoAuth()
    if scheme == "bearer":
        return Bearer(secret)
    user, _, password = secret.partition(":")
    kind = HTTPDigestAuth if scheme == "digest" else HTTPBasicAuth
    return kind(user.encode(), password.encode()) if scheme == "basic" else kind(user, password)


class NoAuth(AuthBase):
    """No credentials."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Leave the request as it is."""
        return request


class Bearer(NoAuth):
    """A token (RFC 6750)."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL, which must be the same for credentials to be sent."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def without_user(url: str) -> str:
    """Return the URL without user info and fragment, which are never sent as parts of it."""
    scheme, host, path, parameters, _ = urlsplit(url)
    return urlunsplit((scheme, host.rpartition("@")[2], path, parameters, ""))
