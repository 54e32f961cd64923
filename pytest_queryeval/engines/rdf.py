"""RDF files, queried by Oxigraph or rdflib in a child process, or by the first of both that accepts the query."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SettingError, SourceError, did_you_mean
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.shapes import (
    FILE_NAMES,
    STRING,
    TEXTS,
    SettingValidator,
    choice_shape,
    either,
    is_iri,
    is_iris,
    is_mapping,
    is_texts,
    list_shape,
    texts,
)
from pytest_queryeval.engines import (
    EngineType,
    Settings,
    SourceFingerprint,
    VariantFormat,
    prefix_source_errors,
    settings_among,
)
from pytest_queryeval.engines.graph_store import GraphFile, graph_store, names_graphs
from pytest_queryeval.engines.settings import VARIANTS, VARIANTS_SETTING, absolute, check_settings
from pytest_queryeval.languages.sparql import refusal, with_terms
from pytest_queryeval.languages.sparql.portable import portable
from pytest_queryeval.languages.sparql.query import (
    PREFIXES,
    QueryOutline,
    declared_prefixes,
    read_query,
    with_prefixes,
)
from pytest_queryeval.languages.sparql.tree_reader import in_other_words
from pytest_queryeval.sandbox.host import Host, Hosts, QueryRequest, text_refusal

UNION = "union"
DAMAGED = "the parsed graph is damaged"  # the beginning of the children's messages
MIN_SECONDS = 0.1
READING_SECONDS = 10.0  # for an engine to read a query that the other one refused
LOAD_SECONDS = 600.0  # for rdflib to load a graph into memory
# By name: the driver, the packages that it imports, and how much memory a graph may need.
EVALUATORS = {
    "oxigraph": (Path(__file__).with_name("oxigraph_child.py"), ("pyoxigraph",), 2 * 2**30),
    "rdflib": (Path(__file__).with_name("rdflib_child.py"), ("pyoxigraph", "rdflib"), 4 * 2**30),
}


def _graphs_problem(value: Any) -> str:
    """Return the end of a message on `graphs`: the first name that is not an IRI; empty if there is none."""
    invalid_name = next((name for name in value if not is_iri(name)), None) if isinstance(value, dict) else None
    return "" if invalid_name is None else f": '{invalid_name}' is not an IRI such as http://example.org/{invalid_name}"


_ENGINES = either(choice_shape(EVALUATORS), list_shape(choice_shape(EVALUATORS)))
SETTINGS = {
    "files": FILE_NAMES,
    "graphs": SettingValidator(
        lambda value: is_mapping(value, is_iri),
        "a mapping of IRIs of graphs to names of files",
        names_files=True,
        suggestion=_graphs_problem,
        shape={"type": "object", "additionalProperties": STRING},
    ),
    "engine": SettingValidator(is_texts, "the name of an engine, or a list of names", shape=_ENGINES),
    "default_graph": SettingValidator(
        lambda value: value == UNION or is_iris(value),
        f"'{UNION}', the IRI of a graph, or a list of IRIs",
        shape=TEXTS,
    ),
    "prefixes": PREFIXES,
    VARIANTS: VARIANTS_SETTING,
}


def check(settings: Settings) -> None:
    """Raise `SettingError` for unknown or invalid settings, for a source without `files`, and for an unknown engine."""
    check_settings(settings, SETTINGS)
    if "files" not in settings:
        raise SettingError("files", "needs files")
    for name in texts(settings.get("engine", ())):
        if name not in EVALUATORS:
            raise SettingError("engine", f"unknown engine '{name}'{did_you_mean(name, EVALUATORS)}")


def open_rdf(source: Source, hosts: Hosts) -> RdfEngine:
    """Open `{rdf: files, graphs:, engine:, default_graph:, prefixes:}`; files are parsed unless their store exists.

    `graphs` are named graphs, each read from one file. `default_graph` is what a query without FROM reads: by default
    the unnamed graph, else the named graphs with these IRIs, or with `union` all graphs together. Raise `SourceError`
    for a file that cannot be read.
    """
    settings = source.settings
    files = [GraphFile(absolute(source.folder, name)) for name in texts(settings["files"])]
    files += [GraphFile(absolute(source.folder, name), graph) for graph, name in settings.get("graphs", {}).items()]
    return RdfEngine(source.name, files, settings, hosts)


def build_rdf(script: str, settings: Settings, hosts: Hosts) -> GraphEngine:
    """Return the engine of the graphs in `script`, which is TriG, in the memory of child processes."""
    return GraphEngine("script", {"content": script}, settings, hosts)


def _refusal(query: QueryOutline) -> Failure | None:
    if failure := refusal(query):
        return failure
    if query.has_named_subqueries:
        remedy = "write a subquery: { SELECT … }"
        problem = f"SPARQL has no named subqueries (WITH … AS %name), which Blazegraph and QLever read: {remedy}"
        return Failure(kind="invalid", message=problem)
    return None


class GraphEngine:
    """The engine of RDF graphs, which tries its evaluators in turn until one accepts the query.

    `data` is what the child processes read: the `content` of a small graph, or a `store` and its `files`. `settings`
    are `engine`, `default_graph` and `prefixes` of a source.
    """

    def __init__(self, name: str, data: Mapping[str, Any], settings: Settings, hosts: Hosts) -> None:
        self._name = name
        self._data = data
        self._shared_hosts = hosts
        self._hosts = [self._host(evaluator) for evaluator in texts(settings.get("engine", "oxigraph"))]
        default = settings.get("default_graph", [])
        self._default_graph = UNION if default == UNION else list(texts(default))
        self._prefixes = declared_prefixes(settings)

    def _host(self, evaluator: str) -> Host:
        driver, packages, memory = EVALUATORS[evaluator]
        return self._shared_hosts.shared(Host(evaluator, driver, packages=packages, memory=memory))

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Return the first answer that an evaluator gives to `query`, or why none does.

        All evaluators together run for at most `timeout` seconds.

        A note says if the first evaluator refused the query. Raise `SourceError` if the graphs cannot be read, or if
        the only evaluator wrongly refuses the query.
        """
        began = time.monotonic()
        if (refused := self._refusal(query)) is not None:
            return Execution(query=query, error=refused, engine=self._hosts[0].name)
        full_query = self._sent(query)
        outline = read_query(full_query)
        failed_executions: list[Execution] = []
        failures: list[tuple[str, Failure]] = []
        seconds_left = timeout - (time.monotonic() - began)
        for host in self._hosts:
            execution = self._run(host, full_query, max(seconds_left, MIN_SECONDS), max_rows)
            execution = with_terms(execution, outline, added=len(full_query) - len(query))
            execution = replace(execution, query=query)
            seconds_left -= execution.seconds
            failure = execution.error
            if failure is None:
                if not failures:
                    return execution
                name, first_failure = failures[0]
                note = f"answered by {host.name}, because {name} refused the query: {first_failure.message}"
                return replace(execution, note=note)
            if failure.kind == "timeout":  # the message states the whole limit, of which this engine had only the rest
                failure = replace(failure, message=f"no answer within {timeout:g} s")
            failed_executions.append(execution)
            failures.append((host.name, failure))
            if failure.kind != "invalid":
                break
        if failures[-1][1].kind == "invalid":
            self._check_refusal(full_query, failures[-1])
        if len(failures) > 1:
            messages = "; ".join(f"{name}: {failure.message}" for name, failure in failures)
            failure = Failure(kind=failures[-1][1].kind, message=messages)
        return replace(failed_executions[0], error=failure)

    def close(self) -> None:
        """Do nothing: child processes and the store outlive this source."""

    def _refusal(self, query: str) -> Failure | None:
        """Return why a query is not run, judged as it is and as it is sent; None to run it.

        Services are found in the text that is sent.
        """
        if failure := text_refusal(query):
            return failure
        sent = read_query(self._sent(query))
        return _refusal(replace(read_query(query), services=sent.services)) or _refusal(sent)

    def _check_refusal(self, query: str, refused: tuple[str, Failure]) -> None:
        """Raise `SourceError` if the only evaluator refused a query that the other evaluator reads.

        rdflib also reads texts that are not SPARQL, so Oxigraph is wrong only if it reads the query in other words.
        """
        name, failure = refused
        other_words = in_other_words(query)
        if len(self._hosts) > 1 or not other_words:
            return
        other = next(evaluator for evaluator in EVALUATORS if evaluator != name)
        if (name == "rdflib" or self._reads(name, other_words)) and self._reads(other, query):
            problem = f"{name} refuses a query that {other} reads: {failure.message}"
            raise SourceError(f"source '{self._name}': {problem}; write `engine: [{name}, {other}]`")

    def _reads(self, evaluator: str, query: str) -> bool:
        settings = {"content": "", "default_graph": [], "states_dataset": True}
        error = self._host(evaluator).execute(settings, query, timeout=READING_SECONDS, max_rows=1).error
        return error is None or error.kind != "invalid"

    def _sent(self, query: str) -> str:
        return portable(with_prefixes(query, self._prefixes))

    def _run(self, host: Host, query: str, timeout: float, max_rows: int) -> Execution:
        """Run the query on one evaluator; raise `SourceError` if the source is at fault."""
        with self._source_errors():
            return host.execute(self._settings(query), query, timeout=timeout, max_rows=max_rows)

    def _settings(self, query: str) -> dict[str, Any]:
        states_dataset = read_query(query).states_dataset
        return {**self._data, "default_graph": self._default_graph, "states_dataset": states_dataset}

    def _source_errors(self) -> AbstractContextManager[None]:
        return prefix_source_errors(f"source '{self._name}'")


