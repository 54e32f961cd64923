"""Services that answer SQL in JSON over HTTP, as Denodo, ClickHouse and Trino do, on a SQLite file.

They stand on free ports of this machine and end with their `with` block. What they say is in their makers' manuals:
https://clickhouse.com/docs/interfaces/http and https://trino.io/docs/current/develop/client-protocol.html; Denodo's is
what its AI SDK asks the Data Catalog.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

HOST = "127.0.0.1"
USER, PASSWORD = "tester", "correct-horse"
DENODO_PATH = "/denodo-data-catalog/public/api/askaquestion/execute"
TRINO_PAGE = 2  # rows


@dataclass(frozen=True)
class Asked:
    """One request; `headers` have names in lower case, `origin` is where it came to."""

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: str
    origin: str

    @property
    def data(self) -> bytes:
        """The body, which need not be text."""
        return self.body.encode(errors="surrogateescape")


@dataclass(frozen=True)
class Said:
    """One answer."""

    body: Any
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Service: TypeAlias = Callable[[Asked], Said]


@dataclass
class Running:
    """A service that stands at `url`, and all that it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def serving(service: Service, path: str = "/") -> Iterator[Running]:
    """Let the service answer at a free port."""
    running = Running()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            target = urllib.parse.urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = data.decode(errors="surrogateescape")
            headers = {name.lower(): value for name, value in self.headers.items()}
            parameters = dict(urllib.parse.parse_qsl(target.query, keep_blank_values=True))
            request = Asked(self.command, target.path, parameters, headers, body, f"http://{self.headers['Host']}")
            running.asked.append(request)
            self.say(service(request))

        def say(self, said: Said) -> None:
            text = said.body if isinstance(said.body, str | bytes) else json.dumps(said.body)
            data = text if isinstance(text, bytes) else text.encode()
            self.send_response(said.status)
            self.send_header("Content-Type", said.content_type)
            self.send_header("Content-Length", str(len(data)))
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of the standard library

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    running.url = f"http://{HOST}:{server.server_port}{path}"
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


def answered(database: Path, query: str) -> tuple[list[str], list[tuple]]:
    """The columns and rows that SQLite has; raises sqlite3.Error."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        cursor = connection.execute(query)
        return [column[0] for column in cursor.description or ()], cursor.fetchall()


def as_objects(columns: list[str], rows: list[tuple]) -> str:
    """JSON text, written as simple services write it: columns of one name repeat it."""
    named = [
        ", ".join(f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in zip(columns, row, strict=True))
        for row in rows
    ]
    return f"[{', '.join(f'{{{members}}}' for members in named)}]"


def denodo(database: Path) -> Service:
    """The execution service of Denodo's Data Catalog: VQL and a limit in JSON, rows as lists of named values."""
    right = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def answer(asked: Asked) -> Said:
        if asked.headers.get("authorization") != right:
            return Said({"status": 401, "message": "Unauthorized"}, 401)
        if (asked.method, asked.path) != ("POST", DENODO_PATH) or "serverId" not in asked.parameters:
            return Said({"status": 404, "message": "Not Found"}, 404)
        request = json.loads(asked.body)
        try:
            columns, rows = answered(database, request["vql"].removesuffix(" FROM dual()"))
        except sqlite3.Error as error:
            return Said({"status": 500, "message": f"Error executing query: {error}"}, 500)
        rows = rows[: request["limit"]]
        named = [[{"columnName": name, "value": cell} for name, cell in zip(columns, row, strict=True)] for row in rows]
        return Said({"rows": [{"values": values} for values in named]})

    return answer


