"""The predictor `http`: one request to a service for each case, and the answer selected from the response."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.errors import PredictorError, SettingError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue, to_jsonable
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Prediction, PredictorSpec, QueryOrAnswer
from pytest_queryeval.core.shapes import (
    TRUE_OR_FALSE,
    SettingValidator,
    is_mapping,
    is_text,
    pattern_shape,
    validate_settings,
)
from pytest_queryeval.core.steps import read_steps
from pytest_queryeval.documents.json_path import compiled, describe_document, read_json_with_duplicates, selected
from pytest_queryeval.predictors import SEND_SCHEMA, SURROUNDINGS, CaseView, Predictor, PredictorType
from pytest_queryeval.predictors.answer import ABSTAINED, PREDICTED, STEPS, read_answer, read_fields
from pytest_queryeval.sandbox.http_messages import (
    BodyError,
    bare_placeholders,
    decoded,
    is_body,
    placeholders,
    render_body,
    unreadable,
    with_parameters,
)
from pytest_queryeval.sandbox.http_settings import BODY, REQUEST
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import mask_credentials, register_secrets

DEFAULT_BODY = {name: f"{{{name}}}" for name in ("question", "id", "evidence")}
PLACEHOLDERS = ("question", "id", "evidence", "trial", "conversation", "kind", *sorted(SURROUNDINGS))
METADATA = "metadata."
SCHEMA = "schema"
SIBLING_SETTINGS = ("concurrency", "timeout", "retries", "abstain")
_PLACEHOLDER_IN_URL = re.compile(rf"\{{(?:{'|'.join(PLACEHOLDERS)}|metadata\.[^{{}}]+)\}}")
PROBLEM_CHARACTERS = 400
if TYPE_CHECKING:
    from pytest_queryeval.features.http_predictor.client import Client, Reply


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
        lambda value: is_mapping(value, is_value=_is_path),
        "a mapping from names to JSONPaths, such as {tokens: $.usage.total_tokens}",
        shape={"type": "object", "additionalProperties": _PATH},
    ),
    "steps": SettingValidator(_is_path, "a JSONPath (RFC 9535), such as $.steps", shape=_PATH),
    SEND_SCHEMA: TRUE_OR_FALSE,
}


def check(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for settings that are unknown, invalid or missing, or contradict each other."""
    for name in SIBLING_SETTINGS:
        if name in settings:
            raise SettingError(name, f"`{name}` belongs next to `http`: write {{http: …, {name}: …}}")
    validate_settings(settings, SETTINGS)
    if "url" not in settings:
        raise SettingError("url", "needs url")
    if placeholder := _PLACEHOLDER_IN_URL.search(settings["url"]):
        raise SettingError("url", f"`url` cannot contain placeholders: write {placeholder.group()} into `params`")
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
        raise SettingError(
            "body",
            "every case would send the same: write a placeholder in `body` or `params`, such as {q: '{question}'}",
        )


def is_known(name: str) -> bool:
    """Return whether a placeholder has this name."""
    return name in PLACEHOLDERS or name.startswith(METADATA)


def body_of(settings: Mapping[str, JsonValue]) -> Any:
    """Return the template of the request's body; None if there is no body.

    Without the setting `body`, a request other than GET sends DEFAULT_BODY. If the schema is to be sent and no
    placeholder does so, it is added to a mapping.
    """
    default = None if settings.get("method") == "GET" else DEFAULT_BODY
    body = settings.get("body", default)
    if (
        settings.get(SEND_SCHEMA)
        and isinstance(body, dict)
        and SCHEMA not in placeholders(settings.get("params"), body)
    ):
        return {SCHEMA: f"{{{SCHEMA}}}", **body}
    return body


def sent_surroundings(settings: Mapping[str, JsonValue]) -> frozenset[str]:
    """Return which of SURROUNDINGS the placeholders send next to the question."""
    return SURROUNDINGS & placeholders(settings.get("params"), body_of(settings))


