import json
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from suites import BLOCK, HEAD, enter, load, problems, write

from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.core.model import PredictorSpec, QueryOrAnswer, Source, Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.languages import KINDS
from pytest_queryeval.suites import load_cases
from pytest_queryeval.suites.keys import KEYS

SETTINGS = "kind: sql\nsource: a.db\n"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def test_the_least_that_works():
    (loaded,) = load(
        "kind: sql\nsource: concerts.db\npredictor: predict.py:predict\ncases:\n"
        "  - id: singers-per-country\n"
        "    question: How many singers are there per country?\n"
        "    gold: |\n      SELECT country, count(*) FROM singer GROUP BY country\n"
    )

    working_folder = Path.cwd()
    assert loaded.id == "singers-per-country"
    assert str(loaded.location) == "s.queryeval.yaml:5"
    assert loaded.settings.kind == "sql"
    assert loaded.settings.source == Source(
        name="concerts.db", engine="sqlite", settings={"path": "concerts.db"}, folder=working_folder
    )
    assert loaded.question == "How many singers are there per country?"
    assert loaded.golds == (QueryOrAnswer(query="SELECT country, count(*) FROM singer GROUP BY country\n"),)
    assert loaded.predicted is None
    assert loaded.settings.predictor == PredictorSpec(
        kind="python", settings={"target": "predict.py:predict"}, folder=working_folder
    )
    assert loaded.settings.metrics == KINDS["sql"].default_metrics
    assert loaded.settings.thresholds == {"execution_accuracy": Threshold(minimum=1.0)}
    assert loaded.settings.policy == Policy()
    assert (
        loaded.settings.timeout,
        loaded.settings.max_rows,
        loaded.settings.report_rows,
        loaded.settings.on_miss,
    ) == (30, 100_000, 20, "fail")
    assert (loaded.evidence, loaded.tags, loaded.difficulty, loaded.metadata) == ("", (), None, {})
    assert (loaded.skip, loaded.xfail, loaded.allow_empty) == (None, None, False)


def test_all_problems_of_a_file_come_in_one_error_in_the_order_of_their_lines():
    lines = problems(
        "kind: sql\nsource: a.db\ntimeout: soon\nmetrics: [arity_f2, valid_query]\ncases:\n"
        "  - id: a\n    golden: SELECT 1\n"
        "  - id: a\n    gold: SELECT 1\n    predicted:\n    skip: []\n"
        "  - id: b c\n    gold: SELECT 1\n    gold: SELECT 2\n"
        "  - just text\n"
    )

    assert lines == [
        "s.queryeval.yaml:3: timeout: expected a number above 0, found 'soon'",
        "s.queryeval.yaml:4: unknown metric 'arity_f2': did you mean 'arity_f1'?",
        "s.queryeval.yaml:7: unknown key 'golden': did you mean 'gold'?",
        "s.queryeval.yaml:8: duplicate id 'a', first used on line 6: give one of them another id",
        """s.queryeval.yaml:10: 'predicted' is null: leave it out, or write "" for an empty answer""",
        "s.queryeval.yaml:11: skip: expected text, found a list: write one text, in quotes if it begins with [ or {",
        "s.queryeval.yaml:12: id 'b c' must consist of letters, digits and - _ . : / without '::': write b-c",
        "s.queryeval.yaml:14: duplicate key 'gold', first on line 13: remove one, or begin another item by `- `",
        "s.queryeval.yaml:15: item of cases: expected a mapping, found 'just text': write {KEY: VALUE}",
    ]


def test_problems_of_one_sort_are_cut_short():
    cases = "".join(f"  - {{id: c{number}, gold: SELECT 1}}\n" for number in range(1000))

    lines = problems(f"kind: sql\nsource: a.db\ncases:\n{cases}")

    assert lines[0] == "s.queryeval.yaml:4: no prediction: add `predicted`, or `predictor` to the file"
    assert len(lines) == 5
    assert lines[-1].endswith("to the file (and at 995 more places)")


def test_problems_are_told_once_where_all_cases_share_them():
    cases = "".join(f"  - {{id: c{number}, gold: SELECT 1, predicted: x}}\n" for number in range(3))

    assert problems(f"kind: sql\nsource: concerts\ncases:\n{cases}") == [
        (
            "s.queryeval.yaml:2: cannot tell which engine 'concerts' is for, and no source in `sources` has this name: "
            "choose from .db, .sqlite, .sqlite3, .duckdb, .ttl, .nt, .nq, .trig, .rdf, .owl, .jsonld, https://…"
        )
    ]


def test_a_variable_without_its_closing_brace_is_named():
    assert problems('kind: sql\nsource: "${DB_FILE"\ncases:\n  - {id: a, gold: SELECT 1, predicted: x}\n') == [
        "s.queryeval.yaml:2: the `${` in '${DB_FILE' is not closed: write `}` behind the variable's name"
    ]


