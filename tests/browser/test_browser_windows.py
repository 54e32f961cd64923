"""report.html in narrow windows: whatever has no room is scrolled to."""

import pytest

# The elements of which a part is out of sight, and no way leads to it: beyond an edge of what does not scroll.
CUT = """
const cut = [];
for (const element of document.querySelectorAll("body *")) {
  if (!element.checkVisibility() || element.closest(".unseen, .skip, svg *")) continue;
  const own = element.getBoundingClientRect();
  for (let around = element.parentElement; around; around = around.parentElement) {
    const sideways = getComputedStyle(around).overflowX;
    if (sideways === "auto" || sideways === "scroll") break;
    const edge = around === document.documentElement ? innerWidth : around.getBoundingClientRect().right;
    const cuts = around === document.documentElement || sideways === "hidden" || sideways === "clip";
    if (cuts && own.right > edge + 1) cut.push(element.outerHTML.slice(0, 200));
  }
}
return cut;
"""
# The texts of charts that go beyond their edges.
BEYOND = """
return [...document.querySelectorAll("svg")].flatMap(svg => {
  const edges = svg.getBoundingClientRect();
  const isBeyond = ({left, right}) => left < edges.left - 1 || right > edges.right + 1;
  const texts = [...svg.querySelectorAll("text")].filter(text => isBeyond(text.getBoundingClientRect()));
  return texts.map(text => text.textContent);
});
"""
# The regions that scroll sideways, and how high each of them is in a window of height 1, its bar included.
SIDEWAYS = """
return [...document.querySelectorAll(".scroll")]
  .filter(element => element.checkVisibility() && element.scrollWidth > element.clientWidth)
  .map(element => [element.ariaLabel, element.offsetHeight / innerHeight, element.tabIndex]);
"""


@pytest.mark.parametrize("width", [1000, 500])
@pytest.mark.parametrize("page", [pytest.param("example_page", marks=pytest.mark.slow), "hostile_page"])
def test_nothing_is_cut_in_a_narrow_window_without_a_bar_in_sight(browser, request, page, width):
    with browser.window(width):
        browser.open(request.getfixturevalue(page))
        browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
        cut, beyond, sideways = (browser.run(script) for script in (CUT, BEYOND, SIDEWAYS))

    assert cut == beyond == []
    assert [window for window in sideways if window[1] > 0.9 or window[2] != 0] == []


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


def test_every_column_of_the_cases_is_reached_in_a_window_of_five_hundred_pixels(browser, small_page):
    last = "document.querySelector('#table th:last-child button')"
    with browser.window(500):
        browser.open(small_page)
        browser.run("document.getElementById('table').scrollTo(10_000, 0)")
        right = browser.run(f"return {last}.getBoundingClientRect().right")
        edge = browser.run("return document.getElementById('table').getBoundingClientRect().right")

    assert right <= edge <= 500


@pytest.mark.parametrize("width", [641, 999, 1400])
def test_texts_of_the_list_of_cases_have_room_and_lie_over_nothing(browser, small_page, width):
    columns = "#table tbody tr > :nth-child(-n+3)"
    with browser.window(width):
        browser.open(small_page)
        widths = browser.run(f"""
            return [...document.querySelectorAll("{columns}")].map(cell =>
              cell.clientWidth / parseFloat(getComputedStyle(cell).fontSize))""")
        covered = browser.run("""
            const boxes = [...document.querySelectorAll("#table tbody tr :is(a, .chip, .number, p, .clamped), .under")]
              .filter(element => element.checkVisibility()).map(element => element.getBoundingClientRect());
            return boxes.filter((one, place) => boxes.slice(place + 1).some(other =>
              one.left < other.right - 1 && other.left < one.right - 1 &&
              one.top < other.bottom - 1 && other.top < one.bottom - 1)).length""")

    assert min(widths) > 10  # em, so more than 12 letters
    assert covered == 0


@pytest.mark.parametrize("width", [1000, 500])
def test_nothing_of_a_case_is_cut_in_a_narrow_window(browser, small, small_page, width):
    with browser.window(width):
        browser.open_case(small_page, next(case["nodeid"] for case in small["cases"] if case["difference"]))
        cut = browser.run(CUT)

    assert cut == []


def test_short_names_of_groups_are_not_broken_beside_many_metrics(browser, small_page):
    with browser.window(1200):
        browser.open(small_page)
        lines = browser.run(
            "return [...document.querySelectorAll('#groups tbody th a')]"
            ".map(link => [link.textContent, link.getClientRects().length])"
        )

    assert ["regression", 1] in lines
    assert [name for name, number in lines if number > 1] == []
