"""The server of the page on which golds are reviewed, in this process."""

import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from features.review.review_pages import (
    ADDRESS,
    CHEAPEST,
    DEAREST,
    HEAD,
    PORT,
    TOKEN,
    client_of,
    gold_review,
    write_shop,
)
from suites import write
from waiting import wait_for

from pytest_queryeval import load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.review.page import html, serve_review  # white box: a server that is told where it is
from pytest_queryeval.features.review.page.server import MAX_QUERIES, serve  # white box: likewise

QUESTION = {"id": "cheapest", "question": "Which products are cheapest?"}
WRONG = {"decision": "wrong", "answers": [{"query": CHEAPEST}], "reviewer": "anna"}
MARKUP = "<img src=//host.test/x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def client(folder):
    """A client of the review of one gold, to which two systems have another answer."""
    write_shop([QUESTION])
    with client_of(gold_review(CHEAPEST)) as client:
        yield client


def decisions(name="reviews/anna.jsonl"):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def files():
    return {path.as_posix(): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def test_the_token_moves_from_the_address_into_a_cookie_that_no_script_and_no_other_site_gets(folder):
    write_shop([QUESTION])
    with client_of(gold_review(), has_token=False) as client:
        response = client.get("/", params={"token": TOKEN}, follow_redirects=False)

        assert response.status_code == 303
        assert response.headers["location"] == "/"
        cookie = response.headers["set-cookie"]
        assert cookie.startswith(f"queryeval-review-{PORT}={TOKEN};")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert client.get("/").text == "<p>page</p>"


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/?token=%ff", "/cases", "/cases/0", "/nothing"])
def test_nothing_is_told_without_the_token(folder, path):
    write_shop([QUESTION])
    with client_of(gold_review(), has_token=False) as client:
        response = client.get(path)

    assert response.status_code == 403
    assert "cheapest" not in response.text


@pytest.mark.parametrize(
    "headers",
    [
        {"host": f"evil.test:{PORT}"},
        {"host": "127.0.0.1.evil.test"},
        {"host": "evil.test@127.0.0.1"},
        {"host": "[::1"},
        {"host": ""},
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"cookie": "queryeval-review-8778=wrong"},
        {"cookie": ""},
    ],
    ids=str,
)
def test_requests_of_other_pages_and_to_other_names_are_refused(client, headers):
    before = files()

    responses = [
        client.get("/cases", headers=headers),
        client.post("/cases/0/answer", json={"query": "SELECT 1"}, headers=headers),
        client.post("/cases/0/decision", json=WRONG, headers=headers),
    ]

    assert [response.status_code for response in responses] == [403, 403, 403]
    assert files() == before


def test_a_decision_without_an_origin_is_refused(client):
    del client.headers["origin"]

    assert client.get("/cases").status_code == 200
    assert client.post("/cases/0/decision", json=WRONG).status_code == 403


@pytest.mark.parametrize("host", [f"localhost:{PORT}", "localhost:9999", f"[::1]:{PORT}"])
def test_all_names_of_this_machine_lead_to_the_page(client, host):
    response = client.post("/cases/0/decision", json=WRONG, headers={"host": host, "origin": f"http://{host}"})

    assert response.status_code == 200


def test_answers_are_for_this_page_only(client):
    response = client.get("/cases")

    assert response.headers["cache-control"] == "no-store"
    assert response.headers["cross-origin-resource-policy"] == "same-origin"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


def test_the_page_loads_nothing_and_asks_its_own_server_only():
    page = html("Review of golds")
    policy = page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]

    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src &#39;self&#39;; " in policy
    assert " src=" not in page.partition("<script")[0]


def test_a_case_has_its_question_schema_golds_and_the_answers_of_systems(client):
    (entry,) = client.get("/cases", params={"reviewer": "anna"}).json()["cases"]
    case = client.get("/cases/0").json()

    assert entry == {
        "id": "cheapest",
        "nodeid": "s.queryeval.yaml::cheapest",
        "question": "Which products are cheapest?",
        "reasons": [],
        "decision": None,
        "stale": None,
        "conflict": False,
    }
    assert case["schema"] == "CREATE TABLE product (name TEXT, price REAL);"
    assert case["golds"] == [DEAREST]
    (answer,) = case["answers"]
    assert answer["systems"] == ["model a", "model b"]
    assert answer["item"] == {"query": CHEAPEST}


