"""Challenges of the right predictions of three systems for Spider: their verdicts, counterexamples and CPU time.

Needs QUERYEVAL_CONFORMANCE. `python benchmarks/bench_challenge.py` challenges all different predictions that are right with
another text than gold, or `--count N` of them chosen at random, and challenges them once more with the cache; with
`--engine duckdb` on copies of the databases in DuckDB. Each counterexample is made again by its script with sqlite3 or
duckdb alone, where it should differ and break no constraint. With `--variants FOLDER`, of what `queryeval strengthen` made
of Spider's golds as `DATABASE-01.sql`, those are counted that they expose. `--databases N` runs all that is proved on N
random databases each instead, and prints after each round how many differ. Times are of the processor, of this process
and the children of the session.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from statistics import median, quantiles

import duckdb
from bench_counterexamples import SYSTEMS, pairs_of, right_predictions
from bench_strength import load, spider_suite
from bench_strengthen import spider_in_duckdb
from random_databases import Pair, PairsOfSource

from pytest_queryeval.core.db_schema import TableDefinition
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Challenge, QueryOrAnswer, Source
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.counterexample import constraints
from pytest_queryeval.features.strength.sql.candidates import rows_query
from pytest_queryeval.features.strength.sql.source_tables import source_tables

SEED = 30
ROUND = 100  # random databases between two lines of figures
SAMPLED_ROWS = 60  # of each table of a source
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int)
    parser.add_argument("--engine", choices=("sqlite", "duckdb"), default="sqlite")
    parser.add_argument("--variants", type=Path)
    parser.add_argument("--databases", type=int)
    options = parser.parse_args()
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        is_sqlite = options.engine == "sqlite"
        suite = spider_suite(spider) if is_sqlite else spider_in_duckdb(spider, Path(folder))
        with Session() as session:
            cases = load(Path(folder), suite)
            pairs = list(
                dict.fromkeys(
                    (number, predicted)
                    for system in SYSTEMS
                    for number, predicted in right_predictions(cases, pairs_of(spider, system), session)
                )
            )
        if options.count is not None and options.count < len(pairs):
            pairs = sorted(Random(SEED).sample(pairs, options.count))
        predictions = [challenged(cases[number], predicted) for number, predicted in pairs]
        results = challenge_all(predictions, "new")
        show(predictions, results)
        if options.databases is not None:
            run_proved(predictions, results, options.databases)
            return
        challenge_all(predictions, "cached")
        if options.variants is not None:
            show_exposed(predictions, results, options.variants.resolve())


def challenged(case: Case, predicted: str) -> Case:
    settings = replace(case.settings, metrics=("execution_accuracy", "challenged_accuracy"), thresholds={})
    return replace(case, predicted=QueryOrAnswer(query=predicted), settings=settings)


def challenge_all(cases: Sequence[Case], title: str) -> list[Challenge | None]:
    """Return the challenges of right predictions, and print what they cost more than their scores."""
    results: list[Challenge | None] = []
    seconds = []
    with Session() as session:
        for case in cases:
            settings = replace(case.settings, metrics=("execution_accuracy",))
            began = used()
            evaluate_case(replace(case, settings=settings), session)
            scored = used()
            results.append(evaluate_case(case, session).shown.challenge)
            if (result := results[-1]) is not None and result.verdict != "same":
                seconds.append(used() - scored - (scored - began if title == "cached" else 0.0))
    cuts = quantiles(seconds, n=20)
    print(f"{title}: CPU a challenge median {median(seconds):.3f} s, 95th percentile {cuts[-1]:.3f} s")
    return results


def show(cases: Sequence[Case], results: Sequence[Challenge | None]) -> None:
    challenges = [result for result in results if result is not None]
    counts = Counter(result.verdict for result in challenges)
    with_another_text = len(challenges) - counts["same"]
    print(f"{len(challenges):,} passes: {dict(counts)}; proved {counts['proved'] / max(1, with_another_text):.1%}")
    print("rules:", Counter(rule for result in challenges for rule in result.rules).most_common())
    print("unchallenged:", Counter(result.reason for result in challenges if result.reason).most_common(5))
    refutations = [
        (case, result.refutation) for case, result in zip(cases, results, strict=True) if result and result.refutation
    ]
    if not refutations:
        return
    sizes = [refutation.size for _, refutation in refutations]
    print(
        f"counterexamples: median {median(sizes)} rows, at most 5 in {sum(size <= 5 for size in sizes) / len(sizes):.0%}"
    )
    ruled_out = sum(result.ruled_out is not None for result in challenges)
    print(f"  of those that stand, with a counterexample that violates what the data satisfies: {ruled_out}")
    faults = Counter(fault for case, refutation in refutations for fault in faults_of(case, refutation.script, VERBOSE))
    print(f"  faults when replayed: {dict(faults)}")
    if VERBOSE:
        for case, refutation in refutations:
            rows = [list(refutation.gold.rows[:3]), list(refutation.predicted.rows[:3])]
            print(json.dumps([case.id, case.golds[0].query, text_of(case), str(rows)]))
        for case, result in zip(cases, results, strict=True):
            if result is not None and result.verdict == "stands":
                print(json.dumps(["stands", case.id, case.golds[0].query, text_of(case)]))


VERBOSE = bool(os.environ.get("VERBOSE"))


def text_of(case: Case) -> str:
    assert isinstance(case.predicted, QueryOrAnswer)
    return case.predicted.query or ""


def faults_of(case: Case, script: str, verbose: bool) -> Iterator[str]:
    """Yield what is wrong with a counterexample that its engine makes alone."""
    assert case.settings.source is not None
    queries = (case.golds[0].query or "", text_of(case))
    if case.settings.source.engine == "duckdb":
        yield from faults_in_duckdb(script, queries)
        return
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.text_factory = lambda data: data.decode(errors="replace")
        try:
            connection.executescript(script)
            answers = [connection.execute(query).fetchall() for query in queries]
        except sqlite3.Error as error:
            yield f"error: {error}"
            return
        if answers[0] == answers[1]:
            yield "equal"
        with suppress(sqlite3.OperationalError):  # of a declaration that no data can keep
            if broken := connection.execute("PRAGMA foreign_key_check").fetchall():
                yield "breaks a foreign key"
                if verbose:
                    print(case.id, broken[:3])
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, name, declared, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                texts = connection.execute(
                    f'SELECT "{name}" FROM "{table}" WHERE typeof("{name}") = \'text\''
                ).fetchall()
                if texts and "INT" in declared.upper():
                    yield "a text in a column of numbers"
                if "DATE" in declared.upper() and not all(is_date(text) for (text,) in texts):
                    yield "a text that is no date in a column of dates"


def faults_in_duckdb(script: str, queries: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a counterexample: duckdb itself refuses rows that break a constraint or a type."""
    with duckdb.connect(":memory:") as connection:
        try:
            connection.execute(script)
            answers = [connection.execute(query).fetchall() for query in queries]
        except duckdb.Error as error:
            yield f"error: {error}"
            return
        if answers[0] == answers[1]:
            yield "equal"


