"""Reports of runs of the same cases with different metrics, joined into one: `queryeval render A.json B.json`."""

import json

import pytest
from openpyxl import load_workbook
from samples import FINGERPRINT
from spreadsheets import case, hostile_report, make_report, skipped, timed

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.report_files.render_command import join
from pytest_queryeval.reports import render_json
from pytest_queryeval.results.report_file import read_report

F1, VES = {"soft_f1": 0.5}, {"ves": 0.9}


def joined(*reports):
    return join({f"{name}.json": report for name, report in zip("abc", reports, strict=False)})


def gate(metric, least):
    defaults = {"type": "limits", "folder": "", "metric": metric, "where": {}, "min": least, "max": None}
    return defaults | {"value": None, "n": 0, "errors": 0, "ok": True, "reason": "", "cases": 1, "ran": 1}


def test_a_case_has_the_scores_of_all_runs():
    report = joined(make_report(case(1, scores=F1), case(2, scores=F1)), make_report(case(1, scores=VES)))

    assert [case["scores"] for case in report["cases"]] == [F1 | VES, F1]
    assert {name: statistics["n"] for name, statistics in report["metrics"].items()} == {"soft_f1": 2, "ves": 1}
    assert [(run["name"], run["cases"], run["metrics"]) for run in report["joined"]] == [
        ("a.json", 2, ["soft_f1"]),
        ("b.json", 1, ["ves"]),
    ]


def test_an_equal_score_counts_for_the_first_run_and_none_for_no_run():
    report = joined(make_report(case(scores=F1 | {"ves": None})), make_report(case(scores=F1 | VES)))

    assert report["cases"][0]["scores"] == F1 | VES
    assert [run["metrics"] for run in report["joined"]] == [["soft_f1"], ["ves"]]


@pytest.mark.parametrize(
    ("one", "other", "worst"),
    [("passed", "failed", "failed"), ("failed", "error", "error"), ("skipped", "passed", "passed")],
)
def test_the_outcome_of_a_case_is_its_worst_one_with_its_message(one, other, worst):
    runs = [make_report(case(scores={}, outcome=outcome, message=outcome)) for outcome in (one, other)]

    for report in (joined(*runs), joined(*reversed(runs))):
        assert [(case["outcome"], case["message"]) for case in report["cases"]] == [(worst, worst)]


def test_a_case_that_failed_in_both_runs_has_both_messages_and_all_missed_thresholds():
    def failed(metric):
        violation = {"metric": metric, "min": 1.0, "max": None, "value": 0.5}
        fingerprint = FINGERPRINT | {"metrics": [metric], "thresholds": {metric: {"min": 1.0, "max": None}}}
        values = {"message": f"{metric} 0.500", "violations": [violation], "fingerprint": fingerprint}
        return make_report(case(scores={metric: 0.5}, outcome="failed", **values))

    (entry,) = joined(failed("soft_f1"), failed("ves"), failed("ves"))["cases"]

    assert entry["message"] == "soft_f1 0.500\nves 0.500"
    assert [violation["metric"] for violation in entry["violations"]] == ["soft_f1", "ves"]
    assert entry["fingerprint"]["metrics"] == list(entry["fingerprint"]["thresholds"]) == ["soft_f1", "ves"]


def test_trials_have_the_scores_of_all_runs():
    def run(metric, *passed):
        base_case = case()
        part = {"prediction": base_case["prediction"], "predicted": base_case["predicted"], "violations": []}
        trials = [part | {"passed": each, "scores": {metric: 1.0}} for each in passed]
        return make_report(case(scores={metric: 1.0}, trials=trials))

    (entry,) = joined(run("soft_f1", True, None), run("ves", False, None))["cases"]

    assert [(trial["passed"], trial["scores"]) for trial in entry["trials"]] == [
        (False, {"soft_f1": 1.0, "ves": 1.0}),
        (None, {"soft_f1": 1.0, "ves": 1.0}),
    ]
    with pytest.raises(ReportError, match="has another prediction"):
        joined(run("soft_f1", True, True), run("ves", True))


