"""`parametrize`: what is replaced, which cases and ids there are, and that whatever takes ids takes these."""

import itertools
import json
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from suites import load, problems

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import SuiteError, capture_error

pytestmark = [pytest.mark.feature("json", "excel", "page", "report_files"), pytest.mark.usefixtures("working_folder")]
IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
SCALARS = st.one_of(
    st.text(max_size=60), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.lists(SCALARS, min_size=1, max_size=4, unique_by=lambda value: (isinstance(value, str), shown(value)))
PARAMETERS = st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True), VALUES, min_size=1, max_size=3)


def shown(value):
    """The text of a value in a text."""
    return value if isinstance(value, str) else json.dumps(value)


def unless_one_id(load_them):
    """The cases, or no example where two of their combinations have one id, which is an error."""
    result = capture_error(load_them, SuiteError)
    assume(not isinstance(result, SuiteError) or "two combinations have the id" not in str(result))
    assert not isinstance(result, SuiteError), result
    return result


def loaded(name="s.queryeval.yaml", **case):
    suite = {"kind": "sql", "source": "a.db", "cases": [{"id": "q", "predicted": "SELECT 1", **case}]}
    return load(json.dumps(suite), name)


@IN_ONE_FOLDER
@given(parameters=PARAMETERS, between=st.text("{}ax_ 1$'", max_size=8))
def test_values_stand_in_texts_and_keep_their_types_as_whole_values(working_folder, parameters, between):
    placeholders = [f"{{{name}}}" for name in parameters]
    written = between.join(placeholders)
    cases = unless_one_id(
        lambda: loaded(
            parametrize=parameters,
            question=f"Q {written}",
            gold_table={"columns": [f"c{place}" for place in range(len(parameters))], "rows": [placeholders]},
            metadata={"a": {f"k {written}": [written, *placeholders]}},
        )
    )

    combinations = [*itertools.product(*parameters.values())]
    assert len({case.id for case in cases}) == len(cases) == len(combinations)
    assert [case.combination for case in cases] == [*range(1, len(cases) + 1)]
    for case, combination in zip(cases, combinations, strict=True):
        by_placeholder = dict(zip(placeholders, combination, strict=True))
        pattern = "|".join(map(re.escape, placeholders))
        text = re.sub(pattern, lambda match: shown(by_placeholder[match[0]]), written)  # noqa: B023
        (row,) = case.golds[0].answer.rows
        assert case.question == f"Q {text}"
        assert (repr(row), row) == (repr(combination), combination)
        in_list = combination[0] if len(combination) == 1 else text
        assert case.metadata == {"a": {f"k {text}": [in_list, *combination]}}


@IN_ONE_FOLDER
@given(parameters=PARAMETERS)
def test_ids_are_made_of_the_values_and_can_be_parts_of_node_ids(working_folder, parameters):
    written = [f"{{{name}}}" for name in parameters]
    cases = unless_one_id(lambda: loaded(parametrize=parameters, gold=f"SELECT {written}"))

    for case in cases:
        assert case.written_id == "q"
        assert re.fullmatch(r"q\[(?!.*::)[\w\-.:/]+\]", case.id)
        assert len(case.id) <= len("q[]") + len(parameters) * (40 + 1)
        assert [parameter.partition("=")[0] for parameter in case.parameters] == [*parameters]
        assert case.id == f"q[{'-'.join(parameter.partition('=')[2] for parameter in case.parameters)}]"


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        (["2023", "2024"], ["2023", "2024"]),
        (["north", "São Paulo", "北"], ["north", "São-Paulo", "北"]),
        (["true", "null", "-5", "1.50", "2024-01-31", "012"], ["true", "null", "-5", "1.50", "2024-01-31", "012"]),
        (["'<'", "'<='", "'='", "'a<b'", "a/b"], ["x0", "x1", "x2", "a-b", "a/b"]),
        (["'a b'", "'a-b'", "5", "'5'", "c"], ["x0", "x1", "x2", "x3", "c"]),
        (['"a\\nb"', "'[1]'", "'a::b'", f"{'y' * 41}"], ["x0", "1", "x2", "x3"]),
        (["~", "'null'"], ["x0", "x1"]),
    ],
)
def test_labels_of_values(values, ids):
    listed = "".join(f"\n      - {value}" for value in values)
    suite = f"kind: sql\nsource: a.db\ncases:\n- id: q\n  parametrize:\n    x:{listed}\n  gold: 'SELECT ''{{x}}'''\n"

    cases = load(suite, require_prediction=False)

    assert [case.id for case in cases] == [f"q[{label}]" for label in ids]


def test_only_declared_names_are_replaced_and_values_are_not_read_again():
    (case,) = loaded(parametrize={"a": ["{b}"], "b": ["x"]}, gold="SELECT '{a} {b} {c} { a } {{a}}' -- {'d': 1}")

    assert case.golds[0].query == "SELECT '{b} x {c} { a } {{b}}' -- {'d': 1}"


def test_a_value_can_be_a_whole_query_and_every_key_of_the_case_has_placeholders():
    first, second = loaded(
        parametrize={"query": ["SELECT 1", "SELECT 2"], "tag": ["t"]},
        gold_any=["{query}", "SELECT 3"],
        tags=["{tag}"],
        skip="not {tag}",
        compare={"numbers": {"columns": {"{tag}": {"abs": 1}}}},
        predicted="{query} AS {tag}",
    )

    assert [gold.query for gold in second.golds] == ["SELECT 2", "SELECT 3"]
    assert (second.tags, second.skip, second.predicted.query) == (("t",), "not t", "SELECT 2 AS t")
    assert second.settings.policy.column_numbers[0].name == "t"
    assert (first.id, second.id) == ("q[SELECT-1-t]", "q[SELECT-2-t]")


