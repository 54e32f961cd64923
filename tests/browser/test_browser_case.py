"""The page of one case: what differs comes first, in the form of its kind, and every text stays text."""

import json

import pytest
from golden_files import compare_golden
from report_maker import make_report, plain_report
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

BRICK = "https://brickschema.org/schema/Brick#"
# The lines of a case: a row of a table each, and what else has no part of its own.
SHOWN = """
const [inserted, deleted] = arguments, lines = [];
const text = (node) => {
  if (node.nodeType !== 1) return node.data ?? "";
  if (node.matches("td.null")) return "∅";
  const inside = [...node.childNodes].map(text).join("");
  if (node.matches("ins")) return inserted.replace("…", inside);
  if (node.matches("del")) return deleted.replace("…", inside);
  return node.matches(".term[title]") ? `${inside} <- ${node.title}` : inside;
};
const walk = (node) => {
  if (!node.checkVisibility()) return;
  if (node.matches("tr")) {
    lines.push([...node.cells].map(text).join(" | "));
  } else if (node.querySelector("div, p, pre, tr, li, section, details, h3, h4, dd")) {
    for (const child of node.childNodes) {
      if (child.nodeType === 1) walk(child); else if (child.data?.trim()) lines.push(child.data.trim());
    }
  } else if (text(node).trim()) {
    lines.push(...text(node).split("\\n").map((line) => `${node.tagName.toLowerCase()}: ${line}`));
  }
};
walk(document.getElementById("case"));
return lines;
"""
MARKS = ("{+…+}", "[-…-]")
NO_ROWS = {"missing": [], "extra": [], "changed": [], "repeated": []}


def side(query, columns=None, rows=(), count=None, **changes):
    defaults = {"query": query, "columns": columns, "sample": [*rows], "seconds": 0.5, "error": None, "index": 0}
    return defaults | {"row_count": None if columns is None else count or len(rows)} | changes


def failed_case(id_, kind, gold, predicted, **changes):
    base_case = next(case for case in make_report(60)["cases"] if case["kind"] == kind and case["difference"])
    path = f"views/{kind}.queryeval.yaml"
    base_case |= {
        "id": id_,
        "path": path,
        "nodeid": f"{path}::{id_}",
        "outcome": "failed",
        "details": {},
        "cause": None,
    }
    return base_case | {"gold": gold, "predicted": predicted, "difference": None, "message": ""} | changes


