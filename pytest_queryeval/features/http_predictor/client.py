"""Requests to one HTTP service: redirects, credentials, a limit on bytes, and messages about errors.

Only this module imports httpx2. There is no time limit: the caller sets one, and cancels the call.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx2

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.sandbox.http_messages import (
    NOTHING_SENT,
    BodyError,
    Decompressor,
    agent_remedy,
    credentials_remedy,
    is_temporary,
    message,
    retry_after,
    user_agent,
)
from pytest_queryeval.text.formatting import one_line

BODY_BYTES = 16 * 2**20
REDIRECTS = 5
IDLE_SECONDS = 30.0  # that a connection is kept for the next call
ERROR_CHARACTERS = 300
ANSWERS = (200, 201, 203)
MOVED = (301, 302, 303, 307, 308)
REMEDIES = {
    404: "correct the path of the URL",
    422: "make `body` what the service asks for",
    429: "lower `concurrency`, or wait and run again",
}  # by status
_RECEIVED = re.compile(r"received (\d+) bytes, expected (\d+)")  # in a message of h11
AUTHORIZATION = "authorization"
DEFAULT_HEADERS = {
    "Accept": "application/json, text/plain;q=0.9, */*;q=0.1",
    "Accept-Encoding": "identity",
    "User-Agent": user_agent(),
}
LOGGERS = ("httpx2", *(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks")))
_is_client_call: ContextVar[bool] = ContextVar("is_ours", default=False)


class Reply(NamedTuple):
    """A complete response with a success status."""

    content_type: str
    """The content type in lower case, without parameters; empty if there is none."""
    charset: str
    """The charset of a text as the service states it; empty if it states none."""
    body: bytes


class Credentials(NamedTuple):
    """Credentials of requests: the value of the header `Authorization`, or a `flow` that answers challenges."""

    sent: str = NOTHING_SENT
    """A phrase for messages that says which credentials were sent."""
    header: str = ""
    flow: httpx2.Auth = httpx2.Auth()


def credentials(auth: Mapping[str, str] | None, headers: Mapping[str, str], url: str) -> Credentials:
    """Return the credentials of the setting `auth`; without it those of a header, else of the URL, else none.

    If the user's `headers` have the credentials, only the phrase for messages is set.
    """
    if not auth and AUTHORIZATION in map(str.lower, headers):
        return Credentials("the header `Authorization` was sent")
    user_info = httpx2.URL(url).userinfo.decode("ascii")
    if auth:
        ((scheme, secret),) = auth.items()
        sent = f"`auth: {scheme}` was sent"
    elif user_info:
        user, _, password = user_info.partition(":")
        scheme, secret = "basic", f"{unquote(user)}:{unquote(password)}"
        sent = "the user of `url` was sent"
    else:
        return Credentials()
    if scheme == "digest":
        user, _, password = secret.partition(":")
        return Credentials(sent, flow=httpx2.DigestAuth(user, password))
    encoded = secret if scheme == "bearer" else b64encode(secret.encode()).decode()
    return Credentials(sent, header=f"{scheme.title()} {encoded}")


def trusted(verify: bool | str, folder: Path) -> ssl.SSLContext:
    """Return the TLS context for the setting `verify`; raise `PredictorError` if certificates cannot be read.

    A text is a CA file relative to `folder`. True trusts the system's certificates, False any certificate.
    """
    try:
        if isinstance(verify, str):
            return ssl.create_default_context(cafile=str(folder / verify))
        return httpx2.create_ssl_context(verify)
    except (OSError, ValueError) as error:  # ssl.SSLError is one, too
        name = f"the CA file {verify}" if isinstance(verify, str) else "the file of SSL_CERT_FILE or SSL_CERT_DIR"
        raise PredictorError(f"`verify`: {name} cannot be read: {_reason(error)}") from error


class Handshake:
    """Closes a connection whose TLS handshake is cancelled, which httpcore2 (2.16) leaves open."""

    def __init__(self) -> None:
        self._stream: Any = None

    async def follow(self, event: str, info: Mapping[str, Any]) -> None:
        """Handle an event of a request; pass this method to httpcore2 as `trace`."""
        if event.endswith("connect_tcp.complete"):
            self._stream = info["return_value"]
        elif event.endswith("start_tls.failed") and self._stream is not None:
            await self._stream.aclose()


class Client:
    """Sends requests to one service, on the event loop that makes the client; `name` is the service's in messages."""

    def __init__(self, name: str, headers: Mapping[str, str], signed: Credentials, context: ssl.SSLContext) -> None:
        self._name = name
        self._credentials = signed
        user_headers = {key: text for key, text in headers.items() if not signed.header or key.lower() != AUTHORIZATION}
        user_headers |= {"Authorization": signed.header} if signed.header else {}
        sent = httpx2.Headers(DEFAULT_HEADERS)
        sent.update(
            httpx2.Headers([(key.encode("ascii"), text.encode("latin-1")) for key, text in user_headers.items()])
        )
        try:
            self._client = httpx2.AsyncClient(
                headers=sent,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # no answer affects the next
                verify=context,
                timeout=None,
                limits=httpx2.Limits(keepalive_expiry=IDLE_SECONDS),
            )
        except (ValueError, ImportError, httpx2.InvalidURL) as error:  # its message may hold a password
            proxies = "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
            raise self._problem(f"the proxy of the environment cannot be used: see {proxies}") from error

    async def ask(self, method: str, url: str, content: bytes | None, content_type: str) -> Reply:
        """Send a request, follow redirects, and return the service's reply.

        Raise `PredictorError` for any other answer and for a broken connection; it is temporary if another call may
        succeed.
        """
        headers = {"Content-Type": content_type} if content_type else {}
        if "Content-Type" in self._client.headers:
            headers = {}
        try:
            with quiet():
                request = self._request(method, httpx2.URL(url), content, headers)
                for _ in range(REDIRECTS + 1):
                    reply = await self._exchange(request)
                    if isinstance(reply, Reply):
                        return reply
                    request = self._redirected(request, reply)
                raise self._problem(f"more than {REDIRECTS} redirects")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise self._broken(error) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _exchange(self, request: httpx2.Request) -> Reply | httpx2.Response:
        """Send one request, answer a challenge for credentials, and return the reply or a redirect.

        Raise `PredictorError` for another status, and for a body of more than BODY_BYTES.
        """
        flow = self._credentials.flow.auth_flow(request)
        signed: httpx2.Request | None = next(flow)
        while signed is not None:
            # The client's own handling of challenges would read their bodies, however large they are.
            response = await self._client.send(signed, stream=True, auth=None)
            async with aclosing(response):
                signed = self._challenged(flow, response)
                if signed is not None:
                    continue
                if response.status_code in MOVED and "Location" in response.headers:
                    return response
                if response.status_code not in ANSWERS:
                    raise await self._refusal(response)
                body = await _body(response)
                if len(body) > BODY_BYTES:
                    raise self._problem(f"the answer has more than {BODY_BYTES:,} bytes")
                content_type, charset = _content_type(response)
                return Reply(content_type, charset, body)
        raise AssertionError("the loop ends by itself")

    def _challenged(
        self, flow: Generator[httpx2.Request, httpx2.Response, None], response: httpx2.Response
    ) -> httpx2.Request | None:
        try:
            return flow.send(response)
        except StopIteration:
            return None
        except (ValueError, NotImplementedError, httpx2.ProtocolError) as error:
            problem = f"its challenge cannot be answered ({self._credentials.sent}): {one_line(str(error))}"
            raise self._problem(problem) from error

    def _redirected(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        """Return the request that follows a redirect: the same request at the new URL, or a GET for status 303.

        Raise `PredictorError` for a redirect to another origin.
        """
        url = request.url.join(response.headers["Location"])
        if _origin(url) != _origin(request.url):
            place = one_line(f"{url.scheme}://{url.netloc.decode('ascii').rpartition('@')[2]}", 80)
            raise self._problem(f"redirects to another origin, {place}, which is not followed: is `url` right?")
        if response.status_code == httpx2.codes.SEE_OTHER:
            return self._request("GET", url, None, {})
        types = {"Content-Type": request.headers["Content-Type"]} if "Content-Type" in request.headers else {}
        return self._request(request.method, url, request.content or None, types)

    def _request(
        self, method: str, url: httpx2.URL, content: bytes | None, headers: Mapping[str, str]
    ) -> httpx2.Request:
        extensions = {"trace": Handshake().follow}
        url = url.copy_with(userinfo=b"")  # the client would send it instead of the credentials
        return self._client.build_request(method, url, content=content, headers=headers, extensions=extensions)

    async def _refusal(self, response: httpx2.Response) -> PredictorError:
        status = response.status_code
        try:
            body = await _body(response, limit=64 * 1024)
        except BodyError:  # the status says enough
            body = b""
        problem = f"HTTP {status} {response.reason_phrase}".rstrip() + message(_content_type(response)[0], body)
        problem = one_line(problem, ERROR_CHARACTERS)
        if remedy := agent_remedy(problem):
            problem += remedy
        elif status in (401, 403, 407):
            problem += credentials_remedy(self._credentials.sent, response.headers.get("WWW-Authenticate", ""))
        temporary = is_temporary(status)
        if status >= 500:
            problem += ": the service failed: see its log, then run again"
        elif status in REMEDIES and not remedy:
            problem += f": {REMEDIES[status]}"
        return self._problem(problem, temporary=temporary, pause=retry_after(response.headers) if temporary else 0.0)

    def _broken(self, error: Exception) -> PredictorError:
        """Return the error for a request that failed with `error`; it is temporary if a new connection may work."""
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return self._problem(f"{_reason(cause)}: the certificate is not trusted (`verify` takes a CA file)")
            if isinstance(cause, ssl.SSLError) and isinstance(error, httpx2.ConnectError):
                ended = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)
                problem = f"no TLS connection (is it an http:// URL?): {_reason(cause)}"
                return self._problem(problem, temporary=ended)
            if isinstance(cause, socket.gaierror):
                again = cause.errno == socket.EAI_AGAIN
                problem = f"the host is not found: {_reason(cause)}: correct `url`"
                return self._problem(problem, temporary=again, unreachable=True)
        reason = next((text for cause in reversed(causes) if (text := _reason(cause))), type(error).__name__)
        match error:
            case httpx2.ConnectError() | httpx2.ConnectTimeout():
                problem = f"no connection: {reason}: start the service, or correct `url`"
                return self._problem(problem, temporary=True, unreachable=True)
            case httpx2.ProxyError():
                return self._problem(f"the proxy of the environment does not let it pass: {reason}", temporary=True)
            case BodyError():
                return self._problem(f"the answer {error}", temporary=error.temporary)
            case httpx2.RemoteProtocolError():
                return self._problem(_protocol_problem(reason), temporary=True)
            case httpx2.NetworkError() | httpx2.TimeoutException() | OSError():
                return self._problem(f"the connection broke: {reason}: see the log of the service", temporary=True)
            case _:  # its message may hold what was to be sent
                return self._problem(f"the request cannot be sent ({type(error).__name__}): see `url` and `headers`")

    def _problem(self, text: str, **about: Any) -> PredictorError:
        return PredictorError(f"{self._name}: {text}", **about)


