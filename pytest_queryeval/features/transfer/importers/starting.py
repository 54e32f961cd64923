"""Makes suites of a test set of any form, for `init --from`; finds its format, its fields and its database.

A test set without predictions gets its right answers as predictions, so that the first run passes; the output says so.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import MEBIBYTE, file_at
from pytest_queryeval.documents.tables import is_table, open_table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.transfer.importers import (
    DEFAULT_LANGUAGE,
    IMPORTERS,
    Import,
    ImportedCase,
    ImportRequest,
    SkippedRecord,
    command,
)
from pytest_queryeval.features.transfer.importers.fields import NOTHING, value_at
from pytest_queryeval.features.transfer.importers.reading import JSONL_SUFFIXES, Record, read_records, read_value
from pytest_queryeval.features.transfer.importers.records import FOLDERS, SCRIPT
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors.answer import ABSTAINED
from pytest_queryeval.suites.sources import ENGINE_OF_SUFFIX

GOLDS = "golds.jsonl"
TABLE, RECORDS = "table", "jsonl"
MAX_NAMES = 5  # of databases in a message
MAX_HEADER_ROW = 10  # that is looked for where the first row is no header
_CREATE = re.compile(rb"\bCREATE\s+(?:TEMP(?:ORARY)?\s+)?TABLE\b", re.IGNORECASE)
_REPLAYED = f"""\
# {GOLDS} has the right answers themselves, so that the first run passes. To test your system, write its {{}}.
"""
_CALL = f"call into\n# {command.PREDICTOR}, and `predictor: {command.PREDICTOR}:predict` above"
_ANSWERS = "answers there"
_GATES = """\
# What all cases must reach together. Set it to what your system reaches today, and raise it as that improves.
gates:
- metric: pass_rate
  min: 1.0

