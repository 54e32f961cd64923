"""SQL: what its cases are scored by, what orders their rows, and names that a query has and a database does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import chain

from pytest_queryeval.comparison.ties import OpenQuery, OrderPlan, TieQuery
from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import SchemaUse
from pytest_queryeval.core.model import Case, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.extract_query import ENDS_WITH_PROSE, SQL_TEXT
from pytest_queryeval.languages.query_language import QueryLanguage
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.sandbox.driver import FILES_REFUSED, first_word

# What begins a part of a query that a semicolon cuts off.
_CLAUSE = re.compile(
    r"(?:AND|EXCEPT|GROUP|HAVING|INTERSECT|(?:\w+\s+)?JOIN|LIMIT|ON|OR|ORDER|UNION|WHERE)\b", re.IGNORECASE
)
_NAME = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")
_TABLE_OR_COLUMN = re.compile(r"\b(?:(table|relation|object|view)|column)\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"no such|not found|not exist|doesn't exist|unknown|cannot find|could not be resolved|missing FROM-clause entry",
    re.IGNORECASE,
)
_COLUMN_OF_TABLE = re.compile(r"does not have a column", re.IGNORECASE)
_AMBIGUOUS = re.compile(r"\bambiguous\b", re.IGNORECASE)
_SYNTAX = re.compile(r"near|unterminated|unrecognized token", re.IGNORECASE)
# By label, the first that applies: how databases, and what reads a query before them, describe its fault.
_ERRORS: Mapping[CauseLabel, re.Pattern[str]] = {
    "syntax": re.compile(
        r"syntax error|sql syntax|parser error|parse_syntax|unterminated|unrecognized token|incomplete input|nested too"
        r"|too long|too intricate|surrogate|text follows|starts with|no statement",
        re.IGNORECASE,
    ),
    "unknown-function": re.compile(
        r"unknown function|no such function|function.* (?:does not|doesn't) exist|number of arguments|routine"
        r"|parameter count",
        re.IGNORECASE,
    ),
    "grouping-error": re.compile(r"group(?:ed)? by|aggregat|group function", re.IGNORECASE),
    "wrong-type": re.compile(r"\btypes?\b|operator does not exist|\bcast|convert|input syntax for", re.IGNORECASE),
}
_NEAR = re.compile(r"""near ["'`](\w+)""", re.IGNORECASE)
_TOP = re.compile(r"\bSELECT\s+(?:DISTINCT\s+)?TOP\s*\(?\s*(\d+)", re.IGNORECASE)
_QUOTE_IN_TEXT = re.compile(r"'(\w+)'(\w+)")
_COMMA_BEFORE_CLAUSE = re.compile(r",\s*(FROM|WHERE|GROUP|ORDER|HAVING|LIMIT)\b", re.IGNORECASE)
_MISSPELT_FROM = re.compile(r"\bFORM\b", re.IGNORECASE)
# Words of which a query that leaves its answer open has one.
_MAY_BE_OPEN = re.compile(
    r"\b(?:limit|offset|fetch|top|over|distinct\s+on|group|count|sum|avg|min|max|total|first|last|list|any_value"
    r"|arbitrary|arg\w+|m(?:ax|in)_by|\w*concat\w*|\w+_agg|\w+_array)\b",
    re.IGNORECASE,
)
_OWN_HINT = re.compile(r"did you mean|perhaps you meant|candidate", re.IGNORECASE)


def name_label(message: str) -> CauseLabel | None:
    """Return the label of a database's message on a name: unknown, table or column, or ambiguous.

    None for other messages.

    >>> name_label("no such column: nme"), name_label('relation "singers" does not exist')
    ('unknown-column', 'unknown-table')
    >>> name_label('near "FORM": syntax error')
    >>> name_label("ambiguous column name: id"), name_label("Column 'id' in field list is ambiguous")
    ('ambiguous-column', 'ambiguous-column')
    """
    about = _TABLE_OR_COLUMN.search(message)
    if about is None:
        return None
    if _COLUMN_OF_TABLE.search(message):
        return "unknown-column"
    if _AMBIGUOUS.search(message):
        return "ambiguous-column"
    if not _UNKNOWN.search(message):
        return None
    return "unknown-table" if about[1] else "unknown-column"


def invalid_label(message: str) -> CauseLabel:
    """Return the label of a database's message on a query that it cannot run; "invalid" if no label fits.

    >>> invalid_label('near "FORM": syntax error'), invalid_label("no such function: iif2")
    ('syntax', 'unknown-function')
    >>> invalid_label("misuse of aggregate: count()"), invalid_label("operator does not exist: text > integer")
    ('grouping-error', 'wrong-type')
    >>> invalid_label("1st ORDER BY term out of range - should be between 1 and 2")
    'invalid'
    """
    if (label := name_label(message)) is not None:
        return label
    first_line = message.partition("\nLINE ")[0]  # the query follows it
    return next((label for label, error in _ERRORS.items() if error.search(first_line)), "invalid")


