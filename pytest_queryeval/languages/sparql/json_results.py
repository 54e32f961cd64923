"""SPARQL JSON results (https://www.w3.org/TR/sparql11-results-json/), read into plain terms.

Also imported by a child process: needs nothing but the standard library.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

T = TypeVar("T")
BOOLEAN = ("boolean",)
VIRTUOSO_ASK = ["__ASK_RETVAL"]  # of the table with which Virtuoso 7 answers ASK: it has a row if the answer is true


def read_json_results(body: bytes | str, *, ask: bool | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns, from `head.vars`, and the rows as `driver.Term`; raise ValueError with the reason.

    The answer of ASK is one column `boolean` with one row; `ask` is whether one is expected, if known.
    """
    try:
        document = json.loads(body)
        if ask and document["head"].get("vars") == VIRTUOSO_ASK:
            return BOOLEAN, [(bool(document["results"]["bindings"]),)]
        if ask is not None and ask != ("boolean" in document):
            raise ValueError(f"it is {'no' if ask else 'a'} boolean")
        if "boolean" in document:
            return BOOLEAN, [(_of_type(bool, document["boolean"]),)]
        columns = tuple(_of_type(str, name) for name in _of_type(list, document["head"]["vars"]))
        rows, known = [], set(columns)
        for binding in _of_type(list, document["results"]["bindings"]):
            if unknown := binding.keys() - known:
                raise ValueError(f"a row binds {', '.join(sorted(unknown))}, not among its variables")
            rows.append(tuple([_term(binding.get(name)) for name in columns]))
        return columns, rows
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error
    except KeyError as error:
        raise ValueError(f"it lacks {error}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError("it has another shape") from error


def _of_type(type_: type[T], value: Any) -> T:
    if not isinstance(value, type_):
        raise TypeError(f"no {type_.__name__}")
    return value


def _term(term: dict[str, Any] | None) -> Any:
    if term is None:
        return None
    kind, value = term["type"], term["value"]
    match kind:
        case "uri":
            return _of_type(str, value)
        case "bnode":
            return (_of_type(str, value),)
        case "literal" | "typed-literal":
            return _of_type(str, value), str(term.get("datatype", "")), str(term.get("xml:lang", ""))
        case "triple":  # a text in the notation of N-Triples
            return f"<<( {' '.join(_text(_term(value[part])) for part in ('subject', 'predicate', 'object'))} )>>"
        case _:
            raise ValueError(f"it has a term of the unknown type '{kind}'")


def _text(term: Any) -> str:
    match term:
        case str(iri):
            return iri if iri.startswith("<<(") else f"<{iri}>"
        case (label,):
            return f"_:{label}"
        case (lexical, datatype, language):
            tail = f"@{language}" if language else f"^^<{datatype}>" if datatype else ""
            return json.dumps(lexical, ensure_ascii=False) + tail
        case _:
            raise TypeError("no term")
