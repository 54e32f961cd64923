"""The engine `endpoint`: any SPARQL 1.1 endpoint, queried over HTTP from a child process."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.shapes import (
    FLAG,
    TEXTS,
    SettingValidator,
    choice_setting,
    either,
    is_iri,
    is_iris,
    texts,
)
from pytest_queryeval.engines import EngineType, Settings, SourceFingerprint, settings_among
from pytest_queryeval.engines.bases import RemoteEngine, connection_settings
from pytest_queryeval.engines.settings import check_settings
from pytest_queryeval.features.sparql_endpoint.endpoint_profiles import PROFILES
from pytest_queryeval.languages.sparql import refusal, with_terms
from pytest_queryeval.languages.sparql.order import NO_GRAPH
from pytest_queryeval.languages.sparql.portable import portable
from pytest_queryeval.languages.sparql.query import (
    BIGDATA,
    BLANK,
    PREFIX_SETS,
    PREFIXES,
    WIKIBASE,
    WIKIBASE_LABEL,
    QueryOutline,
    declared_prefixes,
    read_query,
    with_prefixes,
)
from pytest_queryeval.sandbox.host import Host, Hosts, QueryRequest, text_refusal
from pytest_queryeval.sandbox.http_settings import CONNECTION
from pytest_queryeval.text.formatting import one_line

DRIVER = Path(__file__).with_name("endpoint_child.py")
PACKAGES = ("SPARQLWrapper", "rdflib", "requests")
PROBE = "ASK {}"
_BUSY = re.compile(r"\b(?:429|503)\b|too many requests|service unavailable", re.IGNORECASE)
# Prefixes that Virtuoso knows without a declaration: functions of its own, of which some write or open connections,
# procedures of SQL, and options of FROM that fetch a graph. These functions compute from their arguments alone.
_VIRTUOSO = re.compile(r"(?P<iri><)?(?<![\w.:/#-])(?P<prefix>bif|sql|get):(?P<name>\w*)", re.IGNORECASE)
_COMPUTING = re.compile(
    r"""bif:(abs|acos|asin|atan2?|atof|atoi|ceiling|char_length|coalesce|concat|contains|cos|curdate|curdatetime|date\w+
    |day\w*|degrees|either|exp|floor|geography\w*|hour|initcap|isnull|lcase|left|length|locate|log|log10|lower|ltrim|md5
    |minute|mod|month\w*|now|pi|power|quarter|radians|regexp_(?:instr|like|match|replace|substr)|replace|right|round|rtrim
    |search_excerpt|second|sign|sin|sqrt|st_\w+|strcasestr|strcontains|string(?:date|time)|strstr|subseq|substring|tan
    |timezone|trim|ucase|upper|week|xcontains|year)|sql:(sample|group_concat)""",
    re.IGNORECASE | re.VERBOSE,
)
# What is called, by its IRI or by a prefixed name.
_CALLED = re.compile(
    rf"(?:<(?P<iri>[^<>\s]*+)>|(?<![\w.:%\\-])(?P<prefix>[\w.-]*+):(?P<local>(?:[\w.:%-]|\\.)*+)){BLANK}\("
)
# An IRI without a scheme calls the procedure of SQL of that name, with or without `LONG::` and the like in front, which
# may stand before other functions, too. XPath has functions that fetch documents.
_FN = "http://www.w3.org/2005/xpath-functions/#"
_PROCEDURE = re.compile(r"[^:&?]*(?:::|\Z)|(?:xpath:|http://www\.w3\.org/2005/xpath-functions/?#)(?:doc|collection)")
SETTINGS = {
    **CONNECTION,
    "default_graph": SettingValidator(is_iris, "the IRI of a graph, or a list of IRIs", shape=TEXTS),
    "allow_from": SettingValidator(is_iris, "the IRI of a graph, or a list of IRIs", shape=TEXTS),
    "prefixes": PREFIXES,
    "service": SettingValidator(
        lambda value: isinstance(value, bool) or is_iris(value),
        "true, false, or what SERVICE may name: IRIs, or names such as wikibase:mwapi",
        shape=either(FLAG, TEXTS),
    ),
    "profile": choice_setting(PROFILES),
}
# Services of Blazegraph that ask its own data alone.
_OWN_SERVICES = (
    WIKIBASE_LABEL,
    *(f"{WIKIBASE}{name}" for name in ("around", "box")),
    *(f"{BIGDATA}{name}" for name in ("sample", "slice")),
    "http://www.bigdata.com/rdf/search#search",
    "http://www.bigdata.com/rdf/gas#service",
)


def check(settings: Settings) -> None:
    """Raise `SettingError` if a setting is unknown, invalid or missing, or `service` uses an unknown prefix."""
    check_settings(settings, SETTINGS)
    if "url" not in settings:
        raise SettingError("url", "needs a url")
    for name in _service_names(settings):
        if "//" not in name and not name.startswith("urn:"):
            problem = f"the prefix of '{name}' is none of this source: write the IRI, or add it to `prefixes`"
            raise SettingError("service", problem)


def _service_names(settings: Settings) -> set[str]:
    """Return the IRIs that SERVICE may name: from the settings, and with a known profile the service's own.

    A name with an unknown prefix is returned as written.
    """
    stated, prefixes = settings.get("service", False), declared_prefixes(settings)
    names = set(_OWN_SERVICES) if settings.get("profile") in PREFIX_SETS else set()
    for name in () if isinstance(stated, bool) else texts(stated):
        prefix, _, local = name.partition(":")
        names.add(f"{prefixes[prefix]}{local}" if prefix in prefixes else name)
    return names


def open_endpoint(source: Source, hosts: Hosts) -> EndpointEngine:
    """Return the engine of an endpoint, described by these settings; nothing is sent before the first query.

    `{endpoint: url, auth:, headers:, verify:, default_graph:, allow_from:, prefixes:, service:, profile:}`

    - `verify` may be a CA file
    - `allow_from` lists the graphs that queries may name next to the default graphs
    - `service` lists what SERVICE may name; true allows everything
    """
    settings = source.settings
    child_settings = {
        **connection_settings(source),
        "default_graph": list(texts(settings.get("default_graph", ()))),
        "profile": settings.get("profile"),
    }
    host = hosts.shared(Host("endpoint", DRIVER, packages=PACKAGES))
    return EndpointEngine(
        source.name,
        host,
        child_settings,
        prefixes=declared_prefixes(settings),
        allow_from=texts(settings.get("allow_from", ())),
        services=None if settings.get("service") is True else _service_names(settings),
    )


class EndpointEngine(RemoteEngine):
    """A SPARQL endpoint; `settings` are those of `endpoint_child.py`, except the form of the query.

    `allow_from` are further graphs that a query may name. `services` are the IRIs that SERVICE may name; None allows
    all.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        settings: Mapping[str, Any],
        *,
        prefixes: Mapping[str, str],
        allow_from: Iterable[str],
        services: Collection[str] | None,
    ) -> None:
        self._settings = settings
        self._prefixes = prefixes
        self._graphs = {*settings["default_graph"], *allow_from, NO_GRAPH[1:-1]}
        self._services = services
        super().__init__(
            name, host, settings, self._question(PROBE), ambiguous_failures=("timeout", "rejected", "invalid")
        )

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Send `query`, wait at most `timeout` seconds for the whole answer, and return the result.

        A query that may do more than read this source is refused and not sent. A query that the endpoint calls invalid
        is sent again in a portable form, if that differs. A timeout, server error or refusal is the query's fault only
        if the endpoint then answers a trivial query. Raise `SourceError` otherwise, and for any other lack of an
        answer.
        """
        if failure := self._refusal(query):
            return Execution(query=query, error=failure, engine=self._host.name)
        question = self._question(query)
        execution = self._send(question, timeout=timeout, max_rows=max_rows)
        portable_query = portable(question.text)
        is_refused = execution.error is not None and execution.error.kind == "invalid"
        if is_refused and portable_query != question.text and self._refusal(portable_query) is None:
            question = self._question(portable_query)
            second = self._send(question, timeout=timeout, max_rows=max_rows)
            execution = second if second.error is None else execution
        outline = read_query(question.text)
        if execution.error is not None and outline.services and _BUSY.search(execution.error.message):
            problem = f"a service that the query asks gives no answer: {execution.error.message}"
            raise SourceError(f"source '{self._name}': {problem}")
        added = len(question.text) - len(query) if question.text.endswith(query) else 0
        return replace(with_terms(execution, outline, added=added), query=query)

    def _refusal(self, query: str) -> Failure | None:
        if failure := text_refusal(query):
            return failure
        outline = read_query(query)
        if failure := refusal(replace(outline, services=())):
            return failure
        resolved = read_query(with_prefixes(query, self._prefixes))
        if self._services is not None:
            refused = next((name for name in resolved.services if name not in self._services), "")
            call, remedy = virtuoso_call(outline, self._prefixes), "service: true"
            if refused:
                call = one_line(f"SERVICE <{refused}>" if is_iri(refused) else refused)
                remedy = f"service: [{one_line(refused)}]" if is_iri(refused) else remedy
            if call:
                message = f"a query may only ask its own source: {call} (`{remedy}` on the source allows it)"
                return Failure(kind="unsafe", message=message)
        for graph in resolved.graphs:
            if graph not in self._graphs:
                name = one_line(graph)
                problem = f"<{name}> (`allow_from: {name}` on the source allows it)" if is_iri(graph) else name
                return Failure(kind="unsafe", message=f"only graphs that the source lists may be read: FROM {problem}")
        return None

    def _question(self, query: str, max_rows: int | None = None) -> QueryRequest:
        outline = read_query(query)
        settings = {**self._settings, "form": outline.form}
        if outline.states_dataset:
            settings["default_graph"] = []
        return QueryRequest(with_prefixes(query, self._prefixes), settings)


def virtuoso_call(query: QueryOutline, prefixes: Mapping[str, str]) -> str:
    """Return the first function or option of Virtuoso in `query` that may do more than compute; empty if there is none.

    `prefixes` are those that the source declares.
    """
    prefix_iris = {**prefixes, **query.prefixes}
    for match in _CALLED.finditer(query.text):
        base = {"fn": _FN, **prefix_iris}.get(match["prefix"], ":") if match["iri"] is None else match["iri"]
        if _PROCEDURE.match(f"{base}{match['local'] or ''}"):
            return one_line(match[0].rstrip("("))
    has_options = any(token.is_word("OPTION") for token in query.tokens)
    for match in _VIRTUOSO.finditer(query.text):
        is_option = has_options and match["prefix"] == "get"  # whatever the prefix is declared for
        is_declared = not match["iri"] and match["prefix"] in prefix_iris and not is_option
        call = f"{match['prefix']}:{match['name']}"
        if not is_declared and not _COMPUTING.fullmatch(call):
            return call
    return ""


FINGERPRINT = SourceFingerprint(
    settings=settings_among("default_graph", "allow_from", "prefixes", "service", "profile")
)
ENDPOINT = EngineType(
    opener=open_endpoint, kind="sparql", text_setting="url", check=check, settings=SETTINGS, fingerprint=FINGERPRINT
)
