"""`queryeval strength`: planted weak cases are found, with what would pass, and no others."""

import json
import re
from pathlib import Path

import pytest
from report_maker import report_of
from samples import entry, fake_source, install_engine, make_case
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import MUTATORS, Mutant
from pytest_queryeval.features.strength.case_strength import MAX_TIMEOUTS, measure_strength
from pytest_queryeval.features.strength.sql.source_tables import source_tables
from pytest_queryeval.features.strength.strength_command import read_weak_cases
from pytest_queryeval.suites import load_cases

PAGE = (Path(__file__).parents[3] / "docs" / "strength.md").read_text(encoding="utf-8")
SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, country TEXT);
INSERT INTO singer VALUES (1, 'Ann', 20, 'FR'), (2, 'Bob', 30, 'US'), (3, 'Cy', 30, 'FR'), (4, 'Di', 41, 'UK');
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer INTEGER REFERENCES singer (id));
INSERT INTO concert VALUES (1, 1), (2, 2), (3, 2), (4, NULL);
"""
HEAD = "kind: sql\nsource: {sqlite: {script: a.sql}}\ncases:\n"


@pytest.fixture
def strength(tmp_path, monkeypatch, capsys):
    """A function that runs the command on cases in YAML, and returns its exit status and its JSON."""
    monkeypatch.chdir(tmp_path)
    Path("a.sql").write_text(SCRIPT, encoding="utf-8")

    def run(cases, *options, head=HEAD):
        write(head + cases)
        status = main(["strength", ".", "--json", *options])
        return status, json.loads(capsys.readouterr().out)

    return run


def survivors(found):
    """The surviving changes by the ids of the cases that have some."""
    return {
        case["id"]: {mutant["change"] for mutant in case["survivors"]} for case in found["cases"] if case["survivors"]
    }


def test_planted_weak_cases_are_found_with_what_would_pass(strength):
    status, report = strength("""
  - {id: strong, gold: SELECT name FROM singer WHERE age > 30}
  - {id: boundary, gold: SELECT name FROM singer WHERE age > 35}
  - {id: condition, gold: "SELECT name FROM singer WHERE age = 20 AND country = 'FR'"}
  - {id: outer-join, gold: SELECT s.name FROM singer s JOIN concert c ON c.singer = s.id WHERE s.age > 29}
  - {id: duplicates, gold: SELECT DISTINCT age FROM singer WHERE age > 30 AND country <> 'US'}
  - {id: order, gold: SELECT name FROM singer ORDER BY id}
""")

    weak = survivors(report)
    assert status == 0
    assert weak["strong"] == {"DISTINCT added", "age > 30 → age > 31"}
    assert weak["boundary"] == {"DISTINCT added", "age > 35 → age >= 35", "age > 35 → age > 36", "age > 35 → age > 34"}
    assert {"AND country = 'FR' dropped"} <= weak["condition"]
    assert "AND age = 20 dropped" not in weak["condition"]
    assert "JOIN concert AS c → LEFT JOIN concert AS c" not in weak["outer-join"]
    assert {"DISTINCT dropped", "AND country <> 'US' dropped"} <= weak["duplicates"]
    assert "ORDER BY id dropped" in weak["order"]


def test_cases_that_have_no_wrong_variants_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("kind: json\ncases: [{id: a, gold: {x: 1}}]\n")

    assert main(["strength", "."]) == 0

    message = "no case has a gold query of which mutants are made"
    assert capsys.readouterr().out.splitlines()[-1] == message


def test_weakest_cases_come_first_and_sums_agree(strength):
    _, report = strength("""
  - {id: strong, gold: SELECT name FROM singer WHERE age > 30}
  - {id: weak, gold: SELECT name FROM singer WHERE age > 100}
