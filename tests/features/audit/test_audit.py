"""`queryeval audit`: what is drawn, and what follows from the judgements."""

import json
import random
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, comb, floor, prod, sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_parts import command, refusal
from report_parts import write as write_report
from samples import FINGERPRINT, entry

from pytest_queryeval.cli import main

pytestmark = [pytest.mark.feature("report_files"), pytest.mark.usefixtures("working_folder")]

MARK, QUERY_CHARACTERS = "[redacted]", 20_000  # as in reports: a secret, and the longest query
HOSTILE = "<b>x</b>\n##[error]::set-output\u202e\x1b[31m"
AT = "2026-11-23T10:00:00Z"


def answered(id_, *, passed=True, query=None, error=None, abstained=False, **changes):
    """A case that a system has answered."""
    prediction = {"source": "p", "seconds": 0.0, "metadata": {}, **({"abstained": True} if abstained else {})}
    query = None if abstained else query or f"SELECT '{id_}'"
    predicted = {"query": query, "columns": None, "row_count": None, "sample": [], "seconds": 0.0, "error": error}
    fields = {"outcome": "passed" if passed else "failed", "prediction": prediction, "predicted": predicted}
    return entry(**{"id": id_, "scores": {"f1": float(passed)}, "fingerprint": FINGERPRINT, **fields, **changes})


def trial(query, *, passed):
    return {
        "passed": passed,
        "scores": {"f1": float(passed)},
        "violations": [],
        "predicted": {"query": query, "error": None, "seconds": 0.0},
        "prediction": {"source": "p", "seconds": 0.0, "metadata": {}},
    }


def run_of(passed, missed):
    """So many cases that pass, and that miss."""
    return [answered(f"c{number:03}", passed=number < passed) for number in range(passed + missed)]


def write(cases, name="report.json"):
    return write_report(name, *cases, name=Path(name).stem)


def draw(*reports, number=20, path="audit.jsonl"):
    """Draw cases, and return those in the file."""
    assert main(["audit", *reports, "--draw", str(number), "-o", path]) == 0
    return read_lines(path)


def read_lines(path="audit.jsonl"):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def judge(drawn, judgement, *, reviewer="anna", at=AT, path="audit.jsonl", **changes):
    """Append a judgement on each prediction of a drawn case."""
    with Path(path).open("a", encoding="utf-8") as file:
        for prediction in drawn["predictions"]:
            line = {"case": drawn["case"], "nodeid": drawn["nodeid"], "prediction": prediction, "judgement": judgement}
            file.write(json.dumps({**line, "reviewer": reviewer, "at": at, **changes}) + "\n")


def judge_all(cases, *, wrong=(), unclear=()):
    """Judge all drawn cases as right but for those with these ids."""
    for case in cases:
        judge(case, "wrong" if case["case"] in wrong else "unclear" if case["case"] in unclear else "right")


def audit(*reports):
    """What `--judged` says: as data, and as lines."""
    printed = command("audit", *(reports or ("report.json",)), "--judged", "audit.jsonl")
    return printed.data, printed.text.splitlines()


# --- intervals

LONE, SIDE, SUM = (
    (Fraction(3, 10), Fraction(0)),
    (Fraction(2, 5), Fraction(1, 100)),
    (Fraction(1, 2), Fraction(12, 1000)),
)


@cache
def exact_limits(size, judged, hits, tails):
    """The limits of a stratum by their definition, in fractions; `tails` are the share of P(X = hits), and the skew."""

    def probability(matching, number):
        return Fraction(comb(matching, number) * comb(size - matching, judged - number), comb(size, judged))

    weight = tails[0] * Fraction(sqrt(1 - judged / size))
    probabilities = {
        matching: (
            sum(probability(matching, number) for number in range(hits, judged + 1)),
            sum(probability(matching, number) for number in range(hits + 1)),
            weight * probability(matching, hits),
        )
        for matching in range(hits, size - judged + hits + 1)
    }
    skew = tails[1] * (1 - 2 * Fraction(hits, judged)) if 1 < hits < judged - 1 else 0
    low = min(matching for matching, (least, _, part) in probabilities.items() if least - part > Fraction(1, 40) - skew)
    high = max(matching for matching, (_, most, part) in probabilities.items() if most - part > Fraction(1, 40) + skew)
    return low, high


