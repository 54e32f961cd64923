import string
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_queryeval.engines import ENGINES
from pytest_queryeval.errors import SuiteError
from pytest_queryeval.keys import KEYS
from pytest_queryeval.kinds import KINDS
from pytest_queryeval.loading import load_cases
from pytest_queryeval.metric import Metric
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.model import PredictorSpec, Source, Stated, Threshold
from pytest_queryeval.policy import Policy
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.table import Table

HEAD = "kind: sql\nsource: a.db\npredictor: inline\ncases:\n"
BLOCK = "write the query as a block: `gold: |`"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def later_members(monkeypatch):
    """Stand-ins for members of the registries that other releases bring."""
    for registry, names in ((ENGINES, ("duckdb", "rdf", "endpoint", "sqlalchemy")), (PREDICTORS, ("http", "command"))):
        monkeypatch.setattr(registry, "_members", {**registry._members, **dict.fromkeys(names, object())})
    sparql = SimpleNamespace(
        name="sparql",
        default_metrics=("arity_f1",),
        default_thresholds={"arity_f1": 0.5},
        has_queries=True,
        text_numbers=True,
    )
    monkeypatch.setattr(KINDS, "_members", {**KINDS._members, "sparql": sparql})
    only_sql = Metric(function=lambda gold, predicted: 1.0, kinds=frozenset({"sql"}), options=frozenset({"alpha"}))
    monkeypatch.setattr(METRICS, "_members", {**METRICS._members, "only_sql": only_sql})


def write(text, name="s.queryeval.yaml"):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def load(text, name="s.queryeval.yaml", **arguments):
    return load_cases(write(text, name), **arguments)


def case(*lines, head="kind: sql\nsource: a.db\n"):
    """The one case of a suite, with what a case needs and `lines` besides."""
    stated = {line.partition(":")[0] for line in lines}
    needed = {"id": "id: a", "gold": "gold: SELECT 1", "predicted": "predicted: SELECT 2"}
    if stated & {"gold_any", "gold_table", "gold_file"}:
        del needed["gold"]
    if stated & {"predicted_table", "predicted_file"}:
        del needed["predicted"]
    written = [line for key, line in needed.items() if key not in stated] + list(lines)
    indented = "\n".join(written).replace("\n", "\n    ")
    (loaded,) = load(f"{head}cases:\n  - {indented}\n")
    return loaded


def problems(text, name="s.queryeval.yaml", **arguments):
    with pytest.raises(SuiteError) as caught:
        load(text, name, **arguments)
    return str(caught.value).split("\n")


def problem(*lines, head="kind: sql\nsource: a.db\n"):
    """What is wrong with the one case of a suite."""
    with pytest.raises(SuiteError) as caught:
        case(*lines, head=head)
    (line,) = str(caught.value).split("\n")
    return line.partition(": ")[2]


def top_problem(*lines):
    """What is wrong with the settings at the top of a suite."""
    text = "".join(f"{line}\n" for line in lines)
    (line,) = problems(f"{text}kind: sql\nsource: a.db\ncases:\n  - {{id: a, gold: x, predicted: y}}\n")
    return line.partition(": ")[2]


# Cases as a whole


def test_the_least_that_works():
    (loaded,) = load(
        "kind: sql\nsource: concerts.db\npredictor: predict.py:predict\ncases:\n"
        "  - id: singers-per-country\n"
        "    question: How many singers are there per country?\n"
        "    gold: |\n      SELECT country, count(*) FROM singer GROUP BY country\n"
    )

    here = Path.cwd()
    assert loaded.id == "singers-per-country"
    assert str(loaded.location) == "s.queryeval.yaml:5"
    assert loaded.kind == "sql"
    assert loaded.source == Source(name="concerts.db", engine="sqlite", settings={"path": "concerts.db"}, folder=here)
    assert loaded.question == "How many singers are there per country?"
    assert loaded.golds == (Stated(query="SELECT country, count(*) FROM singer GROUP BY country\n"),)
    assert loaded.predicted is None
    assert loaded.predictor == PredictorSpec(kind="python", settings={"target": "predict.py:predict"}, folder=here)
    assert loaded.metrics == KINDS["sql"].default_metrics
    assert loaded.thresholds == {"execution_accuracy": Threshold(minimum=1.0)}
    assert loaded.policy == Policy()
    assert (loaded.timeout, loaded.max_rows, loaded.report_rows, loaded.on_miss) == (30, 100_000, 20, "fail")
    assert (loaded.evidence, loaded.tags, loaded.difficulty, loaded.metadata) == ("", (), None, {})
    assert (loaded.skip, loaded.xfail, loaded.allow_empty) == (None, None, False)


def test_all_problems_of_a_file_come_in_one_error_in_the_order_of_their_lines():
    found = problems(
        "kind: sql\nsource: a.db\ntimeout: soon\nmetrics: [arity_f2, valid_query]\ncases:\n"
        "  - id: a\n    golden: SELECT 1\n"
        "  - id: a\n    gold: SELECT 1\n    predicted:\n    skip: []\n"
        "  - id: b c\n    gold: SELECT 1\n    gold: SELECT 2\n"
        "  - just text\n"
    )

    assert found == [
        "s.queryeval.yaml:3: expected a number, found 'soon'",
        "s.queryeval.yaml:4: unknown metric 'arity_f2': did you mean 'arity_f1'?",
        "s.queryeval.yaml:6: no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`",
        "s.queryeval.yaml:7: unknown key 'golden': did you mean 'gold'?",
        "s.queryeval.yaml:8: duplicate id 'a', first used on line 6",
        """s.queryeval.yaml:10: 'predicted' is null: leave it out, or write "" for an empty answer""",
        "s.queryeval.yaml:11: expected text, found a list",
        "s.queryeval.yaml:12: id 'b c' must consist of letters, digits and - _ . : / without '::'",
        "s.queryeval.yaml:14: duplicate key 'gold', first on line 13",
        "s.queryeval.yaml:15: expected a mapping, found 'just text'",
    ]


