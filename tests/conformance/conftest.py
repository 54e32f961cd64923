"""Reference scores of published evaluators. They are not part of the project: QUERYEVAL_CONFORMANCE names their
folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reference_records import Records

VARIABLE = "QUERYEVAL_CONFORMANCE"


@pytest.fixture(scope="session")
def conformance() -> Path:
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no folder of reference scores")
    assert Path(folder).is_dir(), f"{VARIABLE}={folder} is not a folder"
    return Path(folder)


@pytest.fixture(scope="session")
def records(conformance: Path) -> Records:
    def read(name: str) -> list[dict[str, Any]]:
        records = list(_lines(conformance / name))
        assert records, f"{name} holds no record"
        return records

    return read


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
