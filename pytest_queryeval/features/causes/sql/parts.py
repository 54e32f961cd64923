"""The parts of SQL queries that edits compare: tables, joins, operands of conditions, comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlglot import exp

from pytest_queryeval.core.cause import NOTHING, CauseLabel
from pytest_queryeval.features.causes import best_pairs

CONDITION_CLAUSES: Mapping[str, type[exp.Expr]] = {"where": exp.Where, "having": exp.Having, "qualify": exp.Qualify}
_COMMUTATIVE = (exp.And, exp.Or, exp.EQ, exp.NEQ, exp.Add, exp.Mul)
_MIRRORED: Mapping[type[exp.Expr], type[exp.Binary]] = {
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_LAYOUT = frozenset(("big_int", "alias"))  # arguments that do not change what an expression means
_OPERATORS = {"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NEGATED_OPERATORS = {"=": "<>", "<>": "=", ">": "<=", ">=": "<", "<": ">=", "<=": ">", "IS": "IS NOT"}


def joins_of(select: exp.Expr) -> dict[str, exp.Join]:
    """Return the joins of a SELECT by the lower-case names of what they join."""
    return {join.alias_or_name.lower(): join for join in clause_nodes(select, "joins")}


def sources(select: exp.Expr) -> dict[str, exp.Expr]:
    """Return the tables and nested queries in FROM by the lower-case names that their columns have."""
    items = (*clause_nodes(select, "from_"), *clause_nodes(select, "joins"))
    return {item.this.alias_or_name.lower(): item.this for item in items}


def columns_outside_from(select: exp.Expr) -> list[exp.Column]:
    """Return the columns in all clauses of a SELECT except FROM, at any depth."""
    clauses = ("expressions", "where", "group", "having", "qualify", "order")
    return [
        column for clause in clauses for node in clause_nodes(select, clause) for column in node.find_all(exp.Column)
    ]


def clause_nodes(query: exp.Expr, name: str) -> list[Any]:
    """Return the nodes of a clause of a query, such as several joins or one WHERE; empty if there is no such clause."""
    clause = query.args.get(name)
    return clause if isinstance(clause, list) else [] if clause is None else [clause]


def key(node: exp.Expr | str | float | bool | None) -> str:
    """Return a text that is equal for expressions that mean the same, apart from their notation.

    Parentheses, aliases of items, letter case of names, notation of numbers, the order of commutative operands and the
    direction of comparisons are ignored.

    >>> from sqlglot import parse_one
    >>> key(parse_one("(a > 1) AND B = 2.0")) == key(parse_one("2 = b AND 1 < A"))
    True
    """
    if not isinstance(node, exp.Expr):
        return str(node)
    match node:
        case exp.Paren() | exp.Alias():
            return key(node.this)
        case exp.Column():
            return ".".join(part.name.lower() for part in node.parts)
        case exp.Identifier():
            return node.name.lower()
        case exp.Literal():
            with suppress(ValueError):
                return repr(node.name) if node.is_string else str(float(node.name))
            return repr(node.name)
        case exp.Table():
            return f"{node.name.lower()} {node.alias_or_name.lower()} {clause_key(node, 'joins')}"
        case exp.Connector():
            return f"{node.key}({' '.join(sorted(key(operand) for operand in node.flatten()))})"
    kind, parts = type(node), [key(node.args.get("this")), key(node.args.get("expression"))]
    if isinstance(node, exp.GT | exp.GTE):
        kind, parts = _MIRRORED[kind], parts[::-1]
    elif isinstance(node, _COMMUTATIVE):
        parts.sort()
    arguments = (
        f"{name}={key_of_parts(value) if isinstance(value, list) else key(value)}"
        for name, value in sorted(node.args.items())
        if name not in ("this", "expression") and name not in _LAYOUT and value not in (None, False, [])
    )
    return f"{kind.__name__}({' '.join((*parts, *arguments))})"


def key_of_parts(parts: Iterable[exp.Expr]) -> str:
    """Return the keys of several expressions in their order, as one text; see `key`."""
    return " ".join(map(key, parts))


def query_within(node: exp.Expr | None) -> exp.Expr | None:
    """Return the query within parentheses, a subquery or an item of WITH; the query itself; None for anything else."""
    while isinstance(node, exp.Subquery | exp.Paren | exp.CTE):
        node = node.this
    return node if isinstance(node, exp.Query) else None


def nested_select(condition: exp.Expr) -> exp.Select | None:
    """Return the SELECT of `a IN (SELECT b …)` if it has a single column; None for any other condition.

    >>> from sqlglot import parse_one
    >>> nested_select(parse_one("a IN (SELECT b FROM t)")).sql(), nested_select(parse_one("a IN (1, 2)"))
    ('SELECT b FROM t', None)
    """
    query = query_within(condition.args.get("query")) if isinstance(condition, exp.In) else None
    return query if isinstance(query, exp.Select) and len(query.expressions) == 1 else None


def outermost_queries(node: exp.Expr) -> list[exp.Expr]:
    """Return the queries within a node that are in no other query; only the node itself if it is a query."""
    queries = exp.Select | exp.SetOperation
    return [part for part in node.dfs(prune=lambda part: isinstance(part, queries)) if isinstance(part, queries)]


def common_queries(query: exp.Expr) -> list[exp.Expr]:
    """Return the queries in WITH, without their names, in order."""
    return [cte.this for common in clause_nodes(query, "with_") for cte in common.expressions]


def clause_key(query: exp.Expr, name: str) -> str:
    """Return the key of a clause of a query; empty if there is none."""
    return key_of_parts(clause_nodes(query, name))


def content(query: exp.Expr) -> str:
    """Return a text that is equal for queries that differ only in the order of columns and of inner joins.

    >>> from sqlglot import parse_one
    >>> queries = ["SELECT a, b FROM t JOIN u ON t.a = u.b", "SELECT b, a FROM u JOIN t ON u.b = t.a"]
    >>> content(parse_one(queries[0])) == content(parse_one(queries[1]))
    True
    """
    inner = query_within(query) or query
    if isinstance(inner, exp.SetOperation):
        arms = [content(inner.this), content(inner.expression)]
        outer = " ".join(clause_key(inner, name) for name in ("order", "limit", "offset", "with_"))
        return f"{set_operation(inner)} {arms if isinstance(inner, exp.Except) else sorted(arms)} {outer}"
    if not isinstance(inner, exp.Select):
        return key(inner)
    items = sorted(map(key, inner.expressions))
    names = sorted(name for name in inner.args if inner.args[name] and name not in ("from_", "joins", "expressions"))
    return str([tables_content(inner), items, [(name, clause_key(inner, name)) for name in names]])


def tables_content(select: exp.Expr) -> list[str]:
    """Return the keys of a SELECT's tables and join conditions, sorted if all joins are plain inner joins."""
    if not has_plain_joins(select):
        return [clause_key(select, "from_"), clause_key(select, "joins")]
    return [*sorted(map(key, sources(select).values())), *sorted(map(key, join_conditions(select)))]


