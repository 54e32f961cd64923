"""Data sets of other tools that tests write into the current folder, and what `queryeval import` makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.model import Case


def write(path: str, value: Any) -> str:
    """Write a text, or a value as JSON; return the path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: str, *records: Any) -> str:
    return write(path, "".join(f"{json.dumps(record)}\n" for record in records))


def imported(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Case], dict[str, str]]:
    """Return the cases by id, and what was skipped."""
    status = main(["import", *arguments, "-o", "out", "--force", "--json"])
    output = json.loads(capsys.readouterr().out)
    assert status == (1 if output["skipped"] else 0)
    cases = load_cases("out", root=Path("out"))
    assert output["cases"] == len(cases)
    return {case.id: case for case in cases}, {entry["id"]: entry["reason"] for entry in output["skipped"]}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command says that is refused."""
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    assert stop.value.code == 2
    return capsys.readouterr().err


def scores(cases: dict[str, Case], metric: str) -> dict[str, float]:
    return {case["id"]: case["scores"][metric] for case in evaluate(cases.values())["cases"]}


def outcomes(cases: dict[str, Case]) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in evaluate(cases.values())["cases"]}
