"""What queries for Blazegraph, such as those for Wikidata, have beyond SPARQL, in words that every engine reads.

Hints to its optimizer are triples to other engines, which match nothing, so they are left out. The label service,
`SERVICE wikibase:label { bd:serviceParam wikibase:language "de,en" }`, binds each selected variable `?xLabel`,
`?xAltLabel` or `?xDescription` to a name of `?x`. The first of these languages that has a name counts. Triples in its
braces name other variables. A label defaults to the identifier. Source:
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
MAX_LANGUAGES = 100
NOTHING = "<tag:queryeval:none>"  # in no triple
Change: TypeAlias = tuple[int, int, str]
"""Where a change of a text begins and ends, and what stands there after it."""


class Name(NamedTuple):
    """A variable that the label service binds: the entity that it names, and the property that it takes from it."""

    entity: str
    property: str
    variable: str


def hint_changes(query_tokens: Sequence[Token], prefixes: Mapping[str, str]) -> Iterator[Change]:
    """Yield changes that replace the hints in a query by empty groups; `prefixes` are those that the query declares."""
    if BLAZEGRAPH_PREFIXES["hint"] in prefixes.values():
        for first, second, third in zip(query_tokens, query_tokens[1:], query_tokens[2:], strict=False):
            if first.depth and all(_iri(part, prefixes).startswith(HINT) for part in (first, second)):
                yield first.start, third.end, "{}"


def label_changes(query_tokens: Sequence[Token], prefixes: Mapping[str, str]) -> Iterator[Change]:
    """Yield changes that replace calls of the label service by patterns; `prefixes` are those that the query declares.

    A call is left as it is if:
    - its braces contain anything else,
    - its group does not bind the entity, but another group does,
    - `SELECT *` would show the added variables.
    """
    number = 0
    ends: dict[int, str] = {}
    for place, token in enumerate(query_tokens):
        if not token.is_word("SERVICE"):
            continue
        end = _closing(query_tokens, place)
        call = query_tokens[place + 1 : end]
        head = [part for part in call[:2] if not part.is_word("SILENT")]
        if end == len(query_tokens) or not head or _iri(head[0], prefixes) != f"<{WIKIBASE_LABEL}>":
            continue
        body = call[call.index(head[0]) + 2 :]
        group = next(at for at in range(place, -1, -1) if query_tokens[at].depth == token.depth - 1)
        group_end = _closing(query_tokens, group)
        named = _stated_names(body, [_iri(part, prefixes) for part in body])
        if named is None or group_end == len(query_tokens):
            continue
        stated_names, languages = named
        selected, selects_all = _selected(query_tokens, group)
        bound = _bound_variables([*query_tokens[group:place], *query_tokens[end:group_end]])
        names = stated_names or [name for name in selected if name.variable not in bound]
        outside = (*query_tokens[:group], *query_tokens[group_end:])
        elsewhere = {part.text for part in outside if part.depth > 0} - bound
        if (selects_all and names) or any(name.variable in bound or name.entity in elsewhere for name in names):
            continue
        yield token.start, query_tokens[end].end, "{}"
        for name in names:
            number += 1
            start = query_tokens[group_end].start
            ends[start] = ends.get(start, "") + _binding(name, languages, number)
    yield from ((start, start, text) for start, text in ends.items())


def _closing(query_tokens: Sequence[Token], place: int) -> int:
    """Return the index of the token that closes the braces around a token's call.

    The number of tokens if there is none.
    """
    depth = query_tokens[place].depth
    places = (at for at in range(place, len(query_tokens)) if query_tokens[at].text == "}")
    return next((at for at in places if query_tokens[at].depth == depth), len(query_tokens))


def _selected(query_tokens: Sequence[Token], group: int) -> tuple[list[Name], bool]:
    """Return the names that the query or subquery around a group selects by the endings of its variables.

    Also return whether it is `SELECT *`, which selects none.
    """
    depth = query_tokens[group].depth
    for place in range(group, -1, -1):
        token = query_tokens[place]
        if token.text == "{":
            depth = min(depth, token.depth)
        if token.depth == depth and token.is_word("SELECT", "CONSTRUCT"):
            is_select = token.is_word("SELECT")
            following_tokens = query_tokens[place + 1 : None if is_select else _closing(query_tokens, place)]
            head = [*takewhile(lambda part: part.text != "{", following_tokens)] if is_select else following_tokens
            columns = [part for part in head if not is_select or part.depth == depth]
            texts = dict.fromkeys(part.text for part in columns if part.kind == "variable")
            return [name for text in texts for name in _named_by_ending(text)], any(
                part.text == "*" for part in columns
            )
    return [], False


def _named_by_ending(variable: str) -> Iterator[Name]:
    """Yield the name that a variable stands for by its ending, such as `Label`; nothing for other variables."""
    for ending, property_ in PROPERTIES.items():
        if variable.endswith(ending) and len(variable) > len(ending) + 1:
            yield Name(variable.removesuffix(ending), property_, variable)
            return


def _stated_names(body: Sequence[Token], iris: Sequence[str]) -> tuple[list[Name], list[str]] | None:
    """Return the names and the languages that the triples in the braces of a call state; None for other content.

    `body` are the tokens of the braces, `iris` their texts with prefixes replaced. Without a valid language, the list
    is DEFAULT_LANGUAGE. More than MAX_LANGUAGES languages are other content, too.
    """
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
    languages = [language for language in languages if language.replace("-", "").isalnum()] or [DEFAULT_LANGUAGE]
    return (names, languages) if len(languages) <= MAX_LANGUAGES else None


def _bound_variables(pattern: Sequence[Token]) -> set[str]:
    """Return the variables that a pattern binds: all variables that are not in parentheses, and those after AS."""
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
    """Return the text of patterns that bind the variable of a name.

    The first of `languages` with a value counts. A label defaults to the identifier in the IRI; other properties stay
    unbound without a value. `number` makes the variables of the patterns unique.
    """
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
    return f" BIND(COALESCE({name.entity}, {NOTHING}) AS {entity}){found} {bound} "


def _iri(token: Token, prefixes: Mapping[str, str]) -> str:
    """Return a token as an IRI in angle brackets, if it is a name with a known prefix; other tokens as they are."""
    prefix, _, local = token.text.partition(":")
    return f"<{prefixes[prefix]}{local}>" if token.kind == "name" and prefix in prefixes else token.text
