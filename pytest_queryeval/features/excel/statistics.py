"""The sheet Statistics: metrics of the run, its SDMX cases, dimensions and groups; times, trials, Spider's table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Literal, TypeAlias

from pytest_queryeval.core.report import (
    DimensionStatistics,
    GroupReport,
    MetricStatistics,
    Report,
    ScoreStatistics,
    SpiderTable,
    Spread,
)
from pytest_queryeval.features.excel.published import SDMX
from pytest_queryeval.features.excel.sheet import Sheet
from pytest_queryeval.languages.sql.match import COMPONENTS
from pytest_queryeval.reports.blocks import Cell
from pytest_queryeval.reports.sections import group_metrics
from pytest_queryeval.results.aggregation import reached_count, shown_interval

NUMBERS: tuple[Literal["mean", "n", "std", "min", "median", "max"], ...] = ("mean", "n", "std", "min", "median", "max")
MEASURE_COLUMNS = (*NUMBERS, "sum", "p95")
HEADER = ("metric", *NUMBERS, "95 % low", "95 % high", "missed")
SCORES: tuple[Literal["accuracy", "recall", "f1"], ...] = ("accuracy", "recall", "f1")
DATA_QUERY = "Data Query Metrics"
MAX_LISTED = 1_000  # values of a group, or dimensions
Block: TypeAlias = tuple[str, Sequence[str], list[list[Cell]]]  # a title, a header and rows


def write_statistics(sheet: Sheet, report: Report) -> None:
    """Write blocks of rows below each other, each with its title and its header."""
    row = 0
    for title, header, rows in _blocks(report):
        row = sheet.block(row, title, header, rows)
    sheet.set_up_page(row, max(sheet.widths))


def _blocks(report: Report) -> Iterator[Block]:
    kinds = report["groups"]["kind"]
    if SDMX in kinds:
        yield DATA_QUERY, HEADER, _metrics(kinds[SDMX]["metrics"])
    if "dimensions" in report:
        yield "Dimensions", ("dimension", "metric", *HEADER[1:-1]), _dimensions(report["dimensions"])
    if kinds.keys() != {SDMX}:
        yield "Metrics", HEADER, _metrics(report["metrics"])
    if report["measures"]:
        measure_rows = [
            [name, *_spread(spread), spread["sum"], spread["p95"]] for name, spread in report["measures"].items()
        ]
        yield "Times (s), tokens, costs", ("measure", *MEASURE_COLUMNS), measure_rows
    if "trials" in report:
        trials = report["trials"]
        pairs = enumerate(zip(trials["pass_at"], trials["pass_hat"], strict=False), start=1)
        rows: list[list[Cell]] = [[k, trials["cases"], pass_at, pass_hat] for k, (pass_at, pass_hat) in pairs]
        yield "Trials", ("k", "cases", "pass@k", "pass^k"), rows
    if "spider_table" in report:
        yield "Spider's table", ("score", *report["spider_table"]), _spider_table(report["spider_table"])
    for group, members in report["groups"].items():
        if members:
            yield f"By {group}", *_group(group, members, report["metrics"])


def _metrics(metrics: Mapping[str, MetricStatistics]) -> list[list[Cell]]:
    return [[name, *_numbers(statistics), statistics["missed"]] for name, statistics in metrics.items()]


def _numbers(statistics: ScoreStatistics) -> list[Cell]:
    return [*_spread(statistics), *(shown_interval(statistics) or (None, None))]


def _spread(spread: Spread) -> list[Cell]:
    return [spread[name] for name in NUMBERS]


def _dimensions(dimensions: Mapping[str, DimensionStatistics]) -> list[list[Cell]]:
    rows: list[list[Cell]] = [
        [name, metric, *_numbers(statistics)]
        for name, metrics in list(dimensions.items())[:MAX_LISTED]
        for metric, statistics in (("precision", metrics.get("precision")), ("recall", metrics.get("recall")))
        if statistics is not None
    ]
    return rows + _unlisted_row(dimensions)


def _spider_table(table: SpiderTable) -> list[list[Cell]]:
    """Return the rows that the published tool prints, with a column for each level."""
    levels = list(table.values())
    rows: list[list[Cell]] = [
        ["count", *(level["count"] for level in levels)],
        ["execution accuracy", *(level["execution_accuracy"] for level in levels)],
        ["exact match", *(level["exact_match"] for level in levels)],
    ]
    return rows + [
        [f"{score}: {name.replace('_', ' ')}", *(level[name][score] for level in levels)]
        for score in SCORES
        for name in COMPONENTS
    ]


def _group(
    group: str, members: Mapping[str, GroupReport], metrics: Iterable[str]
) -> tuple[Sequence[str], list[list[Cell]]]:
    """Return the header and a row for each value of the group, with mean and n of each metric that any value has."""
    names = group_metrics(metrics, members)
    rows: list[list[Cell]] = [
        [
            value,
            reached_count(member["totals"]),
            member["totals"]["passed"],
            *(
                member["metrics"][name][number] if name in member["metrics"] else None
                for name in names
                for number in NUMBERS[:2]
            ),
        ]
        for value, member in list(members.items())[:MAX_LISTED]
    ]
    return (group, "cases", "passed", *(header for name in names for header in (name, "n"))), rows + _unlisted_row(
        members
    )


def _unlisted_row(members: Sized) -> list[list[Cell]]:
    return [[f"… and {len(members) - MAX_LISTED:,} more"]] if len(members) > MAX_LISTED else []
