"""Answers of systems under test as predictions, and the errors of their functions."""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import UnionType

from pytest_queryeval.core.errors import PredictorError, QueryEvalError, without_advice
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import SECONDS_RULE, Abstention, Answer, Prediction, QueryOrAnswer, is_seconds
from pytest_queryeval.core.process import is_interruption, running_task
from pytest_queryeval.core.steps import read_steps
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.strict_json import StrictJson
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line

MAX_FRAMES = 3
MAX_LEVELS = 20  # of a path to a value that JSON cannot hold
_QUERY_FIELDS = ("predicted", "sql", "query", "sparql", "answer", "text", "content", "output", "output_text")
_LIBRARIES = (str(Path(__file__).parent.parent), str(Path(inspect.__file__).parent), "<frozen")
_TEMPORARY = ("ConnectError", "ConnectionError", "Timeout", "TimeoutError", "TimeoutException")  # ends of names
PREDICTED = "predicted"
ABSTAINED = "abstained"
REASON = "reason"
STEPS = "steps"
JSON = StrictJson(allow_nan=True)  # metadata may hold NaN, as Python writes it


def read_abstention(fields: Mapping[str, JsonValue], *, by: str) -> Abstention | None:
    """Return the abstention of an object with `"abstained": true`; None for any other object.

    Raises `PredictorError` if `abstained` or `reason` has the wrong type, or if there is a prediction too. `by` says in
    messages who gave the object.
    """
    is_abstention, stated_reason = fields.get(ABSTAINED, False), fields.get(REASON)
    if not isinstance(is_abstention, bool):
        raise PredictorError(f"{by} has an `{ABSTAINED}` that is neither true nor false")
    if not is_abstention:
        return None
    if fields.get(PREDICTED) not in (None, ""):
        raise PredictorError(f"{by} has `{PREDICTED}` and `{ABSTAINED}`: true, which stands instead of it")
    if stated_reason is not None and not isinstance(stated_reason, str):
        raise PredictorError(f"{by} has a `{REASON}` to abstain that is not text")
    return Abstention(stated_reason or "")


def read_fields(fields: Mapping[str, JsonValue], kind: str, *, by: str) -> Prediction:
    """Return the prediction that an object with `predicted`, or with `"abstained": true`, states.

    Members other than the answer, `steps` and the reason to abstain become metadata. Raises `PredictorError` for an
    invalid answer or step. `by` says in messages who gave the object.
    """
    abstention = read_abstention(fields, by=by)
    read_names = {PREDICTED, ABSTAINED, STEPS, *([] if abstention is None else [REASON])}
    metadata = excluding(fields, read_names)
    content = abstention or read_answer(fields[PREDICTED], kind, by=by)
    return Prediction(content, steps=read_steps(fields.get(STEPS), by=by), metadata=metadata)


def read_answer(answer: object, kind: str, *, by: str) -> QueryOrAnswer:
    """Return an answer as a query's text: a text as it is, other values as JSON.

    Raises `PredictorError` for None, for values that JSON cannot contain, and for anything but text if the answers of
    the kind are tables. `by` says in messages who gave the answer.
    """
    if isinstance(answer, str):
        return QueryOrAnswer(query=str.__str__(answer))
    if answer is None:
        raise PredictorError(f'{by} returned nothing (None): is a `return` missing? An empty answer is ""')
    returned = f"{by} returned {type(answer).__name__}"
    if KINDS[kind].answer_type is Table:
        raise PredictorError(f"{returned}, not text")
    if not isinstance(answer, dict | list | int | float):
        raise PredictorError(f"{returned}, neither text nor a dict, a list or a number: return one of them")
    try:
        return QueryOrAnswer(query=json.dumps(answer, ensure_ascii=False))
    except RecursionError:
        raise PredictorError(f"{returned} that is nested too deeply for JSON") from None
    except Exception as error:  # values of types of the user's own may raise anything
        problem = one_line(without_advice(error))
        raise PredictorError(f"{returned} that is not JSON{_invalid_part(answer)}: {problem}") from error


def prediction_of(answer: object, kind: str, *, by: str, predictor: str, seconds: float) -> Prediction:
    """Return what a user's function returned as a prediction; raises `PredictorError` if it cannot be one.

    `predictor` and `seconds`, the wall time of the call, fill a prediction that does not state them. `by` says in
    messages who answered.
    """
    if isinstance(answer, Prediction):
        named = replace(answer, predictor=answer.predictor or predictor, seconds=answer.seconds or seconds)
        return read_prediction(named, kind, by=by)
    content = answer if isinstance(answer, Abstention) else _read_returned(answer, kind, by=by)
    return Prediction(content, predictor=predictor, seconds=seconds)


def read_prediction(prediction: Prediction, kind: str, *, by: str) -> Prediction:
    """Return a user's `Prediction` with its answer as a `QueryOrAnswer` or `Abstention`.

    Raises `PredictorError` for a field of the wrong type. `by` says in messages who returned the prediction.
    """
    _check_fields(prediction, by=by)
    if isinstance(prediction.answer, QueryOrAnswer | Abstention):
        return prediction
    return replace(prediction, answer=_read_returned(prediction.answer, kind, by=by))


