"""How many wrong golds `queryeval review` finds among Spider's 1,034, of 100 that are planted.

A planted gold is a mutant of the true one, drawn at random among those that answer otherwise. Three systems are ranked
against it. Prints how many of 100 are among the first 100 and 150 cases, as means over ten seeds: without the cases that
are not planted and stand among the first 60 of the true golds, many of which are wrong, and with them; the same for plain
counts, which are systems that agree against gold less those that agree with it. Then what `value-not-in-data` finds, and
its time. Needs QUERYEVAL_CONFORMANCE: `python -m benchmarks.bench_review [SEEDS]`.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_queryeval import load_cases
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.check.gold_rules import check_golds
from pytest_queryeval.features.review.ranking import RankedCase, examine_case
from pytest_queryeval.features.review.systems import SystemAnswer
from pytest_queryeval.features.strength.case_strength import measure_strength

SYSTEMS = ("dail_gpt4", "c3_chatgpt", "graphix_t5")
PLANTED = 100
SUSPECTS = 60  # of the true golds
FIRST = (100, 150)


def main() -> None:
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    seeds = int(sys.argv[1]) if sys.argv[1:] else 10
    records = {name: read_jsonl(spider / f"{name}.jsonl") for name in SYSTEMS}
    answers = {
        str(record["idx"]): {
            name: SystemAnswer(prediction=QueryOrAnswer(query=records[name][place]["predicted"])) for name in SYSTEMS
        }
        for place, record in enumerate(records[SYSTEMS[0]])
    }
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        cases = load(Path(folder), spider, records[SYSTEMS[0]])
        report_value_rule(cases)
        examined = {id_: examine_case(case, id_, answers[id_], session) for id_, case in cases.items()}
        planted_golds: dict[tuple[str, str], RankedCase] = {}
        mutants: dict[str, list[str]] = {}
        found: dict[str, list[int]] = {}
        for seed in range(seeds):
            planted = plant(cases, mutants, random.Random(seed), session)
            for id_, query in planted.items():
                if (id_, query) not in planted_golds:
                    case = replace(cases[id_], golds=(QueryOrAnswer(query=query),))
                    planted_golds[id_, query] = examine_case(case, id_, answers[id_], session)
            ranked = examined | {id_: planted_golds[id_, query] for id_, query in planted.items()}
            for name, key in {"ranking": doubt, "plain counts": plain_count}.items():
                suspects = set(first(examined, key)[:SUSPECTS]) - planted.keys()
                order = first(ranked, key)
                for part, ids in {
                    "without suspects": [id_ for id_ in order if id_ not in suspects],
                    "with them": order,
                }.items():
                    counts = [sum(id_ in planted for id_ in ids[:number]) for number in FIRST]
                    found[f"{name}, {part}"] = [
                        a + b for a, b in zip(found.get(f"{name}, {part}", [0, 0]), counts, strict=True)
                    ]
    for name, totals in found.items():
        shares = " / ".join(f"{total / seeds / PLANTED:.1%}" for total in totals)
        print(f"{name}: {shares} among the first {FIRST[0]} / {FIRST[1]}")


def read_jsonl(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load(folder: Path, spider: Path, records: list[dict[str, str]]) -> dict[str, Case]:
    cases = [
        {
            "id": str(record["idx"]),
            "question": record["question"],
            "gold": record["gold"],
            "source": str(spider / "databases" / f"{record['db_id']}.sqlite"),
        }
        for record in records
    ]
    (folder / "spider.queryeval.yaml").write_text(json.dumps({"kind": "sql", "cases": cases}), encoding="utf-8")
    return {case.id: case for case in load_cases(folder, require_prediction=False)}


def plant(
    cases: Mapping[str, Case], mutants: dict[str, list[str]], rng: random.Random, session: Session
) -> dict[str, str]:
    """Return wrong golds for PLANTED cases that are drawn at random; `mutants` keeps those of cases drawn before."""
    planted: dict[str, str] = {}
    for id_ in rng.sample(sorted(cases), len(cases)):
        if id_ not in mutants:
            strength = measure_strength(cases[id_], session)
            killed = () if strength is None else strength.killed
            mutants[id_] = [mutant.query for mutant in killed if answers_at_all(mutant.query, cases[id_], session)]
        if mutants[id_]:
            planted[id_] = rng.choice(mutants[id_])
        if len(planted) == PLANTED:
            break
    return planted


def answers_at_all(query: str, case: Case, session: Session) -> bool:
    return session.execute(QueryOrAnswer(query=query), case, is_derived=True).error is None


def first(ranked: Mapping[str, RankedCase], key: Callable[[RankedCase], float]) -> list[str]:
    return sorted(ranked, key=lambda id_: (-key(ranked[id_]), int(id_)))


def doubt(ranked: RankedCase) -> float:
    return ranked.doubt


def plain_count(ranked: RankedCase) -> float:
    agreeing = max((len(group.systems) for group in ranked.answers if not group.is_gold), default=0)
    return float(agreeing - sum(len(group.systems) for group in ranked.answers if group.is_gold))


def report_value_rule(cases: Mapping[str, Case]) -> None:
    """Print how many golds the rule finds, and the processor time of a gold, without and with the rule."""
    seconds = []
    for rules in ({"gold-empty"}, {"gold-empty", "value-not-in-data"}):
        with Session() as session:
            began = processor_seconds()
            findings = [finding for case in cases.values() for finding in check_golds(case, session, rules)]
        seconds.append(processor_seconds() - began)
    golds = {finding.case for finding in findings if finding.rule == "value-not-in-data"}
    milliseconds = 1000 * (seconds[1] - seconds[0]) / len(cases)
    print(f"value-not-in-data: {len(golds)} golds; {milliseconds:.1f} ms of processor time a gold")


def processor_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
