"""RDF files, queried by Oxigraph or rdflib in a child process, or by the first of both that takes the query."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SettingError, SourceError, did_you_mean
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.setting_validators import FILE_NAMES, SettingValidator, is_texts, texts
from pytest_queryeval.engines import EngineType, Settings, SourceFingerprint, settings_among
from pytest_queryeval.engines.graph_store import graph_store, rdf_format
from pytest_queryeval.engines.settings import absolute, check_settings, is_iris
from pytest_queryeval.languages.sparql.answers import refusal, with_terms
from pytest_queryeval.languages.sparql.query import Query, read_query
from pytest_queryeval.sandbox.host import Host, Hosts, Question, text_refusal

UNION = "union"
DAMAGED = "the parsed graph is damaged"  # the beginning of what the children say
MIN_SECONDS = 0.1
LOAD_SECONDS = 600.0  # for a graph that rdflib takes into memory
# What evaluates queries: its driver, the packages that this imports, and how much memory a graph may need.
EVALUATORS = {
    "oxigraph": (Path(__file__).with_name("oxigraph_child.py"), ("pyoxigraph",), 2 * 2**30),
    "rdflib": (Path(__file__).with_name("rdflib_child.py"), ("pyoxigraph", "rdflib"), 4 * 2**30),
}
SETTINGS = {
    "files": FILE_NAMES,
    "engine": SettingValidator(is_texts, "the name of an engine, or a list of names"),
    "default_graph": SettingValidator(
        lambda value: value == UNION or is_iris(value), f"'{UNION}', the IRI of a graph, or a list of IRIs"
    ),
}


def check(settings: Settings) -> None:
    """Raise `SettingError` for settings that are not these, and for unknown engines."""
    check_settings(settings, SETTINGS)
    if "files" not in settings:
        raise SettingError("files", "needs files")
    for name in texts(settings.get("engine", ())):
        if name not in EVALUATORS:
            raise SettingError("engine", f"unknown engine '{name}'{did_you_mean(name, EVALUATORS)}")


def open_rdf(source: Source, hosts: Hosts) -> RdfEngine:
    """Open `{rdf: files, engine: …, default_graph: …}`; the files are parsed here unless they were before.

    `default_graph` is what a query without FROM sees: by default the graph that has no name; the named graphs with
    these IRIs, or with `union` all graphs together. Raises `SourceError` for a file that cannot be read.
    """
    settings = source.settings
    chosen = []
    for name in texts(settings.get("engine", "oxigraph")):
        driver, packages, memory = EVALUATORS[name]
        chosen.append(hosts.get(name, driver, packages=packages, memory=memory))
    graphs = settings.get("default_graph", [])
    files = [absolute(source.folder, name) for name in texts(settings["files"])]
    return RdfEngine(source.name, files, chosen, UNION if graphs == UNION else list(texts(graphs)))


class RdfEngine:
    """A parsed graph, and the hosts that are asked in turn until one of them takes the query."""

    def __init__(self, name: str, files: Sequence[Path], hosts: Sequence[Host], default_graph: list[str] | str) -> None:
        self._name = name
        self._files = files
        self._hosts = hosts
        self._default_graph = default_graph
        self._store = self._stored()
        self._inode = self._store.stat().st_ino
        self._made_anew = False
        self._loaded_by: dict[str, int | None] = {}

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Read and run `query` for at most `timeout` seconds on all hosts together; raises `SourceError`."""
        began = time.monotonic()
        if failure := text_refusal(query) or refusal(read_query(query)):
            return Execution(query=query, error=failure, engine=self._hosts[0].name)
        outline = read_query(query)
        refused: list[Execution] = []
        left = timeout - (time.monotonic() - began)
        for host in self._hosts:
            execution = self._run(host, outline, query, max(left, MIN_SECONDS), max_rows)
            left -= execution.seconds
            error = execution.error
            if error is None:
                return replace(with_terms(execution, outline), note=_note(refused, host.name))
            if error.kind == "timeout":  # the whole limit, of which this engine had what was left
                execution = replace(execution, error=replace(error, message=f"no answer within {timeout:g} s"))
            refused.append(with_terms(execution, outline))
            if error.kind != "invalid":
                break
        return refused[0] if len(refused) == 1 else replace(refused[0], error=_all_refused(refused))

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Return rows of the seconds that both take on the first engine that takes both; raises `SourceError`."""
        asked = [Question(query, self._settings(read_query(query))) for query in (gold, predicted)]
        try:
            for host in self._hosts:
                self._load(host, asked[0].settings)
                timed = host.time(*asked, iterations=iterations, timeout=timeout)
                if timed.error is None or timed.error.kind != "invalid":
                    break
        except SourceError as error:
            raise SourceError(f"source '{self._name}': {error}") from error
        return timed

    def close(self) -> None:
        """Do nothing: the store stays for the next run, and the hosts belong to others."""

    def _run(self, host: Host, outline: Query, query: str, timeout: float, max_rows: int) -> Execution:
        """Run on one host; a store that cannot be read, since something damaged it, is made anew once."""
        settings = self._settings(outline)
        try:
            self._load(host, settings)
            return host.execute(settings, query, timeout=timeout, max_rows=max_rows)
        except SourceError as error:
            if self._made_anew or DAMAGED not in str(error):
                raise SourceError(f"source '{self._name}': {error}") from error
        self._made_anew = True
        self._store = self._stored(damaged=self._inode)
        return self._run(host, outline, query, timeout, max_rows)

    def _settings(self, outline: Query) -> dict[str, Any]:
        return {
            "store": str(self._store),
            "files": [(str(file), rdf_format(file)) for file in self._files],
            "default_graph": self._default_graph,
            "states_dataset": outline.states_dataset,
        }

    def _load(self, host: Host, settings: Mapping[str, Any]) -> None:
        """Have a new child read the graph, so that this does not count as time of a query."""
        if host.pid is None or self._loaded_by.get(host.name) != host.pid:
            answer = host.execute(settings, "ASK {}", timeout=LOAD_SECONDS, max_rows=1)
            if answer.error:
                raise SourceError(f"{host.name} cannot load the graph: {answer.error.message}")
            self._loaded_by[host.name] = host.pid

    def _stored(self, *, damaged: int | None = None) -> Path:
        try:
            return graph_store(self._files, damaged=damaged)
        except SourceError as error:
            raise SourceError(f"source '{self._name}': {error}") from error


def _note(refused: Sequence[Execution], name: str) -> str:
    """Return what the report says where a later engine answered."""
    if not refused or refused[0].error is None:
        return ""
    return f"answered by {name}, since {refused[0].engine} refused the query: {refused[0].error.message}"


def _all_refused(refused: Sequence[Execution]) -> Failure:
    """Return the last failure's kind, and what every engine said."""
    said = [(execution.engine, execution.error) for execution in refused if execution.error]
    return Failure(kind=said[-1][1].kind, message="; ".join(f"{name}: {error.message}" for name, error in said))


def versions(settings: Settings) -> str:
    """Return the versions of the packages that parse the files and take the queries."""
    packages = dict.fromkeys(
        package for name in texts(settings.get("engine", "oxigraph")) for package in EVALUATORS[name][1]
    )
    return ", ".join(f"{package} {version(package)}" for package in packages)


FINGERPRINT = SourceFingerprint(
    files=lambda source: texts(source.settings["files"]),
    settings=settings_among("engine", "default_graph"),
    version=versions,
)
RDF = EngineType(opener=open_rdf, kind="sparql", text_setting="files", check=check, fingerprint=FINGERPRINT)
