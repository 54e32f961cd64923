"""Settings that a metric cannot use are refused: of `compare`, those that never change its score."""

from datetime import date, datetime

import pytest
from suites import enter, load

from pytest_queryeval.core.errors import SuiteError, capture_error
from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import Literal, Policy, Table
from pytest_queryeval.metrics import METRICS


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def answer(*rows, columns="abc"):
    return Table(columns=tuple(columns[: len(rows[0])]), rows=rows)


def literal(lexical, datatype):
    return answer((Literal(lexical, f"http://www.w3.org/2001/XMLSchema#{datatype}"),))


# By setting, gold and predicted answers whose scores it changes, whatever the metric, if the metric follows its key.
ANSWERS = {
    "numbers: {abs: 1}": [(answer((1.0,)), answer((1.5,)))],
    "numbers: {columns: {a: {abs: 1}}}": [(answer((1.0,)), answer((1.5,)))],
    "text_numbers: true": [(answer((5,)), answer(("5",)))],
    "case: ignore": [(answer(("A",)), answer(("a",)))],
    "whitespace: ignore": [(answer(("a  b",)), answer(("a b",)))],
    "dates: strict": [(answer((date(2024, 1, 1),)), answer(("2024-01-01",)))],
    "dates: midnight": [
        (answer((date(2024, 1, 1),)), answer((datetime(2024, 1, 1),))),
        (answer(("2024-01-01",)), answer(("2024-01-01 00:00:00",))),
    ],
    "rdf_terms: strict": [(literal("1", "integer"), literal("1.0", "decimal"))],
    "duplicates: ignore": [
        (answer((1,), (1,), (2,)), answer((1,), (2,))),
        (answer((1,), (2,)), answer((1,), (1,), (2,))),
        (answer(*"aaabc"), answer("ab", "ab", "ac")),
        (answer(*"aab"), answer("ab", "ab", "xx", "yx")),
    ],
    "row_order: strict": [(answer((1,), (2,)), answer((2,), (1,)))],
    "columns: positional": [(answer((1, 2)), answer((2, 1)))],
    "columns: by_name": [(answer((1, 2)), answer((2, 1), columns="ab"))],
    "extra_columns: allow": [(answer((1,)), answer((1, 9)))],
}
OF_POLICY = [
    name
    for name, metric in METRICS.available().items()
    if {"policy"} <= metric.injected <= {"policy", "timer"} and metric.applies_to("sql", Table)
]


def suite(metric, setting):
    kind, source = ("sparql", "a.ttl") if "rdf" in setting else ("sql", "a.db")
    top = f"kind: {kind}\nsource: {source}\nmetrics: [{metric}]\nthresholds: {{}}\ncompare: {{{setting}}}\n"
    return f"{top}cases: [{{id: a, gold: x, predicted: y}}]\n"


def score(name, gold, predicted, policy):
    timer = {"timer": lambda number: [(1.0, 1.0)] * number} if "timer" in METRICS[name].injected else {}
    value = METRICS[name].function(gold, predicted, policy=policy, **timer)
    return value.value if isinstance(value, Score) else value


def changes_score(metric, setting):
    policy = load(suite("execution_accuracy", setting))[0].settings.policy
    return any(
        score(metric, gold, predicted, policy) != score(metric, gold, predicted, Policy())
        for gold, predicted in ANSWERS[setting]
    )


def refused_key(metric, setting):
    """The key of a setting that is refused; empty if the suite is read."""
    error = capture_error(lambda: load(suite(metric, setting)), SuiteError)
    if not isinstance(error, SuiteError):
        return ""
    remedy = "remove it, or add one to `metrics`, such as execution_accuracy"
    said = f"` has no effect, because no metric that uses it is computed: {remedy}"
    assert str(error).endswith(said)
    return str(error).removesuffix(said).rpartition("`compare: ")[2].split(":")[0]


@pytest.mark.parametrize("name", OF_POLICY)
def test_choices_are_refused_where_no_metric_follows_them(name):
    follows = name == "execution_accuracy"
    assert refused_key(name, "choices: first") == ("" if follows else "choices")


@pytest.mark.parametrize("name", OF_POLICY)
def test_a_setting_of_compare_is_refused_if_no_answers_show_that_the_metric_follows_it(name):
    keys = {setting: setting.partition(":")[0] for setting in ANSWERS}
    followed = {key for setting, key in keys.items() if changes_score(name, setting)}

    refused = {setting: refused_key(name, setting) for setting in ANSWERS}

    assert refused == {setting: "" if key in followed else key for setting, key in keys.items()}


@pytest.mark.feature("json")
def test_a_failure_shows_the_settings_of_a_comparison_that_was_made(pytester):
    source = "kind: sql, source: {sqlite: {script: shop.sql}}"
    bird = "metrics: [execution_accuracy_bird], thresholds: {execution_accuracy_bird: 1}"
    cases = (
        f"{{id: compared, {source}, gold: SELECT 1, predicted: SELECT 2}}",
        f"{{id: otherwise, {source}, {bird}, gold: SELECT 1, predicted: SELECT 2}}",
        f"{{id: no-answer, {source}, gold: SELECT 1, predicted: SELECT nope}}",
        "{id: no-table, kind: json, gold: {x: 1}, predicted: {x: 2}}",
    )
    files = {"shop.sql": "CREATE TABLE t (a TEXT);", "queryeval.yaml": "compare: {case: ignore}\n"}
    for name, text in {**files, "s.queryeval.yaml": f"cases: [{', '.join(cases)}]\n"}.items():
        (pytester.path / name).write_text(text, encoding="utf-8")

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(failed=4)
    headings = [line.strip("_ ") for line in result.outlines if line.startswith("___")]
    of_comparisons = [number for number, line in enumerate(result.outlines) if line == "  compare    case: ignore"]
    assert len(headings) == 4
    assert len(of_comparisons) == 1
    assert [line.strip("_ ") for line in result.outlines[: of_comparisons[0]] if line.startswith("___")] == headings[:1]
