"""Formats of other tools that `queryeval import` reads: a module for each, which makes cases of their records."""

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
    """What the command line says about an import."""

    source: Path
    output: Path
    """The folder of the suites."""
    predictions: Path | None = None
    databases: Path | None = None
    database: str | None = None
    kind: str | None = None
    language: str = DEFAULT_LANGUAGE
    columns: Mapping[str, str] = field(default_factory=dict)
    """The fields of a record by the keys of a case; nested fields are dotted."""
    records: str = ""
    """The dotted key of the list of records, if it is not found by itself."""
    split: str | None = None
    """The mark between several right answers in one text."""
    delimiter: str | None = None
    """The separator of cells in a CSV file; None for the usual one of the file's suffix."""
    sheet: str | None = None
    """The sheet of a workbook; None for the first sheet."""
    header_row: int | None = None
    """The number of the row with the headers of a table; None for the first row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCase:
    """A case of the source, with its predictions and files."""

    id: str
    """The id in the source, which may be invalid in suites."""
    keys: Mapping[str, JsonValue]
    """The other keys of the case, in the form of suites."""
    predictions: Iterable[Mapping[str, JsonValue]] = ()
    """Entries for a file of predictions, without their ids."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of files that the keys name, by their paths in the folder of the suites."""


class SkippedRecord(NamedTuple):
    """A record, a part of a record, or a prediction that is in no case."""

    id: str
    reason: str
    """Why no case contains it."""


@dataclass(slots=True)
class Reading:
    """The records of a source, and the fields of records that contain the keys of its cases."""

    records: Iterable[Record | SkippedRecord]
    """The records; they are read one by one if the format allows it."""
    fields: Fields
    names: Sequence[str] = ()
    """The names of fields in the first records."""
    metadata: Sequence[str] = ()
    """The fields that become metadata."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of records with a value, by key; complete once the records have been read, as `total` is."""
    total: int = 0

    def count(self, record: Record) -> None:
        """Add a record to `total`, and to `counts` for each key for which the record has a value."""
        self.total += 1
        for key, place in self.fields.by_key.items():
            if place.name not in record.problems and record.value(place.name) not in (None, "", {}):
                self.counts[key] += 1

    @property
    def not_read(self) -> list[str]:
        """The fields of the first records that are neither read for a key nor become metadata."""
        read_names = {place.name for place in self.fields.by_key.values()}
        return [
            name
            for name in self.names
            if not any(f"{read}.".startswith(f"{name}.") for read in read_names) and name not in self.metadata
        ]

    def line(self) -> str:
        """Return a line that says for each key from which field, and in how many records, its values were read."""
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
    """The cases of a source, with their settings and predictions."""

    name: str
    settings: Mapping[str, JsonValue]
    """The settings that the cases share; complete once `cases` has been consumed."""
    cases: Iterable[ImportedCase | SkippedRecord]
    predictions: str = ""
    """The name of the file for the predictions of the cases; empty if there is none."""
    source: Path | None = None
    """The file that messages name."""
    warnings: Sequence[str] = ()
    """Sentences on predictions that seem to be for other cases."""
    reading: Reading | None = None
    """The fields that contained the keys of the cases; complete once `cases` has been consumed."""


class Importer(Protocol):
    """Reads a format; raises `CaseError` with place and remedy for a source of another format."""

    def __call__(self, request: ImportRequest) -> Import:
        """Return the cases of the source; they are read one by one if the format allows it."""


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
