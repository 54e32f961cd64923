"""SQL dialects: their names, how they quote names, and queries of one in another, by sqlglot."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import SqlglotError

from pytest_queryeval.core.errors import SettingError, did_you_mean
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import mask_credentials

# Of databases whose names are like those of other dialects.
_OTHER_NAMES = {"mssql": "tsql", "sqlserver": "tsql", "mariadb": "mysql", "pg": "postgres"}
# A name that needs no quotes: none of the words that SQL reserves.
_PLAIN = re.compile(
    r"""(?!(?:all|alter|and|any|as|asc|between|by|case|cast|check|collate|column|constraint|create|cross|current_date
    |current_time|current_timestamp|default|delete|desc|distinct|drop|else|end|except|exists|false|fetch|for|foreign|from
    |full|grant|group|having|in|index|inner|insert|intersect|into|is|join|left|like|limit|natural|not|null|offset|on|or
    |order|outer|primary|references|right|select|set|table|then|to|true|union|unique|update|user|using|values|when|where
    |with)\Z)[a-z_][a-z0-9_]*""",
    re.IGNORECASE | re.VERBOSE,
)
MESSAGE_CHARACTERS = 200


def check_dialect(name: object) -> None:
    """Raise `SettingError` unless sqlglot has a dialect of this name; the empty name is standard SQL."""
    dialect_names = [dialect.value for dialect in Dialects]
    if name not in dialect_names:
        word = str(name).lower()
        hint = did_you_mean(_OTHER_NAMES.get(word, word), dialect_names)
        raise SettingError("dialect", f"unknown dialect '{mask_credentials(str(name))}'{hint}")


def quote_in(dialect: str, *, keep_case: bool = False) -> Callable[[str], str]:
    """Return a function that quotes a name if the dialect needs it.

    With `keep_case` it also quotes a name that the dialect would otherwise fold to upper or lower case.
    """
    rules = Dialect.get_or_raise(dialect)

    def quote(name: str) -> str:
        if _PLAIN.fullmatch(name) and not (keep_case and rules.case_sensitive(name)):
            return name
        return exp.to_identifier(name, quoted=True).sql(dialect=rules)

    return quote


def in_dialect(tree: exp.Expr, target: str) -> str:
    """Return a query in the dialect `target`; raise `ValueError` with the reason if sqlglot cannot write it.

    >>> from sqlglot import parse_one
    >>> in_dialect(parse_one("SELECT julianday(due), name FROM loan LIMIT 3, 5", dialect="sqlite"), "duckdb")
    'SELECT JULIANDAY(due), name FROM loan LIMIT 5 OFFSET 3'
    """
    try:
        return tree.sql(dialect=target, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        reason = one_line(str(error) or type(error).__name__, MESSAGE_CHARACTERS)
        raise ValueError(f"sqlglot cannot write it as {target}: {reason}") from error