COLUMNS = ["plan", "month", "income"]
LONG = "a long text of a model " * 8
TEXTS = ["👩\u200d💻 \U0001d4b3", "مرحبا بالعالم", "a\u202eb", "<b>no markup</b>"]
WIDE = [f"c{number}" for number in range(200)]
JSON_GOLD = {"a": {"b c": [1, 2]}, "it's": None, "same": 9007199254740993}
JSON_PREDICTED = {"same": 9007199254740993, "a": {"b c": [1, 3]}, "more": {"x": []}}
ROWS_OF_STEP = {"columns": ["table", "rows"], "rows": [["bike", 12], [None, 1.0]], "row_count": 31}
CASES = [
    failed_case(
        "rows",
        "sql",
        side("SELECT 1", COLUMNS, [["", "NULL", 1e-300]], 31),
        side("SELECT 2", ["plan", "m", "sum"], [["x", None, None]], 2),
        message="execution_accuracy 0.000 (needs at least 1)",
        evidence="income is what was paid",
        conversation=[{"role": "assistant", "content": "Which months do you mean?\n<i>All?</i>"}],
        difference={
            "summary": "missing 29 of 31 rows",
            "columns": COLUMNS,
            "predicted_columns": ["plan", "m", "sum"],
            "counts": {"missing": 30, "extra": 2},
            "missing": [["", "2025-01", 1e-300]],
            "extra": [["null", None, 5]],
            "changed": [{"gold": ["a", "2025-02-01 00:00:00", None], "predicted": ["a", "2025-02-01", ""]}],
            "repeated": [{"row": ["b", None, 12.0], "gold": 1, "predicted": 3}],
        },
        cause={
            "edits": [{"label": "wrong-value", "clause": "WHERE", "change": "1 → <b>2</b>"}],
            "repaired_query": "SELECT 3",
        },
    ),
    failed_case(
        "wide",
        "sql",
        side("SELECT *", WIDE, [[*range(200)]]),
        side("SELECT *", WIDE, [[*range(150), -1, *range(151, 200)]]),
        difference=NO_ROWS
        | {
            "summary": "",
            "columns": WIDE,
            "predicted_columns": WIDE,
            "counts": {"missing": 1, "extra": 1},
            "changed": [{"gold": [*range(200)], "predicted": [*range(150), -1, *range(151, 200)]}],
        },
    ),
    failed_case(
        "texts",
        "sql",
        side("SELECT 1", ["t"], [[text] for text in TEXTS]),
        side("SELECT 2", ["t"], [[LONG]]),
        difference=NO_ROWS | {"summary": "", "missing": [[text] for text in TEXTS], "extra": [[LONG]]},
    ),
    failed_case("unsure", "sql", side("SELECT 'a\\'  FROM t"), side("SELECT $$  FROM  $$ FROM t")),
    failed_case("stored", "sql", side(None, ["n"], [[4]]), side(None, ["n"], [[4]]), outcome="passed", violations=[]),
    failed_case(
        "timeout",
        "sql",
        side("SELECT 1", ["n"], [[4]]),
        side("SELECT 2", error={"kind": "timeout", "message": "more than 30 s"}),
        message="prediction failed (timeout): more than 30 s",
    ),
    failed_case(
        "error",
        "sql",
        None,
        None,
        outcome="error",
        scores={},
        violations=[],
        fingerprint=None,
        message="the source\ndoes not open",
    ),
    failed_case(
        "trials",
        "sql",
        side("SELECT 1", ["n"], [[4]]),
        side("SELECT 2", ["n"], [[4]]),
        fingerprint={
            "trials": 3,
            "options": {},
            "compare": {},
            "thresholds": {"path_f1": {"min": 0.5, "max": None}, "json_equal": {"min": None, "max": 1}},
        },
        scores={"valid_query": 1.0, "path_f1": 0.75, "json_equal": 0.0, "execution_accuracy": 0.0},
        violations=[{"metric": "execution_accuracy", "min": 1.0, "max": None, "value": 0.0}],
        trials=[
            {
                "passed": error is None,
                "scores": {"execution_accuracy": 1.0 if error is None else None},
                "violations": [],
                "predicted": {"query": "SELECT <b>2</b>", "error": error, "seconds": 0.5},
                "prediction": {"source": "model", "seconds": 1.5, "metadata": {"tokens": 7}},
            }
            for error in (None, {"kind": "invalid", "message": "no such column: b"})
        ],
    ),
    failed_case(
        "steps",
        "sql",
        side("SELECT 1", ["n"], [[4]]),
        side("SELECT 2", ["n"], [[4]]),
        prediction={
            "source": "agent",
            "seconds": 1.5,
            "metadata": {},
            "steps": [
                {"kind": "message", "name": "assistant", "output": "<b>Which</b> tables\nare there?", "seconds": 1.0},
                {"kind": "tool", "name": "list_tables", "input": {}, "output": ROWS_OF_STEP, "seconds": 0.5},
                {"kind": "query", "name": "", "input": "SELECT a FROM t", "error": "no such column: <b>a</b>"},
                {
                    "kind": "tool",
                    "name": "look",
                    "input": {"n": 2**60},
                    "output": "[1.0, {}]",
                    "metadata": {"tokens": 7},
                },
                {"kind": "tool", "name": "ping"},
            ],
        },
    ),
    failed_case(
        "members",
        "json",
        side(json.dumps(JSON_GOLD)),
        side(f"Here it is:\n```json\n{json.dumps(JSON_PREDICTED)}\n```\n"),
        difference={
            "summary": "",
            "columns": ["path", "value"],
            "predicted_columns": [],
            "counts": {"missing": 2, "extra": 2},
            "missing": [["$['it\\'s']", "null"]],
            "extra": [["$.more", '{"x": []}']],
            "changed": [{"gold": ["$.a['b c'][1]", "2"], "predicted": ["$.a['b c'][1]", "3"]}],
            "repeated": [],
        },
    ),
    failed_case(
        "no-json",
        "json",
        side('{"a": 1}'),
        side('{"a": 1', error={"kind": "invalid", "message": "not closed at line 1, column 8"}),
    ),
    failed_case(
        "selection",
        "sdmx",
        side("LAKES:FLOW\n  RIVER: OGLIO (Oglio)"),
        side("LAKES:FLOW\n  RIVER: OLGIO"),
        details={
            "dimensions": {
                "FREQ": {
                    "true_positives": [["D", "Daily"]],
                    "false_negatives": [],
                    "false_positives": [],
                    "counts": {},
                },
                "RIVER": {
                    "true_positives": [["ADDA", "Adda"]],
                    "false_negatives": [["OGLIO", "Oglio"]],
                    "false_positives": [["OLGIO", None]],
                    "counts": {"true_positives": 4, "false_negatives": 1, "false_positives": 1},
                },
            }
        },
        difference=NO_ROWS
        | {"summary": "", "missing": [["RIVER", "OGLIO", "Oglio"]], "extra": [["RIVER", "OLGIO", None]]},
    ),
    failed_case(
        "terms",
        "sparql",
        side(f"PREFIX b: <{BRICK}> SELECT ?x ?y WHERE {{ ?x a b:Room ; b:area ?y . FILTER(?y > 1) }}", ["x", "y"]),
        side("PREFIX b: <http://else.where/> SELECT ?x ?y WHERE { ?x ?p ?y }", ["x", "y"]),
        difference=NO_ROWS
        | {
            "summary": "",
            "missing": [[f"<{BRICK}Room_1>", "26.5"], ["_:b1", None]],
            "extra": [["<http://else.where/Room_1>", '"b:Room_1"'], [f"<{BRICK}a/b>", f'"5"^^<{BRICK}Kelvin>']],
        },
    ),
    failed_case(
        "regressed",
        "sql",
        side("SELECT a FROM t WHERE b > 1 AND c = 'x; FROM  y' -- why\n ORDER BY a", ["a"], [[4]]),
        side("SELECT a FROM t WHERE b > 2", ["a"], [[4]]),
    ),
    failed_case("fixed", "sql", side("SELECT 1"), side("SELECT 1"), outcome="passed", violations=[]),
    failed_case("in_error", "sql", None, None, outcome="error", message="app.py raised TimeoutError")
    | {"scores": {}, "violations": [], "prediction": None},
]
EARLIER = {
    "regressed": {"outcome": "passed", "query": "SELECT a FROM t WHERE b > 1", "error": None, "summary": ""},
    "fixed": {
        "outcome": "failed",
        "query": None,
        "error": {"kind": "invalid", "message": "no such table: u"},
        "summary": "gold 4, predicted <b>2</b>",
    },
    "in_error": {"outcome": "passed", "query": "SELECT 1", "error": None, "summary": ""},
}


