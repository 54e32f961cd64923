"""HTTP messages: requests from templates with placeholders such as `{query}`, bodies, and what services say.

A placeholder is replaced by a value, never by a piece of JSON or of a URL: a value cannot end the text around it, and
its own braces are not placeholders. Also imported by child processes.
"""

from __future__ import annotations

import codecs
import json
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from pytest_queryeval.text.formatting import one_line, truncate

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
TEXT_TYPE = "text/plain; charset=utf-8"
_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[^{}]+)?)\}")
_FORM = re.compile(r"[^\s=&{}]+=[^\s&]*(?:&[^\s=&{}]+=[^\s&]*)*")
MAX_RETRY_AFTER = 3600.0  # seconds
MAX_SCHEME = 20  # characters of a scheme of authentication
AUTH_SCHEMES = ("basic", "digest", "bearer")
NOTHING_SENT = "no `auth` is set"
_WANTS_AGENT = re.compile(r"user[ _-]?agent", re.IGNORECASE)
BUSY = "the service is busy: wait, then run again"
ERROR_BYTES = 4_000
SHOWN_BYTES = 200
SHOWN_ENCODING = 40
_TAGS = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def user_agent() -> str:
    """Return the User-Agent header of requests: the name of this program and its version."""
    return f"pytest-queryeval/{version('pytest-queryeval')}"


def is_body(value: Any) -> bool:
    """Return whether a value can be the `body` setting: a bare placeholder, a form, a mapping or a list."""
    if isinstance(value, str):
        return is_placeholder(value) or _FORM.fullmatch(value) is not None
    return isinstance(value, dict | list)


def is_parameters(value: Any) -> bool:
    """Return whether a value is a mapping to texts, numbers or booleans."""
    return isinstance(value, dict) and all(isinstance(item, str | int | float) for item in value.values())


def is_placeholder(text: str) -> bool:
    """Return whether the text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def placeholders(*templates: Any) -> set[str]:
    """Return the names of all placeholders in JSON values."""
    return {name for text in _texts(templates) for name in _PLACEHOLDER.findall(text)}


def bare_placeholders(*templates: Any) -> list[str]:
    """Return the names of the placeholders that are the whole of a text in JSON values, in their order."""
    return [match[1] for text in _texts(templates) if (match := _PLACEHOLDER.fullmatch(text))]


def render(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a JSON value with values instead of its placeholders.

    A text that is one placeholder becomes the value itself, of any type. Within longer texts, values become text. If a
    bare placeholder is an item of a list and its value is a list, the items of the value are inserted. Placeholders
    without a value stay as they are.

    >>> render({"sql": "{query}", "top": "{limit}"}, {"query": 'SELECT "{limit}"', "limit": 5})
    {'sql': 'SELECT "{limit}"', 'top': 5}
    >>> render(["first", "{others}"], {"others": ["second", "third"]})
    ['first', 'second', 'third']
    """
    match template:
        case str():
            if is_placeholder(template) and template[1:-1] in values:
                return values[template[1:-1]]
            return render_text(template, values)
        case dict():
            return {name: render(item, values) for name, item in template.items()}
        case list():
            items: list[Any] = []
            for item in template:
                value = render(item, values)
                items += value if isinstance(value, list) and isinstance(item, str) else [value]
            return items
        case _:
            return template


