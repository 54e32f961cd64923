"""`queryeval accept`: a reviewed prediction becomes a line of the review file."""

import json
import os
import sqlite3
import subprocess
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import pytest
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.features.review.decisions import open_for_append  # white box: many appends at once
from pytest_queryeval.reports import write_report

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews.jsonl\n\n"
RIGHT = "gold: SELECT name FROM product, predicted: SELECT 1"
ANNA = ("--reviewer", "anna")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")
    return tmp_path


@pytest.fixture
def report(folder):
    """Write the report of the suites in the folder."""

    def run(**changes):
        report = evaluate(load_cases("."))
        for case in report["cases"]:
            case.update(changes)
        write_report(report, Path("report.json"))
        return "report.json"

    return run


def lines(path="reviews.jsonl"):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_a_prediction_becomes_a_right_answer_and_the_suite_stays_as_it_is(report, capsys):
    suite = write(f"""{HEAD}cases:
  - {{id: cheapest, gold: "SELECT name FROM product LIMIT 1", predicted: SELECT 'kiwi'}}
  - {{id: all, gold: SELECT name FROM product, predicted: "SELECT name FROM product ORDER BY 1"}}
""")
    text = suite.read_bytes()

    status = main(["accept", report(), "cheapest", "s.queryeval.yaml::all", "--json", *ANNA])

    captured = capsys.readouterr()
    assert status == 0
    assert captured.err.splitlines() == [
        "reviews.jsonl: the prediction of 'cheapest' is a right answer (anna)",
        "reviews.jsonl: the prediction of 'all' is a right answer (anna), but had passed without this one",
    ]
    assert json.loads(captured.out) == {
        "accepted": [
            {"id": id_, "path": "reviews.jsonl", "decision": "right", "reviewer": "anna"} for id_ in ("cheapest", "all")
        ],
        "problems": [],
    }
    first, second = lines()
    assert first.pop("gold").startswith("sha256:")
    assert first.pop("at").endswith("Z")
    assert first == {
        "suite": "s.queryeval.yaml",
        "case": "cheapest",
        "decision": "right",
        "reviewer": "anna",
        "answers": [{"query": "SELECT 'kiwi'"}],
    }
    assert second["answers"] == [{"query": "SELECT name FROM product ORDER BY 1"}]
    assert suite.read_bytes() == text
    assert [case["outcome"] for case in evaluate(load_cases("."))["cases"]] == ["passed", "passed"]


def test_what_a_reviewer_answered_before_stays(report, capsys):
    suite = write(f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n")
    assert main(["accept", report(), "a", *ANNA]) == 0
    suite.write_text(suite.read_text(encoding="utf-8").replace("SELECT 1", "SELECT 2"), encoding="utf-8")

    assert main(["accept", report(), "a", *ANNA]) == 0

    assert lines()[-1]["answers"] == [{"query": "SELECT 1"}, {"query": "SELECT 2"}]
    assert [gold.query for gold in load_cases(suite)[0].golds] == ["SELECT name FROM product", "SELECT 1", "SELECT 2"]


def test_what_a_reviewer_answered_before_stays_under_a_new_name_and_from_another_file(report, monkeypatch):
    suite = write(f"{HEAD.replace('reviews.jsonl', 'reviews/*.jsonl')}cases: [{{id: a, {RIGHT}}}]\n")
    assert main(["accept", report(), "a", *ANNA]) == 0
    Path("reviews/anna.jsonl").rename("reviews/old.jsonl")
    text = suite.read_text(encoding="utf-8").replace("id: a", "id: b").replace("SELECT 1", "SELECT 2")
    suite.write_text(text, encoding="utf-8")
    evaluated = report()
    monkeypatch.setattr("pytest_queryeval.features.review.decisions.now", lambda: "2100-01-01T00:00:00Z")

    assert main(["accept", evaluated, "b", *ANNA]) == 0

    (line,) = lines("reviews/anna.jsonl")
    assert (line["case"], line["answers"]) == ("b", [{"query": "SELECT 1"}, {"query": "SELECT 2"}])


def test_beside_a_wrong_gold_the_prediction_replaces_it(report):
    suite = write(f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n")
    decision = {"suite": suite.name, "case": "a", "decision": "wrong", "reviewer": "ben", "at": "2026-11-01T00:00:00Z"}
    write(json.dumps(decision), "reviews.jsonl")  # without an end of the line

    assert main(["accept", report(), "a", *ANNA]) == 0

    assert lines()[-1]["decision"] == "wrong"
    assert [gold.query for gold in load_cases(suite)[0].golds] == ["SELECT 1"]


def test_with_a_glob_each_reviewer_has_a_file_beside_the_others(report):
    write(f"{HEAD.replace('reviews.jsonl', 'golds/by-*.jsonl')}cases: [{{id: a, {RIGHT}}}]\n")
    path = report()

    for reviewer in ("Anna Lee", "../../ben"):
        assert main(["accept", path, "a", "--reviewer", reviewer]) == 0

    assert sorted(path.name for path in Path("golds").iterdir()) == ["by-anna-lee.jsonl", "by-ben.jsonl"]
    assert lines("golds/by-ben.jsonl")[0]["suite"] == "../s.queryeval.yaml"
    assert load_cases(".")[0].review.reviewers == ("Anna Lee", "../../ben")


def test_the_reviewer_is_the_user_of_git_by_default(report, monkeypatch, tmp_path):
    write(f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n")
    write("[user]\nname = Zoë\n", "gitconfig")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))

    assert main(["accept", report(), "a"]) == 0

    assert lines()[0]["reviewer"] == "Zoë"


def test_rows_of_a_table_and_cases_in_files_of_their_own_can_be_accepted(report):
    write("id,gold,predicted\na,SELECT name FROM product,SELECT 1\n", "cases.csv")
    write(f"{HEAD}cases: {{file: cases.csv}}\n")
    write(f"{HEAD}cases: more/*.yaml\n", "t.queryeval.yaml")
    Path("more").mkdir()
    write("id: b\ngold: SELECT name FROM product\npredicted: SELECT 1\n", "more/b.yaml")

    assert main(["accept", report(), "a", "b", *ANNA]) == 0

    assert [case["outcome"] for case in evaluate(load_cases("."))["cases"]] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("predicted", "value", "answer"),
    [
        ('{"x": 2.50}', {"x": 2.5}, {"x": 2.5}),
        ('```json\n"y"\n```', '"y"', "y"),
        ("null", "null", None),
        ("[true]", [True], [True]),
    ],
)
@pytest.mark.feature("json")
def test_a_json_prediction_becomes_a_value(report, predicted, value, answer):
    gold = f"gold: {{x: 1}}\n    predicted: {json.dumps(predicted)}\n"
    path = write(f"kind: json\nreviews: reviews.jsonl\ncases:\n  - id: a\n    {gold}")

    assert main(["accept", report(), "a", *ANNA]) == 0

    assert lines()[0]["answers"] == [{"value": value}]
    (case,) = load_cases(path)
    assert [gold.answer.value for gold in case.golds] == [{"x": 1}, answer]


