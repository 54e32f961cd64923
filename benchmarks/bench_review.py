"""How many wrong golds `queryeval review` finds among Spider's 1,034, of 100 that are planted.

A planted gold is a mutant of the true one, drawn at random among those that answer otherwise. Three systems are ranked
against it. Prints how many of 100 are among the first 100 and 150 cases, as means over ten seeds: without the cases that
are not planted and stand among the first 60 of the true golds, many of which are wrong, and with them; the same for plain
counts, which are systems that agree against gold less those that agree with it. Then what `value-not-in-data` finds, and
its time. Needs QUERYEVAL_CONFORMANCE: `python -m benchmarks.bench_review [FIRST_SEED]`, by default 0.

`python -m benchmarks.bench_review calibrate` fits the weights of the ranking to errors that are planted with ten other
seeds, from CALIBRATION_SEED on: a logistic regression of whether a gold is planted on the signs that it is wrong, with
PENALTY times the squares of the weights. The chosen weights are given, in units of the weight of a system against gold.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize

from pytest_queryeval import load_cases
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.check.gold_rules import check_golds
from pytest_queryeval.features.review.answers import SystemAnswer
from pytest_queryeval.features.review.ranking import CHOSEN_WEIGHTS, FITTED_WEIGHTS, RankedCase, examine_case
from pytest_queryeval.features.strength.case_strength import measure_strength

Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
SYSTEMS = ("dail_gpt4", "c3_chatgpt", "graphix_t5")
PLANTED = 100
SUSPECTS = 60  # of the true golds
FIRST = (100, 150)
SEEDS = 10
CALIBRATION_SEED = 100
PENALTY = 0.05


@dataclass(frozen=True)
class Planting:
    """The true golds, and for each seed those that are planted, examined, by the ids of their cases."""

    true_golds: Mapping[str, RankedCase]
    planted: Sequence[Mapping[str, RankedCase]]


def main() -> None:
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    argument = sys.argv[1] if sys.argv[1:] else "0"
    first_seed = CALIBRATION_SEED if argument == "calibrate" else int(argument)
    records = {name: read_jsonl(spider / f"{name}.jsonl") for name in SYSTEMS}
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        cases = load(Path(folder), spider, records[SYSTEMS[0]])
        planting = examine(cases, records, first_seed, session)
        if argument == "calibrate":
            calibrate(planting)
        else:
            report_value_rule(cases)
        report_ranking(planting)


def examine(
    cases: Mapping[str, Case], records: Mapping[str, list[dict[str, str]]], first_seed: int, session: Session
) -> Planting:
    answers = {
        id_: {name: SystemAnswer(prediction=QueryOrAnswer(query=records[name][place]["predicted"])) for name in SYSTEMS}
        for place, id_ in enumerate(cases)
    }
    mutants: dict[str, list[str]] = {}
    examined: dict[tuple[str, str], RankedCase] = {}
    planted: list[Mapping[str, RankedCase]] = []
    for seed in range(first_seed, first_seed + SEEDS):
        golds = plant(cases, mutants, random.Random(seed), session)
        for id_, query in golds.items():
            if (id_, query) not in examined:
                case = replace(cases[id_], golds=(QueryOrAnswer(query=query),))
                examined[id_, query] = examine_case(case, id_, answers[id_], session)
        planted.append({id_: examined[id_, query] for id_, query in golds.items()})
    true_golds = {id_: examine_case(case, id_, answers[id_], session) for id_, case in cases.items()}
    return Planting(true_golds, planted)


def report_ranking(planting: Planting) -> None:
    """Print how many of the planted golds stand among the first."""
    for name, key in {"ranking": doubt, "plain counts": plain_count}.items():
        suspects = first(planting.true_golds, key)[:SUSPECTS]
        shares: dict[str, list[list[float]]] = {"without suspects": [], "with them": []}
        for planted in planting.planted:
            order = first({**planting.true_golds, **planted}, key)
            left_out = set(suspects) - planted.keys()
            for part, ids in zip(shares, ([id_ for id_ in order if id_ not in left_out], order), strict=True):
                shares[part].append([sum(id_ in planted for id_ in ids[:number]) / PLANTED for number in FIRST])
        for part, by_seed in shares.items():
            means = " / ".join(f"{fmean(values):.1%}" for values in zip(*by_seed, strict=True))
            print(f"{name}, {part}: {means} among the first {FIRST[0]} / {FIRST[1]}")


def calibrate(planting: Planting) -> None:
    """Print the weights that a logistic regression fits to the planted golds, next to those of the ranking."""
    signs = [*FITTED_WEIGHTS]
    examples = [
        (ranked, id_ in planted)
        for planted in planting.planted
        for id_, ranked in {**planting.true_golds, **planted}.items()
    ]
    amounts = np.array([[ranked.signs.get(sign, 0.0) for sign in signs] for ranked, _ in examples])
    chosen_doubt = np.array(
        [sum(CHOSEN_WEIGHTS.get(sign, 0.0) * n for sign, n in ranked.signs.items()) for ranked, _ in examples]
    )
    side = np.array([1.0 if is_planted else -1.0 for _, is_planted in examples])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = side * (amounts @ weights[1:] + chosen_doubt + weights[0])
        slopes = -side / (1 + np.exp(margins)) / SEEDS
        penalty = PENALTY * float(weights[1:] @ weights[1:])
        gradient = np.concatenate([[slopes.sum()], amounts.T @ slopes + 2 * PENALTY * weights[1:]])
        return float(np.logaddexp(0, -margins).sum()) / SEEDS + penalty, gradient

    _, *weights = minimize(loss, np.zeros(len(signs) + 1), jac=True, method="L-BFGS-B").x
    for sign, weight in zip(signs, weights, strict=True):
        print(f"{sign}: {weight:.2f} (the ranking has {FITTED_WEIGHTS[sign]})")


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