def interval_of(strata):
    """The share of right answers, with limits: the squares of the distances of strata add up."""
    open_strata = [own for own in strata if own[1] < own[0]]

    def squares(side, moving):
        tails = LONE if len(open_strata) < 2 else SUM if moving > 1 else SIDE
        return sum((exact_limits(*own, tails)[side] - own[0] * own[2] / own[1]) ** 2 for own in strata)

    value, size = sum(size * right / judged for size, judged, right in strata), sum(own[0] for own in strata)
    low = value - sqrt(squares(0, sum(right > 0 for _, _, right in open_strata)))
    high = value + sqrt(squares(1, sum(right < judged for _, judged, right in open_strata)))
    return value / size, [floor(low + 1e-9) / size, ceil(high - 1e-9) / size]


def check_estimate(passed, missed, number, choose_wrong):
    """Compare what an audit says with the definition; some of the drawn cases are judged as wrong."""
    Path("audit.jsonl").unlink(missing_ok=True)
    write(run_of(passed, missed))
    drawn = draw("report.json", number=max(number, min(passed, 5) + min(missed, 5)))
    wrong = choose_wrong(drawn)
    judge_all(drawn, wrong=wrong)

    audited = audit()[0]["audited"]

    strata = []
    for name, size in (("passed", passed), ("missed", missed)):
        judged = [case["case"] for case in drawn if case["stratum"] == name]
        strata += [(size, len(judged), len({*judged} - wrong))] if size else []
    value, interval = interval_of(strata)
    assert audited["value"] == pytest.approx(value)
    assert audited["ci95"] == pytest.approx(interval)


@given(st.integers(0, 24), st.integers(1, 16), st.integers(10, 30), st.data())
def test_the_estimate_and_its_limits_are_those_of_their_definition(passed, missed, number, data):
    check_estimate(
        passed, missed, number, lambda drawn: data.draw(st.sets(st.sampled_from([case["case"] for case in drawn])))
    )


@pytest.mark.parametrize("right", range(6))
def test_few_right_answers_of_two_small_strata_have_the_limits_of_their_definition(right):
    def all_but(drawn):
        of_strata = [[case["case"] for case in drawn if case["stratum"] == name] for name in ("passed", "missed")]
        return {id_ for ids in of_strata for id_ in ids[right:]}

    check_estimate(9, 9, 10, all_but)


@pytest.mark.parametrize("strata", [[(12, 5)], [(12, 9)], [(30, 12)], [(14, 6), (8, 5)], [(9, 7), (20, 8)]])
def test_the_definition_covers_the_truth_in_all_samples_together(strata):
    """The probability of a sample whose interval has the share of right answers, for every number of them."""

    def probability(right, hits):
        return prod(
            comb(matching, number) * comb(size - matching, judged - number) / comb(size, judged)
            for (size, judged), matching, number in zip(strata, right, hits, strict=True)
        )

    total = sum(size for size, _ in strata)
    intervals = {
        hits: interval_of([(*own, number) for own, number in zip(strata, hits, strict=True)])[1]
        for hits in product(*(range(judged + 1) for _, judged in strata))
    }
    for right in product(*(range(0, size + 1, 1 if len(strata) == 1 else 3) for size, _ in strata)):
        covered = [
            probability(right, hits) for hits, (low, high) in intervals.items() if low <= sum(right) / total <= high
        ]
        assert sum(covered) >= 0.935, right


def test_limits_of_many_cases_do_not_overflow():
    write(run_of(1_500, 0))
    judge_all(draw("report.json", number=300))

    low, high = audit()[0]["audited"]["ci95"]

    assert high == 1
    assert 0.985 < low < 0.995


@pytest.mark.parametrize("right", [0, 3, 10])
def test_the_difference_of_two_answers_of_which_one_is_right_is_that_of_one_count(right):
    write(run_of(40, 0), "small.json")
    write([answered(case["id"], query="SELECT 2") for case in run_of(40, 0)], "large.json")
    for place, case in enumerate(draw("small.json", "large.json", number=10)):
        for prediction, content in case["predictions"].items():
            is_right = (content["query"] == "SELECT 2") is (place < right)
            judge({**case, "predictions": {prediction: content}}, "right" if is_right else "wrong")

    audited = audit("small.json", "large.json")[0]["audited"]

    value, interval = interval_of([(40, 10, right)])
    assert [audited["value"], *audited["ci95"]] == pytest.approx([2 * share - 1 for share in (value, *interval)])


