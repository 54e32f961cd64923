"""Models that cannot be had, and the hub: what is said, how often it is tried, and what is asked of the network."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest
from embedding_models import COMMIT, hub, linked_model, model_folder, needs_model, replaced

from pytest_queryeval.features.embeddings import Embedder, EmbeddingError

pytestmark = [pytest.mark.process, pytest.mark.model]

RUNS = """
import json, sys
from pathlib import Path
from pytest_queryeval.features.embeddings import Embedder, EmbeddingError
for line in sys.stdin:
    model, folder, other = json.loads(line)
    told, said = [], []
    embedder = Embedder(model, tell=told.append, folder=Path(folder))
    for _ in range(3):
        try:
            said.append(embedder.similarities([("Bound", other)]))
        except EmbeddingError as error:
            said.append(str(error))
    print(json.dumps([told, said]), flush=True)
"""
PAIR = [("Bound", "Not Bound")]


@contextmanager
def runs(tmp_path, before="", **environment):
    """A function that asks a process, which loads the libraries once: what was told and said about a model.

    The process has a home of its own for the hub's library.
    """
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub"), **environment}
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "SENTENCE_TRANSFORMERS_HOME", "HF_HUB_OFFLINE"):
        environment.pop(name, None)
    command = [sys.executable, "-W", "error", "-c", before + RUNS]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:

        def ask(model, other="Not Bound", folder="vectors"):
            process.stdin.write(json.dumps([str(model), str(tmp_path / folder), other]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline() or "null")

        yield ask
        _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")


def refused(model, folder):
    lines = []
    embedder = Embedder(str(model), tell=lines.append, folder=folder)
    errors = []
    for _ in range(2):
        with pytest.raises(EmbeddingError) as caught:
            embedder.similarities(PAIR)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "\n" not in errors[0]
    assert len(lines) <= 1
    return errors[0]


@pytest.mark.parametrize(
    "model", ["/no/such", "./none", "../none", "~/none", "a/b/c", "https://host.example/x", "a\0b"]
)
def test_a_folder_that_is_not_there_is_not_asked_for_at_the_hub(tmp_path, model):
    text = model.replace("\0", "\\x00")

    assert refused(model, tmp_path) == f"embedding_model '{text}': no such folder"


def test_a_folder_without_a_model_is_not_loaded(tmp_path):
    said = refused(tmp_path, tmp_path / "vectors")

    assert said.endswith("the folder contains no model: there is neither modules.json nor config.json")


@needs_model
@pytest.mark.parametrize("name", ["model.safetensors", "modules.json"])
def test_a_folder_with_a_damaged_file_is_told_in_one_line(tmp_path, name):
    folder = linked_model(tmp_path / "model")
    replaced(folder / name, "{ damaged")

    said = refused(folder, tmp_path / "vectors")

    assert said.startswith(f"embedding_model '{folder}': the folder contains no model that can be loaded: ")
    assert len(said) < 700


@needs_model
def test_a_model_that_would_load_what_a_text_names_is_refused(tmp_path):
    folder = linked_model(tmp_path / "model")
    how = {"method": "forward", "method_output_name": "last_hidden_state"}
    settings = {"modality_config": {"text": how, "image": how}, "module_output_name": "token_embeddings"}
    replaced(folder / "sentence_bert_config.json", json.dumps(settings))

    said = refused(folder, tmp_path / "vectors")

    assert said.endswith("it reads more than text (image), and would load what a text names")


@needs_model
def test_code_that_comes_with_a_model_does_not_run(tmp_path):
    folder = linked_model(tmp_path / "model")
    (folder / "ours.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[0]["type"] = "ours.Ours"
    replaced(folder / "modules.json", json.dumps(modules))

    refused(folder, tmp_path / "vectors")

    assert not (tmp_path / "ran").exists()


def test_a_missing_library_is_named_with_what_installs_it(tmp_path):
    without = "import sys\nsys.modules['sentence_transformers'] = None\n"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")

    with runs(tmp_path, before=without) as ask:
        lines, said = ask(tmp_path / "model")

    assert len(lines) == 1
    assert set(said) == {
        f"embedding_model '{tmp_path / 'model'}': needs sentence-transformers: pip install 'pytest-queryeval[semantic]'"
    }


@needs_model
@pytest.mark.slow
def test_a_model_of_the_hub_is_fetched_once_and_a_hub_out_of_reach_is_tried_once(tmp_path):
    with ExitStack() as process:
        with hub() as (url, requests):
            ask = process.enter_context(runs(tmp_path, HF_ENDPOINT=url))
            lines, said = ask("org/mini")
            assert lines == ["embedding model org/mini is being loaded", "texts to embed: 2"]
            assert any(path.endswith("/model.safetensors") for path in requests)
            requests.clear()

            assert ask("org/mini") == [[], said]
            lines, _ = ask("org/mini", "Lisbon")
            assert lines == ["embedding model org/mini is being loaded", "texts to embed: 1"]
            assert requests == []

        lines, said = ask("org/mini2")
        assert lines == ["embedding model org/mini2 is being loaded"]
        assert len(set(said)) == 1
        assert said[0].startswith(
            "embedding_model 'org/mini2': it is not a folder, not in the local cache of models, and cannot"
        )

        # A name without organization is looked for where the library looks.
        snapshot = tmp_path / "hub/hub/models--sentence-transformers--mini/snapshots" / COMMIT
        shutil.copytree(model_folder(), snapshot, symlinks=True)
        reference = snapshot.parents[1] / "refs" / "main"
        reference.parent.mkdir()
        reference.write_text(COMMIT, encoding="utf-8")
        lines, said = ask("mini", folder="vectors of mini")
        assert lines == ["embedding model mini is being loaded", "texts to embed: 2"]
        assert ask("mini", folder="vectors of mini") == [[], said]

        reference.write_text("d" * 40, encoding="utf-8")
        snapshot.rename(snapshot.with_name("d" * 40))
        lines, _ = ask("mini", folder="vectors of mini")
        assert lines[1:] == ["texts to embed: 2"]
