"""The pages of several runs, a comparison and a history, in a real Chromium."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from report_maker import HOSTILE, evaluate_gate, make_gate, make_report, plain_report

from pytest_queryeval.cli import main
from pytest_queryeval.reports import write_report

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
    gates = [evaluate_gate(make_gate(folder="suite", min=0.8), cases)]
    name = f"{HOSTILE[number]} {number}"
    return plain_report(*cases, gates=gates, created=created, name=name, stopped=number == 3)


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
    return plain_report(*cases)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """The page of three systems, of which one has a hostile name and one a long one."""
    folder = tmp_path_factory.mktemp("comparison")
    report = make_report(200, hostile=True)
    reports = {HOSTILE[0]: report, "second": with_faults(report, 3), "third " * 20: with_faults(report, 7)}
    files = [str(folder / f"{number}.json") for number in range(len(reports))]
    for file, (name, each) in zip(files, reports.items(), strict=True):
        write_report(each | {"name": name}, Path(file))
    assert main(["compare", *files, "-o", str(folder / "comparison.html")]) == 0
    return folder / "comparison.html"


@pytest.fixture(scope="module")
def past_runs(tmp_path_factory):
    """The page of the history of all runs."""
    folder = tmp_path_factory.mktemp("history")
    for number in range(RUNS):
        write_report(run(number), folder / f"{number:02}.json")
    assert main(["history", str(folder), "-o", str(folder / "history.html")]) == 0
    return folder / "history.html"


@pytest.fixture(params=["comparison", "past_runs"])
def page(request):
    """Each of both pages."""
    return request.getfixturevalue(request.param)


def test_a_page_of_several_runs_is_read_at_every_width(browser, page):
    browser.open(page)

    assert browser.unreadable() == []


def test_axe_finds_no_fault(browser, page, axe):
    browser.open(page)
    light = [*browser.faults(axe), *browser.low_contrasts(axe)]
    with browser.in_the_dark():
        dark = browser.open(page).low_contrasts(axe)

    assert (light, dark) == ([], [])


def test_names_of_systems_are_whole_and_the_cases_are_found_filtered_and_opened(browser, comparison):
    browser.open(comparison)
    names = "[...document.querySelectorAll('.matrix thead .name')]"
    assert len(set(browser.texts(".matrix thead .name"))) == 3
    assert browser.run(f"return {names}.filter(each => each.scrollWidth > each.clientWidth).length") == 0
    regressed = browser.texts("#table tbody .id")
    browser.run("document.querySelector('[data-show=others]').click()")
    headings = browser.texts("#table tbody .id")

    browser.run("document.querySelector('#table tbody a').click()")
    browser.until(lambda: browser.run("return document.getElementById('case').open"))

    assert regressed
    assert headings
    assert set(regressed).isdisjoint(headings)
    chips = browser.texts("dialog .sides h3 .chip")
    assert len(chips) == 3
    assert set(chips) == {"passed", "failed"}
    assert not browser.messages()
    assert not browser.requests()
    assert browser.run("return window.taken") is None


def test_the_first_bad_run_is_marked_and_its_cases_are_opened_by_the_keyboard(browser, past_runs):
    browser.open(past_runs)

    assert len(browser.texts(".past tbody tr")) == RUNS
    assert len(browser.texts(".since")) == 1
    assert "worse since here" in browser.texts(".since")[0]
    browser.run("document.querySelector('.since summary').focus()")
    assert browser.run("return document.activeElement.tagName") == "SUMMARY"
    browser.run("document.activeElement.click()")
    assert "regressions" in browser.texts(".since li")[0]
    browser.run("document.getElementById('theme').click()")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.run("document.getElementById('theme').click()")
    assert not browser.messages()
    assert not browser.requests()
    assert browser.run("return window.taken") is None


def test_only_wrong_answers_stand_out_in_the_strips(browser, past_runs):
    browser.open(past_runs)
    script = """
    const rect = document.querySelector(".strips rect");
    rect.setAttribute("class", arguments[0]);
    return getComputedStyle(rect).opacity;
    """
    faint, clear = ("passed", "xpassed", "skipped", "not_run"), ("failed", "missed", "error", "xfailed")

    assert {browser.run(script, outcome) for outcome in faint} == {"0.4"}
    assert {browser.run(script, outcome) for outcome in clear} == {"1"}
