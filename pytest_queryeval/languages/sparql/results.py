"""Stored answers of SPARQL queries: the W3C's result formats in JSON, XML and TSV, and Turtle and N-Triples.

The latter hold a graph, or a table in the W3C's vocabulary of the test cases of SPARQL 1.0
(http://www.w3.org/2001/sw/DataAccess/tests/result-set#).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias
from xml.parsers.expat import ExpatError, ParserCreate

import pyoxigraph
from pyoxigraph import Literal, NamedNode, RdfFormat

from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.sparql import graph_table, term_rows
from pytest_queryeval.sandbox.driver import MAX_NESTED_TERMS, Term, encode_term, language_tag
from pytest_queryeval.sandbox.sparql_json import BOOLEAN, read_json_results

NAMESPACE = "http://www.w3.org/2005/sparql-results#"
LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
DIRECTION = "http://www.w3.org/2005/11/its dir"
_TERMS = ("uri", "bnode", "literal")
_PARTS = ("subject", "predicate", "object")
Node: TypeAlias = pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple
_FORMATS = {".ttl": RdfFormat.TURTLE, ".nt": RdfFormat.N_TRIPLES}
_VOCABULARY = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_TRUE = ("true", "1")
MAX_NESTED = 1_000  # triples in each other; the parser ends the process somewhere above
# What may hold the signs of a nested triple as text; and these signs.
_NESTING_TOKENS = re.compile(
    r"""\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"|<[^<>\s]*>|#[^\n]*|(?P<open><<)|(?P<close>>>)",
    re.DOTALL,
)


