"""The dbt project of the example suite, in folders of tests."""

import json
import os
import shutil
from pathlib import Path

from pytest_queryeval.features.dbt.project import DbtProject

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
    defaults = {
        "folder": folder,
        "manifest": folder / "target/manifest.json",
        "target": "dev",
        "adapter": "duckdb",
        "database": "bakery",
        "schema": "main",
        "target_schema": "main",
        "file": None,
        "folders": ("models", "seeds", "snapshots"),
    }
    return DbtProject(**defaults | settings)
