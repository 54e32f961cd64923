"""SPARQL: four metrics on great answers, a graph's second opening, and what child process and server cost.

Needs QUERYEVAL_CONFORMANCE. Prints medians of 5 taken in turn in one run, or of as many as a line says; only ratios
compare across machines: python benchmarks/bench_sparql.py
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyoxigraph

from pytest_queryeval.core.model import Execution, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES, Engine
from pytest_queryeval.sandbox.host import Hosts

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "conformance")]

from published_sparql import SCORES, score, table  # noqa: E402
from servers import oxigraph  # noqa: E402
from test_building_metrics import GOLD_QUERY, PREDICTIONS, building  # noqa: E402

# CPU seconds of BuildingQA's metrics.py (HEAD b8d09d9) on a shared machine with 2 cores and Python 3.11, measured once:
PUBLISHED_BUILDING = 67.0  # its five comparisons on bldg11, whose answers have as many rows as those of our graph
PUBLISHED_TABLES, PUBLISHED_RECORDS = 27.7, 767  # small pairs of tables; conformance/tables.jsonl has 417 of them

SMALL = "SELECT ?o WHERE { <http://bench.example/item77> <http://bench.example/p1> ?o }"
LARGE = "SELECT * WHERE { ?s ?p ?o } LIMIT 10000"
TRIPLES = 100_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "building.ttl").write_text(building(), encoding="utf-8")
        (folder / "graph.ttl").write_text(graph(TRIPLES), encoding="utf-8")
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        building_metrics(folder)
        recorded_tables(Path(os.environ["QUERYEVAL_CONFORMANCE"]) / "tables.jsonl")
        second_opening(folder)
        child_process(folder)
        other_evaluator(folder)
        live_server(folder)


def building_metrics(folder: Path) -> None:
    """All four metrics on all five predictions of the document; tables are new each time, so nothing is cached."""
    with opened(folder, "building.ttl") as engine:
        gold, *predicted = (answer(engine, query) for query in (GOLD_QUERY, *PREDICTIONS.values()))

    def compare() -> None:
        for answer in predicted:
            gold_copy, predicted_copy = copied(gold), copied(answer)
            for name in SCORES:
                score(name, gold_copy, predicted_copy)

    ours = median(compare)
    rows = ", ".join(str(len(answer.rows)) for answer in predicted)
    print(
        f"377 gold rows against {rows}: {ours:.4f} s; published {PUBLISHED_BUILDING:.0f} s, 1/{PUBLISHED_BUILDING / ours:.0f} of it (aim 1/100)"
    )


def recorded_tables(path: Path) -> None:
    """Reading the records and scoring them, as the published time has both."""
    counted = []

    def compare() -> None:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for record in records:
            gold, predicted = table(record["gold"]), table(record["pred"])
            for name in SCORES:
                score(name, gold, predicted)
        counted.append(len(records))

    ours = median(compare)
    published = PUBLISHED_TABLES * counted[-1] / PUBLISHED_RECORDS
    print(
        f"{counted[-1]} records of tables.jsonl: {ours:.3f} s; published {published:.1f} s, which is its {PUBLISHED_TABLES} s"
        f" for {PUBLISHED_RECORDS} by number, 1/{published / ours:.0f} of it (aim 1/20)"
    )


def second_opening(folder: Path) -> None:
    """From nothing to the first answer, start of the child process included: in an empty cache, and in the same again."""
    first, second = [], []
    for run in range(5):
        os.environ["XDG_CACHE_HOME"] = str(folder / f"cache{run}")
        first.append(seconds(lambda: open_and_ask(folder)))
        second.append(seconds(lambda: open_and_ask(folder)))
    ratio = statistics.median(later / sooner for sooner, later in zip(first, second, strict=True))
    print(
        f"{TRIPLES:,} triples opened and asked: first {statistics.median(first):.3f} s, second {statistics.median(second):.3f} s,"
        f" {ratio:.2f} x (aim 0.2)"
    )


def open_and_ask(folder: Path) -> None:
    with opened(folder, "graph.ttl") as engine:
        answer(engine, SMALL)


def child_process(folder: Path) -> None:
    """The engine's child process against pyoxigraph in this one, on the same store on disk."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "one")
    with opened(folder, "graph.ttl") as engine:
        here = pyoxigraph.Store.read_only(str(next((folder / "one").rglob("CURRENT")).parent))
        for what, query, times in (("1 x 1", SMALL, 500), ("10,000 x 3", LARGE, 25)):
            inside, through = in_turn(lambda q=query: cells(here, q), lambda q=query: answer(engine, q), times=times)
            print(
                f"{what} cells: in process {inside * 1e3:.3f} ms, through the child {through * 1e3:.3f} ms,"
                f" + {(through - inside) * 1e3:.3f} ms, {through / inside:.2f} x (median of {times})"
            )


