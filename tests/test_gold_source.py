"""A migration: golds run on the source before it, predictions on the one after it."""

import json
from pathlib import Path

import pytest
from samples import install_engine, make_case
from suites import load, problems, write

from pytest_queryeval import evaluate, load_cases, score_pairs
from pytest_queryeval.cli import main
from pytest_queryeval.core.model import QueryOrAnswer, Source
from pytest_queryeval.languages import KINDS
from pytest_queryeval.reports import write_report
from pytest_queryeval.reports.story import Fact, case_story
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.text.redaction import MARK, redact

# The tables have other names, so that no query runs on the wrong source.
OLD = """
CREATE TABLE singer (name TEXT, age INTEGER);
INSERT INTO singer VALUES ('Ana', 30), ('Bo', 50), ('Cy', 50), ('Di', NULL);
"""
NEW = OLD.replace("singer", "artist")
BOTH = """kind: sql
source: {sqlite: {script: new.sql}}
gold_source: {sqlite: {script: old.sql}}
"""
TO_DUCKDB = """kind: sql
source: {duckdb: {script: old.sql}}
gold_source: {sqlite: {script: old.sql}}
"""

TO_SQLITE = """kind: sql
source: {sqlite: {script: old.sql}}
gold_source: {duckdb: {script: old.sql}}
"""


@pytest.fixture(autouse=True)
def scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(OLD, "old.sql")
    write(NEW, "new.sql")


def run(*lines, head=BOTH, **arguments):
    """The report of the one case of a suite."""
    (case,) = evaluate(load_one(*lines, head=head), **arguments)["cases"]
    return case


def load_one(*lines, head=BOTH):
    return load(f"{head}cases:\n  - id: a\n{''.join(f'    {line}{chr(10)}' for line in lines)}")


def problem(*lines, head=BOTH):
    (line,) = problems(f"{head}cases:\n  - id: a\n{''.join(f'    {line}{chr(10)}' for line in lines)}")
    return line


def test_golds_run_on_their_source_and_predictions_on_the_other():
    case = run("gold: SELECT name FROM singer WHERE age > 40", "predicted: SELECT name FROM artist WHERE age > 40")

    assert (case["outcome"], case["gold"]["row_count"], case["predicted"]["row_count"]) == ("passed", 2, 2)
    assert (case["source"], case["gold_source"]) == ("new.sql", "old.sql")
    assert Fact("gold on", "old.sql") in case_story(case)


def test_a_query_on_the_wrong_source_fails():
    of_gold = run("gold: SELECT name FROM artist", "predicted: SELECT name FROM artist")
    of_predicted = run("gold: SELECT name FROM singer", "predicted: SELECT name FROM singer")

    assert (of_gold["outcome"], "no such table: artist" in of_gold["message"]) == ("error", True)
    assert of_predicted["predicted"]["error"] == {"kind": "invalid", "message": "no such table: singer"}


def test_a_case_without_a_gold_source_has_none_in_its_report():
    case = run("gold: SELECT 1", "predicted: SELECT 1", head="kind: sql\nsource: {sqlite: {script: old.sql}}\n")

    assert "gold_source" not in case
    assert "gold_source" not in case["fingerprint"]


@pytest.mark.parametrize("lines", [("source: {sqlite: {script: old.sql}}",), ("gold_source: new",)])
def test_the_nearest_level_may_make_both_sources_one(lines):
    head = f"sources: {{new: {{sqlite: {{script: new.sql}}}}}}\n{BOTH}"
    (case,) = load_one("gold: SELECT 1", "predicted: SELECT 1", *lines, head=head)

    assert case.settings.gold_source is None
    assert case.on_gold_source is case


def test_the_tie_of_a_limit_is_looked_up_where_gold_runs():
    gold = "gold: SELECT name FROM singer ORDER BY age DESC LIMIT 1"
    cases = [run(gold, f"predicted: SELECT name FROM artist WHERE name = '{name}'") for name in ("Bo", "Cy", "Ana")]

    assert [case["outcome"] for case in cases] == ["passed", "passed", "failed"]
    assert cases[1]["depends_on_tie"]


def test_a_published_metric_runs_each_rewritten_query_on_its_own_source():
    case = run(
        "gold: SELECT DISTINCT age FROM singer",
        "predicted: SELECT DISTINCT age FROM artist",
        "metrics: [execution_accuracy_spider]",
    )

    assert case["scores"]["execution_accuracy_spider"] == 1.0


