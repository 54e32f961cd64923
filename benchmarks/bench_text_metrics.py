"""The text metrics on 3 x 1034 real predictions: how fast, and how often right.

Needs QUERYEVAL_CONFORMANCE. Prints, per set, the CPU time of each metric with golds read for the first time and again, and
the table of verdicts against execution that docs/developers/benchmarks.md shows; then the CPU time of the features of all golds, whose
difficulty is known. With QUERYEVAL_SPIDER, a folder that holds the published
`evaluation.py` and `process_sql.py`, also their time on the same pairs.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.core.metric import Score
from pytest_queryeval.languages import sql
from pytest_queryeval.languages.sql import match, parse_query, spider_grammar
from pytest_queryeval.metrics.exact_set_match import exact_set_match, exact_set_match_spider

SETS = ("dail_gpt4", "c3_chatgpt", "graphix_t5")
COLUMNS = ("pairs", "judged", "right accepts", "false accepts", "right rejects", "false rejects")
Pair = dict[str, Any]
Schemas = dict[str, Schema]


def main() -> None:
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    entries = json.loads((spider / "tables.json").read_text(encoding="utf-8"))
    schemas = {entry["db_id"]: schema_of_entry(entry) for entry in entries}
    published = published_matcher(entries)
    for name in SETS:
        pairs = [json.loads(line) for line in (spider / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        print(name)
        measure(pairs, schemas, published, runs)
        for metric in (exact_set_match_of, exact_set_match_spider_of):
            counts = ", ".join(f"{what} {count}" for what, count in verdicts(pairs, schemas, metric))
            print(f"  {metric.__name__.removesuffix('_of')}: {counts}")


def measure(pairs: list[Pair], schemas: Schemas, published: Callable[[Pair], None] | None, runs: int) -> None:
    """Medians of CPU time of runs taken in turn; nothing has been read before, or golds where the name says so."""
    ours = {"exact_set_match": exact_set_match_of, "exact_set_match_spider": exact_set_match_spider_of}
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(runs):
        for name, score in ours.items():
            forget()
            seconds[name].append(cpu_seconds(score, pairs, schemas))
            forget()
            cpu_seconds(score, [{**pair, "predicted": pair["gold"]} for pair in pairs], schemas)
            seconds[f"{name}, golds read"].append(cpu_seconds(score, pairs, schemas))
        forget()
        for pair in pairs:
            assert parse_query(pair["gold"], "sqlite").difficulty
        seconds["features of golds"].append(cpu_seconds(features_of, pairs, schemas))
        if published:
            seconds["published matcher"].append(cpu_seconds(lambda pair, _: published(pair), pairs, schemas))
    for name, times in seconds.items():
        ratios = [
            time / published for time, published in zip(times, seconds.get("published matcher", ()), strict=False)
        ]
        ratio = f", {statistics.median(ratios):.2f} x the published matcher" if ratios else ""
        middle = statistics.median(times)
        print(f"  {name}: {middle:.3f} s, {len(pairs) / middle:,.0f} pairs a second{ratio}")


def exact_set_match_of(pair: Pair, schemas: Schemas) -> Score:
    return exact_set_match(pair["gold"], pair["predicted"], dialect="sqlite", schema=schemas[pair["db_id"]])


def exact_set_match_spider_of(pair: Pair, schemas: Schemas) -> Score:
    return exact_set_match_spider(pair["gold"], pair["predicted"], schema=schemas[pair["db_id"]])


def features_of(pair: Pair, _: Schemas) -> tuple[str, ...]:
    return parse_query(pair["gold"], "sqlite").features


def forget() -> None:
    for module in (sql, spider_grammar, match):
        for member in vars(module).values():
            if hasattr(member, "cache_clear"):
                member.cache_clear()


def cpu_seconds(score: Callable[[Pair, Schemas], object], pairs: list[Pair], schemas: Schemas) -> float:
    begin = time.process_time()
    for pair in pairs:
        score(pair, schemas)
    return time.process_time() - begin


def verdicts(
    pairs: list[Pair], schemas: Schemas, metric: Callable[[Pair, Schemas], Score | None]
) -> Iterator[tuple[str, int]]:
    """What the verdict says against what the queries return; judged are predictions that could be read."""
    agreement: Counter[tuple[bool, bool]] = Counter()
    judged = 0
    for pair in pairs:
        score = metric(pair, schemas)
        assert score is not None
        details = {**score.details.get("exact_set_match", {}), **score.details.get("spider", {})}
        judged += not details.keys() & {"unreadable", "rejected"}
        agreement[bool(score.value), bool(pair["execution_accuracy_spider"])] += 1
    counts = (agreement[True, True], agreement[True, False], agreement[False, False], agreement[False, True])
    return zip(COLUMNS, (len(pairs), judged, *counts), strict=True)


def published_matcher(entries: list[dict[str, Any]]) -> Callable[[Pair], None] | None:
    """The published reader and matcher, as its command uses them, without its reading of databases.

    NLTK splits texts into tokens at once, and not into sentences before, which takes longer and needs its data.
    """
    folder = os.environ.get("QUERYEVAL_SPIDER")
    if not folder:
        return None
    sys.path.insert(0, folder)
    import evaluation
    import process_sql

    process_sql.word_tokenize = partial(process_sql.word_tokenize, preserve_line=True)
    schemas = {entry["db_id"]: published_schema(process_sql, entry) for entry in entries}
    keys = {entry["db_id"]: evaluation.build_foreign_key_map(entry) for entry in entries}

    evaluator = evaluation.Evaluator()

    def run(pair: Pair) -> None:
        published_score(evaluation, evaluator, process_sql, pair, schemas[pair["db_id"]], keys[pair["db_id"]])

    return run


def published_schema(process_sql: Any, entry: dict[str, Any]) -> Any:
    tables = [name.lower() for name in entry["table_names_original"]]
    columns = {
        name: [column.lower() for table, column in entry["column_names_original"] if table == number]
        for number, name in enumerate(tables)
    }
    return process_sql.Schema(columns)


def published_score(evaluation: Any, evaluator: Any, process_sql: Any, pair: Pair, schema: Any, keys: Any) -> None:
    gold = process_sql.get_sql(schema, pair["gold"])
    evaluator.eval_hardness(gold)
    try:
        predicted = process_sql.get_sql(schema, pair["predicted"])
    except Exception:  # noqa: BLE001 - what its grammar does not know ends in errors of any kind
        predicted = {
            **dict.fromkeys(("except", "intersect", "union", "limit")),
            "from": {"conds": [], "table_units": []},
            **{name: [] for name in ("groupBy", "having", "orderBy", "where")},
            "select": [False, []],
        }
    sides = []
    for tree in (gold, predicted):
        units = evaluation.build_valid_col_units(tree["from"]["table_units"], schema)
        tree = evaluation.rebuild_sql_val(tree)
        sides.append(evaluation.rebuild_sql_col(units, tree, keys))
    evaluator.eval_exact_match(sides[1], sides[0])


if __name__ == "__main__":
    main()