@pytest.fixture(scope="module")
def opened(browser, written):
    """A function that opens one of the cases by its id."""
    nodeids = {case["id"]: case["nodeid"] for case in CASES}
    report = plain_report(*CASES)
    counts = dict.fromkeys(
        ("before", "after", "common", "added", "removed", "not_run", "skipped", "errors", "unknown"), 0
    )
    baseline = {
        "path": "main.json",
        "created": "2025-01-01",
        "cases": counts,
        "fixes": [nodeids["fixed"]],
        "regressions": [nodeids["regressed"]],
        "errors": [nodeids["in_error"]],
        "metrics": {},
        "causes": {},
        "changes": [],
        "earlier": {nodeids[id_]: earlier for id_, earlier in EARLIER.items()},
    }
    page = written("views", report | {"baseline": baseline})

    def open_case(id_):
        browser.open_case(page, nodeids[id_])
        assert browser.text("#case-title") == id_
        assert "cannot be shown" not in browser.text("#case")
        assert browser.messages() == []
        assert browser.run("return document.querySelectorAll('dialog b').length") == 0
        return browser

    return open_case


@pytest.mark.parametrize("id_", [case["id"] for case in CASES])
def test_a_case_is_shown_as_it_was(opened, id_):
    """What differs comes first, in the form of its kind: insertions as {+…+}, deletions as [-…-], NULL as ∅."""
    browser = opened(id_)

    lines = browser.run(SHOWN, *MARKS)
    browser.run("document.querySelector('#case .about-steps button')?.click()")  # which opens all of them
    browser.run("for (const details of document.querySelectorAll('#case details')) details.open = true")
    opened_lines = [line for line in browser.run(SHOWN, *MARKS) if line not in lines]
    compare_golden([*lines, "", *opened_lines], f"case/{id_}.txt")
    assert browser.run("const own = document.getElementById('case'); return own.scrollWidth - own.clientWidth") == 0


def test_empty_texts_are_seen_and_of_many_columns_all_can_be_reached(opened):
    empty = "return getComputedStyle(document.querySelector('#case td.empty'), '::before').content"
    assert opened("rows").run(empty) == '"empty text"'
    browser = opened("wide")
    assert len(browser.texts("#case [data-section=answers] .sides > div:nth-child(1) thead th")) == 200
    with browser.window(500):
        assert browser.run("const own = document.getElementById('case'); return own.scrollWidth - own.clientWidth") == 0


