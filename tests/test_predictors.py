import pytest
from samples import make_case, query

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import PredictorSpec, StoredPrediction
from pytest_queryeval.predictors import PREDICTORS


def inline(folder):
    return PREDICTORS["inline"].opener(PredictorSpec(kind="inline", settings={}, folder=folder))


def test_inline_answers_what_the_case_says(tmp_path):
    prediction = inline(tmp_path).predict(make_case(predicted=query("SELECT 1")), 1)

    assert prediction == StoredPrediction(query("SELECT 1"), predictor="inline")


def test_inline_without_a_prediction_names_the_case(tmp_path):
    with pytest.raises(PredictorError, match=r"^'a' has no `predicted`$"):
        inline(tmp_path).predict(make_case(predicted=None), 1)
