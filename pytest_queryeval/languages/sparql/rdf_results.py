"""Stored answers in Turtle and N-Triples: a graph, or a table in the W3C's vocabulary of result sets.

The vocabulary is that of the test cases of SPARQL 1.0 (http://www.w3.org/2001/sw/DataAccess/tests/result-set#).
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TypeAlias

import pyoxigraph
from pyoxigraph import Literal, NamedNode, RdfFormat

from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.sparql.terms import graph_table, term_rows
from pytest_queryeval.sandbox.driver import encode_term
from pytest_queryeval.sandbox.sparql_json import BOOLEAN

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


class _Graph:
    """The objects of each subject and predicate, in the order of the file."""

    def __init__(self, triples: list[pyoxigraph.Triple]) -> None:
        self._objects = defaultdict[tuple[object, object], list[Node]](list)
        for triple in triples:
            self._objects[triple.subject, triple.predicate].append(triple.object)

    def of(self, subject: object, name: str) -> list[Node]:
        """Return the objects of a property of the vocabulary."""
        return self._objects[subject, NamedNode(f"{_VOCABULARY}{name}")]

    def only_object(self, subject: object, name: str) -> Node:
        """Return the only object of a property of the vocabulary; raise ValueError unless there is exactly one."""
        objects = self.of(subject, name)
        if len(objects) != 1:
            raise ValueError(f"is not a result set: expected one rs:{name} of {subject}, found {len(objects)}")
        return objects[0]


def read_rdf_results(text: str, suffix: str) -> Table:
    """Return the result set in a `.ttl` or `.nt` file, else its graph; raise ValueError with the reason.

    Rows are in the order of `rs:index` where each solution has one, else in that of the file.
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
