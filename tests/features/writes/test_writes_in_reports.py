"""What cases that change data look like in report.json, in the page, and in `queryeval explain`."""

import json

import pytest

from pytest_queryeval.cli import main

pytestmark = [pytest.mark.process, pytest.mark.feature("page", "review")]

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
INSERT INTO customer VALUES (1, 'Ann', 'Graz'), (2, 'Bob', 'Wien');
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer (id), total REAL);
INSERT INTO orders VALUES (1, 1, 9.5), (2, 2, 7.25);
CREATE TABLE log (what TEXT);
"""
SUITE = """
kind: sql
source: {sqlite: {script: shop.sql}}
writes: true
cases:
  - id: move
    question: Ann moves to Linz.
    gold: |
      UPDATE customer SET city = 'Linz' WHERE id = 1;
      INSERT INTO log VALUES ('Ann moved')
    predicted: |
      UPDATE customer SET city = 'Lienz' WHERE id = 1;
      DELETE FROM orders WHERE id = 2
"""
COLUMNS = ["table", "change", "id", "name", "city", "what", "customer", "total"]
BY_COLUMN = "city of customer differs in 1 of 1 row: Linz → Lienz (id 1)"
SUMMARY = f"{BY_COLUMN}; log: 1 row not added; orders: 1 row removed"
MISSING = [
    ["log", "not added", None, None, None, "Ann moved", None, None],
    ["orders", "removed", 2, None, None, None, 2, 7.25],
]
CHANGED = {
    "gold": ["customer", "changed", 1, "Ann", "Linz", None, None, None],
    "predicted": ["customer", "changed", 1, "Ann", "Lienz", None, None, None],
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The folder of a suite with the reports of a run in it."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.sql").write_text(SHOP, encoding="utf-8")
    (folder / "s.queryeval.yaml").write_text(SUITE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["evaluate", "s.queryeval.yaml", "--report=report.json"]) == 1
    return folder


def test_report_json_has_the_changes_and_how_they_differ(reports):
    (case,) = json.loads((reports / "report.json").read_text(encoding="utf-8"))["cases"]

    assert case["gold"]["columns"] == ["table", "change", "id", "name", "city", "what"]
    assert case["predicted"]["sample"][-1] == ["orders", "removed", 2, None, None, 2, 7.25]
    difference = case["difference"]
    assert (difference["summary"], difference["columns"]) == (SUMMARY, COLUMNS)
    assert (difference["missing"], difference["extra"], difference["changed"]) == (MISSING, [], [CHANGED])
    assert case["cause"] is None
    assert case["message"].startswith(SUMMARY)


def test_explain_tells_the_difference_below_the_names_of_all_columns(reports, capsys, monkeypatch):
    monkeypatch.chdir(reports)
    monkeypatch.setenv("COLUMNS", "120")

    assert main(["explain", "s.queryeval.yaml::move", "--report=report.json"]) == 1

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    at = lines.index(SUMMARY)
    assert lines[at + 1 : at + 7] == [
        BY_COLUMN,
        "table change id name city what customer total",
        "missing log not added NULL NULL NULL Ann moved NULL NULL",
        "missing orders removed 2 NULL NULL NULL 2 7.25",
        "gold customer changed 1 Ann Linz NULL NULL NULL",
        "instead customer changed 1 Ann Lienz NULL NULL NULL",
    ]