class RdfEngine(GraphEngine):
    """The engine of RDF files that are parsed into a store on disk."""

    def __init__(self, name: str, files: Sequence[GraphFile], settings: Settings, hosts: Hosts) -> None:
        super().__init__(name, {}, settings, hosts)
        self._files = files
        self._inode = self._find_store()
        self._is_rebuilt = False
        self._loaded_by: dict[str, int | None] = {}

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Time both queries on the first evaluator that accepts both, as `SupportsTiming.time` does.

        Raise `SourceError` if the source is at fault.
        """
        for query in (gold, predicted):
            if (refused := self._refusal(query)) is not None:
                return Execution(query=None, error=refused, engine=self._hosts[0].name)
        full_queries = [self._sent(query) for query in (gold, predicted)]
        pair = [QueryRequest(query, self._settings(query)) for query in full_queries]
        with self._source_errors():
            for host in self._hosts:
                self._load(host, pair[0].settings)
                execution = host.time(*pair, iterations=iterations, timeout=timeout)
                if execution.error is None or execution.error.kind != "invalid":
                    break
        return execution

    def _run(self, host: Host, query: str, timeout: float, max_rows: int) -> Execution:
        """Run the query on one evaluator; a damaged store is built again, but only once."""
        settings = self._settings(query)
        try:
            with self._source_errors():
                self._load(host, settings)
                return host.execute(settings, query, timeout=timeout, max_rows=max_rows)
        except SourceError as error:
            if self._is_rebuilt or DAMAGED not in str(error):
                raise
        self._is_rebuilt = True
        self._find_store(damaged_inode=self._inode)
        return self._run(host, query, timeout, max_rows)

    def _find_store(self, damaged_inode: int | None = None) -> int:
        """Find or build the store of the files, let queries read it, and return its inode."""
        with self._source_errors():
            store = graph_store(self._files, damaged_inode=damaged_inode)
        files = [(str(file.path), file.format, file.graph) for file in self._files]
        self._data = {"store": str(store), "files": files}
        return store.stat().st_ino

    def _load(self, host: Host, settings: Mapping[str, Any]) -> None:
        """Let a new child process load the graph, so that loading does not count as a query's time.

        Raise `SourceError` if it fails.
        """
        if host.pid is None or self._loaded_by.get(host.name) != host.pid:
            answer = host.execute(settings, "ASK {}", timeout=LOAD_SECONDS, max_rows=1)
            if answer.error:
                raise SourceError(f"{host.name} cannot load the graph: {answer.error.message}")
            self._loaded_by[host.name] = host.pid


def has_named_graphs(settings: Settings) -> bool:
    """Return whether a source may have named graphs: by `graphs`, or by files whose format names graphs."""
    return bool(settings.get("graphs")) or any(map(names_graphs, texts(settings["files"])))


def versions(settings: Settings) -> str:
    """Return the versions of the packages that parse the files and run the queries."""
    packages = dict.fromkeys(
        package for name in texts(settings.get("engine", "oxigraph")) for package in EVALUATORS[name][1]
    )
    return ", ".join(f"{package} {version(package)}" for package in packages)


def graph_settings(settings: Settings) -> Mapping[str, Any]:
    """Return the settings that change answers.

    `graphs` contains only the names of graphs, because files are known by their content.
    """
    graph_names = {"graphs": list(settings["graphs"])} if settings.get("graphs") else {}
    return {**settings_among("engine", "default_graph", "prefixes")(settings), **graph_names}


FINGERPRINT = SourceFingerprint(
    files=lambda source: (*texts(source.settings["files"]), *source.settings.get("graphs", {}).values()),
    settings=graph_settings,
    version=versions,
)
RDF = EngineType(
    opener=open_rdf,
    kind="sparql",
    text_setting="files",
    check=check,
    settings=SETTINGS,
    fingerprint=FINGERPRINT,
    build=build_rdf,
    variants=VariantFormat(
        suffix=lambda settings: ".trig" if has_named_graphs(settings) else ".ttl",
        comment="#",
        name="graph",
        unit="triple",
        settings=lambda settings, name: {
            "files": [name],
            **settings_among("engine", "default_graph", "prefixes")(settings),
        },
    ),
)