def test_nothing_is_said_of_settings_that_a_problem_hides():
    assert problems("kind: sqll\nsource: a.db\ncases:\n  - {id: a, gold: x}\n") == [
        "s.queryeval.yaml:1: unknown kind 'sqll': did you mean 'sql'?"
    ]


def test_paths_in_messages_are_absolute_outside_of_the_current_folder(working_folder, monkeypatch):
    path = write("kind: sql\n").absolute()
    (working_folder / "elsewhere").mkdir()
    monkeypatch.chdir(working_folder / "elsewhere")

    with pytest.raises(SuiteError) as caught:
        load_cases(path)

    assert str(caught.value) == f"{path}:1: a suite needs `cases`: add a list of them"


EMPTY = ": the file is empty: write `kind: sql`, a `source`, a `predictor`, and a list of `cases`"
NO_LIST = ":3: cases: expected a list, found"
AS_ITEMS = "write each case as an item, `- {id: …, gold: …}`"
NO_MAPPING = ":1: expected a mapping at the top of a suite, found a"
A_CASE = (
    ":1: this is a case and not a suite: write `kind`, `predictor` and `cases:` above it and indent it as an item, "
    "`- id: …`; or rename the file to s.yaml and write `cases: s.yaml` into a suite beside it"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", EMPTY),
        ("# nothing\n", EMPTY),
        (
            "- id: a\n  gold: SELECT 1\n",
            f"{NO_MAPPING} list: put `cases:` above it, with `kind` and `source` unless a queryeval.yaml sets them",
        ),
        (
            "just text",
            f"{NO_MAPPING} text: write `kind: sql`, a `source`, a `predictor`, and a list of `cases`",
        ),
        (f"{SETTINGS}", ":1: a suite needs `cases`: add a list of them"),
        (f"{SETTINGS}cases:\n", f"{NO_LIST} nothing: {AS_ITEMS}"),
        (f"{SETTINGS}cases: []\n", ": there is no case in it: add one"),
        (
            f"{SETTINGS}cases:\n  a:\n    gold: x\n",
            f"{NO_LIST} a mapping: {AS_ITEMS}",
        ),
        (f"{SETTINGS}cases:\n  -id: a\n", f"{NO_LIST} a mapping: {AS_ITEMS}"),
        (f"{SETTINGS}id: a\ngold: SELECT 1\n", A_CASE),
        (
            "- role: user\n  content: Which rivers?\n- role: assistant\n  content: '[]'\n",
            f":1: this is a conversation and not a suite: {A_CASE.partition('; or ')[2]}",
        ),
        ("id: a\nname: Trade\nconversation:\n  - {role: user, content: Hello, target: {}}\n", A_CASE),
    ],
)
def test_a_file_that_is_no_suite_is_told_what_a_suite_looks_like(text, message):
    assert problems(text) == [f"s.queryeval.yaml{message}"]


def test_syntax_errors_name_line_and_column():
    assert problems(HEAD + "  - id: a\n    gold: SELECT a: b\n") == [
        f"s.queryeval.yaml:6:19: not YAML: a plain value cannot hold `: `: {BLOCK}"
    ]


def test_json_lines_hold_a_case_each():
    write("kind: sql\nsource: a.db\npredictor: inline\ntags: [all]\n", "queryeval.yaml")

    loaded = load(
        '\ufeff{"id": 12, "gold": "SELECT 1 -- x", "predicted": "y", "evidence": null, "metadata": {"a": 1.0}}\r\n\r\n'
        '{"id": "b", "gold": "SELECT 1\\n# x", "predicted": "", "tags": ["one"], "difficulty": "easy"}\n',
        "s.queryeval.jsonl",
    )

    assert [case.id for case in loaded] == ["12", "b"]
    assert [str(case.location) for case in loaded] == ["s.queryeval.jsonl:1", "s.queryeval.jsonl:3"]
    assert [case.tags for case in loaded] == [("all",), ("all", "one")]
    assert loaded[0].golds[0].query == "SELECT 1 -- x"
    assert loaded[0].metadata == {"a": 1.0}


def test_problems_of_json_lines_come_in_one_error():
    write("kind: sql\nsource: a.db\npredictor: inline\n", "queryeval.yaml")

    assert problems(
        '{"id": "a", "gold": "x", "predicted": null}\n'
        '{"id": "a", "golden": "x", "gold": "x", "predicted": "y"}\n{"id"\n[]\n',
        "s.queryeval.jsonl",
    ) == [
        "s.queryeval.jsonl:1: 'predicted' is null: leave it out, or write \"\" for an empty answer",
        "s.queryeval.jsonl:2: unknown key 'golden': remove it, because 'gold' is there already",
        "s.queryeval.jsonl:2: duplicate id 'a', first used on line 1: give one of them another id",
        (
            "s.queryeval.jsonl:3:6: not JSON: it ends too early: a value, a `]` or a `}` is missing: "
            "a line holds one JSON object"
        ),
        's.queryeval.jsonl:4: expected an object, {"id": …, "gold": …}, found a list',
    ]


