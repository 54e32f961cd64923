"""The text of a changed SQL query, as people write SQL."""

from __future__ import annotations

from sqlglot import Dialect, ErrorLevel, Generator, exp

_BEFORE = (exp.In, exp.Like, exp.ILike, exp.Between, exp.Glob, exp.RegexpLike)  # conditions with NOT before their word


def writer(dialect: str) -> Generator:
    """Return what writes trees in a dialect, without comments and warnings."""
    return Dialect.get_or_raise(dialect).generator(comments=False, unsupported_level=ErrorLevel.IGNORE)


def write(tree: exp.Expr, generator: Generator) -> str:
    """Return the text of a tree, in which `NOT a IN (1)` becomes `a NOT IN (1)`.

    Raise any error for a tree that sqlglot cannot write.

    >>> from sqlglot import parse_one
    >>> write(parse_one("NOT a IN (1) AND NOT b IS NULL AND NOT c = 1"), writer(""))
    'a NOT IN (1) AND b IS NOT NULL AND NOT c = 1'
    """
    for negation in [node for node in tree.walk() if isinstance(node, exp.Not)]:
        condition = negation.this
        if isinstance(condition, _BEFORE):
            condition.set("this", exp.Var(this=f"{generator.generate(condition.this)} NOT"))
        elif isinstance(condition, exp.Is):
            condition.set("expression", exp.Var(this=f"NOT {generator.generate(condition.expression)}"))
        else:
            continue
        tree = condition.pop() if negation is tree else tree
        negation.replace(condition)
    return generator.generate(tree, copy=False)
