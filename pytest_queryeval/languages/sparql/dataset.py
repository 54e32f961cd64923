"""The graphs that a SPARQL query names with FROM and FROM NAMED, as IRIs.

Some servers fetch these IRIs, so every IRI counts that any parser could read in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from urllib.parse import urljoin

from pytest_queryeval.languages.sparql.tokens import BLANK, NAME, Token, unescaped
from pytest_queryeval.text.truncation import truncate

SHOWN_CHARACTERS = 60
_CLAUSE = re.compile(
    rf"FROM{BLANK}(?:NAMED{BLANK})?(?:<(?P<iri>[^<>\"{{}}|^`\x00-\x20]*+)>|(?P<name>{NAME}))", re.IGNORECASE
)
_IRI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def stated_graphs(text: str, prologue: Sequence[Token], body: Sequence[Token], form: str) -> Iterator[str]:
    """Yield the IRI of each graph that the tokens of a query name, or the text where it cannot be read as an IRI.

    An IRI is resolved by the prologue; without a base, one that is relative stays so.
    """
    base, prefixes = _read_prologue(prologue)
    for token, next_token in zip_longest(body, body[1:]):
        is_call = next_token is not None and next_token.text == "("
        is_name = token.text.partition(":")[0] in prefixes and (token.depth > 0 or is_call or form == "DESCRIBE")
        start = _start_of_clause(token, is_name=is_name)
        if start is not None:
            clause = _CLAUSE.match(text, start)
            yield (
                _iri(clause, base, prefixes)
                if clause
                else truncate(text[start + len("FROM") :].strip(), SHOWN_CHARACTERS)
            )


def graphs_anywhere(text: str, prologue: Sequence[Token]) -> Iterator[str]:
    """Yield the IRIs of all text that looks like a clause, even within a string or a comment."""
    base, prefixes = _read_prologue(prologue)
    for clause in _CLAUSE.finditer(text):
        yield _iri(clause, base, prefixes)


def _start_of_clause(token: Token, *, is_name: bool) -> int | None:
    """Return where a clause starts in a token, which for some parsers may hold more than the word FROM.

    No keyword but FROM contains that word. A prefix may begin with it: `is_name` is whether a name with this prefix can
    stand there, and its prefix is declared.
    """
    if token.kind == "word":
        place = token.text.upper().rfind("FROM")
        return token.start + place if place >= 0 else None
    is_clause = token.kind == "name" and token.text.upper().startswith("FROM") and not is_name
    return token.start if is_clause else None


def _read_prologue(prologue: Sequence[Token]) -> tuple[str, dict[str, str]]:
    """Return the base and the prefixes without colon, each resolved by the base before it.

    Duplicate declarations are ignored, since servers differ in which one counts: their IRIs stay relative.
    """
    bases: dict[str, None] = {}
    iris_by_prefix: dict[str, set[tuple[str, bool]]] = {}
    for previous_token, token in pairwise(prologue):
        if token.kind != "iri":
            continue
        iri = token.text[1:-1]
        if previous_token.is_word("BASE"):
            bases[iri] = None
        elif previous_token.kind == "name":
            iris_by_prefix.setdefault(previous_token.text[:-1], set()).add((iri, bool(bases)))
    base = next(iter(bases)) if len(bases) == 1 else ""
    prefixes = {}
    for name, iris in iris_by_prefix.items():
        if len(iris) == 1:
            iri, is_behind_base = iris.pop()
            prefixes[name] = resolve(iri, base if is_behind_base else "")
    return base, prefixes


def _iri(clause: re.Match[str], base: str, prefixes: Mapping[str, str]) -> str:
    if clause["iri"] is not None:
        return resolve(unescaped(clause["iri"]), base)
    prefix, _, local = clause["name"].partition(":")
    if prefix not in prefixes:
        return clause["name"]
    return prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)


def resolve(iri: str, base: str) -> str:
    """Return an IRI resolved by a base; without one that is a URL, a relative IRI stays so."""
    if _IRI_SCHEME.match(iri):
        return iri
    path, mark, fragment = iri.partition("#")  # `urljoin` drops an empty fragment, with which many prefixes end
    try:
        return f"{urljoin(base, path)}{mark}{fragment}"
    except ValueError:  # of brackets around a host
        return iri