def clickhouse(database: Path) -> Service:
    """ClickHouse: the query is the body, `default_format` tells between rows as lists and as objects."""

    def answer(asked: Asked) -> Said:
        user = asked.headers.get("x-clickhouse-user"), asked.headers.get("x-clickhouse-key")
        if user != (USER, PASSWORD):
            return Said("Code: 516. DB::Exception: tester: Authentication failed", 403, "text/plain; charset=UTF-8")
        try:
            columns, rows = answered(database, asked.body)
        except sqlite3.Error as error:
            status = 404 if "no such" in str(error) else 400
            return Said(f"Code: 62. DB::Exception: {error}", status, "text/plain; charset=UTF-8")
        compact = asked.parameters["default_format"] == "JSONCompact"
        data = json.dumps(rows) if compact else as_objects(columns, rows)
        meta = json.dumps([{"name": name, "type": "String"} for name in columns])
        return Said(f'{{"meta": {meta}, "data": {data}, "rows": {len(rows)}}}')

    return answer


def trino(database: Path) -> Service:
    """Trino: a query is asked for once, and its answer fetched page by page, first and last without rows."""
    results: dict[str, tuple[list[str], list[tuple]]] = {}

    def begin(asked: Asked) -> Said:
        name = f"20250101_{len(results):06}"
        try:
            results[name] = answered(database, asked.body)
        except sqlite3.Error as error:
            values = {"message": f"line 1:1: {error}", "errorCode": 1, "errorName": "SYNTAX_ERROR"}
            return Said({"id": name, "stats": {"state": "FAILED"}, "error": {**values, "errorType": "USER_ERROR"}})
        following = f"{asked.origin}/v1/statement/queued/{name}/0"
        return Said({"id": name, "nextUri": following, "stats": {"state": "QUEUED"}})

    def page(asked: Asked) -> Said:
        name, number = asked.path.split("/")[-2:]
        columns, rows = results[name]
        part = rows[int(number) * TRINO_PAGE :]
        said = {"id": name, "columns": [{"name": column, "type": "varchar"} for column in columns]}
        if not part:
            return Said({**said, "stats": {"state": "FINISHED"}})
        following = f"{asked.origin}/v1/statement/executing/{name}/{int(number) + 1}"
        return Said({**said, "data": part[:TRINO_PAGE], "nextUri": following, "stats": {"state": "RUNNING"}})

    def answer(asked: Asked) -> Said:
        if asked.method == "GET":
            return page(asked)
        if "x-trino-user" not in asked.headers:
            return Said("User must be set", 401, "text/plain")
        return begin(asked)

    return answer


def offsets(database: Path) -> Service:
    """A service of nobody in particular: a form with `sql`, `top` and `skip`, rows as objects."""

    def answer(asked: Asked) -> Said:
        request = dict(urllib.parse.parse_qsl(asked.body, strict_parsing=True))
        columns, rows = answered(database, request["sql"])
        rows = rows[int(request["skip"]) :][: int(request["top"])]
        return Said(f'{{"result": {{"rows": {as_objects(columns, rows)}}}}}')

    return answer


SETTINGS: dict[str, dict[str, Any]] = {
    "denodo": {
        "params": {"serverId": 1},
        "auth": {"basic": f"{USER}:{PASSWORD}"},
        "body": {"vql": "{query}", "limit": "{limit}"},
        "rows": "$.rows",
        "cells": "$.values[*].value",
        "columns": "$.rows[0].values[*].columnName",
        "probe": "SELECT 1 FROM dual()",
        "dialect": "postgres",
    },
    "clickhouse": {
        "params": {"default_format": "JSONCompact", "wait_end_of_query": 1},
        "headers": {"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD},
        "body": "{query}",
        "rows": "$.data",
        "columns": "$.meta[*].name",
        "error": "$.exception",
        "dialect": "clickhouse",
    },
    "trino": {
        "headers": {"X-Trino-User": USER},
        "body": "{query}",
        "rows": "$.data",
        "columns": "$.columns[*].name",
        "error": "$.error.message",
        "next": "$.nextUri",
        "dialect": "trino",
    },
}
SETTINGS["clickhouse as objects"] = {
    **SETTINGS["clickhouse"],
    "params": {"default_format": "JSON", "wait_end_of_query": 1},
}
SERVICES = {
    "denodo": (denodo, DENODO_PATH),
    "clickhouse": (clickhouse, "/"),
    "clickhouse as objects": (clickhouse, "/"),
    "trino": (trino, "/v1/statement"),
}
