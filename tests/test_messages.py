"""Mistakes of new users, and the message for each: the place, the problem, what to do."""

import socket
from pathlib import Path

import pytest
from suites import BLOCK, enter, problems, write

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites import load_cases
from pytest_queryeval.suites.keys import COMPARE

HEAD = "kind: sql\nsource: a.db\n"
CASE = "cases:\n  - id: a\n    gold: SELECT 1\n    predicted: SELECT 1\n"
NUMBER_OF_ROWS = "max_rows: expected a whole number from 1 on, found"
NO_MARKER = "must consist of letters, digits, _ and -, and not start with _, to be a marker"
PROGRAM = "a program is named in a suite, as `predictor: {command:"
NO_COMMA = "a comma is missing before this, or a double quote in a text has no `\\` before it"
NO_MAPPING = "item of gates: expected a mapping, found"
EXACT = "'exact_set_match' (texts of queries) or 'exact_match_f1' (rows)"
ONE = "a line holds one JSON object"
STATED = "'gold' is there already: remove one of them"
OF_GATES = "for gates: `thresholds` say when a case passes"
PREDICTORS = "the URL of a service, or the name of a file of predictions"
NO_ENGINE = "and no source in `sources` has this name"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def said(text, name="s.queryeval.yaml"):
    """The only message, without the name of the file."""
    (line,) = problems(text, name)
    assert line.startswith(name)
    return line.removeprefix(f"{name}:")


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("kinds: sql", "unknown key 'kinds': 'kind' is there already: remove one of them"),
        ("model: predict.py:predict", "unknown key 'model': did you mean 'predictor'?"),
        ("db_id: a.db", "unknown key 'db_id': 'source' is there already: remove one of them"),
        ("timeouts: 3", "unknown key 'timeouts': did you mean 'timeout'?"),
        ("gates: []", "'gates' is not allowed at the top of a suite file: it belongs in a folder's queryeval.yaml"),
        ("max_rows: 100,000", f"{NUMBER_OF_ROWS} '100,000': write 100000"),
        ("max_rows: 1e5", f"{NUMBER_OF_ROWS} '1e5': write 100000"),
        ("max_rows: 100_000", f"{NUMBER_OF_ROWS} '100_000': write 100000"),
        ("timeout: 2,5", "timeout: expected a number above 0, found '2,5': write 2.5"),
        (
            "thresholds: 0.8",
            "thresholds: expected {METRIC: minimum}, found '0.8': name the metric, as in {execution_accuracy: 0.8}",
        ),
        ("options: {sql: {dialect: mssql}}", "unknown dialect 'mssql': did you mean 'tsql'?"),
        ("options: {sql: {dialect: MariaDB}}", "unknown dialect 'MariaDB': did you mean 'mysql'?"),
        ("timeout: none", "timeout: expected a number above 0, found 'none'"),
        ("metrics: {arity_f1: 1}", "metrics: expected a list, found a mapping: begin each item with `- `"),
        (
            "metrics: arity_f1, soft_f1",
            "metrics: expected a list, found 'arity_f1, soft_f1': write [arity_f1, soft_f1]",
        ),
        ("metrics: [acuracy]", "unknown metric 'acuracy': did you mean 'execution_accuracy'?"),
        ("metrics: [Soft_F1]", "unknown metric 'Soft_F1': did you mean 'soft_f1'?"),
        ("metrics: [pass_rate]", f"'pass_rate' is {OF_GATES}"),
        (
            "thresholds: {pass_rat: 0.9}",
            f"unknown metric 'pass_rat': did you mean 'pass_rate'? That is {OF_GATES}",
        ),
        ("options: {soft_f1: {alpha: 1}}", "metric 'soft_f1' has no option 'alpha': it has no options, so remove this"),
        ("trials_rule: {rate: 80}", "rate: expected a number above 0 and at most 1, found '80': write 0.8"),
        (
            "predictor: {python: predict.py:predict, concurency: 4}",
            "unknown setting 'concurency': did you mean 'concurrency'?",
        ),
        (
            "predictor: gpt4",
            f"unknown predictor 'gpt4': write FILE.py:FUNCTION, {PREDICTORS}",
        ),
        ("thresholds: {soft_f1: 95}", "expected a limit from 0 to 1 for 'soft_f1', found 95: write 0.95"),
        ("thresholds: {soft_f1: {max: 1.5}}", "expected a limit from 0 to 1 for 'soft_f1', found 1.5"),
        ("thresholds: {soft_f1: {minimum: 1}}", "unknown key 'minimum': did you mean 'min'?"),
        ("thresholds: {json_equal: 1}", "metric 'json_equal' does not apply to the kind 'sql': it is for json"),
        (
            "options: {alpha: 1}",
            "options for 'alpha', which is neither a metric nor a kind: write {METRIC: {alpha: …}}",
        ),
        (
            "metrics: [exact_match]",
            f"unknown metric 'exact_match': did you mean {EXACT}?",
        ),
        ("metrics: [accuracy]", "unknown metric 'accuracy': did you mean 'execution_accuracy'?"),
        (
            "compare: {numbers: 0.01}",
            "numbers: expected a mapping, found '0.01': write {abs: 0.01} or {rel: 0.01}",
        ),
        (
            "compare: {column_order: any}",
            f"unknown key 'column_order': choose from {', '.join(sorted(COMPARE))}",
        ),
        ("compare: [row_order]", "compare: expected a mapping, found a list: write `key: value`, without `- `"),
        ("compare: {numbers: {rel: 1%}}", "rel: expected a number from 0 on, found '1%': write 0.01"),
        (
            "trials_rule: 0.8",
            "trials_rule: expected mean, all, any or {rate: R} with R above 0 and at most 1, found '0.8'",
        ),
        (
            "tags: [very slow]",
            f"'very slow' {NO_MARKER}: write very-slow",
        ),
        ("predictor: predict.py", "unknown predictor 'predict.py': name its function, predict.py:predict"),
        (
            "predictor: python3 x.py",
            f"unknown predictor 'python3 x.py': {PROGRAM} [python3, x.py]}}`",
        ),
        ("predictor: host:8000/ask", "'host:8000/ask' has no scheme: write http://host:8000/ask"),
    ],
)
def test_a_mistake_in_a_setting(setting, message):
    assert said(f"{HEAD}{setting}\n{CASE}") == f"3: {message}"