class Selector:
    """Selects the answer, the steps and the metadata from a service's response, by the given JSONPaths.

    `name` is the service's name in messages. Without `answer`, the answer is a plain text, a JSON string, or the member
    `predicted` of an object. The object's other members are steps and metadata. An object with `"abstained": true` is
    always an abstention.
    """

    def __init__(self, name: str, answer: str | None, metadata: Mapping[str, str], steps: str | None = None) -> None:
        self._name = name
        self._answer = answer
        self._metadata = dict(metadata)
        self._steps = steps

    def select(self, reply: Reply, kind: str) -> Prediction:
        """Return the prediction in a response to a case of the given kind; raise `PredictorError` if there is none.

        A metadata path that selects nothing is left out; a path that selects several values gives a list.
        """
        if self._answer is None and reply.content_type == "text/plain":
            try:
                return Prediction(QueryOrAnswer(query=decoded(reply.body, reply.charset)))
            except BodyError as error:
                raise self._problem(f"the answer {error}") from error
        document = self._read(reply)
        if self._steps is None:
            is_whole = self._answer is None and isinstance(document, dict)
            steps = read_steps(document.get(STEPS), by=self._name) if is_whole else None
        else:
            matches = self._all(self._steps, document)
            selected_steps = matches[0] if len(matches) == 1 and not isinstance(matches[0], dict) else matches
            steps = read_steps(selected_steps, by=self._name) if matches else None
        if isinstance(document, dict) and document.get(ABSTAINED) is True:
            abstention = read_fields({**document, STEPS: None}, kind, by=self._name)
            content, metadata = abstention.content, {**abstention.metadata} if self._answer is None else {}
        else:
            answer, metadata = self._answer_in(document)
            if answer is None:
                answer_path = f"`answer` ({self._answer})" if self._answer else PREDICTED
                raise self._problem(f'{answer_path} is null, which is not an answer: an empty one is ""')
            content = read_answer(answer, kind, by=self._name)
        for name, path in self._metadata.items():
            if values := self._all(path, document):
                metadata[name] = values[0] if len(values) == 1 else values
        return Prediction(content, steps=steps, metadata=to_jsonable(metadata))

    def _read(self, reply: Reply) -> Any:
        try:
            document, repeating = read_json_with_duplicates(reply.body)
        except ValueError as error:
            problem = unreadable(reply.content_type, reply.body, error, expected="JSON")
            # Another call may bring the rest of an answer that was cut; NaN, for example, would be sent again.
            is_cut = isinstance(error, json.JSONDecodeError) or (
                isinstance(error, UnicodeDecodeError) and error.reason == "unexpected end of data"
            )
            temporary = is_cut and "html" not in reply.content_type
            raise self._problem(one_line(problem, PROBLEM_CHARACTERS), temporary=temporary) from error
        if repeating:
            name = one_line(repeating[0].duplicate_name, 40)
            raise self._problem(f"the answer is not valid JSON: an object has two members '{name}'")
        return document

    def _answer_in(self, document: Any) -> tuple[JsonValue, dict[str, JsonValue]]:
        """Return the answer in a document, and the metadata next to it; raise `PredictorError` if it is not unique.

        Metadata are the other members of an object with `predicted`; with a path for the answer there are none.
        """
        if self._answer is not None:
            matches = self._all(self._answer, document)
            if len(matches) == 1:
                return matches[0], {}
            many = f"selects {len(matches):,} values, not one," if matches else "selects nothing"
            hint = "" if matches else _nested_path(self._answer, document)
            raise self._problem(f"`answer` ({self._answer}) {many} of {_shape(document)}{hint}")
        if isinstance(document, str):
            return document, {}
        if isinstance(document, dict) and PREDICTED in document:
            metadata = excluding(document, (PREDICTED, ABSTAINED, STEPS))
            return document[PREDICTED], metadata
        raise self._problem(f"which part is the answer? `answer:` takes a JSONPath into {_shape(document)}")

    def _all(self, path: str, document: Any) -> list[Any]:
        try:
            return selected(path, document)
        except ValueError as error:
            raise self._problem(one_line(str(error))) from error
        except RecursionError:
            raise self._problem(f"`{path}` cannot be followed: the answer is nested too deeply") from None

    def _problem(self, text: str, *, temporary: bool = False) -> PredictorError:
        return PredictorError(f"{self._name}: {text}", temporary=temporary)


