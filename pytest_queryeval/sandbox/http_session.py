"""Requests to a live service: retries, redirects, limits on time and size, and errors by their cause.

Imported by child processes, so that a hanging name server or a huge answer does not affect the run.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from http.client import IncompleteRead
from http.cookiejar import DefaultCookiePolicy
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
import urllib3
from requests.auth import AuthBase, HTTPBasicAuth, HTTPDigestAuth

from pytest_queryeval.sandbox.driver import Fault, Verdict
from pytest_queryeval.sandbox.http_messages import (
    BUSY,
    ENCODINGS,
    JSON_TYPE,
    NOTHING_SENT,
    BodyError,
    Decompressor,
    agent_remedy,
    credentials_remedy,
    message,
    render_body,
    retry_after,
    user_agent,
    with_parameters,
)


def auth_of(settings: dict[str, Any]) -> AuthBase:
    """Return the object that signs requests by the setting `auth`, otherwise by the user info in the URL.

    Without both, returns `NoAuth`, so that no .netrc file is read.
    """
    url = urlsplit(settings["url"])
    ((scheme, secret),) = (settings["auth"] or {"basic": ""}).items()
    if not secret and url.username is not None:
        secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
    if not secret:
        return NoAuth()
    if scheme == "bearer":
        return Bearer(secret)
    user, _, password = secret.partition(":")
    kind = HTTPDigestAuth if scheme == "digest" else HTTPBasicAuth
    return kind(user.encode(), password.encode()) if scheme == "basic" else kind(user, password)


class NoAuth(AuthBase):
    """Signs requests without credentials."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Return the request as it is."""
        return request


class Bearer(NoAuth):
    """Signs requests with a bearer token (RFC 6750)."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Set the header Authorization of the request, and return the request."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL; the default port for http and https, None for other schemes.

    Credentials are sent only if all three are those of the source.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def without_user(url: str) -> str:
    """Return the URL without user info and fragment, which are never sent as parts of the URL."""
    scheme, host, path, parameters, _ = urlsplit(url)
    return urlunsplit((scheme, host.rpartition("@")[2], path, parameters, ""))


Request: TypeAlias = requests.Request
ACCEPT = {"Accept": JSON_TYPE}
ALWAYS = {"User-Agent": user_agent(), "Accept-Encoding": ENCODINGS}


def make_request(settings: Mapping[str, Any], values: Mapping[str, str | int]) -> Request:
    """Return the request for a source, with values instead of the placeholders in its parameters and body.

    `settings` contain `method`, `url`, `params` and `body`. The headers are Accept and Content-Type only; headers of
    the settings, and credentials, are added when the request is sent. Raises UnicodeEncodeError for values that are not
    Unicode text.
    """
    data, content_type = render_body(settings["body"], values)
    url = with_parameters(without_user(settings["url"]), settings["params"], values)
    headers = {**ACCEPT, "Content-Type": content_type} if content_type else dict(ACCEPT)
    return Request(settings["method"], url, data=data, headers=headers)


def next_page_request(url: str) -> Request:
    """Return the GET request for the URL of a next page, which an answer named."""
    return Request("GET", url, headers=dict(ACCEPT))


BODY_BYTES = 256 * 2**20
CHUNK_BYTES = 64 * 1024
ATTEMPTS = 3
BUSY_ATTEMPTS = {requests.codes.too_many_requests: 2, requests.codes.service_unavailable: ATTEMPTS}
FIRST_PAUSE = 0.25
REDIRECTS = 5


class QueryFailed(Exception):  # noqa: N818 - an outcome of the query
    """The service works, but the query gets no answer. `kind` is the kind of a `Failure`."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class RetryableError(Exception):
    """The request may succeed if it is sent again after `pause` seconds, `attempts` times in all.

    `error` is raised after the last attempt.
    """

    def __init__(self, error: Exception, pause: float = 0.0, attempts: int = ATTEMPTS) -> None:
        super().__init__(str(error))
        self.error = error
        self.pause = pause
        self.attempts = attempts


class StatusPolicy(NamedTuple):
    """What HTTP statuses mean for a kind of service.

    `answers` come with an answer, `invalid` mean a faulty query, `rejected` a query that the service refused, as do all
    from 500. `follows_to_other_origins`: redirects may lead to another origin.
    """

    answers: Collection[int]
    invalid: Collection[int]
    rejected: Collection[int]  # and all from 500 on
    follows_to_other_origins: bool
    meaning: Callable[[int, Mapping[str, str], bytes], Exception | None] = lambda *_: None
    """Return the error that status, headers and body stand for; None if the status says all."""


