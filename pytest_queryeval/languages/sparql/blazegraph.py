"""What queries for Blazegraph, such as those for Wikidata, have beyond SPARQL, in words that every engine reads.

Hints to its optimizer are triples to others, which match nothing, so they are left out. The label service,
`SERVICE wikibase:label { bd:serviceParam wikibase:language "de,en" }`, gives each selected variable `?xLabel`,
`?xAltLabel` or `?xDescription` what `?x` is called, in the first of these languages that has a name for it; triples in
its braces name other variables. What has no label is called by its identifier. Source:
https://www.mediawiki.org/wiki/Wikidata_Query_Service/User_Manual#Label_service
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple, TypeAlias

from pytest_queryeval.languages.sparql.query import (
    BLAZEGRAPH_PREFIXES,
    COMMON_PREFIXES,
    WIKIBASE,
    WIKIBASE_LABEL,
    Token,
)

LABEL = f"<{COMMON_PREFIXES['rdfs']}label>"
ALIAS = f"<{COMMON_PREFIXES['skos']}altLabel>"
PROPERTIES = {"AltLabel": ALIAS, "Label": LABEL, "Description": f"<{COMMON_PREFIXES['schema']}description>"}
HINT = f"<{BLAZEGRAPH_PREFIXES['hint']}"
LANGUAGE = f"<{WIKIBASE}language>"
DEFAULT_LANGUAGE = "en"
MAX_LANGUAGES = 20
NO_ENTITY = "<tag:queryeval:none>"
Change: TypeAlias = tuple[int, int, str]


class Name(NamedTuple):
    """A variable that the service binds, and the property of the entity which it is bound to."""

    entity: str
    property: str
    variable: str


def hint_changes(query_tokens: Sequence[Token], prefixes: Mapping[str, str]) -> Iterator[Change]:
    """Yield changes of a text that leave out its hints; `prefixes` are those that it declares."""
    if BLAZEGRAPH_PREFIXES["hint"] in prefixes.values():
        for first, second, third in zip(query_tokens, query_tokens[1:], query_tokens[2:], strict=False):
            if first.depth and all(_iri(part, prefixes).startswith(HINT) for part in (first, second)):
                yield first.start, third.end, "{}"


def label_changes(query_tokens: Sequence[Token], prefixes: Mapping[str, str]) -> Iterator[Change]:
    """Yield changes of a text that replace its calls of the label service; `prefixes` are those that it declares.

    A call stays where it is not in the pattern of a query or subquery itself, and where its braces hold anything else.
    """
    number = 0
    ends: dict[int, str] = {}
    for place, token in enumerate(query_tokens):
        if not token.is_word("SERVICE"):
            continue
        last = (at for at in range(place, len(query_tokens)) if query_tokens[at].text == "}")
        end = next((at for at in last if query_tokens[at].depth == token.depth), len(query_tokens))
        call = query_tokens[place + 1 : end]
        head = [part for part in call[:2] if not part.is_word("SILENT")]
        scope = _scope(query_tokens, place)
        if end == len(query_tokens) or not head or _iri(head[0], prefixes) != f"<{WIKIBASE_LABEL}>" or scope is None:
            continue
        body = call[call.index(head[0]) + 2 :]
        named = _names(body, [_iri(part, prefixes) for part in body])
        if named is None:
            continue
        names, languages = named
        selected, pattern = scope
        around = [part for part in pattern if not token.start <= part.start < query_tokens[end].end]
        bound = _bound_variables(around)
        names = names or [name for name in _selected_names(selected) if name.variable not in bound]
        if any(part.text == "*" and part.depth == token.depth - 1 for part in selected) or bound.intersection(
            name.variable for name in names
        ):
            continue
        yield token.start, query_tokens[end].end, "{}"
        for name in names:
            number += 1
            ends[pattern[-1].start] = ends.get(pattern[-1].start, "") + _binding(name, languages, number)
    yield from ((start, start, text) for start, text in ends.items())


def _scope(query_tokens: Sequence[Token], place: int) -> tuple[list[Token], list[Token]] | None:
    """Return what the query or subquery around a token selects, and its pattern; None for a token in an inner group."""
    depth = query_tokens[place].depth - 1
    start = next((at for at in range(place, -1, -1) if query_tokens[at].depth == depth), -1)
    if start < 0 or query_tokens[start].text != "{":
        return None
    head: list[Token] = []
    for token in reversed(query_tokens[:start]):
        if (
            token.depth < depth
            or token.text in (".", "{", "}")
            or token.is_word("OPTIONAL", "UNION", "MINUS", "EXISTS")
        ):
            return None
        if token.is_word("SELECT", "ASK", "CONSTRUCT", "DESCRIBE"):
            pattern = [*takewhile(lambda part: part.depth > depth, query_tokens[start + 1 :])]
            closing = start + 1 + len(pattern)
            return head[::-1], [*pattern, *query_tokens[closing : closing + 1]]
        head.append(token)
    return None


def _names(body: Sequence[Token], iris: Sequence[str]) -> tuple[list[Name], list[str]] | None:
    """Return the names that the triples in the braces of a call state, and the languages; None for other content."""
    names, languages, terms = list[Name](), list[str](), list[str]()
    for token, iri in [*zip(body, iris, strict=True), (None, ".")]:
        if iri not in (".", ";", ","):
            terms.append(iri)
            continue
        match terms:
            case []:
                pass
            case [_, property_, value] if property_ == LANGUAGE:
                languages += [language.strip().lower() for language in value.strip("\"'").split(",")]
            case [entity, property_, variable] if property_ in PROPERTIES.values() and variable[:1] in "?$":
                names.append(Name(entity, property_, variable))
            case _:
                return None
        terms = [] if iri == "." or token is None else terms[:1] if iri == ";" else terms[:2]
    languages = [language for language in languages if language != "[auto_language]"] or [DEFAULT_LANGUAGE]
    is_plain = all(language.replace("-", "").isalnum() for language in languages)
    return (names, languages) if is_plain and len(languages) <= MAX_LANGUAGES else None


def _selected_names(selected: Sequence[Token]) -> Iterator[Name]:
    """Yield the names that a SELECT takes from the service by the ends of its variables."""
    for token in selected:
        if token.kind == "variable" and selected[0].depth == token.depth:
            for ending, property_ in PROPERTIES.items():
                if token.text.endswith(ending) and len(token.text) > len(ending) + 1:
                    yield Name(token.text.removesuffix(ending), property_, token.text)
                    break


def _bound_variables(pattern: Sequence[Token]) -> set[str]:
    """Return the variables that a pattern binds: those outside of expressions, and those behind AS."""
    bound, brackets = set[str](), list[str]()
    for previous_token, token in pairwise(pattern):
        if previous_token.text in ("(", "{", "["):
            brackets.append(previous_token.text)
        elif previous_token.text in (")", "}", "]") and brackets:
            brackets.pop()
        if token.kind == "variable" and ("(" not in brackets or previous_token.is_word("AS")):
            bound.add(token.text)
    return bound | {token.text for token in pattern[:1] if token.kind == "variable"}


def _binding(name: Name, languages: Sequence[str], number: int) -> str:
    """Return a pattern that binds one name; a variable without a value has none."""
    entity, text = f"?queryeval_{number}", f"?queryeval_{number}_text"
    by_language = [f"{text}_{place}" for place in range(len(languages))]
    aggregate = f'GROUP_CONCAT({text}; SEPARATOR=", ")' if name.property == ALIAS else f"MIN({text})"
    found = "".join(
        f' OPTIONAL {{ SELECT {entity} (STRLANG(STR({aggregate}), "{language}") AS {variable})'
        f' WHERE {{ {entity} {name.property} {text} FILTER(LCASE(LANG({text})) = "{language}") }} GROUP BY {entity} }}'
        for variable, language in zip(by_language, languages, strict=True)
    )
    identifier = f'IF(ISLITERAL({name.entity}), {name.entity}, REPLACE(STR({name.entity}), "^.*/entity/", ""))'
    values = [*by_language, identifier] if name.property == LABEL else by_language
    bound = f"BIND(COALESCE({', '.join(values)}) AS {name.variable})"
    return f" BIND(COALESCE({name.entity}, {NO_ENTITY}) AS {entity}){found} {bound} "


def _iri(token: Token, prefixes: Mapping[str, str]) -> str:
    """Return a token with its prefix replaced, in angle brackets; tokens of other kinds as they are."""
    prefix, _, local = token.text.partition(":")
    return f"<{prefixes[prefix]}{local}>" if token.kind == "name" and prefix in prefixes else token.text
