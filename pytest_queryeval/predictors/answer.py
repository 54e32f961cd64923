"""What a system under test gave back, as what a prediction states."""

from __future__ import annotations

import inspect
import json
import sys
import sysconfig
import traceback
from asyncio import CancelledError, current_task
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import PredictorError, QueryEvalError, TimeLimitExceeded
from pytest_queryeval.core.model import Answer, Prediction, Stated
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.plain import one_line

MOST_FRAMES = 3
_FOREIGN = (str(Path(__file__).parent.parent), sysconfig.get_path("stdlib"), "<frozen")


def stated_answer(answer: object, kind: str) -> Stated:
    """Return an answer as text: itself, or a value as JSON where the kind's answers are values.

    Raises ValueError, whose text goes on after the name of who answered: "returned nothing (None)".
    """
    if isinstance(answer, str):
        return Stated(query=str.__str__(answer))
    if answer is None:
        raise ValueError('returned nothing (None): an empty answer is ""')
    if KINDS[kind].answer_type is Table:
        raise ValueError(f"returned {_kind(answer)}, not text")
    if not isinstance(answer, dict | list | int | float):
        raise ValueError(f"returned {_kind(answer)}, neither text nor a dict, a list or a number")
    try:
        return Stated(query=json.dumps(answer, ensure_ascii=False))
    except RecursionError:
        raise ValueError(f"returned {_kind(answer)} that nests too deep for JSON") from None
    except Exception as error:  # values of types of the user's own may raise anything
        raise ValueError(f"returned {_kind(answer)} that is no JSON{_where(answer)}: {one_line(str(error))}") from error


def prediction_of(answer: object, kind: str, *, by: str, predictor: str, seconds: float) -> Prediction:
    """Return what a function gave back: a `Prediction` as it is, or one of its answer; raises `PredictorError`.

    `by` is who answered, for messages; `predictor` and `seconds` are the prediction's where the function made none.
    """
    if isinstance(answer, Prediction):
        if _is_whole(answer):
            return answer
        wrong = "a Prediction that lacks a query's text or an answer under `stated`, or a text as `predictor`"
        raise PredictorError(f"{by} returned {wrong}")
    try:
        stated = stated_answer(answer, kind)
    except ValueError as error:
        is_more = isinstance(answer, dict | tuple) and KINDS[kind].answer_type is Table
        hint = ": return the query, or a `Prediction` to tell more than that" if is_more else ""
        raise PredictorError(f"{by} {error}{hint}") from error
    return Prediction(stated=stated, predictor=predictor, seconds=seconds)


@contextmanager
def wrap_predictor_errors(by: str, *, in_task: bool = False) -> Iterator[None]:
    """Make a `PredictorError` of whatever a user's function raises within the `with` statement, in its words.

    That includes `pytest.skip()` and its like: whether a case counts is not for the system under test to say.
    """
    try:
        yield
    except QueryEvalError:  # its own words, and whether another call may help
        raise
    except BaseException as error:
        if is_interrupt(error, in_task=in_task):
            raise
        text = f"{by} raised {type(error).__name__}: {error}{user_frames(traceback.extract_tb(error.__traceback__))}"
        raise PredictorError(text, temporary=isinstance(error, TimeoutError | ConnectionError)) from error


def is_interrupt(error: BaseException, *, in_task: bool = False) -> bool:
    """Return whether an exception out of a user's function is meant for who called it.

    That is Ctrl-C, the end of its time limit and `pytest.exit()`; in a task of an event loop, where no Ctrl-C arrives,
    its cancellation and `pytest.exit()`.
    """
    pytest = sys.modules.get("pytest")  # which the core does not need
    if pytest is not None and isinstance(error, pytest.exit.Exception):
        return True
    if in_task:
        return isinstance(error, CancelledError) or (isinstance(error, GeneratorExit) and not _runs_in_task())
    return isinstance(error, KeyboardInterrupt | TimeLimitExceeded)


def _runs_in_task() -> bool:
    """Return whether a task is at work here; a coroutine that is thrown away meets GeneratorExit outside of one."""
    try:
        return current_task() is not None
    except RuntimeError:  # no loop is running
        return False


def user_frames(frames: traceback.StackSummary) -> str:
    """Return the places in the user's own code: the last frames that are neither ours nor of a library, in brackets."""
    own = [
        frame for frame in frames if not frame.filename.startswith(_FOREIGN) and "site-packages" not in frame.filename
    ]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in own[-MOST_FRAMES:]]
    return f" ({' > '.join(places)})" if places else ""


def refuse_awaitable(answer: object, by: str, *, instead: str = "declare the function with `async def`") -> None:
    """Raise `PredictorError` for what should have been awaited, with what to do instead."""
    if not inspect.isawaitable(answer):
        return
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
    raise PredictorError(f"{by} returned {type(answer).__name__}: {instead}")


def _is_whole(prediction: Prediction) -> bool:
    """Return whether a prediction that a user made holds what its types say: Python does not check them."""
    stated: Any = prediction.stated
    if not isinstance(stated, Stated) or not isinstance(prediction.predictor, str):
        return False
    is_stated = isinstance(stated.query, str) if stated.answer is None else isinstance(stated.answer, Answer)
    return is_stated and isinstance(prediction.metadata, Mapping)


def _where(answer: object, *, levels: int = 20) -> str:
    """Return the path of the first value in an answer that JSON does not know."""
    steps: list[str] = []
    for _ in range(levels):
        found = _first_odd(answer)
        if found is None:
            break
        step, answer = found
        steps.append(step)
    return f" at ${''.join(steps)} ({_kind(answer)})" if steps else ""


def _first_odd(answer: object) -> tuple[str, object] | None:
    if type(answer) is dict:
        items = [(f".{one_line(str(key), 40)}", value) for key, value in answer.items()]
    elif type(answer) is list:
        items = [(f"[{index}]", value) for index, value in enumerate(answer)]
    else:
        return None
    return next(((step, value) for step, value in items if not _is_json(value)), None)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except Exception:  # noqa: BLE001 - values of types of the user's own may raise anything
        return False
    return True


def _kind(value: object) -> str:
    return type(value).__name__
