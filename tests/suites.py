"""Suites that tests write, read and complain about, in the current folder."""

from pathlib import Path

import pytest

from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.core.metric import Metric
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS, PredictorType
from pytest_queryeval.suites import load_cases

HEAD = "kind: sql\nsource: a.db\npredictor: inline\ncases:\n"
BLOCK = "write the query as a block: `gold: |`"


def enter(folder, monkeypatch):
    """Work in `folder`, with stand-ins for members of the registries that other releases bring."""
    monkeypatch.chdir(folder)
    later = EngineType(opener=lambda source, hosts: None, kind="sql")
    for registry, names, member in (
        (ENGINES, ("duckdb", "sqlalchemy"), later),
        (PREDICTORS, ("http",), PredictorType(opener=lambda spec: None, text_setting="url")),
        (PREDICTORS, ("command",), PredictorType(opener=lambda spec: None, text_setting="run")),
    ):
        monkeypatch.setattr(registry, "_members", {**registry._members, **dict.fromkeys(names, member)})
    only_sql = Metric(function=lambda gold, predicted: 1.0, kinds=frozenset({"sql"}), options=frozenset({"alpha"}))
    monkeypatch.setattr(METRICS, "_members", {**METRICS._members, "only_sql": only_sql})
    return folder


def write(text, name="s.queryeval.yaml"):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def load(text, name="s.queryeval.yaml", **arguments):
    return load_cases(write(text, name), **arguments)


def case(*lines, head="kind: sql\nsource: a.db\n"):
    """The one case of a suite, with what a case needs and `lines` besides."""
    keys = {line.partition(":")[0] for line in lines}
    needed = {"id": "id: a", "gold": "gold: SELECT 1", "predicted": "predicted: SELECT 2"}
    if keys & {"gold_any", "gold_table", "gold_file"}:
        del needed["gold"]
    if keys & {"predicted_table", "predicted_file"}:
        del needed["predicted"]
    written = [line for key, line in needed.items() if key not in keys] + list(lines)
    indented = "\n".join(written).replace("\n", "\n    ")
    (loaded,) = load(f"{head}cases:\n  - {indented}\n")
    return loaded


def problems(text, name="s.queryeval.yaml", **arguments):
    with pytest.raises(SuiteError) as caught:
        load(text, name, **arguments)
    return str(caught.value).split("\n")


def problem(*lines, head="kind: sql\nsource: a.db\n"):
    """What is wrong with the one case of a suite."""
    with pytest.raises(SuiteError) as caught:
        case(*lines, head=head)
    (line,) = str(caught.value).split("\n")
    return line.partition(": ")[2]
