"""Whether a text is one query that only reads, as far as sqlglot can tell from the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from pytest_queryeval.core.model import Failure
from pytest_queryeval.languages.extract_query import text_follows
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.parsing import UnreadableError, split_prose
from pytest_queryeval.sandbox.driver import COMMANDS, first_word
from pytest_queryeval.text.formatting import one_line

QUERIES = frozenset(("select", "with", "values", "table", "from"))
UNREADABLE = "allowed: this cannot be read"  # in the message where sqlglot cannot parse a text, and in no other
# What writes or locks, anywhere in a query.
_FORBIDDEN = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.NextValueFor)
# Clauses of ClickHouse that change settings, such as the time limit, or the form of the answer.
_CLAUSES = ("settings", "format")
# By dialect, functions within a query that access files, networks, locks, sequences or other sessions, or run a text as
# SQL. No such list is complete: a role that may only read is what protects a database. U& writes names by the codes of
# their letters.
_CALL = r"(?=[\"`\]]?\s*\()"
_POSTGRES = rf"\b((?:pg_(?!catalog)\w+|lo_\w+|dblink\w*|set_config|query_to_xml\w*|nextval|setval){_CALL}|U&(?=\"))"
# Files and locks are refused by the tree, too. Values of the session outlive their query.
_MYSQL = (
    rf"\b((?:load_file|get_lock|release_\w*locks?|master_pos_wait|sys_exec|sys_eval|nextval|setval){_CALL}"
    r"|next\s+value\s+for|into\s+(?:outfile|dumpfile)|lock\s+in\s+share\s+mode"
    r"|(?:found_rows|row_count)(?=`?\s*\()|last_insert_id(?=`?\s*\(\s*[^)\s]))"
)
_SPARK = (
    rf"(\b(?:reflect|try_reflect|java_method|read_(?:files|kafka|kinesis|pubsub|pulsar|statestore)"
    r"|cloud_files|remote_query|http_request|(?:try_)?secret|list_secrets"
    rf"|identifier|input_file_\w+|(?:from|to)_(?:avro|protobuf)|ai_\w+){_CALL}"
    r"|\b_metadata\b"  # where a file is
    r"|\busing(?=\s*r?['\"]))"  # the program of TRANSFORM
)
_REACHING = {
    **dict.fromkeys(("mysql", "doris", "starrocks", "singlestore"), _MYSQL),
    "tsql": rf"\b(openrowset|openquery|opendatasource|xp_\w+|sp_\w+){_CALL}",
    "oracle": rf"\b((?:utl_|dbms_|owa_)\w+(?=\"?\s*\.)|(?:httpuritype|dburitype){_CALL})|\.\s*(nextval)\b",
    "sqlite": r"\b(load_extension|fts3_tokenizer|readfile|writefile|edit)[\"`\]]?\s*\(",
    "clickhouse": r"\b((?:url|file|s3|gcs|hdfs|remote|cluster|executable|azure|iceberg|delta|hudi|paimon|catboost|model"
    r")\w*|mysql|postgresql|mongodb|redis|sqlite|jdbc|odbc|hive|cosn|oss|ytsaurus|meilisearch|arrowflight"
    r"|merge|dictionary|input|reversednsquery|generateserialid)[\"`]?\s*\(",
    "snowflake": rf"\b(system\$\w+|result_scan|last_query_id|to_query|directory|infer_schema|get_presigned_url|ai_\w+"
    rf"|cortex\W+\w+){_CALL}|\.\s*(nextval)\b|->>|\b(?:from|join)\s+'?@(?=[\w~%\"])",
    "bigquery": rf"\b(external_query){_CALL}",
    "trino": r"\b(system\W+query)\b",
    "presto": r"\b(system\W+query)\b",
    "duckdb": rf"\b(setseed|json_execute_serialized_sql|query){_CALL}",
    **dict.fromkeys(("postgres", "redshift", "materialize", "risingwave"), _POSTGRES),
    **dict.fromkeys(("hive", "spark", "databricks"), _SPARK),
}
_FILE_FORMATS = ("avro", "binaryfile", "csv", "delta", "image", "json", "libsvm", "orc", "parquet", "text", "xml")
_RUN_COMMENT = re.compile(r"/\*M?!")
# Dialects in which a quoted name may have escapes, so that its text is not the name.
_ESCAPING = ("bigquery", "clickhouse")
# What sqlglot parses unlike databases, outside of texts and quoted names: templates, of which it skips
# `{# … #}`; comments within comments, which databases other than DuckDB may end at the first `*/`.
_MISREAD = re.compile(r"(?P<template>\{[#%{])")
_MISREAD_NESTED = re.compile(r"(?P<nested>/\*(?:(?!\*/).)*?/\*)", re.DOTALL)
NESTING = ("duckdb",)
# MySQL begins a comment with `--` only before a blank, and always with `#`. Variables outlive their query.
_MISREAD_MYSQL = re.compile(r"(?P<dashes>--(?![\x00-\x20\x7f]|\Z))|(?P<hash>#[>-])|(?P<variable>(?<!@)@(?!@)|:=)")
_NAMES = {
    "template": "braces of a template",
    "nested": "a comment within a comment",
    "dashes": "-- without a space behind it",
    "hash": "a comment that begins like an operator",
    "variable": "a variable",
}
_QUOTED = frozenset(
    (
        *(TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING),
        *(TokenType.UNICODE_STRING, TokenType.BYTE_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING),
        TokenType.IDENTIFIER,
    )
)


@lru_cache(maxsize=1024)
def refusal(query: str, dialect: str) -> Failure | None:
    """Return why `query` is not sent to a database of `dialect`; None if it is one query that only reads.

    A text that sqlglot cannot parse is refused, because nothing else shows that it only reads. The dialect "" is
    standard SQL.
    """
    failure = _refusal(query, dialect)
    if failure is None or failure.kind != "unsafe":
        return failure
    query_alone, prose = split_prose(query, dialect)
    return (_refusal(query_alone, dialect) or text_follows(prose)) if prose else failure


def _refusal(query: str, dialect: str) -> Failure | None:
    word = first_word(query, is_nesting=dialect in NESTING)
    if word in COMMANDS:
        return _unsafe(word.upper())
    if word not in QUERIES:
        return Failure(kind="invalid", message=f"no query starts with '{one_line(word)}'")
    if _RUN_COMMENT.search(query):
        return _unsafe("a comment that is run")
    if function := _reaching(query, dialect):
        return _unsafe(function)
    tokens, statements, error = parse_query(query, dialect).statements
    if tokens and (hidden := _hidden(query, tokens, dialect)):
        return _unsafe(hidden)
    match error:
        case None:
            return _beyond_reading(statements, dialect)
        case SqlglotError():
            message = f"only one query that reads is {UNREADABLE}, so it cannot be checked: {_reason(error)}"
            return Failure(kind="unsafe", message=message)
        case UnreadableError():
            return Failure(kind="invalid", message=f"the query is too intricate to be judged: {error}")
        case RecursionError():
            return Failure(kind="invalid", message="the query is nested too deeply")
    return Failure(kind="unsafe", message=f"only one query that reads is {UNREADABLE}: {type(error).__name__}")


def _beyond_reading(statements: Sequence[exp.Expr], dialect: str) -> Failure | None:
    """Return why parsed statements are not a single query that only reads; None if they are."""
    if len(statements) != 1:
        return _unsafe(f"these are {len(statements)} statements")
    (tree,) = statements
    if not isinstance(tree, exp.Query | exp.Values):
        return _unsafe(tree.key.upper())
    for node in tree.walk():
        if isinstance(node, exp.Table) and _REACHING.get(dialect) is _SPARK and _is_file(node):
            return _unsafe("a path instead of a table")
        if isinstance(node, exp.Query) and any(map(node.args.get, _CLAUSES)):
            return _unsafe(next(name for name in _CLAUSES if node.args.get(name)).upper())
        if isinstance(node, _FORBIDDEN) and not isinstance(node, exp.Query):  # which may be DDL, as it may hold some
            return _unsafe(node.key.upper())
    return None


def _is_file(table: exp.Table) -> bool:
    """Return whether Spark reads a table's name as a path: it contains one, or follows the name of a file format."""
    return "/" in table.name or "." in table.db or table.db.lower() in _FILE_FORMATS


