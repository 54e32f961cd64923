"""What the plugin costs those who do not use it, or not yet."""

from __future__ import annotations

import subprocess
import sys

import pytest
from singers import case

from pytest_queryeval.runs.option_table import OPTIONS  # white box: which options are settings only

RUN = """
import sys, pytest

status = pytest.main(sys.argv[1:])
print("LOADED", *sorted(name for name, module in sys.modules.items() if module is not None))
sys.exit(status)
"""


@pytest.fixture
def loaded_by(pytester):
    """Names of the modules that are loaded at the end of a run."""

    def run_python(*args):
        result = pytester.run(sys.executable, "-c", RUN, "-p", "no:hypothesispytest", *args)
        assert result.ret == 0
        (line,) = [line for line in result.outlines if line.startswith("LOADED")]
        return set(line.split()[1:])

    return run_python


def test_project_without_suites_loads_nothing_heavy(write, loaded_by):
    write("test_beside.py", "def test_beside(): pass")

    loaded = loaded_by("-q")

    assert "pytest_queryeval.plugin" in loaded
    heavy = {"yaml", "sqlglot", "rdflib", "pyoxigraph", "SPARQLWrapper", "torch", "sqlite3"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    ours = {name for name in loaded if name.startswith("pytest_queryeval.")}
    options = {"pytest_queryeval.runs", "pytest_queryeval.runs.option_table"}
    assert {name for name in ours if not name.startswith("pytest_queryeval.plugin")} == options


IMPORTED = """
import sys, pytest

finders = [*sys.meta_path]
pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
is_rewritten = lambda module: type(getattr(module, "__loader__", None)).__name__ == "AssertionRewritingHook"
print("REWRITTEN", *sorted(name for name, module in sys.modules.items() if is_rewritten(module)))
print("FINDERS", "restored" if finders == sys.meta_path else sys.meta_path)
"""


@pytest.mark.parametrize("option", ["--assert=rewrite", "--assert=plain"])
def test_of_asserts_only_those_of_the_user_are_rewritten(suite, write, pytester, monkeypatch, option):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    write("test_beside.py", "def test_beside(): pass")
    write("pytest_queryeval_more.py", "import pytest")
    conftest = "import pytest\npytest.register_assert_rewrite('pytest_queryeval_more')\nimport pytest_queryeval_more\n"
    write("conftest.py", conftest)
    suite(case("one"))

    lines = pytester.run(sys.executable, "-c", IMPORTED, option).outlines

    (rewritten,) = [{*line.split()[1:]} for line in lines if line.startswith("REWRITTEN")]
    assert "FINDERS restored" in lines
    assert "2 passed" in "".join(lines)
    if option == "--assert=plain":
        assert rewritten == set()
    else:
        assert rewritten >= {"conftest", "test_beside", "pytest_queryeval_more"}
        ours = {name for name in rewritten if name.startswith("pytest_queryeval.")}
        assert ours <= {f"pytest_queryeval.plugin{name}" for name in ("", ".stash", ".imports")}


@pytest.mark.parametrize("option", ["--queryeval-zzz", "--queryeval-limit=none", "-p no:terminal --zzz"])
def test_a_run_that_does_not_start_leaves_no_finder_of_modules(suite, pytester, option):
    suite(case("one"))

    lines = pytester.run(sys.executable, "-c", IMPORTED, *option.split()).outlines

    assert "FINDERS restored" in lines


def test_help_names_every_option_and_every_setting():
    result = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)

    for option in OPTIONS:
        value = option.metavar or "|".join(option.choices)
        usage = f"--queryeval-{option.flag}={value}" if value else f"--queryeval-{option.flag}\n"
        assert (usage in result.stdout) != option.is_setting_only
        assert (f"queryeval_{option.name} (" in result.stdout) == bool(option.setting)
