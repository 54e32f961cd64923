"""The parts of SQL queries that edits compare: joins, operands of conditions, comparisons, and what tells two apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from pytest_queryeval.core.cause import NOTHING, CauseLabel
from pytest_queryeval.features.causes.sql.aligned import key, key_of_parts, query_within, sources
from pytest_queryeval.features.causes.sql.edit import Side

_MIRRORED: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
}
_OPERATORS = {"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OF_CONDITIONS = frozenset(("where", "having", "qualify"))
_NEGATED_OPERATORS = {"=": "<>", "<>": "=", ">": "<=", ">=": "<", "<": ">=", "<=": ">", "IS": "IS NOT"}


def clause_key(query: exp.Expr, name: str) -> str:
    """Return the key of a clause of a query, or of several, such as its joins."""
    clause = query.args.get(name)
    return key_of_parts(clause) if isinstance(clause, list) else key(clause)


def content(query: exp.Expr) -> str:
    """Return the key of a query, the same whatever the order of what it selects, and of tables in inner joins.

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
    """Return the keys of the tables of a SELECT and of what joins them, whatever the order of inner joins."""
    if any(join_type(join) != "JOIN" or join.args.get("using") for join in select.args.get("joins") or ()):
        return [clause_key(select, "from_"), clause_key(select, "joins")]
    return [*sorted(map(key, sources(select).values())), *sorted(map(key, join_conditions(select)))]


def replaced_sources(predicted: exp.Select, gold: exp.Select) -> list[tuple[str, str]]:
    """Return the names of what only predicted has in FROM, each with that of what only gold has in its place."""
    names, gold_names = sources(predicted), sources(gold)
    extra, missing = (
        [name for name in side if name not in opposite_names]
        for side, opposite_names in ((names, gold_names), (gold_names, names))
    )
    return list(zip(extra, missing, strict=False))