def test_a_metric_that_is_like_none_leads_to_those_that_there_are():
    usual = "the usual ones are execution_accuracy, row_matching_f1, soft_f1, exact_set_match, valid_query, "
    lists = f"; docs/metrics.md lists all {len(METRICS)}, docs/extending.md shows how to add one"

    unknown = said(f"{HEAD}metrics: [my_own]\n{CASE}")
    of_words = said(f"{HEAD}metrics: [bleu]\n{CASE}")

    assert unknown.startswith(f"3: unknown metric 'my_own': {usual}")
    assert unknown.endswith(lists)
    assert of_words.startswith("3: unknown metric 'bleu': queries are not compared as text: use 'exact_")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sqlite", f"cannot tell which engine 'sqlite' is for, {NO_ENGINE}: write {{sqlite: FILE}}"),
        ("{postgres: localhost}", "unknown engine 'postgres': write {sqlalchemy: URL}"),
        ("{type: sqlite, path: a.db}", "unknown engine 'type': the engine's name is the key, as in {sqlite: FILE}"),
        ("{sqlite: {file: a.db}}", "unknown setting 'file': choose from path, script, variants"),
    ],
)
def test_a_mistake_in_a_source(source, message):
    assert said(f"kind: sql\nsource: {source}\n{CASE}") == f"2: {message}"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("SQL", "unknown kind 'SQL': did you mean 'sql'?"),
        ("sqlite", "unknown kind 'sqlite': did you mean 'sql'?"),
        ("[sql]", "kind: expected text, found a list: write one text, in quotes if it begins with [ or {"),
    ],
)
def test_a_mistake_in_the_kind(kind, message):
    assert said(f"source: a.db\nkind: {kind}\n{CASE}") == f"2: {message}"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("gold: x, predicted: y", "3: a case needs an id: add `id: NAME`"),
        ("id: , gold: x, predicted: y", "3: a case needs an id: write it behind `id:`"),
        (
            "id: how many, gold: x, predicted: y",
            "3: id 'how many' must consist of letters, digits and - _ . : / without '::': write how-many",
        ),
        (
            "id: a::b, gold: x, predicted: y",
            "3: id 'a::b' must consist of letters, digits and - _ . : / without '::': write a-b",
        ),
        (
            "id: a, gold: SELECT a, b FROM t, predicted: y",
            "3: unknown key 'b FROM t': quote the value before it, which a comma ends within { }",
        ),
        (
            "id: a, gold: x, predicted: y, PREFIX e: z",
            "3: unknown key 'PREFIX e': if it is a line of a query, indent it as the other lines of the block",
        ),
        ("id: a, gold: x, predicted: y, expected: z", f"3: unknown key 'expected': {STATED}"),
        (
            "id: a, gold: x, expected_sql: y",
            f"3: unknown key 'expected_sql': {STATED}, or write 'predicted' if it is the prediction",
        ),
        (
            "id: a, gold_table: {columns: [a], rows: []}, answer: y, predicted: z",
            "3: unknown key 'answer': 'gold_table' is there already: remove one of them",
        ),
        (
            "id: a, gold: x, predicted: y, output: z",
            "3: unknown key 'output': 'predicted' is there already: remove one of them",
        ),
        ("id: a, expected: z, predicted: y", "3: unknown key 'expected': did you mean 'gold'?"),
        ("name: a, gold: z, predicted: y", "3: unknown key 'name': did you mean 'id'?"),
        ("id: a, gold: '', predicted: y", "3: gold is empty: write the right query"),
        (
            "id: a, gold: [x, y], predicted: y",
            "3: expected a query, found a list: several right answers stand under `gold_any`",
        ),
        ("id: a, gold: x, predicted: [y]", "3: expected a query, found a list"),
        (
            "id: a, gold_table: [[1]], predicted: y",
            "3: gold_table: expected {columns: [NAME, …], rows: [[VALUE, …], …]}, found a list",
        ),
        ("id: a, gold_file: golds.sql, predicted: y", "3: golds.sql: no such file: did you mean 'gold.sql'?"),
        ("id: a, gold: x, predicted: y, metadata: z", "3: metadata: expected a mapping, found 'z': write `key: value`"),
        (
            "id: a, gold: x, predicted: y, allow_empty: 1",
            "3: allow_empty: expected true or false, found '1': write true",
        ),
        (
            "id: a, gold: x, predicted: y, skip: no",
            "3: skip: expected true, false or a reason, found 'no': write false",
        ),
    ],
)
def test_a_mistake_in_a_case(case, message):
    write("SELECT 1", "gold.sql")

    assert said(f"{HEAD}cases: [{{{case}}}]\n") == message


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("|", "gold is empty: indent its lines below `|`"),
        (
            ">\n      SELECT 1 -- one\n      FROM t",
            f"YAML joins the lines of this query, so that a comment swallows the next one: {BLOCK}",
        ),
    ],
)
def test_a_mistake_in_a_block(gold, message):
    assert said(f"{HEAD}cases:\n  - id: a\n    gold: {gold}\n    predicted: x\n") == f"5: {message}"


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ("golds/*.yaml", "no file in {here} fits 'golds/*.yaml': correct the path, which is relative to the suite"),
        (
            "t.queryeval.yaml",
            "only suites and settings fit 't.queryeval.yaml', which are not read as cases: rename them",
        ),
    ],
)
def test_a_mistake_in_the_files_of_cases(cases, message):
    write("", "t.queryeval.yaml")

    assert said(f"{HEAD}cases: {cases}\n") == f"3: {message.format(here=Path.cwd())}"


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("{arity_f1: 0.8}", "a gate names its metric under a key: write {metric: arity_f1, min: NUMBER}"),
        ("{metric: pass_rate, min: 90}", "expected a limit from 0 to 1 for 'pass_rate', found 90: write 0.9"),
        ("{metric: pass_rate, min: 1, where: {tags: x}}", "unknown key 'tags': did you mean 'tag'?"),
        ("pass_rate", "item of gates: expected a mapping, found 'pass_rate': write {metric: pass_rate, min: NUMBER}"),
        (
            "execution_accuracy >= 0.8",
            f"{NO_MAPPING} 'execution_accuracy >= 0.8': write {{metric: execution_accuracy, min: 0.8}}",
        ),
        (
            "{no_regression: soft_f1}",
            "no_regression: expected a mapping, found 'soft_f1': write {metric: soft_f1}",
        ),
    ],
)
def test_a_mistake_in_a_gate(gate, message):
    write(f"gates: [{gate}]\n", "queryeval.yaml")

    assert problems(f"{HEAD}{CASE}") == [f"queryeval.yaml:1: {message}"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"id": "a", "gold": "x"},',
            "1:25: not JSON: more text behind the end of the value: a line holds one JSON object",
        ),
        (
            "[",
            f"1:2: not JSON: it ends too early: a value, a `]` or a `}}` is missing: {ONE}",
        ),
        ('{"id": "a", "gold": "x",}', "1:25: not JSON: a comma before `}`: remove it"),
        ('{"id": "a", "tags": ["x", ]}', "1:27: not JSON: a comma before `]`: remove it"),
        ("{'id': 'a'}", "1:2: not JSON: single quotes: names and texts stand in double quotes"),
        ('{"id": "a" "gold": "x"}', f"1:12: not JSON: {NO_COMMA}"),
        ('{"id": "a", "skip": True}', "1:21: not JSON: True: write true"),
        ('{"id": a}', "1:8: not JSON: expected a value: texts stand in double quotes"),
        ('{"id": "a}', "1:8: not JSON: a text without a closing double quote"),
        ('{"id": "a", "gold": "a\\d"}', "1:23: not JSON: a single `\\` in a text: write `\\\\`"),
        ('{id: "a"}', "1:2: not JSON: expected a name in double quotes"),
        ('["x"]', '1: expected an object, {"id": …, "gold": …}, found a list'),
        (
            '{"id": "a", "gold": "x", "predicted": "y"}',
            "1: no kind: add `kind: sql | sparql | json | sdmx` to a queryeval.yaml beside it",
        ),
    ],
)
def test_a_mistake_in_json_lines(line, message):
    assert said(f"{line}\n", "s.queryeval.jsonl") == message


