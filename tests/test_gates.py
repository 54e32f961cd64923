from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_maker import evaluate_gate
from samples import FINGERPRINT, entry, make_case, query

from pytest_queryeval.core.errors import UnknownNameError
from pytest_queryeval.core.gates import requirement
from pytest_queryeval.core.groups import GROUPS, ScopeIndex, is_below
from pytest_queryeval.results.gates import (
    CaseWithoutResult,
    EarlyDecision,
    count_cases,
    evaluate_gates,
    gate_parts,
    gate_text,
)


def gate(metric="f1", *, folder="music", minimum=None, maximum=None, is_sum=False, **where):
    required = requirement(metric, minimum=minimum, maximum=maximum)
    return required | {"type": "sum" if is_sum else "limits", "folder": folder, "where": where}


def result(given_gate, *cases, number=0, **how):
    """The gate evaluated on cases, where it is about `number` cases, or all of these if they are more."""
    return evaluate_gate(given_gate | {"cases": number}, cases, **how)


def scored(*values, **changes):
    return [entry(scores={"f1": value}, **changes) for value in values]


def test_a_gate_is_the_mean_of_the_scores_that_there_are():
    gate_result = result(gate(minimum=0.5), *scored(1.0, 0.5, None))

    assert (gate_result["value"], gate_result["n"], gate_result["ok"]) == (0.75, 2, True)


@pytest.mark.parametrize(
    ("limits", "ok"),
    [
        ({"minimum": 0.3}, True),
        ({"minimum": 0.31}, False),
        ({"maximum": 0.3}, True),
        ({"maximum": 0.29}, False),
        ({"minimum": 0.2, "maximum": 0.4}, True),
        ({}, True),
    ],
)
def test_a_gate_admits_what_lies_within_its_limits(limits, ok):
    assert result(gate(**limits), *scored(0.1, 0.1, 0.7))["ok"] is ok  # a mean of 0.3, but for rounding


def test_the_verdict_keeps_what_the_gate_asked_for():
    gate_result = result(gate(minimum=0.85, maximum=1.0, difficulty="hard"), *scored(1.0, difficulty="hard"))

    assert {key: gate_result[key] for key in ("folder", "metric", "where", "min", "max")} == {
        "folder": "music",
        "metric": "f1",
        "where": {"difficulty": "hard"},
        "min": 0.85,
        "max": 1.0,
    }


def test_pass_rate_counts_errors_against_and_leaves_out_what_has_no_verdict():
    outcomes = ("passed", "passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed")

    gate_result = result(gate("pass_rate", minimum=0.4), *(entry(outcome=outcome) for outcome in outcomes))

    assert (gate_result["value"], gate_result["n"], gate_result["ok"]) == (0.4, 5, True)


@given(st.lists(st.sampled_from(["passed", "failed", "missed", "error"]), min_size=1))
def test_pass_rate_is_the_share_of_passed_cases(outcomes):
    gate_result = result(gate("pass_rate", minimum=0.0), *(entry(outcome=outcome) for outcome in outcomes))

    assert gate_result["value"] == outcomes.count("passed") / len(outcomes)


@pytest.mark.parametrize(
    ("folder", "path", "counts"),
    [
        ("", "music/s.queryeval.yaml", True),
        (".", "music/s.queryeval.yaml", True),
        ("music", "music/deep/s.queryeval.yaml", True),
        ("music", "musicals/s.queryeval.yaml", False),
        ("music/deep", "music/s.queryeval.yaml", False),
        (".", "/elsewhere/s.queryeval.yaml", False),
        ("/elsewhere", "/elsewhere/s.queryeval.yaml", True),
        ("..", "music/s.queryeval.yaml", True),
        ("..", "../music/s.queryeval.yaml", True),
        ("..", "../../music/s.queryeval.yaml", False),
        ("../..", "../music/s.queryeval.yaml", True),
        ("../q", "../q/s.queryeval.yaml", True),
        ("../q", "music/s.queryeval.yaml", False),
        (".", "../music/s.queryeval.yaml", False),
        ("..", "/elsewhere/s.queryeval.yaml", False),
    ],
)
def test_a_gate_judges_the_cases_below_its_folder(folder, path, counts):
    gate_result = result(gate(folder=folder, minimum=0.0), *scored(1.0, path=path))

    assert gate_result["n"] == int(counts)


