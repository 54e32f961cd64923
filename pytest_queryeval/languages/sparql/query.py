"""The outline of a SPARQL query: the facts that decide how it runs and how its answer is evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from pytest_queryeval.languages.sparql.dataset import graphs_anywhere, stated_graphs
from pytest_queryeval.languages.sparql.tokens import BLANK, BRACKETS, Token, tokens, unescaped

FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
MAX_WORDS = 50  # SERVICE or FROM in an ambiguous text; each costs a search to its end
# The head of a SERVICE clause, to be found anywhere in the text.
_SERVICE = re.compile(
    rf"SERVICE{BLANK}(?:SILENT)?{BLANK}(?:<[^<>\s]*+>|[?$]\w++|[\w.-]*+:(?:[\w.:%-]|\\.)*+){BLANK}\{{", re.IGNORECASE
)
_GRAPH_WORDS = ("GRAPH", "FROM", "NAMED", "DESCRIBE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The outline of a query."""

    text: str
    """The query with decoded code points."""
    form: str
    """One of FORMS, one of UPDATES, or "" for text that is not a query."""
    tokens: tuple[Token, ...]
    """The tokens after the prologue, from `form` on."""
    variables: tuple[str, ...]
    """All variables of the text, without `?`, in the order of their first appearance."""
    prefixes: Mapping[str, str]
    """The prefixes that the prologue declares, without colon, and their IRIs."""
    calls_service: bool
    """Whether some parser would read a SERVICE clause."""
    graphs: tuple[str, ...]
    """The graphs of FROM and FROM NAMED for any parser: absolute IRIs, or the text where it cannot be resolved."""

    @property
    def gives_graph(self) -> bool:
        """Return whether the answer is a graph and not a table."""
        return self.form in ("CONSTRUCT", "DESCRIBE")

    @property
    def selects_all(self) -> bool:
        """Return whether it is `SELECT *`, whose columns have no order of their own."""
        head = [token.text.upper() for token in self.tokens[1:3]]
        return self.form == "SELECT" and "*" in (head[1:] if head[:1] in (["DISTINCT"], ["REDUCED"]) else head[:1])

    @property
    def states_dataset(self) -> bool:
        """Return whether it sets its graphs with FROM."""
        return any(token.depth == 0 and token.is_word("FROM") for token in self.tokens)

    @property
    def depth(self) -> int:
        """Return how deeply its brackets are nested."""
        return max((token.depth for token in self.tokens), default=0)

    @property
    def undeclared_prefixes(self) -> tuple[str, ...]:
        """Return the prefixes that are used and not declared, without colon, in the order of their first use."""
        used_prefixes = dict.fromkeys(token.text.partition(":")[0] for token in self.tokens if token.kind == "name")
        return tuple(prefix for prefix in used_prefixes if prefix not in {*self.prefixes, "_"})

    @property
    def first_clause(self) -> int | None:
        """Return the index in `tokens` where the head of the query ends: at FROM, WHERE or its pattern."""
        for place, token in enumerate(self.tokens[1:], start=1):
            if token.depth == 0 and (token.text == "{" or token.is_word("FROM", "WHERE")):
                return place
        return None

    @property
    def has_patterns(self) -> bool:
        """Return whether its braces hold more than expressions, which are in parentheses, and inline data."""
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

    def modifier(self, word: str) -> int | None:
        """Return the place in `tokens` of the modifier that starts with `word`, outside of brackets, or None."""
        places = range(len(self.tokens))
        return next((at for at in places if self.tokens[at].depth == 0 and self.tokens[at].is_word(word)), None)


@lru_cache(maxsize=16)
def read_query(text: str) -> Query:
    """Return the outline of a query; never raise, whatever the text."""
    # Some parsers decode escaped code points first, others do not, and a clause may be hidden in either reading.
    readings = {reading: tokens(reading) for reading in dict.fromkeys((text, unescaped(text)))}
    decoded_tokens = readings[unescaped(text)]
    start = _after_prologue(decoded_tokens)
    forms = {_form(reading_tokens[_after_prologue(reading_tokens) :]) for reading_tokens in readings.values()}
    names = dict.fromkeys(token.text[1:] for token in decoded_tokens if token.kind == "variable")
    return Query(
        text=unescaped(text),
        form=forms.pop() if len(forms) == 1 else next((form for form in UPDATES if form in forms), ""),
        tokens=decoded_tokens[start:],
        variables=tuple(names),
        prefixes={
            name.text[:-1]: iri.text[1:-1] for name, iri in pairwise(decoded_tokens[:start]) if name.kind == "name"
        },
        calls_service=any(_calls_service(*reading) for reading in readings.items()),
        graphs=tuple(dict.fromkeys(graph for reading in readings.items() for graph in _graphs(*reading))),
    )


def _form(query_tokens: Sequence[Token]) -> str:
    """Return the form by the tokens after the prologue; that of an update that follows a query takes precedence."""
    first_word = query_tokens[0].text.upper() if query_tokens else ""
    if first_word not in (*FORMS, *UPDATES):
        return ""
    words = (token.text.upper() for token in query_tokens if token.depth == 0 and token.kind == "word")
    return next((word for word in words if word in UPDATES), first_word)


def _after_prologue(query_tokens: Sequence[Token]) -> int:
    place = 0
    while place < len(query_tokens) and query_tokens[place].is_word("PREFIX", "BASE", "VERSION"):
        place += 3 if query_tokens[place].is_word("PREFIX") else 2
    return place


def _graphs(text: str, query_tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the graphs that FROM and FROM NAMED state, as `stated_graphs` does, also where parsers may disagree."""
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


def _calls_service(text: str, query_tokens: Sequence[Token]) -> bool:
    """Return whether the text has a SERVICE clause for some parser, also without spaces around it."""
    words = text.upper().count("SERVICE")
    if words == 0:
        return False
    if any(_is_service(query_tokens, place) for place in range(len(query_tokens))):
        return True
    return _is_ambiguous(query_tokens) and (words > MAX_WORDS or _SERVICE.search(text) is not None)


def _is_service(query_tokens: Sequence[Token], place: int) -> bool:
    """Return whether a SERVICE clause starts at this token.

    No keyword but SERVICE contains that word. A prefix may contain it: then a group in braces after the name shows that
    it is a clause, since only the name of a graph precedes a group.
    """
    token = query_tokens[place]
    if token.kind == "word":
        return "SERVICE" in token.text.upper()
    if token.kind != "name" or "SERVICE" not in token.text.partition(":")[0].upper():
        return False
    names_graph = place > 0 and query_tokens[place - 1].is_word(*_GRAPH_WORDS)
    return not names_graph and place + 1 < len(query_tokens) and query_tokens[place + 1].text == "{"


def _is_ambiguous(query_tokens: Sequence[Token]) -> bool:
    """Return whether parsers may split the text into tokens in several ways, each of which hides other parts of it.

    Within parentheses, after something that can be compared, `<` is an operator or the start of an IRI; three quotes
    that are not closed are an empty text and the start of another one.
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
