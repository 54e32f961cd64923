"""Readers of `source`, `sources` and `predictor`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_queryeval.discreet import discreet
from pytest_queryeval.documents.document import File, Node
from pytest_queryeval.documents.values import Reader, each_entry, entries, positive_number, stated_text, whole_number
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import absolute
from pytest_queryeval.errors import SettingError, SourceError, did_you_mean
from pytest_queryeval.loading.variables import as_written, expanded_text, expanded_value
from pytest_queryeval.model import PredictorSpec, Source
from pytest_queryeval.predictors import PREDICTORS

ENGINE_OF_SUFFIX = {
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "sqlite"),
    ".duckdb": "duckdb",
    **dict.fromkeys((".ttl", ".nt", ".nq", ".trig", ".rdf", ".owl", ".jsonld"), "rdf"),
}
# What may stand beside an engine's name and is no misspelt one.
SOURCE_KEYS = ("version", "engine", "headers", "auth", "verify", "default_graph", "service")
PREDICTIONS_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")
# What may stand beside a predictor's name, whichever it is.
CALL_SETTINGS: Mapping[str, Reader[Any]] = {
    "concurrency": whole_number(1),
    "timeout": positive_number,
    "retries": whole_number(0),
}

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A `source` that is one text: a name in `sources`, which may come from another file, or a source in place."""

    text: str
    node: Node


def read_source(node: Node) -> Source | SourceText:
    """Read a source in place, or the text that tells which; raises `CaseError`."""
    if isinstance(node.value, dict):
        return _described(node)
    stated_text(node)
    return SourceText(expanded_text(node), node)


def read_sources(node: Node) -> dict[str, Source]:
    """Read the named sources; raises `SuiteError` with the problems of all of them."""

    def read(name: str, value: Node) -> Source:
        source = read_source(value)
        return replace(resolved_source(source, {}), name=name)

    return each_entry(node, read)


def resolved_source(source: Source | SourceText, named: Mapping[str, Source]) -> Source:
    """Return the source that is meant, where `named` are those that have names; raises `CaseError` if there is none."""
    if isinstance(source, Source):
        return source
    if source.text in named:
        return named[source.text]
    engine = _engine_of(source.text)
    if engine is None:
        # The text as written: what the environment put into it may be a secret.
        written = discreet(str(source.node.value))
        suggestion = did_you_mean(written, named) if named else ""
        known = f"{', '.join(ENGINE_OF_SUFFIX)}, https://…"
        raise source.node.problem(
            f"'{written}' is no name in `sources`, and neither its suffix nor a scheme tells its engine"
            f"{suggestion or f': known are {known}'}"
        )
    _check_engine(engine, source.node)
    settings = {ENGINES[engine].text_setting: source.text}
    _check_settings(engine, settings, {}, source.node)
    return Source(name=discreet(source.text), engine=engine, settings=settings, folder=source.node.file.folder)


def _engine_of(text: str) -> str | None:
    if text.startswith(("http://", "https://")):
        return "endpoint"
    if _SCHEME.match(text):
        return "sqlalchemy"
    return ENGINE_OF_SUFFIX.get(PurePosixPath(text).suffix.lower())


def _described(node: Node) -> Source:
    """One engine's name with its settings; those of the source as a whole may also stand beside the name."""
    named = entries(node)
    engine = _engine_among(named, node)
    own = named[engine].value
    nodes = {**{name: at for name, at in named.items() if name != engine}, **(own if isinstance(own, dict) else {})}
    settings = _settings(named[engine], ENGINES[engine].text_setting)
    settings |= {name: expanded_value(named[name]) for name in named if name != engine}
    _check_settings(engine, settings, nodes, named[engine])
    return Source(name=_name_of(engine, settings), engine=engine, settings=settings, folder=node.file.folder)


def _engine_among(named: Mapping[str, Node], node: Node) -> str:
    engines = [name for name in named if name in ENGINES]
    if len(engines) == 1:
        return engines[0]
    if not engines and (first := next((name for name in named if name not in SOURCE_KEYS), None)):
        _check_engine(first, named[first])
    found = f"found {' and '.join(engines)}" if engines else "found none"
    raise node.problem(f"expected one engine's name as key of the source, such as sqlite: {found}")