def test_problems_of_one_sort_are_cut_short():
    cases = "".join(f"  - {{id: c{number}, gold: SELECT 1}}\n" for number in range(1000))

    found = problems(f"kind: sql\nsource: a.db\ncases:\n{cases}")

    assert found[0] == "s.queryeval.yaml:4: no prediction: add `predicted`, or `predictor` to the file"
    assert len(found) == 5
    assert found[-1].endswith("to the file (and so at 995 more places)")


def test_problems_are_told_once_where_all_cases_share_them():
    cases = "".join(f"  - {{id: c{number}, gold: SELECT 1, predicted: x}}\n" for number in range(3))

    assert problems(f"kind: sql\nsource: concerts\ncases:\n{cases}") == [
        "s.queryeval.yaml:2: 'concerts' is no name in `sources`, and neither its suffix nor a scheme tells its engine"
    ]


def test_nothing_is_said_of_settings_that_a_problem_hides():
    assert problems(f"kind: sqll\nsource: a.db\ncases:\n  - {{id: a, gold: x}}\n") == [
        "s.queryeval.yaml:1: unknown kind 'sqll': did you mean 'sql'?"
    ]


def test_paths_in_messages_are_absolute_outside_of_the_current_folder(here, monkeypatch):
    path = write("kind: sql\n").absolute()
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")

    with pytest.raises(SuiteError) as caught:
        load_cases(path)

    assert str(caught.value) == f"{path}:1: a suite needs `cases`"


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "just text"])
def test_a_suite_is_a_mapping(text):
    (line,) = problems(text)

    assert line.endswith("a suite is a mapping with `cases`")


@pytest.mark.parametrize("cases", ["[]", ""])
def test_a_suite_without_a_case_is_a_problem(cases):
    assert len(problems(f"kind: sql\ncases: {cases}\n")) == 1


def test_syntax_errors_name_line_and_column():
    assert problems(HEAD + "  - id: a\n    gold: SELECT a: b\n") == [
        f"s.queryeval.yaml:6:19: not YAML: mapping values are not allowed in this context: {BLOCK}"
    ]


# Keys


def test_an_unknown_key_is_reported_with_file_and_line():
    assert problem("golden: SELECT 1") == "unknown key 'golden': did you mean 'gold'?"
    assert top_problem("pridictor: inline") == "unknown key 'pridictor': did you mean 'predictor'?"


@pytest.mark.parametrize("key", ["trials", "trials_rule", "db_schema", "json_schema", "structure"])
def test_keys_of_later_releases_are_named_as_such(key):
    assert problem(f"{key}: 3") == f"'{key}' is not supported yet"
    assert top_problem(f"{key}: 3") == f"'{key}' is not supported yet"


def test_requires_and_conversation_are_not_supported_yet():
    assert top_problem("requires: [duckdb]") == "'requires' is not supported yet"
    assert problem("conversation: []") == "'conversation' is not supported yet"


def test_a_key_in_the_wrong_place_is_told_where_it_belongs():
    assert top_problem("gates: []") == (
        "'gates' cannot stand in the top of a suite file: it belongs in a folder's queryeval.yaml"
    )
    assert top_problem("gold: x") == "'gold' cannot stand in the top of a suite file: it belongs in a case"
    assert problem("sources: {}") == (
        "'sources' cannot stand in a case: it belongs in a folder's queryeval.yaml or the top of a suite file"
    )


def test_merge_keys_are_not_read():
    assert problem("<<: {gold: x}").startswith("unknown key '<<': merge keys are not read")


def test_every_key_of_the_contract_is_in_the_table():
    contract = (
        "kind source sources predictor metrics options thresholds on_miss compare timeout max_rows trials trials_rule tags "
        "requires report_rows gates cases id question evidence difficulty metadata skip xfail allow_empty gold gold_any "
        "gold_table gold_file predicted predicted_table predicted_file db_schema json_schema structure conversation"
    )

    assert sorted(KEYS) == sorted(contract.split())


# Text and values


@pytest.mark.parametrize("written", ["012", "1.10", "on", "NO", "12:30", "0x1F", "2024-01-01", "true", "yes"])
def test_text_fields_keep_the_source_text(written):
    loaded = case(
        f"id: {written}", f"question: {written}", f"evidence: {written}", f"gold: {written}", f"predicted: {written}"
    )

    assert (loaded.id, loaded.question, loaded.evidence) == (written, written, written)
    assert (loaded.golds[0].query, loaded.predicted.query) == (written, written)


def test_tags_and_difficulty_keep_the_source_text():
    loaded = case("tags: [012, NO, on]", "difficulty: 1")

    assert (loaded.tags, loaded.difficulty) == (("012", "NO", "on"), "1")


