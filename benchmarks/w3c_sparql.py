"""The query evaluation tests of the W3C for SPARQL 1.0 and 1.1, made a suite and run on both engines for files.

    git clone https://github.com/w3c/rdf-tests
    python benchmarks/w3c_sparql.py rdf-tests [SUITE]

Tests of entailment and of SERVICE are left out: no engine here entails, and queries may not leave their source. The data
become N-Quads with absolute IRIs, and results that are RDF become SPARQL JSON; all other results are read as they are.
With SUITE, a new folder, the suite is kept there, to be run by pytest, too.

Each failure is looked into by asking the engine itself, without this package, and comparing its answer with the W3C's by
rdflib's isomorphism of graphs. What fails there, too, is the engine's own; anything else would be a fault of ours.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyoxigraph
import rdflib
from rdflib.collection import Collection
from rdflib.compare import isomorphic

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Table
from pytest_queryeval.languages.sparql.query import read_query

BASE = "https://w3c.github.io/rdf-tests/"
MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
TYPES = (MF.QueryEvaluationTest, MF.CSVResultFormatTest)
LEFT_OUT = ("entailment", "service")
ENGINES = ("oxigraph", "rdflib")
FROM = re.compile(r"\bFROM\s+(?:NAMED\s+)?<([^>]*)>", re.IGNORECASE)
PARSED = {".ttl": "turtle", ".rdf": "xml", ".nt": "nt"}
ROW = rdflib.URIRef("urn:row")


@dataclass(frozen=True, kw_only=True)
class Test:
    """A test of a manifest, in paths of files; `graphs` are the named ones."""

    id: str
    name: str
    query: Path
    data: tuple[Path, ...]
    graphs: tuple[Path, ...]
    result: Path
    is_lax: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", type=Path, help="a checkout of w3c/rdf-tests")
    parser.add_argument("suite", type=Path, nargs="?", help="a new folder that keeps the suite")
    arguments = parser.parse_args()
    logging.disable()  # rdflib logs each literal that its datatype does not allow
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = f"{name}/cache"
        folder = arguments.suite or Path(name) / "suite"
        folder.mkdir(parents=True)
        root = arguments.tests.resolve()
        write_suite(list(tests_in(root)), root, folder)
        cases = load_cases(folder)
        ours = [id_ for engine in ENGINES for id_ in failures_of_ours(engine, cases)]
    print(f"failures that the engine alone does not have: {', '.join(ours) or 'none'}")
    sys.exit(1 if ours else 0)


def failures_of_ours(engine: str, cases: Sequence[Case]) -> list[str]:
    """Run the suite with the default policy, then with strict terms; return what the engine alone does not fail."""
    usual, strict = report(engine, cases), report(engine, cases, rdf_terms="strict")
    print(f"{engine}, failures with strict terms only: {', '.join(sorted(strict.keys() - usual.keys())) or 'none'}")
    return [id_ for failed in (usual, strict) for id_, is_ours in failed.items() if is_ours]


# The suite


def tests_in(root: Path) -> Iterator[Test]:
    """Yield the tests of all manifests, in the order of the manifests."""
    for path in sorted(root.glob("sparql/sparql1[01]/*/manifest.ttl")):
        if path.parent.name in LEFT_OUT:
            continue
        manifest = rdflib.Graph().parse(path, publicID=path.as_uri())
        listed = [test for head in manifest.objects(None, MF.entries) for test in Collection(manifest, head)]
        for test in dict.fromkeys((*listed, *manifest.subjects(MF.action, None))):
            if manifest.value(test, rdflib.RDF.type) in TYPES:
                yield read_test(manifest, test, path.parent)


def read_test(manifest: rdflib.Graph, test: Any, folder: Path) -> Test:
    def files(subject: Any, predicate: rdflib.URIRef) -> tuple[Path, ...]:
        return tuple(sorted(folder / str(name).rpartition("/")[2] for name in manifest.objects(subject, predicate)))

    action = manifest.value(test, MF.action)
    return Test(
        id=f"{folder.parent.name}/{folder.name}/{re.sub('[^A-Za-z0-9._-]', '-', str(test).rpartition('#')[2])}",
        name=str(manifest.value(test, MF.name)),
        query=files(action, QT.query)[0],
        data=files(action, QT.data),
        graphs=files(action, QT.graphData),
        result=files(test, MF.result)[0],
        is_lax=(test, MF.resultCardinality, MF.LaxCardinality) in manifest,
    )


def write_suite(tests: Sequence[Test], root: Path, folder: Path) -> None:
    """Write one file of cases, and the data and results that they name."""
    (folder / "data").mkdir()
    (folder / "results").mkdir()
    (folder / "queryeval.yaml").write_text("kind: sparql\nmetrics: [execution_accuracy]\n")
    with (folder / "w3c.queryeval.jsonl").open("w", encoding="utf-8") as file:
        for test in tests:
            file.write(f"{json.dumps(case_of(test, root, folder))}\n")


def case_of(test: Test, root: Path, folder: Path) -> dict[str, Any]:
    base = iri_of(test.query, root)
    query = f"BASE <{base}>\n{test.query.read_text(encoding='utf-8')}"
    # FROM names graphs that the source has; the tests name files.
    stated = [test.query.parent / name.rpartition("/")[2] for name in FROM.findall(query)]
    graphs = dict.fromkeys((*test.graphs, *(file for file in stated if file.is_file())))
    result, is_ordered = written_result(test, root, folder / "results")
    case: dict[str, Any] = {
        "id": test.id,
        "question": test.name,
        "source": {"rdf": f"data/{written_data(test.data, tuple(graphs), root, folder / 'data')}"},
        "gold_file": f"results/{result}",
        "predicted": query,
        "allow_empty": True,
    }
    if test.is_lax:
        case["compare"] = {"duplicates": "ignore"}
    elif is_ordered and read_query(query).modifier("ORDER") is not None:
        case["compare"] = {"row_order": "strict"}
    return case


def iri_of(file: Path, root: Path) -> str:
    return BASE + file.relative_to(root).as_posix()


def written_data(data: Sequence[Path], graphs: Sequence[Path], root: Path, folder: Path) -> str:
    """Write the files of a test as one file of N-Quads; return its name, the same for the same files."""
    quads: list[pyoxigraph.Quad] = []
    for files, named in ((data, False), (graphs, True)):
        for file in files:
            format_ = pyoxigraph.RdfFormat.from_extension(file.suffix[1:])
            parsed = pyoxigraph.parse(
                path=str(file), format=format_, base_iri=iri_of(file, root), lenient=True, rename_blank_nodes=True
            )
            graph = pyoxigraph.NamedNode(iri_of(file, root)) if named else pyoxigraph.DefaultGraph()
            quads += [pyoxigraph.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in parsed]
    text = pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS)
    assert text is not None
    name = hashlib.sha256(repr((data, graphs)).encode()).hexdigest()[:12] + ".nq"
    (folder / name).write_bytes(text)
    return name


def written_result(test: Test, root: Path, folder: Path) -> tuple[str, bool]:
    """Copy the result of a test, or write it as SPARQL JSON where it is RDF.

    Return the file's name, and whether the order of its rows means something.
    """
    name = test.id.replace("/", "-")
    if test.result.suffix not in PARSED:
        (folder / f"{name}{test.result.suffix}").write_bytes(test.result.read_bytes())
        return f"{name}{test.result.suffix}", test.result.suffix != ".csv"
    graph = rdflib.Graph()
    graph.parse(test.result, format=PARSED[test.result.suffix], publicID=iri_of(test.result, root))
    results = next(graph.subjects(rdflib.RDF.type, RS.ResultSet), None)
    document = triples_as_json(graph) if results is None else results_as_json(graph, results)
    (folder / f"{name}.srj").write_text(json.dumps(document), encoding="utf-8")
    return f"{name}.srj", (None, RS["index"], None) in graph


def triples_as_json(graph: rdflib.Graph) -> dict[str, Any]:
    names = ("subject", "predicate", "object")
    bindings = [dict(zip(names, map(term_as_json, triple), strict=True)) for triple in graph]
    return {"head": {"vars": list(names)}, "results": {"bindings": bindings}}


def results_as_json(graph: rdflib.Graph, results: Any) -> dict[str, Any]:
    if (boolean := graph.value(results, RS.boolean)) is not None:
        return {"head": {}, "boolean": str(boolean) == "true"}
    rows = sorted(graph.objects(results, RS.solution), key=lambda row: int(str(graph.value(row, RS["index"]) or 0)))
    bindings = [
        {
            str(graph.value(binding, RS.variable)): term_as_json(graph.value(binding, RS.value))
            for binding in graph.objects(row, RS.binding)
        }
        for row in rows
    ]
    names = sorted(str(name) for name in graph.objects(results, RS.resultVariable))
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def term_as_json(term: Any) -> dict[str, str]:
    match term:
        case rdflib.URIRef():
            return {"type": "uri", "value": str(term)}
        case rdflib.BNode():
            return {"type": "bnode", "value": str(term)}
    found = {"type": "literal", "value": str(term)}
    if term.language:
        found["xml:lang"] = term.language
    elif term.datatype:
        found["datatype"] = str(term.datatype)
    return found


# The run


def report(engine: str, cases: Sequence[Case], **policy: Any) -> dict[str, bool]:
    """Print what fails on an engine; return the ids of those tests, and whether the engine by itself passes them."""
    run = [
        replace(case, source=with_engine(case, engine), policy=replace(case.policy, **policy), timeout=60.0)
        for case in cases
    ]
    outcomes = {entry["id"]: entry for entry in evaluate(run)["cases"]}
    passed = sum(entry["outcome"] == "passed" for entry in outcomes.values())
    told = ", ".join((engine, *(f"{name}: {value}" for name, value in policy.items())))
    print(f"{told}: {passed} of {len(cases)} passed")
    failed = {}
    for case in run:
        entry = outcomes[case.id]
        if entry["outcome"] != "passed":
            failed[case.id] = passes_alone(engine, case, strict=bool(policy))
            error = (entry["predicted"] or {}).get("error") or {}
            why = error.get("message") or entry["message"] or (entry["difference"] or {}).get("summary", "")
            print(f"  {'OURS  ' if failed[case.id] else 'engine'} {case.id}: {why[:150]}")
    return failed


def with_engine(case: Case, engine: str) -> Any:
    assert case.source
    return replace(case.source, settings={**case.source.settings, "engine": engine})


def passes_alone(engine: str, case: Case, *, strict: bool) -> bool:
    """Whether the engine's answer, got without this package, is the W3C's."""
    assert case.source
    assert case.predicted
    assert case.predicted.query
    gold = case.golds[0].answer
    assert isinstance(gold, Table)
    try:
        data = case.source.folder / case.source.settings["files"]
        found = {"oxigraph": asked_oxigraph, "rdflib": asked_rdflib}[engine](data, case.predicted.query)
    except Exception:  # noqa: BLE001 - a query that the engine refuses, by whatever it raises
        return False
    if isinstance(found, bool):
        return gold.rows == [(found,)]
    rows = [tuple(map(rdf_term, row)) for row in gold.rows]
    if isinstance(found, rdflib.Graph):
        return isomorphic(found, graph_of_triples(rows))
    names, others = found
    if sorted(names) != sorted(gold.columns):
        return False
    order = [names.index(name) for name in gold.columns]
    others = [tuple([row[place] for place in order]) for row in others]
    ordered = case.policy.row_order == "strict"
    if case.policy.duplicates == "ignore":
        rows, others = list(dict.fromkeys(rows)), list(dict.fromkeys(others))
    if len(rows) != len(others):
        return False
    return isomorphic(*(graph_of_rows(side, ordered=ordered, strict=strict) for side in (rows, others)))


def asked_oxigraph(data: Path, query: str) -> Any:
    """A boolean, a graph, or the names of the columns and the rows, in terms of rdflib."""
    store = pyoxigraph.Store()
    store.load(path=str(data), format=pyoxigraph.RdfFormat.N_QUADS, lenient=True)
    answer = store.query(query)
    if isinstance(answer, pyoxigraph.QueryBoolean):
        return bool(answer)
    if isinstance(answer, pyoxigraph.QueryTriples):
        return graph_of_triples([tuple(map(term_of_oxigraph, triple)) for triple in answer])
    rows = [tuple(map(term_of_oxigraph, row)) for row in answer]
    return [variable.value for variable in answer.variables], rows


def asked_rdflib(data: Path, query: str) -> Any:
    """The same, asked of rdflib."""
    dataset = rdflib.Dataset()
    dataset.parse(data, format="nquads")
    answer = dataset.query(query)
    if answer.type == "ASK":
        return answer.askAnswer
    if answer.type != "SELECT":
        return answer.graph
    assert answer.vars is not None
    rows = [tuple([row.get(variable) for variable in answer.vars]) for row in answer.bindings]
    return [str(variable) for variable in answer.vars], rows


def term_of_oxigraph(term: Any) -> Any:
    match term:
        case None:
            return None
        case pyoxigraph.NamedNode():
            return rdflib.URIRef(term.value)
        case pyoxigraph.BlankNode():
            return rdflib.BNode(term.value)
    return rdflib.Literal(term.value, lang=term.language, datatype=None if term.language else term.datatype.value)


def rdf_term(cell: Any) -> Any:
    """A cell of a stored result as a term of rdflib."""
    match cell:
        case None:
            return None
        case IRI(iri):
            return rdflib.URIRef(iri)
        case BlankNode(label):
            return rdflib.BNode(label)
        case Literal(lexical, datatype, language):
            return rdflib.Literal(lexical, lang=language or None, datatype=datatype or None)
    return rdflib.Literal(cell)


def graph_of_triples(triples: Sequence[Any]) -> rdflib.Graph:
    graph = rdflib.Graph()
    for triple in triples:
        graph.add(triple)
    return graph


def graph_of_rows(rows: Sequence[Sequence[Any]], *, ordered: bool, strict: bool) -> rdflib.Graph:
    """Rows as nodes with their cells, so that equal answers are isomorphic graphs."""
    graph = rdflib.Graph()
    for number, row in enumerate(rows):
        node = rdflib.BNode()
        graph.add((node, ROW, rdflib.Literal(number if ordered else 0)))
        for column, cell in enumerate(row):
            if cell is not None:
                graph.add((node, rdflib.URIRef(f"urn:column:{column}"), by_value(cell, strict=strict)))
    return graph


def by_value(term: Any, *, strict: bool) -> Any:
    """A literal by its value, where that is a number; with its datatype if `strict`, without any otherwise."""
    if not isinstance(term, rdflib.Literal):
        return term if isinstance(term, rdflib.term.Node) else rdflib.Literal(term)
    datatype = str(term.datatype or "")
    text = str(term)
    if (
        datatype.startswith(str(rdflib.XSD))
        and term.value is not None
        and not datatype.endswith(("#string", "#boolean"))
    ):
        try:
            number = Decimal(text.strip())
            text = str(number.normalize() + 0) if number.is_finite() else text
        except InvalidOperation:
            pass
    return rdflib.Literal(f"{text}^^{datatype}@{term.language or ''}" if strict else text)


if __name__ == "__main__":
    main()
