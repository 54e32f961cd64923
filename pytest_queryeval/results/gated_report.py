"""The report of a run with the results of its gates, compared with a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.report import PendingGate, Report, RunFacts
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.gates import EarlyDecision, GateMode, evaluate_gates


def gated_report(
    cases: Sequence[CaseReport],
    gates: Iterable[PendingGate],
    about: RunFacts,
    *,
    mode: GateMode = "complete",
    baseline: tuple[str, Report] | None = None,
    better: Mapping[str, Better] | None = None,
    decide: Callable[[PendingGate], EarlyDecision | None] | None = None,
) -> Report:
    """Return the report on cases, with their gates evaluated; the `baseline` comes with its name.

    `about` and `better` are those of `aggregate`. `decide` tells whether a gate was decided before all cases ran.
    """
    name, earlier = baseline or ("", None)
    results = evaluate_gates(
        gates, cases, unreadable_files=about["unreadable_files"], mode=mode, baseline=earlier, decide=decide
    )
    if earlier is not None:
        from pytest_queryeval.results.baseline.comparison import compare_reports

        about["baseline"] = compare_reports(earlier, {**about, "cases": cases, "gates": results}, path=name)
    return aggregate(cases, gates=results, about=about, better=better)