def test_where_narrows_the_cases_by_every_group_it_names():
    cases = [
        *scored(1.0, tags=["nightly", "x"], difficulty="hard"),
        *scored(0.5, tags=["nightly"], difficulty="easy"),
        *scored(0.0, tags=[], difficulty="hard"),
    ]

    assert result(gate(minimum=0.0, tag="nightly"), *cases)["value"] == 0.75
    assert result(gate(minimum=0.0, tag="nightly", difficulty="hard"), *cases)["value"] == 1.0
    assert result(gate(minimum=0.0, kind="sparql"), *cases)["n"] == 0


def test_where_names_a_feature_of_gold():
    joined, second = entry(scores={"f1": 0.25}, features=["join", "order"]), entry(scores={"f1": 1.0})

    assert result(gate(minimum=0.5, feature="join"), joined, second)["value"] == 0.25
    assert result(gate(minimum=0.5, **{"not": {"feature": "join"}}), joined, second)["value"] == 1.0


@pytest.mark.parametrize(("feature", "number"), [("join", 1), ("order", 0)])
def test_the_features_of_a_case_that_did_not_run_are_known(feature, number):
    case = make_case(golds=(query("SELECT a.x FROM a JOIN b"),))

    assert count_cases([gate(feature=feature)], [], [CaseWithoutResult("music/s.queryeval.yaml", case)]) == [number]


def error(gold_answers, **changes):
    """A case in error; its golds ran if there is a digest of their answers."""
    fingerprint = {**FINGERPRINT, "metrics": ["f1"], "gold_answers": gold_answers}
    return entry(outcome="error", scores={}, **{"fingerprint": fingerprint, "prediction": None, **changes})


def unscored(**changes):
    return entry(scores={"f1": None}, fingerprint={**FINGERPRINT, "metrics": ["f1"]}, **changes)


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        ([], "2 cases"),
        ([error("abc")] * 48, "2 cases, 48 without a prediction are left out"),
        ([error("abc"), error(None)], "2 cases, 1 without a prediction is left out, 1 in error not counted"),
        ([error("abc", prediction={"source": "mine"})], "2 cases, 1 in error not counted"),
        ([error(None, answerable=False)], "2 cases, 1 without a prediction is left out"),
        ([unscored()] * 3, "2 cases, 3 without a score are left out"),
        ([entry(scores={"other": 1.0}), unscored(outcome="skipped")], "2 cases"),
    ],
)
def test_a_mean_says_which_cases_it_leaves_out(left_out, text):
    gate_result = result(gate(minimum=0.5), *scored(1.0, 0.8), *left_out)

    assert gate_result["ok"] is True
    assert gate_text(gate_result) == f"f1 in music: 0.900, needs at least 0.5 ({text})"
    assert gate_parts(gate_result).about == f"needs 0.5 · {text.replace(', ', ' · ')}"


def test_a_gate_without_evaluated_cases_is_missed():
    gate_result = result(gate(minimum=0.5))

    assert (gate_result["ok"], gate_result["value"], gate_result["n"]) == (False, None, 0)
    assert gate_result["reason"] == "no case was evaluated"


def test_a_gate_for_a_tag_that_no_case_has_says_so():
    assert result(gate(minimum=0.5, tag="nightly"))["reason"] == "no case in this run has the tag 'nightly'"


@pytest.mark.parametrize("outcome", ["skipped", "error"])
def test_a_gate_whose_cases_all_ran_without_a_score_is_missed(outcome):
    gate_result = result(gate(minimum=0.5), entry(outcome=outcome))

    assert (gate_result["ok"], gate_result["reason"]) == (False, "no case was evaluated")