def test_an_empty_file_of_json_lines_is_a_problem():
    assert problems("\n", "s.queryeval.jsonl") == ["s.queryeval.jsonl: there is no case in it: add one"]


def test_a_glob_names_files_with_one_case_or_a_list_each():
    write("id: b\ngold_file: b.sql\npredicted: x\nsource: own.db\n", "imf/b.yaml")
    write("SELECT 2", "imf/b.sql")
    write("- {id: a1, gold: x, predicted: y}\n- {id: a2, gold: x, predicted: y}\n", "imf/2024/a.yaml")
    write("not: read", "imf/queryeval.yaml")
    write("not: read", "imf/other.queryeval.yaml")

    loaded = load('kind: sql\nsource: a.db\ncases: "imf/**/*.yaml"\n')

    assert [(case.id, str(case.location)) for case in loaded] == [
        ("a1", "imf/2024/a.yaml:1"),
        ("a2", "imf/2024/a.yaml:2"),
        ("b", "imf/b.yaml:1"),
    ]
    assert loaded[2].golds == (QueryOrAnswer(query="SELECT 2"),)
    assert [case.settings.source.folder.name for case in loaded] == [Path.cwd().name, Path.cwd().name, "imf"]


def test_problems_in_case_files_name_these_files():
    write("id: a\ngolden: x\ngold: x\npredicted: y\n", "c/a.yaml")
    write("- {id: a, gold: x, predicted: y}\n", "c/b.yaml")
    write("a: b: c", "c/c.yaml")
    write("", "c/d.yaml")

    assert problems("kind: sql\nsource: a.db\ncases: c/*.yaml\n") == [
        "c/a.yaml:2: unknown key 'golden': remove it, because 'gold' is there already",
        "c/b.yaml:1: duplicate id 'a', first used at c/a.yaml:1: give one of them another id",
        "c/c.yaml:1:5: not YAML: a plain value cannot hold `: `: quote the value",
        "c/d.yaml: there is no case in it: add one",
    ]


def test_a_glob_may_lead_upwards():
    write("id: a\ngold: x\npredicted: y\n", "c/a.yaml")

    assert [case.id for case in load("kind: sql\nsource: a.db\ncases: ../c/*.yaml\n", "d/s.queryeval.yaml")] == ["a"]


@pytest.mark.parametrize("pattern", ["c/*.yaml", '"\\0"', '"*\\0"'])
def test_a_glob_that_fits_nothing_is_a_problem(pattern):
    (line,) = problems(f"kind: sql\nsource: a.db\ncases: {pattern}\n")

    assert line.startswith("s.queryeval.yaml:3: ")


def is_read_or_refused(path):
    try:
        return bool(load_cases(path))
    except SuiteError as error:
        return bool(error.problems)


pieces = st.sampled_from(
    [
        *(
            *KEYS,
            *KEYS,
            ": ",
            ": |\n  ",
            "\n",
            "\n  - ",
            "\n    ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ",",
            "'",
            '"',
            "&a ",
            "*a",
        ),
        *("#", "--", "sql", "a.db", "1", "null", "~", "${A}", "execution_accuracy", "SELECT 1", "x.csv", "http://["),
        *("!!int ", "\0", "é", "columns", "rows", "min", "*.yaml", "sqlite", "inline", "\\ud800", "<<", "a:b"),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pieces, max_size=30).map("".join) | st.text(string.printable))
@example(HEAD + "  - {id: a, gold_file: '\\0.sql'}")
@example(HEAD + '  - {id: a, gold_file: "\\0.sql"}')
@example(HEAD + '  - {id: a, gold_file: "é/..//.sql"}')
@example("cases:\n  - {id: [a], gold: {a: b}, tags: {a: b}, kind: [sql], source: http://[}")
def test_no_text_raises_anything_but_a_suite_error(working_folder, text):
    for name, content in (
        ("x.queryeval.yaml", text),
        ("y.queryeval.yaml", HEAD + "  - id: a\n    " + text.replace("\n", "\n    ")),
        ("z.queryeval.jsonl", text),
    ):
        (working_folder / name).write_bytes(content.encode())
        assert is_read_or_refused(working_folder / name)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["min", "rel", "sqlite", "a"]), inner),
    max_leaves=5,
)


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(sorted(KEYS)), json_values, max_size=6))
def test_no_value_of_any_key_raises_anything_but_a_suite_error(working_folder, entries):
    for name, content in (
        ("x.queryeval.jsonl", json.dumps({"id": "a", "gold": "x", **entries})),
        ("y.queryeval.yaml", json.dumps({"cases": [{"id": "a", "gold": "x"}], **entries}, ensure_ascii=False)),
    ):
        (working_folder / name).write_text(content, encoding="utf-8", errors="replace")
        assert is_read_or_refused(working_folder / name)
