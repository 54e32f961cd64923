"""The text of a SPARQL query: its tokens, and the facts that decide how it runs and how its answer is evaluated.

Tokens are those of the grammar (https://www.w3.org/TR/sparql11-query/#grammar). Recursive parsers crash on hostile
text, and slow ones hang; a scan by one regular expression does neither.
Some servers fetch the graphs that a query names with FROM and FROM NAMED, so every IRI counts that any parser could
read in the text. Prefixes that a source declares are for queries that use them without a declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple
from urllib.parse import urljoin

from pytest_queryeval.core.shapes import STRING, SettingValidator, choice_shape, either, is_iri, list_shape
from pytest_queryeval.text.formatting import truncate

BLANK = r"(?:\s|\#[^\r\n]*+)*+"
WORD = "\\w\u00b7\u0300-\u036f\u203f\u2040"  # the characters of variables; names may contain a hyphen, too
_PART = rf"{WORD}\-"
NAME = rf"(?:[^\W\d_](?:[{_PART}]|\.++(?=[{_PART}]))*+|_)?:(?:[{_PART}:%]|\\.|\.++(?=[{_PART}:%\\]))*+"
# Quantifiers are possessive, and an open string extends to the end, so that no text is scanned twice.
_TOKEN = re.compile(
    rf"""
      (?P<space>    \s++ | \#[^\r\n]*+ )
    | (?P<iri>      <[^<>"{{}}|^`\\\x00-\x20]*+> )
    | (?P<string>   \"{{3}} (?: \"{{0,2}} (?: [^"\\] | \\. ) )*+ \"{{0,3}}
                  | '{{3}} (?: '{{0,2}} (?: [^'\\] | \\. ) )*+ '{{0,3}}
                  | \" (?: [^"\\\r\n] | \\. )*+ \"?
                  | ' (?: [^'\\\r\n] | \\. )*+ '? )
    | (?P<variable> [?$][{WORD}]++ )
    | (?P<language> @[A-Za-z]++(?:-[A-Za-z0-9]++)*+ )
    | (?P<name>     {NAME} )
    | (?P<word>     [^\W\d_] (?: [\w-] | \.++(?=[\w-]) )*+ )
    | (?P<number>   (?: \d++\.?+\d*+ | \.\d++ ) (?: [eE][+-]?\d++ )?+ )
    | (?P<mark>     . )
    """,
    re.VERBOSE | re.DOTALL,
)
_CODE_POINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(BRACKETS.values())
SHOWN_CHARACTERS = 60
_CLAUSE = re.compile(
    rf"FROM{BLANK}(?:NAMED{BLANK})?(?:<(?P<iri>[^<>\"{{}}|^`\x00-\x20]*+)>|(?P<name>{NAME}))", re.IGNORECASE
)
_IRI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
MAX_WORDS = 50  # SERVICE or FROM in an ambiguous text; each costs a search to its end
# The head of a SERVICE clause, to be found anywhere in the text.
_SERVICE = re.compile(
    rf"SERVICE{BLANK}(?:SILENT)?{BLANK}"
    rf"(?:<(?P<iri>[^<>\s]*+)>|[?$][{_PART}]++|(?P<name>[{_PART}.]*+:(?:[{_PART}.:%]|\\.)*+)){BLANK}\{{",
    re.IGNORECASE,
)
_GRAPH_WORDS = ("GRAPH", "FROM", "NAMED", "DESCRIBE")
# `schema` and `geo` have several IRIs in use: these are the ones of schema.org's own context and of GeoSPARQL.
COMMON_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "sh": "http://www.w3.org/ns/shacl#",
    "prov": "http://www.w3.org/ns/prov#",
    "geo": "http://www.opengis.net/ont/geosparql#",
}
WIKIBASE = "http://wikiba.se/ontology#"
WIKIBASE_LABEL = f"{WIKIBASE}label"
BIGDATA = "http://www.bigdata.com/rdf#"
# What Blazegraph, and the Wikidata Query Service upon it, know without a declaration.
BLAZEGRAPH_PREFIXES = {
    **{name: COMMON_PREFIXES[name] for name in ("rdf", "rdfs", "owl", "xsd", "skos", "foaf", "schema", "prov", "geo")},
    "wikibase": WIKIBASE,
    "bd": BIGDATA,
    "bds": "http://www.bigdata.com/rdf/search#",
    "hint": "http://www.bigdata.com/queryHints#",
    "gas": "http://www.bigdata.com/rdf/gas#",
}
WIKIDATA = "http://www.wikidata.org/"
WIKIDATA_PREFIXES = {
    **BLAZEGRAPH_PREFIXES,
    "geof": "http://www.opengis.net/def/function/geosparql/",
    "dct": "http://purl.org/dc/terms/",
    "ontolex": "http://www.w3.org/ns/lemon/ontolex#",
    "cc": "http://creativecommons.org/ns#",
    **{
        name: f"{WIKIDATA}{path}/"
        for name, path in {
            "wd": "entity",
            "wds": "entity/statement",
            "wdv": "value",
            "wdref": "reference",
            "wdata": "wiki/Special:EntityData",
            "wdt": "prop/direct",
            "wdtn": "prop/direct-normalized",
            "wdno": "prop/novalue",
            "p": "prop",
            "ps": "prop/statement",
            "psv": "prop/statement/value",
            "psn": "prop/statement/value-normalized",
            "pq": "prop/qualifier",
            "pqv": "prop/qualifier/value",
            "pqn": "prop/qualifier/value-normalized",
            "pr": "prop/reference",
            "prv": "prop/reference/value",
            "prn": "prop/reference/value-normalized",
        }.items()
    },
}
PREFIX_SETS = {"common": COMMON_PREFIXES, "blazegraph": BLAZEGRAPH_PREFIXES, "wikidata": WIKIDATA_PREFIXES}
_NAME = re.compile(r"(?:[^\W\d_](?:[\w.-]*[\w-])?)?")


class Token(NamedTuple):  # a query may have tens of thousands, and a dataclass is slower
    """A token of a query, with its place in the text."""

    kind: str
    """The name of a group of `_TOKEN`."""
    text: str
    start: int
    end: int
    depth: int
    """The number of open brackets around the token."""

    def is_word(self, *words: str) -> bool:
        """Return whether the token is one of these keywords, which are given in upper case."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def is_closed_text(self) -> bool:
        """Whether the token is a string that ends with the quotes with which it begins."""
        long = self.text[:3] in ('"""', "'''")
        marks = self.text[:3] if long else self.text[:1]
        return self.kind == "string" and len(self.text) >= 2 * len(marks) and self.text.endswith(marks)