def nearest_name(query: str, message: str, schema: Schema) -> str:
    """Return `: did you mean …` for a database's message on an unknown table or column; else an empty text.

    A message that has its own suggestion gets none.

    >>> schema = Schema(tables={"singer": ("id", "name"), "concert": ("id",)})
    >>> nearest_name("SELECT s.nme FROM singer s", "no such column: s.nme", schema)
    ": did you mean 'name'?"
    >>> nearest_name("SELECT * FROM singers", 'relation "singers" does not exist', schema)
    ": did you mean 'singer'?"
    """
    about = _TABLE_OR_COLUMN.search(message)
    if about is None or _OWN_HINT.search(message):
        return ""
    names_in_query = {name for path in _NAME.findall(query.lower()) for name in path.split(".")}
    columns = {name: schema.tables[name] for name in schema.tables if name in names_in_query} or schema.tables
    schema_names = schema.tables if about[1] else dict.fromkeys(chain.from_iterable(columns.values()))
    names_in_message = (path.rpartition(".")[2] for path in _NAME.findall(message.lower()))
    unknown = next((name for name in names_in_message if name in names_in_query and name not in schema_names), None)
    return "" if unknown is None else did_you_mean(unknown, schema_names)


def syntax_hint(query: str, message: str, schema: Schema) -> str:
    """Return the hint on a known mistake, for a database's message on a text that it cannot parse.

    Return an empty text if no mistake is known.

    >>> schema = Schema(tables={"order": ("id", "group")})
    >>> syntax_hint("SELECT TOP 5 id FROM t", 'near "5": syntax error', schema)
    ': TOP belongs to other databases: write LIMIT 5 at the end'
    >>> syntax_hint("SELECT id FROM order", 'near "order": syntax error', schema)
    ': this is a reserved word: write the name in quotes, "order"'
    >>> syntax_hint("SELECT id FROM t WHERE name = 'Bob's'", 'near "s": syntax error', schema)
    ": a single quote within a text is written twice, as in 'Bob''s'"
    """
    from pytest_queryeval.languages.sql.dialects import quote_in

    if not _SYNTAX.search(message):
        return ""
    if query.count("'") % 2 and (quote := _QUOTE_IN_TEXT.search(query)):
        return f": a single quote within a text is written twice, as in '{quote[1]}''{quote[2]}'"
    if top := _TOP.search(query):
        return f": TOP belongs to other databases: write LIMIT {top[1]} at the end"
    near = _NEAR.search(message)
    quoted_name = quote_in("mysql" if "server version" in message else "")(near[1]) if near else ""
    columns = chain.from_iterable(schema.tables.values())
    if near and quoted_name != near[1] and near[1].lower() in map(str.lower, chain(schema.tables, columns)):
        return f": this is a reserved word: write the name in quotes, {quoted_name}"
    if comma := _COMMA_BEFORE_CLAUSE.search(query):
        return f": remove the comma before {comma[1].upper()}"
    return ": did you mean FROM instead of FORM?" if _MISSPELT_FROM.search(query) else ""


