"""Questions without an answer, and systems that abstain."""

from pathlib import Path

import pytest
from suites import case, load, problems

from pytest_queryeval import Abstention, evaluate
from pytest_queryeval.core.model import QueryOrAnswer, Threshold
from pytest_queryeval.languages import KINDS

HEAD = "kind: sql\nsource: {sqlite: {script: s.sql}}\n"
PREDICT = """
from pytest_queryeval import Abstention, Prediction

def predict(case):
    if case.id.startswith("abstains"):
        return Abstention("no table has that")
    if case.id.startswith("tells"):
        return Prediction(Abstention("too hard"), predictor="mine", metadata={"confidence": 0.1})
    return "" if case.id.startswith("empty") else "SELECT 1"
"""


@pytest.fixture(autouse=True)
def suite_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text("CREATE TABLE t (a);")
    (tmp_path / "predict.py").write_text(PREDICT)


def evaluated(*cases, settings="predictor: predict.py:predict\n", name="s.queryeval.yaml"):
    lines = "".join(f"  - {{question: q, {fields}}}\n" for fields in cases)
    return evaluate(load(f"{HEAD}{settings}cases:\n{lines}", name))["cases"]


def test_only_abstaining_from_a_question_without_an_answer_is_right():
    abstains, tells, answers, empty = evaluated(
        *(f"id: {name}, answerable: false" for name in ("abstains", "tells", "answers", "empty"))
    )
    assert [abstains["outcome"], tells["outcome"]] == ["passed", "passed"]
    assert abstains["scores"] == tells["scores"] == {"abstention": 1.0}
    assert [answers["outcome"], empty["outcome"]] == ["failed", "failed"]
    assert answers["scores"] == empty["scores"] == {"abstention": 0.0}
    assert answers["message"] == "the system answered a question that has no answer"
    assert (abstains["answerable"], abstains["gold"], abstains["predicted"]["query"]) == (False, None, None)
    assert abstains["prediction"]["abstained"] is True
    assert abstains["prediction"]["reason"] == "no table has that"
    assert tells["prediction"]["metadata"] == {"confidence": 0.1}
    assert "abstained" not in answers["prediction"]


def test_abstaining_from_a_question_with_an_answer_has_the_worst_scores_and_says_so():
    (report,) = evaluated("id: abstains, gold: SELECT 1")
    assert report["outcome"] == "failed"
    assert set(report["scores"].values()) == {0.0}
    assert report["message"] == "the system abstained from a question that has an answer: no table has that"
    assert report["predicted"]["error"] == {"kind": "abstained", "message": "no table has that"}
    assert report["predicted"]["query"] is None
    assert report["cause"]["edits"][0]["label"] == "abstained"
    assert "answerable" not in report


def test_a_case_may_state_that_it_abstains():
    text = "id: a, answerable: false, predicted: {abstained: true, reason: because}"
    (report,) = evaluated(text, settings="")
    assert report["outcome"] == "passed"
    assert report["prediction"]["reason"] == "because"


@pytest.mark.feature("json")
def test_a_json_answer_may_have_members_of_these_names():
    loaded = case("predicted: {abstained: false, reason: x}", "gold: {a: 1}", head="kind: json\n")
    assert isinstance(loaded.predicted, QueryOrAnswer)
    assert case("predicted: {abstained: true}", "gold: {a: 1}", head="kind: json\n").predicted == Abstention()


@pytest.mark.parametrize(
    ("settings", "fields", "message"),
    [
        ("", "gold: SELECT 1, predicted: {abstain: true}", "unknown key 'abstain': did you mean 'abstained'?"),
        (
            "",
            "answerable: false, gold: SELECT 1, predicted: SELECT 1",
            "'gold' next to `answerable: false`: no answer is right, remove one of them",
        ),
        (
            "",
            "answerable: false, predicted: x, metrics: [abstention, soft_f1]",
            "metric 'soft_f1' does not apply to `answerable: false`, only 'abstention' does: remove it",
        ),
        (
            "",
            "gold: SELECT 1, predicted: x, thresholds: {abstention: 1}",
            "metric 'abstention' does not apply to an answerable case: remove it",
        ),
        (
            "predictor: {inline: {}, abstain: {matches: '(a'}}\n",
            "gold: SELECT 1, predicted: x",
            "not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            "predictor: {inline: {}, abstain: x}\n",
            "gold: SELECT 1, predicted: x",
            "`abstain` needs a regular expression: write {matches: REGEX}",
        ),
    ],
)
def test_what_contradicts_itself_or_cannot_be_read_is_refused(settings, fields, message):
    (problem,) = problems(f"{HEAD}{settings}cases:\n  - {{id: a, {fields}}}\n")

    assert problem.partition(": ")[2] == message


@pytest.mark.parametrize("settings", ["thresholds: {}", "thresholds: {execution_accuracy: 0.1}", "metrics: [soft_f1]"])
def test_inherited_metrics_and_thresholds_do_not_apply(settings):
    loaded = load(f"{HEAD}{settings}\npredictor: predict.py:predict\ncases:\n  - {{id: a, answerable: false}}\n")[0]
    assert loaded.settings.metrics == ("abstention",)
    assert loaded.settings.thresholds == {"abstention": Threshold(minimum=1.0)}


