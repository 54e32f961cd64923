"""One edit of a predicted SQL query, and how reports show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import CauseLabel

CLAUSES = ("FROM", "WHERE", "SELECT", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "SET")  # in the order of reports
_CLAUSE_OF = {"where": "WHERE", "expressions": "SELECT", "having": "HAVING", "qualify": "QUALIFY", "order": "ORDER"}
Area: TypeAlias = tuple[int, str]
"""The identity of a query, and a clause of it."""
Make: TypeAlias = Callable[[exp.Expr], object]
Step: TypeAlias = tuple[exp.Expr, Make]
Side: TypeAlias = "exp.Expr | str | tuple[Side, ...] | list[Side] | None"  # tuples are shown with commas


class Size(IntEnum):
    """How much of a query an edit changes; the smallest ones are tried first."""

    CONSTANT = 0
    """A constant or an operator."""
    PART = 1
    """A part of a clause, or a short clause."""
    SEVERAL = 2
    """Parts of several clauses, or the same part everywhere."""
    CLAUSE = 3
    """A clause where several things differ, or a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of the predicted query, made by functions that change copies of its nodes."""

    label: CauseLabel
    clause: str
    change: tuple[Side, Side]
    """What is there, and what should be."""
    within: exp.Expr
    """The query with the clause."""
    size: Size
    steps: tuple[Step, ...]
    """The nodes, each with the function that changes its copy."""

    @property
    def areas(self) -> list[Area]:
        """Return what the edit changes: a clause of a query, or its DISTINCT, then the clauses around the query."""
        areas: list[Area] = [(id(self.within), "DISTINCT" if "DISTINCT" in self.change else self.clause)]
        node = self.within
        while node.parent is not None:
            if isinstance(node.parent, exp.Select):
                areas.append((id(node.parent), _CLAUSE_OF.get(node.arg_key or "", "FROM")))
            node = node.parent
        return areas


def rank(edit: Edit) -> tuple[Size, int]:
    """Return the place of an edit in the order in which edits are tried."""
    return edit.size, CLAUSES.index(edit.clause)
