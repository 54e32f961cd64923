"""Suites and reports to review, and the page of `queryeval review --serve`, served in this process."""

import io
import json
import os
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from urllib.parse import parse_qs, urlsplit

import pytest
from report_parts import part
from samples import entry
from starlette.testclient import TestClient
from suites import write

from pytest_queryeval import load_cases
from pytest_queryeval.cli import main

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews/*.jsonl\n"
DEAREST = "SELECT name FROM product ORDER BY price DESC LIMIT 1"
CHEAPEST = "SELECT name FROM product WHERE price = (SELECT min(price) FROM product)"
NOT_RUN = {"columns": None, "row_count": None, "sample": [], "seconds": 0.0}


def write_shop(cases, head=HEAD):
    """A suite in the current folder, and its database."""
    write(SHOP, "shop.sql")
    gold = {"gold": DEAREST}
    lines = [f"  - {json.dumps(case if 'answerable' in case else gold | case)}\n" for case in cases]
    return write(f"{head}cases:\n{''.join(lines)}")


def write_system(name, answers, path=None, **changes):
    """Write the report of a system that answers the cases in the current folder by the ids of `answers`.

    An answer is a query, None if the report does not have it, or fields of its case.
    """
    entries = []
    for case in load_cases(".", require_prediction=False):
        if case.id not in answers:
            continue
        answer = answers[case.id]
        fields = {"question": case.question, "evidence": case.evidence, "kind": case.settings.kind}
        fields |= {"prediction": {"source": name, "seconds": 0.0, "metadata": {}}}
        if isinstance(answer, str):
            fields["predicted"] = {"query": answer, **NOT_RUN, "error": None}
        elif answer is not None:
            fields |= answer
        entries.append(entry(id=case.id, path=os.path.relpath(case.location.path), **fields, **changes))
    path = path or f"{name}.json"
    write(json.dumps(part(*entries, name=name)), path)
    return path


class Client(TestClient):
    """A client of the page, with the address that the command told, and what it has printed."""

    def __init__(self, app, printed):
        self.address, self.printed = urlsplit(printed.getvalue().partition("open ")[2].split()[0]), printed
        super().__init__(app, base_url=f"http://{self.address.netloc}")

    @property
    def token(self):
        return parse_qs(self.address.query)["token"][0]


@contextmanager
def served(*arguments, has_token=True):
    """A client of the page that `queryeval review … --serve` serves until the block ends."""
    ready, end, printed = Queue(), Event(), io.StringIO()

    def run(server, sockets):
        ready.put(server.config.app)
        end.wait()

    def review():
        try:
            main(["review", *(arguments or ["."]), "--serve"])
        except BaseException as error:  # noqa: BLE001 - such as a skip, which belongs to the test
            ready.put(error)

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.setattr("uvicorn.Server.run", run)
        command = Thread(target=review)
        command.start()
        try:
            app = ready.get(timeout=100)
            if isinstance(app, BaseException):
                raise app
            client = Client(app, printed)
            if has_token:
                client.get("/", params={"token": client.token})
                client.headers["origin"] = str(client.base_url)
            yield client
        finally:
            end.set()
            command.join()


def decisions(name="reviews/anna.jsonl"):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]