def _protocol_problem(reason: str) -> str:
    """Return the problem of a malformed or incomplete HTTP response with a remedy; `reason` is the message of h11."""
    if "Content-Length" in reason:
        remedy = "correct the configuration of the service, or of the proxy before it"
        return f"the answer has invalid headers ({reason}): {remedy}"
    if "without sending complete message body" in reason:
        numbers = _RECEIVED.search(reason)
        place = f" after {numbers[1]} of {numbers[2]} bytes" if numbers else ""
        return f"the answer breaks off{place}: see the log of the service"
    return f"the connection broke: {reason}: see the log of the service"


async def _body(response: httpx2.Response, limit: int = BODY_BYTES) -> bytes:
    """Return the decompressed body; if it exceeds `limit` bytes, return only a beginning of more than `limit` bytes."""
    body = bytearray()
    decompressor = Decompressor(response.headers.get("Content-Encoding", ""))
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            body += decompressor.feed(chunk)
            if len(body) > limit:
                return bytes(body)
    decompressor.end()
    return bytes(body)


def _content_type(response: httpx2.Response) -> tuple[str, str]:
    """Return the content type in lower case without parameters, and the charset; empty if not stated."""
    content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return content_type, response.charset_encoding or ""


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL; a redirect to another origin is not followed."""
    return url.scheme, url.host, url.port


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, the errors in its group, and so on for its causes."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _causes(inner)
        error = error.__cause__ or error.__context__


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return one_line(error.verify_message)
    if isinstance(error, ssl.SSLError | socket.gaierror):
        return one_line((error.strerror or str(error)).partition(" (_ssl.c")[0])
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # the message of asyncio holds the address
    return "" if isinstance(error, BaseExceptionGroup) else one_line(str(error))


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the client's log records below warnings within the block."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_passes)  # a second time changes nothing
    before = _is_client_call.set(True)
    try:
        yield
    finally:
        _is_client_call.reset(before)


def _passes(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or not _is_client_call.get()
