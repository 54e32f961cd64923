"""The statements of a text for PostgreSQL that may change data, checked by sqlglot before they are sent."""

from __future__ import annotations

import re
from itertools import groupby

from sqlglot import TokenType, exp

from pytest_queryeval.core.model import Failure
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.sandbox.driver import COMMANDS
from pytest_queryeval.text.formatting import one_line

REFUSED = "only statements that change or read tables are allowed"
ALLOWED_FIRST_WORDS = frozenset(("delete", "insert", "merge", "select", "table", "update", "values", "with"))
DEFINITION = re.compile(
    r"(?:create\s+(?:or\s+replace\s+)?(?:unique\s+)?|alter\s+|drop\s+)(?:table|view|index)\b", re.IGNORECASE
)
ALLOWED = (
    exp.Query,
    exp.Values,
    exp.Table,
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Create,
    exp.Alter,
    exp.Drop,
)
SYSTEM_SCHEMAS = ("information_schema", "pg_catalog", "pg_toast")


def read_statements(query: str) -> list[str] | Failure:
    """Return the statements of a text without comments before them; a failure if a statement is not allowed.

    Statements may read, change rows, and define tables, views and indexes. None of them ends a transaction, because
    their first words do not.
    """
    tokens, trees, error = parse_query(query, "postgres").statements
    groups = groupby(tokens or [], key=lambda token: token.token_type is TokenType.SEMICOLON)
    token_lists = [list(group) for is_end, group in groups if not is_end]
    statements = [query[tokens_of[0].start : tokens_of[-1].end + 1] for tokens_of in token_lists]
    for statement in statements:
        word = re.match(r"\w*", statement.lstrip("( \n\t"))
        name = word[0].lower() if word else ""
        if name in ALLOWED_FIRST_WORDS or DEFINITION.match(statement):
            continue
        if name in COMMANDS:
            return _unsafe(" ".join(statement.split()[:2]).upper())
        return Failure(kind="invalid", message=f"no statement starts with '{one_line(name or statement[:20])}'")
    if error is not None:
        return _unsafe(f"this cannot be read: {one_line(str(error).splitlines()[0] if str(error) else '')}")
    if not statements:
        return Failure(kind="invalid", message="the text contains no statement")
    for tree in trees:
        if refused := _forbidden_construct(tree):
            return _unsafe(refused)
    return statements


def _forbidden_construct(tree: exp.Expr) -> str:
    """Return the construct of a statement that is not allowed; empty if all is allowed."""
    if not isinstance(tree, ALLOWED):
        return tree.key.upper()
    for node in tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Alter, exp.Drop):
        target = node.this.this if isinstance(node.this, exp.Schema) else node.this
        if isinstance(target, exp.Table) and (target.db.lower() in SYSTEM_SCHEMAS or target.name.lower()[:3] == "pg_"):
            return f"{node.key.upper()} {target.name}"
        if isinstance(target, exp.Table) and target.db.lower().startswith("pg_temp"):
            return "temporary tables"
    return "" if tree.find(exp.Command) is None else "a command"


def _unsafe(construct: str) -> Failure:
    return Failure(kind="unsafe", message=f"{REFUSED}: {construct}")
