"""Groups golds and the answers of systems: answers that the comparison of the case calls equal are one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_queryeval.comparison.ties import OrderPlan
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
    """The systems whose answers are equal only because a LIMIT cuts through rows that tie."""
    ordering_systems: list[str] = field(default_factory=list)
    """The systems whose queries order rows that gold, to which they are equal, leaves in any order."""

    @property
    def is_abstention(self) -> bool:
        """Whether those who give it abstain."""
        return self.execution is ABSTAINED

    def drop_answer(self) -> None:
        """Drop the answer but keep its query: the answers of all cases need not fit in memory."""
        if not self.is_abstention:
            self.execution = replace(self.execution, answer=None)

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
) -> Sequence[AnswerGroup]:
    """Run golds and predictions, which have the names of systems, and group equal answers.

    Groups are in the order of their first answers, golds before systems; systems whose queries fail are in none.
    An answer belongs to the first group whose first answer it equals by the comparison of the case; the order of rows
    counts if it does for gold. Raise `SourceError` if the source does not answer, and `PredictorError` for an
    answer of another kind.
    """
    gold_case = case.on_gold_source
    golds = [session.execute_cached(gold, gold_case) for gold in case.golds] or [ABSTAINED]
    groups = [AnswerGroup(execution=gold, case=case, is_gold=True) for gold in golds]
    plans = [_order_plan(gold_case, gold) for gold in golds]
    is_ordered = any(map(_orders, plans))
    for system, prediction in predictions.items():
        execution = ABSTAINED if isinstance(prediction, Abstention) else session.execute_cached(prediction, case)
        if execution.error is not None:
            continue
        group = next((group for group in groups if group.add(system, execution, session)), None)
        plan = _order_plan(case, execution)
        if group is None:
            group = AnswerGroup(
                execution=execution, case=_between_systems(case, is_ordered=is_ordered, orders=_orders(plan))
            )
            group.add(system, execution, session)
            groups.append(group)
        elif group.is_gold and not is_ordered and _orders(plan) and _order_matters(execution, plans):
            group.ordering_systems.append(system)
    return groups


def _order_plan(case: Case, execution: Execution) -> OrderPlan | None:
    if execution.query is None:
        return None
    table = execution.answer if isinstance(execution.answer, Table) else Table(columns=(), rows=())
    return KINDS[case.settings.kind].order_plan(execution.query, table, case)


def _order_matters(execution: Execution, gold_plans: Sequence[OrderPlan | None]) -> bool:
    """Return whether there are several rows, or a LIMIT of gold takes some of them."""
    return any(gold_plans) or (isinstance(execution.answer, Table) and len(execution.answer.rows) > 1)


def _orders(plan: OrderPlan | None) -> bool:
    return plan is not None and plan.ordered


def _between_systems(case: Case, *, is_ordered: bool, orders: bool) -> Case:
    """Return a case for the comparison of a predicted answer with others: it has all of its columns.

    `is_ordered` says whether gold orders its rows, `orders` whether the query of the answer does. If only gold does,
    rows have to be in exactly the order of the answer.
    """
    policy = replace(case.settings.policy, gold_columns=())
    if policy.row_order == "auto" and not (is_ordered and orders):
        policy = replace(policy, row_order="strict" if is_ordered else "ignore")
    return replace(case, settings=replace(case.settings, policy=policy, gold_source=None, gold_dialect=""))
