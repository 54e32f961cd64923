"""Reads a SPARQL query as a tree, by its tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from pytest_queryeval.languages.sparql.query import FORMS, MODIFIERS, Token, read_query, resolve, tokens
from pytest_queryeval.languages.sparql.tree import (
    PRECEDENCE,
    Bind,
    Block,
    Data,
    Element,
    Expr,
    Filter,
    Group,
    Item,
    Select,
    SortKey,
    Triple,
    Union,
    Writer,
    is_constant,
    is_number,
)

MAX_TOKENS = 4_000
MAX_DEPTH = 40
MAX_OPERATORS = 200  # of comparisons and sums in a row, each of which nests the ones before
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_OPERATORS = frozenset(("&&", "||", "!=", "<=", ">=", "^^"))
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_AMBIGUOUS_ESCAPE = re.compile(r"\\\\[uU]")  # a backslash and a letter for some engines, a code point for others
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class UnreadableError(Exception):
    """The text is not a query, engines read it differently, or trees cannot represent it.

    Trees cannot represent collections, quoted triples and SERVICE.
    """


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The tree of a query, and the prefixes that it declares."""

    tree: Select
    prefixes: Mapping[str, str]
    """The IRIs of the prefixes that the text declares."""


def read_tree(text: str, source_prefixes: Mapping[str, str] | None = None) -> ParsedQuery:
    """Return the tree of a query; raises `UnreadableError`.

    `source_prefixes` are the IRIs of prefixes that it may use without a declaration.
    """
    outline = read_query(text)
    if outline.form not in FORMS or outline.services or _AMBIGUOUS_ESCAPE.search(text):
        raise UnreadableError(text)
    if len(outline.tokens) > MAX_TOKENS or outline.depth > MAX_DEPTH:
        raise UnreadableError(text)
    all_tokens = tokens(outline.text)
    prologue = all_tokens[: len(all_tokens) - len(outline.tokens)]
    base, prefixes = "", dict[str, str]()
    for place, token in enumerate(prologue):
        if token.is_word("BASE") and place + 1 < len(prologue):
            base = resolve(prologue[place + 1].text.strip("<>"), base)
        if token.is_word("PREFIX") and place + 2 < len(prologue):
            prefixes[prologue[place + 1].text.rstrip(":")] = resolve(prologue[place + 2].text.strip("<>"), base)
    reader = _Reader(_normalized_tokens(outline.tokens, {**(source_prefixes or {}), **prefixes}, base))
    tree = reader.select()
    if reader.next:
        raise UnreadableError(text)
    return ParsedQuery(tree, prefixes)


def in_other_words(text: str) -> str:
    """Return a query as its tree is written; empty if it cannot be read as a tree."""
    try:
        return Writer({}).query(read_tree(text).tree)
    except UnreadableError:
        return ""


def _normalized_tokens(query_tokens: Sequence[Token], prefixes: Mapping[str, str], base: str) -> list[str]:
    """Return the texts of tokens in one spelling.

    A literal with its language or datatype is one text, and so is an operator of several characters.
    """
    spelled_terms: list[str] = []
    end = -1
    for token in query_tokens:
        text, previous_term = _spell(token, prefixes, base), spelled_terms[-1] if spelled_terms else ""
        is_adjacent = token.start == end
        if token.kind == "language" and previous_term.startswith('"'):
            spelled_terms[-1] = previous_term + text.lower()
        elif (
            previous_term == "^^"
            and token.kind in ("iri", "name")
            and spelled_terms[-2:-1]
            and spelled_terms[-2].startswith('"')
        ):
            spelled_terms[-2:] = [f"{spelled_terms[-2]}^^{text}"]
        elif is_adjacent and (
            previous_term + text in _OPERATORS or (token.kind == "number" and previous_term in ("+", "-"))
        ):
            spelled_terms[-1] = previous_term + text
        elif text == "]" and previous_term == "[":
            spelled_terms[-1] = "[]"
        elif token.kind == "number" and text.endswith("."):
            spelled_terms += [text[:-1], "."]
        else:
            spelled_terms.append(text)
        end = token.end
    return spelled_terms


def _spell(token: Token, prefixes: Mapping[str, str], base: str) -> str:
    text = token.text
    match token.kind:
        case "iri":
            return f"<{resolve(text[1:-1], base)}>"
        case "variable":
            return f"?{text[1:]}"
        case "name":
            prefix, _, local = text.partition(":")
            return "<" + prefixes[prefix] + _ESCAPE.sub(r"\1", local) + ">" if prefix in prefixes else text
        case "string":
            if not token.is_closed_text:
                raise UnreadableError(text)
            marks = 3 if text[:3] in ('"""', "'''") else 1
            value = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text[marks:-marks])
            return '"' + "".join(_WRITTEN.get(character, character) for character in value) + '"'
        case "word":
            return text.lower() if text.lower() in ("true", "false") or text == "a" else text.upper()
        case _:
            return text


