"""SPARQL JSON results (https://www.w3.org/TR/sparql11-results-json/), read into plain terms.

Also imported by a child process: needs little but the standard library and the reader of JSON.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.sandbox.driver import MAX_NESTED_TERMS, language_tag

T = TypeVar("T")
_JSON = StrictJson(read_object=None, allow_nan=True)
BOOLEAN = ("boolean",)
VIRTUOSO_ASK = ["__ASK_RETVAL"]  # of the table with which Virtuoso 7 answers ASK: it has a row if the answer is true

VIRTUOSO_STAR = ["_star_fake"]  # of the table with which Virtuoso 7 answers `SELECT *` without any variable


def read_json_results(body: bytes | str, *, ask: bool | None = None) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return columns, and rows of `driver.Term`, of a SPARQL JSON result.

    The answer to ASK becomes one row in a column `boolean`. `ask` says whether a boolean is expected; None if unknown.
    Tables by which Virtuoso 7 answers ASK and `SELECT *` without variables are translated. Raises ValueError with the
    reason if the body is no such result.
    """
    try:
        document = _JSON.read(body)
        if ask and document["head"].get("vars") == VIRTUOSO_ASK:
            return BOOLEAN, [(bool(document["results"]["bindings"]),)]
        if ask is not None and ask != ("boolean" in document):
            raise ValueError(f"it is {'no' if ask else 'a'} boolean")
        if "boolean" in document:
            return BOOLEAN, [(_of_type(bool, document["boolean"]),)]
        columns = tuple(_of_type(str, name) for name in _of_type(list, document["head"]["vars"]))
        if list(columns) == VIRTUOSO_STAR:
            return (), [() for _ in _of_type(list, document["results"]["bindings"])]
        rows, variables = [], set(columns)
        for binding in _of_type(list, document["results"]["bindings"]):
            if unknown := binding.keys() - variables:
                raise ValueError(f"a row binds {', '.join(sorted(unknown))}, not among its variables")
            rows.append(tuple([_term(binding.get(name)) for name in columns]))
        return columns, rows
    except TooDeepError as error:
        raise ValueError("it is nested too deeply") from error
    except KeyError as error:
        raise ValueError(f"it lacks {error}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError("it has another shape") from error


def _of_type(type_: type[T], value: Any) -> T:
    if not isinstance(value, type_):
        raise TypeError(f"no {type_.__name__}")
    return value


def _term(term: dict[str, Any] | None, level: int = 0) -> Any:
    if level > MAX_NESTED_TERMS:
        raise ValueError("it is nested too deeply")
    if term is None:
        return None
    kind, value = term["type"], term["value"]
    match kind:
        case "uri":
            return _of_type(str, value)
        case "bnode":
            return (_of_type(str, value),)
        case "literal" | "typed-literal":
            language = language_tag(str(term.get("xml:lang", "")), str(term.get("its:dir", "")))
            return _of_type(str, value), str(term.get("datatype", "")), language
        case "triple":
            parts = (_term(value[part], level + 1) for part in ("subject", "predicate", "object"))
            return ("triple", *parts)
        case _:
            raise ValueError(f"it has a term of the unknown type '{kind}'")
