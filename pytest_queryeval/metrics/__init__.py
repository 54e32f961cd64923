"""The metrics by name. Each is a function `(gold, predicted) -> float | None` of a module here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.errors import QueryEvalError, UnknownNameError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import including
from pytest_queryeval.core.metric import RUN_METRICS, Better, Metric, describe_metric
from pytest_queryeval.core.model import ABSTENTION, EXPECTATIONS, Criterion, Threshold
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.steps import STEP_MEASURES
from pytest_queryeval.languages import KINDS

if TYPE_CHECKING:
    from pytest_queryeval.core.model import Case, Settings


DECIDING_METRIC = "execution_accuracy"  # on which other answers depend that gold may give, and answers of added types
FOLLOW_COMPARE = frozenset({"policy", "states", "challenge"})  # arguments of metrics that follow `compare`
NUMBERS_FIELDS = frozenset({"rel", "abs", "column_numbers"})  # of `Policy`, for the key `numbers`
_OF_FAMILY = re.compile(r"(?P<family>\w+)\[(?P<argument>.+)\]")


class MetricRegistry(Registry[Metric]):
    """Metrics by name; a plain function that is registered becomes a `Metric` by its signature.

    A metric with a parameter is a family, such as `recall`; its members are named `recall[COUNTRY]`.
    """

    def __contains__(self, name: object) -> bool:
        match = _OF_FAMILY.fullmatch(name) if isinstance(name, str) and "[" in name else None
        if match is None:
            return super().__contains__(name)
        return super().__contains__(match["family"]) and bool(super().__getitem__(match["family"]).parameter)

    def __getitem__(self, name: str) -> Metric:
        """Return the metric called `name`; for a name in the form `recall[COUNTRY]`, the family with that argument.

        Raise `UnknownNameError` for an unknown name and for an argument of a metric without parameter.
        """
        match = _OF_FAMILY.fullmatch(name) if "[" in name else None
        if match is None:
            return super().__getitem__(name)
        family = super().__getitem__(match["family"])
        if not family.parameter:
            raise UnknownNameError(f"metric '{match['family']}' takes nothing in brackets")
        return replace(family, function=partial(family.function, **{family.parameter: match["argument"]}), parameter="")

    def _admit(self, member: Any) -> Metric:
        return member if isinstance(member, Metric) else describe_metric(member)


METRICS = MetricRegistry(
    "metric",
    group="pytest_queryeval.metrics",
    used_by_workers=True,
    members={
        "execution_accuracy": f"{__name__}.execution_accuracy:execution_accuracy",
        "execution_accuracy_spider": f"{__name__}.execution_accuracy:execution_accuracy_spider",
        "execution_accuracy_bird": f"{__name__}.execution_accuracy:execution_accuracy_bird",
        "test_suite_accuracy": f"{__name__}.execution_accuracy:test_suite_accuracy",
        "test_suite_accuracy_spider": f"{__name__}.execution_accuracy:test_suite_accuracy_spider",
        "arity_f1": f"{__name__}.building_qa:arity_f1",
        "entity_set_f1": f"{__name__}.building_qa:entity_set_f1",
        "entity_precision": f"{__name__}.building_qa:entity_precision",
        "entity_recall": f"{__name__}.building_qa:entity_recall",
        "row_matching_f1": f"{__name__}.building_qa:row_matching_f1",
        "row_precision": f"{__name__}.building_qa:row_precision",
        "row_recall": f"{__name__}.building_qa:row_recall",
        "exact_match_f1": f"{__name__}.building_qa:exact_match_f1",
        "soft_f1": f"{__name__}.soft_f1:soft_f1",
        "soft_f1_bird": f"{__name__}.soft_f1:soft_f1_bird",
        "soft_f1_denodo": f"{__name__}.soft_f1:soft_f1_denodo",
        "cell_f1": f"{__name__}.cells:cell_f1",
        "cell_precision": f"{__name__}.cells:cell_precision",
        "cell_recall": f"{__name__}.cells:cell_recall",
        "value_overlap": f"{__name__}.cells:value_overlap",
        "subset_score": f"{__name__}.cells:subset_score",
        "subset_score_denodo": f"{__name__}.cells:subset_score_denodo",
        "same_row_count": f"{__name__}.cells:same_row_count",
        "same_column_count": f"{__name__}.cells:same_column_count",
        "exact_set_match": f"{__name__}.exact_set_match:exact_set_match",
        "exact_set_match_spider": f"{__name__}.exact_set_match:exact_set_match_spider",
        **{
            f"partial_{component}_{figure}": f"{__name__}.exact_set_match:partial_{component}_{figure}"
            for component in get_args(ComponentName)
            for figure in ("f1", "precision", "recall")
        },
        "in_scope": f"{__name__}.schema_use:in_scope",
        **{
            f"{name}_{figure}": f"{__name__}.schema_use:{name}_{figure}"
            for name in ("table", "column")
            for figure in ("recall", "precision")
        },
        "ves": f"{__name__}.ves:ves",
        "r_ves": f"{__name__}.ves:r_ves",
        "r_ves_bird": f"{__name__}.ves:r_ves_bird",
        "valid_query": f"{__name__}.run_measures:valid_query",
        "known_terms": f"{__name__}.run_measures:known_terms",
        "prediction_seconds": f"{__name__}.run_measures:prediction_seconds",
        "execution_seconds": f"{__name__}.run_measures:execution_seconds",
        **{name: f"{__name__}.run_measures:{name}" for name in STEP_MEASURES},
        "metadata": f"{__name__}.run_measures:metadata",
        ABSTENTION: f"{__name__}.run_measures:abstention",
        EXPECTATIONS: f"{__name__}.expectations:expectations",
    },
)


def need_answers(names: Iterable[str]) -> bool:
    """Return whether one of these metrics needs more than the texts of queries; true if there are no metrics."""
    metrics = [METRICS[name] for name in names]
    return not metrics or any(metric.input in ("answers", "executions") and not metric.header for metric in metrics)


def applies_to(metric: str, kind: str, *, criteria: Collection[Criterion] | None = None) -> bool:
    """Return whether a metric scores cases of a kind; raise `QueryEvalError` if the metric or the kind is unknown.

    `criteria` are those of the cases; with None, they are not checked.
    """
    if criteria is not None and METRICS[metric].criterion not in criteria:
        return False
    return METRICS[metric].applies_to(kind, KINDS[kind].answer_type)


def follows_compare(name: str, key: str) -> bool:
    """Return whether a key of `compare`, or a field of `Policy`, can change the scores of a metric.

    False for published metrics, for metrics of texts, and for unknown metrics.
    """
    try:
        metric = METRICS[name]
    except QueryEvalError:
        return False
    key = "numbers" if key in NUMBERS_FIELDS else key
    if metric.published or metric.input in ("queries", "predictions") or key in metric.ignores:
        return False
    if key == "choices":
        return name == DECIDING_METRIC or bool(metric.injected & {"states", "challenge"})
    gets_gold_columns = metric.input == "answers" or metric.answers is not None
    return bool(metric.injected & FOLLOW_COMPARE) or (key == "gold_columns" and gets_gold_columns)


def better_of(name: str) -> Better:
    """Return whether `higher` or `lower` scores of a metric or a run metric are better.

    `higher` for an unknown name.
    """
    try:
        return RUN_METRICS[name].better if name in RUN_METRICS else METRICS[name].better
    except QueryEvalError:
        return "higher"


def greatest_score(name: str) -> float | None:
    """Return the greatest score of a metric or a run metric; None if the metric has no known limit or is unknown."""
    return 1.0 if name in RUN_METRICS else METRICS[name].max_score if name in METRICS else None


def least_score(name: str) -> float:
    """Return the least score of a metric, or the least that a case can add to a run metric."""
    return RUN_METRICS[name].least if name in RUN_METRICS else 0.0


def can_be_missed(name: str, threshold: Threshold) -> bool:
    """Return whether a metric can have a score that a threshold does not admit.

    True if its greatest score is unknown.
    """
    greatest = greatest_score(name)
    return greatest is None or not (threshold.admits(least_score(name)) and threshold.admits(greatest))


class RequestedMetric(NamedTuple):
    """A metric with the options that apply to a case."""

    metric: Metric
    options: Mapping[str, JsonValue]


def metric_of(settings: Settings, name: str) -> RequestedMetric:
    """Return the metric called `name` with its options: those of the kind, overridden by those of the metric.

    Raise `UnknownNameError` for an unknown name, and `SettingError` for an option with an invalid value.
    """
    metric = METRICS[name]
    kind_options = settings.options.get(settings.kind, {})
    options = including(kind_options, metric.options)
    options |= settings.options.get(name, {})
    metric.check(options)
    return RequestedMetric(metric, options)


def timing_conflict(cases: Iterable[Case], workers: str) -> str:
    """Return why the cases cannot run under the option `workers`: a metric measures times; empty if no metric does."""
    for case in cases:
        if name := next((name for name in case.settings.requested_metrics if "timer" in METRICS[name].injected), ""):
            spoilt = f"workers spoil each other's times, so leave {workers} out"
            return f"metric '{name}' ({case.location}) cannot be measured with {workers}: {spoilt}"
    return ""
