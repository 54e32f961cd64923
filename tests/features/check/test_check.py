"""`queryeval check`: each rule finds what was planted for it, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from suites import problems, write

from pytest_queryeval import METRICS
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import CHECK_RULES, SourceError
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.check.gold_rules import GOLD_RULES, GoldRun, gold_slow
from pytest_queryeval.features.check.suite_rules import SUITE_RULES
from pytest_queryeval.languages import KINDS
from pytest_queryeval.suites import load_suites, read_levels

SHOP = """
CREATE TABLE product (name TEXT, sku TEXT, price REAL, year TEXT);
INSERT INTO product VALUES ('pear', '9', 2, '1999'), ('plum', '10', 2, '2001'), ('fig', '11', 5, '2000');
"""
FOLDER = """
kind: sql
source: shop
sources:
  shop: {sqlite: {script: shop.sql}}
  crawl: {crawl: anywhere}
  old: {sqlite: {script: old.sql}}
thresholds: {execution_accuracy: 1, json_equal: 1}
"""
SUITE = """
cases:
  - {id: right, question: All names, gold: SELECT name FROM product}
  - {id: fails, gold: SELECT nme FROM product}
  - {id: unlike, gold: SELECT price FROM product, metrics: [never_right]}
  - {id: empty, gold: SELECT name FROM product WHERE price > 9}
  - {id: slow, gold: slow, source: crawl}
  - {id: unstable, gold: "SELECT name, random() FROM product"}
  - {id: tie, gold: SELECT name FROM product ORDER BY price LIMIT 1}
  - {id: text, gold: SELECT price FROM product ORDER BY sku}
  - {id: constant, gold: SELECT 42}
  - {id: again, question: "All  names", gold: SELECT name FROM product WHERE price > 0}
  - {id: column, gold: SELECT year FROM product, compare: {gold_columns: [month]}}
  - {id: other, question: Each name, gold: "select NAME from Product -- all"}
  - {id: lax, gold: SELECT sku FROM product, thresholds: {execution_accuracy: 0, execution_seconds: {max: 9}}}
""".replace('"select NAME from Product -- all"', '"select NAME from Product /* all */"')
PLANTED = [
    ("unused-source", "queryeval.yaml", 7, None),
    ("stale-setting", "queryeval.yaml", 8, None),
    ("gold-fails", "s.queryeval.yaml", 4, "fails"),
    ("gold-not-equal-to-itself", "s.queryeval.yaml", 5, "unlike"),
    ("gold-empty", "s.queryeval.yaml", 6, "empty"),
    ("gold-slow", "s.queryeval.yaml", 7, "slow"),
    ("gold-unstable", "s.queryeval.yaml", 8, "unstable"),
    ("limit-tie", "s.queryeval.yaml", 9, "tie"),
    ("text-order", "s.queryeval.yaml", 10, "text"),
    ("constant-result", "s.queryeval.yaml", 11, "constant"),
    ("duplicate-question", "s.queryeval.yaml", 12, "again"),
    ("unknown-column", "s.queryeval.yaml", 13, "column"),
    ("duplicate-gold", "s.queryeval.yaml", 14, "other"),
    ("nothing-required", "s.queryeval.yaml", 15, None),
]


class Crawl:
    """A source whose one answer takes 20 of 30 seconds, as it says."""

    def execute(self, query, *, timeout, max_rows):
        return Execution(query=query, answer=Table(columns=("a",), rows=[(1,)]), seconds=20.0)

    def close(self):
        pass


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    METRICS.register("never_right", lambda gold, predicted: 0.5)
    METRICS.register("never_right", replace(METRICS["never_right"], max_score=1.0))
    ENGINES.register("crawl", lambda source, hosts: Crawl())
    Path("shop.sql").write_text(SHOP, encoding="utf-8")
    Path("old.sql").write_text("", encoding="utf-8")
    return tmp_path


@pytest.fixture
def check(shop, capsys):
    def run(suite="", *options, folder=FOLDER):
        if suite:
            write(folder, "queryeval.yaml")
            write(suite)
        status = main(["check", ".", "--json", *options])
        return status, json.loads(capsys.readouterr().out)["findings"]

    return run


def test_a_metric_of_ones_own_that_raises_is_found_though_its_scores_have_no_range(check):
    METRICS.register("broken", lambda gold, predicted: gold.rows[99])
    suite = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nmetrics: [broken]\nthresholds: {broken: 1}\n"

    findings = check(f"{suite}cases:\n  - {{id: a, question: q, gold: SELECT 1}}\n")[1]

    messages = [finding["message"] for finding in findings if finding["rule"] == "gold-not-equal-to-itself"]
    assert messages == [
        "gold cannot be scored against itself: metric 'broken' raised IndexError: list index out of range"
    ]


def cases(*golds):
    """A suite of cases with these keys, and the settings that all need and use."""
    return "cases:\n" + "".join(f"  - {{id: c{number}, {keys}}}\n" for number, keys in enumerate(golds))


ONE = "kind: sql\nsource: {sqlite: {script: shop.sql}}\n"


def rules(findings):
    return [(finding["rule"], finding["case"]) for finding in findings]


def test_every_rule_has_a_function_with_a_description():
    rules_of_check = {**GOLD_RULES, **SUITE_RULES}

    found_in_reading = {"review-conflict", "review-future", "review-stale", "unread-column"}
    assert rules_of_check.keys() == CHECK_RULES.keys() - found_in_reading
    assert all(rule.__doc__.startswith("Find ") for rule in rules_of_check.values())


def test_one_planted_defect_for_each_rule_is_found_and_nothing_else(check):
    status, findings = check(SUITE)

    assert [(finding["rule"], finding["path"], finding["line"], finding["case"]) for finding in findings] == PLANTED
    assert [finding["level"] for finding in findings] == [CHECK_RULES[rule] for rule, *_ in PLANTED]
    assert status == 1


SPELLED = """
CREATE TABLE address (id INT, country TEXT, city TEXT COLLATE NOCASE, zip INT);
INSERT INTO address VALUES (1, 'Haiti', 'Jacmel', 7), (2, 'Haiti', 'Les Cayes', 8),
  (3, 'Cote d''Ivoire', 'Korhogo ', 9), (4, 'Switzerland', 'Basel', 10);
