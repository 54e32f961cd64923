"""The settings of a service as predictor: what is sent to it, and how its answer is selected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.errors import SettingError, did_you_mean
from pytest_queryeval.core.json_path import compiled
from pytest_queryeval.core.setting_validators import (
    TRUE_OR_FALSE,
    SettingValidator,
    is_text,
    pattern_shape,
    validate_settings,
)
from pytest_queryeval.http.setting_validators import BODY, REQUEST
from pytest_queryeval.http.template import bare_placeholders, is_body, placeholders
from pytest_queryeval.predictors import SEND_SCHEMA, SURROUNDINGS
from pytest_queryeval.text.truncation import one_line

DEFAULT_BODY = {name: f"{{{name}}}" for name in ("question", "id", "evidence")}
PLACEHOLDERS = ("question", "id", "evidence", "trial", "conversation", "kind", *sorted(SURROUNDINGS))
METADATA = "metadata."
SCHEMA = "schema"
BESIDE = ("concurrency", "timeout", "retries")
_PLACEHOLDER_IN_URL = re.compile(rf"\{{(?:{'|'.join(PLACEHOLDERS)}|metadata\.[^{{}}]+)\}}")


def _is_path(value: Any) -> bool:
    if not is_text(value) or not value.startswith("$") or "://" in value:
        return False
    try:
        compiled(value)
    except ValueError:
        return False
    return True


_PATH = pattern_shape("^[$]")
SETTINGS = {
    **REQUEST,
    "body": SettingValidator(
        is_body,
        'a mapping, a list, "{question}" alone, or a form such as "question={question}&top=1"',
        shape=BODY,
    ),
    "answer": SettingValidator(_is_path, "a JSONPath (RFC 9535), such as $.sql", shape=_PATH),
    "metadata": SettingValidator(
        lambda value: isinstance(value, dict) and all(is_text(name) and _is_path(value[name]) for name in value),
        "a mapping from names to JSONPaths, such as {tokens: $.usage.total_tokens}",
        shape={"type": "object", "additionalProperties": _PATH},
    ),
    SEND_SCHEMA: TRUE_OR_FALSE,
}


def check(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for settings that are unknown, invalid, or contradict each other."""
    for name in BESIDE:
        if name in settings:
            raise SettingError(name, f"'{name}' belongs beside `http`, not in it")
    validate_settings(settings, SETTINGS)
    if "url" not in settings:
        raise SettingError("url", "needs url")
    if placeholder := _PLACEHOLDER_IN_URL.search(settings["url"]):
        raise SettingError("url", f"'url' takes no placeholders: put \"{placeholder.group()}\" into `params`")
    if settings.get(SEND_SCHEMA) and SCHEMA not in sent_surroundings(settings):
        raise SettingError(
            SEND_SCHEMA, f"'{SEND_SCHEMA}' has no placeholder in this `body`: write \"{{schema}}\" into it"
        )
    templates = {"params": settings.get("params"), "body": body_of(settings)}
    for name, template in templates.items():
        # Within a longer text, braces around an unknown name are text.
        if unknown := next(
            (placeholder for placeholder in bare_placeholders(template) if not is_known(placeholder)), None
        ):
            hint = did_you_mean(unknown, [*PLACEHOLDERS, f"{METADATA}…"])
            raise SettingError(name, f"unknown placeholder '{{{one_line(unknown, 40)}}}'{hint}")
    if not any(map(is_known, placeholders(*templates.values()))):
        raise SettingError("body", 'needs "{question}", in quotes, or another placeholder, in `body` or `params`')


def is_known(name: str) -> bool:
    """Return whether there is a placeholder of this name."""
    return name in PLACEHOLDERS or name.startswith(METADATA)


def body_of(settings: Mapping[str, Any]) -> Any:
    """Return the template of the body, None without one; a mapping includes the schema if that is to be sent."""
    default = None if settings.get("method") == "GET" else DEFAULT_BODY
    body = settings.get("body", default)
    if (
        settings.get(SEND_SCHEMA)
        and isinstance(body, dict)
        and SCHEMA not in placeholders(settings.get("params"), body)
    ):
        return {SCHEMA: f"{{{SCHEMA}}}", **body}
    return body


def sent_surroundings(settings: Mapping[str, Any]) -> frozenset[str]:
    """Return what is sent of a case beside its question."""
    return SURROUNDINGS & placeholders(settings.get("params"), body_of(settings))
