"""Keys of a case: the fields of a record that are named like them, or by `--map`, and the database that it names.

Databases are files below a folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_queryeval.core.errors import CaseError, QueryEvalError, SuiteError, did_you_mean
from pytest_queryeval.core.groups import as_marker, as_markers
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at, parse_json
from pytest_queryeval.features.transfer.importers import DEFAULT_LANGUAGE, ImportRequest
from pytest_queryeval.features.transfer.importers.records import Record, RecordError
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line, utf8_safe
from pytest_queryeval.text.redaction import mask_credentials, secrets_in_url

ANSWERS = ("gold", "gold_any", "predicted")
KEYS = (
    "id",
    "question",
    "evidence",
    "difficulty",
    "tags",
    "source",
    "kind",
    "skip",
    "allow_empty",
    "answerable",
    "metadata",
    *ANSWERS,
)
MAX_NAME = 100  # of a database
_NO_FILE = file_at("gold")
_VARIABLE = re.compile(r"\$\{\w+\}")


def check_request(
    request: ImportRequest, *, columns: Sequence[str] = (), kind: str | None = None, has_languages: bool = False
) -> None:
    """Raise `QueryEvalError` for an option that the format has no use for, and for an answer as metadata.

    `columns` are the keys that `--map` may name, `kind` is the only kind of the format, if it has one.
    """
    if kind is not None and request.kind not in (None, kind):
        raise QueryEvalError(f"--kind {request.kind}: cases of this format are of the kind '{kind}': leave it out")
    if request.language != DEFAULT_LANGUAGE and not has_languages:
        raise QueryEvalError(
            f"--language {request.language}: questions of this format are in one language: leave it out"
        )
    for key in request.columns:
        if key not in columns:
            remedy = did_you_mean(key, columns) if columns else ": the format names its fields itself, so leave it out"
            raise QueryEvalError(f"--map {key}: unknown key '{key}'{remedy}")
    answers = {*ANSWERS, *(request.columns.get(key, key) for key in ANSWERS)}
    if answer_fields := answers.intersection(metadata_fields(request.columns)):
        raise QueryEvalError(f"--map metadata: '{min(answer_fields)}' is an answer, which predictors must not see")


def metadata_fields(columns: Mapping[str, str]) -> list[str]:
    """Return the fields that become metadata, `--map metadata=a,b`."""
    return [name for name in columns.get("metadata", "").split(",") if name]


def described(record: Record, columns: Mapping[str, str] | None = None) -> dict[str, JsonValue]:
    """Return the keys of a case that describe it: question, evidence, difficulty, tags and metadata."""
    columns = columns or {}
    fields = {key: columns.get(key, key) for key in KEYS}
    keys: dict[str, JsonValue] = {"question": record.text(fields["question"])}
    if evidence := record.text(fields["evidence"]):
        keys["evidence"] = evidence
    metadata = {name: record.fields[name] for name in metadata_fields(columns) if name in record.fields}
    difficulty = record.text(fields["difficulty"])
    if marker := as_marker(difficulty):
        keys["difficulty"] = marker
    if marker != difficulty:
        metadata["difficulty"] = difficulty
    tags = record.fields.get(fields["tags"])
    tag_list = tags if isinstance(tags, list) else record.text(fields["tags"]).split(",")
    if markers := as_markers(str(tag).strip() for tag in tag_list):
        keys["tags"] = list[JsonValue](markers)
    if metadata:
        keys["metadata"] = metadata
    return keys


def gold_value(value: JsonValue, kind: str) -> JsonValue:
    """Return a right answer in the form of suites; raise `RecordError` for one that the loader would refuse."""
    if KINDS[kind].has_queries:
        if not isinstance(value, str) or not value.strip():
            raise RecordError("its right answer is not a query")
        return value
    gold = "null" if value is None else value  # in a suite, null is not a value; its text is read as JSON
    try:
        KINDS[kind].read_gold(parse_json(json.dumps(gold), _NO_FILE, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0].problem if isinstance(error, SuiteError) else error.problem
        raise RecordError(f"its right answer cannot be read: {problem}") from error
    return gold


class Databases:
    """The sources of an import.

    `settings` has the keys of `queryeval.yaml` that name them; sources by name are added as cases ask for them. Names
    come from the source, so one that leads out of the folder is refused.
    """

    def __init__(self, request: ImportRequest, source: Path, beside: Sequence[str] = ()) -> None:
        """Use the folder of the request, else the first existing folder of those named `beside` the source."""
        self.settings: dict[str, JsonValue] = {}
        self._sources: dict[str, JsonValue] = {}
        self._output = request.output
        self._folder: Path | None = None
        if request.database is not None:
            if any(secrets_in_url(_VARIABLE.sub("", request.database))):
                problem = f"--source {mask_credentials(request.database)}: its password would stand in the settings"
                raise QueryEvalError(f"{problem} of the suites: write a variable in its place, such as ${{PASSWORD}}")
            self.settings["source"] = relative(Path(request.database), request.output, otherwise=request.database)
            return
        folders = (folder for name in beside if (folder := source.parent / name).is_dir())
        self._folder = request.databases or next(folders, None)
        if self._folder is not None:
            if not self._folder.is_dir():
                raise QueryEvalError(f"{self._folder}: is not a folder: --databases names the one with the databases")
            self.settings["sources"] = self._sources

    def check_shared(self, kind: str) -> None:
        """Raise `RecordError` unless cases of a kind that name no source of their own have what they need."""
        if KINDS[kind].has_queries and "source" not in self.settings:
            raise RecordError("its queries have nowhere to run: give their source as --source")
        if not KINDS[kind].has_queries and "source" in self.settings:
            raise RecordError(f"--source is for queries, and it is of the kind '{kind}': import it without")

    def source_of(self, name: str) -> dict[str, JsonValue]:
        """Return the `source` key of a case on a database, none where all share one; raise `RecordError`."""
        if "source" in self.settings:
            return {}
        if self._folder is None:
            raise RecordError("it has a database of its own: name their folder with --databases")
        if name in self._sources:
            return {"source": name}
        shown_name = one_line(name, MAX_NAME)
        is_unfit = len(name) > MAX_NAME or utf8_safe(name) != name
        if name in ("", ".", "..") or is_unfit or any(sign in name for sign in ("/", "\\", "\0", "${")):
            raise RecordError(f"'{shown_name}' is not a name of a database")
        for path in (self._folder / name / f"{name}.sqlite", self._folder / f"{name}.sqlite"):
            if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that no file can have
                self._sources[name] = relative(path, self._output)
                return {"source": name}
        places = f"{shown_name}/{shown_name}.sqlite or {shown_name}.sqlite"
        raise RecordError(f"there is no database {places} in {self._folder}")


def relative(path: Path, output: Path, *, otherwise: str | None = None) -> str:
    """Return the path of a file as suites in `output` name it; `otherwise` where there is no such file."""
    if otherwise is not None and not os.path.exists(path):  # noqa: PTH110 - as above
        return otherwise
    relative_path = os.path.relpath(os.path.abspath(path), output)  # noqa: PTH100 - links are not followed
    if utf8_safe(relative_path) != relative_path:
        raise QueryEvalError(f"{relative_path}: is not a name in UTF-8, in which suites are written: rename it")
    if "${" in relative_path:
        raise QueryEvalError(f"{relative_path}: suites would take `${{` for a variable: rename the folder")
    return relative_path