@dataclass
class _Reader:
    terms: list[str]
    place: int = 0
    names: int = 0
    depth: int = 0  # of the expression that is read
    pending: list[Triple] = field(default_factory=list)  # of the blank nodes in brackets

    @property
    def next(self) -> str:
        return self.terms[self.place] if self.place < len(self.terms) else ""

    def take(self, *expected_terms: str) -> str:
        term = self.next
        if not term or (expected_terms and term not in expected_terms):
            raise UnreadableError(term)
        self.place += 1
        return term

    def skip(self, *words: str) -> str:
        return self.take() if self.next in words else ""

    def select(self) -> Select:
        form = self.take(*FORMS)
        modifier = self.skip("DISTINCT", "REDUCED") if form == "SELECT" else ""
        items: list[Item] = []
        template = self.group() if form == "CONSTRUCT" and self.next == "{" else None
        while form in ("SELECT", "DESCRIBE") and self.next not in ("", "{", "FROM", "WHERE", *MODIFIERS):
            items.append(self.item())
        dataset: list[str] = []
        while self.next == "FROM":
            dataset += [self.take(), *([self.take()] if self.next == "NAMED" else []), self.take()]
        has_where = self.skip("WHERE")
        where = self.group() if self.next == "{" or has_where or form != "DESCRIBE" else None
        group, having, order = [], [], []
        if self.skip("GROUP"):
            self.take("BY")
            while self.next not in ("", "}", *MODIFIERS):
                group.append(self.item())
        if self.skip("HAVING"):
            while self.next not in ("", "}", *MODIFIERS):
                having.append(self.primary())
        if self.skip("ORDER"):
            self.take("BY")
            while self.next not in ("", "}", *MODIFIERS):
                direction = self.skip("ASC", "DESC")
                order.append(SortKey(direction == "DESC", self.primary()))
        limits = {"LIMIT": "", "OFFSET": ""}
        while self.next in limits:
            word = self.take()
            limits[word] = self.take()
        values = self.data() if self.skip("VALUES") else None
        return Select(
            form=form,
            modifier=modifier,
            items=tuple(items),
            template=template,
            dataset=tuple(dataset),
            where=where,
            group=tuple(group),
            having=tuple(having),
            order=tuple(order),
            limit=limits["LIMIT"],
            offset=limits["OFFSET"],
            values=values,
        )

    def item(self) -> Item:
        if self.next != "(":
            return Item(Expr(self.take()) if self.next == "*" else self.primary())
        self.take()
        value = self.expression()
        alias = self.take() if self.skip("AS") else ""
        self.take(")")
        return Item(value, alias)

    def expression(self, strength: int = 1) -> Expr:
        """Read an expression: operands, and operators between them that bind at least as strongly as `strength`.

        Chains of `&&` and of `||` become one expression with all operands. Raises `UnreadableError` for deep nesting.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(self.next)
        operand = self.primary()
        nesting = 0
        while operator := self.operator(strength):
            nesting += operator not in ("&&", "||")
            if nesting > MAX_OPERATORS:
                raise UnreadableError(operator)
            if operator in ("IN", "NOT IN"):
                operand = Expr(operator, (operand, *self.arguments()))
                continue
            sides = (operand, self.expression(PRECEDENCE[operator] + 1))
            if operator in ("&&", "||"):  # what one of them joins is one expression
                arguments = (side.arguments if side.head == operator else (side,) for side in sides)
                operand = Expr(operator, (*chain.from_iterable(arguments),))
            else:
                operand = Expr(operator, sides)
        self.depth -= 1
        return operand

    def operator(self, strength: int) -> str:
        """Take the next operator that binds at least as strongly as `strength`; return "" if there is none."""
        operator = self.next
        if operator == "NOT" and self.terms[self.place + 1 : self.place + 2] == ["IN"]:
            operator = "NOT IN"
        elif (
            is_number(operator or " ") and operator[0] in "+-"
        ):  # `?x -1`, whose sign the scanner took for the number's
            self.terms[self.place : self.place + 1] = [operator[0], operator[1:]]
            operator = operator[0]
        if operator == "!" or PRECEDENCE.get(operator, 0) < strength:
            return ""
        self.place += 1 + (operator == "NOT IN")
        return operator

    def primary(self) -> Expr:
        """Read a term, an expression in parentheses, a sign with its operand, a call, or EXISTS with its group."""
        if self.next == "(":
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        if self.next in ("!", "-", "+"):
            return Expr(self.take(), (self.expression(PRECEDENCE["!"]),))
        if self.next in ("NOT", "EXISTS"):
            negation = "NOT " if self.skip("NOT") else ""
            return Expr(f"{negation}{self.take('EXISTS')}", (self.group(),))
        head = self.take()
        if self.next == "(" and (head.startswith("<") or ":" in head) and not head.startswith('"'):
            return Expr("CALL", (Expr(head), *self.arguments()))
        if self.next == "(" and head.isidentifier() and head.isupper():
            return Expr(head, self.arguments())
        if not _is_term(head):
            raise UnreadableError(head)
        return Expr(head)

    def arguments(self) -> tuple[Expr, ...]:
        """Return the arguments between parentheses.

        DISTINCT is put around the first of them, and SEPARATOR becomes an argument of its own.
        """
        self.take("(")
        is_distinct = bool(self.skip("DISTINCT"))
        arguments: list[Expr] = []
        while self.next != ")":
            if arguments:
                self.take(",", ";")
            if self.skip("SEPARATOR"):
                self.take("=")
                arguments.append(Expr("SEPARATOR", (Expr(self.take()),)))
            else:
                arguments.append(Expr(self.take()) if self.next == "*" else self.expression())
        self.take(")")
        if is_distinct and arguments:
            arguments[0] = Expr("DISTINCT", (arguments[0],))
        return tuple(arguments)

    def enclosed(self) -> list[str]:
        """Read the tokens of a path between parentheses, with the parentheses."""
        depth, path = 0, list[str]()
        while depth or not path:
            path.append(self.take())
            depth += (path[-1] == "(") - (path[-1] == ")")
        return path

    def group(self) -> Group:
        self.take("{")
        elements: list[Element] = []
        if self.next == "SELECT":
            elements.append(self.select())
        while self.next != "}":
            elements += self.element()
        self.take("}")
        return Group(tuple(elements))

    def element(self) -> list[Element]:
        match self.next:
            case ".":
                self.take()
                return []
            case "OPTIONAL" | "MINUS":
                return [Block((self.take(),), self.group())]
            case "GRAPH":
                return [Block((self.take(), self.take()), self.group())]
            case "FILTER":
                self.take()
                return [Filter(self.primary())]
            case "BIND":
                self.take()
                item = self.item()
                return [Bind(item.value, item.alias)]
            case "VALUES":
                self.take()
                return [self.data()]
            case "{":
                arms = [self.group()]
                while self.skip("UNION"):
                    arms.append(self.group())
                return [Union(tuple(arms))]
            case _:
                return [*self.triples()]

    def data(self) -> Data:
        start = self.place
        while self.take() != "{":
            pass
        while self.take() != "}":
            pass
        return Data(tuple(self.terms[start : self.place]))

    def triples(self) -> list[Triple]:
        """Read the patterns of one subject, then those of the blank nodes in its brackets."""
        outer_patterns, self.pending = self.pending, []
        patterns: list[Triple] = []
        starts_with_brackets = self.next == "["
        subject = self.term()
        if not (starts_with_brackets and self.next in (".", "}", "")):
            patterns = self.properties(subject)
        patterns += self.pending
        self.pending = outer_patterns
        return patterns

    def properties(self, subject: str) -> list[Triple]:
        patterns = []
        while True:
            path = self.path()
            while True:
                patterns.append(Triple(subject, path, self.term()))
                if not self.skip(","):
                    break
            if self.next != ";":
                return patterns
            while self.skip(";"):
                pass
            if not (self.next in ("a", "^", "!", "(") or self.next[:1] in ("<", "?") or ":" in self.next):
                return patterns

    def term(self) -> str:
        if self.next == "[":
            self.take()
            self.names += 1
            name = f"_:queryeval{self.names}"
            self.pending += self.properties(name)
            self.take("]")
            return name
        term = self.take()
        if not _is_term(term) and term != "[]":
            raise UnreadableError(term)
        return term

    def path(self) -> tuple[str, ...]:
        if self.next.startswith("?") and len(self.next) > 1:
            return (self.take(),)
        parts: list[str] = []
        while True:
            while self.next in ("^", "!"):
                parts.append(self.take())
            if self.next == "(":
                parts += map(_path_term, self.enclosed())
            else:
                name = _path_term(self.take())
                if name != "a" and not name.startswith("<") and ":" not in name:
                    raise UnreadableError(name)
                parts.append(name)
            if self.next in ("*", "+", "?"):
                parts.append(self.take())
            if self.next not in ("/", "|"):
                return tuple(parts)
            parts.append(self.take())


def _is_term(term: str) -> bool:
    return (term[0] in '?<"' and len(term) > 1) or ":" in term or is_constant(term)


def _path_term(term: str) -> str:
    return "a" if term == RDF_TYPE else term
