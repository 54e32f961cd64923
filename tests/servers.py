"""Servers for tests: real SPARQL servers of two makes, and one of our own that answers as badly as it is told to.

All stand on free ports of this machine and end with their `with` block, the real ones by their process id.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, Self, TypeAlias

import pytest

HOST = "127.0.0.1"
START_SECONDS = 60.0
JSON = "application/sparql-results+json"
MEDIA_TYPES = {".ttl": "text/turtle", ".nt": "application/n-triples", ".trig": "application/trig"}

# The socket is the parent's: a port that is bound before the server starts cannot be taken by another one.
RDFLIB_ENDPOINT = """
import socket, sys
import uvicorn
from rdflib import Dataset
from rdflib_endpoint import SparqlEndpoint

dataset = Dataset()
for path in sys.argv[2:]:
    dataset.parse(path)
app = SparqlEndpoint(graph=dataset, path="/query")
server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
server.run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def oxigraph(folder: Path, files: Sequence[Path] = (), *, timeout: int | None = None) -> Iterator[str]:
    """A server of the PyPI package `oxigraph` on a store in `folder`, with `files` loaded; gives its query URL.

    With `timeout`, in seconds, the files are loaded first and then served read-only under that limit.
    """
    with _oxigraph("serve", folder) as url:
        for path in files:
            load(url, path.read_bytes(), MEDIA_TYPES[path.suffix])
        if timeout is None:
            yield f"{url}/query"
            return
    with _oxigraph("serve-read-only", folder, "--timeout-s", str(timeout)) as url:
        yield f"{url}/query"


@contextmanager
def rdflib_endpoint(files: Sequence[Path] = ()) -> Iterator[str]:
    """A server of the PyPI package `rdflib-endpoint`, which shares no code with oxigraph, on `files`."""
    with socket.create_server((HOST, 0)) as listening:
        port, number = listening.getsockname()[1], listening.fileno()
        command = [sys.executable, "-c", RDFLIB_ENDPOINT, str(number), *map(str, files)]
        with _running(command, pass_fds=(number,)) as (process, words):
            listening.close()
            url = f"http://{HOST}:{port}/query"
            if not _becomes_true(process, lambda: _answers(url)):
                raise RuntimeError(f"rdflib-endpoint does not start: {_said(words).decode()}")
            yield url


def load(url: str, data: bytes, media_type: str) -> None:
    """Add `data` to the store of an oxigraph server: quads to their graphs, triples to the default graph."""
    place = "/store" if media_type == MEDIA_TYPES[".trig"] else "/store?default"
    request = urllib.request.Request(f"{url}{place}", data=data, headers={"Content-Type": media_type}, method="POST")
    with _OPENER.open(request, timeout=START_SECONDS):
        pass


def ask(url: str, query: str) -> dict:
    """What a server answers, as JSON: to look at a server without the engine under test."""
    form = urllib.parse.urlencode({"query": query})
    request = urllib.request.Request(f"{url}?{form}", headers={"Accept": JSON})
    with _OPENER.open(request, timeout=START_SECONDS) as response:
        return json.loads(response.read())


@contextmanager
def server(
    command: Sequence[str], probe: Callable[[], object], not_yet: type[Exception], seconds: float = START_SECONDS
) -> Iterator[None]:
    """Any other server, from when it answers `probe`, which raises `not_yet` before."""

    def answers() -> bool:
        with suppress(not_yet):
            probe()
            return True
        return False

    with _running(command) as (process, words):
        if not _becomes_true(process, answers, seconds):
            raise RuntimeError(f"{command[0]} does not start: {_said(words).decode(errors='replace')}")
        yield


@contextmanager
def unvisited() -> Iterator[str]:
    """An address to which everybody may connect and nobody does."""
    with socket.create_server((HOST, 0)) as listening:
        listening.setblocking(False)
        yield "{}:{}".format(*listening.getsockname())
        with pytest.raises(BlockingIOError):
            listening.accept()


@contextmanager
def untouched(folder: Path, dump: Callable[[], object]) -> Iterator[tuple[str, str]]:
    """A folder in which everybody may write and nobody does, and an unvisited address; `dump` gives the same after."""
    folder.chmod(0o777)
    before = dump()
    with unvisited() as address:
        yield str(folder), address
    assert dump() == before
    assert list(folder.iterdir()) == []


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.create_server((HOST, 0)) as listening:
        return listening.getsockname()[1]


