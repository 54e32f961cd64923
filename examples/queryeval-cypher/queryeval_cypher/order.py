"""The order of rows by ORDER BY, SKIP and LIMIT of the last RETURN, and the query that finds ties."""

from __future__ import annotations

from itertools import dropwhile

from pytest_queryeval.comparison.ties import OrderPlan, TieQuery
from queryeval_cypher.tokens import Token, read_tokens

KEY = "queryeval_key_"
EXTRA_ROWS = 1_000  # beyond LIMIT, among which ties are expected to end
DIRECTIONS = ("ASC", "ASCENDING", "DESC", "DESCENDING")


def order_plan(query: str, row_count: int) -> OrderPlan | None:
    """Return the order of a query whose answer has `row_count` rows.

    None where its rows have no order, and for UNION, of which ORDER BY and LIMIT belong to one part only.
    """
    tokens = list(read_tokens(query))
    clauses = {token.keyword: place for place, token in enumerate(tokens) if token.keyword and not token.depth}
    if "RETURN" not in clauses or "UNION" in clauses:
        return None
    after_return = {word: place for word, place in clauses.items() if place > clauses["RETURN"]}
    ordered = "ORDER" in after_return
    cuts = [after_return[word] for word in ("SKIP", "LIMIT") if word in after_return]
    if not ordered and (not cuts or "ORDER" in clauses):  # rows that an ORDER BY before RETURN may have chosen
        return None
    skipped = tokens[after_return["SKIP"] + 1].text if "SKIP" in after_return else "0"
    if not skipped.isdecimal():
        return OrderPlan(ordered=ordered, limited=True, offset=0, queries=(), keys=None)
    end = min([*cuts, next((place for place, token in enumerate(tokens) if token.text == ";"), len(tokens))])
    head_end = after_return["ORDER"] if ordered else end
    head = query[: tokens[head_end - 1].end]
    if not ordered:
        tie_query = TieQuery(text=head, key_columns=0)
        return OrderPlan(ordered=False, limited=True, offset=int(skipped), queries=(tie_query,), keys=None)
    items = [read_item(query, item) for item in split(tokens[clauses["RETURN"] + 1 : head_end])]
    keys = [key_text(query, key) for key in split(tokens[head_end + 2 : end])]
    # Names after AS are not known within RETURN: the expression takes their place.
    expressions = {name: expression for expression, name in items}
    names = [name for _, name in items] + [expression for expression, _ in items]
    columns = [names.index(key) % len(items) for key in keys if key in names]
    added = "".join(f", {expressions.get(key, key)} AS {KEY}{number}" for number, key in enumerate(keys, start=1))
    last = int(skipped) + row_count + EXTRA_ROWS
    order = query[tokens[head_end].start : tokens[end - 1].end]
    tie_query = TieQuery(text=f"{head}{added} {order} LIMIT {last}", key_columns=len(keys), max_rows=last)
    is_selected = len(columns) == len(keys) and "*" not in names
    return OrderPlan(
        ordered=True,
        limited=bool(cuts),
        offset=int(skipped),
        queries=(tie_query,),
        keys=tuple(columns) if is_selected else None,
    )


def split(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens between commas that are in no bracket, without DISTINCT in front."""
    parts: list[list[Token]] = [[]]
    for token in dropwhile(lambda token: token.keyword == "DISTINCT", tokens):
        if token.text == "," and not token.depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def read_item(query: str, tokens: list[Token]) -> tuple[str, str]:
    """Return the expression of an item of RETURN, and the name of its column: without AS, the expression."""
    is_named = len(tokens) > 2 and tokens[-2].keyword == "AS"
    expression = query[tokens[0].start : tokens[-3 if is_named else -1].end]
    return expression, tokens[-1].text if is_named else expression


def key_text(query: str, tokens: list[Token]) -> str:
    """Return the text of a sort key without its direction."""
    last = -2 if tokens[-1].keyword in DIRECTIONS and len(tokens) > 1 else -1
    return query[tokens[0].start : tokens[last].end]
