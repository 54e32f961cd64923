"""What services say besides answers: messages on bodies, and Retry-After. Also imported by child processes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from pytest_queryeval.text.truncation import one_line, truncate

MAX_PAUSE = 3600.0  # seconds
MAX_SCHEME = 20  # characters of a scheme of authentication
AUTH_SCHEMES = ("basic", "digest", "bearer")
NOTHING_SENT = "no `auth` is set"
ERROR_BYTES = 4_000
SHOWN_BYTES = 200
_TAGS = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def message(content_type: str, body: bytes, most: int = ERROR_BYTES) -> str:
    """Return `: ` and the first `most` characters of a body, in one line without markup; empty for an empty body.

    Servers repeat what they were sent, which may hold secrets.
    """
    text = truncate(body[: 2 * ERROR_BYTES].decode("utf-8", "replace"), most)
    if "html" in content_type:
        text = _TAGS.sub(" ", text)
    text = " ".join(text.split())
    return f": {text}" if text else ""


_XML = re.compile(rb"\s*(?:\xef\xbb\xbf)?<(?:\?xml|sparql)\b")
# By a part of the content type.
_FORMATS = {"xml": "XML", "csv": "CSV", "tab-separated": "TSV", "turtle": "Turtle", "n-triples": "N-Triples"}


def unreadable(kind: str, body: bytes, error: ValueError, *, expected: str, service: str = "the service") -> str:
    """Return the problem of a body of the content type `kind`, for which a reader of `expected` raised `error`."""
    description = f"{kind or 'no content type'}, {len(body):,} bytes{message(kind, body, SHOWN_BYTES)}"
    if "html" in kind:
        return f"a web page came back: is the URL that of {service}? ({description})"
    name = next((name for part, name in _FORMATS.items() if part in kind), "XML" if _XML.match(body) else "")
    if name:
        remedy = "set what makes the server send JSON, such as `format=json` in the URL or `Accept` under `headers`"
        return f"the answer is {name}, not {expected}, although JSON was asked for: {remedy} ({description})"
    return f"the answer is not valid {expected}: {error} ({description})"


def credentials_remedy(sent: str, challenge: str) -> str:
    """Return what was sent, what `WWW-Authenticate` asks for, and the remedy, to be added to an answer 401, 403 or 407.

    `sent` is NOTHING_SENT, "`auth: SCHEME` was sent", or another sentence.

    >>> credentials_remedy("`auth: basic` was sent", "Basic realm=private")
    ' (`auth: basic` was sent, the server asks for basic): the server does not accept it: correct it, or give it access'
    """
    scheme = one_line(challenge.split(" ")[0].lower(), MAX_SCHEME)
    challenge_note = f", the server asks for {scheme}" if scheme else ""
    remedy = "the server does not accept it: correct it, or give it access"
    if sent == NOTHING_SENT:
        remedy = f"write `auth: {{{scheme if scheme in AUTH_SCHEMES else 'bearer'}: …}}`"
    elif scheme in AUTH_SCHEMES and sent.startswith("`auth: ") and f" {scheme}`" not in sent:
        remedy = f"write `auth: {{{scheme}: …}}`"
    return f" ({sent}{challenge_note}): {remedy}"


def retry_after(headers: Mapping[str, str]) -> float:
    """Return Retry-After in seconds, at most an hour; 0.0 without one (RFC 9110, 10.2.3: a number or a date)."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_PAUSE)
    then = _moment(text)
    if then is None:
        return 0.0
    # By the server's clock, if it sends its time: ours may differ.
    now = _moment(headers.get("Date", ""))
    return min(max(then - (time.time() if now is None else now), 0.0), MAX_PAUSE)


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None
