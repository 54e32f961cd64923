"""Requests made of settings and values. Imported by child processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import requests

from pytest_queryeval.http.auth import without_user
from pytest_queryeval.http.template import JSON_TYPE, render_body, with_parameters

Request: TypeAlias = requests.Request
ACCEPT = {"Accept": JSON_TYPE}


def make_request(settings: Mapping[str, Any], values: Mapping[str, str | int]) -> Request:
    """Return the request of `settings`: `method`, `url`, and `params` and `body` rendered with the values.

    Raises UnicodeEncodeError for values that are no Unicode text.
    """
    data, content_type = render_body(settings["body"], values)
    url = with_parameters(without_user(settings["url"]), settings["params"], values)
    headers = {**ACCEPT, "Content-Type": content_type} if content_type else dict(ACCEPT)
    return Request(settings["method"], url, data=data, headers=headers)


def next_page_request(url: str) -> Request:
    """Return the request for the next page, whose URL an answer named."""
    return Request("GET", url, headers=dict(ACCEPT))
