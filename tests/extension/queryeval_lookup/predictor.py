"""A predictor that fills the question into a text."""

from pytest_queryeval import CaseView, Prediction
from pytest_queryeval.core.model import PredictorSpec


class Template:
    """Answers with the text of its settings, in which `{question}` is the question."""

    concurrency = 1
    retries = 0

    def __init__(self, text: str) -> None:
        self._text = text

    def predict(self, case: CaseView, trial: int) -> Prediction:
        query = self._text.replace("{question}", case.question or "")
        return Prediction(query, predictor="template")

    def close(self) -> None:
        pass


def open_template(spec: PredictorSpec) -> Template:
    return Template(spec.settings["text"])
