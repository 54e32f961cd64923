"""Manifests of SPARQL tests, as the W3C's: a query evaluation test with its data, its named graphs and its result.

The queries of the tests are the predictions, so that the suites test an engine. Files name each other by relative IRIs,
which queries and sources of a suite cannot: data and results are written anew, with absolute IRIs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import MEBIBYTE, Node, file_at
from pytest_queryeval.engines.graph_build import refuse_bombs
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, SkippedRecord
from pytest_queryeval.features.transfer.importers.reading import RecordError
from pytest_queryeval.features.transfer.importers.records import check_request, import_records
from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.sparql.query import read_query
from pytest_queryeval.text.formatting import one_line

BASE = "https://manifest.invalid/"  # stands for the folder of the manifest
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RESULT_INDEX = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#index"
TYPES = (f"{MF}QueryEvaluationTest", f"{MF}CSVResultFormatTest")
FORMATS = {".ttl": "TURTLE", ".nt": "N_TRIPLES", ".rdf": "RDF_XML"}
MAX_BYTES = 64 * MEBIBYTE
_FROM = re.compile(r"\bFROM\s+(?:NAMED\s+)?<([^<>\s]*)>", re.IGNORECASE)


_Test: TypeAlias = tuple[str, Any, Any]
"""The id of a test, its node, and the graph of its manifest."""


def import_w3c_sparql(request: ImportRequest) -> Import:
    """Return a case for each query evaluation test of a manifest and of the manifests that it includes.

    The query of a test is its prediction, unless the request names predictions; its result is the right answer. Tests
    with missing or invalid files are skipped.
    """
    check_request(request, kind="sparql")
    source = (request.source / "manifest.ttl" if request.source.is_dir() else request.source).resolve()
    root = source.parent

    def case_of(id_: str, test: _Test) -> ImportedCase:
        try:
            keys, files = _case_keys(*test, root)
        except (ValueError, OSError, SyntaxError) as error:
            raise RecordError(one_line(str(error))) from error
        if request.predictions is not None:
            del keys["predicted"]
        return ImportedCase(id=id_, keys=keys, files=files)

    settings: dict[str, JsonValue] = {"kind": "sparql", "metrics": ["execution_accuracy"]}
    tests = _tests(source, root)
    return import_records(request, tests, lambda test: test[0], case_of, settings=settings, name=root.name)


def _tests(path: Path, root: Path) -> Iterator[_Test | SkippedRecord]:
    """Yield the tests of a manifest and of the manifests that it includes, each read once.

    Raise `QueryEvalError` for a manifest that is not Turtle.
    """
    from rdflib import Graph

    waiting, read_paths = [path], set[Path]()
    while waiting:
        path = waiting.pop(0)
        if path in read_paths:
            continue
        read_paths.add(path)
        text = file_at(path).text(MAX_BYTES)
        try:
            graph = Graph().parse(data=text, format="turtle", publicID=_iri(path, root))
        except Exception as error:  # whatever rdflib raises for a text that is not Turtle
            raise QueryEvalError(f"{path}: is not a manifest in Turtle: {one_line(str(error))}") from error
        yield from _tests_of(path, graph, root)
        included = []
        for iri in _list_items("include", path, graph):
            try:
                included.append(_named_file(iri, root))
            except RecordError as error:
                yield SkippedRecord(one_line(str(iri)), str(error))
        waiting = [*included, *waiting]


def _list_items(name: str, path: Path, graph: Any) -> list[Any]:
    """Return the items of a manifest's lists with this name; raise `QueryEvalError` for a cyclic list."""
    from rdflib import URIRef
    from rdflib.collection import Collection

    try:
        return [item for head in graph.objects(None, URIRef(f"{MF}{name}")) for item in Collection(graph, head)]
    except ValueError as error:
        raise QueryEvalError(f"{path}: mf:{name} is not a list: {error}") from error


def _tests_of(path: Path, graph: Any, root: Path) -> Iterator[_Test | SkippedRecord]:
    """Yield the tests of one manifest in the order of its entries, and a skipped record for other types of tests.

    The id of a test begins with the folder of its manifest.
    """
    from rdflib import RDF, URIRef

    entries = _list_items("entries", path, graph)
    for test in dict.fromkeys((*entries, *graph.subjects(URIRef(f"{MF}action"), None))):
        folder = path.parent.relative_to(root).as_posix()
        name = str(test).rpartition("#")[2] or str(test)
        id_ = name if folder == "." else f"{folder}/{name}"
        kinds = [str(kind) for kind in graph.objects(test, RDF.type)]
        if not set(kinds) & set(TYPES):
            yield SkippedRecord(id_, f"it evaluates no query: {', '.join(kind.rpartition('#')[2] for kind in kinds)}")
            continue
        yield id_, test, graph


