"""What cases expect of any right answer: by an oracle, in all reports, and in suites with and without golds."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from suites import load
from table_oracle import Oracle, cells_equal, exactly

from pytest_queryeval import evaluate
from pytest_queryeval.core.expectation import Expectation
from pytest_queryeval.core.model import Execution
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.sandbox import host

# A naive reference of docs/reference/suites.md, without golds. Values of a column are numbers, texts or dates.


def holds(rule, value, column, answer, policy):
    rows, names = answer.rows, [name.casefold() for name in answer.columns]
    if rule == "rows":
        least, most = value
        return (least is None or len(rows) >= least) and (most is None or len(rows) <= most)
    if not rows:
        return False
    wider = policy.extra_columns == "allow"
    if rule == "columns" and isinstance(value, int):
        return len(names) == value or (wider and len(names) > value)
    if rule == "columns":
        places = [names.index(name) for name in value if name in names]
        in_order = policy.columns != "positional" or places == [*range(len(places))]
        return len(places) == len(value) and in_order and (wider or len(value) == len(names))
    if rule == "contains":
        whole = [row for row in value if isinstance(row, tuple)]
        some = [row for row in value if isinstance(row, dict)]
        return occur(whole, answer, policy) and all(
            any(all(cells_equal(cell, row[names.index(name)], policy) for name, cell in named.items()) for row in rows)
            for named in some
        )
    cells = [row[names.index(column)] for row in rows]
    values = [cell for cell in cells if cell is not None]
    if rule == "not_null":
        return len(values) == len(cells)
    if rule == "unique":
        return bool(values) and len({exactly(cell, policy) for cell in values}) == len(values)
    if rule == "in":
        return bool(values) and all(any(cells_equal(cell, item, policy) for item in value) for cell in values)
    if rule == "matches":
        flags = re.IGNORECASE if policy.case == "ignore" else 0
        return bool(values) and all(re.fullmatch(value.pattern, str(cell), flags) for cell in values)
    return bool(values) and all(reaches(cell, value, rule, policy) for cell in values)


def occur(rows, answer, policy):
    """Whether stated rows occur, each in a row of its own, in some order of columns."""
    if not rows:
        return True
    width = len(answer.columns)
    if len(rows[0]) > width or (len(rows[0]) < width and policy.extra_columns == "reject"):
        return False
    orders = permutations(range(width), len(rows[0])) if policy.columns == "any" else [range(len(rows[0]))]
    oracle = Oracle(answer, answer, policy)
    as_set = oracle.distinct if policy.duplicates == "ignore" else list
    stated = as_set(rows)
    return any(
        oracle.matched(stated, as_set(tuple(row[place] for place in order) for row in answer.rows)) == len(stated)
        for order in orders
    )


def reaches(cell, limit, rule, policy):
    if isinstance(limit, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", limit):
        if not isinstance(cell, date):
            return False
        cell, limit = (cell.date() if isinstance(cell, datetime) else cell), date.fromisoformat(limit)
    elif isinstance(cell, str) != isinstance(limit, str) or isinstance(cell, date):
        return False
    elif cells_equal(cell, limit, policy):
        return True
    elif isinstance(cell, str) and policy.case == "ignore":
        cell, limit = cell.casefold(), limit.casefold()
    return cell >= limit if rule == "min" else cell <= limit


NUMBERS = st.sampled_from([-1, 0, 1, 2, 1.0, 2.0000001, 0.1 + 0.2, 0.3, Decimal("1.10"), Decimal("0.30")])
TEXTS = st.sampled_from(["", "a", "A", "b", "bc", "b c"])
DATES = st.sampled_from([date(2024, 1, 1), date(2024, 1, 2), datetime(2024, 1, 1, 9), datetime(2024, 1, 2)])
SPELLED = st.sampled_from(["2024-01-01", "2024-01-02", "2024-02-01"])
SORTS = ((NUMBERS, NUMBERS), (TEXTS, TEXTS), (DATES, SPELLED))
POLICIES = st.builds(
    Policy,
    case=st.sampled_from(["keep", "ignore"]),
    abs=st.sampled_from([None, 0.1]),
    columns=st.sampled_from(["any", "positional"]),
    extra_columns=st.sampled_from(["reject", "allow"]),
    duplicates=st.sampled_from(["count", "ignore"]),
)


@st.composite
def expected_answers(draw):
    """An answer, expectations of it, and a policy."""
    sorts = draw(st.lists(st.sampled_from(SORTS), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | cells for cells, _ in sorts))
    names = tuple("abc"[: len(sorts)])
    answer = Table(
        columns=tuple(name.upper() if draw(st.booleans()) else name for name in names),
        rows=draw(st.lists(row, max_size=4)),
    )
    stated_row = st.tuples(*(st.none() | stated for _, stated in sorts))
    has_dates = any(isinstance(cell, date) for row in answer.rows for cell in row)
    whole = stated_row if has_dates or not answer.rows else stated_row | st.sampled_from(answer.rows)
    some = st.dictionaries(st.sampled_from(names), NUMBERS | TEXTS, min_size=1)
    least = st.none() | st.integers(0, 4)
    stated = [
        ("rows", draw(st.tuples(least, least)), ""),
        ("columns", draw(st.integers(1, 3) | st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)), ""),
        ("contains", tuple(draw(st.lists(whole | some, min_size=1, max_size=2))), ""),
    ]
    for name, (_, limits) in zip(names, sorts, strict=True):
        stated += [
            ("min", draw(limits), name),
            ("max", draw(limits), name),
            ("in", tuple(draw(st.lists(limits, min_size=1, max_size=3))), name),
            ("not_null", True, name),
            ("unique", True, name),
            ("matches", re.compile(draw(st.sampled_from(["[a-z ]*", "a|b", ".+", r"-?\d+"]))), name),
        ]
    return answer, stated, draw(POLICIES)


@pytest.mark.long
@settings(max_examples=10 * settings().max_examples)
@given(expected_answers())
def test_expectations_hold_as_the_oracle_says(expected):
    answer, stated, policy = expected
    texts = any(isinstance(cell, float | Decimal | date) for row in answer.rows for cell in row)
    stated = [entry for entry in stated if entry[0] != "matches" or not texts]
    expectations = [
        Expectation(name=f"{rule}{column}", rule=rule, value=value, text="", column=column)
        for rule, value, column in stated
    ]

    score = METRICS["expectations"].function(
        Execution(query=None),
        Execution(query=None, answer=answer),
        policy=policy,
        expectations=expectations,
        report_rows=1,
        unmatched=lambda pattern, texts: {text for text in texts if not pattern.fullmatch(text)},
    )

    reports = score.details["expectations"]
    assert score.value == [report["holds"] for report in reports].count(True) / len(reports)

    assert [report["holds"] for report in reports] == [
        holds(rule, value, column, answer, policy) for rule, value, column in stated
    ]
    assert all(report["holds"] is not bool(report["found"]) for report in reports)


# In suites

HEAD = "kind: sql\nsource: {sqlite: {script: s.sql}}\n"
SHOP = """
CREATE TABLE product (id INTEGER, name TEXT, price REAL);
INSERT INTO product VALUES (1, 'bread', 2.5), (2, 'cake', 4.0), (3, 'roll', -4.5);
"""
PREDICT = """
from pytest_queryeval import Abstention

