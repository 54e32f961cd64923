import pytest
from suites import HEAD, case, enter, load, problem, problems, top_problem

from pytest_queryeval.core.model import Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites.keys import KEYS
from pytest_queryeval.suites.settings import STATED_SETTINGS


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def test_an_unknown_key_is_reported_with_file_and_line():
    assert problem("golden: SELECT 1") == "unknown key 'golden': remove it, because 'gold' is there already"
    assert problem("gold_tabel: {}") == "unknown key 'gold_tabel': remove it, because 'gold' is there already"
    assert top_problem("pridictor: inline") == "unknown key 'pridictor': did you mean 'predictor'?"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("expected_sql", "gold"),
        ("gold_sql", "gold"),
        ("sql_gold", "gold"),
        ("ground_truth_sql", "gold"),
        ("generated_sql", "predicted"),
        ("question_text", "question"),
        ("hint", "evidence"),
        ("db_name", "source"),
        ("querys", "gold"),
    ],
)
def test_names_that_other_tools_use_lead_to_keys(name, key):
    values = {"gold": "SELECT 1", "predicted": "SELECT 2"} | {name: "x"}
    values.pop(key, None)
    case = "".join(f"    {written}: {value}\n" for written, value in values.items())

    message = problems(f"{HEAD.replace('inline', 'a.py:b')}  - id: a\n{case}")

    assert [problem.partition(": ")[2] for problem in message] == [f"unknown key '{name}': did you mean '{key}'?"]


@pytest.mark.parametrize(
    ("written", "rule"), [("all", "all"), ("any", "any"), ("mean", "mean"), ("{rate: 0.8}", 0.8), ("{rate: 1}", 1.0)]
)
def test_trials_have_a_rule(written, rule):
    (case,) = load(
        f"kind: sql\nsource: a.db\npredictor: p.py:f\ntrials: 3\ncases: [{{id: a, gold: x, trials_rule: {written}}}]\n"
    )

    assert (case.settings.trials, case.settings.trials_rule) == (3, rule)


def test_trials_may_stop_once_they_decide():
    (case,) = load(
        "kind: sql\nsource: a.db\npredictor: p.py:f\ntrials: {max: 10, stop: decided}\ncases: [{id: a, gold: x}]\n"
    )

    assert (case.settings.trials, case.settings.stops_trials) == (10, True)


NO_RULE = "trials_rule: expected mean, all, any or {rate: R} with R above 0 and at most 1, found"
NO_RATE = "rate: expected a number above 0 and at most 1, found"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trials: 0", "trials: expected a whole number from 1 to 1,000, found '0'"),
        ("trials: 1001", "trials: expected a whole number from 1 to 1,000, found '1001'"),
        (f"trials: {10**400}", f"trials: expected a whole number from 1 to 1,000, found '1{'0' * 58}…'"),
        ("trials: '10'", "trials: expected a whole number from 1 to 1,000, found the text '10': write 10"),
        ("trials: '2000'", "trials: expected a whole number from 1 to 1,000, found the text '2000'"),
        ("trials: {max: 1, stop: decided}", "max: expected a whole number from 2 to 1,000, found '1'"),
        ("trials: {max: 99999, stop: decided}", "max: expected a whole number from 2 to 1,000, found '99999'"),
        ("trials: {max: 10, stop: never}", "stop: expected decided, found 'never'"),
        ("trials: {max: 10}", "expected a whole number, or both keys, such as {max: 10, stop: decided}"),
        ("trials: {stop: decided}", "expected a whole number, or both keys, such as {max: 10, stop: decided}"),
        ("trials: {most: 10}", "unknown key 'most': choose from max, stop"),
        ("trials_rule: most", f"{NO_RULE} 'most'"),
        ("trials_rule: {rate: 0}", f"{NO_RATE} '0'"),
        ("trials_rule: {rate: 1.1}", f"{NO_RATE} '1.1'"),
        ("trials_rule: {}", f"{NO_RULE} a mapping"),
        ("trials_rule: {rat: 1}", "unknown key 'rat': did you mean 'rate'?"),
    ],
)
def test_trials_that_make_no_sense_are_reported(line, said):
    assert problem(line) == said


