"""What answers of common SPARQL services mean: their own time limits, answers that they cut, and when they are busy.

Imported by the child process of endpoints. The texts are those of the services' own sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal, NamedTuple, TypeAlias

from pytest_queryeval.sandbox.http_messages import message

Meaning: TypeAlias = Literal["timeout", "too_large", "invalid", "rejected", "busy"]
EDGE_BYTES = 4_000  # of a body, at its beginning and at its end, that are searched
SHOWN_BYTES = 300
_ANY = range(600)


class Sign(NamedTuple):
    """An answer with one of these statuses and a text that means something."""

    statuses: range | tuple[int, ...]
    text: re.Pattern[bytes]
    meaning: Meaning


class Profile(NamedTuple):
    """A service, and what its answers mean beyond the protocol."""

    headers: re.Pattern[str]
    """Found in the lines `name: value` of the headers of its answers, in lower case."""
    signs: tuple[Sign, ...]


def _sign(statuses: range | tuple[int, ...], text: str, meaning: Meaning) -> Sign:
    return Sign(statuses, re.compile(text.encode(), re.IGNORECASE | re.DOTALL), meaning)


_QLEVER_TRAILER = r"\n ?!!!!>># An error has occurred while exporting"
_QLEVER_MEMORY = r"(?:tried to allocate|memory limit)"
# What is appended to an answer that has begun cannot be part of it: a text of JSON or of N-Triples has no line feed.
PROFILES: Mapping[str, Profile] = {
    "qlever": Profile(
        re.compile(r"^server: qlever", re.MULTILINE),
        (
            _sign((429,), "", "timeout"),
            _sign(_ANY, rf"{_QLEVER_TRAILER}.*timed out", "timeout"),
            _sign(_ANY, rf"{_QLEVER_TRAILER}.*{_QLEVER_MEMORY}", "too_large"),
            _sign(_ANY, _QLEVER_TRAILER, "rejected"),
            _sign((500,), _QLEVER_MEMORY, "too_large"),
        ),
    ),
    "virtuoso": Profile(
        re.compile(r"^server: virtuoso|^x-sparql-maxrows:|^x-sql-state:", re.MULTILINE),
        (
            _sign(_ANY, r"\AVirtuoso S1T00 |\AVirtuoso \w+ Error .*?estimated execution time", "timeout"),
            _sign(_ANY, r"\AVirtuoso 40001 ", "busy"),
            _sign(_ANY, r"\AVirtuoso \w+ Error .*?(?:memory pool size|out of memory)", "too_large"),
            _sign((500,), r"\AVirtuoso 37000 Error SP030", "invalid"),
        ),
    ),
    "fuseki": Profile(
        re.compile(r"^server: apache jena fuseki|^fuseki-request-id:", re.MULTILINE),
        (
            _sign((400, 408, 500, 503), r"query (?:timed out|cancelled)", "timeout"),
            _sign(_ANY, r"\n##  Query cancelled due to timeout during execution ", "timeout"),
            _sign((500,), r"OutOfMemoryError|Java heap space", "too_large"),
        ),
    ),
    "oxigraph": Profile(
        re.compile(r"^server: oxigraph", re.MULTILINE),
        (_sign(_ANY, r"The SPARQL operation has been cancelled\s*\Z", "timeout"),),
    ),
}
# QLever sends no header of its own.
_QLEVER_ERROR = re.compile(
    rb'\A\s*\{(?=.*"exception"\s*:)(?=.*"status"\s*:\s*"ERROR")|' + _QLEVER_TRAILER.encode(), re.DOTALL
)


def meaning_of(name: str | None, status: int, headers: Mapping[str, str], body: bytes) -> tuple[Meaning, str] | None:
    """Return what an answer means by a profile, or by that of the service which it shows to be, and its text.

    None if the status says all.
    """
    edges = body if len(body) <= 2 * EDGE_BYTES else body[:EDGE_BYTES] + body[-EDGE_BYTES:]
    name = name or recognize_profile(headers, edges)
    for sign in PROFILES[name].signs if name else ():
        if status in sign.statuses and (match := sign.text.search(edges)):
            excerpt = edges[match.start() :] if status == HTTPStatus.OK else edges
            return sign.meaning, f"HTTP {status}{message(headers.get('Content-Type', ''), excerpt, SHOWN_BYTES)}"
    return None


def recognize_profile(headers: Mapping[str, str], edges: bytes) -> str | None:
    """Return the name of the profile of the service that sent an answer; None for other services."""
    lines = "\n".join(f"{name}: {value}" for name, value in headers.items()).lower()
    for name, profile in PROFILES.items():
        if profile.headers.search(lines):
            return name
    return "qlever" if _QLEVER_ERROR.search(edges) else None
