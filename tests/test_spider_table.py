"""The table by hardness: how pairs become rows, and how it is printed."""

import pytest

from pytest_queryeval.languages.sql.match import COMPONENTS, Component, ScoredPair, spider_table, table_lines

MATCHED, ABSENT = Component(1, 1, 1), Component(0, 0, 0)


def pair(hardness="easy", exact=True, execution=None, **components):
    return ScoredPair(
        hardness=hardness, exact=exact, components=dict.fromkeys(COMPONENTS, MATCHED) | components, execution=execution
    )


def test_every_level_has_a_count_and_all_has_the_sum():
    table = spider_table([pair("easy"), pair("easy"), pair("extra")])

    assert {level: row["count"] for level, row in table.items()} == {
        "easy": 2,
        "medium": 0,
        "hard": 0,
        "extra": 1,
        "all": 3,
    }


def test_exact_match_and_execution_are_means_over_pairs():
    table = spider_table(
        [pair(exact=True, execution=1), pair(exact=False, execution=1), pair(exact=False, execution=0)]
    )

    assert table["easy"]["exact_match"] == pytest.approx(1 / 3)
    assert table["all"]["execution_accuracy"] == pytest.approx(2 / 3)


def test_a_component_counts_all_or_nothing():
    table = spider_table([pair(select=Component(3, 3, 2)), pair(select=Component(3, 3, 3))])

    assert table["easy"]["select"] == {"accuracy": 0.5, "recall": 0.5, "f1": 0.5}


def test_accuracy_is_over_predictions_with_the_part_and_recall_over_golds_with_it():
    pairs = [pair(where=MATCHED), pair(where=Component(1, 0, 0)), pair(where=Component(2, 0, 0)), pair(where=ABSENT)]

    table = spider_table(pairs)

    assert table["easy"]["where"] == {"accuracy": 1.0, "recall": pytest.approx(1 / 3), "f1": pytest.approx(0.5)}


def test_f1_is_1_where_accuracy_and_recall_are_0():
    table = spider_table([pair(iuen=ABSENT), pair(order=Component(1, 1, 0))])

    assert table["easy"]["order"]["f1"] == pytest.approx(0.5)
    assert spider_table([pair(iuen=ABSENT)])["easy"]["iuen"] == {"accuracy": 0.0, "recall": 0.0, "f1": 1.0}


def test_a_level_without_pairs_has_0_everywhere():
    row = spider_table([pair("easy")])["hard"]

    assert row["exact_match"] == 0
    assert row["select"] == {"accuracy": 0.0, "recall": 0.0, "f1": 0.0}


def test_printed_rows_have_three_decimals_for_each_level():
    lines = list(table_lines(spider_table([pair("easy"), pair("hard", exact=False)])))

    assert lines[0].split() == ["easy", "medium", "hard", "extra", "all"]
    assert lines[1].split() == ["count", "1", "0", "1", "0", "2"]
    assert "exact match          1.000                0.000                0.000                0.000" in "\n".join(
        lines
    )
    assert sum(line.startswith("select(no AGG)") for line in lines) == 3


def test_the_row_of_execution_is_printed_only_where_queries_ran():
    without = list(table_lines(spider_table([pair()])))
    executed = list(table_lines(spider_table([pair(execution=1.0), pair("hard", execution=0.0)])))

    assert not any(line.startswith("execution") for line in without)
    assert "execution 1.000 0.000 0.000 0.000 0.500" in [" ".join(line.split()) for line in executed]