def test_queries_are_laid_out_on_demand_and_stay_what_they_are(browser, opened):
    opened("regressed")
    texts = "return Array.from(document.querySelectorAll('#case [data-section=queries] pre'), pre => pre.textContent)"
    before, marks = browser.run(texts), browser.texts("#case [data-section=queries] :is(del, ins)")

    browser.driver.find_element(By.CSS_SELECTOR, "#case [data-section=queries] .pretty").click()
    laid = browser.run(texts)

    assert laid[0] == "SELECT a\nFROM t\nWHERE b > 1\n  AND c = 'x; FROM  y' -- why\nORDER BY a"
    assert [text.split() for text in laid] == [text.split() for text in before]
    assert " ".join(browser.texts("#case [data-section=queries] :is(del, ins)")).split() == " ".join(marks).split()
    browser.driver.find_element(By.CSS_SELECTOR, "#case [data-section=queries] .pretty").click()
    assert browser.run(texts) == before


def test_a_query_whose_texts_dialects_read_differently_is_not_laid_out(opened):
    assert opened("terms").texts("#case [data-section=queries] .pretty") == ["Pretty"]
    assert opened("unsure").texts("#case [data-section=queries] .pretty") == []


@pytest.mark.parametrize("clipboard", ["{writeText: async text => { window.taken = text; }}", "undefined"])
def test_a_text_is_copied_as_it_is_shown_with_and_without_the_clipboard_of_the_browser(browser, opened, clipboard):
    opened("regressed")
    browser.run(f"Object.defineProperty(navigator, 'clipboard', {{value: {clipboard}, configurable: true}})")
    browser.run("document.addEventListener('copy', event => { window.taken = event.target.value; })")

    button = browser.driver.find_element(By.CSS_SELECTOR, "#case [data-section=queries] h4 button")
    button.click()
    browser.until(lambda: browser.run("return window.taken"))

    [shown] = [case for case in CASES if case["id"] == "regressed"]
    assert browser.run("return window.taken") == shown["gold"]["query"]
    assert button.get_attribute("aria-label") == "Copy the gold query"
    assert browser.run("return document.querySelectorAll('textarea').length") == 0


def test_arrows_lead_to_the_cases_beside_and_escape_back_to_the_list(browser, opened):
    opened("wide")
    assert f"of {len(CASES)}" in browser.text("#case header nav")  # the filtered list has regressions only
    browser.run("location.hash = `#show=all&${location.hash.slice(1)}`")
    browser.until(lambda: "wide" in browser.texts("#table tbody .id"))
    names = browser.texts("#table tbody .id")
    place = names.index("wide")

    def press(key, title):
        browser.driver.switch_to.active_element.send_keys(key)
        browser.until(lambda: browser.text("#case-title") == title)

    press(Keys.ARROW_LEFT, names[place - 1])
    assert f"{place} of {len(names)}" in browser.text("#case header nav")
    assert names[place - 1] in browser.fragment()
    press(Keys.ARROW_RIGHT, "wide")
    browser.run("document.querySelector('#case [data-section=answers] .scroll').focus()")
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)  # scrolls the table
    assert browser.text("#case-title") == "wide"
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.until(lambda: browser.fragment() == "#show=all")  # some time after the case is closed
    assert not browser.run("return document.getElementById('case').open")


@pytest.mark.parametrize("id_", ["rows", "trials", "steps", "members", "selection", "terms", "regressed", "timeout"])
def test_axe_finds_no_fault_in_the_case_in_light_or_dark(axe, opened, id_):
    browser = opened(id_)

    assert browser.faults(axe, "#case") == browser.low_contrasts(axe) == []
    with browser.in_the_dark():
        assert browser.low_contrasts(axe) == []


def test_a_case_without_a_gold_shows_what_does_not_hold_and_no_place_for_a_gold(browser, written):
    case = next(case for case in make_report(60)["cases"] if case["kind"] == "sql" and case["predicted"]["columns"])
    expected = [
        {"name": "rows", "expected": "2", "holds": False, "found": "the answer has 3 rows"},
        {"name": "columns", "expected": "2", "holds": True, "found": ""},
    ]
    case |= {"gold": None, "difference": None, "cause": None, "details": {"expectations": expected}}
    browser.open_case(written("without-gold", plain_report(case)), case["nodeid"])

    text = browser.run("return document.getElementById('case').innerText")

    assert "Expectations that do not hold\nrows: 2 — the answer has 3 rows" in text
    assert "Predicted query" in text
    assert "gold" not in text.lower()
