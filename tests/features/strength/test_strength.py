"""`queryeval strength`: planted weak cases are found, with what would pass, and no others."""

import json

import pytest
from report_maker import report_of
from samples import entry
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.features.strength import MUTATORS, Mutant

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
    write(SCRIPT, "a.sql")

    def run(cases, *options, head=HEAD, script=None):
        write(head + cases)
        if script is not None:
            write(script, "a.sql")
        status = main(["strength", ".", "--json", *options])
        return status, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def printed(strength, capsys):
    """A function that returns what the command prints of cases in YAML."""

    def run(cases, head=HEAD):
        write(head + cases)
        main(["strength", "."])
        return capsys.readouterr()

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
  - {id: ordered, gold: SELECT name FROM singer ORDER BY age DESC}
  - {id: any-order, gold: SELECT name FROM singer ORDER BY age DESC, compare: {row_order: ignore}}
  - {id: tie, gold: SELECT name FROM singer WHERE age < 40 ORDER BY age DESC LIMIT 1}
  - {id: some-columns, gold: "SELECT name, age FROM singer WHERE age > 30", compare: {gold_columns: [name]}}
  - {id: other-gold, gold_any: [SELECT name FROM singer WHERE age > 30, SELECT name FROM singer]}
""")

    weak, cases = survivors(report), {case["id"]: case for case in report["cases"]}
    assert status == 0
    assert weak["strong"] == {"DISTINCT added", "age > 30 → age > 31"}
    assert weak["boundary"] == {"DISTINCT added", "age > 35 → age >= 35", "age > 35 → age > 36", "age > 35 → age > 34"}
    assert {"AND country = 'FR' dropped"} <= weak["condition"]
    assert "AND age = 20 dropped" not in weak["condition"]
    assert "JOIN concert AS c → LEFT JOIN concert AS c" not in weak["outer-join"]
    assert {"DISTINCT dropped", "AND country <> 'US' dropped"} <= weak["duplicates"]
    assert "ORDER BY id dropped" in weak["order"]
    assert "age DESC → age" not in weak["ordered"]
    assert cases["any-order"]["equivalent"] > cases["ordered"]["equivalent"]
    assert "age < 40 → age <= 40" in weak["tie"]
    assert weak["some-columns"] == {"DISTINCT added", "age > 30 → age > 31"}
    assert "WHERE age > 30 dropped" in weak["other-gold"]


def test_weakest_cases_come_first_and_sums_agree_for_each_suite(strength, capsys):
    write(HEAD + "  - {id: b, gold: SELECT name FROM singer WHERE age > 100}\n", "b.queryeval.yaml")

    _, report = strength("""
  - {id: strong, gold: SELECT COUNT(*) FROM concert}
  - {id: weak, gold: SELECT name FROM singer WHERE age > 30}
""")
    main(["strength", "."])

    lines, summary = capsys.readouterr().out.splitlines(), report["summary"]
    assert [case["id"] for case in report["cases"]] == ["b", "weak", "strong"]
    for counts in (*report["cases"], summary, *summary["suites"].values()):
        left = counts["survivors"] if isinstance(counts["survivors"], int) else len(counts["survivors"])
        assert counts["mutants"] == counts["killed"] + counts["equivalent"] + left > 0
    for outcome in ("killed", "equivalent", "survivors"):
        assert sum(of[outcome] for of in summary["operators"].values()) == summary[outcome]
        assert sum(of[outcome] for of in summary["suites"].values()) == summary[outcome]
    assert summary["suites"].keys() == {"b.queryeval.yaml", "s.queryeval.yaml"}
    assert lines[-2].startswith("s.queryeval.yaml: 2 of ")
    assert lines[-2].endswith(" mutants pass, in 1 of 2 cases")


def test_a_gold_that_does_not_run_is_a_problem_and_the_others_are_measured(strength):
    status, report = strength("""
  - {id: fails, gold: SELECT nme FROM singer}
  - {id: runs, gold: SELECT name FROM singer}
  - {id: skipped, gold: SELECT nme FROM singer, skip: later}
  - {id: stored, gold_table: {columns: [n], rows: [[1]]}}