def cells(store: pyoxigraph.Store, query: str) -> list[tuple[str, ...]]:
    """The least that a caller in process does: every term's text."""
    return [tuple(term.value for term in row) for row in store.query(query)]


def other_evaluator(folder: Path) -> None:
    with opened(folder, "graph.ttl") as engine, opened(folder, "graph.ttl", "rdflib") as other:
        start = seconds(lambda: answer(other, SMALL))
        ours, theirs = in_turn(lambda: answer(engine, SMALL), lambda: answer(other, SMALL), times=100)
        print(
            f"small query: oxigraph {ours * 1e3:.3f} ms, rdflib {theirs * 1e3:.3f} ms, {theirs / ours:.1f} x (median of 100);"
            f" rdflib's first answer {start:.2f} s"
        )


def live_server(folder: Path) -> None:
    """The endpoint engine, which keeps its connection, against urllib, which opens one for each request."""
    with oxigraph(folder / "server", [folder / "graph.ttl"]) as url, Hosts() as hosts:
        engine = ENGINES["endpoint"].open(
            Source(name="live", engine="endpoint", settings={"url": url}, folder=folder), hosts
        )
        for what, query, times in (("1 x 1", SMALL, 500), ("10,000 x 3", LARGE, 25)):
            plain, ours = in_turn(lambda q=query: plain_get(url, q), lambda q=query: answer(engine, q), times=times)
            print(
                f"{what} cells from a server: urllib {plain * 1e3:.3f} ms, engine {ours * 1e3:.3f} ms,"
                f" {(ours - plain) * 1e3:+.3f} ms, {ours / plain:.2f} x (median of {times})"
            )
        engine.close()


def plain_get(url: str, query: str) -> Any:
    address = f"{url}?{urllib.parse.urlencode({'query': query})}"
    request = urllib.request.Request(address, headers={"Accept": "application/sparql-results+json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def graph(triples: int) -> str:
    """Items with ten properties each: links, numbers, words and tagged labels."""
    lines = ["@prefix : <http://bench.example/> ."]
    for item in range(triples // 10):
        links = " ; ".join(f":p{number} :item{(item * number + 1) % 9973}" for number in range(1, 4))
        numbers = " ; ".join(f":p{number} {item * number}" for number in range(4, 7))
        words = f':p7 "word {item}" ; :p8 "label {item}"@en ; :p9 {item / 7:.3f} ; a :Class{item % 20}'
        lines.append(f":item{item} {links} ; {numbers} ; {words} .")
    return "\n".join(lines) + "\n"


@contextmanager
def opened(folder: Path, file: str, evaluator: str = "oxigraph") -> Iterator[Engine]:
    source = Source(name=file, engine="rdf", settings={"files": [file], "engine": [evaluator]}, folder=folder)
    with Hosts() as hosts:
        engine = ENGINES["rdf"].open(source, hosts)
        yield engine
        engine.close()


def answer(engine: Engine, query: str) -> Table:
    execution: Execution = engine.execute(query, timeout=60.0, max_rows=TRIPLES)
    if not execution.answer or not execution.answer.rows:
        raise SystemExit(f"no answer: {execution.error}")
    return execution.answer


def copied(known: Table) -> Table:
    """The same rows in a table that no cache has seen."""
    return Table(columns=known.columns, rows=list(known.rows))


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median(action: Callable[[], object], times: int = 5) -> float:
    return statistics.median(seconds(action) for _ in range(times))


def in_turn(one: Callable[[], object], other: Callable[[], object], *, times: int) -> tuple[float, float]:
    """The medians of both, measured alternately after one call that does not count."""
    one(), other()
    pairs = [(seconds(one), seconds(other)) for _ in range(times)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


if __name__ == "__main__":
    main()