def test_a_gate_is_not_evaluated_where_the_rest_of_its_cases_could_change_it():
    gate_result = result(gate(minimum=0.5), *scored(0.0, 1.0, 1.0), number=40)

    assert (gate_result["ok"], gate_result["value"], gate_result["cases"], gate_result["ran"]) == (None, 2 / 3, 40, 3)
    assert gate_result["reason"] == "3 of 40 cases ran"
    assert gate_text(gate_result) == "f1 in music: 3 of 40 cases ran (0.667, needs at least 0.5)"


@pytest.mark.parametrize(("value", "ok"), [(1.0, True), (0.0, False)])
def test_a_gate_is_evaluated_where_the_rest_of_its_cases_cannot_change_it(value, ok):
    settled, open_ = (result(gate("valid_query", minimum=0.5), *cases(value, 7), number=n) for n in (12, 16))

    assert (settled["ok"], open_["ok"]) == (ok, None)
    assert gate_text(settled).endswith("(7 cases, 7 of 12 cases ran)")


def cases(value, number):
    return [entry(id=str(n), scores={"valid_query": value}) for n in range(number)]


SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@given(
    st.lists(st.none() | SHARES, max_size=4),
    st.integers(1, 3),
    st.sampled_from([(0.5, None), (None, 0.5), (0.25, 0.75), (0.0, None), (None, 1.0)]),
)
def test_a_gate_that_is_evaluated_early_is_what_any_rest_of_its_cases_would_make_it(scores, rest, limits):
    limit_gate = gate("valid_query", minimum=limits[0], maximum=limits[1])
    ran = [entry(id=str(n), scores={"valid_query": value}) for n, value in enumerate(scores)]
    wholes = [
        [*ran, *(entry(id=f"rest-{n}", scores={"valid_query": value}) for n, value in enumerate(values))]
        for values in product((None, 0.0, 0.25, 0.5, 0.75, 1.0), repeat=rest)
    ]

    early = result(limit_gate, *ran, number=len(ran) + rest)
    verdicts = {
        gate_result["ok"] for whole in wholes if (gate_result := result(limit_gate, *whole))["value"] is not None
    }

    assert early["ok"] is (verdicts.pop() if len(verdicts) == 1 and early["value"] is not None else None)


def test_no_rest_settles_what_may_have_any_score():
    assert result(gate("my_own", minimum=0.1), entry(scores={"my_own": 5.0}), number=2)["ok"] is None


def test_a_cost_is_over_its_limit_whatever_the_rest_costs():
    limit_gate = gate("prediction_seconds", maximum=5)

    over, under = (
        result(limit_gate, entry(scores={"prediction_seconds": seconds}), number=2)["ok"] for seconds in (20.0, 0.0)
    )

    assert (over, under) == (False, None)


def test_a_gate_is_not_evaluated_where_files_that_nobody_asked_for_cannot_be_read():
    gate_result = result(gate(minimum=0.5), *scored(1.0), number=None)

    assert (gate_result["ok"], gate_result["cases"]) == (None, None)
    assert gate_result["reason"] == "1 case ran, but other suite files below could not be read"


def test_a_selection_is_evaluated_on_the_cases_that_ran_where_that_is_wanted():
    met = result(gate(minimum=0.5), *scored(1.0), number=40, mode="selection")
    nothing = result(gate(minimum=0.5), number=40, mode="selection")

    assert (met["ok"], gate_text(met)) == (True, "f1 in music: 1.000, needs at least 0.5 (1 case, 1 of 40 cases ran)")
    assert (nothing["ok"], nothing["reason"]) == (None, "0 of 40 cases ran")


def test_a_gate_of_a_shard_is_left_to_the_merge():
    gate_result = result(gate(minimum=0.5), *scored(0.0), mode="off")

    assert (gate_result["ok"], gate_result["value"], gate_result["cases"], gate_result["reason"]) == (
        None,
        None,
        1,
        "gates are off",
    )


