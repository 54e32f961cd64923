"""The text of a changed SQL query, as people write SQL."""

from __future__ import annotations

from sqlglot import Dialect, ErrorLevel, Generator, exp

_BEFORE = (exp.In, exp.Like, exp.ILike, exp.Between, exp.Glob, exp.RegexpLike)  # conditions with NOT before their word


def writer(dialect: str) -> Generator:
    """Return what writes trees in a dialect, without comments and warnings."""
    return Dialect.get_or_raise(dialect).generator(comments=False, unsupported_level=ErrorLevel.IGNORE)


def write(tree: exp.Expr, generator: Generator) -> str | None:
    """Return the text of a tree that may be changed, in which `NOT a IN (1)` becomes `a NOT IN (1)`.

    None for one that sqlglot cannot write.

    >>> from sqlglot import parse_one
    >>> write(parse_one("NOT a IN (1) AND NOT b IS NULL AND NOT c = 1"), writer(""))
    'a NOT IN (1) AND b IS NOT NULL AND NOT c = 1'
    """
    try:
        return generator.generate(_with_not_inside(tree, generator), copy=False)
    except Exception:  # noqa: BLE001 - sqlglot fails with any error on trees that its parser does not make
        return None


def _with_not_inside(tree: exp.Expr, generator: Generator) -> exp.Expr:
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
    return tree
