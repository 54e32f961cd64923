"""Predictors: how the system under test predicts the answer of a case, and what it sees of the case."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Case, Message, Prediction, PredictorSpec
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.shapes import SettingValidator

SEND_SCHEMA = "send_schema"  # a setting of programs and services
# What a system may see of a case besides its id, kind, question, evidence, conversation and metadata.
SURROUNDINGS = frozenset({"dialect", "difficulty", "schema", "source", "tags"})
NO_GOLD = "predictors do not see gold"
_GOLD = frozenset({"gold", "gold_any", "gold_file", "gold_table", "golds"})
_HIDDEN = frozenset({*(field.name for field in fields(Case)), "predicted_file", "predicted_table"})


class _LazySchema:
    """Holds the function that lists the schema, in a slot that is no field of the view.

    So copies of a view contain the schema's text instead of the function.
    """

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
            """Return the schema, listed on first use; for any other name, raise AttributeError with the reason."""
            if name == "schema":
                object.__setattr__(self, name, self._list_schema())
                return self.schema
            if name in _GOLD:
                raise AttributeError(f"{NO_GOLD}: answer from `case.question`")
            visible = [field.name for field in fields(self)]
            if name in _HIDDEN:
                raise AttributeError(f"{NO_GOLD} or '{name}': they see {', '.join(visible)}")
            raise AttributeError(f"a case has no '{name}'{did_you_mean(name, visible)}")


def view_of(case: Case, list_schema: Callable[[], str | None] = lambda: None) -> CaseView:
    """Return what a predictor sees of a case in one call, with a copy of its metadata.

    `list_schema` is called when `schema` is first read.
    """
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


class Predictor(Protocol):
    """The system under test as the run calls it; opened once in a session and closed at its end."""

    concurrency: int
    """The number of calls that may run at once, unless the suite sets it."""
    retries: int
    """How often a call with a temporary error is repeated, unless the suite sets it."""

    def predict(self, case: CaseView, trial: int) -> Prediction | Awaitable[Prediction]:
        """Return the system's answer to a case in a trial, counted from 1; raises `PredictorError` if there is none.

        A coroutine function runs on an event loop in a separate thread, together with other calls. It is cancelled when
        its time is up or the run ends, and must then leave no process and no connection behind. Any other function is
        called in the main thread, one call at a time, or in threads with a concurrency above 1.
        """

    def close(self) -> Awaitable[None] | None:
        """Free the predictor's resources; a coroutine is awaited on the event loop."""


class StoredPredictions(Protocol):
    """Answers that exist before the run. No system is called, so `predict` may see whole cases with gold."""

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the answer of a trial, counted from 1; raises `PredictorError` if there is none."""

    def close(self) -> None:
        """Free its resources."""


@runtime_checkable
class RegistersCases(Protocol):
    """A predictor whose answers exist before the run, and which compares them with the cases of the run."""

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Take all cases of the run, in its order; called once, before the first call of `predict`."""

    def remarks(self) -> Sequence[str]:
        """Return sentences for the user on answers that do not fit the registered cases."""


class PredictorOpener(Protocol):
    """Opens a predictor from its settings."""

    def __call__(self, spec: PredictorSpec) -> Predictor | StoredPredictions:
        """Return the opened predictor, without calling the system.

        Raises `PredictorError` if the settings do not work.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorType:
    """A sort of predictors, as suites name it: how it is opened, and how its settings are checked."""

    opener: PredictorOpener
    text_setting: str = ""
    """The setting that a text or a list alone stands for; empty if there is none."""
    read_text: Callable[[str], dict[str, JsonValue]] | None = None
    """Returns the settings of such a text, where it holds more than one."""
    check: Callable[[Mapping[str, JsonValue]], None] = lambda _: None
    """Raises `SettingError` for the first setting that cannot be right."""
    settings: Mapping[str, SettingValidator] | None = None
    """The validators that `check` uses, by which editors know the settings; None if they are not known."""
    check_files: Callable[[PredictorSpec], None] = lambda _: None
    """Raises `SettingError` for missing local files and functions; imports and starts nothing."""
    calls: bool = True
    """False if no system is called, so that there is nothing to wait for or to record.

    The predictor then opens `StoredPredictions`.
    """
    threads: bool = True
    """False if a function must stay in the main thread."""
    shared: bool = False
    """Whether all worker processes call one system, so that `concurrency` limits their calls together."""
    sends: Callable[[Mapping[str, JsonValue]], frozenset[str]] | None = None
    """Returns for settings which of `SURROUNDINGS` are sent with every question.

    None if the predictor gets the case view and may read all of it. What it may read identifies a recorded answer.
    """

    def sees(self, settings: Mapping[str, JsonValue]) -> frozenset[str]:
        """Return which of `SURROUNDINGS` an answer may depend on: all, unless `sends` names fewer."""
        return SURROUNDINGS if self.sends is None else self.sends(settings)


class PredictorRegistry(Registry[PredictorType]):
    """Predictor types by name. A registered function becomes a type that opens a predictor from any settings."""

    def _admit(self, member: Any) -> PredictorType:
        return member if isinstance(member, PredictorType) else PredictorType(opener=member)


PREDICTORS = PredictorRegistry(
    "predictor",
    group="pytest_queryeval.predictors",
    members={
        "inline": f"{__name__}.inline:INLINE",
        "file": f"{__name__}.file:FILE",
        "python": f"{__name__}.python:PYTHON",
        "hook": f"{__name__}.inline:HOOK",
    },
)
