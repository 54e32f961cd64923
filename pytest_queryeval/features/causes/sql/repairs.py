"""Repairs of SQL queries that a database refused: other names, another spelling, constructs of its own dialect."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import chain, islice
from operator import methodcaller
from typing import TypeAlias, TypeVar

from sqlglot import Dialect, Token, TokenType, exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import nearest
from pytest_queryeval.features.causes import MAX_SPELLINGS, PLAIN_QUOTES, FailedQuery, Repair, in_order, repairs
from pytest_queryeval.features.causes.sql import changes
from pytest_queryeval.features.causes.sql.changes import Step, replace_step, write, writer
from pytest_queryeval.features.causes.sql.parts import clause_operands, key, query_within
from pytest_queryeval.languages.sql import ParsedQuery, parse_query
from pytest_queryeval.languages.sql.columns import Columns, Names, find_cte
from pytest_queryeval.languages.sql.kind import name_label
from pytest_queryeval.languages.sql.parsing import without_warnings

CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT")  # in the order of a query
CLAUSE_OF = {
    **{word: word for word in CLAUSES},
    **dict.fromkeys(("JOIN", "ON", "USING"), "FROM"),
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), "SET"),
}
MAX_PLACES = 3  # of the token at which a database stopped reading
MAX_MISSING = 3  # parentheses
_WORDS = (
    *CLAUSE_OF,
    *("BY", "DISTINCT", "BETWEEN", "INNER", "LEFT", "OUTER", "LIKE", "AND", "OR", "NOT", "EXISTS", "DESC", "ASC"),
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "CASE", "WHEN", "THEN", "ELSE", "END", "OFFSET", "NULL"),
)
_GLUED = re.compile(r"\b(group|order)by\b", re.IGNORECASE)
_TRAILING_COMMA = re.compile(
    r",(?=\s*(?:\)|;|\Z|(?:from|where|group|having|order|limit|union|intersect|except)\b))", re.IGNORECASE
)
_ENDS_EARLY = re.compile(r"incomplete input|end of input", re.IGNORECASE)
_NEAR = re.compile(r"""near (?:"([^"]+)"|'(\S+?)')""")
_DIALECTS = ("mysql", "postgres", "tsql", "duckdb", "sqlite", "bigquery", "snowflake", "oracle", "spark")
_INEQUALITIES = (exp.LT, exp.LTE, exp.GT, exp.GTE)
MIN_LIKENESS = 0.6  # of the spelling of two names
MAX_NAMES = 4  # that are tried in the place of one
_BONUS = 0.2  # to the likeness, for each reason that speaks for a name
_NAME = re.compile(r"\w+")
_HINT = re.compile(r"did you mean|perhaps you meant|candidate|\bhint\b|LINE \d", re.IGNORECASE)
_PLURAL = re.compile(r"(?<=[^_][^_])(?<!s)s(?=_|\Z)")  # the end of a word
T = TypeVar("T")
_Use: TypeAlias = tuple[exp.Column, Names]
"""A column, and the names where it is used."""


def sql_repairs(query: FailedQuery) -> Iterator[Repair]:
    """Yield repairs by one change each of a query that its database refused, guided by the error message."""
    tree, label = parse_query(query.text, query.dialect).whole_tree, name_label(query.message)
    generator = writer(query.dialect)
    if tree is not None:
        before = write(tree.copy(), generator) or query.text
        copies = ((rewrite, tree.copy()) for rewrite in (_use_extremes, _move_to_having, _unwrap_arms))
        rewritten = (copy for rewrite, copy in copies if rewrite(copy))  # without constructs that few databases have
        changed_trees = rewritten if label is None else _trees_with_other_names(tree, query)
        texts = dict.fromkeys(filter(None, (write(changed_tree, generator) for changed_tree in changed_trees)))
        yield from repairs(before, texts, CLAUSE_OF, "SELECT")
    if label is None or tree is None:
        yield from _readable(query, islice(_respelled(query), MAX_SPELLINGS))


def sql_translations(query: FailedQuery) -> Iterator[Repair]:
    """Yield a refused query as translated from other dialects, unless it has an unknown name or ends early."""
    tree = parse_query(query.text, query.dialect).whole_tree
    is_name_unknown = tree is not None and name_label(query.message) is not None
    if not is_name_unknown and not _ENDS_EARLY.search(query.message):
        dialects = (dialect for dialect in _DIALECTS if dialect != query.dialect)
        trees = filter(None, (ParsedQuery(query.text, dialect).whole_tree for dialect in dialects))
        generator = writer(query.dialect)
        yield from _readable(query, filter(None, (write(tree.copy(), generator) for tree in trees)))


