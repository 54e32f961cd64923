"""Predictions that come with a data set, by the position of their case or by its id or question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pytest_queryeval.core.errors import QueryEvalError, SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Abstention
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, Skipped
from pytest_queryeval.features.transfer.importers.records import RecordError
from pytest_queryeval.predictors.file import check_file, columns_of, settings_of
from pytest_queryeval.predictors.file.predictions import (
    READERS,
    comparable,
    is_known,
    is_lines,
    read_entries,
    read_lines,
)
from pytest_queryeval.text.formatting import pluralize

Entry: TypeAlias = Mapping[str, JsonValue]
Source = TypeVar("Source")  # what a case is made of, such as a `Record`


class Predictions:
    """Entries for a file of predictions, by the position of their case, or by its id or question."""

    def __init__(self, key_name: Literal["position", "id", "question"], entries: Mapping[str, Sequence[Entry]]) -> None:
        self._key_name = key_name
        self._entries = entries
        self._unused = dict.fromkeys(entries)

    def of(self, position: int, id_: str, question: str) -> Sequence[Entry]:
        """Return the entries of a case, none where there are none."""
        key = {"position": str(position), "id": id_, "question": comparable(question, "question")}[self._key_name]
        self._unused.pop(key, None)
        return self._entries.get(key, ())

    def unused(self) -> Iterator[Skipped]:
        """Yield the predictions that belong to no case."""
        yield from (Skipped(key, f"a prediction whose {self._key_name} is that of no case") for key in self._unused)


def read_predictions(path: Path | None) -> Predictions:
    """Return the predictions in a file that the predictor `file` reads, none for None; raise `QueryEvalError`.

    As in its short form, settings may stand behind a `?`. Plain lines belong to cases by their position.
    """
    if path is None:
        return Predictions("id", {})
    settings = settings_of(str(path))
    name = str(settings["path"])
    if not is_known(name):
        raise QueryEvalError(f"{path}: predictions are read from {', '.join(READERS)} and plain lines (.txt, .sql)")
    try:
        check_file(settings)
    except SettingError as error:
        raise QueryEvalError(f"{path}: {error}") from error
    file = file_at(Path(name))
    if is_lines(name):
        return by_position(read_lines(file))
    key_name, entries = read_entries(file, columns_of(settings))
    entries_by_key: dict[str, list[Entry]] = {}
    for entry in entries:
        answer: dict[str, JsonValue]
        if isinstance(entry.answer, Abstention):
            answer = {"abstained": True, "reason": entry.answer.reason}
        else:
            answer = {"predicted": entry.answer}
        row = {**answer, **entry.metadata}
        row |= {"trial": entry.trial} if entry.trial else {}
        row |= {"seconds": entry.seconds} if entry.seconds else {}
        entries_by_key.setdefault(entry.key, []).append(row)
    return Predictions("id" if key_name == "id" else "question", entries_by_key)


def by_position(answers: Iterable[str]) -> Predictions:
    """Return predictions, each for the case at its position."""
    return Predictions("position", {str(number): [{"predicted": answer}] for number, answer in enumerate(answers)})


def import_records(
    request: ImportRequest,
    records: Iterable[Source | Skipped],
    id_of: Callable[[Source], str],
    case_of: Callable[[str, Source], ImportedCase],
    *,
    settings: Mapping[str, JsonValue],
    predictions: Predictions | None = None,
    name: str = "",
) -> Import:
    """Return the import whose cases are those of `cases_of`.

    The default predictions are those that the request names; the default name is that of its source.
    """
    if predictions is None:
        predictions = read_predictions(request.predictions)
    return Import(
        name=name or request.source.stem,
        settings=settings,
        cases=cases_of(records, id_of, case_of, predictions),
        has_predictions=request.predictions is not None,
    )


def cases_of(
    records: Iterable[Source | Skipped],
    id_of: Callable[[Source], str],
    case_of: Callable[[str, Source], ImportedCase],
    predictions: Predictions,
) -> Iterator[ImportedCase | Skipped]:
    """Yield a case for each record with its predictions, or why there is none: `case_of` raises `RecordError`."""
    for position, record in enumerate(records):
        if isinstance(record, Skipped):
            yield record
            continue
        id_ = id_of(record)
        try:
            case = case_of(id_, record)
        except RecordError as error:
            predictions.of(position, id_, "")
            yield Skipped(id_, str(error))
        else:
            yield replace(case, predictions=predictions.of(position, id_, str(case.keys["question"])))
    yield from predictions.unused()


def check_count(predictions: int, cases: int, path: Path, *, empty: str) -> None:
    """Raise `QueryEvalError` if predictions cannot belong to cases by their position.

    `empty` is what a file has in place of a missing prediction.
    """
    if predictions != cases:
        counts = f"{pluralize(predictions, 'prediction')} for {pluralize(cases, 'case')}"
        raise QueryEvalError(f"{path}: {counts}: there has to be one for each, {empty} where there is none")
