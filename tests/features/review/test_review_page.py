"""The page of `queryeval review --serve`, on which golds, and answers of an audit, are reviewed: its server."""

import json
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from features.review.review_pages import CHEAPEST, DEAREST, HEAD, decisions, served, write_shop, write_system
from report_parts import refusal
from suites import write
from waiting import wait_for

from pytest_queryeval import load_cases
from pytest_queryeval.cli import main

pytestmark = pytest.mark.usefixtures("working_folder")

QUESTION = {"id": "cheapest", "question": "Which products are cheapest?"}
WRONG = {"decision": "wrong", "answers": [{"query": CHEAPEST}], "reviewer": "anna"}
MARKUP = "<img src=//host.test/x onerror=alert(1)>"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
MAX_QUERIES = 8  # at once


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with served_shop() as client:
            yield client, folder


@pytest.fixture
def client(shared_client, monkeypatch):
    """A client for tests that change no file, of one gold, to which two systems have another answer."""
    client, folder = shared_client
    monkeypatch.chdir(folder)
    return client


@pytest.fixture
def own_client(working_folder):
    """Such a client with review files of its own."""
    with served_shop() as client:
        yield client


def served_shop(*cases, head=HEAD, **options):
    """Serve the shop in the current folder, with two systems that answer `cheapest`."""
    write_shop(cases or [QUESTION], head)
    systems = [write_system(f"model {name}", {"cheapest": CHEAPEST}) for name in "ab"]
    return served(".", *systems if not cases else (), **options)


def decide(client, decision=WRONG, **changes):
    return client.post("/cases/0/decision", json={**decision, **changes})


def listed(client, reviewer="anna"):
    (entry,) = client.get("/cases", params={"reviewer": reviewer}).json()["cases"]
    return entry


def run(client, request, place=0):
    return client.post(f"/cases/{place}/answer", json=request).json()


def files():
    return {path.as_posix(): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


# Who may ask


def test_the_token_moves_from_the_address_into_a_cookie_that_no_script_and_no_other_site_gets():
    with served_shop(QUESTION, has_token=False) as client:
        paths = ("/", "/?token=wrong", "/?token=%ff", "/cases", "/cases/0", "/nothing")
        refused = [client.get(path) for path in paths]
        response = client.get("/", params={"token": client.token}, follow_redirects=False)
        page = client.get("/").text

    assert {response.status_code for response in refused} == {403}
    assert not any("cheapest" in response.text for response in refused)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"queryeval-review-{client.address.port}={client.token};")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    policy = page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src &#39;self&#39;; " in policy
    assert " src=" not in page.partition("<script")[0]


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.test:{port}"},
        {"host": "127.0.0.1.evil.test"},
        {"host": "evil.test@127.0.0.1"},
        {"host": "[::1"},
        {"host": ""},
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"cookie": "queryeval-review-{port}=wrong"},
        {"cookie": ""},
    ],
    ids=str,
)
def test_requests_of_other_pages_and_to_other_names_are_refused(client, headers):
    before, headers = files(), {name: text.format(port=client.address.port) for name, text in headers.items()}

    responses = [
        client.get("/cases", headers=headers),
        client.post("/cases/0/answer", json={"query": "SELECT 1"}, headers=headers),
        client.post("/cases/0/decision", json=WRONG, headers=headers),
    ]

    assert [response.status_code for response in responses] == [403, 403, 403]
    assert files() == before


def test_only_the_page_under_any_name_of_this_machine_decides(own_client):
    port, origin = own_client.address.port, own_client.headers.pop("origin")
    assert own_client.get("/cases").status_code == 200
    assert decide(own_client).status_code == 403

    for host in (f"localhost:{port}", "localhost:9999", f"[::1]:{port}"):
        headers = {"host": host, "origin": f"http://{host}"}
        assert own_client.post("/cases/0/decision", json=WRONG, headers=headers).status_code == 200
    own_client.headers["origin"] = origin
    response = own_client.get("/cases")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["cross-origin-resource-policy"] == "same-origin"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


# Cases and answers


