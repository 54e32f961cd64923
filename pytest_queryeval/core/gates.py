"""Gates, which the cases of a folder must meet together, and their rules: one object for each."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError, Location, QueryEvalError
from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.core.model import Threshold
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.report import GateMeasurement, GateReport, Measured, PendingGate
from pytest_queryeval.core.shapes import Shape, enum_shape
from pytest_queryeval.text.formatting import format_score, limits_text, pluralize

# A name and numbers. Greater numbers are stricter, so a maximum is negated: ("min",) with 0.8, ("max",) with -2.
Requirement: TypeAlias = tuple[tuple[str, ...], tuple[float, ...]]
# What cases add to the measure of a gate, by names of its rule.
Numbers: TypeAlias = Mapping[str, MutableSequence[float]]
Count: TypeAlias = Literal["unpredicted", "unscored", "rerun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate as the settings of a folder state it, with the place in them."""

    required: PendingGate
    """What it requires; `folder` is empty."""
    folder: Path
    location: Location


class GateKey(NamedTuple):
    """A key that gates in suites may have."""

    read: Callable[[Any], Any]
    """The reader of its node; by its shape, editors check values."""
    description: str
    """What editors and docs/reference/suites.md say about it."""
    is_required: bool = True


class GateRule(ABC):
    """A rule by which gates judge cases: the keys of such gates, what they measure, their limits, and their words.

    The name of the rule in `GATE_RULES` is a key that only its gates have; a gate with that key follows the rule.
    """

    example: ClassVar[str]
    """A gate of this rule in YAML."""
    needs_baseline: ClassVar[bool] = False
    """Whether it compares with a baseline; then only cases that ran in both runs count."""
    needs_all: ClassVar[str] = "its rule needs all cases"
    """Why its gates need all of their cases.

    Empty if it limits the mean of its metric: then some cases, drawn at random, can be enough to decide a gate.
    """
    needs_scores: ClassVar[bool] = True
    """Whether the metric of a gate is computed for its cases."""
    has_limits: ClassVar[bool] = True
    """Whether `min` and `max` limit its value, on the scale of its metric."""
    counts: ClassVar[tuple[Count, ...]] = ()
    """Which cases a report counts next to those in error."""
    number_text: ClassVar[staticmethod[[float], str]] = staticmethod(format_score)
    """Returns a value in a few digits."""
    no_value: ClassVar[str] = ""
    """Why a gate has no value, with `{metric}` for its metric; empty for the words for means and comparisons."""

    @abstractmethod
    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        """Return the keys that gates of this rule may have besides `where`, by name.

        `metric` is the reader of a metric's name, or of `pass_rate`.
        """

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        """Return what a gate requires, given the values of its keys.

        By default the limits `min` and `max` of its `metric`. All required keys are among the fields. If the fields
        contradict each other, raise `problem(message)`.
        """
        return requirement(fields["metric"], minimum=fields.get("min"), maximum=fields.get("max"))

    @abstractmethod
    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float] | None:
        """Return the numbers that a case adds to the measure of a gate, by names that the rule chooses.

        `earlier` is the same case in the baseline, None without it. Empty numbers leave the case out of the measure, as
        most cases in error; None if the gate is not about the case. The numbers must not depend on `min` and `max` of
        the gate.
        """

    @abstractmethod
    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        """Return the value of a gate, computed from the numbers of all its cases.

        `numbers` contains a list for each name that `observe` returned, and an empty list for any other name. The value
        is None if there are no numbers.
        """

    def is_met(self, gate: PendingGate, measured: Measured) -> bool:
        """Return whether a measured value meets the gate; by default, whether there is a value within the limits."""
        return measured["value"] is not None and limits_of(gate).admits(measured["value"])

    def subject(self, gate: PendingGate) -> str:
        """Return in words what the gate limits, by default its type and its metric: `sum of seconds`."""
        return f"{gate['type']} of {gate['metric']}"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        """Yield the requirements of a gate as names with numbers: the smaller a number, the less strict the gate.

        A gate that lacks a requirement of another gate is less strict, too. Gates of different runs are the same gate
        if their folder, metric, `where` and names of requirements are equal. By default the requirements are the
        limits, named by the type and the settings of the gate.
        """
        name, limits = (gate["type"], json.dumps(gate.get("settings"), sort_keys=True)), limits_of(gate)
        for limit, numbers in limit_requirements(limits.minimum, limits.maximum):
            yield (*name, *limit), numbers

    def shape(self, metric: Callable[[Any], str]) -> Shape:
        """Return the shape of a gate of this rule as a whole: its required keys and its allowed keys."""
        keys = self.keys(metric)
        required = [name for name, key in keys.items() if key.is_required]
        return {"required": required, "propertyNames": enum_shape([*keys, "where"])}

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        """Return whether the gate is met (True) or missed (False) whatever the cases that did not run score.

        None if they decide, and by default. `value` is the value over the `n` cases that ran, and `cases_not_run` is
        the number of the others.
        """
        return None

    def why_undecided(self, gate: PendingGate, measurement: GateMeasurement) -> str:
        """Return why a gate that is met proves nothing, for instance if its cases could not miss it.

        Empty if it proves something, and by default.
        """
        return ""

    def cases_text(self, gate: GateReport) -> str:
        """Return in words over how many cases the gate was evaluated, such as `12 cases`."""
        unit = RUN_METRICS[gate["metric"]].unit if gate["metric"] in RUN_METRICS else "case"
        return pluralize(gate["n"], "case" if self.needs_baseline else unit)

    def value_text(self, gate: GateReport, value: float, which: str) -> str:
        """Return the beginning of a sentence that states the value of a gate, by default "SUBJECT is VALUE".

        `which` says in words which cases the gate is about, such as " of hard cases in sql".
        """
        return f"{self.subject(gate)}{which} is {self.shown_value(gate, value)}"

    def limit_text(self, gate: PendingGate) -> str:
        """Return in words what the gate requires, to be put behind "this gate"; by default "needs at least 0.8"."""
        limits = limits_of(gate)
        return f"needs {limits_text(limits.minimum, limits.maximum)}"

    def shown_value(self, gate: GateReport, value: float) -> str:
        """Return the value as text, with enough digits to show on which side of the limits it lies."""
        limits = limits_of(gate)
        texts, is_met = (self.number_text(value), f"{value:.6g}", repr(value)), limits.admits(value)
        return next((text for text in texts if limits.admits(float(text.replace(",", ""))) is is_met), texts[-1])

    def __init_subclass__(cls) -> None:
        """Raise `QueryEvalError` for a rule that was written for an earlier version, which had `evidence`."""
        if "evidence" in vars(cls):
            remedy = "write `observe` and `measure` instead, as docs/developers/extending.md shows"
            raise QueryEvalError(f"the gate rule {cls.__name__} has `evidence`, as earlier versions did: {remedy}")


