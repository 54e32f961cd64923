"""`compare` in suites: tolerances of numbers, and the columns of gold that count."""

from decimal import Decimal

import pytest
from samples import table
from suites import case, problem

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.table import ColumnTolerance, Policy, Table
from pytest_queryeval.metrics import METRICS

pytestmark = pytest.mark.usefixtures("working_folder")

HEAD = "kind: sql\nsource: a.db\n"


def policy_of(line="", head=HEAD):
    return case(*[line] * bool(line), head=head).settings.policy


def are_equal(gold, predicted, policy):
    return METRICS["execution_accuracy"].function(gold, predicted, policy=policy) == 1.0


# The table in docs/background/equality.md: by default, with `abs: 0.01`, with `rel: 0` and `abs: 0`.
@pytest.mark.parametrize(
    ("gold", "predicted", "equal"),
    [
        (Decimal("10.00"), Decimal("10.01"), (False, True, False)),
        (10, 11, (False, False, False)),
        (1000000.0, 1000001, (False, False, False)),
        (1000000.0, 1000001.0, (True, True, False)),
        (1000000.5, 1000001, (True, True, False)),
    ],
)
def test_numbers_are_equal_as_the_table_of_the_documentation_says(gold, predicted, equal):
    settings = ("", "compare: {numbers: {abs: 0.01}}", "compare: {numbers: {rel: 0, abs: 0}}")

    for verdict, line in zip(equal, settings, strict=True):
        assert are_equal(table((gold,)), table((predicted,)), policy_of(line)) == verdict
    assert not are_equal(table((10,)), table((11,)), policy_of("compare: {numbers: {abs: 1}}"))


def test_a_default_that_is_written_out_holds_for_decimals():
    gold, predicted = table((Decimal("1234567.89"),)), table((Decimal("1234568.89"),))

    assert not are_equal(gold, predicted, policy_of())
    assert are_equal(gold, predicted, policy_of("compare: {numbers: {rel: 1e-6}}"))
    assert not are_equal(gold, predicted, policy_of("compare: {numbers: {columns: {a: {abs: 0.5}}}}"))


def test_stored_answers_are_compared_as_the_documentation_says(tmp_path):
    (tmp_path / "gold.csv").write_text("n\n1234567.89\n0.10\n1000000.00\n")
    (tmp_path / "gold.json").write_text('{"columns": ["n"], "rows": [[1234567.89], [0.10], [1000000.00]]}')
    stored = ("gold_table: {columns: [n], rows: [[1234567.89], [0.10], [1000000.00]]}", "gold_file: gold.csv")
    right, other_cents, other_whole = (
        table(*[(Decimal(number),) for number in numbers])
        for numbers in (
            ("1234567.89", "0.10", "1000000.00"),
            ("1234568.89", "0.10", "1000000.00"),
            ("1234567.89", "0.10", "1000001.00"),
        )
    )

    for line in (*stored, "gold_file: gold.json"):
        gold = case(line).golds[0].answer
        policies = (Policy(), Policy(rel=0.0, abs=0.001), Policy(rel=0.0, abs=0.0))
        answers = (right, other_cents, other_whole)
        verdicts = [[are_equal(gold, answer, policy) for policy in policies] for answer in answers]
        assert verdicts == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_tolerances_of_columns_inherit_from_the_common_one():
    head = f"{HEAD}compare: {{numbers: {{rel: 0.5, columns: {{price: {{abs: 1}}}}}}}}\n"

    assert policy_of(head=head).column_numbers == (ColumnTolerance("price", 0.5, 1.0),)
    assert policy_of("compare: {numbers: {rel: 0.1}}", head).column_numbers == (ColumnTolerance("price", 0.1, 1.0),)
    assert policy_of("compare: {numbers: {columns: {}}}", head) == Policy(rel=0.5)


def test_a_case_can_compare_all_columns_below_a_suite_that_chooses():
    head = f"{HEAD}compare: {{gold_columns: [name]}}\n"

    assert policy_of(head=head) == Policy(gold_columns=("name",), extra_columns="allow")
    assert policy_of("compare: {gold_columns: []}", head) == Policy()
    assert policy_of("compare: {extra_columns: reject}", head) == Policy(gold_columns=("name",))


@pytest.mark.parametrize(
    "written",
    [
        *("numbers: {columns: [price]}", "numbers: {columns: {price: 1}}", "numbers: {columns: {price: {abs: -1}}}"),
        *("numbers: {columns: {price: {absolute: 1}}}", "gold_columns: name", "gold_columns: [-1]"),
        *("gold_columns: [1.5]", "gold_columns: [[a]]", "gold_columns: [true]"),
    ],
)
def test_what_is_no_tolerance_and_no_list_of_columns_is_refused(written):
    assert problem(f"compare: {{{written}}}")


# Columns of gold that count

SCRIPT = """
CREATE TABLE city (id INTEGER, name TEXT, size INTEGER, Size2 INTEGER);
INSERT INTO city VALUES (1, 'Ulm', 5, 7), (2, 'Ulm', 5, 8), (3, 'Bonn', 9, NULL), (4, NULL, 5, 7);
"""
SCORED = "[execution_accuracy, row_matching_f1, cell_f1, same_column_count, execution_accuracy_bird]"
GOLD = "SELECT id, name, size FROM city"