def test_a_file_in_another_encoding():
    Path("s.queryeval.yaml").write_bytes(f"{HEAD}{CASE}".encode("utf-16"))

    with pytest.raises(SuiteError, match=r"1:1: byte 0xff is not UTF-8: save the file as UTF-8$"):
        load_cases("s.queryeval.yaml")


@pytest.mark.parametrize("text", [f"\ufeff{HEAD}{CASE}", f"{HEAD}{CASE}".replace("\n", "\r\n")], ids=["mark", "crlf"])
def test_a_byte_order_mark_and_other_line_ends_are_no_mistake(text):
    Path("s.queryeval.yaml").write_bytes(text.encode())

    assert len(load_cases("s.queryeval.yaml")) == 1


def message_of_run(suite):
    """The message of the one case, as the report has it."""
    write(suite, "s.queryeval.yaml")
    (case,) = evaluate(load_cases("s.queryeval.yaml"))["cases"]
    return case["message"]


def test_a_database_that_is_missing():
    path = Path.cwd() / "a.db"
    script = "a script builds a database: {sqlite: {script: FILE}} (s.queryeval.yaml:2)"
    correct = f"correct the path, which is relative to {Path.cwd()}"

    assert message_of_run(f"{HEAD}{CASE}") == f"source 'a.db': {path}: no such file: {correct}; {script}"


