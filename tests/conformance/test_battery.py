"""The verdicts that the default policy must give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference_records import Records

from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.suites import load_cases


def suite_text(records: list[dict[str, Any]]) -> str:
    import json

    cases = [
        {"id": f"b{number}", "gold": record["gold"], "predicted": record["predicted"], "allow_empty": True}
        | ({"compare": record["compare"]} if "compare" in record else {})
        for number, record in enumerate(records)
    ]
    return json.dumps({"kind": "sql", "source": "empty.db", "cases": cases})


def test_every_verdict_is_right(records: Records, tmp_path: Path) -> None:
    import sqlite3

    battery = records("battery.jsonl")
    sqlite3.connect(tmp_path / "empty.db").executescript("CREATE TABLE t (x); DROP TABLE t;").close()
    (tmp_path / "battery.queryeval.yaml").write_text(suite_text(battery), encoding="utf-8")

    with Session() as session:
        results = [evaluate_case(case, session) for case in load_cases(tmp_path / "battery.queryeval.yaml")]

    verdicts = {True: "equal", False: "different"}
    wrong = [
        record["name"]
        for record, result in zip(battery, results, strict=True)
        if verdicts[result.scores["execution_accuracy"] == 1.0] != record["expect"]
    ]
    assert wrong == []
    assert len(results) == len(battery)
