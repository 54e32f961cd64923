"""The key `gates`: a key of each gate names its rule, and `where` selects the cases that it covers."""

from __future__ import annotations

import re
from typing import Any

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.gates import GATE_RULES, Gate, GateKey
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.core.model import Where
from pytest_queryeval.core.run_metrics import RUN_METRICS
from pytest_queryeval.core.shapes import Shape, either, shape, shape_of
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    Reader,
    entries,
    known_entries,
    list_of,
    mapping_of,
    required_text,
    text,
    unexpected,
)
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites.metric_keys import known_metric, metric_shape, read_limits

DEFAULT_RULE = "limits"
_WORDS = re.compile(r"(\w+)(?:\W+(\d+(?:\.\d+)?))?")  # of a gate that is written as text, as in `pass_rate >= 0.8`


def _where_readers() -> dict[str, Reader[Any]]:
    groups: dict[str, Reader[Any]] = dict.fromkeys(GROUPS.names(), required_text)
    return {**groups, "not": mapping_of(groups)}


@shape(lambda: shape_of(mapping_of(_where_readers())))
def read_where(node: Node) -> Where:
    """Read the values of groups that select cases, and under `not` the values that exclude cases."""
    return known_entries(node, _where_readers())


@shape(lambda: metric_shape(*RUN_METRICS.available()))
def read_gate_metric(node: Node) -> str:
    """Read the name of a metric, or of a run metric, which only gates limit; raise `CaseError`."""
    name = text(node)
    if name not in RUN_METRICS:
        return known_metric(name, node, besides=RUN_METRICS.names())
    try:
        RUN_METRICS[name]
    except QueryEvalError as error:  # of a feature or a package that cannot be imported
        raise node.problem(str(error)) from error
    return name


def gate_keys() -> dict[str, GateKey]:
    """Return the keys of all rules, and `where`; the first rule with a key describes it."""
    keys: dict[str, GateKey] = {}
    for rule_name in GATE_RULES.names():
        for name, key in GATE_RULES[rule_name].keys(read_gate_metric).items():
            keys.setdefault(name, key)
    return {**keys, "where": GateKey(read_where, "which cases count", is_required=False)}


def _gate_shape() -> Shape:
    """Return the shape of a gate of any rule."""
    keys = gate_keys()
    readers = {name: key.read for name, key in keys.items()}
    descriptions = {name: key.description for name, key in keys.items()}
    rules = [GATE_RULES[name].shape(read_gate_metric) for name in GATE_RULES.names()]
    return {**shape_of(mapping_of(readers, descriptions)), **either(*rules)}


@shape(_gate_shape)
def read_gate(node: Node) -> Gate:
    """Read a gate by the first rule whose name is a key of the gate, else by its limits."""
    if isinstance(node.value, str) and (words := _WORDS.match(node.value)):
        metric = words[1] if words[1] in RUN_METRICS or words[1] in METRICS else "NAME"
        raise unexpected(node, "a mapping", f": write {{metric: {metric}, min: {words[2] or 'NUMBER'}}}")
    try:
        keys = gate_keys()
    except QueryEvalError as error:  # a rule of another package that cannot be imported
        raise node.problem(str(error)) from error
    if stray := next((name for name in entries(node) if name not in keys and name in METRICS), None):
        raise node.problem(f"a gate names its metric under a key: write {{metric: {stray}, min: NUMBER}}")
    fields = known_entries(node, {name: key.read for name, key in keys.items()})
    rule_name = next((name for name in GATE_RULES.names() if name in fields), DEFAULT_RULE)
    rule = GATE_RULES[rule_name]
    keys_of_rule = rule.keys(read_gate_metric)
    for name, key in keys_of_rule.items():
        if key.is_required and name not in fields:
            hint = "a gate needs a metric: write {metric: NAME, min: NUMBER}"
            raise node.problem(hint if name == "metric" else f"'{rule_name}' needs '{name}': write {rule.example}")
    required = rule.requirement(fields, node.problem)
    if strays := [name for name in fields if name not in (*keys_of_rule, "where")]:
        stated_key = next(name for name in (rule_name, *keys_of_rule) if name in fields)
        raise node.problem(f"'{stated_key}' does not go with '{strays[0]}': write a gate for each")
    if rule.has_limits:
        read_limits(node, required["metric"], required["min"], required["max"])
    return Gate(required={**required, "type": rule_name, "where": fields.get("where", {})}, folder=node.file.folder)


read_gates = list_of(read_gate)