class Sql(QueryLanguage):
    """The kind `sql`: how its cases are read, and how its queries are analysed."""

    name = "sql"
    language = SQL_TEXT
    default_metrics = ("execution_accuracy", "row_matching_f1", "soft_f1", "exact_set_match", "valid_query")
    options = frozenset({"dialect"})

    def check(self, options: Mapping[str, JsonValue]) -> None:
        from pytest_queryeval.languages.sql.dialects import check_dialect

        check_dialect(options.get("dialect", ""))

    def parses(self, query: str, dialect: str) -> bool:
        """Return whether a text is a query, or statements of which the first changes data."""
        from pytest_queryeval.languages.sql.parsing import changes_data

        return super().parses(query, dialect) or changes_data(parse_query(query, dialect).statements)

    def after_prose(self, answer: str, dialect: str) -> str:
        query = super().after_prose(answer, dialect)
        if not query:
            return ""
        from pytest_queryeval.languages.sql.parsing import has_detached_alias

        return "" if has_detached_alias(query, dialect, parse_query(query, dialect).statements.tokens) else query

    def text_hint(self, query: str) -> str:
        hint = super().text_hint(query)
        if hint or ";" not in query or not self.language.start.match(query):
            return hint
        from pytest_queryeval.languages.sql.parsing import split_prose

        _, prose = split_prose(query, "")
        return ENDS_WITH_PROSE if prose and not _CLAUSE.match(prose) else ""

    def translate(self, query: str, dialect: str, target: str) -> str:
        if not dialect or not target:
            side = "the source of golds" if not dialect else "the source"
            raise ValueError(f"sqlglot has no name for the dialect of {side}")
        if dialect == target:
            return query
        from pytest_queryeval.languages.sql.dialects import in_dialect

        tree = parse_query(query, dialect).whole_tree
        if tree is None:
            raise ValueError(f"sqlglot cannot read it as {dialect}: {parse_query(query, dialect).problem}")
        return in_dialect(tree, target)

    def name_hint(self, query: str, message: str, schema: Schema) -> str:
        return nearest_name(query, message, schema) or syntax_hint(query, message, schema)

    def refusal_remedy(self, query: str, message: str, case: Case) -> str:
        from pytest_queryeval.languages.sql.parsing import are_queries, changes_data

        statements = parse_query(query, case.settings.dialect).statements
        if first_word(query) == "explain":
            return "write the query without EXPLAIN"
        if len(statements.trees) > 1 and are_queries(statements):
            return "write several right queries as a list under `gold_any`"
        is_change = changes_data(statements) and first_word(query) != "copy"
        if is_change and not (case.settings.source and case.settings.source.writes):
            return "if it is meant to change data, add `writes: true`"
        if FILES_REFUSED in message:
            return "name the file as a table of the source, {duckdb: {tables: {NAME: FILE}}}, and read FROM NAME"
        return "write one query that only reads, such as SELECT"

    def failure_label(self, failure: Failure) -> CauseLabel:
        return invalid_label(failure.message) if failure.kind == "invalid" else super().failure_label(failure)

    def difficulty(self, query: str, dialect: str) -> str | None:
        return parse_query(query, dialect).difficulty

    def features(self, query: str, dialect: str) -> tuple[str, ...]:
        return parse_query(query, dialect).features

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        text = query.lower()
        if "order" not in text and "limit" not in text:  # nothing that a parse could find
            return None
        from pytest_queryeval.languages.sql.order import order_plan

        return order_plan(query, table.columns, len(table.rows), case.settings.dialect)

    def sort_key_query(self, query: str, table: Table, case: Case) -> TieQuery | None:
        if "order" not in query.lower():
            return None
        from pytest_queryeval.languages.sql.order import sort_key_query

        return sort_key_query(query, table.columns, case.settings.dialect)

    def open_query(self, query: str, case: Case, schema: Callable[[], Schema]) -> OpenQuery | None:
        if not _MAY_BE_OPEN.search(query):  # nothing that a parse could find
            return None
        from pytest_queryeval.languages.sql.guided import open_query

        return open_query(query, case.settings.dialect, schema)

    def schema_use(self, query: str, case: Case, schema: Schema) -> SchemaUse:
        from pytest_queryeval.languages.sql.reads import what_is_read

        reads = what_is_read(query, case.settings.dialect, schema)
        if not reads.is_whole or reads.problems:
            raise ValueError(reads.problems[0])
        names = [(".".join(read.table).lower(), read.column.lower()) for read in reads.reads if read.form != "function"]
        return SchemaUse(
            frozenset(table for table, column in names if not column),
            frozenset(f"{table}.{column}" for table, column in names if column),
        )

    def reads_no_data(self, query: str, dialect: str) -> bool:
        from pytest_queryeval.languages.sql.rewriting import tables_in

        tree = parse_query(query, dialect).whole_tree
        return tree is not None and not tables_in(tree)

    def reads_clock(self, query: str, dialect: str) -> str:
        from pytest_queryeval.languages.sql.rewriting import clock_reading

        tree = parse_query(query, dialect).whole_tree
        return "" if tree is None else clock_reading(tree, dialect)

    def random_part(self, query: str, dialect: str) -> str:
        from pytest_queryeval.languages.sql.rewriting import RANDOM, first_call

        tree = parse_query(query, dialect).whole_tree
        return "" if tree is None else first_call(tree, dialect, RANDOM)

    def without_data(self, query: str, dialect: str) -> str | None:
        from pytest_queryeval.languages.sql.rewriting import with_empty_tables

        tree = parse_query(query, dialect).whole_tree
        return None if tree is None else with_empty_tables(tree, dialect)

    def normal_text(self, query: str, dialect: str) -> str:
        return parse_query(query, dialect).canonical_text

    def selected_columns(self, query: str, dialect: str) -> tuple[str, ...] | None:
        from pytest_queryeval.languages.sql.columns import selected_columns

        parsed_query = parse_query(query, dialect)
        if parsed_query.whole_tree is None:
            raise ValueError(parsed_query.problem)
        return selected_columns(parsed_query.whole_tree)

    def read_problem(self, query: str, dialect: str) -> str:
        return parse_query(query, dialect).problem


SQL = Sql()