@pytest.mark.parametrize(
    ("request_", "rows", "outcome"),
    [
        ({"gold": 0}, [["fig"]], "passed"),
        ({"item": {"query": CHEAPEST}}, [["pear"], ["plum"]], "failed"),
        ({"query": f"```sql\n{CHEAPEST};\n```"}, [["pear"], ["plum"]], "failed"),
        ({"item": {"table": {"columns": ["n"], "rows": [["fig"]]}}}, [["fig"]], "passed"),
    ],
)
def test_a_query_is_run_as_a_prediction_is(client, request_, rows, outcome):
    answer = client.post("/cases/0/answer", json=request_).json()

    assert answer["predicted"]["sample"] == rows
    assert answer["outcome"] == outcome


def test_answers_to_a_question_without_one_are_run_too(folder):
    write_shop([{**QUESTION, "answerable": False}])
    with client_of(gold_review(CHEAPEST)) as client:
        case = client.get("/cases/0").json()
        answer = client.post("/cases/0/answer", json=case["answers"][0]["request"]).json()
        decision = client.post("/cases/0/decision", json=WRONG)

    assert case["golds"] == []
    assert answer["predicted"]["sample"] == [["pear"], ["plum"]]
    assert decision.json()["problem"].startswith("'cheapest' has `answerable: false`")


@pytest.mark.feature("json")
def test_an_answer_of_json_is_compared_and_appended_as_a_value(folder):
    write("kind: json\nreviews: reviews/*.jsonl\ncases:\n  - {id: a, gold: {n: 1}}\n  - {id: b, answerable: false}\n")
    with client_of(gold_review('{"n": 2}')) as client:
        case = client.get("/cases/0").json()
        answers = [client.post(f"/cases/{place}/answer", json={"query": '{"n": 3}'}).json() for place in range(2)]
        client.post("/cases/0/decision", json={**WRONG, "answers": [case["answers"][0]["item"], answers[0]["item"]]})

    assert [json.loads(gold) for gold in case["golds"]] == [{"n": 1}]
    assert answers[0]["difference"]["summary"] == "$.n: gold 1, predicted 3"
    assert answers[1]["predicted"]["query"] == '{"n": 3}'
    assert decisions()[0]["answers"] == [{"value": {"n": 2}}, {"value": {"n": 3}}]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("DELETE FROM product", "unsafe"),
        ("ATTACH 'other.db' AS o", "unsafe"),
        ("SELECT writefile('x', 'y')", "invalid"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "timeout"),
        ("", "empty"),
    ],
)
def test_a_written_query_only_reads_within_the_limits_of_the_case(folder, query, kind):
    write_shop([{**QUESTION, "timeout": 1} if kind == "timeout" else QUESTION])
    before = files()
    with client_of(gold_review()) as client:
        answer = client.post("/cases/0/answer", json={"query": query}).json()

    assert answer["predicted"]["error"]["kind"] == kind
    assert files() == before


def test_a_source_that_cannot_be_used_is_told(folder):
    write_shop([QUESTION])
    write("CREATE TABLE", "shop.sql")
    with client_of(gold_review()) as client:
        case, answer = client.get("/cases/0"), client.post("/cases/0/answer", json={"gold": 0})

    assert "incomplete input" in case.json()["schema"]
    assert answer.json()["outcome"] == "error"
    assert "incomplete input" in answer.json()["message"]


