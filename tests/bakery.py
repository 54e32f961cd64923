"""The dbt project of the example suite, in folders of tests."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

from pytest_queryeval import load_cases

EXAMPLE = Path(__file__).parent.parent / "example_suite/dbt"
MADE = shutil.ignore_patterns("bakery.duckdb*", "__pycache__", "reports", "logs")


def manifest_of(project):
    return json.loads((project / "target/manifest.json").read_bytes())


def write_manifest(project, manifest):
    (project / "target").mkdir(exist_ok=True)
    (project / "target/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def edit_later(path, text):
    """Write a file of a project after its manifest was made."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (2_000_000_000, 2_000_000_000))


def project_in(folder, **settings):
    """What rewrites the queries of a suite on the project; its database need not be there."""
    suite = folder.parent / "project.queryeval.yaml"
    suite.write_text(f"kind: sql\nsource: {{dbt: {folder.name}}}\ncases: [{{id: a, gold: x, predicted: x}}]\n")
    (case,) = load_cases(suite)
    return replace(case.settings.source.rewriter, **{"file": None} | settings)
