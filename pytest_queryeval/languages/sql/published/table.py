"""The table of Spider's published evaluation: as data, and as the text that the published tool prints."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.report import LevelName, SpiderLevel, SpiderScores, SpiderTable
from pytest_queryeval.languages.sql.match import COMPONENTS, Component

ALL_LEVELS: tuple[LevelName, ...] = get_args(LevelName)
_PRINTED = {
    "select_no_agg": "select(no AGG)",
    "where_no_op": "where(no OP)",
    "group_no_having": "group(no Having)",
    "and_or": "and/or",
    "iuen": "IUEN",
}
_HEADINGS: Mapping[Literal["accuracy", "recall", "f1"], str] = {
    "accuracy": "---------------------PARTIAL MATCHING ACCURACY----------------------",
    "recall": "---------------------- PARTIAL MATCHING RECALL ----------------------",
    "f1": "---------------------- PARTIAL MATCHING F1 --------------------------",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPair:
    """What one pair adds: the hardness of gold, the verdict, the components, and the execution score if it ran."""

    hardness: str
    exact: bool
    components: Mapping[ComponentName, Component]
    execution: float | None = None


def spider_table(pairs: Iterable[ScoredPair]) -> SpiderTable:
    """Return the scores of pairs by hardness, and of all, from 0 to 1.

    `exact_match` and `execution_accuracy` are means over pairs; the latter is None if no pair was executed. A
    component counts all or nothing: accuracy is the mean over pairs where the prediction has such a part, recall over
    pairs where gold has, f1 the harmonic mean of these two means, and 1 if both are 0. A level without pairs has 0
    everywhere.
    """
    counts: defaultdict[str, Counter[str | tuple[str, str]]] = defaultdict(Counter)
    executions: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    for pair in pairs:
        for level in (pair.hardness, "all"):
            counts[level].update({"pairs": 1, "exact": int(pair.exact)})
            counts[level].update((side, name) for name, part in pair.components.items() for side in _sides(part))
            if pair.execution is not None:
                executions[level].append(pair.execution)
    return {level: _level(counts[level], executions[level]) for level in ALL_LEVELS}


def table_lines(table: SpiderTable) -> Iterator[str]:
    """Yield the lines that the published tool prints; without the row of execution where nothing was executed."""
    levels = [table[level] for level in ALL_LEVELS]
    yield _line("", ALL_LEVELS)
    yield _line("count", [level["count"] for level in levels])
    if table["all"]["execution_accuracy"] is not None:
        yield "=====================   EXECUTION ACCURACY     ====================="
        yield _line("execution", [level["execution_accuracy"] or 0.0 for level in levels])
    yield ""
    yield "====================== EXACT MATCHING ACCURACY ====================="
    yield _line("exact match", [level["exact_match"] for level in levels])
    yield ""
    for score, heading in _HEADINGS.items():
        yield heading
        for name in COMPONENTS:
            yield _line(_PRINTED.get(name, name), [level[name][score] for level in levels])


def _sides(part: Component) -> Iterator[str]:
    """Yield the sides of a pair that have a component, and where it agrees as a whole those again."""
    for side, total in (("predicted", part.pred_total), ("gold", part.gold_total)):
        if total > 0:
            yield side
            if part.matched:
                yield f"{side}, matched"


def _level(counts: Counter[str | tuple[str, str]], executions: Sequence[float]) -> SpiderLevel:
    def share(side: str, name: ComponentName) -> float:
        return counts[f"{side}, matched", name] / counts[side, name] if counts[side, name] else 0.0

    def scores(name: ComponentName) -> SpiderScores:
        accuracy, recall = share("predicted", name), share("gold", name)
        f1 = 2 * accuracy * recall / (accuracy + recall) if accuracy or recall else 1.0
        return {"accuracy": accuracy, "recall": recall, "f1": f1 if counts["pairs"] else 0.0}

    return {
        "count": counts["pairs"],
        "execution_accuracy": sum(executions) / len(executions) if executions else None,
        "exact_match": counts["exact"] / counts["pairs"] if counts["pairs"] else 0.0,
        "select": scores("select"),
        "select_no_agg": scores("select_no_agg"),
        "where": scores("where"),
        "where_no_op": scores("where_no_op"),
        "group_no_having": scores("group_no_having"),
        "group": scores("group"),
        "order": scores("order"),
        "and_or": scores("and_or"),
        "iuen": scores("iuen"),
        "keywords": scores("keywords"),
    }


def _line(name: str, cells: Sequence[str | int | float]) -> str:
    texts = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells]
    return "".join(f"{text:<21}" for text in (name, *texts)).rstrip()
