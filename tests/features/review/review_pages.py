"""Golds to review, and a server for them in this process."""

import json
from contextlib import contextmanager

from starlette.testclient import TestClient
from suites import write

from pytest_queryeval.core.model import Execution
from pytest_queryeval.features.review.answers import AnswerGroup  # white box: answers without reports
from pytest_queryeval.features.review.page.reviewed import GoldReview  # white box: a server in this process
from pytest_queryeval.features.review.page.server import application  # white box: likewise
from pytest_queryeval.features.review.ranking import RankedCase  # white box: answers without reports
from pytest_queryeval.suites import load_suites

TOKEN, PORT = "token-of-the-test", 8778
ADDRESS = f"http://127.0.0.1:{PORT}"
SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews/*.jsonl\n"
DEAREST = "SELECT name FROM product ORDER BY price DESC LIMIT 1"
CHEAPEST = "SELECT name FROM product WHERE price = (SELECT min(price) FROM product)"


def write_shop(cases, head=HEAD):
    """A suite in the current folder, and its database."""
    write(SHOP, "shop.sql")
    gold = {"gold": DEAREST}
    lines = [f"  - {json.dumps(case if 'answerable' in case else gold | case)}\n" for case in cases]
    return write(f"{head}cases:\n{''.join(lines)}")


def gold_review(*queries, systems=("model a", "model b"), evidence=()):
    """The review of the golds of the suites in the current folder; systems answer each case by these queries."""
    suites = {
        f"{suite.path.name}::{case.id}": (suite, case)
        for suite in load_suites(".", require_prediction=False)
        for case in suite.cases
    }
    ranking = [
        RankedCase(
            case=case,
            nodeid=nodeid,
            evidence=list(evidence),
            answers=[
                AnswerGroup(case=case, execution=Execution(query=query), systems=tuple(systems), queries=(query,))
                for query in queries
            ],
            signs={},
        )
        for nodeid, (_, case) in suites.items()
    ]
    return GoldReview(ranking, {nodeid: suite for nodeid, (suite, _) in suites.items()})


@contextmanager
def client_of(review, page="<p>page</p>", *, has_token=True):
    """A client of a review's server, which has come by the address that the server tells."""
    client = TestClient(application(review, page, token=TOKEN, port=PORT), base_url=ADDRESS)
    if has_token:
        client.get("/", params={"token": TOKEN})
        client.headers["origin"] = ADDRESS
    try:
        yield client
    finally:
        review.close()
