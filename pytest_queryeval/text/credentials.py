"""Texts of settings as messages and reports may show them: without what may be secret."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CLEAN_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]*\]|[^/?#@:\[\]]*)(?::[0-9]*)?(?=[/?#]|$)")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]*\]|[^/?#@:\[\]]*)")
_SECRET = re.compile(
    r"://|:.*@|(?:^|[^a-z])jdbc:|(?:password|passwd|pwd|passphrase|token|secret|api_?key)\s*[=:]",
    re.IGNORECASE | re.DOTALL,
)


def may_hold_secrets(text: str) -> bool:
    """Whether the text looks like a URL or a connection string, which may hold credentials."""
    return _SECRET.search(text) is not None


def mask_credentials(text: str) -> str:
    """Return the text as it is if it cannot hold credentials; a URL without user info, query and fragment; else `…`.

    >>> mask_credentials("postgresql://me:hunter2@host/db?password=hunter2")
    'postgresql://host/db'
    >>> mask_credentials("postgresql://me:12/hunter@host/db")
    'postgresql://host/db'
    """
    scheme = _SCHEME.search(text)
    if scheme is None:
        return "…" if may_hold_secrets(text) else text
    address = text[scheme.end() :]
    if not scheme.group().lower().startswith("http") or not _CLEAN_AUTHORITY.match(address):
        # Passwords may hold `/`, `?` or `#` where the driver forgives it, so the last @ counts.
        address = address.rpartition("@")[2]
    clean = _CLEAN_AUTHORITY.match(address)
    if clean is None:
        host = _HOST.match(address)
        return f"{scheme.group()}{host.group() if host else ''}/…"
    path = re.split("[?#]", address[clean.end() :], maxsplit=1)[0]
    return scheme.group() + clean.group() + ("/…" if may_hold_secrets(path) else path)
