"""Proves that two queries give the same answer: rules bring both to one form, and their texts are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import factorial, prod

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.strength.sql.proof import rules
from pytest_queryeval.features.strength.sql.proof.facts import Facts
from pytest_queryeval.features.strength.sql.proof.query import (
    AGGREGATES,
    CONSTANTS,
    Block,
    Query,
    SetOperation,
    Term,
    UnprovableError,
    bare_columns,
    have_one_family,
    name_of,
    nodes,
    only_joins,
    operands,
    require_named_alike,
    require_size,
    rewritten,
)
from pytest_queryeval.features.strength.sql.proof.reading import read
from pytest_queryeval.languages.sql.columns import linked

MAX_STEPS = 60  # of a query
MAX_ORDERS = 24  # of tables that a query uses several times
MAX_RENDERED = 500  # SELECTs of both queries, each counted once for each of those orders
_CONDITIONS = frozenset(("eq", "neq", "lt", "lte", "isnull", "not", "in", "exists"))  # 0, 1 or NULL as values
_COMPARISONS = frozenset(("eq", "neq", "lt", "lte"))
_COMMUTATIVE = frozenset(("eq", "neq", "and", "or", "add", "mul"))
ALIASES, FINER_ORDER, ORDER_WITHOUT_EFFECT = "aliases", "finer-order", "order-without-effect"
NESTED_DISTINCT, SET_OPERATION_AS_CONDITION = "nested-distinct", "set-operation-as-condition"

RULES: dict[str, Callable[[Block, Tables], Block | None]] = {
    "negation": rules.negation,
    "derived-table": rules.derived_tables,
    "outer-join-as-inner": rules.outer_joins,
    "anti-join": rules.anti_joins,
    "unused-outer-join": rules.unused_outer_joins,
    "not-null-test": rules.not_null_tests,
    "count-of-rows": rules.counts,
    "in-as-exists": rules.in_as_exists,
    "grouping-as-distinct": rules.grouping_as_distinct,
    "unique-rows": rules.unique_rows,
    "exists-as-join": rules.exists_as_join,
    "key-self-join": rules.key_self_joins,
    "foreign-key-join": rules.foreign_key_joins,
    "sort-key": rules.sort_keys,
    "limit": rules.limits,
}


def prove(gold: str, predicted: str, dialect: str, tables: Tables, policy: Policy) -> tuple[str, ...]:
    """Return the rules that prove that two queries have the same answer on all data that satisfy the constraints.

    The result contains their names in the order of first use. Without a proof the result is empty; no error is raised.

    Every proof contains the rule `aliases`: names of tables and columns, and the order of operands, conditions and
    inner joins, do not matter (Elmasri and Navathe, Fundamentals of Database Systems). `order-without-effect` leaves
    out an ORDER BY that the policy does not compare. By `finer-order`, the predicted query may add sort keys after
    gold's. By `nested-distinct`, it does not matter how often a row occurs in a query of IN, EXISTS or a set operation.
    """
    if policy.row_order == "strict":
        return ()
    has_free_columns = policy.columns == "any" and policy.extra_columns == "reject" and not policy.gold_columns
    used: dict[str, None] = {ALIASES: None}
    try:
        queries = [
            _Normalizer(tables, policy, used).whole(read(text, dialect, tables, used), is_gold=is_gold)
            for text, is_gold in ((gold, True), (predicted, False))
        ]
        if any(query.order for query in queries):
            queries = _without_irrelevant_order(queries, used)
        if not has_free_columns:
            require_named_alike(*queries)
        renderer = _Renderer(tables, has_free_columns=has_free_columns)
        names = [renderer.query(query, {}, {}, depth=0) for query in queries]
    except Exception:  # noqa: BLE001 - a predicted query in which anything fails is not proved
        return ()
    return tuple(used) if names[0] == names[1] else ()


def with_nullable_keys(tables: Tables) -> Tables:
    """Return the tables without NOT NULL for columns of primary keys in which SQLite allows NULL."""
    return {name: table.with_not_null(table.not_null.difference(table.nullable_key)) for name, table in tables.items()}


def _without_irrelevant_order(queries: Sequence[Query], used: dict[str, None]) -> list[Query]:
    """Return both queries, the predicted query without sort keys that have no effect; add the rule to `used`."""
    gold, predicted = queries
    if any(isinstance(query, Block) and query.limit is not None for query in queries):
        return [gold, predicted]
    if not gold.order:
        used[ORDER_WITHOUT_EFFECT] = None
        return [gold, replace(predicted, order=())]
    if len(predicted.order) > len(gold.order):
        used[FINER_ORDER] = None
        return [gold, replace(predicted, order=predicted.order[: len(gold.order)])]
    return [gold, predicted]


class _Normalizer:
    """Rewrites queries with the rules until no rule applies, and adds the names of applied rules to `used`."""

    def __init__(self, tables: Tables, policy: Policy, used: dict[str, None]) -> None:
        self._tables = tables
        self._policy = policy
        self._compares_order = policy.row_order == "auto" and policy.duplicates == "count"
        self._used = used
        self._steps = 0
        self._normal_queries: set[Query] = set()  # those that are in normal form already

    def whole(self, query: Query, *, is_gold: bool) -> Query:
        """Return the normal form of a query that is not nested.

        Raise `UnprovableError` if the data do not determine its answer, or if it is not understood.
        """
        is_cut = isinstance(query, Block) and query.limit is not None
        if query.order and not self._compares_order and not is_cut:
            self._used[ORDER_WITHOUT_EFFECT] = None
            query = replace(query, order=())
        if isinstance(query, Block) and self._policy.duplicates == "ignore" and not is_cut:
            query = replace(query, is_distinct=True)
        if isinstance(query, Block) and query.is_distinct and self._compares_order:
            has_selected_keys = all(key in query.select for key, _ in query.order)
            if not has_selected_keys and (is_gold or not Facts(query, self._tables).has_unique_rows()):
                raise UnprovableError("DISTINCT rows of which it is not known which tie")
        query = self._normal(query)
        if not isinstance(query, Block) or query.limit is None:
            return query
        # LIMIT may leave other rows, unless gold's policy takes each of them.
        if not query.order or not (self._compares_order or self._is_cut_determined(query)):
            raise UnprovableError("LIMIT")
        return query

    def _normal(self, query: Query) -> Query:
        if query in self._normal_queries:
            return query
        normal = self._normal_set_operation(query) if isinstance(query, SetOperation) else self._normal_block(query)
        self._normal_queries.add(normal)
        return normal

    def _normal_set_operation(self, query: SetOperation) -> Query:
        is_set = query.operator != "union all"
        left, right = (self._normal_nested(side, is_set=is_set) for side in (query.left, query.right))
        query = replace(query, left=left, right=right)
        condition = rules.set_operation_as_condition(query, self._tables)
        if condition is None:
            return query
        self._used[SET_OPERATION_AS_CONDITION] = None
        return self._normal(condition)

    def _normal_block(self, block: Block) -> Block:
        block = self._with_normal_queries(block)
        while (rewritten_block := self._apply_first_rule(block)) is not None:
            block = self._with_normal_queries(rewritten_block)
        self._require_determined(block)
        return block

    def _apply_first_rule(self, block: Block) -> Block | None:
        """Return a SELECT after the first rule that changes it, and record the rule; None if no rule does.

        Raise `UnprovableError` after MAX_STEPS steps, and if the new SELECT is too long.
        """
        for name, rule in RULES.items():
            result = rule(block, self._tables)
            if result is not None:
                self._steps += 1
                if self._steps > MAX_STEPS:
                    raise UnprovableError("too many steps")
                require_size(result)
                self._used[name] = None
                return result
        return None

    def _normal_nested(self, query: Query, *, is_set: bool = False) -> Query:
        """Return the normal form of a nested query, whose order does not matter because all of its rows are used.

        With `is_set`, it also does not matter how often a row occurs. Raise `UnprovableError` for a LIMIT whose rows
        are not determined.
        """
        if isinstance(query, Block) and query.limit is None:
            query = replace(query, order=())
        query = self._normal(query)
        if isinstance(query, Block) and query.limit is not None and not self._is_cut_determined(query):
            raise UnprovableError("LIMIT of a nested query")
        if (
            is_set
            and only_joins(query)
            and query.is_distinct
            and all(have_one_family(term, term) for term in query.select)
        ):
            self._used[NESTED_DISTINCT] = None
            query = replace(query, is_distinct=False)
            self._normal_queries.add(query)
        return query

    def _with_normal_queries(self, block: Block) -> Block:
        tables = {alias: of if isinstance(of, str) else self._normal_nested(of) for alias, of in block.tables.items()}
        return replace(block.mapped(lambda term: rewritten(term, self._with_normal_operands)), tables=tables)

    def _with_normal_operands(self, term: Term) -> Term:
        is_set = term[0] in ("in", "exists")
        parts = tuple(self._normal_nested(part, is_set=is_set) if isinstance(part, Query) else part for part in term)
        if term[0] == "query":
            nested = parts[1]
            if not isinstance(nested, Block) or not (Facts(nested, self._tables).has_one_row() or nested.limit == 1):
                raise UnprovableError("a nested query with several rows as a value")
        return parts

    def _is_cut_determined(self, block: Block) -> bool:
        """Return whether LIMIT keeps rows with the same values, whichever of tied rows it keeps."""
        facts = Facts(block, self._tables)
        keys = [key for key, _ in block.order]
        return all(term in keys or facts.is_determined(term, keys) for term in block.select)

    def _require_determined(self, block: Block) -> None:
        """Raise `UnprovableError` if a value depends on the order in which the engine reads rows.

        Such values are bare columns next to aggregates, sort keys outside of DISTINCT rows, and one of several equal
        values that look different.
        """
        facts = Facts(block, self._tables)
        if block.has_aggregates:
            keys = [name_of(key) for key in block.group or () if key[0] == "column"]
            determined = facts.closure(keys)
            for term in block.results:
                bare = set(bare_columns(term, block.group or ()))
                if any(name not in determined and name[0] in block.tables for name in bare):
                    raise UnprovableError("a column that is neither grouped nor aggregated")
                if any(_exposes_key_representation(key, term) for key in block.group or ()):
                    raise UnprovableError("an expression with a key of which equal values may look different")
        elif block.is_distinct and not all(
            key in block.select or facts.is_determined(key, block.select) for key, _ in block.order
        ):
            raise UnprovableError("DISTINCT rows in the order of something else")
        if not all(
            _has_single_representation(part, block)
            for term in block.terms
            for part in _representation_sensitive_parts(term, block)
        ):
            raise UnprovableError("an expression with one of several values that are equal and may look different")


def _exposes_key_representation(key: Term, term: Term) -> bool:
    """Return whether a GROUP BY key, whose equal values may look different (1 and 1.0), is a part of an expression.

    The key itself as expression does not count.
    """
    if term == key or have_one_family(key, key):
        return False
    return name_of(key) in bare_columns(term, ()) if key[0] == "column" else key in nodes(term)


def _representation_sensitive_parts(term: Term, block: Block) -> Iterator[Term]:
    """Yield the parts of an expression whose representation matters, such as 1 or 1.0, not only their value.

    Next to a text, SQLite compares numbers by their representation.
    """
    for node in nodes(term):
        if node[0] == "in":
            queries = [("query", query) for query in _chosen_from(node[2])]
            yield from queries if _may_be_text(node[1], block) else ()
            yield from (node[1] for query in queries if _may_be_text(query, block))
        elif node[0] in _COMPARISONS:
            first, second = operands(node)
            yield from (second,) if _may_be_text(first, block) else ()
            yield from (first,) if _may_be_text(second, block) else ()
        elif node[0] not in _CONDITIONS and node[0] not in AGGREGATES and node[0] not in ("and", "or", "distinct"):
            yield from operands(node)


def _chosen_from(query: Query) -> Iterator[Block]:
    """Yield the SELECTs of a query; a SELECT in a set operation that removes equal rows has DISTINCT."""
    if isinstance(query, Block):
        yield query
        return
    for side in (query.left, query.right):
        for block in _chosen_from(side):
            yield replace(block, is_distinct=block.is_distinct or query.operator != "union all")


def _may_be_text(term: Term, block: Block) -> bool:
    """Return whether SQLite may compare other values with an expression as texts, by the type of a column or CAST."""
    match term:
        case ("column", alias, name, family):
            source = block.tables.get(alias)
            if not family and isinstance(source, Block):
                return _may_be_text(source.select[source.names.index(name)], source)
            return family == "text" if family else not isinstance(source, str)
        case ("query", Block(select=(item,)) as nested):
            return _may_be_text(item, nested)
    return bool(term[0] == "Cast")


def _has_single_representation(part: Term, block: Block) -> bool:
    """Return whether a part of an expression has one representation: no choice among equal values that look different.

    DISTINCT, GROUP BY, LIMIT and aggregates make such a choice, as between 1 and 1.0.
    """
    match part:
        case ("column", alias, _, _):
            return have_one_family(part, part) or isinstance(block.tables.get(alias), str)
        case ("min" | "max" | "sum", ("distinct", argument)) | ("min" | "max", argument):
            return have_one_family(argument, argument)
        case ("sum", argument):
            return all(_has_single_representation(node, block) for node in nodes(argument))
        case ("query", Block(select=(item,)) as nested):
            if have_one_family(item, item) or item[0] in ("count", "avg", *CONSTANTS):
                return True
            is_chosen = nested.is_distinct or nested.group is not None or nested.limit is not None
            return not is_chosen and _has_single_representation(item, nested)
    return True


class _Renderer:
    """Names queries: queries that differ only in names of tables and columns, or in irrelevant orders, share a name."""

    def __init__(self, tables: Tables, *, has_free_columns: bool) -> None:
        self._tables = tables
        self._has_free_columns = has_free_columns
        self._sources: dict[str, str | Query] = {}  # of the queries that are being rendered, by alias
        self._names: dict[str, str] = {}  # of queries by their texts, in which nested queries stand by their names
        self._rendered = 0

    def query(self, query: Query, aliases: Mapping[str, str], equal: Mapping[str, str], *, depth: int) -> str:
        """Return the name of a query.

        `aliases` are the names of tables of the queries around it, `equal` maps columns there to the first of equal
        columns. Raise `UnprovableError` if a query uses tables too often, or orders a set operation.
        """
        if isinstance(query, Block):
            self._sources |= query.tables
            by_source: defaultdict[str, list[str]] = defaultdict(list)
            for alias, source in query.tables.items():
                if isinstance(source, str):
                    by_source[repr(source)].append(alias)
                else:
                    by_source[self.query(source, aliases, equal, depth=depth + 1)].append(alias)
            if prod(factorial(len(of_source)) for of_source in by_source.values()) > MAX_ORDERS:
                raise UnprovableError("a table that is used often")
            orders = product(*(permutations(of_source) for of_source in by_source.values()))
            # The least of the texts that it has with its uses of a table in any order.
            text = min(self._block(query, [*by_source], order, aliases, equal, depth) for order in orders)
        else:
            if query.order:
                raise UnprovableError("ORDER BY of a set operation")
            left, right = query.left, query.right
            sides = [self.query(side, aliases, equal, depth=depth + 1) for side in (left, right)]
            # In SQLite, one of the sides gives `x IN (… UNION …)` the type by which values are compared.
            have_one_type = (
                isinstance(left, Block)
                and isinstance(right, Block)
                and all(map(have_one_family, left.select, right.select))
            )
            if query.operator != "except" and (depth == 0 or have_one_type):
                sides.sort()
            text = f"{sides[0]} {query.operator} {sides[1]}"
        return self._names.setdefault(text, f"({len(self._names)})")

    def _block(
        self,
        block: Block,
        sources: Sequence[str],
        order: Sequence[Sequence[str]],
        aliases: Mapping[str, str],
        equal: Mapping[str, str],
        depth: int,
    ) -> str:
        self._rendered += 1
        if self._rendered > MAX_RENDERED:
            raise UnprovableError("too many orders of tables")
        named = {
            alias: f"{source}#{number}@{depth}"
            for source, of_source in zip(sources, order, strict=True)
            for number, alias in enumerate(of_source)
        }
        aliases = {**aliases, **named}
        facts = Facts(block, self._tables)
        pairs = [(self._column_text(one, aliases), self._column_text(other, aliases)) for one, other in facts.equal]
        links = [*equal.items(), *pairs]
        equal = {name: min(linked(name, links)) for pair in links for name in pair}  # the first of equal columns

        def text(term: Term) -> str:
            return self._term(term, aliases, equal, depth)

        conditions = {text(term) for term in block.where if term[0] != "eq" or not have_one_family(*term[1:])}
        conditions |= {f"{equal[name]} = {name}" for pair in pairs for name in pair if equal[name] != name}
        group = None
        if block.group is not None:
            keyed = facts.closure(name_of(key) for key in block.group if key[0] == "column")
            keys = {name for name in keyed if name[0] in block.tables}
            names = (self._column_text(key, aliases) for key in keys)
            other_terms = (text(key) for key in block.group if key[0] != "column" or name_of(key) not in keys)
            group = sorted({*(equal.get(name, name) for name in names), *other_terms})
        select = [text(term) for term in block.select]
        parts = {
            "select": sorted(select) if depth == 0 and self._has_free_columns else select,
            "distinct": block.is_distinct,
            "from": sorted(named.values()),
            "left joins": [(aliases[of.alias], sorted({*map(text, of.conditions)})) for of in block.outer_joins],
            "where": sorted(conditions),
            "group": group,
            "having": sorted({*map(text, block.having)}),
            "order": [(text(key), direction) for key, direction in block.order],
            "limit": (block.limit, block.offset),
        }
        return repr(parts)

    def _term(self, term: Term, aliases: Mapping[str, str], equal: Mapping[str, str], depth: int) -> str:
        if term[0] == "column":
            name = self._column_text(name_of(term), aliases)
            return equal.get(name, name)
        if term[0] in ("and", "or"):
            parts = [part for operand in operands(term) for part in _same_operands(operand, term[0])]
            texts = sorted({self._term(part, aliases, equal, depth) for part in parts})
            return texts[0] if len(texts) == 1 and parts[0][0] in _CONDITIONS else f"{term[0]}({', '.join(texts)})"
        texts = []
        for part in term[1:]:
            if isinstance(part, Query):
                texts.append(self.query(part, aliases, equal, depth=depth + 1))
            else:
                texts.append(self._term(part, aliases, equal, depth) if isinstance(part, tuple) else repr(part))
        return f"{term[0]}({', '.join(sorted(texts) if term[0] in _COMMUTATIVE else texts)})"

    def _column_text(self, column: Column, aliases: Mapping[str, str]) -> str:
        """Return the text of a column; a column of a nested query in FROM has its position instead of its name.

        Raise `UnprovableError` for a column of a set operation in FROM.
        """
        alias, name = column
        source = self._sources[alias]
        if isinstance(source, SetOperation):
            raise UnprovableError("a set operation in FROM")
        return f"{aliases[alias]}.{source.names.index(name) if isinstance(source, Block) else repr(name)}"


def _same_operands(term: Term, operator: str) -> Iterator[Term]:
    """Yield the operands that an operator joins, including the operands of nested terms with the same operator."""
    if term[0] != operator:
        yield term
    else:
        for operand in operands(term):
            yield from _same_operands(operand, operator)