# --- the draw


IN_DOUBT = [
    answered("t", depends_on_tie=True),
    answered("r", challenge={"verdict": "refuted", "tried": 1, "counterexample": None, "unlike": None}),
]
FREE = {"fingerprint": {**FINGERPRINT, "thresholds": {}}}  # where nothing is required, the default thresholds decide
FREE_CASES = [answered(f"f{n}", scores={"execution_accuracy": float(n < 6)}, **FREE) for n in range(12)]


@pytest.mark.parametrize(
    ("cases", "number", "counts"),
    [
        (run_of(186, 21), 20, {"passed": 15, "missed": 5}),
        (run_of(60, 20), 40, {"passed": 28, "missed": 12}),
        (run_of(100, 100), 50, {"passed": 25, "missed": 25}),
        (run_of(100, 1), 20, {"passed": 19, "missed": 1}),
        (run_of(3, 4), 9, {"passed": 3, "missed": 4}),
        ([*run_of(20, 20), *IN_DOUBT], 20, {"passed": 9, "missed": 9, "passed in doubt": 2}),
        ([*FREE_CASES, answered("n", scores={}, **FREE)], 20, {"passed": 6, "missed": 6}),
    ],
)
def test_small_strata_have_more_than_their_part_and_at_least_five(cases, number, counts):
    write(cases)

    drawn = draw("report.json", number=number)

    assert Counter(case["stratum"] for case in drawn) == counts
    assert {case["case"] for case in drawn if case["stratum"] == "passed in doubt"} <= {"t", "r"}


def test_a_draw_has_known_probabilities_and_tells_nothing_of_gold_or_system(capsys):
    write(run_of(60, 20))

    drawn = draw("report.json")

    assert capsys.readouterr().out.splitlines() == [
        "audit.jsonl: 20 cases to judge: 6 of 20 missed, 14 of 60 passed",
        "judge them: queryeval review --audit audit.jsonl --serve",
    ]
    assert [sorted(case) for case in drawn] == [["case", "nodeid", "predictions", "probability", "stratum"]] * 20
    assert {(case["stratum"], case["probability"]) for case in drawn} == {("passed", 14 / 60), ("missed", 0.3)}
    case = drawn[0]
    assert case["nodeid"] == f"music/s.queryeval.yaml::{case['case']}"
    assert list(case["predictions"].values()) == [{"query": f"SELECT '{case['case']}'"}]
    assert [case["stratum"] for case in drawn] != sorted(case["stratum"] for case in drawn)


def test_each_case_is_drawn_as_often_as_its_probability_says():
    write(run_of(8, 6))
    times = dict.fromkeys(range(14), 0)
    for seed in range(40):
        drawn = draw("report.json", number=f"10:{seed}", path=f"{seed}.jsonl")
        for case in drawn:
            times[int(case["case"][1:])] += 1

    assert draw("report.json", number="10:39", path="again.jsonl") == drawn
    assert draw("report.json", number=10, path="0") == read_lines("0.jsonl")

    assert {number: count for number, count in times.items() if not 11 < count < 39} == {}


def test_what_failed_or_abstained_needs_no_judgement(capsys):
    error = {"kind": "timeout", "message": "too slow"}
    cases = [
        *run_of(6, 6),
        answered("x", passed=False, error=error),
        answered("y", passed=False, abstained=True),
        answered("z", passed=True, abstained=True, answerable=False),
        answered("e", outcome="error"),
        answered("s", outcome="skipped"),
    ]
    write(cases)
    drawn = draw("report.json", number=100)

    assert {case["case"] for case in drawn} == {f"c{number:03}" for number in range(12)}
    assert capsys.readouterr().out.splitlines()[1:] == [
        "not to judge: 3 answers that failed or abstained",
        "judge them: queryeval review --audit audit.jsonl --serve",
        "left out: 1 in error, 1 skipped",
    ]
    judge_all(drawn)
    report, _ = audit()
    assert report["cases"] == 15
    assert report["measured"] == 7 / 15
    assert report["audited"] == {"value": 13 / 15, "ci95": [13 / 15, 13 / 15], "bounds": None}
    assert report["wrongly_missed"]["value"] == 6 / 13
    assert report["wrongly_passed"] == {"value": 0.0, "ci95": [0.0, 0.0]}
    assert report["to_halve"] is None