"""


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("country = 'haiti'", "'haiti' is not in address.country, 'Haiti' is, 2 times: fix the gold, or the data"),
        ("'haiti' <> a.country", "'haiti' is not in address.country, 'Haiti' is, 2 times"),
        ('country = "haiti"', "'haiti' is not in address.country, 'Haiti' is, 2 times: fix the gold, or the data"),
        ("city IN ('Basel', 'korhogo')", "'korhogo' is not in address.city, 'Korhogo ' is, 1 time"),
        ("country = 'Côte-d-Ivoire'", "'Côte-d-Ivoire' is not in address.country, 'Cote d'Ivoire' is, 1 time"),
        ("country = 'Switzerlnd'", "'Switzerlnd' is not in address.country, 'Switzerland' is, 1 time"),
        ("id IN (SELECT id FROM address WHERE country = 'HAITI')", "'HAITI' is not in address.country, 'Haiti' is"),
        ("country = 'Haiti'", None),
        ("country = 'haiti' OR country = 'Haiti'", None),
        ("country = 'haiti' AND city <> 'Haiti'", "'haiti' is not in address.country, 'Haiti' is, 2 times"),
        ("city = 'basel'", None),  # equal by the rules of the column
        ("zip = '7'", None),
        ("lower(country) = 'haiti'", None),
        ("country = 'Malta'", None),
        ("country = 'Basel'", None),
        ("country LIKE 'haiti'", None),
        ("country = ''", None),
        ("no_column = 'haiti'", None),
    ],
)
def test_texts_that_the_data_spells_otherwise_are_found(check, condition, message):
    Path("shop.sql").write_text(SPELLED, encoding="utf-8")
    alias = " AS a" if "a." in condition else ""
    write(ONE, "queryeval.yaml")
    write(json.dumps({"cases": [{"id": "a", "gold": f"SELECT id FROM address{alias} WHERE {condition}"}]}))

    findings = [finding for finding in check()[1] if finding["rule"] == "value-not-in-data"]

    assert [finding["message"][: len(message or "")] for finding in findings] == ([message] if message else [])


def test_spellings_are_not_looked_for_among_too_many_values(check, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.languages.sql.compared_texts.MAX_VALUES", 2)
    Path("shop.sql").write_text(SPELLED, encoding="utf-8")
    suite = cases(
        "gold: SELECT id FROM address WHERE country = 'Switzerlnd'",
        "gold: SELECT id FROM address WHERE country = 'haiti'",
    )

    rules_met = rules(check(suite, folder=ONE)[1])

    assert [case for rule, case in rules_met if rule == "value-not-in-data"] == ["c1"]


@pytest.mark.parametrize(
    ("condition", "reading"),
    [
        ("year < date('now', '-1 year')", "DATE('now', '-1 year')"),
        ("year < current_date", "CURRENT_DATE"),
        ("year < strftime('%Y', 'NOW')", "'NOW'"),
        ("year < date()", "DATE()"),
        ("year = date(sku) AND name <> 'now'", None),
    ],
)
def test_golds_that_read_the_clock_are_found(check, condition, reading):
    write(ONE, "queryeval.yaml")
    write(json.dumps({"cases": [{"id": "a", "gold": f"SELECT name FROM product WHERE {condition}"}]}))

    findings = [finding for finding in check()[1] if finding["rule"] == "moving-gold"]

    message = f"gold reads the current date or time ({reading}): write the date that is meant"
    assert [finding["message"] for finding in findings] == ([message] if reading else [])


@pytest.mark.parametrize(("condition", "runs"), [("0 * random() = 0", 11), ("0 = 0", 2)])
def test_a_gold_with_random_values_runs_often_since_it_may_answer_alike_by_chance(check, monkeypatch, condition, runs):
    queries, execute = [], Session.execute
    gold = f"SELECT name FROM product WHERE {condition}"

    def recorded(session, content, *arguments, **options):
        queries.append(content.query)
        return execute(session, content, *arguments, **options)

    monkeypatch.setattr(Session, "execute", recorded)
    write(ONE, "queryeval.yaml")
    write(json.dumps({"cases": [{"id": "a", "gold": gold}]}))

    assert "gold-unstable" not in [finding["rule"] for finding in check()[1]]
    assert queries.count(gold) == runs


def test_a_gold_that_takes_a_row_by_chance_is_found(check):
    write(ONE, "queryeval.yaml")
    write(json.dumps({"cases": [{"id": "a", "gold": "SELECT name FROM product ORDER BY random() LIMIT 1"}]}))

    assert "gold-unstable" in [finding["rule"] for finding in check()[1]]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT ?x { ?x ?y ?rand } ORDER BY RAND()", "RAND()"),
        ("SELECT (STRUUID() AS ?x) {}", "STRUUID()"),
        ("ASK {}", ""),
    ],
)
def test_random_parts_of_sparql_are_known(query, part):
    assert KINDS["sparql"].random_part(query, "") == part


def test_a_sparql_gold_that_reads_the_clock_is_found(check):
    Path("shop.ttl").write_text("<a:b> <a:due> 1 .", encoding="utf-8")
    gold = "SELECT ?x WHERE { ?x <a:due> ?now FILTER (?now < NOW()) }"
    write(json.dumps({"kind": "sparql", "source": {"rdf": "shop.ttl"}, "cases": [{"id": "a", "gold": gold}]}))

    assert "moving-gold" in [finding["rule"] for finding in check()[1]]


def test_lines_name_place_level_rule_case_problem_and_remedy(check, capsys):
    check(SUITE)

    status = main(["check", "."])

    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[2] == (
        "s.queryeval.yaml:4: error [gold-fails] case 'fails': gold query failed (invalid): no such column: nme"
        ": did you mean 'name'?"
    )
    assert lines[-1] == "4 errors, 10 warnings in 13 cases"


def test_without_running_only_the_texts_are_examined(check):
    Path("shop.sql").unlink()

    status, findings = check(SUITE, "--no-run")

    rules_met = {finding["rule"] for finding in findings}
    assert status == 1
    of_texts = {"stale-setting", "constant-result", "duplicate-question", "duplicate-gold"}
    assert rules_met == {*of_texts, "unused-source", "nothing-required"}


def test_long_runs_tell_their_progress_on_standard_error(check, capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)
    write(ONE, "queryeval.yaml")
    write(cases("gold: SELECT name FROM product", "gold: SELECT price FROM product"))

    main(["check", "."])

    captured = capsys.readouterr()
    assert captured.err.startswith("queryeval check: 1 of 2 cases, about ")
    assert captured.out == "0 errors, 0 warnings in 2 cases\n"


def test_the_example_suite_silences_what_it_means(shop, capsys, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3] / "example_suite")

    for suite in ("sql/trips", "sparql/building"):
        assert main(["check", f"{suite}.queryeval.yaml", "--strict"]) == 0
        assert capsys.readouterr().out.startswith("0 errors, 0 warnings in ")


def test_warnings_alone_are_an_exit_status_of_1_under_strict_only(check):
    suite = cases("gold: SELECT 42")

    assert check(suite, folder=ONE)[0] == 0
    assert check(suite, "--strict", folder=ONE)[0] == 1


@pytest.mark.parametrize("level", ["folder", "file", "case"])
def test_a_rule_is_silenced_at_any_level_with_a_reason(check, capsys, level):
    ignore = "check: {ignore: {constant-result: the answer is 42}}"
    folder, keys, top = ONE, "gold: SELECT 42", ""
    if level == "folder":
        folder += f"{ignore}\n"
    elif level == "file":
        top = f"{ignore}\n"
    else:
        keys += f", {ignore}"

    assert check(top + cases(keys), "--strict", folder=folder) == (0, [])
    main(["check", "."])
    assert capsys.readouterr().out == "0 errors, 0 warnings in 1 case; 1 silenced\n"


def test_levels_silence_different_rules_together(check):
    folder = f"{ONE}check: {{ignore: {{limit-tie: either is right}}}}\n"
    silent = "check: {ignore: {constant-result: so be it}}"

    findings = check(
        cases(f"gold: SELECT 42, {silent}", "gold: SELECT 43", "gold: SELECT name FROM product LIMIT 1"), folder=folder
    )[1]

    assert rules(findings) == [("constant-result", "c1")]


def test_settings_of_a_folder_are_silenced_there(check):
    folder = FOLDER + "check: {ignore: {stale-setting: for later, unused-source: for later}}\n"

    assert check(cases("gold: SELECT name FROM product"), folder=folder)[1][1:] == []


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{limit-ties: why}", "unknown rule 'limit-ties': did you mean 'limit-tie'?"),
        ("{limit-tie: }", "'limit-tie' is ignored without a reason: write {limit-tie: REASON}"),
        ("{limit-tie: false}", "'limit-tie' is ignored without a reason: write {limit-tie: REASON}"),
        ("[limit-tie]", "ignore: expected {RULE: REASON}, found a list: write {limit-tie: REASON}"),
    ],
)
def test_a_rule_needs_its_name_and_a_reason(shop, written, problem):
    (line,) = problems(
        f"{ONE}check: {{ignore: {written}}}\ncases:\n  - {{id: a, gold: SELECT 1, predicted: SELECT 1}}\n"
    )

    assert line.endswith(problem)


def test_each_of_several_golds_is_examined_at_its_line(check):
    suite = "cases:\n  - id: a\n    gold_any:\n      - SELECT name FROM product\n      - SELECT 1 FROM nowhere\n"

    (problem,) = check(suite, folder=ONE)[1]

    assert (problem["rule"], problem["line"]) == ("gold-fails", 5)
    assert problem["message"].startswith("gold_any[1] query failed (invalid): no such table: nowhere")


def test_a_source_that_cannot_answer_is_one_finding(check):
    folder = ONE.replace("shop.sql", "none.sql")

    (problem,) = check(cases("gold: SELECT 1 FROM t", "gold: SELECT 2 FROM t"), folder=folder)[1]

    assert (problem["rule"], problem["path"], problem["line"], problem["case"]) == (
        "gold-fails",
        "queryeval.yaml",
        2,
        None,
    )
    assert problem["message"].endswith("(golds of 2 cases do not run)")


def test_skipped_cases_are_not_examined(check):
    keys = "skip: no database, question: Why?, gold: SELECT nme FROM product"

    assert check(cases(keys, keys), folder=ONE) == (0, [])


@pytest.mark.parametrize(
    "gold",
    [
        "SELECT name FROM product ORDER BY price DESC LIMIT 1",  # no tie at the cut
        "SELECT price FROM product ORDER BY price LIMIT 1",  # the rows that tie are equal
        "SELECT name FROM product ORDER BY price LIMIT 9",  # nothing is cut
        "SELECT name FROM product ORDER BY year",  # sorts as numbers do
        "SELECT name FROM product ORDER BY CAST(sku AS INTEGER)",
        "SELECT name FROM product ORDER BY name, sku || 'x'",
        "SELECT count(*) FROM product",
        "SELECT name FROM product WHERE price = (SELECT max(price) FROM product)",
        "SELECT 1 WHERE EXISTS (SELECT * FROM product)",
        "WITH cheap AS (SELECT * FROM product WHERE price < 3) SELECT count(*) FROM cheap",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, name FROM n, product",
    ],
)
def test_golds_that_are_a_test_are_not_found(check, gold):
    assert check(f"cases:\n  - id: a\n    gold: |\n      {gold}\n", folder=ONE) == (0, [])


@pytest.mark.parametrize(
    ("gold", "rule"),
    [
        ("SELECT count(*) FROM product WHERE name = 'kiwi'", "constant-result"),
        ("SELECT sum(price) FROM product AS p WHERE p.name = 'kiwi'", "constant-result"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
            "constant-result",
        ),
        ("SELECT name FROM product LIMIT 2", "limit-tie"),
        ("SELECT DISTINCT sku FROM product ORDER BY sku DESC", "text-order"),
        ("SELECT name FROM product ORDER BY 2 + 0, sku", "text-order"),
    ],
)
def test_more_golds_that_are_no_test(check, gold, rule):
    assert rules(check(f"cases:\n  - id: a\n    gold: |\n      {gold}\n", folder=ONE)[1]) == [(rule, "a")]


def test_rules_read_sparql_as_well(check):
    Path("g.ttl").write_text("<a:a> <a:p> '9' . <a:b> <a:p> '10' . <a:c> <a:q> 1 . <a:d> <a:q> 1 .", encoding="utf-8")
    suite = cases(
        "gold: 'SELECT ?s { ?s <a:p> ?n } ORDER BY ?n'",
        "gold: 'SELECT ?s { ?s <a:q> ?n } ORDER BY ?n LIMIT 1'",
        "gold: 'SELECT (42 AS ?x) { }'",
        "gold: 'SELECT (count(*) AS ?n) { ?s <a:none> ?o }'",
        "gold: 'SELECT ?s { ?s <a:q> ?n }'",
        "gold: 'ASK { ?s <a:q> 1 }'",
        "gold: 'SELECT (rand() AS ?n) { ?s <a:p> ?o }'",
    )

    rules_met = rules(check(suite, folder="kind: sparql\nsource: g.ttl\n")[1])

    assert rules_met == [
        ("text-order", "c0"),
        ("limit-tie", "c1"),
        ("constant-result", "c2"),
        ("constant-result", "c3"),
        ("unknown-term", "c3"),
        ("gold-unstable", "c6"),
    ]


def test_values_of_other_kinds_are_not_taken_for_queries(check):
    suite = cases("question: a, gold: {x: 1}", "question: b, gold: {x: 1}", "question: c, gold: []")

    assert check(suite, folder="kind: json\n") == (0, [])


@pytest.mark.feature("writes")
def test_golds_that_change_nothing_or_by_chance_are_told(check):
    suite = cases(
        "gold: DELETE FROM product WHERE price > 9",
        "gold: UPDATE product SET price = random()",
        "gold: UPDATE product SET price = 1",
        "gold: DELETE FROM product WHERE price > 9, allow_empty: true",
    )

    findings = check(suite, folder=ONE + "writes: true\n")[1]
    assert rules(findings) == [("gold-empty", "c0"), ("gold-unstable", "c1")]
    assert findings[0]["message"].startswith("gold changes and returns nothing")


@pytest.mark.feature("writes")
def test_columns_of_writes_that_the_source_lacks_are_told_once(check):
    golds = "gold_any: [CREATE TABLE extra AS SELECT 1 AS a, UPDATE product SET price = 1]"
    writes = "writes: {ignore: [product.prise, Main.Product.price, extra.a], keys: [produkt.price]}\n"

    findings = check(cases(golds), folder=ONE + writes)[1]

    assert rules(findings) == [("unknown-column", "c0")] * 2
    assert findings[0]["message"] == (
        "writes: ignore: the source has no column 'product.prise': did you mean 'product.price'?"
    )
    assert "writes: keys: the source has no column 'produkt.price'" in findings[1]["message"]


def test_stored_answers_are_examined_without_a_run(check):
    suite = cases("gold_table: {columns: [a], rows: []}", "gold_table: {columns: [a], rows: [[1]]}")

    assert rules(check(suite, "--no-run", folder=ONE)[1]) == [("gold-empty", "c0")]
    assert check(cases("gold_table: {columns: [a], rows: []}, allow_empty: true"), folder=ONE) == (0, [])


@pytest.mark.parametrize(
    ("folder", "suite", "stale"),
    [
        ("options: {r_ves: {iterations: 5}}", "", "options: r_ves: iterations"),
        ("options: {r_ves: {iterations: 5}}\ngates: [{metric: r_ves, min: 0.5}]", "", None),
        ("options: {json: {depth: all}}", "", "options: json: depth"),
        ("options: {sql: {dialect: sqlite}}", "", None),
        ("compare: {rdf_terms: strict}", "", "compare: rdf_terms"),
        ("compare: {case: ignore}", "compare: {case: keep}\n", "compare: case"),
        ("compare: {case: ignore}", "compare: {dates: strict}\n", None),
        ("compare: {numbers: {rel: 0.1}}", "compare: {numbers: {abs: 1}}\n", None),
        ("compare: {numbers: {rel: 0.1}}", "compare: {numbers: {rel: 0.2}}\n", "compare: numbers: rel"),
        ("timeout: 5", "timeout: 6\n", "timeout"),
        ("timeout: 5", "", None),
        ("trials: 3", "trials: 2\n", "trials"),
        ("report_rows: 5", "report_rows: 6\n", "report_rows"),
        ("predictor: {file: {path: a.csv}}", "predictor: {file: {path: b.csv}}\n", "predictor"),
        ("requires: duckdb", "requires: duckdb\n", None),
        ("thresholds: {execution_accuracy: 1}", "thresholds: {soft_f1: 1}\n", "thresholds: execution_accuracy"),
        ("thresholds: {execution_accuracy: 1}", "thresholds: {queries: {max: 5}}\n", None),
        (
            "thresholds: {execution_accuracy: 1}",
            "thresholds: {execution_accuracy: 0.5}\n",
            "thresholds: execution_accuracy",
        ),
        ("metrics: [macro_precision, soft_f1]", "", "metrics: macro_precision"),
    ],
)
def test_settings_without_effect_are_found(check, folder, suite, stale):
    findings = check(suite + cases("gold: SELECT name FROM product"), "--no-run", folder=f"{ONE}{folder}\n")[1]

    assert [finding["message"].split("`")[1] for finding in findings] == ([stale] if stale else [])
    assert [finding["rule"] for finding in findings] == ["stale-setting"] * len(findings)


GATED = "gates: [{metric: execution_accuracy, min: 0.5, where: {tag: core}}]"


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("folder", "suite", "message"),
    [
        ("", "", None),
        ("thresholds: {queries: {max: 5}}", "", None),
        (
            "thresholds: {execution_accuracy: 0}",
            "",
            "of the answers to 2 cases: write `thresholds: {execution_accuracy: 1}`",
        ),
        ("thresholds: {execution_accuracy: {max: 1}}", "", "of the answers to 2 cases"),
        ("thresholds: {execution_accuracy: {max: 0.5}}", "", None),
        ("thresholds: {execution_accuracy: null}", "", "of the answers to 2 cases"),
        ("thresholds: {}", "thresholds: {queries: {max: 5}}\n", "of the answers to 2 cases"),
        ("", "thresholds: {}\n", "of the answers to 2 cases"),
        ("thresholds: {}\ngates: [{metric: soft_f1, min: 0.5}]", "", None),
        ("thresholds: {}\ngates: [{metric: pass_rate, min: 0.5}]", "", "of the answers to 2 cases"),
        ("thresholds: {}\ngates: [{metric: execution_seconds, max: 5}]", "", "of the answers to 2 cases"),
        (f"thresholds: {{}}\n{GATED}", "", "of the answers to 1 case:"),
        ("on_miss: xfail", "", "with `on_miss: xfail`, 2 cases are in no gate, so their failures decide nothing"),
        (f"on_miss: xfail\n{GATED}", "", "with `on_miss: xfail`, 1 case is in no gate, so its failures decide nothing"),
        (
            "gates: [{metric: soft_f1, max: 0.5}]",
            "",
            "only how good 'soft_f1' may be, because higher is better: write `min`",
        ),
        ("gates: [{max_regressions: 2}]", "", "the gate is about 2 cases, so it cannot be missed: write at most 1"),
        ("gates: [{max_regressions: 1}]", "", None),
        ("gates: [{max_regressions: 2}]\ncheck: {ignore: {nothing-required: a benchmark}}", "", None),
        ("thresholds: {}\ncheck: {ignore: {nothing-required: a benchmark}}", "", None),
    ],
)
def test_answers_of_which_nothing_is_required_are_found(check, folder, suite, message):
    of_cases = cases("gold: SELECT name FROM product, tags: [core]", "gold: SELECT sku FROM product")
    findings = check(suite + of_cases, "--no-run", "--strict", folder=f"{ONE}{folder}\n")[1]

    found = [finding["message"] for finding in findings if finding["rule"] == "nothing-required"]
    assert len(found) == (message is not None)
    assert all(message in text for text in found)


def test_cases_that_only_a_gate_counts_that_cannot_be_missed_are_found(check):
    folder = f"{ONE}on_miss: xfail\ngates: [{{max_regressions: 2}}]\n"
    messages = [
        finding["message"]
        for finding in check(
            cases("gold: SELECT name FROM product", "gold: SELECT sku FROM product"), "--no-run", folder=folder
        )[1]
    ]

    assert [message.partition(",")[0] for message in messages] == [
        "with `on_miss: xfail`",
        "the gate is about 2 cases",
    ]


STATED = "gold_table: {columns: [a], rows: [[1]]}, predicted_table: {columns: [a], rows: [[1]]}"
IDLE = [
    ("trials: 3", STATED, "what is predicted is stated"),
    ("trials_rule: all", STATED, "what is predicted is stated"),
    ("predictor: p.csv", STATED, "what is predicted is stated"),
    ("timeout: 5", STATED, "no query runs"),
    ("max_rows: 5", STATED, "no query runs"),
    ("db_schema: tables.json", STATED, "what is predicted is stated, and no metric reads it"),
    ("gold_source: {sqlite: {script: old.sql}}", STATED, "no gold is a query"),
    ("on_miss: xfail", f"{STATED}, thresholds: {{}}", "no metric has a threshold"),
    ("timeout: 5", "gold: {x: 1}, predicted: {x: 1}, kind: json", "no query runs"),
]


@pytest.mark.parametrize(("setting", "keys", "why"), IDLE)
def test_settings_that_cannot_matter_as_the_suite_stands_are_found(check, setting, keys, why):
    columns = {"column_names_original": [[-1, "*"], [0, "name"]], "foreign_keys": [], "primary_keys": []}
    write(json.dumps([{"db_id": "shop", "table_names_original": ["product"], **columns}]), "tables.json")

    status, findings = check(f"{setting}\n{cases(keys)}", folder=ONE)

    name = setting.partition(":")[0]
    message = f"`{name}` has no effect on any case below, because {why}: remove it"
    of_suite = [finding for finding in findings if finding["path"] == "s.queryeval.yaml"]
    stale = [finding for finding in of_suite if finding["rule"] != "nothing-required"]
    assert [(finding["rule"], finding["line"], finding["message"]) for finding in stale] == [
        ("stale-setting", 1, message)
    ]
    assert status == 1


@pytest.mark.parametrize(
    ("rule", "options", "is_stale"),
    [
        ("limit-tie", [], True),
        ("limit-tie", ["--no-run"], False),  # which has not looked for it
        ("unused-source", ["--no-run"], True),
        ("gold-slow", [], False),
        ("duplicate-question", [], False),  # another suite, which is not checked, may have the question
        ("uncollected-suite", [], False),
        ("constant-result", [], False),
    ],
)
def test_an_ignored_rule_that_finds_nothing_is_found(check, rule, options, is_stale):
    findings = check(f"check: {{ignore: {{{rule}: on purpose}}}}\n{cases('gold: SELECT 42')}", *options, folder=ONE)[1]

    found = [finding["message"] for finding in findings if finding["rule"] == "stale-setting"]
    assert found == [f"`check: ignore: {rule}` has no effect: the rule finds nothing here: remove it"] * is_stale


def test_settings_of_a_case_are_judged_too(check):
    keys = f"{STATED}, allow_empty: true, xfail: later, thresholds: {{}}, trials: 2"

    findings = check(cases(keys), folder=ONE)[1]

    assert rules(findings) == [("nothing-required", None), *[("stale-setting", "c0")] * 3]


def test_settings_of_a_folder_are_not_judged_by_one_of_its_files(check, capsys):
    write(FOLDER, "queryeval.yaml")
    write(cases("gold: SELECT name FROM product"))

    assert main(["check", "s.queryeval.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


def test_a_folder_with_a_suite_that_was_left_out_is_not_judged(check, capsys, monkeypatch):
    write(FOLDER, "queryeval.yaml")
    write(cases("gold: SELECT name FROM product"))
    write("requires: semantic\n" + cases("gold: SELECT 1"), "t.queryeval.yaml")
    monkeypatch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: False)

    assert main(["check", ".", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"findings": [], "summary": {}}
    assert captured.err.startswith("queryeval check: not checked: ")


@pytest.mark.parametrize(
    ("predictor", "columns", "found"),
    [
        ("predict.py:predict", "", "q.csv has no column 'question'; did you mean 'User question'? Write columns: "),
        (None, "", "q.csv has no column 'question'; did you mean 'User question'? Write columns: "),
        ("p.csv", "", None),
        ("predict.py:predict", "columns: {question: User question}, ", None),
    ],
)
def test_a_table_without_questions_is_found_once_unless_no_system_is_asked(check, predictor, columns, found):
    write("id,User question,gold\na,One?,SELECT name FROM product\nb,Two?,SELECT sku FROM product", "q.csv")
    top = f"predictor: {predictor}\n" if predictor else ""

    status, findings = check(f"{top}cases: {{{columns}file: q.csv}}\n", "--no-run", "--strict", folder=ONE)

    assert [finding["rule"] for finding in findings] == ["missing-question"] * bool(found)
    assert all(finding["message"] == f"{found}{{question: User question}} (of 2 cases)" for finding in findings)
    assert status == bool(found)


OTHER = ONE + cases("gold: SELECT sku FROM product")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dist/a.queryeval.yaml", OTHER, "pytest skips folders named 'dist'"),
        ("a/build/a.queryeval.yaml", OTHER, "pytest skips folders named 'build'"),
        ("shop.yaml", OTHER, "looks like a suite, and no command reads it: rename it to shop.queryeval.yaml"),
        ("a.queryeval.YAML", OTHER, "rename it to a.queryeval.yaml"),
        ("a.QueryEval.yaml.txt", OTHER, "rename it to a.queryeval.yaml"),
        ("a.queryeval.json", '{"kind": "sql", "cases": []}', "rename it to a.queryeval.yaml"),
        ("report.queryeval.json", '{"schema": 2, "cases": []}', None),
        ("b.jsonl", '{"id": "a", "question": "?", "gold": "SELECT 1"}', "rename it to b.queryeval.jsonl"),
        ("p.jsonl", '{"id": "a", "predicted": "SELECT 1"}', None),
        ("chart.yaml", "kind: Deployment\nspec: {cases: 1}\n", None),
        ("ours/a.queryeval.yaml", OTHER, None),
    ],
)
def test_suites_that_pytest_does_not_collect_are_found(check, name, text, message):
    write(text, name)
    write(SHOP, str(Path(name).parent / "shop.sql"))
    findings = check(cases("gold: SELECT name FROM product"), "--no-run", folder=ONE)[1]

    assert [finding["rule"] for finding in findings if finding["path"] == name] == ["uncollected-suite"] * bool(message)
    assert all(message in finding["message"] for finding in findings if finding["rule"] == "uncollected-suite")


def test_a_link_to_a_folder_that_is_missing_is_found(check):
    Path("suites").symlink_to("../submodule")
    findings = check(cases("gold: SELECT name FROM product"), "--no-run", folder=ONE)[1]

    assert [(finding["rule"], finding["path"]) for finding in findings] == [("uncollected-suite", "suites")]


def test_a_folder_above_ignores_uncollected_suites(check):
    write(f"{ONE}{cases('gold: SELECT name FROM product')}", "shop/s.queryeval.yaml")
    write(SHOP, "shop/shop.sql")
    write("tags: [shop]\n", "shop/queryeval.yaml")
    write(OTHER, "shop/template.yaml")
    write("check: {ignore: {uncollected-suite: templates}}\n", "queryeval.yaml")

    assert "uncollected-suite" not in [finding["rule"] for finding in check("", "--no-run")[1]]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("{tag: nightyl}", "no case below has the tag 'nightyl': did you mean 'nightly'?"),
        ("{not: {tag: nightyl}}", "no case below has the tag 'nightyl': did you mean 'nightly'?"),
        ("{tag: nightly, not: {kind: sparql}}", "no case below has the kind 'sparql': did you mean 'sql'?"),
        ("{tag: nightly, file: s.queryeval.yaml, not: {difficulty: easy}}", None),
        ("{file: t.queryeval.yaml}", "no case below has the file 't.queryeval.yaml': did you mean 's.queryeval.yaml'?"),
    ],
)
def test_values_of_a_gate_that_no_case_has_are_found(check, where, message):
    suite = cases("gold: SELECT name FROM product, tags: [nightly]", "gold: SELECT sku FROM product, difficulty: easy")
    folder = f"{ONE}gates: [{{metric: pass_rate, min: 0.5, where: {where}}}]\n"

    findings = check(suite, "--no-run", folder=folder)[1]

    assert [(finding["rule"], finding["message"]) for finding in findings] == [("unknown-where", message)] * bool(
        message
    )


def test_gates_name_files_from_the_root_wherever_check_is_run(shop, capsys, monkeypatch):
    write("[pytest]\n", "pytest.ini")
    write(f"{ONE}on_miss: xfail\n{cases('question: q, gold: SELECT name FROM product')}", "suites/s.queryeval.yaml")
    write("gates: [{metric: pass_rate, min: 0.5, where: {file: suites/s.queryeval.yaml}}]\n", "suites/queryeval.yaml")

    for folder in (".", "suites"):
        monkeypatch.chdir(folder)
        main(["check", ".", "--json", "--no-run"])

        assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.parametrize(
    ("header", "how", "message"),
    [
        ("xfail", "", "column 'xfail' is not read: name it under `metadata`, or move the cases to YAML for `xfail`"),
        (
            "On_Miss",
            "",
            "column 'On_Miss' is not read: name it under `metadata`, or move the cases to YAML for `on_miss`",
        ),
        (
            "gold_any",
            "",
            "column 'gold_any' is not read: name it under `metadata`, or move the cases to YAML for `gold_any`",
        ),
        *(
            (
                header,
                "",
                f"column '{header}' is not read: name it under `metadata`, or move the cases to YAML for `{key}`",
            )
            for header, key in (
                ("on-miss", "on_miss"),
                ("Gold Any", "gold_any"),
                ("gold-any", "gold_any"),
                ("threshold", "thresholds"),
                ("metric", "metrics"),
                ("timeouts", "timeout"),
            )
        ),
        ("tag", "", "column 'tag' is not read: did you mean 'tags'? Write columns: {tags: tag}"),
        (
            "allow-empty",
            "",
            "column 'allow-empty' is not read: did you mean 'allow_empty'? Write columns: {allow_empty: allow-empty}",
        ),
        ("tag", ", columns: {tags: tag}", None),
        ("xfail", ", metadata: [xfail]", None),
        ("xfail", ", metadata: rest", None),
        ("remark", "", None),
        ("matrix", "", None),
        ("time", "", None),
    ],
)
def test_columns_of_a_table_that_are_keys_elsewhere_are_found(check, header, how, message):
    write(f"id,question,gold,{header}\na,One?,SELECT name FROM product,x\nb,Two?,SELECT sku FROM product,y\n", "q.csv")

    findings = check(f"cases: {{file: q.csv{how}}}\n", "--no-run", folder=ONE)[1]

    assert [(finding["rule"], finding["message"]) for finding in findings] == [("unread-column", message)] * bool(
        message
    )


def test_each_case_of_a_suite_without_a_question_is_found(check):
    suite = "predictor: predict.py:predict\n" + cases("gold: SELECT name FROM product", "question: Q?, gold: SELECT 1")

    findings = check(suite, "--no-run", folder=ONE)[1]

    assert ("missing-question", "c0") in rules(findings)
    assert ("missing-question", "c1") not in rules(findings)


def test_duplicates_in_a_spreadsheet_are_named_by_their_rows(check):
    rows = ("a,One?,SELECT name FROM product", "b,One?,SELECT sku FROM product", "c,Two?,SELECT name FROM product")
    write("\n".join(("id,question,gold", *rows)), "q.csv")

    findings = check("cases: {file: q.csv}\n", "--no-run", folder=ONE)[1]

    assert [(finding["path"], finding["line"], finding["message"].partition(": ")[0]) for finding in findings] == [
        ("q.csv", 3, "the question is that of 'a' (q.csv, row 2)"),
        ("q.csv", 4, "gold is that of 'a' (q.csv, row 2), which has another question"),
    ]


def test_cases_of_a_file_that_two_suites_name_are_no_duplicates(check):
    write("- {id: a, question: Which?, gold: SELECT name FROM product}\n", "more/a.yaml")
    write("cases: more/a.yaml\n", "t.queryeval.yaml")

    assert check("cases: more/*.yaml\n", folder=ONE) == (0, [])


def test_a_question_with_other_evidence_or_on_another_source_is_another_one(check):
    suite = cases(
        "question: Which?, gold: SELECT name FROM product",
        "question: Which?, evidence: of the trees, gold: SELECT sku FROM product",
        "question: Which?, gold: SELECT name FROM product, source: {sqlite: {script: other.sql}}",
    )
    Path("other.sql").write_text(SHOP, encoding="utf-8")

    assert check(suite, folder=ONE) == (0, [])


def test_metrics_of_a_conftest_are_known(check):
    write(
        "from pytest_queryeval import METRICS\nMETRICS.register('kindness', lambda gold, predicted: 1.0)\n",
        "conftest.py",
    )

    assert check(cases("gold: SELECT name FROM product, metrics: [kindness]"), folder=ONE) == (0, [])


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import pytest; pytest.skip('later', allow_module_level=True)", "Skipped: later"),
    ],
)
def test_a_conftest_that_fails_is_named(content, error, shop, capsys):
    write(content, "conftest.py")
    write(cases("gold: SELECT 1"))

    with pytest.raises(SystemExit) as caught:
        main(["check", "."])

    assert caught.value.code == 2
    assert f"conftest.py: cannot be imported: {error}" in capsys.readouterr().err


def test_what_a_database_says_is_no_command_of_a_terminal_or_a_ci_service(check, capsys):
    check('cases:\n  - id: a\n    gold: "SELECT \'\\e[31m\', \\"::error::x\\" FROM nothing"\n', folder=ONE)

    main(["check", "."])

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert not any(line.startswith("::") for line in out.splitlines())


def gold_of(suite, execution):
    """The gold of a suite's one case as if it had answered so."""
    path = write(suite)
    (levels,) = read_levels(load_suites(path, require_prediction=False)[0])
    return GoldRun(case=levels.case, index=0, execution=execution, session=Session())


