"""Each row of docs/endpoint-answers.md: what a service answers, and what comes of that."""

import re
from pathlib import Path

import pytest
from endpoint_faults import unless_probed
from servers import GOOD, FaultServer, table

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.sparql_endpoint.endpoint_profiles import PROFILES, meaning_of, recognize_profile

pytestmark = pytest.mark.process

PAGE = Path(__file__).parents[3] / "docs" / "endpoint-answers.md"
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| (QLever|Virtuoso|Fuseki|Oxigraph|another)\b", line)
]
SERVERS = {
    "Virtuoso": "Virtuoso/07.20.3240 (Linux) x86_64-pc-linux-gnu",
    "Fuseki": "Apache Jena Fuseki (5.1.0)",
    "Oxigraph": "Oxigraph/0.5.13",
}


def test_the_page_has_forty_situations_of_all_profiles():
    assert len(ROWS) >= 40
    assert {service.split(",")[0].lower() for service, *_ in ROWS} == {*PROFILES, "another"}


@pytest.mark.parametrize(("service", "answer", "probe", "outcome", "sent"), ROWS, ids=map(str, range(len(ROWS))))
def test_the_outcome_of_an_answer_is_that_of_the_page(hosts, tmp_path, service, answer, probe, outcome, sent):
    behaviour = behaves(service, answer)
    with FaultServer(unless_probed(behaviour) if probe == "answered" else behaviour) as server:
        profile = re.search(r"`profile: (\w+)`", service)
        settings = {"url": server.url} | ({"profile": profile[1]} if profile else {})
        engine = ENGINES["endpoint"].open(
            Source(name="e", engine="endpoint", settings=settings, folder=tmp_path), hosts
        )
        try:
            execution = engine.execute("SELECT ?x { ?s ?p ?x }", timeout=10, max_rows=10)
            kind = "answer" if execution.error is None else f"`{execution.error.kind}`"
        except SourceError:
            kind = "error"

    assert (kind, len(server.queries)) == (outcome, int(sent))


def behaves(service, answer):
    """The behaviour that a row describes: status, headers and body in code, `half the answer` before what follows."""
    status, *codes = re.findall(r"`([^`]+)`", answer)
    headers = {"Server": SERVERS[service]} if service in SERVERS else {}
    body = b""
    if "the answer" in answer.removesuffix("then the answer"):
        body = GOOD[: len(GOOD) // 2] if "half the answer" in answer else GOOD
    for code in codes:
        if header := re.fullmatch(r"([A-Z][\w-]+-[\w-]+): (\S+)", code):
            headers[header[1]] = header[2]
        else:
            body += code.replace("\\n", "\n").encode()

    def behave(exchange):
        if answer.endswith("then the answer") and exchange.number > 1:
            exchange.reply(GOOD, **headers)
        else:
            exchange.reply(body, f"{status} Reason", **headers)

    return behave


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    "text",
    [
        "The SPARQL operation has been cancelled",
        "\n##  Query cancelled due to timeout during execution   ##",
        "\n !!!!>># An error has occurred while exporting the query result: timed out",
        "Virtuoso S1T00 Error",
    ],
)
def test_a_text_of_the_data_is_no_sign(name, text):
    assert meaning_of(name, 200, {}, table(text).encode()) is None


def test_other_services_are_not_recognised():
    assert recognize_profile({"Server": "nginx", "X-Note": "server: virtuoso"}, b'{"exception": "no"}') is None