def test_queries_that_the_report_does_not_have_whole_are_left_out(capsys):
    error = {"kind": "timeout", "message": "too slow"}
    redacted, cut_query = f"SELECT '{MARK}'", "S" * QUERY_CHARACTERS
    cases = [
        answered("redacted", query=redacted),
        answered("cut", query=cut_query, passed=False),
        answered("first", query="SELECT 1", trials=[trial(redacted, passed=True), trial("SELECT 1", passed=True)]),
        answered("failed", query=cut_query, passed=False, error=error),
    ]
    write([*run_of(6, 6), *cases])
    write([*run_of(12, 0), *(answered(case["id"]) for case in cases)], "other.json")

    drawn = draw("report.json")
    last_line = capsys.readouterr().out.splitlines()[-1]
    of_two = draw("report.json", "other.json", path="two.jsonl")
    judge_all(drawn)
    report, _ = audit()

    ids = {f"c{number:03}" for number in range(12)}
    assert {case["case"] for case in drawn} == ids
    assert {case["case"] for case in of_two} == ids | {"failed"}
    assert last_line == "left out: 3 with a query that the report does not have whole"
    assert report["cases"] == 13
    assert report["left_out"] == {"with a query that the report does not have whole": 3}


def test_of_several_trials_the_first_is_judged_by_its_own_verdict():
    trials = [trial("SELECT 1", passed=True), trial("SELECT 2", passed=False)]
    write([answered(f"t{number}", passed=False, query="SELECT 2", trials=trials) for number in range(6)])

    drawn = draw("report.json")

    assert {case["stratum"] for case in drawn} == {"passed"}
    assert [list(case["predictions"].values()) for case in drawn] == [[{"query": "SELECT 1"}]] * 6


# --- judgements


def test_the_first_line_says_what_the_audit_found():
    write(run_of(60, 20))
    drawn = draw("report.json")
    missed, passed = ([case for case in drawn if case["stratum"] == name] for name in ("missed", "passed"))
    judge_all(drawn, wrong=[passed[0]["case"], *(case["case"] for case in missed[:4])])

    report, lines = audit()

    right_passed, right_missed = 60 * 13 / 14, 20 * 2 / 6
    assert report["measured"] == 0.75
    assert report["wrongly_missed"]["value"] == pytest.approx(right_missed / (right_missed + right_passed))
    assert report["wrongly_passed"]["value"] == pytest.approx((60 / 14) / (60 / 14 + 20 * 4 / 6))
    assert (report["judged"], report["unclear"], report["pending"]) == (20, 0, 0)
    low, high = (f"{100 * limit:.1f}" for limit in report["audited"]["ci95"])
    assert lines[0] == (
        f"About 78.0 % of the answers are right ({low} to {high}; 20 judged); the automatic verdict says 75.0 %: it "
        "marks 10.7 % of the right answers wrong (3.3 to 24.6) and 24.3 % of the wrong answers right (5.3 to 73.9)"
    )


def test_the_number_of_cases_that_halves_the_interval_does():
    write(run_of(300, 100))
    drawn = draw("report.json", number=40)
    judge_all(drawn, wrong=[case["case"] for case in drawn if case["stratum"] == "missed"])
    report, lines = audit()
    low, high = report["audited"]["ci95"]

    number = 40 + report["to_halve"]
    Path("audit.jsonl").unlink()
    more = draw("report.json", number=number)
    judge_all(more, wrong=[case["case"] for case in more if case["stratum"] == "missed"])
    enlarged, _ = audit()

    halved = enlarged["audited"]["ci95"][1] - enlarged["audited"]["ci95"][0]
    assert 0.4 < halved / (high - low) <= 0.5
    assert f"to halve the interval, judge about {report['to_halve']} more cases" in lines