def refusal(capsys, report, *names):
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert main(["accept", report, *names, *ANNA]) == 1
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    *problems, last = capsys.readouterr().out.splitlines()
    assert last == "nothing was appended"
    return problems


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "gold: SELECT name FROM product, predicted: SELECT nme FROM product",
            "the prediction failed (invalid): no such",
        ),
        (
            "gold: SELECT 1, predicted_table: {columns: [a], rows: [[1]]}",
            "the prediction is a table, of which the report",
        ),
        ("gold: SELECT name FROM product, skip: later, predicted: SELECT 1", "the report has no prediction (skipped)"),
        (
            "gold: SELECT name FROM product, predicted: 'SELECT  name FROM product'",
            "the query is a gold of the case already",
        ),
        (
            "question: Who?, answerable: false, predicted: {abstained: true}",
            "the prediction is an abstention, which is right already",
        ),
        (
            "gold: SELECT name FROM product, predicted: SELECT 'a-secret-token'",
            "the report does not have the query as it was, but without secrets or its end",
        ),
    ],
)
def test_a_prediction_that_cannot_be_an_answer_is_refused(report, capsys, monkeypatch, keys, problem):
    monkeypatch.setenv("SHOP_TOKEN", "a-secret-token")
    write(f"{HEAD}cases:\n  - {{id: a, {keys}}}\n  - {{id: b, {RIGHT}}}\n")

    (line,) = refusal(capsys, report(), "a", "b")

    assert line.startswith(f"s.queryeval.yaml::a: {problem}")


def test_a_reviewer_accepts_a_prediction_once_and_another_reviewer_may_too(report, capsys):
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n")
    path = report()
    assert main(["accept", path, "a", *ANNA]) == 0
    capsys.readouterr()

    assert refusal(capsys, path, "a") == ["s.queryeval.yaml::a: anna has accepted the query already"]
    assert main(["accept", path, "a", "--reviewer", "ben"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("SELECT name", "SELECT price", "gold"),
        ("Which?", "Which one?", "question"),
        ("Some", "Other", "evidence"),
        ("db: x", "db: y", "metadata or conversation"),
    ],
)
def test_a_case_that_has_changed_since_is_refused(report, capsys, old, new, named):
    text = f"{HEAD}cases:\n  - {{id: a, question: Which?, evidence: Some, metadata: {{db: x}}, {RIGHT}}}\n"
    path = write(text)
    reported = report()
    path.write_text(text.replace(old, new), encoding="utf-8")

    assert refusal(capsys, reported, "a") == [
        f"s.queryeval.yaml::a: the case has changed since the report ({named}): run it again"
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": "gone", "nodeid": "s.queryeval.yaml::gone"}, "there is no case 'gone': choose from a"),
        (
            {"nodeid": "gone.queryeval.yaml::a"},
            "no file gone.queryeval.yaml from here: start the command in the root folder",
        ),
    ],
)
def test_a_report_that_does_not_fit_the_suites_is_refused(report, capsys, changes, problem):
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n")

    (line,) = refusal(capsys, report(**changes), changes.get("id", "a"))

    assert problem in line


