"""Judging the answers that an audit drew: nothing of gold, verdict or system is told."""

import json
from pathlib import Path

import pytest
from features.review.review_pages import CHEAPEST, client_of, write_shop
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import CaseError, ReportError
from pytest_queryeval.features.review.page.reviewed import AuditReview  # white box: a server in this process
from pytest_queryeval.results.audit_file import AnswerName, read_audit  # white box: judgements as audits read them

AT = "2026-11-01T00:00:00Z"
SECRET_GOLD = "SELECT 'only gold has this'"
CASES = [
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


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shop(CASES)
    write("".join(f"{json.dumps(line)}\n" for line in drawn_lines()), "audit.jsonl")
    with client_of(AuditReview(Path("audit.jsonl"))) as client:
        yield client


def drawn_lines():
    for id_, predictions in DRAWN:
        yield {
            "case": id_,
            "nodeid": f"s.queryeval.yaml::{id_}",
            "stratum": "passed-by-model-a",
            "probability": 0.5,
            "predictions": predictions,
        }


def samples(client):
    answers = [client.post(f"/cases/{place}/answer", json={}) for place in range(5)]
    return [answer.json()["predicted"].get("sample") for answer in answers]


def judge(client, place, judgement, reviewer="anna"):
    return client.post(f"/cases/{place}/decision", json={"decision": judgement, "reviewer": reviewer})


def test_each_answer_is_shown_by_its_question_and_query_alone(client):
    overview = client.get("/cases", params={"reviewer": "anna"})
    cases = [client.get(f"/cases/{place}") for place in range(5)]
    answers = [client.post(f"/cases/{place}/answer", json={}) for place in range(5)]

    assert [item["id"] for item in overview.json()["cases"]] == ["a", "a", "b", "c", "d"]
    assert [case.json()["answers"][0]["query"] for case in cases] == [
        CHEAPEST,
        "SELECT nam FROM product",
        None,
        "SELECT 1",
        "SELECT 2",
    ]
    assert answers[0].json()["predicted"]["sample"] == [["pear"], ["plum"]]
    assert answers[1].json()["predicted"]["error"]["kind"] == "invalid"
    assert answers[2].json()["predicted"]["sample"] == [["fig", None], ["pear", "#2"]]
    assert [answer.json()["predicted"]["sample"] for answer in answers[3:]] == [[["#1"]], [["#2"]]]
    lines = "".join(response.text for response in (overview, *cases, *answers))
    assert [word for word in ("only gold", "nowhere", "passed", "failed", "model", "stratum") if word in lines] == []


@pytest.mark.parametrize(("row_count", "shape"), [(2, "2 rows of 2 columns"), (1_500, "the first 2 of 1,500 rows")])
def test_the_page_says_of_how_many_rows_it_shows_the_first(client, row_count, shape):
    lines = [*drawn_lines()]
    lines[1]["predictions"] = {"33": {"table": {**TABLE, "row_count": row_count}}}
    write("".join(f"{json.dumps(line)}\n" for line in lines), "audit.jsonl")

    with client_of(AuditReview(Path("audit.jsonl"))) as client_of_tables:
        predicted = client_of_tables.post("/cases/2/answer", json={}).json()["predicted"]

    assert (predicted["shape"], predicted["more"]) == (shape, "")
    assert predicted["sample"] == [["fig", None], ["pear", "#2"]]


def test_decisions_on_golds_change_no_answer(client):
    undecided = samples(client)
    decisions = {"a": "wrong", "b": "right", "c": "ambiguous", "d": "unanswerable"}
    for id_, decision in decisions.items():
        line = {"suite": "../s.queryeval.yaml", "case": id_, "decision": decision, "reviewer": "ben", "at": AT}
        write(json.dumps(line), f"reviews/{id_}.jsonl")

    with client_of(AuditReview(Path("audit.jsonl"))) as client_of_decided:
        assert samples(client_of_decided) == undecided


def test_judgements_are_appended_and_only_their_reviewer_sees_them(client):
    before = Path("audit.jsonl").read_text(encoding="utf-8")
    statuses = [
        judge(client, 0, "wrong"),
        judge(client, 0, "right"),
        judge(client, 2, "unclear"),
        judge(client, 1, "wrong", "ben"),
    ]

    assert [response.status_code for response in statuses] == [200] * 4
    assert Path("audit.jsonl").read_text(encoding="utf-8").startswith(before)
    assert read_audit(Path("audit.jsonl")).judgements == {
        AnswerName("s.queryeval.yaml::a", "11"): {"anna": "right"},
        AnswerName("s.queryeval.yaml::a", "22"): {"ben": "wrong"},
        AnswerName("s.queryeval.yaml::b", "33"): {"anna": "unclear"},
    }
    judgements = [item["decision"] for item in client.get("/cases", params={"reviewer": "anna"}).json()["cases"]]
    assert judgements == [{"decision": "right"}, None, {"decision": "unclear"}, None, None]


@pytest.mark.usefixtures("client")
def test_the_last_line_counts_the_answers_that_were_judged():
    review = AuditReview(Path("audit.jsonl"))
    with client_of(review) as client:
        judge(client, 0, "wrong")
        judge(client, 0, "right")

    assert review.appended_lines() == ["audit.jsonl: judgements on 1 answer"]


@pytest.mark.parametrize(
    ("judgement", "reviewer"), [("maybe", "anna"), (None, "anna"), ("right", ""), ("right", "a\n")]
)
def test_what_is_no_judgement_is_refused(client, judgement, reviewer):
    before = Path("audit.jsonl").read_bytes()

    assert judge(client, 0, judgement, reviewer).status_code == 409
    assert Path("audit.jsonl").read_bytes() == before


def test_a_damaged_line_is_told_with_its_place(client):
    path = Path("audit.jsonl")
    path.write_text(path.read_text(encoding="utf-8") + "{}\n", encoding="utf-8")

    assert client.get("/cases").json()["problem"].startswith("audit.jsonl:5: ")
    with pytest.raises(CaseError, match=r"audit.jsonl:5: "):
        AuditReview(path)


def test_a_case_that_is_gone_is_a_problem(client):
    Path("s.queryeval.yaml").rename("t.queryeval.yaml")

    with pytest.raises(ReportError, match=r"no file s.queryeval.yaml from here"):
        AuditReview(Path("audit.jsonl"))


@pytest.mark.parametrize("name", ["../elsewhere/s.queryeval.yaml", "link.queryeval.yaml"])
def test_a_suite_elsewhere_is_not_read_and_no_conftest_beside_it(tmp_path, monkeypatch, name):
    write("cases: []\n", tmp_path / "elsewhere" / "s.queryeval.yaml")
    write("raise SystemExit('imported')\n", tmp_path / "elsewhere" / "conftest.py")
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    Path("link.queryeval.yaml").symlink_to("../elsewhere/s.queryeval.yaml")
    (line, *_) = drawn_lines()
    write(json.dumps({**line, "nodeid": f"{name}::a"}), "audit.jsonl")

    with pytest.raises(ReportError, match=r"queryeval.yaml: is not below the current folder"):
        AuditReview(Path("audit.jsonl"))


@pytest.mark.parametrize("arguments", [["--audit", "audit.jsonl"], []])
def test_arguments_that_do_not_fit_are_refused(client, arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["review", *arguments])

    assert exit_.value.code == 2
    assert capsys.readouterr().err.startswith(("--audit audit.jsonl: add --serve", "name a suite file"))
