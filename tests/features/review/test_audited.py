"""What an audit judged against the verdict comes first in the ranking of golds."""

import hashlib
import json
from pathlib import Path

import pytest
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.reports import write_report

QUERIES = {"missed": "SELECT 1", "passed": "SELECT 2", "plain": "SELECT 3"}


@pytest.fixture
def ranked(tmp_path, monkeypatch, capsys):
    """Rank three cases, of which the first misses, after these judgements: (case, judgement, reviewer)."""
    monkeypatch.chdir(tmp_path)
    write("CREATE TABLE t (x);", "t.sql")
    golds = {**QUERIES, "missed": "SELECT 9"}
    cases = [
        {"id": id_, "question": f"What is {id_}?", "gold": golds[id_], "predicted": query}
        for id_, query in QUERIES.items()
    ]
    write(json.dumps({"kind": "sql", "source": {"sqlite": {"script": "t.sql"}}, "cases": cases}))
    write_report(evaluate(load_cases(".")) | {"name": "small"}, Path("small.json"))

    def rank(*judgements):
        lines = [
            {**name, "stratum": "passed", "probability": 1, "predictions": {digest: {"query": QUERIES[name["case"]]}}}
            for name, digest in (named(id_) for id_ in QUERIES)
        ]
        for number, (id_, judgement, reviewer) in enumerate(judgements):
            at = f"2026-11-23T10:00:{number:02}Z"
            lines.append({**named(id_)[0], "judgement": judgement, "reviewer": reviewer, "at": at})
        write("".join(f"{json.dumps(line)}\n" for line in lines), "audit.jsonl")
        assert main(["review", ".", "small.json", "--audit", "audit.jsonl", "--json"]) == 0
        ranked_cases = json.loads(capsys.readouterr().out)["cases"]
        return {
            case["case"]: [evidence["text"] for evidence in case["evidence"] if evidence["kind"] == "audit"]
            for case in ranked_cases
        }

    return rank


def named(id_):
    return {"case": id_, "nodeid": f"s.queryeval.yaml::{id_}"}, hashlib.sha256(QUERIES[id_].encode()).hexdigest()[:16]


def test_judgements_against_the_verdict_lead_the_ranking(ranked):
    evidence = ranked(("passed", "wrong", "anna"), ("plain", "right", "anna"), ("passed", "unclear", "ben"))

    assert next(iter(evidence)) == "passed"
    assert evidence == {"passed": ["the answer of small passes, but is wrong (anna)"], "missed": [], "plain": []}


def test_an_answer_that_misses_may_be_judged_right(ranked):
    evidence = ranked(("missed", "right", "anna"), ("missed", "right", "ben"))

    assert evidence["missed"] == ["the answer of small misses, but is right (anna, ben)"]


@pytest.mark.parametrize(
    "judgements",
    [[("missed", "wrong", "anna"), ("passed", "right", "anna")], [("passed", "wrong", "a"), ("passed", "right", "b")]],
)
def test_judgements_with_the_verdict_and_contradictions_are_no_evidence(ranked, judgements):
    assert not any(ranked(*judgements).values())
