"""The metric `interaction_match`: the share of conversations in which every turn is right.

It is the interaction match of SParC's published evaluation: Yu et al. (2019), "SParC: Cross-Domain Semantic Parsing in
Context". SParC calls a turn right by exact set match or by its answer. Here a turn is right if it meets the thresholds
of its case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.metric import RunMetric
from pytest_queryeval.results.baseline import MET_BY_OUTCOME
from pytest_queryeval.results.verdict import answer_passes

NAME = "interaction_match"


def interaction_matches(cases: Iterable[CaseReport]) -> Mapping[str, float | None]:
    """Return the score of each conversation by the node id of its last turn: 1 if all turns are right, else 0.

    The score is None if a turn has no verdict: the turn is in error, was skipped, was not run, or is not among the
    cases. Cases that are no turn are ignored. A conversation without its last turn gets no score.
    """
    verdicts: defaultdict[tuple[str, str], dict[int, bool | None]] = defaultdict(dict)
    last_turns: dict[tuple[str, str], tuple[str, int]] = {}
    for case in cases:
        if (turn := case.get("turn")) is None:
            continue
        suite, _, _ = case["nodeid"].partition("::")
        conversation = suite, turn["conversation"]
        verdicts[conversation][turn["number"]] = is_right(case)
        if turn["number"] == turn["of"]:
            last_turns[conversation] = case["nodeid"], turn["of"]
    scores: dict[str, float | None] = {}
    for conversation, (nodeid, number) in last_turns.items():
        turns = verdicts[conversation].values()
        is_complete = len(turns) == number and None not in turns
        scores[nodeid] = float(all(turns)) if is_complete else None
    return scores


def is_right(case: CaseReport) -> bool | None:
    """Return whether a turn passes; None if it has no verdict, because it is in error, was skipped or was not run.

    If the case states no thresholds, every trial has to meet the default thresholds of its kind.
    """
    if case["outcome"] not in MET_BY_OUTCOME:
        return None
    if case["fingerprint"] is None or case["fingerprint"]["thresholds"]:
        return MET_BY_OUTCOME[case["outcome"]]
    answers: Sequence[CaseReport | TrialReport] = case["trials"] or [case]
    passes = [answer_passes(case, answer) for answer in answers]
    return None if None in passes else all(passes)


INTERACTION_MATCH = RunMetric(
    score=lambda case: case.get("joint_scores", {}).get(NAME),
    concerns=lambda case: "turn" in case,
    joint_scores=interaction_matches,
    unit="conversation",
    judges=lambda case: case.turn is not None,
)
