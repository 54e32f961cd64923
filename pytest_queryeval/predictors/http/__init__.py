"""An HTTP service as the system under test: one request for each case, and the answer selected from the response."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.case_view import CaseView
from pytest_queryeval.core.errors import PredictorError, SettingError, did_you_mean
from pytest_queryeval.core.jsonable import to_jsonable
from pytest_queryeval.core.model import Prediction, PredictorSpec
from pytest_queryeval.http.template import placeholders, render_body, with_parameters
from pytest_queryeval.predictors import Predictor, PredictorType
from pytest_queryeval.predictors.answer import read_answer
from pytest_queryeval.predictors.http.answers import Selector
from pytest_queryeval.predictors.http.settings import METADATA, SETTINGS, body_of, check, is_known, sent_surroundings
from pytest_queryeval.text.credentials import mask_credentials
from pytest_queryeval.text.redaction import register_secrets

if TYPE_CHECKING:
    from pytest_queryeval.predictors.http.client import Client


class HTTPService:
    """Sends requests to a service; connections are kept for the next call."""

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
        self._placeholders = placeholders(self._params, self._body)
        self._shown = mask_credentials(self._url)
        self._name = f"{self._method} {self._shown}"
        self._selector = Selector(self._name, settings.get("answer"), settings.get("metadata", {}))
        self._credentials = credentials(settings.get("auth"), self._headers, self._url)
        self._context = trusted(settings.get("verify", True), spec.folder)
        self._client: Client | None = None

    async def predict(self, case: CaseView, trial: int) -> Prediction:
        """Return the service's answer; raises `PredictorError`, temporary where another call may have an answer."""
        from pytest_queryeval.predictors.http.client import Client

        start = perf_counter()
        values = {name: self._value(name, case, trial) for name in self._placeholders if is_known(name)}
        try:
            url = with_parameters(self._url, self._params, values)
            content, content_type = render_body(self._body, values)
        except UnicodeEncodeError as error:
            raise PredictorError(f"'{case.id}' cannot be sent: it is no Unicode text ({error.reason})") from error
        if self._client is None:  # it belongs to the event loop of the first call
            self._client = Client(self._name, self._headers, self._credentials, self._context)
        reply = await self._client.ask(self._method, url, content, content_type)
        seconds = perf_counter() - start
        answer, metadata = self._selector.select(reply)
        prediction_content = read_answer(answer, case.kind, by=self._name)
        return Prediction(content=prediction_content, predictor=self._shown, seconds=seconds, metadata=metadata)

    async def close(self) -> None:
        """Close the connections, on the loop that made them."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _value(self, name: str, case: CaseView, trial: int) -> Any:
        match name:
            case "trial":
                return trial
            case "tags":
                return list(case.tags)
            case "conversation":
                messages = [(message.role, message.content) for message in case.conversation]
                return [{"role": role, "content": text} for role, text in messages or [("user", case.question)]]
        if not name.startswith(METADATA):
            return getattr(case, name) or ""
        key = name.removeprefix(METADATA)
        if key not in case.metadata:
            hint = did_you_mean(key, case.metadata)
            raise PredictorError(f"'{case.id}' has no metadata '{key}', which `http` is to send{hint}")
        return to_jsonable(case.metadata[key])


def open_http(spec: PredictorSpec) -> Predictor:
    """Open `{http: {url:, …}}`; nothing is sent before a case is predicted. Raises `PredictorError`."""
    try:
        check(spec.settings)
    except SettingError as error:
        raise PredictorError(f"the predictor 'http': {error}") from error
    register_secrets(spec.settings)
    return HTTPService(spec)


HTTP = PredictorType(
    opener=open_http, text_setting="url", check=check, settings=SETTINGS, shared=True, sends=sent_surroundings
)
