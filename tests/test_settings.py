from pathlib import Path

import pytest
from suites import case, enter, load, problems, write

from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.core.model import Source, Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.suites import is_suite_file, load_cases, load_suite, settings

CASES = "cases:\n  - {id: a, gold: x, predicted: y}\n"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def folder(text, name="."):
    return write(text, f"{name}/queryeval.yaml")


def one(text="", name="a/b/s.queryeval.yaml", **arguments):
    """The one case of a suite two folders down."""
    (loaded,) = load(f"{text}{CASES}", name, **arguments)
    return loaded


# Inheritance


def test_the_nearest_level_holds():
    folder("kind: sql\nsource: top.db\ntimeout: 1\nmax_rows: 1\non_miss: xfail\nreport_rows: 1\n")
    folder("timeout: 2\nmax_rows: 2\n", "a")
    folder("timeout: 3\n", "a/b")

    loaded = one("report_rows: 4\n")

    assert (
        loaded.settings.timeout,
        loaded.settings.max_rows,
        loaded.settings.on_miss,
        loaded.settings.report_rows,
    ) == (3, 2, "xfail", 4)


def test_metrics_and_thresholds_are_replaced_as_a_whole():
    folder("kind: sql\nsource: a.db\nmetrics: [arity_f1, valid_query]\nthresholds: {arity_f1: 1, valid_query: 1}\n")
    folder("metrics: [same_row_count]\nthresholds: {same_row_count: 0.5}\n", "a")

    loaded = one()

    assert loaded.settings.metrics == ("same_row_count",)
    assert loaded.settings.thresholds == {"same_row_count": Threshold(minimum=0.5)}


def test_no_thresholds_can_be_asked_for_below_some():
    folder("kind: sql\nsource: a.db\nthresholds: {arity_f1: 1}\n")

    assert one("thresholds: {}\n").settings.thresholds == {}


ANSWERS, RESOURCES = {"execution_accuracy": 1.0}, {"queries": 5.0, "failed_queries": 2.0}


@pytest.mark.parametrize(
    ("above", "file", "minima", "maxima"),
    [
        ("", "{queries: {max: 5}, failed_queries: {max: 2}}", ANSWERS, RESOURCES),
        ("", "{prediction_seconds: {max: 9}}", ANSWERS, {"prediction_seconds": 9.0}),
        ("", '{"metadata[cost]": {max: 9}}', ANSWERS, {"metadata[cost]": 9.0}),
        ("", "{json_equal: 1}", ANSWERS, {}),
        ("{json_equal: 1}", "{arity_f1: 0.5}", {"arity_f1": 0.5}, {}),
        ("{arity_f1: 0.5}", "{json_equal: 1}", {"arity_f1": 0.5}, {}),
        ("{arity_f1: 0.5, queries: {max: 5}}", "{valid_query: 1}", {"valid_query": 1.0}, {"queries": 5.0}),
        ("{arity_f1: 0.5, queries: {max: 5}}", "{steps: {max: 9}}", {"arity_f1": 0.5}, {"steps": 9.0}),
        ("{queries: {max: 5}, failed_queries: {max: 2}}", "{queries: null}", ANSWERS, {"failed_queries": 2.0}),
        ("{queries: {max: 5}}", "{execution_accuracy: null}", {}, {"queries": 5.0}),
        ("{arity_f1: 0.5}", "{execution_accuracy: null}", {"arity_f1": 0.5}, {}),
        ("", "{execution_accuracy: ~, arity_f1: 0.5}", {"arity_f1": 0.5}, {}),
        ("{arity_f1: 0.5, queries: {max: 5}}", "{}", {}, {}),
        ("{}", "{queries: {max: 5}}", {}, {"queries": 5.0}),
        ("{}", "{json_equal: 1}", {}, {}),
    ],
)
@pytest.mark.feature("json")
def test_thresholds_of_answers_and_of_resources_are_inherited_separately(above, file, minima, maxima):
    top = "kind: sql\nsource: a.db\n"
    folder(f"{top}thresholds: {above}\n" if above else top)
    folder(f"thresholds: {file}\n", "a")

    thresholds = one().settings.thresholds

    expected = {name: Threshold(minimum=least) for name, least in minima.items()}
    assert thresholds == expected | {name: Threshold(maximum=most) for name, most in maxima.items()}