def _shape(document: Any) -> str:
    return one_line(describe_document(document), 300)


def _nested_path(path: str, document: Any) -> str:
    """Return a hint if the member that a path such as `$.sql` names is one level deeper, in one place; else empty."""
    name = path.removeprefix("$.")
    members = document.items() if isinstance(document, dict) else ()
    outer_names = [outer for outer, member in members if isinstance(member, dict) and name in member]
    is_hint = len(outer_names) == 1 and outer_names[0].isidentifier()
    return f": did you mean '$.{one_line(outer_names[0], 40)}.{name}'?" if is_hint else ""


class HTTPService:
    """The predictor that asks an HTTP service; connections are kept for later calls."""

    concurrency = 8
    retries = 2

    def __init__(self, spec: PredictorSpec) -> None:
        from pytest_queryeval.features.http_predictor.client import credentials, trusted

        settings = spec.settings
        self._url = settings["url"]
        self._method = settings.get("method", "POST")
        self._params = settings.get("params", {})
        self._body = body_of(settings)
        self._headers = {name: str(text) for name, text in settings.get("headers", {}).items()}
        self._placeholders = placeholders(self._params, self._body)
        self._shown = mask_credentials(self._url)
        self._name = f"{self._method} {self._shown}"
        self._selector = Selector(
            self._name, settings.get("answer"), settings.get("metadata", {}), settings.get("steps")
        )
        self._credentials = credentials(settings.get("auth"), self._headers, self._url)
        self._context = trusted(settings.get("verify", True), spec.folder)
        self._client: Client | None = None

    async def predict(self, case: CaseView, trial: int) -> Prediction:
        """Send a case, and return the service's answer with the seconds that it took.

        Raise `PredictorError`; it is temporary if another call may have an answer.
        """
        from pytest_queryeval.features.http_predictor.client import Client

        start = perf_counter()
        values = {name: self._value(name, case, trial) for name in self._placeholders if is_known(name)}
        try:
            url = with_parameters(self._url, self._params, values)
            content, content_type = render_body(self._body, values)
        except UnicodeEncodeError as error:
            raise PredictorError(f"'{case.id}' cannot be sent: it is not Unicode text ({error.reason})") from error
        if self._client is None:  # it belongs to the event loop of the first call
            self._client = Client(self._name, self._headers, self._credentials, self._context)
        reply = await self._client.ask(self._method, url, content, content_type)
        seconds = perf_counter() - start
        return replace(self._selector.select(reply, case.kind), predictor=self._shown, seconds=seconds)

    async def close(self) -> None:
        """Close the connections; call this on the event loop of the calls."""
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
            raise PredictorError(f"'{case.id}' has no metadata '{key}', which `http` should send{hint}")
        return to_jsonable(case.metadata[key])


def open_http(spec: PredictorSpec) -> Predictor:
    """Return the predictor of `{http: {url:, …}}`; nothing is sent before a case is predicted.

    Credentials in the settings are registered as secrets. Raise `PredictorError` for invalid settings.
    """
    try:
        check(spec.settings)
    except SettingError as error:
        raise PredictorError(f"the predictor 'http': {error}") from error
    register_secrets(spec.settings)
    return HTTPService(spec)


HTTP = PredictorType(
    opener=open_http, text_setting="url", check=check, settings=SETTINGS, shared=True, sends=sent_surroundings
)
