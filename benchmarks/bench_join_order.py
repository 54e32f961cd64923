"""rdflib's order of joins against ours: the queries of the document on its building, each once, rows compared.

Only the ratios compare across machines: python benchmarks/bench_join_order.py
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import rdflib
from rdflib.plugins.sparql import CUSTOM_EVALS, prepareQuery

from pytest_queryeval.engines.rdflib_child import JoinOrder

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from test_building_metrics import GOLD_QUERY, PREDICTIONS, building


def main() -> None:
    dataset = rdflib.Dataset()
    dataset.default_graph.parse(data=building(), format="turtle")
    for name, query in {"gold": GOLD_QUERY, **PREDICTIONS}.items():
        CUSTOM_EVALS.clear()
        before, rows = timed(dataset, query)
        CUSTOM_EVALS["join order"] = JoinOrder()
        after, same_rows = timed(dataset, query)
        if rows != same_rows:
            raise SystemExit(f"{name}: the rows differ")
        print(f"{name}: as written {before:.3f} s, ordered {after:.3f} s, {after / before:.3f} x")


def timed(dataset: rdflib.Dataset, query: str) -> tuple[float, Counter[Any]]:
    """The seconds of processor time that a query takes, and its rows."""
    prepared = prepareQuery(query)
    began = time.process_time()
    rows = Counter(tuple(sorted(row.items())) for row in dataset.query(prepared).bindings)
    return time.process_time() - began, rows


if __name__ == "__main__":
    main()
