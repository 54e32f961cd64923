"""A fingerprint of what defines a case besides the system, from which a later run can tell what changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_queryeval.core.answer_json import encode_answer
from pytest_queryeval.core.case_report import CaseFingerprint
from pytest_queryeval.core.json_value import JsonSchema, JsonValue, to_jsonable
from pytest_queryeval.core.model import IN_SCOPE, Case, QueryOrAnswer, Settings
from pytest_queryeval.core.table import Policy, Selection
from pytest_queryeval.evaluation.session import UNKNOWN_STATES, SourceStates
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

_HEX_DIGITS = 16
_CACHED_DIGESTS = 64
_CACHED_SETTINGS = 256
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def case_fingerprint(
    case: Case, source_states: SourceStates = UNKNOWN_STATES, gold_answers: str | None = None
) -> CaseFingerprint:
    """Return what defines a case besides the system, so that a later run can detect changes; without secrets.

    It contains what the case requests and requires, its limits and settings, and digests of golds and schemas, of 16
    hexadecimal digits. Question and evidence are left out: baselines compare them directly. Only `metrics`, `review`
    and `gold_answers` depend on decisions on its golds.

    `context` is what a predictor may read besides question and evidence. `source_states` are digests of the contents of
    its sources, `gold_answers` is a digest of the answers of its golds.
    """
    review, reviewed_case, case = case.review, case, case.without_review
    messages = [[message.role, message.content] for message in case.conversation]
    extra_keys = {"db_schema": case.db_schema, **case.extra}
    fingerprint: CaseFingerprint = {
        **_settings_fingerprint(case.settings),
        "answers": "asked" if case.predicted is None else "stated",
        "context": _digest([to_jsonable(case.metadata), messages]) if case.metadata or messages else None,
        "metrics": [*reviewed_case.settings.score_names],
        "golds": _digest([_gold_content(gold) for gold in case.golds]),
        "gold_answers": gold_answers,
        "schemas": {
            name: _schema_digest(_SharedSchema(schema)) for name, schema in extra_keys.items() if schema is not None
        },
        "source": source_states.source,
    }
    if case.xfail is not None:
        fingerprint["xfail"] = True
    if definitions := _definitions(reviewed_case.settings.score_names):
        fingerprint["definitions"] = {**definitions}
    if case.expectations:
        fingerprint["expect"] = _digest([[item.name, item.text] for item in case.expectations])
    if case.settings.gold_source is not None:
        fingerprint["gold_source"] = source_states.gold_source
    if review is not None and review.decision != "unsure":
        golds = [_gold_content(gold) for gold in reviewed_case.golds]
        fingerprint["review"] = _digest([review.decision, golds, _compare(reviewed_case.settings)])
    return fingerprint


@lru_cache(maxsize=_CACHED_SETTINGS)
def _definitions(names: tuple[str, ...]) -> Mapping[str, int]:
    """Return the definition's number of each metric whose definition is not the first."""
    metrics = {name: METRICS[name] for name in names if name in METRICS}
    return {name: metric.definition for name, metric in metrics.items() if metric.definition > 1}


@lru_cache(maxsize=_CACHED_SETTINGS)
def _settings_fingerprint(settings: Settings) -> CaseFingerprint:
    """Return the part of a fingerprint that depends on settings only; entries of the case itself are blank."""
    return {
        "answers": "asked",
        "context": None,
        "metrics": [],
        "thresholds": {
            name: {"min": limits.minimum, "max": limits.maximum} for name, limits in settings.thresholds.items()
        },
        "on_miss": settings.on_miss,
        "trials": {"max": settings.trials, "stop": "decided"} if settings.stops_trials else settings.trials,
        "trials_rule": settings.trials_rule,
        "golds": "",
        "limits": {"timeout": settings.timeout, "max_rows": settings.max_rows},
        "schemas": {},
        "compare": _compare(settings),
        "options": {
            **{name: _options(name, options) for name, options in settings.options.items() if options},
            **({IN_SCOPE: to_jsonable(asdict(settings.scope))} if settings.scope is not None else {}),
        },
        "source": None,
    }


def _digest(content: object) -> str:
    return hashlib.sha256(_JSON.encode(content).encode(errors="backslashreplace")).hexdigest()[:_HEX_DIGITS]


@dataclass(frozen=True, slots=True, eq=False)
class _SharedSchema:
    """A schema as a key of a cache, compared by identity, because its content may be long."""

    schema: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SharedSchema) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=_CACHED_DIGESTS)
def _schema_digest(shared: _SharedSchema) -> str:
    """Return the digest of a schema's content, independent of its file."""
    schema = shared.schema
    if isinstance(schema, JsonSchema):
        return _digest([schema.document, dict(schema.resources)])
    if is_dataclass(schema) and not isinstance(schema, type):
        return _digest(asdict(schema))
    return _digest(to_jsonable(schema))


def _gold_content(gold: QueryOrAnswer) -> Any:
    answer = gold.answer
    if answer is None:
        return gold.query
    if isinstance(answer, Selection):  # without labels, which come from a structure and are for display
        return [
            [dataset.id, [[part.name, [[term.id, term.name] for term in part.terms]] for part in dataset.dimensions]]
            for dataset in answer.datasets
        ]
    try:
        return encode_answer(answer)
    except TypeError:  # a cell of the user's own type
        return to_jsonable(getattr(answer, "rows", answer))


def _compare(settings: Settings) -> dict[str, JsonValue]:
    """Return the settings of the comparison that differ from the defaults of the kind."""
    default = Policy(text_numbers=KINDS[settings.kind].text_numbers)
    return {
        field.name: to_jsonable(value)
        for field in fields(Policy)
        if (value := getattr(settings.policy, field.name)) != getattr(default, field.name)
    }


def _options(name: str, options: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return the options of a metric or a kind as plain values; paths become file names, because folders differ."""
    paths = KINDS[name].paths if name in KINDS else METRICS[name].paths if name in METRICS else ()
    portable_options = {key: Path(str(value)).name if key in paths else value for key, value in options.items()}
    return {key: to_jsonable(value) for key, value in portable_options.items()}
