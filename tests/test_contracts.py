"""What holds for every member of every registry, also for those that installed packages add."""

import json
from contextlib import suppress

import pytest
from report_maker import make_report, report_of
from report_parts import merge, part
from samples import make_case

from pytest_queryeval import METRICS, evaluate, load_cases
from pytest_queryeval.core.errors import QueryEvalError, ReportError, SettingError
from pytest_queryeval.core.gates import GATE_RULES
from pytest_queryeval.core.groups import GROUPS, POSITIONS
from pytest_queryeval.core.metric import Metric
from pytest_queryeval.core.report import PendingGate
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.transfer.exporters import EXPORTERS, Exported, PredictionFile
from pytest_queryeval.features.transfer.importers import IMPORTERS, ImportedCase, ImportRequest, SkippedRecord
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import applies_to
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.reports import REPORTS
from pytest_queryeval.results.gates.rules import score_with_errors, why_all  # white box: what is drawn
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.suites import load_suite

# Members of all features are looked at.
pytestmark = pytest.mark.feature(
    *("ci", "command_predictor", "database_servers", "dbt", "duckdb", "embeddings", "excel", "http_engine"),
    *("http_predictor", "json", "page", "scale", "sdmx", "sparql_endpoint"),
)

SQL = {"kind": "sql", "source": {"sqlite": {"script": "data.sql"}}, "gold": "SELECT a, b FROM t"}
EXPECTED = {**SQL, "expect": {"rows": 2, "values": {"a": {"not_null": True}}}}
SELECTION = {
    "dataset_id": "A",
    "dimensions": [
        {"dimension_name": "FREQ", "values": [{"id": "M"}]},
        {"dimension_name": "GEO", "values": [{"id": "SE"}, {"id": "NO"}]},
    ],
}
# A right case of each sort of answers, and of SQL for metrics of its texts.
RIGHT = {
    "sql": SQL,
    "json": {"kind": "json", "gold": {"city": "Lund", "parts": [1, 2.5]}},
    "sdmx": {"kind": "sdmx", "gold": [SELECTION]},
}
RIGHT_CRITERIA = {"answer", "gold", "expect"}
PARAMETERS = {"dimension": "FREQ", "name": "tokens", "path": "$.city"}


def scores_of(name, tmp_path, **case):
    (tmp_path / "data.sql").write_text("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, NULL);")
    settings = {"id": "c", "question": "q", "metrics": [name], "thresholds": {}, **case}
    (tmp_path / "a.queryeval.yaml").write_text(json.dumps({"cases": [settings]}), encoding="utf-8")
    [result] = evaluate(load_cases(tmp_path / "a.queryeval.yaml"))["cases"]
    assert result["outcome"] == "passed", result["message"]
    return result["scores"].get(name)


def named(name):
    parameter = METRICS[name].parameter
    return f"{name}[{PARAMETERS[parameter]}]" if parameter else name


def case_for(name):
    kind = next((kind for kind in RIGHT if applies_to(name, kind, criteria=RIGHT_CRITERIA)), None)
    if kind is None:
        pytest.skip(f"no case here has the metric {name}")
    if METRICS[name].extra:
        pytest.skip(f"{name} needs the extra {METRICS[name].extra}")
    return EXPECTED if METRICS[name].criterion == "expect" else RIGHT[kind]


def test_metrics_are_described():
    assert all(isinstance(METRICS[name], Metric) for name in METRICS.names())
    assert [name for name in METRICS.names() if not METRICS[name].function.__doc__] == []


@pytest.mark.parametrize("name", METRICS.names())
def test_metric_is_best_where_predicted_is_gold(name, tmp_path):
    case = case_for(name)

    score = scores_of(named(name), tmp_path, **case, predicted=case["gold"])

    metric = METRICS[name]
    assert score is None or score >= 0
    if metric.better == "higher" and "timer" not in metric.injected and score is not None:
        assert score == (1.0 if metric.max_score is None else metric.max_score)


