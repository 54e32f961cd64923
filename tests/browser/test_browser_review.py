"""The page on which golds are reviewed in a real browser, with the server of the command behind it."""

import io
import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
import uvicorn
from features.review.review_pages import write_system
from selenium.webdriver.common.keys import Keys

from pytest_queryeval.cli import main

pytestmark = pytest.mark.process
SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
MARKUP = "<img src=//host.test/x onerror=\"document.title='obeyed'\"></script><script>document.title='obeyed'</script>"
SCRIPT = f"{'shop_' * 20}.sql"  # wider than a narrow page
CHEAPEST = "SELECT name FROM product WHERE price = (SELECT min(price) FROM product)"
CASES = [
    {"id": "cheapest", "question": "Which products are cheapest?", "gold": "SELECT name FROM product LIMIT 1"},
    {"id": "markup", "question": MARKUP, "evidence": MARKUP, "gold": "SELECT 1 -- " + MARKUP},
    *({"id": f"n{n}", "question": f"What is {n}?", "gold": f"SELECT {n}"} for n in range(3)),
]
QUOTED = MARKUP.replace("'", "''")
# Seven systems: most agree on the first case, and each has its own answer to the second.
ANSWERS = [
    {"cheapest": CHEAPEST if n < 4 else f"SELECT {n}", "markup": f"SELECT {n} AS \"a{n}\", '{QUOTED}'"}
    for n in range(7)
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a suite, and the reports of seven systems, with texts that would be markup."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path(SCRIPT).write_text(SHOP, encoding="utf-8")
        write_suite("s.queryeval.yaml")
        for n, answers in enumerate(ANSWERS):
            write_system(f"model {n} {MARKUP}", answers, f"{n:02}.json")
    return folder


def write_suite(path):
    head = f"kind: sql\nsource: {{sqlite: {{script: {SCRIPT}}}}}\nreviews: reviews/*.jsonl\ncases:\n"
    Path(path).write_text(head + "".join(f"  - {json.dumps(case)}\n" for case in CASES), encoding="utf-8")


@contextmanager
def served(folder, *arguments):
    """The address of the page of a folder, which this process serves until the block ends."""
    arguments, servers, addresses = (
        arguments or (".", *sorted(path.name for path in folder.glob("*.json"))),
        [],
        Queue(),
    )
    run = uvicorn.Server.run

    def run_recorded(server, sockets):
        servers.append(server)
        run(server, sockets)

    class Told(io.StringIO):
        def write(self, text):
            if match := re.search(r"http://\S+", text):
                addresses.put(match[0])

    with pytest.MonkeyPatch.context() as patch, redirect_stderr(Told()), redirect_stdout(io.StringIO()):
        patch.chdir(folder)
        patch.setattr(uvicorn.Server, "run", run_recorded)
        command = Thread(target=main, args=(["review", *arguments, "--serve"],))
        command.start()
        try:
            yield addresses.get(timeout=100)
        finally:
            servers[0].should_exit = True
            command.join()


@pytest.fixture(scope="module")
def server(shop):
    with served(shop) as url:
        yield url


@pytest.fixture(autouse=True)
def leave_the_page(browser):
    """Close the page after a test, with what its console and its requests say: other pages make no requests."""
    yield
    browser.driver.get("about:blank")
    browser.messages()
    browser.requests()


def press(browser, *keys):
    for key in keys:
        browser.driver.switch_to.active_element.send_keys(key)


def begin(browser, url, reviewer):
    """Open the page as a reviewer whom it has not seen."""
    browser.driver.get(url)
    browser.run("localStorage.clear()")
    browser.driver.get(url)
    browser.until(lambda: browser.run("return document.getElementById('name')?.open"))
    press(browser, reviewer, Keys.ENTER)
    wait_for(browser, "cheapest")


def wait_for(browser, title):
    browser.until(lambda: browser.text("#title") == title and "running …" not in browser.text("#case"))


def lines_of(folder, reviewer):
    text = (folder / "reviews" / f"{reviewer}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_golds_are_reviewed_by_keyboard_alone(browser, shop, server):
    begin(browser, server, "anna")
    assert browser.text("#progress") == "0 of 5 decided"

    press(browser, "1")
    assert browser.text("#marked") == "Marked right: 1"
    press(browser, "n", "two of them", Keys.ENTER, "w")
    wait_for(browser, "markup")
    assert browser.text("#status") == "cheapest: wrong, 1 right answer."
    assert browser.text("#progress") == "1 of 5 decided"

    press(browser, "z")
    wait_for(browser, "cheapest")
    assert browser.text("#status") == "Undone: cheapest is unsure now, which has no effect."
    assert browser.text("#marked") == "Marked right: 1"

    press(browser, "q", "SELECT name FROM product WHERE price < 3 rw12", Keys.CONTROL + Keys.ENTER)
    browser.until(lambda: "syntax error" in browser.text("#status"))
    browser.run("document.activeElement.value = 'SELECT name FROM product WHERE price < 3'")
    press(browser, Keys.CONTROL + Keys.ENTER)
    browser.until(lambda: "press 5" in browser.text("#status"))
    press(browser, Keys.ESCAPE, "5", "1", "w")
    wait_for(browser, "markup")

    assert [(line["decision"], line.get("note")) for line in lines_of(shop, "anna")] == [
        ("wrong", "two of them"),
        ("unsure", "two of them"),
        ("wrong", "two of them"),
    ]
    assert lines_of(shop, "anna")[-1]["answers"] == [{"query": "SELECT name FROM product WHERE price < 3"}]

    begin(browser, server, "ben")
    assert browser.text("#progress") == "0 of 5 decided"
    assert browser.texts(".answer.is-right") == []


def test_a_conflict_is_settled_by_keyboard(browser, shop, tmp_path):
    folder = shutil.copytree(shop, tmp_path / "shop", ignore=shutil.ignore_patterns("reviews"))
    with served(folder) as url:
        for reviewer, keys in (
            ("ida", ["r"]),
            ("jon", ["q", "SELECT 'fig'", Keys.CONTROL + Keys.ENTER, Keys.ESCAPE, "5", "w"]),
        ):
            begin(browser, url, reviewer)
            assert not browser.run("return Boolean(document.querySelector('.conflict'))")
            for key in keys:
                press(browser, key)
                browser.until(lambda: browser.text("#status") != "Running …")
            wait_for(browser, "markup")

        begin(browser, url, "kim")
        assert "ida" not in browser.text("#case")
        press(browser, "z")
        assert browser.text("#status") == "Nothing to undo: you have decided nothing since the page was loaded."
        press(browser, "c")
        browser.until(lambda: browser.texts(".conflict li") == ["ida: right", "jon: wrong, right: 5"])
        assert browser.text("#marked") == "Your decision settles the case"
        press(browser, "5", "w")
        wait_for(browser, "markup")
        assert browser.text("#status") == "cheapest: wrong, 1 right answer, settled."
        (line,) = lines_of(folder, "kim")
        assert (line["settles"], line["answers"]) == (True, [{"query": "SELECT 'fig'"}])

        press(browser, "z")
        wait_for(browser, "cheapest")
        assert browser.text("#status") == "cheapest is settled, which is not undone: decide again."
        assert len(lines_of(folder, "kim")) == 1


def test_without_decisions_in_sight_nothing_is_settled(browser, shop, tmp_path):
    folder = shutil.copytree(shop, tmp_path / "shop", ignore=shutil.ignore_patterns("reviews"))
    reviews = folder / "reviews"
    reviews.mkdir()

    def write_decision(reviewer, decision, **keys):
        line = {"suite": "../s.queryeval.yaml", "case": "cheapest", "decision": decision, "reviewer": reviewer}
        line |= {"at": "2026-11-01T00:00:00Z", **keys}
        (reviews / f"{reviewer}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")

    write_decision("ida", "right")
    write_decision("jon", "wrong")
    with served(folder) as url:
        begin(browser, url, "kim")
        (reviews / "jon.jsonl").write_text("{}\n", encoding="utf-8")
        press(browser, "c")
        browser.until(lambda: "a decision needs" in browser.text("#status"))
        assert not browser.run("return document.querySelector('.conflict').open")

        write_decision("jon", "wrong", settles=True, at="2026-11-02T00:00:00Z")
        press(browser, "c")
        browser.until(lambda: browser.text("#status") == "The conflict was settled meanwhile.")
        assert not browser.run("return Boolean(document.querySelector('.conflict'))")
        press(browser, "w")
        wait_for(browser, "markup")
        assert [line.get("settles") for line in lines_of(folder, "kim")] == [None]


def test_nothing_in_the_page_is_obeyed_or_hard_to_read(browser, server, axe):
    browser.messages()
    browser.requests()
    begin(browser, server, MARKUP[:90])
    press(browser, "j")
    wait_for(browser, "markup")
    assert len(browser.texts(".answer")) == 8

    assert browser.run("return document.title") == "Review of golds"
    assert browser.run("return document.images.length + document.querySelectorAll('script').length") == 1
    assert browser.messages() == []
    assert {url.split("/")[2] for url in browser.requests()} == {server.split("/")[2]}
    assert browser.unreadable() == []
    press(browser, "o")
    assert browser.faults(axe) == browser.low_contrasts(axe) == []
    with browser.in_the_dark():
        assert browser.low_contrasts(axe) == []
    press(browser, "?")
    assert browser.faults(axe) == []
    press(browser, Keys.ESCAPE)


def test_a_search_says_that_the_open_case_does_not_match_and_enter_opens_the_first_that_does(browser, server):
    begin(browser, server, "hal")
    assert browser.run("return document.getElementById('outside').hidden")

    press(browser, "/", "what is")
    assert browser.text("#count") == "3 cases"
    assert browser.text("#outside") == "This case does not match the search and the filters."

    press(browser, Keys.ENTER)
    wait_for(browser, "n0")
    assert browser.run("return document.activeElement.id") == "title"
    assert browser.run("return document.getElementById('outside').hidden")

    press(browser, "/", " no such thing", Keys.ENTER)
    browser.until(lambda: browser.text("#status") == "No case matches.")
    assert browser.text("#title") == "n0"


def test_keys_can_be_turned_off(browser, server, shop):
    begin(browser, server, "cleo")

    press(browser, "?", Keys.SPACE, Keys.ESCAPE)
    browser.run("document.getElementById('title').focus()")
    press(browser, "r", "j")

    assert browser.text("#title") == "cheapest"
    assert not (shop / "reviews" / "cleo.jsonl").exists()


def test_a_server_that_is_killed_loses_nothing_and_the_page_says_so(browser, shop):
    command = [sys.executable, "-m", "pytest_queryeval", "review", ".", "--serve"]
    process = subprocess.Popen(command, cwd=shop, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with process:
        url = next(match[0] for line in process.stderr if (match := re.search(r"http://\S+", line)))
        begin(browser, url, "dora")
        press(browser, "r")
        wait_for(browser, "markup")
        process.kill()
        process.wait(timeout=60)
        press(browser, "n", "my note", Keys.ESCAPE, "w")
        browser.until(lambda: "The server does not answer" in browser.text("#status"))

        assert browser.run("return document.getElementById('note').value") == "my note"
        assert browser.text("#progress") == "1 of 5 decided"
        assert [line["decision"] for line in lines_of(shop, "dora")] == ["right"]


def test_a_damaged_review_file_is_told(browser, shop, server):
    path = shop / "reviews" / "emil.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{MARKUP}\n", encoding="utf-8")
    try:
        browser.driver.get(server)
        browser.run("localStorage.setItem('queryeval-review-name', 'emil'); location.reload()")
        browser.until(lambda: "reviews/emil.jsonl:1:1: " in (browser.text("#status") or ""))
    finally:
        path.unlink()


def test_answers_of_an_audit_are_judged_by_question_and_query_alone(browser, shop, axe):
    case = {"case": "cheapest", "nodeid": "s.queryeval.yaml::cheapest", "stratum": "passed", "probability": 1}
    path = shop / "audit.jsonl"
    path.write_text(json.dumps({**case, "predictions": {"1a": {"query": CHEAPEST}}}) + "\n", encoding="utf-8")
    with served(shop, "--audit", path.name) as url:
        begin(browser, url, "anna")
        assert browser.texts(".answer h3") == ["Answer"]
        assert [row for row in browser.texts(".answer tbody tr") if row] == ["pear", "plum"]
        assert "gold" not in browser.text("body").lower()
        assert browser.faults(axe) == []
        press(browser, "r")
        browser.until(lambda: browser.text("#progress") == "1 of 1 judged")
        press(browser, "z")
        browser.until(lambda: browser.text("#status") == "Undone: cheapest is unclear now.")

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.get("judgement") for line in lines] == [None, "right", "unclear"]