@contextmanager
def _oxigraph(command: str, folder: Path, *options: str) -> Iterator[str]:
    """It does not tell which port it found, so it is given one, and another one where another process was faster."""
    for _ in range(5):
        address = f"{HOST}:{free_port()}"
        line = [_program("oxigraph"), command, "--location", str(folder), "--bind", address, *options]
        with _running(line) as (process, words):
            if _becomes_true(process, lambda words=words: b"Listening" in _said(words)):
                yield f"http://{address}"
                return
    raise RuntimeError("oxigraph does not start")


def _program(name: str) -> str:
    """A program of this environment, or else of the PATH."""
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.exists() else shutil.which(name)
    if not program:
        raise RuntimeError(f"{name} is not installed: pip install '.[test]'")
    return program


@contextmanager
def _running(command: Sequence[str], pass_fds: Sequence[int] = ()) -> Iterator[tuple[subprocess.Popen, IO[bytes]]]:
    """A process, and what it writes; terminated at the end."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, pass_fds=tuple(pass_fds)
        )
        try:
            yield process, words
        finally:
            _stop(process)


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _becomes_true(process: subprocess.Popen, condition: Callable[[], bool], seconds: float = START_SECONDS) -> bool:
    """Wait for `condition`; false if the process ended before."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _said(words: IO[bytes]) -> bytes:
    return os.pread(words.fileno(), 65_536, 0)  # the position in the file is the process's, too


def _answers(url: str) -> bool:
    try:
        return ask(url, "ASK {}")["boolean"]
    except OSError:  # not yet; urllib's errors are OSErrors
        return False


PROBE = re.compile(r"\s*ASK\s*(WHERE\s*)?\{\s*\}\s*", re.IGNORECASE)


def table(*values: str) -> str:
    bindings = [{"x": {"type": "literal", "value": value}} for value in values]
    return json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": bindings}})


GOOD = table("one").encode()


@dataclass(frozen=True)
class Request:
    """One request as it came; `headers` have names in lower case."""

    method: str
    target: str
    path: str
    headers: dict[str, str]
    parameters: dict[str, list[str]]

    @property
    def query(self) -> str:
        return self.parameters.get("query", [""])[0]

    @property
    def is_probe(self) -> bool:
        """Whether it is the trivial query that tells an endpoint in trouble from a query in trouble."""
        return bool(PROBE.fullmatch(self.query))


@dataclass
class Exchange:
    """A request, its number among those that are not probes, and the means to answer it."""

    request: Request
    number: int
    connection: socket.socket
    closing: threading.Event

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def head(self, status: str = "200 OK", **headers: object) -> None:
        """Send the status line and headers, `Content_Type` for `Content-Type`."""
        lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def reply(self, body: bytes | str = GOOD, status: str = "200 OK", **headers: object) -> None:
        """Send a whole answer."""
        body = body.encode() if isinstance(body, str) else body
        self.head(status, **{"Content_Type": JSON, "Content_Length": len(body), **headers})
        self.send(body)


Behaviour: TypeAlias = Callable[[Exchange], None]


@dataclass
class FaultServer:
    """Answers each request with `behaviour`; `requests` are all that came, `connections` all that were opened."""

    behaviour: Behaviour
    context: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.origin = f"http{'s' if self.context else ''}://127.0.0.1:{self._listening.getsockname()[1]}"
        self.url = f"{self.origin}/query"
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        self._threads[0].join(30)
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(30)
            assert not thread.is_alive()

    @property
    def queries(self) -> list[Request]:
        """The requests that are not probes."""
        return [request for request in self.requests if not request.is_probe]

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            with suppress(OSError):
                connection, _ = self._listening.accept()
                self.connections.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection:  # the other side may hang up at any moment
            if self.context:
                connection.settimeout(30)  # for a handshake that never comes
                connection = self.context.wrap_socket(connection, server_side=True)
                self.connections.append(connection)
            with connection, connection.makefile("rb") as incoming:
                while request := read_request(incoming):
                    self.requests.append(request)
                    self.behaviour(Exchange(request, len(self.queries), connection, self._closing))


def read_request(incoming: BinaryIO) -> Request | None:
    """The next request of a connection; None at its end."""
    line = incoming.readline().decode("latin-1").split()
    if len(line) != 3 or not line[2].startswith("HTTP/"):  # such as the start of a TLS handshake
        return None
    headers = {}
    while header := incoming.readline().decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = incoming.read(int(headers.get("content-length", 0))).decode()
    target = urllib.parse.urlsplit(line[1])
    parameters = urllib.parse.parse_qs(f"{target.query}&{body}", keep_blank_values=True)
    return Request(line[0], line[1], target.path, headers, parameters)
