"""Imports test sets of any form, and published ones, whose records contain the keys of their cases in known fields.

Spider is `dev.json` with `db_id`, `question` and `query`, or a file of gold queries, `SQL<tab>db_id` a line. BIRD and
its mini-dev are a list with `question_id`, `db_id`, `question`, `evidence`, `SQL` and `difficulty`. QALD is a JSON file
with questions in several languages, and with answers in the form of SPARQL JSON results. TEXT2SPARQL is a YAML file,
whose answers are found by `prefix:id-language`. A space of Databricks Genie is what its API answers with
`include_serialized_space=true`: https://docs.databricks.com/api/workspace/genie/getspace
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_queryeval.core.groups import as_markers
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import File, file_at
from pytest_queryeval.features.transfer.importers import Import, ImportRequest, Reading, SkippedRecord
from pytest_queryeval.features.transfer.importers.fields import NOTHING, fixed_fields, value_at
from pytest_queryeval.features.transfer.importers.reading import (
    Record,
    RecordError,
    numbered_records,
    read_records,
    read_value,
)
from pytest_queryeval.features.transfer.importers.records import (
    IMPORT_KEYS,
    Databases,
    Predictions,
    check_count,
    check_request,
    import_cases,
    open_test_set,
    positional_predictions,
    read_predictions,
    relative,
)
from pytest_queryeval.languages.sparql.results import read_results
from pytest_queryeval.predictors.file.predictions import OtherDatabases, is_lines, read_lines
from pytest_queryeval.text.formatting import one_line


def import_any(request: ImportRequest) -> Import:
    """Return a case for each record of a file: a row of a table, a line, or an item in JSON, YAML or TOML.

    The fields of keys are found by `--map`, or by names and values. Raise `QueryEvalError` for a file that cannot be
    read, and if several fields could be a key.
    """
    check_request(request, columns=IMPORT_KEYS, is_any_file=True)
    reading = open_test_set(request)
    settings: dict[str, JsonValue] = {} if reading.fields.kind is None else {"kind": reading.fields.kind}
    return import_cases(request, reading, Databases(request, request.source, settings))


TABLES = "tables.json"
METRICS = ("execution_accuracy", "execution_accuracy_spider")
OF_SCHEMA = "exact_set_match_spider"
# A system gives many wrong answers to a benchmark: their share decides, and none is shown as the failure of a test.
GATED: Mapping[str, JsonValue] = {"on_miss": "xfail", "gates": [{"metric": METRICS[0], "min": 0.8}]}
EMPTY = "an empty line"


def import_spider(request: ImportRequest) -> Import:
    """Return a case for each question, with its position as id.

    The source is `dev.json`, a folder with it, or a file of gold queries; missing queries come from `dev_gold.sql`.
    Predictions in plain lines are found by position. If `tables.json` is next to the source, `db_schema` names it, and
    records with other databases are skipped. Raise `QueryEvalError` if numbers of lines and cases differ.
    """
    check_request(request, kind="sql")
    source = request.source / "dev.json" if request.source.is_dir() else request.source
    records: list[Record | SkippedRecord]
    if is_lines(source.name):
        records = [Record(f"line {place + 1}", place, gold) for place, gold in enumerate(_gold_lines(source))]
    else:
        records = _with_golds(list(read_records(source)), source.with_name(f"{source.stem}_gold.sql"))
    predictions = read_predictions(request.predictions)
    if request.predictions and is_lines(request.predictions.name):
        # The published tools read a line up to its first tab.
        answers = [line.partition("\t")[0].strip() for line in read_lines(file_at(request.predictions))]
        check_count(len(answers), len(records), request.predictions, empty=EMPTY)
        predictions = positional_predictions(answers)
    databases = Databases(request, source, {"kind": "sql", "metrics": list(METRICS), **GATED})
    tables = file_at(source.with_name(TABLES))
    database_names: set[str] | None = None
    if tables.path.is_file():
        schemas = read_value(tables)
        if not isinstance(schemas, list):
            raise tables.problem("expected a list of schemas")
        database_names = {str(schema.get("db_id")) for schema in schemas if isinstance(schema, dict)}
        databases.settings |= {
            "metrics": [*METRICS, OF_SCHEMA],
            "db_schema": relative(source.with_name(TABLES), request.output),
        }

    def adapt(record: Record) -> Record:
        name = record.text("db_id")
        if not name and record.fields.get("query") == "":
            raise RecordError("its line is empty")
        if database_names is not None and name not in database_names:
            raise RecordError(f"{TABLES} has no schema of the database '{one_line(name)}'")
        return record

    return import_cases(
        request,
        Reading(records, fixed_fields("sql", question="question", gold="query", source="db_id")),
        databases,
        id_of=lambda record: str(record.position),
        adapt=adapt,
        predictions=predictions,
        name=source.stem,
    )


def _gold_lines(path: Path) -> Iterator[dict[str, JsonValue]]:
    for number, line in enumerate(read_lines(file_at(path)), start=1):
        query, tab, name = line.strip().rpartition("\t")
        if line.strip() and not tab:
            raise file_at(path).problem("no tab: each line of a file of golds is `SQL<tab>db_id`", number)
        yield {"query": query.strip(), "db_id": name}


def _with_golds(records: list[Record | SkippedRecord], golds: Path) -> list[Record | SkippedRecord]:
    """Return the records with queries from the file `golds`.

    Unchanged if a record has a query or there is no such file. Raise `QueryEvalError` if the file has another number of
    queries.
    """
    if any(not isinstance(record, Record) or "query" in record.fields for record in records) or not golds.is_file():
        return records
    lines = list(_gold_lines(golds))
    check_count(len(lines), len(records), golds, empty=EMPTY)
    return [
        replace(record, fields={**record.fields, **line})
        for record, line in zip(records, lines, strict=True)
        if isinstance(record, Record)
    ]


BIRD_METRICS = ("execution_accuracy", "execution_accuracy_bird", "soft_f1_bird")
BIRD = fixed_fields(
    "sql",
    id="question_id",
    question="question",
    gold="SQL",
    source="db_id",
    evidence="evidence",
    difficulty="difficulty",
    tags="tags",
)


def import_bird(request: ImportRequest) -> Import:
    """Return a case for each question; predictions in JSON are found by position, as in the published tool.

    The import has a warning if predictions seem to be for other databases.
    """
    check_request(request, kind="sql")
    records = list(read_records(request.source))
    if request.predictions and request.predictions.suffix.lower() == ".json":
        predictions = _bird_predictions(request.predictions, len(records))
    else:
        predictions = read_predictions(request.predictions)

    def id_of(record: Record) -> str:
        return record.text("question_id") or str(record.position)

    others = OtherDatabases(request.predictions or Path())
    for record in records:
        if isinstance(record, Record):
            named = predictions.database_of(record.position, id_of(record), record.text("question"))
            others.add(id_of(record), named, [record.text("db_id")])
    databases = Databases(request, request.source, {"kind": "sql", "metrics": list(BIRD_METRICS)})
    imported = import_cases(request, Reading(records, BIRD), databases, id_of=id_of, predictions=predictions)
    return replace(imported, warnings=[*filter(None, [others.remark()])])


def _bird_predictions(path: Path, cases: int) -> Predictions:
    """Return predictions from a JSON file with positions as keys ("0", "1"); a value that is not text counts as empty.

    Raise `CaseError` for a key that is no position, and `QueryEvalError` if positions are missing.
    """
    file = file_at(path)
    predictions = read_value(file)
    if not isinstance(predictions, dict):
        raise file.problem('expected predictions by position, `{"0": "SELECT …", …}`')
    if spare := next((key for key in predictions if key not in map(str, range(cases))), None):
        raise file.problem(f"'{spare}' is not a position: predictions belong under 0 to {cases - 1:,}, not under ids")
    check_count(len(predictions), cases, path, empty='"" or null')
    answers = (predictions[str(position)] for position in range(cases))
    return positional_predictions([answer if isinstance(answer, str) else "" for answer in answers])


CANONICAL = {"id": "id", "question": "question", "gold": "gold"}  # of records that are written anew
SPACE = "serialized_space"
SQL_FORMAT = "SQL"
_VARIABLE = re.compile(r"\$\{\w+\}")  # of templates; Spark fills it in, and a warehouse does not


def import_genie(request: ImportRequest) -> Import:
    """Return a case for each benchmark question of a Genie space that has one answer in SQL.

    Other questions are skipped. Also skipped are answers with a template variable. Raise `CaseError` for a file without
    benchmarks.
    """
    check_request(request, kind="sql")
    file = file_at(request.source)
    space = read_value(file)
    if isinstance(space, dict) and isinstance(text := space.get(SPACE), str):
        try:
            space = json.loads(text)
        except (ValueError, RecursionError) as error:
            remedy = "write it as the API answers it"
            raise file.problem(f"its `{SPACE}` is not JSON: {error}: {remedy}") from error
    elif isinstance(space, dict) and SPACE in space:
        space = space[SPACE]
    expected = 'has no benchmarks of a Genie space: expected `{"benchmarks": {"questions": [{…}, …]}}`'
    problem = f"{expected}, as the API gives it with include_serialized_space=true"
    records = list_records(file, space, "benchmarks.questions", "question", problem)
    databases = Databases(request, request.source, {"kind": "sql"})
    return import_cases(request, Reading(records, fixed_fields("sql", **CANONICAL)), databases, adapt=_genie_record)


def list_records(file: File, value: JsonValue, key: str, word: str, problem: str) -> Iterator[Record]:
    """Return a record for each item of the list under a dotted key.

    Raise `CaseError` with the text `problem` if there is no list.
    """
    items = value_at(value, key) if isinstance(value, dict) else NOTHING
    if not isinstance(items, list):
        raise file.problem(problem)
    return numbered_records(items, word)


def _genie_record(record: Record) -> Record:
    question = _joined_lines(record.required("question"))
    if not question.strip():
        raise RecordError("it has no text as `question`: add one")
    value = record.fields.get("answer")
    answers = [answer for answer in (value if isinstance(value, list) else [value]) if isinstance(answer, dict)]
    queries = [_joined_lines(answer.get("content")) for answer in answers if answer.get("format") == SQL_FORMAT]
    if len(queries) > 1:
        raise RecordError("it has several answers in SQL: keep the right one")
    if not queries:
        formats = ", ".join(one_line(str(answer.get("format"))) for answer in answers) or "none"
        raise RecordError(f"it has no answer of the format {SQL_FORMAT}, which says what is right: it has {formats}")
    if variable := _VARIABLE.search(queries[0]):
        raise RecordError(f"its answer has the variable `{variable[0]}`, which nothing fills in: write its value")
    return replace(record, fields={"id": record.text("id"), "question": question, "gold": queries[0]})


def _joined_lines(value: JsonValue) -> str:
    """Return a text that Genie writes as a list of lines; a line without a line break gets one."""
    lines = [line for line in (value if isinstance(value, list) else [value]) if isinstance(line, str)]
    return "".join(line if line[-1:].isspace() else f"{line}\n" for line in lines).strip()


ANSWERS = "answers"


def import_qald(request: ImportRequest) -> Import:
    """Return a case for each question in the language of the request.

    The query of a question is right, or its stored answer if it has none. With `--map gold=answers` the stored answers
    are always right, as in the benchmark's own tool.
    """
    check_request(request, columns=("gold",), kind="sparql", has_languages=True)
    file = file_at(request.source)
    problem = 'expected an object with a list of questions, {"questions": [{…}, …]}'
    records = list_records(file, read_value(file), "questions", "question", problem)

    def adapt(record: Record) -> Record:
        question = _question_in(request.language, record.fields.get("question"))
        fields: dict[str, JsonValue] = {"id": record.text("id"), "question": question}
        query = record.value("query.sparql")
        if isinstance(query, str) and query.strip() and request.columns.get("gold") != ANSWERS:
            return replace(record, fields={**fields, "gold": query.strip()})
        answers = record.fields.get(ANSWERS)
        if not isinstance(answers, list) or len(answers) != 1:
            count = len(answers) if isinstance(answers, list) else 0
            raise RecordError(f"it has {count} stored answers: expected one")
        text = json.dumps(answers[0], ensure_ascii=False)
        try:
            read_results(text, ".srj")
            content = text.encode()
        except UnicodeEncodeError as error:
            raise RecordError(
                "its stored answer contains half of a surrogate pair, which is not a character"
            ) from error
        except ValueError as error:
            raise RecordError(f"its stored answer {one_line(str(error))}") from error
        name = f"{ANSWERS}/{hashlib.sha256(content).hexdigest()[:16]}.srj"
        return replace(record, fields=fields, keys={"gold_file": name}, files={name: content})

    databases = Databases(request, request.source, {"kind": "sparql"})
    reading = Reading(records, fixed_fields("sparql", **CANONICAL))
    return import_cases(replace(request, columns={}), reading, databases, adapt=adapt)


ORDERED = "RESULT_ORDER_MATTERS"


def import_text2sparql(request: ImportRequest) -> Import:
    """Return a case for each question in the language of the request; its id is `prefix:id-language`.

    Features become tags, and `RESULT_ORDER_MATTERS` makes the order of rows count. Questions without a query, or
    without a text in the language, are skipped. Raise `CaseError` for a file of another form.
    """
    check_request(request, kind="sparql", has_languages=True)
    file = file_at(request.source)
    value = read_value(file)
    problem = "expected `dataset: {id: …, prefix: …}` and a list of `questions`"
    records = list_records(file, value, "questions", "question", problem)
    described = value.get("dataset") if isinstance(value, dict) else None
    if not isinstance(described, dict):
        raise file.problem(problem)
    dataset = Record("dataset", 0, described)
    prefix = dataset.text("prefix")

    def id_of(record: Record) -> str:
        number = record.text("id") or str(record.position + 1)
        return f"{prefix}:{number}-{request.language}" if prefix else f"{number}-{request.language}"

    def adapt(record: Record) -> Record:
        question = _question_in(request.language, record.fields.get("question"))
        gold = record.value("query.sparql")
        if not isinstance(gold, str) or not gold.strip():
            raise RecordError("it has no query.sparql")
        features = record.fields.get("features")
        feature_names = [str(feature) for feature in features] if isinstance(features, list) else []
        keys: dict[str, JsonValue] = {"metadata": {"dataset": dataset.text("id")}}
        if tags := as_markers(feature_names):
            keys["tags"] = list[JsonValue](tags)
        if ORDERED in feature_names:
            keys["compare"] = {"row_order": "strict"}
        return replace(record, fields={"question": question, "gold": gold}, keys=keys)

    databases = Databases(request, request.source, {"kind": "sparql"})
    reading, predictions = (
        Reading(records, fixed_fields("sparql", **CANONICAL)),
        _collected_answers(request.predictions),
    )
    return import_cases(request, reading, databases, id_of=id_of, adapt=adapt, predictions=predictions)


def _collected_answers(path: Path | None) -> Predictions:
    """Return the predictions in a JSON file that the published tool collected, by `qname`, or in any other file."""
    if path is None or path.suffix.lower() != ".json":
        return read_predictions(path)
    answers = read_value(file_at(path))
    if not isinstance(answers, list) or not all(isinstance(answer, dict) and "qname" in answer for answer in answers):
        return read_predictions(path)
    queries = {str(answer["qname"]): answer.get("query") for answer in answers if isinstance(answer, dict)}
    return Predictions("id", {id_: [{"predicted": query}] for id_, query in queries.items() if isinstance(query, str)})


def _question_in(language: str, texts: JsonValue) -> str:
    """Return the question in a language; raise `RecordError` if there is none.

    `texts` maps languages to texts, or is a list of objects with `language` and `string`.
    """
    items: Iterable[tuple[str, JsonValue]] = texts.items() if isinstance(texts, dict) else ()
    if isinstance(texts, list):
        items = ((str(text.get("language")), text.get("string")) for text in texts if isinstance(text, dict))
    questions = {code: text for code, text in items if isinstance(text, str) and text.strip()}
    if language not in questions:
        languages = ", ".join(map(one_line, questions))
        raise RecordError(f"it has no question in '{language}'" + (f": it is in {languages}" if languages else ""))
    return questions[language]
