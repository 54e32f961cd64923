"""What a system under test gave back, as what a prediction states."""

from __future__ import annotations

import inspect
import json
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_queryeval.errors import PredictorError
from pytest_queryeval.metric import TABLE_KINDS
from pytest_queryeval.model import Answer, Case, Prediction, Stated
from pytest_queryeval.plain import one_line

MOST_FRAMES = 3
_FOREIGN = (str(Path(__file__).parent.parent), sysconfig.get_path("stdlib"), "<frozen")


def stated_answer(answer: object, case: Case) -> Stated:
    """An answer as text: itself, or a value as JSON where the case's answers are values.

    Raises ValueError, whose text goes on after the name of who answered: "returned nothing (None)".
    """
    if isinstance(answer, str):
        return Stated(query=str.__str__(answer))
    if answer is None:
        raise ValueError('returned nothing (None): an empty answer is ""')
    if case.kind in TABLE_KINDS:
        raise ValueError(f"returned {_kind(answer)}, not text")
    if not isinstance(answer, dict | list | int | float):
        raise ValueError(f"returned {_kind(answer)}, neither text nor a dict, a list or a number")
    try:
        return Stated(query=json.dumps(answer, ensure_ascii=False))
    except RecursionError:
        raise ValueError(f"returned {_kind(answer)} that nests too deep for JSON") from None
    except Exception as error:  # values of types of the user's own may raise anything
        raise ValueError(f"returned {_kind(answer)} that is no JSON{_where(answer)}: {one_line(str(error))}") from error


def prediction_of(answer: object, case: Case, *, by: str, predictor: str, seconds: float) -> Prediction:
    """What a function gave back: a `Prediction` as it is, or one of its answer; raises `PredictorError`.

    `by` is who answered, for messages; `predictor` and `seconds` are the prediction's where the function made none.
    """
    if isinstance(answer, Prediction):
        if _is_whole(answer):
            return answer
        wrong = "a Prediction that lacks a query's text or an answer under `stated`, or a text as `predictor`"
        raise PredictorError(f"{by} returned {wrong}")
    try:
        stated = stated_answer(answer, case)
    except ValueError as error:
        is_more = isinstance(answer, dict | tuple) and case.kind in TABLE_KINDS
        hint = ": return the query, or a `Prediction` to tell more than that" if is_more else ""
        raise PredictorError(f"{by} {error}{hint}") from error
    return Prediction(stated=stated, predictor=predictor, seconds=seconds)


@contextmanager
def answering(by: str) -> Iterator[None]:
    """Around a function of the user's: whatever it raises is the case's error, in its words."""
    try:
        yield
    except PredictorError:  # its own words, and whether another call may help
        raise
    except (Exception, SystemExit) as error:
        text = f"{by} raised {type(error).__name__}: {error}{_frames(error)}"
        raise PredictorError(text, temporary=isinstance(error, TimeoutError | ConnectionError)) from error


def _frames(error: BaseException) -> str:
    """Where in the user's own code an error came from: the last frames that are neither ours nor of a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame for frame in frames if not frame.filename.startswith(_FOREIGN) and "site-packages" not in frame.filename
    ]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in own[-MOST_FRAMES:]]
    return f" ({' > '.join(places)})" if places else ""


def _is_foreign(file: str) -> bool:
    return file.startswith(_FOREIGN) or "site-packages" in file


def refuse_awaitable(answer: object, by: str, *, instead: str = "declare the function with `async def`") -> None:
    """Raise `PredictorError` for what should have been awaited, with what to do instead."""
    if not inspect.isawaitable(answer):
        return
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
    raise PredictorError(f"{by} returned {type(answer).__name__}: {instead}")


def _is_whole(prediction: Prediction) -> bool:
    """Whether a prediction that a user made holds what its types say: Python does not check them."""
    stated: Any = prediction.stated
    if not isinstance(stated, Stated) or not isinstance(prediction.predictor, str):
        return False
    is_stated = isinstance(stated.query, str) if stated.answer is None else isinstance(stated.answer, Answer)
    return is_stated and isinstance(prediction.metadata, Mapping)


def _where(answer: object, *, levels: int = 20) -> str:
    """The path of the first value in an answer that JSON does not know."""
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
