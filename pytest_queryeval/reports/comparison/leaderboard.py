"""How a leaderboard reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.plain import interval_text, score_text
from pytest_queryeval.reports.comparison.baseline import LISTED, p_text
from pytest_queryeval.reports.comparison.passages import Foreign, Passage, Sentence, Table
from pytest_queryeval.verdict import counted


def leaderboard_passages(board: Mapping[str, Any]) -> Iterator[Passage]:
    """The leaderboard as a table and sentences."""
    found = dict.fromkeys(name for system in board["systems"] for name in system["metrics"])
    metrics = sorted(found, key=lambda name: name != board["metric"])
    shown = metrics[:LISTED]
    header = ("system", "rank", "p against the best", "cases", "passed", *map(Foreign, shown))
    yield Table(header, [_row(system, shown) for system in board["systems"]])
    if len(metrics) > len(shown):
        yield (f"and {len(metrics) - len(shown):,} more metrics: the JSON form has all",)
    if board["metric"] is not None:
        told = ", adjusted for their number; the best may be no better than those with a p above 0.05"
        yield ("rank: by the mean of ", Foreign(board["metric"]), f"; p: paired test against the best{told}")
    if board["common"] < board["cases"]:
        differ = f"only {board['common']:,} of {board['cases']:,} cases are in all reports"
        yield (f"{differ}: means and ranks are over other cases, p over those that both systems have",)
    for system in board["systems"]:
        yield from _asked_otherwise(system, board["systems"][0]["name"])


def _asked_otherwise(system: Mapping[str, Any], best: str) -> Iterator[Sentence]:
    """What the suite of a system asked otherwise than that of the best one."""
    changes = [f"{change['what']} ({counted(len(change['cases']), 'case')})" for change in system["changes"]]
    if changes:
        yield (Foreign(system["name"]), " was not asked what ", Foreign(best), f" was: {', '.join(changes)}")


def _row(system: Mapping[str, Any], metrics: Sequence[str]) -> Sequence[str]:
    counts = system["totals"]
    return (
        Foreign(system["name"]),
        "" if system["rank"] is None else str(system["rank"]),
        "" if system["p"] is None else p_text(system["p"]),
        f"{counts['cases']:,}",
        f"{counts['passed']:,}",
        *(_cell(system["metrics"].get(name)) for name in metrics),
    )


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    between = f" ({interval_text(found['ci95'])})" if found["ci95"] else ""
    return f"{score_text(found['mean'])}{between} n {found['n']:,}"