def table_of(column: exp.Column) -> exp.Expr | None:
    """Return the item of FROM that a column names, in its SELECT or around it."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        source = sources(select).get(column.table.lower())
        if source is not None:
            return source
        select = select.find_ancestor(exp.Select)
    return None


def joined_columns(query: exp.Expr) -> Iterator[tuple[exp.Column, exp.Column]]:
    """Yield the columns by which a query joins tables, in ON or in WHERE, or nests a query: `a IN (SELECT b …)`."""
    for select in query.find_all(exp.Select):
        for condition in (*join_conditions(select), *clause_operands(select, "where")):
            condition = without_not(condition)
            nested = query_within(condition.args.get("query")) if isinstance(condition, exp.In) else None
            items = nested.expressions if isinstance(nested, exp.Select) else []
            if is_join_condition(condition):
                yield condition.this, condition.expression
            elif len(items) == 1 and isinstance(condition.this, exp.Column) and isinstance(items[0], exp.Column):
                yield condition.this, items[0]


def set_operation(query: exp.Expr) -> str:
    """Return the name of a set operation.

    >>> from sqlglot import parse_one
    >>> set_operation(parse_one("SELECT a FROM t UNION ALL SELECT a FROM u"))
    'UNION ALL'
    """
    return query.key.upper() if query.args.get("distinct") else f"{query.key.upper()} ALL"


def arms(query: exp.Expr) -> list[exp.Expr]:
    """Return the queries that set operations combine, in order; another query itself.

    >>> from sqlglot import parse_one
    >>> [arm.sql() for arm in arms(parse_one("SELECT a FROM t UNION SELECT a FROM u EXCEPT SELECT a FROM v"))]
    ['SELECT a FROM t', 'SELECT a FROM u', 'SELECT a FROM v']
    """
    inner = query_within(query) or query
    if not isinstance(inner, exp.SetOperation):
        return [inner]
    return [*arms(inner.this), *arms(inner.expression)]


def only_table(select: exp.Expr) -> str:
    """Return the name of the only table of a SELECT, in lower case; empty if it has an alias, or there are more."""
    members = sources(select)
    is_alone = [(source.key, source.alias) for source in members.values()] == [("table", "")]
    return next(iter(members)) if is_alone else ""


def products(nodes: Iterable[exp.Expr]) -> int:
    """Return how many joins of a query have no condition."""
    return sum(
        isinstance(node, exp.Join) and join_condition(node) is None and not node.args.get("method") for node in nodes
    )


def joined_name(join: exp.Expr) -> str:
    """Return the name of what is joined, in lower case."""
    return str(join.this.alias_or_name.lower())


def join_type(join: exp.Expr) -> str:
    """Return the type of a join as it is written, without words that mean nothing.

    >>> from sqlglot import parse_one
    >>> join_type(parse_one("SELECT a FROM t LEFT OUTER JOIN u ON t.a = u.a").args["joins"][0])
    'LEFT JOIN'
    """
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    kind = "" if kind in ("INNER", "OUTER", "CROSS") else kind
    method = str(join.args.get("method") or "").upper()
    return " ".join(filter(None, (method, side, kind, "JOIN")))


def join_condition(join: exp.Expr) -> exp.Expr | None:
    """Return the condition of a join, or the columns that it uses."""
    on, using = join.args.get("on"), join.args.get("using")
    if isinstance(on, exp.Boolean):  # what sqlglot adds to a join without a condition
        return None
    return on or (exp.Tuple(expressions=[column.copy() for column in using]) if using else None)


def join_conditions(select: exp.Expr) -> list[exp.Expr]:
    """Return the conditions of all joins, those that AND connects one by one."""
    conditions = [join_condition(join) for join in select.args.get("joins") or ()]
    return [part for condition in conditions if condition is not None for part in operands(condition, exp.And)]


def is_join_condition(condition: exp.Expr) -> bool:
    """Return whether a condition equates columns of two tables."""
    return (
        isinstance(condition, exp.EQ)
        and isinstance(condition.left, exp.Column)
        and isinstance(condition.right, exp.Column)
        and condition.left.table.lower() != condition.right.table.lower()
    )


def clause_operands(select: exp.Expr, name: str) -> list[exp.Expr]:
    """Return the conditions that AND connects in WHERE, HAVING or QUALIFY; none where there is no such clause."""
    clause = select.args.get(name)
    return operands(clause.this, exp.And) if clause is not None else []


def clause_parts(query: exp.Expr, names: Sequence[str]) -> list[exp.Expr]:
    """Return the parts of clauses in their order: columns, tables with their joins, conditions that AND connects."""
    clauses = [clause_operands(query, name) if name in _OF_CONDITIONS else query.args.get(name) for name in names]
    return [part for clause in clauses for part in (clause if isinstance(clause, list) else [clause]) if part]


def differing_parts(predicted: exp.Expr, gold: exp.Expr, names: Sequence[str]) -> tuple[Side, Side]:
    """Return the parts of clauses that only one of two queries has; all of them where only their order differs.

    >>> from sqlglot import parse_one
    >>> queries = [parse_one(f"SELECT 1 FROM t WHERE {text}") for text in ("a = 1 AND b = 2", "c = 3 AND a = 1")]
    >>> [side.sql() for side in differing_parts(*queries, ["where"])]
    ['b = 2', 'c = 3']
    """
    all_parts = clause_parts(predicted, names), clause_parts(gold, names)
    differing = without_common(*all_parts)
    old, new = differing if any(differing) else all_parts
    if _OF_CONDITIONS.issuperset(names):
        return exp.and_(*old) if old else None, exp.and_(*new) if new else None
    return (tuple(old), tuple(new)) if "expressions" in names else ([*old], [*new])


def operands(condition: exp.Expr, connector: type[exp.Expr]) -> list[exp.Expr]:
    """Return the operands of a condition with this connector; of another condition, the condition itself."""
    condition = condition.unnest()
    return list(condition.flatten()) if isinstance(condition, connector) else [condition]


def leaves(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the operands of a condition that have no connector themselves."""
    condition = condition.unnest()
    if isinstance(condition, exp.Connector):
        for operand in condition.flatten():
            yield from leaves(operand)
    else:
        yield condition


def connectors(condition: exp.Expr) -> str:
    """Return the names of the connectors in a condition, each once."""
    names = dict.fromkeys(
        node.key.upper() for node in (condition, *condition.find_all(exp.Connector)) if isinstance(node, exp.Connector)
    )
    return " ".join(names) or NOTHING


def without_not(condition: exp.Expr) -> exp.Expr:
    """Return what a condition denies or states."""
    return (condition.this if isinstance(condition, exp.Not) else condition).unnest()


def operator(condition: exp.Expr, comparison: exp.Expr) -> str:
    """Return the operator of a comparison; where its condition has a NOT, the operator that says the same without.

    >>> from sqlglot import parse_one
    >>> conditions = [parse_one("NOT a = 1"), parse_one("a IS NOT NULL"), parse_one("a NOT IN (1, 2)")]
    >>> [operator(condition, without_not(condition)) for condition in conditions]
    ['<>', 'IS NOT', 'NOT IN']
    """
    name = _OPERATORS.get(comparison.key, comparison.key.upper())
    return _NEGATED_OPERATORS.get(name, f"NOT {name}") if isinstance(condition, exp.Not) else name


def subject(node: exp.Expr) -> exp.Expr:
    """Return what a condition is about: the first of its arguments."""
    return node.this if isinstance(node.this, exp.Expr) else node


def mirrored(comparison: exp.Binary) -> exp.Binary:
    """Return a comparison with its sides exchanged."""
    mirrored_type = _MIRRORED.get(type(comparison), type(comparison))
    if not isinstance(comparison, (*_MIRRORED, exp.EQ, exp.NEQ)):
        return comparison
    return mirrored_type(this=comparison.right.copy(), expression=comparison.left.copy())


