"""What the plugin costs those who do not use it, or not yet."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from runpy import run_path

import pytest
from singers import case

DOCS = Path(__file__).parents[2] / "docs"
RUN = """
import sys, pytest

finders = [*sys.meta_path]
status = pytest.main(["-p", "no:hypothesispytest", "-p", "no:cacheprovider", *sys.argv[1:]])
loaded = {name: module for name, module in sys.modules.items() if module is not None}
is_rewritten = lambda module: type(getattr(module, "__loader__", None)).__name__ == "AssertionRewritingHook"
print("LOADED", *sorted(loaded))
print("REWRITTEN", *sorted(name for name, module in loaded.items() if is_rewritten(module)))
print("FINDERS", "restored" if finders == sys.meta_path else sys.meta_path)
print("STATUS", int(status))
"""


@pytest.fixture
def modules_of(pytester):
    """Names of the modules that are loaded, and rewritten, at the end of a run, by the words before them."""

    def run_python(*args):
        lines = pytester.run(sys.executable, "-c", RUN, *args).outlines[-4:]
        found = {line.partition(" ")[0]: set(line.split()[1:]) for line in lines}
        assert found["FINDERS"] == {"restored"}
        return found

    return run_python


def test_project_without_suites_loads_nothing_heavy(write, modules_of):
    write("test_beside.py", "def test_beside(): pass")

    found = modules_of("-q")

    assert found["STATUS"] == {"0"}
    assert "pytest_queryeval.plugin" in found["LOADED"]
    heavy = {"yaml", "sqlglot", "rdflib", "pyoxigraph", "SPARQLWrapper", "torch", "sqlite3"}
    assert not heavy & {name.partition(".")[0] for name in found["LOADED"]}
    ours = {name for name in found["LOADED"] if name.startswith("pytest_queryeval.")}
    options = {"pytest_queryeval.runs", "pytest_queryeval.runs.option_table"}
    assert {name for name in ours if not name.startswith("pytest_queryeval.plugin")} == options


@pytest.mark.feature("json")
def test_a_json_suite_without_schema_and_semantic_metrics_loads_no_library_of_theirs(write, modules_of):
    write("a.queryeval.yaml", "kind: json\nthresholds: {}\ncases: [{id: a, gold: {a: sea}, predicted: {a: seaside}}]")

    found = modules_of("-q")

    assert found["STATUS"] == {"0"}
    assert not {"torch", "sentence_transformers", "numpy", "jsonschema", "sdmx"} & found["LOADED"]


def test_a_run_without_json_answers_loads_no_library_for_them(suite, modules_of):
    suite(case("one"))

    found = modules_of()

    assert found["STATUS"] == {"0"}
    assert not {"jsonpath", "jsonschema"} & found["LOADED"]


@pytest.mark.parametrize("option", ["--assert=rewrite", "--assert=plain"])
def test_of_asserts_only_those_of_the_user_are_rewritten(suite, write, modules_of, monkeypatch, option):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    write("test_beside.py", "def test_beside(): pass")
    write("pytest_queryeval_more.py", "import pytest")
    conftest = "import pytest\npytest.register_assert_rewrite('pytest_queryeval_more')\nimport pytest_queryeval_more\n"
    write("conftest.py", conftest)
    suite(case("one"))

    found = modules_of("-q", option)

    assert found["STATUS"] == {"0"}
    if option == "--assert=plain":
        assert found["REWRITTEN"] == set()
    else:
        assert found["REWRITTEN"] >= {"conftest", "test_beside", "pytest_queryeval_more"}
        ours = {name for name in found["REWRITTEN"] if name.startswith("pytest_queryeval.")}
        assert ours <= {f"pytest_queryeval.plugin{name}" for name in ("", ".stash", ".imports")}


@pytest.mark.parametrize("option", ["--queryeval-zzz", "--queryeval-limit=none", "-p no:terminal --zzz"])
def test_a_run_that_does_not_start_leaves_no_finder_of_modules(suite, modules_of, option):
    suite(case("one"))

    assert modules_of(*option.split())["STATUS"] == {"4"}


def test_help_names_every_option_and_every_setting(pytester):
    pages = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md") if path.parent.name != "generated"]
    docs = "".join([*pages, run_path(str(DOCS / "reference.py"))["options"]()])
    help_ = pytester.runpytest_inprocess("--help").stdout.str()

    for form in (r"--queryeval-[a-z-]+[a-z]", r"^ *queryeval_[a-z_]+(?= \()"):
        named = {name.strip() for name in re.findall(form, help_, re.M)}
        assert len(named) > 8
        assert [name for name in named if name not in docs] == []
    assert set(re.findall(r"--queryeval-[a-z-]+[a-z]", docs)) <= set(re.findall(r"--queryeval-[a-z-]+[a-z]", help_))
