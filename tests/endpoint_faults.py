"""What endpoints do wrong: behaviours for the `FaultServer` of servers.py, and what is to come of each."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import socket
import struct
import zlib

import pytest
from servers import GOOD, JSON, Behaviour, Exchange, Request, table

CAP = 256 * 2**20  # bytes that an answer may have


def unless_probed(behaviour: Behaviour) -> Behaviour:
    """The same, but the trivial query is answered: the endpoint lives, the query is the trouble."""
    return lambda exchange: (
        exchange.reply('{"head": {}, "boolean": true}') if exchange.request.is_probe else behaviour(exchange)
    )


def then_good(behaviour: Behaviour, times: int = 1) -> Behaviour:
    """Bad at first, then good."""
    return lambda exchange: behaviour(exchange) if exchange.number <= times else exchange.reply()


def good(exchange: Exchange) -> None:
    exchange.reply()


def says(body: bytes | str = "", status: str = "200 OK", **headers: object) -> Behaviour:
    """A whole answer of any sort."""
    return lambda exchange: exchange.reply(body, status, **headers)


def sends(data: bytes) -> Behaviour:
    """Bytes that need not be HTTP, and then the end."""

    def behave(exchange: Exchange) -> None:
        exchange.send(data)
        raise ConnectionAbortedError

    return behave


def hangs(exchange: Exchange) -> None:
    exchange.closing.wait()


def hangs_up(exchange: Exchange) -> None:
    raise ConnectionAbortedError


def resets(exchange: Exchange) -> None:
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise ConnectionAbortedError


def answers_and_hangs_up(exchange: Exchange) -> None:
    exchange.reply()
    raise ConnectionAbortedError


def drip(exchange: Exchange, data: bytes) -> None:
    """Send one byte after the other."""
    for place in range(len(data)):
        if exchange.closing.wait(0.2):
            return
        exchange.send(data[place : place + 1])


def repeat(exchange: Exchange, data: bytes, seconds: float = 0.0) -> None:
    """Send the same again and again, while the server stands."""
    while not exchange.closing.wait(seconds):
        exchange.send(data)


def drips_its_head(exchange: Exchange) -> None:
    drip(exchange, b"HTTP/1.1 200 OK\r\nServer: slow\r\n")


def drips_its_body(exchange: Exchange) -> None:
    exchange.head(Content_Type=JSON, Content_Length=len(GOOD))
    drip(exchange, GOOD)


def asks_to_continue_without_end(exchange: Exchange) -> None:
    repeat(exchange, b"HTTP/1.1 100 Continue\r\n\r\n", seconds=0.05)


def sends_headers_without_end(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    repeat(exchange, b"X-Header: again\r\n" * 1000)


def sends_a_header_without_end(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nX-Header: ")
    repeat(exchange, b"again" * 1000)


def sends_a_body_without_end(exchange: Exchange) -> None:
    exchange.head(Content_Type=JSON)
    repeat(exchange, b" " * 2**20)


def broken_compression(content: bytes):
    """Yield encodings, names of faults, bodies that have them although all of the text can be read, and messages."""
    for encoding, whole, trailer in (
        ("gzip", gzip.compress(content), 8),
        ("x-gzip", gzip.compress(content), 8),
        ("deflate", zlib.compress(content), 4),
    ):
        yield encoding, "without its checksum", whole[:-trailer], "it breaks off"
        yield encoding, "with half of its checksum", whole[: -trailer // 2], "it breaks off"
        yield encoding, "with another checksum", whole[:-trailer] + b"\0" * trailer, "Error -3"
    yield "deflate", "and more", zlib.compress(content) + b"x", "there are data behind its end"
    yield "gzip", "and more", gzip.compress(content) + b"xx", "Error -3"
    yield "gzip", "and the start of more", gzip.compress(content) + b"\x1f", "it breaks off"


def compressed(content: bytes):
    """Return encodings, and bodies that are compressed as servers do, as parameters of a test."""
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return [
        pytest.param("gzip", gzip.compress(content), id="gzip"),
        pytest.param("GZIP ", gzip.compress(content[:9]) + gzip.compress(content[9:]), id="two parts"),
        pytest.param("gzip", gzip.compress(content) + gzip.compress(b"") * 2_000, id="many parts"),
        pytest.param("deflate", zlib.compress(content), id="zlib"),
        pytest.param("deflate", raw.compress(content) + raw.flush(), id="raw deflate"),
        pytest.param("identity", content, id="identity"),
    ]


def sends_a_gzip_bomb(exchange: Exchange) -> None:
    """Blanks for twice the cap, in some hundred kilobytes."""
    exchange.reply(gzip.compress(b" " * (2 * CAP), 1), Content_Encoding="gzip")


def redirects(target: str, status: str = "302 Found") -> Behaviour:
    return lambda exchange: exchange.reply("", status, Location=target)


def redirects_to_itself(exchange: Exchange) -> None:
    exchange.reply("", "302 Found", Location=f"/query?n={exchange.number}&query=ASK+%7B+%7D")


def wants(scheme: str, secret: str) -> Behaviour:
    """Good for those who know the secret: `user:password` or a token."""

    def behave(exchange: Exchange) -> None:
        if is_authorised(exchange.request, scheme, secret):
            exchange.reply()
        else:
            challenge = f'{scheme.title()} realm="r", nonce="n1", qop="auth", algorithm=MD5'
            exchange.reply("who are you?", "401 Unauthorized", WWW_Authenticate=challenge, Content_Type="text/plain")

    return behave


def is_authorised(request: Request, scheme: str, secret: str) -> bool:
    sent_scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if sent_scheme.lower() != scheme:
        return False
    if scheme == "basic":
        return base64.b64decode(given).decode() == secret
    return given == secret if scheme == "bearer" else is_digest(given, request.method, secret)


def is_digest(given: str, method: str, secret: str) -> bool:
    """Whether a response to the challenge is right (RFC 7616)."""
    user, _, password = secret.partition(":")
    values = {name: quoted or bare for name, quoted, bare in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', given)}
    secret_part, request_part = _md5(f"{user}:r:{password}"), _md5(f"{method}:{values.get('uri')}")
    middle = f"n1:{values.get('nc')}:{values.get('cnonce')}:auth"
    return values.get("username") == user and values.get("response") == _md5(f"{secret_part}:{middle}:{request_part}")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


XML = """<?xml version="1.0"?><!DOCTYPE sparql [<!ENTITY x "ha">]><sparql xmlns="http://www.w3.org/2005/sparql-results#">
<head><variable name="x"/></head><results><result><binding name="x"><literal>&x;</literal></binding></result></results>
</sparql>"""
HALF = GOOD[:-9]
CHUNKS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
# No answer, whatever the query: the endpoint is to blame.
SOURCE_ERRORS = {
    "hangs up": (hangs_up, "no connection|closed|dropped"),
    "resets the connection": (resets, "reset|closed|dropped"),
    "not HTTP": (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), "SSH|HTTP|connection"),
    "headers without end": (sends_headers_without_end, "header"),
    "a header without end": (sends_a_header_without_end, "header|line"),
    "truncated body": (
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + HALF),
        f"breaks off after {len(HALF)} of 500 bytes; the server may",
    ),
    "truncated chunks": (sends(CHUNKS + b"5a\r\n" + HALF), f"breaks off after {len(HALF)} bytes; the server may"),
    "truncated second chunk": (
        sends(CHUNKS + b"9\r\n" + HALF[:9] + b"\r\n5a\r\n" + HALF[9:]),
        f"breaks off after {len(HALF)} bytes; the server may",
    ),
    "two lengths": (
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 500\r\n\r\n" + HALF),
        r"the answer has invalid headers \(.*Content-Length.*5, 500.*\): correct the configuration",
    ),
    "chunks that end early": (sends(CHUNKS + b"9\r\n" + HALF[:9] + b"\r\n0\r\n\r\n"), "not valid"),
    "chunks of no size": (sends(CHUNKS + b"no\r\n"), "chunk|breaks off"),
    "half a document": (says(HALF), "not valid SPARQL JSON"),
    "two documents": (says(GOOD * 2), "not valid SPARQL JSON"),
    "HTML": (says("<html>Welcome!</html>", Content_Type="text/html"), "text/html.*Welcome"),
    "nothing": (says(""), "not valid SPARQL JSON.* 0 bytes"),
    "nothing, without a content type": (
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        r"not valid SPARQL JSON.* \(no content type, 0 bytes\)",
    ),
    "no content": (says("", "204 No Content"), "204"),
    "a part": (says(GOOD, "206 Partial Content"), "206"),
    "XML": (
        says(XML, Content_Type="application/sparql-results+xml"),
        "the answer is XML, .*JSON was asked for: set what",
    ),
    "XML that is called JSON": (says('<?xml version="1.0"?><sparql/>'), "the answer is XML, not SPARQL JSON results"),
    "CSV": (
        says("x\r\none\r\n", Content_Type="text/csv; charset=utf-8"),
        "the answer is CSV, not SPARQL JSON results",
    ),
    "deep nesting": (says(GOOD[:-2] + b"[" * 200_000), "not valid SPARQL JSON"),
    "bytes that are not text": (says(b'{"head": {"vars": ["\xff\xfe"]}'), "not valid SPARQL JSON"),
    "gzip that is none": (says(GOOD, Content_Encoding="gzip"), "cannot be decompressed .gzip: Error -3"),
    "an encoding that was not asked for": (
        says(GOOD, Content_Encoding="br"),
        "is encoded as 'br', which was not asked",
    ),
    **{
        f"{encoding} {fault}": (says(body, Content_Encoding=encoding), f"cannot be decompressed .{encoding}: {reason}")
        for encoding, fault, body, reason in broken_compression(GOOD)
    },
    "bad request to everything": (
        says("no such repository", "400 Bad Request"),
        "nor does it answer ASK {}: .*no such",
    ),
    "not found": (says("no such store", "404 Not Found"), "404 Not Found.*no such store"),
    "unauthorised": (says("", "401 Unauthorized"), "401 Unauthorized"),
    "forbidden": (says("not you", "403 Forbidden"), "403 Forbidden.*not you"),
    "method not allowed": (says("", "405 Method Not Allowed"), "405"),
    "too many requests": (says("slow down", "429 Too Many Requests"), "429.*slow down"),
    "come again in an hour": (says("", "429 Too Many Requests", Retry_After=3600), "429"),
    "error": (says("no memory", "500 Internal Server Error"), "500.*no memory"),
    "unavailable": (says("", "503 Service Unavailable"), "503"),
    "too many requests with this query": (
        unless_probed(says("slow down", "429 Too Many Requests")),
        "429 Too Many Requests: slow down: the service is busy: wait, then run again",
    ),
    "come again in an hour with this query": (unless_probed(says("", "429 Too Many", Retry_After=3600)), "429.* busy"),
    "unavailable for this query": (unless_probed(says("", "503 Service Unavailable")), "503.* busy"),
    "an agent is wanted": (
        unless_probed(says("Please set a user-agent", "403 Forbidden")),
        r"set a user-agent: write `headers: \{User-Agent: 'NAME \(address\)'\}`$",
    ),
    "gateway time-out": (says("", "504 Gateway Timeout"), "504"),
    "redirect to itself": (redirects_to_itself, "redirect"),
    "redirect to a file": (redirects("file:///etc/passwd"), "file|redirect"),
    "redirect to nowhere": (redirects("http://"), "redirect|URL|host"),
    "redirect without a target": (says("", "302 Found"), "302"),
}
# JSON, but not of this shape: never an answer of no rows.
SHAPES = {
    "list": "[]",
    "text": '"boolean"',
    "null": "null",
    "error": '{"error": "time is up"}',
    "no head": '{"results": {"bindings": []}}',
    "no results": '{"head": {"vars": ["x"]}}',
    "columns as text": '{"head": {"vars": "x"}, "results": {"bindings": []}}',
    "rows as an object": '{"head": {"vars": ["x"]}, "results": {"bindings": {}}}',
    "rows as text": '{"head": {"vars": ["x"]}, "results": {"bindings": ""}}',
    "rows as lists": '{"head": {"vars": ["x"]}, "results": {"bindings": [["a"]]}}',
    "plain values": '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": "a"}]}}',
    "no value": '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri"}}]}}',
    "unknown type": '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "y", "value": "a"}}]}}',
    "a number for a value": '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": 1}}]}}',
    "a boolean for a table": '{"head": {}, "boolean": true}',
    "a boolean as text": '{"head": {}, "boolean": "false"}',
}
# The endpoint answers the trivial query: this query is to blame.
FAILURES = {
    "bad request": (
        unless_probed(says("Parse error at line 1", "400 Bad Request")),
        "invalid",
        "Parse error at line 1",
    ),
    "bad request in JSON": (
        unless_probed(says('{"message": "no such prefix"}', "400 Bad Request")),
        "invalid",
        "no such prefix",
    ),
    "escape codes": (
        unless_probed(says("\x1b[2J\r\n##[error]x\u202e", "400 Bad Request")),
        "invalid",
        r"\\x1b\[2J",
    ),
    "error": (unless_probed(says("no memory", "500 Internal Server Error")), "rejected", "500.*no memory"),
    "error that repeats a query about agents": (
        unless_probed(says("SELECT * { ?visit :userAgent ?name }", "500 Internal Server Error")),
        "rejected",
        "500.*:userAgent",
    ),
    "error once": (
        unless_probed(then_good(says("no memory", "500 Internal Server Error"))),
        "rejected",
        "500.*no memory",
    ),
    "gateway time-out": (unless_probed(says("", "504 Gateway Timeout")), "rejected", "504"),
    "request timeout": (unless_probed(says("", "408 Request Timeout")), "timeout", "408 Request Timeout"),
    "body without end": (unless_probed(sends_a_body_without_end), "too_large", "268,435,456 bytes"),
    "gzip bomb": (unless_probed(sends_a_gzip_bomb), "too_large", "268,435,456 bytes"),
    "too many rows": (says(table(*map(str, range(101)))), "too_large", "more than 100 rows"),
}
SLOW = {
    "hangs": hangs,
    "drips its head": drips_its_head,
    "drips its body": drips_its_body,
    "asks to continue without end": asks_to_continue_without_end,
}
RETRIED = {
    "unavailable": says("", "503 Service Unavailable"),
    "bad gateway": says("", "502 Bad Gateway"),
    "too many requests": says("", "429 Too Many Requests", Retry_After=1),
    "reset": resets,
    "hung up": hangs_up,
}