@pytest.mark.parametrize("name", METRICS.names())
def test_metric_gives_a_prediction_that_fails_no_credit(name, tmp_path):
    case = case_for(name)
    if METRICS[name].input == "queries" or METRICS[name].better == "lower":
        pytest.skip(f"{name} does not depend on answers")

    assert scores_of(named(name), tmp_path, **case, predicted="") in (0, None)


@pytest.fixture
def example_gate(name, tmp_path):
    """The example of a rule, read."""
    case = RIGHT["json"] | {"id": "a", "predicted": {}}
    (tmp_path / "queryeval.yaml").write_text(f"gates:\n  - {GATE_RULES[name].example}\n", encoding="utf-8")
    (tmp_path / "a.queryeval.yaml").write_text(json.dumps({"cases": [case]}), encoding="utf-8")
    [folder] = load_suite(tmp_path / "a.queryeval.yaml", root=tmp_path).folders
    [gate] = folder.gates
    return gate.required


CASES = make_report(80)["cases"]


@pytest.fixture
def merged(example_gate):
    """The report of a run with the example of a rule, compared with itself."""
    return merge(part(*CASES, gates=[example_gate | {"cases": 80}]), baseline=part(*CASES))


@pytest.mark.parametrize("name", GATE_RULES.names())
def test_gate_rule_is_evaluated_and_put_into_words(name, example_gate, merged):
    (evaluated,) = merged.report["gates"]

    assert evaluated["type"] == name
    assert example_gate.keys() <= PendingGate.__annotations__.keys()
    assert [
        line
        for line in merged.lines
        if line.startswith("gate ") and ("this gate " in line or len(line.split(": ")) > 2)
    ]


@pytest.mark.parametrize("name", GATE_RULES.names())
def test_gate_rule_needs_no_key_that_a_report_may_lack(name, merged, tmp_path):
    (evaluated,) = merged.report["gates"]
    plain = {"type", "folder", "metric", "where", "min", "max", "cases", "value", "n", "errors", "ran", "ok", "reason"}
    plain.add("baseline")  # without it, the words are "since the baseline"
    path = tmp_path / "report.json"

    for key in evaluated.keys() - plain:
        without = {name: value for name, value in evaluated.items() if name != key}
        emptied = [evaluated | {key: {}}] if key in ("settings", "details") else []
        for gate in (without, *emptied):
            path.write_text(json.dumps(merged.report | {"gates": [gate]}), encoding="utf-8")
            with suppress(ReportError):  # else the gate is that of an earlier version, which did not write the key
                assert REPORTS["md"].render(read_report(path)) == REPORTS["md"].render(merged.report)
                continue
            with pytest.raises(ReportError, match=r"gates\[0\]: '\w+' is missing"):
                read_report(path)


@pytest.mark.parametrize("name", GATE_RULES.names())
def test_gate_rule_has_requirements_by_which_gates_are_compared(name, merged):
    (gate,) = merged.report["gates"]
    before, none, harder = (part(*CASES[:4], gates=gates) for gates in ([gate], [], [gate | {"where": {"tag": "x"}}]))

    for after, is_loosened in ((before, False), (none, True), (harder, True)):
        changes = merge(after, baseline=before).report["baseline"]["changes"]
        assert any("loosened" in change["what"] for change in changes) is is_loosened


@pytest.mark.parametrize("name", GATE_RULES.names())
def test_gate_rule_is_decided_early_by_a_mean_from_0_to_1_only(name, example_gate):
    needs_all = why_all(example_gate, GATE_RULES[name])

    scores = {score_with_errors(example_gate, case) for case in make_report(80)["cases"]} - {None}

    assert needs_all or (scores and min(scores) >= 0 and max(scores) <= 1)


@pytest.mark.parametrize("name", GROUPS.names())
def test_group_has_words_and_values_that_are_texts(name):
    group = GROUPS[name]

    values = list(group.values(make_case(), "music/s.queryeval.yaml"))

    assert group.heading
    assert group.plural
    assert group.position in POSITIONS
    assert (group.position == "phrase") is bool(group.preposition)
    assert len({*values}) == len(values)
    assert all(type(value) is str and value for value in values)