@pytest.mark.feature("challenge")
def test_metrics_that_run_both_queries_on_one_source_are_null(tmp_path):
    write(OLD, "variant.sql")
    case = run(
        "gold: SELECT name FROM singer",
        "predicted: SELECT name FROM artist",
        "metrics: [ves, r_ves, r_ves_bird, test_suite_accuracy, challenged_accuracy, execution_seconds]",
        head=BOTH.replace("new.sql}", "new.sql}, variants: variant.sql"),
    )

    assert case["outcome"] == "passed"
    names = ("ves", "r_ves", "r_ves_bird", "test_suite_accuracy", "challenged_accuracy")
    assert {case["scores"][name] for name in names} == {None}
    assert case["scores"]["execution_seconds"] > 0
    assert "challenge" not in case


def test_a_threshold_of_such_a_metric_is_an_error_that_says_why():
    case = run("gold: SELECT name FROM singer", "predicted: SELECT name FROM artist", "thresholds: {ves: 1}")

    assert case["outcome"] == "error"
    assert "metric 'ves' does not apply to this case, but has a threshold" in case["message"]
    assert "gold and predicted run on different sources" in case["message"]


def test_variants_of_the_source_are_no_reason_for_a_metric_of_all_of_them():
    head = BOTH.replace("{script: new.sql}", '{script: new.sql, variants: "old.sql"}')
    (case,) = load_one("gold: SELECT 1", "predicted: SELECT 1", head=head)

    assert "test_suite_accuracy" not in case.settings.metrics


def test_secrets_of_the_source_of_golds_are_kept_out_of_reports(session):
    source = Source(name="old", engine="sqlite", settings={"password": "of-the-old-one"}, folder=Path())
    session.register_cases([make_case(gold_source=source)])

    assert redact("password: of-the-old-one") == f"password: {MARK}"


@pytest.mark.feature("duckdb")
def test_a_report_has_the_versions_of_both_engines():
    report = evaluate(load_one("gold: SELECT 1", "predicted: {translate: gold}", head=TO_DUCKDB))

    assert {"sqlite", "duckdb"} <= report["environment"]["engines"].keys()


@pytest.mark.feature("duckdb")
def test_texts_are_read_each_in_its_own_dialect():
    case = run(
        "gold: SELECT [name] FROM singer WHERE age > 40",
        "predicted: FROM singer SELECT name WHERE age > 40",
        "metrics: [execution_accuracy, exact_set_match, partial_where_f1]",
        head=TO_DUCKDB,
    )

    assert set(case["scores"].values()) == {1.0}


@pytest.mark.feature("duckdb")
def test_difficulty_and_features_are_those_of_gold_in_its_dialect():
    case = run(
        "gold: SELECT [name] FROM singer WHERE age = (SELECT max(age) FROM singer)", "predicted: ''", head=TO_DUCKDB
    )

    assert (case["features"], case["difficulty"]) == (["aggregate", "nesting"], "hard")


def test_the_predictor_sees_the_source_of_predictions():
    write("def predict(case):\n    assert 'artist' in case.schema\n    return f'SELECT name FROM artist'\n", "p.py")
    case = run("question: Who?", "gold: SELECT name FROM singer", head=f"{BOTH}predictor: p.py:predict\n")

    assert case["outcome"] == "passed"


def test_pairs_may_have_two_sources_too(tmp_path):
    (score,) = score_pairs(
        [("SELECT name FROM singer", "SELECT name FROM artist")],
        {"sqlite": {"script": "new.sql"}},
        ["execution_accuracy"],
        gold_source={"sqlite": {"script": "old.sql"}},
    )

    assert score.scores == {"execution_accuracy": 1.0}


@pytest.mark.feature("duckdb")
def test_gold_can_be_translated_for_the_source():
    case = run("gold: SELECT `name` FROM singer LIMIT 1, 5", "predicted: {translate: gold}", head=TO_DUCKDB)

    assert case["outcome"] == "passed"
    assert case["predicted"]["query"] == 'SELECT "name" FROM singer LIMIT 5 OFFSET 1'
    assert case["prediction"]["source"] == "translation of gold"


def test_the_translation_between_sources_of_one_dialect_is_gold_itself():
    write(NEW.replace("artist", "singer"), "new.sql")

    assert run("gold: select  name from singer", "predicted: {translate: gold}")["predicted"]["query"] == (
        "select  name from singer"
    )