def test_metadata_follows_the_rules_of_json():
    loaded = case(
        "metadata: {a: 1, b: 1.5, c: true, d: null, e: , f: NO, g: 012, h: '1', i: \"true\", j: 1e3, k: .5, l: [1, x], m: ~}"
    )

    assert loaded.metadata == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": None,
        "e": None,
        "f": "NO",
        "g": "012",
        "h": "1",
        "i": "true",
        "j": 1000.0,
        "k": ".5",
        "l": [1, "x"],
        "m": "~",
    }
    assert isinstance(loaded.metadata["a"], int)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
def test_numbers_that_python_cannot_hold_are_refused(number):
    assert problem(f"metadata: {{a: {number}}}") == f"a number of {len(number)} characters is too large"


def test_null_stands_for_no_text_where_text_may_lack():
    loaded = case("question: null", "evidence:", "difficulty: ~", "skip: null", "xfail:", "tags:", "metadata:")

    assert (loaded.question, loaded.evidence, loaded.difficulty, loaded.tags) == ("", "", None, ())
    assert (loaded.skip, loaded.xfail, loaded.metadata) == (None, None, {})


@pytest.mark.parametrize(
    ("written", "skip", "xfail"),
    [
        ("true", "skipped in the suite", "expected to fail, says the suite"),
        ("false", None, None),
        ("slow: no", None, None),
        ("'true'", "true", "true"),
        ("no reason", "no reason", "no reason"),
    ],
)
def test_skip_and_xfail_take_a_reason_or_true(written, skip, xfail):
    if ": " in written:
        assert "expected text" in problem(f"skip: {{{written}}}")
        return

    loaded = case(f"skip: {written}", f"xfail: {written}")

    assert (loaded.skip, loaded.xfail) == (skip, xfail)


def test_skip_and_xfail_need_a_reason_that_says_something():
    assert problem("skip: ''") == "expected text, found nothing"


# Ids, tags, difficulty


@pytest.mark.parametrize("id_", ["a", "1", "a-b_c.d:e/f", "é", "日本"])
def test_ids_of_letters_digits_and_a_few_signs_are_read(id_):
    assert case(f"id: {id_}").id == id_


@pytest.mark.parametrize("id_", ["a b", "a::b", "a[b", "a\\b", "''", "null", "'a\tb'", '"a\\nb"', "a@b", '"a\\n"'])
def test_other_ids_are_refused(id_):
    assert "must consist of letters, digits and - _ . : / without '::'" in problem(f"id: {id_}")


def test_a_case_needs_an_id():
    assert problems(HEAD + "  - {gold: x, predicted: y}\n") == ["s.queryeval.yaml:5: a case needs an id"]


@pytest.mark.parametrize("tag", ["skip", "xfail", "skipif", "parametrize", "usefixtures", "filterwarnings"])
def test_pytests_own_markers_are_refused_as_tags(tag):
    assert problem(f"tags: [a, {tag}]") == f"'{tag}' is a marker of pytest's own: choose another name"
    assert problem(f"difficulty: {tag}") == f"'{tag}' is a marker of pytest's own: choose another name"


@pytest.mark.parametrize("tag", ["a b", "a.b", "''", "_a", "a:b"])
def test_tags_that_cannot_be_markers_are_refused(tag):
    assert "must consist of letters, digits, _ and -" in problem(f"tags: [{tag!r}]".replace("\"''\"", "''"))


def test_a_single_text_is_no_list_of_tags():
    assert problem("tags: nightly") == "expected a list, found 'nightly'"


# Gold and predicted


def test_exactly_one_form_of_gold_is_needed():
    assert problem("gold: SELECT 1", "gold_any: [a]") == "gold and gold_any: a case has only one of them"
    assert problems(HEAD + "  - {id: a, predicted: y}\n") == [
        "s.queryeval.yaml:5: no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`"
    ]


def test_at_most_one_form_of_predicted_is_allowed():
    assert problem("predicted: x", "predicted_file: a.sql") == (
        "predicted and predicted_file: a case has only one of them"
    )


@pytest.mark.parametrize("written", ["", "null", "~", "NULL", "|", "''", "'  '"])
def test_gold_that_says_nothing_is_refused(written):
    assert problem(f"gold: {written}") == "gold is empty"
    assert problem(f"gold_any:\n  - x\n  - {written}") == "gold is empty"


@pytest.mark.parametrize("written", ["", "null", "~"])
def test_predicted_null_is_refused(written):
    assert problem(f"predicted: {written}") == ("'predicted' is null: leave it out, or write \"\" for an empty answer")


def test_an_empty_answer_can_be_stated():
    assert case('predicted: ""').predicted == Stated(query="")


@pytest.mark.parametrize(
    "written",
    [
        "SELECT 1 # all",
        "SELECT 1 -- all",
        "SELECT 1\n  -- all\n  FROM t",
        ">\n  SELECT 1 -- all\n  FROM t",
        ">\n  SELECT 1 # all\n  FROM t",
        ">-\n  # all\n  SELECT 1",
        '"SELECT 1 -- all\n  FROM t"',
        "'SELECT 1 # all\n  FROM t'",
    ],
)
def test_queries_that_yaml_would_change_are_refused(written):
    expected = f"YAML would change this query, since it holds `--` or `#`: {BLOCK}"

    assert problem(f"gold: {written}") == expected
    assert problem(f"predicted: {written}") == expected
    assert problem("gold_any:\n  - x\n  - " + written.replace("\n", "\n  ")) == expected


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("SELECT 1\n  FROM t", "SELECT 1 FROM t"),
        ("SELECT a#b", "SELECT a#b"),
        ("|\n  SELECT 1 -- all # x\n  FROM t", "SELECT 1 -- all # x\nFROM t\n"),
        ("|- # a comment\n  SELECT 1", "SELECT 1"),
        (">\n  SELECT 1\n  FROM t", "SELECT 1 FROM t\n"),
        ("'SELECT 1 -- all # x'  # a comment", "SELECT 1 -- all # x"),
        ('"SELECT 1\n  FROM t"', "SELECT 1 FROM t"),
    ],
)
def test_other_queries_are_read_as_yaml_says(written, query):
    assert case(f"gold: {written}", f"predicted: {written}").golds == (Stated(query=query),)