def test_unclear_answers_are_left_out_of_their_stratum_with_the_interval_of_both_extremes():
    write(run_of(60, 20))
    drawn = draw("report.json", number=20)
    passed, missed = (
        [case["case"] for case in drawn if case["stratum"] == stratum] for stratum in ("passed", "missed")
    )
    unclear = [*passed[:2], missed[0]]
    judge_all(drawn, wrong=[passed[2]], unclear=unclear)
    report, lines = audit()
    audited = {}
    for judgement in ("wrong", "right"):
        for case in drawn:
            if case["case"] in unclear:
                judge(case, judgement, at=f"2026-11-24T1{len(audited)}:00:00Z")
        audited[judgement] = audit()[0]["audited"]

    assert (report["judged"], report["unclear"]) == (20, 3)
    assert report["audited"]["value"] == pytest.approx((60 * (len(passed) - 3) / (len(passed) - 2) + 20) / 80)
    low, high = bounds = audited["wrong"]["ci95"][0], audited["right"]["ci95"][1]
    assert report["audited"]["bounds"] == pytest.approx(bounds)
    assert low < audited["wrong"]["value"] < audited["right"]["value"] <= high
    shown_bounds = f"{100 * low:.1f} to {100 * high:.1f}"
    assert f"left out as unclear: 3 answers; if all of them are wrong or all are right: {shown_bounds} %" in lines


def test_where_all_is_unclear_the_verdict_counts_and_anything_is_possible():
    write(run_of(10, 5))
    drawn = draw("report.json", number=15)
    judge_all(drawn, unclear=[case["case"] for case in drawn])

    report, _ = audit()

    assert report["audited"]["value"] == report["measured"]
    assert report["audited"]["ci95"] == report["audited"]["bounds"] == [0, 1]
    assert report["to_halve"] is None


def test_of_each_reviewer_the_last_judgement_counts_and_contradictions_are_unclear():
    write(run_of(6, 6))
    drawn = draw("report.json", number=12)
    judge_all(drawn)
    judge(drawn[0], "wrong", at="2026-11-23T11:00:00Z")
    judge(drawn[0], "right", at="2026-11-23T09:00:00+02:00")  # is earlier, though it stands later
    judge(drawn[1], "wrong", reviewer="ben")
    judge(drawn[2], "right", reviewer="ben")
    judge(drawn[3], "unclear", reviewer="ben")

    report, lines = audit()

    assert (report["judged"], report["unclear"], report["contradictory"]) == (12, 1, 1)
    assert report["agreement"] == {"share": 0.5, "answers": 2}  # unclear agrees with everything
    assert "reviewers agree in 50 % of their judgements on the 2 answers that several judged" in lines
    assert "left out as unclear: 1 answer, of which reviewers contradict each other on 1; " in "\n".join(lines)
    of_stratum = {case["case"] for case in drawn if case["stratum"] == drawn[0]["stratum"]}
    judged = 6 - (drawn[1]["case"] in of_stratum)
    assert report["audited"]["value"] == pytest.approx((6 + 6 * (judged - 1) / judged) / 12)


def test_judgements_on_other_answers_do_not_count():
    write(run_of(60, 20))
    drawn = draw("report.json")
    judge_all(drawn)
    before, _ = audit()
    undrawn = next(id_ for id_ in (f"c{n:03}" for n in range(80)) if id_ not in {case["case"] for case in drawn})
    judge({**drawn[0], "nodeid": f"music/s.queryeval.yaml::{undrawn}"}, "wrong")
    judge(drawn[0], "wrong", prediction="0123456789abcdef")

    report, lines = audit()

    assert "not counted: 2 judgements on answers that were not drawn" in lines
    assert report == {**before, "not_counted": {"judgements on answers that were not drawn": 2}}


def test_what_changed_since_the_draw_does_not_count_and_is_told():
    cases = run_of(60, 20)
    write(cases)
    drawn = draw("report.json")
    judge_all(drawn)
    passed, missed = ([case["case"] for case in drawn if case["stratum"] == name] for name in ("passed", "missed"))
    changed = {
        passed[0]: answered(passed[0], query="SELECT 2"),
        passed[1]: answered(passed[1], passed=False),
        passed[2]: answered(passed[2], outcome="error"),
        missed[0]: answered(missed[0], passed=False, query=f"SELECT\n  '{missed[0]}'"),
    }
    write([changed.get(case["id"], case) for case in cases])

    report, lines = audit()

    assert report["judged"] == 17
    assert report["not_counted"] == {
        "predictions that changed since the draw": 1,
        "verdicts that changed since the draw": 1,
        "cases without a verdict now": 1,
    }
    assert lines[0].startswith("About ")
    assert lines[-2] == (
        "not counted: 1 prediction that changed since the draw, 1 verdict that changed since the draw, "
        "1 case without a verdict now"
    )
    assert lines[-1] == "left out: 1 in error"