@pytest.fixture
def scored(tmp_path):
    """Run one case, and return it as the report has it."""
    (tmp_path / "city.sql").write_text(SCRIPT, encoding="utf-8")

    def run(gold, predicted, compare, head=""):
        (tmp_path / "s.queryeval.yaml").write_text(
            f"{head}kind: sql\nsource: {{sqlite: {{script: city.sql}}}}\nmetrics: {SCORED}\nthresholds: {{}}\n"
            f'cases:\n  - {{id: a, gold: "{gold}", predicted: "{predicted}", compare: {compare}}}\n',
            encoding="utf-8",
        )
        (case,) = evaluate(load_cases(tmp_path))["cases"]
        return case

    return run


TIED = "SELECT id, name FROM city ORDER BY size"


@pytest.mark.parametrize(
    ("gold", "columns", "predicted", "right"),
    [
        # Predicted needs the chosen columns alone, and may have others.
        (GOLD, "[name]", "SELECT name FROM city", 1.0),
        (GOLD, "[name]", "SELECT size, name FROM city", 1.0),
        (GOLD, "[NAME]", GOLD, 1.0),
        (GOLD, "[1]", "SELECT name FROM city", 1.0),
        (GOLD, "[size, 0]", "SELECT id, size FROM city", 1.0),
        (GOLD, "[0, id]", "SELECT id, id FROM city", 1.0),
        (GOLD, "[name], extra_columns: reject", GOLD, 0.0),
        (GOLD, "[name]", "SELECT size FROM city", 0.0),
        (GOLD, "[name]", "SELECT DISTINCT name FROM city", 0.0),
        # Ties are those of the whole answer.
        (TIED, "[name]", "SELECT name FROM city ORDER BY size, id", 1.0),
        (TIED, "[name]", "SELECT name FROM city ORDER BY size, name", 1.0),
        (TIED, "[name]", "SELECT name FROM city ORDER BY size DESC", 0.0),
        (TIED, "[name]", "SELECT name FROM city ORDER BY name", 0.0),
        (f"{TIED} LIMIT 1", "[name]", "SELECT name FROM city WHERE id = 4", 1.0),
        (f"{TIED} LIMIT 1", "[name]", "SELECT name FROM city WHERE id = 3", 0.0),
    ],
)
def test_the_chosen_columns_are_compared(scored, gold, columns, predicted, right):
    assert scored(gold, predicted, f"{{gold_columns: {columns}}}")["scores"]["execution_accuracy"] == right


def test_the_choice_holds_for_all_metrics_but_published_ones(scored):
    scores = scored(GOLD, "SELECT name FROM city", "{gold_columns: [name]}")["scores"]
    whole = scored(GOLD, GOLD, "{gold_columns: [name]}")["scores"]

    assert (scores["row_matching_f1"], scores["cell_f1"], scores["same_column_count"]) == (1.0, 1.0, 1.0)
    assert (scores["execution_accuracy_bird"], whole["execution_accuracy_bird"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("gold", "columns", "problem"),
    [
        (GOLD, "[nme]", "the gold answer has no column 'nme': did you mean 'name'? (s.queryeval.yaml:6)"),
        ("SELECT id FROM city", "[name]", "the gold answer has no column 'name': choose from id (s.queryeval.yaml:6)"),
        (GOLD, "[3]", "the gold answer has no column 3: its columns are 0 to 2 (s.queryeval.yaml:6)"),
        (
            "SELECT id AS a, size AS a FROM city",
            "[a]",
            "the gold answer has 2 columns 'a': write the position of one, from 0 on",
        ),
        (
            "SELECT size, size2 AS SIZE FROM city",
            "[Size]",
            "the gold answer has 2 columns 'Size': write the position of one",
        ),
    ],
)
@pytest.mark.parametrize("predicted", ["SELECT 1", "SELECT FROM"])
def test_a_column_that_gold_lacks_is_an_error_of_the_case(scored, gold, columns, problem, predicted):
    scored_case = scored(gold, predicted, f"{{gold_columns: {columns}}}")

    assert scored_case["outcome"] == "error"
    assert scored_case["message"].startswith(f"compare: gold_columns: {problem}")


def test_a_column_that_gold_lacks_is_told_at_the_line_that_names_it(scored):
    scored_case = scored("SELECT id FROM city", "SELECT 1", "{}", head="compare: {gold_columns: [nme]}\n")

    assert scored_case["line"] == 7
    assert scored_case["message"].endswith("the gold answer has no column 'nme': choose from id (s.queryeval.yaml:1)")


def test_an_answer_without_a_header_equals_any_without_rows():
    stored, wide, none = (
        Table(columns=columns, rows=[], has_header=bool(columns)) for columns in ((), ("x", "y"), ("z",))
    )

    assert are_equal(stored, wide, Policy())
    assert are_equal(wide, stored, Policy())
    assert not are_equal(wide, none, Policy())
    assert not are_equal(stored, table((1,)), Policy())
    assert METRICS["exact_match_f1"].function(stored, wide) == 1.0
    assert METRICS["exact_match_f1"].function(none, wide, policy=Policy(extra_columns="allow")) == 0.0
