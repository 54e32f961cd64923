"""Real predictions on real databases, imported as the files of Spider and run: the published scores must come out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from reference_records import Records

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main

PUBLISHED = ("execution_accuracy_spider", "exact_set_match_spider")


@pytest.mark.parametrize("name", ["dail_gpt4", "c3_chatgpt", "graphix_t5"])
def test_an_imported_data_set_has_the_published_scores(
    name: str, records: Records, conformance: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = records(f"spider/{name}.jsonl")[::6]
    questions = [{"db_id": pair["db_id"], "question": pair["question"], "query": pair["gold"]} for pair in pairs]
    Path("dev.json").write_text(json.dumps(questions))
    Path("pred.txt").write_text("".join(f"{' '.join(pair['predicted'].splitlines())}\n" for pair in pairs))
    shutil.copy(conformance / "spider" / "tables.json", "tables.json")

    arguments = ["--databases", str(conformance / "spider" / "databases"), "--predictions", "pred.txt"]
    status = main(["import", "spider", "dev.json", *arguments, "-o", "out"])
    report = evaluate(load_cases("out"))

    assert status == 0
    scores = [tuple(case["scores"][metric] for metric in PUBLISHED) for case in report["cases"]]
    assert scores == [tuple(pair[metric] for metric in PUBLISHED) for pair in pairs]

    Path("report.json").write_text(json.dumps(report))
    main(["export", "report.json", "-f", "spider", "-o", "again.txt"])
    assert Path("again.txt").read_bytes() == Path("pred.txt").read_bytes()