@pytest.mark.parametrize(
    ("query", "dialect", "target", "why"),
    [
        ("SELECT 1", "", "duckdb", "sqlglot has no name for the dialect of the source of golds"),
        ("SELECT 1", "sqlite", "", "sqlglot has no name for the dialect of the source"),
        ("SELECT name FROM", "sqlite", "duckdb", "sqlglot cannot read it as sqlite: "),
        ("DELETE FROM singer", "sqlite", "duckdb", "sqlglot cannot read it as sqlite: no query but DELETE"),
        ("FROM t TABLESAMPLE 5%", "duckdb", "sqlite", "sqlglot cannot write it as sqlite: TABLESAMPLE unsupported"),
    ],
)
def test_what_cannot_be_translated_says_why(query, dialect, target, why):
    with pytest.raises(ValueError, match=f"^{why}"):
        KINDS["sql"].translate(query, dialect, target)


@pytest.mark.feature("duckdb")
def test_a_gold_that_cannot_be_translated_is_an_error_with_its_place():
    case = run("gold: SELECT name FROM singer TABLESAMPLE 5%", "predicted: {translate: gold}", head=TO_SQLITE)

    assert case["outcome"] == "error"
    assert case["message"] == (
        "gold cannot be translated: sqlglot cannot write it as sqlite: TABLESAMPLE unsupported: "
        "write the query under `predicted` (s.queryeval.yaml:7)"
    )


@pytest.mark.parametrize(
    ("head", "lines", "message"),
    [
        (
            "kind: sql\ngold_source: {sqlite: {script: old.sql}}\n",
            (),
            "s.queryeval.yaml:4: `gold_source` is where golds run: add `source`, where predictions run",
        ),
        (
            "kind: sql\nsource: {sqlite: {script: old.sql}}\ngold_source: songs.ttl\n",
            (),
            "s.queryeval.yaml:5: gold_source 'songs.ttl' (rdf) runs queries of the kind 'sparql', not 'sql': write",
        ),
        (
            "kind: sql\nsource: {sqlite: {script: old.sql}}\ngold_source: old\n",
            (),
            "s.queryeval.yaml:3: cannot tell which engine 'old' is for",
        ),
        (
            "kind: sql\nsource: {sqlite: {script: old.sql}}\n",
            ("predicted: {translate: gold}",),
            "s.queryeval.yaml:6: `translate: gold` needs a `gold_source` that is not `source`",
        ),
        (BOTH, ("predicted: {translate: prediction}",), "s.queryeval.yaml:7: translate: expected gold"),
        (
            BOTH,
            ("gold_table: {columns: [n], rows: [[1]]}", "predicted: {translate: gold}"),
            "s.queryeval.yaml:7: `translate: gold` needs a gold that is a query",
        ),
        (
            "kind: sql\nsource: {sqlite: {script: old.sql}}\ngold_source: {fake: {path: a}}\n",
            ("predicted: {translate: gold}",),
            "s.queryeval.yaml:7: `translate: gold` needs a `gold_source` whose dialect sqlglot has a name for",
        ),
        (
            "kind: sql\nsource: {fake: {path: a}}\ngold_source: {sqlite: {script: old.sql}}\n",
            ("predicted: {translate: gold}",),
            "s.queryeval.yaml:7: `translate: gold` needs a `source` whose dialect sqlglot has a name for: add `options",
        ),
    ],
)
def test_wrong_use_is_one_error_with_its_place(monkeypatch, head, lines, message):
    install_engine(monkeypatch, {})
    keys = {line.partition(":")[0] for line in lines}
    gold = () if "gold_table" in keys else ("gold: SELECT 1",)
    predicted = () if "predicted" in keys else ("predicted: SELECT 1",)

    assert problem(*gold, *lines, *predicted, head=head).startswith(message)


def test_a_gold_source_that_cannot_answer_is_named_with_its_place():
    Path("old.sql").unlink()
    case = run("gold: SELECT name FROM singer", "predicted: SELECT name FROM artist")

    assert case["outcome"] == "error"
    assert "old.sql" in case["message"]
    assert "(s.queryeval.yaml:3)" in case["message"]
    assert case["predicted"]["query"] == "SELECT name FROM artist"


def test_a_change_of_the_gold_source_is_told_beside_a_baseline():
    reports = []
    for script in (OLD, OLD.replace("50", "60")):
        write(script, "old.sql")
        reports.append(evaluate(load_one("gold: SELECT name FROM singer", "predicted: SELECT name FROM artist")))
    comparison = compare_reports(*reports, path="r.json")

    assert [change["what"] for change in comparison["changes"]] == ["another source of gold, or another state of it"]