def test_sources_are_merged_by_name_and_start_in_the_folder_that_names_them(working_folder):
    folder("kind: sql\nsource: live\nsources: {live: {sqlite: top.db}, test: test.db}\n")
    folder("sources: {live: {sqlite: data/low.db}}\n", "a")

    assert one().settings.source == Source(
        name="live", engine="sqlite", settings={"path": "data/low.db"}, folder=working_folder / "a"
    )
    assert one("source: test\n").settings.source.folder == working_folder
    assert one("source: own.db\n").settings.source.folder == working_folder / "a/b"


def test_options_are_merged_by_metric():
    folder("kind: sql\nsource: a.db\noptions: {only_sql: {alpha: 1}}\n")

    assert one("options: {sql: {}}\n").settings.options == {"only_sql": {"alpha": 1}, "sql": {}}
    folder("options: {only_sql: {alpha: 3}}\n", "a")
    assert one("").settings.options == {"only_sql": {"alpha": 3}}


def test_comparisons_are_merged_by_key():
    folder("kind: sql\nsource: a.db\ncompare: {numbers: {rel: 0.5}, case: ignore, row_order: strict}\n")
    folder("compare: {numbers: {abs: 2}, row_order: ignore}\n", "a")

    assert one("compare: {case: keep}\n").settings.policy == Policy(rel=0.5, abs=2, row_order="ignore")


def test_tags_are_added_up_once_each():
    folder("kind: sql\nsource: a.db\ntags: [one, two]\n")
    folder("tags: [two, three]\n", "a")

    (loaded,) = load(
        "tags: [four]\ncases:\n  - {id: a, gold: x, predicted: y, tags: [five, one]}\n", "a/s.queryeval.yaml"
    )

    assert loaded.tags == ("one", "two", "three", "four", "five")


def test_the_predictor_starts_in_the_folder_that_names_it(working_folder):
    folder("kind: sql\nsource: a.db\npredictor: predict.py:predict\n", "a")

    (loaded,) = load("cases:\n  - {id: a, gold: x}\n", "a/b/s.queryeval.yaml")

    assert loaded.settings.predictor.folder == working_folder / "a"


def test_metrics_of_a_folder_bind_the_kinds_that_have_them():
    folder("kind: sparql\nsource: a.ttl\nmetrics: [only_sql, arity_f1]\nthresholds: {only_sql: 1, arity_f1: 1}\n")

    loaded = one()

    assert (loaded.settings.metrics, list(loaded.settings.thresholds)) == (("arity_f1",), ["arity_f1"])


def test_cases_without_settings_of_their_own_share_them():
    first, second, other = load(
        "kind: sql\nsource: a.db\noptions: {sql: {}}\ncases:\n"
        "  - {id: a, gold: x, predicted: y}\n  - {id: b, gold: x, predicted: y, tags: [t]}\n"
        "  - {id: c, gold: x, predicted: y, timeout: 5}\n"
    )

    assert first.settings.source is second.settings.source
    assert first.settings.source == other.settings.source
    assert first.settings.thresholds is second.settings.thresholds
    assert first.settings.policy is second.settings.policy
    assert (second.settings.timeout, other.settings.timeout) == (30, 5)


def test_a_case_may_have_a_kind_of_its_own():
    loaded = case("kind: sparql", "source: a.ttl")

    assert (loaded.settings.kind, loaded.settings.metrics[1]) == ("sparql", "arity_f1")
    assert loaded.settings.thresholds == {"execution_accuracy": Threshold(minimum=1.0)}


# Roots and files


def test_folders_above_the_root_do_not_count(working_folder):
    folder("kind: sql\nsource: top.db\ntimeout: 1\n")
    folder("kind: sql\nsource: a.db\n", "a")
    path = write(CASES, "a/b/s.queryeval.yaml")

    assert load_suite(path, root=working_folder).cases[0].settings.timeout == 1
    assert load_suite(path, root=working_folder / "a").cases[0].settings.timeout == 30
    assert load_cases(path, root=Path("a"))[0].settings.timeout == 30


def test_only_its_own_folder_counts_for_a_file_that_is_not_below_the_root(working_folder):
    folder("timeout: 1\n")
    folder("kind: sql\nsource: a.db\nmax_rows: 5\n", "a")
    (working_folder / "other").mkdir()

    (loaded,) = load_suite(write(CASES, "a/s.queryeval.yaml"), root=working_folder / "other").cases

    assert (loaded.settings.timeout, loaded.settings.max_rows) == (30, 5)


def test_the_root_is_the_current_folder_if_it_contains_the_path(working_folder, monkeypatch):
    folder("timeout: 1\n")
    folder("kind: sql\nsource: a.db\n", "a")
    path = write(CASES, "a/s.queryeval.yaml").absolute()

    assert load_cases(path)[0].settings.timeout == 1
    (working_folder / "other").mkdir()
    monkeypatch.chdir("other")
    assert load_cases(path)[0].settings.timeout == 30
    assert load_cases(path.parent)[0].settings.timeout == 30


