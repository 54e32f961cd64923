"""Parses RDF files into a store on disk: started with STORE, and for each file the JSON of `[path, format, graph]`.

A process of its own, since a parser that meets hostile text may end it. A problem of a file is written to stderr as one
line; the exit status is then 1.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from resource import RLIMIT_AS
from typing import Any, BinaryIO, cast
from xml.parsers.expat import ExpatError, ParserCreate

from pyoxigraph import NamedNode, RdfFormat, Store

from pytest_queryeval.sandbox.driver import limit

MAX_ENTITY_CHARACTERS = 200  # entities that abbreviate vocabularies are shorter
MEMORY_BYTES = 8 * 2**30
CHUNK_BYTES = 2**20
PARSER_PLACE = re.compile(r"Parser error (?:at|between) line \d+.*?: ")
MISSING = re.compile(r"is expected|should end with|must be followed by|Unexpected end$")
CONTENT = re.compile(r"\s*[^\s#]")


class RootReached(Exception):  # noqa: N818 - a way to stop
    """The parser has reached the root element, so that a document type would have been read before."""


def main() -> int:
    """Load all files that the command line names into a store, and return the exit status.

    Each file gets its own blank nodes. At the first problem, write one line to stderr and return 1.
    """
    store_path, *files = sys.argv[1:]
    limit(RLIMIT_AS, MEMORY_BYTES)
    store = Store(store_path)
    for entry in files:
        path, name, graph = json.loads(entry)
        try:
            refuse_bombs(name, path)
            # Real graphs hold IRIs that the grammar forbids, and servers accept them.
            to_graph = NamedNode(graph) if graph else None
            store.bulk_load(**content(path), format=getattr(RdfFormat, name), to_graph=to_graph, lenient=True)
        except Exception as error:  # noqa: BLE001 - any error becomes one line
            text = f"{path}:{problem(error, path)}" if isinstance(error, SyntaxError) else f"{path}: {error}"
            sys.stderr.write(f"{' '.join(text.split())}\n")
            return 1
    store.optimize()
    store.flush()
    return 0


def content(path: str) -> dict[str, Any]:
    """Return the argument with which pyoxigraph reads a file; a file whose name ends in .gz is decompressed."""
    return {"input": gzip.open(path)} if path.lower().endswith(".gz") else {"path": path}


def open_rdf_file(path: str) -> BinaryIO:
    """Open a file for reading bytes; a file whose name ends in .gz is decompressed."""
    return cast("BinaryIO", content(path).get("input") or Path(path).open("rb"))


def refuse_bombs(name: str, path: str) -> None:
    """Raise ValueError for an RDF/XML file with entities that `check_entity` refuses; accept any other format.

    A short file with such entities could expand without limit. `name` is the format.
    """
    if name != "RDF_XML":
        return
    parser = ParserCreate()
    parser.EntityDeclHandler = check_entity
    parser.StartElementHandler = stop
    with open_rdf_file(path) as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                parser.Parse(chunk, False)
        except RootReached:
            return
        except ExpatError as error:
            # The parser of RDF/XML may accept a file that this one rejects, and would then expand unchecked entities.
            file.seek(0)
            if b"<!ENTITY" in file.read().upper():
                raise ValueError(f"its document type cannot be read: {error}") from error


def check_entity(name: str, _: bool, value: str | None, *__: object) -> None:
    """Raise ValueError for an XML entity that is another file, contains another entity, or is long."""
    if value is None or "&" in value or len(value) > MAX_ENTITY_CHARACTERS:
        raise ValueError(f"the entity {name} is another file, contains another entity, or is longer than allowed")


def stop(*_: object) -> None:
    """Raise `RootReached`, so that the parser stops at the root element."""
    raise RootReached


def problem(error: SyntaxError, path: str) -> str:
    """Return the place of a syntax error and its message as `LINE:COLUMN: MESSAGE`.

    If something is missing at the end of a line, this is the place: the parser names the next token, which may be lines
    below.
    """
    text = PARSER_PLACE.sub("", error.msg)
    if not error.lineno:
        return f" {text}"
    place, end = (error.lineno, error.offset or 1), None
    with open_rdf_file(path) as file:
        for number, encoded_line in enumerate(file, start=1):
            line = encoded_line.decode(errors="replace")
            if number == error.lineno:
                break
            if CONTENT.match(line):
                end = number, len(line.rstrip()) + 1
        else:
            line = ""
    if end and MISSING.search(text) and not line[: place[1] - 1].strip():
        place = end
    if line[place[1] - 1 : place[1]] in ('"', "'") and text == "Unexpected end of file":
        text = "the string that begins here is not closed"
    return f"{place[0]}:{place[1]}: {text}"
