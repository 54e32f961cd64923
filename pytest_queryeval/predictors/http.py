"""A service behind HTTP as the system under test: one request a case, and the answer picked from what comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytest_queryeval.discreet import discreet
from pytest_queryeval.engines.settings import VERSION, Rule, check_settings, is_text
from pytest_queryeval.errors import PredictorError, SettingError, did_you_mean
from pytest_queryeval.http.rules import CONNECTION
from pytest_queryeval.http.template import filled_body, is_body, is_parameters, places, standing_alone, with_parameters
from pytest_queryeval.json_path import compiled
from pytest_queryeval.model import Case, Prediction, PredictorSpec
from pytest_queryeval.plain import one_line, plain
from pytest_queryeval.predictors import Predictor, PredictorType
from pytest_queryeval.predictors.answer import stated_answer
from pytest_queryeval.predictors.http_answers import Selector
from pytest_queryeval.redaction import hide_settings

if TYPE_CHECKING:
    from pytest_queryeval.predictors.http_client import Client

DEFAULT_BODY = {name: f"{{{name}}}" for name in ("question", "id", "evidence")}
PLACES = ("question", "id", "evidence", "trial", "conversation")
METADATA = "metadata."
BESIDE = ("concurrency", "timeout", "retries")
_PLACE_IN_URL = re.compile(rf"\{{(?:{'|'.join(PLACES)}|metadata\.[^{{}}]+)\}}")


def _is_path(value: Any) -> bool:
    if not is_text(value) or not value.startswith("$") or "://" in value:
        return False
    try:
        compiled(value)
    except ValueError:
        return False
    return True


def _is_paths(value: Any) -> bool:
    return isinstance(value, dict) and all(is_text(name) and _is_path(path) for name, path in value.items())


SETTINGS = {
    **{name: Rule(*rule) for name, rule in CONNECTION.items()},
    "method": Rule(lambda value: value in ("GET", "POST"), "GET or POST"),
    "params": Rule(is_parameters, "a mapping from names to texts and numbers"),
    "body": Rule(is_body, 'a mapping, a list, "{question}" alone, or a form such as "question={question}&top=1"'),
    "answer": Rule(_is_path, "a JSONPath (RFC 9535), such as $.sql"),
    "metadata": Rule(_is_paths, "a mapping from names to JSONPaths, such as {tokens: $.usage.total_tokens}"),
}


def check(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for settings that are not these, or do not go together."""
    for name in (VERSION, *BESIDE):  # the first is a setting of sources only
        if name in settings:
            words = f"'{name}' stands beside `http`, not in it" if name in BESIDE else f"unknown setting '{name}'"
            raise SettingError(name, words)
    check_settings(settings, SETTINGS)
    if "url" not in settings:
        raise SettingError("url", "needs url")
    if found := _PLACE_IN_URL.search(settings["url"]):
        raise SettingError("url", f"'url' has no places to fill: put \"{found.group()}\" into `params`")
    sent = {"params": settings.get("params"), "body": _body_of(settings)}
    for name, template in sent.items():
        _check_places(name, template)
    if not any(map(_is_known, places(sent["params"], sent["body"]))):
        raise SettingError("body", 'needs "{question}", in quotes, or another place in `body` or `params`')


def _check_places(name: str, template: Any) -> None:
    """Refuse a text that is one place only, of a name that there is not; within other texts, braces are text."""
    for place in standing_alone(template):
        if not _is_known(place):
            known = [*PLACES, f"{METADATA}…"]
            raise SettingError(name, f"unknown place '{{{one_line(place, 40)}}}'{did_you_mean(place, known)}")


def _is_known(place: str) -> bool:
    return place in PLACES or place.startswith(METADATA)


def _body_of(settings: Mapping[str, Any]) -> Any:
    default = None if settings.get("method") == "GET" else DEFAULT_BODY
    return settings.get("body", default)


class HTTPService:
    """Asks a service; its connections are kept for the next call."""

    concurrency = 8
    retries = 2

    def __init__(self, spec: PredictorSpec) -> None:
        from pytest_queryeval.predictors.http_client import credentials, trusted

        settings = spec.settings
        self._url = settings["url"]
        self._method = settings.get("method", "POST")
        self._params = settings.get("params", {})
        self._body = _body_of(settings)
        self._headers = {name: str(text) for name, text in settings.get("headers", {}).items()}
        self._places = places(self._params, self._body)
        self._shown = discreet(self._url)
        self._name = f"{self._method} {self._shown}"
        self._selector = Selector(self._name, settings.get("answer"), settings.get("metadata", {}))
        self._credentials = credentials(settings.get("auth"), self._url)
        self._context = trusted(settings.get("verify", True), spec.folder)
        self._client: Client | None = None

    async def predict(self, case: Case, trial: int) -> Prediction:
        """What the service answers; raises `PredictorError`, temporary where another call may have an answer."""
        start = perf_counter()
        url, content, content_type = self._request(case, trial)
        reply = await self._connected().ask(self._method, url, content, content_type)
        seconds = perf_counter() - start
        answer, metadata = self._selector.selected(reply)
        try:
            stated = stated_answer(answer, case)
        except ValueError as error:
            raise PredictorError(f"{self._name} {error}") from error
        return Prediction(stated=stated, predictor=self._shown, seconds=seconds, metadata=metadata)

    async def close(self) -> None:
        """Close the connections, on the loop that made them."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self) -> Client:
        """The client, made with the first call: it belongs to the event loop that is running then."""
        from pytest_queryeval.predictors.http_client import Client

        if self._client is None:
            self._client = Client(self._name, self._headers, self._credentials, self._context)
        return self._client

    def _request(self, case: Case, trial: int) -> tuple[str, bytes | None, str]:
        values = {place: self._value(place, case, trial) for place in self._places if _is_known(place)}
        try:
            return with_parameters(self._url, self._params, values), *filled_body(self._body, values)
        except UnicodeEncodeError as error:
            raise PredictorError(f"'{case.id}' cannot be sent: it is no Unicode text ({error.reason})") from error

    def _value(self, place: str, case: Case, trial: int) -> Any:
        match place:
            case "question" | "id" | "evidence":
                return getattr(case, place)
            case "trial":
                return trial
            case "conversation":
                said = [(message.role, message.content) for message in case.conversation]
                return [{"role": role, "content": content} for role, content in said or [("user", case.question)]]
        name = place.removeprefix(METADATA)
        if name not in case.metadata:
            known = did_you_mean(name, case.metadata)
            raise PredictorError(f"'{case.id}' has no metadata '{name}', which `http` is to send{known}")
        return plain(case.metadata[name])


def open_http(spec: PredictorSpec) -> Predictor:
    """Open `{http: {url:, …}}`; nothing is sent before a case is predicted. Raises `PredictorError`."""
    try:
        check(spec.settings)
    except SettingError as error:
        raise PredictorError(f"the predictor 'http': {error}") from error
    hide_settings(spec.settings)
    return HTTPService(spec)


HTTP = PredictorType(opener=open_http, text_setting="url", check=check)
