"""Metrics of query texts in a run: computed difficulty as marker, keyword and group, and Spider's table."""

from __future__ import annotations

import pytest
from singers import case

EASY = "SELECT name FROM singer"
MEDIUM = "SELECT name, age FROM singer WHERE country = 'FR'"
HARD = "SELECT name FROM singer WHERE age IN (SELECT age FROM singer)"
EXTRA = "SELECT country FROM singer WHERE age > 3 GROUP BY country ORDER BY count(*) DESC LIMIT 1"
LEVELS = {"easy": EASY, "medium": MEDIUM, "hard": HARD, "extra": EXTRA}
TEXTS = ["exact_set_match", "exact_set_match_spider"]


@pytest.fixture
def levels(suite):
    """A case of each hardness, named by it, with gold as prediction but for the medium one."""
    cases = [case(name, EASY if name == "medium" else query, gold=query) for name, query in LEVELS.items()]
    suite(*cases, metrics=TEXTS, thresholds={})


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (["-m", "hard"], {"hard"}),
        (["-m", "easy or extra"], {"easy", "extra"}),
        (["-m", "sql and not medium"], {"easy", "hard", "extra"}),
        (["-k", "easy"], {"easy"}),
    ],
)
def test_the_computed_difficulty_selects_cases(levels, run_and_parse, selection, selected):
    run = run_and_parse(*selection, "--strict-markers")

    assert set(run.outcomes) == selected


def test_the_difficulty_that_a_suite_says_wins_for_groups_but_not_in_the_table(suite, run_and_parse):
    suite(case("own", EASY, gold=EASY, difficulty="hard"), metrics=TEXTS, thresholds={})

    report = run_and_parse().report

    assert list(report["groups"]["difficulty"]) == ["hard"]
    assert {level: row["count"] for level, row in report["spider_table"].items()} == {
        "easy": 1,
        "medium": 0,
        "hard": 0,
        "extra": 0,
        "all": 1,
    }


def test_the_difficulty_that_a_suite_says_wins_for_markers(suite, run_and_parse):
    suite(case("own", EASY, gold=EASY, difficulty="hard"), case("other", EASY, gold=EASY), metrics=TEXTS, thresholds={})

    assert set(run_and_parse("-m", "hard").outcomes) == {"own"}


def test_gates_ask_for_a_computed_difficulty(levels, write, run_and_parse):
    write(
        "queryeval.yaml",
        "gates:\n"
        "  - {metric: exact_set_match, where: {difficulty: easy}, min: 1}\n"
        "  - {metric: exact_set_match, where: {difficulty: medium}, min: 0.5}\n",
    )

    run = run_and_parse()

    assert [gate["ok"] for gate in run.report["gates"]] == [True, False]
    assert run.result.ret == 1


def test_reports_group_by_the_computed_difficulty(levels, run_and_parse):
    groups = run_and_parse().report["groups"]["difficulty"]

    assert list(groups) == ["easy", "medium", "hard", "extra"]


def test_the_table_is_in_the_report_and_the_terminal(levels, run_and_parse):
    run = run_and_parse("-v")

    table = run.report["spider_table"]
    assert {level: (row["count"], row["exact_match"]) for level, row in table.items()} == {
        "easy": (1, 1.0),
        "medium": (1, 0.0),
        "hard": (1, 1.0),
        "extra": (1, 1.0),
        "all": (4, 0.75),
    }
    assert "Spider's table" in run.text
    run.result.stdout.fnmatch_lines(["exact match *1.000 *0.000 *1.000 *1.000 *0.750"])


def test_without_the_published_metric_there_is_no_table(suite, run_and_parse):
    suite(case("one", EASY, gold=EASY), metrics=["exact_set_match"], thresholds={})

    run = run_and_parse()

    assert "spider_table" not in run.report
    assert "Spider's table" not in run.text


def test_an_unreadable_prediction_is_missed_with_a_reason_in_its_details(suite, run_and_parse):
    suite(case("bad", "SELECT \x1b[31m(((", gold=EASY), metrics=["exact_set_match"], thresholds={"exact_set_match": 1})

    run = run_and_parse()

    details = run.case("bad")["details"]["exact_set_match"]
    assert run.outcomes == {"bad": "failed"}
    assert details["unreadable"].isprintable()


def test_a_suite_of_texts_needs_no_source(write, run_and_parse):
    write(
        "texts.queryeval.yaml",
        "kind: sql\nmetrics: [exact_set_match]\nthresholds: {exact_set_match: 1}\ncases:\n"
        "  - {id: one, gold: SELECT name FROM singer, predicted: select s.name from singer s}\n",
    )

    assert run_and_parse().outcomes == {"one": "passed"}