def test_an_answer_that_the_case_states_is_one_trial():
    assert case("trials: 3").settings.trials == 1


def test_a_key_in_the_wrong_place_is_told_where_it_belongs():
    assert top_problem("gates: []") == (
        "'gates' is not allowed at the top of a suite file: it belongs in a folder's queryeval.yaml"
    )
    assert top_problem("gold: x") == "'gold' is not allowed at the top of a suite file: it belongs in a case"
    assert problem("sources: {}") == (
        "'sources' is not allowed in a case: it belongs in a folder's queryeval.yaml or at the top of a suite file"
    )


def test_merge_keys_are_not_read():
    assert problem("<<: {gold: x}").startswith("unknown key '<<': merge keys are not read")


def test_every_key_of_the_contract_is_in_the_table():
    contract = (
        "env_file kind source gold_source sources predictor metrics options thresholds on_miss compare timeout "
        "max_rows trials trials_rule check tags requires reviews report_rows gates cases id question evidence "
        "difficulty metadata skip xfail allow_empty answerable gold gold_any gold_table gold_file predicted "
        "predicted_table predicted_file db_schema json_schema structure conversation writes"
    )

    assert sorted(KEYS) == sorted(contract.split())


@pytest.mark.parametrize("id_", ["a", "1", "a-b_c.d:e/f", "é", "日本"])
def test_ids_of_letters_digits_and_a_few_signs_are_read(id_):
    assert case(f"id: {id_}").id == id_


@pytest.mark.parametrize("id_", ["a b", "a::b", "a[b", "a\\b", "'a\tb'", '"a\\nb"', "a@b", '"a\\n"'])
def test_other_ids_are_refused(id_):
    assert "must consist of letters, digits and - _ . : / without '::'" in problem(f"id: {id_}")


@pytest.mark.parametrize("written", ["", "''", "null"])
def test_an_id_that_is_empty_is_refused(written):
    assert problem(f"id: {written}") == "a case needs an id: write it behind `id:`"


def test_a_case_needs_an_id():
    assert problems(HEAD + "  - {gold: x, predicted: y}\n") == [
        "s.queryeval.yaml:5: a case needs an id: add `id: NAME`"
    ]


@pytest.mark.parametrize("tag", ["skip", "xfail", "skipif", "parametrize", "usefixtures", "filterwarnings"])
def test_pytests_own_markers_are_refused_as_tags(tag):
    assert problem(f"tags: [a, {tag}]") == f"'{tag}' is a marker of pytest's own: choose another name"
    assert problem(f"difficulty: {tag}") == f"'{tag}' is a marker of pytest's own: choose another name"


@pytest.mark.parametrize("tag", ["a b", "a.b", "''", "_a", "a:b"])
def test_tags_that_cannot_be_markers_are_refused(tag):
    assert "must consist of letters, digits, _ and -" in problem(f"tags: [{tag!r}]".replace("\"''\"", "''"))


def test_a_single_text_is_no_list_of_tags():
    assert problem("tags: nightly") == "tags: expected a list, found 'nightly': write [nightly]"


def test_metrics_replace_the_defaults():
    loaded = case("metrics: [same_row_count, valid_query, same_row_count]")

    assert loaded.settings.metrics == ("same_row_count", "valid_query")
    assert case("metrics: []").settings.metrics == ()


def test_unknown_metrics_are_reported():
    assert problem("metrics: [execution_acuracy]") == (
        "unknown metric 'execution_acuracy': did you mean 'execution_accuracy'?"
    )
    assert problem("metrics: valid_query") == "metrics: expected a list, found 'valid_query': write [valid_query]"
    assert problem("metrics:") == "metrics: expected a list, found nothing: write [] for none"


def test_metrics_that_cannot_be_imported_are_reported(monkeypatch):
    monkeypatch.setitem(METRICS._members, "broken", "no_such_module:broken")

    assert problem("metrics: [broken]").startswith("metric 'broken' cannot be imported from no_such_module:broken: ")