""")

    assert [case["id"] for case in report["cases"]] == ["weak", "strong"]
    for case in (*report["cases"], report["summary"]):
        left = case["survivors"] if isinstance(case["survivors"], int) else len(case["survivors"])
        assert case["mutants"] == case["killed"] + case["equivalent"] + left > 0
    for outcome in ("killed", "equivalent", "survivors"):
        assert sum(of[outcome] for of in report["summary"]["operators"].values()) == report["summary"][outcome]


def test_several_suites_have_a_line_each(strength, capsys):
    write(HEAD + "  - {id: b, gold: SELECT name FROM singer WHERE age > 100}\n", "b.queryeval.yaml")
    _, report = strength("  - {id: a, gold: SELECT COUNT(*) FROM concert}\n")

    main(["strength", "."])

    lines = capsys.readouterr().out.splitlines()
    suites = report["summary"]["suites"]
    assert suites.keys() == {"b.queryeval.yaml", "s.queryeval.yaml"}
    assert suites["s.queryeval.yaml"] == {"mutants": 3, "killed": 2, "equivalent": 1, "survivors": 0}
    assert sum(counts["mutants"] for counts in suites.values()) == report["summary"]["mutants"]
    assert lines[-2] == "s.queryeval.yaml: 0 of 2 mutants pass, in 0 of 1 case"


def test_survivors_are_right_under_the_policy_of_the_case(strength):
    _, report = strength("""
  - {id: ordered, gold: SELECT name FROM singer ORDER BY age DESC}
  - {id: any-order, gold: SELECT name FROM singer ORDER BY age DESC, compare: {row_order: ignore}}
  - {id: tie, gold: SELECT name FROM singer WHERE age < 40 ORDER BY age DESC LIMIT 1}
  - {id: some-columns, gold: "SELECT name, age FROM singer WHERE age > 30", compare: {gold_columns: [name]}}
""")
    killed = {case["id"]: case for case in report["cases"]}
    weak = survivors(report)

    assert "age DESC → age" not in weak["ordered"]
    assert killed["any-order"]["equivalent"] > killed["ordered"]["equivalent"]
    assert "age < 40 → age <= 40" in weak["tie"]
    assert weak["some-columns"] == {"DISTINCT added", "age > 30 → age > 31"}


def test_a_mutant_that_is_another_gold_passes(strength):
    _, report = strength("  - {id: a, gold_any: [SELECT name FROM singer WHERE age > 30, SELECT name FROM singer]}\n")

    assert "WHERE age > 30 dropped" in survivors(report)["a"]


def test_a_gold_that_does_not_run_is_a_problem_and_the_others_are_measured(strength):
    status, report = strength("""
  - {id: fails, gold: SELECT nme FROM singer}
  - {id: runs, gold: SELECT name FROM singer}
  - {id: skipped, gold: SELECT nme FROM singer, skip: later}
