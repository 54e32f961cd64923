"""Long queries, cells, lists and structs that differ in one place: every surface shows this place."""

import json
import re
from random import Random

import pytest
from golden_files import page_lines, workbook_lines

pytestmark = [pytest.mark.process, pytest.mark.feature("duckdb", "excel", "page")]

FORMS = ("query", "cell", "rows", "list", "shorter", "struct", "json")
EVERYWHERE = ("terminal", "junit.xml", "report.json", "report.html", "report.xlsx")
IN_BRIEF = ("message", "report.md")  # without queries, and without rows that are not paired
SURFACES = dict.fromkeys(FORMS, EVERYWHERE + IN_BRIEF) | {"query": EVERYWHERE, "rows": EVERYWHERE}


def case(form, number):
    """A case, and the words of gold and of predicted that differ."""
    random = Random(number)
    words = [f"w{random.randrange(10**6)}" for _ in range(random.choice([60, 200, 900, 5000]))]
    at = random.randrange(len(words))
    gold, predicted = f"Bach{number}", f"Mast{number}"
    sides = [[*words[:at], word, *words[at + 1 :]] for word in (gold, predicted)]
    if form == "shorter":
        sides[1] = [*words[:at], *words[at + 1 :]]
        predicted = ""
    blank = random.choice([" ", "\n", "\n\n  "])

    def query(side):
        texts = f"'{' '.join(side)}'"
        elements = f"[{', '.join(repr(word) for word in side)}]"
        return {
            "query": f"SELECT count(*) FROM (SELECT 'Ba' || 'ch{number}' AS a) WHERE a IN\n"
            f"({f',{blank}'.join(repr(word) for word in side)})",
            "cell": f"SELECT 1 AS id, {texts} AS a",
            "rows": f"SELECT {texts} AS a UNION ALL SELECT 'x' || {texts}",
            "list": f"SELECT 1 AS id, {elements} AS a",
            "shorter": f"SELECT 1 AS id, {elements} AS a",
            "struct": f"SELECT 1 AS id, {{'k': 'v', 's': {texts}}} AS a",
            "json": f"SELECT 1 AS id, '{json.dumps({'k': [1, {'s': ' '.join(side)}]})}' AS a",
        }[form]

    entry = {"id": f"{form}-{number}", "gold": query(sides[0]), "predicted": query(sides[1])}
    return entry, [word for word in (gold, predicted) if word]


@pytest.fixture(scope="module")
def shown(shared_pytester):
    """The words of each case, and what each surface shows of it."""
    folder = shared_pytester.path
    words, cases = {}, []
    for number in range(len(FORMS) * 6):
        entry, differing = case(FORMS[number % len(FORMS)], number)
        words[entry["id"]] = differing
        cases.append(entry)
    suite = {"kind": "sql", "source": {"duckdb": {"script": "t.sql"}}, "cases": cases}
    (folder / "t.sql").write_text("")
    (folder / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    lines = shared_pytester.runpytest_inprocess("--queryeval-report=out/", "--queryeval-cause=off").outlines
    reports = folder / "out"
    _, *parts = re.split(r"^_{2,} (\S+) _{2,}$", "\n".join(lines), flags=re.MULTILINE)
    report = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    texts = {
        "terminal": dict(zip(parts[::2], parts[1::2], strict=True)),
        "message": {of["id"]: of["message"] for of in report["cases"]},
        "report.json": {of["id"]: json.dumps(of) for of in report["cases"]},
        "report.html": dict.fromkeys(words, "\n".join(page_lines(reports / "report.html"))),
        "report.xlsx": dict.fromkeys(words, "\n".join(workbook_lines(reports / "report.xlsx"))),
    }
    for name in ("junit.xml", "report.md"):
        texts[name] = dict.fromkeys(words, (reports / name).read_text(encoding="utf-8"))
    return words, texts


@pytest.mark.parametrize("surface", EVERYWHERE + IN_BRIEF)
def test_what_differs_is_shown(shown, surface):
    words, texts = shown
    hidden = {
        name: word
        for name, differing in words.items()
        for word in differing
        if surface in SURFACES[name.partition("-")[0]] and not re.search(rf"{word}\b", texts[surface][name])
    }
    assert hidden == {}