def sql_guesses(query: FailedQuery) -> Iterator[Repair]:
    """Yield repairs that replace an unknown column by a column that only gold names, whatever its spelling."""
    tree, generator = parse_query(query.text, query.dialect).whole_tree, writer(query.dialect)
    uses = [] if tree is None or name_label(query.message) is None else _unresolved(tree, query)
    if tree is None or not uses:
        return
    column, names = uses[0]
    gold_names = _names_of_gold(query) - _names(tree)
    candidates = [
        _column_of(names, alias, name, column)
        for alias, source in names.sources.items()
        for name in source.columns or ()
        if name in gold_names
    ]
    copies = (changes.changed_copy(tree, _everywhere(uses, new)) for new in candidates)
    before = write(tree.copy(), generator) or query.text
    yield from repairs(before, filter(None, (write(copy, generator) for copy in copies)), CLAUSE_OF, "SELECT")


def _readable(query: FailedQuery, texts: Iterable[str]) -> Iterator[Repair]:
    readable = (text for text in dict.fromkeys(texts) if ParsedQuery(text, query.dialect).whole_tree is not None)
    yield from repairs(query.text, readable, CLAUSE_OF, "SELECT")


def _use_extremes(tree: exp.Expr) -> bool:
    """Replace comparisons with ANY or ALL rows by comparisons with the smallest or largest, in place.

    Return whether the whole tree could be changed so.
    """
    quantified = list(tree.find_all(exp.Any, exp.All))
    for quantifier in quantified:
        select, comparison = query_within(quantifier.this), quantifier.parent or exp.Null()
        if isinstance(comparison, exp.EQ) and isinstance(quantifier, exp.Any) and select is not None:
            comparison.replace(exp.In(this=comparison.this.copy(), query=exp.Subquery(this=select.copy())))
        elif isinstance(select, exp.Select) and isinstance(comparison, _INEQUALITIES) and len(select.expressions) == 1:
            is_less = isinstance(comparison, exp.LT | exp.LTE)
            extreme = exp.Min if isinstance(quantifier, exp.All) == is_less else exp.Max
            select.expressions[0].replace(extreme(this=select.expressions[0].unalias().copy()))
            quantifier.replace(exp.Subquery(this=select.copy()))
        else:
            return False
    return bool(quantified)


def _move_to_having(tree: exp.Expr) -> bool:
    """Move conditions on aggregates from WHERE to HAVING, in place; return whether there were any."""
    is_changed = False
    for select in list(tree.find_all(exp.Select)):
        for condition in clause_operands(select, "where"):
            aggregate = condition.find(exp.AggFunc)
            if aggregate is not None and aggregate.find_ancestor(exp.Select) is select:
                changes.add_condition(select, clause="having", condition=condition)
                changes.drop_condition(condition)
                is_changed = True
    return is_changed


def _unwrap_arms(tree: exp.Expr) -> bool:
    """Remove the parentheses around queries of set operations, in place; return whether there were any.

    A query with ORDER BY or LIMIT becomes a query in FROM.
    """
    arms = [arm for node in tree.find_all(exp.SetOperation) for arm in (node.this, node.expression)]
    is_changed = False
    for arm in arms:
        inner = query_within(arm)
        if inner is None:
            continue
        is_ordered = bool(inner.args.get("order") or inner.args.get("limit"))
        if isinstance(arm, exp.Subquery) and not is_ordered:
            arm.replace(inner.copy())
        elif is_ordered:
            arm.replace(exp.select("*").from_(exp.Subquery(this=inner.copy())))
        else:
            continue
        is_changed = True
    return is_changed


def _respelled(query: FailedQuery) -> Iterator[str]:
    """Yield texts with one mistake fixed: quotes, commas, parentheses, a misspelled word, order, extra tokens."""
    text = query.text
    yield text.translate(PLAIN_QUOTES)
    yield _TRAILING_COMMA.sub("", text)
    yield _GLUED.sub(r"\1 BY", text)
    for quote in "'\"`":
        if text.count(quote) % 2:
            yield text.rstrip("; \n") + quote
    try:
        with without_warnings():
            tokens = Dialect.get_or_raise(query.dialect).tokenize(text)
    except Exception:  # noqa: BLE001 - of a text that is not a query, the tokenizer fails with any error
        return
    yield from _balanced(text, tokens)
    yield from _with_words(text, tokens, query.schema)
    yield from _in_order(text, tokens)
    near = {"".join(groups).lower() for groups in _NEAR.findall(query.message)}
    for token in [token for token in tokens if token.text.lower() in near][:MAX_PLACES]:
        yield text[: token.start] + text[token.end + 1 :]
        yield text[: token.start]


