"""A live service is asked: retries, redirects, limits on time and size, and faults by their cause.

Imported by child processes, which a hung name server or a huge answer cannot take along.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Collection, Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any, NamedTuple
from urllib.parse import urljoin

import requests
import urllib3
from requests.auth import AuthBase

from pytest_queryeval.http.auth import NoAuth, auth_of, origin
from pytest_queryeval.http.messages import message
from pytest_queryeval.http.pause import retry_after
from pytest_queryeval.sandbox.driver import Fault, Verdict
from pytest_queryeval.text.redaction import redact

BODY_BYTES = 256 * 2**20
CHUNK_BYTES = 64 * 1024
ATTEMPTS = 3
FIRST_PAUSE = 0.25
REDIRECTS = 5


class QueryFailed(Exception):  # noqa: N818 - an outcome of what was asked
    """The service is well, what it was asked is not; `kind` is that of a `Failure`."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class RetryableError(Exception):
    """The connection broke, or the server asked to come again; `pause` is in seconds, `error` what it is at last."""

    def __init__(self, error: Exception, pause: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.pause = pause


class StatusPolicy(NamedTuple):
    """What a kind of service means by a status, and whether it may send its clients to another origin."""

    answers: Collection[int]
    invalid: Collection[int]
    rejected: Collection[int]  # and whatever is 500 or more
    may_leave: bool


class Sessions:
    """One session, and so its connections, for each set of credentials. No session keeps cookies.

    `trust_env` takes proxies and CA files from the environment.
    """

    def __init__(self, *, trust_env: bool) -> None:
        warnings.simplefilter("ignore")  # a certificate that is not to be checked is the user's choice
        self._trust_env = trust_env
        self._sessions: dict[str, requests.Session] = {}

    def of(self, settings: dict[str, Any]) -> requests.Session:
        """Return the session of a source."""
        key = repr([settings[name] for name in ("url", "auth", "headers", "verify")])
        if key not in self._sessions:
            session = self._sessions[key] = requests.Session()
            session.trust_env = self._trust_env
            # One answer must not decide on the next.
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        return self._sessions[key]


def classify(error: Exception) -> Verdict:
    """Whose fault it is, and of what kind; servers repeat what they were sent, so secrets are taken out."""
    text = redact(str(error))
    match error:
        case QueryFailed():
            return "failure", error.kind, text
        case Fault():
            return "fault", text
        case _:
            return "fault", f"{type(error).__name__}: {text}"


class RetryingRequest:
    """One question's way to the service and back, with one deadline and one limit on bytes for all of it."""

    def __init__(
        self, session: requests.Session, settings: dict[str, Any], policy: StatusPolicy, deadline: float
    ) -> None:
        self._session = session
        self._settings = settings
        self._policy = policy
        self._deadline = deadline
        self._room = BODY_BYTES
        self._auth = auth_of(settings)
        self._own = origin(settings["url"])

    def answer(self, request: requests.Request) -> tuple[Mapping[str, str], bytes]:
        """Return the headers and the body; what is dropped is asked for again."""
        pause = FIRST_PAUSE
        first = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._follow(request)
            except Fault as fault:
                raise Fault(f"{first}{fault}") from fault
            except RetryableError as dropped:
                first = first or f"{dropped.error}; asked again: "
                pause = max(pause, dropped.pause)
                if attempt == ATTEMPTS or time.monotonic() + pause > self._deadline:
                    raise dropped.error from None
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the loop ends by itself")

    def _follow(self, request: requests.Request) -> tuple[Mapping[str, str], bytes]:
        """Send, and send again to where redirects lead; another origin gets no credentials and no headers of ours."""
        url = request.url
        for _ in range(REDIRECTS + 1):
            trusted = origin(url) == self._own
            if not trusted and not self._policy.may_leave:
                raise Fault("a redirect leads to another origin, which is not followed")
            headers = {**request.headers, **(self._settings["headers"] if trusted else {})}
            with self._send(request.method, url, request.data, headers, self._auth if trusted else NoAuth()) as found:
                if not found.is_redirect:
                    return self._read(found)
                url = urljoin(url, found.headers["Location"])
        raise Fault(f"more than {REDIRECTS} redirects")

    def _send(self, method: str, url: str, data: Any, headers: dict[str, str], auth: AuthBase) -> requests.Response:
        left = self._left()
        try:
            # Connections stay with the source, too.
            session = self._session if origin(url) == self._own else requests.Session()
            return session.request(
                method,
                url,
                data=data,
                headers=headers,
                auth=auth,
                timeout=(left, left),
                allow_redirects=False,
                stream=True,
                verify=self._settings["verify"],
            )
        except requests.Timeout as error:
            raise QueryFailed("timeout") from error
        except requests.exceptions.InvalidHeader as error:  # its words hold the value, which may be secret
            raise Fault("a header or a token of the source cannot be sent: it holds what no header may") from error
        except requests.exceptions.SSLError as error:
            trust = "the certificate is not trusted (`verify:` takes a CA file)"
            problem = trust if "CERTIFICATE" in str(error) else "no TLS connection (is it an http:// URL?)"
            raise Fault(f"{problem}: {reason(error)}") from error
        except requests.ConnectionError as error:
            fault = Fault(f"no connection: {reason(error)}")
            fresh = isinstance(innermost(error), urllib3.exceptions.NewConnectionError)
            raise (fault if fresh else RetryableError(fault)) from error
        except (requests.RequestException, ValueError, OSError) as error:
            raise Fault(reason(error)) from error

    def _read(self, found: requests.Response) -> tuple[Mapping[str, str], bytes]:
        body = self._body(found)
        if found.status_code in self._policy.answers:
            return found.headers, body
        said = f"HTTP {found.status_code} {found.reason or ''}".rstrip()
        said += message(found.headers.get("Content-Type", ""), body)
        if found.status_code in self._policy.invalid:
            raise QueryFailed("invalid", said)
        if found.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            said += f" ({sent(self._settings['auth'], found)})"
        of_query = found.status_code >= 500 or found.status_code in self._policy.rejected
        error = QueryFailed("rejected", said) if of_query else Fault(said)
        if found.status_code in (429, 502, 503, 504):
            raise RetryableError(error, retry_after(found.headers))
        raise error

    def _body(self, found: requests.Response) -> bytes:
        parts = []
        room = self._room
        try:
            for chunk in found.raw.stream(CHUNK_BYTES, decode_content=True):
                room -= len(chunk)
                if room < 0:
                    raise QueryFailed("too_large", f"the answer has more than {BODY_BYTES:,} bytes")
                parts.append(chunk)
                self._left()
        except urllib3.exceptions.TimeoutError as error:
            raise QueryFailed("timeout") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            got = f"{self._room - room:,} bytes"
            broken = f"the answer breaks off after {got}, the server may have cancelled the query"
            raise RetryableError(Fault(f"{broken}: {reason(error)}")) from error
        self._room = room
        return b"".join(parts)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise QueryFailed("timeout")
        return left


def innermost(error: BaseException) -> BaseException:
    """Return what urllib3 says is at the bottom of an error of requests."""
    inner = error.args[0] if error.args else None
    inner = getattr(inner, "reason", None) or inner
    return inner if isinstance(inner, BaseException) else error


def reason(error: BaseException) -> str:
    """Return the words of an error, without the objects that urllib3 puts before them."""
    inner = innermost(error)
    # urllib3 puts what happened last, behind its own words.
    text = str(inner.args[-1] if inner.args and isinstance(inner.args[-1], Exception) else inner)
    return re.sub(r"^.*?object at 0x[0-9a-f]+>: ", "", text)


def sent(auth: dict[str, str] | None, found: requests.Response) -> str:
    """Return which credentials were sent, never what they are, and which the server asks for."""
    asked = found.headers.get("WWW-Authenticate", "").split(" ")[0]
    mine = f"`auth: {next(iter(auth))}` was sent" if auth else "no `auth` is set"
    return f"{mine}, the server asks for {asked.lower()}" if asked else mine
