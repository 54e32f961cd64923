"""What a leaderboard says, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pytest_queryeval.reports.blocks import Block, Sentence, Table, Untrusted
from pytest_queryeval.reports.sections import first_names, p_text
from pytest_queryeval.results.baseline.leaderboard import Leaderboard, System
from pytest_queryeval.text.formatting import format_interval, format_score, pluralize

MAX_METRICS = 100  # beside that of the ranking
RANKING_HEADER = ("system", "rank", "mean", "95 % interval", "n", "p", "passed", "cases")
NOTE = (
    "p: paired test against the best, adjusted for the number of systems; those with a p above 0.05 may be as good as "
    "the best"
)
OTHER_CASES = "means are over other cases, and each p is over those that a system shares with the best"


def leaderboard_blocks(board: Leaderboard) -> Iterator[Block]:
    """Yield the ranking by one metric, the means of the others, and what makes the systems hard to compare."""
    systems, metric = board["systems"], board["metric"]
    start = f"{pluralize(len(systems), 'system')}, {pluralize(board['cases'], 'case')}, "
    first = ", the lowest first" if board["better"] == "lower" else ""
    ranked = () if metric is None else (start, "ranked by the mean of ", Untrusted(metric), first)
    yield ranked or (start, "no score to rank by")
    yield Table(RANKING_HEADER, [_ranked(system, metric) for system in systems])
    if metric is not None:
        yield (NOTE,)
    yield from _other_metrics(systems, metric)
    if metric is not None and board["common"] < board["scored"]:
        shared = f"only {board['common']:,} of {pluralize(board['scored'], 'case')} with a score of "
        yield (shared, Untrusted(metric), f" have one in all ranked systems: {OTHER_CASES}")
    yield from _changes(systems)


def _ranked(system: System, metric: str | None) -> Sequence[str]:
    found, counts = None if metric is None else system["metrics"].get(metric), system["totals"]
    return (
        Untrusted(system["name"]),
        "-" if system["rank"] is None else str(system["rank"]),
        format_score(found["mean"] if found else None),
        (format_interval(found["ci95"]) if found else "") or "-",
        f"{found['n'] if found else 0:,}",
        "-" if system["p"] is None else p_text(system["p"]),
        f"{counts['passed']:,}",
        f"{counts['cases']:,}",
    )


def _other_metrics(systems: Sequence[System], metric: str | None) -> Iterator[Block]:
    """Yield a table of means, with systems or metrics as columns: those of which there are fewer."""
    names = list(dict.fromkeys(name for system in systems for name in system["metrics"] if name != metric))
    shown = names[:MAX_METRICS]
    if not shown:
        return
    columns: list[list[str]] = []
    for name in shown:
        means = [system["metrics"].get(name) for system in systems]
        differ = len({found["n"] for found in means if found}) > 1
        numbers = [f" (n {found['n']:,})" if differ and found else "" for found in means]
        cells = [format_score(found["mean"] if found else None) for found in means]
        columns.append([Untrusted(name), *map("".join, zip(cells, numbers, strict=True))])
    corner_and_systems = ["mean", *(Untrusted(system["name"]) for system in systems)]
    if len(systems) < len(shown):
        yield Table(tuple(corner_and_systems), columns)
    else:
        header, *rows = zip(corner_and_systems, *columns, strict=True)
        yield Table(header, rows)
    if len(names) > len(shown):
        yield (f"and {pluralize(len(names) - len(shown), 'metric')} more: the JSON form has all",)


def _changes(systems: Sequence[System]) -> Iterator[Sentence]:
    """Yield how suites differ from that of the best system, and where that of the best requires less."""
    best = Untrusted(systems[0]["name"])
    for changes, names in _names_by_changes(systems, "changes").items():
        yield ("changed besides the system in ", *first_names(names), " against ", best, f": {changes}")
    for changes, names in _names_by_changes(systems, "eased").items():
        yield ("changed besides the system in ", best, " against ", *first_names(names), f": {changes}")


def _names_by_changes(systems: Sequence[System], member: Literal["changes", "eased"]) -> dict[str, list[str]]:
    """Return the names of the systems with changes, by these changes in words."""
    found: dict[str, list[str]] = {}
    for system in systems:
        if changes := [f"{change['what']} ({pluralize(len(change['cases']), 'case')})" for change in system[member]]:
            found.setdefault(", ".join(changes), []).append(system["name"])
    return found