def test_a_query_with_a_colon_on_a_line_of_its_own_is_seen():
    assert BLOCK in problem("gold:\n  SELECT a: b")
    assert BLOCK in problem("gold_any:\n  - SELECT a: b")


def test_questions_may_hold_what_queries_may_not():
    assert case("question: a -- b # c").question == "a -- b"


def test_several_right_answers_keep_their_order():
    loaded = case("gold_any:\n  - SELECT 1\n  - |\n    SELECT 2\n  - {columns: [a], rows: [[1]]}")

    assert [gold.query for gold in loaded.golds] == ["SELECT 1", "SELECT 2\n", None]
    assert loaded.golds[2].answer.rows == [(1,)]
    assert problem("gold_any: []") == "gold_any is empty"
    assert problem("gold_any: SELECT 1") == "expected a list, found 'SELECT 1'"


def test_tables_follow_the_rules_of_json():
    loaded = case("gold_table: {columns: [012, b], rows: [[1, x], [null, '1'], [1.50, ''], [true, NO]]}")

    table = loaded.golds[0].answer
    assert isinstance(table, Table)
    assert table.columns == ("012", "b")
    assert table.rows == [(1, "x"), (None, "1"), (1.5, ""), (True, "NO")]


def test_ragged_rows_are_reported_with_their_lines():
    found = problems(
        HEAD + "  - id: a\n    predicted: x\n    gold_table:\n      columns: [a, b]\n      rows:\n"
        "        - [1, 2]\n        - [1]\n        - [1, 2, 3]\n        - 5\n"
    )

    assert found == [
        "s.queryeval.yaml:11: row 2 has 1 cell, the table 2 columns",
        "s.queryeval.yaml:12: row 3 has 3 cells, the table 2 columns",
        "s.queryeval.yaml:13: expected a list, found '5'",
    ]


def test_tables_need_columns_and_rows_and_nothing_else():
    assert problem("gold_table: {columns: [a]}") == "a table needs `columns` and `rows`: there are no rows"
    assert problem("gold_table: {column: [a], rows: []}") == "unknown key 'column': did you mean 'columns'?"
    assert problem("gold_table: [[1]]") == "expected a mapping, found a list"
    assert problem("gold_table: {columns: [a], rows: [[[1]]]}") == "expected text, found a list"


def test_query_files_are_read_whole():
    write("\ufeffSELECT 1 -- all\n", "sql/a.sql")

    assert case("gold_file: sql/a.sql").golds == (Stated(query="SELECT 1 -- all\n"),)


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
def test_table_files_have_a_header_and_cells_by_the_rules_of_json(name, separator):
    write('012,b\n1,x\n1.5,\n\ntrue,NO\nnull,"a\nb"\n007,0\n'.replace(",", separator), name)

    table = case(f"gold_file: {name}").golds[0].answer

    assert table.columns == ("012", "b")
    assert table.rows == [(1, "x"), (1.5, None), (True, "NO"), (None, "a\nb"), ("007", 0)]


def test_json_files_hold_columns_and_rows():
    write('{"columns": ["a"],\n "rows": [[1], ["1"], [null]]}', "a.json")

    assert case("predicted_file: a.json").predicted.answer.rows == [(1,), ("1",), (None,)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.sql", None, "none.sql: cannot be read: No such file or directory"),
        ("a.sql", "  \n", "a.sql: is empty"),
        ("a.csv", "", "a.csv: has no header row"),
        ("a.csv", "a,b\n1,2\n3\n", "a.csv:3: 1 cell in a table of 2 columns"),
        ("a.csv", 'a,b\n1,"2"3\n', "a.csv:2: ',' expected after '\"'"),
        ("a.json", "{", "a.json:1:2: not JSON: Expecting property name enclosed in double quotes"),
        ("a.json", '{"columns": ["a"], "rows": [[1, 2], []]}', "a.json: row 1 has 2 cells, the table 1 column"),
        ("a.srj", "{}", ".srj files are not supported yet"),
        ("a.txt", "", "cannot tell what 'a.txt' holds: known suffixes are .sql, .rq, .csv, .tsv, .json"),
    ],
)
def test_files_that_cannot_be_read_are_reported_at_the_key(name, content, message):
    if content is not None:
        write(content, name)

    assert problem(f"gold_file: {name}") == message


# Sources and predictors


@pytest.mark.parametrize(
    ("written", "engine"),
    [
        ("a.db", "sqlite"),
        ("data/A.SQLITE3", "sqlite"),
        ("a.duckdb", "duckdb"),
        ("a.ttl", "rdf"),
        ("a.nq", "rdf"),
        ("https://example.org/sparql", "endpoint"),
        ("postgresql://host/db", "sqlalchemy"),
        ("postgresql+psycopg://host/db", "sqlalchemy"),
    ],
)
def test_a_bare_source_is_read_by_suffix_or_scheme(written, engine):
    source = case(head=f"kind: sql\nsource: {written}\n").source

    assert (source.engine, source.settings, source.name) == (engine, {"path": written}, written)


