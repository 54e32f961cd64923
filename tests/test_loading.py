"""Suites as a whole: what any text, any value and any file comes to; the tables in `reading` have examples."""

import json
import os
import string
import threading
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import suite_tables
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from suites import HEAD, enter, load, problems, write
from trees import trees

import pytest_queryeval
from pytest_queryeval import load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import QueryEvalWarning, SuiteError
from pytest_queryeval.documents import yaml_nodes  # white box: which of its two parsers reads YAML
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.suites import load_suite

SETTINGS = "kind: sql\nsource: a.db\n"
CASES = "cases:\n  - {id: a, gold: x, predicted: y}\n"
PARSERS = (yaml.CBaseLoader, yaml.BaseLoader)
IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@contextmanager
def parsed_by(parser):
    """Read YAML with one of both parsers: the one in Python stands in where libyaml is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_nodes, "_PARSER", parser)
        yield


def refusal(path):
    with pytest.raises(SuiteError) as caught:
        load_cases(path)
    return str(caught.value)


# Any text, any value


def as_yaml(value, indent=0):
    """Block style for lists and mappings, JSON for the rest."""
    margin = "\n" + "  " * indent
    if isinstance(value, dict) and value:
        return "".join(
            f"{margin}{json.dumps(key, ensure_ascii=False)}: {as_yaml(item, indent + 1)}" for key, item in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"{margin}- {as_yaml(item, indent + 1)}" for item in value)
    return json.dumps(value, ensure_ascii=False)


@IN_ONE_FOLDER
@given(trees)
@example({"": ""})
def test_any_value_is_read_back_as_it_was_written(tree):
    in_json = json.dumps({"id": "a", "gold": "x", "predicted": "y", "metadata": {"of": tree}})
    in_yaml = f"{SETTINGS}cases:\n  - id: a\n    gold: x\n    predicted: y\n    metadata: {as_yaml({'of': tree}, 3)}\n"
    write(SETTINGS, "queryeval.yaml")
    assert load(f"{in_json}\n", "s.queryeval.jsonl")[0].metadata == {"of": tree}
    for parser in PARSERS:
        with parsed_by(parser):
            assert load(in_yaml)[0].metadata == {"of": tree}


def is_read_or_refused(path):
    try:
        return bool(load_cases(path))
    except SuiteError as error:
        return bool(error.problems) and len(str(error).split("\n")) == len({str(it) for it in error.problems})


WORDS = [
    *("gold", "predicted", "id", "cases", "source", "kind", "metrics", "thresholds", "compare", "predictor", "tags"),
    *("metadata", "question", "gold_file", "gold_table", "options", "trials", "env_file", "sources"),
]
PIECES = st.sampled_from(
    [
        *(*WORDS, ": ", ": |\n  ", "\n", "\n  - ", "\n    ", "- ", "{", "}", "[", "]", ",", "'", '"', "&a ", "*a"),
        *("#", "--", "sql", "a.db", "1", "null", "~", "${A}", "execution_accuracy", "SELECT 1", "x.csv", "http://["),
        *("!!int ", "\0", "é", "columns", "rows", "min", "*.yaml", "sqlite", "inline", "\\ud800", "<<", "a:b"),
    ]
)
SYNTAX = st.text(string.ascii_lowercase[:3] + "  \n\n:-[]{}&*!|>'\"#%,?@`\\\t\r0\x00\x85\u2028é")


@IN_ONE_FOLDER
@given(st.lists(PIECES, max_size=30).map("".join) | SYNTAX | st.text(string.printable) | st.text())
@example(HEAD + "  - {id: a, gold_file: '\\0.sql'}")
@example(HEAD + '  - {id: a, gold_file: "\\0.sql"}')
@example(HEAD + '  - {id: a, gold_file: "é/..//.sql"}')
@example("cases:\n  - {id: [a], gold: {a: b}, tags: {a: b}, kind: [sql], source: http://[}")
@example('"\\UFFFFFFFF"')
@example('"\\ud800"')
@example("%YAML 9.9\n--- a")
@example("!<tag:yaml.org,2002:int> 5")
def test_no_text_raises_anything_but_a_suite_error(working_folder, text):
    for name, content in (
        ("x.queryeval.yaml", text),
        ("y.queryeval.yaml", HEAD + "  - id: a\n    " + text.replace("\n", "\n    ")),
        ("z.queryeval.jsonl", text),
    ):
        (working_folder / name).write_bytes(content.encode("utf-8", "ignore"))
        for parser in PARSERS:
            with parsed_by(parser):
                assert is_read_or_refused(working_folder / name)


SCHEMA = Path(pytest_queryeval.__file__).with_name("suite.schema.json")
KEYS = sorted(json.loads(SCHEMA.read_text(encoding="utf-8"))["definitions"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["min", "rel", "sqlite", "a"]), inner),
    max_leaves=5,
)


@pytest.mark.long
@IN_ONE_FOLDER
@given(st.dictionaries(st.sampled_from(KEYS), JSON_VALUES, max_size=6))
def test_no_value_of_any_key_raises_anything_but_a_suite_error(working_folder, entries):
    for name, content in (
        ("x.queryeval.jsonl", json.dumps({"id": "a", "gold": "x", **entries})),
        ("y.queryeval.yaml", json.dumps({"cases": [{"id": "a", "gold": "x"}], **entries}, ensure_ascii=False)),
    ):
        (working_folder / name).write_text(content, encoding="utf-8", errors="replace")
        assert is_read_or_refused(working_folder / name)


def test_both_parsers_read_the_same_suites():
    """Of some mistakes, tabs among them, the parser in Python says less."""
    for path in sorted(suite_tables.TESTS.parent.glob("example_suite/*/*.queryeval.y*ml")):
        nodes = []
        for parser in PARSERS:
            with parsed_by(parser):
                nodes.append(repr(json_value(yaml_nodes.read_yaml(file_at(path)).root)))
        assert nodes[0] == nodes[1]


# Files


@pytest.mark.parametrize("name", ["s.queryeval.yaml", "s.queryeval.jsonl"])
def test_bytes_that_are_not_utf8_are_reported_with_their_place(name):
    Path(name).write_bytes(b'{"a": 1}\n' + b'"\xc3\xa9 \xff"\n')

    assert f"{name}:2:" in refusal(name)
    assert "byte 0xff is not UTF-8: save the file as UTF-8" in refusal(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("s.queryeval.yaml", "is larger than 32 MiB: split it"),
        ("s.queryeval.jsonl", "2: the line is longer than 4 MiB"),
    ],
)
def test_too_large_files_and_lines_are_refused(name, said):
    Path(name).write_bytes(b"{}\n" + b"a" * (32 * 1024 * 1024))

    assert said in refusal(name)


def test_the_longest_line_is_read():
    write(SETTINGS, "queryeval.yaml")
    case = '{"id": "a", "question": "?", "gold": "SELECT 1", "predicted": "SELECT 1"}'.ljust(4 * 1024 * 1024)

    Path("s.queryeval.jsonl").write_text(f"{case}\n")
    assert [case.id for case in load_cases("s.queryeval.jsonl")] == ["a"]

    Path("s.queryeval.jsonl").write_text(f"{case} \n")
    assert "1: the line is longer than 4 MiB" in refusal("s.queryeval.jsonl")


@pytest.mark.parametrize("digits", [5_000, 100_000])
def test_numbers_of_many_digits_are_refused(digits):
    write(SETTINGS, "queryeval.yaml")
    number = "9" * digits

    in_json = problems(
        f'{{"id": "a", "gold": "x", "predicted": "y", "metadata": {{"a": {number}}}}}', "s.queryeval.jsonl"
    )
    in_yaml = problems(f"cases:\n  - {{id: a, gold: x, predicted: y, metadata: {{a: {number}}}}}\n", "t.queryeval.yaml")

    said = f"a number of {digits} characters is too large: write a smaller one, or a text in double quotes"
    assert (in_json, in_yaml) == ([f"s.queryeval.jsonl:1: {said}"], [f"t.queryeval.yaml:2: {said}"])


def test_missing_files_and_folders_are_problems(working_folder):
    missing = "none.queryeval.yaml: no such file: correct the path, which leads to"
    assert refusal("none.queryeval.yaml") == f"{missing} {working_folder}/none.queryeval.yaml"
    Path("folder.queryeval.yaml").mkdir()
    write(f"{SETTINGS}cases: folder.queryeval.yaml\n")
    assert "no suite below" in refusal("folder.queryeval.yaml")


def test_a_pipe_is_refused_and_not_waited_for(working_folder):
    os.mkfifo(working_folder / "pipe.queryeval.yaml")
    outcome = []
    reading = threading.Thread(target=lambda: outcome.append(refusal("pipe.queryeval.yaml")), daemon=True)

    reading.start()
    reading.join(10)

    assert outcome == ["pipe.queryeval.yaml: is not a file"]


# Folders


def test_folders_above_the_root_do_not_count(working_folder):
    write("kind: sql\nsource: top.db\ntimeout: 1\n", "queryeval.yaml")
    write("kind: sql\nsource: a.db\n", "a/queryeval.yaml")
    path = write(CASES, "a/b/s.queryeval.yaml")

    assert load_suite(path, root=working_folder).cases[0].settings.timeout == 1
    assert load_suite(path, root=working_folder / "a").cases[0].settings.timeout == 30
    assert load_cases(path, root=Path("a"))[0].settings.timeout == 30


def test_the_root_is_the_current_folder_if_it_contains_the_path(working_folder, monkeypatch):
    write("timeout: 1\n", "queryeval.yaml")
    write("kind: sql\nsource: a.db\n", "a/queryeval.yaml")
    path = write(CASES, "a/s.queryeval.yaml").absolute()

    assert load_cases(path)[0].settings.timeout == 1
    (working_folder / "other").mkdir()
    monkeypatch.chdir("other")
    assert load_cases(path)[0].settings.timeout == load_cases(path.parent)[0].settings.timeout == 30


def test_problems_of_a_folder_are_raised_for_every_file_below_it(working_folder):
    write("kind: sql\nsource: a.db\n", "queryeval.yaml")
    write("timout: 1\n", "a/queryeval.yaml")
    folders = {}

    for name in ("a/s.queryeval.yaml", "a/b/t.queryeval.yaml"):
        with pytest.raises(SuiteError, match=r"a/queryeval\.yaml:1: unknown key 'timout': did you mean 'timeout'\?"):
            load_suite(write(CASES, name), root=working_folder, folders=folders)
    assert load_suite(write(CASES, "c/s.queryeval.yaml"), root=working_folder, folders=folders)


# What suites need of their environment


@pytest.fixture
def absent():
    """An extra that is not installed."""
    try:
        distribution("snowflake-sqlalchemy")
    except PackageNotFoundError:
        return "snowflake"
    pytest.skip("all extras are installed")


HINT = r"needs snowflake-sqlalchemy.*: pip install 'pytest-queryeval\[snowflake\]'"


def test_a_suite_or_folder_whose_extra_is_missing_is_left_out_unread_and_the_others_are_read(absent):
    write(f"kind: sql\nrequires: [excel, {absent}]\nsource: {{typo: 1}}\ncases: 5\n", "one.queryeval.yaml")
    write(f"requires: {absent}\nsources: {{a: {{typo: 1}}}}\n", "folder/queryeval.yaml")
    write(f"{SETTINGS}{CASES}", "folder/deep/s.queryeval.yaml")
    write(f"requires: excel\n{SETTINGS}{CASES}", "two.queryeval.yaml")

    with pytest.warns(QueryEvalWarning, match=HINT) as warned:
        cases = load_cases(".")

    assert [str(case.location.path) for case in cases] == ["two.queryeval.yaml"]
    assert len(warned) == 2


def test_variables_of_the_environment_come_before_those_of_a_file_which_is_exported_if_the_folder_says_so(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ) | {"SET_VARIABLE": "environment"})
    suite = "kind: sql\nsource: {sqlite: '${SET_VARIABLE}${DB_FILE}'}\n" + CASES
    write("DB_FILE=a.sqlite\nSET_VARIABLE=file", ".env")
    paths, exported = [], []
    for setting in (".env", "{path: .env, export: true}"):
        write(f"env_file: {setting}\n", "queryeval.yaml")
        paths.append(load(suite)[0].settings.source.settings["path"])
        exported.append((os.environ.get("DB_FILE"), os.environ["SET_VARIABLE"]))

    assert paths == ["environmenta.sqlite"] * 2
    assert exported == [(None, "environment"), ("a.sqlite", "environment")]


@pytest.mark.feature("evaluate")
def test_secrets_in_a_file_of_variables_are_kept_out_of_what_is_printed(capsys):
    write("env_file: .env\n", "queryeval.yaml")
    write("SHOP_API_TOKEN=correct-horse-battery", ".env")
    write("metrics: [correct-horse-battery]\n")

    with pytest.raises(SystemExit):
        main(["evaluate", "."])

    output = "".join(capsys.readouterr())
    assert "unknown metric '[redacted]'" in output
    assert "correct-horse-battery" not in output