def test_a_decision_is_a_line_that_the_next_run_applies(client):
    status = client.post("/cases/0/decision", json={**WRONG, "note": "there are two"}).status_code

    assert status == 200
    (line,) = decisions()
    assert line["suite"] == "../s.queryeval.yaml"
    assert (line["case"], line["decision"], line["reviewer"], line["note"]) == (
        *("cheapest", "wrong"),
        *("anna", "there are two"),
    )
    (case,) = load_cases(".", require_prediction=False)
    assert [gold.query for gold in case.golds] == [CHEAPEST]


def test_each_reviewer_sees_only_what_they_decided(client):
    client.post("/cases/0/decision", json=WRONG)
    client.post("/cases/0/decision", json={"decision": "right", "reviewer": "ben", "note": "of ben"})
    responses = {name: client.get("/cases", params={"reviewer": name}).json() for name in ("anna", "ben", "cleo")}

    values = {name: response["cases"][0]["decision"] for name, response in responses.items()}
    assert values["anna"] == {"decision": "wrong", "answers": [{"query": CHEAPEST}]}
    assert values["ben"] == {"decision": "right", "answers": [], "note": "of ben"}
    assert values["cleo"] is None
    assert "of ben" not in json.dumps([responses["anna"], responses["cleo"], client.get("/cases/0").json()])


def test_where_reviewers_disagree_somebody_sees_why_and_settles_it(client):
    def conflicts():
        entry = [client.get("/cases", params={"reviewer": name}).json()["cases"][0] for name in ("anna", "cleo")]
        return [item["conflict"] for item in entry]

    client.post("/cases/0/decision", json=WRONG)
    alone = conflicts(), client.get("/cases/0/decisions").json()
    client.post("/cases/0/decision", json={"decision": "right", "reviewer": "ben", "note": "of ben"})
    disputed = conflicts(), client.get("/cases/0/decisions").json()
    client.post("/cases/0/decision", json={**WRONG, "reviewer": "cleo", "settles": True})

    assert alone == ([False, False], {"decisions": []})
    assert disputed == (
        [True, True],
        {
            "decisions": [
                {"decision": "wrong", "answers": [{"query": CHEAPEST}], "reviewer": "anna"},
                {"decision": "right", "answers": [], "note": "of ben", "reviewer": "ben"},
            ]
        },
    )
    assert conflicts() == [False, False]
    assert [line.get("settles") for line in decisions("reviews/cleo.jsonl")] == [True]
    assert load_cases(".", require_prediction=False)[0].review.reviewers == ("cleo",)


def test_blanks_around_a_name_are_no_part_of_it(client):
    for reviewer in ("anna", " anna "):
        client.post("/cases/0/decision", json={**WRONG, "reviewer": reviewer})

    assert [line["reviewer"] for line in decisions()] == ["anna", "anna"]


def test_the_last_decision_counts_and_what_stood_before_stays_in_the_file(client):
    for decision in (WRONG, {"decision": "unsure", "reviewer": "anna"}):
        client.post("/cases/0/decision", json=decision)

    assert [line["decision"] for line in decisions()] == ["wrong", "unsure"]
    assert client.get("/cases", params={"reviewer": "anna"}).json()["cases"][0]["decision"]["decision"] == "unsure"


def test_a_decision_on_another_question_is_stale(folder):
    suite = write_shop([QUESTION])
    with client_of(gold_review()) as client:
        client.post("/cases/0/decision", json=WRONG)
    suite.write_text(suite.read_text(encoding="utf-8").replace("cheapest?", "dearest?"), encoding="utf-8")
    with client_of(gold_review()) as client:
        (entry,) = client.get("/cases", params={"reviewer": "anna"}).json()["cases"]

    assert (entry["decision"], entry["stale"]) == (None, "wrong")