def test_a_suite_outside_of_the_current_folder_is_refused(report, folder, capsys, monkeypatch):
    write(f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n")
    path = report(nodeid="../s.queryeval.yaml::a")
    write("raise SystemExit('imported')\n", "conftest.py")
    (folder / "run").mkdir()
    monkeypatch.chdir("run")

    (problem,) = refusal(capsys, f"../{path}", "a")
    assert "is not below the current folder" in problem


def test_several_trials_are_refused(report, capsys):
    write(
        "import itertools\nturns = itertools.count()\ndef predict(case):\n    return f'SELECT {next(turns)}'\n", "p.py"
    )
    case = "{id: a, question: Which?, gold: SELECT name FROM product}"
    write(f"{HEAD}predictor: p.py:predict\ntrials: 2\ncases:\n  - {case}\n")

    (line,) = refusal(capsys, report(), "a")

    assert "the report has 2 trials, maybe with other queries: write the answer into the review file by hand" in line


@pytest.mark.feature("json")
def test_an_answer_that_the_settings_rule_out_is_refused(report, capsys):
    write('{"type": "object"}', "a.schema.json")
    head = "kind: json\njson_schema: a.schema.json\nreviews: reviews.jsonl\n"
    write(f'{head}cases:\n  - id: a\n    gold: {{x: 1}}\n    predicted: "[1]"\n')

    (line,) = refusal(capsys, report(), "a")

    assert "gold breaks a.schema.json" in line


def unusable(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(["accept", *arguments])
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a", "'a' is the id of several cases: write s.queryeval.yaml::a or t.queryeval.yaml::a"),
        ("cheapst", "no case 'cheapst': did you mean 'cheapest'?"),
        ("s.queryeval.yaml::b", "no case 's.queryeval.yaml::b': did you mean 's.queryeval.yaml::a'?"),
    ],
)
def test_a_name_is_that_of_one_case(report, capsys, name, problem):
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n  - {{id: cheapest, {RIGHT}}}\n")
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n", "t.queryeval.yaml")

    assert unusable(capsys, report(), name, *ANNA) == f"{problem}\n"


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("s.queryeval.yaml", f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n", "s.queryeval.yaml"),
        (
            "s.queryeval.jsonl",
            '{"id": "a", "kind": "sql", "source": "shop.db", "gold": "SELECT 2", "predicted": "SELECT 1"}\n',
            "queryeval.yaml",
        ),
    ],
)
def test_without_a_review_file_the_line_to_add_is_printed(report, capsys, name, text, place):
    sqlite3.connect("shop.db").close()
    write(text.replace("reviews: reviews.jsonl\n", ""), name)

    assert unusable(capsys, report(), "a", *ANNA) == (
        f"no review file for {name}: add to {place}: reviews: reviews.jsonl\n"
    )


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1b[31m", "x" * 101])
def test_a_reviewer_has_a_name_that_can_be_shown(report, capsys, name, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    write(f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n")

    assert "--reviewer" in unusable(capsys, report(), "a", "--reviewer", name)


def append_many(path, reviewer):
    for number in range(500):
        with open_for_append(path) as append:
            append([{"case": f"{reviewer}-{number}", "note": "x" * (number * 7 % 5_000)}])


@pytest.mark.process
def test_two_processes_at_once_lose_and_double_nothing(tmp_path):
    path = tmp_path / "reviews.jsonl"
    context = get_context("spawn")
    processes = [context.Process(target=append_many, args=(path, reviewer)) for reviewer in ("anna", "ben")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    cases = [line["case"] for line in lines(path)]
    assert sorted(cases) == sorted(f"{reviewer}-{number}" for reviewer in ("anna", "ben") for number in range(500))


@pytest.mark.process
def test_git_merges_two_branches_with_decisions_without_a_conflict(report, folder, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(write("[user]\nname = x\nemail = x@x\n", "gitconfig")))
    write(f"{HEAD.replace('reviews.jsonl', 'reviews/*.jsonl')}cases: [{{id: a, {RIGHT}}}]\n")
    path = report()

    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", "s.queryeval.yaml", "shop.sql")
    git("commit", "-m", "suite")
    for reviewer in ("anna", "ben"):
        git("checkout", "-b", reviewer, "main")
        assert main(["accept", path, "a", "--reviewer", reviewer]) == 0
        git("add", "reviews")
        git("commit", "-m", reviewer)
    git("merge", "anna")

    files = sorted(Path("reviews").iterdir())
    assert [line["reviewer"] for line in chain.from_iterable(map(lines, files))] == ["anna", "ben"]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "reviews.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    write_some = os.write

    def full_disk(file, content):
        if len(content) < 1_000:
            raise OSError(28, "No space left on device")
        return write_some(file, content[:500])

    monkeypatch.setattr(os, "write", full_disk)
    with pytest.raises(OSError, match="No space left"), open_for_append(path) as append:
        append([{"note": "x" * 2_000}])

    assert path.read_text(encoding="utf-8") == "{}\n"