def _check_settings(engine: str, settings: Mapping[str, Any], nodes: Mapping[str, Node], otherwise: Node) -> None:
    """Raise `CaseError` at the setting that cannot be right, or at `otherwise` where it has no place of its own."""
    try:
        ENGINES[engine].check(settings)
        _check_ca_file(settings, otherwise.file.folder)
    except SettingError as error:
        problem = str(error)
        for node in (*nodes.values(), otherwise):
            problem = as_written(problem, node)
        raise nodes.get(error.setting, otherwise).problem(problem) from error


def _check_ca_file(settings: Mapping[str, Any], folder: Path) -> None:
    name = settings.get("verify")
    if not isinstance(name, str):
        return
    try:
        exists = absolute(folder, name).exists()
    except SourceError as error:
        raise SettingError("verify", str(error)) from error
    if not exists:
        raise SettingError("verify", f"'verify' names no file: {discreet(name)}")


def _check_engine(engine: str, node: Node) -> None:
    if engine not in ENGINES:
        raise node.problem(f"unknown engine '{engine}'{did_you_mean(engine, ENGINES.names())}")


def _settings(node: Node, single: str) -> dict[str, Any]:
    """Return a mapping as it stands; anything else as the value of one setting."""
    if isinstance(node.value, dict):
        return {name: expanded_value(value) for name, value in node.value.items()}
    if isinstance(node.value, list):
        return {single: expanded_value(node)}
    stated_text(node)
    return {single: expanded_text(node)}


def _name_of(engine: str, settings: Mapping[str, Any]) -> str:
    """Return a name for a source in place: its path or URL, else its first setting, texts joined if they are a list."""
    first = settings.get(ENGINES[engine].text_setting) or next(iter(settings.values()), None)
    if isinstance(first, list):
        return ", ".join(discreet(str(item)) for item in first) or engine
    return discreet(first) if isinstance(first, str) else engine


def read_predictor(node: Node) -> PredictorSpec:
    """Read a predictor by its text or its mapping; raises `CaseError`."""
    if isinstance(node.value, dict):
        return _described_predictor(node, node.value)
    stated_text(node)
    text = expanded_text(node)
    kind = _predictor_of(text)
    if kind is None:
        written = discreet(str(node.value))
        if written in PREDICTORS:
            raise node.problem(f"'{written}' alone says too little: write `{{{written}: ...}}`")
        raise node.problem(f"unknown predictor '{written}'{did_you_mean(written, PREDICTORS.names())}")
    settings = {} if kind == text else {PREDICTORS[kind].text_setting: text}
    _check_predictor(kind, settings, {}, node)
    return PredictorSpec(kind=kind, settings=settings, folder=node.file.folder)


def _predictor_of(text: str) -> str | None:
    if text.startswith(("http://", "https://")):
        return "http"
    if text.endswith(PREDICTIONS_SUFFIXES):
        return "file"
    if ":" in text:
        return "python"
    return text if text in PREDICTORS and not PREDICTORS[text].text_setting else None


def _described_predictor(node: Node, named: Mapping[str, Node]) -> PredictorSpec:
    kinds = [name for name in named if name not in CALL_SETTINGS]
    if len(kinds) != 1:
        found = f"found {' and '.join(kinds)}" if kinds else "found none"
        raise node.problem(f"expected one predictor's name as key, such as python: {found}")
    kind = kinds[0]
    own = named[kind]
    if kind not in PREDICTORS:
        raise own.problem(f"unknown predictor '{kind}'{did_you_mean(kind, PREDICTORS.names())}")
    settings = {} if own.empty else _settings(own, PREDICTORS[kind].text_setting or kind)
    _check_predictor(kind, settings, own.value if isinstance(own.value, dict) else {}, own)
    calls = {name: CALL_SETTINGS[name](value) for name, value in named.items() if name != kind}
    return PredictorSpec(kind=kind, settings=settings, folder=node.file.folder, **calls)


def _check_predictor(kind: str, settings: Mapping[str, Any], nodes: Mapping[str, Node], otherwise: Node) -> None:
    """Raise `CaseError` at the setting that cannot be right, or at `otherwise` where it has no place of its own."""
    try:
        PREDICTORS[kind].check(settings)
        _check_ca_file(settings, otherwise.file.folder)
    except SettingError as error:
        place = nodes.get(error.setting, otherwise)
        raise place.problem(as_written(str(error), place)) from error


def predictor_of_text(text: str, *, folder: Path) -> PredictorSpec:
    """Read a predictor that is named outside of a suite, relative paths starting in `folder`; raises `CaseError`."""
    return read_predictor(Node(text, 0, "quoted", File(folder / "command line", Path("command line"))))