def test_cases_that_are_skipped_are_not_left_out():
    gate_result = result(gate(minimum=0.5), *scored(1.0), *scored(None, outcome="skipped"), number=1)

    assert (gate_result["ok"], gate_result["cases"], gate_result["ran"]) == (True, 1, 1)


@pytest.mark.parametrize("number", [1, 40])
def test_a_file_that_could_not_be_read_misses_the_gates_above_it(number):
    ran = scored(1.0)

    below = result(gate(minimum=0.5), *ran, unreadable_files=["music/bad.queryeval.yaml"], number=number)
    beside = result(gate(minimum=0.5), *ran, unreadable_files=["sports/bad.queryeval.yaml"])

    assert (below["ok"], below["reason"]) == (False, "music/bad.queryeval.yaml could not be read")
    assert beside["ok"] is True


def test_a_gate_of_a_whole_folder_without_its_metric_is_missed_and_says_so():
    gate_result = result(gate(minimum=0.5), entry(scores={"json_equal": 1.0}))

    assert (gate_result["ok"], gate_result["reason"]) == (False, f"no case has a score of {gate_result['metric']}")


def test_a_gate_names_what_no_case_has():
    gate_result = result(gate(minimum=0.5, tag="nigthly"), *scored(1.0, tags=["nightly"]))

    assert gate_result["ok"] is False
    assert gate_result["reason"] == "no case in this run has the tag 'nigthly': did you mean 'nightly'?"


def test_not_leaves_out_the_cases_that_fit_all_of_it():
    mixed = [
        *scored(1.0, tags=["slow"], difficulty="hard"),
        *scored(0.5, tags=["slow"], difficulty="easy"),
        *scored(0.0, difficulty="hard"),
    ]

    assert result(gate(minimum=0.0, **{"not": {"tag": "slow"}}), *mixed)["value"] == 0.0
    assert result(gate(minimum=0.0, **{"not": {"tag": "slow", "difficulty": "hard"}}), *mixed)["value"] == 0.25
    assert result(gate(minimum=0.0, difficulty="hard", **{"not": {"tag": "slow"}}), *mixed)["n"] == 1


@given(st.dictionaries(st.sampled_from(["tag", "kind"]), st.sampled_from("ab"), min_size=1), st.data())
def test_where_and_its_not_are_each_others_rest(where, data):
    values = {group: data.draw(st.lists(st.sampled_from("ab"))) for group in ("tag", "kind")}

    index = ScopeIndex([("", where), ("", {"not": where})])
    assert len(index.scopes_of("s.queryeval.yaml", values.__getitem__)) == 1


def is_in_scope(where, values):
    """Whether a case with these values is one that `where` names, by its definition."""
    if where.get("not") and is_in_scope(where["not"], values):
        return False
    return all(value in values[group] for group, value in where.items() if group != "not")


CONDITIONS = st.dictionaries(st.sampled_from(GROUPS.names()), st.sampled_from("abc"), max_size=3)
WHERES = st.one_of(CONDITIONS, st.builds(lambda where, excluded: where | {"not": excluded}, CONDITIONS, CONDITIONS))
FOLDERS = ("", ".", "music", "music/deep", "musicals", "..", "../..", "../q", "/elsewhere")
PATHS = (
    *("s.queryeval.yaml", "music/s.queryeval.yaml", "music/deep/s.queryeval.yaml", "musicals/s.queryeval.yaml"),
    *("../s.queryeval.yaml", "../q/s.queryeval.yaml", "../../s.queryeval.yaml", "/elsewhere/s.queryeval.yaml"),
)


@given(
    st.lists(st.tuples(st.sampled_from(FOLDERS), WHERES), max_size=12),
    st.sampled_from(PATHS),
    st.fixed_dictionaries({group: st.lists(st.sampled_from("abc"), max_size=3) for group in GROUPS.names()}),
)
def test_the_index_finds_the_scopes_that_a_case_is_in(scopes, path, values):
    expected = [n for n, (folder, where) in enumerate(scopes) if is_below(path, folder) and is_in_scope(where, values)]

    assert ScopeIndex(scopes).scopes_of(path, values.__getitem__) == expected