""")

    assert status == 1
    assert [(problem["path"], problem["line"]) for problem in report["problems"]] == [("s.queryeval.yaml", 5)]
    assert "no such column: nme: did you mean 'name'?" in report["problems"][0]["message"]
    assert [case["id"] for case in report["cases"]] == ["runs"]


def test_a_source_that_cannot_answer_is_one_problem(strength):
    cases = "  - {id: a, gold: SELECT 1}\n  - {id: b, gold: SELECT 2}\n"

    status, report = strength(cases, head="kind: sql\nsource: missing.db\ncases:\n")

    assert (status, len(report["problems"])) == (1, 1)


def test_the_text_names_clauses_once_and_says_what_is_not_measured(printed):
    limited = printed("  - {id: a, gold: SELECT id FROM singer LIMIT 9}\n").out.splitlines()
    unread = printed("  - {id: a, gold: SELECT ~~age FROM singer}\n").err
    hostile = printed("  - {id: a, gold: \"SELECT name FROM singer WHERE name <> '\\n::error::x' AND age > 35\"}\n").out
    other_kind = printed("  - {id: a, gold: {x: 1}}\n", head="kind: json\ncases:\n").out

    assert {line.strip() for line in limited if line.startswith("  ")} == {
        "LIMIT 9 → LIMIT 10",
        "LIMIT 9 → LIMIT 8",
        "SELECT: DISTINCT added",
        "and 1 more",
    }
    assert (
        "not measured: s.queryeval.yaml:4: case 'a': the gold query cannot be read: LIKE lacks a part, line 1, "
        in unread
    )
    assert not any(line.startswith("::") for line in hostile.splitlines())
    assert other_kind.splitlines()[-1] == "no case has a gold query of which mutants are made"


@pytest.mark.parametrize(
    ("gold", "options", "status"),
    [
        ("SELECT name FROM singer WHERE age > 35", [], 0),
        ("SELECT name FROM singer WHERE age > 35", ["--strict"], 1),
        ("SELECT COUNT(*) FROM concert WHERE id < 0", ["--strict"], 1),
        ("SELECT COUNT(*) FROM concert", ["--strict"], 0),
    ],
)
def test_survivors_fail_a_strict_call_only(strength, gold, options, status):
    assert strength(f"  - {{id: a, gold: {gold}}}\n", *options)[0] == status


def test_a_comment_behind_the_last_semicolon_leaves_the_mutants(strength):
    _, plain = strength("  - {id: a, gold: SELECT name FROM singer WHERE age > 35}\n")

    _, report = strength('  - {id: a, gold: "SELECT name FROM singer WHERE age > 35;\\n-- by age;"}\n')

    assert report["summary"] == plain["summary"]
    assert report["summary"]["mutants"] > 5


def test_mutants_that_time_out_are_killed_and_soon_not_run_any_more(strength, monkeypatch):
    endless = "WITH RECURSIVE n(x) AS (SELECT {} UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    mutants = [Mutant(query=endless.format(n), operator="value", clause="SELECT", change=str(n)) for n in range(9)]
    monkeypatch.setitem(MUTATORS._members, "sql", lambda *_: mutants)

    _, report = strength("  - {id: a, gold: SELECT 1, timeout: 0.05}\n")

    assert report["summary"]["operators"] == {"value": {"killed": 3, "equivalent": 0, "survivors": 0}}


FRIENDS = """
CREATE TABLE pupil (id INTEGER PRIMARY KEY, name TEXT NOT NULL, class INTEGER);
CREATE TABLE friend (pupil INTEGER REFERENCES pupil (id), other INTEGER, PRIMARY KEY (pupil, other));
CREATE TABLE mark (pupil INTEGER NOT NULL, subject TEXT NOT NULL, points INTEGER);
INSERT INTO pupil VALUES (1, 'Ann', 5), (2, 'Bob', 5), (3, 'Cy', 6);
INSERT INTO friend VALUES (1, 2), (1, 3), (2, 1);
INSERT INTO mark VALUES (1, 'Maths', 3), (2, 'Maths', 2);
"""
BROKEN = FRIENDS + "INSERT INTO mark VALUES (1, 'Art', 1); INSERT INTO friend VALUES (2, 9);"
LISTED = {  # as Spider lists them: without NOT NULL, and of a composite key the first column
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
# Tables without rows, so that what is declared decides alone.
ODD = """
CREATE TABLE "A b" ("K" INT, other TEXT NOT NULL, CONSTRAINT p PRIMARY KEY ("K"), UNIQUE (other, "K"));
CREATE TABLE c (k INT NOT NULL REFERENCES "A b", x INT UNIQUE, CHECK (x > 1), FOREIGN KEY (x) REFERENCES "A b" ("K"));
CREATE TABLE indexed (k INT NOT NULL, "Name" TEXT, other TEXT);
CREATE UNIQUE INDEX one ON indexed (k);
CREATE UNIQUE INDEX some ON indexed (other) WHERE k > 1;
CREATE UNIQUE INDEX folded ON indexed (lower(other));
CREATE INDEX plain ON indexed (other);
CREATE TABLE short (k INTEGER PRIMARY KEY, x TEXT) WITHOUT ROWID;
CREATE TABLE strict (k INTEGER PRIMARY KEY, x TEXT) STRICT, without  rowid;
CREATE TABLE after (y TEXT NOT NULL UNIQUE);
"""
LEFT = "JOIN {0} → LEFT JOIN {0}".format
DROPPED, ADDED = "DISTINCT dropped", "DISTINCT added"


@pytest.mark.parametrize(
    ("script", "gold", "change", "is_equivalent"),
    [
        # Constraints of the source, and those of `db_schema` that its data keep.
        (FRIENDS, "SELECT DISTINCT pupil FROM friend WHERE other < 3", DROPPED, False),  # a part of a key
        (FRIENDS, "SELECT count(name) FROM pupil", "COUNT(name) → COUNT(*)", True),
        (FRIENDS, "SELECT f.other FROM friend f JOIN pupil p ON p.id = f.pupil", LEFT("pupil AS p"), True),
        (FRIENDS, "SELECT p.name FROM friend f JOIN pupil p ON p.id = f.other", LEFT("pupil AS p"), True),
        (FRIENDS, "SELECT DISTINCT pupil FROM mark", DROPPED, True),
        # A constraint that the data break counts for nothing.
        (BROKEN, "SELECT DISTINCT pupil FROM mark WHERE points > 1", DROPPED, False),
        (
            BROKEN,
            "SELECT p.name FROM friend f JOIN pupil p ON p.id = f.other WHERE f.pupil < 2",
            LEFT("pupil AS p"),
            False,
        ),
        (
            SCRIPT + "INSERT INTO concert VALUES (5, 9);",
            "SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer WHERE c.singer < 9",
            LEFT("singer AS s"),
            False,
        ),
        # SQLite admits several NULLs in the primary key of a table unless its type is INTEGER.
        (
            "CREATE TABLE t (k TEXT PRIMARY KEY, n INT); INSERT INTO t VALUES (NULL, 1), (NULL, 2), ('x', 3);",
            "SELECT DISTINCT k FROM t WHERE n > 1",
            DROPPED,
            False,
        ),
        # What is declared in other ways.
        (ODD, 'SELECT DISTINCT "K" FROM "A b"', DROPPED, True),
        (ODD, 'SELECT DISTINCT other FROM "A b"', DROPPED, False),
        (ODD, 'SELECT c.x FROM c JOIN "A b" ON c.k = "A b"."K"', LEFT('"A b"'), True),
        (ODD, 'SELECT c.x FROM c JOIN "A b" ON c.x = "A b"."K"', LEFT('"A b"'), False),  # may be NULL
        (ODD, "SELECT k FROM indexed", ADDED, True),
        (ODD, "SELECT other FROM indexed WHERE other > 'a'", ADDED, False),
        (ODD, "SELECT k, x FROM short", ADDED, True),
        (ODD, "SELECT k, x FROM strict", ADDED, True),
        (ODD, "SELECT y FROM after", ADDED, True),
    ],
)
def test_constraints_are_those_that_the_data_of_the_source_keep(strength, script, gold, change, is_equivalent):
    write(json.dumps([LISTED]), "tables.json")
    head = HEAD.replace("cases:", "db_schema: tables.json\ncases:") if "pupil" in script else HEAD
    case = json.dumps({"id": "a", "gold": gold})

    _, report = strength(f"  - {case}\n", head=head, script=script)

    assert (change in survivors(report).get("a", ())) is not is_equivalent
    assert not is_equivalent or report["cases"][0]["equivalent"] > 0


def test_a_mutant_that_answers_otherwise_on_the_source_is_not_called_equivalent(strength):
    """SQLite stores 30.5 in a column of integers, whatever its type rules out."""
    script = SCRIPT + "INSERT INTO singer VALUES (5, 'Ed', 30.5, 'FR');"

    _, report = strength("  - {id: a, gold: SELECT id FROM singer WHERE age > 30.5}\n", script=script)

    assert report["summary"]["operators"]["comparison-boundary"] == {"killed": 1, "equivalent": 0, "survivors": 0}


GRAPH = "@prefix : <http://e/> . :a a :A ; :p 1 ; :size 2 . :b a :B ; :p 3 ."
KNOWN = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:ann a :Person ; :knows :bo . :bo a :Person . :works a :Firm ; :employs :ann, :bo . :Person rdfs:subClassOf :Agent .
"""
IN_PLACES = "SELECT ?x { ?x a :Agent . :works :employs ?x . ?x :knows :bo }"