@pytest.mark.parametrize(
    ("written", "settings", "name"),
    [
        ("{sqlite: a.db}", {"path": "a.db"}, "a.db"),
        ("{sqlite: {script: a.sql}}", {"script": "a.sql"}, "a.sql"),
        ("{duckdb: {tables: {sales: sales.parquet}}}", {"tables": {"sales": "sales.parquet"}}, "duckdb"),
        ("{rdf: [a.ttl, b.ttl], engine: rdflib}", {"path": ["a.ttl", "b.ttl"], "engine": "rdflib"}, "a.ttl, b.ttl"),
        ("{endpoint: 'http://x/s', headers: {a: 1}}", {"path": "http://x/s", "headers": {"a": 1}}, "http://x/s"),
        ("{sqlalchemy: 'x://h/db', version: '5'}", {"path": "x://h/db", "version": "5"}, "x://h/db"),
    ],
)
def test_a_source_in_place_has_the_name_of_its_engine(written, settings, name):
    source = case(f"source: {written}").source

    assert (source.settings, source.name) == (settings, name)
    assert source.engine in written


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("postgresql://me:secret@host:5432/db?password=secret", "postgresql://host:5432/db"),
        ("https://me:secret@host/sparql?key=secret#secret", "https://host/sparql"),
        ("https://host/sparql?mail=a@b", "https://host/sparql"),
        ("https://host:80/a@b", "https://host:80/a@b"),
        ("postgresql://me:se/cr?et@host/db", "postgresql://host/db"),
        ("postgresql://me:s@cret@host/db", "postgresql://host/db"),
    ],
)
def test_names_of_sources_hold_no_secrets(written, name):
    source = case(f"source: {written!r}").source

    assert source.name == name
    assert "secret" not in repr(source)


def test_named_sources_are_found_by_their_names():
    loaded = case("source: live", head="kind: sql\nsources: {live: {sqlite: b.db}, other: c.db}\n")

    assert loaded.source == Source(name="live", engine="sqlite", settings={"path": "b.db"}, folder=Path.cwd())


def test_unknown_sources_and_engines_are_reported():
    named = "kind: sql\nsources: {concerts: a.db}\n"

    assert problem("source: concert", head=named).endswith("tells its engine: did you mean 'concerts'?")
    assert problem("source: {sqlit: a.db}") == "unknown engine 'sqlit': did you mean 'sqlite'?"
    assert problem("source: {sqlite: a.db, duckdb: b}").endswith("such as sqlite: found sqlite and duckdb")
    assert problem("source: {headers: {}}").endswith("such as sqlite: found none")
    assert problem("source: [a.db]") == "expected text, found a list"
    assert problem("source:") == "expected text, found nothing"
    assert problem("source: {sqlite: }") == "expected text, found nothing"


def test_an_engine_that_is_not_installed_is_reported(monkeypatch):
    monkeypatch.setattr(ENGINES, "_members", {"sqlite": object()})

    assert problem("source: a.duckdb") == "unknown engine 'duckdb': known are sqlite"


def test_a_query_needs_a_source():
    expected = ["s.queryeval.yaml:3: no source: add `source` to the file"]

    assert problems("kind: sql\ncases:\n  - {id: a, gold: x, predicted: y}\n") == expected
    table = "{columns: [], rows: []}"
    assert problems(f"kind: sql\ncases:\n  - {{id: a, gold_table: {table}, predicted: y}}\n") == expected
    assert load(f"kind: sql\ncases:\n  - {{id: a, gold_table: {table}, predicted_table: {table}}}\n")


def test_a_case_needs_a_kind():
    assert problems("source: a.db\ncases:\n  - {id: a, gold: x, predicted: y}\n") == [
        "s.queryeval.yaml:3: no kind: add `kind: sql` to the file"
    ]


def test_variables_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("FOLDER", "data")
    monkeypatch.setenv("PORT", "5432")
    monkeypatch.setenv("NOTHING", "")

    (loaded,) = load(
        "kind: sql\nsource: live\n"
        "sources:\n  live:\n    sqlite: {script: '${FOLDER}/a.sql', port: '${PORT}', b: '${NOTHING}', c: '${NOTHING:-d}'}\n"
        "    headers: {a: ['x ${NONE:-y z}', '$FOLDER', '${1}']}\n"
        "predictor: ${FOLDER}/${NONE:-predict}.py:predict\n"
        "cases: [{id: a, gold: '${NONE}', question: '${NONE}'}]\n"
    )

    assert loaded.source.settings == {
        "script": "data/a.sql",
        "port": "5432",
        "b": "",
        "c": "d",
        "headers": {"a": ["x y z", "$FOLDER", "${1}"]},
    }
    assert loaded.predictor.settings == {"target": "data/predict.py:predict"}
    assert (loaded.golds[0].query, loaded.question) == ("${NONE}", "${NONE}")


def test_missing_variables_are_reported_with_name_and_line():
    found = problems(
        "kind: sql\nsource: ${A}\nsources:\n  live:\n    sqlite: ${B}.db\npredictor: ${C}:f\ncases: [{id: a, gold: x}]\n"
    )

    assert found == [
        "s.queryeval.yaml:2: environment variable 'A' is not set",
        "s.queryeval.yaml:5: environment variable 'B' is not set",
        "s.queryeval.yaml:6: environment variable 'C' is not set",
    ]


