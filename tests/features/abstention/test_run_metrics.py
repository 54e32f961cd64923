"""Coverage, the accuracy of what is answered, and wrong decisions to answer or to abstain."""

import random

import pytest
import samples
from samples import entry, make_case

from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.gates import evaluate_gates
from pytest_queryeval.runs.evaluate import NamedCase
from pytest_queryeval.runs.stopping import EarlyStop

NAMES = ("coverage", "selective_accuracy", "answered_unanswerable", "abstained_answerable")
GATE = {"type": "limits", "folder": "", "where": {}, "min": 0.0, "max": None, "cases": None}


def answered(*, answerable=True, abstained=False, missing=False, outcome="passed", **fields):
    """The report of a case."""
    prediction = {"source": "p", "seconds": 0.0, "metadata": {}, **({"abstained": True} if abstained else {})}
    prediction |= {"missing": True} if missing else {}
    scores = {"execution_accuracy": float(outcome == "passed")} if answerable else {"abstention": float(abstained)}
    return entry(
        outcome=outcome,
        prediction=prediction,
        scores=scores,
        **({} if answerable else {"answerable": False}),
        **fields,
    )


def trial(passed, **prediction):
    fields = {"source": "p", "seconds": 0.0, "metadata": {}, **prediction}
    return {"passed": passed, "scores": {}, "violations": [], "predicted": {"seconds": 0.0}, "prediction": fields}


def metrics_of(cases):
    return {name: stats["mean"] for name, stats in report_of(cases)["metrics"].items() if name in NAMES}


def report_of(cases):
    return aggregate(cases, gates=(), about=samples.HEAD)


def defined_metrics(outcomes):
    """The metrics by their definitions, from (answerable, abstained, right) of each case."""
    answers = [(answerable, right) for answerable, abstained, right in outcomes if not abstained]
    unanswerable = [abstained for answerable, abstained, _ in outcomes if not answerable]
    answerable_abstained = [abstained for answerable, abstained, _ in outcomes if answerable]
    definitions = {
        "coverage": (len(answers), len(outcomes)),
        "selective_accuracy": (sum(answerable and right for answerable, right in answers), len(answers)),
        "answered_unanswerable": (unanswerable.count(False), len(unanswerable)),
        "abstained_answerable": (answerable_abstained.count(True), len(answerable_abstained)),
    }
    return {name: count / of for name, (count, of) in definitions.items() if of}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_the_metrics_are_those_of_their_definitions(seed):
    chance = random.Random(seed)
    outcomes = [(chance.random() < 0.8, chance.random() < 0.3, chance.random() < 0.6) for _ in range(1_000)]
    tags = [chance.choice(["joins", "dates"]) for _ in outcomes]
    cases = []
    for number, ((answerable, abstained, right), tag) in enumerate(zip(outcomes, tags, strict=True)):
        is_right = right and not abstained if answerable else abstained
        outcome = "passed" if is_right else chance.choice(["failed", "missed"])
        fields = {"id": f"c{number}", "tags": [tag]}
        cases.append(answered(answerable=answerable, abstained=abstained, outcome=outcome, **fields))
    report = report_of(cases)

    assert metrics_of(cases) == pytest.approx(defined_metrics(outcomes))
    for tag, group in report["groups"]["tag"].items():
        of_tag = [outcome for outcome, other_tag in zip(outcomes, tags, strict=True) if other_tag == tag]
        means = {name: group["metrics"][name]["mean"] for name in NAMES}
        assert means == pytest.approx(defined_metrics(of_tag))
    gates = evaluate_gates([{**GATE, "metric": name} for name in NAMES], cases)
    assert {gate["metric"]: gate["value"] for gate in gates} == pytest.approx(defined_metrics(outcomes))


def test_a_run_without_abstentions_and_such_cases_does_not_report_them():
    cases = [answered(), answered(id="b", outcome="failed")]
    report = report_of(cases)

    assert metrics_of(cases) == {}
    assert compare_reports(report, report, path="r.json")["metrics"].keys() == {"pass_rate", "execution_accuracy"}
    assert evaluate_gates([{**GATE, "metric": "coverage"}], cases)[0]["value"] == 1.0


