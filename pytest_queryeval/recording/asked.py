"""What a prediction depends on: the case as predictors get it, the predictor's settings without secrets, the trial."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from pytest_queryeval.model import Case, PredictorSpec
from pytest_queryeval.plain import plain
from pytest_queryeval.recording.texts import digest
from pytest_queryeval.redaction import hide_settings, is_secret, redacted

# They say who asks and over which connection, not what is asked.
_UNTOLD = frozenset({"auth", "headers", "verify", "env"})
# Where they run does not depend on the folder of the suite.
_PLACELESS = frozenset({"http", "hook"})
_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=[^&#\s]*")


def asked(case: Case, spec: PredictorSpec, trial: int, settings: str) -> dict[str, Any]:
    """What identifies a prediction, as plain values; `settings` is what `settings_digest` says of the predictor.

    `question` is there to be read and compared; `case` is a digest of all that the predictor gets of the case.
    """
    told = {
        "question": case.question,
        "evidence": case.evidence,
        "conversation": [[message.role, message.content] for message in case.conversation],
        "metadata": plain(case.metadata),
    }
    return {
        "case": digest(told),
        "id": case.id,
        "kind": case.kind,
        "predictor": spec.kind,
        "question": case.question,
        "settings": settings,
        "trial": trial,
    }


def settings_digest(spec: PredictorSpec, root: Path) -> str:
    """A digest of the predictor's settings without secrets, and of its folder relative to `root`."""
    return digest([_place(spec, root), _told(spec, root)])


def _place(spec: PredictorSpec, root: Path) -> str:
    return "" if spec.kind in _PLACELESS else Path(os.path.relpath(spec.folder, root)).as_posix()


def _told(spec: PredictorSpec, root: Path) -> Any:
    """The settings that an answer may depend on."""
    hide_settings(spec.settings)
    settings = {name: value for name, value in spec.settings.items() if name not in _UNTOLD}
    folders = [f"{folder.absolute()}{os.sep}" for folder in (spec.folder, root)]
    return _without_secrets(plain(settings), folders)


def _without_secrets(value: Any, folders: list[str]) -> Any:
    """The value without texts that stand under names of secrets, secrets in URLs, and paths of this machine."""
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if not (isinstance(item, str) and is_secret(name))}
        return {name: _without_secrets(item, folders) for name, item in kept.items()}
    if isinstance(value, list):
        return [_without_secrets(item, folders) for item in value]
    if not isinstance(value, str):
        return value
    for folder in folders:
        value = value.removeprefix(folder)
    return redacted(_PARAMETER.sub(_parameter, _USER_INFO.sub("", value)))


def _parameter(found: re.Match[str]) -> str:
    return f"{found[1]}=" if is_secret(found[1]) else found[0]
