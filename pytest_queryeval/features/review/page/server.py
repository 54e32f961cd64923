"""The server of the page: on loopback only, and only for people who have the token of its address.

The token moves from the address into a cookie. `Host` must be a loopback name, so that no other name can be made to
lead here. `Origin` must be the page itself, so that no other page can make decisions.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_queryeval.core.errors import QueryEvalError, ReportError, SuiteError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.text.formatting import one_line, utf8_safe
from pytest_queryeval.text.redaction import redact

if TYPE_CHECKING:
    from pytest_queryeval.features.review.page import JsonObject, ReviewTask

ADDRESS = "127.0.0.1"
MAX_QUERIES = 8  # that run or wait at once, of 40 threads
USUAL_PORT = 8778  # so that a browser remembers the name of its reviewer
LOOPBACK_NAMES = frozenset({ADDRESS, "localhost", "::1"})
MAX_BODY_BYTES = 4 * 2**20
PROBLEM_CHARACTERS = 2_000
_PLACE = re.compile(r"[0-9]{1,9}")
NO_TOKEN = "Open the address that `queryeval review` printed: it ends in a token."  # noqa: S105 - it is none
HEADERS = (
    ("cache-control", "no-store"),
    ("content-security-policy", "frame-ancestors 'none'"),  # the rest stands in the page
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
)


class Guard:
    """Passes requests to the application only if they come from the page and have the token."""

    def __init__(self, app: ASGIApp, *, token: str, cookie: str) -> None:
        self._app = app
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by a refusal or by the application, with headers that keep the answer to this page."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in HEADERS),
                ]
            await send(message)

        if scope["type"] != "http":
            raise RuntimeError(f"no answer to {scope['type']}")
        answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return a refusal, or the redirect that sets the cookie; None for a request that may pass."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        name = ""
        with suppress(ValueError):
            address = urlsplit(f"//{host}")
            name = (address.username is None and address.hostname) or ""
        if name not in LOOPBACK_NAMES:
            return PlainTextResponse("Host must be a name of this machine.", status_code=403)
        if origin != f"http://{host}" and (origin is not None or request.method not in ("GET", "HEAD")):
            return PlainTextResponse("Origin must be this page.", status_code=403)
        if request.url.path == "/" and self._is_token(request.query_params.get("token", "")):
            response = RedirectResponse("/", status_code=303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
            return response
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return PlainTextResponse(NO_TOKEN, status_code=403)
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="replace"), self._token.encode())


def application(review: ReviewTask[Any], page: str, *, token: str, port: int) -> Starlette:
    """Return the application that serves the HTML `page` and answers its requests from `review`.

    At most MAX_QUERIES queries run at once; more are answered with status 503. `port` distinguishes the cookies of
    several servers.
    """

    async def show_page(_: Request) -> Response:
        return HTMLResponse(page)

    async def list_cases(request: Request) -> Response:
        return await _json_response(review.overview, request.query_params.get("reviewer", ""))

    async def show_case(request: Request) -> Response:
        return await _json_response(review.case, _case_index(request))

    async def show_decisions(request: Request) -> Response:
        return await _json_response(review.decisions, _case_index(request))

    running_queries = 0

    async def run_query(request: Request) -> Response:
        nonlocal running_queries
        body = await _json_body(request)
        if running_queries == MAX_QUERIES:
            problem = f"{MAX_QUERIES} queries are running: try again when one of them has ended"
            return JSONResponse({"problem": problem}, 503)
        running_queries += 1
        try:
            return await _json_response(review.answer, _case_index(request), body)
        finally:
            running_queries -= 1

    async def decide(request: Request) -> Response:
        return await _json_response(review.append, _case_index(request), await _json_body(request))

    return Starlette(
        routes=[
            Route("/", show_page),
            Route("/cases", list_cases),
            Route("/cases/{place}", show_case),
            Route("/cases/{place}/decisions", show_decisions),
            Route("/cases/{place}/answer", run_query, methods=["POST"]),
            Route("/cases/{place}/decision", decide, methods=["POST"]),
        ],
        # A cookie belongs to all ports of a name.
        middleware=[Middleware(Guard, token=token, cookie=f"queryeval-review-{port}")],
        exception_handlers={QueryEvalError: _problem_response, OSError: _problem_response},
    )


def _case_index(request: Request) -> int:
    """Return the index of the case in the path of a request; answer 404 if the path has no number."""
    place = request.path_params["place"]
    if not _PLACE.fullmatch(place):
        raise HTTPException(404)
    return int(place)


async def _json_response(function: Callable[..., JsonObject | None], *arguments: object) -> Response:
    """Call a function in a thread, for which the server's end does not wait; return its value as redacted JSON."""
    value = await anyio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(utf8_safe(redact(text)).encode(), media_type="application/json")


async def _json_body(request: Request) -> JsonObject:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            raise HTTPException(413)
    try:
        body: JsonValue = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400) from error
    if not isinstance(body, dict):
        raise HTTPException(400)
    return body


async def _problem_response(_: Request, error: Exception) -> Response:
    """Return the message of an error as JSON for the page, with status 409."""
    problems = error.problems if isinstance(error, SuiteError) else (error,)
    text = "; ".join(map(str, problems))
    if isinstance(error, OSError):
        text = f"the file of decisions cannot be written: {error.strerror or error}"
    text = one_line(text, PROBLEM_CHARACTERS)
    return JSONResponse({"problem": text}, status_code=409)


def serve(review: ReviewTask[Any], page: str, *, port: int | None, tell: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C or SIGTERM; `tell` is called with its address, which contains the token.

    Without a `port`, it is USUAL_PORT, or a free port. Raise `ReportError` if the port is taken or invalid.
    """
    listener = None
    if port is None:
        port = 0  # if the usual one is taken
        with suppress(OSError):
            listener = socket.create_server((ADDRESS, USUAL_PORT))
    try:
        listener = listener or socket.create_server((ADDRESS, port))
    except OSError as error:
        raise ReportError(f"--serve {port}: {os.strerror(error.errno or 0)}: name another port") from error
    except OverflowError as error:
        raise ReportError(f"--serve {port}: a port is a number up to 65535") from error
    with listener:
        port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
        app = application(review, page, token=token, port=port)
        # What is not needed is off; so is any log of requests, since an address contains the token.
        config = uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        tell(f"open http://{ADDRESS}:{port}/?token={token} (Ctrl-C ends it)")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
