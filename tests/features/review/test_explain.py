"""`queryeval explain`: everything about one case, live or from a report, and another query against it."""

import json
from pathlib import Path

import pytest
from report_maker import make_report, plain_report
from report_parts import refusal
from samples import entry
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.reports import write_report

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), (NULL, 5);"
SUITE = """kind: sql
source: {sqlite: {script: shop.sql}}
options: {soft_f1: {}}
cases:
  - id: dear
    question: What is dear?
    evidence: dear is above 4
    tags: [nightly]
    compare: {case: ignore}
    gold: |
      SELECT name, price
      FROM product WHERE price > 1
    predicted: SELECT name, price + 1 FROM product
  - {id: all, gold: SELECT name FROM product, predicted: SELECT name FROM product}
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    write(SHOP, "shop.sql")
    write("timeout: 7\ntags: [folder]\n", "queryeval.yaml")
    return write(SUITE)


@pytest.fixture
def explain(capsys):
    def run(*arguments):
        status = main(["explain", *arguments])
        return status, capsys.readouterr().out

    return run


def test_a_case_is_run_and_shown_with_all_that_is_known(shop, explain):
    status, out = explain("s.queryeval.yaml::dear")

    assert status == 1
    for part in (
        "s.queryeval.yaml::dear: failed: price differs in 3 of 3 rows: 2.0 → 3.0 (name pear), …; ",
        "  question   What is dear?\n  evidence   dear is above 4\n",
        "\ngold\n  | SELECT name, price\n  | FROM product WHERE price > 1\n  3 rows of 2 columns, ",
        "  name  price\n  pear    2.0\n  plum    2.0\n  NULL    5.0\n",
        "\npredicted, from inline\n  | SELECT name, price + 1 FROM product\n",
        "\ncause, predicted → gold\n  SELECT: price + 1 → price (wrong-expression)\n",
        "  WHERE: nothing → price > 1; no effect on this data (missing-condition)\n",
        "  | SELECT name, price FROM product WHERE price > 1\n",
        "\ndifference, gold → predicted\n  price differs in 3 of 3 rows: 2.0 → 3.0 (name pear), …\n",
        "  price differs in 3 of 3 rows: 2.0 → 3.0 (name pear), 2.0 → 3.0 (name plum), 5.0 → 6.0 (name NULL)\n",
        "  gold     pear    2.0\n  instead  pear    3.0\n",
        "  execution_accuracy  0.000  at least 1\n",
        "  texts      differ in select, where",
    ):
        assert part in out


def test_each_setting_is_shown_with_the_place_that_states_it(shop, explain):
    settings = explain("dear")[1].partition("\nsettings\n")[2].splitlines()

    assert [" ".join(line.split()) for line in settings] == [
        "timeout 7 (queryeval.yaml:1)",
        'tags ["folder"] (queryeval.yaml:2)',
        "kind sql (s.queryeval.yaml:1)",
        "source shop.sql (s.queryeval.yaml:2)",
        "options: soft_f1 {} (s.queryeval.yaml:3)",
        'tags ["nightly"] (s.queryeval.yaml:8)',
        "compare: case ignore (s.queryeval.yaml:9)",
        'metrics ["execution_accuracy", "row_matching_f1", "soft_f1", "exact_set_match", "valid_query"] (default)',
        "max_rows 100000 (default)",
        "on_miss fail (default)",
        "thresholds: execution_accuracy 1.0 (default)",
    ]


def test_thresholds_are_shown_one_by_one(shop, explain):
    write(SUITE.replace("cases:", "thresholds: {execution_accuracy: 0.5}\ncases:", 1))

    settings = explain("dear")[1].partition("\nsettings\n")[2].splitlines()

    shown = [" ".join(line.split()) for line in settings if "thresholds" in line]
    assert shown == ["thresholds: execution_accuracy 0.5 (s.queryeval.yaml:4)"]


@pytest.mark.parametrize(
    ("query", "status", "headline"),
    [
        ("SELECT name, price FROM product", 0, "s.queryeval.yaml::dear: passed"),
        (
            "SELECT nme FROM product",
            1,
            "s.queryeval.yaml::dear: failed: prediction failed (invalid): no such column: nme",
        ),
        (
            "DROP TABLE product",
            1,
            "s.queryeval.yaml::dear: failed: prediction failed (unsafe): only reading is allowed",
        ),
    ],
)
def test_another_query_is_tried_against_a_case(shop, explain, query, status, headline):
    example, out = explain("dear", "--query", query)

    assert example == status
    assert out.startswith(headline)
    assert f"predicted, from --query\n  | {query}\n" in out


def test_a_case_without_a_prediction_is_told_of_the_option_that_tries_a_query(shop, explain):
    write(SUITE.replace(", predicted: SELECT name FROM product", ""))
    hint = "there is no prediction: add `predicted` or a `predictor`, or try a query with --query 'SELECT …'"

    status, text = explain("all")
    assert (status, hint in text.splitlines()) == (1, True)

    status, text = explain("all", "--query", "SELECT name FROM product")
    assert (status, hint in text.splitlines()) == (0, False)


def test_another_query_is_tried_without_calling_the_predictor(shop, explain):
    write(
        SUITE.replace("cases:", "predictor: nothing.py:predict\ncases:", 1).replace(
            "    predicted: SELECT name, price +", "    # "
        )
    )

    assert explain("dear", "--query", "SELECT name, price FROM product")[0] == 0


def test_a_row_of_a_spreadsheet_is_named_with_file_and_row(shop, explain):
    write("id,gold,predicted\nin-table,SELECT 1,SELECT 1\n", "q.csv")
    write("kind: sql\nsource: {sqlite: {script: shop.sql}}\ncases: {file: q.csv}\n", "t.queryeval.yaml")

    assert "  suite      t.queryeval.yaml:3 (q.csv, row 2)\n" in explain("in-table")[1]


def test_json_has_the_case_as_reports_have_it_and_the_settings(shop, capsys):
    assert main(["explain", "all", "--json"]) == 0

    captured = capsys.readouterr()
    output = json.loads(captured.out)
    assert output["case"]["nodeid"] == "s.queryeval.yaml::all"
    assert output["case"]["outcome"] == "passed"
    assert output["settings"][0] == {"key": "timeout", "value": "7", "path": "queryeval.yaml", "line": 1}
    assert captured.err.startswith("s.queryeval.yaml::all: passed\n")


def test_settings_that_levels_state_together_are_shown_with_the_place_of_each(shop, capsys):
    write("compare: {numbers: {rel: 0.01, abs: 0.5}, case: ignore}\n", "queryeval.yaml")
    write(SUITE.replace("cases:", "compare: {numbers: {abs: 0.1}}\ncases:", 1))
    assert main(["explain", "all", "--json"]) == 0

    settings = {setting["key"]: setting for setting in json.loads(capsys.readouterr().out)["settings"]}
    assert {key: (value["value"], value["path"]) for key, value in settings.items() if "compare" in key} == {
        "compare: numbers: rel": ("0.01", "queryeval.yaml"),
        "compare: numbers: abs": ("0.1", "s.queryeval.yaml"),
        "compare: case": ("ignore", "queryeval.yaml"),
    }


def test_a_case_of_a_report_is_shown_without_running_it_also_without_its_suite(shop, explain):
    write_report(evaluate(load_cases(".")), Path("report.json"))
    Path("shop.sql").unlink()
    wrong, text = explain("report.json", "dear")
    shop.unlink()
    right, without_suite = explain("report.json", "all")

    assert (wrong, right) == (1, 0)
    assert "  instead  pear    3.0\n" in text
    assert "  (queryeval.yaml:1)\n" in text
    assert without_suite.endswith("\nthe suite cannot be read from here, so that its settings are not shown\n")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("al", "no case 'al': did you mean 'all'?"),
        (
            "none.queryeval.yaml::all",
            "no file none.queryeval.yaml from here: start the command in the root folder of the run",
        ),
        ("s.queryeval.yaml::none", "s.queryeval.yaml: there is no case 'none': choose from all, dear"),
        ("s.queryeval.yaml", "'s.queryeval.yaml' is a suite: name one of its cases, such as s.queryeval.yaml::dear"),
        ("zzz", "no case 'zzz': choose from all, dear, twice"),
        ("twice", "'twice' is the id of several cases: write a.queryeval.yaml::twice or b.queryeval.yaml::twice"),
        ("shop.sql", "no case 'shop.sql': write the id or the node id of a case, such as a.queryeval.yaml::twice"),
    ],
)
def test_a_name_that_no_one_case_has_is_refused(shop, name, problem):
    for file in ("a.queryeval.yaml", "b.queryeval.yaml"):
        write("kind: sql\nsource: a.db\ncases:\n  - {id: twice, gold: SELECT 1}\n", file)

    assert refusal("explain", name) == problem


def test_an_error_of_gold_is_shown(shop, explain):
    write(SUITE.replace("SELECT name, price\n", "SELECT nme, price\n"))

    status, out = explain("dear")

    assert status == 1
    assert out.startswith("s.queryeval.yaml::dear: error: gold query failed (invalid): no such column: nme")


def test_a_json_case_is_shown_with_its_values(shop, explain):
    write('kind: json\ncases:\n  - {id: a, gold: {x: [1]}, predicted: "{\\"x\\": [2]}"}\n', "j.queryeval.yaml")

    out = explain("j.queryeval.yaml::a")[1]

    assert 'gold\n  | {\n  |   "x": [\n  |     1\n  |   ]\n  | }\n' in out
    assert "\ndifference\n" in out


def test_several_trials_are_listed(shop, explain):
    answer = "f'SELECT name, price + {next(n)} FROM product'"
    write(f"import itertools\nn = itertools.count()\ndef predict(case):\n    return {answer}\n", "p.py")
    text = SUITE.replace("cases:", "predictor: p.py:predict\ntrials: 2\ncases:", 1)
    write(text.replace("    predicted: SELECT name, price + 1 FROM product\n", ""))

    out = explain("dear")[1]

    assert "trial 1  passed" in out
    assert "trial 2  failed" in out


def test_secrets_of_sources_and_predictors_are_not_shown(shop, explain, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", "key-of-the-shop")
    write("""kind: sql