def table_of(column: exp.Column) -> exp.Expr | None:
    """Return the item of FROM that a column names as its table, in its SELECT or around it; None if there is none."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        source = sources(select).get(column.table.lower())
        if source is not None:
            return source
        select = select.find_ancestor(exp.Select)
    return None


def set_operation(query: exp.Expr) -> str:
    """Return the name of a set operation, with ALL if it keeps duplicates.

    >>> from sqlglot import parse_one
    >>> set_operation(parse_one("SELECT a FROM t UNION ALL SELECT a FROM u"))
    'UNION ALL'
    """
    return query.key.upper() if query.args.get("distinct") else f"{query.key.upper()} ALL"


def arms(query: exp.Expr) -> list[exp.Expr]:
    """Return the queries that set operations combine, in order; a list of the query itself if it is no set operation.

    >>> from sqlglot import parse_one
    >>> [arm.sql() for arm in arms(parse_one("SELECT a FROM t UNION SELECT a FROM u EXCEPT SELECT a FROM v"))]
    ['SELECT a FROM t', 'SELECT a FROM u', 'SELECT a FROM v']
    """
    inner = query_within(query) or query
    if not isinstance(inner, exp.SetOperation):
        return [inner]
    return [*arms(inner.this), *arms(inner.expression)]


def table_names(select: exp.Expr) -> dict[str, str]:
    """Return the names of the tables in FROM by their aliases, in lower case, without nested queries."""
    return {alias: table.name.lower() for alias, table in sources(select).items() if isinstance(table, exp.Table)}


def all_table_names(query: exp.Expr) -> set[str]:
    """Return the lower-case names of all tables that a query reads, including queries within it."""
    return {table.name.lower() for table in query.find_all(exp.Table)}


def common_tables(query: exp.Expr, gold: exp.Expr) -> int:
    """Return how many tables both queries read."""
    return len(all_table_names(query) & all_table_names(gold))


def only_table(select: exp.Expr) -> str:
    """Return the lower-case name of the only table of a SELECT; empty if it has an alias, or FROM has more items."""
    members = sources(select)
    is_alone = [(source.key, source.alias) for source in members.values()] == [("table", "")]
    return next(iter(members)) if is_alone else ""


def products(query: exp.Expr) -> int:
    """Return how many joins of a query have no condition."""
    return sum(join_condition(join) is None and not join.method for join in query.find_all(exp.Join))


def join_type(join: exp.Join) -> str:
    """Return the type of a join in SQL's words, without words that have no effect.

    >>> from sqlglot import parse_one
    >>> join_type(parse_one("SELECT a FROM t LEFT OUTER JOIN u ON t.a = u.a").args["joins"][0])
    'LEFT JOIN'
    """
    kind = "" if join.kind in ("INNER", "OUTER", "CROSS") else join.kind
    return " ".join(filter(None, (join.method, join.side, kind, "JOIN")))


def has_plain_joins(select: exp.Expr) -> bool:
    """Return whether all joins of a SELECT are inner joins without USING, so that their order does not matter."""
    return all(join_type(join) == "JOIN" and not join.args.get("using") for join in clause_nodes(select, "joins"))


def join_condition(join: exp.Expr) -> exp.Expr | None:
    """Return the ON condition of a join, or a tuple of copies of its USING columns; None if the join has neither.

    `ON TRUE` and `ON FALSE` also give None, because sqlglot adds a constant to a join without a condition.
    """
    on, using = join.args.get("on"), join.args.get("using")
    if isinstance(on, exp.Boolean):  # what sqlglot adds to a join without a condition
        return None
    return on or (exp.Tuple(expressions=[column.copy() for column in using]) if using else None)


def join_conditions(select: exp.Expr) -> list[exp.Expr]:
    """Return the conditions of all joins, split at AND."""
    conditions = [join_condition(join) for join in clause_nodes(select, "joins")]
    return [part for condition in conditions if condition is not None for part in operands(condition, exp.And)]


def linking_conditions(select: exp.Expr) -> list[exp.Expr]:
    """Return the conditions of all joins, and those of WHERE that equate columns of two tables, split at AND."""
    return [*join_conditions(select), *filter(is_join_condition, clause_operands(select, "where"))]


def is_join_condition(condition: exp.Expr) -> bool:
    """Return whether a condition equates columns of two tables."""
    return (
        isinstance(condition, exp.EQ)
        and isinstance(condition.left, exp.Column)
        and isinstance(condition.right, exp.Column)
        and condition.left.table.lower() != condition.right.table.lower()
    )


def clause_operands(select: exp.Expr, name: str) -> list[exp.Expr]:
    """Return the conditions of WHERE, HAVING or QUALIFY, split at AND; empty if there is no such clause."""
    return [operand for clause in clause_nodes(select, name) for operand in operands(clause.this, exp.And)]


def clause_parts(query: exp.Expr, names: Sequence[str]) -> list[exp.Expr]:
    """Return the parts of clauses in order: columns, tables with their joins, and conditions split at AND."""
    clauses = (
        clause_operands(query, name) if name in CONDITION_CLAUSES else clause_nodes(query, name) for name in names
    )
    return [part for clause in clauses for part in clause]


def operands(condition: exp.Expr, connector: type[exp.Expr]) -> list[exp.Expr]:
    """Return the operands of a condition with this connector; a list of the condition itself if it has another form."""
    condition = condition.unnest()
    return list(condition.flatten()) if isinstance(condition, connector) else [condition]


def leaves(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions within a condition that have no connector."""
    condition = condition.unnest()
    if isinstance(condition, exp.Connector):
        for operand in condition.flatten():
            yield from leaves(operand)
    else:
        yield condition