def is_date(text: str) -> bool:
    with suppress(ValueError):
        datetime.fromisoformat(text)
        return True
    return False


def run_proved(cases: Sequence[Case], results: Sequence[Challenge | None], count: int) -> None:
    """Run all proved predictions and their golds on so many random databases each, and print the pairs that differ."""
    by_source: defaultdict[str, list[Pair]] = defaultdict(list)
    for case, result in zip(cases, results, strict=True):
        if result is not None and result.verdict == "proved":
            assert case.settings.source is not None
            pair = Pair(case, case.golds[0].query or "", text_of(case), f"{case.id}: {', '.join(result.rules)}")
            by_source[case.settings.source.key].append(pair)
    with Session() as session:
        sources = [prepared(pairs, session) for pairs in by_source.values()]
    print(f"{sum(map(len, by_source.values()))} proved pairs on {len(sources)} sources", flush=True)
    for done in range(0, count, ROUND):
        for source in sources:
            for text in source.check(min(ROUND, count - done)):
                print(f"    {text}")
        outcomes = sum((source.counts for source in sources), Counter[str]())
        differing = sum(len(source.differing) for source in sources)
        print(
            f"  {done + ROUND:,} databases each: {differing} differ; {dict(outcomes)}; CPU {used():.0f} s", flush=True
        )


def prepared(pairs: Sequence[Pair], session: Session) -> PairsOfSource:
    """Return pairs of one source with the tables that they read, the constraints of the proofs, and sampled rows."""
    case = pairs[0].case
    tables: dict[str, TableDefinition] = {}
    for pair in pairs:
        tables |= constraints(pair.case, pair.gold, pair.predicted, session).tables
    samples: dict[str, Sequence[Row]] = {}
    for name in tables:
        query = rows_query(name, SAMPLED_ROWS, case.settings.dialect)
        answer = session.execute(QueryOrAnswer(query=query), case).answer
        samples[name] = answer.rows if isinstance(answer, Table) else ()
    return PairsOfSource(pairs, source_tables(case, session).script, tables, samples)


def show_exposed(cases: Sequence[Case], results: Sequence[Challenge | None], folder: Path) -> None:
    """Print how many predictions that variants expose are refuted without them."""
    exposed: Counter[str] = Counter()
    with Session() as session:
        for case, result in zip(cases, results, strict=True):
            if result is None or result.verdict == "same":
                continue
            assert case.settings.source is not None
            name = Path(str(case.settings.source.settings["path"])).stem
            if any(differs_on(case, path, session) for path in sorted(folder.glob(f"{name}-*.sql"))):
                exposed[result.verdict] += 1
                if VERBOSE and result.verdict != "refuted":
                    print(json.dumps(["exposed", result.verdict, result.rules, case.golds[0].query, text_of(case)]))
    print(
        f"exposed by variants: {exposed.total()}, refuted {exposed['refuted'] / max(1, exposed.total()):.1%}, {dict(exposed)}"
    )


def differs_on(case: Case, path: Path, session: Session) -> bool:
    source = Source(name=path.name, engine="sqlite", settings={"script": path.name}, folder=path.parent)
    settings = replace(case.settings, source=source, metrics=("execution_accuracy",), timeout=5.0)
    with suppress(QueryEvalError):
        return evaluate_case(replace(case, settings=settings), session).scores["execution_accuracy"] != 1.0
    return False


def used() -> float:
    """Return the CPU seconds of this process and its children that run."""
    processes = {"self"}
    for path in Path("/proc/self/task").iterdir():
        processes.update((path / "children").read_text().split())
    total = time.process_time()
    for process in processes - {"self"}:
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


if __name__ == "__main__":
    main()
