"""Formats of other tools that `queryeval import` reads: a module for each, which turns their records into cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.registry import Registry

DEFAULT_LANGUAGE = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The arguments of the command line."""

    source: Path
    output: Path
    """The folder of the suites."""
    predictions: Path | None = None
    databases: Path | None = None
    database: str | None = None
    kind: str | None = None
    language: str = DEFAULT_LANGUAGE
    columns: Mapping[str, str] = field(default_factory=dict)
    """The fields of a record by the keys of a case, where their names differ."""
    delimiter: str | None = None
    """What separates the cells of a CSV file, if that is not a comma."""
    sheet: str | None = None
    """The sheet of a workbook, if that is not the first one."""
    header_row: int | None = None
    """The number of the row with the headers of a table, if that is not the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCase:
    """A case of the source."""

    id: str
    """As in the source."""
    keys: Mapping[str, JsonValue]
    """Its other keys, in the form of suites."""
    predictions: Iterable[Mapping[str, JsonValue]] = ()
    """Entries for a file of predictions, without their ids."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of files that the keys name, by their paths in the folder of the suites."""


class SkippedRecord(NamedTuple):
    """A record, or a part of one, that is in no case."""

    id: str
    reason: str
    """Why no case has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """The cases of a source."""

    name: str
    settings: Mapping[str, JsonValue]
    """The settings that the cases share; complete once `cases` has been consumed."""
    cases: Iterable[ImportedCase | SkippedRecord]
    has_predictions: bool = False
    """Whether cases come with predictions."""
    source: Path | None = None
    """The file that messages name."""
    warnings: Sequence[str] = ()
    """Sentences on predictions that seem to be for other cases."""
    not_read: Sequence[str] = ()
    """The columns of a table that no key is read from; complete once `cases` has been consumed."""


class Importer(Protocol):
    """Reads a format; raises `CaseError` with place and remedy for a source that is not of it."""

    def __call__(self, request: ImportRequest) -> Import:
        """Return the cases of the source, read one by one where the format allows it."""


IMPORTERS: Registry[Importer] = Registry(
    "format",
    group="pytest_queryeval.importers",
    members={
        "spider": f"{__name__}.spider:import_spider",
        "bird": f"{__name__}.spider:import_bird",
        "spider2": f"{__name__}.spider:import_spider2",
        "qald": f"{__name__}.qald:import_qald",
        "text2sparql": f"{__name__}.qald:import_text2sparql",
        "w3c-sparql": f"{__name__}.w3c_sparql:import_w3c_sparql",
        "table": f"{__name__}.columns:import_table",
        "jsonl": f"{__name__}.columns:import_jsonl",
        "cortex": f"{__name__}.cortex:import_cortex",
        "genie": f"{__name__}.genie:import_genie",
        "promptfoo": f"{__name__}.promptfoo:import_promptfoo",
    },
)