calls = [0]

def predict(case):
    calls[0] += 1
    answers = {"abstains": Abstention("too hard"), "empty": "", "in-turn": f"SELECT {calls[0] % 2} AS n"}
    return answers.get(case.id, "SELECT id, name, price FROM product")
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text(SHOP)
    (tmp_path / "predict.py").write_text(PREDICT)
    return tmp_path


def evaluated(*cases, top="", **arguments):
    lines = "".join(f"- {{question: q, {fields}}}\n" for fields in cases)
    return evaluate(load(f"{HEAD}{top}cases:\n{lines}"), **arguments)


def unmet(case):
    return [report["name"] for report in case["details"]["expectations"] if not report["holds"]]


def test_without_a_gold_a_case_is_judged_by_its_expectations(shop):
    report = evaluated(
        "id: a, predicted: SELECT id FROM product, expect: {rows: 3, values: {id: {min: 1, unique: true}}}",
        "id: b, predicted: SELECT price AS id FROM product, expect: {rows: 3, values: {id: {min: 1, unique: true}}}",
        "id: c, predicted: SELECT nope FROM product, expect: {rows: 0}",
    )

    right, wrong, invalid = report["cases"]
    assert [case["outcome"] for case in report["cases"]] == ["passed", "failed", "failed"]
    assert right["scores"] == {"expectations": 1.0, "valid_query": 1.0}
    assert right["gold"] is wrong["gold"] is wrong["difference"] is wrong["cause"] is None
    assert wrong["scores"]["expectations"] == pytest.approx(2 / 3)
    assert wrong["details"]["expectations"] == [
        {"name": "rows", "expected": "3", "holds": True, "found": ""},
        {"name": "values.id.min", "expected": "1", "holds": False, "found": "row 3 has id -4.5"},
        {"name": "values.id.unique", "expected": "true", "holds": True, "found": ""},
    ]
    assert wrong["message"] == "values.id.min: 1 — row 3 has id -4.5; expectations 0.667 (needs at least 1)"
    assert invalid["scores"] == {"expectations": 0.0, "valid_query": 0.0}
    assert invalid["cause"]["edits"][0]["label"] == "unknown-column"
    assert right["fingerprint"]["expect"] != invalid["fingerprint"]["expect"]


