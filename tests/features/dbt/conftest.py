"""Copies of the dbt project of the example suite."""

import runpy
import shutil
from pathlib import Path

import pytest
from bakery import EXAMPLE, MADE


@pytest.fixture(scope="session")
def built_example(tmp_path_factory):
    """A copy of the example with the database of its project, to be read only."""
    pytest.importorskip("duckdb")
    folder = tmp_path_factory.mktemp("dbt") / "example"
    shutil.copytree(EXAMPLE, folder, ignore=MADE)
    runpy.run_path(str(folder / "conftest.py"))
    return folder


@pytest.fixture
def bakery(tmp_path):
    """A copy of the project alone, to be changed; it has no database."""
    return Path(shutil.copytree(EXAMPLE / "bakery", tmp_path / "bakery", ignore=MADE))
