"""What decisions on golds change in a whole run."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import PASS_RATE, Decision
from pytest_queryeval.core.report import ErrataReport
from pytest_queryeval.core.run_metrics import RUN_METRICS


def errata_of(cases: Iterable[CaseReport]) -> ErrataReport | None:
    """Return how many cases have a decision, and the means with and without them; None if no decision applies."""
    decisions: Counter[Decision] = Counter()
    unreviewed_scores: defaultdict[str, list[float]] = defaultdict(list)
    reviewed_scores: defaultdict[str, list[float]] = defaultdict(list)
    for case in cases:
        if "review" in case and case["review"]["decision"] != "unsure":
            decisions[case["review"]["decision"]] += 1
        unreviewed: CaseReport = {**case, **case["unreviewed"]} if "unreviewed" in case else case
        for side, scores in ((unreviewed, unreviewed_scores), (case, reviewed_scores)):
            for name, score in (*side["scores"].items(), (PASS_RATE, RUN_METRICS[PASS_RATE].score(side))):
                if score is not None:
                    scores[name].append(score)
    if not decisions:
        return None
    return {
        "cases": decisions.total(),
        "by_decision": {decision: decisions[decision] for decision in get_args(Decision) if decisions[decision]},
        "unreviewed": _means(unreviewed_scores),
        "reviewed": _means(reviewed_scores),
    }


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: math.fsum(values) / len(values) for name, values in scores.items()}
