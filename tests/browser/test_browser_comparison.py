"""The page of a comparison in a real Chromium."""

import pytest
from report_maker import HOSTILE, make_report

from pytest_queryeval.reports.html.comparison import comparison_page
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.leaderboard import leaderboard


def with_faults(report, every):
    """A report with other outcomes: one case of `every` that passed fails."""
    cases = [dict(case) for case in report["cases"]]
    for case in cases[::every]:
        if case["outcome"] == "passed":
            case |= {
                "outcome": "failed",
                "scores": dict.fromkeys(case["scores"], 0.0),
                "message": "missing 3 of 7 rows",
            }
    return aggregate(cases, gates=(), about=report)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    report = make_report(200, hostile=True)
    reports = {HOSTILE[0]: report, "second": with_faults(report, 3), "third " * 20: with_faults(report, 7)}
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    path.write_bytes(comparison_page(leaderboard(reports), reports))
    return path


def test_the_cases_are_found_filtered_and_opened(browser, page):
    browser.open(page)
    regressed = browser.texts("#table tbody th")
    browser.run("document.querySelector('[data-show=others]').click()")
    others = browser.texts("#table tbody th")

    browser.run("document.querySelector('#table tbody a').click()")
    browser.until(lambda: browser.run("return document.getElementById('case').open"))

    assert regressed
    assert others
    assert set(regressed).isdisjoint(others)
    chips = browser.texts("dialog .sides h3 .chip")
    assert len(chips) == 3
    assert set(chips) == {"passed", "failed"}
    assert not browser.messages()
    assert not browser.requests()
    assert browser.run("return window.taken") is None


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
