"""What a comparison of runs keeps of the system's answers: whether it abstained, in each trial of a case."""

from __future__ import annotations

from pytest_queryeval.core.case_report import CaseReport, PredictionReport, TrialReport

_ANSWERED: PredictionReport = {"source": "", "seconds": 0.0, "metadata": {}}
_ABSTAINED: PredictionReport = {**_ANSWERED, "abstained": True}


def decision(prediction: PredictionReport | None) -> PredictionReport | None:
    """Return a prediction without all but that it is an answer or an abstention; None if there is none."""
    if prediction is None:
        return None
    return _ABSTAINED if prediction.get("abstained") else _ANSWERED


def trial_decisions(case: CaseReport) -> list[TrialReport]:
    """Return the trials of a case, each with its verdict and its `decision` alone."""
    return [
        {
            "passed": trial["passed"],
            "scores": trial["scores"],
            "violations": [],
            "predicted": {"query": None, "error": None, "seconds": 0.0},
            "prediction": _ABSTAINED if trial["prediction"].get("abstained") else _ANSWERED,
        }
        for trial in case["trials"]
    ]
