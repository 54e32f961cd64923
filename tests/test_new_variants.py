"""The `variants` of a source written into its file, and every other character of it as it was."""

from pathlib import Path

import pytest
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import CaseError, Location
from pytest_queryeval.core.model import Source
from pytest_queryeval.suites.new_variants import with_variants

PATTERN = "variants/shop-*.sql"


def edited(text, *, line=1, name="shop.db", path="a.queryeval.yaml", engine="sqlite"):
    source = Source(name=name, engine=engine, settings={}, folder=Path(), location=Location(Path(path), line))
    return with_variants(text, source, PATTERN)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("source: shop.db   # ours\n", 'source: {sqlite: shop.db, variants: "P"}   # ours\n'),
        ("source: 'a: b.db'", "source: {sqlite: 'a: b.db', variants: \"P\"}"),
        ("source: {sqlite: shop.db } # c\n", 'source: {sqlite: shop.db, variants: "P" } # c\n'),
        ("source: {sqlite: {script: a.sql}}\n", 'source: {sqlite: {script: a.sql}, variants: "P"}\n'),
        ("source: {sqlite: a.db, variants: 'old/*'} # c\n", 'source: {sqlite: a.db, variants: "P"} # c\n'),
        (
            "source: {sqlite: {path: a.db, variants: old}}\n",
            'source: {sqlite: {path: a.db, variants: "P"}}\n',
        ),
        (
            "source:\n  sqlite: shop.db # c\n\n# d\nkind: sql\n",
            'source:\n  sqlite: shop.db # c\n  variants: "P"\n\n# d\nkind: sql\n',
        ),
        (
            "source:\n    sqlite:\n        script: a.sql\ncases: []\n",
            'source:\n    sqlite:\n        script: a.sql\n    variants: "P"\ncases: []\n',
        ),
        ("source:\n  sqlite: a.db", 'source:\n  sqlite: a.db\n  variants: "P"'),
        ("source:\r\n  sqlite: a.db\r\nkind: sql\r\n", 'source:\r\n  sqlite: a.db\r\n  variants: "P"\r\nkind: sql\r\n'),
        (
            "source:\n  sqlite: a.db\n  variants: old # c\n",
            'source:\n  sqlite: a.db\n  variants: "P" # c\n',
        ),
        ("\ufeffsource: a.db\n", '\ufeffsource: {sqlite: a.db, variants: "P"}\n'),
        ('{"source": "a.db", "cases": []}\n', '{"source": {"sqlite": "a.db", "variants": "P"}, "cases": []}\n'),
        ('{"source": {"sqlite": "a.db"}}\n', '{"source": {"sqlite": "a.db", "variants": "P"}}\n'),
    ],
)
def test_only_the_variants_of_the_source_change(before, after):
    assert edited(before) == after.replace('"P"', f'"{PATTERN}"')


def test_a_named_source_is_changed_where_it_is_named():
    text = "sources:\n  shop: shop.db\n  other: {sqlite: b.db}\ncases:\n- {id: a, source: shop}\n"

    found = edited(text, line=2, name="shop")

    assert found == text.replace("shop: shop.db", f'shop: {{sqlite: shop.db, variants: "{PATTERN}"}}')


def test_a_source_of_duckdb_keeps_its_engine():
    assert (
        edited("source: shop.duckdb\n", engine="duckdb") == f'source: {{duckdb: shop.duckdb, variants: "{PATTERN}"}}\n'
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &s shop.db\nsource: *s\n", 2),  # written elsewhere
        ("source: &s {sqlite: a.db}\ncases: [{source: *s}]\n", 1),  # more than this source would change
        ("{source: a.db, metadata: {source: b}}\n", 1),  # which one?
        ("source: |\n  a.db\n", 1),
        ("source: a[1].db\n", 1),  # brackets mean something within braces
        ("kind: sql\n", 1),
    ],
)
def test_where_no_such_edit_is_possible_the_line_to_add_is_said(text, line):
    with pytest.raises(CaseError, match=rf"a.queryeval.yaml:{line}: .* add variants: \"variants/shop-\*.sql\""):
        edited(text, line=line)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("shop.sql").write_text("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (40);", encoding="utf-8")
    write("# ours\nsource: {sqlite: {script: shop.sql}}  # the shop\n", "queryeval.yaml")
    return write("kind: sql\ncases:\n  - {id: many, gold: SELECT a FROM t WHERE a > 30}\n")


def test_the_command_writes_variants_into_the_file_that_states_the_source(shop, capsys):
    assert main(["strengthen", ".", "-o", "variants", "--write"]) == 0

    assert "add to the source" not in capsys.readouterr().out
    text = '# ours\nsource: {sqlite: {script: shop.sql}, variants: "variants/shop-*.sql"}  # the shop\n'
    assert Path("queryeval.yaml").read_text() == text
    assert main(["strength", "."]) == 0


def test_a_source_that_cannot_be_changed_is_a_problem_after_its_variants_are_written(shop, capsys):
    # The other name would have variants, too.
    text = "sources:\n  shop: &shop {sqlite: {script: shop.sql}}\n  other: *shop\n"
    write(text, "queryeval.yaml")
    write("kind: sql\nsource: shop\ncases:\n  - {id: many, gold: SELECT a FROM t WHERE a > 30}\n")

    assert main(["strengthen", ".", "-o", "variants", "--write"]) == 1

    problem = 'queryeval.yaml:2: the source cannot be changed where it stands: add variants: "variants/shop-*.sql"'
    assert problem in capsys.readouterr().out
    assert Path("queryeval.yaml").read_text() == text
    assert list(Path("variants").iterdir())
