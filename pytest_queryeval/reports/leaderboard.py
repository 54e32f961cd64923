"""How a leaderboard reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pytest_queryeval.reports.blocks import Block, Sentence, Table, Untrusted
from pytest_queryeval.reports.sections import first_names, p_text
from pytest_queryeval.results.baseline.leaderboard import Leaderboard, Mean, System
from pytest_queryeval.text.plain import counted, interval_text, score_text

LISTED = 100  # metrics beside that of the ranking
RANKED = ("system", "rank", "mean", "95 % interval", "n", "p", "passed", "cases")
NOTE = (
    "p: paired test against the best, adjusted for the number of systems; those with a p above 0.05 may be as good as "
    "the best"
)
OTHER_CASES = "means are over other cases, and each p is over those that a system shares with the best"


def leaderboard_blocks(board: Leaderboard) -> Iterator[Block]:
    """The ranking by one metric, the means of the others, and what makes the systems hard to compare."""
    systems, metric = board["systems"], board["metric"]
    start = f"{counted(len(systems), 'system')}, {counted(board['cases'], 'case')}, "
    first = ", the lowest first" if board["better"] == "lower" else ""
    ranked = () if metric is None else (start, "ranked by the mean of ", Untrusted(metric), first)
    yield ranked or (start, "no score to rank by")
    yield Table(RANKED, [_ranked(system, metric) for system in systems])
    if metric is not None:
        yield (NOTE,)
    yield from _other_metrics(systems, metric)
    if metric is not None and board["common"] < board["scored"]:
        shared = f"only {board['common']:,} of {counted(board['scored'], 'case')} with a score of "
        yield (shared, Untrusted(metric), f" have one in all ranked systems: {OTHER_CASES}")
    yield from _asked_otherwise(systems)


def _ranked(system: System, metric: str | None) -> Sequence[str]:
    found, counts = None if metric is None else system["metrics"].get(metric), system["totals"]
    return (
        Untrusted(system["name"]),
        "-" if system["rank"] is None else str(system["rank"]),
        score_text(found["mean"] if found else None),
        (interval_text(found["ci95"]) if found else "") or "-",
        f"{found['n'] if found else 0:,}",
        "-" if system["p"] is None else p_text(system["p"]),
        f"{counts['passed']:,}",
        f"{counts['cases']:,}",
    )


def _other_metrics(systems: Sequence[System], metric: str | None) -> Iterator[Block]:
    """A table of means; what there is less of, systems or metrics, are its columns."""
    names = list(dict.fromkeys(name for system in systems for name in system["metrics"] if name != metric))
    shown = names[:LISTED]
    if not shown:
        return
    columns = [[Untrusted(name), *_means([system["metrics"].get(name) for system in systems])] for name in shown]
    corner_and_systems = ["mean", *(Untrusted(system["name"]) for system in systems)]
    if len(systems) < len(shown):
        yield Table(tuple(corner_and_systems), columns)
    else:
        header, *rows = zip(corner_and_systems, *columns, strict=True)
        yield Table(header, rows)
    if len(names) > len(shown):
        yield (f"and {counted(len(names) - len(shown), 'metric')} more: the JSON form has all",)


def _means(of_systems: Sequence[Mean | None]) -> Iterator[str]:
    """The means of a metric, with their numbers of cases where these differ."""
    differ = len({found["n"] for found in of_systems if found}) > 1
    for found in of_systems:
        number = f" (n {found['n']:,})" if differ and found else ""
        yield f"{score_text(found['mean'] if found else None)}{number}"


def _asked_otherwise(systems: Sequence[System]) -> Iterator[Sentence]:
    """What the suites of systems asked otherwise than that of the best one, and where that of the best asked less."""
    best = Untrusted(systems[0]["name"])
    for told, names in _alike(systems, "changes"):
        yield ("changed besides the system in ", *first_names(names), " against ", best, f": {told}")
    for told, names in _alike(systems, "eased"):
        yield ("changed besides the system in ", best, " against ", *first_names(names), f": {told}")


def _alike(systems: Sequence[System], member: Literal["changes", "eased"]) -> Iterator[tuple[str, Sequence[str]]]:
    """What changed, in words, with the names of all systems of which the same is told."""
    alike: dict[str, list[str]] = {}
    for system in systems:
        changes = [f"{change['what']} ({counted(len(change['cases']), 'case')})" for change in system[member]]
        alike.setdefault(", ".join(changes), []).append(system["name"])
    yield from ((told, names) for told, names in alike.items() if told)
