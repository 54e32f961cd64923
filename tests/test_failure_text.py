"""What the text of a failed case says of answers that differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from samples import answer, make_case, make_result, table

from pytest_queryeval.comparison.canonical import XSD  # white box: the namespace of XML Schema
from pytest_queryeval.core.cause import Cause, CausingEdit
from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.model import Execution, Failure, Threshold, ThresholdViolation
from pytest_queryeval.core.table import IRI, Literal, Policy
from pytest_queryeval.plugin.failure import colour_lines, failure_lines  # white box: the text of any single case
from pytest_queryeval.results.case_json import result_json  # white box: likewise

MISSED = (ThresholdViolation(metric="execution_accuracy", threshold=Threshold(minimum=1.0), value=0.0),)


def lines_of(result):
    """The text of a failure."""
    return failure_lines(result, result_json(result, nodeid="a", path="s.queryeval.yaml", outcome="failed"))


def answers(gold, predicted, *, kind="sql", **policy):
    """The lines about the answers of a missed case."""
    case = make_case(kind=kind, policy=Policy(**policy))
    lines = list(lines_of(make_result(case, gold=gold, predicted=predicted, violations=MISSED)))
    return [line for line in lines if line.startswith("    ") or line.split()[0] in ("answers", "hint")]


TEXT_NUMBERS = "  hint       if a number and its text may be equal, add `compare: {text_numbers: true}` to the case"
DUPLICATES = "  hint       if duplicates do not matter, add `compare: {duplicates: ignore}` to the case"
EXTRA = "  hint       if extra columns do not matter, add `compare: {extra_columns: allow}` to the case"


@pytest.mark.parametrize(
    ("gold", "predicted", "shown"),
    [
        # a text and a number that look alike come with their types
        (table((3,), (4,)), table(("3",), (4,)), ["missing  | 3 (integer)", "extra    | 3 (text)", TEXT_NUMBERS]),
        (
            table(("1.10",), ("x",)),
            table((1.1,), ("x",)),
            ["missing  | 1.10 (text)", "extra    | 1.1 (float)", TEXT_NUMBERS],
        ),
        # only the cells that look alike, of a changed row
        (
            table(("FR", "a", 3, 3)),
            table(("FR", "a", "3", 4)),
            ["gold     | FR · a · 3 (integer) · 3", "instead  | FR · a · 3 (text) · 4"],
        ),
        (table((3, "x"), (5, "z")), table((Decimal(3), "y"), (5, "z")), ["gold     | 3 · x", "instead  | 3 · y"]),
        # texts that look the same, by escapes of the characters that differ
        (
            table(("K\xf6ln",), ("x",)),
            table(("Ko\u0308ln",), ("x",)),
            [r"missing  | K\xf6ln", r"extra    | Ko\u0308ln"],
        ),
        (
            table(("M\xfcnchen", 3)),
            table(("M\xfcnchen\xa0", 3)),
            ["gold     | M\xfcnchen · 3", "instead  | M\xfcnchen\\xa0 · 3"],
        ),
        # rows that occur too often
        (
            table(("FR",), ("FR",), ("JP",), ("JP",), ("JP",), ("KE",)),
            table(("FR",), ("JP",), ("KE",)),
            ["repeated | FR (2 in gold, 1 in predicted)", "repeated | JP (3 in gold, 1 in predicted)", DUPLICATES],
        ),
        (table((1,)), table((1, 2)), [EXTRA]),
    ],
)
def test_what_differs_is_shown_with_the_setting_that_allows_it(gold, predicted, shown):
    lines = [line for line in answers(gold, predicted)[1:] if "columns  |" not in line]

    assert [line.removeprefix("    ") if "|" in line else line for line in lines] == shown


@pytest.mark.parametrize(
    ("gold", "predicted", "policy"),
    [
        (table((3,)), table((4,)), {}),
        (table(("3",)), table(("4",)), {}),
        (table(("1.10",)), table((1.2,)), {}),
        (table(("1.10",)), table(("1.1",)), {}),
        (table((3, "a")), table(("3", "b")), {"text_numbers": True}),
        (table((1,)), table((2, 2)), {}),
        (table((1,), (2,)), table((2, 0), (1, 0)), {"row_order": "strict"}),
        (table(("FR",), ("FR",), ("JP",)), table(("FR",), ("JP",), ("KE",)), {}),
        (table(("FR",), ("FR",), ("JP",)), table(("FR", 1), ("JP", 1)), {}),
        (table((date(2024, 1, 2),)), table((date(2024, 1, 3),)), {}),
        *(
            (table((date(2024, 1, 2),)), table((other,)), {})
            for other in (datetime(2024, 1, 2, 12), datetime(2024, 1, 3), datetime(2024, 1, 2, 0, 0, 0, 1), None)
        ),
    ],
)
def test_no_setting_is_named_that_is_there_already_or_would_not_help(gold, predicted, policy):
    assert not any("hint" in line for line in answers(gold, predicted, **policy))


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
