"""Challenges of pairs of queries on a database that a script makes, as reports have them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from samples import make_case, query

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Source

METRICS = ("execution_accuracy", "challenged_accuracy")


def challenge_cases(pairs: Sequence[tuple[str, str]], source: Source, **changes: Any) -> list[Case]:
    """Return a case for each pair of gold and predicted, whose ids have their order."""
    settings = {"metrics": METRICS, "thresholds": {}, "dialect": source.engine, "max_rows": 1_000}

    def case(number: int, gold: str, predicted: str) -> Case:
        contents = {"id": f"{number:04}", "golds": (query(gold),), "predicted": query(predicted)}
        return make_case(source=source, **{**settings, **contents, **changes})

    return [case(number, *pair) for number, pair in enumerate(pairs)]


def database(folder: Path, script: str, engine: str = "sqlite", **settings: Any) -> Source:
    """Return a source that a script makes."""
    name = f"{len([*folder.iterdir()])}.sql"
    (folder / name).write_text(script, encoding="utf-8")
    return Source(name=name, engine=engine, settings={"script": name, **settings}, folder=folder)


def challenges_of(pairs: Sequence[tuple[str, str]], source: Source, **changes: Any) -> list[dict[str, Any]]:
    """Return the challenge of each pair; an empty one for an answer that is wrong on the source."""
    entries = evaluate(challenge_cases(pairs, source, **changes), cause="off")["cases"]
    return [entry.get("challenge", {}) for entry in sorted(entries, key=lambda entry: entry["id"])]


@contextmanager
def without_search() -> Iterator[None]:
    """Try no small database, which takes ten times as long as a proof."""

    def refuse(*_: object) -> None:
        raise SourceError("not searched")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_queryeval.features.challenge.challenger.find_counterexample", refuse)
        patch.setattr("pytest_queryeval.features.causes.search.is_refuted", refuse)
        yield


def answers_of(script: str, *queries: str) -> list[list[tuple[Any, ...]]]:
    """Return the answers in a database that sqlite3 makes with the script alone, and that keeps its foreign keys."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return [connection.execute(text).fetchall() for text in queries]