def test_gates_of_all_runs_are_evaluated_on_the_joined_cases():
    first, second = make_report(case(scores=F1), gates=[gate("soft_f1", 0.4)]), make_report(case(scores=VES))

    report = joined(first, second | {"gates": [gate("ves", 0.95)]})

    assert [(gate["metric"], gate["value"], gate["ok"]) for gate in report["gates"]] == [
        ("soft_f1", 0.5, True),
        ("ves", 0.9, False),
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"question": "Who?"}, "has another question than in a.json: join runs of one state of the suites"),
        ({"gold": case()["gold"] | {"query": "SELECT 3"}}, "has another gold than in a.json"),
        ({"predicted": case()["predicted"] | {"query": "SELECT 3"}}, "has another prediction than in a.json: score"),
        (
            {"scores": {"soft_f1": 0.25}},
            "has 0.25 for metric soft_f1, but 0.5 in a.json: request the metric in one of the runs",
        ),
    ],
)
def test_cases_that_differ_are_refused(changes, problem):
    with pytest.raises(ReportError) as raised:
        joined(make_report(case(scores=F1)), make_report(case(scores=VES) | changes))

    assert str(raised.value).startswith(f"b.json: music/s.queryeval.yaml::c1 {problem}")


def test_a_score_that_differs_only_between_later_runs_is_refused():
    runs = [make_report(case(scores=scores)) for scores in (F1, VES, {"ves": 1.0})]

    with pytest.raises(ReportError, match=r"c\.json: .* has 1 for metric ves, but 0\.9 in b\.json"):
        joined(*runs)


def test_golds_of_cases_with_fingerprints_are_compared_by_these():
    """The gold that predicted came nearest to may be another one by another metric."""

    def run(scores, query, golds):
        gold = case()["gold"] | {"query": query}
        return make_report(case(scores=scores, gold=gold, fingerprint=FINGERPRINT | {"golds": golds}))

    assert joined(run(F1, "SELECT 1", "x"), run(VES, "SELECT 9", "x"))["cases"]
    with pytest.raises(ReportError, match="has another gold"):
        joined(run(F1, "SELECT 1", "x"), run(VES, "SELECT 1", "y"))


def test_a_case_that_only_one_run_came_to_keeps_its_answers():
    (entry,) = joined(make_report(skipped()), make_report(case(scores=VES, prediction=timed(3.0))))["cases"]
    assert (entry["outcome"], entry["prediction"]["seconds"], entry["scores"]) == ("passed", 3.0, VES)


def test_render_joins_reports_into_one_workbook_that_says_what_is_from_which(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, scores in (("a", F1), ("b", VES)):
        (tmp_path / f"{name}.json").write_bytes(render_json(make_report(case(scores=scores))))

    assert main(["render", "a.json", "b.json", "-o", "all.xlsx", "-o", "all.json", "--excel-layout", "plain"]) == 0

    workbook = load_workbook(tmp_path / "all.xlsx")
    assert workbook.sheetnames == ["Cases", "Run", "Statistics"]
    header, row = workbook["Cases"].iter_rows(values_only=True)
    assert {name: row[header.index(name)] for name in ("soft_f1", "ves")} == F1 | VES
    runs = [[row[0], row[3]] for row in workbook["Run"].iter_rows(values_only=True)]
    assert ["a.json", "soft_f1"] in runs
    assert ["b.json", "ves"] in runs
    assert read_report(tmp_path / "all.json")["joined"][1]["metrics"] == ["ves"]


def test_reports_that_cannot_be_joined_are_a_usage_error_and_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, score in (("a", 0.5), ("b", 0.75)):
        (tmp_path / f"{name}.json").write_bytes(render_json(make_report(case(scores={"soft_f1": score}))))

    with pytest.raises(SystemExit) as ended:
        main(["render", "a.json", "b.json", "-o", "all.xlsx"])

    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "b.json: music/s.queryeval.yaml::c1 has 0.75 for metric soft_f1, but 0.5 in a.json: "
        "request the metric in one of the runs only\n"
    )
    assert not (tmp_path / "all.xlsx").exists()


def test_a_joined_report_of_hostile_texts_is_a_report():
    report = joined(hostile_report(), hostile_report())

    assert json.loads(render_json(report))["totals"] == hostile_report()["totals"]
