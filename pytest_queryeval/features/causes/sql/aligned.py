"""Two SQL queries in one naming: every column with its table, gold's tables by the names that predicted gives them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import permutations

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.trees.columns import Columns

MAX_SAME_TABLE = 4  # of which every assignment to gold's is tried
CLAUSES = ("from_", "joins", "where", "expressions", "group", "having", "qualify", "order", "limit", "offset")
_COMMUTATIVE = (exp.And, exp.Or, exp.EQ, exp.NEQ, exp.Add, exp.Mul)
_SWAPPED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_LAYOUT = frozenset(("big_int", "alias"))  # arguments that do not change what an expression means
_COUNTING = {"expressions", "from_"}  # the clauses of a query that counts the rows of another one
_SORTED_ALIASES = ("group", "having", "qualify", "order")  # clauses that may name items of SELECT


def sources(select: exp.Expr) -> dict[str, exp.Expr]:
    """Return the tables and nested queries in FROM by the names, in lower case, that their columns have."""
    first = select.args.get("from_")
    items: list[exp.Expr] = [first.this] if first is not None else []
    items += [join.this for join in select.args.get("joins") or ()]
    return {source.alias_or_name.lower(): source for source in items}


def key(node: exp.Expr | str | float | bool | None) -> str:
    """Return a text that is the same for expressions that mean the same, whatever their layout.

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
            return _literal_key(node)
        case exp.Table():
            return f"{node.name.lower()} {node.alias_or_name.lower()} {key_of_parts(node.args.get('joins'))}"
        case exp.Connector():
            return f"{node.key}({' '.join(sorted(key(operand) for operand in node.flatten()))})"
    kind, parts = type(node), [key(node.args.get("this")), key(node.args.get("expression"))]
    if kind in _SWAPPED:
        kind, parts = _SWAPPED[kind], parts[::-1]
    elif isinstance(node, _COMMUTATIVE):
        parts.sort()
    arguments = (
        f"{name}={key_of_parts(value) if isinstance(value, list) else key(value)}"
        for name, value in sorted(node.args.items())
        if name not in ("this", "expression") and name not in _LAYOUT and value not in (None, False, [])
    )
    return f"{kind.__name__}({' '.join((*parts, *arguments))})"


def _literal_key(literal: exp.Literal) -> str:
    if not literal.is_string:
        with suppress(ValueError):
            return str(float(literal.name))
    return repr(literal.name)


def key_of_parts(parts: Iterable[exp.Expr] | None) -> str:
    """Return the keys of several expressions in their order."""
    return " ".join(map(key, parts or ()))


def query_within(node: exp.Expr | None) -> exp.Expr | None:
    """Return the query in a subquery of any number of parentheses; None if it is not a query."""
    while isinstance(node, exp.Subquery | exp.Paren | exp.CTE):
        node = node.this
    return node if isinstance(node, exp.Query) else None


def counted_query(predicted: exp.Expr, gold: exp.Expr) -> exp.Expr | None:
    """Return the query whose rows gold counts, and no more than that, where predicted returns rows itself; else None.

    >>> from sqlglot import parse_one
    >>> gold = parse_one("SELECT count(*) FROM (SELECT a FROM t UNION SELECT a FROM u)")
    >>> counted_query(parse_one("SELECT a FROM t"), gold).sql()
    'SELECT a FROM t UNION SELECT a FROM u'
    >>> counted_query(parse_one("SELECT count(a) FROM t"), gold)
    """
    if not isinstance(gold, exp.Select) or {name for name, value in gold.args.items() if value} != _COUNTING:
        return None
    item = gold.expressions[0].unalias()
    is_count = len(gold.expressions) == 1 and isinstance(item, exp.Count) and isinstance(item.this, exp.Star)
    has_rows = not isinstance(predicted, exp.Select) or bool(predicted.args.get("group"))
    has_rows = has_rows or not any(item.find(exp.AggFunc) for item in predicted.expressions)
    return query_within(gold.args["from_"].this) if is_count and has_rows else None


