"""What a comparison of runs keeps of predictions: whether the system answered or abstained, not what it answered."""

from __future__ import annotations

from pytest_queryeval.core.case_report import CaseReport, PredictionReport, TrialReport

_ANSWER: PredictionReport = {"source": "", "seconds": 0.0, "metadata": {}}
_ABSTENTION: PredictionReport = {**_ANSWER, "abstained": True}


def without_content(prediction: PredictionReport) -> PredictionReport:
    """Return an answer or an abstention without anything else."""
    return _ABSTENTION if prediction.get("abstained") else _ANSWER


def trials_without_content(case: CaseReport) -> list[TrialReport]:
    """Return the trials of a case with their verdicts and scores, and their predictions `without_content`."""
    return [
        {
            "passed": trial["passed"],
            "scores": trial["scores"],
            "violations": [],
            "predicted": {"query": None, "error": None, "seconds": 0.0},
            "prediction": without_content(trial["prediction"]),
        }
        for trial in case["trials"]
    ]
