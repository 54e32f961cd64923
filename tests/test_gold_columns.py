"""Cases that compare some of gold's columns."""

import pytest
from suites import case, problem

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.comparison.equality import project
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.table import Policy, Table, Tie

TABLE = Table(columns=("id", "name", "N", "n"), rows=[(1, "a", None, 2), (2, "a", None, 3)])
SCRIPT = """
CREATE TABLE city (id INTEGER, name TEXT, size INTEGER);
INSERT INTO city VALUES (1, 'Ulm', 5), (2, 'Ulm', 5), (3, 'Bonn', 9), (4, NULL, 5);
"""
METRICS = "[execution_accuracy, row_matching_f1, cell_f1, same_column_count, execution_accuracy_bird, soft_f1_bird]"


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """Run one case, and return it as the report has it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "city.sql").write_text(SCRIPT, encoding="utf-8")

    def run(gold, predicted, compare):
        (tmp_path / "s.queryeval.yaml").write_text(
            f"kind: sql\nsource: {{sqlite: {{script: city.sql}}}}\nmetrics: {METRICS}\nthresholds: {{}}\n"
            f'cases:\n  - {{id: a, gold: "{gold}", predicted: "{predicted}", compare: {compare}}}\n',
            encoding="utf-8",
        )
        (case,) = evaluate(load_cases(tmp_path))["cases"]
        return case

    return run


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["name"], [("a",), ("a",)]),
        (["n", 0], [(2, 1), (3, 2)]),
        (["N"], [(None,), (None,)]),
        (["ID"], [(1,), (2,)]),
        ([0, "id"], [(1, 1), (2, 2)]),
    ],
)
def test_columns_are_chosen_by_name_and_position(columns, rows):
    assert list(project(TABLE, columns).rows) == rows


def test_ties_keep_their_size():
    tied = Table(columns=("a", "b"), rows=[(1, 2)], ties=(Tie(size=1, rows=((1, 2), (3, 4))),))

    assert project(tied, ["b"]).ties == (Tie(size=1, rows=((2,), (4,))),)


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        (TABLE, ["nam"], "gold has no column 'nam': did you mean 'name'"),
        (TABLE, [4], "gold has no column 4: its columns are 0 to 3"),
        (
            Table(columns=("a", "a"), rows=[]),
            ["a"],
            "gold has 2 columns 'a': write the position of one, from 0 on",
        ),
        (Table(columns=("N", "n"), rows=[]), ["ñ"], "gold has no column 'ñ'"),
        (Table(columns=("x",), rows=[], is_graph=True), ["x"], "gold is a graph"),
    ],
)
def test_columns_that_gold_lacks_are_named(table, columns, said):
    with pytest.raises(QueryEvalError, match=f"^compare: gold_columns: {said}"):
        project(table, columns)


def test_predicted_needs_the_chosen_columns_alone_and_may_have_others(scored):
    gold, chosen = "SELECT id, name, size FROM city", "{gold_columns: [name]}"

    for predicted in ("SELECT name FROM city", "SELECT size, name FROM city", gold):
        scores = scored(gold, predicted, chosen)["scores"]
        assert scores["execution_accuracy"] == scores["row_matching_f1"] == 1.0
    scored_case = scored(gold, "SELECT name FROM city", chosen)
    assert scored_case["scores"]["same_column_count"] == 1.0
    assert scored_case["scores"]["execution_accuracy_bird"] == 0.0  # as published: of the whole answer
    assert scored(gold, gold, chosen)["scores"]["execution_accuracy_bird"] == 1.0
    assert scored(gold, gold, "{gold_columns: [name], extra_columns: reject}")["scores"]["execution_accuracy"] == 0.0


def test_a_case_can_compare_all_columns_below_a_suite_that_chooses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "kind: sql\nsource: a.db\ncompare: {gold_columns: [name]}\n"

    assert case(head=head).settings.policy == Policy(gold_columns=("name",), extra_columns="allow")
    assert case("compare: {gold_columns: []}", head=head).settings.policy == Policy()
    assert case("compare: {extra_columns: reject}", head=head).settings.policy == Policy(gold_columns=("name",))


def test_duplicates_that_the_choice_makes_count(scored):
    scores = scored("SELECT id, name FROM city", "SELECT DISTINCT name FROM city", "{gold_columns: [name]}")["scores"]

    assert scores["execution_accuracy"] == 0.0
    assert scores["row_matching_f1"] == pytest.approx(6 / 7)


@pytest.mark.parametrize(
    ("predicted", "right"),
    [
        ("SELECT name FROM city ORDER BY size, id", 1.0),
        ("SELECT name FROM city ORDER BY size, name", 1.0),  # NULL first, among cities of one size
        ("SELECT name FROM city ORDER BY size DESC", 0.0),
        ("SELECT name FROM city ORDER BY name", 0.0),
    ],
)
def test_ties_are_those_of_the_whole_answer(scored, predicted, right):
    scored_case = scored("SELECT id, name FROM city ORDER BY size", predicted, "{gold_columns: [name]}")

    assert scored_case["scores"]["execution_accuracy"] == right


def test_a_choice_under_a_limit_is_right_in_the_chosen_columns(scored):
    gold = "SELECT id, name FROM city ORDER BY size LIMIT 1"

    scored_case = scored(gold, "SELECT name FROM city WHERE id = 4", "{gold_columns: [name]}")

    assert (scored_case["scores"]["execution_accuracy"], scored_case["depends_on_tie"]) == (1.0, True)
    assert scored(gold, "SELECT name FROM city WHERE id = 3", "{gold_columns: [1]}")["scores"]["cell_f1"] < 1.0


def test_a_column_that_gold_lacks_is_an_error_of_the_case_whatever_predicted_says(scored):
    for predicted in ("SELECT 1", "SELECT FROM"):
        scored_case = scored("SELECT id FROM city", predicted, "{gold_columns: [name]}")
        assert (scored_case["outcome"], scored_case["message"]) == (
            "error",
            "compare: gold_columns: gold has no column 'name': choose from id (s.queryeval.yaml:6)",
        )


def test_a_column_that_gold_lacks_is_told_at_the_line_that_names_it(scored, tmp_path):
    scored("SELECT id FROM city", "SELECT 1", "{}")
    suite = tmp_path / "s.queryeval.yaml"
    suite.write_text(f"compare: {{gold_columns: [nme]}}\n{suite.read_text('utf-8')}", encoding="utf-8")

    (case,) = evaluate(load_cases(tmp_path))["cases"]

    assert (case["line"], case["outcome"]) == (7, "error")
    assert case["message"] == "compare: gold_columns: gold has no column 'nme': choose from id (s.queryeval.yaml:1)"


@pytest.mark.parametrize("written", ["name", "[-1]", "[1.5]", "[[a]]", "[true]"])
def test_what_is_no_list_of_columns_is_refused(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert problem(f"compare: {{gold_columns: {written}}}")