def connectors(condition: exp.Expr) -> str:
    """Return the names of the different connectors in a condition, separated by spaces; NOTHING if there are none."""
    return " ".join(dict.fromkeys(node.key.upper() for node in condition.find_all(exp.Connector))) or NOTHING


def without_not(condition: exp.Expr) -> exp.Expr:
    """Return a condition without its NOT and parentheses."""
    return (condition.this if isinstance(condition, exp.Not) else condition).unnest()


def operator(condition: exp.Expr, comparison: exp.Expr) -> str:
    """Return the operator of a comparison; if the condition around it is a NOT, the operator that says so by itself.

    >>> from sqlglot import parse_one
    >>> conditions = [parse_one("NOT a = 1"), parse_one("a IS NOT NULL"), parse_one("a NOT IN (1, 2)")]
    >>> [operator(condition, without_not(condition)) for condition in conditions]
    ['<>', 'IS NOT', 'NOT IN']
    """
    name = _OPERATORS.get(comparison.key, comparison.key.upper())
    return _NEGATED_OPERATORS.get(name, f"NOT {name}") if isinstance(condition, exp.Not) else name


def subject(node: exp.Expr) -> exp.Expr:
    """Return the first argument of a condition, such as its left side or what IN tests; else the node itself."""
    return node.this if isinstance(node.this, exp.Expr) else node


