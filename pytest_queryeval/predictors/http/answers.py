"""The answer, and what else is told, in what a service sent back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.json_path import selected
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.http.answers import DUPLICATE_MARK, read_json, shape
from pytest_queryeval.http.messages import message
from pytest_queryeval.predictors.entries import PREDICTED
from pytest_queryeval.text.plain import one_line

WEB_PAGES = ("text/html", "application/xhtml+xml")


class Reply(NamedTuple):
    """A whole answer with success; `kind` is its content type in lower case, without parameters."""

    kind: str
    charset: str
    body: bytes


class Selector:
    """Picks the answer with the JSONPath `answer`, and metadata with one path for each name.

    `name` is what messages call the service. Without `answer` the answer is a plain text, a text in JSON, or the member
    `predicted` of an object, whose other members are metadata.
    """

    def __init__(self, name: str, answer: str | None, metadata: Mapping[str, str]) -> None:
        self._name = name
        self._answer = answer
        self._metadata = dict(metadata)

    def selected(self, reply: Reply) -> tuple[Any, dict[str, Any]]:
        """Return the answer, never None, and the metadata as plain values; raises `PredictorError`."""
        if self._answer is None and reply.kind == "text/plain":
            return self._text(reply), {}
        document = self._document(reply)
        answer, told = self._picked(document)
        if answer is None:
            where = f"`answer` ({self._answer})" if self._answer else PREDICTED
            raise self._problem(f'{where} is null, which is no answer: an empty one is ""')
        return answer, plain({**told, **self._further(document)})

    def _picked(self, document: Any) -> tuple[Any, dict[str, Any]]:
        if self._answer is not None:
            return self._only(self._all(self._answer, document), document), {}
        if isinstance(document, str):
            return document, {}
        if isinstance(document, dict) and PREDICTED in document:
            return document[PREDICTED], {name: value for name, value in document.items() if name != PREDICTED}
        raise self._problem(f"which part is the answer? `answer:` takes a JSONPath into {_shape(document)}")

    def _only(self, found: list[Any], document: Any) -> Any:
        if len(found) == 1:
            return found[0]
        many = f"selects {len(found):,} values, not one," if found else "selects nothing"
        raise self._problem(f"`answer` ({self._answer}) {many} of {_shape(document)}")

    def _further(self, document: Any) -> dict[str, Any]:
        """One value a name, or a list of them where its path selects several; none where it selects nothing."""
        found = {name: self._all(path, document) for name, path in self._metadata.items()}
        return {name: values[0] if len(values) == 1 else values for name, values in found.items() if values}

    def _all(self, path: str, document: Any) -> list[Any]:
        try:
            return selected(path, document)
        except ValueError as error:
            raise self._problem(one_line(str(error))) from error
        except RecursionError:
            raise self._problem(f"`{path}` cannot be followed: the answer nests too deep") from None

    def _text(self, reply: Reply) -> str:
        try:
            return reply.body.decode(reply.charset).removeprefix("\ufeff")
        except ValueError as error:
            raise self._problem(f"the answer is no text: {one_line(str(error))}") from error

    def _document(self, reply: Reply) -> Any:
        found = f"{one_line(reply.kind, 60) or 'no content type'}, {len(reply.body):,} bytes"
        try:
            document, repeating = read_json(reply.body)
        except ValueError as error:
            said = one_line(message(reply.kind, reply.body))
            if reply.kind in WEB_PAGES:
                raise self._problem(f"a web page came back: is `url` that of the service? ({found}{said})") from error
            problem = f"the answer is no whole JSON: {one_line(str(error))} ({found}{said})"
            raise self._problem(problem, temporary=_may_be_cut(error)) from error
        if repeating:
            name = next(name for name in repeating[0] if DUPLICATE_MARK in name).partition(DUPLICATE_MARK)[0]
            raise self._problem(f"the answer is no whole JSON: an object has two members '{one_line(name, 40)}'")
        return document

    def _problem(self, text: str, *, temporary: bool = False) -> PredictorError:
        return PredictorError(f"{self._name}: {text}", temporary=temporary)


def _shape(document: Any) -> str:
    return one_line(shape(document), 300)


def _may_be_cut(error: ValueError) -> bool:
    """Return whether another call may bring the rest; what is written wrongly, such as NaN, is written so again."""
    if isinstance(error, UnicodeDecodeError):
        return error.reason == "unexpected end of data"
    return isinstance(error, json.JSONDecodeError)
