"""A migration: golds run on the source before it, predictions on the one after it."""

import json
from pathlib import Path

import pytest
from suites import load, write

from pytest_queryeval import evaluate, score_pairs
from pytest_queryeval.cli import main
from pytest_queryeval.languages import KINDS

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
OLDER = "SELECT name FROM singer WHERE age > 40"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("migration")


@pytest.fixture(autouse=True)
def scripts(folder, monkeypatch):
    monkeypatch.chdir(folder)
    write(OLD, "old.sql")
    write(NEW, "new.sql")
    yield
    for path in folder.glob("*queryeval*"):
        path.unlink()


def load_one(*keys, head=BOTH):
    """A suite of one case with these keys."""
    return load(f"{head}cases:\n  - id: a\n{''.join(f'    {line}{chr(10)}' for line in keys)}")


def run(*keys, head=BOTH):
    (case,) = evaluate(load_one(*keys, head=head))["cases"]
    return case


def run_all(cases, head):
    """The reports of cases, by their ids."""
    text = "".join(f"  - {{id: {id_}, {keys}}}\n" for id_, keys in cases.items())
    report = evaluate(load(f"{head}cases:\n{text}"))
    return report, {case["id"]: case for case in report["cases"]}


TIED = "SELECT name FROM singer ORDER BY age DESC LIMIT 1"
METRICS = "[ves, r_ves, r_ves_bird, test_suite_accuracy, challenged_accuracy, execution_seconds]"