def test_a_report_in_which_little_of_the_draw_is_the_same_is_warned_of_first():
    write(run_of(60, 20))
    drawn = draw("report.json")
    judge_all(drawn)
    same = next(case["case"] for case in drawn if case["stratum"] == "passed")
    ids = [case["id"] for case in run_of(60, 20)]
    write([answered(id_, query=None if id_ == same else "SELECT 0") for id_ in ids])

    _, lines = audit()

    assert lines[0] == (
        "only 1 of the 20 drawn cases could be counted: give the report that the draw was made from, or draw again"
    )
    assert lines[1].startswith("About ")


def test_without_a_judgement_or_for_another_run_there_is_no_estimate(capsys):
    write(run_of(60, 20))
    write([answered(f"x{number}") for number in range(9)], "other.json")
    write([answered("e", outcome="error")], "empty.json")
    drawn = draw("report.json")
    capsys.readouterr()

    assert refusal("audit", "report.json", "--judged", "audit.jsonl").startswith("no drawn answer is judged yet: ")
    with Path("audit.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**JUDGED, "prediction": "0" * 16}) + "\n")
    assert refusal("audit", "report.json", "--judged", "audit.jsonl").startswith(
        "no drawn answer is judged yet (not counted: 1 judgement on answers that were not drawn): "
    )
    judge_all(drawn)
    assert refusal("audit", "other.json", "--judged", "audit.jsonl") == (
        "nothing of the draw counts (20 cases without a verdict now, 1 judgement on answers that were not drawn): "
        "give the report that it was made from, or draw again"
    )
    nothing = refusal("audit", "empty.json", "--draw", "9", "-o", "a.jsonl")
    assert nothing.startswith("there is nothing to judge")


def test_a_judgement_may_be_written_by_hand_without_the_prediction():
    write(run_of(5, 5))
    for case in draw("report.json", number=10):
        line = {name: case[name] for name in ("case", "nodeid")}
        with Path("audit.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "judgement": "right", "reviewer": "anna", "at": AT}) + "\n\n")

    assert audit()[0]["judged"] == 10


LINE = {"case": "a", "nodeid": "s::a", "stratum": "passed", "probability": 0.5, "predictions": {"d": {"query": "x"}}}
JUDGED = {"case": "a", "nodeid": "s::a", "judgement": "right", "reviewer": "anna", "at": AT}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "a.jsonl:2"),
        ("[1]", "a.jsonl:2: expected an object"),
        (json.dumps({**JUDGED, "judgement": "correct"}), "judgement: expected right, wrong or unclear, found the text"),
        (json.dumps({**JUDGED, "at": "2026-11-23"}), "at: expected a time with its zone"),
        (json.dumps({**JUDGED, "verdict": "x"}), "unknown key 'verdict'"),
        (json.dumps({"nodeid": "s::a", "judgement": "right"}), "a judgement needs `case`, `reviewer`, `at`"),
        (json.dumps({"case": "b"}), "a drawn case needs `nodeid`, `stratum`, `probability`, `predictions`"),
        (json.dumps(LINE), "'s::a' is drawn twice: keep each draw in a file of its own"),
        (json.dumps({**LINE, "nodeid": "s::b", "probability": 0}), "probability: expected a number above 0, up to 1"),
        (
            json.dumps({**LINE, "nodeid": "s::b", "probability": 1.01}),
            "probability: expected a number above 0, up to 1",
        ),
        (json.dumps({**LINE, "nodeid": "s::b", "predictions": {}}), "predictions: expected predictions"),
        (json.dumps({**LINE, "nodeid": "s::b", "predictions": {"d": {"sql": "x"}}}), "unknown key 'sql'"),
    ],
)
def test_a_damaged_line_is_named_with_its_file(line, problem):
    Path("a.jsonl").write_text(f"{json.dumps(LINE)}\n{line}\n", encoding="utf-8")
    write(run_of(5, 5))

    message = refusal("audit", "report.json", "--judged", "a.jsonl")

    assert message.startswith("a.jsonl:2")
    assert problem in message