def test_gates_that_differ_in_their_limits_are_each_judged_by_their_own():
    gates = [gate(minimum=least) | {"cases": 2} for least in (0.5, 0.75, 0.8)]

    results = evaluate_gates(gates, scored(1.0, 0.5))

    assert [(gate["min"], gate["value"], gate["ok"]) for gate in results] == [
        (0.5, 0.75, True),
        (0.75, 0.75, True),
        (0.8, 0.75, False),
    ]


def test_a_case_is_read_once_however_many_gates_there_are():
    lookups = []

    def values(group):
        lookups.append(group)
        return ["t1000"]

    index = ScopeIndex([("", {"kind": "sql", "tag": f"t{number}"}) for number in range(1_000)])

    assert index.scopes_of("s.queryeval.yaml", values) == []
    assert lookups == ["tag"]


def test_cases_that_did_not_run_have_no_values_of_a_group_that_is_not_registered():
    with pytest.raises(UnknownNameError, match="unknown group 'owner'"):
        count_cases([gate(owner="sql")], [], [CaseWithoutResult("music/s.queryeval.yaml", make_case())])


def test_the_text_of_a_gate_says_what_is_needed_and_which_errors_are_left_out():
    limit_gate = gate(minimum=0.85, maximum=0.99, difficulty="hard", **{"not": {"tag": "slow"}})
    hard = {"difficulty": "hard"}

    gate_result = result(limit_gate, *scored(0.75, 0.83, **hard), entry(outcome="error", **hard))

    assert gate_text(gate_result) == (
        "f1 of hard cases but not slow cases in music: "
        "0.790, needs at least 0.85 and at most 0.99 (2 cases, 1 in error not counted)"
    )


def test_the_value_of_a_gate_has_as_many_digits_as_it_takes_to_see_why_it_is_missed():
    gate_result = result(gate(minimum=0.85), *scored(0.8496))

    assert gate_text(gate_result) == "f1 in music: 0.8496, needs at least 0.85 (1 case)"


COST = "metadata[cost]"


def cost(**limits):
    return gate(COST, is_sum=True, **limits)


def asked(*costs, **changes):
    """A case with a call that tells its cost, or one for each of several trials; None tells nothing."""
    calls = [
        {"predicted": None, "prediction": {"seconds": 1.0, "metadata": {} if known is None else {"cost": known}}}
        for known in costs
    ]
    return entry(**(changes | calls[0]), trials=calls if calls[1:] else [])


@pytest.mark.parametrize(
    ("limits", "ok"),
    [
        ({"maximum": 0.3}, True),
        ({"maximum": 0.29}, False),
        ({"minimum": 0.3}, True),
        ({"minimum": 0.4}, False),
        ({"minimum": 0.1, "maximum": 1}, True),
    ],
)
def test_a_sum_is_over_all_calls(limits, ok):
    gate_result = result(cost(**limits), asked(0.1), asked(0.1, 0.1))

    assert (gate_result["type"], gate_result["value"], gate_result["n"], gate_result["ok"]) == (
        "sum",
        pytest.approx(0.3),
        2,
        ok,
    )


def test_a_negative_number_takes_nothing_from_a_sum_and_one_that_is_not_finite_leaves_its_case_without_a_value():
    gate_result = result(cost(maximum=5), asked(7), asked(-100), asked("inf"))

    assert (gate_result["value"], gate_result["n"], gate_result["ok"]) == (7, 2, False)
    assert gate_text(gate_result) == "sum of metadata[cost] in music: 7, needs at most 5 (2 of 3 cases have a value)"


def test_a_sum_is_over_the_cases_that_where_names():
    gate_result = result(cost(maximum=5, tag="x"), asked(4, tags=["x"]), asked(4, tags=["y"]))

    assert (gate_result["value"], gate_result["n"], gate_result["ok"]) == (4, 1, True)
    assert gate_text(gate_result) == "sum of metadata[cost] of x cases in music: 4, needs at most 5 (1 case)"


