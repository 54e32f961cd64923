"""Brings two SQL queries to the same names, every column with its table, and finds what they have in common."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.features.causes import best_pairs, without_common
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.parts import key, query_within, sources
from pytest_queryeval.languages.sql.columns import Columns, Names, at_position
from pytest_queryeval.languages.sql.dialects import quote_in
from pytest_queryeval.text.formatting import one_line_with_end

MAX_LINE = 200  # characters
MAX_SHOWN = 20  # lines of each query
Remarks: TypeAlias = Mapping[tuple[str, str], str]
"""Remarks on compared texts, by the name of the column in lower case and the text."""
_IN_ONE_LINE = ("SELECT", "GROUP BY")
_OMITTED = exp.Var(this="SELECT …")
_CLAUSES = ("from_", "joins", "where", "expressions", "group", "having", "qualify", "order", "limit", "offset")
_CLAUSES_WITH_ALIASES = ("group", "having", "qualify", "order")  # that may name items of SELECT


def align(predicted: exp.Expr, gold: exp.Expr, schema: Schema, dialect: str) -> None:
    """Give corresponding tables of both trees the same names, and columns the names of their tables, in place.

    Tables of gold are renamed. Aliases and numbers in ORDER BY, GROUP BY and HAVING become the items of SELECT that
    they mean. A `*` becomes columns if the other query lists at least half of them.
    """
    columns, gold_columns = (Columns(schema.tables, dialect) for _ in range(2))
    owners = qualify(gold, gold_columns)
    qualify(predicted, columns)
    names: dict[int, str] = {}
    pairs = [*_select_pairs(predicted, gold)]
    for select, gold_select in pairs:
        names |= _names_of_sources(select, gold_select)
    for source in [*gold.find_all(exp.Table), *gold.find_all(exp.Subquery)]:
        if name := names.get(id(source)):
            is_table_name = isinstance(source, exp.Table) and source.name.lower() == name.lower()
            source.set("alias", None if is_table_name else exp.TableAlias(this=exp.to_identifier(name)))
    for column, owner in owners:
        if name := names.get(id(owner)):
            column.set("table", exp.to_identifier(name))
    for select, gold_select in pairs:
        _write_out_star(columns.names(select), gold_select, dialect)
        _write_out_star(gold_columns.names(gold_select), select, dialect)


def _write_out_star(names: Names, other: exp.Select, dialect: str) -> None:
    """Replace `*` in a SELECT by its columns, in place, if the `other` query lists at least half of them.

    Next to other items, it has to list all but one. The `*` stays if tables share columns by USING or NATURAL JOIN.
    """
    shares_columns = any(join.args.get("using") or join.method for join in parts.clause_nodes(names.select, "joins"))
    if not names.select.is_star or other.is_star or shares_columns:
        return
    quote, items = quote_in(dialect), list[exp.Expr]()
    for item in names.select.expressions:
        if not item.is_star:
            items.append(item)
            continue
        for source in names.sources.values():
            alias = source.node.alias_or_name
            if not isinstance(item, exp.Column) or item.table.lower() == alias.lower():
                columns = (exp.to_identifier(name, quoted=quote(name) != name) for name in source.columns or ())
                items += (exp.column(name, table=alias) for name in columns) if source.columns else [item]
    rest, other_rest = without_common(items, other.expressions, key)
    is_alone = len(names.select.expressions) == 1 and 2 * len(rest) <= len(items)
    if not any(item.is_star for item in items) and (is_alone or max(len(rest), len(other_rest)) <= 1):
        names.select.set("expressions", items)


def qualify(tree: exp.Expr, columns: Columns) -> list[tuple[exp.Column, exp.Expr]]:
    """Give every column of a tree the name of its table, in place, and return the columns with their tables.

    Aliases and numbers of items of SELECT are replaced by the items first.
    """
    for select in list(tree.find_all(exp.Select)):
        _expand_aliases(columns.names(select))
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


def _expand_aliases(names: Names) -> None:
    """Replace aliases and numbers of items of SELECT in other clauses by the items, in place."""
    select = names.select
    for part in (part for clause in _CLAUSES_WITH_ALIASES for part in parts.clause_nodes(select, clause)):
        for column in list(part.find_all(exp.Column)):
            item = names.aliased(column)
            if item is not None and column.find_ancestor(exp.Select) is select:
                column.replace(item.copy())
        for key_node in list(part.expressions) if isinstance(part, exp.Group | exp.Order) else ():
            number = key_node.this if isinstance(key_node, exp.Ordered) else key_node
            item = at_position(number, select)
            if item is not number and not item.is_star:
                number.replace(item.unalias().copy())


def _select_pairs(predicted: exp.Expr | None, gold: exp.Expr | None) -> Iterator[tuple[exp.Select, exp.Select]]:
    """Yield the SELECTs at corresponding places of two queries, as pairs."""
    if predicted is None or gold is None:
        return
    yield from _pairs_of_lists(parts.common_queries(predicted), parts.common_queries(gold))
    if isinstance(predicted, exp.Select) and isinstance(gold, exp.Select):
        yield predicted, gold
        for clause in _CLAUSES:
            nested = (
                [query for part in parts.clause_nodes(select, clause) for query in parts.outermost_queries(part)]
                for select in (predicted, gold)
            )
            yield from _pairs_of_lists(*nested)
    elif isinstance(predicted, exp.SetOperation) and isinstance(gold, exp.SetOperation):
        yield from _select_pairs(query_within(predicted.this), query_within(gold.this))
        yield from _select_pairs(query_within(predicted.expression), query_within(gold.expression))
    elif isinstance(gold, exp.SetOperation):
        yield from _select_pairs(predicted, query_within(gold.this))
    elif isinstance(predicted, exp.SetOperation):
        yield from _select_pairs(query_within(predicted.this), gold)


def _pairs_of_lists(predicted: Sequence[exp.Expr], gold: Sequence[exp.Expr]) -> Iterator[tuple[exp.Select, exp.Select]]:
    for query, gold_query in best_pairs(predicted, gold, parts.common_tables):
        yield from _select_pairs(query, gold_query)


def _names_of_sources(predicted: exp.Select, gold: exp.Select) -> dict[int, str]:
    """Return the new name of each source of a gold SELECT, by identity: that of its partner, else a free name."""
    aliases_by_table, gold_aliases_by_table = _aliases_by_table(predicted), _aliases_by_table(gold)
    partners: dict[str, str] = {}
    uses, gold_uses = _uses_by_alias(predicted), _uses_by_alias(gold)
    for table, gold_aliases in gold_aliases_by_table.items():
        aliases = aliases_by_table.get(table, [])
        partners |= best_pairs(
            gold_aliases, aliases, lambda gold_alias, alias: len(gold_uses[gold_alias] & uses[alias])
        )
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
    return grouped(
        (source.name.lower() if isinstance(source, exp.Table) else "", alias)
        for alias, source in sources(select).items()
    )


def _uses_by_alias(select: exp.Select) -> defaultdict[str, set[str]]:
    """Return how each source is used, by its alias: clauses, columns and compared constants."""
    uses: defaultdict[str, set[str]] = defaultdict(set)
    for clause in _CLAUSES:
        for column in (column for part in parts.clause_nodes(select, clause) for column in part.find_all(exp.Column)):
            literal = column.parent.find(exp.Literal) if isinstance(column.parent, exp.Binary) else None
            uses[column.table.lower()].add(f"{clause} {column.name.lower()} {literal.name if literal else ''}")
    return uses


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a clause, such as a table or a condition, for comparing and showing what two queries share."""

    key: str
    """A text that is equal for equal parts at the same place, regardless of the queries within them."""
    parent: str
    """The key of the part around this part; empty if there is none."""
    prefix: str
    """The beginning of the part's line, such as `subquery: `."""
    word: str
    """The word of SQL after the prefix."""
    node: exp.Expr | None = None


