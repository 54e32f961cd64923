"""Tables in YAML next to the tests, read by libyaml: the parser in Python takes ten times as long."""

from pathlib import Path
from typing import Any

import yaml

TESTS = Path(__file__).parent


def read_tables(name: str) -> list[Any]:
    """Return the documents of a file below the folder of the tests."""
    return [*yaml.load_all((TESTS / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)]


def read_table(name: str) -> Any:
    """Return the only document of a file below the folder of the tests."""
    (table,) = read_tables(name)
    return table