def test_a_case_has_its_question_schema_golds_and_the_answers_of_systems(client):
    case = client.get("/cases/0").json()

    assert listed(client) == {
        "id": "cheapest",
        "nodeid": "s.queryeval.yaml::cheapest",
        "question": "Which products are cheapest?",
        "reasons": ["systems", "edit"],
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
    answer = run(client, request_)

    assert (answer["predicted"]["sample"], answer["outcome"]) == (rows, outcome)


def test_answers_to_a_question_without_one_are_run_too():
    write_shop([{**QUESTION, "answerable": False}])
    with served(".", write_system("a", {"cheapest": CHEAPEST})) as client:
        case = client.get("/cases/0").json()
        answer, decision = run(client, case["answers"][0]["request"]), decide(client)

    assert case["golds"] == []
    assert answer["predicted"]["sample"] == [["pear"], ["plum"]]
    assert decision.json()["problem"].startswith("'cheapest' has `answerable: false`")


@pytest.mark.feature("json")
def test_an_answer_of_json_is_compared_and_appended_as_a_value():
    write("kind: json\nreviews: reviews/*.jsonl\ncases:\n  - {id: a, gold: {n: 1}}\n  - {id: b, answerable: false}\n")
    with served(".", write_system("a", {"a": '{"n": 2}'})) as client:
        case = client.get("/cases/0").json()
        answers = [run(client, {"query": '{"n": 3}'}, place) for place in range(2)]
        decide(client, answers=[case["answers"][0]["item"], answers[0]["item"]])

    assert [json.loads(gold) for gold in case["golds"]] == [{"n": 1}]
    assert answers[0]["difference"]["summary"] == "$.n: gold 1, predicted 3"
    assert answers[1]["predicted"]["query"] == '{"n": 3}'
    assert decisions()[0]["answers"] == [{"value": {"n": 2}}, {"value": {"n": 3}}]


def test_a_written_query_only_reads_within_the_limits_of_the_case():
    with served_shop({**QUESTION, "timeout": 0.5}) as client:
        before = files()
        kinds = {
            query: run(client, {"query": query})["predicted"]["error"]["kind"]
            for query in ("DELETE FROM product", "ATTACH 'other.db' AS o", "SELECT writefile('x', 'y')", ENDLESS, "")
        }

        assert [*kinds.values()] == ["unsafe", "unsafe", "invalid", "timeout", "empty"]
        assert files() == before


def test_a_source_that_cannot_be_used_is_told():
    write_shop([QUESTION])
    write("CREATE TABLE", "shop.sql")
    with served() as client:
        case, answer = client.get("/cases/0").json(), run(client, {"gold": 0})

    assert "incomplete input" in case["schema"]
    assert answer["outcome"] == "error"
    assert "incomplete input" in answer["message"]


# Decisions


def test_a_decision_is_a_line_that_the_next_run_applies(own_client):
    compare = {"case": "ignore"}

    assert decide(own_client, note="there are two", reviewer=" anna ", compare=compare).status_code == 200

    (line,) = decisions()
    assert line.pop("gold").startswith("sha256:")
    assert line.pop("at").endswith("Z")
    assert line == {
        "suite": "../s.queryeval.yaml",
        "case": "cheapest",
        **WRONG,
        "note": "there are two",
        "compare": compare,
    }
    assert listed(own_client)["decision"]["compare"] == compare
    (case,) = load_cases(".", require_prediction=False)
    assert [gold.query for gold in case.golds] == [CHEAPEST]


def test_each_reviewer_sees_only_what_they_decided_last(own_client):
    decide(own_client)
    decide(own_client, {"decision": "right", "reviewer": "ben", "note": "of ben"})
    found = {name: listed(own_client, name) for name in ("anna", "ben", "cleo")}

    assert {name: entry["decision"] for name, entry in found.items()} == {
        "anna": {"decision": "wrong", "answers": [{"query": CHEAPEST}]},
        "ben": {"decision": "right", "answers": [], "note": "of ben"},
        "cleo": None,
    }
    assert "of ben" not in json.dumps([found["anna"], found["cleo"], own_client.get("/cases/0").json()])
    decide(own_client, {"decision": "unsure", "reviewer": "anna"})
    assert [line["decision"] for line in decisions()] == ["wrong", "unsure"]
    assert listed(own_client)["decision"]["decision"] == "unsure"


def test_where_reviewers_disagree_somebody_sees_why_and_settles_it(own_client):
    def conflict():
        (now,) = {listed(own_client, name)["conflict"] for name in ("anna", "cleo")}
        return now, own_client.get("/cases/0/decisions").json()["decisions"]

    decide(own_client)
    alone = conflict()
    decide(own_client, {"decision": "right", "reviewer": "ben", "note": "of ben"})
    disputed = conflict()
    decide(own_client, reviewer="cleo", settles=True)

    assert alone == (False, [])
    assert disputed == (
        True,
        [
            {"decision": "wrong", "answers": [{"query": CHEAPEST}], "reviewer": "anna"},
            {"decision": "right", "answers": [], "note": "of ben", "reviewer": "ben"},
        ],
    )
    assert conflict() == (False, [])
    assert [line.get("settles") for line in decisions("reviews/cleo.jsonl")] == [True]
    assert load_cases(".", require_prediction=False)[0].review.reviewers == ("cleo",)


def test_a_decision_on_another_question_is_stale():
    suite = write_shop([QUESTION])
    with served() as client:
        decide(client)
        assert listed(client)["stale"] is None
    suite.write_text(suite.read_text(encoding="utf-8").replace("cheapest?", "dearest?"), encoding="utf-8")
    with served() as client:
        entry = listed(client)

    assert (entry["decision"], entry["stale"]) == (None, "wrong")


NAME = "the name of a reviewer"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"decision": "maybe"}, "decision"),
        ({"decision": None}, "decision"),
        *(({"reviewer": name}, NAME) for name in ("", "a\nb", None, True, 0, [], "\ud800")),
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