def test_settings_of_the_comparison_that_a_line_has_stay(client):
    client.post("/cases/0/decision", json={**WRONG, "compare": {"case": "ignore"}})

    (entry,) = client.get("/cases", params={"reviewer": "anna"}).json()["cases"]
    assert entry["decision"]["compare"] == {"case": "ignore"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"decision": "maybe"}, "decision"),
        ({"decision": None}, "decision"),
        ({"reviewer": ""}, "the name of a reviewer"),
        ({"reviewer": "a\nb"}, "the name of a reviewer"),
        ({"reviewer": None}, "the name of a reviewer"),
        ({"reviewer": True}, "the name of a reviewer"),
        ({"reviewer": 0}, "the name of a reviewer"),
        ({"reviewer": []}, "the name of a reviewer"),
        ({"reviewer": "\ud800"}, "the name of a reviewer"),
        ({"answers": "SELECT 1"}, "`answers` is a list"),
        ({"answers": [{"file": "/etc/passwd"}]}, "a right answer is an object with one key"),
        ({"answers": [{"query": "SELECT '\ud800'"}]}, "half of a character"),
        ({"answers": [{"value": 1}]}, "a right answer of the kind 'sql'"),
        ({"answers": [{"query": "SELECT '[redacted]'"}]}, "secrets were removed"),
        ({"decision": "unanswerable"}, "what is unanswerable has no `answers`"),
        ({"compare": {"case": "maybe"}}, "case"),
        ({"note": 5}, "note"),
        ({"settles": "yes"}, "settles"),
    ],
    ids=str,
)
def test_a_decision_that_a_suite_could_not_be_read_with_is_refused(client, change, problem):
    before = files()

    response = client.post("/cases/0/decision", content=json.dumps({**WRONG, **change}))

    assert response.status_code == 409
    assert problem in response.json()["problem"]
    assert files() == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000], ids=repr)
def test_a_body_that_is_no_object_is_refused(client, body):
    assert client.post("/cases/0/decision", content=body[:200_000]).status_code == 400


def test_a_body_that_is_too_large_is_refused(client):
    body = json.dumps({**WRONG, "note": "x" * 5_000_000})

    assert client.post("/cases/0/decision", content=body).status_code == 413


def test_a_case_that_there_is_not_is_a_problem(client):
    assert client.get("/cases/1").json() == {"problem": "there is no such case"}
    for place in ("-1", "one", "1" * 5_000, "\u0661"):
        assert client.get(f"/cases/{place}").status_code == 404


@pytest.mark.parametrize("reviewer", ["../../etc/anna", "/anna", "anna/../../x", "..", "a*b", "Anna B"])
def test_only_a_file_of_the_reviewer_is_written(client, folder, reviewer):
    before = files()

    response = client.post("/cases/0/decision", json={**WRONG, "reviewer": reviewer})

    assert response.status_code == 200
    (new,) = files().keys() - before.keys()
    assert Path(new).parent == Path("reviews")
    assert {name: content for name, content in files().items() if name != new} == before
    assert [line["reviewer"] for line in decisions(new)] == [reviewer]
    assert not any(path.name.startswith("anna") for path in folder.parent.iterdir() if path != folder)


def test_reviewers_who_decide_at_once_share_a_file_without_a_loss(folder):
    write_shop([QUESTION], head=HEAD.replace("reviews/*.jsonl", "reviews.jsonl"))
    review = gold_review()

    def decide(reviewer):
        with client_of(review) as client:
            decision = {"decision": "right", "reviewer": reviewer}
            return [client.post("/cases/0/decision", json={**decision, "note": str(n)}).status_code for n in range(50)]

    with ThreadPoolExecutor() as pool:
        assert [*pool.map(decide, ("anna", "ben"))] == [[200] * 50] * 2

    lines = decisions("reviews.jsonl")
    for reviewer in ("anna", "ben"):
        assert [line["note"] for line in lines if line["reviewer"] == reviewer] == [str(n) for n in range(50)]
    assert review.appended_lines() == ["reviews.jsonl: decisions on 1 case"]