@pytest.mark.parametrize("name", KINDS.names())
def test_kind_has_metrics_that_score_its_answers(name):
    kind = KINDS[name]

    assert isinstance(kind, Kind)
    assert kind.name == name
    assert all(applies_to(metric, name) for metric in (*kind.default_metrics, *kind.default_thresholds))
    assert kind.paths <= kind.options
    assert kind.check({}) is None


@pytest.mark.parametrize("name", KINDS.names())
@pytest.mark.parametrize(
    "said", ["", "```\n", "Here you are:\n```sql\nSELECT 1\n```", "<think>SELECT", "\x00", "a" * 9999]
)
def test_kind_extracts_a_part_of_what_was_said(name, said):
    query, note = KINDS[name].extract_query(said)

    assert query in said
    assert isinstance(note, str)


@pytest.mark.parametrize("name", ENGINES.names())
def test_engine_says_whose_queries_it_runs_and_what_its_answers_depend_on(name):
    engine = ENGINES[name]

    assert engine.kind is None or engine.kind in KINDS
    assert isinstance(engine.dialect({}), str)
    assert json.dumps(engine.fingerprint.settings({}))


@pytest.mark.parametrize("name", [name for name in ENGINES.names() if ENGINES[name].kind])
def test_engine_names_a_setting_that_it_does_not_know(name):
    with pytest.raises(SettingError) as raised:
        ENGINES[name].check({"no_such_setting": 1})

    assert raised.value.setting == "no_such_setting" or "needs" in str(raised.value)


@pytest.mark.parametrize("name", PREDICTORS.names())
def test_predictor_tells_what_its_answers_may_depend_on(name):
    predictor = PREDICTORS[name]

    assert callable(predictor.opener)
    assert isinstance(predictor.text_setting, str)
    assert all(isinstance(each, str) for each in predictor.sees({}))


@pytest.mark.parametrize("name", REPORTS.names())
@pytest.mark.parametrize("report", [make_report(40), make_report(30, hostile=True), report_of([])])
def test_report_format_renders_any_report_and_the_same_twice(name, report):
    if REPORTS[name].missing:
        pytest.skip(f"{name} needs {', '.join(REPORTS[name].missing)}")

    content = REPORTS[name].render(report)

    assert isinstance(content, bytes)
    assert content == REPORTS[name].render(report)


def cases_or_error(importer, request):
    try:
        return list(importer(request).cases)
    except QueryEvalError as error:
        return str(error)


@pytest.mark.parametrize("name", IMPORTERS.names())
@pytest.mark.parametrize("content", [b"", b"\x00\xff", b'[{"a": 1}, 2]', b"id: [\n"])
def test_importer_refuses_or_skips_what_is_not_of_its_format(name, content, tmp_path):
    source = tmp_path / "source.json"
    source.write_bytes(content)

    written = cases_or_error(IMPORTERS[name], ImportRequest(source=source, output=tmp_path / "suites"))

    if isinstance(written, str):
        assert str(tmp_path) in written
    else:
        assert all(isinstance(entry, ImportedCase | SkippedRecord) for entry in written)
    assert [path.name for path in tmp_path.iterdir()] == ["source.json"]


def content_or_error(exporter, cases):
    try:
        return exporter(cases)
    except ReportError as error:
        return str(error)


@pytest.mark.parametrize("name", EXPORTERS.names())
def test_exporter_is_for_some_kind_and_writes_the_same_file_for_the_same_queries(name):
    contents = []
    for kind in KINDS.names():
        for query in ("", "SELECT 1", "a\tb\n\nc -- d", '{"x": [1]}\r\n', "\x00 é", None):
            cases = [Exported(id=str(number), question="?", kind=kind, source="shop", query=query) for number in (0, 1)]
            contents.append(content_or_error(EXPORTERS[name], cases))
            assert contents[-1] == content_or_error(EXPORTERS[name], cases)

    assert any(isinstance(content, PredictionFile) for content in contents)