def test_a_compressed_file_that_is_missing_beside_the_plain_one():
    write("", "data.ttl")

    said = message_of_run(f"kind: sparql\nsource: data.ttl.gz\n{CASE}")

    assert said.endswith("data.ttl.gz: no such file: did you mean 'data.ttl'? (s.queryeval.yaml:2)")


def test_a_predictor_that_cannot_be_opened_is_told_at_its_own_line():
    write("CREATE TABLE t (a);", "a.sql")
    source = "kind: sql\nsource: {sqlite: {script: a.sql}}\n"

    said = message_of_run(f"{source}predictor: my_app.nl2sql:predict\n{CASE.replace('    predicted: SELECT 1', '')}")

    assert said.startswith("my_app.nl2sql:predict: cannot be imported: ModuleNotFoundError: No module named")
    assert said.endswith("(s.queryeval.yaml:3)")


@pytest.mark.feature("sparql_endpoint")
def test_an_endpoint_that_refuses():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    said = message_of_run(f"kind: sparql\nsource: http://127.0.0.1:{port}/sparql\n{CASE}")

    nothing = f"nothing answers at 127.0.0.1:{port} (Connection refused): start the server, or correct the URL"
    assert said == f"source 'http://127.0.0.1:{port}/sparql': {nothing} (s.queryeval.yaml:2)"


def test_a_file_that_is_no_suite():
    write("{}", "report.json")

    with pytest.raises(SuiteError) as caught:
        load_cases("report.json")

    names = "expected files named *.queryeval.yaml or *.queryeval.jsonl"
    assert str(caught.value) == f"report.json: is not a suite: {names}"