@pytest.mark.feature("causes", "duckdb")
def test_a_cause_is_looked_for_by_the_translation_of_gold():
    case = run(
        "gold: SELECT `name` FROM singer WHERE age > 40",
        "predicted: SELECT name FROM singer WHERE age > 20",
        head=TO_DUCKDB,
    )

    assert case["cause"]["edits"] == [{"label": "wrong-value", "clause": "WHERE", "change": "20 → 40"}]
    assert case["cause"]["repaired_query"] == "SELECT name FROM singer WHERE age > 40"


@pytest.mark.feature("causes", "duckdb")
def test_there_is_no_cause_where_the_translation_of_gold_answers_otherwise():
    gold = "gold: SELECT name FROM singer WHERE name LIKE 'a%'"  # in SQLite also Ana
    case = run(gold, "predicted: {translate: gold}", head=TO_DUCKDB)
    second = run(gold, "predicted: SELECT age FROM singer WHERE name LIKE 'a%'", head=TO_DUCKDB)

    assert (case["outcome"], case["cause"]) == ("failed", None)
    assert (second["outcome"], second["cause"]) == ("failed", None)


@pytest.mark.feature("causes", "duckdb")
@pytest.mark.parametrize(
    ("gold", "repaired"),
    [
        ("SELECT name FROM singer WHERE age > 40", "SELECT name FROM singer WHERE age > 40"),
        ("SELECT name FROM singer WHERE name LIKE 'a%'", None),
    ],
)
def test_a_failed_prediction_is_repaired_only_towards_a_translation_that_is_right(gold, repaired):
    case = run(f"gold: {gold}", "predicted: SELECT nam FROM singer WHERE age > 40", head=TO_DUCKDB)

    assert case["cause"]["edits"][0]["label"] == "unknown-column"
    assert case["cause"]["repaired_query"] == repaired


@pytest.mark.feature("sparql_endpoint")
def test_a_migration_of_graphs_needs_no_translation():
    write("<urn:a> <urn:p> 1 .", "old.ttl")
    write("<urn:a> <urn:p> 1 .", "new.ttl")
    head = "kind: sparql\nsource: new.ttl\ngold_source: old.ttl\n"
    case = run("gold: SELECT ?o { ?s ?p ?o }", "predicted: {translate: gold}", head=head)

    assert case["outcome"] == "passed"
    assert case["predicted"]["query"] == "SELECT ?o { ?s ?p ?o }"