def _read_returned(answer: object, kind: str, *, by: str) -> QueryOrAnswer:
    """Return an answer as `read_answer` does.

    If the kind's answers are tables, an error says which part of the answer may be the query.
    """
    try:
        return read_answer(answer, kind, by=by)
    except PredictorError as error:
        if answer is None or KINDS[kind].answer_type is not Table:
            raise
        fields = answer if isinstance(answer, dict) else getattr(answer, "__dict__", {})
        name = next((name for name in _QUERY_FIELDS if isinstance(fields.get(name), str)), "")
        form = f"its `['{name}']`" if isinstance(answer, dict) else f"its `.{name}`"
        remedy = f"return {form if name else 'the query'}, or a `Prediction` to add seconds and metadata"
        raise PredictorError(f"{error}: {remedy}") from error


@contextmanager
def wrap_predictor_errors(by: str, *, in_task: bool = False) -> Iterator[None]:
    """Turn any error that a user's function raises within the `with` statement into `PredictorError`.

    That includes `pytest.skip()` and similar errors: the system under test does not decide whether a case counts.
    Interruptions and this package's own errors pass through. `in_task` says that the function runs in a task.
    """
    task = running_task() if in_task else None
    try:
        yield
    except QueryEvalError:  # with a message of its own, and whether another call may help
        raise
    except BaseException as error:
        if is_interruption(error, task=task):
            raise
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):  # as of a TaskGroup
            first = first.exceptions[0]
        within = "" if first is error else f": {type(first).__name__}: {first}"
        frames = user_frames(traceback.extract_tb(error.__traceback__))
        text = f"{by} raised {type(error).__name__}: {error}{within}{frames}"
        temporary, pause = _may_pass(first)
        raise PredictorError(text, temporary=temporary, pause=pause) from error


def _may_pass(error: BaseException) -> tuple[bool, float]:
    """Return whether another call may succeed after a function's error, and how many seconds to wait before it.

    An HTTP status decides, if the error or its response has one. Otherwise the names of the error's classes decide:
    those of connections and time limits are temporary.
    """
    status, headers = None, None
    with suppress(Exception):  # attributes of a class of the user's may raise anything
        response = getattr(error, "response", None)
        owner = error if response is None else response  # a response of requests is false for a status of 400 or more
        status, headers = getattr(owner, "status_code", None), getattr(owner, "headers", None)
    if isinstance(status, int) and status >= 100:
        from pytest_queryeval.sandbox.http_messages import is_temporary, retry_after

        pause = 0.0
        with suppress(Exception):  # headers may be anything, too
            pause = retry_after(headers) if is_temporary(status) and isinstance(headers, Mapping) else 0.0
        return is_temporary(status), pause
    return any(base.__name__.endswith(_TEMPORARY) for base in type(error).__mro__), 0.0


def user_frames(frames: traceback.StackSummary) -> str:
    """Return the last places in the user's code, in brackets; empty if all frames are of this package or libraries."""
    user_code = [
        frame for frame in frames if not frame.filename.startswith(_LIBRARIES) and "site-packages" not in frame.filename
    ]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in user_code[-MAX_FRAMES:]]
    return f" ({' > '.join(places)})" if places else ""


def refuse_awaitable(answer: object, by: str, *, instead: str = "declare the function with `async def`") -> None:
    """Raise `PredictorError` for an answer that must be awaited, with the remedy `instead`; close a coroutine.

    Any other answer passes.
    """
    if not inspect.isawaitable(answer):
        return
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
    raise PredictorError(f"{by} returned {type(answer).__name__}: {instead}")


def _check_fields(prediction: Prediction, *, by: str) -> None:
    """Raise `PredictorError` for the first field of a user's `Prediction` with a wrong type or invalid seconds."""
    content = prediction.answer
    answer = getattr(content, "answer", None)
    form = "a text, a dict, a list, a number, an Abstention or a QueryOrAnswer"
    fields: tuple[tuple[str, object, type | UnionType, str], ...] = (
        ("predictor", prediction.predictor, str, "text"),
        ("metadata", prediction.metadata, Mapping, "a mapping"),
        ("steps", prediction.steps, list | tuple | None, "a list of Step"),
        ("answer", content, QueryOrAnswer | Abstention | str | dict | list | int | float, form),
        ("answer.reason", getattr(content, "reason", ""), str, "text"),
        ("answer.query", getattr(content, "query", "") if answer is None else "", str, "text"),
        ("answer.answer", answer, Answer | None, "an answer such as a Table"),
    )
    for name, value, types, expected in fields:
        if not isinstance(value, types):
            raise PredictorError(f"{by} returned a Prediction whose `{name}` is {type(value).__name__}, not {expected}")
    if not is_seconds(prediction.seconds):
        raise PredictorError(f"{by} returned a Prediction whose `seconds` is not {SECONDS_RULE}")


def _invalid_part(answer: object, path: str = "", levels: int = MAX_LEVELS) -> str:
    """Return ` at $PATH (TYPE)` for the first value within an answer that JSON cannot contain.

    Empty if there is none, or if the answer itself is that value. `path` and `levels` are for nested calls.
    """
    with suppress(Exception):  # values of types of the user's own may raise anything
        json.dumps(answer)
        return ""
    items: Iterable[tuple[str, object]] = ()
    if type(answer) is dict and levels:
        items = ((f".{one_line(str(key), 40)}", value) for key, value in answer.items())
    elif type(answer) is list and levels:
        items = ((f"[{index}]", value) for index, value in enumerate(answer))
    parts = (_invalid_part(value, path + step, levels - 1) for step, value in items)
    return next(filter(None, parts), f" at ${path} ({type(answer).__name__})" if path else "")
