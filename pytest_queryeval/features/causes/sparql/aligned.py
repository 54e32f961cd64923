"""Puts a predicted and a gold SPARQL query into one form with the same names, so that what differs is what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pytest_queryeval.languages.sparql.trees.tree import (
    COUNTING,
    Expr,
    Filter,
    Group,
    Node,
    Select,
    Triple,
    changed,
    is_constant,
    is_variable,
    renamed,
    terms,
    variables,
    walk,
)

MAX_VARIABLES = 40  # that are compared with each other
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def normal(tree: Select) -> Select:
    """Return a query in one of the forms that say the same: paths as triples, filters without `&&`.

    Blank nodes become variables, and so do the nodes on a path, except where `*` would show them.
    """
    known = set(terms(tree))
    names = (name for number in range(1, len(known) + 10_000) if (name := f"?node{number}") not in known)
    shows_all = any(isinstance(node, Select) and node.selects_all for node in walk(tree))
    labels: dict[str, str] = {}

    def variable(term: str) -> str:
        if shows_all or not (term == "[]" or term.startswith("_:")):
            return term
        if term == "[]":
            return next(names)
        if term not in labels:
            labels[term] = next(names)
        return labels[term]

    def triples(triple: Triple) -> Iterator[Triple]:
        subject, object_ = variable(triple.subject), variable(triple.object)
        steps = [triple.path] if shows_all else [*_steps(triple.path)]
        ends = [subject, *(next(names) for _ in steps[1:]), object_]
        for start, path, end in zip(ends, steps, ends[1:], strict=False):
            yield Triple(end, path[1:], start) if len(path) == 2 and path[0] == "^" else Triple(start, path, end)

    def change(_: Node, new: Node) -> Node | tuple[Node, ...]:
        match new:
            case Triple():
                return tuple(triples(new))
            case Filter(condition):
                return tuple(Filter(_mirrored(part)) for part in operands(condition, "&&"))
            case _:
                return new

    template = tree.template
    found = changed(replace(tree, template=None), change)
    return replace(found, template=template) if found is not None else tree


def with_names_of(gold: Select, predicted: Select) -> Select:
    """Return gold with predicted's names for the variables that have the same role there."""
    mine, others = list(variables(predicted))[:MAX_VARIABLES], list(variables(gold))[:MAX_VARIABLES]
    names: dict[str, str] = {}
    while len(names) < min(len(mine), len(others)):
        known = {name: name for name in names.values()}
        roles, gold_roles = _roles(predicted, known), _roles(gold, names)
        best, pair = 0.0, ("", "")
        for other in (name for name in others if name not in names):
            for own in (name for name in mine if name not in known):
                score = _likeness(roles[own], gold_roles[other]) + 0.5 * (own == other)
                if score > best:
                    best, pair = score, (other, own)
        if best < 1:
            break
        names[pair[0]] = pair[1]
    names |= {name: name for name in others if name in mine and name not in {*names, *names.values()}}
    taken = {*variables(predicted), *names.values()}
    for name in variables(gold):
        if name not in names:
            free = name
            while free in taken:
                free += "_"
            names[name] = free
            taken.add(free)
    return renamed(gold, lambda term: names.get(term, term))


def _roles(tree: Select, names: dict[str, str]) -> dict[str, Counter[tuple[str, ...]]]:
    """Return how each variable is used; `names` are those of variables that are known already."""
    found: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in variables(tree)}

    def name(term: str) -> str:
        return names.get(term, "?") if is_variable(term) else term

    for node in walk(tree):
        if isinstance(node, Triple):
            path = tuple(map(name, node.path))
            for end, term, other in (("subject", node.subject, node.object), ("object", node.object, node.subject)):
                if is_variable(term):
                    known = () if name(other) == "?" else ((end, *path, name(other)), ("beside", name(other)))
                    found[term].update(((end, *path), (end, *path), *known, *known[:1]))
        elif isinstance(node, Expr):
            tokens = [part for part in node.parts if isinstance(part, str)]
            for term in filter(is_variable, tokens):
                found[term].update(("with", part) for part in tokens if _tells(part))
    for number, item in enumerate(tree.items):
        if is_variable(item.variable):
            kind = "alias" if item.alias else "column"
            found[item.variable].update(((kind,), (kind, str(number), str(len(tree.items)))))
            found[item.variable].update(("counts", part) for part in terms(item) if part in COUNTING)
    return found


def _tells(part: str) -> bool:
    return is_constant(part) or part in COUNTING or part.isidentifier()


def _likeness(roles: Counter[tuple[str, ...]], others: Counter[tuple[str, ...]]) -> float:
    return float((roles & others).total())


def _steps(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the steps of a path; the whole path where `|` joins others, or `^` turns them around."""
    if "|" in path or "(" in path:
        yield path
        return
    start = 0
    for place, term in enumerate((*path, "/")):
        if term == "/":
            yield path[start:place]
            start = place + 1


def operands(condition: Expr, connector: str) -> list[Expr]:
    """Return the conditions that `&&` or `||` joins, without the parentheses around them."""
    parts, depth, cuts = condition.parts, 0, [-1]
    while len(parts) > 2 and parts[0] == "(" and parts[-1] == ")" and _closes_last(parts):
        parts = parts[1:-1]
    for place, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if depth == 0 and part in ("&&", "||"):
            if part != connector and part == "||":
                return [Expr(parts)]
            cuts += [place] if part == connector else []
    pieces = [Expr(parts[start + 1 : end]) for start, end in zip(cuts, [*cuts[1:], len(parts)], strict=True)]
    return pieces if len(pieces) == 1 else [_mirrored(each) for piece in pieces for each in operands(piece, connector)]


def _closes_last(parts: tuple[str | Group, ...]) -> bool:
    depth = 0
    for place, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if depth == 0:
            return place == len(parts) - 1
    return False


def _mirrored(condition: Expr) -> Expr:
    """Return a comparison with its constant on the right."""
    match condition.parts:
        case (str() as left, str() as operator, str() as right) if operator in _MIRRORED and is_constant(left):
            return Expr((right, _MIRRORED[operator], left))
        case _:
            return condition
