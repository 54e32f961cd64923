"""Reports' pages in a real Chromium."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from browser.chromium import MISSING, started
from report_maker import make_compared, make_report

from pytest_queryeval.features.page import render_html

AXE, AXE_VERSION = "selenium-axe-python", "2.2.0"  # carries axe-core 4.9.1


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if MISSING:
        pytest.skip(MISSING)
    with started(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A function that writes a report's page and gives its path."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name, report):
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_bytes(render_html(report))
        return path

    return write


@pytest.fixture(scope="session")
def small():
    return make_report(120)


@pytest.fixture(scope="session")
def small_page(written, small):
    return written("small", small)


@pytest.fixture(scope="session")
def large():
    return make_report(3_000)


@pytest.fixture(scope="session")
def large_page(written, large):
    return written("large", large)


@pytest.fixture(scope="session")
def compared_page(written):
    """The page of a run with a baseline."""
    return written("compared", make_compared(60))


@pytest.fixture(scope="session")
def hostile():
    return make_report(36, hostile=True)


@pytest.fixture(scope="session")
def hostile_page(written, hostile):
    return written("hostile", hostile)


@pytest.fixture(scope="session")
def example_page(written, tmp_path_factory):
    """The page of the example suite, but for what loads a model."""
    root = Path(__file__).parents[2]
    target = tmp_path_factory.mktemp("example") / "report.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "example_suite"]
    command += ["--ignore=example_suite/json/semantic", "--ignore=example_suite/predictors"]
    subprocess.run([*command, f"--queryeval-report={target}"], cwd=root, check=False, capture_output=True, timeout=300)
    return written("example", json.loads(target.read_bytes()))


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, of one version, since each finds other faults."""
    try:
        axe = distribution(AXE)
    except PackageNotFoundError:
        pytest.skip(f"axe-core is not installed: pip install {AXE}=={AXE_VERSION}")
    assert axe.version == AXE_VERSION
    return axe.locate_file("selenium_axe_python/axe-core/axe.min.js").read_text(encoding="utf-8")