""")

    assert status == 1
    assert [(problem["path"], problem["line"]) for problem in report["problems"]] == [("s.queryeval.yaml", 5)]
    assert "no such column: nme: did you mean 'name'?" in report["problems"][0]["message"]
    assert [case["id"] for case in report["cases"]] == ["runs"]


def test_a_source_that_cannot_answer_is_one_problem(strength):
    cases = "  - {id: a, gold: SELECT 1}\n  - {id: b, gold: SELECT 2}\n"

    status, report = strength(cases, head="kind: sql\nsource: missing.db\ncases:\n")

    assert status == 1
    assert len(report["problems"]) == 1


def test_a_change_that_begins_with_its_clause_does_not_name_it_again(strength, capsys):
    write(HEAD + "  - {id: a, gold: SELECT id FROM singer LIMIT 9}\n")

    main(["strength", "."])

    changes = {line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert changes == {"LIMIT 9 → LIMIT 10", "LIMIT 9 → LIMIT 8", "LIMIT 9 dropped"}


def test_survivors_fail_a_strict_call_only(strength):
    assert strength("  - {id: a, gold: SELECT name FROM singer WHERE age > 35}\n")[0] == 0
    assert strength("  - {id: a, gold: SELECT name FROM singer WHERE age > 35}\n", "--strict")[0] == 1
    assert strength("  - {id: a, gold: SELECT COUNT(*) FROM concert WHERE id < 0}\n", "--strict")[0] == 1
    assert strength("  - {id: a, gold: SELECT COUNT(*) FROM concert}\n", "--strict")[0] == 0


def test_a_comment_behind_the_last_semicolon_leaves_the_mutants(strength):
    _, plain = strength("  - {id: a, gold: SELECT name FROM singer WHERE age > 35}\n")

    _, report = strength('  - {id: a, gold: "SELECT name FROM singer WHERE age > 35;\\n-- by age;"}\n')

    assert report["summary"] == plain["summary"]
    assert report["summary"]["mutants"] > 5


def test_a_gold_that_only_the_database_reads_is_told_with_its_place(strength, capsys):
    write(HEAD + "  - {id: a, gold: SELECT ~~age FROM singer}\n")

    main(["strength", "."])

    assert (
        "not measured: s.queryeval.yaml:4: case 'a': gold cannot be read: LIKE lacks a part, line 1, "
        in capsys.readouterr().err
    )


def test_golds_without_a_query_have_no_mutants(strength):
    _, report = strength("  - {id: a, gold_table: {columns: [n], rows: [[1]]}}\n")

    assert report["cases"] == []


def test_mutants_that_time_out_are_killed_and_soon_not_run_any_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.sql").write_text(SCRIPT, encoding="utf-8")
    write(HEAD + "  - {id: a, gold: SELECT 1, timeout: 0.05}\n")
    endless = "WITH RECURSIVE n(x) AS (SELECT {} UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    mutants = [Mutant(query=endless.format(n), operator="value", clause="SELECT", change=str(n)) for n in range(9)]
    monkeypatch.setitem(MUTATORS._members, "sql", lambda *_: mutants)
    (case,) = load_cases("s.queryeval.yaml", require_prediction=False)

    with Session() as session:
        measured = measure_strength(case, session)

    assert len(measured.killed) == MAX_TIMEOUTS
    assert measured.survivors == ()


def test_untrusted_text_of_a_gold_is_no_line_of_its_own(strength, capsys):
    write(HEAD + "  - {id: a, gold: \"SELECT name FROM singer WHERE name <> '\\n::error::x' AND age > 35\"}\n")

    main(["strength", "."])

    assert not any(line.startswith("::") for line in capsys.readouterr().out.splitlines())


def test_the_example_of_the_page_is_what_the_command_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    suite, script, output = (
        re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
        for language in ("yaml", "sql", "console")
    )
    Path("suites").mkdir()
    Path("suites/shop.queryeval.yaml").write_text(suite, encoding="utf-8")
    Path("suites/shop.sql").write_text(script, encoding="utf-8")

    assert main(["strength", "suites"]) == 0

    assert f"$ queryeval strength suites\n{capsys.readouterr().out}" == output


def test_the_page_names_every_operator(strength):
    from test_mutants import GOLDS, of

    named = set(re.findall(r"`([a-z-]+)`", PAGE.partition("## Operators")[2].partition("## Options")[0]))

    assert {mutant.operator for gold in GOLDS for mutant in of(gold)} <= named


FRIENDS = """
CREATE TABLE pupil (id INTEGER PRIMARY KEY, name TEXT NOT NULL, class INTEGER);
CREATE TABLE friend (pupil INTEGER REFERENCES pupil (id), other INTEGER, PRIMARY KEY (pupil, other));
CREATE TABLE mark (pupil INTEGER NOT NULL, subject TEXT NOT NULL, points INTEGER);
INSERT INTO pupil VALUES (1, 'Ann', 5), (2, 'Bob', 5), (3, 'Cy', 6);
INSERT INTO friend VALUES (1, 2), (1, 3), (2, 1);
INSERT INTO mark VALUES (1, 'Maths', 3), (2, 'Maths', 2);
"""
TABLES = {  # as Spider lists them: without NOT NULL, and of a composite key the first column
    "db_id": "a",
    "table_names_original": ["pupil", "friend", "mark"],
    "column_names_original": [
        *([-1, "*"], [0, "id"], [0, "name"], [0, "class"], [1, "pupil"], [1, "other"]),
        *([2, "pupil"], [2, "subject"], [2, "points"]),
    ],
    "column_types": ["text", "number", "text", *["number"] * 4, "text", "number"],
    "primary_keys": [1, 4, 6],
    "foreign_keys": [[4, 1], [5, 1], [6, 1], [8, 1]],
}
LISTED_HEAD = HEAD.replace("cases:", "db_schema: tables.json\ncases:")
FRIEND_GOLDS = """
  - {id: part-of-key, gold: SELECT DISTINCT pupil FROM friend WHERE other < 3}
  - {id: not-null, gold: SELECT count(name) FROM pupil}
  - {id: unlisted-reference, gold: SELECT f.other FROM friend f JOIN pupil p ON p.id = f.pupil}
  - {id: listed-reference, gold: SELECT p.name FROM friend f JOIN pupil p ON p.id = f.other}
  - {id: listed-key, gold: SELECT DISTINCT pupil FROM mark}
  - {id: broken-reference, gold: SELECT m.subject FROM mark m JOIN pupil p ON p.id = m.points WHERE m.points < 3}