def test_a_sum_says_how_many_cases_have_a_value_and_which_errors_do_not_count():
    """A call that was made has its cost, whatever became of its case."""
    cases = [
        asked(4),
        asked(None),
        asked(True),
        asked(8, outcome="error"),
        entry(outcome="error"),
        entry(outcome="skipped"),
    ]

    gate_result = result(cost(maximum=20), *cases)

    assert (gate_result["value"], gate_result["n"], gate_result["errors"], gate_result["ran"], gate_result["ok"]) == (
        12,
        2,
        1,
        5,
        True,
    )
    assert gate_text(gate_result) == (
        "sum of metadata[cost] in music: 12, needs at most 20 (2 of 5 cases have a value, 1 in error not counted)"
    )


def test_a_sum_without_any_value_is_missed():
    gate_result = result(cost(maximum=5), asked(None))

    assert (gate_result["ok"], gate_result["reason"]) == (False, "no case has a value of metadata[cost]")


@pytest.mark.parametrize(
    ("limits", "ok"),
    [({"maximum": 3}, False), ({"maximum": 5}, None), ({"minimum": 3}, True), ({"minimum": 5}, None)],
)
def test_a_sum_of_some_cases_decides_where_more_cannot_change_it(limits, ok):
    assert result(cost(**limits), asked(4), number=2)["ok"] is ok


@pytest.mark.parametrize(
    ("value", "maximum", "shown"),
    [
        (1_234_567, 1_000_000, "1,234,567, needs at most 1,000,000"),
        (5.00001, 5, "5.00001, needs at most 5"),
        (1_000_000.25, 1_000_000, "1000000.25, needs at most 1,000,000"),
        (0.0123456, 1, "0.01235, needs at most 1"),
    ],
)
def test_a_sum_is_told_with_the_digits_that_it_takes(value, maximum, shown):
    assert gate_text(result(cost(maximum=maximum), asked(value))) == f"sum of metadata[cost] in music: {shown} (1 case)"


NOT_RUN = [entry(outcome="not_run", scores={})] * 7
ERROR = entry(outcome="error", scores={}, fingerprint=FINGERPRINT | {"metrics": ["f1"]})
OTHER_ERROR = entry(outcome="error", scores={}, fingerprint=FINGERPRINT | {"metrics": ["valid_query"]})


def test_a_gate_that_was_decided_early_keeps_the_decision_and_counts_errors_as_0():
    cases = [*scored(1.0, 0.5), ERROR, OTHER_ERROR, *NOT_RUN]

    gate_result = result(gate(minimum=0.4), *cases, number=11, decision=EarlyDecision(is_met=True, after=3, of=10))

    assert (gate_result["value"], gate_result["n"], gate_result["errors"], gate_result["ran"]) == (0.5, 3, 1, 4)
    assert (gate_result["ok"], gate_result["reason"], gate_result["decided"]) == (True, "", {"after": 3, "of": 10})
    assert gate_text(gate_result) == (
        "f1 in music: 0.500, needs at least 0.4 (3 cases, 1 in error counted as 0, decided after 3 of 10)"
    )


def test_a_decision_does_not_count_where_all_cases_of_the_gate_ran():
    gate_result = result(gate(minimum=0.4), *scored(1.0, 0.0), decision=EarlyDecision(is_met=False, after=1, of=2))

    assert (gate_result["ok"], "decided" in gate_result) == (True, False)


def test_cases_that_were_not_run_leave_a_gate_open_that_was_not_decided():
    gate_result = result(gate(minimum=0.5), *scored(1.0, 0.5), *NOT_RUN, number=9)

    assert (gate_result["ok"], gate_result["ran"], gate_result["cases"], gate_result["reason"]) == (
        None,
        2,
        9,
        "2 of 9 cases ran",
    )
