"""Groups golds and the answers of systems: those that are equal by the comparison of the case are one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_queryeval.core.model import SCORE_TOLERANCE, Abstention, Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS

ABSTAINED = Execution(query=None)  # the answer of a system that abstains, and the right one to an unanswerable question


@dataclass(slots=True, kw_only=True)
class AnswerGroup:
    """An answer to a case, and who gives it."""

    execution: Execution
    """The first query with this answer; neither query nor answer for those who abstain."""
    case: Case
    """The case with the comparison by which further answers are equal to this one."""
    is_gold: bool = False
    systems: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    """The distinct queries of the systems."""
    tied_systems: list[str] = field(default_factory=list)
    """The systems whose answers are equal only since a LIMIT cuts through rows that tie."""

    def add(self, system: str, execution: Execution, session: Session) -> bool:
        """Add a system if its answer is equal to that of the group, and return whether it is."""
        tied = False
        if execution is not self.execution:
            if execution.answer is None or self.execution.answer is None:
                return False
            prediction = Prediction(content=QueryOrAnswer(query=execution.query), predictor=system)
            scoring = Scoring(self.case, self.execution, execution, prediction, session)
            for metric, minimum in KINDS[self.case.settings.kind].default_thresholds.items():
                score = scoring.value(metric)
                if score is None or score < minimum - SCORE_TOLERANCE:
                    return False
            tied = scoring.depends_on_tie
        self.systems.append(system)
        if execution.query is not None and execution.query not in self.queries:
            self.queries.append(execution.query)
        self.tied_systems += [system] if tied else []
        return True


def group_answers(
    case: Case, predictions: Mapping[str, QueryOrAnswer | Abstention], session: Session
) -> tuple[Sequence[AnswerGroup], Sequence[str]]:
    """Run golds and predictions; return the groups of equal answers, and the systems whose queries fail.

    Predictions have the names of their systems. Groups are in the order of their first answers, golds before systems.
    An answer belongs to the first group whose first answer it equals by the comparison of the case; the order of rows
    counts where it does for gold. Raise `SourceError` where the source does not answer, and `PredictorError` for an
    answer of another kind.
    """
    golds = [session.execute_cached(gold, case) for gold in case.golds] or [ABSTAINED]
    groups = [AnswerGroup(execution=gold, case=case, is_gold=True) for gold in golds]
    is_ordered = any(_is_ordered(case, gold) for gold in golds)
    failed_systems: list[str] = []
    for system, prediction in predictions.items():
        execution = ABSTAINED if isinstance(prediction, Abstention) else session.execute_cached(prediction, case)
        if execution.error is not None:
            failed_systems.append(system)
        elif not any(group.add(system, execution, session) for group in groups):
            group = AnswerGroup(execution=execution, case=_between_systems(case, execution, is_ordered=is_ordered))
            group.add(system, execution, session)
            groups.append(group)
    return groups, failed_systems


def _is_ordered(case: Case, execution: Execution) -> bool:
    """Return whether a query orders its rows."""
    if execution.query is None:
        return False
    table = execution.answer if isinstance(execution.answer, Table) else Table(columns=(), rows=())
    plan = KINDS[case.settings.kind].order_plan(execution.query, table, case)
    return plan is not None and plan.ordered


def _between_systems(case: Case, execution: Execution, *, is_ordered: bool) -> Case:
    """Return a case for the comparison of a predicted answer with others: it has all of its columns.

    `is_ordered` says whether gold orders its rows. The rows of a query that does not are in exactly its order.
    """
    policy = replace(case.settings.policy, gold_columns=())
    if policy.row_order == "auto" and not is_ordered:
        policy = replace(policy, row_order="ignore")
    elif policy.row_order == "auto" and not _is_ordered(case, execution):
        policy = replace(policy, row_order="strict")
    return replace(case, settings=replace(case.settings, policy=policy))