def mirrored(comparison: exp.Binary) -> exp.Binary:
    """Return a comparison with its sides exchanged; unchanged if its operator has no mirror image."""
    if type(comparison) not in _MIRRORED:
        return comparison
    return _MIRRORED[type(comparison)](this=comparison.right.copy(), expression=comparison.left.copy())


def is_pattern_of(comparison: exp.Binary, equation: exp.Binary) -> bool:
    """Return whether a comparison is a LIKE for texts that contain the text of an equation of the same value.

    >>> from sqlglot import parse_one
    >>> is_pattern_of(parse_one("a LIKE '%b%'"), parse_one("a = 'b'"))
    True
    """
    return (
        isinstance(comparison, exp.Like | exp.ILike)
        and isinstance(equation, exp.EQ | exp.NEQ)
        and key(comparison.left) == key(equation.left)
        and isinstance(equation.right, exp.Literal)
        and isinstance(comparison.right, exp.Literal)
        and comparison.right.name != equation.right.name == comparison.right.name.strip("%")
    )


def bare(node: exp.Expr) -> exp.Expr:
    """Return an expression without parentheses around it."""
    return node.unnest() if isinstance(node, exp.Paren) else node


def argument(function: exp.Expr) -> exp.Expr:
    """Return the argument of an aggregate without DISTINCT; the aggregate itself if it has none."""
    inner = function.this
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        inner = inner.expressions[0]
    return inner if isinstance(inner, exp.Expr) else function


def label_of(node: exp.Expr, gold_node: exp.Expr) -> CauseLabel:
    """Return the label of the edit that replaces an expression by gold's, such as 'wrong-column' for two columns."""
    if query_within(node) is not None or query_within(gold_node) is not None:
        return "nesting"
    if _is_value(node) and _is_value(gold_node):
        return value_label([node], [gold_node])
    if _is_column(node) and _is_column(gold_node):
        return "wrong-column"
    if not isinstance(node, exp.AggFunc) and not isinstance(gold_node, exp.AggFunc):
        return "wrong-expression"
    if type(node) is not type(gold_node):
        return "wrong-aggregate"
    is_distinct, should_be = (isinstance(aggregate.this, exp.Distinct) for aggregate in (node, gold_node))
    if is_distinct != should_be:
        return "extra-distinct" if is_distinct else "missing-distinct"
    if _is_column(argument(node)) and _is_column(argument(gold_node)):
        return "wrong-column"
    return "wrong-expression"


def value_label(values: Iterable[exp.Expr], gold_values: Iterable[exp.Expr]) -> CauseLabel:
    """Return the label of replaced constants: 'value-case' if only letter case differs, else 'wrong-value'.

    >>> value_label([exp.Literal.string("Cat")], [exp.Literal.string("cat")])
    'value-case'
    """
    texts, gold_texts = (
        [value.name.casefold() if isinstance(value, exp.Literal) and value.is_string else None for value in side]
        for side in (values, gold_values)
    )
    return "value-case" if texts == gold_texts and None not in texts else "wrong-value"


def alike(
    expressions: Sequence[exp.Expr], gold_expressions: Sequence[exp.Expr], *, pairs_all: bool = False
) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return pairs of expressions that share most.

    Expressions that share nothing are paired only with `pairs_all`, or if each side has one expression.
    """
    keys = {
        id(expression): {key(node) for node in expression.walk() if not isinstance(node, exp.Identifier)}
        for expression in (*expressions, *gold_expressions)
    }
    pairs_all = pairs_all or len(expressions) == len(gold_expressions) == 1

    def likeness(expression: exp.Expr, gold: exp.Expr) -> float | None:
        common = len(keys[id(expression)] & keys[id(gold)])
        types = type(expression.unalias()), type(gold.unalias())
        of_one_sort = issubclass(types[0], exp.AggFunc) == issubclass(types[1], exp.AggFunc)
        return common + of_one_sort + (types[0] is types[1]) / 2 if common or pairs_all else None

    return best_pairs(expressions, gold_expressions, likeness)


def _is_value(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    )


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Star)
