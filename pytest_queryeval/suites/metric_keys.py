"""Readers of keys that name metrics: `metrics`, `thresholds`, `options`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pytest_queryeval.core.errors import QueryEvalError, SettingError, UnknownNameError, did_you_mean, nearest
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import Metric
from pytest_queryeval.core.model import Threshold
from pytest_queryeval.core.run_metrics import RUN_METRICS
from pytest_queryeval.core.shapes import ANYTHING, TEXT, Shape, either, list_shape, mapping_shape, one_of, shape
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    each_entry,
    entries,
    json_mapping,
    known_entries,
    list_of,
    number,
    required_text,
    text,
    unexpected,
)
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import METRICS, applies_to
from pytest_queryeval.suites.requirements import MissingExtraError, check_installed
from pytest_queryeval.suites.variables import expanded_text

# What other tools and papers call a metric.
OTHER_NAMES = {
    **dict.fromkeys(("exact_match", "exact", "em"), "'exact_set_match' (texts of queries) or 'exact_match_f1' (rows)"),
    **dict.fromkeys(("accuracy", "acc", "ex", "execution", "execution_match"), "'execution_accuracy'"),
    "f1": "'soft_f1'",
    **dict.fromkeys(("precision", "recall"), "'row_precision' and 'row_recall', or those of 'cell' and 'entity'"),
}
WORD_METRICS = frozenset({"bleu", "rouge", "chrf", "meteor", "levenshtein", "edit_distance", "bertscore", "codebleu"})


def metric_shape(*other_names: str) -> Shape:
    """Return the shape of the name of a metric, or of one of the `other_names`."""
    families = [name for name in METRICS.available() if METRICS[name].parameter]
    names = [name for name in METRICS.available() if name not in families]
    pattern = _of_families(families)
    return either(one_of([*other_names, *names]), {"type": "string", "pattern": pattern})


def _of_families(names: Iterable[str]) -> str:
    """Return the pattern of the names of the metrics in these families."""
    return rf"^({'|'.join(names)})\[.+\]$"


def _by_metric(of_metric: Callable[[Metric], Shape]) -> Shape:
    """Return the shape of a mapping by names of metrics, with the shape that each of them has."""
    metric_shapes: dict[str, Any] = {"type": "object", "properties": {}, "patternProperties": {}}
    for name in METRICS.available():
        metric = METRICS[name]
        summary = (metric.function.__doc__ or "").strip().partition("\n")[0].removeprefix("Return ")
        of_name = {"description": summary, **of_metric(metric)}
        if metric.parameter:
            metric_shapes["patternProperties"][_of_families([name])] = of_name
        else:
            metric_shapes["properties"][name] = of_name
    return {**metric_shapes, "additionalProperties": False}


def limits_shape(max_score: float | None) -> Shape:
    """Return the shape of a threshold: a number, or limits, up to the greatest score if that is known."""
    limit: dict[str, Any] = {"type": "number"}
    if max_score is not None:
        limit["minimum"] = 0
        if not math.isinf(max_score):
            limit["maximum"] = max_score
    return either(limit, {**mapping_shape({"min": limit, "max": limit}), "minProperties": 1})


def _threshold_shape(metric: Metric) -> Shape:
    # Most metrics are shares, whose shape `editor_schema` defines; draft-07 ignores what stands beside a reference.
    return {"allOf": [{"$ref": "#/definitions/share"}]} if metric.max_score == 1 else limits_shape(metric.max_score)


def _options_shape() -> Shape:
    """Return the shape of options by metrics and kinds; a kind has the options of the metrics that score it."""
    by_metric = _by_metric(lambda metric: mapping_shape(_with_paths(metric.option_shapes(), metric.paths)))
    kinds = {}
    for name in KINDS.available():
        kind = KINDS[name]
        of_metrics: dict[str, Shape] = {}
        for metric in METRICS.available():
            if applies_to(metric, name):
                of_metrics |= METRICS[metric].option_shapes()
        options = {option: of_metrics.get(option, ANYTHING) for option in sorted(kind.options)}
        kinds[name] = mapping_shape(_with_paths(options, kind.paths))
    return {**by_metric, "properties": {**by_metric["properties"], **kinds}}


def _with_paths(options: Mapping[str, Shape], paths: Iterable[str]) -> Mapping[str, Shape]:
    return {**options, **dict.fromkeys(paths, TEXT)}


@shape(metric_shape)
def read_metric(node: Node) -> str:
    """Read the name of a known metric that can be imported."""
    return known_metric(text(node), node)


def known_metric(name: str, node: Node, *, besides: Iterable[str] = ()) -> str:
    """Return the name of a metric that can be used; raise `CaseError` at `node`.

    `besides` are further names that may be meant.
    """
    try:
        check_metric(name, besides=besides)
    except QueryEvalError as error:  # unknown, or not importable: a metric of the user's, an extra that is missing
        raise node.problem(str(error)) from error
    return name


def check_metric(name: str, *, besides: Iterable[str] = ()) -> None:
    """Raise `QueryEvalError` unless the metric is known, is not a family, and has the extra that it needs.

    `besides` are further names that may be meant.
    """
    if name in RUN_METRICS:
        raise UnknownNameError(f"'{name}' is for gates: {RUN_METRICS[name].instead}")
    if name.lower() in OTHER_NAMES and name not in METRICS:
        raise UnknownNameError(f"unknown metric '{name}': did you mean {OTHER_NAMES[name.lower()]}?")
    if name.lower() in WORD_METRICS and name not in METRICS:
        remedy = (
            "use 'exact_set_match' or 'partial_select_f1', which compare clauses, or add a metric (docs/extending.md)"
        )
        raise UnknownNameError(f"unknown metric '{name}': queries are not compared as text: {remedy}")
    if name not in METRICS and "[" not in name:
        raise UnknownNameError(f"unknown metric '{name}'{_nearest_metric(name, besides)}")
    metric = METRICS[name]
    if metric.parameter:
        raise UnknownNameError(f"metric '{name}' needs a {metric.parameter}: write {name}[{metric.parameter.upper()}]")
    if not metric.extra:
        return
    try:
        check_installed([metric.extra])
    except MissingExtraError as error:
        raise QueryEvalError(f"metric '{name}' {error}") from error


def _nearest_metric(name: str, besides: Iterable[str]) -> str:
    """Return the end of the message on an unknown metric: the nearest name, else the default metrics."""
    if near := nearest(name, [*besides, *METRICS.names()]):
        return f": did you mean '{near}'?"
    if near := nearest(name, RUN_METRICS.available()):
        return f": did you mean '{near}'? That is for gates: {RUN_METRICS[near].instead}"
    usual = dict.fromkeys(metric for kind in KINDS.available() for metric in KINDS[kind].default_metrics)
    remedy = f"docs/metrics.md lists all {len(METRICS)}, docs/extending.md shows how to add one"
    return f": the usual ones are {', '.join(usual)}; {remedy}"


@shape(lambda: list_shape(metric_shape()))
def read_metrics(node: Node) -> tuple[str, ...]:
    """Read names of metrics, each once."""
    return tuple(dict.fromkeys(list_of(read_metric)(node)))


@shape(lambda: _by_metric(_threshold_shape))
def read_thresholds(node: Node) -> dict[str, Threshold]:
    """Read `{METRIC: minimum}` or `{METRIC: {min:, max:}}`."""
    if node.empty:
        raise node.problem("thresholds are missing: write {} to require nothing")
    if node.form != "mapping":
        raise unexpected(node, "{METRIC: minimum}", ": name the metric, as in {execution_accuracy: 0.8}")
    return each_entry(node, lambda name, value: _threshold(value, known_metric(name, value)))


def _threshold(node: Node, name: str) -> Threshold:
    max_score = METRICS[name].max_score
    expectation = "a number" if max_score is None or math.isinf(max_score) else f"a number from 0 to {max_score:g}"

    def limit(value: Node) -> float:
        return number(value, expectation)

    if node.form != "mapping":
        return read_limits(node, name, limit(node), None)
    limits = known_entries(node, {"min": limit, "max": limit})
    return read_limits(node, name, limits.get("min"), limits.get("max"))


def read_limits(node: Node, name: str, minimum: float | None, maximum: float | None) -> Threshold:
    """Return the limits of a metric as a threshold; raise `CaseError` if there are none, or impossible ones."""
    if minimum is None and maximum is None:
        raise node.problem(f"'{name}' needs min or max, such as {{min: 0.8}}")
    if minimum is not None and maximum is not None and minimum > maximum:
        raise node.problem(f"min {minimum:g} of '{name}' is above its max {maximum:g}")
    threshold = Threshold(minimum=minimum, maximum=maximum)
    if problem := unreachable_threshold(name, threshold):
        raise node.problem(problem)
    return threshold


def unreachable_threshold(name: str, threshold: Threshold) -> str:
    """Return why no score of a metric can be at a limit; empty if one can, or its greatest score is not known."""
    max_score = METRICS[name].max_score if name in METRICS else 1.0  # a pass rate
    for limit in (threshold.minimum, threshold.maximum):
        if max_score is not None and limit is not None and not 0 <= limit <= max_score:
            scores = "from 0 on" if math.isinf(max_score) else f"from 0 to {max_score:g}"
            hint = f": write {limit / 100:g}" if max_score == 1 and 10 <= limit <= 100 else ""  # a percentage
            return f"expected a limit {scores} for '{name}', found {limit:g}{hint}"
    return ""


@shape(_options_shape)
def read_options(node: Node) -> dict[str, dict[str, JsonValue]]:
    """Read `{METRIC: {key: value}}`, or the name of a kind instead of a metric's."""
    return each_entry(node, _options_of)


def _options_of(name: str, node: Node) -> dict[str, JsonValue]:
    if name not in METRICS and name not in KINDS:
        names = (*METRICS.names(), *KINDS.names())
        hint = did_you_mean(name, names) or f": write {{METRIC: {{{name}: …}}}}"
        raise node.problem(f"options for '{name}', which is neither a metric nor a kind{hint}")
    owned_by = "kind" if name in KINDS else "metric"
    owner: Kind | Metric = KINDS[name] if name in KINDS else METRICS[known_metric(name, node)]
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
    """Read the name of a file or folder beside the suite as an absolute path; any other text as it is."""
    required_text(node)
    name = expanded_text(node)
    path = os.path.abspath(node.file.folder / name)  # noqa: PTH100 - resolve() would follow links
    return path if os.path.exists(path) else name  # noqa: PTH110 - Path.exists raises for names that no file can have