def align(predicted: exp.Expr, gold: exp.Expr, schema: Schema, dialect: str) -> None:
    """Name the tables of both queries alike: those of gold are renamed, and all columns get the name of their table.

    Aliases and numbers that ORDER BY, GROUP BY and HAVING use for items of SELECT become these items.
    """
    owners = _qualify(gold, Columns(schema.tables, dialect))
    _qualify(predicted, Columns(schema.tables, dialect))
    names: dict[int, str] = {}
    for select, gold_select in _pairs(predicted, gold):
        _match_sources(select, gold_select, names)
    for source in [*gold.find_all(exp.Table), *gold.find_all(exp.Subquery)]:
        name = names.get(id(source))
        if name:
            is_own_name = isinstance(source, exp.Table) and source.name.lower() == name.lower()
            source.set("alias", None if is_own_name else exp.TableAlias(this=exp.to_identifier(name)))
    for column, owner in owners:
        if names.get(id(owner)):
            column.set("table", exp.to_identifier(names[id(owner)]))


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
    items = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for clause in _SORTED_ALIASES:
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
        for clause in CLAUSES:
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


def common_queries(query: exp.Expr) -> list[exp.Expr]:
    """Return the queries in WITH."""
    common = query.args.get("with_")
    return [] if common is None else [cte.this for cte in common.expressions]


def _nested(select: exp.Expr, clause: str) -> list[exp.Expr]:
    """Return the outermost queries within a clause, in the order of the text."""
    value = select.args.get(clause)
    parts = value if isinstance(value, list) else [value] if value is not None else []
    queries = [query for part in parts for query in part.find_all(exp.Query, bfs=False)]
    queries = [query for query in queries if not isinstance(query, exp.Subquery | exp.Table)]
    inner = {
        id(inner_query) for query in queries for inner_query in query.find_all(exp.Query) if inner_query is not query
    }
    return [query for query in queries if id(query) not in inner]


def _match_sources(predicted: exp.Select, gold: exp.Select, names: dict[int, str]) -> None:
    """Add the name that each source of a gold SELECT gets: that of its partner, else one that is not taken."""
    aliases_by_table, gold_aliases_by_table = _by_table(predicted), _by_table(gold)
    matched: dict[str, str] = {}
    for table, aliases in gold_aliases_by_table.items():
        matched |= _best_match(aliases, aliases_by_table.get(table, []), predicted, gold)
    members, used_names = sources(gold), {*sources(predicted)}
    for alias, source in members.items():
        if alias not in matched:
            name = source.alias_or_name
            free = (name, source.name, *(f"{name}_{number}" for number in range(2, len(members) + len(used_names) + 2)))
            matched[alias] = next(candidate for candidate in free if candidate.lower() not in used_names)
            used_names.add(matched[alias].lower())
    names_in_predicted = {alias: source.alias_or_name for alias, source in sources(predicted).items()}
    for alias, source in members.items():
        names[id(source)] = names_in_predicted.get(matched[alias], matched[alias])


def _by_table(select: exp.Expr) -> dict[str, list[str]]:
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
        moved = Counter((renamed.get(alias, alias), use) for (alias, use), times in gold_uses.items() for _ in [times])
        return sum((moved & uses).values())

    best = max(permutations(padded, len(golds)), key=agreement, default=())
    return {gold_alias: alias for gold_alias, alias in zip(golds, best, strict=False) if alias}


def _uses(select: exp.Select) -> Counter[tuple[str, str]]:
    """Return how each source is used: its alias, with the clause and the expression around a column of it."""
    uses: Counter[tuple[str, str]] = Counter()
    for clause in CLAUSES:
        part = select.args.get(clause)
        for node in part if isinstance(part, list) else [part] if part is not None else []:
            for column in node.find_all(exp.Column):
                parent = column.parent
                literal = parent.find(exp.Literal) if isinstance(parent, exp.Binary) else None
                uses[column.table.lower(), f"{clause} {column.name.lower()} {literal.name if literal else ''}"] += 1
    return uses