"""


def test_constraints_are_those_of_the_source_and_those_of_db_schema_that_its_data_keeps(strength):
    Path("a.sql").write_text(FRIENDS, encoding="utf-8")
    Path("tables.json").write_text(json.dumps([TABLES]), encoding="utf-8")

    _, report = strength(FRIEND_GOLDS, head=LISTED_HEAD)

    weak = survivors(report)
    assert "DISTINCT dropped" in weak["part-of-key"]
    assert "COUNT(name) → COUNT(*)" not in weak.get("not-null", ())
    assert not any(
        "JOIN" in change for id_ in ("unlisted-reference", "listed-reference") for change in weak.get(id_, ())
    )
    assert "DISTINCT dropped" not in weak.get("listed-key", ())


def test_constraints_are_those_of_the_schema_of_each_case(monkeypatch):
    install_engine(monkeypatch, {})
    with Session() as session:
        for number in range(20):  # each schema is gone by the next one, which may have its address
            schema = Schema(tables={f"t{number}": ("a",)})
            case = make_case(source=fake_source(), db_schema=schema)
            assert list(source_tables(case, session).tables) == [f"t{number}"]
            del schema, case


def test_a_listed_key_that_the_data_breaks_counts_for_nothing(strength):
    rows = "INSERT INTO mark VALUES (1, 'Art', 1); INSERT INTO friend VALUES (2, 9);"
    Path("a.sql").write_text(FRIENDS + rows, encoding="utf-8")
    Path("tables.json").write_text(json.dumps([TABLES]), encoding="utf-8")

    _, report = strength(
        """
  - {id: key, gold: SELECT DISTINCT pupil FROM mark WHERE points > 1}
  - {id: reference, gold: SELECT p.name FROM friend f JOIN pupil p ON p.id = f.other WHERE f.pupil < 2}
""",
        head=LISTED_HEAD,
    )

    weak = survivors(report)
    assert "DISTINCT dropped" in weak["key"]
    assert "JOIN pupil AS p → LEFT JOIN pupil AS p" in weak["reference"]


def test_a_declared_foreign_key_that_the_data_breaks_counts_for_nothing(strength):
    Path("a.sql").write_text(SCRIPT + "INSERT INTO concert VALUES (5, 9);", encoding="utf-8")

    _, report = strength("""
  - {id: a, gold: SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer WHERE c.singer < 9}
""")

    assert "JOIN singer AS s → LEFT JOIN singer AS s" in survivors(report)["a"]


def test_a_primary_key_with_nulls_tells_no_rows_apart(strength):
    """SQLite admits several NULLs in the primary key of a table unless its type is INTEGER."""
    script = "CREATE TABLE t (k TEXT PRIMARY KEY, n INT); INSERT INTO t VALUES (NULL, 1), (NULL, 2), ('x', 3);"
    Path("a.sql").write_text(script, encoding="utf-8")

    _, report = strength("  - {id: a, gold: SELECT DISTINCT k FROM t WHERE n > 1}\n")

    assert "DISTINCT dropped" in survivors(report)["a"]


def test_a_mutant_that_answers_otherwise_on_the_source_is_not_called_equivalent(strength):
    """SQLite stores 30.5 in a column of integers, whatever its type rules out."""
    Path("a.sql").write_text(SCRIPT + "INSERT INTO singer VALUES (5, 'Ed', 30.5, 'FR');", encoding="utf-8")

    _, report = strength("  - {id: a, gold: SELECT id FROM singer WHERE age > 30.5}\n")

    (case,) = report["cases"]
    assert "age > 30.5 → age >= 30.5" not in survivors(report)["a"]
    assert report["summary"]["operators"]["comparison-boundary"] == {"killed": 1, "equivalent": 0, "survivors": 0}
    assert case["mutants"] == case["killed"] + case["equivalent"] + len(case["survivors"])


@pytest.mark.feature("duckdb")
def test_duckdb_finds_the_same_as_sqlite(strength):
    pytest.importorskip("duckdb")
    cases = """
  - {id: boundary, gold: SELECT name FROM singer WHERE age > 35 ORDER BY id}
  - {id: key, gold: "SELECT DISTINCT id, name FROM singer"}
  - {id: partner, gold: SELECT c.id FROM concert c JOIN singer s ON c.singer = s.id WHERE c.singer > 1}
  - {id: grouped, gold: "SELECT country, count(*) FROM singer GROUP BY country HAVING count(*) > 1"}