def render_text(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with values instead of its placeholders; placeholders without a value stay as they are.

    Braces within an inserted value are not placeholders. Values that are no texts are inserted as JSON.
    """
    return _PLACEHOLDER.sub(lambda match: _as_text(values.get(match[1], match[0])), text)


def render_body(body: Any, values: Mapping[str, Any]) -> tuple[bytes | None, str]:
    """Return the bytes of a rendered body, and its content type.

    A bare placeholder becomes plain text, another text a form with quoted values, anything else JSON. None becomes
    (None, ""). Raises UnicodeEncodeError for values that are not Unicode text.
    """
    if body is None:
        return None, ""
    if not isinstance(body, str):
        return json.dumps(render(body, values)).encode(), JSON_TYPE
    if is_placeholder(body):
        return render_text(body, values).encode(), TEXT_TYPE
    quoted = {name: quote_plus(_as_text(value)) for name, value in values.items()}
    return render_text(body, quoted).encode(), FORM_TYPE


def with_parameters(url: str, parameters: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return the URL with the rendered parameters appended to its own query.

    Raises UnicodeEncodeError for values that are not Unicode text.
    """
    if not parameters:
        return url
    texts = {name: _as_text(render(item, values)) for name, item in parameters.items()}
    return url + ("&" if urlsplit(url).query else "?") + urlencode(texts)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from _texts(list(value.values()))
        case list() | tuple():
            for item in value:
                yield from _texts(item)


class BodyError(ValueError):
    """The body of an answer is not what its headers say. `temporary`: a repeated request may get a sound body."""

    def __init__(self, problem: str, *, temporary: bool = False) -> None:
        super().__init__(problem)
        self.temporary = temporary


ENCODINGS = "gzip"  # which `Decompressor` reads
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class Decompressor:
    """Decompresses a body by its `Content-Encoding`: gzip, or none.

    Unlike decoders of HTTP libraries, it checks that the data are complete: a compressed text that is cut can look
    whole. Another encoding, and faulty data, raise `BodyError`.
    """

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        self._is_gzip = encoding in ("gzip", "x-gzip")
        self._stream: zlib._Decompress | None = None
        if not self._is_gzip and encoding not in ("", "identity"):
            shown = one_line(encoding, SHOWN_ENCODING)
            raise BodyError(f"is encoded as '{shown}', which was not asked for: let the service send it as it is")

    def feed(self, data: bytes) -> bytes:
        """Return the decompressed content of the next bytes; raises `BodyError` for faulty data."""
        if not self._is_gzip:
            return data
        content = b""
        while data:
            if self._stream is None or self._stream.eof:  # gzip may have several parts
                self._stream = zlib.decompressobj(_GZIP_WINDOW)
            try:
                content += self._stream.decompress(data)
            except zlib.error as error:
                raise _broken(str(error)) from error
            data = self._stream.unused_data
        return content

    def end(self) -> None:
        """Check that the body is complete; raises `BodyError` if its end is missing."""
        if self._stream is not None and not self._stream.eof:
            raise _broken("it breaks off before the end of the data")


def _broken(reason: str) -> BodyError:
    problem = f"cannot be decompressed (gzip: {one_line(reason)}): see the log of the service"
    return BodyError(problem, temporary=True)


# Python knows them as encodings of text, but they are none of messages.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})


def decoded(body: bytes, charset: str) -> str:
    """Return a body as text by its charset, UTF-8 if `charset` is empty, without a byte order mark.

    Raises `BodyError` for an unknown charset, and for bytes that do not fit it.
    """
    try:
        codec = codecs.lookup(charset or "utf-8")
        if codec.name.replace("_", "-") in _NO_CHARSETS:
            raise LookupError
        return body.decode(codec.name).removeprefix("\ufeff")
    except (LookupError, UnicodeEncodeError):  # of codecs that are none of text, and of names that are not ASCII
        raise BodyError(f"has the unknown charset '{one_line(charset, SHOWN_ENCODING)}': send UTF-8") from None
    except ValueError as error:
        raise BodyError(f"is not text: {one_line(str(error))}") from error


def message(content_type: str, body: bytes, most: int = ERROR_BYTES) -> str:
    """Return `: ` and the first `most` characters of a body, in one line without markup; empty for a blank body.

    Servers repeat what they were sent, so the text may contain secrets.
    """
    text = truncate(body[: 2 * ERROR_BYTES].decode("utf-8", "replace"), most)
    if "html" in content_type:
        text = _TAGS.sub(" ", text)
    text = " ".join(text.split())
    return f": {text}" if text else ""


_XML = re.compile(rb"\s*(?:\xef\xbb\xbf)?<(?:\?xml|sparql)\b")
# By a part of the content type.
_FORMATS = {"xml": "XML", "csv": "CSV", "tab-separated": "TSV", "turtle": "Turtle", "n-triples": "N-Triples"}


def unreadable(kind: str, body: bytes, error: ValueError, *, expected: str, service: str = "the service") -> str:
    """Return the problem text for a body that a reader of `expected`, such as JSON, could not read.

    `kind` is the body's content type, `error` the error of the reader. The text says whether a web page or another
    format came back, with the remedy.
    """
    description = f"{kind or 'no content type'}, {len(body):,} bytes{message(kind, body, SHOWN_BYTES)}"
    if "html" in kind:
        return f"a web page came back: is the URL that of {service}? ({description})"
    name = next((name for part, name in _FORMATS.items() if part in kind), "XML" if _XML.match(body) else "")
    if name:
        remedy = "set what makes the server send JSON, such as `format=json` in the URL or `Accept` under `headers`"
        return f"the answer is {name}, not {expected}, although JSON was asked for: {remedy} ({description})"
    return f"the answer is not valid {expected}: {error} ({description})"


def credentials_remedy(sent: str, challenge: str) -> str:
    """Return the tail of a message on status 401, 403 or 407: what was sent, what the server asks for, and the remedy.

    `sent` is NOTHING_SENT, "`auth: SCHEME` was sent", or another sentence. `challenge` is the header
    `WWW-Authenticate`.

    >>> credentials_remedy("`auth: basic` was sent", "Basic realm=private")
    ' (`auth: basic` was sent, the server asks for basic): the server does not accept it: correct it, or give it access'
    """
    scheme = one_line(challenge.split(" ")[0].lower(), MAX_SCHEME)
    challenge_note = f", the server asks for {scheme}" if scheme else ""
    remedy = "the server does not accept it: correct it, or give it access"
    if sent == NOTHING_SENT:
        remedy = f"write `auth: {{{scheme if scheme in AUTH_SCHEMES else 'bearer'}: …}}`"
    elif scheme in AUTH_SCHEMES and sent.startswith("`auth: ") and f" {scheme}`" not in sent:
        remedy = f"write `auth: {{{scheme}: …}}`"
    return f" ({sent}{challenge_note}): {remedy}"


def agent_remedy(problem: str) -> str:
    """Return a remedy if a problem text mentions the user agent; otherwise an empty text.

    >>> agent_remedy("HTTP 403 Forbidden: set a user-agent")
    ": write `headers: {User-Agent: 'NAME (address)'}`"
    """
    return ": write `headers: {User-Agent: 'NAME (address)'}`" if _WANTS_AGENT.search(problem) else ""


def is_temporary(status: int) -> bool:
    """Return whether a request that got this HTTP status may succeed later: 408, 429, and 500 or more."""
    return status in (408, 429) or status >= 500


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of the header Retry-After, at most an hour; 0.0 without a valid header.

    A date is compared with the server's own clock if its header Date is valid (RFC 9110, 10.2.3).
    """
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER)
    then = _moment(text)
    if then is None:
        return 0.0
    # By the server's clock, if it sends its time: ours may differ.
    now = _moment(headers.get("Date", ""))
    return min(max(then - (time.time() if now is None else now), 0.0), MAX_RETRY_AFTER)


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None
