"""Coverage, the accuracy of what is answered, and wrong decisions to answer or to abstain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_parts import command, merge, part, report_of, write
from samples import FINGERPRINT, entry

from pytest_queryeval.core.groups import group_values

pytestmark = pytest.mark.feature("report_files")

NAMES = ("coverage", "selective_accuracy", "penalized_accuracy", "answered_unanswerable", "abstained_answerable")
LOWER = NAMES[3:]
GATES = [
    {"type": "limits", "folder": "", "metric": name, "where": {}, "min": 0.5, "max": None, "cases": 0} for name in NAMES
]
PREDICTION = {"source": "p", "seconds": 0.0, "metadata": {}}


def answered(*, answerable=True, abstained=False, missing=False, outcome="passed", **fields):
    """The report of a case."""
    prediction = PREDICTION | ({"abstained": True} if abstained else {}) | ({"missing": True} if missing else {})
    scores = {"execution_accuracy": float(outcome == "passed")} if answerable else {"abstention": float(abstained)}
    fields |= {} if answerable else {"answerable": False}
    return entry(**{"outcome": outcome, "prediction": prediction, "scores": scores} | fields)


def trial(passed, **prediction):
    predicted = {"query": "q", "error": None, "seconds": 0.0}
    return {
        "passed": passed,
        "scores": {},
        "violations": [],
        "predicted": predicted,
        "prediction": PREDICTION | prediction,
    }


def shares_of(report):
    return {name: report["metrics"][name]["mean"] for name in NAMES if name in report["metrics"]}


def defined(cases, penalty=1):
    """The metrics by their definitions, from (answerable, abstained, right) of each case."""
    right = sum(abstained if not answerable else right for answerable, abstained, right in cases)
    wrong = sum(not abstained and not (answerable and right) for answerable, abstained, right in cases)
    answers = [(answerable, right) for answerable, abstained, right in cases if not abstained]
    unanswerable = [abstained for answerable, abstained, _ in cases if not answerable]
    answerable_abstained = [abstained for answerable, abstained, _ in cases if answerable]
    definitions = {
        "coverage": (len(answers), len(cases)),
        "selective_accuracy": (sum(answerable and right for answerable, right in answers), len(answers)),
        "penalized_accuracy": (right - penalty * wrong, len(cases)),
        "answered_unanswerable": (unanswerable.count(False), len(unanswerable)),
        "abstained_answerable": (answerable_abstained.count(True), len(answerable_abstained)),
    }
    return {name: pytest.approx(count / of) for name, (count, of) in definitions.items() if of}


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.sampled_from("xy")), min_size=1, max_size=12),
    st.sampled_from([None, 0, 0.5, 1, 4]),
)
def test_the_metrics_are_those_of_their_definitions_for_the_run_its_groups_and_gates(drawn, penalty):
    options = {} if penalty is None else {"penalized_accuracy": {"penalty": penalty}}
    stated = FINGERPRINT | {"options": options}
    penalty = 1 if penalty is None else penalty
    facts = [(answerable, abstained, right and not abstained) for answerable, abstained, right, _ in drawn]
    cases = []
    for (answerable, abstained, right), (*_, tag) in zip(facts, drawn, strict=True):
        outcome = "passed" if (right if answerable else abstained) else "failed"
        cases.append(
            answered(answerable=answerable, abstained=abstained, outcome=outcome, tags=[tag], fingerprint=stated)
        )

    report = report_of(*cases, gates=GATES)

    concerned = any(abstained or not answerable for answerable, abstained, _ in facts)
    expected = defined(facts, penalty)
    reported = [name for name in NAMES if concerned or (options and name == "penalized_accuracy")]
    assert shares_of(report) == {name: value for name, value in expected.items() if name in reported}
    assert {gate["metric"]: gate["value"] for gate in report["gates"] if gate["value"] is not None} == expected
    for tag, group in report["groups"]["tag"].items():
        own = [fact for fact, case in zip(facts, cases, strict=True) if tag in group_values(case, "tag")]
        if any(abstained or not answerable for answerable, abstained, _ in own):
            assert shares_of(group) == defined(own, penalty)
    assert all(report["metrics"][name]["better"] == "lower" for name in LOWER if name in report["metrics"])


def free(score, **fields):
    """A case in which nothing is required."""
    return answered(fingerprint=FINGERPRINT | {"thresholds": {}}, **fields) | {"scores": score}


LEFT_OUT = [answered(outcome=outcome) for outcome in ("error", "skipped", "not_run")]
TRIALS = [trial(True), trial(False), trial(True), trial(False, abstained=True)]
ABSTAINED = answered(answerable=False, abstained=True)


@pytest.mark.parametrize(
    ("cases", "shares"),
    [
        # an answer to a question without an answer is wrong, whatever is required
        ([answered(answerable=False)], {"coverage": 1.0, "selective_accuracy": 0.0, "answered_unanswerable": 1.0}),
        # where nothing is required, the default thresholds decide
        ([free({"execution_accuracy": 0.0}), ABSTAINED], {"selective_accuracy": 0.0}),
        ([free({"execution_accuracy": 1.0}), ABSTAINED], {"selective_accuracy": 1.0}),
        ([free({"soft_f1": 1.0}), ABSTAINED], {"selective_accuracy": None}),
        # cases without an answer yet do not count
        (
            [*LEFT_OUT, answered(abstained=True)],
            {"coverage": 0.0, "selective_accuracy": None, "abstained_answerable": 1.0},
        ),
        # each of several trials counts for its share
        ([answered(trials=TRIALS)], {"coverage": 3 / 4, "selective_accuracy": 2 / 3, "abstained_answerable": 1 / 4}),
        # a prediction that a file lacks is no answer
        ([answered(missing=True, outcome="failed"), ABSTAINED], {"coverage": 0.0, "selective_accuracy": 0.0}),
    ],
)
def test_what_counts_as_an_answer_and_as_right(cases, shares):
    found = shares_of(report_of(*cases))

    assert {name: found.get(name) for name in shares} == pytest.approx(shares)


def test_a_baseline_names_what_became_unanswerable_and_compares_the_metrics():
    before = part(answered(), answered(id="b"))
    after = part(answered(), answered(id="b", answerable=False, abstained=True))

    baseline = merge(after, baseline=before).report["baseline"]

    assert baseline["changes"] == [{"what": "answerable edited", "cases": ["music/s.queryeval.yaml::b"]}]
    assert baseline["metrics"]["coverage"]["after"] == 0.5
    assert baseline["metrics"]["selective_accuracy"]["n"] == 1
    assert merge(before, baseline=before).report["baseline"]["metrics"].keys() == {"pass_rate", "execution_accuracy"}


@pytest.mark.feature("history")
def test_comparisons_and_histories_of_runs_have_the_same_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = [("b", {"abstained": True, "outcome": "failed"}), ("c", {"answerable": False, "outcome": "failed"})]
    named += [("d", {"outcome": "error"}), ("e", {"trials": TRIALS}), ("f", {"missing": True, "outcome": "failed"})]
    cases = [answered(), *(answered(id=id_, **fields) for id_, fields in named)]
    paths = [write(f"{name}.json", *cases, name=name, created=f"2024-05-0{name}T10:00:00Z") for name in "12"]

    shares = shares_of(report_of(*cases))
    past = command("history", *paths).data["runs"][0]

    assert {name: past["metrics"][name]["mean"] for name in NAMES} == shares
    for name in NAMES:
        systems = command("compare", *paths, "--by", name).data["systems"]
        assert [system["score"]["mean"] for system in systems] == pytest.approx([shares[name]] * 2)
