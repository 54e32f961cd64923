"""Cosines of texts by a real model: in batches as one by one, each text once, odd texts, and what a run says."""

import json
import logging
import math
import os
import subprocess
import sys

import pytest
from embedding_models import linked_model, model_folder, needs_model, replaced
from hypothesis import given
from hypothesis import strategies as st
from strategies import costly

from pytest_queryeval.features import embeddings
from pytest_queryeval.features.embeddings import MAX_CHARACTERS, Embedder

pytestmark = [needs_model, pytest.mark.process, pytest.mark.model]
VALUES = [
    "Bound",
    "Not Bound",
    "",
    "7",
    "Lisbon",
    "['river of Cork', 'tower of Quito']",
    "{'depth': ['<20']}",
    "population of Mexico " * 100,
    "ünïcödé 東京 😀",
]
SECOND_RUN = """
import json, sys
from pathlib import Path
from pytest_queryeval.features.embeddings import cache
from pytest_queryeval.features.embeddings import Embedder
cache.WAIT_SECONDS = 300.0  # a busy machine may take longer than others wait to load a model
model, folder, pairs = json.loads(sys.argv[1])
told = []
cosines = Embedder(model, tell=told.append, folder=Path(folder)).similarities([tuple(pair) for pair in pairs])
heavy = {"torch", "sentence_transformers", "transformers", "numpy", "huggingface_hub"}
print(json.dumps({"cosines": cosines, "told": told, "loaded": sorted(heavy & sys.modules.keys())}))
"""
NO_NETWORK = """
def refuse(event, arguments):
    assert event not in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"), arguments
sys.addaudithook(refuse)
"""


def embedder_in(folder, told=None, model=None):
    return Embedder(str(model or model_folder()), tell=(told if told is not None else []).append, folder=folder)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """An embedder for tests that do not ask what is encoded."""
    return embedder_in(tmp_path_factory.mktemp("vectors"))


def started(folder, pairs, before=""):
    program = SECOND_RUN.replace("import json, sys\n", f"import json, sys\n{before}")
    command = [sys.executable, "-W", "error", "-c", program, json.dumps([str(model_folder()), str(folder), pairs])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(process):
    """What a process has found, which says nothing else."""
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, "")
    return json.loads(stdout)


def test_batches_give_what_one_text_at_a_time_gives(tmp_path):
    from sentence_transformers import SentenceTransformer, util

    model = SentenceTransformer(str(model_folder()), local_files_only=True)
    pairs = [(one, partner) for one in VALUES for partner in VALUES if one != partner]
    vectors = {text: model.encode(text, convert_to_tensor=True, show_progress_bar=False) for text in VALUES}

    cosines = embedder_in(tmp_path).similarities(pairs)

    assert cosines == pytest.approx(
        [util.cos_sim(vectors[one], vectors[partner]).item() for one, partner in pairs], abs=1e-5
    )