def test_texts_of_suites_do_nothing_to_terminal_or_file():
    write([*run_of(6, 6), answered(HOSTILE, query=f"SELECT '{HOSTILE}'", nodeid=f"s::{HOSTILE}")])
    drawn = draw("report.json", number=13)
    judge_all(drawn)
    judge({**drawn[0], "nodeid": HOSTILE, "predictions": {"d": {}}}, "wrong")

    report, lines = audit()

    assert len(drawn) == 13
    assert report["judged"] == 13
    assert "\x1b" not in "".join(lines)


# --- two systems


def two_systems():
    """The cases of two systems: some answers are the same, some fail."""
    error = {"kind": "invalid", "message": "no such table"}
    first = [answered(f"c{number:02}", passed=number < 24) for number in range(40)]
    second = [
        answered(f"c{number:02}", passed=number % 4 != 0, query=None if number % 3 else f"SELECT {number}")
        for number in range(40)
    ]
    second[-1] = answered("c39", passed=False, error=error)
    return first, second


def write_two(*systems):
    """Write the reports of two systems; return their cases."""
    first, second = systems or two_systems()
    write(first, "small.json")
    write(second, "large.json")
    return first, second


def test_equal_answers_of_two_systems_are_judged_once():
    write_two()
    drawn = draw("small.json", "large.json", number=40)

    of_case = {case["case"]: len(case["predictions"]) for case in drawn}
    assert {case["stratum"] for case in drawn} == {"both passed", "first passed", "second passed", "both missed"}
    assert [of_case["c01"], of_case["c03"], of_case["c39"]] == [1, 2, 1]
    assert "small" not in Path("audit.jsonl").read_text(encoding="utf-8")


def test_the_audited_difference_is_exact_when_all_is_judged():
    first, second = write_two()
    drawn = draw("small.json", "large.json", number=40)
    chance, rights = random.Random(3), {}
    for case in drawn:
        for prediction, content in case["predictions"].items():
            rights[case["case"], content["query"]] = chance.random() < 0.6
            judgement = "right" if rights[case["case"], content["query"]] else "wrong"
            judge({**case, "predictions": {prediction: content}}, judgement)

    report, lines = audit("small.json", "large.json")

    means = [
        sum(rights.get((case["id"], case["predicted"]["query"]), False) for case in cases[:39]) / 40
        for cases in (first, second)
    ]
    means[0] += rights["c39", "SELECT 'c39'"] / 40
    assert report["audited"]["value"] == pytest.approx(means[1] - means[0])
    assert report["audited"]["ci95"] == pytest.approx([means[1] - means[0]] * 2)
    assert [system["audited"]["value"] for system in report["systems"]] == pytest.approx(means)
    assert report["measured"] == pytest.approx(29 / 40 - 24 / 40)
    assert lines[0].startswith(f"large has about {100 * abs(means[1] - means[0]):.1f} percentage points ")
    assert [line.split(":")[0] for line in lines[1:] if line.startswith(("small", "large"))] == ["small", "large"]


def asked(query):
    return [answered(f"c{number:02}", query=query) for number in range(40)]


def table_of(rows, row_count, *, passed=True):
    part = {"query": None, "columns": ["n"], "row_count": row_count, "sample": rows, "seconds": 0.0, "error": None}
    return [answered(f"c{number:02}", passed=passed, predicted=part) for number in range(40)]


@pytest.mark.parametrize(
    ("first", "second", "predictions", "is_certain"),
    [
        (table_of([[1], [2]], 2), table_of([[1], [2]], 2), 1, True),
        (table_of([[1], [2]], 3), table_of([[1], [2]], 4), 2, False),
        (table_of([[1], [2]], 3), table_of([[1], [2]], 3), 1, False),
        (run_of(40, 0), run_of(40, 0), 1, True),
        (run_of(40, 0), run_of(0, 40), 1, False),
        (asked("SELECT  1\n"), asked("SELECT 1"), 1, True),
    ],
    ids=["whole tables", "row counts", "cut tables", "queries", "verdicts", "blanks"],
)
def test_answers_that_may_differ_do_not_count_as_equal(first, second, predictions, is_certain):
    write_two(first, second)
    drawn = draw("small.json", "large.json", number=10)
    judge_all(drawn)

    report, _ = audit("small.json", "large.json")

    low, high = report["audited"]["ci95"]
    assert {len(case["predictions"]) for case in drawn} == {predictions}
    assert (low == high == 0) is is_certain