def test_values_from_the_environment_are_not_in_messages(monkeypatch):
    monkeypatch.setenv("DSN", "hunter2")

    assert "hunter2" not in problem("source: ${DSN}")


@pytest.mark.parametrize(
    ("written", "kind", "settings"),
    [
        ("predict.py:predict", "python", {"target": "predict.py:predict"}),
        ("my_app.nl2sql:predict", "python", {"target": "my_app.nl2sql:predict"}),
        ("http://localhost:8000/predict", "http", {"url": "http://localhost:8000/predict"}),
        ("predictions.jsonl", "file", {"path": "predictions.jsonl"}),
        ("predictions.csv", "file", {"path": "predictions.csv"}),
        ("{file: a.txt}", "file", {"path": "a.txt"}),
        ("{python: 'a:b', concurrency: 4}", "python", {"target": "a:b", "concurrency": 4}),
        ("{command: [a, '1', 2]}", "command", {"command": ["a", "1", 2]}),
        ("{http: {url: 'http://x', timeout: 5}}", "http", {"url": "http://x", "timeout": 5}),
    ],
)
def test_predictors_are_read_by_their_form(written, kind, settings):
    (loaded,) = load(f"kind: sql\nsource: a.db\npredictor: {written}\ncases: [{{id: a, gold: x}}]\n")

    assert loaded.predictor == PredictorSpec(kind=kind, settings=settings, folder=Path.cwd())


def test_unknown_predictors_are_reported():
    assert top_problem("predictor: inlin") == "unknown predictor 'inlin': did you mean 'inline'?"
    assert top_problem("predictor: {pyton: 'a:b'}") == "unknown predictor 'pyton': did you mean 'python'?"
    assert top_problem("predictor: {file: a, python: b}").endswith("such as python: found file and python")
    assert top_problem("predictor: {python: 'a:b', concurrency: 0}") == "expected a whole number from 1 on, found '0'"
    assert top_problem("predictor: python") == "'python' alone says too little: write `{python: ...}`"


def test_a_prediction_in_the_case_comes_before_the_predictor():
    loaded = case(head="kind: sql\nsource: a.db\npredictor: predict.py:f\n")

    assert (loaded.predicted, loaded.predictor) == (Stated(query="SELECT 2"), None)


@pytest.mark.parametrize("head", ["", "predictor: inline\n"])
def test_a_case_without_any_prediction_is_reported(head):
    text = f"{head}kind: sql\nsource: a.db\ncases:\n  - {{id: a, gold: x}}\n"

    assert problems(text)[0].endswith("no prediction: add `predicted`, or `predictor` to the file")
    assert load(text, require_prediction=False)[0].predicted is None


# Metrics, thresholds, options, compare, numbers


def test_metrics_replace_the_defaults():
    loaded = case("metrics: [same_row_count, valid_query, same_row_count]")

    assert loaded.metrics == ("same_row_count", "valid_query")
    assert case("metrics: []").metrics == ()


def test_unknown_metrics_are_reported():
    assert problem("metrics: [execution_acuracy]") == (
        "unknown metric 'execution_acuracy': did you mean 'execution_accuracy'?"
    )
    assert problem("metrics: execution_accuracy") == "expected a list, found 'execution_accuracy'"
    assert problem("metrics:") == "expected a list, found nothing"


def test_metrics_that_cannot_be_imported_are_reported(monkeypatch):
    monkeypatch.setitem(METRICS._members, "broken", "no_such_module:broken")

    assert problem("metrics: [broken]").startswith("metric 'broken' cannot be imported: No module named")


def test_thresholds_are_a_minimum_or_limits():
    loaded = case("thresholds: {execution_accuracy: 0.5, same_row_count: {max: 1}, arity_f1: {min: 0, max: 1}}")

    assert loaded.thresholds == {
        "execution_accuracy": Threshold(minimum=0.5),
        "same_row_count": Threshold(maximum=1.0),
        "arity_f1": Threshold(minimum=0.0, maximum=1.0),
    }
    assert case("thresholds: {}").thresholds == {}


def test_wrong_thresholds_are_reported():
    assert problem("thresholds: {execution_acuracy: 1}").startswith("unknown metric 'execution_acuracy': did you mean")
    assert problem("thresholds: {arity_f1: high}") == "expected a number, found 'high'"
    assert problem("thresholds: {arity_f1: '1'}") == "expected a number, found the text '1'"
    assert problem("thresholds: {arity_f1: true}") == "expected a number, found 'true'"
    assert problem("thresholds: {arity_f1: .nan}") == "expected a number, found '.nan'"
    assert problem("thresholds: {arity_f1: 1e999}") == "a number of 5 characters is too large"
    assert problem("thresholds: {arity_f1: {}}") == "'arity_f1' needs min or max"
    assert problem("thresholds: {arity_f1: {min: 1, mx: 2}}") == "unknown key 'mx': did you mean 'max'?"
    assert problem("thresholds: {arity_f1: {min: 1, max: 0.5}}") == "min 1 of 'arity_f1' is above its max 0.5"
    assert problem("thresholds:") == "thresholds are missing: write {} to require nothing"