def _balanced(text: str, tokens: list[Token]) -> Iterator[str]:
    """Yield texts with missing parentheses added at the end or before a clause, or without an extra one."""
    missing, unopened = 0, list[Token]()
    for token in tokens:
        if token.token_type is TokenType.R_PAREN and not missing:
            unopened.append(token)
        else:
            missing += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
    if 0 < missing <= MAX_MISSING:
        yield text.rstrip("; \n") + ")" * missing
        for token in tokens:
            if token.text.partition(" ")[0].upper() in (*CLAUSE_OF, "AND", "OR", "AS"):
                yield f"{text[: token.start].rstrip()}{')' * missing} {text[token.start :]}"
    for token in unopened[:MAX_PLACES]:
        yield text[: token.start] + text[token.end + 1 :]


def _with_words(text: str, tokens: list[Token], schema: Schema) -> Iterator[str]:
    """Yield texts in which a name that the schema lacks is replaced by a word of SQL with a similar spelling."""
    names = {*schema.tables, *chain.from_iterable(schema.tables.values())}
    for token in tokens:
        is_name = token.token_type is TokenType.VAR and token.text.lower() not in names
        word = nearest(token.text, _WORDS) if is_name else ""
        if word and word != token.text.upper():
            yield text[: token.start] + word + text[token.end + 1 :]
        if is_name:  # FORM is as near to OR as to FROM
            anagrams = (word for word in _WORDS if sorted(word) == sorted(token.text.upper()))
            yield from (text[: token.start] + word + text[token.end + 1 :] for word in anagrams)


def _in_order(text: str, tokens: list[Token]) -> Iterator[str]:
    """Yield the text with its clauses in SQL's order; nothing if they are in order, or a clause occurs twice."""
    depth, places = 0, list[tuple[int, int]]()
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        word = token.text.partition(" ")[0].upper()
        if depth == 0 and word in CLAUSES:
            places.append((CLAUSES.index(word), token.start))
    ranks = [rank for rank, _ in places]
    if ranks != sorted(ranks) and len({*ranks}) == len(ranks):
        starts = [start for _, start in places]
        yield text[: starts[0]] + in_order(text, starts, ranks, len(text.rstrip("; \n")))


def _trees_with_other_names(tree: exp.Expr, query: FailedQuery) -> Iterator[exp.Expr]:
    """Yield trees with other names instead of those in the message, or with a join to the table of a column."""
    gold_names, uses = _names_of_gold(query), _unresolved(tree, query)
    new_names = gold_names - _names(tree)
    steps_of_repairs = chain(
        _other_tables(tree, _names_in_message(query), query.schema, gold_names, new_names),
        _other_columns(uses, query.schema, new_names),
        _joining_steps(uses, query.schema, gold_names),
    )
    yield from (changes.changed_copy(tree, steps) for steps in steps_of_repairs)


def _names_in_message(query: FailedQuery) -> set[str]:
    match = _HINT.search(query.message)
    return {*_NAME.findall(query.message[: match.start() if match else None].lower())}


def _names_of_gold(query: FailedQuery) -> frozenset[str]:
    gold = parse_query(query.gold, query.dialect).tree
    return frozenset() if gold is None else _names(gold)


def _unresolved(tree: exp.Expr, query: FailedQuery) -> list[_Use]:
    """Return all uses of the first unresolved or ambiguous column that the message names."""
    columns, names_in_message = Columns(query.schema.tables, query.dialect), _names_in_message(query)
    unresolved = [
        (column, names)
        for column in tree.find_all(exp.Column)
        if (names := columns.names_at(column)) is not None and not _is_resolved(column, names)
    ]
    named = (column for column, _ in unresolved if {column.name.lower(), column.table.lower()} & names_in_message)
    first = next(named, None)
    return [] if first is None else [use for use in unresolved if key(use[0]) == key(first)]


def _other_columns(uses: Sequence[_Use], schema: Schema, gold_names: Collection[str]) -> Iterator[list[Step]]:
    """Yield the steps that replace an unresolved or ambiguous column; none if it names a table that FROM lacks."""
    for column, names in uses[:1]:
        if column.table.lower() not in schema.tables.keys() - {*_tables_of(names)}:
            yield from (_everywhere(uses, new) for new in _replacement_columns(column, names, gold_names))


def _everywhere(uses: Sequence[_Use], new: exp.Expr) -> list[Step]:
    """Return the steps that replace the uses of a column by a column that is known there, or by a text."""
    return [
        replace_step(node, new) for node, names in uses if not isinstance(new, exp.Column) or _is_resolved(new, names)
    ]


def _names(tree: exp.Expr) -> frozenset[str]:
    return frozenset(node.name.lower() for node in tree.find_all(exp.Identifier))