def test_requests_that_have_no_form_are_refused(client):
    bodies = (b"", b"[]", b"{", b"\xff", b"[" * 200_000)
    too_large = json.dumps({**WRONG, "note": "x" * 5_000_000})

    assert [client.post("/cases/0/decision", content=body).status_code for body in bodies] == [400] * 5
    assert client.post("/cases/0/decision", content=too_large).status_code == 413
    assert client.get("/cases/1").json() == {"problem": "there is no such case"}
    places = ("-1", "one", "1" * 5_000, "\u0661")
    assert [client.get(f"/cases/{place}").status_code for place in places] == [404] * 4


def test_only_a_file_of_the_reviewer_is_written(own_client, working_folder):
    for reviewer in ("../../etc/anna", "/anna", "anna/../../x", "..", "a*b", "Anna B"):
        before = files()

        assert decide(own_client, reviewer=reviewer).status_code == 200

        changed = [name for name, content in files().items() if before.get(name) != content]
        assert [Path(name).parent for name in changed] == [Path("reviews")]
        assert decisions(changed[0])[-1]["reviewer"] == reviewer
        assert not any(
            path.name.startswith("anna") for path in working_folder.parent.iterdir() if path != working_folder
        )


def test_reviewers_who_decide_at_once_share_a_file_without_a_loss():
    with served_shop(QUESTION, head=HEAD.replace("reviews/*.jsonl", "reviews.jsonl")) as client:

        def decide_often(reviewer):
            right = {"decision": "right", "reviewer": reviewer}
            return [decide(client, right, note=str(n)).status_code for n in range(50)]

        with ThreadPoolExecutor() as pool:
            assert [*pool.map(decide_often, ("anna", "ben"))] == [[200] * 50] * 2

    lines = decisions("reviews.jsonl")
    for reviewer in ("anna", "ben"):
        assert [line["note"] for line in lines if line["reviewer"] == reviewer] == [str(n) for n in range(50)]
    assert client.printed.getvalue().endswith("reviews.jsonl: decisions on 1 case\n")


def test_a_damaged_line_is_told_with_its_place(own_client):
    decide(own_client)
    path = Path("reviews/anna.jsonl")
    path.write_text(path.read_text(encoding="utf-8") + '{"suite": "s"', encoding="utf-8")

    response = own_client.get("/cases", params={"reviewer": "anna"})

    assert response.status_code == 409
    assert response.json()["problem"].startswith("reviews/anna.jsonl:2:14: ")


def test_texts_of_suites_systems_and_review_files_are_data():
    write_shop([{"id": "a", "question": MARKUP, "evidence": MARKUP, "gold": f"SELECT '{MARKUP}'"}])
    with served(".", write_system(MARKUP, {"a": f"SELECT '</script>{MARKUP}'"}, "a.json")) as client:
        decide(client, {"decision": "right", "reviewer": MARKUP, "note": MARKUP})
        responses = [
            client.get("/cases", params={"reviewer": MARKUP}),
            client.get("/cases/0"),
            client.post("/cases/0/answer", json={"gold": 0}),
        ]

    assert all(response.headers["content-type"] == "application/json" for response in responses)
    assert responses[0].json()["cases"][0]["decision"]["note"] == MARKUP


# The server