def test_cases_that_only_one_report_has_a_verdict_on_are_left_out(capsys):
    first, second = two_systems()
    write([*first, answered("e"), answered("x", outcome="error"), answered("only")], "small.json")
    write([*second, answered("e", outcome="error"), answered("x", outcome="error")], "large.json")

    draw("small.json", "large.json", number=40)

    assert capsys.readouterr().out.splitlines()[-1] == "left out: 2 in error, 1 not in both reports"


def test_a_judgement_on_a_case_with_two_predictions_names_one():
    write_two()
    drawn = draw("small.json", "large.json", number=40)
    place, case = next((place, case) for place, case in enumerate(drawn) if len(case["predictions"]) == 2)
    line = {"case": case["case"], "nodeid": case["nodeid"], "judgement": "right", "reviewer": "anna", "at": AT}
    with Path("audit.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")

    message = refusal("audit", "small.json", "large.json", "--judged", "audit.jsonl")

    assert place < 40
    assert message == (
        f"audit.jsonl:41: '{case['nodeid']}' has several predictions: add `prediction`: "
        f"{' or '.join(case['predictions'])}"
    )


def test_systems_with_equally_many_right_answers_are_said_to_have_as_many():
    first, second = run_of(6, 6), [answered(f"c{number:03}", passed=number >= 6) for number in range(12)]
    write_two(first, second)
    judge_all(draw("small.json", "large.json", number=12))

    report, lines = audit("small.json", "large.json")

    assert report["audited"]["ci95"] == [0.0, 0.0]
    assert lines[0] == ("large has as many right answers as small (12 judged); the automatic verdict says 0.0")


def test_reports_in_another_order_than_at_the_draw_are_told():
    first, second = write_two()
    judge_all(draw("small.json", "large.json", number=40))

    report, lines = audit("large.json", "small.json")

    reason = "cases with the verdicts of the two reports swapped: give them in the order of the draw"
    differing = sum(case["outcome"] != two["outcome"] for case, two in zip(first, second, strict=True))
    assert report["not_counted"] == {reason: differing}
    assert f"not counted: {differing} {reason}" in lines


def test_a_sample_of_two_systems_has_an_interval_and_says_which_may_be_better():
    write_two()
    drawn = draw("small.json", "large.json", number=24)
    for case in drawn:
        judge(case, "right")

    report, lines = audit("small.json", "large.json")

    low, high = report["audited"]["ci95"]
    assert low < report["audited"]["value"] < high
    assert ": either may be better" in lines[0]
    assert report["wrongly_passed"] is None
    assert set(report["systems"][0]) == {"name", "measured", "audited", "wrongly_passed", "wrongly_missed"}


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draw", "2", "-o", "a.jsonl"], "--draw 2: draw at least 10: 5 of 6 missed, 5 of 6 passed"),
        (["--draw", "20"], "--draw needs `-o AUDIT.jsonl`, where the drawn cases are written"),
        (["--draw", "20", "-o", "report.json"], "report.json: already exists, and may have judgements"),
        (["report.json", "--draw", "20", "-o", "a.jsonl"], "report.json: is given twice: give reports of different"),
        (["b.json", "c.json", "--draw", "20", "-o", "a.jsonl"], "an audit is about one report, or two: 3 are given"),
        (["--judged", "a.jsonl", "-o", "b.jsonl"], "-o is for a draw: what `--judged` says is printed"),
        (["--judged", "none.jsonl"], "none.jsonl: no such file"),
        (
            ["--draw", "many", "-o", "a.jsonl"],
            "write a number of cases, such as 100, or with a seed, 100:7, not 'many'",
        ),
        (["--draw", "0", "-o", "a.jsonl"], "write a number of cases"),
        ([], "one of the arguments --draw --judged is required"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(arguments, message):
    write(run_of(6, 6))

    error = refusal("audit", "report.json", *arguments)

    assert message in error
    assert "\n" not in error