def _other_tables(
    tree: exp.Expr,
    names_in_message: Collection[str],
    schema: Schema,
    gold_names: Collection[str],
    new_names: Collection[str],
) -> Iterator[list[Step]]:
    """Yield the steps that replace the first unknown table in the message by tables with similar names.

    Unless the names differ in plural or underscores only, gold has to read the table.
    """
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if name not in names_in_message or name in schema.tables or find_cte(table) is not None:
            continue
        uses = [node for node in tree.find_all(exp.Identifier) if node.name.lower() == name]
        uses = [node for node in uses if node.parent is table or node.arg_key == "table"]
        likenesses = {
            new_name: (likeness, new_name in new_names)
            for new_name in schema.tables
            if (likeness := _likeness(name, new_name)) == 1 or new_name in gold_names
        }
        for new_name in _best_names(likenesses):
            yield [replace_step(node, exp.to_identifier(new_name)) for node in uses]
        return


def _replacement_columns(column: exp.Column, names: Names, gold_names: Collection[str]) -> Iterator[exp.Expr]:
    """Yield what can replace a column: columns with its name or a similar one, or the text between its quotes."""
    written, quoted = column.name, bool(column.this.args.get("quoted"))
    is_known = bool(names.owners(written.lower()))
    if quoted and not is_known and not column.table:
        yield exp.Literal.string(written)
    likenesses = {}
    for alias, source in names.sources.items():
        is_meant = column.table.lower() in (alias, source.node.name.lower())
        for name in source.columns or ():
            bonuses = is_meant + (name in gold_names) + (source.node.name.lower() in gold_names) / 2
            likenesses[alias, name] = (_likeness(written.lower(), name), bonuses)
    yield from (_column_of(names, alias, name, column) for alias, name in _best_names(likenesses))


def _column_of(names: Names, alias: str, name: str, instead: exp.Column) -> exp.Column:
    """Return a column of an item of FROM, qualified and quoted like the column that it replaces."""
    is_qualified = len(names.sources) > 1 or bool(instead.table)
    written, quoted = instead.name, bool(instead.this.args.get("quoted"))
    identifier = exp.to_identifier(written if name == written.lower() else name, quoted=quoted)
    return exp.column(identifier, table=names.sources[alias].node.alias_or_name if is_qualified else None)


def _is_resolved(column: exp.Column, names: Names) -> bool:
    """Return whether exactly one table of the query has the column, or an outer query has it."""
    name = column.name.lower()
    if not column.table:
        return len(names.owners(name)) == 1 or (not names.owners(name) and names.find_known(name) is not None)
    match = names.find(column.table.lower(), name)
    columns = None if match is None else match[0].sources[match[1]].columns
    return match is not None and (columns is None or name in columns)


def _tables_of(names: Names) -> dict[str, str]:
    """Return the aliases of the items of FROM by the lower-case names of their tables."""
    return {source.node.name.lower(): source.node.alias_or_name for source in names.sources.values()}


def _joining_steps(uses: Sequence[_Use], schema: Schema, gold_names: Collection[str]) -> Iterator[list[Step]]:
    """Yield the steps that join a table of gold with the used column, by a foreign key, in all SELECTs that use it."""
    name = next((column.name.lower() for column, _ in uses), "")
    selects = {id(names): names for _, names in uses}
    for foreign_key in schema.foreign_keys:
        for (table, end), (joined, joined_end) in (foreign_key, foreign_key[::-1]):
            steps = list[Step]()
            has_column = joined in gold_names and name in schema.tables.get(joined, ())
            for names in selects.values() if has_column else ():
                tables = _tables_of(names)
                if table in tables and joined not in tables:
                    ends = exp.column(end, table=tables[table]), exp.column(joined_end, table=joined)
                    join = exp.Join(this=exp.to_table(joined), on=exp.EQ(this=ends[0], expression=ends[1]))
                    rename = partial(changes.rename_table, name=joined)
                    steps += [(node, rename) for node, others in uses if others is names]
                    steps.append((names.select, methodcaller("append", "joins", join)))
            if steps:
                yield steps


def _likeness(name: str, known_name: str) -> float:
    """Return how similar two names are spelled, from 0 to 1; 1 if they differ only in plural or underscores.

    >>> _likeness("singers", "singer"), _likeness("birthyear", "birth_year")
    (1.0, 1.0)
    """
    singular, known_singular = (_PLURAL.sub("", text).replace("_", "") for text in (name, known_name))
    return SequenceMatcher(None, singular, known_singular, autojunk=False).ratio()


def _best_names(likenesses: Mapping[T, tuple[float, float]]) -> list[T]:
    """Return the most similar names, at most MAX_NAMES, ranked by likeness and bonuses.

    If some names are equal up to plural or underscores, return only these.
    """
    is_equal = any(likeness == 1 for likeness, _ in likenesses.values())
    least = 1 if is_equal else MIN_LIKENESS
    likely = [name for name, (likeness, _) in likenesses.items() if likeness >= least]
    return sorted(likely, key=lambda name: -likenesses[name][0] - _BONUS * likenesses[name][1])[:MAX_NAMES]
