"""Templates of bodies and parameters of requests, with placeholders such as `{query}`.

A placeholder is replaced by a value, never by a piece of JSON or of a URL: a value cannot end the text around it, and
its own braces are not placeholders. Also imported by child processes, so it imports the standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
TEXT_TYPE = "text/plain; charset=utf-8"
_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[^{}]+)?)\}")
_FORM = re.compile(r"[^\s=&{}]+=[^\s&]*(?:&[^\s=&{}]+=[^\s&]*)*")


def is_body(value: Any) -> bool:
    """Return whether it is a bare placeholder, a form, or a JSON value that is not a text."""
    if isinstance(value, str):
        return is_placeholder(value) or _FORM.fullmatch(value) is not None
    return isinstance(value, dict | list)


def is_parameters(value: Any) -> bool:
    """Return whether it is a mapping from names to texts, numbers or booleans."""
    return isinstance(value, dict) and all(isinstance(item, str | int | float) for item in value.values())


def is_placeholder(text: str) -> bool:
    """Return whether the text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def placeholders(*templates: Any) -> set[str]:
    """Return the names of all placeholders in JSON values."""
    return {name for text in _texts(templates) for name in _PLACEHOLDER.findall(text)}


def bare_placeholders(*templates: Any) -> list[str]:
    """Return the names of the placeholders that are the whole of a text, in their order."""
    return [match[1] for text in _texts(templates) if (match := _PLACEHOLDER.fullmatch(text))]


def render(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a JSON value with values in place of its placeholders; a bare placeholder becomes a value of any type.

    Where a bare placeholder is an item of a list and its value is a list, the items of that replace it.

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
    """Return a text with values in place of its placeholders, in one pass; those of other names stay as they are."""
    return _PLACEHOLDER.sub(lambda match: _as_text(values.get(match[1], match[0])), text)


def render_body(body: Any, values: Mapping[str, Any]) -> tuple[bytes | None, str]:
    """Return a body and its content type: a bare placeholder is plain text, another text a form, anything else JSON.

    None is not a body. Raises UnicodeEncodeError for values that are not Unicode text.
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
    """Return the URL with the rendered parameters behind its own; raises UnicodeEncodeError like `render_body`."""
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
