"""Readers of keys that name metrics: `metrics`, `thresholds`, `options`, and `gates`.

A key of each gate names its rule, and `where` selects the cases that it covers.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pytest_queryeval.core.errors import QueryEvalError, SettingError, UnknownNameError, did_you_mean, nearest
from pytest_queryeval.core.gates import GATE_RULES, Gate, GateKey
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import RUN_METRICS, Metric, RunMetric
from pytest_queryeval.core.model import Threshold, Where
from pytest_queryeval.core.shapes import (
    ANYTHING,
    TEXT,
    Shape,
    either,
    enum_shape,
    list_shape,
    mapping_shape,
    shape,
    shape_of,
)
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    MAX_SHOWN,
    Reader,
    each_entry,
    entries,
    json_mapping,
    known_entries,
    list_of,
    mapping_of,
    not_empty,
    number,
    required_text,
    text,
    unexpected,
)
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import METRICS, applies_to, better_of, can_be_missed, greatest_score, least_score
from pytest_queryeval.suites.variables import MissingExtraError, check_installed, expanded_text
from pytest_queryeval.text.formatting import one_line

# What other tools and papers call a metric.
OTHER_NAMES = {
    **dict.fromkeys(("exact_match", "exact", "em"), "'exact_set_match' (texts of queries) or 'exact_match_f1' (rows)"),
    **dict.fromkeys(("accuracy", "acc", "ex", "execution", "execution_match"), "'execution_accuracy'"),
    "f1": "'soft_f1'",
    **dict.fromkeys(("precision", "recall"), "'row_precision' and 'row_recall', or those of 'cell' and 'entity'"),
}
WORD_METRICS = frozenset({"bleu", "rouge", "chrf", "meteor", "levenshtein", "edit_distance", "bertscore", "codebleu"})
DEFAULT_RULE = "limits"
_WORDS = re.compile(r"(\w+)(?:\W+(\d+(?:\.\d+)?))?")  # of a gate that is written as text, as in `pass_rate >= 0.8`


def metric_shape(*other_names: str) -> Shape:
    """Return the shape of a metric's name, or of one of the `other_names`."""
    metrics = METRICS.available()
    families = [name for name, metric in metrics.items() if metric.parameter]
    names = [name for name in metrics if name not in families]
    pattern = _of_families(families)
    return either(enum_shape([*other_names, *names]), {"type": "string", "pattern": pattern})


def _of_families(names: Iterable[str]) -> str:
    """Return the pattern of the names of metrics in these families, such as `field[PATH]`."""
    return rf"^({'|'.join(names)})\[.+\]$"


def _by_metric(of_metric: Callable[[Metric], Shape]) -> Shape:
    """Return the shape of a mapping from names of metrics to values, whose shape `of_metric` returns."""
    metric_shapes: dict[str, Any] = {"type": "object", "properties": {}, "patternProperties": {}}
    for name, metric in METRICS.available().items():
        summary = (metric.function.__doc__ or "").strip().partition("\n")[0].removeprefix("Return ")
        of_name = {"description": summary, **of_metric(metric)}
        if metric.parameter:
            metric_shapes["patternProperties"][_of_families([name])] = of_name
        else:
            metric_shapes["properties"][name] = of_name
    return {**metric_shapes, "additionalProperties": False}


def limits_shape(max_score: float | None) -> Shape:
    """Return the shape of a threshold: a number, `{min, max}`, or null.

    Numbers are limited to `max_score`; None if that is not known.
    """
    limit: dict[str, Any] = {"type": "number"}
    if max_score is not None:
        limit["minimum"] = 0
        if not math.isinf(max_score):
            limit["maximum"] = max_score
    return either(limit, {**mapping_shape({"min": limit, "max": limit}), "minProperties": 1}, {"type": "null"})


def _threshold_shape(metric: Metric) -> Shape:
    # Most metrics are shares, whose shape `editor_schema` defines; draft-07 ignores what stands next to a reference.
    return {"allOf": [{"$ref": "#/definitions/share"}]} if metric.max_score == 1 else limits_shape(metric.max_score)