@pytest.mark.feature("check")
def test_check_examines_golds_where_they_run(capsys):
    load_one("gold: SELECT name FROM singer ORDER BY age DESC LIMIT 1", "predicted: SELECT 1")
    main(["check", ".", "--json"])
    rules = [finding["rule"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    Path("old.sql").unlink()
    main(["check", ".", "--json"])
    (fault,) = json.loads(capsys.readouterr().out)["findings"]

    assert rules == ["limit-tie"]
    assert (fault["rule"], fault["line"], "old.sql" in fault["message"]) == ("gold-fails", 3, True)


@pytest.mark.feature("check")
def test_a_source_of_golds_is_used_and_two_cases_with_other_ones_are_not_the_same(capsys):
    head = f"sources: {{old: {{sqlite: {{script: old.sql}}}}}}\n{BOTH.replace('{sqlite: {script: old.sql}}', 'old')}"
    same = "question: Who?, gold: SELECT name FROM singer, predicted: SELECT 1"
    load(f"{head}cases:\n  - {{id: a, {same}}}\n  - {{id: b, {same}, source: old}}\n")

    assert main(["check", ".", "--strict"]) == 0, capsys.readouterr().out


@pytest.mark.feature("strength")
def test_mutants_of_gold_run_where_gold_does(capsys):
    load_one("gold: SELECT name FROM singer WHERE age > 40", "predicted: SELECT 1")
    main(["strength", ".", "--json"])
    (case,) = json.loads(capsys.readouterr().out)["cases"]

    assert case["killed"] > 0
    assert {mutant["change"] for mutant in case["survivors"]} >= {"age > 40 → age > 41"}


@pytest.mark.feature("review", "strength")
def test_explain_names_both_sources_without_their_settings_and_looks_for_no_counterexample(capsys):
    write(NEW.replace("artist", "singer"), "new.sql")
    load_one("gold: SELECT name FROM singer WHERE age > 40", "predicted: SELECT name FROM singer WHERE age > 41")
    main(["explain", "a", "--json"])
    output = json.loads(capsys.readouterr().out)

    sources = {setting["key"]: (setting["value"], setting["line"]) for setting in output["settings"]}
    assert (sources["source"], sources["gold_source"]) == (("new.sql", 2), ("old.sql", 3))
    assert output["counterexample"] is None


@pytest.mark.feature("evaluate", "recording")
@pytest.mark.parametrize("changed", ["old.sql", "new.sql"])
def test_both_sources_are_recorded_and_replayed_and_a_change_of_either_is_told(capsys, changed):
    load_one("gold: SELECT name FROM singer WHERE age > 40", "predicted: SELECT name FROM artist WHERE age > 20")

    def outcome(*options):
        main(["evaluate", ".", "--cause", "off", "--json", *options])
        (case,) = json.loads(capsys.readouterr().out)["cases"]
        return case["outcome"], case["message"]

    assert outcome("--record", "recorded")[0] == outcome("--replay", "recorded")[0] == "failed"
    Path(changed).write_text(Path(changed).read_text(encoding="utf-8") + "-- changed", encoding="utf-8")
    error, message = outcome("--replay", "recorded")
    assert (error, f"'{changed}'" in message) == ("error", True)


@pytest.mark.feature("causes", "duckdb", "evaluate", "recording")
def test_a_cause_by_the_translation_of_gold_is_replayed(capsys):
    gold = "gold: SELECT `name` FROM singer WHERE age > 40"
    load_one(gold, "predicted: SELECT name FROM singer WHERE age > 20", head=TO_DUCKDB)
    causes = []
    for option in ("--record", "--replay"):
        main(["evaluate", ".", "--json", option, "recorded"])
        (case,) = json.loads(capsys.readouterr().out)["cases"]
        causes.append(case["cause"])

    assert causes[0] == causes[1] is not None


@pytest.mark.feature("review")
def test_a_prediction_of_another_source_is_not_accepted_as_a_gold(capsys):
    load_one(
        "gold: SELECT name FROM singer WHERE age > 40",
        "predicted: SELECT name FROM artist",
        head=f"{BOTH}reviews: reviews.jsonl\n",
    )
    write_report(evaluate(load_cases(".")), Path("report.json"))

    assert main(["accept", "report.json", "a", "--reviewer", "anna"]) == 1
    assert "golds run on another source, 'old.sql': write the answer into the review file by hand" in (
        capsys.readouterr().out
    )
    assert not Path("reviews.jsonl").exists()


@pytest.mark.feature("review")
def test_answers_are_grouped_each_from_its_own_source(session):
    from pytest_queryeval.features.review.answers import group_answers

    (case,) = load_one("gold: SELECT name FROM singer WHERE age > 40", "predicted: SELECT 1")
    systems = {"right": "age > 40", "same": "age >= 50", "wrong": "age > 20", "also wrong": "age >= 30"}
    predictions = {name: QueryOrAnswer(query=f"SELECT name FROM artist WHERE {text}") for name, text in systems.items()}
    groups = group_answers(case, predictions, session)

    assert [(group.is_gold, group.systems) for group in groups] == [
        (True, ["right", "same"]),
        (False, ["wrong", "also wrong"]),
    ]


@pytest.mark.feature("review")
def test_what_is_written_on_the_page_runs_where_golds_do(tmp_path):
    from features.review.review_pages import client_of, gold_review

    load_one(
        "gold: SELECT name FROM singer WHERE age > 40",
        "predicted: SELECT name FROM artist",
        head=f"{BOTH}reviews: reviews/*.jsonl\n",
    )
    with client_of(gold_review("SELECT name FROM artist")) as client:
        document = client.get("/cases/0").json()
        answer = client.post("/cases/0/answer", json={"query": "SELECT name FROM singer WHERE age >= 50"}).json()

    assert "CREATE TABLE singer" in document["schema"]
    assert [(group["query"], group["item"], group["request"]) for group in document["answers"]] == [
        ("SELECT name FROM artist", None, None)
    ]
    assert answer["outcome"] == "passed"


@pytest.mark.feature("causes", "duckdb", "evaluate", "recording")
def test_a_replay_without_the_translation_knows_why_a_query_failed_but_not_why_an_answer_is_wrong(capsys):
    gold = "gold: SELECT `name` FROM singer WHERE age > 40"
    replayed = {}
    for name, column in (("failed", "nam"), ("wrong", "age")):
        load_one(gold, f"predicted: SELECT {column} FROM singer", head=TO_DUCKDB)
        main(["evaluate", ".", "--json", "--cause", "off", "--record", name])
        capsys.readouterr()
        main(["evaluate", ".", "--json", "--replay", name])
        (replayed[name],) = json.loads(capsys.readouterr().out)["cases"]

    assert [edit["label"] for edit in replayed["failed"]["cause"]["edits"]] == ["unknown-column"]
    assert replayed["wrong"]["cause"] is None
    assert any(note.startswith("no cause: ") for note in replayed["wrong"]["details"]["notes"])
