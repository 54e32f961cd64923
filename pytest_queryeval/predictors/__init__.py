"""The ways to ask the system under test: `Case -> Prediction`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pytest_queryeval.core.case_view import CaseView
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec
from pytest_queryeval.core.registry import Registry

SEND_SCHEMA = "send_schema"  # a setting of programs and services
# What a system may be told of a case beside its id, kind, question, evidence, conversation and metadata.
SURROUNDINGS = frozenset({"dialect", "difficulty", "schema", "source", "tags"})


class Predictor(Protocol):
    """Something that answers cases; opened once a session, closed at its end.

    `concurrency` is how many calls may be under way at once, and `retries` how often a call is made again whose error
    is temporary, unless the suite says otherwise.
    """

    concurrency: int
    retries: int

    def predict(self, case: CaseView, trial: int) -> Prediction | Awaitable[Prediction]:
        """Return the system's answer in a trial, counted from 1; raises `PredictorError` where there is none.

        As a coroutine function it is run on an event loop in a thread of its own, together with other calls, and
        cancelled when its time is up or the run ends: it must then leave no process and no connection behind. Else it
        is called in the main thread, in turn, or with a concurrency above 1 in threads.
        """

    def close(self) -> Awaitable[None] | None:
        """Free what the predictor holds; awaited on the event loop if it is a coroutine function."""


class StoredPredictions(Protocol):
    """Answers that are there already, opened once a session: nobody is asked, so cases are seen whole."""

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the answer of a trial, counted from 1; raises `PredictorError` where there is none."""

    def close(self) -> None:
        """Free what it holds."""


@runtime_checkable
class RegistersCases(Protocol):
    """A predictor that holds its answers already, and can compare them with the cases of a run."""

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Know all cases that the predictor will be asked for, in the order of the run; called once, before it."""

    def unused(self) -> Sequence[str]:
        """Sentences on the answers that none of the registered cases asks for."""


class PredictorOpener(Protocol):
    """Opens a predictor from its settings; raises `PredictorError` where they do not work."""

    def __call__(self, spec: PredictorSpec) -> Predictor | StoredPredictions:
        """Open it; nothing is asked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorType:
    """A predictor as suites name it.

    `text_setting` is what it sets where a single text, or a list, stands under its name; empty where that makes no
    sense. `check` raises `SettingError` for the first setting that cannot be right, and `check_files` for local files
    and functions that are not there: nothing is imported or started for that. `calls` is False where nothing is asked,
    so that there is nothing to wait for or to record: it then opens `StoredPredictions`. `threads` is False where a
    function must stay in the main thread. `shared` is True where all worker processes of a run ask one system, so that
    `concurrency` limits their calls together.

    `sends` tells for settings which of `SURROUNDINGS` are sent along with every question, None where the predictor is
    given the view and may read all of it: what may be seen identifies a recorded answer.
    """

    opener: PredictorOpener
    text_setting: str = ""
    check: Callable[[Mapping[str, Any]], None] = lambda _: None
    check_files: Callable[[PredictorSpec], None] = lambda _: None
    calls: bool = True
    threads: bool = True
    shared: bool = False
    sends: Callable[[Mapping[str, Any]], frozenset[str]] | None = None

    def sees(self, settings: Mapping[str, Any]) -> frozenset[str]:
        """Return which of `SURROUNDINGS` an answer may depend on."""
        return SURROUNDINGS if self.sends is None else self.sends(settings)


class PredictorRegistry(Registry[PredictorType]):
    """Predictors by name; a plain function that is registered opens one from any settings."""

    def _admit(self, member: Any) -> PredictorType:
        return member if isinstance(member, PredictorType) else PredictorType(opener=member)


PREDICTORS = PredictorRegistry(
    "predictor",
    group="pytest_queryeval.predictors",
    members={
        "inline": f"{__name__}.inline:INLINE",
        "file": f"{__name__}.file:FILE",
        "python": f"{__name__}.python:PYTHON",
        "command": f"{__name__}.command:COMMAND",
        "http": f"{__name__}.http:HTTP",
        "hook": f"{__name__}.hook:HOOK",
    },
)
