"""Predictions that come with a data set, by the position of their case or by its id or question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pytest_queryeval.cli.importers import ImportedCase, Skipped
from pytest_queryeval.cli.importers.records import Record, RecordError
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.predictors.file.predictions import (
    READERS,
    Columns,
    comparable,
    is_lines,
    read_entries,
    read_lines,
)

# The entries of the case at a position, with this id and question.
Predictions: TypeAlias = Callable[[int, str, str], Iterable[Mapping[str, JsonValue]]]


def read_predictions(path: Path | None) -> Predictions:
    """Return the predictions in a file that the predictor `file` reads, none for None; raise `QueryEvalError`.

    Plain lines belong to cases by their position.
    """
    if path is None:
        return lambda position, id_, question: ()
    file = file_at(path)
    if is_lines(path.name):
        return by_position(read_lines(file))
    if path.suffix.lower() not in READERS:
        raise QueryEvalError(f"{path}: predictions are read from {', '.join(READERS)} and plain lines (.txt, .sql)")
    named, entries = read_entries(file, Columns())
    found: dict[str, list[Mapping[str, JsonValue]]] = {}
    for entry in entries:
        row: dict[str, JsonValue] = {"predicted": entry.answer, **entry.metadata}
        row |= {"trial": entry.trial} if entry.trial else {}
        row |= {"seconds": entry.seconds} if entry.seconds else {}
        found.setdefault(entry.key, []).append(row)
    if named == "id":
        return lambda position, id_, question: found.get(id_, ())
    return lambda position, id_, question: found.get(comparable(question, named), ())


def cases_of(
    records: Iterable[Record | Skipped],
    id_of: Callable[[Record], str],
    keys_of: Callable[[Record], Mapping[str, JsonValue]],
    predictions: Predictions,
) -> Iterator[ImportedCase | Skipped]:
    """Yield a case for each record with its predictions, or why there is none: `keys_of` raises `RecordError`."""
    for record in records:
        if isinstance(record, Skipped):
            yield record
            continue
        id_ = id_of(record)
        try:
            keys = keys_of(record)
        except RecordError as error:
            yield Skipped(id_, str(error))
        else:
            found = predictions(record.position, id_, str(keys["question"]))
            yield ImportedCase(id=id_, keys=keys, predictions=found)


def by_position(answers: list[str]) -> Predictions:
    """Return predictions of which each is the answer to the case at its position."""

    def at(position: int, id_: str, question: str) -> Iterable[Mapping[str, JsonValue]]:
        return ({"predicted": answers[position]},) if position < len(answers) else ()

    return at


def check_count(predictions: int, cases: int, path: Path) -> None:
    """Raise `QueryEvalError` where predictions cannot belong to cases by their position."""
    if predictions != cases:
        raise QueryEvalError(f"{path}: {predictions:,} predictions for {cases:,} cases: there has to be one for each")