source: {sqlite: {script: shop.sql}, version: "1"}
predictor: {http: {url: "https://u:pass-word-1@e/", headers: {Authorization: Bearer secret-1234}}}
cases:
  - {id: s, gold: SELECT name FROM product, predicted: SELECT 'key-of-the-shop'}
""")

    out = explain("s")[1]

    assert "pass-word-1" not in out
    assert "secret-1234" not in out
    assert "key-of-the-shop" not in out
    assert "  | SELECT '[redacted]'\n" in out


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "1 row of 1 column, not run"), (1.2, "1 row of 1 column, 1.200 s")]
)
def test_a_stated_answer_was_not_run(shop, explain, seconds, shown):
    gold = {"query": None, "columns": ["a"], "row_count": 1, "sample": [[1]], "seconds": seconds, "index": 0}
    stored_case = {"nodeid": "s::a", "id": "a", "gold": gold, "predicted": None, "prediction": None, "difference": None}

    write_report(plain_report(entry(**stored_case)), Path("report.json"))

    assert f"  {shown}\n" in explain("report.json", "a")[1]


def test_a_hostile_report_stays_text(shop, explain):
    report = make_report(24, hostile=True)
    write_report(report, Path("evil.json"))

    out = "".join(explain("evil.json", case["nodeid"])[1] for case in report["cases"] if case["outcome"] != "skipped")

    assert "</script>" in out
    assert not {"\x1b", "\u202e", "\x00"} & set(out)
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())


BUYERS = """kind: sql
source: {sqlite: {script: buyers.sql}}
cases:
  - id: buyers
    gold: SELECT DISTINCT c.name FROM customer c JOIN purchase p ON p.customer = c.id WHERE c.name <> 'key-of-the-shop'
    predicted: SELECT name FROM customer WHERE id IN (SELECT customer FROM purchase)
  - {id: same, gold: SELECT id FROM customer, predicted: "SELECT id  FROM customer"}
  - {id: constant, gold: SELECT 1, predicted: SELECT 2 - 1}
