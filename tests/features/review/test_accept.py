"""`queryeval accept`: one more gold of a case, and every other character of its file as it was."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import CaseError, Location
from pytest_queryeval.features.review.new_gold import with_gold
from pytest_queryeval.reports import write_report

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
HEAD = "kind: sql   # of the shop\nsource: {sqlite: {script: shop.sql}}\n\n"
LONG = "SELECT name\n\n  FROM product -- not # here\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")
    return tmp_path


@pytest.fixture
def report(folder):
    """Write the report of the suites in the folder."""

    def run(**changes):
        found = evaluate(load_cases("."))
        for case in found["cases"]:
            case.update(changes)
        write_report(found, Path("report.json"))
        return "report.json"

    return run


def edited(text, gold="SELECT 3", line=2, name="a.queryeval.yaml"):
    return with_gold(text, Location(Path(name), line), "a", gold)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "    gold: |   # why\n      SELECT 1\n\n    # after\n    question: q\n",
            "    gold_any:\n    - |   # why\n      SELECT 1\n    - SELECT 3\n\n    # after\n    question: q\n",
        ),
        ("    gold: SELECT 1\n      FROM t", "    gold_any:\n    - SELECT 1\n      FROM t\n    - SELECT 3\n"),
        ('    gold:\n      "SELECT 1" # c\n', '    gold_any:\n    -\n      "SELECT 1" # c\n    - SELECT 3\n'),
        (
            "    gold_any:\n      - SELECT 1\n      # c\n      - 'SELECT 2'  # d\n\n    tags: [x]\n",
            "    gold_any:\n      - SELECT 1\n      # c\n      - 'SELECT 2'  # d\n      - SELECT 3\n\n    tags: [x]\n",
        ),
        ("    gold_any: [SELECT 1, 'SELECT 2',] # d\n", "    gold_any: [SELECT 1, 'SELECT 2', \"SELECT 3\",] # d\n"),
        (
            "    gold_table:\n      columns: [a]\n      rows:\n        - [1]\n    tags: [ x ]\n",
            "    gold_any:\n    -\n      columns: [a]\n      rows:\n        - [1]\n    - SELECT 3\n    tags: [ x ]\n",
        ),
        ("    gold_file: a.sql\n", "    gold_any:\n    - file: a.sql\n    - SELECT 3\n"),
        (
            "    gold: &q SELECT 1\n  - {id: b, gold: *q}\n",
            "    gold_any:\n    - &q SELECT 1\n    - SELECT 3\n  - {id: b, gold: *q}\n",
        ),
        ("    gold: |2\n        SELECT 1\n", "    gold_any:\n    - |2\n        SELECT 1\n    - SELECT 3\n"),
    ],
)
def test_a_gold_becomes_the_first_of_several(folder, before, after):
    top = "cases:\n  - id: a\n"

    assert edited(top + before) == top + after
    windows = (top + before).replace("\n", "\r\n")
    assert edited(windows) == (top + after).replace("\n", "\r\n")
    assert edited(f"\ufeff{top}{before}") == f"\ufeff{top}{after}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{id: a, gold: SELECT 1, tags: [ x ]}", '{id: a, gold_any: [SELECT 1, "SELECT 3"], tags: [ x ]}'),
        ("{gold_file: a.sql, id: a}", '{gold_any: [{file: a.sql}, "SELECT 3"], id: a}'),
        ('{"id": "a", "gold": "SELECT 1"}', '{"id": "a", "gold_any": ["SELECT 1", "SELECT 3"]}'),
        (
            "{id: a, gold_table: {columns: [a], rows: [[1]]}}",
            '{id: a, gold_any: [{columns: [a], rows: [[1]]}, "SELECT 3"]}',
        ),
    ],
)
def test_a_case_in_braces_stays_in_braces(folder, before, after):
    assert edited(f"cases:\n  - {before}  # c\n") == f"cases:\n  - {after}  # c\n"


def test_a_query_of_several_lines_becomes_a_block(folder):
    text = edited("cases:\n  - id: a\n    gold: SELECT 1\n", gold=LONG)

    assert text.endswith("    - |\n      SELECT name\n\n        FROM product -- not # here\n")


@pytest.mark.parametrize(
    "gold",
    [
        "x: 1\n- y\n",
        "'\"#\n",
        " leading\n",
        "a\n\tb\n",
        "*alias",
        "{x}",
        "null",
        "--- \n...\n",
        "\x1b[31m\u2028\x85\n",
        "${HOME} !!python/object:os.system\n",
    ],
)
@pytest.mark.parametrize("case", ["{id: a, gold: SELECT 1}", "id: a\n    gold: SELECT 1"])
def test_a_hostile_query_is_a_text_and_nothing_else(folder, case, gold):
    text = edited(f"cases:\n  - {case}\n  - {{id: b, gold: SELECT 2}}\n", gold=gold)

    first, second = load_cases(write(f"kind: sql\nsource: a.db\n{text}"), require_prediction=False)
    assert [one.query for one in first.golds] == ["SELECT 1", gold]
    assert [one.query for one in second.golds] == ["SELECT 2"]


@pytest.mark.parametrize(
    "text",
    [
        "x: &q SELECT 1\ncases: [{id: a, gold: *q}]\n",
        "cases:\n  - id: b\n    gold: SELECT 1\n",
        "cases:\n  - id: a\n    gold: |+\n      SELECT 1\n\n    question: q\n",  # its empty lines would be lost
        "cases:\n  - id: a\n    conversation: []\n",
    ],
)
def test_what_cannot_be_edited_is_refused(folder, text):
    with pytest.raises(CaseError, match="cannot be changed where it stands: write the query under `gold_any` by hand"):
        edited(text)


def test_other_lines_of_json_lines_are_not_touched(folder):
    line = '{"id": "a",  "gold": "SELECT 1.10", "metadata": {"x": 1.10, "y": "\\ud83d\\ude00"}}'
    text = f'{{"id":"b"}}\n{line}\r\n\n{{"id": "c"'

    changed = edited(text, gold=LONG, name="a.queryeval.jsonl")

    new = line.replace('"gold": "SELECT 1.10"', f'"gold_any": ["SELECT 1.10", {json.dumps(LONG)}]')
    assert changed == text.replace(line, new)


def test_a_prediction_of_a_report_becomes_a_gold(report, capsys):
    path = write(f"""{HEAD}cases:
  # the cheapest
  - id: cheapest
    gold: "SELECT name FROM product LIMIT 1"  # any
    predicted: SELECT 'plum'
  - {{id: all, gold: SELECT name FROM product, predicted: "SELECT DISTINCT name FROM product"}}