@pytest.mark.process
@pytest.mark.long
def test_endless_queries_delay_neither_pages_nor_the_end_of_the_server(folder):
    write_shop([{**QUESTION, "timeout": 600}])  # longer than this test waits for anything
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    command = [sys.executable, "-m", "pytest_queryeval", "review", ".", "--serve=0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server,
        ThreadPoolExecutor(50) as clients,
        requests.Session() as browser,
    ):
        try:
            address = next(match[0] for line in server.stdout if (match := re.search(r"http:\S+", line)))
            browser.get(address)  # which sets the cookie
            url = address.partition("?")[0]
            browser.headers["Origin"] = url[:-1]

            queries = [clients.submit(browser.post, f"{url}cases/0/answer", json={"query": endless}) for _ in range(50)]
            wait_for(lambda: sum(query.done() for query in queries) == 50 - MAX_QUERIES)
            pages = [browser.get(url + path, timeout=60) for path in ("", "cases", "cases/0")]
            refused = [query.result() for query in queries if query.done()]
            server.send_signal(signal.SIGTERM)
            exit_status = server.wait(timeout=60)
        finally:
            server.kill()

    assert [page.status_code for page in pages] == [200, 200, 200]
    assert {answer.json()["problem"] for answer in refused} == {
        f"{MAX_QUERIES} queries are running: try again when one of them has ended"
    }
    assert exit_status == 0


def test_a_damaged_line_is_told_with_its_place(client):
    client.post("/cases/0/decision", json=WRONG)
    path = Path("reviews/anna.jsonl")
    path.write_text(path.read_text(encoding="utf-8") + '{"suite": "s"', encoding="utf-8")

    response = client.get("/cases", params={"reviewer": "anna"})

    assert response.status_code == 409
    assert response.json()["problem"].startswith("reviews/anna.jsonl:2:14: ")


def test_texts_of_suites_systems_and_review_files_are_data(folder):
    write_shop([{"id": "a", "question": MARKUP, "evidence": MARKUP, "gold": f"SELECT '{MARKUP}'"}])
    evidence = [{"kind": "systems", "text": MARKUP}]
    with client_of(gold_review(f"SELECT '</script>{MARKUP}'", systems=(MARKUP,), evidence=evidence)) as client:
        client.post("/cases/0/decision", json={"decision": "right", "reviewer": MARKUP, "note": MARKUP})
        responses = [
            client.get("/cases", params={"reviewer": MARKUP}),
            client.get("/cases/0"),
            client.post("/cases/0/answer", json={"gold": 0}),
        ]

    assert all(response.headers["content-type"] == "application/json" for response in responses)
    assert responses[0].json()["cases"][0]["decision"]["note"] == MARKUP


def test_a_suite_without_review_files_is_refused_before_any_query_runs(folder, capsys):
    write_shop([QUESTION], head="kind: sql\nsource: {sqlite: {script: nothing.sql}}\n")

    with pytest.raises(SystemExit) as exit_:
        main(["review", ".", "--serve"])

    assert exit_.value.code == 2
    assert capsys.readouterr().err.endswith("add to s.queryeval.yaml: reviews: reviews.jsonl\n")


def test_without_the_extra_and_without_a_review_file_the_command_names_both(folder, monkeypatch, capsys):
    write_shop([QUESTION], head="kind: sql\nsource: {sqlite: {script: nothing.sql}}\n")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "pytest_queryeval.features.review.page.server")

    with pytest.raises(SystemExit) as exit_:
        main(["review", ".", "--serve"])

    assert exit_.value.code == 2
    needs = "--serve needs uvicorn: pip install 'pytest-queryeval[review]'; no review file for s.queryeval.yaml: add to"
    assert capsys.readouterr().err.endswith(f"{needs} s.queryeval.yaml: reviews: reviews.jsonl\n")


def test_a_port_that_is_taken_is_a_problem(folder):
    write_shop([QUESTION])
    messages = []

    def serve_again(message):
        messages.append(message)
        port = int(message.partition("127.0.0.1:")[2].partition("/")[0])
        serve_review(gold_review(), title="", port=port, tell=messages.append)

    with pytest.raises(ReportError, match=r"--serve \d+: Address already in use: name another port"):
        serve(gold_review(), "", port=None, tell=serve_again)
    assert len(messages) == 1
    assert messages[0].startswith("open http://127.0.0.1:")
    assert ADDRESS.rpartition(":")[0] in messages[0]
