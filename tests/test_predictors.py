import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import make_case, query

from pytest_queryeval.errors import PredictorError
from pytest_queryeval.model import Prediction, PredictorSpec
from pytest_queryeval.predictors import PREDICTORS

OWN_KEYS = ("id", "predicted", "seconds")


def opened(kind, folder, **settings):
    return PREDICTORS[kind](PredictorSpec(kind=kind, settings=settings, folder=folder))


def predictions(folder, *lines, encoding="utf-8"):
    """The predictor of a file with these lines, each text as it stands or an entry as JSON."""
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "preds.jsonl").write_bytes(text.encode(encoding))
    return opened("file", folder, path="preds.jsonl")


def answered(predictor, **changes):
    return predictor.predict(make_case(**changes)).stated.query


def test_inline_answers_what_the_case_says(tmp_path):
    prediction = opened("inline", tmp_path).predict(make_case(predicted=query("SELECT 1")))

    assert prediction == Prediction(stated=query("SELECT 1"), predictor="inline")


def test_inline_without_a_prediction_names_the_case_and_its_place(tmp_path):
    with pytest.raises(PredictorError, match=r"^music/s\.queryeval\.yaml:4: 'a' has no `predicted`$"):
        opened("inline", tmp_path).predict(make_case(predicted=None))


def test_a_file_answers_each_case_with_the_entry_of_its_id(tmp_path):
    predictor = predictions(tmp_path, {"id": "a", "predicted": "SELECT 1"}, "", {"id": "b", "predicted": ""})

    assert answered(predictor, id="a") == "SELECT 1"
    assert answered(predictor, id="b") == ""


def test_a_file_is_found_from_the_folder_of_the_suite(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "p.jsonl").write_text('{"id": "a", "predicted": "x"}')

    prediction = opened("file", tmp_path, path="runs/p.jsonl").predict(make_case())

    assert prediction.predictor == "file:p.jsonl"


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    predictor = predictions(tmp_path, {"id": "a", "predicted": "SELECT 1"}, encoding="utf-8-sig")

    assert answered(predictor) == "SELECT 1"


@given(st.dictionaries(st.text(max_size=9).filter(lambda key: key not in OWN_KEYS), st.integers() | st.text()))
def test_other_keys_of_an_entry_are_metadata(tmp_path_factory, metadata):
    entry = {"id": "a", "predicted": "x", "seconds": 1.5, **metadata}

    prediction = predictions(tmp_path_factory.getbasetemp(), entry).predict(make_case())

    assert prediction.metadata == metadata
    assert prediction.seconds == 1.5


def test_a_value_is_no_query(tmp_path):
    with pytest.raises(PredictorError, match=r"preds\.jsonl: the prediction for 'a' is no text$"):
        predictions(tmp_path, {"id": "a", "predicted": ["x"]}).predict(make_case())


def test_a_file_without_an_entry_for_a_case_says_so(tmp_path):
    with pytest.raises(PredictorError, match=r"preds\.jsonl: no prediction for 'a'$"):
        predictions(tmp_path, {"id": "b", "predicted": "x"}).predict(make_case())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ('{"id": "a", "predicted": "x", "n": ' + "1" * 5000 + "}", "not JSON: "),
        ("[]", "a prediction is an object"),
        ('{"id": "a", "predicted": {"b": 1, "b": 2}}', "not JSON: duplicate key 'b'"),
        ('{"predicted": "x"}', "a prediction needs an `id`, which is text, and a `predicted`"),
        ('{"id": 1, "predicted": "x"}', "a prediction needs an `id`"),
        ('{"id": "a"}', "a prediction needs an `id`"),
        ('{"id": "a", "predicted": null}', "a prediction needs an `id`"),
        ('{"id": "first", "predicted": "x"}', "'first' was predicted on line 1 already"),
        ('{"id": "a", "predicted": "x", "seconds": -1}', "`seconds` is a number"),
        ('{"id": "a", "predicted": "x", "seconds": NaN}', "`seconds` is a number"),
        ('{"id": "a", "predicted": "x", "seconds": "1"}', "`seconds` is a number"),
        ('{"id": "a", "predicted": "x", "seconds": true}', "`seconds` is a number"),
        ('{"id": "a", "predicted": "x", "seconds": 1' + "0" * 400 + "}", "`seconds` is a number"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_wrong_with_a_line_is_said_with_its_place(tmp_path, line, problem):
    with pytest.raises(PredictorError) as caught:
        predictions(tmp_path, {"id": "first", "predicted": "x"}, "", line)

    assert str(caught.value).startswith(f"{tmp_path / 'preds.jsonl'}:3: {problem}")


@pytest.mark.parametrize("path", ["absent.jsonl", ".", "nul\0.jsonl"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, path):
    with pytest.raises(PredictorError, match="predictions cannot be read"):
        opened("file", tmp_path, path=path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")

    with pytest.raises(PredictorError, match="predictions cannot be read: it is no file"):
        PREDICTORS["file"](PredictorSpec(kind="file", settings={"path": "pipe.jsonl"}, folder=tmp_path))


def test_a_file_that_is_no_utf8_is_named(tmp_path):
    with pytest.raises(PredictorError, match=r"preds\.jsonl: predictions cannot be read: .*utf-8"):
        predictions(tmp_path, '{"id": "é"}', encoding="latin-1")


@pytest.mark.parametrize("settings", [{}, {"path": ""}, {"path": ["a", "b"]}, {"file": "preds.jsonl"}])
def test_a_file_predictor_without_a_path_says_what_it_needs(tmp_path, settings):
    with pytest.raises(PredictorError, match=r"^the predictor 'file' needs a `path`$"):
        opened("file", tmp_path, **settings)