def is_pattern_of(comparison: exp.Binary, equation: exp.Binary) -> bool:
    """Return whether one comparison is a LIKE for texts that contain the one that the other one equates.

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
    """Return an expression without parentheses that hold no query."""
    return node.unnest() if isinstance(node, exp.Paren) else node


def argument(function: exp.Expr) -> exp.Expr:
    """Return the argument of an aggregate, without DISTINCT."""
    inner = function.this
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        inner = inner.expressions[0]
    return inner if isinstance(inner, exp.Expr) else function


def label_of(node: exp.Expr, gold_node: exp.Expr) -> CauseLabel:
    """Return the label of one expression in the place of another."""
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
    """Return the label of constants in the place of others: their own one where only letter case differs.

    >>> value_label([exp.Literal.string("Cat")], [exp.Literal.string("cat")])
    'value-case'
    """
    texts, gold_texts = (
        [value.name.casefold() if isinstance(value, exp.Literal) and value.is_string else None for value in side]
        for side in (values, gold_values)
    )
    return "value-case" if texts == gold_texts and None not in texts else "wrong-value"


def without_common(
    expressions: Sequence[exp.Expr], gold_expressions: Sequence[exp.Expr]
) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the expressions of each side that the other one lacks, as often as it lacks them."""
    keys, gold_keys = list(map(key, expressions)), list(map(key, gold_expressions))
    return (
        [expression for expression in expressions if not _take(gold_keys, key(expression))],
        [expression for expression in gold_expressions if not _take(keys, key(expression))],
    )


def conditions(query: exp.Expr) -> Iterator[tuple[str, exp.Expr, exp.Select]]:
    """Yield the comparisons in WHERE and HAVING of all queries within a query: clause, comparison, SELECT."""
    for select in query.find_all(exp.Select):
        for name in ("where", "having"):
            clause = select.args.get(name)
            for leaf in leaves(clause.this) if clause is not None else ():
                yield name.upper(), leaf, select


def on_columns_of(gold_condition: exp.Expr, condition: exp.Expr) -> exp.Expr | None:
    """Return a condition of gold about what `condition` is about, by its tables; None if it is about something else.

    >>> from sqlglot import parse_one
    >>> on_columns_of(parse_one("t2.year < 2"), parse_one("car.year < 1")).sql()
    'car.year < 2'
    >>> on_columns_of(parse_one("t2.age < 2"), parse_one("car.year < 1"))
    """
    inner, gold_inner = without_not(condition), without_not(gold_condition)
    if condition.find(exp.Query) or gold_condition.find(exp.Query):
        return None
    about, gold_about = subject(inner), subject(gold_inner)
    if isinstance(about, exp.AggFunc) and isinstance(gold_about, exp.Count) and type(about) is type(gold_about):
        is_same = not list(gold_about.find_all(exp.Column)) or _names(about) == _names(gold_about)
    else:
        is_same = type(about) is type(gold_about) and bool(_names(about)) and _names(about) == _names(gold_about)
    if not is_same or any(True for part in _arguments(gold_inner) for _ in part.find_all(exp.Column)):
        return None
    moved = gold_condition.copy()
    columns = list(about.find_all(exp.Column))
    moved_columns = subject(without_not(moved)).find_all(exp.Column)
    for column, moved_column in zip(columns, moved_columns, strict=False):
        moved_column.set("table", exp.to_identifier(column.table) if column.table else None)
    return moved


def _names(expression: exp.Expr) -> list[str]:
    return [column.name.lower() for column in expression.find_all(exp.Column)]


def _arguments(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the arguments of a condition but for its subject."""
    for value in list(condition.args.values())[1:]:
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr))


def alike(
    expressions: Sequence[exp.Expr], gold_expressions: Sequence[exp.Expr], *, rest: bool = False
) -> list[tuple[exp.Expr, exp.Expr]]:
    """Pair expressions that share most, in order; with `rest` also those that share nothing."""
    bags = {
        id(expression): {key(node) for node in expression.walk() if not isinstance(node, exp.Identifier)}
        for expression in (*expressions, *gold_expressions)
    }
    ways = sorted(
        (
            (
                -len(bags[id(predicted)] & bags[id(gold)]) - (type(predicted) is type(gold)) / 2,
                abs(place - gold_place),
                place,
                gold_place,
            )
            for place, predicted in enumerate(expressions)
            for gold_place, gold in enumerate(gold_expressions)
        )
    )
    pairs: dict[int, int] = {}
    for score, _, place, gold_place in ways:
        if (score <= -1 or rest) and place not in pairs and gold_place not in pairs.values():
            pairs[place] = gold_place
    if len(expressions) == len(gold_expressions) == 1:
        pairs = {0: 0}
    return [(expressions[place], gold_expressions[gold_place]) for place, gold_place in sorted(pairs.items())]


def _take(keys: list[str], wanted_key: str) -> bool:
    """Take a key out of a list, and return whether it was there."""
    if wanted_key in keys:
        keys.remove(wanted_key)
        return True
    return False


def _is_value(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    )


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Star)