def test_mutants_of_sparql_have_the_terms_of_the_graph(strength):
    head = (
        "kind: sparql\nsource: {rdf: {files: [g.ttl], prefixes: {'': 'http://e/', "
        "rdfs: 'http://www.w3.org/2000/01/rdf-schema#'}}}\ncases:\n"
    )

    def operators(text, gold):
        write(text, "g.ttl")
        _, report = strength(f"  - {{id: a, question: '?', gold: '{gold}'}}\n", head=head)
        return report["summary"]["operators"], survivors(report).get("a", set())

    counts, weak = operators(GRAPH, "SELECT ?x { ?x a :A ; :p 1 }")
    assert weak == {"?x a :A dropped", "?x :p 1 dropped"}
    assert counts["class"] == {"killed": 1, "equivalent": 0, "survivors": 0}
    assert counts["predicate"]["killed"] > 0
    counts, weak = operators(KNOWN, IN_PLACES)
    assert counts["path"]["killed"] > 0
    assert "constant" not in counts  # no other IRI is in their places
    counts, weak = operators(KNOWN + ":firm :employs :bo . :bo :knows :ann .", IN_PLACES)
    assert sum(counts["constant"].values()) == 2


@pytest.mark.feature("duckdb")
def test_duckdb_finds_the_same_as_sqlite(strength):
    cases = """
  - {id: boundary, gold: SELECT name FROM singer WHERE age > 35 ORDER BY id}
  - {id: key, gold: "SELECT DISTINCT id, name FROM singer"}
  - {id: partner, gold: SELECT c.id FROM concert c JOIN singer s ON c.singer = s.id WHERE c.singer > 1}
  - {id: grouped, gold: "SELECT country, count(*) FROM singer GROUP BY country HAVING count(*) > 1"}
"""
    _, on_sqlite = strength(cases)

    _, on_duckdb = strength(cases, head=HEAD.replace("sqlite", "duckdb"))

    assert on_duckdb["summary"] == on_sqlite["summary"]
    assert survivors(on_duckdb) == survivors(on_sqlite)