def _reaching(query: str, dialect: str) -> str:
    """Return the name of a function in a query that does more than read; empty if there is none."""
    for pattern in [_REACHING[dialect]] if dialect in _REACHING else _REACHING.values() if not dialect else ():
        if call := re.search(pattern, query, re.IGNORECASE):
            return call[0].lstrip(". ")
    return ""


def _hidden(query: str, tokens: list[Token], dialect: str) -> str:
    """Return in words a part of a query that databases may read differently from sqlglot; empty if there is none.

    Also a part that outlives the query, or a function that comments hide.
    """
    if "${" in query and _REACHING.get(dialect) is _SPARK:  # a setting or a variable of the environment, in texts too
        return "${"
    words, unquoted_parts, end = [], [], 0
    for token in tokens:
        word = query[token.start : token.end + 1]
        words.append(word)
        if token.token_type in _QUOTED:
            unquoted_parts.append(query[end : token.start])
            end = token.end + 1
            if "\\" in word and token.token_type is TokenType.IDENTIFIER and dialect in _ESCAPING:
                return "an escape in a quoted name"
        elif dialect == "clickhouse" and not word.isascii():
            return "a character that is not ASCII"
    text = " ".join((*unquoted_parts, query[end:]))  # with comments
    patterns = [
        _MISREAD,
        *([] if dialect in NESTING else [_MISREAD_NESTED]),
        *([_MISREAD_MYSQL] if _REACHING.get(dialect) is _MYSQL else []),
    ]
    if match := next(filter(None, (pattern.search(text) for pattern in patterns)), None):
        return _NAMES[match.lastgroup or ""]
    return _reaching(" ".join(words), dialect)


def _reason(error: SqlglotError) -> str:
    """Return the parser's message on one line, without its excerpt of the query."""
    if isinstance(error, ParseError) and error.errors:
        first_error = error.errors[0]
        return one_line(
            f"{first_error.get('description')} (line {first_error.get('line')}, column {first_error.get('col')})"
        )
    return one_line(str(error))


def _unsafe(construct: str) -> Failure:
    return Failure(kind="unsafe", message=f"only one query that reads is allowed: {construct}")
