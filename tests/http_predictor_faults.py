"""What services that predict do wrong: behaviours for the `FaultServer` of servers.py, and what is to come of each."""

import gzip
import subprocess
from http.client import responses

from endpoint_faults import says
from servers import Exchange

CAP = 16 * 2**20  # bytes that an answer may have
GOOD = '{"predicted": "SELECT 1"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def answers(body: bytes | str = GOOD, status: int = 200, content_type: str = "application/json", **headers):
    return says(body, f"{status} {responses[status]}", Content_Type=content_type, **headers)


def bomb() -> bytes:
    """Blanks for many times the cap, in some hundred kilobytes."""
    return gzip.compress(b" " * (12 * CAP), 1)


def echoes(status: int):
    """Repeat the credentials and the key that came."""

    def behave(exchange: Exchange) -> None:
        headers = exchange.request.headers
        message = f"you sent {headers.get('authorization')} {headers.get('x-api-key')}"
        exchange.reply(message, f"{status} {responses[status]}", Content_Type="text/plain")

    return behave


def make_certificate(folder):
    """A key and a certificate for 127.0.0.1 that nobody signed but itself, and the certificate alone as ca.pem."""
    path = folder / "server.pem"
    command = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout {path} -out {folder / 'ca.pem'}"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *command.split(), *names], check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "ca.pem").read_text())
    return path
