"""`queryeval check`: each rule finds what was planted for it, and nothing else; `rules.yaml` has more for each."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from suites import write

from pytest_queryeval import METRICS
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import CHECK_RULES, SourceError
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES

SHOP = """
CREATE TABLE product (name TEXT, sku TEXT, price REAL, year TEXT);
INSERT INTO product VALUES ('pear', '9', 2, '1999'), ('plum', '10', 2, '2001'), ('fig', '11', 5, '2000');
"""
FOLDER = """
kind: sql
source: shop
sources:
  shop: {sqlite: {script: shop.sql}}
  crawl: {crawl: anywhere}
  old: {sqlite: {script: old.sql}}
thresholds: {execution_accuracy: 1, json_equal: 1}
"""
SUITE = """
cases:
  - {id: right, question: All names, gold: SELECT name FROM product}
  - {id: fails, gold: SELECT nme FROM product}
  - {id: unlike, gold: SELECT price FROM product, metrics: [never_right]}
  - {id: empty, gold: SELECT name FROM product WHERE price > 9}
  - {id: slow, gold: slow, source: crawl}
  - {id: unstable, gold: "SELECT name, random() FROM product"}
  - {id: tie, gold: SELECT name FROM product ORDER BY price LIMIT 1}
  - {id: text, gold: SELECT price FROM product ORDER BY sku}
  - {id: constant, gold: SELECT 42}
  - {id: again, question: "All  names", gold: SELECT name FROM product WHERE price > 0}
  - {id: column, gold: SELECT year FROM product, compare: {gold_columns: [month]}}
  - {id: other, question: Each name, gold: select NAME from Product /* all */}
  - {id: lax, gold: SELECT sku FROM product, thresholds: {execution_accuracy: 0, execution_seconds: {max: 9}}}
  - {id: expects, gold: SELECT sku FROM product WHERE price > 1, expect: {columns: [prize], rows: {min: 1}}}
  - {id: broken, gold: SELECT price FROM product, metrics: [broken], thresholds: {broken: 1}}
