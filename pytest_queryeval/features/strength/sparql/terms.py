"""The terms and triples of small graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal
from pytest_queryeval.features.strength.neighbours import neighbours
from pytest_queryeval.languages.sparql.answers import XSD, stated_term
from pytest_queryeval.languages.sparql.tree import Writer, is_number

Term: TypeAlias = IRI | BlankNode | Literal

RDF_TYPE = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
NUMERIC = frozenset(f"{XSD}{name}" for name in ("integer", "decimal", "double", "float", "int", "long"))
_IRI = re.compile(r'[^<>"{}|^`\\\x00-\x20]*')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Quad(NamedTuple):
    """A triple of the default graph, or of a named graph."""

    subject: Term
    predicate: IRI
    object: Term
    graph: IRI | None = None


Graph: TypeAlias = tuple[Quad, ...]


def constant(token: str) -> Term | None:
    """Return the IRI or literal that a token of a query stands for; None for other tokens.

    >>> constant("4"), constant('"a"@en').language, constant("a").iri[-4:], constant("?x")
    (Literal(lexical='4', datatype='http://www.w3.org/2001/XMLSchema#integer', language=''), 'en', 'type', None)
    """
    if token == "a":  # noqa: S105 - of a query
        return RDF_TYPE
    if token in ("true", "false"):
        return Literal(token, f"{XSD}boolean")
    if token and is_number(token):
        name = "double" if "e" in token.lower() else "decimal" if "." in token else "integer"
        return Literal(token, f"{XSD}{name}")
    cell = stated_term(token) if token[:1] in ("<", '"') else None
    return cell if isinstance(cell, IRI | Literal) else None


def as_term(cell: Cell) -> Term | None:
    """Return a cell of an answer as a term of graphs; None for IRIs that Turtle cannot have, and for triple terms."""
    match cell:
        case IRI(iri) | Literal(_, iri, _):
            return cell if _IRI.fullmatch(iri) else None
        case _:
            return cell if isinstance(cell, BlankNode) else None


def literals_near(literal: Literal) -> Iterator[Literal]:
    """Yield a literal and its neighbours, which differ by one, by a day, or in letter case, language or datatype."""
    lexical, datatype, language = literal.lexical, literal.datatype, literal.language
    yield literal
    day, separator, time = lexical.partition("T")
    if datatype in NUMERIC:
        places = len(lexical.partition(".")[2])
        try:
            yield from (Literal(f"{float(lexical) + step:.{places}f}", datatype) for step in (-1, 1, -2, 2))
        except (ValueError, OverflowError):
            return
        yield Literal(lexical)
    elif len(neighbours(day)) > 1:
        yield from (Literal(str(text) + separator + time, datatype) for text in neighbours(day)[1:])
        yield Literal(lexical, "" if datatype else f"{XSD}date")
    elif datatype == f"{XSD}boolean":
        yield Literal("false" if lexical in ("true", "1") else "true", datatype)
    else:
        yield from (Literal(text, datatype, language) for text in (lexical.swapcase(), lexical.capitalize()))
        yield from (Literal(text, datatype, language) for text in (f"{lexical} x", f"x {lexical}", f"{lexical}x"))
        if not datatype:
            yield from (Literal(lexical, "", tag) for tag in ("", "en", "de") if tag != language)


def turtle(graph: Iterable[Quad], prefixes: Mapping[str, str]) -> str:
    """Return a graph as Turtle, or as TriG if it has named graphs, with the prefixes that it uses."""
    writer = Writer(prefixes)
    lines: list[str] = []
    name: IRI | None = None
    for quad in sorted(graph, key=lambda quad: quad.graph.iri if quad.graph else ""):
        if quad.graph != name:
            lines += ["}"] if name else []
            name = quad.graph
            lines += [f"{writer.term(_text(name))} {{"] if name else []
        predicate = "a" if quad.predicate == RDF_TYPE else writer.term(_text(quad.predicate))
        lines.append(f"{writer.term(_text(quad.subject))} {predicate} {writer.term(_text(quad.object))} .")
    lines += ["}"] if name else []
    return "\n".join([*writer.declarations("@prefix {}: <{}> ."), *lines]) + "\n"


def _text(term: Term) -> str:
    match term:
        case IRI(iri):
            return f"<{iri}>"
        case BlankNode(label):
            return f"_:{label}"
        case Literal(lexical, datatype, language):
            is_integer = datatype == f"{XSD}integer" and lexical.lstrip("-").isdecimal()
            if is_integer and lexical.isascii():
                return lexical
            text = f'"{lexical.translate(_ESCAPES)}"'
            return f"{text}@{language}" if language else f"{text}^^<{datatype}>" if datatype else text