def _options_shape() -> Shape:
    """Return the shape of options by metric or kind; a kind has the options of the metrics that score it."""
    by_metric = _by_metric(lambda metric: mapping_shape(_with_paths(metric.option_shapes(), metric.paths)))
    kinds = {}
    for name, kind in KINDS.available().items():
        of_metrics: dict[str, Shape] = {}
        for metric_name, metric in METRICS.available().items():
            if applies_to(metric_name, name):
                of_metrics |= metric.option_shapes()
        options = {option: of_metrics.get(option, ANYTHING) for option in sorted(kind.options)}
        kinds[name] = mapping_shape(_with_paths(options, kind.paths))
    of_run = {name: mapping_shape(metric.options) for name, metric in RUN_METRICS.available().items() if metric.options}
    return {**by_metric, "properties": {**by_metric["properties"], **of_run, **kinds}}


def _with_paths(options: Mapping[str, Shape], paths: Iterable[str]) -> Mapping[str, Shape]:
    return {**options, **dict.fromkeys(paths, TEXT)}


@shape(metric_shape)
def read_metric(node: Node) -> str:
    """Return the name of a known metric that can be used; raises `CaseError` for other names."""
    return known_metric(text(node), node)


def known_metric(name: str, node: Node, *, besides: Iterable[str] = ()) -> str:
    """Return the name of a metric that can be used; raises `CaseError` at `node` otherwise.

    `besides` are extra names that may be meant, for the message.
    """
    try:
        check_metric(name, besides=besides)
    except QueryEvalError as error:  # unknown, or not importable: a metric of the user's, an extra that is missing
        raise node.problem(str(error)) from error
    return name


def check_metric(name: str, *, besides: Iterable[str] = ()) -> None:
    """Raise `QueryEvalError` unless a metric is known, is not a family, and has the extra that it needs.

    `besides` are extra names that may be meant, for the message.
    """
    if name in RUN_METRICS:
        raise UnknownNameError(_only_for_gates(name))
    if name.lower() in OTHER_NAMES and name not in METRICS:
        raise UnknownNameError(f"unknown metric '{name}': did you mean {OTHER_NAMES[name.lower()]}?")
    if name.lower() in WORD_METRICS and name not in METRICS:
        remedy = "use exact_set_match or partial_select_f1, which compare clauses, or add another metric"
        raise UnknownNameError(f"unknown metric '{name}': queries are not compared as text: {remedy}")
    if name not in METRICS and "[" not in name:
        raise UnknownNameError(f"unknown metric '{name}'{_nearest_metric(name, besides)}")
    metric = METRICS[name]
    if metric.parameter:
        kinds = [kind for kind in KINDS.available() if applies_to(name, kind)]
        remedy = f"write {name}[{metric.parameter.upper()}]"
        if len(kinds) < len(KINDS.available()):
            remedy = f"for {' or '.join(sorted(kinds))} {remedy}, else remove it"
        raise UnknownNameError(f"metric '{name}' needs a {metric.parameter}: {remedy}")
    if isinstance(metric.function, partial):  # of a family, with its parameter
        metric.check(metric.function.keywords)
    if not metric.extra:
        return
    try:
        check_installed([metric.extra])
    except MissingExtraError as error:
        raise QueryEvalError(f"metric '{name}' {error}") from error


def _only_for_gates(name: str) -> str:
    remedy = f"remove it here, and write `gates: [{{metric: {name}, min: NUMBER}}]` in a queryeval.yaml"
    return f"'{name}' is for gates only: {remedy}"


def _nearest_metric(name: str, besides: Iterable[str]) -> str:
    """Return the end of the message on an unknown metric: the nearest name, otherwise default metrics as examples."""
    if near := nearest(name, [*besides, *METRICS.names()]):
        return f": did you mean '{near}'?"
    if near := nearest(name, RUN_METRICS.available()):
        return f": {_only_for_gates(near)}"
    usual = (next(iter(kind.default_metrics), "") for kind in KINDS.available().values())
    return f": write a name from docs/reference/metrics.md, such as {', '.join(dict.fromkeys(filter(None, usual)))}"


@shape(lambda: list_shape(metric_shape()))
def read_metrics(node: Node) -> tuple[str, ...]:
    """Return names of metrics without repetition; raises `CaseError`."""
    if isinstance(node.value, dict):
        names = one_line(", ".join(node.value), MAX_SHOWN)
        raise unexpected(node, "a list", f": write [{names}], and minimums under `thresholds`")
    return tuple(dict.fromkeys(list_of(read_metric)(node)))


