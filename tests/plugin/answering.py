"""A service that predicts, and counts how it is asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class Answering:
    """Answers POSTed JSON on a port of loopback by a function, from a thread of its own; a context manager."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any], *, seconds: float = 0.0) -> None:
        self.asked: list[str] = []
        self.most = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._answer, self._seconds = answer, seconds
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/predict"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def respond(self, asked: dict[str, Any]) -> bytes:
        with self._lock:
            self.asked.append(asked["id"])
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        try:
            time.sleep(self._seconds)
            return json.dumps({"predicted": self._answer(asked)}).encode()
        finally:
            with self._lock:
                self._under_way -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Answering

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = self.service.respond(request)
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the client is gone
            self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name of the standard library
        pass