def test_a_pattern_that_takes_too_long_does_not_hold(shop, monkeypatch):
    monkeypatch.setattr(host, "PATTERN_SECONDS", 0.2)
    predicted = f"predicted: SELECT '{'a' * 60}!' AS n, expect: {{values: {{n: {{matches: (a+)+b}}}}}}"

    slow, long = evaluated(f"id: a, {predicted}", f"id: b, {predicted.replace('(a+)+b', 'a+!')}")["cases"]

    assert "the pattern cannot be tried: " in slow["details"]["expectations"][0]["found"]
    assert long["outcome"] == "passed"


def test_columns_have_the_names_of_gold_through_the_alignment(shop):
    expect = (
        "expect: {columns: [id, price], contains: [{id: 1, price: 2.5}], values: {price: {min: -4.5}, 0: {max: 3}}}"
    )
    gold = "gold: 'SELECT id, price FROM product'"

    same, swapped, unlike, narrow = evaluated(
        f"id: a, {gold}, predicted: 'SELECT id AS x, price AS y FROM product', {expect}",
        f"id: b, {gold}, predicted: 'SELECT price AS a, id AS b FROM product', {expect}",
        f"id: c, {gold}, predicted: 'SELECT name, id FROM product', {expect}",
        f"id: d, {gold}, predicted: SELECT price FROM product, {expect}",
    )["cases"]

    assert (same["outcome"], swapped["outcome"]) == ("passed", "passed")
    assert unmet(unlike) == ["contains", "values.price.min"]
    assert unmet(narrow) == ["columns", "contains", "values.0.max"]


def test_a_case_with_gold_fails_by_an_expectation_alone(shop):
    (case,) = evaluated("id: a, gold: SELECT id FROM product, predicted: SELECT id FROM product, expect: {rows: 2}")[
        "cases"
    ]

    assert case["outcome"] == "failed"
    assert case["scores"]["execution_accuracy"] == 1.0
    assert case["violations"] == [{"metric": "expectations", "min": 1.0, "max": None, "value": 0.0}]
    assert case["cause"] is None


@pytest.mark.parametrize(
    ("top", "own", "thresholds"),
    [
        ("", "", {"execution_accuracy": 1.0, "expectations": 1.0}),
        ("thresholds: {soft_f1: 0.5}\n", "", {"soft_f1": 0.5, "expectations": 1.0}),
        ("", ", thresholds: {expectations: 0.5}", {"execution_accuracy": 1.0, "expectations": 0.5}),
        ("thresholds: {}\n", "", {}),
        ("thresholds: {expectations: null}\n", "", {"execution_accuracy": 1.0}),
    ],
)
def test_only_its_own_threshold_replaces_that_of_expectations(shop, top, own, thresholds):
    (case,) = load(
        f"{HEAD}{top}cases: [{{id: a, question: q, gold: SELECT 1, predicted: SELECT 1, expect: {{rows: 1}}{own}}}]"
    )

    assert {name: limits.minimum for name, limits in case.settings.thresholds.items()} == thresholds
    assert case.settings.metrics[-1] == "expectations"


