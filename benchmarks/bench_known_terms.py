"""What `known_terms` costs a case after the first one: CPU of both processes, on ck25 and on 1.5 million triples.

python benchmarks/bench_known_terms.py [FOLDER WITH ck25]
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.languages.sparql.source_terms import SourceTerms
from pytest_queryeval.sandbox.host import Hosts

TRIPLES, CLASSES, PROPERTIES, CASES = 1_500_000, 500, 200, 1_000
UNKNOWN = 0.5  # the share of predictions with an unknown term


def main() -> None:
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        lines = (folder / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
        queries = [record["predicted"] for record in map(json.loads, lines) if record["predicted_runs"]]
        measure("ck25", folder, ["prod-inst.ttl", "prod-vocab.ttl"], queries)
    with tempfile.TemporaryDirectory() as name:
        write_graph(Path(name) / "large.nt")
        measure(f"{TRIPLES:,} triples", Path(name), ["large.nt"], made_queries())


def measure(name: str, folder: Path, files: list[str], queries: Sequence[str]) -> None:
    with Hosts() as hosts:
        engine = ENGINES["rdf"].open(Source(name="g", engine="rdf", settings={"files": files}, folder=folder), hosts)

        def run(query: str) -> Table | None:
            answer = engine.execute(query, timeout=60, max_rows=100_000).answer
            return answer if isinstance(answer, Table) else None

        run("ASK {}")
        terms = SourceTerms(run, {}, is_local=True)
        began = cpu_seconds(hosts)
        terms.unknown_terms(f"SELECT * {{ ?s a <{CLASS}0x> ; <{PROPERTY}0x> <{NODE}0x> }}", ())
        first = cpu_seconds(hosts) - began
        began = cpu_seconds(hosts)
        unknown = sum(bool(terms.unknown_terms(query, ())) for query in queries)
        seconds = cpu_seconds(hosts) - began
    print(
        f"{name}: first case {first:.2f} s, then {1000 * seconds / len(queries):.2f} ms a case "
        f"({len(queries)} cases, {unknown} with an unknown term)"
    )


CLASS, PROPERTY, NODE = (
    "http://example.org/vocabulary#Class",
    "http://example.org/vocabulary#has",
    "http://example.org/n",
)


def write_graph(path: Path) -> None:
    choice = random.Random(1)
    rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    with path.open("w", encoding="utf-8") as file:
        for number in range(TRIPLES // 5):
            file.write(f"<{NODE}{number}> <{rdf_type}> <{CLASS}{choice.randrange(CLASSES)}> .\n")
            for _ in range(4):
                target = choice.randrange(TRIPLES // 5)
                file.write(f"<{NODE}{number}> <{PROPERTY}{choice.randrange(PROPERTIES)}> <{NODE}{target}> .\n")


def made_queries() -> list[str]:
    choice = random.Random(2)
    queries = []
    for _ in range(CASES):
        end = choice.choice(["Part", "Type", "Point"]) if choice.random() < UNKNOWN else ""
        class_name = f"{CLASS}{choice.randrange(CLASSES)}{end}"
        property_name = f"{PROPERTY}{choice.randrange(PROPERTIES)}"
        node = f"{NODE}{choice.randrange(TRIPLES // 5)}"
        queries.append(f"SELECT ?s WHERE {{ ?s a <{class_name}> ; <{property_name}> ?o . ?o ?p <{node}> }}")
    return queries


def cpu_seconds(hosts: Hosts) -> float:
    """The CPU seconds of this process and of the children of hosts."""
    ticks = 0
    for host in hosts._hosts.values():
        fields = Path(f"/proc/{host.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