def test_inapplicable_metrics_on_a_case_are_reported():
    expected = "metric 'only_sql' does not apply to the kind 'sparql'"

    assert problem("kind: sparql", "thresholds: {only_sql: 1}") == expected
    assert problem("kind: sparql", "metrics: [only_sql]") == expected


def test_inapplicable_metrics_in_a_file_of_one_kind_are_reported():
    text = "source: a.db\nkind: sparql\nthresholds: {only_sql: 1}\ncases:\n  - {id: a, gold: x, predicted: y}\n"

    assert problems(text) == ["s.queryeval.yaml:3: metric 'only_sql' does not apply to the kind 'sparql'"]


def test_thresholds_of_a_file_of_several_kinds_bind_where_they_apply():
    text = (
        "source: a.db\nkind: sql\nmetrics: [only_sql, arity_f1]\nthresholds: {only_sql: 1}\ncases:\n"
        "  - {id: a, gold: x, predicted: y}\n  - {id: b, gold: x, predicted: y, kind: sparql}\n"
    )

    sql, sparql = load(text)

    assert (sql.metrics, list(sql.thresholds)) == (("only_sql", "arity_f1"), ["only_sql"])
    assert (sparql.metrics, list(sparql.thresholds)) == (("arity_f1",), [])


def test_options_are_checked_against_what_the_metric_takes():
    loaded = case("options: {only_sql: {alpha: 0.5}, sql: {anything: [1]}}")

    assert loaded.options == {"only_sql": {"alpha": 0.5}, "sql": {"anything": [1]}}
    assert problem("options: {only_sql: {alfa: 1}}") == (
        "metric 'only_sql' has no option 'alfa': did you mean 'alpha'?"
    )
    assert problem("options: {only_sq: {}}") == (
        "options for 'only_sq', which is no metric and no kind: did you mean 'only_sql'?"
    )
    assert problem("options: {only_sql: 5}") == "expected a mapping, found '5'"


def test_compare_sets_the_policy():
    loaded = case(
        "compare: {numbers: {rel: 0.01, abs: 0}, text_numbers: true, case: ignore, whitespace: ignore, nulls: equal,"
        " dates: strict, duplicates: ignore, row_order: strict, columns: by_name, extra_columns: allow, rdf_terms: strict}"
    )

    assert loaded.policy == Policy(
        rel=0.01,
        abs=0,
        text_numbers=True,
        case="ignore",
        whitespace="ignore",
        dates="strict",
        duplicates="ignore",
        row_order="strict",
        columns="by_name",
        extra_columns="allow",
        rdf_terms="strict",
    )


def test_the_kind_says_whether_text_numbers_are_numbers():
    assert case("kind: sparql").policy.text_numbers is True
    assert case("kind: sparql", "compare: {text_numbers: false}").policy.text_numbers is False


def test_wrong_comparisons_are_reported():
    assert problem("compare: {row_order: asc}") == "expected auto or ignore or strict, found 'asc'"
    assert problem("compare: {nulls: differ}") == "expected equal, found 'differ'"
    assert problem("compare: {text_numbers: yes}") == "expected true or false, found 'yes'"
    assert problem("compare: {text_numbers: 'true'}") == "expected true or false, found the text 'true'"
    assert problem("compare: {numbers: {rel: -1}}") == "expected a number from 0 on, found '-1'"
    assert problem("compare: {roworder: auto}") == "unknown key 'roworder': did you mean 'row_order'?"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("timeout: 0", "expected a number above 0, found '0'"),
        ("timeout: 30s", "expected a number, found '30s'"),
        ("timeout: [1]", "expected a number, found a list"),
        ("max_rows: 0", "expected a whole number from 1 on, found '0'"),
        ("max_rows: 1.5", "expected a whole number from 1 on, found '1.5'"),
        ("max_rows: '10'", "expected a whole number from 1 on, found the text '10'"),
        ("on_miss: ignore", "expected fail or xfail, found 'ignore'"),
        ("allow_empty: yes", "expected true or false, found 'yes'"),
    ],
)
def test_wrong_settings_are_reported_with_what_is_expected(line, message):
    assert problem(line) == message


def test_settings_of_a_case_come_before_those_of_its_file():
    head = "kind: sql\nsource: a.db\ntimeout: 5\nmax_rows: 10\nreport_rows: 0\non_miss: xfail\n"

    loaded = case("timeout: 0.5", head=head)

    assert (loaded.timeout, loaded.max_rows, loaded.report_rows, loaded.on_miss) == (0.5, 10, 0, "xfail")


def test_report_rows_may_be_none_but_not_less():
    assert top_problem("report_rows: -1") == "expected a whole number from 0 on, found '-1'"


# JSON lines


def test_json_lines_hold_a_case_each():
    write("kind: sql\nsource: a.db\npredictor: inline\ntags: [all]\n", "queryeval.yaml")

    loaded = load(
        '\ufeff{"id": 12, "gold": "SELECT 1 -- x", "predicted": "y", "evidence": null, "metadata": {"a": 1.0}}\r\n\r\n'
        '{"id": "b", "gold": "SELECT 1\\n# x", "predicted": "", "tags": ["one"], "difficulty": "easy"}\n',
        "s.queryeval.jsonl",
    )

    assert [one.id for one in loaded] == ["12", "b"]
    assert [str(one.location) for one in loaded] == ["s.queryeval.jsonl:1", "s.queryeval.jsonl:3"]
    assert [one.tags for one in loaded] == [("all",), ("all", "one")]
    assert loaded[0].golds[0].query == "SELECT 1 -- x"
    assert loaded[0].metadata == {"a": 1.0}


