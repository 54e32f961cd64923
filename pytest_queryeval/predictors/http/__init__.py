"""A service behind HTTP as the system under test: one request a case, and the answer picked from what comes back."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.case_view import CaseView
from pytest_queryeval.core.errors import PredictorError, SettingError, did_you_mean
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.core.model import Prediction, PredictorSpec
from pytest_queryeval.http.template import placeholders, render_body, with_parameters
from pytest_queryeval.predictors import Predictor, PredictorType
from pytest_queryeval.predictors.answer import stated_answer
from pytest_queryeval.predictors.http.answers import Selector
from pytest_queryeval.predictors.http.settings import METADATA, body_of, check, is_known, sent
from pytest_queryeval.text.credentials import discreet
from pytest_queryeval.text.redaction import register_secrets

if TYPE_CHECKING:
    from pytest_queryeval.predictors.http.client import Client


class HTTPService:
    """Asks a service; its connections are kept for the next call."""

    concurrency = 8
    retries = 2

    def __init__(self, spec: PredictorSpec) -> None:
        from pytest_queryeval.predictors.http.client import credentials, trusted

        settings = spec.settings
        self._url = settings["url"]
        self._method = settings.get("method", "POST")
        self._params = settings.get("params", {})
        self._body = body_of(settings)
        self._headers = {name: str(text) for name, text in settings.get("headers", {}).items()}
        self._places = placeholders(self._params, self._body)
        self._shown = discreet(self._url)
        self._name = f"{self._method} {self._shown}"
        self._selector = Selector(self._name, settings.get("answer"), settings.get("metadata", {}))
        self._credentials = credentials(settings.get("auth"), self._headers, self._url)
        self._context = trusted(settings.get("verify", True), spec.folder)
        self._client: Client | None = None

    async def predict(self, case: CaseView, trial: int) -> Prediction:
        """Return what the service answers; raises `PredictorError`, temporary where another call may have an answer."""
        start = perf_counter()
        url, content, content_type = self._request(case, trial)
        reply = await self._connected().ask(self._method, url, content, content_type)
        seconds = perf_counter() - start
        answer, metadata = self._selector.selected(reply)
        try:
            stated = stated_answer(answer, case.kind)
        except ValueError as error:
            raise PredictorError(f"{self._name} {error}") from error
        return Prediction(stated=stated, predictor=self._shown, seconds=seconds, metadata=metadata)

    async def close(self) -> None:
        """Close the connections, on the loop that made them."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self) -> Client:
        """Return the client, made with the first call: it belongs to the event loop that is running then."""
        from pytest_queryeval.predictors.http.client import Client

        if self._client is None:
            self._client = Client(self._name, self._headers, self._credentials, self._context)
        return self._client

    def _request(self, case: CaseView, trial: int) -> tuple[str, bytes | None, str]:
        values = {place: self._value(place, case, trial) for place in self._places if is_known(place)}
        try:
            return with_parameters(self._url, self._params, values), *render_body(self._body, values)
        except UnicodeEncodeError as error:
            raise PredictorError(f"'{case.id}' cannot be sent: it is no Unicode text ({error.reason})") from error

    def _value(self, place: str, case: CaseView, trial: int) -> Any:
        match place:
            case "trial":
                return trial
            case "tags":
                return list(case.tags)
            case "conversation":
                said = [(message.role, message.content) for message in case.conversation]
                return [{"role": role, "content": content} for role, content in said or [("user", case.question)]]
        if not place.startswith(METADATA):
            return getattr(case, place) or ""
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
    register_secrets(spec.settings)
    return HTTPService(spec)


HTTP = PredictorType(opener=open_http, text_setting="url", check=check, shared=True, sends=sent)