def test_thresholds_are_a_minimum_or_limits():
    loaded = case("thresholds: {execution_accuracy: 0.5, same_row_count: {max: 1}, arity_f1: {min: 0, max: 1}}")

    assert loaded.settings.thresholds == {
        "execution_accuracy": Threshold(minimum=0.5),
        "same_row_count": Threshold(maximum=1.0),
        "arity_f1": Threshold(minimum=0.0, maximum=1.0),
    }
    assert case("thresholds: {}").settings.thresholds == {}


def test_wrong_thresholds_are_reported():
    assert problem("thresholds: {execution_acuracy: 1}").startswith("unknown metric 'execution_acuracy': did you mean")
    number = "arity_f1: expected a number from 0 to 1, found"
    assert problem("thresholds: {arity_f1: high}") == f"{number} 'high'"
    assert problem("thresholds: {arity_f1: 95%}") == f"{number} '95%': write 0.95"
    assert problem("thresholds: {arity_f1: '1'}") == f"{number} the text '1': write 1"
    assert problem("thresholds: {arity_f1: true}") == f"{number} 'true'"
    assert problem("thresholds: {arity_f1: .nan}") == f"{number} '.nan'"
    assert problem("thresholds: {arity_f1: {min: high}}") == "min: expected a number from 0 to 1, found 'high'"
    named = "name the metric, as in {execution_accuracy: 0.8}"
    assert problem("thresholds: 0.9") == f"thresholds: expected {{METRIC: minimum}}, found '0.9': {named}"
    assert problem("thresholds: [arity_f1]") == f"thresholds: expected {{METRIC: minimum}}, found a list: {named}"
    assert problem("thresholds: {arity_f1: 1e999}") == "a number of 5 characters is too large"
    assert problem("thresholds: {queries: 5}") == "lower is better for 'queries': write {max: 5}"
    assert problem("thresholds: {arity_f1: {}}") == "'arity_f1' needs min or max, such as {min: 0.8}"
    assert problem("thresholds: {arity_f1: {min: 1, mx: 2}}") == "unknown key 'mx': did you mean 'max'?"
    assert problem("thresholds: {arity_f1: {min: 1, max: 0.5}}") == "min 1 of 'arity_f1' is above its max 0.5"
    assert problem("thresholds: {arity_f1: }") == "the threshold of 'arity_f1' is missing: write null to require none"
    assert problem("thresholds:") == "thresholds are missing: write {METRIC: minimum}, or {} to require nothing"


def test_inapplicable_metrics_on_a_case_are_reported():
    expected = "metric 'only_sql' is for sql, not for sparql: remove it, or write execution_accuracy"

    assert problem("kind: sparql", "source: a.ttl", "thresholds: {only_sql: 1}") == expected
    assert problem("kind: sparql", "source: a.ttl", "metrics: [only_sql]") == expected


def test_inapplicable_metrics_in_a_file_of_one_kind_are_reported():
    text = "source: a.ttl\nkind: sparql\nthresholds: {only_sql: 1}\ncases:\n  - {id: a, gold: x, predicted: y}\n"

    assert problems(text) == [
        "s.queryeval.yaml:3: metric 'only_sql' is for sql, not for sparql: remove it, or write execution_accuracy"
    ]


def test_thresholds_of_a_file_of_several_kinds_bind_where_they_apply():
    text = (
        "source: a.db\nkind: sql\nmetrics: [only_sql, arity_f1]\nthresholds: {only_sql: 1}\ncases:\n"
        "  - {id: a, gold: x, predicted: y}\n  - {id: b, gold: x, predicted: y, kind: sparql, source: a.ttl}\n"
    )

    sql, sparql = load(text)

    assert (sql.settings.metrics, list(sql.settings.thresholds)) == (("only_sql", "arity_f1"), ["only_sql"])
    assert (sparql.settings.metrics, list(sparql.settings.thresholds)) == (("arity_f1",), ["execution_accuracy"])


