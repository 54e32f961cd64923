"""report.html in a real browser: it loads nothing, obeys no text of a report, and is used by mouse and by keyboard."""

import json
from urllib.parse import quote

import pytest
from report_maker import HOSTILE, evaluate_gate, make_compared, make_gate, make_report, plain_report, with_baseline
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pytest_queryeval.reports import REPORTS

IDS, LINKS = "#table tbody .id", "#table tbody th > a"
GROUND = "return getComputedStyle(document.body).backgroundColor"
DARK = "rgb(20, 23, 26)"


def nodeid_of(report, **wish):
    """The first case that has these values and a difference."""
    fitting = (case for case in report["cases"] if all(case[name] == value for name, value in wish.items()))
    return next(case["nodeid"] for case in fitting if case["difference"])


def press(browser, *keys):
    for key in keys:
        browser.driver.switch_to.active_element.send_keys(key)


def tab_to(browser, selector):
    """Press Tab until an element has the focus."""
    for _ in range(200):
        press(browser, Keys.TAB)
        if browser.run("return document.activeElement.matches(arguments[0])", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


EXAMPLE_PAGE = pytest.param("example_page", marks=pytest.mark.slow)  # much the same as the small one, but of a run


@pytest.mark.parametrize("name", ["small_page", "large_page", "hostile_page", EXAMPLE_PAGE])
def test_a_page_opens_without_a_word_on_the_console_or_a_request(browser, request, name):
    page = request.getfixturevalue(name)
    browser.requests()

    browser.open(page)

    print(f"{name}: {page.stat().st_size:,} bytes, ready after {browser.milliseconds:.0f} ms")
    assert browser.messages() == []
    assert browser.requests() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_thousands_of_cases_are_filtered(browser, large_page):
    browser.open(large_page, "#show=all")

    assert browser.text("#count") == "3,000 cases"
    assert len(browser.texts(IDS)) == 100

    browser.driver.find_element(By.ID, "filter-q").send_keys("rivers since 1999")
    browser.until(lambda: browser.text("#count") != "3,000 cases")
    count = int(browser.text("#count").split()[0].replace(",", ""))

    assert 0 < count < 300
    assert browser.fragment() == "#show=all&q=rivers%20since%201999"


def ids_by(report, key, *, down=False):
    """The ids in the order of a column: cases without a value last, and in the report's order where it is the same."""
    with_value = [case for case in report["cases"] if key(case) is not None]
    without_value = [case for case in report["cases"] if key(case) is None]
    return [case["id"] for case in sorted(with_value, key=key, reverse=down) + without_value]


def test_thousands_of_cases_are_sorted_at_once(browser, large, large_page):
    browser.open(large_page, "#show=all&scores=path_f1")
    click = "const from = performance.now(); document.querySelector('#table [data-sort=path_f1]').click()"
    values = []

    for _ in range(2):
        assert browser.run(f"{click}; return performance.now() - from") < 2_000
        values.append(browser.texts(IDS))
    browser.open(large_page, "#show=all&sort=path_f1&page=17")
    values.append(browser.texts(IDS))

    up, down = (ids_by(large, lambda own: own["scores"].get("path_f1"), down=down) for down in (False, True))
    assert values == [up[:100], down[:100], up[1_600:1_700]]


def test_every_filter_keeps_the_cases_that_fit(browser, written):
    cases = make_report(120)["cases"]
    for place, case in enumerate(cases):
        case |= {
            "features": ["join", "order"][place % 3 :],
            "tags": ["nightly"][: place % 5],
            "difficulty": "easy" if place % 7 else "hard",
        }
    browser.open(
        written("features", plain_report(*cases)), "#show=passed&kind=sql&difficulty=easy&tag=nightly&feature=join"
    )

    fitting = [
        case["id"]
        for case in cases
        if (case["outcome"], case["kind"], case["difficulty"]) == ("passed", "sql", "easy")
        and "nightly" in case["tags"]
        and "join" in case.get("features", ())
    ]
    assert fitting
    assert sorted(browser.texts(IDS)) == sorted(fitting)
    assert browser.text("#count") == f"{len(fitting)} of 120 cases"


def test_a_choice_stands_in_the_address_and_comes_back_with_it(browser, small_page):
    browser.open(small_page)

    browser.driver.find_element(By.CSS_SELECTOR, "select[name=kind] option[value=json]").click()
    browser.driver.find_element(By.CSS_SELECTOR, "[data-show=all]").click()
    browser.driver.find_element(By.CSS_SELECTOR, "[data-sort=id]").click()
    chosen, ids = browser.fragment(), browser.texts(IDS)
    browser.open(small_page, chosen)

    assert chosen == "#kind=json&show=all&sort=id"
    assert browser.texts(IDS) == ids
    assert browser.run("return document.querySelector('select[name=kind]').value") == "json"


def test_other_scores_can_be_given_columns_and_a_slash_leads_to_the_search(browser, small_page):
    browser.open(small_page)
    browser.run("document.getElementById('columns').open = true")
    before = browser.texts("#table thead th")

    browser.driver.find_element(By.CSS_SELECTOR, "#columns label:has(input:not(:checked))").click()
    (added,) = set(browser.texts("#table thead th")) - set(before)
    assert added in browser.fragment()

    browser.run("document.activeElement.blur()")
    press(browser, "/")
    press(browser, "rivers/")
    assert browser.run("return document.activeElement.value") == "rivers/"


def test_what_differs_is_marked_red_in_a_prediction_and_green_in_gold_in_the_list_and_the_case(
    browser, small, small_page
):
    nodeid = nodeid_of(small, kind="sql")
    (changed,) = next(case for case in small["cases"] if case["nodeid"] == nodeid)["difference"]["changed"]
    browser.open_case(small_page, nodeid)
    ground = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    of_list = [browser.run(ground, f"#table {tag}") for tag in ("del", "ins")]

    assert browser.texts("#case .sides tr.missing th") == ["missing"]
    assert browser.texts("#case .sides tr.changed ins") == [str(changed["gold"][1])]
    assert browser.texts("#case .sides tr.changed del") == [str(changed["predicted"][1])]
    for place in ("[data-section=queries] .sides", "[data-section=answers] .sides"):
        gold, predicted = (f"#case {place} > div:nth-child({side})" for side in (1, 2))
        assert [browser.run(ground, f"{predicted} del"), browser.run(ground, f"{gold} ins")] == of_list
        assert not browser.texts(f"{gold} del") + browser.texts(f"{predicted} ins")


def test_a_case_is_opened_and_left_by_keyboard(browser, small, small_page):
    browser.open(small_page)

    tab_to(browser, "#table thead button[data-sort=question]")
    press(browser, Keys.ENTER)
    assert browser.run("return document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    tab_to(browser, LINKS)
    first = browser.texts(IDS)[0]
    question = browser.run("return document.activeElement.innerText")
    press(browser, Keys.ENTER)
    browser.until(lambda: browser.run("return document.getElementById('case').open"))
    assert browser.run("return document.activeElement.id") == "case-title"
    assert browser.text("#case-title") == first
    press(browser, Keys.ESCAPE)

    browser.until(lambda: browser.fragment() == "#sort=question")  # some time after the case is closed
    assert not browser.run("return document.getElementById('case').open")
    assert browser.run("return document.activeElement.innerText") == question


def test_a_click_on_a_row_opens_its_case_and_the_way_back_leads_through_the_cases_that_were_seen(browser, small_page):
    browser.open(small_page)
    first, second, *_ = browser.texts(IDS)
    browser.driver.find_element(By.CSS_SELECTOR, "#table tbody td").click()
    browser.until(lambda: browser.text("#case-title") == first)
    browser.driver.find_element(By.XPATH, "//dialog//a[text()='Next']").click()
    browser.until(lambda: browser.text("#case-title") == second)

    browser.driver.back()

    browser.until(lambda: browser.text("#case-title") == first)


def test_the_first_rows_are_those_of_the_worst_cases(browser, small, small_page):
    browser.open(small_page)
    issues = json.loads(REPORTS["codequality"].render(small))

    assert browser.texts(IDS) == [issue["description"].partition(": ")[0] for issue in issues]
    assert browser.text("#filters [aria-current=true]") == f"Not passed {len(issues)}"


@pytest.mark.parametrize("show", ["passed", "skipped", "all"])
def test_no_column_of_scores_is_empty(browser, small_page, show):
    browser.open(small_page, f"#show={show}")
    rows = browser.run(
        "return Array.from(document.querySelectorAll('#table tbody tr'),"
        " row => Array.from(row.querySelectorAll('.number'), cell => cell.innerText))"
    )

    assert rows
    assert [column for column in zip(*rows, strict=True) if not any(column)] == []
    assert (show == "skipped") == (rows[0] == [])


def test_filters_show_regressions_and_fixes(browser, written):
    report = make_compared(60)
    browser.open(written("flips", report))
    ids = {case["nodeid"]: case["id"] for case in report["cases"]}

    assert browser.texts(IDS) == [ids[nodeid] for nodeid in report["baseline"]["regressions"]]
    browser.driver.find_element(By.CSS_SELECTOR, "[data-show=fixes]").click()
    assert browser.texts(IDS) == [ids[nodeid] for nodeid in report["baseline"]["fixes"]]
    assert browser.fragment() == "#show=fixes"


REVIEW = {"decision": "ambiguous", "reviewers": ["Ada"], "notes": ["gold counts cancelled orders"]}


@pytest.fixture(scope="module")
def worse_page(written):
    """A run in which wrong joins went from 1 to 4, wrong values from 3 to 2, and one reviewed answer is a bit worse."""

    def run(joins, values, near):
        cases = [case for case in make_report(120)["cases"] if case["kind"] == "sql" and case["outcome"] == "passed"]
        for place, label in {**dict.fromkeys(values, "wrong-value"), **dict.fromkeys(joins, "wrong-join-type")}.items():
            cause = {"edits": [{"label": label, "clause": "FROM", "change": "JOIN a → LEFT JOIN a"}]}
            scores = cases[place]["scores"] | {"execution_accuracy": 0.0, "row_matching_f1": place / 20}
            cases[place] |= {
                "outcome": "failed",
                "message": "execution_accuracy 0.000 (needs at least 1)",
                "scores": scores,
                "cause": cause | {"repaired_query": None},
            }
        cases[9] |= {"outcome": "failed", "message": "row_matching_f1 too low", "review": REVIEW}
        cases[9]["scores"] |= {"row_matching_f1": near}
        return plain_report(*cases)

    report = run(joins=(2, 3, 4, 5), values=(6, 8), near=0.25)
    return written("worse", with_baseline(report, run(joins=(5,), values=(6, 7, 8), near=0.75)))


def test_what_got_worse_is_answered_in_at_most_two_clicks(browser, worse_page):
    def click(selector):
        browser.driver.find_element(By.CSS_SELECTOR, selector).click()

    browser.open(worse_page)
    # What got worse, and which cause increased most? No click.
    headline = browser.text(".result > .headline")
    causes = browser.texts(".weak li")
    # What was the score before? No click.
    first = browser.text("#table tbody tr").split("\n")
    # Only the cases of this cause, worst first: one click.
    click(".headline a:last-of-type")
    of_cause = browser.texts(IDS)
    # All cases by cause: one click.
    browser.open(worse_page, "#show=failed")
    click("#by-cause")
    groups = browser.texts("#table .group th")
    click(".group a")
    alone = browser.texts(IDS)
    # What did the reviewer say? One click.
    click("[data-show=reviewed]")
    browser.run("document.querySelector('#filters select[name=label]').value = ''")
    browser.open(worse_page, "#show=reviewed")
    review = browser.text("#table .review")

    assert headline == "3 regressions, 1 fix since main.json. Wrong join type increased most: 1 → 4."
    assert [" ".join(text.split()) for text in causes] == ["wrong join type 1 → 4"]
    assert "1.000 → 0.000" in first[-1]
    assert of_cause == alone
    assert len(of_cause) == 4
    assert [" ".join(text.split()) for text in groups] == [
        "wrong join type 1 → 4 all 4 cases",
        "wrong value 3 → 2 all 2 cases",
        "no cause found 1 case",
    ]
    assert review == "Review: ambiguous (Ada); gold counts cancelled orders"


def test_planted_texts_do_nothing_and_are_seen(browser, hostile, hostile_page):
    cases = {case["source"]: case for case in hostile["cases"] if case["prediction"]}
    assert cases.keys() == set(HOSTILE)
    for text, case in cases.items():
        browser.open_case(hostile_page, case["nodeid"])
        browser.run("for (const details of document.querySelectorAll('details')) details.open = true")

        assert browser.run("return window.taken") is None
        assert browser.run("return document.querySelectorAll('dialog :is(script, img, svg, iframe, form)').length") == 0
        assert browser.run("return [...document.links].filter(link => link.protocol !== 'file:').length") == 0
        assert browser.messages() == []
        shown = "a\\u202eb\\u200bc\\x1b[31md\\x00e\\ufeff" if "\u202e" in text else text
        assert shown in browser.text("#case-title")
        assert shown in browser.text("#case .question")
        assert not {"\u202e", "\u200b", "\x1b", "\x00", "\ufeff"} & set(browser.text("#case"))
    assert browser.requests() == []


def test_names_that_a_script_might_take_for_its_own_are_names(browser, written):
    report = make_report(8)
    for case in report["cases"]:
        odd = {"__proto__": 0.5, "constructor": 0.25, "id": 0.125, "seconds": 1.0}
        case |= {"scores": odd, "kind": "constructor", "tags": ["__proto__"], "outcome": "passed", "id": "toString"}
        case |= {"details": {"__proto__": "told", "violations": {"a": 1}, "notes": []}, "nodeid": "the same"}
    report = plain_report(*report["cases"])
    browser.open(written("odd", report), "#show=all&sort=__proto__&tag=__proto__&kind=constructor")

    hrefs = browser.run("return Array.from(document.querySelectorAll(arguments[0]), link => link.hash)", LINKS)

    assert len(set(hrefs)) == 8
    assert browser.texts("#table tbody td.number")[:4] == ["0.500", "0.250", "0.125", "1.000"]
    browser.driver.find_elements(By.CSS_SELECTOR, IDS)[4].click()
    browser.until(lambda: "told" in (browser.run("return document.getElementById('case').textContent")))
    assert browser.messages() == []


def long_case(kind, piece, known):
    """A case with a gold query of 10,000 characters of one form, of which no tokenizer may grow tired."""
    sides = {"gold": (piece * 10_000)[:9_998], "predicted": f"{piece * 450}x"}
    queries = {side: known[side] | {"query": text} for side, text in sides.items()}
    return known | queries | {"kind": kind, "nodeid": f"{kind} {piece}"}


def test_long_texts_of_any_form_are_shown_whole(browser, written):
    pieces = ("'", '"', "`", "(", "/*", "<", "<a", "\\", "'\\", "a b ", "--\n", "1e")
    base_case = next(case for case in make_report(60)["cases"] if case["gold"])
    cases = [long_case(("sql", "sparql", "json")[n % 3], piece, base_case) for n, piece in enumerate(pieces)]
    texts_shown = "return Array.from(document.querySelectorAll('#case .sides pre'), pre => pre.textContent)"
    browser.open(written("long", plain_report(*cases)))

    for case in cases:
        before = browser.run(texts_shown)
        browser.run("location.hash = arguments[0]", f"#case={quote(case['nodeid'], safe='')}")
        browser.until(lambda before=before: browser.run(texts_shown) != before)
        assert browser.run(texts_shown) == [case["gold"]["query"], case["predicted"]["query"]]
    assert browser.messages() == []


def test_an_address_of_no_case_shows_the_table(browser, small_page):
    browser.open(small_page, "#case=nowhere%zz&page=-3&sort=nothing&show=all")

    assert not browser.run("return document.getElementById('case').open")
    assert len(browser.texts(IDS)) == 100


def test_the_name_of_a_gate_keeps_its_line_beside_a_long_result(browser, written):
    cases = make_report(40)["cases"]
    decided = evaluate_gate(make_gate(), cases) | {"decided": {"after": 20, "of": 40}}
    path = written("decided", plain_report(*cases, gates=[decided]))

    for width in (1000, 1200, 1400):
        with browser.window(width):
            browser.open(path)
            assert "decided after 20 of 40" in browser.text(".gates .result")
            assert browser.run("return document.querySelector('.gates .subject').getClientRects()[0].height") < 40


def test_a_path_that_is_no_utf8_has_a_link(browser, written):
    path = "caf\udce9.queryeval.yaml"
    cases = [case | {"path": path, "nodeid": f"{path}::{case['id']}"} for case in make_report(3)["cases"]]
    browser.open(written("surrogate", plain_report(*cases)))

    link = browser.driver.find_element(By.CSS_SELECTOR, IDS)
    name = link.text
    link.click()

    browser.until(lambda: browser.text("#case-title") == name)


def test_the_button_changes_the_colours(browser, small_page):
    browser.open(small_page)
    before = browser.run(GROUND)

    browser.driver.find_element(By.ID, "theme").click()
    changed = browser.run(GROUND)
    browser.driver.find_element(By.ID, "theme").click()
    again = browser.run(GROUND)
    browser.run("localStorage.clear()")  # the choice holds for all pages that this browser opens

    assert changed != before
    assert again == before


@pytest.mark.parametrize(
    ("name", "fragment"),  # few rows, since axe looks at each of them
    [
        ("small_page", "#show=missed"),
        ("hostile_page", "#show=missed"),
        ("compared_page", "#show=failed&by=cause"),
        pytest.param("example_page", "#show=missed", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_serious_fault_in_a_page_nor_low_contrast_in_light_or_dark(browser, axe, request, name, fragment):
    browser.open(request.getfixturevalue(name), fragment)
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true")

    assert browser.texts(IDS)
    assert browser.faults(axe) == browser.low_contrasts(axe) == []
    with browser.in_the_dark():
        assert browser.run(GROUND) == DARK
        assert browser.low_contrasts(axe) == []
        browser.run("document.querySelector('#table tbody a').style.color = '#333'")
        assert [rule for rule, _ in browser.low_contrasts(axe)] == ["color-contrast"]


def test_heads_show_which_column_sorts_and_pages_of_the_table_follow_each_other(browser, small, small_page):
    sign = "return getComputedStyle(document.querySelector(arguments[0]), '::after').content"
    browser.open(small_page, "#show=all&sort=id")
    first = browser.texts(IDS)

    assert browser.texts("#table thead [aria-pressed=true] .arrow") == ["↑"]
    assert (
        browser.run("return document.querySelector('#table thead [aria-pressed]').closest('th').ariaSort")
        == "ascending"
    )
    assert "↕" not in browser.run(sign, "#table thead button[aria-pressed]")
    assert "↕" in browser.run(sign, "#table thead button:not([aria-pressed])")

    browser.driver.find_element(By.XPATH, "//nav[@class='pager']/button[text()='Next']").click()

    assert first + browser.texts(IDS) == sorted(case["id"] for case in small["cases"])
    assert len(first) == 100
    assert browser.text("nav.pager span") == "page 2 of 2"
