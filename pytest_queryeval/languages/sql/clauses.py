"""The last clauses of a query as its text has them: what orders and limits its rows, and where an item can be added.

They are read from tokens, so a query that the parser cannot read, or writes differently, keeps its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlglot import Token, TokenType

from pytest_queryeval.languages.sql.parsing import CLOSING, OPENING, SET_OPERATIONS, is_before_amount

_TAIL = frozenset((TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH))
_AFTER_ITEMS = _TAIL | {
    *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW),
}
# What may not follow ORDER BY or LIMIT; a statement that has it is not what these tokens look like.
_FOREIGN = (_AFTER_ITEMS - _TAIL) | SET_OPERATIONS | {TokenType.SELECT, TokenType.WITH, TokenType.FOR, TokenType.INTO}
_NAMES = frozenset((TokenType.VAR, TokenType.IDENTIFIER))
_BEFORE_ALIAS = _NAMES | CLOSING | {TokenType.END, TokenType.STRING}  # without AS
_DIRECTIONS = frozenset(("ASC", "DESC", "NULLS", "FIRST", "LAST"))
_WORDS_OF_LIMIT = frozenset(("ALL", "FIRST", "NEXT", "NULL", "ONLY", "PERCENT", "ROW", "ROWS"))
_ALL_COLUMNS = frozenset(("ALL", "COLUMNS"))


class Item(NamedTuple):
    """An item of a SELECT: its expression as written, and its name in lower case, or ""."""

    expression: str
    name: str


class Key(NamedTuple):
    """A sort key: its expression as written, and the text before and behind the expression."""

    before: str
    expression: str
    behind: str

    def of(self, expression: str) -> str:
        """Return the text of the key with another expression."""
        return f"{self.before}{expression}{self.behind}"


class Clauses(NamedTuple):
    """The last clauses of a query's top level, and its items."""

    uncut: str
    """The query up to its ORDER BY, LIMIT, OFFSET or FETCH."""
    keys: tuple[Key, ...]
    limited: bool
    offset: int | None
    """None if it is not a number."""
    items: tuple[Item, ...] | None
    """What it selects before the first `*`; None for DISTINCT and set operations."""
    items_end: int
    """Where the text has room for a further item."""
    has_other_orders: bool
    """Whether there is an ORDER BY below the top level."""


def read_clauses(text: str, tokens: Sequence[Token]) -> Clauses | None:
    """Return the clauses of the query in a text; None unless the tokens show where they begin and end.

    None also without any of ORDER BY, LIMIT, OFFSET and FETCH at the top level, and for several statements.
    """
    if tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    top = list(_at_top(tokens))
    sections = [place for place in top if _begins_section(tokens, place)]
    kinds = [tokens[place].token_type for place in sections]
    if not sections or len(set(kinds)) < len(kinds) or (TokenType.ORDER_BY in kinds[1:]):
        return None
    start = sections[0]
    ends = [*sections[1:], len(tokens)]
    parts = {kind: tokens[place + 1 : end] for kind, place, end in zip(kinds, sections, ends, strict=True)}
    amounts = [token for kind, part in parts.items() if kind is not TokenType.ORDER_BY for token in part]
    if (
        any(tokens[place].token_type is TokenType.SEMICOLON for place in top)
        or any(tokens[place].token_type in _FOREIGN for place in top if place > start)
        or any(token.text.isidentifier() and token.text.upper() not in _WORDS_OF_LIMIT for token in amounts)
    ):
        return None
    items = _items(text, tokens[:start], [place for place in top if place < start])
    return Clauses(
        uncut=text[: tokens[start].start].rstrip(),
        keys=tuple(_key(text, key) for key in _split_at_commas(parts.get(TokenType.ORDER_BY, []))),
        limited=bool(parts.keys() - {TokenType.ORDER_BY}),
        offset=_offset(parts.get(TokenType.LIMIT, []), parts.get(TokenType.OFFSET, [])),
        items=None if items is None else items[0],
        items_end=0 if items is None else items[1],
        has_other_orders=[token.token_type for token in tokens].count(TokenType.ORDER_BY)
        > kinds.count(TokenType.ORDER_BY),
    )


def _begins_section(tokens: Sequence[Token], place: int) -> bool:
    kind = tokens[place].token_type
    if kind in (TokenType.LIMIT, TokenType.OFFSET):  # which may be names of columns
        return is_before_amount(tokens, place)
    return kind in _TAIL