class Sessions:
    """One session, with its connections, for each set of URL, credentials, headers and TLS check.

    No session keeps cookies. With `trust_env`, proxies and CA files come from the environment.
    """

    def __init__(self, *, trust_env: bool) -> None:
        warnings.simplefilter("ignore")  # a certificate that is not to be checked is the user's choice
        self._trust_env = trust_env
        self._sessions: dict[str, requests.Session] = {}

    def get(self, settings: dict[str, Any]) -> requests.Session:
        """Return the session for the settings of a source; equal connection settings share a session."""
        key = repr([settings[name] for name in ("url", "auth", "headers", "verify")])
        if key not in self._sessions:
            session = self._sessions[key] = requests.Session()
            session.trust_env = self._trust_env
            # No answer may affect the next.
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        return self._sessions[key]


def classify(error: Exception) -> Verdict:
    """Return the verdict on an error: a failure for `QueryFailed`, a fault for all others."""
    text = str(error)
    match error:
        case QueryFailed():
            return "failure", error.kind, text
        case Fault():
            return "fault", text
        case _:
            return "fault", f"{type(error).__name__}: {text}"


class RetryingRequest:
    """Sends the requests for one answer, and repeats requests that may succeed later.

    All requests share a deadline (monotonic clock) and a limit on bytes.
    """

    def __init__(
        self, session: requests.Session, settings: dict[str, Any], policy: StatusPolicy, deadline: float
    ) -> None:
        self._session = session
        self._settings = settings
        self._policy = policy
        self._deadline = deadline
        self._bytes_left = BODY_BYTES
        self._auth = auth_of(settings)
        self._source_origin = origin(settings["url"])

    def answer(self, request: requests.Request) -> tuple[Mapping[str, str], bytes]:
        """Send a request, again if that may help, and return the headers and the body of the answer.

        Raises `QueryFailed` if the query gets no answer, and `Fault` if the service is at fault.
        """
        pause = FIRST_PAUSE
        first_error_prefix = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._follow(request)
            except Fault as fault:
                raise Fault(f"{first_error_prefix}{fault}") from fault
            except RetryableError as retryable:
                first_error_prefix = first_error_prefix or f"{retryable.error}; asked again: "
                pause = max(pause, retryable.pause)
                if attempt >= retryable.attempts or time.monotonic() + pause > self._deadline:
                    raise retryable.error from None
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the loop ends by itself")

    def _follow(self, request: requests.Request) -> tuple[Mapping[str, str], bytes]:
        """Send a request, follow redirects, and return headers and body of the answer.

        Another origin gets no credentials, no headers of the settings, and no connection of the session. Raise `Fault`
        if the policy forbids another origin, and after REDIRECTS redirects.
        """
        url = request.url
        for _ in range(REDIRECTS + 1):
            trusted = origin(url) == self._source_origin
            if not trusted and not self._policy.follows_to_other_origins:
                raise Fault("a redirect leads to another origin, which is not followed")
            headers = {**ALWAYS, **request.headers, **(self._settings["headers"] if trusted else {})}
            auth = self._auth if trusted else NoAuth()
            with self._send(request.method, url, request.data, headers, auth) as response:
                if not response.is_redirect:
                    return self._read(response)
                url = urljoin(url, response.headers["Location"])
        raise Fault(f"more than {REDIRECTS} redirects")

    def _send(self, method: str, url: str, data: Any, headers: dict[str, str], auth: AuthBase) -> requests.Response:
        seconds_left = self._seconds_left()
        try:
            # Nor does another origin get connections of the session.
            session = self._session if origin(url) == self._source_origin else requests.Session()
            return session.request(
                method,
                url,
                data=data,
                headers=headers,
                auth=auth,
                timeout=(seconds_left, seconds_left),
                allow_redirects=False,
                stream=True,
                verify=self._settings["verify"],
            )
        except requests.Timeout as error:
            raise QueryFailed("timeout") from error
        except requests.exceptions.InvalidHeader as error:
            if isinstance(innermost(error), urllib3.exceptions.InvalidHeader):
                remedy = "correct the configuration of the server, or of the proxy before it"
                raise Fault(f"the answer has invalid headers ({reason(error)}): {remedy}") from error
            # The message holds the value, which may be secret.
            raise Fault("a header or a token of the source cannot be sent: it contains what no header may") from error
        except requests.exceptions.SSLError as error:
            trust = "the certificate is not trusted (`verify:` takes a CA file)"
            problem = trust if "CERTIFICATE" in str(error) else "no TLS connection (is it an http:// URL?)"
            raise Fault(f"{problem}: {reason(error)}") from error
        except requests.ConnectionError as error:
            if not isinstance(innermost(error), urllib3.exceptions.NewConnectionError):
                raise RetryableError(Fault(f"no connection: {reason(error)}")) from error
            if isinstance(error, requests.exceptions.ProxyError):
                raise Fault(f"no connection: {reason(error)}") from error
            why = re.sub(r"^.*\[Errno -?\d+\] ", "", reason(error)).rstrip(")")
            remedy = "start the server, or correct the URL"
            raise Fault(f"nothing answers at {urlsplit(url).netloc.rpartition('@')[2]} ({why}): {remedy}") from error
        except (requests.RequestException, ValueError, OSError) as error:
            raise Fault(reason(error)) from error

    def _read(self, response: requests.Response) -> tuple[Mapping[str, str], bytes]:
        body = self._body(response)
        if error := self._policy.meaning(response.status_code, response.headers, body):
            raise error
        if response.status_code in self._policy.answers:
            return response.headers, body
        problem = f"HTTP {response.status_code} {response.reason or ''}".rstrip()
        problem += message(response.headers.get("Content-Type", ""), body)
        if response.status_code in self._policy.invalid:
            raise QueryFailed("invalid", problem)
        if response.status_code == requests.codes.request_timeout:
            stopped = QueryFailed("timeout", f"the server stopped the query: {problem}")
            raise RetryableError(stopped, retry_after(response.headers), attempts=2)
        # A server that failed may repeat the query, which may be about user agents.
        if response.status_code < 500 and (remedy := agent_remedy(problem)):
            raise Fault(f"{problem}{remedy}")
        if response.status_code in BUSY_ATTEMPTS:
            attempts = BUSY_ATTEMPTS[response.status_code]
            raise RetryableError(Fault(f"{problem}: {BUSY}"), retry_after(response.headers), attempts)
        if response.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            auth = self._settings["auth"]
            sent = f"`auth: {next(iter(auth))}` was sent" if auth else NOTHING_SENT
            problem += credentials_remedy(sent, response.headers.get("WWW-Authenticate", ""))
        of_query = response.status_code >= 500 or response.status_code in self._policy.rejected
        refusal = QueryFailed("rejected", problem) if of_query else Fault(problem)
        if response.status_code in (requests.codes.bad_gateway, requests.codes.gateway_timeout):
            raise RetryableError(refusal, retry_after(response.headers))
        raise refusal

    def _body(self, response: requests.Response) -> bytes:
        parts = []
        bytes_left = self._bytes_left
        try:
            decompressor = Decompressor(response.headers.get("Content-Encoding", ""))
            for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
                part = decompressor.feed(chunk)
                bytes_left -= len(part)
                if bytes_left < 0:
                    raise QueryFailed("too_large", f"the answer has more than {BODY_BYTES:,} bytes")
                parts.append(part)
                self._seconds_left()
            decompressor.end()
        except BodyError as error:
            fault = Fault(f"the answer {error}")
            raise RetryableError(fault) if error.temporary else fault from error
        except urllib3.exceptions.TimeoutError as error:
            raise QueryFailed("timeout") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            read, detail = self._bytes_left - bytes_left, f" bytes ({reason(error)})"
            for cause in error.args:
                match cause:
                    case urllib3.exceptions.IncompleteRead():  # of the whole body
                        read, detail = cause.partial, f" of {cause.partial + cause.expected:,} bytes"
                    case IncompleteRead(partial=bytes(part)):  # of a chunk
                        read, detail = read + len(part), " bytes"
            problem = f"the answer breaks off after {read:,}{detail}"
            remedy = "the server may have cancelled the query: see its log, raise its limits, or simplify the query"
            raise RetryableError(Fault(f"{problem}; {remedy}")) from error
        self._bytes_left = bytes_left
        return b"".join(parts)

    def _seconds_left(self) -> float:
        """Return the seconds until the deadline; raise `QueryFailed` once it has passed."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise QueryFailed("timeout")
        return seconds_left


def innermost(error: BaseException) -> BaseException:
    """Return the error of urllib3 that an error of requests wraps; the error itself if it wraps none."""
    inner = error.args[0] if error.args else None
    inner = getattr(inner, "reason", None) or inner
    return inner if isinstance(inner, BaseException) else error


def reason(error: BaseException) -> str:
    """Return the message of the cause of an error, without the objects that urllib3 puts before it."""
    inner = innermost(error)
    # urllib3 puts the cause last, behind its own text.
    text = str(inner.args[-1] if inner.args and isinstance(inner.args[-1], Exception) else inner)
    return re.sub(r"^.*?object at 0x[0-9a-f]+>: ", "", text)