def weak_case(**changes):
    """A weak case as `queryeval strength --json` prints it."""
    mutant = {"query": "SELECT 2", "operator": "value", "clause": "WHERE", "change": "1 → 2"}
    counts = {"mutants": 4, "killed": 2, "equivalent": 1}
    return {"id": "a", "path": "suite/a.yaml", "line": 3, **counts, "survivors": [mutant], **changes}


def render_page(content, tmp_path):
    """The page of a report of two cases, with what `queryeval strength` found."""
    weak, report, page = (tmp_path / name for name in ("strength.json", "report.json", "report.html"))
    if content is not None:
        weak.write_text(content if isinstance(content, str) else json.dumps({"cases": content}), encoding="utf-8")
    entries = [{**entry(), "id": id_, "path": "suite/a.yaml", "nodeid": f"suite/a.yaml::{id_}"} for id_ in "ab"]
    report.write_text(json.dumps(report_of(entries)), encoding="utf-8")
    assert main(["render", str(report), "--strength", str(weak), "-o", str(page)]) == 0
    return page.read_text(encoding="utf-8")


def test_the_page_lists_the_weak_cases_of_its_report(tmp_path):
    hostile = weak_case(id="b", survivors=[{**weak_case()["survivors"][0], "change": "<script>alert(1)</script>"}])
    strong, second = weak_case(id="b", survivors=[]), weak_case(id="gone")

    page = render_page([weak_case(), hostile, strong, second], tmp_path)

    section = page.partition('<section id="added-0"')[2].partition("</section>")[0]
    assert '<a href="#added-0">Weak cases</a>' in page
    assert '<a href="#case=suite%2Fa.yaml%3A%3Aa">suite/a.yaml::a</a></th><td>1 of 3</td><td>1 → 2</td>' in section
    assert "&lt;script&gt;" in section
    assert section.count("<tr>") == 3
    assert "gone" not in section
    assert "Weak cases" not in render_page([weak_case(survivors=[])], tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not a result of `queryeval strength`: not JSON: it ends too early"),
        (
            "[]",
            "is not a result of `queryeval strength`: write one with `queryeval strength PATH --json > strength.json`",
        ),
        ('{"cases": [{"id": 1}]}', "is not a result of `queryeval strength`: cases[0].id: expected a text"),
        ([weak_case(killed=-1)], "cases[0].killed: expected a whole number >= 0"),
        (None, "no such file"),
    ],
)
def test_what_is_no_result_of_the_command_is_refused(content, problem, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        render_page(content, tmp_path)
    assert problem in capsys.readouterr().err
