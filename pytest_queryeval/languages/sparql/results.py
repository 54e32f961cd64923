"""Stored answers of SPARQL queries: the W3C's result formats in JSON, XML and TSV."""

from __future__ import annotations

from xml.parsers.expat import ExpatError, ParserCreate

from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.sparql.json_results import BOOLEAN, read_json_results
from pytest_queryeval.languages.sparql.terms import term_rows
from pytest_queryeval.languages.sparql.xml_results import XmlResults
from pytest_queryeval.sandbox.driver import encode_term


def read_results(text: str, suffix: str) -> Table:
    """Return the table in a `.srj`, `.srx` or `.tsv` file; raise ValueError with the reason where there is none."""
    if suffix == ".srx":
        return _read_xml(text)
    if suffix == ".tsv":
        return _read_tsv(text)
    try:
        columns, rows = read_json_results(text)
    except ValueError as error:
        raise ValueError(f"is no SPARQL JSON result: {error}") from error
    return Table(columns=columns, rows=term_rows(rows))


def _read_xml(text: str) -> Table:
    document = XmlResults()
    parser = ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = document.start
    parser.EndElementHandler = document.end
    parser.CharacterDataHandler = document.text
    parser.StartDoctypeDeclHandler = document.refuse_doctype
    try:
        parser.Parse(text.encode(), True)
    except (ExpatError, ValueError, KeyError, IndexError) as error:
        raise ValueError(f"is no SPARQL XML result: {error}") from error
    if document.boolean is not None:
        return Table(columns=BOOLEAN, rows=[(document.boolean,)])
    if not document.has_results:
        raise ValueError("is no SPARQL XML result: it has neither results nor a boolean")
    columns = tuple(document.columns)
    rows = [tuple([row.get(name) for name in columns]) for row in document.rows]
    return Table(columns=columns, rows=term_rows(rows))


def _read_tsv(text: str) -> Table:
    import pyoxigraph

    try:
        solutions = pyoxigraph.parse_query_results(text, pyoxigraph.QueryResultsFormat.TSV)
        assert isinstance(solutions, pyoxigraph.QuerySolutions)
        columns = tuple(variable.value for variable in solutions.variables)
        rows = [tuple(map(encode_term, solution)) for solution in solutions]
    except SyntaxError as error:
        raise ValueError(f"is no SPARQL TSV result: {error.msg}") from error
    return Table(columns=columns, rows=term_rows(rows))
