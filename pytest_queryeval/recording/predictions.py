"""What the system under test said, an entry for each case and trial."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pytest_queryeval.model import Case, Prediction, PredictorSpec, Stated
from pytest_queryeval.plain import one_line, plain
from pytest_queryeval.recording.answers import read_answer, read_lines, written_answer
from pytest_queryeval.recording.asked import asked, settings_digest
from pytest_queryeval.recording.cells import read, written
from pytest_queryeval.recording.shelf import Facts, Shelf
from pytest_queryeval.recording.store import Store
from pytest_queryeval.recording.texts import digest

# In this order: where the predictor is another one, its settings are no news.
_CHANGES = {
    "kind": "its `kind` has changed since",
    "predictor": "its predictor was another one",
    "case": "its evidence, conversation or metadata has changed since",
    "settings": "the settings of its predictor have changed since",
}


class Predictions:
    """Recorded predictions; folders in what identifies them are relative to `root`."""

    def __init__(self, store: Store, *, root: Path, replay: bool) -> None:
        self._root = root
        self._settings: dict[tuple[str, str], str] = {}
        self._shelf = Shelf(store, replay=replay, same=("id", "trial"), missing=_missing)

    def found(self, case: Case, spec: PredictorSpec, trial: int) -> Prediction | None:
        """The recorded prediction, None where there is none; raises `PredictorError`, also for that in a replay."""
        facts = self._asked(case, spec, trial)
        return self._shelf.found(digest(facts), facts, _prediction)

    def keep(self, case: Case, spec: PredictorSpec, trial: int, prediction: Prediction) -> None:
        """Write the prediction unless it is there; raises `PredictorError` for an answer that cannot be written."""
        facts = self._asked(case, spec, trial)
        try:
            content = _content(prediction)
        except TypeError as error:
            raise self._shelf.fault(f"the prediction for '{case.id}' cannot be recorded: {error}") from error
        self._shelf.keep(digest(facts), facts, content, replaces=lambda _: False)

    def _asked(self, case: Case, spec: PredictorSpec, trial: int) -> dict[str, Any]:
        # Once, as what counts as a secret may become more when sources are opened, which a replay does not do.
        if spec.key not in self._settings:
            self._settings[spec.key] = settings_digest(spec, self._root)
        return asked(case, spec, trial, self._settings[spec.key])


def _content(prediction: Prediction) -> dict[str, Any]:
    stated = prediction.stated
    return {
        **written_answer(stated.answer),
        **({} if stated.query is None else {"query": stated.query}),
        "metadata": written(plain(prediction.metadata)),
        "predictor": prediction.predictor,
        "seconds": written(float(prediction.seconds)),
    }


def _prediction(entry: Facts) -> Prediction:
    query = read_lines(entry["query"]) if "query" in entry else None
    stated = Stated(query=query, answer=read_answer(entry))
    if stated == Stated():
        raise ValueError("neither a query nor an answer")
    metadata = read(entry["metadata"])
    if not isinstance(metadata, dict):
        raise ValueError("metadata that is no object")
    return Prediction(
        stated=stated,
        predictor=read_lines(entry["predictor"]),
        seconds=float(read(entry["seconds"])),
        metadata=metadata,
    )


def _missing(changed: Collection[str], found: Facts, now: Facts, where: str) -> str:
    trial = f" (trial {now['trial']})" if now["trial"] > 1 else ""
    name = f"'{one_line(read_lines(now['id']))}'{trial}"
    if not changed:
        return f"no recorded prediction for {name} in {where}"
    if "question" in changed:
        return f"no recorded prediction for {name} in {where}: what is recorded under this id has another question"
    reason = next(reason for fact, reason in _CHANGES.items() if fact in changed)
    return f"the prediction for {name} in {where} is stale: {reason}"
