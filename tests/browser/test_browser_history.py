"""The page of a history in a real Chromium."""

from datetime import UTC, datetime, timedelta

import pytest
from report_maker import HOSTILE, evaluate_gate, make_gate, make_report

from pytest_queryeval.reports.html.history import history_page
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.history import history

RUNS = 12
START = datetime(2025, 3, 1, 9, 30, tzinfo=UTC)


def run(number):
    """A run of hostile cases: in the sixth a gold is another one, from the tenth on more fail and a gate is missed."""
    report = make_report(60, hostile=True, shares=(100, 0, 0, 0, 0, 0, 0))
    cases = report["cases"]
    for place, case in enumerate(cases):
        is_wrong = place % 3 == 0 if number >= 9 else (place + number) % 20 == 0
        if case["outcome"] == "passed" and is_wrong:
            case |= {"outcome": "failed", "scores": dict.fromkeys(case["scores"], 0.0)}
        if number >= 5 and place == 30:
            case["fingerprint"] |= {"golds": "edited"}
    created = (START + timedelta(days=number)).isoformat()
    about = report | {"created": created, "name": f"{HOSTILE[number]} {number}", "stopped": number == 3}
    gates = [evaluate_gate(make_gate(folder="suite", min=0.8), cases)]
    return f"{HOSTILE[number]}/report.json", aggregate(cases, gates=gates, about=about)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("history") / "history.html"
    path.write_bytes(history_page(history(map(run, range(RUNS)))))
    return path


def test_nothing_acts_and_nothing_is_loaded(browser, page):
    browser.open(page)

    assert not browser.messages()
    assert not browser.requests()
    assert browser.run("return window.taken") is None
    assert len(browser.texts(".past tbody tr")) == RUNS


def test_the_first_bad_run_is_marked_and_its_cases_are_opened_by_the_keyboard(browser, page):
    browser.open(page)

    assert len(browser.texts(".since")) == 1
    assert "worse since here" in browser.texts(".since")[0]
    browser.run("document.querySelector('.since summary').focus()")
    assert browser.run("return document.activeElement.tagName") == "SUMMARY"
    browser.run("document.activeElement.click()")
    assert "regressions" in browser.texts(".since li")[0]


def test_the_theme_is_changed(browser, page):
    browser.open(page)

    browser.run("document.getElementById('theme').click()")

    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.run("document.getElementById('theme').click()")


@pytest.mark.parametrize("width", [500, 1400])
def test_nothing_is_wider_than_the_window(browser, page, width):
    with browser.window(width):
        browser.open(page)

        assert browser.run("return document.documentElement.scrollWidth") <= width


def test_axe_finds_no_fault(browser, page, axe):
    browser.open(page)
    light = [*browser.faults(axe), *browser.low_contrasts(axe)]
    with browser.in_the_dark():
        dark = browser.open(page).low_contrasts(axe)

    assert (light, dark) == ([], [])