def test_all_suites_below_a_folder_are_read_in_the_order_of_their_paths():
    folder("kind: sql\nsource: a.db\npredictor: inline\n")
    write(CASES, "b/s.queryeval.yml")
    write(CASES, "a/z.queryeval.yaml")
    write('{"id": "a", "gold": "x", "predicted": "y"}', "a/b/s.queryeval.jsonl")
    write("not: read", ".hidden/s.queryeval.yaml")
    write("not: read", "a/s.yaml")

    paths = [str(loaded.location.path) for loaded in load_cases(".")]

    assert paths == ["a/b/s.queryeval.jsonl", "a/z.queryeval.yaml", "b/s.queryeval.yml"]


def test_problems_of_all_files_come_together():
    folder("kind: sql\nsource: a.db\n")
    write("cases: [{id: a, gold: x}]", "a/s.queryeval.yaml")
    write("cases: [{id: a, predicted: x}]", "b/s.queryeval.yaml")

    with pytest.raises(SuiteError) as caught:
        load_cases(".")

    assert [problem.location.path.as_posix() for problem in caught.value.problems] == [
        "a/s.queryeval.yaml",
        "b/s.queryeval.yaml",
    ]


def test_a_folder_without_a_suite_and_a_path_that_is_not_there_are_problems(working_folder):
    with pytest.raises(SuiteError, match=r"no suite below: expected files named \*\.queryeval\.yaml"):
        load_cases(working_folder)
    with pytest.raises(SuiteError, match=r"^none\.queryeval\.yaml: no such file: correct the path, which leads to /"):
        load_cases("none.queryeval.yaml")


@pytest.mark.parametrize(
    ("name", "is_suite"),
    [
        ("a.queryeval.yaml", True),
        ("a.queryeval.yml", True),
        ("a.queryeval.jsonl", True),
        ("queryeval.yaml", False),
        (".queryeval.yaml", False),
        ("a.yaml", False),
        ("a.queryeval.json", False),
    ],
)
def test_suites_are_known_by_their_names(name, is_suite):
    assert is_suite_file(Path(name)) is is_suite


def test_each_folder_is_read_once_in_a_run(working_folder, monkeypatch):
    folder("kind: sql\nsource: a.db\n")
    folder("timeout: 1\n", "a")
    read = []
    read_yaml = settings.read_yaml
    monkeypatch.setattr(settings, "read_yaml", lambda file: read.append(file.shown.as_posix()) or read_yaml(file))
    folders = {}

    for number in range(3):
        load_suite(write(CASES, f"a/b/s{number}.queryeval.yaml"), root=working_folder, folders=folders)

    assert read == ["queryeval.yaml", "a/queryeval.yaml"]


# What is wrong in a folder


def test_problems_of_a_folder_are_raised_for_every_file_below_it(working_folder):
    folder("kind: sql\nsource: a.db\n")
    folder("timout: 1\nmax_rows: none\ngold: x\n", "a")
    folders = {}

    for name in ("a/s.queryeval.yaml", "a/b/t.queryeval.yaml"):
        with pytest.raises(SuiteError) as caught:
            load_suite(write(CASES, name), root=working_folder, folders=folders)
        assert str(caught.value).split("\n") == [
            "a/queryeval.yaml:1: unknown key 'timout': did you mean 'timeout'?",
            "a/queryeval.yaml:2: max_rows: expected a whole number from 1 on, found 'none'",
            "a/queryeval.yaml:3: 'gold' is not allowed in a folder's queryeval.yaml: it belongs in a case",
        ]
    assert load_suite(write(CASES, "c/s.queryeval.yaml"), root=working_folder, folders=folders)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n"])
def test_a_folder_may_have_nothing_to_say(text):
    folder(text)

    assert one("kind: sql\nsource: a.db\n")


@pytest.mark.parametrize("text", ["- a\n", "text\n", "a: b: c\n"])
def test_folder_settings_are_a_mapping(text):
    folder(text)

    (problem,) = problems(f"kind: sql\nsource: a.db\n{CASES}")

    assert problem.startswith("queryeval.yaml:1:")


def test_folder_settings_under_a_wrong_name_are_not_passed_over():
    write("timeout: 1\n", "queryeval.yml")

    assert problems(f"kind: sql\nsource: a.db\n{CASES}") == ["queryeval.yml: is not read: rename it to queryeval.yaml"]