def test_a_conversation_has_its_turns_for_each_combination():
    turns = [{"role": "user", "content": "In {year}?", "target": "SELECT {year}"}] * 2
    suite = {"id": "c", "parametrize": {"year": [1, 2]}, "conversation": turns}
    cases = load(json.dumps({"kind": "sql", "source": "a.db", "cases": [suite]}), require_prediction=False)

    assert [case.id for case in cases] == ["c[1].1", "c[1].2", "c[2].1", "c[2].2"]
    assert {case.turn["conversation"] for case in cases} == {"c[1]", "c[2]"}
    assert cases[2].golds[0].query == "SELECT 2"


def test_too_many_combinations_are_refused_before_they_are_made():
    values = [*range(1000)]
    case = {"id": "q", "parametrize": {"a": values, "b": values}, "gold": "SELECT {a}, {b}"}
    (problem,) = problems(json.dumps({"kind": "sql", "source": "a.db", "cases": [case]}))

    assert "1,000,000 combinations, more than 10,000" in problem


SUITE = """\
kind: sql
source: {sqlite: {script: a.sql}}
predictor: {file: p.jsonl}
cases:
  - id: q
    question: How many in {year}, {region}?
    parametrize: {year: [2023, 10, 2024], region: [north, S/W]}
    gold: SELECT count(*) FROM sale WHERE year = {year} AND region = '{region}'
  - {id: other, question: How many?, gold: SELECT count(*) FROM sale}
"""
IDS = [f"q[{year}-{region}]" for year in (2023, 10, 2024) for region in ("north", "S/W")]
WRONG = "q[10-S/W]"


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on the suite, of which one answer is wrong; return the outcomes by id, and the report."""
    monkeypatch.chdir(pytester.path)
    answers = {id_: "SELECT 0" if id_ == WRONG else f"SELECT {int(id_ != WRONG)}" for id_ in [*IDS, "other"]}
    answers |= {"q[2023-north]": "SELECT 2", "other": "SELECT 7"}
    pytester.path.joinpath("p.jsonl").write_text(
        "".join(json.dumps({"id": id_, "predicted": text}) + "\n" for id_, text in answers.items()), encoding="utf-8"
    )
    rows = [(2023, "north")] + [(year, region) for year in (2023, 10, 2024) for region in ("north", "S/W")]
    pytester.path.joinpath("a.sql").write_text(
        f"CREATE TABLE sale (year INT, region TEXT); INSERT INTO sale VALUES {', '.join(map(repr, rows))};"
    )
    pytester.path.joinpath("s.queryeval.yaml").write_text(SUITE)
    pytester.path.joinpath("queryeval.yaml").write_text(
        "gates:\n- {metric: pass_rate, where: {case: q}, min: 0.8}\n"
        "- {metric: pass_rate, where: {parameter: year=10}, min: 0.6}\n"
    )

    def run(*arguments):
        pytester.runpytest_inprocess("--queryeval-report=r", *arguments)
        report = json.loads(pytester.path.joinpath("r/report.json").read_text(encoding="utf-8"))
        return {case["id"]: case["outcome"] for case in report["cases"]}, report

    return run


@pytest.mark.process
def test_whatever_takes_ids_takes_those_of_combinations(run, pytester):
    outcomes, report = run()
    assert [*outcomes] == [*IDS, "other"]
    assert [id_ for id_, outcome in outcomes.items() if outcome == "failed"] == [WRONG]
    assert [gate["ok"] for gate in report["gates"]] == [True, False]
    assert {name: group["totals"]["passed"] for name, group in report["groups"]["parameter"].items()} == {
        "region=S/W": 2, "region=north": 3, "year=10": 1, "year=2023": 2, "year=2024": 2,
    }  # fmt: skip
    pytester.path.joinpath("r/report.json").rename(pytester.path / "before.json")

    for selection, ids in {
        ("--lf",): [WRONG],
        ("-k", "q[10-north]"): ["q[10-north]"],
        ("-k", "2024 and S/W"): ["q[2024-S/W]"],
        (f"s.queryeval.yaml::{WRONG}",): [WRONG],
        ("s.queryeval.yaml::q",): IDS,
        ("--deselect", "s.queryeval.yaml::q[2023-north]"): [*IDS[1:], "other"],
        ("-n", "2", "--queryeval-baseline=before.json"): [*IDS, "other"],
        ("--queryeval-predictor=r/report.csv",): [*IDS, "other"],
        ("--queryeval-record=rec",): [*IDS, "other"],
        ("--queryeval-replay=rec",): [*IDS, "other"],
    }.items():
        outcomes, report = run(*selection)
        assert [id_ for id_, outcome in outcomes.items() if outcome != "not_run"] == ids
        assert set(outcomes.values()) <= {"passed", "failed"}
        assert report.get("baseline", {}).get("removed", []) == []


def test_commands_take_ids_of_combinations(run, capsys):
    run()
    for command, shown in {
        ("evaluate", "s.queryeval.yaml::q"): "6 cases",
        ("evaluate", f"s.queryeval.yaml::{WRONG}"): "1 case",
        ("explain", "r/report.json", WRONG): "gold",
        ("explain", f"s.queryeval.yaml::{WRONG}"): "gold",
    }.items():
        capsys.readouterr()
        main(command)
        assert shown in capsys.readouterr().out
