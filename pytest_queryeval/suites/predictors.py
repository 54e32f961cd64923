"""Reader of `predictor`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_queryeval.core.errors import CaseError, Location, SettingError, did_you_mean, nearest
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import PredictorSpec
from pytest_queryeval.core.shapes import NON_BLANK, TEXT, Shape, either, mapping_shape, shape, shape_of
from pytest_queryeval.documents.document import File, Node
from pytest_queryeval.documents.values import (
    Readers,
    entries,
    flag,
    known_entries,
    positive_number,
    required_text,
    whole_number,
)
from pytest_queryeval.predictors import PREDICTORS, SEND_SCHEMA
from pytest_queryeval.suites.variables import expanded_settings, expanded_text, settings_at, settings_shape
from pytest_queryeval.text.redaction import mask_credentials

_FORMS = "FILE.py:FUNCTION, the URL of a service, or the name of a file of predictions"
_PROVIDERS = frozenset(
    ("anthropic", "azure", "bedrock", "cohere", "deepseek", "gemini", "google", "groq", "huggingface", "litellm")
) | {"mistral", "ollama", "openai", "openrouter", "together", "vertex_ai", "vllm", "xai"}
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+(?:/|$)", re.ASCII)


@shape(mapping_shape({"matches": TEXT}, required=["matches"]))
def read_abstain(node: Node) -> str:
    """Return the regular expression of `{matches: REGEX}`; a matching answer is an abstention. Raises `CaseError`."""
    fields = known_entries(node, {"matches": required_text}) if isinstance(node.value, dict) else {}
    if "matches" not in fields:
        raise node.problem("`abstain` needs a regular expression: write {matches: REGEX}")
    try:
        re.compile(fields["matches"])
    except (re.error, OverflowError, RecursionError) as error:
        raise entries(node)["matches"].problem(f"not a regular expression: {error}") from error
    return str(fields["matches"])


# Settings of every predictor, written next to its name.
CALL_SETTINGS: Readers = {
    "concurrency": whole_number(1),
    "timeout": positive_number,
    "retries": whole_number(0),
    "abstain": read_abstain,
}


def _predictor_shape(name: str) -> Shape:
    """Return the shape of a predictor as a mapping: its name with its settings, and settings of calls next to it."""
    predictor = PREDICTORS[name]
    entries = {
        name: settings_shape(predictor.settings, predictor.text_setting),
        **{setting: shape_of(read) for setting, read in CALL_SETTINGS.items()},
        **({} if predictor.sends is None else {SEND_SCHEMA: shape_of(flag)}),
    }
    return mapping_shape(entries, required=[name])


@shape(lambda: either({"type": "string", "pattern": NON_BLANK}, *map(_predictor_shape, PREDICTORS.available())))
def read_predictor(node: Node) -> PredictorSpec:
    """Return the predictor that a text or a mapping names, with checked settings; raises `CaseError`.

    A text is a URL, a file of predictions, a function, or the name of a predictor without settings. Variables in it are
    replaced.
    """
    if isinstance(node.value, dict):
        return _described_predictor(node, node.value)
    required_text(node)
    text = expanded_text(node)
    kind = _predictor_of(text)
    if kind is None:
        source_text = mask_credentials(str(node.value))
        if source_text in PREDICTORS:
            raise node.problem(f"'{source_text}' alone names no predictor: write {_FORMS}")
        hint = _predictor_hint(source_text, node.file.folder)
        if not hint:
            near = nearest(source_text, PREDICTORS.names())
            hint = f": did you mean '{near}'?" if near else f": write {_FORMS}"
        raise node.problem(f"unknown predictor '{source_text}'{hint}")
    if _HOST_AND_PORT.match(text):
        raise node.problem(
            f"'{mask_credentials(str(node.value))}' has no scheme: write http://{mask_credentials(str(node.value))}"
        )
    settings = {} if kind == text else _settings_of(kind, text)
    with settings_at({}, node, PREDICTORS[kind].text_setting):
        PREDICTORS[kind].check(settings)
    return PredictorSpec(kind=kind, settings=settings, folder=node.file.folder, location=node.location)


def _predictor_hint(text: str, folder: Path) -> str:
    """Return how to name a program, or a function of which the text has only the file or a dotted name; else empty."""
    if len(words := text.split()) > 1 and not os.path.isfile(folder / text):  # noqa: PTH113 - Path.is_file raises for long names
        return f": a program is named in a suite, as `predictor: {{command: [{', '.join(words)}]}}`"
    if ":" in text or text.lower() in _PROVIDERS:
        return ": pytest-queryeval calls no model itself: name your function that does, FILE.py:FUNCTION"
    if text.endswith(".py"):
        return f": name its function, {text}:predict"
    module, _, name = text.rpartition(".")
    file = f"{module.replace('.', '/')}.py"
    return f": did you mean '{file}:{name}'?" if module and os.path.isfile(folder / file) else ""  # noqa: PTH113


def _names_model(text: str) -> bool:
    """Return whether a text names a model, such as openai:gpt-4o, and not a function, such as FILE.py:FUNCTION."""
    module, _, name = text.rpartition(":")
    is_name = re.fullmatch(r"[\w.]+", name) is not None and not re.search(r"\d\.\d", name)
    return not _HOST_AND_PORT.match(text) and not module.endswith(".py") and (module in _PROVIDERS or not is_name)


def check_predictor_files(spec: PredictorSpec) -> None:
    """Raise `CaseError`, at the line that names the predictor, if a local file or function of it is missing."""
    try:
        PREDICTORS[spec.kind].check_files(spec)
    except SettingError as error:
        raise CaseError(spec.location or Location(spec.folder), str(error)) from error


def predictor_of_text(text: str, *, folder: Path) -> PredictorSpec:
    """Return a predictor that is named outside of a suite, with paths relative to `folder`; raises `CaseError`."""
    return read_predictor(Node(text, 0, "quoted", File(folder / "command line", Path("command line"))))


def _predictor_of(text: str) -> str | None:
    if text.startswith(("http://", "https://")):
        return "http"
    from pytest_queryeval.predictors.file.predictions import is_known

    if is_known(text) or is_known(text.partition("?")[0]):
        return "file"
    if ":" in text:
        return None if _names_model(text) else "python"
    return text if text in PREDICTORS and not PREDICTORS[text].text_setting else None


def _described_predictor(node: Node, predictor_entries: Mapping[str, Node]) -> PredictorSpec:
    kinds = [name for name in predictor_entries if name not in CALL_SETTINGS and name != SEND_SCHEMA]
    if len(kinds) != 1:
        predictor = next((name for name in kinds if name in PREDICTORS), "")
        settings_of_it = (PREDICTORS[predictor].settings or {}) if predictor else {}
        if stray := next((name for name in kinds if name in settings_of_it), ""):
            text_setting = PREDICTORS[predictor].text_setting
            form = f"{{{predictor}: {{{text_setting}: …, {stray}: …}}}}"
            raise predictor_entries[stray].problem(f"'{stray}' is a setting of '{predictor}': write {form}")
        if predictor and (unknown := next((name for name in kinds if name not in PREDICTORS), "")):
            hint = did_you_mean(unknown, (*CALL_SETTINGS, SEND_SCHEMA))
            raise predictor_entries[unknown].problem(f"unknown setting '{unknown}'{hint}")
        finding = f"found {' and '.join(kinds)}" if kinds else "found none"
        raise node.problem(f"expected one predictor's name as key, such as python: {finding}")
    kind = kinds[0]
    settings_node = predictor_entries[kind]
    if kind not in PREDICTORS:
        raise settings_node.problem(f"unknown predictor '{kind}'{PREDICTORS.hint(kind)}")
    if isinstance(settings_node.value, str) and not settings_node.empty:
        required_text(settings_node)
        settings = _settings_of(kind, expanded_text(settings_node))
    else:
        settings = (
            {} if settings_node.empty else expanded_settings(settings_node, PREDICTORS[kind].text_setting or kind)
        )
    nodes = settings_node.value if isinstance(settings_node.value, dict) else {}
    if SEND_SCHEMA in predictor_entries:
        if PREDICTORS[kind].sends is None:
            raise predictor_entries[SEND_SCHEMA].problem(
                f"'{SEND_SCHEMA}' is for programs and services: others read `case.schema`"
            )
        settings[SEND_SCHEMA], nodes = (
            flag(predictor_entries[SEND_SCHEMA]),
            {**nodes, SEND_SCHEMA: predictor_entries[SEND_SCHEMA]},
        )
    with settings_at(nodes, settings_node, PREDICTORS[kind].text_setting):
        PREDICTORS[kind].check(settings)
    _check_call_settings(kind, predictor_entries)
    calls = {
        name: CALL_SETTINGS[name](value) for name, value in predictor_entries.items() if name not in (kind, SEND_SCHEMA)
    }
    return PredictorSpec(
        kind=kind, settings=settings, folder=node.file.folder, location=settings_node.location, **calls
    )


def _check_call_settings(kind: str, predictor_entries: Mapping[str, Node]) -> None:
    """Raise `CaseError` for a setting of calls that has no effect for a predictor."""
    predictor = PREDICTORS[kind]
    for name in ("concurrency", "timeout", "retries"):
        if name in predictor_entries and not predictor.calls:
            raise predictor_entries[name].problem(f"`{name}` has no effect, because '{kind}' calls nothing: remove it")
    if not predictor.threads and "concurrency" in predictor_entries and predictor_entries["concurrency"].value != "1":
        why = f"'{kind}' answers one case after the other"
        raise predictor_entries["concurrency"].problem(f"`concurrency` has no effect, because {why}: remove it")


def _settings_of(kind: str, text: str) -> dict[str, JsonValue]:
    predictor = PREDICTORS[kind]
    return {predictor.text_setting or kind: text} if predictor.read_text is None else predictor.read_text(text)
