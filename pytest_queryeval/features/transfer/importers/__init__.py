"""Formats of other tools that `queryeval import` reads: a module for each, which turns their records into cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.text.formatting import one_line

if TYPE_CHECKING:
    from pytest_queryeval.features.transfer.importers.fields import Fields
    from pytest_queryeval.features.transfer.importers.reading import Record

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
    """The fields of a record by the keys of a case, dotted where they are nested."""
    records: str = ""
    """The dotted key of the list of records, if it is not found by itself."""
    split: str | None = None
    """What separates several right answers in one text."""
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


@dataclass(slots=True)
class Reading:
    """The records of a source, and where in them the keys of its cases are."""

    records: Iterable[Record | SkippedRecord]
    """Read one by one where the format allows it."""
    fields: Fields
    names: Sequence[str] = ()
    """The names of fields in the first records."""
    metadata: Sequence[str] = ()
    """The fields that become metadata."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of records with a value, by key; complete once the records have been read, as `total` is."""
    total: int = 0

    def count(self, record: Record) -> None:
        """Count the keys for which a record has a value."""
        self.total += 1
        for key, place in self.fields.by_key.items():
            if place.name not in record.problems and record.value(place.name) not in (None, "", {}):
                self.counts[key] += 1

    @property
    def not_read(self) -> list[str]:
        """The fields of the first records that no key is read from."""
        read_names = {place.name for place in self.fields.by_key.values()}
        return [
            name
            for name in self.names
            if not any(f"{read}.".startswith(f"{name}.") for read in read_names) and name not in self.metadata
        ]

    def line(self) -> str:
        """Return what was taken from where, for people."""
        taken = [
            f"{key} ← {one_line(place.name, 80)}{' (guessed)' if place.is_guess else ''}, "
            f"{self.counts[key]:,} of {self.total:,}"
            for key, place in self.fields.by_key.items()
            if self.counts[key]
        ]
        kind = [f"kind ← {self.fields.kind} (guessed)"] if self.fields.kind and self.fields.is_kind_guess else []
        return "; ".join([*taken, *kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """The cases of a source."""

    name: str
    settings: Mapping[str, JsonValue]
    """The settings that the cases share; complete once `cases` has been consumed."""
    cases: Iterable[ImportedCase | SkippedRecord]
    predictions: str = ""
    """The name of the file of the predictions that cases come with; empty if they come without."""
    source: Path | None = None
    """The file that messages name."""
    warnings: Sequence[str] = ()
    """Sentences on predictions that seem to be for other cases."""
    reading: Reading | None = None
    """Where the keys of the cases were; complete once `cases` has been consumed."""


class Importer(Protocol):
    """Reads a format; raises `CaseError` with place and remedy for a source that is not of it."""

    def __call__(self, request: ImportRequest) -> Import:
        """Return the cases of the source, read one by one where the format allows it."""


IMPORTERS: Registry[Importer] = Registry(
    "format",
    group="pytest_queryeval.importers",
    members={
        "spider": f"{__name__}.formats:import_spider",
        "bird": f"{__name__}.formats:import_bird",
        "spider2": f"{__name__}.spider2:import_spider2",
        "qald": f"{__name__}.formats:import_qald",
        "text2sparql": f"{__name__}.formats:import_text2sparql",
        "w3c-sparql": f"{__name__}.w3c_sparql:import_w3c_sparql",
        "sparql-examples": f"{__name__}.sparql_examples:import_sparql_examples",
        "table": f"{__name__}.formats:import_any",
        "jsonl": f"{__name__}.formats:import_any",
        "cortex": f"{__name__}.cortex:import_cortex",
        "genie": f"{__name__}.formats:import_genie",
        "promptfoo": f"{__name__}.promptfoo:import_promptfoo",
    },
)