def answered(*columns, seconds=0.0):
    return Execution(query="", answer=Table(columns=columns, rows=[tuple(range(len(columns)))]), seconds=seconds)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("[name, 1]", None),
        ("[nme]", "gold has no column 'nme': did you mean 'name'?"),
        ("[0, 2]", "gold has no column 2: its columns are 0 to 1"),
    ],
)
def test_names_of_columns_that_gold_lacks_are_found_and_nothing_is_compared_by_them(check, columns, problem):
    suite = cases(f"gold: 'SELECT name, price FROM product', compare: {{gold_columns: {columns}}}")

    findings = check(suite, folder=ONE)[1]

    assert rules(findings) == ([("unknown-column", "c0")] if problem else [])
    assert all(finding["message"] == f"compare: gold_columns: {problem}" for finding in findings)


NUMBERS = "compare: {numbers: {columns: {PRICE: {abs: 1}, prise: {abs: 1}}}}"


def test_tolerances_of_columns_that_no_gold_below_has_are_found(check):
    suite = cases(
        "gold: SELECT name FROM product",
        "gold: SELECT price FROM product",
        f"gold: SELECT price FROM product, {NUMBERS}",
    )

    findings = check(suite, folder=f"{ONE}{NUMBERS}\n")[1]

    assert [(finding["path"], finding["case"], finding["message"].split("`")[1]) for finding in findings] == [
        ("queryeval.yaml", None, "compare: numbers: columns: prise"),
        ("s.queryeval.yaml", "c2", "compare: numbers: columns: prise"),
    ]


