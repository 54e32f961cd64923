"""The example's live folder against two real servers, behind one base URL as on a server of several repositories."""

import os
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
import servers
from test_golden_runs import EXAMPLE

from pytest_queryeval import evaluate, load_cases

pytestmark = pytest.mark.process

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def repositories(urls):
    """Hands each request on to the server of the repository that its path names."""

    def forward(exchange):
        name = exchange.request.path.rpartition("/")[2]
        form = urllib.parse.urlencode({"query": exchange.request.query})
        request = urllib.request.Request(f"{urls[name]}?{form}", headers={"Accept": exchange.request.headers["accept"]})
        with OPENER.open(request) as response:
            exchange.reply(response.read(), Content_Type=response.headers["Content-Type"])

    return forward


@pytest.mark.feature("sparql_endpoint")
def test_the_live_folder_passes_on_two_repositories(tmp_path, monkeypatch):
    sparql = EXAMPLE / "sparql"
    north, south = [sparql / "building.ttl"], [sparql / "live/south.ttl"]
    with (
        servers.oxigraph(tmp_path / "north", north) as first,
        servers.oxigraph(tmp_path / "south", south) as second,
        servers.FaultServer(repositories({"north": first, "south": second})) as router,
    ):
        monkeypatch.setenv("QUERYEVAL_EXAMPLE_ENDPOINT", router.origin)
        report = evaluate(load_cases(sparql / "live"))

    assert report["totals"]["passed"] == report["totals"]["cases"] == 5


@pytest.mark.feature("sparql_endpoint")
def test_without_a_server_the_folder_is_skipped_with_the_reason():
    environment = {name: value for name, value in os.environ.items() if name != "QUERYEVAL_EXAMPLE_ENDPOINT"}
    command = [sys.executable, "-m", "pytest", "sparql/live", "-rs", "-p", "no:cacheprovider"]

    result = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=300, env=environment)

    assert result.returncode == 0
    assert "QUERYEVAL_EXAMPLE_ENDPOINT is not set" in result.stdout
    assert "gate not evaluated" in result.stdout
