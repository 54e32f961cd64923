"""Gates and their results in words."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from pytest_queryeval.core.report import GateReport, PendingGate
from pytest_queryeval.results.gates import ran_text
from pytest_queryeval.results.gates.rules import rule_of
from pytest_queryeval.results.scope import folder_text, where_text

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
