"""Reference scores of published evaluators. They are not part of the project: QUERYEVAL_CONFORMANCE names their
folder."""

import json
import os
from pathlib import Path

import pytest

VARIABLE = "QUERYEVAL_CONFORMANCE"


@pytest.fixture(scope="session")
def conformance():
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no folder of reference scores")
    assert Path(folder).is_dir(), f"{VARIABLE}={folder} is not a folder"
    return Path(folder)


@pytest.fixture(scope="session")
def records(conformance):
    """A function that reads the records of a file."""

    def read(name):
        with (conformance / name).open(encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        assert records, f"{name} holds no record"
        return records

    return read
