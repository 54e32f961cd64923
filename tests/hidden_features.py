"""The tests of the core where features are hidden: `pytest --without=NAME,…`, or `--without=all`.

A hidden feature cannot be imported, here and in programs that tests start. Its own tests are left out, and so are
modules that import it or are marked by its name, and tests that are, `@pytest.mark.feature("json")`.
"""

import os
import re
import sys
from pathlib import Path

import pytest

import pytest_queryeval.features

HERE = Path(__file__).parent
HIDING = HERE / "without"  # its sitecustomize hides features in programs
VARIABLE = "QUERYEVAL_TESTS_WITHOUT"
FEATURES = frozenset(
    path.name for path in Path(pytest_queryeval.features.__file__).parent.iterdir() if (path / "__init__.py").exists()
)
_IMPORTED = re.compile(r"pytest_queryeval\.features\.(\w+)")
_MARKS = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.feature\(([^)]*)\)", re.MULTILINE)  # of a whole module


def pytest_addoption(parser):
    parser.addoption(
        "--without", default="", metavar="NAME,…", help="hide these features, or all, and leave out their tests"
    )


def pytest_configure(config):
    names = config.getoption("--without")
    hidden = FEATURES if names == "all" else frozenset(filter(None, names.split(",")))
    if unknown := hidden - FEATURES:
        raise pytest.UsageError(f"--without: no feature is called {' or '.join(sorted(unknown))}")
    config.hidden_features = hidden
    if hidden:
        sys.modules.update(dict.fromkeys(f"pytest_queryeval.features.{name}" for name in hidden))
        os.environ[VARIABLE] = " ".join(hidden)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HIDING), os.environ.get("PYTHONPATH")]))


def pytest_ignore_collect(collection_path, config):
    hidden = config.hidden_features
    if not hidden:
        return None
    if collection_path.is_dir():
        return (collection_path.parent == HERE / "features" and collection_path.name in hidden) or None
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    marked = re.findall(r'"(\w+)"', "".join(_MARKS.findall(text)))
    return bool(hidden & {*_IMPORTED.findall(text), *marked}) or None


def pytest_runtest_setup(item):
    needed = {name for mark in item.iter_markers("feature") for name in mark.args}
    if missing := needed & item.config.hidden_features:
        pytest.skip(f"without {', '.join(sorted(missing))}")
