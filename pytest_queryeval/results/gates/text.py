"""Gates and their results in words, by the rule of each; a rule that is not registered has a stand-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import GATE_RULES, Evidence, GateKey, GateRule, Requirement
from pytest_queryeval.core.report import GateMeasurement, GateReport, PendingGate
from pytest_queryeval.results.scope import folder_text, where_text
from pytest_queryeval.text.formatting import pluralize


class UnknownRule(GateRule):
    """A stand-in for a rule of another version of this package, or of a package that is not installed."""

    example = ""
    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        return {}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        raise problem("the rule of the gate is not known")

    def evidence(self, gate: PendingGate) -> Evidence:
        return NoEvidence()

    def subject(self, gate: PendingGate) -> str:
        return f"{gate['type']} of {gate['metric']}"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        """Yield everything that the gate states: how strict it is is unknown, so any change counts."""
        required_fields: dict[str, object] = {
            name: value for name, value in gate.items() if name in PendingGate.__annotations__
        }
        yield (json.dumps({**required_fields, "cases": None}, sort_keys=True),), ()

    def value_text(self, gate: GateReport, value: float) -> str:
        return self.number_text(value)

    def short_texts(self, gate: GateReport, value: float) -> tuple[str, str]:
        return self.number_text(value), ""


class NoEvidence:
    """The evidence of an unknown rule, which measures nothing."""

    def add(self, case: CaseReport, earlier: CaseReport | None) -> None:
        """Ignore a case."""

    def measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        """Return a measurement without a value."""
        return {"value": None, "n": 0, "errors": 0}, False


UNKNOWN = UnknownRule()


def rule_of(gate: PendingGate) -> GateRule:
    """Return the rule of a gate; `UNKNOWN` for one that is not registered here."""
    return GATE_RULES.get(gate["type"], UNKNOWN)


GATE_WORDS = {True: "met", False: "missed", None: "not evaluated"}


def gate_text(gate: GateReport) -> str:
    """Return what a gate is about, its folder and its result, in words."""
    return f"{gate_subject(gate)}{folder_text(gate['folder'])}: {_result_text(gate)}"


class GateParts(NamedTuple):
    """A gate and its result, as texts for separate places."""

    subject: str
    value: str
    about: str
    """What is needed and over how many cases, or why there is no result."""


def gate_parts(gate: GateReport) -> GateParts:
    """Return a gate and its result in few words, each part for a place of its own."""
    subject = gate_subject(gate)
    if gate["value"] is None or gate["reason"]:
        return GateParts(subject, "", gate["reason"])
    value, need = rule_of(gate).short_texts(gate, gate["value"])
    return GateParts(subject, value, " · ".join(filter(None, (need, *_about(gate)))))


def gate_line(gate: GateReport) -> str:
    """Return `gate_text` with the file of the gate first, as in pytest's short summary."""
    place = PurePosixPath(gate["folder"] or ".") / "queryeval.yaml"
    return f"{place} - {gate_subject(gate)}: {_result_text(gate)}"


def gate_subject(gate: PendingGate) -> str:
    """Return what a gate limits, and in which cases, in words."""
    return f"{rule_of(gate).subject(gate)}{where_text(gate['where'])}"


def _result_text(gate: GateReport) -> str:
    value = gate["value"]
    if value is None or (gate["ok"] is False and gate["reason"]):
        return gate["reason"]
    text = rule_of(gate).value_text(gate, value)
    return f"{gate['reason']} ({text})" if gate["ok"] is None else f"{text} ({', '.join(_about(gate))})"


def _about(gate: GateReport) -> list[str]:
    """Return over how many cases a gate was evaluated, and how many were left out."""
    about = [rule_of(gate).cases_text(gate)]
    if decided := gate.get("decided"):
        about += [f"{gate['errors']:,} in error counted as 0"] * bool(gate["errors"])
        return [*about, f"decided after {decided['after']:,} of {decided['of']:,}"]
    about += [f"{gate['errors']:,} in error not counted"] * bool(gate["errors"])
    return about + [ran_text(gate["ran"], gate["cases"])] * (gate["ran"] != gate["cases"])


def ran_text(ran: int, number: int | None) -> str:
    """Return how many cases of a gate ran, of a number that is None if it is not known."""
    if number is None:
        return f"{pluralize(ran, 'case')} ran, but other suite files below could not be read"
    return f"{ran:,} of {pluralize(number, 'case')} ran"