@pytest.fixture(scope="module")
def migrated(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, script in (("old", OLD), ("new", NEW), ("variant", OLD)):
            write(script, f"{name}.sql")
        write("def predict(case):\n    assert 'artist' in case.schema\n    return 'SELECT name FROM artist'\n", "p.py")
        names = "gold: SELECT name FROM singer"
        cases = {
            "right": f"gold: {OLDER}, predicted: SELECT name FROM artist WHERE age > 40",
            "gold-elsewhere": "gold: SELECT name FROM artist, predicted: SELECT name FROM artist",
            "predicted-elsewhere": f"{names}, predicted: SELECT name FROM singer",
            **{f"tie-{who}": f"gold: {TIED}, predicted: SELECT '{who}'" for who in ("Bo", "Cy", "Ana")},
            "spider": "gold: SELECT DISTINCT age FROM singer, predicted: SELECT DISTINCT age FROM artist, "
            "metrics: [execution_accuracy_spider]",
            "both-needed": f"{names}, predicted: SELECT name FROM artist, metrics: {METRICS}",
            "ves": f"{names}, predicted: SELECT name FROM artist, thresholds: {{ves: 1}}",
            "asked": f"{names}, question: Who?",
        }
        return run_all(
            cases, BOTH.replace("new.sql}", "new.sql, variants: variant.sql}") + "predictor: p.py:predict\n"
        )[1]


@pytest.mark.feature("challenge")
def test_golds_run_on_their_source_and_predictions_on_the_other(migrated):
    case = migrated["right"]

    assert (case["outcome"], case["gold"]["row_count"], case["predicted"]["row_count"]) == ("passed", 2, 2)
    assert (case["source"], case["gold_source"]) == ("new.sql", "old.sql")
    assert "no such table: artist" in migrated["gold-elsewhere"]["message"]
    error = {"kind": "invalid", "message": "no such table: singer"}
    assert migrated["predicted-elsewhere"]["predicted"]["error"] == error
    assert migrated["asked"]["outcome"] == "passed"


@pytest.mark.feature("challenge")
def test_the_tie_of_a_limit_is_looked_up_where_gold_runs(migrated):
    cases = [migrated[f"tie-{who}"] for who in ("Bo", "Cy", "Ana")]

    assert [case["outcome"] for case in cases] == ["passed", "passed", "failed"]
    assert cases[1]["depends_on_tie"]


@pytest.mark.feature("challenge")
def test_metrics_that_run_both_queries_on_one_source_do_not_apply(migrated):
    case = migrated["both-needed"]

    assert migrated["spider"]["scores"]["execution_accuracy_spider"] == 1.0
    assert case["outcome"] == "passed"
    names = ("ves", "r_ves", "r_ves_bird", "test_suite_accuracy", "challenged_accuracy")
    assert {case["scores"][name] for name in names} == {None}
    assert case["scores"]["execution_seconds"] > 0
    assert "challenge" not in case
    assert migrated["ves"]["outcome"] == "error"
    assert "metric 'ves' does not apply to this case, but has a threshold" in migrated["ves"]["message"]
    assert "the gold query and the predicted query run on different sources" in migrated["ves"]["message"]


@pytest.mark.parametrize("keys", ["source: {sqlite: {script: old.sql}}", "gold_source: new"])
def test_the_nearest_level_may_make_both_sources_one(keys):
    head = f"sources: {{new: {{sqlite: {{script: new.sql}}}}}}\n{BOTH}"

    (case,) = load_one("gold: SELECT 1", "predicted: SELECT 1", keys, head=head)

    assert case.settings.gold_source is None
    assert case.on_gold_source is case


def test_a_gold_source_that_cannot_answer_is_named_with_its_place():
    source = "{sqlite: {path: 'gone.db'}}"
    case = run("gold: SELECT name FROM singer", "predicted: SELECT name FROM artist", f"gold_source: {source}")

    assert case["outcome"] == "error"
    assert "gone.db" in case["message"]
    assert "(s.queryeval.yaml:8)" in case["message"]
    assert case["predicted"]["query"] == "SELECT name FROM artist"


@pytest.mark.feature("database_servers")
def test_secrets_of_a_gold_source_are_kept_out_of_reports():
    source = "{sqlalchemy: {url: 'postgresql://user:of-the-old-one@127.0.0.1:9/shop'}}"
    case = run("gold: SELECT 'of-the-old-one' AS name", "predicted: SELECT 'of-the-old-one'", f"gold_source: {source}")

    assert case["outcome"] == "error"
    assert "of-the-old-one" not in json.dumps(case)


def test_pairs_may_have_two_sources_too():
    (score,) = score_pairs(
        [("SELECT name FROM singer", "SELECT name FROM artist")],
        {"sqlite": {"script": "new.sql"}},
        ["execution_accuracy"],
        gold_source={"sqlite": {"script": "old.sql"}},
    )

    assert score.scores == {"execution_accuracy": 1.0}


# Translations of gold


@pytest.fixture(scope="module")
def translated(folder):
    """Cases on DuckDB whose golds run on SQLite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(OLD, "old.sql")
        of_sqlite, like = "SELECT `name` FROM singer WHERE age > 40", "SELECT name FROM singer WHERE name LIKE 'a%'"
        cases = {
            "limit": 'gold: "SELECT `name` FROM singer LIMIT 1, 5", predicted: {translate: gold}',
            "dialects": 'gold: "SELECT [name] FROM singer WHERE age > 40", '
            "predicted: FROM singer SELECT name WHERE age > 40, "
            "metrics: [execution_accuracy, exact_set_match, partial_where_f1]",
            "features": 'gold: "SELECT [name] FROM singer WHERE age = (SELECT max(age) FROM singer)", predicted: ""',
            "cause": f'gold: "{of_sqlite}", predicted: SELECT name FROM singer WHERE age > 20',
            "like": f'gold: "{like}", predicted: {{translate: gold}}',  # in SQLite also Ana
            "like-wrong": f"gold: \"{like}\", predicted: SELECT age FROM singer WHERE name LIKE 'a%'",
            "failed": f'gold: "{OLDER}", predicted: SELECT nam FROM singer WHERE age > 40',
            "failed-like": f'gold: "{like}", predicted: SELECT nam FROM singer WHERE age > 40',
        }
        return run_all(cases, TO_DUCKDB)


@pytest.mark.feature("duckdb")
def test_gold_can_be_translated_for_the_source_and_texts_are_read_in_their_own_dialects(translated):
    report, cases = translated

    assert {"sqlite", "duckdb"} <= report["environment"]["engines"].keys()
    assert cases["limit"]["outcome"] == "passed"
    assert cases["limit"]["predicted"]["query"] == 'SELECT "name" FROM singer LIMIT 5 OFFSET 1'
    assert cases["limit"]["prediction"]["source"] == "translation of gold"
    assert set(cases["dialects"]["scores"].values()) == {1.0}
    of_gold = (cases["features"]["features"], cases["features"]["difficulty"])
    assert of_gold == (["aggregate", "nesting"], "hard")


@pytest.mark.feature("causes", "duckdb")
def test_a_cause_is_looked_for_by_a_translation_of_gold_that_answers_as_gold_does(translated):
    cases = translated[1]

    cause = cases["cause"]["cause"]
    assert cause["edits"] == [{"label": "wrong-value", "clause": "WHERE", "change": "20 → 40"}]
    assert cause["repaired_query"] == OLDER
    for id_ in ("like", "like-wrong"):
        assert (cases[id_]["outcome"], cases[id_]["cause"]) == ("failed", None)
    for id_, repaired in (("failed", OLDER), ("failed-like", None)):
        assert cases[id_]["cause"]["edits"][0]["label"] == "unknown-column"
        assert cases[id_]["cause"]["repaired_query"] == repaired


@pytest.mark.feature("duckdb")
def test_a_gold_that_cannot_be_translated_is_an_error_with_its_place():
    head = "kind: sql\nsource: {sqlite: {script: old.sql}}\ngold_source: {duckdb: {script: old.sql}}\n"
    case = run("gold: SELECT name FROM singer TABLESAMPLE 5%", "predicted: {translate: gold}", head=head)

    assert case["outcome"] == "error"
    assert case["message"] == (
        "the gold query cannot be translated: sqlglot cannot write it as sqlite: TABLESAMPLE unsupported: "
        "write the query under `predicted` (s.queryeval.yaml:7)"
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


# Commands


def call(capsys, *arguments):
    main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.feature("check", "strength")
def test_golds_and_their_mutants_are_examined_where_they_run(capsys):
    load_one(f"gold: {TIED}", "predicted: SELECT 1")
    ties = call(capsys, "check", ".")["findings"]
    load_one(f"gold: {OLDER}", "predicted: SELECT 1")
    (strength,) = call(capsys, "strength", ".")["cases"]
    Path("old.sql").unlink()
    (fault,) = call(capsys, "check", ".")["findings"]

    assert [finding["rule"] for finding in ties] == ["limit-tie"]
    assert strength["killed"] > 0
    assert {mutant["change"] for mutant in strength["survivors"]} >= {"age > 40 → age > 41"}
    assert (fault["rule"], fault["line"], "old.sql" in fault["message"]) == ("gold-fails", 3, True)


@pytest.mark.feature("check")
def test_a_source_of_golds_is_used_and_two_cases_with_other_ones_are_not_the_same(capsys):
    head = f"sources: {{old: {{sqlite: {{script: old.sql}}}}}}\n{BOTH.replace('{sqlite: {script: old.sql}}', 'old')}"
    same = "question: Who?, gold: SELECT name FROM singer, predicted: SELECT 1"
    load(f"{head}cases:\n  - {{id: a, {same}}}\n  - {{id: b, {same}, source: old}}\n")

    assert main(["check", ".", "--strict"]) == 0, capsys.readouterr().out


@pytest.mark.feature("evaluate", "recording")
@pytest.mark.parametrize("changed", ["old.sql"])
def test_both_sources_are_recorded_and_replayed_and_a_change_of_either_is_told(capsys, changed):
    load_one(f"gold: {OLDER}", "predicted: SELECT name FROM artist WHERE age > 20")
    recorded = f"recorded-{changed}"

    def outcome(option):
        (case,) = call(capsys, "evaluate", ".", "--cause", "off", option, recorded)["cases"]
        return case["outcome"], case["message"]

    assert outcome("--record")[0] == outcome("--replay")[0] == "failed"
    Path(changed).write_text(Path(changed).read_text(encoding="utf-8") + "-- changed", encoding="utf-8")
    error, message = outcome("--replay")
    assert (error, f"'{changed}'" in message) == ("error", True)


@pytest.mark.feature("causes", "duckdb", "evaluate", "recording")
def test_a_replay_has_the_causes_whose_translations_were_recorded_and_of_failed_queries(capsys):
    gold = f"gold: {OLDER.replace('name', '`name`')}"
    causes = {}
    for name, column, cause in (("wrong-recorded", "age", "auto"), ("failed", "nam", "off"), ("wrong", "age", "off")):
        load_one(gold, f"predicted: SELECT {column} FROM singer", head=TO_DUCKDB)
        (recorded,) = call(capsys, "evaluate", ".", "--cause", cause, "--record", name)["cases"]
        (replayed,) = call(capsys, "evaluate", ".", "--replay", name)["cases"]
        causes[name] = (recorded["cause"], replayed["cause"])

    assert causes["wrong-recorded"][0] == causes["wrong-recorded"][1] is not None
    assert [edit["label"] for edit in causes["failed"][1]["edits"]] == ["unknown-column"]
    assert causes["wrong"] == (None, None)
    assert any(note.startswith("no cause: ") for note in replayed["details"]["notes"])


@pytest.mark.feature("review")
def test_a_prediction_of_another_source_is_not_accepted_as_a_gold(capsys):
    write("", "reviews.jsonl")
    load_one(f"gold: {OLDER}", "predicted: SELECT name FROM artist", head=f"{BOTH}reviews: reviews.jsonl\n")
    main(["evaluate", ".", "--report", "report.json"])

    assert main(["accept", "report.json", "a", "--reviewer", "anna"]) == 1
    assert "golds run on another source, 'old.sql': write the answer into the review file by hand" in (
        capsys.readouterr().out
    )
    assert Path("reviews.jsonl").read_text() == ""


@pytest.mark.feature("review")
def test_what_is_written_on_the_page_runs_where_golds_do():
    from features.review.review_pages import served, write_system

    head = f"{BOTH}reviews: reviews/*.jsonl\n"
    load_one(f"gold: {OLDER}", "predicted: SELECT name FROM artist", head=head)
    with served(".", write_system("a", {"a": "SELECT name FROM artist"})) as client:
        document = client.get("/cases/0").json()
        answer = client.post("/cases/0/answer", json={"query": "SELECT name FROM singer WHERE age >= 50"}).json()

    assert "CREATE TABLE singer" in document["schema"]
    assert [(group["query"], group["item"], group["request"]) for group in document["answers"]] == [
        ("SELECT name FROM artist", None, None)
    ]
    assert answer["outcome"] == "passed"