""")
    path.chmod(0o640)
    text = path.read_text(encoding="utf-8")

    status = main(["accept", report(), "cheapest", "s.queryeval.yaml::all", "--json"])

    out = json.loads(capsys.readouterr().out)
    assert status == 0
    assert out == {
        "accepted": [
            {"id": "cheapest", "path": "s.queryeval.yaml", "line": 6, "golds": 2},
            {"id": "all", "path": "s.queryeval.yaml", "line": 11, "golds": 2},
        ],
        "problems": [],
    }
    assert path.read_text(encoding="utf-8") == text.replace(
        '    gold: "SELECT name FROM product LIMIT 1"  # any\n',
        "    gold_any:\n    - \"SELECT name FROM product LIMIT 1\"  # any\n    - SELECT 'plum'\n",
    ).replace(
        "gold: SELECT name FROM product,", 'gold_any: [SELECT name FROM product, "SELECT DISTINCT name FROM product"],'
    )
    assert path.stat().st_mode & 0o777 == 0o640
    assert [case["outcome"] for case in evaluate(load_cases("."))["cases"]] == ["passed", "passed"]
    assert sorted(os.listdir()) == ["report.json", "s.queryeval.yaml", "shop.sql"]  # noqa: PTH208


def test_lines_are_those_after_the_edit_and_a_case_that_passed_is_noted(report, capsys):
    cases = "  - id: {}\n    gold: SELECT name FROM product\n    predicted: {}\n"
    failed, passed = cases.format("failed", "SELECT 1"), cases.format("passed", "SELECT DISTINCT name FROM product")
    write(f"{HEAD}cases:\n{failed}{passed}")

    main(["accept", report(), "failed", "passed"])

    assert capsys.readouterr().out.splitlines() == [
        "s.queryeval.yaml:5: 'failed' has 2 golds now",
        "s.queryeval.yaml:10: 'passed' has 2 golds now, but had passed without this one",
    ]


def test_a_case_in_a_file_of_its_own_and_a_link_to_it(report):
    write(f"{HEAD}cases: more/*.yaml\n")
    real = write("id: a\ngold: SELECT name FROM product\npredicted: SELECT 1\n", "elsewhere.txt")
    Path("more").mkdir()
    Path("more/a.yaml").symlink_to(Path("../elsewhere.txt"))

    reported = report(path="s.queryeval.yaml", nodeid="s.queryeval.yaml::a")  # as pytest names the case

    assert main(["accept", reported, "a"]) == 0
    assert real.read_text(encoding="utf-8").startswith("id: a\ngold_any:\n- SELECT name FROM product\n- SELECT 1\n")
    assert Path("more/a.yaml").is_symlink()


@pytest.mark.parametrize(
    ("predicted", "added"),
    [('{"x": 2.50}', {"x": 2.5}), ('```json\n"y"\n```', "y"), ("null", None), ("[true]", [True])],
)
def test_a_json_prediction_becomes_a_value(report, predicted, added):
    path = write(f"kind: json\ncases:\n  - id: a\n    gold: {{x: 1}}\n    predicted: {json.dumps(predicted)}\n")

    assert main(["accept", report(), "a"]) == 0
    (case,) = load_cases(path)
    assert [gold.answer.value for gold in case.golds] == [{"x": 1}, added]


def refusal(capsys, report, *names):
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert main(["accept", report, *names]) == 1
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "nothing was changed"
    return lines


RIGHT = "gold: SELECT name FROM product, predicted: SELECT 1"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "gold: SELECT name FROM product, predicted: SELECT nme FROM product",
            "the prediction failed (invalid): no such",
        ),
        (
            "gold: SELECT nme FROM product, predicted_table: {columns: [a], rows: [[1]]}",
            "the prediction is a table, of",
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
    ],
)
def test_a_prediction_that_cannot_be_a_gold_is_refused(report, capsys, keys, problem):
    write(f"{HEAD}cases:\n  - {{id: a, {keys}}}\n  - {{id: b, {RIGHT}}}\n")

    (line,) = refusal(capsys, report(), "a", "b")

    assert line.startswith(f"s.queryeval.yaml::a: {problem}")


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
        ({"trials": [{}, {}]}, "is no report"),
        ({"id": "gone", "nodeid": "s.queryeval.yaml::gone"}, "there is no case 'gone': choose from a"),
        (
            {"path": "gone.queryeval.yaml"},
            "no file gone.queryeval.yaml from here: start the command in the root folder",
        ),
    ],
)
def test_a_report_that_does_not_fit_the_suites_is_refused(report, capsys, changes, problem):
    write(f"{HEAD}cases:\n  - {{id: a, {RIGHT}}}\n")
    name = changes.get("id", "a")
    if "trials" in changes:
        with pytest.raises(SystemExit) as caught:
            main(["accept", report(**changes), name])
        assert caught.value.code == 2
        assert problem in capsys.readouterr().err
    else:
        (line,) = refusal(capsys, report(**changes), name)
        assert problem in line


def test_a_row_of_a_table_is_refused(report, capsys):
    write("id,gold,predicted\na,SELECT name FROM product,SELECT 1\n", "cases.csv")
    write(f"{HEAD}cases: {{file: cases.csv}}\n")

    (line,) = refusal(capsys, report(), "a")

    assert line.endswith(
        "cases.csv, row 2: a row has one gold: correct it, or move the case to YAML: `queryeval import table`,"
        " and write the query under `gold_any`"
    )


def test_several_trials_are_refused(report, capsys):
    write(
        "import itertools\nturns = itertools.count()\ndef predict(case):\n    return f'SELECT {next(turns)}'\n", "p.py"
    )
    write(f"{HEAD}predictor: p.py:predict\ntrials: 2\ncases:\n  - {{id: a, gold: SELECT name FROM product}}\n")

    (line,) = refusal(capsys, report(), "a")

    assert "the report has 2 trials, maybe with other queries: write the query under `gold_any` by hand" in line


def test_a_query_without_its_secrets_is_refused(report, capsys, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "a-secret-token")
    write(f"{HEAD}cases:\n  - {{id: a, gold: SELECT name FROM product, predicted: SELECT 'a-secret-token'}}\n")

    (line,) = refusal(capsys, report(), "a")

    assert "does not have the query as it was, but without secrets or its end" in line


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

    with pytest.raises(SystemExit) as caught:
        main(["accept", report(), name])

    assert caught.value.code == 2
    assert capsys.readouterr().err == f"{problem}\n"


def test_a_suite_that_cannot_be_read_with_the_new_gold_is_as_it_was(report, capsys):
    write('{"type": "object"}', "a.schema.json")
    write('kind: json\njson_schema: a.schema.json\ncases:\n  - id: a\n    gold: {x: 1}\n    predicted: "[1]"\n')

    (line,) = refusal(capsys, report(), "a")

    assert "with the prediction the suite cannot be read" in line


def test_commands_at_the_same_time_lose_no_gold(report, monkeypatch):
    ids = [f"c{number}" for number in range(4)]
    cases = "".join(f"  - id: {id_}\n    gold: SELECT 1\n    predicted: SELECT 1 + 0\n" for id_ in ids)
    write(f"{HEAD}cases:\n{cases}")
    path = report()
    both_have_read = Barrier(len(ids))

    def slow(text, *others):
        with suppress(BrokenBarrierError):
            both_have_read.wait(timeout=0.2)  # all are here, unless one at a time is
        return with_gold(text, *others)

    monkeypatch.setattr("pytest_queryeval.features.review.accept_command.with_gold", slow)
    with ThreadPoolExecutor(len(ids)) as pool:
        assert list(pool.map(lambda id_: main(["accept", path, id_]), ids)) == [0] * len(ids)

    assert [len(case.golds) for case in load_cases(".")] == [2] * len(ids)
