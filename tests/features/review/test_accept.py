"""`queryeval accept`: a reviewed prediction becomes a line of the review file."""

import json
import os
import sqlite3
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from report_parts import refusal as unusable
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
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


@pytest.mark.parametrize("moves", [False, True])
def test_what_a_reviewer_answered_before_stays_also_under_a_new_name_and_from_another_file(report, moves):
    suite = write(f"{HEAD.replace('reviews.jsonl', 'reviews/*.jsonl')}cases: [{{id: a, {RIGHT}}}]\n")
    assert main(["accept", report(), "a", *ANNA]) == 0
    (line,) = lines("reviews/anna.jsonl")
    Path("reviews/anna.jsonl").unlink()
    write(json.dumps({**line, "at": "2020-01-01T00:00:00Z"}), f"reviews/{'old' if moves else 'anna'}.jsonl")
    text = suite.read_text(encoding="utf-8").replace("id: a", f"id: {'b' if moves else 'a'}")
    suite.write_text(text.replace("SELECT 1", "SELECT 2"), encoding="utf-8")

    assert main(["accept", report(), "b" if moves else "a", *ANNA]) == 0

    assert lines("reviews/anna.jsonl")[-1]["answers"] == [{"query": "SELECT 1"}, {"query": "SELECT 2"}]
    (case,) = load_cases(suite)
    assert [gold.query for gold in case.golds] == ["SELECT name FROM product", "SELECT 1", "SELECT 2"]


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
    """The problems of a call that appends nothing."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert main(["accept", report, *names, *ANNA]) == 1
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    *problems, last = capsys.readouterr().out.splitlines()
    assert last == "nothing was appended"
    return problems


CHANGED = "the case has changed since the report ({}): run it again".format
ASKED = "gold: SELECT name FROM product, question: Which?, evidence: Some, metadata: {db: x}, predicted: SELECT 1"


@pytest.mark.parametrize(
    ("keys", "changed", "fields", "problem"),
    [
        # A prediction that cannot be an answer.
        (
            "gold: SELECT name FROM product, predicted: SELECT nme FROM product",
            None,
            {},
            "the prediction failed (invalid): no such",
        ),
        (
            "gold: SELECT 1, predicted_table: {columns: [a], rows: [[1]]}",
            None,
            {},
            "the prediction is a table, of which the report",
        ),
        (f"skip: later, {RIGHT}", None, {}, "the report has no prediction (skipped)"),
        (
            "gold: SELECT name FROM product, predicted: 'SELECT  name FROM product'",
            None,
            {},
            "the query is a gold of the case already",
        ),
        (
            "question: Who?, answerable: false, predicted: {abstained: true}",
            None,
            {},
            "the prediction is an abstention, which is right already",
        ),
        (
            "gold: SELECT name FROM product, predicted: SELECT 'a-secret-token'",
            None,
            {},
            "the report does not have the query as it was, but without secrets or its end",
        ),
        # A case that has changed since.
        (ASKED, ("SELECT name", "SELECT price"), {}, CHANGED("gold")),
        (ASKED, ("Which?", "Which one?"), {}, CHANGED("question")),
        (ASKED, ("Some", "Other"), {}, CHANGED("evidence")),
        (ASKED, ("db: x", "db: y"), {}, CHANGED("metadata or conversation")),
        # A report that does not fit the suites.
        (RIGHT, None, {"id": "gone", "nodeid": "s.queryeval.yaml::gone"}, "there is no case 'gone': choose from a"),
        (
            RIGHT,
            None,
            {"nodeid": "gone.queryeval.yaml::a"},
            "no file gone.queryeval.yaml from here: start the command in the root folder",
        ),
    ],
)
def test_a_prediction_that_cannot_be_an_answer_of_the_case_is_refused(
    report, capsys, monkeypatch, keys, changed, fields, problem
):
    monkeypatch.setenv("SHOP_TOKEN", "a-secret-token")
    text = f"{HEAD}cases:\n  - {{id: a, {keys}}}\n"
    path, reported = write(text), report(**fields)
    path.write_text(text.replace(*(changed or ("", ""))), encoding="utf-8")

    (line,) = refusal(capsys, reported, fields.get("id", "a"))

    assert problem in line


def test_with_one_that_is_refused_nothing_is_appended(report, capsys):
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n  - {{id: b, gold: SELECT 1, predicted: SELEC}}\n")

    (line,) = refusal(capsys, report(), "a", "b")

    assert line.startswith("s.queryeval.yaml::b: the prediction failed")


def test_a_reviewer_accepts_a_prediction_once_and_another_reviewer_may_too(report, capsys):
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n")
    path = report()
    assert main(["accept", path, "a", *ANNA]) == 0
    capsys.readouterr()

    assert refusal(capsys, path, "a") == ["s.queryeval.yaml::a: anna has accepted the query already"]
    assert main(["accept", path, "a", "--reviewer", "ben"]) == 0


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

    assert "the gold answer breaks a.schema.json" in line


BARE = HEAD.replace("reviews: reviews.jsonl\n", "")
LINE = '{"id": "a", "kind": "sql", "source": "shop.db", "gold": "SELECT 2", "predicted": "SELECT 1"}\n'
NAMELESS = "the name of a reviewer has 1 to 100 characters that can be printed"


@pytest.mark.parametrize(
    ("name", "text", "arguments", "problem"),
    [
        (
            "t.queryeval.yaml",
            f"{HEAD}cases: [{{id: a, {RIGHT}}}]",
            ["a", *ANNA],
            "'a' is the id of several cases: write s.queryeval.yaml::a or t.queryeval.yaml::a",
        ),
        ("", "", ["cheapst", *ANNA], "no case 'cheapst': did you mean 'cheapest'?"),
        ("", "", ["s.queryeval.yaml::b", *ANNA], "no case 's.queryeval.yaml::b': did you mean 's.queryeval.yaml::a'?"),
        # Without a review file, the line to add is told.
        (
            "t.queryeval.yaml",
            f"{BARE}cases: [{{id: b, {RIGHT}}}]",
            ["b", *ANNA],
            "no review file for t.queryeval.yaml: add to t.queryeval.yaml: reviews: reviews.jsonl",
        ),
        (
            "t.queryeval.jsonl",
            LINE.replace('"a"', '"b"'),
            ["b", *ANNA],
            "no review file for t.queryeval.jsonl: add to queryeval.yaml: reviews: reviews.jsonl",
        ),
        ("", "", ["a"], "who reviewed it? git has no user.name: add --reviewer NAME"),
        ("", "", ["a", "--reviewer", ""], "who reviewed it? git has no user.name: add --reviewer NAME"),
        *(("", "", ["a", "--reviewer", name], f"--reviewer: {NAMELESS}") for name in (" ", "a\nb", "a\x1b[31m")),
        ("", "", ["a", "--reviewer", "x" * 101], f"--reviewer: {NAMELESS}"),
    ],
)
def test_without_one_case_a_review_file_or_a_name_the_command_is_refused(
    report, monkeypatch, tmp_path, name, text, arguments, problem
):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    sqlite3.connect("shop.db").close()
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n  - {{id: cheapest, {RIGHT}}}\n")
    if name:
        write(text, name)

    assert unusable("accept", report(), *arguments) == problem


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


def test_a_write_that_fails_leaves_the_file_as_it_was(report, monkeypatch):
    write(f"{HEAD}cases: [{{id: a, {RIGHT}}}]\n")
    write("\n", "reviews.jsonl")
    path, write_some = report(), os.write

    def full_disk(file, content):
        if bytes(content).startswith(b'{"suite"'):
            return write_some(file, content[:20])
        if b'"decision"' in bytes(content):
            raise OSError(28, "No space left on device")
        return write_some(file, content)

    monkeypatch.setattr(os, "write", full_disk)

    assert "No space left on device" in unusable("accept", path, "a", *ANNA)
    assert Path("reviews.jsonl").read_text(encoding="utf-8") == "\n"