class XmlResults:
    """Handlers of an XML parser that collect a SPARQL XML result; they raise ValueError for other documents.

    `columns`, `rows` (name -> `driver.Term`) and `boolean` are what the document contains. The format:
    https://www.w3.org/TR/rdf-sparql-XMLres/
    """

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.rows: list[dict[str, Term]] = []
        self.boolean: bool | None = None
        self.has_results = False
        self._open: list[str] = []
        self._name = ""
        self._literal = ("", "")
        self._triples: list[dict[str, Term]] = []  # the open ones, from the outermost on
        self._text: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element; `tag` is its namespace and its name.

        Raises ValueError for another namespace, another root, and triples nested too deeply; KeyError for a missing
        attribute.
        """
        namespace, _, name = tag.rpartition(" ")
        if namespace != NAMESPACE or (not self._open and name != "sparql"):
            raise ValueError(f"the element {name} is not of {NAMESPACE}")
        self._open.append(name)
        self._text = []
        if name == "variable":
            self.columns.append(attributes["name"])
        elif name == "results":
            self.has_results = True
        elif name == "result":
            self.rows.append({})
        elif name == "binding":
            self._name = attributes["name"]
        elif name == "literal":
            language = language_tag(attributes.get(LANGUAGE, ""), attributes.get(DIRECTION, ""))
            self._literal = attributes.get("datatype", ""), language
        elif name == "triple":
            self._triples.append({})
            if len(self._triples) > MAX_NESTED_TERMS:
                raise ValueError("it is nested too deeply")

    def text(self, text: str) -> None:
        """Collect text of the open element."""
        self._text.append(text)

    def end(self, _: str) -> None:
        """Handle the end of the open element: add its boolean, or its term to a triple or a row.

        Raises ValueError for an incomplete triple.
        """
        name = self._open.pop()
        text = "".join(self._text)
        if name == "boolean":
            self.boolean = {"true": True, "false": False}[text.strip()]
        elif name in _TERMS:
            terms: dict[str, Term] = {"uri": text, "bnode": (text,), "literal": (text, *self._literal)}
            self._add(terms[name])
        elif name == "triple":
            triple = self._triples.pop()
            if triple.keys() != set(_PARTS):
                raise ValueError(f"a triple has no {next(part for part in _PARTS if part not in triple)}")
            self._add(("triple", triple["subject"], triple["predicate"], triple["object"]))

    def _add(self, term: Term) -> None:
        """Add a finished term to the open triple of which it is a part, otherwise to the last row."""
        if self._triples and self._open[-1] in _PARTS:
            self._triples[-1][self._open[-1]] = term
        else:
            self.rows[-1][self._name] = term

    def refuse_doctype(self, *_: object) -> None:
        """Raise ValueError: document types define entities, which can blow up or refer to files."""
        raise ValueError("a DOCTYPE is not allowed")


def read_results(text: str, suffix: str) -> Table:
    """Return the table in the text of a `.srj`, `.srx` or `.tsv` file.

    Raise ValueError with the reason if it has none.
    """
    if suffix == ".srx":
        return _read_xml(text)
    if suffix == ".tsv":
        return _read_tsv(text)
    try:
        columns, rows = read_json_results(text)
    except ValueError as error:
        raise ValueError(f"is not a SPARQL JSON result: {error}") from error
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
        raise ValueError(f"is not a SPARQL XML result: {error}") from error
    if document.boolean is not None:
        return Table(columns=BOOLEAN, rows=[(document.boolean,)])
    if not document.has_results:
        raise ValueError("is not a SPARQL XML result: it has neither results nor a boolean")
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
        raise ValueError(f"is not a SPARQL TSV result: {error.msg}") from error
    return Table(columns=columns, rows=term_rows(rows))


class _Graph:
    """The objects of the triples of a graph by subject and predicate, in the order of the file."""

    def __init__(self, triples: list[pyoxigraph.Triple]) -> None:
        self._objects = defaultdict[tuple[object, object], list[Node]](list)
        for triple in triples:
            self._objects[triple.subject, triple.predicate].append(triple.object)

    def of(self, subject: object, name: str) -> list[Node]:
        """Return the objects of a property of the vocabulary of result sets; an empty list if there are none."""
        return self._objects[subject, NamedNode(f"{_VOCABULARY}{name}")]

    def only_object(self, subject: object, name: str) -> Node:
        """Return the only object of a property of the vocabulary; raise ValueError unless there is exactly one."""
        objects = self.of(subject, name)
        if len(objects) != 1:
            raise ValueError(f"is not a result set: expected one rs:{name} of {subject}, found {len(objects)}")
        return objects[0]


def read_rdf_results(text: str, suffix: str) -> Table:
    """Return the result set in the text of a `.ttl` or `.nt` file as a table; without a result set, its graph.

    Rows are in the order of `rs:index` if each solution has one, otherwise in that of the file. Raise ValueError with
    the reason if the text cannot be read.
    """
    refuse_nesting(text)
    try:
        triples = [quad.triple for quad in pyoxigraph.parse(text, _FORMATS[suffix], lenient=True)]
    except SyntaxError as error:
        raise ValueError(f"is not RDF: {error}") from error
    result_set = NamedNode(f"{_VOCABULARY}ResultSet")
    result_sets = [triple.subject for triple in triples if triple.predicate == _TYPE and triple.object == result_set]
    if not result_sets:
        nodes = (
            (encode_term(part) for part in (triple.subject, triple.predicate, triple.object)) for triple in triples
        )
        return graph_table(term_rows(map(tuple, nodes)))
    if len(result_sets) > 1:
        raise ValueError(f"has {len(result_sets)} result sets: expected one")
    return _table(result_sets[0], _Graph(triples))


def refuse_nesting(text: str) -> None:
    """Raise ValueError for Turtle or N-Triples whose triples are nested deeper than MAX_NESTED."""
    depth = 0
    for sign in _NESTING_TOKENS.finditer(text) if text.count("<<") > MAX_NESTED else ():
        depth += (sign["open"] is not None) - (sign["close"] is not None)
        if depth > MAX_NESTED:
            raise ValueError(f"is not RDF: triples are nested deeper than {MAX_NESTED:,} levels")


def _table(results: object, graph: _Graph) -> Table:
    if graph.of(results, "boolean"):
        return Table(columns=BOOLEAN, rows=[(_text(graph.only_object(results, "boolean")) in _TRUE,)])
    columns = tuple(_text(name) for name in graph.of(results, "resultVariable"))
    solutions = graph.of(results, "solution")
    if all(graph.of(solution, "index") for solution in solutions):
        solutions.sort(key=lambda solution: _index(_text(graph.only_object(solution, "index"))))
    rows = []
    for solution in solutions:
        row = {
            _text(graph.only_object(binding, "variable")): encode_term(graph.only_object(binding, "value"))
            for binding in graph.of(solution, "binding")
        }
        if unknown := row.keys() - set(columns):
            raise ValueError(f"is not a result set: rs:resultVariable does not name '{min(unknown)}'")
        rows.append(tuple([row.get(name) for name in columns]))
    return Table(columns=columns, rows=term_rows(rows), has_header=bool(columns))


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"is not a result set: rs:index is not a whole number: {text}")
    return int(text)


def _text(term: Node) -> str:
    if not isinstance(term, Literal):
        raise ValueError(f"is not a result set: expected a literal, found {term}")
    return term.value