def test_what_was_prepared_is_not_encoded_again(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.embeddings.PROGRESS_SECONDS", 600.0)  # whatever the load
    lines = []
    ours = embedder_in(tmp_path, lines)

    ours.prepare(["Bound", "Not Bound", "Bound"])
    assert lines == [f"embedding model {model_folder()} is being loaded", "texts to embed: 2"]
    ours.similarities([("Bound", "Not Bound"), ("Lisbon", "Lisbon")])
    assert len(lines) == 2
    ours.similarities([("Bound", "Lisbon")])
    assert lines[2:] == ["texts to embed: 1"]


def test_a_second_run_loads_no_model(tmp_path):
    pairs = [["Bound", "Not Bound"], ["Lisbon", ""], ["7", "7"]]
    first = embedder_in(tmp_path).similarities([tuple(pair) for pair in pairs])

    second = result_of(started(tmp_path, pairs))

    assert second == {"cosines": first, "told": [], "loaded": []}


def test_identical_texts_need_no_model(tmp_path):
    lines = []
    ours = embedder_in(tmp_path, lines, model=tmp_path / "there is none")

    assert ours.similarities([("a", "a"), ("", ""), ("\ud800", "\ud800")]) == [1.0, 1.0, 1.0]
    assert ours.similarities([]) == []
    ours.prepare([])
    assert lines == []


def test_nothing_is_printed_or_logged_and_settings_and_variables_stay(tmp_path, capfd, caplog):
    from huggingface_hub import constants
    from transformers.utils import logging as bars

    shown, offline = bars.is_progress_bar_enabled(), constants.HF_HUB_OFFLINE
    levels = {name: logging.getLogger(name).level for name in ("transformers", "sentence_transformers", "httpx2")}
    caplog.set_level(logging.DEBUG)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    embedder_in(tmp_path).similarities([("Bound", "x" * 5_000)])

    assert tuple(capfd.readouterr()) == ("", "")
    assert caplog.records == []
    assert {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} == variables
    assert (bars.is_progress_bar_enabled(), constants.HF_HUB_OFFLINE) == (shown, offline)
    assert {name: logging.getLogger(name).level for name in levels} == levels


def test_processes_that_need_the_same_texts_load_one_model_in_silence_and_without_any_network(tmp_path):
    runs = [started(tmp_path, [["one", "other"]], before=NO_NETWORK) for _ in range(2)]
    results = [result_of(run) for run in runs]

    starts = [[line for line in result["told"][1:] if line.startswith("texts to embed")] for result in results]
    assert sorted(starts) == [[], ["texts to embed: 2"]]
    assert sorted("torch" in result["loaded"] for result in results) == [False, True]
    assert len({tuple(result["cosines"]) for result in results}) == 1


def test_long_work_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr("pytest_queryeval.features.embeddings.model.BATCH_TOKENS", 64)
    lines = []

    embedder_in(tmp_path, lines).prepare([f"value {number}" for number in range(1, 61)])

    assert lines[1] == "texts to embed: 60"
    assert lines[-1] == "texts embedded: 60 of 60"
    done = [int(line.split()[2]) for line in lines[2:]]
    assert done == sorted(set(done))
    assert len(done) > 3


def test_another_model_at_the_same_place_has_vectors_of_its_own(tmp_path):
    folder = linked_model(tmp_path / "model")
    lines = []
    embedder_in(tmp_path / "cache").prepare(["Bound"])
    embedder_in(tmp_path / "cache", lines, model=folder).prepare(["Bound"])
    assert lines == []  # it is the same model
    replaced(folder / "1_Pooling" / "config.json", json.dumps({"embedding_dimension": 384, "pooling_mode": "cls"}))

    second = embedder_in(tmp_path / "cache", lines, model=folder).similarities([("Bound", "Not Bound")])

    assert lines[1:] == ["texts to embed: 2"]
    assert second != embedder_in(tmp_path / "cache").similarities([("Bound", "Not Bound")])


def test_a_cache_that_is_damaged_meanwhile_costs_time_only(tmp_path):
    ours = embedder_in(tmp_path)
    first = ours.similarities([("Bound", "Not Bound")])
    for path in tmp_path.glob("*.sqlite"):
        path.write_bytes(b"x" * path.stat().st_size)

    assert ours.similarities([("Bound", "Not Bound")]) == pytest.approx(first, abs=1e-6)
    assert embedder_in(tmp_path).similarities([("Bound", "Not Bound")]) == pytest.approx(first, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\0", "\x1b[2J\r\n\x07", "\ud800", "a\udfffb", "\u202e\ufeff", "😀" * 1_000, "x" * 200_000, "[SEP]",
     __file__, "http://127.0.0.1:9/x.png", "data:image/png;base64,AAAA", "https://youtu.be/x"],
    ids=range(14),
)  # fmt: skip
def test_odd_texts_and_names_of_files_and_sites_are_texts(shared, text):
    (cosine,) = shared.similarities([(text, "Bound")])

    assert -1.0 <= cosine < 0.999


@costly
@given(st.text(st.characters(codec=None, exclude_categories=())), st.text(max_size=3))
def test_any_texts_have_a_cosine_whichever_comes_first(shared, one, other):
    there, back = shared.similarities([(one, other), (other, one)])

    assert -1.0 <= there <= 1.0
    assert math.isclose(there, back, abs_tol=1e-9)


def test_a_text_counts_up_to_a_number_of_characters(shared):
    start = "word " * (MAX_CHARACTERS // 5)

    assert shared.similarities([(start + "one", start + "other")]) == pytest.approx([1.0], abs=1e-6)