def shared_parts(
    predicted: exp.Expr, gold: exp.Expr, write: Callable[[exp.Expr], str], remarks: Remarks
) -> SharedPatterns:
    """Return how many parts two aligned queries share, and lines for the parts that only one query has.

    Parts come first whose texts the other query has in another letter case. `write` returns the text of a tree, and may
    change the tree.
    """
    predicted, gold = (_with_table_names(tree) for tree in (predicted, gold))
    predicted_parts, gold_parts = ([*_parts_of_query(tree)] for tree in (predicted, gold))
    for tree in (predicted, gold):
        changes.drop_table_names(tree)
    only_predicted, only_gold = without_common(predicted_parts, gold_parts, lambda part: part.key)
    texts, gold_texts = (
        {literal.name for literal in tree.find_all(exp.Literal) if literal.is_string} for tree in (predicted, gold)
    )

    def lines(differing: Sequence[_Part], texts_elsewhere: Iterable[str]) -> tuple[str, ...]:
        exact, folded = {*texts_elsewhere}, {text.casefold() for text in texts_elsewhere}

        def has_other_case(part: _Part) -> bool:
            literals = part.node.find_all(exp.Literal) if part.node is not None else ()
            return any(text.name not in exact and text.name.casefold() in folded for text in literals if text.is_string)

        keys = {part.key for part in differing}
        outermost = [part for part in differing if part.parent not in keys]
        first = sorted(outermost, key=lambda part: not has_other_case(part))
        return tuple(dict.fromkeys(_lines_of_parts(first, write, remarks)))[:MAX_SHOWN]

    return SharedPatterns(
        shared=len(gold_parts) - len(only_gold),
        of=len(gold_parts),
        only_gold=lines(only_gold, texts),
        only_predicted=lines(only_predicted, gold_texts),
    )


