"""What services behind HTTP do wrong: behaviours for the `FaultServer` of servers.py, and service_faults.yaml."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import socket
import struct
from functools import cache
from typing import Any

import pytest
from servers import GOOD, JSON, Behaviour, Exchange, Request, table
from yaml_tables import read_table

CAP = 256 * 2**20  # bytes that an answer may have


def unless_probed(behaviour: Behaviour) -> Behaviour:
    """The same, but the trivial query is answered: the endpoint lives, the query is the trouble."""
    return lambda exchange: (
        exchange.reply('{"head": {}, "boolean": true, "results": {"bindings": []}}')
        if exchange.request.is_probe
        else behaviour(exchange)
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
    whole = gzip.compress(content)
    for encoding in ("gzip", "x-gzip"):
        yield encoding, "without its checksum", whole[:-8], "it breaks off"
        yield encoding, "with half of its checksum", whole[:-4], "it breaks off"
        yield encoding, "with another checksum", whole[:-8] + b"\0" * 8, "Error -3"
    yield "gzip", "and more", whole + b"xx", "Error -3"
    yield "gzip", "and the start of more", whole + b"\x1f", "it breaks off"


def compressed(content: bytes):
    """Return encodings, and bodies that are compressed as servers do, as parameters of a test."""
    return [
        pytest.param("gzip", gzip.compress(content), id="gzip"),
        pytest.param("GZIP ", gzip.compress(content[:9]) + gzip.compress(content[9:]), id="two parts"),
        pytest.param("gzip", gzip.compress(content) + gzip.compress(b"") * 2_000, id="many parts"),
        pytest.param("identity", content, id="identity"),
    ]


@cache
def gzip_bomb() -> bytes:
    """Blanks for twice the cap, in some megabytes."""
    return gzip.compress(b" " * (2 * CAP), 1)


def sends_a_gzip_bomb(exchange: Exchange) -> None:
    exchange.reply(gzip_bomb(), Content_Encoding="gzip")


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


def sends_too_many_rows(exchange: Exchange) -> None:
    exchange.reply(table(*map(str, range(101))))


FAULTS = read_table("service_faults.yaml")
PARTS = {
    "good": GOOD.decode(),
    "half": GOOD[:-9].decode(),
    "chunks": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
}
SLOW = {row["behaviour"]: globals()[row["behaviour"]] for row in FAULTS["late"]}


def behaviour_of(row: dict[str, Any], *, probed: bool = False) -> Behaviour:
    """What a row of service_faults.yaml describes."""

    def written(match: re.Match[str]) -> str:
        count, _, text = match[1].rpartition("*")
        return text * int(count) if count else PARTS[text]

    headers = {name.replace("-", "_"): value for name, value in row.get("headers", {}).items()}
    body = re.sub("«(.+?)»", written, row.get("raw", row.get("body", ""))).encode()
    if "behaviour" in row:
        behaviour: Behaviour = globals()[row["behaviour"]]
    elif "raw" in row:
        behaviour = sends(body)
    else:
        data = bytes.fromhex(row["bytes"]) if "bytes" in row else body
        behaviour = says(data, row.get("status", "200 OK"), **headers)
    if row.get("once"):
        behaviour = then_good(behaviour)
    return unless_probed(behaviour) if probed or row.get("probed") else behaviour