def _at_top(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the indices of the tokens outside of brackets."""
    depth = 0
    for place, token in enumerate(tokens):
        depth -= token.token_type in CLOSING
        if depth == 0 and token.token_type not in CLOSING:
            yield place
        depth += token.token_type in OPENING


def _split_at_commas(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Return the parts of a list of tokens between commas outside of brackets."""
    if not tokens:
        return []
    commas = [place for place in _at_top(tokens) if tokens[place].token_type is TokenType.COMMA]
    return [tokens[left + 1 : right] for left, right in zip([-1, *commas], [*commas, len(tokens)], strict=True)]


def _offset(limit: Sequence[Token], offset: Sequence[Token]) -> int | None:
    amount = limit[:1] if any(token.token_type is TokenType.COMMA for token in limit) else offset
    numbers = [token for token in amount if token.text.upper() not in ("ROW", "ROWS")]
    if not numbers:
        return 0
    return int(numbers[0].text) if len(numbers) == 1 and numbers[0].text.isdigit() else None


def _items(text: str, tokens: Sequence[Token], top: Sequence[int]) -> tuple[tuple[Item, ...], int] | None:
    kinds = [tokens[place].token_type for place in top]
    if kinds.count(TokenType.SELECT) != 1 or not SET_OPERATIONS.isdisjoint(kinds):
        return None
    first = kinds.index(TokenType.SELECT)
    if first and kinds[0] is not TokenType.WITH:  # FROM t SELECT a
        return None
    begin = top[first] + 1
    if any(token.text.upper() in ("ALL", "DISTINCT", "TOP") for token in tokens[begin : begin + 1]):
        return None
    end = next((place for place in top if place > begin and _ends_items(tokens, place)), len(tokens))
    items = []
    for part in _split_at_commas(tokens[begin:end]):
        if not part:
            return None
        if _is_star(part):
            break
        items.append(_item(text, part))
    return tuple(items), tokens[end - 1].end + 1


def _ends_items(tokens: Sequence[Token], place: int) -> bool:
    is_operator = tokens[place - 1].token_type is TokenType.DISTINCT  # IS DISTINCT FROM
    return tokens[place].token_type in _AFTER_ITEMS and not is_operator


def _is_star(tokens: Sequence[Token]) -> bool:
    kinds = [token.token_type for token in tokens]
    follows_dot = any(pair == (TokenType.DOT, TokenType.STAR) for pair in pairwise(kinds))
    return kinds[0] is TokenType.STAR or follows_dot or tokens[0].text.upper() == "COLUMNS"


def _item(text: str, tokens: Sequence[Token]) -> Item:
    *expression, last = tokens
    if last.token_type not in _NAMES:
        return Item(_text_of(text, tokens), "")
    if expression and expression[-1].token_type is TokenType.ALIAS:
        return Item(_text_of(text, expression[:-1]), last.text.lower())
    if expression and expression[-1].token_type in _BEFORE_ALIAS:
        return Item(_text_of(text, expression), last.text.lower())
    return Item(_text_of(text, tokens), last.text.lower())


def _key(text: str, tokens: Sequence[Token]) -> Key:
    first, end = 0, len(tokens)
    while end > 1 and tokens[end - 1].text.upper() in _DIRECTIONS:
        end -= 1
    if end > 2 and tokens[end - 2].text.upper() == "COLLATE":
        end -= 2
    while end - first > 2 and tokens[first].token_type is TokenType.L_PAREN and _are_one_pair(tokens[first:end]):
        first, end = first + 1, end - 1
    whole, expression = _text_of(text, tokens), _text_of(text, tokens[first:end])
    before = text[tokens[0].start : tokens[first].start] if tokens else ""
    return Key(before, expression, whole[len(before) + len(expression) :])


def _are_one_pair(tokens: Sequence[Token]) -> bool:
    """Return whether the first and the last token are a pair of brackets."""
    return all(place in (0, len(tokens) - 1) for place in _at_top(tokens)) and tokens[-1].token_type in CLOSING


def _text_of(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def place_of(key: Key, clauses: Clauses, columns: Sequence[str]) -> int | None:
    """Return the position of the output column that a sort key names, from 0; None if no column is known to be it.

    The letter case of names is ignored.
    """
    if key.expression.isdigit():
        place = int(key.expression) - 1
        return place if 0 <= place < len(columns) else None
    name = key.expression.strip('"`[]').lower()
    for place, item in enumerate(clauses.items or ()):
        if item.name == name or " ".join(item.expression.split()) == " ".join(key.expression.split()):
            return place
    names = [column.lower() for column in columns]
    return names.index(name) if names.count(name) == 1 else None


def ranked_key(key: Key, items: Sequence[Item]) -> str | None:
    """Return a sort key as a text for a window, which can use neither positions nor aliases.

    None if it is not known.
    """
    if key.expression.upper() in _ALL_COLUMNS:
        return None
    if key.expression.isdigit():
        place = int(key.expression) - 1
        return key.of(f"({items[place].expression})") if 0 <= place < len(items) else None
    name = key.expression.strip('"`[]').lower()
    aliased = next((item for item in items if item.name == name and item.expression.lower() != name), None)
    return key.of(f"({aliased.expression})" if aliased else key.expression)
