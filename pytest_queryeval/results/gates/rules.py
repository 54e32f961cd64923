"""The rule of a gate, with a stand-in for rules that are not registered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import GATE_RULES, Evidence, GateKey, GateRule, Requirement
from pytest_queryeval.core.report import CaseReport, GateMeasurement, GateReport, PendingGate


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
        """Yield everything that the gate states: how strict it is cannot be told, so any change counts."""
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