"""
    _, on_sqlite = strength(cases)

    _, on_duckdb = strength(cases, head=HEAD.replace("sqlite", "duckdb"))

    def counts(found):
        return {case["id"]: (case["mutants"], case["killed"], case["equivalent"]) for case in found["cases"]}

    assert counts(on_duckdb) == counts(on_sqlite)
    assert survivors(on_duckdb) == survivors(on_sqlite)


def weak_case(**changes):
    """A weak case as `queryeval strength --json` prints it."""
    mutant = {"query": "SELECT 2", "operator": "value", "clause": "WHERE", "change": "1 → 2"}
    counts = {"mutants": 4, "killed": 2, "equivalent": 1}
    return {"id": "a", "path": "suite/a.yaml", "line": 3, **counts, "survivors": [mutant], **changes}


def render_page(cases, tmp_path):
    """The page of a report of two cases, with what `queryeval strength` found."""
    weak, report, page = (tmp_path / name for name in ("strength.json", "report.json", "report.html"))
    weak.write_text(json.dumps({"cases": cases}), encoding="utf-8")
    entries = [{**entry(), "id": id_, "path": "suite/a.yaml", "nodeid": f"suite/a.yaml::{id_}"} for id_ in "ab"]
    report.write_text(json.dumps(report_of(entries)), encoding="utf-8")
    status = main(["render", str(report), "--strength", str(weak), "-o", str(page)])
    return status, page.read_text(encoding="utf-8") if page.exists() else ""


def test_the_page_lists_the_weak_cases_of_its_report(tmp_path):
    hostile = weak_case(id="b", survivors=[{**weak_case()["survivors"][0], "change": "<script>alert(1)</script>"}])
    strong, second = weak_case(id="b", survivors=[]), weak_case(id="gone")

    status, page = render_page([weak_case(), hostile, strong, second], tmp_path)

    section = page.partition('<section id="added-0"')[2].partition("</section>")[0]
    assert status == 0
    assert '<a href="#added-0">Weak cases</a>' in page
    assert '<a href="#case=suite%2Fa.yaml%3A%3Aa">suite/a.yaml::a</a></th><td>1 of 3</td><td>1 → 2</td>' in section
    assert "&lt;script&gt;" in section
    assert section.count("<tr>") == 3
    assert "gone" not in section


def test_a_page_without_weak_cases_has_no_such_section(tmp_path):
    _, page = render_page([weak_case(survivors=[])], tmp_path)

    assert page
    assert "Weak cases" not in page


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not a result of `queryeval strength`: not JSON: it ends too early"),
        (
            "[]",
            "is not a result of `queryeval strength`: write one with `queryeval strength PATH --json > strength.json`",
        ),
        ('{"cases": [{"id": 1}]}', "is not a result of `queryeval strength`: cases[0].id: expected a text"),
        (json.dumps({"cases": [weak_case(killed=-1)]}), "cases[0].killed: expected a whole number >= 0"),
        (None, "no such file"),
    ],
)
def test_what_is_no_result_of_the_command_is_refused(content, problem, tmp_path):
    path = tmp_path / "strength.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")

    with pytest.raises(ReportError, match=re.escape(problem)):
        read_weak_cases(path)
