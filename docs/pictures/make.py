"""Makes the pictures of the documentation from the example suite and a shop's: `python docs/pictures/make.py`.

Needs the project's extra `test`, Debian's chromium, chromium-driver and libreoffice-calc, and
`pip install pillow pypdfium2`. Without LibreOffice the picture of the workbook stays as it is.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import golds
import orders
import pypdfium2
from PIL import Image, ImageChops
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "example_suite"
WIDTH = 1000  # of a picture, in pixels, where nothing else is said
WIDE = 1400
COLOURS = 160
SECONDS = 180  # until a program has to be done
CASE = "sql/trips.queryeval.yaml::income-per-plan"
IS_READY = "return performance.getEntriesByName('queryeval-ready').length"
IS_SHOWN = "return document.querySelector('.answer') && !document.body.innerText.includes('running …')"
IS_OPEN = "return !arguments[0] || document.getElementById('case').open"
SHEET_SCALE = 1.5  # of a printed sheet whose page would be as wide as the picture
SHEET_HEIGHT = 700  # of the picture of a sheet, in pixels
TOP_OF = "return document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY"
# A system that changed for the worse, but for one question: it knows the answers of the one before.
NEW_MODEL = """
import text_to_sql


def answer(case):
    query = text_to_sql.answer(case)
    return query.replace("count(*)", "count(*) - 1").replace("WHERE plan IS NOT NULL GROUP", "GROUP")
"""
# How many questions each release of the shop's system does not answer, next to those that the older system got wrong.
RELEASES = (40, 36, 33, 30, 31, 22, 20, 16, 14, 12, 44, 46)
EDITED = 5  # before this release the suite was changed
FIRST_RELEASE = datetime(2025, 3, 3, 9, 30, tzinfo=UTC)
GATES = """
  - {no_regression: {metric: execution_accuracy}}
  - {max_regressions: 2}
"""


def run(folder: Path, *command: str) -> str:
    """Return what a program prints, whatever its exit status is, on a terminal of 100 columns."""
    known = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(  # noqa: S603 - programs and arguments are those of this file
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=SECONDS, env=known
    )
    return done.stdout


def pytest(folder: Path, *arguments: str) -> str:
    """Return what pytest prints."""
    return run(folder, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments)


def save(name: str, picture: Image.Image) -> None:
    """Write a picture with few colours, those of small dots among them, so that it stays small."""
    small = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(HERE / f"{name}.png", optimize=True)


class Browser:
    """A Chromium of which pictures are taken, in light or dark colours."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver

    def _resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def review(self, url: str, *, height: int, width: int) -> Browser:
        """Open the page of a review by its address, with the first answer marked as right."""
        self._resize(width, height)
        self._driver.get(url)
        self._driver.execute_script("localStorage.setItem('queryeval-review-name', 'anna')")
        self._driver.get(url)
        wait = WebDriverWait(self._driver, SECONDS)
        wait.until(lambda driver: driver.execute_script(IS_SHOWN))
        self._driver.switch_to.active_element.send_keys("1")
        self._driver.execute_script("scrollTo(0, 0)")
        return self

    def open(self, page: Path, *, height: int, width: int = WIDTH, fragment: str = "") -> Browser:
        """Open a report in a window that shows this number of pixels of it."""
        self._resize(width, height)
        self._driver.get("about:blank")  # else only the fragment would change
        self._driver.get(f"{page.as_uri()}{fragment}")
        wait = WebDriverWait(self._driver, SECONDS)
        wait.until(lambda driver: driver.execute_script(IS_READY))
        wait.until(lambda driver: driver.execute_script(IS_OPEN, fragment))
        return self

    def at(self, selector: str) -> Browser:
        """Scroll until an element is at the top."""
        self._driver.execute_script("scrollTo(0, arguments[0] - 64)", self._driver.execute_script(TOP_OF, selector))
        return self

    def save(self, name: str) -> None:
        """Write what the window shows."""
        save(name, Image.open(io.BytesIO(self._driver.get_screenshot_as_png())))


