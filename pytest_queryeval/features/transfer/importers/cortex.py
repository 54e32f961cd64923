"""Semantic models of Snowflake's Cortex Analyst, whose verified queries become cases.

The form of models: https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-analyst/semantic-model-spec
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportRequest, Reading
from pytest_queryeval.features.transfer.importers.fields import fixed_fields
from pytest_queryeval.features.transfer.importers.formats import list_records
from pytest_queryeval.features.transfer.importers.golds import gold_value
from pytest_queryeval.features.transfer.importers.reading import Record, RecordError, numbered_records, read_value
from pytest_queryeval.features.transfer.importers.records import Databases, check_request, import_cases
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import find_cte
from pytest_queryeval.languages.sql.dialects import quote_in
from pytest_queryeval.text.formatting import one_line

DIALECT = "snowflake"
PREFIX = "__"  # of a logical table in a query
COLUMNS = ("dimensions", "time_dimensions", "facts", "measures")
METRICS = "metrics"  # aggregates of columns, which once were among the measures
BASE_TABLE = ("database", "schema", "table")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WRITTEN_NAME = re.compile(r'"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_]*\$[A-Za-z0-9_$]*')  # as Snowflake reads it
# https://docs.snowflake.com/en/sql-reference/reserved-keywords, without the words that every SQL reserves
RESERVED_WORDS = frozenset(
    [
        *("connect", "current", "following", "gscluster", "ilike", "increment", "issue", "lateral", "localtime"),
        *("localtimestamp", "minus", "of", "organization", "qualify", "regexp", "revoke", "rlike", "row", "rows"),
        *("sample", "some", "start", "tablesample", "trigger", "try_cast", "unique", "view", "whenever"),
    ]
)


def import_cortex(request: ImportRequest) -> Import:
    """Return a case for each verified query of a semantic model, with its question and its name as id.

    Its logical tables become common table expressions over base tables. A query without a question or that cannot be
    changed is skipped.
    """
    check_request(request, kind="sql")
    file = file_at(request.source)
    model = read_value(file)
    problem = "is not a semantic model with verified queries: expected a list `{}`, as Cortex Analyst reads it"
    tables = list_records(file, model, "tables", "table", problem.format("tables"))
    records = list_records(file, model, "verified_queries", "query", problem.format("verified_queries"))
    logical_tables = {table.text("name").lower(): table for table in tables if table.text("name")}

    def adapt(record: Record) -> Record:
        query = gold_value(record.required("sql"), "sql")
        if not record.text("question").strip():
            raise RecordError("it has no `question`: add one")
        return replace(record, fields={**record.fields, "sql": physical_query(str(query), logical_tables)})

    databases = Databases(request, request.source, {"kind": "sql"})
    fields = fixed_fields("sql", id="name", question="question", gold="sql")
    return import_cases(request, Reading(records, fields), databases, adapt=adapt)


def physical_query(query: str, logical_tables: Mapping[str, Record]) -> str:
    """Return a query on logical tables as a query on base tables.

    `logical_tables` are the tables of the model by name in lower case. The query gets new common table expressions in
    front, and otherwise keeps its text. Only tables are renamed whose name one of the query's own expressions has.
    Raise `RecordError` if the query cannot be read or names an unknown table, or if a table of the model has no
    columns.
    """
    tokens, statements, error = parse_query(query, DIALECT).statements
    if error is not None or len(statements) != 1 or not isinstance(statements[0], exp.Query):
        is_unreadable = isinstance(error, SqlglotError)
        reason = one_line(str(error)).partition(". ")[0] if is_unreadable else "keep one SELECT"
        raise RecordError(f"its `sql` is not one query in Snowflake's SQL: {reason}")
    trees = Dialect.get_or_raise(DIALECT).parser().parse(tokens, query)  # with places, which those above lack
    tree = next(tree for tree in trees if isinstance(tree, exp.Query))
    query, definitions = _with_physical_names(query, tree, logical_tables)
    if not definitions:
        return query
    added = ",\n".join(definitions)
    if tokens[0].token_type is not TokenType.WITH:
        return f"WITH {added}\n{query}"
    keyword = tokens[1] if tokens[1].token_type is TokenType.RECURSIVE else tokens[0]
    return f"{query[: keyword.end + 1]} {added},\n{query[keyword.end + 1 :].lstrip()}"


def _with_physical_names(query: str, tree: exp.Query, logical_tables: Mapping[str, Record]) -> tuple[str, list[str]]:
    """Return the query with changed names of tables, and the definitions of the logical tables that it reads.

    A definition has the name that the query uses, unless a common table expression of the query has that name. Raise
    `RecordError` for a table that the model lacks.
    """
    names_in_use = {expression.alias.lower() for expression in tree.ctes}
    definitions: dict[str, str] = {}
    replacements: list[tuple[int, int, str]] = []
    for table in tree.find_all(exp.Table):
        logical_name = table.name.lower().removeprefix(PREFIX)
        if table.args.get("db") or find_cte(table) is not None or _reads_itself(table):
            continue
        if logical_name not in logical_tables:
            if not table.name.startswith(PREFIX):
                continue
            remedy = did_you_mean(logical_name, logical_tables)
            raise RecordError(f"it reads '{table.name}', and the model has no table '{logical_name}'{remedy}")
        name, alias = table.this.copy(), table.this.sql(DIALECT)
        while name.name.lower() in names_in_use:
            name.set("this", PREFIX + name.name)
        if name.name != table.name:
            text = name.sql(DIALECT) if table.alias else f"{name.sql(DIALECT)} AS {alias}"
            replacements.append((table.this.meta["start"], table.this.meta["end"] + 1, text))
        if name.name.lower() not in definitions:
            definition = _definition(logical_tables[logical_name])
            definitions[name.name.lower()] = f"{name.sql(DIALECT)} AS (\n{definition}\n)"
    for start, end, text in sorted(replacements, reverse=True):
        query = query[:start] + text + query[end:]
    return query, list(definitions.values())


def _reads_itself(table: exp.Table) -> bool:
    """Return whether a table is the common table expression that contains it: Snowflake needs no word RECURSIVE."""
    own = table.find_ancestor(exp.CTE)
    return own is not None and own.alias.lower() == table.name.lower() and isinstance(own.this, exp.SetOperation)


def _definition(table: Record) -> str:
    """Return the SELECT that defines a logical table: columns of the model, and columns that its aggregates need.

    Aggregates themselves are left out. Raise `RecordError` if the model lacks the base table, a name or a readable
    expression.
    """
    name, base_table = table.text("name"), table.fields.get("base_table")
    if not isinstance(base_table, dict) or not base_table.get("table"):
        raise RecordError(f"the model's table '{name}' has no `base_table: {{table: …}}`: add it")
    parts = [(part, base_table[part]) for part in BASE_TABLE if base_table.get(part)]
    for part, value in parts:
        if isinstance(value, dict | list):
            raise RecordError(f"the model's table '{name}' has no text as `base_table.{part}`: write a name")
    expressions: dict[str, str] = {}
    needed: dict[str, str] = {}
    aggregates: set[str] = set()
    for group, column in _grouped_columns(table):
        column_name = column.text("name")
        if not column_name:
            raise RecordError(f"the {column.place} of the model's table '{name}' has no `name`: add one")
        expression = column.text("expr").strip() or _identifier(column_name)
        selection = parse_query(f"SELECT {expression}", DIALECT)
        tree = selection.whole_tree
        values = tree.expressions if tree is not None and tree.args.get("from_") is None else []
        if tree is None or len(values) != 1 or isinstance(values[0], exp.Alias):  # a name or a table for the value
            place = f"the model's column '{name}.{column_name}'"
            problem = f"has an expression that cannot be read: {one_line(expression)}"
            raise RecordError(f"{place} {problem}: correct its `expr` to one value in Snowflake's SQL")
        tokens, *_ = selection.statements
        expression = selection.text[tokens[1].start : tokens[-1].end + 1]  # without comments around it
        if group == METRICS or (tree.find(exp.AggFunc) and not tree.find(exp.Window)):
            columns = [part for part in tree.find_all(exp.Column) if part.table.lower() in ("", name.lower())]
            needed |= {part.name.lower(): part.this.sql(DIALECT) for part in columns}
            aggregates.add(column_name.lower())
        else:
            expressions[column_name] = expression
    known_names = aggregates.union(name.lower() for name in expressions)
    lines = [
        *(
            text if text.lower() == _identifier(column).lower() else f"{text} AS {_identifier(column)}"
            for column, text in expressions.items()
        ),
        *(text for column, text in needed.items() if column not in known_names),
    ]
    if not lines:
        raise RecordError(f"the model's table '{name}' has no columns: add `dimensions` or `facts`")
    base_name = ".".join(_identifier(str(value)) for _, value in parts)
    return f"  SELECT {', '.join(lines)}\n  FROM {base_name} AS {_identifier(name)}"  # noqa: S608 - names are quoted


def _grouped_columns(table: Record) -> Iterator[tuple[str, Record]]:
    """Yield the columns of a logical table, each with the name of its group, such as `dimensions`."""
    for group in (*COLUMNS, METRICS):
        columns = table.fields.get(group)
        for column in numbered_records(columns if isinstance(columns, list) else [], "column"):
            yield group, column


def _identifier(name: str) -> str:
    """Return a name of a model as SQL, in quotes if it needs them; quoted reserved words are in upper case.

    >>> [_identifier(name) for name in ("sales", "Sales Data", 'a"b', '"a b"', "order", "start", "v$session")]
    ['sales', '"Sales Data"', '"a""b"', '"a b"', '"ORDER"', '"START"', 'v$session']
    """
    if _WRITTEN_NAME.fullmatch(name):
        return name
    quoted = quote_in(DIALECT)(name)
    is_reserved = quoted != name or name.lower() in RESERVED_WORDS
    return f'"{name.upper()}"' if _WORD.fullmatch(name) and is_reserved else quoted
