"""The order of rows by ORDER BY and LIMIT of a SPARQL query, and the queries that find ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from pytest_queryeval.comparison.ties import UNREADABLE, OrderPlan, TieQuery
from pytest_queryeval.languages.sparql.query import BRACKETS, MODIFIERS, QueryOutline, Token, read_query

KEY = "queryeval_key_"
NO_GRAPH = "<urn:queryeval:no-graph>"
EXTRA_ROWS = 1_000  # beyond LIMIT, among which ties are expected to end
# LIMIT chooses the solutions that make a graph, which its triples no longer show.
OPEN_GRAPH = OrderPlan(ordered=False, limited=True, offset=0, queries=(), keys=None)


@lru_cache(maxsize=256)
def order_plan(text: str, columns: tuple[str, ...], row_count: int, max_rows: int) -> OrderPlan | None:
    """Return the plan for the order of a query whose answer has these columns and `row_count` rows.

    None for a query without ORDER BY and LIMIT, and for a LIMIT whose rows an ORDER BY in a nested query may have
    chosen. No query of the plan returns more than `max_rows` rows. The plan of a graph only says that LIMIT chose.
    """
    query = read_query(text)
    ordered, limit = query.modifier_index("ORDER") is not None, query.modifier_index("LIMIT") is not None
    if query.gives_graph and (limit or query.modifier_index("OFFSET") is not None):
        return OPEN_GRAPH
    if query.form != "SELECT" or not (ordered or limit):
        return None
    if not ordered and any(token.is_word("ORDER") for token in query.tokens):
        return None
    keys = _sort_keys(query) if ordered else ()
    if keys is None:
        return replace(UNREADABLE, limited=limit)
    offset: int | None = 0
    if (place := query.modifier_index("OFFSET")) is not None:
        offset_tokens = query.tokens[place + 1 : place + 2]
        offset = int(offset_tokens[0].text) if offset_tokens and offset_tokens[0].text.isdecimal() else None
    limited = (limit or place is not None) and offset is not None
    last_row = (offset or 0) + row_count
    names = [query.text[key[0].start : key[-1].end].strip("()").strip()[1:] for key in keys]
    is_selected = ordered and all(name in columns for name in names)  # each key is a selected variable
    selected_places = tuple(columns.index(name) for name in names) if is_selected else None
    if not ordered:
        queries = [TieQuery(text=_with_limit(query, None), key_columns=0)]
    else:
        # Usually few rows tie; without a rank the query cannot find where they end.
        limits = dict.fromkeys((min(last_row + EXTRA_ROWS, max_rows), max_rows)) if limited else (None,)
        texts = ((_with_keys(query, keys, columns, limit), limit) for limit in limits)
        queries = [TieQuery(text=text, key_columns=len(keys), max_rows=limit) for text, limit in texts if text]
    return OrderPlan(
        ordered=ordered,
        limited=limited,
        offset=offset or 0,
        queries=tuple(queries),
        keys=selected_places,
    )


def _sort_keys(query: QueryOutline) -> tuple[tuple[Token, ...], ...] | None:
    """Return the tokens of each sort key without ASC and DESC; None if they cannot be read."""
    start = query.modifier_index("ORDER")
    assert start is not None
    if not query.tokens[start + 1 : start + 2] or not query.tokens[start + 1].is_word("BY"):
        return None
    keys: list[tuple[Token, ...]] = []
    key: list[Token] = []
    for token in query.tokens[start + 2 :]:
        if token.depth == 0 and token.is_word(*MODIFIERS):
            break
        key.append(token)
        if token.depth == 0 and (token.kind == "variable" or token.text in BRACKETS.values()):
            keys.append(tuple(key[key[0].is_word("ASC", "DESC") :]))
            key = []
    return tuple(keys) if keys and all(keys) and not key else None


def _with_keys(
    query: QueryOutline, keys: Sequence[Sequence[Token]], columns: Sequence[str], limit: int | None
) -> str | None:
    """Return the query with its sort keys as extra columns, with `limit` as its LIMIT, and without OFFSET.

    None if DISTINCT or REDUCED would keep rows that differ only in a key that is not selected, and if the keys cannot
    be added.
    """
    key_variables = {token.text[1:] for key in keys for token in key if token.kind == "variable"}
    if query.form_index > 0:  # behind named subqueries
        return None
    if query.tokens[1].is_word("DISTINCT", "REDUCED") and not key_variables <= set(columns):
        return None
    clause = query.first_clause
    if clause in (None, 1) or not columns:
        return None
    end = query.tokens[clause - 1].end
    named_expressions = _named_expressions(query)
    expressions = [_with_expressions(query.text, key, named_expressions) for key in keys]
    key_columns = " ".join(f"({text} AS ?{KEY}{number})" for number, text in enumerate(expressions, start=1))
    uncut = _with_limit(query, limit)
    if not query.selects_all:
        return f"{uncut[:end]} {key_columns} {uncut[end:]}"
    star = next(token for token in query.tokens if token.text == "*")
    names = " ".join(f"?{name}" for name in columns)
    return f"{uncut[: star.start]} {names} {key_columns} {uncut[star.end :]}"


def _named_expressions(query: QueryOutline) -> dict[str, str]:
    """Return the expressions that a query with GROUP BY selects, by their variables after AS; none for other queries.

    Engines know these variables only as columns, not in further expressions.
    """
    expressions: dict[str, str] = {}
    if query.modifier_index("GROUP") is None:
        return expressions
    head = query.tokens[: query.first_clause]
    start = 0
    for token, next_token in pairwise(head):
        if token.depth == 0 and token.text == "(":
            start = token.end
        elif token.depth == 1 and token.is_word("AS"):
            expressions[next_token.text] = query.text[start : token.start].strip()
    return expressions


def _with_expressions(text: str, key: Sequence[Token], named_expressions: Mapping[str, str]) -> str:
    """Return the text of a sort key, with expressions instead of the variables that stand for them."""
    new_text, end = "", key[0].start
    for token in key:
        if token.text in named_expressions:
            new_text += f"{text[end : token.start]}({named_expressions[token.text]})"
            end = token.end
    return new_text + text[end : key[-1].end]


def _with_limit(query: QueryOutline, limit: int | None) -> str:
    """Return the text of a query without OFFSET and with `limit` as its LIMIT; None leaves LIMIT out."""
    text = query.text
    new_clauses = {"LIMIT": f"LIMIT {limit}" if limit is not None else "", "OFFSET": ""}
    places = [(place, word) for word in new_clauses if (place := query.modifier_index(word)) is not None]
    for place, word in sorted(places, reverse=True):
        clause = query.tokens[place : place + 2]
        text = f"{text[: clause[0].start]} {new_clauses[word]} {text[clause[-1].end :]}"
    return text


def with_empty_dataset(text: str) -> str | None:
    """Return the query over a graph that does not exist; None if the query names its own graphs or services."""
    query = read_query(text)
    clause = query.first_clause
    if query.form == "DESCRIBE" or query.states_dataset or query.services or clause is None:
        return None
    start = query.tokens[clause].start
    return f"{query.text[:start]} FROM {NO_GRAPH} FROM NAMED {NO_GRAPH} {query.text[start:]}"
