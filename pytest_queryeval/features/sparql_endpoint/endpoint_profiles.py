"""What the answers of common SPARQL services mean: a time limit, an answer that was cut, a busy service.

Imported by the child process of endpoints. The texts are from the sources of the services.
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
    """A sign of an error: an answer with one of these statuses and a text that the pattern finds."""

    statuses: range | tuple[int, ...]
    text: re.Pattern[bytes]
    meaning: Meaning


class Profile(NamedTuple):
    """A SPARQL service, how to recognize its answers, and what they mean beyond the protocol."""

    headers: str
    """A pattern of a lower-case line `name: value` that identifies the service; empty if it has no such header."""
    signs: tuple[Sign, ...]
    error: str = ""
    """A pattern by which the service's error documents are recognized, if it has no header of its own."""


def _sign(statuses: range | tuple[int, ...], text: str, meaning: Meaning) -> Sign:
    return Sign(statuses, re.compile(text.encode(), re.IGNORECASE | re.DOTALL | re.MULTILINE), meaning)


_QLEVER_TRAILER = r"\n ?!!!!>># An error has occurred while exporting"
_QLEVER_MEMORY = r"(?:tried to allocate|memory limit)"
# What is appended to an answer that has begun cannot be part of it: a text of JSON or of N-Triples has no line feed.
# Blazegraph states the query, and then an exception on a line of its own, also within an answer that has begun.
_BLAZEGRAPH_ERROR = r"SPARQL-QUERY: queryStr="
_EXCEPTION = r"^(?:Caused by: )?(?:[\w.$]+: )*[\w.$]*"
_BLAZEGRAPH = (
    _sign((403,), r"You have been banned until", "busy"),
    _sign(_ANY, rf"{_EXCEPTION}TimeoutException", "timeout"),
    _sign(_ANY, rf"{_EXCEPTION}(?:OutOfMemory|MemoryManager\w*Exception)", "too_large"),
    _sign((500,), rf"{_EXCEPTION}MalformedQueryException", "invalid"),
    _sign((200,), rf"{_BLAZEGRAPH_ERROR}.*{_EXCEPTION}(?:Exception|Error)", "rejected"),
)
PROFILES: Mapping[str, Profile] = {
    "qlever": Profile(
        r"^server: qlever",
        (
            _sign((429,), "", "timeout"),
            _sign(_ANY, rf"{_QLEVER_TRAILER}.*timed out", "timeout"),
            _sign(_ANY, rf"{_QLEVER_TRAILER}.*{_QLEVER_MEMORY}", "too_large"),
            _sign(_ANY, _QLEVER_TRAILER, "rejected"),
            _sign((500,), _QLEVER_MEMORY, "too_large"),
        ),
        error=rf'\A\s*\{{(?=.*"exception"\s*:)(?=.*"status"\s*:\s*"ERROR")|{_QLEVER_TRAILER}',
    ),
    "virtuoso": Profile(
        r"^(?:server: virtuoso|x-sparql-maxrows:|x-sql-state:)",
        (
            _sign(_ANY, r"\AVirtuoso S1T00 |\AVirtuoso \w+ Error .*?estimated execution time", "timeout"),
            _sign(_ANY, r"\AVirtuoso 40001 ", "busy"),
            _sign(_ANY, r"\AVirtuoso \w+ Error .*?(?:memory pool size|out of memory)", "too_large"),
            _sign((500,), r"\AVirtuoso 37000 Error SP030", "invalid"),
        ),
    ),
    "fuseki": Profile(
        r"^(?:server: apache jena fuseki|fuseki-request-id:)",
        (
            _sign((400, 408, 500, 503), r"query (?:timed out|cancelled)", "timeout"),
            _sign(_ANY, r"\n##  Query cancelled due to timeout during execution ", "timeout"),
            _sign((500,), r"OutOfMemoryError|Java heap space", "too_large"),
        ),
    ),
    "oxigraph": Profile(
        r"^server: oxigraph",
        (_sign(_ANY, r"The SPARQL operation has been cancelled\s*\Z", "timeout"),),
    ),
    "wikidata": Profile(r"^(?:x-served-by: wdqs|x-first-solution-millis:)", _BLAZEGRAPH),
    "blazegraph": Profile("", _BLAZEGRAPH, error=rf"\A{_BLAZEGRAPH_ERROR}"),
}


def meaning_of(name: str | None, status: int, headers: Mapping[str, str], body: bytes) -> tuple[Meaning, str] | None:
    """Return the meaning of an answer and its text for messages; None if the status says all.

    `name` is the profile of the service; None if it is to be recognized. Only the beginning and the end of a long body
    are searched.
    """
    edges = body if len(body) <= 2 * EDGE_BYTES else body[:EDGE_BYTES] + body[-EDGE_BYTES:]
    name = name or recognize_profile(headers, edges)
    for sign in PROFILES[name].signs if name else ():
        if status in sign.statuses and (match := sign.text.search(edges)):
            excerpt = edges[match.start() :] if status == HTTPStatus.OK else edges
            return sign.meaning, f"HTTP {status}{message(headers.get('Content-Type', ''), excerpt, SHOWN_BYTES)}"
    return None


def recognize_profile(headers: Mapping[str, str], edges: bytes) -> str | None:
    """Return the name of the profile of the service that sent an answer; None if no profile matches.

    `edges` are the beginning and the end of the body. Headers are compared first.
    """
    lines = "\n".join(f"{name}: {value}" for name, value in headers.items()).lower()
    for name, profile in PROFILES.items():
        if profile.headers and re.search(profile.headers, lines, re.MULTILINE):
            return name
    for name, profile in PROFILES.items():
        if profile.error and re.search(profile.error.encode(), edges, re.DOTALL):
            return name
    return None
