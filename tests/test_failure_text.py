"""What the text of a failed case says of answers that differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from samples import answer, make_case, make_result, table

from pytest_queryeval.comparison.canonical import XSD
from pytest_queryeval.core.cause import Cause, CausingEdit
from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.model import Execution, Failure, Threshold, ThresholdViolation
from pytest_queryeval.core.table import IRI, Literal, Policy
from pytest_queryeval.plugin.failure import colour_lines, failure_lines
from pytest_queryeval.results.case_json import result_json

MISSED = (ThresholdViolation(metric="execution_accuracy", threshold=Threshold(minimum=1.0), value=0.0),)


def lines_of(result):
    """The text of a failure."""
    return failure_lines(result, result_json(result, nodeid="a", path="s.queryeval.yaml", outcome="failed"))


def answers(gold, predicted, *, kind="sql", **policy):
    """The lines about the answers of a missed case."""
    case = make_case(kind=kind, policy=Policy(**policy))
    lines = list(lines_of(make_result(case, gold=gold, predicted=predicted, violations=MISSED)))
    return [line for line in lines if line.startswith("    ") or line.split()[0] in ("answers", "hint")]


def test_text_and_number_that_look_alike_come_with_their_types_and_the_setting_that_makes_them_equal():
    assert answers(table((3,), (4,)), table(("3",), (4,)))[1:] == [
        "    columns  | a",
        "    missing  | 3 (integer)",
        "    extra    | 3 (text)",
        "  hint       if a number and its text may be equal, add `compare: {text_numbers: true}` to the case",
    ]


def test_a_text_of_a_number_in_another_form_comes_with_types_and_the_setting_too():
    hint = "  hint       if a number and its text may be equal, add `compare: {text_numbers: true}` to the case"

    assert answers(table(("1.10",), ("x",)), table((1.1,), ("x",)))[1:] == [
        "    columns  | a",
        "    missing  | 1.10 (text)",
        "    extra    | 1.1 (float)",
        hint,
    ]
    assert hint in answers(table((1000,)), table(("1e3",)))
    assert hint not in answers(table(("1.10",)), table((1.2,)))
    assert hint not in answers(table(("1.10",)), table(("1.1",)))


def test_texts_that_look_the_same_are_told_apart_by_escapes_of_the_characters_that_differ():
    assert answers(table(("K\xf6ln",), ("x",)), table(("Ko\u0308ln",), ("x",)))[2:] == [
        "    missing  | K\\xf6ln",
        "    extra    | Ko\\u0308ln",
    ]
    assert answers(table(("M\xfcnchen", 3)), table(("M\xfcnchen\xa0", 3)))[2:4] == [
        "    gold     | M\xfcnchen · 3",
        "    instead  | M\xfcnchen\\xa0 · 3",
    ]


def test_only_the_cells_of_a_changed_row_that_look_alike_show_their_types():
    assert answers(table(("FR", "a", 3, 3)), table(("FR", "a", "3", 4)))[2:4] == [
        "    gold     | FR · a · 3 (integer) · 3",
        "    instead  | FR · a · 3 (text) · 4",
    ]


@pytest.mark.parametrize(
    ("gold", "predicted", "shown"),
    [
        (Decimal("1.5"), "1.5", ("1.5 (decimal)", "1.5 (text)")),
        (1.5, "1.5", ("1.5 (float)", "1.5 (text)")),
        (None, "NULL", ("NULL", "NULL (text)")),
        (True, "true", ("true (boolean)", "true (text)")),
        (b"a", "x'61'", ("x'61' (bytes)", "x'61' (text)")),
        (date(2024, 1, 2), datetime(2024, 1, 2), ("2024-01-02", "2024-01-02 00:00:00")),
        (IRI("http://e/a"), "<http://e/a>", ("<http://e/a> (IRI)", "<http://e/a> (text)")),
        (Literal("20", f"{XSD}integer"), Literal("20", f"{XSD}decimal"), ("20 (xsd:integer)", "20 (xsd:decimal)")),
        (Literal("a", f"{XSD}token"), Literal("a"), ("a (xsd:token)", "a (xsd:string)")),
        (3, 3, ("3", "3")),
    ],
)
def test_cells_of_other_types_that_look_alike_show_them(gold, predicted, shown):
    predictions = answers(table((gold, 1, 5, 6)), table((predicted, 2, 5, 6)), columns="positional", rdf_terms="strict")

    assert [line.split("| ")[1].split(" · ")[0] for line in predictions if "gold  " in line or "instead" in line] == [
        *shown
    ]


def test_equal_cells_show_no_types_though_these_differ():
    assert answers(table((3, "x"), (5, "z")), table((Decimal(3), "y"), (5, "z")))[2:4] == [
        "    gold     | 3 · x",
        "    instead  | 3 · y",
    ]


@pytest.mark.parametrize(
    ("day", "midnight"),
    [
        (date(2024, 1, 2), datetime(2024, 1, 2)),
        ("2024-01-02", "2024-01-02 00:00:00.000"),
        (Literal("2024-01-02", f"{XSD}date"), Literal("2024-01-02T00:00:00", f"{XSD}dateTime")),
    ],
)
def test_a_date_in_place_of_a_timestamp_at_midnight_is_explained(day, midnight):
    hint = "  hint       a date does not equal a timestamp at midnight: cast both to one type"

    assert answers(table((day, 1)), table((midnight, 1)))[-1] == hint
    assert answers(table((midnight, 1)), table((day, 2)))[-1] == hint


@pytest.mark.parametrize(
    "other", [datetime(2024, 1, 2, 12), datetime(2024, 1, 3), datetime(2024, 1, 2, 0, 0, 0, 1), None]
)
def test_a_date_in_place_of_another_moment_is_not_explained(other):
    assert not any("hint" in line for line in answers(table((date(2024, 1, 2),)), table((other,))))
    assert not any("hint" in line for line in answers(table((date(2024, 1, 2),)), table((date(2024, 1, 3),))))


def marked(text, **markup):
    return f"<{' '.join(name for name, on in markup.items() if on)}>{text}</>"


def test_differences_have_the_colours_of_the_page_and_cells_that_differ_are_bold():
    case = make_case(policy=Policy())
    gold, predicted = table((1, "a", 2), (5, "b", 6), (7, "c", 7)), table((1, "a", 3), (8, "d", 9), (0, "e", 0))
    lines = list(lines_of(make_result(case, gold=gold, predicted=predicted, violations=MISSED)))

    shown = dict(zip(lines, colour_lines(lines, marked), strict=True))

    assert shown[lines[0]] == f"<red bold>{lines[0]}</>"
    assert shown["    missing  | 5 · b · 6"] == "<green>    missing </> | <green>5</> · <green>b</> · <green>6</>"
    assert shown["    extra    | 8 · d · 9"] == "<red>    extra   </> | <red>8</> · <red>d</> · <red>9</>"
    assert shown["    gold     | 1 · a · 2"] == "<green>    gold    </> | <green>1</> · <green>a</> · <green bold>2</>"
    assert shown["    instead  | 1 · a · 3"] == "<red>    instead </> | <red>1</> · <red>a</> · <red bold>3</>"
    assert shown["    columns  | a · b · c"] == "    columns  | a · b · c"


def test_cells_that_hold_the_separator_are_no_more_than_coloured():
    lines = ["m 0", "    gold     | 1 · a · b", "    instead  | 1 · a", "  gold       | SELECT 1"]

    assert [line.count("bold") for line in colour_lines(lines, marked)] == [1, 0, 0, 0]


def test_the_cause_is_told_by_its_edits():
    edits = (
        CausingEdit(label="wrong-value", clause="WHERE", change="age > 30 → age > 40"),
        CausingEdit(label="missing-distinct", clause="SELECT", change=""),
        CausingEdit(label="timeout", clause="", change="\x1b[1m"),
    )
    result = replace(make_result(make_case(), gold=table((1,)), predicted=table((2,))), cause=Cause(edits=edits))

    assert [line for line in lines_of(result) if line.startswith("  cause")] == [
        "  cause      WHERE: age > 30 → age > 40 (wrong-value)",
        "  cause      SELECT (missing-distinct)",
        r"  cause      \x1b[1m (timeout)",
    ]


def test_why_a_query_failed_is_told_once():
    error = Failure(kind="unsafe", message="only reading is allowed: DELETE")
    cause = Cause(edits=(CausingEdit(label="unsafe", clause="", change=error.message),))
    predicted = Execution(query="DELETE FROM t", answer=None, error=error)
    result = make_result(make_case(), gold=table((1,)), predicted=None)
    result = replace(result, shown=replace(result.shown, predicted=predicted), cause=cause)

    lines = list(lines_of(result))

    assert "  cause      unsafe" in lines
    assert "\n".join(lines).count(error.message) == 1


def test_the_gold_that_is_shown_is_named_where_there_are_several():
    case = make_case(golds=(answer((1,)), answer((2,)), answer((3,))))
    result = make_result(case, gold=table((2,)), gold_index=1, predicted=table((4,)), violations=MISSED)

    lines = list(lines_of(result))

    assert lines[1:3] == [
        "  golds      3, of which gold_any[1] is the closest",
        "  gold       | (a stored answer)",
    ]


def test_no_setting_is_named_that_is_there_already_or_would_not_help():
    assert not any("hint" in line for line in answers(table((3,)), table((4,))))
    assert not any("hint" in line for line in answers(table(("3",)), table(("4",))))
    assert not any("hint" in line for line in answers(table((3, "a")), table(("3", "b")), text_numbers=True))


def test_a_distinct_too_many_is_explained_by_how_often_rows_are_there():
    gold = table(("France",), ("France",), ("Japan",), ("Japan",), ("Japan",), ("Kenya",))

    assert answers(gold, table(("France",), ("Japan",), ("Kenya",))) == [
        "  answers    gold has 6 rows of 1 column, predicted has 3 rows of 1 column",
        "    columns  | a",
        "    repeated | France (2 in gold, 1 in predicted)",
        "    repeated | Japan (3 in gold, 1 in predicted)",
        "  hint       if duplicates do not matter, add `compare: {duplicates: ignore}` to the case",
    ]


def test_only_extra_columns_come_with_the_setting_that_allows_them():
    hint = "  hint       if extra columns do not matter, add `compare: {extra_columns: allow}` to the case"

    assert answers(table((1,)), table((1, 2)))[1:] == [hint]
    assert hint not in answers(table((1,)), table((2, 2)))
    assert hint not in answers(table((1,), (2,)), table((2, 0), (1, 0)), row_order="strict")


@pytest.mark.parametrize(
    ("metric", "gold", "predicted", "policy", "setting"),
    [
        ("execution_accuracy", (float("inf"),), ("inf",), {}, ""),
        ("execution_accuracy", (float("inf"),), ("Infinity",), {}, ""),
        ("execution_accuracy", (1,), ("1",), {}, "text_numbers: true"),
        ("soft_f1", (1,), ("1",), {}, "text_numbers: true"),
        ("execution_accuracy", (1, "a"), ("1", "b"), {}, ""),
        ("execution_accuracy_bird", (2,), ("2",), {}, ""),
        ("execution_accuracy", (1,), (1, 2), {}, "extra_columns: allow"),
        ("soft_f1", (1,), (1, 2), {}, ""),
        ("test_suite_accuracy", (1,), (1, 2), {}, ""),
        ("challenged_accuracy", (1,), (1, 2), {}, ""),
        ("execution_accuracy", (1,), ((1,), (1,)), {}, "duplicates: ignore"),
        ("execution_accuracy", (1,), ((1,), (1,)), {"row_order": "strict"}, ""),
    ],
)
def test_a_hint_names_only_a_setting_that_makes_the_case_pass(metric, gold, predicted, policy, setting):
    gold_table, predicted_table = (
        table(*rows) if isinstance(rows[0], tuple) else table(rows) for rows in (gold, predicted)
    )
    case = make_case(metrics=(metric,), thresholds={metric: Threshold(minimum=1.0)}, policy=Policy(**policy))
    missed = (ThresholdViolation(metric=metric, threshold=Threshold(minimum=1.0), value=0.0),)
    result = make_result(case, gold=gold_table, predicted=predicted_table, violations=missed, scores={metric: 0.0})

    hints = [line for line in lines_of(result) if "hint" in line]

    assert len(hints) == bool(setting)
    assert not setting or f"`compare: {{{setting}}}`" in hints[0]


def test_a_setting_has_to_make_all_missed_metrics_and_enough_trials_pass():
    hint = "text_numbers: true"
    both = {name: Threshold(minimum=1.0) for name in ("execution_accuracy", "execution_accuracy_bird")}
    missed = tuple(ThresholdViolation(metric=name, threshold=both[name], value=0.0) for name in both)
    scores = dict.fromkeys(both, 0.0)
    case = make_case(thresholds=both)
    assert hint not in "\n".join(
        lines_of(make_result(case, gold=table((1,)), predicted=table(("1",)), violations=missed, scores=scores))
    )

    case = make_case(trials=2, trials_rule="all")
    result = make_result(case, gold=table((1,)), predicted=table(("1",)), violations=MISSED, scores=scores)
    wrong = replace(result.shown, predicted=Execution(query=None, answer=table((2,))))
    assert hint in "\n".join(lines_of(replace(result, trials=(result.shown, result.shown))))
    assert hint not in "\n".join(lines_of(replace(result, trials=(result.shown, wrong))))


def test_settings_of_a_row_are_those_of_the_suite():
    case = make_case(row=Location(Path("q.csv"), 2))
    result = make_result(case, gold=table((1,)), predicted=table((1, 2)), violations=MISSED)

    assert "add `compare: {extra_columns: allow}` to the suite, for all rows of the table" in "\n".join(
        lines_of(result)
    )


def test_ignoring_duplicates_is_no_hint_where_the_answers_differ_in_more():
    gold = table(("France",), ("France",), ("Japan",))

    assert not any("hint" in line for line in answers(gold, table(("France",), ("Japan",), ("Kenya",))))
    assert not any("hint" in line for line in answers(gold, table(("France", 1), ("Japan", 1))))


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ({"differs": ["where", "order"]}, "differ in where, order"),
        ({"unreadable": "2 statements, not one", "differs": []}, "predicted cannot be read: 2 statements, not one"),
        ({"unreadable": "the end", "differs": ["where"]}, "predicted cannot be read: the end; differ in where"),
    ],
)
def test_texts_of_queries_are_told_by_what_differs_and_what_cannot_be_read(found, shown):
    result = make_result(make_case(), gold=table((1,)), predicted=table((2,)))
    result = replace(result, shown=replace(result.shown, details={"exact_set_match": found}))

    assert f"  texts      {shown}" in list(lines_of(result))
