"""The workbook of a run as a file of predictions."""

from pathlib import Path

import pytest
from samples import make_case
from spreadsheets import case as run_case
from spreadsheets import make_report

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Abstention, PredictorSpec
from pytest_queryeval.features.excel import render_excel
from pytest_queryeval.predictors import PREDICTORS

pytestmark = pytest.mark.usefixtures("working_folder")


def predicted(text):
    return {**run_case()["predicted"], "query": text}


def written(*cases, published=True):
    """Write the workbook of a run with these cases, and open it as predictions."""
    layout = "published" if published else "plain"
    Path("report.xlsx").write_bytes(render_excel(make_report(*cases), layout))
    spec = PredictorSpec(kind="file", settings={"path": "report.xlsx"}, folder=Path.cwd())
    return PREDICTORS["file"].opener(spec)


def answered(predictor, *, id_):
    return predictor.predict(make_case(id=id_), 1).content.query


def no_answer(predictor, *, id_):
    """Return why a case has no answer."""
    with pytest.raises(PredictorError) as caught:
        predictor.predict(make_case(id=id_), 1)
    return str(caught.value)


@pytest.mark.parametrize("published", [True, False])
def test_the_workbook_of_a_run_holds_its_predictions(published):
    texts = ("SELECT 1", "=1+1", "", "a\nb\tc  ", "<r>x</r>", "_x0041_ 'é", "0012")
    cases = (run_case(number, predicted=predicted(text)) for number, text in enumerate(texts))
    predictor = written(*cases, published=published)

    assert [answered(predictor, id_=f"c{number}") for number in range(4)] == list(texts[:4])
    assert [answered(predictor, id_=f"c{number}").strip() for number in range(4, 7)] == list(texts[4:])


@pytest.mark.parametrize("published", [True, False])
def test_a_case_that_was_not_predicted_has_no_prediction_in_the_workbook(published):
    predictor = written(
        run_case(1, outcome="error", predicted=None),
        run_case(2, outcome="skipped", predicted=None),
        run_case(3, prediction={"source": "x", "seconds": 2.5, "metadata": {"cost": 1}}),
        published=published,
    )

    assert no_answer(predictor, id_="c1").startswith("report.xlsx: no prediction for 'c1'")
    assert no_answer(predictor, id_="c2").startswith("report.xlsx: no prediction for 'c2'")
    assert predictor.predict(make_case(id="c3"), 1).seconds == 2.5


@pytest.mark.parametrize("text", ["x" * 40_000, "x" * 19_999 + "…"])
def test_an_answer_that_a_workbook_holds_in_part_is_refused(text):
    with pytest.raises(PredictorError) as caught:
        written(run_case(1, predicted=predicted(text)))

    assert str(caught.value) == (
        "report.xlsx, sheet 'Details', row 2, column 'VQL Generated':"
        " is only a part of the answer, which was too long for the report"
    )


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("reason", ["no table has that", ""])
def test_a_case_that_was_not_answered_is_an_abstention_again(published, reason):
    abstained = {"source": "x", "seconds": 0.0, "metadata": {}, "abstained": True, "reason": reason}
    predictor = written(run_case(1), run_case(2, prediction=abstained, predicted=predicted(None)), published=published)

    assert predictor.predict(make_case(id="c2"), 1).content == Abstention(reason)
    assert answered(predictor, id_="c1")
