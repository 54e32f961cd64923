"""What the text of a failed case says of answers that differ: all cases are of one run of pytest."""

import json
import re

import pytest

pytestmark = pytest.mark.feature("duckdb", "sparql_endpoint")

TEXT_NUMBERS = "hint if a number and its text may be equal, add `compare: {text_numbers: true}` to the case"
DUPLICATES = "hint if duplicates do not matter, add `compare: {duplicates: ignore}` to the case"
EXTRA = "hint if extra columns do not matter, add `compare: {extra_columns: allow}` to the case"
MIDNIGHT = "hint if a date may equal its midnight, add `compare: {dates: midnight}` to the case"
BLANKS = "hint if blanks do not matter, add `compare: {whitespace: ignore}` to the case"
DATE, TIMESTAMP = "DATE '2024-01-02'", "TIMESTAMP '2024-01-02 {}'"
# The rows of gold and of predicted in SQL, settings of `compare`, and what is shown of what differs.
CHANGE = "gold → predicted"
LABELS = rf"({CHANGE}|missing|extra|gold|instead|repeated) \|(?! SELECT)|hint"
ROWS = [
    # A text and a number that look alike come with their types, in the cells that differ.
    (
        "(3), (4)",
        "('3'), ('4')",
        {},
        ["missing | 3 (integer)", "missing | 4 (integer)", "extra | 3 (text)", "extra | 4 (text)", TEXT_NUMBERS],
    ),
    (
        "('FR', 'a', 3, 3)",
        "('FR', 'a', '3', 4)",
        {},
        [
            f"{CHANGE} | col2 differs in 1 of 1 row: 3 (integer) → 3 (text) (col0 FR)",
            f"{CHANGE} | col3 differs in 1 of 1 row: 3 → 4 (col0 FR)",
        ],
    ),
    (
        ", ".join(f"({n})" for n in range(1, 11)),
        "(0)",
        {},
        [*(f"missing | {n}" for n in range(1, 9)), "missing | … 8 of 10 shown", "extra | 0"],
    ),
    ("(3, 'x'), (5, 'z')", "(3.0, 'y'), (5, 'z')", {}, [f"{CHANGE} | col1 differs in 1 of 2 rows: x → y (col0 3)"]),
    *(
        (
            f"({gold}, 1, 5, 6)",
            f"({text}, 2, 5, 6)",
            {},
            [
                *([f"{CHANGE} | col0 differs in 1 of 1 row: {shown} → {other} (col2 5)"] if shown != other else []),
                f"{CHANGE} | col1 differs in 1 of 1 row: 1 → 2 (col2 5)"
                if shown != other
                else f"{CHANGE} | col1 differs in 1 of 1 row: 1 → 2 (col0 3)",
            ],
        )
        for gold, text, shown, other in [
            ("1.5::DECIMAL(9, 1)", "'1.5'", "1.5 (decimal)", "1.5 (text)"),
            ("1.5::DOUBLE", "'1.5'", "1.5 (float)", "1.5 (text)"),
            ("NULL", "'NULL'", "NULL", "NULL (text)"),
            ("true", "'true'", "true (boolean)", "true (text)"),
            ("'a'::BLOB", "'x''61'''", "x'61' (bytes)", "x'61' (text)"),
            ("3", "3", "3", "3"),
        ]
    ),
    # Texts that look the same, by escapes of the characters that differ.
    ("('K\xf6ln'), ('x')", "('Ko\u0308ln'), ('x')", {}, [r"missing | K\xf6ln", r"extra | Ko\u0308ln"]),
    (
        "('M\xfcnchen', 3)",
        "('M\xfcnchen\xa0', 3)",
        {},
        [f"{CHANGE} | col0 differs in 1 of 1 row: M\xfcnchen → M\xfcnchen\\xa0 (col1 3)", BLANKS],
    ),
    # Rows that occur too often.
    (
        "('FR'), ('FR'), ('JP'), ('JP'), ('JP'), ('KE')",
        "('FR'), ('JP'), ('KE')",
        {},
        ["repeated | FR (2 in gold, 1 in predicted)", "repeated | JP (3 in gold, 1 in predicted)", DUPLICATES],
    ),
    ("(1)", "(1, 2)", {}, [EXTRA]),
    # No setting is named that is there already, or would not help.
    ("('1.10')", "('1.1')", {}, ["missing | 1.10", "extra | 1.1"]),
    ("(3, 'a')", "('3', 'b')", {"text_numbers": True}, [f"{CHANGE} | col1 differs in 1 of 1 row: a → b (col0 3)"]),
    ("(1)", "(2, 2)", {}, []),
    ("(1)", "(1), (1)", {"row_order": "strict"}, []),
    ("('FR'), ('FR'), ('JP')", "('FR', 1), ('JP', 1)", {}, []),
    (f"({DATE}, 1)", f"({TIMESTAMP.format('12:00')}, 1)", {}, None),
    (f"({DATE}, 1)", "(DATE '2024-01-03', 1)", {}, None),
    # A date instead of a timestamp at midnight.
    (f"({DATE}, 1)", f"({TIMESTAMP.format('00:00')}, 1)", {}, [MIDNIGHT]),
    ("('2024-01-02 00:00:00.000', 1)", "('2024-01-02', 1)", {}, [MIDNIGHT]),
]
XSD = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
TERMS = [
    ("20", '"20"^^xsd:decimal', "20 (xsd:integer)", "20 (xsd:decimal)"),
    ('"a"^^xsd:token', '"a"', "a (xsd:token)", "a (xsd:string)"),
]
TABLE = {name: {"columns": ["a"], "rows": [[value]]} for name, value in (("gold", 1), ("same", "1"), ("other", 2))}
SAME = {"gold_table": TABLE["gold"], "predicted_table": TABLE["same"]}
EXECUTION, BIRD = "execution_accuracy", "execution_accuracy_bird"
MORE = {
    "both-metrics": SAME | {"thresholds": {EXECUTION: 1, BIRD: 1}},
    "another-metric": SAME | {"thresholds": {"soft_f1": 1}},
    "golds": {"gold_any": [TABLE["other"], TABLE["gold"], TABLE["other"]], "predicted": "SELECT 1 AS a, 7 AS b"},
    "long-query": {
        "gold": "\n".join(["SELECT 1", *(f"+ {n}" for n in range(40)), "-- the end"]),
        "predicted": "\n".join(["SELECT 1", *(f"+ {n + (n in (20, 36))}" for n in range(40)), "-- the end"]),
    },
    "long-line": {
        "gold": f"SELECT {' + '.join(map(str, range(200)))}",
        "predicted": f"SELECT {' + '.join(map(str, range(200)))}".replace(" 100 ", " 777 "),
    },
    "wide": {
        "gold": "SELECT * FROM (VALUES (1, 2))",
        "predicted": f"SELECT {', '.join(f'col0 AS c{n}' for n in range(100))} FROM (VALUES (1, 2))",
    },
    "unsafe": {"gold": "SELECT 1", "predicted": "DELETE FROM t"},
    "cause": {"gold": "SELECT a FROM t WHERE a > 30", "predicted": "SELECT a FROM t WHERE a > 40"},
    "colours": {"gold": "VALUES (5, 'b', 6), (7, 'c', 7)", "predicted": "VALUES (8, 'd', 9), (0, 'e', 0)"},
}
ASKED = {"question": "q", "gold": "SELECT 1"}
SAID = """
calls = []
def same(case):
    return "SELECT '1'"
def either(case):
    calls.append(case)
    return "SELECT '1'" if len(calls) % 2 else "SELECT 2"
"""