@contextmanager
def browser(folder: Path, *, dark: bool = False) -> Iterator[Browser]:
    """Yield a Chromium until the block ends; its profile is in the folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={folder / f'profile-{dark}'}")
    options.add_argument(f"--blink-settings=preferredColorScheme={0 if dark else 1}")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def draw_pages(folder: Path) -> None:
    """Draw the page of the shop and of its history, a case of the example, its comparisons with others."""
    page, case = folder / "reports/report.html", f"#case={quote(CASE, safe='')}"
    shop = folder / "shop.html"
    with browser(folder) as light:
        light.open(shop, height=900, width=WIDE).save("report")
        light.open(shop, height=900, width=WIDE).at("#charts").save("charts")
        light.open(page, height=960, fragment=case).save("case-light")
        light.open(folder / "compared.html", height=760).save("baseline")
        light.open(folder / "systems.html", height=700).save("compare")
        light.open(folder / "history.html", height=960, width=WIDE).save("history")
    with browser(folder, dark=True) as dark:
        dark.open(page, height=960, fragment=case).save("case-dark")


def draw_review(folder: Path) -> None:
    """Draw the page on which golds are reviewed."""
    golds.write(folder / "golds")
    for system in golds.SYSTEMS:
        options = (f"--queryeval-predictor=golds/{system}.jsonl", f"--queryeval-name={system}", "-q", "--tb=no")
        pytest(folder, "golds", *options, f"--queryeval-report={system}.json")
    reports = [f"{system}.json" for system in golds.SYSTEMS]
    command = [sys.executable, "-m", "pytest_queryeval", "review", "golds", *reports, "--serve"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603 - as above
        assert server.stderr is not None
        url = next(match[0] for line in server.stderr if (match := re.search(r"http://\S+", line)))
        with browser(folder) as light:
            light.review(url, height=900, width=WIDE).save("review")
        server.terminate()


def draw_workbook(folder: Path) -> None:
    """Draw the upper left of the workbook's first sheet, as LibreOffice prints it."""
    if not shutil.which("soffice"):
        return
    profile = f"-env:UserInstallation={(folder / 'office').as_uri()}"
    run(folder, "soffice", profile, "--headless", "--convert-to", "pdf", "reports/report.xlsx")
    page = pypdfium2.PdfDocument(folder / "report.pdf")[0]
    printed = page.render(scale=SHEET_SCALE * WIDTH / page.get_width()).to_pil().convert("RGB")
    left, top, *_ = ImageChops.invert(printed).getbbox() or (0, 0)
    left, top = left - 16, top - 16
    save("workbook", printed.crop((left, top, left + WIDTH, top + SHEET_HEIGHT)))


def compare_models(folder: Path) -> None:
    """Run the SQL suite with the old model and with the new one, and compare both."""
    suite = folder / "queries"
    others = shutil.ignore_patterns("__pycache__", "repairs*", "riders*", "texts*")
    shutil.copytree(EXAMPLE / "sql", suite, ignore=others)
    shutil.copy(EXAMPLE / "conftest.py", suite)
    (suite / "new_model.py").write_text(NEW_MODEL, encoding="utf-8")
    settings = suite / "queryeval.yaml"
    gates = settings.read_text(encoding="utf-8").replace("  - {metric: in_scope, min: 0.7}\n", "")  # of the riders
    settings.write_text(gates.rstrip() + GATES, encoding="utf-8")
    pytest(folder, "queries", "--queryeval-report=baseline.json", "--queryeval-name=old model")
    new = "--queryeval-predictor=queries/new_model.py:answer"
    pytest(folder, "queries", "--queryeval-report=new.json", "--queryeval-name=new model", new)
    run(folder, "queryeval", "compare", "baseline.json", "new.json", "-o", "systems.html")
    told = ("--queryeval-report=compared.html", "--queryeval-baseline=baseline.json")
    pytest(folder, "queries", new, *told)


def compare_shops(folder: Path) -> None:
    """Run the suite of a shop with the answers of an older system and of a newer one."""
    orders.write(folder / "shop")
    options = ("shop", "-q", "--tb=no")
    name = "--queryeval-name=orders-assistant"
    pytest(folder, *options, "--queryeval-predictor=shop/old.jsonl", f"{name} 1.4", "--queryeval-report=main.json")
    newer = ("--queryeval-predictor=shop/new.jsonl", f"{name} 1.5", "--queryeval-baseline=main.json")
    pytest(folder, *options, *newer, "--queryeval-report=shop.html")


def release_shops(folder: Path) -> None:
    """Run the suite of a shop for each release of its system, one a week, and make the page of their history."""
    suite, releases = folder / "releases", folder / "released"
    orders.write(suite)
    answers = [json.loads(line) for line in (suite / "old.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, unanswered in enumerate(RELEASES):
        if number == EDITED:
            settings = suite / "queryeval.yaml"
            settings.write_text(f"{settings.read_text(encoding='utf-8')}timeout: 20\n", encoding="utf-8")
        lines = [
            json.dumps(answer | ({"predicted": "SELECT 0"} if place * 37 % len(answers) < unanswered else {}))
            for place, answer in enumerate(answers)
        ]
        (suite / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")
        target = releases / f"{number}.json"
        options = ("--queryeval-predictor=releases/answers.jsonl", f"--queryeval-name=orders-assistant 1.{number}")
        pytest(folder, "releases", "-q", "--tb=no", *options, f"--queryeval-report={target}")
        report = json.loads(target.read_bytes()) | {"created": (FIRST_RELEASE + timedelta(weeks=number)).isoformat()}
        target.write_text(json.dumps(report), encoding="utf-8")
    run(folder, "queryeval", "history", str(releases), "-o", "history.html")


def main() -> None:
    """Make all pictures anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pytest(EXAMPLE.parent, "example_suite", f"--queryeval-report={folder / 'reports'}")
        compare_models(folder)
        compare_shops(folder)
        release_shops(folder)
        draw_pages(folder)
        draw_review(folder)
        draw_workbook(folder)


if __name__ == "__main__":
    main()
