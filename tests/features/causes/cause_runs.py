"""Causes of wrong predictions, as reports have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samples import make_case, query

from pytest_queryeval import evaluate
from pytest_queryeval.core.model import Source

Pair = tuple[str, str]  # predicted and gold


def script_source(folder: Path, script: str, engine: str = "sqlite") -> Source:
    """Return a database that a script makes."""
    name = f"{len([*folder.iterdir()])}.sql"
    (folder / name).write_text(script, encoding="utf-8")
    return Source(name=name, engine=engine, settings={"script": name}, folder=folder)


def graph_source(folder: Path, text: str, name: str = "g.ttl", engine: str = "rdf") -> Source:
    """Return a graph."""
    (folder / name).write_text(text, encoding="utf-8")
    return Source(name=name, engine=engine, settings={"files": [name]}, folder=folder)


def evaluated(pairs: Sequence[Pair], source: Source, *, cause: str = "full", **changes: Any) -> list[Any]:
    """Return the cases of pairs of predicted and gold as a report has them, in their order."""
    is_graph = "files" in source.settings
    settings: dict[str, Any] = {"source": source, "thresholds": {}, "max_rows": 1_000, "timeout": 30.0}
    settings |= {"kind": "sparql", "dialect": ""} if is_graph else {"kind": "sql", "dialect": source.engine}

    def case(number: int, predicted: str, gold: str) -> Any:
        contents = {"id": f"{number:04}", "golds": (query(gold),), "predicted": query(predicted)}
        return make_case(**{**settings, **contents, **changes})

    entries = evaluate([case(number, *pair) for number, pair in enumerate(pairs)], cause=cause)["cases"]
    return sorted(entries, key=lambda entry: entry["id"])


def told(entry: Any) -> list[str]:
    """Return the edits of a cause, each with its label, clause and change."""
    edits = (entry["cause"] or {"edits": []})["edits"]
    return [" ".join(filter(None, (edit["label"], edit["clause"], edit["change"]))) for edit in edits]


def wrongly_repaired(pairs: Sequence[Pair], entries: Sequence[Any], source: Source, **changes: Any) -> list[Pair]:
    """Return the repaired queries that do not have gold's answer, with gold."""
    causes = [(pair, entry["cause"]) for pair, entry in zip(pairs, entries, strict=True) if entry["cause"]]
    repaired = [(cause["repaired_query"], pair[1]) for pair, cause in causes if cause["repaired_query"]]
    again = evaluated(repaired, source, cause="off", **changes)
    return [pair for pair, entry in zip(repaired, again, strict=True) if entry["scores"]["execution_accuracy"] != 1.0]
