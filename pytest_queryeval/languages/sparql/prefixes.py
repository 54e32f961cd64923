"""Prefixes that a source declares for the queries that use them without a declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.setting_validators import TEXT, SettingValidator, choice_shape, is_iri
from pytest_queryeval.core.shapes import either, list_shape
from pytest_queryeval.languages.sparql.query import read_query

COMMON = "common"
# `schema` and `geo` have several IRIs in use: these are the ones of schema.org's own context and of GeoSPARQL.
COMMON_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "sh": "http://www.w3.org/ns/shacl#",
    "prov": "http://www.w3.org/ns/prov#",
    "geo": "http://www.opengis.net/ont/geosparql#",
}
_NAME = re.compile(r"(?:[^\W\d_](?:[\w.-]*[\w-])?)?")


def _is_prefixes(value: Any) -> bool:
    return all(
        part == COMMON
        or (isinstance(part, dict) and all(_NAME.fullmatch(str(name)) and is_iri(iri) for name, iri in part.items()))
        for part in _parts(value)
    )


def _problems(value: Any) -> str:
    """Return the end of a message: which parts are wrong, and why."""
    problems = []
    for part in _parts(value):
        if isinstance(part, dict):
            for name, iri in part.items():
                if not _NAME.fullmatch(str(name)):
                    problems.append(f"'{name}' is not a name of a prefix")
                elif not is_iri(iri):
                    problems.append(f"'{iri}' of '{name}' is not an IRI")
        elif part != COMMON:
            problems.append(f"'{part}' is unknown")
    return f": {', '.join(problems)}"


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_SHAPE = either(choice_shape([COMMON]), {"type": "object", "additionalProperties": TEXT})
PREFIXES = SettingValidator(
    _is_prefixes,
    f"'{COMMON}', a mapping of names to IRIs such as {{ex: 'http://example.org/'}}, or a list of these",
    suggestion=_problems,
    shape=either(_SHAPE, list_shape(_SHAPE)),
)


def declared_prefixes(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the IRIs of a source's `prefixes` by name; of a name that occurs twice, the last one."""
    prefixes: dict[str, str] = {}
    for part in _parts(settings.get("prefixes", [])):
        prefixes |= COMMON_PREFIXES if part == COMMON else part
    return prefixes


def missing_prefixes(query: str, prefixes: Mapping[str, str]) -> list[str]:
    """Return the names in `prefixes` that the query uses and does not declare, in the order of their first use."""
    return [name for name in read_query(query).undeclared_prefixes if name in prefixes] if prefixes else []


def with_prefixes(query: str, prefixes: Mapping[str, str]) -> str:
    """Return the query with its missing prefixes declared on its first line, so that all lines keep their numbers."""
    return "".join(f"PREFIX {name}: <{prefixes[name]}> " for name in missing_prefixes(query, prefixes)) + query
