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
    """A gate as the settings of a folder state it."""

    required: PendingGate
    """What it requires; `folder` is empty."""
    folder: Path
    location: Location


class GateKey(NamedTuple):
    """A key of gates."""

    read: Callable[[Any], Any]
    """The reader of its node; by its shape, editors check values."""
    description: str
    """What editors and docs/reference/suites.md say about it."""
    is_required: bool = True


class GateRule(ABC):
    """A rule by which gates judge cases: its keys, what it measures, its limits, and its words.

    Its name in `GATE_RULES` is a key that only its gates have; a gate with that key follows the rule.
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
        """Return the keys of its gates next to `where`; `metric` reads the name of a metric, or `pass_rate`."""

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        """Return what a gate with these fields requires, as `requirement` makes it; by default limits of its metric.

        All required keys are among the fields. If the fields contradict each other, raise `problem(message)`.
        """
        return requirement(fields["metric"], minimum=fields.get("min"), maximum=fields.get("max"))

    @abstractmethod
    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float] | None:
        """Return the numbers that a case adds to what the gate is measured on, by names of the rule's own.

        `earlier` is the same case in the baseline, None without one. Without numbers, as most cases in error, a case is
        left out; None if it does not count at all. `min` and `max` of the gate must not matter.
        """

    @abstractmethod
    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        """Return the value over the numbers of all cases by their names, none for other names; None without numbers."""

    def is_met(self, gate: PendingGate, measured: Measured) -> bool:
        """Return whether what was measured meets the gate; by default, whether its limits admit the value."""
        return measured["value"] is not None and limits_of(gate).admits(measured["value"])

    def subject(self, gate: PendingGate) -> str:
        """Return what the gate limits, in words."""
        return f"{gate['type']} of {gate['metric']}"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        """Yield the requirements of the gate: a gate with smaller numbers, or without one of them, is less strict.

        Gates of different runs with the same folder, metric, `where` and names of requirements are the same gate. By
        default the requirements are its limits, and gates of the same type and with the same settings are the same.
        """
        name, limits = (gate["type"], json.dumps(gate.get("settings"), sort_keys=True)), limits_of(gate)
        for limit, numbers in limit_requirements(limits.minimum, limits.maximum):
            yield (*name, *limit), numbers

    def shape(self, metric: Callable[[Any], str]) -> Shape:
        """Return the shape of its gates next to those of their keys."""
        keys = self.keys(metric)
        required = [name for name, key in keys.items() if key.is_required]
        return {"required": required, "propertyNames": enum_shape([*keys, "where"])}

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        """Return whether the gate is met or missed whatever its other cases score; None if these decide.

        `value` is the one over `n` cases, and `cases_not_run` is how many did not run.
        """
        return None

    def why_undecided(self, gate: PendingGate, measurement: GateMeasurement) -> str:
        """Return why a gate that is met decides nothing, as where its cases could not miss it; empty if it decides."""
        return ""

    def cases_text(self, gate: GateReport) -> str:
        """Return over how many cases the gate was evaluated."""
        unit = RUN_METRICS[gate["metric"]].unit if gate["metric"] in RUN_METRICS else "case"
        return pluralize(gate["n"], "case" if self.needs_baseline else unit)

    def value_text(self, gate: GateReport, value: float, which: str) -> str:
        """Return the value as the first half of a sentence; `which` says of which cases, as " of hard cases in sql"."""
        return f"{self.subject(gate)}{which} is {self.shown_value(gate, value)}"

    def limit_text(self, gate: PendingGate) -> str:
        """Return what the gate requires; "this gate" stands before it."""
        limits = limits_of(gate)
        return f"needs {limits_text(limits.minimum, limits.maximum)}"

    def shown_value(self, gate: GateReport, value: float) -> str:
        """Return the value with enough digits to show on which side of the limits it lies."""
        limits = limits_of(gate)
        texts, is_met = (self.number_text(value), f"{value:.6g}", repr(value)), limits.admits(value)
        return next((text for text in texts if limits.admits(float(text.replace(",", ""))) is is_met), texts[-1])

    def __init_subclass__(cls) -> None:
        """Raise `QueryEvalError` for a rule of an earlier version."""
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
    """Return what a gate requires; its rule may add `settings`, the reader of gates the rest."""
    return {"type": "", "folder": "", "metric": metric, "where": {}, "min": minimum, "max": maximum, "cases": None}


def limits_of(gate: PendingGate) -> Threshold:
    """Return the limits of a gate; without `min` or `max` there is no limit on that side."""
    maximum = gate["max_regressions"] if gate["type"] == "max_regressions" else gate["max"]
    return Threshold(minimum=gate["min"], maximum=maximum)


def limit_requirements(minimum: float | None, maximum: float | None) -> Iterator[Requirement]:
    """Yield limits as requirements."""
    if minimum is not None:
        yield ("min",), (minimum,)
    if maximum is not None:
        yield ("max",), (-maximum,)


def result_between(gate: PendingGate, low: float, high: float) -> bool | None:
    """Return whether all values from `low` to `high` meet a gate (True) or miss it (False); None if they differ."""
    limits = limits_of(gate)
    if limits.admits(low) and limits.admits(high):
        return True
    is_below_all = not Threshold(minimum=limits.minimum).admits(high)
    is_above_all = not Threshold(maximum=limits.maximum).admits(low)
    return False if is_below_all or is_above_all else None