@shape(lambda: _by_metric(_threshold_shape))
def read_thresholds(node: Node) -> tuple[dict[str, Threshold | None]]:
    """Return a tuple with the thresholds by metric, to which those of nearer levels are appended; None for null.

    A number alone is a minimum, and refused if lower is better. Raises `CaseError`.
    """
    if node.empty:
        raise node.problem("thresholds are missing: write {METRIC: minimum}, or {} to require nothing")
    if node.form != "mapping":
        raise unexpected(node, "{METRIC: minimum}", ": name the metric, as in {execution_accuracy: 0.8}")
    return (each_entry(node, lambda name, value: _threshold(value, known_metric(name, value))),)


def _threshold(node: Node, name: str) -> Threshold | None:
    if node.empty:
        if not node.value:
            raise node.problem(f"the threshold of '{name}' is missing: write null to require none")
        return None
    max_score = METRICS[name].max_score
    expectation = "a number" if max_score is None or math.isinf(max_score) else f"a number from 0 to {max_score:g}"

    def limit(value: Node) -> float:
        return number(value, expectation)

    if node.form != "mapping":
        minimum = limit(node)
        if problem := senseless_minimum(name, minimum):
            raise node.problem(problem)
        return read_limits(node, name, minimum, None)
    limits = known_entries(node, {"min": limit, "max": limit})
    return read_limits(node, name, limits.get("min"), limits.get("max"))


def read_limits(node: Node, name: str, minimum: float | None, maximum: float | None) -> Threshold:
    """Return the limits of a metric as a threshold; raises `CaseError` if there are none, or no score can meet them."""
    if minimum is None and maximum is None:
        raise node.problem(f"'{name}' needs min or max, such as {{min: 0.8}}")
    threshold = Threshold(minimum=minimum, maximum=maximum)
    if problem := unreachable_threshold(name, threshold):
        raise node.problem(problem)
    return threshold


def senseless_minimum(name: str, minimum: float) -> str:
    """Return why a number alone, which is a minimum, cannot be meant for a metric; empty if it can."""
    if METRICS[name].better == "higher":
        return ""
    return f"a number alone is a minimum, but lower is better for '{name}': write {{{name}: {{max: {minimum:g}}}}}"


def unreachable_threshold(name: str, threshold: Threshold) -> str:
    """Return why no score of a metric can meet a threshold; empty if one can, or its greatest score is not known."""
    minimum, maximum = threshold.minimum, threshold.maximum
    if minimum is not None and maximum is not None and minimum > maximum:
        return f"min {minimum:g} of '{name}' is above its max {maximum:g}"
    least, max_score = least_score(name), greatest_score(name)
    for limit in (minimum, maximum):
        if max_score is not None and limit is not None and not least <= limit <= max_score:
            scores = _scores_text(name)
            hint = f": write {limit / 100:g}" if max_score == 1 and 10 <= limit <= 100 else ""  # a percentage
            if limit is threshold.maximum and better_of(name) == "higher":
                hint = f": higher is better, so write {{min: {min(1.0, max_score):g}}}"
            of = "of " if math.isinf(least) else ""
            return f"expected a limit {of}{scores} for '{name}', found {limit:g}{hint}"
    return ""


def _scores_text(name: str) -> str:
    """Return in words which scores a metric can have, as in "from 0 to 1"."""
    least, greatest = least_score(name), greatest_score(name)
    if greatest is None or math.isinf(greatest):
        return "from 0 on"
    return f"from {least:g} to {greatest:g}" if math.isfinite(least) else f"at most {greatest:g}"


@shape(_options_shape)
def read_options(node: Node) -> dict[str, dict[str, JsonValue]]:
    """Return options by metric or kind, checked by it, with absolute paths; raises `CaseError`."""
    return each_entry(node, _options_of)


def _options_of(name: str, node: Node) -> dict[str, JsonValue]:
    if name not in METRICS and name not in KINDS and name not in RUN_METRICS:
        names = (*METRICS.names(), *KINDS.names(), *RUN_METRICS.names())
        hint = did_you_mean(name, names) or f": remove it, or name its metric, {{METRIC: {{{name}: VALUE}}}}"
        raise node.problem(f"options for '{name}', which is neither a metric nor a kind{hint}")
    owned_by = "kind" if name in KINDS else "metric"
    owner: Kind | Metric | RunMetric
    if name in RUN_METRICS:
        owner = RUN_METRICS[name]
    else:
        owner = KINDS[name] if name in KINDS else METRICS[known_metric(name, node)]
    if not owner.options and node.form != "mapping":
        raise node.problem(f"{owned_by} '{name}' has no options: remove this; write metrics to compute under `metrics`")
    for key, value in entries(node).items():
        if key not in owner.options:
            hint = did_you_mean(key, owner.options) if owner.options else ": it has no options, so remove this"
            raise value.problem(f"{owned_by} '{name}' has no option '{key}'{hint}")
    options = json_mapping(node) | {key: _path(value) for key, value in entries(node).items() if key in owner.paths}
    try:
        owner.check(options)
    except SettingError as error:
        raise entries(node).get(error.setting, node).problem(str(error)) from error
    return options