def test_problems_of_json_lines_come_in_one_error():
    write("kind: sql\nsource: a.db\npredictor: inline\n", "queryeval.yaml")

    assert problems(
        '{"id": "a", "gold": "x", "predicted": null}\n{"id": "a", "golden": "x", "gold": "x", "predicted": "y"}\n{"id"\n[]\n',
        "s.queryeval.jsonl",
    ) == [
        "s.queryeval.jsonl:1: 'predicted' is null: leave it out, or write \"\" for an empty answer",
        "s.queryeval.jsonl:2: unknown key 'golden': did you mean 'gold'?",
        "s.queryeval.jsonl:2: duplicate id 'a', first used on line 1",
        "s.queryeval.jsonl:3:6: not JSON: Expecting ':' delimiter",
        "s.queryeval.jsonl:4: expected a mapping, found a list",
    ]


def test_an_empty_file_of_json_lines_is_a_problem():
    assert problems("\n", "s.queryeval.jsonl") == ["s.queryeval.jsonl: there is no case in it"]


# Cases in files of their own


def test_a_glob_names_files_with_one_case_or_a_list_each():
    write("id: b\ngold_file: b.sql\npredicted: x\nsource: own.db\n", "imf/b.yaml")
    write("SELECT 2", "imf/b.sql")
    write("- {id: a1, gold: x, predicted: y}\n- {id: a2, gold: x, predicted: y}\n", "imf/2024/a.yaml")
    write("not: read", "imf/queryeval.yaml")
    write("not: read", "imf/other.queryeval.yaml")

    loaded = load('kind: sql\nsource: a.db\ncases: "imf/**/*.yaml"\n')

    assert [(one.id, str(one.location)) for one in loaded] == [
        ("a1", "imf/2024/a.yaml:1"),
        ("a2", "imf/2024/a.yaml:2"),
        ("b", "imf/b.yaml:1"),
    ]
    assert loaded[2].golds == (Stated(query="SELECT 2"),)
    assert [one.source.folder.name for one in loaded] == [Path.cwd().name, Path.cwd().name, "imf"]


def test_problems_in_case_files_name_these_files():
    write("id: a\ngolden: x\ngold: x\npredicted: y\n", "c/a.yaml")
    write("- {id: a, gold: x, predicted: y}\n", "c/b.yaml")
    write("a: b: c", "c/c.yaml")
    write("", "c/d.yaml")

    assert problems("kind: sql\nsource: a.db\ncases: c/*.yaml\n") == [
        "c/a.yaml:2: unknown key 'golden': did you mean 'gold'?",
        "c/b.yaml:1: duplicate id 'a', first used at c/a.yaml:1",
        "c/c.yaml:1:5: not YAML: mapping values are not allowed in this context",
        "c/d.yaml: there is no case in it",
    ]


def test_a_glob_may_lead_upwards():
    write("id: a\ngold: x\npredicted: y\n", "c/a.yaml")

    assert [one.id for one in load("kind: sql\nsource: a.db\ncases: ../c/*.yaml\n", "d/s.queryeval.yaml")] == ["a"]


@pytest.mark.parametrize("pattern", ["c/*.yaml", '"\\0"', '"*\\0"'])
def test_a_glob_that_fits_nothing_is_a_problem(pattern):
    (line,) = problems(f"kind: sql\nsource: a.db\ncases: {pattern}\n")

    assert line.startswith("s.queryeval.yaml:3: ")


# Anything


pieces = st.sampled_from(
    [
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
        "#",
        "--",
    ]
    + [
        "sql",
        "a.db",
        "1",
        "null",
        "~",
        "${A}",
        "execution_accuracy",
        "SELECT 1",
        "x.csv",
        "http://[",
        "!!int ",
        "\0",
        "é",
    ]
    + ["columns", "rows", "min", "*.yaml", "sqlite", "inline", "\\ud800", "<<", "a:b"]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(pieces, max_size=30).map("".join) | st.text(string.printable))
@example(HEAD + "  - {id: a, gold_file: '\\0.sql'}")
@example(HEAD + '  - {id: a, gold_file: "\\0.sql"}')
@example(HEAD + '  - {id: a, gold_file: "é/..//.sql"}')
@example("cases:\n  - {id: [a], gold: {a: b}, tags: {a: b}, kind: [sql], source: http://[}")
def test_no_text_raises_anything_but_a_suite_error(here, text):
    for name, content in (
        ("x.queryeval.yaml", text),
        ("y.queryeval.yaml", HEAD + "  - id: a\n    " + text.replace("\n", "\n    ")),
        ("z.queryeval.jsonl", text),
    ):
        (here / name).write_bytes(content.encode())
        try:
            load_cases(here / name)
        except SuiteError as error:
            assert error.problems


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["min", "rel", "sqlite", "a"]), inner),
    max_leaves=5,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(KEYS)), json_values, max_size=6))
def test_no_value_of_any_key_raises_anything_but_a_suite_error(here, entries):
    import json

    for name, content in (
        ("x.queryeval.jsonl", json.dumps({"id": "a", "gold": "x", **entries})),
        ("y.queryeval.yaml", json.dumps({"cases": [{"id": "a", "gold": "x"}], **entries}, ensure_ascii=False)),
    ):
        (here / name).write_text(content, encoding="utf-8", errors="replace")
        try:
            load_cases(here / name)
        except SuiteError as error:
            assert error.problems