# With `on_miss: xfail` a single wrong answer does not fail the run, and the gates alone decide.
# on_miss: xfail
"""


def start(arguments: argparse.Namespace, folder: Path) -> Result:
    """Write suites of the test set `arguments.from_file` into a folder, by an `import` command that is shown.

    Cases without a prediction get their right answer as prediction. Raise `QueryEvalError` for a test set that cannot
    be read, for a database that is not found, and for files that exist.
    """
    path: Path = arguments.from_file
    stated = {
        "--databases": arguments.databases,
        "--source": arguments.database,
        "--kind": arguments.kind,
        "--language": arguments.language if arguments.language != DEFAULT_LANGUAGE else None,
        "--records": arguments.records,
        "--split": arguments.split,
        "--delimiter": arguments.delimiter or _delimiter(path),
        "--sheet": arguments.sheet,
        "--header-row": arguments.header_row,
    }
    words = [TABLE if is_table(path) else _format(path), str(path), "-o", str(folder)]
    words += chain(*((option, str(value)) for option, value in stated.items() if value))
    words += chain(*(("--map", f"{key}={name}") for key, name in arguments.map))
    words += _found_options(_parsed(words))
    predicted = Counter[str]()
    result = command.run(_parsed(words, force=arguments.force), partial(_with_golds, predicted=predicted))
    settings = folder / command.SETTINGS
    text = settings.read_text(encoding="utf-8")
    is_replaced = arguments.predictor == "file" and predicted["entries"] > 0  # the file itself, by the user
    if not is_replaced:
        write_atomically(folder / command.PREDICTOR, command.PREDICTOR_TEXT.encode(), keep_existing=True)
    if predicted["entries"]:
        text += _REPLAYED.format(_ANSWERS if is_replaced else _CALL)
    else:
        (folder / GOLDS).unlink()
        text = text.replace(f"predictor: {GOLDS}", f"predictor: {command.PREDICTOR}:predict")
    write_atomically(settings, f"{text}{'' if 'gates:' in text else _GATES}".encode())
    return replace(
        result,
        lines=[
            f"queryeval import {shlex.join(words)}",
            *result.lines,
            *_predictions_lines(predicted, folder, is_replaced=is_replaced),
        ],
        data={**result.data, "import": words, "predicted": dict(predicted)},
    )


def _parsed(words: Sequence[str], *, force: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([*words, *(["--force"] if force else [])])


def _delimiter(path: Path) -> str:
    """Return the likely separator of cells in a `.csv` file; empty if it is a comma or the file has another suffix."""
    if path.suffix.lower() != ".csv":
        return ""
    with open_table(file_at(path)) as table:
        return table.likely_delimiter


def _format(path: Path) -> str:
    """Return the format of a test set that is no table, by its suffix, its keys and the fields of its first record."""
    if path.is_dir() or path.suffix.lower() in ENGINE_OF_SUFFIX:
        return "spider" if path.is_dir() else "w3c-sparql"
    if path.suffix.lower() in JSONL_SUFFIXES:
        value: JsonValue = [dict(next((one.fields for one in read_records(path) if isinstance(one, Record)), {}))]
    else:
        value = read_value(file_at(path))
    if isinstance(value, dict):
        return next((name for name, has in _DOCUMENTS.items() if has(value)), RECORDS)
    names = {*value[0]} if isinstance(value, list) and value and isinstance(value[0], dict) else set()
    if "instance_id" in names and path.stem.startswith("spider2"):
        return "spider2"
    return next((name for name, needed in _OF_RECORDS.items() if needed <= names), RECORDS)


QUESTION = "questions.0.question"  # has its languages in a list, or in a mapping
# What the value of a file is, and which fields its first record has, by format.
_DOCUMENTS: Mapping[str, Callable[[Mapping[str, JsonValue]], bool]] = {
    "genie": lambda value: bool(value.keys() & {"serialized_space", "benchmarks"}),
    "cortex": lambda value: "verified_queries" in value,
    "promptfoo": lambda value: (
        "tests" in value and not value.keys().isdisjoint(("prompts", "providers", "defaultTest"))
    ),
    "qald": lambda value: isinstance(value_at(value, QUESTION), list),
    "text2sparql": lambda value: (
        value_at(value, QUESTION) is not NOTHING and isinstance(value_at(value, QUESTION), dict)
    ),
}
_OF_RECORDS = {
    "bird": {"db_id", "question", "SQL", "evidence"},
    "spider": {"db_id", "question", "query", "query_toks"},
}


def _found_options(arguments: argparse.Namespace) -> list[str]:
    """Return options for what only the files tell: the row with the headers, and the databases of queries."""
    request, importer = command.request_of(arguments), IMPORTERS[arguments.format]
    is_searched = arguments.format == TABLE and request.header_row is None
    for row in (None, *range(2, MAX_HEADER_ROW + 1)) if is_searched else ():
        imported = None
        with suppress(QueryEvalError):  # of a row that is no header
            imported = importer(replace(request, header_row=row))
        if imported and imported.settings.get("kind"):
            return [*(["--header-row", str(row)] if row else []), *_source_options(request, imported)]
    return _source_options(request, importer(request))


def _source_options(request: ImportRequest, imported: Import) -> list[str]:
    """Return the option that names the database of queries, by the files next to the test set.

    The result is empty if it is known or not needed. Raise `QueryEvalError` if there is no such file, or several.
    """
    kind, folder = imported.settings.get("kind"), request.source.parent
    is_stated = request.databases is not None or request.database is not None
    if is_stated or imported.reading is None or not isinstance(kind, str) or not KINDS[kind].has_queries:
        return []
    is_named = "source" in imported.reading.fields.by_key
    if is_named and any((folder / name).is_dir() for name in FOLDERS):
        return []
    engines = {name for name in ENGINES.available() if ENGINES[name].kind in (None, kind)}
    suffixes = {suffix for suffix, engine in ENGINE_OF_SUFFIX.items() if engine in engines}
    there = [path for path in sorted(folder.iterdir()) if path.is_file()]
    files = [path for path in there if path.suffix.lower() in suffixes]
    if kind == "sql" and not files:
        files = [path for path in there if path.suffix.lower() == SCRIPT and _makes_tables(path)]
    if len(files) == 1:
        return ["--source", str(files[0])]
    if files and is_named and files[0].suffix.lower() != SCRIPT:
        return ["--databases", str(folder)]
    if files:
        options = " or ".join(f"--source {shlex.quote(str(path))}" for path in files[:MAX_NAMES])
        raise QueryEvalError(
            f"{request.source}: its queries could run on several files next to it: choose one, {options}"
        )
    places = f"next to it is no file of a database ({', '.join(sorted(suffixes))})"
    raise QueryEvalError(f"{request.source}: {places}: say where its queries run, --source FILE or --source URL")


def _makes_tables(path: Path) -> bool:
    with path.open("rb") as script:
        return _CREATE.search(script.read(MEBIBYTE)) is not None


def _with_golds(imported: Import, predicted: Counter[str]) -> Import:
    """Return the import with the right answer as prediction for each case without a prediction.

    `predicted` counts cases: `stated` had a prediction, `gold` got one, and `entries` got one in the predictions file.
    """

    def cases() -> Iterator[ImportedCase | SkippedRecord]:
        for case in imported.cases:
            if isinstance(case, SkippedRecord) or any(key.startswith("predicted") for key in case.keys):
                predicted["stated"] += isinstance(case, ImportedCase)
                yield case
                continue
            predicted["gold"] += 1
            stored = {f"predicted{key[4:]}": case.keys[key] for key in ("gold_table", "gold_file") if key in case.keys}
            entry = {} if stored else _gold_entry(case.keys)
            predicted["entries"] += bool(entry)
            yield replace(case, keys={**case.keys, **stored}, predictions=[entry] if entry else [])

    return replace(imported, cases=cases(), predictions=GOLDS)


def _gold_entry(keys: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the right answer of a case as an entry of a file of predictions; a case without it abstains."""
    golds, turns = keys.get("gold_any"), keys.get("conversation")
    gold = golds[0] if isinstance(golds, list) else keys.get("gold")
    if isinstance(turns, list) and isinstance(turns[-1], dict):
        gold = turns[-1].get("target")
    if gold is None:
        return {ABSTAINED: True}
    return {"predicted": gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False)}


def _predictions_lines(predicted: Counter[str], folder: Path, *, is_replaced: bool) -> Iterator[str]:
    total = predicted["gold"] + predicted["stated"]
    if predicted["gold"]:
        steps = [f"write the call of your system into {folder / command.PREDICTOR}"]
        if is_replaced:
            steps = [f"write those of your system into {folder / GOLDS}"]
        elif predicted["entries"]:
            steps += [f"`predictor: {command.PREDICTOR}:predict` into {folder / command.SETTINGS}"]
        if in_cases := predicted["gold"] - predicted["entries"]:
            steps += [f"remove what {in_cases:,} of the cases state under `predicted_table` or `predicted_file`"]
        yield (
            f"predictions: {predicted['gold']:,} of {total:,} are the right answers themselves, so that the first run "
            f"passes and shows nothing about your system: {', and '.join(steps)}"
        )
    if predicted["stated"]:
        yield f"predictions: {predicted['stated']:,} of {total:,} are those of the test set"