def test_tolerances_are_not_judged_where_nothing_runs(check):
    assert check(cases("gold: SELECT name FROM product"), "--no-run", folder=f"{ONE}{NUMBERS}\n") == (0, [])


def test_rows_of_a_table_are_examined_like_other_cases(check):
    write("id,question,gold,kind\na,One?,SELECT nme FROM product,\nb,Two?,SELECT name FROM product,sql\n", "cases.csv")

    (problem,) = check("cases: {file: cases.csv}\n", folder=ONE)[1]

    assert (problem["rule"], problem["case"]) == ("gold-fails", "a")


def test_the_remedy_of_an_empty_gold_is_one_that_its_file_allows(check):
    empty = "SELECT name FROM product WHERE price < 0"
    write(f"id,question,gold\na,One?,{empty}\n", "cases.csv")
    correct = "the gold answer has no rows, so any query that returns nothing passes: fix it, or"

    findings = [check(text, folder=ONE)[1][0] for text in (cases(f"gold: {empty}"), "cases: {file: cases.csv}\n")]

    assert [finding["message"] for finding in findings] == [
        f"{correct} write `allow_empty: true`",
        f"{correct} move the case to YAML: `queryeval import table`, and write `allow_empty: true`",
    ]


def test_a_conftest_without_a_suite_below_is_not_imported(check):
    write("1 / 0", "venv/package/conftest.py")

    assert check(cases("gold: SELECT name FROM product"), folder=ONE) == (0, [])