def _lines_of_parts(differing: Sequence[_Part], write: Callable[[exp.Expr], str], remarks: Remarks) -> Iterator[str]:
    """Yield a line for each part, with remarks on its texts; columns of SELECT, and those of GROUP BY, share a line."""
    in_one_line = Counter((part.prefix, part.word) for part in differing if part.word in _IN_ONE_LINE)
    for part in differing:
        beginning, together = (part.prefix, part.word), [part]
        if in_one_line.pop(beginning, 0):
            together = [member for member in differing if (member.prefix, member.word) == beginning]
        elif part.word in _IN_ONE_LINE:
            continue
        nodes = [member.node for member in together if member.node is not None]
        texts = ", ".join(write(node.copy()) for node in nodes)
        columns = [column.name.lower() for node in nodes for column in node.find_all(exp.Column)]
        literals = [literal.name for node in nodes for literal in node.find_all(exp.Literal)]
        remarks_on_texts = [remarks[pair] for pair in product(columns, literals) if pair in remarks]
        line = one_line_with_end(f"{part.prefix}{part.word} {texts}".strip(), MAX_LINE)
        yield " ".join((line, *(f"({remark})" for remark in dict.fromkeys(remarks_on_texts))))


def _parts_of_query(tree: exp.Expr, place: str = "", parent: str = "") -> Iterator[_Part]:
    """Yield the parts of a query, each before the parts of the queries within it."""
    query = query_within(tree) or tree
    for common in query.args["with_"].expressions if parts.common_queries(query) else ():
        part = _Part(f"{parent} WITH {common.alias.lower()}", parent, place, "WITH", common)
        yield part
        yield from _parts_of_query(common.this, f"{place}{common.alias}: ", part.key)
    if isinstance(query, exp.SetOperation):
        yield from _parts_of_query(query.this, place, parent)
        operation, place_of_second = parts.set_operation(query), f"{place}second query: "
        second = _Part(f"{parent} second query", parent, place, operation, query.expression)
        yield second
        yield _Part(f"{second.key} {operation}", second.key, place_of_second, operation)
        yield from _parts_of_query(query.expression, place_of_second, second.key)
    for clause, word, node in _clauses(query):
        outline = node
        queries = [] if node is None else parts.outermost_queries(node)
        if node is not None and queries:
            outline = node.copy()
            for nested in parts.outermost_queries(outline):
                nested.replace(_OMITTED.copy())
        part = _Part(f"{parent} {clause} {key(outline)}", parent, place, word, node)
        yield part
        for nested in queries:
            yield from _parts_of_query(nested, f"{place}subquery: ", part.key)


def _clauses(query: exp.Expr) -> Iterator[tuple[str, str, exp.Expr | None]]:
    """Yield the parts of the clauses of a query: by what they are compared, the word of their lines, and the node."""
    if isinstance(query, exp.Select):
        yield from _clauses_of_select(query)
    elif not isinstance(query, exp.SetOperation):
        yield "", "", query
    yield from (("", "", node) for name in ("order", "limit", "offset") for node in parts.clause_nodes(query, name))


def _clauses_of_select(select: exp.Select) -> Iterator[tuple[str, str, exp.Expr | None]]:
    yield from (("SELECT", "SELECT", item.unalias()) for item in select.expressions)
    if select.args.get("distinct"):
        yield "DISTINCT", "DISTINCT", None
    joins = {alias: parts.join_type(join) for alias, join in parts.joins_of(select).items()}
    for alias, source in sources(select).items():
        word = joins.get(alias, "FROM")
        yield "FROM" if word == "JOIN" else word, word, source
    for condition in parts.linking_conditions(select):
        yield "ON", "ON", condition
    for condition in parts.clause_operands(select, "where"):
        if not parts.is_join_condition(condition):
            yield "WHERE", "WHERE", condition
    for group in parts.clause_nodes(select, "group"):
        yield from (("GROUP BY", "GROUP BY", item) for item in group.expressions)
        if not group.expressions:  # GROUP BY ALL, ROLLUP and the like
            yield "", "", group
    for name in ("having", "qualify"):
        yield from ((name, name.upper(), condition) for condition in parts.clause_operands(select, name))


def _with_table_names(tree: exp.Expr) -> exp.Expr:
    """Return a copy in which tables have no aliases, except tables that a SELECT reads twice.

    Columns of the other tables get the tables' own names.
    """
    tree = tree.copy()
    columns = [(column, parts.table_of(column)) for column in tree.find_all(exp.Column)]
    renamed: set[int] = set()
    for select in tree.find_all(exp.Select):
        tables = [table for table in sources(select).values() if isinstance(table, exp.Table)]
        times = Counter(table.name.lower() for table in tables)
        for table in tables:
            if times[table.name.lower()] == 1:
                renamed.add(id(table))
                table.set("alias", None)
    for column, source in columns:
        if source is not None and id(source) in renamed:
            column.set("table", exp.to_identifier(source.name))
    return tree
