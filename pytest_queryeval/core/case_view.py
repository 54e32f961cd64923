"""What a predictor sees of a case: everything about the question, and nothing about the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Case, Message

NO_GOLD = "predictors do not see gold"
_GOLD = frozenset({"gold", "gold_any", "gold_file", "gold_table", "golds"})
_HIDDEN = frozenset({*(field.name for field in fields(Case)), "predicted_file", "predicted_table"})


class _LazySchema:
    """The slot of a function that lists the schema: no field of the view, so that copies hold the text instead."""

    __slots__ = ("_list_schema",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView(_LazySchema):
    """A case as a predictor sees it.

    `conversation` is all that was said up to the question, which is its last message; empty if there is nothing but
    the question. `dialect` is what sqlglot calls the language of the queries. `difficulty` is None unless the suite
    states one: hardness is computed from gold. `source` is the name of what is queried. `schema` is for SQL the tables
    of the source as CREATE TABLE statements, for JSON the JSON Schema, else None; a source is listed when its schema is
    first read, and `SourceError` is raised where that fails. `metadata` is a copy for this call.
    """

    id: str
    question: str
    evidence: str = ""
    conversation: tuple[Message, ...] = ()
    kind: str = "sql"
    dialect: str = ""
    tags: tuple[str, ...] = ()
    difficulty: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    source: str | None = None
    schema: str | None = field(default=None, repr=False, compare=False)

    if not TYPE_CHECKING:  # type checkers should report attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            """List the schema on first use; for any other name, raise AttributeError with the reason."""
            if name == "schema":
                object.__setattr__(self, name, self._list_schema())
                return self.schema
            if name in _GOLD:
                raise AttributeError(NO_GOLD)
            visible = [field.name for field in fields(self)]
            if name in _HIDDEN:
                raise AttributeError(f"{NO_GOLD} or '{name}': they see {', '.join(visible)}")
            raise AttributeError(f"a case has no '{name}'{did_you_mean(name, visible)}")


def view_of(case: Case, list_schema: Callable[[], str | None] = lambda: None) -> CaseView:
    """Return what a predictor sees of a case in one call; `list_schema` is called when `schema` is first read."""
    view = CaseView(
        id=case.id,
        question=case.question,
        evidence=case.evidence,
        conversation=case.conversation,
        kind=case.settings.kind,
        dialect=case.settings.dialect,
        tags=case.tags,
        difficulty=case.difficulty,
        metadata=deepcopy(dict(case.metadata)),
        source=None if case.settings.source is None else case.settings.source.name,
    )
    object.__delattr__(view, "schema")
    object.__setattr__(view, "_list_schema", list_schema)
    return view
