"""A Chromium that opens reports, where Debian's packages chromium and chromium-driver are installed."""

import json
import shutil
from contextlib import contextmanager
from urllib.parse import quote

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
MISSING = "" if CHROMIUM and DRIVER else "chromium and chromium-driver are not installed"
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
    "--blink-settings=preferredColorScheme=1",
)
IS_READY = "return performance.getEntriesByName('queryeval-ready').map(mark => mark.startTime)"
# Marks one element of each look: elements with the same colours, on the same ground, have the same contrast.
MARK_LOOKS = """
const seen = new Set();
const shown = document.querySelector("dialog[open]") ?? document.body;
for (const element of document.querySelectorAll("[data-look]")) element.removeAttribute("data-look");
for (const element of shown.querySelectorAll("*")) {
  if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
  if (!element.checkVisibility() || element.closest("svg, script, style")) continue;
  const {color, fontSize, fontWeight} = getComputedStyle(element), look = [color, fontSize, fontWeight];
  for (let around = element; around; around = around.parentElement) {
    const {backgroundColor, opacity} = getComputedStyle(around);
    look.push(opacity);
    if (backgroundColor !== "rgba(0, 0, 0, 0)") look.push(backgroundColor);
    if (backgroundColor.startsWith("rgb(")) break;
  }
  if (!seen.has(look.join())) element.setAttribute("data-look", "");
  seen.add(look.join());
}
return seen.size;
"""
WIDTHS = (320, 360, 500, 640, 700, 800, 1000, 1400, 2560)
NARROWEST = 12  # characters of a column of text
# What cannot be read of what is shown: texts in lines of less than so many characters, what is wider than the window,
# what is cut and not shown by the focus of its row, texts beyond their chart, and regions to scroll without a bar in
# sight or that the keyboard does not reach.
UNREADABLE = """
const [narrowest] = arguments, faults = [];
const shown = document.querySelector("dialog[open]") ?? document.body;
const root = document.documentElement, own = (element) => element.outerHTML.slice(0, 160);
const canvas = document.createElement("canvas").getContext("2d");
const isCut = ({scrollWidth, clientWidth, scrollHeight, clientHeight}) =>
  scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1;
for (const element of [root, shown]) {
  if (element.scrollWidth > element.clientWidth) faults.push(`${element.scrollWidth} pixels: ${own(element)}`);
}
for (const element of shown.querySelectorAll("*")) {
  if (!element.checkVisibility() || element.closest(".unseen, .skip, svg, script, style, select")) continue;
  const {overflowX, overflowY} = getComputedStyle(element);
  if ([overflowX, overflowY].some((way) => way === "hidden" || way === "clip") && isCut(element)) {
    element.closest("tr")?.querySelector("a").focus();
    if (isCut(element)) faults.push(`cut: ${own(element)}`);
  }
  for (const text of element.childNodes) {
    if (text.nodeType !== 3 || text.data.trim().length <= narrowest) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    if (new Set(Array.from(range.getClientRects(), ({top}) => Math.round(top))).size < 2) continue;
    let block = element;
    while (["inline", "contents"].includes(getComputedStyle(block).display)) block = block.parentElement;
    const {paddingLeft, paddingRight} = getComputedStyle(block);
    canvas.font = getComputedStyle(element).font;
    const width = block.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const characters = width / canvas.measureText("0").width;
    if (characters < narrowest) faults.push(`${characters.toFixed(1)} characters: ${own(element)}`);
  }
}
for (const region of shown.querySelectorAll(".scroll")) {
  if (!region.checkVisibility() || region.scrollWidth <= region.clientWidth) continue;
  if (region.offsetHeight > 0.9 * innerHeight || region.tabIndex !== 0) faults.push(`no bar in sight: ${own(region)}`);
}
for (const svg of shown.querySelectorAll("svg")) {
  const edges = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll("text")) {
    const {left, right} = text.getBoundingClientRect();
    if (left < edges.left - 1 || right > edges.right + 1) faults.push(`beyond its chart: ${text.textContent}`);
  }
}
return faults;
"""
RUN_AXE = """
const [context, options, done] = arguments;
axe.run(context, {resultTypes: ["violations"], ...options}).then(found => done(found.violations));
"""


class Browser:
    """A Chromium with a page in it; `milliseconds` is how long the last page took until it could be used."""

    def __init__(self, driver):
        self.driver = driver
        self.milliseconds = 0.0

    @contextmanager
    def window(self, width, height=900):
        """Show pages in a window of so many pixels until the block ends."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    @contextmanager
    def in_the_dark(self):
        """Show pages in dark colours until the block ends."""
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

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

    def unreadable(self):
        """What cannot be read of the page, or of the case that is open, with everything unfolded, at each width."""
        self.run("for (const details of document.querySelectorAll('details')) details.open = true")
        found = []
        for width in WIDTHS:
            with self.window(width):
                found += [(width, fault) for fault in self.run(UNREADABLE, NARROWEST)]
        return found

    def faults(self, axe, part="html"):
        """What axe-core finds of serious and critical faults in a part of the page, but for contrast."""
        return self._faults(axe, {"include": [[part]]}, {"rules": {"color-contrast": {"enabled": False}}})

    def low_contrasts(self, axe):
        """What axe-core finds hard to read, of each look one element. It cannot tell of charts."""
        assert self.run(MARK_LOOKS)
        return self._faults(axe, {"include": [["[data-look]"]]}, {"runOnly": ["color-contrast"]})

    def _faults(self, axe, context, options):
        if not self.run("return 'axe' in window"):
            self.run(axe)
        violations = self.driver.execute_async_script(RUN_AXE, context, options)
        return [
            (fault["id"], fault["nodes"][0]["html"])
            for fault in violations
            if fault["impact"] in ("serious", "critical")
        ]


@contextmanager
def started(folder):
    """A `Browser` until the block ends; its profile is in the folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(SECONDS)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