# A gate follows the first rule whose name is one of the gate's keys; a gate without such a key follows `limits`.
GATE_RULES: Registry[GateRule] = Registry(
    "rule for gates",
    group="pytest_queryeval.gate_rules",
    members={
        "limits": "pytest_queryeval.results.gates.rules:LIMITS",
        "no_regression": "pytest_queryeval.results.gates.rules:NO_REGRESSION",
        "max_regressions": "pytest_queryeval.results.gates.rules:MAX_REGRESSIONS",
        "sum": "pytest_queryeval.results.gates.rules:SUM",
    },
)


def requirement(metric: str, *, minimum: float | None = None, maximum: float | None = None) -> PendingGate:
    """Return what a gate on the limits of a metric requires, with empty values in its other fields.

    The rule may add `settings`; the reader of gates fills the type, the folder and the cases.
    """
    return {"type": "", "folder": "", "metric": metric, "where": {}, "min": minimum, "max": maximum, "cases": None}


def limits_of(gate: PendingGate) -> Threshold:
    """Return the limits of a gate as a threshold; for the type `max_regressions`, the maximum is that number."""
    maximum = gate["max_regressions"] if gate["type"] == "max_regressions" else gate["max"]
    return Threshold(minimum=gate["min"], maximum=maximum)


def limit_requirements(minimum: float | None, maximum: float | None) -> Iterator[Requirement]:
    """Yield a requirement for each limit that is not None; the maximum is negated, so that smaller is less strict."""
    if minimum is not None:
        yield ("min",), (minimum,)
    if maximum is not None:
        yield ("max",), (-maximum,)


def result_between(gate: PendingGate, low: float, high: float) -> bool | None:
    """Return True if a gate admits all values from `low` to `high`, False if it admits none; None if it admits some."""
    limits = limits_of(gate)
    if limits.admits(low) and limits.admits(high):
        return True
    is_below_all = not Threshold(minimum=limits.minimum).admits(high)
    is_above_all = not Threshold(maximum=limits.maximum).admits(low)
    return False if is_below_all or is_above_all else None
