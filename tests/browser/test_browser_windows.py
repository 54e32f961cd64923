"""Pages in windows of every width: no column of text is narrow, nothing is wider than its window, nothing is cut."""

import pytest
from browser.chromium import WIDTHS
from report_maker import make_long


@pytest.fixture(scope="module")
def long_page(written):
    return written("long", make_long(12))


PAGES = (
    "small_page",
    "compared_page",
    "hostile_page",
    "long_page",
    pytest.param("example_page", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_at_every_width(browser, request, page):
    browser.open(request.getfixturevalue(page))

    assert browser.unreadable() == []


@pytest.mark.parametrize("page", ["small", "hostile"])
def test_a_case_is_read_at_every_width(browser, request, page):
    report = request.getfixturevalue(page)
    nodeid = next(case["nodeid"] for case in report["cases"] if case["difference"])
    browser.open_case(request.getfixturevalue(f"{page}_page"), nodeid)

    assert browser.unreadable() == []


def test_more_scores_than_columns_have_room_for_stand_below_the_texts(browser, small_page):
    browser.open(small_page)
    names = browser.run(
        "return Array.from(document.querySelectorAll('#columns label'), label => label.textContent.trim())"
    )
    browser.open(small_page, f"#show=all&scores={','.join(names)}")

    assert len(names) > 5
    assert browser.unreadable() == []
    assert browser.run("return getComputedStyle(document.querySelector('#table thead')).display") == "block"


def test_the_cases_have_columns_where_there_is_room_and_scores_with_their_names_where_there_is_none(
    browser, compared_page
):
    names = "return getComputedStyle(document.querySelector('#table tbody .number'), '::before').content"
    shown = {}
    for width in WIDTHS:
        with browser.window(width):
            browser.open(compared_page)
            head = browser.run("return getComputedStyle(document.querySelector('#table thead')).display")
            shown[width] = head == "table-header-group", browser.run(names) == "none"

    assert shown == {width: (width >= 1000, width >= 1000) for width in WIDTHS}


@pytest.mark.parametrize("width", [1400, 500])
def test_charts_take_the_width_that_there_is(browser, small_page, width):
    with browser.window(width):
        browser.open(small_page)
        right = browser.run(
            "const right = (plot) => plot.getBoundingClientRect().right;"
            "return Math.max(...Array.from(document.querySelectorAll('.plot'), right))"
        )
        edge = browser.run("return document.querySelector('figure').getBoundingClientRect().right")

    assert right == pytest.approx(edge, abs=1)


def test_a_printed_page_has_the_cases_and_no_controls(browser, compared_page):
    browser.open(compared_page)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        controls = browser.run(
            "return [...document.querySelectorAll('button, input, select')].filter(e => e.checkVisibility()"
            " && !e.closest('thead')).length"
        )
        rows = browser.run("return document.querySelectorAll('#table tbody tr').length")
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    assert (controls, ground) == (0, "rgb(255, 255, 255)")
    assert rows
