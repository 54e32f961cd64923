"""A wrong variant of a gold query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A query that differs from gold in one place, as a wrong prediction might.

    `operator` names the sort of change, `clause` where it is and `change` what it is. `equivalent` is the reason for
    which the query is known to answer as gold on any data that keeps the declared constraints; empty for the others.
    """

    query: str
    operator: str
    clause: str
    change: str
    equivalent: str = ""