@pytest.mark.process
@pytest.mark.long
def test_endless_queries_delay_neither_pages_nor_the_end_of_the_server():
    write_shop([{**QUESTION, "timeout": 600}])  # longer than this test waits for anything
    command = [sys.executable, "-m", "pytest_queryeval", "review", ".", "--serve=0"]
    number = MAX_QUERIES + 4
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server,
        ThreadPoolExecutor(number) as clients,
        requests.Session() as browser,
    ):
        try:
            address = next(match[0] for line in server.stdout if (match := re.search(r"http:\S+", line)))
            browser.get(address)  # which sets the cookie
            url = address.partition("?")[0]
            browser.headers["Origin"] = url[:-1]

            queries = [
                clients.submit(browser.post, f"{url}cases/0/answer", json={"query": ENDLESS}) for _ in range(number)
            ]
            wait_for(lambda: sum(query.done() for query in queries) == number - MAX_QUERIES)
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


def test_without_the_extra_and_without_a_review_file_the_command_names_both(monkeypatch):
    write_shop([QUESTION], head="kind: sql\nsource: {sqlite: {script: nothing.sql}}\n")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "pytest_queryeval.features.review.page.server", raising=False)

    needs = "--serve needs uvicorn: pip install 'pytest-queryeval[review]'; no review file for s.queryeval.yaml: add to"
    assert refusal("review", ".", "--serve").endswith(f"{needs} s.queryeval.yaml: reviews: reviews.jsonl")


def test_another_server_takes_a_free_port_and_a_port_that_is_taken_is_a_problem():
    with served_shop(QUESTION) as client, served(".") as second:
        port = client.address.port
        assert second.address.port != port
        with pytest.raises(SystemExit, match="2"):
            main(["review", ".", f"--serve={port}"])

    assert f"--serve {port}: Address already in use: name another port\n" in second.printed.getvalue()


# The answers of an audit


SECRET_GOLD = "SELECT 'only gold has this'"
AUDITED = [
    {"id": "a", "question": "Which are cheapest?", "gold": SECRET_GOLD},
    {"id": "b", "question": "Which are dearest?", "gold": SECRET_GOLD},
    {"id": "c", "question": "Who?", "gold": "SELECT nothing FROM nowhere"},
    {"id": "d", "question": "Why?", "answerable": False},
]
TABLE = {"columns": ["n", "m"], "rows": [["fig", None], ["pear", 2]]}
DRAWN = [
    ("a", {"11": {"query": CHEAPEST}, "22": {"query": "SELECT nam FROM product"}}),
    ("b", {"33": {"table": TABLE}}),
    ("c", {"44": {"query": "SELECT 1"}}),
    ("d", {"55": {"query": "SELECT 2"}}),
]


def drawn(**predictions):
    """The lines of an audit; a case of `predictions` has these."""
    about = {"stratum": "passed-by-model-a", "probability": 0.5}
    for id_, own in DRAWN:
        nodeid = f"s.queryeval.yaml::{id_}"
        yield {"case": id_, "nodeid": nodeid, **about, "predictions": predictions.get(id_, own)}


def write_audit(lines):
    write("".join(f"{json.dumps(line)}\n" for line in lines), "audit.jsonl")


@pytest.fixture
def auditing():
    write_shop(AUDITED)
    write_audit(drawn())
    with served("--audit", "audit.jsonl") as client:
        yield client


def judge(client, place, judgement, reviewer="anna"):
    return client.post(f"/cases/{place}/decision", json={"decision": judgement, "reviewer": reviewer})


def test_each_answer_is_shown_by_its_question_and_query_alone_whatever_was_decided_on_golds(auditing):
    overview = auditing.get("/cases", params={"reviewer": "anna"})
    cases = [auditing.get(f"/cases/{place}") for place in range(5)]
    answers = [auditing.post(f"/cases/{place}/answer", json={}) for place in range(5)]
    for id_, decision in {"a": "wrong", "b": "right", "c": "ambiguous", "d": "unanswerable"}.items():
        line = {"suite": "../s.queryeval.yaml", "case": id_, "decision": decision, "reviewer": "ben"}
        write(json.dumps({**line, "at": "2026-11-01T00:00:00Z"}), f"reviews/{id_}.jsonl")
    with served("--audit", "audit.jsonl") as decided:
        again = [decided.post(f"/cases/{place}/answer", json={}) for place in range(5)]

    assert [item["id"] for item in overview.json()["cases"]] == ["a", "a", "b", "c", "d"]
    queries = [CHEAPEST, "SELECT nam FROM product", None, "SELECT 1", "SELECT 2"]
    assert [case.json()["answers"][0]["query"] for case in cases] == queries
    samples = [[["pear"], ["plum"]], [], [["fig", None], ["pear", "#2"]], [["#1"]], [["#2"]]]
    for answered in (answers, again):
        assert [answer.json()["predicted"].get("sample") or [] for answer in answered] == samples
        assert answered[1].json()["predicted"]["error"]["kind"] == "invalid"
    lines = "".join(response.text for response in (overview, *cases, *answers))
    assert [word for word in ("only gold", "nowhere", "passed", "failed", "model", "stratum") if word in lines] == []