def test_abstention_is_a_metric_of_such_cases_only():
    head = f"{HEAD}metrics: [soft_f1, abstention]\nthresholds: {{soft_f1: 0.5, abstention: 0.8}}\n"
    cases = "  - {id: a, gold: SELECT 1}\n  - {id: b, answerable: false}\n"
    answerable, unanswerable = load(f"{head}predictor: predict.py:predict\ncases:\n{cases}")
    assert answerable.settings.requested_metrics == ("soft_f1",)
    assert unanswerable.settings.thresholds == {"abstention": Threshold(minimum=0.8)}
    assert "abstention" not in evaluated("id: a, gold: SELECT 1")[0]["scores"]


def predictions_file(text, name="p.jsonl", settings="", cases=("id: a, gold: SELECT 1", "id: b, answerable: false")):
    Path(name).write_text(text)
    reports = evaluated(*cases, settings=f"predictor: {{file: {{path: {name}{settings}}}}}\n")
    return [report["prediction"] for report in reports]


ABSTAINS = {"source": "file:p.jsonl", "seconds": 0.0, "metadata": {}, "abstained": True, "reason": "why"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.jsonl", '{"id": "a", "predicted": "SELECT 1"}\n{"id": "b", "abstained": true, "reason": "why"}\n'),
        (
            "p.jsonl",
            '{"id": "a", "predicted": "x"}\n{"id": "b", "predicted": null, "abstained": true, "reason": "why"}',
        ),
        ("p.json", '{"a": "SELECT 1", "b": {"abstained": true, "reason": "why"}}'),
        ("p.csv", "id,predicted,abstained,reason\na,SELECT 1,FALSE,\nb,,TRUE,why\n"),
        ("p.csv", "id,predicted,abstained,reason\na,SELECT 1,,\nb,,1,why\n"),
    ],
)
def test_a_predictions_file_states_abstentions(name, text):
    answers, abstains = predictions_file(text, name)
    assert answers == {"source": f"file:{name}", "seconds": 0.0, "metadata": {}}
    assert abstains == {**ABSTAINS, "source": f"file:{name}"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('"abstained": "yes"', "the prediction has an `abstained` that is neither true nor false"),
        (
            '"predicted": "x", "abstained": true',
            "the prediction has `predicted` and `abstained`: true, which stands in",
        ),
        ('"predicted": 0, "abstained": true', "the prediction has `predicted` and `abstained`: true"),
        ('"abstained": true, "reason": []', "the prediction has a `reason` to abstain that is not text"),
    ],
)
def test_a_file_with_another_value_is_an_error_with_its_line(fields, message):
    Path("p.jsonl").write_text(f'{{"id": "a", {fields}}}\n')
    (report,) = evaluated("id: a, gold: SELECT 1", settings="predictor: p.jsonl\n")
    assert report["outcome"] == "error"
    assert report["message"].startswith(f"p.jsonl:1: {message}")


def test_a_text_that_matches_the_pattern_of_the_predictor_is_an_abstention():
    text = '{"id": "a", "predicted": "SELECT 1"}\n{"id": "b", "predicted": "I do not know."}\n'
    Path("p.jsonl").write_text(text)
    settings = "predictor: {file: p.jsonl, abstain: {matches: '(?i)^i (do not|cannot)'}}\n"
    answers, abstains = evaluated("id: a, gold: SELECT 1", "id: b, answerable: false", settings=settings)
    assert [answers["outcome"], abstains["outcome"]] == ["passed", "passed"]
    assert abstains["prediction"]["reason"] == "I do not know."


def test_the_search_for_a_pattern_ends(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.sandbox.host.PATTERN_SECONDS", 0.2)
    text = f"id: a, answerable: false, predicted: {'a' * 60}"
    (report,) = evaluated(text, settings="predictor: {inline: {}, abstain: {matches: '^(a+)+$b'}}\n")
    assert report["outcome"] == "error"
    assert "the pattern of `abstain` cannot be searched in the answer: no answer within 0.2 s" in report["message"]


@pytest.mark.parametrize("kind", KINDS.available())
def test_a_question_of_any_kind_may_have_no_answer(kind):
    text = (
        f"kind: {kind}\npredictor: predict.py:predict\ncases:\n  - {{id: abstains, question: q, answerable: false}}\n"
    )
    (report,) = evaluate(load(text))["cases"]

    assert (report["outcome"], report["scores"], report["gold"]) == ("passed", {"abstention": 1.0}, None)


def test_each_trial_abstains_for_itself():
    Path("moody.py").write_text(
        "from pytest_queryeval import Abstention\ncalls = []\n"
        "def predict(case):\n    calls.append(case)\n    return Abstention('no') if len(calls) % 2 else 'SELECT 1'\n"
    )
    settings = "predictor: moody.py:predict\ntrials: 4\n"
    (report,) = evaluated("id: a, answerable: false, trials_rule: any", settings=settings)

    assert report["outcome"] == "passed"
    assert report["scores"] == {"abstention": 0.5, "pass_at_k": 1.0, "pass_hat_k": 0.0}
    assert [trial["prediction"].get("abstained", False) for trial in report["trials"]] == [True, False, True, False]