def unescaped(query: str) -> str:
    r"""Return the query with its escapes of code points, such as `\u0041`, decoded."""
    if "\\u" not in query and "\\U" not in query:
        return query
    return _CODE_POINT.sub(_character, query)


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code <= 0x10FFFF else match[0]


def unclosed_bracket(query: str) -> Token | None:
    r"""Return the last bracket that the query opens and does not close; None if all are closed.

    >>> unclosed_bracket("SELECT ?s {\n?s ?p (1").text
    '('
    """
    open_brackets: list[Token] = []
    for token in tokens(query):
        if token.text in BRACKETS:
            open_brackets.append(token)
        elif token.text in _CLOSING and open_brackets:
            open_brackets.pop()
    return open_brackets[-1] if open_brackets else None


def tokens(query: str) -> tuple[Token, ...]:
    """Return all tokens except white space and comments; each character outside the grammar is a `mark`."""
    query_tokens = []
    depth = 0
    for match in _TOKEN.finditer(query):
        kind, text = match.lastgroup or "", match[0]
        if kind == "space":
            continue
        depth -= text in _CLOSING
        query_tokens.append(Token(kind, text, match.start(), match.end(), depth))
        depth += text in BRACKETS
    return tuple(query_tokens)


def stated_graphs(text: str, prologue: Sequence[Token], body: Sequence[Token], form: str) -> Iterator[str]:
    """Yield the IRI of each graph that FROM and FROM NAMED name, or the text if it cannot be read as an IRI.

    IRIs are resolved by the prologue; without a base, a relative IRI stays relative. `form` is the query's form.
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
    """Yield the IRIs in all text that looks like a FROM clause, even within a string or a comment."""
    base, prefixes = _read_prologue(prologue)
    for clause in _CLAUSE.finditer(text):
        yield _iri(clause, base, prefixes)


def _start_of_clause(token: Token, *, is_name: bool) -> int | None:
    """Return where a FROM clause starts in a token, which for some parsers may contain more than the word FROM.

    None if no clause starts there. No keyword except FROM contains that word. A prefix may begin with it: `is_name`
    says that a name with this prefix can stand there, and that its prefix is declared.
    """
    if token.kind == "word":
        place = token.text.upper().rfind("FROM")
        return token.start + place if place >= 0 else None
    is_clause = token.kind == "name" and token.text.upper().startswith("FROM") and not is_name
    return token.start if is_clause else None


def _read_prologue(prologue: Sequence[Token]) -> tuple[str, dict[str, str]]:
    """Return the base, and the prefixes without colon, resolved by the base before them.

    Duplicate declarations are ignored, because servers differ in which of them counts: their IRIs stay relative.
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


