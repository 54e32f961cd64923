"""A real Chromium that opens reports, where Debian's packages chromium and chromium-driver are installed."""

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote

import pytest
from report_maker import make_report
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from pytest_queryeval.reports.html import render_html

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
SECONDS = 60  # until a page has to be ready, on a machine that does much else
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
IS_READY = "return performance.getEntriesByName('queryeval-ready').map(mark => mark.startTime)"
RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(found => done(found.violations));
"""


class Browser:
    """A Chromium with a page in it; `milliseconds` is how long the last page took until it could be used."""

    def __init__(self, driver):
        self.driver = driver
        self.milliseconds = 0.0

    def open(self, path, fragment=""):
        self.driver.get("about:blank")  # else only the fragment would change
        self.driver.get(f"{path.as_uri()}{fragment}")
        (self.milliseconds,) = self.until(lambda: self.run(IS_READY))
        return self

    def open_case(self, path, nodeid):
        self.open(path, f"#case={quote(nodeid, safe='')}")
        self.until(lambda: self.run("return document.getElementById('case').open"))
        return self

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, condition):
        return WebDriverWait(self.driver, SECONDS).until(lambda _: condition())

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText", selector)

    def texts(self, selector):
        return self.run("return Array.from(document.querySelectorAll(arguments[0]), e => e.innerText)", selector)

    def fragment(self):
        return self.run("return location.hash")

    def messages(self):
        """What the console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that pages asked for since the last call, but for the files that they are."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith(("file:", "data:", "about:", "chrome:", "chrome-untrusted:"))]

    def faults(self, axe):
        """What axe-core finds of serious and critical faults."""
        self.run(axe)
        found = self.driver.execute_async_script(RUN_AXE)
        return [
            (fault["id"], fault["nodes"][0]["html"]) for fault in found if fault["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="session", params=["light", "dark"])
def browser(request, tmp_path_factory):
    """A browser in light colours, then one in dark ones."""
    if not CHROMIUM or not DRIVER:
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    if request.param == "dark":
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(SECONDS)
    yield Browser(driver)
    driver.quit()


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
def large_page(written):
    return written("large", make_report(10_000))


@pytest.fixture(scope="session")
def hostile():
    return make_report(36, hostile=True)


@pytest.fixture(scope="session")
def hostile_page(written, hostile):
    return written("hostile", hostile)


@pytest.fixture(scope="session")
def example_page(written, tmp_path_factory):
    """The page of the example suite."""
    root = Path(__file__).parents[2]
    target = tmp_path_factory.mktemp("example") / "report.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "example_suite"]
    subprocess.run([*command, f"--queryeval-report={target}"], cwd=root, check=False, capture_output=True, timeout=300)
    return written("example", json.loads(target.read_bytes()))


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, which npm fetches."""
    folder = tmp_path_factory.mktemp("axe")
    command = [shutil.which("npm") or "npm", "pack", "axe-core@4", "--silent"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"npm does not fetch axe-core: {error}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()
