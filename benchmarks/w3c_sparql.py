"""The query evaluation tests of the W3C for SPARQL 1.0 and 1.1, made a suite and run on both engines for files.

    git clone https://github.com/w3c/rdf-tests
    python benchmarks/w3c_sparql.py rdf-tests [SUITE]

Tests of entailment and of SERVICE are left out: no engine here entails, and queries may not leave their source. The suites are
those of `queryeval import w3c-sparql`. With SUITE, a new folder, they are kept there, to be run by pytest, too.

Each failure is looked into by asking the engine itself, without this package, and comparing its answer with the W3C's by
rdflib's isomorphism of graphs. What fails there, too, is the engine's own; anything else would be a fault of ours.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyoxigraph
import rdflib
from rdflib.compare import isomorphic

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main as queryeval
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Table

LEFT_OUT = ("entailment", "service")
ENGINES = ("oxigraph", "rdflib")
ROW = rdflib.URIRef("urn:row")


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
        import_tests(root, folder)
        cases = [
            replace(case, id=f"{case.location.path.relative_to(folder).parent}/{case.id}")
            for case in load_cases(folder)
        ]
        ours = [id_ for engine in ENGINES for id_ in failures_of_ours(engine, cases)]
    print(f"failures that the engine alone does not have: {', '.join(ours) or 'none'}")
    sys.exit(1 if ours else 0)


def failures_of_ours(engine: str, cases: Sequence[Case]) -> list[str]:
    """Run the suite with the default policy, then with strict terms; return what the engine alone does not fail."""
    usual, strict = report(engine, cases), report(engine, cases, rdf_terms="strict")
    print(f"{engine}, failures with strict terms only: {', '.join(sorted(strict.keys() - usual.keys())) or 'none'}")
    return [id_ for failed in (usual, strict) for id_, is_ours in failed.items() if is_ours]


def import_tests(root: Path, folder: Path) -> None:
    """Import each manifest with tests of queries into a folder of its own."""
    for path in sorted(root.glob("sparql/sparql1[01]/*/manifest.ttl")):
        if path.parent.name not in LEFT_OUT and b"QueryEvaluationTest" in path.read_bytes():
            with contextlib.redirect_stdout(io.StringIO()):
                queryeval(["import", "w3c-sparql", str(path), "-o", str(folder / path.parent.relative_to(root))])


# The run


def report(engine: str, cases: Sequence[Case], **policy: Any) -> dict[str, bool]:
    """Print what fails on an engine; return the ids of those tests, and whether the engine by itself passes them."""
    run = [
        replace(
            case,
            settings=replace(
                case.settings,
                source=with_engine(case, engine),
                policy=replace(case.settings.policy, **policy),
                timeout=60.0,
            ),
        )
        for case in cases
    ]
    outcomes = {entry["id"]: entry for entry in evaluate(run)["cases"]}
    passed = sum(entry["outcome"] == "passed" for entry in outcomes.values())
    text = ", ".join((engine, *(f"{name}: {value}" for name, value in policy.items())))
    print(f"{text}: {passed} of {len(cases)} passed")
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
    assert case.settings.source
    return replace(case.settings.source, settings={**case.settings.source.settings, "engine": engine})


def passes_alone(engine: str, case: Case, *, strict: bool) -> bool:
    """Whether the engine's answer, got without this package, is the W3C's."""
    assert case.settings.source
    assert case.predicted
    assert case.predicted.query
    gold = case.golds[0].answer
    assert isinstance(gold, Table)
    try:
        data = case.settings.source.folder / case.settings.source.settings["files"]
        answer = {"oxigraph": asked_oxigraph, "rdflib": asked_rdflib}[engine](data, case.predicted.query)
    except Exception:  # noqa: BLE001 - a query that the engine refuses, by whatever it raises
        return False
    if isinstance(answer, bool):
        return gold.rows == [(answer,)]
    rows = [tuple(map(rdf_term, row)) for row in gold.rows]
    if isinstance(answer, rdflib.Graph):
        return isomorphic(answer, graph_of_triples(rows))
    names, predicted_rows = answer
    if sorted(names) != sorted(gold.columns):
        return False
    order = [names.index(name) for name in gold.columns]
    predicted_rows = [tuple([row[place] for place in order]) for row in predicted_rows]
    ordered = case.settings.policy.row_order == "strict"
    if case.settings.policy.duplicates == "ignore":
        rows, predicted_rows = list(dict.fromkeys(rows)), list(dict.fromkeys(predicted_rows))
    if len(rows) != len(predicted_rows):
        return False
    return isomorphic(*(graph_of_rows(side, ordered=ordered, strict=strict) for side in (rows, predicted_rows)))


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
