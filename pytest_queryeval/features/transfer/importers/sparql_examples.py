"""Folders of SPARQL examples in SHACL, such as those of the Swiss Institute of Bioinformatics.

Each `sh:SPARQLExecutable` is a question in its comment, with its query and the endpoints that it is for:
https://github.com/sib-swiss/sparql-examples
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from pytest_queryeval.core.errors import CaseError, QueryEvalError
from pytest_queryeval.features.transfer.importers import Import, ImportRequest, Reading, SkippedRecord
from pytest_queryeval.features.transfer.importers.fields import fixed_fields
from pytest_queryeval.features.transfer.importers.reading import Record, RecordError
from pytest_queryeval.features.transfer.importers.records import Databases, check_request, import_cases
from pytest_queryeval.features.transfer.importers.w3c_sparql import read_quads
from pytest_queryeval.languages.sparql.query import with_prefixes
from pytest_queryeval.text.formatting import one_line

MAX_FILES = 20_000
MAX_TAGS = 20
_TAG = re.compile(r"<[^>]*>")
_NAMES = "PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX schema: <https://schema.org/>"
_PREFIXES = f"{_NAMES} SELECT ?prefix ?space {{ GRAPH ?file {{ ?one sh:prefix ?prefix ; sh:namespace ?space }} }}"
_EXAMPLES = f"""{_NAMES} PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?file ?example ?query ?comment
  (GROUP_CONCAT(DISTINCT COALESCE(STR(?target), ""); separator=" ") AS ?targets)
  (GROUP_CONCAT(DISTINCT COALESCE(STR(?keyword), ""); separator=",") AS ?keywords)
{{ GRAPH ?file {{
  ?example a sh:SPARQLExecutable ; sh:select|sh:ask|sh:construct|sh:describe ?query ; rdfs:comment ?comment .
  OPTIONAL {{ ?example schema:target ?target }}
  OPTIONAL {{ ?example schema:keywords ?keyword }}
}} }} GROUP BY ?file ?example ?query ?comment ORDER BY ?file ?example"""


def import_sparql_examples(request: ImportRequest) -> Import:
    """Return a case for each example with a comment in the language of the request, or without a language.

    Examples for other endpoints than `--source` are skipped, as are files that cannot be read.
    """
    check_request(request, kind="sparql", has_languages=True)
    databases = Databases(request, request.source, {"kind": "sparql"})
    endpoints = Counter[str]()

    def adapt(record: Record) -> Record:
        targets = record.text("targets").split()
        endpoints.update(targets)
        here = (request.database or "").rstrip("/")
        if here.startswith("http") and targets and here not in (target.rstrip("/") for target in targets):
            raise RecordError(f"it runs at {one_line(' and '.join(targets))}, which is not --source")
        if request.database is None:
            raise RecordError(f"it runs at {one_line(' and '.join(targets))}: name that as --source")
        return record

    reading = Reading(_records(request), fixed_fields("sparql", question="question", gold="gold", tags="tags"))
    return import_cases(request, reading, databases, adapt=adapt, name=request.source.resolve().name)


def _records(request: ImportRequest) -> Iterator[Record | SkippedRecord]:
    import pyoxigraph

    root = request.source.resolve()
    root = root if root.is_dir() else root.parent
    files = sorted(request.source.resolve().rglob("*.ttl")) if request.source.is_dir() else [request.source.resolve()]
    if len(files) > MAX_FILES:
        raise QueryEvalError(f"{request.source}: has more than {MAX_FILES:,} files: import its folders one by one")
    store = pyoxigraph.Store()
    for file in files:
        name = file.relative_to(root).with_suffix("").as_posix()
        if not file.resolve().is_relative_to(root):
            yield SkippedRecord(name, "it is a link that leads out of the folder")
            continue
        try:
            graph = pyoxigraph.NamedNode(f"file:{quote(name)}")
            quads = [
                pyoxigraph.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in read_quads(file, root)
            ]
        except (CaseError, RecordError, ValueError, OSError, SyntaxError) as error:
            yield SkippedRecord(name, one_line(str(error)))
        else:
            store.extend(quads)
    prefixes: Any = store.query(_PREFIXES)
    spaces = {row["prefix"].value: row["space"].value for row in prefixes}
    examples: Any = store.query(_EXAMPLES)
    seen = Counter[str]()
    for position, row in enumerate(examples):
        if row["comment"].language not in (None, request.language):
            continue
        name = unquote(row["file"].value.removeprefix("file:"))
        seen[name] += 1
        yield Record(name if seen[name] == 1 else f"{name}-{seen[name]}", position, _fields(row, spaces))


def _fields(row: Any, prefixes: Mapping[str, str]) -> Mapping[str, Any]:
    comment = row["comment"].value
    if row["comment"].datatype.value.endswith("#HTML"):
        comment = html.unescape(_TAG.sub("", comment))
    keywords = row["keywords"].value.split(",")[:MAX_TAGS]
    return {
        "question": " ".join(comment.split()),
        "gold": with_prefixes(row["query"].value, prefixes),
        "targets": row["targets"].value,
        "tags": [word for word in keywords if word],
    }