def test_an_abstention_is_a_reason_to_report_them():
    cases = [answered(), answered(id="b", abstained=True, outcome="failed")]

    assert metrics_of(cases) == {"coverage": 0.5, "selective_accuracy": 1.0, "abstained_answerable": 0.5}
    assert report_of(cases)["metrics"]["abstained_answerable"]["better"] == "lower"


def test_an_answer_to_a_question_without_an_answer_is_wrong_whatever_is_required():
    case = answered(answerable=False, outcome="passed")  # as with `thresholds: {}` in the case

    assert metrics_of([case]) == {"coverage": 1.0, "selective_accuracy": 0.0, "answered_unanswerable": 1.0}


def test_where_nothing_is_required_the_default_thresholds_tell_what_is_right():
    fingerprint = {"thresholds": {}, "trials": 1}
    wrong = answered(fingerprint=fingerprint) | {"scores": {"execution_accuracy": 0.0}}
    unknown = answered(id="b", fingerprint=fingerprint) | {"scores": {"soft_f1": 1.0}}

    assert metrics_of([wrong, answered(id="c", answerable=False, abstained=True)])["selective_accuracy"] == 0.0
    assert "selective_accuracy" not in metrics_of([unknown, answered(id="c", answerable=False, abstained=True)])


def test_cases_that_have_no_answer_yet_do_not_count():
    left_out = [answered(id=outcome, outcome=outcome) for outcome in ("error", "skipped", "not_run")]

    assert metrics_of([*left_out, answered(id="b", abstained=True, outcome="failed")]) == {
        "coverage": 0.0,
        "abstained_answerable": 1.0,
    }


def test_each_of_several_trials_counts_for_its_share_of_the_case():
    trials = [trial(True), trial(False), trial(True), trial(False, abstained=True)]

    assert metrics_of([answered(trials=trials)]) == pytest.approx(
        {"coverage": 3 / 4, "selective_accuracy": 2 / 3, "abstained_answerable": 1 / 4}
    )


def test_a_baseline_names_what_became_unanswerable_and_compares_the_metrics():
    before = report_of([answered(), answered(id="b")])
    after = report_of([answered(), answered(id="b", answerable=False, abstained=True)])
    baseline = compare_reports(before, after, path="r.json")

    assert baseline["changes"] == [{"what": "answerable edited", "cases": ["music/s.queryeval.yaml::b"]}]
    assert baseline["metrics"]["coverage"]["after"] == 0.5
    assert baseline["metrics"]["selective_accuracy"]["n"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_they_are_shares(name):
    assert 0.0 <= RUN_METRICS[name].score(answered(answerable=name != "answered_unanswerable")) <= 1.0


def test_a_prediction_that_counts_as_failed_where_a_file_has_none_is_no_answer():
    scores = [{name: RUN_METRICS[name].score(answered(missing=True, outcome="failed"))} for name in NAMES]

    assert scores[:2] == [{"coverage": 0.0}, {"selective_accuracy": 0.0}]


@pytest.mark.feature("history")
def test_what_a_comparison_of_systems_keeps_of_a_case_is_enough_for_them():
    from pytest_queryeval.features.history.compare_command import _without_answers

    cases = [
        answered(),
        answered(id="b", abstained=True, outcome="failed"),
        answered(id="c", answerable=False, outcome="failed"),
        answered(id="d", outcome="error"),
        answered(id="f", missing=True, outcome="failed"),
        answered(id="e", trials=[trial(True), trial(False, abstained=True), trial(False)]),
    ]
    scores = [{name: RUN_METRICS[name].score(case) for name in NAMES} for case in cases]

    assert [{name: RUN_METRICS[name].score(_without_answers(case)) for name in NAMES} for case in cases] == scores


def test_gates_of_them_are_decided_early():
    path = "a/s.queryeval.yaml"
    cases = [NamedCase(make_case(id=f"c{number}"), f"{path}::c{number}", path) for number in range(200)]
    gates = [{**GATE, "folder": "a", "metric": "coverage", "min": 0.5, "cases": 200}]
    early = EarlyStop(0, gates, cases, mode="complete", has_baseline=False)
    for number in range(40):
        early.add(answered(id=f"c{number}", path=path, abstained=number % 8 == 0))

    decision = early.decision(gates[0])
    assert (early.problem, early.is_decided, decision.is_met, decision.of) == ("", True, True, 200)
