"""What a case asks for, in short: reports keep it, so that a later one can tell what changed besides the system."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_queryeval.core.json_value import JsonSchema, JsonValue
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.core.model import OF_TRIALS, Case, Stated, Threshold
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.report import CaseFingerprint, Limits
from pytest_queryeval.core.schema import Schema
from pytest_queryeval.core.selection import Selection, Structure
from pytest_queryeval.evaluation.recording.codec import encode_answer
from pytest_queryeval.evaluation.semantic_texts import requested_metrics
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

_HEX_DIGITS = 16
_KEPT_DIGESTS = 64
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def case_fingerprint(case: Case, state: str | None) -> CaseFingerprint:
    """Return what a case requests and requires, its limits and settings, digests of golds and schemas; without secrets.

    `state` is that of the source, None where it is not known.
    """
    schemas = {"json_schema": case.json_schema, "structure": case.structure, "db_schema": case.db_schema}
    return {
        "answers": "asked" if case.predicted is None else "stated",
        "context": _digest_of_context(case),
        "metrics": [*requested_metrics(case), *(OF_TRIALS if case.trials > 1 and case.thresholds else ())],
        "thresholds": {name: _limits(threshold) for name, threshold in case.thresholds.items()},
        "on_miss": case.on_miss,
        "trials": case.trials,
        "trials_rule": case.trials_rule,
        "golds": digest_of_golds(case),
        "limits": {"timeout": case.timeout, "max_rows": case.max_rows},
        "schemas": {name: _digest_of_schema(_Shared(own)) for name, own in schemas.items() if own is not None},
        "compare": _compare(case),
        "options": {name: _options(name, options) for name, options in case.options.items() if options},
        "source": state,
    }


def digest_of_golds(case: Case) -> str:
    """16 hexadecimal digits of what all golds say: of queries the text, of answers in place their values."""
    return _digest(_JSON.encode([_said(gold) for gold in case.golds]))


def _digest_of_context(case: Case) -> str | None:
    """16 hexadecimal digits of what a predictor may read of a case beside question and evidence."""
    said = [[message.role, message.content] for message in case.conversation]
    return _digest(_JSON.encode([plain(case.metadata), said])) if case.metadata or said else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_HEX_DIGITS]


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """A schema that many cases share, known by what it is and not by what it says, which is long."""

    schema: JsonSchema | Structure | Schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shared) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=_KEPT_DIGESTS)
def _digest_of_schema(shared: _Shared) -> str:
    """16 hexadecimal digits of what a schema says, wherever its file lies."""
    schema = shared.schema
    said = [schema.document, dict(schema.others)] if isinstance(schema, JsonSchema) else asdict(schema)
    return _digest(json.dumps(said, sort_keys=True, separators=(",", ":"), default=str))


def _said(gold: Stated) -> Any:
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
        return plain(getattr(answer, "rows", answer))


def _limits(threshold: Threshold) -> Limits:
    return {"min": threshold.minimum, "max": threshold.maximum}


def _compare(case: Case) -> dict[str, JsonValue]:
    """Return the settings of the comparison that are not those which the kind has without any."""
    usual = Policy(text_numbers=KINDS[case.kind].text_numbers)
    if case.policy == usual:
        return {}
    names = (field.name for field in fields(Policy))
    return {name: plain(value) for name in names if (value := getattr(case.policy, name)) != getattr(usual, name)}


def _options(name: str, options: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return the options of a metric or a kind; of files their names, since folders differ between machines."""
    paths = KINDS[name].paths if name in KINDS else METRICS[name].paths if name in METRICS else ()
    named = {key: Path(str(value)).name if key in paths else value for key, value in options.items()}
    return {key: plain(value) for key, value in named.items()}
