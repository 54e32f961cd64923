"""Semantic models of Snowflake's Cortex Analyst, whose verified queries become cases.

The form of models: https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-analyst/semantic-model-spec
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.features.transfer.importers.databases import Databases
from pytest_queryeval.features.transfer.importers.keys import check_request, gold_value
from pytest_queryeval.features.transfer.importers.predictions import import_records
from pytest_queryeval.features.transfer.importers.records import (
    Record,
    RecordError,
    numbered_records,
    read_yaml_file,
)
from pytest_queryeval.languages.sql.parsed_query import parse_query
from pytest_queryeval.text.formatting import one_line

DIALECT = "snowflake"
PREFIX = "__"  # of a logical table in a query
COLUMNS = ("dimensions", "time_dimensions", "facts", "measures")
BASE_TABLE = ("database", "schema", "table")


def import_cortex(request: ImportRequest) -> Import:
    """Return a case for each verified query; its logical tables are common table expressions over base tables."""
    check_request(request, kind="sql")
    databases = Databases(request, request.source)
    file = file_at(request.source)
    model = read_yaml_file(file)
    tables, queries = (model.get("tables"), model.get("verified_queries")) if isinstance(model, dict) else (None, None)
    if not isinstance(tables, list) or not isinstance(queries, list):
        missing = "verified_queries" if isinstance(tables, list) else "tables"
        raise file.problem(f"is not a semantic model with verified queries: expected a list `{missing}`")
    logical_tables = {
        table.text("name").lower(): table for table in numbered_records(tables, "table") if table.text("name")
    }

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared("sql")
        query = gold_value(record.required("sql"), "sql")
        question = record.text("question")
        if not question.strip():
            raise RecordError("it has no question")
        return ImportedCase(id=id_, keys={"question": question, "gold": physical_query(str(query), logical_tables)})

    records = numbered_records(queries, "query")
    settings = {"kind": "sql", **databases.settings}
    return import_records(request, records, lambda record: record.id("name"), case_of, settings=settings)


def physical_query(query: str, logical_tables: Mapping[str, Record]) -> str:
    """Return a query on logical tables, which are by name in lower case, as one on base tables.

    The text of the query stays as it is behind its new common table expressions. Raise `RecordError` if it cannot be
    read, or a table of the model has no columns.
    """
    tokens, statements, error = parse_query(query, DIALECT).statements
    if error is not None or len(statements) != 1 or not isinstance(statements[0], exp.Query):
        reason = f": {one_line(str(error)).partition('. ')[0]}" if isinstance(error, SqlglotError) else ""
        raise RecordError(f"its query is not one query in Snowflake's SQL{reason}")
    definitions = [f"{name} AS (\n{definition}\n)" for name, definition in _definitions(statements[0], logical_tables)]
    if not definitions:
        return query
    added = ",\n".join(definitions)
    if tokens[0].token_type is not TokenType.WITH:
        return f"WITH {added}\n{query}"
    keyword = tokens[1] if tokens[1].token_type is TokenType.RECURSIVE else tokens[0]
    return f"{query[: keyword.end + 1]} {added},\n{query[keyword.end + 1 :].lstrip()}"


def _definitions(tree: exp.Expr, logical_tables: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """Yield each logical table that a query reads, as it is written, with the query that makes it."""
    own_names = {expression.alias_or_name.lower() for expression in tree.find_all(exp.CTE)}
    seen_names: set[str] = set()
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if table.args.get("db") or name in own_names or name in seen_names:
            continue
        seen_names.add(name)
        logical_name = name.removeprefix(PREFIX)
        if logical_name in logical_tables:
            yield table.this.sql(DIALECT), _definition(logical_tables[logical_name])
        elif name.startswith(PREFIX):
            remedy = did_you_mean(logical_name, logical_tables)
            raise RecordError(f"it reads '{table.name}', and the model has no table '{logical_name}'{remedy}")


def _definition(table: Record) -> str:
    """Return the query of a logical table: the columns of the model, and those that its aggregates need."""
    name, base_table = table.text("name"), table.fields.get("base_table")
    if not isinstance(base_table, dict) or not base_table.get("table"):
        raise RecordError(f"the model's table '{name}' has no `base_table: {{table: …}}`")
    base_name = ".".join(str(base_table[part]) for part in BASE_TABLE if base_table.get(part))
    expressions: dict[str, str] = {}
    needed: dict[str, str] = {}
    for group in COLUMNS:
        columns = table.fields.get(group)
        for column in numbered_records(columns if isinstance(columns, list) else [], "column"):
            column_name = column.text("name")
            expression = column.text("expr").strip() or column_name
            if not column_name:
                raise RecordError(f"the {column.place} of the model's table '{name}' has no name")
            tree = parse_query(f"SELECT {expression}", DIALECT).whole_tree
            if tree is None:
                place = f"the model's column '{name}.{column_name}'"
                raise RecordError(f"{place} has an expression that cannot be read: {one_line(expression)}")
            if tree.find(exp.AggFunc) and not tree.find(exp.Window):
                needed |= {part.name.lower(): part.this.sql(DIALECT) for part in tree.find_all(exp.Column)}
            else:
                expressions[column_name] = expression
    known_names = {name.lower() for name in expressions}
    lines = [
        *(text if text.lower() == column.lower() else f"{text} AS {column}" for column, text in expressions.items()),
        *(text for column, text in needed.items() if column not in known_names),
    ]
    if not lines:
        raise RecordError(f"the model's table '{name}' has no columns")
    return f"  SELECT {', '.join(lines)}\n  FROM {base_name} AS {name}"  # noqa: S608 - a gold, which only reads