def rows_of(values):
    """A query of these rows, in columns of these types, in no order."""
    return f"SELECT * FROM (VALUES {values})"


@pytest.fixture(scope="module")
def run(shared_pytester):
    folder = shared_pytester.path
    cases = [
        {"id": f"row{n}", "gold": rows_of(gold), "predicted": rows_of(predicted), "compare": compare}
        for n, (gold, predicted, compare, _) in enumerate(ROWS)
    ]
    cases += [{"id": name, **fields} for name, fields in MORE.items()]
    terms = [
        {
            "id": f"term{n}",
            **{
                side: f"{XSD} SELECT ({term} AS ?x) (1 AS ?y) ({m} AS ?z) {{}}"
                for m, (side, term) in enumerate((("gold", gold), ("predicted", predicted)))
            },
        }
        for n, (gold, predicted, *_) in enumerate(TERMS)
    ]
    (folder / "said.py").write_text(SAID)
    (folder / "t.sql").write_text("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (35), (50);")
    (folder / "g.ttl").write_text("")
    suites = {
        "s": {"kind": "sql", "source": {"duckdb": {"script": "t.sql"}}, "cases": cases},
        "t": {"kind": "sparql", "source": "g.ttl", "compare": {"rdf_terms": "strict"}, "cases": terms},
        "q": {"kind": "sql", "source": {"duckdb": {"script": "t.sql"}}, "cases": "q.csv"},
    }
    answers = {"colours-json": ({"x": 2}, {"x": 3}), "separator": ({"x": "a · b"}, {"x": "c"})}
    paths = [{"id": name, "gold": gold, "predicted": predicted} for name, (gold, predicted) in answers.items()]
    suites["j"] = {"kind": "json", "cases": paths}
    (folder / "q.csv").write_text('id,gold,predicted\nof-table,SELECT 1,"SELECT 1, 2"\n')
    for name, function in (("all-trials", "same"), ("some-trials", "either")):
        trials = {"predictor": f"said.py:{function}", "trials": 2, "trials_rule": "all"}
        suites[function] = suites["s"] | trials | {"cases": [{"id": name, **ASKED}]}
    unshown = {"id": "no-rows", "gold": "SELECT 'se' || 'cret'", "predicted": "SELECT 'secr' || 'ecy'"}
    suites["r"] = suites["s"] | {"report_rows": 0, "cases": [unshown]}
    for name, suite in suites.items():
        (folder / f"{name}.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    return shared_pytester


@pytest.fixture(scope="module")
def texts(run):
    """The lines of each failure, by the id of its case, without their margins."""
    _, *parts = re.split(r"^_{2,} (\S+) _{2,}$", "\n".join(run.runpytest_inprocess().outlines), flags=re.MULTILINE)
    return {
        name: [" ".join(line.split()) for line in text.partition("\n=")[0].splitlines()]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def shown(lines):
    return [line for line in lines if re.match(LABELS, line)]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_what_differs_is_shown_with_the_setting_that_allows_it(texts, number):
    lines, expected = shown(texts[f"row{number}"]), ROWS[number][-1]

    if expected is None or not expected or expected == [MIDNIGHT]:
        assert [line for line in lines if line.startswith("hint")] == (expected or [])
    else:
        assert lines == expected


@pytest.mark.parametrize("number", range(len(TERMS)))
def test_terms_that_look_alike_show_their_types(texts, number):
    cells = [line.split("| ")[1].split(" · ")[0] for line in shown(texts[f"term{number}"]) if " · " in line]

    assert cells == [*TERMS[number][2:]]


@pytest.mark.parametrize(
    ("name", "is_told"),
    [("both-metrics", False), ("another-metric", True), ("all-trials", True), ("some-trials", False)],
)
def test_a_setting_has_to_make_all_missed_metrics_and_enough_trials_pass(texts, name, is_told):
    assert (TEXT_NUMBERS in texts[name]) is is_told


def test_a_failure_names_the_closest_gold_the_cause_and_where_a_setting_belongs(texts):
    assert "golds 3, of which gold_any[0] is the closest" in texts["golds"]
    assert "cause WHERE: 40 → 30 (wrong-value), predicted → gold" in texts["cause"]
    assert "secre" not in "\n".join(texts["no-rows"])
    assert "cause unsafe" in texts["unsafe"]
    assert "\n".join(texts["unsafe"]).count("only reading is allowed") == 1
    assert "add `compare: {extra_columns: allow}` to the suite, for all rows of the table" in "\n".join(
        texts["of-table"]
    )


def test_what_differs_of_long_queries_is_shown(texts):
    several = texts["long-query"]
    gold, predicted = (line for line in texts["long-line"] if re.match("(gold|predicted) \\|", line))

    first = several.index("gold | … 19 lines")
    assert several[first + 1 : first + 15] == [
        *(f"| + {n}" for n in range(18, 24)),
        "| … 7 lines",
        *(f"| + {n}" for n in range(31, 37)),
        "| … 4 more lines",
    ]
    assert {"predicted | … 19 lines", "| + 21", "| + 37"} <= {*several}
    assert (" 99 + 100 + 101 " in gold, " 99 + 777 + 101 " in predicted) == (True, True)
    assert max(map(len, (gold, predicted))) < 180
    assert all(f" c{n}," in "".join(texts["wide"]) for n in range(99))


def test_differences_have_the_colours_of_the_page_and_cells_that_differ_are_bold(run):
    lines = run.runpytest_inprocess("--color=yes", "-k", "colours or separator").outlines

    for name, colour, cells in [
        ("missing", 32, ["5", "b", "6"]),
        ("extra", 31, ["8", "d", "9"]),
        ("gold", 32, ["$.x", "\x1b[1m2"]),
        ("instead", 31, ["$.x", "\x1b[1m3"]),
        ("gold", 32, ["$.x", '"a', 'b"']),
    ]:
        coloured = " · ".join(f"\x1b[{colour}m{cell}\x1b[0m" for cell in cells)
        assert any(line.startswith(f"\x1b[{colour}m    {name}") and line.endswith(f"| {coloured}") for line in lines)
