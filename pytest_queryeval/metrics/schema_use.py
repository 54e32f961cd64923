"""Which tables and columns a predicted query uses: those of gold, and those that its case allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pytest_queryeval.core.metric import FindBreaches, ReadSchemaUse, SchemaUse, Score, metric
from pytest_queryeval.core.model import Execution, Prediction

_of_queries = partial(metric, answers=None, input="queries", kinds=frozenset({"sql", "sparql"}))


@metric(answers=None, input="predictions", kinds=frozenset({"sql"}), criterion="scope")
def in_scope(predicted: Execution, prediction: Prediction, *, breaches: FindBreaches) -> float | Score:
    """Return 1 if all tables, columns and rows that the predicted query reads are within its case's `scope`, else 0.

    Notes name what is outside. A query that fails is judged by the names in it that can be resolved; a query that is
    refused because it does more than read scores 0. A prediction without a query has the score None, with a note.
    """
    if not predicted.query:
        return Score(value=None, details={"notes": ["in_scope: the prediction has no query"]})
    if predicted.error is not None and predicted.error.kind == "unsafe":
        return Score(value=0.0, details={"notes": [f"scope: {predicted.error.message}"]})
    found = breaches(predicted)
    return Score(
        value=float(not found), details={"notes": [f"scope: the predicted query {breach}" for breach in found]}
    )


def _recall(gold: frozenset[str], predicted: frozenset[str]) -> float:
    return len(gold & predicted) / len(gold) if gold else 1.0


def _precision(gold: frozenset[str], predicted: frozenset[str]) -> float:
    return len(gold & predicted) / len(predicted) if predicted else float(not gold)


def _share(
    share: Callable[[frozenset[str], frozenset[str]], float],
    names: Callable[[SchemaUse], frozenset[str]],
    gold: str,
    predicted: str,
    schema_use: ReadSchemaUse,
) -> float | Score:
    try:
        gold_names = names(schema_use(gold, True))
    except ValueError as error:
        return Score(value=None, details={"notes": [f"schema use: gold: {error}"]})
    try:
        predicted_names = names(schema_use(predicted, False))
    except ValueError:
        return 0.0
    return share(gold_names, predicted_names)


@_of_queries()
def table_recall(gold: str, predicted: str, *, schema_use: ReadSchemaUse) -> float | Score:
    """Return the share of the tables (SPARQL: classes) used by gold that predicted uses, too.

    The score is 1 if gold uses none, 0 if predicted cannot be read, and None, with a note, if gold cannot be read.
    """
    return _share(_recall, lambda use: use.tables, gold, predicted, schema_use)


@_of_queries()
def table_precision(gold: str, predicted: str, *, schema_use: ReadSchemaUse) -> float | Score:
    """Return the share of the tables (SPARQL: classes) used by predicted that gold uses, too.

    If predicted uses none, the score is 1 if gold uses none either, otherwise 0. The score is 0 if predicted cannot be
    read, and None, with a note, if gold cannot be read.
    """
    return _share(_precision, lambda use: use.tables, gold, predicted, schema_use)


@_of_queries()
def column_recall(gold: str, predicted: str, *, schema_use: ReadSchemaUse) -> float | Score:
    """Return the share of the columns (SPARQL: predicates) used by gold that predicted uses, too.

    The score is 1 if gold uses none, 0 if predicted cannot be read, and None, with a note, if gold cannot be read.
    """
    return _share(_recall, lambda use: use.columns, gold, predicted, schema_use)


@_of_queries()
def column_precision(gold: str, predicted: str, *, schema_use: ReadSchemaUse) -> float | Score:
    """Return the share of the columns (SPARQL: predicates) used by predicted that gold uses, too.

    If predicted uses none, the score is 1 if gold uses none either, otherwise 0. The score is 0 if predicted cannot be
    read, and None, with a note, if gold cannot be read.
    """
    return _share(_precision, lambda use: use.columns, gold, predicted, schema_use)