def test_rows_that_tie_and_differ_in_columns_that_do_not_count_are_no_choice(check):
    keys = "gold: 'SELECT price, name FROM product ORDER BY price LIMIT 1', compare: {gold_columns: [price]}"

    assert check(cases(keys), folder=ONE) == (0, [])


@pytest.mark.parametrize(("seconds", "is_found"), [(2.4, False), (2.6, True)])
def test_a_gold_is_slow_from_half_of_its_time_on(shop, seconds, is_found):
    gold = gold_of(f"{ONE}timeout: 5\n{cases('gold: SELECT 1')}", answered("name", seconds=seconds))

    assert bool(list(gold_slow(gold))) is is_found


def test_a_source_that_breaks_down_between_two_runs_is_one_finding(check):
    class Breaking(Crawl):
        def __init__(self):
            self.calls = 0

        def execute(self, query, **limits):
            self.calls += 1
            if self.calls > 1:
                raise SourceError("the connection is lost")
            return Execution(query=query, answer=Table(columns=("a",), rows=[(1,)]))

    ENGINES.register("crawl", lambda source, hosts: Breaking())

    (problem,) = check(cases("gold: SELECT 1 FROM t"), folder="kind: sql\nsource: {crawl: x}\n")[1]

    assert (problem["rule"], problem["case"]) == ("gold-fails", "c0")


