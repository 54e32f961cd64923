"""Tables in YAML of what suites become: groups of rows, which share files in which `<HERE>` is the place of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yaml_tables import TESTS, read_table

HERE = "<HERE>"
Change = str | Mapping[str, str | None]  # the text for `<HERE>`, or the texts of files; None removes one


def rows(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an id and the keys of each row of all tables in a folder of the tests, with what its group states."""
    for path in sorted((TESTS / folder).glob("*.yaml")):
        groups = read_table(f"{folder}/{path.name}")
        found = ({**group, **row} for group in groups for row in group["rows"])
        for number, row in enumerate(found):
            del row["rows"]
            yield f"{path.stem}-{number}", row


def filled(files: Mapping[str, str], change: Change) -> dict[str, str | None]:
    """Return the files with a change; the lines of its text are indented as the line of `<HERE>` is."""
    if not isinstance(change, str):
        return {**files, **change}
    lines = {name: next((line for line in text.split("\n") if HERE in line), "") for name, text in files.items()}
    indents = {name: " " * (len(line) - len(line.lstrip(" "))) for name, line in lines.items()}
    return {name: text.replace(HERE, change.replace("\n", "\n" + indents[name])) for name, text in files.items()}


def write_files(files: Mapping[str, str | None], folder: Path) -> None:
    """Write files below a folder; remove those that are None."""
    for name, text in files.items():
        path = folder / name
        path.unlink(missing_ok=True)
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