def test_options_are_checked_against_what_the_metric_takes():
    loaded = case("metrics: [only_sql]", "options: {only_sql: {alpha: 0.5}, sql: {}}")

    assert loaded.settings.options == {"only_sql": {"alpha": 0.5}, "sql": {}}
    assert problem("options: {sql: {anything: [1]}}") == "kind 'sql' has no option 'anything': choose from dialect"
    assert problem("options: {only_sql: {alfa: 1}}") == (
        "metric 'only_sql' has no option 'alfa': did you mean 'alpha'?"
    )
    assert problem("options: {only_sq: {}}") == (
        "options for 'only_sq', which is neither a metric nor a kind: did you mean 'only_sql'?"
    )
    assert problem("options: {only_sql: 5}") == "only_sql: expected a mapping, found '5': write {KEY: VALUE}"


def test_compare_sets_the_policy():
    loaded = case(
        "compare: {numbers: {rel: 0.01, abs: 0}, text_numbers: false, case: ignore, whitespace: ignore, nulls: equal,"
        " dates: strict, duplicates: ignore, row_order: ignore, columns: by_name, extra_columns: allow,"
        " rdf_terms: strict}",
        head="kind: sparql\nsource: a.ttl\n",
    )

    assert loaded.settings.policy == Policy(
        rel=0.01,
        abs=0,
        text_numbers=False,
        case="ignore",
        whitespace="ignore",
        dates="strict",
        duplicates="ignore",
        row_order="ignore",
        columns="by_name",
        extra_columns="allow",
        rdf_terms="strict",
    )


def test_the_kind_says_whether_text_numbers_are_numbers():
    assert case("kind: sparql", "source: a.ttl").settings.policy.text_numbers is True
    assert case("kind: sparql", "source: a.ttl", "compare: {text_numbers: false}").settings.policy.text_numbers is False


def test_wrong_comparisons_are_reported():
    assert problem("compare: {row_order: asc}") == "row_order: expected auto or ignore or strict, found 'asc'"
    assert problem("compare: {nulls: differ}") == "nulls: expected equal, found 'differ'"
    assert problem("compare: {text_numbers: yes}") == "text_numbers: expected true or false, found 'yes': write true"
    assert (
        problem("compare: {text_numbers: 'true'}")
        == "text_numbers: expected true or false, found the text 'true': write true"
    )
    assert problem("compare: {numbers: {rel: -1}}") == "rel: expected a number from 0 on, found '-1'"
    assert problem("compare: {roworder: auto}") == "unknown key 'roworder': did you mean 'row_order'?"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("timeout: 0", "timeout: expected a number above 0, found '0'"),
        ("timeout: 30s", "timeout: expected a number above 0, found '30s': write 30"),
        ("timeout: [1]", "timeout: expected a number above 0, found a list"),
        ("max_rows: 0", "max_rows: expected a whole number from 1 on, found '0'"),
        ("max_rows: 1.5", "max_rows: expected a whole number from 1 on, found '1.5'"),
        ("max_rows: '10'", "max_rows: expected a whole number from 1 on, found the text '10': write 10"),
        ("on_miss: ignore", "on_miss: expected fail or xfail, found 'ignore'"),
        ("allow_empty: yes", "allow_empty: expected true or false, found 'yes': write true"),
    ],
)
def test_wrong_settings_are_reported_with_what_is_expected(line, message):
    assert problem(line) == message


def test_settings_of_a_case_come_before_those_of_its_file():
    head = "kind: sql\nsource: a.db\ntimeout: 5\nmax_rows: 10\nreport_rows: 0\non_miss: xfail\n"

    loaded = case("timeout: 0.5", head=head)

    assert (
        loaded.settings.timeout,
        loaded.settings.max_rows,
        loaded.settings.report_rows,
        loaded.settings.on_miss,
    ) == (0.5, 10, 0, "xfail")


def test_report_rows_may_be_none_but_not_less():
    assert top_problem("report_rows: -1") == "report_rows: expected a whole number from 0 on, found '-1'"


def test_every_setting_that_is_not_computed_is_stated_by_a_key():
    assert set(KEYS.names()) >= STATED_SETTINGS
