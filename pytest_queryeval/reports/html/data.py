"""The cases of a report as they stand in the page: packed, a list to filter and sort, details in pieces behind it."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.results.aggregation import CaseJson, Report
from pytest_queryeval.text.visible import cut

PIECE_CHARACTERS = 400_000  # a piece is unpacked when one of its cases is looked at
TEXT_CHARACTERS = 300  # of a question and a message that the list has, to be searched
SCORE_DIGITS = 6
LISTED = ("id", "path", "line", "kind", "tags", "difficulty", "outcome")
# What the list tells of a case already, or what a page does not show.
NOT_DETAILS = frozenset({*LISTED, "nodeid", "scores"})


def packed(text: str) -> str:
    """A text deflated, in base64: the same for the same text, and without a character that is markup."""
    return base64.b64encode(zlib.compress(text.encode(errors="backslashreplace"))).decode("ascii")


def json_text(value: Any) -> str:
    """A value as short JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def exact(value: Any) -> Any:
    """The value with each number as the text that it is in report.json, behind a `#`; a text with a `#` gets another.

    JavaScript rounds integers beyond 2^53, and writes 1.0 as 1.
    """
    match value:
        case str():
            return f"#{value}" if value.startswith("#") else value
        case bool() | None:
            return value
        case int() | float():
            return f"#{value!r}"
        case list() | tuple():
            return [exact(own) for own in value]
        case _:
            return {name: exact(own) for name, own in value.items()}


def listed(report: Report) -> dict[str, Any]:
    """What the table of cases shows, sorts and searches: a list for each column, in the order of the report.

    `scores` has such a list for each metric. A `nodeid` is None where it is the path and the id.
    """
    cases = report["cases"]
    names = list(dict.fromkeys(name for case in cases for name in case["scores"]))
    return {
        **{name: [case[name] for case in cases] for name in LISTED},
        "nodeid": [_own_nodeid(case) for case in cases],
        "question": [cut(case.get("question", ""), TEXT_CHARACTERS) for case in cases],
        "message": [cut(case.get("message", ""), TEXT_CHARACTERS) for case in cases],
        "seconds": [_prediction_seconds(case) for case in cases],
        "scores": {name: [_rounded(case["scores"].get(name)) for case in cases] for name in names},
    }


def pieces(cases: Sequence[CaseJson]) -> Iterator[tuple[int, str]]:
    """The details of all cases as JSON lists of some length, each with the number of its first case."""
    first, length = 0, 0
    piece: list[str] = []
    for number, case in enumerate(cases):
        piece.append(json_text(_details(case)))
        length += len(piece[-1])
        if length >= PIECE_CHARACTERS:
            yield first, f"[{','.join(piece)}]"
            first, length, piece = number + 1, 0, []
    if piece:
        yield first, f"[{','.join(piece)}]"


def packed_cases(report: Report) -> Iterator[tuple[int | None, str]]:
    """The packed parts of a page: the list, then each piece with the number of its first case."""
    yield None, packed(json_text(listed(report)))
    yield from ((first, packed(piece)) for first, piece in pieces(report["cases"]))


def _own_nodeid(case: CaseJson) -> str | None:
    nodeid = case.get("nodeid")
    return None if nodeid == f"{case['path']}::{case['id']}" else nodeid


def _prediction_seconds(case: CaseJson) -> float | None:
    prediction = case.get("prediction")
    return _short(prediction["seconds"]) if prediction else None


def _details(case: CaseJson) -> dict[str, Any]:
    """What only the page of a case shows; what is empty is left out."""
    found = {name: value for name, value in case.items() if name not in NOT_DETAILS and value not in (None, "", [], {})}
    for part in ("gold", "predicted", "prediction"):
        if part in found:
            found[part] = _side(found[part])
    for part in ("question", "message"):
        if len(found.get(part, "")) <= TEXT_CHARACTERS:
            found.pop(part, None)
    for part in ("difference", "details"):
        if part in found:
            found[part] = exact(found[part])
    if "trials" in found:
        found["trials"] = [_trial(trial) for trial in found["trials"]]
    if "fingerprint" in found:
        found["thresholds"] = _thresholds(found.pop("fingerprint"))
    return found


def _trial(trial: Mapping[str, Any]) -> dict[str, Any]:
    return {**trial, "prediction": _side(trial.get("prediction") or {})}


def _thresholds(fingerprint: Any) -> Any:
    return fingerprint.get("thresholds") if isinstance(fingerprint, dict) else None


def _side(part: Mapping[str, Any]) -> dict[str, Any]:
    """An execution or a prediction, with a short time; what came from a database or a system is `exact`."""
    foreign = {name: exact(part[name]) for name in ("sample", "metadata") if name in part}
    return {**part, **foreign, "seconds": _short(part.get("seconds"))}


def _short(seconds: Any) -> float | None:
    """Three digits: the others are noise, which does not deflate."""
    return float(f"{seconds:.3g}") if isinstance(seconds, int | float) else None


def _rounded(score: Any) -> float | None:
    return round(score, SCORE_DIGITS) if isinstance(score, int | float) else None
