"""Two SQL queries in one naming: every column with its table, gold's tables by the names that predicted gives them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.features.causes.sql.parts import (
    common_queries,
    counted_query,
    outermost_queries,
    query_within,
    sources,
)
from pytest_queryeval.languages.sql.columns import Columns

MAX_SAME_TABLE = 4  # of which every assignment to gold's is tried
_CLAUSES = ("from_", "joins", "where", "expressions", "group", "having", "qualify", "order", "limit", "offset")
_CLAUSES_WITH_ALIASES = ("group", "having", "qualify", "order")  # that may name items of SELECT


def align(predicted: exp.Expr, gold: exp.Expr, schema: Schema, dialect: str) -> None:
    """Name the tables of both queries alike: those of gold are renamed, and all columns get the name of their table.

    Aliases and numbers that ORDER BY, GROUP BY and HAVING use for items of SELECT become these items.
    """
    owners = _qualify(gold, Columns(schema.tables, dialect))
    _qualify(predicted, Columns(schema.tables, dialect))
    names: dict[int, str] = {}
    for select, gold_select in _pairs(predicted, gold):
        names |= _names_of_sources(select, gold_select)
    for source in [*gold.find_all(exp.Table), *gold.find_all(exp.Subquery)]:
        if name := names.get(id(source)):
            is_table_name = isinstance(source, exp.Table) and source.name.lower() == name.lower()
            source.set("alias", None if is_table_name else exp.TableAlias(this=exp.to_identifier(name)))
    for column, owner in owners:
        if name := names.get(id(owner)):
            column.set("table", exp.to_identifier(name))


def _qualify(tree: exp.Expr, columns: Columns) -> list[tuple[exp.Column, exp.Expr]]:
    """Give every column the name of its table, and return those columns with their tables."""
    for select in list(tree.find_all(exp.Select)):
        _expand_aliases(select)
    columns.replace_texts(tree)
    owners = []
    for column in tree.find_all(exp.Column):
        if (match := columns.find(column)) is not None:
            names, alias = match
            owner = names.sources[alias].node
            if owner.alias_or_name:
                column.set("table", exp.to_identifier(owner.alias_or_name))
            owners.append((column, owner))
    return owners


def _expand_aliases(select: exp.Select) -> None:
    """Put items of SELECT in the place of their aliases and numbers in other clauses."""
    items = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for clause in _CLAUSES_WITH_ALIASES:
        part = select.args.get(clause)
        if part is None:
            continue
        for column in list(part.find_all(exp.Column)):
            item = None if column.table else items.get(column.name.lower())
            if item is not None and column.find_ancestor(exp.Select) is select:
                column.replace(item.copy())
        for place in list(part.expressions) if clause in ("group", "order") else ():
            number = place.this if isinstance(place, exp.Ordered) else place
            if isinstance(number, exp.Literal) and number.name.isdigit() and not number.is_string:
                at = int(number.name) - 1
                if 0 <= at < len(select.expressions) and not select.expressions[at].is_star:
                    number.replace(select.expressions[at].unalias().copy())


def _pairs(predicted: exp.Expr | None, gold: exp.Expr | None) -> Iterator[tuple[exp.Select, exp.Select]]:
    """Yield the SELECTs of both queries that have the same place."""
    if predicted is None or gold is None:
        return
    yield from _pairs_of_lists(common_queries(predicted), common_queries(gold))
    gold = counted_query(predicted, gold) or gold
    if isinstance(predicted, exp.Select) and isinstance(gold, exp.Select):
        yield predicted, gold
        for clause in _CLAUSES:
            yield from _pairs_of_lists(_nested(predicted, clause), _nested(gold, clause))
    elif isinstance(predicted, exp.SetOperation) and isinstance(gold, exp.SetOperation):
        yield from _pairs(query_within(predicted.this), query_within(gold.this))
        yield from _pairs(query_within(predicted.expression), query_within(gold.expression))
    elif isinstance(gold, exp.SetOperation):
        yield from _pairs(predicted, query_within(gold.this))
    elif isinstance(predicted, exp.SetOperation):
        yield from _pairs(query_within(predicted.this), gold)


def _pairs_of_lists(predicted: Sequence[exp.Expr], gold: Sequence[exp.Expr]) -> Iterator[tuple[exp.Select, exp.Select]]:
    for query, gold_query in zip(predicted, gold, strict=False):
        yield from _pairs(query, gold_query)


def _nested(select: exp.Select, clause: str) -> list[exp.Expr]:
    """Return the outermost queries within a clause, in the order of the text."""
    value = select.args.get(clause)
    clause_parts = value if isinstance(value, list) else [value] if value is not None else []
    return [query for part in clause_parts for query in outermost_queries(part)]


def _names_of_sources(predicted: exp.Select, gold: exp.Select) -> dict[int, str]:
    """Return the name that each source of a gold SELECT gets: that of its partner, else one that is not taken."""
    aliases_by_table, gold_aliases_by_table = _aliases_by_table(predicted), _aliases_by_table(gold)
    partners: dict[str, str] = {}
    for table, aliases in gold_aliases_by_table.items():
        partners |= _best_match(aliases, aliases_by_table.get(table, []), predicted, gold)
    names: dict[int, str] = {}
    predicted_sources, gold_sources = sources(predicted), sources(gold)
    used_names = {*predicted_sources}
    for alias, source in gold_sources.items():
        if alias in partners:
            names[id(source)] = predicted_sources[partners[alias]].alias_or_name
            continue
        name = source.alias_or_name
        numbers = range(2, len(gold_sources) + len(predicted_sources) + 2)
        candidates = (name, source.name, *(f"{name}_{number}" for number in numbers))
        names[id(source)] = next(candidate for candidate in candidates if candidate.lower() not in used_names)
        used_names.add(names[id(source)].lower())
    return names


def _aliases_by_table(select: exp.Expr) -> dict[str, list[str]]:
    aliases: defaultdict[str, list[str]] = defaultdict(list)
    for alias, source in sources(select).items():
        aliases[source.name.lower() if isinstance(source, exp.Table) else ""].append(alias)
    return aliases


def _best_match(
    golds: Sequence[str], aliases: Sequence[str], predicted: exp.Select, gold: exp.Select
) -> dict[str, str]:
    """Return the aliases of predicted for those of gold, all of one table, by the conditions that then agree."""
    if len(golds) == len(aliases) == 1 or max(len(golds), len(aliases)) > MAX_SAME_TABLE:
        return dict(zip(golds, aliases, strict=False))
    uses, gold_uses = _uses(predicted), _uses(gold)
    padded = [*aliases, *[""] * (len(golds) - len(aliases))]

    def agreement(order: Sequence[str]) -> int:
        renamed = dict(zip(golds, order, strict=False))
        return len({(renamed.get(alias, alias), use) for alias, use in gold_uses} & uses)

    best = max(permutations(padded, len(golds)), key=agreement, default=())
    return {gold_alias: alias for gold_alias, alias in zip(golds, best, strict=False) if alias}


def _uses(select: exp.Select) -> set[tuple[str, str]]:
    """Return how each source is used: its alias, with the clause and the expression around a column of it."""
    uses = set()
    for clause in _CLAUSES:
        value = select.args.get(clause)
        for part in value if isinstance(value, list) else [value] if value is not None else []:
            for column in part.find_all(exp.Column):
                literal = column.parent.find(exp.Literal) if isinstance(column.parent, exp.Binary) else None
                use = f"{clause} {column.name.lower()} {literal.name if literal else ''}"
                uses.add((column.table.lower(), use))
    return uses