def _path(node: Node) -> str:
    """Return the absolute path of an existing file or folder relative to the suite; any other text as it is."""
    required_text(node)
    name = expanded_text(node)
    path = os.path.abspath(node.file.folder / name)  # noqa: PTH100 - resolve() would follow links
    return path if os.path.exists(path) else name  # noqa: PTH110 - Path.exists raises for names that no file can have


def _where_readers() -> dict[str, Reader[Any]]:
    groups: dict[str, Reader[Any]] = dict.fromkeys(GROUPS.available(), required_text)
    without = mapping_of(groups)

    @shape({**shape_of(without), "minProperties": 1})
    def read_without(node: Node) -> dict[str, str]:
        return without(not_empty(node, "{tag: NAME}"))

    return {**groups, "not": read_without}


@shape(lambda: {**shape_of(mapping_of(_where_readers())), "minProperties": 1})
def read_where(node: Node) -> Where:
    """Return the values of groups that select cases, and under `not` the values that exclude cases."""
    return known_entries(not_empty(node, "{tag: NAME}"), _where_readers())


@shape(lambda: metric_shape(*RUN_METRICS.available()))
def read_gate_metric(node: Node) -> str:
    """Return the name of a metric, or of a run metric, which only gates limit; raises `CaseError`."""
    name = text(node)
    if name not in RUN_METRICS:
        return known_metric(name, node, besides=RUN_METRICS.names())
    try:
        RUN_METRICS[name]
    except QueryEvalError as error:  # of a feature or a package that cannot be imported
        raise node.problem(str(error)) from error
    return name


def gate_keys() -> dict[str, GateKey]:
    """Return the keys of gates: those of all rules, and `where`; the first rule with a key describes it."""
    keys: dict[str, GateKey] = {}
    for rule_name in GATE_RULES.names():
        for name, key in GATE_RULES[rule_name].keys(read_gate_metric).items():
            keys.setdefault(name, key)
    return {**keys, "where": GateKey(read_where, "which cases count", is_required=False)}


def _gate_shape() -> Shape:
    keys = gate_keys()
    readers = {name: key.read for name, key in keys.items()}
    descriptions = {name: key.description for name, key in keys.items()}
    rules = [GATE_RULES[name].shape(read_gate_metric) for name in GATE_RULES.names()]
    return {**shape_of(mapping_of(readers, descriptions)), **either(*rules)}


@shape(_gate_shape)
def read_gate(node: Node) -> Gate:
    """Return a gate, read by the first rule whose name is a key of the gate, otherwise by the rule of limits.

    Raises `CaseError` for unknown or missing keys, and for a gate that is always met.
    """
    if isinstance(node.value, str) and (words := _WORDS.match(node.value)):
        metric = words[1] if words[1] in RUN_METRICS or words[1] in METRICS else "NAME"
        raise unexpected(node, "a mapping", f": write {{metric: {metric}, min: {words[2] or 'NUMBER'}}}")
    try:
        keys = gate_keys()
    except QueryEvalError as error:  # a rule of another package that cannot be imported
        raise node.problem(str(error)) from error
    if stray := next((name for name in entries(node) if name not in keys and name in METRICS), None):
        stated = entries(node)[stray]
        limit = "NUMBER" if stated.empty or not isinstance(stated.value, str) else stated.value
        raise node.problem(f"unknown key '{stray}': write {{metric: {stray}, min: {limit}}}")
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
        metric = required["metric"]
        limits = read_limits(node, metric, required["min"], required["max"])
        if not can_be_missed(metric, limits):
            values = _scores_text(metric)
            remedy = "a max below" if limits.minimum is None else "a min above"
            bound = limits.maximum if limits.minimum is None else limits.minimum
            raise node.problem(f"this gate is always met: '{metric}' is {values}: write {remedy} {bound:g}")
    required = {**required, "type": rule_name, "where": fields.get("where", {})}
    return Gate(required=required, folder=node.file.folder, location=node.location)


read_gates = list_of(read_gate)
