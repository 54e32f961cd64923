"""The answer and the metadata in the response of a service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.json_path import selected
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.jsonable import to_jsonable
from pytest_queryeval.http.answers import read_json, shape
from pytest_queryeval.http.messages import unreadable
from pytest_queryeval.predictors.entries import PREDICTED
from pytest_queryeval.text.truncation import one_line

PROBLEM_CHARACTERS = 400


class Reply(NamedTuple):
    """A complete response with success."""

    kind: str
    """The content type in lower case, without parameters."""
    charset: str
    body: bytes


class Selector:
    """Selects the answer by the JSONPath `answer`, and metadata by one path for each name.

    `name` is the service's in messages. Without `answer` the answer is a plain text, a text in JSON, or the member
    `predicted` of an object, whose other members are metadata.
    """

    def __init__(self, name: str, answer: str | None, metadata: Mapping[str, str]) -> None:
        self._name = name
        self._answer = answer
        self._metadata = dict(metadata)

    def select(self, reply: Reply) -> tuple[JsonValue, dict[str, JsonValue]]:
        """Return the answer, never None, and the metadata as plain values; raises `PredictorError`."""
        if self._answer is None and reply.kind == "text/plain":
            try:
                return reply.body.decode(reply.charset).removeprefix("\ufeff"), {}
            except ValueError as error:
                raise self._problem(f"the answer is no text: {one_line(str(error))}") from error
        document = self._read(reply)
        answer, metadata = self._answer_in(document)
        if answer is None:
            answer_path = f"`answer` ({self._answer})" if self._answer else PREDICTED
            raise self._problem(f'{answer_path} is null, which is no answer: an empty one is ""')
        for name, path in self._metadata.items():
            if values := self._all(path, document):
                metadata[name] = values[0] if len(values) == 1 else values
        return answer, to_jsonable(metadata)

    def _read(self, reply: Reply) -> Any:
        try:
            document, repeating = read_json(reply.body)
        except ValueError as error:
            problem = unreadable(reply.kind, reply.body, error, expected="JSON")
            # Another call may bring the rest of an answer that was cut; NaN, for example, would be sent again.
            is_cut = isinstance(error, json.JSONDecodeError) or (
                isinstance(error, UnicodeDecodeError) and error.reason == "unexpected end of data"
            )
            temporary = is_cut and "html" not in reply.kind
            raise self._problem(one_line(problem, PROBLEM_CHARACTERS), temporary=temporary) from error
        if repeating:
            name = one_line(repeating[0].duplicate_name, 40)
            raise self._problem(f"the answer is no whole JSON: an object has two members '{name}'")
        return document

    def _answer_in(self, document: Any) -> tuple[JsonValue, dict[str, JsonValue]]:
        """Return the answer, and the other members of an object with `predicted`."""
        if self._answer is not None:
            matches = self._all(self._answer, document)
            if len(matches) == 1:
                return matches[0], {}
            many = f"selects {len(matches):,} values, not one," if matches else "selects nothing"
            raise self._problem(f"`answer` ({self._answer}) {many} of {_shape(document)}")
        if isinstance(document, str):
            return document, {}
        if isinstance(document, dict) and PREDICTED in document:
            return document[PREDICTED], {name: value for name, value in document.items() if name != PREDICTED}
        raise self._problem(f"which part is the answer? `answer:` takes a JSONPath into {_shape(document)}")

    def _all(self, path: str, document: Any) -> list[Any]:
        try:
            return selected(path, document)
        except ValueError as error:
            raise self._problem(one_line(str(error))) from error
        except RecursionError:
            raise self._problem(f"`{path}` cannot be followed: the answer nests too deep") from None

    def _problem(self, text: str, *, temporary: bool = False) -> PredictorError:
        return PredictorError(f"{self._name}: {text}", temporary=temporary)


def _shape(document: Any) -> str:
    return one_line(shape(document), 300)