def test_a_gold_that_fails_when_it_runs_again_is_unstable(check):
    class Unsteady(Crawl):
        def __init__(self):
            self.answers = [Execution(query="", answer=Table(columns=("a",), rows=[(1,)]))]

        def execute(self, query, **limits):
            failure = Failure(kind="timeout", message="no answer within 30 s")
            return self.answers.pop() if self.answers else Execution(query=query, error=failure)

    ENGINES.register("crawl", lambda source, hosts: Unsteady())

    (problem,) = check(cases("gold: SELECT 1 FROM t"), folder="kind: sql\nsource: {crawl: x}\n")[1]

    assert problem["rule"] == "gold-unstable"
    assert "no answer within 30 s" in problem["message"]


def test_a_column_with_a_tolerance_that_no_gold_has_is_told_with_those_that_there_are(check):
    columns = "{numbers: {columns: {pricee: {abs: 1}, total: {abs: 1}}}}"
    suite = cases(f"gold: 'SELECT name, price FROM product', compare: {columns}")

    messages = [finding["message"] for finding in check(suite, folder=ONE)[1]]

    assert messages == [
        "`compare: numbers: columns: pricee`: no gold below has this column: did you mean 'price'?",
        "`compare: numbers: columns: total`: no gold below has this column: choose from name, price",
    ]
