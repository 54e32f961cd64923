"""Requests made of settings and of what is filled into them.

Imported by child processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from pytest_queryeval.http.auth import without_user
from pytest_queryeval.http.template import JSON_TYPE, render_body, with_parameters

ACCEPT = {"Accept": JSON_TYPE}


def make_request(settings: Mapping[str, Any], values: Mapping[str, str | int]) -> requests.Request:
    """Return the request of `settings`, which have `method`, `url`, `params` and `body`, with the values in its places.

    Raises UnicodeEncodeError for values that are no Unicode text.
    """
    data, content_type = render_body(settings["body"], values)
    url = with_parameters(without_user(settings["url"]), settings["params"], values)
    headers = {**ACCEPT, "Content-Type": content_type} if content_type else dict(ACCEPT)
    return requests.Request(settings["method"], url, data=data, headers=headers)


def next_page_request(url: str) -> requests.Request:
    """Return the request for a page that an answer names."""
    return requests.Request("GET", url, headers=dict(ACCEPT))
