"""A change of one place of a query, and what is known about its SELECT."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.strength.sql.facts import Facts
from pytest_queryeval.languages.sql.columns import Columns


class Edit(NamedTuple):
    """A node of a tree, and what replaces it; None removes it.

    `operator` names the type of change. `change` describes it if the texts of both nodes would be too long.
    `equivalent` is why the answer of the query stays the same; empty if that is not known.
    """

    node: exp.Expr
    new: exp.Expr | None
    operator: str
    change: str = ""
    equivalent: str = ""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A SELECT to change, with the tables of the source, what names refer to, and how answers are compared."""

    select: exp.Select
    tables: Tables
    columns: Columns
    policy: Policy
    dialect: str

    @cached_property
    def facts(self) -> Facts:
        """What holds for its rows."""
        return self.facts_of(self.select)

    def facts_of(
        self, select: exp.Select, *, without: Collection[exp.Expr] = (), loosened: exp.Join | None = None
    ) -> Facts:
        """Return what holds for the rows of a SELECT, see `Facts`."""
        return Facts(self.columns.names(select), self.tables, without=without, loosened=loosened)

    @property
    def clauses(self) -> Iterator[exp.Expr]:
        """The conditions of ON, WHERE and HAVING."""
        for join in self.select.args.get("joins") or ():
            if (on := join.args.get("on")) is not None:
                yield on
        for name in ("where", "having"):
            if (clause := self.select.args.get(name)) is not None:
                yield clause.this


def replaced(node: exp.Expr, **arguments: object) -> exp.Expr:
    """Return a copy of a node with other arguments."""
    copy = node.copy()
    for name, value in arguments.items():
        copy.set(name, value)
    return copy


def of_type(node: exp.Expr, type_: type[exp.Expr]) -> exp.Expr:
    """Return a node of another type with copies of the same arguments."""
    return type_(**node.copy().args)