"""
PLANTED = [
    ("unused-source", "queryeval.yaml", 7, None),
    ("stale-setting", "queryeval.yaml", 8, None),
    ("gold-fails", "s.queryeval.yaml", 4, "fails"),
    ("gold-not-equal-to-itself", "s.queryeval.yaml", 5, "unlike"),
    ("gold-empty", "s.queryeval.yaml", 6, "empty"),
    ("gold-slow", "s.queryeval.yaml", 7, "slow"),
    ("gold-unstable", "s.queryeval.yaml", 8, "unstable"),
    ("limit-tie", "s.queryeval.yaml", 9, "tie"),
    ("text-order", "s.queryeval.yaml", 10, "text"),
    ("constant-result", "s.queryeval.yaml", 11, "constant"),
    ("duplicate-question", "s.queryeval.yaml", 12, "again"),
    ("unknown-column", "s.queryeval.yaml", 13, "column"),
    ("duplicate-gold", "s.queryeval.yaml", 14, "other"),
    ("nothing-required", "s.queryeval.yaml", 15, None),
    ("expectation-not-met", "s.queryeval.yaml", 16, "expects"),
    ("gold-not-equal-to-itself", "s.queryeval.yaml", 17, "broken"),
]
ONE = "kind: sql\nsource: {sqlite: {script: shop.sql}}\n"
CRAWL = "kind: sql\nsource: {crawl: x}\n"
ROW = Table(columns=("a",), rows=[(1,)])


class Crawl:
    """A source that gives its answers in turn, the last one again and again."""

    def __init__(self, *answers):
        self.answers, self.queries = list(answers), []

    def execute(self, query, *, timeout, max_rows):
        self.queries.append(query)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return replace(answer, query=query)

    def close(self):
        pass


def crawl(*answers):
    """Register an engine with these answers, and return its one source."""
    source = Crawl(*answers)
    ENGINES.register("crawl", lambda _, hosts: source)
    return source


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    METRICS.register("never_right", lambda gold, predicted: 0.5)
    METRICS.register("never_right", replace(METRICS["never_right"], max_score=1.0))
    METRICS.register("broken", lambda gold, predicted: gold.rows[99])
    crawl(Execution(query="", answer=ROW, seconds=20.0))
    write(SHOP, "shop.sql")
    write("", "old.sql")
    return tmp_path


@pytest.fixture
def check(shop, capsys):
    def run(suite="", *options, folder=FOLDER):
        if suite:
            write(folder, "queryeval.yaml")
            write(suite)
        status = main(["check", ".", "--json", *options])
        return status, json.loads(capsys.readouterr().out)["findings"]

    return run


def cases(*golds):
    """A suite of cases with these keys."""
    return "cases:\n" + "".join(f"  - {{id: c{number}, {keys}}}\n" for number, keys in enumerate(golds))


def rules(findings):
    return [(finding["rule"], finding["case"]) for finding in findings]


def test_one_planted_defect_for_each_rule_is_found_and_nothing_else(check, capsys):
    status, findings = check(SUITE)
    main(["check", "."])
    lines = capsys.readouterr().out.splitlines()

    assert [(finding["rule"], finding["path"], finding["line"], finding["case"]) for finding in findings] == PLANTED
    assert [finding["level"] for finding in findings] == [CHECK_RULES[rule] for rule, *_ in PLANTED]
    assert findings[-1]["message"] == (
        "the gold answer cannot be compared with itself: metric 'broken' raised IndexError: list index out of range"
    )
    assert status == 1
    failed = "gold query failed (invalid): no such column: nme: did you mean 'name'?"
    assert lines[2] == f"s.queryeval.yaml:4: error [gold-fails] case 'fails': {failed}"
    assert lines[-1] == "6 errors, 10 warnings in 15 cases"


def test_every_rule_has_a_planted_defect():
    elsewhere = {"review-conflict", "review-future", "review-stale", "cut-answer", "lost-answer"}
    table = Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8")

    planted = {rule for rule, *_ in PLANTED} | {rule for rule in CHECK_RULES if f"[{rule}]" in table}

    assert planted == CHECK_RULES.keys() - elsewhere


def test_without_running_only_the_texts_are_examined(check):
    Path("shop.sql").unlink()

    status, findings = check(SUITE, "--no-run")

    of_texts = {"stale-setting", "constant-result", "duplicate-question", "duplicate-gold"}
    assert {finding["rule"] for finding in findings} == {*of_texts, "unused-source", "nothing-required"}
    assert status == 1


def test_a_link_to_a_folder_that_is_missing_is_found(check):
    Path("suites").symlink_to("../submodule")

    findings = check(cases("gold: SELECT name FROM product"), "--no-run", folder=ONE)[1]

    assert [(finding["rule"], finding["path"]) for finding in findings] == [("uncollected-suite", "suites")]


def test_spellings_are_not_looked_for_among_too_many_values(check, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.languages.sql.compared_texts.MAX_VALUES", 2)
    suite = cases(
        *(f"gold: SELECT sku FROM product WHERE name = '{name}', allow_empty: true" for name in ("FIG", "pearr"))
    )

    assert rules(check(suite, folder=ONE)[1]) == [("value-not-in-data", "c0")]


@pytest.mark.parametrize(
    ("gold", "runs"), [("SELECT name FROM t WHERE 0 * random() = 0", 11), ("SELECT name FROM t", 2)]
)
def test_a_gold_with_random_values_runs_often_since_it_may_answer_alike_by_chance(check, gold, runs):
    source = crawl(Execution(query="", answer=ROW))

    assert "gold-unstable" not in [finding["rule"] for finding in check(cases(f"gold: {gold}"), folder=CRAWL)[1]]
    assert source.queries.count(gold) == runs


@pytest.mark.parametrize(("seconds", "found"), [(2.4, []), (2.6, [("gold-slow", "c0")])])
def test_a_gold_is_slow_from_half_of_its_time_on(check, seconds, found):
    crawl(Execution(query="", answer=ROW, seconds=seconds))

    findings = rules(check(cases("gold: SELECT a FROM t"), folder=f"{CRAWL}timeout: 5\n")[1])

    assert [finding for finding in findings if finding[0] == "gold-slow"] == found


@pytest.mark.parametrize(
    ("second", "rule", "message"),
    [
        (SourceError("the connection is lost"), "gold-fails", "the connection is lost"),
        (
            Execution(query="", error=Failure(kind="timeout", message="no answer within 30 s")),
            "gold-unstable",
            "no answer within 30 s",
        ),
    ],
)
def test_a_source_or_gold_that_breaks_down_between_two_runs_is_one_finding(check, second, rule, message):
    crawl(Execution(query="", answer=ROW), second)

    (problem,) = check(cases("gold: SELECT 1 FROM t"), folder=CRAWL)[1]

    assert (problem["rule"], problem["case"]) == (rule, "c0")
    assert message in problem["message"]


def test_the_remedy_of_an_empty_gold_is_one_that_its_file_allows(check):
    empty = "SELECT name FROM product WHERE price < 0"
    write(f"id,question,gold\na,One?,{empty}\n", "cases.csv")

    findings = [check(text, folder=ONE)[1][0] for text in (cases(f"gold: {empty}"), "cases: {file: cases.csv}\n")]

    correct = "the gold answer has no rows, so any query that returns nothing passes: fix the query, or"
    assert [finding["message"] for finding in findings] == [
        f"{correct} write `allow_empty: true`",
        f"{correct} move the case to YAML: `queryeval import table`, and write `allow_empty: true`",
    ]


def test_long_runs_tell_their_progress_on_standard_error(check, capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)
    write(ONE, "queryeval.yaml")
    write(cases("gold: SELECT name FROM product", "gold: SELECT price FROM product"))

    main(["check", "."])

    captured = capsys.readouterr()
    assert captured.err.startswith("queryeval check: 1 of 2 cases, about ")
    assert captured.out == "0 errors, 0 warnings in 2 cases\n"


def test_the_example_suite_silences_what_it_means(shop, capsys, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3] / "example_suite")

    for suite in ("sql/trips", "sparql/building"):
        assert main(["check", f"{suite}.queryeval.yaml", "--strict"]) == 0
        assert capsys.readouterr().out.startswith("0 errors, 0 warnings in ")


def test_warnings_are_an_exit_status_of_1_under_strict_unless_they_are_silenced(check, capsys):
    suite = cases("gold: SELECT 42")

    assert [check(suite, *options, folder=ONE)[0] for options in ((), ("--strict",))] == [0, 1]
    assert check(f"check: {{ignore: {{constant-result: it is 42}}}}\n{suite}", "--strict", folder=ONE) == (0, [])
    main(["check", "."])
    assert capsys.readouterr().out == "0 errors, 0 warnings in 1 case; 1 silenced\n"


def test_settings_of_a_folder_are_not_judged_by_one_of_its_files_or_if_a_suite_was_left_out(check, capsys):
    write(FOLDER, "queryeval.yaml")
    write(cases("gold: SELECT name FROM product"))

    assert main(["check", "s.queryeval.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: False)
        write("requires: semantic\n" + cases("gold: SELECT 1"), "t.queryeval.yaml")
        assert main(["check", ".", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"findings": [], "summary": {}}
    assert captured.err.startswith("queryeval check: not checked: ")


def test_gates_name_files_from_the_root_wherever_check_is_run(shop, capsys, monkeypatch):
    write("[pytest]\n", "pytest.ini")
    write(f"{ONE}on_miss: xfail\n{cases('question: q, gold: SELECT name FROM product')}", "suites/s.queryeval.yaml")
    write("gates: [{metric: pass_rate, min: 0.5, where: {file: suites/s.queryeval.yaml}}]\n", "suites/queryeval.yaml")

    for folder in (".", "suites"):
        monkeypatch.chdir(folder)
        main(["check", ".", "--json", "--no-run"])

        assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import pytest; pytest.skip('later', allow_module_level=True)", "Skipped: later"),
    ],
)
def test_a_conftest_that_fails_is_named(content, error, shop, capsys):
    write(content, "conftest.py")
    write(cases("gold: SELECT 1"))

    with pytest.raises(SystemExit) as caught:
        main(["check", "."])

    assert caught.value.code == 2
    assert f"conftest.py: cannot be imported: {error}" in capsys.readouterr().err