def test_parts_of_a_case_replace_those_of_its_suite(shop):
    top = "expect: {rows: {min: 1}, columns: 1}\nmetrics: [execution_accuracy]\n"
    cases = load(
        f"{HEAD}{top}cases:\n"
        "- {id: shared, question: q, predicted: SELECT 1}\n"
        "- {id: own, question: q, predicted: SELECT 1, expect: {columns: 2}}\n"
        "- {id: less, question: q, predicted: SELECT 1, expect: {rows: null}}\n"
        "- {id: gold, question: q, gold: SELECT 1, predicted: SELECT 1}\n"
        "- {id: none, question: q, answerable: false, predicted: SELECT 1}\n"
    )

    assert [[(item.name, item.value) for item in case.expectations] for case in cases] == [
        [("rows", (1, None)), ("columns", 1)],
        [("rows", (1, None)), ("columns", 2)],
        [("columns", 1)],
        [("rows", (1, None)), ("columns", 1)],
        [],
    ]
    assert [case.settings.metrics for case in cases] == [
        *[("expectations",)] * 3,
        ("execution_accuracy", "expectations"),
        ("abstention",),
    ]


def test_systems_that_give_no_answer_meet_no_expectation(shop):
    report = evaluated(
        "id: abstains, expect: {rows: 0}", "id: empty, expect: {rows: 0}", top="predictor: predict.py:predict\n"
    )

    assert [case["scores"]["expectations"] for case in report["cases"]] == [0.0, 0.0]
    assert report["metrics"]["abstained_answerable"]["mean"] == 0.5


def test_trials_and_expected_failures_follow_expectations(shop):
    expect = "expect: {values: {n: {min: 1}}}"
    top = "predictor: predict.py:predict\non_miss: xfail\nmetrics: [execution_accuracy]\n"
    report = evaluated(
        f"id: in-turn, {expect}, trials: 4, trials_rule: {{rate: 0.5}}",
        f"id: in-turn-all, predicted: SELECT 0 AS n, {expect}",
        "id: other, gold: SELECT 1, predicted: SELECT 1",
        top=top,
    )

    trials, missed, gold = report["cases"]
    assert (trials["outcome"], missed["outcome"], gold["outcome"]) == ("passed", "missed", "passed")
    assert trials["scores"]["expectations"] == 0.5
    assert {name: figures["n"] for name, figures in report["metrics"].items() if name in METRICS} == {
        "expectations": 2,
        "execution_accuracy": 1,
    }


def test_without_rows_in_reports_nothing_quotes_the_answer(shop):
    (case,) = evaluated(
        "id: a, predicted: SELECT name FROM product, expect: {values: {name: {in: [x], min: z, matches: y}}}",
        top="report_rows: 0\n",
    )["cases"]

    assert {report["found"] for report in case["details"]["expectations"]} == {"row 1 breaks it, and 2 more rows"}
    assert "bread" not in str(case)


@pytest.mark.feature("page", "report_files", "excel", "ci", "review")
def test_every_report_names_the_expectations_that_do_not_hold(pytester):
    pytester.path.joinpath("s.sql").write_text(SHOP)
    expect = "expect: {rows: 2, values: {price: {min: 0}}}"
    pytester.path.joinpath("s.queryeval.yaml").write_text(
        f"{HEAD}cases: [{{id: a, question: q, predicted: 'SELECT price FROM product', {expect}}}]\n"
    )

    result = pytester.runpytest_inprocess("--queryeval-report=out", "-rf")

    result.stdout.fnmatch_lines(
        [
            "rows: 2 — the answer has 3 rows, and 1 more expectation; expectations 0.000 (needs at least 1)",
            "  expected   rows: 2 — the answer has 3 rows",
            "  expected   values.price.min: 0 — row 3 has price -4.5",
        ]
    )
    assert "gold" not in result.stdout.str().partition("query evaluation")[0]
    out = pytester.path / "out"
    for name in ("junit.xml", "report.md", "report.json"):
        assert "values.price.min" in (out / name).read_text(encoding="utf-8"), name
    sheet = load_workbook(out / "report.xlsx")["Cases"]
    (column,) = [column for column in sheet.iter_cols(values_only=True) if "expected" in column]
    assert "rows: 2 — the answer has 3 rows\nvalues.price.min: 0 — row 3 has price -4.5" in column