def is_absolute(iri: str) -> bool:
    """Return whether an IRI begins with a scheme."""
    return _IRI_SCHEME.match(iri) is not None


def resolve(iri: str, base: str) -> str:
    """Return an IRI resolved by a base; if the base is not a URL, a relative IRI stays relative."""
    if is_absolute(iri):
        return iri
    path, mark, fragment = iri.partition("#")  # `urljoin` drops an empty fragment, with which many prefixes end
    try:
        return f"{urljoin(base, path)}{mark}{fragment}"
    except ValueError:  # of brackets around a host
        return iri


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutline:
    """The facts about a query that its tokens show, without a parse."""

    text: str
    """The query with decoded code points."""
    form: str
    """One of FORMS, one of UPDATES, or "" for text that is not a query."""
    tokens: tuple[Token, ...]
    """The tokens after the prologue, from `form`, or the named subqueries in front of it, on."""
    variables: tuple[str, ...]
    """All variables of the text, without `?`, in the order of their first appearance."""
    prefixes: Mapping[str, str]
    """The prefixes that the prologue declares, without colon, and their IRIs."""
    states_base: bool
    """Whether the prologue has BASE, by which relative IRIs are resolved."""
    services: tuple[str, ...]
    """What SERVICE names for any parser: absolute IRIs, or the text where it cannot be resolved."""
    graphs: tuple[str, ...]
    """The graphs of FROM and FROM NAMED for any parser: absolute IRIs, or the text where it cannot be resolved."""

    @property
    def gives_graph(self) -> bool:
        """Whether the answer is a graph and not a table."""
        return self.form in ("CONSTRUCT", "DESCRIBE")

    @property
    def selects_all(self) -> bool:
        """Whether the query is `SELECT *`, whose columns have no order of their own."""
        start = self.form_index + 1
        head = [token.text.upper() for token in self.tokens[start : start + 2]]
        return self.form == "SELECT" and "*" in (head[1:] if head[:1] in (["DISTINCT"], ["REDUCED"]) else head[:1])

    @property
    def form_index(self) -> int:
        """The index in `tokens` of the word that is the query's form: 0, unless named subqueries precede it."""
        places = (place for place, token in enumerate(self.tokens) if token.depth == 0 and token.is_word(self.form))
        return next(places, 0)

    @property
    def has_named_subqueries(self) -> bool:
        """Whether the query has `WITH { … } AS %name`, which is no SPARQL; Blazegraph and QLever read it."""
        return any(_names_subquery(self.tokens, place) for place in range(len(self.tokens)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The variables that a SELECT names, without `?`."""
        head = self.tokens[self.form_index : self.first_clause]
        names = (
            token.text[1:]
            for previous_token, token in pairwise(head)
            if token.kind == "variable" and (token.depth == 0 or (token.depth == 1 and previous_token.is_word("AS")))
        )
        return tuple(dict.fromkeys(names))

    @property
    def states_dataset(self) -> bool:
        """Whether the query sets its graphs with FROM."""
        return any(token.depth == 0 and token.is_word("FROM") for token in self.tokens)

    @property
    def depth(self) -> int:
        """How deeply the query's brackets are nested."""
        return max((token.depth for token in self.tokens), default=0)

    @property
    def undeclared_prefixes(self) -> tuple[str, ...]:
        """The prefixes that are used and not declared, without colon, in the order of their first use."""
        used_prefixes = dict.fromkeys(token.text.partition(":")[0] for token in self.tokens if token.kind == "name")
        return tuple(prefix for prefix in used_prefixes if prefix not in {*self.prefixes, "_"})

    @property
    def first_clause(self) -> int | None:
        """The index in `tokens` where the head of the query ends: at WITH, FROM, WHERE or its pattern.

        None if at none.
        """
        start = self.form_index + 1
        for place, token in enumerate(self.tokens[start:], start=start):
            if token.depth == 0 and (token.text == "{" or token.is_word("WITH", "FROM", "WHERE")):
                return place
        return None

    @property
    def has_patterns(self) -> bool:
        """Whether the query's braces contain patterns, and not only inline data and expressions in parentheses."""
        brackets: list[str] = []
        previous_token = None
        for token in self.tokens[self.first_clause or 0 :]:
            if token.text in BRACKETS:
                is_data = brackets[-1:] == ["VALUES"] or (
                    previous_token is not None and previous_token.is_word("VALUES")
                )
                brackets.append("VALUES" if is_data else token.text)
            elif token.text in BRACKETS.values() and brackets:
                brackets.pop()
            elif previous_token is not None and previous_token.is_word("VALUES"):
                continue  # the variable of inline data
            elif brackets[-1:] == ["{"] and token.kind in ("variable", "iri", "name"):
                return True
            previous_token = token
        return False

    def modifier_index(self, word: str) -> int | None:
        """Return the index in `tokens` of the modifier that starts with `word`, outside of brackets.

        None if there is none.
        """
        places = range(len(self.tokens))
        return next((at for at in places if self.tokens[at].depth == 0 and self.tokens[at].is_word(word)), None)


@lru_cache(maxsize=64)
def read_query(text: str) -> QueryOutline:
    """Return the outline of a text as a query; never raises, whatever the text. Cached.

    Some parsers decode escaped code points before they read tokens. An update, a SERVICE or a graph counts if it is in
    either reading of the text.
    """
    # Some parsers decode escaped code points first, others do not, and a clause may be hidden in either reading.
    readings = {reading: tokens(reading) for reading in dict.fromkeys((text, unescaped(text)))}
    decoded_tokens = readings[unescaped(text)]
    start = _after_prologue(decoded_tokens)
    forms = {_form(reading_tokens[_after_prologue(reading_tokens) :]) for reading_tokens in readings.values()}
    names = dict.fromkeys(token.text[1:] for token in decoded_tokens if token.kind == "variable")
    return QueryOutline(
        text=unescaped(text),
        form=next((form for form in UPDATES if form in forms), _form(decoded_tokens[start:])),
        tokens=decoded_tokens[start:],
        variables=tuple(names),
        prefixes={
            name.text[:-1]: iri.text[1:-1] for name, iri in pairwise(decoded_tokens[:start]) if name.kind == "name"
        },
        states_base=any(token.is_word("BASE") for token in decoded_tokens[:start]),
        services=tuple(dict.fromkeys(name for reading in readings.items() for name in _services(*reading))),
        graphs=tuple(dict.fromkeys(graph for reading in readings.items() for graph in _graphs(*reading))),
    )


def _form(query_tokens: Sequence[Token]) -> str:
    """Return the form of a query by the tokens after its prologue; "" if it is not a query.

    An update that follows a query takes precedence. Within named subqueries, an update is sought at any depth.
    """
    first_word = query_tokens[0].text.upper() if query_tokens else ""
    if first_word not in (*FORMS, *UPDATES):
        return ""
    naming_places = {place for place in range(len(query_tokens)) if _names_subquery(query_tokens, place)}
    words = [
        token.text.upper()
        for place, token in enumerate(query_tokens)
        if token.kind == "word"
        and (token.depth == 0 or naming_places)
        and place not in naming_places
        and not (naming_places and _is_subquery_name(query_tokens, place))
    ]
    update = next((word for word in words if word in UPDATES), "")
    if update or 0 not in naming_places:
        return update or first_word
    return next((token.text.upper() for token in query_tokens if token.depth == 0 and token.is_word(*FORMS)), "WITH")


def _is_subquery_name(query_tokens: Sequence[Token], place: int) -> bool:
    mark = query_tokens[place - 1] if place else None
    return mark is not None and mark.text == "%" and mark.end == query_tokens[place].start


def _names_subquery(query_tokens: Sequence[Token], place: int) -> bool:
    """Return whether a named subquery begins at this token: WITH and a pattern or a name, not the IRI of an update."""
    is_with = query_tokens[place].depth == 0 and query_tokens[place].is_word("WITH")
    return is_with and place + 1 < len(query_tokens) and query_tokens[place + 1].text in ("{", "%")


def _after_prologue(query_tokens: Sequence[Token]) -> int:
    place = 0
    while place < len(query_tokens) and query_tokens[place].is_word("PREFIX", "BASE", "VERSION"):
        place += 3 if query_tokens[place].is_word("PREFIX") else 2
    return place


def _graphs(text: str, query_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the graphs of FROM and FROM NAMED, as `stated_graphs` does.

    If parsers may disagree on the text, yield the graphs of all that looks like such a clause, too. If the text has
    more than MAX_WORDS words FROM, yield a text that says so instead.
    """
    words = text.upper().count("FROM")
    if words == 0:
        return
    start = _after_prologue(query_tokens)
    yield from stated_graphs(text, query_tokens[:start], query_tokens[start:], _form(query_tokens[start:]))
    if _is_ambiguous(query_tokens):
        if words > MAX_WORDS:
            yield f"more than {MAX_WORDS} times"
        else:
            yield from graphs_anywhere(text, query_tokens[:start])


def _services(text: str, query_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield what each SERVICE clause names for some parser: an IRI, or the text if it names none.

    If parsers may disagree on the text and it may contain SERVICE, yield a sentence that says so, too.
    """
    if "SERVICE" not in text.upper():
        return
    base, prefixes = _read_prologue(query_tokens[: _after_prologue(query_tokens)])
    for place, token in enumerate(query_tokens):
        if _is_service(query_tokens, place):
            clause = _SERVICE.match(text, token.start)
            if clause is not None and (clause["iri"] or clause["name"]):
                yield _iri(clause, base, prefixes)
            else:
                yield truncate(text[token.start :], SHOWN_CHARACTERS)
    if _is_ambiguous(query_tokens) and (text.upper().count("SERVICE") > MAX_WORDS or _SERVICE.search(text)):
        yield "SERVICE in a text that can be read in several ways"


def _is_service(query_tokens: Sequence[Token], place: int) -> bool:
    """Return whether a SERVICE clause starts at this token.

    No keyword except SERVICE contains that word. A prefix may contain it: then a group in braces after the name shows
    that it is a clause, because only the name of a graph precedes a group.
    """
    token = query_tokens[place]
    if token.kind == "word":
        return "SERVICE" in token.text.upper()
    if token.kind != "name" or "SERVICE" not in token.text.partition(":")[0].upper():
        return False
    names_graph = place > 0 and query_tokens[place - 1].is_word(*_GRAPH_WORDS)
    return not names_graph and place + 1 < len(query_tokens) and query_tokens[place + 1].text == "{"


def _is_ambiguous(query_tokens: Sequence[Token]) -> bool:
    """Return whether parsers may split the text into tokens in several ways, which hide different parts of it.

    Within parentheses, after something that can be compared, `<` is an operator or the start of an IRI; three quotes
    that are not closed are an empty text and the start of another text.
    """
    brackets: list[str] = []
    previous_token = None
    for token in query_tokens:
        comparable = previous_token is not None and (previous_token.kind != "mark" or previous_token.text == ")")
        if token.kind == "iri" and comparable and brackets[-1:] == ["("]:
            return True
        if token.kind == "string" and not token.is_closed_text:
            return True
        if token.text in BRACKETS:
            brackets.append(token.text)
        elif token.text in BRACKETS.values() and brackets:
            brackets.pop()
        previous_token = token
    return False


def _is_prefixes(value: Any) -> bool:
    return all(
        all(_NAME.fullmatch(str(name)) and is_iri(iri) for name, iri in part.items())
        if isinstance(part, dict)
        else part in tuple(PREFIX_SETS)
        for part in _prefix_parts(value)
    )


def _prefix_problems(value: Any) -> str:
    """Return the end of a message on the setting `prefixes`: which parts are wrong, and why."""
    problems = []
    for part in _prefix_parts(value):
        if isinstance(part, dict):
            for name, iri in part.items():
                if not _NAME.fullmatch(str(name)):
                    problems.append(f"'{name}' is not a name of a prefix")
                elif not is_iri(iri):
                    problems.append(f"'{iri}' of '{name}' is not an IRI")
        elif part not in tuple(PREFIX_SETS):
            problems.append(f"'{part}' is unknown")
    return f": {', '.join(problems)}"


def _prefix_parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_SHAPE = either(choice_shape(PREFIX_SETS), {"type": "object", "additionalProperties": STRING})
_SET_NAMES = ", ".join(f"'{name}'" for name in PREFIX_SETS)
PREFIXES = SettingValidator(
    _is_prefixes,
    f"{_SET_NAMES}, a mapping of names to IRIs such as {{ex: 'http://example.org/'}}, or a list of these",
    suggestion=_prefix_problems,
    shape=either(_SHAPE, list_shape(_SHAPE)),
)


def declared_prefixes(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the prefixes that a source declares by its `profile` and `prefixes`; of several IRIs, the last counts."""
    prefixes = dict(PREFIX_SETS.get(settings.get("profile", ""), {}))
    for part in _prefix_parts(settings.get("prefixes", [])):
        prefixes |= part if isinstance(part, dict) else PREFIX_SETS[part]
    return prefixes


def missing_prefixes(query: str, prefixes: Mapping[str, str]) -> list[str]:
    """Return the names in `prefixes` that the query uses but does not declare, in the order of their first use."""
    return [name for name in read_query(query).undeclared_prefixes if name in prefixes] if prefixes else []


def with_prefixes(query: str, prefixes: Mapping[str, str]) -> str:
    """Return the query with its missing prefixes declared on its first line, so that all lines keep their numbers."""
    return "".join(f"PREFIX {name}: <{prefixes[name]}> " for name in missing_prefixes(query, prefixes)) + query
