"""What a run shows without gold: valid queries, terms that the source has, times, numbers that the system reports."""

from __future__ import annotations

import math
from functools import partial

from pytest_queryeval.core.metric import Score, UnknownTerms, metric
from pytest_queryeval.core.model import Abstention, Execution, Prediction
from pytest_queryeval.core.steps import count_steps, step_json
from pytest_queryeval.text.formatting import one_line

NAME_CHARACTERS = 80
_resource = partial(metric, answers=None, input="predictions", max_score=math.inf, better="lower", group="resources")


@metric(answers=None, input="executions", criterion="answer")
def valid_query(gold: Execution, predicted: Execution) -> float:
    """Return 1 if the predicted query has any answer; 0 if it fails: it is invalid, unsafe, too slow or too large.

    The score is also 0 for an answer that breaks the JSON Schema of its case, or names something that the SDMX
    structure lacks, and for an abstention or a missing prediction.
    """
    return float(predicted.error is None and not predicted.violations)


@metric(answers=None, input="predictions", criterion="abstention")
def abstention(predicted: Execution, prediction: Prediction) -> float:
    """Return 1 if the system abstains, else 0; only for cases with `answerable: false`."""
    return float(isinstance(prediction.content, Abstention))


@metric(input="predictions", kinds=frozenset({"sparql"}))
def known_terms(predicted: Execution, prediction: Prediction, *, unknown_terms: UnknownTerms) -> Score:
    """Return 1 if every IRI that a pattern of predicted has to match occurs in the source's data, else 0.

    A note names each IRI that does not occur, with the nearest IRI that does. Parts in OPTIONAL, MINUS, NOT EXISTS and
    single arms of UNION do not have to match; of VALUES and IN, one IRI of the list has to occur. Variables, datatypes,
    functions, graphs, and the IRIs of other filters, BIND and templates do not count. The score is None for
    an answer without a query, for a query that cannot be parsed, and if the source does not answer a lookup.
    """
    is_invalid = predicted.error is not None and predicted.error.kind == "invalid"
    sentences = None if predicted.query is None or is_invalid else unknown_terms(predicted.query)
    if sentences is None:
        return _not_measured("known_terms: the prediction has no query whose terms can be looked up")
    return Score(value=float(not sentences), details={"notes": [*sentences]})


@_resource()
def prediction_seconds(predicted: Execution, prediction: Prediction) -> float | Score:
    """Return the wall time of the call that gave the prediction, in seconds; None, with a note, if it is unknown."""
    return prediction.seconds or _not_measured("prediction_seconds: the prediction has no `seconds`")


@_resource()
def execution_seconds(predicted: Execution, prediction: Prediction) -> float | Score:
    """Return the time that the source took for the predicted query, in seconds.

    None, with a note, if nothing was run.
    """
    return predicted.seconds or _not_measured("execution_seconds: no predicted query was run")


@_resource(parameter="name")
def metadata(predicted: Execution, prediction: Prediction, *, name: str) -> float | Score:
    """Return the number called `name` in the prediction's metadata, such as `metadata[tokens]`.

    The value is None, with a note, if there is no such number, or it is not finite.
    """
    value = prediction.metadata.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    problem = "has no such number" if name in prediction.metadata else "does not report it"
    return _not_measured(f"metadata[{one_line(name, NAME_CHARACTERS)}]: the prediction {problem}")


@_resource()
def steps(predicted: Execution, prediction: Prediction) -> float | Score:
    """Return how many steps the system took until it answered; None, with a note, if it does not report its steps."""
    return _count("steps", prediction)


@_resource()
def queries(predicted: Execution, prediction: Prediction) -> float | Score:
    """Return how many of the system's steps are queries; None, with a note, if it does not report its steps."""
    return _count("queries", prediction)


@_resource()
def failed_queries(predicted: Execution, prediction: Prediction) -> float | Score:
    """Return how many queries among the system's steps failed; None, with a note, if it does not report its steps."""
    return _count("failed_queries", prediction)


def _count(measure: str, prediction: Prediction) -> float | Score:
    if prediction.steps is None:
        return _not_measured(f"{measure}: the prediction does not report its steps")
    return float(count_steps(map(step_json, prediction.steps))[measure])


def _not_measured(note: str) -> Score:
    return Score(value=None, details={"notes": [note]})