@pytest.mark.parametrize(("row_count", "shape"), [(2, "2 rows of 2 columns"), (1_500, "the first 2 of 1,500 rows")])
def test_the_page_says_of_how_many_rows_it_shows_the_first(row_count, shape):
    write_shop(AUDITED)
    write_audit(drawn(b={"33": {"table": {**TABLE, "row_count": row_count}}}))

    with served("--audit", "audit.jsonl") as client:
        predicted = run(client, {}, 2)["predicted"]

    assert (predicted["shape"], predicted["more"]) == (shape, "")
    assert predicted["sample"] == [["fig", None], ["pear", "#2"]]


def test_judgements_are_appended_and_only_their_reviewer_sees_them(auditing):
    before = decisions("audit.jsonl")
    judgements = [(0, "wrong"), (0, "right"), (2, "unclear"), (1, "wrong", "ben")]

    assert [judge(auditing, *judgement).status_code for judgement in judgements] == [200] * 4
    refused = [("maybe", "anna"), (None, "anna"), ("right", ""), ("right", "a\n")]
    assert [judge(auditing, 0, *judgement).status_code for judgement in refused] == [409] * 4

    lines = decisions("audit.jsonl")
    assert lines[: len(before)] == before
    names = ("case", "prediction", "judgement", "reviewer")
    assert [tuple(line.get(name) for name in names) for line in lines[len(before) :]] == [
        ("a", "11", "wrong", "anna"),
        ("a", "11", "right", "anna"),
        ("b", None, "unclear", "anna"),  # its only answer
        ("a", "22", "wrong", "ben"),
    ]
    listing = auditing.get("/cases", params={"reviewer": "anna"}).json()["cases"]
    assert [item["decision"] for item in listing] == [{"decision": "right"}, None, {"decision": "unclear"}, None, None]


def test_the_last_line_counts_the_answers_that_were_judged_and_a_damaged_line_is_told_with_its_place():
    write_shop(AUDITED)
    write_audit(drawn())
    with served("--audit", "audit.jsonl") as client:
        judge(client, 0, "wrong")
        judge(client, 0, "right")
        path = Path("audit.jsonl")
        path.write_text(path.read_text(encoding="utf-8") + "{}\n", encoding="utf-8")
        problem = client.get("/cases").json()["problem"]

    assert client.printed.getvalue().endswith("audit.jsonl: judgements on 1 answer\n")
    assert problem.startswith("audit.jsonl:7: ")
    assert refusal("review", "--audit", "audit.jsonl", "--serve").startswith("audit.jsonl:7: ")


def test_what_cannot_be_judged_is_refused(working_folder, monkeypatch):
    write_shop(AUDITED)
    write("cases: []\n", working_folder / "elsewhere" / "s.queryeval.yaml")
    write("raise SystemExit('imported')\n", working_folder / "elsewhere" / "conftest.py")
    write_audit(drawn())
    assert refusal("review", "--audit", "audit.jsonl").startswith("--audit audit.jsonl: add --serve")
    assert refusal("review").startswith("name a suite file")
    Path("s.queryeval.yaml").rename("t.queryeval.yaml")
    assert "no file s.queryeval.yaml from here" in refusal("review", "--audit", "audit.jsonl", "--serve")

    (working_folder / "run").mkdir()
    monkeypatch.chdir("run")
    Path("link.queryeval.yaml").symlink_to("../elsewhere/s.queryeval.yaml")
    for name in ("../elsewhere/s.queryeval.yaml", "link.queryeval.yaml"):
        write_audit([{**next(drawn()), "nodeid": f"{name}::a"}])
        assert "queryeval.yaml: is not below the current folder" in refusal(
            "review", "--audit", "audit.jsonl", "--serve"
        )