def _case_keys(id_: str, test: Any, graph: Any, root: Path) -> tuple[dict[str, JsonValue], dict[str, bytes]]:
    """Return the keys of a case, and the contents of the files that they name: its data and its result.

    Data files are merged into N-Quads with absolute IRIs. Lax cardinality ignores duplicates; an ordered result with
    ORDER BY makes the order count. Raise `RecordError` unless the test has one query and one result.
    """
    import pyoxigraph
    from pyoxigraph import DefaultGraph, NamedNode, Quad
    from rdflib import BNode, URIRef

    def files(subject: Any, name: str) -> tuple[Path, ...]:
        nodes = graph.objects(subject, URIRef(name))
        # In old manifests, a named graph is a node with its file and its label.
        iris = (graph.value(iri, URIRef(f"{QT}graph")) if isinstance(iri, BNode) else iri for iri in nodes)
        return tuple(sorted(_named_file(iri, root) for iri in iris if iri is not None))

    action = graph.value(test, URIRef(f"{MF}action"))
    queries, results = files(action, f"{QT}query"), files(test, f"{MF}result")
    if len(queries) != 1 or len(results) != 1:
        raise RecordError(f"it has {len(queries)} queries and {len(results)} results: expected one of each")
    cardinality = graph.value(test, URIRef(f"{MF}resultCardinality"))
    name = str(graph.value(test, URIRef(f"{MF}name")) or id_)
    data_files, graph_files = files(action, f"{QT}data"), files(action, f"{QT}graphData")
    query = f"BASE <{_iri(queries[0], root)}>\n{file_at(queries[0]).text(MAX_BYTES)}"
    # FROM names graphs that the source has; the tests name files.
    from_files = (queries[0].parent / name for name in _FROM.findall(query))
    graphs = dict.fromkeys((*graph_files, *(path.resolve() for path in from_files if path.is_file())))
    quads: list[Quad] = []
    for named_files, is_named in ((data_files, False), (graphs, True)):
        for file in named_files:
            target = NamedNode(_iri(file, root)) if is_named else DefaultGraph()
            quads += [Quad(quad.subject, quad.predicate, quad.object, target) for quad in read_quads(file, root)]
    data = pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS)
    key = repr(([_iri(file, root) for file in data_files], [_iri(file, root) for file in graphs]))
    data_name = f"data/{hashlib.sha256(key.encode()).hexdigest()[:12]}.nq"  # the same for the same files
    result_name, result, is_ordered = _result_file(results[0], root)
    keys: dict[str, JsonValue] = {
        "question": name,
        "source": {"rdf": data_name},
        "gold_file": result_name,
        "predicted": query,
        "allow_empty": True,
    }
    if str(cardinality) == f"{MF}LaxCardinality":
        keys["compare"] = {"duplicates": "ignore"}
    elif is_ordered and read_query(query).modifier_index("ORDER") is not None:
        keys["compare"] = {"row_order": "strict"}
    return keys, {data_name: data or b"", result_name: result}


def _iri(path: Path, root: Path) -> str:
    return f"{BASE}{path.relative_to(root).as_posix()}"


def _named_file(iri: Any, root: Path) -> Path:
    """Return the file that an IRI of a manifest names.

    Raise `RecordError` for a file that does not exist, or is not below the folder of the manifest.
    """
    name = str(iri).removeprefix(BASE)
    try:
        path = (root / name).resolve()
        is_file = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # too long, with a NUL, or a link to itself
        raise RecordError(f"{one_line(name)}: cannot be read: {error}") from error
    if not str(iri).startswith(BASE) or not path.is_relative_to(root):
        raise RecordError(f"it names {one_line(str(iri))}, which is not a file below the manifest")
    if not is_file:
        raise RecordError(f"{one_line(name)}: no such file")
    return path


def read_quads(file: Path, root: Path) -> Iterator[Any]:
    """Yield the quads of an RDF file.

    Raise `RecordError` for an unknown format or a file that is too large, and other errors for content that is invalid
    or nested too deeply.
    """
    import pyoxigraph

    from pytest_queryeval.languages.sparql.results import refuse_nesting

    format_ = FORMATS.get(file.suffix.lower())
    if format_ is None:
        raise RecordError(f"{file.name}: unknown format: choose from {', '.join(FORMATS)}")
    if file.stat().st_size > MAX_BYTES:
        raise RecordError(f"{file.name}: larger than {MAX_BYTES // MEBIBYTE} MiB")
    refuse_bombs(format_, str(file))
    refuse_nesting(file.read_text(encoding="utf-8", errors="replace"))
    yield from pyoxigraph.parse(
        path=str(file),
        format=getattr(pyoxigraph.RdfFormat, format_),
        base_iri=_iri(file, root),
        lenient=True,
        rename_blank_nodes=True,
    )


def _result_file(file: Path, root: Path) -> tuple[str, bytes, bool]:
    """Return the new name and the content of a result, and whether the order of its rows counts.

    RDF becomes N-Triples. The name is not that of the manifest: a data set must not bring files that pytest or this
    plugin would run. Raise `RecordError` for a file that is no result.
    """
    import pyoxigraph

    from pytest_queryeval.languages.sparql.results import read_rdf_results

    suffix = file.suffix.lower()
    if suffix in FORMATS:
        triples = [quad.triple for quad in read_quads(file, root)]
        content = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES) or b""
        read_rdf_results(content.decode(), ".nt")
        is_ordered = any(triple.predicate.value == RESULT_INDEX for triple in triples)
        suffix = ".nt"
    else:
        stored = file_at(file)
        if KINDS["sparql"].read_file(Node(file.name, 0, "quoted", stored)).answer is None:
            raise RecordError(f"{file.name}: is not a result")
        content, is_ordered = stored.data(MAX_BYTES), suffix != ".csv"
    return f"results/{hashlib.sha256(content).hexdigest()[:12]}{suffix}", content, is_ordered