"""
BUYERS_SQL = """CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customer (id));
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Cleo');
INSERT INTO purchase VALUES (1, 1), (2, 1), (3, 2);
"""


@pytest.fixture
def buyers(shop):
    write(BUYERS_SQL, "buyers.sql")
    return write(BUYERS)


def test_a_right_prediction_is_shown_with_a_database_in_which_it_is_wrong(buyers, explain):
    status, out = explain("buyers")

    assert status == 0
    example = out.partition("\ncounterexample\n  the answers agree on the source, and differ on 2 rows:\n")[2]
    assert example.startswith("  table customer\n  id             name\n  1   key-of-the-shop\n")
    assert "  gold answers\n  0 rows of 1 column, " in example
    assert "  predicted answers\n  1 row of 1 column, " in example
    assert "  to keep it as a variant of the source: --save FILE.sql\n" in example


def test_a_counterexample_is_saved_as_a_variant_that_exposes_the_prediction(buyers, explain):
    status, out = explain("buyers", "--save", "variants/1.sql")

    assert status == 0
    assert 'saved as variants/1.sql; to use it with the source, add to the source: variants: "variants/1.sql"\n' in out
    text = BUYERS.replace("buyers.sql}", 'buyers.sql, variants: "variants/*.sql"}')
    write(text.replace("cases:", "metrics: [test_suite_accuracy]\ncases:", 1))
    assert "test suite: the answers differ on variants/1.sql" in explain("buyers")[1]
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "buyers", "--save", "variants/1.sql"])
    more = explain("buyers", "--save", "2.sql")[1]
    assert 'saved as 2.sql; to use it with the source, its variants, "variants/*.sql", must include it\n' in more


def test_a_report_with_a_challenge_shows_its_counterexample_only(buyers, explain):
    assert main(["evaluate", ".", "--challenge", "--report", "challenged.json"]) == 0

    out = explain("challenged.json", "buyers")[1]

    assert "CREATE TABLE" in out
    assert "\ncounterexample\n" not in out
    assert "saved as 1.sql" in explain("challenged.json", "buyers", "--save", "1.sql")[1]


@pytest.mark.parametrize("arguments", [("dear",), ("buyers", "--query", "SELECT name FROM customer"), ("same",)])
def test_nothing_is_looked_for_where_the_source_shows_the_difference_or_the_queries_are_one(buyers, explain, arguments):
    write(SUITE, "t.queryeval.yaml")

    assert "\ncounterexample\n" not in explain(*arguments)[1]


def test_what_was_not_found_is_not_called_equivalent(buyers, explain):
    query = (
        "SELECT DISTINCT name FROM customer WHERE id IN (SELECT customer FROM purchase) AND name <> 'key-of-the-shop'"
    )

    assert "\ncounterexample\n  no difference found in 121 small databases\n" in explain("buyers", "--query", query)[1]
    assert "\ncounterexample\n  no difference found in 121 small databases\n" in explain("constant")[1]


def test_a_counterexample_to_a_case_of_a_report_is_in_the_json_without_secrets(buyers, capsys, monkeypatch):
    write_report(evaluate(load_cases(buyers)), Path("report.json"))
    monkeypatch.setenv("SHOP_KEY", "key-of-the-shop")

    assert main(["explain", "report.json", "buyers", "--json"]) == 0

    output = json.loads(capsys.readouterr().out)["counterexample"]
    assert {table["name"] for table in output["tables"]} == {"customer", "purchase"}
    assert (output["gold"]["row_count"], output["predicted"]["row_count"]) == (0, 1)
    assert output["script"].startswith("CREATE TABLE")


def test_without_its_source_a_case_of_a_report_is_shown_without_a_counterexample(buyers, explain):
    write_report(evaluate(load_cases(buyers)), Path("report.json"))
    Path("buyers.sql").unlink()

    assert "\ncounterexample\n  not looked for: " in explain("report.json", "buyers")[1]


EXAMPLE = " (example: queryeval explain shop."


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["report.json", "all", "s.queryeval.yaml"],
            [
                "queryeval explain: unexpected argument 's.queryeval.yaml': write only REPORT.json, show the case as ",
                "; write the value of an option after it: --query TEXT, --save FILE (example: ",
            ],
        ),
        (
            ["all", "--qeury=SELECT 1"],
            ["queryeval explain: unknown option '--qeury': did you mean '--query'?", EXAMPLE],
        ),
        (["buyers", "--save", "shop.sql/1.sql"], ["shop.sql/1.sql: cannot be written: File exists"]),
        (["report.json", "all", "--query", "SELECT 1"], ["no file s.queryeval.yaml from here"]),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_in_one_line(buyers, arguments, told):
    if "report.json" in arguments:
        write(SUITE)
        write_report(evaluate(load_cases(".")), Path("report.json"))
        Path("s.queryeval.yaml").unlink()
    else:
        write(BUYERS.replace("id: same", "id: all"))

    said = refusal("explain", *arguments)

    assert [text for text in told if text not in said] == []


def test_the_report_comes_before_the_case_as_in_accept_and_may_be_an_option(shop, explain):
    write_report(evaluate(load_cases(".")), Path("report.json"))

    assert explain("report.json", "dear") == explain("dear", "--report", "report.json")


def test_a_prediction_that_a_file_lacks_is_the_failure_that_it_is_in_the_run_of_its_suite(shop, explain):
    Path("p.jsonl").write_text('{"id": "there", "predicted": "SELECT 1"}\n', encoding="utf-8")
    case = "gold: SELECT 1, question: '?'"
    Path("m.queryeval.yaml").write_text(
        f"kind: sql\nsource: {{sqlite: {{script: shop.sql}}}}\npredictor: {{file: {{path: p.jsonl, missing: fail}}}}\n"
        f"cases: [{{id: there, {case}}}, {{id: gone, {case}}}]\n",
        encoding="utf-8",
    )

    status, out = explain("m.queryeval.yaml::gone")

    assert status == 1
    assert "failed: prediction failed (missing): p.jsonl: no prediction for 'gone' (1 of 2 cases has none)" in out
    assert "| (the file has no prediction)" in out
